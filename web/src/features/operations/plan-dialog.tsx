'use client'

/**
 * A rehearsal before anything is done (docs/design/control-plane.md#plan): checks, before and after, what it costs, the
 * same thing without the console. It is made anew each second; the button runs the plan that is shown and no other.
 */

import { useQueryClient } from '@tanstack/react-query'
import type { Plan, PlanRequest } from '@vacancy/shared/contract'
import { type FormEvent, memo, useEffect, useId, useRef, useState } from 'react'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { announce } from '../../ui/announce.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeTabs } from '../../ui/code-view.tsx'
import { TypedField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Input, RadioGroup } from '../../ui/field.tsx'
import { Link } from '../../ui/link.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import { EnvironmentLabel } from '../shell/environment-label.tsx'
import { PlanChecks } from './plan-checks.tsx'
import { PlanPictures } from './plan-pictures.tsx'
import { asksFor, planChanges, REASON_CHARACTERS_MAX, whyNot } from './plan-view.ts'
import { planKey, usePlan, useStartOperation } from './queries.ts'

type PlanDialogProps = {
  readonly request: PlanRequest
  /** Another target, or the fix of a check: the same dialog for another plan. */
  readonly onRequest: (request: PlanRequest) => void
  readonly onClose: () => void
}

export function PlanDialog({ request, onRequest, onClose }: PlanDialogProps) {
  const form = useId()
  const [reason, setReason] = useState('')
  const [typed, setTyped] = useState('')
  const [movedOn, setMovedOn] = useState<readonly string[]>([])
  const start = useStartOperation()
  const queries = useQueryClient()
  const query = usePlan(request, !start.isPending)
  const plan = query.data
  const held = useWhyNot('admin')
  const why = plan ? whyNot(plan, { reason, typed }, held ?? '') : 'The plan is being made.'
  const isSettling = query.isPlaceholderData || !plan
  useAnnounceChanges(isSettling ? undefined : plan)
  useFocusBack()

  const run = (event?: FormEvent) => {
    event?.preventDefault()
    if (!plan || isSettling || why !== '' || start.isPending) return
    setMovedOn([])
    start.mutate(
      { plan: plan.id, reason: reason.trim(), confirm: typed.trim() },
      {
        onSuccess: onClose,
        onError: (problem) => {
          const next = problem.code === 'plan-out-of-date' ? (problem.more['plan'] as Plan | undefined) : undefined
          if (!next) return
          // The new plan takes the place of the old one: its difference is shown and nothing runs until asked again.
          const changes = planChanges(plan, next)
          setMovedOn(changes.length > 0 ? changes : ['The cluster changed in something that the checks do not show.'])
          queries.setQueryData(planKey(request), next)
        },
      },
    )
  }

  return (
    <Dialog
      open
      wide
      keep={reason !== '' || typed !== ''}
      onClose={onClose}
      title={plan?.title ?? titleOf(request)}
      label={plan && <EnvironmentLabel environment={plan.environment} />}
      footer={
        <Footer
          plan={plan}
          why={isSettling ? 'The plan is being made.' : why}
          isBusy={start.isPending}
          onRun={run}
          onClose={onClose}
        />
      }
    >
      {movedOn.length > 0 && <MovedOn changes={movedOn} />}
      {start.error && movedOn.length === 0 && <StartFailed problem={start.error} />}
      {query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />}
      {!plan && !query.error && <Skeleton rows={8} />}
      {plan && (
        <form id={form} onSubmit={run} className="grid gap-5" aria-busy={query.isPlaceholderData || undefined}>
          <Explained plan={plan} request={request} onRequest={onRequest} />
          <Confirming plan={plan} reason={reason} onReason={setReason} typed={typed} onTyped={setTyped} />
          {/* Enter in a field is the button, and obeys what holds it back. */}
          <button type="submit" hidden aria-hidden="true" tabIndex={-1} />
        </form>
      )}
    </Dialog>
  )
}

type OfPlan = {
  readonly plan: Plan
  readonly request: PlanRequest
  readonly onRequest: (request: PlanRequest) => void
}

/** All that a plan says. Drawn anew with the plan alone: neither a key nor the click that confirms waits for it. */
const Explained = memo(function Explained({ plan, request, onRequest }: OfPlan) {
  return (
    <>
      <Targets plan={plan} request={request} onRequest={onRequest} />
      <PlanPictures before={plan.before} after={plan.after} />
      <Effects plan={plan} />
      <PlanChecks checks={plan.checks} onPlan={onRequest} />
      <section className="grid gap-2">
        <h3 className="text-body text-text-2">Same thing without the console</h3>
        <CodeTabs
          label="Same thing without the console"
          tabs={[
            { id: 'cli', label: 'Command line', code: plan.commands.cli },
            { id: 'curl', label: 'curl', code: plan.commands.curl },
          ]}
        />
      </section>
    </>
  )
})

/** What stands in the title until the plan is there. */
function titleOf(request: PlanRequest): string {
  const what = request.node ?? request.snapshot?.slice(0, 12) ?? ''
  switch (request.kind) {
    case 'transfer':
      return `Transfer leadership of ${request.shard}${what === '' ? '' : ` to ${what}`}`
    case 'promote':
      return `Promote ${what} of ${request.shard}`
    case 'demote':
      return `Demote ${what} of ${request.shard}`
    case 'transfer-then-demote':
      return `Transfer leadership of ${request.shard}, then demote ${what}`
    case 'install':
      return `Install ${what} on ${request.shard}`
    case 'undo-install':
      return `Take back the installation on ${request.shard}`
  }
}

/** What had the focus when the dialog was asked for has it again when it is closed. */
function useFocusBack(): void {
  const [opener] = useState(() => document.activeElement)
  useEffect(
    () => () => {
      // After the layer has let go of the page.
      if (opener instanceof HTMLElement) setTimeout(() => opener.isConnected && opener.focus())
    },
    [opener],
  )
}

/** Says what changed since the plan before, for who does not see it redrawn. */
function useAnnounceChanges(plan: Plan | undefined): void {
  const before = useRef<Plan | undefined>(undefined)
  useEffect(() => {
    if (!plan) return
    const was = before.current
    before.current = plan
    if (was === undefined || was.title !== plan.title) return
    const changes = planChanges(was, plan)
    if (changes.length > 0) announce(changes.join(' '), 'polite')
  }, [plan])
}

function MovedOn({ changes }: { readonly changes: readonly string[] }) {
  return (
    <Banner level="warn" title="The cluster moved on: nothing was done">
      <ul className="list-disc ps-4">
        {changes.map((change) => (
          <li key={change}>{change}</li>
        ))}
      </ul>
      <p>The plan below is the new one. Read it, then ask again.</p>
    </Banner>
  )
}

function StartFailed({ problem }: { readonly problem: NonNullable<ReturnType<typeof useStartOperation>['error']> }) {
  const busy = problem.more['operation'] as { id?: string } | undefined
  return (
    <Banner level="crit" title="It was not started">
      <p>
        {problem.message} {problem.hint}
      </p>
      {busy?.id && <Link href={routes.operation(busy.id)}>Open the operation that runs</Link>}
    </Banner>
  )
}

/** Kinds that make sense for another node of the same shard. */
const RETARGETED: readonly Plan['kind'][] = ['transfer', 'promote', 'demote']

function Targets({ plan, request, onRequest }: OfPlan) {
  if (!RETARGETED.includes(plan.kind) || plan.node === null || plan.alternatives.length === 0) return null
  const of = new Map(plan.before.nodes.map((node) => [node.node, node]))
  const others = plan.alternatives.map(({ node, message, blocked }) => ({
    node,
    hint: blocked ? `${message} (would be blocked)` : message,
  }))
  const options = [{ node: plan.node, hint: of.get(plan.node)?.message ?? '' }, ...others]
    // By id: what is chosen does not move.
    .sort((a, b) => (a.node < b.node ? -1 : 1))
    .map(({ node, hint }) => ({ value: node, label: node, hint }))
  return (
    <RadioGroup
      label={plan.kind === 'transfer' ? 'Target' : 'Node'}
      value={request.node ?? plan.node}
      onChange={(node) => onRequest({ kind: plan.kind, shard: plan.shard, node })}
      options={options}
    />
  )
}

function Effects({ plan }: { readonly plan: Plan }) {
  return (
    <section className="grid gap-2">
      <h3 className="text-body text-text-2">What will happen</h3>
      <ul className="grid gap-1.5">
        {plan.effects.map((effect) => (
          <li key={effect.text} className="prose">
            {effect.text} {effect.source !== '' && <span className="text-small text-text-3">({effect.source})</span>}
          </li>
        ))}
      </ul>
    </section>
  )
}

type ConfirmingProps = {
  readonly plan: Plan
  readonly reason: string
  readonly onReason: (reason: string) => void
  readonly typed: string
  readonly onTyped: (typed: string) => void
}

function Confirming({ plan, reason, onReason, typed, onTyped }: ConfirmingProps) {
  const asks = asksFor(plan)
  const warnings = plan.checks.filter((check) => check.level === 'warn').length
  const because = warnings === 1 ? 'required: 1 warning' : warnings > 1 ? `required: ${warnings} warnings` : 'required'
  return (
    <>
      {asks.typed && <TypedField text={plan.confirmText} value={typed} onChange={onTyped} />}
      <Field
        label="Reason"
        hint={`Kept in the audit log${asks.reason ? `, ${because}` : ', optional'}.`}
        required={asks.reason}
      >
        {(wire) => (
          <Input
            {...wire}
            value={reason}
            maxLength={REASON_CHARACTERS_MAX}
            autoComplete="off"
            onChange={(event) => onReason(event.target.value)}
          />
        )}
      </Field>
    </>
  )
}

type FooterProps = {
  readonly plan: Plan | undefined
  readonly why: string
  readonly isBusy: boolean
  readonly onRun: () => void
  readonly onClose: () => void
}

function Footer({ plan, why, isBusy, onRun, onClose }: FooterProps) {
  return (
    <div className="flex w-full flex-wrap items-center justify-end gap-3">
      <p className="me-auto text-small text-text-3">
        {plan && (
          <>
            observed <Age at={plan.observedAt} none="at no time" />, checked again every second
          </>
        )}
      </p>
      {why !== '' && <p className="text-small text-text-2">{why}</p>}
      <div className="flex gap-3">
        <Button onClick={onClose}>Cancel</Button>
        <Button
          kind={plan?.confirm === 3 ? 'danger-filled' : 'primary'}
          why={why === '' ? undefined : why}
          busy={isBusy}
          onClick={onRun}
        >
          {isBusy ? 'Requested…' : (plan?.action ?? 'Run the plan')}
        </Button>
      </div>
    </div>
  )
}

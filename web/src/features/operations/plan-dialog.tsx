'use client'

/**
 * A plan before it runs (docs/design/control-plane.md#plan): checks, before and after, effects, equivalent commands. It is
 * refreshed each second; the button runs exactly the plan that is shown.
 */

import { useQueryClient } from '@tanstack/react-query'
import type { Plan, PlanRequest } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { type FormEvent, memo, useEffect, useId, useMemo, useRef, useState } from 'react'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { days, shortCount } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { announce } from '../../ui/announce.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CodeTabs } from '../../ui/code-tabs.tsx'
import { TypedField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EnvironmentLabel } from '../../ui/environment-label.tsx'
import { RadioGroup, TextField } from '../../ui/field.tsx'
import { Link } from '../../ui/link.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import { RoleMark } from '../../ui/role-mark.tsx'
import { focusOperation } from './focus-operation.ts'
import * as copy from './plan-copy.ts'
import {
  isBlocked,
  isOnlyFound,
  outcomeOf,
  planChanges,
  REASON_CHARACTERS_MAX,
  replacementOf,
  requiredInput,
  sortChecks,
  spareText,
  whyNot,
} from './plan-view.ts'
import { planKey, usePlan, useStartOperation } from './queries.ts'

const STYLES: Record<Plan['checks'][number]['level'], { icon: IconName; colour: string }> = {
  ok: { icon: 'check', colour: 'text-ok' },
  info: { icon: 'info', colour: 'text-info' },
  warn: { icon: 'triangle', colour: 'text-warn' },
  block: { icon: 'stop', colour: 'text-crit' },
}

type PlanChecksProps = { readonly checks: Plan['checks']; readonly onPlan: (request: PlanRequest) => void }

/** Failed checks, warnings and notes are open and first; passed ones fold to one line. */
function PlanChecks({ checks, onPlan }: PlanChecksProps) {
  const { open, passed } = sortChecks(checks)
  return (
    <section className="grid gap-2">
      <h3 className="sr-only">{copy.plan.checks}</h3>
      {open.length > 0 && <CheckList label={copy.plan.checks} checks={open} onPlan={onPlan} />}
      {passed.length > 0 && (
        <details>
          <summary className="w-fit text-text-2">
            <Icon name="check" className="me-1.5 inline align-[-2px] text-ok" />
            {copy.plan.passed(passed.length)}
          </summary>
          <CheckList label={copy.plan.passedList} checks={passed} onPlan={onPlan} className="pt-2 sm:grid-cols-2" />
        </details>
      )}
    </section>
  )
}

type CheckListProps = PlanChecksProps & { readonly label: string; readonly className?: string }

const TINTS: Record<Plan['checks'][number]['level'], string> = {
  ok: '',
  info: '',
  warn: 'rounded-control bg-warn-bg px-3 py-1.5',
  block: 'rounded-control bg-crit-bg px-3 py-1.5',
}

function CheckList({ label, checks, onPlan, className }: CheckListProps) {
  return (
    <ul aria-label={label} className={clsx('grid gap-x-6 gap-y-1', className)}>
      {checks.map((check) => {
        const { icon, colour } = STYLES[check.level]
        return (
          <li
            key={check.id}
            data-check={check.id}
            data-level={check.level}
            className={clsx('flex items-start gap-2', TINTS[check.level])}
          >
            <Icon name={icon} className={clsx('mt-0.5', colour)} />
            <span className={clsx('min-w-0 flex-1 break-words', check.level === 'ok' ? 'text-text-2' : 'text-text')}>
              <span className="sr-only">{copy.plan.levels[check.level]}: </span>
              {check.text}
            </span>
            {check.fix && <Fix fix={check.fix} onPlan={onPlan} />}
          </li>
        )
      })}
    </ul>
  )
}

type FixProps = { readonly fix: NonNullable<Plan['checks'][number]['fix']>; readonly onPlan: PlanChecksProps['onPlan'] }

function Fix({ fix, onPlan }: FixProps) {
  const { plan, href, label } = fix
  if (plan) return <Button onClick={() => onPlan(plan)}>{label}</Button>
  // URLs come from the control plane; only those inside the console are linked.
  return href?.startsWith('/') && !href.startsWith('//') ? <LinkButton href={href}>{label}</LinkButton> : null
}

type PlanDialogProps = {
  readonly request: PlanRequest
  /** Switches to another plan: another target, or the fix of a check. */
  readonly onRequest: (request: PlanRequest) => void
  readonly onClose: () => void
}

export function PlanDialog({ request, onRequest, onClose }: PlanDialogProps) {
  const form = useId()
  const [reason, setReason] = useState('')
  const [typed, setTyped] = useState('')
  const [refused, setRefused] = useState<Change>()
  const start = useStartOperation()
  const queries = useQueryClient()
  const query = usePlan(request, !start.isPending)
  const plan = query.data
  const whyNotAdmin = useWhyNot('admin')
  const isSettling = query.isPlaceholderData || !plan
  // The plan that the person read. The dialog plans again by itself when the cluster changes.
  const [read, setRead] = useState<{ readonly plan: Plan; readonly request: PlanRequest }>()
  if (!isSettling && read?.request !== request) setRead({ plan, request })
  const isMoved = !isSettling && read?.request === request && keyOf(read.plan) !== keyOf(plan)
  const change = isMoved ? changeBetween(read.plan, plan) : refused
  const why = !plan
    ? copy.plan.preparing
    : isMoved
      ? copy.plan.readFirst
      : whyNot(plan, { reason, typed }, whyNotAdmin ?? '')
  // The operation that was in the way has ended.
  const isBusyOver = start.error?.code === 'shard-busy' && plan !== undefined && !isBlocked(plan)
  useAnnounceChanges(isSettling ? undefined : plan)
  const focusBack = useFocusBack()

  const run = (event?: FormEvent) => {
    event?.preventDefault()
    if (!plan || isSettling || why !== '' || start.isPending) return
    setRefused(undefined)
    start.mutate(
      { plan: plan.id, reason: reason.trim(), confirm: typed.trim() },
      {
        onSuccess: (operation) => {
          focusBack.onto(operation.id)
          onClose()
        },
        onError: (problem) => {
          const next = problem.code === 'plan-out-of-date' ? (problem.more['plan'] as Plan | undefined) : undefined
          if (!next) return
          // The new plan replaces the old one: its differences are shown and nothing runs until confirmed again.
          setRefused(changeBetween(plan, next))
          setRead({ plan: next, request })
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
      onConfirm={run}
      title={plan?.title ?? titleOf(request)}
      label={plan && <EnvironmentLabel environment={plan.environment} />}
      footer={
        <Footer
          plan={plan}
          why={isSettling ? copy.plan.preparing : why}
          isBusy={start.isPending}
          onRun={run}
          onClose={onClose}
        />
      }
    >
      {change && <PlanChanged {...change} onRead={isMoved ? () => setRead({ plan, request }) : undefined} />}
      {start.error && refused === undefined && !isBusyOver && <StartFailed problem={start.error} />}
      {query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />}
      {!plan && !query.error && <Skeleton rows={8} />}
      {plan && (
        <form id={form} onSubmit={run} className="grid gap-4" aria-busy={query.isPlaceholderData || undefined}>
          <Explained plan={plan} request={request} onRequest={onRequest} />
          <div className="grid items-start gap-x-6 gap-y-4 sm:grid-cols-2">
            <div className="grid gap-4">
              <Confirming plan={plan} reason={reason} onReason={setReason} typed={typed} onTyped={setTyped} />
            </div>
            <Commands commands={plan.commands} />
          </div>
          {/* Enter in a field acts as the button, with the same conditions. */}
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

/** The outcome, its risks, and how it comes about. Memoized, so that typing and confirming do not render it again. */
const Explained = memo(function Explained({ plan, request, onRequest }: OfPlan) {
  return (
    <>
      <p data-outcome="" className="font-medium text-section">
        {outcomeOf(plan)}
      </p>
      <PlanChecks checks={plan.checks} onPlan={onRequest} />
      <Targets plan={plan} request={request} onRequest={onRequest} />
      <PlanPictures before={plan.before} after={plan.after} />
      {!isBlocked(plan) && <Effects plan={plan} />}
    </>
  )
})

const Commands = memo(function Commands({ commands }: Pick<Plan, 'commands'>) {
  return (
    <CodeTabs
      label={copy.plan.fromCommandLine}
      wrap
      tabs={[
        { id: 'cli', label: copy.plan.cli, code: commands.cli },
        { id: 'curl', label: copy.plan.curl, code: commands.curl },
      ]}
    />
  )
})

/** The title until the plan has loaded. */
function titleOf(request: PlanRequest): string {
  const what = request.node ?? request.snapshot?.slice(0, 12) ?? ''
  switch (request.kind) {
    case 'transfer':
      return copy.plan.transfer(request.shard, what)
    case 'promote':
      return copy.plan.promote(what, request.shard)
    case 'demote':
      return copy.plan.demote(what, request.shard)
    case 'transfer-then-demote':
      return copy.plan.transferThenDemote(request.shard, what)
    case 'replace-voter':
      return copy.plan.replaceVoter(request.shard, what)
    case 'install':
      return copy.plan.install(what, request.shard)
    case 'undo-install':
      return copy.plan.undoInstall(request.shard)
  }
}

/** When the dialog closes, the focus goes to the started operation, or returns to the opener. */
function useFocusBack(): { readonly onto: (operation: string) => void } {
  const [opener] = useState(() => document.activeElement)
  const started = useRef<string>(undefined)
  useEffect(
    () => () => {
      // After the layer has released the focus.
      setTimeout(() => {
        if (started.current !== undefined) focusOperation(started.current, opener)
        else if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
      })
    },
    [opener],
  )
  return useMemo(
    () => ({
      onto: (operation) => {
        started.current = operation
      },
    }),
    [],
  )
}

/** Announces changes of the plan to screen readers. */
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

/** What a plan depends on: another key is another plan. */
const keyOf = ({ basis, node }: Plan) => JSON.stringify([basis, node])

type Change = { readonly title: string; readonly changes: readonly string[] }

function changeBetween(before: Plan, after: Plan): Change {
  const found = planChanges(before, after)
  if (keyOf(before) === keyOf(after)) return { title: copy.plan.tooOld, changes: found }
  const title = isOnlyFound(before, after) ? copy.plan.foundTitle : copy.plan.changedTitle
  return { title, changes: found.length > 0 ? found : [copy.plan.unlistedChange] }
}

function PlanChanged({ title, changes, onRead }: Change & { readonly onRead: (() => void) | undefined }) {
  return (
    <Banner level="warn" title={title} actions={onRead && <Button onClick={onRead}>{copy.plan.useNew}</Button>}>
      <ul className="list-disc ps-4">
        {changes.map((change) => (
          <li key={change}>{change}</li>
        ))}
      </ul>
      <p>{copy.plan.changedHint}</p>
    </Banner>
  )
}

function StartFailed({ problem }: { readonly problem: NonNullable<ReturnType<typeof useStartOperation>['error']> }) {
  const busy = problem.more['operation'] as { id?: string } | undefined
  return (
    <Banner level="crit" title={copy.plan.notStarted}>
      <p>
        {problem.message} {problem.hint}
      </p>
      {busy?.id && <Link href={routes.operation(busy.id)}>{copy.plan.openRunning}</Link>}
    </Banner>
  )
}

/** Kinds that can be retargeted to another node of the shard. */
const RETARGETED: readonly Plan['kind'][] = ['transfer', 'promote', 'demote', 'replace-voter']

function Targets({ plan, request, onRequest }: OfPlan) {
  if (!RETARGETED.includes(plan.kind) || plan.node === null || plan.alternatives.length === 0) return null
  const of = new Map(plan.before.nodes.map((node) => [node.node, node]))
  const others = plan.alternatives.map(({ node, message, blocked }) => ({
    node,
    hint: blocked ? copy.plan.blockedTarget(message) : message,
  }))
  // Of a replacement the voter stays, and another learner takes its place.
  const isReplacement = plan.kind === 'replace-voter'
  const chosen = isReplacement ? replacementOf(plan) : plan.node
  if (chosen === '') return null
  // The same of all of them: how far a target of a transfer is behind, else its state.
  const lag = plan.kind === 'transfer' ? plan.checks.find(({ id }) => id === 'lag')?.text : undefined
  const options = [{ node: chosen, hint: lag ?? of.get(chosen)?.message ?? '' }, ...others]
    // By id, so that the chosen one does not move.
    .sort((a, b) => (a.node < b.node ? -1 : 1))
    .map(({ node, hint }) => ({ value: node, label: node, hint }))
  return (
    <RadioGroup
      label={isReplacement ? copy.plan.replacement : plan.kind === 'transfer' ? copy.plan.target : copy.plan.node}
      value={(isReplacement ? request.replacement : request.node) ?? chosen}
      onChange={(node) =>
        onRequest({
          ...{ kind: plan.kind, shard: plan.shard },
          ...(isReplacement ? { node: plan.node as string, replacement: node } : { node }),
        })
      }
      options={options}
    />
  )
}

function Effects({ plan }: { readonly plan: Plan }) {
  return (
    <section className="grid gap-2">
      <h3 className="text-body text-text-2">{copy.plan.effects}</h3>
      <ul className="grid gap-1.5">
        {plan.effects.map(({ text, source }, at) => (
          <li key={text} className="prose">
            {/* Once for all that have it in a row. */}
            {text}{' '}
            {source !== '' && source !== plan.effects[at + 1]?.source && (
              <span className="text-small text-text-3">({source})</span>
            )}
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
  const required = requiredInput(plan)
  const warnings = plan.checks.filter((check) => check.level === 'warn').length
  return (
    <>
      {required.typed && <TypedField text={plan.confirmText} value={typed} onChange={onTyped} />}
      <TextField
        label={copy.plan.reason}
        hint={required.reason ? copy.plan.reasonRequired(warnings) : copy.plan.reasonOptional}
        required={required.reason}
        data-first-field={required.typed ? undefined : ''}
        value={reason}
        maxLength={REASON_CHARACTERS_MAX}
        autoComplete="off"
        onChange={onReason}
      />
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
            {copy.plan.observed} <Age at={plan.observedAt} none={copy.plan.never} />
            {copy.plan.updated}
          </>
        )}
      </p>
      {why !== '' && <p className="text-small text-text-2">{why}</p>}
      <div className="flex gap-3">
        <Button onClick={onClose}>{copy.plan.cancel}</Button>
        <Button
          kind={plan?.confirm === 3 ? 'danger-filled' : 'primary'}
          why={why === '' ? undefined : why}
          busy={isBusy}
          aria-keyshortcuts="Control+Enter Meta+Enter"
          data-tip={why === '' ? copy.plan.keys : why}
          onClick={onRun}
        >
          {isBusy ? copy.plan.requested : (plan?.action ?? copy.plan.run)}
        </Button>
      </div>
    </div>
  )
}

type Picture = Plan['before']

/** A shard before and after a plan: roles, spare voters, data. */
function PlanPictures({ before, after }: { readonly before: Picture; readonly after: Picture }) {
  const roles = new Map(before.nodes.map((node) => [node.node, node.role]))
  return (
    <section aria-label={copy.plan.beforeAndAfter} className="grid gap-3 rounded-panel bg-sunken p-3 sm:grid-cols-2">
      <PictureOf title={copy.plan.before} picture={before} isChanged={() => false} />
      <PictureOf title={copy.plan.after} picture={after} isChanged={(node, role) => roles.get(node) !== role} />
    </section>
  )
}

type PictureOfProps = {
  readonly title: string
  readonly picture: Picture
  readonly isChanged: (node: string, role: Picture['nodes'][number]['role']) => boolean
}

function PictureOf({ title, picture, isChanged }: PictureOfProps) {
  return (
    <div className="grid content-start gap-2">
      <h3 className="text-body text-text-2">{title}</h3>
      <ul className="flex flex-wrap gap-2">
        {picture.nodes.map(({ node, role }) => {
          const changed = isChanged(node, role)
          return (
            <li
              key={node}
              className={clsx(
                'inline-flex min-h-6 items-center gap-1.5 rounded-control border bg-surface px-2',
                changed ? 'border-accent font-semibold' : 'border-line',
              )}
            >
              <RoleMark role={role} />
              <span className="font-mono text-table">{node}</span>
              {changed && <span className="text-small text-text-2">{role}</span>}
            </li>
          )
        })}
      </ul>
      <p className="text-small text-text-2">
        {copy.plan.voters(picture.voters, picture.majority, spareText(picture.spare))}
      </p>
      {picture.data && (
        <p className="text-small text-text-2">
          {copy.plan.data(
            shortCount(picture.data.packages),
            shortCount(picture.data.properties),
            days(picture.data.window),
          )}
        </p>
      )}
    </div>
  )
}

'use client'
/**
 * The plan of a redrive (docs/design/control-plane.md#plan): how many dead jobs, to which topic, how fast, and what
 * happens to them. Up to 10,000 jobs move at once, in one transaction. A redrive at a rate runs in the queue; the page of
 * the topic shows its progress.
 */
import type { JobView } from '@vacancy/shared/contract'
import { type FormEvent, useId, useState } from 'react'
import { call } from '../../lib/api.ts'
import { rate } from '../../lib/format.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useMe, useWhyNot } from '../../lib/session.ts'
import { Button } from '../../ui/button.tsx'
import { Failed, useConfirmLevel } from '../../ui/confirm-dialog.tsx'
import { missingConfirmation, ReasonField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EnvironmentLabel } from '../../ui/environment-label.tsx'
import { Facts } from '../../ui/facts.tsx'
import { SelectField } from '../../ui/select.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import { type DeadQuery, type DeadSelection, isFiltering, selectionBody } from './dead-filter.ts'
import { useDeadCount, useDeadSample, useQueueChange, useQueueStats, useTopic } from './queries.ts'

type RedriveProps = { readonly topic: string; readonly selection: DeadSelection; readonly onClose: () => void }

/** Jobs that one request moves. */
const AT_ONCE_MAX = 10_000
/** More need a reason. */
const MANY = 1_000
const RATES = ['10', '100', '1000', '10000'] as const
const AT_ONCE = ''

type Outcome = { readonly moved: number; readonly missing: readonly string[]; readonly conflicts: readonly string[] }

export function RedriveDialog({ topic, selection, onClose }: RedriveProps) {
  const form = useId()
  const { environment } = useMe()
  const operator = useWhyNot('operator')
  const [to, setTo] = useState(topic)
  const [chosenRate, setRate] = useState<string>()
  const [reason, setReason] = useState('')
  const [outcome, setOutcome] = useState<Outcome>()
  // The plan is about the jobs that are dead now, not about those that fail again meanwhile.
  const [until] = useState(() => new Date(serverNow()).toISOString())
  const filter = selection.kind === 'filter' ? selection.filter : undefined
  const counted = useDeadCount(topic, filter)
  const jobs = selection.kind === 'ids' ? selection.ids.length : counted.data?.count
  const isExact = selection.kind === 'ids' || counted.data?.exact === true
  const isLong = jobs !== undefined && (jobs > AT_ONCE_MAX || !isExact)
  const perSecond = isLong && (chosenRate ?? AT_ONCE) === AT_ONCE ? '100' : (chosenRate ?? AT_ONCE)
  const level = useConfirmLevel(jobs !== undefined && jobs > MANY ? 2 : 1)
  const move = useQueueChange(async (): Promise<Outcome | undefined> => {
    const more = { ...(to !== topic && { to }), ...(reason.trim() !== '' && { reason: reason.trim() }) }
    const params = { topic }
    if (filter !== undefined && perSecond !== AT_ONCE) {
      const body = { filter, ratePerSec: Number(perSecond), ...more }
      await call('POST /api/v1/queue/topics/{topic}/redrive', { params, body })
      return undefined
    }
    const body = { ...selectionBody(selection, until, AT_ONCE_MAX), ...more }
    const answer = await call('POST /api/v1/queue/topics/{topic}/dead/redrive', { params, body })
    return { moved: answer.redriven, missing: answer.missing, conflicts: answer.conflicts ?? [] }
  })
  const amount =
    jobs === undefined ? copy.redrive.counting : isExact ? copy.common.jobs(jobs) : copy.redrive.atLeast(jobs)
  const why =
    operator ??
    (jobs === undefined
      ? copy.redrive.counting
      : jobs === 0
        ? copy.redrive.nothing
        : level === 1
          ? undefined
          : missingConfirmation({ reason }))
  const confirm = async (event: FormEvent) => {
    event.preventDefault()
    if (why !== undefined || move.isPending || outcome !== undefined) return
    const result = await move.mutateAsync().catch(() => null)
    // A failure is shown in the dialog.
    if (result === null) return
    toast({ message: result === undefined ? copy.redrive.begun(amount, to) : copy.redrive.done(result.moved, to) })
    if (result === undefined || result.missing.length + result.conflicts.length === 0) onClose()
    else setOutcome(result)
  }
  return (
    <Dialog
      open
      keep={reason !== ''}
      title={copy.redrive.title(topic)}
      label={<EnvironmentLabel environment={environment} />}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{outcome ? copy.common.close : copy.common.cancel}</Button>
          {outcome === undefined && (
            <Button type="submit" form={form} kind="primary" why={why} busy={move.isPending}>
              {copy.redrive.confirm(amount, to)}
            </Button>
          )}
        </>
      }
    >
      <form id={form} aria-label={copy.redrive.title(topic)} className="flex flex-col gap-4" onSubmit={confirm}>
        {outcome ? (
          <Result outcome={outcome} to={to} />
        ) : (
          <>
            <Facts
              facts={[
                [
                  copy.redrive.matching,
                  <span key="jobs" data-matching={jobs}>
                    {amount}
                  </span>,
                ],
                [copy.redrive.filter, <Selected key="what" selection={selection} />],
              ]}
            />
            <div className="grid gap-4 sm:grid-cols-2">
              <Target topic={topic} to={to} onTo={setTo} />
              {filter && <Speed isLong={isLong} value={perSecond} onChange={setRate} />}
            </div>
            <Effects to={to} />
            {filter && <Sample topic={topic} filter={filter} />}
            {level > 1 && <ReasonField value={reason} onChange={setReason} />}
          </>
        )}
        {move.error && <Failed error={move.error} />}
      </form>
    </Dialog>
  )
}

type SpeedProps = { readonly isLong: boolean; readonly value: string; readonly onChange: (value: string) => void }

function Speed({ isLong, value, onChange }: SpeedProps) {
  return (
    <SelectField
      label={copy.redrive.speed}
      hint={isLong ? copy.redrive.speedHint : undefined}
      value={value}
      onChange={onChange}
      options={[
        ...(isLong ? [] : [{ value: AT_ONCE, label: copy.redrive.atOnce }]),
        ...RATES.map((one) => ({ value: one, label: copy.redrive.perSecond(Number(one)) })),
      ]}
    />
  )
}

function Selected({ selection }: { readonly selection: DeadSelection }) {
  if (selection.kind === 'ids')
    return selection.ids.length === 1 ? (
      <code className="break-all font-mono">{selection.ids[0]}</code>
    ) : (
      copy.redrive.selected(selection.ids.length)
    )
  if (!isFiltering(selection.filter)) return copy.redrive.all
  const { group, error, minFailures, after, before } = selection.filter
  const parts: readonly (readonly [string, string | number | undefined])[] = [
    [copy.redrive.group, group],
    [copy.dead.error, error],
    [copy.dead.failures, minFailures],
    [copy.dead.after, after],
    [copy.dead.before, before],
  ]
  return (
    <ul>
      {parts.map(([name, value]) =>
        value === undefined ? null : (
          <li key={name} className="break-words">
            {name}: <code className="font-mono">{value}</code>
          </li>
        ),
      )}
    </ul>
  )
}

type TargetProps = { readonly topic: string; readonly to: string; readonly onTo: (topic: string) => void }

function Target({ topic, to, onTo }: TargetProps) {
  const stats = useQueueStats()
  const others = (stats.data?.topics ?? []).map((one) => one.topic).filter((one) => one !== topic)
  return (
    <SelectField
      label={copy.redrive.to}
      value={to}
      onChange={onTo}
      options={[
        { value: topic, label: copy.redrive.same(topic) },
        ...others.sort().map((one) => ({ value: one, label: one })),
      ]}
    />
  )
}

function Effects({ to }: { readonly to: string }) {
  const target = useTopic(to).data
  const hints = [
    ...(target?.paused ? [copy.redrive.pausedHint] : []),
    ...(target && target.config.rate_per_sec > 0 ? [copy.redrive.rateHint(rate(target.config.rate_per_sec))] : []),
  ]
  return (
    <section className="flex flex-col gap-2">
      <h3 className="text-body text-text-2">{copy.redrive.effects}</h3>
      <ul className="flex list-disc flex-col gap-1 ps-5">
        {[...copy.redrive.effect, ...hints].map((effect) => (
          <li key={effect} className="prose">
            {effect}
          </li>
        ))}
      </ul>
    </section>
  )
}

function Sample({ topic, filter }: { readonly topic: string; readonly filter: DeadQuery }) {
  const jobs = useDeadSample(topic, filter).data?.jobs ?? []
  if (jobs.length === 0) return null
  return (
    <details>
      <summary className="w-fit text-text-2 underline underline-offset-2">{copy.redrive.sample(jobs.length)}</summary>
      <ul className="flex max-h-48 flex-col gap-1 overflow-y-auto pt-2 text-table">
        {jobs.map((job: JobView) => (
          <li key={job.id} className="break-words">
            <code className="font-mono">{job.id}</code> <span className="text-text-2">{job.lastError}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}

type ResultProps = { readonly outcome: Outcome; readonly to: string }

function Result({ outcome: { moved, missing, conflicts }, to }: ResultProps) {
  return (
    <div role="status" className="flex flex-col gap-3">
      <p className="font-medium tabular-nums" data-redriven={moved}>
        {copy.redrive.running(moved)}
      </p>
      <Ids text={copy.redrive.missing(missing.length)} ids={missing} />
      <Ids text={copy.redrive.conflicts(conflicts.length, to)} ids={conflicts} />
    </div>
  )
}

function Ids({ text, ids }: { readonly text: string; readonly ids: readonly string[] }) {
  if (ids.length === 0) return null
  return (
    <div className="flex flex-col gap-1">
      <p>{text}</p>
      <ul className="max-h-40 overflow-y-auto rounded-control border border-line p-2 font-mono text-table">
        {ids.map((id) => (
          <li key={id} className="break-all">
            {id}
          </li>
        ))}
      </ul>
    </div>
  )
}

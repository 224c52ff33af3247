'use client'
/**
 * The plan of a redrive (docs/design/control-plane.md#plan): how many dead jobs, to which topic, and what happens to
 * them. It runs in steps of 10,000 jobs, each of which is one transaction.
 */
import type { JobView } from '@vacancy/shared/contract'
import { useEffect, useId, useRef, useState } from 'react'
import { call } from '../../lib/api.ts'
import { rate } from '../../lib/format.ts'
import { useMe, useWhyNot } from '../../lib/session.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { missingConfirmation, ReasonField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Field } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { toast } from '../../ui/toast.tsx'
import { EnvironmentLabel } from '../shell/environment-label.tsx'
import { Failed, useConfirmLevel } from './confirm-dialog.tsx'
import * as copy from './copy.ts'
import { type DeadQuery, type DeadSelection, isFiltering, selectionBody } from './dead-filter.ts'
import { useDeadCount, useDeadSample, useQueueChange, useQueueStats, useTopic } from './queries.ts'

type RedriveProps = { readonly topic: string; readonly selection: DeadSelection; readonly onClose: () => void }

/** Jobs that one request moves. */
const STEP = 10_000
/** More need a reason. */
const MANY = 1_000

type Outcome = { readonly moved: number; readonly missing: readonly string[]; readonly conflicts: readonly string[] }
const NOTHING_YET: Outcome = { moved: 0, missing: [], conflicts: [] }

export function RedriveDialog({ topic, selection, onClose }: RedriveProps) {
  const form = useId()
  const { environment } = useMe()
  const operator = useWhyNot('operator')
  const [to, setTo] = useState(topic)
  const [reason, setReason] = useState('')
  const filter = selection.kind === 'filter' ? selection.filter : undefined
  const counted = useDeadCount(topic, filter)
  const jobs = selection.kind === 'ids' ? selection.ids.length : counted.data?.count
  const isExact = selection.kind === 'ids' || counted.data?.exact === true
  const level = useConfirmLevel(jobs !== undefined && jobs > MANY ? 2 : 1)
  const run = useRedrive(topic, selection)
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
  const confirm = async () => {
    if (why !== undefined || run.isRunning) return
    const outcome = await run.start(to, reason.trim())
    if (outcome === undefined) return
    toast({ message: copy.redrive.done(outcome.moved, to) })
    if (outcome.missing.length + outcome.conflicts.length === 0) onClose()
  }
  const isOver = run.outcome !== undefined && !run.isRunning
  return (
    <Dialog
      open
      keep={run.isRunning || reason !== ''}
      title={copy.redrive.title(topic)}
      label={<EnvironmentLabel environment={environment} />}
      onClose={onClose}
      footer={
        <>
          {run.isRunning ? (
            <Button onClick={run.stop}>{copy.redrive.stop}</Button>
          ) : (
            <Button onClick={onClose}>{isOver ? copy.common.close : copy.common.cancel}</Button>
          )}
          {!isOver && (
            <Button type="submit" form={form} kind="primary" why={why} busy={run.isRunning}>
              {copy.redrive.confirm(amount, to)}
            </Button>
          )}
        </>
      }
    >
      <form
        id={form}
        aria-label={copy.redrive.title(topic)}
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          void confirm()
        }}
      >
        {run.outcome ? (
          <Result outcome={run.outcome} to={to} isStopped={run.isStopped} />
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
                [
                  selection.kind === 'filter' && isFiltering(selection.filter) ? copy.redrive.filter : copy.dead.count,
                  <Selected key="what" selection={selection} />,
                ],
              ]}
            />
            <Target topic={topic} to={to} onTo={setTo} />
            <Effects to={to} />
            {filter && <Sample topic={topic} filter={filter} />}
            {level > 1 && <ReasonField value={reason} onChange={setReason} />}
          </>
        )}
        {run.problem !== undefined && <Failed error={run.problem} />}
      </form>
    </Dialog>
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
    <Field label={copy.redrive.to}>
      {(wire) => (
        <Select
          {...wire}
          value={to}
          onChange={({ target }) => onTo(target.value)}
          options={[
            { value: topic, label: copy.redrive.same(topic) },
            ...others.sort().map((one) => ({ value: one, label: one })),
          ]}
        />
      )}
    </Field>
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

type ResultProps = { readonly outcome: Outcome; readonly to: string; readonly isStopped: boolean }

function Result({ outcome: { moved, missing, conflicts }, to, isStopped }: ResultProps) {
  return (
    <div role="status" className="flex flex-col gap-3">
      <p className="font-medium tabular-nums" data-redriven={moved}>
        {copy.redrive.running(moved)}
      </p>
      {isStopped && <Banner level="warn" title={copy.redrive.stopped} />}
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

/** Redrives step by step until nothing matches, or the person stops it or leaves. */
function useRedrive(topic: string, selection: DeadSelection) {
  const [outcome, setOutcome] = useState<Outcome>()
  const [problem, setProblem] = useState<unknown>()
  const [isRunning, setRunning] = useState(false)
  const [isStopped, setStopped] = useState(false)
  const isWanted = useRef(true)
  useEffect(
    () => () => {
      isWanted.current = false
    },
    [],
  )
  const step = useQueueChange((body: Parameters<typeof send>[1]) => send(topic, body))
  const start = async (to: string, reason: string): Promise<Outcome | undefined> => {
    const until = new Date().toISOString()
    isWanted.current = true
    setRunning(true)
    setProblem(undefined)
    let sum = NOTHING_YET
    try {
      for (let isMore = true; isMore && isWanted.current; ) {
        const answer = await step.mutateAsync({
          ...selectionBody(selection, until, STEP),
          ...(to !== topic && { to }),
          ...(reason !== '' && { reason }),
        })
        sum = {
          moved: sum.moved + answer.redriven,
          missing: [...sum.missing, ...answer.missing],
          conflicts: [...new Set([...sum.conflicts, ...(answer.conflicts ?? [])])],
        }
        setOutcome(sum)
        // Jobs in conflict match again: without progress it is over.
        isMore = selection.kind === 'filter' && answer.redriven > 0
      }
      return isWanted.current ? sum : undefined
    } catch (error) {
      setProblem(error)
      return undefined
    } finally {
      setRunning(false)
    }
  }
  const stop = () => {
    isWanted.current = false
    setStopped(true)
  }
  return { outcome, problem, isRunning, isStopped, start, stop }
}

type RedriveBody = ReturnType<typeof selectionBody> & { readonly to?: string; readonly reason?: string }

function send(topic: string, body: RedriveBody) {
  return call('POST /api/v1/queue/topics/{topic}/dead/redrive', { params: { topic }, body })
}

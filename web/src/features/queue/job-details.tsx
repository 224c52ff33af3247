'use client'
/** One job: fields, timeline, payload, and what can be done with it. */
import type { RouteAnswer } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { type ReactNode, useState } from 'react'
import { bytes, count, NONE, utc } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Id } from '../../ui/id.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { jobCommand } from './curl.ts'
import { retryId, typedOf } from './payload.ts'
import { PayloadView } from './payload-view.tsx'
import { useJobData } from './queries.ts'

const SubmitDialog = dynamic(() => import('./submit-dialog.tsx').then((module) => module.SubmitDialog), { ssr: false })
const RedriveDialog = dynamic(() => import('./redrive-dialog.tsx').then((module) => module.RedriveDialog), {
  ssr: false,
})

type JobBody = RouteAnswer<'GET /api/v1/queue/topics/{topic}/jobs/{id}'>

const LEVELS = { ready: 'info', leased: 'info', delayed: 'unk', dead: 'crit', done: 'ok' } as const
const ICONS = { ready: 'clock', leased: 'play', delayed: 'hourglass', dead: 'octagon', done: 'check' } as const

export function JobState({ state }: { readonly state: JobBody['state'] }) {
  return (
    <Badge level={LEVELS[state]} icon={ICONS[state]}>
      {copy.jobStates[state]}
    </Badge>
  )
}

export function JobDetails({ job }: { readonly job: JobBody }) {
  const payload = useJobData(job.topic, job.id)
  const data = payload.data?.data
  return (
    <div className="flex min-w-0 flex-col gap-4">
      {data !== undefined && <JobActions job={job} data={data} />}
      <Facts facts={factsOf(job)} />
      <section aria-label={copy.payload.title} className="flex min-w-0 flex-col gap-2">
        <h3 className="text-section">{copy.payload.title}</h3>
        {payload.isPending ? (
          <Skeleton rows={4} />
        ) : payload.data === undefined ? (
          <ErrorState error={payload.error} onRetry={payload.refetch} busy={payload.isFetching} />
        ) : (
          // Another job starts with the view that fits its payload.
          <PayloadView key={`${job.topic} ${job.id}`} topic={job.topic} job={job.id} data={data} />
        )}
      </section>
      <Timeline job={job} />
    </div>
  )
}

function JobActions({ job, data }: { readonly job: JobBody; readonly data: string | null }) {
  const why = useWhyNot('operator')
  const [open, setOpen] = useState<'submit' | 'redrive'>()
  const close = () => setOpen(undefined)
  const { topic, id, priority } = job
  return (
    <div className="flex flex-wrap gap-2">
      {job.state === 'dead' && (
        <Button icon="refresh" why={why} onClick={() => setOpen('redrive')}>
          {copy.job.redrive}
        </Button>
      )}
      <Button icon="edit" why={why} onClick={() => setOpen('submit')}>
        {copy.job.editSubmit}
      </Button>
      <CopyButton
        kind="default"
        label={copy.job.copyCurl}
        text={() => jobCommand({ id, topic, ...(data !== null && { data }), ...(priority > 0 && { priority }) })}
      />
      {open === 'submit' && (
        <SubmitDialog
          onClose={close}
          topic={topic}
          copyOf={id}
          start={{ id: retryId(id), payload: typedOf(data), priority }}
        />
      )}
      {open === 'redrive' && <RedriveDialog topic={topic} selection={{ kind: 'ids', ids: [id] }} onClose={close} />}
    </div>
  )
}

function factsOf(job: JobBody): readonly (readonly [string, ReactNode])[] {
  const at = (name: string, time: string | null) =>
    time === null
      ? []
      : [
          [
            name,
            <span key={name}>
              {utc(time)}, <Age at={time} />
            </span>,
          ] as const,
        ]
  return [
    [copy.jobs.id, <Id key="id" value={job.id} label="job" />],
    [copy.job.state, <JobState key="state" state={job.state} />],
    ...at(copy.job.submitted, job.createdAt),
    ...at(copy.job.died, job.deadAt),
    ...at(copy.job.finished, job.finishedAt),
    ...(job.reason === null ? [] : [[copy.job.reason, copy.deadReasons[job.reason]] as const]),
    ...(job.lastError === null
      ? []
      : [
          [
            copy.job.error,
            <span key="error" className="whitespace-pre-wrap break-words font-mono text-table">
              {job.lastError}
            </span>,
          ] as const,
        ]),
    ...(job.consumer === null
      ? []
      : [
          [
            copy.job.consumer,
            <span key="consumer" className="break-words font-mono">
              {job.consumer}
            </span>,
          ] as const,
        ]),
    ...(job.leaseUntil === null ? [] : [[copy.job.lease, utc(job.leaseUntil)] as const]),
    ...(job.runAt === null ? [] : [[copy.job.runAt, utc(job.runAt)] as const]),
    [copy.job.failures, copy.jobs.triesOf(job.failures, job.maxAttempts)],
    [copy.job.deliveries, count(job.deliveries)],
    [copy.job.priority, count(job.priority)],
    [copy.job.size, bytes(job.bytes)],
  ]
}

/** The queue keeps so many events of a job. */
const HISTORY_MAX = 20

function Timeline({ job }: { readonly job: JobBody }) {
  const events = [
    { at: job.createdAt, event: 'submitted' as const, consumer: '', error: '' },
    ...job.history,
    ...(job.finishedAt === null
      ? []
      : [{ at: job.finishedAt, event: 'done' as const, consumer: job.consumer ?? NONE, error: '' }]),
  ]
  return (
    <section aria-label={copy.job.timeline} className="flex min-w-0 flex-col gap-2">
      <h3 className="text-section">{copy.job.timeline}</h3>
      {job.history.length >= HISTORY_MAX && <p className="text-small text-text-3">{copy.job.timelineCut}</p>}
      <ol className="flex flex-col gap-1.5 border-line border-s ps-3">
        {events.map(({ at, event, consumer, error }, n) => (
          <li key={`${at} ${event} ${n}`} data-event={event} className="min-w-0 break-words">
            <time dateTime={at} className="me-2 text-small text-text-3 tabular-nums">
              {utc(at)}
            </time>
            {copy.job.events[event]} {consumer !== '' && <span className="font-mono">{consumer}</span>}
            {error !== '' && event !== 'dead' && <span className="block text-small text-text-2">{error}</span>}
          </li>
        ))}
      </ol>
    </section>
  )
}

/** The way back from a job that is not known any more. */
export function UnknownJob({ topic, id }: { readonly topic: string; readonly id: string }) {
  return (
    <div className="flex flex-col items-start gap-3">
      <p className="prose break-words text-text-2">{copy.job.unknown(id, topic)}</p>
      <LinkButton href={routes.topic(topic)}>{copy.job.openTopic(topic)}</LinkButton>
    </div>
  )
}

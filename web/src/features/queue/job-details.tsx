'use client'
/** One job: fields, timeline, payload, and what can be done with it. */
import type { RouteAnswer } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { type ReactNode, useMemo, useState } from 'react'
import { bytes, count, NONE, bytes as size, utc } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { saveFile } from '../../lib/save-file.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Id } from '../../ui/id.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'
import { jobCommand } from './curl.ts'
import { bytesOf, fileName, hexOf, indentJson, jsonFault, retryId, SHOWN_BYTES, textOf, typedOf } from './payload.ts'
import { useJobData } from './queries.ts'

type PayloadProps = {
  readonly topic: string
  readonly job: string
  /** Base64; null for none, undefined when it is not kept. */
  readonly data: string | null | undefined
}

const VIEWS = [
  { id: 'json', label: copy.payload.json },
  { id: 'text', label: copy.payload.text },
  { id: 'hex', label: copy.payload.hex },
] as const

/** The payload of a job as JSON, text or bytes, at most 256 KiB of it. */
function PayloadView({ topic, job, data }: PayloadProps) {
  const decoded = useMemo(() => (data ? decode(data) : undefined), [data])
  const [chosen, setChosen] = useState<string>()
  if (data === undefined) return <Note text={copy.payload.gone} />
  if (data === null) return <Note text={copy.payload.none} />
  if (!decoded) return <Note text={copy.payload.empty} />
  const { bytes, text, fault, isCut } = decoded
  const view = chosen ?? (text === undefined ? 'hex' : fault === undefined ? 'json' : 'text')
  const extension = text === undefined ? 'bin' : fault === undefined ? 'json' : 'txt'
  const [shown, whole] = [size(SHOWN_BYTES), size(bytes.length)]
  return (
    <ViewTabs
      label={copy.payload.label}
      value={view}
      onChange={setChosen}
      tabs={VIEWS}
      actions={
        <Button
          icon="download"
          onClick={() => saveFile(fileName([topic, job], extension), 'application/octet-stream', bytes)}
        >
          {copy.payload.download(whole)}
        </Button>
      }
    >
      <div className="flex flex-col gap-2">
        {isCut && <Note text={view === 'json' ? copy.payload.cutJson(shown, whole) : copy.payload.cut(shown, whole)} />}
        <Shown view={view} decoded={decoded} />
      </div>
    </ViewTabs>
  )
}

type Decoded = {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Of the part that is shown; undefined when that is not UTF-8. */
  readonly text: string | undefined
  /** Why it is not JSON; undefined for JSON, and for JSON that is cut. */
  readonly fault: string | undefined
  readonly isCut: boolean
}

function decode(data: string): Decoded {
  const bytes = bytesOf(data)
  const isCut = bytes.length > SHOWN_BYTES
  const text = textOf(bytes.subarray(0, SHOWN_BYTES), isCut)
  const whole = isCut ? textOf(bytes) : text
  return { bytes, text, isCut, fault: whole === undefined ? '' : jsonFault(whole) }
}

function Shown({ view, decoded }: { readonly view: string; readonly decoded: Decoded }) {
  const { bytes, text, fault, isCut } = decoded
  if (view === 'hex')
    return <CodeView label={copy.payload.hex} code={hexOf(bytes.subarray(0, SHOWN_BYTES))} hideLabel />
  if (text === undefined) return <Note text={copy.payload.notText} />
  if (view === 'text') return <CodeView label={copy.payload.text} code={text} hideLabel />
  if (fault !== undefined) return <Note text={copy.payload.notJson(fault)} />
  return <CodeView label={copy.payload.json} code={isCut ? text : indentJson(text)} hideLabel />
}

function Note({ text }: { readonly text: string }) {
  return <p className="break-words text-small text-text-2">{text}</p>
}

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

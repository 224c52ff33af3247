'use client'
/** Jobs of one state, page by page. */
import type { JobState, JobView } from '@vacancy/shared/contract'
import { bytes, count, duration, NONE } from '../../lib/format.ts'
import { Age } from '../../ui/age.tsx'
import { useNow } from '../../ui/clock.ts'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { type Column, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import * as copy from './copy.ts'
import { headText } from './payload.ts'

type JobsProps = {
  readonly state: JobState
  readonly jobs: readonly JobView[]
  /** Of all jobs, of which these are the first. */
  readonly total: number
  readonly href: (id: string) => string
  /** The job that is shown beside the table. */
  readonly open: string
  readonly selected?: ReadonlySet<string>
  readonly onSelect?: (selected: ReadonlySet<string>) => void
}

export function JobsTable({ state, jobs, total, href, open, selected, onSelect }: JobsProps) {
  const isNarrow = useMedia(NARROW)
  const props = {
    label: copy.jobs.titles[state],
    rows: jobs,
    columns: columnsOf(state, href),
    rowKey: ({ id }: JobView) => id,
    href: ({ id }: JobView) => href(id),
    focus: open === '' ? null : open,
    total,
    className: 'relative',
    rowProps: (job: JobView) => ({ 'data-job': job.id, 'data-state': job.state }),
    ...(selected && onSelect && { selected, onSelect }),
  }
  if (isNarrow) return <Table {...props} card={(job) => <JobCard job={job} href={href(job.id)} />} />
  return <VirtualTable {...props} />
}

/** The columns of each state, after the id. */
const COLUMNS: Readonly<Record<JobState, readonly Column<JobView>['id'][]>> = {
  ready: ['age', 'tries', 'priority', 'size', 'head'],
  leased: ['consumer', 'lease', 'tries', 'size', 'head'],
  delayed: ['due', 'tries', 'error', 'size', 'head'],
  dead: ['died', 'tries', 'error', 'size', 'head'],
  done: ['finished', 'consumer', 'tries', 'size'],
}

const ALL: readonly Column<JobView>[] = [
  { id: 'age', header: copy.jobs.age, cell: ({ createdAt }) => <Age at={createdAt} /> },
  { id: 'due', header: copy.jobs.runAt, cell: ({ runAt }) => <Until at={runAt} /> },
  { id: 'lease', header: copy.jobs.lease, rank: 2, cell: ({ leaseUntil }) => <Until at={leaseUntil} /> },
  { id: 'died', header: copy.jobs.died, cell: ({ deadAt }) => <Age at={deadAt} /> },
  { id: 'finished', header: copy.jobs.finished, cell: ({ finishedAt }) => <Age at={finishedAt} /> },
  {
    id: 'consumer',
    header: copy.jobs.consumer,
    cell: ({ consumer }) => <span className="block max-w-48 truncate font-mono">{consumer ?? NONE}</span>,
  },
  {
    id: 'tries',
    header: copy.jobs.tries,
    end: true,
    rank: 3,
    tip: copy.jobs.triesTip,
    cell: ({ failures, maxAttempts }) => copy.jobs.triesOf(failures, maxAttempts),
  },
  { id: 'priority', header: copy.jobs.priority, end: true, rank: 3, cell: ({ priority }) => count(priority) },
  {
    id: 'error',
    header: copy.jobs.error,
    rank: 2,
    cell: ({ lastError }) => (
      <span className="block max-w-80 truncate" data-tip={lastError ?? undefined}>
        {lastError ?? <span className="text-text-3">{copy.jobs.noError}</span>}
      </span>
    ),
  },
  { id: 'size', header: copy.jobs.size, end: true, rank: 3, cell: (job) => bytes(job.bytes) },
  { id: 'head', header: copy.jobs.head, rank: 4, cell: (job) => <Head job={job} /> },
]

function columnsOf(state: JobState, href: (id: string) => string): readonly Column<JobView>[] {
  const name: Column<JobView> = {
    id: 'job',
    header: copy.jobs.id,
    rowHeader: true,
    cell: ({ id }) => (
      <Link href={href(id)} className="block max-w-56 truncate font-mono" data-tip={id}>
        {id}
      </Link>
    ),
  }
  return [name, ...COLUMNS[state].flatMap((id) => ALL.find((column) => column.id === id) ?? [])]
}

function Head({ job: { head, bytes: size } }: { readonly job: JobView }) {
  if (head === undefined) return NONE
  const text = head === null ? copy.jobs.noPayload : headText(head)
  if (head === null || text === undefined)
    return <span className="text-text-3">{text ?? copy.jobs.binary(bytes(size))}</span>
  return <code className="block max-w-80 truncate font-mono text-text-2">{text}</code>
}

/** The time until a moment. */
function Until({ at }: { readonly at: string | null }) {
  const now = useNow()
  if (at === null) return <span className="text-text-3">{NONE}</span>
  const left = Date.parse(at) - now
  return <span className="tabular-nums">{left <= 0 ? copy.jobs.due : duration(Math.ceil(left / 1_000) * 1_000)}</span>
}

function JobCard({ job, href }: { readonly job: JobView; readonly href: string }) {
  return (
    <div className="grid gap-1">
      <Link href={href} className="inline-flex min-h-11 items-center break-all font-mono">
        {job.id}
      </Link>
      {job.lastError !== null && <p className="break-words text-table">{job.lastError}</p>}
      <p className="text-small text-text-3">
        {copy.jobs.triesOf(job.failures, job.maxAttempts)} · {bytes(job.bytes)} ·{' '}
        <Age at={job.deadAt ?? job.finishedAt ?? job.createdAt} />
      </p>
    </div>
  )
}

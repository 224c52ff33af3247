/** Tables of the queue journal, the same on SQLite and PostgreSQL, and how a change becomes rows. */
import { TRACEPARENT_CHARS } from '@vacancy/shared'
import { FLAG, type Job, STATE } from './job.ts'
import type { StoredTopic } from './queue.ts'
import type { Change } from './state.ts'

/** Raised when the tables change; a journal of another version is refused. */
export const JOURNAL_VERSION = { sqlite: 3, pg: 1 } as const

/** Config of a deleted topic whose rows are still being removed, and its name, which no topic can have. */
export const GONE = ''
export function goneName(topicNumber: number): string {
  return `#${topicNumber}`
}

/** Why a journal cannot be used by this process. */
export function metaFault(
  meta: JournalTables['meta'],
  version: number,
  partition: number,
  partitions: number,
): string | undefined {
  if (meta.version !== version) return `it has version ${meta.version}, this program reads version ${version}`
  if (meta.partitions !== partitions)
    return `it has ${meta.partitions} partitions, the setting partitions is ${partitions}`
  if (meta.partition !== partition) return `it is partition ${meta.partition}, not ${partition}`
  return undefined
}

export type JournalTables = {
  /** One row. */
  meta: { id: number; version: number; partition: number; partitions: number; next_topic: number }
  topics: { topic_no: number; name: string; config: string; created_at: number }
  jobs: JobTable
  finished: { topic_no: number; id: string; finished_at: number }
}
/** Times are milliseconds since 1970. */
export type JobTable = {
  seq: number
  topic_no: number
  id: string
  flags: number
  /** 0 live, 1 dead. */
  state: number
  priority: number
  failures: number
  deliveries: number
  /** 0: the value of the topic. */
  max_attempts: number
  ack_deadline_ms: number
  created_at: number
  /** 0: at once. */
  run_at: number
  dead_at: number
  reason: string
  last_error: string
  /** JSON; '' without. */
  history: string
  /** Null for the payload null. */
  data: Uint8Array | null
}

/** Columns that `update` sets. */
export const UPDATED = [
  'state',
  'failures',
  'deliveries',
  'flags',
  'run_at',
  'dead_at',
  'reason',
  'last_error',
  'history',
] as const

/** The order in which a group is stored: each step sees the rows of those before, and ids are free before they return. */
export type Rows = {
  readonly topics: ({ readonly topic: Omit<StoredTopic, 'redrive'> } | { readonly gone: number })[]
  readonly updates: UpdateRow[]
  readonly done: number[]
  readonly finished: { readonly topicNumber: number; readonly id: string; readonly at: number }[]
  readonly forgotten: { readonly topicNumber: number; readonly ids: readonly string[] }[]
  readonly puts: Job[]
}
export type UpdateRow = { readonly seq: number; readonly newSeq: number } & Pick<JobTable, (typeof UPDATED)[number]>

export function rowsOf(changes: readonly Change[]): Rows {
  const rows: Rows = { topics: [], updates: [], done: [], finished: [], forgotten: [], puts: [] }
  for (const change of changes) {
    switch (change.kind) {
      case 'put':
        rows.puts.push(change.job)
        break
      case 'done':
        rows.done.push(change.seq)
        break
      case 'update':
        rows.updates.push(updateRow(change.seq, change.seq, change.job))
        break
      case 'redrive':
        rows.updates.push(redriveRow(change.seq, change.job))
        break
      case 'move':
        rows.done.push(change.from.seq)
        rows.puts.push(change.job)
        break
      case 'finished':
        rows.finished.push(change)
        break
      case 'forget':
        rows.forgotten.push(change)
        break
      case 'topic': {
        const { name, number, createdAt } = change.topic
        const config = { ...change.config, ...(change.redrive !== undefined && { redrive: change.redrive }) }
        rows.topics.push({ topic: { name, number, createdAt, config } })
        break
      }
      case 'topicGone':
        rows.topics.push({ gone: change.topicNumber })
        break
    }
  }
  return rows
}

function updateRow(seq: number, newSeq: number, { state, failures, deliveries, flags, runAt, past }: Job): UpdateRow {
  // A job that is being redriven is dead until that is stored.
  const isDead = state === STATE.dead || state === STATE.pending
  return {
    seq,
    newSeq,
    state: isDead ? 1 : 0,
    failures,
    deliveries,
    flags,
    run_at: state === STATE.delayed ? runAt : 0,
    dead_at: isDead ? (past?.deadAt ?? 0) : 0,
    reason: isDead ? (past?.reason ?? '') : '',
    last_error: past?.lastError ?? '',
    history: past === undefined ? '' : JSON.stringify(past.history),
  }
}

function redriveRow(seq: number, job: Job): UpdateRow {
  const row = updateRow(seq, job.seq, job)
  return { ...row, state: 0, failures: 0, deliveries: 0, run_at: 0, dead_at: 0, reason: '' }
}

// --- Payloads ---

/** What a job has in the journal besides numbers and texts: its trace, if it has one, and the decoded payload. */
export function writePayload({ data = '', trace = '', flags }: Job, target: Buffer, offset: number): number {
  const at = offset + ((flags & FLAG.traced) === 0 ? 0 : target.write(trace, offset, 'latin1'))
  const encoding = (flags & FLAG.json) === 0 ? 'base64' : (flags & FLAG.wide) === 0 ? 'latin1' : 'utf8'
  return at - offset + target.write(data, at, encoding)
}

/** Its bytes; -1 for the payload null without a trace. */
export function payloadBytes({ data, bytes, flags }: Job): number {
  const own = data === undefined ? -1 : bytes
  return (flags & FLAG.traced) === 0 ? own : TRACEPARENT_CHARS + Math.max(0, own)
}

/** @param bytes as payloadBytes gives them */
export function readPayload(source: Buffer, from: number, bytes: number, flags: number): StoredPayload {
  const isTraced = (flags & FLAG.traced) !== 0
  const start = isTraced ? from + TRACEPARENT_CHARS : from
  const end = from + Math.max(0, bytes)
  const trace = isTraced ? source.toString('latin1', from, start) : undefined
  if (end <= start) return { data: undefined, bytes: 0, trace }
  const encoding = (flags & FLAG.json) === 0 ? 'base64' : (flags & FLAG.wide) === 0 ? 'latin1' : 'utf8'
  return { data: source.toString(encoding, start, end), bytes: end - start, trace }
}
type StoredPayload = Pick<Job, 'data' | 'bytes' | 'trace'>

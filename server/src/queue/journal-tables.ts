/** Tables of the queue journal, the same on SQLite and PostgreSQL, and how a change becomes rows (Kysely). */
import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely'
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

type Dialect = 'sqlite' | 'pg'

/** Creates missing tables. In PostgreSQL all partitions share them; a SQLite file has one. */
export async function createTables(db: Kysely<JournalTables>, dialect: Dialect): Promise<void> {
  const isPg = dialect === 'pg'
  const big = isPg ? 'bigint' : 'integer'
  const small = isPg ? 'int4' : 'integer'
  const bytes = isPg ? 'bytea' : 'blob'
  // Names and ids are compared by their bytes.
  const exact = isPg ? 'text collate "C"' : 'text'
  const required = (column: ColumnDefinitionBuilder) => column.notNull()
  const strict = isPg ? sql`` : sql`strict`
  const key = async (table: string, columns: string[]) => {
    if (isPg) await db.schema.alterTable(table).addPrimaryKeyConstraint(`${table}_pkey`, columns).execute()
  }
  const unique = async (table: string, columns: string[]) => {
    if (isPg) await db.schema.alterTable(table).addUniqueConstraint(`${table}_key`, columns).execute()
  }
  await db.schema
    .createTable('meta')
    .ifNotExists()
    .addColumn('id', sql.raw(small), (column) => column.primaryKey())
    .addColumn('version', sql.raw(small), required)
    .addColumn('partition', sql.raw(small), required)
    .addColumn('partitions', sql.raw(small), required)
    .addColumn('next_topic', sql.raw(small), required)
    .modifyEnd(strict)
    .execute()
  await db.schema
    .createTable('topics')
    .ifNotExists()
    .addColumn('topic_no', sql.raw(small), (column) => (isPg ? column.notNull() : column.primaryKey()))
    .addColumn('name', sql.raw(exact), (column) => (isPg ? column.notNull() : column.notNull().unique()))
    .addColumn('config', 'text', required)
    .addColumn('created_at', sql.raw(big), required)
    .modifyEnd(strict)
    .$call((table) => (isPg ? table.addColumn('partition', 'int4', required) : table))
    .execute()
  await key('topics', ['partition', 'topic_no'])
  await unique('topics', ['partition', 'name'])
  await db.schema
    .createTable('jobs')
    .ifNotExists()
    // The row id: inserts append, deletes are by key.
    .addColumn('seq', sql.raw(big), (column) => (isPg ? column.notNull() : column.primaryKey()))
    .addColumn('topic_no', sql.raw(small), required)
    .addColumn('id', sql.raw(exact), required)
    .addColumn('flags', sql.raw(small), required)
    .addColumn('state', sql.raw(small), required)
    .addColumn('priority', sql.raw(small), required)
    .addColumn('failures', sql.raw(small), required)
    .addColumn('deliveries', sql.raw(small), required)
    .addColumn('max_attempts', sql.raw(small), required)
    .addColumn('ack_deadline_ms', sql.raw(small), required)
    .addColumn('created_at', sql.raw(big), required)
    .addColumn('run_at', sql.raw(big), required)
    .addColumn('dead_at', sql.raw(big), required)
    .addColumn('reason', 'text', required)
    .addColumn('last_error', 'text', required)
    .addColumn('history', 'text', required)
    .addColumn('data', sql.raw(bytes))
    .$call((table) => (isPg ? table : table.addUniqueConstraint('jobs_topic_no_id', ['topic_no', 'id'])))
    .modifyEnd(
      isPg
        ? sql`with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)`
        : strict,
    )
    .$call((table) => (isPg ? table.addColumn('partition', 'int4', required) : table))
    .execute()
  await key('jobs', ['partition', 'seq'])
  await unique('jobs', ['partition', 'topic_no', 'id'])
  await db.schema
    .createTable('finished')
    .ifNotExists()
    .addColumn('topic_no', sql.raw(small), required)
    .addColumn('id', sql.raw(exact), required)
    .addColumn('finished_at', sql.raw(big), required)
    .$call((table) => (isPg ? table : table.addPrimaryKeyConstraint('finished_key', ['topic_no', 'id'])))
    .modifyEnd(isPg ? sql`` : sql`without rowid, strict`)
    .$call((table) => (isPg ? table.addColumn('partition', 'int4', required) : table))
    .execute()
  await key('finished', ['partition', 'topic_no', 'id'])
}

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

/** Bytes of the payload of a job in the journal: the decoded payload. */
export function writePayload({ data = '', flags }: Job, target: Buffer, offset: number): number {
  if ((flags & FLAG.json) === 0) return target.write(data, offset, 'base64')
  return target.write(data, offset, (flags & FLAG.wide) === 0 ? 'latin1' : 'utf8')
}

export function readPayload(bytes: Uint8Array | null, flags: number): string | undefined {
  if (bytes === null) return undefined
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if ((flags & FLAG.json) === 0) return buffer.toString('base64')
  return buffer.toString((flags & FLAG.wide) === 0 ? 'latin1' : 'utf8')
}

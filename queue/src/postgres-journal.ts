/**
 * The journal in PostgreSQL: everything is written through the one session that holds the lock of the partition, so that
 * an owner that lost the lock can write nothing (docs/design/queue.md#postgresql).
 */
import { TRACEPARENT_CHARS, VacancyError } from '@vacancy/shared'
import type { Logger } from 'pino'
import { FLAG } from './job.ts'
import {
  type Journal,
  type JournalEvents,
  JournalFullError,
  type JournalSizes,
  type OpenJournal,
  type Stored,
} from './journal.ts'
import { GONE, type JournalTables, rowsOf } from './journal-tables.ts'
import { ask, askAll, closeSession, failSession, openSession, type Request, type Session } from './postgres-session.ts'
import { type PostgresTables, preparePostgresTables, refusePooler, tablesOf } from './postgres-setup.ts'
import { groupStatements, preparedStatements } from './postgres-statements.ts'
import type { StoredJob } from './queue.ts'
import { storedJob, storedTopic } from './stored-rows.ts'

export type PostgresOptions = {
  /** `postgres://…`. */
  readonly url: string
  readonly schema: string
  /** First number of its advisory locks; 0 or absent: follows from the schema. */
  readonly lockKey?: number
  readonly partition: number
  readonly partitions: number
  readonly isSynced: boolean
  /** Where clients reach this process. May change until it listens. */
  readonly address: () => string
  /** Differs between the processes that share the queue. */
  readonly processId: string
  /** Whether this process may take one more partition. */
  readonly mayOwn: () => boolean
  /** How many processes share the queue, this one included. */
  readonly onProcesses: (count: number) => void
  readonly log: Logger
}

/** How often a standby tries to get the lock. */
const STANDBY_POLL_MS = 200
/** How often the owner makes sure that its session works. */
const HEARTBEAT_MS = 2_000
/** Time for a page of rows. */
const LOAD_MS = 30_000
const LOAD_ROWS = 5_000
/** Larger payloads are loaded apart from their rows, some at a time. */
const LARGE_BYTES = 16 << 10
const LARGE_BATCH_BYTES = 8 << 20
/**
 * Every statement finds its rows by an index. Statistics of a table that fills and empties all the time are wrong or
 * absent, and then a page of rows would sort all that are left.
 */
const BY_INDEX = ['enable_seqscan = off', 'enable_bitmapscan = off', 'enable_sort = off']
const VACUUM_MS = 600_000
/** PostgreSQL ends a session whose transaction lasts longer: its owner may be frozen between two messages. */
const GROUP_MS = 10_000
/** Error codes of PostgreSQL. */
const DISK_FULL = '53100'

type Owner = {
  readonly options: PostgresOptions
  readonly tables: PostgresTables
  readonly session: Session
  /** Of the server process; another one means that the lock is not held any more. */
  readonly serverPid: number
  /** Deleted topics whose rows are still to be removed. */
  readonly gone: number[]
  isSweeping: boolean
  /** As the owner row has it. */
  address: string
}

/** Waits as a standby until this process owns the partition. */
export function postgresJournal(options: PostgresOptions): OpenJournal {
  return async (events) => {
    const tables = tablesOf(options.schema, options.partitions, options.lockKey)
    const name = `${tables.sessionPrefix} ${options.processId}`
    let session: Session | undefined
    try {
      session = await openSession(options.url, name, events.signal)
      const serverPid = await refusePooler(session, options.url, events.signal)
      await preparePostgresTables(session, tables, options)
      await waitForLock(session, serverPid, { tables, options, events })
      return await own(session, serverPid, { tables, options, events })
    } catch (cause) {
      if (session !== undefined) failSession(session, cause as Error)
      throw openError(options, cause as Error)
    }
  }
}

type Opening = { readonly tables: PostgresTables; readonly options: PostgresOptions; readonly events: JournalEvents }

function openError({ url, schema }: PostgresOptions, cause: Error): VacancyError {
  const place = `${schema} of the PostgreSQL database ${withoutPassword(url)}`
  return new VacancyError('failure', { reason: `the queue ${place} cannot be used: ${reasonOf(cause)}` }, { cause })
}

function withoutPassword(address: string): string {
  const url = URL.parse(address)
  return url === null ? 'of database_url' : `${url.host}${url.pathname}`
}

/** A refused connection to a name with several addresses is an AggregateError without a message of its own. */
function reasonOf(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(reasonOf).join('; ') : error.message
}

/** Polls for the lock; a session that waits inside PostgreSQL could not tell that its connection broke. */
async function waitForLock(session: Session, serverPid: number, { tables, options, events }: Opening): Promise<void> {
  // The first query only reads: the number of processes decides whether this one tries for the lock.
  let wants = false
  for (let owner: string | undefined; ; ) {
    events.signal.throwIfAborted()
    const { rows } = await ask<{ pid: number; locked: boolean; address: string | null; processes: number }>(session, {
      name: 'lock',
      text: `select pg_backend_pid() as pid, case when $3::bool then pg_try_advisory_lock($1::int4, $2::int4) else false end as locked,
        (select address from ${tables.owner} where partition = $2::int4) as address,
        ${tables.processes} as processes`,
      values: [tables.lockSpace, options.partition, wants],
    })
    const [row] = rows
    if (row?.pid !== serverPid) throw new Error('a pooler moved the session to another server process')
    if (row.locked) return
    options.onProcesses(row.processes)
    const didTry = wants
    wants = options.mayOwn()
    // It may own the queue now, and this round did not try to.
    if (wants && !didTry) continue
    const address = row.address ?? ''
    if (owner !== address) events.onStandby(address === '' ? undefined : address)
    owner = address
    await pause(STANDBY_POLL_MS, events.signal)
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
  })
}

async function own(session: Session, serverPid: number, { tables, options, events }: Opening): Promise<Journal> {
  const owner: Owner = { options, tables, session, serverPid, gone: [], isSweeping: false, address: '' }
  const settings = [`synchronous_commit = ${options.isSynced ? 'on' : 'off'}`, ...BY_INDEX]
  await ask(session, { text: settings.map((setting) => `set ${setting}`).join('; ') })
  const { rows } = await ask<{ fsync: string }>(session, { text: `select current_setting('fsync') as fsync` })
  if (rows[0]?.fsync !== 'on') options.log.warn({}, 'PostgreSQL runs without fsync: a power failure can lose jobs')
  await announce(owner)
  // Now rather than with the first jobs.
  for (const settled of await askAll(session, preparedStatements(tables, options.partition)))
    if (settled.status === 'rejected') throw settled.reason
  const heartbeat = setInterval(() => void beat(owner), HEARTBEAT_MS)
  session.onFailure = (why) => {
    clearInterval(heartbeat)
    events.onLost(why)
  }
  return {
    kind: 'pg',
    load: () => load(owner),
    write: async (changes) => {
      const rows = rowsOf(changes)
      await write(owner, groupStatements(tables, options.partition, rows))
      for (const each of rows.topics) if ('gone' in each) owner.gone.push(each.gone)
      sweepSoon(owner)
    },
    backup: async () => {
      throw new Error('a queue in PostgreSQL is backed up with pg_dump')
    },
    vacuum: () => vacuum(owner),
    sizes: () => sizes(owner),
    close: async () => {
      clearInterval(heartbeat)
      session.onFailure = () => undefined
      await closeSession(session)
    },
  }
}

/** Writes the address of this process where standbys read it. */
async function announce(owner: Owner): Promise<void> {
  const { session, tables, options } = owner
  const address = options.address()
  await ask(session, {
    text: `insert into ${tables.owner} (partition, address, since) values ($1, $2, (extract(epoch from now()) * 1000)::int8)
      on conflict (partition) do update set address = excluded.address, since = excluded.since`,
    values: [options.partition, address],
  })
  owner.address = address
}

/** A response to any other request proves the same. */
async function beat(owner: Owner): Promise<void> {
  const { session, tables, options, serverPid } = owner
  if (session.waiting.size > 0) return
  try {
    const { rows } = await ask<{ pid: number; processes: number }>(session, {
      name: 'heartbeat',
      text: `select pg_backend_pid() as pid, ${tables.processes} as processes`,
    })
    const [row] = rows
    if (row?.pid !== serverPid) throw new Error('a pooler moved the session to another server process')
    options.onProcesses(row.processes)
    if (owner.address !== options.address()) await announce(owner)
  } catch (error) {
    failSession(session, error as Error)
  }
}

// --- Writing ---

const BEGIN: Request = { text: 'begin' }
const COMMIT: Request = { text: 'commit' }

/** One transaction. Anything but success or a full disk ends the session: what it left is read again. */
async function write({ session }: Owner, statements: readonly Request[]): Promise<void> {
  if (statements.length === 0) return
  // A single statement is a transaction by itself.
  const isSingle = statements.length === 1
  const settled = await askAll(session, isSingle ? statements : [BEGIN, ...statements, COMMIT])
  const last = settled.at(-1)
  const failed = settled.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined
  if (failed === undefined && (isSingle || commandOf(last) === 'COMMIT')) return
  const error: Error = failed?.reason ?? new Error('PostgreSQL rolled a group back')
  const isRolledBack = isSingle || commandOf(last) === 'ROLLBACK'
  if (isRolledBack && (error as { code?: string }).code === DISK_FULL) throw new JournalFullError(error.message)
  failSession(session, error)
  throw error
}

function commandOf(settled: PromiseSettledResult<{ readonly command: string }> | undefined): string | undefined {
  return settled?.status === 'fulfilled' ? settled.value.command : undefined
}

/** Removes rows of deleted topics in slices, between groups. */
function sweepSoon(owner: Owner): void {
  if (owner.isSweeping || owner.gone.length === 0) return
  owner.isSweeping = true
  setImmediate(() => void sweep(owner))
}

async function sweep(owner: Owner): Promise<void> {
  const { session, tables, options, gone } = owner
  try {
    for (let topic = gone[0]; topic !== undefined && session.failure === undefined; [topic] = gone) {
      const values = [options.partition, topic]
      const { rowCount } = await ask(session, { text: tables.sweep, values })
      if (rowCount !== 0) continue
      await write(owner, [
        { text: `delete from ${tables.finished} where partition = $1 and topic_no = $2`, values },
        { text: `delete from ${tables.topics} where partition = $1 and topic_no = $2`, values },
      ])
      gone.shift()
    }
  } catch (error) {
    // Also of a full disk: nothing is known about what works any more.
    failSession(session, error as Error)
  } finally {
    owner.isSweeping = false
  }
}

/** On a session of its own, which changes no row: groups need not wait. */
async function vacuum({ options, tables }: Owner): Promise<void> {
  const limit = AbortSignal.timeout(VACUUM_MS)
  const session = await openSession(options.url, 'vacancy queue vacuum', limit)
  try {
    await ask(session, { text: 'set statement_timeout = 0' })
    for (const table of [tables.jobs, tables.finished, tables.topics])
      await ask(session, { text: `vacuum (analyze) ${table}` }, VACUUM_MS)
  } finally {
    await closeSession(session)
  }
}

async function sizes({ session, tables }: Owner): Promise<JournalSizes> {
  const { rows } = await ask<{ bytes: number }>(session, {
    name: 'sizes',
    text: `select pg_total_relation_size($1::regclass) + pg_total_relation_size($2::regclass) as bytes`,
    values: [tables.jobs, tables.finished],
  })
  return { bytes: rows[0]?.bytes ?? 0, freeBytes: 0 }
}

// --- Loading ---

async function* load(owner: Owner): AsyncGenerator<readonly Stored[]> {
  const { session, tables, options } = owner
  const values = [options.partition]
  const meta = await ask<{ next_topic: number }>(session, {
    text: `select next_topic from ${tables.meta} where id = $1 + 1`,
    values,
  })
  yield [{ kind: 'nextTopic', number: meta.rows[0]?.next_topic ?? 1 }]
  const { rows } = await ask<JournalTables['topics']>(
    session,
    { text: `select topic_no, name, config, created_at from ${tables.topics} where partition = $1 order by 1`, values },
    LOAD_MS,
  )
  for (const row of rows) if (row.config === GONE) owner.gone.push(row.topic_no)
  yield rows.filter(({ config }) => config !== GONE).map((row): Stored => ({ kind: 'topic', topic: storedTopic(row) }))
  yield* loadFinished(owner)
  yield* loadJobs(owner)
  // From now on all transactions are short. Older versions have no such setting.
  await ask(session, {
    text: `select set_config(name, '${GROUP_MS}', false) from pg_settings where name = 'transaction_timeout'`,
  })
  sweepSoon(owner)
}

/** In order of time, for which there is no index: one sort, read in pages. */
async function* loadFinished({ session, tables, options }: Owner): AsyncGenerator<readonly Stored[]> {
  const read = async (request: Request) => await ask<JournalTables['finished']>(session, request, LOAD_MS)
  await read(BEGIN)
  await read({
    text: `declare finished_rows no scroll cursor for select topic_no, id, finished_at from ${tables.finished}
      where partition = ${options.partition} order by finished_at`,
  })
  for (let count = LOAD_ROWS; count === LOAD_ROWS; ) {
    const { rows } = await read({ text: `fetch forward ${LOAD_ROWS} from finished_rows` })
    count = rows.length
    yield rows.map((row): Stored => ({ kind: 'finished', topicNumber: row.topic_no, id: row.id, at: row.finished_at }))
  }
  await read(COMMIT)
}

const IS_TRACED = `flags & ${FLAG.traced} <> 0`
/** The decoded payload without a trace in front of it; null for none. */
const OWN = `case when ${IS_TRACED} then nullif(substring(data from ${TRACEPARENT_CHARS + 1}), '') else data end`
/** The payload as the engine keeps it: JSON text, or base64 on one line. */
const PAYLOAD = `case when flags & 1 = 1 then convert_from(${OWN}, 'UTF8') else replace(encode(${OWN}, 'base64'), E'\\n', '') end`

type JobRow = Omit<JournalTables['jobs'], 'data'> & {
  readonly trace: string | null
  readonly bytes: number | null
  readonly payload: string | null
}

async function* loadJobs(owner: Owner): AsyncGenerator<readonly Stored[]> {
  const { session, tables, options } = owner
  const page = (after: number) =>
    ask<JobRow>(
      session,
      {
        name: 'page',
        text: `select seq, topic_no, id, flags, state, priority, failures, deliveries, max_attempts, ack_deadline_ms,
            created_at, run_at, dead_at, reason, last_error, history, octet_length(${OWN}) as bytes,
            case when ${IS_TRACED} then convert_from(substring(data for ${TRACEPARENT_CHARS}), 'UTF8') end as trace,
            case when octet_length(${OWN}) <= ${LARGE_BYTES} then ${PAYLOAD} end as payload
          from ${tables.jobs} where partition = $1 and seq > $2::int8 order by seq limit ${LOAD_ROWS}`,
        values: [options.partition, after],
      },
      LOAD_MS,
    )
  let next: ReturnType<typeof page> | undefined = page(0)
  while (next !== undefined) {
    const { rows }: Awaited<ReturnType<typeof page>> = await next
    const last = rows.at(-1)
    // PostgreSQL reads the next rows while these are decoded.
    next = rows.length < LOAD_ROWS || last === undefined ? undefined : page(last.seq)
    // A failure shows when it is awaited; a load that was given up awaits nothing.
    next?.catch(() => undefined)
    yield [{ kind: 'jobs', jobs: await decode(owner, rows) }]
  }
}

async function decode(owner: Owner, rows: readonly JobRow[]): Promise<StoredJob[]> {
  const large = await loadLarge(owner, rows)
  return rows.map((row) =>
    storedJob(row, {
      data: row.payload ?? large.get(row.seq),
      bytes: row.bytes ?? 0,
      trace: row.trace ?? undefined,
    }),
  )
}

async function loadLarge({ session, tables, options }: Owner, rows: readonly JobRow[]): Promise<Map<number, string>> {
  const payloads = new Map<number, string>()
  let batch: number[] = []
  let batchBytes = 0
  const read = async () => {
    const found = await ask<{ seq: number; payload: string }>(
      session,
      {
        text: `select seq, ${PAYLOAD} as payload from ${tables.jobs} where partition = $1 and seq = any($2::int8[])`,
        values: [options.partition, batch],
      },
      LOAD_MS,
    )
    for (const { seq, payload } of found.rows) payloads.set(seq, payload)
    batch = []
    batchBytes = 0
  }
  for (const { seq, bytes } of rows) {
    if (bytes === null || bytes <= LARGE_BYTES) continue
    batch.push(seq)
    batchBytes += bytes
    if (batchBytes >= LARGE_BATCH_BYTES) await read()
  }
  if (batch.length > 0) await read()
  return payloads
}

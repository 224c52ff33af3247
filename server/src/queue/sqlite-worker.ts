/**
 * Thread entry: the only connection to the SQLite file of a queue. A commit waits for the disk (synchronous = FULL); on
 * a thread of its own it does not block the event loop. One request at a time, in order of arrival.
 */
import { closeSync, existsSync, fsyncSync, openSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import {
  type DatabaseConnection,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import {
  createTables,
  GONE,
  goneName,
  JOURNAL_VERSION,
  type JournalTables,
  metaFault,
  UPDATED,
} from './journal-tables.ts'
import {
  type JournalReply,
  type JournalRequest,
  type JournalRows,
  PUT_NUMBERS,
  READ_NUMBERS,
  type ThreadOptions,
  type WriteRequest,
} from './sqlite-messages.ts'

/** Result codes of SQLite. */
const SQLITE_FULL = 13
const SQLITE_BUSY = 5
/** Kept free for deletions on a full disk. */
const RESERVE_BYTES = 16 << 20
/** The reserve is made again when so much more than it is free. */
const RESERVE_AGAIN_BYTES = 4 * RESERVE_BYTES
/** Rows of deleted topics that one transaction removes. */
const SWEEP_ROWS = 2_000
/**
 * Of a new file; another one keeps its own. Jobs are written and deleted many at a time: large pages mean fewer of them,
 * and fewer calls of the system.
 */
const PAGE_BYTES = 16_384
/** Size of the log at which its pages are moved to the file. */
const CHECKPOINT_BYTES = 16 << 20
/** A file is compacted at the start when it is at least this large and more than half of it is free. */
const VACUUM_BYTES = 1 << 30

/** Columns of a row that is read: its numbers, with the length of the payload as the last one; then texts and the payload. */
const READ = [
  ...(['seq', 'topic_no', 'flags', 'state', 'priority', 'failures', 'deliveries', 'max_attempts'] as const),
  ...([
    'ack_deadline_ms',
    'created_at',
    'run_at',
    'dead_at',
    sql<number>`coalesce(length(data), -1)`.as('length'),
  ] as const),
  ...(['id', 'reason', 'last_error', 'history', 'data'] as const),
]
const READ_LENGTH = READ_NUMBERS - 1
const READ_STATE = READ.indexOf('state')
/** Behind the numbers. */
const READ_ID = READ_NUMBERS

const options = workerData as ThreadOptions
const reserveFile = `${options.file}.reserve`
let hasReserve = false

const database = openFile()
const db = kysely()
await createTables(db, 'sqlite')
await checkMeta()
/** Deleted topics whose rows are still to be removed. */
const goneTopics = (await db.selectFrom('topics').select('topic_no').where('config', '=', GONE).execute()).map(
  ({ topic_no }) => topic_no,
)
const statements = prepareStatements()
syncLog()
compact()
keepReserve()
sweepSoon()

parentPort?.on('message', ({ id, request }: { id: number; request: JournalRequest }) => {
  try {
    const value = run(request)
    const transfer = request.kind === 'rows' ? transferables(value as JournalRows) : []
    parentPort?.postMessage({ id, value } satisfies JournalReply, transfer)
  } catch (error) {
    // Reported to the caller; the thread continues with the next request.
    const { message, errcode } = error as { message: string; errcode?: number }
    parentPort?.postMessage({ id, error: { message, isFull: errcode === SQLITE_FULL } } satisfies JournalReply)
  }
  if (request.kind === 'close') parentPort?.close()
})

function openFile(): DatabaseSync {
  // Only the owner may read payloads. SQLite gives its other files the same mode.
  closeSync(openSync(options.file, 'a', 0o600))
  const opened = new DatabaseSync(options.file)
  try {
    opened.exec(
      `PRAGMA page_size = ${PAGE_BYTES}; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.isSynced ? 'FULL' : 'OFF'}; PRAGMA cache_size = -16000`,
    )
    // Takes the lock before anything is read.
    opened.exec('BEGIN IMMEDIATE; COMMIT')
    const page = Number(Object.values(opened.prepare('PRAGMA page_size').get() ?? {})[0])
    opened.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_BYTES / page}`)
    const faults = opened
      .prepare('PRAGMA quick_check(3)')
      .all()
      .map((row) => String(Object.values(row)[0]))
    if (faults.join() !== 'ok') throw new Error(`damaged: ${faults.join('; ').replaceAll('\n', '; ')}`)
    return opened
  } catch (error) {
    opened.close()
    const { errcode } = error as { errcode?: number }
    throw errcode === SQLITE_BUSY ? new Error('database is locked') : error
  }
}

/** Kysely builds the statements; they run here without it. */
function kysely(): Kysely<JournalTables> {
  const connection: DatabaseConnection = {
    executeQuery: async <R>(query: { readonly sql: string; readonly parameters: readonly unknown[] }) => {
      const { parameters } = query
      const statement = database.prepare(query.sql)
      const values = parameters as SQLInputValue[]
      if (statement.columns().length > 0) return { rows: statement.all(...values) as R[] } satisfies QueryResult<R>
      statement.run(...values)
      return { rows: [] }
    },
    async *streamQuery() {
      yield* []
      throw new Error('the journal does not stream')
    },
  }
  const run = async (text: string) => void database.exec(text)
  return new Kysely<JournalTables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => ({
        init: async () => undefined,
        acquireConnection: async () => connection,
        beginTransaction: () => run('begin immediate'),
        commitTransaction: () => run('commit'),
        rollbackTransaction: () => run('rollback'),
        releaseConnection: async () => undefined,
        destroy: async () => undefined,
      }),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  })
}

/** @throws when the file is of another version, partition or number of partitions */
async function checkMeta(): Promise<void> {
  const { partition, partitions } = options
  const row = { id: 1, version: JOURNAL_VERSION, partition, partitions, next_topic: 1 }
  await db
    .insertInto('meta')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const meta = await db.selectFrom('meta').selectAll().executeTakeFirstOrThrow()
  const fault = metaFault(meta, partition, partitions)
  if (fault !== undefined) throw new Error(fault)
}

function prepareStatements() {
  const prepare = (query: { compile(): { sql: string } }): StatementSync => database.prepare(query.compile().sql)
  const given = { seq: 0, topic_no: 0, id: '', flags: 0, priority: 0, max_attempts: 0, ack_deadline_ms: 0 }
  const times = { created_at: 0, run_at: 0 }
  const [none, empty] = [sql.lit(0), sql.lit('')]
  const unused = { state: none, failures: none, deliveries: none, dead_at: none, reason: empty, last_error: empty }
  const updated = Object.fromEntries(UPDATED.map((column) => [column, 0]))
  return {
    put: prepare(
      db.insertInto('jobs').values({ ...given, ...times, data: new Uint8Array(), ...unused, history: empty }),
    ),
    done: prepare(db.deleteFrom('jobs').where((job) => job.between('seq', 0, 0))),
    update: prepare(
      db
        .updateTable('jobs')
        .set({ seq: 0, ...updated })
        .where('seq', '=', 0),
    ),
    topic: prepare(
      db
        .insertInto('topics')
        .values({ topic_no: 0, name: '', config: '', created_at: 0 })
        .onConflict((conflict) =>
          conflict.column('topic_no').doUpdateSet({ config: (row) => row.ref('excluded.config') }),
        ),
    ),
    topicGone: prepare(db.updateTable('topics').set({ name: '', config: GONE }).where('topic_no', '=', 0)),
    topicSwept: prepare(db.deleteFrom('topics').where('topic_no', '=', 0)),
    nextTopic: prepare(db.updateTable('meta').set({ next_topic: 0 }).where('next_topic', '<', 0)),
    finished: prepare(
      db
        .insertInto('finished')
        .values({ topic_no: 0, id: '', finished_at: 0 })
        .onConflict((conflict) =>
          conflict.columns(['topic_no', 'id']).doUpdateSet({ finished_at: (row) => row.ref('excluded.finished_at') }),
        ),
    ),
    forget: prepare(db.deleteFrom('finished').where('topic_no', '=', 0).where('id', '=', '')),
    forgetTopic: prepare(db.deleteFrom('finished').where('topic_no', '=', 0)),
    sweep: prepare(
      db
        .deleteFrom('jobs')
        .where('seq', 'in', db.selectFrom('jobs').select('seq').where('topic_no', '=', 0).limit(SWEEP_ROWS)),
    ),
    rows: asArrays(prepare(db.selectFrom('jobs').select(READ).where('seq', '>', 0).orderBy('seq').limit(1))),
  }
}

/** Rows as arrays take a third less time than as objects. */
function asArrays(statement: StatementSync): StatementSync {
  statement.setReturnArrays(true)
  return statement
}

function run(request: JournalRequest): unknown {
  switch (request.kind) {
    case 'write':
      return write(request)
    case 'topics':
      return readTopics()
    case 'rows':
      return readRows(request.after, request.limit)
    case 'backup':
      // Only the owner may read payloads.
      closeSync(openSync(request.path, 'wx', 0o600))
      return void database.prepare('VACUUM INTO ?').run(request.path)
    case 'vacuum':
      return database.exec('VACUUM')
    case 'sizes':
      return sizes()
    case 'close':
      return close()
  }
}

function inTransaction(work: () => void): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    work()
    database.exec('COMMIT')
  } catch (error) {
    // SQLite rolls some failures back by itself.
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function write(request: WriteRequest): void {
  try {
    inTransaction(() => writeRows(request))
  } catch (error) {
    // What frees space is tried again, with this room.
    if ((error as { errcode?: number }).errcode === SQLITE_FULL) releaseReserve()
    throw error
  }
  if (!hasReserve) keepReserve()
  sweepSoon()
}

function writeRows({ topics, updates, finished, forgotten, ...rows }: WriteRequest): void {
  for (const each of topics) {
    if ('gone' in each) {
      statements.topicGone.run(goneName(each.gone), GONE, each.gone)
      goneTopics.push(each.gone)
    } else {
      const { number, name, config, createdAt } = each.topic
      statements.topic.run(number, name, JSON.stringify(config), createdAt)
      statements.nextTopic.run(number + 1, number + 1)
    }
  }
  for (const row of updates) statements.update.run(row.newSeq, ...UPDATED.map((column) => row[column]), row.seq)
  const area = rows.area ?? options.area
  const numbers = new Float64Array(area, 0, rows.puts * PUT_NUMBERS)
  const done = new Float64Array(area, numbers.byteLength, rows.done)
  deleteJobs(done)
  for (const { topicNumber, id, at } of finished) statements.finished.run(topicNumber, id, at)
  for (const { topicNumber, ids: forgottenIds } of forgotten)
    for (const id of forgottenIds) statements.forget.run(topicNumber, id)
  insertJobs(numbers, rows.ids.split('\n'), new Uint8Array(area, done.byteOffset + done.byteLength))
}

/** @param done ascending: those that follow each other without a gap are deleted by one statement */
function deleteJobs(done: Float64Array): void {
  for (let n = 0; n < done.length; n++) {
    const first = done[n] as number
    let last = first
    while (done[n + 1] === last + 1) {
      last++
      n++
    }
    statements.done.run(first, last)
  }
}

function insertJobs(numbers: Float64Array, ids: readonly string[], payload: Uint8Array): void {
  const { put } = statements
  let at = 0
  for (let offset = 0; offset < numbers.length; offset += PUT_NUMBERS) {
    const number = (index: number) => numbers[offset + index] as number
    const length = number(8)
    const data = length < 0 ? null : payload.subarray(at, at + length)
    at += Math.max(0, length)
    put.run(
      number(0),
      number(1),
      ids[offset / PUT_NUMBERS] as string,
      number(2),
      number(3),
      number(4),
      number(5),
      number(6),
      number(7),
      data,
    )
  }
}

function readTopics() {
  const topics = database.prepare('SELECT * FROM topics WHERE config <> ? ORDER BY topic_no').all(GONE)
  const finished = database.prepare('SELECT * FROM finished ORDER BY finished_at').all()
  const nextTopic = database.prepare('SELECT next_topic FROM meta').get()
  return { topics, finished, nextTopic: nextTopic?.['next_topic'] }
}

function readRows(after: number, limit: number): JournalRows {
  const rows = statements.rows.all(after, limit) as unknown as readonly ReadRow[]
  const numbers = new Float64Array(rows.length * READ_NUMBERS)
  const ids: string[] = []
  const pasts: [number, string, string, string][] = []
  let bytes = 0
  for (const row of rows) bytes += Math.max(0, row[READ_LENGTH] as number)
  const payload = new Uint8Array(bytes)
  let at = 0
  for (let n = 0; n < rows.length; n++) {
    const row = rows[n] as ReadRow
    for (let column = 0; column < READ_NUMBERS; column++) numbers[n * READ_NUMBERS + column] = row[column] as number
    ids.push(row[READ_ID] as string)
    const data = row[READ_ID + 4] as Uint8Array | null
    if (data !== null) payload.set(data, at)
    at += data?.byteLength ?? 0
    const [reason, lastError, history] = [row[READ_ID + 1], row[READ_ID + 2], row[READ_ID + 3]] as string[]
    if (history !== '' || row[READ_STATE] === 1)
      pasts.push([n, reason as string, lastError as string, history as string])
  }
  return { numbers, ids, pasts, payload }
}

type ReadRow = readonly (number | string | Uint8Array | null)[]

function transferables({ numbers, payload }: JournalRows): ArrayBuffer[] {
  return [numbers.buffer as ArrayBuffer, payload.buffer as ArrayBuffer]
}

function pragma(name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])
}

function sizes() {
  const page = pragma('page_size')
  return { bytes: pragma('page_count') * page, freeBytes: pragma('freelist_count') * page }
}

/**
 * A process that was killed may have left groups in the log that were written and not synced. They are loaded and
 * confirmed like others, so they are made durable first.
 */
function syncLog(): void {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if ((error as { errcode?: number }).errcode !== SQLITE_FULL) throw error
    // No room to move them into the file: they stay in the log.
    const log = openSync(`${options.file}-wal`, 'r')
    fsyncSync(log)
    closeSync(log)
  }
}

/** Free pages are used again; a file that is mostly free is made smaller at the start. */
function compact(): void {
  const { bytes, freeBytes } = sizes()
  if (bytes >= VACUUM_BYTES && freeBytes > bytes / 2) database.exec('VACUUM')
}

/** Removes rows of deleted topics in slices, when nothing else is to be done. */
function sweepSoon(): void {
  if (goneTopics.length > 0) setImmediate(sweep)
}

function sweep(): void {
  const [topic] = goneTopics
  if (topic === undefined) return
  try {
    let removed: number | bigint = 0
    inTransaction(() => {
      removed = statements.sweep.run(topic, SWEEP_ROWS).changes
      if (removed === 0) {
        statements.forgetTopic.run(topic)
        statements.topicSwept.run(topic)
      }
    })
    if (removed === 0) goneTopics.shift()
  } catch (error) {
    // Left for the next start; the rows belong to no topic.
    goneTopics.length = 0
    parentPort?.postMessage({
      id: 0,
      error: { message: (error as Error).message, isFull: false },
    } satisfies JournalReply)
  }
  sweepSoon()
}

/** Space that only deletions may use once the disk is full. */
function keepReserve(): void {
  const { bavail, bsize } = statfsSync(dirname(options.file))
  if (existsSync(reserveFile)) hasReserve = true
  if (hasReserve || bavail * bsize < RESERVE_AGAIN_BYTES) return
  const file = openSync(reserveFile, 'w', 0o600)
  try {
    const block = new Uint8Array(1 << 20)
    for (let written = 0; written < RESERVE_BYTES; written += block.length) writeSync(file, block)
    hasReserve = true
  } finally {
    closeSync(file)
  }
}

function releaseReserve(): void {
  if (existsSync(reserveFile)) unlinkSync(reserveFile)
  hasReserve = false
}

function close(): void {
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

/**
 * Thread entry: the only connection to the SQLite file of a queue. A group waits for the disk; on a thread of its
 * own this does not block the event loop. One request at a time, in order of arrival.
 */
import { closeSync, existsSync, fdatasyncSync, fsyncSync, openSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import {
  type ColumnDefinitionBuilder,
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
import {
  addPack,
  applyChanges,
  firstAfter,
  forgetPack,
  isMarked,
  type Pack,
  type PackChanges,
  type PackedJob,
  type Packs,
  readPack,
  type StoredPack,
  takeFromPack,
} from './sqlite-packs.ts'

/** Result codes of SQLite. */
const SQLITE_FULL = 13
const SQLITE_BUSY = 5
/** Kept free for deletions on a full disk. */
const RESERVE_BYTES = 16 << 20
/** The reserve is made again when so much more than it is free. */
const RESERVE_AGAIN_BYTES = 4 * RESERVE_BYTES
/** Rows and packs of deleted topics that one transaction removes. */
const SWEEP_ROWS = 2_000
const SWEEP_PACKS = 32
/** Packs that one transaction unpacks. */
const UNPACKED = 32
/**
 * Of a new file; another one keeps its own. Jobs are written and deleted many at a time: large pages mean fewer of them,
 * and fewer calls of the system.
 */
const PAGE_BYTES = 16_384
/** Size of the log at which its pages are moved to the file. */
const CHECKPOINT_BYTES = 16 << 20
/** A file is compacted at the start when it is at least this large and more than half of it is free. */
const VACUUM_BYTES = 1 << 30

/** The version before had no packs, and the same tables otherwise. */
const VERSION_WITHOUT_PACKS = 1

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

type Tables = JournalTables & {
  /** Neighbouring jobs in one row; key: the number of the first one. Topic 0: they have several. */
  packs: { seq: number; topic_no: number; count: number; created_at: number; data: Uint8Array }
  /** Which jobs of a pack are no longer in it, a bit each; absent while all are. */
  pack_marks: { seq: number; marks: Uint8Array }
}

const database = openFile()
const db = kysely()
await createTables(db as unknown as Kysely<JournalTables>, 'sqlite')
await checkMeta()
await createPacks()
/** Deleted topics whose rows are still to be removed. */
const goneTopics = (await db.selectFrom('topics').select('topic_no').where('config', '=', GONE).execute()).map(
  ({ topic_no }) => topic_no,
)
/** Number of the last pack that was searched for jobs of the first of them. */
let sweptTo = 0
const statements = prepareStatements()
const packs = findPacks()
/** Packs of which at most half is left, oldest first. */
const sparse = new Set(packs.list.filter(({ sparseSince }) => sparseSince > 0))
let unpacking: NodeJS.Timeout | undefined
let sweeping: NodeJS.Immediate | undefined
syncLog()
/** The log stays the same file until the database is closed. */
const log = openSync(`${options.file}-wal`, 'r+')
compact()
keepReserve()
sweepSoon()
unpackLater()

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
      `PRAGMA page_size = ${PAGE_BYTES}; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.isSynced ? 'NORMAL' : 'OFF'}; PRAGMA cache_size = -16000`,
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
function kysely(): Kysely<Tables> {
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
  return new Kysely<Tables>({
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
  const version = JOURNAL_VERSION.sqlite
  const row = { id: 1, version, partition, partitions, next_topic: 1 }
  await db
    .insertInto('meta')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const meta = await db.selectFrom('meta').selectAll().executeTakeFirstOrThrow()
  // From now on only this version reads the file.
  const isOld = meta.version === VERSION_WITHOUT_PACKS
  const fault = metaFault(isOld ? { ...meta, version } : meta, version, partition, partitions)
  if (fault !== undefined) throw new Error(fault)
  if (isOld) await db.updateTable('meta').set({ version }).execute()
}

async function createPacks(): Promise<void> {
  const required = (column: ColumnDefinitionBuilder) => column.notNull()
  const strict = sql`strict`
  await db.schema
    .createTable('packs')
    .ifNotExists()
    .addColumn('seq', 'integer', (column) => column.primaryKey())
    .addColumn('topic_no', 'integer', required)
    .addColumn('count', 'integer', required)
    .addColumn('created_at', 'integer', required)
    .addColumn('data', 'blob', required)
    .modifyEnd(strict)
    .execute()
  await db.schema
    .createTable('pack_marks')
    .ifNotExists()
    .addColumn('seq', 'integer', (column) => column.primaryKey())
    .addColumn('marks', 'blob', required)
    .modifyEnd(strict)
    .execute()
}

/** Without their jobs, which are read when the queue is loaded. */
function findPacks(): Packs {
  const found: Packs = { list: [], gone: 0 }
  const marks = new Map<number, Uint8Array>()
  for (const row of database.prepare('SELECT seq, marks FROM pack_marks').all())
    marks.set(row['seq'] as number, row['marks'] as Uint8Array)
  for (const row of database.prepare('SELECT seq, topic_no, count FROM packs ORDER BY seq').all()) {
    const { seq, topic_no, count } = row as { seq: number; topic_no: number; count: number }
    addPack(found, { seq, topicNumber: topic_no, count }, performance.now(), marks.get(seq))
  }
  return found
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
    rows: asArrays(
      prepare(db.selectFrom('jobs').select(READ).where('seq', '>', 0).where('seq', '<=', 0).orderBy('seq').limit(1)),
    ),
    pack: prepare(
      db.insertInto('packs').values({ seq: 0, topic_no: 0, count: 0, created_at: 0, data: new Uint8Array() }),
    ),
    packGone: prepare(db.deleteFrom('packs').where('seq', '=', 0)),
    marks: prepare(
      db
        .insertInto('pack_marks')
        .values({ seq: 0, marks: new Uint8Array() })
        .onConflict((conflict) => conflict.column('seq').doUpdateSet({ marks: (row) => row.ref('excluded.marks') })),
    ),
    marksGone: prepare(db.deleteFrom('pack_marks').where('seq', '=', 0)),
    readPack: prepare(db.selectFrom('packs').select(['created_at', 'data']).where('seq', '=', 0)),
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
  const changes: PackChanges = new Map()
  try {
    inTransaction(() => writeRows(request, changes))
  } catch (error) {
    // What frees space is tried again, with this room.
    if ((error as { errcode?: number }).errcode === SQLITE_FULL) releaseReserve()
    throw error
  }
  if (options.isSynced) syncGroup()
  for (const pack of request.packs) addPack(packs, pack, performance.now())
  for (const pack of applyChanges(packs, changes, performance.now())) sparse.add(pack)
  if (!hasReserve) keepReserve()
  sweepSoon()
  unpackLater()
}

/**
 * The sync of a group. SQLite's own (synchronous = FULL) calls fsync here, which also writes the times of the file: one
 * more write of the file system's journal for each group.
 */
function syncGroup(): void {
  fdatasyncSync(log)
}

function writeRows({ topics, updates, finished, forgotten, ...rows }: WriteRequest, changes: PackChanges): void {
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
  moveToRows(updates, changes)
  for (const row of updates) statements.update.run(row.newSeq, ...UPDATED.map((column) => row[column]), row.seq)
  const area = rows.area ?? options.area
  const numbers = new Float64Array(area, 0, rows.puts * PUT_NUMBERS)
  const done = new Float64Array(area, numbers.byteLength, rows.done)
  deleteJobs(done, changes)
  storeMarks(changes)
  for (const { topicNumber, id, at } of finished) statements.finished.run(topicNumber, id, at)
  for (const { topicNumber, ids: forgottenIds } of forgotten)
    for (const id of forgottenIds) statements.forget.run(topicNumber, id)
  insertJobs(numbers, rows.ids.split('\n'), new Uint8Array(area, done.byteOffset + done.byteLength))
  for (const { seq, topicNumber, count, createdAt, from, to } of rows.packs)
    statements.pack.run(seq, topicNumber, count, createdAt, new Uint8Array(area, from, to - from))
}

/** @param done ascending: rows that follow each other without a gap are deleted by one statement */
function deleteJobs(done: Float64Array, changes: PackChanges): void {
  let first = 0
  let last = 0
  let pack: Pack | undefined
  for (const seq of done) {
    const found = takeFromPack(packs, changes, seq, pack)
    if (found !== undefined) pack = found
    else if (first !== 0 && seq === last + 1) last = seq
    else {
      if (first !== 0) statements.done.run(first, last)
      first = seq
      last = seq
    }
  }
  if (first !== 0) statements.done.run(first, last)
}

/** A pack without jobs is deleted. */
function storeMarks(changes: PackChanges): void {
  for (const [{ seq, marks: before }, { marks, left }] of changes) {
    if (left > 0) statements.marks.run(seq, marks)
    else {
      statements.packGone.run(seq)
      if (before !== undefined) statements.marksGone.run(seq)
    }
  }
}

/** Jobs that came back or failed have more to keep than a pack has room for. */
function moveToRows(updates: WriteRequest['updates'], changes: PackChanges): void {
  const wanted = new Map<Pack, Set<number>>()
  for (const { seq } of updates) {
    const pack = takeFromPack(packs, changes, seq)
    if (pack === undefined) continue
    const indexes = wanted.get(pack)
    if (indexes === undefined) wanted.set(pack, new Set([seq - pack.seq]))
    else indexes.add(seq - pack.seq)
  }
  for (const [pack, indexes] of wanted)
    readPack(contentOf(pack), (job) => {
      if (indexes.has(job.index)) insertPacked(pack, job)
    })
}

function contentOf({ seq, count }: Pack): StoredPack {
  const row = statements.readPack.get(seq) as { created_at: number; data: Uint8Array } | undefined
  if (row === undefined) throw new Error(`the pack of number ${seq} is missing`)
  return { seq, count, createdAt: row.created_at, data: row.data }
}

function insertPacked({ seq }: Pack, job: PackedJob): void {
  const { index, topicNumber, id, flags, priority, maxAttempts, ackDeadlineMs, createdAt, data } = job
  statements.put.run(seq + index, topicNumber, id, flags, priority, maxAttempts, ackDeadlineMs, createdAt, 0, data)
}

function unpackLater(delayMs = options.sparseMs): void {
  if (sparse.size > 0 && unpacking === undefined) unpacking = setTimeout(unpackSparse, delayMs).unref()
}

/** What is left of a pack that few jobs keep becomes rows, so that a file has at most about twice what is in it. */
function unpackSparse(): void {
  unpacking = undefined
  const due: Pack[] = []
  for (const pack of sparse) {
    if (pack.left > 0 && performance.now() - pack.sparseSince < options.sparseMs) break
    if (pack.left === 0) sparse.delete(pack)
    else if (due.push(pack) === UNPACKED) break
  }
  try {
    if (due.length > 0) inTransaction(() => due.forEach(unpack))
  } catch (error) {
    // Tried again later. Any other error ends the thread, and so the journal.
    if ((error as { errcode?: number }).errcode !== SQLITE_FULL) throw error
    return unpackLater()
  }
  for (const pack of due) {
    sparse.delete(pack)
    forgetPack(packs, pack)
  }
  unpackLater(due.length === UNPACKED ? 0 : options.sparseMs)
}

function unpack(pack: Pack): void {
  readPack(contentOf(pack), (job) => {
    if (!isMarked(pack.marks, job.index)) insertPacked(pack, job)
  })
  statements.packGone.run(pack.seq)
  statements.marksGone.run(pack.seq)
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

/** About `limit` rows and jobs of packs, and never a part of a pack. */
function readRows(after: number, limit: number): JournalRows {
  const read = (from: number, to: number, max: number) =>
    statements.rows.all(from, to, max) as unknown as readonly ReadRow[]
  const found = packsAfter(after, limit)
  let rows = read(after, found.next ?? Number.MAX_SAFE_INTEGER, limit)
  let { next } = found
  if (rows.length === limit) {
    const last = rows.at(-1)?.[0] as number
    while ((found.packs.at(-1)?.seq ?? 0) > last) found.packs.pop()
    const pack = found.packs.at(-1)
    next = Math.max(last, pack === undefined ? 0 : pack.seq + pack.count - 1)
    rows = [...rows, ...read(last, next, limit)]
  }
  return { ...encodeRows(rows), packs: found.packs.map((pack) => ({ ...contentOf(pack), marks: pack.marks })), next }
}

/** @returns as `next` the last number of these, unless there are no more */
function packsAfter(after: number, jobsMax: number): { packs: Pack[]; next: number | undefined } {
  const found: Pack[] = []
  let jobs = 0
  for (let n = firstAfter(packs, after); n < packs.list.length; n++) {
    const pack = packs.list[n] as Pack
    if (pack.left === 0) continue
    found.push(pack)
    jobs += pack.left
    if (jobs >= jobsMax) return { packs: found, next: pack.seq + pack.count - 1 }
  }
  return { packs: found, next: undefined }
}

function encodeRows(rows: readonly ReadRow[]): Omit<JournalRows, 'packs' | 'next'> {
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

function transferables({ numbers, payload, packs: read }: JournalRows): ArrayBuffer[] {
  return [numbers, payload, ...read.map(({ data }) => data)].map(({ buffer }) => buffer as ArrayBuffer)
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
    const file = openSync(`${options.file}-wal`, 'r')
    fsyncSync(file)
    closeSync(file)
  }
}

/** Free pages are used again; a file that is mostly free is made smaller at the start. */
function compact(): void {
  const { bytes, freeBytes } = sizes()
  if (bytes >= VACUUM_BYTES && freeBytes > bytes / 2) database.exec('VACUUM')
}

/** Removes rows of deleted topics in slices, when nothing else is to be done. */
function sweepSoon(): void {
  clearImmediate(sweeping)
  if (goneTopics.length > 0) sweeping = setImmediate(sweep)
}

function sweep(): void {
  const [topic] = goneTopics
  if (topic === undefined) return
  try {
    let isDone = false
    const changes: PackChanges = new Map()
    inTransaction(() => {
      const { changes: removed } = statements.sweep.run(topic, SWEEP_ROWS)
      sweepPacks(topic, changes)
      isDone = removed === 0 && sweptTo === Number.POSITIVE_INFINITY
      if (isDone) {
        statements.forgetTopic.run(topic)
        statements.topicSwept.run(topic)
      }
    })
    for (const pack of applyChanges(packs, changes, performance.now())) sparse.add(pack)
    unpackLater()
    if (isDone) {
      goneTopics.shift()
      sweptTo = 0
    }
  } catch (error) {
    // Left for the next start; the rows belong to no topic.
    goneTopics.length = 0
    sweptTo = 0
    parentPort?.postMessage({
      id: 0,
      error: { message: (error as Error).message, isFull: false },
    } satisfies JournalReply)
  }
  sweepSoon()
}

/** Takes the jobs of a deleted topic out of the next packs. */
function sweepPacks(topic: number, changes: PackChanges): void {
  let n = firstAfter(packs, sweptTo)
  for (let read = 0; n < packs.list.length && read < SWEEP_PACKS; n++) {
    const pack = packs.list[n] as Pack
    sweptTo = pack.seq
    if (pack.left === 0 || (pack.topicNumber !== topic && pack.topicNumber !== 0)) continue
    read++
    readPack(contentOf(pack), ({ index, topicNumber }) => {
      if (topicNumber === topic) takeFromPack(packs, changes, pack.seq + index, pack)
    })
  }
  if (n >= packs.list.length) sweptTo = Number.POSITIVE_INFINITY
  storeMarks(changes)
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
  clearTimeout(unpacking)
  clearImmediate(sweeping)
  closeSync(log)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

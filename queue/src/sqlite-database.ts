/**
 * The SQLite file of a queue: how it is opened and checked, its tables, and the statements that run on it
 * (docs/design/queue.md#sqlite).
 */
import { randomInt } from 'node:crypto'
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
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
import { createTables } from './journal-schema.ts'
import { GONE, JOURNAL_VERSION, type JournalTables, metaFault, UPDATED } from './journal-tables.ts'
import type { PackPlace } from './pack-files.ts'
import type { WorkerOptions } from './sqlite-messages.ts'

/** Result codes of SQLite. */
const SQLITE_FULL = 13
const SQLITE_BUSY = 5
/** Rows of deleted topics that one statement removes. */
export const SWEEP_ROWS = 2_000
/**
 * Of a new file; another one keeps its own. Jobs are written and deleted many at a time: large pages mean fewer of them,
 * and fewer calls of the system.
 */
const PAGE_BYTES = 16_384
/** Size of the log at which its pages are moved to the file. */
const CHECKPOINT_BYTES = 16 << 20

/** Version 1 had no packs, version 2 no files of them; the other tables were the same. */
const OLD_VERSIONS: readonly number[] = [1, 2]

/** Columns of a row that is read, in order of `ReadRow`: its numbers, with the length of the payload as the last one; then texts and the payload. */
export const READ_COLUMNS = [
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
type Tables = JournalTables & {
  /** Neighbouring jobs in one row; key: the number of the first one. Topic 0: they have several. */
  packs: PackTable & { data: Uint8Array }
  /** Packs whose bytes are in a file. */
  filed_packs: PackTable & PackPlace
  /** Which jobs of a pack are no longer in it, a bit each; absent while all are. */
  pack_marks: { seq: number; marks: Uint8Array }
}

export type PackTable = { seq: number; topic_no: number; count: number; created_at: number }

export type QueueDatabase = {
  readonly database: DatabaseSync
  readonly statements: ReturnType<typeof prepareStatements>
}

/**
 * Opens a file, or creates it. All that is in it is durable then.
 *
 * @throws when it is in use, damaged, or of another version, partition or number of partitions
 */
export async function openDatabase(options: WorkerOptions): Promise<QueueDatabase> {
  const database = openFile(options)
  const db = kysely(database)
  await createTables(db as unknown as Kysely<JournalTables>, 'sqlite')
  await checkMeta(db, options)
  await createPacks(db)
  if (pragma(database, 'user_version') === 0) database.exec(`PRAGMA user_version = ${randomInt(1, 2 ** 31)}`)
  syncLog(database, options)
  return { database, statements: prepareStatements(database, db) }
}

/** Names the pack files of a queue, so that another file in its place, such as an empty one, does not delete them. */
export function queueId(database: DatabaseSync): string {
  return pragma(database, 'user_version').toString(16).padStart(8, '0')
}

function openFile(options: WorkerOptions): DatabaseSync {
  // Only the owner may read payloads. SQLite gives its other files the same mode.
  closeSync(openSync(options.file, 'a', 0o600))
  const opened = new DatabaseSync(options.file)
  try {
    opened.exec(
      `PRAGMA page_size = ${PAGE_BYTES}; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.isSynced ? 'NORMAL' : 'OFF'}; PRAGMA cache_size = -4000`,
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
function kysely(database: DatabaseSync): Kysely<Tables> {
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
async function checkMeta(db: Kysely<Tables>, { partition, partitions }: WorkerOptions): Promise<void> {
  const version = JOURNAL_VERSION.sqlite
  const row = { id: 1, version, partition, partitions, next_topic: 1 }
  await db
    .insertInto('meta')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const meta = await db.selectFrom('meta').selectAll().executeTakeFirstOrThrow()
  // From now on only this version reads the file.
  const isOld = OLD_VERSIONS.includes(meta.version)
  const fault = metaFault(isOld ? { ...meta, version } : meta, version, partition, partitions)
  if (fault !== undefined) throw new Error(fault)
  if (isOld) await db.updateTable('meta').set({ version }).execute()
}

async function createPacks(db: Kysely<Tables>): Promise<void> {
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
    .createTable('filed_packs')
    .ifNotExists()
    .addColumn('seq', 'integer', (column) => column.primaryKey())
    .addColumn('topic_no', 'integer', required)
    .addColumn('count', 'integer', required)
    .addColumn('created_at', 'integer', required)
    .addColumn('file', 'integer', required)
    .addColumn('at', 'integer', required)
    .addColumn('bytes', 'integer', required)
    .addColumn('checksum', 'integer', required)
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

function prepareStatements(database: DatabaseSync, db: Kysely<Tables>) {
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
      prepare(
        db.selectFrom('jobs').select(READ_COLUMNS).where('seq', '>', 0).where('seq', '<=', 0).orderBy('seq').limit(1),
      ),
    ),
    pack: prepare(
      db.insertInto('packs').values({ seq: 0, topic_no: 0, count: 0, created_at: 0, data: new Uint8Array() }),
    ),
    packGone: prepare(db.deleteFrom('packs').where('seq', '=', 0)),
    filed: prepare(
      db
        .insertInto('filed_packs')
        .values({ seq: 0, topic_no: 0, count: 0, created_at: 0, file: 0, at: 0, bytes: 0, checksum: 0 }),
    ),
    filedGone: prepare(db.deleteFrom('filed_packs').where('seq', '=', 0)),
    filedCreated: prepare(db.selectFrom('filed_packs').select('created_at').where('seq', '=', 0)),
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

/**
 * A process that was killed may have left groups in the log that were written and not synced. They are loaded and
 * confirmed like others, so they are made durable first.
 */
function syncLog(database: DatabaseSync, { file }: WorkerOptions): void {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if (!isDiskFull(error)) throw error
    // No room to move them into the file: they stay in the log.
    const log = openSync(`${file}-wal`, 'r')
    fsyncSync(log)
    closeSync(log)
  }
}

/** Nothing was stored, because there is no room. */
export function isDiskFull(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === SQLITE_FULL
}

/** An error of the file system as SQLite reports it, if there was no room. */
export function asDiskFull(error: unknown): unknown {
  const { code, message } = error as { code?: string; message?: string }
  return code === 'ENOSPC' || code === 'EDQUOT' ? Object.assign(new Error(message), { errcode: SQLITE_FULL }) : error
}

export function pragma(database: DatabaseSync, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])
}

/**
 * State of the control plane: SQL through Kysely, `node:sqlite` in a file of ours or PostgreSQL by its address. Same
 * tables, same queries.
 */
import { Worker } from 'node:worker_threads'
import { VacancyError } from '@vacancy/shared'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  PostgresDialect,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { Migrator } from 'kysely/migration'
import pg from 'pg'
import { problem } from '../http/errors.ts'
import { ProblemError } from '../http/route.ts'
import type { DatabaseCall, DatabaseReply } from './database-worker.ts'
import { MIGRATIONS } from './migrations/migrations.ts'

// Times in milliseconds and counts: far below where a number stops being exact.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

const POSTGRES_CONNECTIONS = 8
const POSTGRES_CONNECT_MS = 10_000
/** No query of ours is long; one that waits for a lock this long is given up. */
const POSTGRES_STATEMENT_MS = 30_000
/** Result code SQLITE_FULL. */
const SQLITE_FULL = 13

/**
 * Opens the database and brings its tables up to date.
 *
 * @param where a file, or the address of a PostgreSQL server (`postgres://…`)
 * @param onLost told when an idle connection to PostgreSQL breaks; the next query opens another
 * @throws VacancyError failure when it cannot be opened or is of a newer version
 */
export async function openDatabase<Tables>(
  where: string,
  onLost: (error: Error) => void = () => undefined,
): Promise<Kysely<Tables>> {
  const database = connectDatabase<Tables>(where, onLost)
  try {
    const migrator = new Migrator({ db: database, provider: { getMigrations: async () => MIGRATIONS } })
    const { error } = await migrator.migrateToLatest()
    if (error) throw error
    return database
  } catch (cause) {
    await database.destroy()
    const place = isPostgres(where) ? `the PostgreSQL database ${withoutPassword(where)}` : `the database ${where}`
    throw new VacancyError('failure', { reason: `${place} cannot be opened: ${reasonOf(cause)}` }, { cause })
  }
}

/** A connection without migrations, whatever version its tables have. */
export function connectDatabase<Tables>(
  where: string,
  onLost: (error: Error) => void = () => undefined,
): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: isPostgres(where) ? postgres(where, onLost) : sqlite(where) })
}

/** Whether this is the address of a PostgreSQL server. */
export function isPostgres(where: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(where)
}

function withoutPassword(address: string): string {
  const url = URL.parse(address)
  return url === null ? 'of database_url' : `${url.host}${url.pathname}`
}

/** A refused connection to a name with several addresses is an error of errors without a sentence of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof ProblemError && error.cause !== undefined) return reasonOf(error.cause)
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return (error as Error).message
}

function postgres(address: string, onLost: (error: Error) => void): Dialect {
  const pool = new pg.Pool({
    connectionString: address,
    max: POSTGRES_CONNECTIONS,
    connectionTimeoutMillis: POSTGRES_CONNECT_MS,
    application_name: 'vacancy control-plane',
    statement_timeout: POSTGRES_STATEMENT_MS,
    keepAlive: true,
  })
  // Without a listener a server that restarts would end this process.
  pool.on('error', onLost)
  const dialect = new PostgresDialect({ pool })
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => sayingWhenDown(dialect.createDriver()),
    createIntrospector: (database) => dialect.createIntrospector(database),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  }
}

/** A server that is away is no fault of ours: whoever asked is told so, and to come back. */
function sayingWhenDown(driver: Driver): Driver {
  const acquire = driver.acquireConnection.bind(driver)
  const known = new WeakSet<DatabaseConnection>()
  driver.acquireConnection = async (options) => {
    const connection = await acquire(options).catch((error: unknown) => {
      throw databaseDown(error)
    })
    if (known.has(connection)) return connection
    known.add(connection)
    const execute = connection.executeQuery.bind(connection)
    connection.executeQuery = async <R>(...call: Parameters<typeof execute>): Promise<QueryResult<R>> => {
      try {
        return await execute<R>(...call)
      } catch (error) {
        throw isLost(error) ? databaseDown(error) : error
      }
    }
    return connection
  }
  return driver
}

/** Class 08 and 57P of PostgreSQL, and what the library says of a socket that closed. */
function isLost(error: unknown): boolean {
  const { code = '', message } = error as { code?: string; message: string }
  return /^(?:08|57P|ECONN|EPIPE)/.test(code) || /^Connection terminated|not queryable/.test(message)
}

function databaseDown(cause: unknown): ProblemError {
  return problem('database-down', { detail: `The database does not answer: ${reasonOf(cause)}`, cause })
}

/** SQLite rolls DDL back like any other statement, so migrations run in one transaction and an interrupted one leaves nothing. */
class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

function sqlite(file: string): Dialect {
  return {
    createAdapter: () => new TransactionalSqliteAdapter(),
    createDriver: () => sqliteDriver(file),
    createIntrospector: (database) => new SqliteIntrospector(database),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

type Waiting = { resolve(reply: DatabaseReply): void; reject(error: Error): void }

/** One connection, on a thread of its own; Kysely lets one transaction at a time have it (SqliteAdapter). */
function sqliteDriver(file: string): Driver {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let failure: Error | undefined
  let calls = 0

  const ask = async (sql: string, parameters: readonly unknown[] = []): Promise<QueryResult<never>> => {
    if (failure) throw failure
    const call: DatabaseCall = { id: ++calls, sql, parameters }
    const reply = await new Promise<DatabaseReply>((resolve, reject) => {
      waiting.set(call.id, { resolve, reject })
      worker?.postMessage(call)
    })
    if ('error' in reply) throw sqliteError(reply.error)
    return {
      rows: reply.rows as never[],
      ...(reply.changes !== undefined && { numAffectedRows: reply.changes }),
    }
  }
  const connection: DatabaseConnection = {
    executeQuery: async <R>({ sql, parameters }: CompiledQuery) => (await ask(sql, parameters)) as QueryResult<R>,
    async *streamQuery<R>({ sql, parameters }: CompiledQuery) {
      yield (await ask(sql, parameters)) as QueryResult<R>
    },
  }
  const run = async (sql: string): Promise<void> => void (await connection.executeQuery(CompiledQuery.raw(sql)))

  return {
    async init() {
      worker = new Worker(new URL('./database-worker.ts', import.meta.url), { workerData: { file } })
      worker.on('message', (reply: DatabaseReply) => {
        waiting.get(reply.id)?.resolve(reply)
        waiting.delete(reply.id)
      })
      worker.on('error', (error) => {
        failure = error as Error
        for (const { reject } of waiting.values()) reject(failure)
        waiting.clear()
      })
    },
    acquireConnection: async () => connection,
    // Immediate: a transaction that reads before it writes could not go on once another process has written.
    beginTransaction: () => run('begin immediate'),
    commitTransaction: () => run('commit'),
    rollbackTransaction: () => run('rollback'),
    releaseConnection: async () => undefined,
    async destroy() {
      if (worker === undefined || failure) return
      const ended = Promise.withResolvers<void>()
      worker.once('exit', () => ended.resolve())
      worker.postMessage('close')
      await ended.promise
    },
  }
}

function sqliteError({ message, code }: { message: string; code: number }): Error {
  return code === SQLITE_FULL ? new VacancyError('disk_full', {}) : new Error(message)
}

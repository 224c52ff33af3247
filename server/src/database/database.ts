/**
 * State of the control plane: SQL through Kysely, on a SQLite file (`node:sqlite`) or on PostgreSQL, with the same
 * tables and queries.
 */
import { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { VacancyError } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { ProblemError } from '@vacancy/shared/api/route'
import { postgresUrl } from '@vacancy/shared/node'
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
import type { DatabaseCall, DatabaseReply } from './database-worker.ts'
import { MIGRATIONS } from './migrations/migrations.ts'

// Times in milliseconds and counts are far below the largest exact integer.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

const POSTGRES_CONNECTIONS = 8
const POSTGRES_CONNECT_MS = 10_000
/** Queries are short; one that waits this long for a lock is aborted. */
const POSTGRES_STATEMENT_MS = 30_000
/** A connection that is silent for longer than any statement takes is broken. The pool closes idle ones before. */
const POSTGRES_SILENT_MS = POSTGRES_STATEMENT_MS + 5_000
/** Result code SQLITE_FULL. */
const SQLITE_FULL = 13

/**
 * Opens the database and migrates its tables.
 *
 * @param where a file, or the address of a PostgreSQL server (`postgres://…`)
 * @param onLost called when an idle connection to PostgreSQL breaks; the next query opens another
 * @throws VacancyError failure when it cannot be opened or has a newer version
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

/** Connects without running migrations. */
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

/** A refused connection to a name with several addresses is an AggregateError without a message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof ProblemError && error.cause !== undefined) return reasonOf(error.cause)
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return (error as Error).message
}

function postgres(address: string, onLost: (error: Error) => void): Dialect {
  const pool = new pg.Pool({
    connectionString: postgresUrl(address),
    max: POSTGRES_CONNECTIONS,
    connectionTimeoutMillis: POSTGRES_CONNECT_MS,
    keepAlive: true,
    stream: openSocket,
    // Not as parameters of the connection, which poolers refuse.
    onConnect: async (client) =>
      void (await client.query(
        `set application_name = 'vacancy control-plane'; set statement_timeout = ${POSTGRES_STATEMENT_MS}`,
      )),
  })
  // Without a listener, a restart of the server would end this process.
  pool.on('error', onLost)
  // The pool listens to idle connections only. The queries of one that is lost in use fail, and tell why.
  pool.on('connect', (client) => client.on('error', () => undefined))
  const dialect = new PostgresDialect({ pool })
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => reportingLostConnections(dialect.createDriver()),
    createIntrospector: (database) => dialect.createIntrospector(database),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  }
}

function openSocket(): Socket {
  const socket = new Socket()
  const silent = Object.assign(new Error('PostgreSQL does not respond'), { code: 'ETIMEDOUT' })
  return socket.setTimeout(POSTGRES_SILENT_MS, () => socket.destroy(silent))
}

/** Lost connections become `database-down` (503), so that callers retry. */
function reportingLostConnections(driver: Driver): Driver {
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

/**
 * Error classes 08 and 57P of PostgreSQL and its 57014, a statement that took too long, those of the network, and the
 * library's messages for a closed socket.
 */
function isLost(error: unknown): boolean {
  const { code = '', message } = error as { code?: string; message: string }
  return (
    /^(?:08|57P|57014|ECONN|EPIPE|ETIMEDOUT|EHOST|ENET)/.test(code) ||
    /^Connection terminated|not queryable/.test(message)
  )
}

function databaseDown(cause: unknown): ProblemError {
  return problem('database-down', { detail: `The database does not respond: ${reasonOf(cause)}`, cause })
}

/** SQLite can roll back DDL, so all migrations run in one transaction and an interrupted one changes nothing. */
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

/** One connection, on a thread of its own. Kysely runs one transaction at a time on it (SqliteAdapter). */
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
      worker = new Worker(new URL('./database-worker.ts', import.meta.url), { name: 'database', workerData: { file } })
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
    // Immediate: a deferred transaction that reads before it writes fails once another process has written.
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

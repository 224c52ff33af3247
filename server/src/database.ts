/**
 * State of the control plane: SQL through Kysely, `node:sqlite` in a file of ours or PostgreSQL by its address. Same
 * tables, same queries.
 */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { Kysely, PostgresDialect, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import pg from 'pg'
import { MIGRATIONS } from './migrations/migrations.ts'
import type { Tables } from './tables.ts'

// Times in milliseconds and counts: far below where a number stops being exact.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

export type Database = Kysely<Tables>

/**
 * Opens the database and brings its tables up to date.
 *
 * @param where a file, or the address of a PostgreSQL server (`postgres://…`)
 */
export async function openDatabase(where: string): Promise<Database> {
  const dialect = isPostgres(where)
    ? new PostgresDialect({ pool: new pg.Pool({ connectionString: where, max: 8 }) })
    : new SqliteDialect({ database: openSqlite(where) })
  const database = new Kysely<Tables>({ dialect })
  const migrator = new Migrator({ db: database, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await migrator.migrateToLatest()
  if (error) throw error
  return database
}

/** Whether this is the address of a PostgreSQL server. */
export function isPostgres(where: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(where)
}

function openSqlite(file: string) {
  const raw = new DatabaseSync(file)
  raw.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000')
  return {
    close: () => raw.close(),
    prepare(sql: string) {
      const statement = raw.prepare(sql)
      const values = (given: readonly unknown[]) => given as SQLInputValue[]
      return {
        reader: statement.columns().length > 0,
        all: (given: readonly unknown[]) => statement.all(...values(given)),
        run: (given: readonly unknown[]) => statement.run(...values(given)),
        iterate: (given: readonly unknown[]) => statement.iterate(...values(given)) as IterableIterator<never>,
      }
    },
  }
}

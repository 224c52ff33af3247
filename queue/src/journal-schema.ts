/** Creates the tables of the queue journal (Kysely, which only programs that open a database load). */
import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely'
import type { JournalTables } from './journal-tables.ts'

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

/** History and saved queries of the playground. */
import type { Kysely } from 'kysely'

export const playground = {
  async up(database: Kysely<unknown>) {
    await database.schema
      .createTable('playground_history')
      .addColumn('id', 'varchar(64)', (column) => column.primaryKey())
      .addColumn('person', 'varchar(64)', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('node', 'text')
      .addColumn('command', 'text', (column) => column.notNull())
      .addColumn('fields', 'text', (column) => column.notNull())
      .addColumn('words', 'text', (column) => column.notNull())
      .addColumn('ok', 'integer', (column) => column.notNull())
      .addColumn('rows', 'integer')
      .addColumn('total_micros', 'bigint')
      .addColumn('error', 'text', (column) => column.notNull())
      .addColumn('pinned', 'integer', (column) => column.notNull())
      .execute()
    await database.schema
      .createIndex('playground_history_person')
      .on('playground_history')
      .columns(['person', 'pinned', 'at'])
      .execute()
    await database.schema
      .createTable('saved_queries')
      .addColumn('id', 'varchar(64)', (column) => column.primaryKey())
      .addColumn('owner', 'varchar(64)', (column) => column.notNull())
      .addColumn('owner_name', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('folder', 'text', (column) => column.notNull())
      .addColumn('shared', 'integer', (column) => column.notNull())
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('node', 'text')
      .addColumn('command', 'text', (column) => column.notNull())
      .addColumn('fields', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('changed_at', 'bigint', (column) => column.notNull())
      .execute()
    await database.schema.createIndex('saved_queries_owner').on('saved_queries').columns(['owner']).execute()
  },
}

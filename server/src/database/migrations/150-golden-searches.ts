/** Golden searches, and what they found in each snapshot. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const goldenSearches: Migration = {
  async up(database: Kysely<unknown>) {
    await database.schema
      .createTable('golden_searches')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('command', 'text', (column) => column.notNull())
      .addColumn('fields', 'text', (column) => column.notNull())
      .addColumn('days_ahead', 'bigint')
      .addColumn('expectation', 'text', (column) => column.notNull())
      .addColumn('by_name', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('changed_at', 'bigint', (column) => column.notNull())
      .addColumn('last', 'text')
      .execute()
    await database.schema
      .createIndex('golden_searches_name')
      .unique()
      .on('golden_searches')
      .columns(['shard', 'name'])
      .execute()
    await database.schema
      .createTable('golden_checks')
      .addColumn('snapshot', 'text', (column) => column.primaryKey())
      .addColumn('basis', 'text', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('results', 'text', (column) => column.notNull())
      .execute()
  },
}

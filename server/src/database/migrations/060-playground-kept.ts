/** What the playground keeps beside history and saved queries: results, long requests behind links, unsaved requests. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const playgroundKept: Migration = {
  async up(database: Kysely<unknown>) {
    const { schema } = database
    await schema
      .createTable('saved_results')
      .addColumn('id', 'varchar(64)', (column) => column.primaryKey())
      .addColumn('owner', 'varchar(64)', (column) => column.notNull())
      .addColumn('owner_name', 'text', (column) => column.notNull())
      .addColumn('taken_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('command', 'text', (column) => column.notNull())
      .addColumn('fields', 'text', (column) => column.notNull())
      .addColumn('rows', 'integer', (column) => column.notNull())
      .addColumn('total_micros', 'double precision', (column) => column.notNull())
      .addColumn('document', 'text', (column) => column.notNull())
      .execute()
    await schema.createIndex('saved_results_owner').on('saved_results').column('owner').execute()
    await schema.createIndex('saved_results_taken').on('saved_results').columns(['taken_at', 'id']).execute()
    await schema.createIndex('saved_results_expires').on('saved_results').column('expires_at').execute()
    await schema
      .createTable('shared_requests')
      .addColumn('id', 'varchar(64)', (column) => column.primaryKey())
      .addColumn('owner', 'varchar(64)', (column) => column.notNull())
      .addColumn('used_at', 'bigint', (column) => column.notNull())
      .addColumn('document', 'text', (column) => column.notNull())
      .execute()
    await schema.createIndex('shared_requests_owner').on('shared_requests').column('owner').execute()
    await schema.createIndex('shared_requests_used').on('shared_requests').column('used_at').execute()
    await schema
      .createTable('unsaved_requests')
      .addColumn('person', 'varchar(64)', (column) => column.notNull())
      .addColumn('tab', 'varchar(64)', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('document', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('unsaved_requests_key', ['person', 'tab'])
      .execute()
    await schema.createIndex('unsaved_requests_at').on('unsaved_requests').column('at').execute()
  },
}

/** Handovers of all leaders of a zone or machine, one row each. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const handovers: Migration = {
  async up(database: Kysely<unknown>) {
    await database.schema
      .createTable('handovers')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('principal', 'text', (column) => column.notNull())
      .addColumn('document', 'text', (column) => column.notNull())
      .execute()
    await database.schema.createIndex('handovers_created').on('handovers').column('created_at').execute()
  },
}

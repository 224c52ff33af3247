/** Plans of another codec list; imports that leave rows out, or bring a codec list of their own. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const importsAndCodecs: Migration = {
  async up(database: Kysely<unknown>) {
    const { schema } = database
    await schema
      .createTable('codec_changes')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('by_name', 'text', (column) => column.notNull())
      .addColumn('reason', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('ended_at', 'bigint')
      .addColumn('plan', 'text', (column) => column.notNull())
      .execute()
    await schema.alterTable('imports').addColumn('without_rows_of', 'text').execute()
    await schema.alterTable('imports').addColumn('codecs', 'text').execute()
  },
}

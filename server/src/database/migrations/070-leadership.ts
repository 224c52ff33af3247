/** Who led each shard from when to when. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const leadership: Migration = {
  async up(database: Kysely<unknown>) {
    const { schema } = database
    await schema
      .createTable('leadership')
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('from_at', 'bigint', (column) => column.notNull())
      .addColumn('to_at', 'bigint', (column) => column.notNull())
      .addColumn('leader', 'text')
      .addColumn('term', 'bigint')
      .addPrimaryKeyConstraint('leadership_key', ['shard', 'from_at'])
      .execute()
    await schema.createIndex('leadership_from').on('leadership').column('from_at').execute()
  },
}

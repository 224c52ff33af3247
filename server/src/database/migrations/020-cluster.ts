/** Operations, events, measured write pauses, and what was put aside. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const cluster: Migration = {
  async up(database: Kysely<unknown>) {
    const { schema } = database
    await schema
      .createTable('operations')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('idempotency_key', 'text', (column) => column.unique())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('ended_at', 'bigint')
      .addColumn('document', 'text', (column) => column.notNull())
      .addColumn('plan', 'text', (column) => column.notNull())
      .execute()
    await schema.createIndex('operations_created').on('operations').columns(['created_at', 'id']).execute()
    await schema
      .createIndex('operations_one_a_shard')
      .on('operations')
      .column('shard')
      .unique()
      .where(sql.ref('ended_at'), 'is', null)
      .execute()
    await schema
      .createTable('cluster_events')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('node', 'text')
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('level', 'text', (column) => column.notNull())
      .addColumn('says', 'text', (column) => column.notNull())
      .execute()
    await schema.createIndex('cluster_events_shard').on('cluster_events').columns(['shard', 'at']).execute()
    await schema.createIndex('cluster_events_at').on('cluster_events').column('at').execute()
    await schema
      .createTable('write_pauses')
      .addColumn('operation', 'text', (column) => column.primaryKey())
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('milliseconds', 'double precision', (column) => column.notNull())
      .execute()
    await schema.createIndex('write_pauses_at').on('write_pauses').column('at').execute()
    await schema
      .createTable('attention_aside')
      .addColumn('item', 'text', (column) => column.primaryKey())
      .addColumn('until_at', 'bigint')
      .addColumn('says', 'text', (column) => column.notNull())
      .execute()
  },
  async down(database: Kysely<unknown>) {
    const { schema } = database
    for (const table of ['attention_aside', 'write_pauses', 'cluster_events', 'operations'] as const) {
      await schema.dropTable(table).execute()
    }
  },
}

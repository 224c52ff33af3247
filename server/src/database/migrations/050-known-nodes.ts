/** Nodes that were seen, so that they are known after a restart. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const knownNodes: Migration = {
  async up(database: Kysely<unknown>) {
    await database.schema
      .createTable('known_nodes')
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('id', 'text', (column) => column.notNull())
      .addColumn('zone', 'text', (column) => column.notNull())
      .addColumn('api_url', 'text', (column) => column.notNull())
      .addColumn('tcp_host', 'text')
      .addColumn('tcp_port', 'integer')
      .addColumn('listed', 'integer', (column) => column.notNull())
      .addColumn('role', 'text')
      .addColumn('named_at', 'bigint', (column) => column.notNull())
      .addColumn('answered_at', 'bigint')
      .addPrimaryKeyConstraint('known_nodes_key', ['shard', 'id'])
      .execute()
  },
}

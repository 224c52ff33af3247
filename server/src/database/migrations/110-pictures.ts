/** Recorded states of the cluster, for views of the past. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const pictures: Migration = {
  async up(database: Kysely<unknown>) {
    const { schema } = database
    await schema
      .createTable('cluster_pictures')
      .addColumn('shard', 'text', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      // Before the document, so that a sum of sizes does not read the documents.
      .addColumn('bytes', 'integer', (column) => column.notNull())
      .addColumn('document', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('cluster_pictures_key', ['shard', 'at'])
      .execute()
    await schema.createIndex('cluster_pictures_at').on('cluster_pictures').column('at').execute()
  },
}

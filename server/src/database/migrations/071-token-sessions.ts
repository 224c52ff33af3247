/** Sessions that were begun with an API token, and how these like the console to look. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const tokenSessions: Migration = {
  async up(database: Kysely<unknown>) {
    const { schema } = database
    await schema
      .createTable('token_sessions')
      .addColumn('hash', 'text', (column) => column.primaryKey())
      .addColumn('token_id', 'text', (column) => column.notNull().references('tokens.id'))
      .addColumn('address', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('last_seen_at', 'bigint', (column) => column.notNull())
      .execute()
    await schema.createIndex('token_sessions_token').on('token_sessions').column('token_id').execute()
    await schema
      .alterTable('tokens')
      .addColumn('preferences', 'text', (column) => column.notNull().defaultTo('{}'))
      .execute()
  },
}

/** Who people are for the provider of single sign-on, and the program that an audit entry came from. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const singleSignOn: Migration = {
  async up({ schema }: Kysely<unknown>) {
    await schema.alterTable('audit').addColumn('user_agent', 'text').execute()
    await schema.alterTable('people').addColumn('subject', 'text').execute()
    await schema.createIndex('people_subject').unique().on('people').column('subject').execute()
  },
}

/** Topics of the job queue that a producer or consumer token is valid for. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const tokenTopics: Migration = {
  async up(database: Kysely<unknown>) {
    await database.schema.alterTable('tokens').addColumn('topics', 'text').execute()
  },
}

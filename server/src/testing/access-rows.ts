/** Rows of the access tables for tests. */

import type { Kysely } from 'kysely'
import { hashSecret } from '../access/secrets.ts'
import type { Tables } from '../parts.ts'

/** Adds an API token with the secret `vct_1`, created 5 s before `nowMs`. */
export async function addToken(database: Kysely<Tables>, nowMs: number, change: Partial<Tables['tokens']> = {}) {
  const row = {
    ...{ id: 't1', hash: hashSecret('vct_1'), name: 'ci', role: 'monitoring' as const, topics: null },
    ...{ created_by: 'ada', created_at: nowMs - 5_000, expires_at: null, last_used_at: null, last_used_from: null },
    ...{ revoked_at: null, preferences: '{}', ...change },
  }
  await database.insertInto('tokens').values(row).execute()
  return row
}

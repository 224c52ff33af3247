/** Stored requests: those behind short links, and drafts of open tabs. */
import { createHash } from 'node:crypto'
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { PLAYGROUND_LIMITS, type SharedRequest } from '@vacancy/shared/contract'
import type { PlaygroundDatabase } from './tables.ts'

const DAY_MS = 86_400_000
/** 96 bits of a digest: collisions and guesses are infeasible. */
const ID_CHARS = 16
const PRUNED_AT_ONCE = 50

/** Equal requests have the same id. */
export async function shareRequest(
  database: PlaygroundDatabase,
  { principal, body }: RouteRequest<'POST /api/v1/shared-requests'>,
  nowMs: number,
): Promise<{ id: string }> {
  const { shard, node, command, fields } = body
  refuseTooLong(fields)
  const document = JSON.stringify({ shard, node, command, fields } satisfies SharedRequest)
  const id = createHash('sha256').update(document).digest('base64url').slice(0, ID_CHARS)
  if (await touch(database, id, nowMs)) return { id }
  const { count } = await database
    .selectFrom('shared_requests')
    .where('owner', '=', principal.id)
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) >= PLAYGROUND_LIMITS.sharedRequestsMax) {
    throw problem('too-many-links', {
      detail: `You have already shared ${PLAYGROUND_LIMITS.sharedRequestsMax} long requests.`,
    })
  }
  await database
    .insertInto('shared_requests')
    .values({ id, owner: principal.id, used_at: nowMs, document })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ used_at: nowMs }))
    .execute()
  return { id }
}

export async function readSharedRequest(
  database: PlaygroundDatabase,
  { params }: RouteRequest<'GET /api/v1/shared-requests/{id}'>,
  nowMs: number,
): Promise<SharedRequest> {
  const row = await database
    .selectFrom('shared_requests')
    .select(['document', 'used_at'])
    .where('id', '=', params.id)
    .executeTakeFirst()
  if (!row) {
    throw problem('unknown-link', {
      hint: `The link is incomplete, or was not opened for ${PLAYGROUND_LIMITS.sharedRequestsDays} days. Ask for a new one.`,
    })
  }
  // Updated once a day, so that not every visit costs a write.
  if (nowMs - Number(row.used_at) > DAY_MS) await touch(database, params.id, nowMs)
  return JSON.parse(row.document) as SharedRequest
}

/** @returns whether it exists */
async function touch(database: PlaygroundDatabase, id: string, nowMs: number): Promise<boolean> {
  const { numUpdatedRows } = await database
    .updateTable('shared_requests')
    .set({ used_at: nowMs })
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

export async function readUnsaved(
  database: PlaygroundDatabase,
  { principal, params }: RouteRequest<'GET /api/v1/unsaved-requests/{id}'>,
) {
  const row = await database
    .selectFrom('unsaved_requests')
    .select(['document', 'at'])
    .where('person', '=', principal.id)
    .where('tab', '=', params.id)
    .executeTakeFirst()
  return { request: row ? { ...JSON.parse(row.document), at: new Date(Number(row.at)).toISOString() } : null }
}

export async function keepUnsaved(
  database: PlaygroundDatabase,
  { principal, params, body }: RouteRequest<'PUT /api/v1/unsaved-requests/{id}'>,
  nowMs: number,
): Promise<undefined> {
  refuseTooLong(body.fields)
  const document = JSON.stringify(body)
  await database
    .insertInto('unsaved_requests')
    .values({ person: principal.id, tab: params.id, at: nowMs, document })
    .onConflict((conflict) => conflict.columns(['person', 'tab']).doUpdateSet({ at: nowMs, document }))
    .execute()
  const tooMany = await database
    .selectFrom('unsaved_requests')
    .select('tab')
    .where('person', '=', principal.id)
    .orderBy('at', 'desc')
    .orderBy('tab')
    .offset(PLAYGROUND_LIMITS.unsavedMax)
    .limit(PRUNED_AT_ONCE)
    .execute()
  if (tooMany.length === 0) return undefined
  await database
    .deleteFrom('unsaved_requests')
    .where('person', '=', principal.id)
    .where(
      'tab',
      'in',
      tooMany.map(({ tab }) => tab),
    )
    .execute()
  return undefined
}

export async function removeExpiredRequests(database: PlaygroundDatabase, nowMs: number): Promise<void> {
  const { sharedRequestsDays, unsavedDays } = PLAYGROUND_LIMITS
  await database
    .deleteFrom('shared_requests')
    .where('used_at', '<', nowMs - sharedRequestsDays * DAY_MS)
    .execute()
  await database
    .deleteFrom('unsaved_requests')
    .where('at', '<', nowMs - unsavedDays * DAY_MS)
    .execute()
}

function refuseTooLong(fields: SharedRequest['fields']): void {
  if (JSON.stringify(fields).length <= PLAYGROUND_LIMITS.requestCharsMax) return
  const max = PLAYGROUND_LIMITS.requestCharsMax
  throw problem('too-long', { detail: `A stored request has at most ${max} characters.`, field: 'fields' })
}

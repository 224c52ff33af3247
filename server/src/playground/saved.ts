/** Saved queries, private or visible to everyone. Only the owner can change them; an admin can remove any. */
import { randomUUID } from 'node:crypto'
import { problem } from '@vacancy/shared/api/errors'
import type { Principal, ProblemError, RouteRequest } from '@vacancy/shared/api/route'
import { PLAYGROUND_LIMITS, type QueryCommand, type SavedQuery } from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { PlaygroundDatabase, PlaygroundTables } from './tables.ts'

type Row = Selectable<PlaygroundTables['saved_queries']>

export async function listSaved(
  database: PlaygroundDatabase,
  { principal }: RouteRequest<'GET /api/v1/saved-queries'>,
) {
  const rows = await database
    .selectFrom('saved_queries')
    .selectAll()
    .where(({ or, eb }) => or([eb('owner', '=', principal.id), eb('shared', '=', 1)]))
    .orderBy('folder')
    .orderBy('name')
    .orderBy('id')
    .execute()
  return { queries: rows.map((row) => savedOf(row, principal)) }
}

/** Of all people, by name. */
export async function allSaved(database: PlaygroundDatabase) {
  return await database
    .selectFrom('saved_queries')
    .select(['id', 'name', 'owner', 'owner_name', 'shared', 'fields'])
    .orderBy('name')
    .execute()
}

export async function readSaved(
  database: PlaygroundDatabase,
  { principal, params }: RouteRequest<'GET /api/v1/saved-queries/{id}'>,
) {
  return savedOf(await visibleRow(database, principal, params.id), principal)
}

export async function createSaved(
  database: PlaygroundDatabase,
  { principal, body }: RouteRequest<'POST /api/v1/saved-queries'>,
  nowMs: number,
): Promise<SavedQuery> {
  const { count } = await database
    .selectFrom('saved_queries')
    .where('owner', '=', principal.id)
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) >= PLAYGROUND_LIMITS.savedMax) {
    throw problem('too-many-saved', { detail: `You already have ${PLAYGROUND_LIMITS.savedMax} saved queries.` })
  }
  const row: Row = {
    id: randomUUID(),
    owner: principal.id,
    owner_name: principal.name,
    created_at: nowMs,
    changed_at: nowMs,
    ...columnsOf(body),
  }
  await database.insertInto('saved_queries').values(row).execute()
  return savedOf(row, principal)
}

export async function changeSaved(
  database: PlaygroundDatabase,
  { principal, params, body }: RouteRequest<'PUT /api/v1/saved-queries/{id}'>,
  nowMs: number,
): Promise<SavedQuery> {
  const row = await visibleRow(database, principal, params.id)
  if (row.owner !== principal.id) throw notYours(row, 'Save it under another name.')
  const changed = { ...columnsOf(body), changed_at: nowMs }
  await database.updateTable('saved_queries').set(changed).where('id', '=', params.id).execute()
  return savedOf({ ...row, ...changed }, principal)
}

export async function removeSaved(
  database: PlaygroundDatabase,
  { principal, params }: RouteRequest<'DELETE /api/v1/saved-queries/{id}'>,
): Promise<undefined> {
  const row = await visibleRow(database, principal, params.id)
  if (row.owner !== principal.id && principal.role !== 'admin') throw notYours(row, 'Ask them, or an admin.')
  await database.deleteFrom('saved_queries').where('id', '=', params.id).execute()
  return undefined
}

function notYours(row: Row, hint: string): ProblemError {
  return problem('not-yours', { detail: `${row.name} belongs to ${row.owner_name}.`, hint })
}

/** Private queries of others are "not found", except for admins, who may remove them. */
async function visibleRow(database: PlaygroundDatabase, principal: Principal, id: string): Promise<Row> {
  const row = await database.selectFrom('saved_queries').selectAll().where('id', '=', id).executeTakeFirst()
  if (row && (row.owner === principal.id || row.shared === 1 || principal.role === 'admin')) return row
  throw problem('unknown-query')
}

function columnsOf(body: RouteRequest<'POST /api/v1/saved-queries'>['body']) {
  const fields = JSON.stringify(body.fields)
  if (fields.length > PLAYGROUND_LIMITS.requestCharsMax) {
    throw problem('too-long', {
      detail: `A saved query has at most ${PLAYGROUND_LIMITS.requestCharsMax} characters.`,
      field: 'fields',
    })
  }
  const { name, folder, visible, shard, node, command } = body
  return { name, folder, shared: visible === 'all' ? 1 : 0, shard, node: node || null, command, fields }
}

function savedOf(row: Row, principal: Principal): SavedQuery {
  return {
    id: row.id,
    name: row.name,
    folder: row.folder,
    owner: row.owner_name,
    mine: row.owner === principal.id,
    visible: row.shared === 1 ? 'all' : 'me',
    createdAt: new Date(Number(row.created_at)).toISOString(),
    changedAt: new Date(Number(row.changed_at)).toISOString(),
    shard: row.shard,
    node: row.node,
    command: row.command as QueryCommand,
    fields: JSON.parse(row.fields),
  }
}

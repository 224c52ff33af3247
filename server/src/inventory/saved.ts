/** Saved queries: of one person, or for all to see. Only the owner changes them; an admin may remove any. */
import { randomUUID } from 'node:crypto'
import { PLAYGROUND_LIMITS, type QueryCommand, type SavedQuery } from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { Database } from '../database.ts'
import { type Asked, type Asker, ProblemError } from '../route.ts'
import type { PlaygroundTables } from './tables.ts'

type Row = Selectable<PlaygroundTables['saved_queries']>

export async function listSaved(database: Database, { asker }: Asked<'GET /api/v1/saved-queries'>) {
  const rows = await database
    .selectFrom('saved_queries')
    .selectAll()
    .where(({ or, eb }) => or([eb('owner', '=', asker.id), eb('shared', '=', 1)]))
    .orderBy('folder')
    .orderBy('name')
    .orderBy('id')
    .execute()
  return { queries: rows.map((row) => savedOf(row, asker)) }
}

export async function readSaved(database: Database, { asker, params }: Asked<'GET /api/v1/saved-queries/{id}'>) {
  return savedOf(await visibleRow(database, asker, params.id), asker)
}

export async function createSaved(
  database: Database,
  { asker, body }: Asked<'POST /api/v1/saved-queries'>,
  nowMs: number,
): Promise<SavedQuery> {
  const { count } = await database
    .selectFrom('saved_queries')
    .where('owner', '=', asker.id)
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) >= PLAYGROUND_LIMITS.savedMax) {
    throw new ProblemError(409, 'too-many-saved', `You have ${PLAYGROUND_LIMITS.savedMax} saved queries already.`, {
      hint: 'Remove one that is not needed any more.',
    })
  }
  const row: Row = {
    id: randomUUID(),
    owner: asker.id,
    owner_name: asker.name,
    created_at: nowMs,
    changed_at: nowMs,
    ...columnsOf(body),
  }
  await database.insertInto('saved_queries').values(row).execute()
  return savedOf(row, asker)
}

export async function changeSaved(
  database: Database,
  { asker, params, body }: Asked<'PUT /api/v1/saved-queries/{id}'>,
  nowMs: number,
): Promise<SavedQuery> {
  const row = await visibleRow(database, asker, params.id)
  if (row.owner !== asker.id) throw notYours(row, 'Save it under a name of your own.')
  const changed = { ...columnsOf(body), changed_at: nowMs }
  await database.updateTable('saved_queries').set(changed).where('id', '=', params.id).execute()
  return savedOf({ ...row, ...changed }, asker)
}

export async function removeSaved(
  database: Database,
  { asker, params }: Asked<'DELETE /api/v1/saved-queries/{id}'>,
): Promise<undefined> {
  const row = await visibleRow(database, asker, params.id)
  if (row.owner !== asker.id && asker.role !== 'admin') throw notYours(row, 'Ask them, or an admin.')
  await database.deleteFrom('saved_queries').where('id', '=', params.id).execute()
  return undefined
}

function notYours(row: Row, hint: string): ProblemError {
  return new ProblemError(403, 'not-yours', `${row.name} belongs to ${row.owner_name}.`, { hint })
}

/** What somebody may not see does not exist for them; an admin sees what is to be removed. */
async function visibleRow(database: Database, asker: Asker, id: string): Promise<Row> {
  const row = await database.selectFrom('saved_queries').selectAll().where('id', '=', id).executeTakeFirst()
  if (row && (row.owner === asker.id || row.shared === 1 || asker.role === 'admin')) return row
  throw new ProblemError(404, 'unknown-query', 'There is no such saved query.', {
    hint: 'It was removed, or its owner keeps it private.',
  })
}

function columnsOf(body: Asked<'POST /api/v1/saved-queries'>['body']) {
  const fields = JSON.stringify(body.fields)
  if (fields.length > PLAYGROUND_LIMITS.requestCharsMax) {
    throw new ProblemError(
      400,
      'too-long',
      `A saved query has ${PLAYGROUND_LIMITS.requestCharsMax} characters at most.`,
      {
        field: 'fields',
        hint: 'Shorten its lists.',
      },
    )
  }
  const { name, folder, visible, shard, node, command } = body
  return { name, folder, shared: visible === 'all' ? 1 : 0, shard, node: node || null, command, fields }
}

function savedOf(row: Row, asker: Asker): SavedQuery {
  return {
    id: row.id,
    name: row.name,
    folder: row.folder,
    owner: row.owner_name,
    mine: row.owner === asker.id,
    visible: row.shared === 1 ? 'all' : 'me',
    createdAt: new Date(Number(row.created_at)).toISOString(),
    changedAt: new Date(Number(row.changed_at)).toISOString(),
    shard: row.shard,
    node: row.node,
    command: row.command as QueryCommand,
    fields: JSON.parse(row.fields),
  }
}

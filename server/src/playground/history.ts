/** The history of playground runs of each person: request, number of rows and time, never the rows. */
import { randomUUID } from 'node:crypto'
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { type HistoryEntry, PLAYGROUND_LIMITS, type QueryCommand } from '@vacancy/shared/contract'
import type { JsonFields } from '@vacancy/shared/wire'
import { type Selectable, sql } from 'kysely'
import type { PlaygroundDatabase, PlaygroundTables } from './tables.ts'

export type Run = {
  readonly shard: string
  readonly node: string | null
  readonly command: QueryCommand
  readonly fields: JsonFields
  readonly rows: number | null
  readonly totalMicros: number | null
  readonly error: string
}

const ERROR_CHARS = 500
const PRUNED_AT_ONCE = 50

/** Increases within a process, so that runs of the same millisecond keep their order. */
function nextRunId(): string {
  return `${String(process.hrtime.bigint()).padStart(20, '0')}-${randomUUID()}`
}

export async function keepRun(database: PlaygroundDatabase, person: string, run: Run, nowMs: number): Promise<void> {
  const fields = JSON.stringify(run.fields)
  if (fields.length > PLAYGROUND_LIMITS.requestCharsMax) return
  await database
    .insertInto('playground_history')
    .values({
      id: nextRunId(),
      person,
      at: nowMs,
      shard: run.shard,
      node: run.node,
      command: run.command,
      fields,
      words: `${run.command} ${run.shard} ${fields}`.toLowerCase(),
      ok: run.error === '' ? 1 : 0,
      rows: run.rows,
      total_micros: run.totalMicros === null ? null : Math.round(run.totalMicros),
      error: run.error.slice(0, ERROR_CHARS),
      pinned: 0,
    })
    .execute()
  const tooOld = await database
    .selectFrom('playground_history')
    .select('id')
    .where('person', '=', person)
    .where('pinned', '=', 0)
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .offset(PLAYGROUND_LIMITS.historyMax)
    .limit(PRUNED_AT_ONCE)
    .execute()
  if (tooOld.length === 0) return
  const ids = tooOld.map(({ id }) => id)
  await database.deleteFrom('playground_history').where('id', 'in', ids).execute()
}

export async function listRuns(
  database: PlaygroundDatabase,
  { principal, query }: RouteRequest<'GET /api/v1/history'>,
) {
  let own = database.selectFrom('playground_history').where('person', '=', principal.id)
  if (query.search !== '') {
    const pattern = `%${query.search.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
    own = own.where(sql<boolean>`words like ${pattern} escape '\\'`)
  }
  const rows = await own
    .selectAll()
    .orderBy('pinned', 'desc')
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(query.limit)
    .execute()
  const { total } = await own.select(({ fn }) => fn.countAll().as('total')).executeTakeFirstOrThrow()
  return { entries: rows.map(entryOf), total: Number(total) }
}

export async function pinRun(
  database: PlaygroundDatabase,
  { principal, params, body }: RouteRequest<'PUT /api/v1/history/{id}'>,
): Promise<HistoryEntry> {
  const own = database.selectFrom('playground_history').where('person', '=', principal.id)
  if (body.pinned) {
    const { pinned } = await own
      .where('pinned', '=', 1)
      .where('id', '!=', params.id)
      .select(({ fn }) => fn.countAll().as('pinned'))
      .executeTakeFirstOrThrow()
    if (Number(pinned) >= PLAYGROUND_LIMITS.pinnedMax) {
      throw problem('too-many-pins', { detail: `${PLAYGROUND_LIMITS.pinnedMax} runs are already pinned.` })
    }
  }
  await database
    .updateTable('playground_history')
    .set({ pinned: body.pinned ? 1 : 0 })
    .where('id', '=', params.id)
    .where('person', '=', principal.id)
    .execute()
  const row = await own.where('id', '=', params.id).selectAll().executeTakeFirst()
  if (!row) throw problem('unknown-run')
  return entryOf(row)
}

export async function forgetRuns(
  database: PlaygroundDatabase,
  { principal }: RouteRequest<'DELETE /api/v1/history'>,
): Promise<undefined> {
  await database.deleteFrom('playground_history').where('person', '=', principal.id).where('pinned', '=', 0).execute()
  return undefined
}

function entryOf(row: Selectable<PlaygroundTables['playground_history']>): HistoryEntry {
  return {
    id: row.id,
    at: new Date(Number(row.at)).toISOString(),
    shard: row.shard,
    node: row.node,
    command: row.command as QueryCommand,
    fields: JSON.parse(row.fields),
    ok: row.ok === 1,
    count: row.rows,
    totalMicros: row.total_micros === null ? null : Number(row.total_micros),
    error: row.error,
    pinned: row.pinned === 1,
  }
}

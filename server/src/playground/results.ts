/**
 * Saved results: responses with their requests and times, visible to everyone who can sign in. The browser that
 * displayed a result sends it back, so each result has a seal that only this process can create. This prevents saving
 * rows that no node returned.
 */
import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import { problem } from '@vacancy/shared/api/errors'
import type { Principal, ProblemError, RouteRequest } from '@vacancy/shared/api/route'
import {
  type CommandAnswer,
  commandAnswer,
  PLAYGROUND_LIMITS,
  type QueryCommand,
  type SavedResult,
  type SavedResultLine,
} from '@vacancy/shared/contract'
import { fieldsToJson, type RequestFields } from '@vacancy/shared/wire'
import type { Selectable } from 'kysely'
import type { WriteAudit } from '../access/audit.ts'
import { readFields } from '../nodes/ask.ts'
import type { PlaygroundDatabase, PlaygroundTables } from './tables.ts'

const DAY_MS = 86_400_000
const SEAL_KEY_BYTES = 32

type Sealed = {
  /** Id of the person who ran it. */
  readonly person: string
  /** The requested node. */
  readonly node: string | null
  readonly parsed: RequestFields
  readonly answer: CommandAnswer
}
export type Seal = (sealed: Sealed) => string

/** Creates seals with a secret key of this process: after a restart, older results must be run again. */
export function createSeal(): Seal {
  const key = randomBytes(SEAL_KEY_BYTES)
  return ({ person, node, parsed, answer }) => {
    // In the order of the schemas, since browsers may reorder properties.
    const words = [person, node, fieldsToJson(answer.command, parsed), commandAnswer.parse(answer)]
    return createHmac('sha256', key).update(JSON.stringify(words)).digest('base64url')
  }
}

type Row = Selectable<PlaygroundTables['saved_results']>
type Line = Omit<Row, 'document'>
/** The part stored as JSON. */
type Document = Pick<SavedResult, 'node' | 'answer' | 'browserMicros' | 'repeats'>

const LINE = [
  'id',
  'owner',
  'owner_name',
  'taken_at',
  'expires_at',
  'shard',
  'command',
  'fields',
  'rows',
  'total_micros',
] as const satisfies readonly (keyof Line)[]

export async function saveResult(
  { database, seal }: { readonly database: PlaygroundDatabase; readonly seal: Seal },
  { principal, body }: RouteRequest<'POST /api/v1/saved-results'>,
  nowMs: number,
): Promise<SavedResultLine> {
  const { node, browserMicros, repeats } = body
  const { seal: shown, ...answer } = body.answer
  const parsed = readFields(answer.command, body.fields)
  if (!isEqual(shown, seal({ person: principal.id, node, parsed, answer }))) {
    throw problem('not-this-answer', { field: 'answer' })
  }
  const kept: Document = { node, answer, browserMicros, repeats }
  const row: Row = {
    id: randomUUID(),
    owner: principal.id,
    owner_name: principal.name,
    taken_at: Date.parse(answer.at),
    expires_at: nowMs + PLAYGROUND_LIMITS.resultsDays * DAY_MS,
    shard: answer.shard,
    command: answer.command,
    fields: JSON.stringify(fieldsToJson(answer.command, parsed)),
    rows: answer.count,
    total_micros: answer.totalMicros,
    document: JSON.stringify(kept),
  }
  refuseTooLarge(Buffer.byteLength(row.document) + Buffer.byteLength(row.fields))
  const { count } = await database
    .selectFrom('saved_results')
    .where('owner', '=', principal.id)
    .where('expires_at', '>', nowMs)
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) >= PLAYGROUND_LIMITS.resultsMax) {
    throw problem('too-many-results', {
      detail: `You already have ${PLAYGROUND_LIMITS.resultsMax} saved results.`,
      hint: `Remove one that is no longer needed. Results expire after ${PLAYGROUND_LIMITS.resultsDays} days.`,
    })
  }
  await database.insertInto('saved_results').values(row).execute()
  return lineOf(row, principal)
}

const MIB = 1_048_576

function refuseTooLarge(bytes: number): void {
  if (bytes <= PLAYGROUND_LIMITS.resultBytesMax) return
  const has = (Math.ceil((bytes / MIB) * 100) / 100).toFixed(2)
  throw problem('result-too-large', {
    detail: `This result has ${has} MiB; the limit is ${PLAYGROUND_LIMITS.resultBytesMax / MIB} MiB.`,
  })
}

export async function listResults(
  database: PlaygroundDatabase,
  { principal }: RouteRequest<'GET /api/v1/saved-results'>,
  nowMs: number,
) {
  const there = database.selectFrom('saved_results').where('expires_at', '>', nowMs)
  const rows = await there
    .select(LINE)
    .orderBy('taken_at', 'desc')
    .orderBy('id')
    .limit(PLAYGROUND_LIMITS.resultsListed)
    .execute()
  const { total } = await there.select(({ fn }) => fn.countAll().as('total')).executeTakeFirstOrThrow()
  return { results: rows.map((row) => lineOf(row, principal)), total: Number(total) }
}

export async function readResult(
  database: PlaygroundDatabase,
  { principal, params }: RouteRequest<'GET /api/v1/saved-results/{id}'>,
  nowMs: number,
): Promise<SavedResult> {
  const row = await database
    .selectFrom('saved_results')
    .selectAll()
    .where('id', '=', params.id)
    .where('expires_at', '>', nowMs)
    .executeTakeFirst()
  if (!row) throw unknownResult()
  return { ...lineOf(row, principal), ...(JSON.parse(row.document) as Document) }
}

export async function removeResult(
  { database, audit }: { readonly database: PlaygroundDatabase; readonly audit: WriteAudit },
  { principal, address, userAgent, requestId, params }: RouteRequest<'DELETE /api/v1/saved-results/{id}'>,
  nowMs: number,
): Promise<undefined> {
  await database.transaction().execute(async (transaction) => {
    const row = await transaction
      .selectFrom('saved_results')
      .select(LINE)
      .where('id', '=', params.id)
      .where('expires_at', '>', nowMs)
      .executeTakeFirst()
    if (!row) throw unknownResult()
    if (row.owner !== principal.id && principal.role !== 'admin') {
      throw problem('not-yours', { detail: `This result was saved by ${row.owner_name}.` })
    }
    await transaction.deleteFrom('saved_results').where('id', '=', params.id).execute()
    if (row.owner === principal.id) return
    const target = `${row.shard}: ${row.command} of ${row.owner_name}`
    await audit(
      { principal, address, userAgent, requestId, action: 'result.remove', target, result: 'done' },
      transaction,
    )
  })
  return undefined
}

export async function removeExpiredResults(database: PlaygroundDatabase, nowMs: number): Promise<void> {
  await database.deleteFrom('saved_results').where('expires_at', '<=', nowMs).execute()
}

function unknownResult(): ProblemError {
  return problem('unknown-result', {
    hint: `It was removed, or has expired after ${PLAYGROUND_LIMITS.resultsDays} days. Its owner can run it again.`,
  })
}

function lineOf(row: Line, principal: Principal): SavedResultLine {
  return {
    id: row.id,
    owner: row.owner_name,
    mine: row.owner === principal.id,
    takenAt: new Date(Number(row.taken_at)).toISOString(),
    expiresAt: new Date(Number(row.expires_at)).toISOString(),
    shard: row.shard,
    command: row.command as QueryCommand,
    fields: JSON.parse(row.fields),
    count: row.rows,
    totalMicros: row.total_micros,
  }
}

function isEqual(shown: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(shown), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}

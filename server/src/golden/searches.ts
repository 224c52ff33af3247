/** Stored golden searches: list, add, change, remove, and the last result of each on its shard. */
import { randomUUID } from 'node:crypto'
import { packPropertyId } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { GOLDEN_LIMITS, type GoldenRun, type GoldenSearch, PLAYGROUND_LIMITS } from '@vacancy/shared/contract'
import { fieldsToJson } from '@vacancy/shared/wire'
import type { Selectable, Transaction } from 'kysely'
import type { WriteAudit } from '../access/audit.ts'
import type { AuditTables } from '../access/tables.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { readFields } from '../nodes/ask.ts'
import { daysOf } from './expectations.ts'
import type { GoldenDatabase, GoldenTables } from './tables.ts'

type Row = Selectable<GoldenTables['golden_searches']>
type Body = RouteRequest<'POST /api/v1/golden-searches'>['body']

/** A golden search as it is run. */
export type Golden = Pick<GoldenSearch, 'id' | 'name' | 'command' | 'fields' | 'daysAhead' | 'expect'>

export type Searches = {
  readonly database: GoldenDatabase
  readonly audit: WriteAudit
  readonly cluster: Cluster
  readonly nowMs: () => number
}

export async function listGolden({ database }: Pick<Searches, 'database'>, shard?: string): Promise<GoldenSearch[]> {
  const all = database.selectFrom('golden_searches').selectAll().orderBy('shard').orderBy('name').orderBy('id')
  const rows = await (shard === undefined ? all : all.where('shard', '=', shard)).execute()
  return rows.map(goldenOf)
}

export async function createGolden(
  searches: Searches,
  request: RouteRequest<'POST /api/v1/golden-searches'>,
): Promise<GoldenSearch> {
  const { database, audit, cluster, nowMs } = searches
  const { body, principal } = request
  const columns = columnsOf(cluster, body)
  const row: Row = {
    ...{ id: randomUUID(), created_at: nowMs(), changed_at: nowMs(), by_name: principal.name, last: null },
    ...columns,
  }
  await database.transaction().execute(async (within) => {
    await audit(noteOf(request, 'golden.create', row), within)
    const { count } = await within
      .selectFrom('golden_searches')
      .where('shard', '=', row.shard)
      .select(({ fn }) => fn.countAll().as('count'))
      .executeTakeFirstOrThrow()
    if (Number(count) >= GOLDEN_LIMITS.searchesMax) {
      throw problem('too-many-golden-searches', {
        detail: `${row.shard} already has ${GOLDEN_LIMITS.searchesMax} golden searches.`,
      })
    }
    await checkName(within, row)
    await within.insertInto('golden_searches').values(row).execute()
  })
  return goldenOf(row)
}

export async function changeGolden(
  searches: Searches,
  request: RouteRequest<'PUT /api/v1/golden-searches/{id}'>,
): Promise<GoldenSearch> {
  const { database, audit, cluster, nowMs } = searches
  const { body, params, principal } = request
  const columns = columnsOf(cluster, body)
  return await database.transaction().execute(async (within) => {
    const before = await requireRow(within, params.id)
    const changed = { ...columns, changed_at: nowMs(), by_name: principal.name, last: null }
    const row: Row = { ...before, ...changed }
    await audit(noteOf(request, 'golden.change', row), within)
    await checkName(within, row)
    await within.updateTable('golden_searches').set(changed).where('id', '=', row.id).execute()
    return goldenOf(row)
  })
}

export async function removeGolden(
  { database, audit }: Searches,
  request: RouteRequest<'DELETE /api/v1/golden-searches/{id}'>,
): Promise<undefined> {
  await database.transaction().execute(async (within) => {
    const row = await requireRow(within, request.params.id)
    await audit(noteOf(request, 'golden.delete', row), within)
    await within.deleteFrom('golden_searches').where('id', '=', row.id).execute()
  })
  return undefined
}

/** Stores the results of a run on the shard, except of those that were changed meanwhile. */
export async function keepRun({ database }: Searches, ran: readonly GoldenSearch[], run: GoldenRun): Promise<void> {
  const { at, node } = run
  for (const { id, name: _, ...outcome } of run.results) {
    const changedAt = ran.find((search) => search.id === id)?.changedAt
    if (changedAt === undefined) continue
    await database
      .updateTable('golden_searches')
      .set({ last: JSON.stringify({ ...outcome, at, node }) })
      .where('id', '=', id)
      .where('changed_at', '=', Date.parse(changedAt))
      .execute()
  }
}

async function requireRow(within: Within, id: string): Promise<Row> {
  const row = await within.selectFrom('golden_searches').selectAll().where('id', '=', id).executeTakeFirst()
  if (row) return row
  throw problem('golden-not-found')
}

type Within = Transaction<GoldenTables & AuditTables>

async function checkName(within: Within, { id, shard, name }: Row): Promise<void> {
  const other = await within
    .selectFrom('golden_searches')
    .select('id')
    .where('shard', '=', shard)
    .where('name', '=', name)
    .where('id', '!=', id)
    .executeTakeFirst()
  if (other) throw problem('golden-name-taken', { detail: `${shard} has a golden search ${name}.`, field: 'name' })
}

function noteOf(
  {
    principal,
    address,
    userAgent,
    requestId,
  }: Pick<RouteRequest<'POST /api/v1/golden-searches'>, 'principal' | 'address' | 'userAgent' | 'requestId'>,
  action: string,
  { shard, name, command, fields, days_ahead, expectation }: Row,
) {
  const ahead = days_ahead === null ? '' : `, ${days_ahead} days ahead`
  const detail = `${command} ${fields}${ahead}, expects ${expectation}`.slice(0, DETAIL_CHARS)
  return { principal, address, userAgent, requestId, action, target: `${shard}: ${name}`, result: 'done', detail }
}

const DETAIL_CHARS = 2_000

/** Fields that continue another search, depend on the log of one shard, or belong to one call. */
const UNFIT = ['cursor', 'minIndex', 'maxStalenessMs', 'linearizable', 'trace']

/** A search that can be run, with its fields in their stored spelling. @throws ProblemError 400 with the field */
export function checkSearch(
  cluster: Cluster,
  { shard, command, fields, daysAhead, expect }: Omit<Body, 'name'>,
): Pick<GoldenSearch, 'shard' | 'command' | 'fields' | 'daysAhead' | 'expect'> {
  const unfit = (field: string, detail: string) => problem('invalid-request', { detail, field, hint: UNFIT_HINT })
  if (!cluster.shards().some(({ id }) => id === shard)) {
    throw problem('shard-not-found', { detail: `There is no shard ${shard}.`, field: 'shard' })
  }
  const parsed = readFields(command, fields)
  const name = UNFIT.find((field) => parsed[field] !== undefined)
  if (name !== undefined) throw unfit('fields', `${name} has no place in a golden search.`)
  const json = fieldsToJson(command, parsed) as GoldenSearch['fields']
  if (JSON.stringify(json).length > PLAYGROUND_LIMITS.requestCharsMax) {
    throw problem('too-long', {
      detail: `A golden search has at most ${PLAYGROUND_LIMITS.requestCharsMax} characters.`,
      field: 'fields',
    })
  }
  if (daysAhead !== null && daysOf(parsed).length === 0) {
    throw unfit('daysAhead', 'Only a search with dates can move with the day.')
  }
  const { atLeast, contains, p99Ms } = expect
  if (atLeast === null && contains.length === 0 && p99Ms === null) throw unfit('expect', 'Nothing is expected.')
  if (atLeast !== null && parsed['limit'] !== undefined && atLeast > Number(parsed['limit'])) {
    throw unfit('expect', `At least ${atLeast} are expected, and the search returns ${parsed['limit']} at most.`)
  }
  const wrong = contains.find((id) => packPropertyId(id) === undefined)
  if (wrong !== undefined) throw problem('invalid-id', { detail: `${wrong} is no property id.`, field: 'expect' })
  return { shard, command, fields: json, daysAhead, expect }
}

const UNFIT_HINT = 'docs/control-plane.md#golden-searches says what a golden search is.'

function columnsOf(
  cluster: Cluster,
  body: Body,
): Pick<Row, 'shard' | 'name' | 'command' | 'fields' | 'days_ahead' | 'expectation'> {
  const { shard, command, fields, daysAhead, expect } = checkSearch(cluster, body)
  return {
    ...{ shard, name: body.name, command, days_ahead: daysAhead },
    ...{ fields: JSON.stringify(fields), expectation: JSON.stringify(expect) },
  }
}

function goldenOf(row: Row): GoldenSearch {
  return {
    id: row.id,
    shard: row.shard,
    name: row.name,
    command: row.command as GoldenSearch['command'],
    fields: JSON.parse(row.fields),
    daysAhead: row.days_ahead === null ? null : Number(row.days_ahead),
    expect: JSON.parse(row.expectation),
    by: row.by_name,
    createdAt: new Date(Number(row.created_at)).toISOString(),
    changedAt: new Date(Number(row.changed_at)).toISOString(),
    last: row.last === null ? null : JSON.parse(row.last),
  }
}

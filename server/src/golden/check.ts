/**
 * Runs the golden searches of a shard on a stored snapshot, one snapshot at a time, and keeps what they found. Results
 * count for the searches as they were run: when one changes, or the day of searches that move with it, they are due again.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type Clock, dayOf } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { type Caller, ProblemError } from '@vacancy/shared/api/route'
import { GOLDEN_LIMITS, type GoldenCheck, type GoldenResult } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { WriteAudit } from '../access/audit.ts'
import type { PlanContext } from '../cluster/operation-types.ts'
import type { GoldenOfPlan } from '../imports/install.ts'
import { findSnapshot, type Snapshots, type StoredSnapshot, snapshotPath } from '../imports/snapshot-store.ts'
import type { Reach } from '../nodes/ask.ts'
import { closeClients, createNodeClients } from '../nodes/node-clients.ts'
import { type LimitsCache, limitsOf } from '../nodes/query.ts'
import { oneNode, targetOf } from '../nodes/target.ts'
import { goldenPlan } from './plan-checks.ts'
import { clearPrivateNodes, type PrivateNode, PrivateNodeError, withPrivateNode } from './private-node.ts'
import { type RunAt, runAll, runOne } from './run.ts'
import { type Golden, listGolden } from './searches.ts'
import type { GoldenDatabase } from './tables.ts'

type CheckDeps = {
  readonly audit: WriteAudit
  readonly database: GoldenDatabase
  readonly clock: Clock
  readonly log: Log
  readonly snapshots: Snapshots
  readonly reach: Reach
  readonly limits: LimitsCache
  /** Folder of private nodes. */
  readonly folder: string
}

type Running = {
  readonly snapshot: string
  readonly of: number
  done: number
  readonly end: AbortController
  /** Resolves when it is over, whatever its end. */
  over: Promise<void>
}

export type Checks = CheckDeps & {
  running: Running | undefined
  /** Why they could not be run, by snapshot, until the next try. */
  readonly faults: Map<string, { readonly basis: string; readonly at: number; readonly message: string }>
}

export function createChecks(deps: Omit<CheckDeps, 'folder'>): Checks {
  // Beside the snapshots, so that a link to one takes no room.
  return { ...deps, folder: join(deps.snapshots.folder, '..', 'golden'), running: undefined, faults: new Map() }
}

export async function startChecks({ database, folder }: Checks): Promise<void> {
  await clearPrivateNodes(folder)
  await database
    .deleteFrom('golden_checks')
    .where('snapshot', 'not in', (of) => of.selectFrom('snapshots').select('id'))
    .execute()
}

export async function stopChecks({ running }: Checks): Promise<void> {
  running?.end.abort(new PrivateNodeError('the control plane stopped'))
  await running?.over
}

/** @throws ProblemError 404 */
export async function requireStored({ snapshots }: Checks, id: string): Promise<StoredSnapshot> {
  const snapshot = await findSnapshot(snapshots, id)
  if (snapshot) return snapshot
  throw problem('no-such-snapshot', { detail: `There is no snapshot ${id.slice(0, 12)}… here.` })
}

/** What is known of a snapshot, for the plan of its install. An admin's plan runs what is due. */
export async function planOf(
  checks: Checks,
  snapshot: StoredSnapshot,
  { isAdmin, caller }: Pick<PlanContext, 'isAdmin' | 'caller'>,
): Promise<GoldenOfPlan> {
  const check = await checkOf(checks, snapshot)
  const isElsewhere = checks.running !== undefined && checks.running.snapshot !== snapshot.id
  const isBegun = check.state === 'due' && isAdmin && caller !== undefined && !isElsewhere
  const forPlan = ', for the plan of its install'
  return goldenPlan(isBegun ? await beginCheck(checks, snapshot, caller, forPlan) : check, isElsewhere)
}

/** What is known of a snapshot now. */
export async function checkOf(checks: Checks, snapshot: StoredSnapshot): Promise<GoldenCheck> {
  const { database, running, faults } = checks
  const searches = await listGolden(checks, snapshot.shard)
  const view = { snapshot: snapshot.id, shard: snapshot.shard, done: 0, of: searches.length, at: null, results: [] }
  if (running?.snapshot === snapshot.id) {
    const { done, of } = running
    return { ...view, state: 'running', done, of, message: `${done} of ${of} have been run` }
  }
  if (searches.length === 0) return { ...view, state: 'none', message: `${snapshot.shard} has no golden searches` }
  const basis = basisOf(searches, todayOf(checks, snapshot.shard))
  const fault = faults.get(snapshot.id)
  if (fault?.basis === basis) {
    return { ...view, state: 'not-run', message: fault.message, at: new Date(fault.at).toISOString() }
  }
  const row = await database
    .selectFrom('golden_checks')
    .selectAll()
    .where('snapshot', '=', snapshot.id)
    .where('basis', '=', basis)
    .executeTakeFirst()
  if (!row) return { ...view, state: 'due', message: 'They were not run on this snapshot.' }
  const results = JSON.parse(row.results) as GoldenResult[]
  const at = new Date(Number(row.at)).toISOString()
  return { ...view, state: 'done', done: results.length, of: results.length, at, results, message: summaryOf(results) }
}

/**
 * Starts them in the background, with an entry of the audit log, unless they run on this snapshot already.
 *
 * @param why follows the snapshot in that entry
 * @throws ProblemError `golden-busy` while they run on another one, `golden-not-found` without any
 */
export async function beginCheck(
  checks: Checks,
  snapshot: StoredSnapshot,
  { principal, address, userAgent, requestId }: Caller,
  why = '',
): Promise<GoldenCheck> {
  const searches = await listGolden(checks, snapshot.shard)
  if (searches.length === 0) {
    throw problem('golden-not-found', { detail: `${snapshot.shard} has no golden searches.` })
  }
  if (checks.running && checks.running.snapshot !== snapshot.id) {
    throw problem('golden-busy', { detail: `They run on snapshot ${checks.running.snapshot.slice(0, 12)}….` })
  }
  if (!checks.running) {
    const end = new AbortController()
    const running: Running = { snapshot: snapshot.id, of: searches.length, done: 0, end, over: Promise.resolve() }
    checks.running = running
    checks.faults.delete(snapshot.id)
    running.over = run(checks, running, snapshot, searches).finally(() => {
      checks.running = undefined
    })
    await checks.audit({
      ...{ principal, address, userAgent, requestId, action: 'golden.check', result: 'started' },
      ...{ target: `${snapshot.shard}: ${snapshot.name}`, detail: `${snapshot.id}${why}` },
    })
  }
  return await checkOf(checks, snapshot)
}

async function run(
  checks: Checks,
  running: Running,
  snapshot: StoredSnapshot,
  searches: readonly Golden[],
): Promise<void> {
  const { database, clock, log, faults } = checks
  const today = todayOf(checks, snapshot.shard)
  const basis = basisOf(searches, today)
  const late = AbortSignal.timeout(GOLDEN_LIMITS.checkMs)
  const signal = AbortSignal.any([running.end.signal, late])
  try {
    const results = await resultsOf(checks, running, snapshot, searches, { today, signal })
    const row = { snapshot: snapshot.id, basis, at: clock.wallMs(), results: JSON.stringify(results) }
    await database.transaction().execute(async (within) => {
      await within.deleteFrom('golden_checks').where('snapshot', '=', snapshot.id).execute()
      await within.insertInto('golden_checks').values(row).execute()
    })
  } catch (error) {
    const seconds = GOLDEN_LIMITS.checkMs / 1_000
    const isKnown = error instanceof PrivateNodeError || error instanceof ProblemError
    const message = late.aborted
      ? `they took longer than ${seconds} s: ${running.done} of ${running.of} had been run`
      : isKnown
        ? error.message
        : 'an internal error, which the log of the control plane has'
    log.warn({ err: error, snapshot: snapshot.id }, 'golden searches could not be run on a snapshot')
    faults.set(snapshot.id, { basis, at: clock.wallMs(), message })
  }
}

/** Runs them on a private node. Failed ones are also run on the shard, to say what they find there now. */
async function resultsOf(
  checks: Checks,
  running: Running,
  snapshot: StoredSnapshot,
  searches: readonly Golden[],
  { today, signal }: Pick<RunAt, 'today' | 'signal'>,
): Promise<GoldenResult[]> {
  const { clock, reach, folder, snapshots } = checks
  const { shard, bytes, document } = snapshot
  const limits = await limitsOf(reach, checks.limits, shard)
  const { queryLimit } = limits
  const file = { path: snapshotPath(snapshots, snapshot.id), bytes, shard, codecs: document.codecs }
  const results = await withPrivateNode(folder, file, { limits, today, signal }, async ({ token, ...tcp }) => {
    const clients = createNodeClients(clock, { token })
    try {
      const at = { reach: { ...reach, clients }, node: privateAddress(shard, tcp), today, queryLimit, signal }
      return await runAll(searches, at, (done) => {
        running.done = done
      })
    } finally {
      await closeClients(clients)
    }
  })
  const failed = results.filter(({ verdict }) => verdict === 'failed').slice(0, GOLDEN_LIMITS.namedMax)
  for (const result of failed) {
    const search = searches.find(({ id }) => id === result.id) as Golden
    const now = await countNow(search, { reach, today, queryLimit, signal }, shard)
    if (now !== null) result.message += ` (${now} on the shard now)`
  }
  return results
}

/** How many properties a search finds on the shard; null when that is not known. */
async function countNow(search: Golden, at: Omit<RunAt, 'node'>, shard: string): Promise<number | null> {
  try {
    const node = oneNode(at.reach.cluster, targetOf(at.reach.cluster, { shard }))
    const once = { ...search, expect: { ...search.expect, p99Ms: null } }
    return (await runOne(once, { ...at, node })).count
  } catch (error) {
    if (error instanceof ProblemError) return null
    throw error
  }
}

function privateAddress(shard: string, tcp: Omit<PrivateNode, 'token'>) {
  return { id: 'the node of the snapshot', shard, zone: '', apiUrl: '', tcp }
}

function todayOf({ clock, reach }: Checks, shard: string): number {
  return dayOf(clock.wallMs() - reach.cluster.dayBegins(shard) * 60_000)
}

function basisOf(searches: readonly Golden[], today: number): string {
  const what = searches.map(({ id, name, command, fields, daysAhead, expect }) => [
    ...[id, name, command, fields, expect],
    daysAhead === null ? null : today + daysAhead,
  ])
  return createHash('sha256').update(JSON.stringify(what)).digest('hex')
}

function summaryOf(results: readonly GoldenResult[]): string {
  const failed = results.filter(({ verdict }) => verdict === 'failed').length
  const slow = results.filter(({ verdict }) => verdict === 'slow').length
  if (failed + slow === 0) return `All ${results.length} pass.`
  return [
    failed > 0 ? `${failed} of ${results.length} fail.` : '',
    slow > 0 ? `${slow} of ${results.length} are slow.` : '',
  ]
    .filter((text) => text !== '')
    .join(' ')
}

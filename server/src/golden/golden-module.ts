/** The module of golden searches: stored ones, and their runs on the running shard and on snapshots. */
import type { ClientOptions } from '@vacancy/client'
import { type Clock, dayOf } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { type ControlModule, type Handlers, moduleOf, type RouteRequest } from '@vacancy/shared/api/route'
import { GOLDEN_CHECK_ROUTES, GOLDEN_LIMITS, GOLDEN_ROUTES, type GoldenRun } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { WriteAudit } from '../access/audit.ts'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import type { Snapshots } from '../imports/snapshot-store.ts'
import type { Reach } from '../nodes/ask.ts'
import { closeClients, createNodeClients } from '../nodes/node-clients.ts'
import { createLimitsCache, type LimitsCache, limitsOf } from '../nodes/query.ts'
import { oneNode, targetOf } from '../nodes/target.ts'
import { beginCheck, type Checks, checkOf, createChecks, requireStored, startChecks, stopChecks } from './check.ts'
import { type RunAt, runAll, runOne } from './run.ts'
import {
  changeGolden,
  checkSearch,
  createGolden,
  keepRun,
  listGolden,
  removeGolden,
  type Searches,
} from './searches.ts'
import type { GoldenDatabase } from './tables.ts'

type GoldenDeps = {
  readonly database: GoldenDatabase
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly cluster: Cluster
  /** Credentials for the wire protocol. */
  readonly connection: Pick<ClientOptions, 'token' | 'tls'>
  readonly log: Log
  readonly snapshots: Snapshots
}

export type GoldenModule = {
  readonly deps: GoldenDeps
  readonly searches: Searches
  readonly reach: Reach
  readonly limits: LimitsCache
  readonly checks: Checks
  isRunning: boolean
}

export function createGoldenModule(deps: GoldenDeps): GoldenModule {
  const { database, audit, clock, cluster, connection, log, snapshots } = deps
  const searches = { database, audit, cluster, nowMs: () => clock.wallMs() }
  const reach = { cluster, clients: createNodeClients(clock, connection) }
  const limits = createLimitsCache(clock)
  const checks = createChecks({ database, audit, clock, log, snapshots, reach, limits })
  return { deps, searches, reach, limits, checks, isRunning: false }
}

export function goldenRoutes(module: GoldenModule): ControlModule {
  const { checks, reach } = module
  return moduleOf(
    'golden',
    { ...GOLDEN_ROUTES, ...GOLDEN_CHECK_ROUTES },
    { ...goldenHandlers(module), ...checkHandlers(module) },
    {
      start: () => startChecks(checks),
      async stop() {
        await stopChecks(checks)
        await closeClients(reach.clients)
      },
    },
  )
}

function checkHandlers({ checks }: GoldenModule): Handlers<typeof GOLDEN_CHECK_ROUTES> {
  return {
    'GET /api/v1/snapshots/{id}/golden-check': async ({ params }) =>
      await checkOf(checks, await requireStored(checks, params.id)),
    'POST /api/v1/snapshots/{id}/golden-check': async ({ params, ...caller }) =>
      await beginCheck(checks, await requireStored(checks, params.id), caller),
  }
}

function goldenHandlers(module: GoldenModule): Handlers<typeof GOLDEN_ROUTES> {
  const { searches } = module
  return {
    'GET /api/v1/golden-searches': async ({ query }) => ({ searches: await listGolden(searches, query.shard) }),
    'POST /api/v1/golden-searches': (request) => createGolden(searches, request),
    'PUT /api/v1/golden-searches/{id}': (request) => changeGolden(searches, request),
    'DELETE /api/v1/golden-searches/{id}': (request) => removeGolden(searches, request),
    'POST /api/v1/golden-searches/try': (request) => tryOne(module, request),
    'POST /api/v1/shards/{shard}/golden-run': (request) => runOnShard(module, request),
  }
}

async function tryOne(module: GoldenModule, { body, signal }: RouteRequest<'POST /api/v1/golden-searches/try'>) {
  const search = checkSearch(module.deps.cluster, body)
  return await alone(module, async () => {
    const node = nodeOf(module, search.shard)
    return await timed(signal, async (until) => {
      const at = await runAtOf(module, search.shard, node, until)
      return { ...(await runOne(search, at)), node: node.id }
    })
  })
}

async function runOnShard(
  module: GoldenModule,
  request: RouteRequest<'POST /api/v1/shards/{shard}/golden-run'>,
): Promise<GoldenRun> {
  const { params, body, principal, address, userAgent, requestId } = request
  const { deps, searches } = module
  const { shard } = params
  const node = nodeOf(module, shard)
  const stored = await listGolden(searches, shard)
  const chosen = stored.filter(({ id }) => body.search === undefined || body.search === id)
  if (chosen.length === 0) {
    throw problem('golden-not-found', { detail: `${shard} has no ${stored.length === 0 ? '' : 'such '}golden search.` })
  }
  return await alone(module, async () => {
    const results = await timed(request.signal, async (until) =>
      runAll(chosen, await runAtOf(module, shard, node, until)),
    )
    const run = { shard, node: node.id, at: new Date(deps.clock.wallMs()).toISOString(), results }
    await keepRun(searches, chosen, run)
    const failed = results.filter(({ verdict }) => verdict !== 'passed').map(({ name }) => name)
    await deps.audit({
      ...{ principal, address, userAgent, requestId, action: 'golden.run', target: shard, result: 'done' },
      detail: `${results.length} at ${node.id}${failed.length > 0 ? `, not passed: ${failed.join(', ')}` : ''}`.slice(
        0,
        DETAIL_CHARS,
      ),
    })
    return run
  })
}

const DETAIL_CHARS = 2_000

/** One run on a running shard at a time: each may send thousands of searches. */
async function alone<T>(module: GoldenModule, work: () => Promise<T>): Promise<T> {
  if (module.isRunning) throw problem('golden-busy')
  module.isRunning = true
  try {
    return await work()
  } finally {
    module.isRunning = false
  }
}

/** @throws ProblemError `golden-late` past the limit of a run */
async function timed<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = AbortSignal.timeout(GOLDEN_LIMITS.checkMs)
  try {
    return await work(AbortSignal.any([signal, late]))
  } catch (error) {
    if (!late.aborted) throw error
    throw problem('golden-late', { detail: `They took longer than ${GOLDEN_LIMITS.checkMs / 1_000} s.`, cause: error })
  }
}

/** The node that searches of a shard are run at. */
function nodeOf({ deps }: GoldenModule, shard: string): NodeAddress {
  return oneNode(deps.cluster, targetOf(deps.cluster, { shard }))
}

async function runAtOf(
  { deps, reach, limits }: GoldenModule,
  shard: string,
  node: NodeAddress,
  signal: AbortSignal,
): Promise<RunAt> {
  const { queryLimit } = await limitsOf(reach, limits, shard)
  return { reach, node, today: dayOf(deps.clock.wallMs() - deps.cluster.dayBegins(shard) * 60_000), queryLimit, signal }
}

/** The cluster module of a control plane alone, with a database of its own and the nodes of a test. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@vacancy/shared'
import type { Principal } from '@vacancy/shared/api/route'
import type { Environment, Operation, PlanRequest, ShardView } from '@vacancy/shared/contract'
import { createLogger } from '@vacancy/shared/node'
import { until } from '@vacancy/testkit/until'
import type { Kysely } from 'kysely'
import { createAudit } from '../access/audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { clusterOf, createClusterModule, startCluster, stopCluster } from '../cluster/cluster-module.ts'
import type { ClusterConfig, ClusterModule } from '../cluster/cluster-state.ts'
import { planOperation, startOperation } from '../cluster/operation-start.ts'
import { getOperation } from '../cluster/operations.ts'
import { openDatabase } from '../database/database.ts'
import { createLive, stopLive } from '../live/live.ts'
import type { Live } from '../live/state.ts'
import type { Tables } from '../parts.ts'

export const ADMIN: Principal = { kind: 'person', id: 'p1', name: 'ana', role: 'admin' }
export const CALLER = { principal: ADMIN, address: '127.0.0.1', userAgent: '', requestId: 'r1' }

export type ClusterWorld = Pick<ClusterModule, 'collector' | 'operations' | 'handovers' | 'leadership'> & {
  readonly cluster: Cluster
  readonly database: Kysely<Tables>
  readonly live: Live
  readonly log: readonly string[]
  readonly folder: string
  shard(id: string): ShardView
  /** Plans and starts. */
  start(
    request: PlanRequest,
    options?: { readonly reason?: string; readonly confirm?: string; readonly key?: string },
  ): Promise<Operation>
  /** The operation once it is over. */
  ended(id: string): Promise<Operation>
  /** Stops it, and keeps folder and database for the next one. */
  stop(): Promise<void>
  close(): Promise<void>
}

export async function openClusterWorld(
  config: Partial<ClusterConfig>,
  options: { readonly folder?: string; readonly databaseUrl?: string; readonly environment?: Environment } = {},
): Promise<ClusterWorld> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'vacancy-cluster-'))
  const { environment = { label: 'TEST', kind: 'production' } } = options
  const lines: string[] = []
  const log = createLogger({ level: 'debug', format: 'json', component: 'test', write: (line) => lines.push(line) })
  const database = await openDatabase<Tables>(options.databaseUrl ?? join(folder, 'state.sqlite'))
  const live = createLive({ server: 'test', log })
  const audit = createAudit(database, systemClock, () => {})
  const module = createClusterModule(
    {
      ...{ registry: undefined, resolver: undefined, nodes: [], fabric: [], apiPort: 8080, tcpPort: 7777 },
      ...{ tokens: { admin: 'operator-of-the-test' }, folder },
      ...config,
    },
    {
      database,
      live,
      audit: audit.write,
      log,
      clock: systemClock,
      environment: () => environment,
      baseUrl: () => 'http://console',
    },
  )
  await startCluster(module)
  const cluster = clusterOf(module)
  const { collector, operations, handovers, leadership } = module
  let isStopped = false
  const world: ClusterWorld = {
    cluster,
    collector,
    operations,
    handovers,
    leadership,
    database,
    live,
    log: lines,
    folder,
    shard(id) {
      const shard = cluster.shard(id)
      if (!shard) throw new Error(`${id} is not known`)
      return shard
    },
    async start(request, { reason = 'because of the test', confirm = request.shard, key } = {}) {
      const plan = await planOperation(operations, request, CALLER)
      return await startOperation(operations, { plan: plan.id, reason, confirm, key }, CALLER)
    },
    ended: (id) =>
      until(`operation ${id} ends`, async () => {
        const operation = await getOperation(operations, id)
        return operation?.endedAt ? operation : undefined
      }),
    async stop() {
      if (isStopped) return
      isStopped = true
      await stopCluster(module)
      await stopLive(live)
      await database.destroy()
    },
    async close() {
      await world.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return world
}

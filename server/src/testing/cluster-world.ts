/** The cluster part of a control plane by itself, on a database of its own, in front of nodes that a test gives it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@vacancy/shared'
import type { Environment, Operation, PlanRequest, ShardView } from '@vacancy/shared/contract'
import { createLogger } from '@vacancy/shared/node'
import { createAudit } from '../audit.ts'
import { type ClusterArea, type ClusterConfig, createClusterArea } from '../cluster/area.ts'
import { type Database, openDatabase } from '../database.ts'
import { createLive, type LiveChannel } from '../live.ts'
import type { Asker } from '../route.ts'

export const ADMIN: Asker = { kind: 'person', id: 'p1', name: 'ana', role: 'admin' }
export const CALLER = { asker: ADMIN, address: '127.0.0.1', requestId: 'r1' }
const HAPPENS_MS = 45_000
const LOOK_MS = 20

export type ClusterWorld = ClusterArea & {
  readonly database: Database
  readonly live: LiveChannel
  readonly log: readonly string[]
  readonly folder: string
  shard(id: string): ShardView
  /** Plans and starts. */
  start(
    request: PlanRequest,
    asked?: { readonly reason?: string; readonly confirm?: string; readonly key?: string },
  ): Promise<Operation>
  /** The operation once it is over. */
  ended(id: string): Promise<Operation>
  /** Ends it, and keeps folder and database for the next one. */
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
  const database = await openDatabase(options.databaseUrl ?? join(folder, 'state.sqlite'))
  const live = createLive({ server: 'test', log })
  const audit = createAudit(database, systemClock, () => {})
  const area = createClusterArea(
    {
      ...{ registry: undefined, resolver: undefined, nodes: [], apiPort: 8080, tcpPort: 7777 },
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
  await area.area.start?.()
  let isStopped = false
  const world: ClusterWorld = {
    ...area,
    database,
    live,
    log: lines,
    folder,
    shard(id) {
      const shard = area.cluster.shard(id)
      if (!shard) throw new Error(`${id} is not known`)
      return shard
    },
    async start(request, { reason = 'because the test says so', confirm = request.shard, key } = {}) {
      const plan = await area.operations.plan(request, ADMIN)
      return await area.operations.start({ plan: plan.id, reason, confirm, key }, CALLER)
    },
    ended: (id) =>
      until(`operation ${id} ends`, async () => {
        const operation = await area.operations.get(id)
        return operation?.endedAt ? operation : undefined
      }),
    async stop() {
      if (isStopped) return
      isStopped = true
      await area.area.stop?.()
      await live.stop()
      await database.destroy()
    },
    async close() {
      await world.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return world
}

export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  let last: unknown
  for (const end = performance.now() + HAPPENS_MS; performance.now() < end; ) {
    try {
      const found = await look()
      if (found !== undefined && found !== false) return found
      last = undefined
    } catch (error) {
      // What is not there yet may come.
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  throw new Error(`it did not happen: ${what}`, { cause: last })
}

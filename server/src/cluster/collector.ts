/**
 * Polls every node and stores its reports with the time of receipt. The paths of a node are polled one after the other
 * over one keep-alive connection. A node that does not respond gets one request per round until it does, so that a
 * thousand silent nodes cannot delay the others.
 */
import { type Clock, systemClock } from '@vacancy/shared'
import type { ShardView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { createAlarm } from '../http/alarm.ts'
import type { NodeHttp } from '../http/node-http.ts'
import { createOwnTime } from '../http/own-time.ts'
import type { NodeAddress } from './cluster.ts'
import {
  addNode,
  COLLECTOR,
  type Collector,
  type CollectorConfig,
  type CollectorCounts,
  type CollectorHooks,
  keyOf,
  removeNode,
  roundMs,
} from './collector-state.ts'
import { createDiscovery, DISCOVERY, discoverNodes, isNamed, type NamedBy, originOf } from './discovery.ts'
import type { KnownNode } from './node-store.ts'
import { emptyObservation, type NodeObservation } from './observation.ts'
import { nextLookMs, pollDue } from './polling.ts'
import { deriveDueViews, deriveView } from './shard-views.ts'

export function createCollector(
  config: CollectorConfig,
  http: NodeHttp,
  hooks: CollectorHooks,
  log: Log,
  clock: Clock = systemClock,
): Collector {
  const ownTime = createOwnTime(clock, COLLECTOR.tickMs)
  const alarm = createAlarm(clock, COLLECTOR.tickMs, () => {
    pollDue(collector)
    return nextLookMs(collector)
  })
  const collector: Collector = {
    config,
    http,
    hooks,
    log,
    clock,
    discovery: createDiscovery(config, http, clock, ownTime),
    nodes: new Map(),
    shards: new Map(),
    sorted: undefined,
    timers: [],
    alarm,
    ownTime,
    isStopped: false,
    busy: 0,
    busySilent: 0,
    refreshing: undefined,
    counts: { requests: 0, failures: 0, roundMs: 0 },
  }
  return collector
}

async function refreshNodes(collector: Collector): Promise<void> {
  const found = await discoverNodes(collector.discovery, [...collector.nodes.values()])
  if (collector.isStopped) return
  const now = collector.clock.monotonicMs()
  const keys = new Set(found.map(({ address }) => keyOf(address)))
  for (const [at, { address, by }] of found.entries()) {
    const known = collector.nodes.get(keyOf(address))
    if (known) {
      if (isMoved(known.observation.address, address)) known.observation = { ...known.observation, address }
      known.by = by
      // The last list of an unreachable registry does not refresh when nodes were listed.
      if (by !== 'memory' && (by !== 'registry' || collector.discovery.registry.isUp))
        known.namedAt = collector.clock.wallMs()
      continue
    }
    // Forgotten during the discovery.
    if (by === 'memory') continue
    // Spread over the round, so that nodes are not all polled at the same time.
    const nextAt = now + (roundMs(collector) * at) / Math.max(1, found.length)
    addNode(collector, emptyObservation(address), { by, namedAt: collector.clock.wallMs(), role: undefined, nextAt })
  }
  for (const [key, { observation }] of collector.nodes) {
    if (keys.has(key)) continue
    removeNode(collector, observation.address)
    collector.log.info({ shard: observation.address.shard, node: observation.address.id }, 'node is no longer known')
  }
}

/** Nodes that only the configured list contained are dropped once it no longer contains them. */
function addRemembered(collector: Collector, remembered: readonly KnownNode[]): void {
  const listed = new Set(collector.config.nodes.map(originOf))
  for (const { address, isListed, role, namedAt, answeredAt } of remembered) {
    if (isListed && !listed.has(address.apiUrl)) continue
    const before = answeredAt === undefined ? undefined : { at: answeredAt, role }
    addNode(collector, { ...emptyObservation(address), before }, { by: 'memory', namedAt, role, nextAt: 0 })
  }
}

function scheduleRefresh(collector: Collector): void {
  collector.refreshing ??= refreshNodes(collector)
    .catch((error) => collector.log.error({ err: error }, 'looking for nodes failed'))
    .finally(() => {
      collector.refreshing = undefined
    })
  collector.alarm.set(nextLookMs(collector))
}

export function shardViews(collector: Collector): readonly ShardView[] {
  collector.sorted ??= [...collector.shards].sort(([a], [b]) => NATURAL.compare(a, b)).map(([, state]) => state)
  return collector.sorted.flatMap(({ view }) => (view ? [view] : []))
}

export function shardView(collector: Collector, id: string): ShardView | undefined {
  return collector.shards.get(id)?.view
}

/** The reports of a shard's nodes. */
export function observationsOf(collector: Collector, shard: string): readonly NodeObservation[] {
  return [...(collector.shards.get(shard)?.nodes.values() ?? [])].map(({ observation }) => observation)
}

/** Polls a shard's nodes every 50 ms for 3 s, then every 200 ms, until the returned function is called. */
export function watchClosely(collector: Collector, shard: string): () => void {
  const state = collector.shards.get(shard)
  if (!state) return () => {}
  const since = collector.clock.monotonicMs()
  const watch = { since }
  state.closely.add(watch)
  for (const node of state.nodes.values()) node.nextAt = Math.min(node.nextAt, since)
  collector.alarm.set(since)
  return () => void state.closely.delete(watch)
}

export function collectorCounts(collector: Collector): CollectorCounts {
  return { nodes: collector.nodes.size, ...collector.counts }
}

/** The nodes to store for the next start. */
export function knownNodes(collector: Collector): readonly KnownNode[] {
  return [...collector.nodes.values()]
    .filter(({ observation }) => isNamed(observation.address))
    .map(({ observation, by, namedAt, role }) => ({
      ...{ address: observation.address, isListed: by === 'list', role, namedAt },
      answeredAt: observation.answeredAt ?? observation.before?.at,
    }))
}

/** Which source lists a node, by the last discovery. Undefined: the node is unknown. */
export function namedBy(collector: Collector, node: Pick<NodeAddress, 'shard' | 'id'>): NamedBy | undefined {
  return collector.nodes.get(keyOf(node))?.by
}

export function forgetNode(collector: Collector, node: Pick<NodeAddress, 'shard' | 'id'>): void {
  removeNode(collector, node)
  deriveView(collector, node.shard)
}

/**
 * Resolves after the first discovery of nodes.
 *
 * @param remembered stored nodes of the previous process
 */
export async function startCollector(collector: Collector, remembered: readonly KnownNode[]): Promise<void> {
  addRemembered(collector, remembered)
  await refreshNodes(collector)
  collector.timers.push(
    setInterval(() => deriveDueViews(collector), COLLECTOR.deriveMs),
    setInterval(() => scheduleRefresh(collector), DISCOVERY.intervalMs),
  )
  collector.alarm.start()
}

export async function stopCollector(collector: Collector): Promise<void> {
  collector.isStopped = true
  collector.alarm.stop()
  for (const timer of collector.timers) clearInterval(timer)
  await collector.refreshing
}

function isMoved(from: NodeAddress, to: NodeAddress): boolean {
  return (
    from.apiUrl !== to.apiUrl ||
    from.zone !== to.zone ||
    from.tcp?.port !== to.tcp?.port ||
    from.tcp?.host !== to.tcp?.host
  )
}

/** `s2` before `s10`. */
const NATURAL = new Intl.Collator('en', { numeric: true })

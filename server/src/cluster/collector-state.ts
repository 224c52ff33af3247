/** State of the collector: the nodes that are polled and the shards they form. */
import type { Clock } from '@vacancy/shared'
import type { ShardView, ViewRole } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { Figures, Reading } from '../history/reading.ts'
import type { Alarm } from '../http/alarm.ts'
import type { NodeHttp } from '../http/node-http.ts'
import type { OwnTime } from '../http/own-time.ts'
import type { NodeAddress } from './cluster.ts'
import type { ShardFacts, ShardMemory } from './derive.ts'
import type { Discovery, DiscoveryConfig, NamedBy } from './discovery.ts'
import type { NodeObservation } from './observation.ts'

export const COLLECTOR = {
  roundMs: 1_000,
  /** Above this many nodes a round takes twice as long. */
  manyNodes: 300,
  figuresMs: 5_000,
  codecsMs: 60_000,
  atOnce: 64,
  /** How many of these may be nodes that did not respond recently. */
  silentAtOnce: 16,
  closeMs: 50,
  closeForMs: 3_000,
  closeAfterMs: 200,
  tickMs: 20,
  deriveMs: 100,
  /** Shortest time between views of a shard; above `manyNodes` it is one round, unless the shard is watched closely. */
  deriveShardMs: 250,
  bodyKept: 16_384,
  lagsForMs: 30_000,
} as const

export type CollectorHooks = {
  readonly facts: (shard: string) => Pick<ShardFacts, 'operation' | 'writePause' | 'isCut'>
  /** Called with each new view of a shard; `before` is undefined for the first one. */
  readonly onShard: (view: ShardView, before: ShardView | undefined) => void
  readonly onShardGone: (id: string) => void
  readonly onReading: (node: NodeAddress, reading: Reading, change: Figures | undefined) => void
}

export type CollectorCounts = {
  readonly nodes: number
  readonly requests: number
  readonly failures: number
  readonly roundMs: number
}

/** A node that is polled; only the collector changes it. */
export type PolledNode = {
  observation: NodeObservation
  by: NamedBy
  /** When it was last listed. */
  namedAt: number
  /** Its role when it last responded. */
  role: ViewRole | undefined
  nextAt: number
  figuresAt: number
  codecsAt: number
  isBusy: boolean
  /** The names beside its last health: its status is read again when they change. */
  reasons?: string | undefined
  reading: Reading | undefined
}

type ShardState = {
  view: ShardView | undefined
  memory: ShardMemory | undefined
  derivedAt: number
  isDirty: boolean
  readonly nodes: Map<string, PolledNode>
  /** Monotonic start times of close watches. */
  readonly closely: Set<{ readonly since: number }>
}

export type CollectorConfig = DiscoveryConfig & {
  readonly monitoringToken: string | undefined
  readonly adminToken: string | undefined
}

/** Every known node and shard, and the load of the polling. */
export type Collector = {
  readonly config: CollectorConfig
  readonly http: NodeHttp
  readonly hooks: CollectorHooks
  readonly log: Log
  readonly clock: Clock
  readonly discovery: Discovery
  readonly nodes: Map<string, PolledNode>
  readonly shards: Map<string, ShardState>
  /** The shards in display order; undefined after one was added or removed. */
  sorted: readonly ShardState[] | undefined
  readonly timers: NodeJS.Timeout[]
  /** Of the next poll. */
  readonly alarm: Alarm
  readonly ownTime: OwnTime
  isStopped: boolean
  /** Nodes that are being polled, and those of them that did not respond recently. */
  busy: number
  busySilent: number
  /** While nodes are being discovered. */
  refreshing: Promise<void> | undefined
  readonly counts: { requests: number; failures: number; roundMs: number }
}

export function keyOf({ shard, id }: Pick<NodeAddress, 'shard' | 'id'>): string {
  return `${shard}/${id}`
}

export function roundMs(collector: Collector): number {
  return COLLECTOR.roundMs * (collector.nodes.size > COLLECTOR.manyNodes ? 2 : 1)
}

export function addNode(
  collector: Collector,
  observation: NodeObservation,
  more: Pick<PolledNode, 'by' | 'namedAt' | 'role' | 'nextAt'>,
): void {
  const { address } = observation
  const node: PolledNode = { observation, ...more, figuresAt: 0, codecsAt: 0, isBusy: false, reading: undefined }
  collector.nodes.set(keyOf(address), node)
  collector.alarm.set(node.nextAt)
  shardStateOf(collector, address.shard).nodes.set(address.id, node)
  touchShard(collector, address.shard)
}

export function removeNode(collector: Collector, node: Pick<NodeAddress, 'shard' | 'id'>): void {
  collector.nodes.delete(keyOf(node))
  shardStateOf(collector, node.shard).nodes.delete(node.id)
  touchShard(collector, node.shard)
}

/** Derives a shard's view again because something other than its nodes changed. */
export function touchShard(collector: Collector, shard: string): void {
  shardStateOf(collector, shard).isDirty = true
}

function shardStateOf(collector: Collector, shard: string): ShardState {
  const known = collector.shards.get(shard)
  if (known) return known
  const state: ShardState = {
    view: undefined,
    memory: undefined,
    derivedAt: 0,
    isDirty: true,
    nodes: new Map(),
    closely: new Set(),
  }
  collector.shards.set(shard, state)
  collector.sorted = undefined
  return state
}

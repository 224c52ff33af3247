/** State of the cluster module, and how its parts find shards and nodes in it. */
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type {
  ClientsOfShard,
  ClientsSummary,
  Environment,
  NodeCodecs,
  NodeView,
  ShardBrief,
  ShardView,
  Summary,
} from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { WriteAudit } from '../access/audit.ts'
import type { Fabric } from '../fabric/fabric.ts'
import type { Events, Told } from '../history/events.ts'
import type { Leadership } from '../history/leadership.ts'
import type { Pauses } from '../history/pauses.ts'
import type { Pictures } from '../history/pictures.ts'
import type { SeriesStore, Values } from '../history/series.ts'
import type { NodeHttp } from '../http/node-http.ts'
import type { Live } from '../live/state.ts'
import type { Aside, AttentionMemory, AttentionSeed } from './attention.ts'
import type { NodeAddress } from './cluster.ts'
import { observationsOf, shardView, shardViews } from './collector.ts'
import type { Collector } from './collector-state.ts'
import { briefOf } from './derive.ts'
import type { Handovers } from './handovers.ts'
import type { NodeStore } from './node-store.ts'
import type { Operations } from './operation-state.ts'
import type { OperationTypes } from './operation-types.ts'
import type { ClusterDatabase } from './tables.ts'

export type ClusterConfig = {
  /** Addresses of equal registries on one etcd, separated by commas; usually one. */
  readonly registry: string | undefined
  readonly resolver: string | undefined
  /** `host:port` or `http://host:port` of nodes, where there is no registry. */
  readonly nodes: readonly string[]
  /** `http://host:port` of edge routers and proxies, which the registry does not list. */
  readonly fabric: readonly string[]
  /** For hosts from the resolver, which reports no port. */
  readonly apiPort: number
  readonly tcpPort: number
  readonly tokens: {
    readonly monitoring?: string | undefined
    readonly client?: string | undefined
    readonly admin?: string | undefined
    readonly registry?: string | undefined
  }
  /** Certificate authorities of nodes over TLS, PEM; by default those of the system. */
  readonly ca?: string | undefined
  /** Folder for saved series; it exists. */
  readonly folder: string
}

export type ClusterDeps = {
  readonly database: ClusterDatabase
  readonly live: Live
  readonly audit: WriteAudit
  readonly log: Log
  readonly clock: Clock
  readonly environment: () => Environment
  /** `http://host:port` for copied commands. */
  readonly baseUrl: () => string
}

/** The observed cluster, and the parts that observe, store and change it. */
export type ClusterModule = {
  readonly config: ClusterConfig
  readonly deps: ClusterDeps
  readonly http: NodeHttp
  readonly collector: Collector
  readonly operations: Operations
  readonly handovers: Handovers
  /** Operation types; other modules add theirs before the start. */
  readonly types: OperationTypes
  readonly known: NodeStore
  readonly fabric: Fabric
  readonly events: Events
  readonly leadership: Leadership
  readonly pauses: Pauses
  readonly pictures: Pictures
  readonly series: SeriesStore
  readonly seriesFile: string
  readonly runningSources: (() => Summary['running'])[]
  /** Attention items of other modules. */
  readonly attentionSources: (() => readonly AttentionSeed[])[]
  /** Further values of the cluster to record, such as of the queue. */
  readonly valueSources: (() => Values)[]
  readonly listeners: Set<(shard: ShardView) => void>
  readonly briefs: WeakMap<ShardView, ShardBrief>
  readonly timers: NodeJS.Timeout[]
  registryCodecs: NodeCodecs | undefined
  /** Attention items, the memory they are derived from, and the items put aside. */
  attention: Summary['attention']
  /** Items of what is not a shard, as of the last look. */
  otherAttention: readonly AttentionSeed[]
  attentionMemory: AttentionMemory
  aside: Map<string, Aside>
  /** What the events of each shard are derived from. */
  readonly told: Map<string, Told>
  /** Leader changes since metrics were last recorded, by shard. */
  moves: Map<string, number>
  /** The last values of the series of stays, by shard and node. */
  readonly stayValues: Map<string, { readonly at: number; readonly values: Values }>
  /** Shards in front of which no bridge works. */
  cutOff: ReadonlySet<string>
  isSummaryDue: boolean
  /** The latest that a timer of this process ran lately, in milliseconds. */
  lateness: number
  savedAt: number
  saving: Promise<void>
  /** What clients see, where it is probed. */
  clients: (() => ClientsSeen) | undefined
}

export type ClientsSeen = { readonly clients: ClientsSummary; readonly shards: readonly ClientsOfShard[] }

export function nodeView(module: ClusterModule, shard: string, id: string): NodeView | undefined {
  return shardView(module.collector, shard)?.nodes.find((node) => node.id === id)
}

/** @returns stops listening */
export function onShardChange(module: ClusterModule, listener: (shard: ShardView) => void): () => void {
  module.listeners.add(listener)
  return () => void module.listeners.delete(listener)
}

export function shardOf(module: ClusterModule, id: string): ShardView {
  const shard = shardView(module.collector, id)
  if (shard) return shard
  throw problem('shard-not-found', {
    detail: `There is no shard ${id.slice(0, 128)}.`,
    hint: `Known shards: ${
      nearest(
        id,
        shardViews(module.collector).map((each) => each.id),
      ) || 'none, because no node was found yet'
    }.`,
  })
}

/** Known nodes of a shard by id, whether they respond or not. */
export function addressesOf(module: ClusterModule, shard: string): readonly NodeAddress[] {
  return observationsOf(module.collector, shard)
    .map(({ address }) => address)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}

export function briefsOf(module: ClusterModule, shards: readonly ShardView[]): ShardBrief[] {
  return shards.map((view) => {
    const brief = module.briefs.get(view) ?? briefOf(view)
    module.briefs.set(view, brief)
    return brief
  })
}

/** Further running work for the summary, such as imports. */
export function addRunningSource(module: ClusterModule, source: () => Summary['running']): void {
  module.runningSources.push(source)
}

/** Further attention items, such as of the queue. */
export function addAttentionSource(module: ClusterModule, source: () => readonly AttentionSeed[]): void {
  module.attentionSources.push(source)
}

/** Further values to record for the cluster. */
export function addValueSource(module: ClusterModule, source: () => Values): void {
  module.valueSources.push(source)
}

/** A few ids, those with the longest common prefix first. */
function nearest(id: string, ids: readonly string[]): string {
  const score = (other: string) => [...other].findIndex((character, at) => character !== id[at])
  return [...ids]
    .sort((a, b) => score(b) - score(a))
    .slice(0, 5)
    .join(', ')
}

/** Follows the nodes of a shard: who leads, who follows, where they listen. */

import type { Clock, Schedule } from '@vacancy/shared'
import type { HttpCaller, Log } from '@vacancy/shared/node'
import type { RegistryClient } from '../registry-client.ts'
import type { Resolver } from '../resolve.ts'
import type { Topology } from './topology.ts'

export type DiscoveryOptions = {
  readonly shard: string
  readonly zone: string
  readonly registry: RegistryClient
  readonly resolver: Resolver
  /** Calls the nodes' HTTP API. */
  readonly nodes: HttpCaller
  readonly scheme: 'http' | 'https'
  /** For nodes whose resolver answer has no port. */
  readonly ports: { readonly tcp: number; readonly api: number }
  /** `--node-probe-interval-sec`; default 2,000. */
  readonly intervalMs: number
  /** `--http-timeout-ms`; default 2,000. */
  readonly timeoutMs: number
  readonly cacheDir?: string | undefined
  readonly clock: Clock
  readonly schedule: Schedule
  readonly log: Log
  /** Counts, for metrics. */
  readonly onRound?: (result: 'ok' | 'no_leader' | 'failed') => void
  readonly onError?: (step: DiscoveryStep) => void
}

/** Where a node was left out of a round. `identity`: another shard, zone or node id than expected. */
export type DiscoveryStep = 'registry' | 'resolver' | 'healthz' | 'node-info' | 'identity' | 'peers' | 'cache'

export type Discovery = {
  topology(): Topology
  /** Called when the topology differs from the last one in anything but lag. @returns ends it */
  onChange(callback: (topology: Topology) => void): () => void
  /** Starts a round at once, at most each 100 ms, after 308, 405, 503 or a closed connection. */
  look(): void
  /** True while the bridge has no live leader or no live follower connection: a round each 300 ms. */
  setUrgent(isUrgent: boolean): void
  health(): {
    /** Milliseconds since the last round with a leader; undefined before the first. */
    readonly ageMs: number | undefined
    /** The topology is from the cache, not yet confirmed. */
    readonly isCached: boolean
    /** Why there is no leader; '' when there is one. */
    readonly fault: string
  }
  stop(): Promise<void>
}

/** Begins at once. Reads the cache before it returns. */
export declare function openDiscovery(options: DiscoveryOptions): Discovery

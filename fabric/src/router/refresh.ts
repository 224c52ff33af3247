/**
 * Keeps the tables of a router up to date: long poll of the registry, plain polling where it has none, the codec list,
 * and a copy on disk with which a router starts without the registry.
 */

import type { Clock, CodecList, Schedule } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import type { RegistryClient } from '../registry-client.ts'
import type { Lookup, RouterMode, SegmentCount } from './datasets.ts'

export type TablesOptions = {
  readonly mode: RouterMode
  /** Own zone, in zone mode. */
  readonly zone?: string | undefined
  readonly registry: RegistryClient
  /** Default 10,000. */
  readonly refreshMs: number
  readonly cacheDir?: string | undefined
  readonly clock: Clock
  readonly schedule: Schedule
  /** 0 to 1. */
  readonly random: () => number
  readonly log: Log
}

/** A reason why the router is not ready, for createReadiness. */
export type TablesReason = { readonly name: 'tables' | 'codecs'; readonly message: string }

export type TablesHealth = {
  /** A table is in use, from the registry or from the cache. */
  readonly isLoaded: boolean
  /** The table in use was confirmed by the registry since the start. */
  readonly isSynced: boolean
  /** Milliseconds since the registry last confirmed the table; for a table from the cache, since it was written. */
  readonly ageMs: number | undefined
  readonly registryUp: boolean
  /** The last failure; '' when the last round succeeded. */
  readonly fault: string
  readonly routes: number
  readonly hops: number
  /** A table with fewer than half of the segments is held back. */
  readonly isHeldBack: boolean
  readonly epoch: string | undefined
  readonly globalVersion: number | undefined
  readonly reasons: readonly TablesReason[]
}

export type Tables = {
  /** Constant time. */
  lookup(segment: string): Lookup
  /** Every id that a route can lead to, sorted: connections are opened as soon as an id appears. */
  hops(): readonly string[]
  /** Undefined until it is known: `__codecs__` is answered 503. */
  codecs(): CodecList | undefined
  /** For GETSEGMENTS: sorted by UTF-8 bytes, at most 32,767. */
  segments(): readonly SegmentCount[]
  /**
   * Asks the registry now. Resolves when a round that began after this call, or within the last 500 ms, has ended,
   * whether or not it succeeded. Never rejects. It can take several seconds, so race it against the deadline.
   */
  refreshNow(): Promise<void>
  /** Called after the table or the codec list was replaced. @returns ends it */
  onChange(callback: () => void): () => void
  health(): TablesHealth
  /** Ends polling and waits for a running write of the cache. */
  stop(): Promise<void>
}

/** Begins at once. Reads the cache before it returns. */
export declare function openTables(options: TablesOptions): Tables

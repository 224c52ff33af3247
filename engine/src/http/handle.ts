/**
 * What the HTTP side sees of the node it belongs to: node.ts provides it, http/node.ts answers from it.
 */

import type { CodecList } from '@vacancy/shared'
import type { ReplicaStatus, SnapshotInfo } from '../status.ts'
import type { Memory } from '../store/store.ts'
import type { Counters } from '../tcp/counters.ts'

/** Why a node does not serve, in words an operator can act on; the same in /ready, the log and docs/operators.md. */
export type UnavailableReason =
  | 'starting'
  | 'recovering'
  | 'loading'
  | 'stopping'
  | 'disk_full'
  | 'memory_full'
  | 'disk_failed'
  | 'digest_mismatch'

export type Unavailable = { readonly reason: UnavailableReason; readonly detail: string; readonly sinceMs: number }

export type SlowRequest = {
  readonly command: string
  readonly milliseconds: number
  readonly rows: number
  readonly atMs: number
}

export type NodeHandle = {
  readonly version: string
  readonly shardId: string
  readonly startedMs: number
  readonly coresAtStart: number
  readonly coresNow: () => number
  /** Views of the store for reading on the main thread, and its reader slot; undefined until it is loaded. */
  readonly memory: () => Memory | undefined
  readonly reader: number
  readonly codecs: CodecList
  /** Set when data of another codec list was set aside at start (platform.md §7.12). */
  readonly codecMismatch: string | undefined
  readonly counters: readonly Counters[]
  readonly connectionsOpen: () => number
  readonly servingThreads: number
  readonly kernels: () => 'wasm' | 'typescript'
  readonly unavailable: () => readonly Unavailable[]
  readonly replica: () => ReplicaStatus | undefined
  readonly snapshot: () => SnapshotInfo | undefined
  /** Highest first. */
  readonly slow: () => readonly SlowRequest[]
  readonly wallMs: () => number
  readonly saveSnapshot: () => 'started' | 'running' | 'unavailable'
  readonly maintain: (force: boolean) => 'started' | 'running' | 'unavailable'
  readonly shutdown: () => void
  /** @returns number of tokens; throws when the file does not parse, and the old ones stay */
  readonly reloadTokens: () => number
  readonly rotateTls: () => void
}

/**
 * What the HTTP side sees of the node it belongs to: node.ts provides it, http/node.ts answers from it.
 */

import type { CodecList } from '@vacancy/shared'
import type { ClusterStatus, RegistryStatus, ReplicaStatus, ResolverStatus, SnapshotInfo } from '../status.ts'
import type { Memory } from '../store/store.ts'
import type { Counters } from '../tcp/counters.ts'

/** Why a node does not serve, in words an operator can act on; the same in /ready, the log and docs/operators.md. */
export type UnavailableReason =
  | 'starting'
  | 'recovering'
  | 'loading'
  | 'stopping'
  | 'disk_full'
  | 'disk_low'
  | 'memory_full'
  | 'disk_failed'
  | 'digest_mismatch'
  | ClusterReason

/** Those of clustered mode: http/conditions.ts finds most of them in what the node reports. */
export type ClusterReason =
  | 'waiting_for_registry'
  | 'forming'
  | 'waiting_for_snapshot'
  | 'joining'
  | 'removed'
  | 'installing'
  | 'awaiting_load'
  | 'catching_up'
  | 'stale'
  | 'no_leader'
  | 'codec_mismatch'
  | 'registry_unreachable'
  | 'segments_refused'
  | 'resolver_unreachable'
  | 'clock_suspect'
  | 'wal_slow'

export type Unavailable = { readonly reason: UnavailableReason; readonly detail: string; readonly sinceMs: number }

export type SlowRequest = {
  readonly command: string
  readonly milliseconds: number
  readonly rows: number
  readonly atMs: number
}

/** What an operator asks of a shard. Any node takes it and passes it to the leader (consensus.md §7.3). */
export type ClusterRequest =
  | { readonly kind: 'promote' | 'demote' | 'transfer'; readonly node: string }
  /** A snapshot file on the machine of the node that is asked, by its absolute path. */
  | { readonly kind: 'load'; readonly file: string }
  /** A snapshot that the shard has, by its content digest: the one before the last load, to go back to. */
  | { readonly kind: 'load' | 'drop-load'; readonly digest: string }

/** 202: begun, or without effect because it is so already. Otherwise `text` says why not. */
export type ClusterAnswer = { readonly status: 202 | 400 | 404 | 409 | 500 | 503; readonly text: string }

/** A snapshot file to fetch, which is the one with this content digest (pull.ts). */
export type PullRequest = { readonly url: string; readonly digest: string; readonly token?: string | undefined }

export type PullStatus = {
  readonly digest: string
  readonly state: 'pulling' | 'checking' | 'asked' | 'placed' | 'failed'
  readonly bytesDone: number
  /** 0 until the other side has said. */
  readonly bytesTotal: number
  readonly error: string
  readonly startedMs: number
}

export type ClusterHandle = {
  readonly info: () => ClusterStatus
  /** Where the leader answers HTTP, as `http://HOST:PORT`; '' when unknown. */
  readonly leaderUrl: () => string
  /** Answers when the leader has taken or refused it. Nobody waits longer than http/cluster.ts says. */
  readonly ask: (request: ClusterRequest) => Promise<ClusterAnswer>
  /** Fetches a snapshot over HTTP; then the shard loads it, or this node, which waits, founds its shard with it. */
  readonly pull: (request: PullRequest) => ClusterAnswer
  readonly pulled: () => PullStatus | undefined
  /** Replaces the nodes to look for through the resolver; never the voters. */
  readonly setPeers: (nodes: readonly string[]) => void
  readonly registry: () => RegistryStatus | undefined
  readonly resolver: () => ResolverStatus | undefined
}

export type Certificate = { readonly listener: 'tcp' | 'api' | 'cluster'; readonly notAfterMs: number }

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
  /** Those in force. */
  readonly certificates: () => readonly Certificate[]
  /** Undefined in standalone mode. */
  readonly cluster: ClusterHandle | undefined
}

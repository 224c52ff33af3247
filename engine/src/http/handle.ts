/** The node as the HTTP API uses it: node.ts provides it, http/node.ts answers from it. */

import type { CodecList } from '@vacancy/shared'
import type { TokenHash } from '@vacancy/shared/tokens'
import type { NightRead } from '../cluster/nights.ts'
import type { ClusterStatus, RegistryStatus, ReplicaStatus, ResolverStatus, SnapshotInfo } from '../status.ts'
import type { Memory } from '../store/store.ts'
import type { Counters } from '../tcp/counters.ts'
import type { NightAsk, SearchFrom } from '../wal/night-log.ts'

/** Why a node does not serve, in terms an operator can act on; the same in /ready, the log and docs/operators.md. */
export type UnavailableReason =
  | 'starting'
  | 'recovering'
  | 'loading'
  | 'stopping'
  | 'disk_full'
  | 'disk_stuck'
  | 'disk_low'
  | 'memory_full'
  | 'stays_full'
  | 'disk_failed'
  | 'digest_mismatch'
  | 'clock'
  | 'clock_suspect'
  | 'codecs_changed'
  | 'certificate_ends'
  | ClusterReason

/** Reasons of clustered mode: http/conditions.ts derives most of them from the reports of the node. */
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
  | 'wal_slow'

export type Unavailable = { readonly reason: UnavailableReason; readonly detail: string; readonly sinceMs: number }

export type SlowRequest = {
  readonly command: string
  readonly milliseconds: number
  readonly rows: number
  readonly traceId: string | null
  readonly atMs: number
}

/**
 * An operator's request to a shard. Any node accepts it and forwards it to the leader
 * (docs/design/consensus.md#operations).
 */
export type ClusterRequest =
  /** Refused unless the requested node leads in `term`, if one is given. */
  | { readonly kind: 'promote' | 'demote' | 'transfer'; readonly node: string; readonly term?: number }
  /** A snapshot file on the machine of the requested node, by its absolute path. */
  | { readonly kind: 'load'; readonly file: string }
  /** A snapshot that the shard has, by its content digest, for instance the data before the last load. */
  | { readonly kind: 'load' | 'drop-load'; readonly digest: string }
  | { readonly kind: 'set-time'; readonly confirm: boolean }
  | { readonly kind: 'setting'; readonly name: string; readonly value: number }
  /** This voter wants to end by itself; its process has ended `forMs` after that at the latest. */
  | { readonly kind: 'leave'; readonly forMs: number }

/** 202: started, or already in effect. Otherwise `text` has the reason. */
export type ClusterAnswer = { readonly status: 202 | 400 | 404 | 409 | 500 | 503; readonly text: string }

/** A snapshot file to download, identified by its content digest (snapshot-download.ts). */
export type PullRequest = { readonly url: string; readonly digest: string; readonly token?: string | undefined }

export type PullStatus = {
  readonly digest: string
  readonly state: 'pulling' | 'checking' | 'asked' | 'placed' | 'failed'
  readonly bytesDone: number
  /** 0 until the other side has reported it. */
  readonly bytesTotal: number
  readonly error: string
  readonly startedMs: number
}

export type ClusterHandle = {
  readonly info: () => ClusterStatus
  /** HTTP address of the leader, as `http://HOST:PORT`; '' when unknown. */
  readonly leaderUrl: () => string
  /** Resolves when the leader has accepted or refused the request. http/cluster.ts limits the wait. */
  readonly request: (request: ClusterRequest) => Promise<ClusterAnswer>
  /** Downloads a snapshot over HTTP. Then the shard loads it, or this waiting node founds its shard with it. */
  readonly pull: (request: PullRequest) => ClusterAnswer
  readonly pulled: () => PullStatus | undefined
  /** Replaces the nodes to dial through the resolver; never the voters. */
  readonly setPeers: (nodes: readonly string[]) => void
  readonly registry: () => RegistryStatus | undefined
  readonly resolver: () => ResolverStatus | undefined
}

/** `…_authority`: the one that issued it, or that clients must have a certificate of. */
export type Certificate = {
  readonly listener: 'tcp' | 'api' | 'cluster' | 'tcp_authority' | 'cluster_authority'
  readonly notAfterMs: number
}

export type NodeHandle = {
  readonly version: string
  readonly shardId: string
  readonly startedMs: number
  readonly coresAtStart: number
  readonly coresNow: () => number
  /** Views of the store for reads on the main thread, and its reader slot; undefined until the store is loaded. */
  readonly memory: () => Memory | undefined
  readonly reader: number
  readonly codecs: CodecList
  /** Set when data of another codec list was set aside at start (docs/design/http.md#codec-list). */
  readonly codecMismatch: string | undefined
  readonly counters: readonly Counters[]
  readonly connectionsOpen: () => number
  readonly servingThreads: number
  readonly unavailable: () => readonly Unavailable[]
  readonly replica: () => ReplicaStatus | undefined
  readonly snapshot: () => SnapshotInfo | undefined
  /** Highest first. */
  readonly slow: () => readonly SlowRequest[]
  readonly wallMs: () => number
  readonly saveSnapshot: () => 'started' | 'running' | 'unavailable'
  readonly maintain: (force: boolean) => 'started' | 'running' | 'unavailable'
  /** Resolves with the result or the plan, as JSON, with 202. */
  readonly setTime: (confirm: boolean) => Promise<ClusterAnswer>
  readonly changeSetting: (name: string, value: number) => Promise<ClusterAnswer>
  /** Reads a part of the history of a night, before `from` or the newest one. A text says why it cannot be read. */
  readonly night: (ask: NightAsk, from: SearchFrom | undefined) => Promise<NightRead | string>
  readonly shutdown: () => void
  /** @returns number of tokens, undefined without a file; throws when it does not parse, and the old ones stay */
  readonly reloadTokens: () => number | undefined
  /** @returns whether there are certificates */
  readonly rotateTls: () => boolean
  /** The certificates in force. */
  readonly certificates: () => readonly Certificate[]
  /** The tokens in force. */
  readonly tokens: () => readonly TokenHash[]
  /** Undefined in standalone mode. */
  readonly cluster: ClusterHandle | undefined
}

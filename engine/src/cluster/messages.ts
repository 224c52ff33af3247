/** What the main thread and the replica thread tell each other. */

import type { MessagePort } from 'node:worker_threads'
import type { ErrorName, VacancyError } from '@vacancy/shared'
import type { Log } from '../env.ts'
import type { BootstrapStatus, ClusterStatus, ReplicaStatus, ResolverStatus, SnapshotInfo } from '../status.ts'
import type { AdminAnswer, AdminAsk } from './member.ts'

export type ReplicaOptions = {
  readonly dataDir: string
  /** Undefined: the shard that the data in the folder belongs to. */
  readonly shardId: string | undefined
  readonly nodeId: string
  readonly codecs: readonly string[]
  readonly memoryBytes: number
  readonly readers: number
  readonly scratchBytes: number
  readonly sessionBytesMax: number
  readonly roomsHint: number
  readonly snapshotIntervalMs: number
  readonly snapshotTriggerCount: number
  readonly walFlushThreshold: number
  readonly walFileBytes: number
  /** Threads that decode words at start. */
  readonly loadThreads: number
  /** Sets damaged data aside and starts from what verifies. */
  readonly acceptLoss: boolean
  /** Sets the data aside and comes back as a new member (V4); clustered only. */
  readonly rejoin: boolean
  /** A day to which maintenance may go at once, however long ago the last one was; 0 for none. */
  readonly acceptDay: number
  readonly forceTypescript: boolean
  /** Undefined: a node by itself. */
  readonly cluster: ClusterOptions | undefined
}

/** What a member of a shard needs beyond a node by itself. */
export type ClusterOptions = {
  readonly zoneId: string
  readonly initialVoters: readonly string[]
  readonly seeds: readonly string[]
  readonly formWithMajority: boolean
  readonly tickMs: number
  readonly electionTicks: number
  readonly heartbeatTicks: number
  /** Listener for peers. */
  readonly host: string
  readonly port: number
  /** Files of the certificate for peers; undefined: in the clear. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | undefined
  readonly resolver: { readonly url: string; readonly tokenFile: string | undefined }
  /** Own address for HTTP, and the port that peers are taken to have unless the resolver says another. */
  readonly apiHost: string
  readonly apiPort: number
  /** What serving threads are told of the shard (cells.ts). */
  readonly cells: SharedArrayBuffer
}

export type ToReplica =
  | { readonly type: 'serve'; readonly channel: MessagePort }
  | { readonly type: 'snapshot'; readonly origin: SnapshotInfo['origin'] }
  | { readonly type: 'maintain'; readonly force: boolean }
  /** An operator asks the shard for something; `asked` with the same id follows. */
  | { readonly type: 'ask'; readonly id: number; readonly what: AdminAsk }
  /** The node is about to stop: a leader hands over. */
  | { readonly type: 'leave' }
  /** Nodes to look for, beside those that are known. */
  | { readonly type: 'dial'; readonly nodes: readonly string[] }
  /** The certificate for peers is to be read again. */
  | { readonly type: 'reload' }
  | { readonly type: 'stop' }

export type FromReplica =
  | {
      readonly type: 'phase'
      readonly phase: 'recovering' | 'loading' | 'forming' | 'joining'
      readonly detail: string
    }
  | {
      readonly type: 'ready'
      readonly memory: WebAssembly.Memory
      readonly shardId: string
      readonly kernels: 'wasm' | 'typescript'
      /** Set when data of another codec list was set aside. */
      readonly codecMismatch: string | undefined
      readonly seconds: number
    }
  | { readonly type: 'status'; readonly status: ReplicaStatus }
  | { readonly type: 'cluster'; readonly status: ClusterStatus; readonly resolver: ResolverStatus | undefined }
  | { readonly type: 'bootstrap'; readonly status: BootstrapStatus }
  | { readonly type: 'asked'; readonly id: number; readonly answer: AdminAnswer }
  | { readonly type: 'certificate'; readonly notAfterMs: number }
  | { readonly type: 'snapshot'; readonly info: SnapshotInfo }
  | { readonly type: 'maintained'; readonly day: number; readonly removedPackages: number }
  | { readonly type: 'lost'; readonly lines: readonly string[] }
  | {
      readonly type: 'failed'
      readonly code: ErrorName
      readonly fields: VacancyError['fields']
      readonly message: string
    }
  | { readonly type: 'log'; readonly level: keyof Log; readonly fields: object; readonly message: string }
  | { readonly type: 'stopped' }

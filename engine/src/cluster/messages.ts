/** What the main thread and the replica thread tell each other. */

import type { MessagePort } from 'node:worker_threads'
import type { ErrorName, VacancyError } from '@vacancy/shared'
import type { Log } from '../env.ts'
import type { ReplicaStatus, SnapshotInfo } from '../status.ts'

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
  /** Threads that decode words at start. */
  readonly loadThreads: number
  /** Sets damaged data aside and starts from what verifies. */
  readonly acceptLoss: boolean
  /** A day to which maintenance may go at once, however long ago the last one was; 0 for none. */
  readonly acceptDay: number
  readonly forceTypescript: boolean
}

export type ToReplica =
  | { readonly type: 'serve'; readonly channel: MessagePort }
  | { readonly type: 'snapshot'; readonly origin: SnapshotInfo['origin'] }
  | { readonly type: 'maintain'; readonly force: boolean }
  | { readonly type: 'stop' }

export type FromReplica =
  | { readonly type: 'phase'; readonly phase: 'recovering' | 'loading'; readonly detail: string }
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

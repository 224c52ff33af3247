/** Messages between the main thread and the replica thread. */

import type { ErrorName, VacancyError } from '@vacancy/shared'
import type { Log } from '../env.ts'
import type { Bell } from '../pipe.ts'
import type { BootstrapStatus, ClusterStatus, ReplicaStatus, ResolverStatus, SnapshotInfo } from '../status.ts'
import type { ServingEnd } from '../threads/serving-pipe.ts'
import type { NightAsk, SearchFrom } from '../wal/night-log.ts'
import type { AdminRequest } from './admin.ts'
import type { AdminAnswer } from './member-state.ts'
import type { NightRead } from './nights.ts'

export type ToReplica =
  | { readonly type: 'serve'; readonly pipe: ServingEnd }
  | { readonly type: 'snapshot'; readonly origin: SnapshotInfo['origin'] }
  | { readonly type: 'maintain'; readonly force: boolean }
  /** An operator request to the shard; `admin-reply` with the same id follows. */
  | { readonly type: 'admin-request'; readonly id: number; readonly what: AdminRequest }
  /** Reads a part of the history of a night; `night` with the same id follows. */
  | { readonly type: 'night'; readonly id: number; readonly ask: NightAsk; readonly from: SearchFrom | undefined }
  /** The node is about to stop: a leader hands over. */
  | { readonly type: 'leave' }
  /** Nodes to dial in addition to the known ones. */
  | { readonly type: 'dial'; readonly nodes: readonly string[] }
  /** Reload the peer certificate. */
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
      /** Of the replica thread. */
      readonly bell: Bell
      readonly shardId: string
      /** Set when data of another codec list was set aside. */
      readonly codecMismatch: string | undefined
      readonly seconds: number
    }
  | { readonly type: 'status'; readonly status: ReplicaStatus }
  | { readonly type: 'cluster'; readonly status: ClusterStatus; readonly resolver: ResolverStatus | undefined }
  | { readonly type: 'bootstrap'; readonly status: BootstrapStatus }
  | { readonly type: 'night'; readonly id: number; readonly read: NightRead | string }
  | { readonly type: 'admin-reply'; readonly id: number; readonly answer: AdminAnswer }
  | {
      readonly type: 'certificate'
      readonly notAfterMs: number
      readonly authorityNotAfterMs: number | undefined
    }
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

/**
 * Where a registry keeps its state. The rules are in state.ts; a store decides when a change counts. The embedded store is
 * one file of one process (file-store.ts); etcd serves any number of equal processes (etcd-store.ts).
 */

import type { Clock, CodecList } from '@vacancy/shared'
import type { ComponentKind } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { Component, RegistryState } from './model.ts'

/** What a store needs of the service, and tells it. */
export type StoreContext = {
  readonly clock: Clock
  readonly log: Log
  /** Of the codec file. */
  readonly codecs: CodecList
  readonly heartbeatTimeoutMs: number
  /** 16 random hexadecimal digits. */
  readonly newEpoch: () => string
  /** The state was changed, by this process or another one. */
  readonly onChange: () => void
  /** A write succeeded after so many seconds. */
  readonly onWrite: (seconds: number) => void
  /** Why the store cannot keep changes now; '' when it can again. */
  readonly onTrouble: (reason: string) => void
  /** A heartbeat that another process received shows that two processes use one id. */
  readonly onClash: (component: Component) => void
}

export type RegistryStore = {
  /** For messages. */
  readonly name: string
  /**
   * Reads the state, and writes nothing that another process would miss.
   *
   * @throws VacancyError data_conflict when the state cannot be used
   */
  open(context: StoreContext): Promise<OpenStore>
}

export type Rule<T> = (state: RegistryState) => T

export type OpenStore = {
  /** For reads, and for rules that change nothing that is kept. Undefined while it was never read. */
  state(): RegistryState | undefined
  /** Called once, when the service listens. @throws VacancyError disk_failed when nothing can be written */
  start(): Promise<void>
  /**
   * Applies a rule, and resolves with its result when the change counts. A rule may run several times.
   *
   * @param silent components that must still be without a heartbeat in the store when the change is kept
   * @throws StorageUnavailable when the change was not kept, or the store does not know
   */
  change<T>(rule: Rule<T>, silent?: readonly Component[]): Promise<T>
  /** A component is alive: a heartbeat that changed nothing. */
  heard(kind: ComponentKind, id: string): void
  /** Seconds since the state was last known to be current; undefined while it is. */
  staleSeconds(): number | undefined
  /** All components had not yet time for a heartbeat since the state was read. */
  isWarming(): boolean
  /** Whether this process removes what has timed out. */
  isSweeping(): boolean
  /** Whether the store allows to remove a component that this process has not heard for too long. */
  maySweep(component: Component): boolean
  /** Components that one change may remove. */
  readonly sweptAtOnceMax: number
  /** @throws VacancyError disk_failed when pending changes cannot be written */
  close(): Promise<void>
}

/** A change was not kept, or its outcome is unknown. The state is as before. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable'

  constructor(cause?: unknown) {
    super('storage unavailable', { cause })
  }
}

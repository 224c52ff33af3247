/** What the parts of the etcd store share: its fields, whether etcd can be used now, and transactions below the prefix. */

import type { ComponentKind } from '@vacancy/shared/contract'
import { type Compare, type EtcdClient, EtcdError, type EtcdOptions, transact, type Write } from './etcd-client.ts'
import type { Image, Meta } from './etcd-rows.ts'
import type { Component, RegistryState } from './model.ts'
import type { Rule, StoreContext } from './store.ts'

export const ETCD_TIMES = {
  /** One call. */
  callMs: 2_000,
  /** Between two looks whether etcd answers and the watch keeps up. */
  pulseMs: 1_000,
  /** From a change's arrival to 503. */
  changeMs: 4_000,
  /** The watch is behind for this long: read everything again. */
  lagMs: 3_000,
  /** Between two tries to read everything, doubling. */
  retryMinMs: 100,
  retryMaxMs: 5_000,
  /** Reading all keys. */
  loadMs: 30_000,
  /** At the start, before the service listens without a state. */
  firstLoadMs: 3_000,
} as const

export type Keeper = {
  /** Tells this process from other registries. */
  readonly name: string
  /** Heard since their heartbeats were last written. */
  readonly heard: Map<string, readonly [kind: ComponentKind, id: string]>
  /** `kind/id` → when a process last wrote the heartbeat. */
  readonly writtenMs: Map<string, number>
  janitor: { readonly lease: string; revision: number; renewedMs: number } | undefined
  /** Part → since when nothing refers to it. */
  readonly orphans: Map<string, number>
}

export type EtcdStoreOptions = EtcdOptions & {
  /** Ends with a slash. */
  readonly prefix: string
  /** Another codec list than that in etcd replaces it. */
  readonly acceptsCodecChange: boolean
  /** 16 random hexadecimal digits, for the names of parts. */
  readonly newName: () => string
}

export type Waiting = {
  readonly run: Rule<unknown>
  readonly silent: readonly Component[]
  readonly untilMs: number
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

export type EtcdStore = ReturnType<typeof createEtcdStore>

/** Before its first load. */
export function createEtcdStore(options: EtcdStoreOptions, context: StoreContext, client: EtcdClient, keeper: Keeper) {
  const nowMs = context.clock.monotonicMs()
  return {
    options,
    context,
    client,
    keeper,
    ending: new AbortController(),
    state: undefined as RegistryState | undefined,
    image: undefined as Image | undefined,
    meta: undefined as Meta | undefined,
    /** Revision of the last change that the state has; 0 = none. */
    serial: 0,
    /** Of the last answer, to notice an etcd that was restored or replaced. */
    cluster: '',
    revision: 0,
    /** Where the watch starts. */
    watchFrom: 0,
    /** The watch runs and the last pulse was answered. */
    isFollowing: false,
    isReachable: false,
    /** Why etcd refused the last write; '' when it did not. */
    refusal: '',
    lastTrouble: '',
    /** When the state was last known to be current, since when without a break, and when it was first read. */
    currentMs: nowMs,
    steadyMs: nowMs,
    readMs: nowMs,
    behindMs: undefined as number | undefined,
    watching: new AbortController(),
    queue: [] as Waiting[],
    isWriting: false,
    wakers: new Set<() => void>(),
    loops: [] as Promise<void>[],
  }
}

export function isUp(store: EtcdStore): boolean {
  return store.state !== undefined && store.isFollowing && store.isReachable
}

export function wake(store: EtcdStore): void {
  for (const each of [...store.wakers]) each()
}

/** Resolves when the condition holds, the time is over, or the store ends. */
export function until(store: EtcdStore, untilMs: number, holds: () => boolean): Promise<boolean> {
  const left = untilMs - store.context.clock.monotonicMs()
  if (holds() || left <= 0 || store.ending.signal.aborted) return Promise.resolve(holds())
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      store.wakers.delete(check)
      resolve(holds())
    }
    const check = () => {
      if (holds() || store.ending.signal.aborted) end()
    }
    const timer = setTimeout(end, left)
    store.wakers.add(check)
  })
}

export function untilUp(store: EtcdStore, untilMs: number): Promise<boolean> {
  return until(store, untilMs, () => isUp(store))
}

/** Tells the service, and the log once. */
export function trouble(store: EtcdStore, reason: string): void {
  if (reason === store.lastTrouble) return
  const { context, options } = store
  const was = store.lastTrouble
  store.lastTrouble = reason
  const shown = reason === '' ? '' : `etcd: ${reason}`
  context.onTrouble(shown)
  if (reason !== '') context.log.warn({ endpoints: options.endpoints }, `${shown}; reads continue from memory`)
  else if (was !== '') context.log.info({ endpoints: options.endpoints }, 'etcd responds again')
}

export function settle(store: EtcdStore): void {
  if (isUp(store)) trouble(store, store.refusal)
  wake(store)
}

export const SERIAL: Write = { put: 'serial', value: '' }

export function unchanged(key: string, modRevision: number): Compare {
  return modRevision === 0 ? { key, createRevision: 0 } : { key, modRevision }
}

/** A transaction on keys below the prefix. */
export function put(store: EtcdStore, compare: readonly Compare[], writes: readonly Write[], look?: string) {
  const { prefix } = store.options
  return transact(
    store.client,
    {
      compare: compare.map((each) => ({ ...each, key: prefix + each.key })),
      writes: writes.map((write) =>
        'put' in write ? { ...write, put: prefix + write.put } : { ...write, remove: prefix + write.remove },
      ),
      ...(look !== undefined && { look: prefix + look }),
    },
    ETCD_TIMES.callMs,
  )
}

/** Around `ms`, so that several processes do not act in step. */
export function pause(store: EtcdStore, ms: number): Promise<boolean> {
  const untilMs = store.context.clock.monotonicMs() + ms * (0.8 + 0.4 * Math.random())
  return until(store, untilMs, () => store.ending.signal.aborted)
}

/** What a failed call means for the store. */
export function failed(store: EtcdStore, error: unknown): void {
  if (store.ending.signal.aborted) return
  if (!(error instanceof EtcdError)) throw error
  if (error.kind === 'refused') {
    store.refusal = error.message
    // Heartbeats were not written either.
    store.steadyMs = store.context.clock.monotonicMs()
    settle(store)
    return
  }
  store.isReachable = false
  trouble(store, error.message)
}

/** A write was accepted. */
export function accepted(store: EtcdStore): void {
  if (store.refusal === '') return
  store.refusal = ''
  store.steadyMs = store.context.clock.monotonicMs()
  settle(store)
}

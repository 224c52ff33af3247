/** The types of the registry's state (state.ts). */

import type { ComponentDetails, ComponentKind } from '@vacancy/shared/contract'

/** What a change replaced, so that it can be written and taken back (journal.ts). */
export type Journal = {
  /** By kind and id, `node/n1`. */
  readonly components: Map<string, readonly [kind: ComponentKind, id: string, before: Component | undefined]>
  readonly claims: Map<string, Claim | undefined>
  readonly queues: Map<string, readonly string[]>
  readonly reservations: Map<string, Reservation | undefined>
  readonly versions: Map<string, number | undefined>
  codecs: readonly string[] | undefined
  readonly globalVersion: number
}

export type Component = {
  readonly kind: ComponentKind
  readonly id: string
  zone: string
  /** Undefined for routers. */
  shard: string | undefined
  /** Monotonic time of the last heartbeat. */
  seenMs: number
  details: ComponentDetails
  /** The previous process with this id. If it registers again, two processes use the id. */
  instanceBefore: string | undefined
}

export type Claim = {
  zone: string
  /** Highest term of a push while nodes of the shard lived; 0 if none reported one. */
  term: number
  /** Sorted, without repeats: everything the shard claims to hold, whether it owns it or not. */
  segments: readonly string[]
}

/** `untilMs` is wall time: a reservation survives a restart. */
export type Reservation = { readonly shard: string; readonly untilMs: number }

export type RegistryState = {
  /** Random, created with the state. A different epoch invalidates everything that callers remember. */
  readonly epoch: string
  /** Version of a dataset before its first change. */
  readonly firstVersion: number
  globalVersion: number
  readonly versions: Map<string, number>
  codecs: readonly string[]
  readonly components: { readonly [kind in ComponentKind]: Map<string, Component> }
  /** Shard → its claims. */
  readonly claims: Map<string, Claim>
  /** Segment → shards that claim it or have it reserved, the owner first; never empty. */
  readonly queues: Map<string, readonly string[]>
  readonly reservations: Map<string, Reservation>

  // Derived, maintained with every change.
  readonly routersOf: Groups
  readonly nodesOf: Groups
  readonly bridgesOf: Groups
  /** Zone → shards with a live bridge there. */
  readonly bridgesIn: Map<string, Groups>
  /** Shard → the segments it owns. */
  readonly ownedBy: Groups
  /** Zone → shards that pushed from there. */
  readonly shardsIn: Groups
  claimCount: number
  conflictCount: number
  segmentCountsKept: number
  /** While set, records what a change replaces. */
  journal: Journal | undefined
}

/** Names by a key, never an empty set. */
export type Groups = Map<string, Set<string>>

/** What a change left behind, or replaced: undefined where there is nothing. */
export type Values = {
  readonly components: readonly (readonly [kind: ComponentKind, id: string, component: Component | undefined])[]
  readonly claims: readonly (readonly [shard: string, claim: Claim | undefined])[]
  readonly queues: readonly (readonly [segment: string, queue: readonly string[]])[]
  readonly reservations: readonly (readonly [segment: string, reservation: Reservation | undefined])[]
  readonly versions: readonly (readonly [dataset: string, version: number | undefined])[]
  readonly codecs: readonly string[] | undefined
  readonly globalVersion: number
}

/**
 * The state of the registry and all changes to it: registered components, the segments of each shard, and the versions
 * by which callers detect changes (docs/design/http.md#registry, docs/design/http.md#heartbeats-and-versions). Pure:
 * time and randomness come in as arguments.
 *
 * A segment has a queue of the shards that claim it, in the order in which they first did. The first owns it; only
 * owners are listed to routers, so no router ever sees two routes. A reservation is a position in the queue, held for a
 * shard until it claims the segment itself.
 *
 *   dataset                    changes that bump its version
 *   zones/{zone}/routers       a router is added, removed, or moved
 *   zones/{zone}/shards        a bridge is added, removed, or moved
 *   zones/{zone}/segments      another set of owned segments in the zone; its first live router
 *   shards/{shard}/segments    different owned segments or another zone; its first live bridge
 *   shards/{shard}/nodes       a node is added, removed, or moved
 */

import { assert } from '@vacancy/shared'
import {
  COMPONENT_KINDS,
  type ComponentDetails,
  type ComponentKind,
  compareText,
  REGISTRY_LIMITS,
  sortedSegments,
} from '@vacancy/shared/contract'
import { touchClaim, touchComponent, touchQueue, touchReservation, touchVersion } from './journal.ts'
import type { Claim, Component, Groups, RegistryState, Reservation, Values } from './model.ts'

/** A refused change: nothing happened. `field` is the invalid field. */
export type Refused = { readonly ok: false; readonly field: string; readonly reason: string }

export const RESERVATION_MS = 24 * 3_600_000

export function createState(options: {
  readonly epoch: string
  /**
   * Unix time in seconds, so that no version of a lost state occurs again
   * (docs/design/http.md#heartbeats-and-versions).
   */
  readonly firstVersion: number
  readonly codecs: readonly string[]
}): RegistryState {
  return {
    epoch: options.epoch,
    firstVersion: options.firstVersion,
    globalVersion: options.firstVersion,
    versions: new Map(),
    codecs: options.codecs,
    components: { router: new Map(), bridge: new Map(), node: new Map() },
    claims: new Map(),
    queues: new Map(),
    reservations: new Map(),
    routersOf: new Map(),
    nodesOf: new Map(),
    bridgesOf: new Map(),
    bridgesIn: new Map(),
    ownedBy: new Map(),
    shardsIn: new Map(),
    claimCount: 0,
    conflictCount: 0,
    segmentCountsKept: 0,
    journal: undefined,
  }
}

// Versions.

export const datasets = {
  routers: (zone: string) => `zones/${zone}/routers`,
  shards: (zone: string) => `zones/${zone}/shards`,
  zoneSegments: (zone: string) => `zones/${zone}/segments`,
  segments: (shard: string) => `shards/${shard}/segments`,
  nodes: (shard: string) => `shards/${shard}/nodes`,
} as const

/** Version of a dataset; 0 if it never had content. */
export function versionOf(state: RegistryState, dataset: string): number {
  return state.versions.get(dataset) ?? 0
}

function bump(state: RegistryState, dataset: string): void {
  touchVersion(state, dataset)
  state.versions.set(dataset, (state.versions.get(dataset) ?? state.firstVersion) + 1)
  state.globalVersion += 1
}

/** Raises all versions, so that those given to callers since the state was written do not occur again. */
export function skipVersions(state: RegistryState, by: number): void {
  for (const [dataset, version] of state.versions) state.versions.set(dataset, version + by)
  state.globalVersion += by
}

/** Whether a change that creates these datasets is within the limit. */
function hasRoomFor(state: RegistryState, names: readonly string[]): boolean {
  const fresh = names.filter((name) => !state.versions.has(name)).length
  return fresh === 0 || state.versions.size + fresh <= REGISTRY_LIMITS.datasetsMax
}

const TOO_MANY_DATASETS = `the registry already holds ${REGISTRY_LIMITS.datasetsMax} lists`

// Components.

export type Registration = {
  readonly kind: ComponentKind
  readonly id: string
  readonly zone: string
  readonly shard: string | undefined
  readonly details: ComponentDetails
}

export type Registered = {
  readonly ok: true
  /** The change must be persisted. False for a heartbeat without news. */
  readonly changed: boolean
  /** Two processes use this id and register in turns. */
  readonly clash: boolean
}

/** Registers a component, or records its heartbeat. */
export function register(state: RegistryState, registration: Registration, nowMs: number): Registered | Refused {
  const { kind, id, zone, details } = registration
  const shard = kind === 'router' ? undefined : registration.shard
  assert(kind === 'router' || shard !== undefined, 'bridges and nodes have a shard')
  const known = state.components[kind].get(id)
  if (known && known.zone === zone && known.shard === shard) {
    known.seenMs = nowMs
    return { ok: true, changed: false, clash: keepDetails(state, known, details) }
  }
  if (!known && componentCount(state) >= REGISTRY_LIMITS.componentsMax) {
    return { ok: false, field: 'id', reason: `the registry already holds ${REGISTRY_LIMITS.componentsMax} components` }
  }
  const names = [datasetOf(kind, zone, shard)]
  if (!hasRoomFor(state, names)) return { ok: false, field: shard ? 'shard' : 'zone', reason: TOO_MANY_DATASETS }
  touchComponent(state, kind, id)
  const component: Component = known ?? {
    kind,
    id,
    zone,
    shard,
    seenMs: nowMs,
    details: {},
    instanceBefore: undefined,
  }
  if (known) {
    const moved = kind !== 'node' || known.shard !== shard
    if (moved) bump(state, datasetOf(kind, known.zone, known.shard))
    leave(state, known)
    component.zone = zone
    component.shard = shard
    component.seenMs = nowMs
    if (moved) bump(state, datasetOf(kind, zone, shard))
  } else {
    state.components[kind].set(id, component)
    bump(state, datasetOf(kind, zone, shard))
  }
  join(state, component)
  return { ok: true, changed: true, clash: keepDetails(state, component, details) }
}

export function componentCount({ components }: RegistryState): number {
  return COMPONENT_KINDS.reduce((sum, kind) => sum + components[kind].size, 0)
}

/** The dataset that lists a component. */
function datasetOf(kind: ComponentKind, zone: string, shard: string | undefined): string {
  if (kind === 'router') return datasets.routers(zone)
  return kind === 'bridge' ? datasets.shards(zone) : datasets.nodes(shard as string)
}

/** @returns whether two processes register in turns */
function keepDetails(state: RegistryState, component: Component, details: ComponentDetails): boolean {
  const { instance } = component.details
  const clash = details.instance !== undefined && details.instance === component.instanceBefore
  if (instance !== undefined && details.instance !== undefined && details.instance !== instance) {
    component.instanceBefore = instance
  }
  const before = countsIn(component.details)
  const room = REGISTRY_LIMITS.segmentCountsKeptMax - state.segmentCountsKept + before
  const { segment_counts: counts, ...others } = details
  // For display only: excess values are dropped, and the registration succeeds.
  component.details = counts !== undefined && Object.keys(counts).length <= room ? details : others
  state.segmentCountsKept += countsIn(component.details) - before
  return clash
}

function countsIn({ segment_counts: counts }: ComponentDetails): number {
  return counts === undefined ? 0 : Object.keys(counts).length
}

/** Adds a component to the lists, and bumps those that existing routers would otherwise never read again. */
function join(state: RegistryState, component: Component): void {
  const { kind, zone, shard } = component
  const isFirst = list(state, component) === 1
  if (!isFirst || kind === 'node') return
  // An edge router that requested a list before a route existed discarded the list but kept its version
  // (docs/design/http.md#heartbeats-and-versions).
  const dataset = kind === 'router' ? datasets.zoneSegments(zone) : datasets.segments(shard as string)
  if (state.versions.has(dataset)) bump(state, dataset)
}

/** @returns how many of its kind the zone (a router) or the shard has now */
function list(state: RegistryState, { kind, id, zone, shard }: Component): number {
  if (kind === 'router') return add(state.routersOf, zone, id)
  assert(shard !== undefined, 'bridges and nodes have a shard')
  if (kind === 'node') return add(state.nodesOf, shard, id)
  add(groupsOf(state.bridgesIn, zone), shard, id)
  return add(state.bridgesOf, shard, id)
}

function leave(state: RegistryState, component: Component): void {
  const { kind, shard } = component
  unlist(state, component)
  if (kind !== 'node' || shard === undefined || state.nodesOf.has(shard)) return
  const claim = state.claims.get(shard)
  if (claim === undefined || claim.term === 0) return
  // A shard restored from a backup starts at an older term. All of its nodes were stopped for that, so none of them
  // can be the old leader that the fence protects against.
  touchClaim(state, shard)
  claim.term = 0
}

function unlist(state: RegistryState, { kind, id, zone, shard }: Component): void {
  if (kind === 'router') {
    drop(state.routersOf, zone, id)
    return
  }
  assert(shard !== undefined, 'bridges and nodes have a shard')
  if (kind === 'bridge') {
    const inZone = groupsOf(state.bridgesIn, zone)
    drop(inZone, shard, id)
    if (inZone.size === 0) state.bridgesIn.delete(zone)
    drop(state.bridgesOf, shard, id)
    return
  }
  drop(state.nodesOf, shard, id)
}

/** Removes a component. @returns false when it is unknown */
export function deregister(state: RegistryState, kind: ComponentKind, id: string): boolean {
  const component = state.components[kind].get(id)
  if (!component) return false
  remove(state, component)
  bump(state, datasetOf(kind, component.zone, component.shard))
  return true
}

function remove(state: RegistryState, component: Component): void {
  touchComponent(state, component.kind, component.id)
  state.components[component.kind].delete(component.id)
  state.segmentCountsKept -= countsIn(component.details)
  leave(state, component)
}

/** The components without a heartbeat for longer than the timeout. */
export function silentComponents(state: RegistryState, nowMs: number, timeoutMs: number): Component[] {
  return COMPONENT_KINDS.flatMap((kind) =>
    [...state.components[kind].values()].filter(({ seenMs }) => nowMs - seenMs > timeoutMs),
  )
}

/**
 * Removes silent components. Each dataset is bumped once.
 *
 * @param candidates to look at, of silentComponents; the others stay
 */
export function expire(
  state: RegistryState,
  nowMs: number,
  timeoutMs: number,
  candidates: readonly Component[] = silentComponents(state, nowMs, timeoutMs),
): readonly Component[] {
  const gone = candidates.flatMap(({ kind, id }) => {
    const component = state.components[kind].get(id)
    return component && nowMs - component.seenMs > timeoutMs ? [component] : []
  })
  for (const component of gone) remove(state, component)
  for (const dataset of new Set(gone.map(({ kind, zone, shard }) => datasetOf(kind, zone, shard)))) bump(state, dataset)
  return gone
}

// Segments.

export type Push = { readonly zone: string; readonly segments: readonly string[]; readonly term: number | undefined }

export type Conflict = { readonly segment: string; readonly ownerShard: string; readonly ownerZone: string }

export type Pushed =
  | { readonly ok: true; readonly changed: boolean; readonly accepted: number; readonly conflicts: readonly Conflict[] }
  | { readonly ok: false; readonly refused: 'stale term'; readonly term: number }
  | { readonly ok: false; readonly refused: 'zone'; readonly zone: string }
  | {
      readonly ok: false
      readonly refused: 'conflicts'
      readonly accepted: number
      readonly conflicts: readonly Conflict[]
    }
  | { readonly ok: false; readonly refused: 'limit'; readonly reason: string }

/**
 * Applies the complete list of a shard's segments: new ones are appended to their queues, missing ones pass to the
 * next claimant.
 *
 * @param rejectsConflicts refuses a list with segments of other shards, and changes nothing
 */
export function pushSegments(state: RegistryState, shard: string, push: Push, rejectsConflicts: boolean): Pushed {
  const known = state.claims.get(shard)
  if (push.term !== undefined && known && push.term < known.term) {
    return { ok: false, refused: 'stale term', term: known.term }
  }
  const otherZone = zoneOfNodes(state, shard, push.zone)
  if (otherZone !== undefined) return { ok: false, refused: 'zone', zone: otherZone }
  const segments = sortedSegments(push.segments)
  if (rejectsConflicts) {
    const conflicts = conflictsOf(state, shard, segments)
    if (conflicts.length > 0)
      return { ok: false, refused: 'conflicts', accepted: segments.length - conflicts.length, conflicts }
  }
  if (!hasRoomFor(state, [datasets.segments(shard), datasets.zoneSegments(push.zone)])) {
    return { ok: false, refused: 'limit', reason: TOO_MANY_DATASETS }
  }
  const more = segments.length - (known?.segments.length ?? 0)
  if (more > 0 && state.claimCount + more > REGISTRY_LIMITS.claimsMax) {
    return { ok: false, refused: 'limit', reason: `the registry already holds ${state.claimCount} segments` }
  }
  const changed = setClaim(state, shard, push.zone, segments)
  const claim = state.claims.get(shard) as Claim
  const isNewTerm = push.term !== undefined && push.term > claim.term
  if (isNewTerm) {
    touchClaim(state, shard)
    claim.term = push.term
  }
  const conflicts = conflictsOf(state, shard, segments)
  return { ok: true, changed: changed || isNewTerm, accepted: segments.length - conflicts.length, conflicts }
}

/** The zone of a shard's nodes when none of them is in `zone`. */
function zoneOfNodes(state: RegistryState, shard: string, zone: string): string | undefined {
  let other: string | undefined
  for (const id of state.nodesOf.get(shard) ?? []) {
    const node = state.components.node.get(id) as Component
    if (node.zone === zone) return undefined
    if (other === undefined || compareText(node.zone, other) < 0) other = node.zone
  }
  return other
}

function conflictsOf(state: RegistryState, shard: string, segments: readonly string[]): Conflict[] {
  return segments.flatMap((segment) => {
    const owner = state.queues.get(segment)?.[0]
    if (owner === undefined || owner === shard) return []
    return [{ segment, ownerShard: owner, ownerZone: (state.claims.get(owner) as Claim).zone }]
  })
}

/** @returns whether anything changed */
function setClaim(state: RegistryState, shard: string, zone: string, segments: readonly string[]): boolean {
  const known = state.claims.get(shard)
  const before = known?.segments ?? []
  const { added, removed } = difference(before, segments)
  const moved = known !== undefined && known.zone !== zone
  if (known && !moved && added.length === 0 && removed.length === 0) {
    return false
  }
  const view = createView(state)
  view.touchShard(shard)
  if (moved) for (const segment of state.ownedBy.get(shard) ?? []) view.watch(segment)
  for (const segment of [...added, ...removed]) view.watch(segment)

  touchClaim(state, shard)
  if (known) drop(state.shardsIn, known.zone, shard)
  add(state.shardsIn, zone, shard)
  const claim = known ?? { zone, term: 0, segments }
  claim.zone = zone
  claim.segments = segments
  state.claims.set(shard, claim)
  state.claimCount += segments.length - before.length
  for (const segment of removed) leaveQueue(state, segment, shard)
  for (const segment of added) {
    // The position reserved for the shard is now its own.
    if (state.reservations.get(segment)?.shard === shard) setReservation(state, segment, undefined)
    else setQueue(state, segment, [...(state.queues.get(segment) ?? []), shard])
  }
  view.bumpWhatChanged()
  return true
}

function leaveQueue(state: RegistryState, segment: string, shard: string): void {
  setQueue(
    state,
    segment,
    (state.queues.get(segment) ?? []).filter((each) => each !== shard),
  )
}

function setReservation(state: RegistryState, segment: string, reservation: Reservation | undefined): void {
  touchReservation(state, segment)
  if (reservation) state.reservations.set(segment, reservation)
  else state.reservations.delete(segment)
}

function setQueue(state: RegistryState, segment: string, queue: readonly string[]): void {
  touchQueue(state, segment)
  const before = state.queues.get(segment) ?? []
  assert(new Set(queue).size === queue.length, 'a shard is in a queue once')
  if (before.length > 1) state.conflictCount -= 1
  if (queue.length > 1) state.conflictCount += 1
  if (before[0] !== undefined && before[0] !== queue[0]) drop(state.ownedBy, before[0], segment)
  if (queue[0] !== undefined && before[0] !== queue[0]) add(state.ownedBy, queue[0], segment)
  if (queue.length === 0) state.queues.delete(segment)
  else state.queues.set(segment, queue)
}

/** Compares owners before and after a change, and bumps the datasets that list segments differently. */
function createView(state: RegistryState) {
  const before = new Map<string, { readonly shard: string; readonly zone: string } | undefined>()
  const shards = new Set<string>()
  return {
    /** Its list or its zone changed, regardless of ownership. */
    touchShard: (shard: string) => shards.add(shard),
    watch: (segment: string) => before.set(segment, ownerOf(state, segment)),
    bumpWhatChanged() {
      const zones = new Set<string>()
      for (const [segment, was] of before) {
        const is = ownerOf(state, segment)
        if (was?.shard !== is?.shard) for (const owner of [was, is]) if (owner) shards.add(owner.shard)
        if (was?.zone !== is?.zone) for (const owner of [was, is]) if (owner) zones.add(owner.zone)
      }
      for (const shard of shards) bump(state, datasets.segments(shard))
      for (const zone of zones) bump(state, datasets.zoneSegments(zone))
    },
  }
}

/** The shard that a segment is routed to. */
export function ownerOf(
  state: RegistryState,
  segment: string,
): { readonly shard: string; readonly zone: string } | undefined {
  const shard = state.queues.get(segment)?.[0]
  return shard === undefined ? undefined : { shard, zone: (state.claims.get(shard) as Claim).zone }
}

/** Entries of exactly one of two sorted lists. */
function difference(before: readonly string[], after: readonly string[]): { added: string[]; removed: string[] } {
  const added: string[] = []
  const removed: string[] = []
  let i = 0
  let j = 0
  while (i < before.length || j < after.length) {
    const [a, b] = [before[i], after[j]]
    const order = a === undefined ? 1 : b === undefined ? -1 : compareText(a, b)
    if (order < 0) removed.push(a as string)
    if (order > 0) added.push(b as string)
    if (order <= 0) i += 1
    if (order >= 0) j += 1
  }
  return { added, removed }
}

/** Removes the claims of a shard. @returns whether it was allowed: not while it has live nodes */
export function forgetShard(state: RegistryState, shard: string): 'forgotten' | 'unknown' | 'has nodes' {
  const claim = state.claims.get(shard)
  if (!claim) return 'unknown'
  if (state.nodesOf.has(shard)) return 'has nodes'
  const view = createView(state)
  view.touchShard(shard)
  const reserved = [...state.reservations].flatMap(([segment, each]) => (each.shard === shard ? [segment] : []))
  const all = [...claim.segments, ...reserved]
  for (const segment of all) view.watch(segment)
  for (const segment of reserved) setReservation(state, segment, undefined)
  for (const segment of all) leaveQueue(state, segment, shard)
  touchClaim(state, shard)
  drop(state.shardsIn, claim.zone, shard)
  state.claims.delete(shard)
  state.claimCount -= claim.segments.length
  view.bumpWhatChanged()
  return 'forgotten'
}

export type Reserved =
  | { readonly ok: true; readonly changed: boolean }
  | { readonly ok: false; readonly refused: 'unknown shard' }
  | { readonly ok: false; readonly refused: 'owned'; readonly owner: string }
  | { readonly ok: false; readonly refused: 'limit'; readonly reason: string }

/** Routes a segment to a shard that does not have it yet, for RESERVATION_MS or until the shard claims it. */
export function reserve(state: RegistryState, segment: string, shard: string, nowMs: number): Reserved {
  const owner = state.queues.get(segment)?.[0]
  if (owner !== undefined && owner !== shard) return { ok: false, refused: 'owned', owner }
  const reservation = { shard, untilMs: nowMs + RESERVATION_MS }
  if (owner === shard) {
    const isReserved = state.reservations.has(segment)
    if (isReserved) setReservation(state, segment, reservation)
    return { ok: true, changed: isReserved }
  }
  const zone = state.claims.get(shard)?.zone ?? zoneOfComponents(state, shard)
  if (zone === undefined) return { ok: false, refused: 'unknown shard' }
  if (state.reservations.size >= REGISTRY_LIMITS.reservationsMax) {
    return { ok: false, refused: 'limit', reason: `there are already ${REGISTRY_LIMITS.reservationsMax} reservations` }
  }
  if (!hasRoomFor(state, [datasets.segments(shard), datasets.zoneSegments(zone)])) {
    return { ok: false, refused: 'limit', reason: TOO_MANY_DATASETS }
  }
  if (!state.claims.has(shard)) setClaim(state, shard, zone, [])
  const view = createView(state)
  view.watch(segment)
  setReservation(state, segment, reservation)
  setQueue(state, segment, [shard])
  view.bumpWhatChanged()
  return { ok: true, changed: true }
}

/** The first zone by name: the order in which components registered is lost with a restart. */
function zoneOfComponents({ nodesOf, bridgesOf, components }: RegistryState, shard: string): string | undefined {
  const zones = (kind: 'node' | 'bridge', ids: Iterable<string>) =>
    Array.from(ids, (id) => (components[kind].get(id) as Component).zone).sort(compareText)
  return zones('node', nodesOf.get(shard) ?? [])[0] ?? zones('bridge', bridgesOf.get(shard) ?? [])[0]
}

/** Ends a reservation. @returns false when it does not exist */
export function endReservation(state: RegistryState, segment: string): boolean {
  const reservation = state.reservations.get(segment)
  if (!reservation) return false
  const view = createView(state)
  view.watch(segment)
  setReservation(state, segment, undefined)
  leaveQueue(state, segment, reservation.shard)
  view.bumpWhatChanged()
  return true
}

/** Ends expired reservations. @returns their segments */
export function expireReservations(state: RegistryState, nowMs: number): readonly string[] {
  const over = [...state.reservations].flatMap(([segment, { untilMs }]) => (untilMs <= nowMs ? [segment] : []))
  for (const segment of over) endReservation(state, segment)
  return over
}

/**
 * Restores persisted claims and reservations into a new state.
 *
 * @returns '' or what is inconsistent
 */
export function restoreClaims(
  state: RegistryState,
  kept: {
    readonly claims: readonly (readonly [shard: string, claim: Claim])[]
    readonly contested: readonly (readonly [segment: string, queue: readonly string[]])[]
    readonly reservations: readonly (readonly [segment: string, reservation: Reservation])[]
  },
): string {
  assert(state.claims.size === 0, 'a fresh state has no claims')
  for (const [shard, { zone, term, segments }] of kept.claims) {
    setClaim(state, shard, zone, sortedSegments(segments))
    const claim = state.claims.get(shard) as Claim
    claim.term = term
  }
  for (const [segment, reservation] of kept.reservations) {
    const { shard } = reservation
    const queue = state.queues.get(segment) ?? []
    if (!state.claims.has(shard) || queue.includes(shard)) {
      return `reservations: ${segment} is for ${shard}, which is unknown or has it`
    }
    state.reservations.set(segment, reservation)
    setQueue(state, segment, [...queue, shard])
  }
  for (const [segment, queue] of kept.contested) {
    const is = state.queues.get(segment) ?? []
    if (is.length !== queue.length || !is.every((shard) => queue.includes(shard))) {
      return `contested: ${segment}: ${queue.join(', ')} are not the shards that claim it`
    }
    setQueue(state, segment, queue)
  }
  return ''
}

// Codecs.

/** Applies a codec list. @returns whether it differs from the previous one */
export function setCodecs(state: RegistryState, codecs: readonly string[]): boolean {
  const same = codecs.length === state.codecs.length && codecs.every((name, i) => name === state.codecs[i])
  if (same) return false
  if (state.journal) state.journal.codecs ??= state.codecs
  state.codecs = codecs
  state.globalVersion += 1
  return true
}

// Values from a storage, without the rules.

/** Sets values as they are, and keeps the derived parts in step. The state takes over the objects. */
export function writeValues(state: RegistryState, values: Values): void {
  assert(state.journal === undefined, 'values of a storage are not a change')
  for (const [kind, id, component] of values.components) {
    const known = state.components[kind].get(id)
    if (known) {
      state.components[kind].delete(id)
      state.segmentCountsKept -= countsIn(known.details)
      unlist(state, known)
    }
    if (!component) continue
    state.components[kind].set(id, component)
    state.segmentCountsKept += countsIn(component.details)
    list(state, component)
  }
  for (const [shard, claim] of values.claims) {
    const known = state.claims.get(shard)
    if (known) drop(state.shardsIn, known.zone, shard)
    state.claimCount += (claim?.segments.length ?? 0) - (known?.segments.length ?? 0)
    if (claim) {
      state.claims.set(shard, claim)
      add(state.shardsIn, claim.zone, shard)
    } else state.claims.delete(shard)
  }
  for (const [segment, reservation] of values.reservations) setReservation(state, segment, reservation)
  for (const [segment, queue] of values.queues) setQueue(state, segment, queue)
  for (const [dataset, version] of values.versions) {
    if (version === undefined) state.versions.delete(dataset)
    else state.versions.set(dataset, version)
  }
  if (values.codecs) state.codecs = values.codecs
  state.globalVersion = values.globalVersion
}

/** Records a heartbeat that another process received. @returns whether two processes register in turns */
export function noteHeartbeat(
  state: RegistryState,
  component: Component,
  details: ComponentDetails,
  nowMs: number,
): boolean {
  component.seenMs = nowMs
  return keepDetails(state, component, details)
}

// Reads.

export function routersIn(state: RegistryState, zone: string): string[] {
  return sorted(state.routersOf.get(zone))
}

/** Shards with a live bridge in the zone, each with its bridges. */
export function bridgesByShard(
  state: RegistryState,
  zone: string,
): { readonly [shard: string]: { bridges: string[] } } {
  const shards = state.bridgesIn.get(zone) ?? new Map<string, Set<string>>()
  return Object.fromEntries(sorted(shards.keys()).map((shard) => [shard, { bridges: sorted(shards.get(shard)) }]))
}

export function nodesOfShard(state: RegistryState, shard: string): string[] {
  return sorted(state.nodesOf.get(shard))
}

export function segmentsOfShard(state: RegistryState, shard: string): string[] {
  return sorted(state.ownedBy.get(shard))
}

export function segmentsOfZone(state: RegistryState, zone: string): string[] {
  // A segment has one owner and an owner one zone, so there are no repeats.
  return sorted([...(state.shardsIn.get(zone) ?? [])].flatMap((shard) => [...(state.ownedBy.get(shard) ?? [])]))
}

/** Components of a kind, sorted by id. */
export function componentsOf({ components }: RegistryState, kind: ComponentKind): Component[] {
  return [...components[kind].values()].sort((a, b) => compareText(a.id, b.id))
}

/** Every zone with at least one component. */
export function zones(state: RegistryState): string[] {
  const nodes = [...state.components.node.values()].map(({ zone }) => zone)
  return sorted([...state.routersOf.keys(), ...state.bridgesIn.keys(), ...state.shardsIn.keys(), ...nodes])
}

/** Every shard that has claims, nodes or bridges. */
export function shards(state: RegistryState): string[] {
  return sorted([...state.claims.keys(), ...state.nodesOf.keys(), ...state.bridgesOf.keys()])
}

/** Zone of a shard: where it pushed from, else the zone of its nodes or bridges. */
export function zoneOfShard(state: RegistryState, shard: string): string | undefined {
  return state.claims.get(shard)?.zone ?? zoneOfComponents(state, shard)
}

/** Segments that more than one shard claims, with their queues. */
export function conflicts(state: RegistryState): { readonly segment: string; readonly shards: readonly string[] }[] {
  if (state.conflictCount === 0) return []
  return [...state.queues]
    .flatMap(([segment, queue]) => (queue.length > 1 ? [{ segment, shards: queue }] : []))
    .sort((a, b) => compareText(a.segment, b.segment))
}

function sorted(names: Iterable<string> | undefined): string[] {
  return sortedSegments(names ?? [])
}

// Groups: names by a key, never an empty set.

/** @returns how many the group has now */
function add(groups: Groups, key: string, name: string): number {
  const group = groups.get(key) ?? new Set()
  group.add(name)
  groups.set(key, group)
  return group.size
}

function drop(groups: Groups, key: string, name: string): void {
  const group = groups.get(key)
  group?.delete(name)
  if (group?.size === 0) groups.delete(key)
}

function groupsOf(map: Map<string, Groups>, key: string): Groups {
  const groups = map.get(key) ?? new Map()
  map.set(key, groups)
  return groups
}

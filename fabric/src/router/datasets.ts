/**
 * What a router knows from the registry, as fetched, and the table derived from all of it. Pure: no sockets, clock or
 * randomness.
 *
 * Existing routers remember the version of a list that they could not place and then never read it again. Here a
 * version is remembered only together with its list, so nothing is lost.
 *
 *   edge   zones/{z}/segments   segment → zone       zone mode   shards/{s}/segments   segment → shard
 *          zones/{z}/routers    zone → router ids                zones/{own}/shards    shard → bridge ids
 *                                                                zones/{own}/segments  segments without a shard: 503
 */

import { compareText, sortedSegments } from '@vacancy/shared/contract'

export type RouterMode = 'edge' | 'zone'

/**
 * Where requests of a segment go.
 *
 * - `hops`: ids of zone routers (edge) or of bridges (zone), at least one, sorted. `via` is the zone or the shard.
 * - `unknown`: the tables are loaded and have no route: 404.
 * - `no_hops`: the route is known, but no router or bridge of it is registered: 503. `via` is '' where the zone lists
 *   the segment and no shard with a bridge does.
 * - `unloaded`: no table was ever loaded: 503.
 */
export type Lookup =
  | { readonly kind: 'hops'; readonly via: string; readonly hops: readonly string[] }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'no_hops'; readonly via: string }
  | { readonly kind: 'unloaded' }

/** One row of the reply to GETSEGMENTS. `count` is 0 where the registry reports none. */
export type SegmentCount = { readonly name: string; readonly count: number }

/** `zone` of segments: the zone that a shard's list names. */
export type DatasetValue =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'shards'; readonly shards: ReadonlyMap<string, readonly string[]> }
  | { readonly kind: 'segments'; readonly zone: string | undefined; readonly segments: readonly string[] }

type Dataset = {
  /** As in the response; undefined when it must be read again whatever the version is. */
  readonly version: number | undefined
  readonly value: DatasetValue
  /** While the registry is warming: the list before, of which nothing is removed yet. */
  readonly kept: DatasetValue | undefined
}

/** Written by observeVersions and storeDataset only. */
export type Datasets = {
  readonly mode: RouterMode
  /** Own zone in zone mode, else ''. */
  readonly zone: string
  epoch: string | undefined
  globalVersion: number | undefined
  /** By key of the registry, such as `zones/z1/routers`. */
  readonly lists: Map<string, Dataset>
}

/** A response of `GET /versions`. */
export type Versions = {
  readonly global_version: number
  readonly versions: { readonly [key: string]: number }
  readonly epoch?: string | undefined
  readonly warming?: boolean | undefined
}

export type DatasetKey =
  | { readonly list: 'routers'; readonly zone: string }
  | { readonly list: 'shards'; readonly zone: string }
  | { readonly list: 'zone-segments'; readonly zone: string }
  | { readonly list: 'shard-segments'; readonly shard: string }

export function createDatasets(mode: RouterMode, zone: string | undefined): Datasets {
  return { mode, zone: zone ?? '', epoch: undefined, globalVersion: undefined, lists: new Map() }
}

/** The key of `/versions`. Its path is `/` and the same with encoded ids. */
export function keyOf(key: DatasetKey): string {
  switch (key.list) {
    case 'routers':
      return `zones/${key.zone}/routers`
    case 'shards':
      return `zones/${key.zone}/shards`
    case 'zone-segments':
      return `zones/${key.zone}/segments`
    case 'shard-segments':
      return `shards/${key.shard}/segments`
  }
}

/** The path that returns the list. */
export function pathOf(key: DatasetKey): string {
  const id = encodeURIComponent(key.list === 'shard-segments' ? key.shard : key.zone)
  return key.list === 'shard-segments' ? `/shards/${id}/segments` : `/zones/${id}/${key.list.replace('zone-', '')}`
}

const KEY = /^(zones|shards)\/(.+)\/(routers|shards|segments|nodes)$/s

function parseKey(text: string): DatasetKey | undefined {
  const [, owner, id = '', list] = KEY.exec(text) ?? []
  if (owner === 'shards') return list === 'segments' ? { list: 'shard-segments', shard: id } : undefined
  if (list === 'routers' || list === 'shards') return { list, zone: id }
  return list === 'segments' ? { list: 'zone-segments', zone: id } : undefined
}

/**
 * Takes note of a response of `/versions`, before the lists are fetched.
 *
 * An unknown epoch, or a global version that went down, means another state: every version is forgotten, and every
 * list is read again. Unless the registry is warming, lists that it no longer has are removed, and the parts that were
 * kept during the warming are dropped.
 *
 * @returns `isReset`: the state was replaced. `isChanged`: the table may have changed.
 */
export function observeVersions(
  datasets: Datasets,
  versions: Versions,
): { readonly isReset: boolean; readonly isChanged: boolean } {
  const { lists } = datasets
  let isChanged = false
  const isReset =
    versions.epoch !== datasets.epoch || versions.global_version < (datasets.globalVersion ?? versions.global_version)
  datasets.epoch = versions.epoch
  datasets.globalVersion = versions.global_version
  for (const [key, dataset] of lists) {
    if (versions.warming === true) {
      if (isReset) lists.set(key, { ...dataset, version: undefined })
    } else if (!Object.hasOwn(versions.versions, key)) {
      lists.delete(key)
      isChanged = true
    } else if (isReset || dataset.kept) {
      lists.set(key, { ...dataset, version: isReset ? undefined : dataset.version, kept: undefined })
      isChanged ||= dataset.kept !== undefined
    }
  }
  return { isReset, isChanged }
}

/**
 * The lists to fetch now. In zone mode those of shards follow from the list of shards, so it is called again after
 * that was stored.
 */
export function wantedLists(datasets: Datasets, { versions }: Versions): readonly DatasetKey[] {
  return usedLists(datasets, versions).filter((key) => {
    const text = keyOf(key)
    return Object.hasOwn(versions, text) && versions[text] !== datasets.lists.get(text)?.version
  })
}

function usedLists({ mode, zone, lists }: Datasets, versions: Versions['versions']): DatasetKey[] {
  if (mode === 'edge') {
    const keys = Object.keys(versions).map(parseKey)
    return keys.filter((key) => key?.list === 'routers' || key?.list === 'zone-segments') as DatasetKey[]
  }
  const shards = lists.get(keyOf({ list: 'shards', zone }))
  const names = shards === undefined ? [] : shardsOf(shards)
  return [
    { list: 'shards', zone },
    { list: 'zone-segments', zone },
    ...names.map((shard) => ({ list: 'shard-segments', shard }) as const),
  ]
}

function shardsOf({ value, kept }: Dataset): string[] {
  const both = [value, kept].flatMap((each) => (each?.kind === 'shards' ? [...each.shards.keys()] : []))
  return [...new Set(both)].sort(compareText)
}

/** Stores a fetched list. While the registry is warming, nothing of the list before is removed. */
export function storeDataset(
  { lists }: Datasets,
  key: DatasetKey,
  version: number,
  value: DatasetValue,
  isWarming: boolean,
): void {
  const text = keyOf(key)
  const before = lists.get(text)
  const kept = isWarming && before ? union(before.value, before.kept) : undefined
  lists.set(text, { version, value, kept })
}

/** Everything of both; the first wins where they differ. */
export function union(first: DatasetValue, second: DatasetValue | undefined): DatasetValue {
  if (second === undefined || second.kind !== first.kind) return first
  if (first.kind === 'ids') return { kind: 'ids', ids: [...new Set([...first.ids, ...(second as typeof first).ids])] }
  if (first.kind === 'segments') {
    const segments = new Set([...first.segments, ...(second as typeof first).segments])
    return { kind: 'segments', zone: first.zone, segments: [...segments] }
  }
  const shards = new Map(first.shards)
  for (const [shard, ids] of (second as typeof first).shards) {
    shards.set(shard, [...new Set([...(shards.get(shard) ?? []), ...ids])])
  }
  return { kind: 'shards', shards }
}

/** The lookup table. Immutable; replaced as a whole. */
export type RouteTable = {
  /** Segment → its zone or shard; '' for one that the own zone lists and no shard with a bridge has. */
  readonly routes: ReadonlyMap<string, string>
  /** Zone or shard → the result of a lookup. */
  readonly results: ReadonlyMap<string, Lookup>
  /** Every id of every result, sorted. */
  readonly hops: readonly string[]
  /** Segments that two zones or shards list: the first by id has them. Only existing registries list such. */
  readonly conflicts: number
}

type Draft = {
  readonly routes: Map<string, string>
  readonly hops: Map<string, Set<string>>
  conflicts: number
}

/**
 * Derives the table from all lists at once. Lists of the registry win over those kept from before; among equals the
 * first zone or shard by id wins.
 */
export function deriveTable(datasets: Datasets): RouteTable {
  const draft: Draft = { routes: new Map(), hops: new Map(), conflicts: 0 }
  const keys = [...datasets.lists.keys()].sort(compareText)
  const parts = [...partsOf(datasets, keys, true), ...partsOf(datasets, keys, false)]
  for (const { key, value } of parts) addHops(draft, datasets, key, value)
  for (const { key, value, isConfirmed } of parts) {
    if (value.kind === 'segments') addRoutes(draft, datasets, key, value, isConfirmed)
  }
  if (datasets.mode === 'zone') addUnplaced(draft, datasets)
  const results = new Map<string, Lookup>()
  for (const via of new Set([...draft.routes.values(), ...draft.hops.keys()])) {
    const hops = [...(draft.hops.get(via) ?? [])].sort(compareText)
    results.set(via, hops.length > 0 ? { kind: 'hops', via, hops } : { kind: 'no_hops', via })
  }
  const hops = [...new Set([...draft.hops.values()].flatMap((ids) => [...ids]))].sort(compareText)
  return { routes: draft.routes, results, hops, conflicts: draft.conflicts }
}

type Part = { readonly key: DatasetKey; readonly value: DatasetValue; readonly isConfirmed: boolean }

/** @param isConfirmed the lists as the registry has them, or those from before that it has not replaced yet */
function partsOf({ lists }: Datasets, keys: readonly string[], isConfirmed: boolean): Part[] {
  return keys.flatMap((text) => {
    const key = parseKey(text)
    const { version, value, kept } = lists.get(text) as Dataset
    const part = (version !== undefined) === isConfirmed ? value : isConfirmed ? undefined : kept
    return key && part ? [{ key, value: part, isConfirmed }] : []
  })
}

function addHops({ hops }: Draft, { mode, zone }: Datasets, key: DatasetKey, value: DatasetValue): void {
  if (mode === 'edge' && key.list === 'routers' && value.kind === 'ids') addIds(hops, key.zone, value.ids)
  if (mode === 'zone' && key.list === 'shards' && key.zone === zone && value.kind === 'shards') {
    for (const [shard, ids] of value.shards) addIds(hops, shard, ids)
  }
}

function addIds(hops: Map<string, Set<string>>, via: string, ids: readonly string[]): void {
  const known = hops.get(via) ?? new Set()
  hops.set(via, known)
  for (const id of ids) if (id !== '') known.add(id)
}

function addRoutes(
  draft: Draft,
  { mode, zone }: Datasets,
  key: DatasetKey,
  value: Extract<DatasetValue, { kind: 'segments' }>,
  isConfirmed: boolean,
): void {
  if (mode === 'edge' ? key.list !== 'zone-segments' : key.list !== 'shard-segments') return
  const via = key.list === 'shard-segments' ? key.shard : (key as { readonly zone: string }).zone
  // A shard may have moved to another zone while its bridges still register in this one.
  if (mode === 'zone' && value.zone !== zone) return
  const isLive = mode === 'edge' || (draft.hops.get(via)?.size ?? 0) > 0
  for (const segment of value.segments) {
    const other = draft.routes.get(segment)
    if (other === undefined) draft.routes.set(segment, via)
    else if (other !== via && isConfirmed) {
      draft.conflicts += 1
      // A shard whose bridges are gone keeps its list, and may have lost the segment since.
      if (isLive && mode === 'zone' && (draft.hops.get(other)?.size ?? 0) === 0) draft.routes.set(segment, via)
    }
  }
}

/** Segments of the own zone whose shard has no bridge yet: they exist, so 404 would be wrong. */
function addUnplaced({ routes }: Draft, { zone, lists }: Datasets): void {
  const dataset = lists.get(keyOf({ list: 'zone-segments', zone }))
  for (const value of [dataset?.value, dataset?.kept]) {
    if (value?.kind !== 'segments') continue
    for (const segment of value.segments) if (!routes.has(segment)) routes.set(segment, '')
  }
}

const UNKNOWN: Lookup = { kind: 'unknown' }
export const UNLOADED: Lookup = { kind: 'unloaded' }

/** @param table undefined when none was ever loaded */
export function lookup(table: RouteTable | undefined, segment: string): Lookup {
  if (table === undefined) return UNLOADED
  const via = table.routes.get(segment)
  return via === undefined ? UNKNOWN : (table.results.get(via) as Lookup)
}

/** Most segments in a reply to GETSEGMENTS: two fields of a u16 count each. */
export const SEGMENTS_MAX = 32_767

/** Sorted by UTF-8 bytes. Segments that no zone or shard has are left out. */
export function segmentList(
  table: RouteTable | undefined,
  counts: ReadonlyMap<string, number>,
): { readonly segments: readonly SegmentCount[]; readonly isCut: boolean } {
  const names = sortedSegments([...(table?.routes ?? [])].filter(([, via]) => via !== '').map(([name]) => name))
  const segments = names.slice(0, SEGMENTS_MAX).map((name) => ({ name, count: counts.get(name) ?? 0 }))
  return { segments, isCut: names.length > SEGMENTS_MAX }
}

// The guard against a wiped registry.

/** Rounds that confirm a much smaller table must be this far apart. */
export const CONFIRM_MS = 2_000

export type TableGuard = {
  readonly table: RouteTable | undefined
  /** When a table with fewer than half of the segments was first shown; undefined while there is none. */
  readonly smallSinceMs: number | undefined
}

/**
 * Offers the table of a round. One with fewer than half of the present segments is held back until it was shown in two
 * rounds, 2 s apart, by a registry that is not warming.
 *
 * @param nowMs monotonic
 */
export function offerTable(guard: TableGuard, table: RouteTable, nowMs: number, isWarming: boolean): TableGuard {
  const present = guard.table?.routes.size ?? 0
  if (table.routes.size * 2 >= present) return { table, smallSinceMs: undefined }
  if (isWarming) return { ...guard, smallSinceMs: undefined }
  if (guard.smallSinceMs === undefined) return { ...guard, smallSinceMs: nowMs }
  return nowMs - guard.smallSinceMs >= CONFIRM_MS ? { table, smallSinceMs: undefined } : guard
}

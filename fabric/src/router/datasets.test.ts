import { compareText } from '@vacancy/shared/contract'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  CONFIRM_MS,
  createDatasets,
  type DatasetKey,
  type Datasets,
  type DatasetValue,
  deriveTable,
  keyOf,
  lookup,
  observeVersions,
  offerTable,
  pathOf,
  type RouterMode,
  type RouteTable,
  SEGMENTS_MAX,
  segmentList,
  storeDataset,
  type Versions,
  wantedLists,
} from './datasets.ts'
import { restoreTables, storedTables, storeTables } from './refresh.ts'

/** What a registry has. Each change raises the version of its list. */
type World = {
  epoch: string | undefined
  global: number
  readonly versions: Map<string, number>
  /** Zone → routers. */
  readonly routers: Map<string, string[]>
  /** Shard → zone, bridges, segments. */
  readonly shards: Map<string, { zone: string; bridges: string[]; segments: string[] }>
}

const worldOf = (epoch: string | undefined): World => ({
  epoch,
  global: 0,
  versions: new Map(),
  routers: new Map(),
  shards: new Map(),
})

function bump(world: World, key: string): void {
  world.global += 1
  world.versions.set(key, (world.versions.get(key) ?? 0) + 1)
}

const versionsOf = (world: World, isWarming = false): Versions => ({
  global_version: world.global,
  versions: Object.fromEntries(world.versions),
  epoch: world.epoch,
  ...(world.epoch !== undefined && { warming: isWarming }),
})

function listOf(world: World, key: DatasetKey): DatasetValue | undefined {
  const shards = [...world.shards]
  switch (key.list) {
    case 'routers':
      return { kind: 'ids', ids: world.routers.get(key.zone) ?? [] }
    case 'shards': {
      const live = shards.filter(([, { zone, bridges }]) => zone === key.zone && bridges.length > 0)
      return { kind: 'shards', shards: new Map(live.map(([id, { bridges }]) => [id, bridges])) }
    }
    case 'zone-segments': {
      const segments = shards.flatMap(([, shard]) => (shard.zone === key.zone ? shard.segments : []))
      return { kind: 'segments', zone: key.zone, segments: [...new Set(segments)] }
    }
    case 'shard-segments': {
      const shard = world.shards.get(key.shard)
      return shard && { kind: 'segments', zone: shard.zone, segments: shard.segments }
    }
  }
}

/** A round as the shell does it. @param fails whether the fetch of a list fails */
function round(
  datasets: Datasets,
  world: World,
  isWarming = false,
  fails: (key: string) => boolean = () => false,
): { readonly fetched: readonly string[] } {
  const versions = versionsOf(world, isWarming)
  observeVersions(datasets, versions)
  const fetched = new Set<string>()
  for (let pass = 0; pass < 2; pass++) {
    for (const key of wantedLists(datasets, versions)) {
      const text = keyOf(key)
      if (fetched.has(text)) continue
      fetched.add(text)
      const value = listOf(world, key)
      if (value && !fails(text)) storeDataset(datasets, key, world.versions.get(text) ?? 0, value, isWarming)
    }
  }
  return { fetched: [...fetched] }
}

/** One shard per zone, with a router and a bridge. */
function twoZones(): World {
  const world = worldOf('e1')
  for (const n of ['1', '2']) {
    setRouters(world, `z${n}`, [`r${n}`])
    setShard(world, `s${n}`, { zone: `z${n}`, bridges: [`b${n}`], segments: [`city${n}`, `coast${n}`] })
  }
  return world
}

function setRouters(world: World, zone: string, ids: string[]): void {
  world.routers.set(zone, ids)
  bump(world, `zones/${zone}/routers`)
}

function setShard(world: World, shard: string, state: { zone: string; bridges: string[]; segments: string[] }): void {
  const before = world.shards.get(shard)
  world.shards.set(shard, state)
  for (const zone of new Set([before?.zone ?? state.zone, state.zone])) {
    if (before?.bridges.join() !== state.bridges.join() || before?.zone !== state.zone)
      bump(world, `zones/${zone}/shards`)
    if (before?.segments.join() !== state.segments.join() || before?.zone !== state.zone)
      bump(world, `zones/${zone}/segments`)
  }
  bump(world, `shards/${shard}/segments`)
}

const edge = () => createDatasets('edge', undefined)
const inZone = (zone: string) => createDatasets('zone', zone)

test('an edge leads segments to the routers of their zones', () => {
  const datasets = edge()
  round(datasets, twoZones())

  const table = deriveTable(datasets)

  expect(lookup(table, 'city2')).toEqual({ kind: 'hops', via: 'z2', hops: ['r2'] })
  expect(lookup(table, 'City2')).toEqual({ kind: 'unknown' })
  expect(lookup(undefined, 'city2')).toEqual({ kind: 'unloaded' })
  expect(table.hops).toEqual(['r1', 'r2'])
})

test('a zone router leads segments of its own zone to the bridges of their shards', () => {
  const datasets = inZone('z1')
  const { fetched } = round(datasets, twoZones())

  const table = deriveTable(datasets)

  expect(lookup(table, 'city1')).toEqual({ kind: 'hops', via: 's1', hops: ['b1'] })
  expect(lookup(table, 'city2')).toEqual({ kind: 'unknown' })
  expect(fetched).toEqual(['zones/z1/shards', 'zones/z1/segments', 'shards/s1/segments'])
})

test('a zone is compared exactly: z1 does not react to z10 or to foreign shards', () => {
  const world = twoZones()
  setShard(world, 's10', { zone: 'z10', bridges: ['b10'], segments: ['x'] })
  const datasets = inZone('z1')
  round(datasets, world)
  setShard(world, 's10', { zone: 'z10', bridges: ['b11'], segments: ['y'] })
  setShard(world, 's2', { zone: 'z2', bridges: ['b2'], segments: ['z'] })

  expect(round(datasets, world).fetched).toEqual([])
})

test('a route without a registered hop differs from an unknown segment', () => {
  const world = twoZones()
  setRouters(world, 'z1', [])
  setShard(world, 's2', { zone: 'z2', bridges: [], segments: ['city2'] })
  const [at, zone] = [edge(), inZone('z2')]
  round(at, world)
  round(zone, world)

  expect(lookup(deriveTable(at), 'city1')).toEqual({ kind: 'no_hops', via: 'z1' })
  expect(lookup(deriveTable(zone), 'city2')).toEqual({ kind: 'no_hops', via: '' })
  expect(lookup(deriveTable(zone), 'city3')).toEqual({ kind: 'unknown' })
})

test('segments that were published before any router registered are found when one does', () => {
  const world = worldOf(undefined)
  setShard(world, 's1', { zone: 'z1', bridges: ['b1'], segments: ['city1'] })
  const datasets = edge()
  round(datasets, world)
  expect(lookup(deriveTable(datasets), 'city1').kind).toBe('no_hops')

  setRouters(world, 'z1', ['r1'])
  round(datasets, world)

  expect(lookup(deriveTable(datasets), 'city1')).toEqual({ kind: 'hops', via: 'z1', hops: ['r1'] })
})

test('a bridge that was away returns with its routes, although the list of its shard did not change', () => {
  const world = twoZones()
  setShard(world, 's3', { zone: 'z1', bridges: ['b3'], segments: ['city3'] })
  const datasets = inZone('z1')
  round(datasets, world)
  const away = { zone: 'z1', bridges: [], segments: ['city3'] }
  world.shards.set('s3', away)
  bump(world, 'zones/z1/shards')
  round(datasets, world)
  expect(lookup(deriveTable(datasets), 'city3')).toEqual({ kind: 'no_hops', via: 's3' })

  world.shards.set('s3', { ...away, bridges: ['b3'] })
  bump(world, 'zones/z1/shards')
  round(datasets, world)

  expect(lookup(deriveTable(datasets), 'city3')).toEqual({ kind: 'hops', via: 's3', hops: ['b3'] })
})

test('a shard that names another zone is skipped', () => {
  const world = twoZones()
  const datasets = inZone('z1')
  round(datasets, world)
  world.shards.set('s1', { zone: 'z2', bridges: ['b1'], segments: ['city1'] })
  bump(world, 'shards/s1/segments')
  bump(world, 'zones/z1/segments')
  round(datasets, world)

  expect(lookup(deriveTable(datasets), 'city1')).toEqual({ kind: 'unknown' })
})

test('another epoch, or a lower global version, means that everything is read again', () => {
  const world = twoZones()
  const datasets = edge()
  round(datasets, world)
  expect(round(datasets, world).fetched).toEqual([])

  world.epoch = 'e2'
  expect(round(datasets, world).fetched).toHaveLength(4)
  world.global -= 1
  expect(round(datasets, world).fetched).toHaveLength(4)
  expect(round(datasets, world).fetched).toEqual([])
})

test('a registry without an epoch that lost its state is noticed by its lower global version', () => {
  const world = twoZones()
  world.epoch = undefined
  const datasets = edge()
  round(datasets, world)
  const fresh = worldOf(undefined)
  setRouters(fresh, 'z1', ['r9'])
  // The same version number as before.
  expect(fresh.versions.get('zones/z1/routers')).toBe(world.versions.get('zones/z1/routers'))

  round(datasets, fresh)

  expect(deriveTable(datasets).hops).toEqual(['r9'])
})

test('while the registry is warming nothing is removed, and additions count', () => {
  const datasets = edge()
  round(datasets, twoZones())
  const fresh = worldOf('e2')
  setRouters(fresh, 'z1', ['r9'])
  setShard(fresh, 's9', { zone: 'z1', bridges: ['b9'], segments: ['city9'] })

  round(datasets, fresh, true)

  const warm = deriveTable(datasets)
  expect(lookup(warm, 'city1')).toEqual({ kind: 'hops', via: 'z1', hops: ['r1', 'r9'] })
  expect(lookup(warm, 'city2')).toEqual({ kind: 'hops', via: 'z2', hops: ['r2'] })
  expect(lookup(warm, 'city9')).toEqual({ kind: 'hops', via: 'z1', hops: ['r1', 'r9'] })
  round(datasets, fresh)
  const settled = deriveTable(datasets)
  expect([...settled.routes.keys()]).toEqual(['city9'])
  expect(settled.hops).toEqual(['r9'])
})

test('a segment that moved while the registry is warming goes to its new zone', () => {
  const datasets = edge()
  round(datasets, twoZones())
  const fresh = worldOf('e2')
  setRouters(fresh, 'z2', ['r2'])
  setShard(fresh, 's2', { zone: 'z2', bridges: ['b2'], segments: ['city1'] })

  round(datasets, fresh, true)

  expect(lookup(deriveTable(datasets), 'city1')).toMatchObject({ via: 'z2' })
})

test('a list that cannot be fetched keeps its old part and is tried again', () => {
  const world = twoZones()
  const datasets = edge()
  round(datasets, world)
  setShard(world, 's1', { zone: 'z1', bridges: ['b1'], segments: ['new1'] })
  setShard(world, 's2', { zone: 'z2', bridges: ['b2'], segments: ['new2'] })

  round(datasets, world, false, (key) => key === 'zones/z1/segments')

  const table = deriveTable(datasets)
  expect(lookup(table, 'city1').kind).toBe('hops')
  expect(lookup(table, 'new2').kind).toBe('hops')
  expect(round(datasets, world).fetched).toEqual(['zones/z1/segments'])
  expect(lookup(deriveTable(datasets), 'new1').kind).toBe('hops')
})

test('of two zones that list a segment the first by id has it, and the conflict is counted', () => {
  const world = twoZones()
  setShard(world, 's2', { zone: 'z2', bridges: ['b2'], segments: ['city1'] })
  const datasets = edge()
  round(datasets, world)

  const table = deriveTable(datasets)

  expect(lookup(table, 'city1')).toMatchObject({ via: 'z1' })
  expect(table.conflicts).toBe(1)
})

test('of two shards that list a segment one with a bridge has it', () => {
  const world = worldOf('e1')
  setShard(world, 'a', { zone: 'z1', bridges: ['ba'], segments: ['x'] })
  setShard(world, 'b', { zone: 'z1', bridges: ['bb'], segments: ['y'] })
  const datasets = inZone('z1')
  round(datasets, world)
  setShard(world, 'a', { zone: 'z1', bridges: [], segments: [] })
  setShard(world, 'b', { zone: 'z1', bridges: ['bb'], segments: ['x', 'y'] })
  round(datasets, world)

  expect(lookup(deriveTable(datasets), 'x')).toEqual({ kind: 'hops', via: 'b', hops: ['bb'] })
})

const name = fc.constantFrom('a', 'b', 'c', 'd', 'münchen', '😀')
const zoneId = fc.constantFrom('z1', 'z10', 'z2')
const step = fc.oneof(
  fc.record({ kind: fc.constant('routers' as const), zone: zoneId, ids: fc.uniqueArray(name, { maxLength: 2 }) }),
  fc.record({
    kind: fc.constant('shard' as const),
    shard: fc.constantFrom('s1', 's2', 's3'),
    zone: zoneId,
    bridges: fc.uniqueArray(name, { maxLength: 2 }),
    segments: fc.uniqueArray(name, { maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant('round' as const), fails: fc.array(fc.boolean(), { maxLength: 8 }) }),
  fc.record({ kind: fc.constant('reset' as const), hasEpoch: fc.boolean() }),
)

/** The table that follows from the world alone: a segment of each shard, in order of the shards. */
function expected(world: World, mode: RouterMode, zone: string): Map<string, string[]> {
  const routes = new Map<string, string[]>()
  for (const [shard, state] of [...world.shards].sort(([a], [b]) => compareText(a, b))) {
    for (const segment of state.segments) {
      const hops = mode === 'edge' ? (world.routers.get(state.zone) ?? []) : state.bridges
      if ((mode === 'edge' || state.zone === zone) && world.versions.has(`shards/${shard}/segments`))
        routes.set(segment, [...(routes.get(segment) ?? []), ...hops])
    }
  }
  return routes
}

test('whatever changed and failed, a good round leads to a table of the registry and to no other', () => {
  fc.assert(
    fc.property(fc.constantFrom('edge' as const, 'zone' as const), fc.array(step, { maxLength: 30 }), (mode, steps) => {
      let world = worldOf('e1')
      const datasets = mode === 'edge' ? edge() : inZone('z1')
      let resets = 0
      for (const each of steps) {
        if (each.kind === 'routers') setRouters(world, each.zone, each.ids)
        else if (each.kind === 'shard') setShard(world, each.shard, each)
        else if (each.kind === 'round') {
          let i = 0
          round(datasets, world, false, () => each.fails[i++] ?? false)
        } else {
          resets += 1
          // Without an epoch, only a lower global version shows a reset.
          world = worldOf(each.hasEpoch ? `r${resets}` : 'e1')
          if (!each.hasEpoch && datasets.globalVersion !== undefined && datasets.epoch === 'e1') {
            datasets.globalVersion = Number.MAX_SAFE_INTEGER
          }
        }
      }
      round(datasets, world)
      const table = deriveTable(datasets)

      const wanted = expected(world, mode, 'z1')
      for (const [segment, hops] of wanted) {
        const found = lookup(table, segment)
        if (hops.length === 0) expect(found.kind).toBe('no_hops')
        else if (found.kind === 'hops') for (const hop of found.hops) expect(hops).toContain(hop)
        // The first zone may have no routers.
        else expect(found.kind).toBe('no_hops')
      }
      for (const [segment, via] of table.routes) {
        if ((table.results.get(via) as { kind: string }).kind === 'hops') expect([...wanted.keys()]).toContain(segment)
      }
      // Nothing is left to fetch.
      expect(round(datasets, world).fetched).toEqual([])
    }),
    { numRuns: 500 },
  )
})

test('lists survive the cache, and are not read again when nothing changed', () => {
  for (const make of [edge, () => inZone('z1')]) {
    const world = twoZones()
    const datasets = make()
    round(datasets, world)

    const text = JSON.stringify(storeTables(datasets, ['wifi'], 5))
    const restored = make()
    restoreTables(restored, storedTables.parse(JSON.parse(text)))

    expect(deriveTable(restored)).toEqual(deriveTable(datasets))
    expect(round(restored, world).fetched).toEqual([])
  }
})

test('lists of which parts are kept are stored whole and read again', () => {
  const datasets = edge()
  round(datasets, twoZones())
  const fresh = worldOf('e2')
  setRouters(fresh, 'z1', ['r9'])
  round(datasets, fresh, true)

  const restored = edge()
  restoreTables(restored, storedTables.parse(JSON.parse(JSON.stringify(storeTables(datasets, undefined, 5)))))

  expect(lookup(deriveTable(restored), 'city1')).toEqual({ kind: 'hops', via: 'z1', hops: ['r1', 'r9'] })
  expect(round(restored, fresh).fetched).toEqual(['zones/z1/routers'])
})

const tableOf = (segments: number): RouteTable => ({
  routes: new Map(Array.from({ length: segments }, (_, i) => [`s${i}`, 'z'])),
  results: new Map(),
  hops: [],
  conflicts: 0,
})

test('a table with fewer than half of the segments needs two rounds, 2 s apart', () => {
  const [large, small] = [tableOf(9), tableOf(4)]
  const guard = offerTable({ table: large, smallSinceMs: undefined }, small, 1_000, false)

  expect(guard).toEqual({ table: large, smallSinceMs: 1_000 })
  expect(offerTable(guard, small, 1_000 + CONFIRM_MS - 1, false).table).toBe(large)
  expect(offerTable(guard, small, 1_000 + CONFIRM_MS, false)).toEqual({ table: small, smallSinceMs: undefined })
})

test('a warming registry confirms no small table, and a large one ends the wait', () => {
  const [large, small] = [tableOf(9), tableOf(4)]
  const guard = { table: large, smallSinceMs: 1_000 }

  expect(offerTable(guard, small, 60_000, true)).toEqual({ table: large, smallSinceMs: undefined })
  expect(offerTable(guard, tableOf(5), 1_500, false)).toEqual({ table: tableOf(5), smallSinceMs: undefined })
  expect(offerTable({ table: undefined, smallSinceMs: undefined }, tableOf(0), 0, true).table).toEqual(tableOf(0))
})

test('the list of segments is sorted by bytes, bounded, and has the known counts', () => {
  const routes = new Map([...Array(SEGMENTS_MAX).keys()].map((i) => [`seg${i}`, 'z']))
  routes.set('aaa', 'z').set('', '').set('unplaced', '')

  const { segments, isCut } = segmentList({ ...tableOf(0), routes }, new Map([['aaa', 7]]))

  expect(segments).toHaveLength(SEGMENTS_MAX)
  expect(segments[0]).toEqual({ name: 'aaa', count: 7 })
  expect(segments[1]).toEqual({ name: 'seg0', count: 0 })
  expect(isCut).toBe(true)
  expect(segmentList(undefined, new Map())).toEqual({ segments: [], isCut: false })
})

test('paths have encoded ids', () => {
  expect(pathOf({ list: 'routers', zone: 'a/b' })).toBe('/zones/a%2Fb/routers')
  expect(pathOf({ list: 'shard-segments', shard: 's 1' })).toBe('/shards/s%201/segments')
  expect(pathOf({ list: 'zone-segments', zone: 'z' })).toBe('/zones/z/segments')
})

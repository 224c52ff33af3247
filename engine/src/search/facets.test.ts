/** Counts of a search against single searches of each value, and against plain objects, by the kernel and its reference. */

import { formatDay, parseDay } from '@vacancy/shared'
import { type MapCell, type ReplyResult, SEARCH_FACETS } from '@vacancy/shared/wire'
import { seeded, tries, type Uniform } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import type { Dispatcher } from '../tcp/dispatch.ts'
import {
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  SAMPLE_CODECS,
} from '../testing/node-in-memory.ts'
import { inOneGo, inSlices, payloadOf, slicedLike } from '../testing/sliced-search.ts'

const TODAY = parseDay('2026-11-20') as number
const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
const NIGHTS = 3
const ROOMS = ['double', 'single', 'twin, sea view']
const TYPES = ['hotel', 'villa', 'hostel']
const CATEGORIES = ['budget', 'standard', 'luxury']
const AMENITIES = ['bar', 'gym', 'pool', 'spa', 'wifi']
/** More than have a bitmap. */
const AREAS = Array.from({ length: 70 }, (_, n) => `area ${n}`)
const STARS = [1, 2, 3, 4, 5]
/** A table with bitmaps, and one that is too small for them. */
const SIZES = { large: 180, small: 30 }
const BOX = { south: 40, west: 176, north: 48, east: -168 }

const pick = <T>(list: readonly T[], random: Uniform) => list[Math.floor(random() * list.length)] as T
const some = <T>(list: readonly T[], random: Uniform, share: number) => list.filter(() => random() < share)
const night = (offset: number) => formatDay(TODAY + offset)

function write(node: NodeInMemory, command: Parameters<typeof ask>[1], fields: LooseFields): void {
  expect(ask(node, command, fields).error).toBe('')
}

type Place = { readonly latitude: number; readonly longitude: number }
type World = { readonly node: NodeInMemory; readonly places: Map<string, Place> }

/** Few prices and few positions, on the edges of cells too: most keys are equal. */
function build(random: Uniform): World {
  const node = createNodeInMemory(TODAY)
  const places = new Map<string, Place>()
  for (const [segment, size] of Object.entries(SIZES)) {
    for (let n = 0; n < size; n++) {
      const propertyId = `${segment}-${n}`
      const east = 170 + Math.floor(random() * 45) / 2
      const place = {
        latitude: 38 + Math.floor(random() * 25) / 2,
        longitude: random() < 0.05 ? 180 : east > 180 ? east - 360 : east,
      }
      places.set(propertyId, place)
      write(node, 'SETPROP', {
        ...{ segment, propertyId, ...place, area: pick(AREAS, random), propertyType: pick(TYPES, random) },
        ...{ category: pick(CATEGORIES, random), stars: pick(STARS, random), amenities: some(AMENITIES, random, 0.4) },
      })
      for (const roomType of some(ROOMS, random, 0.7)) {
        for (let offset = 0; offset < NIGHTS; offset++) {
          if (random() < 0.05) continue
          write(node, 'SETROOMPKG', {
            ...{ propertyId, roomType, date: night(offset), availability: Math.floor(random() * 4) },
            ...{ finalPrice: 100 + Math.floor(random() * 5) * 10, rateFeatures: some(SAMPLE_CODECS, random, 0.6) },
          })
        }
      }
    }
  }
  return { node, places }
}

let built: World | undefined
const world = () => (built ??= build(seeded(SEED)))

/** The search with one value of a facet; undefined where its own filter excludes the value. */
function withValue(facet: string, value: unknown, search: LooseFields, isFree: boolean): LooseFields | undefined {
  const { stars, minStars, minTotal, maxTotal, roomTypes, anyRoomType, ...rest } = search
  const own = { stars, minStars, minTotal, maxTotal, roomTypes, anyRoomType }
  const fields = (changed: LooseFields) =>
    Object.fromEntries(Object.entries({ ...own, ...rest, ...changed }).filter(([, given]) => given !== undefined))
  if (facet === 'stars') {
    if (isFree) return fields({ stars: value, minStars: undefined })
    return stars === undefined || stars === value ? fields({ stars: value }) : undefined
  }
  if (facet === 'amenities' || facet === 'rateFeatures') {
    const others = isFree ? [] : ((search[facet] ?? []) as string[])
    return fields({ [facet]: [...new Set([...others, value])] })
  }
  if (facet === 'total') {
    const [least, most] = value as [number, number]
    const [from, to] = isFree ? [0, Infinity] : [Number(minTotal ?? 0), Number(maxTotal ?? Infinity)]
    const [low, high] = [Math.max(least, from), Math.min(most, to)]
    return low > high
      ? undefined
      : fields({ minTotal: BigInt(low), maxTotal: high === Infinity ? undefined : BigInt(high) })
  }
  if (facet === 'roomType') {
    if (!isFree && roomTypes !== undefined && !(roomTypes as string[]).includes(value as string)) return undefined
    return fields({ roomTypes: [value], anyRoomType: undefined })
  }
  return isFree || (search[facet] ?? value) === value ? fields({ [facet]: value }) : undefined
}

function matches(isStay: boolean, fields: LooseFields | undefined): number {
  if (!fields) return 0
  const { error, result } = ask(world().node, isStay ? 'SEARCHAVAIL' : 'SEARCHPROP', { ...fields, count: 1, limit: 1n })
  expect(error).toBe('')
  return Number(result.page?.matches)
}

function randomSearch(random: Uniform, isStay: boolean): LooseFields {
  const maybe = (fields: LooseFields, share = 0.3) => (random() < share ? fields : {})
  const nights = 1 + Math.floor(random() * NIGHTS)
  const room = pick([{ roomType: pick(ROOMS, random) }, { anyRoomType: 1 }, { roomTypes: ROOMS.slice(0, 2) }], random)
  return {
    segment: pick(Object.keys(SIZES), random),
    ...maybe({ propertyType: pick(TYPES, random) }),
    ...maybe({ category: pick(CATEGORIES, random) }),
    ...maybe({ area: pick(AREAS, random) }, 0.1),
    ...maybe({ stars: pick(STARS, random) }, 0.2),
    ...maybe({ minStars: 1 + Math.floor(random() * 3) }, 0.2),
    ...maybe({ amenities: some(AMENITIES, random, 0.3) }),
    ...maybe(BOX),
    ...(isStay && {
      ...room,
      dates: Array.from({ length: nights }, (_, n) => night(n)),
      ...maybe({ availability: 2 }),
      ...maybe({ rateFeatures: some(SAMPLE_CODECS, random, 0.3) }),
      ...maybe({ maxTotal: BigInt(120 * nights) }, 0.2),
      ...maybe({ minTotal: BigInt(110 * nights) }, 0.2),
    }),
  }
}

/** What to ask for, and the values of each facet in the order of a reply, with their counts by single searches. */
function randomFacets(random: Uniform, isStay: boolean, search: LooseFields) {
  const isAny = isStay && search['roomType'] === undefined
  const names = Object.keys(SEARCH_FACETS).slice(0, isAny ? 8 : isStay ? 7 : 5)
  const asked = some(names, random, 0.6)
  const free = some(asked, random, 0.5)
  const bits = (of: readonly string[]) => of.reduce((sum, name) => sum | SEARCH_FACETS[name as 'stars'], 0)
  const bounds = some([100, 110, 200, 230, 250, 260, 330, 360], random, 0.5)
  if (bounds.length === 0) bounds.push(240)
  const most = pick([1, 3, 255], random)
  const ranges = [0, ...bounds].map((from, n) => [from, (bounds[n] ?? Infinity) - 1])
  const values: { readonly [facet: string]: readonly unknown[] } = {
    ...{ propertyType: TYPES, category: CATEGORIES, stars: STARS, area: AREAS, amenities: AMENITIES },
    ...{ rateFeatures: SAMPLE_CODECS, total: ranges, roomType: ROOMS },
  }
  const expected = asked.map((facet) => {
    const entries = (values[facet] ?? []).map((value) => ({
      value,
      count: matches(isStay, withValue(facet, value, search, free.includes(facet))),
    }))
    if (facet === 'total') {
      const totals = entries.map(({ value, count }) => {
        const [minTotal, maxTotal] = value as [number, number]
        return { minTotal, ...(maxTotal < Infinity && { maxTotal }), count }
      })
      return [facet, totals]
    }
    entries.sort((a, b) => b.count - a.count || Buffer.compare(Buffer.from(`${a.value}`), Buffer.from(`${b.value}`)))
    return [facet, entries.filter(({ count }) => count > 0).slice(0, most)]
  })
  const fields = {
    ...(asked.length > 0 && { facets: bits(asked), facetValues: most }),
    ...(free.length > 0 && { disjunctiveFacets: bits(free) }),
    ...(asked.includes('total') && { totalBounds: bounds }),
  }
  return { fields, expected: asked.length > 0 ? Object.fromEntries(expected) : undefined }
}

/** The same bytes in one go and in the smallest slices. */
function result(isStay: boolean, fields: LooseFields): ReplyResult {
  const { node } = world()
  const command = isStay ? 'SEARCHAVAIL' : 'SEARCHPROP'
  const payload = payloadOf(command, fields as never)
  for (const dispatcher of node.dispatchers) {
    const whole = inOneGo(node, (dispatcher as Dispatcher).searcher, payload)
    const sliced = inSlices(node, slicedLike(node, dispatcher), payload, () => {})
    expect(Buffer.from(sliced.bytes).equals(Buffer.from(whole))).toBe(true)
  }
  const { error, result } = ask(node, command, fields)
  expect(error).toBe('')
  return result
}

const shown = (fields: LooseFields) =>
  JSON.stringify(fields, (_, value) => (typeof value === 'bigint' ? Number(value) : value))

test(`the count of each value is that of a search for it, with and without the facet's own filter (VACANCY_SEED=${SEED})`, () => {
  const random = seeded(SEED)
  for (let round = 0; round < tries(12); round++) {
    const isStay = random() < 0.8
    const search = randomSearch(random, isStay)
    const { fields, expected } = randomFacets(random, isStay, search)
    const order = search['roomType'] || !isStay ? pick([undefined, 4, 6], random) : pick([undefined, 1, 6], random)
    const page = {
      order,
      limit: BigInt(pick([1, 4, 1000], random)),
      ...(isStay && random() < 0.5 && { compact: 1 }),
    }
    const { facets } = result(isStay, { ...search, ...page, ...fields })

    expect(facets, shown({ isStay, ...search, ...page, ...fields })).toEqual(expected)
  }
})

test('counts are of all matches, however early the page is full', () => {
  const node = createNodeInMemory(TODAY)
  const most = 600
  for (let n = 0; n < most; n++) {
    write(node, 'SETPROP', {
      ...{
        segment: 's',
        propertyId: `p${n}`,
        area: 'a',
        propertyType: 'hotel',
        category: 'budget',
        stars: 1 + (n % 2),
      },
      ...{ latitude: 45, longitude: 11, amenities: [] },
    })
  }

  const { result } = ask(node, 'SEARCHPROP', { segment: 's', facets: SEARCH_FACETS.stars, limit: 1n })

  expect(result.facets?.stars).toEqual([1, 2].map((value) => ({ value, count: most / 2 })))
})

/** How far east of the western edge, all around the globe. */
const eastOf = (longitude: number, west: number) => (longitude - west + 720) % 360

function cellsOf(
  hits: readonly (Place & { total?: number | bigint })[],
  box: typeof BOX,
  [columns, rows]: [number, number],
) {
  const cells = new Map<string, { column: number; row: number; hits: typeof hits }>()
  const width = eastOf(box.east, box.west)
  for (const hit of hits) {
    const column = Math.min(columns - 1, Math.floor((eastOf(hit.longitude, box.west) / width) * columns))
    const row = Math.min(rows - 1, Math.floor(((hit.latitude - box.south) / (box.north - box.south)) * rows))
    const cell = cells.get(`${row} ${column}`) ?? { column, row, hits: [] }
    cells.set(`${row} ${column}`, { ...cell, hits: [...cell.hits, hit] })
  }
  const mean = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length
  return [...cells.values()]
    .sort((a, b) => a.row - b.row || a.column - b.column)
    .map(({ column, row, hits }) => {
      const longitude = box.west + mean(hits.map((hit) => eastOf(hit.longitude, box.west)))
      return {
        ...{ column, row, count: hits.length },
        ...(hits[0]?.total !== undefined && { lowestTotal: Math.min(...hits.map(({ total }) => Number(total))) }),
        latitude: expect.closeTo(mean(hits.map((hit) => hit.latitude)), 5),
        longitude: expect.closeTo(longitude > 180 ? longitude - 360 : longitude, 5),
      }
    })
}

test('cells have number, lowest total and mean position of the properties in them, edges and 180 degrees included', () => {
  const random = seeded(SEED + 1)
  const { places } = world()
  for (let round = 0; round < tries(15); round++) {
    const isStay = random() < 0.8
    const search = randomSearch(random, isStay)
    const south = 38 + Math.floor(random() * 8) / 2
    const box = pick(
      [BOX, { ...BOX, west: 170, east: 180 }, { ...BOX, west: -180, east: -172 }, { ...BOX, south, north: south + 2 }],
      random,
    )
    const cells: [number, number] = [pick([1, 2, 4, 8, 32], random), pick([1, 2, 4, 16, 32], random)]
    const fields = { ...search, ...box, order: 6, want: isStay ? 1 : 4, limit: 1000n }
    const all = result(isStay, fields)
    const hits = (all.properties ?? all.propertyIds?.map((propertyId) => ({ propertyId, total: undefined })) ?? []).map(
      ({ propertyId, total }) => ({ ...(places.get(propertyId) as Place), ...(total !== undefined && { total }) }),
    )
    const found = result(isStay, { ...fields, cells, limit: BigInt(pick([1, 1000], random)) }).cells as MapCell[]

    expect(found, shown({ isStay, ...fields, cells })).toEqual(cellsOf(hits, box, cells))
  }
})

test('the cursor of a page with counts continues without them', () => {
  const fields = { segment: 'large', roomType: 'double', dates: [night(0)], order: 1, count: 2, limit: 5n }
  const first = result(true, { ...fields, ...BOX, facets: 4, cells: [4, 4] })
  const next = result(true, { ...fields, ...BOX, cursor: first.page?.cursor })

  expect(next.facets).toBeUndefined()
  expect(next.page?.index).toBe(first.page?.index)
  expect(next.properties).toHaveLength(5)
})

test('an unknown segment has no values, and each range of the total', () => {
  const fields = {
    segment: 'nowhere',
    anyRoomType: 1,
    dates: [night(0)],
    facets: 255,
    totalBounds: [100],
    cells: [2, 2],
  }
  const { facets, cells } = result(true, { ...fields, ...BOX })
  const ranges = [
    { minTotal: 0, maxTotal: 99, count: 0 },
    { minTotal: 100, count: 0 },
  ]

  expect(Object.values(facets ?? {}).flat()).toEqual(ranges)
  expect(Object.keys(facets ?? {})).toHaveLength(8)
  expect(cells).toEqual([])
})

const STAY: LooseFields = { segment: 'small', roomType: 'double', dates: [night(0), night(1)] }
const PROP: LooseFields = { segment: 'small' }

test.each<[string, LooseFields, string]>([
  ['SEARCHAVAIL', { ...STAY, facets: 0 }, 'facets must be 1 to 255, got 0'],
  ['SEARCHPROP', { ...PROP, facets: 32 }, 'facets must be 1 to 31 in SEARCHPROP, got 32'],
  ['SEARCHAVAIL', { ...STAY, facets: 128 }, 'facets with roomType needs anyRoomType or roomTypes'],
  ['SEARCHAVAIL', { ...STAY, facets: 64 }, 'facets with total needs totalBounds'],
  ['SEARCHAVAIL', { ...STAY, facets: 1, totalBounds: [5] }, 'totalBounds needs facets with total'],
  ['SEARCHAVAIL', { ...STAY, facets: 64, totalBounds: [5, 5] }, 'totalBounds must ascend from 1 on, got 5 after 5'],
  ['SEARCHAVAIL', { ...STAY, facets: 64, totalBounds: [0] }, 'totalBounds must ascend from 1 on, got 0 after 0'],
  [
    'SEARCHAVAIL',
    { ...STAY, facets: 64, totalBounds: Array.from({ length: 33 }, (_, n) => n + 1) },
    'totalBounds must be 1 to 32 numbers of 8 bytes, got 264 bytes',
  ],
  [
    'SEARCHAVAIL',
    { ...STAY, dates: [night(0), night(2)], facets: 64, totalBounds: [5] },
    'facets with total needs consecutive dates, 2026-11-20 and 2026-11-22 are not',
  ],
  [
    'SEARCHAVAIL',
    { ...STAY, facets: 1, disjunctiveFacets: 5 },
    'disjunctiveFacets must be some of facets, got 5 and facets 1',
  ],
  ['SEARCHAVAIL', { ...STAY, facets: 1, facetValues: 0 }, 'facetValues must be 1 to 255, got 0'],
  ['SEARCHAVAIL', { ...STAY, facetValues: 5 }, 'facetValues needs facets'],
  ['SEARCHAVAIL', { ...STAY, cells: [4, 4] }, 'cells needs a box, south, west, north and east'],
  ['SEARCHAVAIL', { ...STAY, ...BOX, cells: [33, 2] }, 'cells must be 1 to 32 columns and rows, got 33 and 2'],
  ['SEARCHAVAIL', { ...STAY, ...BOX, cells: [4] }, 'cells must be two numbers, columns and rows, got 1'],
  [
    'SEARCHAVAIL',
    { ...STAY, ...BOX, dates: [night(0), night(2)], cells: [4, 4] },
    'cells needs consecutive dates, 2026-11-20 and 2026-11-22 are not',
  ],
])('%s refuses %o: %s', (command, fields, text) => {
  const { node } = world()
  const { searcher } = node.dispatchers[0] as Dispatcher
  inOneGo(node, searcher, payloadOf(command as 'SEARCHAVAIL', fields as never))
  expect(searcher.values.fault).toBe(`VALIDATION_ERROR: ${text}`)
})

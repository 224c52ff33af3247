/** Pages of a search against a second implementation over plain objects, by the kernel and its reference. */

import { formatDay, LIMITS, packPropertyId, parseDay } from '@vacancy/shared'
import { decodeReply, type Result, SEARCH_ORDERS, SEARCH_WANTS } from '@vacancy/shared/wire'
import { seeded, tries, type Uniform } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { TABLE } from '../store/layout.ts'
import { type Dispatcher, minIndexOf } from '../tcp/dispatch.ts'
import { ask, createNodeInMemory, type LooseFields, type NodeInMemory, orderRows } from '../testing/node-in-memory.ts'
import { inOneGo, inSlices, open, payloadOf, slicedLike } from '../testing/sliced-search.ts'
import { tableOfSearch } from './plan.ts'

const TODAY = parseDay('2026-11-20') as number
const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
const NIGHTS = 5
const ROOMS = ['double', 'single', 'twin, sea view']
const TYPES = ['hotel', 'villa']
type Word = { availability: number; finalPrice: number; features: string[] }
type Place = {
  readonly id: string
  readonly type: string
  readonly stars: number
  readonly latitude: number
  readonly longitude: number
  /** By room type and night. */
  readonly words: Map<string, Word>
}
type World = { readonly node: NodeInMemory; readonly places: Place[] }

const pick = <T>(list: readonly T[], random: Uniform) => list[Math.floor(random() * list.length)] as T
const night = (offset: number) => formatDay(TODAY + offset)

/** Few prices and few positions: most keys are equal. */
function createPlace(n: number, random: Uniform): Place {
  const hex = n.toString(16).padStart(8, '0')
  const words = new Map<string, Word>()
  for (const room of ROOMS) {
    if (random() < 0.2) continue
    for (let offset = 0; offset < NIGHTS; offset++) {
      if (random() < 0.08) continue
      const features = random() < 0.7 ? ['wifi'] : []
      words.set(`${room} ${offset}`, {
        availability: Math.floor(random() * 5),
        finalPrice: 100 + Math.floor(random() * 4) * (random() < 0.1 ? 1_000_000_000 : 10),
        features,
      })
    }
  }
  const isFar = random() < 0.5
  return {
    id: n % 3 === 0 ? `p${(n * 7919) % 1000}_${n}` : `${hex.split('').reverse().join('')}-0000-4000-8000-000000000000`,
    type: pick(TYPES, random),
    stars: 1 + Math.floor(random() * 5),
    latitude: isFar ? pick([-90, -17, 17, 90], random) : 45 + Math.floor(random() * 4) * 0.01,
    longitude: isFar ? pick([-180, -179.99, 179.99, 180, 0], random) : 11 + Math.floor(random() * 4) * 0.01,
    words,
  }
}

function write(node: NodeInMemory, command: Parameters<typeof ask>[1], fields: LooseFields): void {
  expect(ask(node, command, fields).error).toBe('')
}

function store(node: NodeInMemory, { id, type, stars, latitude, longitude, words }: Place): void {
  const rest = { area: 'a', category: 'c', amenities: [] }
  write(node, 'SETPROP', { segment: 's', propertyId: id, propertyType: type, stars, latitude, longitude, ...rest })
  for (const [key, { features, ...word }] of words) {
    const at = key.lastIndexOf(' ')
    const date = night(Number(key.slice(at + 1)))
    write(node, 'SETROOMPKG', { propertyId: id, roomType: key.slice(0, at), date, ...word, rateFeatures: features })
  }
}

function build(random: Uniform, count: number): World {
  const node = createNodeInMemory(TODAY)
  const places = Array.from({ length: count }, (_, n) => createPlace(n, random))
  for (const place of places) store(node, place)
  return { node, places }
}

/** Along a great circle (haversine). */
function metresTo(place: Place, fields: LooseFields): number {
  const rad = (degrees: unknown) => ((degrees as number) * Math.PI) / 180
  const dLat = (rad(fields['latitude']) - rad(place.latitude)) / 2
  const dLon = (rad(fields['longitude']) - rad(place.longitude)) / 2
  const h =
    Math.sin(dLat) ** 2 + Math.cos(rad(place.latitude)) * Math.cos(rad(fields['latitude'])) * Math.sin(dLon) ** 2
  return 2 * LIMITS.earthRadiusMetres * Math.asin(Math.min(1, Math.sqrt(h)))
}

function isInBox({ latitude, longitude }: Place, fields: LooseFields): boolean {
  const [south, west, north, east] = ['south', 'west', 'north', 'east'].map((name) => fields[name] as number)
  if (south === undefined || west === undefined || north === undefined || east === undefined) return true
  // How far east of the western edge, all around the globe; 180 and -180 are one meridian.
  const turn = (degrees: number) => ((degrees % 360) + 360) % 360
  const width = west > east ? east + 360 - west : east - west
  return latitude >= south && latitude <= north && (width === 360 || turn(longitude - west) <= width + 1e-9)
}

type Hit = { place: Place; roomType: string; total: number }

/** The cheapest room that fits; undefined when none does. */
function hitOf(place: Place, fields: LooseFields): Hit | undefined {
  const { finalPrice = 2 ** 32, availability = 1, minTotal = 0, maxTotal = Number.MAX_VALUE } = fields
  const rooms = (fields['roomType'] ? [fields['roomType']] : (fields['roomTypes'] ?? ROOMS)) as string[]
  const hits = rooms.toSorted().flatMap((roomType) => {
    let total = 0
    for (const date of fields['dates'] as string[]) {
      const word = place.words.get(`${roomType} ${(parseDay(date) as number) - TODAY}`)
      const wanted = (fields['rateFeatures'] ?? []) as string[]
      if (!word || word.availability < (availability as number) || word.finalPrice > (finalPrice as number)) return []
      if (!wanted.every((name) => word.features.includes(name))) return []
      total += word.finalPrice
    }
    return total >= (minTotal as number) && total <= (maxTotal as number) ? [{ place, roomType, total }] : []
  })
  return hits.sort((a, b) => a.total - b.total)[0]
}

const idOf = ({ id }: Place) => Buffer.from(packPropertyId(id) as Uint8Array)

/** All matches in order. */
function matchesOf({ places }: World, isStay: boolean, fields: LooseFields): Hit[] {
  const radius = (fields['radiusMetres'] ?? (fields['south'] === undefined ? 5_000 : Infinity)) as number
  const found = places.flatMap((place) => {
    if (fields['propertyType'] !== undefined && place.type !== fields['propertyType']) return []
    if (fields['minStars'] !== undefined && place.stars < (fields['minStars'] as number)) return []
    if (fields['propertyId'] !== undefined && place.id !== fields['propertyId']) return []
    if (fields['latitude'] !== undefined && metresTo(place, fields) > radius) return []
    if (!isInBox(place, fields)) return []
    return isStay ? (hitOf(place, fields) ?? []) : { place, roomType: '', total: 0 }
  })
  const order = (fields['order'] ?? (fields['roomType'] || !isStay ? 0 : 1)) as number
  const keys: { readonly [order: number]: (hit: Hit) => number[] } = {
    [SEARCH_ORDERS.row]: () => [],
    [SEARCH_ORDERS.total]: ({ total }) => [total],
    [SEARCH_ORDERS.totalDown]: ({ total }) => [-total],
    // Positions are equal, or far apart.
    [SEARCH_ORDERS.distance]: ({ place }) => [Math.round(metresTo(place, fields) * 1_000)],
    [SEARCH_ORDERS.stars]: ({ place, total }) => [-place.stars, total],
    [SEARCH_ORDERS.id]: () => [],
  }
  const keyOf = keys[order] as (hit: Hit) => number[]
  return found.sort((a, b) => {
    const [left, right] = [keyOf(a), keyOf(b)]
    const difference = left.findIndex((value, n) => value !== right[n])
    if (difference >= 0) return (left[difference] as number) - (right[difference] as number)
    return Buffer.compare(idOf(a.place), idOf(b.place))
  })
}

function randomSearch(random: Uniform, isStay: boolean, places: readonly Place[]): LooseFields {
  const some = (fields: LooseFields, share = 0.3) => (random() < share ? fields : {})
  const first = Math.floor(random() * (NIGHTS - 1))
  const nights = 1 + Math.floor(random() * Math.min(3, NIGHTS - first))
  const anyRoom = random() < 0.4
  const hasPosition = random() < 0.6
  const [south, north] = [pick([-90, -17, 45, 45.01], random), pick([45.02, 45.03, 90, 17], random)]
  const box = {
    ...{ south: Math.min(south, north), north: Math.max(south, north) },
    ...{ west: pick([-180, -179.99, 11, 11.01, 179.99, 180, 0], random) },
    east: pick([-180, -179.99, 11.02, 0, 179.99, 180, 12], random),
  }
  const orders = [...(isStay ? [1, 2] : []), ...(hasPosition ? [3] : []), 4, 6, ...(anyRoom && isStay ? [] : [0])]
  const order = pick(orders, random)
  const room = !anyRoom
    ? { roomType: pick(ROOMS, random) }
    : random() < 0.5
      ? { anyRoomType: 1 }
      : { roomTypes: ROOMS.filter(() => random() < 0.6).concat('nowhere') }
  const want = isStay ? 1 + Math.floor(random() * 15) : pick([2, 4, 6], random)
  return {
    segment: 's',
    order,
    count: 1,
    limit: BigInt(pick([1, 2, 3, 7, 50, 1_000], random)),
    want: hasPosition ? want : want & ~SEARCH_WANTS.distance || SEARCH_WANTS.position,
    ...some({ propertyType: pick(TYPES, random) }),
    ...some({ minStars: 1 + Math.floor(random() * 4) }),
    ...some({ minIndex: 0n }, 0.1),
    ...(hasPosition ? { latitude: 45.0123, longitude: 11.0217, ...some({ radiusMetres: 1_500 }) } : {}),
    ...some(box, 0.5),
    ...(isStay
      ? {
          ...room,
          dates: Array.from({ length: nights }, (_, n) => night(first + n)),
          ...some({ availability: Math.floor(random() * 3) }),
          ...some({ finalPrice: 120 }, 0.2),
          ...some({ rateFeatures: ['wifi'] }, 0.2),
          ...some({ maxTotal: BigInt(100 * nights + 20) }, 0.2),
          ...some({ minTotal: BigInt(100 * nights + 10) }, 0.2),
          ...some({ propertyId: pick(places, random).id }, 0.1),
          ...some({ compact: 1 }),
        }
      : {}),
  }
}

type Pages = { ids: string[]; hits: Result<'SEARCHAVAIL'>['properties']; matches: number[]; pages: number }

/** All pages of a search, one after the other. */
function walk(node: NodeInMemory, isStay: boolean, fields: LooseFields, between = () => {}): Pages {
  const all: Pages = { ids: [], hits: [], matches: [], pages: 0 }
  for (let cursor = ''; ; between()) {
    const { error, result } = ask(node, isStay ? 'SEARCHAVAIL' : 'SEARCHPROP', { ...fields, ...(cursor && { cursor }) })
    expect(error).toBe('')
    const hits =
      result.properties ?? result.propertyIds?.map((propertyId, n) => ({ propertyId, days: [], ...result.values?.[n] }))
    all.hits.push(...(hits ?? []))
    all.ids.push(...(hits ?? []).map(({ propertyId }) => propertyId))
    const { page } = result
    if (page?.matches !== undefined) all.matches.push(Number(page.matches))
    all.pages++
    cursor = page?.cursor ?? ''
    expect(page?.more).toBe(cursor !== '' || (fields['order'] === 0 && (page?.matches ?? 0) > (hits ?? []).length))
    if (cursor === '') return all
  }
}

test(`every order, filter, box, limit and choice of rooms gives the pages of plain objects, with the exact count (VACANCY_SEED=${SEED})`, () => {
  const random = seeded(SEED)
  const world = build(random, 170)
  for (let round = 0; round < tries(300); round++) {
    const isStay = random() < 0.8
    const fields = randomSearch(random, isStay, world.places)
    const expected = matchesOf(world, isStay, fields)
    const { ids, hits, matches } = walk(world.node, isStay, fields)
    const context = `${isStay} ${JSON.stringify(fields, (_, value) => (typeof value === 'bigint' ? Number(value) : value))}`

    expect(new Set(matches), context).toEqual(new Set([expected.length]))
    const wanted = expected.map(({ place }) => place.id)
    if (fields['order'] !== 0) expect(ids, context).toEqual(wanted)
    else expect(wanted, context).toEqual(expect.arrayContaining(ids))
    const limit = Number(fields['limit'])
    expect(ids.length, context).toBe(fields['order'] === 0 ? Math.min(limit, wanted.length) : wanted.length)
    const byId = new Map(expected.map((hit) => [hit.place.id, hit]))
    const want = fields['want'] as number
    for (const { days, propertyId, ...values } of hits) {
      const { place, total, roomType } = byId.get(propertyId) as Hit
      expect(values, context).toEqual({
        ...(want & SEARCH_WANTS.total ? { total } : {}),
        ...(want & SEARCH_WANTS.distance ? { distanceMetres: Math.round(metresTo(place, fields)) } : {}),
        ...(want & SEARCH_WANTS.position ? { latitude: place.latitude, longitude: place.longitude } : {}),
        ...(want & SEARCH_WANTS.roomType ? { roomType } : {}),
      })
      if (days.length > 0) expect(days.reduce((sum, { finalPrice }) => sum + finalPrice, 0)).toBe(total)
    }
    const payload = payloadOf(isStay ? 'SEARCHAVAIL' : 'SEARCHPROP', fields as never)
    for (const dispatcher of world.node.dispatchers) {
      const whole = inOneGo(world.node, dispatcher.searcher, payload)
      const sliced = inSlices(world.node, slicedLike(world.node, dispatcher), payload, () => {})
      expect(Buffer.from(sliced.bytes).equals(Buffer.from(whole)), context).toBe(true)
    }
  }
})

test.each([1, 2, 4])(
  'while a writer changes prices, each property with the same key in order %i is found once',
  (order) => {
    const random = seeded(SEED + order)
    const { node, places } = build(random, 120)
    const fields = { segment: 's', dates: [night(0), night(1)], order, count: 2, limit: 7n, availability: 0 }
    for (let round = 0; round < tries(20); round++) {
      const room = random() < 0.5 ? { anyRoomType: 1 } : { roomType: 'double' }
      const before = matchesOf({ node, places }, true, { ...fields, ...room })
      const changed = new Set<string>()
      const { ids } = walk(node, true, { ...fields, ...room }, () => {
        for (let n = 0; n < 2; n++) {
          const place = pick(places, random)
          const word = place.words.get('double 0')
          if (!word) continue
          changed.add(place.id)
          word.finalPrice = 100 + Math.floor(random() * 40)
          write(node, 'SETROOMPKG', {
            ...{ propertyId: place.id, roomType: 'double', date: night(0), finalPrice: word.finalPrice },
          })
        }
      })
      const steady = before.map(({ place }) => place.id).filter((id) => !changed.has(id))
      expect(ids.filter((id) => !changed.has(id))).toEqual(steady)
    }
  },
)

test('a page is the same bytes on a store with other rows, and its cursor continues there', () => {
  const random = seeded(SEED)
  const { node, places } = build(random, 200)
  const other = createNodeInMemory(TODAY)
  for (const place of places.toReversed()) store(other, place)
  orderRows(other, 's', 'double')
  orderRows(other, 's')
  for (const fields of [
    { roomType: 'double', order: 1 },
    { anyRoomType: 1, order: 2 },
    { roomType: 'double', order: 4, compact: 1 },
    { anyRoomType: 1, order: 6, compact: 1 },
    { roomType: 'double', order: 3, latitude: 45.01, longitude: 11.01, radiusMetres: 100_000 },
  ]) {
    const all = { segment: 's', dates: [night(0), night(1)], count: 1, limit: 9n, want: 13, availability: 0, ...fields }
    let cursor = ''
    for (let page = 0; page < 4; page++) {
      node.index = Math.max(node.index, other.index)
      other.index = node.index
      // Equal indexes: the last write is the same.
      for (const each of [node, other]) {
        write(each, 'SETPROP', {
          ...{ segment: 't', propertyId: 'else', area: 'a', propertyType: 't', category: 'c', stars: 1 },
          ...{ latitude: 0, longitude: 0, amenities: [] },
        })
      }
      const payload = payloadOf('SEARCHAVAIL', { ...all, ...(cursor && { cursor }) } as never)
      const [mine, theirs] = [node, other].map((each) =>
        Buffer.from(inOneGo(each, (each.dispatchers[0] as Dispatcher).searcher, payload)),
      )
      expect(theirs?.equals(mine as Buffer)).toBe(true)
      cursor = ask(node, 'SEARCHAVAIL', { ...all, ...(cursor && { cursor }) }).result.page?.cursor ?? ''
      expect(cursor).not.toBe('')
    }
  }
})

// In a table of at most four whole degrees only the rows at the edges of a box are compared.
test.each([
  { place: 'on both sides of 180 degrees', from: 177, degrees: 6 },
  { place: 'within three degrees', from: 10.5, degrees: 2 },
  { place: 'in four degrees', from: -2, degrees: 4 },
  { place: 'in six degrees', from: 10, degrees: 6 },
])(
  `a box of any size finds the properties in it, wherever they move: $place (VACANCY_SEED=${SEED})`,
  ({ from, degrees }) => {
    const random = seeded(SEED)
    // Often on the edges of boxes.
    const somewhere = () => ({
      latitude: 44 + Math.floor(random() * degrees * 128) / 128,
      longitude: ((from + Math.floor(random() * degrees * 128) / 128 + 180) % 360) - 180,
    })
    const words = new Map([['double 0', { availability: 1, finalPrice: 100, features: [] }]])
    const node = createNodeInMemory(TODAY)
    const places = Array.from({ length: 400 }, (_, n) => ({ ...createPlace(n, random), words, ...somewhere() }))
    for (const place of places) store(node, place)
    const stay = { roomType: 'double', dates: [night(0)] }
    for (let round = 0; round < tries(100); round++) {
      const moved = Math.floor(random() * places.length)
      const place = { ...(places[moved] as Place), ...somewhere() }
      places[moved] = place as (typeof places)[number]
      store(node, place)
      if (round % 20 === 0) orderRows(node, 's', pick([undefined, 'double'], random))
      const size = pick([0, 1 / 64, 0.1, 1, 3.98, 4, 7], random)
      const { latitude: south, longitude: west } = random() < 0.5 ? pick(places, random) : somewhere()
      const box = { south, west, north: Math.min(90, south + size), east: ((west + size + 180) % 360) - 180 }
      const isStay = random() < 0.5
      const fields = { segment: 's', order: 6, count: 1, limit: 1_000n, ...box, ...(isStay && stay) }
      const expected = places.filter((each) => isInBox(each, box)).map(({ id }) => id)

      expect(walk(node, isStay, fields).ids.toSorted(), JSON.stringify(box)).toEqual(expected.toSorted())
      const payload = payloadOf(isStay ? 'SEARCHAVAIL' : 'SEARCHPROP', fields as never)
      const replies = node.dispatchers.map(({ searcher }) => Buffer.from(inOneGo(node, searcher, payload)))
      for (const reply of replies) expect(reply.equals(replies[0] as Buffer)).toBe(true)
    }
  },
)

test('a cursor names the newest index that its pages have seen, which a replica must have applied', () => {
  const { node } = build(seeded(1), 20)
  const fields = { segment: 's', roomType: 'double', dates: [night(0)], order: 6, count: 2, limit: 1n, availability: 0 }
  const { page } = ask(node, 'SEARCHAVAIL', fields).result
  const dispatcher = node.dispatchers[0] as Dispatcher
  open(node, dispatcher.searcher, payloadOf('SEARCHAVAIL', { ...fields, cursor: page?.cursor ?? '' } as never))

  expect(minIndexOf(dispatcher, dispatcher.values.scan.command)).toBe(node.index)
  expect(page).toMatchObject({ index: node.index, more: true })
})

test('thousands of equal keys are paged by id', () => {
  const node = createNodeInMemory(TODAY)
  const places = Array.from({ length: tries(3_000) }, (_, n) => ({ ...createPlace(n, () => 0.3), words: new Map() }))
  for (const place of places) {
    place.words.set('double 0', { availability: 1, finalPrice: 100, features: [] })
    store(node, place)
  }
  const fields = { segment: 's', roomType: 'double', dates: [night(0)], order: 1, count: 1, limit: 97n, compact: 1 }
  const { ids, matches } = walk(node, true, fields)
  expect(ids).toEqual(places.sort((a, b) => Buffer.compare(idOf(a), idOf(b))).map(({ id }) => id))
  expect(new Set(matches)).toEqual(new Set([places.length]))
})

const STAY: LooseFields = { segment: 's', roomType: 'double', dates: [night(0), night(1)] }
const ANY: LooseFields = { segment: 's', dates: [night(0), night(1)] }
const PROP: LooseFields = { segment: 's' }
const NEAR = { latitude: 45, longitude: 11 }
const WHOLE = { south: -90, west: -180, north: 90, east: 180 }

test.each<[string, LooseFields, string]>([
  ['SEARCHAVAIL', { ...STAY, order: 7 }, 'order must be 0 to 6, got 7'],
  ['SEARCHAVAIL', { ...STAY, order: 5 }, 'order 5 (score) is not available yet, 0 to 4 and 6 are'],
  ['SEARCHPROP', { ...PROP, order: 1 }, 'order must be 0, 3, 4 or 6 in SEARCHPROP, got 1'],
  ['SEARCHPROP', { ...PROP, order: 3 }, 'order 3 (distance) needs latitude and longitude'],
  ['SEARCHAVAIL', { ...STAY, want: 16 }, 'want must be 1 to 15, got 16'],
  ['SEARCHAVAIL', { ...STAY, want: 0 }, 'want must be 1 to 15, got 0'],
  ['SEARCHAVAIL', { ...STAY, want: 2 }, 'want with distance needs latitude and longitude'],
  ['SEARCHPROP', { ...PROP, want: 1 }, 'want must be 2, 4 or 6 in SEARCHPROP, got 1'],
  ['SEARCHAVAIL', { ...STAY, count: 3 }, 'count must be 1 or 2, got 3'],
  ['SEARCHAVAIL', { ...STAY, compact: 2 }, 'compact must be 0 or 1, got 2'],
  ['SEARCHAVAIL', { ...STAY, limit: 0n, order: 1 }, 'limit must be 1 or more'],
  [
    'SEARCHAVAIL',
    { ...STAY, dates: [night(0), night(2)], order: 1 },
    'order 1 (total) needs consecutive dates, 2026-11-20 and 2026-11-22 are not',
  ],
  [
    'SEARCHAVAIL',
    { ...STAY, dates: [night(0), night(2)], maxTotal: 1n },
    'maxTotal needs consecutive dates, 2026-11-20 and 2026-11-22 are not',
  ],
  ['SEARCHAVAIL', { ...STAY, south: 1 }, 'south, west, north and east come together'],
  ['SEARCHAVAIL', { ...STAY, ...WHOLE, south: 3, north: 2 }, 'south must be at most north, got 3 and 2'],
  ['SEARCHAVAIL', { ...STAY, ...WHOLE, east: 181 }, 'east must be -180 to 180 degrees'],
  ['SEARCHAVAIL', { ...STAY, anyRoomType: 1 }, 'roomType and anyRoomType exclude each other'],
  ['SEARCHAVAIL', { ...STAY, roomTypes: ['a'] }, 'roomType and roomTypes exclude each other'],
  ['SEARCHAVAIL', { ...ANY, anyRoomType: 0 }, 'roomType is required, or anyRoomType 1, or roomTypes'],
  ['SEARCHAVAIL', { ...ANY, anyRoomType: 1, order: 0 }, 'order must be 1 to 4 or 6 with any room type, got 0'],
  ['SEARCHAVAIL', { ...ANY, roomTypes: [] }, 'roomTypes must name 1 to 16 room types, got 0'],
  [
    'SEARCHAVAIL',
    { ...ANY, roomTypes: Array.from({ length: 17 }, (_, n) => `r${n}`) },
    'roomTypes must name 1 to 16 room types, got 17',
  ],
  ['SEARCHAVAIL', { ...STAY, order: 1, cursor: 'AQE' }, 'cursor must be one that a page returned, unchanged'],
])('%s refuses %o: %s', (command, fields, text) => {
  const { node } = build(seeded(1), 3)
  const payload = payloadOf(command as 'SEARCHAVAIL', fields as never)
  const { searcher } = node.dispatchers[0] as Dispatcher
  inOneGo(node, searcher, payload)
  expect(searcher.values.fault).toBe(`VALIDATION_ERROR: ${text}`)
})

test('a box with NaN is refused', () => {
  const { node } = build(seeded(1), 3)
  const payload = payloadOf('SEARCHPROP', { ...PROP, ...WHOLE } as never).slice()
  // The last field is east.
  new DataView(payload.buffer).setFloat64(payload.length - 8, Number.NaN, true)
  const { searcher } = node.dispatchers[0] as Dispatcher
  inOneGo(node, searcher, payload)
  expect(searcher.values.fault).toBe('VALIDATION_ERROR: east must be -180 to 180 degrees')
})

test('a cursor is refused by another search, and where it was changed; other values may be asked of the next page', () => {
  const { node } = build(seeded(1), 40)
  const { node: elsewhere } = build(seeded(1), 40)
  elsewhere.store.memory.u8[8192 + 18 * 4] = 1
  const first = { ...STAY, availability: 0, order: 1, count: 2, limit: 2n }
  const cursor = ask(node, 'SEARCHAVAIL', first).result.page?.cursor ?? ''
  const faultOf = (fields: LooseFields, on = node) => {
    const { searcher } = on.dispatchers[0] as Dispatcher
    inOneGo(on, searcher, payloadOf('SEARCHAVAIL', fields as never))
    return searcher.values.fault.replace('VALIDATION_ERROR: ', '')
  }
  const other = 'cursor belongs to another search or shard, send all other fields as for its first page'

  expect(cursor).toHaveLength(67)
  expect(faultOf({ ...first, cursor })).toBe('')
  expect(faultOf({ ...first, cursor, want: 5, count: 1, compact: 1, limit: 9n })).toBe('')
  expect(faultOf({ ...first, cursor, propertyType: 'hotel' })).toBe(other)
  expect(faultOf({ ...first, cursor, ...NEAR })).toBe(other)
  expect(faultOf({ ...first, cursor }, elsewhere)).toBe(other)
  expect(faultOf({ ...first, cursor, order: 2 })).toMatch(/^cursor belongs to another order/)
  expect(faultOf({ ...first, cursor, order: 0 })).toBe('cursor needs an order of 1 or more')
  for (let n = 0; n < cursor.length; n++) {
    const changed = `${cursor.slice(0, n)}${cursor[n] === 'A' ? 'B' : 'A'}${cursor.slice(n + 1)}`
    expect(faultOf({ ...first, cursor: changed })).toMatch(/^cursor /)
    expect(faultOf({ ...first, cursor: cursor.slice(0, n) })).toMatch(n === 0 ? /^$/ : /^cursor must be one/)
  }
})

test('prices that change between two slices move no other property, and totals are those of the nights shown', () => {
  const random = seeded(SEED)
  const world = build(random, 400)
  const { node, places } = world
  let slices = 0
  for (let round = 0; round < tries(40); round++) {
    const room = random() < 0.5 ? { anyRoomType: 1 } : { roomType: 'double' }
    const fields = { segment: 's', dates: [night(0), night(1)], order: 1, count: 1, limit: 400n, want: 1, ...room }
    const before = matchesOf(world, true, fields)
    const changed = new Set<string>()
    const searcher = slicedLike(node, node.dispatchers[round % 2] as Dispatcher)
    const answer = inSlices(node, searcher, payloadOf('SEARCHAVAIL', fields as never), () => {
      const place = pick(places, random)
      const word = place.words.get('double 0')
      if (!word) return
      changed.add(place.id)
      word.finalPrice = 100 + Math.floor(random() * 40)
      write(node, 'SETROOMPKG', {
        propertyId: place.id,
        roomType: 'double',
        date: night(0),
        ...{ finalPrice: word.finalPrice },
      })
    })
    slices += answer.slices
    expect(answer.restarts).toBe(0)
    const reply = decodeReply('SEARCHAVAIL', answer.bytes.subarray(9), { baseYear: 2026, codecs: node.codecs })
    const hits = reply.ok ? reply.result.properties : []
    for (const { days, total } of hits) expect(days.reduce((sum, { finalPrice }) => sum + finalPrice, 0)).toBe(total)
    const totals = hits.map(({ total }) => Number(total))
    expect(totals).toEqual(totals.toSorted((a, b) => a - b))
    const ids = hits.map(({ propertyId }) => propertyId).filter((id) => !changed.has(id))
    expect(ids).toEqual(before.map(({ place }) => place.id).filter((id) => !changed.has(id)))
  }
  expect(slices).toBeGreaterThan(tries(40) * 2)
})

test('a search of too many room types, or of too many rows and nights, names the number', () => {
  const { node } = build(seeded(1), 2)
  const { memory } = node.store
  const { searcher } = node.dispatchers[0] as Dispatcher
  const faultOf = (fields: LooseFields) => {
    inOneGo(node, searcher, payloadOf('SEARCHAVAIL', fields as never))
    return searcher.values.fault.replace('VALIDATION_ERROR: ', '')
  }
  inOneGo(node, searcher, payloadOf('SEARCHAVAIL', STAY as never))
  const rowCount = (tableOfSearch(memory, searcher.search, searcher.values) + TABLE.rowCount) >>> 2
  const rows = memory.u32[rowCount] as number
  memory.u32[rowCount] = 1_000_001
  expect(faultOf({ ...ANY, roomTypes: ['double'] })).toBe(
    'anyRoomType reads 2000002 row nights, 2000000 are accepted, ask for fewer dates or roomTypes',
  )
  memory.u32[rowCount] = rows

  for (let n = 0; n < 64; n++) write(node, 'SETROOMPKG', { propertyId: 'p0_0', roomType: `room ${n}`, date: night(0) })
  const found = ask(node, 'PROPROOMLIST', { propertyId: 'p0_0' }).result.roomTypes?.length ?? 0
  expect(found).toBeGreaterThan(64)
  expect(faultOf({ ...ANY, anyRoomType: 1 })).toMatch(
    /^anyRoomType reads \d+ room types, 64 are accepted, name some in roomTypes$/,
  )
  expect(faultOf({ ...ANY, roomTypes: ['room 1', 'room 63'] })).toBe('')
})

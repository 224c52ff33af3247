/** Price calendars and flexible dates against one search of availability for each stay, by the kernel and its reference. */

import { formatDay, LIMITS, packPropertyId, parseDay } from '@vacancy/shared'
import { decodeReply, type Result, SEARCH_ORDERS, SEARCH_WANTS } from '@vacancy/shared/wire'
import { seeded, tries, type Uniform } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { TABLE } from '../store/layout.ts'
import type { Dispatcher } from '../tcp/dispatch.ts'
import { ask, createNodeInMemory, type LooseFields, type NodeInMemory } from '../testing/node-in-memory.ts'
import { inOneGo, inSlices, payloadOf, slicedLike } from '../testing/sliced-search.ts'
import { tableOfSearch } from './plan.ts'

const TODAY = parseDay('2026-11-20') as number
const LAST = TODAY + 365
const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
const ROOMS = ['double', 'single', 'twin, sea view']
const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
/** Nights with packages: from today on, and up to the end of the window. */
const NIGHTS = [...Array.from({ length: 14 }, (_, n) => TODAY + n), ...[4, 3, 2, 1, 0].map((n) => LAST - n)]
type Place = { readonly id: string; readonly stars: number; readonly latitude: number }

const pick = <T>(list: readonly T[], random: Uniform) => list[Math.floor(random() * list.length)] as T

function write(node: NodeInMemory, command: Parameters<typeof ask>[1], fields: LooseFields): void {
  expect(ask(node, command, fields).error).toBe('')
}

/** Few prices, so that many totals are equal; some nights are sold out, and some have no package. */
function build(random: Uniform, count: number): { node: NodeInMemory; places: Place[] } {
  const node = createNodeInMemory(TODAY)
  const places = Array.from({ length: count }, (_, n) => {
    const stars = 1 + Math.floor(random() * 5)
    const place = { id: `p${(n * 7919) % 1000}_${n}`, stars, latitude: 45 + Math.floor(random() * 5) * 0.01 }
    const rest = {
      area: 'a',
      category: 'c',
      amenities: [],
      longitude: 11,
      propertyType: pick(['hotel', 'villa'], random),
    }
    write(node, 'SETPROP', { segment: 's', propertyId: place.id, stars, latitude: place.latitude, ...rest })
    for (const roomType of ROOMS) {
      if (random() < 0.3) continue
      for (const day of NIGHTS) {
        if (random() < 0.06) continue
        write(node, 'SETROOMPKG', {
          ...{ propertyId: place.id, roomType, date: formatDay(day) },
          availability: random() < 0.08 ? 0 : 1 + Math.floor(random() * 3),
          finalPrice: 100 + Math.floor(random() * 4) * (random() < 0.05 ? 1_000_000_000 : 10),
          rateFeatures: random() < 0.9 ? ['wifi'] : [],
        })
      }
    }
    return place
  })
  return { node, places }
}

type Asked = { filters: LooseFields; first: number; arrivals: number; nights: number; most: number; weekdays: number }

function randomAsked(random: Uniform, places: readonly Place[]): Asked {
  const some = (fields: LooseFields, share = 0.3) => (random() < share ? fields : {})
  const room = random()
  const nights = 1 + Math.floor(random() * 4)
  const arrivals = 1 + Math.floor(random() * 9)
  return {
    filters: {
      segment: 's',
      ...(room < 0.5 ? { roomType: pick(ROOMS, random) } : {}),
      ...(room >= 0.5 && room < 0.8 ? { anyRoomType: 1 } : {}),
      ...(room >= 0.8 ? { roomTypes: [...ROOMS.filter(() => random() < 0.7), 'nowhere'] } : {}),
      ...some({ propertyType: pick(['hotel', 'villa', 'tent'], random) }),
      ...some({ minStars: 2 }),
      ...some({ availability: Math.floor(random() * 3) }),
      ...some({ rateFeatures: ['wifi'] }),
      ...some({ finalPrice: 120 }, 0.2),
      ...some({ minPrice: 110 }, 0.1),
      ...some({ maxTotal: BigInt(115 * nights) }),
      ...some({ minTotal: BigInt(110 * nights) }),
      ...some({ propertyId: pick(places, random).id }, 0.25),
      ...some({ south: 45.01, west: 10, north: 45.03, east: 12 }),
      ...some({ latitude: 45.023, longitude: 11, radiusMetres: 2_000 }),
    },
    first: random() < 0.6 ? TODAY + Math.floor(random() * 8) : LAST - Math.floor(random() * arrivals) - arrivals + 1,
    ...{ arrivals, nights },
    most: random() < 0.5 ? nights : nights + Math.floor(random() * 4),
    weekdays: random() < 0.6 ? 127 : 1 + Math.floor(random() * 127),
  }
}

const windowOf = ({ first, arrivals, nights, weekdays }: Asked): LooseFields => ({
  ...{ from: formatDay(first), to: formatDay(Math.min(LAST, first + arrivals - 1)), nights },
  ...(weekdays === 127 ? {} : { weekdays }),
})

/** Days of the window that may be an arrival, by the calendar of the platform. */
function arrivalsOf({ first, arrivals, weekdays }: Asked): number[] {
  const days = Array.from({ length: Math.min(arrivals, LAST - first + 1) }, (_, n) => first + n)
  return days.filter((day) => {
    const weekday = (new Date(day * 86_400_000).getUTCDay() + 6) % 7
    return (weekdays & (1 << weekday)) !== 0
  })
}

type Hit = { id: string; arrival: number; nights: number; total: number; roomType: string; distanceMetres?: number }

/** All properties with a stay of these nights, by a search of that stay. */
function hitsOf(node: NodeInMemory, { filters }: Asked, arrival: number, nights: number): Hit[] {
  if (arrival + nights - 1 > LAST) return []
  const dates = Array.from({ length: nights }, (_, n) => formatDay(arrival + n))
  const want = SEARCH_WANTS.total | SEARCH_WANTS.roomType
  const { error, result } = ask(node, 'SEARCHAVAIL', { ...filters, dates, order: 1, want, limit: 1_000n, compact: 1 })
  expect(error).toBe('')
  return (result.properties ?? []).map(({ propertyId, total, roomType = '' }) => {
    return { id: propertyId, arrival, nights, total: Number(total), roomType }
  })
}

const idOf = (id: string) => Buffer.from(packPropertyId(id) as Uint8Array)
const byId = (a: string, b: string) => Buffer.compare(idOf(a), idOf(b))

function expectSameInSlices(node: NodeInMemory, command: 'PRICECAL' | 'SEARCHFLEX', fields: LooseFields): void {
  const payload = payloadOf(command, fields as never)
  for (const dispatcher of node.dispatchers) {
    const whole = inOneGo(node, dispatcher.searcher, payload)
    const sliced = inSlices(node, slicedLike(node, dispatcher), payload, () => {})
    expect(Buffer.from(sliced.bytes).equals(Buffer.from(whole)), JSON.stringify(fields, text)).toBe(true)
  }
}

const text = (_: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)

test(`a price calendar has the minimum and the count of a search for each arrival (VACANCY_SEED=${SEED})`, () => {
  const random = seeded(SEED)
  const { node, places } = build(random, 70)
  let found = 0
  for (let round = 0; round < tries(200); round++) {
    const asked = randomAsked(random, places)
    const fields = { ...asked.filters, ...windowOf(asked) }
    const { error, result } = ask(node, 'PRICECAL', fields)
    expect(error).toBe('')
    const expected = arrivalsOf(asked).map((arrival) => {
      const hits = hitsOf(node, asked, arrival, asked.nights)
      const [best] = hits.sort((a, b) => a.total - b.total || byId(a.id, b.id))
      found += hits.length
      return { arrival: formatDay(arrival), properties: hits.length, ...(best && { total: best.total, best: best.id }) }
    })
    expect(result, JSON.stringify(fields, text)).toEqual({ nights: asked.nights, days: expected })
    if (round % 5 === 0) expectSameInSlices(node, 'PRICECAL', fields)
  }
  expect(found).toBeGreaterThan(tries(1_000))
})

/** The best stay of each property, in order. */
function bestOf(node: NodeInMemory, places: readonly Place[], asked: Asked, order: number): Hit[] {
  const best = new Map<string, Hit>()
  const isBetter = (a: Hit, b: Hit) => {
    const byNight = a.total * b.nights - b.total * a.nights
    return byNight < 0 || (byNight === 0 && (a.arrival < b.arrival || (a.arrival === b.arrival && a.nights < b.nights)))
  }
  for (const arrival of arrivalsOf(asked)) {
    for (let nights = asked.nights; nights <= asked.most; nights++) {
      for (const hit of hitsOf(node, asked, arrival, nights)) {
        const held = best.get(hit.id)
        if (!held || isBetter(hit, held)) best.set(hit.id, hit)
      }
    }
  }
  const placeOf = new Map(places.map((place) => [place.id, place]))
  const keys: { readonly [order: number]: (hit: Hit) => number[] } = {
    [SEARCH_ORDERS.total]: ({ total }) => [total],
    [SEARCH_ORDERS.totalDown]: ({ total }) => [-total],
    [SEARCH_ORDERS.distance]: ({ id }) => [Math.abs(Math.round(((placeOf.get(id)?.latitude ?? 0) - 45.023) * 10_000))],
    [SEARCH_ORDERS.stars]: ({ id, total }) => [-(placeOf.get(id)?.stars ?? 0), total],
    [SEARCH_ORDERS.id]: () => [],
  }
  const keyOf = keys[order] as (hit: Hit) => number[]
  return [...best.values()].sort((a, b) => {
    const [left, right] = [keyOf(a), keyOf(b)]
    const at = left.findIndex((value, n) => value !== right[n])
    return at < 0 ? byId(a.id, b.id) : (left[at] as number) - (right[at] as number)
  })
}

function askFlexible(node: NodeInMemory, fields: LooseFields): Result<'SEARCHFLEX'> {
  ask(node, 'SEARCHFLEX', fields)
  const bytes = inOneGo(node, (node.dispatchers[0] as Dispatcher).searcher, payloadOf('SEARCHFLEX', fields as never))
  const reply = decodeReply('SEARCHFLEX', bytes.subarray(9), { codecs: node.codecs })
  if (!reply.ok) throw new Error(`${reply.code}: ${reply.message}`)
  return reply.result
}

test(`flexible dates find the best stay of each property, page by page in each order (VACANCY_SEED=${SEED})`, () => {
  const random = seeded(SEED + 1)
  const { node, places } = build(random, 70)
  let found = 0
  for (let round = 0; round < tries(150); round++) {
    const asked = randomAsked(random, places)
    const order = pick([1, 2, 4, 6, ...(asked.filters['latitude'] === undefined ? [] : [3])], random)
    const wanted = Math.floor(random() * 16) & (asked.filters['latitude'] === undefined ? ~SEARCH_WANTS.distance : 15)
    const fields = {
      ...{ ...asked.filters, ...windowOf(asked), count: 1, limit: BigInt(pick([9, 31, 200], random)) },
      ...(wanted === 0 ? {} : { want: wanted }),
      ...(order === 1 && random() < 0.5 ? {} : { order }),
      ...(asked.most === asked.nights ? {} : { mostNights: asked.most }),
    }
    const expected = bestOf(node, places, asked, order)
    const context = JSON.stringify(fields, text)
    const stays: Result<'SEARCHFLEX'>['bestStays'] = []
    for (let cursor = ''; ; ) {
      const { arrivalDays, bestStays, page } = askFlexible(node, { ...fields, ...(cursor && { cursor }) })
      expect(arrivalDays).toBe(arrivalsOf(asked).length)
      expect(page?.matches, context).toBe(expected.length)
      stays.push(...bestStays)
      cursor = page?.cursor ?? ''
      if (cursor === '') break
    }
    found += stays.length
    const shown = stays.map(({ propertyId, arrival, nights, total }) => [propertyId, arrival, nights, total])
    const wantedStays = expected.map(({ id, arrival, nights, total }) => [id, formatDay(arrival), nights, total])
    expect(shown, context).toEqual(wantedStays)
    const isNamed = (wanted & SEARCH_WANTS.roomType) !== 0
    expect(stays.map(({ roomType }) => roomType)).toEqual(
      expected.map(({ roomType }) => (isNamed ? roomType : undefined)),
    )
    const latitudes = new Map(places.map(({ id, latitude }) => [id, latitude]))
    const isPlaced = (wanted & SEARCH_WANTS.position) !== 0
    for (const { propertyId, latitude, distanceMetres } of stays) {
      expect(latitude).toBe(isPlaced ? latitudes.get(propertyId) : undefined)
      expect(distanceMetres !== undefined).toBe((wanted & SEARCH_WANTS.distance) !== 0)
    }
    if (round % 5 === 0) expectSameInSlices(node, 'SEARCHFLEX', fields)
  }
  expect(found).toBeGreaterThan(tries(500))
})

test('long stays, a whole year of arrivals and more than a list of rows are found', () => {
  const node = createNodeInMemory(TODAY)
  const priceOf = (n: number, day: number) => 1_000_000_000 + ((n * 31 + day * 17) % 97)
  const count = tries(1_100) + 500
  for (let n = 0; n < count; n++) {
    const rest = { area: 'a', category: 'c', amenities: [], latitude: 1, longitude: 1, propertyType: 't', stars: 1 }
    write(node, 'SETPROP', { segment: 's', propertyId: `p${n}`, ...rest })
    for (let day = TODAY; day < TODAY + (n % 300 === 0 ? 366 : 3); day++) {
      const night = { propertyId: `p${n}`, roomType: 'double', date: formatDay(day) }
      write(node, 'SETROOMPKG', { ...night, availability: 1, finalPrice: priceOf(n, day) })
    }
  }
  const fields = { segment: 's', roomType: 'double', from: formatDay(TODAY), to: formatDay(LAST), nights: 30 }
  const long = [...Array(count).keys()].filter((n) => n % 300 === 0)
  const totalOf = (n: number, arrival: number) =>
    Array.from({ length: 30 }, (_, night) => priceOf(n, arrival + night)).reduce((sum, price) => sum + price, 0)
  const { days } = ask(node, 'PRICECAL', fields).result
  expect(days?.map(({ total, properties }) => [total, properties])).toEqual(
    Array.from({ length: 366 }, (_, n) =>
      TODAY + n + 29 > LAST ? [undefined, 0] : [Math.min(...long.map((each) => totalOf(each, TODAY + n))), long.length],
    ),
  )
  expect(ask(node, 'PRICECAL', { ...fields, nights: 3 }).result.days?.[0]).toMatchObject({ properties: count })
  const { page, bestStays } = askFlexible(node, { ...fields, nights: 2, count: 1, limit: 1n })
  expect([page?.matches, bestStays.length]).toEqual([count, 1])
  for (const command of ['PRICECAL', 'SEARCHFLEX'] as const) expectSameInSlices(node, command, fields)
})

test('a property counts once on each day, however many of its room types fit', () => {
  const { node } = build(seeded(3), 40)
  const day = { segment: 's', from: formatDay(TODAY), to: formatDay(TODAY), nights: 1, anyRoomType: 1 }
  const { days } = ask(node, 'PRICECAL', day).result
  const each = ROOMS.map((roomType) => {
    const { anyRoomType: _, ...rest } = day
    return ask(node, 'PRICECAL', { ...rest, roomType }).result.days?.[0]?.properties ?? 0
  })
  expect(days?.[0]?.properties).toBeLessThanOrEqual(40)
  expect(each.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(days?.[0]?.properties ?? 0)
})

let refusing: NodeInMemory | undefined
const STAY = { segment: 's', roomType: 'double', from: '2026-11-21', to: '2026-11-25', nights: 3 }
test.each<['PRICECAL' | 'SEARCHFLEX', LooseFields, string]>([
  ['PRICECAL', { from: '2026-11-19' }, 'from must be YYYY-MM-DD from 2026-11-20 to 2027-11-20, got 2026-11-19'],
  ['PRICECAL', { to: '2027-11-21' }, 'to must be YYYY-MM-DD from 2026-11-20 to 2027-11-20, got 2027-11-21'],
  ['PRICECAL', { from: '2026-11-31' }, 'from must be YYYY-MM-DD from 2026-11-20 to 2027-11-20'],
  ['PRICECAL', { to: '2026-11-20' }, 'to must not be before from, got 2026-11-21 and 2026-11-20'],
  ['PRICECAL', { to: '2027-02-21' }, 'from and to are 93 arrival days, max_calendar_days accepts 92'],
  ['SEARCHFLEX', { nights: 0 }, 'nights must be 1 to 30, got 0'],
  ['PRICECAL', { nights: 31 }, 'nights must be 1 to 30, got 31'],
  ['SEARCHFLEX', { mostNights: 2 }, 'mostNights must be 3 to 9 with nights 3, got 2'],
  ['SEARCHFLEX', { mostNights: 10 }, 'mostNights must be 3 to 9 with nights 3, got 10'],
  ['SEARCHFLEX', { weekdays: 0 }, 'weekdays must be 1 to 127, got 0'],
  ['PRICECAL', { weekdays: 128 }, 'weekdays must be 1 to 127, got 128'],
  ['SEARCHFLEX', { order: 0 }, 'order must be 1 to 4 or 6 in SEARCHFLEX, got 0'],
  ['SEARCHFLEX', { order: 3 }, 'order 3 (distance) needs latitude and longitude'],
  ['SEARCHFLEX', { limit: 0n }, 'limit must be 1 or more'],
  ['SEARCHFLEX', { cursor: 'AQE' }, 'cursor must be one that a page returned, unchanged'],
  ['PRICECAL', { south: 1 }, 'south, west, north and east come together'],
  ['PRICECAL', { anyRoomType: 1 }, 'roomType and anyRoomType exclude each other'],
  ['PRICECAL', { rateFeatures: ['jetpack'] }, 'rate feature jetpack is not in the codec list'],
])('%s refuses %o: %s', (command, fields, fault) => {
  refusing ??= build(seeded(1), 1).node
  const { searcher } = refusing.dispatchers[0] as Dispatcher
  const limited = { ...searcher, limits: { ...searcher.limits, calendarDays: 92 } }
  inOneGo(refusing, limited, payloadOf(command, { ...STAY, ...fields } as never))
  expect(searcher.values.fault).toBe(`VALIDATION_ERROR: ${fault}`)
})

test('a calendar of too many rows and days names the number; one property does not', () => {
  const { node } = build(seeded(1), 3)
  const { memory } = node.store
  const { searcher } = node.dispatchers[0] as Dispatcher
  const faultOf = (command: 'PRICECAL' | 'SEARCHFLEX', fields: LooseFields) => {
    inOneGo(node, searcher, payloadOf(command, { ...STAY, ...fields } as never))
    return searcher.values.fault
  }
  const all = { to: '2027-11-20', nights: 2 }
  expect(faultOf('PRICECAL', all)).toBe('')
  const rowCount = (tableOfSearch(memory, searcher.search, searcher.values) + TABLE.rowCount) >>> 2
  const rows = memory.u32[rowCount] as number
  memory.u32[rowCount] = 30_000
  const reads = `reads ${30_000 * 366} row days, ${LIMITS.calendarRowDaysMax} are accepted`
  const ask = 'ask for fewer arrival days or roomTypes, or for a propertyId'
  expect(faultOf('PRICECAL', all)).toBe(`VALIDATION_ERROR: PRICECAL ${reads}, ${ask}`)
  expect(faultOf('SEARCHFLEX', all)).toBe(`VALIDATION_ERROR: SEARCHFLEX ${reads}, ${ask}`)
  expect(faultOf('PRICECAL', { ...all, propertyId: 'p0_0' })).toBe('')
  // Of Fridays with two nights, two days of seven are read.
  expect(faultOf('PRICECAL', { ...all, weekdays: 16, propertyId: 'p0_0' })).toBe('')
  memory.u32[rowCount] = rows
})

test('days of a calendar are named by the calendar of the platform', () => {
  const { node } = build(seeded(1), 1)
  for (const [bit, name] of WEEKDAYS.entries()) {
    const window = { segment: 's', roomType: 'double', nights: 1, from: '2026-11-23', to: '2026-12-06' }
    const { days } = ask(node, 'PRICECAL', { ...window, weekdays: 1 << bit }).result
    const names = days?.map(({ arrival }) =>
      new Date(arrival).toLocaleDateString('en', { weekday: 'short', timeZone: 'UTC' }),
    )
    expect(names?.map((each) => each.toLowerCase())).toEqual([name, name])
  }
})

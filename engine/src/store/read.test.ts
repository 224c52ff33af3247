import { formatDay, lastVisibleDay, packPropertyId, parseDay } from '@vacancy/shared'
import { beforeAll, describe, expect, test } from 'vitest'
import { applyOwn, ask, createNodeInMemory, type LooseFields, type NodeInMemory } from '../testing/node-in-memory.ts'
import { KIND, writeU8, writeU32 } from './command.ts'
import { findName, NAMES } from './dictionary.ts'
import { CONTROL, ROOMS } from './layout.ts'
import { findProperty } from './property-index.ts'
import {
  continueListing,
  createSegmentListing,
  daysOfRoom,
  propertyDetails,
  propertyExists,
  type ReadView,
  readNight,
  roomExists,
  roomTypesOf,
  segmentCounts,
  segmentCoverage,
  segmentNameCount,
} from './read.ts'
import { findRoom } from './segment.ts'
import { field } from './table-fields.ts'
import { mark, unmark } from './version.ts'

const place = { propertyId: 'p', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
const ID = packPropertyId('p') as Uint8Array

function nodeWithNight(): NodeInMemory {
  const node = createNodeInMemory(parseDay('2026-11-20') as number)
  ask(node, 'SETPROP', { ...place, segment: 'here', amenities: [] })
  const date = formatDay(node.day + 1)
  ask(node, 'SETROOMPKG', { propertyId: 'p', roomType: 'r', date, availability: 2, finalPrice: 70 })
  return node
}

function roomTypeOf({ store }: NodeInMemory): number {
  const bytes = new TextEncoder().encode('r')
  return findName(store.memory, NAMES.roomType, bytes, 0, bytes.length)
}

/** A view whose reader finds the room's table marked. While it waits, the property moves to another segment. */
function viewDuringMove(node: NodeInMemory): ReadView {
  const { store } = node
  const { memory } = store
  const table = field(memory, findRoom(memory, findProperty(memory, ID, 0), roomTypeOf(node)) + ROOMS.table)
  mark(store, table)
  let isMoved = false
  const waiting = {
    ...memory,
    get fence() {
      if (!isMoved) {
        isMoved = true
        ask(node, 'SETPROP', { ...place, segment: 'there', amenities: [] })
        unmark(store, table)
      }
      return memory.fence
    },
  }
  return { memory: waiting, reader: 0 }
}

test('a night read while its property moved to another segment used to be missing', () => {
  const node = nodeWithNight()

  const night = readNight(viewDuringMove(node), ID, roomTypeOf(node), node.day + 1)

  expect(night).toEqual({ availability: 2, price: 70, features: 0 })
})

test('listing nights while their property moved to another segment used to return none', () => {
  const node = nodeWithNight()

  expect(daysOfRoom(viewDuringMove(node), ID, roomTypeOf(node), node.day)).toEqual([node.day + 1])
})

test('a read gives up when its table keeps changing', () => {
  const node = nodeWithNight()
  const { store } = node
  const view = { memory: store.memory, reader: 0, tries: 3 }
  const table = field(
    store.memory,
    findRoom(store.memory, findProperty(store.memory, ID, 0), roomTypeOf(node)) + ROOMS.table,
  )

  mark(store, table)
  expect(readNight(view, ID, roomTypeOf(node), node.day + 1)).toBe('changing')
  expect(propertyDetails(view, ID)).toMatchObject({ segment: 'here', roomTypes: ['r'] })
  unmark(store, table)

  expect(readNight(view, ID, roomTypeOf(node), node.day + 1)).toMatchObject({ price: 70 })
})

const TODAY = parseDay('2026-11-20') as number
const LAST = lastVisibleDay(TODAY)
const READER = 1
const encoder = new TextEncoder()
const decoder = new TextDecoder()
const id = (text: string) => packPropertyId(text) as Uint8Array

let node: NodeInMemory
let view: ReadView

const setProperty = (propertyId: string, fields: LooseFields = {}) =>
  expect(
    ask(node, 'SETPROP', {
      ...{ propertyId, segment: 'coast', area: 'bay', propertyType: 'hotel', category: 'c', stars: 4, amenities: [] },
      ...{ latitude: 43.5, longitude: -7.25, ...fields },
    }).error,
  ).toBe('')
const setNight = (propertyId: string, roomType: string, day: number, fields: LooseFields = {}) =>
  expect(
    ask(node, 'SETROOMPKG', {
      ...{ propertyId, roomType, date: formatDay(day), availability: 3, finalPrice: 250, ...fields },
    }).error,
  ).toBe('')

const room = (text: string) => {
  const bytes = encoder.encode(text)
  return findName(node.store.memory, NAMES.roomType, bytes, 0, bytes.length)
}

beforeAll(() => {
  node = createNodeInMemory(TODAY, 64 << 20)
  view = { memory: node.store.memory, reader: READER }
  setProperty('full', { amenities: ['spa', 'bar', 'pool', 'gym', 'lift'] })
  setProperty('bare', { segment: 'alps', area: 'top', propertyType: 'hut', category: 'd', stars: 1 })
  for (const roomType of ['two beds', 'Suite', 'é', 'single', 'singles']) setNight('full', roomType, TODAY + 9)
  setNight('full', 'single', TODAY, { availability: 0, finalPrice: 0 })
  setNight('full', 'single', TODAY + 1, { availability: 255, finalPrice: 4_294_967_294, rateFeatures: ['half_board'] })
  setNight('full', 'single', LAST)
  setNight('full', 'singles', TODAY + 2)
  // A night of another property, in the same table.
  setProperty('other')
  setNight('other', 'single', TODAY + 4)
})

describe('a property', () => {
  test.each([
    ['full', 'single', true, true],
    ['full', 'é', true, true],
    ['other', 'é', true, false],
    ['bare', 'single', true, false],
    ['ful', 'single', false, false],
  ])('%s exists, and with room type %s: %s, %s', (propertyId, roomType, exists, hasRoom) => {
    expect(propertyExists(view, id(propertyId))).toBe(exists)
    expect(roomExists(view, id(propertyId), room(roomType))).toBe(hasRoom)
  })

  test('has its room types in byte order', () => {
    const texts = (propertyId: string) => roomTypesOf(view, id(propertyId))?.map((bytes) => decoder.decode(bytes))
    expect(texts('full')).toEqual(['Suite', 'single', 'singles', 'two beds', 'é'])
    expect(texts('bare')).toEqual([])
    expect(texts('nowhere')).toBeUndefined()
  })

  test('has its attributes, amenities and room types by name', () => {
    const common = { segment: 'coast', area: 'bay', type: 'hotel', category: 'c', stars: 4 }
    expect(propertyDetails(view, id('full'))).toEqual({
      ...{ ...common, latitude: 43.5, longitude: -7.25, amenities: ['bar', 'gym', 'lift', 'pool', 'spa'] },
      roomTypes: ['Suite', 'single', 'singles', 'two beds', 'é'],
    })
    expect(propertyDetails(view, id('bare'))).toMatchObject({
      ...{ segment: 'alps', area: 'top', type: 'hut', category: 'd', stars: 1, amenities: [], roomTypes: [] },
    })
    expect(propertyDetails(view, id('nowhere'))).toBeUndefined()
  })
})

describe('nights of a room', () => {
  test.each([
    [TODAY, [TODAY, TODAY + 1, TODAY + 9, LAST]],
    [TODAY + 1, [TODAY + 1, TODAY + 9, LAST]],
    [TODAY + 2, [TODAY + 9, LAST]],
    // One day earlier the last day is not visible yet.
    [TODAY - 1, [TODAY, TODAY + 1, TODAY + 9]],
  ])('are listed from day %i to the last visible one', (today, expected) => {
    expect(daysOfRoom(view, id('full'), room('single'), today)).toEqual(expected)
    expect(daysOfRoom(view, id('other'), room('single'), today)).toEqual([TODAY + 4])
  })

  test.each([
    ['nowhere', 'single', 'property'],
    ['bare', 'single', 'room-type'],
    ['other', 'é', 'room-type'],
    ['full', 'unknown', 'room-type'],
  ])('of %s, %s lack the %s', (propertyId, roomType, missing) => {
    expect(daysOfRoom(view, id(propertyId), room(roomType), TODAY)).toBe(missing)
    expect(readNight(view, id(propertyId), room(roomType), TODAY + 1)).toBe(missing)
  })

  test.each([
    [TODAY, { availability: 0, price: 0, features: 0 }],
    [TODAY + 1, { availability: 255, price: 4_294_967_294, features: 0b10000 }],
    [TODAY + 9, { availability: 3, price: 250, features: 0 }],
    // Days of other rows, of another table, and of none.
    [TODAY + 4, 'package'],
    [TODAY + 2, 'package'],
    [TODAY + 33, 'package'],
  ])('on day %i are read whole: %o', (day, expected) => {
    expect(readNight(view, id('full'), room('single'), day)).toEqual(expected)
  })

  test('are empty when all packages were deleted, and dropped days are missing', () => {
    const own = node
    node = createNodeInMemory(TODAY, 64 << 20)
    const ownView = { memory: node.store.memory, reader: READER }
    setProperty('p')
    for (const day of [0, 1, 2]) setNight('p', 'r', TODAY + day)
    applyOwn(node, KIND.dropBefore, (writer) => {
      writeU32(writer, TODAY + 1)
      writeU8(writer, 1)
    })
    expect(daysOfRoom(ownView, id('p'), room('r'), TODAY)).toEqual([TODAY + 1, TODAY + 2])
    expect(readNight(ownView, id('p'), room('r'), TODAY)).toBe('package')
    expect(readNight(ownView, id('p'), room('r'), TODAY + 1)).toMatchObject({ price: 250 })
    const covered = segmentCoverage(ownView, '', 5).segments[0]?.days
    expect([...(covered ?? [])].toSorted()).toEqual([
      [TODAY + 1, 1],
      [TODAY + 2, 1],
    ])
    for (const day of [1, 2]) ask(node, 'DELROOMDAY', { propertyId: 'p', roomType: 'r', date: formatDay(TODAY + day) })
    expect(daysOfRoom(ownView, id('p'), room('r'), TODAY)).toEqual([])
    expect(segmentCoverage(ownView, '', 5).segments[0]?.days.size).toBe(0)
    node = own
  })
})

describe('segments', () => {
  // More than the 64 that the directory holds at first.
  const NAMES_OF_SEGMENTS = Array.from({ length: 70 }, (_, n) => `${'zaÄ~'[n % 4]}${n}`)
  const bytesOrder = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  const expected = [...NAMES_OF_SEGMENTS, 'alps', 'coast'].sort(bytesOrder)
  const propertiesOf = (name: string) => (name === 'coast' ? 2 : NAMES_OF_SEGMENTS.indexOf(name) % 7 === 0 ? 2 : 1)

  beforeAll(() => {
    for (const [n, segment] of NAMES_OF_SEGMENTS.entries()) {
      setProperty(`s${n}`, { segment })
      if (n % 7 === 0) setProperty(`second${n}`, { segment })
    }
    setNight('s0', 'single', TODAY + 1)
    setNight('second0', 'single', TODAY + 1)
    setNight('s0', 'double', TODAY + 1)
    setNight('s0', 'double', TODAY + 3)
    // A segment whose only property has left it.
    setProperty('mover', { segment: 'left' })
    setProperty('mover', { segment: 'alps' })
    ask(node, 'DELPROP', { propertyId: 'mover' })
  })

  test('are counted in the byte order of their names', () => {
    const counts = segmentCounts(view)
    expect(counts.map(({ name }) => name)).toEqual(expected)
    expect(counts.map(({ bytes }) => decoder.decode(bytes))).toEqual(expected)
    expect(counts.map(({ properties }) => properties)).toEqual(expected.map(propertiesOf))
    const packages = Object.fromEntries(counts.map((count) => [count.name, count.packages]))
    expect([packages['coast'], packages['z0'], packages['alps'], packages['a1']]).toEqual([10, 4, 0, 0])
  })

  test.each([1, 3, 64, 1_000])('are listed in steps of %i names, each once', (names) => {
    const listing = createSegmentListing(view)
    let steps = 1
    while (!continueListing(view, listing, names)) steps++
    expect(steps).toBe(Math.max(1, Math.ceil(segmentNameCount(view) / names)))
    expect(listing.found.map(({ bytes }) => decoder.decode(bytes))).toEqual(expected)
    expect(listing.found.map(({ properties }) => properties)).toEqual(expected.map(propertiesOf))
    expect(listing.next).toBe(segmentNameCount(view))
  })

  test('are listed again from the first when other data has replaced the store', () => {
    const listing = createSegmentListing(view)
    expect(continueListing(view, listing, 9)).toBe(false)
    expect(listing.next).toBe(9)
    Atomics.add(node.store.memory.i32, CONTROL.generation, 1)
    expect(continueListing(view, listing, 5)).toBe(false)
    expect(listing.next).toBe(5)
    expect(continueListing(view, listing, 1_000)).toBe(true)
    expect(listing.found.map(({ bytes }) => decoder.decode(bytes))).toEqual(expected)
  })

  test('have their packages by day, a page of segments at a time', () => {
    const byText = expected.toSorted((a, b) => (a < b ? -1 : 1))
    const found: string[] = []
    let after = ''
    for (let more = true; more; ) {
      const page = segmentCoverage(view, after, 10)
      found.push(...page.segments.map(({ name }) => name))
      more = page.more
      expect(page.segments.length).toBe(more ? 10 : page.segments.length)
      after = page.segments.at(-1)?.name ?? ''
    }
    expect(found).toEqual(byText)
    const one = segmentCoverage(view, 'z', 1).segments[0]
    expect(one).toMatchObject({ name: 'z0', properties: 2 })
    expect([...(one?.days ?? [])].toSorted()).toEqual([
      [TODAY + 1, 3],
      [TODAY + 3, 1],
    ])
    const count = segmentCounts(view).length
    expect(segmentCoverage(view, '', count)).toMatchObject({ more: false })
    expect(segmentCoverage(view, '', count - 1)).toMatchObject({ more: true })
    expect(segmentCoverage(view, '\uffff', 1)).toEqual({ segments: [], more: false })
  })
})

/** Nights of a table: the ring of days, words with their bits, counts and digests, and nights that have passed. */

import { formatDay } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test } from 'vitest'
import { ask, createNodeInMemory, raiseFeatureLevel, restartEmpty } from '../testing/node-in-memory.ts'
import { plainPutWord } from '../testing/search-reference.ts'
import { recountDigest } from './apply.ts'
import { DAY_SLOTS, PLANE, SEGMENT, SLOT, STATE, TABLE } from './layout.ts'
import {
  addToPlane,
  adoptPlane,
  changeWord,
  countFreed,
  createPlane,
  dropSlot,
  ensurePlane,
  forEachPlane,
  forEachSlot,
  freePassedPlanes,
  freeUncountedPlanes,
  isCounted,
  nightGrowthBytes,
  nightsOfRow,
  planeOf,
  setPlane,
  wordAddress,
  writeWord,
} from './planes.ts'
import { recountCharge } from './recount.ts'
import { segmentOf, tableOf } from './segment.ts'
import { countsOf, publish, state, stateDigest } from './store.ts'
import { field } from './table-fields.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
/** The ring begins again six days later. */
const TODAY = 53 * DAY_SLOTS - 6
const PLACE = { segment: 's', area: 'a', propertyType: 't', category: 'c', stars: 1, latitude: 1, longitude: 1 }

const node = createNodeInMemory(TODAY, 48 << 20)

const { store } = node
let table: number

const sell = (n: number, night: number, availability = 2, finalPrice = 10) =>
  ask(node, 'SETROOMPKG', {
    ...{ propertyId: `p${n}`, roomType: 'r', date: formatDay(TODAY + night), availability, finalPrice },
  }).error

/** Forty properties in a table of 128 rows, and a package on the first night. */
beforeEach(() => {
  restartEmpty(node, TODAY)
  raiseFeatureLevel(node)
  for (let n = 0; n < 40; n++) {
    ask(node, 'SETPROP', { ...PLACE, propertyId: `p${n}`, amenities: [] })
    sell(n, 0)
  }
  table = tableOf(store.memory, segmentOf(store.memory, 0), 0)
  expect(field(store.memory, table + TABLE.capacity)).toBe(128)
})

const segmentPackages = () => field(store.memory, segmentOf(store.memory, 0) + SEGMENT.packages)
const tablePackages = () => field(store.memory, table + TABLE.packages)
const packagesOf = (plane: number) => field(store.memory, plane + PLANE.packages)
const planeDigest = (plane: number) => [
  field(store.memory, plane + PLANE.digestLow),
  field(store.memory, plane + PLANE.digestHigh),
]
const slotCells = (day: number) =>
  Array.from({ length: SLOT.cells }, (_, n) => state(store.memory, STATE.slots + (day % DAY_SLOTS) * SLOT.cells + n))
/** The bit of rooms left of a row. */
const bitOf = (plane: number, row: number) =>
  (field(store.memory, plane + 16 + 128 * 8 + (row >>> 5) * 4) >>> (row & 31)) & 1
const word = (plane: number, row: number) => [
  field(store.memory, plane + 16 + row * 8),
  field(store.memory, plane + 16 + row * 8 + 4),
]
/** Counts, digest and charge are those of the packages that are there. */
function check(packages: number): void {
  const counted = recountDigest(store.memory)
  expect(counted.packages).toBe(packages)
  expect(countsOf(store.memory).packages).toBe(packages)
  expect(stateDigest(store.memory)).toEqual(counted.digest)
  expect(store.writer.charge.bytes).toBe(recountCharge(store.memory))
}

const slots = () => {
  const found: [number, number][] = []
  forEachSlot(store.memory, table, (slot, plane) => found.push([slot, field(store.memory, plane)]))
  return found
}
const days = (from: number) => {
  const found: number[] = []
  forEachPlane(store.memory, table, from, (plane, day) => {
    expect(planeOf(store.memory, table, day)).toBe(plane)
    found.push(day - TODAY)
  })
  return found
}

test('one more night takes a plane and its place in the ring', () => {
  expect(nightGrowthBytes(store.memory, table)).toBe(16 + 128 * 8 + 16 + 128)
})

test('a word has eight bytes behind the header of its plane', () => {
  expect([wordAddress(1000, 0), wordAddress(1000, 3)]).toEqual([1016, 1040])
})

describe('the ring of days', () => {
  test('holds each night in the slot of its day, and visits them by slot or by day', () => {
    for (const night of [7, 5, 300, 6]) expect(sell(0, night)).toBe('')
    expect(slots()).toEqual([
      [0, TODAY + 6],
      [1, TODAY + 7],
      [294, TODAY + 300],
      [378, TODAY],
      [383, TODAY + 5],
    ])
    expect([days(TODAY), days(TODAY + 1), days(TODAY + 6)]).toEqual([
      [0, 5, 6, 7, 300],
      [5, 6, 7, 300],
      [6, 7, 300],
    ])
    expect(days(TODAY + 301)).toEqual([])
    expect(days(TODAY - 1)).toEqual([0, 5, 6, 7, 300])
  })

  test('has no plane for the day one round later or earlier', () => {
    expect(planeOf(store.memory, table, TODAY)).not.toBe(0)
    expect(planeOf(store.memory, table, TODAY + DAY_SLOTS)).toBe(0)
    expect(planeOf(store.memory, table, TODAY - DAY_SLOTS)).toBe(0)
    expect(planeOf(store.memory, table, TODAY + 1)).toBe(0)
    expect(days(TODAY - DAY_SLOTS)).toEqual([])
  })

  test('is changed slot by slot', () => {
    const plane = planeOf(store.memory, table, TODAY)
    setPlane(store, table, 32, plane)
    setPlane(store, table, 63, plane)
    expect(slots().map(([slot]) => slot)).toEqual([32, 63, 378])
    setPlane(store, table, 32, 0)
    expect(slots().map(([slot]) => slot)).toEqual([63, 378])
  })

  test('creates a night once, and charges it', () => {
    const plane = ensurePlane(store, table, TODAY + 3)
    expect(ensurePlane(store, table, TODAY + 3)).toBe(plane)
    expect([field(store.memory, plane), packagesOf(plane)]).toEqual([TODAY + 3, 0])
    expect(store.writer.charge.tables.get(table)?.planes).toBe(2)
  })
})

test('changed words keep bits, counts and digests of plane, day, table and shard', () => {
  const random = createRandom(SEED)
  const plane = ensurePlane(store, table, TODAY + 1)
  const expected = new Map<number, [number, number]>()
  for (let step = 0; step < 300; step++) {
    const row = random.below(3) === 0 ? (random.below(2) === 0 ? 31 : 32) : random.below(40)
    const lo = random.below(3) === 0 ? 0 : random.below(3) | (random.below(2) << 31) | (random.below(2) << 8)
    const hi = random.below(3) === 0 ? 0 : random.below(2 ** 32)
    const [oldLo, oldHi] = expected.get(row) ?? [0, 0]
    const before = packagesOf(plane)
    const delta = changeWord(store, plainPutWord(store.memory), table, plane, row, lo >>> 0, hi, row, row + 7)
    const message = `VACANCY_SEED=${SEED}, step ${step}`
    const exists = (lo | hi) !== 0
    expect(delta, message).toBe(Number(exists) - Number((oldLo | oldHi) !== 0))
    expected.set(row, [lo >>> 0, hi])
    expect(word(plane, row), message).toEqual([lo >>> 0, hi])
    expect(packagesOf(plane), message).toBe(before + delta)
  }
  const count = [...expected.values()].filter(([lo, hi]) => (lo | hi) !== 0).length
  for (let row = 0; row < 128; row++) {
    const [lo, hi] = expected.get(row) ?? [0, 0]
    expect(word(plane, row), `VACANCY_SEED=${SEED}, row ${row}`).toEqual([lo, hi])
    expect(bitOf(plane, row), `VACANCY_SEED=${SEED}, row ${row}`).toBe((lo & 0xff) === 0 ? 0 : 1)
  }
  expect([packagesOf(plane), tablePackages()]).toEqual([count, 40 + count])
  expect(slotCells(TODAY + 1)).toEqual([TODAY + 1, count, ...planeDigest(plane)])
  for (const row of expected.keys())
    changeWord(store, plainPutWord(store.memory), table, plane, row, 0, 0, row, row + 7)
  expect([packagesOf(plane), ...planeDigest(plane)]).toEqual([0, 0, 0])
  check(40)
})

test('a word is stored whole, with both halves unsigned', () => {
  const plane = ensurePlane(store, table, TODAY + 1)
  plainPutWord(store.memory)(wordAddress(plane, 5), 0xffff_fffe, 0x8000_0001)
  plainPutWord(store.memory)(wordAddress(plane, 6), -2, -1)
  expect([word(plane, 4), word(plane, 5), word(plane, 6)]).toEqual([
    [0, 0],
    [0xffff_fffe, 0x8000_0001],
    [0xffff_fffe, 0xffff_ffff],
  ])
})

test('a word written under a mark has its bit, and counts nothing', () => {
  const plane = ensurePlane(store, table, TODAY + 1)
  for (const row of [31, 32, 64]) writeWord(store, table, plane, row, 0x0103, 77)
  expect([word(plane, 31), word(plane, 32), word(plane, 33)]).toEqual([
    [0x0103, 77],
    [0x0103, 77],
    [0, 0],
  ])
  expect([30, 31, 32, 33, 64].map((row) => bitOf(plane, row))).toEqual([0, 1, 1, 0, 1])
  writeWord(store, table, plane, 31, 0x0100, 77)
  writeWord(store, table, plane, 64, 0, 0)
  expect([30, 31, 32, 33, 64].map((row) => bitOf(plane, row))).toEqual([0, 0, 1, 0, 0])
  expect([packagesOf(plane), tablePackages()]).toEqual([0, 40])
})

test('a loaded plane counts once it is adopted', () => {
  const plane = createPlane(store, table, TODAY + 9)
  expect([planeOf(store.memory, table, TODAY + 9), field(store.memory, plane)]).toEqual([plane, TODAY + 9])
  // The caller charges it with its table.
  expect(store.writer.charge.tables.get(table)?.planes).toBe(1)
  store.memory.u32.set([3, 0xffff_fff0, 5], (plane + PLANE.packages) >>> 2)
  expect(adoptPlane(store, table, plane)).toBe(3)
  expect([packagesOf(plane), ...planeDigest(plane)]).toEqual([3, 0xffff_fff0, 5])
  expect([tablePackages(), slotCells(TODAY + 9)]).toEqual([43, [TODAY + 9, 3, 0xffff_fff0, 5]])
  expect(countsOf(store.memory).packages).toBe(43)
})

test('packages are added to a plane, its day, its table and the shard, modulo 2^32', () => {
  const plane = ensurePlane(store, table, TODAY + 1)
  addToPlane(store, table, plane, 2, -1, 0x7fff_ffff)
  addToPlane(store, table, plane, 1, 3, 0x7fff_ffff)
  expect([packagesOf(plane), ...planeDigest(plane)]).toEqual([3, 2, 0xffff_fffe])
  expect(slotCells(TODAY + 1)).toEqual([TODAY + 1, 3, 2, 0xffff_fffe])
  addToPlane(store, table, plane, 0, 5, 1)
  addToPlane(store, table, plane, -2, 0, 0)
  expect([packagesOf(plane), ...planeDigest(plane)]).toEqual([1, 7, 0xffff_ffff])
  expect([slotCells(TODAY + 1)[1], tablePackages(), countsOf(store.memory).packages]).toEqual([1, 41, 41])
})

describe('a night that has passed', () => {
  test('counts until a later night takes its slot, and then its plane is replaced', () => {
    sell(1, 1)
    const old = planeOf(store.memory, table, TODAY)
    expect([isCounted(store.memory, old), nightsOfRow(store.memory, table, 1).length]).toEqual([true, 2])
    node.day = TODAY + DAY_SLOTS
    expect(sell(1, DAY_SLOTS)).toBe('')
    const plane = planeOf(store.memory, table, TODAY + DAY_SLOTS)
    expect([planeOf(store.memory, table, TODAY), packagesOf(plane)]).toEqual([0, 1])
    expect([tablePackages(), segmentPackages()]).toEqual([2, 2])
    expect(nightsOfRow(store.memory, table, 1)).toEqual([
      { day: TODAY + DAY_SLOTS, lo: 2, hi: 2 ** 32 - 11 },
      { day: TODAY + 1, lo: 2, hi: 2 ** 32 - 11 },
    ])
    check(2)
  })

  test('does not count once its slot is dropped, although its plane is there', () => {
    sell(1, 1)
    dropSlot(store, STATE.slots + (TODAY % DAY_SLOTS) * SLOT.cells)
    const plane = planeOf(store.memory, table, TODAY)
    expect([plane !== 0, isCounted(store.memory, plane)]).toEqual([true, false])
    expect(slotCells(TODAY)).toEqual([0, 0, 0, 0])
    expect(nightsOfRow(store.memory, table, 1).map(({ day }) => day)).toEqual([TODAY + 1])
    expect(nightsOfRow(store.memory, table, 2)).toEqual([])
    expect([countsOf(store.memory).packages, tablePackages()]).toEqual([1, 41])
    // Dropping an empty slot changes nothing.
    const planes = store.writer.charge.tables.get(table)?.planes
    dropSlot(store, STATE.slots + (TODAY % DAY_SLOTS) * SLOT.cells)
    expect([planes, store.writer.charge.tables.get(table)?.planes]).toEqual([1, 1])
    freeUncountedPlanes(store, table)
    expect([planeOf(store.memory, table, TODAY), tablePackages(), segmentPackages()]).toEqual([0, 1, 1])
    check(1)
  })

  test('keeps the nights of other tables charged', () => {
    ask(node, 'SETROOMPKG', {
      ...{ propertyId: 'p1', roomType: 'other', date: formatDay(TODAY + 1), availability: 1, finalPrice: 1 },
    })
    const other = tableOf(store.memory, segmentOf(store.memory, 0), 1)
    dropSlot(store, STATE.slots + (TODAY % DAY_SLOTS) * SLOT.cells)
    const planes = [table, other].map((each) => store.writer.charge.tables.get(each)?.planes)
    expect(planes).toEqual([0, 1])
  })

  test('frees its plane when the table is swept', () => {
    for (const night of [1, 2]) sell(1, night)
    const used = store.writer.planes.usedBytes
    for (const night of [0, 1]) dropSlot(store, STATE.slots + ((TODAY + night) % DAY_SLOTS) * SLOT.cells)
    freePassedPlanes(store, table, TODAY + 1)
    expect([days(TODAY - 1), tablePackages(), segmentPackages()]).toEqual([[1, 2], 2, 2])
    freePassedPlanes(store, table, TODAY + 2)
    expect([days(TODAY - 1), tablePackages(), segmentPackages()]).toEqual([[2], 1, 1])
    check(1)
    for (let n = 0; n < 3; n++) publish(store, ++node.index)
    expect(used - store.writer.planes.usedBytes).toBeGreaterThanOrEqual(2 * (16 + 128 * 8 + 16))
  })

  test('is freed as well while it still counts', () => {
    sell(1, 1)
    const plane = planeOf(store.memory, table, TODAY)
    countFreed(store, table, plane)
    expect([tablePackages(), segmentPackages()]).toEqual([1, 1])
    countFreed(store, table, ensurePlane(store, table, TODAY + 2))
    expect([tablePackages(), segmentPackages()]).toEqual([1, 1])
  })
})

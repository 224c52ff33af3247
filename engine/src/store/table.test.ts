/** Tables with bitmaps, which grow, shrink and are sorted: every row, word and bit against a model. */
import { formatDay, parseDay, unpackPropertyId } from '@vacancy/shared'
import { createRandom, pick, type Random } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import {
  applyOwn,
  ask,
  createNodeInMemory,
  type NodeInMemory,
  orderRows,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { bitmapAddress, findAttribute, isOverflowed } from './bitmaps.ts'
import { KIND, writeU8, writeU32 } from './command.ts'
import { findName, NAMES } from './dictionary.ts'
import {
  ATTRIBUTE,
  ATTRIBUTE_SLOT,
  type Attribute,
  BITMAP_ROWS_MIN,
  PLANE,
  PROPERTY,
  SEGMENT,
  TABLE,
} from './layout.ts'
import { forEachPlane, forEachSlot, planeOf, wordAddress } from './planes.ts'
import { recountCharge } from './recount.ts'
import { segmentOf, tableOf } from './segment.ts'
import { type Memory, publish, stateDigest } from './store.ts'
import { field, propertyOfRow, rowCountOf } from './table-fields.ts'
import { sweepOne } from './window.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const TODAY = parseDay('2026-11-20') as number
/** Days of two leaves, and of both ends of the ring of days. */
const DAYS = [TODAY, TODAY + 1, TODAY + 40, TODAY + 364]
const encoder = new TextEncoder()

/** Availability and price per day. */
type Words = Map<number, { left: number; price: number }>
type Model = Map<string, Words>

function numberOf(memory: Memory, kind: (typeof NAMES)[keyof typeof NAMES], text: string): number {
  const bytes = encoder.encode(text)
  return findName(memory, kind, bytes, 0, bytes.length)
}

function tablesOf({ store: { memory } }: NodeInMemory): { properties: number; rooms: number } {
  const segment = segmentOf(memory, numberOf(memory, NAMES.segment, 's'))
  const rooms = tableOf(memory, segment, numberOf(memory, NAMES.roomType, 'double'))
  return { properties: field(memory, segment + SEGMENT.propertyTable), rooms }
}

function setProperty(node: NodeInMemory, random: Random, propertyId: string): void {
  const { error } = ask(node, 'SETPROP', {
    ...{ segment: 's', propertyId, area: `area ${random.below(9)}`, propertyType: pick(random, ['inn', 'hotel']) },
    ...{ category: `c ${random.below(4)}`, stars: 1 + random.below(5), latitude: 1, longitude: 1 },
    amenities: ['bar', 'spa', 'gym', 'lift', 'pool'].filter(() => random.below(3) === 0),
  })
  expect(error).toBe('')
}

function setWord(node: NodeInMemory, random: Random, model: Model, propertyId: string, day: number): void {
  const [left, price] = [random.below(3), 1 + random.below(500)]
  const night = { propertyId, roomType: 'double', date: formatDay(day), availability: left, finalPrice: price }
  expect(ask(node, 'SETROOMPKG', { ...night, rateFeatures: [] }).error).toBe('')
  model.get(propertyId)?.set(day, { left, price })
}

/** Rows with a bit, ascending. */
function bitsAt(memory: Memory, address: number, rows: number): number[] {
  return Array.from({ length: rows }, (_, row) => row).filter(
    (row) => ((field(memory, address + (row >>> 5) * 4) >>> (row & 31)) & 1) === 1,
  )
}

/** The values of a property that may have a bitmap. */
function valuesOf(memory: Memory, property: number): [Attribute, number][] {
  const list = field(memory, property + PROPERTY.amenities)
  return [
    [ATTRIBUTE.alive, 0],
    [ATTRIBUTE.type, field(memory, property + PROPERTY.type)],
    [ATTRIBUTE.category, field(memory, property + PROPERTY.category)],
    [ATTRIBUTE.stars, field(memory, property + PROPERTY.stars)],
    [ATTRIBUTE.area, field(memory, property + PROPERTY.area)],
    ...Array.from({ length: list === 0 ? 0 : field(memory, list) }, (_, n): [Attribute, number] => [
      ATTRIBUTE.amenity,
      field(memory, list + 4 + n * 4),
    ]),
  ]
}

/** Each bitmap has exactly the rows with its value, within its range. @returns number of bitmaps */
function checkBitmaps(memory: Memory, table: number): number {
  const capacity = field(memory, table + TABLE.capacity)
  const slots = field(memory, table + TABLE.attributeSlots)
  expect(slots !== 0).toBe(capacity >= BITMAP_ROWS_MIN)
  if (slots === 0) return 0
  const expected = new Map<string, number[]>()
  for (let row = 0; row < rowCountOf(memory, table); row++) {
    const property = propertyOfRow(memory, table, row)
    if (property === 0) continue
    for (const [attribute, value] of valuesOf(memory, property)) {
      const key = `${attribute} ${value}`
      const rows = expected.get(key)
      if (rows) rows.push(row)
      else expected.set(key, [row])
      if (rows) continue
      expect(findAttribute(memory, table, attribute, value) !== 0 || isOverflowed(memory, table, attribute)).toBe(true)
    }
  }
  const bitmaps = new Set<number>()
  for (let i = 0; i <= field(memory, table + TABLE.attributeMask); i++) {
    const slot = slots + i * ATTRIBUTE_SLOT.bytes
    const key = field(memory, slot + ATTRIBUTE_SLOT.key) - 1
    if (key < 0) continue
    const bitmap = field(memory, slot + ATTRIBUTE_SLOT.bitmap)
    bitmaps.add(bitmap)
    const rows = bitsAt(memory, bitmapAddress(memory, table, bitmap), capacity)
    expect(rows).toEqual(expected.get(`${key >>> 28} ${key & 0xfffffff}`) ?? [])
    if (rows.length === 0) continue
    expect(field(memory, slot + ATTRIBUTE_SLOT.firstRow)).toBeLessThanOrEqual(rows[0] as number)
    expect(field(memory, slot + ATTRIBUTE_SLOT.endRow)).toBeGreaterThan(rows.at(-1) as number)
    expect(field(memory, slot + ATTRIBUTE_SLOT.endRow)).toBeLessThanOrEqual(capacity)
  }
  expect([...bitmaps].sort((a, b) => a - b)).toEqual(Array.from(bitmaps, (_, n) => n))
  expect(field(memory, table + TABLE.bitmapCount)).toBe(bitmaps.size)
  expect(field(memory, table + TABLE.bitmapCapacity)).toBeGreaterThanOrEqual(bitmaps.size)
  return bitmaps.size
}

function checkWords(memory: Memory, table: number, model: Model): void {
  const capacity = field(memory, table + TABLE.capacity)
  const rows = rowCountOf(memory, table)
  const ids = Array.from({ length: rows }, (_, row) => {
    const property = propertyOfRow(memory, table, row)
    return property === 0 ? '' : unpackPropertyId(memory.u8, property)
  })
  expect(ids.filter((id) => id !== '').sort()).toEqual([...model.keys()].sort())
  expect(field(memory, table + TABLE.liveRows)).toBe(model.size)
  const idAt = (row: number) => unpackPropertyId(memory.u8, field(memory, table + TABLE.rowIds) + row * 16)
  expect(ids.map((id, row) => (id === '' ? '' : idAt(row)))).toEqual(ids)
  let packages = 0
  forEachSlot(memory, table, (_slot, plane) => {
    const day = field(memory, plane + PLANE.day)
    const available: number[] = []
    const wrong: number[] = []
    for (let row = 0; row < capacity; row++) {
      const cell = wordAddress(plane, row) >>> 2
      const word = model.get(ids[row] ?? '')?.get(day)
      const [lo, hi] = word === undefined ? [0, 0] : [word.left, ~word.price >>> 0]
      if (memory.u32[cell] !== lo || memory.u32[cell + 1] !== hi) wrong.push(row)
      if (word !== undefined) packages++
      if (word !== undefined && word.left > 0) available.push(row)
    }
    expect(wrong).toEqual([])
    expect(bitsAt(memory, plane + PLANE.words + capacity * 8, capacity)).toEqual(available)
  })
  expect(packages).toBe([...model.values()].reduce((sum, words) => sum + words.size, 0))
}

function check(node: NodeInMemory, model: Model): void {
  const { store } = node
  const { properties, rooms } = tablesOf(node)
  for (const table of [properties, rooms]) checkBitmaps(store.memory, table)
  checkWords(store.memory, rooms, model)
  expect(stateDigest(store.memory)).toEqual(recountDigest(store.memory).digest)
  expect(store.writer.charge.bytes).toBe(recountCharge(store.memory))
}

describe.each([0, 3])('a table at feature level %i', (level) => {
  test('keeps rows, words and bits while it grows, is sorted, loses rows and shrinks', () => {
    const random = createRandom(SEED)
    const node = createNodeInMemory(TODAY, 48 << 20)
    raiseFeatureLevel(node, level)
    const model: Model = new Map()
    const add = (propertyId: string) => {
      setProperty(node, random, propertyId)
      if (!model.has(propertyId)) model.set(propertyId, new Map())
      setWord(node, random, model, propertyId, pick(random, DAYS))
      setWord(node, random, model, propertyId, DAYS[0] as number)
    }
    const remove = () => {
      const propertyId = pick(random, [...model.keys()])
      model.delete(propertyId)
      expect(ask(node, 'DELPROP', { propertyId }).error).toBe('')
    }
    for (let n = 0; n < 128; n++) add(`p${n}`)
    check(node, model)
    expect(field(node.store.memory, tablesOf(node).rooms + TABLE.bitmaps)).toBe(0)
    for (let n = 128; n < 262; n++) add(`p${n}`)
    check(node, model)
    orderRows(node, 's', 'double')
    orderRows(node, 's')
    check(node, model)
    for (let n = 0; n < 90; n++) {
      if (random.below(3) > 0) remove()
      else add(`p${random.below(400)}`)
    }
    check(node, model)
    while (model.size > 100) remove()
    orderRows(node, 's')
    check(node, model)
    while (model.size > 5) remove()
    if (level === 0) orderRows(node, 's', 'double')
    check(node, model)
    for (let n = 0; n < 30; n++) add(`q${n}`)
    check(node, model)
    expect(ask(node, 'DELSEGMENT', { segment: 's' }).error).toBe('')
    while (sweepOne(node.store));
    for (let n = 0; n < 2; n++) publish(node.store, node.index)
    expect(node.store.writer.planes.usedBytes, `VACANCY_SEED=${SEED}`).toBe(0)
  })
})

describe('nights', () => {
  function nodeWithNights(): NodeInMemory {
    const node = createNodeInMemory(TODAY, 48 << 20)
    raiseFeatureLevel(node)
    const random = createRandom(SEED)
    setProperty(node, random, 'p')
    for (const day of DAYS) setWord(node, random, new Map(), 'p', day)
    return node
  }

  test('are found by their day, from a day on, in ascending order', () => {
    const node = nodeWithNights()
    const { memory } = node.store
    const { rooms } = tablesOf(node)
    const from = (day: number) => {
      const days: number[] = []
      forEachPlane(memory, rooms, day, (plane, at) => {
        expect(planeOf(memory, rooms, at)).toBe(plane)
        expect(field(memory, plane + PLANE.day)).toBe(at)
        days.push(at)
      })
      return days
    }
    expect(from(TODAY)).toEqual(DAYS)
    expect(from(TODAY + 1)).toEqual(DAYS.slice(1))
    expect(from(TODAY + 2)).toEqual(DAYS.slice(2))
    expect(from(TODAY + 365)).toEqual([])
    // The same slot of the ring, one round later and earlier.
    for (const day of [TODAY + 384, TODAY - 384, TODAY + 2]) expect(planeOf(memory, rooms, day)).toBe(0)
  })

  test.each([
    ['freed by a sweep', true],
    ['replaced by a later day in the same place', false],
  ])('that pass are no longer counted, and %s', (_, isSwept) => {
    const node = nodeWithNights()
    const { memory, writer } = node.store
    const { rooms } = tablesOf(node)
    const [planes, charge] = [writer.planes.usedBytes, writer.charge.bytes]
    node.day = TODAY + 20
    applyOwn(node, KIND.dropBefore, (body) => {
      writeU32(body, node.day)
      writeU8(body, 0)
    })
    expect(recountDigest(memory).packages).toBe(2)
    expect(stateDigest(memory)).toEqual(recountDigest(memory).digest)
    expect([writer.charge.bytes < charge, writer.charge.bytes]).toEqual([true, recountCharge(memory)])
    while (isSwept && sweepOne(node.store));
    publish(node.store, node.index)
    publish(node.store, node.index)
    const held: number[] = []
    forEachSlot(memory, rooms, (_slot, plane) => held.push(field(memory, plane + PLANE.day)))
    expect(held.toSorted((a, b) => a - b)).toEqual(isSwept ? DAYS.slice(2) : DAYS)
    if (isSwept) expect(writer.planes.usedBytes).toBeLessThan(planes)
    for (const day of [TODAY + 384, TODAY + 385]) setWord(node, createRandom(1), new Map(), 'p', day)
    publish(node.store, node.index)
    publish(node.store, node.index)
    expect([writer.planes.usedBytes, writer.charge.bytes]).toEqual([planes, charge])
    expect(field(memory, rooms + TABLE.packages)).toBe(4)
    expect(field(memory, segmentOf(memory, 0) + SEGMENT.packages)).toBe(4)
    expect(stateDigest(memory)).toEqual(recountDigest(memory).digest)
  })
})

/** Bitmaps of a table with many values: their limits, their ranges, and how many are reserved. */
import { parseDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import {
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  orderRows,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { bitmapAddress, bitmapGrowthBytes, bitmapsFor, findAttribute, isOverflowed } from './bitmaps.ts'
import { internText, NAMES, type NameKind } from './dictionary.ts'
import { ATTRIBUTE, ATTRIBUTE_SLOT, type Attribute, bitmapBytes, SEGMENT, TABLE } from './layout.ts'
import { segmentOf } from './segment.ts'
import { field, rowCountOf } from './table-fields.ts'

const TODAY = parseDay('2026-11-20') as number
const ROWS = 200
/** Rows that a table has at least when it has bitmaps. */
const FIRST = 129

const PLACE = { segment: 's', area: 'a', propertyType: 't', category: 'c', stars: 3, latitude: 1, longitude: 1 }

function nodeWith(rows: number, fieldsOf: (n: number) => LooseFields, level = 3): NodeInMemory {
  const node = createNodeInMemory(TODAY, 48 << 20)
  raiseFeatureLevel(node, level)
  for (let n = 0; n < rows; n++) set(node, n, fieldsOf(n))
  return node
}

function set(node: NodeInMemory, n: number, fields: LooseFields): void {
  expect(ask(node, 'SETPROP', { ...PLACE, propertyId: `p${n}`, amenities: [], ...fields }).error).toBe('')
}

function tableOf({ store: { memory } }: NodeInMemory): number {
  return field(memory, segmentOf(memory, 0) + SEGMENT.propertyTable)
}

/** Rows with a value; undefined when it has no bitmap. */
function rowsWith(node: NodeInMemory, attribute: Attribute, value: number): number[] | undefined {
  const { memory } = node.store
  const table = tableOf(node)
  const slot = findAttribute(memory, table, attribute, value)
  if (slot === 0) return undefined
  const address = bitmapAddress(memory, table, field(memory, slot + ATTRIBUTE_SLOT.bitmap))
  return Array.from({ length: rowCountOf(memory, table) }, (_, row) => row).filter(
    (row) => ((field(memory, address + (row >>> 5) * 4) >>> (row & 31)) & 1) === 1,
  )
}

const range = (node: NodeInMemory, attribute: Attribute, value: number) => {
  const { memory } = node.store
  const slot = findAttribute(memory, tableOf(node), attribute, value)
  return [field(memory, slot + ATTRIBUTE_SLOT.firstRow), field(memory, slot + ATTRIBUTE_SLOT.endRow)]
}
const nameOf = (node: NodeInMemory, kind: NameKind, name: string) => internText(node.store, kind, name)

test('a table of 128 rows has no bitmaps, one of 129 has those of all its values', () => {
  const node = nodeWith(128, (n) => ({ stars: 1 + (n % 5), area: `a${n % 2}` }))
  const { memory } = node.store
  expect(field(memory, tableOf(node) + TABLE.bitmaps)).toBe(0)
  expect(findAttribute(memory, tableOf(node), ATTRIBUTE.stars, 1)).toBe(0)
  expect(bitmapGrowthBytes(memory, tableOf(node))).toBe(0)

  set(node, 128, { stars: 4, area: 'a0' })

  const rows = Array.from({ length: FIRST }, (_, n) => n)
  expect(rowsWith(node, ATTRIBUTE.alive, 0)).toEqual(rows)
  expect(rowsWith(node, ATTRIBUTE.stars, 2)).toEqual(rows.filter((n) => n % 5 === 1))
  expect(rowsWith(node, ATTRIBUTE.area, nameOf(node, NAMES.area, 'a0'))).toEqual(rows.filter((n) => n % 2 === 0))
  expect(rowsWith(node, ATTRIBUTE.stars, 6)).toBeUndefined()
})

test.each([
  ['types', ATTRIBUTE.type, NAMES.type, 64, (n: number) => ({ propertyType: `v${n}` })],
  ['categories', ATTRIBUTE.category, NAMES.category, 64, (n: number) => ({ category: `v${n}` })],
  ['areas', ATTRIBUTE.area, NAMES.area, 64, (n: number) => ({ area: `v${n}` })],
  ['amenities', ATTRIBUTE.amenity, NAMES.amenity, 256, (n: number) => ({ amenities: [`v${2 * n}`, `v${2 * n + 1}`] })],
] as const)(
  'only so many %s have bitmaps, and the table notes that others exist',
  (_, attribute, kind, most, fields) => {
    const perRow = attribute === ATTRIBUTE.amenity ? 2 : 1
    // One value fewer than the table may have, in any number of rows.
    const node = nodeWith(ROWS, (n) => fields(n % (most / perRow)))
    const { memory } = node.store
    const value = (n: number) => nameOf(node, kind, `v${n}`)
    const others = [
      ATTRIBUTE.alive,
      ATTRIBUTE.type,
      ATTRIBUTE.category,
      ATTRIBUTE.stars,
      ATTRIBUTE.area,
      ATTRIBUTE.amenity,
    ]
    expect(others.map((each) => isOverflowed(memory, tableOf(node), each))).toEqual(others.map(() => false))
    expect(rowsWith(node, attribute, value(most - 1))).toContain(most / perRow - 1)

    set(node, ROWS, fields(most))

    expect(others.filter((each) => isOverflowed(memory, tableOf(node), each))).toEqual([attribute])
    expect(rowsWith(node, attribute, value(most * perRow))).toBeUndefined()
    const rows = rowsWith(node, attribute, value(0)) ?? []
    expect(rows).toEqual(Array.from({ length: ROWS }, (_row, n) => n).filter((n) => n % (most / perRow) === 0))
    // A rebuilt table counts its values again.
    orderRows(node, 's')
    expect(others.filter((each) => isOverflowed(memory, tableOf(node), each))).toEqual([attribute])
  },
)

test('a value that leaves a row takes its bit along, and the new one widens its range', () => {
  const node = nodeWith(ROWS, (n) => ({ category: n < 40 ? 'low' : 'high' }))
  const [low, high] = [nameOf(node, NAMES.category, 'low'), nameOf(node, NAMES.category, 'high')]
  const rows = (from: number, end: number) => Array.from({ length: end - from }, (_, n) => from + n)
  expect(rowsWith(node, ATTRIBUTE.category, low)).toEqual(rows(0, 40))

  set(node, 150, { category: 'low' })
  expect(rowsWith(node, ATTRIBUTE.category, low)).toEqual([...rows(0, 40), 150])
  expect(rowsWith(node, ATTRIBUTE.category, high)).toEqual([...rows(40, 150), ...rows(151, ROWS)])
  expect(range(node, ATTRIBUTE.category, low)).toEqual([0, 151])
  set(node, 90, { category: 'new' })
  const value = nameOf(node, NAMES.category, 'new')
  expect([rowsWith(node, ATTRIBUTE.category, value), range(node, ATTRIBUTE.category, value)]).toEqual([[90], [90, 91]])
  set(node, 80, { category: 'new' })
  set(node, 85, { category: 'new' })
  expect(range(node, ATTRIBUTE.category, value)).toEqual([80, 91])
})

test('a table reserves a power of two of bitmaps, at least 16, for its values, their live rows and one more', () => {
  // Type, category, stars and area are one value each, then amenities: 14 values with the live rows and a spare one.
  const reserved = (amenities: number) => {
    const node = nodeWith(FIRST, (n) => ({ amenities: n < amenities ? [`m${n}`] : [] }))
    return bitmapsFor(node.store.memory, tableOf(node))
  }
  expect([0, 10, 11, 26, 27, 58, 59].map(reserved)).toEqual([16, 16, 32, 32, 64, 64, 128])
})

test('the bound of new bitmaps is twice those of the table, unless the values of any property fit', () => {
  const node = nodeWith(FIRST, () => ({}))
  const { memory } = node.store
  const table = tableOf(node)
  const each = bitmapBytes(field(memory, table + TABLE.capacity)) + 2 * ATTRIBUTE_SLOT.bytes
  expect(bitmapGrowthBytes(memory, table)).toBe(32 * each)
  // 5 values so far.
  const used = [5]
  for (let n = 0; n < 2; n++) {
    set(node, n, { amenities: Array.from({ length: 60 }, (_, i) => `m${n} ${i}`) })
    used.push(field(memory, table + TABLE.bitmapCount))
  }
  expect(used).toEqual([5, 65, 125])
  expect(field(memory, table + TABLE.bitmapCapacity)).toBe(128)
  expect(bitmapGrowthBytes(memory, table)).toBe(256 * each)
  set(node, 2, { amenities: Array.from({ length: 60 }, (_, i) => `m2 ${i}`) })
  // 185 of 256: a property adds 68 at most.
  expect(field(memory, table + TABLE.bitmapCount)).toBe(185)
  expect(bitmapGrowthBytes(memory, table)).toBe(0)
  set(node, 3, { amenities: ['one'] })
  set(node, 3, { amenities: ['two', 'three', 'four'] })
  expect(bitmapGrowthBytes(memory, table)).toBe(512 * each)
})

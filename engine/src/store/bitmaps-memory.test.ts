/** Bitmaps of a property table without commands: bits, ranges, memory, and the words that a snapshot copies first. */
import { createRandom, type Random } from '@vacancy/testkit/random'
import { describe, expect, test, vi } from 'vitest'
import { unannounced } from '../testing/unannounced.ts'
import {
  bitmapAddress,
  bitmapsFor,
  clearRowBits,
  findAttribute,
  isOverflowed,
  noteBounds,
  rebuildBitmaps,
  renewRowBits,
  setRowBits,
} from './bitmaps.ts'
import type * as CopyOnWrite from './cow.ts'
import { ATTRIBUTE, ATTRIBUTE_SLOT, type Attribute, bitmapBytes, PROPERTY, SEGMENT, STATE, TABLE } from './layout.ts'
import { admitProperty, createPropertyRecord, dismissProperty, segmentOf, writeAttributes } from './segment.ts'
import { createStore, publish, type Store, setState } from './store.ts'
import { field, rowCountOf } from './table-fields.ts'
import { mark, unmark } from './version.ts'

const watch = vi.hoisted(() => ({ touched: (_address: number, _bytes: number): void => undefined }))
vi.mock('./cow.ts', async (load) => {
  const cow = await load<typeof CopyOnWrite>()
  const touch: typeof cow.touch = (store, address, bytes) => {
    watch.touched(address, bytes)
    cow.touch(store, address, bytes)
  }
  return { ...cow, touch }
})

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const PLAIN = { segment: 0, area: 0, type: 0, category: 0, stars: 1, latitude: 0, longitude: 0, amenities: [] }
type Values = Partial<{ area: number; type: number; category: number; stars: number; amenities: number[] }>
type Row = { readonly property: number; values: Values }
type Rows = { readonly store: Store; readonly known: Map<number, Row> }

function emptyRows(level = 1): Rows {
  const store = createStore({ memoryBytes: 16 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 0 })
  setState(store, STATE.featureLevel, level)
  return { store, known: new Map() }
}

function add({ store, known }: Rows, n: number, values: Values): void {
  const id = new Uint8Array(16)
  new DataView(id.buffer).setUint32(0, n + 1)
  const property = createPropertyRecord(store, id, 0, { ...PLAIN, ...values })
  admitProperty(store, property)
  known.set(n, { property, values })
}

function change({ store, known }: Rows, n: number, values: Values): void {
  const row = known.get(n) as Row
  const table = tableOf(store)
  mark(store, table)
  writeAttributes(store, row.property, { ...PLAIN, ...values })
  renewRowBits(store, table, rowOf(store, row.property), row.property)
  unmark(store, table)
  row.values = values
}

function remove({ store, known }: Rows, n: number): void {
  dismissProperty(store, (known.get(n) as Row).property)
  known.delete(n)
}

const tableOf = ({ memory }: Store) => field(memory, segmentOf(memory, 0) + SEGMENT.propertyTable)
const rowOf = ({ memory }: Store, property: number) => field(memory, property + PROPERTY.row)
const cellOf = (store: Store, cell: number) => field(store.memory, tableOf(store) + cell)

/** The rows of each value, as 'attribute value', by the model. */
function modelOf({ store, known }: Rows): Map<string, number[]> {
  const rows = new Map<string, number[]>()
  for (const { property, values } of known.values()) {
    const { type, category, stars, area, amenities } = { ...PLAIN, ...values }
    const keys = [
      ...[`${ATTRIBUTE.alive} 0`, `${ATTRIBUTE.type} ${type}`, `${ATTRIBUTE.category} ${category}`],
      ...[`${ATTRIBUTE.stars} ${stars}`, `${ATTRIBUTE.area} ${area}`],
      ...amenities.map((amenity) => `${ATTRIBUTE.amenity} ${amenity}`),
    ]
    for (const key of keys) rows.set(key, [...(rows.get(key) ?? []), rowOf(store, property)])
  }
  return new Map([...rows].map(([key, list]) => [key, list.toSorted((a, b) => a - b)]))
}

/** The bits and the range of a value; undefined without a bitmap. */
function heldOf(store: Store, key: string) {
  const { memory } = store
  const [attribute, value] = key.split(' ').map(Number) as [Attribute, number]
  const slot = findAttribute(memory, tableOf(store), attribute, value)
  if (slot === 0) return undefined
  const bits = bitmapAddress(memory, tableOf(store), field(memory, slot + ATTRIBUTE_SLOT.bitmap))
  const rows = Array.from({ length: cellOf(store, TABLE.capacity) }, (_, row) => row)
  const range = [field(memory, slot + ATTRIBUTE_SLOT.firstRow), field(memory, slot + ATTRIBUTE_SLOT.endRow)]
  return { rows: rows.filter((row) => (field(memory, bits + (row >>> 5) * 4) >>> (row & 31)) & 1), range }
}

/** Bits are those of the model, within their ranges; `isNarrow` when the ranges were noted again. */
function check(rows: Rows, note: string, isNarrow = false): void {
  const { store } = rows
  for (const [key, wanted] of modelOf(rows)) {
    const held = heldOf(store, key)
    if (held === undefined) {
      expect(isOverflowed(store.memory, tableOf(store), Number(key.split(' ')[0]) as Attribute), note).toBe(true)
      continue
    }
    const [first = -1, end = -1] = held.range
    const [least = -1, last = -1] = [wanted[0], wanted.at(-1)]
    expect({ key, rows: held.rows, isCovered: first <= least && end > last }, note).toEqual({
      ...{ key, rows: wanted, isCovered: true },
    })
    if (isNarrow) expect([first, end], note).toEqual([least & ~31, (last + 32) & ~31])
  }
}

/** Nothing but the columns and bitmaps of the table is in use. */
function checkMemory({ store }: Rows, note: string): void {
  for (let n = 0; n < 2; n++) publish(store, 1)
  const capacity = cellOf(store, TABLE.capacity)
  const bitmaps = cellOf(store, TABLE.bitmapCapacity)
  expect(store.writer.planes.usedBytes, note).toBe(
    capacity * 20 + bitmaps * (bitmapBytes(capacity) + 2 * ATTRIBUTE_SLOT.bytes),
  )
}

function drawn(random: Random): Values {
  const few = (most: number) => random.below(1 + random.below(most))
  return {
    ...{ area: few(20), type: few(9), category: few(5), stars: 1 + few(5) },
    amenities: [...new Set(Array.from({ length: few(5) }, () => few(60)))].sort((a, b) => a - b),
  }
}

describe.each([0, 1])('at feature level %i', (level) => {
  test('a table that grows, changes and shrinks has the bits of its rows, and no other memory', () => {
    const rows = emptyRows(level)
    const random = createRandom(SEED)
    const note = `VACANCY_SEED=${SEED}`
    let shrunk = 0
    for (let n = 0; n < 420; n++) {
      add(rows, n, drawn(random))
      if (n > 130 && n % 7 === 0) change(rows, random.below(n), drawn(random))
      if ((n > 129 && n % 130 === 0) || n === 419) check(rows, note)
    }
    checkMemory(rows, note)
    while (rows.known.size > 100) {
      const capacity = cellOf(rows.store, TABLE.capacity)
      remove(rows, [...rows.known.keys()][random.below(rows.known.size)] as number)
      const isShrunk = cellOf(rows.store, TABLE.capacity) < capacity
      if (isShrunk) shrunk++
      if (isShrunk && cellOf(rows.store, TABLE.bitmaps) !== 0) check(rows, note, true)
      if (isShrunk) checkMemory(rows, note)
    }
    // Below level 1 a table keeps its capacity.
    expect(shrunk > 1).toBe(level > 0)
    checkMemory(rows, note)
  })
})

test('a full list of bitmaps is copied to twice the size, with all bits and ranges', () => {
  const rows = emptyRows()
  const { store } = rows
  for (let n = 0; n < 129; n++) add(rows, n, {})
  expect([cellOf(store, TABLE.bitmapCapacity), cellOf(store, TABLE.bitmapCount)]).toEqual([16, 5])
  const sizes: number[] = []
  for (let n = 0; n < 60; n++) {
    change(rows, 2 * n, { amenities: [n] })
    sizes.push(cellOf(store, TABLE.bitmapCapacity))
  }
  // 5 values before: the 12th, 28th and 60th amenity are the first ones without space.
  expect([0, 10, 11, 26, 27, 58, 59].map((n) => sizes[n])).toEqual([16, 16, 32, 32, 64, 64, 128])
  check(rows, '')
  for (let n = 0; n < 60; n++) {
    expect(heldOf(store, `${ATTRIBUTE.amenity} ${n}`)).toEqual({ rows: [2 * n], range: [2 * n, 2 * n + 1] })
  }
  expect([cellOf(store, TABLE.attributeMask), cellOf(store, TABLE.bitmapCount)]).toEqual([255, 65])
  checkMemory(rows, '')
})

test('a rebuilt table counts values again, up to the most of each attribute', () => {
  const rows = emptyRows()
  const { store } = rows
  for (let n = 0; n < 129; n++) add(rows, n, { type: n % 63, category: n % 63, area: n % 64 })
  const counts = () => {
    const [typeOfAlive = 0, categories = 0, areas = 0] = [0, 4, 8].map((at) =>
      cellOf(store, TABLE.attributeCounts + at),
    )
    return [
      typeOfAlive & 0xffff,
      typeOfAlive >>> 16,
      categories & 0xffff,
      categories >>> 16,
      areas & 0xffff,
      areas >>> 16,
    ]
  }
  // Live rows, type, category, stars, area and amenity.
  expect(counts()).toEqual([1, 63, 63, 1, 64, 0])
  change(rows, 1, { type: 63, category: 63, stars: 2, area: 5, amenities: [7, 8] })
  expect(counts()).toEqual([1, 64, 64, 2, 64, 2])
  const values = [ATTRIBUTE.type, ATTRIBUTE.category, ATTRIBUTE.stars, ATTRIBUTE.area, ATTRIBUTE.amenity]
  const overflowed = () => values.filter((each) => isOverflowed(store.memory, tableOf(store), each))
  expect(overflowed()).toEqual([])
  change(rows, 1, { type: 64, area: 64 })
  expect([overflowed(), counts()]).toEqual([
    [ATTRIBUTE.type, ATTRIBUTE.area],
    [1, 64, 64, 2, 64, 2],
  ])
  // No row has type 63 or category 63 any more, but area 64 and type 64 are one too many and one that fits.
  rebuildBitmaps(store, tableOf(store), cellOf(store, TABLE.capacity))
  expect([overflowed(), counts()]).toEqual([[ATTRIBUTE.area], [1, 64, 63, 1, 64, 0]])
  expect(cellOf(store, TABLE.bitmapCount)).toBe(1 + 64 + 63 + 1 + 64)
  check(rows, '', true)
  checkMemory(rows, '')
})

test('values beyond the most of their attribute reserve no bitmaps', () => {
  const rows = emptyRows()
  for (let n = 0; n < 129; n++) add(rows, n, { type: n })
  // 64 types, and one value each of category, stars and area.
  expect(bitmapsFor(rows.store.memory, tableOf(rows.store))).toBe(128)
})

test('noted ranges are the narrowest multiples of 32 rows, and empty for a value that no row has', () => {
  const rows = emptyRows()
  const { store } = rows
  for (let n = 0; n < 200; n++) add(rows, n, {})
  change(rows, 0, { area: 1 })
  for (const n of [31, 64]) change(rows, n, { area: 2 })
  for (const n of [32, 63]) change(rows, n, { area: 3 })
  change(rows, 199, { area: 4 })
  const ranges = () => [1, 2, 3, 4].map((area) => heldOf(store, `${ATTRIBUTE.area} ${area}`)?.range)
  expect(ranges()).toEqual([
    [0, 1],
    [31, 65],
    [32, 64],
    [199, 200],
  ])
  change(rows, 199, { area: 0 })
  noteBounds(store, tableOf(store))
  expect(ranges().slice(0, 3)).toEqual([
    [0, 32],
    [0, 96],
    [32, 64],
  ])
  const [first = -1, end = -1] = ranges()[3] ?? []
  expect(end - first).toBe(0)
})

describe('a snapshot in progress has a copy of each word before it changes', () => {
  const rows = emptyRows()
  const { store } = rows
  const random = createRandom(SEED)
  for (let n = 0; n < 300; n++) add(rows, n, drawn(random))

  test.each<[string, () => void]>([
    ['bits of a row are cleared', () => clearRowBits(store, tableOf(store), 140)],
    [
      'bits of a row are set',
      () => setRowBits(store, tableOf(store), 140, field(store.memory, cellOf(store, TABLE.rowProperties) + 140 * 4)),
    ],
    ['a row has new values', () => change(rows, 7, { area: 90, amenities: [91, 92] })],
    ['ranges are noted', () => noteBounds(store, tableOf(store))],
    ['bitmaps are rebuilt', () => rebuildBitmaps(store, tableOf(store), cellOf(store, TABLE.capacity))],
    ['properties are added', () => [400, 401].forEach((n) => void add(rows, n, {}))],
  ])('%s', (_, operation) => {
    expect(unannounced(store, watch, operation, [tableOf(store) + TABLE.version])).toEqual([])
  })

  test('a table shrinks', () => {
    const capacity = cellOf(store, TABLE.capacity)
    const keys = [...rows.known.keys()]
    while (cellOf(store, TABLE.capacity) === capacity) {
      const n = keys.pop() as number
      expect(
        unannounced(store, watch, () => remove(rows, n), [tableOf(store) + TABLE.version]),
        `VACANCY_SEED=${SEED}, ${n}`,
      ).toEqual([])
    }
    expect(rowCountOf(store.memory, tableOf(store))).toBeGreaterThan(128)
  })
})

/** Tables without commands: bounds of their growth, loaded and reordered rows, passed nights, and moves when memory is short. */

import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { plainPutWord } from '../testing/search-reference.ts'
import { unannounced } from '../testing/unannounced.ts'
import { release } from './arena.ts'
import { bitmapAddress, findAttribute } from './bitmaps.ts'
import type * as CopyOnWrite from './cow.ts'
import { ATTRIBUTE, ATTRIBUTE_SLOT, bitmapBytes, PLANE, planeBytes, ROOMS, STATE, TABLE } from './layout.ts'
import { changeWord, ensurePlane, planeOf, wordAddress } from './planes.ts'
import { addRoom, admitProperty, createPropertyRecord, ensureTable, findRoom, segmentOf } from './segment.ts'
import { allocatePlane, allocateRecord, createStore, publish, type Store, setState } from './store.ts'
import {
  appendRow,
  createTable,
  fillRows,
  freeTable,
  liveRowsOf,
  rebuildBytes,
  rebuildTable,
  removeRow,
  rowGrowthBytes,
} from './table.ts'
import { field, propertyOfRow, rowCountOf, setField } from './table-fields.ts'
import { mark, unmark, versionOf } from './version.ts'

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
const DAY = 20_000
const PLAIN = { segment: 0, area: 0, type: 0, category: 0, stars: 1, latitude: 0, longitude: 0, amenities: [] }
let store: Store
let table: number

beforeEach(() => {
  store = createStore({ memoryBytes: 6 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 0 })
  setState(store, STATE.featureLevel, 1)
  // The segment exists with its first property, whose table has another room type.
  property(0)
  table = ensureTable(store, segmentOf(store.memory, 0), 7, 1)
})

const cell = (at: number, of = table) => field(store.memory, of + at)
const settle = () => {
  for (let n = 0; n < 2; n++) publish(store, 1)
}

function property(n: number, amenities: number[] = []): number {
  const id = new Uint8Array(16)
  new DataView(id.buffer).setUint32(12, n + 1)
  new DataView(id.buffer).setUint32(0, 77 * n)
  const created = createPropertyRecord(store, id, 0, { ...PLAIN, type: n % 3, amenities })
  admitProperty(store, created)
  return created
}

/** Adds rows of new properties to the table. @returns addresses of the properties */
function addRows(from: number, count: number, amenities: (n: number) => number[] = () => []): number[] {
  return Array.from({ length: count }, (_, n) => {
    const created = property(from + n, amenities(from + n))
    addRoom(store, created, 7, table, appendRow(store, table, created))
    return created
  })
}

const put = (row: number, day: number, lo: number, hi: number) =>
  changeWord(store, plainPutWord(store.memory), table, ensurePlane(store, table, day), row, lo, hi, row, row)

/** Everything that a reader finds in a table. */
function contentOf(of = table) {
  const { memory } = store
  const rows = Array.from({ length: rowCountOf(memory, of) }, (_, row) => row)
  const bit = (address: number, row: number) => (field(memory, address + (row >>> 5) * 4) >>> (row & 31)) & 1
  const planes = [-1, 0, 1, 2, 40].map((n) => planeOf(memory, of, DAY + n))
  const slots = [0, 1, 2].map((type) => findAttribute(memory, of, ATTRIBUTE.type, type))
  return rows.map((row) => ({
    property: propertyOfRow(memory, of, row),
    id: [0, 4, 8, 12].map((at) => field(memory, cell(TABLE.rowIds, of) + row * 16 + at)),
    words: planes.map((plane) => (plane === 0 ? [] : [0, 4].map((at) => field(memory, wordAddress(plane, row) + at)))),
    bits: planes.map((plane) => (plane === 0 ? 0 : bit(plane + PLANE.words + cell(TABLE.capacity, of) * 8, row))),
    types: slots.map((slot) =>
      slot === 0 ? 0 : bit(bitmapAddress(memory, of, field(memory, slot + ATTRIBUTE_SLOT.bitmap)), row),
    ),
  }))
}
const idOf = (of: number) => [0, 4, 8, 12].map((at) => field(store.memory, of + at))

/** Bytes of columns, planes and bitmaps of a table. */
function bytesOf(capacity: number, planes: number, bitmaps = 0): number {
  return capacity * 20 + planes * planeBytes(capacity) + bitmaps * (bitmapBytes(capacity) + 2 * ATTRIBUTE_SLOT.bytes)
}
const usedBytes = () => {
  settle()
  return store.writer.planes.usedBytes
}

describe('the bound of one more row', () => {
  test('is that of a new table when there is none, and of its bitmaps while a row is free', () => {
    expect(rowGrowthBytes(store.memory, 0)).toBe(planeBytes(8) + 128)
    addRows(1, 7)
    expect(rowGrowthBytes(store.memory, table)).toBe(0)
    addRows(8, 1)
    // A copy of 32 rows, with 32 bitmaps and then 64.
    expect(rowGrowthBytes(store.memory, table)).toBe(bytesOf(32, 0, 96))
    put(3, DAY, 1, 2)
    put(3, DAY + 1, 1, 2)
    expect(rowGrowthBytes(store.memory, table)).toBe(bytesOf(32, 2, 96))
  })

  test.each([
    // Amenities of all rows together, bitmaps of the table, those of the bound.
    [0, 16, 32 + 64],
    [20, 32, 64 + 128],
    [56, 64, 128 + 256],
    [120, 128, 256 + 512],
    [249, 256, 512],
  ])('of a full table of 256 rows with %i amenities, which has %i bitmaps, is that of %i', (amenities, held, bound) => {
    addRows(1, 256, (n) => (n <= amenities ? [n] : []))
    expect([cell(TABLE.capacity), rowCountOf(store.memory, table), cell(TABLE.bitmapCapacity)]).toEqual([
      256,
      256,
      held,
    ])
    expect(rowGrowthBytes(store.memory, table)).toBe(bytesOf(384, 0, bound))
  })

  test('a rebuilt table is charged for its bitmaps from 129 rows on', () => {
    addRows(1, 100, (n) => [n])
    put(0, DAY, 1, 2)
    const at = (capacity: number) => rebuildBytes(store.memory, table, capacity)
    // 100 amenities, three types, and one value each of category, stars and area.
    expect([at(128), at(256)]).toEqual([bytesOf(128, 1), bytesOf(256, 1, 128)])
  })
})

describe('a table', () => {
  test('begins with the capacity for its rows, and grows when it is full', () => {
    const capacities = [1, 8, 9, 33, 129].map((rows) => cell(TABLE.capacity, createTable(store, 5, 9, rows)))
    expect(capacities).toEqual([8, 8, 32, 128, 256])
    const other = createTable(store, 5, 9, 1)
    expect([cell(TABLE.segment, other), cell(TABLE.roomType, other)]).toEqual([5, 9])
    const properties = addRows(1, 130)
    expect([cell(TABLE.capacity), cell(TABLE.liveRows), cell(TABLE.unordered)]).toEqual([256, 130, 130])
    expect(contentOf().map(({ property: of, id }) => [of, id])).toEqual(properties.map((of) => [of, idOf(of)]))
  })

  test('is filled at once, with rows of properties and dead ones', () => {
    const properties = Array.from({ length: 140 }, (_, n) => property(n + 1))
    const rows = Uint32Array.from(properties, (of, n) => (n % 10 === 3 ? 0 : of))
    const loaded = createTable(store, 0, 9, 140)
    fillRows(store, loaded, rows, 5)
    expect([rowCountOf(store.memory, loaded), cell(TABLE.liveRows, loaded)]).toEqual([140, 126])
    expect(store.writer.charge.tables.get(loaded)).toMatchObject({ planes: 5 })
    expect(contentOf(loaded).map(({ property: of, id }) => [of, id])).toEqual(
      [...rows].map((of) => [of, of === 0 ? [0, 0, 0, 0] : idOf(of)]),
    )
    expect(contentOf(loaded).map(({ types }) => types)).toEqual(
      [...rows].map((of, n) => [0, 1, 2].map((type) => (of !== 0 && (n + 1) % 3 === type ? 1 : 0))),
    )
    expect([...liveRowsOf(store.memory, loaded)]).toEqual([...rows.keys()].filter((row) => rows[row] !== 0))
    fillRows(store, createTable(store, 0, 8, 1), Uint32Array.of(properties[0] as number))
    // Rows are charged once a table is full, too.
    const full = createTable(store, 0, 6, 8)
    fillRows(store, full, Uint32Array.from(properties.slice(0, 8)))
    expect(cell(TABLE.liveRows, full)).toBe(8)
  })

  test('below feature level 1 drops its dead rows when it is full, if they are more than a quarter', () => {
    setState(store, STATE.featureLevel, 0)
    const properties = addRows(1, 32)
    for (let row = 0; row < 8; row++) removeRow(store, table, 2 * row)
    put(31, DAY, 3, 4)
    addRows(50, 1)
    expect([cell(TABLE.capacity), rowCountOf(store.memory, table), cell(TABLE.liveRows)]).toEqual([128, 33, 25])
    for (let row = 0; row < 17; row++) if (propertyOfRow(store.memory, table, row) !== 0) removeRow(store, table, row)
    addRows(60, 95)
    expect([cell(TABLE.capacity), rowCountOf(store.memory, table)]).toEqual([128, 128])
    for (let row = 40; row < 100; row++) removeRow(store, table, row)
    const [row] = [31].map((at) => contentOf()[at])
    addRows(200, 1)
    expect([rowCountOf(store.memory, table), cell(TABLE.liveRows), cell(TABLE.capacity)]).toEqual([52, 52, 128])
    // The row of its package moved from 31 to 14.
    expect(contentOf()[14]).toEqual(row)
    expect([contentOf()[14]?.property, row?.words[1]]).toEqual([properties[31], [3, 4]])
    expect(field(store.memory, findRoom(store.memory, properties[31] as number, 7) + ROOMS.row)).toBe(14)
  })

  test('takes another order in one step: rows, ids, words, bits and the rows of the properties', () => {
    const random = createRandom(SEED)
    const properties = addRows(1, 150)
    for (let row = 0; row < 150; row++) {
      if (random.below(3) > 0) put(row, DAY, random.below(3), 1000 + row)
      if (random.below(3) === 0) put(row, DAY + 40, random.below(3) + 512, 2000 + row)
    }
    removeRow(store, table, 70)
    const before = contentOf()
    const order = Uint32Array.from(before.keys()).filter((row) => row !== 70)
    for (let n = order.length - 1; n > 0; n--) {
      const other = random.below(n + 1)
      ;[order[n], order[other]] = [order[other] as number, order[n] as number]
    }
    const version = versionOf(store.memory, table)
    rebuildTable(store, table, order, 256)
    expect(contentOf(), `VACANCY_SEED=${SEED}`).toEqual([...order].map((row) => before[row]))
    const rows = [...order].map((row) => findRoom(store.memory, properties[row] as number, 7))
    expect(rows.map((entry) => field(store.memory, entry + ROOMS.row))).toEqual(rows.map((_, n) => n))
    expect(versionOf(store.memory, table)).toBeGreaterThan(version)
    expect(store.writer.marks.size).toBe(0)
    const others = cell(TABLE.capacity, propertyTable())
    expect(usedBytes()).toBe(bytesOf(256, 2, cell(TABLE.bitmapCapacity)) + bytesOf(others, 0, 16))
  })

  test('loses the nights that have passed when it grows, with their packages and memory', () => {
    addRows(1, 8)
    for (const [n, row] of Object.entries({ '-1': 0, 0: 1, 1: 1, 40: 2 })) put(row, DAY + Number(n), 2, 9)
    setState(store, STATE.droppedBefore, DAY + 1)
    const before = contentOf()
    const used = usedBytes()
    addRows(20, 1)
    expect([-1, 0, 1, 40].map((n) => planeOf(store.memory, table, DAY + n) !== 0)).toEqual([false, false, true, true])
    expect(cell(TABLE.packages)).toBe(2)
    const kept = before.map((row) => ({
      ...row,
      words: [[], [], ...row.words.slice(2)],
      bits: [0, 0, ...row.bits.slice(2)],
    }))
    expect(contentOf().slice(0, 8)).toEqual(kept)
    expect(usedBytes() - used).toBe(bytesOf(32, 2) - bytesOf(8, 4))
  })

  test('that is freed leaves no memory in use', () => {
    const first = createTable(store, 0, 3, 1)
    freeTable(store, first)
    settle()
    const used = [store.writer.planes.usedBytes, store.writer.records.usedBytes]
    for (const rows of [8, 129, 1_000]) {
      const other = createTable(store, 0, 3, rows)
      for (const day of [DAY, DAY + 1, DAY + 100, DAY + 383]) ensurePlane(store, other, day)
      freeTable(store, other)
      settle()
      expect([store.writer.planes.usedBytes, store.writer.records.usedBytes]).toEqual(used)
    }
  })
})

const propertyTable = () => {
  // The property table is the other one that is charged.
  const [other = 0] = [...store.writer.charge.tables.keys()].filter((each) => each !== table)
  return other
}

describe('when memory is short', () => {
  const FILLER_BYTES = 4_096

  /** A table with bitmaps and nights next to the gap, free blocks behind it, and hardly any free memory between. */
  function fill(holes: number): number[] {
    const fillers = Array.from({ length: 300 }, () => allocatePlane(store, FILLER_BYTES))
    addRows(1, 140)
    for (let row = 0; row < 140; row += 3) for (const n of [0, 40]) put(row, DAY + n, row, 1000 + row)
    settle()
    for (let n = 0; n < holes; n++) release(store.writer.planes, fillers[2 * n] as number, FILLER_BYTES)
    const { gap } = store.writer
    for (let bytes = 1 << 22; bytes >= 512; bytes /= 2) {
      while (gap.high - gap.low >= bytes + 512) allocateRecord(store, bytes)
    }
    return fillers
  }
  const addresses = () => [
    ...[TABLE.rowProperties, TABLE.rowIds, TABLE.bitmaps, TABLE.attributeSlots].map((at) => cell(at)),
    ...[0, 40].map((n) => planeOf(store.memory, table, DAY + n)),
  ]
  const run = () => expect(() => allocatePlane(store, 200_000)).toThrow('No free block of 200000 bytes')

  test('the blocks of a table move into free blocks behind it, and its content stays', () => {
    const fillers = fill(60)
    const [before, places, used] = [contentOf(), addresses(), store.writer.planes.usedBytes]
    const version = versionOf(store.memory, table)
    expect(
      unannounced(
        store,
        watch,
        run,
        [table, propertyTable()].map((each) => each + TABLE.version),
      ),
    ).toEqual([])
    expect(contentOf()).toEqual(before)
    // All of them are among the fillers now, which were allocated from the end of the memory.
    expect(addresses().map((at) => at >= (fillers[119] as number))).toEqual(places.map(() => true))
    expect(places.every((at) => at < (fillers.at(-1) as number))).toBe(true)
    expect([usedBytes(), store.writer.marks.size]).toEqual([used, 0])
    expect(versionOf(store.memory, table)).toBeGreaterThan(version)
    addRows(300, 1)
    expect(contentOf().slice(0, 140)).toEqual(before)
  })

  test('a table that is being changed stays where it is, and so do all without free blocks', () => {
    fill(60)
    const places = addresses()
    mark(store, table)
    run()
    expect(addresses()).toEqual(places)
    unmark(store, table)
    run()
    expect(addresses()).not.toEqual(places)
  })

  test('nothing moves without free blocks', () => {
    fill(0)
    const [before, places] = [contentOf(), addresses()]
    run()
    expect([contentOf(), addresses()]).toEqual([before, places])
  })
})

describe('a snapshot in progress has a copy of each word before it changes', () => {
  test.each<[string, () => void]>([
    ['a row is added', () => addRows(300, 1)],
    ['the table grows', () => addRows(300, 117)],
    ['a row is removed', () => removeRow(store, table, 20)],
    ['a package is new', () => put(4, DAY, 1, 2)],
    ['no rooms are left', () => put(3, DAY, 0, 2)],
    ['a package goes', () => put(33, DAY, 0, 0)],
    [
      'the order changes',
      () =>
        rebuildTable(
          store,
          table,
          Uint32Array.from({ length: 140 }, (_, n) => 139 - n),
          256,
        ),
    ],
  ])('%s', (_, operation) => {
    addRows(1, 140)
    for (let row = 0; row < 140; row += 3) put(row, DAY, 1 + row, 1000 + row)
    expect(
      unannounced(
        store,
        watch,
        operation,
        [table, propertyTable()].map((each) => each + TABLE.version),
      ),
    ).toEqual([])
  })
})

test('each change of a package notes that the next snapshot must read the table again', () => {
  addRows(1, 3)
  put(0, DAY, 1, 2)
  for (const [lo, hi] of [
    [2, 2],
    [0, 2],
    [0, 0],
    [1, 1],
  ] as const) {
    setField(store, table + TABLE.changedEpoch, 0)
    put(0, DAY, lo, hi)
    expect(cell(TABLE.changedEpoch)).toBe(1)
  }
})

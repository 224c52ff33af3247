/** Columns of the store do not overlap, are aligned, and have the sizes that the charge counts. */
import { describe, expect, test } from 'vitest'
import {
  ALL_ROWS,
  ATTRIBUTE,
  ATTRIBUTE_SLOT,
  ATTRIBUTE_VALUES_MAX,
  BITMAP_ROWS_MIN,
  BITMAPS_MOST,
  bitmapBytes,
  CONTROL,
  capacityFor,
  DAY_LEAVES,
  DAY_SLOTS,
  DAYS_PER_LEAF,
  DICTIONARY,
  DICTIONARY_ENTRY_BYTES,
  GONE_ROW,
  grownCapacity,
  LEAF_BYTES,
  NAMES,
  PAGE_BYTES,
  PAGE_SHIFT,
  PLANE,
  PROPERTY,
  PROPERTY_TABLE,
  planeBytes,
  READER_SLOT,
  READER_SLOT_BYTES,
  READER_SLOT_START,
  READERS_MAX,
  REPLICATED_CELLS,
  ROOMS,
  SEGMENT,
  SESSION,
  SESSION_RESULT,
  SESSION_WINDOW,
  SET_TIME,
  SLOT,
  STATE,
  STATE_BYTES,
  STATE_START,
  STAY,
  STAY_LINE,
  STAY_NIGHT,
  STAY_PROPERTY,
  TABLE,
} from './layout.ts'

type Offsets = { readonly [name: string]: number }

/**
 * Where each column is when they follow each other without a gap, each aligned to its width; lists to that of their items.
 * Columns whose width is not given have `width`.
 */
function packed(names: readonly string[], width: number, widths: Offsets = {}): Offsets {
  let at = 0
  const entries = names.map((name) => {
    const bytes = widths[name] ?? width
    const unit = width === 1 || bytes > 8 ? width : bytes
    const start = Math.ceil(at / unit) * unit
    at = start + bytes
    return [name, start]
  })
  return Object.fromEntries(entries)
}

const without = (record: Offsets, ...names: string[]) =>
  Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)))

describe('the columns of a record are aligned and follow each other', () => {
  test.each<[string, Offsets, Offsets, number]>([
    ['property', PROPERTY, { id: 16, latitude: 8, longitude: 8, x: 8, y: 8, z: 8 }, 88],
    ['segment', SEGMENT, {}, 48],
    ['table', TABLE, { attributeCounts: 12, days: DAY_LEAVES * 4 }, 128],
    ['attribute slot', ATTRIBUTE_SLOT, {}, 16],
    ['session', SESSION, { key: 16, lastUsedMs: 8, highest: 8, closedBelow: 8 }, 64],
    ['session result', SESSION_RESULT, { outcome: 1, value: 1, used: 1, index: 8 }, 24],
    [
      'stay',
      STAY,
      {
        ...{ id: 16, state: 1, lines: 1, sourceBytes: 1, source: 32 },
        ...{ deadlineMs: 8, total: 8, index: 8, timeMs: 8, bookedIndex: 8, heldSinceMs: 8 },
      },
      112,
    ],
    ['line of a stay', STAY_LINE, { nights: 1, rooms: 1, flags: 1 }, 32],
    ['property with stays', STAY_PROPERTY, { id: 16 }, 40],
    ['night with holds', STAY_NIGHT, { held: 1, debt: 1 }, 32],
  ])('%s', (_, record, widths, bytes) => {
    const columns = without(record, 'bytes')
    expect(columns).toEqual(packed(Object.keys(columns), 4, widths))
    const [last, at] = Object.entries(columns).at(-1) as [string, number]
    expect(at + (widths[last] ?? 4)).toBeLessThanOrEqual(bytes)
    // The charge counts these bytes, and it must be equal on all replicas.
    expect(record['bytes']).toBe(bytes)
  })

  test('room list', () => {
    expect(ROOMS).toEqual({ headerBytes: 8, capacity: 0, count: 4, entryBytes: 12, roomType: 0, table: 4, row: 8 })
  })

  test('plane', () => {
    expect(PLANE).toEqual(packed(['day', 'packages', 'digestLow', 'digestHigh', 'words'], 4))
  })
})

describe('cells', () => {
  test('of the control page have each its own place', () => {
    expect(CONTROL).toEqual(packed(Object.keys(CONTROL), 1))
    expect(READER_SLOT_START).toBeGreaterThanOrEqual(Object.keys(CONTROL).length * 4)
  })

  test('of readers are one cache line each, in the control page', () => {
    expect([READER_SLOT, READER_SLOT_BYTES, READER_SLOT_START % 64]).toEqual([{ epoch: 0, isBusy: 1 }, 64, 0])
    expect(READERS_MAX).toBe(96)
    expect(READER_SLOT_START + READERS_MAX * READER_SLOT_BYTES).toBe(7168)
  })

  test('of the state are in two pages after the control page', () => {
    expect([PAGE_BYTES, 1 << PAGE_SHIFT]).toEqual([8192, 8192])
    expect([STATE_START, STATE_BYTES]).toEqual([8192, 16_384])
    expect((STATE.slots + DAY_SLOTS * SLOT.cells) * 4).toBeLessThanOrEqual(STATE_BYTES)
  })

  test('of the state have each its own place', () => {
    const names = Object.keys(STATE).filter((name) => name !== 'replicated')
    // After the last word of level 1 and after that of SET_TIME there is room for more.
    const widths = { genesis: 4, dictionaries: 48, knownFromHigh: 10, setTime: 32 }
    expect(without(STATE, 'replicated')).toEqual(packed(names, 1, widths))
    expect(STATE.replicated).toBe(STATE.dictionaries + 6 * DICTIONARY.cells)
  })

  test('of feature level 1 keep their numbers, because snapshots contain them by number', () => {
    const { replicated, memoryBudgetLow, memoryBudgetHigh, staysBytesMax, holdsMax, holdsMaxPerSource } = STATE
    expect(replicated).toBe(80)
    expect([memoryBudgetLow, memoryBudgetHigh, staysBytesMax, holdsMax, holdsMaxPerSource]).toEqual([
      80, 81, 82, 83, 84,
    ])
    expect([STATE.knownFromLow, STATE.knownFromHigh, STATE.setTime]).toEqual([85, 86, 96])
    expect(STATE.replicated + REPLICATED_CELLS).toBe(STATE.slots)
    expect(without(SET_TIME, 'cells')).toEqual(packed(Object.keys(SET_TIME).slice(1), 1))
    expect(SET_TIME.cells).toBe(Object.keys(SET_TIME).length - 1)
  })

  test('of dictionaries and day slots have each its own place', () => {
    expect(without(DICTIONARY, 'cells')).toEqual(packed(Object.keys(DICTIONARY).slice(1), 1))
    expect(without(SLOT, 'cells')).toEqual(packed(Object.keys(SLOT).slice(1), 1))
    expect([DICTIONARY.cells, SLOT.cells, DICTIONARY_ENTRY_BYTES]).toEqual([8, 4, 16])
  })
})

test('kinds of names and attributes are numbered from 0', () => {
  expect(NAMES).toEqual(packed(Object.keys(NAMES), 1))
  expect(ATTRIBUTE).toEqual(packed(Object.keys(ATTRIBUTE), 1))
})

test('each attribute has bitmaps for its most frequent values, and a table has room for all of them', () => {
  expect(Object.fromEntries(Object.entries(ATTRIBUTE).map(([name, n]) => [name, ATTRIBUTE_VALUES_MAX[n]]))).toEqual({
    ...{ alive: 1, type: 64, category: 64, stars: 5, area: 64, amenity: 256 },
  })
  // 454 values: the next power of two.
  expect(BITMAPS_MOST).toBe(512)
})

test('the ring of days holds 367 visible days and 17 that are cleared late, in leaves of one cache line or two', () => {
  expect(DAY_SLOTS).toBe(367 + 17)
  expect([DAY_LEAVES * DAYS_PER_LEAF, LEAF_BYTES]).toEqual([DAY_SLOTS, 128])
})

test('numbers that stand for no row and no room type are greater than any row', () => {
  expect([ALL_ROWS, GONE_ROW, PROPERTY_TABLE]).toEqual([2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 1])
})

test('a session remembers the results of 256 requests', () => {
  expect(SESSION_WINDOW).toBe(256)
})

describe('capacity', () => {
  test.each([
    [1, 8],
    [8, 8],
    [9, 32],
    [32, 32],
    [33, 128],
    [128, 128],
    [129, 256],
    [256, 256],
    [257, 384],
    [100_000, 100_096],
  ])('%i rows need a table of %i', (rows, capacity) => {
    expect(capacityFor(rows)).toBe(capacity)
  })

  test('tables of more than 128 rows have bitmaps', () => {
    expect(capacityFor(BITMAP_ROWS_MIN - 1)).toBe(128)
    expect(capacityFor(BITMAP_ROWS_MIN)).toBe(256)
  })

  test.each([
    [8, 32],
    [32, 128],
    [128, 256],
    [1_920, 2_048],
    [2_048, 2_304],
    [12_800, 13_696],
  ])('a full table of %i rows grows to %i', (capacity, grown) => {
    expect(grownCapacity(capacity)).toBe(grown)
  })

  test.each([
    [8, 16, 16 + 64 + 16],
    [128, 16, 16 + 1024 + 16],
    [129, 32, 16 + 1032 + 32],
    [256, 32, 16 + 2048 + 32],
    [12_800, 1_600, 16 + 102_400 + 1_600],
  ])('of %i rows: a bitmap has %i bytes in steps of 16, and a plane %i', (capacity, bitmap, plane) => {
    expect([bitmapBytes(capacity), planeBytes(capacity)]).toEqual([bitmap, plane])
  })
})

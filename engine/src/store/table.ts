/**
 * One table: rows, their columns and bitmaps, and one plane of words per night (layout.ts, TABLE and PLANE).
 *
 * Changes follow the rules of version.ts: a new row, plane or bitmap is written completely before the one word that
 * publishes it. Moves and replacements of data that readers may access happen between mark and unmark.
 */

import { assert } from '@vacancy/shared'
import { allocateAbove } from './arena.ts'
import { BITMAPS_MIN, bitmapGrowthBytes, bitmapsFor, clearRowBits, growBitmaps, rebuildBitmaps } from './bitmaps.ts'
import { chargeTable } from './charge.ts'
import { touch } from './cow.ts'
import { fillGaps, moveRow, placeRow } from './gaps.ts'
import { copyWords, dropGrowth, prepareGrowth, takeCopies } from './growing.ts'
import {
  ATTRIBUTE_SLOT,
  BITMAP_ROWS_MIN,
  BITMAPS_MOST,
  bitmapBytes,
  capacityFor,
  DAY_LEAVES,
  grownCapacity,
  LEAF_BYTES,
  PLANE,
  planeBytes,
  STATE,
  TABLE,
} from './layout.ts'
import { countFreed, forEachSlot, setPlane } from './planes.ts'
import { allocatePlane, allocateRecord, featureLevel, type Memory, onMemoryShort, type Store, state } from './store.ts'
import { field, noteChange, propertyOfRow, rowCountOf, setField } from './table-fields.ts'
import { mark, retire, unmark } from './version.ts'

export function createTable(store: Store, segment: number, roomType: number, rows: number): number {
  const table = allocateRecord(store, TABLE.bytes)
  setField(store, table + TABLE.segment, segment)
  setField(store, table + TABLE.roomType, roomType)
  reshape(store, table, capacityFor(rows))
  chargeTable(store, table, 0)
  return table
}

/** Appends a row for a property. The caller updates the property's own list of rows. */
export function appendRow(store: Store, table: number, property: number): number {
  const { memory } = store
  let row = rowCountOf(memory, table)
  if (row === field(memory, table + TABLE.capacity)) {
    makeRoom(store, table)
    row = rowCountOf(memory, table)
  }
  placeRow(store, table, row, property)
  setField(store, table + TABLE.rowCount, row + 1)
  setField(store, table + TABLE.liveRows, field(memory, table + TABLE.liveRows) + 1)
  setField(store, table + TABLE.unordered, field(memory, table + TABLE.unordered) + 1)
  chargeTable(store, table, 0)
  noteChange(store, table)
  prepareGrowth(store, table)
  return row
}

/**
 * Gives a new table all its rows at once, in this order. Used when a snapshot is loaded.
 *
 * @param planes number of nights that the caller will add
 */
export function fillRows(store: Store, table: number, rows: Uint32Array, planes = 0): void {
  const { memory } = store
  const { u32 } = memory
  assert(rowCountOf(memory, table) === 0, 'a table is filled once, without readers')
  const capacity = field(memory, table + TABLE.capacity)
  assert(rows.length <= capacity, 'rows fit the table')
  u32.set(rows, field(memory, table + TABLE.rowProperties) >>> 2)
  let to = field(memory, table + TABLE.rowIds) >>> 2
  let live = 0
  for (const property of rows) {
    const from = property >>> 2
    // A dead row keeps its position.
    if (property !== 0) {
      u32[to] = u32[from]
      u32[to + 1] = u32[from + 1]
      u32[to + 2] = u32[from + 2]
      u32[to + 3] = u32[from + 3]
      live++
    }
    to += 4
  }
  setField(store, table + TABLE.rowCount, rows.length)
  setField(store, table + TABLE.liveRows, live)
  chargeTable(store, table, planes)
  rebuildBitmaps(store, table, capacity)
}

/** A dead row keeps its position, so that the order of the others depends only on the log. Its words must be empty. */
export function removeRow(store: Store, table: number, row: number): void {
  const { memory } = store
  const property = propertyOfRow(memory, table, row)
  assert(property !== 0, 'a row is removed once')
  mark(store, table)
  if (field(memory, table + TABLE.bitmaps) !== 0) clearRowBits(store, table, row)
  setField(store, field(memory, table + TABLE.rowProperties) + row * 4, 0)
  setField(store, table + TABLE.liveRows, field(memory, table + TABLE.liveRows) - 1)
  noteChange(store, table)
  if (featureLevel(memory) >= 1) fillGaps(store, table)
  chargeTable(store, table, 0)
  unmark(store, table)
}

// Growing and rebuilding

function makeRoom(store: Store, table: number): void {
  const { memory } = store
  const rows = rowCountOf(memory, table)
  const live = field(memory, table + TABLE.liveRows)
  const capacity = field(memory, table + TABLE.capacity)
  // Below feature level 1 a table is compacted when it is full.
  if (featureLevel(memory) < 1 && rows - live > rows / 4)
    rebuildTable(store, table, liveRowsOf(memory, table), capacityFor(live + 1 + (live >>> 4)))
  else reshape(store, table, grownCapacity(capacity))
}

export function liveRowsOf(memory: Memory, table: number): Uint32Array {
  const rows = rowCountOf(memory, table)
  const live = new Uint32Array(field(memory, table + TABLE.liveRows))
  let count = 0
  for (let row = 0; row < rows; row++) if (propertyOfRow(memory, table, row) !== 0) live[count++] = row
  assert(count === live.length, 'live rows are counted')
  return live
}

/** Upper bound of the bytes for one more row: a full table is copied into larger columns and planes. */
export function rowGrowthBytes(memory: Memory, table: number): number {
  if (table === 0) return planeBytes(8) + TABLE.bytes
  const capacity = field(memory, table + TABLE.capacity)
  if (rowCountOf(memory, table) < capacity) return bitmapGrowthBytes(memory, table)
  const grown = grownCapacity(capacity)
  // Rebuilt once, and again if the values of the row do not fit.
  const rebuilt = Math.min(BITMAPS_MOST, Math.max(BITMAPS_MIN, field(memory, table + TABLE.bitmapCapacity)) * 2)
  return copyBytes(memory, table, grown, rebuilt + (rebuilt < BITMAPS_MOST ? rebuilt * 2 : 0))
}

/** Bytes of a table's columns, planes and so many bitmaps at another capacity. */
function copyBytes(memory: Memory, table: number, capacity: number, bitmaps: number): number {
  let planes = 0
  forEachSlot(memory, table, () => planes++)
  return planes * planeBytes(capacity) + capacity * 20 + bitmaps * (bitmapBytes(capacity) + 2 * ATTRIBUTE_SLOT.bytes)
}

/** Additional bytes while a table is copied into columns of another capacity. */
export function rebuildBytes(memory: Memory, table: number, capacity: number): number {
  return copyBytes(memory, table, capacity, capacity < BITMAP_ROWS_MIN ? 0 : bitmapsFor(memory, table))
}

/** Creates new columns with the given old rows in the given order, and switches to them in one step. */
export function rebuildTable(store: Store, table: number, order: Uint32Array, capacity: number): void {
  mark(store, table)
  reshape(store, table, capacity, order)
  chargeTable(store, table, 0)
  unmark(store, table)
}

function reshape(store: Store, table: number, capacity: number, order?: Uint32Array): void {
  const { memory } = store
  const oldCapacity = field(memory, table + TABLE.capacity)
  const oldProperties = field(memory, table + TABLE.rowProperties)
  const oldIds = field(memory, table + TABLE.rowIds)
  const count = order ? order.length : rowCountOf(memory, table)
  assert(count <= capacity, 'rows fit their new columns')
  mark(store, table)
  const copies = takeCopies(store, table, order ? 0 : capacity)
  const properties = allocatePlane(store, capacity * 4)
  const ids = allocatePlane(store, capacity * 16)
  touch(store, properties, capacity * 4)
  touch(store, ids, capacity * 16)
  if (order) {
    for (let row = 0; row < count; row++) {
      const from = order[row]
      memory.u32[(properties >>> 2) + row] = memory.u32[(oldProperties >>> 2) + from]
      for (let cell = 0; cell < 4; cell++) {
        memory.u32[(ids >>> 2) + row * 4 + cell] = memory.u32[(oldIds >>> 2) + from * 4 + cell]
      }
    }
  } else if (count > 0) {
    memory.u8.copyWithin(properties, oldProperties, oldProperties + count * 4)
    memory.u8.copyWithin(ids, oldIds, oldIds + count * 16)
  }
  const today = state(memory, STATE.droppedBefore)
  forEachSlot(memory, table, (slot, plane) => {
    const passed = field(memory, plane + PLANE.day) < today
    const copy = copies.get(plane)
    if (passed) countFreed(store, table, plane)
    if (passed && copy !== undefined) retire(store, true, copy, planeBytes(capacity))
    // Words and bits are already copied, but not the counts of the night.
    else if (copy !== undefined) memory.u8.copyWithin(copy, plane, plane + PLANE.words)
    setPlane(store, table, slot, passed ? 0 : (copy ?? copyPlane(store, plane, oldCapacity, capacity, count, order)))
    retire(store, true, plane, planeBytes(oldCapacity))
  })
  setField(store, table + TABLE.rowProperties, properties)
  setField(store, table + TABLE.rowIds, ids)
  setField(store, table + TABLE.capacity, capacity)
  setField(store, table + TABLE.rowCount, count)
  retire(store, true, oldProperties, oldCapacity * 4)
  retire(store, true, oldIds, oldCapacity * 16)
  if (order || !growBitmaps(store, table, oldCapacity)) rebuildBitmaps(store, table, oldCapacity)
  if (order) {
    for (let row = 0; row < count; row++) {
      const property = memory.u32[(properties >>> 2) + row]
      if (property !== 0) moveRow(store, property, table, row)
    }
  }
  noteChange(store, table)
  unmark(store, table)
}

function copyPlane(
  store: Store,
  plane: number,
  oldCapacity: number,
  capacity: number,
  count: number,
  order?: Uint32Array,
): number {
  const { u8, u32 } = store.memory
  const copy = allocatePlane(store, planeBytes(capacity))
  if (!order) {
    copyWords(store, plane, copy, oldCapacity, capacity, count)
    return copy
  }
  touch(store, copy, planeBytes(capacity))
  u8.copyWithin(copy, plane, plane + PLANE.words)
  const from = plane + PLANE.words
  const to = copy + PLANE.words
  const bits = (to + capacity * 8) >>> 2
  for (let row = 0; row < count; row++) {
    const source = (from >>> 2) + order[row] * 2
    const lo = u32[source]
    u32[(to >>> 2) + row * 2] = lo
    u32[(to >>> 2) + row * 2 + 1] = u32[source + 1]
    if ((lo & 0xff) !== 0) u32[bits + (row >>> 5)] = u32[bits + (row >>> 5)] | (1 << (row & 31))
  }
  return copy
}

/** Frees all memory of a table. Lookups must no longer find it, and it is no longer charged. */
export function freeTable(store: Store, table: number): void {
  const { memory } = store
  const capacity = field(memory, table + TABLE.capacity)
  takeCopies(store, table, 0)
  forEachSlot(memory, table, (_slot, plane) => retire(store, true, plane, planeBytes(capacity)))
  for (let leaf = 0; leaf < DAY_LEAVES; leaf++) {
    retire(store, false, field(memory, table + TABLE.days + leaf * 4), LEAF_BYTES)
  }
  retire(store, true, field(memory, table + TABLE.rowProperties), capacity * 4)
  retire(store, true, field(memory, table + TABLE.rowIds), capacity * 16)
  const slots = field(memory, table + TABLE.attributeSlots)
  if (slots !== 0) {
    retire(store, true, slots, (field(memory, table + TABLE.attributeMask) + 1) * ATTRIBUTE_SLOT.bytes)
    retire(
      store,
      true,
      field(memory, table + TABLE.bitmaps),
      field(memory, table + TABLE.bitmapCapacity) * bitmapBytes(capacity),
    )
  }
  retire(store, false, table, TABLE.bytes)
}

// Compaction

type Block = { readonly table: number; readonly address: number; readonly bytes: number; place(to: number): void }

/** Moves blocks out of the zone next to the gap, nearest first, into holes behind the zone. */
function movePlanes(store: Store, zone: number): void {
  const { planes, gap, charge, marks } = store.writer
  const end = gap.high + zone
  const blocks: Block[] = []
  for (const table of charge.tables.keys()) {
    // A marked table is being changed by the current command, which holds its addresses.
    if (!marks.has(table)) collectBlocks(store, table, end, blocks)
  }
  blocks.sort((a, b) => a.address - b.address)
  for (const { table, address, bytes, place } of blocks) {
    const to = allocateAbove(planes, bytes, end)
    if (to === 0) continue
    mark(store, table)
    touch(store, to, bytes)
    store.memory.u8.copyWithin(to, address, address + bytes)
    place(to)
    unmark(store, table)
    retire(store, true, address, bytes)
  }
}

function collectBlocks(store: Store, table: number, end: number, blocks: Block[]): void {
  const { memory } = store
  const capacity = field(memory, table + TABLE.capacity)
  const add = (address: number, bytes: number, place: (to: number) => void) => {
    if (address >= store.writer.gap.high && address < end) blocks.push({ table, address, bytes, place })
  }
  const addColumn = (cell: number, bytes: number) =>
    add(field(memory, table + cell), bytes, (to) => setField(store, table + cell, to))
  addColumn(TABLE.rowProperties, capacity * 4)
  addColumn(TABLE.rowIds, capacity * 16)
  addColumn(TABLE.bitmaps, field(memory, table + TABLE.bitmapCapacity) * bitmapBytes(capacity))
  addColumn(TABLE.attributeSlots, (field(memory, table + TABLE.attributeMask) + 1) * ATTRIBUTE_SLOT.bytes)
  forEachSlot(memory, table, (slot, plane) =>
    add(plane, planeBytes(capacity), (to) => setPlane(store, table, slot, to)),
  )
}

onMemoryShort({ dropGrowth, movePlanes })

/**
 * Gaps that deleted rows leave in a table. The table of a room type keeps a few, so that the other rows keep their
 * order. A property table keeps none, because snapshots omit them. Beyond that, each deletion moves the last rows into
 * gaps, and the table ends earlier: a few words per command. The positions of rows decide, which are equal on all
 * replicas.
 */

import { clearRowBits, rebuildBitmaps, setRowBits, shrinkBitmaps } from './bitmaps.ts'
import { worstCapacity } from './charge.ts'
import { touch } from './cow.ts'
import { takeCopies } from './growing.ts'
import { BITMAP_ROWS_MIN, bitmapBytes, PLANE, PROPERTY, PROPERTY_TABLE, planeBytes, TABLE } from './layout.ts'
import { forEachSlot, wordAddress, writeWord } from './planes.ts'
import type { Memory, Store } from './store.ts'
import { field, propertyOfRow, rowCountOf, setField } from './table-fields.ts'
import { retire } from './version.ts'

const ID_BYTES = 16
/** A deletion adds one gap, and lowers the number that may stay by at most one. */
const FILLED_BY_DELETION = 2
/** Gaps of a small table of a room type; a large one keeps a quarter of its rows more. */
const GAPS_KEPT = 16

/** Callback that updates a property's row. Set by segment.ts, which knows properties. */
export type RowMoved = (store: Store, property: number, table: number, row: number) => void

let rowMoved: RowMoved = () => undefined

export function onRowMoved(callback: RowMoved): void {
  rowMoved = callback
}

export function moveRow(store: Store, property: number, table: number, row: number): void {
  rowMoved(store, property, table, row)
}

/** Writes id, property and bits of a row. Its words and the property's reference to it are not touched. */
export function placeRow(store: Store, table: number, row: number, property: number): void {
  const { memory } = store
  const ids = field(memory, table + TABLE.rowIds) + row * ID_BYTES
  touch(store, ids, ID_BYTES)
  memory.u8.copyWithin(ids, property + PROPERTY.id, property + PROPERTY.id + ID_BYTES)
  setField(store, field(memory, table + TABLE.rowProperties) + row * 4, property)
  if (field(memory, table + TABLE.bitmaps) !== 0) setRowBits(store, table, row, property)
}

/** How many gaps a table may keep. */
export function gapsMax(memory: Memory, table: number): number {
  if (field(memory, table + TABLE.roomType) === PROPERTY_TABLE) return 0
  return GAPS_KEPT + (field(memory, table + TABLE.liveRows) >>> 2)
}

function gaps(memory: Memory, table: number): number {
  return rowCountOf(memory, table) - field(memory, table + TABLE.liveRows)
}

/** Called on a marked table after a row was removed. */
export function fillGaps(store: Store, table: number): void {
  const { memory } = store
  dropLastGaps(store, table)
  for (let n = 0; n < FILLED_BY_DELETION && gaps(memory, table) > gapsMax(memory, table); n++) {
    moveLastRow(store, table, firstGap(memory, table))
    dropLastGaps(store, table)
  }
  const capacity = worstCapacity(rowCountOf(memory, table))
  if (capacity < field(memory, table + TABLE.capacity)) shrink(store, table, capacity)
}

function dropLastGaps(store: Store, table: number): void {
  const { memory } = store
  let rows = rowCountOf(memory, table)
  while (rows > 0 && propertyOfRow(memory, table, rows - 1) === 0) rows--
  setField(store, table + TABLE.rowCount, rows)
}

/** The first row without a property; there is one. */
function firstGap(memory: Memory, table: number): number {
  // The first bitmap marks the live rows.
  const alive = field(memory, table + TABLE.bitmaps) >>> 2
  let row = 0
  if (alive !== 0) while (memory.u32[alive + (row >>> 5)] === 0xffffffff) row += 32
  while (propertyOfRow(memory, table, row) !== 0) row++
  return row
}

function moveLastRow(store: Store, table: number, row: number): void {
  const { memory } = store
  const { u32 } = memory
  const last = rowCountOf(memory, table) - 1
  const property = propertyOfRow(memory, table, last)
  forEachSlot(memory, table, (_slot, plane) => {
    const cell = wordAddress(plane, last) >>> 2
    const [lo, hi] = [u32[cell], u32[cell + 1]]
    if ((lo | hi) === 0) return
    writeWord(store, table, plane, row, lo, hi)
    writeWord(store, table, plane, last, 0, 0)
  })
  placeRow(store, table, row, property)
  if (field(memory, table + TABLE.bitmaps) !== 0) clearRowBits(store, table, last)
  setField(store, field(memory, table + TABLE.rowProperties) + last * 4, 0)
  setField(store, table + TABLE.unordered, field(memory, table + TABLE.unordered) + 1)
  rowMoved(store, property, table, row)
}

/** Lowers the capacity of a table in place: words stay, bits move down, and the ends of all blocks are free. */
function shrink(store: Store, table: number, capacity: number): void {
  const { memory } = store
  const { u8 } = memory
  const oldCapacity = field(memory, table + TABLE.capacity)
  takeCopies(store, table, 0)
  const bitsBytes = bitmapBytes(capacity)
  const freed = planeBytes(oldCapacity) - planeBytes(capacity)
  forEachSlot(memory, table, (_slot, plane) => {
    const words = plane + PLANE.words
    touch(store, words + capacity * 8, bitsBytes)
    u8.copyWithin(words + capacity * 8, words + oldCapacity * 8, words + oldCapacity * 8 + bitsBytes)
    retire(store, true, plane + planeBytes(capacity), freed)
  })
  const rows = oldCapacity - capacity
  retire(store, true, field(memory, table + TABLE.rowProperties) + capacity * 4, rows * 4)
  retire(store, true, field(memory, table + TABLE.rowIds) + capacity * ID_BYTES, rows * ID_BYTES)
  setField(store, table + TABLE.capacity, capacity)
  if (capacity < BITMAP_ROWS_MIN) rebuildBitmaps(store, table, oldCapacity)
  else shrinkBitmaps(store, table, oldCapacity)
}

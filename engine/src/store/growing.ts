/**
 * Incremental growth of a large table, without a long pause. When it is almost full, each new row copies a few planes
 * into planes of the next capacity, and changes to copied planes go to both. When the table is full, the copies
 * replace the planes. This is local to the replica and affects no decision: when memory is short, the copies are
 * dropped and the table is copied in one step. One table at a time, because the charge reserves memory for one copy
 * (charge.ts).
 */

import { touch } from './cow.ts'
import { bitmapBytes, DAY_SLOTS, grownCapacity, PLANE, planeBytes, TABLE } from './layout.ts'
import type { GrowingTable } from './memory.ts'
import { featureLevel, type Memory, type Store, tryAllocatePlane } from './store.ts'
import { field, planeAtSlot, rowCountOf } from './table-fields.ts'
import { retire } from './version.ts'

/** Smaller tables are copied in one step, which takes microseconds. */
const COPIED_AT_ONCE_BYTES = 1 << 14
/** Copying starts when fewer rows than this fraction of the capacity are free: half of the growth of a table. */
const FREE_ROWS_SHARE = 32
/** A table whose copies wait for its next row yields to a larger one, and to any table after so many rows of others. */
const WAITS_MAX = 4_096

/** Called after each new row. */
export function prepareGrowth(store: Store, table: number): void {
  const { memory, writer } = store
  const capacity = field(memory, table + TABLE.capacity)
  const freeRows = capacity - rowCountOf(memory, table)
  if (freeRows * FREE_ROWS_SHARE > capacity || featureLevel(memory) < 1) return
  const planes = writer.charge.tables.get(table)?.planes ?? 0
  const bytes = planes * planeBytes(capacity)
  if (bytes <= COPIED_AT_ONCE_BYTES) return
  const { growing } = writer
  if (growing?.table !== table) {
    if (growing !== undefined && growing.bytes >= bytes && growing.waits++ < WAITS_MAX) return
    dropGrowth(store)
    writer.growing = { table, bytes, capacity: grownCapacity(capacity), copies: new Map(), nextSlot: 0, waits: 0 }
  }
  copyPlanes(store, writer.growing as GrowingTable, capacity, Math.ceil(planes / Math.max(1, freeRows)))
}

function copyPlanes(store: Store, growing: GrowingTable, capacity: number, planes: number): void {
  growing.waits = 0
  for (let left = planes; left > 0 && growing.nextSlot < DAY_SLOTS; growing.nextSlot++) {
    const plane = planeAtSlot(store.memory, growing.table, growing.nextSlot)
    if (plane === 0 || growing.copies.has(plane)) continue
    const copy = tryAllocatePlane(store, planeBytes(growing.capacity))
    if (copy === 0) return dropGrowth(store)
    copyWords(store, plane, copy, capacity, growing.capacity, rowCountOf(store.memory, growing.table))
    growing.copies.set(plane, copy)
    left--
  }
}

/** Copies header, words and bits of a plane, with rows in the same order, into an empty one of another capacity. */
export function copyWords(
  store: Store,
  plane: number,
  copy: number,
  oldCapacity: number,
  capacity: number,
  rows: number,
): void {
  const { u8 } = store.memory
  touch(store, copy, planeBytes(capacity))
  const from = plane + PLANE.words
  const to = copy + PLANE.words
  u8.copyWithin(copy, plane, from)
  u8.copyWithin(to, from, from + rows * 8)
  const bits = from + oldCapacity * 8
  u8.copyWithin(to + capacity * 8, bits, bits + Math.min(bitmapBytes(oldCapacity), bitmapBytes(capacity)))
}

/** Applies a change of a word to the copy of its plane. */
export function changeCopy(
  { u32 }: Memory,
  { copies, capacity }: GrowingTable,
  plane: number,
  row: number,
  lo: number,
  hi: number,
): void {
  const copy = copies.get(plane)
  if (copy === undefined) return
  const cell = (copy + PLANE.words + row * 8) >>> 2
  u32[cell] = lo
  u32[cell + 1] = hi
  const bits = ((copy + PLANE.words + capacity * 8) >>> 2) + (row >>> 5)
  const isAvailable = (lo & 0xff) !== 0
  u32[bits] = isAvailable ? u32[bits] | (1 << (row & 31)) : u32[bits] & ~(1 << (row & 31))
}

/** Drops the copy of a plane that is removed. */
export function dropCopy(store: Store, table: number, plane: number): void {
  const { growing } = store.writer
  if (growing?.table !== table) return
  const copy = growing.copies.get(plane)
  if (copy === undefined) return
  growing.copies.delete(plane)
  retire(store, true, copy, planeBytes(growing.capacity))
}

/** Returns the copies made for a table that is about to get this capacity, by plane. Drops copies that do not fit. */
export function takeCopies(store: Store, table: number, capacity: number): ReadonlyMap<number, number> {
  const { writer } = store
  const { growing } = writer
  if (growing?.table !== table) return NO_COPIES
  if (growing.capacity !== capacity) {
    dropGrowth(store)
    return NO_COPIES
  }
  writer.growing = undefined
  return growing.copies
}

const NO_COPIES: ReadonlyMap<number, number> = new Map()

export function dropGrowth(store: Store): void {
  const { writer } = store
  const { growing } = writer
  if (growing === undefined) return
  writer.growing = undefined
  for (const copy of growing.copies.values()) retire(store, true, copy, planeBytes(growing.capacity))
}

/**
 * One table: rows, their columns and bitmaps, and one plane of words a night (layout.ts, TABLE and PLANE).
 *
 * Changes here keep the rules of version.ts: a new row, a new plane or a new bitmap is written completely before the
 * one word that shows it; whatever moves or replaces what readers may be looking at happens between mark and unmark.
 */

import { assert, LIMITS } from '@vacancy/shared'
import { touch } from './cow.ts'
import { packageHash } from './digest.ts'
import {
  ATTRIBUTE,
  ATTRIBUTE_SLOT,
  ATTRIBUTE_VALUES_MAX,
  type Attribute,
  BITMAP_ROWS_MIN,
  bitmapBytes,
  CONTROL,
  capacityFor,
  DAY_LEAVES,
  DAY_SLOTS,
  DAYS_PER_LEAF,
  grownCapacity,
  LEAF_BYTES,
  PLANE,
  PROPERTY,
  planeBytes,
  SLOT,
  STATE,
  TABLE,
} from './layout.ts'
import { addState64, allocatePlane, allocateRecord, type Memory, type Store, setState, state } from './store.ts'
import { mark, retire, unmark } from './version.ts'

const BITMAPS_MIN = 16
/** Room for all values that may have a bitmap. */
const BITMAPS_MOST = 2 ** Math.ceil(Math.log2(ATTRIBUTE_VALUES_MAX.reduce((sum, most) => sum + most, 2 as number)))
/** Type, category, stars and area beside the amenities. */
const VALUES_OF_PROPERTY_MAX = LIMITS.amenitiesMax + 4

export function field(memory: Memory, address: number): number {
  return memory.u32[address >>> 2] as number
}

/** Writes one word that readers follow; everything written before it is visible to whoever sees it. */
export function setField(store: Store, address: number, value: number): void {
  touch(store, address, 4)
  Atomics.store(store.memory.u32, address >>> 2, value)
}

export function createTable(store: Store, segment: number, roomType: number, rows: number): number {
  const table = allocateRecord(store, TABLE.bytes)
  setField(store, table + TABLE.segment, segment)
  setField(store, table + TABLE.roomType, roomType)
  reshape(store, table, capacityFor(rows))
  return table
}

export function rowCountOf(memory: Memory, table: number): number {
  return field(memory, table + TABLE.rowCount)
}

/** Address of the property in a row, 0 when the row is dead. */
export function propertyOfRow(memory: Memory, table: number, row: number): number {
  return field(memory, field(memory, table + TABLE.rowProperties) + row * 4)
}

/** Puts a property into a new row at the end. The caller sees to the property's own list of rows. */
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
  noteChange(store, table)
  return row
}

/** Gives a new table all its rows at once, in this order; used when a snapshot is loaded. */
export function fillRows(store: Store, table: number, rows: Uint32Array): void {
  const { memory } = store
  const { u32 } = memory
  assert(rowCountOf(memory, table) === 0, 'a table is filled once, while nobody reads')
  const capacity = field(memory, table + TABLE.capacity)
  assert(rows.length <= capacity, 'rows fit the table')
  u32.set(rows, field(memory, table + TABLE.rowProperties) >>> 2)
  let to = field(memory, table + TABLE.rowIds) >>> 2
  let live = 0
  for (const property of rows) {
    const from = property >>> 2
    // A dead row keeps its place.
    if (property !== 0) {
      u32[to] = u32[from] as number
      u32[to + 1] = u32[from + 1] as number
      u32[to + 2] = u32[from + 2] as number
      u32[to + 3] = u32[from + 3] as number
      live++
    }
    to += 4
  }
  setField(store, table + TABLE.rowCount, rows.length)
  setField(store, table + TABLE.liveRows, live)
  rebuildBitmaps(store, table, capacity)
}

function placeRow(store: Store, table: number, row: number, property: number): void {
  const { memory } = store
  const ids = field(memory, table + TABLE.rowIds) + row * 16
  touch(store, ids, 16)
  memory.u8.copyWithin(ids, property + PROPERTY.id, property + PROPERTY.id + 16)
  setField(store, field(memory, table + TABLE.rowProperties) + row * 4, property)
  if (field(memory, table + TABLE.bitmaps) !== 0) setRowBits(store, table, row, property)
}

/** A dead row keeps its place, so that the order of the others depends on the log alone. Words must be empty before. */
export function removeRow(store: Store, table: number, row: number): void {
  const { memory } = store
  const property = propertyOfRow(memory, table, row)
  assert(property !== 0, 'a row is removed once')
  mark(store, table)
  if (field(memory, table + TABLE.bitmaps) !== 0) clearRowBits(store, table, row)
  setField(store, field(memory, table + TABLE.rowProperties) + row * 4, 0)
  setField(store, table + TABLE.liveRows, field(memory, table + TABLE.liveRows) - 1)
  noteChange(store, table)
  unmark(store, table)
}

/** Lets a snapshot know that it must encode the table again. */
function noteChange(store: Store, table: number): void {
  const epoch = store.memory.u32[CONTROL.snapshotEpoch] as number
  if (field(store.memory, table + TABLE.changedEpoch) !== epoch + 1)
    setField(store, table + TABLE.changedEpoch, epoch + 1)
}

// Growing and rebuilding

function makeRoom(store: Store, table: number): void {
  const { memory } = store
  const rows = rowCountOf(memory, table)
  const live = field(memory, table + TABLE.liveRows)
  const capacity = field(memory, table + TABLE.capacity)
  // A quarter of dead rows is worth closing the gaps; what stays keeps its order.
  if (rows - live > rows / 4)
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

/** Bytes that one more row may take at once: a full table is copied into larger columns and planes. */
export function rowGrowthBytes(memory: Memory, table: number): number {
  if (table === 0) return planeBytes(8) + TABLE.bytes
  const capacity = field(memory, table + TABLE.capacity)
  if (rowCountOf(memory, table) < capacity) return bitmapGrowthBytes(memory, table)
  const grown = grownCapacity(capacity)
  // Made anew, and once more should the values of the row not fit.
  const anew = Math.min(BITMAPS_MOST, Math.max(BITMAPS_MIN, field(memory, table + TABLE.bitmapCapacity)) * 2)
  return copyBytes(memory, table, grown, anew + (anew < BITMAPS_MOST ? anew * 2 : 0))
}

/** Bytes of a table's columns, planes and so many bitmaps in another capacity. */
function copyBytes(memory: Memory, table: number, capacity: number, bitmaps: number): number {
  let planes = 0
  forEachSlot(memory, table, () => planes++)
  return planes * planeBytes(capacity) + capacity * 20 + bitmaps * (bitmapBytes(capacity) + 2 * ATTRIBUTE_SLOT.bytes)
}

/** Bytes that new values of one property may take at once: bitmaps are copied into twice the room when it is used up. */
export function bitmapGrowthBytes(memory: Memory, table: number): number {
  const bitmaps = field(memory, table + TABLE.bitmapCapacity)
  const used = field(memory, table + TABLE.bitmapCount)
  if (bitmaps === 0 || bitmaps >= BITMAPS_MOST || used + VALUES_OF_PROPERTY_MAX <= bitmaps) return 0
  return bitmaps * 2 * (bitmapBytes(field(memory, table + TABLE.capacity)) + 2 * ATTRIBUTE_SLOT.bytes)
}

/** Bytes that a table takes once more while it is copied into columns of another capacity. */
export function rebuildBytes(memory: Memory, table: number, capacity: number): number {
  return copyBytes(memory, table, capacity, capacity < BITMAP_ROWS_MIN ? 0 : bitmapsFor(memory, table))
}

/** Bytes of one more night. */
export function nightGrowthBytes(memory: Memory, table: number): number {
  return planeBytes(field(memory, table + TABLE.capacity)) + LEAF_BYTES
}

/** Callback that tells a property where its row went. Set by segment.ts, which knows properties. */
export type RowMoved = (store: Store, property: number, table: number, row: number) => void
let rowMoved: RowMoved = () => undefined
export function onRowMoved(callback: RowMoved): void {
  rowMoved = callback
}

/** Makes a new set of columns with the given old rows in the given order, and switches to it in one step. */
export function rebuildTable(store: Store, table: number, order: Uint32Array, capacity: number): void {
  mark(store, table)
  reshape(store, table, capacity, order)
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
  const properties = allocatePlane(store, capacity * 4)
  const ids = allocatePlane(store, capacity * 16)
  touch(store, properties, capacity * 4)
  touch(store, ids, capacity * 16)
  if (order) {
    for (let row = 0; row < count; row++) {
      const from = order[row] as number
      memory.u32[(properties >>> 2) + row] = memory.u32[(oldProperties >>> 2) + from] as number
      for (let cell = 0; cell < 4; cell++) {
        memory.u32[(ids >>> 2) + row * 4 + cell] = memory.u32[(oldIds >>> 2) + from * 4 + cell] as number
      }
    }
  } else if (count > 0) {
    memory.u8.copyWithin(properties, oldProperties, oldProperties + count * 4)
    memory.u8.copyWithin(ids, oldIds, oldIds + count * 16)
  }
  const today = state(memory, STATE.droppedBefore)
  forEachSlot(memory, table, (slot, plane) => {
    const passed = field(memory, plane + PLANE.day) < today
    if (passed) countFreed(store, table, plane)
    setPlane(store, table, slot, passed ? 0 : copyPlane(store, plane, oldCapacity, capacity, count, order))
    retire(store, true, plane, planeBytes(oldCapacity))
  })
  setField(store, table + TABLE.rowProperties, properties)
  setField(store, table + TABLE.rowIds, ids)
  setField(store, table + TABLE.capacity, capacity)
  setField(store, table + TABLE.rowCount, count)
  retire(store, true, oldProperties, oldCapacity * 4)
  retire(store, true, oldIds, oldCapacity * 16)
  rebuildBitmaps(store, table, oldCapacity)
  if (order) {
    for (let row = 0; row < count; row++) {
      const property = memory.u32[(properties >>> 2) + row] as number
      if (property !== 0) rowMoved(store, property, table, row)
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
  touch(store, copy, planeBytes(capacity))
  u8.copyWithin(copy, plane, plane + PLANE.words)
  const from = plane + PLANE.words
  const to = copy + PLANE.words
  if (!order) {
    u8.copyWithin(to, from, from + count * 8)
    const bits = from + oldCapacity * 8
    u8.copyWithin(to + capacity * 8, bits, bits + Math.min(bitmapBytes(oldCapacity), bitmapBytes(capacity)))
    return copy
  }
  const bits = (to + capacity * 8) >>> 2
  for (let row = 0; row < count; row++) {
    const source = (from >>> 2) + (order[row] as number) * 2
    const lo = u32[source] as number
    u32[(to >>> 2) + row * 2] = lo
    u32[(to >>> 2) + row * 2 + 1] = u32[source + 1] as number
    if ((lo & 0xff) !== 0) u32[bits + (row >>> 5)] = (u32[bits + (row >>> 5)] as number) | (1 << (row & 31))
  }
  return copy
}

// Bitmaps

function attributeKey(attribute: Attribute, value: number): number {
  return ((attribute << 28) | value) >>> 0
}

/** @returns address of the slot of a value that has a bitmap (ATTRIBUTE_SLOT), 0 when it has none */
export function findAttribute(memory: Memory, table: number, attribute: Attribute, value: number): number {
  const slots = field(memory, table + TABLE.attributeSlots)
  if (slots === 0) return 0
  const mask = field(memory, table + TABLE.attributeMask)
  const key = attributeKey(attribute, value)
  for (let i = Math.imul(key, 0x9e3779b1) & mask; ; i = (i + 1) & mask) {
    const slot = slots + i * ATTRIBUTE_SLOT.bytes
    const held = field(memory, slot + ATTRIBUTE_SLOT.key)
    if (held === 0) return 0
    if (held === key + 1) return slot
  }
}

export function bitmapAddress(memory: Memory, table: number, index: number): number {
  return field(memory, table + TABLE.bitmaps) + index * bitmapBytes(field(memory, table + TABLE.capacity))
}

/** Whether values of the attribute without a bitmap may exist in the table. */
export function isOverflowed(memory: Memory, table: number, attribute: Attribute): boolean {
  return ((field(memory, table + TABLE.overflowed) >>> attribute) & 1) === 1
}

function rebuildBitmaps(store: Store, table: number, oldCapacity: number): void {
  const { memory } = store
  const capacity = field(memory, table + TABLE.capacity)
  const slots = field(memory, table + TABLE.attributeSlots)
  if (slots !== 0) {
    retire(store, true, slots, (field(memory, table + TABLE.attributeMask) + 1) * ATTRIBUTE_SLOT.bytes)
    const bytes = field(memory, table + TABLE.bitmapCapacity) * bitmapBytes(oldCapacity)
    retire(store, true, field(memory, table + TABLE.bitmaps), bytes)
  }
  for (const cell of [TABLE.attributeSlots, TABLE.attributeMask, TABLE.bitmaps, TABLE.bitmapCount]) {
    setField(store, table + cell, 0)
  }
  setField(store, table + TABLE.bitmapCapacity, 0)
  setField(store, table + TABLE.overflowed, 0)
  for (let cell = 0; cell < 3; cell++) setField(store, table + TABLE.attributeCounts + cell * 4, 0)
  if (capacity < BITMAP_ROWS_MIN) return
  const rows = rowCountOf(memory, table)
  createBitmaps(store, table, bitmapsFor(memory, table))
  fillBitmaps(store, table, rows)
}

/** Scratch of rebuilding: for each attribute, by the number of a value: in which rebuild it was met, and its bitmap. */
const met: { stamps: Uint32Array; cells: Uint32Array }[] = []
let stamp = 0

function metOf(attribute: number, value: number): { stamps: Uint32Array; cells: Uint32Array } {
  let list = met[attribute]
  if (list === undefined || value >= list.stamps.length) {
    const size = Math.max(1024, 2 ** Math.ceil(Math.log2(value + 1)))
    const grown = { stamps: new Uint32Array(size), cells: new Uint32Array(size) }
    if (list) grown.stamps.set(list.stamps)
    if (list) grown.cells.set(list.cells)
    met[attribute] = grown
    list = grown
  }
  return list
}

const COLUMNS: readonly { attribute: Attribute; column: number }[] = [
  { attribute: ATTRIBUTE.type, column: PROPERTY.type },
  { attribute: ATTRIBUTE.category, column: PROPERTY.category },
  { attribute: ATTRIBUTE.stars, column: PROPERTY.stars },
  { attribute: ATTRIBUTE.area, column: PROPERTY.area },
]

/** Room for the bitmaps of a table that is made anew: those of its values, and some to come. */
function bitmapsFor(memory: Memory, table: number): number {
  const values = valuesWithBitmaps(memory, table, rowCountOf(memory, table))
  return Math.max(BITMAPS_MIN, 2 ** Math.ceil(Math.log2(values + 2)))
}

/** Different values of all attributes, of each as many as may have a bitmap. */
function valuesWithBitmaps(memory: Memory, table: number, rows: number): number {
  stamp++
  let values = 0
  const counts = new Uint32Array(ATTRIBUTE_VALUES_MAX.length)
  const note = (attribute: number, value: number) => {
    const { stamps } = metOf(attribute, value)
    if (stamps[value] === stamp) return
    stamps[value] = stamp
    const count = counts[attribute] as number
    if (count === ATTRIBUTE_VALUES_MAX[attribute]) return
    counts[attribute] = count + 1
    values++
  }
  for (let row = 0; row < rows; row++) {
    const property = propertyOfRow(memory, table, row)
    if (property === 0) continue
    for (const { attribute, column } of COLUMNS) note(attribute, field(memory, property + column))
    const amenities = field(memory, property + PROPERTY.amenities)
    const count = amenities === 0 ? 0 : field(memory, amenities)
    for (let i = 1; i <= count; i++) note(ATTRIBUTE.amenity, field(memory, amenities + i * 4))
  }
  return values
}

/** Sets all bits of a table whose bitmaps are empty and whose readers wait. */
function fillBitmaps(store: Store, table: number, rows: number): void {
  const { memory } = store
  const { u32 } = memory
  stamp++
  const set = (attribute: Attribute, value: number, row: number) => {
    const { stamps, cells } = metOf(attribute, value)
    if (stamps[value] !== stamp) {
      const slot = findAttribute(memory, table, attribute, value) || addBitmap(store, table, attribute, value)
      stamps[value] = stamp
      cells[value] = slot === 0 ? 0 : bitmapAddress(memory, table, field(memory, slot + ATTRIBUTE_SLOT.bitmap)) >>> 2
    }
    const first = cells[value] as number
    if (first !== 0) u32[first + (row >>> 5)] = (u32[first + (row >>> 5)] as number) | (1 << (row & 31))
  }
  const bitmaps = field(memory, table + TABLE.bitmaps)
  touch(
    store,
    bitmaps,
    field(memory, table + TABLE.bitmapCapacity) * bitmapBytes(field(memory, table + TABLE.capacity)),
  )
  for (let row = 0; row < rows; row++) {
    const property = propertyOfRow(memory, table, row)
    if (property === 0) continue
    set(ATTRIBUTE.alive, 0, row)
    for (const { attribute, column } of COLUMNS) set(attribute, field(memory, property + column), row)
    const amenities = field(memory, property + PROPERTY.amenities)
    const count = amenities === 0 ? 0 : field(memory, amenities)
    for (let i = 1; i <= count; i++) set(ATTRIBUTE.amenity, field(memory, amenities + i * 4), row)
  }
  assert(bitmaps === field(memory, table + TABLE.bitmaps), 'room for the bitmaps was made before')
  noteBounds(store, table)
}

/** Where the bits of each bitmap lie, to 32 rows. */
function noteBounds(store: Store, table: number): void {
  const { memory } = store
  const { u32 } = memory
  const words = bitmapBytes(field(memory, table + TABLE.capacity)) >>> 2
  const slots = field(memory, table + TABLE.attributeSlots)
  const size = field(memory, table + TABLE.attributeMask) + 1
  for (let slot = slots; slot < slots + size * ATTRIBUTE_SLOT.bytes; slot += ATTRIBUTE_SLOT.bytes) {
    if (field(memory, slot + ATTRIBUTE_SLOT.key) === 0) continue
    const bitmap = bitmapAddress(memory, table, field(memory, slot + ATTRIBUTE_SLOT.bitmap)) >>> 2
    let first = 0
    let end = words
    while (end > 0 && u32[bitmap + end - 1] === 0) end--
    while (first < end && u32[bitmap + first] === 0) first++
    setField(store, slot + ATTRIBUTE_SLOT.firstRow, first * 32)
    setField(store, slot + ATTRIBUTE_SLOT.endRow, end * 32)
  }
}

function createBitmaps(store: Store, table: number, bitmaps: number): void {
  const { memory } = store
  const bytes = bitmapBytes(field(memory, table + TABLE.capacity))
  const count = field(memory, table + TABLE.bitmapCount)
  const oldBitmaps = field(memory, table + TABLE.bitmaps)
  const oldSlots = field(memory, table + TABLE.attributeSlots)
  const oldSize = oldSlots === 0 ? 0 : field(memory, table + TABLE.attributeMask) + 1
  const block = allocatePlane(store, bitmaps * bytes)
  touch(store, block, bitmaps * bytes)
  if (oldBitmaps !== 0) memory.u8.copyWithin(block, oldBitmaps, oldBitmaps + count * bytes)
  const slots = allocatePlane(store, bitmaps * 2 * ATTRIBUTE_SLOT.bytes)
  const mask = bitmaps * 2 - 1
  for (let i = 0; i < oldSize; i++) {
    const old = oldSlots + i * ATTRIBUTE_SLOT.bytes
    const key = field(memory, old + ATTRIBUTE_SLOT.key)
    if (key === 0) continue
    const slot = putAttribute(store, slots, mask, key - 1, field(memory, old + ATTRIBUTE_SLOT.bitmap))
    setField(store, slot + ATTRIBUTE_SLOT.firstRow, field(memory, old + ATTRIBUTE_SLOT.firstRow))
    setField(store, slot + ATTRIBUTE_SLOT.endRow, field(memory, old + ATTRIBUTE_SLOT.endRow))
  }
  mark(store, table)
  setField(store, table + TABLE.attributeSlots, slots)
  setField(store, table + TABLE.attributeMask, mask)
  setField(store, table + TABLE.bitmaps, block)
  const oldCapacity = field(memory, table + TABLE.bitmapCapacity)
  setField(store, table + TABLE.bitmapCapacity, bitmaps)
  unmark(store, table)
  if (oldBitmaps !== 0) retire(store, true, oldBitmaps, oldCapacity * bytes)
  if (oldSlots !== 0) retire(store, true, oldSlots, oldSize * ATTRIBUTE_SLOT.bytes)
  if (oldSlots === 0) {
    const alive = addBitmap(store, table, ATTRIBUTE.alive, 0)
    assert(field(memory, alive + ATTRIBUTE_SLOT.bitmap) === 0, 'the first bitmap says which rows live')
  }
}

/** Gives a value a slot, without rows yet. @returns its address */
function putAttribute(store: Store, slots: number, mask: number, key: number, bitmap: number): number {
  const { memory } = store
  let i = Math.imul(key, 0x9e3779b1) & mask
  while (field(memory, slots + i * ATTRIBUTE_SLOT.bytes + ATTRIBUTE_SLOT.key) !== 0) i = (i + 1) & mask
  const slot = slots + i * ATTRIBUTE_SLOT.bytes
  setField(store, slot + ATTRIBUTE_SLOT.bitmap, bitmap)
  setField(store, slot + ATTRIBUTE_SLOT.key, key + 1)
  return slot
}

/** @returns the slot of the value, 0 when its attribute has as many bitmaps as it may have */
function addBitmap(store: Store, table: number, attribute: Attribute, value: number): number {
  const { memory } = store
  const countAddress = table + TABLE.attributeCounts + (attribute >>> 1) * 4
  const shift = (attribute & 1) * 16
  const counts = field(memory, countAddress)
  if (((counts >>> shift) & 0xffff) === ATTRIBUTE_VALUES_MAX[attribute]) {
    const overflowed = field(memory, table + TABLE.overflowed)
    setField(store, table + TABLE.overflowed, overflowed | (1 << attribute))
    return 0
  }
  const index = field(memory, table + TABLE.bitmapCount)
  if (index === field(memory, table + TABLE.bitmapCapacity)) createBitmaps(store, table, index * 2)
  setField(store, countAddress, counts + (1 << shift))
  setField(store, table + TABLE.bitmapCount, index + 1)
  const slots = field(memory, table + TABLE.attributeSlots)
  return putAttribute(store, slots, field(memory, table + TABLE.attributeMask), attributeKey(attribute, value), index)
}

function setBit(store: Store, table: number, row: number, attribute: Attribute, value: number): void {
  const { memory } = store
  const slot = findAttribute(memory, table, attribute, value) || addBitmap(store, table, attribute, value)
  if (slot === 0) return
  const cell = (bitmapAddress(memory, table, field(memory, slot + ATTRIBUTE_SLOT.bitmap)) >>> 2) + (row >>> 5)
  touch(store, cell * 4, 4)
  memory.u32[cell] = (memory.u32[cell] as number) | (1 << (row & 31))
  // Wider before the row shows: a search that sees the row looks as far.
  const end = field(memory, slot + ATTRIBUTE_SLOT.endRow)
  if (end === 0 || row < field(memory, slot + ATTRIBUTE_SLOT.firstRow)) {
    setField(store, slot + ATTRIBUTE_SLOT.firstRow, row)
  }
  if (row >= end) setField(store, slot + ATTRIBUTE_SLOT.endRow, row + 1)
}

function setRowBits(store: Store, table: number, row: number, property: number): void {
  const { memory } = store
  // A value beyond the bitmaps of its attribute must be announced before the row shows.
  setBit(store, table, row, ATTRIBUTE.type, field(memory, property + PROPERTY.type))
  setBit(store, table, row, ATTRIBUTE.category, field(memory, property + PROPERTY.category))
  setBit(store, table, row, ATTRIBUTE.stars, field(memory, property + PROPERTY.stars))
  setBit(store, table, row, ATTRIBUTE.area, field(memory, property + PROPERTY.area))
  const amenities = field(memory, property + PROPERTY.amenities)
  const count = amenities === 0 ? 0 : field(memory, amenities)
  for (let i = 1; i <= count; i++) setBit(store, table, row, ATTRIBUTE.amenity, field(memory, amenities + i * 4))
  setBit(store, table, row, ATTRIBUTE.alive, 0)
}

function clearRowBits(store: Store, table: number, row: number): void {
  const { memory } = store
  const count = field(memory, table + TABLE.bitmapCount)
  for (let index = 0; index < count; index++) {
    const cell = (bitmapAddress(memory, table, index) >>> 2) + (row >>> 5)
    const bits = memory.u32[cell] as number
    if (((bits >>> (row & 31)) & 1) === 0) continue
    touch(store, cell * 4, 4)
    memory.u32[cell] = bits & ~(1 << (row & 31))
  }
}

/** After the attributes of a property changed. Call between mark and unmark. */
export function renewRowBits(store: Store, table: number, row: number, property: number): void {
  if (field(store.memory, table + TABLE.bitmaps) !== 0) {
    clearRowBits(store, table, row)
    setRowBits(store, table, row, property)
  }
  noteChange(store, table)
}

// Planes and words

export function slotOf(day: number): number {
  return day % DAY_SLOTS
}

function planeAtSlot(memory: Memory, table: number, slot: number): number {
  const leaf = field(memory, table + TABLE.days + Math.floor(slot / DAYS_PER_LEAF) * 4)
  return leaf === 0 ? 0 : field(memory, leaf + (slot % DAYS_PER_LEAF) * 4)
}

/** @returns address of the plane of a day, 0 when the table has no package on it */
export function planeOf(memory: Memory, table: number, day: number): number {
  const plane = planeAtSlot(memory, table, day % DAY_SLOTS)
  return plane !== 0 && field(memory, plane + PLANE.day) === day ? plane : 0
}

/** Calls back with every plane of the table, passed days included. The callback may replace or remove that plane. */
export function forEachSlot(memory: Memory, table: number, visit: (slot: number, plane: number) => void): void {
  for (let i = 0; i < DAY_LEAVES; i++) {
    const leaf = field(memory, table + TABLE.days + i * 4)
    if (leaf === 0) continue
    for (let j = 0; j < DAYS_PER_LEAF; j++) {
      const plane = field(memory, leaf + j * 4)
      if (plane !== 0) visit(i * DAYS_PER_LEAF + j, plane)
    }
  }
}

function setPlane(store: Store, table: number, slot: number, plane: number): void {
  const leafAddress = table + TABLE.days + Math.floor(slot / DAYS_PER_LEAF) * 4
  let leaf = field(store.memory, leafAddress)
  if (leaf === 0) {
    leaf = allocateRecord(store, LEAF_BYTES)
    setField(store, leafAddress, leaf)
  }
  setField(store, leaf + (slot % DAYS_PER_LEAF) * 4, plane)
}

/** The plane of a day, made when it is missing. Takes the place of a passed day that was not swept yet. */
export function ensurePlane(store: Store, table: number, day: number): number {
  const { memory } = store
  const found = planeOf(memory, table, day)
  if (found !== 0) return found
  const slot = slotOf(day)
  const passed = planeAtSlot(memory, table, slot)
  if (passed !== 0) freePlane(store, table, slot, passed)
  const plane = allocatePlane(store, planeBytes(field(memory, table + TABLE.capacity)))
  setField(store, plane + PLANE.day, day)
  setPlane(store, table, slot, plane)
  noteChange(store, table)
  return plane
}

/** For loading: an empty plane of a day, whose words somebody else fills in. */
export function createPlane(store: Store, table: number, day: number): number {
  const plane = allocatePlane(store, planeBytes(field(store.memory, table + TABLE.capacity)))
  setField(store, plane + PLANE.day, day)
  setPlane(store, table, slotOf(day), plane)
  return plane
}

/** For loading: counts a plane whose words, packages and digests were filled in. */
export function adoptPlane(store: Store, table: number, plane: number): number {
  const { memory } = store
  const packages = field(memory, plane + PLANE.packages)
  const low = field(memory, plane + PLANE.digestLow)
  const high = field(memory, plane + PLANE.digestHigh)
  setField(store, plane + PLANE.packages, 0)
  setField(store, plane + PLANE.digestLow, 0)
  setField(store, plane + PLANE.digestHigh, 0)
  addToPlane(store, table, plane, packages, low, high)
  return packages
}

function countFreed(store: Store, table: number, plane: number): void {
  const packages = field(store.memory, plane + PLANE.packages)
  setField(store, table + TABLE.packages, field(store.memory, table + TABLE.packages) - packages)
}

function freePlane(store: Store, table: number, slot: number, plane: number): void {
  const { memory } = store
  countFreed(store, table, plane)
  setPlane(store, table, slot, 0)
  retire(store, true, plane, planeBytes(field(memory, table + TABLE.capacity)))
  noteChange(store, table)
}

export function wordAddress(plane: number, row: number): number {
  return plane + PLANE.words + row * 8
}

/** Stores one 64-bit word at once: the kernel's export, or BigInt atomics where there is no kernel. */
export type PutWord = (address: number, lo: number, hi: number) => void

export function plainPutWord(memory: Memory): PutWord {
  const words = new BigInt64Array(memory.buffer)
  return (address, lo, hi) => {
    Atomics.store(words, address / 8, (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0))
  }
}

/**
 * The one door through which a package changes: word, bit, counts and digests.
 *
 * @param keyLow,keyHigh row keys of both digest lanes (digest.ts)
 * @returns 1 when a package came into being, -1 when one went, 0 otherwise
 */
export function changeWord(
  store: Store,
  put: PutWord,
  table: number,
  plane: number,
  row: number,
  lo: number,
  hi: number,
  keyLow: number,
  keyHigh: number,
): number {
  const { memory } = store
  const { u32 } = memory
  const address = wordAddress(plane, row)
  const cell = address >>> 2
  const oldLo = u32[cell] as number
  const oldHi = u32[cell + 1] as number
  const day = u32[(plane + PLANE.day) >>> 2] as number
  touch(store, address, 8)
  put(address, lo, hi)
  const had = (oldLo & 0xff) !== 0
  const has = (lo & 0xff) !== 0
  if (had !== has) {
    const bits = ((plane + PLANE.words + (u32[(table + TABLE.capacity) >>> 2] as number) * 8) >>> 2) + (row >>> 5)
    touch(store, bits * 4, 4)
    // The bit is a hint: a search looks at the word as well, so the order of the two stores does not matter.
    u32[bits] = has ? (u32[bits] as number) | (1 << (row & 31)) : (u32[bits] as number) & ~(1 << (row & 31))
  }
  const delta = ((lo | hi) === 0 ? 0 : 1) - ((oldLo | oldHi) === 0 ? 0 : 1)
  addToPlane(
    store,
    table,
    plane,
    delta,
    (packageHash(0, keyLow, day, lo, hi) - packageHash(0, keyLow, day, oldLo, oldHi)) | 0,
    (packageHash(1, keyHigh, day, lo, hi) - packageHash(1, keyHigh, day, oldLo, oldHi)) | 0,
  )
  return delta
}

/** Adds to the counts and digests of a plane, its table, its day and the shard. */
export function addToPlane(
  store: Store,
  table: number,
  plane: number,
  packages: number,
  low: number,
  high: number,
): void {
  const { memory } = store
  const { u32 } = memory
  const day = u32[(plane + PLANE.day) >>> 2] as number
  touch(store, plane, PLANE.words)
  const header = plane >>> 2
  u32[header + 1] = (u32[header + 1] as number) + packages
  u32[header + 2] = (u32[header + 2] as number) + low
  u32[header + 3] = (u32[header + 3] as number) + high
  const slot = STATE.slots + slotOf(day) * SLOT.cells
  const held = state(memory, slot + SLOT.day)
  assert(held <= day, 'packages of passed days never change')
  if (held !== day) openSlot(store, slot, day)
  setState(store, slot + SLOT.packages, state(memory, slot + SLOT.packages) + packages)
  setState(store, slot + SLOT.digestLow, state(memory, slot + SLOT.digestLow) + low)
  setState(store, slot + SLOT.digestHigh, state(memory, slot + SLOT.digestHigh) + high)
  if (packages !== 0) {
    addState64(store, STATE.packagesLow, packages)
    setField(store, table + TABLE.packages, field(memory, table + TABLE.packages) + packages)
  }
  noteChange(store, table)
}

/** A slot belongs to one day: what it held of a passed day leaves the counts and the digest with one step. */
function openSlot(store: Store, slot: number, day: number): void {
  dropSlot(store, slot)
  setState(store, slot + SLOT.day, day)
}

/** Forgets all packages of a slot; their planes are freed later (window.ts). */
export function dropSlot(store: Store, slot: number): void {
  addState64(store, STATE.packagesLow, -state(store.memory, slot + SLOT.packages))
  for (let cell = 0; cell < SLOT.cells; cell++) setState(store, slot + cell, 0)
}

/** Frees planes of days before `day`; for tables that are not swept yet. @returns packages that were in them */
export function freePassedPlanes(store: Store, table: number, day: number): number {
  const { memory } = store
  const before = field(memory, table + TABLE.packages)
  forEachSlot(memory, table, (slot, plane) => {
    if (field(memory, plane + PLANE.day) < day) freePlane(store, table, slot, plane)
  })
  return before - field(memory, table + TABLE.packages)
}

/** Calls back with each plane of the table that holds a day from `fromDay` on, days ascending. */
export function forEachPlane(
  memory: Memory,
  table: number,
  fromDay: number,
  visit: (plane: number, day: number) => void,
): void {
  const first = slotOf(fromDay)
  for (let i = 0; i < DAY_SLOTS; i++) {
    const slot = (first + i) % DAY_SLOTS
    const plane = planeAtSlot(memory, table, slot)
    // Slots of a ring that starts at fromDay are in day order; a plane of another turn belongs to a passed day.
    if (plane !== 0 && field(memory, plane + PLANE.day) === fromDay + i) visit(plane, fromDay + i)
  }
}

/** Frees everything a table has. Nothing may find it any more. */
export function freeTable(store: Store, table: number): void {
  const { memory } = store
  const capacity = field(memory, table + TABLE.capacity)
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

/**
 * Bitmaps of a table: for each attribute value, the rows that have it (layout.ts, ATTRIBUTE_SLOT). Values beyond
 * ATTRIBUTE_VALUES_MAX have no bitmap; searches then compare the property itself. And for each bit of a cell of the
 * position, the rows that have it set (POSITION).
 */

import { assert, LIMITS } from '@vacancy/shared'
import { touch } from './cow.ts'
import {
  ATTRIBUTE,
  ATTRIBUTE_SLOT,
  ATTRIBUTE_VALUES_MAX,
  type Attribute,
  BITMAP_ROWS_MIN,
  BITMAPS_MOST,
  bitmapBytes,
  POSITION,
  PROPERTY,
  TABLE,
} from './layout.ts'
import { allocatePlane, featureLevel, type Memory, type Store } from './store.ts'
import { field, noteChange, propertyOfRow, rowCountOf, setField } from './table-fields.ts'
import { mark, retire, unmark } from './version.ts'

/** The whole degrees of all rows, in the bits of TABLE.overflowed from these on: the lowest one, and how many. */
export const AXES = {
  latitude: { column: PROPERTY.latitude, lowest: -LIMITS.latitudeMax, at: 8, countAt: 16 },
  longitude: { column: PROPERTY.longitude, lowest: -LIMITS.longitudeMax, at: 19, countAt: 28 },
} as const
type Axis = (typeof AXES)[keyof typeof AXES]
/** More degrees have cells that repeat. The count stays one above. */
const DEGREES_MOST = 2 ** POSITION.bitsPerAxis / POSITION.cellsPerDegree
const COUNT_MASK = 7
/** Of cells of a box: none. */
export const NO_CELLS = 0xffffffff

export const BITMAPS_MIN = 16 + POSITION.bitmaps

/** Type, category, stars and area, in addition to the amenities. */
const VALUES_OF_PROPERTY_MAX = LIMITS.amenitiesMax + 4

/**
 * Upper bound of the bytes that new values of one property allocate at once: full bitmaps are copied to twice the
 * size.
 */
export function bitmapGrowthBytes(memory: Memory, table: number): number {
  const bitmaps = field(memory, table + TABLE.bitmapCapacity)
  const used = field(memory, table + TABLE.bitmapCount)
  if (bitmaps === 0 || bitmaps >= BITMAPS_MOST || used + VALUES_OF_PROPERTY_MAX <= bitmaps) return 0
  return bitmaps * 2 * (bitmapBytes(field(memory, table + TABLE.capacity)) + 2 * ATTRIBUTE_SLOT.bytes)
}

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

/** Whether the table may contain values of the attribute without a bitmap. */
export function isOverflowed(memory: Memory, table: number, attribute: Attribute): boolean {
  return ((field(memory, table + TABLE.overflowed) >>> attribute) & 1) === 1
}

export function rebuildBitmaps(store: Store, table: number, oldCapacity: number): void {
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

/**
 * Copies the bitmaps of a table, whose rows keep their positions, to its new capacity. @returns false when it has none,
 * or when replicas of feature level 0 must decide by their allocated memory
 */
export function growBitmaps(store: Store, table: number, oldCapacity: number): boolean {
  const { memory } = store
  const old = field(memory, table + TABLE.bitmaps)
  if (old === 0 || featureLevel(memory) < 1) return false
  const oldBytes = bitmapBytes(oldCapacity)
  const bytes = bitmapBytes(field(memory, table + TABLE.capacity))
  const held = field(memory, table + TABLE.bitmapCapacity)
  const block = allocatePlane(store, held * bytes)
  touch(store, block, held * bytes)
  for (let bitmap = 0; bitmap < field(memory, table + TABLE.bitmapCount); bitmap++) {
    const from = old + bitmap * oldBytes
    memory.u8.copyWithin(block + bitmap * bytes, from, from + oldBytes)
  }
  setField(store, table + TABLE.bitmaps, block)
  retire(store, true, old, held * oldBytes)
  return true
}

/** Moves the bitmaps of a marked table closer together after its capacity fell. The rows beyond it have no bits. */
export function shrinkBitmaps(store: Store, table: number, oldCapacity: number): void {
  const { memory } = store
  const first = field(memory, table + TABLE.bitmaps)
  if (first === 0) return
  const oldBytes = bitmapBytes(oldCapacity)
  const bytes = bitmapBytes(field(memory, table + TABLE.capacity))
  const held = field(memory, table + TABLE.bitmapCapacity)
  touch(store, first, held * bytes)
  for (let bitmap = 1; bitmap < held; bitmap++) {
    const from = first + bitmap * oldBytes
    memory.u8.copyWithin(first + bitmap * bytes, from, from + bytes)
  }
  retire(store, true, first + held * bytes, held * (oldBytes - bytes))
  noteBounds(store, table)
}

/**
 * Scratch space for rebuilding: per attribute and value number, the rebuild that last met the value, and its bitmap.
 */
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

/** Number of bitmaps to reserve for a rebuilt table: those of its values, with a margin, and of the position. */
export function bitmapsFor(memory: Memory, table: number): number {
  const values = valuesWithBitmaps(memory, table, rowCountOf(memory, table))
  return Math.max(BITMAPS_MIN, withPosition(2 ** Math.ceil(Math.log2(values + 2))))
}

function withPosition(bitmaps: number): number {
  return Math.min(BITMAPS_MOST, bitmaps + POSITION.bitmaps)
}

/** Distinct values of all attributes, limited per attribute to those that may have a bitmap. */
function valuesWithBitmaps(memory: Memory, table: number, rows: number): number {
  stamp++
  let values = 0
  const counts = new Uint32Array(ATTRIBUTE_VALUES_MAX.length)
  const note = (attribute: number, value: number) => {
    const { stamps } = metOf(attribute, value)
    if (stamps[value] === stamp) return
    stamps[value] = stamp
    const count = counts[attribute]
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

/** Sets all bits of a table with empty bitmaps, while its readers wait. */
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
    const first = cells[value]
    if (first !== 0) u32[first + (row >>> 5)] = u32[first + (row >>> 5)] | (1 << (row & 31))
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
    setPosition(store, table, row, property)
  }
  assert(bitmaps === field(memory, table + TABLE.bitmaps), 'space for the bitmaps is reserved before')
  noteBounds(store, table)
}

/** The range of the bits of each bitmap, to 32 rows. */
export function noteBounds(store: Store, table: number): void {
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
  // Marked from here on: a block about to be copied must not move meanwhile.
  mark(store, table)
  const block = allocatePlane(store, bitmaps * bytes)
  touch(store, block, bitmaps * bytes)
  if (oldBitmaps !== 0) memory.u8.copyWithin(block, oldBitmaps, oldBitmaps + count * bytes)
  const size = 2 ** Math.ceil(Math.log2(bitmaps - POSITION.bitmaps) + 1)
  const slots = allocatePlane(store, size * ATTRIBUTE_SLOT.bytes)
  const mask = size - 1
  for (let i = 0; i < oldSize; i++) {
    const old = oldSlots + i * ATTRIBUTE_SLOT.bytes
    const key = field(memory, old + ATTRIBUTE_SLOT.key)
    if (key === 0) continue
    const slot = putAttribute(store, slots, mask, key - 1, field(memory, old + ATTRIBUTE_SLOT.bitmap))
    setField(store, slot + ATTRIBUTE_SLOT.firstRow, field(memory, old + ATTRIBUTE_SLOT.firstRow))
    setField(store, slot + ATTRIBUTE_SLOT.endRow, field(memory, old + ATTRIBUTE_SLOT.endRow))
  }
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
    assert(field(memory, alive + ATTRIBUTE_SLOT.bitmap) === 0, 'the first bitmap marks the live rows')
    setField(store, table + TABLE.bitmapCount, POSITION.firstBitmap + POSITION.bitmaps)
  }
}

/** Allocates a slot for a value, without rows. @returns its address */
function putAttribute(store: Store, slots: number, mask: number, key: number, bitmap: number): number {
  const { memory } = store
  let i = Math.imul(key, 0x9e3779b1) & mask
  while (field(memory, slots + i * ATTRIBUTE_SLOT.bytes + ATTRIBUTE_SLOT.key) !== 0) i = (i + 1) & mask
  const slot = slots + i * ATTRIBUTE_SLOT.bytes
  setField(store, slot + ATTRIBUTE_SLOT.bitmap, bitmap)
  setField(store, slot + ATTRIBUTE_SLOT.key, key + 1)
  return slot
}

/** @returns the slot of the value, 0 when its attribute has the maximum number of bitmaps */
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
  if (index === field(memory, table + TABLE.bitmapCapacity)) {
    createBitmaps(store, table, withPosition((index - POSITION.bitmaps) * 2))
  }
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
  memory.u32[cell] = memory.u32[cell] | (1 << (row & 31))
  // Widen the range before the row becomes visible, so that a search that sees the row covers it.
  const end = field(memory, slot + ATTRIBUTE_SLOT.endRow)
  if (end === 0 || row < field(memory, slot + ATTRIBUTE_SLOT.firstRow)) {
    setField(store, slot + ATTRIBUTE_SLOT.firstRow, row)
  }
  if (row >= end) setField(store, slot + ATTRIBUTE_SLOT.endRow, row + 1)
}

/** Sets the bits of the cells that the position of a row is in. */
function setPosition(store: Store, table: number, row: number, property: number): void {
  const { memory } = store
  const { u32 } = memory
  noteDegrees(store, table, property)
  const first = bitmapAddress(memory, table, POSITION.firstBitmap)
  const stride = bitmapBytes(field(memory, table + TABLE.capacity))
  for (let left = cellsOf(memory, property); left !== 0; left &= left - 1) {
    const address = first + (31 - Math.clz32(left & -left)) * stride + (row >>> 5) * 4
    touch(store, address, 4)
    u32[address >>> 2] = u32[address >>> 2] | (1 << (row & 31))
  }
}

/** Widens the degrees of a table, before the row becomes visible. */
function noteDegrees(store: Store, table: number, property: number): void {
  const { memory } = store
  const before = field(memory, table + TABLE.overflowed)
  let after = before
  for (const { column, lowest, at, countAt } of [AXES.latitude, AXES.longitude]) {
    const degree = Math.floor(memory.f64[(property + column) / 8]) - lowest
    const count = (before >>> countAt) & COUNT_MASK
    const first = count === 0 ? degree : (before >>> at) & (2 ** (countAt - at) - 1)
    if (count > DEGREES_MOST || (degree >= first && degree < first + count)) continue
    const from = Math.min(first, degree)
    const degrees = Math.min(Math.max(degree + 1, first + count) - from, DEGREES_MOST + 1)
    after =
      (after & ~((2 ** (countAt - at) - 1) << at) & ~(COUNT_MASK << countAt)) | (from << at) | (degrees << countAt)
  }
  if (after !== before) setField(store, table + TABLE.overflowed, after)
}

function cellsOf({ f64 }: Memory, property: number): number {
  const latitude = cellOf(f64[(property + PROPERTY.latitude) / 8])
  return latitude | (cellOf(f64[(property + PROPERTY.longitude) / 8]) << POSITION.bitsPerAxis)
}

function cellOf(degrees: number): number {
  return Math.floor(degrees * POSITION.cellsPerDegree) & (2 ** POSITION.bitsPerAxis - 1)
}

/**
 * The cells of one axis from one degree to another, which is greater: the first one, and the last one in the bits above
 * it. Cells repeat every 4 degrees, so a last cell that is below the first one is one of the next round.
 */
export function cellsBetween(from: number, to: number): number {
  const cells = 2 ** POSITION.bitsPerAxis
  const { cellsPerDegree, bitsPerAxis } = POSITION
  const isRound = Math.floor(to * cellsPerDegree) - Math.floor(from * cellsPerDegree) >= cells - 1
  return isRound ? (cells - 1) << bitsPerAxis : cellOf(from) | (cellOf(to) << bitsPerAxis)
}

/**
 * The cells of one axis in which no degree of a row is below the first or above the second one, in the form of
 * `cellsBetween`; NO_CELLS without any, and for a table of so many degrees that its cells repeat.
 */
export function cellsWithin(memory: Memory, table: number, axis: Axis, from: number, to: number): number {
  const degrees = field(memory, table + TABLE.overflowed)
  const count = (degrees >>> axis.countAt) & COUNT_MASK
  if (count === 0 || count > DEGREES_MOST) return NO_CELLS
  const lowest = ((degrees >>> axis.at) & (2 ** (axis.countAt - axis.at) - 1)) + axis.lowest
  const first = Math.max(Math.ceil(from * POSITION.cellsPerDegree), lowest * POSITION.cellsPerDegree)
  const end = Math.min(Math.floor(to * POSITION.cellsPerDegree), (lowest + count) * POSITION.cellsPerDegree)
  const mask = 2 ** POSITION.bitsPerAxis - 1
  return first < end ? (first & mask) | (((end - 1) & mask) << POSITION.bitsPerAxis) : NO_CELLS
}

export function setRowBits(store: Store, table: number, row: number, property: number): void {
  const { memory } = store
  // A value beyond the bitmaps of its attribute must be flagged before the row becomes visible.
  setBit(store, table, row, ATTRIBUTE.type, field(memory, property + PROPERTY.type))
  setBit(store, table, row, ATTRIBUTE.category, field(memory, property + PROPERTY.category))
  setBit(store, table, row, ATTRIBUTE.stars, field(memory, property + PROPERTY.stars))
  setBit(store, table, row, ATTRIBUTE.area, field(memory, property + PROPERTY.area))
  const amenities = field(memory, property + PROPERTY.amenities)
  const count = amenities === 0 ? 0 : field(memory, amenities)
  for (let i = 1; i <= count; i++) setBit(store, table, row, ATTRIBUTE.amenity, field(memory, amenities + i * 4))
  setPosition(store, table, row, property)
  setBit(store, table, row, ATTRIBUTE.alive, 0)
}

export function clearRowBits(store: Store, table: number, row: number): void {
  const { memory } = store
  const count = field(memory, table + TABLE.bitmapCount)
  for (let index = 0; index < count; index++) {
    const cell = (bitmapAddress(memory, table, index) >>> 2) + (row >>> 5)
    const bits = memory.u32[cell]
    if (((bits >>> (row & 31)) & 1) === 0) continue
    touch(store, cell * 4, 4)
    memory.u32[cell] = bits & ~(1 << (row & 31))
  }
}

/** Updates the bits after the attributes of a property changed. Call between mark and unmark. */
export function renewRowBits(store: Store, table: number, row: number, property: number): void {
  if (field(store.memory, table + TABLE.bitmaps) !== 0) {
    clearRowBits(store, table, row)
    setRowBits(store, table, row, property)
  }
  noteChange(store, table)
}

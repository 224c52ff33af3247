/**
 * The memory charge of the state, computed from logical state only: rows, nights, names and properties, each at the
 * largest size that any replica may need for it. Replicas differ in what they have allocated: one loaded a snapshot,
 * another grew row by row, and readers hold freed blocks. Refusals must not depend on that, so they compare this
 * charge with the memory budget in the log. The charge is never stored. It is updated with every change of the state
 * and recounted at a load.
 *
 *   charge + session reserve + one more copy of the largest structure + margin ≤ budget
 *
 * The copy covers growing or reordering a table, or doubling an index, while both versions exist. Above the budget
 * only growth is refused: this sum reserves memory for updates, deletes and request keys.
 */

import { assert, LIMITS } from '@vacancy/shared'
import type { BudgetUse } from '../status.ts'
import {
  ATTRIBUTE_SLOT,
  BITMAP_ROWS_MIN,
  BITMAPS_MOST,
  bitmapBytes,
  capacityFor,
  DAY_LEAVES,
  DICTIONARY_ENTRY_BYTES,
  LEAF_BYTES,
  NAMES,
  PROPERTY,
  planeBytes,
  ROOMS,
  SEGMENT,
  STATE,
  STATE_START,
  TABLE,
} from './layout.ts'
import type { Charge, Memory, Store } from './memory.ts'

/** Margin beyond the known need of a command: block rounding, and temporary records of fixed size. */
const MARGIN_BYTES = 256 * 1024
/** The fraction of the memory that fragmentation between block sizes may waste: one part in so many. */
const FRAGMENTATION_SHARE = 8
/** Largest share of the budget for request keys, whatever the settings. */
const SESSION_SHARE = 8
const SESSION_MARGIN_BYTES = 64 * 1024
const DICTIONARY_CAPACITY_MIN = 16
const SEGMENT_CAPACITY_MIN = 64
const TABLE_SLOTS_MIN = 4
/** Upper bound of the initial capacity of a property's room list. */
export const ROOMS_AHEAD_MAX = 8
/** Four size classes per octave, as in arena.ts. */
const CLASSES = 128

const NAME_KINDS_COUNT = 6

export function createCharge(): Charge {
  const classes = new Uint32Array(CLASSES)
  const names = new Uint32Array(NAME_KINDS_COUNT)
  return { bytes: 0, tables: new Map(), classes, classesEnd: 0, names, largestDictionary: 0 }
}

export function clearCharge(charge: Charge): void {
  charge.bytes = 0
  charge.tables.clear()
  charge.classes.fill(0)
  charge.classesEnd = 0
  charge.names.fill(0)
  charge.largestDictionary = 0
}

// What things cost

const round8 = (bytes: number) => Math.ceil(bytes / 8) * 8
const round16 = (bytes: number) => Math.ceil(bytes / 16) * 16
const powerOfTwo = (count: number) => (count <= 1 ? 1 : 2 ** (32 - Math.clz32(count - 1)))

/** The largest capacity of a table with so many rows: the one reached by growing row by row. */
export function worstCapacity(rows: number): number {
  return capacityFor(rows + (Math.max(0, rows - 1) >>> 4))
}

/** Bytes of a table with so many rows and nights. */
export function tableBytes(rows: number, planes: number): number {
  return capacityBytes(worstCapacity(rows), planes)
}

/** The same for a table whose columns have so many rows. */
export function capacityBytes(capacity: number, planes: number): number {
  const bitmaps = capacity < BITMAP_ROWS_MIN ? 0 : BITMAPS_MOST * (bitmapBytes(capacity) + 2 * ATTRIBUTE_SLOT.bytes)
  const columns = capacity * 4 + capacity * 16
  const leaves = Math.min(DAY_LEAVES, planes) * LEAF_BYTES
  return TABLE.bytes + leaves + round16(columns) + planes * round16(planeBytes(capacity)) + bitmaps
}

/** Bytes of a property's room list. A property without rooms may still have the list. */
export function roomListCharge(rooms: number): number {
  const capacity = Math.min(LIMITS.roomTypesPerPropertyMax, Math.max(ROOMS_AHEAD_MAX, rooms * 2))
  return round8(ROOMS.headerBytes + capacity * ROOMS.entryBytes)
}

/** Bytes of a property: record, lists, and its index entries. The index is rebuilt before it is an eighth full. */
export function propertyCharge(amenities: number, rooms: number): number {
  return round8(PROPERTY.bytes) + amenitiesCharge(amenities) + roomListCharge(rooms) + INDEX_BYTES
}

const INDEX_BYTES = 8 * 4

export function amenitiesCharge(amenities: number): number {
  return amenities === 0 ? 0 : round8(4 + amenities * 4)
}

export function nameCharge(bytes: number): number {
  return round8(4 + bytes)
}

/** Bytes of the entries and slots of a dictionary with so many names. */
function dictionaryCharge(names: number): number {
  if (names === 0) return 0
  const entries = Math.max(DICTIONARY_CAPACITY_MIN, powerOfTwo(names)) * DICTIONARY_ENTRY_BYTES
  return entries + 8 + Math.max(DICTIONARY_CAPACITY_MIN * 2, powerOfTwo(names * 2)) * 4
}

function directoryCharge(segmentNames: number): number {
  return Math.max(SEGMENT_CAPACITY_MIN, powerOfTwo(segmentNames)) * 4
}

/** Bytes of a segment itself: record and list of tables. */
export function segmentCharge(tables: number): number {
  return SEGMENT.bytes + (tables === 0 ? 0 : 8 + Math.max(TABLE_SLOTS_MIN, powerOfTwo(tables * 2)) * 8)
}

// Keeping the sum

export function addCharge({ writer }: Store, bytes: number): void {
  writer.charge.bytes += bytes
  assert(writer.charge.bytes >= 0, 'the charge never becomes negative')
}

/** Charges a table in its current state, with so many additional nights. */
export function chargeTable(store: Store, table: number, planesDelta: number): void {
  const { charge } = store.writer
  const capacity = worstCapacity(store.memory.u32[(table + TABLE.rowCount) >>> 2])
  let held = charge.tables.get(table)
  if (held === undefined) {
    held = { planes: 0, capacity: 0, bytes: 0 }
    charge.tables.set(table, held)
  } else {
    // Most new rows do not change the charge.
    if (held.capacity === capacity && planesDelta === 0) return
    removeClass(charge, held.bytes)
  }
  const planes = held.planes + planesDelta
  assert(planes >= 0, 'a night is discharged once')
  const bytes = capacityBytes(capacity, planes)
  charge.bytes += bytes - held.bytes
  held.planes = planes
  held.capacity = capacity
  held.bytes = bytes
  const at = classOf(bytes)
  charge.classes[at] = charge.classes[at] + 1
  charge.classesEnd = Math.max(charge.classesEnd, at + 1)
}

export function dischargeTable(store: Store, table: number): void {
  const { charge } = store.writer
  const held = charge.tables.get(table)
  assert(held !== undefined, 'every table is charged')
  removeClass(charge, held.bytes)
  charge.bytes -= held.bytes
  charge.tables.delete(table)
}

function removeClass(charge: Charge, bytes: number): void {
  const { classes } = charge
  const at = classOf(bytes)
  assert(classes[at] > 0, 'size classes count their tables')
  classes[at] = classes[at] - 1
  while (charge.classesEnd > 0 && classes[charge.classesEnd - 1] === 0) charge.classesEnd--
}

function classOf(bytes: number): number {
  const octave = 31 - Math.clz32(bytes)
  return (octave << 2) + ((bytes >>> (octave - 2)) & 3)
}

/** No structure of the class is larger. */
function classTop(at: number): number {
  return (5 + (at & 3)) * 2 ** ((at >>> 2) - 2)
}

/** Charges a name, which is part of the logical state from here on. */
export function chargeName(store: Store, kind: number, bytes: number): void {
  const { charge } = store.writer
  charge.bytes += nameGrowth(charge, kind, 1, nameCharge(bytes))
  charge.names[kind] = charge.names[kind] + 1
  charge.largestDictionary = Math.max(charge.largestDictionary, dictionaryCharge(charge.names[kind]))
}

/**
 * Growth of the charge for so many more names of a kind, in bytes.
 *
 * @param textBytes sum of their `nameCharge`
 */
export function nameGrowth({ names }: Charge, kind: number, more: number, textBytes: number): number {
  const count = names[kind]
  const directory = kind === NAMES.segment ? directoryCharge(count + more) - directoryCharge(count) : 0
  return textBytes + dictionaryCharge(count + more) - dictionaryCharge(count) + directory
}

// Deciding

/** Bytes that one more copy of the largest structure takes. */
function largestCopy(store: Store): number {
  const { charge } = store.writer
  const largest = charge.classesEnd === 0 ? 0 : classTop(charge.classesEnd - 1)
  return Math.max(largest, charge.largestDictionary, cell(store.memory, STATE.propertyCount) * INDEX_BYTES)
}

function cell({ u32 }: Memory, at: number): number {
  return u32[(STATE_START >>> 2) + at]
}

/** The logged memory budget, bytes; 0 while none is known. */
export function memoryBudget(memory: Memory): number {
  return cell(memory, STATE.memoryBudgetHigh) * 2 ** 32 + cell(memory, STATE.memoryBudgetLow)
}

/** Upper bound of the bytes of request keys: the logged setting, or a share of a small budget. */
export function sessionBytesLimit(memory: Memory): number {
  const setting = cell(memory, STATE.sessionBytesMax)
  const budget = memoryBudget(memory)
  if (cell(memory, STATE.featureLevel) < 1 || budget === 0) return setting
  return Math.min(setting, Math.floor(budget / SESSION_SHARE))
}

/** Reserve for request keys, used or not. */
function sessionReserve(memory: Memory): number {
  const limit = sessionBytesLimit(memory)
  return limit + (limit >>> 2) + SESSION_MARGIN_BYTES
}

/** Bytes by which the state may still grow; negative above the budget, unbounded without one. */
export function growthLeft(store: Store): number {
  const budget = memoryBudget(store.memory)
  if (budget === 0) return Number.POSITIVE_INFINITY
  return budget - store.writer.charge.bytes - sessionReserve(store.memory) - largestCopy(store) - MARGIN_BYTES
}

/** The budget as shown to operators. */
export function budgetUse(store: Store): BudgetUse {
  const budgetBytes = memoryBudget(store.memory)
  const leftBytes = budgetBytes === 0 ? 0 : Math.max(0, growthLeft(store))
  return { budgetBytes, chargedBytes: store.writer.charge.bytes, leftBytes }
}

/**
 * Whether the state may grow by so many bytes.
 *
 * @param largest bytes of the largest structure after the growth
 */
export function fitsBudget(store: Store, growth: number, largest: number): boolean {
  return growth <= 0 || growth + Math.max(0, largest - largestCopy(store)) <= growthLeft(store)
}

/** Bytes of a memory that are available for data, less the expected fragmentation. */
export function memoryBudgetOf({ writer: { records, planes } }: Store): number {
  const bytes = planes.origin - records.origin
  return Math.floor(bytes - bytes / FRAGMENTATION_SHARE)
}

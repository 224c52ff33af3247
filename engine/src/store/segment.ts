/**
 * Segments, their properties and the tables of their room types (layout.ts, SEGMENT, PROPERTY and ROOMS).
 */

import { assert, LIMITS, writeUnitVector } from '@vacancy/shared'
import {
  addCharge,
  amenitiesCharge,
  dischargeTable,
  propertyCharge,
  ROOMS_AHEAD_MAX,
  roomListCharge,
  segmentCharge,
} from './charge.ts'
import { touch } from './cow.ts'
import { compareBytes, NAMES, nameBytes } from './dictionary.ts'
import { onRowMoved } from './gaps.ts'
import { ALL_ROWS, GONE_ROW, PROPERTY, PROPERTY_TABLE, ROOMS, SEGMENT, STATE, TABLE } from './layout.ts'
import { indexProperty, unindexProperty } from './property-index.ts'
import { allocateRecord, type Memory, type Store, setState, state } from './store.ts'
import { appendRow, createTable, freeTable, removeRow } from './table.ts'
import { field, propertyOfRow, rowCountOf, setField } from './table-fields.ts'
import { retire } from './version.ts'

const TABLE_SLOTS_MIN = 4

// Segments

/** @returns address of the segment, 0 when it has no property */
export function segmentOf(memory: Memory, name: number): number {
  if (name < 0 || name >= state(memory, STATE.segmentCapacity)) return 0
  return field(memory, state(memory, STATE.segmentDirectory) + name * 4)
}

/** @param loaded a property table that is already filled, for loading */
export function ensureSegment(store: Store, name: number, loaded?: number): number {
  const { memory } = store
  const found = segmentOf(memory, name)
  if (found !== 0) return found
  const capacity = state(memory, STATE.segmentCapacity)
  if (name >= capacity) {
    const next = Math.max(64, 2 ** Math.ceil(Math.log2(name + 1)))
    const directory = allocateRecord(store, next * 4)
    const old = state(memory, STATE.segmentDirectory)
    touch(store, directory, next * 4)
    if (old !== 0) memory.u8.copyWithin(directory, old, old + capacity * 4)
    setState(store, STATE.segmentDirectory, directory)
    setState(store, STATE.segmentCapacity, next)
    if (old !== 0) retire(store, false, old, capacity * 4)
  }
  addCharge(store, segmentCharge(0))
  const segment = allocateRecord(store, SEGMENT.bytes)
  setField(store, segment + SEGMENT.name, name)
  // A loaded one is summed later, so that startup does not wait for it.
  setField(store, segment + SEGMENT.summedRows, loaded === undefined ? ALL_ROWS : 0)
  setField(store, segment + SEGMENT.propertyTable, loaded ?? createTable(store, name, PROPERTY_TABLE, 1))
  setField(store, state(memory, STATE.segmentDirectory) + name * 4, segment)
  return segment
}

/** Numbers of the names of all segments that have a property, ascending by the bytes of the name. */
export function segmentNames(memory: Memory): number[] {
  const names: number[] = []
  const capacity = state(memory, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(memory, name)
    if (segment !== 0 && field(memory, segment + SEGMENT.properties) > 0) names.push(name)
  }
  return sortNames(memory, NAMES.segment, names)
}

function sortNames(memory: Memory, kind: (typeof NAMES)[keyof typeof NAMES], names: number[]): number[] {
  const keyed = names.map((name) => ({ name, bytes: nameBytes(memory, kind, name).slice() }))
  keyed.sort((a, b) => compareBytes(a.bytes, b.bytes))
  return keyed.map(({ name }) => name)
}

/** @returns address of the table of a room type, 0 when the segment has none */
export function tableOf(memory: Memory, segment: number, roomType: number): number {
  const slots = field(memory, segment + SEGMENT.tableSlots)
  if (slots === 0 || roomType < 0) return 0
  const mask = field(memory, slots)
  for (let i = roomType & mask; ; i = (i + 1) & mask) {
    const found = field(memory, slots + 8 + i * 8)
    if (found === 0) return 0
    if (found === roomType + 1) return field(memory, slots + 8 + i * 8 + 4)
  }
}

export function ensureTable(store: Store, segment: number, roomType: number, rows: number): number {
  const { memory } = store
  const found = tableOf(memory, segment, roomType)
  if (found !== 0) return found
  const table = createTable(store, field(memory, segment + SEGMENT.name), roomType, rows)
  const count = field(memory, segment + SEGMENT.tableCount) + 1
  const slots = field(memory, segment + SEGMENT.tableSlots)
  const size = slots === 0 ? 0 : field(memory, slots) + 1
  if (count * 2 > size) growTables(store, segment, Math.max(TABLE_SLOTS_MIN, size * 2))
  putTable(store, field(memory, segment + SEGMENT.tableSlots), roomType, table)
  setField(store, segment + SEGMENT.tableCount, count)
  addCharge(store, segmentCharge(count) - segmentCharge(count - 1))
  return table
}

function growTables(store: Store, segment: number, size: number): void {
  const { memory } = store
  const old = field(memory, segment + SEGMENT.tableSlots)
  const slots = allocateRecord(store, 8 + size * 8)
  setField(store, slots, size - 1)
  forEachTable(memory, segment, (table, roomType) => putTable(store, slots, roomType, table))
  setField(store, segment + SEGMENT.tableSlots, slots)
  if (old !== 0) retire(store, false, old, 8 + (field(memory, old) + 1) * 8)
}

function putTable(store: Store, slots: number, roomType: number, table: number): void {
  const { memory } = store
  const mask = field(memory, slots)
  let i = roomType & mask
  while (field(memory, slots + 8 + i * 8) !== 0) i = (i + 1) & mask
  setField(store, slots + 8 + i * 8 + 4, table)
  setField(store, slots + 8 + i * 8, roomType + 1)
}

export function forEachTable(memory: Memory, segment: number, visit: (table: number, roomType: number) => void): void {
  const slots = field(memory, segment + SEGMENT.tableSlots)
  if (slots === 0) return
  const size = field(memory, slots) + 1
  for (let i = 0; i < size; i++) {
    const roomType = field(memory, slots + 8 + i * 8)
    if (roomType !== 0) visit(field(memory, slots + 8 + i * 8 + 4), roomType - 1)
  }
}

/** Removes a segment that has lost its last property, with all its tables, which must be unmarked. */
export function removeSegment(store: Store, segment: number): void {
  const { memory } = store
  assert(field(memory, segment + SEGMENT.properties) === 0, 'a segment is removed after its last property')
  hideSegment(store, segment)
  forEachTable(memory, segment, (table) => freeTable(store, table))
  freeTable(store, field(memory, segment + SEGMENT.propertyTable))
  freeSegment(store, segment)
}

/** Removes a segment from the directory and from the charge. */
function hideSegment(store: Store, segment: number): void {
  const { memory } = store
  const name = field(memory, segment + SEGMENT.name)
  setField(store, state(memory, STATE.segmentDirectory) + name * 4, 0)
  forEachTable(memory, segment, (table) => dischargeTable(store, table))
  dischargeTable(store, field(memory, segment + SEGMENT.propertyTable))
  const properties = field(memory, segment + SEGMENT.propertyBytes)
  addCharge(store, -properties - segmentCharge(field(memory, segment + SEGMENT.tableCount)))
}

function freeSegment(store: Store, segment: number): void {
  const { memory } = store
  const slots = field(memory, segment + SEGMENT.tableSlots)
  if (slots !== 0) retire(store, false, slots, 8 + (field(memory, slots) + 1) * 8)
  retire(store, false, segment, SEGMENT.bytes)
}

/**
 * Deletes a segment with all its content. The caller has subtracted its share from counts and digest, and keeps its
 * tables marked. Lookups no longer find it, and its memory is freed in slices (`freeDeleted`).
 */
export function deleteWholeSegment(store: Store, segment: number): void {
  const { memory, writer } = store
  hideSegment(store, segment)
  let properties = 0
  forEachProperty(memory, segment, (property) => {
    setField(store, property + PROPERTY.row, GONE_ROW)
    properties++
  })
  writer.goneProperties += properties
  setState(store, STATE.propertyCount, state(memory, STATE.propertyCount) - properties)
  writer.deleted.unshift(segment)
}

/** Properties and tables freed per slice. */
const FREED_PROPERTIES = 512

const FREED_TABLES = 8

/** Frees a slice of the memory of deleted segments. @returns whether more is left */
export function freeDeleted(store: Store): boolean {
  const { memory, writer } = store
  const segment = writer.deleted.at(-1)
  if (segment === undefined) return false
  const properties = field(memory, segment + SEGMENT.propertyTable)
  const rows = rowCountOf(memory, properties)
  const end = Math.min(rows, writer.deletedRows + FREED_PROPERTIES)
  if (writer.deletedRows < rows) {
    for (let row = writer.deletedRows; row < end; row++) {
      const property = propertyOfRow(memory, properties, row)
      if (property !== 0) freeProperty(store, property)
    }
    writer.deletedRows = end
    return true
  }
  let freed = 0
  forEachTable(memory, segment, (table) => {
    // Freed tables keep their list entries; the list is freed with the last one.
    if (table === 0 || freed === FREED_TABLES) return
    freeTable(store, table)
    forgetTable(store, segment, table)
    freed++
  })
  if (freed === FREED_TABLES) return true
  freeTable(store, properties)
  freeSegment(store, segment)
  writer.deleted.pop()
  writer.deletedRows = 0
  return writer.deleted.length > 0
}

function forgetTable(store: Store, segment: number, table: number): void {
  const { memory } = store
  const slots = field(memory, segment + SEGMENT.tableSlots)
  const size = field(memory, slots) + 1
  for (let i = 0; i < size; i++) {
    const cell = slots + 8 + i * 8 + 4
    if (field(memory, cell) === table) return setField(store, cell, 0)
  }
}

// The share of a segment in the digest and in the charge

/** Adds a property, or one of its rooms, to the segment's share of the digest. */
export function addToSegmentDigest(store: Store, property: number, low: number, high: number): void {
  const { memory } = store
  const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
  if (field(memory, property + PROPERTY.row) >= field(memory, segment + SEGMENT.summedRows)) return
  setField(store, segment + SEGMENT.digestLow, (field(memory, segment + SEGMENT.digestLow) + low) >>> 0)
  setField(store, segment + SEGMENT.digestHigh, (field(memory, segment + SEGMENT.digestHigh) + high) >>> 0)
}

/** Increases the charge of a property in a segment by so many bytes. */
function chargeProperty(store: Store, property: number, bytes: number): void {
  addCharge(store, bytes)
  addPropertyBytes(store, segmentOf(store.memory, field(store.memory, property + PROPERTY.segment)), bytes)
}

/** The segment's part of the charge, for loading, and for added or removed properties. */
export function addPropertyBytes(store: Store, segment: number, bytes: number): void {
  setField(store, segment + SEGMENT.propertyBytes, field(store.memory, segment + SEGMENT.propertyBytes) + bytes)
}

function bytesOfProperty(memory: Memory, property: number): number {
  const amenities = field(memory, property + PROPERTY.amenities)
  return propertyCharge(amenities === 0 ? 0 : field(memory, amenities), roomCount(memory, property))
}

// Properties

/** The attributes of a property, with names as dictionary numbers. */
export type PropertyRecord = {
  readonly segment: number
  readonly area: number
  readonly type: number
  readonly category: number
  readonly stars: number
  readonly latitude: number
  readonly longitude: number
  /** Ascending. */
  readonly amenities: readonly number[]
}

/** Creates only the record, without index entry and row. */
export function createPropertyRecord(
  store: Store,
  id: Uint8Array,
  idStart: number,
  attributes: PropertyRecord,
): number {
  addCharge(store, propertyCharge(0, 0))
  const property = allocateRecord(store, PROPERTY.bytes)
  touch(store, property, PROPERTY.bytes)
  for (let i = 0; i < 16; i++) store.memory.u8[property + i] = id[idStart + i]
  writeAttributes(store, property, attributes, false)
  return property
}

/**
 * Replaces the attributes. For a property in rows: call between mark and unmark, then update its bits.
 *
 * @param isInSegment false before a segment counts the property, as a whole
 */
export function writeAttributes(store: Store, property: number, attributes: PropertyRecord, isInSegment = true): void {
  const { memory } = store
  const { u32, f64 } = memory
  touch(store, property, PROPERTY.bytes)
  const cell = property >>> 2
  u32[cell + (PROPERTY.segment >>> 2)] = attributes.segment
  u32[cell + (PROPERTY.area >>> 2)] = attributes.area
  u32[cell + (PROPERTY.type >>> 2)] = attributes.type
  u32[cell + (PROPERTY.category >>> 2)] = attributes.category
  u32[cell + (PROPERTY.stars >>> 2)] = attributes.stars
  const wide = property / 8
  f64[wide + PROPERTY.latitude / 8] = attributes.latitude
  f64[wide + PROPERTY.longitude / 8] = attributes.longitude
  writeUnitVector(f64, wide + PROPERTY.x / 8, attributes.latitude, attributes.longitude)
  const old = field(memory, property + PROPERTY.amenities)
  const held = old === 0 ? 0 : field(memory, old)
  const growth = amenitiesCharge(attributes.amenities.length) - amenitiesCharge(held)
  if (isInSegment) chargeProperty(store, property, growth)
  else addCharge(store, growth)
  if (old !== 0) retire(store, false, old, 4 + held * 4)
  let list = 0
  if (attributes.amenities.length > 0) {
    list = allocateRecord(store, 4 + attributes.amenities.length * 4)
    touch(store, list, 4 + attributes.amenities.length * 4)
    u32[list >>> 2] = attributes.amenities.length
    for (let i = 0; i < attributes.amenities.length; i++) u32[(list >>> 2) + 1 + i] = attributes.amenities[i]
  }
  setField(store, property + PROPERTY.amenities, list)
}

/** Adds a property to the index by id and to its segment. */
export function admitProperty(store: Store, property: number): void {
  const { memory } = store
  const segment = ensureSegment(store, field(memory, property + PROPERTY.segment))
  const row = appendRow(store, field(memory, segment + SEGMENT.propertyTable), property)
  setField(store, property + PROPERTY.row, row)
  setField(store, segment + SEGMENT.properties, field(memory, segment + SEGMENT.properties) + 1)
  addPropertyBytes(store, segment, bytesOfProperty(memory, property))
  indexProperty(store, property)
}

/** For loading: indexes a property whose row `fillRows` has created. */
export function admitLoaded(store: Store, property: number, row: number): void {
  setField(store, property + PROPERTY.row, row)
  indexProperty(store, property)
}

/** Removes a property without rooms from index and segment, and frees it. */
export function dismissProperty(store: Store, property: number): void {
  addCharge(store, -bytesOfProperty(store.memory, property))
  const left = leaveSegment(store, property)
  freeProperty(store, property)
  if (left !== 0) removeSegment(store, left)
}

function freeProperty(store: Store, property: number): void {
  const { memory } = store
  unindexProperty(store, property)
  const amenities = field(memory, property + PROPERTY.amenities)
  if (amenities !== 0) retire(store, false, amenities, 4 + field(memory, amenities) * 4)
  const rooms = field(memory, property + PROPERTY.rooms)
  if (rooms !== 0) retire(store, false, rooms, roomListBytes(field(memory, rooms)))
  retire(store, false, property, PROPERTY.bytes)
}

/** @returns the segment when this was its last property, else 0 */
function leaveSegment(store: Store, property: number): number {
  const { memory } = store
  const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
  removeRow(store, field(memory, segment + SEGMENT.propertyTable), field(memory, property + PROPERTY.row))
  const left = field(memory, segment + SEGMENT.properties) - 1
  setField(store, segment + SEGMENT.properties, left)
  addPropertyBytes(store, segment, -bytesOfProperty(memory, property))
  return left === 0 ? segment : 0
}

/**
 * Moves the property from its segment's rows into those of another. The caller moves its rooms.
 *
 * @returns the segment that lost its last property, for the caller to remove; else 0
 */
export function enterSegment(store: Store, property: number, attributes: PropertyRecord): number {
  const { memory } = store
  const target = ensureSegment(store, attributes.segment)
  const left = leaveSegment(store, property)
  writeAttributes(store, property, attributes, false)
  const row = appendRow(store, field(memory, target + SEGMENT.propertyTable), property)
  setField(store, property + PROPERTY.row, row)
  setField(store, target + SEGMENT.properties, field(memory, target + SEGMENT.properties) + 1)
  addPropertyBytes(store, target, bytesOfProperty(memory, property))
  return left
}

// Rooms of a property

function roomListBytes(capacity: number): number {
  return ROOMS.headerBytes + capacity * ROOMS.entryBytes
}

export function roomCount(memory: Memory, property: number): number {
  const rooms = field(memory, property + PROPERTY.rooms)
  return rooms === 0 ? 0 : field(memory, rooms + ROOMS.count)
}

/** @returns address of the n-th room entry, in creation order */
export function roomEntry(memory: Memory, property: number, n: number): number {
  return field(memory, property + PROPERTY.rooms) + ROOMS.headerBytes + n * ROOMS.entryBytes
}

/** @returns address of the entry of a room type, 0 when the property does not have it */
export function findRoom(memory: Memory, property: number, roomType: number): number {
  const rooms = field(memory, property + PROPERTY.rooms)
  if (rooms === 0 || roomType < 0) return 0
  const count = Math.min(field(memory, rooms + ROOMS.count), LIMITS.roomTypesPerPropertyMax)
  for (let n = 0; n < count; n++) {
    const entry = rooms + ROOMS.headerBytes + n * ROOMS.entryBytes
    if (field(memory, entry + ROOMS.roomType) === roomType) return entry
  }
  return 0
}

/** Records a row in the property's list. The row must exist. */
export function addRoom(store: Store, property: number, roomType: number, table: number, row: number): number {
  const { memory } = store
  const count = roomCount(memory, property)
  assert(count < LIMITS.roomTypesPerPropertyMax, 'the number of room types is checked before')
  let rooms = field(memory, property + PROPERTY.rooms)
  const capacity = rooms === 0 ? 0 : field(memory, rooms + ROOMS.capacity)
  if (count === capacity) {
    rooms = resizeRooms(
      store,
      property,
      capacity === 0
        ? Math.min(store.writer.roomsHint, ROOMS_AHEAD_MAX)
        : Math.min(capacity * 2, LIMITS.roomTypesPerPropertyMax),
    )
  }
  const entry = rooms + ROOMS.headerBytes + count * ROOMS.entryBytes
  writeRoom(store, entry, roomType, table, row)
  setField(store, rooms + ROOMS.count, count + 1)
  chargeProperty(store, property, roomListCharge(count + 1) - roomListCharge(count))
  return entry
}

/** For loading: the complete list of a property in order. Tables and rows are filled in later. */
export function reserveRooms(store: Store, property: number, rooms: Uint32Array, roomTypes: readonly number[]): void {
  if (rooms.length === 0) return
  addCharge(store, roomListCharge(rooms.length) - roomListCharge(0))
  const capacity = rooms.length
  const list = allocateRecord(store, roomListBytes(capacity))
  const { u32 } = store.memory
  u32[(list + ROOMS.capacity) >>> 2] = capacity
  u32[(list + ROOMS.count) >>> 2] = rooms.length
  for (let n = 0; n < rooms.length; n++) {
    const entry = list + ROOMS.headerBytes + n * ROOMS.entryBytes
    u32[(entry + ROOMS.roomType) >>> 2] = roomTypes[rooms[n]]
  }
  setField(store, property + PROPERTY.rooms, list)
}

function writeRoom(store: Store, entry: number, roomType: number, table: number, row: number): void {
  setField(store, entry + ROOMS.roomType, roomType)
  setField(store, entry + ROOMS.table, table)
  setField(store, entry + ROOMS.row, row)
}

/** A new list of another size with the same rooms. Readers use the old one until they look it up again. */
function resizeRooms(store: Store, property: number, capacity: number, without = 0): number {
  const { memory } = store
  const old = field(memory, property + PROPERTY.rooms)
  const count = old === 0 ? 0 : field(memory, old + ROOMS.count)
  const rooms = allocateRecord(store, roomListBytes(capacity))
  let kept = 0
  for (let n = 0; n < count; n++) {
    const from = old + ROOMS.headerBytes + n * ROOMS.entryBytes
    if (from === without) continue
    const to = rooms + ROOMS.headerBytes + kept++ * ROOMS.entryBytes
    writeRoom(store, to, field(memory, from), field(memory, from + ROOMS.table), field(memory, from + ROOMS.row))
  }
  setField(store, rooms + ROOMS.capacity, capacity)
  setField(store, rooms + ROOMS.count, kept)
  setField(store, property + PROPERTY.rooms, rooms)
  if (old !== 0) retire(store, false, old, roomListBytes(field(memory, old + ROOMS.capacity)))
  return rooms
}

/** Removes a room type from the list by creating a new one, so that readers see the old or the new list. */
export function forgetRoom(store: Store, property: number, entry: number): void {
  const rooms = field(store.memory, property + PROPERTY.rooms)
  const left = field(store.memory, rooms + ROOMS.count) - 1
  const capacity = Math.min(field(store.memory, rooms + ROOMS.capacity), Math.max(ROOMS_AHEAD_MAX, left * 2))
  resizeRooms(store, property, capacity, entry)
  chargeProperty(store, property, roomListCharge(left) - roomListCharge(left + 1))
}

/** Sums over a part of the rows restart when the rows change positions. */
function forgetSum(store: Store, segment: number): void {
  const { memory, writer } = store
  const summed = field(memory, segment + SEGMENT.summedRows)
  if (summed === ALL_ROWS || summed === 0) return
  for (const cell of [SEGMENT.summedRows, SEGMENT.digestLow, SEGMENT.digestHigh]) setField(store, segment + cell, 0)
  const name = field(memory, segment + SEGMENT.name)
  if (!writer.unsummed.includes(name)) writer.unsummed.push(name)
}

onRowMoved((store, property, table, row) => {
  const { memory } = store
  if (field(memory, table + TABLE.roomType) === PROPERTY_TABLE) {
    setField(store, property + PROPERTY.row, row)
    return forgetSum(store, segmentOf(memory, field(memory, property + PROPERTY.segment)))
  }
  const entry = findRoom(memory, property, field(memory, table + TABLE.roomType))
  assert(entry !== 0 && field(memory, entry + ROOMS.table) === table, 'a row belongs to a room of its property')
  setField(store, entry + ROOMS.row, row)
})

/** Calls back with every property of a segment in row order. */
export function forEachProperty(memory: Memory, segment: number, visit: (property: number, row: number) => void): void {
  const table = field(memory, segment + SEGMENT.propertyTable)
  const rows = rowCountOf(memory, table)
  for (let row = 0; row < rows; row++) {
    const property = propertyOfRow(memory, table, row)
    if (property !== 0) visit(property, row)
  }
}

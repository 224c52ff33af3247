/**
 * Segments, their properties and the tables of their room types (layout.ts, SEGMENT, PROPERTY and ROOMS).
 */

import { assert, LIMITS } from '@vacancy/shared'
import { touch } from './cow.ts'
import { compareBytes, NAMES, nameBytes } from './dictionary.ts'
import { PROPERTY, PROPERTY_TABLE, ROOMS, SEGMENT, STATE, TABLE } from './layout.ts'
import { allocateRecord, type Memory, type Store, setState, state } from './store.ts'
import {
  appendRow,
  createTable,
  field,
  freeTable,
  onRowMoved,
  propertyOfRow,
  removeRow,
  rowCountOf,
  setField,
} from './table.ts'
import { retire } from './version.ts'

const GONE = 1
const SLOTS_MIN = 64
const TABLE_SLOTS_MIN = 4

// Properties by id

function hashOfId(bytes: Uint8Array, start: number): number {
  let h = 0x9e3779b1
  for (let i = 0; i < 16; i++) h = Math.imul(h ^ (bytes[start + i] as number), 0x01000193)
  h ^= h >>> 15
  h = Math.imul(h, 0x85ebca6b)
  return (h ^ (h >>> 13)) >>> 0
}

/** @returns address of the property with this packed id, 0 when there is none */
export function findProperty(memory: Memory, id: Uint8Array, start: number): number {
  const slots = state(memory, STATE.propertySlots)
  if (slots === 0) return 0
  const mask = field(memory, slots)
  for (let i = hashOfId(id, start) & mask; ; i = (i + 1) & mask) {
    const property = field(memory, slots + 4 + i * 4)
    if (property === 0) return 0
    if (property !== GONE && sameId(memory, property, id, start)) return property
  }
}

function sameId(memory: Memory, property: number, id: Uint8Array, start: number): boolean {
  for (let i = 0; i < 16; i++) if (memory.u8[property + i] !== id[start + i]) return false
  return true
}

/** Makes room for `properties` in the index by id, so that loading does not grow it step by step. */
export function reserveProperties(store: Store, properties: number): void {
  if (properties > 0) rebuildSlots(store, properties)
}

function rebuildSlots(store: Store, properties: number): void {
  const { memory } = store
  const old = state(memory, STATE.propertySlots)
  const oldSize = old === 0 ? 0 : field(memory, old) + 1
  const size = Math.max(SLOTS_MIN, 2 ** Math.ceil(Math.log2(properties * 2)))
  const slots = allocateRecord(store, 4 + size * 4)
  touch(store, slots, 4 + size * 4)
  memory.u32[slots >>> 2] = size - 1
  for (let i = 0; i < oldSize; i++) {
    const property = field(memory, old + 4 + i * 4)
    if (property > GONE) putSlot(memory, slots, property)
  }
  setState(store, STATE.propertySlots, slots)
  setState(store, STATE.propertySlotsUsed, state(memory, STATE.propertyCount))
  if (old !== 0) retire(store, false, old, 4 + oldSize * 4)
}

function putSlot(memory: Memory, slots: number, property: number): number {
  const mask = memory.u32[slots >>> 2] as number
  let i = hashOfId(memory.u8, property) & mask
  while ((memory.u32[(slots >>> 2) + 1 + i] as number) !== 0) i = (i + 1) & mask
  const cell = (slots >>> 2) + 1 + i
  Atomics.store(memory.u32, cell, property)
  return cell
}

function indexProperty(store: Store, property: number): void {
  const { memory } = store
  const used = state(memory, STATE.propertySlotsUsed) + 1
  const slots = state(memory, STATE.propertySlots)
  // Removed entries count as used: a rebuild drops them.
  if (slots === 0 || used * 2 > field(memory, slots) + 1) rebuildSlots(store, state(memory, STATE.propertyCount) + 1)
  const target = state(memory, STATE.propertySlots)
  const mask = field(memory, target)
  let i = hashOfId(memory.u8, property) & mask
  while (field(memory, target + 4 + i * 4) !== 0) i = (i + 1) & mask
  setField(store, target + 4 + i * 4, property)
  setState(store, STATE.propertySlotsUsed, state(memory, STATE.propertySlotsUsed) + 1)
  setState(store, STATE.propertyCount, state(memory, STATE.propertyCount) + 1)
}

/** Bytes that indexing one more property may take at once. */
export function indexGrowthBytes(memory: Memory): number {
  const slots = state(memory, STATE.propertySlots)
  const size = slots === 0 ? 0 : field(memory, slots) + 1
  return (state(memory, STATE.propertySlotsUsed) + 1) * 2 > size ? Math.max(SLOTS_MIN, size * 4) * 4 : 0
}

function unindexProperty(store: Store, property: number): void {
  const { memory } = store
  const slots = state(memory, STATE.propertySlots)
  const mask = field(memory, slots)
  for (let i = hashOfId(memory.u8, property) & mask; ; i = (i + 1) & mask) {
    const cell = slots + 4 + i * 4
    const found = field(memory, cell)
    assert(found !== 0, 'every property is indexed')
    if (found !== property) continue
    setField(store, cell, GONE)
    setState(store, STATE.propertyCount, state(memory, STATE.propertyCount) - 1)
    return
  }
}

// Segments

/** @returns address of the segment, 0 while no property is in it */
export function segmentOf(memory: Memory, name: number): number {
  if (name < 0 || name >= state(memory, STATE.segmentCapacity)) return 0
  return field(memory, state(memory, STATE.segmentDirectory) + name * 4)
}

/** @param loaded a property table that is filled already, for loading */
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
  const segment = allocateRecord(store, SEGMENT.bytes)
  setField(store, segment + SEGMENT.name, name)
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

/** Forgets a segment that has lost its last property, with all its tables. */
export function removeSegment(store: Store, segment: number): void {
  const { memory } = store
  assert(field(memory, segment + SEGMENT.properties) === 0, 'a segment goes when its last property went')
  const name = field(memory, segment + SEGMENT.name)
  setField(store, state(memory, STATE.segmentDirectory) + name * 4, 0)
  forEachTable(memory, segment, (table) => freeTable(store, table))
  freeTable(store, field(memory, segment + SEGMENT.propertyTable))
  const slots = field(memory, segment + SEGMENT.tableSlots)
  if (slots !== 0) retire(store, false, slots, 8 + (field(memory, slots) + 1) * 8)
  retire(store, false, segment, SEGMENT.bytes)
}

// Properties

/** What a property is made of, its names as numbers of the dictionaries. */
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

/** Creates the record alone: neither indexed nor in a row yet. */
export function createPropertyRecord(
  store: Store,
  id: Uint8Array,
  idStart: number,
  attributes: PropertyRecord,
): number {
  const property = allocateRecord(store, PROPERTY.bytes)
  touch(store, property, PROPERTY.bytes)
  for (let i = 0; i < 16; i++) store.memory.u8[property + i] = id[idStart + i] as number
  writeAttributes(store, property, attributes)
  return property
}

/** Replaces the attributes. For a property in rows: call between mark and unmark, then renew its bits. */
export function writeAttributes(store: Store, property: number, attributes: PropertyRecord): void {
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
  if (old !== 0) retire(store, false, old, 4 + field(memory, old) * 4)
  let list = 0
  if (attributes.amenities.length > 0) {
    list = allocateRecord(store, 4 + attributes.amenities.length * 4)
    touch(store, list, 4 + attributes.amenities.length * 4)
    u32[list >>> 2] = attributes.amenities.length
    for (let i = 0; i < attributes.amenities.length; i++) u32[(list >>> 2) + 1 + i] = attributes.amenities[i] as number
  }
  setField(store, property + PROPERTY.amenities, list)
}

/** A position as a point of the unit sphere: the chord between two such points needs no trigonometry. */
export function writeUnitVector(target: Float64Array, at: number, latitude: number, longitude: number): void {
  const phi = (latitude * Math.PI) / 180
  const lambda = (longitude * Math.PI) / 180
  target[at] = Math.cos(phi) * Math.cos(lambda)
  target[at + 1] = Math.cos(phi) * Math.sin(lambda)
  target[at + 2] = Math.sin(phi)
}

/** Enters a property into the index by id and into its segment. */
export function admitProperty(store: Store, property: number): void {
  const { memory } = store
  const segment = ensureSegment(store, field(memory, property + PROPERTY.segment))
  const row = appendRow(store, field(memory, segment + SEGMENT.propertyTable), property)
  setField(store, property + PROPERTY.row, row)
  setField(store, segment + SEGMENT.properties, field(memory, segment + SEGMENT.properties) + 1)
  indexProperty(store, property)
}

/** For loading: indexes a property whose row `fillRows` has made. */
export function admitLoaded(store: Store, property: number, row: number): void {
  setField(store, property + PROPERTY.row, row)
  indexProperty(store, property)
}

/** Takes a property without rooms out of index and segment, and frees it. */
export function dismissProperty(store: Store, property: number): void {
  const { memory } = store
  unindexProperty(store, property)
  leaveSegment(store, property)
  const amenities = field(memory, property + PROPERTY.amenities)
  if (amenities !== 0) retire(store, false, amenities, 4 + field(memory, amenities) * 4)
  const rooms = field(memory, property + PROPERTY.rooms)
  if (rooms !== 0) retire(store, false, rooms, roomListBytes(field(memory, rooms)))
  retire(store, false, property, PROPERTY.bytes)
}

function leaveSegment(store: Store, property: number): void {
  const { memory } = store
  const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
  removeRow(store, field(memory, segment + SEGMENT.propertyTable), field(memory, property + PROPERTY.row))
  const left = field(memory, segment + SEGMENT.properties) - 1
  setField(store, segment + SEGMENT.properties, left)
  if (left === 0) removeSegment(store, segment)
}

/** Takes the property out of its segment's rows and puts it into those of another. Its rooms are moved by the caller. */
export function enterSegment(store: Store, property: number, attributes: PropertyRecord): void {
  const { memory } = store
  const target = ensureSegment(store, attributes.segment)
  leaveSegment(store, property)
  writeAttributes(store, property, attributes)
  const row = appendRow(store, field(memory, target + SEGMENT.propertyTable), property)
  setField(store, property + PROPERTY.row, row)
  setField(store, target + SEGMENT.properties, field(memory, target + SEGMENT.properties) + 1)
}

// Rooms of a property

function roomListBytes(capacity: number): number {
  return ROOMS.headerBytes + capacity * ROOMS.entryBytes
}

export function roomCount(memory: Memory, property: number): number {
  const rooms = field(memory, property + PROPERTY.rooms)
  return rooms === 0 ? 0 : field(memory, rooms + ROOMS.count)
}

/** @returns address of the n-th room entry, in order of creation */
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

/** Notes a row in the property's list. The row must exist. */
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
      capacity === 0 ? store.writer.roomsHint : Math.min(capacity * 2, LIMITS.roomTypesPerPropertyMax),
    )
  }
  const entry = rooms + ROOMS.headerBytes + count * ROOMS.entryBytes
  writeRoom(store, entry, roomType, table, row)
  setField(store, rooms + ROOMS.count, count + 1)
  return entry
}

/** For loading: the whole list of a property in its order; tables and rows are filled in later. */
export function reserveRooms(store: Store, property: number, rooms: Uint32Array, roomTypes: readonly number[]): void {
  if (rooms.length === 0) return
  const capacity = rooms.length
  const list = allocateRecord(store, roomListBytes(capacity))
  const { u32 } = store.memory
  u32[(list + ROOMS.capacity) >>> 2] = capacity
  u32[(list + ROOMS.count) >>> 2] = rooms.length
  for (let n = 0; n < rooms.length; n++) {
    const entry = list + ROOMS.headerBytes + n * ROOMS.entryBytes
    u32[(entry + ROOMS.roomType) >>> 2] = roomTypes[rooms[n] as number] as number
  }
  setField(store, property + PROPERTY.rooms, list)
}

function writeRoom(store: Store, entry: number, roomType: number, table: number, row: number): void {
  setField(store, entry + ROOMS.roomType, roomType)
  setField(store, entry + ROOMS.table, table)
  setField(store, entry + ROOMS.row, row)
}

/** A new list of another size with the same rooms; readers go on with the old one until they look again. */
export function resizeRooms(store: Store, property: number, capacity: number, without = 0): number {
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

/** Takes a room type off the list; a new list, so that readers see the old one or the new one. */
export function forgetRoom(store: Store, property: number, entry: number): void {
  const capacity = field(store.memory, field(store.memory, property + PROPERTY.rooms) + ROOMS.capacity)
  resizeRooms(store, property, capacity, entry)
}

onRowMoved((store, property, table, row) => {
  const { memory } = store
  if (field(memory, table + TABLE.roomType) === PROPERTY_TABLE) {
    setField(store, property + PROPERTY.row, row)
    return
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

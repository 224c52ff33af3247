/** Commands on properties, their rooms and whole segments. */

import { LIMITS } from '@vacancy/shared'
import {
  type ApplyContext,
  addRoomDigest,
  change,
  exceedsBudget,
  fail,
  forEachRoomTable,
  keyOf,
  lacksMemory,
  readProperty,
  readRoomType,
} from './apply-context.ts'
import { bitmapGrowthBytes, renewRowBits } from './bitmaps.ts'
import { OUTCOME, readBytes, readF64, readName, readU8 } from './command.ts'
import { dictionaryGrowthBytes, findName, hashOfName, internName, NAMES, type NameKind } from './dictionary.ts'
import { propertyHash, roomHash } from './digest.ts'
import { measureProperty, type PropertyGrowth } from './growth.ts'
import { ALL_ROWS, PLANE, PROPERTY, ROOMS, SEGMENT } from './layout.ts'
import { oweNightsOf, removeNightsOf } from './nights.ts'
import { addToPlane, ensurePlane, forEachSlot, isCounted, nightsOfRow } from './planes.ts'
import { findProperty, indexGrowthBytes } from './property-index.ts'
import {
  addToSegmentDigest,
  admitProperty,
  createPropertyRecord,
  deleteWholeSegment,
  dismissProperty,
  ensureTable,
  enterSegment,
  findRoom,
  forEachProperty,
  forEachTable,
  forgetRoom,
  type PropertyRecord,
  removeSegment,
  roomCount,
  roomEntry,
  segmentOf,
  writeAttributes,
} from './segment.ts'
import { findStayProperty, nextGeneration } from './stays.ts'
import { addDigest, featureLevel, LEDGER_LEVEL, type Memory, type Store } from './store.ts'
import { appendRow, removeRow, rowGrowthBytes } from './table.ts'
import { field, propertyOfRow, rowCountOf, setField } from './table-fields.ts'
import { mark, unmark } from './version.ts'

/** Removes the rooms of a property from its segment's share of the digest, or adds them. */
function addRoomsToSegment(store: Store, property: number, sign: 1 | -1): void {
  const { memory } = store
  for (let n = 0; n < roomCount(memory, property); n++) {
    const roomType = field(memory, roomEntry(memory, property, n) + ROOMS.roomType)
    const low = roomHash(0, keyOf(memory, property, roomType, 0))
    const high = roomHash(1, keyOf(memory, property, roomType, 1))
    addToSegmentDigest(store, property, Math.imul(low, sign), Math.imul(high, sign))
  }
}

/** Clears a row's words and removes the row. The caller updates the property's list. */
function vacateRow(context: ApplyContext, entry: number, property: number): void {
  const { store } = context
  const { memory } = store
  const table = field(memory, entry + ROOMS.table)
  const row = field(memory, entry + ROOMS.row)
  const roomType = field(memory, entry + ROOMS.roomType)
  mark(store, table)
  forEachSlot(memory, table, (_slot, plane) => {
    if (isCounted(memory, plane)) change(context, table, plane, row, property, roomType, 0, 0)
  })
  removeRow(store, table, row)
  unmark(store, table)
}

export function deleteRoom(context: ApplyContext): void {
  const { store } = context
  const property = readProperty(context)
  const roomType = readRoomType(context)
  if (property === 0) return fail(context, OUTCOME.unknownProperty)
  const entry = findRoom(store.memory, property, roomType)
  if (entry === 0) return fail(context, OUTCOME.unknownRoomType)
  const stayProperty = findStayProperty(store, store.memory.u8, property + PROPERTY.id)
  if (stayProperty !== 0) oweNightsOf(store, stayProperty, roomType)
  vacateRow(context, entry, property)
  addRoomDigest(store, property, roomType, -1)
  forgetRoom(store, property, entry)
}

/**
 * A property goes, with its packages. Its stays keep their rooms, for the property may be set again: a full refresh does
 * so. Below feature level 4 they kept none.
 */
export function keepStays(store: Store, stayProperty: number): void {
  if (featureLevel(store.memory) >= LEDGER_LEVEL) return oweNightsOf(store, stayProperty)
  // The record of the property may go with its last night.
  nextGeneration(store, stayProperty)
  removeNightsOf(store, stayProperty)
}

export function deleteProperty(context: ApplyContext): void {
  const property = readProperty(context)
  if (property === 0) return fail(context, OUTCOME.unknownProperty)
  removeProperty(context, property)
}

function removeProperty(context: ApplyContext, property: number): void {
  const { store } = context
  const { memory } = store
  const rooms = roomCount(memory, property)
  const marked = tablesOfProperty(memory, property)
  for (const table of marked) mark(store, table)
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    vacateRow(context, entry, property)
    addRoomDigest(store, property, field(memory, entry + ROOMS.roomType), -1)
  }
  addPropertyDigest(store, property, -1)
  const stayProperty = findStayProperty(store, memory.u8, property + PROPERTY.id)
  if (stayProperty !== 0) keepStays(store, stayProperty)
  dismissProperty(store, property)
  for (const table of marked) unmark(store, table)
}

/** All tables in which the property has a row: readers must not see a partial change of them. */
function tablesOfProperty(memory: Memory, property: number): number[] {
  const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
  const tables = [field(memory, segment + SEGMENT.propertyTable)]
  forEachRoomTable(memory, property, (table) => tables.push(table))
  return tables
}

function keepStaysOfSegment(store: Store, segment: number): void {
  const { memory, writer } = store
  for (const stayProperty of [...writer.ledger.properties.values()]) {
    const property = findProperty(memory, memory.u8, stayProperty)
    if (property !== 0 && field(memory, property + PROPERTY.segment) === segment) keepStays(store, stayProperty)
  }
}

export function deleteSegment(context: ApplyContext): void {
  const { reader, store } = context
  const { memory } = store
  const start = readName(reader)
  const segment = segmentOf(memory, findName(memory, NAMES.segment, reader.bytes, start, reader.at))
  if (segment === 0) return fail(context, OUTCOME.unknownSegment)
  keepStaysOfSegment(store, field(memory, segment + SEGMENT.name))
  const tables = [field(memory, segment + SEGMENT.propertyTable)]
  forEachTable(memory, segment, (table) => tables.push(table))
  for (const table of tables) mark(store, table)
  forEachTable(memory, segment, (table) => {
    forEachSlot(memory, table, (_slot, plane) => {
      if (!isCounted(memory, plane)) return
      const low = -field(memory, plane + PLANE.digestLow) | 0
      addToPlane(
        store,
        table,
        plane,
        -field(memory, plane + PLANE.packages),
        low,
        -field(memory, plane + PLANE.digestHigh) | 0,
      )
    })
  })
  if (featureLevel(memory) >= 1) {
    while (field(memory, segment + SEGMENT.summedRows) !== ALL_ROWS) sumRows(store, segment, ALL_ROWS)
    addDigest(store, -field(memory, segment + SEGMENT.digestLow) | 0, -field(memory, segment + SEGMENT.digestHigh) | 0)
    deleteWholeSegment(store, segment)
    for (const table of tables) unmark(store, table)
    return
  }
  setField(store, segment + SEGMENT.packages, 0)
  const properties: number[] = []
  forEachProperty(memory, segment, (property) => properties.push(property))
  for (const property of properties) {
    const rooms = roomCount(memory, property)
    for (let n = 0; n < rooms; n++) {
      addRoomDigest(store, property, field(memory, roomEntry(memory, property, n) + ROOMS.roomType), -1)
    }
    addPropertyDigest(store, property, -1)
    // The last one removes the segment with its tables.
    dismissProperty(store, property)
  }
  for (const table of tables) unmark(store, table)
}

function addPropertyDigest(store: Store, property: number, sign: 1 | -1): void {
  const low = Math.imul(propertyDigest(store.memory, property, 0), sign)
  const high = Math.imul(propertyDigest(store.memory, property, 1), sign)
  addDigest(store, low, high)
  addToSegmentDigest(store, property, low, high)
}

/**
 * Adds more rows of a loaded segment to its share of the digest, so that the segment can be deleted in one short
 * step. @returns number of rows examined
 */
function sumRows(store: Store, segment: number, rows: number): number {
  const { memory } = store
  const table = field(memory, segment + SEGMENT.propertyTable)
  const from = field(memory, segment + SEGMENT.summedRows)
  const count = rowCountOf(memory, table)
  const end = Math.min(count, from + rows)
  let low = field(memory, segment + SEGMENT.digestLow)
  let high = field(memory, segment + SEGMENT.digestHigh)
  for (let row = from; row < end; row++) {
    const property = propertyOfRow(memory, table, row)
    if (property === 0) continue
    low = (low + propertyDigest(memory, property, 0)) >>> 0
    high = (high + propertyDigest(memory, property, 1)) >>> 0
    for (let n = 0; n < roomCount(memory, property); n++) {
      const roomType = field(memory, roomEntry(memory, property, n) + ROOMS.roomType)
      low = (low + roomHash(0, keyOf(memory, property, roomType, 0))) >>> 0
      high = (high + roomHash(1, keyOf(memory, property, roomType, 1))) >>> 0
    }
  }
  setField(store, segment + SEGMENT.digestLow, low)
  setField(store, segment + SEGMENT.digestHigh, high)
  setField(store, segment + SEGMENT.summedRows, end === count ? ALL_ROWS : end)
  return end - from
}

/** Adds so many rows of loaded segments to their digest shares, in idle time. Changes no replicated state. */
export function sumSegments(store: Store, rows: number): void {
  const { memory, writer } = store
  for (let left = rows; left > 0 && writer.unsummed.length > 0; ) {
    const segment = segmentOf(memory, writer.unsummed.at(-1) as number)
    const isSummed = segment === 0 || field(memory, segment + SEGMENT.summedRows) === ALL_ROWS
    if (isSummed) writer.unsummed.pop()
    else left -= Math.max(1, sumRows(store, segment, left))
  }
}

/** Hash of a stored property in one lane of the digest. */
export function propertyDigest(memory: Memory, property: number, lane: 0 | 1): number {
  const { f64 } = memory
  const hash = (kind: NameKind, column: number) => hashOfName(memory, kind, field(memory, property + column), lane)
  const amenities = field(memory, property + PROPERTY.amenities)
  const amenityHashes: number[] = []
  for (let i = 1; amenities !== 0 && i <= field(memory, amenities); i++) {
    amenityHashes.push(hashOfName(memory, NAMES.amenity, field(memory, amenities + i * 4), lane))
  }
  return propertyHash(lane, {
    id: memory.u8,
    idStart: property + PROPERTY.id,
    segmentHash: hash(NAMES.segment, PROPERTY.segment),
    areaHash: hash(NAMES.area, PROPERTY.area),
    typeHash: hash(NAMES.type, PROPERTY.type),
    categoryHash: hash(NAMES.category, PROPERTY.category),
    stars: field(memory, property + PROPERTY.stars),
    latitude: f64[(property + PROPERTY.latitude) / 8],
    longitude: f64[(property + PROPERTY.longitude) / 8],
    amenityHashes,
  })
}

export function setProperty(context: ApplyContext): void {
  const { reader, store } = context
  const { memory } = store
  let found: PropertyGrowth | undefined
  if (featureLevel(memory) >= 1) {
    found = measureProperty(store, reader)
    if (exceedsBudget(context, found.growth, found.largest)) return
  } else if (lacksMemory(context, propertyGrowthBytes(context))) return
  const id = readBytes(reader, 16)
  const stars = readU8(reader)
  const latitude = readF64(reader)
  const longitude = readF64(reader)
  const segment = internRead(context, NAMES.segment, found?.names[0])
  const area = internRead(context, NAMES.area, found?.names[1])
  const type = internRead(context, NAMES.type, found?.names[2])
  const category = internRead(context, NAMES.category, found?.names[3])
  const count = readU8(reader)
  const amenities: number[] = []
  for (let i = 0; i < count; i++) amenities.push(internRead(context, NAMES.amenity, found?.names[4 + i]))
  amenities.sort((a, b) => a - b)
  const attributes: PropertyRecord = { segment, area, type, category, stars, latitude, longitude, amenities }
  const property = found?.property ?? findProperty(memory, reader.bytes, id)
  if (property === 0) {
    const created = createPropertyRecord(store, reader.bytes, id, attributes)
    admitProperty(store, created)
    addPropertyDigest(store, created, 1)
    return
  }
  addPropertyDigest(store, property, -1)
  if (field(memory, property + PROPERTY.segment) === segment) replaceAttributes(store, property, attributes)
  else moveProperty(context, property, attributes)
  addPropertyDigest(store, property, 1)
}

/** Upper bound of what SETPROP needs: names, an index entry, rows in the tables of its new segment. */
function propertyGrowthBytes(context: ApplyContext): number {
  const { reader, store } = context
  const { memory } = store
  const names = dictionaryGrowthBytes(memory, LIMITS.amenitiesMax) + indexGrowthBytes(memory)
  // The segment's name follows id, stars and position.
  const at = reader.at + 16 + 1 + 16
  const name = findName(memory, NAMES.segment, reader.bytes, at + 1, at + 1 + reader.bytes[at])
  const segment = segmentOf(memory, name)
  const rows = segment === 0 ? 4096 : rowGrowthBytes(memory, field(memory, segment + SEGMENT.propertyTable))
  const property = findProperty(memory, reader.bytes, reader.at)
  const tables = property === 0 ? [] : tablesOfProperty(memory, property)
  return tables.reduce((bytes, table) => bytes + bitmapGrowthBytes(memory, table), names + rows)
}

/** @param known number of the name if it was looked up, -1 for a new one */
function internRead(context: ApplyContext, kind: NameKind, known = -1): number {
  const start = readName(context.reader)
  if (known >= 0) return known
  return internName(context.store, kind, context.reader.bytes, start, context.reader.at)
}

function replaceAttributes(store: Store, property: number, attributes: PropertyRecord): void {
  const { memory } = store
  const tables = tablesOfProperty(memory, property)
  for (const table of tables) mark(store, table)
  writeAttributes(store, property, attributes)
  renewRowBits(store, tables[0], field(memory, property + PROPERTY.row), property)
  const rooms = roomCount(memory, property)
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    renewRowBits(store, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row), property)
  }
  for (const table of tables) unmark(store, table)
}

/** Moves a property with its packages to another segment: adds the new rows, then removes the old ones. */
function moveProperty(context: ApplyContext, property: number, attributes: PropertyRecord): void {
  const { store } = context
  const { memory } = store
  const rooms = roomCount(memory, property)
  const marked = tablesOfProperty(memory, property)
  for (const table of marked) mark(store, table)
  const nights: { roomType: number; day: number; lo: number; hi: number }[][] = []
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    nights.push(
      nightsOfRow(memory, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row)).map((found) => ({
        ...found,
        roomType: field(memory, entry + ROOMS.roomType),
      })),
    )
    vacateRow(context, entry, property)
  }
  addRoomsToSegment(store, property, -1)
  const emptied = enterSegment(store, property, attributes)
  addRoomsToSegment(store, property, 1)
  const segment = segmentOf(memory, attributes.segment)
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    const roomType = field(memory, entry + ROOMS.roomType)
    const table = ensureTable(store, segment, roomType, 1)
    mark(store, table)
    marked.push(table)
    const row = appendRow(store, table, property)
    setField(store, entry + ROOMS.table, table)
    setField(store, entry + ROOMS.row, row)
    for (const { day, lo, hi } of nights[n] ?? []) {
      change(context, table, ensurePlane(store, table, day), row, property, roomType, lo, hi)
    }
  }
  for (const table of marked) unmark(store, table)
  // Last, because its tables were marked.
  if (emptied !== 0) removeSegment(store, emptied)
}

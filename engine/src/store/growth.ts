/**
 * The growth of the charge by a command, measured before its first change (charge.ts). Additions count in full even
 * when they replace something: while the command runs, both are in memory.
 */

import { LIMITS } from '@vacancy/shared'
import {
  amenitiesCharge,
  capacityBytes,
  nameCharge,
  nameGrowth,
  propertyCharge,
  roomListCharge,
  segmentCharge,
  worstCapacity,
} from './charge.ts'
import { type CommandReader, readBytes, readName, readU8 } from './command.ts'
import { findName, NAMES, type NameKind, nameCounts } from './dictionary.ts'
import { PROPERTY, ROOMS, SEGMENT, TABLE } from './layout.ts'
import { nightsOfRow, planeOf } from './planes.ts'
import { findProperty } from './property-index.ts'
import { roomCount, roomEntry, segmentOf, tableOf } from './segment.ts'
import type { Memory, Store } from './store.ts'
import { field } from './table-fields.ts'

/** Upper bound of what a command adds to the charge, and the largest table after it, in bytes. */
export type Growth = { growth: number; largest: number }

/** Adds a row, or nights, to a table that may not exist yet. */
function growTable(sum: Growth, { memory, writer }: Store, table: number, rows: number, planes: number): void {
  const held = writer.charge.tables.get(table)
  const capacity = worstCapacity((table === 0 ? 0 : field(memory, table + TABLE.rowCount)) + rows)
  const isEqual = planes === 0 && held?.capacity === capacity
  const bytes = isEqual ? held.bytes : capacityBytes(capacity, (held?.planes ?? 0) + planes)
  sum.growth += bytes - (held?.bytes ?? 0)
  sum.largest = Math.max(sum.largest, bytes)
}

/** A package whose room type or night is missing. */
export function measurePackage(
  store: Store,
  reader: CommandReader,
  property: number,
  roomType: number,
  room: number,
  day: number,
  nameStart: number,
): Growth {
  const { memory, writer } = store
  const sum: Growth = { growth: 0, largest: 0 }
  if (room !== 0) {
    growTable(sum, store, field(memory, room + ROOMS.table), 0, 1)
    return sum
  }
  const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
  const table = tableOf(memory, segment, roomType)
  const rooms = roomCount(memory, property)
  sum.growth += roomListCharge(rooms + 1) - roomListCharge(rooms)
  if (roomType < 0 || !nameCounts(memory, NAMES.roomType, roomType)) {
    sum.growth += nameGrowth(writer.charge, NAMES.roomType, 1, nameCharge(reader.at - nameStart))
  }
  if (table === 0) {
    const tables = field(memory, segment + SEGMENT.tableCount)
    sum.growth += segmentCharge(tables + 1) - segmentCharge(tables)
  }
  growTable(sum, store, table, 1, table === 0 || planeOf(memory, table, day) === 0 ? 1 : 0)
  return sum
}

/** What SETPROP adds, and the results of the lookups. */
export type PropertyGrowth = Growth & {
  /** Address; 0 for a new property. */
  property: number
  /** Numbers of its names in the order of the command, -1 for a new one. */
  readonly names: Int32Array
}

/** Reused, as is the list of names: read it before the next measurement. */
const measured: PropertyGrowth = { growth: 0, largest: 0, property: 0, names: new Int32Array(4 + LIMITS.amenitiesMax) }
const SINGLE_NAMES: readonly NameKind[] = [NAMES.segment, NAMES.area, NAMES.type, NAMES.category]

/** The additions of SETPROP: names, a property or longer lists, rows and nights in the segment it moves to. */
export function measureProperty(store: Store, reader: CommandReader): PropertyGrowth {
  const { memory, writer } = store
  const { at: start } = reader
  const sum = measured
  const { names } = sum
  sum.growth = 0
  sum.largest = 0
  sum.property = findProperty(memory, reader.bytes, readBytes(reader, 16))
  readBytes(reader, 1 + 16)
  for (const [i, kind] of SINGLE_NAMES.entries()) {
    const textBytes = findCounted(memory, reader, kind, i)
    if (textBytes > 0) sum.growth += nameGrowth(writer.charge, kind, 1, textBytes)
  }
  const amenities = readU8(reader)
  let more = 0
  let textBytes = 0
  for (let i = 0; i < amenities; i++) {
    const bytes = findCounted(memory, reader, NAMES.amenity, SINGLE_NAMES.length + i)
    if (bytes > 0) more++
    textBytes += bytes
  }
  if (more > 0) sum.growth += nameGrowth(writer.charge, NAMES.amenity, more, textBytes)
  reader.at = start
  const { property } = sum
  const segmentName = names[0]
  if (property === 0) sum.growth += propertyCharge(amenities, 0)
  else {
    const held = field(memory, property + PROPERTY.amenities)
    sum.growth += amenitiesCharge(amenities) - amenitiesCharge(held === 0 ? 0 : field(memory, held))
    if (field(memory, property + PROPERTY.segment) === segmentName) return sum
  }
  measureEntry(sum, store, segmentOf(memory, segmentName), property)
  return sum
}

/** Reads the n-th name of the command. @returns its charge when it is new, else 0 */
function findCounted(memory: Memory, reader: CommandReader, kind: NameKind, n: number): number {
  const from = readName(reader)
  const name = findName(memory, kind, reader.bytes, from, reader.at)
  const isKnown = name >= 0 && nameCounts(memory, kind, name)
  measured.names[n] = isKnown ? name : -1
  return isKnown ? 0 : nameCharge(reader.at - from)
}

/** Adds a property (0 for a new one) to a segment (0 for a missing one): rows and nights in its tables. */
function measureEntry(sum: Growth, store: Store, segment: number, property: number): void {
  const { memory } = store
  const properties = segment === 0 ? 0 : field(memory, segment + SEGMENT.propertyTable)
  const rows = properties === 0 ? 0 : field(memory, properties + TABLE.rowCount)
  const held = store.writer.charge.tables.get(properties)
  const capacity = worstCapacity(rows + 1)
  const bytes = held?.capacity === capacity ? held.bytes : capacityBytes(capacity, 0)
  sum.growth += bytes - (held?.bytes ?? 0)
  sum.largest = Math.max(sum.largest, bytes)
  const tablesBefore = segment === 0 ? 0 : field(memory, segment + SEGMENT.tableCount)
  let tables = tablesBefore
  const rooms = property === 0 ? 0 : roomCount(memory, property)
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    const target = segment === 0 ? 0 : tableOf(memory, segment, field(memory, entry + ROOMS.roomType))
    if (target === 0) tables++
    let nights = 0
    for (const { day } of nightsOfRow(memory, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row))) {
      if (target === 0 || planeOf(memory, target, day) === 0) nights++
    }
    growTable(sum, store, target, 1, nights)
  }
  sum.growth += segmentCharge(tables) - (segment === 0 ? 0 : segmentCharge(tablesBefore))
}

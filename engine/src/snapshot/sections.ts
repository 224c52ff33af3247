/**
 * Names, properties and table shapes ⇄ the raw bytes of their blocks. Column-wise, with differences where neighbours
 * are similar, so that zstd finds repetitions.
 */

import { compareBytes } from '@vacancy/shared'
import {
  createFieldReader,
  createFieldWriter,
  expectEnd,
  type FieldReader,
  type FieldWriter,
  putBytes,
  putColumn,
  putDeltaColumn,
  putRecordPlanes,
  putTexts,
  putU8,
  putU32,
  refuse,
  takeBytes,
  takeColumn,
  takeCount,
  takeDeltaColumn,
  takeRecordPlanes,
  takeTexts,
  takeU8,
  written,
} from './columns.ts'
import {
  DEAD_ROW,
  NAME_LISTS,
  type Names,
  type PropertyColumns,
  sharedBytes,
  sharedU32,
  type TableShape,
} from './schema.ts'
import { NIGHTS_MAX } from './words.ts'

const ID_BYTES = 16

export function encodeProperties(names: Names, properties: PropertyColumns): Uint8Array {
  const writer = createFieldWriter()
  for (const list of NAME_LISTS) putTexts(writer, names[list])
  const { count } = properties
  putU32(writer, count)
  putRecordPlanes(writer, properties.ids.subarray(0, count * ID_BYTES), ID_BYTES)
  putDeltaColumn(writer, properties.segment.subarray(0, count))
  putColumn(writer, properties.area.subarray(0, count))
  putDeltaColumn(writer, properties.type.subarray(0, count))
  putDeltaColumn(writer, properties.category.subarray(0, count))
  putBytes(writer, properties.stars.subarray(0, count))
  putDegrees(writer, properties.latitude, count)
  putDegrees(writer, properties.longitude, count)
  putLists(writer, properties.amenityStart, properties.amenities, count)
  putLists(writer, properties.roomStart, properties.rooms, count)
  return written(writer)
}

export function decodeProperties(bytes: Uint8Array, file: string): { names: Names; properties: PropertyColumns } {
  const reader = createFieldReader(bytes, `${file} (properties)`)
  const lists = {} as Record<(typeof NAME_LISTS)[number], string[]>
  for (const list of NAME_LISTS) lists[list] = takeNames(reader)
  const names: Names = lists
  const count = takeCount(reader, ID_BYTES)
  const ids = sharedBytes(count * ID_BYTES)
  takeRecordPlanes(reader, count, ID_BYTES, ids)
  const segment = below(reader, takeDeltaColumn(reader, count), names.segments.length, 'segment')
  ascending(reader, segment, 'segments')
  const area = below(reader, takeColumn(reader, count), names.areas.length, 'area')
  const type = below(reader, takeDeltaColumn(reader, count), names.types.length, 'type')
  const category = below(reader, takeDeltaColumn(reader, count), names.categories.length, 'category')
  const stars = takeBytes(reader, count)
  const latitude = takeDegrees(reader, count)
  const longitude = takeDegrees(reader, count)
  const amenities = takeLists(reader, count, names.amenities.length, 'amenity')
  const rooms = takeLists(reader, count, names.roomTypes.length, 'room type')
  expectEnd(reader)
  const properties: PropertyColumns = {
    count,
    ids,
    segment,
    area,
    type,
    category,
    stars,
    latitude,
    longitude,
    amenityStart: amenities.start,
    amenities: amenities.values,
    roomStart: rooms.start,
    rooms: rooms.values,
  }
  return { names, properties }
}

const encoder = new TextEncoder()

function takeNames(reader: FieldReader): string[] {
  const names = takeTexts(reader)
  for (let i = 1; i < names.length; i++) {
    if (compareBytes(encoder.encode(names[i - 1]), encoder.encode(names[i])) >= 0) {
      refuse(reader, 'names are not in order')
    }
  }
  return names
}

function below(reader: FieldReader, values: Uint32Array, limit: number, what: string): Uint32Array {
  for (let i = 0; i < values.length; i++) {
    if (values[i] >= limit) refuse(reader, `${what} ${values[i]} of ${limit}`)
  }
  return values
}

function ascending(reader: FieldReader, values: Uint32Array, what: string): void {
  for (let i = 1; i < values.length; i++) {
    if (values[i] < values[i - 1]) refuse(reader, `${what} are not in order`)
  }
}

/** A list of numbers per property: the lengths, then all numbers. */
function putLists(writer: FieldWriter, start: Uint32Array, values: Uint32Array, count: number): void {
  const lengths = new Uint32Array(count)
  for (let i = 0; i < count; i++) lengths[i] = start[i + 1] - start[i]
  putColumn(writer, lengths)
  const total = count === 0 ? 0 : start[count]
  putU32(writer, total)
  putColumn(writer, values.subarray(0, total))
}

function takeLists(
  reader: FieldReader,
  count: number,
  limit: number,
  what: string,
): { start: Uint32Array; values: Uint32Array } {
  const start = new Uint32Array(count + 1)
  const lengths = takeColumn(reader, count)
  const total = takeCount(reader, 1)
  let end = 0
  for (let i = 0; i < count; i++) {
    end += lengths[i]
    if (end > total) refuse(reader, `the lists of ${what} have more than ${total} entries`)
    start[i + 1] = end
  }
  if (end !== total) refuse(reader, `the lists of ${what} have fewer than ${total} entries`)
  return { start, values: below(reader, takeColumn(reader, total), limit, what) }
}

/**
 * Degrees as multiples of 10^-d where that is exact, with d = 6 or 7, whichever leaves fewer exceptions. Exceptions
 * keep their eight bytes. Samples have six digits.
 */
function putDegrees(writer: FieldWriter, degrees: Float64Array, count: number): void {
  const six = inexact(degrees, count, 1e6)
  const seven = six.length === 0 ? six : inexact(degrees, count, 1e7)
  const decimals = six.length <= seven.length ? 6 : 7
  const exceptions = decimals === 6 ? six : seven
  const scale = 10 ** decimals
  const scaled = new Uint32Array(count)
  for (let i = 0; i < count; i++) scaled[i] = Math.round(degrees[i] * scale)
  for (const i of exceptions) scaled[i] = i === 0 ? 0 : scaled[i - 1]
  const raw = new Float64Array(exceptions.length)
  for (let i = 0; i < exceptions.length; i++) raw[i] = degrees[exceptions[i]]
  putU8(writer, decimals)
  putDeltaColumn(writer, scaled)
  putU32(writer, exceptions.length)
  putDeltaColumn(writer, Uint32Array.from(exceptions))
  putRecordPlanes(writer, new Uint8Array(raw.buffer), 8)
}

/** Positions whose value differs after scaling and back, including minus zero. */
function inexact(degrees: Float64Array, count: number, scale: number): number[] {
  const places: number[] = []
  for (let i = 0; i < count; i++) {
    const value = degrees[i]
    const again = (Math.round(value * scale) | 0) / scale
    if (!Object.is(again, value)) places.push(i)
  }
  return places
}

function takeDegrees(reader: FieldReader, count: number): Float64Array {
  const decimals = takeU8(reader)
  if (decimals !== 6 && decimals !== 7) refuse(reader, `degrees with ${decimals} decimals`)
  const scale = 10 ** decimals
  const scaled = takeDeltaColumn(reader, count)
  const degrees = new Float64Array(count)
  for (let i = 0; i < count; i++) degrees[i] = (scaled[i] | 0) / scale
  const exceptions = takeCount(reader, 9)
  const places = below(reader, takeDeltaColumn(reader, exceptions), count, 'property')
  const raw = new Float64Array(exceptions)
  takeRecordPlanes(reader, exceptions, 8, new Uint8Array(raw.buffer))
  for (let i = 0; i < exceptions; i++) degrees[places[i]] = raw[i]
  return degrees
}

// Tables: lists of days · which of them, segment, room type and number of rows of each table · all rows

export function encodeTables(tables: readonly TableShape[]): Uint8Array {
  const writer = createFieldWriter()
  const columns = {
    dayList: new Uint32Array(tables.length),
    segment: new Uint32Array(tables.length),
    roomType: new Uint32Array(tables.length),
    rowCount: new Uint32Array(tables.length),
  }
  // Most tables have the same days: each list is stored once, in order of first use.
  const dayLists: Uint32Array[] = []
  const numberOf = new Map<string, number>()
  let last: { days: Uint32Array; number: number } | undefined
  let rowTotal = 0
  tables.forEach((table, i) => {
    const { days } = table
    if (last === undefined || last.days !== days) {
      const key = days.join()
      const number = numberOf.get(key) ?? dayLists.push(days) - 1
      numberOf.set(key, number)
      last = { days, number }
    }
    columns.dayList[i] = last.number
    columns.segment[i] = table.segment
    columns.roomType[i] = table.roomType
    columns.rowCount[i] = table.rows.length
    rowTotal += table.rows.length
  })
  putU32(writer, dayLists.length)
  for (const days of dayLists) {
    putU32(writer, days.length)
    putDeltaColumn(writer, days)
  }
  putU32(writer, tables.length)
  putDeltaColumn(writer, columns.dayList)
  putDeltaColumn(writer, columns.segment)
  putDeltaColumn(writer, columns.roomType)
  putColumn(writer, columns.rowCount)
  putU32(writer, rowTotal)
  putColumn(writer, rowSteps(tables, rowTotal))
  return written(writer)
}

/** 0 for a dead row, else 1 + zigzag of the step from the last living row's property. */
function rowSteps(tables: readonly TableShape[], rowTotal: number): Uint32Array {
  const steps = new Uint32Array(rowTotal)
  let at = 0
  let before = 0
  for (const { rows } of tables) {
    for (let row = 0; row < rows.length; row++) {
      const property = rows[row]
      if (property !== DEAD_ROW) {
        const step = property - before
        steps[at] = 1 + ((step << 1) ^ (step >> 31))
        before = property
      }
      at++
    }
  }
  return steps
}

export function decodeTables(bytes: Uint8Array, file: string, names: Names, properties: PropertyColumns): TableShape[] {
  const reader = createFieldReader(bytes, `${file} (tables)`)
  const dayLists: Uint32Array[] = new Array(takeCount(reader, 5))
  for (let i = 0; i < dayLists.length; i++) dayLists[i] = takeDays(reader)
  const count = takeCount(reader, 4)
  const dayList = below(reader, takeDeltaColumn(reader, count), dayLists.length, 'list of days')
  const segment = below(reader, takeDeltaColumn(reader, count), names.segments.length, 'segment')
  const roomType = below(reader, takeDeltaColumn(reader, count), names.roomTypes.length, 'room type')
  const rowCount = takeColumn(reader, count)
  const rowTotal = takeCount(reader, 1)
  const rows = takeRows(reader, rowTotal, properties.count)
  expectEnd(reader)
  // The last table in which a property occurred, plus one: no table may have it twice.
  const metIn = new Uint32Array(properties.count)
  const tables: TableShape[] = new Array(count)
  let start = 0
  for (let table = 0; table < count; table++) {
    const of = segment[table]
    if (table > 0) {
      const step = of - segment[table - 1] || roomType[table] - roomType[table - 1]
      if (step <= 0) refuse(reader, 'tables are not in order')
    }
    const end = start + rowCount[table]
    if (end > rowTotal) refuse(reader, 'tables have more rows than there are')
    for (let row = start; row < end; row++) {
      const property = rows[row]
      if (property === DEAD_ROW) continue
      if (properties.segment[property] !== of) refuse(reader, `property ${property} is in a table of another segment`)
      if (metIn[property] === table + 1) refuse(reader, `property ${property} has two rows in one table`)
      metIn[property] = table + 1
    }
    tables[table] = {
      segment: of,
      roomType: roomType[table],
      rows: rows.subarray(start, end),
      days: dayLists[dayList[table]] as Uint32Array,
    }
    start = end
  }
  if (start !== rowTotal) refuse(reader, 'tables have fewer rows than there are')
  return tables
}

function takeDays(reader: FieldReader): Uint32Array {
  const count = takeCount(reader, 1)
  if (count > NIGHTS_MAX) refuse(reader, `a table has ${count} nights`)
  const deltas = takeDeltaColumn(reader, count)
  const days = sharedU32(count)
  days.set(deltas)
  for (let i = 1; i < count; i++) {
    if (days[i] <= days[i - 1]) refuse(reader, 'days are not in order')
  }
  return days
}

function takeRows(reader: FieldReader, rowTotal: number, propertyCount: number): Uint32Array {
  const steps = takeColumn(reader, rowTotal)
  const rows = sharedU32(rowTotal)
  let before = 0
  for (let row = 0; row < rowTotal; row++) {
    const code = steps[row]
    if (code === 0) {
      rows[row] = DEAD_ROW
      continue
    }
    before += ((code - 1) >>> 1) ^ -((code - 1) & 1)
    if (before < 0 || before >= propertyCount) refuse(reader, `a row of property ${before} of ${propertyCount}`)
    rows[row] = before
  }
  return rows
}

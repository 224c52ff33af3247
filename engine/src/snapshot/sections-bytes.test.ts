/** Properties and tables field by field: the bytes that are written, and which values are refused with their reason. */

import { describe, expect, test } from 'vitest'
import {
  createFieldWriter,
  type FieldWriter,
  putBytes,
  putColumn,
  putDeltaColumn,
  putRecordPlanes,
  putTexts,
  putU8,
  putU32,
  written,
} from './columns.ts'
import { DEAD_ROW, type Names, type PropertyColumns, type TableShape } from './schema.ts'
import { decodeProperties, decodeTables, encodeProperties, encodeTables } from './sections.ts'
import { NIGHTS_MAX } from './words.ts'

const u32 = (...values: number[]) => Uint32Array.of(...values)
const NAMES: Names = {
  segments: ['s', 't'],
  areas: ['a'],
  types: ['hotel', 'villa'],
  categories: ['c', 'd', 'e'],
  roomTypes: ['double', 'suite'],
  amenities: ['bar', 'pool', 'spa'],
}
const PROPERTIES: PropertyColumns = {
  count: 3,
  ids: Uint8Array.from({ length: 48 }, (_, i) => 200 - i),
  segment: u32(0, 0, 1),
  area: u32(0, 0, 0),
  type: u32(1, 0, 1),
  category: u32(2, 0, 1),
  stars: Uint8Array.of(5, 1, 3),
  latitude: Float64Array.of(47.25, -90, 0.000001),
  longitude: Float64Array.of(-180, 180, 8.5),
  amenityStart: u32(0, 2, 2, 3),
  amenities: u32(0, 2, 1),
  roomStart: u32(0, 1, 3, 3),
  rooms: u32(1, 0, 1),
}

/** The parts of a property section that a test changes. */
type Raw = {
  latitude: (writer: FieldWriter) => void
  amenityLengths: Uint32Array
  amenityTotal: number
  end: Uint8Array
}

const putDegrees = (writer: FieldWriter, decimals: number, scaled: Uint32Array, places: number[], raw: number[]) => {
  putU8(writer, decimals)
  putDeltaColumn(writer, scaled)
  putU32(writer, places.length)
  putDeltaColumn(writer, u32(...places))
  putRecordPlanes(writer, new Uint8Array(Float64Array.of(...raw).buffer), 8)
}

function propertyBytes(changes: Partial<Raw> = {}): Uint8Array {
  const writer = createFieldWriter()
  const { ids, segment, area, type, category, stars, amenities, rooms } = PROPERTIES
  for (const list of Object.values(NAMES)) putTexts(writer, list)
  putU32(writer, 3)
  putRecordPlanes(writer, ids, 16)
  putDeltaColumn(writer, segment)
  putColumn(writer, area)
  putDeltaColumn(writer, type)
  putDeltaColumn(writer, category)
  putBytes(writer, stars)
  if (changes.latitude) changes.latitude(writer)
  else putDegrees(writer, 6, u32(47_250_000, -90_000_000, 1), [], [])
  putDegrees(writer, 6, u32(-180_000_000, 180_000_000, 8_500_000), [], [])
  putColumn(writer, changes.amenityLengths ?? u32(2, 0, 1))
  putU32(writer, changes.amenityTotal ?? 3)
  putColumn(writer, amenities)
  putColumn(writer, u32(1, 2, 0))
  putU32(writer, 3)
  putColumn(writer, rooms)
  putBytes(writer, changes.end ?? new Uint8Array(0))
  return written(writer)
}

describe('properties', () => {
  test('fields are written in a fixed order, and read back', () => {
    expect(encodeProperties(NAMES, PROPERTIES)).toEqual(propertyBytes())
    expect(decodeProperties(propertyBytes(), 'f')).toEqual({ names: NAMES, properties: PROPERTIES })
  })

  test('only the counted properties of longer columns are written', () => {
    const longer = <T extends Uint32Array | Uint8Array | Float64Array>(column: T): T => {
      const copy = new (column.constructor as new (length: number) => T)(column.length + 5)
      copy.set(column as never)
      return copy.fill(9, column.length) as T
    }
    const columns = Object.entries(PROPERTIES).map(([name, value]) => [
      name,
      typeof value === 'number' ? value : longer(value),
    ])

    expect(encodeProperties(NAMES, Object.fromEntries(columns) as PropertyColumns)).toEqual(propertyBytes())
  })

  test('a state without properties and names is written and read', () => {
    const none = { segments: [], areas: [], types: [], categories: [], roomTypes: [], amenities: [] }
    const empty: PropertyColumns = {
      ...{ count: 0, ids: new Uint8Array(0), stars: new Uint8Array(0) },
      ...{ segment: u32(), area: u32(), type: u32(), category: u32() },
      ...{ latitude: new Float64Array(0), longitude: new Float64Array(0) },
      ...{ amenityStart: u32(0), amenities: u32(), roomStart: u32(0), rooms: u32() },
    }

    expect(decodeProperties(encodeProperties(none, empty), 'f')).toEqual({ names: none, properties: empty })
  })

  test.each<[string, Partial<PropertyColumns>, string]>([
    ['segment', { segment: u32(0, 0, 2) }, 'segment 2 of 2'],
    ['area', { area: u32(0, 1, 0) }, 'area 1 of 1'],
    ['type', { type: u32(2, 0, 0) }, 'type 2 of 2'],
    ['category', { category: u32(0, 0, 3) }, 'category 3 of 3'],
    ['amenity', { amenities: u32(0, 3, 1) }, 'amenity 3 of 3'],
    ['room type', { rooms: u32(0, 0, 2) }, 'room type 2 of 2'],
    ['order of segments', { segment: u32(0, 1, 0) }, 'segments are not in order'],
    ['order of the first segments', { segment: u32(1, 0, 1) }, 'segments are not in order'],
  ])('an invalid %s is damage', (_, changes, reason) => {
    expect(() => decodeProperties(encodeProperties(NAMES, { ...PROPERTIES, ...changes }), 'f')).toThrow(reason)
  })

  test.each<[string, string[]]>([
    ['repeated', ['a', 'b', 'b']],
    ['repeated at the beginning', ['a', 'a', 'b']],
    ['out of order', ['a', 'c', 'b']],
    ['ordered by letters, not by bytes', ['a', 'B', 'c']],
  ])('names that are %s are damage', (_, types) => {
    expect(() => decodeProperties(encodeProperties({ ...NAMES, types }, PROPERTIES), 'f')).toThrow(
      'names are not in order',
    )
  })

  test.each<[string, Partial<Raw>, string]>([
    ['five decimals', { latitude: (to) => putDegrees(to, 5, u32(0, 0, 0), [], []) }, 'degrees with 5 decimals'],
    ['eight decimals', { latitude: (to) => putDegrees(to, 8, u32(0, 0, 0), [], []) }, 'degrees with 8 decimals'],
    ['an exception of no property', { latitude: (to) => putDegrees(to, 6, u32(0, 0, 0), [3], [1]) }, 'property 3 of 3'],
    ['longer lists than entries', { amenityTotal: 2 }, 'the lists of amenity have more than 2 entries'],
    ['shorter lists than entries', { amenityLengths: u32(1, 0, 1) }, 'the lists of amenity have fewer than 3 entries'],
    ['more entries than bytes', { amenityTotal: 20 }, 'a count of 20 does not fit the 16 bytes'],
    ['a byte more', { end: Uint8Array.of(0) }, '1 bytes are left over'],
  ])('with %s it is damage', (_, changes, reason) => {
    expect(() => decodeProperties(propertyBytes(changes), 'f')).toThrow(
      expect.objectContaining({ code: 'corrupt_data', message: expect.stringContaining(reason) }),
    )
  })

  test('exceptions of positions replace the scaled values', () => {
    const latitude = (to: FieldWriter) => putDegrees(to, 7, u32(12_345_678, 1, 3), [0, 2], [1e-300, -0])

    const { properties } = decodeProperties(propertyBytes({ latitude }), 'f')

    expect([...properties.latitude].map((value) => Object.is(value, -0) || value)).toEqual([1e-300, 1e-7, true])
  })

  /** Decimals, scaled values and exceptions of positions. */
  test.each<[string, number[], number, number[], number[]]>([
    ['six decimals', [1.234567, -1, 2], 6, [1_234_567, -1_000_000, 2_000_000], []],
    ['seven decimals', [1.2345678, 0.5, 2], 7, [12_345_678, 5_000_000, 20_000_000], []],
    ['as many exceptions with six as with seven', [1 / 3, 0.5, 2], 6, [0, 500_000, 2_000_000], [0]],
    ['fewer with seven', [1.2345678, 1 / 3, 2], 7, [12_345_678, 12_345_678, 20_000_000], [1]],
    ['minus zero', [1, -0, 2], 6, [1_000_000, 1_000_000, 2_000_000], [1]],
    ['more degrees than fit', [1, 5000, 2], 6, [1_000_000, 1_000_000, 2_000_000], [1]],
  ])('positions with %s', (_, degrees, decimals, scaled, places) => {
    const latitude = (to: FieldWriter) =>
      putDegrees(
        to,
        decimals,
        u32(...scaled),
        places,
        places.map((place) => degrees[place] as number),
      )

    const encoded = encodeProperties(NAMES, { ...PROPERTIES, latitude: Float64Array.of(...degrees) })

    expect(encoded).toEqual(propertyBytes({ latitude }))
  })
})

const DAYS = u32(20_000, 20_001, 20_005)
const TABLES: TableShape[] = [
  { segment: 0, roomType: 0, rows: u32(1, DEAD_ROW, 0), days: DAYS },
  { segment: 0, roomType: 1, rows: u32(0), days: u32(20_001) },
  { segment: 1, roomType: 0, rows: u32(2), days: Uint32Array.from(DAYS) },
]

type RawTables = { dayList: Uint32Array; rowCount: Uint32Array; rowTotal: number; steps: Uint32Array; end: Uint8Array }

function tableBytes(changes: Partial<RawTables> = {}): Uint8Array {
  const writer = createFieldWriter()
  putU32(writer, 2)
  for (const days of [DAYS, u32(20_001)]) {
    putU32(writer, days.length)
    putDeltaColumn(writer, days)
  }
  putU32(writer, 3)
  putDeltaColumn(writer, changes.dayList ?? u32(0, 1, 0))
  putDeltaColumn(writer, u32(0, 0, 1))
  putDeltaColumn(writer, u32(0, 1, 0))
  putColumn(writer, changes.rowCount ?? u32(3, 1, 1))
  // 0 for a dead row, else one more than the zigzag of the step from the row before.
  const steps = changes.steps ?? u32(3, 0, 2, 1, 5)
  putU32(writer, changes.rowTotal ?? steps.length)
  putColumn(writer, steps)
  putBytes(writer, changes.end ?? new Uint8Array(0))
  return written(writer)
}

const decode = (bytes: Uint8Array) => decodeTables(bytes, 'f', NAMES, PROPERTIES)

describe('tables', () => {
  test('lists of days are written once, rows as steps', () => {
    expect(encodeTables(TABLES)).toEqual(tableBytes())
    expect(decode(tableBytes())).toEqual(TABLES)
  })

  test('no tables are written and read', () => {
    expect(decode(encodeTables([]))).toEqual([])
  })

  test.each<[string, Partial<RawTables>, string]>([
    ['a list of days that is not there', { dayList: u32(0, 2, 0) }, 'list of days 2 of 2'],
    ['more rows in tables', { rowCount: u32(3, 1, 2) }, 'tables have more rows than there are'],
    ['fewer rows in tables', { rowCount: u32(3, 1, 0) }, 'tables have fewer rows than there are'],
    ['a row before the first property', { steps: u32(3, 0, 4, 1, 5) }, 'a row of property -1 of 3'],
    ['a row behind the last property', { steps: u32(3, 0, 2, 1, 7) }, 'a row of property 3 of 3'],
    ['a row of another segment', { steps: u32(3, 0, 2, 1, 3) }, 'property 1 is in a table of another segment'],
    ['a property twice', { steps: u32(3, 0, 1, 2, 5) }, 'property 1 has two rows in one table'],
    ['a byte more', { end: Uint8Array.of(0) }, '1 bytes are left over'],
    ['more rows than bytes', { rowTotal: 7 }, 'a count of 7 does not fit the 6 bytes'],
  ])('%s: damage', (_, changes, reason) => {
    expect(() => decode(tableBytes(changes))).toThrow(
      expect.objectContaining({ code: 'corrupt_data', message: expect.stringContaining(reason) }),
    )
  })

  test.each<[string, Partial<TableShape>[], boolean]>([
    ['the room type decides within a segment', [{}, { roomType: 1 }], true],
    ['the segment comes first', [{ roomType: 1 }, { segment: 1, rows: u32(2) }], true],
    ['equal segments and room types', [{}, {}], false],
    ['room types backwards', [{ roomType: 1 }, {}], false],
    ['segments backwards', [{ segment: 1, rows: u32(2) }, { roomType: 1 }], false],
  ])('the order of tables: %s', (_, changes, isInOrder) => {
    const tables = changes.map((change) => ({ segment: 0, roomType: 0, rows: u32(0), days: DAYS, ...change }))

    if (isInOrder) expect(decode(encodeTables(tables))).toEqual(tables)
    else expect(() => decode(encodeTables(tables))).toThrow('tables are not in order')
  })

  test.each([
    [{ segment: 2 }, 'segment 2 of 2'],
    [{ roomType: 2 }, 'room type 2 of 2'],
    [{ days: u32(5, 5) }, 'days are not in order'],
    [{ days: u32(5, 6, 4) }, 'days are not in order'],
    [{ days: Uint32Array.from({ length: NIGHTS_MAX + 1 }, (_, n) => n) }, 'a table has 1025 nights'],
  ])('a table with %j is damage', (change, reason) => {
    expect(() => decode(encodeTables([{ ...(TABLES[1] as TableShape), ...change }]))).toThrow(reason)
  })

  test('a table has at most 1024 nights, and may have none', () => {
    const tables = [NIGHTS_MAX, 0].map((nights, roomType) => ({
      ...{ segment: 0, roomType, rows: u32(0) },
      days: Uint32Array.from({ length: nights }, (_, n) => n),
    }))

    expect(decode(encodeTables(tables))).toEqual(tables)
  })
})

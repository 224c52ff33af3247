/** The parameter block that a search gives to a kernel: in a table without bitmaps, and in one that has them. */
import { createCodecList, formatDay, LIMITS, packDay, parseDay, yearOf } from '@vacancy/shared'
import { encodeRequest, scanRequest } from '@vacancy/shared/wire'
import { beforeAll, describe, expect, test } from 'vitest'
import { bitmapAddress, findAttribute } from '../store/bitmaps.ts'
import { KIND, writeU8, writeU32 } from '../store/command.ts'
import { findName, NAMES, type NameKind } from '../store/dictionary.ts'
import { ATTRIBUTE, ATTRIBUTE_SLOT, type Attribute, PROPERTY, SEGMENT, TABLE } from '../store/layout.ts'
import { planeOf } from '../store/planes.ts'
import { segmentOf, tableOf } from '../store/segment.ts'
import { scratchOf } from '../store/store.ts'
import { field } from '../store/table-fields.ts'
import {
  applyOwn,
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  SAMPLE_CODECS,
} from '../testing/node-in-memory.ts'
import {
  AMENITIES_AT,
  AVAILABLE_AT,
  BITMAPS_AT,
  COLUMN_BYTES,
  COLUMNS_AT,
  DATES_AT,
  PARAMETER,
  PLANES_AT,
  POSITION_AT,
} from './parameters.ts'
import { checkSearch, createSearch, planSearch, tableOfSearch } from './plan.ts'
import { createValues, setToday } from './values.ts'

const FRAME_HEADER = 9
const TODAY = parseDay('2026-11-20') as number
const DROPPED = TODAY
const FIRST = TODAY + 1
const dates = (count: number, from = FIRST) => Array.from({ length: count }, (_, n) => formatDay(from + n))
const encoder = new TextEncoder()

/** Property n has area n / 3 and type n / 64, and only the first one has rooms; the first 64 areas have bitmaps in a large table. */
function build(properties: number): NodeInMemory {
  const node = createNodeInMemory(TODAY, 64 << 20)
  for (let n = 0; n < properties; n++) {
    const propertyId = `p${n}`
    const own = { area: `a${Math.floor(n / 3)}`, propertyType: `t${Math.floor(n / 64)}`, stars: 1 + (n % 4) }
    const amenities = n % 2 === 0 ? ['pool', 'spa'] : ['pool']
    ask(node, 'SETPROP', { segment: 's', propertyId, category: 'c', ...own, amenities, latitude: 1, longitude: 2 })
    for (let night = -1; n === 0 && night < 6; night++) {
      const date = formatDay(FIRST + night)
      ask(node, 'SETROOMPKG', { propertyId, roomType: 'double', date, availability: 1, finalPrice: 1 })
    }
  }
  const other = { area: 'a0', propertyType: 't0', category: 'd', stars: 5, amenities: ['sauna'] }
  ask(node, 'SETPROP', { segment: 'other', propertyId: 'x', ...other, latitude: 1, longitude: 2 })
  ask(node, 'SETROOMPKG', { propertyId: 'x', roomType: 'double', date: dates(1)[0], availability: 1, finalPrice: 1 })
  ask(node, 'SETROOMPKG', { propertyId: 'x', roomType: 'suite', date: dates(1)[0], availability: 1, finalPrice: 1 })
  applyOwn(node, KIND.dropBefore, (writer) => {
    writeU32(writer, DROPPED + 1)
    writeU8(writer, 1)
  })
  return node
}

/** Plans a search; one with dates is of the room type 'double'. */
function plan(node: NodeInMemory, fields: LooseFields, table?: number) {
  const { memory } = node.store
  const values = createValues(createCodecList(SAMPLE_CODECS))
  setToday(values, TODAY)
  const forStay = fields['dates'] !== undefined
  const all = { segment: 's', ...(forStay ? { roomType: 'double' } : {}), ...fields }
  const command = forStay ? 'SEARCHAVAIL' : 'SEARCHPROP'
  const request = encodeRequest({ command, correlationId: 1, fields: all as never }).subarray(FRAME_HEADER)
  expect(scanRequest(values.scan, request, 0, request.length)).toBe('')
  const search = createSearch()
  checkSearch(search, values, { datesMax: 14, queryLimit: 1000 }, forStay)
  expect(values.fault).toBe('')
  const parameters = scratchOf(memory, 0)
  // The block is reused: whatever an earlier search left must not matter.
  memory.u32.fill(0xffff_ffff, parameters >>> 2, (parameters + DATES_AT + 64) >>> 2)
  const found = table ?? tableOfSearch(memory, search, values)
  const matches = found !== 0 && planSearch(memory, parameters, search, values, found)
  const cell = (name: keyof typeof PARAMETER) => memory.u32[(parameters >>> 2) + PARAMETER[name]] as number
  const list = (at: number, count: number) =>
    Array.from({ length: count }, (_, n) => memory.u32[((parameters + at) >>> 2) + n] as number)
  // A search that cannot match leaves the block half written.
  const count = (name: 'bitmaps' | 'columns' | 'amenities') => (matches ? Math.min(99, cell(name)) : 0)
  return {
    ...{ table: found, matches, cell, list, parameters },
    rows: [cell('firstRow'), cell('endRow')],
    bitmaps: list(BITMAPS_AT, count('bitmaps')),
    columns: Array.from({ length: count('columns') }, (_, n) => list(COLUMNS_AT + n * COLUMN_BYTES, 3)),
    amenities: list(AMENITIES_AT, count('amenities')),
  }
}

function nameOf({ store: { memory } }: NodeInMemory, kind: NameKind, text: string): number {
  const bytes = encoder.encode(text)
  return findName(memory, kind, bytes, 0, bytes.length)
}

let small: NodeInMemory
let large: NodeInMemory
beforeAll(() => {
  small = build(4)
  large = build(300)
})

describe('the table of a search', () => {
  test('is that of its room type, or the properties of the segment', () => {
    const { memory } = small.store
    const segment = segmentOf(memory, nameOf(small, NAMES.segment, 's'))
    expect(plan(small, {}).table).toBe(field(memory, segment + SEGMENT.propertyTable))
    expect(plan(small, { dates: dates(1) }).table).toBe(
      tableOf(memory, segment, nameOf(small, NAMES.roomType, 'double')),
    )
  })

  test.each<[string, LooseFields]>([
    ['an unknown segment', { segment: 'nowhere' }],
    ['an unknown room type', { dates: dates(1), roomType: 'cave' }],
    ['a room type of another segment', { dates: dates(1), roomType: 'suite' }],
  ])('is missing for %s', (_, fields) => {
    expect(plan(small, fields).table).toBe(0)
  })
})

test('without filters, all rows are searched with the default bounds', () => {
  const { memory } = small.store
  const { matches, cell, rows, bitmaps, columns, amenities, table } = plan(small, { dates: dates(1) })
  expect([matches, rows, bitmaps, columns, amenities]).toEqual([true, [0, 1], [], [], []])
  expect([cell('rowProperties'), cell('rowIds')]).toEqual([
    field(memory, table + TABLE.rowProperties),
    field(memory, table + TABLE.rowIds),
  ])
  const names = ['nights', 'minAvailability', 'features', 'invertedMin', 'invertedMax', 'hasPosition'] as const
  expect(names.map(cell)).toEqual([1, 1, 0, 1, 0xffff_ffff, 0])
  expect(plan(small, {})).toMatchObject({ matches: true, rows: [0, 4], columns: [], amenities: [] })
  expect(plan(small, {}).cell('nights')).toBe(0)
})

test('bounds of a stay are written as the kernel compares them', () => {
  const bounds = { availability: 7, finalPrice: 500, minPrice: 20, rateFeatures: ['breakfast', 'half_board'] }
  const { cell } = plan(small, { dates: dates(1), ...bounds })
  expect(cell('minAvailability')).toBe(7)
  expect(cell('features')).toBe(0b10010 << 8)
  expect([cell('invertedMin'), cell('invertedMax')]).toEqual([2 ** 32 - 1 - 500, 2 ** 32 - 1 - 20])
})

describe('without bitmaps a filter is a column of the property', () => {
  test.each<[LooseFields, NameKind | undefined, string, number]>([
    [{ area: 'a1' }, NAMES.area, 'a1', PROPERTY.area],
    [{ propertyType: 't0' }, NAMES.type, 't0', PROPERTY.type],
    [{ category: 'c' }, NAMES.category, 'c', PROPERTY.category],
  ])('%o', (fields, kind, text, column) => {
    const name = nameOf(small, kind as NameKind, text)
    expect(plan(small, fields)).toMatchObject({ matches: true, columns: [[column, name, name]], bitmaps: [] })
  })

  test.each<[LooseFields, number[][]]>([
    [{ stars: 1 }, [[PROPERTY.stars, 1, 1]]],
    [{ stars: 5 }, [[PROPERTY.stars, 5, 5]]],
    [{ minStars: 1 }, []],
    [{ minStars: 2 }, [[PROPERTY.stars, 2, 5]]],
    [
      { stars: 4, minStars: 3 },
      [
        [PROPERTY.stars, 4, 4],
        [PROPERTY.stars, 3, 5],
      ],
    ],
  ])('%o', (fields, columns) => {
    expect(plan(small, fields)).toMatchObject({ matches: true, columns })
  })

  test('all of them together', () => {
    const all = { area: 'a0', propertyType: 't0', category: 'c', stars: 3, minStars: 2 }
    expect(plan(small, all).columns.map(([column]) => column)).toEqual([
      ...[PROPERTY.area, PROPERTY.type, PROPERTY.category, PROPERTY.stars, PROPERTY.stars],
    ])
  })

  test('amenities are a list of their own', () => {
    const names = ['spa', 'pool'].map((text) => nameOf(small, NAMES.amenity, text))
    expect(plan(small, { amenities: ['spa', 'pool'] })).toMatchObject({ matches: true, amenities: names, columns: [] })
  })

  test.each<LooseFields>([
    { area: 'nowhere' },
    { propertyType: 'igloo' },
    { category: 'none' },
    { amenities: ['moat'] },
    { amenities: ['pool', 'moat'] },
    // A name of another kind.
    { area: 't0' },
  ])('%o has no name, so nothing matches', (fields) => {
    expect(plan(small, fields).matches).toBe(false)
  })
})

describe('with bitmaps', () => {
  const slotOf = (table: number, attribute: Attribute, value: number) =>
    findAttribute(large.store.memory, table, attribute, value)
  const bitmapOf = (table: number, attribute: Attribute, value: number) => {
    const { memory } = large.store
    return bitmapAddress(memory, table, field(memory, slotOf(table, attribute, value) + ATTRIBUTE_SLOT.bitmap))
  }

  test('only live rows are searched', () => {
    const { matches, rows, bitmaps, table, columns } = plan(large, {})
    expect([matches, rows, columns]).toEqual([true, [0, 300], []])
    expect(bitmaps).toEqual([bitmapAddress(large.store.memory, table, 0)])
  })

  test.each<[LooseFields, Attribute, NameKind | undefined, string | number]>([
    [{ area: 'a5' }, ATTRIBUTE.area, NAMES.area, 'a5'],
    [{ propertyType: 't2' }, ATTRIBUTE.type, NAMES.type, 't2'],
    [{ category: 'c' }, ATTRIBUTE.category, NAMES.category, 'c'],
    [{ stars: 4 }, ATTRIBUTE.stars, undefined, 4],
    [{ amenities: ['spa'] }, ATTRIBUTE.amenity, NAMES.amenity, 'spa'],
  ])('%o adds the bitmap of its value, and narrows the rows to its range', (fields, attribute, kind, text) => {
    const { memory } = large.store
    const value = kind === undefined ? Number(text) : nameOf(large, kind, String(text))
    const { matches, bitmaps, columns, amenities, rows, table } = plan(large, fields)
    const slot = slotOf(table, attribute, value)
    expect(slot).not.toBe(0)
    expect([matches, columns, amenities]).toEqual([true, [], []])
    expect(bitmaps).toEqual([bitmapAddress(memory, table, 0), bitmapOf(table, attribute, value)])
    expect(rows).toEqual([field(memory, slot + ATTRIBUTE_SLOT.firstRow), field(memory, slot + ATTRIBUTE_SLOT.endRow)])
  })

  test('a range ends where the first of the values ends', () => {
    // Ranges end at multiples of 32. Rows 63 to 65 have area a21, and rows from 64 on type t1.
    expect(plan(large, { area: 'a21' }).rows).toEqual([32, 96])
    expect(plan(large, { area: 'a21', propertyType: 't0' })).toMatchObject({ matches: true, rows: [32, 64] })
    expect(plan(large, { area: 'a21', propertyType: 't1' })).toMatchObject({ matches: true, rows: [64, 96] })
    // Adjacent ranges have no row in common.
    expect(plan(large, { area: 'a15', propertyType: 't1' }).matches).toBe(false)
    expect(plan(large, { area: 'a22', propertyType: 't0' }).matches).toBe(false)
  })

  test('a value without one is a column only where values have overflowed the bitmaps', () => {
    const area = nameOf(large, NAMES.area, 'a99')
    expect(slotOf(plan(large, {}).table, ATTRIBUTE.area, area)).toBe(0)
    expect(plan(large, { area: 'a99' })).toMatchObject({
      ...{ matches: true, rows: [0, 300], columns: [[PROPERTY.area, area, area]] },
    })
    // Names of the other segment.
    expect(plan(large, { category: 'd' }).matches).toBe(false)
    expect(plan(large, { amenities: ['sauna'] }).matches).toBe(false)
    expect(plan(large, { stars: 5 }).matches).toBe(false)
  })

  test('least stars are a column', () => {
    expect(plan(large, { minStars: 3 })).toMatchObject({ matches: true, columns: [[PROPERTY.stars, 3, 5]] })
  })
})

describe('a search for one property', () => {
  test('has its row only', () => {
    ask(small, 'SETROOMPKG', {
      ...{ propertyId: 'p2', roomType: 'double', date: dates(1)[0], availability: 1, finalPrice: 1 },
    })
    expect(plan(small, { dates: dates(1), propertyId: 'p0' })).toMatchObject({ matches: true, rows: [0, 1] })
    expect(plan(small, { dates: dates(1), propertyId: 'p2' })).toMatchObject({ matches: true, rows: [1, 2] })
  })

  test.each([
    ['is unknown', 'unknown'],
    ['lacks the room type', 'p1'],
    ['is in another segment', 'x'],
  ])('finds nothing when the property %s', (_, propertyId) => {
    expect(plan(small, { dates: dates(1), propertyId }).matches).toBe(false)
  })
})

test('a position is a point of the unit sphere and a squared chord', () => {
  const { parameters, cell } = plan(small, { latitude: 30, longitude: 60, radiusMetres: 100_000 })
  const at = (parameters + POSITION_AT) / 8
  const [x, y, z, chord] = [...small.store.memory.f64.subarray(at, at + 4)] as [number, number, number, number]
  expect(cell('hasPosition')).toBe(1)
  expect(x).toBeCloseTo(0.4330127, 6)
  expect(y).toBeCloseTo(0.75, 6)
  expect(z).toBeCloseTo(0.5, 6)
  // The angle between two points with that chord is the radius.
  expect(2 * Math.asin(Math.sqrt(chord) / 2) * LIMITS.earthRadiusMetres).toBeCloseTo(100_000, 3)
})

describe('nights', () => {
  test('have the addresses of their words and of their bits of rooms left, and their packed dates', () => {
    const { memory } = small.store
    const { matches, list, parameters, table, cell } = plan(small, { dates: dates(3) })
    expect([matches, cell('nights')]).toEqual([true, 3])
    const planes = [0, 1, 2].map((n) => planeOf(memory, table, FIRST + n))
    expect(planes).not.toContain(0)
    const capacity = field(memory, table + TABLE.capacity)
    expect(list(PLANES_AT, 3)).toEqual(planes.map((plane) => plane + 16))
    expect(list(AVAILABLE_AT, 3)).toEqual(planes.map((plane) => plane + 16 + capacity * 8))
    const packed = [0, 1, 2].map((n) => memory.u16[((parameters + DATES_AT) >>> 1) + n])
    expect(packed).toEqual([0, 1, 2].map((n) => packDay(FIRST + n, yearOf(TODAY))))
  })

  test.each([
    ['four are tested by their words', 4, {}, 0],
    ['five are narrowed by rooms left first', 5, {}, 1],
    ['six are narrowed by rooms left first', 6, { availability: 2 }, 1],
    ['also for a single room', 5, { availability: 1 }, 1],
    ['not when sold-out nights count, too', 5, { availability: 0 }, 0],
  ])('%s', (_, nights, fields, narrow) => {
    expect(plan(small, { dates: dates(nights), ...fields }).cell('narrowByAvailable')).toBe(narrow)
  })

  test('that were dropped or never sold match nothing', () => {
    expect(plan(small, { dates: dates(6) }).matches).toBe(true)
    expect(plan(small, { dates: dates(7) }).matches).toBe(false)
    expect(planeOf(small.store.memory, plan(small, { dates: dates(1) }).table, DROPPED)).not.toBe(0)
    expect(plan(small, { dates: dates(1, DROPPED) }).matches).toBe(false)
  })
})

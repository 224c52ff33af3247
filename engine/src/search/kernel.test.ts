/** The fallback kernel over a table of drawn rows, compared with a filter over objects. */

import { createRandom, type Random } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import { PROPERTY } from '../store/layout.ts'
import type { Memory } from '../store/store.ts'
import { createTypescriptKernel } from './kernel.ts'
import {
  AMENITIES_AT,
  AVAILABLE_AT,
  BITMAPS_AT,
  COLUMN_BYTES,
  COLUMNS_AT,
  DATES_AT,
  hitBytes,
  LIST_AT,
  LIST_ROWS,
  PARAMETER,
  PLANES_AT,
  POSITION_AT,
} from './parameters.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

const PARAMETERS = 4096
const OUT = 65_536
const OUT_BYTES = 262_144
const ROW_PROPERTIES = OUT + OUT_BYTES
const ROW_IDS = ROW_PROPERTIES + 16_384
const RECORDS = ROW_IDS + 65_536
const AMENITY_LISTS = RECORDS + 524_288
const BITMAPS = AMENITY_LISTS + 131_072
const PLANES = BITMAPS + 65_536
const PLANE_BYTES = 65_536
const MEMORY_BYTES = PLANES + 6 * PLANE_BYTES

type Night = { readonly availability: number; readonly features: number; readonly price: number }
type Row = {
  /** Absent: the property was removed. */
  readonly isLive: boolean
  readonly stars: number
  readonly area: number
  readonly amenities: readonly number[]
  readonly position: readonly [number, number, number]
  readonly nights: readonly Night[]
}

type Search = {
  readonly firstRow: number
  readonly endRow: number
  readonly limit: number
  readonly outBytes: number
  readonly fieldId: number
  /** Rows of each bitmap; the first one must hold live rows only. */
  readonly bitmaps: readonly ((row: Row) => boolean)[]
  readonly columns: readonly { readonly column: number; readonly least: number; readonly greatest: number }[]
  readonly amenities: readonly number[]
  readonly near?: { readonly point: readonly [number, number, number]; readonly chordMax: number }
  /** Numbers of the nights. */
  readonly nights: readonly number[]
  readonly minAvailability: number
  readonly features: number
  readonly minPrice: number
  readonly maxPrice: number
  readonly narrowByAvailable: boolean
}

const ALL: Search = {
  ...{ firstRow: 0, endRow: 0, limit: 1e6, outBytes: OUT_BYTES, fieldId: 1, bitmaps: [], columns: [], amenities: [] },
  ...{ nights: [], minAvailability: 0, features: 0, minPrice: 0, maxPrice: 0xffffffff, narrowByAvailable: false },
}

function createMemory(): Memory {
  const wasm = new WebAssembly.Memory({ initial: MEMORY_BYTES / 65_536, maximum: MEMORY_BYTES / 65_536, shared: true })
  const buffer = wasm.buffer as unknown as SharedArrayBuffer
  return {
    ...{ wasm, buffer, u8: new Uint8Array(buffer), u16: new Uint16Array(buffer), i32: new Int32Array(buffer) },
    ...{ u32: new Uint32Array(buffer), f64: new Float64Array(buffer) },
    ...{ pageEpochs: 0, pageSpares: 0, fence: new Int32Array(1) },
  }
}

function drawRow(random: Random, nights: number): Row {
  const cube = () => random.below(201) / 100 - 1
  return {
    isLive: random.below(10) > 0,
    stars: 1 + random.below(5),
    area: random.below(3),
    amenities: [3, 5, 8, 13].filter(() => random.below(2) === 0),
    position: [cube(), cube(), cube()],
    nights: Array.from({ length: nights }, () => ({
      availability: random.below(4) === 0 ? 0 : random.below(256),
      features: random.below(16),
      price: random.below(6) === 0 ? 0xfffffffe - random.below(2) : random.below(300),
    })),
  }
}

const idByte = (row: number, i: number) => (row * 31 + i * 7 + (row >>> 8)) & 0xff

function store({ u8, u32, f64 }: Memory, rows: readonly Row[]): void {
  let list = AMENITY_LISTS
  for (const [i, row] of rows.entries()) {
    const record = RECORDS + i * PROPERTY.bytes
    for (let byte = 0; byte < 16; byte++) u8[ROW_IDS + i * 16 + byte] = idByte(i, byte)
    for (const [night, { availability, features, price }] of row.nights.entries()) {
      const cell = (PLANES + night * PLANE_BYTES + i * 8) >>> 2
      u32[cell] = availability | (features << 8)
      u32[cell + 1] = ~price
    }
    u32[(ROW_PROPERTIES >>> 2) + i] = row.isLive ? record : 0
    u32[(record + PROPERTY.stars) >>> 2] = row.stars
    u32[(record + PROPERTY.area) >>> 2] = row.area
    f64.set(row.position, (record + PROPERTY.x) / 8)
    u32[(record + PROPERTY.amenities) >>> 2] = row.amenities.length === 0 ? 0 : list
    u32.set([row.amenities.length, ...row.amenities], list >>> 2)
    list += 4 + row.amenities.length * 4
  }
}

const setBits = ({ u32 }: Memory, address: number, rows: readonly Row[], isSet: (row: Row) => boolean) => {
  u32.fill(0, address >>> 2, (address >>> 2) + 128)
  for (const [i, row] of rows.entries()) {
    if (isSet(row)) u32[(address >>> 2) + (i >>> 5)] = u32[(address >>> 2) + (i >>> 5)] | (1 << (i & 31))
  }
}

function begin(memory: Memory, rows: readonly Row[], search: Search): void {
  const { u16, u32, f64 } = memory
  const p = PARAMETERS >>> 2
  u32.fill(0xdeadbeef, p, (PARAMETERS + LIST_AT) >>> 2)
  const cells: { readonly [name in keyof typeof PARAMETER]?: number } = {
    ...{ firstRow: search.firstRow, endRow: search.endRow, rowProperties: ROW_PROPERTIES, rowIds: ROW_IDS },
    ...{ nights: search.nights.length, limit: search.limit, minAvailability: search.minAvailability },
    ...{ features: search.features << 8, invertedMin: ~search.maxPrice, invertedMax: ~search.minPrice },
    ...{ bitmaps: search.bitmaps.length, columns: search.columns.length, amenities: search.amenities.length },
    ...{ hasPosition: search.near ? 1 : 0, out: OUT, outEnd: OUT + search.outBytes, fieldId: search.fieldId },
    narrowByAvailable: search.narrowByAvailable ? 1 : 0,
  }
  for (const [name, value] of Object.entries(cells)) u32[p + PARAMETER[name as keyof typeof PARAMETER]] = value
  if (search.near) f64.set([...search.near.point, search.near.chordMax], (PARAMETERS + POSITION_AT) / 8)
  for (const [i, isSet] of search.bitmaps.entries()) {
    u32[((PARAMETERS + BITMAPS_AT) >>> 2) + i] = BITMAPS + i * 512
    setBits(memory, BITMAPS + i * 512, rows, isSet)
  }
  for (const [i, { column, least, greatest }] of search.columns.entries()) {
    u32.set([column, least, greatest], (PARAMETERS + COLUMNS_AT + i * COLUMN_BYTES) >>> 2)
  }
  u32.set(search.amenities, (PARAMETERS + AMENITIES_AT) >>> 2)
  for (const [i, night] of search.nights.entries()) {
    const available = BITMAPS + 32_768 + i * 512
    u32[((PARAMETERS + PLANES_AT) >>> 2) + i] = PLANES + night * PLANE_BYTES
    u32[((PARAMETERS + AVAILABLE_AT) >>> 2) + i] = available
    u16[((PARAMETERS + DATES_AT) >>> 1) + i] = 0x1234 + night
    setBits(memory, available, rows, (row) => (row.nights[night]?.availability ?? 0) > 0)
  }
}

/** Rows that the search has to find, without regard to limit and output. */
function matching(rows: readonly Row[], search: Search): number[] {
  const columns: { readonly [column: number]: (row: Row) => number } = {
    [PROPERTY.stars]: ({ stars }) => stars,
    [PROPERTY.area]: ({ area }) => area,
  }
  const isNear = ({ position: [x, y, z] }: Row) => {
    if (!search.near) return true
    const [px, py, pz] = search.near.point
    return (x - px) ** 2 + (y - py) ** 2 + (z - pz) ** 2 <= search.near.chordMax
  }
  return [...rows.keys()].slice(search.firstRow, search.endRow).filter((i) => {
    const row = rows[i] as Row
    const nights = search.nights.map((night) => row.nights[night] as Night)
    return (
      row.isLive &&
      search.bitmaps.every((holds) => holds(row)) &&
      search.columns.every(({ column, least, greatest }) => {
        const value = (columns[column] as (row: Row) => number)(row)
        return value >= least && value <= greatest
      }) &&
      search.amenities.every((amenity) => row.amenities.includes(amenity)) &&
      isNear(row) &&
      nights.every(
        ({ availability, features, price }) =>
          availability >= search.minAvailability &&
          (features & search.features) === search.features &&
          price >= search.minPrice &&
          price <= search.maxPrice &&
          (!search.narrowByAvailable || availability > 0),
      )
    )
  })
}

/** The reply fields of some rows, as docs/design/protocol.md describes them. */
function encoded(rows: readonly Row[], found: readonly number[], { nights, fieldId }: Search): Buffer {
  const parts: Buffer[] = []
  const field = (id: number, type: number, content: Buffer) => {
    const header = Buffer.alloc(7)
    header.writeUInt16LE(id & 0xffff)
    header[2] = type
    header.writeUInt32LE(content.length, 3)
    parts.push(header, content)
  }
  let id = fieldId
  for (const i of found) {
    field(id++, 1, Buffer.from(Array.from({ length: 16 }, (_, byte) => idByte(i, byte))))
    if (nights.length === 0) continue
    const days = nights.map((night) => {
      const { availability, price, features } = (rows[i] as Row).nights[night] as Night
      const day = Buffer.alloc(11)
      day.writeUInt16LE(0x1234 + night)
      day[2] = availability
      day.writeUInt32LE(price, 3)
      day.writeUInt32LE(features, 7)
      return day
    })
    field(id++, 8, Buffer.concat([Buffer.of(nights.length, 0), ...days]))
  }
  return Buffer.concat(parts)
}

type Found = { readonly hits: number; readonly nextRow: number; readonly examined: number; readonly bytes: Buffer }

function run(memory: Memory, rows: readonly Row[], search: Search): Found {
  begin(memory, rows, search)
  memory.u8.fill(0xaa, OUT, OUT + OUT_BYTES)
  createTypescriptKernel(memory)(PARAMETERS)
  const result = (cell: number) => memory.u32[(PARAMETERS >>> 2) + cell]
  const bytes = Buffer.from(memory.u8.slice(OUT, result(PARAMETER.written)))
  if (search.nights.length === 0) expect(memory.u8[OUT + bytes.length], 'the byte behind the hits').toBe(0xaa)
  expect(result(PARAMETER.fieldId)).toBe(search.fieldId + result(PARAMETER.hits) * (search.nights.length === 0 ? 1 : 2))
  return {
    hits: result(PARAMETER.hits),
    nextRow: result(PARAMETER.nextRow),
    examined: result(PARAMETER.examined),
    bytes,
  }
}

function tableOf(count: number, seed: number): { memory: Memory; rows: Row[] } {
  const random = createRandom(seed)
  const memory = createMemory()
  const rows = Array.from({ length: count }, () => drawRow(random, 5))
  store(memory, rows)
  return { memory, rows }
}

const live = (row: Row) => row.isLive

function drawSearch(random: Random, count: number): Search {
  const maybe = () => random.below(3) === 0
  const firstRow = random.below(count)
  const least = 1 + random.below(3)
  const price = random.below(200)
  return {
    ...ALL,
    firstRow,
    endRow: firstRow + random.below(count - firstRow + 1),
    fieldId: random.below(60_000),
    bitmaps: maybe() ? [live, ({ area }) => area !== 1] : maybe() ? [live] : [],
    columns: [
      ...(maybe() ? [{ column: PROPERTY.stars, least, greatest: least + random.below(3) }] : []),
      ...(maybe() ? [{ column: PROPERTY.area, least: 1, greatest: 1 }] : []),
    ],
    amenities: [3, 8, 13].filter(() => random.below(5) === 0),
    ...(maybe() ? { near: { point: [0.1, -0.2, 0.3], chordMax: 1 + random.below(2) } as const } : {}),
    nights: [4, 0, 2].slice(0, random.below(4)),
    minAvailability: maybe() ? 0 : random.below(90),
    features: maybe() ? random.below(16) & random.below(16) : 0,
    minPrice: maybe() ? price : 0,
    maxPrice: maybe() ? price + random.below(200) : 0xffffffff,
    narrowByAvailable: maybe(),
  }
}

test('drawn searches over drawn tables find the rows of the model, in order and in wire format', () => {
  for (let round = 0; round < 5; round++) {
    const count = [1, 31, 64, 700, 1100][round] as number
    const { memory, rows } = tableOf(count, SEED * 100 + round)
    const random = createRandom(SEED * 100 + round)
    for (let n = 0; n < 20; n++) {
      const search = drawSearch(random, count)
      const expected = matching(rows, search)

      const { hits, nextRow, bytes } = run(memory, rows, search)

      const where = `VACANCY_SEED=${SEED}, table ${round}, search ${n}`
      expect(hits, where).toBe(expected.length)
      expect(bytes.equals(encoded(rows, expected, search)), where).toBe(true)
      expect(nextRow, where).toBe(search.endRow)
    }
  }
})

describe('a table of 1,100 rows', () => {
  const { memory, rows } = tableOf(1100, SEED)
  const everything = { ...ALL, endRow: 1100 }

  test.each([0, 1, 2, 10, 600, 100_000])('at most %i hits are written, the first ones', (limit) => {
    const search = { ...everything, nights: [1, 3], minAvailability: 1, limit }
    const expected = matching(rows, search).slice(0, limit)

    const { hits, bytes, nextRow } = run(memory, rows, search)

    expect(hits).toBe(expected.length)
    expect(bytes.equals(encoded(rows, expected, search))).toBe(true)
    expect(nextRow).toBe(1100)
  })

  test.each([
    [0, 0],
    [22, 0],
    [23, 1],
    [45, 1],
    [46, 2],
    [23 * 600, 600],
  ])('an output of %i bytes holds %i ids, and the search continues with the next row', (outBytes, held) => {
    const expected = matching(rows, everything)

    const first = run(memory, rows, { ...everything, outBytes })
    const rest = run(memory, rows, { ...everything, firstRow: first.nextRow })

    expect(first.hits).toBe(held)
    expect(first.nextRow).toBe(expected[held])
    expect(rest.hits).toBe(expected.length - held)
    expect(first.bytes.equals(encoded(rows, expected.slice(0, held), everything))).toBe(true)
  })

  test.each([
    [1, 43],
    [2, 54],
    [3, 65],
  ])('a hit of %i nights takes %i bytes', (nights, bytes) => {
    const search = { ...everything, nights: [0, 1, 2].slice(0, nights) }

    expect(hitBytes(nights)).toBe(bytes)
    expect(run(memory, rows, { ...search, outBytes: bytes - 1 }).hits).toBe(0)
    expect(run(memory, rows, { ...search, outBytes: bytes }).hits).toBe(1)
    expect(run(memory, rows, { ...search, outBytes: bytes * 2 }).hits).toBe(2)
  })

  test('rows outside the bitmaps are not examined', () => {
    const isThree = (row: Row) => row.stars === 3

    expect(run(memory, rows, everything).examined).toBe(1100)
    expect(run(memory, rows, { ...everything, bitmaps: [live] }).examined).toBe(rows.filter(live).length)
    expect(run(memory, rows, { ...everything, bitmaps: [live, isThree] }).examined).toBe(
      rows.filter((row) => row.isLive && isThree(row)).length,
    )
    const narrow = { ...everything, nights: [2, 4], narrowByAvailable: true }
    expect(run(memory, rows, narrow).examined).toBe(
      rows.filter(({ nights }) => [2, 4].every((night) => (nights[night] as Night).availability > 0)).length,
    )
  })

  test('a search ends with the list of rows that holds the last wanted hit', () => {
    const { examined } = run(memory, rows, { ...everything, limit: 3 })

    expect(examined).toBe(LIST_ROWS)
  })

  test('an empty range of rows has no hits', () => {
    expect(run(memory, rows, { ...everything, firstRow: 77, endRow: 77 })).toEqual({
      ...{ hits: 0, nextRow: 77, examined: 0, bytes: Buffer.alloc(0) },
    })
  })
})

const plain: Row = {
  ...{ isLive: true, stars: 3, area: 1, amenities: [5, 8], position: [1, 0, 0] },
  nights: [{ availability: 4, features: 0b101, price: 100 }],
}
const one = { ...ALL, endRow: 1 }

test.each<[string, Partial<Search>, boolean]>([
  ['as many rooms', { nights: [0], minAvailability: 4 }, true],
  ['one room more', { nights: [0], minAvailability: 5 }, false],
  ['the price as the least one', { nights: [0], minPrice: 100 }, true],
  ['a higher least price', { nights: [0], minPrice: 101 }, false],
  ['the price as the greatest one', { nights: [0], maxPrice: 100 }, true],
  ['a lower greatest price', { nights: [0], maxPrice: 99 }, false],
  ['all of its rate features', { nights: [0], features: 0b101 }, true],
  ['one rate feature more', { nights: [0], features: 0b111 }, false],
  ['the stars as the least', { columns: [{ column: PROPERTY.stars, least: 3, greatest: 5 }] }, true],
  ['more stars', { columns: [{ column: PROPERTY.stars, least: 4, greatest: 5 }] }, false],
  ['the stars as the most', { columns: [{ column: PROPERTY.stars, least: 1, greatest: 3 }] }, true],
  ['fewer stars', { columns: [{ column: PROPERTY.stars, least: 1, greatest: 2 }] }, false],
  ['its first amenity', { amenities: [5] }, true],
  ['its last amenity', { amenities: [8] }, true],
  ['both amenities', { amenities: [5, 8] }, true],
  ['another amenity', { amenities: [5, 9] }, false],
  ['an amenity that is the number of amenities', { amenities: [2] }, false],
  ['the distance', { near: { point: [0, 0, 1], chordMax: 2 } }, true],
  ['a shorter distance', { near: { point: [0, 0, 1], chordMax: 1.999 } }, false],
  ['a distance along y', { near: { point: [1, 3, 0], chordMax: 8.999 } }, false],
])('a search for %s', (_, wanted, isFound) => {
  const memory = createMemory()
  store(memory, [plain])

  expect(run(memory, [plain], { ...one, ...wanted }).hits).toBe(isFound ? 1 : 0)
})

test('a property without amenities has none of the wanted ones', () => {
  const memory = createMemory()
  const rows = [{ ...plain, amenities: [] }]
  store(memory, rows)
  // What is at address 0 is not a list.
  memory.u32.set([1, 5], 0)

  expect(run(memory, rows, { ...one, amenities: [5] }).hits).toBe(0)
})

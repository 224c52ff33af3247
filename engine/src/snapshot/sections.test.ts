import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTestSource } from '../testing/snapshot-source.ts'
import { isDamage } from './columns.ts'
import { DEAD_ROW, type Names, type PropertyColumns, type TableShape } from './schema.ts'
import { decodeProperties, decodeTables, encodeProperties, encodeTables } from './sections.ts'

const degrees = fc.oneof(
  fc.integer({ min: -180_000_000, max: 180_000_000 }).map((micro) => micro / 1e6),
  fc.double({ min: -180, max: 180, noNaN: true }),
  fc.constantFrom(0, -0, 180, -180, 48.123456789, 1e-300),
)

/** Properties with names of every list, in any shape that a state may have. */
const states = fc
  .record({
    counts: fc.array(fc.nat(6), { minLength: 0, maxLength: 5 }),
    latitudes: fc.array(degrees, { minLength: 30, maxLength: 30 }),
    seed: fc.integer(),
    namesEach: fc.integer({ min: 1, max: 300 }),
  })
  .map(({ counts, latitudes, seed, namesEach }) => stateOf(counts, latitudes, seed, namesEach))

function stateOf(counts: number[], latitudes: number[], seed: number, namesEach: number) {
  let state = seed >>> 0
  const below = (limit: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  const list = (kind: string) => Array.from({ length: namesEach }, (_, i) => `${kind} ${String(i).padStart(3, '0')} é𝄞`)
  const names: Names = {
    segments: counts.map((_, i) => `segment ${i}`),
    areas: list('area'),
    types: list('type'),
    categories: list('category'),
    roomTypes: list('room'),
    amenities: list('amenity'),
  }
  const segment = counts.flatMap((count, i) => new Array<number>(count).fill(i))
  const count = segment.length
  const lists = () => {
    const start = new Uint32Array(count + 1)
    const values: number[] = []
    for (let i = 0; i < count; i++) {
      for (let n = below(4); n > 0; n--) values.push(below(namesEach))
      start[i + 1] = values.length
    }
    return { start, values: Uint32Array.from(values) }
  }
  const amenities = lists()
  const rooms = lists()
  const column = () => Uint32Array.from({ length: count }, () => below(namesEach))
  const properties: PropertyColumns = {
    count,
    ids: Uint8Array.from({ length: count * 16 }, () => below(256)),
    segment: Uint32Array.from(segment),
    area: column(),
    type: column(),
    category: column(),
    stars: Uint8Array.from({ length: count }, () => below(256)),
    latitude: Float64Array.from({ length: count }, (_, i) => latitudes[i % 30]),
    longitude: Float64Array.from({ length: count }, (_, i) => latitudes[(i + 7) % 30]),
    amenityStart: amenities.start,
    amenities: amenities.values,
    roomStart: rooms.start,
    rooms: rooms.values,
  }
  const tables: TableShape[] = []
  for (let i = 0; i < counts.length; i++) {
    const own = [...segment.keys()].filter((property) => segment[property] === i)
    for (let roomType = below(2); roomType < namesEach && tables.length < 40; roomType += 1 + below(8)) {
      const rows = own.filter(() => below(3) > 0)
      if (below(2) === 0) rows.reverse()
      const withDead = rows.flatMap((property) => (below(5) === 0 ? [DEAD_ROW, property] : [property]))
      const days = Array.from({ length: below(5) }, (_, n) => 20_000 + n * (1 + (roomType % 2)))
      tables.push({ segment: i, roomType, rows: Uint32Array.from(withDead), days: Uint32Array.from(days) })
    }
  }
  return { names, properties, tables }
}

test('properties are decoded as encoded, exact to the last bit of their positions', () => {
  fc.assert(
    fc.property(states, ({ names, properties }) => {
      const decoded = decodeProperties(encodeProperties(names, properties), 'file')

      expect(decoded.names).toEqual(names)
      expect(decoded.properties).toEqual(properties)
      const bits = (values: Float64Array) => [...new BigUint64Array(values.slice().buffer)]
      expect(bits(decoded.properties.latitude)).toEqual(bits(properties.latitude))
      expect(bits(decoded.properties.longitude)).toEqual(bits(properties.longitude))
    }),
  )
})

test('tables are decoded as encoded, including dead and unsorted rows', () => {
  fc.assert(
    fc.property(states, ({ names, properties, tables }) => {
      const decoded = decodeTables(encodeTables(tables), 'file', names, properties)

      expect(decoded.map((table) => ({ ...table, rows: [...table.rows], days: [...table.days] }))).toEqual(
        tables.map((table) => ({ ...table, rows: [...table.rows], days: [...table.days] })),
      )
    }),
  )
})

test('six decimals of a position cost a few bytes, not sixteen', () => {
  const { names, properties } = createTestSource({ segments: 1, propertiesPerSegment: 1000, roomTypes: 1 })
  const bytes = encodeProperties(names, properties).length

  // 16 of the id, 8 of the position at most, and one each for segment, area, type, category, stars and two lists.
  expect(bytes).toBeLessThan(1000 * 40)
})

/** Any changed bytes are reported as damage or decode to some state, without a crash, a hang or unbounded memory. */
function survivesNoise(encode: () => Uint8Array, decode: (bytes: Uint8Array) => void): void {
  const whole = encode()
  const changes = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(changes, fc.option(fc.nat(whole.length - 1), { freq: 4 }), (changed, cut) => {
      const bytes = whole.slice(0, cut ?? whole.length)
      for (const [at, byte] of changed) if (at < bytes.length) bytes[at] = byte
      try {
        decode(bytes)
      } catch (error) {
        if (!isDamage(error)) throw error
      }
    }),
    { numRuns: 2000 },
  )
}

test('noise in the properties is damage or another state', () => {
  const { names, properties } = createTestSource({ segments: 2, propertiesPerSegment: 4 })

  survivesNoise(
    () => encodeProperties(names, properties),
    (bytes) => decodeProperties(bytes, 'file'),
  )
})

test('noise in the tables is damage or other tables', () => {
  const { names, properties, tables } = createTestSource({ segments: 2, propertiesPerSegment: 4 })

  survivesNoise(
    () => encodeTables(tables),
    (bytes) => decodeTables(bytes, 'file', names, properties),
  )
})

const wrongTables: [string, (tables: TableShape[]) => TableShape[], string][] = [
  ['tables out of order', (tables) => tables.toReversed(), 'tables are not in order'],
  ['one table twice', ([first]) => [first as TableShape, first as TableShape], 'tables are not in order'],
  [
    'a property twice in one table',
    ([first]) => [{ ...(first as TableShape), rows: Uint32Array.of(1, 1) }],
    'property 1 has two rows in one table',
  ],
  [
    'a property of another segment',
    ([first]) => [{ ...(first as TableShape), rows: Uint32Array.of(5) }],
    'property 5 is in a table of another segment',
  ],
  [
    'a property that is not there',
    ([first]) => [{ ...(first as TableShape), rows: Uint32Array.of(10) }],
    'a row of property 10 of 10',
  ],
  [
    'days out of order',
    ([first]) => [{ ...(first as TableShape), days: Uint32Array.of(20_001, 20_000) }],
    'days are not in order',
  ],
]

for (const [what, change, reason] of wrongTables) {
  test(`${what}: damage, with the reason`, () => {
    const { names, properties, tables } = createTestSource({ segments: 2, propertiesPerSegment: 5 })
    const bytes = encodeTables(change([...tables]))

    expect(() => decodeTables(bytes, 'file', names, properties)).toThrow(reason)
  })
}

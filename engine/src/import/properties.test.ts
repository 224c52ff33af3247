import { closeSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compareBytes, packPropertyId, RESERVED_SEGMENTS, unpackPropertyId } from '@vacancy/shared'
import { createRandom, type Random, tries } from '@vacancy/testkit/random'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nameHash, propertyHash } from '../store/digest.ts'
import { LINE_BYTES_MAX } from './csv.ts'
import { hashId, PADDING_BYTES } from './layout.ts'
import { digestOfProperties, type PropertyTable, readProperties } from './properties.ts'
import type { Fault } from './row-errors.ts'
import { createBlocks, openCsv } from './split.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-properties-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function read(content: string, blockBytes = 2 * LINE_BYTES_MAX): { table: PropertyTable; faultyLines: number[] } {
  const path = join(folder, 'properties.csv')
  writeFileSync(path, content)
  const file = openCsv(path, 'properties')
  const faultyLines: number[] = []
  const blocks = createBlocks(file.file, path, file.bytes, new Uint8Array(blockBytes + PADDING_BYTES))
  const table = readProperties(file, blocks, { onFault: (line) => faultyLines.push(line), onBlock: () => {} })
  closeSync(file.file)
  return { table, faultyLines }
}

type Row = { id: string; names: string[]; stars: number; latitude: number; longitude: number; amenities: string[] }

function randomRow(random: Random, i: number): Row {
  const hex = (count: number) => Array.from({ length: count }, () => random.below(16).toString(16)).join('')
  const uuid = `${hex(8)}-${hex(4)}-4${hex(3)}-${hex(4)}-${hex(12)}`
  return {
    id: random.below(4) === 0 ? uuid : `p${(i * 7919) % 10_007}`,
    // Upper case, other scripts and common prefixes: bytes decide, not letters.
    names: ['segment', 'area', 'type', 'category'].map(
      (kind) => ['Z', 'a', 'ä', 'é', '客', 'a b', 'A', `${kind}10`, `${kind}9`][random.below(9)],
    ),
    stars: 1 + random.below(5),
    latitude: (random.below(180_000_001) - 90_000_000) / 1e6,
    longitude: (random.below(360_000_001) - 180_000_000) / 1e6,
    amenities: ['wifi', 'pool', 'Zoo', 'ähre'].filter(() => random.below(2) === 0),
  }
}

const lineOf = ({ id, names, stars, latitude, longitude, amenities }: Row) =>
  `${[id, ...names, stars, latitude, longitude, amenities.join('|')].join(',')}\n`

const byBytes = (a: string, b: string) => compareBytes(Buffer.from(a), Buffer.from(b))

/** The order of rows: segment, type, category, stars, area, packed id. */
function compareRows(a: Row, b: Row): number {
  for (const name of [0, 2, 3]) {
    const order = byBytes(a.names[name], b.names[name])
    if (order !== 0) return order
  }
  const packed = (row: Row) => packPropertyId(row.id) as Uint8Array
  return a.stars - b.stars || byBytes(a.names[1], b.names[1]) || compareBytes(packed(a), packed(b))
}

function rowsOf({ columns, names }: PropertyTable): Row[] {
  return Array.from({ length: columns.count }, (_, i) => ({
    id: unpackPropertyId(columns.ids, i * 16),
    names: [
      names.segments[columns.segment[i]],
      names.areas[columns.area[i]],
      names.types[columns.type[i]],
      names.categories[columns.category[i]],
    ],
    stars: columns.stars[i],
    latitude: columns.latitude[i],
    longitude: columns.longitude[i],
    amenities: [...columns.amenities.slice(columns.amenityStart[i], columns.amenityStart[i + 1])].map(
      (name) => names.amenities[name],
    ),
  }))
}

/** As the kernel looks it up. */
function ordinalOf({ index }: PropertyTable, id: string): number {
  const packed = packPropertyId(id) as Uint8Array
  const [w0, w1, w2, w3] = new Uint32Array(packed.slice().buffer) as unknown as [number, number, number, number]
  for (let slot = hashId(w0, w1, w2, w3) >>> index.shift; ; slot = (slot + 1) & (index.slots.length - 1)) {
    const ordinal = index.slots[slot] - 1
    if (ordinal < 0 || compareBytes(index.ids.subarray(ordinal * 16, ordinal * 16 + 16), packed) === 0) return ordinal
  }
}

test('columns hold the content of the lines, in the byte order of names', () => {
  for (let round = 0; round < tries(12); round++) {
    const random = createRandom(SEED + round)
    const context = `VACANCY_SEED=${SEED}, round ${round}`
    const rows = Array.from({ length: random.below(3000) }, (_, i) => randomRow(random, i))

    const { table, faultyLines } = read(rows.map(lineOf).join(''), 2 * LINE_BYTES_MAX + random.below(1000))

    expect(faultyLines, context).toEqual([])
    const expected = rows.toSorted(compareRows).map((row) => ({ ...row, amenities: row.amenities.toSorted(byBytes) }))
    expect(rowsOf(table), context).toEqual(expected)
    for (const list of Object.values(table.names)) expect(list, context).toEqual([...new Set(list)].sort(byBytes))
    for (const [ordinal, { id }] of expected.entries()) expect(ordinalOf(table, id), context).toBe(ordinal)
    expect(ordinalOf(table, 'nowhere'), context).toBe(-1)
  }
})

test('the order of the lines does not matter', () => {
  const random = createRandom(SEED)
  const rows = Array.from({ length: 500 }, (_, i) => randomRow(random, i))

  const forwards = read(rows.map(lineOf).join('')).table
  const backwards = read(rows.toReversed().map(lineOf).join('')).table

  expect(backwards.columns).toEqual(forwards.columns)
  expect(backwards.names).toEqual(forwards.names)
})

test('a property whose line was refused has an ordinal after the others, so that its packages are recognized', () => {
  const { table, faultyLines } = read('b,S,A,t,c,1,0,0,\na,S,A,t,c,9,0,0,\nb,S,A,t,c,1,0,0,\n')

  expect(faultyLines).toEqual([2, 3])
  expect(table.columns.count).toBe(1)
  expect(ordinalOf(table, 'b')).toBe(0)
  expect(ordinalOf(table, 'a')).toBe(1)
})

test.each([
  ['0', 0],
  ['-0.0', 0],
  ['47.376900', 47.3769],
  ['-8.5417', -8.5417],
  ['+12.5', 12.5],
  ['.5', 0.5],
  ['5.', 5],
  ['1e1', 10],
  ['-1.25E+1', -12.5],
  ['0.1234567890123456789', 0.12345678901234568],
  ['00000000000000000000012.75', 12.75],
  ['45.00000000000000000001', 45],
])('the number %s is parsed exactly', (text, value) => {
  const { table, faultyLines } = read(`p,S,A,t,c,1,${text},0,\n`)

  expect(faultyLines).toEqual([])
  expect(Object.is(table.columns.latitude[0], value)).toBe(true)
})

test.each(['', '-', '.', '1e', '0x10', 'NaN', 'Infinity', '1,5', '1 2', '90.1', '1e999', '--1'])(
  '%s is no latitude',
  (text) => {
    expect(read(`q,S,A,t,c,1,1.5,0,\np,S,A,t,c,1,"${text}",0,\n`).faultyLines).toEqual([2])
  },
)

function faultsOf(content: string, header = '') {
  const path = join(folder, 'faults.csv')
  writeFileSync(path, header + content)
  const file = openCsv(path, 'properties')
  const faults: (Fault & { line: number; row: string })[] = []
  const positions: number[] = []
  const blocks = createBlocks(file.file, path, file.bytes, new Uint8Array(2 * LINE_BYTES_MAX + PADDING_BYTES))
  const onFault = (line: number, fault: Fault, row: Uint8Array) =>
    faults.push({ line, row: Buffer.from(row).toString(), ...fault })
  const table = readProperties(file, blocks, { onFault, onBlock: (bytesDone) => positions.push(bytesDone) })
  closeSync(file.file)
  return { table, faults, positions }
}

const xs = (count: number) => 'x'.repeat(count)
const amenitiesOf = (count: number) => Array.from({ length: count }, (_, i) => `a${i}`).join('|')

test.each<[string, Partial<Fault> | undefined]>([
  ['p,S,A,t,c,1,0,0', { kind: 'columns', column: 0, value: 'p,S,A,t,c,1,0,0', found: 8, expected: 9 }],
  ['p,S,A,t,c,1,0,0,,', { kind: 'columns', column: 0, found: 10, expected: 9 }],
  ['an id too long.,S,A,t,c,1,0,0,', { kind: 'property_id', column: 1, value: 'an id too long.' }],
  ['p,,A,t,c,1,0,0,', { kind: 'empty', column: 2, value: '' }],
  ['p,S,,t,c,1,0,0,', { kind: 'empty', column: 3 }],
  ['p,S,A,,c,1,0,0,', { kind: 'empty', column: 4 }],
  ['p,S,A,t,,1,0,0,', { kind: 'empty', column: 5 }],
  [`p,S,A,t,${xs(255)},1,0,0,`, undefined],
  [`p,S,A,t,${xs(256)},1,0,0,`, { kind: 'text', column: 5 }],
  [`p,${RESERVED_SEGMENTS[0]},A,t,c,1,0,0,`, { kind: 'reserved_segment', column: 2, value: RESERVED_SEGMENTS[0] }],
  [`p,S,${RESERVED_SEGMENTS[0]},t,c,1,0,0,`, undefined],
  ['p,S,A,t,c,0,0,0,', { kind: 'stars', column: 6, value: '0' }],
  ['p,S,A,t,c,6,0,0,', { kind: 'stars', column: 6 }],
  ['p,S,A,t,c,,0,0,', { kind: 'stars', column: 6, value: '' }],
  ['p,S,A,t,c,5,0,0,', undefined],
  ['p,S,A,t,c,1,90,180,', undefined],
  ['p,S,A,t,c,1,-90,-180,', undefined],
  ['p,S,A,t,c,1,90.001,0,', { kind: 'latitude', column: 7, value: '90.001' }],
  ['p,S,A,t,c,1,-90.001,0,', { kind: 'latitude', column: 7 }],
  ['p,S,A,t,c,1,,0,', { kind: 'latitude', column: 7, value: '' }],
  ['p,S,A,t,c,1,0,180.001,', { kind: 'longitude', column: 8 }],
  ['p,S,A,t,c,1,0,-180.001,', { kind: 'longitude', column: 8 }],
  ['p,S,A,t,c,1,0,-,', { kind: 'longitude', column: 8, value: '-' }],
  ['p,S,A,t,c,1,0,0,"a|b,c"', { kind: 'amenity', column: 9, value: 'b,c', reason: expect.stringMatching('comma') }],
  [`p,S,A,t,c,1,0,0,${xs(64)}`, undefined],
  [`p,S,A,t,c,1,0,0,a|${xs(65)}`, { kind: 'amenity', column: 9, value: xs(64) }],
  [`p,S,A,t,c,1,0,0,${amenitiesOf(64)}|a0`, undefined],
  [`p,S,A,t,c,1,0,0,${amenitiesOf(65)}`, { kind: 'amenities', column: 9, found: 65, expected: 64 }],
  ['p,"S,A', { kind: 'unclosed', column: 2, value: '' }],
  ['p,"S"x,A', { kind: 'trailing', column: 2, value: 'S' }],
  [`p,${xs(LINE_BYTES_MAX)}`, { kind: 'long', column: 0, expected: LINE_BYTES_MAX }],
])('the line %# is a property or has one error', (line, fault) => {
  const { faults, table } = faultsOf(`first,S,A,t,c,1,0,0,\n${line}\nlast,S,A,t,c,1,0,0,\n`)

  if (fault === undefined) expect(faults).toEqual([])
  else expect(faults).toEqual([expect.objectContaining({ line: 2, row: line.slice(0, LINE_BYTES_MAX), ...fault })])
  // The lines around it are read whole in any case.
  expect(table.columns.count).toBe(fault === undefined ? 3 : 2)
  expect(rowsOf(table).map(({ id }) => id)).toEqual(expect.arrayContaining(['first', 'last']))
})

test('a repeat names the line of the first, which may have been refused', () => {
  const { faults } = faultsOf('a,S,A,t,c,1,0,0,\n\nb,S,A,t,c,9,0,0,\na,S,A,t,c,1,0,0,\nb,S,A,t,c,1,0,0,\n')

  expect(faults).toMatchObject([
    { line: 3, kind: 'stars' },
    { line: 4, kind: 'property_twice', column: 1, value: 'a', firstLine: 1 },
    { line: 5, kind: 'property_twice', column: 1, value: 'b', firstLine: 3 },
  ])
})

test('lines are counted from the header on, also those of a quoted cell', () => {
  const header = 'PropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities\n'
  const { faults } = faultsOf('a,S,"A\nB",t,c,1,0,0,\nb,S,A,t,c,0,0,0,\n', header)

  expect(faults.map(({ line, kind }) => [line, kind])).toEqual([
    [2, 'text'],
    [4, 'stars'],
  ])
})

test('errors of a file with another column order name the columns of the file', () => {
  const header = 'Amenities,Longitude,Latitude,Stars,Category,PropertyType,Area,Segment,PropertyID\n'
  const { faults, table } = faultsOf(',8.5,47.25,3,c,t,A,S,p\n,0,0,0,c,t,A,S,q\n', header)

  expect(rowsOf(table)).toEqual([
    { id: 'p', names: ['S', 'A', 't', 'c'], stars: 3, latitude: 47.25, longitude: 8.5, amenities: [] },
  ])
  expect(faults).toMatchObject([{ line: 3, kind: 'stars', column: 4 }])
})

test('the digest is the sum of the hashes of the properties', () => {
  const random = createRandom(SEED)
  const rows = Array.from({ length: 40 }, (_, i) => randomRow(random, i))
  const { table } = read(rows.map(lineOf).join(''))
  const hashOf = (lane: 0 | 1, name: string) => {
    const bytes = new TextEncoder().encode(name)
    return nameHash(lane, bytes, 0, bytes.length)
  }
  const sums = ([0, 1] as const).map((lane) =>
    rows.reduce((sum, { id, names, stars, latitude, longitude, amenities }) => {
      const [segmentHash, areaHash, typeHash, categoryHash] = names.map((name) => hashOf(lane, name)) as [
        number,
        number,
        number,
        number,
      ]
      const named = { segmentHash, areaHash, typeHash, categoryHash }
      const amenityHashes = amenities.map((name) => hashOf(lane, name))
      const packed = packPropertyId(id) as Uint8Array
      const input = { id: packed, idStart: 0, ...named, stars, latitude, longitude, amenityHashes }
      return (sum + propertyHash(lane, input)) >>> 0
    }, 0),
  )

  expect(digestOfProperties(table), `VACANCY_SEED=${SEED}`).toEqual({ lo: sums[0], hi: sums[1] })
})

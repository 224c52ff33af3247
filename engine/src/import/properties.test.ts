import { closeSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compareBytes, packPropertyId, unpackPropertyId } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LINE_BYTES_MAX } from './csv.ts'
import { hashId, PADDING_BYTES } from './layout.ts'
import { type PropertyTable, readProperties } from './properties.ts'
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
  for (let round = 0; round < 12; round++) {
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
    expect(read(`p,S,A,t,c,1,"${text}",0,\n`).faultyLines).toEqual([1])
  },
)

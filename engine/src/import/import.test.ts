import {
  appendFileSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createCodecList,
  formatDay,
  IMPORT_COLUMNS,
  packPropertyId,
  parseDay,
  unpackPropertyId,
  VacancyError,
} from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createEnv, realDisk } from '../env.ts'
import { decodePart, openSeedFile, type SnapshotReader } from '../snapshot/load.ts'
import { createWordsCoder } from '../snapshot/words.ts'
import { nameHash, packageHash, propertyHash, roomHash, rowKey } from '../store/digest.ts'
import { CODECS, DAYS, FIRST_DAY, propertiesFile, randomPackages, readObviously } from '../testing/csv-files.ts'
import { layPlanes } from '../testing/snapshot-source.ts'
import { buildSnapshot, type ImportOptions } from './import.ts'
import { printedFinding } from './row-errors.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const quiet = () => undefined
const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
const codecs = createCodecList(CODECS)

let root: string
let input: string
let output: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'vacancy-import-'))
})
afterAll(() => rmSync(root, { recursive: true }))
beforeEach(() => {
  input = mkdtempSync(join(root, 'in-'))
  output = join(input, 'out')
})

const PROPERTY = 'p,Zürich,Old Town,hotel,luxury,4,47.3769,8.5417,wifi|pool\n'

function optionsOf(options: Partial<ImportOptions> = {}): ImportOptions {
  return {
    shardId: 's1',
    inputPath: input,
    outputPath: output,
    codecs,
    firstDay: FIRST_DAY,
    lastDay: FIRST_DAY + DAYS - 1,
    outOfWindow: 'skip',
    errorsMax: 20,
    overwrite: false,
    threads: 1,
    ...options,
  }
}

function write(properties: string | Uint8Array, packages: string | Uint8Array): void {
  writeFileSync(join(input, 'properties.csv'), properties)
  writeFileSync(join(input, 'packages.csv'), packages)
}

async function summaryOf(options?: Partial<ImportOptions>) {
  const outcome = await buildSnapshot(env, optionsOf(options))
  if (!outcome.ok) throw new Error(outcome.errors.first.map(printedFinding).join('\n'))
  return outcome.summary
}

async function errorsOf(options?: Partial<ImportOptions>): Promise<string[]> {
  const outcome = await buildSnapshot(env, optionsOf(options))
  expect(outcome.ok).toBe(false)
  expect(existsSync(output)).toBe(false)
  if (outcome.ok) return []
  expect(Object.values(outcome.errors.countByKind).reduce((sum, count) => sum + count, 0)).toBe(outcome.errors.count)
  return outcome.errors.first.map(printedFinding)
}

/** Every package of a snapshot file, in the format of readObviously. */
function packagesOf(reader: SnapshotReader): string[] {
  const { tables, names, properties, words, places, firstPlane } = reader
  const planes = layPlanes(tables, 1)
  const shape = { tables, ids: properties.ids, roomTypes: names.roomTypes }
  const coder = createWordsCoder(planes.memory, planes.scratch[0], shape)
  for (let part = 0; part < words.parts.length; part++) {
    decodePart(realDisk, { words, form: places.form, firstPlane }, coder, planes.planeMap, part)
  }
  const packages: string[] = []
  tables.forEach(({ roomType, rows, days }, table) => {
    days.forEach((day, night) => {
      rows.forEach((property, row) => {
        const cell = planes.planeMap.words[firstPlane[table] + night] / 4 + row * 2
        const [lo, hi] = [planes.u32[cell], planes.u32[cell + 1]]
        if ((lo | hi) === 0) return
        const id = unpackPropertyId(properties.ids, property * 16)
        packages.push(`${id}|${names.roomTypes[roomType]}|${day}|${lo & 255}|${~hi >>> 0}|${lo >>> 8}`)
      })
    })
  })
  return packages.sort()
}

test('two files become a snapshot with exactly their content', async () => {
  write(
    'PropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities\n' +
      'b,Zürich,West,hotel,luxury,4,47.3769,-8.5417,wifi|pool|wifi\n' +
      'a,Zürich,Old Town,hotel,luxury,3,-0.0,0,\n' +
      'c,Basel,Old Town,hostel,budget,1,+90,1.8e2,pool\n',
    'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature\n' +
      'b,double,2026-09-10,3,120,late|breakfast\r\n' +
      'b,double,2026-09-12,0,0,\n' +
      'b,"a, suite",2026-09-10,255,4294967294,Frühstück\n' +
      'a,double,2026-09-10,1,99,"late"\n' +
      'a,double,2026-01-01,1,99,\n',
  )

  const summary = await summaryOf()

  const reader = openSeedFile(realDisk, join(output, 'seed.snapshot'))
  const { manifest, names, properties, tables } = reader
  expect(packagesOf(reader)).toEqual(
    [
      'b|double|20706|3|120|20',
      'b|double|20708|0|0|0',
      'b|a, suite|20706|255|4294967294|8',
      'a|double|20706|1|99|16',
    ].sort(),
  )
  expect(summary).toMatchObject({ packages: 4, properties: 3, rows: 3, segments: 2, roomTypes: 2, outOfWindow: 1 })
  expect(summary.nights).toEqual({ from: '2026-09-10', to: '2026-09-12' })
  expect(summary).toMatchObject({ bytes: readFileSync(summary.path).length, kernel: 'wasm', notes: [] })
  expect(manifest).toMatchObject({ shardId: 's1', codecs: CODECS, properties: 3, packages: 4, index: 1, term: 1 })
  expect(manifest.segments).toEqual([
    { name: 'Basel', properties: 1, packages: 0 },
    { name: 'Zürich', properties: 2, packages: 4 },
  ])
  expect(names).toEqual({
    segments: ['Basel', 'Zürich'],
    areas: ['Old Town', 'West'],
    types: ['hostel', 'hotel'],
    categories: ['budget', 'luxury'],
    roomTypes: ['a, suite', 'double'],
    amenities: ['pool', 'wifi'],
  })
  const ids = Array.from({ length: 3 }, (_, i) => unpackPropertyId(properties.ids, i * 16))
  expect(ids).toEqual(['c', 'a', 'b'])
  expect([...properties.latitude]).toEqual([90, 0, 47.3769])
  expect([...properties.longitude]).toEqual([180, 0, -8.5417])
  expect([...properties.stars]).toEqual([1, 3, 4])
  expect([...properties.rooms]).toEqual([1, 0, 1])
  expect([...properties.amenities]).toEqual([0, 0, 1])
  expect(tables.map(({ segment, roomType, rows }) => [segment, roomType, ...rows])).toEqual([
    [1, 0, 2],
    [1, 1, 1, 2],
  ])
})

const PACKAGE_HEADER = IMPORT_COLUMNS.packages.join(',')
const PROPERTY_HEADER = IMPORT_COLUMNS.properties.join(',')

test.each([1, 3])(
  'with %i threads, columns that a header names in another order used to change places; now the snapshot is the same',
  async (threads) => {
    const ids = Array.from({ length: 20 }, (_, i) => `hotel${i}`)
    const properties = ids.map((id, i) => [
      id,
      `seg${i % 3}`,
      `a${i % 2}`,
      't',
      'c',
      `${1 + (i % 5)}`,
      `${i}.5`,
      `-${i}`,
      'x|y',
    ])
    const packages = ids.flatMap((id) =>
      Array.from({ length: 40 }, (_, i) => [
        id,
        'r',
        formatDay(FIRST_DAY + i),
        `${i}`,
        `${1000 + i}`,
        i % 2 ? 'late' : '',
      ]),
    )
    const fileOf = (header: string, rows: string[][], order: readonly number[]) =>
      [header.split(','), ...rows].map((cells) => order.map((place) => cells[place]).join(',')).join('\n')
    const orders = [
      [8, 0, 7, 1, 6, 2, 5, 3, 4],
      [5, 2, 4, 3, 0, 1],
    ] as const
    write(
      fileOf(PROPERTY_HEADER, properties, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
      fileOf(PACKAGE_HEADER, packages, [0, 1, 2, 3, 4, 5]),
    )
    const inOrder = await summaryOf()
    write(fileOf(PROPERTY_HEADER, properties, orders[0]), fileOf(PACKAGE_HEADER, packages, orders[1]))

    const moved = await summaryOf({ overwrite: true, threads, rangeBytes: 5_000 })

    expect(moved).toMatchObject({ snapshotId: inOrder.snapshotId, packages: 800 })
    expect(moved.notes.join('\n')).toContain('packages.csv: columns are read by the names in its header')
    expect(inOrder.notes).toEqual([])
  },
)

test('errors of a file with its columns in another order name the column of the file', async () => {
  write(
    'Stars,PropertyID,Segment,Area,PropertyType,Category,Latitude,Longitude,Amenities\n9,p,S,A,t,c,0,0,\n1,q,S,A,t,c,0,0,\n',
    'FinalPrice,PropertyID,RoomType,Date,Availability,RateFeature\nx,q,r,2026-09-10,1,\n1,z,r,2026-09-10,1,\n',
  )

  expect(await errorsOf()).toEqual([
    'properties.csv:2: Stars (column 1) "9" is not a whole number from 1 to 5',
    'packages.csv:2: FinalPrice (column 1) "x" is not a whole number from 0 to 4294967294',
    'packages.csv:3: PropertyID (column 2) "z" is not a property of properties.csv',
  ])
})

test('a header that cannot be mapped is the only error of the files', async () => {
  write('PropertyID,Segment\np,S\n', `${PACKAGE_HEADER}\np,r,2026-09-10,1,1,\n`)

  expect(await errorsOf()).toEqual([
    'properties.csv: line 1 is a header of 2 columns instead of 9 that does not name Area, PropertyType, Category, Stars and 3 more; the columns are PropertyID, Segment, Area, PropertyType, Category, Stars, Latitude, Longitude, Amenities',
  ])
})

test('an unknown column name among known ones in their positions is a note', async () => {
  write(PROPERTY, 'PropertyID,RoomType,Date,Rooms,FinalPrice,RateFeature\np,r,2026-09-10,7,8,\n')

  const { notes, packages } = await summaryOf()

  expect(packages).toBe(1)
  expect(notes).toEqual([
    'packages.csv: line 1 has unknown column names and is read by position: "Rooms" as Availability',
  ])
})

test('the state digest is the sum over all records by their names', async () => {
  write(
    'b,S,A,hotel,luxury,4,1.5,-2,pool|wifi\na,S,B,hostel,budget,1,0,0,\n',
    'b,r1,2026-09-10,3,120,late\nb,r2,2026-10-30,0,7,\na,r1,2026-09-10,1,1,\n',
  )

  await summaryOf()

  const hash = (lane: 0 | 1, text: string) => {
    const bytes = new TextEncoder().encode(text)
    return nameHash(lane, bytes, 0, bytes.length)
  }
  const sums = ([0, 1] as const).map((lane) => {
    const property = (
      id: string,
      [s, a, t, c]: string[],
      stars: number,
      latitude: number,
      longitude: number,
      list: string[],
    ) =>
      propertyHash(lane, {
        id: packPropertyId(id) as Uint8Array,
        idStart: 0,
        segmentHash: hash(lane, s as string),
        areaHash: hash(lane, a as string),
        typeHash: hash(lane, t as string),
        categoryHash: hash(lane, c as string),
        stars,
        latitude,
        longitude,
        amenityHashes: list.map((name) => hash(lane, name)),
      })
    const key = (id: string, room: string) => rowKey(lane, packPropertyId(id) as Uint8Array, 0, hash(lane, room))
    const word = (id: string, room: string, date: string, lo: number, price: number) =>
      packageHash(lane, key(id, room), parseDay(date) as number, lo, ~price >>> 0)
    return [
      property('b', ['S', 'A', 'hotel', 'luxury'], 4, 1.5, -2, ['pool', 'wifi']),
      property('a', ['S', 'B', 'hostel', 'budget'], 1, 0, 0, []),
      ...[key('b', 'r1'), key('b', 'r2'), key('a', 'r1')].map((row) => roomHash(lane, row)),
      word('b', 'r1', '2026-09-10', 3 | (16 << 8), 120),
      word('b', 'r2', '2026-10-30', 0, 7),
      word('a', 'r1', '2026-09-10', 1, 1),
    ].reduce((sum, record) => (sum + record) % 2 ** 32, 0)
  })
  const { manifest } = openSeedFile(realDisk, join(output, 'seed.snapshot'))
  expect(manifest.digest).toEqual({ lo: sums[0], hi: sums[1] })
})

test('threads, ranges and the order of the lines do not affect the bytes of the snapshot', async () => {
  const random = createRandom(SEED)
  const bytes = randomPackages(random, { lines: 3000, spoilOneIn: 0, varyOneIn: 5, order: 'shuffled' })
  write(propertiesFile().join(''), bytes)
  const context = `VACANCY_SEED=${SEED}`
  const first = await summaryOf()
  const expected = readFileSync(first.path)
  expect(packagesOf(openSeedFile(realDisk, first.path)), context).toEqual(readObviously(bytes, false).packages)

  const lines = Buffer.from(bytes).toString('latin1').trimEnd().split('\n')
  for (let i = lines.length - 1; i > 0; i--) {
    const j = random.below(i + 1)
    const line = lines[i]
    lines[i] = lines[j]
    lines[j] = line
  }
  const reordered = Buffer.from(lines.join('\n'), 'latin1')
  for (const options of [
    { threads: 2, rangeBytes: 5000 },
    { threads: 3, rangeBytes: 777 },
    { threads: 2, rangeBytes: 4000, reordered: true },
  ] as const) {
    if ('reordered' in options) write(propertiesFile().reverse().join(''), reordered)
    const summary = await summaryOf({ ...options, overwrite: true })
    expect(summary.snapshotId, context).toBe(first.snapshotId)
    expect(readFileSync(summary.path).equals(expected), context).toBe(true)
  }
})

test('errors are in file order and independent of the number of threads', async () => {
  const random = createRandom(SEED + 1)
  const bytes = randomPackages(random, { lines: 2000, spoilOneIn: 40, varyOneIn: 10, order: 'grouped' })
  write(propertiesFile().join(''), bytes)
  const alone = await errorsOf({ errorsMax: 1000 })

  const together = await errorsOf({ errorsMax: 1000, threads: 3, rangeBytes: 901 })

  expect(together, `VACANCY_SEED=${SEED}`).toEqual(alone)
  const lines = alone.map((text) => Number(/^packages\.csv:(\d+):/.exec(text)?.[1]))
  expect([...new Set(lines)], `VACANCY_SEED=${SEED}`).toEqual(readObviously(bytes, false).faultyLines)
})

const many = (count: number, of: (i: number) => string) => Array.from({ length: count }, (_, i) => of(i)).join('')

test.each<[string, string, string[]]>([
  [
    'a date that is none',
    'p,r,2026-02-30,1,1,\n',
    ['packages.csv:1: Date (column 3) "2026-02-30" is not a date YYYY-MM-DD'],
  ],
  [
    'a rate feature that is not in the list',
    'p,r,2026-09-10,1,1,late|free_wfi\n',
    ['packages.csv:1: RateFeature (column 6) "free_wfi" is not in the codec list; the nearest entry is "free_wifi"'],
  ],
  [
    'a rate feature unlike any',
    'p,r,2026-09-10,1,1,quite another thing\n',
    [
      'packages.csv:1: RateFeature (column 6) "quite another thing" is not in the codec list ' +
        '(free_cancellation, non_refundable, breakfast, Frühstück, late, free_wifi)',
    ],
  ],
  [
    '25 rate features',
    `p,r,2026-09-10,1,1,${many(25, (i) => `${i === 0 ? '' : '|'}f${i}`)}\n`,
    [
      'packages.csv:1: RateFeature (column 6) "f0" is not in the codec list ' +
        '(free_cancellation, non_refundable, breakfast, Frühstück, late, free_wifi)',
    ],
  ],
  [
    'too many rooms',
    'p,r,2026-09-10,256,1,\n',
    ['packages.csv:1: Availability (column 4) "256" is not a whole number from 0 to 255'],
  ],
  [
    'no availability',
    'p,r,2026-09-10,,1,\n',
    ['packages.csv:1: Availability (column 4) is not a whole number from 0 to 255'],
  ],
  [
    'a price with decimals, which may be another unit (12.00 used to be read as 12, and 12.50 refused)',
    'p,r,2026-09-10,1,120,\np,r,2026-09-11,1,12.00,\n',
    [
      'packages.csv:2: FinalPrice (column 5) "12.00" has decimals; prices are whole numbers in your smallest unit, unless --price-decimals says how many decimals they have',
    ],
  ],
  [
    'a price that cannot be stored',
    'p,r,2026-09-10,1,4294967295,\n',
    ['packages.csv:1: FinalPrice (column 5) "4294967295" is not a whole number from 0 to 4294967294'],
  ],
  [
    'an unknown property',
    'q,r,2026-09-10,1,1,\n',
    ['packages.csv:1: PropertyID (column 1) "q" is not a property of properties.csv'],
  ],
  [
    'an id that is none',
    'abcdefghijklmno,r,2026-09-10,1,1,\n',
    [
      'packages.csv:1: PropertyID (column 1) "abcdefghijklmno" is neither a UUID (version 1–5 or 7) nor 1–14 printable ASCII characters',
    ],
  ],
  ['no room type', 'p, ,2026-09-10,1,1,\n', ['packages.csv:1: RoomType (column 2) is empty']],
  [
    'a NUL byte',
    'p,r\0om,2026-09-10,1,1,\n',
    ['packages.csv:1: RoomType (column 2) "r\\u0000om" must not hold control characters, has byte 0 at 1'],
  ],
  [
    'bytes that are no UTF-8',
    'p,r\u00ff,2026-09-10,1,1,\n',
    ['packages.csv:1: RoomType (column 2) "r\ufffd" is not valid UTF-8'],
  ],
  [
    'too few cells',
    'p,r,2026-09-10,1,1\n',
    ['packages.csv:1: the line has 5 cells instead of 6: "p,r,2026-09-10,1,1"'],
  ],
  [
    'too many cells',
    'p,r,2026-09-10,1,1,,x\n',
    ['packages.csv:1: the line has 7 cells instead of 6: "p,r,2026-09-10,1,1,,x"'],
  ],
  [
    'a quote that does not close',
    'p,"r,2026-09-10,1,1,\np,r,2026-09-10,x,1,\n',
    [
      'packages.csv:1: RoomType (column 2) opens a quote that is not closed',
      'packages.csv:2: Availability (column 4) "x" is not a whole number from 0 to 255',
    ],
  ],
  [
    'text behind a closing quote',
    'p,"r"r,2026-09-10,1,1,\np,r,2026-09-10,1,x,\n',
    [
      'packages.csv:1: RoomType (column 2) "r" has text after a closing quote',
      'packages.csv:2: FinalPrice (column 5) "x" is not a whole number from 0 to 4294967294',
    ],
  ],
  [
    'a line end inside of a cell',
    'p,"r\nr",2026-09-10,1,1,\np,r,2026-09-10,1,,\n',
    [
      'packages.csv:1: RoomType (column 2) "r\\nr" must not hold control characters, has byte 10 at 1',
      'packages.csv:3: FinalPrice (column 5) is not a whole number from 0 to 4294967294',
    ],
  ],
  [
    'the same package twice, written in two ways',
    'p,r,2026-09-10,1,1,\n\np,r,2026-09-11,1,1,\n"p", r ,2026-09-10,2,2,late\n',
    ['packages.csv:4: the line repeats property, room type and date of line 1: "p,r,2026-09-10"'],
  ],
  [
    '257 room types of one property',
    many(258, (i) => `p,r${i},2026-09-10,1,1,\n`),
    [
      'packages.csv:257: RoomType (column 2) "r256" is room type 257 of its property; 256 is the limit',
      'packages.csv:258: RoomType (column 2) "r257" is room type 257 of its property; 256 is the limit',
    ],
  ],
  [
    'a value too long to be shown whole',
    `p,${'x'.repeat(300)},2026-09-10,1,1,\n`,
    [`packages.csv:1: RoomType (column 2) "${'x'.repeat(80)}…" must be 1 to 255 bytes, got 300`],
  ],
  [
    'a line above the limit',
    `p,r,2026-09-10,1,1,${'late|'.repeat(14_000)}\np,r,2026-09-11,1,-1,\n`,
    [
      'packages.csv:1: the line is longer than 65536 bytes',
      'packages.csv:2: FinalPrice (column 5) "-1" is not a whole number from 0 to 4294967294',
    ],
  ],
])('packages: %s', async (_, packages, errors) => {
  write(PROPERTY, Buffer.from(packages, packages.includes('\u00ff') ? 'latin1' : 'utf8'))

  expect(await errorsOf()).toEqual(errors)
})

test.each<[string, string, string[]]>([
  ['too few cells', 'p,S,A,t,c,1,0,0\n', ['properties.csv:1: the line has 8 cells instead of 9: "p,S,A,t,c,1,0,0"']],
  ['stars', 'p,S,A,t,c,6,0,0,\n', ['properties.csv:1: Stars (column 6) "6" is not a whole number from 1 to 5']],
  [
    'latitude',
    'p,S,A,t,c,1,90.000001,0,\n',
    ['properties.csv:1: Latitude (column 7) "90.000001" is not a number from -90 to 90'],
  ],
  [
    'longitude',
    'p,S,A,t,c,1,0,east,\n',
    ['properties.csv:1: Longitude (column 8) "east" is not a number from -180 to 180'],
  ],
  [
    'a reserved segment',
    'p,__codecs__,A,t,c,1,0,0,\n',
    ['properties.csv:1: Segment (column 2) "__codecs__" is a reserved name and cannot be a segment'],
  ],
  ['a blank name in quotes', 'p,S,"  ",t,c,1,0,0,\n', ['properties.csv:1: Area (column 3) "  " must not be blank']],
  [
    'amenities separated by commas',
    'p,S,A,t,c,1,0,0,"wifi,pool"\n',
    [
      'properties.csv:1: Amenities (column 9) "wifi,pool" as an amenity must not contain a comma; amenities are separated by |',
    ],
  ],
  [
    '65 amenities',
    `p,S,A,t,c,1,0,0,${many(65, (i) => `${i === 0 ? '' : '|'}a${i}`)}\n`,
    [
      `properties.csv:1: Amenities (column 9) "${many(65, (i) => `${i === 0 ? '' : '|'}a${i}`).slice(0, 80)}…" are 65 amenities, more than 64`,
    ],
  ],
  [
    'a property twice, once as a UUID in upper case',
    '550e8400-e29b-41d4-a716-446655440000,S,A,t,c,1,0,0,\nq,S,A,t,c,1,0,0,\n550E8400-E29B-41D4-A716-446655440000,S,A,t,c,1,0,0,\n',
    ['properties.csv:3: PropertyID (column 1) "550E8400-E29B-41D4-A716-446655440000" repeats the property of line 1'],
  ],
  [
    'several faults, counted to the end of the file',
    'p,S,A,t,c,0,0,0,\n\nq,S,A,t,c,1,,0,\n',
    [
      'properties.csv:1: Stars (column 6) "0" is not a whole number from 1 to 5',
      'properties.csv:3: Latitude (column 7) is not a number from -90 to 90',
    ],
  ],
  ['nothing', '\n', ['properties.csv: has no properties']],
])('properties: %s', async (_, properties, errors) => {
  write(properties, '')

  expect(await errorsOf()).toEqual(errors)
})

test('errors of both files are reported, but none for a package of a refused property', async () => {
  write('p,S,A,t,c,9,0,0,\n', 'p,r,2026-09-10,1,1,\np,r,2026-09-10,1,1,\nq,r,2026-09-10,1,1,\n')

  expect(await errorsOf()).toEqual([
    'properties.csv:1: Stars (column 6) "9" is not a whole number from 1 to 5',
    'packages.csv:2: the line repeats property, room type and date of line 1: "p,r,2026-09-10"',
    'packages.csv:3: PropertyID (column 1) "q" is not a property of properties.csv',
  ])
})

test('at most the requested number of errors is kept, and all are counted by kind and column', async () => {
  write(PROPERTY, `p,r,2026-09-10,1,1,\n${many(1000, () => 'p,r,never,300,1,\n')}q,r,2026-09-11,1,1,\n`)

  const outcome = await buildSnapshot(env, optionsOf({ errorsMax: 3, threads: 2 }))

  expect(outcome).toMatchObject({ ok: false, errors: { count: 2001, countByKind: { date: 1000 } } })
  expect(!outcome.ok && outcome.errors.first.map(({ line }) => line)).toEqual([2, 2, 3])
  const groups = outcome.ok ? [] : outcome.errors.groups
  expect(groups.map(({ count, first }) => [count, printedFinding(first)])).toEqual([
    [1000, 'packages.csv:2: Date (column 3) "never" is not a date YYYY-MM-DD'],
    [1000, 'packages.csv:2: Availability (column 4) "300" is not a whole number from 0 to 255'],
    [1, 'packages.csv:1002: PropertyID (column 1) "q" is not a property of properties.csv'],
  ])
})

test('a header is skipped but counts as a line', async () => {
  write(
    `\ufeffProperty-ID,a,b,c,d,e,f,g,h\r\n${PROPERTY}`,
    'property_id,room_type,date,availability,price,features\np,r,2026-09-10,1,1,\np,r,2026-09-99,1,1,\n',
  )

  expect(await errorsOf()).toEqual(['packages.csv:3: Date (column 3) "2026-09-99" is not a date YYYY-MM-DD'])
})

test('packages outside the window are skipped and counted, or errors', async () => {
  const lines = [FIRST_DAY - 1, FIRST_DAY, FIRST_DAY + DAYS - 1, FIRST_DAY + DAYS].map(
    (day) => `p,r,${formatDay(day)},1,1,\n`,
  )
  write(PROPERTY, lines.join(''))

  expect(await summaryOf()).toMatchObject({ packages: 2, outOfWindow: 2 })

  rmSync(output, { recursive: true })
  expect(await errorsOf({ outOfWindow: 'error' })).toEqual([
    'packages.csv:1: Date (column 3) "2026-09-03" is outside the window 2026-09-04 to 2026-11-17',
    'packages.csv:4: Date (column 3) "2026-11-18" is outside the window 2026-09-04 to 2026-11-17',
  ])
})

test('a distant repeat, found by another thread, is reported for the later line', async () => {
  const keys = Array.from(
    { length: 100 * DAYS },
    (_, i) => `p,r${i % 100},${formatDay(FIRST_DAY + Math.floor(i / 100))}`,
  )
  write(PROPERTY, [...keys, keys[0], keys[5]].map((key, i) => `${key},1,${i},\n`).join(''))

  for (const options of [{ threads: 1 }, { threads: 3, rangeBytes: 1000 }] as const) {
    expect(await errorsOf(options)).toEqual([
      'packages.csv:7501: the line repeats property, room type and date of line 1: "p,r0,2026-09-04"',
      'packages.csv:7502: the line repeats property, room type and date of line 6: "p,r5,2026-09-04"',
    ])
  }
})

test('a line of 128 MB is skipped in bounded memory, and the next one is read', async () => {
  write(PROPERTY, '')
  const file = openSync(join(input, 'packages.csv'), 'w')
  writeSync(file, 'p,r,2026-09-10,1,1,\n')
  // A sparse file: it reads as NUL bytes and uses no disk space.
  ftruncateSync(file, 2 ** 27)
  writeSync(file, '\np,r,2026-09-10,1,1,\n', 2 ** 27)
  closeSync(file)

  expect(await errorsOf({ threads: 2 })).toEqual([
    'packages.csv:2: the line is longer than 65536 bytes',
    'packages.csv:3: the line repeats property, room type and date of line 1: "p,r,2026-09-10"',
  ])
})

test('slot tables grow while several threads fill them', async () => {
  const count = 30_000
  write(
    many(count, (i) => `p${i},S,A,t,c,1,0,0,\n`),
    many(count, (i) => `p${i},room ${i % 3000},2026-09-10,1,${i},\n`),
  )

  const summary = await summaryOf({ threads: 3, rangeBytes: 20_000 })

  expect(summary).toMatchObject({ packages: count, rows: count, roomTypes: 3000 })
  expect(openSeedFile(realDisk, summary.path).manifest.packages).toBe(count)
})

test('data that does not fit in memory fails with a helpful message, even while threads wait', async () => {
  const count = 20_000
  write(
    many(count, (i) => `p${i},S,A,t,c,1,0,0,\n`),
    many(count, (i) => `p${i},room,2026-09-10,1,${i},\n`),
  )

  for (const memoryBytesMax of [3, 4, 5].map((mib) => mib * 2 ** 20)) {
    const building = buildSnapshot(
      env,
      optionsOf({ threads: 3, rangeBytes: 10_000, blockBytes: 140_000, memoryBytesMax }),
    )

    await expect(building).rejects.toThrow(/do not fit in \d MiB of memory. Narrow the dates with --from and --to/)
    expect(existsSync(output)).toBe(false)
  }
})

test.each<[string, () => void, Partial<ImportOptions>, RegExp]>([
  ['no packages.csv', () => rmSync(join(input, 'packages.csv')), {}, /packages\.csv does not exist/],
  ['no properties.csv', () => rmSync(join(input, 'properties.csv')), {}, /properties\.csv does not exist/],
  ['an end before the beginning', () => {}, { lastDay: FIRST_DAY - 1 }, /--to 2026-09-03 is before --from 2026-09-04/],
  ['too many nights', () => {}, { lastDay: FIRST_DAY + 367 }, /are 368 nights; at most 367 are kept/],
  [
    'a snapshot that is there',
    () => {
      mkdirSync(output)
      writeFileSync(join(output, 'seed.snapshot'), 'precious')
    },
    {},
    /seed\.snapshot already exists. Replace it with --overwrite/,
  ],
  [
    'a folder instead of a file',
    () => {
      rmSync(join(input, 'packages.csv'))
      mkdirSync(join(input, 'packages.csv'))
    },
    {},
    /packages\.csv cannot be read/,
  ],
])('%s is a usage error', async (_, prepare, options, message) => {
  write(PROPERTY, 'p,r,2026-09-10,1,1,\n')
  prepare()

  const error = await buildSnapshot(env, optionsOf(options)).catch((thrown: unknown) => thrown)

  expect(error).toBeInstanceOf(VacancyError)
  expect(error).toMatchObject({ code: 'usage_error', message: expect.stringMatching(message) })
})

test('a failed import leaves an existing snapshot untouched', async () => {
  mkdirSync(output)
  writeFileSync(join(output, 'seed.snapshot'), 'precious')
  write(PROPERTY, 'p,r,2026-09-10,1,1,nope\n')

  const outcome = await buildSnapshot(env, optionsOf({ overwrite: true }))

  expect(outcome.ok).toBe(false)
  expect(readFileSync(join(output, 'seed.snapshot'), 'utf8')).toBe('precious')
})

test('notes report unusual input', async () => {
  write(
    `${PROPERTY}q,S,A,t,c,1,0,0,\n`,
    many(11, (i) => `p,r${i},2026-09-10,1,1,\n`),
  )
  writeFileSync(join(input, 'restrictions.csv'), '')

  const { notes } = await summaryOf()

  expect(notes).toEqual([
    'restrictions.csv is ignored: restrictions are not supported yet',
    '1 property has more than 10 room types',
  ])
})

test('a shard may start with properties and no packages', async () => {
  write(PROPERTY, '')

  const summary = await summaryOf({ threads: 2 })

  expect(summary).toMatchObject({
    packages: 0,
    properties: 1,
    notes: ['packages.csv has no packages for these nights'],
  })
  expect(summary.nights).toBeUndefined()
})

test('progress reports phase, share and rate, and never decreases within a phase', async () => {
  write(
    propertiesFile().join(''),
    randomPackages(createRandom(SEED), { lines: 3000, spoilOneIn: 0, varyOneIn: 0, order: 'grouped' }),
  )
  const seen: { phase: string; done: number; total: number }[] = []

  await summaryOf({ onProgress: (progress) => seen.push(progress) })

  for (const [i, { phase, done, total }] of seen.entries()) {
    expect(done).toBeLessThanOrEqual(total)
    if (i > 0 && seen[i - 1]?.phase === phase) expect(done).toBeGreaterThanOrEqual(seen[i - 1]?.done ?? 0)
  }
  expect(seen.at(-1)).toMatchObject({ phase: 'write' })
})

test('with their decimals, prices are read in the smallest unit', async () => {
  write(PROPERTY, 'p,r,2026-09-10,1,12.00,\np,r,2026-09-11,1,12.5,\np,r,2026-09-12,1,12,\n')

  await summaryOf({ priceDecimals: 2 })

  const prices = packagesOf(openSeedFile(realDisk, join(output, 'seed.snapshot'))).map((text) => text.split('|')[4])
  expect(prices).toEqual(['1200', '1250', '1200'])
})

test('more decimals than the file is said to have are refused', async () => {
  write(PROPERTY, 'p,r,2026-09-10,1,12.005,\n')

  expect(await errorsOf({ priceDecimals: 2 })).toEqual([
    'packages.csv:1: FinalPrice (column 5) "12.005" has more decimals than --price-decimals 2',
  ])
})

test('all errors of a line are reported at once (each used to take a round of its own)', async () => {
  write(`q,S,A,t,c,6,95,0,\n${PROPERTY}`, 'p,r,2026-02-30,256,x,nope\n')

  const errors = await errorsOf()

  expect(errors.map((text) => text.replace(/ .*/, ''))).toEqual([
    ...['properties.csv:1:', 'properties.csv:1:'],
    ...['packages.csv:1:', 'packages.csv:1:', 'packages.csv:1:', 'packages.csv:1:'],
  ])
})

test('a file that changes while it is read is not built (half of it used to be)', async () => {
  write(PROPERTY, 'p,r,2026-09-10,1,1,\n')
  const grow = () => appendFileSync(join(input, 'packages.csv'), 'p,r,2026-09-11,1,1,\n')

  expect(await errorsOf({ onProgress: grow })).toEqual([
    'packages.csv: changed while it was read; build again when it is complete',
  ])
})

test.skipIf(process.platform !== 'linux')('a file that a process still has open for writing is not built', async () => {
  write(PROPERTY, 'p,r,2026-09-10,1,1,\n')
  const writer = openSync(join(input, 'packages.csv'), 'a')

  try {
    expect(await errorsOf()).toEqual([
      `packages.csv: is still open for writing by process ${process.pid}; build again when it is complete`,
    ])
  } finally {
    closeSync(writer)
  }
  expect((await summaryOf()).packages).toBe(1)
})

test('names that only look different are noted', async () => {
  const segments = ['Z\u00fcrich', 'Zu\u0308rich', 'z\u00fcrich', 'Old\u00a0Town', 'Old Town', 'Bern']
  write(segments.map((name, i) => `p${i},${name},A,t,c,3,0,0,\n`).join(''), 'p0,r,2026-09-10,1,1,\n')

  const { notes } = await summaryOf()

  expect(notes.map((note) => note.normalize('NFC'))).toEqual([
    expect.stringMatching(/^segments that look alike are different: .*Old.Town.* and .*; .*Zürich.* and .*zürich/),
  ])
})

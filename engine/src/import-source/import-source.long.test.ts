/** Snapshots from databases and other files, by the real command: equal to those from the documented CSV files. */

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { formatDay, parseDay } from '@vacancy/shared'
import { type MariaDb, startMariaDb } from '@vacancy/testkit/mariadb'
import { type Postgres, startPostgres } from '@vacancy/testkit/postgres'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

const VACANCY = fileURLToPath(new URL('../../../bin/vacancy.mjs', import.meta.url))
const WINDOW = ['--from', '2026-09-01', '--to', '2026-12-31', '--price-decimals', '2']
const CODECS = 'rate_features:\n  - free_wifi\n  - Frühstück\n'

type Hotel = { id: string; region: string; stars: number; latitude: number; longitude: number; amenities: string[] }
type Night = { id: string; room: string; date: string; left: number; cents: number; features: string[] }

const HOTELS: Hotel[] = Array.from({ length: 40 }, (_, i) => ({
  id: i % 2 === 0 ? `h${i}` : `550e8400-e29b-41d4-a716-4466554400${i + 10}`,
  region: ['Zürich', 'Tyrol, south', 'the "old" town'][i % 3] as string,
  stars: 1 + (i % 5),
  latitude: 47 + i / 8,
  longitude: -8.25 - i / 4,
  amenities: [[], ['wifi'], ['wifi', 'pool & bar']][i % 3] as string[],
}))
const FIRST = parseDay('2026-09-01') as number
const NIGHTS: Night[] = HOTELS.flatMap(({ id }, i) =>
  Array.from({ length: 60 }, (_, night) => ({
    ...{ id, room: ['double', 'Süite, large'][night % 2] as string, date: formatDay(FIRST + night) },
    ...{ left: (i + night) % 9, cents: 9900 + 105 * night + 100_000 * (i % 2) },
    features: [[], ['free_wifi'], ['free_wifi', 'Frühstück']][night % 3] as string[],
  })),
)

const price = (cents: number) => `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`
const cell = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
const rowOf = (...cells: (string | number)[]) => `${cells.map((each) => cell(String(each))).join(',')}\n`

let root: string
let postgres: Postgres
let address: string
let expected: Buffer

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'vacancy-source-'))
  const csv = join(root, 'csv')
  mkdirSync(csv)
  writeFileSync(join(csv, 'codecs.yml'), CODECS)
  writeFileSync(join(csv, 'properties.csv'), hotelRows().join(''))
  writeFileSync(join(csv, 'packages.csv'), nightRows().join(''))
  const { status, stderr } = vacancy(['build-snapshot', '--shard-id', 's1', '--input-path', csv, ...WINDOW])
  expect(stderr).toBe('')
  expect(status).toBe(0)
  expected = readFileSync(join(csv, 'seed.snapshot'))
  postgres = await startPostgres()
  address = await postgres.createDatabase()
  await fillPostgres()
})
afterAll(async () => {
  await postgres?.close()
  rmSync(root, { recursive: true })
})

const hotelRows = () =>
  HOTELS.map(({ id, region, stars, latitude, longitude, amenities }) =>
    rowOf(id, region, `${region} centre`, 'hotel', 'standard', stars, latitude, longitude, amenities.join('|')),
  )
const nightRows = () =>
  NIGHTS.map(({ id, room, date, left, cents, features }) =>
    rowOf(id, room, date, left, price(cents), features.join('|')),
  )

async function fillPostgres(): Promise<void> {
  const client = new pg.Client({ connectionString: address })
  await client.connect()
  await client.query(`
    CREATE SCHEMA stock;
    CREATE TABLE stock.hotels (id text, region varchar(80), "Stars" numeric(3,1), lat double precision, lon numeric, amenities text[]);
    CREATE TABLE stock.nights (hotel_id text, room text, night date, rooms_left smallint, price numeric(10,2), features text[]);
    CREATE TABLE stock.texts (id text, room text, night text, rooms_left text, price text, features text)`)
  for (const { id, region, stars, latitude, longitude, amenities } of HOTELS)
    await client.query('INSERT INTO stock.hotels VALUES ($1, $2, $3, $4, $5, $6)', [
      ...[id, region, stars, latitude, longitude, amenities],
    ])
  for (const { id, room, date, left, cents, features } of NIGHTS)
    await client.query('INSERT INTO stock.nights VALUES ($1, $2, $3, $4, $5, $6)', [
      ...[id, room, date, left, price(cents), features],
    ])
  await client.end()
}

function vacancy(args: readonly string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [VACANCY, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
  return { status, stdout, stderr }
}

/** Writes a mapping into a folder of its own, and imports by it. */
function importBy(
  mapping: object,
  { args = [] as string[], env = {}, files = {} as Record<string, string | Buffer> } = {},
) {
  const folder = mkdtempSync(join(root, 'map-'))
  const output = join(folder, 'out')
  writeFileSync(join(folder, 'codecs.yml'), CODECS)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  const file = join(folder, 'mapping.json')
  writeFileSync(file, JSON.stringify(mapping))
  const again = () =>
    vacancy(['import-source', file, '--shard-id', 's1', '--output-path', output, ...WINDOW, ...args], env)
  return { ...again(), folder, output, again }
}

const seedOf = (output: string) => readFileSync(join(output, 'seed.snapshot'))

/** The tables as PostgreSQL has them. */
const HOTEL_COLUMNS = {
  PropertyID: 'id',
  Segment: 'region',
  Area: 'area',
  PropertyType: { value: 'hotel' },
  Category: { value: 'standard' },
  Latitude: 'lat',
  Longitude: 'lon',
}
const NIGHT_COLUMNS = {
  PropertyID: 'hotel_id',
  RoomType: 'room',
  Date: 'night',
  Availability: 'rooms_left',
  FinalPrice: 'price',
  RateFeature: 'features',
}
const HOTELS_SQL = "SELECT *, region || ' centre' AS area FROM stock.hotels;"
const ofPostgres = (packages: object = { table: 'stock.nights', columns: NIGHT_COLUMNS }) => ({
  source: { kind: 'postgres', url: 'env:HOTELS_URL' },
  properties: { sql: HOTELS_SQL, columns: HOTEL_COLUMNS },
  packages,
})

test('tables and a query of PostgreSQL give the bytes that the CSV files give, without DuckDB', () => {
  const { status, stdout, stderr, output } = importBy(ofPostgres(), { env: { HOTELS_URL: address } })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(/note: read 40 properties and 2,400 packages from the source in/)
  expect(seedOf(output).equals(expected)).toBe(true)
  expect(readdirSync(output)).toEqual(['seed.snapshot'])
})

test('a password is taken from its place and shown nowhere', () => {
  const url = new URL(address)
  const { password } = url
  url.password = ''
  const source = { kind: 'postgres', url: url.href, password: 'file:secret' }
  const right = importBy({ ...ofPostgres(), source }, { files: { secret: password } })
  url.port = '1'
  const wrong = importBy({ ...ofPostgres(), source: { ...source, url: url.href } }, { files: { secret: password } })

  expect(right.status).toBe(0)
  expect(wrong.status).toBe(1)
  expect(wrong.stderr).toMatch(/PostgreSQL: .*ECONNREFUSED/)
  expect(wrong.stderr + right.stdout).not.toContain(password)
})

test('errors are counted by column and name the rows and columns of the source; nothing is written', async () => {
  const client = new pg.Client({ connectionString: address })
  await client.connect()
  await client.query(`INSERT INTO stock.texts
    SELECT 'h0', 'double', to_char(date '2026-09-01' + i % 100, 'MM/DD/YYYY'), '3', '12,50', '' FROM generate_series(0, 99) i;
    INSERT INTO stock.texts VALUES ('h0', 'single', '24.12.2026', '3', '1.250,00', 'free_wfi'), ('h0', 'single', '31.02.2026', '3', '12.50', '')`)
  await client.end()
  const columns = {
    ...NIGHT_COLUMNS,
    PropertyID: 'id',
    Date: { column: 'night', date: 'DD.MM.YYYY' },
    FinalPrice: { column: 'price', decimal: ',', thousands: '.' },
  }
  const mapping = ofPostgres({ table: 'stock.texts', columns })
  const args = ['--max-errors', '2', '--errors', join(root, 'errors.jsonl')]
  const { status, stdout, stderr, output } = importBy(mapping, { args, env: { HOTELS_URL: address } })

  expect({ status, stdout }).toEqual({ status: 65, stdout: '' })
  expect(stderr.trimEnd().split('\n')).toEqual([
    'stock.texts row 1: night as Date "09/01/2026" is not a date DD.MM.YYYY',
    'stock.texts row 2: night as Date "09/02/2026" is not a date DD.MM.YYYY',
    '… and 101 more; --max-errors shows more of them. All, by their first:',
    '  101 like stock.texts row 1: night as Date "09/01/2026" is not a date DD.MM.YYYY',
    '  1 like stock.texts row 101: features as RateFeature "free_wfi" is not in the codec list; the nearest entry is "free_wifi"',
    '  1 like stock.texts row 102: price as FinalPrice "12.50" is not a number with "," before its decimals, with "." between thousands',
    '103 errors; nothing was written',
  ])
  expect(existsSync(output)).toBe(false)
  expect(JSON.parse(readFileSync(join(root, 'errors.jsonl'), 'utf8').split('\n')[0] ?? '')).toMatchObject({
    ...{ file: 'stock.texts', line: 1, name: 'night', as: 'Date', value: '09/01/2026' },
  })
})

test('a dry run shows the first rows as they would be imported, and builds nothing', () => {
  const { status, stdout, stderr, output } = importBy(ofPostgres(), {
    args: ['--dry-run'],
    env: { HOTELS_URL: address },
  })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(/^properties\.csv from properties of the query\n {2}PropertyID +Segment +Area/)
  expect(stdout).toMatch(/\n {2}h0 +double +2026-09-01 +0 +99\.00\n/)
  expect(stdout).toMatch(/0 errors in the first 1,000 rows of each table; nothing was written\n$/)
  expect(existsSync(output)).toBe(false)
})

test.each<[string, object, RegExp]>([
  ['a table that does not exist', { table: 'stock.night' }, /PostgreSQL: relation "stock.night" does not exist/],
  ['a query with a mistake', { sql: 'SELEC 1' }, /PostgreSQL: syntax error/],
  ['a query that writes', { sql: 'DELETE FROM stock.nights RETURNING *' }, /PostgreSQL: syntax error/],
  [
    'a column that is missing',
    { table: 'stock.nights', columns: { ...NIGHT_COLUMNS, Date: 'nigth' } },
    /"nigth", mapped to Date, is not a column; the nearest is "night"/,
  ],
])('%s is refused before anything is read', (_, packages, message) => {
  const { status, stderr, output } = importBy(ofPostgres(packages), { env: { HOTELS_URL: address } })

  expect(status).toBe(64)
  expect(stderr).toMatch(message)
  expect(existsSync(output)).toBe(false)
})

test('a window that no import has is refused before anything is read', () => {
  const args = ['--from', '2026-09-01', '--to', '2026-08-31']
  const { status, stderr } = importBy(ofPostgres(), { args, env: { HOTELS_URL: 'postgres://me@127.0.0.1:1/none' } })

  expect({ status, stderr }).toEqual({
    status: 64,
    stderr: 'vacancy import-source: --to 2026-08-31 is before --from 2026-09-01\n',
  })
})

/** Installed by the command that the error prints, for all mappings below. */
test('without DuckDB the error says how to install it, and then it works', () => {
  const german = {
    source: { kind: 'csv', delimiter: ';', encoding: 'windows-1252' },
    properties: {
      file: 'hotels.csv',
      columns: {
        ...{ Area: 'Ort', PropertyType: { value: 'hotel' }, Category: { value: 'standard' }, Segment: 'Region' },
        ...{ PropertyID: 'Nr', Stars: { column: 'Sterne', default: '1' } },
        ...{ Latitude: { column: 'Breite', decimal: ',' }, Longitude: { column: 'Länge', decimal: ',' } },
        Amenities: { column: 'Ausstattung', separator: ',' },
      },
    },
    packages: {
      file: 'nights-*.csv',
      columns: {
        ...{ PropertyID: 'Nr', RoomType: 'Zimmer', Date: { column: 'Datum', date: 'D.M.YYYY' }, Availability: 'frei' },
        ...{ FinalPrice: { column: 'Preis', decimal: ',', thousands: '.' } },
        RateFeature: { column: 'Merkmale', separator: '/' },
      },
    },
  }
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
  const hotels = HOTELS.map(({ id, region, stars, latitude, longitude, amenities }) =>
    [
      ...[id, quoted(region), quoted(`${region} centre`), stars === 1 ? '' : stars],
      ...[...[latitude, longitude].map((each) => String(each).replace('.', ',')), amenities.join(',')],
    ].join(';'),
  )
  const nights = NIGHTS.map(({ id, room, date, left, cents, features }) => {
    const [year, month, day] = date.split('-').map(Number)
    const amount = price(cents)
      .replace('.', ',')
      .replace(/^(\d)(\d{3})/, '$1.$2')
    return [id, room, `${day}.${month}.${year}`, left, amount, features.join('/')].join(';')
  })
  const latin1 = (...lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n`, 'latin1')
  const files = {
    'hotels.csv': latin1('Nr;Region;Ort;Sterne;Breite;Länge;Ausstattung', ...hotels),
    'nights-1.csv': latin1('Nr;Zimmer;Datum;frei;Preis;Merkmale', ...nights.slice(0, 1000)),
    'nights-2.csv': latin1('Nr;Zimmer;Datum;frei;Preis;Merkmale', ...nights.slice(1000)),
  }
  const { status, stderr, folder, output, again } = importBy(german, { files })

  expect(status).toBe(64)
  const command = /npm install --no-save --prefix "(.*)" (@duckdb\/node-api@\S+)/.exec(stderr)
  expect(command?.[1]).toBe(folder)
  // Above all mappings of this file.
  execFileSync('npm', ['install', '--no-save', '--prefix', root, command?.[2] ?? ''], { stdio: 'ignore' })
  expect(again()).toMatchObject({ status: 0, stderr: '' })
  expect(seedOf(output).equals(expected)).toBe(true)
  expect(readdirSync(output)).toEqual(['seed.snapshot'])
})

/** Runs statements with the package that the test before installed. */
async function runDuckDb(database: string, ...statements: string[]): Promise<void> {
  const { DuckDBInstance } = createRequire(join(root, 'x.js'))('@duckdb/node-api')
  const instance = await DuckDBInstance.create(database)
  const connection = await instance.connect()
  for (const sql of statements) await connection.run(sql)
  connection.closeSync()
  instance.closeSync()
}

const readCsv = (name: string, columns: string) =>
  `read_csv('${join(root, 'csv', name)}', header = false, all_varchar = true, names = [${columns}])`
const TYPED_HOTELS = () =>
  `SELECT id AS PropertyID, segment, area, kind AS PropertyType, category, stars::DOUBLE AS stars, lat::DOUBLE AS latitude,
     lon::DECIMAL(9,4) AS longitude, string_split(amenities, '|') AS amenities
   FROM ${readCsv('properties.csv', "'id','segment','area','kind','category','stars','lat','lon','amenities'")}`
const TYPED_NIGHTS = () =>
  `SELECT id AS property_id, room AS room_type, night::TIMESTAMP AS date, free::UTINYINT AS availability,
     price::DECIMAL(12,2) AS final_price, string_split(features, '|') AS rate_feature
   FROM ${readCsv('packages.csv', "'id','room','night','free','price','features'")}`

test('Parquet files with our column names need no columns in the mapping', async () => {
  const [hotels, nights] = ['hotels.parquet', 'nights.parquet'].map((name) => join(root, name))
  await runDuckDb(
    ':memory:',
    `COPY (${TYPED_HOTELS()}) TO '${hotels}' (FORMAT parquet)`,
    `COPY (${TYPED_NIGHTS()}) TO '${nights}' (FORMAT parquet)`,
  )
  const mapping = { source: { kind: 'parquet' }, properties: { file: hotels }, packages: { file: nights } }
  const { status, stderr, output } = importBy(mapping)

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(seedOf(output).equals(expected)).toBe(true)
})

test('a query reads files as the table source, and tables may have different sources', () => {
  const nights = join(root, 'nights.parquet')
  const sql = 'SELECT * FROM source WHERE final_price > 0 ORDER BY date'
  const packages = { source: { kind: 'parquet' }, file: nights, sql }
  const { status, stderr, output } = importBy(ofPostgres(packages), { env: { HOTELS_URL: address } })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(seedOf(output).equals(expected)).toBe(true)
})

test('a database of DuckDB is read by the names of its tables', async () => {
  const file = join(root, 'stock.duckdb')
  await runDuckDb(file, `CREATE TABLE hotels AS ${TYPED_HOTELS()}`, `CREATE TABLE nights AS ${TYPED_NIGHTS()}`)
  const mapping = {
    source: { kind: 'duckdb', file },
    properties: { table: 'hotels' },
    packages: { table: 'main.nights' },
  }
  const { status, stderr, output } = importBy(mapping)

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(seedOf(output).equals(expected)).toBe(true)
})

test('an import keeps others out of its folder; an interrupted one ends and leaves no rows behind', async () => {
  const sql = (rows: number) =>
    `SELECT s.* REPLACE ('x' || i AS property_id) FROM source s CROSS JOIN range(${rows}) t(i) WHERE s.final_price > 0`
  const nights = { file: join(root, 'nights.parquet'), sql: sql(10_000) }
  const folder = mkdtempSync(join(root, 'map-'))
  writeFileSync(join(folder, 'codecs.yml'), CODECS)
  const properties = { file: join(root, 'hotels.parquet') }
  writeFileSync(
    join(folder, 'mapping.json'),
    JSON.stringify({ source: { kind: 'parquet' }, properties, packages: nights }),
  )
  const output = join(folder, 'out')
  const args = ['import-source', join(folder, 'mapping.json'), '--shard-id', 's1', '--output-path', output, ...WINDOW]
  const child = spawn(process.execPath, [VACANCY, ...args], { stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await expect.poll(() => existsSync(join(output, 'import-source.tmp', 'packages.csv'))).toBe(true)

  const { status, stderr } = vacancy([...args, '--dry-run'], {})
  expect({ status, stderr }).toEqual({
    status: 65,
    stderr: `vacancy import-source: ${output} is in use by another process, which calls itself process ${child.pid}. Stop it, or choose another directory.\n`,
  })
  expect(existsSync(join(output, 'import-source.tmp', 'packages.csv'))).toBe(true)
  child.kill('SIGTERM')
  expect(await ended).toBe(1)
  expect(readdirSync(output)).toEqual([])
})

test('lines of a CSV file that are no rows are counted and named', () => {
  const files = {
    'properties.csv': `PropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities\n${hotelRows().join('')}`,
    'packages.csv':
      'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature\nh0,r,2026-09-01,1,12\nh0,r,2026-09-02,1,12,,x\nh0,r,2026-09-03,1,12,\n',
  }
  const mapping = {
    source: { kind: 'csv' },
    properties: { file: 'properties.csv' },
    packages: { file: 'packages.csv' },
  }
  const { status, stderr, output } = importBy(mapping, { files })

  expect(status).toBe(65)
  expect(stderr).toMatch(/packages\.csv:2: the line is no row: Expected .*: "h0,r,2026-09-01,1,12"\n/)
  expect(stderr).toMatch(/packages\.csv:3: the line is no row: /)
  expect(stderr).toMatch(/2 errors; nothing was written\n$/)
  expect(existsSync(output)).toBe(false)
})

test('a file in another encoding than its mapping is refused, with the place', () => {
  const files = { 'h.csv': Buffer.from('Region\nZ\xfcrich\n', 'latin1'), 'n.csv': 'x\n' }
  const mapping = {
    source: { kind: 'csv', encoding: 'shift_jis' },
    properties: { file: 'h.csv' },
    packages: { file: 'n.csv' },
  }
  const { status, stderr } = importBy(mapping, { files })

  expect({ status, stderr }).toMatchObject({ status: 65, stderr: expect.stringMatching(/h\.csv is not shift_jis/) })
})

/** The extension that DuckDB loads for MySQL, from a package of Python: its own place of extensions may be out of reach. */
function duckDbMySql(): string {
  const cache = join(homedir(), '.cache', 'vacancy', 'duckdb-extensions')
  const find = () => globSync('**/mysql_scanner.duckdb_extension', { cwd: cache })[0]
  if (find() === undefined) {
    mkdirSync(cache, { recursive: true })
    const wanted = ['duckdb-extension-mysql-scanner==1.5.5', '--no-deps', '--target', cache]
    execFileSync('python3', ['-m', 'pip', 'install', '--quiet', '--root-user-action=ignore', ...wanted], {
      stdio: 'inherit',
    })
    for (const packed of globSync('**/*.duckdb_extension.gz', { cwd: cache }))
      writeFileSync(join(cache, packed.slice(0, -3)), gunzipSync(readFileSync(join(cache, packed))))
  }
  return join(cache, find() ?? 'no extension in the package')
}

let mariadb: MariaDb | undefined
afterAll(() => mariadb?.close())

test('tables of MySQL give the same bytes', async () => {
  mariadb = await startMariaDb()
  const hotels = HOTELS.map(({ id, region, stars, latitude, longitude, amenities }) => {
    const texts = [id, region, `${region} centre`, amenities.join(',')].map((text) => `'${text}'`)
    return `(${[...texts, stars, latitude, longitude].join(', ')})`
  })
  const nights = NIGHTS.map(
    ({ id, room, date, left, cents, features }) =>
      `('${id}', '${room}', '${date}', ${left}, ${price(cents)}, '${features.join(',')}')`,
  )
  mariadb.run(`CREATE DATABASE stock CHARACTER SET utf8mb4; USE stock;
    CREATE TABLE hotels (id varchar(40), region varchar(80), area varchar(80), amenities varchar(200), stars tinyint, lat double, lon decimal(9,4));
    CREATE TABLE nights (hotel_id varchar(40), room varchar(80), night date, rooms_left tinyint unsigned, price decimal(10,2), features varchar(200));
    INSERT INTO hotels VALUES ${hotels.join(',\n')};
    INSERT INTO nights VALUES ${nights.join(',\n')};`)
  const { user, password, port } = mariadb
  const mapping = {
    source: {
      kind: 'mysql',
      url: `mysql://${user}@127.0.0.1:${port}/stock`,
      password: 'env:STOCK_PASSWORD',
      extension: duckDbMySql(),
    },
    properties: { table: 'hotels', columns: { ...HOTEL_COLUMNS, Amenities: { column: 'amenities', separator: ',' } } },
    packages: { table: 'nights', columns: { ...NIGHT_COLUMNS, RateFeature: { column: 'features', separator: ',' } } },
  }
  const { status, stderr, output } = importBy(mapping, { env: { STOCK_PASSWORD: password } })
  const wrong = importBy(mapping, { env: { STOCK_PASSWORD: 'a-wrong-password' } })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(seedOf(output).equals(expected)).toBe(true)
  expect(wrong.status).toBe(64)
  expect(wrong.stderr).toMatch(/DuckDB: .*Access denied/s)
  expect(wrong.stderr).not.toContain('a-wrong-password')
})

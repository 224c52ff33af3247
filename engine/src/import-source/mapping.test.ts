import { VacancyError } from '@vacancy/shared'
import { expect, test } from 'vitest'
import type { Finding } from '../import/row-errors.ts'
import { dateFormFault, dateFormOf } from './date-form.ts'
import { parseMapping } from './mapping.ts'
import { renamedFor, selectOf } from './select.ts'

const TABLES = { properties: { table: 'hotels' }, packages: { table: 'nights' } }
const POSTGRES = { kind: 'postgres', url: 'env:DATABASE_URL' }

const mappingOf = (value: object) => parseMapping(value, '/maps', 'mapping.json')

function faultsOf(value: object): string[] {
  try {
    mappingOf(value)
  } catch (error) {
    if (error instanceof VacancyError)
      return error.message.split('\n').map((line) => line.replace('mapping.json: ', ''))
    throw error
  }
  return []
}

test('a mapping may be short: tables whose columns have our names', () => {
  const { properties, packages } = mappingOf({ source: POSTGRES, ...TABLES })

  expect(properties).toMatchObject({ kind: 'properties', table: 'hotels', label: 'hotels', columns: {} })
  expect(packages.source).toBe(properties.source)
})

test('files and places of secrets are relative to the mapping file', () => {
  const csv = mappingOf({ source: { kind: 'csv' }, properties: { file: 'h.csv' }, packages: { file: '/n/*.csv' } })
  const server = mappingOf({ source: { ...POSTGRES, password: 'file:secret' }, ...TABLES })

  expect([csv.properties.file, csv.packages.file]).toEqual(['/maps/h.csv', '/n/*.csv'])
  expect(server.packages.source).toMatchObject({ url: 'env:DATABASE_URL', password: 'file:/maps/secret' })
})

test.each<[string, object, string[]]>([
  ['an unknown key', { sorce: {}, source: POSTGRES, ...TABLES }, ['"sorce" is not known; did you mean source?']],
  [
    'a table that is missing',
    { source: POSTGRES, packages: { table: 'n' } },
    ['properties: is missing; it says which rows become properties.csv'],
  ],
  [
    'no source',
    { ...TABLES },
    [
      'properties: has no source, and the file has none for both',
      'packages: has no source, and the file has none for both',
    ],
  ],
  [
    'an unknown kind of source',
    { source: { kind: 'postgresql' }, ...TABLES },
    ['source.kind: "postgresql" is not one of csv, parquet, duckdb, postgres, mysql'],
  ],
  [
    'a key of another kind of source',
    { source: { ...POSTGRES, delimiter: ';' }, ...TABLES },
    ['source.delimiter: is not for a source of kind postgres'],
  ],
  [
    'a password in the file',
    { source: { kind: 'postgres', url: 'postgres://me:secret@db/hotels' }, ...TABLES },
    [
      'source.url: has a password; give its place as "password": "env:NAME" or "file:PATH", or the place of the whole address',
    ],
  ],
  [
    'a password that is no place',
    { source: { ...POSTGRES, password: 'secret' }, ...TABLES },
    ['source.password: is the place of the password, env:NAME or file:PATH, not the password itself'],
  ],
  [
    'an address of something else',
    { source: { kind: 'mysql', url: 'http://db/hotels' }, ...TABLES },
    ['source.url: is not an address such as mysql://user@host/database, nor env:NAME or file:PATH'],
  ],
  [
    'a table and a query',
    { source: POSTGRES, ...TABLES, packages: { table: 'nights', sql: 'SELECT 1' } },
    ['packages: needs either "table" or "sql"'],
  ],
  [
    'a file of a database',
    { source: POSTGRES, ...TABLES, packages: { file: 'n.csv', table: 'n' } },
    ['packages.file: is not for a source of kind postgres; give "table" or "sql"'],
  ],
  [
    'a separator of two characters',
    { source: { kind: 'csv', delimiter: ';;' }, properties: { file: 'h' }, packages: { file: 'n' } },
    ['source.delimiter: ";;" must be one character'],
  ],
  [
    'an encoding that is none',
    { source: { kind: 'csv', encoding: 'utf-61le' }, properties: { file: 'h' }, packages: { file: 'n' } },
    ['source.encoding: "utf-61le" is not known; did you mean utf-16le?'],
  ],
])('a mapping with %s is refused by name', (_, value, faults) => {
  expect(faultsOf(value)).toEqual(faults)
})

test.each<[string, object, string]>([
  [
    'an unknown column',
    { FinalPrise: 'price' },
    'packages.columns: "FinalPrise" is not known; did you mean FinalPrice?',
  ],
  ['a column twice', { FinalPrice: 'a', final_price: 'b' }, 'packages.columns: FinalPrice is given twice'],
  [
    'a form of another column',
    { RoomType: { column: 'r', date: 'DD.MM.YYYY' } },
    'packages.columns.RoomType.date: is not for RoomType',
  ],
  [
    'neither column nor value',
    { FinalPrice: { decimal: ',' } },
    'packages.columns.FinalPrice: needs either "column" or "value"',
  ],
  [
    'one sign for two things',
    { FinalPrice: { column: 'p', decimal: ',', thousands: ',' } },
    'packages.columns.FinalPrice: "decimal" and "thousands" are the same sign',
  ],
  [
    'a form that is none',
    { Date: { column: 'd', date: 'TT.MM.JJJJ' } },
    'packages.columns.Date.date: "TT.MM.JJJJ" is not a form such as DD.MM.YYYY, M/D/YYYY or YYYYMMDD; use "sql" for others',
  ],
])('a column mapping with %s is refused by name', (_, columns, fault) => {
  expect(faultsOf({ source: POSTGRES, ...TABLES, packages: { table: 'nights', columns } })).toContain(fault)
})

test.each([
  ['DD.MM.YYYY', '24.12.2026'],
  ['D.M.YYYY', '4.2.2026'],
  ['MM/DD/YYYY', '12/24/2026'],
  ['YYYYMMDD', '20261224'],
  ['DD.MM.YYYY 00:00', '24.12.2026 00:00'],
])('the form %s matches %s and no other date', (form, date) => {
  expect(dateFormFault(form)).toBeUndefined()
  const { pattern, year, month, day } = dateFormOf(form)
  const found = new RegExp(pattern).exec(date)
  const [y, m, d] = [year, month, day].map((group) => Number(found?.[group]))
  expect([y, m, d]).toEqual(form.startsWith('D.M') ? [2026, 2, 4] : [2026, 12, 24])
  expect(new RegExp(pattern).test('2026-12-24')).toBe(false)
})

const NIGHTS = [
  { name: 'hotel_id', type: 'uuid' },
  { name: 'arrival', type: 'text' },
  { name: 'Room Type', type: 'VARCHAR' },
  { name: 'price', type: 'numeric(10,2)' },
]
const COLUMNS = {
  PropertyID: 'hotel_id',
  Date: { column: 'arrival', date: 'DD.MM.YYYY' },
  Availability: { value: '1' },
  FinalPrice: 'price',
  RateFeature: { value: '' },
}
const nights = (columns: object) =>
  mappingOf({ source: POSTGRES, ...TABLES, packages: { table: 'nights', columns } }).packages

test('a column that is not mapped is one of the same name, whatever its case, blanks and signs', () => {
  expect(selectOf(nights(COLUMNS), NIGHTS)).toContain('"Room Type"')
})

test('types whose text the import reads are not converted, since a database takes seconds for a million conversions', () => {
  const found = [...NIGHTS, { name: 'day', type: 'date' }, { name: 'left', type: 'smallint' }]
  const select = selectOf(nights({ ...COLUMNS, Date: 'day', Availability: 'left' }), found)

  expect(select).toContain('CAST(source_rows."day" AS TEXT) AS "Date",\n')
  expect(select).toContain('CAST(source_rows."left" AS TEXT) AS "Availability",\n')
})

test.each<[string, object, string]>([
  [
    'a column that the table lacks',
    { ...COLUMNS, Date: 'arival' },
    '"arival", mapped to Date, is not a column; the nearest is "arrival"',
  ],
  ['a column that nothing fills', { ...COLUMNS, Availability: undefined }, 'has no column Availability'],
  [
    'a form for a number',
    { ...COLUMNS, FinalPrice: { column: 'price', decimal: ',' } },
    'price is numeric(10,2): "decimal" is for text',
  ],
])('%s is refused with the columns of the table', (_, columns, fault) => {
  const given = Object.fromEntries(Object.entries(columns).filter(([, each]) => each !== undefined))
  expect(() => selectOf(nights(given), NIGHTS)).toThrow(fault)
  expect(() => selectOf(nights(given), NIGHTS)).toThrow('its columns are hotel_id, arrival, Room Type, price')
})

test('errors have the names, rows and forms of the source', () => {
  const rename = renamedFor([nights(COLUMNS)])
  const finding = (given: Partial<Finding>): Finding => ({
    ...{
      file: 'packages.csv',
      line: 3,
      column: 3,
      name: 'Date',
      value: '',
      kind: 'date',
      message: 'is not a date YYYY-MM-DD',
    },
    ...given,
  })

  expect(rename(finding({ value: '\u000124/12/26' }))).toMatchObject({
    ...{ file: 'nights', line: 2, name: 'arrival', as: 'Date', value: '24/12/26', message: 'is not a date DD.MM.YYYY' },
  })
  // In its form, but no day.
  expect(rename(finding({ value: '2026-02-30' })).message).toBe('is not a date YYYY-MM-DD')
  expect(rename(finding({ column: 0, message: 'repeats the night of line 2' })).message).toBe(
    'repeats the night of row 1',
  )
})

/** Row errors of an import: what is stored, shown in pages, and downloaded to be fixed. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { REJECTED_FILES } from '@vacancy/shared/contract'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { csvCell, errorsPage, keptOf, rejectedFile } from './rejected.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-rejected-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

type Stored = { readonly file?: string; readonly line?: number; readonly row?: string; readonly row64?: string }

/** An error as build-snapshot writes it. */
const stored = (change: Stored & { readonly [name: string]: unknown }) => ({
  ...{ file: 'packages.csv', line: 2, column: 1, name: 'price', value: 'x', kind: 'number', message: 'not a number' },
  ...change,
})
function fileOf(...errors: readonly object[]): string {
  const file = join(folder, 'errors')
  writeFileSync(file, errors.map((each) => `${JSON.stringify(each)}\n`).join('\n'))
  return file
}
const base64 = (...bytes: number[]) => Buffer.from(bytes).toString('base64')

// What is stored

test('errors, their lines and their records are counted by file', async () => {
  const file = fileOf(
    stored({ line: 2, row: 'a,b' }),
    stored({ line: 2, row: 'a,b', column: 2 }),
    stored({ line: 7, file: 'properties.csv', row: 'p' }),
    stored({ line: 2, file: 'properties.csv' }),
  )

  expect(await keptOf(file)).toEqual({
    of: { properties: 2, packages: 2 },
    lines: { properties: new Set([7, 2]), packages: new Set([2]) },
    rows: 3,
  })
})

test('a record that continues after line ends has all of its lines', async () => {
  const text = Buffer.from('é\n\n"').toString('base64')
  const { lines, rows } = await keptOf(fileOf(stored({ line: 5, row: '"a\nb\nc"' }), stored({ line: 20, row64: text })))

  expect([[...lines.packages], rows]).toEqual([[5, 6, 7, 20, 21, 22], 2])
})

test('an error of a whole file leaves no rows to omit', async () => {
  expect(await keptOf(fileOf(stored({ line: 2 }), stored({ line: 0 })))).toMatchObject({
    ...{ of: { properties: 0, packages: 2 }, rows: undefined },
  })
  expect(await keptOf(fileOf())).toMatchObject({ of: { properties: 0, packages: 0 }, rows: 0 })
})

// Pages

const numbered = (count: number) => Array.from({ length: count }, (_, at) => stored({ line: at + 2 }))

test.each([
  [0, 2, [2, 3], 2],
  [2, 2, [4, 5], 4],
  [3, 2, [5, 6], null],
  [4, 2, [6], null],
  [5, 2, [], null],
  [0, 5, [2, 3, 4, 5, 6], null],
  [0, 4, [2, 3, 4, 5], 4],
])('the page from error %d with %d errors', async (cursor, limit, lines, next) => {
  const page = await errorsPage(fileOf(...numbered(5)), { cursor, limit })

  expect([page.errors.map(({ line }) => line), page.next, page.total]).toEqual([lines, next, 5])
})

const ALL = { cursor: 0, limit: 100 }

test('a page has the errors of one kind, and counts only those', async () => {
  const file = fileOf(stored({ line: 2 }), stored({ line: 3, kind: 'date' }), stored({ line: 4 }))

  expect(await errorsPage(file, { cursor: 0, limit: 1, kind: 'number' })).toMatchObject({
    ...{ errors: [{ line: 2 }], next: 1, total: 2 },
  })
  expect((await errorsPage(file, { ...ALL, kind: 'other' })).errors).toEqual([])
})

test.each<[string, number[]]>([
  ['1200', [1_200]],
  ['1,200', [1_200]],
  ['line 1,200', [1_200]],
  ['LINE 12', [12]],
  ['12', [12]],
  ['lines 12', []],
  ['packages', [12]],
  ['PROP', [1_200]],
  ['Blue', [12]],
  ['late', [1_200]],
  ['room-7', [12]],
  ['nothing', []],
])('the text %j finds the errors of lines %j', async (text, lines) => {
  const file = fileOf(
    stored({ line: 12, value: 'blue', row: 'Room-7,1200' }),
    stored({ line: 1_200, file: 'properties.csv', message: 'too Late' }),
  )

  expect((await errorsPage(file, { ...ALL, text })).errors.map(({ line }) => line)).toEqual(lines)
})

test('a row is shown as text with at most 2,000 characters, or as null', async () => {
  const file = fileOf(
    stored({ row: 'x'.repeat(2_001) }),
    stored({ row64: Buffer.from('né').toString('base64') }),
    stored({}),
    stored({ row: '' }),
  )

  const { errors } = await errorsPage(file, ALL)

  expect(errors.map(({ row }) => row)).toEqual(['x'.repeat(2_000), 'né', null, ''])
  expect(errors[1]).toEqual({ ...stored({}), row: 'né' })
})

// Downloads

const download = async (file: string, which: (typeof REJECTED_FILES)[number]) => await buffer(rejectedFile(file, which))

test('rejected rows of each file have their exact bytes', async () => {
  const file = fileOf(
    stored({ row: 'a,"b\nc"' }),
    stored({ row64: base64(0xff, 0x00, 0x0d) }),
    stored({}),
    stored({ row: '' }),
    stored({ row: 'é', file: 'properties.csv' }),
  )

  const bytes = await download(file, 'rejected-packages.csv')
  expect(bytes).toEqual(Buffer.concat([Buffer.from('a,"b\nc"\n'), Buffer.from([0xff, 0x00, 0x0d, 0x0a, 0x0a])]))
  expect(String(await download(file, 'rejected-properties.csv'))).toBe('é\n')
})

test('the list of errors is a CSV file that spreadsheets read as text', async () => {
  const file = fileOf(
    stored({ value: '=1+1', message: 'not "a" number' }),
    stored({ line: 3, column: 0, value: 'a,b' }),
  )

  expect(String(await download(file, 'errors.csv'))).toBe(
    [
      'file,line,column,name,kind,value,message',
      `packages.csv,2,1,price,number,"'=1+1","not ""a"" number"`,
      'packages.csv,3,0,price,number,"a,b",not a number',
      '',
    ].join('\r\n'),
  )
})

test.each<[object[]]>([[[]], [[stored({ row: 'a' })]], [[stored({ row: 'a' }), stored({})]]])(
  'the list of errors is JSON: case %#',
  async (errors) => {
    const text = String(await download(fileOf(...errors), 'errors.json'))

    expect(JSON.parse(text)).toEqual(errors.map((each) => ({ row: null, ...each })))
    expect(text.endsWith(']\n')).toBe(true)
  },
)

test.each<[string | number, string]>([
  ['plain', 'plain'],
  ['', ''],
  [5, '5'],
  [-5, '-5'],
  ['a b', 'a b'],
  ['a,b', '"a,b"'],
  ['a"b', '"a""b"'],
  ['a\nb', '"a\nb"'],
  ['a\rb', '"a\rb"'],
  ['=1', `"'=1"`],
  ['+1', `"'+1"`],
  ['-1', `"'-1"`],
  ['@x', `"'@x"`],
  ['\tx', `"'\tx"`],
  ['\rx', `"'\rx"`],
  ['="x"', `"'=""x"""`],
  ['1=1', '1=1'],
])('the cell of %j', (value, expected) => {
  expect(csvCell(value)).toBe(expected)
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { REJECTED_FILES } from '@vacancy/shared/contract'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { countersOf } from './build-import.ts'
import { difference, type Side } from './compare.ts'
import { csvCell, errorsPage, keptOf, rejectedFile } from './rejected.ts'
import { cleanName } from './upload-files.ts'

test.each([
  ['packages.csv', 'packages.csv'],
  ['../../etc/passwd', 'passwd'],
  ['C:\\data\\packages.csv', 'packages.csv'],
  ['a\u0000b\u202ec\n.csv', 'abc.csv'],
  ['..', 'file.csv'],
  ['/', 'file.csv'],
  ['   ', 'file.csv'],
])('the name %j is displayed as %j', (given, shown) => {
  expect(cleanName(given)).toBe(shown)
})

test.each([
  ['plain', 'plain'],
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
  ['=1+1', `"'=1+1"`],
  ['+1', `"'+1"`],
  ['-1', `"'-1"`],
  ['@x', `"'@x"`],
  ['\t=x', `"'\t=x"`],
])('the cell %j is written as %j', (given, written) => {
  expect(csvCell(given)).toBe(written)
})

test('differing counters are listed', () => {
  const read = { properties: { rows: 2 }, packages: { rows: 10 } }
  const done = { properties: 2, packages: 8, outOfWindow: 2 }

  expect(countersOf(read, done, { properties: 2, packages: 8 })).toMatchObject({ agree: true, differs: [] })
  expect(countersOf(read, { ...done, outOfWindow: 1 }, { properties: 2, packages: 7 })).toMatchObject({
    agree: false,
    differs: [
      'packages.csv has 10 rows, the builder accepted 8 and omitted 1',
      'the builder accepted 8 packages, the snapshot has 7',
    ],
  })
})

test('rows that were rejected before are counted apart', () => {
  const done = { properties: 2, packages: 7, outOfWindow: 2 }
  const readBack = { properties: 2, packages: 7 }
  const counters = (properties: number, packages: number) =>
    countersOf(
      { properties: { rows: 3, rejected: properties }, packages: { rows: 10, rejected: packages } },
      done,
      readBack,
    )

  expect(counters(1, 1)).toMatchObject({ agree: true, differs: [], rejected: { properties: 1, packages: 1 } })
  expect(counters(0, 2)).toMatchObject({
    agree: false,
    differs: [
      'properties.csv has 3 rows, 0 of them rejected before, the builder accepted 2',
      'packages.csv has 10 rows, 2 of them rejected before, the builder accepted 7 and omitted 2',
    ],
  })
  expect(counters(0, 0).differs).toEqual([
    'properties.csv has 3 rows, the builder accepted 2',
    'packages.csv has 10 rows, the builder accepted 7 and omitted 2',
  ])
  expect(counters(0, 0)).not.toHaveProperty('rejected')
})

const side = (segments: { [name: string]: { properties: number; days: { [day: number]: number } } }): Side => ({
  head: {
    ...{ title: '', kind: 'snapshot', id: '', node: null, at: '2026-11-20T00:00:00.000Z' },
    ...{ properties: 0, packages: 0, window: null, codecHash: 'ab', codecs: ['breakfast'] },
  },
  segments: new Map(
    Object.entries(segments).map(([name, { properties, days }]) => {
      const byDay = new Map(Object.entries(days).map(([day, packages]) => [Number(day), packages]))
      return [name, { properties, packages: [...byDay.values()].reduce((sum, each) => sum + each, 0), days: byDay }]
    }),
  ),
})

test('a difference covers the days of both sides, segment by segment', () => {
  const a = side({ alpine: { properties: 1, days: { 20777: 5 } }, coast: { properties: 2, days: { 20778: 1 } } })
  const b = side({ alpine: { properties: 1, days: { 20777: 3, 20779: 2 } }, lakes: { properties: 4, days: {} } })

  const found = difference(a, b)

  expect(found).toMatchObject({ equal: false, codecsEqual: true, window: { from: '2026-11-20', to: '2026-11-22' } })
  expect(found.segments.map(({ name, in: where, days }) => [name, where, days])).toEqual([
    ['alpine', 'both', [-2, 0, 2]],
    ['coast', 'a', [0, -1, 0]],
    ['lakes', 'b', [0, 0, 0]],
  ])
  expect(difference(a, a).equal).toBe(true)
  expect(difference(side({}), side({}))).toMatchObject({ equal: true, window: null, segments: [] })
})

describe('rejected', () => {
  /** Row errors of an import: what is stored, shown in pages, and downloaded to be fixed. */

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

  test('a record that continues after line ends has all of its lines', async () => {
    const text = Buffer.from('é\n\n"').toString('base64')
    const { lines, rows } = await keptOf(
      fileOf(stored({ line: 5, row: '"a\nb\nc"' }), stored({ line: 20, row64: text })),
    )

    expect([[...lines.packages], rows]).toEqual([[5, 6, 7, 20, 21, 22], 2])
  })

  test('errors that differ only in their lines are counted together, the most frequent first', async () => {
    const unknown = { column: 6, name: 'rate_feature', value: 'pool', kind: 'feature', message: 'is not in the list' }
    const file = fileOf(stored({ line: 2 }), ...[3, 4, 5].map((line) => stored({ line, ...unknown })))

    const { alike } = await errorsPage(file, { cursor: 0, limit: 2 })
    expect(alike).toMatchObject([
      { ...unknown, line: 3, count: 3 },
      { value: 'x', line: 2, count: 1 },
    ])
    expect((await errorsPage(file, { cursor: 0, limit: 2, kind: 'number' })).alike).toHaveLength(1)
  })

  const download = async (file: string, which: (typeof REJECTED_FILES)[number]) =>
    await buffer(rejectedFile(file, which))

  test('rejected rows of each file have their exact bytes, each row once', async () => {
    const file = fileOf(
      stored({ row: 'a,"b\nc"' }),
      // Another fault of the same row.
      stored({ row: 'a,"b\nc"', column: 2 }),
      stored({ line: 4, row64: base64(0xff, 0x00, 0x0d) }),
      stored({ line: 5 }),
      stored({ line: 6, row: '' }),
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
})

/** Row errors of an import: what is stored, shown in pages, and downloaded to be fixed. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { REJECTED_FILES } from '@vacancy/shared/contract'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keptOf, rejectedFile } from './rejected.ts'

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
  const { lines, rows } = await keptOf(fileOf(stored({ line: 5, row: '"a\nb\nc"' }), stored({ line: 20, row64: text })))

  expect([[...lines.packages], rows]).toEqual([[5, 6, 7, 20, 21, 22], 2])
})

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

import { expect, test } from 'vitest'
import { type Fault, fileFinding, findingLine, findingOf, printedFinding } from './row-errors.ts'

const COLUMNS = ['PropertyID', 'RoomType', 'Date']

const printed = (fault: Fault) => printedFinding(findingOf('packages.csv', 7, COLUMNS, fault))

test.each<[Fault, string]>([
  [{ kind: 'empty', column: 2, value: '' }, 'packages.csv:7: RoomType (column 2) is empty'],
  [
    { kind: 'date', column: 3, value: '2026-13-01' },
    'packages.csv:7: Date (column 3) "2026-13-01" is not a date YYYY-MM-DD',
  ],
  [{ kind: 'date', column: 3, value: 'a"\n' }, 'packages.csv:7: Date (column 3) "a\\"\\n" is not a date YYYY-MM-DD'],
  [
    { kind: 'columns', column: 0, value: '', found: 2, expected: 6 },
    'packages.csv:7: the line has 2 cells instead of 6',
  ],
  [
    { kind: 'package_twice', column: 0, value: 'p,r,2026-01-01', firstLine: 3 },
    'packages.csv:7: the line repeats property, room type and date of line 3: "p,r,2026-01-01"',
  ],
  [
    { kind: 'window', column: 3, value: '2020-01-01', range: '2026-01-01 to 2026-12-31' },
    'packages.csv:7: Date (column 3) "2020-01-01" is outside the window 2026-01-01 to 2026-12-31',
  ],
  [
    { kind: 'text', column: 2, value: 'x', reason: 'has a control character' },
    'packages.csv:7: RoomType (column 2) "x" has a control character',
  ],
  [
    { kind: 'rooms', column: 2, value: 'r', found: 257, expected: 256 },
    'packages.csv:7: RoomType (column 2) "r" is room type 257 of its property; 256 is the limit',
  ],
  // A text without its value has a gap, not the name of the field.
  [{ kind: 'window', column: 3, value: 'x' }, 'packages.csv:7: Date (column 3) "x" is outside the window '],
])('%j is printed as a sentence', (fault, text) => {
  expect(printed(fault)).toBe(text)
})

test('an unknown rate feature names the nearest entry, or all when none is near', () => {
  const fault: Fault = { kind: 'feature', column: 1, value: 'free_wfi', codecs: ['breakfast', 'free_wifi'] }

  expect(printed(fault)).toMatch(/"free_wfi" is not in the codec list; the nearest entry is "free_wifi"$/)
  expect(printed({ ...fault, value: 'q' })).toMatch(/"q" is not in the codec list \(breakfast, free_wifi\)$/)
  expect(printed({ kind: 'feature', column: 1, value: 'q' })).toMatch(/is not in the codec list \(\)$/)
})

test('a finding has file, line, column with its name, value, kind and text', () => {
  const row = Uint8Array.of(0x61)

  expect(findingOf('f.csv', 9, COLUMNS, { kind: 'empty', column: 1, value: '' }, row)).toEqual({
    ...{ file: 'f.csv', line: 9, column: 1, name: 'PropertyID', value: '', kind: 'empty', message: 'is empty' },
    row,
  })
  expect(findingOf('f.csv', 9, COLUMNS, { kind: 'unclosed', column: 0, value: '' })).toEqual({
    ...{ file: 'f.csv', line: 9, column: 0, name: '', value: '', kind: 'unclosed' },
    message: 'opens a quote that is not closed',
  })
})

test('an error of a whole file has no line', () => {
  const finding = fileFinding('f.csv', 'form', 'is UTF-16; save it as UTF-8')

  expect(finding).toEqual({
    ...{ file: 'f.csv', line: 0, column: 0, name: '', value: '', kind: 'form' },
    message: 'is UTF-16; save it as UTF-8',
  })
  expect(printedFinding(finding)).toBe('f.csv: is UTF-16; save it as UTF-8')
})

test('the report has the row as text, and as base64 when it is not UTF-8', () => {
  const fault: Fault = { kind: 'empty', column: 1, value: '' }
  const bytes = Uint8Array.of(0x78, 0xc3, 0xa4, 0xff)
  const lineOf = (row?: Uint8Array) => JSON.parse(findingLine(findingOf('f', 1, COLUMNS, fault, row)))
  const plain = { file: 'f', line: 1, column: 1, name: 'PropertyID', value: '', kind: 'empty', message: 'is empty' }

  expect(lineOf()).toEqual(plain)
  expect(lineOf(bytes.subarray(1, 3))).toEqual({ ...plain, row: 'ä' })
  expect(lineOf(bytes.subarray(1))).toEqual({ ...plain, row64: 'w6T/' })
  expect(lineOf(new Uint8Array(0))).toEqual({ ...plain, row: '' })
})

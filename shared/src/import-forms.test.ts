import { expect, test } from 'vitest'
import { formatOf } from './file-format.ts'
import { otherForm } from './import-forms.ts'

const packages = (...dates: string[]) => dates.map((date) => ['p', 'double', date, '3', '120', ''])
const prices = (...all: string[]) => all.map((price) => ['p', 'double', '2026-12-24', '3', price, ''])

test.each<[string, string[], string]>([
  ['days first, by a day above 12', ['01.12.2026', '24.12.2026'], 'DD.MM.YYYY'],
  ['days first, as points mean', ['01.12.2026'], 'DD.MM.YYYY'],
  ['months first, by a day above 12', ['12/01/2026', '12/24/2026'], 'MM/DD/YYYY'],
  ['either first', ['01/12/2026', '02/12/2026'], 'DD/MM/YYYY or MM/DD/YYYY'],
  ['without zeros', ['1.12.2026', '24.12.2026'], 'D.M.YYYY'],
  ['years first', ['2026/12/24'], 'YYYY/MM/DD'],
  ['digits alone', ['20261224'], 'YYYYMMDD'],
  ['a time', ['2026-12-24 00:00:00'], 'a date with a time'],
  ['names of months', ['24-Dec-2026', 'Dec 24, 2026'], 'a date with the name of a month'],
])('dates in another form are named: %s', (_, dates, form) => {
  expect(otherForm('packages', packages(...dates))).toMatchObject({ column: 2, looksLike: form })
})

test.each<[string, string[]]>([
  ['the form of the import', ['2026-12-24']],
  ['a day that is none', ['2026-02-30']],
  ['a wrong date among right ones', ['2026-12-24', '24.12.2026']],
  ['a word', ['tomorrow']],
])('no form is seen in %s', (_, dates) => {
  expect(otherForm('packages', packages(...dates))).toBeUndefined()
})

test('decimals with a comma are named, with the row that has one', () => {
  expect(otherForm('packages', prices('120', '99,90'))).toEqual({
    column: 4,
    row: 1,
    looksLike: 'a decimal with a comma',
    mapping: '"decimal": ","',
  })
  expect(otherForm('packages', prices('1.120,50'))?.mapping).toBe('"decimal": ",", "thousands": "."')
  expect(otherForm('packages', prices('120', '99.90'))).toBeUndefined()
  const property = ['p', 'S', 'A', 'hotel', 'luxury', '4', '47,37', '8,54', '']
  expect(otherForm('properties', [property])).toMatchObject({ column: 6, looksLike: 'a decimal with a comma' })
})

test('a decimal comma without quotes is named, where a row used to have one cell too many', () => {
  const row = ['p', 'double', '2026-12-24', '3', '120', '50', 'breakfast']
  expect(otherForm('packages', [row, row])).toMatchObject({
    column: 4,
    looksLike: expect.stringContaining('no quotes'),
  })
  expect(otherForm('packages', [row, row.slice(1)])).toBeUndefined()
})

test.each<[string, string, BufferEncoding, string | undefined]>([
  ['UTF-16 without a byte order mark', 'p,double,2026-12-24,3,120,\n', 'utf16le', 'utf16'],
  ['Latin-1', 'p,Zürich,2026-12-24,3,120,\n', 'latin1', 'latin1'],
  ['UTF-8', 'p,Zürich,2026-12-24,3,120,\n', 'utf8', undefined],
  ['a byte beside a word', 'p,ÿ,2026-12-24,3,120,\n', 'latin1', undefined],
])('text in %s is told by its first bytes', (_, text, encoding, name) => {
  expect(formatOf(Buffer.from(text, encoding))?.name).toBe(name)
})

test('a file with any valid UTF-8 beyond ASCII is not taken for Latin-1', () => {
  const mixed = Buffer.concat([Buffer.from('Zürich\n', 'latin1'), Buffer.from('Zürich\n', 'utf8')])
  expect(formatOf(mixed)).toBeUndefined()
})

import { createCodecList } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { createCells, createPackageParser, LINE_BYTES_MAX, parsePackage, readRecord } from './csv.ts'

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))

function cellsOf(text: string, isLast = true) {
  const cells = createCells()
  const bytes = bytesOf(text)
  const scanned = readRecord(cells, bytes, 0, bytes.length, isLast)
  const values = Array.from({ length: Math.min(cells.count, 32) }, (_, i) =>
    Buffer.from(cells.text.slice(cells.starts[i], cells.ends[i])).toString('latin1'),
  )
  return { scanned, values, next: cells.next, lines: cells.lines }
}

test.each([
  ['plain cells', 'a,b\nc', ['a', 'b'], 4],
  ['CR LF', 'a,b\r\nc', ['a', 'b'], 5],
  ['blanks trimmed outside', ' a\t, b c \n', ['a', 'b c'], 10],
  ['blanks kept inside quotes', '" a ", b\n', [' a ', 'b'], 9],
  ['a comma in quotes', '"a,b",c\n', ['a,b', 'c'], 8],
  ['doubled quotes', '"a""b",""""\n', ['a"b', '"'], 12],
  ['a line end in quotes', '"a\nb",c\nd', ['a\nb', 'c'], 8],
  ['a quote inside an unquoted cell', 'a"b,c"\n', ['a"b', 'c"'], 7],
  ['empty cells', ',,\n', ['', '', ''], 3],
  ['an empty quoted cell', '""\n', [''], 3],
  ['no last line end', 'a,b', ['a', 'b'], 3],
  ['a quoted cell at the very end', 'a,"b"', ['a', 'b'], 5],
  ['a lone CR inside', 'a\rb,c\n', ['a\rb', 'c'], 6],
  ['blanks behind a closing quote', '"a" \t,b\r\n', ['a', 'b'], 9],
])('%s', (_, text, values, next) => {
  expect(cellsOf(text)).toMatchObject({ scanned: 'record', values, next })
})

test.each([
  ['an empty line', '\nx', 'blank', 1],
  ['a line of blanks', ' \t\r\nx', 'blank', 4],
  ['a quote that is not closed', 'a,"b\nc\n', 'unclosed', 5],
  ['text behind a closing quote', '"a"b,c\nd\n', 'trailing', 7],
  ['a line above the limit', `a,${'x'.repeat(LINE_BYTES_MAX)}\nb`, 'long', LINE_BYTES_MAX],
  ['a quote that is not closed within the limit', `"a\n${'x'.repeat(LINE_BYTES_MAX)}`, 'unclosed', 3],
])('%s is reported', (_, text, scanned, next) => {
  expect(cellsOf(text)).toMatchObject({ scanned, next })
})

test('a line of exactly the limit is read', () => {
  expect(cellsOf(`${'x'.repeat(LINE_BYTES_MAX - 1)}\nb`, false)).toMatchObject({
    scanned: 'record',
    next: LINE_BYTES_MAX,
  })
  expect(cellsOf(`${'x'.repeat(LINE_BYTES_MAX)}\nb`, false)).toMatchObject({ scanned: 'long' })
})

test('a truncated record is incomplete, or the whole record', () => {
  for (const text of ['a,"b""c", d \r\n', '"a\nb",c\r\n', 'x,y,\n']) {
    for (let end = 0; end < text.length; end++) {
      expect(cellsOf(text.slice(0, end), false), JSON.stringify(text.slice(0, end))).toMatchObject({
        scanned: 'incomplete',
      })
    }
    expect(cellsOf(text, false).next).toBe(text.length)
  }
})

test('cells beyond the kept ones are counted', () => {
  const cells = createCells()
  const bytes = bytesOf(`${','.repeat(999)}\n`)

  readRecord(cells, bytes, 0, bytes.length, true)

  expect(cells.count).toBe(1000)
})

const codecs = createCodecList(['free_wifi', 'late', 'Frühstück'])

function packageOf(line: string) {
  const parser = createPackageParser(codecs)
  const bytes = new TextEncoder().encode(`${line}\n`)
  readRecord(parser.cells, bytes, 0, bytes.length, true)
  const fault = parsePackage(parser)
  const { day, availability, price, mask } = parser
  return fault ?? { day, availability, price, mask }
}

test('values of a package', () => {
  expect(packageOf('p,r,2026-11-20,3,120,late')).toEqual({ day: 20_777, availability: 3, price: 120, mask: 2 })
  expect(packageOf('p,r,2028-02-29,255,4294967294,')).toMatchObject({
    day: 21_243,
    availability: 255,
    price: 4294967294,
    mask: 0,
  })
  expect(packageOf('p,r,1970-01-01,000,0.000,Frühstück|free_wifi')).toMatchObject({
    day: 0,
    availability: 0,
    price: 0,
    mask: 5,
  })
  expect(packageOf('p,r,2026-11-20,3,120,| late||late |')).toMatchObject({ mask: 2 })
})

test('the leftmost error is reported', () => {
  expect(packageOf('p,r,2026-02-30,256,x,nope')).toMatchObject({ kind: 'date', column: 3, value: '2026-02-30' })
  expect(packageOf('p,r,2026-02-28,256,x,nope')).toMatchObject({ kind: 'availability', column: 4, value: '256' })
  expect(packageOf('p,r,2026-02-28,25,1.5,nope')).toMatchObject({ kind: 'price_fraction', column: 5, value: '1.5' })
  expect(packageOf('p,r,2026-02-28,25,1,late|lat')).toMatchObject({ kind: 'feature', column: 6, value: 'lat' })
})

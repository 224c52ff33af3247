import { createCodecList } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  arrangeCells,
  cellTexts,
  createCells,
  createPackageParser,
  faultInFile,
  LINE_BYTES_MAX,
  parsePackage,
  readRecord,
  rowOf,
} from './csv.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

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
  expect(packageOf('p,r,1970-01-01,000,000,Frühstück|free_wifi')).toMatchObject({
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

const LIMIT = LINE_BYTES_MAX
const xs = (count: number) => 'x'.repeat(count)

/** Result, next offset and line ends of the record at 0, in the middle and at the end of a file. */
test.each<[string, boolean, ReturnType<typeof readRecord>, number | undefined, number | undefined]>([
  // A quote that does not close ends at the first line end inside of it, or at the end of the file.
  ['"a', true, 'unclosed', 2, 0],
  ['"a', false, 'incomplete', undefined, undefined],
  ['"a\nb\nc', true, 'unclosed', 3, 1],
  ['x,"a\nb"c', true, 'trailing', 8, 1],
  ['"a""', true, 'unclosed', 4, 0],
  ['"a"', true, 'record', 3, 0],
  ['"a"', false, 'incomplete', undefined, undefined],
  ['"a"b', true, 'trailing', 4, 0],
  ['"a"b', false, 'incomplete', undefined, undefined],
  ['"a"b\nc', true, 'trailing', 5, 1],
  ['"a\nb"c\nd', true, 'trailing', 7, 2],
  ['"a" b\nc', false, 'trailing', 6, 1],
  ['"a"\rb\n', false, 'trailing', 6, 1],
  ['"a"\r', true, 'record', 4, 0],
  ['"a"\r', false, 'incomplete', undefined, undefined],
  ['"a"\r\nb', false, 'record', 5, 1],
  ['"a\nb"\nc', false, 'record', 6, 2],
  ['""\n', false, 'record', 3, 1],
  ['', true, 'blank', 0, 0],
  ['', false, 'incomplete', undefined, undefined],
  [' ', true, 'blank', 1, 0],
  ['\r', true, 'blank', 1, 0],
  [',', true, 'record', 1, 0],
  ['a,', false, 'incomplete', undefined, undefined],
  ['a,', true, 'record', 2, 0],
  // The limit of a line, with and without its end.
  [xs(LIMIT - 1), false, 'incomplete', undefined, undefined],
  [xs(LIMIT), true, 'record', LIMIT, 0],
  [xs(LIMIT), false, 'long', LIMIT, 0],
  [xs(LIMIT + 1), true, 'long', LIMIT, 0],
  [`${xs(LIMIT - 1)}\n`, false, 'record', LIMIT, 1],
  [`${xs(LIMIT)}\n`, true, 'long', LIMIT, 0],
  [`"${xs(LIMIT)}"\n`, true, 'long', LIMIT, 0],
  [`"a\n${xs(LIMIT)}"\n`, true, 'unclosed', 3, 1],
  [`"a"${xs(LIMIT)}\n`, true, 'long', LIMIT, 0],
  [`"a"${xs(LIMIT - 4)}\n`, false, 'trailing', LIMIT, 1],
])('record %#', (text, isLast, scanned, next, lines) => {
  const result = cellsOf(text, isLast)

  expect(result.scanned, JSON.stringify(text.slice(0, 20))).toBe(scanned)
  if (next !== undefined) expect([result.next, result.lines]).toEqual([next, lines])
})

/** What the grammar of CSV requires of well-formed text, cell by cell. */
function randomRecord(random: Random): { text: string; cells: string[] } {
  const letters = ['a', 'b', ',', '"', ' ', '\t', '\n', '\r', 'é']
  const cells = Array.from({ length: 1 + random.below(5) }, () =>
    Array.from({ length: random.below(6) }, () => letters[random.below(letters.length)]).join(''),
  )
  const written = cells.map((cell) => {
    const blanks = [' ', '', '\t '][random.below(3)]
    return /^[^\s",]+$/.test(cell) && random.below(2) === 0
      ? `${blanks}${cell}${blanks}`
      : `${blanks}"${cell.replaceAll('"', '""')}"${blanks}`
  })
  return { text: `${written.join(',')}${random.below(2) === 0 ? '\n' : '\r\n'}`, cells }
}

test('drawn records are read cell by cell', () => {
  const random = createRandom(SEED)
  for (let n = 0; n < 300; n++) {
    const { text, cells } = randomRecord(random)
    const context = `VACANCY_SEED=${SEED}, ${JSON.stringify(text)}`
    const bytes = text.length

    const { scanned, values, next, lines } = cellsOf(text + ['', 'x', '\n', '"'][n % 4])

    expect(scanned, context).toBe('record')
    expect(values, context).toEqual(cells)
    expect([next, lines], context).toEqual([bytes, text.split('\n').length - 1])
  }
})

test.each([
  ['a,b\n', 'a,b'],
  ['a,b\r\n', 'a,b'],
  ['a,b\r', 'a,b'],
  ['a,b', 'a,b'],
  ['\n', ''],
  ['\r\n', ''],
  ['', ''],
  ['\n\n', '\n'],
  ['\r\r\n', '\r'],
  [`${xs(LIMIT + 5)}\n`, xs(LIMIT)],
])('a report has the row %# without its line end', (text, row) => {
  expect(Buffer.from(rowOf(bytesOf(`\n${text}`), 1, 1 + text.length)).toString('latin1')).toBe(row)
})

function scan(text: string) {
  const cells = createCells()
  const bytes = new TextEncoder().encode(text)
  return { cells, scanned: readRecord(cells, bytes, 0, bytes.length, true) }
}

test('cells are arranged by the header, and errors name the column of the file', () => {
  const order = [2, 0, 1]
  const { cells } = scan('room,2026-01-01,p,rest\n')

  arrangeCells(cells, order)

  expect(cellTexts(cells)).toEqual(['p', 'room', '2026-01-01', 'rest'])
  const fault = { kind: 'date', column: 3, value: 'x' } as const
  expect(faultInFile(fault, order)).toEqual({ ...fault, column: 2 })
  expect(faultInFile({ ...fault, column: 1 }, order)).toEqual({ ...fault, column: 3 })
  expect(faultInFile({ ...fault, column: 0 }, order)).toEqual({ ...fault, column: 0 })
  expect(faultInFile(fault, undefined)).toBe(fault)
})

test.each([
  ['p,r,2026-11-20,3,120', { kind: 'columns', column: 0, value: 'p,r,2026-11-20,3,120', found: 5, expected: 6 }],
  ['p,r,2026-11-20,3,120,late,', { kind: 'columns', column: 0, found: 7, expected: 6 }],
  ['an id too long,r,2026-11-20,3,120,', undefined],
  ['an id too long.,r,2026-11-20,3,120,', { kind: 'property_id', column: 1, value: 'an id too long.' }],
  ['p,,2026-11-20,3,120,', { kind: 'empty', column: 2, value: '' }],
  [`p,${xs(255)},2026-11-20,3,120,`, undefined],
  [`p,${xs(256)},2026-11-20,3,120,`, { kind: 'text', column: 2, value: `${xs(80)}…` }],
  ['p,a\u0001,2026-11-20,3,120,', { kind: 'text', column: 2, value: 'a\u0001' }],
  ['p,r,2026-11-2,3,120,', { kind: 'date', column: 3, value: '2026-11-2' }],
  ['p,r,2026-11-200,3,120,', { kind: 'date', column: 3 }],
  ['p,r,1970-01-01,255,120,', undefined],
  ['p,r,2026-11-20,256,120,', { kind: 'availability', column: 4 }],
  ['p,r,2026-11-20,,120,', { kind: 'availability', column: 4, value: '' }],
  ['p,r,2026-11-20,-1,120,', { kind: 'availability', column: 4 }],
  ['p,r,2026-11-20,3,4294967294,', undefined],
  ['p,r,2026-11-20,3,4294967295,', { kind: 'price', column: 5 }],
  ['p,r,2026-11-20,3,,', { kind: 'price', column: 5, value: '' }],
  ['p,r,2026-11-20,3,.0,', { kind: 'price', column: 5 }],
  ['p,r,2026-11-20,3,1.,', { kind: 'price', column: 5 }],
  ['p,r,2026-11-20,3,1.x,', { kind: 'price', column: 5 }],
  ['p,r,2026-11-20,3,12.00,', { kind: 'price_fraction', column: 5, value: '12.00' }],
  ['p,r,2026-11-20,3,1.01,', { kind: 'price_fraction', column: 5, value: '1.01' }],
  ['p,r,2026-11-20,3,1.0.0,', { kind: 'price', column: 5 }],
  ['p,r,2026-11-20,3,1,Late', { kind: 'feature', column: 6, value: 'Late' }],
  ['p,r,2026-11-20,3,1,late|latest', { kind: 'feature', column: 6, value: 'latest' }],
  [`p,r,2026-11-20,3,1,${xs(400)}|late`, { kind: 'feature', column: 6, value: `${xs(80)}…` }],
])('the line %# is a package or names its first error', (line, fault) => {
  if (fault === undefined) expect(packageOf(line)).toHaveProperty('price')
  else expect(packageOf(line)).toMatchObject(fault)
})

test('an unknown rate feature carries the list of the known ones', () => {
  expect(packageOf('p,r,2026-11-20,3,1,x')).toMatchObject({ codecs: codecs.names })
})

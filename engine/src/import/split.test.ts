import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom } from '@vacancy/testkit/random'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PADDING_BYTES } from './layout.ts'
import { createBlocks, nextBlock, openCsv, openRange, rangeBytesFor, skipLine } from './split.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-split-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Lines of all ranges one after the other; `<long>` for those that do not fit the buffer. */
function linesOf(content: string, capacity: number, rangeBytes: number): string[] {
  const path = join(folder, 'file.csv')
  writeFileSync(path, content, 'latin1')
  const file = openSync(path, 'r')
  const lines: string[] = []
  try {
    const bytes = new Uint8Array(capacity + PADDING_BYTES)
    const blocks = createBlocks(file, path, content.length, bytes)
    for (let start = 0; start < content.length; start += rangeBytes) {
      openRange(blocks, start, Math.min(start + rangeBytes, content.length), start === 0)
      for (let state = nextBlock(blocks); state !== 'end'; state = nextBlock(blocks)) {
        if (state === 'long') {
          lines.push('<long>')
          skipLine(blocks)
          continue
        }
        const text = Buffer.from(bytes.subarray(blocks.start, blocks.end)).toString('latin1')
        expect(text.endsWith('\n')).toBe(true)
        lines.push(...text.slice(0, -1).split('\n'))
      }
    }
  } finally {
    closeSync(file)
  }
  return lines
}

test('every line is read once and in order, for any split into ranges and blocks', () => {
  for (let round = 0; round < 300; round++) {
    const random = createRandom(SEED + round)
    const capacity = 16 + random.below(40)
    const lines = Array.from({ length: random.below(30) }, (_, i) =>
      String.fromCharCode(97 + (i % 26)).repeat(random.below(random.below(6) === 0 ? 120 : 15)),
    )
    const endsWithLineEnd = random.below(2) === 0
    const content = lines.join('\n') + (endsWithLineEnd && lines.length > 0 ? '\n' : '')
    // Without a line end the last line is one only if it has bytes.
    const whole = !endsWithLineEnd && lines.at(-1) === '' ? lines.slice(0, -1) : lines

    const read = linesOf(content, capacity, 1 + random.below(content.length + 5))

    const context = `VACANCY_SEED=${SEED}, round ${round}`
    expect(read.length, context).toBe(whole.length)
    for (const [i, line] of whole.entries()) {
      if (line.length + 1 <= capacity && read[i] !== '<long>') expect(read[i], context).toBe(line)
      else expect(line.length + 1, context).toBeGreaterThanOrEqual(capacity)
    }
  }
})

test('a range inside one long line contains no line', () => {
  expect(linesOf(`a\n${'x'.repeat(500)}\nb\n`, 64, 20)).toEqual(['a', '<long>', 'b'])
})

const OTHERS = 'RoomType,Date,Availability,FinalPrice,RateFeature'

test.each([
  ['a header', `PropertyID,${OTHERS}\n`, 'p,r\n', 2],
  ['a header in other words', `"Property_ID " ,${OTHERS}\r\n`, 'p,r\r\n', 2],
  ['a header of other names', 'propertyid,a,b,c,d,e\n', 'p,r\r\n', 2],
  ['a byte order mark and a header', `\u00ef\u00bb\u00bfproperty-id,${OTHERS}\n`, 'p', 2],
  ['empty lines before the header', `\n\r\npropertyid,${OTHERS}\n`, 'p', 4],
  ['a header whose names go over lines', `PropertyID,"Room\nType"${OTHERS.slice(8)}\n`, 'p', 3],
  ['no header', '', 'p,r\n', 1],
  ['a byte order mark alone', '\u00ef\u00bb\u00bf', 'p,r\n', 1],
  ['nothing', '', '', 1],
])('data begins after %s', (_, head, rest, firstLine) => {
  const [content, dataStart] = [`${head}${rest}`, head.length]
  const path = join(folder, 'head.csv')
  writeFileSync(path, content, 'latin1')

  const opened = openCsv(path, 'packages')

  closeSync(opened.file)
  expect(opened).toMatchObject({ dataStart, firstLine, bytes: content.length })
})

const UTF16 = 'is UTF-16; save it as UTF-8, or use vacancy import-source with "encoding": "utf-16le"'

test('UTF-16 is refused as a whole', () => {
  const path = join(folder, 'wide.csv')
  writeFileSync(path, Buffer.from('\ufeffPropertyID,', 'utf16le'))

  const opened = openCsv(path, 'packages')

  closeSync(opened.file)
  expect(opened.fault).toEqual({ kind: 'form', message: UTF16 })
})

test('a header in another order determines the columns', () => {
  const path = join(folder, 'moved.csv')
  writeFileSync(path, `\nRateCancel,FinalPrice,Availability,Date,RoomType,PropertyID\n`)

  const opened = openCsv(path, 'packages')

  closeSync(opened.file)
  expect(opened).toMatchObject({
    order: [5, 4, 3, 2, 1, 0],
    columns: ['RateFeature', 'FinalPrice', 'Availability', 'Date', 'RoomType', 'PropertyID'],
    firstLine: 3,
  })
})

test('a header that lacks a column makes the file unreadable, and its line is named', () => {
  const path = join(folder, 'lacking.csv')
  writeFileSync(path, `\nPropertyID,Date\np,2026-01-01\n`)

  const opened = openCsv(path, 'packages')

  closeSync(opened.file)
  expect(opened).toMatchObject({ dataStart: opened.bytes, fault: { kind: 'header' } })
  expect(opened.fault?.message).toContain('line 2 is a header of 2 columns instead of 6')
})

test('ranges are many enough for all threads, and not tiny', () => {
  expect(rangeBytesFor(0, 4)).toBe(1024 * 1024)
  expect(rangeBytesFor(600 * 1024 * 1024, 2)).toBe(32 * 1024 * 1024)
  expect(rangeBytesFor(64 * 1024 * 1024, 2)).toBe(4 * 1024 * 1024)
})

test.each([
  ['UTF-16, the other way round', Buffer.from([0xfe, 0xff, 0x00, 0x70]), UTF16],
  ['compressed', Buffer.from([0x1f, 0x8b, 0x08]), 'is compressed; unpack it first'],
  [
    'a workbook',
    Buffer.from(`PK\x03\x04${'\0'.repeat(26)}xl/workbook.xml`),
    'is an Excel workbook; save it as CSV UTF-8',
  ],
  ['a byte of each only', Buffer.from([0xff]), undefined],
  ['compressed further on', Buffer.from([0x70, 0x1f, 0x8b]), undefined],
])('a file that is %s', (_, content, message) => {
  const path = join(folder, 'form.csv')
  writeFileSync(path, content)

  const opened = openCsv(path, 'packages')

  closeSync(opened.file)
  expect(opened.fault?.message).toBe(message)
  expect(opened.dataStart).toBe(message === undefined ? 0 : content.length)
})

test.each([
  ['missing.csv', /missing\.csv cannot be read: ENOENT/],
  ['', /cannot be read: not a regular file/],
])('what cannot be opened is an error of use: %s', (name, message) => {
  expect(() => openCsv(join(folder, name), 'packages')).toThrow(
    expect.objectContaining({ code: 'usage_error', message: expect.stringMatching(message) }),
  )
})

test('lines around the end of a range of any length are read whole, beyond what is read ahead', () => {
  for (const length of [4_094, 4_095, 4_096, 4_097, 9_000]) {
    const lines = ['a', 'x'.repeat(length), 'b', 'y'.repeat(length), 'c']
    for (const rangeBytes of [500, length, length + 1, length + 3, length + 4, 2 * length + 7]) {
      expect(linesOf(`${lines.join('\n')}\n`, 16_384, rangeBytes), `${length}, ${rangeBytes}`).toEqual(lines)
    }
  }
})

test('a file that became shorter while it was read is an error', () => {
  const path = join(folder, 'shorter.csv')
  writeFileSync(path, 'a\nb\n')
  const file = openSync(path, 'r')
  const blocks = createBlocks(file, path, 5, new Uint8Array(64 + PADDING_BYTES))
  openRange(blocks, 0, 5, true)

  expect(() => nextBlock(blocks)).toThrow(/shorter\.csv became shorter while it was read/)
  closeSync(file)
})

test.each<[string, 'properties' | 'packages', string, string]>([
  [
    'dates in another form',
    'packages',
    'p,r,10.09.2026,1,120,\np,r,11.09.2026,1,120,\n',
    'line 1 Date "10.09.2026" looks like DD.MM.YYYY, as in the rows around it; a mapping of vacancy import-source reads it with "date": "DD.MM.YYYY"',
  ],
  [
    'decimals with a comma',
    'packages',
    'p,r,2026-09-10,1,120,\np,r,2026-09-11,1,"1.120,50",\n',
    'line 2 FinalPrice "1.120,50" looks like a decimal with a comma, as in the rows around it; a mapping of vacancy import-source reads it with "decimal": ",", "thousands": "."',
  ],
  [
    'columns in another order and decimals with a comma',
    'properties',
    'PropertyID,Segment,Area,PropertyType,Category,Stars,Longitude,Latitude,Amenities\np,S,A,t,c,4,8.5,"47,3",\n',
    'line 2 Latitude "47,3" looks like a decimal with a comma, as in the rows around it; a mapping of vacancy import-source reads it with "decimal": ","',
  ],
])('a file with %s has one error (each row used to have one)', (_, kind, content, message) => {
  const path = join(folder, 'form.csv')
  writeFileSync(path, content)

  const opened = openCsv(path, kind)

  closeSync(opened.file)
  expect(opened.fault).toEqual({ kind: 'form', message })
})

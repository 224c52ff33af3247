/** Files, streams and compression are real. */
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { readHead } from './file-head.ts'

const PROPERTY = 'p1,alpine,valley,hotel,luxury,4,47.123456,11.123456,wifi'
const PACKAGE = 'p1,double,2026-11-24,3,120,'
const head = (...parts: BlobPart[]) => readHead(new File(parts, 'a'))

test.each([
  ['properties', PROPERTY],
  ['packages', `${PACKAGE}\r\n`],
  ['properties', `\ufeff\n\n${PROPERTY}\n`],
  ['properties', gzipSync(PROPERTY)],
  ['packages', `PropertyID,"Room\nType",Date,Availability,FinalPrice,RateFeature\n${PACKAGE}`],
  ['packages', '"p1","a double, ""large""",2026-11-24,3,120,'],
])('a file of %s is known by its content', async (kind, content) => {
  expect(await head(content)).toMatchObject({ kind, note: '' })
})

test.each<[string, BlobPart, string | RegExp]>([
  ['empty', '', 'is empty'],
  ['of blank lines', '\n \n', 'has no rows'],
  ['UTF-16', new Uint8Array([0xff, 0xfe, 0x41, 0x00]), /^is UTF-16/],
  ['Latin-1', Buffer.from(`${PROPERTY.replace('valley', 'Zürich')}\n`, 'latin1'), /^is not UTF-8/],
  ['a ZIP archive', 'PK\u0003\u0004', /^is a ZIP archive/],
  ['a workbook', `PK\u0003\u0004${'\0'.repeat(26)}[Content_Types].xml`, 'is an Excel workbook: save it as CSV UTF-8'],
  ['an old workbook', new Uint8Array([0xd0, 0xcf, 0x11, 0xe0, 0xa1]), /^is an Excel workbook/],
  ['binary', 'a\u0000b', /NUL bytes/],
  ['separated by semicolons', 'p1;r;2026-11-24;1;1;\n', /^separates its cells by semicolons/],
  ['of dates in another form', `${PACKAGE.replace('2026-11-24', '24.11.2026')}\n`, /^has DD\.MM\.YYYY in Date: /],
  ['not a table', '<!doctype html>\n', 'has 1 column in line 1; properties have 9, packages 6'],
  ['of too few columns', '\n\np1,a,b,c,d,5,1.1,2.2\n', 'has 8 columns in line 3; properties have 9, packages 6'],
  ['of lines without LF', 'p1,r,2026-11-24,1,1,\rp1,r,2026-11-25,1,1,\r', /carriage return only$/],
  ['with an unclosed quote', `${'\n'.repeat(2)}p1,"a,b\nc`, /unclosed quote .* in line 3$/],
  ['of one line of 100 kB', 'x'.repeat(100_000), /overlong line in line 1$/],
  [
    'without a column',
    'PropertyID,RoomType,Date,FinalPrice,Availabilty,RateFeature\n',
    /^line 1 is a header that has the unknown name "Availabilty" \(nearest: Availability\)/,
  ],
  [
    'with a column twice',
    'PropertyID,RoomType,Date,FinalPrice,FinalPrice,RateFeature\n',
    /^line 1 is a header that names FinalPrice twice and does not name Availability/,
  ],
])('a file that is %s is refused with the reason', async (_, content, fault) => {
  const expected = typeof fault === 'string' ? fault : expect.stringMatching(fault)
  expect(await head(content)).toEqual({ kind: undefined, fault: expected })
})

test.each([
  ['PropertyID,RoomType,Date,FinalPrice,Availability,RateFeature', /another order; they are read by name$/],
  ['PropertyID,RoomType,Date,Rooms,FinalPrice,RateFeature', /^line 1 .* by position: "Rooms" as Availability$/],
])('the header %s is read, with a note', async (header, note) => {
  expect(await head(`${header}\n${PACKAGE}\n`)).toEqual({
    kind: 'packages',
    note: expect.stringMatching(note),
    rows: 1,
  })
})

test('a character across the end of the first bytes is UTF-8 as well', async () => {
  const line = `${PROPERTY.replace('valley', 'Zürich')}\n`
  for (const shift of [0, 1])
    expect(await head(' '.repeat(shift), line.repeat(2_000))).toMatchObject({ kind: 'properties' })
})

test('the rows of a large file are estimated by its first ones, those of a compressed file are not', async () => {
  const large = `${PROPERTY}\n`.repeat(100_000)
  const { rows = 0 } = { ...(await head(large)) } as { readonly rows?: number }

  expect(Math.abs(rows - 100_000)).toBeLessThan(100)
  expect(await head(gzipSync(large))).toMatchObject({ kind: 'properties', rows: undefined })
  expect(await head(`${PROPERTY}\n${PROPERTY}`)).toMatchObject({ rows: 2 })
})

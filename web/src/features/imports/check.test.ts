import { expect, test } from 'vitest'
import {
  type Checker,
  cellsOf,
  checkLines,
  checkPiece,
  createChecker,
  HEAD_BYTES,
  isDay,
  kindOf,
  PIECE_BYTES,
  samplePlaces,
} from './check.ts'

const OPTIONS = { codecs: ['breakfast', 'free_wifi'], today: '2026-11-20', lastDay: '2027-11-20', priceDecimals: 0 }

function packages(...lines: string[]) {
  const known = properties('p1,a,b,c,d,5,1.123456,2.123456,', 'p2,a,b,c,d,5,1.123456,2.123456,')
  const checker = createChecker({ kind: 'packages', ...OPTIONS, knownIds: known.ids })
  checkLines(checker, lines.join('\n'), 1)
  return checker
}

function properties(...lines: string[]) {
  const checker = createChecker({ kind: 'properties', ...OPTIONS })
  checkLines(checker, lines.join('\n'), 1)
  return checker
}

const kindsOf = (checker: { findings: ReadonlyMap<string, unknown> }) => [...checker.findings.keys()]

test('a valid file has no findings, with or without header, for any line ends', () => {
  const right = packages(
    'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature\r',
    'p1,double,2026-11-24,3,120,breakfast | free_wifi\r',
    '',
  )

  expect(kindsOf(right)).toEqual([])
  expect([right.rows, right.header]).toEqual([1, true])
  expect(kindsOf(packages('\ufeff"PropertyID",RoomType,Date,Availability,FinalPrice,RateFeature'))).toEqual([])
  expect(kindsOf(properties('p1,alpine,valley,hotel,luxury,4,47.123456,11.123456,wifi|pool'))).toEqual([])
})

test.each([
  ['columns', 'p1,double,2026-11-24,3'],
  ['quote', 'p1,"dou"ble,2026-11-24,3,120,'],
  ['utf8', 'p1,dou\ufffdble,2026-11-24,3,120,'],
  ['feature', 'p1,double,2026-11-24,3,120,free_wfi'],
  ['date', 'p1,double,2026-02-30,3,120,'],
  ['past', 'p1,double,2026-11-19,3,120,'],
  ['availability', 'p1,double,2026-11-24,256,120,'],
  ['price', 'p1,double,2026-11-24,3,4294967295,'],
  ['free', 'p1,double,2026-11-24,3,0,'],
  ['empty', 'p1,,2026-11-24,3,120,'],
  ['id', 'a_very_long_id_of_a_hotel,double,2026-11-24,3,120,'],
  ['unknown', 'p3,double,2026-11-24,3,120,'],
])('%s is found in a line of packages', (kind, line) => {
  const found = packages('p1,double,2026-11-23,3,120,', line).findings.get(kind as never)

  expect(found).toMatchObject({ kind, count: 1, line: 2 })
})

test.each([
  ['stars', 'p1,a,b,c,d,6,1.123456,2.123456,'],
  ['latitude', 'p1,a,b,c,d,5,91.123456,2.123456,'],
  ['longitude', 'p1,a,b,c,d,5,1.123456,x,'],
  ['digits', 'p1,a,b,c,d,5,1.5,2.5,'],
])('%s is found in a line of properties', (kind, line) => {
  expect(kindsOf(properties(line))).toContain(kind)
})

test.each([
  ['id', 'a_very_long_id_of_a_hotel,double,2026-11-24,3,120,', [0]],
  ['room type', 'p1,,2026-11-24,3,120,', [1]],
  ['date', 'p1,double,2026-02-30,3,120,', [2]],
  ['past date', 'p1,double,2026-11-19,3,120,', [2]],
  ['availability', 'p1,double,2026-11-24,256,120,', [3]],
  ['price', 'p1,double,2026-11-24,3,-1,', [4]],
  ['free night', 'p1,double,2026-11-24,3,0,', [4]],
  ['rate feature', 'p1,double,2026-11-24,3,120,free_wfi', [5]],
  ['several', 'p1,,2026-02-30,3,x,', [1, 2, 4]],
  ['valid', 'p1,double,2026-11-24,3,120,', []],
])('the preview of a package marks its wrong cells: %s', (_, line, cells) => {
  expect(packages(line).preview).toEqual([{ cells: line.split(','), bad: cells }])
})

test('the preview of a package marks the room type that is one too many', () => {
  const checker = packages(...Array.from({ length: 11 }, (_, i) => `p1,room ${i},2026-11-24,3,120,`))
  expect(checker.preview.map(({ bad }) => bad)).toEqual([...Array.from({ length: 10 }, () => []), [1]])
})

test('duplicates and too many room types are reported once per property, with the first line', () => {
  const rooms = Array.from({ length: 12 }, (_, i) => `p1,room ${i},2026-11-24,3,120,`)
  const checker = packages(...rooms, 'p2,double,2026-11-24,3,120,', 'p2,double,2026-11-24,1,1,')

  expect(checker.findings.get('rooms')).toMatchObject({ count: 1, line: 11 })
  expect(checker.findings.get('package-twice')).toMatchObject({ count: 1, line: 14 })
  expect(
    properties('p1,a,b,c,d,5,1.123456,2.123456,', 'p1,a,b,c,d,5,1.123456,2.123456,').findings.get('twice')?.line,
  ).toBe(2)
})

test('an unknown rate feature is reported with the nearest one', () => {
  const checker = packages('p1,double,2026-11-24,3,120,Breakfats')

  expect(checker.findings.get('feature')?.example).toBe('Breakfats (nearest: breakfast)')
})

test('quoted cells may contain commas and doubled quotes', () => {
  expect(cellsOf('a, " b,""c""" ,d')).toEqual(['a', ' b,"c"', 'd'])
  expect(cellsOf('a,"b')).toBeUndefined()
  expect(cellsOf('a,b,')).toEqual(['a', 'b', ''])
})

test('files are classified by their first line with data', () => {
  expect(kindOf('\ufeff\n\np1,a,b,c,d,5,1.1,2.2,x\n').kind).toBe('properties')
  expect(kindOf('p1,double,2026-11-24,3,120,\r\n').kind).toBe('packages')
  expect(kindOf('Date,PropertyID,RoomType,RateFeature,FinalPrice,Availability\n').kind).toBe('packages')
})

test('a price with a point needs the number of its decimals', () => {
  const found = (priceDecimals: number, price: string) => {
    const checker = createChecker({ kind: 'packages', ...OPTIONS, priceDecimals })
    checkLines(checker, `p1,double,2026-11-24,3,${price},`, 1)
    return kindsOf(checker)
  }
  expect(found(0, '12.00')).toEqual(['price-decimals'])
  expect(found(2, '12.005')).toEqual(['price-decimals'])
  expect(found(2, '0.00')).toEqual(['free'])
  expect(found(2, '42949672.95')).toEqual(['price'])
  for (const price of ['12.50', '12.5', '12', '42949672.94']) expect(found(2, price)).toEqual([])
  for (const price of ['12.', '.5', '1.0.0', '1.x']) expect(found(2, price)).toEqual(['price'])
})

test.each([
  ['p1;r;2026-11-24;1;1;\n', 'separates its cells by semicolons; save the file with commas'],
  ['<!doctype html>\n', 'has 1 column in line 1; properties have 9, packages 6'],
  ['\n\np1,a,b,c,d,5,1.1,2.2\n', 'has 8 columns in line 3; properties have 9, packages 6'],
  ['p1,r,2026-11-24,1,1,\rp1,r,2026-11-25,1,1,\r', /^has 11 columns in line 1; .*carriage return only$/],
  ['p1,"a,b\nc', /unclosed quote.* in line 1/],
  ['\n', 'has no rows'],
])('%j is neither file, with the reason', (text, fault) => {
  expect(kindOf(text)).toEqual({
    kind: undefined,
    fault: typeof fault === 'string' ? fault : expect.stringMatching(fault),
  })
})

test('columns in another order are checked by the names of the header', () => {
  const checker = packages(
    'PropertyID,RoomType,Date,FinalPrice,Availability,RateFeature',
    'p1,double,2026-11-24,120,3,breakfast',
    'p1,double,2026-11-25,3,300,breakfast',
  )

  expect(kindsOf(checker)).toEqual(['order', 'availability'])
  expect(checker.preview[1]).toEqual({ cells: ['p1', 'double', '2026-11-25', '300', '3', 'breakfast'], bad: [3] })
})

test('an invalid header is the only finding, with its names and line', () => {
  const checker = packages(
    'PropertyID,RoomType,Date,FinalPrice,Rooms,RateFeature',
    'p1,double,2026-11-24,120,3000,breakfast',
  )

  expect(kindsOf(checker)).toEqual(['header'])
  expect(checker.findings.get('header')?.example).toContain('line 1 is a header that has the unknown name "Rooms"')
  expect(checker.rows).toBe(1)
})

test('unknown names in place of known columns are a warning', () => {
  const checker = packages('PropertyID,RoomType,Date,Rooms,FinalPrice,RateFeature', 'p1,double,2026-11-24,3,120,')

  expect(kindsOf(checker)).toEqual(['header-names'])
  expect(checker.findings.get('header-names')?.level).toBe('warn')
})

test('a wrong number of columns is reported with the number', () => {
  expect(packages('p1,double,2026-11-24,3').findings.get('columns')?.example).toBe(
    '4 columns instead of 6: p1,double,2026-11-24,3',
  )
})

test('a quoted cell of several lines is one record, as in the builder', () => {
  const header = packages('PropertyID,"Room\nType",Date,Availability,FinalPrice,RateFeature', 'p1,a,2026-11-24,3,120,')
  const name = packages('p1,"a\nb",2026-11-24,3,120,', 'p1,a,2026-11-25,x,120,')
  const unclosed = packages('p1,"a,2026-11-24,3,120,', 'p1,a,2026-11-25,x,120,')

  expect([kindsOf(header), header.rows]).toEqual([[], 1])
  expect(name.findings.get('text')).toMatchObject({ count: 1, line: 1 })
  expect(name.findings.get('availability')?.line).toBe(3)
  expect(kindsOf(name)).toEqual(['text', 'availability'])
  expect(kindsOf(unclosed)).toEqual(['quote', 'availability'])
  expect(unclosed.findings.get('availability')?.line).toBe(2)
})

test('a record cut by the end of a block is left for the next block', () => {
  const checker = createChecker({ kind: 'packages', ...OPTIONS })
  const whole = 'p1,a,2026-11-24,3,120,\n'

  expect(checkLines(checker, `${whole}p1,"b\nc`, 1, false)).toEqual({ lines: 1, end: whole.length })
  expect(checkLines(checker, whole.slice(0, -1), 2, false)).toEqual({ lines: 0, end: 0 })
})

test('two blocks cut anywhere give the findings of the whole file', () => {
  const text = [
    'p1,"a ""b"", c",2026-11-24,3,120,\r\n',
    '"p1" ,a,2026-11-25,x,120,"breakfast"\r\n',
    'p1,"b\nc",2026-11-26,3,120,\n',
    'p1,"d"e,2026-11-27,3,120,\n',
    'p1,f,2026-11-28,3,"x"\n',
    'p1,"g",2026-11-29,3,y,"breakfast"\r',
  ].join('')
  const seen = (cuts: readonly number[]) => {
    const checker = createChecker({ kind: 'packages', ...OPTIONS })
    let [line, start] = [1, 0]
    for (const cut of [...cuts, text.length]) {
      const { lines, end } = checkLines(checker, text.slice(start, cut), line, cut === text.length)
      line += lines
      start += end
    }
    return [checker.rows, [...checker.findings.values()].map((one) => [one.kind, one.count, one.line])]
  }

  const whole = seen([])
  expect(whole).toEqual([
    6,
    [
      ['availability', 1, 2],
      ['text', 1, 3],
      ['quote', 1, 5],
      ['columns', 1, 6],
      ['price', 1, 7],
    ],
  ])
  for (let cut = 1; cut < text.length; cut++) expect(seen([cut]), `cut at ${cut}`).toEqual(whole)
})

test('a line of five megabytes is one finding, also across blocks and pieces', () => {
  const long = 'x'.repeat(5_000_000)
  const checker = createChecker({ kind: 'packages', ...OPTIONS })
  checkLines(checker, `p1,a,2026-11-24,3,120,\n${long.slice(0, 3_000_000)}`, 1, false)
  checkLines(checker, `${long.slice(3_000_000)}\np1,a,2026-11-25,x,120,\n`, 2, true)
  const sampled = createChecker({ kind: 'packages', ...OPTIONS })
  checkPiece(sampled, long.slice(0, PIECE_BYTES), false)

  expect(checker.findings.get('long')).toMatchObject({ count: 1, line: 2 })
  expect(checker.findings.get('availability')?.line).toBe(3)
  expect(kindsOf(sampled)).toEqual(['long'])
})

test('short ids that differ in case are two properties, UUIDs are one', () => {
  const line = (id: string) => `${id},a,b,c,d,5,1.123456,2.123456,`
  const uuid = '550e8400-e29b-41d4-a716-446655440000'

  expect(kindsOf(properties(line('Hotel'), line('hotel')))).toEqual([])
  expect(kindsOf(properties(line(uuid), line(uuid.toUpperCase())))).toEqual(['twice'])
})

test('invalid and skipped packages do not count as duplicates', () => {
  expect(kindsOf(packages('p1,a,2026-11-19,3,120,', 'p1,a,2026-11-19,3,120,'))).toEqual(['past'])
  expect(kindsOf(packages('p1,a,2026-11-24,x,120,', 'p1,a,2026-11-24,3,120,'))).toEqual(['availability'])
})

test.each([0, 0.5, 0.999_999])('pieces of a sample do not overlap (%d)', (random) => {
  for (const bytes of [3.3e6, 11e6, 207e6]) {
    const places = samplePlaces(bytes, () => random) ?? []
    expect(places.length).toBe(33)
    expect(places[0]).toBeGreaterThanOrEqual(HEAD_BYTES)
    for (const [i, place] of places.entries()) {
      expect((places[i + 1] ?? bytes) - place).toBeGreaterThanOrEqual(PIECE_BYTES)
    }
  }
  expect(samplePlaces(3e6, () => random)).toBeUndefined()
})

test('a piece that may start inside quotes is not checked', () => {
  const checker = createChecker({ kind: 'packages', ...OPTIONS })
  checkPiece(checker, 'rest of a line\nof a name\n of three lines",2026-11-24,3,120,\np1,a,2026-11-25,3,1,\n', false)

  expect([kindsOf(checker), checker.rows]).toEqual([[], 0])
  checkPiece(checker, 'rest\np1,"a, b",2026-11-24,3,120,\np1,a,x', false)
  expect([kindsOf(checker), checker.rows]).toEqual([[], 1])
})

test('only real dates are valid', () => {
  expect(['2028-02-29', '2026-02-29', '2026-13-01', '2026-04-31', '26-04-01'].map(isDay)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ])
})

/** Kinds of the findings, with the number of rows. */
const found = (checker: Checker) => [...kindsOf(checker), checker.rows]
const night = (change: { readonly [at: number]: string }) =>
  ['p1', 'double', '2026-11-24', '3', '120', ''].map((cell, at) => change[at] ?? cell).join(',')

test('with another order of columns, cells are checked and shown in the documented order', () => {
  const checker = packages(
    'RoomType,PropertyID,Date,Availability,FinalPrice,RateFeature',
    'double,p1,2026-11-24,x,120,',
  )
  expect(kindsOf(checker)).toEqual(['order', 'availability'])
  expect(checker.preview).toEqual([{ cells: ['p1', 'double', '2026-11-24', 'x', '120', ''], bad: [3] }])
})

test('a line of exactly 65,536 bytes is read, a longer one is not', () => {
  const line = (bytes: number) => night({ 1: 'x'.repeat(bytes - night({ 1: '' }).length) })
  const wide = night({ 1: 'é'.repeat(32_768) })

  expect(found(packages(line(65_536)))).toEqual(['text', 1])
  expect(found(packages(line(65_537)))).toEqual(['long', 1])
  expect(found(packages(wide, night({})))).toEqual(['long', 2])
  // Quoted, too; the next line is read.
  const quoted = (bytes: number) => night({ 1: `"${'x'.repeat(bytes - night({ 1: '""' }).length)}"` })
  expect(found(packages(quoted(65_535), night({})))).toEqual(['text', 2])
  expect(found(packages(quoted(70_000), night({})))).toEqual(['long', 2])
})

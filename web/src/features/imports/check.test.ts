import { expect, test } from 'vitest'
import { cellsOf, checkLines, createChecker, isDay, kindOf } from './check.ts'

const OPTIONS = { codecs: ['breakfast', 'free_wifi'], today: '2026-11-20', lastDay: '2027-11-20' }

function packages(...lines: string[]) {
  const checker = createChecker({ kind: 'packages', ...OPTIONS, knownIds: new Set(['p1', 'p2']) })
  checkLines(checker, lines.join('\n'), 1)
  return checker
}

function properties(...lines: string[]) {
  const checker = createChecker({ kind: 'properties', ...OPTIONS })
  checkLines(checker, lines.join('\n'), 1)
  return checker
}

const kindsOf = (checker: { findings: ReadonlyMap<string, unknown> }) => [...checker.findings.keys()]

test('a right file has no findings, with a header or without, and whatever its line ends', () => {
  const right = packages(
    'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature\r',
    'p1,double,2026-11-24,3,120.00,breakfast | free_wifi\r',
    '',
  )

  expect(kindsOf(right)).toEqual([])
  expect([right.rows, right.header]).toEqual([1, true])
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

test('repeats and many room types are told once a property, with the first line', () => {
  const rooms = Array.from({ length: 12 }, (_, i) => `p1,room ${i},2026-11-24,3,120,`)
  const checker = packages(...rooms, 'p2,double,2026-11-24,3,120,', 'P2,double,2026-11-24,1,1,')

  expect(checker.findings.get('rooms')).toMatchObject({ count: 1, line: 11 })
  expect(checker.findings.get('package-twice')).toMatchObject({ count: 1, line: 14 })
  expect(
    properties('p1,a,b,c,d,5,1.123456,2.123456,', 'p1,a,b,c,d,5,1.123456,2.123456,').findings.get('twice')?.line,
  ).toBe(2)
})

test('a wrong rate feature is told with the nearest one', () => {
  const checker = packages('p1,double,2026-11-24,3,120,Breakfats')

  expect(checker.findings.get('feature')?.example).toBe('Breakfats (nearest: breakfast)')
})

test('cells in quotes hold commas and doubled quotes', () => {
  expect(cellsOf('a, "b,""c""" ,d')).toEqual(['a', 'b,"c"', 'd'])
  expect(cellsOf('a,"b')).toBeUndefined()
  expect(cellsOf('a,b,')).toEqual(['a', 'b', ''])
})

test('the two files are told apart by their first line with data', () => {
  expect(kindOf('\ufeff\n\np1,a,b,c,d,5,1.1,2.2,x\n')).toBe('properties')
  expect(kindOf('p1,double,2026-11-24,3,120,\r\n')).toBe('packages')
  expect(kindOf('<!doctype html>\n')).toBeUndefined()
})

test('days are real days', () => {
  expect(['2028-02-29', '2026-02-29', '2026-13-01', '2026-04-31', '26-04-01'].map(isDay)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ])
})

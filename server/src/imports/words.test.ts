import { expect, test } from 'vitest'
import { countersOf } from './build-import.ts'
import { difference, type Side } from './compare.ts'
import { csvCell } from './rejected.ts'
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

import { tableLines } from '@vacancy/shared/node'
import { expect, test } from 'vitest'
import { tableOf } from './table.ts'

const night = (date: string, availability: number, finalPrice: number, ...rateFeatures: string[]) => ({
  date,
  availability,
  finalPrice,
  rateFeatures,
})

test('a stay has the fewest rooms, the sum of its prices and what every night offers', () => {
  const days = [night('2026-12-01', 4, 90, 'free_wifi', 'no_prepayment'), night('2026-12-02', 2, 110, 'free_wifi')]

  const { rows, counted } = tableOf({ numDays: 2, properties: [{ propertyId: 'p1', days }] })

  expect(rows).toEqual([['p1', 2, 2, 200, '90 110', 'free_wifi']])
  expect(counted).toBe('1 property')
})

test('prices of a long stay are shown from the cheapest to the dearest', () => {
  const days = Array.from({ length: 10 }, (_, at) => night('2026-12-01', 1, 50 + at))

  expect(tableOf({ numDays: 10, properties: [{ propertyId: 'p1', days }] }).rows[0]?.[4]).toBe('50 to 59')
})

test('a page has the values of its properties, all matches, and how to get the next one', () => {
  const hit = { propertyId: 'p1', days: [], total: 200, distanceMetres: 87, roomType: 'double' }
  const page = { matches: 1412, index: 9, more: true, cursor: 'AQAB' }

  const { columns, rows, counted } = tableOf({ numDays: 2, properties: [hit], page })

  expect(columns).toEqual(['property', 'total', 'metres', 'room type'])
  expect(rows).toEqual([['p1', 200, 87, 'double']])
  expect(counted).toBe('1 of 1,412 properties, more with --page AQAB')
})

test('days of a price calendar have their weekday, and best stays their arrival', () => {
  const days = [
    { arrival: '2026-12-25', total: 200, properties: 3, best: 'p1' },
    { arrival: '2026-12-26', properties: 0 },
  ]
  const calendar = tableOf({ nights: 2, days })

  expect(calendar.rows).toEqual([
    ['2026-12-25', 'Fri', 200, 3, 'p1'],
    ['2026-12-26', 'Sat', '', 0, ''],
  ])
  expect(calendar.counted).toBe('2 arrival days')
  const stays = [{ propertyId: 'p1', arrival: '2026-12-25', nights: 3, total: 250, roomType: 'double' }]
  const { columns, rows } = tableOf({ arrivalDays: 2, bestStays: stays })
  expect(columns).toEqual(['property', 'arrival', 'day', 'nights', 'total', 'room type'])
  expect(rows).toEqual([['p1', '2026-12-25', 'Fri', 3, 250, 'double']])
})

test('every kind of result has a table', () => {
  expect(tableOf({ propertyIds: ['a', 'b'] }).rows).toEqual([['a'], ['b']])
  expect(tableOf({ segments: [{ segment: 's', propertyCount: 3 }] }).rows).toEqual([['s', 3]])
  expect(tableOf({ rateFeatures: ['x', 'y'] }).rows).toEqual([
    [0, 'x'],
    [1, 'y'],
  ])
  expect(tableOf({ roomTypes: ['double'] }).rows).toEqual([['double']])
  expect(tableOf({ dates: ['2026-12-05'] }).rows).toEqual([['2026-12-05', 'Sat']])
  expect(tableOf({ exists: false }).rows).toEqual([['no']])
  expect(tableOf({ availability: 7, index: 9n }).rows).toEqual([[7, '9']])
  expect(tableOf({ propertyId: 'p', ...night('2026-12-05', 1, 80, 'x') }).rows).toEqual([
    ['p', '2026-12-05', 1, 80, 'x'],
  ])
  expect(tableLines(tableOf({}))).toEqual([])
})

test('numbers are set to the right, and rows left out are counted', () => {
  const table = {
    columns: ['name', 'n'],
    rows: [
      ['a', 1],
      ['long', 200],
      ['c', 3],
    ],
    counted: '',
  }

  expect(tableLines(table, 2)).toEqual(['name    n', 'a       1', 'long  200', '… and 1 more'])
})

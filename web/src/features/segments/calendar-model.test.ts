import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dateOf } from '../../lib/days.ts'
import { addMonths, cellAfter, datesBetween, figuresOf, gridOf, monthsOf, viewWith } from './calendar-model.ts'
import { stripOf } from './coverage-strip.ts'
import { changeOf, changesOf } from './edit-model.ts'

const night = (date: string, availability: number, price: number, features: string[] = []) => ({
  date,
  availability,
  price,
  features,
})
const GRID = gridOf({
  from: '2026-11-28',
  nights: 6,
  rooms: [
    { room: 'double', nights: [night('2026-11-28', 2, 120), night('2026-11-30', 0, 95), night('2026-12-01', 1, 148)] },
    { room: 'suite', nights: [] },
  ],
})

test('a selection sums the nights that have a package', () => {
  expect(figuresOf(GRID, { room: 'double', from: '2026-11-28', to: '2026-12-01' })).toEqual({
    nights: 4,
    sold: 3,
    soldOut: 1,
    sum: 363,
    min: 95,
    max: 148,
  })
  expect(figuresOf(GRID, { room: 'suite', from: '2026-11-28', to: '2026-11-28' })).toMatchObject({ sold: 0, sum: 0 })
  expect(monthsOf(GRID.dates)).toEqual([
    { month: '2026-11', nights: 3 },
    { month: '2026-12', nights: 3 },
  ])
})

test('keys move by night, room type, row and month', () => {
  const from = { room: 'double', date: '2026-11-30' }
  const after = (key: string) => cellAfter(key, from, GRID)

  expect(after('ArrowRight')).toEqual({ room: 'double', date: '2026-12-01' })
  expect(after('ArrowUp')).toEqual(from)
  expect(after('ArrowDown')).toEqual({ room: 'suite', date: '2026-11-30' })
  expect(after('Home')?.date).toBe('2026-11-28')
  expect(after('End')?.date).toBe('2026-12-03')
  expect(after('PageDown')?.date).toBe('2026-12-30')
  expect(after('Tab')).toBeUndefined()
  expect(addMonths('2026-01-31', 1)).toBe('2026-02-28')
  expect(addMonths('2026-01-15', -1)).toBe('2025-12-15')
})

test('a view moves by as little as shows the date', () => {
  const dates = fc.integer({ min: 10_000, max: 30_000 }).map(dateOf)
  fc.assert(
    fc.property(dates, dates, fc.integer({ min: 1, max: 62 }), (date, from, nights) => {
      const view = viewWith(date, { from, nights })
      const shown = datesBetween(view, gridOf({ from: view, nights, rooms: [] }).dates.at(-1) as string)
      expect(shown).toHaveLength(nights)
      expect(shown).toContain(date)
      if (view !== from) expect([shown[0], shown.at(-1)]).toContain(date)
    }),
  )
})

test('an edit changes only nights whose values differ, and creates missing packages', () => {
  const nights = new Map([
    ['2026-11-28', night('2026-11-28', 2, 120, ['a', 'b'])],
    ['2026-11-29', night('2026-11-29', 2, 100, [])],
  ])
  const dates = ['2026-11-28', '2026-11-29', '2026-11-30']
  const rows = (input: Partial<Parameters<typeof changeOf>[0]>) => {
    const checked = changeOf({ availability: '', price: '', features: undefined, ...input })
    return checked.ok ? changesOf(dates, nights, checked.change) : checked
  }

  expect(rows({})).toMatchObject([{ isChanged: false }, { isChanged: false }, { isChanged: false }])
  expect(rows({ price: '120' })).toMatchObject([
    { isChanged: false },
    { isChanged: true, after: { availability: 2, price: 120 } },
    { isChanged: true, before: undefined, after: { availability: 0, price: 120, features: [] } },
  ])
  expect(rows({ features: ['b', 'a'] })).toMatchObject([{ isChanged: false }, { isChanged: true }, { isChanged: true }])
  expect(rows({ availability: '255', price: '4294967294' })).toHaveLength(3)
  for (const wrong of ['256', '-1', '1.5', 'ten', '1e2']) {
    expect(rows({ availability: wrong })).toMatchObject({ ok: false, field: 'availability' })
  }
  expect(rows({ price: '4294967295' })).toMatchObject({ ok: false, field: 'price' })
})

test('a strip has a stop for each run of equal nights, and names its thinnest night', () => {
  const { background, text } = stripOf([6, 6, 0, 3], '2026-11-28')

  expect(background).toBe(
    'linear-gradient(to right, var(--color-avail-6) 0.000% 50.000%, transparent 50.000% 75.000%, var(--color-avail-3) 75.000% 100.000%)',
  )
  expect(text).toBe('Packages on 3 of 4 nights, fewest: 0 on 30 Nov')
  expect(stripOf([], '').background).toBe('none')
})

test.each([
  ['ArrowLeft', 'double', '2026-11-29'],
  ['ArrowRight', 'double', '2026-12-01'],
  ['ArrowUp', 'double', '2026-11-30'],
  ['ArrowDown', 'suite', '2026-11-30'],
  ['Home', 'double', '2026-11-28'],
  ['End', 'double', '2026-12-03'],
  ['PageUp', 'double', '2026-10-30'],
  ['PageDown', 'double', '2026-12-30'],
])('%s leads to %s on %s', (key, room, date) => {
  expect(cellAfter(key, { room: 'double', date: '2026-11-30' }, GRID)).toEqual({ room, date })
})

test('in the last row, and in an empty calendar, keys stay where they are', () => {
  const last = { room: 'suite', date: '2026-11-30' }
  expect(cellAfter('ArrowDown', last, GRID)).toEqual(last)
  expect(cellAfter('ArrowUp', last, GRID)).toEqual({ ...last, room: 'double' })
  const empty = gridOf({ from: '2026-11-28', nights: 0, rooms: [] })
  for (const key of ['Home', 'End', 'ArrowUp', 'ArrowDown']) expect(cellAfter(key, last, empty)).toEqual(last)
})

test.each([
  ['2026-01-31', 1, '2026-02-28'],
  ['2028-01-31', 1, '2028-02-29'],
  ['2026-03-31', -1, '2026-02-28'],
  ['2026-12-15', 1, '2027-01-15'],
  ['2026-01-15', -13, '2024-12-15'],
  ['2026-05-30', 0, '2026-05-30'],
])('%s and %d months is %s', (date, months, expected) => {
  expect(addMonths(date, months)).toBe(expected)
})

test.each([
  ['2026-11-20', '2026-11-20'],
  ['2026-11-26', '2026-11-20'],
  ['2026-11-27', '2026-11-21'],
  ['2026-12-26', '2026-12-20'],
  ['2026-11-19', '2026-11-19'],
])('a view of seven nights from the 20th shows %s from %s on', (date, from) => {
  expect(viewWith(date, { from: '2026-11-20', nights: 7 })).toBe(from)
})

test('a grid has each night of its rooms by date, and nights are counted with both ends', () => {
  expect(GRID.rooms).toEqual(['double', 'suite'])
  expect(GRID.dates).toEqual([28, 29, 30].map((n) => `2026-11-${n}`).concat([1, 2, 3].map((n) => `2026-12-0${n}`)))
  expect(GRID.night('double', '2026-11-30')?.price).toBe(95)
  expect([GRID.night('double', '2026-11-29'), GRID.night('none', '2026-11-30')]).toEqual([undefined, undefined])
  expect(datesBetween('2026-11-30', '2026-11-30')).toEqual(['2026-11-30'])
  expect(datesBetween('2026-12-31', '2027-01-01')).toEqual(['2026-12-31', '2027-01-01'])
  expect(monthsOf([])).toEqual([])
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dateOf } from '../../lib/days.ts'
import {
  addMonths,
  blocksOf,
  cellAfter,
  datesBetween,
  figuresOf,
  gridOf,
  monthsOf,
  viewWith,
} from './calendar-model.ts'
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
  const after = (key: string) => cellAfter(key, from, GRID, 62)

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

test('nights are in rows of weeks, and a key goes from the last room of one to the first room of the next', () => {
  expect(blocksOf(GRID.dates, 4)).toEqual([
    ['2026-11-28', '2026-11-29', '2026-11-30', '2026-12-01'],
    ['2026-12-02', '2026-12-03'],
  ])
  const after = (key: string, room: string, date: string) => cellAfter(key, { room, date }, GRID, 4)
  expect(after('ArrowDown', 'suite', '2026-11-28')).toEqual({ room: 'double', date: '2026-12-02' })
  expect(after('ArrowUp', 'double', '2026-12-02')).toEqual({ room: 'suite', date: '2026-11-28' })
  expect(after('ArrowDown', 'suite', '2026-11-30')).toEqual({ room: 'suite', date: '2026-11-30' })
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

test.each<[string, readonly number[], string, string]>([
  ['no nights', [], 'none', 'Packages on 0 of 0 nights'],
  [
    'nights without packages',
    [0, 0],
    'linear-gradient(to right, transparent 0.000% 100.000%)',
    'Packages on 0 of 2 nights',
  ],
  [
    'neighbours of the same colour as one stop',
    [6, 6, 0, 1],
    'linear-gradient(to right, var(--color-avail-6) 0.000% 50.000%, transparent 50.000% 75.000%, var(--color-avail-1) 75.000% 100.000%)',
    'Packages on 3 of 4 nights, fewest: 0 on 22 Nov',
  ],
  [
    // A sixth of 12 is 2: up to 2 is the first step, up to 4 the second.
    'six steps up to the fullest night',
    [12, 10, 3, 2],
    'linear-gradient(to right, var(--color-avail-6) 0.000% 25.000%, var(--color-avail-5) 25.000% 50.000%, var(--color-avail-2) 50.000% 75.000%, var(--color-avail-1) 75.000% 100.000%)',
    'Packages on 4 of 4 nights, fewest: 2 on 23 Nov',
  ],
  [
    'few packages among very many',
    [1, 1_000],
    'linear-gradient(to right, var(--color-avail-1) 0.000% 50.000%, var(--color-avail-6) 50.000% 100.000%)',
    'Packages on 2 of 2 nights, fewest: 1 on 20 Nov',
  ],
])('a strip shows %s', (_, nights, background, text) => {
  expect(stripOf(nights, '2026-11-20')).toEqual({ background, text })
})

test('without a first night the strip does not name one', () => {
  expect(stripOf([1], '').text).toBe('Packages on 1 of 1 night')
})

const input = { availability: '', price: '', features: undefined }

test.each([
  [input, { availability: undefined, price: undefined, features: undefined }],
  [
    { ...input, availability: ' 0 ', price: '0' },
    { availability: 0, price: 0, features: undefined },
  ],
  [
    { ...input, availability: '255', price: '4294967294' },
    { availability: 255, price: 4_294_967_294, features: undefined },
  ],
  [
    { ...input, features: [] },
    { availability: undefined, price: undefined, features: [] },
  ],
])('%j is a change', (typed, change) => {
  expect(changeOf(typed)).toEqual({ ok: true, change })
})

test.each([
  ['availability', '256', 'Enter a whole number from 0 to 255'],
  ['availability', '-1', 'Enter a whole number from 0 to 255'],
  ['availability', '00000000001', 'Enter a whole number from 0 to 255'],
  ['price', '4294967295', 'Enter a whole number from 0 to 4,294,967,294'],
  ['price', '1.5', 'Enter a whole number from 0 to 4,294,967,294'],
])('%s %s is refused', (field, text, reason) => {
  expect(changeOf({ ...input, [field]: text })).toEqual({ ok: false, field, reason })
})

const before = { date: '2026-11-20', availability: 2, price: 120, features: ['a', 'b'] }
const nights = new Map([[before.date, before]])
const none = { availability: undefined, price: undefined, features: undefined }

test.each([
  ['nothing given', none, [2, 120, ['a', 'b']], false],
  ['the same values', { availability: 2, price: 120, features: ['b', 'a'] }, [2, 120, ['b', 'a']], false],
  ['other rooms', { ...none, availability: 3 }, [3, 120, ['a', 'b']], true],
  ['no rooms', { ...none, availability: 0 }, [0, 120, ['a', 'b']], true],
  ['another price', { ...none, price: 0 }, [2, 0, ['a', 'b']], true],
  ['fewer features', { ...none, features: ['a'] }, [2, 120, ['a']], true],
  ['other features', { ...none, features: ['a', 'c'] }, [2, 120, ['a', 'c']], true],
])('a night with %s', (_, change, [availability, price, features], isChanged) => {
  expect(changesOf([before.date], nights, change)).toEqual([
    { date: before.date, before, after: { availability, price, features }, isChanged },
  ])
})

test('a night without a package is created, with zero for what is not given', () => {
  const created = (change: typeof none | { readonly price: number }) =>
    changesOf(['2026-11-21'], nights, { ...none, ...change })
  const after = { availability: 0, price: 7, features: [] }

  expect(created({ price: 7 })).toEqual([{ date: '2026-11-21', before: undefined, after, isChanged: true }])
  expect(created(none)).toMatchObject([{ after: { ...after, price: 0 }, isChanged: false }])
})

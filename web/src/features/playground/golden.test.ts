import { expect, test } from 'vitest'
import { dayOf } from '../../lib/days.ts'
import { bodyOf, daysAheadOf, formOf, type GoldenForm } from './golden.ts'

const REQUEST = {
  shard: 's1',
  command: 'SEARCHAVAIL' as const,
  fields: { segment: 'alps', roomType: 'double', dates: ['2026-12-05', '2026-12-04'], explain: 1, cursor: 'x' },
}
const EMPTY: GoldenForm = { name: ' Alps ', atLeast: '', contains: '', p99Ms: '', moves: true }
const TODAY = dayOf('2026-11-29') as number

test('the form becomes a golden search without what belongs to one run', () => {
  const form = { ...EMPTY, atLeast: '20', contains: 'alp_1, alp_2\nalp_1', p99Ms: '2.5' }

  const made = bodyOf(REQUEST, form, daysAheadOf(REQUEST, TODAY))

  expect(made).toEqual({
    ok: true,
    body: {
      shard: 's1',
      command: 'SEARCHAVAIL',
      name: 'Alps',
      fields: { segment: 'alps', roomType: 'double', dates: ['2026-12-05', '2026-12-04'] },
      daysAhead: 5,
      expect: { atLeast: 20, contains: ['alp_1', 'alp_2'], p99Ms: 2.5 },
    },
  })
})

test('dates stay as they are when they are told to, are past, or there are none', () => {
  const bodyWith = (moves: boolean, today: number) =>
    bodyOf(REQUEST, { ...EMPTY, atLeast: '1', moves }, daysAheadOf(REQUEST, today))

  expect(bodyWith(false, TODAY)).toMatchObject({ body: { daysAhead: null } })
  expect(bodyWith(true, dayOf('2027-01-01') as number)).toMatchObject({ body: { daysAhead: null } })
  expect(daysAheadOf({ fields: { segment: 'alps' } }, TODAY)).toBeUndefined()
})

test.each([
  [{}, 'Say what it must find: a number, a property or a time.'],
  [{ atLeast: '0' }, 'Properties at least: not a number above 0.'],
  [{ atLeast: 'many' }, 'Properties at least: not a number above 0.'],
  [{ p99Ms: '0.0' }, '99 of 100 runs within, ms: not a number above 0.'],
  [{ contains: Array.from({ length: 21 }, (_, n) => `id${n}`).join(' ') }, 'At most 20 properties.'],
])('the form %o is refused: %s', (form, reason) => {
  expect(bodyOf(REQUEST, { ...EMPTY, ...form }, 5)).toEqual({ ok: false, reason })
})

test('a stored one fills the form', () => {
  const stored = { name: 'Alps', daysAhead: null, expect: { atLeast: 20, contains: ['a', 'b'], p99Ms: null } }

  expect(formOf(stored)).toEqual({ name: 'Alps', atLeast: '20', contains: 'a b', p99Ms: '', moves: false })
})

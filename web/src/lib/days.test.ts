import { expect, test } from 'vitest'
import { dateOf, dayOf } from './days.ts'

test.each<[string, number | undefined]>([
  ['1970-01-01', 0],
  ['1969-12-31', -1],
  // 56 years with 14 leap days, and 323 days.
  ['2026-11-20', 20_777],
  ['2028-02-29', 21_243],
  ['2026-02-29', undefined],
  ['2026-02-31', undefined],
  ['2026-13-01', undefined],
  ['2026-1-1', undefined],
  ['2026-11-20T00:00', undefined],
  ['', undefined],
])('the day of %s', (date, day) => {
  expect(dayOf(date)).toBe(day)
  if (day !== undefined) expect(dateOf(day)).toBe(date)
})

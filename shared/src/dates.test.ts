import fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemClock, turnableClock } from './clock.ts'
import {
  addOneYear,
  baseYearOf,
  dayOf,
  formatDay,
  hasRealDate,
  isVisible,
  lastVisibleDay,
  packDay,
  parseDay,
  parseDayBytes,
  unpackDay,
  unpackDayBetween,
  weekdayOf,
  yearOf,
} from './dates.ts'
import { law } from './testing/law.ts'
import { bytesOfHex, replyVectors } from './testing/vectors.ts'

const LAST_DAY = Date.UTC(9999, 11, 31) / 86_400_000
const anyDay = fc.integer({ min: 0, max: LAST_DAY })

function day(text: string): number {
  const parsed = parseDay(text)
  if (parsed === undefined) throw new Error(`${text} is a date`)
  return parsed
}

test('every day is formatted and parsed as the platform does it', () => {
  law([anyDay], (number) => {
    const date = new Date(number * 86_400_000)
    const text = date.toISOString().slice(0, 10)

    expect(formatDay(number)).toBe(text)
    expect(parseDay(text)).toBe(number)
    expect(yearOf(number)).toBe(date.getUTCFullYear())
    expect(weekdayOf(number)).toBe(date.getUTCDay())
    expect(dayOf(number * 86_400_000)).toBe(number)
    expect(dayOf((number + 1) * 86_400_000 - 1)).toBe(number)
  })
})

test('every day of a whole cycle of leap years is formatted and parsed as the platform does it', () => {
  // 400 years have 146,097 days: 1970-01-01 to 2369-12-31.
  const wrong = Array.from({ length: 146_097 }, (_, number) => number).filter((number) => {
    const text = new Date(number * 86_400_000).toISOString().slice(0, 10)
    return formatDay(number) !== text || parseDay(text) !== number
  })

  expect(wrong).toEqual([])
})

test.each(['2000-02-29', '2000-03-01', '2100-02-28', '2100-03-01', '2400-02-29', '2400-03-01'])(
  '%s, at the edge of a cycle of leap years, is formatted and parsed',
  (text) => {
    const number = Date.parse(text) / 86_400_000

    expect(formatDay(number)).toBe(text)
    expect(parseDay(text)).toBe(number)
  },
)

test('of all texts of digits and hyphens, only calendar dates are parsed', () => {
  const two = (max: number) => fc.integer({ min: 0, max }).map((value) => String(value).padStart(2, '0'))
  const year = fc.integer({ min: 0, max: 9999 }).map((value) => String(value).padStart(4, '0'))
  law(
    [year, two(14), two(33)],
    (y, m, d) => {
      const text = `${y}-${m}-${d}`
      const date = new Date(`${text}T00:00:00Z`)
      const isReal = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text) && Number(y) >= 1970

      expect(parseDay(text)).toBe(isReal ? date.getTime() / 86_400_000 : undefined)
    },
    2000,
  )
})

test.each([
  '',
  '2026-1-01',
  '2026-01-1',
  '2026/01/01',
  '20260101',
  '2026-01-01T',
  ' 2026-01-01',
  '+026-01-01',
  '2026-01-3٣',
  '2026-02-29',
  '2100-02-29',
  '2026-04-31',
  '2026-00-10',
  '2026-13-10',
  '2026-10-00',
  '2026-10-32',
  '1969-12-31',
  '0000-01-01',
  'yyyy-mm-dd',
])('%j is not a date', (text) => {
  expect(parseDay(text)).toBeUndefined()
})

test('a date in bytes has exactly ten bytes', () => {
  const bytes = new TextEncoder().encode('x2028-02-29')

  expect(parseDayBytes(bytes, 1)).toBe(day('2028-02-29'))
  expect(parseDayBytes(bytes, 0)).toBe(-1)
  expect(parseDayBytes(bytes, 2)).toBe(-1)
  expect(parseDayBytes(bytes.subarray(0, 10), 1)).toBe(-1)
})

test.each([
  ['2026-03-10', '2027-03-10'],
  ['2026-12-31', '2027-12-31'],
  ['2027-01-01', '2028-01-01'],
  ['2027-02-28', '2028-02-28'],
  ['2027-03-01', '2028-03-01'],
  ['2028-02-28', '2029-02-28'],
  ['2028-02-29', '2029-03-01'],
  ['2099-06-01', '2100-06-01'],
])('a year after %s is %s', (from, to) => {
  expect(formatDay(addOneYear(day(from)))).toBe(to)
})

test('commands see today, the same date a year ahead, and the days between', () => {
  const today = day('2027-02-28')

  expect(formatDay(lastVisibleDay(today))).toBe('2028-02-28')
  expect(isVisible(today, today)).toBe(true)
  expect(isVisible(today - 1, today)).toBe(false)
  expect(isVisible(day('2028-02-28'), today)).toBe(true)
  expect(isVisible(day('2028-02-29'), today)).toBe(false)
  expect(isVisible(day('2028-02-29'), day('2027-03-01'))).toBe(true)
})

test('the day changes at midnight UTC, also at New Year', () => {
  expect(formatDay(dayOf(Date.UTC(2026, 11, 31, 23, 59, 59, 999)))).toBe('2026-12-31')
  expect(formatDay(dayOf(Date.UTC(2027, 0, 1)))).toBe('2027-01-01')
})

test.each(replyVectors.tables.packedDates)('$date is $value from $baseYear on', ({ date, baseYear, value, bytes }) => {
  expect(packDay(day(date), baseYear)).toBe(value)
  expect(formatDay(unpackDay(value, baseYear))).toBe(date)
  expect(new DataView(bytesOfHex(bytes).buffer).getUint16(0, true)).toBe(value)
})

test('every day of eight years is packed and unpacked', () => {
  law([fc.integer({ min: 1970, max: 9990 }), fc.integer({ min: 0, max: 2919 })], (baseYear, offset) => {
    const number = day(`${baseYear}-01-01`) + offset

    expect(unpackDay(packDay(number, baseYear), baseYear)).toBe(number)
  })
})

test('packed dates are found again among known days, whatever their base year', () => {
  law(
    [fc.integer({ min: 1970, max: 9990 }), fc.integer({ min: 0, max: 2000 }), fc.integer({ min: 1, max: 364 })],
    (baseYear, offset, nights) => {
      const first = day(`${baseYear}-01-01`) + offset
      const days = Array.from({ length: nights }, (_, n) => first + n)
      const packed = days.map((number) => packDay(number, baseYear))

      expect(baseYearOf(packed, days)).toBe(baseYear)
      expect(packed.map((date) => unpackDayBetween(date, first, first + nights - 1))).toEqual(days)
      expect(unpackDayBetween(packDay(first + nights, baseYear), first, first + nights - 1)).toBe(-1)
    },
  )
})

test.each([
  ['2028-02-29T00:00:00Z', true],
  ['2027-02-29T00:00:00Z', false],
  ['2027-04-31T12:00:00+02:00', false],
  ['2027-04-30T24:00:00Z', false],
])('%s is a time: %s', (text, exists) => {
  expect(hasRealDate(text)).toBe(exists)
})

test('a date before the base year, or eight years after it, cannot be packed', () => {
  expect(() => packDay(day('2025-12-31'), 2026)).toThrow('base year')
  expect(() => packDay(day('2034-01-01'), 2026)).toThrow('base year')
})

test.each([
  ['30 February', 0x003d],
  ['29 February of a common year', 0x003c],
  ['month 13', 0x0180],
  ['31 April', 0x007e],
  ['a bit beyond the year', 0x1000],
])('%s does not unpack', (_, packed) => {
  expect(unpackDay(packed, 2026)).toBe(-1)
})

test('a manual clock advances both readings, and sets only the wall clock', () => {
  const clock = turnableClock(1_000)

  clock.advance(50)
  clock.setWall(10)

  expect([clock.wallMs(), clock.monotonicMs()]).toEqual([10, 50])
})

test('the system clock knows the year, and its monotonic reading never decreases', () => {
  const before = systemClock.monotonicMs()

  expect(new Date(systemClock.wallMs()).getUTCFullYear()).toBeGreaterThan(2024)
  expect(systemClock.monotonicMs()).toBeGreaterThanOrEqual(before)
})

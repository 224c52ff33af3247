import { describe, expect, test } from 'vitest'
import {
  age,
  bytes,
  clock,
  count,
  counted,
  day,
  days,
  duration,
  isKnownTime,
  micros,
  percent,
  rate,
  shortCount,
  utc,
  weekday,
} from './format.ts'

describe('numbers', () => {
  test.each([
    [0, '0'],
    [999, '999'],
    [9_999, '9,999'],
    [12_400, '12,400'],
    [1_234_567, '1,234,567'],
    [-12_400, '−12,400'],
    [1_234.5, '1,234.5'],
  ])('count of %d is %s', (value, text) => expect(count(value)).toBe(text))

  test('a missing value is an en dash, never zero', () => {
    for (const write of [count, shortCount, bytes, rate, percent, duration, micros]) {
      expect(write(null)).toBe('–')
      expect(write(undefined)).toBe('–')
      expect(write(Number.NaN)).toBe('–')
    }
    expect(utc(null)).toBe('–')
    expect(day('')).toBe('–')
    expect(days(null)).toBe('–')
    expect(clock('not a time')).toBe('–')
  })

  test.each([
    [9_999, '9,999'],
    [61_400, '61.4 k'],
    [1_000_000, '1 M'],
    [2_310_000_000, '2.31 G'],
  ])('short count of %d is %s', (value, text) => expect(shortCount(value)).toBe(text))

  test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1 kB'],
    [48_200_000, '48.2 MB'],
    [9_610_000_000, '9.61 GB'],
    [999_999, '1 MB'],
  ])('%d bytes are %s', (value, text) => expect(bytes(value)).toBe(text))

  test('rates keep three digits', () => {
    expect(rate(0)).toBe('0/s')
    expect(rate(3.1449)).toBe('3.14/s')
    expect(rate(412)).toBe('412/s')
    expect(rate(12_400)).toBe('12.4 k/s')
  })

  test('only a full share is 100 %', () => {
    expect(percent(0.999)).toBe('99 %')
    expect(percent(1)).toBe('100 %')
    expect(percent(0)).toBe('0 %')
  })

  test('a noun is singular or plural by its number', () => {
    expect(counted(1, 'shard')).toBe('1 shard')
    expect(counted(0, 'shard')).toBe('0 shards')
    expect(counted(2, 'entry', 'entries')).toBe('2 entries')
  })
})

describe('times', () => {
  test.each([
    [0.4, '0.4 ms'],
    [180, '180 ms'],
    [999.6, '1.0 s'],
    [1_900, '1.9 s'],
    [9_960, '10 s'],
    [41_000, '41 s'],
    [245_000, '4 min 05 s'],
    [240_000, '4 min'],
    [11_040_000, '3 h 04 min'],
    [198_000_000, '2 d 7 h'],
  ])('%d ms last %s', (value, text) => expect(duration(value)).toBe(text))

  test.each([
    [-400, 'now'],
    [400, 'now'],
    [4_900, '4 s'],
    [60_000, '1 min'],
    [245_000, '4 min'],
    [11_520_000, '3 h 12 min'],
    [260_000_000, '3 d'],
  ])('%d ms ago is %s', (value, text) => expect(age(value)).toBe(text))

  test('a thousand microseconds and more are milliseconds', () => {
    expect(micros(412)).toBe('412 µs')
    expect(micros(1_900)).toBe('1.9 ms')
  })

  test('times are UTC in every time zone', () => {
    expect(utc('2026-11-20T18:27:33.123Z')).toBe('20 Nov 2026, 18:27:33 UTC')
    expect(['2026-11-20T18:27:33.123Z', '1970-01-01T00:00:00.000Z'].map(isKnownTime)).toEqual([true, false])
    expect(utc('2026-11-20T18:27:33+02:00')).toBe('20 Nov 2026, 16:27:33 UTC')
    expect(clock('2026-11-20T00:05:09Z')).toBe('00:05:09')
  })

  test('dates are days, not instants', () => {
    expect(day('2026-11-20')).toBe('20 Nov')
    expect(day('2026-11-20', true)).toBe('20 Nov 2026')
    expect(weekday('2026-11-20')).toBe('Fri')
    expect(days({ from: '2026-11-20', to: '2027-02-18' })).toBe('20 Nov – 18 Feb')
  })
})

import { describe, expect, test } from 'vitest'
import { dateOf, dayOf } from './days.ts'
import { filterParts, parseFilter, passes, withoutPart } from './filter.ts'
import {
  age,
  bytes,
  clock,
  count,
  counted,
  day,
  days,
  duration,
  figure,
  isKnownTime,
  micros,
  month,
  percent,
  rate,
  shortCount,
  utc,
  weekday,
} from './format.ts'
import { missingText } from './missing.ts'
import { nearest } from './nearest.ts'

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
    for (const write of [count, shortCount, figure, bytes, rate, percent, duration, micros]) {
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
    [0, '0'],
    [0.6, '1'],
    [9_999, '9,999'],
    [10_000, '10 k'],
    [12_345, '12.3 k'],
    [61_400, '61.4 k'],
    [999_000, '999 k'],
    [1_000_000, '1 M'],
    [-61_400, '−61.4 k'],
    [12_340_000, '12.3 M'],
    [1_000_000_000, '1 G'],
    [2_310_000_000, '2.31 G'],
  ])('short count of %d is %s', (value, text) => expect(shortCount(value)).toBe(text))

  test.each([
    [0, '0 B'],
    [1.6, '2 B'],
    [999, '999 B'],
    [999.5, '1 kB'],
    [1_000, '1 kB'],
    [-1_500, '−1.5 kB'],
    [1_000_000_000_000_000, '1 PB'],
    [1_234_000_000_000_000_000, '1,234 PB'],
    [48_200_000, '48.2 MB'],
    [9_610_000_000, '9.61 GB'],
    [999_999, '1 MB'],
  ])('%d bytes are %s', (value, text) => expect(bytes(value)).toBe(text))

  test('rates keep three digits', () => {
    expect(rate(0)).toBe('0/s')
    expect(rate(3.1449)).toBe('3.14/s')
    expect([9.994, 9.996, 99.94, 99.96].map(rate)).toEqual(['9.99/s', '10/s', '99.9/s', '100/s'])
    expect([12.44, 412.4, 999, 1_000, 1_240.4].map(rate)).toEqual(['12.4/s', '412/s', '999/s', '1,000/s', '1,240/s'])
    expect(rate(412)).toBe('412/s')
    expect(rate(12_400)).toBe('12.4 k/s')
  })

  test('figures of any size have three digits', () => {
    expect([0, 0.005, 0.05, 0.7, 2, 19.9, 24, 999].map(figure)).toEqual([
      '0',
      '0.005',
      '0.05',
      '0.7',
      '2',
      '19.9',
      '24',
      '999',
    ])
    expect([1_234.5, 12_345, -61_400].map(figure)).toEqual(['1,235', '12.3 k', '−61.4 k'])
  })

  test('only a full share is 100 %', () => {
    expect(percent(0.999)).toBe('99 %')
    expect(percent(1)).toBe('100 %')
    expect([0, 0.004, 0.006, 0.61, 0.985, 1.5].map(percent)).toEqual(['0 %', '0 %', '1 %', '61 %', '99 %', '150 %'])
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
    [9.994, '9.99 ms'],
    [10.4, '10 ms'],
    [180, '180 ms'],
    [999.4, '999 ms'],
    [999.6, '1.0 s'],
    [1_900, '1.9 s'],
    [9_949, '9.9 s'],
    [9_950, '10 s'],
    [9_960, '10 s'],
    [41_000, '41 s'],
    [59_400, '59 s'],
    [59_600, '1 min'],
    [61_000, '1 min 01 s'],
    [3_599_000, '59 min 59 s'],
    [3_600_000, '1 h'],
    [3_659_000, '1 h'],
    [172_799_000, '47 h 59 min'],
    [172_800_000, '2 d'],
    [176_400_000, '2 d 1 h'],
    [432_000_000, '5 d'],
    [245_000, '4 min 05 s'],
    [240_000, '4 min'],
    [11_040_000, '3 h 04 min'],
    [198_000_000, '2 d 7 h'],
  ])('%d ms last %s', (value, text) => expect(duration(value)).toBe(text))

  test.each([
    [-400, 'now'],
    [400, 'now'],
    [999, 'now'],
    [1_000, '1 s'],
    [4_900, '4 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [3_599_999, '59 min'],
    [3_600_000, '1 h'],
    [3_659_000, '1 h'],
    [3_660_000, '1 h 01 min'],
    [245_000, '4 min'],
    [11_520_000, '3 h 12 min'],
    [260_000_000, '3 d'],
  ])('%d ms ago is %s', (value, text) => expect(age(value)).toBe(text))

  test('a thousand microseconds and more are milliseconds', () => {
    expect([0, 412.4, 999.4, 999.6, 1_000].map(micros)).toEqual(['0 µs', '412 µs', '999 µs', '1 ms', '1 ms'])
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
    const months = Array.from({ length: 12 }, (_, n) => day(`2026-${String(n + 1).padStart(2, '0')}-01T23:59:59Z`))
    expect(months.join()).toBe('1 Jan,1 Feb,1 Mar,1 Apr,1 May,1 Jun,1 Jul,1 Aug,1 Sep,1 Oct,1 Nov,1 Dec')
    expect(month('2026-11')).toBe('Nov 2026')
    expect([day(null), day('2026-13-01'), weekday('nonsense')]).toEqual(['–', '–', '–'])
    expect(['2026-11-22', '2026-11-28T23:00:00Z', '2026-11-20'].map(weekday)).toEqual(['Sun', 'Sat', 'Fri'])
    expect(days({ from: '2026-11-20', to: '2027-02-18' })).toBe('20 Nov – 18 Feb')
  })
})

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

const sources = (...names: string[]) => names.map((source) => ({ source }))

test.each([
  [['s1/n1'], 4, '1 of 4 nodes did not respond'],
  [['registry http://127.0.0.1:7000', 's1/n1'], 4, '1 of 4 nodes and 1 other source did not respond'],
  [['s1/n1 /metrics', 's1/n1 /status', 's1/n2'], 4, '1 of 4 nodes and 2 other sources did not respond'],
  [['registry http://127.0.0.1:7000'], 4, '1 source did not respond'],
  [['s1/n1', 's1/n2', 's1/n3', 's1/n4', 'registry x'], 4, '4 of 4 nodes and 1 other source did not respond'],
  [['s1/n1'], undefined, '1 node did not respond'],
])('registry and single paths are not counted as nodes: %j of %s', (names, nodes, text) => {
  expect(missingText(sources(...names), nodes)).toBe(text)
})

test('the name with the smallest distance comes first', () => {
  expect(nearest('/shard', ['/audit', '/imports', '/shards'])[0]).toBe('/shards')
  expect(nearest('/OPERATION', ['/registry', '/operations'])[0]).toBe('/operations')
})

test('without known names there are none', () => {
  expect(nearest('s1', [])).toEqual([])
})

const shard = { id: 's3', zone: 'eu-1', state: 'Far behind', lag: 12_400, spare: 0, leader: null }
const isIn = (text: string) => passes(parseFilter(text), shard)

test('words and pairs are distinguished', () => {
  expect(parseFilter('S3 zone:EU-1  lag:>1000 "far behind" state:"far behind"')).toEqual({
    words: ['s3', 'far behind'],
    pairs: [
      { key: 'zone', op: ':', value: 'eu-1' },
      { key: 'lag', op: '>', value: '1000' },
      { key: 'state', op: ':', value: 'far behind' },
    ],
  })
})

test('an incomplete pair filters nothing', () => {
  expect(parseFilter('state: lag:> "')).toEqual({ words: [], pairs: [] })
})

test('a colon at the start or in quotes makes no key', () => {
  expect(parseFilter(':x "a:b"').words).toEqual([':x', 'a:b'])
})

test.each([
  ['', true],
  ['eu', true],
  ['behind s3', true],
  ['behind s4', false],
  ['zone:eu', true],
  ['zone:us', false],
  ['lag:>1000', true],
  ['lag:<1000', false],
  ['spare:0', true],
  ['spare:1', false],
  ['leader:n1', false],
  ['nosuchkey:1', false],
])('%j passes: %s', (text, expected) => expect(isIn(text)).toBe(expected))

test('the parts of a text are its complete pairs as typed, and each can be removed', () => {
  const text = 'paris State:"far behind"  lag:>1000 zone: lag:>1000'

  expect(filterParts(text)).toEqual(['State:"far behind"', 'lag:>1000', 'lag:>1000'])
  expect(withoutPart(text, 'lag:>1000')).toBe('paris State:"far behind" zone: lag:>1000')
  expect(withoutPart(text, 'State:"far behind"')).toBe('paris lag:>1000 zone: lag:>1000')
  expect(withoutPart(text, 'nothing:like-it')).toBe('paris State:"far behind" lag:>1000 zone: lag:>1000')
})

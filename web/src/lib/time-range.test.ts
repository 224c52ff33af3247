import { describe, expect, test } from 'vitest'
import {
  addRecent,
  boundMs,
  isRange,
  parseRange,
  RANGE_MAX_MS,
  rangeBetweenMs,
  rangeText,
  stepRange,
  type ZoomHistory,
  zoomIn,
  zoomOut,
} from './time-range.ts'

const NOW = Date.parse('2026-11-20T18:30:00Z')
const at = (text: string) => Date.parse(`2026-11-${text}Z`)

describe('a typed range', () => {
  test.each([
    ['now-3h', 'now-3h', 'now'],
    ['3h', 'now-3h', 'now'],
    ['007 s', 'now-7s', 'now'],
    ['2d', 'now-2d', 'now'],
    ['999999m', 'now-999999m', 'now'],
    ['18:00:05.250 to 18:00:07', '2026-11-20T18:00:05.000Z', '2026-11-20T18:00:07.000Z'],
    ['23:00..1:00', '2026-11-19T23:00:00.000Z', '2026-11-20T01:00:00.000Z'],
    ['00:00..23:59:59', '2026-11-20T00:00:00.000Z', '2026-11-20T23:59:59.000Z'],
    ['2h..18:00', 'now-2h', '2026-11-20T18:00:00.000Z'],
    [' 90 m ', 'now-90m', 'now'],
    ['now-3h..now-1h', 'now-3h', 'now-1h'],
    ['2026-11-20 18:00..18:30', '2026-11-20T18:00:00.000Z', '2026-11-20T18:30:00.000Z'],
    ['2026-11-19 23:50..00:10', '2026-11-19T23:50:00.000Z', '2026-11-20T00:10:00.000Z'],
    ['18:00..18:20', '2026-11-20T18:00:00.000Z', '2026-11-20T18:20:00.000Z'],
    ['9:05 to now', '2026-11-20T09:05:00.000Z', 'now'],
    ['2026-11-20T17:00:10Z..2026-11-20T17:01:10Z', '2026-11-20T17:00:10.000Z', '2026-11-20T17:01:10.000Z'],
  ])('%s', (text, from, to) => expect(parseRange(text, NOW)).toEqual({ from, to }))

  test('a single time is pinned and shown with a quarter of an hour around it, not beyond now', () => {
    expect(parseRange('17:20', NOW)).toEqual({
      from: '2026-11-20T17:05:00.000Z',
      to: '2026-11-20T17:35:00.000Z',
      pin: '2026-11-20T17:20:00.000Z',
    })
    expect(parseRange('18:20', NOW)?.to).toBe('now')
  })

  test('a time later than now was yesterday', () => {
    expect(parseRange('23:00', NOW)?.pin).toBe('2026-11-19T23:00:00.000Z')
  })

  test.each([
    '',
    'yesterday',
    'now',
    'now-0h',
    '1000000m',
    '24:00',
    '18:60',
    '18:00:60',
    '18:5',
    '2026-13-01 10:00',
    'now..now',
    '1h..soon',
    'soon..now',
    '2026-11-20 18:30:01',
    '18:30..18:30',
    '18:00..18:00',
    '11:05..11:01',
    '2026-02-30 10:00',
    '2026-11-21 10:00',
    'now-1h..now-2h',
    '10:00..11:00..12:00',
    '2026-11-20 18:00..2026-11-20 17:00',
    '2026-11-21 10:00..11:00',
    '18:20; drop',
  ])('%o is not a range', (text) => expect(parseRange(text, NOW)).toBeUndefined())

  test('what is shown for a range is read back as the same one', () => {
    for (const text of ['now-3h', '2026-11-20 18:00..18:30', '2026-11-19 23:50..2026-11-20 00:10', '3h..1h']) {
      const range = parseRange(text, NOW)
      expect(range && parseRange(rangeText(range), NOW)).toEqual(range)
    }
  })
})

test('a bound of a URL is a time, or relative to now', () => {
  expect(boundMs('now', NOW)).toBe(NOW)
  expect(boundMs('now-15m', NOW)).toBe(NOW - 900_000)
  expect(['now-3s', 'now-2h', 'now-2d'].map((text) => NOW - boundMs(text, NOW))).toEqual([
    3_000, 7_200_000, 172_800_000,
  ])
  expect(isRange({ from: 'now', to: 'now' }, NOW)).toBe(false)
  expect(boundMs('2026-11-20T18:00:00.000Z', NOW)).toBe(at('20T18:00:00'))
  for (const text of ['', 'now-', '18:20', '2026-11-20', 'now-1y']) expect(boundMs(text, NOW)).toBeNaN()
  expect(isRange({ from: 'now-1h', to: 'now' }, NOW)).toBe(true)
  expect(isRange({ from: 'now', to: 'now-1h' }, NOW)).toBe(false)
  expect(isRange({ from: 'nonsense', to: 'now' }, NOW)).toBe(false)
})

describe('zooming', () => {
  const hour = { from: 'now-1h', to: 'now' }

  test('out returns to each range before, then doubles the shown one up to a day', () => {
    const first = rangeBetweenMs(at('20T18:00:00'), at('20T18:10:00'))
    let history: ZoomHistory = zoomIn(zoomIn([], hour), first)
    let shown = rangeBetweenMs(at('20T18:04:00'), at('20T18:02:00'))
    expect(shown).toEqual({ from: '2026-11-20T18:02:00.000Z', to: '2026-11-20T18:04:00.000Z' })
    const seen = []
    for (let n = 0; n < 8; n++) {
      ;({ history, range: shown } = zoomOut(history, shown, NOW))
      seen.push(rangeText(shown))
    }
    expect(seen).toEqual([
      '2026-11-20 18:00..18:10',
      'now-1h',
      'now-120m',
      'now-240m',
      'now-480m',
      'now-960m',
      'now-1440m',
      'now-1440m',
    ])
  })

  test('out of a range in the past keeps its middle and ends at now at the latest', () => {
    const shown = rangeBetweenMs(at('20T18:00:00'), at('20T18:20:00'))
    expect(rangeText(zoomOut([], shown, NOW).range)).toBe('2026-11-20 17:50..18:30')
    expect(rangeText(zoomOut([], zoomOut([], shown, NOW).range, NOW).range)).toBe('2026-11-20 17:10..18:30')
  })

  test('the least range is a minute around what was dragged', () => {
    expect(rangeText(rangeBetweenMs(at('20T18:00:30'), at('20T18:00:31')))).toBe('2026-11-20 18:00..18:01')
    expect(rangeBetweenMs(at('20T18:00:00'), at('20T18:01:00'))).toEqual({
      ...{ from: '2026-11-20T18:00:00.000Z', to: '2026-11-20T18:01:00.000Z' },
    })
    expect(rangeBetweenMs(at('20T18:00:30'), at('20T18:00:30'))).toEqual({
      ...{ from: '2026-11-20T18:00:00.000Z', to: '2026-11-20T18:01:00.000Z' },
    })
  })

  test('keeps the last twenty ranges', () => {
    let history: ZoomHistory = []
    for (let n = 1; n <= 30; n++) history = zoomIn(history, { from: `now-${n}h`, to: 'now' })
    expect(history.map(({ from }) => from)).toEqual(Array.from({ length: 20 }, (_, n) => `now-${n + 11}h`))
  })

  test('by keys halves the range, or moves it by a third, not beyond now', () => {
    expect(rangeText(stepRange(hour, NOW, 'in'))).toBe('2026-11-20 18:00..18:30')
    expect(rangeText(stepRange(hour, NOW, 'earlier'))).toBe('2026-11-20 17:10..18:10')
    expect(rangeText(stepRange(hour, NOW, 'later'))).toBe('2026-11-20 17:30..18:30')
    const past = rangeBetweenMs(at('20T12:00:00'), at('20T15:00:00'))
    expect((['earlier', 'later', 'in'] as const).map((step) => rangeText(stepRange(past, NOW, step)))).toEqual([
      '2026-11-20 11:00..14:00',
      '2026-11-20 13:00..16:00',
      '2026-11-20 12:45..14:15',
    ])
  })

  test('out never goes beyond a day', () => {
    const day = { from: 'now-24h', to: 'now' }
    const { range } = zoomOut([], day, NOW)
    expect(NOW - boundMs(range.from, NOW)).toBe(RANGE_MAX_MS)
  })
})

test('a range is written with its date once, and seconds only where they count', () => {
  const text = (from: string, to: string) => rangeText({ from, to })
  expect(text('2026-11-20T18:00:30.000Z', '2026-11-20T18:01:00.000Z')).toBe('2026-11-20 18:00:30..18:01')
  expect(text('2026-11-19T18:00:00.000Z', '2026-11-20T18:00:00.000Z')).toBe('2026-11-19 18:00..2026-11-20 18:00')
  expect([text('now-3h', 'now'), text('now-3h', 'now-1h')]).toEqual(['now-3h', 'now-3h..now-1h'])
  expect(text('2026-11-20T18:00:00.000Z', 'now')).toBe('2026-11-20 18:00..now')
})

test('the last five typed ranges are kept, each once', () => {
  let recent: readonly string[] = []
  for (const text of ['a', 'b', 'c', 'b', 'd', 'e', 'f']) recent = addRecent(recent, text)
  expect(recent).toEqual(['f', 'e', 'd', 'b', 'c'])
})

import { parseDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { type Found, fieldsOn, judge, p99Of } from './expectations.ts'

const NOTHING = { atLeast: null, contains: [], p99Ms: null }
const UUID = '6f8a1c2e-53b0-4f57-9c1b-2f3f5a7d9e01'
const found = (ids: readonly string[], micros: readonly number[] = [200], isCut = false): Found => ({
  ids,
  isCut,
  micros,
})

test.each([
  [{ atLeast: 2 }, found(['a', 'b']), 'passed', 'finds 2 properties'],
  [{ atLeast: 2 }, found(['a']), 'failed', 'finds 1 property, at least 2 expected'],
  // A property with several room types is one property.
  [{ atLeast: 2 }, found(['a', 'a']), 'failed', 'finds 1 property, at least 2 expected'],
  [
    { atLeast: 300 },
    found(['a', 'b'], [200], true),
    'failed',
    'finds 2 properties, the limit of its reply, at least 300 expected',
  ],
  [{ contains: ['a', UUID.toUpperCase()] }, found([UUID, 'a', 'b']), 'passed', 'finds 3 properties'],
  [{ contains: ['a', 'x', 'y'] }, found(['a']), 'failed', 'finds 1 property; without x, y'],
  [{ contains: ['v', 'w', 'x', 'y', 'z'] }, found([]), 'failed', 'finds 0 properties; without v, w, x and 2 more'],
  [{ p99Ms: 2 }, found(['a'], [1_000, 2_000]), 'passed', 'finds 1 property; p99 2 ms'],
  [{ p99Ms: 2 }, found(['a'], [1_000, 2_500]), 'slow', 'finds 1 property; p99 2.5 ms, at most 2 ms expected'],
  // What is lost weighs more than what is late.
  [
    { atLeast: 2, p99Ms: 2 },
    found(['a'], [3_000]),
    'failed',
    'finds 1 property, at least 2 expected; p99 3 ms, at most 2 ms expected',
  ],
  [{ atLeast: 1 }, { refused: 'dates[0] is before today' }, 'failed', 'refused: dates[0] is before today'],
] as const)('%o of %o: %s', (expects, result, verdict, message) => {
  expect(
    judge({ ...NOTHING, ...expects, contains: [...('contains' in expects ? expects.contains : [])] }, result),
  ).toMatchObject({
    verdict,
    message,
  })
})

test('of a hundred runs the slowest one does not count', () => {
  const runs = Array.from({ length: 100 }, (_, n) => (n + 1) * 1_000)

  expect([p99Of(runs.toReversed()), p99Of([1_500]), p99Of([])]).toEqual([99, 1.5, null])
})

test('dates move with the day and keep their distance, and without a distance they stay', () => {
  const today = parseDay('2026-12-30') as number
  const fields = { segment: 'alps', dates: ['2026-06-11', '2026-06-10', '2026-06-13'] }

  expect(fieldsOn(fields, 2, today)).toEqual({ segment: 'alps', dates: ['2027-01-02', '2027-01-01', '2027-01-04'] })
  expect(fieldsOn(fields, null, today)).toBe(fields)
  expect(fieldsOn({ segment: 'alps' }, 2, today)).toEqual({ segment: 'alps' })
})

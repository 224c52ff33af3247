import { expect, test } from 'vitest'
import { type Kind, kindsOf, type Round, rowOf } from './failover.ts'
import { longestPause, median, quantile, type Request, slowest } from './pauses.ts'

const round = (kind: Kind, pauseMs: number, more: Partial<Round> = {}): Round => ({
  kind,
  pauseMs,
  returnPauseMs: 0,
  slowestWriteMs: pauseMs,
  slowestReadMs: 3,
  writesFailed: 0,
  readsFailed: 0,
  errors: {},
  reads: 100,
  lateMs: 1,
  ...more,
})
const figureOf = (row: ReturnType<typeof rowOf>, name: string) => row.measures.find((measure) => measure.name === name)

test('of a hundred deaths one may last longer than the 99th percentile allows', () => {
  const rounds = Array.from({ length: 99 }, (_, i) => round('death', 200 + i))
  const row = rowOf('death', [...rounds, round('death', 5_000)])

  expect(figureOf(row, 'no writes, p50')).toMatchObject({ value: 0.249, verdict: 'met' })
  expect(figureOf(row, 'no writes, p99')).toMatchObject({ value: 0.298, verdict: 'met' })
  expect(figureOf(row, 'no writes, longest')).toMatchObject({ value: 5 })
  expect(row.verdict).toBe('met')
})

test('a single read that failed misses the target', () => {
  const row = rowOf('cut', [round('cut', 2_000), round('cut', 2_100, { readsFailed: 1 })])

  expect(figureOf(row, 'reads that failed')).toMatchObject({ value: 1, verdict: 'missed' })
  expect(figureOf(row, 'reads in that time')).toMatchObject({ value: 200 })
  expect(row.verdict).toBe('missed')
})

test('a transfer has its own bound, and no node returns from it', () => {
  const row = rowOf('transfer', [round('transfer', 151)])

  expect(figureOf(row, 'no writes, p99')).toMatchObject({ target: { atMost: 0.15 }, verdict: 'missed' })
  expect(row.measures.some(({ name }) => name.includes('comes back'))).toBe(false)
})

test('kinds are run in their own order, and unknown ones are refused', () => {
  expect(kindsOf(['stop', 'death'])).toEqual(['death', 'stop'])
  expect(kindsOf(undefined)).toHaveLength(4)
  expect(() => kindsOf(['fire'])).toThrow('--only: there is no fire; there are death, cut, transfer, stop')
})

const answered = (intendedMs: number, settledMs: number): Request => ({ intendedMs, settledMs, error: '' })
const failed = (intendedMs: number, settledMs: number): Request => ({ intendedMs, settledMs, error: 'deadline' })
const open = (intendedMs: number): Request => ({ intendedMs, settledMs: Number.POSITIVE_INFINITY, error: '' })
const all = { fromMs: 0, toMs: 1e9 }

test('a pause lasts from the first write without an answer to the next answer', () => {
  const writes = [answered(0, 2), answered(5, 7), answered(10, 310), answered(15, 311), answered(20, 312)]

  expect(longestPause(writes, all)).toEqual({ startMs: 10, lengthMs: 300 })
})

test('writes that failed are part of the pause, and their failure does not end it', () => {
  const writes = [answered(0, 2), failed(5, 100), failed(10, 200), answered(15, 405), answered(20, 406)]

  expect(longestPause(writes, all)).toEqual({ startMs: 5, lengthMs: 400 })
})

test('a write that others overtake is slow, but not a pause', () => {
  const writes = [answered(0, 2), answered(5, 505), answered(10, 12), answered(15, 17), answered(20, 22)]

  expect(longestPause(writes, all).lengthMs).toBe(7)
  expect(slowest(writes, all)).toBe(500)
})

test('only pauses that end within the time count', () => {
  const writes = [answered(0, 100), answered(105, 107), answered(110, 140), answered(145, 500)]

  expect(longestPause(writes, { fromMs: 105, toMs: 200 })).toEqual({ startMs: 110, lengthMs: 30 })
})

test('a pause that began before the time and ended in it counts whole', () => {
  expect(longestPause([answered(0, 1), answered(90, 120)], { fromMs: 100, toMs: 200 })).toEqual({
    startMs: 90,
    lengthMs: 30,
  })
})

test('without a reply a pause does not end', () => {
  expect(longestPause([answered(0, 1), open(5), open(10)], { fromMs: 2, toMs: 100 }).lengthMs).toBe(0)
})

test('quantiles are values that were seen', () => {
  const values = Array.from({ length: 100 }, (_, i) => 100 - i)

  expect(quantile(values, 0.5)).toBe(50)
  expect(quantile(values, 0.99)).toBe(99)
  expect(quantile([7], 0.99)).toBe(7)
  expect(quantile([], 0.5)).toBeNaN()
})

test('the median of an even number lies between the middle two', () => {
  expect(median([4, 1, 3])).toBe(3)
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([])).toBeNaN()
})

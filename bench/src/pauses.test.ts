import { expect, test } from 'vitest'
import { longestPause, median, quantile, type Request, slowest } from './pauses.ts'

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

import { expect, test } from 'vitest'
import { type Compared, comparedMeasures, spread, worseBy } from './comparison.ts'

const latency = (base: number[], here: number[]): Compared => ({
  name: 'p50',
  unit: 'ms',
  isBetter: 'less',
  base,
  here,
})
const peak = (base: number[], here: number[]): Compared => ({ name: 'peak', unit: '/s', isBetter: 'more', base, here })
const verdictOf = (compared: Compared) => comparedMeasures(compared)[0]?.verdict

test('more time is worse, more throughput is better', () => {
  expect(worseBy(latency([1, 1, 1], [1.1, 1.1, 1.1]))).toBeCloseTo(0.1)
  expect(worseBy(peak([100, 100, 100], [110, 110, 110]))).toBeCloseTo(-0.1)
})

test('five per cent worse is allowed, more is not, when all runs say the same', () => {
  expect(verdictOf(latency([1, 1, 1], [1.04, 1.04, 1.04]))).toBe('met')
  expect(verdictOf(latency([1, 1, 1], [1.06, 1.06, 1.06]))).toBe('missed')
  expect(verdictOf(peak([100, 100, 100], [96, 96, 96]))).toBe('met')
  expect(verdictOf(peak([100, 100, 100], [94, 94, 94]))).toBe('missed')
})

test('the spread of the runs is allowed as well: half the distance between the quartiles of the noisier side', () => {
  // Quartiles 0.9 and 1.1.
  const noisy = [0.8, 0.9, 1, 1.1, 1.2]
  expect(spread({ base: noisy, here: [2, 2, 2, 2, 2] })).toBeCloseTo(0.1)

  expect(verdictOf(latency(noisy, [1.14, 1.14, 1.14, 1.14, 1.14]))).toBe('met')
  expect(verdictOf(latency(noisy, [1.16, 1.16, 1.16, 1.16, 1.16]))).toBe('missed')
})

test('one wild run neither moves the median nor excuses the others', () => {
  expect(verdictOf(latency([1, 1, 1, 1, 9], [1.2, 1.2, 1.2, 1.2, 1.2]))).toBe('missed')
})

test('the row has the difference, the limit, and the runs', () => {
  expect(comparedMeasures(latency([1, 1, 1], [1.5, 1.5, 1.5]))[0]).toMatchObject({
    value: 1.5,
    target: { atMost: 1.05 },
    baseline: { name: 'base', value: 1 },
    why: '50.0 % worse, allowed are 5.0 %; base 1.00 ms to 1.00 ms, here 1.50 ms to 1.50 ms',
  })
})

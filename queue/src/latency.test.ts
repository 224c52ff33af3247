import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { addBuckets, bucketsReading, createBuckets, LATENCY_SECONDS, observe, quantileSince } from './latency.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

test.each([
  [-1, 0],
  [0, 0],
  [1, 0],
  [1.001, 1],
  [2, 1],
  [4, 2],
  [4.001, 3],
  [1e9, 3],
])('a value of %d is counted in bucket %d of 1, 2, 4 and above', (value, bucket) => {
  const buckets = createBuckets([1, 2, 4])
  observe(buckets, value)
  expect([...buckets.counts]).toEqual([0, 1, 2, 3].map((n) => (n === bucket ? 1 : 0)))
  expect(buckets.sum).toBe(value)
})

test('latencies are distinguished from a millisecond up to an hour', () => {
  expect([LATENCY_SECONDS[0], LATENCY_SECONDS.at(-1)]).toEqual([0.001, 3_600])
  expect(LATENCY_SECONDS.toSorted((a, b) => a - b)).toEqual(LATENCY_SECONDS)
})

test('a reading has the counts and the sum', () => {
  const buckets = createBuckets([1])
  observe(buckets, 0.5)
  observe(buckets, 3)
  const { labels, counts, sum } = bucketsReading(buckets, { topic: 'orders' })
  expect([labels, [...counts], sum]).toEqual([{ topic: 'orders' }, [1, 1], 3.5])
})

test.each([
  [0.5, 1],
  [0.25, 0.5],
  [0.75, 2],
  [1, 3],
  [0, 0],
])('the quantile %d of two values up to 1 and two between 1 and 3 is %d', (q, value) => {
  const buckets = createBuckets([1, 3, 9])
  for (const each of [0.1, 1, 2, 3]) observe(buckets, each)
  expect(quantileSince(buckets, new Float64Array(4), q)).toBe(value)
})

test('a quantile is that of the values since then', () => {
  const buckets = createBuckets([1, 3, 9])
  for (const each of [0.5, 0.5, 0.5, 2, 2, 2, 7]) observe(buckets, each)
  const before = buckets.counts.slice()
  expect(quantileSince(buckets, before, 0.5)).toBeNaN()
  for (const each of [2, 2]) observe(buckets, each)
  expect(quantileSince(buckets, before, 0.5)).toBe(2)
  expect(quantileSince(buckets, before, 1)).toBe(3)
})

test('values above all bounds count as the largest one', () => {
  const buckets = createBuckets([1, 3])
  for (const each of [0.5, 50, 60, 70]) observe(buckets, each)
  expect(quantileSince(buckets, new Float64Array(3), 0.25)).toBe(1)
  expect(quantileSince(buckets, new Float64Array(3), 0.5)).toBe(3)
})

test('a quantile is within the bucket of the value that it is of', () => {
  const random = createRandom(SEED)
  for (let run = 0; run < 100; run++) {
    const buckets = createBuckets(LATENCY_SECONDS)
    const values = Array.from(
      { length: 1 + random.below(40) },
      () => random.below(400_000) / 100 / (1 + random.below(999)),
    )
    for (const value of values) observe(buckets, value)
    const sorted = values.toSorted((a, b) => a - b)
    for (const q of [0.1, 0.5, 0.99, 1]) {
      const exact = sorted[Math.ceil(q * sorted.length) - 1] as number
      const upper = LATENCY_SECONDS.find((bound) => exact <= bound) ?? 3_600
      const lower = LATENCY_SECONDS.findLast((bound) => exact > bound) ?? 0
      const found = quantileSince(buckets, new Float64Array(LATENCY_SECONDS.length + 1), q)
      expect(found, `seed ${SEED}, run ${run}, quantile ${q}`).toBeLessThanOrEqual(upper)
      expect(found, `seed ${SEED}, run ${run}, quantile ${q}`).toBeGreaterThanOrEqual(lower)
    }
  }
})

test('adding a histogram adds every count and the sum', () => {
  const [to, from] = [createBuckets([1, 2]), createBuckets([1, 2])]
  for (const value of [0.5, 7]) observe(to, value)
  for (const value of [0.5, 1.5, 8, 9]) observe(from, value)
  addBuckets(to, from)
  expect([[...to.counts], to.sum]).toEqual([[2, 1, 3], 26.5])
  expect([[...from.counts], from.sum]).toEqual([[1, 1, 2], 19])
})

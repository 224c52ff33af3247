import { expect, test } from 'vitest'
import { highest, newest, ranked, total } from './figures.ts'

const shard = (id: string, queries: number | null, p99: number | null) => ({
  id,
  rates: { queries, writes: 0, errors: null, p50: null, p99 },
})
const SHARDS = [shard('s1', 10, 2), shard('s2', null, 9), shard('s3', 5, null)]

test('the load of the cluster is the sum of what shards report', () => {
  expect(total(SHARDS, 'queries')).toEqual({ value: 15 })
  expect(total(SHARDS, 'writes')).toEqual({ value: 0 })
})

test('a figure that no shard reports is missing, not zero', () => {
  expect(total(SHARDS, 'errors')).toEqual({ value: null })
  expect(highest(SHARDS, () => null)).toEqual({ value: null })
})

test('the slowest shard is named', () => {
  expect(highest(SHARDS, ({ rates }) => rates.p99)).toEqual({ value: 9, shard: 's2' })
})

test('the highest values come first, with their share of the first', () => {
  const shards = [shard('s1', 20, 1), shard('s2', 80, 1), shard('s3', 0, 1), shard('s4', null, 1), shard('s5', 40, 1)]
  expect(ranked(shards, ({ rates }) => rates.queries, 2)).toEqual({
    rows: [
      { id: 's2', value: 80, share: 1 },
      { id: 's5', value: 40, share: 0.5 },
    ],
    more: 1,
  })
  expect(ranked([], () => 1, 2)).toEqual({ rows: [], more: 0 })
})

test('the newest value of a course skips gaps, and is missing without any', () => {
  expect([newest([1, 0, null]), newest([null, null]), newest([])]).toEqual([0, undefined, undefined])
})

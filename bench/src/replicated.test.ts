import { expect, test } from 'vitest'
import { type Run, type Runs, rowsOf } from './replicated.ts'

const run = (leader: number, followers: number[] = [], perSecond = 100_000): Run => ({
  leader,
  followers,
  p50Ms: 1,
  p99Ms: 5,
  perSecond,
})
const runs: Runs = {
  alone: [run(10), run(12), run(11)],
  shard: [run(15, [8, 9]), run(17, [9, 12]), run(19, [7, 8])],
  alonePeak: [run(5, [], 200_000), run(5, [], 220_000)],
  shardPeak: [run(9, [], 100_000), run(9, [], 110_000)],
  stalenessSeconds: [...Array.from({ length: 99 }, (_, i) => i / 200), 3],
}
const measureOf = (rows: ReturnType<typeof rowsOf>, row: number, name: string) =>
  rows[row - 1]?.measures.find((measure) => measure.name === name)

test('medians of the runs are compared, of the followers the busier one', () => {
  const rows = rowsOf(runs, 2)

  expect(measureOf(rows, 1, 'leader over a node alone')).toMatchObject({ value: 17 / 11, verdict: 'met' })
  expect(measureOf(rows, 1, 'follower over a node alone')).toMatchObject({ value: 9 / 11, verdict: 'met' })
  expect(measureOf(rows, 1, 'a node alone')).toMatchObject({ value: 11, why: 'from 10.0 to 12.0 µs' })
})

test('the throughput of a shard used to be excused where its nodes share cores', () => {
  expect(measureOf(rowsOf(runs, 2), 2, 'shard over a node alone')).toMatchObject({
    value: 50,
    verdict: 'missed',
    why: expect.stringContaining('three nodes share 2 cores'),
  })
  expect(measureOf(rowsOf(runs, 6), 2, 'shard over a node alone')).toMatchObject({ value: 50, verdict: 'missed' })
})

test('staleness is judged by its percentiles, not by the most that was seen', () => {
  const rows = rowsOf(runs, 2)

  expect(rows[2]?.verdict).toBe('met')
  expect(measureOf(rows, 3, 'p99')).toMatchObject({ value: 0.49 })
  expect(measureOf(rows, 3, 'most')).toMatchObject({ value: 3 })
})

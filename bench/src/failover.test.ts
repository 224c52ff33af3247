import { expect, test } from 'vitest'
import { type Kind, kindsOf, type Round, rowOf } from './failover.ts'

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

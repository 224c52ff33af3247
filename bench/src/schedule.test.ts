import { expect, test } from 'vitest'
import { createHistogram, record } from './histogram.ts'
import { intendedMs, type Pacing, shareOf, voidReason } from './schedule.ts'

test('a regular schedule has equal distances for any sender', () => {
  const pacing = { kind: 'regular', requestsPerSecond: 2000 } as const
  const senders = 3
  const moments = [0, 1, 2].flatMap((sender) =>
    [0, 1, 2, 3].map((index) => intendedMs(pacing, index, { sender, senders })),
  )

  expect(moments.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i * 0.5))
})

test('a spike is intended at one moment, the next a period later', () => {
  const pacing = { kind: 'spike', requests: 5, periodMs: 100 } as const
  const first = [0, 1, 2, 3].map((index) => intendedMs(pacing, index, { sender: 0, senders: 2 }))
  const second = [0, 1, 2, 3].map((index) => intendedMs(pacing, index, { sender: 1, senders: 2 }))

  expect(first).toEqual([0, 0, 0, 100])
  expect(second).toEqual([0, 0, 100, 100])
})

test.each([
  [2000, 3],
  [1, 4],
  [7, 1],
])('shares of %i over %i senders add up and differ by one at most', (whole, senders) => {
  const shares = Array.from({ length: senders }, (_, sender) => shareOf(whole, { sender, senders }))

  expect(shares.reduce((sum, share) => sum + share)).toBe(whole)
  expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
})

const lateBy = (...ms: number[]) => {
  const late = createHistogram()
  for (const each of ms) record(late, each)
  return late
}
const often = (times: number, ms: number) => Array.from({ length: times }, () => ms)
const regular: Pacing = { kind: 'regular', requestsPerSecond: 1 }

test('a run counts while 99 of 100 sends are late by no more than the bound', () => {
  expect(voidReason(regular, { late: lateBy(...often(99, 1.9), 400), unsent: 0 })).toBe('')
})

test('a run is void when the generator was late more often', () => {
  expect(voidReason(regular, { late: lateBy(...often(98, 0.1), 5, 5), unsent: 0 })).toBe(
    'the generator was 5.0 ms late in 1 of 100 sends, allowed are 2 ms',
  )
})

test('a run is void when requests that were due were not sent at all', () => {
  expect(voidReason(regular, { late: lateBy(0), unsent: 3 })).toBe(
    'the generator did not send 3 requests that were due',
  )
})

test('a closed loop has no schedule to fall behind', () => {
  expect(voidReason({ kind: 'closed', pipelining: 1 }, { late: lateBy(50), unsent: 0 })).toBe('')
})

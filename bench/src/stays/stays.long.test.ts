import { decodeRequest, FRAME_HEADER_BYTES } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { rowsOf, type StaysRuns, type WriteRun } from './stays.ts'
import { decrementFrames, stayFrames } from './stock.ts'

const run = (p50Ms: number, perSecond = 1_000): WriteRun => ({ p50Ms, p99Ms: 9, perSecond, cpuMicros: 50 })
const runs: StaysRuns = {
  paced: { stays: [run(1.2), run(3), run(1.3)], decrements: [run(1), run(2), run(1)] },
  replicated: { stays: [run(1, 500), run(1, 700)], decrements: [run(1, 1_000), run(1, 1_000)] },
  searches: {
    alone: [1, 2],
    beside: [1.1, 2.4],
    decrements: [1.2, 2.2],
    bare: [1, 2],
    updates: [3, 6],
    bareUpdates: [2, 4],
  },
  holds: { delaysMs: [...Array.from({ length: 99 }, (_, n) => n), 900], early: 1 },
}
const measureOf = (row: number, name: string) =>
  rowsOf(runs)[row - 1]?.measures.find((measure) => measure.name === name)

test('ratios are those of the rounds, not of the medians', () => {
  expect(measureOf(1, 'p50 over that of a decrement')).toMatchObject({
    value: 1.3,
    why: '1.20 to 1.50 in the rounds',
    verdict: 'met',
  })
  expect(measureOf(2, 'share of replicated decrements')).toMatchObject({ value: 60, verdict: 'met' })
  const overBare = (what: string) => measureOf(3, `p99 beside ${what}, over that beside a bare server`)
  expect(overBare('bookings')).toMatchObject({ value: expect.closeTo(1.15), verdict: 'met' })
  expect(overBare('updates')).toMatchObject({ value: 1.5, verdict: 'missed' })
  expect(measureOf(3, 'p99 beside decrements')?.value).toBeCloseTo(1.7)
  expect(measureOf(3, 'p99 beside updates')).toMatchObject({ why: expect.stringContaining('3.00 to 3.00') })
})

test('holds are judged by their p99, and by any that returned early', () => {
  expect(measureOf(4, 'p99')).toMatchObject({ value: 98, verdict: 'met' })
  expect(measureOf(4, 'before their deadline')).toMatchObject({ value: 1, verdict: 'missed' })
})

test('no stay is requested twice, and stays leave rooms for others', () => {
  const stock = { sold: 0, firstDay: 20_000 }
  const requests = [...stayFrames(stock, 3_000), ...decrementFrames(stock, 10), ...stayFrames(stock, 3_000)]
    .map((frame) => decodeRequest(frame.subarray(FRAME_HEADER_BYTES)))
    .filter(({ command }) => command === 'BOOKSTAY')
  const fields = requests.map((request) => request.fields as { stayId: string; lines: unknown[] })

  expect(new Set(fields.map(({ stayId }) => stayId)).size).toBe(6_000)
  expect(new Set(fields.map(({ lines }) => JSON.stringify(lines))).size).toBe(6_000)
})

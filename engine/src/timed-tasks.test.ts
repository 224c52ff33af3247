import { parseDay } from '@vacancy/shared'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ReplicaStatus } from './status.ts'
import { isDue, startMaintenance, watchCores, watchEnds, watchReplica } from './timed-tasks.ts'

const HOUR_MS = 3_600_000
const TODAY = parseDay('2026-11-20') as number
const MIDNIGHT = TODAY * 24 * HOUR_MS

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test.each<[string, number, number, boolean]>([
  ['the hour has not come', MIDNIGHT + 3 * HOUR_MS - 1, TODAY - 1, false],
  ['the hour has come', MIDNIGHT + 3 * HOUR_MS, TODAY - 1, true],
  ['it has run today', MIDNIGHT + 23 * HOUR_MS, TODAY, false],
  ['it has run on a later day', MIDNIGHT + 23 * HOUR_MS, TODAY + 1, false],
  ['a whole day was missed', MIDNIGHT, TODAY - 2, true],
  ['it has never run', MIDNIGHT, 0, true],
])('maintenance at 3 when %s', (_, timeMs, lastDay, due) => {
  expect(isDue(timeMs, 3, lastDay)).toBe(due)
})

test.each<[string, number, number, number, boolean]>([
  ['at 8, an hour before', 480, MIDNIGHT + 26 * HOUR_MS, TODAY - 1, false],
  ['at 8, at its hour of the next date', 480, MIDNIGHT + 27 * HOUR_MS, TODAY - 1, true],
  ['at 8, a day that was missed', 480, MIDNIGHT + 8 * HOUR_MS, TODAY - 2, true],
  ['at 16 of the day before, at its hour', -480, MIDNIGHT + 3 * HOUR_MS, TODAY - 1, true],
  ['at 16 of the day before, which is another day', -480, MIDNIGHT + 16 * HOUR_MS, TODAY, false],
])('maintenance at 3 of a day that begins %s', (_, begins, timeMs, lastDay, due) => {
  expect(isDue(timeMs, 3, lastDay, begins)).toBe(due)
})

function statusAt(timeMs: number, state = 'following'): ReplicaStatus {
  return { clock: { timeMs, state }, lastMaintenanceDay: TODAY - 1 } as ReplicaStatus
}

test('maintenance is proposed a second after the start, then every 30 seconds while it is due', () => {
  const maintain = vi.fn()
  const stop = startMaintenance({ hour: 3, status: () => statusAt(MIDNIGHT + 4 * HOUR_MS), maintain })
  const callsAfter = (ms: number) => {
    vi.advanceTimersByTime(ms)
    return maintain.mock.calls.length
  }

  expect([callsAfter(999), callsAfter(1), callsAfter(28_999), callsAfter(1), callsAfter(30_000)]).toEqual([
    0, 1, 1, 2, 3,
  ])
  stop()
  expect(callsAfter(60_000)).toBe(3)
})

test('a stop within the first second cancels the first look', () => {
  const maintain = vi.fn()
  startMaintenance({ hour: 3, status: () => statusAt(MIDNIGHT + 4 * HOUR_MS), maintain })()
  vi.advanceTimersByTime(60_000)
  expect(maintain).not.toHaveBeenCalled()
})

test.each<[string, ReplicaStatus | undefined]>([
  ['without a status', undefined],
  ['without a shard time', statusAt(0)],
  ['with a suspect clock', statusAt(MIDNIGHT + 4 * HOUR_MS, 'suspect')],
  ['before its hour', statusAt(MIDNIGHT + 2 * HOUR_MS)],
])('maintenance is not proposed %s', (_, status) => {
  const maintain = vi.fn()
  const stop = startMaintenance({ hour: 3, status: () => status, maintain })
  vi.advanceTimersByTime(60_000)
  expect(maintain).not.toHaveBeenCalled()
  stop()
})

/** @returns the second of each reported change */
async function watch(samples: readonly (string | undefined)[], isActive = true, mayLeaveAt = 0) {
  let second = 0
  const changes: number[] = []
  const [warn, info] = [vi.fn(), vi.fn()]
  const sample = () => samples[Math.min(second, samples.length - 1)]
  const stop = watchCores({
    sample,
    isActive,
    log: { warn, info } as never,
    whyStay: async () => (second >= mayLeaveAt ? '' : 'another voter is ending'),
    onChange: () => void changes.push(second),
  })
  for (second = 1; second < samples.length; second++) await vi.advanceTimersByTimeAsync(1_000)
  stop()
  vi.advanceTimersByTime(10_000)
  return { changes, warnings: warn.mock.calls.length, waits: info.mock.calls.length }
}

test.each<[string, (string | undefined)[], number[]]>([
  ['what cannot be read is no change', ['4', undefined, undefined, undefined, '4'], []],
  ['what can be read later is compared from then on', [undefined, '4', '4', '2', '2'], [4]],
  ['a change seen twice is reported once', ['4', '2', '2', '2', '2'], [2]],
  ['a single other sample is ignored', ['4', '2', '4', '2', '4'], []],
  ['two different samples are no change', ['4', '2', '3', '2'], []],
  ['the last two samples count', ['4', '3', '2', '2', '2'], [3]],
  ['the same number is no change', ['4', '4', '4', '4'], []],
])('number of cores: %s', async (_, samples, seconds) => {
  expect(await watch(samples)).toEqual({ changes: seconds, warnings: seconds.length, waits: 0 })
})

test('number of cores: a node that must not restart only warns', async () => {
  expect(await watch(['4', '2', '2', '2'], false)).toEqual({ changes: [], warnings: 1, waits: 0 })
})

test('a certificate near its end is a reason at once, which ends with a new certificate', () => {
  const [nowMs, dayMs] = [Date.now(), 86_400_000]
  const reasons = new Map()
  let notAfterMs = nowMs + 3 * dayMs
  const handle = {
    certificates: () => [{ listener: 'cluster', notAfterMs }] as const,
    tokens: () => [],
    wallMs: () => nowMs,
  }
  const watched = { codecMismatch: undefined, silentLooks: 0, unavailable: reasons }
  const stop = watchEnds(handle, watched, (reason, detail) => void reasons.set(reason, detail))

  expect([...reasons.keys()]).toEqual(['certificate_ends'])
  notAfterMs = nowMs + 90 * dayMs
  vi.advanceTimersByTime(1_000)
  expect(reasons.size).toBe(0)
  stop()
})

test('a replica thread without a status is a reason after some turns', () => {
  const seen: string[] = []
  const watched = { codecMismatch: undefined, silentLooks: 0, unavailable: new Map() }
  const stop = watchReplica(watched, (reason) => void seen.push(reason))

  vi.advanceTimersByTime(3_000)
  watched.silentLooks = 0
  vi.advanceTimersByTime(3_000)
  expect(seen).toEqual([])
  vi.advanceTimersByTime(1_000)
  expect(seen).toEqual(['disk_stuck'])
  stop()
})

test('a node whose cores changed leaves when it may, and stays when they are as before by then', async () => {
  expect(await watch(['4', '2', '2', '2', '2', '2', '2'], true, 5)).toEqual({ changes: [5], warnings: 1, waits: 1 })
  expect(await watch(['4', '2', '2', '4', '4', '4', '4'], true, 5)).toEqual({ changes: [], warnings: 1, waits: 1 })
})

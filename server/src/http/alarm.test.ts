import { turnableClock } from '@vacancy/shared'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createAlarm } from './alarm.ts'

const TICK_MS = 50

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** An alarm whose next moments are given one by one. */
function alarmOf(...next: readonly number[]) {
  const clock = turnableClock(0)
  const rings: number[] = []
  const alarm = createAlarm(clock, TICK_MS, () => {
    rings.push(clock.monotonicMs())
    return next[rings.length - 1] ?? Number.POSITIVE_INFINITY
  })
  const pass = (ms: number) => {
    for (let passed = 0; passed < ms; passed++) {
      clock.advance(1)
      vi.advanceTimersByTime(1)
    }
  }
  return { alarm, rings, pass }
}

test('it rings when something is due, and sleeps when nothing is', () => {
  const { alarm, rings, pass } = alarmOf(100, 1_000)
  pass(10)
  expect(rings).toEqual([])
  alarm.start()
  pass(5_000)
  expect(rings).toEqual([10, 101, 1_001])
  expect(vi.getTimerCount()).toBe(0)
})

test('what becomes due while it sleeps wakes it', () => {
  const { alarm, rings, pass } = alarmOf()
  alarm.start()
  pass(5_000)
  alarm.set(5_000)
  pass(1)
  expect(rings).toEqual([0, 5_001])
})

test('what becomes due earlier is not late, and what comes later is not forgotten', () => {
  const { alarm, rings, pass } = alarmOf(1_000, 2_000)
  alarm.start()
  alarm.set(3_000)
  alarm.set(60)
  pass(100)
  expect(rings).toEqual([0, 61])
  alarm.move(500)
  pass(5_000)
  expect(rings).toEqual([0, 61, 501])
})

test('it rings once in a tick', () => {
  const { alarm, rings, pass } = alarmOf(0, 0)
  alarm.start()
  for (let ms = 0; ms < 40; ms++) {
    alarm.set(0)
    pass(1)
  }
  pass(1_000)
  expect(rings).toEqual([0, 51, 102])
})

test('after its end it never rings again', () => {
  const { alarm, rings, pass } = alarmOf(10)
  alarm.start()
  alarm.stop()
  alarm.set(0)
  pass(100)
  expect(rings).toEqual([0])
  expect(vi.getTimerCount()).toBe(0)
})

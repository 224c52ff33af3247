import { expect, test } from 'vitest'
import { systemClock, turnableClock } from './clock.ts'

test('a manual clock advances both readings, and sets only the wall clock', () => {
  const clock = turnableClock(1_000)

  clock.advance(50)
  clock.setWall(10)

  expect([clock.wallMs(), clock.monotonicMs()]).toEqual([10, 50])
})

test('the system clock knows the year, and its monotonic reading never decreases', () => {
  const before = systemClock.monotonicMs()

  expect(new Date(systemClock.wallMs()).getUTCFullYear()).toBeGreaterThan(2024)
  expect(systemClock.monotonicMs()).toBeGreaterThanOrEqual(before)
})

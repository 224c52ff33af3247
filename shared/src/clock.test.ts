import { expect, test } from 'vitest'
import { systemClock, turnableClock } from './clock.ts'

test('a turned clock moves both readings when time passes, and the wall alone when it is set', () => {
  const clock = turnableClock(1_000)

  clock.advance(50)
  clock.setWall(10)

  expect([clock.wallMs(), clock.monotonicMs()]).toEqual([10, 50])
})

test('the clock of the machine knows the year and never goes back', () => {
  const before = systemClock.monotonicMs()

  expect(new Date(systemClock.wallMs()).getUTCFullYear()).toBeGreaterThan(2024)
  expect(systemClock.monotonicMs()).toBeGreaterThanOrEqual(before)
})

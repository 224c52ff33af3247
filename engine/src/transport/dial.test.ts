import { expect, test } from 'vitest'
import { retryMs } from './dial.ts'
import { TRANSPORT_LIMITS } from './transport-state.ts'

test.each([
  [0, 25, 50],
  [1, 50, 100],
  [5, 800, 1_600],
  [6, 1_000, 2_000],
  [1_000, 1_000, 2_000],
])('after %i failures the next attempt waits %i to %i ms', (failedBefore, least, most) => {
  expect(retryMs(TRANSPORT_LIMITS, failedBefore, -1)).toBe(least)
  expect(retryMs(TRANSPORT_LIMITS, failedBefore, 127)).toBe((least + most) / 2)
  expect(retryMs(TRANSPORT_LIMITS, failedBefore, 255)).toBe(most)
})

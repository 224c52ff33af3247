import { afterEach, expect, test, vi } from 'vitest'
import { createBell, rings } from '../pipe.ts'
import { createSpinner, spin } from './spin.ts'

const WAITS = 320

afterEach(() => vi.restoreAllMocks())

/** How many of the waits looked for a ring. `isRung`: whether it had come. */
function spinningWaits(isRung: (wait: number) => boolean): number {
  let ms = 0
  const now = vi.spyOn(performance, 'now').mockImplementation(() => ms++)
  const bell = createBell()
  const spinner = createSpinner()
  let spinning = 0
  for (let wait = 0; wait < WAITS; wait++) {
    now.mockClear()
    const heard = rings(bell)
    if (isRung(wait)) Atomics.add(bell, 0, 1)
    spin(spinner, bell, heard)
    if (now.mock.calls.length > 0) spinning++
  }
  return spinning
}

test.each([
  ['always', () => true, WAITS - 31],
  ['never', () => false, WAITS / 32],
])('where rings %s come soon, waits spin accordingly', (_, isRung, expected) => {
  expect(spinningWaits(isRung)).toBe(expected)
})

test('where every other ring comes soon, few waits spin', () => {
  expect(spinningWaits((wait) => wait % 2 === 0)).toBeLessThan(WAITS / 8)
})

import { afterEach, expect, test, vi } from 'vitest'
import { createBell, rings } from '../pipe.ts'
import { createVigil, staysAwake } from './vigil.ts'

const WAITS = 320

afterEach(() => vi.restoreAllMocks())

/** How many of the waits looked for a ring. `isRung`: whether it had come. */
function awakeWaits(isRung: (wait: number) => boolean): number {
  let ms = 0
  const now = vi.spyOn(performance, 'now').mockImplementation(() => ms++)
  const bell = createBell()
  const vigil = createVigil()
  let awake = 0
  for (let wait = 0; wait < WAITS; wait++) {
    now.mockClear()
    const heard = rings(bell)
    if (isRung(wait)) Atomics.add(bell, 0, 1)
    staysAwake(vigil, bell, heard)
    if (now.mock.calls.length > 0) awake++
  }
  return awake
}

test.each([
  ['always', () => true, WAITS - 31],
  ['never', () => false, WAITS / 32],
])('where rings %s come soon, waits are awake accordingly', (_, isRung, expected) => {
  expect(awakeWaits(isRung)).toBe(expected)
})

test('where every other ring comes soon, few waits are awake', () => {
  expect(awakeWaits((wait) => wait % 2 === 0)).toBeLessThan(WAITS / 8)
})

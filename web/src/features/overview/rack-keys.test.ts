import { expect, test } from 'vitest'
import { moveInRack, type Place } from './rack-keys.ts'

/** Two rows of three and one of two; one slot is off by a pixel. */
const places: Place[] = [
  [0, 0],
  [24, 0],
  [80, 0],
  [0, 40],
  [30, 41],
  [80, 40],
  [0, 80],
  [24, 80],
].map(([left = 0, top = 0]) => ({ left, top, width: 24, height: 28 }))

test.each([
  [0, 'ArrowRight', 1],
  [2, 'ArrowRight', 3],
  [7, 'ArrowRight', 7],
  [3, 'ArrowLeft', 2],
  [0, 'ArrowLeft', 0],
  [1, 'ArrowDown', 4],
  [2, 'ArrowDown', 5],
  [4, 'ArrowUp', 1],
  [5, 'ArrowDown', 7],
  [7, 'ArrowDown', 7],
  [0, 'ArrowUp', 0],
  [5, 'Home', 0],
  [1, 'End', 7],
])('from %i %s leads to %i', (from, key, to) => {
  expect(moveInRack(places, from, key)).toBe(to)
})

test('other keys are ignored', () => {
  expect(moveInRack(places, 0, 'Enter')).toBeUndefined()
  expect(moveInRack(places, 0, 'a')).toBeUndefined()
})

test('an empty rack', () => {
  expect(moveInRack([], 0, 'ArrowDown')).toBe(0)
})

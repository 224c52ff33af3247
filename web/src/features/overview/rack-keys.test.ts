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

/** Rows 28 high, of slots 24 wide. */
const at = (...corners: [left: number, top: number][]) =>
  corners.map(([left, top]) => ({ left, top, width: 24, height: 28 }))

test.each<[string, Place[], number, string, number]>([
  ['a slot half a slot lower is in the next row', at([0, 0], [0, 14]), 0, 'ArrowDown', 1],
  ['a slot less than that is in the same row', at([0, 0], [40, 13]), 0, 'ArrowDown', 0],
  ['the next row counts, not the one after it', at([0, 0], [90, 40], [0, 80]), 0, 'ArrowDown', 1],
  ['the next row counts, in whatever order', at([0, 0], [0, 80], [90, 40]), 0, 'ArrowDown', 2],
  ['the same upwards', at([0, 0], [90, 40], [0, 80]), 2, 'ArrowUp', 1],
  ['of two as near the first one', at([30, 0], [0, 40], [60, 40]), 0, 'ArrowDown', 1],
  ['the nearer one, on the left', at([40, 0], [30, 40], [60, 40]), 0, 'ArrowDown', 1],
  ['the nearer one, on the right', at([40, 0], [10, 40], [60, 40]), 0, 'ArrowDown', 2],
])('%s', (_, slots, from, key, to) => {
  expect(moveInRack(slots, from, key)).toBe(to)
})

test('slots of different widths are compared by their middles', () => {
  const slots = [
    { left: 0, top: 0, width: 100, height: 28 },
    { left: 0, top: 40, width: 20, height: 28 },
    { left: 20, top: 40, width: 60, height: 28 },
  ]
  expect(moveInRack(slots, 0, 'ArrowDown')).toBe(2)
})

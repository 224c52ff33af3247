import { expect, test } from 'vitest'
import { pathOf } from './sparkline.tsx'

test('the line goes from 0 at the bottom to the highest value at the top', () => {
  expect(pathOf([0, 5, 10])).toBe('M1.5 18.5L48.0 10.0L94.5 1.5')
})

test('gaps interrupt the line, and no values draw nothing', () => {
  expect(pathOf([1, null, 1])).toBe('M1.5 1.5M94.5 1.5')
  expect(pathOf([null, null])).toBe('')
  expect(pathOf([])).toBe('')
})

test('zeros are a line at the bottom', () => {
  expect(pathOf([0, 0])).toBe('M1.5 18.5L94.5 18.5')
})

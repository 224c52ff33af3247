import { expect, test } from 'vitest'
import { DEFAULTS, layoutOf, missingDays } from './layout.ts'

const state = { packages: 1_000_000, days: 120, seed: 1, lastDay: 20_119 }

test('on the day it was made, no day is missing', () => {
  const { first, last } = missingDays(state, 20_000)

  expect(first).toBeGreaterThan(last)
})

test('three days later, the three days at the end of the window are missing', () => {
  expect(missingDays(state, 20_003)).toEqual({ first: 20_120, last: 20_122 })
})

test('after more days than the window has, the whole window is missing and nothing before today', () => {
  expect(missingDays(state, 20_500)).toEqual({ first: 20_500, last: 20_619 })
})

test('a clock that was turned back asks for no days', () => {
  const { first, last } = missingDays(state, 19_990)

  expect(first).toBeGreaterThan(last)
})

test('everything lies in one folder, and the sample has a million packages', () => {
  const { dir, ...files } = layoutOf('/tmp/x')

  for (const file of Object.values(files)) expect(file.startsWith(`${dir}/`)).toBe(true)
  expect(DEFAULTS.packages).toBeGreaterThanOrEqual(1_000_000)
})

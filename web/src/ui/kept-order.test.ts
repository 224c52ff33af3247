import { expect, test } from 'vitest'
import { keptOrder } from './kept-order.ts'

test('rows stay where they are although their values would sort them elsewhere', () => {
  expect(keptOrder(['a', 'b', 'c'], ['c', 'a', 'b'])).toEqual(['a', 'b', 'c'])
})

test('new rows come last in the order of the sort, gone rows leave', () => {
  expect(keptOrder(['a', 'b', 'c'], ['z', 'c', 'd', 'a'])).toEqual(['a', 'c', 'z', 'd'])
})

test('the first rows of all come as sorted', () => {
  expect(keptOrder([], ['c', 'a'])).toEqual(['c', 'a'])
})

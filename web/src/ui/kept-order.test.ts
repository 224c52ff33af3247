import { expect, test } from 'vitest'
import { keptOrder } from './kept-order.ts'

test('rows keep their place when their values change', () => {
  expect(keptOrder(['a', 'b', 'c'], ['c', 'a', 'b'])).toEqual(['a', 'b', 'c'])
})

test('new rows come last in sort order, removed rows leave', () => {
  expect(keptOrder(['a', 'b', 'c'], ['z', 'c', 'd', 'a'])).toEqual(['a', 'c', 'z', 'd'])
})

test('the first rows are sorted', () => {
  expect(keptOrder([], ['c', 'a'])).toEqual(['c', 'a'])
})

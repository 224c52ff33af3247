import { expect, test } from 'vitest'
import { AssertionError, assert, unreachable } from './assert.ts'

test('a broken invariant reports what must hold', () => {
  expect(() => assert(1 + 1 === 3, 'sums add up')).toThrow(new AssertionError('sums add up'))
  expect(() => assert(true, 'sums add up')).not.toThrow()
})

test('an unhandled union member fails an assertion', () => {
  expect(() => unreachable('leader' as never)).toThrow(AssertionError)
})

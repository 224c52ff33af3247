import { expect, test } from 'vitest'
import { nearest } from './nearest.ts'

test('the name with the smallest distance comes first', () => {
  expect(nearest('/shard', ['/audit', '/imports', '/shards'])[0]).toBe('/shards')
  expect(nearest('/OPERATION', ['/registry', '/operations'])[0]).toBe('/operations')
})

test('without known names there are none', () => {
  expect(nearest('s1', [])).toEqual([])
})

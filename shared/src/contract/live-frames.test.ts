import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyOps, diffValues, TOPIC } from './live-frames.ts'

/** JSON as it comes over the wire: own keys only, no minus zero. */
const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)

test('what is found to differ, applied to the value before, gives the value after', () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      const ops = JSON.parse(JSON.stringify(diffValues(before, after)))
      expect(applyOps(before, ops)).toEqual(after)
    }),
  )
})

test('equal values differ in nothing', () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(diffValues(value, structuredClone(value))).toEqual([])
    }),
  )
})

test('parts that no change touches stay the same objects', () => {
  const before = {
    shards: [
      { id: 's1', lag: 1 },
      { id: 's2', lag: 2 },
    ],
    at: 1,
  }
  const after = applyOps(before, [[['shards', 1, 'lag'], 7]]) as typeof before

  expect(after.shards[0]).toBe(before.shards[0])
  expect(after.shards[1]).toEqual({ id: 's2', lag: 7 })
  expect(before.shards[1]?.lag).toBe(2)
})

test('a key without a value leaves, one with null stays', () => {
  expect(applyOps({ a: 1, b: 2 }, [[['a']], [['b'], null]])).toEqual({ b: null })
})

test.each([
  ['summary', true],
  ['shard:s1', true],
  ['node:s1/n1', true],
  ['shard:', false],
  ['shard:a b', false],
  ['users', false],
])('%s is a topic: %s', (name, expected) => expect(TOPIC.test(name)).toBe(expected))

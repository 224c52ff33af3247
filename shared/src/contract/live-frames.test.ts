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

test('a key called __proto__ is a key like others', () => {
  const after = JSON.parse('{"__proto__": {"lag": 1}}') as object
  const ops = diffValues({}, after)

  const applied = applyOps({}, ops) as object

  expect(Object.keys(applied)).toEqual(['__proto__'])
  expect(JSON.stringify(applied)).toBe(JSON.stringify(after))
})

test.each([
  ['summary', true],
  ['shard:s1', true],
  ['node:s1/n1', true],
  ['shard:', false],
  ['shard:a b', false],
  ['users', false],
])('%s is a topic: %s', (name, expected) => expect(TOPIC.test(name)).toBe(expected))

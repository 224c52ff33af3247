import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyOps, diffValues, TOPIC } from './live-frames.ts'

/** JSON as received: own keys only, no minus zero. */
const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)

test('applying the differences to the old value gives the new one', () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      const ops = JSON.parse(JSON.stringify(diffValues(before, after)))
      expect(applyOps(before, ops)).toEqual(after)
    }),
  )
})

test('equal values have no differences', () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(diffValues(value, structuredClone(value))).toEqual([])
    }),
  )
})

test('unchanged parts stay the same objects', () => {
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

test('an op without a value removes the key, and null sets it', () => {
  expect(applyOps({ a: 1, b: 2 }, [[['a']], [['b'], null]])).toEqual({ b: null })
})

test('a key named __proto__ is an ordinary key', () => {
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

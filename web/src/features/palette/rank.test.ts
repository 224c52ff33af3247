import { expect, test } from 'vitest'
import { bestRank, rankOf } from './rank.ts'

const order = (typed: string, names: readonly string[]) =>
  names
    .filter((name) => rankOf(typed, name) !== undefined)
    .toSorted((a, b) => (rankOf(typed, b) ?? 0) - (rankOf(typed, a) ?? 0))

test('a prefix ranks above a word prefix, and that above scattered letters', () => {
  expect(order('sh', ['push', 'new shards', 'shards', 'snapshot s h'])).toEqual([
    'shards',
    'new shards',
    'push',
    'snapshot s h',
  ])
})

test('letters in order match, missing letters do not', () => {
  expect(rankOf('trs3', 'transfer s3 n2')).toBeDefined()
  expect(rankOf('transfer s3 n2', 'transfer leadership of s3 to n2')).toBeDefined()
  expect(rankOf('xyz', 'shards')).toBeUndefined()
  expect(rankOf('aa', 'shards')).toBeUndefined()
})

test('empty input ranks all names equally', () => {
  expect(rankOf('  ', 'shards')).toBe(rankOf('', 'audit'))
})

test('aliases count as well', () => {
  expect(bestRank('upload', ['New import', 'upload csv'])).toBeGreaterThan(900)
  expect(bestRank('upload', ['Audit', undefined])).toBeUndefined()
})

test.each<[string, string, number | undefined]>([
  // A name that begins with it: 1000, less its length.
  ['SH', 'Shards', 994],
  // A word that begins with it: 800, less the place of the blank.
  ['sh', 'new shards', 797],
  // Within a word: 600, less the place.
  ['ard', 'shards', 598],
  // Letters in order: 400, less the letters between them and a hundredth of the length.
  ['srd', 'shards', 400 - 2 - 0.06],
  ['s  d', 'shards', 400 - 3 - 0.06],
  ['hs', 'shards', 400 - 3 - 0.06],
  ['ss s', 'shards', undefined],
  ['', 'shards', 0],
])('the rank of %j in %j', (typed, name, rank) => {
  expect(rankOf(typed, name)).toBe(rank)
})

test('of several names the best one counts, also when it is the worst possible', () => {
  expect(bestRank('sh', ['new shards', 'shards', 'push'])).toBe(994)
  expect(bestRank('sh', ['shards', 'new shards'])).toBe(994)
  expect(bestRank('', [undefined, 'x'])).toBe(0)
  expect(bestRank('sh', [])).toBeUndefined()
})

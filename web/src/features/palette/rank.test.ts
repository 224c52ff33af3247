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

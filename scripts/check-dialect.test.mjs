import path from 'node:path'
import { expect, test } from 'vitest'
import { checkDialect, countWords, parseList } from './check-dialect.mjs'

test('no word of the list occurs more often than it may', () => {
  const { faults, counts } = checkDialect(path.resolve(import.meta.dirname, '..'))

  expect(faults).toEqual([])
  expect(counts.size).toBeGreaterThan(5)
})

test('words are counted in prose, in names and in phrases, and not inside other words', () => {
  const text = 'It says so. lagSays(asked) isAsked basked; goes on, goes  on'

  const counts = countWords(text, ['says', 'asked', 'goes on'])

  expect(Object.fromEntries(counts)).toEqual({ says: 2, asked: 2, 'goes on': 1 })
})

test('a list is words with numbers; anything else is an error', () => {
  expect([...parseList('# about\nsays 3\ngoes on 0\n')]).toEqual([
    ['says', 3],
    ['goes on', 0],
  ])
  expect(() => parseList('says\n')).toThrow('not a word and a number: says')
})

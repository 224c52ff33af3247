import { expect, test } from 'vitest'
import { filterParts, parseFilter, passes, withoutPart } from './filter.ts'

const shard = { id: 's3', zone: 'eu-1', state: 'Far behind', lag: 12_400, spare: 0, leader: null }
const isIn = (text: string) => passes(parseFilter(text), shard)

test('words and pairs are distinguished', () => {
  expect(parseFilter('S3 zone:EU-1  lag:>1000 "far behind" state:"far behind"')).toEqual({
    words: ['s3', 'far behind'],
    pairs: [
      { key: 'zone', op: ':', value: 'eu-1' },
      { key: 'lag', op: '>', value: '1000' },
      { key: 'state', op: ':', value: 'far behind' },
    ],
  })
})

test('an incomplete pair filters nothing', () => {
  expect(parseFilter('state: lag:> "')).toEqual({ words: [], pairs: [] })
})

test('a colon at the start or in quotes makes no key', () => {
  expect(parseFilter(':x "a:b"').words).toEqual([':x', 'a:b'])
})

test.each([
  ['', true],
  ['eu', true],
  ['behind s3', true],
  ['behind s4', false],
  ['zone:eu', true],
  ['zone:us', false],
  ['lag:>1000', true],
  ['lag:<1000', false],
  ['spare:0', true],
  ['spare:1', false],
  ['leader:n1', false],
  ['nosuchkey:1', false],
])('%j passes: %s', (text, expected) => expect(isIn(text)).toBe(expected))

test('the parts of a text are its complete pairs as typed, and each can be removed', () => {
  const text = 'paris State:"far behind"  lag:>1000 zone: lag:>1000'

  expect(filterParts(text)).toEqual(['State:"far behind"', 'lag:>1000', 'lag:>1000'])
  expect(withoutPart(text, 'lag:>1000')).toBe('paris State:"far behind" zone: lag:>1000')
  expect(withoutPart(text, 'State:"far behind"')).toBe('paris lag:>1000 zone: lag:>1000')
  expect(withoutPart(text, 'nothing:like-it')).toBe('paris State:"far behind" lag:>1000 zone: lag:>1000')
})

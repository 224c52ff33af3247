import type { ShardBrief } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { completeFilter, matchesFilter, parseFilter, withoutTerm } from './filter.ts'
import { shardBriefOf } from './testing/shards.ts'

const shards: ShardBrief[] = [
  shardBriefOf({ id: 's1', zone: 'eu-1', leader: 'n1', spare: 1, maxLagEntries: 3 }),
  shardBriefOf({
    id: 's3',
    zone: 'eu-1',
    state: 'attention',
    says: 'Needs attention: n2 is far behind',
    leader: 'n1',
    spare: 1,
    maxLagEntries: 12_400,
    slots: [
      { node: 'n1', role: 'leader', state: 'healthy', level: 'ok', says: 'Healthy', freshness: 'live' },
      { node: 'n2', role: 'follower', state: 'far-behind', level: 'warn', says: 'Far behind', freshness: 'live' },
    ],
  }),
  shardBriefOf({ id: 's7', zone: 'us-2', state: 'no-leader', leader: null, spare: 0, maxLagEntries: null }),
]

const found = (text: string) =>
  shards.filter((shard) => matchesFilter(parseFilter(text), shard)).map((shard) => shard.id)

test.each([
  ['', ['s1', 's3', 's7']],
  ['s3', ['s3']],
  ['N2', ['s3']],
  ['attention', ['s3']],
  ['state:no-leader', ['s7']],
  ['state:far', ['s3']],
  ['state:healthy', ['s1']],
  ['zone:eu', ['s1', 's3']],
  ['zone:eu state:attention', ['s3']],
  ['leader:none', ['s7']],
  ['leader:n1 lag:<10', ['s1']],
  ['lag:>1000', ['s3']],
  ['spare:0', ['s7']],
  ['spare:>=1', ['s1', 's3']],
  ['zone:mars', []],
])('%j finds %j', (text, ids) => {
  expect(found(text)).toEqual(ids)
})

test('a number that no node told matches neither more nor less', () => {
  expect(found('lag:>0')).not.toContain('s7')
  expect(found('lag:<=999999')).not.toContain('s7')
})

test('a pair without its value yet filters nothing and is no fault', () => {
  expect(parseFilter('state: lag:> lag:').faults).toEqual([])
  expect(found('state: lag:>')).toEqual(['s1', 's3', 's7'])
})

test('what is not understood is named and filters nothing', () => {
  const filter = parseFilter('colour:red lag:many zone:eu')

  expect(filter.faults).toHaveLength(2)
  expect(filter.faults[0]).toContain('there is no key colour')
  expect(filter.faults[1]).toContain('lag:>1000')
  expect(found('colour:red lag:many zone:eu')).toEqual(['s1', 's3'])
})

test('names of Object.prototype are no keys', () => {
  expect(parseFilter('constructor:x __proto__:y').faults).toHaveLength(2)
  expect(completeFilter('constructor:', shards)).toEqual([])
})

test('a filter is cut at its longest', () => {
  expect(parseFilter('x'.repeat(10_000)).terms[0]?.value).toHaveLength(200)
})

test('a term is taken out by its chip', () => {
  const filter = parseFilter('zone:eu  state:far s3')
  const [, second] = filter.terms

  expect(second && withoutTerm(filter, second)).toBe('zone:eu s3')
})

test('completion offers keys, then the values that there are', () => {
  expect(completeFilter('sp', shards)).toEqual(['spare:'])
  expect(completeFilter('s3 zone:', shards)).toEqual(['s3 zone:eu-1', 's3 zone:us-2'])
  expect(completeFilter('state:fa', shards)).toEqual(['state:far-behind'])
  expect(completeFilter('zone:eu-1', shards)).toEqual([])
  expect(completeFilter('', shards)).toEqual([])
})

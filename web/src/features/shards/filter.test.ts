import type { ShardBrief } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { passes } from '../../lib/filter.ts'
import { filterKeys, parseShardFilter, shardFields } from './filter.ts'
import { shardBriefOf } from './testing/shards.ts'

const shards: ShardBrief[] = [
  shardBriefOf({ id: 's1', zone: 'eu-1', leader: 'n1', spare: 1, maxLagEntries: 3 }),
  shardBriefOf({
    id: 's3',
    zone: 'eu-1',
    state: 'attention',
    message: 'Needs attention',
    leader: 'n1',
    spare: 1,
    maxLagEntries: 12_400,
    slots: [
      { node: 'n1', role: 'leader', state: 'healthy', level: 'ok', message: 'Healthy', freshness: 'live' },
      { node: 'n2', role: 'follower', state: 'far-behind', level: 'warn', message: 'Far behind', freshness: 'live' },
    ],
  }),
  shardBriefOf({ id: 's7', zone: 'us-2', state: 'no-leader', leader: null, spare: 0, maxLagEntries: null }),
]

const found = (text: string) =>
  shards.filter((shard) => passes(parseShardFilter(text).filter, shardFields(shard))).map((shard) => shard.id)

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
  ['zone:mars', []],
])('%j finds %j', (text, ids) => {
  expect(found(text)).toEqual(ids)
})

test('a missing number matches no comparison', () => {
  expect(found('lag:>0')).not.toContain('s7')
  expect(found('lag:<999999')).not.toContain('s7')
})

test('invalid pairs are reported and filter nothing', () => {
  const { faults } = parseShardFilter('colour:red lag:many zone:eu constructor:x')

  expect(faults).toHaveLength(3)
  expect(faults[0]).toContain('unknown key colour; known keys are state, zone')
  expect(faults[1]).toContain('lag:>1000')
  expect(found('colour:red lag:many zone:eu')).toEqual(['s1', 's3'])
})

test('completion has the values in use', () => {
  expect(filterKeys(shards)).toMatchObject({
    zone: ['eu-1', 'us-2'],
    leader: ['n1', 'none'],
    state: ['attention', 'far-behind', 'healthy', 'no-leader'],
    spare: ['0'],
  })
})

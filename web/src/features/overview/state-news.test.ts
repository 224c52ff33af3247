import { expect, test } from 'vitest'
import { shardBriefOf } from '../shards/testing/shards.ts'
import { stateNews } from './state-news.ts'

const before = new Map([
  ['s1', 'healthy'],
  ['s2', 'healthy'],
  ['s3', 'degraded'],
])

test('one shard is named, several are counted', () => {
  const s1 = shardBriefOf({ id: 's1', state: 'degraded', message: 'Degraded, can lose 1 more' })

  expect(stateNews(before, [s1, shardBriefOf({ id: 's2' })])).toBe('s1: Degraded, can lose 1 more')
  expect(stateNews(before, [s1, shardBriefOf({ id: 's3', state: 'healthy' })])).toBe('2 shards changed state')
})

test('unchanged and new shards are not announced', () => {
  expect(stateNews(before, [shardBriefOf({ id: 's1' }), shardBriefOf({ id: 's9', state: 'no-leader' })])).toBe('')
  expect(stateNews(new Map(), [shardBriefOf({ id: 's1', state: 'degraded' })])).toBe('')
})

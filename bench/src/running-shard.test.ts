import type { ClusterInfo } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { leaderOfWhole } from './running-shard.ts'

const member = (id: string, lag: number | null, health: 'active' | 'inactive' = 'active') => ({
  id,
  role: 'follower' as const,
  voter: true,
  health,
  match_index: 9,
  lag_entries: lag,
  lag_seconds: null,
  host: '',
})
const info = (node: string, leader: string, more: Partial<ClusterInfo> = {}): ClusterInfo => ({
  leader_id: leader,
  members: { voters: ['a', 'b', 'c'], learners: [] },
  node_id: node,
  shard_id: 's',
  zone_id: 'z',
  cluster_id: '',
  leader_url: '',
  term: 3,
  first_index: 1,
  last_index: 9,
  commit_index: 9,
  applied_index: 9,
  joint: false,
  nodes: [member('a', 0), member('b', 0), member('c', 2)],
  bootstrap: null,
  operation: null,
  last_operation: null,
  ...more,
})
const whole = [info('a', 'a'), info('b', 'a'), info('c', 'a')]

test('a shard is healthy when all follow one leader that receives messages from all of them', () => {
  expect(leaderOfWhole(whole)).toBe('a')
})

test.each([
  ['one does not answer', [whole[0], undefined, whole[2]]],
  ['one follows another node', [whole[0], info('b', 'c'), whole[2]]],
  ['one has an older term', [whole[0], info('b', 'a', { term: 2 }), whole[2]]],
  ['there is no leader', [info('a', ''), info('b', ''), info('c', '')]],
  ['one is far behind', [info('a', 'a', { nodes: [member('b', 5_000), member('c', 0)] }), whole[1], whole[2]]],
  ['one is silent', [info('a', 'a', { nodes: [member('b', 0, 'inactive'), member('c', 0)] }), whole[1], whole[2]]],
  ['the leader does not say', [info('a', 'a', { nodes: [member('b', null), member('c', 0)] }), whole[1], whole[2]]],
])('it is not whole when %s', (_, infos) => {
  expect(leaderOfWhole(infos)).toBeUndefined()
})

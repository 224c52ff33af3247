import type { NodeView, ShardView, TopologyView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { failureMatrix, impactOn, stopsOf } from './impact.ts'

/** A shard led by its first node; `zones` of its voters, those in capitals are away. */
function shardOf(id: string, zones: string, learners = ''): ShardView {
  const nodes = [...zones, ...learners].map(
    (zone, at): NodeView =>
      ({
        ...{
          id: `n${at + 1}`,
          zone: zone.toLowerCase(),
          apiUrl: `http://${id}-${at + 1}:8080`,
          voter: at < zones.length,
        },
        ...(zone === zone.toLowerCase()
          ? { state: 'healthy', freshness: 'live' }
          : { state: 'unreachable', freshness: 'gone' }),
      }) as NodeView,
  )
  return {
    id,
    mode: 'clustered',
    leader: 'n1',
    majority: Math.floor(zones.length / 2) + 1,
    nodes,
  } as unknown as ShardView
}

test.each<[string, ShardView, Partial<ReturnType<typeof impactOn>> | undefined]>([
  ['all voters are outside', shardOf('s1', 'bcc'), undefined],
  ['the leader is inside, and two voters are outside', shardOf('s1', 'abc'), { writes: 'pause', votersLeft: 2 }],
  ['a follower is inside', shardOf('s1', 'bac'), { writes: 'continue', votersLeft: 2 }],
  ['two voters are inside, the leader outside', shardOf('s1', 'baa'), { writes: 'stop', reads: 'continue' }],
  ['one is inside and another one is away', shardOf('s1', 'baC'), { writes: 'stop', votersLeft: 1, majority: 2 }],
  ['a learner outside still answers reads', shardOf('s1', 'aaa', 'b'), { writes: 'stop', reads: 'continue' }],
  ['every node is inside', shardOf('s1', 'aaa'), { writes: 'stop', reads: 'stop' }],
  ['its majority is away already', shardOf('s1', 'aBB'), { writes: 'stopped', reads: 'stop' }],
])('zone a goes and %s', (_, shard, expected) => {
  const impact = impactOn(shard, ({ zone }) => zone === 'a')
  if (expected === undefined) expect(impact).toBeUndefined()
  else expect(impact).toMatchObject(expected)
})

test('a zone may be restarted without its leaders only if no shard stops', () => {
  const shards = [shardOf('s1', 'bac'), shardOf('s7', 'baC')]
  expect(stopsOf({ kind: 'zone', name: 'a' }, shards).map(({ shard }) => shard)).toEqual(['s7'])
  expect(stopsOf({ kind: 'machine', name: 's1-2' }, shards)).toEqual([])
})

test('the matrix has what stops, the worst first, and counts the rest', () => {
  const edge = { key: 'edge e1', kind: 'edge', id: 'e1', zone: null, shard: null, apiUrl: 'http://gate:9100' }
  const { rows, harmless } = failureMatrix(
    [shardOf('s1', 'abc'), shardOf('s2', 'abb')],
    [edge, { ...edge, key: 'proxy p1', kind: 'proxy', id: 'p1' }] as unknown as TopologyView['components'],
    (goes) => (goes('edge e1') ? ['All clients: no edge router is left'] : []),
  )

  expect(rows.map(({ kind, name, writes, pauses, cuts }) => [kind, name, writes, pauses, cuts.length])).toEqual([
    ['machine', 'gate', [], [], 1],
    ['edge', 'e1', [], [], 1],
    ['zone', 'b', ['s2'], [], 0],
    ['zone', 'a', [], ['s1', 's2'], 0],
    ['node', 'n1', [], ['s1'], 0],
    ['node', 'n1', [], ['s2'], 0],
  ])
  expect(harmless).toEqual({ zone: 1, node: 4, proxy: 1 })
})

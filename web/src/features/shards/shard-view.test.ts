import { expect, test } from 'vitest'
import {
  bestCandidate,
  bestTarget,
  electionText,
  leaderReports,
  shardText,
  spareText,
  troubleOf,
  votersAway,
  whyNoTransfer,
} from './shard-view.ts'
import { nodeOf, shardOf } from './testing/shards.ts'

test('the target of a transfer is the healthiest voter with the shortest lag', () => {
  const shard = shardOf({
    nodes: [
      nodeOf({ id: 'n1', role: 'leader' }),
      nodeOf({ id: 'n2', level: 'warn', lagEntries: 0 }),
      nodeOf({ id: 'n3', lagEntries: 40 }),
      nodeOf({ id: 'n4', lagEntries: 3 }),
      nodeOf({ id: 'n5', role: 'learner', voter: false, lagEntries: 0 }),
    ],
  })

  expect(bestTarget(shard)).toBe('n4')
  expect(bestTarget(shardOf({ nodes: [nodeOf({ id: 'n1' })] }))).toBeUndefined()
})

test('the reason why there is nothing to transfer', () => {
  const alone = [nodeOf({ id: 'n1', role: 'leader' }), nodeOf({ id: 'n2', role: 'learner', voter: false })]

  expect(whyNoTransfer(shardOf())).toBeUndefined()
  expect(whyNoTransfer(shardOf({ leader: null, state: 'no-leader' }))).toBe('Nothing to transfer: no leader')
  expect(whyNoTransfer(shardOf({ mode: 'standalone' }))).toContain('no replicas')
  expect(whyNoTransfer(shardOf({ nodes: alone }))).toContain('no other voter')
})

test('nodes disagree when two of them name different leaders, or one knows none', () => {
  const naming = (...names: (string | null)[]) =>
    leaderReports(shardOf({ nodes: names.map((namesLeader, at) => nodeOf({ id: `n${at + 1}`, namesLeader })) }))

  expect(naming('n1', 'n1', null).agree).toBe(true)
  expect(naming('n1', 'n2', 'n1').agree).toBe(false)
  expect(naming('n1', '', 'n1').agree).toBe(false)
})

test('the last report of a silent node does not count', () => {
  const nodes = [nodeOf({ id: 'n1', namesLeader: 'n1' }), nodeOf({ id: 'n2', namesLeader: 'n2', freshness: 'gone' })]

  expect(leaderReports(shardOf({ nodes }))).toEqual({
    reports: [
      { node: 'n1', names: 'n1' },
      { node: 'n2', names: null },
    ],
    agree: true,
  })
})

test('the best candidate is the voter with the longest log', () => {
  const nodes = [
    nodeOf({ id: 'n1', lastIndex: 90 }),
    nodeOf({ id: 'n2', lastIndex: 120 }),
    nodeOf({ id: 'n3', lastIndex: null }),
    nodeOf({ id: 'n4', lastIndex: 500, voter: false }),
  ]

  expect(bestCandidate(shardOf({ nodes }))?.id).toBe('n2')
})

test('a dead node is not the best candidate', () => {
  const nodes = [
    nodeOf({ id: 'n1', lastIndex: 120, freshness: 'gone' }),
    nodeOf({ id: 'n4', lastIndex: 120, freshness: 'delayed', state: 'unreachable' }),
    nodeOf({ id: 'n2', lastIndex: 120 }),
    nodeOf({ id: 'n3', lastIndex: 90 }),
  ]

  expect(bestCandidate(shardOf({ nodes }))?.id).toBe('n2')
  expect(votersAway(shardOf({ nodes })).map(({ id }) => id)).toEqual(['n4'])
  // Without a majority it is the one to add voters to.
  expect(bestCandidate(shardOf({ nodes, voters: 3, votersUp: 1, majority: 2 }))?.id).toBe('n2')
})

test('with the quorum lost, no new leader is promised and no further loss is counted', () => {
  const lost = shardOf({ voters: 3, votersUp: 1, majority: 2, spare: 0 })
  const last = shardOf({ voters: 3, votersUp: 2, majority: 2, spare: 0, electionTimeoutMs: 1_800 })

  expect([spareText(lost), electionText(lost)]).toEqual([
    'needs 1 more of 3 voters',
    'No leader can be elected until 1 more voter responds.',
  ])
  expect(spareText(last)).toBe('cannot lose another of 3')
  expect(electionText(last)).toMatch(/^A new leader is usually elected within one election timeout, 1\.8/)
  expect(spareText(shardOf({ voters: 5, votersUp: 5, majority: 3, spare: 2 }))).toBe('can lose 2 of 5')
})

test('only states without writes have causes', () => {
  expect(troubleOf(shardOf({ state: 'quorum-lost' }))?.title).toBe('Quorum lost')
  expect(troubleOf(shardOf({ state: 'no-leader' }))?.causes).toContain('voters cannot reach each other')
  expect(troubleOf(shardOf({ state: 'degraded' }))).toBeUndefined()
})

test('the text summary of a shard has all nodes and missing values', () => {
  const nodes = [nodeOf({ id: 'n1', role: 'leader' }), nodeOf({ id: 'n2', lagEntries: null, answeredAt: null })]

  expect(shardText(shardOf({ nodes }), '2026-11-20T18:31:00.000Z').split('\n')).toEqual([
    's1: Healthy, can lose 1 (3 of 3 voters answer, 2 needed)',
    '  zone eu-1, leader n1 since 2026-11-20T18:30:00.000Z, term 41, state since 2026-11-20T18:30:00.000Z',
    '  n1  leader (voter)  Healthy  lag 0  last response 2026-11-20T18:30:00.000Z',
    '  n2  follower (voter)  Healthy  lag unknown  never responded',
    '  as of 2026-11-20T18:31:00.000Z',
  ])
})

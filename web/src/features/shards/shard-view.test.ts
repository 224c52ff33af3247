import { expect, test } from 'vitest'
import {
  bestCandidate,
  bestTarget,
  leaderWords,
  shardText,
  spareSays,
  troubleOf,
  waitSays,
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

test('transfer says why there is nothing to transfer', () => {
  const alone = [nodeOf({ id: 'n1', role: 'leader' }), nodeOf({ id: 'n2', role: 'learner', voter: false })]

  expect(whyNoTransfer(shardOf())).toBeUndefined()
  expect(whyNoTransfer(shardOf({ leader: null, state: 'no-leader' }))).toBe('Nothing to transfer: no leader')
  expect(whyNoTransfer(shardOf({ mode: 'standalone' }))).toContain('no copies')
  expect(whyNoTransfer(shardOf({ nodes: alone }))).toContain('no other voter')
})

test('nodes disagree when two of them name different leaders, or one knows none', () => {
  const naming = (...names: (string | null)[]) =>
    leaderWords(shardOf({ nodes: names.map((namesLeader, at) => nodeOf({ id: `n${at + 1}`, namesLeader })) }))

  expect(naming('n1', 'n1', null).agree).toBe(true)
  expect(naming('n1', 'n2', 'n1').agree).toBe(false)
  expect(naming('n1', '', 'n1').agree).toBe(false)
})

test('what a silent node said last is no word on who leads now', () => {
  const nodes = [nodeOf({ id: 'n1', namesLeader: 'n1' }), nodeOf({ id: 'n2', namesLeader: 'n2', freshness: 'gone' })]

  expect(leaderWords(shardOf({ nodes }))).toEqual({
    words: [
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

  expect(bestCandidate(shardOf({ nodes }))).toBe('n2')
})

test('the best candidate used to be a dead node although a live one has the same entry', () => {
  const nodes = [
    nodeOf({ id: 'n1', lastIndex: 120, freshness: 'gone' }),
    nodeOf({ id: 'n2', lastIndex: 120 }),
    nodeOf({ id: 'n3', lastIndex: 90 }),
  ]

  expect(bestCandidate(shardOf({ nodes, voters: 3, votersUp: 2, majority: 2 }))).toBe('n2')
  expect(bestCandidate(shardOf({ nodes, voters: 3, votersUp: 1, majority: 2 }))).toBeUndefined()
})

test('with the quorum lost, no new leader is promised and no further loss is counted', () => {
  const lost = shardOf({ voters: 3, votersUp: 1, majority: 2, spare: 0 })
  const last = shardOf({ voters: 3, votersUp: 2, majority: 2, spare: 0, electionTimeoutMs: 1_800 })

  expect([spareSays(lost), waitSays(lost)]).toEqual([
    'needs 1 more of 3 voters',
    'No leader can be chosen until 1 more voter answers.',
  ])
  expect(spareSays(last)).toBe('cannot lose another of 3')
  expect(waitSays(last)).toMatch(/^A new leader is usually chosen within one election timeout, 1\.8/)
  expect(spareSays(shardOf({ voters: 5, votersUp: 5, majority: 3, spare: 2 }))).toBe('can lose 2 of 5')
})

test('states without writes say what usually causes them, others nothing', () => {
  expect(troubleOf(shardOf({ state: 'quorum-lost' }))?.title).toBe('Quorum lost')
  expect(troubleOf(shardOf({ state: 'no-leader' }))?.causes).toContain('voters do not reach each other')
  expect(troubleOf(shardOf({ state: 'degraded' }))).toBeUndefined()
})

test('a shard as text names each node and what was not told', () => {
  const nodes = [nodeOf({ id: 'n1', role: 'leader' }), nodeOf({ id: 'n2', lagEntries: null, answeredAt: null })]

  expect(shardText(shardOf({ nodes }), '2026-11-20T18:31:00.000Z').split('\n')).toEqual([
    's1: Healthy, can lose 1 (3 of 3 voters answer, 2 needed)',
    '  zone eu-1, leader n1 since 2026-11-20T18:30:00.000Z, term 41, state since 2026-11-20T18:30:00.000Z',
    '  n1  leader (voter)  Healthy  lag 0  answered 2026-11-20T18:30:00.000Z',
    '  n2  follower (voter)  Healthy  lag not told  never answered',
    '  as seen at 2026-11-20T18:31:00.000Z',
  ])
})

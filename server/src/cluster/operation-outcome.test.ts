import type { ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { goneNode, NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import type { NodeObservation } from './observation.ts'
import {
  type MemberTrack,
  memberOutcome,
  OUTCOME_LIMITS,
  observeTransfer,
  type ShardObservation,
  type TransferTrack,
  transferOutcome,
} from './operation-outcome.ts'

const BEGIN: TransferTrack = {
  ...{ target: 'n2', oldLeader: 'n1', term: 4, lastChange: null },
  ...{ oldLeaderAt: undefined, steppedDown: undefined, leads: undefined, confirmed: undefined },
}

function observationOf(
  nodes: readonly NodeObservation[],
  now = NOW,
  change: Partial<ShardView> = {},
): ShardObservation {
  return { now, shard: { ...shardOf(nodes, { now }).view, ...change }, observations: nodes }
}
/** All three name the same leader. */
const led = (leader: string, term: number, commit: number, now = NOW) =>
  observationOf(
    ['n1', 'n2', 'n3'].map((id) => observedNode({ id, leader, term, commit, at: now })),
    now,
  )
const after = (...observations: readonly ShardObservation[]) => observations.reduce(observeTransfer, BEGIN)

test('it is done when the target leads by majority in a later term and its commit index advances', () => {
  const observations = [led('n1', 4, 100), led('n2', 5, 101, NOW + 60), led('n2', 5, 112, NOW + 110)]
  const track = after(...observations)

  expect(track.steppedDown?.at).toBe(NOW + 60)
  expect(track.leads).toMatchObject({ at: NOW + 60, evidence: '3 of 3 voters name n2, term 4 → 5' })
  expect(track.confirmed).toMatchObject({ evidence: 'commit index 101 → 112 under n2' })
  expect(transferOutcome(track, observations[2] as ShardObservation, 110)).toEqual({
    end: 'done',
    message: 'n2 leads s1',
  })
})

test('on an idle shard it is done after a second without further changes', () => {
  const early = after(led('n1', 4, 100), led('n2', 5, 101, NOW + 60), led('n2', 5, 101, NOW + 1_059))
  const late = observeTransfer(early, led('n2', 5, 101, NOW + 1_060))

  expect(early.confirmed).toBeUndefined()
  expect(late.confirmed?.evidence).toBe('no writes to confirm')
})

test('a target that only claims to lead does not lead', () => {
  const nodes = [
    observedNode({ id: 'n1', term: 5 }),
    observedNode({ id: 'n2', leader: 'n2', term: 5 }),
    observedNode({ id: 'n3', term: 5 }),
  ]

  expect(after(observationOf(nodes)).leads).toBeUndefined()
})

test('a leader of the same term is a late observation of the old one', () => {
  expect(after(led('n2', 4, 100)).leads).toBeUndefined()
})

/** The end states other than done. */
const ENDS: readonly (readonly [
  what: string,
  observation: ShardObservation,
  sinceMs: number,
  end: string | undefined,
])[] = [
  ['another node leads', led('n3', 5, 101), OUTCOME_LIMITS.elsewhereMs, 'elsewhere'],
  ['another one leads while the accepted request may be on its way', led('n3', 5, 101), 500, undefined],
  ['the old leader still leads', led('n1', 4, 100), 29_999, undefined],
  ['the old leader still leads after 30 s', led('n1', 4, 100), OUTCOME_LIMITS.endMs, 'no-change'],
  ['no leader for 30 s', led('', 4, 100), OUTCOME_LIMITS.endMs, 'unconfirmed'],
  [
    'no response for 30 s',
    observationOf(['n1', 'n2', 'n3'].map((id) => goneNode({ id }, { code: 'timeout', message: '' }))),
    OUTCOME_LIMITS.endMs,
    'unconfirmed',
  ],
  [
    'the leader reports that it gave up',
    observationOf(
      ['n1', 'n2', 'n3'].map((id) => observedNode({ id })),
      NOW,
      {
        lastChange: {
          kind: 'transfer',
          node: 'n2',
          result: 'failed',
          reason: 'n2 did not take over',
          at: '2026-11-22T12:00:00.000Z',
        },
      },
    ),
    500,
    'no-change',
  ],
]

test.each(ENDS)('transfer, %s', (_what, observation, sinceMs, end) => {
  expect(transferOutcome(after(observation), observation, sinceMs).end).toBe(end)
})

test('a failure reported before the request does not belong to the operation', () => {
  const lastChange = {
    kind: 'transfer',
    node: 'n2',
    result: 'failed',
    reason: 'old',
    at: '2026-11-22T11:00:00.000Z',
  } as const
  const observation = observationOf(
    ['n1', 'n2', 'n3'].map((id) => observedNode({ id })),
    NOW,
    { lastChange },
  )

  expect(transferOutcome({ ...BEGIN, lastChange }, observation, 500).end).toBeUndefined()
})

const promotion: MemberTrack = { kind: 'promote', node: 'n4', lastChange: null }
const demotion: MemberTrack = { kind: 'demote', node: 'n3', lastChange: null }
const four = { voters: ['n1', 'n2', 'n3', 'n4'] }
const before = { voters: ['n1', 'n2', 'n3'], learners: ['n4'] }
const nodesOf = (lists: { readonly [id: string]: { voters: string[]; learners?: string[] } }) =>
  Object.entries(lists).map(([id, list]) => observedNode({ id, ...list }))

test('a promotion is done when a majority of the new voters lists it', () => {
  const two = observationOf(nodesOf({ n1: four, n2: four, n3: before, n4: before }))
  const three = observationOf(nodesOf({ n1: four, n2: four, n3: before, n4: four }))

  expect(memberOutcome(promotion, two, 100).end).toBeUndefined()
  expect(memberOutcome(promotion, three, 100)).toEqual({ end: 'done', message: 'n4 is a voter' })
})

test('a demoted node may stay as a learner or leave: both are done and reported', () => {
  const learner = { voters: ['n1', 'n2'], learners: ['n3'] }
  const left = { voters: ['n1', 'n2'] }

  expect(memberOutcome(demotion, observationOf(nodesOf({ n1: learner, n2: learner })), 100)).toMatchObject({
    end: 'done',
    message: expect.stringContaining('as learner'),
  })
  expect(memberOutcome(demotion, observationOf(nodesOf({ n1: left, n2: left })), 100)).toMatchObject({
    end: 'done',
    message: expect.stringContaining('no longer'),
  })
})

test('a promotion that is still in progress on the leader does not time out', () => {
  const nodes = nodesOf({ n1: before, n2: before, n3: before })
  const change = { kind: 'promote', node: 'n4', startedAt: '2026-11-22T12:00:00.000Z', step: 'waits' }

  expect(memberOutcome(promotion, observationOf(nodes, NOW, { change }), 120_000).end).toBeUndefined()
  expect(memberOutcome(promotion, observationOf(nodes), 120_000).end).toBe('no-change')
})

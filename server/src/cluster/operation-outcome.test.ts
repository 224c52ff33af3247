import type { ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { goneNode, NOW, seenNode, shardOf } from '../testing/observed-nodes.ts'
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

function lookOf(nodes: readonly NodeObservation[], now = NOW, change: Partial<ShardView> = {}): ShardObservation {
  return { now, shard: { ...shardOf(nodes, { now }).view, ...change }, seen: nodes }
}
/** All three name the same. */
const led = (leader: string, term: number, commit: number, now = NOW) =>
  lookOf(
    ['n1', 'n2', 'n3'].map((id) => seenNode({ id, leader, term, commit, at: now })),
    now,
  )
const after = (...looks: readonly ShardObservation[]) => looks.reduce(observeTransfer, BEGIN)

test('it is done when the target leads by majority in a later term and its commits go on', () => {
  const looks = [led('n1', 4, 100), led('n2', 5, 101, NOW + 60), led('n2', 5, 112, NOW + 110)]
  const track = after(...looks)

  expect(track.steppedDown?.at).toBe(NOW + 60)
  expect(track.leads).toMatchObject({ at: NOW + 60, evidence: '3 of 3 voters name n2, term 4 → 5' })
  expect(track.confirmed).toMatchObject({ evidence: 'commit index 101 → 112 under n2' })
  expect(transferOutcome(track, looks[2] as ShardObservation, 110)).toEqual({ end: 'done', message: 'n2 leads s1' })
})

test('an idle shard is done after a second in which nothing else changed', () => {
  const early = after(led('n1', 4, 100), led('n2', 5, 101, NOW + 60), led('n2', 5, 101, NOW + 1_059))
  const late = observeTransfer(early, led('n2', 5, 101, NOW + 1_060))

  expect(early.confirmed).toBeUndefined()
  expect(late.confirmed?.evidence).toBe('no writes to confirm')
})

test('a target that leads in its own eyes alone does not lead', () => {
  const nodes = [
    seenNode({ id: 'n1', term: 5 }),
    seenNode({ id: 'n2', leader: 'n2', term: 5 }),
    seenNode({ id: 'n3', term: 5 }),
  ]

  expect(after(lookOf(nodes)).leads).toBeUndefined()
})

test('a leader of the same term is the old one seen late', () => {
  expect(after(led('n2', 4, 100)).leads).toBeUndefined()
})

/** The ends that are not done. */
const ENDS: readonly (readonly [
  what: string,
  observation: ShardObservation,
  sinceMs: number,
  end: string | undefined,
])[] = [
  ['another leads', led('n3', 5, 101), 100, 'elsewhere'],
  ['the old one leads on', led('n1', 4, 100), 29_999, undefined],
  ['the old one leads on for 30 s', led('n1', 4, 100), OUTCOME_LIMITS.endMs, 'no-change'],
  ['nobody leads for 30 s', led('', 4, 100), OUTCOME_LIMITS.endMs, 'unconfirmed'],
  [
    'nobody answers for 30 s',
    lookOf(['n1', 'n2', 'n3'].map((id) => goneNode({ id }, { code: 'timeout', message: '' }))),
    OUTCOME_LIMITS.endMs,
    'unconfirmed',
  ],
  [
    'the leader says that it gave up',
    lookOf(
      ['n1', 'n2', 'n3'].map((id) => seenNode({ id })),
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

test('a failure that was told before the request is not ours', () => {
  const lastChange = {
    kind: 'transfer',
    node: 'n2',
    result: 'failed',
    reason: 'old',
    at: '2026-11-22T11:00:00.000Z',
  } as const
  const observation = lookOf(
    ['n1', 'n2', 'n3'].map((id) => seenNode({ id })),
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
  Object.entries(lists).map(([id, list]) => seenNode({ id, ...list }))

test('a promotion is done when a majority of the new voters lists it', () => {
  const two = lookOf(nodesOf({ n1: four, n2: four, n3: before, n4: before }))
  const three = lookOf(nodesOf({ n1: four, n2: four, n3: before, n4: four }))

  expect(memberOutcome(promotion, two, 100).end).toBeUndefined()
  expect(memberOutcome(promotion, three, 100)).toEqual({ end: 'done', message: 'n4 is a voter' })
})

test('a demoted node may stay as a learner or leave: both are done and named', () => {
  const learner = { voters: ['n1', 'n2'], learners: ['n3'] }
  const left = { voters: ['n1', 'n2'] }

  expect(memberOutcome(demotion, lookOf(nodesOf({ n1: learner, n2: learner })), 100)).toMatchObject({
    end: 'done',
    message: expect.stringContaining('as learner'),
  })
  expect(memberOutcome(demotion, lookOf(nodesOf({ n1: left, n2: left })), 100)).toMatchObject({
    end: 'done',
    message: expect.stringContaining('no longer'),
  })
})

test('a promotion that the leader still waits with is not given up', () => {
  const nodes = nodesOf({ n1: before, n2: before, n3: before })
  const change = { kind: 'promote', node: 'n4', startedAt: '2026-11-22T12:00:00.000Z', step: 'waits' }

  expect(memberOutcome(promotion, lookOf(nodes, NOW, { change }), 120_000).end).toBeUndefined()
  expect(memberOutcome(promotion, lookOf(nodes), 120_000).end).toBe('no-change')
})

import { expect, test } from 'vitest'
import {
  acknowledge,
  answerHeartbeat,
  configurationOf,
  drain,
  drainReadies,
  elect,
  give,
  heartbeatTo,
  leaderOf,
  memberOf,
  ofType,
} from '../testing/raft-fixture.ts'
import { proposeChange, type Raft, readIndex, step, tick } from './raft.ts'

const readsOf = (raft: Raft) => drainReadies(raft).flatMap(({ readStates }) => readStates)
const roundsOf = (raft: Raft) => ofType(drain(raft), 'heartbeat', 2).map(({ readRound }) => readRound)

test('a read is released at the index it was taken at, when a quorum has answered since (RI1, RI5)', () => {
  const raft = leaderOf()
  give(raft)
  drain(raft)
  expect(readIndex(raft, 7)).toBe('taken')
  acknowledge(raft, 2)
  expect(readsOf(raft)).toEqual([])

  answerHeartbeat(raft, 3)

  expect(readsOf(raft)).toEqual([{ context: 7, index: 1 }])
})

test('an answer to an earlier round confirms nothing (RI1)', () => {
  const raft = leaderOf()
  readIndex(raft, 1)
  drain(raft)
  answerHeartbeat(raft, 2)
  readsOf(raft)
  readIndex(raft, 2)
  drain(raft)
  answerHeartbeat(raft, 2, 1)
  answerHeartbeat(raft, 3, 0)
  expect(readsOf(raft)).toEqual([])
  answerHeartbeat(raft, 3, 2)
  expect(readsOf(raft)).toEqual([{ context: 2, index: 1 }])
})

test('reads of one turn share a round; those that come while it is under way share the next (RI1)', () => {
  const raft = leaderOf()
  readIndex(raft, 1)
  readIndex(raft, 2)
  expect(roundsOf(raft)).toEqual([1])
  readIndex(raft, 3)
  readIndex(raft, 4)
  expect(roundsOf(raft)).toEqual([])

  answerHeartbeat(raft, 3)

  const readies = drainReadies(raft)
  expect(readies.flatMap(({ readStates }) => readStates.map(({ context }) => context))).toEqual([1, 2])
  expect(readies.flatMap(({ sendNow }) => ofType(sendNow, 'heartbeat', 2).map(({ readRound }) => readRound))).toEqual([
    2,
  ])
  answerHeartbeat(raft, 3)
  expect(readsOf(raft).map(({ context }) => context)).toEqual([3, 4])
})

test('a round that was lost is repeated with the next heartbeat', () => {
  const raft = leaderOf()
  readIndex(raft, 1)
  drain(raft)
  readIndex(raft, 2)
  tick(raft)
  expect(roundsOf(raft)).toEqual([2])
  answerHeartbeat(raft, 2)
  expect(readsOf(raft).map(({ context }) => context)).toEqual([1, 2])
})

test('while joint both halves must answer; learners do not count, nor who is not bound (RI1, M6)', () => {
  const joint = configurationOf({ voters: [1, 2, 3], outgoing: [1, 4, 5], learners: [6], unbound: [5] })
  const raft = elect(memberOf(joint))
  drain(raft)
  for (const id of [2, 4]) acknowledge(raft, id)
  drain(raft)
  readIndex(raft, 1)
  drain(raft)
  for (const id of [2, 3, 5, 6]) answerHeartbeat(raft, id)
  expect(readsOf(raft)).toEqual([])
  answerHeartbeat(raft, 4)
  expect(readsOf(raft)).toEqual([{ context: 1, index: 1 }])
})

test('a leader holds reads until it has committed an entry of its own term (RI2)', () => {
  const raft = elect(memberOf(undefined, { log: [1], restored: { commit: 1 } }))
  drain(raft)
  readIndex(raft, 1)
  expect(roundsOf(raft)).toEqual([])
  answerHeartbeat(raft, 2)
  expect(readsOf(raft)).toEqual([])
  acknowledge(raft, 2)
  drain(raft)
  answerHeartbeat(raft, 2)
  expect(readsOf(raft)).toEqual([{ context: 1, index: 2 }])
})

test('a single voter answers at once, with learners as well (RI3)', () => {
  const raft = leaderOf({ voters: [1], learners: [2] })
  readIndex(raft, 5)
  expect(readsOf(raft)).toEqual([{ context: 5, index: 1 }])
  const held = elect(memberOf({ voters: [1] }))
  readIndex(held, 6)
  expect(readsOf(held)).toEqual([{ context: 6, index: 1 }])
})

test('a follower requests the index from its leader (RI4)', () => {
  const follower = memberOf(configurationOf({ voters: [1, 2, 3] }), { id: 3 })
  expect(readIndex(follower, 9)).toBe('no-leader')
  heartbeatTo(follower, 1, 0, 1)
  drain(follower)
  expect(readIndex(follower, 9)).toBe('taken')
  const [request] = ofType(drain(follower), 'readIndex')
  expect(request).toEqual({ type: 'readIndex', from: 3, to: 1, term: 0, context: 9 })
  const leader = leaderOf()
  if (request) step(leader, request)
  drain(leader)
  answerHeartbeat(leader, 2)
  const [reply] = ofType(drain(leader), 'readIndexReply')
  expect(reply).toEqual({ type: 'readIndexReply', from: 1, to: 3, term: 0, context: 9, index: 1 })
  if (reply) step(follower, reply)
  expect(readsOf(follower)).toEqual([{ context: 9, index: 1 }])
})

test('who does not lead gives no index', () => {
  const raft = memberOf()
  step(raft, { type: 'readIndex', from: 2, to: 1, term: 0, context: 1 })
  expect(drain(raft)).toEqual([])
})

test('losing leadership drops reads that wait; remote callers retry (RI6)', () => {
  const raft = leaderOf()
  readIndex(raft, 1)
  step(raft, { type: 'readIndex', from: 3, to: 1, term: 0, context: 2 })
  drain(raft)
  heartbeatTo(raft, 9)
  const readies = drainReadies(raft)
  expect(readies.flatMap(({ droppedReads }) => droppedReads)).toEqual([{ context: 1, reason: 'not-leader' }])
  expect(readies.flatMap(({ readStates }) => readStates)).toEqual([])
})

test('reads that wait are bounded', () => {
  const raft = leaderOf(undefined, { limits: { waitingReads: 2 } })
  expect([1, 2, 3].map((context) => readIndex(raft, context))).toEqual(['taken', 'taken', 'overloaded'])
})

test('a quorum that became smaller releases reads', () => {
  const raft = leaderOf({ voters: [1, 2, 3] })
  proposeChange(raft, {
    steps: [
      { type: 'demote', id: 2 },
      { type: 'demote', id: 3 },
    ],
    phase: 'joint',
  })
  drain(raft)
  acknowledge(raft, 2)
  drain(raft)
  readIndex(raft, 1)
  drain(raft)
  acknowledge(raft, 2)
  expect(readsOf(raft)).toEqual([{ context: 1, index: 2 }])
})

import { expect, test } from 'vitest'
import {
  acknowledge,
  answerHeartbeat,
  drain,
  E,
  give,
  heartbeatTo,
  leaderOf,
  memberOf,
  ofType,
} from '../testing/raft-fixture.ts'
import { abortTransfer, type Raft, status, step, tick, transferLeader } from './raft.ts'

const hurried = (raft: Raft) => ofType(drain(raft), 'timeoutNow').map(({ to }) => to)

test('a target that has everything stands at once', () => {
  const raft = leaderOf()
  expect(transferLeader(raft, 3)).toBe('taken')
  expect(hurried(raft)).toEqual([3])
})

test('a target that lags is brought up to the end first; meanwhile proposals are dropped', () => {
  const raft = leaderOf()
  give(raft, 3)
  drain(raft)
  transferLeader(raft, 2)
  expect([hurried(raft), give(raft)]).toEqual([[], 'transferring'])
  acknowledge(raft, 2, 3)
  expect(hurried(raft)).toEqual([])
  acknowledge(raft, 2)
  expect(hurried(raft)).toEqual([2])
})

test('a transfer ends after E ticks; then proposals flow again', () => {
  const raft = leaderOf()
  transferLeader(raft, 2)
  for (let n = 0; n < E - 1; n++) {
    tick(raft)
    answerHeartbeat(raft, 3)
  }
  expect(give(raft)).toBe('transferring')
  tick(raft)
  expect(typeof give(raft)).toBe('number')
})

test('it is aborted by another one, and by hand', () => {
  const raft = leaderOf()
  transferLeader(raft, 2)
  drain(raft)
  expect([transferLeader(raft, 2), hurried(raft)]).toEqual(['taken', []])
  expect([transferLeader(raft, 3), hurried(raft), status(raft).transferTarget]).toEqual(['taken', [3], 3])
  abortTransfer(raft)
  expect(typeof give(raft)).toBe('number')
})

test('a target must be a voter; the leader itself needs nothing', () => {
  const raft = leaderOf({ voters: [1, 2, 3], learners: [4] })
  expect([transferLeader(raft, 9), transferLeader(raft, 4), transferLeader(raft, 1)]).toEqual([
    'unknown-member',
    'not-voter',
    'taken',
  ])
  expect(typeof give(raft)).toBe('number')
})

test('a follower passes the wish on; who does not lead ignores it', () => {
  const raft = memberOf()
  expect(transferLeader(raft, 3)).toBe('no-leader')
  heartbeatTo(raft)
  drain(raft)
  expect(transferLeader(raft, 3)).toBe('taken')
  const [wish] = drain(raft)
  expect(wish).toEqual({ type: 'transferLeader', from: 1, to: 2, term: 0, target: 3 })
  step(raft, { type: 'transferLeader', from: 3, to: 1, term: 0, target: 3 })
  expect(drain(raft)).toEqual([])
  const leader = leaderOf()
  step(leader, { type: 'transferLeader', from: 2, to: 1, term: 0, target: 3 })
  expect(hurried(leader)).toEqual([3])
})

test('the target stands without asking first, and voters do not wait for the leader to fall silent', () => {
  const raft = memberOf()
  heartbeatTo(raft)
  drain(raft)
  step(raft, { type: 'timeoutNow', from: 2, to: 1, term: 1 })
  expect([raft.role, raft.term]).toEqual(['candidate', 2])
  expect(ofType(drain(raft), 'vote').every(({ isForced }) => isForced)).toBe(true)
})

test('a learner does not campaign on request', () => {
  const raft = memberOf({ voters: [2, 3], learners: [1] })
  step(raft, { type: 'timeoutNow', from: 2, to: 1, term: 0 })
  expect(raft.role).toBe('follower')
})

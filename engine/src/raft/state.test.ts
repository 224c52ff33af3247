/** Terms, votes, roles and peers of one core. */

import { expect, test } from 'vitest'
import {
  appendTo,
  batchOf,
  configurationOf,
  drain,
  E,
  heartbeatTo,
  incarnationOf,
  leaderOf,
  logOf,
  memberOf,
} from '../testing/raft-fixture.ts'
import { createRaft, hasReady, RAFT_LIMITS, type Raft, readIndex, status, takeReady, transferLeader } from './raft.ts'
import {
  becomeFollower,
  cutLog,
  drawTimeout,
  isElectable,
  isUpToDate,
  knowledge,
  knownTerm,
  peerOf,
  placePeers,
  promise,
  send,
  setLeader,
  setTerm,
  setVote,
} from './state.ts'

test('the time-out is drawn from one to two election time-outs, and starts again', () => {
  const bounds: number[] = []
  const random = (below: number) => bounds.push(below) + 3
  const raft = memberOf(undefined, { random })
  expect([raft.electionTimeout, raft.electionElapsed, raft.heartbeatElapsed]).toEqual([E + 4, 0, 0])
  Object.assign(raft, { electionElapsed: 5, heartbeatElapsed: 6 })
  drawTimeout(raft)
  expect([raft.electionTimeout, raft.electionElapsed, raft.heartbeatElapsed]).toEqual([E + 5, 0, 0])
  expect(bounds).toEqual([E, E])
})

test('a later term has no vote and no leader, and is stored', () => {
  const raft = memberOf(undefined, { log: [2], restored: { vote: 3 } })
  setTerm(raft, 3)
  expect([raft.term, raft.vote, raft.leaderOfTerm]).toEqual([3, 0, 0])
  expect(takeReady(raft)).toMatchObject({ mustStore: true, mustSync: true, hardState: { term: 3, vote: 0 } })
  expect(() => setTerm(raft, 3)).toThrow('the term never decreases')
})

test('a vote is stored and given once a term', () => {
  const raft = memberOf()
  setVote(raft, 0)
  expect(hasReady(raft)).toBe(false)
  setVote(raft, 2)
  expect(takeReady(raft)).toMatchObject({ mustStore: true, mustSync: true, hardState: { vote: 2 } })
  setVote(raft, 2)
  expect(hasReady(raft)).toBe(false)
  expect(() => setVote(raft, 3)).toThrow('a vote is given once a term')
})

test('a term has one leader, also after it was forgotten', () => {
  const raft = memberOf()
  setLeader(raft, 2)
  setLeader(raft, 0)
  expect([raft.leader, raft.leaderOfTerm]).toEqual([0, 2])
  setLeader(raft, 2)
  expect(() => setLeader(raft, 3)).toThrow('a term has one leader')
})

test('a follower of a later term forgets votes, and what it did as a leader', () => {
  const raft = leaderOf()
  readIndex(raft, 4)
  transferLeader(raft, 2)
  raft.logReads.push({ peer: 2, firstIndex: 1, lastIndex: 1, bytesMax: 1 })
  raft.offers.push({ peer: 3 })
  Object.assign(raft, { mustBroadcast: true, mustBeginRound: true })
  raft.votes.set(3, true)
  becomeFollower(raft, 2, 3)
  const { role, term, vote, leader, transferTarget, termStart } = raft
  expect({ role, term, vote, leader, transferTarget, termStart }).toEqual({
    ...{ role: 'follower', term: 2, vote: 0, leader: 3, transferTarget: 0, termStart: 0 },
  })
  expect([raft.peers, raft.logReads, raft.offers, raft.votes.size, raft.reads]).toEqual([[], [], [], 0, []])
  expect([raft.mustBroadcast, raft.mustBeginRound]).toEqual([false, false])
  expect(raft.droppedReads).toEqual([{ context: 4, reason: 'not-leader' }])
  expect(status(raft).transferTarget).toBe(0)
})

test('a follower keeps its term and vote when it follows another node in the same term', () => {
  const raft = memberOf(undefined, { log: [2], restored: { vote: 3 } })
  becomeFollower(raft, 2, 3)
  becomeFollower(raft, 2, 0)
  expect([raft.term, raft.vote, raft.leader, raft.leaderOfTerm, hasReady(raft)]).toEqual([2, 3, 0, 3, false])
})

test.each([
  ['a voter', { voters: [1, 2] }, false, true],
  ['a voter of the outgoing half', { voters: [2], outgoing: [1, 2] }, false, true],
  ['a learner', { voters: [2], learners: [1] }, false, false],
  ['a mute voter', { voters: [1, 2] }, true, false],
])('whether %s may lead: %o', (_name, places, isMute, isPossible) => {
  expect(isElectable(memberOf(places, { restored: { isMute } }))).toBe(isPossible)
})

test('a log is as new as the own one with a later last term, or with the same and at least its length', () => {
  const raft = memberOf(undefined, { log: [1, 2, 2] })
  const cases = [
    [1, 9],
    [2, 2],
    [2, 3],
    [2, 4],
    [3, 0],
  ] as const
  expect(cases.map(([term, index]) => isUpToDate(raft, term, index))).toEqual([false, false, true, true, true])
  heartbeatTo(raft, 2, 1)
  expect([knowledge(raft), knownTerm(raft, 3)]).toEqual([{ commit: 1, commitTerm: 1 }, 2])
  expect(() => knownTerm(raft, 4)).toThrow('is known')
})

test('messages are for other nodes, and promises wait for the disk', () => {
  const raft = memberOf()
  const message = { type: 'timeoutNow', from: 1, term: 1 } as const
  promise(raft, { ...message, to: 2 })
  send(raft, { ...message, to: 3 })
  expect([raft.sendAfter, raft.sendNow]).toEqual([[{ ...message, to: 2 }], [{ ...message, to: 3 }]])
  expect(() => promise(raft, { ...message, to: 1 })).toThrow('does not send to itself')
  expect(() => send(raft, { ...message, to: 1 })).toThrow('does not send to itself')
})

test('a cut of the log takes from hand-overs on their way, not from those before it', () => {
  const raft = memberOf()
  for (const first of [1, 2, 3]) {
    appendTo(raft, { entries: logOf([1], first) })
    takeReady(raft)
  }
  cutLog(raft, 2)
  expect(raft.handed.map(({ lastIndex }) => lastIndex)).toEqual([1, 1, 1])
})

test('a shard of one voter is created from its id', () => {
  const raft = createRaft(7, { term: 1, vote: 7, commit: 2, lastIndex: 2, lastTerm: 1, applied: 2 })
  expect([raft.id, raft.configuration.voters, raft.isOwnVoter, raft.isOwnOutgoing]).toEqual([7, [7], true, false])
  expect([raft.firstIndex, raft.appliedTerm, raft.isMute, raft.limits, raft.leader]).toEqual([
    ...[3, 1, false],
    RAFT_LIMITS,
    0,
  ])
})

test('a configured limit replaces only that one', () => {
  const { limits } = memberOf(undefined, { limits: { waitingReads: 3 } })
  expect(limits).toEqual({ ...RAFT_LIMITS, waitingReads: 3 })
})

// Peers

const peersOf = (raft: Raft) =>
  raft.peers.map(({ id, isVoter, isOutgoing, counts, match, state }) => [
    ...[id, isVoter, isOutgoing, counts],
    ...[match, state],
  ])

test('the peers of a leader follow the configuration; those that stay keep their progress', () => {
  const raft = leaderOf()
  raft.configuration = configurationOf({ voters: [2, 4], outgoing: [1, 2, 3], learners: [5], unbound: [4] })
  placePeers(raft)
  expect(peersOf(raft)).toEqual([
    [2, true, true, true, 1, 'replicate'],
    [3, false, true, true, 1, 'replicate'],
    [4, true, false, false, 0, 'probe'],
    [5, false, false, true, 0, 'probe'],
  ])
  expect([raft.isOwnVoter, raft.isOwnOutgoing, peerOf(raft, 4)?.next, peerOf(raft, 9)]).toEqual([
    ...[false, true],
    raft.lastIndex + 1,
    undefined,
  ])
})

test('a follower has no peers, and knows whether it is a voter', () => {
  const raft = memberOf()
  raft.configuration = configurationOf({ voters: [2], outgoing: [1], learners: [] })
  placePeers(raft)
  expect([raft.peers, raft.isOwnVoter, raft.isOwnOutgoing]).toEqual([[], false, true])
})

test('what a member acknowledged before it counted is void, and the driver decides whether it counts', () => {
  const raft = leaderOf()
  raft.counts.set(2, false)
  placePeers(raft)
  expect(peersOf(raft)[0]).toEqual([2, true, false, false, 1, 'replicate'])
  raft.counts.set(2, true)
  placePeers(raft)
  expect(peersOf(raft)[0]).toEqual([2, true, false, true, 0, 'probe'])
  const { members, ...rest } = raft.configuration
  raft.configuration = { ...rest, members: members.map((each) => ({ ...each, incarnation: '' })) }
  placePeers(raft)
  expect(peersOf(raft).map(([, , , counts]) => counts)).toEqual([true, false])
  raft.configuration = { ...rest, members: members.map((each) => ({ ...each, incarnation: incarnationOf(8) })) }
  placePeers(raft)
  expect(peersOf(raft)[1]).toEqual([3, true, false, true, 0, 'probe'])
})

test('entries of a restored node are in its log, without new work', () => {
  const raft = memberOf(undefined, { log: [1, 1, 2], restored: { commit: 2 } })
  expect([raft.lastIndex, raft.lastTerm, raft.persisted, raft.commit, hasReady(raft)]).toEqual([3, 2, 3, 2, false])
  expect([raft.stored, raft.handedState, raft.nextToken]).toEqual([
    { term: 2, vote: 0, commit: 2 },
    { term: 2, vote: 0, commit: 2 },
    1,
  ])
  appendTo(raft, { entries: [batchOf(2, 2, 4)] })
  drain(raft)
  expect(raft.lastIndex).toBe(5)
})

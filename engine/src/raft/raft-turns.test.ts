/** Ticks, terms, proposals and hand-overs of the core, at their limits. */

import { expect, test } from 'vitest'
import {
  acknowledge,
  answerHeartbeat,
  appendTo,
  applyAll,
  ask,
  batchOf,
  configurationOf,
  drain,
  E,
  elect,
  give,
  grant,
  heartbeatTo,
  leaderOf,
  logOf,
  memberOf,
  ofType,
  refuse,
} from '../testing/raft-fixture.ts'
import type { Message } from './messages.ts'
import {
  abortTransfer,
  campaign,
  forgetLeader,
  hasReady,
  installed,
  nextCommitted,
  persisted,
  propose,
  proposeChange,
  type Raft,
  readIndex,
  refused,
  setCounts,
  setMute,
  status,
  step,
  storeCommit,
  takeReady,
  tick,
  transferLeader,
} from './raft.ts'

function ticks(raft: Raft, count: number): void {
  for (let n = 0; n < count; n++) tick(raft)
}

/** Ends what is ready. @returns types and receivers of the messages */
const sent = (raft: Raft) => drain(raft).map(({ type, to }) => [type, to])

const ENTRY_BYTES = batchOf(1, 1, 1).bytes.length

const MANIFEST = new Uint8Array(0)
const offerAt = (index: number, term = 1): Message => ({
  ...{ type: 'snapshot', from: 2, to: 1, term, index, snapshotTerm: 1, manifest: MANIFEST },
  configuration: configurationOf({ voters: [1, 2, 3] }),
})

// Ticks

test('a follower campaigns in the tick of its time-out, and again a time-out later', () => {
  const raft = memberOf(undefined, { random: () => 3 })
  ticks(raft, E + 2)
  expect([raft.role, hasReady(raft)]).toEqual(['follower', false])
  tick(raft)
  expect(raft.role).toBe('preCandidate')
  expect(sent(raft)).toEqual([
    ['preVote', 2],
    ['preVote', 3],
  ])
  ticks(raft, E + 2)
  expect(hasReady(raft)).toBe(false)
  tick(raft)
  expect(sent(raft)).toHaveLength(2)
})

test('a node that may not lead does not campaign, and does so at once when it may', () => {
  const learner = memberOf({ voters: [2, 3], learners: [1] })
  const mute = memberOf(undefined, { restored: { isMute: true } })
  for (const raft of [learner, mute]) {
    ticks(raft, 5 * E)
    expect([raft.role, hasReady(raft)]).toEqual(['follower', false])
  }
  setMute(mute, false)
  tick(mute)
  expect(mute.role).toBe('preCandidate')
})

test('a campaign that cannot begin is tried again after a whole time-out', () => {
  const raft = memberOf()
  step(raft, offerAt(5))
  ticks(raft, E)
  expect([raft.role, raft.electionElapsed]).toEqual(['follower', 0])
})

test('a leader sends heartbeats once an interval', () => {
  const raft = leaderOf(undefined, { heartbeatTicks: 3 })
  drain(raft)
  const counts = [1, 1, 1, 1, 1, 1].map((count) => {
    ticks(raft, count)
    return ofType(drain(raft), 'heartbeat').length
  })
  expect(counts).toEqual([0, 0, 2, 0, 0, 2])
})

test('a leader without replies of a quorum in one whole interval steps down', () => {
  const raft = leaderOf()
  ticks(raft, E)
  expect(raft.role).toBe('leader')
  answerHeartbeat(raft, 3)
  ticks(raft, E)
  expect(raft.role).toBe('leader')
  ticks(raft, E - 1)
  expect(raft.role).toBe('leader')
  drain(raft)
  tick(raft)
  expect([raft.role, raft.leader, raft.term]).toEqual(['follower', 0, 1])
  expect(sent(raft)).toEqual([])
})

test('a leader without check-quorum keeps leading without replies', () => {
  const raft = leaderOf(undefined, { checkQuorum: false })
  ticks(raft, 3 * E)
  expect(raft.role).toBe('leader')
})

test('a transfer of leadership ends after an election time-out', () => {
  const raft = leaderOf()
  transferLeader(raft, 2)
  for (let n = 0; n < E - 1; n++) {
    answerHeartbeat(raft, 2)
    tick(raft)
  }
  expect([raft.transferTarget, give(raft)]).toEqual([2, 'transferring'])
  answerHeartbeat(raft, 2)
  tick(raft)
  expect([raft.transferTarget, give(raft)]).toEqual([0, 2])
})

test('a follower forgets its leader and keeps its term; a leader does not forget itself', () => {
  const follower = memberOf()
  heartbeatTo(follower, 4)
  ticks(follower, 3)
  forgetLeader(follower)
  expect([follower.leader, follower.term, follower.electionElapsed]).toEqual([0, 4, 3])
  const leader = leaderOf()
  forgetLeader(leader)
  expect(leader.leader).toBe(1)
})

// Terms

test('a request of another node to move leadership acts on a leader only', () => {
  const request = { type: 'transferLeader', from: 3, to: 1, term: 0, target: 2 } as const
  const leader = leaderOf()
  step(leader, request)
  expect([leader.transferTarget, leader.term]).toEqual([2, 1])
  expect(sent(leader)).toContainEqual(['timeoutNow', 2])
  const follower = memberOf()
  heartbeatTo(follower)
  drain(follower)
  step(follower, request)
  expect([follower.transferTarget, sent(follower)]).toEqual([0, []])
})

test('a leader confirms the read of another node, and a node passes its own replies on', () => {
  const leader = leaderOf()
  step(leader, { type: 'readIndex', from: 3, to: 1, term: 0, context: 7 })
  drain(leader)
  answerHeartbeat(leader, 2)
  expect(ofType(drain(leader), 'readIndexReply')).toEqual([
    { type: 'readIndexReply', from: 1, to: 3, term: 0, context: 7, index: 1 },
  ])
  step(leader, { type: 'readIndexReply', from: 3, to: 1, term: 0, context: 8, index: 5 })
  expect(takeReady(leader).readStates).toEqual([{ context: 8, index: 5 }])
})

const candidate = { term: 5, lastIndex: 9, lastTerm: 4 }

test.each<[string, (raft: Raft) => void, boolean]>([
  ['of a node that hears no leader', () => undefined, true],
  ['of a node with a leader', (raft) => heartbeatTo(raft, 1), false],
  ['of a node whose leader was silent for a tick less', (raft) => [heartbeatTo(raft, 1), ticks(raft, E - 1)], false],
  ['of a mute node', (raft) => setMute(raft, true), false],
])('the vote %s', (_name, prepare, isGranted) => {
  for (const type of ['vote', 'preVote'] as const) {
    const raft = memberOf(undefined, { random: () => 5 })
    prepare(raft)
    drain(raft)
    const { term } = raft
    ask(raft, 3, type, candidate)
    const replies = drain(raft).map((message) => [
      message.type,
      message.term,
      'isGranted' in message && message.isGranted,
    ])
    expect(replies).toEqual(isGranted ? [[`${type}Reply`, 5, true]] : [])
    expect([raft.term, raft.vote]).toEqual(isGranted && type === 'vote' ? [5, 3] : [term, 0])
  }
})

test('a forced vote and one after the time-out replace a leader that was heard', () => {
  const forced = memberOf()
  heartbeatTo(forced, 1)
  ask(forced, 3, 'vote', { ...candidate, isForced: true })
  expect([forced.term, forced.vote, forced.leader]).toEqual([5, 3, 0])
  const late = memberOf(undefined, { random: () => 5 })
  heartbeatTo(late, 1)
  ticks(late, E)
  ask(late, 3, 'vote', candidate)
  expect([late.term, late.vote]).toEqual([5, 3])
})

test('votes tell their receiver what is committed', () => {
  const knowing = { commit: 2, commitTerm: 1 }
  const requests: Message[] = [
    { type: 'vote', from: 3, to: 1, isForced: false, ...candidate, ...knowing },
    { type: 'preVote', from: 3, to: 1, isForced: false, ...candidate, ...knowing },
    { type: 'voteReply', from: 3, to: 1, term: 1, isGranted: false, ...knowing },
    { type: 'preVoteReply', from: 3, to: 1, term: 1, isGranted: false, ...knowing },
  ]
  for (const request of requests) {
    const raft = memberOf(undefined, { log: [1, 1, 1] })
    step(raft, request)
    expect(raft.commit, request.type).toBe(2)
  }
})

test('a refused vote request of a later term does not delay the own campaign, a granted one does', () => {
  const raft = memberOf(undefined, { log: [1, 1] })
  ticks(raft, 6)
  ask(raft, 3, 'vote', { term: 5, lastIndex: 1, lastTerm: 1 })
  expect([raft.term, raft.vote, raft.electionElapsed]).toEqual([5, 0, 6])
  ask(raft, 2, 'vote', { term: 5, lastIndex: 2, lastTerm: 1 })
  expect([raft.vote, raft.electionElapsed]).toEqual([2, 0])
  const running = memberOf(undefined, { log: [1, 1] })
  campaign(running)
  ticks(running, 6)
  ask(running, 3, 'vote', { term: 5, lastIndex: 1, lastTerm: 1 })
  expect([running.role, running.electionElapsed]).toEqual(['follower', 0])
})

test('a refused pre-vote brings the later term, a granted one does not', () => {
  const reply = { type: 'preVoteReply', from: 2, to: 1, commit: 0, commitTerm: 0 } as const
  const raft = memberOf(undefined, { log: [1] })
  campaign(raft)
  step(raft, { ...reply, term: 9, isGranted: true })
  expect([raft.term, raft.role]).toEqual([1, 'preCandidate'])
  step(raft, { ...reply, term: 9, isGranted: false })
  expect([raft.term, raft.role, raft.leader]).toEqual([9, 'follower', 0])
})

test.each<[string, object, boolean, object | undefined]>([
  ['an append', { type: 'append', prevIndex: 0, prevTerm: 0, entries: [], commit: 0 }, true, undefined],
  ['a heartbeat', { type: 'heartbeat', commit: 0, readRound: 0 }, true, undefined],
  ['an append of a node without checks', { type: 'append', prevIndex: 0, prevTerm: 0, entries: [] }, false, undefined],
  ['a vote', { type: 'vote', lastIndex: 9, lastTerm: 9, isForced: false }, true, {}],
  ['a reply', { type: 'appendReply', index: 1, isRejected: false }, true, {}],
  ['a snapshot', offerAt(9), true, {}],
])('%s of an earlier term', (_name, message, isChecked, reply) => {
  const checks = isChecked ? {} : { checkQuorum: false, preVote: false }
  const raft = memberOf(undefined, { log: [1, 3], ...checks })
  step(raft, { commit: 0, commitTerm: 0, ...message, from: 3, to: 1, term: 2 } as unknown as Message)
  const none = { index: 0, isRejected: false, hintIndex: 0, hintTerm: 0 }
  const report = { type: 'appendReply', from: 1, to: 3, term: 3, ...none }
  expect([drain(raft), raft.leader, raft.term, raft.snapshot]).toEqual([
    reply || !isChecked ? [] : [report],
    ...[0, 3, undefined],
  ])
})

test('one check is enough to tell the sender of an earlier term', () => {
  for (const checks of [{ preVote: false }, { checkQuorum: false }]) {
    const raft = memberOf(undefined, { log: [3], ...checks })
    heartbeatTo(raft, 2)
    expect(sent(raft)).toEqual([['appendReply', 2]])
  }
})

test('a pre-vote of an earlier term is refused with the present one', () => {
  const raft = memberOf(undefined, { log: [1, 3] })
  heartbeatTo(raft, 3, 1)
  drain(raft)
  ask(raft, 3, 'preVote', { term: 2, lastIndex: 9, lastTerm: 2 })
  expect(drain(raft)).toEqual([
    { type: 'preVoteReply', from: 1, to: 3, term: 3, isGranted: false, commit: 1, commitTerm: 1 },
  ])
})

test.each<[string, (raft: Raft) => void]>([
  ['an append', (raft) => appendTo(raft, { prevIndex: 0, prevTerm: 0 })],
  ['a heartbeat', (raft) => heartbeatTo(raft)],
  ['a snapshot', (raft) => step(raft, offerAt(9))],
])('%s of the own term ends a candidacy and starts the time-out again', (_name, receive) => {
  const raft = memberOf(undefined, { log: [1] })
  campaign(raft)
  ticks(raft, 4)
  receive(raft)
  expect([raft.role, raft.leader, raft.electionElapsed]).toEqual(['follower', 2, 0])
  ticks(raft, 4)
  receive(raft)
  expect(raft.electionElapsed).toBe(0)
})

// Proposals

test('a leader takes entries one after the other and sends them to its peers', () => {
  const raft = leaderOf()
  expect([give(raft, 2), give(raft, 1), raft.lastIndex]).toEqual([2, 4, 4])
  const appends = ofType(drain(raft), 'append', 2)
  expect(appends.map(({ prevIndex }) => prevIndex)).toEqual([1])
})

test('a leader that was removed takes nothing new, one of the outgoing half does', () => {
  const removed = leaderOf(undefined, { stepDownOnRemoval: false })
  proposeChange(removed, { steps: [{ type: 'remove', id: 1 }] })
  drain(removed)
  acknowledge(removed, 2)
  drain(removed)
  acknowledge(removed, 2)
  acknowledge(removed, 3)
  drain(removed)
  if (removed.role === 'leader') expect(give(removed)).toBe('not-leader')
  const outgoing = leaderOf()
  Object.assign(outgoing, { isOwnVoter: false, isOwnOutgoing: true })
  expect(give(outgoing)).toBe(2)
  Object.assign(outgoing, { isOwnOutgoing: false })
  expect(give(outgoing)).toBe('not-leader')
})

test('entries under way are bounded by their number and by their bytes, both inclusive', () => {
  const bounded = (limits: object) => {
    const raft = leaderOf(undefined, { limits })
    return [give(raft, 1), give(raft, 2), give(raft, 1)]
  }
  expect(bounded({ uncommittedEntries: 3 })).toEqual([2, 3, 'overloaded'])
  expect(bounded({ uncommittedEntries: 2 })).toEqual([2, 'overloaded', 3])
  expect(bounded({ uncommittedBytes: 3 * ENTRY_BYTES })).toEqual([2, 3, 'overloaded'])
  expect(bounded({ uncommittedBytes: 3 * ENTRY_BYTES - 1 })).toEqual([2, 'overloaded', 3])
  const large = leaderOf(undefined, { limits: { uncommittedEntries: 2, uncommittedBytes: 1 } })
  expect(give(large, 9)).toBe(2)
})

// Hand-overs

test('each kind of work makes a hand-over, once', () => {
  const cases: [string, (raft: Raft) => void][] = [
    ['readStates', (raft) => step(raft, { type: 'readIndexReply', from: 2, to: 1, term: 0, context: 8, index: 5 })],
    ['droppedReads', (raft) => raft.droppedReads.push({ context: 1, reason: 'not-leader' })],
    ['logReads', (raft) => raft.logReads.push({ peer: 2, firstIndex: 1, lastIndex: 1, bytesMax: 1 })],
    ['offers', (raft) => raft.offers.push({ peer: 2 })],
    ['sendNow', (raft) => answerableHeartbeat(raft)],
    ['sendAfterPersist', (raft) => appendTo(raft)],
  ]
  for (const [name, prepare] of cases) {
    const raft = memberOf()
    heartbeatTo(raft)
    drain(raft)
    prepare(raft)
    const ready = takeReady(raft)
    const counts = Object.fromEntries(
      cases.map(([each]) => [each, (ready[each as 'offers'] as readonly unknown[]).length]),
    )
    expect(counts).toEqual({ ...Object.fromEntries(cases.map(([each]) => [each, 0])), [name]: 1 })
    expect([ready.mustStore, ready.mustSync, ready.entries.length, ready.overwritten]).toEqual([
      ...[false, false, 0],
      undefined,
    ])
    expect(hasReady(raft), name).toBe(false)
  }
})

function answerableHeartbeat(raft: Raft): void {
  step(raft, { type: 'heartbeat', from: 2, to: 1, term: raft.term, commit: 0, readRound: 1 })
}

test('hand-overs are numbered from 1, one by one', () => {
  const raft = memberOf()
  const tokens = [1, 2, 3].map(() => {
    heartbeatTo(raft)
    return takeReady(raft).token
  })
  expect(tokens).toEqual([1, 2, 3])
})

test('a hand-over that stores nothing repeats the state before it, also when that is on its way', () => {
  const raft = memberOf(undefined, { log: [1, 1] })
  ask(raft, 3, 'vote', { term: 5, lastIndex: 9, lastTerm: 4 })
  const vote = takeReady(raft)
  expect([vote.mustStore, vote.mustSync, vote.hardState]).toEqual([true, true, { term: 5, vote: 3, commit: 0 }])
  heartbeatTo(raft, 5, 2, 3)
  const beat = takeReady(raft)
  expect([beat.mustStore, beat.mustSync, beat.hardState]).toEqual([false, false, { term: 5, vote: 3, commit: 0 }])
  persisted(raft, vote.token)
  persisted(raft, beat.token)
  expect(raft.stored).toEqual({ term: 5, vote: 3, commit: 0 })
})

test('the commit index is stored only when it advanced past the stored one and nothing is on its way', () => {
  const raft = memberOf(undefined, { log: [1, 1] })
  storeCommit(raft)
  expect(hasReady(raft)).toBe(false)
  heartbeatTo(raft, 1, 1)
  const { token } = takeReady(raft)
  storeCommit(raft)
  expect(hasReady(raft)).toBe(false)
  persisted(raft, token)
  storeCommit(raft)
  expect(takeReady(raft)).toMatchObject({ mustStore: true, hardState: { commit: 1 } })
})

test('entries that replace others report from where, once', () => {
  const raft = memberOf(undefined, { log: [1, 1, 1] })
  appendTo(raft, { term: 2, prevIndex: 1, prevTerm: 1, entries: logOf([2], 2) })
  expect(takeReady(raft).overwritten).toEqual({ from: 2 })
  appendTo(raft, { term: 2, entries: logOf([2], 3) })
  expect(takeReady(raft).overwritten).toBeUndefined()
})

test('a snapshot is handed over alone, behind everything that is to be stored', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1]) })
  step(raft, offerAt(9))
  const before = takeReady(raft)
  expect([before.snapshot, before.entries.length, hasReady(raft)]).toEqual([undefined, 1, false])
  persisted(raft, before.token)
  expect(nextCommitted(raft)).toBeUndefined()
  const due = takeReady(raft)
  expect([due.snapshot?.index, due.mustStore, due.entries.length, hasReady(raft)]).toEqual([9, false, 0, false])
})

test('while a snapshot is made current, promises and state wait, and other messages leave', () => {
  const raft = memberOf()
  step(raft, offerAt(9))
  persisted(raft, takeReady(raft).token)
  const handed = takeReady(raft)
  expect(handed.snapshot?.index).toBe(9)
  persisted(raft, handed.token)
  ask(raft, 3, 'vote', { term: 5, lastIndex: 9, lastTerm: 4, isForced: true })
  expect([raft.mustStoreState, hasReady(raft)]).toEqual([true, false])
  heartbeatTo(raft, 5, 0, 3)
  const meanwhile = takeReady(raft)
  expect([meanwhile.mustStore, meanwhile.sendNow.length, meanwhile.sendAfterPersist]).toEqual([false, 1, []])
  persisted(raft, meanwhile.token)
  installed(raft, 9, 1, configurationOf({ voters: [1, 2, 3] }))
  const after = takeReady(raft)
  expect([after.mustStore, after.hardState, after.sendAfterPersist.map(({ type }) => type)]).toEqual([
    true,
    { term: 5, vote: 3, commit: 9 },
    ['voteReply', 'appendReply'],
  ])
})

test('committed entries are not given out while a snapshot waits', () => {
  const raft = memberOf(undefined, { log: [1, 1] })
  heartbeatTo(raft, 1, 1)
  raft.snapshot = offerAt(9) as NonNullable<Raft['snapshot']>
  expect(nextCommitted(raft)).toBeUndefined()
  raft.snapshot = undefined
  expect(nextCommitted(raft)).toMatchObject({ firstIndex: 1, count: 1 })
})

test('the vote for itself counts only in its own term', () => {
  const raft = memberOf({ voters: [1] }, { preVote: false })
  campaign(raft)
  const first = takeReady(raft)
  campaign(raft)
  const second = takeReady(raft)
  persisted(raft, first.token)
  expect([raft.role, raft.term]).toEqual(['candidate', 2])
  persisted(raft, second.token)
  expect([raft.role, raft.leader]).toEqual(['leader', 1])
})

test('entries of a leader count for its commit index once they are durable here', () => {
  const raft = leaderOf({ voters: [1, 2] })
  give(raft)
  const { token } = takeReady(raft)
  acknowledge(raft, 2)
  expect(raft.commit).toBe(1)
  persisted(raft, token)
  expect(raft.commit).toBe(2)
})

// A full disk

test.each<[string, (raft: Raft) => void, string]>([
  ['a candidate that has entries on their way', (raft) => campaign(raft), 'follower'],
  ['a follower', () => undefined, 'follower'],
])('%s is a follower after a refusal', (_name, prepare, role) => {
  const raft = memberOf(undefined, { preVote: false })
  appendTo(raft, { entries: logOf([1]) })
  prepare(raft)
  const { token } = takeReady(raft)
  expect(refused(raft, token)).toBe(1)
  expect([raft.role, raft.lastIndex, raft.persisted]).toEqual([role, 0, 0])
})

test('a candidate whose log is durable continues after a refusal, and its state is handed over again', () => {
  const raft = memberOf(undefined, { log: [1], preVote: false })
  campaign(raft)
  expect(refused(raft, takeReady(raft).token)).toBe(2)
  expect(raft.role).toBe('candidate')
  const again = takeReady(raft)
  expect([again.mustStore, again.mustSync, again.hardState]).toEqual([true, true, { term: 2, vote: 1, commit: 0 }])
})

test('promises of a refused hand-over are forgotten, and messages after it continue', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1]) })
  const { token } = takeReady(raft)
  appendTo(raft, { entries: logOf([1], 2) })
  expect(raft.sendAfter).toHaveLength(1)
  expect(refused(raft, token)).toBe(1)
  expect([raft.sendAfter, raft.handed]).toEqual([[], []])
})

test('what was stored of a refused hand-over keeps its term and vote, and the commit index as far as it goes', () => {
  const raft = memberOf()
  appendTo(raft, { term: 3, prevIndex: 0, prevTerm: 0, entries: logOf([1, 1, 1]), commit: 3 })
  const { token } = takeReady(raft)
  expect(refused(raft, token, 2)).toBe(3)
  expect(raft.stored).toEqual({ term: 3, vote: 0, commit: 2 })
  expect([raft.handedState, raft.commit, raft.mustStoreState]).toEqual([raft.stored, 2, false])
  const none = memberOf()
  appendTo(none, { term: 3, prevIndex: 0, prevTerm: 0, entries: logOf([1, 1, 1]), commit: 3 })
  const { token: first } = takeReady(none)
  expect(refused(none, first)).toBe(1)
  expect([none.stored, none.handedState, none.mustStoreState]).toEqual([
    ...[{ term: 0, vote: 0, commit: 0 }, none.stored],
    true,
  ])
})

test('no more counts as stored than the refused hand-over had', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1]) })
  const { token } = takeReady(raft)
  appendTo(raft, { entries: logOf([1, 1], 2) })
  takeReady(raft)
  expect(refused(raft, token, 3)).toBe(2)
  expect([raft.persisted, raft.lastIndex]).toEqual([1, 1])
})

test('a leader alone keeps leading on a full disk, one with a peer does not', () => {
  for (const [places, role] of [
    [{ voters: [1] }, 'leader'],
    [{ voters: [1], learners: [2] }, 'follower'],
  ] as const) {
    const raft = leaderOf(places)
    give(raft)
    expect(refused(raft, takeReady(raft).token)).toBe(2)
    expect([raft.role, raft.leader, raft.lastIndex]).toEqual([role, role === 'leader' ? 1 : 0, 1])
  }
})

// Members

test('a leader that becomes mute follows no other, one that can be heard leads on', () => {
  const raft = leaderOf()
  setMute(raft, false)
  expect(raft.role).toBe('leader')
  setMute(raft, true)
  expect([raft.role, raft.leader, raft.term, raft.isMute]).toEqual(['follower', 0, 1, true])
  const follower = memberOf()
  heartbeatTo(follower)
  setMute(follower, true)
  expect(follower.leader).toBe(2)
})

test('a member that counts from now on commits with what it acknowledges then', () => {
  const raft = elect(memberOf({ voters: [1, 2, 3] }))
  setCounts(raft, 2, false)
  setCounts(raft, 3, false)
  drain(raft)
  acknowledge(raft, 2)
  expect(raft.commit).toBe(0)
  setCounts(raft, 2, true)
  expect(raft.commit).toBe(0)
  acknowledge(raft, 2)
  expect(raft.commit).toBe(1)
})

test('a voter without an identity that is counted off commits with the rest at once', () => {
  const raft = elect(memberOf({ voters: [1, 2], unbound: [2] }))
  drain(raft)
  setCounts(raft, 2, true)
  acknowledge(raft, 2)
  expect(raft.commit).toBe(1)
})

test('the status of a leader names its peers and whether it takes changes', () => {
  const raft = leaderOf({ voters: [1, 2], learners: [3] })
  give(raft, 2)
  drain(raft)
  const { configuration, peers, ...rest } = status(raft)
  expect(rest).toEqual({
    ...{ role: 'leader', term: 1, leader: 1, commit: 1, applied: 1, lastIndex: 3, transferTarget: 0 },
    ...{ isJoint: false, isVoter: true, takesChanges: true },
  })
  expect(configuration.learners).toEqual([3])
  const replicating = { match: 1, next: 4, state: 'replicate', isActive: true, inflight: 1 }
  expect(peers).toEqual([2, 3].map((id) => ({ id, ...replicating })))
  transferLeader(raft, 2)
  expect([status(raft).takesChanges, status(raft).transferTarget]).toEqual([false, 2])
  abortTransfer(raft)
  proposeChange(raft, { steps: [{ type: 'remove', id: 3 }] })
  expect(status(raft).takesChanges).toBe(false)
})

test('the status of a follower has no peers and takes no changes', () => {
  const raft = memberOf({ voters: [2, 3], learners: [1] })
  expect(status(raft)).toMatchObject({ role: 'follower', leader: 0, peers: [], isVoter: false, takesChanges: false })
})

test('a peer that was silent for two checks is not active', () => {
  const raft = leaderOf({ voters: [1], learners: [2] })
  const active = () => status(raft).peers.map(({ isActive }) => isActive)
  ticks(raft, E)
  expect(active()).toEqual([true])
  ticks(raft, E)
  expect(active()).toEqual([false])
})

test('reads of this node are dropped with the leadership, those of others are not reported', () => {
  const raft = leaderOf()
  readIndex(raft, 4)
  step(raft, { type: 'readIndex', from: 2, to: 1, term: 0, context: 5 })
  heartbeatTo(raft, 2)
  expect(raft.droppedReads).toEqual([{ context: 4, reason: 'not-leader' }])
  expect(raft.reads).toEqual([])
})

test('an election is lost with the refusals of a majority, in the same term', () => {
  const raft = memberOf(undefined, { preVote: false })
  campaign(raft)
  drain(raft)
  refuse(raft, 2)
  expect(raft.role).toBe('candidate')
  refuse(raft, 3)
  expect([raft.role, raft.term, raft.vote]).toEqual(['follower', 1, 1])
  const winner = memberOf(undefined, { preVote: false })
  campaign(winner)
  drain(winner)
  grant(winner, 3)
  expect(winner.role).toBe('leader')
})

test('proposals before an election are refused and change nothing', () => {
  const raft = memberOf(undefined, { log: [1] })
  applyAll(raft)
  expect([propose(raft, 1, batchOf(1, 1, 1).bytes), raft.lastIndex]).toEqual(['no-leader', 1])
})

test.each([
  [{ voters: [1] }, false],
  [{ voters: [1], learners: [2] }, true],
  [{ voters: [1, 2, 3] }, true],
])('applied entries stay in memory for other members only: %j, %s', (places, isKept) => {
  const raft = leaderOf(places)
  give(raft, 2)
  drain(raft)
  for (const { id } of raft.configuration.members) if (id !== 1) acknowledge(raft, id)
  drain(raft)
  expect([raft.applied, raft.tailBytes > 0]).toEqual([3, isKept])
})

import { expect, test } from 'vitest'
import {
  acknowledge,
  answerHeartbeat,
  appendTo,
  ask,
  configurationOf,
  drain,
  drainReadies,
  E,
  elect,
  give,
  grant,
  heartbeatTo,
  leaderOf,
  memberOf,
  ofType,
  rangeOf,
  refuse,
} from '../testing/raft-fixture.ts'
import { ENTRY_KIND, encodeEntry } from './entry.ts'
import { campaign, forgetLeader, persisted, type Raft, refused, status, step, takeReady, tick } from './raft.ts'

const ticks = (raft: Raft, count: number) => {
  for (let n = 0; n < count; n++) tick(raft)
}

/** The reply of member 1; undefined when it sends none. */
function answerTo(raft: Raft, type: 'vote' | 'preVote', request: Parameters<typeof ask>[3]) {
  ask(raft, 2, type, request)
  const [reply] = ofType(drain(raft), type === 'vote' ? 'voteReply' : 'preVoteReply')
  return reply && { term: reply.term, isGranted: reply.isGranted }
}

test('a follower waits E to 2E − 1 ticks for its leader, randomized each time', () => {
  const draws = [0, 0, 9, 0, 4]
  const raft = memberOf(undefined, { random: (below) => Math.min(below - 1, draws.shift() ?? 0) })
  const waits = [1, 2, 3].map(() => {
    let count = 0
    for (; ofType(drain(raft), 'preVote').length === 0; count++) tick(raft)
    heartbeatTo(raft)
    return count
  })
  expect(waits).toEqual([E, 2 * E - 1, E + 4])
})

test('a member that stands back does not campaign, not even when leadership is handed to it', () => {
  const raft = memberOf()
  raft.standsBack = true
  ticks(raft, 3 * E)
  step(raft, { type: 'timeoutNow', from: 2, to: 1, term: raft.term })
  expect([raft.role, drain(raft)]).toEqual(['follower', []])

  raft.standsBack = false
  ticks(raft, 2 * E)
  expect(raft.role).toBe('preCandidate')
})

test('an election timeout shorter than two heartbeats is rejected', () => {
  expect(() => memberOf(undefined, { electionTicks: 3, heartbeatTicks: 2 })).toThrow('two heartbeats')
})

test('a candidate first runs a pre-vote, which changes no state on other members', () => {
  const raft = memberOf(undefined, { log: [1, 1, 2] })

  ticks(raft, E)

  const request = ofType(drain(raft), 'preVote')
  expect(
    request.map(({ to, term, lastIndex, lastTerm, isForced }) => [to, term, lastIndex, lastTerm, isForced]),
  ).toEqual([
    [2, 3, 3, 2, false],
    [3, 3, 3, 2, false],
  ])
  expect([raft.role, raft.term, raft.vote]).toEqual(['preCandidate', 2, 0])
  grant(raft, 3, 'preVoteReply')
  expect(ofType(drain(raft), 'vote')).toHaveLength(2)
  expect([raft.role, raft.term, raft.vote]).toEqual(['candidate', 3, 1])
})

test('without pre-votes it campaigns at once', () => {
  const raft = memberOf(undefined, { preVote: false })
  ticks(raft, E)
  expect([raft.role, raft.term]).toEqual(['candidate', 1])
})

test('the vote of a candidate for itself counts once it is durable', () => {
  const raft = memberOf(undefined, { preVote: false })
  campaign(raft)
  const ready = takeReady(raft)
  refuse(raft, 2)
  grant(raft, 3)
  expect(raft.role).toBe('candidate')

  persisted(raft, ready.token)

  expect(raft.role).toBe('leader')
})

test('a vote that becomes durable after its term has ended is ignored', () => {
  const raft = memberOf({ voters: [1, 2] }, { preVote: false })
  campaign(raft)
  const ready = takeReady(raft)
  heartbeatTo(raft, 5)
  campaign(raft)
  grant(raft, 2)
  persisted(raft, ready.token)
  expect([raft.role, raft.term]).toEqual(['candidate', 6])
})

test('a candidate wins with the majorities of both halves and loses without one', () => {
  const joint = configurationOf({ voters: [1, 2, 3], outgoing: [1, 4, 5] })
  const cases: [number[], number[], Raft['role']][] = [
    [[2], [], 'candidate'],
    [[2, 3], [], 'candidate'],
    [[4, 5], [], 'candidate'],
    [[2, 4], [], 'leader'],
    [[3, 5], [2, 4], 'leader'],
    [[4, 5], [2, 3], 'follower'],
    [[2, 3], [4, 5], 'follower'],
  ]
  for (const [granted, refused, role] of cases) {
    const raft = memberOf(joint, { preVote: false })
    campaign(raft)
    drain(raft)
    for (const id of refused) refuse(raft, id)
    for (const id of granted) if (raft.role === 'candidate') grant(raft, id)
    expect([raft.role, raft.term], `${granted} against ${refused}`).toEqual([role, 1])
  }
})

test('a vote is granted once per term, and repeated for the same candidate', () => {
  const raft = memberOf()
  const request = { term: 1, lastIndex: 0, lastTerm: 0 }
  expect(answerTo(raft, 'vote', request)).toEqual({ term: 1, isGranted: true })
  ask(raft, 3, 'vote', request)
  expect(ofType(drain(raft), 'voteReply')[0]).toMatchObject({ to: 3, isGranted: false })
  expect(answerTo(raft, 'vote', request)).toEqual({ term: 1, isGranted: true })
})

test('a vote is granted only to a log that is at least as up to date', () => {
  const cases: [number, number, boolean][] = [
    [3, 2, true],
    [4, 2, true],
    [1, 3, true],
    [2, 2, false],
    [9, 1, false],
  ]
  for (const [lastIndex, lastTerm, isGranted] of cases) {
    for (const type of ['vote', 'preVote'] as const) {
      const raft = memberOf(undefined, { log: [1, 2, 2] })
      expect(answerTo(raft, type, { term: 5, lastIndex, lastTerm })?.isGranted).toBe(isGranted)
    }
  }
})

test('a node that knows the leader of a term grants no vote in that term', () => {
  const raft = memberOf(undefined, { checkQuorum: false })
  heartbeatTo(raft, 1, 0, 3)
  expect(answerTo(raft, 'vote', { term: 1, lastIndex: 9, lastTerm: 1 })).toEqual({ term: 1, isGranted: false })
})

test('a pre-vote is granted in the requested term and changes neither term nor vote', () => {
  const raft = memberOf(undefined, { log: [4] })
  expect(answerTo(raft, 'preVote', { term: 9, lastIndex: 1, lastTerm: 4 })).toEqual({ term: 9, isGranted: true })
  expect([raft.term, raft.vote]).toEqual([4, 0])
  expect(answerTo(raft, 'preVote', { term: 9, lastIndex: 0, lastTerm: 0 })).toEqual({ term: 4, isGranted: false })
})

test('a grant from an earlier pre-vote round is ignored', () => {
  const raft = memberOf()
  ticks(raft, E)
  drain(raft)
  step(raft, { type: 'preVoteReply', from: 2, to: 1, term: 9, isGranted: true, commit: 0, commitTerm: 0 })
  expect(raft.role).toBe('preCandidate')
})

test('a node with a live leader ignores votes of a later term, except during a transfer', () => {
  const raft = memberOf()
  heartbeatTo(raft, 1, 0, 3)
  const request = { term: 5, lastIndex: 0, lastTerm: 0 }
  ticks(raft, E - 1)
  drain(raft)
  expect(answerTo(raft, 'vote', request)).toBeUndefined()
  expect(answerTo(raft, 'preVote', request)).toBeUndefined()
  expect(raft.term).toBe(1)

  expect(answerTo(raft, 'vote', { ...request, isForced: true })).toEqual({ term: 5, isGranted: true })
})

test('the lease expires after E ticks without contact, and a leader holds it as well', () => {
  const follower = memberOf(undefined, { random: (below) => below - 1 })
  heartbeatTo(follower, 1, 0, 3)
  ticks(follower, E)
  expect(answerTo(follower, 'vote', { term: 5, lastIndex: 0, lastTerm: 0 })?.isGranted).toBe(true)
  const leader = leaderOf()
  expect(answerTo(leader, 'vote', { term: 5, lastIndex: 9, lastTerm: 4 })).toBeUndefined()
})

test('without check-quorum there is no lease', () => {
  const raft = memberOf(undefined, { checkQuorum: false })
  heartbeatTo(raft, 1, 0, 3)
  expect(answerTo(raft, 'vote', { term: 5, lastIndex: 0, lastTerm: 0 })?.isGranted).toBe(true)
})

test('only a granted real vote resets the election timer', () => {
  const cases: ['vote' | 'preVote', number, number][] = [
    ['vote', 3, 0],
    ['vote', 0, 4],
    ['preVote', 3, 4],
  ]
  for (const [type, lastTerm, elapsed] of cases) {
    const raft = memberOf(undefined, { log: [2] })
    ticks(raft, 4)
    ask(raft, 2, type, { term: 5, lastIndex: 1, lastTerm })
    expect(raft.electionElapsed).toBe(elapsed)
  }
})

test('learners answer vote requests: an entry they have not received may have promoted them', () => {
  const raft = memberOf({ voters: [2, 3], learners: [1] })
  expect(answerTo(raft, 'preVote', { term: 1, lastIndex: 0, lastTerm: 0 })?.isGranted).toBe(true)
  expect(answerTo(raft, 'vote', { term: 1, lastIndex: 0, lastTerm: 0 })?.isGranted).toBe(true)
})

test('a non-voter or a mute member does not campaign', () => {
  const learner = memberOf({ voters: [2, 3], learners: [1] })
  const stranger = memberOf({ voters: [2, 3] })
  const mute = memberOf(undefined, { restored: { isMute: true } })
  for (const raft of [learner, stranger, mute]) {
    ticks(raft, 3 * E)
    campaign(raft)
    expect([raft.role, drain(raft)]).toEqual(['follower', []])
  }
})

test('a voter of the outgoing half campaigns as well', () => {
  const raft = memberOf({ voters: [2], outgoing: [1, 2] })
  campaign(raft)
  expect(raft.role).toBe('preCandidate')
})

test('a mute member neither votes nor adopts a term until it is bound', () => {
  const raft = memberOf(undefined, { restored: { isMute: true } })
  const request = { term: 3, lastIndex: 0, lastTerm: 0 }
  expect(answerTo(raft, 'vote', request)).toBeUndefined()
  expect(answerTo(raft, 'preVote', request)).toBeUndefined()
  expect(raft.term).toBe(0)
  raft.isMute = false
  expect(answerTo(raft, 'vote', request)?.isGranted).toBe(true)
})

test('lower terms: a leader learns the term, a pre-candidate is refused, the rest is ignored', () => {
  const raft = memberOf(undefined, { log: [1, 4] })
  appendTo(raft, { term: 2, prevIndex: 0, prevTerm: 0 })
  heartbeatTo(raft, 3)
  ask(raft, 3, 'preVote', { term: 3, lastIndex: 9, lastTerm: 3 })
  ask(raft, 3, 'vote', { term: 3, lastIndex: 9, lastTerm: 3 })
  step(raft, { type: 'timeoutNow', from: 2, to: 1, term: 3 })

  const replies = drain(raft)

  expect(replies.map(({ type, to, term }) => [type, to, term])).toEqual([
    ['appendReply', 2, 4],
    ['appendReply', 2, 4],
    ['preVoteReply', 3, 4],
  ])
  expect(raft.term).toBe(4)
})

test('without pre-votes and check-quorum a lower term is ignored', () => {
  const raft = memberOf(undefined, { log: [4], preVote: false, checkQuorum: false })
  heartbeatTo(raft, 3)
  expect(drain(raft)).toEqual([])
})

test('a deposed leader adopts the higher term of a reply', () => {
  const raft = leaderOf()
  const none = { index: 0, isRejected: false, hintIndex: 0, hintTerm: 0 }
  step(raft, { type: 'appendReply', from: 2, to: 1, term: 7, ...none })
  expect([raft.role, raft.term, raft.leader, raft.vote]).toEqual(['follower', 7, 0, 0])
})

test('a leader starts its term with one empty entry and sends it at once', () => {
  const raft = elect(memberOf(undefined, { log: [1] }))
  const appends = ofType(drain(raft), 'append')
  expect(appends.map((append) => [append.to, append.prevIndex, append.prevTerm, rangeOf(append)])).toEqual([
    [2, 1, 1, [2, 2]],
    [3, 1, 1, [2, 2]],
  ])
})

test('an entry of an earlier term is not committed by counting replicas, but together with one of the current term', () => {
  const raft = elect(memberOf(undefined, { log: [1, 2] }))
  drain(raft)
  acknowledge(raft, 2, 2)
  expect(raft.commit).toBe(0)
  acknowledge(raft, 2, 3)
  expect(raft.commit).toBe(3)
})

test('a leader without replies from a quorum for E ticks steps down', () => {
  const silent = leaderOf()
  ticks(silent, E)
  expect(silent.role).toBe('leader')
  ticks(silent, E)
  expect([silent.role, silent.leader, silent.term]).toEqual(['follower', 0, 1])

  const heard = leaderOf()
  for (let n = 0; n < 5 * E; n++) {
    tick(heard)
    answerHeartbeat(heard, 3)
  }
  expect(heard.role).toBe('leader')
})

test('right after a check a replying peer is still active; one without replies for two checks is not', () => {
  const raft = leaderOf()
  const activeOf = () => status(raft).peers.map(({ id, isActive }) => [id, isActive])
  const check = () => {
    for (let n = 0; n < E; n++) {
      answerHeartbeat(raft, 3)
      tick(raft)
    }
  }
  check()
  check()
  expect(activeOf()).toEqual([
    [2, false],
    [3, true],
  ])
})

test('a candidate whose disk refuses the log it campaigned with is not elected', () => {
  const raft = memberOf(undefined, { log: [1, 1], preVote: false })
  const bytes = encodeEntry(1, ENTRY_KIND.command, new Uint8Array(5))
  appendTo(raft, { entries: [{ firstIndex: 3, count: 1, bytes }] })
  const entries = takeReady(raft)
  campaign(raft)
  // The log of its request is not durable yet: its own disk confirms last.
  const vote = takeReady(raft)
  refused(raft, entries.token)

  grant(raft, 2)
  grant(raft, 3)

  expect(vote.hardState.vote).toBe(1)
  expect([raft.role, raft.lastIndex]).toEqual(['follower', 2])
})

test('during a joint phase a leader needs replies from both halves', () => {
  const raft = elect(memberOf(configurationOf({ voters: [1, 2, 3], outgoing: [1, 4, 5] })))
  for (let n = 0; n < 3 * E; n++) {
    tick(raft)
    if (raft.role !== 'leader') break
    answerHeartbeat(raft, 2)
  }
  expect(raft.role).toBe('follower')
})

test('learners and members that do not count do not keep a leader', () => {
  const raft = leaderOf({ voters: [1, 2, 3], learners: [4], unbound: [3] })
  for (let n = 0; n < 3 * E; n++) {
    tick(raft)
    if (raft.role !== 'leader') break
    answerHeartbeat(raft, 3)
    answerHeartbeat(raft, 4)
  }
  expect(raft.role).toBe('follower')
})

test('without check-quorum the leader continues', () => {
  const raft = leaderOf(undefined, { checkQuorum: false })
  ticks(raft, 5 * E)
  expect(raft.role).toBe('leader')
})

test('a leader that is known to have stopped is forgotten, which allows votes for other members', () => {
  const raft = memberOf()
  heartbeatTo(raft, 1, 0, 3)
  ticks(raft, 3)

  forgetLeader(raft)

  expect([raft.leader, raft.term, raft.electionElapsed]).toEqual([0, 1, 3])
  expect(answerTo(raft, 'preVote', { term: 2, lastIndex: 0, lastTerm: 0 })?.isGranted).toBe(true)
  const leader = leaderOf()
  forgetLeader(leader)
  expect(leader.leader).toBe(1)
})

test('a term has one leader: a second one stops the node, even when the first was forgotten', () => {
  const raft = memberOf()
  heartbeatTo(raft, 1, 0, 2)
  forgetLeader(raft)
  expect(() => heartbeatTo(raft, 1, 0, 3)).toThrow('a term has one leader')
  expect(() => heartbeatTo(leaderOf(), 1, 0, 3)).toThrow('a term has one leader')
})

test('a candidate follows the leader of its term', () => {
  const raft = memberOf(undefined, { preVote: false })
  campaign(raft)
  drain(raft)
  heartbeatTo(raft, 1)
  expect([raft.role, raft.leader, raft.vote]).toEqual(['follower', 2, 1])
})

test('vote requests and replies carry the commit index, which members with that entry adopt', () => {
  const raft = memberOf(undefined, { log: [1, 1, 2] })
  const request = { type: 'preVote', from: 2, to: 1, term: 3, lastIndex: 9, lastTerm: 2, isForced: false } as const
  step(raft, { ...request, commit: 2, commitTerm: 2 })
  step(raft, { ...request, commit: 7, commitTerm: 2 })
  expect(raft.commit).toBe(0)

  step(raft, { ...request, commit: 2, commitTerm: 1 })

  expect(raft.commit).toBe(2)
  const replies = ofType(drain(raft), 'preVoteReply')
  expect(replies.map(({ commit, commitTerm }) => [commit, commitTerm])).toEqual([
    [0, 0],
    [0, 0],
    [2, 1],
  ])
  const leader = elect(memberOf(undefined, { log: [1] }))
  drain(leader)
  step(leader, { type: 'voteReply', from: 3, to: 1, term: leader.term, isGranted: false, commit: 1, commitTerm: 1 })
  expect([leader.commit, ofType(drain(leader), 'append').length]).toEqual([1, 0])
})

test('votes and requests for them are sent once they are durable, requests for pre-votes at once', () => {
  const raft = memberOf()
  ask(raft, 2, 'vote', { term: 1, lastIndex: 0, lastTerm: 0 })
  const ready = takeReady(raft)
  expect([ready.sendNow, ready.sendAfterPersist.map(({ type }) => type)]).toEqual([[], ['voteReply']])
  expect([ready.mustSync, ready.hardState]).toEqual([true, { term: 1, vote: 2, commit: 0 }])
  const candidate = memberOf()
  campaign(candidate)
  expect(takeReady(candidate).sendNow.map(({ type }) => type)).toEqual(['preVote', 'preVote'])
  grant(candidate, 2, 'preVoteReply')
  const asking = takeReady(candidate)
  expect([asking.sendNow, asking.sendAfterPersist.map(({ type }) => type)]).toEqual([[], ['vote', 'vote']])
  expect(asking.hardState).toEqual({ term: 1, vote: 1, commit: 0 })
})

test('unsolicited replies are ignored', () => {
  const raft = leaderOf()
  grant(raft, 2)
  grant(raft, 2, 'preVoteReply')
  acknowledge(raft, 9)
  answerHeartbeat(raft, 9)
  step(raft, { type: 'timeoutNow', from: 2, to: 1, term: raft.term })
  expect([raft.role, drainReadies(raft)]).toEqual(['leader', []])
  expect(typeof give(raft)).toBe('number')
})

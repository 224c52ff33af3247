import { expect, test } from 'vitest'
import {
  acknowledge,
  answerHeartbeat,
  appendTo,
  batchOf,
  command,
  configurationOf,
  drain,
  drainReadies,
  elect,
  give,
  heartbeatTo,
  leaderOf,
  logOf,
  memberOf,
  ofType,
  rangeOf,
  reject,
} from '../testing/raft-fixture.ts'
import { termAt } from './log.ts'
import type { AppendMessage } from './messages.ts'
import {
  compactedTo,
  hasReady,
  installed,
  nextCommitted,
  offerSnapshot,
  owesCommit,
  persisted,
  provideEntries,
  type Raft,
  reportSnapshot,
  reportUnreachable,
  sendCommit,
  setCounts,
  status,
  step,
  takeReady,
  tick,
} from './raft.ts'
import { peerOf } from './state.ts'

const termsOf = (raft: Raft) => Array.from({ length: raft.lastIndex }, (_, at) => termAt(raft, at + 1))
const progressOf = (raft: Raft, id: number) => peerOf(raft, id) as NonNullable<ReturnType<typeof peerOf>>
const sentTo = (raft: Raft, id: number) => ofType(drain(raft), 'append', id)
const ranges = (appends: readonly AppendMessage[]) => appends.map(rangeOf)
const replyOf = (raft: Raft) => ofType(drain(raft), 'appendReply')[0]
const CONFIGURATION = configurationOf({ voters: [1, 2, 3] })

// What a follower takes

test('entries are taken where they fit, whatever is there already (R3, log matching)', () => {
  // Terms of the log, of it committed; previous index and term, terms of the entries; the log afterwards, or a refusal.
  const cases: [number[], number, [number, number], number[], number[] | 'refused'][] = [
    [[], 0, [0, 0], [1, 1], [1, 1]],
    [[1], 0, [1, 1], [1, 2], [1, 1, 2]],
    [[1, 1], 0, [0, 0], [1, 1, 1], [1, 1, 1]],
    [[1, 1, 1], 0, [0, 0], [1], [1, 1, 1]],
    [[1, 1, 1], 0, [1, 1], [], [1, 1, 1]],
    [[1, 1, 1], 0, [1, 1], [2, 2], [1, 2, 2]],
    [[1, 1, 1, 1], 0, [0, 0], [1, 2], [1, 2]],
    [[1, 1, 2, 2], 0, [1, 1], [1, 3], [1, 1, 3]],
    [[1, 1, 1], 2, [2, 1], [2], [1, 1, 2]],
    [[1], 0, [2, 1], [2], 'refused'],
    [[1, 1], 0, [2, 2], [2], 'refused'],
    [[], 0, [1, 1], [], 'refused'],
  ]
  for (const [log, commit, [prevIndex, prevTerm], terms, after] of cases) {
    const raft = memberOf(undefined, { log, restored: { commit } })
    appendTo(raft, { term: 5, prevIndex, prevTerm, entries: logOf(terms, prevIndex + 1) })
    const reply = replyOf(raft)
    const label = `${log} + ${terms} behind ${prevIndex}`
    expect(reply?.isRejected, label).toBe(after === 'refused')
    expect(termsOf(raft), label).toEqual(after === 'refused' ? log : after)
    expect(reply?.index, label).toBe(after === 'refused' ? prevIndex : prevIndex + terms.length)
  }
})

test('a late, shorter append does not cut what follows it', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1, 1, 1, 1]) })
  drain(raft)
  appendTo(raft, { prevIndex: 0, prevTerm: 0, entries: logOf([1, 1]) })
  expect([raft.lastIndex, replyOf(raft)?.index]).toEqual([4, 2])
})

test('nothing at or below the commit index is cut; what is committed is not compared again', () => {
  const raft = memberOf(undefined, { log: [1, 1, 1], restored: { commit: 2 } })
  appendTo(raft, { term: 5, prevIndex: 0, prevTerm: 0, entries: logOf([4, 4, 4]) })
  expect([termsOf(raft), replyOf(raft)?.index]).toEqual([[1, 1, 1], 2])
})

test('a follower commits what this message has proven to match, not more', () => {
  const cases: [number, number, number][] = [
    [2, 1, 1],
    [2, 9, 3],
    [0, 9, 1],
  ]
  for (const [prevIndex, commit, committed] of cases) {
    const raft = memberOf(undefined, { log: [1, 1, 1, 1, 1] })
    appendTo(raft, { prevIndex, prevTerm: prevIndex && 1, entries: logOf([1], prevIndex + 1), commit })
    expect(raft.commit).toBe(committed)
  }
})

test('the commit index never goes back', () => {
  const raft = memberOf(undefined, { log: [1, 1, 1], restored: { commit: 3 } })
  appendTo(raft, { prevIndex: 3, prevTerm: 1, commit: 1 })
  heartbeatTo(raft, 1, 2)
  expect(raft.commit).toBe(3)
})

test('a heartbeat commits what was acknowledged; more than there is is a broken promise', () => {
  const raft = memberOf(undefined, { log: [1, 1] })
  heartbeatTo(raft, 1, 2)
  expect(raft.commit).toBe(2)
  expect(() => heartbeatTo(raft, 1, 3)).toThrow('acknowledged entries are in the log')
})

test('a mute member commits only what an append has compared', () => {
  const raft = memberOf(undefined, { log: [1, 1], restored: { isMute: true } })
  heartbeatTo(raft, 1, 2)
  expect(raft.commit).toBe(0)
})

test('a refusal has the newest entry that may agree', () => {
  const cases: [number[], [number, number], [number, number]][] = [
    [
      [1, 1, 2, 2],
      [6, 3],
      [4, 2],
    ],
    [
      [1, 1, 2, 2],
      [4, 1],
      [2, 1],
    ],
    [
      [1, 3, 3, 3],
      [3, 2],
      [1, 1],
    ],
    [
      [2, 2],
      [1, 1],
      [0, 0],
    ],
    [[], [7, 4], [0, 0]],
  ]
  for (const [log, [prevIndex, prevTerm], [hintIndex, hintTerm]] of cases) {
    const raft = memberOf(undefined, { log })
    appendTo(raft, { term: 9, prevIndex, prevTerm })
    expect(replyOf(raft)).toMatchObject({ isRejected: true, index: prevIndex, hintIndex, hintTerm })
  }
})

test('entries that come again are the ones that are here', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1, 1]) })
  const other = [{ firstIndex: 1, count: 1, bytes: command(1, 200) }]
  expect(() => appendTo(raft, { prevIndex: 0, prevTerm: 0, entries: other })).toThrow(
    'an index and a term identify one entry',
  )
  const longer = [{ firstIndex: 1, count: 1, bytes: batchOf(1, 1, 1).bytes.slice() }]
  appendTo(raft, { prevIndex: 0, prevTerm: 0, entries: longer })
  expect(raft.lastIndex).toBe(2)
})

test('batches are what they say, of one term and without a gap', () => {
  const whole = batchOf(1, 3, 1)
  const cases = [
    [{ ...whole, count: 2 }],
    [{ ...whole, count: 4 }],
    [{ ...whole, bytes: Uint8Array.of(...command(1), ...command(2), ...command(2)) }],
    [{ ...whole, firstIndex: 2 }],
  ]
  for (const entries of cases) expect(() => appendTo(memberOf(), { entries })).toThrow()
})

test('acknowledgements of one turn are one message, and leave when the entries are durable', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1]) })
  appendTo(raft, { entries: logOf([1, 1], 2) })
  appendTo(raft, { prevIndex: 0, prevTerm: 0, entries: logOf([1]) })
  const ready = takeReady(raft)
  expect(ready.sendNow).toEqual([])
  expect(ofType(ready.sendAfterPersist, 'appendReply').map(({ index }) => index)).toEqual([3])
})

test('entries replaced by another leader are reported from their first index', () => {
  const raft = memberOf(undefined, { log: [1, 1, 1, 1] })
  appendTo(raft, { term: 2, prevIndex: 2, prevTerm: 1, entries: logOf([2], 3) })
  appendTo(raft, { term: 3, prevIndex: 1, prevTerm: 1, entries: logOf([3], 2) })
  const ready = takeReady(raft)
  expect([ready.overwritten, ready.entries.map(({ firstIndex }) => firstIndex)]).toEqual([{ from: 2 }, [2]])
  expect(termsOf(raft)).toEqual([1, 3])
})

// What a leader sends

test('a new leader probes; the first acknowledgement opens the pipeline', () => {
  const raft = elect(memberOf(undefined, { log: [1] }))
  expect(ranges(sentTo(raft, 2))).toEqual([[2, 2]])
  give(raft)
  expect(sentTo(raft, 2)).toEqual([])
  expect(progressOf(raft, 2).state).toBe('probe')

  acknowledge(raft, 2, 2)

  expect(ranges(sentTo(raft, 2))).toEqual([[3, 3]])
  give(raft)
  give(raft)
  expect(ranges(sentTo(raft, 2))).toEqual([[4, 5]])
  expect(status(raft).peers[0]).toEqual({ id: 2, match: 2, next: 6, state: 'replicate', isActive: true, inflight: 2 })
})

test('new proposals go to everybody who keeps up, in one message a turn', () => {
  const raft = leaderOf()
  give(raft, 3)
  give(raft, 2)
  const appends = ofType(drain(raft), 'append')
  expect(appends.map((append) => [append.to, rangeOf(append)])).toEqual([
    [2, [2, 6]],
    [3, [2, 6]],
  ])
})

test('a leader sends before its own disk has the entries', () => {
  const raft = leaderOf()
  give(raft)
  expect(ofType(takeReady(raft).sendNow, 'append')).toHaveLength(2)
})

test('messages hold so many bytes, and one entry of any size', () => {
  const size = command(1).length
  const raft = leaderOf(undefined, { limits: { messageBytes: 2 * size + 1 } })
  give(raft, 5)
  expect(ranges(sentTo(raft, 2))).toEqual([
    [2, 3],
    [4, 5],
    [6, 6],
  ])
  const small = leaderOf(undefined, { limits: { messageBytes: 1 } })
  give(small, 2)
  expect(ranges(sentTo(small, 2))).toEqual([
    [2, 2],
    [3, 3],
  ])
})

test('a full window pauses entries until something of it arrives', () => {
  const byMessages = { inflightMessages: 2, messageBytes: 1 }
  const byBytes = { inflightBytes: 2 * command(1).length, messageBytes: 1 }
  for (const limits of [byMessages, byBytes]) {
    const raft = leaderOf(undefined, { limits })
    give(raft, 6)
    expect(ranges(sentTo(raft, 2))).toEqual([
      [2, 2],
      [3, 3],
    ])
    acknowledge(raft, 2, 2)
    expect(ranges(sentTo(raft, 2))).toEqual([[4, 4]])
    acknowledge(raft, 2, 4)
    expect(ranges(sentTo(raft, 2))).toEqual([
      [5, 5],
      [6, 6],
    ])
  }
})

test('a rejection halves the window, and each acknowledged message widens it again', () => {
  const raft = leaderOf(undefined, { limits: { inflightMessages: 8, messageBytes: 1 } })
  const window = () => progressOf(raft, 2).window.messages
  give(raft, 20)
  const sent: number[] = [sentTo(raft, 2).length]
  // Messages arrive out of order: every one behind the gap is rejected. Only one is answered with more messages.
  for (const refused of [3, 4, 5, 6, 7]) {
    reject(raft, 2, refused, 1, 1)
    sent.push(sentTo(raft, 2).length)
  }
  expect([sent, window()]).toEqual([[8, 1, 0, 0, 0, 0], 4])
  acknowledge(raft, 2, 2)
  expect(ranges(sentTo(raft, 2))).toHaveLength(4)
  reject(raft, 2, 5, 1, 2)
  drain(raft)
  acknowledge(raft, 2, 3)
  expect([window(), ranges(sentTo(raft, 2)).length]).toEqual([2, 2])
  for (let index = 4; index <= 9; index++) acknowledge(raft, 2, index)
  expect(window()).toBe(8)
})

test('the ring of the window goes round', () => {
  const raft = leaderOf(undefined, { limits: { inflightMessages: 3, messageBytes: 1 } })
  for (let n = 0; n < 20; n++) {
    give(raft, 2)
    drain(raft)
    acknowledge(raft, 2)
    acknowledge(raft, 3)
    expect(progressOf(raft, 2).window).toMatchObject({ count: 0, bytes: 0 })
  }
})

test('after a heartbeat one empty append finds out whether a full window was lost', () => {
  const raft = leaderOf(undefined, { limits: { inflightMessages: 1, messageBytes: 1 } })
  give(raft, 2)
  expect(ranges(sentTo(raft, 2))).toEqual([[2, 2]])
  answerHeartbeat(raft, 2)
  answerHeartbeat(raft, 2)
  const [empty, ...more] = sentTo(raft, 2)
  expect([empty?.prevIndex, empty && rangeOf(empty), more.length]).toEqual([2, undefined, 1])

  reject(raft, 2, 2, 1, 1)

  expect([progressOf(raft, 2).state, ranges(sentTo(raft, 2))]).toEqual(['probe', [[2, 2]]])
})

test('a refusal takes the leader back whole terms to where the logs may agree', () => {
  // The leader's log; the follower's; the first entry that is sent after its refusal.
  const cases: [number[], number[], number][] = [
    [[1, 1, 1, 1], [1, 1], 3],
    [[1, 1, 4, 4, 4], [1, 1, 2, 2, 2], 3],
    [[1, 1, 1, 5, 5], [1, 1, 1, 1, 1], 4],
    [[2, 2, 2], [1, 1, 1], 1],
    [[1, 3, 3, 3], [1, 2, 2, 2], 2],
  ]
  for (const [log, other, first] of cases) {
    const leader = elect(memberOf(undefined, { log }))
    const follower = memberOf(configurationOf({ voters: [1, 2, 3] }), { id: 2, log: other })
    let [append] = sentTo(leader, 2)
    for (let n = 0; append && n < 5; n++) {
      step(follower, append)
      const reply = replyOf(follower)
      if (!reply?.isRejected) break
      step(leader, reply)
      ;[append] = sentTo(leader, 2)
    }
    expect(append?.prevIndex, `${log} over ${other}`).toBe(first - 1)
    expect(termsOf(follower)).toEqual([...log, leader.term])
  }
})

test('stale rejections are ignored', () => {
  const replicating = leaderOf()
  give(replicating)
  drain(replicating)
  reject(replicating, 2, 1, 0, 0)
  expect([progressOf(replicating, 2).state, sentTo(replicating, 2)]).toEqual(['replicate', []])
  const probing = elect(memberOf(undefined, { log: [1, 1, 1] }))
  drain(probing)
  reject(probing, 2, 1, 0, 0)
  expect([progressOf(probing, 2).next, sentTo(probing, 2)]).toEqual([4, []])
})

test('a member that takes back what it acknowledged is not argued with for ever', () => {
  const raft = leaderOf()
  reportUnreachable(raft, 2)
  give(raft)
  expect(sentTo(raft, 2)).toHaveLength(1)
  reject(raft, 2, 1, 0, 0)
  expect(sentTo(raft, 2)).toEqual([])
})

test('the answer to a heartbeat wakes a probe and a peer that is behind', () => {
  const probing = elect(memberOf())
  drain(probing)
  answerHeartbeat(probing, 2)
  expect(ranges(sentTo(probing, 2))).toEqual([[1, 1]])
  const behind = leaderOf()
  give(behind)
  drain(behind)
  answerHeartbeat(behind, 2)
  expect(sentTo(behind, 2).map(({ prevIndex, entries }) => [prevIndex, entries.length])).toEqual([[2, 0]])
})

test('a peer that has everything does not remain in probe', () => {
  const raft = leaderOf()
  reportUnreachable(raft, 2)
  answerHeartbeat(raft, 2)
  expect(sentTo(raft, 2)).toHaveLength(1)
  acknowledge(raft, 2)
  expect(progressOf(raft, 2).state).toBe('replicate')
})

test('a peer out of reach is probed from what it has acknowledged', () => {
  const raft = leaderOf()
  give(raft, 4)
  drain(raft)
  reportUnreachable(raft, 2)
  reportUnreachable(raft, 9)
  expect(progressOf(raft, 2)).toMatchObject({ state: 'probe', next: 2, window: { count: 0, bytes: 0 } })
  answerHeartbeat(raft, 2)
  expect(ranges(sentTo(raft, 2))).toEqual([[2, 5]])
})

test('a commit is sent once: with the next entries, or by itself when it is asked for', () => {
  const raft = leaderOf()
  const sent = () => ofType(drain(raft), 'append').map(({ to, commit, entries }) => [to, commit, entries.length])
  give(raft)
  drain(raft)
  acknowledge(raft, 2)
  expect([sent(), owesCommit(raft)]).toEqual([[], true])
  sendCommit(raft)
  expect([sent(), owesCommit(raft)]).toEqual([
    [
      [2, 2, 0],
      [3, 2, 0],
    ],
    false,
  ])
  acknowledge(raft, 3)
  give(raft)
  drain(raft)
  acknowledge(raft, 2)
  drain(raft)
  give(raft)
  expect([sent(), owesCommit(raft)]).toEqual([
    [
      [2, 3, 1],
      [3, 3, 1],
    ],
    false,
  ])
  sendCommit(raft)
  expect(sent()).toEqual([])
})

test('a peer that may be sent nothing now is not owed a commit', () => {
  const raft = leaderOf({ voters: [1, 2, 3, 4, 5] })
  reportUnreachable(raft, 5)
  give(raft)
  drain(raft)
  acknowledge(raft, 2)
  acknowledge(raft, 3)
  sendCommit(raft)
  expect(ofType(drain(raft), 'append').map(({ to }) => to)).toEqual([2, 3, 4])
  expect([raft.commit, owesCommit(raft)]).toEqual([2, false])
})

test('a heartbeat carries no commit that the peer has not acknowledged', () => {
  const raft = leaderOf({ voters: [1, 2, 3, 4, 5] })
  give(raft)
  drain(raft)
  acknowledge(raft, 2)
  acknowledge(raft, 3)
  drain(raft)
  tick(raft)
  const commits = ofType(drain(raft), 'heartbeat').map(({ to, commit }) => [to, commit])
  expect(commits).toEqual([
    [2, 2],
    [3, 2],
    [4, 1],
    [5, 1],
  ])
})

test('learners, and members that are not bound, do not help to commit', () => {
  const raft = leaderOf({ voters: [1, 2, 3], learners: [4], unbound: [3] })
  give(raft)
  drain(raft)
  acknowledge(raft, 3)
  acknowledge(raft, 4)
  expect(raft.commit).toBe(1)
  acknowledge(raft, 2)
  expect(raft.commit).toBe(2)
})

test('a node that starts to count restarts: acknowledgements carry its new id', () => {
  const raft = leaderOf({ voters: [1, 2, 3], unbound: [3] })
  give(raft)
  drain(raft)
  acknowledge(raft, 3)
  setCounts(raft, 3, true)
  expect([raft.commit, progressOf(raft, 3).match]).toEqual([1, 0])
  acknowledge(raft, 3)
  expect(raft.commit).toBe(2)
  setCounts(raft, 3, false)
  expect(() => setCounts(raft, 9, true)).toThrow('only members are counted')
})

test('a member that does not count and came back empty is found again', () => {
  const raft = leaderOf({ voters: [1, 2, 3], unbound: [3] })
  give(raft)
  drain(raft)
  reject(raft, 3, 2, 0, 0)
  expect(ranges(sentTo(raft, 3))).toEqual([[1, 2]])
})

// What is only on disk, or gone

/** A leader whose entries 1 … 6 are applied, and in memory no longer. */
function longLeader(): Raft {
  const raft = leaderOf(undefined, { keepBytes: 0 })
  give(raft, 5)
  drain(raft)
  acknowledge(raft, 2)
  drain(raft)
  return raft
}

test('what is not in memory any more is read from disk, no further than it may be', () => {
  const raft = longLeader()
  reportUnreachable(raft, 3)
  answerHeartbeat(raft, 3)

  const [ready] = drainReadies(raft)

  expect(ready?.logReads).toEqual([{ peer: 3, firstIndex: 2, lastIndex: 6, bytesMax: raft.limits.messageBytes }])
  answerHeartbeat(raft, 3)
  expect(hasReady(raft)).toBe(false)
  provideEntries(raft, 3, [batchOf(1, 2, 2), batchOf(1, 9, 4)])
  expect(ranges(sentTo(raft, 3))).toEqual([[2, 6]])
})

test('entries that are read back are what was written', () => {
  const cases = [[batchOf(2, 2, 2)], [batchOf(1, 2, 2), batchOf(1, 1, 5)]]
  for (const batches of cases) {
    const raft = longLeader()
    reportUnreachable(raft, 3)
    answerHeartbeat(raft, 3)
    drain(raft)
    expect(() => provideEntries(raft, 3, batches)).toThrow('entries')
  }
})

test('entries without a waiter are left alone', () => {
  const raft = longLeader()
  provideEntries(raft, 3, [batchOf(1, 2, 2)])
  provideEntries(raft, 9, [batchOf(1, 2, 2)])
  reportUnreachable(raft, 3)
  answerHeartbeat(raft, 3)
  drain(raft)
  acknowledge(raft, 3, 4)
  provideEntries(raft, 3, [batchOf(1, 2, 2)])
  const requested = drainReadies(raft).flatMap(({ logReads }) => logReads.map(({ firstIndex }) => firstIndex))
  expect(requested).toEqual([5])
})

test('a peer that needs what is compacted is offered a snapshot, if it answers', () => {
  const raft = longLeader()
  compactedTo(raft, 5)
  reportUnreachable(raft, 3)
  progressOf(raft, 3).isActive = false
  raft.mustBroadcast = true
  expect(drainReadies(raft)).toEqual([])

  answerHeartbeat(raft, 3)

  expect(drainReadies(raft).flatMap(({ offers }) => offers)).toEqual([{ peer: 3 }])
  const snapshot = { index: 6, snapshotTerm: 1, configuration: CONFIGURATION, manifest: Uint8Array.of(7) }
  expect(offerSnapshot(raft, 2, snapshot)).toBe(false)
  expect(offerSnapshot(raft, 3, snapshot)).toBe(true)
  expect(ofType(drain(raft), 'snapshot')).toEqual([{ type: 'snapshot', from: 1, to: 3, term: 1, ...snapshot }])
  give(raft)
  answerHeartbeat(raft, 3)
  expect(sentTo(raft, 3)).toEqual([])
})

test('entries that are gone when they are read lead to a snapshot as well', () => {
  const raft = longLeader()
  reportUnreachable(raft, 3)
  answerHeartbeat(raft, 3)
  drain(raft)
  provideEntries(raft, 3, 'compacted')
  expect(progressOf(raft, 3).state).toBe('snapshot')
})

/** Peer 3 was offered a snapshot of index 6. */
function offering(): Raft {
  const raft = longLeader()
  compactedTo(raft, 7)
  reportUnreachable(raft, 3)
  answerHeartbeat(raft, 3)
  drain(raft)
  offerSnapshot(raft, 3, { index: 6, snapshotTerm: 1, configuration: CONFIGURATION, manifest: new Uint8Array(0) })
  drain(raft)
  return raft
}

test('the snapshot state ends with an acknowledgement that reaches the log, or a report', () => {
  const acknowledged = offering()
  acknowledge(acknowledged, 3, 4)
  expect(progressOf(acknowledged, 3).state).toBe('snapshot')
  acknowledge(acknowledged, 3, 6)
  expect(progressOf(acknowledged, 3)).toMatchObject({ state: 'replicate', match: 6, next: 7 })

  for (const [isDone, next] of [
    [true, 7],
    [false, 2],
  ] as const) {
    const reported = offering()
    reportSnapshot(reported, 3, isDone)
    expect(progressOf(reported, 3)).toMatchObject({ state: 'probe', next, isPaused: true })
    give(reported)
    expect(sentTo(reported, 3)).toEqual([])
    reportSnapshot(reported, 3, isDone)
    reject(reported, 2, 0, 0, 0)
  }
  const refused = offering()
  reject(refused, 3, 1, 0, 0)
  expect(progressOf(refused, 3).state).toBe('snapshot')
})

// Snapshots at a follower

const offerOf = (index: number, snapshotTerm: number, term = 3) => {
  const snapshot = { index, snapshotTerm, configuration: configurationOf({ voters: [2, 3], learners: [1] }) }
  return { type: 'snapshot', from: 2, to: 1, term, manifest: Uint8Array.of(1), ...snapshot } as const
}

test('a snapshot is handed over alone, behind what was appended before, and nothing happens meanwhile', () => {
  const raft = memberOf(undefined, { log: [1, 1], restored: { commit: 1 } })
  appendTo(raft, { term: 3, prevIndex: 2, prevTerm: 1, entries: logOf([2], 3) })
  step(raft, offerOf(9, 2))
  expect(nextCommitted(raft)).toBeUndefined()

  const readies = drainReadies(raft)

  expect(readies.map(({ entries, snapshot }) => [entries.length, snapshot?.index])).toEqual([
    [1, undefined],
    [0, 9],
  ])
  appendTo(raft, { term: 3, prevIndex: 3, prevTerm: 2, entries: logOf([3], 4), commit: 3 })
  heartbeatTo(raft, 4, 3)
  step(raft, offerOf(20, 2, 4))
  expect([raft.lastIndex, raft.commit, nextCommitted(raft)]).toEqual([3, 1, undefined])
  for (let n = 0; n < 50; n++) tick(raft)
  expect(raft.role).toBe('follower')
  expect(drainReadies(raft).map(({ mustStore, sendNow }) => [mustStore, sendNow.length])).toEqual([[false, 1]])

  installed(raft, 9, 2, offerOf(9, 2).configuration)

  expect([raft.firstIndex, raft.lastIndex, raft.commit, raft.applied, raft.appliedTerm]).toEqual([10, 9, 9, 9, 2])
  expect(raft.configuration.learners).toEqual([1])
  const [ready] = drainReadies(raft)
  expect(ready?.hardState).toEqual({ term: 4, vote: 0, commit: 9 })
  expect(ofType(ready?.sendAfterPersist ?? [], 'appendReply')[0]).toMatchObject({
    index: 9,
    isRejected: false,
    term: 4,
  })
})

test('an offer that is no news is only acknowledged; one that is in the log moves the commit index', () => {
  const raft = memberOf(undefined, { log: [1, 1, 1], restored: { commit: 2 } })
  step(raft, offerOf(1, 1))
  expect([replyOf(raft)?.index, raft.commit]).toEqual([2, 2])
  step(raft, offerOf(3, 1))
  expect([replyOf(raft)?.index, raft.commit, raft.snapshot]).toEqual([3, 3, undefined])
})

test('what is installed is what was handed over', () => {
  const raft = memberOf()
  step(raft, offerOf(9, 2))
  expect(() => installed(raft, 9, 2, CONFIGURATION)).toThrow('a snapshot was handed over')
  takeReady(raft) // The term.
  persisted(raft, 1)
  takeReady(raft)
  expect(() => installed(raft, 8, 2, CONFIGURATION)).toThrow('the installed snapshot is the one')
})

/** Replication on a leader: entries from disk, snapshots, replies that change nothing. */

import { expect, test } from 'vitest'
import {
  acknowledge,
  answerHeartbeat,
  configurationOf,
  drain,
  E,
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
import {
  compactedTo,
  offerSnapshot,
  provideEntries,
  type Raft,
  readIndex,
  reportSnapshot,
  reportUnreachable,
  tick,
  transferLeader,
} from './raft.ts'
import { peerOf } from './state.ts'

const SNAPSHOT = { snapshotTerm: 1, configuration: configurationOf({ voters: [1, 2, 3] }), manifest: new Uint8Array(0) }

const appendsTo = (raft: Raft, id: number) =>
  ofType(drain(raft), 'append', id).map((message) => [message.prevIndex, rangeOf(message), message.commit])

const stateOf = (raft: Raft, id = 3) => {
  const { state, match, next } = peerOf(raft, id) as NonNullable<ReturnType<typeof peerOf>>
  return [state, match, next]
}

/** Ten entries that nodes 1 and 2 have applied; node 3 has the first and was lost. Nothing is in memory. */
function withLostPeer(): Raft {
  const raft = leaderOf(undefined, { keepBytes: 0 })
  reportUnreachable(raft, 3)
  answerHeartbeat(raft, 3)
  drain(raft)
  for (let n = 0; n < 9; n++) {
    give(raft)
    drain(raft)
    acknowledge(raft, 2)
  }
  drain(raft)
  expect([raft.applied, stateOf(raft)]).toEqual([10, ['probe', 1, 2]])
  return raft
}

/** The same, with the read of its log that node 3 waits for. */
function withLogRead(): Raft {
  const raft = withLostPeer()
  answerHeartbeat(raft, 3)
  expect(raft.logReads).toEqual([{ peer: 3, firstIndex: 2, lastIndex: 10, bytesMax: raft.limits.messageBytes }])
  drain(raft)
  return raft
}

test('an advanced commit index is sent to peers that have its entries', () => {
  const raft = leaderOf()
  give(raft)
  drain(raft)
  acknowledge(raft, 3)
  expect(raft.commit).toBe(2)
  expect(ofType(drain(raft), 'append').map(({ to, commit, entries }) => [to, commit, entries.length])).toEqual([
    [2, 2, 0],
    [3, 2, 0],
  ])
  acknowledge(raft, 2)
  expect(drain(raft)).toEqual([])
})

test('a read before the first entry of the term waits until that is committed, and then for a round', () => {
  const raft = elect(memberOf())
  drain(raft)
  expect(readIndex(raft, 7)).toBe('taken')
  answerHeartbeat(raft, 2)
  drain(raft)
  acknowledge(raft, 2)
  expect(ofType(drain(raft), 'heartbeat').map(({ readRound }) => readRound)).toEqual([1, 1])
  answerHeartbeat(raft, 2)
  expect(raft.readStates).toEqual([{ context: 7, index: 1 }])
})

test('a new leader counts only replies to itself for its quorum', () => {
  const raft = elect(memberOf())
  for (let n = 0; n < E; n++) tick(raft)
  expect(raft.role).toBe('follower')
})

test('a new leader ends a transfer and keeps nothing of an earlier leadership', () => {
  const raft = leaderOf()
  transferLeader(raft, 2)
  give(raft, 3)
  heartbeatTo(raft, 2)
  drain(raft)
  elect(raft)
  expect([raft.transferTarget, raft.termStart, raft.changeIndex, raft.sentIndex, raft.leader]).toEqual([0, 2, 2, 0, 1])
  expect(raft.peers.map(({ id, match, next, isActive }) => [id, match, next, isActive])).toEqual([
    [2, 0, 2, false],
    [3, 0, 2, false],
  ])
})

test('the heartbeat reply of a peer that has everything brings no message', () => {
  const raft = leaderOf()
  answerHeartbeat(raft, 2)
  expect(drain(raft)).toEqual([])
  give(raft)
  drain(raft)
  answerHeartbeat(raft, 2)
  expect(appendsTo(raft, 2)).toEqual([[2, undefined, 1]])
})

test('replies of nodes that are no members change nothing', () => {
  const raft = leaderOf()
  give(raft)
  drain(raft)
  acknowledge(raft, 9)
  answerHeartbeat(raft, 9)
  reportUnreachable(raft, 9)
  reportSnapshot(raft, 9, true)
  provideEntries(raft, 9, 'compacted')
  expect([raft.commit, drain(raft), offerSnapshot(raft, 9, { ...SNAPSHOT, index: 1 })]).toEqual([1, [], false])
})

test('entries that left the memory are read back and sent, as far as they were requested', () => {
  const raft = withLogRead()
  provideEntries(raft, 3, logOf([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 2))
  expect(appendsTo(raft, 3)).toEqual([[1, [2, 10], 10]])
  expect([stateOf(raft), raft.sentIndex]).toEqual([['probe', 1, 2], 10])
  acknowledge(raft, 3, 10)
  expect(stateOf(raft)).toEqual(['replicate', 10, 11])
})

test('some of the entries are sent, and the rest is requested when they are acknowledged', () => {
  const raft = withLogRead()
  provideEntries(raft, 3, logOf([1, 1], 2))
  expect(appendsTo(raft, 3)).toEqual([[1, [2, 3], 10]])
  acknowledge(raft, 3, 3)
  expect(raft.logReads).toEqual([{ peer: 3, firstIndex: 4, lastIndex: 10, bytesMax: raft.limits.messageBytes }])
})

test('the answer of an earlier read is ignored, and the present one still counts', () => {
  const raft = withLogRead()
  provideEntries(raft, 3, logOf([1], 5))
  expect([appendsTo(raft, 3), peerOf(raft, 3)?.reading]).toEqual([[], 2])
  provideEntries(raft, 3, logOf([1], 2))
  expect(appendsTo(raft, 3)).toEqual([[1, [2, 2], 10]])
  provideEntries(raft, 3, logOf([1], 2))
  expect(appendsTo(raft, 3)).toEqual([])
})

test('an empty answer makes the read be requested again', () => {
  const raft = withLogRead()
  provideEntries(raft, 3, [])
  drain(raft)
  expect([peerOf(raft, 3)?.reading, stateOf(raft)]).toEqual([2, ['probe', 1, 2]])
})

test('a peer that has moved on meanwhile gets what it needs now', () => {
  const raft = withLogRead()
  acknowledge(raft, 3, 10)
  drain(raft)
  provideEntries(raft, 3, logOf([1], 2))
  expect([appendsTo(raft, 3), stateOf(raft)]).toEqual([[], ['replicate', 10, 11]])
  provideEntries(raft, 3, 'compacted')
  expect([raft.offers, stateOf(raft)]).toEqual([[], ['replicate', 10, 11]])
})

test('a lost connection voids a read of the log', () => {
  const raft = withLogRead()
  reportUnreachable(raft, 3)
  provideEntries(raft, 3, logOf([1], 2))
  expect([appendsTo(raft, 3), peerOf(raft, 3)?.reading]).toEqual([[], 0])
})

test.each<[string, (raft: Raft) => void]>([
  ['the disk reports', (raft) => provideEntries(raft, 3, 'compacted')],
  [
    'the log was cut while it was read',
    (raft) => {
      compactedTo(raft, 3)
      provideEntries(raft, 3, logOf([1], 2))
    },
  ],
])('a peer whose entries are compacted is offered a snapshot: %s', (_name, end) => {
  const raft = withLogRead()
  end(raft)
  expect([raft.offers, stateOf(raft)]).toEqual([[{ peer: 3 }], ['snapshot', 1, 2]])
})

/** Node 3 needs a snapshot. */
function withoutEntries(): Raft {
  const raft = withLostPeer()
  compactedTo(raft, 5)
  answerHeartbeat(raft, 3)
  expect([raft.offers, stateOf(raft)]).toEqual([[{ peer: 3 }], ['snapshot', 1, 2]])
  drain(raft)
  return raft
}

test('a silent peer is offered no snapshot', () => {
  const raft = withLostPeer()
  compactedTo(raft, 5)
  for (let n = 0; n < E; n++) tick(raft)
  raft.mustBroadcast = true
  drain(raft)
  expect(stateOf(raft)[0]).toBe('probe')
})

test('only the first entry that is gone makes a snapshot necessary', () => {
  const raft = withLostPeer()
  compactedTo(raft, 2)
  answerHeartbeat(raft, 3)
  expect([raft.offers, raft.logReads.length]).toEqual([[], 1])
})

test('a snapshot is offered once to a peer that needs one, in the present term', () => {
  const raft = withoutEntries()
  expect(offerSnapshot(raft, 2, { ...SNAPSHOT, index: 8 })).toBe(false)
  expect(offerSnapshot(raft, 3, { ...SNAPSHOT, index: 8 })).toBe(true)
  expect(drain(raft)).toEqual([{ type: 'snapshot', from: 1, to: 3, term: 1, index: 8, ...SNAPSHOT }])
  expect(peerOf(raft, 3)?.pendingSnapshot).toBe(8)
  expect(() => offerSnapshot(raft, 3, { ...SNAPSHOT, index: 11 })).toThrow('applied entries only')
})

test.each([
  [true, 9],
  [false, 2],
])('the end of a transfer (done: %s) continues with entry %i, after the next reply', (isDone, next) => {
  const raft = withoutEntries()
  offerSnapshot(raft, 3, { ...SNAPSHOT, index: 8 })
  drain(raft)
  reportSnapshot(raft, 3, isDone)
  expect([stateOf(raft), peerOf(raft, 3)?.isPaused]).toEqual([['probe', 1, next], true])
  give(raft)
  expect(appendsTo(raft, 3)).toEqual([])
  answerHeartbeat(raft, 3)
  expect(isDone ? raft.logReads.map(({ firstIndex }) => firstIndex) : raft.offers).toEqual(isDone ? [9] : [{ peer: 3 }])
  reportSnapshot(raft, 2, true)
  expect(stateOf(raft, 2)[0]).toBe('replicate')
})

test.each([
  [3, 'snapshot'],
  [4, 'replicate'],
  [10, 'replicate'],
])('a peer that acknowledges entry %i of a log that begins at 5 is in state %s', (index, state) => {
  const raft = withoutEntries()
  acknowledge(raft, 3, index)
  expect(stateOf(raft).slice(0, 2)).toEqual([state, index])
})

test('a lost connection moves a peer back to what it acknowledged, unless it gets a snapshot', () => {
  const raft = leaderOf()
  give(raft, 3)
  drain(raft)
  expect(stateOf(raft)).toEqual(['replicate', 1, 5])
  reportUnreachable(raft, 3)
  expect(stateOf(raft)).toEqual(['probe', 1, 2])
  const waiting = withoutEntries()
  reportUnreachable(waiting, 3)
  expect(stateOf(waiting)[0]).toBe('snapshot')
})

test('the target of a transfer is to campaign when it has the last entry', () => {
  const raft = leaderOf()
  give(raft)
  drain(raft)
  transferLeader(raft, 2)
  expect(ofType(drain(raft), 'timeoutNow')).toEqual([])
  acknowledge(raft, 3)
  expect(ofType(drain(raft), 'timeoutNow')).toEqual([])
  acknowledge(raft, 2)
  expect(ofType(drain(raft), 'timeoutNow')).toEqual([{ type: 'timeoutNow', from: 1, to: 2, term: 1 }])
})

test('a turn sends as many messages as the entries need, within the window', () => {
  const raft = leaderOf(undefined, { limits: { messageBytes: 1, inflightMessages: 3 } })
  for (let n = 0; n < 5; n++) give(raft)
  expect(appendsTo(raft, 2).map(([, range]) => range)).toEqual([
    [2, 2],
    [3, 3],
    [4, 4],
  ])
  acknowledge(raft, 2, 3)
  expect(appendsTo(raft, 2).map(([, range]) => range)).toEqual([
    [5, 5],
    [6, 6],
  ])
})

test('a probe without entries is not repeated before a reply', () => {
  const raft = leaderOf()
  reportUnreachable(raft, 3)
  answerHeartbeat(raft, 3)
  expect(appendsTo(raft, 3)).toEqual([[1, undefined, 1]])
  give(raft)
  expect(appendsTo(raft, 3)).toEqual([])
  answerHeartbeat(raft, 3)
  expect(appendsTo(raft, 3)).toEqual([[1, [2, 2], 1]])
})

test.each([
  [true, 4],
  [false, 2],
])('a rejection below what a peer acknowledged: that counts (%s) or not', (counts, match) => {
  const raft = leaderOf()
  give(raft, 3)
  drain(raft)
  acknowledge(raft, 3, 4)
  const peer = peerOf(raft, 3) as NonNullable<ReturnType<typeof peerOf>>
  peer.counts = counts
  reject(raft, 3, 4, 2, 1)
  expect(peer.match).toBe(match)
})

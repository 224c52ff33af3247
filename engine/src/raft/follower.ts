/**
 * How a follower handles messages of its leader: entries, commit index, snapshots
 * (docs/design/consensus.md#replication, docs/design/storage.md#transfer).
 */

import { assert } from '@vacancy/shared'
import { type EntryBatch, sliceBatch } from './entry.ts'
import {
  appendBatch,
  assertSameEntries,
  batchTerm,
  commitTo,
  lastIndexOfTerm,
  lastOf,
  restartLog,
  termAt,
} from './log.ts'
import type { AppendMessage, AppendReply, Configuration, Heartbeat, SnapshotOffer } from './messages.ts'
import { cutLog, knownTerm, placePeers, promise, type Raft, send } from './state.ts'

export function onAppend(raft: Raft, message: AppendMessage): void {
  const { from, prevIndex, prevTerm, entries } = message
  // While a snapshot is being installed nothing else is appended to the log (docs/design/consensus.md#hand-over).
  if (raft.snapshot) return
  // Committed entries are the same in both logs.
  if (prevIndex < raft.commit) return acknowledge(raft, from, raft.commit)
  if (termAt(raft, prevIndex) !== prevTerm) return reject(raft, from, prevIndex, prevTerm)
  let last = prevIndex
  for (const batch of entries) {
    assert(batch.firstIndex === last + 1, 'entries of a message are contiguous')
    place(raft, batch)
    last = lastOf(batch)
  }
  // docs/design/consensus.md#replication: after `last` the two logs may differ.
  const commit = Math.min(message.commit, last)
  if (commit > raft.commit) commitTo(raft, commit)
  acknowledge(raft, from, last)
}

/**
 * Appends the new entries of a batch. Only a real conflict truncates existing ones
 * (docs/design/consensus.md#replication).
 */
function place(raft: Raft, batch: EntryBatch): void {
  const last = lastOf(batch)
  if (batch.firstIndex > raft.lastIndex) return appendBatch(raft, batch)
  const term = batchTerm(batch)
  const overlap = Math.min(last, raft.lastIndex)
  let next = batch.firstIndex
  while (next <= overlap && termAt(raft, next) === term) next++
  if (next > batch.firstIndex) assertSameEntries(raft, sliceBatch(batch, batch.firstIndex, next - 1))
  if (next <= overlap) {
    cutLog(raft, next)
    raft.overwrittenFrom = raft.overwrittenFrom === 0 ? next : Math.min(raft.overwrittenFrom, next)
  }
  if (next <= last) appendBatch(raft, sliceBatch(batch, next, last))
}

/**
 * Sent when the entries are durable (docs/design/consensus.md#hand-over). Of several to the same leader, the last one
 * covers all.
 */
function acknowledge(raft: Raft, to: number, index: number): void {
  const reply: AppendReply = {
    type: 'appendReply',
    from: raft.id,
    to,
    term: raft.term,
    index,
    isRejected: false,
    hintIndex: 0,
    hintTerm: 0,
  }
  const before = raft.sendAfter[raft.sendAfter.length - 1]
  if (before?.type === 'appendReply' && !before.isRejected && before.to === to && before.term === raft.term) {
    if (before.index <= index) raft.sendAfter[raft.sendAfter.length - 1] = reply
    return
  }
  promise(raft, reply)
}

/**
 * Reports where this log may match, so that the leader moves back by whole terms
 * (docs/design/consensus.md#replication).
 */
function reject(raft: Raft, to: number, index: number, prevTerm: number): void {
  const hintIndex = lastIndexOfTerm(raft, Math.min(index, raft.lastIndex), prevTerm)
  const hintTerm = knownTerm(raft, hintIndex)
  const { id: from, term } = raft
  promise(raft, { type: 'appendReply', from, to, term, index, isRejected: true, hintIndex, hintTerm })
}

export function onHeartbeat(raft: Raft, message: Heartbeat): void {
  const { from, commit, readRound } = message
  // A member that may have lost acknowledged entries trusts only positions checked by an append
  // (docs/design/consensus.md#replication).
  if (!raft.snapshot && !raft.isMute && commit > raft.commit) {
    assert(commit <= raft.lastIndex, 'acknowledged entries are in the log')
    commitTo(raft, commit)
  }
  send(raft, { type: 'heartbeatReply', from: raft.id, to: from, term: raft.term, readRound })
}

/**
 * The data is already staged here. It is handed over for installation, unless the log contains all of it
 * (docs/design/storage.md#transfer).
 */
export function onSnapshot(raft: Raft, message: SnapshotOffer): void {
  if (raft.snapshot) return
  const { from, index, snapshotTerm } = message
  if (index <= raft.commit) return acknowledge(raft, from, raft.commit)
  if (termAt(raft, index) === snapshotTerm && index > raft.commit) {
    commitTo(raft, index)
    return acknowledge(raft, from, index)
  }
  raft.snapshot = message
  raft.isSnapshotHanded = false
}

/**
 * The snapshot of a hand-over is installed: state machine and log on disk start from it, and its mark is durable. All
 * entries returned for application must have been confirmed or dropped before.
 */
export function installed(raft: Raft, index: number, term: number, configuration: Configuration): void {
  const { snapshot } = raft
  assert(snapshot !== undefined && raft.isSnapshotHanded, 'a snapshot was handed over')
  assert(
    snapshot.index === index && snapshot.snapshotTerm === term,
    'the installed snapshot is the one that was handed over',
  )
  restartLog(raft, index, term)
  // Pending writes belong to the previous log.
  for (const handed of raft.handed) handed.lastIndex = index
  raft.stored = { ...raft.stored, commit: index }
  raft.handedState = { ...raft.handedState, commit: index }
  raft.snapshot = undefined
  raft.configuration = configuration
  raft.configurationIndex = index
  placePeers(raft)
  if (raft.leader !== 0) acknowledge(raft, raft.leader, index)
}

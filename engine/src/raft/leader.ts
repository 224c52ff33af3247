/**
 * Replication on the leader: sends entries as fast as each peer accepts them, tracks their progress, commits what a
 * majority holds (docs/design/consensus.md#replication, docs/design/consensus.md#first-entry-of-a-term,
 * docs/design/consensus.md#invariants).
 */

import { assert } from '@vacancy/shared'
import { reached } from './agreement.ts'
import { ENTRY_KIND, type EntryBatch, encodeEntry, inspectBatch, sliceBatch } from './entry.ts'
import { appendEntries, batchTerm, commitTo, lastIndexOfTerm, lastOf, readTail, tailFirst, termAt } from './log.ts'
import type { AppendReply, HeartbeatReply, SnapshotOffer } from './messages.ts'
import {
  acknowledge,
  assertProgress,
  forgetMatch,
  isWaiting,
  isWindowFull,
  noteProbe,
  noteSent,
  type Progress,
  retreat,
  toProbe,
  toReplicate,
  toSnapshot,
} from './progress.ts'
import { confirmReads, takeHeldReads } from './reads.ts'
import { drawTimeout, knownTerm, peerOf, placePeers, type Raft, send, setLeader } from './state.ts'
import { abortTransfer, hurryTransfer } from './transfer.ts'

const NO_ENTRIES: readonly EntryBatch[] = []

/**
 * A candidate has won. It starts its term with one empty entry (docs/design/consensus.md#first-entry-of-a-term), which
 * also marks the end of the inherited entries (docs/design/consensus.md#when-a-configuration-takes-effect).
 */
export function becomeLeader(raft: Raft): void {
  assert(raft.role === 'candidate', 'a leader was elected')
  raft.role = 'leader'
  setLeader(raft, raft.id)
  drawTimeout(raft)
  raft.votes.clear()
  abortTransfer(raft)
  raft.confirmedRound = raft.readRound
  raft.peers = []
  placePeers(raft)
  for (const peer of raft.peers) peer.isActive = false
  const empty = encodeEntry(raft.term, ENTRY_KIND.empty, new Uint8Array(0))
  raft.termStart = appendEntries(raft, raft.term, 1, empty)
  raft.changeIndex = raft.termStart
  raft.sentIndex = 0
  raft.mustBroadcast = true
}

const matchOf = (peer: Progress): number => peer.match

/**
 * docs/design/consensus.md#invariants: only an entry of the current term is committed by counting replicas; it commits
 * all earlier ones.
 */
export function commitByCounting(raft: Raft): void {
  // docs/design/consensus.md#hand-over: the leader's own entries count once they are durable.
  const index = reached(raft, raft.persisted, matchOf)
  if (index <= raft.commit) return
  if (termAt(raft, index) !== raft.term) return
  commitTo(raft, index)
  takeHeldReads(raft)
}

/** Sends each peer the entries that it may receive now, with the commit index (docs/design/consensus.md#replication). */
export function broadcast(raft: Raft): void {
  raft.mustBroadcast = false
  for (const peer of raft.peers) sendAll(raft, peer)
}

/** As many messages as the window allows. */
function sendAll(raft: Raft, peer: Progress): void {
  while (sendAppend(raft, peer, false)) {}
}

/** Whether there are peers that have not been sent the commit index. Entries take it along; none may follow soon. */
export function owesCommit(raft: Raft): boolean {
  return raft.role === 'leader' && raft.peers.some((peer) => lacksCommit(peer, raft.commit))
}

/** Sends the commit index to the peers that do not even know `index` to be committed. */
export function sendCommit(raft: Raft, index = raft.commit): void {
  if (raft.role !== 'leader') return
  for (const peer of raft.peers) if (lacksCommit(peer, index)) sendAppend(raft, peer, true)
}

/** Whether a peer that may be sent something was not told of all up to `commit` that it has been sent. */
function lacksCommit(peer: Progress, commit: number): boolean {
  return Math.min(commit, peer.next - 1) > peer.sentCommit && !isWaiting(peer)
}

/**
 * One append message, if the peer may get one.
 *
 * @param mustSend also without entries: to probe the peer's position, or to send the commit index
 */
function sendAppend(raft: Raft, peer: Progress, mustSend: boolean): boolean {
  if (isWaiting(peer)) return false
  const prevTerm = termAt(raft, peer.next - 1)
  if (prevTerm < 0) {
    needSnapshot(raft, peer)
    return false
  }
  let entries = NO_ENTRIES
  // A full window pauses entries (docs/design/consensus.md#replication).
  const isFull = peer.state === 'replicate' && isWindowFull(peer)
  if (peer.next <= raft.lastIndex && !isFull) {
    if (peer.next < tailFirst(raft)) {
      // Entries no longer in memory are applied and durable; after them the disk may hold entries that were since
      // replaced.
      peer.reading = peer.next
      peer.readingTo = tailFirst(raft) - 1
      const { reading: firstIndex, readingTo: lastIndex } = peer
      raft.logReads.push({ peer: peer.id, firstIndex, lastIndex, bytesMax: raft.limits.messageBytes })
      return false
    }
    entries = readTail(raft, peer.next, raft.limits.messageBytes)
  }
  if (entries.length === 0 && !mustSend) return false
  emit(raft, peer, prevTerm, entries)
  return true
}

function emit(raft: Raft, peer: Progress, prevTerm: number, entries: readonly EntryBatch[]): void {
  const { id: from, term, commit } = raft
  send(raft, { type: 'append', from, to: peer.id, term, prevIndex: peer.next - 1, prevTerm, entries, commit })
  peer.sentCommit = Math.max(peer.sentCommit, commit)
  let bytes = 0
  for (const batch of entries) bytes += batch.bytes.length
  const last = entries[entries.length - 1]
  if (last) {
    noteSent(peer, lastOf(last), bytes)
    raft.sentIndex = Math.max(raft.sentIndex, lastOf(last))
  } else noteProbe(peer)
  assertProgress(peer, raft.lastIndex)
}

/**
 * The entries it needs are compacted. A peer that does not answer gets no offer: the snapshot would be built for
 * nothing (docs/design/consensus.md#hand-over).
 */
function needSnapshot(raft: Raft, peer: Progress): void {
  if (!peer.isActive) return
  toSnapshot(peer)
  raft.offers.push({ peer: peer.id })
}

export function onAppendReply(raft: Raft, message: AppendReply): void {
  const peer = peerOf(raft, message.from)
  if (!peer) return
  peer.isActive = true
  if (message.isRejected) return onRejection(raft, peer, message)
  const isNews = acknowledge(peer, message.index)
  assertProgress(peer, raft.lastIndex)
  // A peer that has caught up must not stay in probe (docs/design/consensus.md#replication).
  if (peer.state === 'probe' && (isNews || peer.match === message.index)) toReplicate(peer)
  else if (!isNews) return
  // Regardless of a running transfer it can continue from the log.
  if (peer.state === 'snapshot' && peer.match >= raft.firstIndex - 1) toReplicate(peer)
  commitByCounting(raft)
  sendAll(raft, peer)
  hurryTransfer(raft, peer)
}

/** docs/design/consensus.md#replication: moves back to where the two logs may match, by whole terms. */
function onRejection(raft: Raft, peer: Progress, { index, hintIndex, hintTerm }: AppendReply): void {
  const agreeable = lastIndexOfTerm(raft, hintIndex, hintTerm)
  if (!peer.counts) forgetMatch(peer, agreeable)
  if (!retreat(peer, index, agreeable)) return
  assertProgress(peer, raft.lastIndex)
  sendAppend(raft, peer, true)
}

export function onHeartbeatReply(raft: Raft, message: HeartbeatReply): void {
  const peer = peerOf(raft, message.from)
  if (!peer) return
  peer.isActive = true
  // docs/design/consensus.md#replication: messages in flight may be lost; one append finds out.
  peer.isPaused = false
  if (peer.match < raft.lastIndex || peer.state === 'probe') sendAppend(raft, peer, true)
  if (message.readRound <= peer.readRound) return
  assert(message.readRound <= raft.readRound, 'only a started round is confirmed')
  peer.readRound = message.readRound
  confirmReads(raft)
}

/** The transport lost contact: messages in flight count as lost. */
export function reportUnreachable(raft: Raft, id: number): void {
  const peer = peerOf(raft, id)
  if (peer?.state === 'replicate') toProbe(peer)
  // Entries being read for it are no longer useful.
  if (peer) peer.reading = 0
}

/** A snapshot as the driver offers it: `manifest` is opaque. */
export type Snapshot = Pick<SnapshotOffer, 'index' | 'snapshotTerm' | 'configuration' | 'manifest'>

/**
 * Offers a snapshot to a peer that needs one.
 *
 * @returns false when it no longer needs one
 */
export function offerSnapshot(raft: Raft, id: number, snapshot: Snapshot): boolean {
  const peer = peerOf(raft, id)
  if (peer?.state !== 'snapshot') return false
  assert(snapshot.index <= raft.applied, 'a snapshot holds applied entries only')
  peer.pendingSnapshot = snapshot.index
  send(raft, { type: 'snapshot', from: raft.id, to: id, term: raft.term, ...snapshot })
  return true
}

/** Handles the end of a transfer. The next reply to a heartbeat, or the next acknowledgement, continues replication. */
export function reportSnapshot(raft: Raft, id: number, isDone: boolean): void {
  const peer = peerOf(raft, id)
  if (peer?.state !== 'snapshot') return
  toProbe(peer, isDone ? Math.min(peer.pendingSnapshot, raft.lastIndex) : 0)
  peer.isPaused = true
}

/** Reply to a log read: the entries read back from disk, or the fact that they are compacted. */
export function provideEntries(raft: Raft, id: number, batches: readonly EntryBatch[] | 'compacted'): void {
  const peer = peerOf(raft, id)
  if (!peer || peer.reading === 0) return
  const from = peer.reading
  const isAnswer = batches === 'compacted' || batches[0] === undefined || batches[0].firstIndex === from
  // This answers an earlier read; the current one is still pending.
  if (!isAnswer) return
  peer.reading = 0
  // The log may have been compacted while the disk was busy.
  const isGone = batches === 'compacted' || from < raft.firstIndex
  if (isGone && peer.next === from) return needSnapshot(raft, peer)
  raft.mustBroadcast = true
  // The peer has moved on: the entries it needs now are requested again.
  if (isGone || peer.next !== from || batches.length === 0 || isWaiting(peer)) return
  const entries: EntryBatch[] = []
  let next = from
  for (const batch of batches) {
    if (batch.firstIndex > peer.readingTo) break
    assert(batch.firstIndex === next, 'entries are read back without a gap')
    assert(termAt(raft, next) === batchTerm(batch), 'entries read back have the term they were written with')
    inspectBatch(batch)
    const known = sliceBatch(batch, next, Math.min(lastOf(batch), peer.readingTo))
    entries.push(known)
    next += known.count
  }
  emit(raft, peer, knownTerm(raft, from - 1), entries)
}

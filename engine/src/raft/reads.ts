/**
 * Linearizable read positions (docs/design/consensus.md#reads). A leader notes its commit index, confirms with a quorum
 * that it still leads, and then releases the read. Waiting reads share one round of heartbeats.
 *
 *   requested ── own term committed? ──► waits for a round ── sent with heartbeats ──► confirmed by a quorum: released
 *                  no: held (docs/design/consensus.md#reads)       round 0                round n
 */

import { assert } from '@vacancy/shared'
import { reached } from './agreement.ts'
import { sendHeartbeats } from './heartbeats.ts'
import type { ReadIndexMessage, ReadIndexReply } from './messages.ts'
import type { Progress } from './progress.ts'
import { type Dropped, type Raft, type Read, send } from './state.ts'

const HELD = -1

/**
 * Requests a position at or after all entries acknowledged before now. The reply comes with a hand-over: in
 * `readStates` or in `droppedReads`, or never, if a message of a follower was lost.
 *
 * @param context the caller's own number; never reused, not even by a later process
 */
export function readIndex(raft: Raft, context: number): 'taken' | Dropped {
  if (raft.role === 'leader') return take(raft, 0, context) ? 'taken' : 'overloaded'
  if (raft.leader === 0) return 'no-leader'
  send(raft, { type: 'readIndex', from: raft.id, to: raft.leader, term: 0, context })
  return 'taken'
}

/** A follower forwards the request. A caller at a node that does not lead retries (docs/design/consensus.md#reads). */
export function onReadIndex(raft: Raft, { from, context }: ReadIndexMessage): void {
  if (raft.role === 'leader') take(raft, from, context)
}

export function onReadIndexReply(raft: Raft, { context, index }: ReadIndexReply): void {
  raft.readStates.push({ context, index })
}

function take(raft: Raft, from: number, context: number): boolean {
  const { reads } = raft
  if (reads.length >= raft.limits.waitingReads) return false
  const isHeld = raft.commit < raft.termStart
  const read: Read = { from, context, index: isHeld ? HELD : raft.commit, round: 0 }
  // A quorum of one is already confirmed (docs/design/consensus.md#reads).
  if (!isHeld && reached(raft, Number.POSITIVE_INFINITY, nothing) > 0) {
    release(raft, read)
    return true
  }
  reads.push(read)
  if (!isHeld && raft.confirmedRound === raft.readRound) raft.mustBeginRound = true
  return true
}

/** docs/design/consensus.md#reads: an entry of the own term is committed; what waited for it gets its position. */
export function takeHeldReads(raft: Raft): void {
  if (raft.commit < raft.termStart || raft.reads.length === 0) return
  for (const read of raft.reads) {
    if (read.index !== HELD) continue
    read.index = raft.commit
    raft.mustBeginRound = true
  }
  confirmReads(raft)
}

/**
 * Heartbeats with a new round for all reads that wait for one: when none is under way, and with every heartbeat, so
 * that a lost round delays reads by a heartbeat at most.
 */
export function beginRound(raft: Raft): void {
  raft.mustBeginRound = false
  if (raft.reads.some(isWaiting)) {
    raft.readRound++
    for (const read of raft.reads) if (isWaiting(read)) read.round = raft.readRound
  }
  sendHeartbeats(raft)
}

function isWaiting({ index, round }: Read): boolean {
  return index !== HELD && round === 0
}

const roundOf = (peer: Progress): number => peer.readRound
const nothing = (): number => 0

/**
 * docs/design/consensus.md#reads: releases what a quorum has confirmed in this term
 * (docs/design/consensus.md#invariants).
 */
export function confirmReads(raft: Raft): void {
  if (raft.reads.length === 0 && raft.confirmedRound === raft.readRound) return
  const confirmed = Math.min(reached(raft, Number.POSITIVE_INFINITY, roundOf), raft.readRound)
  raft.confirmedRound = Math.max(raft.confirmedRound, confirmed)
  const open: Read[] = []
  for (const read of raft.reads) {
    if (read.round > 0 && read.round <= raft.confirmedRound) release(raft, read)
    else open.push(read)
  }
  raft.reads = open
  if (raft.confirmedRound === raft.readRound && open.some(isWaiting)) raft.mustBeginRound = true
}

/** The result is the index noted at the request (docs/design/consensus.md#reads). */
function release(raft: Raft, { from, context, index }: Read): void {
  assert(index >= 0, 'a read is released with the index it was taken at')
  assert(raft.role === 'leader', 'a read is confirmed in the term it was taken in')
  if (from === 0) raft.readStates.push({ context, index })
  else send(raft, { type: 'readIndexReply', from: raft.id, to: from, term: 0, context, index })
}

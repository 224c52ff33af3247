/** Handles the replies of the log thread: stored entries, a full disk, a log that restarts after a snapshot. */

import { assert } from '@vacancy/shared'
import { isReachable } from '../raft/progress.ts'
import { compactedTo, installed, refused } from '../raft/raft.ts'
import { REFUSED } from '../threads/writes.ts'
import type { FromWal } from '../wal/wal-thread.ts'
import { putAnswer, sendAnswers } from './answers.ts'
import { applyCommitted } from './applying.ts'
import { markStored, pump } from './hand-over.ts'
import { followTime, resumeTime } from './keep-time.ts'
import { observe, RETRY_FULL_MS, type Replica, SNAPSHOT_LOOK_MS } from './replica-state.ts'

/** Entries kept in the log before the newest snapshot. */
const KEPT_ENTRIES = 10_000

/**
 * Log that lagging followers may keep from being deleted (docs/design/storage.md#log-compaction,
 * docs/design/consensus.md#limits).
 */
const LOG_BYTES_MAX = 1 << 30

/** A sync that takes this long is slow; ten seconds of them and a leader hands over. */
const SLOW_SYNC_MS = 1_000

// Replies of the log thread

export function onLogMessage(replica: Replica, message: FromWal): void {
  switch (message.type) {
    case 'stored': {
      observe(replica.fsync, message.syncMs / 1000)
      observe(replica.groupEntries, message.entries)
      replica.slowSyncMs = message.syncMs >= SLOW_SYNC_MS ? replica.slowSyncMs + message.syncMs : 0
      replica.groups++
      replica.walBytes = message.bytes
      replica.walFiles = message.files
      markStored(replica, message.token)
      pump(replica)
      return applyCommitted(replica)
    }
    case 'refused':
      return onRefused(replica, message.token, message.storedTo)
    case 'resumed':
      replica.isRetrying = false
      if (message.takesEntries && replica.isDiskFull) replica.env.log.info({}, 'the disk takes writes again')
      replica.isDiskFull = !message.takesEntries
      // A refused vote is tried again in any case.
      return pump(replica)
    case 'marked':
      replica.snapshots.retain()
      return replica.log({ type: 'compact', floor: compactionFloor(replica) })
    case 'installed':
      return onInstalled(replica, message.isDone)
    case 'compacted':
      if (message.firstIndex > replica.raft.firstIndex)
        compactedTo(replica.raft, Math.min(message.firstIndex, replica.raft.applied + 1))
      replica.walBytes = message.bytes
      replica.walFiles = message.files
      return
    case 'failed':
      return replica.onFatal(message.failure)
    default:
      return
  }
}

/**
 * First entry to keep: those after the older of two snapshots, and some more for followers that lag
 * (docs/design/storage.md#log-compaction).
 */
export function compactionFloor(replica: Replica): number {
  const { link, snapshotIndexBefore, snapshotIndexLast, keptEntries = KEPT_ENTRIES } = replica
  const held = link?.keptIndex() ?? Number.POSITIVE_INFINITY
  const kept = Math.min(snapshotIndexBefore, snapshotIndexLast - keptEntries, held, followed(replica))
  return Math.max(0, Math.min(kept, replica.raft.applied)) + 1
}

/** Match index of the slowest reachable follower. Those that hold back too much log get a snapshot instead. */
function followed({ raft, walBytes }: Replica): number {
  if (raft.role !== 'leader' || walBytes > LOG_BYTES_MAX) return Number.POSITIVE_INFINITY
  let least = Number.POSITIVE_INFINITY
  for (const peer of raft.peers) {
    if (isReachable(peer) && peer.state !== 'snapshot') least = Math.min(least, peer.match)
  }
  return least
}

/**
 * The disk is full: the hand-over `token` and those after it are not in the log past `storedTo`. A standalone node
 * reports that to each writer. A leader's entries may already be on their way to peers, so their writers wait for the
 * outcome.
 */
function onRefused(replica: Replica, token: number, storedTo: number | undefined): void {
  replica.refusals++
  replica.handOvers.length = 0
  const from = refused(replica.raft, token, storedTo)
  if (replica.raft.role === 'leader') {
    refuseFrom(replica, from)
    // One of the refused entries may have set the time back.
    resumeTime(replica)
  }
  noteFullDisk(replica)
  retryLog(replica)
  pump(replica)
  applyCommitted(replica)
}

/** Releases the disk reserve, so that the node can free space. */
export function noteFullDisk(replica: Replica): void {
  if (!replica.isDiskFull) {
    replica.env.log.error({ freeBytes: replica.space().freeBytes }, 'disk full, writes refused')
    replica.onReserve()
  }
  replica.isDiskFull = true
}

/** These entries are certainly in no log. */
function refuseFrom(replica: Replica, index: number): void {
  const keep = Math.max(0, Math.min(index - replica.waitingFrom, replica.waitingSinks.length))
  for (let n = keep; n < replica.waitingSinks.length; n++) {
    const sink = replica.waitingSinks[n]
    if (sink > 0) putAnswer(replica, sink - 1, replica.waitingTokens[n], REFUSED.diskFull, 0, 0)
  }
  replica.waitingSinks.length = keep
  replica.waitingTokens.length = keep
  replica.waitingHead = Math.min(replica.waitingHead, keep)
  // The empty entry of the term, which has no writer, may be gone too.
  replica.waitingFrom = Math.min(replica.waitingFrom, index)
  replica.proposedAt = replica.proposedAt.filter(({ lastIndex }) => lastIndex < index)
  sendAnswers(replica)
}

/** The log restarts after an installed snapshot, or has no room to. */
function onInstalled(replica: Replica, isDone: boolean): void {
  const { installing: offer, raft } = replica
  assert(offer !== undefined, 'one snapshot is installed at a time')
  if (!isDone) {
    replica.env.log.warn({ index: offer.index }, 'no room for the log behind an installed snapshot; trying again')
    noteFullDisk(replica)
    replica.env.schedule.after(RETRY_FULL_MS, () => snapshotCurrent(replica))
    return
  }
  // A snapshot of the present state that is still being written is useless now, but it reads the memory to be cleared.
  if (replica.snapshotRunning || replica.loading?.phase === 'replacing')
    return void replica.env.schedule.after(SNAPSHOT_LOOK_MS, () => onInstalled(replica, true))
  // The installed snapshot has a state past the load.
  replica.loading = undefined
  assert(replica.switchState !== undefined, 'a member can take over the state of another')
  replica.switchState(offer, () => {
    replica.installing = undefined
    replica.snapshotIndexBefore = offer.index
    replica.snapshotIndexLast = offer.index
    followTime(replica, replica.machine.latestTimeMs(), false)
    installed(raft, offer.index, offer.snapshotTerm, offer.configuration)
    replica.link?.onConfiguration(offer.index, offer.configuration)
    replica.machine.publish(raft.applied)
    replica.link?.onApplied()
    pump(replica)
    applyCommitted(replica)
  })
}

/** The snapshot to install is complete on disk under its name. The log can restart after it. */
export function snapshotCurrent(replica: Replica): void {
  const { installing } = replica
  assert(installing !== undefined, 'a snapshot is being installed')
  replica.log({ type: 'install', mark: { index: installing.index, term: installing.snapshotTerm } })
}

export function retryLog(replica: Replica): void {
  if (replica.isRetrying) return
  replica.isRetrying = true
  replica.env.schedule.after(RETRY_FULL_MS, () => replica.log({ type: 'resume' }))
}

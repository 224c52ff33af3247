/**
 * Runs the core: proposals → log → apply → replies (docs/design/overview.md#pure-modules,
 * docs/design/consensus.md#apply). A standalone node is a shard with one voter and no link to others. member.ts adds
 * the functions of a shard member.
 *
 *   serving threads ── proposals ──► core ── entries ──► log thread ── stored ──► core ── committed ──► apply ──►
 *   replies
 *                                     └── messages ──► link ──► peers
 *
 * All dependencies are injected: log, state machine, snapshots, peers, clock. The thread entry is replica-worker.ts. A
 * simulator runs the same code in one thread.
 */

import { hasReady, type Raft, storeCommit } from '../raft/raft.ts'
import type { Buckets, ReplicaStatus } from '../status.ts'
import { LOG_FILE_BYTES } from '../wal/wal.ts'
import { giveUpWaiting } from './answers.ts'
import { freeDeleted, isPaused, markAfterChanges } from './applying.ts'
import { pump } from './hand-over.ts'
import { clockStatus, tickTime } from './keep-time.ts'
import { compactionFloor, retryLog } from './log-answers.ts'
import { startSnapshot } from './maintenance.ts'
import { expireHolds } from './proposals.ts'
import { isBetweenStates, isStuck, type MutableBuckets, type Replica } from './replica-state.ts'

/** Free space counts as low below this share of the disk or below two log files (docs/design/storage.md#full-disk). */
const LOW_SHARE = 0.05

const SLOW_FOR_MS = 10_000
/** A longer time between two ticks is a stall of this process, not of its disk. */
const TICK_MS_MAX = 500

// Time and shutdown

/** Called about ten times a second. */
export function tick(replica: Replica): void {
  const now = replica.env.clock.monotonicMs()
  const sinceMs = now - replica.lastTickMs
  replica.stallMs = Math.max(replica.stallMs, sinceMs)
  replica.lastTickMs = now
  noteWaiting(replica, Math.min(sinceMs, TICK_MS_MAX))
  if (replica.snapshotIntervalMs > 0 && now >= replica.nextSnapshotMs) {
    replica.nextSnapshotMs = now + replica.snapshotIntervalMs
    startSnapshot(replica, 'periodic')
  }
  if (!isBetweenStates(replica)) {
    replica.machine.prepareDeletes()
    freeDeleted(replica)
  }
  if (replica.isDiskFull) retryLog(replica)
  tickTime(replica)
  giveUpWaiting(replica, now)
  expireHolds(replica, now)
  markAfterChanges(replica, now)
  storeCommit(replica.raft)
  pump(replica)
  replica.onSettled?.()
}

/**
 * Counts how long the oldest hand-over has been with the log. A stuck node does not stand for leader: its own vote and
 * entries would never count.
 */
function noteWaiting(replica: Replica, sinceMs: number): void {
  const wasStuck = isStuck(replica)
  const token = replica.handOvers[0]?.token ?? 0
  replica.unansweredMs = token !== 0 && token === replica.unansweredToken ? replica.unansweredMs + sinceMs : 0
  replica.unansweredToken = token
  replica.pausedMs = isPaused(replica) && replica.raft.applied < replica.raft.commit ? replica.pausedMs + sinceMs : 0
  replica.raft.standsBack = isStuck(replica)
  if (isStuck(replica) === wasStuck) return
  const { log } = replica.env
  if (wasStuck) log.info({}, 'the disk answers again')
  else
    log.error(
      { handOvers: replica.handOvers.length },
      'the disk does not answer: writes wait, leadership is handed over',
    )
}

/**
 * Accepts no more proposals. Resolves when all accepted ones are applied and answered and the commit index is stored. A
 * member waits for other members no longer than its writers do (docs/design/consensus.md#outcome-of-a-proposal).
 */
export function drainReplica(replica: Replica): Promise<void> {
  replica.isStopping = true
  const { raft } = replica
  return new Promise((resolve) => {
    let isLast = false
    const isAnswered = () => !replica.waitingSinks.some((sink, n) => n >= replica.waitingHead && sink !== 0)
    const isSettled = () =>
      replica.link ? isAnswered() && replica.orphans.size === 0 : raft.applied === raft.lastIndex
    const look = () => {
      if (replica.handOvers.length > 0 || raft.unsent.length > 0 || !isSettled()) return
      if (isLast) return resolve()
      // Once only: a full disk may have no room for it, and it is not required.
      isLast = true
      storeCommit(raft)
      if (hasReady(raft)) pump(replica)
      if (replica.handOvers.length === 0) resolve()
    }
    replica.onSettled = look
    look()
  })
}

function roleName({ role, id, configuration }: Raft): ReplicaStatus['role'] {
  if (role === 'leader') return 'leader'
  if (role === 'candidate' || role === 'preCandidate') return 'candidate'
  return configuration.learners.includes(id) ? 'learner' : 'follower'
}

export function statusOf(replica: Replica): ReplicaStatus {
  const { raft, machine } = replica
  const { freeBytes, totalBytes } = replica.space()
  const stall = replica.stallMs
  replica.stallMs = 0
  const copy = ({ bounds, counts, sum }: MutableBuckets): Buckets => ({ bounds, counts: [...counts], sum })
  return {
    role: roleName(raft),
    term: raft.term,
    firstIndex: compactionFloor(replica),
    lastIndex: raft.lastIndex,
    commitIndex: raft.commit,
    appliedIndex: raft.applied,
    walBytes: replica.walBytes,
    walFiles: replica.walFiles,
    groups: replica.groups,
    fsync: copy(replica.fsync),
    commit: copy(replica.commitTime),
    tornTailBytes: replica.tornTailBytes,
    repeatsAnswered: replica.repeats,
    corruptions: replica.corruptions,
    digestChecks: replica.digestChecks,
    digest: machine.digest(),
    newestMark: machine.newestMark(),
    snapshotRunning: replica.snapshotRunning,
    snapshotFailures: replica.snapshotFailures,
    snapshotDuration: copy(replica.snapshotTime),
    sparePages: 0,
    clock: clockStatus(replica),
    maintenanceRunning: replica.maintenanceDay !== 0 || replica.isTidying,
    lastMaintenanceDay: machine.lastMaintenanceDay(),
    lastMaintenanceMs: replica.lastMaintenanceMs,
    removedPackages: replica.removedPackages,
    eventLoopStallMs: stall,
    diskFreeBytes: freeBytes,
    diskFull: replica.isDiskFull,
    diskLow: freeBytes < Math.max(totalBytes * LOW_SHARE, 2 * LOG_FILE_BYTES),
    groupEntries: copy(replica.groupEntries),
    walMemoryBytes: raft.tailBytes,
    budget: machine.budgetUse(),
    stays: machine.stays.status(),
    walSlow: replica.slowSyncMs >= SLOW_FOR_MS,
    isStuck: isStuck(replica),
  }
}

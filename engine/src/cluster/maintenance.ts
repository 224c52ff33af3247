/** Snapshots and maintenance: drops past nights, restores row order, frees memory in steps. */

import { viewOf } from '../raft/entry.ts'
import type { SnapshotInfo } from '../status.ts'
import { KIND } from '../store/command.ts'
import { clockStatus, shardDay } from './keep-time.ts'
import { proposeOwn, refusalOf } from './proposals.ts'
import { isBetweenStates, observe, type Replica, SNAPSHOT_LOOK_MS } from './replica-state.ts'

/** The interval between snapshots is at least this many times the duration of the last one. */
const SNAPSHOT_REST = 10

const SNAPSHOT_RETRY_MS = 60_000

const SNAPSHOT_SOON_MS = 1_000

/** @returns whether one was started */
export function startSnapshot(replica: Replica, origin: SnapshotInfo['origin']): boolean {
  const { raft, env } = replica
  if (replica.snapshotRunning || isBetweenStates(replica)) return false
  if (origin === 'periodic' && env.clock.monotonicMs() < replica.snapshotEarliestMs) return false
  if (raft.applied === replica.snapshotIndexLast && origin === 'periodic') return false
  replica.snapshotRunning = true
  replica.snapshotOrigin = origin
  replica.snapshots.start(raft.applied, raft.appliedTerm, origin)
  return true
}

export function snapshotWritten(replica: Replica, index: number, term: number, durationMs: number): void {
  const now = replica.env.clock.monotonicMs()
  replica.snapshotRunning = false
  replica.pausesForSnapshot = false
  // The log may already begin after a newer one.
  if (replica.installing) return
  replica.snapshotIndexBefore = replica.snapshotIndexLast
  replica.snapshotIndexLast = index
  replica.nextSnapshotMs = now + replica.snapshotIntervalMs
  replica.snapshotEarliestMs = now + SNAPSHOT_REST * durationMs
  observe(replica.snapshotTime, durationMs / 1000)
  replica.log({ type: 'mark', mark: { index, term } })
}

/** @param ranOutOfPages one command changed more pages than were spare */
export function snapshotFailed(replica: Replica, reason: string, ranOutOfPages = false): void {
  const now = replica.env.clock.monotonicMs()
  const retryMs = ranOutOfPages ? SNAPSHOT_SOON_MS : SNAPSHOT_RETRY_MS
  replica.snapshotRunning = false
  replica.pausesForSnapshot = ranOutOfPages
  replica.snapshotFailures++
  replica.snapshotEarliestMs = now + retryMs
  replica.nextSnapshotMs = now + retryMs
  replica.env.log.warn({ reason }, 'snapshot failed, log kept, will retry')
}

/** Proposes to drop the nights before today. @returns whether it was proposed */
export function startMaintenance(replica: Replica, gapReason: number): boolean {
  if (refusalOf(replica) !== 0) return false
  // If shard time is ahead, its day has not begun: nights still for sale would be dropped.
  if (clockStatus(replica).state === 'suspect') {
    replica.env.log.warn({}, 'maintenance waits: shard time is ahead of the clock')
    return false
  }
  const today = shardDay(replica)
  const last = replica.machine.lastMaintenanceDay()
  if (last >= today) return false
  const body = new Uint8Array(5)
  viewOf(body).setUint32(0, today, true)
  body[4] = gapReason
  replica.maintenanceWillRemove = replica.machine.packagesBefore(today)
  if (!proposeOwn(replica, KIND.dropBefore, body)) return false
  replica.maintenanceDay = today
  return true
}

/** After a maintenance entry is applied: restores row order, frees memory in slices, takes a snapshot. */
export function finishMaintenance(replica: Replica): void {
  const day = replica.maintenanceDay
  replica.maintenanceDay = 0
  replica.isTidying = true
  replica.removedPackages += replica.maintenanceWillRemove
  replica.lastMaintenanceMs = replica.env.clock.wallMs()
  // A first maintenance that removes nothing only changes a date. That is not worth a snapshot.
  const hasWork = replica.maintenanceWillRemove > 0 || replica.machine.isUnordered()
  const ordering = replica.machine.orderTables()
  let isOrdered = false
  const step = () => {
    if (replica.isStopping) return
    if (isBetweenStates(replica)) return void replica.env.schedule.after(SNAPSHOT_LOOK_MS, step)
    // A running snapshot copies a page before it changes. Sorting waits, so that commands find spare pages.
    const waits = replica.snapshotRunning
    if (!isOrdered && !waits) {
      const { value, done } = ordering.next()
      // A new leader leaves the rest to its own next maintenance.
      isOrdered = done === true || (value !== undefined && !proposeOwn(replica, value.kind, value.body))
    }
    const more = replica.machine.sweep()
    if (!isOrdered || more) {
      replica.env.schedule.after(waits && !more ? SNAPSHOT_LOOK_MS : 1, step)
      return
    }
    replica.isTidying = false
    if (hasWork) startSnapshot(replica, 'maintenance')
    replica.onMaintained(day, replica.maintenanceWillRemove)
  }
  replica.env.schedule.after(0, step)
}

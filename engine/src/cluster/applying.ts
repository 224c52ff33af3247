/** Applies committed entries in batches, answers their writers, and compares digests with the other replicas. */

import { assert, VacancyError } from '@vacancy/shared'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  entryKind,
  entryLength,
  entryTerm,
  skipEntries,
  viewOf,
} from '../raft/entry.ts'
import { decodeConfiguration } from '../raft/membership.ts'
import { applied, applyConfiguration, handBack, nextCommitted } from '../raft/raft.ts'
import { hex } from '../snapshot/format.ts'
import type { Applied, DigestMark } from '../store/apply-context.ts'
import { decodeBulkLoad, KIND, kindOfCommand } from '../store/command.ts'
import { digestText } from '../store/digest.ts'
import { answer, sendAnswers, settleOrphans } from './answers.ts'
import { judgeDigest, noteDigest } from './digests.ts'
import { followTime } from './keep-time.ts'
import { finishMaintenance, startSnapshot } from './maintenance.ts'
import { proposeOwn } from './proposals.ts'
import { isBetweenStates, observe, type Replica, SNAPSHOT_LOOK_MS } from './replica-state.ts'

/** Replicas compare digests at most this long after a write. */
const MARK_EVERY_MS = 5_000

/** Bounds of one slice of work, so that other work does not wait long (docs/design/consensus.md#apply). */
const APPLY_COMMANDS_MAX = 1_024

const APPLY_MS_MAX = 2

/** Applies committed entries in slices. The rest follows in a later turn, so that messages are handled in between. */
export function applyCommitted(replica: Replica): void {
  if (replica.isApplying) return
  if (isHeld(replica)) return replica.onSettled?.()
  const { raft, env } = replica
  if (isPaused(replica)) {
    replica.machine.hurrySnapshot()
    return applyLater(replica, SNAPSHOT_LOOK_MS)
  }
  const placed = replica.loading
  const started = env.clock.monotonicMs()
  const commandsMax = env.sometimes?.('apply a few', 0.5) ? 3 : APPLY_COMMANDS_MAX
  let commands = 0
  while (commands < commandsMax && env.clock.monotonicMs() - started < APPLY_MS_MAX) {
    const batch = nextCommitted(raft, commandsMax - commands)
    if (!batch) break
    const count = applyBatch(replica, batch)
    commands += count
    if (count < batch.count) {
      endBefore(replica, batch, count)
      break
    }
    applied(raft, batch.firstIndex + count - 1, count, batch.bytes.length)
    observeCommits(replica)
  }
  if (commands > 0) {
    replica.machine.publish(raft.applied)
    sendAnswers(replica)
    replica.link?.onApplied()
    if (placed && raft.applied >= placed.index) replica.link?.onLoaded(placed)
    afterApply(replica)
  }
  if (isHeld(replica)) return beginLoad(replica)
  if (commands === 0) return replica.onSettled?.()
  if (raft.applied < raft.commit) applyLater(replica, 0)
  else replica.onSettled?.()
}

function applyLater(replica: Replica, delayMs: number): void {
  replica.isApplying = true
  replica.env.schedule.after(delayMs, () => {
    replica.isApplying = false
    applyCommitted(replica)
  })
}

/** Apply waits for the snapshot: the next command may change more pages than there are spare ones. */
export function isPaused({ snapshotRunning, pausesForSnapshot, machine }: Replica): boolean {
  return snapshotRunning && (pausesForSnapshot || machine.lacksSparePages())
}

/** Apply is at a bulk load whose data are not in place. */
function isHeld({ loading }: Replica): boolean {
  return loading !== undefined && loading.phase !== 'placed'
}

/** Counts the applied part of a batch that apply stopped in. The rest is delivered again. */
function endBefore(replica: Replica, batch: EntryBatch, count: number): void {
  const { raft } = replica
  const last = batch.firstIndex + count - 1
  handBack(raft, last)
  if (count === 0) return
  applied(raft, last, count, skipEntries(viewOf(batch.bytes), 0, count))
  observeCommits(replica)
}

function beginLoad(replica: Replica): void {
  const { loading, link, env, raft } = replica
  assert(loading !== undefined && raft.applied === loading.index - 1, 'all entries before a load are applied')
  assert(link !== undefined, 'only members of a shard receive loads')
  env.log.info({ index: loading.index, digest: loading.digest }, 'apply reached a bulk load')
  link.onLoadEntry(loading)
  replica.onSettled?.()
}

/** The store now holds the data of the load that apply waits at. */
export function dataPlaced(replica: Replica): void {
  const { loading } = replica
  assert(loading?.phase === 'replacing', 'an entry waits for the data')
  loading.phase = 'placed'
  applyCommitted(replica)
}

/** Time from a proposal to its last entry being applied. */
function observeCommits(replica: Replica): void {
  const { raft, proposedAt, env } = replica
  while ((proposedAt[0]?.lastIndex ?? raft.applied + 1) <= raft.applied) {
    const proposal = proposedAt.shift()
    if (proposal) observe(replica.commitTime, (env.clock.monotonicMs() - proposal.atMs) / 1000)
  }
}

/**
 * Members change when the entry that changes them is applied
 * (docs/design/consensus.md#when-a-configuration-takes-effect).
 */
function configure(replica: Replica, index: number, bytes: Uint8Array): void {
  const configuration = decodeConfiguration(bytes)
  applyConfiguration(replica.raft, index, configuration)
  replica.link?.onConfiguration(index, configuration)
}

/** @returns number of entries applied: all, or those before the first that must wait for data or for a snapshot */
function applyBatch(replica: Replica, batch: EntryBatch): number {
  const view = viewOf(batch.bytes)
  const hasOrphans = replica.orphans.size > 0
  let at = 0
  for (let i = 0; i < batch.count; i++) {
    if (isPaused(replica)) return i
    const index = batch.firstIndex + i
    const length = entryLength(view, at)
    const start = at + ENTRY_HEADER_BYTES
    const kind = entryKind(view, at)
    let result: Applied | undefined
    if (kind === ENTRY_KIND.command) {
      const command = kindOfCommand(view, start)
      if (command === KIND.bulkLoad && !takeLoad(replica, index, batch.bytes, start)) return i
      if (command !== KIND.digestCheck) replica.changedIndex = index
      result = replica.machine.apply(index, batch.bytes, start, start + length)
      if (result.index !== index + replica.machine.indexBase()) replica.repeats++
      answer(replica, index, result)
    } else answer(replica, index, undefined)
    if (hasOrphans) settleOrphans(replica, index, entryTerm(view, at), result)
    if (kind === ENTRY_KIND.configuration) configure(replica, index, batch.bytes.subarray(start, start + length))
    at = start + length
  }
  assert(at === batch.bytes.length, 'entries fill their batch')
  return batch.count
}

/** @returns whether the entry of a bulk load may be applied */
function takeLoad(replica: Replica, index: number, bytes: Uint8Array, start: number): boolean {
  const { loading } = replica
  if (!loading) {
    const digest = hex(decodeBulkLoad(bytes, start).digest)
    replica.loading = { index, digest, phase: 'looking' }
    return false
  }
  assert(loading.index === index && loading.phase === 'placed', 'loads are applied one by one')
  replica.loading = undefined
  return true
}

function afterApply(replica: Replica): void {
  const { raft, machine } = replica
  followTime(replica, machine.latestTimeMs(), false)
  compareDigests(replica)
  if (raft.applied - replica.snapshotIndexLast >= replica.snapshotTriggerCount) startSnapshot(replica, 'periodic')
  freeDeleted(replica)
  const day = machine.lastMaintenanceDay()
  if (day === replica.maintainedDay) return
  replica.maintainedDay = day
  if (day === replica.maintenanceDay) finishMaintenance(replica)
  else sweepOn(replica)
}

/** Another node led when the days were dropped: this node only frees the memory, in slices. */
function sweepOn(replica: Replica): void {
  replica.maintenanceDay = 0
  replica.lastMaintenanceMs = replica.env.clock.wallMs()
  const step = () => {
    if (!replica.isStopping && !isBetweenStates(replica) && replica.machine.sweep()) replica.env.schedule.after(1, step)
  }
  replica.env.schedule.after(0, step)
}

/** Frees the memory of deleted segments slice by slice, so that other work does not wait. */
export function freeDeleted(replica: Replica): void {
  if (replica.isFreeing || !replica.machine.hasDeleted()) return
  replica.isFreeing = true
  const step = () => {
    replica.isFreeing = false
    if (replica.isStopping || isBetweenStates(replica)) return
    // A running snapshot copies a page before it changes. Freeing waits, so that commands find spare pages.
    if (!replica.snapshotRunning) replica.machine.sweep()
    freeDeleted(replica)
  }
  replica.env.schedule.after(replica.snapshotRunning ? SNAPSHOT_LOOK_MS : 1, step)
}

/** Records the digest that another member reported. */
export function peerDigest(replica: Replica, peer: number, mark: DigestMark): void {
  noteDigest(replica.digests, peer, mark)
  compareDigests(replica)
}

/**
 * A leader logs its newest digest that a majority of the voters reported too. A leader that a majority contradicts
 * ends.
 *
 * @throws digest_mismatch
 */
function compareDigests(replica: Replica): void {
  const { raft, machine, digests, lastDigestIndex } = replica
  if (raft.role !== 'leader' || replica.isStopping) return
  for (const mark of machine.digestMarks().toReversed()) {
    if (mark.index <= lastDigestIndex) return
    const verdict = judgeDigest(digests, raft.configuration, raft.id, mark)
    if (verdict === 'agreed') return logDigest(replica, mark)
    if (verdict === 'open') continue
    const wanted = 'the digest of a majority of the voters'
    throw new VacancyError('digest_mismatch', { index: mark.index, found: digestText(mark), wanted })
  }
}

/** Has all replicas note their digests at one index, some time after the state changed. Their comparison follows. */
export function markAfterChanges(replica: Replica, now: number): void {
  const { raft, machine, changedIndex } = replica
  if (raft.role !== 'leader' || now - replica.lastMarkMs < MARK_EVERY_MS || machine.featureLevel() < 1) return
  if (changedIndex <= (machine.newestMark()?.index ?? 0)) return
  if (proposeOwn(replica, KIND.digestCheck, new Uint8Array(16))) replica.lastMarkMs = now
}

/**
 * Proposes the digest of an index. Each replica compares it with its own at that index
 * (docs/design/consensus.md#apply).
 */
function logDigest(replica: Replica, { index, lo, hi }: DigestMark): void {
  const body = new Uint8Array(16)
  const view = viewOf(body)
  view.setFloat64(0, index, true)
  view.setUint32(8, lo, true)
  view.setUint32(12, hi, true)
  if (!proposeOwn(replica, KIND.digestCheck, body)) return
  replica.digestChecks++
  replica.lastDigestIndex = index
}

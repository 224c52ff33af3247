/**
 * Entries in memory, from their proposal until they are applied: append, hand over, make durable, commit, hand out,
 * take back. What is applied is dropped; the log on disk keeps it.
 *
 *   applied ≤ handedOut ≤ commit ≤ persisted ≤ lastIndex        (A2, H5)
 *
 * Entries stay the bytes they came as, in batches of one term. Indexes are contiguous, terms never decrease (A3).
 */

import { assert } from '@vacancy/shared'
import { type EntryBatch, entryTerm, sliceBatch, viewOf } from './entry.ts'

export type RaftLog = {
  lastIndex: number
  /** Term of the last entry. */
  lastTerm: number
  /** Greatest index that is durable here. */
  persisted: number
  commit: number
  /** Greatest index that was given out to be applied; each once (A9). */
  handedOut: number
  handedOutTerm: number
  applied: number
  /** Term of the entry at `applied`: what a snapshot of that state carries. */
  appliedTerm: number
  /** Appended since the last hand-over. */
  unsent: EntryBatch[]
  /** Entries that were not given out yet, oldest first; `unsent` is their tail. */
  readonly pending: EntryBatch[]
  /** Of entries that are not applied yet: what R8 bounds. */
  unappliedBytes: number
  unappliedEntries: number
}

export type LogPosition = {
  readonly lastIndex: number
  readonly lastTerm: number
  readonly commit: number
  readonly applied: number
}

/** A log whose entries are all durable, and applied or never needed again. */
export function createLog({ lastIndex, lastTerm, commit, applied }: LogPosition): RaftLog {
  assert(applied <= commit, 'what is applied is committed (A2)')
  assert(commit <= lastIndex, 'what is committed is in the log (A2)')
  // Entries behind `applied` would have to be given out, and this log does not have them.
  assert(applied === lastIndex, 'a restored log was applied to its end')
  return {
    lastIndex,
    lastTerm,
    persisted: lastIndex,
    commit,
    handedOut: applied,
    handedOutTerm: lastTerm,
    applied,
    appliedTerm: lastTerm,
    unsent: [],
    pending: [],
    unappliedBytes: 0,
    unappliedEntries: 0,
  }
}

/**
 * Appends entries that stand one behind the other in `bytes`, all of `term`.
 *
 * @returns index of the first
 */
export function appendEntries(log: RaftLog, term: number, count: number, bytes: Uint8Array): number {
  assert(count > 0, 'a batch holds entries')
  assert(Number.isSafeInteger(log.lastIndex + count), 'indexes are safe integers (L4)')
  assert(term >= log.lastTerm, 'terms in the log never decrease (A3)')
  assert(entryTerm(viewOf(bytes), 0) === term, 'entries carry the term they are appended in')
  const batch = { firstIndex: log.lastIndex + 1, count, bytes }
  log.lastIndex += count
  log.lastTerm = term
  log.unsent.push(batch)
  log.pending.push(batch)
  log.unappliedBytes += bytes.length
  log.unappliedEntries += count
  return batch.firstIndex
}

/** Everything that was appended since the last time. */
export function takeUnsent(log: RaftLog): readonly EntryBatch[] {
  const { unsent } = log
  log.unsent = []
  return unsent
}

export function persistTo(log: RaftLog, index: number): void {
  assert(index >= log.persisted, 'what is durable never shrinks')
  assert(index <= log.lastIndex, 'what is durable is in the log')
  log.persisted = index
}

export function commitTo(log: RaftLog, index: number): void {
  assert(index >= log.commit, 'the commit index never decreases (A2)')
  assert(index <= log.persisted, 'only entries that are durable here are given out (H5)')
  log.commit = index
}

/**
 * The next committed entries, each given out once, in order (A9).
 *
 * @param countMax at most so many, so that applying them is a short turn
 */
export function giveOut(log: RaftLog, countMax: number): EntryBatch | undefined {
  const [batch] = log.pending
  if (batch === undefined || batch.firstIndex > log.commit) return undefined
  assert(batch.firstIndex === log.handedOut + 1, 'entries are applied in index order (A9)')
  const last = Math.min(batch.firstIndex + batch.count - 1, log.commit, batch.firstIndex + countMax - 1)
  const given = sliceBatch(batch, batch.firstIndex, last)
  if (given === batch) log.pending.shift()
  else log.pending[0] = sliceBatch(batch, last + 1, batch.firstIndex + batch.count - 1)
  log.handedOut = last
  log.handedOutTerm = entryTerm(viewOf(given.bytes), 0)
  return given
}

export function applyTo(log: RaftLog, index: number, entries: number, bytes: number): void {
  assert(index === log.handedOut, 'what is given out is applied before more is (A9)')
  assert(index === log.applied + entries, 'entries are applied in order, without a gap (A9)')
  log.applied = index
  log.appliedTerm = log.handedOutTerm
  log.unappliedEntries -= entries
  log.unappliedBytes -= bytes
  assert(log.unappliedEntries === log.lastIndex - log.applied, 'entries that wait are counted once')
}

/** Takes back everything behind `index`; it is nowhere on disk. */
export function takeBack(log: RaftLog, index: number, term: number): void {
  assert(index >= log.commit, 'nothing at or below the commit index is taken back (A4)')
  assert(index >= log.persisted && index <= log.lastIndex, 'only what is not durable is taken back')
  for (
    let batch = log.pending.at(-1);
    batch && batch.firstIndex + batch.count - 1 > index;
    batch = log.pending.at(-1)
  ) {
    log.pending.pop()
    const kept = batch.firstIndex > index ? undefined : sliceBatch(batch, batch.firstIndex, index)
    if (kept) log.pending.push(kept)
    log.unappliedEntries -= batch.count - (kept?.count ?? 0)
    log.unappliedBytes -= batch.bytes.length - (kept?.bytes.length ?? 0)
  }
  log.unsent = []
  log.lastIndex = index
  log.lastTerm = term
}

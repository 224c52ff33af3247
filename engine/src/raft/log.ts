/**
 * The log as the core knows it: positions, terms of all entries, and the newest entries themselves, from their arrival
 * until they are applied and for a while after it, for peers that lag. What is older is on disk.
 *
 *   firstIndex − 1 ≤ applied ≤ handedOut ≤ commit ≤ lastIndex,  handedOut ≤ persisted ≤ lastIndex       (docs/design/consensus.md#invariants, docs/design/consensus.md#hand-over)
 *
 *      on disk only        in memory                               not handed over yet
 *   ├─────────────────┼───────────────────────────────────────────┼───────────────────┤
 *   firstIndex        tail[tailHead]                              unsent              lastIndex
 *
 * Entries stay the bytes they came as, in batches of one term. Indexes are contiguous, terms never decrease
 * (docs/design/consensus.md#invariants).
 */

import { assert } from '@vacancy/shared'
import {
  ENTRY_HEADER_BYTES,
  type EntryBatch,
  entryLength,
  entryTerm,
  inspectBatch,
  sliceBatch,
  viewOf,
} from './entry.ts'

/** Entries of `term` begin at `firstIndex` and extend to the next run. */
export type TermRun = { readonly term: number; readonly firstIndex: number }

export type RaftLog = ReturnType<typeof createLog>

export type LogPosition = {
  readonly firstIndex: number
  readonly lastIndex: number
  readonly lastTerm: number
  readonly commit: number
  readonly applied: number
  readonly appliedTerm: number
  readonly runs: readonly TermRun[]
  /** The entries after `applied`. */
  readonly entries: readonly EntryBatch[]
}

/** Limit of remembered term changes; entries of older terms are treated as compacted. */
const RUNS_MAX = 10_000
/** Per-batch overhead: the objects of a small batch cost more than its bytes. */
const BATCH_OVERHEAD_BYTES = 256

function batchCost(batch: EntryBatch): number {
  return batch.bytes.length + BATCH_OVERHEAD_BYTES
}

export function lastOf(batch: EntryBatch): number {
  return batch.firstIndex + batch.count - 1
}

export function batchTerm(batch: EntryBatch): number {
  return entryTerm(viewOf(batch.bytes), 0)
}

/** A log whose entries are all durable. */
export function createLog(position: LogPosition) {
  const { lastIndex, lastTerm, commit, applied, appliedTerm } = position
  assert(applied <= commit, 'applied entries are committed')
  assert(commit <= lastIndex, 'committed entries are in the log')
  assert(position.firstIndex <= applied + 1, 'unapplied entries can be read')
  const log = {
    /** The oldest entry that can still be read; the term of the one before it is known. */
    firstIndex: position.firstIndex,
    lastIndex: applied,
    /** Term of the last entry. */
    lastTerm: appliedTerm,
    /** Greatest index that is durable and has the same entry on disk as in memory. */
    persisted: applied,
    commit,
    /** Greatest index returned for application; each one once (docs/design/consensus.md#invariants). */
    handedOut: applied,
    applied,
    /** Term of the entry at `applied`, which a snapshot of that state contains. */
    appliedTerm,
    /** Ascending; the first one covers firstIndex − 1. */
    runs: restoredRuns(position),
    /** Appended since the last hand-over. */
    unsent: [] as EntryBatch[],
    /** Entries in memory, contiguous up to `lastIndex`; those before `tailHead` were dropped. */
    tail: [] as (EntryBatch | undefined)[],
    tailHead: 0,
    /** Memory cost of the tail (batchCost), applied entries included. */
    tailBytes: 0,
    /** Cost of unapplied entries: what docs/design/consensus.md#replication bounds. */
    unappliedBytes: 0,
    unappliedEntries: 0,
    /**
     * Indexes of unapplied configuration entries: one, or a few after an election
     * (docs/design/consensus.md#when-a-configuration-takes-effect).
     */
    configurations: [] as number[],
  }
  for (const batch of position.entries) appendBatch(log, batch)
  assert(log.lastIndex === lastIndex, 'the unapplied entries extend to the end of the log')
  assert(log.lastTerm === lastTerm, 'the last entry has the given term')
  log.unsent = []
  log.persisted = lastIndex
  return log
}

/** Terms up to `applied`; later entries carry their own. */
function restoredRuns({ firstIndex, applied, appliedTerm, runs }: LogPosition): TermRun[] {
  const known = runs.filter((run) => run.firstIndex <= applied)
  const [first] = known
  if (first === undefined || first.firstIndex >= firstIndex) {
    assert(firstIndex === applied + 1, 'the terms of readable entries and of the one before them are known')
    return [{ term: appliedTerm, firstIndex: applied }]
  }
  assert(known.at(-1)?.term === appliedTerm, 'the applied entry has the given term')
  return known
}

/** @returns −1 when the log does not know (any more) */
export function termAt(log: RaftLog, index: number): number {
  if (index < log.firstIndex - 1 || index > log.lastIndex) return -1
  const { runs } = log
  let at = runs.length - 1
  while (at > 0 && (runs[at] as TermRun).firstIndex > index) at--
  return (runs[at] as TermRun).term
}

/**
 * The greatest index ≤ `index` whose term is at most `term` (docs/design/consensus.md#replication). Where terms are no
 * longer known, `index` is accepted. If no known entry qualifies, the index before all of them.
 */
export function lastIndexOfTerm(log: RaftLog, index: number, term: number): number {
  const { runs } = log
  if (index < log.firstIndex - 1) return index
  let last = Math.min(index, log.lastIndex)
  for (let at = runs.length - 1; at >= 0; at--) {
    const run = runs[at] as TermRun
    if (run.firstIndex > last) continue
    if (run.term <= term) return last
    last = run.firstIndex - 1
  }
  return Math.max(0, log.firstIndex - 2)
}

/**
 * Appends the entries concatenated in `bytes`, all of `term`.
 *
 * @returns index of the first
 */
export function appendEntries(log: RaftLog, term: number, count: number, bytes: Uint8Array): number {
  assert(count > 0, 'a batch holds entries')
  assert(entryTerm(viewOf(bytes), 0) === term, 'entries have the term they are appended in')
  const firstIndex = log.lastIndex + 1
  push(log, { firstIndex, count, bytes }, term)
  return firstIndex
}

/** Appends a received batch: every entry is checked once. */
export function appendBatch(log: RaftLog, batch: EntryBatch): void {
  assert(batch.firstIndex === log.lastIndex + 1, 'indexes are contiguous')
  const configurations = inspectBatch(batch)
  push(log, batch, batchTerm(batch))
  for (const index of configurations) log.configurations.push(index)
}

function push(log: RaftLog, batch: EntryBatch, term: number): void {
  assert(Number.isSafeInteger(log.lastIndex + batch.count), 'indexes are safe integers')
  assert(term >= log.lastTerm, 'terms in the log never decrease')
  if (term > (log.runs[log.runs.length - 1] as TermRun).term) {
    log.runs.push({ term, firstIndex: batch.firstIndex })
    if (log.runs.length > RUNS_MAX) compactTo(log, Math.min((log.runs[1] as TermRun).firstIndex + 1, log.applied + 1))
  }
  log.lastIndex += batch.count
  log.lastTerm = term
  log.unsent.push(batch)
  log.tail.push(batch)
  log.tailBytes += batchCost(batch)
  log.unappliedBytes += batch.bytes.length
  log.unappliedEntries += batch.count
}

/** Everything appended since the last call. */
export function takeUnsent(log: RaftLog): readonly EntryBatch[] {
  const { unsent } = log
  log.unsent = []
  return unsent
}

export function persistTo(log: RaftLog, index: number): void {
  assert(index >= log.persisted, 'the durable index never decreases')
  assert(index <= log.lastIndex, 'durable entries are in the log')
  log.persisted = index
}

export function commitTo(log: RaftLog, index: number): void {
  assert(index >= log.commit, 'the commit index never decreases')
  assert(index <= log.lastIndex, 'committed entries are in the log')
  log.commit = index
}

/**
 * The next committed entries, each returned once, in order (docs/design/consensus.md#invariants), and only when they
 * are durable here (docs/design/consensus.md#hand-over).
 *
 * @param countMax the limit per call, so that applying them takes one short turn
 */
export function giveOut(log: RaftLog, countMax: number, bound: number): EntryBatch | undefined {
  const next = log.handedOut + 1
  if (next > bound) return undefined
  const at = positionOf(log, next)
  const batch = log.tail[at] as EntryBatch
  assert(batch.firstIndex <= next && next <= lastOf(batch), 'entries are applied in index order')
  const last = Math.min(lastOf(batch), bound, next + countMax - 1)
  const given = sliceBatch(batch, next, last)
  if (given !== batch) splitAt(log, at, next, last)
  log.handedOut = last
  return given
}

/** Makes the rest accessible without walking over the returned entries. */
function splitAt(log: RaftLog, at: number, from: number, to: number): void {
  const batch = log.tail[at] as EntryBatch
  const parts: EntryBatch[] = []
  if (batch.firstIndex < from) parts.push(sliceBatch(batch, batch.firstIndex, from - 1))
  parts.push(sliceBatch(batch, from, to))
  if (to < lastOf(batch)) parts.push(sliceBatch(batch, to + 1, lastOf(batch)))
  log.tail.splice(at, 1, ...parts)
  log.tailBytes += (parts.length - 1) * BATCH_OVERHEAD_BYTES
}

/** Entries after `index` were returned and not applied: they are returned again. */
export function takeBack(log: RaftLog, index: number): void {
  assert(index >= log.applied, 'applied entries are not taken back')
  assert(index <= log.handedOut, 'only returned entries are taken back')
  log.handedOut = index
}

export function applyTo(log: RaftLog, index: number, entries: number, bytes: number): void {
  assert(index === log.handedOut, 'returned entries are applied before more are returned')
  assert(index === log.applied + entries, 'entries are applied in order, without a gap')
  log.applied = index
  log.appliedTerm = termAt(log, index)
  log.unappliedEntries -= entries
  log.unappliedBytes -= bytes
  assert(log.unappliedEntries === log.lastIndex - log.applied, 'unapplied entries are counted once')
  while (log.configurations.length > 0 && log.configurations[0] <= index) log.configurations.shift()
}

/** Drops applied and durable entries from memory, oldest first, until the tail costs no more than `bytesMax`. */
export function trimTail(log: RaftLog, bytesMax: number): void {
  const kept = Math.min(log.applied, log.persisted)
  while (log.tailBytes > bytesMax && log.tailHead < log.tail.length) {
    const batch = log.tail[log.tailHead] as EntryBatch
    if (lastOf(batch) > kept) break
    dropOldest(log, batch)
  }
  tidyTail(log)
}

function dropOldest(log: RaftLog, batch: EntryBatch): void {
  log.tail[log.tailHead++] = undefined
  log.tailBytes -= batchCost(batch)
}

/** The slots of dropped batches are removed when they are the majority: one move per batch on average. */
function tidyTail(log: RaftLog): void {
  if (log.tailHead === log.tail.length) {
    log.tail.length = 0
    log.tailHead = 0
  } else if (log.tailHead > 64 && log.tailHead * 2 > log.tail.length) {
    log.tail.splice(0, log.tailHead)
    log.tailHead = 0
  }
}

/** First index of the entries in memory; lastIndex + 1 if it is empty. */
export function tailFirst(log: RaftLog): number {
  return log.tail[log.tailHead]?.firstIndex ?? log.lastIndex + 1
}

/** Unapplied entries, oldest first, in their original batches: the first may begin with applied ones. */
export function unappliedBatches(log: RaftLog): readonly EntryBatch[] {
  if (log.applied === log.lastIndex) return []
  return log.tail.slice(positionOf(log, log.applied + 1)) as EntryBatch[]
}

/** Position in the tail of the batch with this index. */
function positionOf(log: RaftLog, index: number): number {
  let low = log.tailHead
  let high = log.tail.length - 1
  assert(low <= high && (log.tail[low] as EntryBatch).firstIndex <= index, 'the entry is in memory')
  // Usually it is the newest one.
  if ((log.tail[high] as EntryBatch).firstIndex <= index) return high
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if ((log.tail[middle] as EntryBatch).firstIndex <= index) low = middle
    else high = middle - 1
  }
  return low
}

/**
 * Entries from `from` on that are in memory, at most `bytesMax` bytes, or a single larger entry
 * (docs/design/consensus.md#replication).
 */
export function readTail(log: RaftLog, from: number, bytesMax: number): EntryBatch[] {
  const batches: EntryBatch[] = []
  if (from > log.lastIndex) return batches
  let bytes = 0
  for (let at = positionOf(log, from); at < log.tail.length; at++) {
    const batch = log.tail[at] as EntryBatch
    const rest = batch.firstIndex < from ? sliceBatch(batch, from, lastOf(batch)) : batch
    if (bytes + rest.bytes.length > bytesMax) {
      if (batches.length === 0) batches.push(firstEntries(rest, bytesMax))
      break
    }
    batches.push(rest)
    bytes += rest.bytes.length
  }
  return batches
}

/** The entries of a batch that fit into `bytesMax`; one at least. */
function firstEntries(batch: EntryBatch, bytesMax: number): EntryBatch {
  const view = viewOf(batch.bytes)
  let at = ENTRY_HEADER_BYTES + entryLength(view, 0)
  let count = 1
  for (; count < batch.count; count++) {
    at += ENTRY_HEADER_BYTES + entryLength(view, at)
    if (at > bytesMax) break
  }
  return sliceBatch(batch, batch.firstIndex, batch.firstIndex + count - 1)
}

/**
 * Removes entries from `index` on: a leader has different ones there (docs/design/consensus.md#replication), or the
 * disk had no room for them.
 */
export function truncateFrom(log: RaftLog, index: number): void {
  assert(index > log.commit, 'nothing at or below the commit index is removed')
  assert(index <= log.lastIndex, 'only existing entries are removed')
  for (let batch = log.tail.at(-1); batch && lastOf(batch) >= index; batch = log.tail.at(-1)) {
    log.tail.pop()
    log.tailBytes -= batchCost(batch)
    log.unappliedEntries -= batch.count
    log.unappliedBytes -= batch.bytes.length
    if (batch.firstIndex >= index) continue
    const kept = sliceBatch(batch, batch.firstIndex, index - 1)
    log.tail.push(kept)
    log.tailBytes += batchCost(kept)
    log.unappliedEntries += kept.count
    log.unappliedBytes += kept.bytes.length
  }
  const last = log.unsent.findIndex((batch) => lastOf(batch) >= index)
  if (last >= 0) {
    const batch = log.unsent[last] as EntryBatch
    log.unsent.length = last
    if (batch.firstIndex < index) log.unsent.push(sliceBatch(batch, batch.firstIndex, index - 1))
  }
  log.lastIndex = index - 1
  while ((log.runs.at(-1) as TermRun).firstIndex >= index) log.runs.pop()
  log.lastTerm = (log.runs.at(-1) as TermRun).term
  log.persisted = Math.min(log.persisted, log.lastIndex)
  while ((log.configurations.at(-1) ?? 0) >= index) log.configurations.pop()
}

/** The log on disk now begins at `firstIndex`. */
export function compactTo(log: RaftLog, firstIndex: number): void {
  if (firstIndex <= log.firstIndex) return
  assert(firstIndex <= log.applied + 1, 'only applied entries are compacted')
  log.firstIndex = firstIndex
  while (log.runs.length > 1 && (log.runs[1] as TermRun).firstIndex < firstIndex) log.runs.shift()
  for (let batch = log.tail[log.tailHead]; batch && lastOf(batch) < firstIndex; batch = log.tail[log.tailHead]) {
    dropOldest(log, batch)
  }
  tidyTail(log)
}

/** The state is that of a snapshot, with no entries after it. */
export function restartLog(log: RaftLog, index: number, term: number): void {
  assert(index > log.commit, 'a snapshot moves the log forward')
  assert(log.unsent.length === 0, 'a hand-over never carries both a snapshot and entries')
  log.firstIndex = index + 1
  log.lastIndex = index
  log.lastTerm = term
  log.persisted = index
  log.commit = index
  log.handedOut = index
  log.applied = index
  log.appliedTerm = term
  log.runs = [{ term, firstIndex: index }]
  log.tail.length = 0
  log.tailHead = 0
  log.tailBytes = 0
  log.unappliedBytes = 0
  log.unappliedEntries = 0
  log.configurations.length = 0
}

/**
 * docs/design/consensus.md#invariants: repeated entries equal the existing ones. Checked as far as they are in memory.
 */
export function assertSameEntries(log: RaftLog, batch: EntryBatch): void {
  const first = Math.max(batch.firstIndex, tailFirst(log))
  const last = Math.min(lastOf(batch), log.lastIndex)
  for (let from = first; from <= last; ) {
    const here = log.tail[positionOf(log, from)] as EntryBatch
    const to = Math.min(last, lastOf(here))
    const mine = sliceBatch(here, from, to).bytes
    const theirs = sliceBatch(batch, from, to).bytes
    assert(mine.length === theirs.length, 'an index and a term identify one entry')
    for (let at = 0; at < mine.length; at++) {
      assert(mine[at] === theirs[at], 'an index and a term identify one entry')
    }
    from = to + 1
  }
}

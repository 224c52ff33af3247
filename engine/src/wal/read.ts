/**
 * Reads entries back from the log during writes, for a peer that lags behind the entries in memory
 * (docs/design/consensus.md#replication, docs/design/storage.md#log-compaction). Reading does not block the writing
 * thread. A replaced entry is in the log before its replacement and has another term, so the caller passes the terms of
 * the entries (docs/design/consensus.md#invariants).
 *
 * A file is read from its beginning, since only records show where they end. The position of the last read is
 * remembered, so that a peer that catches up reads each file once.
 */

import { type Disk, errnoOf } from '../env.ts'
import { ENTRY_HEADER_BYTES, type EntryBatch, entryLength, entryTerm } from '../raft/entry.ts'
import type { TermRun } from './payload.ts'
import { FILE_HEADER_BYTES } from './record.ts'
import { forEachEntries, listLogFiles } from './scan.ts'

/** Entries `firstIndex` … `lastIndex`, all committed, of at most `bytesMax` bytes but for a single one. */
export type LogAsk = {
  readonly firstIndex: number
  readonly lastIndex: number
  readonly bytesMax: number
  /** Their terms, ascending; the first run begins at or before `firstIndex`. */
  readonly terms: readonly TermRun[]
}

/** Where reads stopped, by the index that comes next. */
export type LogCursors = Map<number, { readonly sequence: number; readonly offset: number }>

const CURSORS_MAX = 32

type Reading = {
  readonly ask: LogAsk
  readonly found: EntryBatch[]
  bytes: number
  next: number
  /** The entry that comes next does not fit behind the others. */
  isFull: boolean
}

/**
 * Reads entries. Where the log begins later, also because compaction deletes files meanwhile, the answer is
 * `'compacted'`: then the peer gets a snapshot.
 *
 * @param seed of the records' checksums (record.ts, checksumSeed)
 * @returns batches of one term each, contiguous from `firstIndex`
 */
export function readEntries(
  disk: Disk,
  directory: string,
  seed: number,
  cursors: LogCursors,
  ask: LogAsk,
): readonly EntryBatch[] | 'compacted' {
  const reading: Reading = { ask, found: [], bytes: 0, next: ask.firstIndex, isFull: false }
  const cursor = cursors.get(ask.firstIndex)
  cursors.delete(ask.firstIndex)
  try {
    const files = listLogFiles(disk, directory)
    const start = files.findLastIndex((file) => file.firstIndex <= ask.firstIndex)
    for (const file of start < 0 ? [] : files.slice(start)) {
      if (isDone(reading)) break
      const from = cursor?.sequence === file.sequence ? cursor.offset : FILE_HEADER_BYTES
      const offset = forEachEntries(disk, file, seed, from, (first, count, view, at) => {
        take(reading, view, at, first, count)
        return !isDone(reading)
      })
      if (cursors.size >= CURSORS_MAX) cursors.delete(cursors.keys().next().value as number)
      if (isDone(reading)) cursors.set(reading.next, { sequence: file.sequence, offset })
    }
  } catch (error) {
    // Compaction deletes files, oldest first, regardless of readers.
    if (errnoOf(error) !== 'ENOENT') throw error
  }
  return reading.found.length > 0 ? reading.found : 'compacted'
}

function isDone({ ask, next, isFull }: Reading): boolean {
  return next > ask.lastIndex || isFull
}

/** Copies what is wanted of the entries of a record, in batches of one term. */
function take(reading: Reading, view: DataView, start: number, first: number, count: number): void {
  const { ask, found } = reading
  let begin = start
  let beginIndex = reading.next
  let at = start
  const close = (): void => {
    if (reading.next === beginIndex) return
    const bytes = new Uint8Array(view.buffer, view.byteOffset + begin, at - begin).slice()
    found.push({ firstIndex: beginIndex, count: reading.next - beginIndex, bytes })
    beginIndex = reading.next
  }
  for (let index = first; index < first + count && !isDone(reading); index++) {
    const length = ENTRY_HEADER_BYTES + entryLength(view, at)
    const isWanted = index === reading.next && entryTerm(view, at) === termOf(ask.terms, index)
    const isTurn = reading.next > beginIndex && (!isWanted || termOf(ask.terms, index) !== termOf(ask.terms, index - 1))
    if (isTurn) close()
    if (isWanted && reading.bytes > 0 && reading.bytes + length > ask.bytesMax) {
      reading.isFull = true
      break
    }
    if (isWanted) {
      if (reading.next === beginIndex) begin = at
      reading.next++
      reading.bytes += length
    }
    at += length
  }
  close()
}

function termOf(terms: readonly TermRun[], index: number): number {
  for (let i = terms.length - 1; i >= 0; i--) {
    const run = terms[i] as TermRun
    if (run.firstIndex <= index) return run.term
  }
  return 0
}

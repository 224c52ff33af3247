/**
 * One log entry as bytes, the same in memory, in the log files and between nodes (docs/design/storage.md#log-files).
 *
 *   offset  size  field
 *   0       8     term, u64 little endian
 *   8       1     kind (ENTRY_KIND)
 *   9       4     length of what follows, u32
 *   13      n     bytes: the command, nothing, or a configuration
 *
 * Entries are kept as batches of such bytes, never as objects: at a million entries per second, one object each would
 * dominate the cost.
 */

import { assert } from '@vacancy/shared'

export const ENTRY_HEADER_BYTES = 13
/** docs/design/consensus.md#limits */
export const ENTRY_BYTES_MAX = 1024 * 1024

export const ENTRY_KIND = { command: 1, empty: 2, configuration: 3 } as const
export type EntryKind = (typeof ENTRY_KIND)[keyof typeof ENTRY_KIND]

const KIND_AT = 8
const LENGTH_AT = 9

/** Entries `firstIndex` … `firstIndex + count − 1`, concatenated in `bytes`. */
export type EntryBatch = { readonly firstIndex: number; readonly count: number; readonly bytes: Uint8Array }

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/**
 * Reads an unsigned 64-bit number that fits a safe integer (docs/design/consensus.md#determinism); −1 when it does not.
 */
export function readU64(view: DataView, at: number): number {
  const high = view.getUint32(at + 4, true)
  return high < 2 ** 21 ? high * 2 ** 32 + view.getUint32(at, true) : -1
}

export function writeU64(view: DataView, at: number, value: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, 'terms, indexes and sequence numbers are safe integers')
  view.setUint32(at, value % 2 ** 32, true)
  view.setUint32(at + 4, Math.floor(value / 2 ** 32), true)
}

export function entryTerm(view: DataView, at: number): number {
  return readU64(view, at)
}

export function entryKind(view: DataView, at: number): number {
  return view.getUint8(at + KIND_AT)
}

/** Length of the entry's payload, without its header. */
export function entryLength(view: DataView, at: number): number {
  return view.getUint32(at + LENGTH_AT, true)
}

/** Writes a header; the payload follows at `at + ENTRY_HEADER_BYTES`. */
export function writeEntryHeader(view: DataView, at: number, term: number, kind: EntryKind, length: number): void {
  writeU64(view, at, term)
  view.setUint8(at + KIND_AT, kind)
  view.setUint32(at + LENGTH_AT, length, true)
}

/** One entry as a batch with its own bytes. */
export function encodeEntry(term: number, kind: EntryKind, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(ENTRY_HEADER_BYTES + payload.length)
  writeEntryHeader(viewOf(bytes), 0, term, kind, payload.length)
  bytes.set(payload, ENTRY_HEADER_BYTES)
  return bytes
}

/**
 * Where the entry `skip` entries after the one at `start` begins.
 *
 * @returns the offset; `end` when the entries end there
 */
export function skipEntries(view: DataView, start: number, skip: number): number {
  let at = start
  for (let i = 0; i < skip; i++) at += ENTRY_HEADER_BYTES + entryLength(view, at)
  return at
}

/** Entries `from` … `to` of a batch, sharing its bytes. */
export function sliceBatch(batch: EntryBatch, from: number, to: number): EntryBatch {
  const last = batch.firstIndex + batch.count - 1
  assert(from >= batch.firstIndex && to <= last && from <= to, 'a slice is within its batch')
  if (from === batch.firstIndex && to === last) return batch
  const view = viewOf(batch.bytes)
  const start = skipEntries(view, 0, from - batch.firstIndex)
  const end = skipEntries(view, start, to - from + 1)
  return { ...batch, firstIndex: from, count: to - from + 1, bytes: batch.bytes.subarray(start, end) }
}

const NO_INDEXES: readonly number[] = []

/**
 * Validates a batch that was received or read: complete entries of one term fill its bytes exactly
 * (docs/design/consensus.md#invariants).
 *
 * @returns indexes of the configuration entries in it, which are rare
 */
export function inspectBatch({ firstIndex, count, bytes }: EntryBatch): readonly number[] {
  assert(count > 0, 'a batch holds entries')
  const view = viewOf(bytes)
  const term = entryTerm(view, 0)
  let configurations = NO_INDEXES
  let at = 0
  for (let i = 0; i < count; i++) {
    assert(at + ENTRY_HEADER_BYTES <= bytes.length, 'a batch holds as many entries as its count')
    assert(entryTerm(view, at) === term, 'all entries of a batch have the same term')
    if (entryKind(view, at) === ENTRY_KIND.configuration) configurations = [...configurations, firstIndex + i]
    at += ENTRY_HEADER_BYTES + entryLength(view, at)
  }
  assert(at === bytes.length, 'entries fill their batch')
  return configurations
}

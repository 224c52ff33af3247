/**
 * What the records of the log say: payloads as bytes and as values (docs/design/storage.md#log-files).
 *
 *   entries        first index u64 · count u32 · entries (raft/entry.ts)
 *   hard state     term u64 · vote u64 · commit u64
 *   snapshot mark  index u64 · term u64
 *   file end       last index u64
 *   identity       cluster id 16 · incarnation 16 · ordered codec hash 32
 */

import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength, entryTerm, readU64, writeU64 } from '../raft/entry.ts'
import { CLUSTER_ID_BYTES, CODEC_HASH_BYTES, INCARNATION_BYTES, type LogIdentity } from './record.ts'

export const ENTRIES_HEADER_BYTES = 12
export const HARD_STATE_BYTES = 24
export const SNAPSHOT_MARK_BYTES = 16
export const FILE_END_BYTES = 8
export const IDENTITY_BYTES = CLUSTER_ID_BYTES + INCARNATION_BYTES + CODEC_HASH_BYTES

/** What a voter must not forget. `vote` is a raft id, 0 for none. */
export type HardState = { readonly term: number; readonly vote: number; readonly commit: number }

/** A snapshot that is whole on disk; index 0 for the beginning of an empty shard. */
export type SnapshotMark = { readonly index: number; readonly term: number }

/** Entries of `term` begin at `firstIndex` and continue up to the next run. */
export type TermRun = { readonly term: number; readonly firstIndex: number }

export function writeHardState(view: DataView, at: number, state: HardState): void {
  writeU64(view, at, state.term)
  writeU64(view, at + 8, state.vote)
  writeU64(view, at + 16, state.commit)
}

export function writeSnapshotMark(view: DataView, at: number, mark: SnapshotMark): void {
  writeU64(view, at, mark.index)
  writeU64(view, at + 8, mark.term)
}

export function writeIdentity(bytes: Uint8Array, at: number, identity: LogIdentity): void {
  bytes.set(identity.clusterId, at)
  bytes.set(identity.incarnation, at + CLUSTER_ID_BYTES)
  bytes.set(identity.codecHash, at + CLUSTER_ID_BYTES + INCARNATION_BYTES)
}

/** @returns undefined when a payload of `length` bytes is no hard state */
export function readHardState(view: DataView, at: number, length: number): HardState | undefined {
  if (length !== HARD_STATE_BYTES) return undefined
  const state = { term: readU64(view, at), vote: readU64(view, at + 8), commit: readU64(view, at + 16) }
  return state.term < 0 || state.vote < 0 || state.commit < 0 ? undefined : state
}

export function readSnapshotMark(view: DataView, at: number, length: number): SnapshotMark | undefined {
  if (length !== SNAPSHOT_MARK_BYTES) return undefined
  const mark = { index: readU64(view, at), term: readU64(view, at + 8) }
  return mark.index < 0 || mark.term < 0 ? undefined : mark
}

export function readIdentity(bytes: Uint8Array, at: number, length: number): LogIdentity | undefined {
  if (length !== IDENTITY_BYTES) return undefined
  const incarnationAt = at + CLUSTER_ID_BYTES
  const codecHashAt = incarnationAt + INCARNATION_BYTES
  return {
    clusterId: bytes.slice(at, incarnationAt),
    incarnation: bytes.slice(incarnationAt, codecHashAt),
    codecHash: bytes.slice(codecHashAt, codecHashAt + CODEC_HASH_BYTES),
  }
}

export type EntriesSummary = {
  readonly firstIndex: number
  readonly lastIndex: number
  readonly runs: readonly TermRun[]
  /** Indexes of the entries that change the membership. */
  readonly configurations: readonly number[]
}

/** Walks over all entries of a payload. @returns undefined when they do not fill it exactly or go back in term */
export function summarizeEntries(view: DataView, start: number, end: number): EntriesSummary | undefined {
  if (end - start < ENTRIES_HEADER_BYTES) return undefined
  const firstIndex = readU64(view, start)
  const count = view.getUint32(start + 8, true)
  if (firstIndex < 1 || count === 0) return undefined
  const runs: TermRun[] = []
  const configurations: number[] = []
  let at = start + ENTRIES_HEADER_BYTES
  let term = 0
  for (let i = 0; i < count; i++) {
    if (at + ENTRY_HEADER_BYTES > end) return undefined
    const entryOf = entryTerm(view, at)
    const kind = entryKind(view, at)
    if (entryOf < 1 || entryOf < term || kind < ENTRY_KIND.command || kind > ENTRY_KIND.configuration) return undefined
    if (entryOf > term) runs.push({ term: entryOf, firstIndex: firstIndex + i })
    if (kind === ENTRY_KIND.configuration) configurations.push(firstIndex + i)
    term = entryOf
    at += ENTRY_HEADER_BYTES + entryLength(view, at)
  }
  return at === end ? { firstIndex, lastIndex: firstIndex + count - 1, runs, configurations } : undefined
}

/** Helpers of log tests: an identity, entries with recognizable content, and reading everything back. */

import { type Disk, type Env, errnoOf } from '../env.ts'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  entryLength,
  entryTerm,
  viewOf,
  writeEntryHeader,
} from '../raft/entry.ts'
import { openWal } from '../wal/open.ts'
import type { LogIdentity } from '../wal/record.ts'
import { type LogScan, replayEntries } from '../wal/scan.ts'
import type { WalOptions } from '../wal/wal.ts'

export const IDENTITY: LogIdentity = {
  clusterId: Uint8Array.from({ length: 16 }, (_, i) => i + 1),
  incarnation: Uint8Array.from({ length: 16 }, (_, i) => 200 - i),
  codecHash: Uint8Array.from({ length: 32 }, (_, i) => i * 7),
}

/** Small enough that a few groups fill a file. */
export const SMALL: WalOptions = { fileBytes: 8192, reserveBytes: 512, prepareSyncBytes: 2048 }

/** Entries of one term whose content names their index and term; `bytes` makes them longer. */
export function entries(firstIndex: number, count: number, term: number, bytes = 8, salt = 0): EntryBatch {
  const all = new Uint8Array(count * (ENTRY_HEADER_BYTES + bytes))
  const view = viewOf(all)
  for (let i = 0; i < count; i++) {
    const at = i * (ENTRY_HEADER_BYTES + bytes)
    writeEntryHeader(view, at, term, ENTRY_KIND.command, bytes)
    for (let j = 0; j < bytes; j++) all[at + ENTRY_HEADER_BYTES + j] = ((firstIndex + i) * 31 + j * 7 + salt) & 255
  }
  return { firstIndex, count, bytes: all }
}

/** Each entry of a batch as text: index, term and content. */
export function textsOf(firstIndex: number, count: number, bytes: Uint8Array, start = 0): string[] {
  const texts: string[] = []
  const view = viewOf(bytes)
  for (let i = 0, at = start; i < count; i++) {
    const length = entryLength(view, at)
    const content = bytes.subarray(at + ENTRY_HEADER_BYTES, at + ENTRY_HEADER_BYTES + length)
    texts.push(`${firstIndex + i}@${entryTerm(view, at)}:${Buffer.from(content).toString('hex')}`)
    at += ENTRY_HEADER_BYTES + length
  }
  return texts
}

export function batchTexts(batches: readonly EntryBatch[]): string[] {
  return batches.flatMap((batch) => textsOf(batch.firstIndex, batch.count, batch.bytes))
}

export function replayTexts(disk: Disk, scan: LogScan, from = scan.firstIndex): string[] {
  const texts: string[] = []
  replayEntries(disk, scan, from, (firstIndex, count, bytes, start) => {
    texts.push(...textsOf(firstIndex, count, bytes, start))
  })
  return texts
}

/** The outcome of opening a log: its content, or the code and message of the error. */
export type Opened = {
  code: string
  message: string
  texts: string[]
  term: number
  vote: number
  commit: number
  markIndex: number
}

export function tryOpen(env: Env, directory: string, options: WalOptions = SMALL, isClean = false): Opened {
  try {
    const { wal, recovered } = openWal(env, directory, IDENTITY, { ...options, isClean })
    const { term, vote, commit } = recovered.hardState
    const texts = replayTexts(env.disk, recovered.scan)
    return { code: '', message: '', texts, term, vote, commit, markIndex: wal.mark.index }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const code = 'code' in error && typeof error.code === 'string' ? error.code : errnoOf(error)
    if (code === '') throw error
    return { code, message: error.message, texts: [], term: 0, vote: 0, commit: 0, markIndex: 0 }
  }
}

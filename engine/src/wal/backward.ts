/**
 * Reads the log from its end to its beginning, a part at a time, for the history of a night (history/night-log.ts).
 * Reading does not block the writing thread. Only records show where they end, so each part begins at the first place
 * that is a record by its checksum, and the part before it ends there.
 */

import { type Disk, errnoOf, readFully } from '../env.ts'
import { readU64, viewOf } from '../raft/entry.ts'
import { ENTRIES_HEADER_BYTES } from './payload.ts'
import {
  createRecordView,
  FILE_HEADER_BYTES,
  isSelfValid,
  PAYLOAD_BYTES_MAX,
  RECORD_HEADER_BYTES,
  RECORD_TYPE,
  readRecordHeader,
  recordBytes,
} from './record.ts'
import { type FileReport, listLogFiles } from './scan.ts'

/** Records before `offset` of a file count, and of their entries those below `below`: later records have the others. */
export type LogPosition = { readonly sequence: number; readonly offset: number; readonly below: number }

/** Every part has the whole of the last record before its end. */
const LONGEST_RECORD_BYTES = recordBytes(PAYLOAD_BYTES_MAX)
const PART_BYTES = 2 * LONGEST_RECORD_BYTES
/** Zeros behind the data of the last file are skipped in steps of this size. */
const ZEROS_BYTES = 1024 * 1024

export type LogPart = {
  /** Where the part ends; undefined without log files. */
  readonly end: { readonly sequence: number; readonly offset: number } | undefined
  /** Where the part before this one ends; undefined at the beginning of the log. */
  readonly before: { readonly sequence: number; readonly offset: number } | undefined
  readonly bytes: number
  /** The first index that the log may have; 0 without log files. */
  readonly retainedFrom: number
}

/**
 * Visits the records with entries of one part, in the order of the file.
 *
 * @param end undefined for the end of the log
 * @param seed of the records' checksums (record.ts, checksumSeed)
 */
export function readPartBefore(
  disk: Disk,
  directory: string,
  seed: number,
  end: Pick<LogPosition, 'sequence' | 'offset'> | undefined,
  visit: (firstIndex: number, count: number, bytes: Uint8Array, start: number) => void,
): LogPart {
  const all = listLogFiles(disk, directory)
  const retainedFrom = all[0]?.firstIndex ?? 0
  const files = all.filter(({ sequence }) => !end || sequence <= end.sequence)
  const file = files.at(-1)
  if (!file) return { end: undefined, before: undefined, bytes: 0, retainedFrom }
  const { sequence } = file
  const limit = end?.sequence === sequence ? Math.min(end.offset, file.bytes) : file.bytes
  try {
    const { first, bytes } = readPart(disk, file, seed, limit, visit)
    const previous = files.at(-2)
    const earlier = previous && { sequence: previous.sequence, offset: previous.bytes }
    const before = first > FILE_HEADER_BYTES ? { sequence, offset: first } : earlier
    return { end: { sequence, offset: limit }, before, bytes, retainedFrom }
  } catch (error) {
    // Compaction deletes files, oldest first, regardless of readers.
    if (errnoOf(error) !== 'ENOENT') throw error
    return { end: undefined, before: undefined, bytes: 0, retainedFrom }
  }
}

type Visit = Parameters<typeof readPartBefore>[4]

/** @returns the offset of the first record of the part; that of the end of the header when none is before it */
function readPart(disk: Disk, file: FileReport, seed: number, limit: number, visit: Visit) {
  const descriptor = disk.open(file.path, 'read')
  try {
    const end = endOfData(disk, descriptor, limit)
    const start = Math.max(FILE_HEADER_BYTES, end - PART_BYTES)
    const bytes = new Uint8Array(Math.max(0, end - start))
    const length = readFully(disk, descriptor, bytes, 0, bytes.length, start)
    const view = viewOf(bytes)
    const record = createRecordView()
    const isRecord = (at: number): boolean =>
      at + RECORD_HEADER_BYTES <= length &&
      readRecordHeader(record, view, at) &&
      at + record.bytes <= length &&
      isSelfValid(record, bytes, seed)
    let at = 0
    while (at < length && !isRecord(at)) at += 8
    // Nothing valid is left towards the beginning of the file.
    if (at >= length)
      return { first: start === FILE_HEADER_BYTES ? start : start + LONGEST_RECORD_BYTES, bytes: length }
    const first = start + at
    for (; isRecord(at); at += record.bytes) {
      if (record.type !== RECORD_TYPE.entries) continue
      const { payloadStart } = record
      const count = view.getUint32(payloadStart + 8, true)
      visit(readU64(view, payloadStart), count, bytes, payloadStart + ENTRIES_HEADER_BYTES)
    }
    return { first, bytes: length }
  } finally {
    disk.close(descriptor)
  }
}

/** An end of the data in a file at or before `limit`, at a multiple of eight; zeros may follow a record. */
function endOfData(disk: Disk, descriptor: number, limit: number): number {
  const block = new Uint8Array(ZEROS_BYTES)
  const last = limit - (limit % 8)
  for (let end = last; end > FILE_HEADER_BYTES; ) {
    const start = Math.max(FILE_HEADER_BYTES, end - ZEROS_BYTES)
    const length = readFully(disk, descriptor, block, 0, end - start, start)
    for (let at = length - 1; at >= 0; at--) {
      // The last payload may end in zeros.
      if (block[at] !== 0) return Math.min(last, start + at - (at % 8) + LONGEST_RECORD_BYTES)
    }
    end = start
  }
  return FILE_HEADER_BYTES
}

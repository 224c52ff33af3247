/**
 * Describes a log for operators and salvages the valid part of a damaged one: `vacancy inspect` and `run
 * --accept-loss`. Does not change the disk.
 */

import type { Disk } from '../env.ts'
import type { HardState, SnapshotMark } from './payload.ts'
import type { LogIdentity } from './record.ts'
import { type Damage, type EntryVisitor, type LogScan, listLogFiles, replayEntries, scanLog, termAt } from './scan.ts'

type FileInspection = {
  readonly name: string
  readonly bytes: number
  readonly sequence: number
  readonly firstIndex: number
  /** Highest index in it; `firstIndex` − 1 when it holds no entry. */
  readonly lastIndex: number
  readonly records: number
  /** Up to here everything verifies. */
  readonly validBytes: number
  /** Behind that, in the last file only: what an interrupted write left. */
  readonly tornBytes: number
  /** Absent when the header cannot be read. */
  readonly identity: LogIdentity | undefined
}

export type LogInspection = {
  readonly files: readonly FileInspection[]
  /** As of the last group that verifies. */
  readonly hardState: HardState
  readonly marks: readonly SnapshotMark[]
  readonly firstIndex: number
  readonly lastIndex: number
  readonly damage: Damage | undefined
}

/** @returns undefined when there are no log files */
export function inspectWal(disk: Disk, directory: string): LogInspection | undefined {
  const files = listLogFiles(disk, directory)
  if (files.length === 0) return undefined
  const { hardState, marks, firstIndex, lastIndex, damage } = scanLog(disk, files)
  return {
    files: files.map(({ name, bytes, sequence, firstIndex, lastIndex, records, validBytes, tornBytes, header }) => ({
      name,
      bytes,
      sequence,
      firstIndex,
      lastIndex,
      records,
      validBytes,
      tornBytes,
      identity: header?.identity,
    })),
    hardState,
    marks,
    firstIndex,
    lastIndex,
    damage,
  }
}

export type Salvage = {
  /** Entries snapshot index + 1 … lastIndex verify; none when `lastIndex` is the snapshot's. */
  readonly lastIndex: number
  readonly lastTerm: number
  /** Undefined when the log is whole behind the snapshot. */
  readonly damage: Damage | undefined
  /** What is gone, from `from` on; `through` is the highest index that was seen, absent when none was. */
  readonly lost: { readonly from: number; readonly through: number | undefined } | undefined
  readonly scan: LogScan | undefined
}

/**
 * The longest run of entries behind a snapshot that verifies in a log that may be damaged anywhere.
 *
 * Reading begins in the last file that can hold the entry behind the snapshot; when that one is damaged before it,
 * behind the damaged place. So damage to what the snapshot holds anyway costs nothing.
 *
 * @param identity of IDENTITY and CLUSTER, where these can be read
 */
export function salvageWal(disk: Disk, directory: string, snapshot: SnapshotMark, identity?: LogIdentity): Salvage {
  const wanted = snapshot.index + 1
  const options = identity ? { identity } : {}
  const count = listLogFiles(disk, directory).length
  let worst: LogScan | undefined
  for (let start = count - 1; start >= 0; start--) {
    // Reports are filled in while reading, so each try gets its own.
    const files = listLogFiles(disk, directory).slice(start)
    if ((files[0]?.firstIndex ?? 0) > wanted && start > 0) continue
    const whole = scanLog(disk, files, options)
    if (holds(whole, snapshot)) return salvageOf(whole, snapshot)
    worst = whole
    for (let from = whole.damage; from && from.file === files[0]?.path; ) {
      const again = listLogFiles(disk, directory).slice(start)
      const behind = scanLog(disk, again, { ...options, resumeAt: from.offset })
      if (holds(behind, snapshot)) return { ...salvageOf(behind, snapshot), damage: behind.damage ?? from }
      const next = behind.damage
      from = next && next.file === from.file && next.offset > from.offset ? next : undefined
    }
  }
  return nothingOf(worst, snapshot)
}

/** Whether the log continues the snapshot: the entry at its position, or the ones behind it, can be of its history. */
function holds(scan: LogScan, { index, term }: SnapshotMark): boolean {
  if (scan.firstIndex > index + 1 || scan.lastIndex < index || scan.isLoose) return false
  if (index >= scan.firstIndex) return termAt(scan.terms, index) === term
  const mark = scan.marks.find((candidate) => candidate.index === index)
  return mark ? mark.term === term : (scan.terms[0]?.term ?? term) >= term
}

function salvageOf(scan: LogScan, snapshot: SnapshotMark): Salvage {
  const { lastIndex, damage, lostThrough } = scan
  const lastTerm = lastIndex > snapshot.index ? termAt(scan.terms, lastIndex) : snapshot.term
  const through = lostThrough > lastIndex ? lostThrough : undefined
  return { lastIndex, lastTerm, damage, lost: damage && { from: lastIndex + 1, through }, scan }
}

function nothingOf(scan: LogScan | undefined, { index, term }: SnapshotMark): Salvage {
  const seen = Math.max(scan?.lostThrough ?? 0, scan?.lastIndex ?? 0)
  const lost = { from: index + 1, through: seen > index ? seen : undefined }
  return { lastIndex: index, lastTerm: term, damage: scan?.damage, lost, scan: undefined }
}

/** Streams the entries that were saved; the bytes are a window that the next call overwrites. */
export function replaySalvage(disk: Disk, salvage: Salvage, snapshot: SnapshotMark, visit: EntryVisitor): void {
  if (salvage.scan) replayEntries(disk, salvage.scan, snapshot.index + 1, visit)
}

/**
 * Makes and opens a log: verifies what lies there, cuts a torn tail, makes sure that what it read is on disk
 * (docs/design/storage.md#recovery). Everything is verified before anything is changed.
 */

import { join } from 'node:path'
import { assert, VacancyError } from '@vacancy/shared'
import {
  type Disk,
  diskFailed,
  type Env,
  guarded,
  isDiskFull,
  readFully,
  renameFile,
  syncFile,
  syncFolder,
  unlinkFile,
  writeFully,
} from '../env.ts'
import type { HardState, SnapshotMark } from './payload.ts'
import type { LogIdentity } from './record.ts'
import { damaged, type FileReport, type LogScan, listLogFiles, scanLog, termAt } from './scan.ts'
import { buildWal, fillNext, lastFile, PIECE_BYTES, startFile, type Wal, type WalOptions } from './wal.ts'

export type OpenOptions = WalOptions & {
  /**
   * The last shutdown was clean: the data read back is known to be on disk
   * (docs/design/storage.md#torn-tail-or-corruption).
   */
  isClean: boolean
  /** Called when everything verified, before the first change on disk. */
  onVerified?: () => void
}

/** State of a log when it is opened. `replayEntries` reads from `scan`. */
export type Recovered = {
  readonly scan: LogScan
  readonly hardState: HardState
  /** Snapshots that were whole on disk, oldest first. */
  readonly marks: readonly SnapshotMark[]
  readonly firstIndex: number
  readonly lastIndex: number
  /** Bytes of an unfinished group that were cut off. */
  readonly tornBytes: number
}

/**
 * Makes the log of a new shard or member. What an unfinished formation left is removed; a log that holds entries or a
 * vote is never touched.
 *
 * @param base the snapshot this node begins with; index 0 without one
 * @throws `corrupt_data` when there is a log with content; the errno error when the disk is full
 */
export function createWal(
  env: Env,
  directory: string,
  identity: LogIdentity,
  base: SnapshotMark,
  options: WalOptions = {},
): Wal {
  return guarded('opening', directory, () => makeWal(env, directory, identity, base, options))
}

function makeWal(env: Env, directory: string, identity: LogIdentity, base: SnapshotMark, options: WalOptions): Wal {
  const { disk } = env
  const leftovers = listLogFiles(disk, directory)
  if (leftovers.length > 0) removeLeftovers(disk, directory, leftovers)
  const wal = buildWal(disk, directory, identity, options)
  wal.mark = base
  wal.lastIndex = base.index
  wal.hardState = { term: base.term, vote: 0, commit: base.index }
  discardTemporaries(disk, directory)
  if (!fillNext(wal) || !startFile(wal)) throw new VacancyError('no_room', { directory })
  env.log.info({ directory, index: base.index, term: base.term }, 'created a new log')
  return wal
}

function removeLeftovers(disk: Disk, directory: string, files: FileReport[]): void {
  const scan = scanLog(disk, files)
  const last = files.at(-1) as FileReport
  const holds = scan.lastIndex >= scan.firstIndex || scan.hardState.vote !== 0 || scan.lostThrough > 0
  const reason = 'the folder has a log with content, but CLUSTER, which identifies it, is missing'
  if (holds || files.length > 1 || scan.damage) throw damaged(scan.damage ?? { file: last.path, offset: 0, reason })
  unlinkFile(disk, last.path)
  syncFolder(disk, directory)
}

/**
 * Opens the log of a formed node: verifies all of it, cuts a torn tail, makes sure that what it read is on disk.
 *
 * @throws `corrupt_data` naming file, offset and reason, with nothing changed on disk
 *   (docs/design/storage.md#torn-tail-or-corruption)
 */
export function openWal(
  env: Env,
  directory: string,
  identity: LogIdentity,
  options: OpenOptions,
): { wal: Wal; recovered: Recovered } {
  return guarded('opening', directory, () => verifyAndOpen(env, directory, identity, options))
}

function verifyAndOpen(
  env: Env,
  directory: string,
  identity: LogIdentity,
  options: OpenOptions,
): { wal: Wal; recovered: Recovered } {
  const { disk } = env
  const reports = listLogFiles(disk, directory)
  if (reports.length === 0) throw damaged({ file: directory, offset: 0, reason: 'the log is missing' })
  const scan = scanLog(disk, reports, { identity })
  if (scan.damage) throw damaged(scan.damage)
  const newest = reports.at(-1) as FileReport
  if (options.isClean && newest.tornBytes > 0) {
    const reason = 'the last group does not verify, and the last shutdown was clean: no write was in progress'
    throw damaged({ file: newest.path, offset: newest.validBytes, reason })
  }
  options.onVerified?.()
  const wal = buildWal(disk, directory, identity, options)
  for (const { path, sequence, firstIndex, bytes, lastIndex } of reports) {
    wal.files.push({ path, sequence, firstIndex, bytes, lastIndex })
  }
  wal.sequence = scan.sequence
  wal.chain = scan.chain
  wal.group = scan.group
  wal.hardState = scan.hardState
  wal.mark = scan.marks.at(-1) ?? { index: scan.firstIndex - 1, term: 0 }
  wal.lastIndex = scan.lastIndex
  discardTemporaries(disk, directory)
  if (newest.tornBytes > 0) {
    const { path: file, validBytes: offset, tornBytes } = newest
    env.log.warn({ file, offset, tornBytes }, 'cut off a group that was being written when the node stopped')
  }
  takeUpLastFile(env, wal, newest, options.isClean)
  const recovered = {
    scan,
    hardState: scan.hardState,
    marks: scan.marks,
    firstIndex: scan.firstIndex,
    lastIndex: scan.lastIndex,
    tornBytes: newest.tornBytes,
  }
  return { wal, recovered }
}

/**
 * docs/design/storage.md#torn-tail-or-corruption: the log continues the snapshot the node starts from. Called when it
 * is known which one verifies.
 *
 * @throws `corrupt_data`
 */
export function assertConnects(recovered: Recovered, snapshot: SnapshotMark): void {
  const { scan, firstIndex, lastIndex } = recovered
  const file = scan.files[0]?.path ?? ''
  const fail = (reason: string): never => {
    throw damaged({ file, offset: 0, reason })
  }
  if (firstIndex > snapshot.index + 1) fail(`it begins at ${firstIndex} and the snapshot ends at ${snapshot.index}`)
  if (lastIndex < snapshot.index) fail(`it ends at ${lastIndex} and the snapshot holds ${snapshot.index}`)
  const term = recoveredTerm(recovered, snapshot.index)
  // The position just before the first entry is known from the mark of that snapshot, or not at all.
  if (term !== 0 && term !== snapshot.term) {
    fail(`entry ${snapshot.index} is of term ${term}, in the snapshot of term ${snapshot.term}`)
  }
}

function discardTemporaries(disk: Disk, directory: string): void {
  for (const name of disk.list(directory)) if (name.endsWith('.tmp')) unlinkFile(disk, join(directory, name))
}

/** docs/design/storage.md#torn-tail-or-corruption, then opens the last file for writing. */
function takeUpLastFile(env: Env, wal: Wal, last: FileReport, isClean: boolean): void {
  const { disk } = wal
  if (!isClean || last.tornBytes > 0 || last.bytes < wal.fileBytes) {
    const copied = copyLastFile(wal, last)
    if (!copied) {
      env.log.warn({ file: last.path }, 'no room to copy the last log file; it is written again in place')
      rewriteInPlace(wal, last)
    }
    lastFile(wal).bytes = copied ? Math.max(wal.fileBytes, last.bytes) : last.bytes
  }
  wal.descriptor = disk.open(last.path, 'write')
  wal.offset = last.validBytes
  wal.isEnded = last.isEnded
  if (last.isEnded) {
    // The machine stopped between the end record and the name of the next file.
    if (fillNext(wal) && startFile(wal)) return
    env.log.warn({ directory: wal.directory }, 'no room for the next log file: writes are refused until there is')
  }
}

/**
 * docs/design/storage.md#torn-tail-or-corruption: pages read back may have been in the page cache only, so the valid
 * part is written to a new file that takes the old one's name. This is docs/design/storage.md#torn-tail-or-corruption
 * as well: behind it the copy holds zeros.
 *
 * @returns false when there is no room; nothing has changed then
 */
function copyLastFile(wal: Wal, last: FileReport): boolean {
  const { disk } = wal
  const temporary = `${last.path}.tmp`
  const source = disk.open(last.path, 'read')
  const bytes = Math.max(wal.fileBytes, last.bytes)
  let target = -1
  try {
    target = disk.open(temporary, 'create')
    forEachPiece(wal, source, last, (length, at) => writeFully(disk, target, wal.buffer, 0, length, at))
    writeZeros(wal, target, last.validBytes, bytes)
  } catch (error) {
    if (!isDiskFull(error)) throw diskFailed('write', temporary, error)
    disk.close(source)
    if (target >= 0) {
      disk.close(target)
      unlinkFile(disk, temporary)
    }
    return false
  }
  syncFile(disk, target, temporary)
  disk.close(source)
  disk.close(target)
  renameFile(disk, temporary, last.path)
  syncFolder(disk, wal.directory)
  return true
}

/**
 * The same promise as docs/design/storage.md#torn-tail-or-corruption without room for a copy: pages that were written
 * again are on disk after the sync.
 */
function rewriteInPlace(wal: Wal, last: FileReport): void {
  const { disk } = wal
  const file = disk.open(last.path, 'write')
  try {
    forEachPiece(wal, file, last, (length, at) => writeFully(disk, file, wal.buffer, 0, length, at))
    writeZeros(wal, file, last.validBytes, last.bytes)
  } catch (error) {
    throw diskFailed('write', last.path, error)
  }
  syncFile(disk, file, last.path)
  disk.close(file)
  // The file may have got its name just before the process was killed.
  syncFolder(disk, wal.directory)
}

function writeZeros(wal: Wal, file: number, from: number, to: number): void {
  const piece = Math.min(PIECE_BYTES, wal.buffer.length)
  wal.buffer.fill(0, 0, piece)
  for (let at = from; at < to; at += piece) writeFully(wal.disk, file, wal.buffer, 0, Math.min(piece, to - at), at)
}

/** Reads the valid part into the buffer, piece by piece. */
function forEachPiece(wal: Wal, file: number, last: FileReport, write: (length: number, at: number) => void): void {
  const piece = Math.min(PIECE_BYTES, wal.buffer.length)
  for (let at = 0; at < last.validBytes; at += piece) {
    const length = Math.min(piece, last.validBytes - at)
    const read = readFully(wal.disk, file, wal.buffer, 0, length, at)
    assert(read === length, 'the valid part of a log file was read before')
    write(length, at)
  }
}

/** Term of an entry in a recovered log, or of the position just before its first one; 0 when it does not say. */
export function recoveredTerm({ scan }: Recovered, index: number): number {
  const mark = scan.marks.findLast((candidate) => candidate.index === index)
  return mark?.term ?? (index < scan.firstIndex || index > scan.lastIndex ? 0 : termAt(scan.terms, index))
}

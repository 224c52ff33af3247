/**
 * The log of one node on disk: groups of records appended and synced as one, replayed at start, cut behind a snapshot
 * (docs/design/storage.md#data-directory).
 *
 *   wal/wal-<seq>-<firstIndex>.log   one after another; the last one is written
 *   wal/next.tmp                     the one after it, filled with zeros ahead of need
 *
 * Every group is synced before the next one is written, even one that only moves the commit index.
 * docs/design/storage.md#group-commit would allow skipping that sync. But two groups without a sync between them can
 * survive a crash in the wrong order. A record of a later group then follows a hole, which
 * docs/design/storage.md#torn-tail-or-corruption must treat as corruption.
 *
 * A new file begins with a group of its own (identity, hard state, snapshot mark), so that any file can be deleted when
 * the ones behind it hold all entries that are needed. It is written, with the header, before the file gets its name;
 * the end record of the file before is durable by then. So a named file that is not the last one always has an end.
 *
 * One thread uses a `Wal`, and its calls block (docs/design/storage.md#group-commit). A full disk is an answer
 * (`'full'`), every other failure of a write or sync ends the process: `disk_failed`, exit code 70
 * (docs/design/storage.md#disk-errors).
 */

import { join } from 'node:path'
import { assert } from '@vacancy/shared'
import { type Disk, diskFailed, isDiskFull, renameFile, syncFile, syncFolder, unlinkFile, writeFully } from '../env.ts'
import { ENTRY_BYTES_MAX, ENTRY_HEADER_BYTES, type EntryBatch, viewOf, writeU64 } from '../raft/entry.ts'
import {
  ENTRIES_HEADER_BYTES,
  FILE_END_BYTES,
  HARD_STATE_BYTES,
  type HardState,
  IDENTITY_BYTES,
  SNAPSHOT_MARK_BYTES,
  type SnapshotMark,
  writeHardState,
  writeIdentity,
  writeSnapshotMark,
} from './payload.ts'
import {
  checksumSeed,
  encodeFileHeader,
  FILE_HEADER_BYTES,
  type LogIdentity,
  nextGroup,
  RECORD_HEADER_BYTES,
  RECORD_TYPE,
  type RecordType,
  recordBytes,
  sealRecord,
} from './record.ts'
import { logFileName } from './scan.ts'

export const LOG_FILE_BYTES = 64 * 1024 * 1024
/**
 * Kept at the end of each file for hard states, marks and the end record, also on a full disk
 * (docs/design/storage.md#group-commit).
 */
const FILE_RESERVE_BYTES = 64 * 1024
/** docs/design/storage.md#group-commit. One group holds at most this much and one entry. */
export const GROUP_BYTES_MAX = 1024 * 1024
/** The next file is synced in steps: one sync of 64 MiB would hold up the commits behind it. */
const PREPARE_SYNC_BYTES = 4 * 1024 * 1024

const NEXT_FILE = 'next.tmp'
/** What zeros and copies are written in. */
export const PIECE_BYTES = 1024 * 1024
const FILE_END_RECORD_BYTES = recordBytes(FILE_END_BYTES)
const HEAD_GROUP_BYTES = recordBytes(IDENTITY_BYTES) + recordBytes(HARD_STATE_BYTES) + recordBytes(SNAPSHOT_MARK_BYTES)

export type WalOptions = {
  /** Smaller in tests only. */
  fileBytes?: number
  reserveBytes?: number
  prepareSyncBytes?: number
}

/** What becomes durable together or not at all. Absent hard state: the one stored before goes with the entries. */
export type Group = {
  readonly hardState?: HardState | undefined
  readonly mark?: SnapshotMark | undefined
  /** Each at most GROUP_BYTES_MAX, or a single entry. */
  readonly batches: readonly EntryBatch[]
}

/** `'full'`: nothing was written, the disk has no room for the next log file. */
export type AppendResult = 'stored' | 'full'

/** Where a log restarts: an installed snapshot, and the promises from then on. */
type Start = { readonly mark: SnapshotMark; readonly hardState: HardState }

type LogFile = {
  readonly path: string
  readonly sequence: number
  readonly firstIndex: number
  bytes: number
  lastIndex: number
}

type NextFile =
  | { state: 'absent' }
  | { state: 'filling'; descriptor: number; offset: number; unsynced: number }
  | { state: 'ready'; descriptor: number }
  /** The file before it has ended; only its name is missing. */
  | { state: 'nameless'; descriptor: number; path: string; firstIndex: number; start: Start | undefined }
  /** There was no room; `prepareNext` tries again only after `retryNext`. */
  | { state: 'full' }

export type Wal = ReturnType<typeof buildWal>

/** A log without files; `createWal` and `openWal` give it some. */
export function buildWal(disk: Disk, directory: string, identity: LogIdentity, options: WalOptions) {
  const { fileBytes = LOG_FILE_BYTES, reserveBytes = FILE_RESERVE_BYTES } = options
  // A group with its records' headers; no more than a file in tests, which open logs by the hundred thousand.
  const buffer = new Uint8Array(Math.min(fileBytes, GROUP_BYTES_MAX + ENTRY_BYTES_MAX + PIECE_BYTES))
  assert(reserveBytes >= 4 * FILE_END_RECORD_BYTES, 'the reserve holds an end record and some hard states')
  assert(fileBytes >= FILE_HEADER_BYTES + HEAD_GROUP_BYTES + 2 * reserveBytes, 'a log file holds more than its reserve')
  return {
    disk,
    directory,
    identity,
    seed: checksumSeed(identity),
    fileBytes,
    reserveBytes,
    prepareSyncBytes: options.prepareSyncBytes ?? PREPARE_SYNC_BYTES,
    /** GROUP_BYTES_MAX, less in the small files of tests. */
    groupBytesMax: Math.min(GROUP_BYTES_MAX, (fileBytes - FILE_HEADER_BYTES - HEAD_GROUP_BYTES - reserveBytes) >>> 1),
    /** Oldest first; the last one is written. */
    files: [] as LogFile[],
    descriptor: -1,
    /** Where the next group begins in the last file. */
    offset: 0,
    /** The last file has its end record: nothing may follow in it. */
    isEnded: false,
    /** Bytes behind `offset` that a refused write may have left. */
    dirtyBytes: 0,
    next: { state: 'absent' } as NextFile,
    /** Of the last record. */
    sequence: 0,
    chain: 0,
    group: 0,
    hardState: { term: 0, vote: 0, commit: 0 },
    mark: { index: 0, term: 0 },
    lastIndex: 0,
    /** One group is put together here, then written at once. */
    buffer,
    view: viewOf(buffer),
  }
}

/** Where the next group goes and what it continues: all that a group changes. Another thread can continue with it. */
export type WalTail = Pick<
  Wal,
  'descriptor' | 'offset' | 'dirtyBytes' | 'sequence' | 'chain' | 'group' | 'hardState' | 'lastIndex'
> & { readonly file: Omit<LogFile, 'path'> }

export function tailOf(wal: Wal): WalTail {
  const { descriptor, offset, dirtyBytes, sequence, chain, group, hardState, lastIndex } = wal
  const { path: _path, ...file } = lastFile(wal)
  return { descriptor, offset, dirtyBytes, sequence, chain, group, hardState, lastIndex, file }
}

/** Continues with a tail from another thread. The last file may be a new one. */
export function continueAt(wal: Wal, { file, ...rest }: WalTail): void {
  const known = lastFile(wal)
  assert(rest.sequence >= wal.sequence && file.sequence >= known.sequence, 'a log continues forward')
  Object.assign(wal, rest)
  if (known.sequence === file.sequence) known.lastIndex = file.lastIndex
  else wal.files.push({ ...file, path: join(wal.directory, logFileName(file.sequence, file.firstIndex)) })
}

/** Whether a group can follow at once, without another file. */
export function fitsFile(wal: Wal, group: Group): boolean {
  return !wal.isEnded && wal.dirtyBytes === 0 && wal.offset + groupBytes(group) <= entriesEnd(wal)
}

/**
 * Whether a group that holds `bytes` of entries may take another batch: the bound of
 * docs/design/storage.md#group-commit.
 */
export function fitsGroup(wal: Wal, bytes: number, batch: EntryBatch): boolean {
  return bytes === 0 || bytes + batch.bytes.length <= wal.groupBytesMax
}

/**
 * Writes a group with one write and one sync (docs/design/storage.md#group-commit). When it returns `'stored'`,
 * everything in it survives anything.
 *
 * @returns `'full'` when the next log file could not be made; then nothing of the group is in the log
 */
export function appendGroup(wal: Wal, group: Group): AppendResult {
  const hardState = group.hardState ?? wal.hardState
  assertFollows(wal, group, hardState)
  const bytes = groupBytes(group)
  assert(bytes <= wal.buffer.length, 'a group is bounded')
  if (!makeRoom(wal, group, bytes)) return 'full'
  const { sequence, chain, group: number } = wal
  const end = encodeGroup(wal, group, hardState)
  // docs/design/storage.md#group-commit: what is about to be written against what is known to be there.
  assert(end === bytes, 'a group takes as many bytes as it was counted to')
  assert(wal.offset % 8 === 0, 'records begin at multiples of eight')
  assert(wal.offset + end <= lastFileBytes(wal) - FILE_END_RECORD_BYTES, 'the end record keeps its place')
  assert(wal.view.getUint32(20, true) === nextGroup(number), 'groups are numbered one by one')
  assert(wal.view.getUint32(16, true) === chain, 'a group continues the chain')
  try {
    writeFully(wal.disk, wal.descriptor, wal.buffer, 0, end, wal.offset)
  } catch (error) {
    if (!isDiskFull(error)) throw diskFailed('write', lastFile(wal).path, error)
    // File systems that never overwrite in place can run out here. Nothing was acknowledged; it is wiped before the
    // next write, which would otherwise stand in front of records of the same group.
    wal.dirtyBytes = end
    wal.sequence = sequence
    wal.chain = chain
    wal.group = number
    return 'full'
  }
  syncFile(wal.disk, wal.descriptor, lastFile(wal).path)
  wal.offset += end
  wal.hardState = hardState
  if (group.mark) wal.mark = group.mark
  for (const batch of group.batches) {
    wal.lastIndex = batch.firstIndex + batch.count - 1
    lastFile(wal).lastIndex = Math.max(lastFile(wal).lastIndex, wal.lastIndex)
  }
  return 'stored'
}

/**
 * docs/design/consensus.md#invariants on the side of the disk: the same facts are asserted again when the log is read
 * (docs/design/consensus.md#determinism).
 */
function assertFollows(wal: Wal, group: Group, hardState: HardState): void {
  const before = wal.hardState
  assert(hardState.term >= before.term, 'the term never decreases')
  assert(
    hardState.term > before.term || before.vote === 0 || hardState.vote === before.vote,
    'the vote changes only with the term or from none',
  )
  assert(hardState.commit >= before.commit, 'the commit index never decreases')
  let last = wal.lastIndex
  for (const batch of group.batches) {
    assert(batch.count > 0, 'a batch holds entries')
    assert(batch.firstIndex <= last + 1, 'indexes are contiguous')
    assert(batch.firstIndex > before.commit, 'nothing at or below the commit index is replaced')
    assert(batch.bytes.length <= GROUP_BYTES_MAX || batch.count === 1, 'a batch fits a group')
    assert(batch.bytes.length <= ENTRY_BYTES_MAX + ENTRY_HEADER_BYTES, 'an entry has at most 1 MiB')
    last = batch.firstIndex + batch.count - 1
  }
  assert(hardState.commit <= last, 'only entries of the log are committed')
  assert(!group.mark || group.mark.index <= hardState.commit, 'a snapshot holds committed entries only')
  assert(!group.mark || group.mark.index >= wal.mark.index, 'snapshots go forward')
}

function groupBytes(group: Group): number {
  let bytes = recordBytes(HARD_STATE_BYTES)
  if (group.mark) bytes += recordBytes(SNAPSHOT_MARK_BYTES)
  for (const batch of group.batches) bytes += recordBytes(ENTRIES_HEADER_BYTES + batch.bytes.length)
  return bytes
}

export function lastFile(wal: Wal): LogFile {
  const file = wal.files.at(-1)
  assert(file !== undefined, 'a log has a file')
  return file
}

function lastFileBytes(wal: Wal): number {
  return lastFile(wal).bytes
}

/** Where the reserve of the last file begins. */
function entriesEnd(wal: Wal): number {
  return lastFileBytes(wal) - wal.reserveBytes
}

/** Sees to it that the group fits behind `wal.offset`, in this file or the next. */
function makeRoom(wal: Wal, group: Group, bytes: number): boolean {
  if (wal.dirtyBytes > 0 && !wipe(wal)) return false
  if (!wal.isEnded && wal.offset + bytes <= entriesEnd(wal)) return true
  if (fillNext(wal) && startFile(wal)) {
    assert(wal.offset + bytes <= entriesEnd(wal), 'a group fits an empty log file')
    return true
  }
  // docs/design/storage.md#group-commit: votes and terms are stored on a full disk too, and so is a mark, which lets
  // older files go.
  const { hardState = wal.hardState } = group
  const isPromise = hardState.term !== wal.hardState.term || hardState.vote !== wal.hardState.vote
  const mayUseReserve = group.batches.length === 0 && (isPromise || group.mark !== undefined)
  if (!mayUseReserve || wal.isEnded || wal.dirtyBytes > 0) return false
  return wal.offset + bytes <= lastFileBytes(wal) - FILE_END_RECORD_BYTES
}

/** Zeros over what a refused write left, synced before anything else is written there. */
function wipe(wal: Wal): boolean {
  wal.buffer.fill(0, 0, wal.dirtyBytes)
  try {
    writeFully(wal.disk, wal.descriptor, wal.buffer, 0, wal.dirtyBytes, wal.offset)
  } catch (error) {
    if (isDiskFull(error)) return false
    throw diskFailed('write', lastFile(wal).path, error)
  }
  syncFile(wal.disk, wal.descriptor, lastFile(wal).path)
  wal.dirtyBytes = 0
  return true
}

/** Puts the records of a group into the buffer. @returns its bytes */
function encodeGroup(wal: Wal, group: Group, hardState: HardState): number {
  const { buffer, view } = wal
  const number = nextGroup(wal.group)
  let left = 1 + group.batches.length + (group.mark ? 1 : 0)
  // docs/design/consensus.md#hand-over, docs/design/consensus.md#when-a-configuration-takes-effect: the hard state,
  // with the commit index, stands before the entries it belongs to.
  writeHardState(view, RECORD_HEADER_BYTES, hardState)
  let at = addRecord(wal, 0, RECORD_TYPE.hardState, HARD_STATE_BYTES, number, --left === 0)
  if (group.mark) {
    writeSnapshotMark(view, at + RECORD_HEADER_BYTES, group.mark)
    at = addRecord(wal, at, RECORD_TYPE.snapshotMark, SNAPSHOT_MARK_BYTES, number, --left === 0)
  }
  for (const batch of group.batches) {
    const payload = at + RECORD_HEADER_BYTES
    writeU64(view, payload, batch.firstIndex)
    view.setUint32(payload + 8, batch.count, true)
    buffer.set(batch.bytes, payload + ENTRIES_HEADER_BYTES)
    const length = ENTRIES_HEADER_BYTES + batch.bytes.length
    at = addRecord(wal, at, RECORD_TYPE.entries, length, number, --left === 0)
  }
  wal.group = number
  return at
}

/** Completes the record at `at`, whose payload is there. @returns where the next one begins */
function addRecord(
  wal: Wal,
  at: number,
  type: RecordType,
  payloadLength: number,
  group: number,
  isLastOfGroup: boolean,
): number {
  wal.sequence++
  const { sequence, chain } = wal
  wal.chain = sealRecord(wal, at, { type, payloadLength, sequence, chain, group, isLastOfGroup })
  return at + recordBytes(payloadLength)
}

/**
 * Continues to fill the next log file by at most `bytesMax`; called between groups and when idle
 * (docs/design/storage.md#log-files).
 *
 * @returns true while there is more to do
 */
export function prepareNext(wal: Wal, bytesMax: number): boolean {
  const path = join(wal.directory, NEXT_FILE)
  if (wal.next.state === 'absent') {
    try {
      wal.next = { state: 'filling', descriptor: wal.disk.open(path, 'create'), offset: 0, unsynced: 0 }
    } catch (error) {
      if (!isDiskFull(error)) throw diskFailed('open', path, error)
      wal.next = { state: 'full' }
    }
  }
  if (wal.next.state !== 'filling') return false
  const { next } = wal
  let left = bytesMax
  const zeros = Math.min(PIECE_BYTES, bytesMax, wal.buffer.length)
  wal.buffer.fill(0, 0, zeros)
  while (left > 0 && next.offset < wal.fileBytes) {
    const length = Math.min(left, zeros, wal.fileBytes - next.offset, wal.prepareSyncBytes - next.unsynced)
    try {
      writeFully(wal.disk, next.descriptor, wal.buffer, 0, length, next.offset)
    } catch (error) {
      if (!isDiskFull(error)) throw diskFailed('write', path, error)
      discardNext(wal, next.descriptor)
      return false
    }
    left -= length
    next.offset += length
    next.unsynced += length
    if (next.unsynced < wal.prepareSyncBytes && next.offset < wal.fileBytes) continue
    syncFile(wal.disk, next.descriptor, path)
    next.unsynced = 0
  }
  if (next.offset < wal.fileBytes) return true
  wal.next = { state: 'ready', descriptor: next.descriptor }
  return false
}

/** Releases the space of an unfinished next file for other writers. */
function discardNext(wal: Wal, descriptor: number): void {
  wal.disk.close(descriptor)
  unlinkFile(wal.disk, join(wal.directory, NEXT_FILE))
  wal.next = { state: 'full' }
}

/** Whether `prepareNext` has more to do. */
export function isPreparing({ next }: Wal): boolean {
  return next.state === 'absent' || next.state === 'filling'
}

export function isFull(wal: Wal): boolean {
  return wal.next.state === 'full' || wal.isEnded || wal.dirtyBytes > 0
}

/** Tries again to make the next file, after space may have come back. @returns whether the log takes entries again */
export function retryNext(wal: Wal): boolean {
  if (wal.dirtyBytes > 0 && !wipe(wal)) return false
  if (wal.next.state === 'full') wal.next = { state: 'absent' }
  return fillNext(wal) && (!wal.isEnded || startFile(wal))
}

/** Finishes the next file now. @returns false when there is no room */
export function fillNext(wal: Wal): boolean {
  if (wal.next.state === 'nameless') return true
  while (prepareNext(wal, PIECE_BYTES));
  return wal.next.state === 'ready'
}

/**
 * Ends the last file and begins the next one (docs/design/storage.md#log-files): header and first group, synced · end
 * record, synced · name, folder synced. At each point a crash leaves the old file as the last one, or a new one that is
 * whole.
 *
 * @returns false when there was no room; the log is as it was
 */
export function startFile(wal: Wal, start?: Start): boolean {
  const { disk } = wal
  const temporary = join(wal.directory, NEXT_FILE)
  if (wal.next.state === 'ready' && !writeHead(wal, wal.next.descriptor, temporary, start)) return false
  assert(wal.next.state === 'nameless', 'a file is complete before it gets its name')
  const { descriptor, path, firstIndex, start: begun } = wal.next
  try {
    renameFile(disk, temporary, path)
  } catch (error) {
    // No room for the longer name. The previous file has ended, so the log waits until this succeeds.
    if (isDiskFull(error)) return false
    throw error
  }
  syncFolder(disk, wal.directory)
  if (wal.descriptor >= 0) disk.close(wal.descriptor)
  wal.descriptor = descriptor
  const sequence = (wal.files.at(-1)?.sequence ?? 0) + 1
  wal.files.push({ path, sequence, firstIndex, bytes: wal.fileBytes, lastIndex: firstIndex - 1 })
  wal.offset = FILE_HEADER_BYTES + HEAD_GROUP_BYTES
  wal.isEnded = false
  wal.next = { state: 'absent' }
  if (begun) {
    wal.lastIndex = begun.mark.index
    wal.mark = begun.mark
    wal.hardState = begun.hardState
  }
  return true
}

/**
 * Restarts after a complete snapshot on disk that this log does not lead to: one of the leader
 * (docs/design/storage.md#transfer). The old entries are dropped with their files; a crash on the way leaves the old log
 * or the new one.
 *
 * @returns false when there was no room; the log is unchanged
 */
export function installWal(wal: Wal, mark: SnapshotMark): boolean {
  assert(mark.index > wal.hardState.commit, 'an installed snapshot is ahead of what is committed here')
  assert(mark.term <= wal.hardState.term, 'the term of its sender is stored')
  const hardState = { ...wal.hardState, commit: mark.index }
  if (wal.dirtyBytes > 0 && !wipe(wal)) return false
  if (wal.next.state === 'nameless' && !startFile(wal)) return false
  if (wal.next.state === 'full') wal.next = { state: 'absent' }
  if (!fillNext(wal) || !startFile(wal, { mark, hardState })) return false
  while (wal.files.length > 1) {
    unlinkFile(wal.disk, (wal.files[0] as LogFile).path)
    syncFolder(wal.disk, wal.directory)
    wal.files.shift()
  }
  return true
}

/** The part of `startFile` before the rename. Nothing has happened when it returns false. */
function writeHead(wal: Wal, descriptor: number, temporary: string, start: Start | undefined): boolean {
  const { disk, view, sequence, chain, group } = wal
  const undo = (): false => {
    wal.sequence = sequence
    wal.chain = chain
    wal.group = group
    return false
  }
  const before = wal.files.at(-1)
  const endsNow = before !== undefined && !wal.isEnded
  const head = endsNow ? FILE_END_RECORD_BYTES : 0
  if (endsNow) {
    writeU64(view, RECORD_HEADER_BYTES, wal.lastIndex)
    addRecord(wal, 0, RECORD_TYPE.fileEnd, FILE_END_BYTES, nextGroup(wal.group), true)
    wal.group = nextGroup(wal.group)
  }
  const fileSequence = (before?.sequence ?? 0) + 1
  const firstIndex = (start?.mark.index ?? wal.lastIndex) + 1
  const { mark = wal.mark, hardState = wal.hardState } = start ?? {}
  const bytes = encodeHead(wal, head, fileSequence, firstIndex, mark, hardState)
  try {
    writeFully(disk, descriptor, wal.buffer, head, bytes, 0)
  } catch (error) {
    if (!isDiskFull(error)) throw diskFailed('write', temporary, error)
    discardNext(wal, descriptor)
    return undo()
  }
  syncFile(disk, descriptor, temporary)
  if (endsNow) {
    try {
      writeFully(disk, wal.descriptor, wal.buffer, 0, head, wal.offset)
    } catch (error) {
      if (!isDiskFull(error)) throw diskFailed('write', before.path, error)
      discardNext(wal, descriptor)
      wal.dirtyBytes = head
      return undo()
    }
    syncFile(disk, wal.descriptor, before.path)
    wal.offset += head
    wal.isEnded = true
  }
  const path = join(wal.directory, logFileName(fileSequence, firstIndex))
  wal.next = { state: 'nameless', descriptor, path, firstIndex, start }
  return true
}

/** Header and first group of a file, at `start` of the buffer. @returns their bytes */
function encodeHead(
  wal: Wal,
  start: number,
  sequence: number,
  firstIndex: number,
  mark: SnapshotMark,
  hardState: HardState,
): number {
  const previous = { sequence: wal.sequence, checksum: wal.chain, group: wal.group }
  encodeFileHeader(wal.buffer.subarray(start), { identity: wal.identity, sequence, firstIndex, previous })
  const group = nextGroup(wal.group)
  let at = start + FILE_HEADER_BYTES
  writeIdentity(wal.buffer, at + RECORD_HEADER_BYTES, wal.identity)
  at = addRecord(wal, at, RECORD_TYPE.identity, IDENTITY_BYTES, group, false)
  writeHardState(wal.view, at + RECORD_HEADER_BYTES, hardState)
  at = addRecord(wal, at, RECORD_TYPE.hardState, HARD_STATE_BYTES, group, false)
  writeSnapshotMark(wal.view, at + RECORD_HEADER_BYTES, mark)
  at = addRecord(wal, at, RECORD_TYPE.snapshotMark, SNAPSHOT_MARK_BYTES, group, true)
  wal.group = group
  return at - start
}

/**
 * Deletes whole files that hold only entries below `floor`, oldest first, each deletion synced before the next: a crash
 * leaves no hole (docs/design/storage.md#log-compaction, docs/design/storage.md#log-files).
 *
 * @returns how many went
 */
export function compactWal(wal: Wal, floor: number): number {
  assert(floor <= wal.hardState.commit + 1, 'only committed entries are compacted')
  let deleted = 0
  while (wal.files.length > 1 && lastIndexOf(wal.files[0]) < floor) {
    const file = wal.files[0] as LogFile
    unlinkFile(wal.disk, file.path)
    syncFolder(wal.disk, wal.directory)
    wal.files.shift()
    deleted++
  }
  return deleted
}

function lastIndexOf(file: LogFile | undefined): number {
  return file?.lastIndex ?? 0
}

/** Bytes of all log files, the next one included. */
export function walBytes(wal: Wal): number {
  const next = wal.next.state === 'filling' ? wal.next.offset : wal.next.state === 'ready' ? wal.fileBytes : 0
  return wal.files.reduce((sum, file) => sum + file.bytes, next)
}

/**
 * Closes the files; all entries are synced already.
 *
 * @returns false when a refused write could not be wiped: then the log does not end as after a clean shutdown
 */
export function closeWal(wal: Wal): boolean {
  const isClean = wal.dirtyBytes === 0 || wipe(wal)
  wal.disk.close(wal.descriptor)
  if ('descriptor' in wal.next) wal.disk.close(wal.next.descriptor)
  return isClean
}

/**
 * Reads a log and reports where its valid part ends and why, for recovery, `inspect` and `--accept-loss`
 * (docs/design/storage.md#recovery). The disk is not changed, and only one window of a file is in memory at a time.
 *
 * A group counts only when complete (docs/design/storage.md#torn-tail-or-corruption). Where the first record does not
 * fit, the rest is searched for records that are valid by themselves (docs/design/storage.md#torn-tail-or-corruption):
 * if there are only such as the group being written can have left, the tail is torn
 * (docs/design/storage.md#torn-tail-or-corruption); anything else is damage
 * (docs/design/storage.md#torn-tail-or-corruption).
 */

import { join } from 'node:path'
import { assert, VacancyError } from '@vacancy/shared'
import { type Disk, errnoOf, guarded, readFully } from '../env.ts'
import { ENTRY_HEADER_BYTES, entryLength, readU64, skipEntries, viewOf } from '../raft/entry.ts'
import {
  ENTRIES_HEADER_BYTES,
  type EntriesSummary,
  FILE_END_BYTES,
  type HardState,
  readHardState,
  readIdentity,
  readSnapshotMark,
  type SnapshotMark,
  summarizeEntries,
  type TermRun,
} from './payload.ts'
import {
  checksumSeed,
  createRecordView,
  decodeFileHeader,
  FILE_HEADER_BYTES,
  type FileHeader,
  groupBefore,
  isSelfValid,
  type LogIdentity,
  nextGroup,
  PAYLOAD_BYTES_MAX,
  RECORD_HEADER_BYTES,
  RECORD_TYPE,
  type RecordView,
  readRecordHeader,
} from './record.ts'

export type Damage = { readonly file: string; readonly offset: number; readonly reason: string }

/** The error of docs/design/storage.md#torn-tail-or-corruption, which ends the process with exit code 71. */
export function damaged({ file, offset, reason }: Damage): VacancyError {
  return new VacancyError('corrupt_data', { file, offset, reason })
}

export type FileReport = {
  readonly name: string
  readonly path: string
  /** From the name. */
  readonly sequence: number
  readonly firstIndex: number
  readonly bytes: number
  header: FileHeader | undefined
  /** Records and entries in complete groups. */
  records: number
  /** The highest index recorded in it; `firstIndex` − 1 for an empty file. */
  lastIndex: number
  /** Where reading began: behind the header, but for what is salvaged from the middle of a damaged file. */
  validFrom: number
  /** End of the last complete group. */
  validBytes: number
  /** Bytes behind it, up to the last one that is not zero. */
  tornBytes: number
  isEnded: boolean
}

/** An entries record that replaced the tail from `firstIndex` on. */
type Cut = { readonly sequence: number; readonly firstIndex: number }

export type LogScan = ReturnType<typeof scanLog>

/** `wal-<seq>-<firstIndex>.log`, both padded so that names sort as numbers do. */
const FILE_NAME = /^wal-(\d{10})-(\d{16})[.]log$/
/** Enough to fall back over a damaged newest snapshot; older marks are of no use to anybody. */
const MARKS_MAX = 16
const WINDOW_BYTES = 2 * (PAYLOAD_BYTES_MAX + RECORD_HEADER_BYTES)

export function logFileName(sequence: number, firstIndex: number): string {
  return `wal-${String(sequence).padStart(10, '0')}-${String(firstIndex).padStart(16, '0')}.log`
}

/** The log files of a folder by sequence; empty when there is no such folder. */
export function listLogFiles(disk: Disk, directory: string): FileReport[] {
  if (!disk.stat(directory)?.isDirectory) return []
  const files: FileReport[] = []
  for (const name of disk.list(directory)) {
    const match = FILE_NAME.exec(name)
    if (!match) continue
    const path = join(directory, name)
    const firstIndex = Number(match[2])
    files.push({
      name,
      path,
      sequence: Number(match[1]),
      firstIndex,
      bytes: disk.stat(path)?.bytes ?? 0,
      header: undefined,
      records: 0,
      lastIndex: firstIndex - 1,
      validFrom: FILE_HEADER_BYTES,
      validBytes: 0,
      tornBytes: 0,
      isEnded: false,
    })
  }
  return files
}

export type ScanOptions = {
  /** The files must be of this node, cluster and codec list; absent: all of the same one. */
  identity?: LogIdentity
  /** Salvage: search for a group from here on in the first of `files`, ignoring earlier bytes. */
  resumeAt?: number
}

/** @param files in order, as `listLogFiles` gives them; at least one */
export function scanLog(disk: Disk, files: FileReport[], options: ScanOptions = {}) {
  assert(files.length > 0, 'a log that is read has files')
  const scan = {
    files,
    hardState: { term: 0, vote: 0, commit: 0 } as HardState,
    /** The newest marks, oldest first. */
    marks: [] as SnapshotMark[],
    /** The first index the log may hold; entries begin there. */
    firstIndex: files[0]?.firstIndex ?? 1,
    lastIndex: (files[0]?.firstIndex ?? 1) - 1,
    terms: [] as TermRun[],
    cuts: [] as Cut[],
    /** Indexes of membership entries in the log. */
    configurations: [] as number[],
    /** The last record of the last complete group. */
    sequence: 0,
    chain: 0,
    group: 0,
    /** Undefined when everything verifies, but for a tail that may be torn. */
    damage: undefined as Damage | undefined,
    /** Indexes in records behind the damage: what is known to be lost. */
    lostThrough: 0,
    /** What the checksums of its records start from. */
    seed: checksumSeedOf(disk, files, options.identity),
    /** Where, in a window that began in the middle of a file, the first index is not known yet. */
    isLoose: false,
    /** The file being read begins elsewhere than the one before it ended: its first group must name the snapshot. */
    isJump: false,
  }
  for (const file of files) {
    const isLast = file === files.at(-1)
    const resumeAt = file === files[0] ? options.resumeAt : undefined
    const window = openWindow(disk, file, scan.seed)
    try {
      if (scan.damage) noteLost(scan, window, FILE_HEADER_BYTES)
      else scanFile(scan, file, window, isLast, options.identity, resumeAt)
    } finally {
      disk.close(window.descriptor)
    }
  }
  if (!scan.damage) checkWhole(scan)
  return scan
}

/** The expected identity or, without one, that of the first readable header. */
function checksumSeedOf(disk: Disk, files: readonly FileReport[], expected: LogIdentity | undefined): number {
  if (expected) return checksumSeed(expected)
  for (const file of files) {
    const window = openWindow(disk, { ...file, bytes: Math.min(file.bytes, FILE_HEADER_BYTES) }, 0)
    load(window, 0, window.fileBytes)
    disk.close(window.descriptor)
    const header = decodeFileHeader(window.bytes, window.length)
    if (typeof header !== 'string') return checksumSeed(header.identity)
  }
  return 0
}

/** One file, a stretch of it in memory. */
type Window = ReturnType<typeof openWindow>

function openWindow(disk: Disk, file: FileReport, seed: number) {
  const bytes = new Uint8Array(Math.min(file.bytes, WINDOW_BYTES))
  return {
    disk,
    path: file.path,
    descriptor: disk.open(file.path, 'read'),
    fileBytes: file.bytes,
    bytes,
    view: viewOf(bytes),
    /** Offset in the file of the first byte held, and how many are. */
    start: 0,
    length: 0,
    /** Set when the disk refused to read. */
    fault: '',
    record: createRecordView(),
    seed,
  }
}

/** Brings `length` bytes from `offset` into memory. @returns where in the window, −1 when the file ends before */
function load(window: Window, offset: number, length: number): number {
  if (offset + length > window.fileBytes) return -1
  if (offset >= window.start && offset + length <= window.start + window.length) return offset - window.start
  assert(length <= window.bytes.length, 'a window holds the largest record')
  const wanted = Math.min(window.bytes.length, window.fileBytes - offset)
  window.start = offset
  window.length = 0
  try {
    window.length = readFully(window.disk, window.descriptor, window.bytes, 0, wanted, offset)
  } catch (error) {
    window.fault = errnoOf(error) || String(error)
  }
  return length <= window.length ? 0 : -1
}

/** Reads the record at `offset`. @returns why it is invalid; empty when `window.record` is valid by itself */
function readRecord(window: Window, offset: number): string {
  const at = load(window, offset, RECORD_HEADER_BYTES)
  if (window.fault) return `it cannot be read (${window.fault})`
  if (at < 0) return 'the file ends within a record'
  if (!readRecordHeader(window.record, window.view, at)) return 'no record begins here'
  const whole = load(window, offset, window.record.bytes)
  if (window.fault) return `it cannot be read (${window.fault})`
  if (whole < 0) return 'the file ends within a record'
  readRecordHeader(window.record, window.view, whole)
  return isSelfValid(window.record, window.bytes, window.seed) ? '' : 'the checksum of the record does not match'
}

function scanFile(
  scan: LogScan,
  file: FileReport,
  window: Window,
  isLast: boolean,
  identity: LogIdentity | undefined,
  resumeAt: number | undefined,
): void {
  const isFirst = file === scan.files[0]
  const fault = openFile(scan, file, window, isFirst, identity)
  // What is salvaged from behind a damaged place needs no header.
  if (fault && resumeAt === undefined) {
    scan.damage = { file: file.path, offset: 0, reason: fault }
    noteLost(scan, window, FILE_HEADER_BYTES)
    return
  }
  let offset = FILE_HEADER_BYTES
  if (resumeAt !== undefined) {
    offset = findGroup(scan, window, resumeAt)
    file.validFrom = offset
  }
  file.validBytes = offset
  const stop = readGroups(scan, file, window, offset)
  if (stop.isDamage) {
    scan.damage = { file: file.path, offset: stop.offset, reason: stop.reason }
    noteLost(scan, window, stop.offset)
    return
  }
  if (file.isEnded) return
  if (!isLast) {
    scan.damage = { file: file.path, offset: stop.offset, reason: `${stop.reason}, and later log files follow` }
    noteLost(scan, window, stop.offset)
    return
  }
  if (window.fault) scan.damage = { file: file.path, offset: stop.offset, reason: stop.reason }
  else searchTail(scan, file, window, stop.offset, stop.reason)
}

/** Reads the header and takes up the chain. @returns what is wrong with it; empty when nothing is */
function openFile(
  scan: LogScan,
  file: FileReport,
  window: Window,
  isFirst: boolean,
  identity: LogIdentity | undefined,
): string {
  const length = Math.min(file.bytes, FILE_HEADER_BYTES)
  const at = load(window, 0, length)
  if (window.fault) return `the header cannot be read (${window.fault})`
  const header = decodeFileHeader(window.bytes.subarray(at), length)
  if (typeof header === 'string') return header
  file.header = header
  if (header.sequence !== file.sequence || header.firstIndex !== file.firstIndex) {
    return `its name does not match its header (file ${header.sequence}, first index ${header.firstIndex})`
  }
  const expected = identity ?? scan.files[0]?.header?.identity
  if (expected) {
    const other = differingIdentity(expected, header.identity)
    if (other) return `the ${other} differs`
  }
  const { previous } = header
  if (isFirst) {
    scan.sequence = previous.sequence
    scan.chain = previous.checksum
    scan.group = previous.group
    return ''
  }
  const before = scan.files[scan.files.indexOf(file) - 1]
  if (file.sequence !== (before?.sequence ?? 0) + 1) return 'the log file before it is missing'
  if (previous.sequence !== scan.sequence || previous.checksum !== scan.chain || previous.group !== scan.group) {
    return 'it does not continue the log file before it'
  }
  // After an installed snapshot a log restarts. Its first group records that, and is checked for it.
  scan.isJump = header.firstIndex !== scan.lastIndex + 1
  return ''
}

function differingIdentity(expected: LogIdentity, found: LogIdentity): string {
  if (!equalBytes(expected.clusterId, found.clusterId)) return 'cluster id'
  if (!equalBytes(expected.incarnation, found.incarnation)) return 'incarnation'
  return equalBytes(expected.codecHash, found.codecHash) ? '' : 'codec list'
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}

/** Contents of the records of the group being read, until the group is complete. */
type Pending =
  | { type: typeof RECORD_TYPE.entries; offset: number; sequence: number; entries: EntriesSummary }
  | { type: typeof RECORD_TYPE.hardState; offset: number; state: HardState }
  | { type: typeof RECORD_TYPE.snapshotMark; offset: number; mark: SnapshotMark }
  | { type: typeof RECORD_TYPE.fileEnd; offset: number; lastIndex: number }
  | { type: typeof RECORD_TYPE.identity; offset: number; identity: LogIdentity }

type Stop = { readonly offset: number; readonly reason: string; readonly isDamage: boolean }

/** Takes complete groups until a record does not fit, one is senseless, or the file has ended. */
function readGroups(scan: LogScan, file: FileReport, window: Window, from: number): Stop {
  const { record } = window
  const group: Pending[] = []
  let offset = from
  let { sequence, chain } = scan
  while (!file.isEnded) {
    const reason = readRecord(window, offset) || misfit(scan, record, sequence, chain)
    if (reason) return { offset, reason, isDamage: false }
    const pending = decodePayload(window, offset)
    if (!pending) return { offset, reason: 'the record is valid but its content is not', isDamage: true }
    group.push(pending)
    offset += record.bytes
    sequence = record.sequence
    chain = record.checksum
    if (!record.isLastOfGroup) continue
    const fault = checkGroup(scan, file, group)
    if (fault) return { ...fault, isDamage: true }
    applyGroup(scan, file, group)
    scan.sequence = sequence
    scan.chain = chain
    scan.group = record.group
    file.validBytes = offset
    group.length = 0
  }
  return { offset, reason: '', isDamage: false }
}

/**
 * docs/design/storage.md#torn-tail-or-corruption. @returns why a record that is valid by itself does not continue the
 * log here; empty when it does
 */
function misfit(scan: LogScan, record: RecordView, sequence: number, chain: number): string {
  if (record.sequence !== sequence + 1) return `record ${record.sequence} found, ${sequence + 1} expected`
  if (record.chain !== chain) return 'the record does not follow the one before it'
  // A group continues until its last record. Only then comes the next number.
  const group = nextGroup(scan.group)
  return record.group === group ? '' : `a record of group ${record.group} found, group ${group} expected`
}

function decodePayload(window: Window, offset: number): Pending | undefined {
  const { view, bytes, record } = window
  const { payloadStart: start, payloadEnd: end } = record
  const length = end - start
  switch (record.type) {
    case RECORD_TYPE.entries: {
      const entries = summarizeEntries(view, start, end)
      return entries && { type: RECORD_TYPE.entries, offset, sequence: record.sequence, entries }
    }
    case RECORD_TYPE.hardState: {
      const state = readHardState(view, start, length)
      return state && { type: RECORD_TYPE.hardState, offset, state }
    }
    case RECORD_TYPE.snapshotMark: {
      const mark = readSnapshotMark(view, start, length)
      return mark && { type: RECORD_TYPE.snapshotMark, offset, mark }
    }
    case RECORD_TYPE.identity: {
      const identity = readIdentity(bytes, start, length)
      return identity && { type: RECORD_TYPE.identity, offset, identity }
    }
    default:
      if (length !== FILE_END_BYTES) return undefined
      return { type: RECORD_TYPE.fileEnd, offset, lastIndex: readU64(view, start) }
  }
}

/**
 * docs/design/storage.md#torn-tail-or-corruption, docs/design/consensus.md#invariants: what a complete group may say
 * after everything before it. Changes nothing.
 */
function checkGroup(scan: LogScan, file: FileReport, group: readonly Pending[]): Omit<Stop, 'isDamage'> | undefined {
  let { hardState, lastIndex } = scan
  let lastTerm = termOf(scan)
  if (file.records === 0 && !scan.isLoose && group[0]?.type !== RECORD_TYPE.identity) {
    return { offset: group[0]?.offset ?? 0, reason: 'the file does not begin with an identity' }
  }
  if (scan.isJump) {
    const mark = markOf(group)
    const firstIndex = file.header?.firstIndex ?? 0
    if (mark?.index !== firstIndex - 1 || mark.index <= (scan.marks.at(-1)?.index ?? 0)) {
      return { offset: 0, reason: `it begins at index ${firstIndex}, not ${lastIndex + 1}` }
    }
    lastIndex = mark.index
    lastTerm = mark.term
  }
  for (const pending of group) {
    const { offset } = pending
    switch (pending.type) {
      case RECORD_TYPE.identity: {
        const other = file.header && differingIdentity(file.header.identity, pending.identity)
        if (other) return { offset, reason: `the ${other} differs from that of the header` }
        break
      }
      case RECORD_TYPE.hardState: {
        const { state } = pending
        if (state.term < hardState.term) return { offset, reason: `the term goes back to ${state.term}` }
        if (state.term === hardState.term && hardState.vote !== 0 && state.vote !== hardState.vote) {
          return { offset, reason: `a second vote in term ${state.term}` }
        }
        if (state.commit < hardState.commit) return { offset, reason: `the commit index goes back to ${state.commit}` }
        hardState = state
        break
      }
      case RECORD_TYPE.snapshotMark: {
        const before = scan.marks.at(-1)
        if (before && pending.mark.index < before.index) return { offset, reason: 'the snapshot index decreases' }
        break
      }
      case RECORD_TYPE.entries: {
        const { entries } = pending
        if (entries.firstIndex > lastIndex + 1 && !scan.isLoose) {
          return { offset, reason: `entries ${lastIndex + 1} to ${entries.firstIndex - 1} are missing` }
        }
        if (entries.firstIndex <= scan.hardState.commit && !scan.isLoose) {
          return { offset, reason: `entry ${entries.firstIndex} was committed and is replaced` }
        }
        const before = entries.firstIndex > lastIndex ? lastTerm : termAt(scan.terms, entries.firstIndex - 1)
        if ((entries.runs[0]?.term ?? 0) < before) return { offset, reason: 'entry terms decrease' }
        lastTerm = entries.runs.at(-1)?.term ?? 0
        if (lastTerm > hardState.term)
          return { offset, reason: `an entry of term ${lastTerm} before that term was stored` }
        lastIndex = entries.lastIndex
        break
      }
      default:
        if (pending.lastIndex !== lastIndex) return { offset, reason: 'the end of the file has a different last index' }
    }
  }
  if (hardState.commit > lastIndex && !scan.isLoose) {
    const reason = `index ${hardState.commit} was committed and the log ends at ${lastIndex}`
    return { offset: group[0]?.offset ?? 0, reason }
  }
  return undefined
}

function markOf(group: readonly Pending[]): SnapshotMark | undefined {
  for (const pending of group) if (pending.type === RECORD_TYPE.snapshotMark) return pending.mark
  return undefined
}

/** Nothing before an installed snapshot counts any more: its entries may even be others than the shard's. */
function jump(scan: LogScan, file: FileReport, index: number): void {
  scan.isJump = false
  scan.firstIndex = index + 1
  scan.lastIndex = index
  scan.terms.length = 0
  scan.cuts.length = 0
  scan.configurations = []
  for (const before of scan.files) {
    if (before === file) return
    before.lastIndex = Math.min(before.lastIndex, before.firstIndex - 1)
  }
}

function applyGroup(scan: LogScan, file: FileReport, group: readonly Pending[]): void {
  if (scan.isJump) jump(scan, file, markOf(group)?.index ?? scan.lastIndex)
  for (const pending of group) {
    file.records++
    switch (pending.type) {
      case RECORD_TYPE.hardState:
        scan.hardState = pending.state
        break
      case RECORD_TYPE.snapshotMark: {
        const before = scan.marks.at(-1)
        if (before?.index !== pending.mark.index || before.term !== pending.mark.term) scan.marks.push(pending.mark)
        if (scan.marks.length > MARKS_MAX) scan.marks.shift()
        break
      }
      case RECORD_TYPE.entries:
        applyEntries(scan, file, pending.sequence, pending.entries)
        break
      case RECORD_TYPE.fileEnd:
        file.isEnded = true
    }
  }
}

function applyEntries(scan: LogScan, file: FileReport, sequence: number, entries: EntriesSummary): void {
  const { firstIndex, lastIndex } = entries
  if (scan.isLoose) {
    scan.isLoose = false
    scan.firstIndex = firstIndex
    scan.lastIndex = firstIndex - 1
  }
  if (firstIndex <= scan.lastIndex) {
    scan.cuts.push({ sequence, firstIndex })
    while ((scan.terms.at(-1)?.firstIndex ?? 0) >= firstIndex) scan.terms.pop()
    scan.configurations = scan.configurations.filter((index) => index < firstIndex)
  }
  for (const run of entries.runs) if (run.term !== scan.terms.at(-1)?.term) scan.terms.push(run)
  scan.configurations.push(...entries.configurations)
  scan.lastIndex = lastIndex
  file.lastIndex = Math.max(file.lastIndex, lastIndex)
}

/** Term of an entry of the log; 0 when the log does not say. */
export function termAt(terms: readonly TermRun[], index: number): number {
  for (let i = terms.length - 1; i >= 0; i--) {
    const run = terms[i] as TermRun
    if (run.firstIndex <= index) return run.term
  }
  return 0
}

/** Term of the last entry; that of the mark when the log holds no entry behind it. */
function termOf(scan: LogScan): number {
  const last = scan.terms.at(-1)
  if (last) return last.term
  const mark = scan.marks.at(-1)
  return mark && mark.index === scan.lastIndex ? mark.term : 0
}

/**
 * Checks the bytes after the position where reading stopped, in the last file
 * (docs/design/storage.md#torn-tail-or-corruption).
 */
function searchTail(scan: LogScan, file: FileReport, window: Window, from: number, reason: string): void {
  const unfinished = nextGroup(scan.group)
  let end = file.validBytes
  const damage = forEachRecord(window, file.validBytes, (record, offset) => {
    end = Math.max(end, offset + record.bytes)
    if (record.group === unfinished) return undefined
    return `${reason}, and a record of group ${record.group} stands at ${offset}`
  })
  file.tornBytes = Math.max(end, lastByteSet(window, file.validBytes)) - file.validBytes
  if (window.fault)
    scan.damage = { file: file.path, offset: window.start, reason: `it cannot be read (${window.fault})` }
  else if (damage) scan.damage = { file: file.path, offset: from, reason: damage }
  else if (file.records === 0) {
    // The first group of a file is synced before the file gets its name: no crash can tear it.
    scan.damage = { file: file.path, offset: from, reason: `${reason}; the first group of a file is never torn` }
  }
  if (scan.damage) noteLost(scan, window, from)
}

/**
 * Visits every record from `from` on that is valid by itself (docs/design/storage.md#torn-tail-or-corruption), until
 * the visitor returns something.
 */
function forEachRecord<T>(
  window: Window,
  from: number,
  visit: (record: RecordView, offset: number) => T,
): T | undefined {
  for (let offset = from; offset + RECORD_HEADER_BYTES < window.fileBytes; ) {
    const at = load(window, offset, RECORD_HEADER_BYTES)
    if (at < 0) return undefined
    // Most of a tail is zeros: one load decides.
    if (window.view.getUint32(at, true) !== 0 && readRecord(window, offset) === '') {
      const found = visit(window.record, offset)
      if (found !== undefined) return found
      offset += window.record.bytes
      continue
    }
    if (window.fault) return undefined
    offset += 8
  }
  return undefined
}

/** End of the last nonzero byte at or after `from`; `from` if all are zero. */
function lastByteSet(window: Window, from: number): number {
  let end = from
  for (let offset = from; offset < window.fileBytes; ) {
    const length = Math.min(window.bytes.length, window.fileBytes - offset)
    const at = load(window, offset, length)
    if (at < 0) return end
    for (let i = length - 1; i >= 0; i--) {
      if (window.bytes[at + i] !== 0) {
        end = offset + i + 1
        break
      }
    }
    offset += length
  }
  return end
}

/** Notes the highest index in records after a damaged position. */
function noteLost(scan: LogScan, window: Window, from: number): void {
  forEachRecord(window, from, (record) => {
    if (record.type !== RECORD_TYPE.entries) return undefined
    const entries = summarizeEntries(window.view, record.payloadStart, record.payloadEnd)
    scan.lostThrough = Math.max(scan.lostThrough, entries?.lastIndex ?? 0)
    return undefined
  })
}

/** Finds the first record behind a damaged place that begins a group, and takes up the chain there. @returns its offset */
function findGroup(scan: LogScan, window: Window, from: number): number {
  const found = forEachRecord(window, from, (record, offset) => {
    // Every group with entries begins with one.
    if (record.type !== RECORD_TYPE.hardState) return undefined
    scan.sequence = record.sequence - 1
    scan.chain = record.chain
    scan.group = groupBefore(record.group)
    scan.isLoose = true
    return offset
  })
  return found ?? window.fileBytes
}

/**
 * docs/design/consensus.md#when-a-configuration-takes-effect, docs/design/consensus.md#invariants: at most one
 * membership entry above the durable commit index.
 */
function checkWhole(scan: LogScan): void {
  const open = scan.configurations.filter((index) => index > scan.hardState.commit)
  if (open.length <= 1) return
  const file = scan.files.at(-1) as FileReport
  const reason = `entries ${open.join(', ')} change the membership above the commit index ${scan.hardState.commit}`
  scan.damage = { file: file.path, offset: file.validBytes, reason }
}

/** Gets entries in index order. The bytes are a window that the next call overwrites: copy what you keep. */
export type EntryVisitor = (firstIndex: number, count: number, bytes: Uint8Array, start: number, end: number) => void

/**
 * Streams the entries from index `from` on out of the valid part of the files, each index once, as the log has it in
 * the end: what was replaced later is left out. Checksums are verified again (docs/design/consensus.md#invariants).
 *
 * @throws `corrupt_data` when what was valid a moment ago no longer is
 */
export function replayEntries(disk: Disk, scan: LogScan, from: number, visit: EntryVisitor): void {
  const limits = cutLimits(scan.cuts)
  let next = Math.max(from, scan.firstIndex)
  for (const file of scan.files) {
    if (file.lastIndex < next || file.validBytes <= file.validFrom) continue
    const valid = { ...file, bytes: file.validBytes }
    const window = guarded('opening', file.path, () => openWindow(disk, valid, scan.seed))
    try {
      for (let offset = file.validFrom; offset < file.validBytes; offset += window.record.bytes) {
        const fault = readRecord(window, offset)
        if (fault !== '') throw damaged({ file: file.path, offset, reason: fault })
        if (window.record.type !== RECORD_TYPE.entries) continue
        const limit = limitAfter(limits, window.record.sequence)
        next = visitRecord(window, next, Math.min(limit - 1, scan.lastIndex), visit)
      }
    } finally {
      disk.close(window.descriptor)
    }
  }
  assert(next > scan.lastIndex, 'replay reaches the last entry')
}

/** Visits what of one record lies in `next` … `last`. @returns the index that is due then */
function visitRecord(window: Window, next: number, last: number, visit: EntryVisitor): number {
  const { view, record } = window
  const firstIndex = readU64(view, record.payloadStart)
  const count = view.getUint32(record.payloadStart + 8, true)
  const first = Math.max(firstIndex, next)
  const end = Math.min(firstIndex + count - 1, last)
  if (first > end) return next
  assert(first === next, 'entries come in order, without a gap')
  const at = skipEntries(view, record.payloadStart + ENTRIES_HEADER_BYTES, first - firstIndex)
  const stop = end === firstIndex + count - 1 ? record.payloadEnd : skipEntries(view, at, end - first + 1)
  assert(stop - at >= ENTRY_HEADER_BYTES + entryLength(view, at), 'a range holds at least one entry')
  visit(first, end - first + 1, window.bytes, at, stop)
  return end + 1
}

/**
 * Visits the records with entries of a file that may be written meanwhile, from `offset` on, until the visitor returns
 * false or a record is not valid by itself.
 *
 * @returns offset of the record at which it stopped
 */
export function forEachEntries(
  disk: Disk,
  file: FileReport,
  seed: number,
  offset: number,
  visit: (firstIndex: number, count: number, view: DataView, start: number, end: number) => boolean,
): number {
  const window = openWindow(disk, file, seed)
  try {
    let at = offset
    while (at < file.bytes && readRecord(window, at) === '') {
      const { record, view } = window
      if (record.type === RECORD_TYPE.entries) {
        const firstIndex = readU64(view, record.payloadStart)
        const count = view.getUint32(record.payloadStart + 8, true)
        if (!visit(firstIndex, count, view, record.payloadStart + ENTRIES_HEADER_BYTES, record.payloadEnd)) return at
      }
      at += record.bytes
    }
    return at
  } finally {
    disk.close(window.descriptor)
  }
}

type CutLimits = { readonly sequences: readonly number[]; readonly limits: readonly number[]; at: number }

/** For each cut the lowest index that it or a later one replaced. */
function cutLimits(cuts: readonly Cut[]): CutLimits {
  const limits = cuts.map((cut) => cut.firstIndex)
  for (let i = limits.length - 2; i >= 0; i--) limits[i] = Math.min(limits[i], limits[i + 1])
  return { sequences: cuts.map((cut) => cut.sequence), limits, at: 0 }
}

/** Entries of the record at `sequence` count below this index; above, a later record has replaced them. */
function limitAfter(limits: CutLimits, sequence: number): number {
  // Records come in order, so the place among the cuts only moves forward.
  while ((limits.sequences[limits.at] ?? Number.POSITIVE_INFINITY) <= sequence) limits.at++
  return limits.limits[limits.at] ?? Number.POSITIVE_INFINITY
}

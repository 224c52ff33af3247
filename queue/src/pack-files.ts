/**
 * Files beside a SQLite queue that hold the packs of large groups (docs/design/queue.md#pack-files). SQLite writes each
 * byte twice, to its log and to its file, and sums it up in between; these are written once. A row of SQLite refers to each
 * pack. Bytes that no row refers to mean nothing and are overwritten.
 */
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  openSync,
  readdirSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { assert } from '@vacancy/shared'

/** Another file begins when a group would exceed this. A group that is larger has a file of its own. */
const FILE_BYTES = 16 << 20
/** Empty files that are kept, to be written again: their space is allocated already. */
const SPARE_FILES = 2

/** Where a pack is. */
export type PackPlace = {
  readonly file: number
  readonly at: number
  readonly bytes: number
  /** CRC-32 of its bytes. */
  readonly checksum: number
}

type PackFile = {
  readonly number: number
  readonly handle: number
  /** Where the next pack is written. */
  end: number
  /** Bytes of its packs. */
  used: number
  /** Since when packs are less than half of it, in milliseconds; 0 before. */
  sparseSince: number
}

export type PackFiles = {
  /** Path of each file without its number. */
  readonly prefix: string
  readonly byNumber: Map<number, PackFile>
  /** The file that is being filled. */
  current: PackFile | undefined
  readonly spare: PackFile[]
  lastNumber: number
}

/**
 * Opens the files that have packs, and deletes those with the same prefix that have none.
 *
 * @throws when a file is missing; then none was deleted
 */
export function openPackFiles(prefix: string, places: Iterable<PackPlace>): PackFiles {
  const files: PackFiles = { prefix, byNumber: new Map(), current: undefined, spare: [], lastNumber: 0 }
  for (const { file, at, bytes } of places) {
    const known = files.byNumber.get(file) ?? openFile(files, file)
    known.end = Math.max(known.end, at + bytes)
    known.used += bytes
    files.lastNumber = Math.max(files.lastNumber, file)
  }
  const start = `${basename(prefix)}-`
  for (const name of readdirSync(dirname(prefix))) {
    const number = name.startsWith(start) ? Number(name.slice(start.length)) : Number.NaN
    if (Number.isSafeInteger(number) && !files.byNumber.has(number)) unlinkSync(join(dirname(prefix), name))
  }
  files.current = files.byNumber.get(files.lastNumber)
  return files
}

const pathOf = ({ prefix }: PackFiles, number: number) => `${prefix}-${number}`

function openFile(files: PackFiles, number: number): PackFile {
  const path = pathOf(files, number)
  if (!existsSync(path)) throw new Error(`damaged: its file ${basename(path)} is missing`)
  const opened: PackFile = { number, handle: openSync(path, 'r+'), end: 0, used: 0, sparseSince: 0 }
  files.byNumber.set(number, opened)
  return opened
}

/**
 * Writes and syncs the packs of a group, which follow each other in memory. They count once they are kept.
 *
 * @param packs where each is in the memory
 * @throws when the disk is full, or fails
 */
export function writePacks(
  files: PackFiles,
  memory: SharedArrayBuffer,
  packs: readonly { readonly from: number; readonly to: number }[],
  isSynced: boolean,
): PackPlace[] {
  const start = packs[0]?.from ?? 0
  const bytes = new Uint8Array(memory, start, (packs.at(-1)?.to ?? start) - start)
  const { number, handle, end } = fileFor(files, bytes.length)
  for (let written = 0; written < bytes.length; )
    written += writeSync(handle, bytes, written, bytes.length - written, end + written)
  if (isSynced) fdatasyncSync(handle)
  return packs.map(({ from, to }) => ({
    file: number,
    at: end + from - start,
    bytes: to - from,
    checksum: crc32(new Uint8Array(memory, from, to - from)),
  }))
}

function fileFor(files: PackFiles, bytes: number): PackFile {
  const { current } = files
  if (current !== undefined && (current.end === 0 || current.end + bytes <= FILE_BYTES)) return current
  const next = files.spare.pop() ?? createFile(files)
  files.current = next
  return next
}

function createFile(files: PackFiles): PackFile {
  const number = ++files.lastNumber
  // Only the owner may read payloads.
  const handle = openSync(pathOf(files, number), 'wx+', 0o600)
  const created: PackFile = { number, handle, end: 0, used: 0, sparseSince: 0 }
  files.byNumber.set(number, created)
  // Its name must be there after a crash, too.
  const folder = openSync(dirname(files.prefix), 'r')
  fsyncSync(folder)
  closeSync(folder)
  return created
}

/** The row of a pack is durable. */
export function keepPack(files: PackFiles, { file, at, bytes }: PackPlace): void {
  const holder = fileOf(files, file)
  holder.end = Math.max(holder.end, at + bytes)
  holder.used += bytes
}

/** The row of a pack is gone, and that is durable. */
export function dropPack(files: PackFiles, { file, bytes }: PackPlace): void {
  const holder = fileOf(files, file)
  holder.used -= bytes
  assert(holder.used >= 0, 'a pack is dropped once')
  if (holder.used > 0) return
  if (holder === files.current) holder.end = 0
  else empty(files, holder)
}

/** A file without packs is written again, or deleted. */
function empty(files: PackFiles, file: PackFile): void {
  file.end = 0
  file.sparseSince = 0
  if (files.spare.length < SPARE_FILES) files.spare.push(file)
  else remove(files, file)
}

function remove(files: PackFiles, file: PackFile): void {
  closeSync(file.handle)
  files.byNumber.delete(file.number)
  unlinkSync(pathOf(files, file.number))
}

function fileOf(files: PackFiles, number: number): PackFile {
  const file = files.byNumber.get(number)
  assert(file !== undefined, 'a pack is in a file that is open')
  return file
}

/** @param data of its size @throws when it is not what was written */
export function readPacked(
  files: PackFiles,
  { file, at, bytes, checksum }: PackPlace,
  data: Uint8Array = new Uint8Array(bytes),
): Uint8Array {
  const { handle } = fileOf(files, file)
  let read = 0
  for (let more = -1; more !== 0 && read < bytes; read += more)
    more = readSync(handle, data, read, bytes - read, at + read)
  if (read < bytes || crc32(data) !== checksum)
    throw new Error(`damaged: ${basename(pathOf(files, file))} has other bytes at ${at} than were written`)
  return data
}

/**
 * Finds files of which less than half has been packs for so long: what is left is to be moved out of them. Looks at all,
 * so it is to be called now and then.
 */
export function findSparseFiles({ byNumber, current }: PackFiles, nowMs: number, sparseMs: number): Set<number> {
  const found = new Set<number>()
  for (const file of byNumber.values()) {
    if (file === current || file.used * 2 >= file.end) file.sparseSince = 0
    else if (file.sparseSince === 0) file.sparseSince = nowMs
    if (file.sparseSince > 0 && nowMs - file.sparseSince >= sparseMs) found.add(file.number)
  }
  return found
}

/** Bytes of all files, and those of them that are no packs. */
export function packFileSizes({ byNumber }: PackFiles): { readonly bytes: number; readonly freeBytes: number } {
  let [bytes, used] = [0, 0]
  for (const file of byNumber.values()) {
    bytes += file.end
    used += file.used
  }
  return { bytes, freeBytes: bytes - used }
}

/**
 * Deletes nothing: when the sync of a group failed, a row may refer to a file that has no pack here. The next start sees
 * which files have packs.
 */
export function closePackFiles({ byNumber }: PackFiles): void {
  for (const { handle } of byNumber.values()) closeSync(handle)
}

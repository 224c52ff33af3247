/**
 * The environment as one value: clocks, randomness, disk, timers, the host, the log. This file has the real one
 * (docs/design/consensus.md#determinism).
 *
 * WAL, snapshots and the replica use these only through an `Env`, so that a simulator can run the same code with disks
 * that lose data and clocks that jump. Disk calls are synchronous: they belong on threads that may block.
 */

import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  renameSync,
  rmdirSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { hostname, setPriority } from 'node:os'
import { dirname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Clock, type Schedule, VacancyError } from '@vacancy/shared'
import { type FileLock, lockFile } from '@vacancy/shared/file-lock'
import { systemSchedule } from '@vacancy/shared/schedule'

type OpenMode =
  /** An existing file, for reading. */
  | 'read'
  /** An existing file, for reading and writing. */
  | 'write'
  /** A new file, for reading and writing; EEXIST if it exists. */
  | 'create'

export type FileStat = { readonly bytes: number; readonly isDirectory: boolean }

/**
 * Plain operating system calls: a write may be short, and any call may throw an errno error (an `Error` with `code`).
 * `readFully` and `writeFully` below continue after short writes and interruptions, in both environments.
 */
export type Disk = {
  open(path: string, mode: OpenMode): number
  /** @returns bytes read; fewer than requested at the end of the file, or by chance */
  read(file: number, bytes: Uint8Array, start: number, length: number, position: number): number
  /** @returns bytes written; may be fewer than requested */
  write(file: number, bytes: Uint8Array, start: number, length: number, position: number): number
  /** Makes content and length of the file durable, not its name. */
  syncData(file: number): void
  close(file: number): void
  /** Replaces `to`. Atomic, but durable only after `syncDirectory` of the folders of both. */
  rename(from: string, to: string): void
  unlink(path: string): void
  makeDirectory(path: string): void
  removeDirectory(path: string): void
  /** Names in a folder, sorted by code unit; ENOENT if it does not exist. */
  list(path: string): string[]
  /** @returns undefined if the file or folder does not exist */
  stat(path: string): FileStat | undefined
  /** Makes creations, renames and removals in this folder durable. */
  syncDirectory(path: string): void
  space(path: string): { freeBytes: number; totalBytes: number }
  /** Locks a file, created when it is missing, until the process ends. @returns undefined when another one holds it */
  lock(path: string): FileLock | undefined
}

/** Identifies processes for LOCK: process ids are reused, so a start time and the boot id are included. */
type Host = {
  readonly processId: number
  readonly bootId: string
  /** Start time of a process, in units of the host; undefined if no such process is alive. */
  startOf(processId: number): string | undefined
}

/** The part of the logger of shared/src/node/log.ts that the engine uses. */
export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type Env = {
  readonly clock: Clock
  readonly random: { bytes(count: number): Uint8Array }
  readonly disk: Disk
  readonly schedule: Schedule
  readonly host: Host
  readonly log: Log
  /**
   * Forces rare branches in a simulation: true with probability `p`; absent everywhere else
   * (docs/design/testing.md#simulation).
   */
  readonly sometimes?: (name: string, p: number) => boolean
}

export function createEnv(log: Log): Env {
  return {
    clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() },
    // A copy: Node returns a view of its pool, which must not be transferred to another thread.
    random: { bytes: (count) => Uint8Array.from(randomBytes(count)) },
    disk: realDisk,
    schedule: systemSchedule,
    host: realHost(),
    log,
  }
}

const OPEN_FLAGS = { read: 'r', write: 'r+', create: 'wx+' } as const satisfies Record<OpenMode, string>

/** The operating system's disk; throws errno errors. */
export const realDisk: Disk = {
  open: (path, mode) => openSync(path, OPEN_FLAGS[mode]),
  read: (file, bytes, start, length, position) => readSync(file, bytes, start, length, position),
  write: (file, bytes, start, length, position) => writeSync(file, bytes, start, length, position),
  syncData: (file) => fdatasyncSync(file),
  close: (file) => closeSync(file),
  rename: (from, to) => renameSync(from, to),
  unlink: (path) => unlinkSync(path),
  makeDirectory: (path) => mkdirSync(path),
  removeDirectory: (path) => rmdirSync(path),
  list: (path) => readdirSync(path).sort(),
  stat(path) {
    const found = statSync(path, { throwIfNoEntry: false })
    return found && { bytes: found.size, isDirectory: found.isDirectory() }
  },
  syncDirectory(path) {
    const folder = openSync(path, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  },
  space(path) {
    const { bsize, bavail, blocks } = statfsSync(path)
    return { freeBytes: bsize * bavail, totalBytes: bsize * blocks }
  },
  lock: (path) => lockFile(path),
}

function realHost(): Host {
  return {
    processId: process.pid,
    bootId: readLine('/proc/sys/kernel/random/boot_id') ?? hostname(),
    startOf(processId) {
      const stat = readLine(`/proc/${processId}/stat`)
      // The program name is in parentheses and may contain blanks. The start time is the 20th field after it.
      if (stat !== undefined) {
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        // A zombie whose last thread has ended: it holds no open files.
        if (fields[0] === 'Z' && Number(fields[17]) <= 1) return undefined
        return fields[19]
      }
      return isAlive(processId) ? 'unknown' : undefined
    },
  }
}

/** Nice value of background threads, as `nice -n 10`. */
const BACKGROUND = 10

/**
 * Lets the other threads of the process go first when cores are scarce. On Linux a priority belongs to a thread, and
 * `/proc/thread-self` is the calling one. No effect elsewhere.
 */
export function runInBackground(): void {
  lower(() => [Number(readlinkSync('/proc/thread-self').split('/').at(-1))])
}

/**
 * The same for the threads with which V8 compiles, and collects garbage, beside all others: a request would wait for a
 * whole time slice of theirs. Young garbage is then collected without them, so that nothing waits for a thread that
 * waits for a core.
 */
export function compileInBackground(): void {
  setFlagsFromString('--no-parallel-scavenge')
  const isOfV8 = (thread: string) => readLine(`/proc/self/task/${thread}/comm`) === 'node-V8Worker'
  lower(() => readdirSync('/proc/self/task').filter(isOfV8).map(Number))
}

function lower(threads: () => readonly number[]): void {
  try {
    for (const thread of threads()) setPriority(thread, BACKGROUND)
  } catch {
    // No such file on this platform, or a container forbids it: the threads keep their priority.
  }
}

/** Collects the garbage of this thread now: a quiet thread may not collect for hours. */
export function releaseMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

function readLine(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1').trimEnd()
  } catch {
    // No /proc on this platform, or no such process: the caller has another check.
    return undefined
  }
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0)
    return true
  } catch (error) {
    // EPERM: it is alive and belongs to another user.
    return errnoOf(error) === 'EPERM'
  }
}

/** Code of an errno error, such as `ENOSPC`; empty for any other value. */
export function errnoOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  // Our own errors also have a code, in lower case.
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : ''
}

/** No room on the disk or in a quota. */
export function isDiskFull(error: unknown): boolean {
  const code = errnoOf(error)
  return code === 'ENOSPC' || code === 'EDQUOT'
}

/**
 * Writes all of `length` bytes: short writes are continued, interrupted ones repeated
 * (docs/design/storage.md#disk-errors).
 *
 * @throws the errno error of a call that failed; then any part of the bytes may have been written
 */
export function writeFully(
  disk: Disk,
  file: number,
  bytes: Uint8Array,
  start: number,
  length: number,
  position: number,
): void {
  let done = 0
  while (done < length) {
    try {
      const written = disk.write(file, bytes, start + done, length - done, position + done)
      // A device that accepts no bytes and reports no error would block here forever.
      if (written <= 0) throw Object.assign(new Error('a write wrote 0 bytes'), { code: 'EIO' })
      done += written
    } catch (error) {
      if (errnoOf(error) !== 'EINTR') throw error
    }
  }
}

/** Reads until `length` bytes are there or the file ends. @returns bytes read */
export function readFully(
  disk: Disk,
  file: number,
  bytes: Uint8Array,
  start: number,
  length: number,
  position: number,
): number {
  let done = 0
  while (done < length) {
    try {
      const read = disk.read(file, bytes, start + done, length - done, position + done)
      if (read === 0) break
      done += read
    } catch (error) {
      if (errnoOf(error) !== 'EINTR') throw error
    }
  }
  return done
}

/** The content of a small file; undefined if it does not exist. `bytesMax` bounds the cost of a damaged length. */
export function readSmallFile(disk: Disk, path: string, bytesMax: number): Uint8Array | undefined {
  const stat = disk.stat(path)
  if (stat === undefined || stat.isDirectory) return undefined
  const file = disk.open(path, 'read')
  try {
    const bytes = new Uint8Array(Math.min(stat.bytes, bytesMax))
    return bytes.subarray(0, readFully(disk, file, bytes, 0, bytes.length, 0))
  } finally {
    disk.close(file)
  }
}

/**
 * Replaces a small file so that after a crash either the old or the new one exists, complete: temporary name, sync,
 * rename, sync of the folder (docs/design/storage.md#data-directory).
 *
 * @throws the errno error unchanged if the disk is full or the file cannot be created (no file has changed then);
 *   `disk_failed` after any other one, which ends the process (docs/design/storage.md#disk-errors)
 */
export function replaceFile(disk: Disk, path: string, bytes: Uint8Array): void {
  const temporary = `${path}.tmp`
  if (disk.stat(temporary)) unlinkFile(disk, temporary)
  const file = disk.open(temporary, 'create')
  try {
    writeFully(disk, file, bytes, 0, bytes.length, 0)
  } catch (error) {
    if (!isDiskFull(error)) throw diskFailed('write', temporary, error)
    disk.close(file)
    unlinkFile(disk, temporary)
    throw error
  }
  syncFile(disk, file, temporary)
  disk.close(file)
  renameFile(disk, temporary, path)
  syncFolder(disk, dirname(path))
}

/** A rename whose failure ends the process, except on a full disk, which is reported unchanged. */
export function renameFile(disk: Disk, from: string, to: string): void {
  try {
    disk.rename(from, to)
  } catch (error) {
    throw isDiskFull(error) ? error : diskFailed('rename', from, error)
  }
}

/** A removal whose failure ends the process. */
export function unlinkFile(disk: Disk, path: string): void {
  try {
    disk.unlink(path)
  } catch (error) {
    throw diskFailed('unlink', path, error)
  }
}

/**
 * fdatasync whose failure ends the process: after it the kernel may have dropped the data
 * (docs/design/storage.md#disk-errors).
 */
export function syncFile(disk: Disk, file: number, path: string): void {
  try {
    disk.syncData(file)
  } catch (error) {
    throw diskFailed('fdatasync', path, error)
  }
}

/** Sync of a folder; its failure is as fatal as that of a file. */
export function syncFolder(disk: Disk, path: string): void {
  try {
    disk.syncDirectory(path)
  } catch (error) {
    throw diskFailed('fsync', path, error)
  }
}

/** Runs other disk calls: their errors end the process too, except on a full disk. */
export function guarded<T>(operation: string, path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (errnoOf(error) === '' || isDiskFull(error)) throw error
    throw diskFailed(operation, path, error)
  }
}

/** The error that ends the process with exit code 70. */
export function diskFailed(operation: string, file: string, cause: unknown): VacancyError {
  const reason = errnoOf(cause) || String(cause)
  return new VacancyError('disk_failed', { operation, file, reason }, { cause })
}

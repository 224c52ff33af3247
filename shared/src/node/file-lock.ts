/**
 * A lock that the kernel holds for this process. It keeps out every other process of the machine, in whatever
 * namespaces they run, and ends with this one, however it ends. Node has no call for it: SQLite takes it.
 */

import { accessSync, closeSync, constants, openSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { VacancyError } from '../errors.ts'

export type FileLock = {
  /** False once the file is deleted or replaced: then another process can take a lock of the same name. */
  readonly isInPlace: () => boolean
  readonly release: () => void
}

/** A process that was just killed keeps its locks until the system has reclaimed its memory. */
const LOCK_WAIT_MS = 3_000
/** How often holders look whether their file is in place; after LOCK_LOST_MS without it they have ended. */
export const LOCK_LOOK_MS = 1_000
export const LOCK_LOST_MS = 3 * LOCK_LOOK_MS

/** Result code of SQLite. */
const SQLITE_BUSY = 5

/**
 * Takes the lock, and creates its file when it is missing. Waits up to `waitMs` for a holder that is ending.
 *
 * @returns undefined when another process, or this one, holds it
 * @throws errno errors of a file that cannot be created or written
 */
export function lockFile(file: string, waitMs = LOCK_WAIT_MS): FileLock | undefined {
  create(file)
  accessSync(file, constants.R_OK | constants.W_OK)
  const before = identityOf(file)
  const database = new DatabaseSync(file, { timeout: waitMs })
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined
    throw error
  }
  const isInPlace = () => identityOf(file) === before
  // Replaced while it was opened.
  if (before === undefined || !isInPlace()) {
    database.close()
    return undefined
  }
  return { isInPlace, release: () => database.close() }
}

/**
 * Takes the lock for the life of a program, which ends (`lock_lost`) soon after the file is deleted or replaced.
 *
 * @returns releases it; undefined when another process holds it
 */
export function holdFile(file: string, waitMs = LOCK_WAIT_MS): (() => void) | undefined {
  const lock = lockFile(file, waitMs)
  if (!lock) return undefined
  const stopWatching = watchFile(file)
  return () => {
    stopWatching()
    lock.release()
  }
}

/** Ends the program (`lock_lost`) soon after a file that it has locked is deleted or replaced. @returns stops watching */
export function watchFile(file: string): () => void {
  const before = identityOf(file)
  const timer = setInterval(() => {
    if (identityOf(file) !== before) throw new VacancyError('lock_lost', { file })
  }, LOCK_LOOK_MS).unref()
  return () => clearInterval(timer)
}

/** An existing file is not opened: closing any descriptor of a file gives up the locks that its process has on it. */
function create(file: string): void {
  if (identityOf(file) !== undefined) return
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function identityOf(file: string): string | undefined {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false })
  return found && `${found.dev}/${found.ino}`
}

/** The folder of the control plane's own files: created, and locked for one process. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { VacancyError } from '@vacancy/shared'
import type { ControlConfig } from './config.ts'

export type Folders = { readonly cluster: string; readonly imports: string }

export function makeFolders(config: ControlConfig): Folders {
  const folders = {
    cluster: join(config.dataDir, 'cluster'),
    imports: config.importsDir === '' ? join(config.dataDir, 'imports') : config.importsDir,
  }
  for (const folder of Object.values(folders)) makeFolder(folder)
  return folders
}

/** The location of the database, for openDatabase. */
export function databaseOf(config: ControlConfig): string {
  return config.databaseUrl === '' ? join(config.dataDir, 'control-plane.sqlite') : config.databaseUrl
}

/** One folder at a time: a recursive mkdir never returns on file systems that refuse with "not found", as /proc does. */
function makeFolder(folder: string): void {
  const path = resolve(folder)
  try {
    if (existsSync(path)) return
    makeFolder(dirname(path))
    mkdirSync(path, { mode: 0o700 })
  } catch (cause) {
    if (cause instanceof VacancyError) throw cause
    const reason = (cause as Error).message
    throw new VacancyError('failure', { reason: `cannot create the folder ${path}: ${reason}` }, { cause })
  }
}

/**
 * Keeps a second control plane out of the folder: both would resume the same operations and imports. The operating
 * system releases the lock after a crash.
 */
export function lockFolder(folder: string): () => Promise<void> {
  const lock = new DatabaseSync(join(folder, 'lock'))
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    lock.close()
    throw new VacancyError(
      'data_conflict',
      { reason: `${folder} is in use by another control plane. Stop it, or choose another data_dir` },
      { cause },
    )
  }
  return async () => lock.close()
}

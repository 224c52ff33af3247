/** The folder of the control plane's own files: created, and locked for one process. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { VacancyError } from '@vacancy/shared'
import { holdFile } from '@vacancy/shared/file-lock'
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
 * Keeps a second control plane out of the folder of data, and out of that of uploads where it is another one: both would
 * resume the same operations and imports.
 */
export function lockFolders({ dataDir }: ControlConfig, { imports }: Folders): () => Promise<void> {
  const held: (() => void)[] = []
  const release = async () => {
    for (const each of held) each()
  }
  const isOutside = relative(dataDir, imports).startsWith('..') || isAbsolute(relative(dataDir, imports))
  for (const folder of isOutside ? [dataDir, imports] : [dataDir]) {
    const hold = holdFile(join(folder, 'lock'))
    if (!hold) {
      void release()
      const key = folder === dataDir ? 'data_dir' : 'imports_dir'
      const reason = `${folder} is in use by another control plane. Stop it, or choose another ${key}`
      throw new VacancyError('data_conflict', { reason })
    }
    held.push(hold)
  }
  return release
}

/**
 * Storage of the registry's state. The interface allows a store shared by several registries. This is the embedded
 * one: a file that is replaced as a whole, so that after a crash the old or the new state exists, with the previous
 * one as `.bak` (docs/design/http.md#registry-storage).
 */

import { copyFile, link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { VacancyError } from '@vacancy/shared'
import { holdFile } from '@vacancy/shared/file-lock'
import type { Log } from '@vacancy/shared/node'

export type RegistryStorage = {
  /** For messages. */
  readonly name: string
  /** Keeps other registries out until `close`. @throws VacancyError data_conflict while another one has the state */
  open(): Promise<void>
  close(): void
  /**
   * Loads the last saved state.
   *
   * @param isUsable '' when a text can be used, else what is wrong with it: then an older one is tried
   * @returns undefined when no state was ever saved
   * @throws VacancyError data_conflict when files exist and none can be used
   */
  load(isUsable: (text: string) => string): Promise<string | undefined>
  /** Saves a state. When it resolves, the state survives a power loss. Calls must not overlap. */
  save(text: string): Promise<void>
  /** Sets existing files aside, without deleting them; the next load finds none. */
  setAside(suffix: string): Promise<void>
}

/**
 * The embedded store.
 *
 * @param file its folder is created when it is missing
 */
export function fileStorage(file: string, log: Log): RegistryStorage {
  const folder = path.dirname(file)
  const [backup, fresh, spare] = [`${file}.bak`, `${file}.tmp`, `${file}.bak.tmp`]
  /** The file as last read or written. A different one belongs to another process, and is not overwritten. */
  let known: string | undefined
  let release: (() => void) | undefined
  return {
    name: file,
    async open() {
      // A path through a file is no fault of the disk.
      await readOrNothing(file)
      await mkdir(folder, { recursive: true })
      release = holdFile(`${file}.lock`)
      if (release) return
      const reason = `${file} is in use by another registry. Stop it, or choose another --state-file`
      throw new VacancyError('data_conflict', { reason })
    },
    close: () => release?.(),
    async load(isUsable) {
      const faults: string[] = []
      for (const each of [file, backup]) {
        const text = await readOrNothing(each)
        if (text === undefined) continue
        const fault = isUsable(text)
        if (fault === '') {
          if (faults.length > 0) {
            // Moved away, because the next save turns the current file into the backup.
            await rename(file, `${file}.damaged`)
            log.error({ file, used: each }, `${faults.join('; ')}: kept as .damaged, and the state before it is used`)
          }
          known = await lookOf(file)
          return text
        }
        faults.push(`${each} cannot be used: ${fault}`)
      }
      if (faults.length === 0) return undefined
      throw new VacancyError('data_conflict', {
        reason: `${faults.join('; ')}. Put a copy of the state there, or start with --reset-state: then components and shards register again`,
      })
    },
    async save(text) {
      const found = await lookOf(file)
      if (found !== undefined && found !== known)
        throw new Error('it was changed by another process: is a second registry using it?')
      await mkdir(folder, { recursive: true })
      const handle = await open(fresh, 'w')
      try {
        await handle.writeFile(text)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await keepPrevious(file, backup, spare)
      await rename(fresh, file)
      known = await lookOf(file)
      await syncFolder(folder)
    },
    async setAside(suffix) {
      for (const each of [file, backup]) {
        await rename(each, `${each}.${suffix}`).catch(unlessMissing)
      }
      await syncFolder(folder).catch(unlessMissing)
    },
  }
}

async function lookOf(file: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs } = await stat(file, { bigint: true })
    return `${dev}/${ino}/${size}/${mtimeNs}`
  } catch (error) {
    // ENOTDIR: a part of the path is a file; the write reports it.
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

/** Links `.bak` to the current file, so that the main name never disappears. */
async function keepPrevious(file: string, backup: string, spare: string): Promise<void> {
  await rm(spare, { force: true })
  try {
    await link(file, spare)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    // A file system without links.
    await copyFile(file, spare)
  }
  await rename(spare, backup)
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function readOrNothing(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw new VacancyError(
      'data_conflict',
      { reason: `${file}: cannot be read: ${(error as Error).message}` },
      { cause: error },
    )
  }
}

function unlessMissing(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

/**
 * A file with the last known state, so that a component starts without the services it learned it from. A damaged or
 * missing file means only that it starts without.
 */

import { readFileSync } from 'node:fs'
import { mkdir, open, rename } from 'node:fs/promises'
import path from 'node:path'
import { threadId } from 'node:worker_threads'
import type { Log } from '@vacancy/shared/node'
import type { z } from 'zod'

export type CacheFile<T> = {
  /** The saved value; undefined when there is none that can be used. */
  load(): T | undefined
  /** Saves the value that `value` returns when its turn comes: one write at a time, the last one wins. */
  save(value: () => T): void
  /** Resolves when nothing is left to write. */
  flush(): Promise<void>
}

/** @param name for the log: what the file holds */
export function openCacheFile<S extends z.ZodType>(options: {
  readonly folder: string
  readonly file: string
  readonly name: string
  readonly schema: S
  readonly log: Log
}): CacheFile<z.infer<S>> {
  const { folder, name, schema, log } = options
  const file = path.join(folder, options.file)
  let next: (() => z.infer<S>) | undefined
  let writing: Promise<void> | undefined
  const writeAll = async (): Promise<void> => {
    while (next) {
      const value = next
      next = undefined
      try {
        await replaceFile(folder, file, JSON.stringify(value()))
      } catch (error) {
        log.warn({ file, err: error }, `the cache of ${name} cannot be written`)
      }
    }
    writing = undefined
  }
  return {
    load() {
      try {
        const parsed = schema.safeParse(JSON.parse(readFileSync(file, 'utf8')))
        if (parsed.success) return parsed.data
        log.warn({ file }, `the cache of ${name} has a different format and is ignored`)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
          log.warn({ file, err: error }, `the cache of ${name} cannot be read and is ignored`)
      }
      return undefined
    },
    save(value) {
      next = value
      writing ??= writeAll()
    },
    flush: async () => await writing,
  }
}

/** After a crash the old or the new file exists, whole. */
async function replaceFile(folder: string, file: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  // Workers of a proxy share the file.
  const fresh = `${file}.${threadId}.tmp`
  const handle = await open(fresh, 'w')
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(fresh, file)
}

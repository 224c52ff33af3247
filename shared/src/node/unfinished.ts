/**
 * Input that is not finished: a file that changed while it was read, or that a process still writes. A writer may pause
 * longer than an import takes, so on Linux the open files of processes are looked at, too.
 */

import { readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs'

/** What an open file was when it was opened. */
export type Opened = Pick<Stats, 'dev' | 'ino' | 'size' | 'mtimeMs'>

/** @returns '' or what happened to the file, to follow its name */
export function changeOf(path: string, opened: Opened): string {
  const now = statSync(path, { throwIfNoEntry: false })
  if (!now) return 'was removed while it was read; build again when it is complete'
  const isSame =
    now.dev === opened.dev && now.ino === opened.ino && now.size === opened.size && now.mtimeMs === opened.mtimeMs
  if (!isSame) return 'changed while it was read; build again when it is complete'
  const writer = writerOf(path)
  return writer === '' ? '' : `is still open for writing by ${writer}; build again when it is complete`
}

/** Of `/proc/PID/fdinfo/FD`: opened for writing, or for both. */
const WRITES = /^flags:\s+0*[0-7]*[12]$/m

/** @returns '' or a process of this machine that has the file open for writing; those of other users are not seen */
export function writerOf(path: string): string {
  const wanted = statSync(path, { throwIfNoEntry: false })
  if (process.platform !== 'linux' || !wanted) return ''
  for (const pid of namesIn('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const descriptor of namesIn(`/proc/${pid}/fd`)) {
      try {
        // By its number: the file may have another name, as a hard link has.
        if (/^(?!\/(dev|proc|sys)\/)\//.test(readlinkSync(`/proc/${pid}/fd/${descriptor}`))) {
          const { dev, ino } = statSync(`/proc/${pid}/fd/${descriptor}`)
          if (dev !== wanted.dev || ino !== wanted.ino) continue
          if (WRITES.test(readFileSync(`/proc/${pid}/fdinfo/${descriptor}`, 'utf8'))) return `process ${pid}`
        }
      } catch {
        // The descriptor or its process is gone, or another user's.
      }
    }
  }
  return ''
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    // The process is gone, or another user's.
    return []
  }
}

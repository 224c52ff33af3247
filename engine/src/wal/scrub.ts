/**
 * Reads the log back while the node runs, a file a step, so that rot is found before a recovery needs it
 * (docs/design/storage.md#scrubbing).
 */
import { type Disk, errnoOf } from '../env.ts'
import { type Damage, type FileReport, listLogFiles, scanLog } from './scan.ts'

/** `file`: the one that was read; the next step continues after it. */
export type LogScrubStep = { readonly file: string; readonly damage: Damage | undefined }

/**
 * Verifies the first file behind `after` that is written no more.
 *
 * @param after name of a log file, '' to begin
 * @returns undefined when there is none left
 */
export function scrubLogStep(disk: Disk, directory: string, after: string): LogScrubStep | undefined {
  // Names sort as sequences do, and only the last file is written.
  const file = listLogFiles(disk, directory)
    .slice(0, -1)
    .find(({ name }) => name > after)
  return file && { file: file.name, damage: verify(disk, file) }
}

function verify(disk: Disk, file: FileReport): Damage | undefined {
  try {
    const { damage } = scanLog(disk, [file])
    if (damage) return damage
  } catch (error) {
    // Compacted between the list and the look.
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
  const { path, validBytes, isEnded } = file
  return isEnded
    ? undefined
    : { file: path, offset: validBytes, reason: 'no whole group follows, and later log files do' }
}

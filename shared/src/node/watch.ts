/**
 * Files that settings name. Their changes are detected by polling. System notifications miss important cases: secrets
 * that an orchestrator swaps through a symlink, editors that replace a file, network file systems.
 */

import { readFileSync, statSync } from 'node:fs'
import { VacancyError } from '../errors.ts'
import type { Log } from './log.ts'

/** Polling interval. */
const LOOK_MS = 2_000

/** The text of a file. @throws VacancyError with this code when it cannot be read */
export function readText(file: string, code: 'invalid_config' | 'invalid_tls' | 'invalid_tokens'): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new VacancyError(code, { reason: `${file}: cannot be read: ${(cause as Error).message}` }, { cause })
  }
}

/**
 * Calls back after a watched file changed, appeared or disappeared. An error of the callback is logged: a file may be
 * half-written, or the first of two that belong together. Polling does not keep a process alive.
 *
 * @returns stops watching
 */
export function watchFiles(
  paths: readonly string[],
  onChange: () => void,
  failed: { readonly log: Log; readonly message: string },
  lookMs: number = LOOK_MS,
): () => void {
  let seen = paths.map(lookOf).join()
  const timer = setInterval(() => {
    const now = paths.map(lookOf).join()
    if (now === seen) return
    // Read before the caller reads the files, so that a write during its read counts as a change.
    seen = now
    try {
      onChange()
    } catch (error) {
      failed.log.error({ files: paths, err: error }, failed.message)
    }
  }, lookMs).unref()
  return () => clearInterval(timer)
}

function lookOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.dev}/${stat.ino}/${stat.size}/${stat.mtimeNs}` : 'gone'
}

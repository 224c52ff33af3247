/**
 * Detects file changes by polling. System notifications miss important cases: secrets that an orchestrator swaps
 * through a symlink, editors that replace a file, network file systems.
 */

import { statSync } from 'node:fs'

/** Polling interval. */
export const FILE_LOOK_MS = 2_000

/**
 * Calls back after a watched file changed, appeared or disappeared. Polling does not keep a process alive.
 *
 * @returns stops watching
 */
export function watchFiles(paths: readonly string[], onChange: () => void, lookMs: number = FILE_LOOK_MS): () => void {
  let seen = paths.map(lookOf).join()
  const timer = setInterval(() => {
    const now = paths.map(lookOf).join()
    if (now === seen) return
    // Read before the caller reads the files, so that a write during its read counts as a change.
    seen = now
    onChange()
  }, lookMs).unref()
  return () => clearInterval(timer)
}

function lookOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.dev}/${stat.ino}/${stat.size}/${stat.mtimeNs}` : 'gone'
}

/**
 * Notices that files changed, by looking. Notifications of the system miss what matters here: secrets that an
 * orchestrator swaps by a link, editors that replace a file, network file systems.
 */

import { statSync } from 'node:fs'

/** How often the files are looked at. */
export const FILE_LOOK_MS = 2_000

/**
 * Calls back after one or more of the files changed, appeared or went away. Looking does not keep a process alive.
 *
 * @returns ends it
 */
export function watchFiles(paths: readonly string[], onChange: () => void, lookMs: number = FILE_LOOK_MS): () => void {
  let seen = paths.map(lookOf).join()
  const timer = setInterval(() => {
    const now = paths.map(lookOf).join()
    if (now === seen) return
    // Taken before the caller reads: what is written while it reads is a change of its own.
    seen = now
    onChange()
  }, lookMs).unref()
  return () => clearInterval(timer)
}

function lookOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.dev}/${stat.ino}/${stat.size}/${stat.mtimeNs}` : 'gone'
}

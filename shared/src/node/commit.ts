import { execFileSync } from 'node:child_process'

/** The abbreviated commit of a folder, with ` with changes` for uncommitted ones; `unknown` without history or git. */
export function commitOf(folder: string): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    return git('rev-parse', '--short=12', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with changes')
  } catch {
    return 'unknown'
  }
}

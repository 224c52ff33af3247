import { execFileSync } from 'node:child_process'

/** The commit a folder is at, short, with ` with changes` when there are any; `unknown` without history or git. */
export function commitOf(folder: string): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with changes')
  } catch {
    return 'unknown'
  }
}

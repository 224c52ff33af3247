/** Child programs that end with this process, even when it is killed. */

import type { SpawnOptions } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Read by scripts/starter.mjs in the child: the file descriptor that closes when its parent ends. */
const STARTER_FD = 'VACANCY_STARTER_FD'

/**
 * `spawn` options that make `vacancy` end with this process. The child's standard input is the pipe that closes then.
 *
 * @param output destination of its standard output and errors
 */
export function endingWithUs(output: readonly [stdout: Output, stderr: Output]): Pick<SpawnOptions, 'stdio' | 'env'> {
  return { stdio: ['pipe', ...output], env: { ...process.env, [STARTER_FD]: '0' } }
}

type Output = 'ignore' | 'inherit' | 'pipe' | number

/** True for a running process. A zombie, which has ended and waits for its parent to reap it, is not running. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] !== 'Z' || Number(fields[17]) > 1
  } catch (error) {
    // Without /proc there is no more detail. With it, the process has just ended.
    return process.platform !== 'linux' || (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}

/**
 * The file that lists the processes of a folder, for people who want to kill one, and to prevent a second start, which
 * would write the same registry state.
 */

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { VacancyError } from '@vacancy/shared'
import { isRunning } from '@vacancy/shared/node'

type Processes = { readonly [name: string]: number }

const LAUNCHER = 'start:shard'

/** @throws VacancyError data_conflict when processes of another start are running */
export function claim(file: string): void {
  const alive = Object.entries(readProcesses(file)).filter(([, pid]) => pid !== process.pid && isRunning(pid))
  if (alive.length === 0) return writeProcesses(file, {})
  const them = alive.map(([name, pid]) => `${name} is process ${pid}`).join(', ')
  const pids = alive.map(([, pid]) => pid).join(' ')
  const reason = `the folder is in use: ${them}. Stop them first (kill ${pids}); if they are something else, remove ${file}`
  throw new VacancyError('data_conflict', { reason })
}

/** Running processes, the launcher first. */
export function writeProcesses(file: string, running: Processes): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.tmp`, `${JSON.stringify({ [LAUNCHER]: process.pid, ...running }, null, 2)}\n`)
  renameSync(`${file}.tmp`, file)
}

/** Removes the file unless it belongs to another start. */
export function release(file: string): void {
  if (readProcesses(file)[LAUNCHER] === process.pid) rmSync(file, { force: true })
}

function readProcesses(file: string): Processes {
  if (!existsSync(file)) return {}
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Processes
  } catch (cause) {
    throw new VacancyError('data_conflict', { reason: `${file} is not what start:shard wrote: remove it` }, { cause })
  }
}

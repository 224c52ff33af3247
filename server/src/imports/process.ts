/** Starts `vacancy` as a process with low priority that ends with the control plane, and waits for its end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { endingWithUs } from '@vacancy/shared/node'

const PROGRAM = fileURLToPath(new URL('../../../bin/vacancy.mjs', import.meta.url))
const STDERR_BYTES_MAX = 64 << 10
/** Lower priority than the control plane's own work. */
const PRIORITY = 10
const KILL_AFTER_MS = 5_000

export type ProcessEnd = { readonly code: number | null; readonly signal: string | null; readonly stderr: string }

/** @param without variables that begin so are not passed on */
export function startVacancy(args: readonly string[], without?: string): ChildProcess {
  const { stdio, env } = endingWithUs(['pipe', 'pipe'])
  const kept = Object.entries(env ?? {}).filter(([name]) => without === undefined || !name.startsWith(without))
  const child = spawn(process.execPath, [PROGRAM, ...args], { ...(stdio && { stdio }), env: Object.fromEntries(kept) })
  if (child.pid !== undefined) lowerPriority(child.pid)
  return child
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, PRIORITY)
  } catch {
    // It has already ended; the exit code is reported elsewhere.
  }
}

/** Resolves when it has ended; at the signal it is stopped, and killed when that takes too long. */
export function programEnd(child: ChildProcess, signal: AbortSignal): Promise<ProcessEnd> {
  let stderr = ''
  child.stderr?.setEncoding('utf8')
  child.stderr?.on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_BYTES_MAX)
  })
  let late: NodeJS.Timeout | undefined
  const end = () => {
    child.kill('SIGTERM')
    late = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS)
  }
  if (signal.aborted) end()
  signal.addEventListener('abort', end, { once: true })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, killedBy) => {
      clearTimeout(late)
      signal.removeEventListener('abort', end)
      resolve({ code, signal: killedBy, stderr })
    })
  })
}

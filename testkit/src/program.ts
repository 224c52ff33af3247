/** Any program as a process of its own, for tests: what it prints is kept, and can be waited for. */

import { spawn } from 'node:child_process'

export type Program = {
  readonly pid: number
  /** Everything on stdout and stderr so far. */
  readonly output: () => string
  /** The output by stream. */
  readonly streams: { readonly stdout: string; readonly stderr: string }
  /** Resolves with the first match of a pattern in the output; rejects when the program ends, or does not print it in time. */
  readonly printed: (pattern: RegExp) => Promise<RegExpExecArray>
  /** The exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>
  readonly isRunning: () => boolean
  readonly signal: (signal: NodeJS.Signals) => void
  /** A graceful end; a second signal after `STOP_MS` makes programs that start others end at once with them. */
  readonly stop: () => Promise<number | null>
}

export type ProgramOptions = {
  readonly env?: NodeJS.ProcessEnv
  /** Gives it a session of its own. */
  readonly detached?: boolean
  readonly cwd?: string
  /** Kills it when this process exits. */
  readonly isBound?: boolean
  /** Default: this Node. */
  readonly program?: string
}

const START_MS = 180_000
const STOP_MS = 60_000

/** @param args a path and arguments for Node, or the arguments of `program` */
export function startProgram(args: readonly string[], options: ProgramOptions = {}): Program {
  const { env = {}, detached = false, cwd, isBound = false, program = process.execPath } = options
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    detached,
    cwd,
  })
  if (isBound) {
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('close', () => process.off('exit', kill))
  }
  const checks = new Set<() => void>()
  let output = ''
  let isOver = false
  const check = () => {
    for (const each of [...checks]) each()
  }
  const streams = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output += text
      streams[name] += text
      check()
    })
  }
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      isOver = true
      check()
      resolve(code)
    })
  })
  // Callers that wait for the end see it again; a program that fails to start must not end this one.
  ended.catch(() => {})
  return {
    pid: child.pid as number,
    output: () => output,
    streams,
    ended,
    isRunning: () => !isOver,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const give = (act: () => void) => {
          clearTimeout(timer)
          checks.delete(each)
          act()
        }
        const fail = (how: string) => give(() => reject(new Error(`${how} without ${pattern}:\n${output}`)))
        const timer = setTimeout(() => fail(`${START_MS / 1000} s`), START_MS)
        const each = () => {
          const match = pattern.exec(output)
          if (match) give(() => resolve(match))
          else if (isOver) fail('the program ended')
        }
        checks.add(each)
        each()
      }),
    signal: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGTERM'), STOP_MS)
      const code = await ended
      clearTimeout(timer)
      return code
    },
  }
}

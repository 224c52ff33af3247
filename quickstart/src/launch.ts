/** Starts programs of the house as processes by path, waits until they serve, and stops them in an orderly way. */

import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { VacancyError } from '@vacancy/shared'
import { PORTS_TRIED_MAX } from './layout.ts'

const HOUSE = new URL('../../', import.meta.url)
export const VACANCY = fileURLToPath(new URL('bin/vacancy.mjs', HOUSE))
export const BENCH = fileURLToPath(new URL('bench/src/cli.ts', HOUSE))

/** A node of the sample serves within seconds; past this something is wrong, and the log says what. */
const SERVING_MS_MAX = 60_000
/** A node drains for 10 s at most; what is left after this is ended at once. */
const STOP_MS_MAX = 20_000
const LOG_TAIL_BYTES = 4096
const LOG_TAIL_LINES = 5

/** What was started and is to be stopped. */
export type Crew = { readonly running: Set<ChildProcess>; isStopping: boolean }

export type RunningNode = {
  readonly tcpPort: number
  readonly apiPort: number
  readonly pid: number
  /** Resolves with its exit code when it ends. */
  readonly ended: Promise<number>
}

export function createCrew(): Crew {
  return { running: new Set(), isStopping: false }
}

/**
 * Runs a program to its end; what it prints goes to our terminal.
 *
 * @throws VacancyError failure when it ends with another code than 0
 */
export async function runToEnd(crew: Crew, args: readonly string[], what: string): Promise<void> {
  const child = start(crew, args, ['ignore', 'inherit', 'inherit'])
  const code = await exitOf(child)
  if (code !== 0) throw new VacancyError('failure', { reason: `${what} ended with exit code ${code}` })
}

/**
 * Starts a node and waits until it serves.
 *
 * @param args of `vacancy run`
 * @param log file that its log is appended to
 * @throws VacancyError failure with what the node said, when it ends before or takes too long
 */
export async function startNode(crew: Crew, args: readonly string[], log: string): Promise<RunningNode> {
  const logFile = openSync(log, 'a')
  const logStart = statSync(log).size
  const child = start(crew, [VACANCY, 'run', ...args], ['ignore', 'pipe', logFile])
  const ended = exitOf(child)
  const serving = Promise.withResolvers<{ tcpPort: number; apiPort: number }>()
  let printed = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed += text
    const [, tcpPort, apiPort] = /^serving: tcp \S+:(\d+), http \S+:(\d+)$/m.exec(printed) ?? []
    if (apiPort !== undefined) serving.resolve({ tcpPort: Number(tcpPort), apiPort: Number(apiPort) })
  })
  const timer = setTimeout(
    () => serving.reject(failedStart(`the node does not serve after ${SERVING_MS_MAX / 1000} s`, log, logStart)),
    SERVING_MS_MAX,
  )
  ended.then((code) => serving.reject(failedStart(`the node ended with exit code ${code}`, log, logStart)))
  try {
    return { ...(await serving.promise), pid: child.pid ?? 0, ended }
  } finally {
    clearTimeout(timer)
  }
}

/** Stops everything that runs; resolves when all have ended. */
export async function stopCrew(crew: Crew): Promise<void> {
  crew.isStopping = true
  const ends = [...crew.running].map(async (child) => {
    const end = exitOf(child)
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
    await end
    clearTimeout(timer)
  })
  await Promise.all(ends)
}

function start(crew: Crew, args: readonly string[], stdio: ('ignore' | 'inherit' | 'pipe' | number)[]): ChildProcess {
  if (crew.isStopping) throw new VacancyError('failure', { reason: 'asked to stop' })
  const child = spawn(process.execPath, args, { stdio })
  crew.running.add(child)
  child.once('exit', () => crew.running.delete(child))
  return child
}

/** Exit code, −1 for a program that a signal ended or that could not be started. */
function exitOf(child: ChildProcess): Promise<number> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode ?? -1)
  return new Promise((resolve) => {
    child.once('exit', (code) => resolve(code ?? -1))
    child.once('error', () => resolve(-1))
  })
}

function failedStart(reason: string, log: string, logStart: number): VacancyError {
  const said = lastLines(log, logStart)
  return new VacancyError('failure', {
    reason: [`${reason}; docs/reasons.md says what exit codes mean. Its log is ${log}`, ...said].join('\n'),
  })
}

/** The last lines that were appended since `start`; sentences for people before lines of the log. */
function lastLines(file: string, start: number): string[] {
  const { size } = statSync(file)
  const from = Math.max(start, size - LOG_TAIL_BYTES)
  const bytes = Buffer.alloc(size - from)
  readSync(openSync(file, 'r'), bytes, 0, bytes.length, from)
  const lines = bytes
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
  const sentences = lines.filter((line) => !line.startsWith('{'))
  return (sentences.length > 0 ? sentences : lines).slice(-LOG_TAIL_LINES)
}

/**
 * The first free port from `wanted` on, which is not one of `others`.
 *
 * @throws VacancyError port_taken when as many as are tried are taken
 */
export async function freePort(host: string, wanted: number, others: readonly number[] = []): Promise<number> {
  if (wanted === 0) return 0
  for (let port = wanted; port < Math.min(wanted + PORTS_TRIED_MAX, 65_536); port++) {
    if (!others.includes(port) && (await isFree(host, port))) return port
  }
  const reason = `it and the ${PORTS_TRIED_MAX - 1} after it are taken`
  throw new VacancyError('port_taken', { address: `${host}:${wanted}`, reason })
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

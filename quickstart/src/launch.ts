/** Starts programs of the house as processes by path, waits until they serve, and stops them in an orderly way. */

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readSync, statSync } from 'node:fs'
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
/** What a program prints is read for the line that says that it serves, and no further. */
const PRINTED_MAX = 65_536

/** Asked to stop, a program may take as long. */
export const STOPPING_MS_MAX = STOP_MS_MAX

/** How a program ended. */
export type End = {
  /** −1 for a program that a signal ended or that could not be started. */
  readonly code: number
  readonly signal: NodeJS.Signals | undefined
}

export type RunningProgram = {
  readonly pid: number
  /** What it prints behind `serving: ` once it serves; rejects with what it said when it ends before. */
  readonly serving: Promise<string>
  /** What it prints behind another word and `: `, in the same way. */
  readonly told: (word: string) => Promise<string>
  readonly ended: Promise<End>
  /** Asks it to stop, ends it at once when it takes too long; resolves when it has ended. */
  readonly stop: () => Promise<void>
}

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
 * @param isQuiet only what it says of faults does
 * @throws VacancyError failure when it ends with another code than 0
 */
export async function runToEnd(
  crew: Crew,
  args: readonly string[],
  what: string,
  { isQuiet = false }: { isQuiet?: boolean } = {},
): Promise<void> {
  const child = start(crew, args, ['ignore', isQuiet ? 'ignore' : 'inherit', 'inherit'])
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
  const logStart = sizeOf(log)
  const program = startProgram(crew, { name: 'the node', args: [VACANCY, 'run', ...args], log })
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(failedStart(`the node does not serve after ${SERVING_MS_MAX / 1000} s`, log, logStart)),
    SERVING_MS_MAX,
  )
  try {
    const told = await Promise.race([program.serving, late.promise])
    const [, tcpPort, apiPort] = /^tcp \S+:(\d+), http \S+:(\d+)$/.exec(told) ?? []
    const ended = program.ended.then(({ code }) => code)
    return { tcpPort: Number(tcpPort), apiPort: Number(apiPort), pid: program.pid, ended }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Starts a program that goes on until it is stopped.
 *
 * @param isApart a Ctrl-C in the terminal does not reach it: whoever started it says when it stops
 */
export function startProgram(
  crew: Crew,
  { name, args, log, isApart = false }: { name: string; args: readonly string[]; log: string; isApart?: boolean },
): RunningProgram {
  const logStart = sizeOf(log)
  const logFile = openSync(log, 'a')
  const child = start(crew, args, ['ignore', 'pipe', logFile], isApart)
  // The program has it now.
  closeSync(logFile)
  const ended = endOf(child)
  const awaited = new Map<string, PromiseWithResolvers<string>>()
  let printed = ''
  const look = () => {
    for (const [word, { resolve }] of awaited) {
      const [, told] = new RegExp(`^${word}: (.*)\n`, 'm').exec(printed) ?? []
      if (told !== undefined) resolve(told)
    }
  }
  const told = (word: string) => {
    const line = Promise.withResolvers<string>()
    awaited.set(word, line)
    // Whoever does not wait for it learns from `ended`.
    line.promise.catch(() => {})
    ended.then((end) => line.reject(failedStart(`${name} ${howEnded(end)}`, log, logStart)))
    look()
    return line.promise
  }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    if (printed.length < PRINTED_MAX) printed += text
    look()
  })
  return { pid: child.pid ?? 0, serving: told('serving'), told, ended, stop: () => stopChild(child) }
}

export function howEnded({ code, signal }: End): string {
  return signal === undefined ? `ended with exit code ${code}` : `was ended by ${signal}`
}

/** Ends everything that runs at once and without waiting: for when the launcher itself is told to end at once. */
export function killCrew(crew: Crew): void {
  for (const child of crew.running) child.kill('SIGKILL')
}

/** Stops everything that runs; resolves when all have ended. */
export async function stopCrew(crew: Crew): Promise<void> {
  crew.isStopping = true
  await Promise.all([...crew.running].map(stopChild))
}

async function stopChild(child: ChildProcess): Promise<void> {
  const end = exitOf(child)
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
  await end
  clearTimeout(timer)
}

function start(
  crew: Crew,
  args: readonly string[],
  stdio: ('ignore' | 'inherit' | 'pipe' | number)[],
  isApart = false,
): ChildProcess {
  if (crew.isStopping) throw new VacancyError('failure', { reason: 'asked to stop' })
  const child = spawn(process.execPath, args, { stdio, detached: isApart })
  crew.running.add(child)
  child.once('exit', () => crew.running.delete(child))
  return child
}

function endOf(child: ChildProcess): Promise<End> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code: code ?? -1, signal: signal ?? undefined }))
    child.once('error', () => resolve({ code: -1, signal: undefined }))
  })
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

export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** The last lines that were appended since `start`; sentences for people before lines of the log. */
export function lastLines(file: string, start: number): string[] {
  const size = sizeOf(file)
  const from = Math.max(start, size - LOG_TAIL_BYTES)
  const bytes = Buffer.alloc(size - from)
  const log = openSync(file, 'r')
  readSync(log, bytes, 0, bytes.length, from)
  closeSync(log)
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

async function isFree(host: string, port: number): Promise<boolean> {
  return (await lookAtPort(host, port)) === 'free'
}

/** Whether a port can be listened on; `no address` where the host is none of this machine's. */
export function lookAtPort(host: string, port: number): Promise<'free' | 'taken' | 'no address'> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code === 'EADDRNOTAVAIL' ? 'no address' : 'taken'),
    )
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve('free')))
  })
}

/** Starts Vacancy's programs as processes by path, waits until they serve, and stops them gracefully. */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { VacancyError } from '@vacancy/shared'
import { endingWithUs } from '@vacancy/shared/node'

const ROOT = new URL('../../', import.meta.url)
export const VACANCY = fileURLToPath(new URL('bin/vacancy.mjs', ROOT))
/** How commands are typed: through npx in a clone, which has sources. */
export const TYPED = existsSync(new URL('quickstart/src', ROOT)) ? 'npx vacancy' : 'vacancy'

/** A node drains for 10 s at most; afterwards it is killed. */
const STOP_MS_MAX = 20_000
const LOG_TAIL_BYTES = 4096
const LOG_TAIL_LINES = 5
/** How many ports are tried after a taken one. */
const PORTS_TRIED_MAX = 100
/** Output that is searched for the `serving` line. */
const PRINTED_MAX = 65_536

/** How a program ended. */
export type End = {
  /** −1 for a program that a signal ended or that could not be started. */
  readonly code: number
  readonly signal: NodeJS.Signals | undefined
}

export type RunningProgram = {
  readonly pid: number
  /** The text after `serving: ` once it serves. Rejects with the end of its log when it exits before. */
  readonly serving: Promise<string>
  /** The text after another word and `: `, in the same way. */
  readonly announced: (word: string) => Promise<string>
  readonly ended: Promise<End>
  /** Stops it gracefully, and kills it when that takes too long. Resolves when it has ended. */
  readonly stop: () => Promise<void>
}

/** The started programs. */
export type ProcessGroup = { readonly running: Set<ChildProcess>; isStopping: boolean }

export function createProcessGroup(): ProcessGroup {
  return { running: new Set(), isStopping: false }
}

/** Runs a program to its end; its output goes to the terminal.
 *
 * @param isQuiet only its errors are shown
 * @throws VacancyError failure when it ends with another code than 0
 */
export async function runToEnd(
  group: ProcessGroup,
  args: readonly string[],
  what: string,
  { isQuiet = false }: { isQuiet?: boolean } = {},
): Promise<void> {
  const child = start(group, args, [isQuiet ? 'ignore' : 'inherit', 'inherit'])
  const { code } = await endOf(child)
  if (code !== 0) throw new VacancyError('failure', { reason: `${what} ended with exit code ${code}` })
}

/**
 * Starts a program that runs until it is stopped.
 *
 * @param isApart a Ctrl-C in the terminal does not reach it: this process stops it
 * @param nodeOptions further options of Node
 */
export function startProgram(
  group: ProcessGroup,
  {
    name,
    args,
    log,
    isApart = false,
    nodeOptions = '',
  }: { name: string; args: readonly string[]; log: string; isApart?: boolean; nodeOptions?: string },
): RunningProgram {
  const logStart = sizeOf(log)
  const logFile = openSync(log, 'a')
  const child = start(group, args, ['pipe', logFile], { isApart, nodeOptions })
  // The program has its own copy of the descriptor.
  closeSync(logFile)
  const ended = endOf(child)
  const awaited = new Map<string, PromiseWithResolvers<string>>()
  let printed = ''
  const look = () => {
    for (const [word, { resolve }] of awaited) {
      const [, announced] = new RegExp(`^${word}: (.*)\n`, 'm').exec(printed) ?? []
      if (announced !== undefined) resolve(announced)
    }
  }
  const announced = (word: string) => {
    const line = Promise.withResolvers<string>()
    awaited.set(word, line)
    // Callers that do not wait for it are notified by `ended`.
    line.promise.catch(() => {})
    ended.then((end) => line.reject(failedStart(`${name} ${howEnded(end)}`, log, logStart)))
    look()
    return line.promise
  }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    if (printed.length < PRINTED_MAX) printed += text
    look()
  })
  return { pid: child.pid ?? 0, serving: announced('serving'), announced, ended, stop: () => stopChild(child) }
}

export function howEnded({ code, signal }: End): string {
  return signal === undefined ? `ended with exit code ${code}` : `was ended by ${signal}`
}

/** Kills all processes immediately, when the launcher itself must exit immediately. */
export function killGroup(group: ProcessGroup): void {
  for (const child of group.running) child.kill('SIGKILL')
}

/** Stops all running programs; resolves when they have ended. */
export async function stopGroup(group: ProcessGroup): Promise<void> {
  group.isStopping = true
  await Promise.all([...group.running].map(stopChild))
}

async function stopChild(child: ChildProcess): Promise<void> {
  const end = endOf(child)
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
  await end
  clearTimeout(timer)
}

function start(
  group: ProcessGroup,
  args: readonly string[],
  output: Parameters<typeof endingWithUs>[0],
  { isApart = false, nodeOptions = '' }: { isApart?: boolean; nodeOptions?: string } = {},
): ChildProcess {
  if (group.isStopping) throw new VacancyError('failure', { reason: 'stopped on request' })
  const { env, stdio } = endingWithUs(output)
  const options = [env?.['NODE_OPTIONS'], nodeOptions].filter(Boolean).join(' ')
  const child = spawn(process.execPath, args, {
    ...(stdio && { stdio }),
    env: { ...env, ...(options !== '' && { NODE_OPTIONS: options }) },
    detached: isApart,
  })
  group.running.add(child)
  child.once('exit', () => group.running.delete(child))
  return child
}

function endOf(child: ChildProcess): Promise<End> {
  if (child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve({ code: child.exitCode ?? -1, signal: child.signalCode ?? undefined })
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code: code ?? -1, signal: signal ?? undefined }))
    child.once('error', () => resolve({ code: -1, signal: undefined }))
  })
}

function failedStart(reason: string, log: string, logStart: number): VacancyError {
  const logged = lastLines(log, logStart)
  return new VacancyError('failure', {
    reason: [`${reason}; docs/reasons.md explains exit codes. Its log is ${log}`, ...logged].join('\n'),
  })
}

export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/**
 * The last lines that were appended since `start`; sentences for people before lines of the log. The file may have been
 * removed or emptied since.
 *
 * @param isRaw the lines as they are
 */
export function lastLines(
  file: string,
  start: number,
  { lines: linesMax = LOG_TAIL_LINES, isRaw = false }: { lines?: number; isRaw?: boolean } = {},
): string[] {
  const size = sizeOf(file)
  if (size === 0) return []
  const from = Math.max(start > size ? 0 : start, size - LOG_TAIL_BYTES * Math.ceil(linesMax / LOG_TAIL_LINES))
  const bytes = Buffer.alloc(size - from)
  const log = openSync(file, 'r')
  readSync(log, bytes, 0, bytes.length, from)
  closeSync(log)
  const lines = bytes
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
  const sentences = lines.filter((line) => !line.startsWith('{'))
  return (sentences.length > 0 && !isRaw ? sentences : lines).slice(-linesMax)
}

/**
 * The first free port from `wanted` that is not one of `others`; any free port for 0.
 *
 * @throws VacancyError port_taken when all tried ports are taken
 */
export async function freePort(host: string, wanted: number, others: readonly number[] = []): Promise<number> {
  if (wanted === 0) return await anyPort(host, others)
  for (let port = wanted; port < Math.min(wanted + PORTS_TRIED_MAX, 65_536); port++) {
    if (!others.includes(port) && (await isFree(host, port))) return port
  }
  const reason = `it and the ${PORTS_TRIED_MAX - 1} after it are taken`
  throw new VacancyError('port_taken', { address: `${host}:${wanted}`, reason })
}

async function isFree(host: string, port: number): Promise<boolean> {
  return (await lookAtPort(host, port)) === 'free'
}

/** Below the ports that systems give to connections: one of those could be taken before a program listens on it. */
const ANY_PORT = { first: 10_240, last: 32_767 } as const

/** A port that nothing uses. */
async function anyPort(host: string, others: readonly number[]): Promise<number> {
  for (let tries = 0; tries < PORTS_TRIED_MAX; tries++) {
    const port = randomInt(ANY_PORT.first, ANY_PORT.last + 1)
    if (!others.includes(port) && (await isFree(host, port))) return port
  }
  const reason = `${PORTS_TRIED_MAX} ports from ${ANY_PORT.first} to ${ANY_PORT.last} were tried, and none was free`
  throw new VacancyError('port_taken', { address: `${host}:0`, reason })
}

/** Whether a port is free; `no address` when the host is not an address of this machine. */
export function lookAtPort(host: string, port: number): Promise<'free' | 'taken' | 'no address'> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code === 'EADDRNOTAVAIL' ? 'no address' : 'taken'),
    )
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve('free')))
  })
}

/** A real node as a process of its own, for tests: free ports, temporary folders, raw frames over real sockets. */

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { createCodecList, dayOf, formatDay, VacancyError } from '@vacancy/shared'
import type { NodeStatus } from '@vacancy/shared/contract'
import {
  type CommandName,
  decodeReply,
  encodeRequest,
  FRAME_HEADER_BYTES,
  MAGIC_FRAME,
  type Reply,
  type RequestFields,
  readU32,
} from '@vacancy/shared/wire'
import { until } from './until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Less than a test has: one that waits in vain says what for. */
const STUCK_MS = 45_000
const LOOK_MS = 20
const SERVING = /^serving: tcp (.+):(\d+), http (.+):(\d+)$/m

export const TEST_CODECS: readonly string[] = ['breakfast', 'refundable', 'sea_view']

/** Settings of a small node that shares the machine with others. */
const SMALL = { tcp_port: 0, api_port: 0, serving_threads: 1, wal_file_bytes: 4 << 20 }

export type ConfigLines = { readonly [key: string]: string | number | boolean }

export type NodeRun = {
  /** Folder of the configuration; created for this run when absent. */
  readonly folder: string
  /** Default: `data` in the folder. */
  readonly dataDir?: string
  readonly codecs?: readonly string[]
  readonly config?: ConfigLines
  readonly flags?: readonly string[]
  /** Shifts the wall clock of all threads of the process. */
  readonly clockOffsetMs?: number
  /** Command prefix, such as `taskset -c 0`. */
  readonly wrapper?: readonly string[]
  readonly environment?: { readonly [name: string]: string }
  /** Another copy of the repository than this one. */
  readonly root?: string
  /** Kills the process this long after its start. */
  readonly killAfterMs?: number
  /** How long a start may take; for those that need long on few cores. */
  readonly stuckMs?: number
}

export type Ended = { readonly code: number | null; readonly signal: string | null }

export type NodeProcess = {
  readonly pid: number
  readonly tcpPort: number
  readonly apiPort: number
  readonly dataDir: string
  /** Output on stdout and stderr so far. */
  readonly output: () => string
  readonly ended: Promise<Ended>
  /** Graceful shutdown. */
  readonly stop: () => Promise<Ended>
  /** Kills the process. */
  readonly kill: () => Promise<Ended>
}

/** A folder that is deleted with `removeFolder`. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'vacancy-node-'))
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}

export type Running = {
  readonly child: ChildProcess
  readonly output: () => string
  /** The output by stream. */
  readonly printed: { readonly stdout: string; readonly stderr: string }
  readonly ended: Promise<Ended>
}

/** Starts a subcommand and records its output. */
export function launch(
  args: readonly string[],
  run: Pick<NodeRun, 'clockOffsetMs' | 'wrapper' | 'environment' | 'root'> = {},
): Running {
  const { clockOffsetMs = 0, wrapper = [], environment = {}, root = ROOT } = run
  // Threads inherit these options, so their clocks are shifted as well.
  const turned = `const now = Date.now; Date.now = () => now() + ${clockOffsetMs}`
  const preload = clockOffsetMs === 0 ? [] : ['--import', `data:text/javascript,${encodeURIComponent(turned)}`]
  const program = join(root, 'bin', 'vacancy.mjs')
  const [command, ...rest] = [...wrapper, process.execPath, ...preload, program, ...args] as [string, ...string[]]
  const child = spawn(command, rest, { env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] })
  const printed = { stdout: '', stderr: '' }
  let output = ''
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      printed[name] += chunk.toString()
    })
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  return { child, output: () => output, printed, ended }
}

/** Waits for the end of a process. On timeout it is killed, and the error contains its output and the state of its threads. */
async function endOf({ child, output, ended }: Running): Promise<Ended> {
  const late = Symbol('late')
  let timer: NodeJS.Timeout | undefined
  const lateness = new Promise<typeof late>((resolve) => {
    timer = setTimeout(() => resolve(late), STUCK_MS)
  })
  const end = await Promise.race([ended, lateness])
  clearTimeout(timer)
  if (end !== late) return end
  const threads = threadsOf(child)
  child.kill('SIGKILL')
  throw new Error(`process ${child.pid} did not end:\n${output()}\n${threads}`)
}

/** What each thread of a process waits for, one per line: name, kernel function, system call. */
function threadsOf({ pid }: ChildProcess): string {
  const folder = `/proc/${pid}/task`
  if (!existsSync(folder)) return ''
  const read = (task: string, file: string) => {
    try {
      return readFileSync(join(folder, task, file), 'utf8').trim()
    } catch (error) {
      // It has ended, or may not be inspected.
      return (error as NodeJS.ErrnoException).code ?? ''
    }
  }
  const lines = readdirSync(folder).map((task) =>
    ['comm', 'wchan', 'syscall'].map((file) => read(task, file)).join(' '),
  )
  return lines.join('\n')
}

/** Runs a subcommand to its end. */
export async function runVacancy(
  args: readonly string[],
  run: Parameters<typeof launch>[1] = {},
): Promise<{ readonly code: number | null; readonly output: string } & Running['printed']> {
  const running = launch(args, run)
  const { code } = await endOf(running)
  return { code, output: running.output(), ...running.printed }
}

function runArguments(run: NodeRun): string[] {
  const { folder, dataDir = join(folder, 'data'), codecs = TEST_CODECS, config = {}, flags = [] } = run
  const lines = Object.entries({ ...SMALL, ...config })
  const configFile = join(folder, 'vacancy.yml')
  const codecsFile = join(folder, 'codecs.yml')
  writeFileSync(configFile, lines.map(([key, value]) => `${key}: ${value}\n`).join(''))
  writeFileSync(codecsFile, `rate_features:\n${codecs.map((name) => `  - ${name}\n`).join('')}`)
  return ['run', '--config', configFile, '--codecs', codecsFile, '--data-dir', dataDir, ...flags]
}

/** Starts a node that is expected to exit, for example with an invalid configuration. */
export function runNodeToEnd(run: NodeRun) {
  return runVacancy(runArguments(run), run)
}

/** Starts a node; resolves when it serves. */
export async function startNodeProcess(run: NodeRun): Promise<NodeProcess> {
  const running = launch(runArguments(run), run)
  const { child, output, ended } = running
  if (run.killAfterMs !== undefined) setTimeout(() => child.kill('SIGKILL'), run.killAfterMs)
  const serving = async (): Promise<RegExpExecArray> => {
    for (const until = performance.now() + (run.stuckMs ?? STUCK_MS); performance.now() < until; ) {
      const line = SERVING.exec(output())
      if (line) return line
      if (child.exitCode !== null || child.signalCode !== null) break
      await pause()
    }
    const threads = threadsOf(child)
    child.kill('SIGKILL')
    throw new Error(`the node did not start (exit code ${child.exitCode}):\n${output()}\n${threads}`)
  }
  const line = await serving()
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return endOf(running)
  }
  return {
    pid: child.pid as number,
    tcpPort: Number(line[2]),
    apiPort: Number(line[4]),
    dataDir: run.dataDir ?? join(run.folder, 'data'),
    output,
    ended,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}

export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LOOK_MS))
}

// HTTP

/** A node whose HTTP API responds; by default on 127.0.0.1. */
export type AtApi = { readonly host?: string; readonly apiPort: number }

export async function getText(node: AtApi, path: string, token?: string): Promise<[number, string]> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(`http://${node.host ?? '127.0.0.1'}:${node.apiPort}${path}`, { headers })
  return [response.status, await response.text()]
}

export async function post(node: AtApi, path: string, body: object = {}): Promise<number> {
  const response = await fetch(`http://${node.host ?? '127.0.0.1'}:${node.apiPort}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
  await response.text()
  return response.status
}

export async function statusOf(node: AtApi): Promise<NodeStatus> {
  const [, text] = await getText(node, '/status')
  return JSON.parse(text) as NodeStatus
}

/**
 * The state digest once it includes all acknowledged writes and the first maintenance, which runs a second after the
 * start. Metrics reach the API with a small delay.
 */
export async function digestOf(node: AtApi): Promise<string> {
  let before = ''
  let sinceMs = 0
  return await until('the digest is stable', async () => {
    const { digest, replica, maintenance } = await statusOf(node)
    if (!maintenance?.last_day) return undefined
    const now = `${digest?.value}/${replica?.applied_index}`
    if (now !== before) [before, sinceMs] = [now, performance.now()]
    return performance.now() - sinceMs > STABLE_MS ? (digest?.value ?? '') : undefined
  })
}

/** The replica publishes its metrics four times a second. */
const STABLE_MS = 500

/** Value of a metric without labels, or of the first of its labels. */
export async function metric(node: AtApi, name: string): Promise<number> {
  const [, text] = await getText(node, '/metrics')
  const line = text.split('\n').find((row) => row.startsWith(`${name} `) || row.startsWith(`${name}{`))
  if (line === undefined) throw new Error(`there is no metric ${name} in:\n${text}`)
  return Number(line.split(' ').at(-1))
}

// The data protocol

export type WireClient = {
  readonly socket: Socket
  /** Received frames: correlation id and payload. Incomplete bytes are in `rest`. */
  readonly frames: { readonly correlationId: number; readonly payload: Uint8Array }[]
  rest: Buffer
  isClosed: boolean
  nextId: number
  /** Codec list for decoding rate features. */
  codecs: readonly string[]
  readonly waiting: Map<number, (payload: Uint8Array | undefined) => void>
  /** The node's output so far. */
  readonly output: () => string
}

/** Opens a connection; `tls` is the certificate to trust. */
export async function openClient(
  node: { readonly host?: string; readonly tcpPort: number; readonly output?: () => string },
  options: { readonly tls?: string; readonly codecs?: readonly string[] } = {},
): Promise<WireClient> {
  const at = { host: node.host ?? '127.0.0.1', port: node.tcpPort }
  const { tls, codecs = TEST_CODECS } = options
  const socket = tls === undefined ? connect(at) : connectTls({ ...at, ca: tls, servername: 'localhost' })
  const client: WireClient = {
    socket,
    frames: [],
    rest: Buffer.alloc(0),
    isClosed: false,
    nextId: 1,
    codecs,
    waiting: new Map(),
    output: node.output ?? (() => ''),
  }
  socket.on('data', (chunk: Buffer) => take(client, chunk))
  socket.on('close', () => {
    client.isClosed = true
    for (const answer of client.waiting.values()) answer(undefined)
    client.waiting.clear()
  })
  await new Promise<void>((resolve, reject) => {
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => resolve())
    socket.once('error', reject)
  })
  socket.on('error', () => undefined)
  socket.setNoDelay(true)
  return client
}

function take(client: WireClient, chunk: Buffer): void {
  let bytes = client.rest.length === 0 ? chunk : Buffer.concat([client.rest, chunk])
  while (bytes.length >= FRAME_HEADER_BYTES && bytes[0] === MAGIC_FRAME) {
    const end = FRAME_HEADER_BYTES + readU32(bytes, 5)
    if (bytes.length < end) break
    const correlationId = readU32(bytes, 1)
    const payload = Uint8Array.from(bytes.subarray(FRAME_HEADER_BYTES, end))
    client.frames.push({ correlationId, payload })
    client.waiting.get(correlationId)?.(payload)
    client.waiting.delete(correlationId)
    bytes = bytes.subarray(end)
  }
  client.rest = bytes
}

/** The reply for one correlation id; undefined when the connection closes first. */
export function answerTo(client: WireClient, correlationId: number): Promise<Uint8Array | undefined> {
  if (client.isClosed) return Promise.resolve(undefined)
  return new Promise((resolve) => client.waiting.set(correlationId, resolve))
}

/** Sends one request and reads its reply. @throws connection_lost without a reply */
export async function ask<Name extends CommandName>(
  client: WireClient,
  command: Name,
  fields: RequestFields,
): Promise<Reply<Name>> {
  const correlationId = client.nextId++
  const answer = answerTo(client, correlationId)
  client.socket.write(encodeRequest({ command, correlationId, fields }))
  const payload = await answer
  if (payload === undefined) {
    throw new VacancyError('connection_lost', {
      address: 'the node',
      reason: `closed. Output of the node:\n${client.output()}`,
    })
  }
  return readAnswer(client, command, payload, fields)
}

export function readAnswer<Name extends CommandName>(
  client: Pick<WireClient, 'codecs'>,
  command: Name,
  payload: Uint8Array | undefined,
  { dates = [] }: RequestFields = {},
): Reply<Name> {
  if (payload === undefined) {
    throw new VacancyError('connection_lost', { address: 'the node', reason: 'closed' })
  }
  return decodeReply(command, payload, { dates: dates as readonly string[], codecs: createCodecList(client.codecs) })
}

/** Sends a request and expects SUCCESS. */
export async function succeed<Name extends CommandName>(client: WireClient, command: Name, fields: RequestFields) {
  const reply = await ask(client, command, fields)
  if (!reply.ok) throw new Error(`${command}: ${JSON.stringify(reply)}`)
  return reply.result
}

export function closeClient(client: WireClient): void {
  client.socket.destroy()
}

/** The day `days` from now, in the format of the protocol. */
export function dateIn(days: number, clockOffsetMs = 0): string {
  return formatDay(dayOf(Date.now() + clockOffsetMs) + days)
}

/** Arbitrary attributes of a property. */
export function somewhere(propertyId: string, segment = 'alpine'): RequestFields {
  return {
    segment,
    area: 'valley',
    propertyId,
    propertyType: 'hotel',
    category: 'standard',
    stars: 3,
    latitude: 47,
    longitude: 11,
    amenities: ['wifi'],
  }
}

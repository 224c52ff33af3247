/**
 * Thread entry of a serving thread: its own listener on tcp_port, its sockets, searches and cheap reads; writes go to
 * the replica thread and come back (performance.md §4).
 */

import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert, createCodecList } from '@vacancy/shared'
import { checkToken, type TokenHash } from '@vacancy/shared/tokens'
import { attachCells } from '../cluster/cells.ts'
import { PARAMETER_BYTES } from '../search/parameters.ts'
import { createSearcher } from '../search/search.ts'
import { outcomeText } from '../store/command.ts'
import { attachMemory, scratchOf } from '../store/store.ts'
import { commonClockOffsetMs } from '../threads/clock.ts'
import { loadKernels } from '../threads/kernels.ts'
import { createAskedReads, takeAskedReads } from '../threads/reads.ts'
import { ANSWER_BYTES, createProposals, takeProposals } from '../threads/writes.ts'
import {
  type Connection,
  checkTimes,
  expireAsked,
  openConnection,
  resumeFramesOf,
  type ServingThread,
  sendAnswers,
  takeAnswer,
  takeWord,
} from './connection.ts'
import { attachCounters, COUNTER, count } from './counters.ts'
import { createDispatcher } from './dispatch.ts'
import { createSlabs } from './slabs.ts'

/** What the main thread hands to a serving thread. */
export type ServingOptions = {
  readonly memory: WebAssembly.Memory
  readonly reader: number
  readonly counters: SharedArrayBuffer
  /** One cell: connections open on all threads. */
  readonly connectionsOpen: SharedArrayBuffer
  /** What the replica tells of the shard (cluster/cells.ts); absent on a standalone node. */
  readonly cells?: SharedArrayBuffer | undefined
  readonly replica: MessagePort
  readonly host: string
  readonly port: number
  readonly reusePort: boolean
  readonly codecs: readonly string[]
  readonly datesMax: number
  readonly queryLimit: number
  readonly connectionsMax: number
  readonly userTimeoutMs: number
  readonly keepaliveSeconds: number
  readonly receiveBufferBytes: number
  readonly sendBufferBytes: number
  readonly requireLogin: boolean
  readonly leaderReads: boolean
  readonly tokens: readonly TokenHash[] | undefined
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly slabBytes: number
  readonly slabs: number
  readonly forceTypescript: boolean
  /** Added to the wall clock, for tests that turn it; 0 in production. */
  readonly clockOffsetMs: number
}

export type ToServing =
  | { readonly type: 'drain' }
  | { readonly type: 'tokens'; readonly tokens: readonly TokenHash[] | undefined }
  | { readonly type: 'tls'; readonly cert: string; readonly key: string }
  | { readonly type: 'stop' }

export type FromServing =
  | { readonly type: 'listening'; readonly port: number; readonly kernels: 'wasm' | 'typescript' }
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  | {
      readonly type: 'slow'
      readonly command: string
      readonly milliseconds: number
      readonly rows: number
      readonly at: number
    }
  | { readonly type: 'drained' }

const TIMER_MS = 50
const SLOW_MS = 20
const FRAME_BYTES_MAX = 65_536 + 300 + 6
const SKIP_BYTES_MAX = 1 << 20
const BACKLOG = 4096

function serve(options: ServingOptions, send: (message: FromServing) => void): (message: ToServing) => void {
  const memory = attachMemory(options.memory)
  const counters = attachCounters(options.counters)
  const open = new Int32Array(options.connectionsOpen)
  const kernels = loadKernels(memory, options.forceTypescript ? 'typescript' : undefined)
  const codecs = createCodecList(options.codecs)
  const scratch = scratchOf(memory, options.reader)
  const proposals = createProposals()
  const monotonicMs = () => performance.now()
  let tokens = options.tokens
  let isScheduled = false
  const askedReads = createAskedReads()
  const sendBatches = () => {
    isScheduled = false
    if (proposals.count > 0) {
      const batch = takeProposals(proposals)
      options.replica.postMessage(batch, [batch])
    }
    if (askedReads.cells.length > 0) {
      const batch = takeAskedReads(askedReads)
      options.replica.postMessage(batch, [batch.buffer])
    }
  }
  const thread: ServingThread = {
    memory,
    dispatcher: createDispatcher({
      searcher: createSearcher({
        memory,
        reader: options.reader,
        parameters: scratch,
        kernel: kernels.search,
        limits: { datesMax: options.datesMax, queryLimit: options.queryLimit },
        codecs,
        monotonicMs,
      }),
      codecs,
      proposals,
      wallMs: () => Date.now() + options.clockOffsetMs,
    }),
    counters,
    slabs: createSlabs(scratch + slabsStart(), options.slabBytes, options.slabs),
    connections: new Set(),
    waiting: new Map(),
    cells: options.cells && attachCells(options.cells, commonClockOffsetMs()),
    asked: new Map(),
    askedReads,
    requireLogin: options.requireLogin,
    authenticate: (token) => (tokens ? checkToken(tokens, token, Date.now()) : 'admin'),
    sendBufferBytes: options.sendBufferBytes,
    requestBytesMax: 65_536,
    skipBytesMax: SKIP_BYTES_MAX,
    monotonicMs,
    scheduleBatches: () => {
      if (isScheduled) return
      isScheduled = true
      // After all sockets of this turn were read: one message for what they brought.
      setImmediate(sendBatches)
    },
    slow: (command, milliseconds, rows) => {
      if (milliseconds >= SLOW_MS) send({ type: 'slow', command: command.name, milliseconds, rows, at: Date.now() })
    },
    nextToken: 1,
    requestsThisTurn: 0,
    leaderReads: options.leaderReads,
    draining: false,
  }
  options.replica.on('message', (answers: ArrayBuffer) => receiveAnswers(thread, answers))
  const timer = startTimer(thread, options.userTimeoutMs)
  const server = listen(options, thread, open, (message) =>
    send(message.type === 'listening' ? { ...message, kernels: kernels.kind } : message),
  )
  return (message) => {
    if (message.type === 'tokens') tokens = message.tokens
    else if (message.type === 'tls') {
      if ('setSecureContext' in server) (server as import('node:tls').Server).setSecureContext(message)
    } else if (message.type === 'drain') drain(thread, server, send)
    else {
      clearInterval(timer)
      for (const { socket } of thread.connections) socket.destroy()
      server.close()
      options.replica.close()
    }
  }
}

/** Slabs start behind the parameter block, on a page of their own. */
export function slabsStart(): number {
  return Math.ceil(PARAMETER_BYTES / 8192) * 8192
}

function listen(
  options: ServingOptions,
  thread: ServingThread,
  open: Int32Array,
  send: (message: { type: 'listening'; port: number } | { type: 'failed'; code: string; message: string }) => void,
): Server {
  const accept = (socket: Socket) => {
    if (Atomics.add(open, 0, 1) >= options.connectionsMax) {
      Atomics.sub(open, 0, 1)
      count(thread.counters, COUNTER.rejectedConnections)
      socket.destroy()
      return
    }
    socket.once('close', () => Atomics.sub(open, 0, 1))
    socket.setNoDelay(true)
    if (options.keepaliveSeconds > 0) socket.setKeepAlive(true, options.keepaliveSeconds * 1000)
    openConnection(thread, socket)
  }
  const highWaterMark = Math.max(options.receiveBufferBytes, FRAME_BYTES_MAX)
  const server = options.tls
    ? createTlsServer({ ...options.tls, minVersion: 'TLSv1.2', highWaterMark }, accept)
    : createServer({ highWaterMark, noDelay: true }, accept)
  server.on('tlsClientError', () => count(thread.counters, COUNTER.protocolErrors))
  server.on('error', (error: NodeJS.ErrnoException) =>
    send({ type: 'failed', code: error.code ?? 'unknown', message: error.message }),
  )
  server.listen({ host: options.host, port: options.port, backlog: BACKLOG, reusePort: options.reusePort }, () => {
    const address = server.address()
    assert(address !== null && typeof address === 'object', 'a TCP listener has an address')
    send({ type: 'listening', port: address.port })
  })
  return server
}

function receiveAnswers(thread: ServingThread, answers: ArrayBuffer): void {
  const view = new DataView(answers)
  const touched = new Set<Connection>()
  for (let at = 0; at < answers.byteLength; at += ANSWER_BYTES) {
    const token = view.getUint32(at, true)
    const code = view.getUint8(at + 4)
    const index = view.getFloat64(at + 8, true)
    const connection = thread.asked.has(token)
      ? takeWord(thread, token, code, index)
      : takeAnswer(thread, token, code, view.getUint8(at + 5), index, outcomeText)
    if (connection) touched.add(connection)
  }
  for (const connection of touched) sendAnswers(connection)
}

function startTimer(thread: ServingThread, userTimeoutMs: number): NodeJS.Timeout {
  let last = performance.now()
  const nextTurn = () => {
    thread.requestsThisTurn = 0
  }
  return setInterval(() => {
    const now = performance.now()
    const stallMicros = Math.round(Math.max(0, now - last - TIMER_MS) * 1000)
    last = now
    const { cells } = thread.counters
    if (stallMicros > (cells[COUNTER.stallMicrosMax] as number)) cells[COUNTER.stallMicrosMax] = stallMicros
    for (const connection of thread.connections) checkTimes(connection, now, userTimeoutMs)
    if (thread.asked.size > 0) expireAsked(thread, now)
    nextTurn()
  }, TIMER_MS)
}

/** No new connections; what was asked is answered; then connections close. */
function drain(thread: ServingThread, server: Server, send: (message: FromServing) => void): void {
  server.close()
  thread.draining = true
  const closeIdle = () => {
    for (const connection of thread.connections) {
      if (isIdle(connection)) connection.socket.end()
      else resumeFramesOf(connection)
    }
    if (thread.connections.size === 0) send({ type: 'drained' })
    else setTimeout(closeIdle, TIMER_MS)
  }
  closeIdle()
}

function isIdle({ writes, asked, socket, held }: Connection): boolean {
  return writes === 0 && asked === 0 && socket.writableLength === 0 && !held
}

const port = parentPort
if (port) {
  const receive = serve(workerData as ServingOptions, (message) => port.postMessage(message))
  port.on('message', receive)
}

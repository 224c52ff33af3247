/**
 * Thread entry of a serving thread: its own listener on tcp_port, its sockets, searches and cheap reads. Writes go to
 * the replica thread and back (docs/design/search.md#threads).
 */

import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { parentPort } from 'node:worker_threads'
import { assert, createCodecList, LIMITS } from '@vacancy/shared'
import { DECIDES_ITSELF, refuseClient } from '@vacancy/shared/client-certificate'
import { lacksDescriptors } from '@vacancy/shared/descriptors'
import { readingInto } from '@vacancy/shared/reading-into'
import { findToken, type TokenHash } from '@vacancy/shared/tokens'
import { cutToBytes } from '@vacancy/shared/wire'
import { attachCells } from '../cluster/shared-status.ts'
import { createSender } from '../pipe.ts'
import { PARAMETER_BYTES } from '../search/parameters.ts'
import { createSearcher } from '../search/search.ts'
import { attachMemory, scratchOf } from '../store/store.ts'
import { atRest, attendNow, listen as listenTo } from '../threads/attend.ts'
import { commonClockOffsetMs } from '../threads/clock.ts'
import { attachDirectReplies, closeOffers } from '../threads/direct-replies.ts'
import { loadKernels } from '../threads/kernels.ts'
import { createReadBatch, takeReadBatch } from '../threads/reads.ts'
import { ANSWERS, REQUESTS, type ServingEnd } from '../threads/serving-pipe.ts'
import { ANSWER_BYTES, ATTACHED, createProposals, takeProposals } from '../threads/writes.ts'
import { updateRole } from './admission.ts'
import {
  checkTimes,
  createDeferredReads,
  expireReads,
  openConnection,
  resumeFramesOf,
  takeConfirmation,
} from './connection.ts'
import type { Connection, Principal, ServingThread, SlowRead } from './connection-state.ts'
import { attachCounters, COUNTER, count } from './counters.ts'
import { createDispatcher, NO_SOURCE } from './dispatch.ts'
import { noteLoginFailure } from './login-failures.ts'
import { expireUnanswered, sendAnswers, takeAnswer, takeStays } from './replies.ts'
import { createSlabs } from './slabs.ts'

/** Options of a serving thread. */
export type ServingOptions = {
  readonly memory: WebAssembly.Memory
  readonly reader: number
  readonly counters: SharedArrayBuffer
  /** One cell: connections open on all threads. */
  readonly connectionsOpen: SharedArrayBuffer
  /** Failed LOGINs of all threads (login-failures.ts). */
  readonly loginFailures: SharedArrayBuffer
  /** Status of the shard from the replica (cluster/shared-status.ts); absent on a standalone node. */
  readonly cells?: SharedArrayBuffer | undefined
  readonly replica: ServingEnd
  readonly host: string
  readonly port: number
  readonly reusePort: boolean
  readonly codecs: readonly string[]
  readonly datesMax: number
  readonly calendarDays: number
  readonly queryLimit: number
  readonly connectionsMax: number
  readonly userTimeoutMs: number
  readonly keepaliveSeconds: number
  readonly receiveBufferBytes: number
  readonly sendBufferBytes: number
  readonly requireLogin: boolean
  readonly leaderReads: boolean
  readonly tokens: readonly TokenHash[] | undefined
  /** Plain data, made by the main thread; undefined for plain TCP. */
  readonly tls: TlsOptions | undefined
  readonly slabBytes: number
  readonly slabs: number
  /** Work of one slice of a search (search/search.ts). */
  readonly searchSliceWork: number
  /** Added to the wall clock, for tests that change it; 0 in production. */
  readonly clockOffsetMs: number
}

/** The first message. */
export type Serve = { readonly options: ServingOptions }

export type ToServing =
  | { readonly type: 'drain' }
  | { readonly type: 'tokens'; readonly tokens: readonly TokenHash[] | undefined }
  | { readonly type: 'tls'; readonly options: TlsOptions }
  | { readonly type: 'stop' }

export type FromServing =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  | ({ readonly type: 'slow'; readonly at: number } & SlowRead)
  /** A LOGIN was refused because its token has ended. */
  | { readonly type: 'ended'; readonly remote: string; readonly name: string; readonly expiresMs: number }
  | { readonly type: 'drained' }

const decoder = new TextDecoder()
const TIMER_MS = 50
/** Without requests. */
const IDLE_TIMER_MS = 200
/** A timer this late is no sign of a silent replica. */
const STALL_MICROS = 500_000
const SLOW_MS = 20
const FRAME_BYTES_MAX = 65_536 + 300 + 6
const SKIP_BYTES_MAX = 1 << 20
const BACKLOG = 4096

/** How long a stopping node waits for a peer to close its side of an idle connection. */
const HALF_CLOSED_MS = 100

function serve(options: ServingOptions, send: (message: FromServing) => void): (message: ToServing) => void {
  const memory = attachMemory(options.memory)
  const counters = attachCounters(options.counters)
  const open = new Int32Array(options.connectionsOpen)
  const loginFailures = new Int32Array(options.loginFailures)
  const kernels = loadKernels(memory)
  const codecs = createCodecList(options.codecs)
  const scratch = scratchOf(memory, options.reader)
  const proposals = createProposals()
  // As a variable of its own: the global is an accessor, which is looked up anew at each call.
  const { performance } = globalThis
  const monotonicMs = () => performance.now()
  const toReplica = createSender(options.replica, REQUESTS)
  let tokens = options.tokens
  let isScheduled = false
  const readBatch = createReadBatch()
  const stayBatch = createProposals()
  const sendBatches = () => {
    isScheduled = false
    if (proposals.count > 0) {
      const batch = takeProposals(proposals)
      toReplica(batch, [batch])
    }
    if (readBatch.cells.length > 0) {
      const batch = takeReadBatch(readBatch)
      toReplica(batch, [batch.buffer])
    }
    if (stayBatch.count > 0) {
      const batch = new Uint8Array(takeProposals(stayBatch))
      toReplica(batch, [batch.buffer])
    }
  }
  const dispatcher = createDispatcher({
    searcher: createSearcher({
      memory,
      reader: options.reader,
      parameters: scratch,
      kernels,
      limits: { datesMax: options.datesMax, calendarDays: options.calendarDays, queryLimit: options.queryLimit },
      codecs,
      monotonicMs,
      sliceWork: options.searchSliceWork,
    }),
    codecs,
    proposals,
    wallMs: () => Date.now() + options.clockOffsetMs,
  })
  const thread: ServingThread = {
    memory,
    dispatcher,
    counters,
    slabs: createSlabs(scratch + slabsStart(), options.slabBytes, options.slabs),
    direct: options.tls ? undefined : attachDirectReplies(options.replica.direct),
    connections: new Set(),
    waiting: new Map(),
    cells: options.cells && attachCells(options.cells, commonClockOffsetMs()),
    pendingReads: new Map(),
    stayReads: new Map(),
    stayBatch,
    readBatch,
    deferred: createDeferredReads(dispatcher.searcher),
    requireLogin: options.requireLogin,
    authenticate: (token) => (tokens ? principalOf(findToken(tokens, token, Date.now())) : ANYONE),
    noteLoginFailure: (remote, token) => {
      if (noteLoginFailure(loginFailures, remote, process.hrtime.bigint())) return true
      const ended = findToken(tokens ?? [], token, Number.NEGATIVE_INFINITY)
      if (ended) send({ type: 'ended', remote, name: ended.name, expiresMs: ended.expiresMs })
      return false
    },
    sendBufferBytes: options.sendBufferBytes,
    requestBytesMax: 65_536,
    skipBytesMax: SKIP_BYTES_MAX,
    monotonicMs,
    sendBatches,
    takeAnswers: () => attendNow(attention),
    scheduleBatches: () => {
      if (isScheduled) return
      isScheduled = true
      // After all sockets of this turn were read: one message for all their requests.
      setImmediate(sendBatches)
    },
    slowMs: SLOW_MS,
    slow: (read) => send({ type: 'slow', at: Date.now(), ...read }),
    nextToken: 1,
    requestsThisTick: 0,
    readMs: 0,
    leaderReads: options.leaderReads,
    draining: false,
    isReplicaSilent: false,
  }
  process.once('exit', () => closeOffers(options.replica.direct))
  const attention = atRest(options.replica.bell)
  listenTo(attention, options.replica, ANSWERS, (answers) => receiveAnswers(thread, answers))
  const stopTimer = startTimer(thread, options.userTimeoutMs)
  const server = listen(options, thread, open, send)
  return (message) => {
    if (message.type === 'tokens') {
      tokens = message.tokens
      const entries = new Map(tokens?.map((entry) => [keyOf(entry), entry]))
      for (const connection of thread.connections)
        if (connection.token) updateRole(connection, entries.get(keyOf(connection.token)), Date.now())
    } else if (message.type === 'tls') {
      if ('setSecureContext' in server) (server as import('node:tls').Server).setSecureContext(message.options)
    } else if (message.type === 'drain') drain(thread, server, send)
    else {
      stopTimer()
      for (const { socket } of thread.connections) socket.destroy()
      server.close()
      options.replica.port.close()
    }
  }
}

/** Slabs start after the parameter block, on their own page. */
export function slabsStart(): number {
  return Math.ceil(PARAMETER_BYTES / 8192) * 8192
}

function listen(
  options: ServingOptions,
  thread: ServingThread,
  open: Int32Array,
  send: (message: { type: 'listening'; port: number } | { type: 'failed'; code: string; message: string }) => void,
): Server {
  // A connection counts from its first moment, with TLS before its handshake.
  const admit = (socket: Socket): boolean => {
    if (Atomics.add(open, 0, 1) >= options.connectionsMax || lacksDescriptors(socket)) {
      Atomics.sub(open, 0, 1)
      count(thread.counters, COUNTER.rejectedConnections)
      socket.destroy()
      return false
    }
    socket.once('close', () => Atomics.sub(open, 0, 1))
    socket.setNoDelay(true)
    if (options.keepaliveSeconds > 0) socket.setKeepAlive(true, options.keepaliveSeconds * 1000)
    return true
  }
  const highWaterMark = Math.max(options.receiveBufferBytes, FRAME_BYTES_MAX)
  const server = options.tls
    ? createTlsServer({ ...options.tls, ...DECIDES_ITSELF, highWaterMark }, (socket) => {
        if (!options.tls?.requestCert || refuseClient(socket) === '') openConnection(thread, socket)
        else count(thread.counters, COUNTER.protocolErrors)
      })
    : createServer({ highWaterMark, pauseOnConnect: true })
  const buffer = Buffer.allocUnsafeSlow(highWaterMark)
  server.on('connection', (accepted: Socket) => {
    const socket = options.tls ? accepted : readingInto(buffer, accepted)
    if (admit(socket) && !options.tls) openConnection(thread, socket)
  })
  server.on('tlsClientError', (_error: Error, socket: Socket) => {
    count(thread.counters, COUNTER.protocolErrors)
    // Node reports a failed or slow handshake, but leaves the connection open.
    socket.destroy()
  })
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

/** Without tokens every login succeeds. */
const ANYONE: Principal = { role: 'admin', source: NO_SOURCE }

function principalOf(token: TokenHash | undefined): Principal | undefined {
  if (!token) return undefined
  const source = new TextEncoder().encode(cutToBytes(token.name, LIMITS.sourceBytesMax))
  return { role: token.role, source, token }
}

const keyOf = ({ hash }: TokenHash) => Buffer.from(hash).toString('hex')

function receiveAnswers(thread: ServingThread, answers: ArrayBuffer): void {
  const view = new DataView(answers)
  const touched = new Set<Connection>()
  const bytes = new Uint8Array(answers)
  for (let at = 0; at < answers.byteLength; ) {
    const token = view.getUint32(at, true)
    const code = view.getUint8(at + 4)
    const index = view.getFloat64(at + 8, true)
    const value = view.getUint8(at + 5)
    const attached = view.getUint16(at + 6, true)
    at += ANSWER_BYTES
    const length = attached === ATTACHED.none ? 0 : 4 + view.getUint32(at, true)
    const rest = bytes.subarray(Math.min(at + 4, at + length), at + length)
    at += length
    const frame = attached === ATTACHED.frame ? rest : undefined
    const detail = attached === ATTACHED.text ? decoder.decode(rest) : ''
    const connection = thread.pendingReads.has(token)
      ? takeConfirmation(thread, token, code, index)
      : thread.stayReads.has(token)
        ? takeStays(thread, token, code, index, frame)
        : takeAnswer(thread, { token, code, value, index, detail, frame })
    if (connection) touched.add(connection)
  }
  for (const connection of touched) sendAnswers(connection)
  thread.isReplicaSilent = false
}

/** @returns stops it */
function startTimer(thread: ServingThread, userTimeoutMs: number): () => void {
  let last = performance.now()
  let lengthMs = TIMER_MS
  const look = () => {
    thread.takeAnswers()
    const now = performance.now()
    const stallMicros = Math.round(Math.max(0, now - last - lengthMs) * 1000)
    const { cells } = thread.counters
    if (stallMicros > cells[COUNTER.stallMicrosMax]) cells[COUNTER.stallMicrosMax] = stallMicros
    const wallMs = Date.now()
    for (const connection of thread.connections) {
      checkTimes(connection, now, userTimeoutMs)
      const { token, role } = connection
      if (token && role && wallMs >= token.expiresMs) updateRole(connection, token, wallMs)
    }
    if (thread.pendingReads.size > 0) expireReads(thread, now)
    // The replica of a member does not wait for its disk. After a stall of the process it answers first.
    if (!thread.cells && stallMicros < STALL_MICROS) expireUnanswered(thread, now)
    const unanswered = thread.waiting.size + thread.stayReads.size + thread.pendingReads.size
    const isIdle = thread.requestsThisTick === 0 && unanswered === 0
    thread.requestsThisTick = 0
    last = now
    lengthMs = isIdle ? IDLE_TIMER_MS : TIMER_MS
    timer = setTimeout(look, lengthMs)
  }
  let timer = setTimeout(look, lengthMs)
  return () => clearTimeout(timer)
}

/** Accepts no new connections; closes connections after their requests are answered. */
function drain(thread: ServingThread, server: Server, send: (message: FromServing) => void): void {
  server.close()
  thread.draining = true
  const closeIdle = () => {
    thread.takeAnswers()
    for (const connection of thread.connections) {
      if (connection.closing) continue
      if (isIdle(connection)) endConnection(connection)
      else resumeFramesOf(connection)
    }
    if (thread.connections.size === 0) send({ type: 'drained' })
    else setTimeout(closeIdle, TIMER_MS)
  }
  closeIdle()
}

/** The peer gets the end after its replies, without a wait for its own. */
function endConnection(connection: Connection): void {
  connection.closing = true
  connection.socket.end()
  setTimeout(() => connection.socket.destroy(), HALF_CLOSED_MS)
}

function isIdle({ writes, pendingReads, deferred, socket, held }: Connection): boolean {
  return writes === 0 && pendingReads === 0 && deferred === 0 && socket.writableLength === 0 && !held
}

const port = parentPort
port?.once('message', ({ options }: Serve) => {
  port.on(
    'message',
    serve(options, (message) => port.postMessage(message)),
  )
})

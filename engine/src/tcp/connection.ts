/**
 * One client of a serving thread: bytes → frames → replies, with a bound on everything (performance.md §5,
 * wire-protocol.md §2).
 *
 * Replies gather in one slab and leave with one write per read event. A write request goes to the replica thread; a
 * read behind it on the same connection waits, so that each frame sees what the frames before it did. A client that
 * does not read its replies stops being read, and nobody else notices.
 */

import type { Socket } from 'node:net'
import { assert } from '@vacancy/shared'
import type { Role } from '@vacancy/shared/tokens'
import {
  COMMANDS,
  type CommandSpec,
  createFrameSplitter,
  type FrameSink,
  type FrameSplitter,
  LOGIN_FAILED,
  LOGIN_OK,
  resumeFrames,
  splitFrames,
} from '@vacancy/shared/wire'
import { writeError } from '../search/reply.ts'
import { isMemoryFull, type Memory } from '../store/store.ts'
import { endProposal, refusedText } from '../threads/writes.ts'
import { COUNTER, type Counters, count, countCommand, countDuration, countError, countRows } from './counters.ts'
import {
  answerRead,
  answerWrite,
  type Dispatcher,
  hasApplied,
  minIndexOf,
  NO_ROOM,
  needsMemory,
  openRequest,
  proposeWrite,
  wantsIndex,
} from './dispatch.ts'
import { giveSlab, type Slabs, takeSlab } from './slabs.ts'

export const LIMITS_OF_THREAD = {
  /** Writes of one thread that wait for their answer; beyond: 429. */
  writesInFlight: 16_384,
  /** Writes of one connection; beyond: the connection is not read until one is answered. */
  writesPerConnection: 1_024,
  /** Requests handled in one turn of the event loop; beyond: 429, so that a backlog cannot grow. */
  requestsPerTurn: 32_768,
  /** How long a read waits for the applied index it asks for. */
  minIndexWaitMs: 200,
  /** A frame must be complete this long after its first byte. */
  halfFrameMs: 20_000,
} as const

/** A write on its way. */
type Waiting = {
  connection: Connection | undefined
  command: CommandSpec
  correlationId: number
  wantsIndex: boolean
  since: number
}

/** What all connections of a thread share. */
export type ServingThread = {
  readonly memory: Memory
  readonly dispatcher: Dispatcher
  readonly counters: Counters
  readonly slabs: Slabs
  readonly connections: Set<Connection>
  readonly waiting: Map<number, Waiting>
  readonly requireLogin: boolean
  readonly authenticate: (token: Uint8Array) => Role | undefined
  readonly sendBufferBytes: number
  readonly requestBytesMax: number
  readonly skipBytesMax: number
  readonly monotonicMs: () => number
  /** Asks for the batch of proposals to be sent at the end of this turn. */
  readonly scheduleProposals: () => void
  readonly slow: (command: CommandSpec, milliseconds: number, rows: number) => void
  nextToken: number
  requestsThisTurn: number
  leaderReads: boolean
  draining: boolean
}

export type Connection = {
  readonly thread: ServingThread
  readonly socket: Socket
  readonly splitter: FrameSplitter
  readonly sink: FrameSink
  role: Role | undefined
  /** Slab being filled, 0 when none; replies of this read event are at [slabStart, slabAt). */
  slab: number
  slabAt: number
  /** Writes whose answer is not out yet. */
  writes: number
  /** A frame that waits for them, or for an applied index. */
  held:
    | { bytes: Uint8Array; start: number; end: number; correlationId: number; inEnvelope: boolean; deadline: number }
    | undefined
  /** Replies made outside a read event: answers of writes. */
  small: Buffer
  smallAt: number
  paused: boolean
  closing: boolean
  /** Monotonic ms of the first byte of an unfinished frame, 0 when there is none. */
  halfSince: number
  /** Output that has left so far, what the kernel has not taken of the write in hand, and since when neither moved. */
  flushedBytes: number
  unsentBytes: number
  stalledSince: number
}

const SMALL_BYTES = 4096
const HEAP_REPLY_BYTES = 256 * 1024

export function openConnection(thread: ServingThread, socket: Socket): Connection {
  const connection: Connection = {
    thread,
    socket,
    splitter: createFrameSplitter({ payloadBytesMax: thread.requestBytesMax, skipBytesMax: thread.skipBytesMax }),
    sink: {
      frame: (bytes, start, end, correlationId, inEnvelope) =>
        onFrame(connection, bytes, start, end, correlationId, inEnvelope),
      refuse: (correlationId, text) => refuseFrame(connection, correlationId, text),
      fatal: () => {
        count(thread.counters, COUNTER.protocolErrors)
        closeAfterFlush(connection)
      },
    },
    role: thread.requireLogin ? undefined : 'client',
    slab: 0,
    slabAt: 0,
    writes: 0,
    held: undefined,
    small: Buffer.allocUnsafe(0),
    smallAt: 0,
    paused: false,
    closing: false,
    halfSince: 0,
    flushedBytes: 0,
    unsentBytes: 0,
    stalledSince: 0,
  }
  thread.connections.add(connection)
  count(thread.counters, COUNTER.connectionsOpened)
  socket.on('data', (chunk: Buffer) => onData(connection, chunk))
  socket.on('error', () => count(thread.counters, COUNTER.clientDisconnects))
  socket.on('close', () => {
    thread.connections.delete(connection)
    connection.closing = true
    count(thread.counters, COUNTER.connectionsClosed)
    releaseSlab(connection)
  })
  return connection
}

function onData(connection: Connection, chunk: Buffer): void {
  if (connection.closing) return
  const { thread } = connection
  count(thread.counters, COUNTER.bytesReceived, chunk.length)
  splitFrames(connection.splitter, chunk, connection.sink)
  afterFrames(connection)
}

/** Sends what the frames produced and decides whether to go on reading. */
function afterFrames(connection: Connection): void {
  const { thread, splitter } = connection
  flush(connection)
  connection.halfSince =
    splitter.pendingBytes > 0 && !splitter.stopped ? connection.halfSince || thread.monotonicMs() : 0
  if (splitter.stopped || hasMuchQueued(connection)) pauseReading(connection)
}

function pauseReading(connection: Connection): void {
  if (connection.paused || connection.closing) return
  connection.paused = true
  connection.socket.pause()
}

function hasMuchQueued({ socket, thread }: Connection): boolean {
  return socket.writableLength > thread.sendBufferBytes
}

function resumeReading(connection: Connection): void {
  if (!connection.paused || connection.closing || connection.splitter.stopped) return
  if (hasMuchQueued(connection)) return
  connection.paused = false
  connection.socket.resume()
}

// Frames

function onFrame(
  connection: Connection,
  bytes: Uint8Array,
  start: number,
  end: number,
  correlationId: number,
  inEnvelope: boolean,
): void {
  if (connection.closing) return
  const { thread } = connection
  const { dispatcher, counters } = thread
  const command = openRequest(dispatcher, bytes, start, end)
  if (isLogin(bytes, start, end)) {
    if (!inEnvelope) return logIn(connection, command)
    return replyError(connection, correlationId, 0, 'VALIDATION_ERROR: LOGIN cannot travel in an envelope')
  }
  if (!command) {
    count(counters, COUNTER.clientErrors)
    count(counters, COUNTER.protocolErrors)
    return reply(connection, (target, at, stop) => writeError(target, at, stop, correlationId, dispatcher.error))
  }
  countCommand(counters, command.code)
  const refusal = refusalOf(connection, command)
  if (refusal !== '') return replyError(connection, correlationId, command.code, refusal)
  if (command.access === 'write') return propose(connection, command, correlationId)
  const minIndex = minIndexOf(dispatcher, command)
  const mustWait = !hasApplied(dispatcher, minIndex)
  if (connection.writes > 0 || mustWait) {
    return hold(connection, bytes, start, end, correlationId, inEnvelope, mustWait)
  }
  read(connection, command, correlationId, 0)
}

/** LOGIN is known by its name alone: a malformed one is answered in its own way. */
function isLogin(bytes: Uint8Array, start: number, end: number): boolean {
  return (
    end - start >= 6 &&
    bytes[start] === 5 &&
    bytes[start + 1] === 0x4c &&
    bytes[start + 2] === 0x4f &&
    bytes[start + 3] === 0x47 &&
    bytes[start + 4] === 0x49 &&
    bytes[start + 5] === 0x4e
  )
}

function refusalOf(connection: Connection, command: CommandSpec): string {
  const { thread, role } = connection
  if (role === undefined) return 'AUTH_ERROR: login required'
  if (role === 'monitoring') return 'FORBIDDEN: the role monitoring may not run commands'
  if (thread.draining) return '503'
  if (++thread.requestsThisTurn > LIMITS_OF_THREAD.requestsPerTurn) return '429'
  if (command.access === 'read' && !thread.leaderReads) return '405'
  if (command.access === 'write' && thread.waiting.size >= LIMITS_OF_THREAD.writesInFlight) return '429'
  if (needsMemory(command) && isMemoryFull(thread.memory)) return '503'
  return ''
}

function read(connection: Connection, command: CommandSpec, correlationId: number, waitedMs: number): void {
  const { thread } = connection
  const { dispatcher, counters } = thread
  const started = thread.monotonicMs()
  reply(connection, (target, at, end) => answerRead(dispatcher, command, correlationId, target, at, end, waitedMs))
  const took = thread.monotonicMs() - started
  countDuration(counters, command.code, 1, took / 1000)
  const isSearch = command === COMMANDS.SEARCHAVAIL || command === COMMANDS.SEARCHPROP
  if (dispatcher.error !== '') countError(counters, command.code, dispatcher.error)
  else if (isSearch) countRows(counters, command.code, dispatcher.searcher.hits)
  thread.slow(command, took + waitedMs, isSearch ? dispatcher.searcher.hits : 0)
}

function propose(connection: Connection, command: CommandSpec, correlationId: number): void {
  const { thread } = connection
  const error = proposeWrite(thread.dispatcher, command)
  if (error !== '') return replyError(connection, correlationId, command.code, error)
  const token = thread.nextToken
  thread.nextToken = (thread.nextToken + 1) >>> 0
  endProposal(thread.dispatcher.proposals, token)
  thread.waiting.set(token, {
    connection,
    command,
    correlationId,
    wantsIndex: wantsIndex(thread.dispatcher, command),
    since: thread.monotonicMs(),
  })
  connection.writes++
  if (connection.writes >= LIMITS_OF_THREAD.writesPerConnection) connection.splitter.stopped = true
  thread.scheduleProposals()
}

/** Keeps one frame and everything behind it until the writes before it are answered. */
function hold(
  connection: Connection,
  bytes: Uint8Array,
  start: number,
  end: number,
  correlationId: number,
  inEnvelope: boolean,
  forIndex: boolean,
): void {
  // Not bytes.slice: of a Buffer that is a view, and the chunk is gone after this turn.
  const copy = Uint8Array.prototype.slice.call(bytes, start, end)
  const now = connection.thread.monotonicMs()
  const deadline = forIndex ? now + LIMITS_OF_THREAD.minIndexWaitMs : Number.POSITIVE_INFINITY
  connection.held = { bytes: copy, start: 0, end: copy.length, correlationId, inEnvelope, deadline }
  connection.splitter.stopped = true
}

/** Goes on with held frames when what they wait for has happened. Called after answers and by the thread's timer. */
export function resumeFramesOf(connection: Connection): void {
  if (connection.closing) return
  const { thread, splitter, held } = connection
  if (held) {
    if (connection.writes > 0) return
    const command = openRequest(thread.dispatcher, held.bytes, held.start, held.end)
    assert(command !== undefined, 'a held frame was checked before')
    const applied = hasApplied(thread.dispatcher, minIndexOf(thread.dispatcher, command))
    const expired = thread.monotonicMs() >= held.deadline
    if (!applied && !expired) return
    connection.held = undefined
    if (applied) read(connection, command, held.correlationId, 0)
    else replyError(connection, held.correlationId, command.code, '308')
  }
  if (splitter.stopped && connection.writes < LIMITS_OF_THREAD.writesPerConnection && !hasMuchQueued(connection)) {
    splitter.stopped = false
    resumeFrames(splitter, connection.sink)
  }
  afterFrames(connection)
  if (!splitter.stopped) resumeReading(connection)
}

function logIn(connection: Connection, command: CommandSpec | undefined): void {
  const { thread } = connection
  const { scan } = thread.dispatcher.values
  const role = command
    ? thread.authenticate(
        scan.bytes.subarray(scan.start[0] as number, (scan.start[0] as number) + (scan.length[0] as number)),
      )
    : undefined
  flush(connection)
  if (role === undefined) {
    count(thread.counters, COUNTER.loginFailures)
    connection.socket.write(LOGIN_FAILED)
    closeAfterFlush(connection)
    return
  }
  connection.role = role
  connection.socket.write(LOGIN_OK)
}

function refuseFrame(connection: Connection, correlationId: number, text: string): void {
  count(connection.thread.counters, COUNTER.clientErrors)
  count(connection.thread.counters, COUNTER.protocolErrors)
  reply(connection, (target, at, end) => writeError(target, at, end, correlationId, text))
}

function replyError(connection: Connection, correlationId: number, command: number, text: string): void {
  countError(connection.thread.counters, command, text)
  reply(connection, (target, at, end) => writeError(target, at, end, correlationId, text))
}

// Output

/** Writes a reply behind those of this read event; into a new slab, or into heap memory, when there is no room. */
function reply(connection: Connection, write: (target: Uint8Array, at: number, end: number) => number): void {
  const { thread } = connection
  const { u8 } = thread.memory
  if (connection.slab === 0) openSlab(connection)
  if (connection.slab !== 0) {
    const stop = write(u8, connection.slabAt, connection.slab + thread.slabs.bytes)
    if (stop !== NO_ROOM) {
      connection.slabAt = stop
      return
    }
    if (connection.slabAt > connection.slab) {
      flush(connection)
      stopWhenFull(connection)
      return reply(connection, write)
    }
  }
  replyFromHeap(connection, write)
}

/**
 * For replies that no slab holds: long lists, and everything while all slabs are with slow readers. Searches write
 * into the store's memory only, so they borrow the thread's spare slab and are copied out.
 */
function replyFromHeap(connection: Connection, write: (target: Uint8Array, at: number, end: number) => number): void {
  const { thread } = connection
  flush(connection)
  const { spare } = thread.slabs
  const stop = write(thread.memory.u8, spare, spare + thread.slabs.bytes)
  if (stop !== NO_ROOM) {
    count(thread.counters, COUNTER.slabsMissing)
    send(connection, Buffer.from(thread.memory.u8.slice(spare, stop).buffer))
    stopWhenFull(connection)
    return
  }
  for (let bytes = Math.max(HEAP_REPLY_BYTES, thread.slabs.bytes * 2); ; bytes *= 2) {
    const heap = Buffer.allocUnsafeSlow(bytes)
    const end = write(heap, 0, bytes)
    if (end === NO_ROOM) continue
    send(connection, heap.subarray(0, end))
    stopWhenFull(connection)
    return
  }
}

/** One read event may bring thousands of requests: their replies must not all queue up at a client that does not read. */
function stopWhenFull(connection: Connection): void {
  if (hasMuchQueued(connection)) connection.splitter.stopped = true
}

/** A write has left for the kernel. Not the event `drain`: that has a threshold of its own, and may never come. */
function onSent(connection: Connection): void {
  if (!connection.paused || connection.closing || hasMuchQueued(connection)) return
  if (connection.splitter.stopped) resumeFramesOf(connection)
  else resumeReading(connection)
}

function openSlab(connection: Connection): void {
  connection.slab = takeSlab(connection.thread.slabs)
  connection.slabAt = connection.slab
}

function releaseSlab(connection: Connection): void {
  if (connection.slab !== 0) giveSlab(connection.thread.slabs, connection.slab)
  connection.slab = 0
}

/** Sends what the slab holds with one write. */
function flush(connection: Connection): void {
  const { thread, socket, slab } = connection
  if (slab === 0) return
  const bytes = connection.slabAt - slab
  connection.slab = 0
  if (bytes === 0 || socket.destroyed) {
    giveSlab(thread.slabs, slab)
    return
  }
  count(thread.counters, COUNTER.bytesSent, bytes)
  const view = Buffer.from(thread.memory.buffer as unknown as ArrayBuffer, slab, bytes)
  let handed = false
  socket.write(view, () => {
    if (handed) giveSlab(thread.slabs, slab)
    onSent(connection)
  })
  // Nothing queued: the kernel took all of it, and the memory is free at once.
  if (socket.writableLength === 0) giveSlab(thread.slabs, slab)
  else handed = true
}

function send(connection: Connection, bytes: Buffer): void {
  if (connection.socket.destroyed) return
  count(connection.thread.counters, COUNTER.bytesSent, bytes.length)
  connection.socket.write(bytes, () => onSent(connection))
}

function closeAfterFlush(connection: Connection): void {
  flush(connection)
  connection.closing = true
  connection.socket.end()
  connection.socket.destroySoon()
}

// Answers of writes

/** Puts the answer of one write behind others for the same client; `sendAnswers` sends them. */
export function takeAnswer(
  thread: ServingThread,
  token: number,
  code: number,
  value: number,
  index: number,
  textOf: (code: number, value: number) => string,
): Connection | undefined {
  const waiting = thread.waiting.get(token)
  assert(waiting !== undefined, 'every accepted write gets exactly one outcome')
  thread.waiting.delete(token)
  const { connection, command, correlationId } = waiting
  countDuration(thread.counters, command.code, 0, (thread.monotonicMs() - waiting.since) / 1000)
  const text = code === 0 ? '' : (refusedText(code) ?? textOf(code, value))
  if (text !== '') countError(thread.counters, command.code, text)
  if (!connection || connection.closing) return undefined
  connection.writes--
  makeRoom(connection)
  const { small, smallAt } = connection
  const writer = thread.dispatcher.searcher.writer
  const end =
    text === ''
      ? answerWrite(writer, command, correlationId, value, waiting.wantsIndex ? index : 0, small, smallAt, small.length)
      : writeError(small, smallAt, small.length, correlationId, text)
  assert(end !== NO_ROOM, 'the answer of a write is short')
  connection.smallAt = end
  return connection
}

function makeRoom(connection: Connection): void {
  if (connection.small.length - connection.smallAt >= SMALL_BYTES / 2) return
  const grown = Buffer.allocUnsafe(Math.max(SMALL_BYTES, connection.small.length * 2))
  connection.small.copy(grown, 0, 0, connection.smallAt)
  connection.small = grown
}

/** Sends gathered answers and lets held frames go on. */
export function sendAnswers(connection: Connection): void {
  if (connection.smallAt > 0) send(connection, connection.small.subarray(0, connection.smallAt))
  // The socket may still hold what was sent: the next answers get memory of their own.
  connection.small = connection.small.subarray(connection.smallAt)
  connection.smallAt = 0
  if (connection.held || connection.splitter.stopped) resumeFramesOf(connection)
}

/** Looks after time limits. Called by the thread's timer. */
export function checkTimes(connection: Connection, now: number, userTimeoutMs: number): void {
  const { socket, thread } = connection
  if (connection.halfSince > 0 && now - connection.halfSince > LIMITS_OF_THREAD.halfFrameMs) {
    count(thread.counters, COUNTER.timeouts)
    socket.destroy()
    return
  }
  if (connection.held && now >= connection.held.deadline) resumeFramesOf(connection)
  const queued = socket.writableLength
  const flushed = socket.bytesWritten - queued
  const unsent = unsentBytes(socket)
  if (queued === 0 || flushed !== connection.flushedBytes || unsent !== connection.unsentBytes) {
    connection.flushedBytes = flushed
    connection.unsentBytes = unsent
    connection.stalledSince = now
    return
  }
  if (userTimeoutMs > 0 && now - connection.stalledSince > userTimeoutMs) {
    count(thread.counters, COUNTER.timeouts)
    socket.destroy()
  }
}

/**
 * Bytes of the write in hand that the kernel has not taken. Node counts a write when all of it is gone, and one may be
 * a megabyte: without this a slow client that reads all the time looks like one that does not.
 */
function unsentBytes(socket: Socket): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null }
  return handle?.writeQueueSize ?? 0
}

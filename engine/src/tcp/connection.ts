/**
 * One client of a serving thread: bytes → frames → replies, with a bound on everything (performance.md §5,
 * wire-protocol.md §2).
 *
 * Replies gather in one slab and leave with one write per read event. A write request goes to the replica thread; a
 * read behind it on the same connection waits, so that each frame sees what the frames before it did. A client that
 * does not read its replies stops being read, and nobody else notices.
 *
 * In a shard of several nodes the cells say what this one may answer (cluster/cells.ts): writes only while it leads,
 * reads that are fresh enough, and some reads when the replica says so. Those wait beside the stream: reads behind them
 * go on, a write behind them waits, so that they do not see it.
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
import { admitRead, type Cells, isLeaderKnown, ROLE, roleOf } from '../cluster/cells.ts'
import { READ_LIMITS } from '../cluster/reads.ts'
import { writeError } from '../search/reply.ts'
import { appliedIndex, isMemoryFull, type Memory } from '../store/store.ts'
import { beginRequest, endRequest } from '../store/version.ts'
import { type AskedReads, askRead } from '../threads/reads.ts'
import { endProposal, REFUSED, refusedText } from '../threads/writes.ts'
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
  readModeOf,
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
  /** Reads of one connection that wait for a word of the replica; beyond: it is not read until one is answered. */
  askedPerConnection: 1_024,
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

/** A read that the replica was asked about. */
type AskedRead = {
  /** Undefined: it was answered by the clock, and the replica's word is still to come. */
  connection: Connection | undefined
  readonly command: CommandSpec
  readonly bytes: Uint8Array
  readonly correlationId: number
  readonly isLinearizable: boolean
  readonly since: number
}

/** What all connections of a thread share. */
export type ServingThread = {
  readonly memory: Memory
  readonly dispatcher: Dispatcher
  readonly counters: Counters
  readonly slabs: Slabs
  readonly connections: Set<Connection>
  readonly waiting: Map<number, Waiting>
  /** What is known of the shard; undefined on a standalone node. */
  readonly cells: Cells | undefined
  readonly asked: Map<number, AskedRead>
  /** Those of this turn. */
  readonly askedReads: AskedReads
  readonly requireLogin: boolean
  readonly authenticate: (token: Uint8Array) => Role | undefined
  readonly sendBufferBytes: number
  readonly requestBytesMax: number
  readonly skipBytesMax: number
  readonly monotonicMs: () => number
  /** Asks for what the replica is to get to be sent at the end of this turn. */
  readonly scheduleBatches: () => void
  readonly slow: (command: CommandSpec, milliseconds: number, rows: number) => void
  nextToken: number
  requestsThisTurn: number
  leaderReads: boolean
  draining: boolean
}

type Held = {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
  readonly correlationId: number
  readonly inEnvelope: boolean
  readonly deadline: number
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
  /** Reads that the replica was asked about. */
  asked: number
  /** Greatest index that something of this connection was served at: it never goes back (consensus.md P5). */
  servedIndex: number
  /** A frame that waits for the writes, the asked reads, or an applied index. */
  held: Held | undefined
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
    asked: 0,
    servedIndex: 0,
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
  if (command.access === 'write') {
    // A read that waits for the replica must not see what was sent behind it.
    if (connection.asked > 0) return hold(connection, bytes, start, end, correlationId, inEnvelope, false)
    return propose(connection, command, correlationId)
  }
  const mustWait = !thread.cells && !isApplied(thread, command)
  if (connection.writes > 0 || mustWait) {
    return hold(connection, bytes, start, end, correlationId, inEnvelope, mustWait)
  }
  if (thread.cells) readInShard(connection, thread.cells, command, bytes, start, end, correlationId)
  else read(connection, command, correlationId, 0)
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
  const misplaced = thread.cells ? refusalInShard(thread.cells, command, thread.leaderReads) : ''
  if (misplaced !== '') return misplaced
  if (command.access === 'read' && !thread.leaderReads && !thread.cells) return '405'
  if (command.access === 'write' && thread.waiting.size >= LIMITS_OF_THREAD.writesInFlight) return '429'
  if (needsMemory(command) && isMemoryFull(thread.memory)) return '503'
  return ''
}

/** What the role of this node does not allow. A write is refused here only before it is in any log (X5). */
function refusalInShard(cells: Cells, command: CommandSpec, leaderReads: boolean): string {
  const role = roleOf(cells)
  if (role === ROLE.unavailable) return '503'
  const isLeader = role === ROLE.leader
  // A leader that has not begun its term yet is none, and there is nobody else to send the client to.
  const isElsewhere = role !== ROLE.none && isLeaderKnown(cells)
  if (command.access === 'write') return isLeader ? '' : isElsewhere ? '308' : '503'
  return isLeader && !leaderReads ? '405' : ''
}

/** Answers a read from what is applied here, or asks the replica when that may be done (consensus.md §14). */
function readInShard(
  connection: Connection,
  cells: Cells,
  command: CommandSpec,
  bytes: Uint8Array,
  start: number,
  end: number,
  correlationId: number,
): void {
  const { thread } = connection
  const mode = readModeOf(thread.dispatcher, command)
  const applied = appliedIndex(thread.memory)
  switch (admitRead(cells, mode, thread.monotonicMs(), applied, connection.servedIndex)) {
    case 'serve':
      connection.servedIndex = applied
      return read(connection, command, correlationId, 0)
    case 'ask': {
      if (thread.asked.size >= READ_LIMITS.waiting) return replyError(connection, correlationId, command.code, '429')
      const token = takeToken(thread)
      thread.asked.set(token, {
        connection,
        command,
        bytes: copyOf(bytes, start, end),
        correlationId,
        isLinearizable: mode.isLinearizable,
        since: thread.monotonicMs(),
      })
      askRead(thread.askedReads, token, mode.isLinearizable, Math.max(mode.minIndex, connection.servedIndex))
      connection.asked++
      if (connection.asked >= LIMITS_OF_THREAD.askedPerConnection) connection.splitter.stopped = true
      return thread.scheduleBatches()
    }
    default:
      return replyError(connection, correlationId, command.code, '503')
  }
}

/** Not bytes.slice: of a Buffer that is a view, and the chunk is gone after this turn. */
function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return Uint8Array.prototype.slice.call(bytes, start, end)
}

function takeToken(thread: ServingThread): number {
  const token = thread.nextToken
  thread.nextToken = (token + 1) >>> 0
  return token
}

function read(connection: Connection, command: CommandSpec, correlationId: number, waitedMs: number): void {
  const { thread } = connection
  const { dispatcher, counters } = thread
  const { memory, reader } = dispatcher.view
  // A snapshot of another node is taking the place of the state (store/version.ts).
  if (!beginRequest(memory, reader)) return replyError(connection, correlationId, command.code, '503')
  const started = thread.monotonicMs()
  try {
    reply(connection, (target, at, end) => answerRead(dispatcher, command, correlationId, target, at, end, waitedMs))
  } finally {
    endRequest(memory, reader)
  }
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
  const token = takeToken(thread)
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
  thread.scheduleBatches()
}

/** Keeps one frame and everything behind it until what is before it is answered. */
function hold(
  connection: Connection,
  bytes: Uint8Array,
  start: number,
  end: number,
  correlationId: number,
  inEnvelope: boolean,
  forIndex: boolean,
): void {
  const copy = copyOf(bytes, start, end)
  const now = connection.thread.monotonicMs()
  const deadline = forIndex ? now + READ_LIMITS.minIndexWaitMs : Number.POSITIVE_INFINITY
  connection.held = { bytes: copy, start: 0, end: copy.length, correlationId, inEnvelope, deadline }
  connection.splitter.stopped = true
}

/** Goes on with held frames when what they wait for has happened. Called after answers and by the thread's timer. */
export function resumeFramesOf(connection: Connection): void {
  if (connection.closing) return
  const { thread, splitter, held } = connection
  if (held) {
    const command = openRequest(thread.dispatcher, held.bytes, held.start, held.end)
    assert(command !== undefined, 'a held frame was checked before')
    if (!mayGoOn(connection, held, command)) return
    connection.held = undefined
    goOn(connection, held, command)
  }
  if (splitter.stopped && !isBusy(connection) && !hasMuchQueued(connection)) {
    splitter.stopped = false
    resumeFrames(splitter, connection.sink)
  }
  afterFrames(connection)
  if (!splitter.stopped) resumeReading(connection)
}

/** As much on its way as one connection may have. */
function isBusy({ writes, asked }: Connection): boolean {
  return writes >= LIMITS_OF_THREAD.writesPerConnection || asked >= LIMITS_OF_THREAD.askedPerConnection
}

function mayGoOn({ thread, asked, writes }: Connection, held: Held, command: CommandSpec): boolean {
  if (command.access === 'write') return asked === 0
  if (writes > 0) return false
  return thread.cells !== undefined || isApplied(thread, command) || thread.monotonicMs() >= held.deadline
}

function goOn(connection: Connection, held: Held, command: CommandSpec): void {
  const { thread } = connection
  const { bytes, start, end, correlationId } = held
  if (command.access === 'write') propose(connection, command, correlationId)
  else if (thread.cells) readInShard(connection, thread.cells, command, bytes, start, end, correlationId)
  else if (isApplied(thread, command)) read(connection, command, correlationId, 0)
  else replyError(connection, correlationId, command.code, '308')
}

function isApplied({ dispatcher }: ServingThread, command: CommandSpec): boolean {
  return hasApplied(dispatcher, minIndexOf(dispatcher, command))
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
  if (code === 0 && index > connection.servedIndex) connection.servedIndex = index
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

// Answers of the replica about reads

/**
 * Answers a read that the replica has spoken about.
 *
 * @returns its connection, for `sendAnswers`; undefined when nobody waits for it any more
 */
export function takeWord(thread: ServingThread, token: number, code: number, index: number): Connection | undefined {
  const asked = thread.asked.get(token)
  assert(asked !== undefined, 'the replica speaks once about each read')
  thread.asked.delete(token)
  const { connection } = asked
  if (connection) answerAsked(connection, asked, code, index)
  return connection
}

function answerAsked(connection: Connection, asked: AskedRead, code: number, index: number): void {
  connection.asked--
  if (connection.closing) return
  const { thread } = connection
  const { command, bytes, correlationId, since } = asked
  const waitedMs = thread.monotonicMs() - since
  countDuration(thread.counters, command.code, 0, waitedMs / 1000)
  const isUnavailable = thread.cells !== undefined && roleOf(thread.cells) === ROLE.unavailable
  const refusal = code !== 0 ? refusedText(code) : isUnavailable ? '503' : undefined
  if (refusal !== undefined) return replyError(connection, correlationId, command.code, refusal)
  const applied = appliedIndex(thread.memory)
  assert(applied >= index, 'what the replica has applied is there for its readers (P5)')
  connection.servedIndex = Math.max(connection.servedIndex, applied)
  const opened = openRequest(thread.dispatcher, bytes, 0, bytes.length)
  assert(opened === command, 'a read that waits was checked before')
  read(connection, command, correlationId, waitedMs)
}

/** Answers reads whose time is over, should the replica be late. Called by the thread's timer. */
export function expireAsked(thread: ServingThread, now: number): void {
  const touched = new Set<Connection>()
  for (const asked of thread.asked.values()) {
    const { connection, isLinearizable, since } = asked
    const waitMs = isLinearizable ? READ_LIMITS.linearizableWaitMs : READ_LIMITS.minIndexWaitMs
    if (!connection || now - since < waitMs) continue
    asked.connection = undefined
    answerAsked(connection, asked, isLinearizable ? REFUSED.noLeader : REFUSED.notCaughtUp, 0)
    touched.add(connection)
  }
  for (const connection of touched) sendAnswers(connection)
}

/** Sends gathered answers and lets held frames go on. */
export function sendAnswers(connection: Connection): void {
  flush(connection)
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

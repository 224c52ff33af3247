/**
 * One client of a serving thread: bytes → frames → replies, with a bound on every step (docs/design/search.md#replies,
 * docs/design/protocol.md#connection).
 *
 * Replies collect in one slab and leave with one write per read event. A write request goes to the replica thread. A
 * later read on the same connection waits, so that each frame sees the effects of earlier frames. When a client does
 * not read its replies, reading from it pauses; other clients are not affected.
 *
 * In a shard of several nodes the shared status decides which requests this node may answer (cluster/shared-status.ts):
 * writes only while it leads, reads that are fresh enough, and some reads after a confirmation by the replica. Those
 * wait beside the stream: later reads continue, and a later write waits, so that they do not see it.
 *
 * The same holds for reads that a later turn answers (deferred.ts): a search over many rows, a long list of segments,
 * and a read of a table that is being changed.
 */

import type { Socket } from 'node:net'
import { assert, wireText } from '@vacancy/shared'
import { LOGGED_OUT } from '@vacancy/shared/tokens'
import {
  type CommandSpec,
  createFrameSplitter,
  LOGIN_FAILED,
  LOGIN_OK,
  resumeFrames,
  splitFrames,
} from '@vacancy/shared/wire'
import { READ_LIMITS } from '../cluster/reads.ts'
import { admitRead, type Cells, ROLE, roleOf } from '../cluster/shared-status.ts'
import { writeError } from '../protocol/reply.ts'
import { type Searcher, takeSlices } from '../search/search.ts'
import { appliedIndex } from '../store/store.ts'
import { beginRequest, endRequest } from '../store/version.ts'
import { addRead } from '../threads/reads.ts'
import { endProposal, REFUSED, refusedText } from '../threads/writes.ts'
import { isLogin, refusalOf } from './admission.ts'
import {
  type Connection,
  copyOf,
  type DeferredRead,
  type Frame,
  type Held,
  LIMITS_OF_THREAD,
  type PendingRead,
  type ServingThread,
  takeToken,
  unsentBytes,
  type Waiting,
} from './connection-state.ts'
import { COUNTER, count, countCommand, countDuration, countError, countRows } from './counters.ts'
import {
  createDeferred,
  DEFERRED_LIMITS,
  type Deferred,
  defer,
  deferredCount,
  scheduleTurn,
  type TurnOutcome,
} from './deferred.ts'
import {
  answerRead,
  continueSearch,
  continueSegments,
  createListing,
  hasApplied,
  isSearch,
  KEEPS_CHANGING,
  minIndexOf,
  NO_SOURCE,
  openRequest,
  proposeStayRead,
  proposeWrite,
  readModeOf,
  traceIdOf,
  UNFINISHED,
  wantsIndex,
} from './dispatch.ts'
import {
  closeAfterFlush,
  flush,
  hasMuchQueued,
  offerToReplica,
  reclaim,
  releaseSlab,
  reply,
  replyError,
  send,
  sendAnswers,
  stopWhenFull,
} from './replies.ts'

export function openConnection(thread: ServingThread, socket: Socket): Connection {
  const connection: Connection = {
    thread,
    socket,
    resume: () => resumeFramesOf(connection),
    onSent: () => onSent(connection),
    splitter: createFrameSplitter({ payloadBytesMax: thread.requestBytesMax, skipBytesMax: thread.skipBytesMax }),
    sink: {
      frame: (bytes, start, end, correlationId, inEnvelope) => {
        // Storing a young object costs a write barrier, and a chunk has many frames.
        if (current.bytes !== bytes) current.bytes = bytes
        current.start = start
        current.end = end
        current.correlationId = correlationId
        current.inEnvelope = inEnvelope
        onFrame(connection, current)
      },
      refuse: (correlationId, text) => refuseFrame(connection, correlationId, text),
      fatal: () => {
        count(thread.counters, COUNTER.protocolErrors)
        if (connection.deferred === 0) closeAfterFlush(connection)
        else connection.isLast = true
      },
    },
    role: thread.requireLogin ? undefined : 'client',
    roleFault: LOGGED_OUT.fault,
    token: undefined,
    source: NO_SOURCE,
    slab: 0,
    slabAt: 0,
    writes: 0,
    offered: undefined,
    pendingReads: 0,
    deferred: 0,
    servedIndex: 0,
    held: undefined,
    small: Buffer.allocUnsafe(0),
    smallAt: 0,
    paused: false,
    closing: false,
    isLast: false,
    halfSince: 0,
    flushedBytes: 0,
    unsentBytes: 0,
    stalledSince: 0,
  }
  thread.connections.add(connection)
  count(thread.counters, COUNTER.connectionsOpened)
  const { _destroy: destroy } = socket
  // Before Node closes the descriptor, which may then be another client's.
  socket._destroy = (error, done) => {
    reclaim(connection)
    destroy.call(socket, error, done)
  }
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
  const { thread } = connection
  // A turn may bring searches of many connections. Writers do not wait for all of them.
  thread.takeAnswers()
  if (connection.closing) return
  count(thread.counters, COUNTER.bytesReceived, chunk.length)
  splitFrames(connection.splitter, chunk, connection.sink)
  afterFrames(connection)
}

/** Sends the replies of the frames and decides whether to continue reading. */
function afterFrames(connection: Connection): void {
  const { thread, splitter } = connection
  thread.readMs = 0
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

function resumeReading(connection: Connection): void {
  if (!connection.paused || connection.closing || connection.splitter.stopped) return
  if (hasMuchQueued(connection)) return
  connection.paused = false
  connection.socket.resume()
}

/** The kernel has taken a write. Not the event `drain`, which has its own threshold and may never come. */
function onSent(connection: Connection): void {
  if (!connection.paused || connection.closing || hasMuchQueued(connection)) return
  if (connection.splitter.stopped) resumeFramesOf(connection)
  else resumeReading(connection)
}

// Frames

/** The frame being handled. One reused object: whatever waits keeps a copy. */
const current: Frame = { bytes: new Uint8Array(0), start: 0, end: 0, correlationId: 0, inEnvelope: false }

function onFrame(connection: Connection, frame: Frame): void {
  if (connection.closing) return
  const { bytes, start, end, correlationId } = frame
  const { thread } = connection
  const { dispatcher, counters, readMs } = thread
  thread.readMs = 0
  const command = openRequest(dispatcher, bytes, start, end)
  if (isLogin(bytes, start, end)) {
    if (!frame.inEnvelope) return logIn(connection, command)
    return replyError(connection, correlationId, 0, 'VALIDATION_ERROR: LOGIN cannot travel in an envelope')
  }
  if (!command) {
    count(counters, COUNTER.clientErrors)
    count(counters, COUNTER.protocolErrors)
    reply(connection, (target, at, stop) => writeError(target, at, stop, correlationId, dispatcher.error))
    return
  }
  countCommand(counters, command.code)
  const refusal = refusalOf(connection, command)
  if (refusal !== '') return replyError(connection, correlationId, command.code, refusal)
  if (command.access === 'write') {
    // A waiting read must not see a write sent after it.
    if (connection.pendingReads > 0 || connection.deferred > 0) return hold(connection, frame, false)
    return propose(connection, command, correlationId)
  }
  const mustWait = !thread.cells && !isApplied(thread, command)
  if (connection.writes > 0 || mustWait) {
    return hold(connection, frame, mustWait)
  }
  thread.readMs = readMs
  if (thread.cells) readInShard(connection, thread.cells, command, frame)
  else read(connection, command, frame, 0)
}

/**
 * Serves a read from the applied state, or requests a confirmation from the replica (docs/design/consensus.md#reads).
 */
function readInShard(connection: Connection, cells: Cells, command: CommandSpec, frame: Frame): void {
  const { thread } = connection
  const { correlationId } = frame
  const mode = readModeOf(thread.dispatcher, command)
  const applied = appliedIndex(thread.memory)
  switch (admitRead(cells, mode, thread.monotonicMs(), applied, connection.servedIndex)) {
    case 'serve':
      connection.servedIndex = applied
      return read(connection, command, frame, 0)
    case 'confirm': {
      if (thread.pendingReads.size >= READ_LIMITS.waiting)
        return replyError(connection, correlationId, command.code, '429')
      const token = takeToken(thread)
      thread.pendingReads.set(token, {
        connection,
        command,
        bytes: copyOf(frame),
        correlationId,
        isLinearizable: mode.isLinearizable,
        since: thread.monotonicMs(),
      })
      addRead(thread.readBatch, token, mode.isLinearizable, Math.max(mode.minIndex, connection.servedIndex))
      connection.pendingReads++
      if (connection.pendingReads >= LIMITS_OF_THREAD.readsPerConnection) connection.splitter.stopped = true
      return thread.scheduleBatches()
    }
    default:
      return replyError(connection, correlationId, command.code, '503')
  }
}

function read(connection: Connection, command: CommandSpec, frame: Frame, waitedMs: number): void {
  const { thread } = connection
  const { correlationId } = frame
  const { dispatcher } = thread
  if (command.group === 'stays') return readStays(connection, command, correlationId)
  if (isSearch(command)) thread.sendBatches()
  const { searcher } = dispatcher
  const { memory, reader } = dispatcher.view
  // A snapshot of another node is replacing the state (store/version.ts).
  if (!beginRequest(memory, reader)) return replyError(connection, correlationId, command.code, '503')
  const started = thread.readMs || thread.monotonicMs()
  let stop = 0
  try {
    stop = reply(connection, (target, at, limit) =>
      answerRead(dispatcher, command, correlationId, target, at, limit, waitedMs),
    )
  } finally {
    endRequest(memory, reader)
  }
  thread.readMs = thread.monotonicMs()
  const took = thread.readMs - started
  if (searcher.workLeft < searcher.sliceWork) scheduleTurn(thread.deferred)
  if (isSearch(command)) count(thread.counters, COUNTER.searchRetries, searcher.retries)
  if (stop === KEEPS_CHANGING || stop === UNFINISHED) {
    const isBegun = stop === UNFINISHED
    return deferRead(connection, {
      connection,
      command,
      bytes: copyOf(frame),
      correlationId,
      since: started - waitedMs,
      slices: isBegun && isSearch(command) ? takeSlices(searcher, took) : undefined,
      listing: isBegun && !isSearch(command) ? createListing(dispatcher) : undefined,
      tries: isBegun ? 0 : 1,
    })
  }
  noteRead(thread, command, took, waitedMs)
}

/** The replica thread has the ledger. A later write of the connection waits, so that the read does not see it. */
function readStays(connection: Connection, command: CommandSpec, correlationId: number): void {
  const { thread } = connection
  if (thread.stayReads.size >= READ_LIMITS.waiting) return replyError(connection, correlationId, command.code, '429')
  if (thread.isReplicaSilent) return replyError(connection, correlationId, command.code, '503')
  const error = proposeStayRead(thread.dispatcher, command, thread.stayBatch)
  if (error !== '') return replyError(connection, correlationId, command.code, error)
  const token = takeToken(thread)
  endProposal(thread.stayBatch, token)
  thread.stayReads.set(token, { connection, command, correlationId, since: thread.monotonicMs() })
  connection.pendingReads++
  if (connection.pendingReads >= LIMITS_OF_THREAD.readsPerConnection) connection.splitter.stopped = true
  thread.scheduleBatches()
}

/** Counts an answered read. */
function noteRead(thread: ServingThread, command: CommandSpec, tookMs: number, waitedMs: number): void {
  const { dispatcher, counters } = thread
  countDuration(counters, command.code, 1, tookMs / 1000)
  const rows = isSearch(command) ? dispatcher.searcher.hits : 0
  if (dispatcher.error !== '') countError(counters, command.code, dispatcher.error)
  else if (isSearch(command)) countRows(counters, command.code, rows)
  const milliseconds = tookMs + waitedMs
  if (milliseconds < thread.slowMs) return
  thread.slow({ command: command.name, milliseconds, rows, traceId: traceIdOf(dispatcher, command) })
}

/** Leaves a read to a later turn. Later frames continue, except writes. */
function deferRead(connection: Connection, read: DeferredRead): void {
  const { thread, socket } = connection
  const { deferred } = thread
  if (deferredCount(deferred) >= DEFERRED_LIMITS.waiting) {
    return replyError(connection, read.correlationId, read.command.code, '429')
  }
  connection.deferred++
  if (connection.deferred >= LIMITS_OF_THREAD.deferredPerConnection) connection.splitter.stopped = true
  // A client that has closed its sending side still gets its reply.
  socket.allowHalfOpen = true
  // Later searches wait their turn.
  thread.dispatcher.searcher.workLeft = 0
  defer(deferred, read, read.tries > 0)
}

/** The deferred reads of a thread. */
export function createDeferredReads(searcher: Searcher): Deferred<DeferredRead> {
  return createDeferred(
    runDeferred,
    () => searcher.workLeft > 0,
    () => {
      searcher.workLeft = searcher.sliceWork
    },
  )
}

/** Answers a deferred read, or runs its next slice. */
function runDeferred(read: DeferredRead): TurnOutcome {
  const { connection } = read
  if (connection.closing) return 'done'
  const outcome = tryDeferred(read)
  if (outcome !== 'done') return outcome
  connection.deferred--
  if (connection.deferred === 0) afterDeferred(connection)
  if (!connection.closing) sendAnswers(connection)
  return 'done'
}

function afterDeferred(connection: Connection): void {
  const { socket } = connection
  socket.allowHalfOpen = false
  flush(connection)
  if (connection.isLast) closeAfterFlush(connection)
  // The client has closed its sending side meanwhile, and no other request is in flight.
  else if (socket.readableEnded) socket.end()
}

function tryDeferred(read: DeferredRead): TurnOutcome {
  const { connection, command, bytes, correlationId, since } = read
  const { thread } = connection
  const { dispatcher, counters, slabs } = thread
  const { searcher } = dispatcher
  const { memory, reader } = dispatcher.view
  const refuse = (text: string): TurnOutcome => {
    replyError(connection, correlationId, command.code, text)
    return 'done'
  }
  if (thread.cells !== undefined && roleOf(thread.cells) === ROLE.unavailable) return refuse('503')
  const opened = openRequest(dispatcher, bytes, 0, bytes.length)
  assert(opened === command, 'a deferred read was checked before')
  if (!beginRequest(memory, reader)) return refuse('503')
  const started = thread.monotonicMs()
  const waitedMs = started - since - (read.slices?.workedMs ?? 0)
  let stop = 0
  try {
    if (read.listing) stop = continueSegments(dispatcher, correlationId, read.listing)
    else if (read.slices) {
      const end = slabs.spare + slabs.bytes
      stop = continueSearch(dispatcher, command, correlationId, read.slices, slabs.spare, end, waitedMs)
    } else {
      stop = reply(connection, (target, at, end) =>
        answerRead(dispatcher, command, correlationId, target, at, end, waitedMs),
      )
    }
  } finally {
    endRequest(memory, reader)
  }
  const took = thread.monotonicMs() - started
  if (isSearch(command)) count(counters, COUNTER.searchRetries, searcher.retries)
  if (stop === KEEPS_CHANGING) return ++read.tries > DEFERRED_LIMITS.triesMax ? refuse('429') : 'rest'
  if (stop === UNFINISHED && read.listing) return 'again'
  if (stop === UNFINISHED) {
    read.slices ??= takeSlices(searcher, took)
    return read.slices.restarts > DEFERRED_LIMITS.triesMax ? refuse('429') : 'again'
  }
  countDuration(counters, command.code, 0, waitedMs / 1000)
  const done = read.slices ?? read.listing
  if (done) {
    flush(connection)
    send(connection, Buffer.from(done.reply.bytes.buffer, 0, stop))
    stopWhenFull(connection)
  }
  noteRead(thread, command, read.slices?.workedMs ?? took, waitedMs)
  return 'done'
}

function propose(connection: Connection, command: CommandSpec, correlationId: number): void {
  const { thread } = connection
  if (thread.isReplicaSilent) return replyError(connection, correlationId, command.code, '429')
  thread.dispatcher.source = connection.source
  const error = proposeWrite(thread.dispatcher, command)
  if (error !== '') return replyError(connection, correlationId, command.code, error)
  const token = takeToken(thread)
  endProposal(thread.dispatcher.proposals, token)
  const waiting: Waiting = {
    connection,
    command,
    correlationId,
    wantsIndex: wantsIndex(thread.dispatcher, command),
    since: thread.monotonicMs(),
    token,
    taken: undefined,
  }
  thread.waiting.set(token, waiting)
  connection.writes++
  offerToReplica(connection, waiting)
  if (connection.writes >= LIMITS_OF_THREAD.writesPerConnection) connection.splitter.stopped = true
  thread.scheduleBatches()
}

/** Keeps one frame and all later ones until the earlier requests are answered. */
function hold(connection: Connection, frame: Frame, forIndex: boolean): void {
  const { thread } = connection
  const bytes = copyOf(frame)
  const now = thread.monotonicMs()
  const deadline = forIndex ? now + READ_LIMITS.minIndexWaitMs : Number.POSITIVE_INFINITY
  connection.held = { ...frame, bytes, start: 0, end: bytes.length, deadline }
  connection.splitter.stopped = true
  // The answer of a write does not wake this thread if the replica has written its reply.
  if (reclaim(connection)) setImmediate(thread.takeAnswers)
}

/** Continues with held frames when their wait is over. Called after replies and by the thread's timer. */
export function resumeFramesOf(connection: Connection): void {
  if (connection.closing) return
  const { thread, splitter, held } = connection
  if (held) {
    const command = openRequest(thread.dispatcher, held.bytes, held.start, held.end)
    assert(command !== undefined, 'a held frame was checked before')
    if (!mayContinue(connection, held, command)) return
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

/** Whether the connection has as many requests in flight as allowed. */
function isBusy({ writes, pendingReads, deferred }: Connection): boolean {
  return (
    writes >= LIMITS_OF_THREAD.writesPerConnection ||
    pendingReads >= LIMITS_OF_THREAD.readsPerConnection ||
    deferred >= LIMITS_OF_THREAD.deferredPerConnection
  )
}

function mayContinue(
  { thread, pendingReads, deferred, writes }: Connection,
  held: Held,
  command: CommandSpec,
): boolean {
  if (command.access === 'write') return pendingReads === 0 && deferred === 0
  if (writes > 0) return false
  return thread.cells !== undefined || isApplied(thread, command) || thread.monotonicMs() >= held.deadline
}

function goOn(connection: Connection, held: Held, command: CommandSpec): void {
  const { thread } = connection
  const { correlationId } = held
  if (command.access === 'write') propose(connection, command, correlationId)
  else if (thread.cells) readInShard(connection, thread.cells, command, held)
  else if (isApplied(thread, command)) read(connection, command, held, 0)
  else replyError(connection, correlationId, command.code, unknownIndex(thread))
}

/** Nobody was told of an index that a node alone has not applied: it is of another life of the data. */
function unknownIndex({ memory }: ServingThread): string {
  return wireText('unknown_index', { newest: appliedIndex(memory) })
}

function isApplied({ dispatcher }: ServingThread, command: CommandSpec): boolean {
  return hasApplied(dispatcher, minIndexOf(dispatcher, command))
}

function logIn(connection: Connection, command: CommandSpec | undefined): void {
  const { thread } = connection
  const { scan } = thread.dispatcher.values
  const token = command ? scan.bytes.subarray(scan.start[0], scan.start[0] + scan.length[0]) : new Uint8Array(0)
  const principal = command ? thread.authenticate(token) : undefined
  flush(connection)
  if (principal === undefined) {
    count(thread.counters, COUNTER.loginFailures)
    const isAnswered = !thread.noteLoginFailure(connection.socket.remoteAddress ?? '', token)
    if (isAnswered) send(connection, LOGIN_FAILED)
    closeAfterFlush(connection)
    return
  }
  connection.role = principal.role
  connection.token = principal.token
  connection.source = principal.source
  send(connection, LOGIN_OK)
}

function refuseFrame(connection: Connection, correlationId: number, text: string): void {
  count(connection.thread.counters, COUNTER.clientErrors)
  count(connection.thread.counters, COUNTER.protocolErrors)
  reply(connection, (target, at, end) => writeError(target, at, end, correlationId, text))
}

// Confirmations of reads by the replica

/**
 * Answers a read after the replica has confirmed or refused it.
 *
 * @returns its connection, for `sendAnswers`; undefined when no client waits for it any more
 */
export function takeConfirmation(
  thread: ServingThread,
  token: number,
  code: number,
  index: number,
): Connection | undefined {
  const read = thread.pendingReads.get(token)
  assert(read !== undefined, 'the replica replies once to each read')
  thread.pendingReads.delete(token)
  const { connection } = read
  if (connection) answerPending(connection, read, code, index)
  return connection
}

function answerPending(connection: Connection, pending: PendingRead, code: number, index: number): void {
  connection.pendingReads--
  if (connection.closing) return
  const { thread } = connection
  const { command, bytes, correlationId, since } = pending
  const waitedMs = thread.monotonicMs() - since
  countDuration(thread.counters, command.code, 0, waitedMs / 1000)
  const isUnavailable = thread.cells !== undefined && roleOf(thread.cells) === ROLE.unavailable
  const refused = code === REFUSED.unknownIndex ? unknownIndex(thread) : refusedText(code)
  const refusal = code !== 0 ? refused : isUnavailable ? '503' : undefined
  if (refusal !== undefined) return replyError(connection, correlationId, command.code, refusal)
  const applied = appliedIndex(thread.memory)
  assert(applied >= index, 'readers see the index that the replica has applied')
  connection.servedIndex = Math.max(connection.servedIndex, applied)
  const opened = openRequest(thread.dispatcher, bytes, 0, bytes.length)
  assert(opened === command, 'a read that waits was checked before')
  read(connection, command, { bytes, start: 0, end: bytes.length, correlationId, inEnvelope: false }, waitedMs)
  // The next one may be of a later event.
  thread.readMs = 0
}

/** Answers reads that have timed out without the replica. Called by the thread's timer. */
export function expireReads(thread: ServingThread, now: number): void {
  const touched = new Set<Connection>()
  for (const read of thread.pendingReads.values()) {
    const { connection, isLinearizable, since } = read
    const waitMs = isLinearizable ? READ_LIMITS.linearizableWaitMs : READ_LIMITS.minIndexWaitMs
    if (!connection || now - since < waitMs) continue
    read.connection = undefined
    answerPending(connection, read, isLinearizable ? REFUSED.noLeader : REFUSED.notCaughtUp, 0)
    touched.add(connection)
  }
  for (const connection of touched) sendAnswers(connection)
}

/** Checks time limits. Called by the thread's timer. */
export function checkTimes(connection: Connection, now: number, userTimeoutMs: number): void {
  const { socket, thread } = connection
  if (connection.halfSince > 0 && now - connection.halfSince > LIMITS_OF_THREAD.halfFrameMs) {
    count(thread.counters, COUNTER.timeouts)
    socket.destroy()
    return
  }
  if (connection.held && now >= connection.held.deadline) resumeFramesOf(connection)
  if (connection.offered?.taken) reclaim(connection)
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

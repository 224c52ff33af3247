/**
 * What a connection sends (docs/design/search.md#replies): the replies of a read event in one slab, those of writes and
 * of reads by the replica in small memory of its own.
 */

// An import, because the global is an accessor, which is looked up anew at each call.
import { Buffer } from 'node:buffer'
import { assert } from '@vacancy/shared'
import { descriptorOf } from '@vacancy/shared/descriptors'
import { writeError } from '../protocol/reply.ts'
import { outcomeText } from '../store/command.ts'
import { endOffer, isBeingWritten, OFFERS_MAX, offerReply, takenOffer } from '../threads/direct-replies.ts'
import { FATE_MS, REFUSED, refusedText, UNANSWERED_MS } from '../threads/writes.ts'
import type { Connection, ServingThread, StayRead, Waiting, WriteOutcome, WriteReply } from './connection-state.ts'
import { COUNTER, count, countDuration, countError } from './counters.ts'
import { answerFrame, answerWrite, NO_ROOM, replyForm } from './dispatch.ts'
import { giveSlab, takeSlab } from './slabs.ts'

const SMALL_BYTES = 4096

const HEAP_REPLY_BYTES = 256 * 1024

export function hasMuchQueued({ socket, thread }: Connection): boolean {
  return socket.writableLength > thread.sendBufferBytes
}

export function replyError(connection: Connection, correlationId: number, command: number, text: string): void {
  countError(connection.thread.counters, command, text)
  reply(connection, (target, at, end) => writeError(target, at, end, correlationId, text))
}

/**
 * Appends a reply to those of this read event; in a new slab, or in heap memory, when there is no room.
 *
 * @returns the result of `write`; below NO_ROOM no reply was written, for a reason of its own
 */
export function reply(connection: Connection, write: WriteReply): number {
  const { thread } = connection
  const { u8 } = thread.memory
  if (connection.slab === 0) openSlab(connection)
  if (connection.slab !== 0) {
    const stop = write(u8, connection.slabAt, connection.slab + thread.slabs.bytes)
    if (stop < NO_ROOM) return stop
    if (stop !== NO_ROOM) {
      connection.slabAt = stop
      return stop
    }
    if (connection.slabAt > connection.slab) {
      flush(connection)
      stopWhenFull(connection)
      return reply(connection, write)
    }
  }
  return replyFromHeap(connection, write)
}

/**
 * For replies that no slab holds: long lists, and all replies while slow readers hold every slab. Searches write into
 * the store's memory only, so they use the thread's spare slab and are copied out.
 */
function replyFromHeap(connection: Connection, write: WriteReply): number {
  const { thread } = connection
  flush(connection)
  const { spare } = thread.slabs
  const stop = write(thread.memory.u8, spare, spare + thread.slabs.bytes)
  if (stop < NO_ROOM) return stop
  if (stop !== NO_ROOM) {
    count(thread.counters, COUNTER.slabsMissing)
    send(connection, Buffer.from(thread.memory.u8.slice(spare, stop).buffer))
    stopWhenFull(connection)
    return stop
  }
  for (let bytes = Math.max(HEAP_REPLY_BYTES, thread.slabs.bytes * 2); ; bytes *= 2) {
    const heap = Buffer.allocUnsafeSlow(bytes)
    const end = write(heap, 0, bytes)
    if (end < NO_ROOM) return end
    if (end === NO_ROOM) continue
    send(connection, heap.subarray(0, end))
    stopWhenFull(connection)
    return end
  }
}

/**
 * One read event may bring thousands of requests: their replies must not all queue up for a client that does not read.
 */
export function stopWhenFull(connection: Connection): void {
  if (hasMuchQueued(connection)) connection.splitter.stopped = true
}

function openSlab(connection: Connection): void {
  connection.slab = takeSlab(connection.thread.slabs)
  connection.slabAt = connection.slab
}

export function releaseSlab(connection: Connection): void {
  if (connection.slab !== 0) giveSlab(connection.thread.slabs, connection.slab)
  connection.slab = 0
}

/** Sends the content of the slab with one write. */
export function flush(connection: Connection): void {
  const { thread, socket, slab } = connection
  if (slab === 0) return
  const bytes = connection.slabAt - slab
  connection.slab = 0
  if (bytes === 0 || socket.destroyed) {
    giveSlab(thread.slabs, slab)
    return
  }
  reclaim(connection)
  count(thread.counters, COUNTER.bytesSent, bytes)
  const view = Buffer.from(thread.memory.buffer as unknown as ArrayBuffer, slab, bytes)
  let handed = false
  socket.write(view, () => {
    if (handed) giveSlab(thread.slabs, slab)
    connection.onSent()
  })
  // The queue is empty: the kernel took all bytes, and the memory is free at once.
  if (socket.writableLength === 0) giveSlab(thread.slabs, slab)
  else handed = true
}

export function send(connection: Connection, bytes: Uint8Array): void {
  if (connection.socket.destroyed) return
  reclaim(connection)
  count(connection.thread.counters, COUNTER.bytesSent, bytes.length)
  connection.socket.write(bytes, connection.onSent)
}

export function closeAfterFlush(connection: Connection): void {
  flush(connection)
  connection.closing = true
  connection.socket.end()
  connection.socket.destroySoon()
}

/** Offers the reply to the replica, if the client waits for nothing else. */
export function offerToReplica(connection: Connection, waiting: Waiting): void {
  const { thread, socket, offered } = connection
  const { direct } = thread
  if (!direct) return
  if (offered && !isBeingWritten(direct, offered.token)) reclaim(connection)
  const isAlone = connection.writes === 1 && connection.smallAt === 0 && connection.slab === 0 && !connection.offered
  if (!isAlone || socket.writableLength > 0 || thread.waiting.size > OFFERS_MAX) return
  const { command, correlationId, token } = waiting
  const { writer } = thread.dispatcher.searcher
  const form = replyForm(writer, command, correlationId, waiting.wantsIndex)
  if (offerReply(direct, token, descriptorOf(socket), form)) connection.offered = waiting
}

/** The replica may have written the reply already. It may still be doing so: nothing here waits for that. */
function takeWritten({ direct }: ServingThread, waiting: Waiting): void {
  const { connection, token } = waiting
  if (!direct || !connection || connection.offered !== waiting) return
  if (isBeingWritten(direct, token)) waiting.taken = takenOffer(direct, token)
  else reclaim(connection)
}

/**
 * Ends the offer of a reply to the replica: the thread itself writes to the socket now, or closes it.
 *
 * @returns whether the replica has written it. Its answer is there to be taken
 */
export function reclaim(connection: Connection): boolean {
  const { offered, socket, thread } = connection
  if (!offered || !thread.direct) return false
  connection.offered = undefined
  const ended = endOffer(thread.direct, offered.token)
  if (!ended) return false
  offered.taken ??= ended
  if (ended.rest.length > 0 && socket.writable) socket.write(ended.rest)
  return true
}

/** Appends the reply of a write to others for the same client; `sendAnswers` sends them. */
export function takeAnswer(thread: ServingThread, outcome: WriteOutcome): Connection | undefined {
  const waiting = thread.waiting.get(outcome.token)
  assert(waiting !== undefined, 'every accepted write gets exactly one outcome')
  thread.waiting.delete(outcome.token)
  takeWritten(thread, waiting)
  return waiting.connection && answerWaiting(waiting.connection, waiting, outcome)
}

function answerWaiting(
  connection: Connection,
  { command, correlationId, since, wantsIndex, taken }: Waiting,
  { code, value, index, detail, frame }: Omit<WriteOutcome, 'token'>,
): Connection | undefined {
  const { thread } = connection
  countDuration(thread.counters, command.code, 0, ((taken?.atMs ?? thread.monotonicMs()) - since) / 1000)
  const text = code === 0 ? '' : (refusedText(code) ?? outcomeText(code, value, detail))
  if (text !== '') countError(thread.counters, command.code, text)
  if (connection.closing) return undefined
  if (code === 0 && index > connection.servedIndex) connection.servedIndex = index
  connection.writes--
  if (taken) {
    count(thread.counters, COUNTER.bytesSent, taken.bytes)
    return connection
  }
  makeRoom(connection, frame?.length ?? 0)
  const { small, smallAt } = connection
  const writer = thread.dispatcher.searcher.writer
  const shown = wantsIndex ? index : 0
  let end = NO_ROOM
  if (text !== '') end = writeError(small, smallAt, small.length, correlationId, text)
  else if (frame) end = answerFrame(frame, correlationId, shown, small, smallAt, small.length)
  else end = answerWrite(writer, { command, correlationId, value, index: shown }, small, smallAt, small.length)
  assert(end !== NO_ROOM, 'the answer of a write is short')
  connection.smallAt = end
  return connection
}

/** Room for a short answer, and for a frame of so many bytes. */
function makeRoom(connection: Connection, frameBytes: number): void {
  const needed = SMALL_BYTES / 2 + frameBytes
  if (connection.small.length - connection.smallAt >= needed) return
  const grown = Buffer.allocUnsafe(Math.max(SMALL_BYTES, connection.small.length * 2, connection.smallAt + needed))
  connection.small.copy(grown, 0, 0, connection.smallAt)
  connection.small = grown
}

/** Answers a read of stays. @returns its connection, for `sendAnswers` */
export function takeStays(
  thread: ServingThread,
  token: number,
  code: number,
  index: number,
  frame: Uint8Array | undefined,
): Connection | undefined {
  const read = thread.stayReads.get(token)
  assert(read !== undefined, 'the replica replies once to each read')
  thread.stayReads.delete(token)
  return read.connection && answerStays(read.connection, read, code, index, frame)
}

function answerStays(
  connection: Connection,
  { command, correlationId, since }: StayRead,
  code: number,
  index: number,
  frame: Uint8Array | undefined,
): Connection | undefined {
  const { thread } = connection
  connection.pendingReads--
  countDuration(thread.counters, command.code, 1, (thread.monotonicMs() - since) / 1000)
  const text = code === 0 ? '' : (refusedText(code) ?? outcomeText(code, 0))
  if (text !== '') countError(thread.counters, command.code, text)
  if (connection.closing) return undefined
  connection.servedIndex = Math.max(connection.servedIndex, index)
  makeRoom(connection, frame?.length ?? 0)
  const { small, smallAt } = connection
  const end =
    frame && text === ''
      ? answerFrame(frame, correlationId, 0, small, smallAt, small.length)
      : writeError(small, smallAt, small.length, correlationId, text)
  assert(end !== NO_ROOM, 'there is room for the answer')
  connection.smallAt = end
  return connection
}

/** Behind the deadline of the replica itself, which keeps it unless its thread waits for the disk (wal/inline-log.ts). */
const EXPIRE_MS = FATE_MS + 100

/** Answers writes and reads of stays that the replica has left unanswered. Called by the thread's timer. */
export function expireUnanswered(thread: ServingThread, now: number): void {
  const { waiting, stayReads } = thread
  const oldest = Math.min(sinceOf(waiting), sinceOf(stayReads))
  thread.isReplicaSilent = now - oldest >= UNANSWERED_MS
  const touched = new Set<Connection>()
  const outcome = { code: REFUSED.outcomeUnknown, value: 0, index: 0, detail: '', frame: undefined }
  for (const [write, connection] of expired(waiting, now)) {
    if (connection.offered === write) reclaim(connection)
    if (answerWaiting(connection, write, write.taken ? { ...outcome, code: 0 } : outcome)) touched.add(connection)
  }
  for (const [read, connection] of expired(stayReads, now))
    if (answerStays(connection, read, REFUSED.notServing, 0, undefined)) touched.add(connection)
  for (const connection of touched) sendAnswers(connection)
}

type Unanswered = { connection: Connection | undefined; readonly since: number }

/** When the oldest one came: they are in this order. */
function sinceOf(requests: ReadonlyMap<number, Unanswered>): number {
  for (const { since } of requests.values()) return since
  return Number.POSITIVE_INFINITY
}

/** Takes those that have waited for too long from their connections. What the replica still answers is dropped. */
function* expired<Request extends Unanswered>(
  requests: ReadonlyMap<number, Request>,
  now: number,
): Generator<[Request, Connection]> {
  for (const request of requests.values()) {
    if (now - request.since < EXPIRE_MS) return
    const { connection } = request
    request.connection = undefined
    if (connection) yield [request, connection]
  }
}

/** Sends collected replies and lets held frames continue. */
export function sendAnswers(connection: Connection): void {
  flush(connection)
  if (connection.smallAt > 0) send(connection, connection.small.subarray(0, connection.smallAt))
  // The socket may still hold the sent bytes: the next replies get their own memory.
  connection.small = connection.small.subarray(connection.smallAt)
  connection.smallAt = 0
  if (connection.held || connection.splitter.stopped) connection.resume()
}

/**
 * One sender of a load: its share of the connections, its part of the schedule, what it saw.
 *
 * It shares the cores with what it measures, so a request must cost little: frames are ready buffers in which only
 * the correlation id is written, all sockets read into one buffer, a reply is ten bytes looked at and a number in a
 * table. Nothing is allocated for a reply.
 *
 *   intended[id & SLOT_MASK]   the moment request `id` was to be sent, in milliseconds; 0 = nothing under way
 *   streamOf[id & SLOT_MASK]   the stream it belongs to
 */
import { connect, type Socket } from 'node:net'
import { createFrameScanner, errorText, type FrameScanner, type OnFrame, scanFrames } from './frame-scanner.ts'
import { createHistogram, record } from './histogram.ts'
import { intendedMs, type Pacing } from './schedule.ts'

/** What one sender does for one stream of requests. */
export type StreamOrder = {
  port: number
  pacing: Pacing
  /** This sender's share of them. */
  connections: number
  /** Most requests of a schedule that go out in one write; a closed loop answers a whole read in one write. */
  batch: number
  /** Replies `429` count as `refused`, not as errors. */
  takesRefusals: boolean
  /** Request frames of the stream, one behind the other, and where each ends. */
  frames: Uint8Array
  ends: Uint32Array
  /** Bytes of the reply that each frame must get; 0 = unknown. */
  replyBytes: Uint32Array
}

export type Order = {
  host: string
  sender: number
  senders: number
  warmupMs: number
  runMs: number
  /** How long replies may take after the last request. */
  drainMs: number
  streams: StreamOrder[]
}

export type StreamReport = ReturnType<typeof createStreamReport>

export type Report = { streams: StreamReport[]; cpuSeconds: number; seconds: number; broken: string }

/** Requests a sender may have under way: two seconds' worth at 130,000 a second. */
const SLOTS = 1 << 18
const SLOT_MASK = SLOTS - 1
const READ_BYTES = 256 * 1024
const SLAB_BYTES = 256 * 1024
/** The reply of a node that admits no more requests at the moment. */
const REFUSED = '429'
/** Connections opened at a time: more would overrun the accept queue of a listener. */
const CONNECTING_AT_ONCE = 64

export type Sender = ReturnType<typeof unconnected>

function unconnected(order: Order) {
  return {
    order,
    streams: order.streams.map((stream, index) => createStream(stream, index, order.sender)),
    intended: new Float64Array(SLOTS),
    streamOf: new Uint8Array(SLOTS),
    nextId: 0,
    underWay: 0,
    slab: Buffer.allocUnsafeSlow(SLAB_BYTES) as Buffer,
    startedAt: Number.POSITIVE_INFINITY,
    /** Requests intended from here on are measured. */
    measureFrom: Number.POSITIVE_INFINITY,
    stopAt: Number.POSITIVE_INFINITY,
    /** When the present read began, and how many replies it held. */
    readAt: 0,
    repliesInRead: 0,
    /** Why continuing makes no sense; '' while it does. */
    broken: '',
  }
}

type Stream = ReturnType<typeof createStream>

type Connection = { socket: Socket; scanner: FrameScanner; stream: Stream; onFrame: OnFrame }

/** Opens all connections. Rejects when one cannot be opened. */
export async function createSender(order: Order): Promise<Sender> {
  const sender = unconnected(order)
  const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES)
  for (const stream of sender.streams) {
    while (stream.connections.length < stream.order.connections) {
      const count = Math.min(CONNECTING_AT_ONCE, stream.order.connections - stream.connections.length)
      const opened = Array.from({ length: count }, () => openConnection(sender, stream, readBuffer))
      stream.connections.push(...(await Promise.all(opened)))
    }
  }
  return sender
}

/** Sends from `startedAt` (of performance.now) until the time is over, then waits for what is under way. */
export async function runSender(sender: Sender, startedAt: number): Promise<Report> {
  const { order } = sender
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, startedAt - performance.now())))
  sender.startedAt = startedAt
  sender.measureFrom = startedAt + order.warmupMs
  sender.stopAt = sender.measureFrom + order.runMs
  const cpuBefore = process.cpuUsage()
  const begun = performance.now()
  startClosedLoops(sender)
  await sendAndDrain(sender)
  const cpu = process.cpuUsage(cpuBefore)
  const now = performance.now()
  countUnanswered(sender, now)
  for (const stream of sender.streams) {
    stream.report.unsent = unsentOf(sender, stream)
    for (const { socket } of stream.connections) socket.removeAllListeners('close').destroy()
  }
  return {
    streams: sender.streams.map(({ report }) => report),
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
    seconds: (now - begun) / 1000,
    broken: sender.broken,
  }
}

export function createStreamReport() {
  return {
    sent: 0,
    answered: 0,
    /** From the intended moment to the last byte of the reply, for requests intended after the warm-up. */
    latency: createHistogram(),
    /** From the intended moment to the write. */
    late: createHistogram(),
    /** Sent without a reply; counted in `latency` with the time they waited. */
    unanswered: 0,
    /** Due and never sent. */
    unsent: 0,
    /** Refused with `429` before anything was done, where the stream expects that. In no other figure but `answered`. */
    refused: 0,
    /** Texts of ERROR replies. */
    errors: {} as Record<string, number>,
    bytesReceived: 0,
    bytesExpected: 0,
  }
}

function createStream(order: StreamOrder, index: number, sender: number) {
  // Copies of their own: a piece of one big buffer would make a socket hold on to all of it.
  const frames = Array.from(order.ends, (end, i) => Buffer.from(order.frames.subarray(order.ends[i - 1] ?? 0, end)))
  return {
    index,
    order,
    connections: [] as Connection[],
    /** Frames as they are written; one is replaced by a copy when a socket has not taken it at once. */
    frames,
    // Senders begin at different frames, so that the same search does not arrive twice at once.
    nextFrame: (sender * 7919) % frames.length,
    nextConnection: 0,
    /** Requests of the schedule that were sent. */
    scheduled: 0,
    report: createStreamReport(),
  }
}

function openConnection(sender: Sender, stream: Stream, buffer: Buffer): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const { host } = sender.order
    const { port } = stream.order
    const callback = (bytes: number) => {
      onRead(sender, connection, buffer, bytes)
      return true
    }
    const socket = connect({ host, port, noDelay: true, onread: { buffer, callback } })
    const scanner = createFrameScanner()
    const onFrame = (correlationId: number, isError: boolean) => onReply(sender, connection, correlationId, isError)
    const connection: Connection = { socket, scanner, stream, onFrame }
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      socket.on('error', (error) => breakOff(sender, error.message))
      socket.on('close', () => breakOff(sender, 'the server closed a connection'))
      resolve(connection)
    })
  })
}

/** Only the first error is reported. */
function breakOff(sender: Sender, reason: string): void {
  sender.broken ||= reason
}

function onRead(sender: Sender, connection: Connection, buffer: Buffer, bytes: number): void {
  const { scanner, stream } = connection
  stream.report.bytesReceived += bytes
  // The clock is read once a read: what came in one read came at one time.
  sender.readAt = performance.now()
  sender.repliesInRead = 0
  if (!scanFrames(scanner, buffer, bytes, connection.onFrame)) breakOff(sender, 'the server sent an invalid frame')
  if (stream.order.pacing.kind === 'closed' && sender.repliesInRead > 0 && sender.readAt < sender.stopAt) {
    sendBatch(sender, connection, sender.repliesInRead)
  }
}

function onReply(sender: Sender, { scanner, stream }: Connection, correlationId: number, isError: boolean): void {
  const { report } = stream
  const slot = correlationId & SLOT_MASK
  const intended = sender.intended[slot] ?? 0
  if (intended === 0) breakOff(sender, `a reply to request ${correlationId}, which is not under way`)
  sender.intended[slot] = 0
  sender.underWay -= 1
  sender.repliesInRead += 1
  report.answered += 1
  const text = isError ? errorText(scanner) : ''
  if (text === REFUSED && stream.order.takesRefusals) {
    report.refused += 1
    return
  }
  if (intended >= sender.measureFrom && intended < sender.stopAt) record(report.latency, sender.readAt - intended)
  if (!isError) return
  report.errors[text] = (report.errors[text] ?? 0) + 1
}

function startClosedLoops(sender: Sender): void {
  for (const { order, connections } of sender.streams) {
    if (order.pacing.kind !== 'closed') continue
    for (const connection of connections) sendBatch(sender, connection, order.pacing.pipelining)
  }
}

function sendAndDrain(sender: Sender): Promise<void> {
  const giveUpAt = sender.stopAt + sender.order.drainMs
  return new Promise((resolve) => {
    const turn = () => {
      const now = performance.now()
      const dueAt = now < giveUpAt ? sendDue(sender, now) : Number.POSITIVE_INFINITY
      const isSent = now >= sender.stopAt && dueAt >= sender.stopAt
      if (sender.broken || now >= giveUpAt || (isSent && sender.underWay === 0)) resolve()
      else waitUntil(Math.max(dueAt, now), turn)
    }
    turn()
  })
}

/** Sends what is due by now; answers when the next request will be. */
function sendDue(sender: Sender, now: number): number {
  let next = Number.POSITIVE_INFINITY
  for (const stream of sender.streams) {
    for (let count = dueCount(sender, stream, now); count > 0; count = dueCount(sender, stream, now)) {
      const connection = stream.connections[stream.nextConnection] as Connection
      stream.nextConnection = (stream.nextConnection + 1) % stream.connections.length
      sendBatch(sender, connection, count)
    }
    next = Math.min(next, intendedAt(sender, stream, stream.scheduled))
  }
  return next
}

function dueCount(sender: Sender, stream: Stream, now: number): number {
  let count = 0
  while (count < stream.order.batch) {
    const intended = intendedAt(sender, stream, stream.scheduled + count)
    if (intended > now || intended >= sender.stopAt) break
    count += 1
  }
  return count
}

/** A closed loop has no schedule. */
function intendedAt({ order, startedAt }: Sender, stream: Stream, index: number): number {
  const { pacing } = stream.order
  return pacing.kind === 'closed' ? Number.POSITIVE_INFINITY : startedAt + intendedMs(pacing, index, order)
}

/** Sends the next `count` requests in one write. */
function sendBatch(sender: Sender, { socket, stream }: Connection, count: number): void {
  const now = performance.now()
  if (count === 1) {
    const index = prepareFrame(sender, stream, now)
    const frame = stream.frames[index] as Buffer
    socket.write(frame)
    if (socket.writableLength > 0) stream.frames[index] = Buffer.from(frame)
    return
  }
  let end = 0
  for (let i = 0; i < count; i++) {
    const frame = stream.frames[prepareFrame(sender, stream, now)] as Buffer
    if (end + frame.length > SLAB_BYTES) {
      writeSlab(sender, socket, end)
      end = 0
    }
    sender.slab.set(frame, end)
    end += frame.length
  }
  writeSlab(sender, socket, end)
}

/** Bytes that the kernel has not taken stay the socket's: the next batch goes into a new slab. */
function writeSlab(sender: Sender, socket: Socket, end: number): void {
  socket.write(sender.slab.subarray(0, end))
  if (socket.writableLength > 0) sender.slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
}

/** Gives the next frame its correlation id and its intended moment; answers which frame it is. */
function prepareFrame(sender: Sender, stream: Stream, now: number): number {
  const { order, report } = stream
  // A closed loop intends to send whenever it can.
  const intended = order.pacing.kind === 'closed' ? now : intendedAt(sender, stream, stream.scheduled)
  stream.scheduled += 1
  const index = stream.nextFrame
  stream.nextFrame = index + 1 < stream.frames.length ? index + 1 : 0
  const id = sender.nextId
  sender.nextId = (id + 1) >>> 0
  const slot = id & SLOT_MASK
  if (sender.intended[slot] !== 0) breakOff(sender, `more than ${SLOTS} requests under way`)
  sender.intended[slot] = intended
  sender.streamOf[slot] = stream.index
  sender.underWay += 1
  report.sent += 1
  report.bytesExpected += order.replyBytes[index] ?? 0
  if (intended >= sender.measureFrom) record(report.late, now - intended)
  ;(stream.frames[index] as Buffer).writeUInt32LE(id, 1)
  return index
}

/** A request without a reply has waited until now: leaving it out would flatter the node that lost it. */
function countUnanswered(sender: Sender, now: number): void {
  for (let slot = 0; slot < SLOTS; slot++) {
    const intended = sender.intended[slot] ?? 0
    if (intended === 0) continue
    const { report } = sender.streams[sender.streamOf[slot] ?? 0] as Stream
    report.unanswered += 1
    if (intended >= sender.measureFrom && intended < sender.stopAt) record(report.latency, now - intended)
  }
}

function unsentOf(sender: Sender, stream: Stream): number {
  let unsent = 0
  while (intendedAt(sender, stream, stream.scheduled + unsent) < sender.stopAt) unsent += 1
  return unsent
}

/** Waits longer than this are left to a timer. */
const TIMER_MS_MIN = 4
/** How often a sender that has nothing due looks whether the time is over. */
const LOOK_UP_MS = 20
const NAP_MS = 0.01
const NAP = new Int32Array(new SharedArrayBuffer(4))

/**
 * Comes back when something is due. Timers count whole milliseconds, too coarse for a schedule of some 50 µs, and a
 * loop that never sleeps takes a core away from the node (p50 of an echo 0.06 ms, but p99 8.4 instead of 1.4 ms). So
 * the last milliseconds are spent in naps, between which the event loop looks for replies.
 */
function waitUntil(dueAt: number, turn: () => void): void {
  const ms = dueAt - performance.now()
  if (ms > TIMER_MS_MIN) {
    setTimeout(turn, Math.min(ms - TIMER_MS_MIN / 2, LOOK_UP_MS))
    return
  }
  if (ms > 0) Atomics.wait(NAP, 0, 0, Math.min(ms, NAP_MS))
  setImmediate(turn)
}

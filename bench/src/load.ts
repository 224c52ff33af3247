/**
 * Puts a load on a node from several processes and merges their results.
 *
 * The generator is written in the language of the node, so a request costs it about as much as it costs the server
 * (docs/design/testing.md#load). It therefore reports its processor use, and a run in which it missed its own
 * schedule is void.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { failure } from './failure.ts'
import { merge } from './histogram.ts'
import type { FromSender, ToSender } from './load-process.ts'
import { type Pacing, type Place, shareOf, voidReason } from './schedule.ts'
import { createStreamReport, type Order, type Report, type StreamOrder, type StreamReport } from './sender.ts'

/** Requests of one kind, on connections of their own. */
export type Stream = {
  name: string
  pacing: Pacing
  /** Over all processes. */
  connections: number
  /** Request frames, whole; correlation ids are set by the senders. */
  frames: readonly Uint8Array[]
  /** Bytes of the reply that each frame must get, where that is known. */
  replyBytes?: readonly number[]
  /** Another port than the load's, for a stream that goes to a server of its own. */
  port?: number
  /** Most requests in one write (default 1: every request comes from a client of its own). */
  batch?: number
  /** A node may refuse requests with `429`: they are counted apart. Else they are errors. */
  takesRefusals?: boolean
}

export type Load = {
  host: string
  port: number
  processes: number
  warmupMs: number
  runMs: number
  /** How long replies may take after the last request (default `DRAIN_MS`). */
  drainMs?: number
  streams: readonly Stream[]
}

type StreamResult = StreamReport & {
  name: string
  /** Replies to requests of the measured time, a second of it. */
  perSecond: number
}

export type LoadResult = {
  streams: StreamResult[]
  /** Why the figures do not count; '' when they do: the generator did not keep its schedule. */
  void: string
  /** What the server did that made a sender stop; '' when nothing. */
  broken: string
  /** Cores the generator kept busy, on average. */
  generatorCores: number
}

const DRAIN_MS = 10_000
/** Between "all are connected" and the first request, so that no sender misses the start. */
const START_IN_MS = 200

/** Rejects when a connection cannot be opened or a sender dies. Errors of the server are in the result. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const senders = Array.from({ length: load.processes }, (_, sender) => startSender(load, sender))
  try {
    await Promise.all(senders.map(({ ready }) => ready))
    const start: ToSender = { kind: 'start', atEpochMs: Date.now() + START_IN_MS }
    for (const { child } of senders) child.send(start)
    return sumUp(load, await Promise.all(senders.map(({ report }) => report)))
  } finally {
    for (const { child } of senders) child.kill()
  }
}

function startSender(load: Load, sender: number) {
  const child = fork(new URL('./load-process.ts', import.meta.url), { serialization: 'advanced' })
  const ready = nextMessage(child, 'ready')
  const report = nextMessage(child, 'report').then((message) => message.report)
  // The awaited promise reports a failure; the other one must not end this process.
  for (const promise of [ready, report]) promise.catch(() => {})
  const place = { sender, senders: load.processes }
  const order: Order = {
    ...place,
    host: load.host,
    warmupMs: load.warmupMs,
    runMs: load.runMs,
    drainMs: load.drainMs ?? DRAIN_MS,
    streams: load.streams.map((stream) => orderFor(stream, load.port, place)),
  }
  const message: ToSender = { kind: 'order', order }
  child.send(message)
  return { child, ready, report }
}

function nextMessage<K extends FromSender['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<FromSender, { kind: K }>> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: FromSender) => {
      if (message.kind === kind) resolve(message as Extract<FromSender, { kind: K }>)
      if (message.kind === 'failed') reject(failure(`load: ${message.reason}`))
    })
    child.once('error', reject)
    // Messages sent before the end can arrive after `exit`, but never after `disconnect`.
    void Promise.all([once(child, 'exit'), once(child, 'disconnect')]).then(([[code]]) =>
      reject(failure(`load: a sender ended with exit code ${code}`)),
    )
  })
}

function orderFor(stream: Stream, port: number, place: Place): StreamOrder {
  const ends = new Uint32Array(stream.frames.length)
  let bytes = 0
  for (const [i, frame] of stream.frames.entries()) {
    bytes += frame.length
    ends[i] = bytes
  }
  const frames = new Uint8Array(bytes)
  for (const [i, frame] of stream.frames.entries()) frames.set(frame, (ends[i] ?? 0) - frame.length)
  return {
    port: stream.port ?? port,
    pacing: stream.pacing,
    connections: shareOf(stream.connections, place),
    batch: stream.batch ?? 1,
    takesRefusals: stream.takesRefusals ?? false,
    frames,
    ends,
    replyBytes: Uint32Array.from(stream.replyBytes ?? stream.frames.map(() => 0)),
  }
}

function sumUp(load: Load, reports: readonly Report[]): LoadResult {
  const streams = load.streams.map(({ name }, i): StreamResult => {
    const sum = sumOf(reports.flatMap(({ streams }) => streams[i] ?? []))
    return { ...sum, name, perSecond: (sum.latency.count * 1000) / load.runMs }
  })
  const late = load.streams
    .map(({ pacing }, i) => voidReason(pacing, streams[i] ?? createStreamReport()))
    .find((reason) => reason !== '')
  return {
    streams,
    void: late ?? '',
    broken: reports.map(({ broken }) => broken).find((reason) => reason !== '') ?? '',
    generatorCores: reports.reduce((sum, { cpuSeconds, seconds }) => sum + cpuSeconds / seconds, 0),
  }
}

function sumOf(reports: readonly StreamReport[]): StreamReport {
  const sum = createStreamReport()
  for (const report of reports) {
    for (const key of [
      'sent',
      'answered',
      'unanswered',
      'unsent',
      'refused',
      'bytesReceived',
      'bytesExpected',
    ] as const) {
      sum[key] += report[key]
    }
    merge(sum.latency, report.latency)
    merge(sum.late, report.late)
    for (const [text, count] of Object.entries(report.errors)) sum.errors[text] = (sum.errors[text] ?? 0) + count
  }
  return sum
}

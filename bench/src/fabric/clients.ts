/**
 * Clients of a hop that is measured: `node clients.ts '{"port":…}'`. Each connection has one request in flight; with a
 * rate, requests are sent by the clock instead, and latency counts from the time at which a request was due.
 */
import { connect, type Socket } from 'node:net'
import { createFrameSplitter, encodeRequest, type FrameSink, splitFrames } from '@vacancy/shared/wire'
import { quantile } from '../pauses.ts'
import { SEGMENT } from './names.ts'

export type LoadPlan = {
  readonly port: number
  readonly connections: number
  readonly requests: number
  /** Requests a second of all connections together; 0 = as fast as replies come. */
  readonly rate: number
}

export type LoadResult = {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly replyBytes: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

const plan = JSON.parse(process.argv[2] ?? '{}') as LoadPlan

const REQUEST = Buffer.from(
  encodeRequest({
    command: 'SEARCHAVAIL',
    correlationId: 0,
    fields: {
      segment: SEGMENT,
      roomType: 'double',
      dates: ['2026-12-01', '2026-12-02', '2026-12-03'],
      finalPrice: 120,
    },
    envelope: { segment: SEGMENT, write: false },
  }),
)
/** Of the correlation id in the envelope. */
const ID_AT = REQUEST.indexOf(0xff, 6) + 1

type Client = { readonly socket: Socket; readonly due: Map<number, number>; nextId: number }

let left = plan.requests
let toCome = plan.requests
let replyBytes = 0
const latencies: number[] = []

function send(client: Client, dueMs: number): void {
  if (left === 0) return
  left--
  const id = client.nextId++
  const frame = Buffer.from(REQUEST)
  frame.writeUInt32LE(id, ID_AT)
  client.due.set(id, dueMs)
  client.socket.write(frame)
}

function open(): Promise<Client> {
  const socket = connect({ host: '127.0.0.1', port: plan.port, noDelay: true })
  const client: Client = { socket, due: new Map(), nextId: 1 }
  const splitter = createFrameSplitter({ payloadBytesMax: 1 << 24, skipBytesMax: 1 << 24 })
  const sink: FrameSink = {
    frame(_bytes, start, end, id) {
      const due = client.due.get(id)
      if (due === undefined || end - start < 100) throw new Error(`a wrong reply of ${end - start} bytes to ${id}`)
      client.due.delete(id)
      const now = performance.now()
      latencies.push(now - due)
      replyBytes += end - start
      if (--toCome === 0) finish()
      else if (plan.rate === 0) send(client, now)
    },
    refuse: (_id, text) => {
      throw new Error(text)
    },
    fatal: (reason) => {
      throw new Error(reason)
    },
  }
  socket.on('data', (chunk: Buffer) => splitFrames(splitter, chunk, sink))
  socket.on('error', (error) => {
    throw error
  })
  socket.on('close', () => {
    if (toCome > 0) throw new Error('the connection was closed')
  })
  return new Promise((resolve) => socket.once('connect', () => resolve(client)))
}

const clients = await Promise.all(Array.from({ length: plan.connections }, open))
const cpu = process.cpuUsage()
const begun = performance.now()

function finish(): void {
  const { user, system } = process.cpuUsage(cpu)
  const seconds = (performance.now() - begun) / 1000
  const result: LoadResult = {
    seconds,
    cpuSeconds: (user + system) / 1e6,
    replyBytes,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
  }
  process.stdout.write(`${JSON.stringify(result)}\n`)
  process.exit(0)
}

if (plan.rate === 0) for (const client of clients) send(client, performance.now())
else {
  let sent = 0
  const timer = setInterval(() => {
    const dueCount = Math.min(plan.requests, Math.floor(((performance.now() - begun) / 1000) * plan.rate))
    for (; sent < dueCount; sent++) {
      send(clients[sent % clients.length] as Client, begun + (sent / plan.rate) * 1000)
    }
    if (sent === plan.requests) clearInterval(timer)
  }, 1)
}

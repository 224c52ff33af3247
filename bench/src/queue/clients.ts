/**
 * Producers and consumers of the queue benchmark, a process of their own. Requests are written by hand onto sockets, so
 * that the client takes as little of the shared cores as it can. Prints one line of JSON.
 */
import { connect, type Socket } from 'node:net'
import { assert } from '@vacancy/shared'
import { WebSocket } from 'ws'

/** Where clients connect. */
export type Place = {
  readonly host: string
  readonly port: number
  readonly token: string
  readonly topics: readonly string[]
}
export type ClientPlan = Place &
  (
    | {
        readonly kind: 'submit'
        readonly jobs: number
        readonly batch: number
        readonly connections: number
        /** A new connection for each request. */
        readonly isNew: boolean
        readonly payloadBytes: number
        /** Makes ids of several runs differ. */
        readonly run: string
        /** Repeats a request that was refused, with the same ids. */
        readonly repeats?: boolean
      }
    | { readonly kind: 'deliver'; readonly jobs: number; readonly consumers: number; readonly prefetch: number }
    | { readonly kind: 'latency'; readonly jobs: number; readonly payloadBytes: number; readonly run: string }
  )

/** Times in milliseconds, processor time of this process in seconds. */
export type ClientResult = {
  readonly ms: number
  readonly cpuSeconds: number
  readonly statuses: { readonly [status: string]: number }
  /** Of each job, ascending; of `latency` alone. */
  readonly latencies: readonly number[]
}

/** A JSON payload of so many bytes, as base64. */
export function payloadOf(bytes: number): string {
  return Buffer.from(JSON.stringify({ hotel: 'alp_000001', text: 'x'.repeat(Math.max(0, bytes - 34)) })).toString(
    'base64',
  )
}

type Submit = Extract<ClientPlan, { kind: 'submit' }>

async function submit(plan: Submit): Promise<Omit<ClientResult, 'ms' | 'cpuSeconds'>> {
  const data = payloadOf(plan.payloadBytes)
  const statuses: { [status: string]: number } = {}
  let sent = 0
  const waiting: string[] = []
  const nextRequest = (): string | undefined => {
    if (waiting.length > 0) return waiting.shift()
    if (sent >= plan.jobs) return undefined
    const topic = plan.topics[(sent / plan.batch) % plan.topics.length] as string
    const count = Math.min(plan.batch, plan.jobs - sent)
    let body: string
    if (count === 1) body = `{"job":{"id":"${plan.run}-${sent}","topic":"${topic}","data":"${data}"}}`
    else {
      const jobs: string[] = []
      for (let n = 0; n < count; n++) jobs.push(`{"id":"${plan.run}-${sent + n}","topic":"${topic}","data":"${data}"}`)
      body = `{"topic":"${topic}","jobs":[${jobs.join()}]}`
    }
    sent += count
    return requestOf(plan, body, plan.isNew)
  }
  const onStatus = (status: string) => {
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  await Promise.all(
    Array.from({ length: plan.connections }, async () => {
      let connection: Connection | undefined
      for (let request = nextRequest(); request !== undefined; request = nextRequest()) {
        connection ??= await openConnection(plan)
        const status = await exchange(connection, request)
        if (plan.repeats && status === '503') waiting.push(request)
        else onStatus(status)
        if (plan.isNew) {
          connection.socket.destroy()
          connection = undefined
        }
      }
      connection?.socket.destroy()
    }),
  )
  return { statuses, latencies: [] }
}

export function requestOf({ host, port, token }: Place, body: string, isLast: boolean): string {
  return `POST /producer/jobs HTTP/1.1\r\nhost: ${host}:${port}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${isLast ? 'connection: close\r\n' : ''}\r\n${body}`
}

export type Connection = { readonly socket: Socket; received: string; settle: ((status: string) => void) | undefined }

export function openConnection({ host, port }: Place): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true })
    const connection: Connection = { socket, received: '', settle: undefined }
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      connection.received += text
      const head = connection.received.indexOf('\r\n\r\n')
      if (head < 0) return
      const length = Number(/content-length: (\d+)/i.exec(connection.received.slice(0, head))?.[1] ?? 0)
      if (connection.received.length < head + 4 + length) return
      const status = connection.received.slice(9, 12)
      connection.received = connection.received.slice(head + 4 + length)
      connection.settle?.(status)
    })
    socket.once('connect', () => resolve(connection))
    socket.once('error', reject)
  })
}

/** @returns the status */
export function exchange(connection: Connection, request: string): Promise<string> {
  return new Promise((resolve) => {
    connection.settle = resolve
    connection.socket.write(request)
  })
}

/** @returns whether the job is acknowledged */
type Seen = (jobId: string) => boolean

function openConsumer(plan: ClientPlan, topic: string, prefetch: number, seen: Seen): Promise<WebSocket> {
  const { host, port, token } = plan
  const query = `token=${encodeURIComponent(token)}&topic=${topic}&consumer=bench&prefetch=${prefetch}`
  const socket = new WebSocket(`ws://${host}:${port}/ws?${query}`, { perMessageDeflate: false })
  return new Promise((resolve, reject) => {
    socket.on('message', (data: Buffer) => {
      const { action, jobId, seqId } = JSON.parse(data.toString('utf8')) as {
        action: string
        jobId: string
        seqId: number
      }
      if (action !== 'job' || !seen(jobId)) return
      socket.send(`{"action":"ack","topic":"${topic}","last_id":${seqId},"JobID":"${jobId}"}`)
    })
    socket.once('open', () => resolve(socket))
    socket.once('error', reject)
  })
}

async function deliver(plan: Extract<ClientPlan, { kind: 'deliver' }>) {
  let left = plan.jobs
  const done = Promise.withResolvers<void>()
  // Jobs beyond those of the plan stay in the queue.
  const seen = () => {
    left--
    if (left === 0) done.resolve()
    return left >= 0
  }
  const sockets = await Promise.all(
    Array.from({ length: Math.max(plan.consumers, plan.topics.length) }, (_, n) =>
      openConsumer(plan, plan.topics[n % plan.topics.length] as string, plan.prefetch, seen),
    ),
  )
  await done.promise
  // The last acknowledgements are on their way: a closing handshake comes behind them.
  await Promise.all(
    sockets.map((socket) => {
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.close()
      return closed
    }),
  )
  return { statuses: {}, latencies: [] }
}

/** One job after the other, each submitted when the last one was delivered. */
async function latency(plan: Extract<ClientPlan, { kind: 'latency' }>) {
  const [topic] = plan.topics
  assert(topic !== undefined, 'a plan has a topic')
  const data = payloadOf(plan.payloadBytes)
  let arrived: (() => void) | undefined
  const socket = await openConsumer(plan, topic, 64, () => {
    arrived?.()
    return true
  })
  const connection = await openConnection(plan)
  const statuses: { [status: string]: number } = {}
  const latencies: number[] = []
  for (let n = 0; n < plan.jobs; n++) {
    const delivered = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const begun = performance.now()
    const body = `{"job":{"id":"${plan.run}-${n}","topic":"${topic}","data":"${data}"}}`
    const status = await exchange(connection, requestOf(plan, body, false))
    statuses[status] = (statuses[status] ?? 0) + 1
    await delivered
    latencies.push(performance.now() - begun)
    // Idle in between.
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  socket.terminate()
  connection.socket.destroy()
  return { statuses, latencies: latencies.sort((a, b) => a - b) }
}

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2] ?? '') as ClientPlan
  const begun = performance.now()
  const before = process.cpuUsage()
  const result = plan.kind === 'submit' ? submit(plan) : plan.kind === 'deliver' ? deliver(plan) : latency(plan)
  const { statuses, latencies } = await result
  const { user, system } = process.cpuUsage(before)
  const done: ClientResult = {
    ms: performance.now() - begun,
    cpuSeconds: (user + system) / 1e6,
    statuses,
    latencies,
  }
  process.stdout.write(`${JSON.stringify(done)}\n`)
}

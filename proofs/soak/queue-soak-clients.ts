/**
 * Producers and consumers of the soak, a process of their own. Producers submit at a steady rate; consumers fail some
 * jobs, forget others, and reconnect every few seconds. Then everything is drained. Prints one line of JSON.
 */
import { once } from 'node:events'
import { seeded } from '@vacancy/testkit/random'
import { WebSocket } from 'ws'
import {
  type Connection,
  exchange,
  openConnection,
  type Place,
  payloadOf,
  requestOf,
} from '../../bench/src/queue/clients.ts'

export type SoakPlan = Place & {
  readonly perSecond: number
  readonly seconds: number
  readonly consumers: number
  readonly payloadBytes: number
  readonly run: string
}
export type SoakCounts = {
  submitted: number
  deliveries: number
  /** Jobs that a consumer failed, for a while or for good. */
  failed: number
  reconnects: number
  /** Requests that were refused and repeated. */
  repeated: number
  /** Other statuses than 200 and 503. */
  refused: number
  /** Jobs of any state after draining. */
  left: number
}

const BATCH = 50
const PRODUCERS = 8
/** Requests on one connection. */
const REQUESTS = 500
/** Shares of deliveries. */
const FORGOTTEN = 0.003
const RETRIED = 0.01
const REJECTED = 0.002
const CONNECTED_MS = { min: 3_000, max: 9_000 }
const DRAIN_MS = 120_000
const PAUSE_MS = 5

type Run = {
  readonly plan: SoakPlan
  readonly counts: SoakCounts
  readonly random: () => number
  readonly begun: number
  sent: number
  isDraining: boolean
  isOver: boolean
}

async function soak(plan: SoakPlan): Promise<SoakCounts> {
  const counts = { submitted: 0, deliveries: 0, failed: 0, reconnects: 0, repeated: 0, refused: 0, left: 0 }
  const run: Run = {
    plan,
    counts,
    random: seeded(1),
    begun: performance.now(),
    sent: 0,
    isDraining: false,
    isOver: false,
  }
  const consumers = Array.from({ length: plan.consumers }, (_, n) => consume(run, n))
  const redriving = setInterval(() => void redriveAll(run), 1_000)
  await Promise.all(Array.from({ length: PRODUCERS }, () => produce(run)))
  run.isDraining = true
  const until = performance.now() + DRAIN_MS
  do {
    await sleep(500)
    counts.left = await leftOf(run)
  } while (counts.left > 0 && performance.now() < until)
  clearInterval(redriving)
  run.isOver = true
  await Promise.all(consumers)
  return counts
}

async function produce(run: Run): Promise<void> {
  const { plan, counts } = run
  const data = payloadOf(plan.payloadBytes)
  let connection: Connection | undefined
  for (let requests = 0; ; requests++) {
    const elapsed = (performance.now() - run.begun) / 1000
    if (elapsed >= plan.seconds) break
    if (elapsed * plan.perSecond - run.sent < BATCH) {
      await sleep(PAUSE_MS)
      continue
    }
    const first = run.sent
    run.sent += BATCH
    const topic = plan.topics[(first / BATCH) % plan.topics.length] as string
    const jobs = Array.from({ length: BATCH }, (_, n) => `{"id":"${plan.run}-${first + n}","data":"${data}"}`)
    const request = requestOf(plan, `{"topic":"${topic}","jobs":[${jobs.join()}]}`, false)
    for (let status = ''; status !== '200'; ) {
      connection ??= await openConnection(plan)
      status = await exchange(connection, request)
      if (status === '503') counts.repeated++
      else if (status !== '200') {
        counts.refused++
        break
      } else counts.submitted += BATCH
    }
    if (requests % REQUESTS === 0) {
      connection?.socket.destroy()
      connection = undefined
    }
  }
  connection?.socket.destroy()
}

/** One connection after the other. */
async function consume(run: Run, number: number): Promise<void> {
  const { plan, counts } = run
  const topic = plan.topics[number % plan.topics.length] as string
  const query = `token=${encodeURIComponent(plan.token)}&topic=${topic}&consumer=soak-${number}&prefetch=100`
  while (!run.isOver) {
    const socket = new WebSocket(`ws://${plan.host}:${plan.port}/ws?${query}`, { perMessageDeflate: false })
    socket.on('message', (message: Buffer) => receive(run, socket, message.toString('utf8')))
    await once(socket, 'open')
    const until = performance.now() + CONNECTED_MS.min + run.random() * (CONNECTED_MS.max - CONNECTED_MS.min)
    while (!run.isOver && performance.now() < until) await sleep(100)
    // Abruptly: what it holds returns.
    socket.terminate()
    counts.reconnects++
  }
}

function receive(run: Run, socket: WebSocket, text: string): void {
  const { action, topic, jobId, seqId } = JSON.parse(text)
  if (action !== 'job') return
  run.counts.deliveries++
  const choice = run.isDraining ? 1 : run.random()
  if (choice < FORGOTTEN) return
  if (choice < FORGOTTEN + RETRIED + REJECTED) {
    run.counts.failed++
    const requeue = choice < FORGOTTEN + RETRIED
    socket.send(JSON.stringify({ action: 'nack', jobId, seqId, requeue, delayMs: 200, error: 'soak' }))
  } else socket.send(`{"action":"ack","topic":"${topic}","last_id":${seqId},"JobID":"${jobId}"}`)
}

async function redriveAll(run: Run): Promise<void> {
  for (const topic of run.plan.topics)
    await call(run, 'POST', `/api/v1/queue/topics/${topic}/dead/redrive`, { all: true })
}

async function leftOf(run: Run): Promise<number> {
  let left = 0
  for (const topic of run.plan.topics) {
    const { ready, delayed, leased, dead } = await call(run, 'GET', `/api/v1/queue/topics/${topic}`)
    left += ready + delayed + leased + dead
  }
  return left
}

// biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the response.
async function call({ plan }: Run, method: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(`http://${plan.host}:${plan.port}${path}`, {
    method,
    headers: { authorization: `Bearer ${plan.token}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  })
  return await response.json()
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await soak(JSON.parse(process.argv[2] ?? '')))}\n`)

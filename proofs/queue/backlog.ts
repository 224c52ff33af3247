/**
 * `npm run proofs -- queue-backlog`: many jobs wait for one slow consumer, which works on them one after the other for a while and
 * closes; then fast consumers take the rest.
 *
 * - No job is dead, although most waited long.
 * - No job is delivered twice, except those that the slow consumer had in hand when it closed.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert, EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { until } from '@vacancy/testkit/until'
import { WebSocket } from 'ws'
import { base64, call, TOKENS } from '../../queue/src/testing/queue.ts'
import { startQueueProcess } from '../../queue/src/testing/shared-queue.ts'

const TOPIC = 'orders'
const BATCH = 1_000
const DRAIN_MS = 300_000

type Options = {
  readonly jobs: number
  /** How long the slow consumer works. */
  readonly seconds: number
  readonly jobMs: number
  readonly consumers: number
  /** Of the slow consumer; undefined: the server adapts it. */
  readonly prefetch?: number | undefined
}

export type BacklogReport = Omit<Options, 'prefetch'> & {
  /** Jobs that the slow consumer acknowledged. */
  readonly slow: number
  /** Jobs that it had when it closed. */
  readonly inHand: number
  readonly drainSeconds: number
  readonly delivered: number
  readonly dead: number
  /** Delivered twice, without those in hand. */
  readonly twice: readonly string[]
}

type Run = { readonly url: string; readonly deliveries: Map<string, number> }

export async function slowBacklog(
  { jobs, seconds, jobMs, consumers, prefetch }: Options,
  say: (line: string) => void = () => undefined,
): Promise<BacklogReport> {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-backlog-queue-'))
  const { program, url } = await startQueueProcess(folder, '')
  const run: Run = { url, deliveries: new Map() }
  try {
    await call(run.url, 'POST', '/producer/topic', { topic: TOPIC })
    for (let from = 0; from < jobs; from += BATCH) await submit(run, from, Math.min(jobs, from + BATCH))
    say(`${jobs} jobs wait`)
    const { slow, inHand } = await consumeSlowly(run, { seconds, jobMs, prefetch })
    say(`the slow consumer finished ${slow} and closes with ${inHand.size} in hand`)
    const begun = performance.now()
    const sockets = await Promise.all(Array.from({ length: consumers }, () => consumeFast(run)))
    await until('nothing is left', async () => await isDrained(run), DRAIN_MS)
    const drainSeconds = (performance.now() - begun) / 1000
    for (const socket of sockets) socket.terminate()
    const { dead } = await countsOf(run)
    const twice = [...run.deliveries].filter(([id, count]) => count > (inHand.has(id) ? 2 : 1)).map(([id]) => id)
    const delivered = run.deliveries.size
    return { jobs, seconds, jobMs, consumers, slow, inHand: inHand.size, drainSeconds, delivered, dead, twice }
  } finally {
    program.signal('SIGKILL')
    await program.ended
    rmSync(folder, { recursive: true })
  }
}

async function submit({ url }: Run, from: number, end: number): Promise<void> {
  const jobs = Array.from({ length: end - from }, (_, n) => ({ id: `job-${from + n}`, data: base64({ n }) }))
  const { status, text } = await call(url, 'POST', '/producer/jobs', { topic: TOPIC, jobs })
  assert(status === 200, `jobs are accepted: ${text}`)
}

async function countsOf({ url }: Run) {
  return (await call(url, 'GET', `/api/v1/queue/topics/${TOPIC}`)).body
}

async function isDrained(run: Run): Promise<boolean> {
  const { ready, delayed, leased } = await countsOf(run)
  return ready + delayed + leased === 0
}

type Received = { readonly jobId: string; readonly seqId: number }

/** @param onJob called for each delivery, in order */
async function connect(run: Run, query: string, onJob: (job: Received, socket: WebSocket) => void): Promise<WebSocket> {
  const at = `${run.url.replace('http', 'ws')}/ws?token=${TOKENS.admin}&topic=${TOPIC}&consumer=w${query}`
  const socket = new WebSocket(at, { perMessageDeflate: false })
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString('utf8'))
    if (message.action !== 'job') return
    run.deliveries.set(message.jobId, (run.deliveries.get(message.jobId) ?? 0) + 1)
    onJob(message, socket)
  })
  await once(socket, 'open')
  return socket
}

function acknowledge(socket: WebSocket, { jobId, seqId }: Received): void {
  socket.send(JSON.stringify({ action: 'ack', topic: TOPIC, last_id: seqId, JobID: jobId }))
}

async function consumeSlowly(
  run: Run,
  { seconds, jobMs, prefetch }: Pick<Options, 'seconds' | 'jobMs' | 'prefetch'>,
): Promise<{ readonly slow: number; readonly inHand: ReadonlySet<string> }> {
  const waiting: Received[] = []
  const query = prefetch === undefined ? '' : `&prefetch=${prefetch}`
  const socket = await connect(run, query, (job) => waiting.push(job))
  const end = performance.now() + seconds * 1000
  let slow = 0
  while (performance.now() < end) {
    // As a handler that takes so long.
    await new Promise((resolve) => setTimeout(resolve, jobMs))
    const job = waiting.shift()
    if (job === undefined) continue
    acknowledge(socket, job)
    slow++
  }
  socket.close()
  await once(socket, 'close')
  return { slow, inHand: new Set(waiting.map(({ jobId }) => jobId)) }
}

function consumeFast(run: Run): Promise<WebSocket> {
  return connect(run, '&prefetch=100', (job, socket) => acknowledge(socket, job))
}

export const queueBacklogCommand = defineCommand({
  name: 'proofs queue-backlog',
  component: 'queue-backlog',
  summary:
    'Many jobs wait for one slow consumer; then fast consumers take the rest. No job dies or is delivered twice.',
  flags: {
    jobs: { type: 'integer', min: 1, max: 100_000_000, default: 100_000, summary: 'Jobs that wait.' },
    seconds: { type: 'integer', min: 1, max: 86_400, default: 60, summary: 'How long the slow consumer works.' },
    'job-ms': { type: 'integer', min: 0, max: 60_000, default: 10, summary: 'How long it takes for a job.' },
    consumers: { type: 'integer', min: 1, max: 1_000, default: 50, summary: 'Fast consumers.' },
    prefetch: { type: 'integer', min: 1, max: 10_000, summary: 'Of the slow consumer. Default: the server adapts it.' },
  },
  run: async ({ flags }) => {
    const report = await slowBacklog(flags, (line) => process.stderr.write(`${line}\n`))
    process.stdout.write(`${JSON.stringify({ ...report, twice: report.twice.length })}\n`)
    const isGood = report.delivered === report.jobs && report.dead + report.twice.length === 0
    return isGood ? EXIT.ok : EXIT.failure
  },
})

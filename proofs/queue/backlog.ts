/**
 * `npm run proofs -- queue-backlog`: many jobs wait for one slow consumer, which works on them one after the other for a while and
 * closes; then fast consumers take the rest.
 *
 * - No job is dead, although most waited long.
 * - No job is delivered twice, except those that the slow consumer had in hand when it closed.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { assert, EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { removeFolder, temporaryFolder } from '@vacancy/testkit/node'
import { until } from '@vacancy/testkit/until'
import { base64, call, openConsumer, type TestConsumer, TOKENS } from '../../queue/src/testing/queue.ts'
import { startQueueProcess, unfinished } from '../../queue/src/testing/shared-queue.ts'

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

export async function slowBacklog(
  { jobs, seconds, jobMs, consumers, prefetch }: Options,
  say: (line: string) => void = () => undefined,
): Promise<BacklogReport> {
  const folder = temporaryFolder()
  const { program, url } = await startQueueProcess(folder, '')
  const connect = (query: string) => openConsumer(url, `token=${TOKENS.admin}&topic=${TOPIC}&consumer=w${query}`)
  try {
    await call(url, 'POST', '/producer/topic', { topic: TOPIC })
    for (let from = 0; from < jobs; from += BATCH) await submit(url, from, Math.min(jobs, from + BATCH))
    say(`${jobs} jobs wait`)
    const first = await connect(prefetch === undefined ? '' : `&prefetch=${prefetch}`)
    const slow = await workSlowly(first, seconds, jobMs)
    const inHand = new Set(deliveriesTo(first).slice(slow))
    say(`the slow consumer finished ${slow} and closes with ${inHand.size} in hand`)
    const begun = performance.now()
    const others = await Promise.all(Array.from({ length: consumers }, () => connect('&prefetch=100')))
    for (const consumer of others) void workFast(consumer)
    await until('nothing is left', async () => (await unfinished(url, [TOPIC])) === 0, DRAIN_MS)
    const drainSeconds = (performance.now() - begun) / 1000
    for (const { socket } of others) socket.terminate()
    const { dead } = (await call(url, 'GET', `/api/v1/queue/topics/${TOPIC}`)).body
    const deliveries = Map.groupBy([first, ...others].flatMap(deliveriesTo), (id) => id)
    const twice = [...deliveries].filter(([id, { length }]) => length > (inHand.has(id) ? 2 : 1)).map(([id]) => id)
    const delivered = deliveries.size
    return { jobs, seconds, jobMs, consumers, slow, inHand: inHand.size, drainSeconds, delivered, dead, twice }
  } finally {
    program.signal('SIGKILL')
    await program.ended
    removeFolder(folder)
  }
}

async function submit(url: string, from: number, end: number): Promise<void> {
  const jobs = Array.from({ length: end - from }, (_, n) => ({ id: `job-${from + n}`, data: base64({ n }) }))
  const { status, text } = await call(url, 'POST', '/producer/jobs', { topic: TOPIC, jobs })
  assert(status === 200, `jobs are accepted: ${text}`)
}

/** Ids in the order of their deliveries. */
function deliveriesTo({ messages }: TestConsumer): string[] {
  return messages.filter(({ action }) => action === 'job').map(({ jobId }) => jobId)
}

/** @returns how many jobs it finished before it closed */
async function workSlowly(consumer: TestConsumer, seconds: number, jobMs: number): Promise<number> {
  let finished = 0
  for (const end = performance.now() + seconds * 1000; performance.now() < end; finished++) {
    // As a handler that takes so long.
    await wait(jobMs)
    const job = await Promise.race([consumer.job(), wait(Math.max(0, end - performance.now()), undefined)])
    if (job === undefined) break
    consumer.ack(job)
  }
  await consumer.close()
  return finished
}

async function workFast(consumer: TestConsumer): Promise<void> {
  for (;;) consumer.ack(await consumer.job())
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

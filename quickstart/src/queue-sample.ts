/**
 * Jobs for the queue of a quick start, so that its pages show something: producers and workers of three topics, through
 * the client library. One worker fails now and then, as real ones do.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Consumer,
  createConsumer,
  createProducer,
  type Job,
  type Producer,
  RejectJob,
} from '@vacancy/client/queue'

type SampleTopic = {
  readonly topic: string
  /** Of a topic that does not exist yet; small, because these jobs are left alone. */
  readonly config: object
  /** Milliseconds between two jobs. */
  readonly everyMs: number
  readonly dataOf: (number: number) => unknown
  readonly work: (job: Job) => Promise<void>
}

const LIMITS = { max_jobs: 2_000, dlq_max_jobs: 500 }
const propertyOf = (number: number) => `alp_${String(1 + (number % 900)).padStart(6, '0')}`

export const SAMPLE_TOPICS: readonly SampleTopic[] = [
  {
    topic: 'hotel-sync',
    config: LIMITS,
    everyMs: 500,
    dataOf: (number) => ({ property: propertyOf(number * 7), source: 'channel-manager', rooms: 1 + (number % 4) }),
    work: async () => await sleep(40),
  },
  {
    topic: 'price-alerts',
    config: { ...LIMITS, max_attempts: 2, retry_base_ms: 500 },
    everyMs: 2_000,
    dataOf: (number) => ({ property: propertyOf(number * 13), below: 90 + (number % 60), currency: 'EUR' }),
    work: async ({ data, id }) => {
      const number = Number(id.split('-').at(-1))
      if (number % 7 === 0) throw new RejectJob(`unknown property ${(data as { property: string }).property}`)
      if (number % 3 === 0) throw new Error(`timeout after ${2_000 + (number % 50)} ms`)
      await sleep(80)
    },
  },
  {
    topic: 'invoices',
    config: { ...LIMITS, ack_deadline_ms: 60_000 },
    everyMs: 3_000,
    dataOf: (number) => ({ booking: `b-${100_000 + number}`, amount: 120 + (number % 400), nights: 1 + (number % 7) }),
    // Slower than its producer, up to a limit: a backlog.
    work: async () => await sleep(3_200),
  },
]

/** Waiting jobs of a topic beyond which its producer pauses. */
const BACKLOG_MAX = 50

async function produce(
  producer: Producer,
  topic: SampleTopic,
  backlog: () => number,
  signal: AbortSignal,
): Promise<void> {
  // Ids of two starts differ.
  const stamp = Date.now().toString(36)
  for (let number = 1; !signal.aborted; number++) {
    if (backlog() < BACKLOG_MAX)
      await producer.submit({ topic: topic.topic, id: `${topic.topic}-${stamp}-${number}`, data: topic.dataOf(number) })
    await sleep(topic.everyMs, undefined, { signal }).catch(() => undefined)
  }
}

async function createTopic(url: string, token: string, { topic, config }: SampleTopic): Promise<void> {
  const response = await fetch(`${url}/producer/topic`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ topic, config }),
  })
  // 409: of an earlier start.
  if (response.status !== 200 && response.status !== 409)
    throw new Error(`creating the topic ${topic} was answered with ${response.status}: ${await response.text()}`)
}

/** Runs until it is aborted. */
export async function runSample(
  { url, producerToken, consumerToken }: { url: string; producerToken: string; consumerToken: string },
  signal: AbortSignal,
): Promise<void> {
  for (const topic of SAMPLE_TOPICS) await createTopic(url, producerToken, topic)
  const producer = createProducer({ url, token: producerToken })
  const consumers: Consumer[] = SAMPLE_TOPICS.map(({ topic, work }) =>
    createConsumer({ url, token: consumerToken, topic, handler: work, concurrency: 1, name: `${topic}-worker` }),
  )
  const producing = SAMPLE_TOPICS.map((topic, n) => {
    let submitted = 0
    const count = () => submitted++ - (consumers[n]?.stats().delivered ?? 0)
    return produce(producer, topic, count, signal)
  })
  await Promise.all(producing)
  await Promise.all(consumers.map((consumer) => consumer.close({ waitMs: 1_000 })))
  await producer.close()
}

/** Runs until a signal stops it. */
export async function sampleJobs([url = '', ...files]: readonly string[]): Promise<void> {
  const [producerToken = '', consumerToken = ''] = files.map((file) => readFileSync(file, 'utf8').trim())
  const stopping = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stopping.abort())
  process.stdout.write('serving: sample jobs\n')
  await runSample({ url, producerToken, consumerToken }, stopping.signal)
}

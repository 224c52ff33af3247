/** The engine of the queue with one topic, in memory, on a clock that the test sets. */
import { type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import { connect, dispatch, type NewConsumer } from '../delivery.ts'
import { findById } from '../id-index.ts'
import type { Consumer, Delivery, Job, NewJob, Topic } from '../job.ts'
import { commitGroup, createTopic, submit } from '../queue.ts'
import { createQueue, type Queue, takeGroup } from '../state.ts'

/** Wall clock at the start. */
export const START = 1_800_000_000_000

export const LIMITS = {
  ...{ topicsMax: 10_000, bytesMax: 1e9, groupChangesMax: 10_000, groupBytesMax: 1e9 },
  ...{ prefetchDefault: 12, prefetchMax: 500, ackDeadlineMsMax: 60_000, leaseFactorMax: 3, resumeGraceMs: 2_000 },
}

export type Engine = {
  readonly queue: Queue
  readonly topic: Topic
  readonly now: { wallMs: number; monotonicMs: number }
  /** The next values of its random numbers; 0.5 without. */
  readonly randoms: number[]
}

/** With the topic `orders`. Its consumers have the numbers 2, 6, 10, … */
export function startEngine(config: Partial<TopicConfig> = {}): Engine {
  const now = { wallMs: START, monotonicMs: 1_000 }
  const randoms: number[] = []
  const random = () => randoms.shift() ?? 0.5
  const options = { limits: LIMITS, random, leasePrefix: 'p', nextConsumer: 2, consumerStride: 4 }
  const queue = createQueue(options, now)
  return { queue, topic: addTopic({ queue, now }, 'orders', config), now, randoms }
}

export function addTopic(
  { queue, now }: Pick<Engine, 'queue' | 'now'>,
  name: string,
  config: Partial<TopicConfig>,
): Topic {
  createTopic(queue, name, topicConfig.parse({ starvation_guard: 0, ...config }), now)
  write({ queue, now })
  return queue.topics.get(name) as Topic
}

/** Makes all changes durable. @returns them, as text */
export function write({ queue, now }: Pick<Engine, 'queue' | 'now'>): string[] {
  const written: string[] = []
  for (let group = takeGroup(queue); group !== undefined; group = takeGroup(queue)) {
    for (const change of group.changes) written.push('seq' in change ? `${change.kind} ${change.seq}` : change.kind)
    commitGroup(queue, now)
  }
  return written
}

export const USUAL_JOB = {
  ...{ priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: 'e30=', bytes: 2 },
}

/** Submits jobs together. */
export function addJobs(engine: Engine, ids: readonly string[], fields: Partial<NewJob> = {}, topic = engine.topic) {
  submit(
    engine.queue,
    topic,
    ids.map((id) => ({ ...USUAL_JOB, ...fields, id })),
    engine.now,
  )
  write(engine)
}

export function addJob(engine: Engine, id: string, fields: Partial<NewJob> = {}): Job {
  addJobs(engine, [id], fields)
  return findById(engine.topic.jobs, id) as Job
}

export function enter({ queue, now }: Engine, fields: Partial<NewConsumer> = {}): Consumer {
  const usual = { name: 'w', topicName: 'orders', prefetch: 100, confirms: false, tokenName: 't', remote: 'r' }
  return connect(queue, { ...usual, ...fields }, now)
}

/** Time passes on both clocks. */
export function pass({ now }: Engine, ms: number): void {
  now.wallMs += ms
  now.monotonicMs += ms
}

export const numbered = (count: number) => Array.from({ length: count }, (_, n) => `j${n}`)

/** Delivers all that can be. */
export function deliver({ queue, now }: Engine): Delivery[] {
  const sent: Delivery[] = []
  while (dispatch(queue, now, (delivery) => sent.push(delivery)));
  return sent
}

/** One delivery of one job to one consumer. */
export function startDelivery(config: Partial<TopicConfig> = {}, fields: Partial<NewJob> = {}, prefetch = 100) {
  const engine = startEngine(config)
  addJobs(engine, ['a'], fields)
  const consumer = enter(engine, { prefetch })
  const [delivery] = deliver(engine)
  return { ...engine, engine, consumer, delivery: delivery as Delivery, job: jobOf(engine, 'a') }
}

export const jobOf = ({ topic }: Engine, id: string) => findById(topic.jobs, id) as Job
export const idsOf = (deliveries: readonly Delivery[]) => deliveries.map(({ job }) => job.id)
export const eventsOf = (job: Job) => job.past?.history.map(({ event, consumer, error }) => [event, consumer, error])
export const ref = (jobId?: string, seqId?: number, lease?: string) => ({ jobId, seqId, lease })
export const failure = (fields: { error?: string; requeue?: boolean; delayMs?: number } = {}) => ({
  ...{ error: 'no room', requeue: true },
  ...fields,
})

/** What the queue shows of its jobs, topics and consumers. */
import {
  type ConsumerView,
  type DeadFilter,
  type DeadGroup,
  JOB_LIMITS,
  type JobState,
  type JobView,
  type TopicRow,
  type TopicStats,
} from '@vacancy/shared/contract'
import { heapFirst, type Ring } from './containers.ts'
import { deadlineOf } from './delivery.ts'
import { findById } from './id-index.ts'
import {
  type Consumer,
  type FinishedJob,
  FLAG,
  type Job,
  type Moment,
  type RateSample,
  STATE,
  type Topic,
} from './job.ts'
import { oldestReady } from './places.ts'
import { stateName } from './queue.ts'
import type { Queue } from './state.ts'

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

export function jobView(queue: Queue, job: Job, now: Moment): JobView {
  const { past, delivery, topic } = job
  const isDead = job.state === STATE.dead
  return {
    id: job.id,
    topic: topic.name,
    state: stateName(job),
    priority: job.priority,
    failures: job.failures,
    deliveries: job.deliveries,
    maxAttempts: job.maxAttempts || topic.config.max_attempts,
    createdAt: timeText(job.createdAt),
    runAt: job.state === STATE.delayed ? timeText(job.runAt) : null,
    leaseUntil: delivery === undefined ? null : timeText(now.wallMs + deadlineOf(queue, delivery) - now.monotonicMs),
    consumer: delivery?.consumer.name ?? null,
    lastError: past === undefined || past.lastError === '' ? null : past.lastError,
    bytes: job.bytes,
    deadAt: isDead && past !== undefined ? timeText(past.deadAt) : null,
    reason: isDead ? (past?.reason ?? null) : null,
    finishedAt: null,
  }
}

/** The payload in base64. */
export function jobData({ data, flags }: Job): string | null {
  if (data === undefined) return null
  return (flags & FLAG.json) === 0 ? data : Buffer.from(data, 'utf8').toString('base64')
}

/** The first bytes of the payload in base64. */
export function jobHead({ data, flags }: Pick<Job, 'data' | 'flags'>): string | null {
  if (data === undefined) return null
  // Base64 has 4 characters for 3 bytes. The JSON text has at least a byte for each character.
  if ((flags & FLAG.json) === 0) return data.slice(0, (JOB_LIMITS.headBytes / 3) * 4)
  return Buffer.from(data.slice(0, JOB_LIMITS.headBytes), 'utf8').subarray(0, JOB_LIMITS.headBytes).toString('base64')
}

/** A job that finished a short while ago, from memory. */
export function shownJob(topic: Topic, id: string): JobView | undefined {
  for (const job of newestFirst(topic.shown)) if (job.id === id) return finishedView(topic, job)
  return undefined
}

function finishedView(topic: Topic, job: FinishedJob): JobView {
  const { id, priority, failures, deliveries, maxAttempts, bytes, consumer } = job
  return {
    id,
    topic: topic.name,
    state: 'done',
    priority,
    failures,
    deliveries,
    maxAttempts,
    createdAt: timeText(job.createdAt),
    runAt: null,
    leaseUntil: null,
    consumer,
    lastError: null,
    bytes,
    deadAt: null,
    reason: null,
    finishedAt: timeText(job.finishedAt),
  }
}

function* newestFirst<T>({ items, head, length }: Ring<T>): Generator<T> {
  for (let n = length - 1; n >= 0; n--) yield items[(head + n) & (items.length - 1)] as T
}

export type JobPage = { readonly jobs: readonly Job[]; readonly next: string | null }

/**
 * A page of the jobs of a state. Dead ones are listed whole, oldest first. Of the others the first 10,000: they change
 * while they are read, so a cursor is a position.
 */
export function listJobs(
  topic: Topic,
  state: Exclude<JobState, 'done'>,
  limit: number,
  cursor: string | undefined,
): JobPage {
  if (state === 'dead') return listDead(topic, limit, cursor, undefined)
  const from = Math.min(Number(cursor ?? 0) || 0, JOB_LIMITS.listedJobsMax)
  const count = Math.min(limit, JOB_LIMITS.listedJobsMax - from)
  const jobs = firstJobs(topic, state, from + count).slice(from)
  const isMore = jobs.length === count && from + count < Math.min(topic.counts[state], JOB_LIMITS.listedJobsMax)
  return { jobs, next: isMore ? String(from + count) : null }
}

function firstJobs(topic: Topic, state: 'ready' | 'delayed' | 'leased', count: number): Job[] {
  if (state === 'ready') return firstReady(topic, count)
  if (state === 'leased') return firstLeased(topic, count)
  return [...heapFirst(topic.delayed, count), ...heapFirst(topic.scheduled, count)]
    .sort((a, b) => a.runAt - b.runAt)
    .slice(0, count)
}

function firstReady(topic: Topic, count: number): Job[] {
  const jobs: Job[] = []
  for (let priority = topic.ready.length - 1; priority >= 0 && jobs.length < count; priority--) {
    const returned = topic.returned[priority]
    if (returned !== undefined) jobs.push(...heapFirst(returned, count - jobs.length))
    for (let job = topic.ready[priority]?.first; job !== undefined && jobs.length < count; job = job.next)
      jobs.push(job)
  }
  return jobs
}

function firstLeased(topic: Topic, count: number): Job[] {
  const jobs: Job[] = []
  for (const { deliveries } of topic.consumers)
    for (const { job } of deliveries.values()) {
      if (jobs.length === count) return jobs
      jobs.push(job)
    }
  return jobs
}

/** Jobs looked at for one page of a filter; then the page ends with a cursor, although it may be short. */
const FILTERED_MAX = 10_000

/** @param cursor the id of the last job of the page before; from the beginning when it has left the list */
export function listDead(
  topic: Topic,
  limit: number,
  cursor: string | undefined,
  filter: DeadFilter | undefined,
): JobPage {
  const after = cursor === undefined ? undefined : findById(topic.jobs, cursor)
  const jobs: Job[] = []
  let seen = 0
  let last: Job | undefined
  for (let job = after?.state === STATE.dead ? after.next : topic.dead.first; job !== undefined; job = job.next) {
    if (jobs.length === limit || seen === FILTERED_MAX) return { jobs, next: last?.id ?? null }
    last = job
    seen++
    if (filter === undefined || matches(job, filter)) jobs.push(job)
  }
  return { jobs, next: null }
}

/** Jobs looked at to count those of a filter. */
const COUNTED_MAX = 100_000

/** How many dead jobs a filter selects; `exact` unless there are more than were looked at. */
export function countDead(topic: Topic, { group, ...others }: DeadFilter): { count: number; exact: boolean } {
  const isWhole = Object.values(others).every((condition) => condition === undefined)
  const jobs = group === undefined ? undefined : (topic.deadGroups.get(group)?.jobs ?? new Map<number, Job>())
  if (isWhole) return { count: jobs?.size ?? topic.counts.dead, exact: true }
  let seen = 0
  let count = 0
  for (const job of jobs?.values() ?? deadOf(topic)) {
    if (seen === COUNTED_MAX) return { count, exact: false }
    seen++
    if (matches(job, others)) count++
  }
  return { count, exact: true }
}

function* deadOf(topic: Topic): Generator<Job> {
  for (let job = topic.dead.first; job !== undefined; job = job.next) yield job
}

/** Up to `max` dead jobs that a filter selects; a group is read without looking at other jobs. */
export function selectDead(topic: Topic, filter: DeadFilter, max: number): Job[] {
  const found: Job[] = []
  if (filter.group !== undefined) {
    for (const job of topic.deadGroups.get(filter.group)?.jobs.values() ?? [])
      if (found.length < max && matches(job, filter)) found.push(job)
    return found
  }
  for (let job = topic.dead.first; job !== undefined && found.length < max; job = job.next)
    if (matches(job, filter)) found.push(job)
  return found
}

function matches({ past, failures }: Job, { error, group, before, after, minFailures }: DeadFilter): boolean {
  if (past === undefined) return false
  if (error !== undefined && !past.lastError.includes(error)) return false
  if (group !== undefined && past.group?.name !== group) return false
  if (before !== undefined && past.deadAt >= Date.parse(before)) return false
  if (after !== undefined && past.deadAt < Date.parse(after)) return false
  return minFailures === undefined || failures >= minFailures
}

export function deadGroups(topic: Topic): DeadGroup[] {
  return [...topic.deadGroups.values()]
    .map(({ name, jobs, last }) => {
      const [first] = jobs.values()
      return {
        group: name,
        count: jobs.size,
        first: timeText(first?.past?.deadAt ?? last),
        last: timeText(last),
        sampleId: first?.id ?? '',
      }
    })
    .sort((a, b) => b.count - a.count)
}

export function finishedJobs(
  topic: Topic,
  limit: number,
  cursor: string | undefined,
): { jobs: JobView[]; next: string | null } {
  const from = Number(cursor ?? 0) || 0
  const all = [...newestFirst(topic.shown)]
  const jobs = all.slice(from, from + limit).map((job) => finishedView(topic, job))
  return { jobs, next: from + limit < all.length ? String(from + limit) : null }
}

export function topicRow({ name, config, createdAt, counts, consumers }: Topic): TopicRow {
  return {
    topic: name,
    paused: config.paused,
    createdAt: timeText(createdAt),
    // Jobs become visible as they are stored.
    ready: counts.ready,
    delayed: counts.delayed,
    leased: counts.leased,
    dead: counts.dead,
    consumers: consumers.size,
  }
}

export function topicStats(topic: Topic, now: Moment): TopicStats {
  const { name, config, counts, bytes, consumers, totals } = topic
  const oldest = oldestReady(topic)
  return {
    topic: name,
    paused: config.paused,
    ready: counts.ready,
    delayed: counts.delayed,
    leased: counts.leased,
    dead: counts.dead,
    bytes,
    oldestReadyMs: oldest === undefined ? 0 : Math.max(0, now.wallMs - oldest.createdAt),
    consumers: consumers.size,
    stalledConsumers: counts.stalled,
    totals: { ...totals },
    rates1m: ratesOf(topic, now),
  }
}

/** Moments at which totals are kept, and how many: rates are over a minute. */
const SAMPLES = 7

/** Keeps the totals of all topics; to be called every 10 s. */
export function sampleRates(queue: Queue, now: Moment): void {
  for (const topic of queue.topics.values()) {
    topic.samples.push(sampleOf(topic, now))
    if (topic.samples.length > SAMPLES) topic.samples.shift()
  }
}

function sampleOf({ totals }: Topic, { monotonicMs }: Moment): RateSample {
  const { accepted, delivered, acked, lateAcked, nacked, expired } = totals
  return { at: monotonicMs, accepted, delivered, acked: acked + lateAcked, failed: nacked + expired }
}

function ratesOf(topic: Topic, now: Moment): TopicStats['rates1m'] {
  const current = sampleOf(topic, now)
  const [oldest] = topic.samples
  const seconds = oldest === undefined ? 0 : (current.at - oldest.at) / 1000
  const rate = (name: 'accepted' | 'delivered' | 'acked' | 'failed') =>
    oldest === undefined || seconds < 1 ? 0 : Math.round(((current[name] - oldest[name]) / seconds) * 10) / 10
  return { accepted: rate('accepted'), delivered: rate('delivered'), acked: rate('acked'), failed: rate('failed') }
}

export function consumerView(consumer: Consumer): ConsumerView {
  const { id, name, topicName, tokenName, window, isAdaptive, deliveries, isStalled, lastMessageAt } = consumer
  return {
    id: `c-${id}`,
    uuid: name,
    topic: topicName,
    token: tokenName,
    prefetch: window,
    adaptive: isAdaptive,
    leased: deliveries.size,
    stalled: isStalled,
    connectedAt: timeText(consumer.connectedAt),
    lastMessageAt: lastMessageAt === 0 ? null : timeText(lastMessageAt),
    remote: consumer.remote,
    delivered: consumer.delivered,
    acked: consumer.acked,
  }
}

/** Metrics of the queue. What happens for every job or request is counted in plain numbers and read with each page. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import {
  counter,
  DELAY_SAMPLED_EVERY_MS,
  gauge,
  histogram,
  type Metrics,
  type MetricsTable,
  registerMetrics,
  SPANS_METRIC,
  type SpanCounts,
} from '@vacancy/shared/node'
import type { Moment, Topic } from './job.ts'
import { addBuckets, type Buckets, bucketsReading, createBuckets, LATENCY_SECONDS, observe } from './latency.ts'
import { oldestReady } from './places.ts'
import type { Queue } from './state.ts'

const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
const GROUP_CHANGES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 10_000]

export const QUEUE_METRICS = {
  vacancy_queue_ready_jobs: gauge('Jobs that wait for a consumer.', ['topic']),
  vacancy_queue_delayed_jobs: gauge('Jobs that become ready later.', ['topic']),
  vacancy_queue_leased_jobs: gauge('Jobs that consumers work on.', ['topic']),
  vacancy_queue_dead_jobs: gauge('Jobs that failed for good.', ['topic']),
  vacancy_queue_bytes: gauge('Payload bytes of unfinished jobs.', ['topic']),
  vacancy_queue_oldest_ready_seconds: gauge('Age of the oldest ready job.', ['topic']),
  vacancy_queue_jobs_accepted_total: counter('Jobs stored.', ['topic']),
  vacancy_queue_jobs_duplicate_total: counter('Submitted jobs whose id was known.', ['topic']),
  vacancy_queue_jobs_delivered_total: counter('Deliveries.', ['topic']),
  vacancy_queue_jobs_redelivered_total: counter(
    'Jobs that came back to be delivered again, by cause: nack, expired or disconnect.',
    ['topic', 'cause'],
  ),
  vacancy_queue_jobs_acked_total: counter('Jobs finished, by whether their lease had ended (late="1").', [
    'topic',
    'late',
  ]),
  vacancy_queue_jobs_dead_total: counter('Jobs that became dead, by reason.', ['topic', 'reason']),
  vacancy_queue_dead_dropped_total: counter('Dead jobs dropped because of the limits of their topic.', ['topic']),
  vacancy_queue_jobs_rejected_total: counter(
    'Submitted jobs refused because the queue, the topic or the disk was full, by reason.',
    ['topic', 'reason'],
  ),
  vacancy_queue_delivery_seconds: {
    ...histogram('Time from acceptance to the first delivery.', ['topic']),
    buckets: LATENCY_SECONDS,
  },
  vacancy_queue_ack_seconds: {
    ...histogram('Time from a delivery to its acknowledgement.', ['topic']),
    buckets: LATENCY_SECONDS,
  },
  vacancy_queue_websocket_connections: gauge('Open consumer connections.'),
  vacancy_queue_consumers: gauge('Consumers.', ['topic']),
  vacancy_queue_consumers_stalled: gauge(
    'Consumers that get no jobs because they let three in a row expire in silence.',
    ['topic'],
  ),
  vacancy_queue_http_requests_total: counter('Requests of producers.', ['method', 'route', 'status']),
  vacancy_queue_http_request_duration_seconds: {
    ...histogram('Time from the request to the end of its response.', ['method', 'route']),
    buckets: LATENCY_SECONDS,
  },
  vacancy_queue_auth_failures_total: counter('Requests and connections with an unknown token.'),
  vacancy_queue_journal_commit_seconds: {
    ...histogram('Time until a group of changes was durable.', ['journal']),
    buckets: COMMIT_SECONDS,
  },
  vacancy_queue_journal_group_records: { ...histogram('Changes in a group.', ['journal']), buckets: GROUP_CHANGES },
  vacancy_queue_journal_bytes: gauge('Size of the journal.'),
  vacancy_queue_journal_free_bytes: gauge('Space in the journal that will be used again.'),
  vacancy_queue_journal_errors_total: counter('Failed journal operations: open, write, or full for a full disk.', [
    'op',
  ]),
  vacancy_queue_owner: gauge('1 where this process owns the partition.', ['partition']),
  vacancy_queue_owner_changes_total: counter('Times this process became the owner.', ['partition']),
  vacancy_queue_event_loop_delay_seconds: gauge('Delay of the event loop since the last scrape, by quantile.', [
    'quantile',
  ]),
  vacancy_queue_topics: gauge('Topics.'),
  vacancy_queue_spans_total: SPANS_METRIC,
  vacancy_queue_not_after_seconds: gauge(
    'When its certificate, its authority and the tokens of its auth file end, the first of each, seconds since 1970; +Inf while no token ends.',
    ['what'],
  ),
} as const satisfies MetricsTable

/** Counted while the queue runs, beside what topics count themselves. */
export type QueueMetrics = ReturnType<typeof createQueueMetrics>

export function createQueueMetrics(journal: 'sqlite' | 'pg' | 'memory') {
  return {
    journal,
    /** By method, route and status, joined by spaces. */
    requests: new Map<string, number>(),
    requestSeconds: new Map<string, Buckets>(),
    commitSeconds: createBuckets(COMMIT_SECONDS),
    groupChanges: createBuckets(GROUP_CHANGES),
    errors: { open: 0, write: 0, full: 0 },
    rejected: new Map<string, number>(),
    ownerChanges: new Map<number, number>(),
    authFailures: 0,
  }
}

export function countRequest(
  metrics: QueueMetrics,
  method: string,
  route: string,
  status: number,
  seconds: number,
): void {
  const name = `${method} ${route}`
  const key = `${name} ${status}`
  metrics.requests.set(key, (metrics.requests.get(key) ?? 0) + 1)
  let buckets = metrics.requestSeconds.get(name)
  if (buckets === undefined) {
    buckets = createBuckets(LATENCY_SECONDS)
    metrics.requestSeconds.set(name, buckets)
  }
  observe(buckets, seconds)
}

const REJECTIONS = ['disk', 'busy', 'max_jobs', 'max_bytes', 'max_bytes_total'] as const
type Rejection = (typeof REJECTIONS)[number]

export function countRejected(metrics: QueueMetrics, topic: string, reason: Rejection, jobs: number): void {
  const key = `${topic} ${reason}`
  // Names of topics that do not exist never come here, so this is as bounded as the topics are.
  metrics.rejected.set(key, (metrics.rejected.get(key) ?? 0) + jobs)
}

/** The counts of a deleted topic disappear with it. */
export function forgetRejected({ rejected }: QueueMetrics, topic: string): void {
  for (const key of rejected.keys()) if (key.startsWith(`${topic} `)) rejected.delete(key)
}

/** What the page reads besides. */
export type QueueReading = {
  readonly metrics: QueueMetrics
  readonly isAlone: boolean
  readonly spans: () => SpanCounts
  readonly connections: () => number
  readonly partitions: () => Iterable<{ readonly number: number; readonly queue: Queue | undefined }>
  readonly journalSizes: () => { readonly bytes: number; readonly freeBytes: number }
  readonly now: () => Moment
}

/** Topics with series of their own: the busiest. The others are summed as `_other`. */
const TOPICS_MAX = 100
const OTHER = '_other'
const QUANTILES = [50, 90, 99, 100]

/** Registers the page. */
export function registerQueueMetrics(reading: QueueReading): Metrics<typeof QUEUE_METRICS> {
  const page = registerMetrics(QUEUE_METRICS, { process: reading.isAlone })
  const delay = monitorEventLoopDelay({ resolution: DELAY_SAMPLED_EVERY_MS })
  delay.enable()
  const { metrics } = reading
  let named: ReadonlySet<string> = new Set()
  page.readHistogram('vacancy_queue_delivery_seconds', () => topicSeconds(reading, named, 'deliverySeconds'))
  page.readHistogram('vacancy_queue_ack_seconds', () => topicSeconds(reading, named, 'ackSeconds'))
  page.readHistogram('vacancy_queue_http_request_duration_seconds', () =>
    [...metrics.requestSeconds].map(([name, buckets]) => {
      const [method = '', route = ''] = name.split(' ')
      return bucketsReading(buckets, { method, route })
    }),
  )
  const { journal } = metrics
  page.readHistogram('vacancy_queue_journal_commit_seconds', () => [bucketsReading(metrics.commitSeconds, { journal })])
  page.readHistogram('vacancy_queue_journal_group_records', () => [bucketsReading(metrics.groupChanges, { journal })])
  page.onCollect(() => {
    const { of } = page
    for (const metric of Object.values(of)) if ('reset' in metric) metric.reset()
    for (const quantile of QUANTILES)
      of.vacancy_queue_event_loop_delay_seconds.set(
        { quantile: String(quantile / 100) },
        // A sample is the time since the one before.
        Math.max(0, delay.percentile(quantile) / 1e9 - DELAY_SAMPLED_EVERY_MS / 1000),
      )
    delay.reset()
    named = busiest(reading)
    collectProcess(of, reading, named)
    const now = reading.now()
    let others: Shown | undefined
    for (const [name, topic] of topicsOf(reading, named)) {
      const shown = shownOf(topic, now)
      if (name !== OTHER) collectTopic(of, name, shown)
      else others = others === undefined ? shown : together(others, shown)
    }
    if (others !== undefined) collectTopic(of, OTHER, others)
  })
  return page
}

type Of = Metrics<typeof QUEUE_METRICS>['of']

function collectProcess(
  of: Of,
  { metrics, connections, partitions, journalSizes, spans }: QueueReading,
  named: ReadonlySet<string>,
): void {
  of.vacancy_queue_websocket_connections.set(connections())
  of.vacancy_queue_auth_failures_total.inc(metrics.authFailures)
  for (const [key, count] of metrics.requests) {
    const [method = '', route = '', status = ''] = key.split(' ')
    of.vacancy_queue_http_requests_total.inc({ method, route, status }, count)
  }
  for (const [key, count] of metrics.rejected) {
    const [topic = '', reason = ''] = key.split(' ')
    of.vacancy_queue_jobs_rejected_total.inc({ topic: named.has(topic) ? topic : OTHER, reason }, count)
  }
  for (const op of ['open', 'write', 'full'] as const)
    of.vacancy_queue_journal_errors_total.inc({ op }, metrics.errors[op])
  const { exported, dropped } = spans()
  of.vacancy_queue_spans_total.inc({ result: 'exported' }, exported)
  of.vacancy_queue_spans_total.inc({ result: 'dropped' }, dropped)
  const { bytes, freeBytes } = journalSizes()
  of.vacancy_queue_journal_bytes.set(bytes)
  of.vacancy_queue_journal_free_bytes.set(freeBytes)
  let topics = 0
  for (const { number, queue } of partitions()) {
    const partition = String(number)
    of.vacancy_queue_owner.set({ partition }, queue === undefined ? 0 : 1)
    of.vacancy_queue_owner_changes_total.inc({ partition }, metrics.ownerChanges.get(number) ?? 0)
    topics += queue?.topics.size ?? 0
  }
  of.vacancy_queue_topics.set(topics)
}

/** Names of the topics that accepted and finished most since the start, which rarely changes from page to page. */
function busiest({ partitions }: QueueReading): ReadonlySet<string> {
  const topics = [...partitions()].flatMap(({ queue }) => [...(queue?.topics.values() ?? [])])
  const work = ({ totals }: Topic) => totals.accepted + totals.acked
  if (topics.length > TOPICS_MAX) topics.sort((a, b) => work(b) - work(a))
  return new Set(topics.slice(0, TOPICS_MAX).map(({ name }) => name))
}

function* topicsOf(
  { partitions }: QueueReading,
  named: ReadonlySet<string>,
): Generator<readonly [name: string, topic: Topic]> {
  for (const { queue } of partitions())
    for (const topic of queue?.topics.values() ?? []) yield [named.has(topic.name) ? topic.name : OTHER, topic]
}

/** One reading for each series; topics without one of their own are summed. */
function topicSeconds(reading: QueueReading, named: ReadonlySet<string>, name: 'deliverySeconds' | 'ackSeconds') {
  const sums = new Map<string, Buckets>()
  for (const [topic, state] of topicsOf(reading, named)) {
    const own = state[name]
    const sum = topic === OTHER ? (sums.get(topic) ?? createBuckets(own.bounds)) : own
    if (topic === OTHER) addBuckets(sum, own)
    sums.set(topic, sum)
  }
  return [...sums].map(([topic, buckets]) => bucketsReading(buckets, { topic }))
}

/** A topic as the page shows it, or several together. */
type Shown = Pick<Topic, 'counts' | 'totals' | 'deadByReason' | 'bytes'> & {
  readonly consumers: number
  readonly oldestSeconds: number
}

function shownOf(topic: Topic, { wallMs }: Moment): Shown {
  const { counts, totals, deadByReason, bytes, consumers } = topic
  const oldest = oldestReady(topic)
  const oldestSeconds = oldest === undefined ? 0 : Math.max(0, wallMs - oldest.createdAt) / 1000
  return { counts, totals, deadByReason, bytes, consumers: consumers.size, oldestSeconds }
}

function together(a: Shown, b: Shown): Shown {
  return {
    counts: sums(a.counts, b.counts),
    totals: sums(a.totals, b.totals),
    deadByReason: sums(a.deadByReason, b.deadByReason),
    bytes: a.bytes + b.bytes,
    consumers: a.consumers + b.consumers,
    oldestSeconds: Math.max(a.oldestSeconds, b.oldestSeconds),
  }
}

function sums<K extends string>(a: { readonly [name in K]: number }, b: { readonly [name in K]: number }) {
  return Object.fromEntries(Object.keys(a).map((name) => [name, a[name as K] + b[name as K]])) as {
    [name in K]: number
  }
}

function collectTopic(of: Of, topic: string, shown: Shown): void {
  const { counts, totals, deadByReason, bytes, consumers, oldestSeconds } = shown
  of.vacancy_queue_ready_jobs.set({ topic }, counts.ready)
  of.vacancy_queue_delayed_jobs.set({ topic }, counts.delayed)
  of.vacancy_queue_leased_jobs.set({ topic }, counts.leased)
  of.vacancy_queue_dead_jobs.set({ topic }, counts.dead)
  of.vacancy_queue_bytes.set({ topic }, bytes)
  of.vacancy_queue_consumers.set({ topic }, consumers)
  of.vacancy_queue_consumers_stalled.set({ topic }, counts.stalled)
  of.vacancy_queue_oldest_ready_seconds.set({ topic }, oldestSeconds)
  of.vacancy_queue_jobs_accepted_total.inc({ topic }, totals.accepted)
  of.vacancy_queue_jobs_duplicate_total.inc({ topic }, totals.duplicates)
  of.vacancy_queue_jobs_delivered_total.inc({ topic }, totals.delivered)
  const causes = { nack: totals.nacked, expired: totals.expired, disconnect: totals.disconnected }
  for (const [cause, count] of Object.entries(causes))
    of.vacancy_queue_jobs_redelivered_total.inc({ topic, cause }, count)
  of.vacancy_queue_jobs_acked_total.inc({ topic, late: '0' }, totals.acked)
  of.vacancy_queue_jobs_acked_total.inc({ topic, late: '1' }, totals.lateAcked)
  for (const [reason, count] of Object.entries(deadByReason))
    of.vacancy_queue_jobs_dead_total.inc({ topic, reason }, count)
  of.vacancy_queue_dead_dropped_total.inc({ topic }, totals.deadDropped)
  // A series that appears with its first event hides that event from rates.
  for (const reason of REJECTIONS) of.vacancy_queue_jobs_rejected_total.inc({ topic, reason }, 0)
}

import { topicConfig } from '@vacancy/shared/contract'
import { describe, expect, it } from 'vitest'
import type { Topic } from './job.ts'
import { observe } from './latency.ts'
import {
  countRejected,
  countRequest,
  createQueueMetrics,
  forgetRejected,
  type QueueReading,
  registerQueueMetrics,
} from './metrics.ts'
import { commitGroup, createTopic, submit } from './queue.ts'
import { createQueue, type Queue, takeGroup } from './state.ts'
import { LIMITS, START } from './testing/engine.ts'

const now = { wallMs: START, monotonicMs: 1_000 }

function queueOf(...names: readonly string[]): Queue {
  const queue = createQueue(
    { limits: LIMITS, random: () => 0.5, leasePrefix: 'p', nextConsumer: 1, consumerStride: 1 },
    now,
  )
  for (const name of names) createTopic(queue, name, topicConfig.parse({}), now)
  takeGroup(queue)
  if (names.length > 0) commitGroup(queue, now)
  return queue
}

function pageOf(queues: readonly (Queue | undefined)[], more: Partial<QueueReading> = {}) {
  const metrics = createQueueMetrics('sqlite')
  const reading: QueueReading = {
    ...{ metrics, isAlone: false, connections: () => 3, now: () => now },
    partitions: () => queues.map((queue, number) => ({ number, queue })),
    journalSizes: () => ({ bytes: 500, freeBytes: 70 }),
    ...more,
  }
  const page = registerQueueMetrics(reading)
  /** The lines of the page that begin so, without the name of the page. */
  const lines = async (start: string) => {
    const text = await page.text()
    return text
      .split('\n')
      .filter((line) => line.startsWith(`vacancy_queue_${start}`))
      .map((line) => line.slice(14))
  }
  return { metrics, page, lines }
}

const topicOf = (queue: Queue, name: string) => queue.topics.get(name) as Topic

describe('the metrics page', () => {
  it('has what a topic counts', async () => {
    const queue = queueOf('orders')
    const topic = topicOf(queue, 'orders')
    Object.assign(topic.counts, { ready: 1, delayed: 2, leased: 3, dead: 4, stalled: 5 })
    Object.assign(topic.totals, { accepted: 10, duplicates: 11, delivered: 12, acked: 13, lateAcked: 14 })
    Object.assign(topic.totals, { nacked: 15, expired: 16, disconnected: 17, deadDropped: 18 })
    Object.assign(topic.deadByReason, { max_attempts: 20, max_deliveries: 21, rejected: 22 })
    topic.bytes = 30
    const { lines } = pageOf([queue])

    const own = (await lines('')).filter((line) => line.includes('topic="orders"') && !line.includes('seconds_'))
    expect(own).toEqual([
      'ready_jobs{topic="orders"} 1',
      'delayed_jobs{topic="orders"} 2',
      'leased_jobs{topic="orders"} 3',
      'dead_jobs{topic="orders"} 4',
      'bytes{topic="orders"} 30',
      'oldest_ready_seconds{topic="orders"} 0',
      'jobs_accepted_total{topic="orders"} 10',
      'jobs_duplicate_total{topic="orders"} 11',
      'jobs_delivered_total{topic="orders"} 12',
      'jobs_redelivered_total{topic="orders",cause="nack"} 15',
      'jobs_redelivered_total{topic="orders",cause="expired"} 16',
      'jobs_redelivered_total{topic="orders",cause="disconnect"} 17',
      'jobs_acked_total{topic="orders",late="0"} 13',
      'jobs_acked_total{topic="orders",late="1"} 14',
      'jobs_dead_total{topic="orders",reason="max_attempts"} 20',
      'jobs_dead_total{topic="orders",reason="max_deliveries"} 21',
      'jobs_dead_total{topic="orders",reason="rejected"} 22',
      'dead_dropped_total{topic="orders"} 18',
      'consumers{topic="orders"} 0',
      'consumers_stalled{topic="orders"} 5',
    ])
  })

  it('has the age of the oldest ready job, which is never negative', async () => {
    const queue = queueOf('orders')
    const job = { priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: undefined, bytes: 0 }
    submit(queue, topicOf(queue, 'orders'), [{ ...job, id: 'a' }], now)
    takeGroup(queue)
    commitGroup(queue, now)
    const after = (ms: number) => pageOf([queue], { now: () => ({ wallMs: START + ms, monotonicMs: 0 }) })
    expect(await after(2_500).lines('oldest')).toEqual(['oldest_ready_seconds{topic="orders"} 2.5'])
    expect(await after(-2_500).lines('oldest')).toEqual(['oldest_ready_seconds{topic="orders"} 0'])
  })

  it('reads the same counts again, and none of a topic that is gone', async () => {
    const queue = queueOf('orders')
    const topic = topicOf(queue, 'orders')
    topic.totals.accepted = 5
    const { lines } = pageOf([queue])
    await lines('')
    expect(await lines('jobs_accepted')).toEqual(['jobs_accepted_total{topic="orders"} 5'])
    queue.topics.delete('orders')
    expect(await lines('jobs_accepted')).toEqual([])
    expect(await lines('topics')).toEqual(['topics 0'])
  })

  it('has the process, its partitions and its journal', async () => {
    const { metrics, lines } = pageOf([queueOf('a', 'b'), undefined, queueOf('c')])
    expect(await lines('auth')).toEqual(['auth_failures_total 0'])
    expect((await lines('journal_errors')).map((line) => line.split(' ')[1])).toEqual(['0', '0', '0'])
    metrics.authFailures = 6
    metrics.ownerChanges.set(2, 4)
    Object.assign(metrics.errors, { open: 1, write: 2, full: 3 })
    expect(await lines('topics')).toEqual(['topics 3'])
    expect(await lines('websocket')).toEqual(['websocket_connections 3'])
    expect(await lines('auth')).toEqual(['auth_failures_total 6'])
    expect(await lines('owner{')).toEqual([
      'owner{partition="0"} 1',
      'owner{partition="1"} 0',
      'owner{partition="2"} 1',
    ])
    expect(await lines('owner_changes')).toEqual([
      'owner_changes_total{partition="0"} 0',
      'owner_changes_total{partition="1"} 0',
      'owner_changes_total{partition="2"} 4',
    ])
    expect(await lines('journal_errors')).toEqual([
      'journal_errors_total{op="open"} 1',
      'journal_errors_total{op="write"} 2',
      'journal_errors_total{op="full"} 3',
    ])
    expect([...(await lines('journal_bytes')), ...(await lines('journal_free'))]).toEqual([
      'journal_bytes 500',
      'journal_free_bytes 70',
    ])
    const quantiles = (await lines('event_loop')).map((line) => line.split(' ')[0])
    expect(quantiles).toEqual(['0.5', '0.9', '0.99', '1'].map((q) => `event_loop_delay_seconds{quantile="${q}"}`))
  })

  it.each([true, false])('has metrics of the process when the queue is alone in it: %s', async (isAlone) => {
    const { page } = pageOf([], { isAlone })
    expect((await page.text()).includes('process_cpu_seconds_total')).toBe(isAlone)
  })

  it('has latencies by topic, with their buckets', async () => {
    const queue = queueOf('orders')
    observe(topicOf(queue, 'orders').deliverySeconds, 0.002)
    observe(topicOf(queue, 'orders').ackSeconds, 3_000)
    observe(topicOf(queue, 'orders').ackSeconds, 9_000)
    const { lines } = pageOf([queue])
    expect((await lines('delivery_seconds_bucket')).slice(0, 2)).toEqual([
      'delivery_seconds_bucket{topic="orders",le="0.001"} 0',
      'delivery_seconds_bucket{topic="orders",le="0.0025"} 1',
    ])
    expect((await lines('ack_seconds')).slice(-5)).toEqual([
      'ack_seconds_bucket{topic="orders",le="300"} 0',
      'ack_seconds_bucket{topic="orders",le="3600"} 1',
      'ack_seconds_bucket{topic="orders",le="+Inf"} 2',
      'ack_seconds_sum{topic="orders"} 12000',
      'ack_seconds_count{topic="orders"} 2',
    ])
  })

  it('has how long groups took, and how large they were', async () => {
    const { metrics, lines } = pageOf([])
    for (const changes of [1, 2_000, 10_001]) observe(metrics.groupChanges, changes)
    observe(metrics.commitSeconds, 0.0004)
    observe(metrics.commitSeconds, 6)
    const groups = (await lines('journal_group_records_bucket')).map((line) => /le="(.*)"} (.*)/.exec(line)?.slice(1))
    // Charts name these limits.
    const limits = ['1', '2', '5', '10', '20', '50', '100', '200', '500', '1000', '2000', '10000', '+Inf']
    const counts = [...new Array(10).fill('1'), '2', '2', '3']
    expect(groups).toEqual(limits.map((limit, n) => [limit, counts[n]]))
    const commits = await lines('journal_commit_seconds')
    expect(commits[0]).toBe('journal_commit_seconds_bucket{journal="sqlite",le="0.0005"} 1')
    const times = commits.map((line) => /le="(.*)"/.exec(line)?.[1]).filter((limit) => limit !== undefined)
    expect(times.map(Number).slice(0, -1)).toEqual(
      [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1_000, 5_000].map((ms) => ms / 1_000),
    )
    expect(commits.slice(-4)).toEqual([
      'journal_commit_seconds_bucket{journal="sqlite",le="5"} 1',
      'journal_commit_seconds_bucket{journal="sqlite",le="+Inf"} 2',
      'journal_commit_seconds_sum{journal="sqlite"} 6.0004',
      'journal_commit_seconds_count{journal="sqlite"} 2',
    ])
  })

  it('sums the topics beyond the first 1,000', async () => {
    const queues = [queueOf(...Array.from({ length: 999 }, (_, n) => `t${n}`)), queueOf('last', 'x', 'y')]
    for (const queue of queues)
      for (const topic of queue.topics.values()) {
        topic.counts.ready = 2
        topic.totals.accepted = 3
        observe(topic.deliverySeconds, 0.5)
      }
    const { lines } = pageOf(queues)
    // A page of so many topics takes a while: read once.
    const all = await lines('')
    const named = (start: string) => all.filter((line) => line.startsWith(start))
    expect(named('ready_jobs').length).toBe(1_001)
    expect(named('ready_jobs').slice(-2)).toEqual(['ready_jobs{topic="last"} 2', 'ready_jobs{topic="_other"} 4'])
    expect(named('jobs_accepted').at(-1)).toBe('jobs_accepted_total{topic="_other"} 6')
    expect(named('delivery_seconds_count').slice(-2)).toEqual([
      'delivery_seconds_count{topic="last"} 1',
      'delivery_seconds_count{topic="_other"} 2',
    ])
    expect(named('delivery_seconds_sum').at(-1)).toBe('delivery_seconds_sum{topic="_other"} 1')
  })
})

describe('requests', () => {
  it('are counted by method, route and status, and measured by method and route', async () => {
    const { metrics, lines } = pageOf([])
    countRequest(metrics, 'POST', '/producer/jobs', 200, 0.002)
    countRequest(metrics, 'POST', '/producer/jobs', 200, 0.25)
    countRequest(metrics, 'POST', '/producer/jobs', 429, 1)
    countRequest(metrics, 'GET', 'none', 404, 0)
    expect(await lines('http_requests')).toEqual([
      'http_requests_total{method="POST",route="/producer/jobs",status="200"} 2',
      'http_requests_total{method="POST",route="/producer/jobs",status="429"} 1',
      'http_requests_total{method="GET",route="none",status="404"} 1',
    ])
    const totals = (await lines('http_request_duration')).filter((line) => /_sum|_count/.test(line))
    expect(totals).toEqual([
      'http_request_duration_seconds_sum{method="POST",route="/producer/jobs"} 1.252',
      'http_request_duration_seconds_count{method="POST",route="/producer/jobs"} 3',
      'http_request_duration_seconds_sum{method="GET",route="none"} 0',
      'http_request_duration_seconds_count{method="GET",route="none"} 1',
    ])
  })

  it('that are refused are counted in jobs, by topic and reason, until the topic is deleted', async () => {
    const { metrics, lines } = pageOf([])
    countRejected(metrics, 'orders', 'disk', 3)
    countRejected(metrics, 'orders', 'disk', 4)
    countRejected(metrics, 'orders', 'max_jobs', 1)
    countRejected(metrics, 'orders2', 'disk', 5)
    expect(await lines('jobs_rejected')).toEqual([
      'jobs_rejected_total{topic="orders",reason="disk"} 7',
      'jobs_rejected_total{topic="orders",reason="max_jobs"} 1',
      'jobs_rejected_total{topic="orders2",reason="disk"} 5',
    ])
    forgetRejected(metrics, 'orders')
    expect(await lines('jobs_rejected')).toEqual(['jobs_rejected_total{topic="orders2",reason="disk"} 5'])
  })
})

import { JOB_LIMITS, topicConfig } from '@vacancy/shared/contract'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { acknowledge, connect, dispatch, reject } from './delivery.ts'
import { HISTORY_STEP_MS, sampleHistory, sparklines, topicHistory } from './history.ts'
import type { Delivery, Topic } from './job.ts'
import { observe } from './latency.ts'
import { commitGroup, createTopic, deleteTopic, submit } from './queue.ts'
import { createQueue, type Queue, takeGroup } from './state.ts'
import { dropIdleTails, readTail } from './tail.ts'
import { base64, openConsumer, startTestQueue, type TestQueue, TOKENS } from './testing/queue.ts'

type Engine = { readonly queue: Queue; readonly topic: Topic; readonly now: { wallMs: number; monotonicMs: number } }

function startEngine(names: readonly string[] = ['orders']): Engine {
  const now = { wallMs: 1_800_000_000_000, monotonicMs: 1_000 }
  const limits = {
    topicsMax: 1_000,
    bytesMax: 1e9,
    groupChangesMax: 10_000,
    groupBytesMax: 1e9,
    prefetchDefault: 64,
    prefetchMax: 1_000,
    ackDeadlineMsMax: 60_000,
    leaseFactorMax: 10,
    resumeGraceMs: 2_000,
  }
  const random = () => 0.5
  const queue = createQueue({ limits, random, leasePrefix: 'a', nextConsumer: 1, consumerStride: 1 }, now)
  for (const name of names) createTopic(queue, name, topicConfig.parse({ max_attempts: 1 }), now)
  write(queue, now)
  return { queue, topic: queue.topics.get(names[0] ?? '') as Topic, now }
}

function write(queue: Queue, now: Engine['now']): void {
  while (takeGroup(queue) !== undefined) commitGroup(queue, now)
}

let made = 0
function add({ queue, topic, now }: Engine, count: number): void {
  const usual = { priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: 'e30=', bytes: 2 }
  const jobs = Array.from({ length: count }, () => ({ ...usual, id: `job-${made++}` }))
  submit(queue, topic, jobs, now)
  write(queue, now)
}

function pass({ now }: Engine, ms: number): void {
  now.wallMs += ms
  now.monotonicMs += ms
}

const head = () => null
const read = ({ queue, topic, now }: Engine, cursor?: string) => readTail(queue, topic, cursor, head, now)

describe('a live tail', () => {
  it('shows what happens to jobs, in order', () => {
    const engine = startEngine()
    const { queue, topic, now } = engine
    const { cursor } = read(engine)
    const fields = { name: 'w', topicName: 'orders', prefetch: 2, confirms: false, tokenName: '', remote: '' }
    const consumer = connect(queue, fields, now)
    add(engine, 2)
    const deliveries: Delivery[] = []
    while (dispatch(queue, now, (delivery) => deliveries.push(delivery)));
    const refOf = (delivery?: Delivery) => ({ jobId: delivery?.job.id, seqId: undefined, lease: undefined })
    acknowledge(queue, consumer, refOf(deliveries[0]), now)
    reject(queue, consumer, refOf(deliveries[1]), { error: 'bad payload', requeue: true }, now)

    const page = read(engine, cursor)
    expect(page.events.map(({ event, consumer: name, error }) => [event, name, error])).toEqual([
      ['accepted', null, null],
      ['accepted', null, null],
      ['delivered', 'w', null],
      ['delivered', 'w', null],
      ['done', 'w', null],
      ['failed', 'w', 'bad payload'],
      ['dead', null, 'bad payload'],
    ])
    expect(page.skipped).toBe(0)
    expect(read(engine, page.cursor)).toMatchObject({ events: [], skipped: 0 })
    deleteTopic(queue, topic)
    expect(queue.tailed.size).toBe(0)
  })

  it('shows or counts each event exactly once, however fast they are and however slow its reader is', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ jobs: fc.nat(400), ms: fc.nat(3_000), isRead: fc.boolean() }), { maxLength: 40 }),
        (steps) => {
          const engine = startEngine()
          let { cursor } = read(engine)
          let [added, seen, newest] = [0, 0, 0]
          for (const { jobs, ms, isRead } of [...steps, { jobs: 0, ms: 0, isRead: true }]) {
            add(engine, jobs)
            added += jobs
            pass(engine, ms)
            expect(engine.topic.tail?.events.length).toBeLessThanOrEqual(JOB_LIMITS.tailKept)
            if (!isRead) continue
            const page = read(engine, cursor)
            for (const { n } of page.events) {
              expect(n).toBeGreaterThan(newest)
              newest = n
            }
            seen += page.events.length + page.skipped
            cursor = page.cursor
          }
          expect(seen).toBe(added)
        },
      ),
    )
  })

  it('takes at most so many events a second, and ends when no one reads it', () => {
    const engine = startEngine()
    const { cursor } = read(engine)
    for (let second = 0; second < 3; second++) {
      add(engine, 1_000)
      pass(engine, 1_000)
    }
    const page = read(engine, cursor)
    expect(page.events).toHaveLength(JOB_LIMITS.tailPerSecond * 3)
    expect(page.skipped).toBe(3_000 - JOB_LIMITS.tailPerSecond * 3)
    pass(engine, 15_001)
    dropIdleTails(engine.queue, engine.now)
    expect(engine.topic.tail).toBeUndefined()
    add(engine, 1)
    expect(read(engine, page.cursor), 'a cursor of the tail before').toMatchObject({ events: [], skipped: 0 })
  })

  it('makes room for another topic by ending the tail that was read longest ago', () => {
    const names = Array.from({ length: 101 }, (_, n) => `t-${n}`)
    const engine = startEngine(names)
    const topics = [...engine.queue.topics.values()]
    for (const topic of topics) readTail(engine.queue, topic, undefined, head, engine.now)
    expect(engine.queue.tailed.size).toBe(100)
    expect(topics[0]?.tail).toBeUndefined()
    expect(topics[100]?.tail).toBeDefined()
  })
})

describe('the course of a topic', () => {
  const valuesOf = ({ topic, now }: Engine, name: string, minutes = 1) =>
    topicHistory(topic, minutes, now).series.find((series) => series.name === name)?.values

  it('has rates, waiting jobs and the oldest age, and gaps where nothing was sampled', () => {
    const engine = startEngine()
    const { queue, now } = engine
    sampleHistory(queue, 10, now)
    add(engine, 50)
    pass(engine, HISTORY_STEP_MS)
    sampleHistory(queue, 10, now)
    // The process was frozen for two steps.
    pass(engine, HISTORY_STEP_MS * 3)
    sampleHistory(queue, 10, now)
    expect(valuesOf(engine, 'ready')).toEqual([null, null, 50, null, null, 50])
    expect(valuesOf(engine, 'in')).toEqual([null, null, 5, null, null, 0])
    expect(valuesOf(engine, 'oldest')).toEqual([null, null, 10, null, null, 40])
    const { from, to, stepSeconds } = topicHistory(engine.topic, 1, now)
    expect(Date.parse(to) - Date.parse(from)).toBe(60_000)
    expect(Date.parse(to)).toBe(now.wallMs)
    expect(stepSeconds).toBe(10)
  })

  it('has the latencies of the jobs of each step, and gaps where there were none', () => {
    const engine = startEngine()
    const { queue, topic, now } = engine
    sampleHistory(queue, 10, now)
    for (let n = 0; n < 98; n++) observe(topic.deliverySeconds, 0.004)
    for (let n = 0; n < 2; n++) observe(topic.deliverySeconds, 2)
    observe(topic.ackSeconds, 100_000)
    pass(engine, HISTORY_STEP_MS)
    sampleHistory(queue, 10, now)
    pass(engine, HISTORY_STEP_MS)
    sampleHistory(queue, 10, now)
    observe(topic.deliverySeconds, 0.0005)
    pass(engine, HISTORY_STEP_MS)
    sampleHistory(queue, 10, now)
    // Between the bounds of the bucket of 4 ms, and of that of 2 s.
    expect(valuesOf(engine, 'deliveryP50')?.slice(-3)).toEqual([0.0038, null, 0.0005])
    expect(valuesOf(engine, 'deliveryP99')?.slice(-3)).toEqual([1.75, null, 0.001])
    expect(valuesOf(engine, 'handlingP99')?.slice(-3)).toEqual([3_600, null, null])
  })

  it('keeps an hour, of so many topics', () => {
    const engine = startEngine(['one', 'two'])
    const { queue, now } = engine
    for (let n = 0; n < 500; n++) {
      add(engine, 1)
      sampleHistory(queue, 1, now)
      pass(engine, HISTORY_STEP_MS)
    }
    const values = valuesOf(engine, 'ready', 60) ?? []
    expect(values).toHaveLength(360)
    expect([values[0], values.at(-1)]).toEqual([141, 500])
    expect(queue.topics.get('two')?.history).toBeUndefined()
    expect(sparklines([...queue.topics.values()], now).topics.map(({ topic }) => topic)).toEqual(['one'])
  })
})

describe('the paths of charts, live tail and search', () => {
  let queue: TestQueue

  afterEach(async () => {
    await queue.stop()
  })

  it('agree with /metrics about every count', async () => {
    queue = await startTestQueue()
    await queue.call('PUT', '/api/v1/queue/topics/orders', { config: { retry_base_ms: 60_000 } })
    const jobs = [...'abcdefgh'].map((id) => ({ id, data: base64({ id }) }))
    for (const batch of [jobs, jobs.slice(0, 2)])
      await queue.call('POST', '/producer/jobs', { topic: 'orders', jobs: batch })
    const consumer = await openConsumer(queue.url, `token=${TOKENS.consumer}&topic=orders&consumer=w&prefetch=5`)
    const [first, second, third] = [await consumer.job(), await consumer.job(), await consumer.job()]
    consumer.ack(first)
    consumer.send({ action: 'nack', jobId: second.jobId, requeue: false, error: 'bad payload' })
    consumer.send({ action: 'nack', jobId: third.jobId, error: 'later' })
    const topic = async () => (await queue.call('GET', '/api/v1/queue/topics/orders')).body
    await expect.poll(topic).toMatchObject({ ready: 0, leased: 5, delayed: 1, dead: 1 })

    const shown = await topic()
    const { body: page } = await queue.call('GET', '/api/v1/queue/stats')
    const { text } = await queue.call('GET', '/metrics')
    // By cause, reason or lateness: their sum.
    const ofTopic = (name: string) =>
      [...text.matchAll(new RegExp(`^vacancy_queue_${name}{topic="orders"[^}]*} (\\S+)$`, 'gm'))].reduce(
        (sum, [, value]) => sum + Number(value),
        0,
      )
    const { ready, leased, delayed, dead } = shown
    expect(page.topics).toMatchObject([{ topic: 'orders', ready, leased, delayed, dead }])
    const [{ bytes, totals }] = page.topics
    expect([ready, leased, delayed, dead]).toEqual(
      ['ready', 'leased', 'delayed', 'dead'].map((state) => ofTopic(`${state}_jobs`)),
    )
    expect(bytes).toBe(ofTopic('bytes'))
    expect([totals.accepted, totals.duplicates, totals.delivered, totals.acked, totals.dead]).toEqual(
      ['accepted', 'duplicate', 'delivered', 'acked', 'dead'].map((name) => ofTopic(`jobs_${name}_total`)),
    )
    expect([totals.accepted, totals.duplicates, totals.delivered, totals.acked, totals.dead]).toEqual([8, 2, 8, 1, 1])
    await consumer.close()
  })

  it('answer for a running queue', async () => {
    queue = await startTestQueue()
    for (const topic of ['orders', 'mail']) await queue.call('PUT', `/api/v1/queue/topics/${topic}`, { config: {} })
    const path = '/api/v1/queue/topics/orders'
    const { cursor } = (await queue.call('GET', `${path}/tail`)).body
    for (const topic of ['orders', 'mail'])
      await queue.call('POST', '/producer/jobs', { job: { id: 'same', topic, data: base64({ hotel: 'alp' }) } })
    const consumer = await openConsumer(queue.url, `token=${TOKENS.consumer}&topic=orders&consumer=w`)
    const { jobId, seqId } = await consumer.job()
    consumer.send({ action: 'nack', jobId, seqId, requeue: false, error: 'no room' })

    const tail = () => queue.call('GET', `${path}/tail?cursor=${cursor}`)
    const kinds = async () => (await tail()).body.events.map(({ event }: { event: string }) => event)
    await expect.poll(kinds).toEqual(['accepted', 'delivered', 'failed', 'dead'])
    const [accepted] = (await tail()).body.events
    expect(accepted).toMatchObject({ id: 'same', consumer: null, head: base64({ hotel: 'alp' }) })
    expect((await queue.call('GET', `${path}/tail?cursor=nonsense`)).body).toMatchObject({ skipped: 0 })

    const found = (await queue.call('GET', '/api/v1/queue/jobs?id=same')).body.jobs
    expect(found.map(({ topic, state }: { topic: string; state: string }) => [topic, state])).toEqual([
      ['orders', 'dead'],
      ['mail', 'ready'],
    ])
    expect((await queue.call('GET', '/api/v1/queue/jobs?id=other')).body).toEqual({ jobs: [] })
    expect((await queue.call('GET', `${path}/history?minutes=15`)).body).toMatchObject({
      topic: 'orders',
      stepSeconds: 10,
    })
    expect((await queue.call('GET', '/api/v1/queue/history')).body).toMatchObject({ stepSeconds: 10 })
    await consumer.close()
  })
})

import { TOPIC_SERIES, type TopicSeries, topicConfig } from '@vacancy/shared/contract'
import { describe, expect, it } from 'vitest'
import { HISTORY_STEP_MS, sampleHistory, sparklines, topicHistory } from './history.ts'
import type { Topic } from './job.ts'
import { observe } from './latency.ts'
import { commitGroup, createTopic, submit } from './queue.ts'
import { createQueue, type Queue, takeGroup } from './state.ts'
import { LIMITS, START } from './testing/engine.ts'

const MAX = 1_000

type Engine = { readonly queue: Queue; readonly topic: Topic; readonly now: { wallMs: number; monotonicMs: number } }

function startEngine(names: readonly string[] = ['orders']): Engine {
  const now = { wallMs: START, monotonicMs: 5_000 }
  const queue = createQueue(
    { limits: LIMITS, random: () => 0.5, leasePrefix: 'p', nextConsumer: 1, consumerStride: 1 },
    now,
  )
  for (const name of names) createTopic(queue, name, topicConfig.parse({}), now)
  return { queue, topic: queue.topics.get(names[0] ?? '') as Topic, now }
}

/** Samples after a while, one step without. */
function sample({ queue, now }: Engine, ms = HISTORY_STEP_MS, topicsMax = MAX): void {
  now.wallMs += ms
  now.monotonicMs += ms
  sampleHistory(queue, topicsMax, now)
}

function valuesOf({ topic, now }: Engine, name: TopicSeries, minutes = 1) {
  return topicHistory(topic, minutes, now).series.find((each) => each.name === name)?.values
}

/** The newest value of each series. */
const latest = (engine: Engine) =>
  Object.fromEntries(TOPIC_SERIES.map((name) => [name, valuesOf(engine, name)?.at(-1) ?? null]))

describe('the course of a topic', () => {
  it('begins with the second sample, since rates need two', () => {
    const engine = startEngine()
    expect(valuesOf(engine, 'ready')).toEqual([null, null, null, null, null, null])
    sample(engine)
    expect(valuesOf(engine, 'ready')).toEqual([null, null, null, null, null, null])
    sample(engine)
    expect(valuesOf(engine, 'ready')).toEqual([null, null, null, null, null, 0])
    sample(engine)
    expect(valuesOf(engine, 'ready')).toEqual([null, null, null, null, 0, 0])
  })

  it('has rates a second since the sample before, and the counts of that moment', () => {
    const engine = startEngine()
    const { topic } = engine
    Object.assign(topic.totals, { accepted: 100, acked: 100, lateAcked: 100, nacked: 100, expired: 100 })
    sample(engine)
    Object.assign(topic.totals, { accepted: 150, acked: 120, lateAcked: 101, nacked: 103, expired: 110 })
    Object.assign(topic.counts, { delayed: 4, leased: 3, dead: 2 })
    sample(engine, 5_000)

    expect(latest(engine)).toEqual({
      ...{ in: 10, out: 4.2, failed: 2.6, ready: 0, delayed: 4, leased: 3, dead: 2, oldest: 0 },
      ...{ deliveryP50: null, deliveryP99: null, handlingP50: null, handlingP99: null },
    })
    sample(engine)
    expect(latest(engine)).toMatchObject({ in: 0, out: 0, failed: 0, delayed: 4 })
  })

  it('has the age of the oldest ready job, which is never negative', () => {
    const engine = startEngine()
    sample(engine)
    const job = { priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: undefined, bytes: 0 }
    submit(engine.queue, engine.topic, [{ ...job, id: 'a' }], engine.now)
    takeGroup(engine.queue)
    commitGroup(engine.queue, engine.now)
    takeGroup(engine.queue)
    sample(engine)
    expect(latest(engine)).toMatchObject({ ready: 1, oldest: 10, in: 0.1 })
    engine.now.wallMs -= 60_000
    sample(engine)
    expect(latest(engine)).toMatchObject({ ready: 1, oldest: 0 })
  })

  it('has the latencies observed since the sample before, in seconds to four places', () => {
    const engine = startEngine()
    const { deliverySeconds, ackSeconds } = engine.topic
    observe(deliverySeconds, 3_000)
    sample(engine)
    for (const value of [0.002, 0.002]) observe(deliverySeconds, value)
    for (const value of [40, 20]) observe(ackSeconds, value)
    sample(engine)
    expect(latest(engine)).toMatchObject({
      deliveryP50: 0.0018,
      deliveryP99: 0.0025,
      handlingP50: 30,
      handlingP99: 59.4,
    })
    sample(engine)
    expect(latest(engine)).toMatchObject({ deliveryP50: null, deliveryP99: null, handlingP50: null, handlingP99: null })
  })

  it.each([
    [10_000, 0],
    [15_000, 0],
    [15_001, 1],
    [24_999, 1],
    [25_000, 2],
    [30_000, 2],
  ])('has, after a sample that came %d ms later, %d gaps', (ms, gaps) => {
    const engine = startEngine()
    sample(engine)
    sample(engine)
    engine.topic.counts.dead = 1
    sample(engine, ms)
    expect(valuesOf(engine, 'dead')).toEqual([...new Array(4 - gaps).fill(null), 0, ...new Array(gaps).fill(null), 1])
  })

  it('is a gap after hours without a sample', () => {
    const engine = startEngine()
    for (let n = 0; n < 3; n++) sample(engine)
    sample(engine, 7_200_000)
    expect(valuesOf(engine, 'ready', 60)).toEqual([...new Array(359).fill(null), 0])
  })

  it('ignores a sample at the moment of the one before', () => {
    const engine = startEngine()
    sample(engine)
    sample(engine, 0)
    expect(valuesOf(engine, 'ready')).toEqual([null, null, null, null, null, null])
    sample(engine, 1)
    expect(valuesOf(engine, 'ready')).toEqual([null, null, null, null, null, 0])
  })

  it('keeps an hour', () => {
    const engine = startEngine()
    sample(engine)
    for (let n = 0; n < 365; n++) {
      engine.topic.counts.dead = n
      sample(engine)
    }
    const numbers = Array.from({ length: 360 }, (_, n) => n + 5)
    expect(valuesOf(engine, 'dead', 60)).toEqual(numbers)
    expect(valuesOf(engine, 'dead', 61)).toEqual([...new Array(6).fill(null), ...numbers])
    expect(valuesOf(engine, 'dead', 2)).toEqual(numbers.slice(-12))
  })

  it('ends with its last sample, and has a value for every ten seconds', () => {
    const engine = startEngine()
    const at = (ms: number) => new Date(ms).toISOString()
    expect(topicHistory(engine.topic, 1, engine.now)).toMatchObject({
      ...{ topic: 'orders', from: at(START - 60_000), to: at(START), stepSeconds: 10 },
    })
    sample(engine)
    engine.now.wallMs += 3_000
    engine.now.monotonicMs += 3_000
    const { from, to, series } = topicHistory(engine.topic, 15, engine.now)
    expect([from, to]).toEqual([at(START + 10_000 - 900_000), at(START + 10_000)])
    expect(series.map(({ name, values }) => [name, values.length])).toEqual(TOPIC_SERIES.map((name) => [name, 90]))
  })
})

it('only as many topics as are allowed have a course, the first ones', () => {
  const engine = startEngine(['a', 'b', 'c'])
  sample(engine, HISTORY_STEP_MS, 2)
  sample(engine, HISTORY_STEP_MS, 2)
  const topics = [...engine.queue.topics.values()]
  expect(topics.map(({ history }) => history?.length)).toEqual([1, 1, undefined])
  sample(engine, HISTORY_STEP_MS, 0)
  expect(topics.map(({ history }) => history?.length)).toEqual([1, 1, undefined])
  sample(engine, HISTORY_STEP_MS, 3)
  expect(topics.map(({ history }) => history?.length)).toEqual([3, 3, 0])
})

it('a sparkline has ten minutes of ready jobs and deliveries of each topic with a course', () => {
  const engine = startEngine(['a', 'b', 'c'])
  sample(engine, HISTORY_STEP_MS, 2)
  engine.topic.counts.ready = 7
  for (const value of [40, 20]) observe(engine.topic.deliverySeconds, value)
  sample(engine, HISTORY_STEP_MS, 2)
  const { topics, from, to, stepSeconds } = sparklines([...engine.queue.topics.values()], engine.now)

  const before = new Array(59).fill(null)
  expect(topics).toEqual([
    { topic: 'a', ready: [...before, 7], deliveryP99: [...before, 59.4] },
    { topic: 'b', ready: [...before, 0], deliveryP99: [...before, null] },
  ])
  expect([from, to, stepSeconds]).toEqual([
    new Date(START + 20_000 - 600_000).toISOString(),
    new Date(START + 20_000).toISOString(),
    10,
  ])
  expect(sparklines([], engine.now)).toMatchObject({ to: new Date(START + 20_000).toISOString(), topics: [] })
})

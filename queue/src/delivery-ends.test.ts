import { JOB_LIMITS } from '@vacancy/shared/contract'
import { describe, expect, it } from 'vitest'
import {
  acknowledge,
  disconnect,
  extend,
  pauseConsumer,
  reject,
  release,
  releaseAll,
  resolve,
  setPrefetch,
} from './delivery.ts'
import { findById } from './id-index.ts'
import { FLAG, STATE } from './job.ts'
import { nextWakeMs, redrive } from './queue.ts'
import {
  addJobs,
  deliver,
  enter,
  eventsOf,
  failure,
  idsOf,
  numbered,
  pass,
  ref,
  START,
  startDelivery,
  startEngine,
  write,
} from './testing/engine.ts'

const DEADLINE = 30_000

describe('an acknowledgement', () => {
  it('ends the delivery and the job', () => {
    const { engine, queue, consumer, delivery, job, topic, now } = startDelivery({ dedup_window_sec: 1 })
    pass(engine, 40)
    expect(acknowledge(queue, consumer, ref('a', 1, 'p.1'), now)).toBe('done')

    expect([job.state, delivery.isResolved, job.delivery, queue.leases.count]).toEqual([STATE.gone, true, undefined, 0])
    expect([consumer.acked, consumer.deliveries.size, consumer.heardAt]).toEqual([1, 0, 1_040])
    expect(topic.totals).toMatchObject({ acked: 1, lateAcked: 0 })
    expect([topic.ackSeconds.counts[5], topic.ackSeconds.sum, topic.counts.leased]).toEqual([1, 0.04, 0])
    expect(write(engine)).toEqual(['done 1', 'finished'])
    expect(topic.shown.items[topic.shown.head]).toMatchObject({ id: 'a', consumer: 'w', deliveries: 1 })
    expect(() => resolve(queue, delivery, { kind: 'acked' }, now)).toThrow('a delivery ends once')
  })

  it.each<[string, ReturnType<typeof ref>, string]>([
    ['its number', ref(undefined, 1), 'a'],
    ['its number and an empty id', ref('', 1), 'a'],
    ['its id', ref('b'), 'b'],
    ['both', ref('b', 2), 'b'],
    ['an id, whatever its number', ref('b', 1), 'b'],
    ['an id and an unknown number', ref('b', 9), 'b'],
    ['an empty lease', ref('b', undefined, ''), 'b'],
    ['its lease', ref('b', undefined, 'p.2'), 'b'],
  ])('names a delivery by %s', (_, reference, id) => {
    const engine = startEngine()
    addJobs(engine, ['a', 'b'])
    const consumer = enter(engine)
    deliver(engine)
    expect(acknowledge(engine.queue, consumer, reference, engine.now)).toBe('done')
    expect(findById(engine.topic.jobs, id)).toBeUndefined()
    expect(engine.topic.jobs.size).toBe(1)
  })

  it('of a job that is not known, or of an unknown number, changes nothing', () => {
    const { queue, consumer, now, topic } = startDelivery()
    expect(acknowledge(queue, consumer, ref('other'), now)).toBe('unknown')
    expect(acknowledge(queue, consumer, ref(undefined, 2), now)).toBe('unknown')
    expect(acknowledge(queue, consumer, ref('', 2), now)).toBe('unknown')
    expect([topic.counts.leased, consumer.heardAt]).toEqual([1, 0])
  })

  it('of a job that was never delivered, or waits to be stored, changes nothing', () => {
    const { engine, queue, consumer, now, job } = startDelivery({ max_attempts: 1 })
    setPrefetch(queue, consumer, 1)
    addJobs(engine, ['new'])
    expect(acknowledge(queue, consumer, ref('new'), now)).toBe('unknown')

    reject(queue, consumer, ref('a'), failure(), now)
    write(engine)
    redrive(queue, [job])
    expect(job.state).toBe(STATE.pending)
    expect(acknowledge(queue, consumer, ref('a'), now)).toBe('unknown')
  })

  it.each(['ready', 'delayed', 'dead'] as const)('that is late finishes a job that is %s', (state) => {
    const { engine, queue, consumer, now, job, topic } = startDelivery({ max_attempts: state === 'dead' ? 1 : 5 })
    if (state === 'ready') {
      disconnect(queue, consumer, now)
    } else reject(queue, consumer, ref('a'), failure(), now)
    write(engine)
    const late = enter(engine, { name: 'late' })
    pauseConsumer(queue, late, true)
    expect(job.state).toBe(STATE[state])

    expect(acknowledge(queue, late, ref('a', undefined, 'p.1'), now)).toBe('stale')
    expect(acknowledge(queue, late, ref('a', undefined, ''), now)).toBe('late')
    expect([job.state, topic.jobs.size, topic.counts[state]]).toEqual([STATE.gone, 0, 0])
    expect([topic.totals.lateAcked, topic.totals.acked, late.acked, late.heardAt]).toEqual([1, 0, 0, 0])
    expect(topic.shown.items[topic.shown.head]?.consumer).toBe('late')
    expect(write(engine)).toEqual(['done 1'])
  })

  it('that is late takes the job from another consumer, unless it names an old lease', () => {
    const engine = startEngine()
    addJobs(engine, ['a'])
    const first = enter(engine, { name: 'first', prefetch: 1 })
    deliver(engine)
    release(engine.queue, first, ref('a'), engine.now)
    pauseConsumer(engine.queue, first, true)
    const second = enter(engine, { name: 'second', prefetch: 1 })
    // The first one is the first in turn: it takes nothing while it is paused.
    const [delivery] = deliver(engine)
    expect(delivery?.consumer).toBe(second)

    expect(acknowledge(engine.queue, first, ref('a', 1, 'p.1'), engine.now)).toBe('stale')
    expect(delivery?.isResolved).toBe(false)
    expect(acknowledge(engine.queue, first, ref('a', 1, 'p.2'), engine.now)).toBe('late')
    expect([delivery?.isResolved, second.deliveries.size, second.isFree, second.acked]).toEqual([true, 0, true, 0])
    expect(engine.topic.totals).toMatchObject({ acked: 0, lateAcked: 1 })
    expect(acknowledge(engine.queue, second, ref('a', 1), engine.now)).toBe('unknown')
  })

  it('with another lease than that of its delivery is stale', () => {
    const { queue, consumer, now, job } = startDelivery()
    expect(acknowledge(queue, consumer, ref('a', 1, 'p.2'), now)).toBe('stale')
    expect([job.state, consumer.window, consumer.heardAt]).toEqual([STATE.leased, 100, 0])
  })

  // The share of the ack deadline that the job took: a tenth and a quarter are the limits.
  it.each([
    [DEADLINE / 10 - 1, 10, 11],
    [DEADLINE / 10, 10, 10],
    [DEADLINE / 4, 10, 10],
    [DEADLINE / 4 + 1, 10, 5],
    [DEADLINE / 4 + 1, 3, 1],
    [DEADLINE / 4 + 1, 1, 1],
    [0, 11, 12],
    [0, 12, 12],
  ])('after %d ms changes an adaptive window of %d to %d', (ms, before, after) => {
    const engine = startEngine()
    const consumer = enter(engine, { prefetch: undefined })
    addJobs(engine, ['a'])
    deliver(engine)
    consumer.window = before
    pass(engine, ms)
    acknowledge(engine.queue, consumer, ref('a'), engine.now)
    expect(consumer.window).toBe(after)
  })

  it('does not change a window that the consumer chose', () => {
    const { queue, consumer, now } = startDelivery({}, {}, 5)
    acknowledge(queue, consumer, ref('a'), now)
    expect(consumer.window).toBe(5)
  })
})

describe('a job that fails', () => {
  // The random number adds up to a fifth or takes off up to a fifth.
  it.each([
    [1, 0.5, 1_000],
    [1, 0, 800],
    [1, 0.25, 900],
    [2, 0.5, 2_000],
    [3, 0.5, 4_000],
    [4, 0.5, 8_000],
    [5, 0.5, 10_000],
    [60, 0, 8_000],
  ])('for the %dth time, with the random number %d, waits %d ms', (failures, random, delay) => {
    const config = { retry_base_ms: 1_000, retry_max_ms: 10_000, max_attempts: 100 }
    const { engine, queue, consumer, now, job, topic, randoms } = startDelivery(config)
    job.failures = failures - 1
    randoms.push(random)
    expect(reject(queue, consumer, ref('a'), failure(), now)).toBe('retry')

    expect(job).toMatchObject({ state: STATE.delayed, failures, runAt: START + delay, dueAt: 1_000 + delay })
    expect(write(engine)).toEqual(['update 1'])
    expect(topic.totals).toMatchObject({ nacked: 1, expired: 0, dead: 0 })
    expect([nextWakeMs(queue, now), consumer.heardAt]).toEqual([delay, 1_000])
  })

  it('many times waits no longer than the maximum, whatever its base', () => {
    const config = { retry_base_ms: 1, retry_max_ms: 86_400_000, max_attempts: 100 }
    const { queue, consumer, now, job } = startDelivery(config)
    job.failures = 98
    reject(queue, consumer, ref('a'), failure(), now)
    expect(job.runAt).toBe(START + 86_400_000)
  })

  it.each([0, 1, 77_000])('waits the %d ms that its consumer named', (delayMs) => {
    const { queue, consumer, now, job } = startDelivery()
    expect(reject(queue, consumer, ref('a'), failure({ delayMs }), now)).toBe('retry')
    expect(job).toMatchObject({ runAt: START + delayMs, dueAt: 1_000 + delayMs, failures: 1 })
  })

  it.each([
    [3, 0, 1, 'retry'],
    [3, 0, 2, 'dead'],
    [3, 5, 3, 'retry'],
    [3, 5, 4, 'dead'],
    [3, 1, 0, 'dead'],
  ])(
    'of at most %d attempts in its topic, and %d of its own, after %d failures: %s',
    (max_attempts, own, before, result) => {
      const { queue, consumer, now, job, topic } = startDelivery({ max_attempts }, { maxAttempts: own })
      job.failures = before
      expect(reject(queue, consumer, ref('a'), failure(), now)).toBe(result)
      expect(job.past?.reason).toBe(result === 'dead' ? 'max_attempts' : undefined)
      expect(topic.deadByReason).toEqual({ max_attempts: result === 'dead' ? 1 : 0, max_deliveries: 0, rejected: 0 })
    },
  )

  it('is dead at once when its consumer does not want it again', () => {
    const { engine, queue, consumer, now, job } = startDelivery()
    expect(reject(queue, consumer, ref('a'), failure({ requeue: false, error: 'bad' }), now)).toBe('dead')
    expect(job).toMatchObject({ state: STATE.dead, failures: 1, past: { reason: 'rejected', lastError: 'bad' } })
    expect(eventsOf(job)).toEqual([
      ['nack', 'w', 'bad'],
      ['dead', '', 'bad'],
    ])
    expect(write(engine)).toEqual(['update 1'])
  })

  it('is dropped by a topic that keeps no dead jobs', () => {
    const { queue, consumer, now, job, topic } = startDelivery({ dlq_max_jobs: 0 })
    expect(reject(queue, consumer, ref('a'), failure({ requeue: false }), now)).toBe('dead')
    expect([job.state, topic.jobs.size]).toEqual([STATE.gone, 0])
  })

  it('keeps the beginning of a long error', () => {
    const { queue, consumer, now, job } = startDelivery()
    reject(queue, consumer, ref('a'), failure({ error: `${'e'.repeat(JOB_LIMITS.errorTextMax)}x` }), now)
    expect(job.past?.lastError).toBe('e'.repeat(JOB_LIMITS.errorTextMax))
  })

  it('follows the monotonic clock from then on, also when it was scheduled', () => {
    const { queue, consumer, now, job, topic } = startDelivery({}, { flags: FLAG.json | FLAG.calendar, runAt: START })
    reject(queue, consumer, ref('a'), failure(), now)
    expect([job.flags, topic.delayed.items.length, topic.scheduled.items.length]).toEqual([FLAG.json, 1, 0])
  })
})

describe('a job that is given back', () => {
  it('is at its old place, with one delivery less and no failure', () => {
    const { engine, queue, consumer, now, job, topic } = startDelivery()
    addJobs(engine, ['b'])
    expect(release(queue, consumer, ref(undefined, 1), now)).toBe('released')

    expect(job).toMatchObject({ state: STATE.ready, deliveries: 0, failures: 0 })
    expect([consumer.heardAt, topic.counts.ready, topic.counts.leased]).toEqual([1_000, 2, 0])
    expect(eventsOf(job)).toEqual([['release', 'w', '']])
    expect(write(engine)).toEqual(['update 1'])
    expect(idsOf(deliver(engine))).toEqual(['a', 'b'])
  })

  it('with all others of its consumer', () => {
    const engine = startEngine()
    addJobs(engine, numbered(5))
    const consumer = enter(engine, { prefetch: 3 })
    deliver(engine)
    pauseConsumer(engine.queue, consumer, true)
    releaseAll(engine.queue, consumer, engine.now)
    expect([consumer.deliveries.size, engine.topic.counts.ready, engine.queue.leases.count]).toEqual([0, 5, 0])
    pauseConsumer(engine.queue, consumer, false)
    expect(idsOf(deliver(engine))).toEqual(['j0', 'j1', 'j2'])
  })
})

describe('a message about a delivery that is not current', () => {
  it.each<[string, ReturnType<typeof ref>, string]>([
    ['an unknown job', ref('other'), 'unknown'],
    ['an unknown number', ref(undefined, 7), 'unknown'],
    ['a job that is not leased', ref('waiting'), 'stale'],
    ['a job of another consumer', ref('theirs'), 'stale'],
    ['another number than that of its job', ref('mine', 7), 'stale'],
    ['another lease', ref('mine', 1, 'p.9'), 'stale'],
  ])('for %s changes nothing', (_, reference, result) => {
    const engine = startEngine()
    const { queue, now, topic } = engine
    const consumer = enter(engine, { prefetch: 1 })
    addJobs(engine, ['mine'])
    deliver(engine)
    enter(engine, { prefetch: 1 })
    addJobs(engine, ['theirs'])
    deliver(engine)
    addJobs(engine, ['waiting'])

    expect(release(queue, consumer, reference, now)).toBe(result)
    expect(extend(queue, consumer, reference, 5_000, now)).toBe(result)
    expect(reject(queue, consumer, reference, failure(), now)).toBe(result)
    expect(topic.counts).toMatchObject({ ready: 1, leased: 2, delayed: 0 })
    expect([consumer.heardAt, write(engine)]).toEqual([0, []])
  })
})

import { JOB_LIMITS, type TopicConfig } from '@vacancy/shared/contract'
import { describe, expect, it } from 'vitest'
import {
  acknowledge,
  deadlineOf,
  disconnect,
  dispatch,
  extend,
  heard,
  leaseOf,
  pauseConsumer,
  reject,
  release,
} from './delivery.ts'
import { type Delivery, STATE } from './job.ts'
import { advance, nextWakeMs } from './queue.ts'
import {
  addJobs,
  addTopic,
  deliver,
  enter,
  eventsOf,
  failure,
  idsOf,
  jobOf,
  numbered,
  pass,
  ref,
  START,
  startDelivery,
  startEngine,
  write,
} from './testing/engine.ts'

const DEADLINE = 30_000

describe('a consumer', () => {
  it.each([
    ['10 that adapt without a prefetch', undefined, 10, true],
    ['its prefetch', 1, 1, false],
    ['its prefetch at the limit', 500, 500, false],
    ['the limit for a larger prefetch', 501, 500, false],
  ])('has a window of %s', (_, prefetch, window, isAdaptive) => {
    expect(enter(startEngine(), { prefetch })).toMatchObject({ window, isAdaptive })
  })

  it.each([
    [1, 2, STATE.ready],
    [2, 2, STATE.dead],
  ])('that leaves at delivery %d of at most %d makes its job ready or dead', (count, max_deliveries, state) => {
    const engine = startEngine({ max_deliveries })
    addJobs(engine, ['a'])
    for (let n = 0; n < count; n++) {
      const consumer = enter(engine)
      deliver(engine)
      disconnect(engine.queue, consumer, engine.now)
    }
    const job = jobOf(engine, 'a')
    expect([job.state, job.failures, job.past?.reason]).toEqual([
      state,
      0,
      state === STATE.dead ? 'max_deliveries' : undefined,
    ])
  })
})

describe('dispatch', () => {
  it('gives each consumer eight jobs in its turn', () => {
    const engine = startEngine()
    addJobs(engine, numbered(30))
    enter(engine, { name: 'a', prefetch: 12 })
    enter(engine, { name: 'b', prefetch: 100 })

    const names = deliver(engine).map(({ consumer }) => consumer.name)
    expect(names.join('')).toBe(['a'.repeat(8), 'b'.repeat(8), 'a'.repeat(4), 'b'.repeat(8), 'b'.repeat(2)].join(''))
  })

  it('gives a topic 256 deliveries in its turn, then the next topic', () => {
    const engine = startEngine()
    const mail = addTopic(engine, 'mail', {})
    enter(engine, { prefetch: 400 })
    enter(engine, { prefetch: 400, topicName: 'mail' })
    addJobs(engine, numbered(300))
    addJobs(engine, numbered(3), {}, mail)
    const turn = () => {
      const topics: string[] = []
      const isMore = dispatch(engine.queue, engine.now, ({ job }) => topics.push(job.topic.name))
      return [topics[0], topics.length, isMore]
    }
    expect([turn(), turn()]).toEqual([
      ['orders', 256, true],
      ['mail', 3, true],
    ])
    expect(deliver(engine).length).toBe(44)
  })

  it.each<[string, Partial<TopicConfig>, number, number]>([
    ['an ordered topic has one job in flight', { ordered: true }, 1, 1],
    ['max_leased limits the jobs in flight', { max_leased: 3 }, 3, 1],
    ['an ordered topic has one in flight, whatever max_leased is', { ordered: true, max_leased: 3 }, 1, 1],
    ['a paused topic delivers nothing', { paused: true }, 0, 0],
    ['without limits all are delivered', {}, 9, 0],
  ])('%s', (_, config, first, afterAck) => {
    const engine = startEngine(config)
    addJobs(engine, numbered(9))
    const consumer = enter(engine)
    const sent = deliver(engine)
    expect(idsOf(sent)).toEqual(numbered(first))
    if (first === 0) return
    acknowledge(engine.queue, consumer, ref('j0'), engine.now)
    expect(deliver(engine).length).toBe(afterAck)
  })

  it('delivers at the rate of the topic, with a burst of a second', () => {
    const engine = startEngine({ rate_per_sec: 4 })
    addJobs(engine, numbered(9))
    enter(engine)
    expect(deliver(engine).length).toBe(4)
    expect(engine.topic.alarmAt).toBe(1_250)
    pass(engine, 249)
    advance(engine.queue, engine.now)
    expect(deliver(engine).length).toBe(0)
    pass(engine, 1)
    advance(engine.queue, engine.now)
    expect(deliver(engine).length).toBe(1)
    pass(engine, 600)
    advance(engine.queue, engine.now)
    expect(deliver(engine).length).toBe(2)
    expect(engine.topic.allowance).toBeCloseTo(0.4, 9)
  })

  it('leases a job with its own ack deadline or that of the topic', () => {
    const engine = startEngine()
    addJobs(engine, ['a'])
    addJobs(engine, ['b'], { ackDeadlineMs: 5_000 })
    const consumer = enter(engine)
    pass(engine, 60)
    const [a, b] = deliver(engine)

    expect(a).toMatchObject({ seqId: 1, number: 1, at: 1_060, deadlineMs: DEADLINE, extendedTo: 0, isResolved: false })
    expect(b).toMatchObject({ seqId: 2, number: 2, at: 1_060, deadlineMs: 5_000 })
    expect(jobOf(engine, 'a')).toMatchObject({ state: STATE.leased, delivery: a, deliveries: 1 })
    expect(engine.queue.leases.count).toBe(2)
    expect(leaseOf(engine.queue, b as Delivery)).toBe('p.2')
    expect(consumer.delivered).toBe(2)
    // Two observations between 0.05 and 0.1 s.
    expect([engine.topic.deliverySeconds.counts[6], engine.topic.deliverySeconds.sum]).toEqual([2, 0.12])
    expect(engine.topic.totals).toMatchObject({ delivered: 2, redelivered: 0 })
    expect(a?.job.past).toBeUndefined()
  })
})

describe('a lease', () => {
  // A lease of 1,000 ms that begins at 1,000, with activity of its consumer: at most three ack deadlines.
  it.each([
    [0, 2_000],
    [1_000, 2_000],
    [1_001, 2_001],
    [2_999, 3_999],
    [3_000, 4_000],
    [3_500, 4_000],
  ])('whose consumer was active at %d ends at %d', (heardAt, deadline) => {
    const { queue, consumer, delivery } = startDelivery({}, { ackDeadlineMs: 1_000 })
    consumer.heardAt = heardAt
    expect(deadlineOf(queue, delivery)).toBe(deadline)
  })

  it.each([
    ['its ack deadline', undefined, DEADLINE],
    ['less than it has', 1_000, 1_000],
    ['the most that is allowed', 60_000, 60_000],
    ['more than is allowed', 60_001, 60_000],
  ])('is extended by %s', (_, ms, by) => {
    const { engine, queue, consumer, delivery, job, now } = startDelivery()
    pass(engine, 200)
    expect(extend(queue, consumer, ref('a', 1, 'p.1'), ms, now)).toBe('extended')
    expect([delivery.extendedTo, deadlineOf(queue, delivery), consumer.heardAt]).toEqual([
      1_200 + by,
      1_200 + by,
      1_200,
    ])
    pass(engine, by - 1)
    advance(queue, now)
    expect(job.state).toBe(STATE.leased)
    pass(engine, 1)
    advance(queue, now)
    expect(job.state).toBe(STATE.delayed)
  })

  it('that expires three times in a row stalls its consumer until it sends anything', () => {
    const engine = startEngine({ max_attempts: 9 })
    const { queue, topic, now } = engine
    const consumer = enter(engine, { prefetch: 8 })
    addJobs(engine, numbered(4), { ackDeadlineMs: 1_000 })
    expect(deliver(engine).length).toBe(4)
    for (const id of ['j0', 'j1']) extend(queue, consumer, ref(id), 2_000, now)
    pass(engine, 1_000)
    advance(queue, now)
    expect([consumer.expiredInRow, consumer.isStalled, topic.counts.stalled]).toEqual([2, false, 0])
    pass(engine, 1_000)
    advance(queue, now)
    expect(consumer).toMatchObject({ expiredInRow: 4, isStalled: true, isFree: false })
    expect([topic.counts.stalled, topic.free.length]).toEqual([1, 0])
    addJobs(engine, ['next'])
    expect(deliver(engine)).toEqual([])

    pass(engine, 5)
    heard(queue, consumer, now)
    heard(queue, consumer, now)
    expect(consumer).toMatchObject({ expiredInRow: 0, isStalled: false, isFree: true, lastMessageAt: START + 2_005 })
    expect(topic.counts.stalled).toBe(0)
    advance(queue, now)
    expect(idsOf(deliver(engine))).toContain('next')
  })
})

describe('the end of a delivery', () => {
  const DEADLINE = 30_000

  describe('an acknowledgement', () => {
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

    it('keeps the beginning of a long error', () => {
      const { queue, consumer, now, job } = startDelivery()
      reject(queue, consumer, ref('a'), failure({ error: `${'e'.repeat(JOB_LIMITS.errorTextMax)}x` }), now)
      expect(job.past?.lastError).toBe('e'.repeat(JOB_LIMITS.errorTextMax))
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
})

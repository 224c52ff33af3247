import type { TopicConfig } from '@vacancy/shared/contract'
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
  resolve,
  setPrefetch,
} from './delivery.ts'
import { type Consumer, type Delivery, STATE } from './job.ts'
import { advance, cancel, configureTopic, deleteTopic } from './queue.ts'
import { readTail } from './tail.ts'
import {
  addJobs,
  addTopic,
  deliver,
  type Engine,
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
  it('begins with nothing counted, and an id apart from those of other partitions', () => {
    const engine = startEngine()
    pass(engine, 7)
    const first = enter(engine, { name: 'w', confirms: true, tokenName: 'tok', remote: '1.2.3.4:5' })
    const second = enter(engine)

    expect([first.id, second.id, engine.queue.nextConsumer]).toEqual([2, 6, 10])
    expect([...engine.queue.consumers.keys()]).toEqual([2, 6])
    expect(first).toMatchObject({
      ...{ name: 'w', topicName: 'orders', confirms: true, tokenName: 'tok', remote: '1.2.3.4:5' },
      ...{ connectedAt: START + 7, lastMessageAt: 0, heardAt: 0, delivered: 0, acked: 0, expiredInRow: 0 },
      ...{ isStalled: false, isPaused: false, isFree: true },
    })
    expect([...engine.topic.consumers]).toEqual([first, second])
  })

  it.each([
    ['10 that adapt without a prefetch', undefined, 10, true],
    ['its prefetch', 1, 1, false],
    ['its prefetch at the limit', 500, 500, false],
    ['the limit for a larger prefetch', 501, 500, false],
  ])('has a window of %s', (_, prefetch, window, isAdaptive) => {
    expect(enter(startEngine(), { prefetch })).toMatchObject({ window, isAdaptive })
  })

  it('gets at most its window, and one more for each that it acknowledges', () => {
    const engine = startEngine()
    addJobs(engine, numbered(5))
    const consumer = enter(engine, { prefetch: 2 })

    expect(idsOf(deliver(engine))).toEqual(['j0', 'j1'])
    expect(consumer.isFree).toBe(false)
    acknowledge(engine.queue, consumer, ref('j1'), engine.now)
    expect(idsOf(deliver(engine))).toEqual(['j2'])
    expect(consumer).toMatchObject({ delivered: 3, acked: 1, nextSeqId: 4 })
    expect([...consumer.deliveries.keys()]).toEqual([1, 3])
    expect(engine.topic.counts).toMatchObject({ ready: 2, leased: 2 })
  })

  it('waits for a topic that does not exist yet, and gets its jobs then', () => {
    const engine = startEngine()
    const [first, second] = [enter(engine, { topicName: 'mail' }), enter(engine, { topicName: 'mail' })]
    expect([first.topic, [...(engine.queue.waiting.get('mail') ?? [])]]).toEqual([undefined, [first, second]])

    disconnect(engine.queue, first, engine.now)
    expect([...(engine.queue.waiting.get('mail') ?? [])]).toEqual([second])

    const mail = addTopic(engine, 'mail', {})
    expect([second.topic, engine.queue.waiting.size]).toEqual([mail, 0])
    addJobs(engine, ['m'], {}, mail)
    expect(deliver(engine).map(({ consumer }) => consumer)).toEqual([second])
  })

  it('is forgotten when it leaves before its topic exists', () => {
    const engine = startEngine()
    const consumer = enter(engine, { topicName: 'mail' })
    expect(acknowledge(engine.queue, consumer, ref('a'), engine.now)).toBe('unknown')
    expect(release(engine.queue, consumer, ref('a'), engine.now)).toBe('unknown')
    pauseConsumer(engine.queue, consumer, true)
    setPrefetch(engine.queue, consumer, 0)
    heard(engine.queue, consumer, engine.now)
    disconnect(engine.queue, consumer, engine.now)

    expect([engine.queue.waiting.size, engine.queue.consumers.size]).toEqual([0, 0])
    expect(() => disconnect(engine.queue, consumer, engine.now)).toThrow('a consumer disconnects once')
  })

  it('gets nothing while it is paused, and keeps what it has', () => {
    const engine = startEngine()
    addJobs(engine, numbered(4))
    const consumer = enter(engine, { prefetch: 2 })
    deliver(engine)
    pauseConsumer(engine.queue, consumer, true)
    acknowledge(engine.queue, consumer, ref('j0'), engine.now)
    expect([deliver(engine), consumer.deliveries.size, consumer.isFree]).toEqual([[], 1, false])

    pauseConsumer(engine.queue, consumer, false)
    expect(idsOf(deliver(engine))).toEqual(['j2'])
  })

  it('leaves its turn when it is paused', () => {
    const engine = startEngine()
    const [paused, other] = [enter(engine), enter(engine)]
    pauseConsumer(engine.queue, paused, true)
    pauseConsumer(engine.queue, paused, true)
    expect(engine.topic.free.length).toBe(1)
    addJobs(engine, numbered(3))
    expect(deliver(engine).map(({ consumer }) => consumer)).toEqual([other, other, other])
    pauseConsumer(engine.queue, paused, false)
    expect(engine.topic.free.length).toBe(2)
  })

  it.each([
    [0, 0, []],
    [2, 2, []],
    [3, 3, ['j3']],
    [600, 500, ['j3', 'j4']],
  ])('that sets its prefetch to %d has the window %d', (prefetch, window, more) => {
    const engine = startEngine()
    addJobs(engine, numbered(3))
    const consumer = enter(engine, { prefetch: undefined })
    deliver(engine)
    acknowledge(engine.queue, consumer, ref('j0'), engine.now)

    setPrefetch(engine.queue, consumer, prefetch)
    expect(consumer).toMatchObject({ window, isAdaptive: false, isFree: prefetch > 2 })
    addJobs(engine, ['j3', 'j4'])
    expect(idsOf(deliver(engine))).toEqual(more)
    setPrefetch(engine.queue, consumer, 100)
    expect(deliver(engine).length).toBe(2 - more.length)
  })

  it('that leaves gives its jobs back at once to their old places, which is no failure', () => {
    const engine = startEngine()
    addJobs(engine, numbered(4))
    const leaving = enter(engine, { name: 'old', prefetch: 2 })
    deliver(engine)
    pass(engine, 5)
    disconnect(engine.queue, leaving, engine.now)

    expect([leaving.topic, leaving.isPaused, engine.topic.free.length]).toEqual([undefined, true, 0])
    expect([engine.topic.consumers.size, engine.queue.consumers.size, engine.queue.leases.count]).toEqual([0, 0, 0])
    expect(engine.topic.totals).toMatchObject({ disconnected: 2, nacked: 0, expired: 0, dead: 0 })
    expect(engine.topic.counts).toMatchObject({ ready: 4, leased: 0, dead: 0 })
    expect(jobOf(engine, 'j1')).toMatchObject({ state: STATE.ready, failures: 0, deliveries: 1, delivery: undefined })
    expect(jobOf(engine, 'j1').past?.history).toEqual([
      { at: START + 5, event: 'disconnect', consumer: 'old', error: '' },
    ])
    expect(write(engine)).toEqual(['update 1', 'update 2'])
    enter(engine)
    expect(idsOf(deliver(engine))).toEqual(['j0', 'j1', 'j2', 'j3'])
    expect(engine.topic.totals).toMatchObject({ delivered: 6, redelivered: 2 })
  })

  it('that leaves in its turn is in no list any more', () => {
    const engine = startEngine()
    const [leaving, staying] = [enter(engine), enter(engine)]
    disconnect(engine.queue, leaving, engine.now)
    expect([leaving.isFree, engine.topic.free.first, engine.topic.free.length]).toEqual([false, staying, 1])
    addJobs(engine, ['a'])
    expect(deliver(engine).map(({ consumer }) => consumer)).toEqual([staying])
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

  it('lets a consumer of an ordered topic have the next job when another one ends its own', () => {
    const engine = startEngine({ ordered: true })
    addJobs(engine, numbered(2))
    const [first, second] = [enter(engine, { name: 'a', prefetch: 1 }), enter(engine, { name: 'b' })]
    deliver(engine)
    pauseConsumer(engine.queue, first, true)
    acknowledge(engine.queue, first, ref('j0'), engine.now)
    expect(deliver(engine).map(({ consumer }) => consumer)).toEqual([second])
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

  it('takes nothing from the rate of a topic without one', () => {
    const engine = startEngine()
    addJobs(engine, numbered(3))
    enter(engine)
    deliver(engine)
    expect(engine.topic.allowance).toBe(0)
  })

  it('gives nothing to a consumer whose window was cut below what it has', () => {
    const engine = startEngine({ rate_per_sec: 100 })
    addJobs(engine, numbered(6))
    const consumer = enter(engine, { prefetch: undefined })
    deliver(engine)
    pass(engine, DEADLINE / 2)
    for (const id of ['j0', 'j1']) acknowledge(engine.queue, consumer, ref(id), engine.now)
    expect([consumer.window, consumer.deliveries.size, consumer.isFree]).toEqual([2, 4, true])
    addJobs(engine, ['next'])

    expect(deliver(engine)).toEqual([])
    expect(engine.topic.allowance).toBe(100)
    for (const id of ['j2', 'j3'])
      resolve(engine.queue, jobOf(engine, id).delivery as Delivery, { kind: 'acked' }, engine.now)
    expect(deliver(engine)).toEqual([])
    resolve(engine.queue, jobOf(engine, 'j4').delivery as Delivery, { kind: 'acked' }, engine.now)
    expect(idsOf(deliver(engine))).toEqual(['next'])
  })

  it('skips a topic that was deleted while it waited for its turn', () => {
    const engine = startEngine()
    const consumer = enter(engine)
    addJobs(engine, ['a'])
    deleteTopic(engine.queue, engine.topic)
    expect(deliver(engine)).toEqual([])
    expect([consumer.topic, engine.topic.isRunnable]).toEqual([undefined, false])
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

  it('counts no negative waiting time after the wall clock was set back', () => {
    const engine = startEngine()
    addJobs(engine, ['a'])
    engine.now.wallMs -= 5_000
    enter(engine)
    deliver(engine)
    expect(engine.topic.deliverySeconds.sum).toBe(0)
  })

  it('measures the time to the first delivery only', () => {
    const { engine, queue, consumer, now, topic, job } = startDelivery()
    release(queue, consumer, ref('a'), now)
    reject(queue, jobDelivered(engine), ref('a'), failure({ delayMs: 0 }), now)
    advance(queue, now)
    deliver(engine)

    expect(topic.totals).toMatchObject({ delivered: 3, redelivered: 1 })
    expect(topic.deliverySeconds.counts.reduce((sum, count) => sum + count, 0)).toBe(2)
    expect(eventsOf(job)).toEqual([
      ['release', 'w', ''],
      ['delivered', 'w', ''],
      ['nack', 'w', 'no room'],
      ['delivered', 'w', ''],
    ])
  })
})

/** Delivers the job again. @returns its consumer */
function jobDelivered(engine: Engine): Consumer {
  const [delivery] = deliver(engine)
  return (delivery as Delivery).consumer
}

describe('a lease', () => {
  it('expires at its deadline, which is a failure', () => {
    const { engine, queue, consumer, now, job, topic } = startDelivery({}, { ackDeadlineMs: 5_000 })
    pass(engine, 4_999)
    advance(queue, now)
    expect(job.state).toBe(STATE.leased)
    pass(engine, 1)
    advance(queue, now)
    expect(job).toMatchObject({ state: STATE.delayed, failures: 1, deliveries: 1 })
    expect(topic.totals).toMatchObject({ expired: 1, nacked: 0 })
    expect(eventsOf(job)).toEqual([['expired', 'w', 'ack deadline exceeded']])
    expect([consumer.expiredInRow, consumer.isStalled, job.past?.lastError]).toEqual([
      1,
      false,
      'ack deadline exceeded',
    ])
  })

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

  it('is extended by activity for the other jobs of its consumer', () => {
    const engine = startEngine()
    addJobs(engine, ['a', 'b'], { ackDeadlineMs: 5_000 })
    const consumer = enter(engine)
    deliver(engine)
    pass(engine, 3_000)
    acknowledge(engine.queue, consumer, ref('a'), engine.now)
    pass(engine, 2_000)
    advance(engine.queue, engine.now)
    expect(jobOf(engine, 'b').state).toBe(STATE.leased)
    pass(engine, 3_000)
    advance(engine.queue, engine.now)
    expect(jobOf(engine, 'b').state).toBe(STATE.delayed)
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

  it('that expires after a message of its consumer counts from one again', () => {
    const engine = startEngine()
    const consumer = enter(engine)
    addJobs(engine, numbered(3), { ackDeadlineMs: 1_000 })
    deliver(engine)
    extend(engine.queue, consumer, ref('j0'), 2_000, engine.now)
    pass(engine, 1_000)
    advance(engine.queue, engine.now)
    heard(engine.queue, consumer, engine.now)
    pass(engine, 1_000)
    advance(engine.queue, engine.now)
    expect([consumer.expiredInRow, consumer.isStalled]).toEqual([1, false])
  })

  it('that expires leaves the turns of other consumers alone, also when its own consumer has none', () => {
    const engine = startEngine()
    const { queue, now, topic } = engine
    const silent = enter(engine, { prefetch: 3 })
    addJobs(engine, numbered(3), { ackDeadlineMs: 1_000 })
    deliver(engine)
    setPrefetch(queue, silent, 0)
    const other = enter(engine)
    pass(engine, 1_000)
    advance(queue, now)
    expect([silent.isStalled, silent.isFree, topic.free.first, topic.free.length]).toEqual([true, false, other, 1])
  })

  it('of a stalled consumer that leaves is not counted any more', () => {
    const engine = startEngine()
    const consumer = enter(engine, { prefetch: 3 })
    addJobs(engine, numbered(3), { ackDeadlineMs: 1_000 })
    deliver(engine)
    pass(engine, 1_000)
    advance(engine.queue, engine.now)
    expect(engine.topic.counts.stalled).toBe(1)
    disconnect(engine.queue, consumer, engine.now)
    expect([engine.topic.counts.stalled, engine.topic.consumers.size]).toEqual([0, 0])
  })

  it('ends without a result when its job is cancelled by force', () => {
    const { queue, consumer, delivery, topic, now } = startDelivery()
    cancel(queue, delivery.job, true, now)
    expect([delivery.isResolved, consumer.deliveries.size, topic.counts.leased]).toEqual([true, 0, 0])
    expect(topic.totals).toMatchObject({ acked: 0, nacked: 0, cancelled: 1 })
    expect(consumer.acked).toBe(0)
  })
})

it('a live tail shows how deliveries end, and with which consumer', () => {
  const engine = startEngine({ max_attempts: 2, retry_base_ms: 0 })
  const { queue, topic, now } = engine
  const { cursor } = readTail(queue, topic, undefined, () => null, now)
  addJobs(engine, ['a'], { ackDeadlineMs: 1_000 })
  let consumer = enter(engine, { name: 'one' })
  deliver(engine)
  release(queue, consumer, ref('a'), now)
  deliver(engine)
  disconnect(queue, consumer, now)
  consumer = enter(engine, { name: 'two' })
  deliver(engine)
  pass(engine, 1_000)
  advance(queue, now)
  advance(queue, now)
  deliver(engine)
  reject(queue, consumer, ref('a'), failure(), now)
  addJobs(engine, ['b'])
  deliver(engine)
  acknowledge(queue, consumer, ref('b'), now)

  const { events } = readTail(queue, topic, cursor, () => null, now)
  expect(events.map(({ event, consumer: by, error }) => [event, by, error])).toEqual([
    ['accepted', null, null],
    ['delivered', 'one', null],
    ['released', 'one', null],
    ['delivered', 'one', null],
    ['disconnected', 'one', null],
    ['delivered', 'two', null],
    ['expired', 'two', 'ack deadline exceeded'],
    ['delivered', 'two', null],
    ['failed', 'two', 'no room'],
    ['dead', null, 'no room'],
    ['accepted', null, null],
    ['delivered', 'two', null],
    ['done', 'two', null],
  ])
})

it('a topic whose configuration frees it is delivered at once', () => {
  const engine = startEngine({ paused: true })
  addJobs(engine, numbered(2))
  enter(engine)
  expect(deliver(engine)).toEqual([])
  configureTopic(engine.queue, engine.topic, { ...engine.topic.config, paused: false }, engine.now)
  expect(idsOf(deliver(engine))).toEqual(['j0', 'j1'])
})

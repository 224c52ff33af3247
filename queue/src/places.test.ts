import { type DEAD_REASONS, JOB_LIMITS, type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, it } from 'vitest'
import { findById } from './id-index.ts'
import { FLAG, type Job, type NewJob, STATE } from './job.ts'
import {
  burstOf,
  detach,
  die,
  enterDelayed,
  finish,
  forgetJob,
  markRunnable,
  noteIn,
  oldestReady,
  reenterReady,
  refill,
  setAlarm,
  takeReady,
  trimDead,
} from './places.ts'
import { advance, deleteTopic, restoreTopic, submit } from './queue.ts'
import { FINISHED_ID_BYTES, JOB_OVERHEAD_BYTES } from './state.ts'
import { readTail } from './tail.ts'
import { addJob, type Engine, enter, pass, START, startEngine, write } from './testing/engine.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

/** Takes a ready job and makes it dead. */
function kill({ queue, topic, now }: Engine, error = '', reason: (typeof DEAD_REASONS)[number] = 'rejected'): Job {
  const job = takeReady(topic)
  job.state = STATE.leased
  if (error !== '') noteIn(job, 'nack', 'w', error, now).lastError = error
  die(queue, job, reason, now)
  return job
}

const take = ({ topic }: Engine, count: number) => Array.from({ length: count }, () => takeReady(topic).id)

describe('ready jobs', () => {
  it('are taken by priority, then in the order in which they became ready', () => {
    const engine = startEngine()
    for (const [id, priority] of [
      ['low', 0],
      ['high-1', 9],
      ['middle', 4],
      ['high-2', 9],
    ] as const)
      addJob(engine, id, { priority })
    expect(engine.topic.counts.ready).toBe(4)
    expect(take(engine, 4)).toEqual(['high-1', 'high-2', 'middle', 'low'])
    expect(engine.topic.counts.ready).toBe(0)
    expect(() => takeReady(engine.topic)).toThrow('a topic with ready jobs has one in its lists')
  })

  it('that come back go before those of their priority, in their old order', () => {
    const engine = startEngine()
    const jobs = ['a', 'b', 'c', 'd'].map((id) => addJob(engine, id))
    take(engine, 3)
    for (const job of [jobs[2], jobs[0]] as Job[]) {
      job.state = STATE.leased
      reenterReady(engine.queue, job)
    }
    expect(jobs.map(({ place }) => place)).toEqual([0, 1, 2, 3])
    expect(jobs.map(({ state }) => state)).toEqual(jobs.map(() => STATE.ready))
    expect(engine.topic.counts.ready).toBe(3)
    expect(take(engine, 3)).toEqual(['a', 'c', 'd'])
  })

  it('that come back with a higher priority than all others go first', () => {
    const engine = startEngine()
    const [urgent] = [addJob(engine, 'urgent', { priority: 9 }), addJob(engine, 'usual')]
    take(engine, 1)
    const guard = addJob(engine, 'other', { priority: 5 })
    take(engine, 1)
    for (const job of [guard, urgent]) reenterReady(engine.queue, job)
    expect(take(engine, 3)).toEqual(['urgent', 'other', 'usual'])
  })

  it.each([1, 3, 16])('of low priority are taken every %d times, the oldest one first', (guard) => {
    const engine = startEngine({ starvation_guard: guard })
    for (let n = 0; n < 3; n++) addJob(engine, `low-${n}`)
    for (let n = 0; n < 40; n++) addJob(engine, `high-${n}`, { priority: 9 })

    const taken = take(engine, 2 * guard)
    expect(taken[guard - 1]).toBe('low-0')
    expect(taken[2 * guard - 1]).toBe('low-1')
    expect(taken.filter((id) => id.startsWith('low')).length).toBe(2)
  })

  it('are taken as a sorted list gives them, whatever enters, returns and leaves', () => {
    const random = createRandom(SEED)
    const engine = startEngine({ starvation_guard: 5 })
    let waiting: Job[] = []
    const away: Job[] = []
    for (let step = 0, untilOldest = 5; step < 600; step++) {
      const kind = random.below(4)
      if (kind < 2) waiting.push(addJob(engine, `j${step}`, { priority: random.below(3) * 4 }))
      else if (kind === 2 && away.length > 0) {
        const [job] = away.splice(random.below(away.length), 1) as [Job]
        reenterReady(engine.queue, job)
        waiting.push(job)
      } else if (waiting.length > 0) {
        const byPlace = waiting.toSorted((a, b) => b.priority - a.priority || a.place - b.place)
        const bySeq = waiting.toSorted((a, b) => a.seq - b.seq)
        const oldest = oldestOf(bySeq, byPlace)
        expect(oldestReady(engine.topic)?.id, `seed ${SEED}, step ${step}`).toBe(oldest.id)
        untilOldest--
        const expected = untilOldest === 0 ? oldest : (byPlace[0] as Job)
        if (untilOldest === 0) untilOldest = 5
        const job = takeReady(engine.topic)
        expect(job.id, `seed ${SEED}, step ${step}`).toBe(expected.id)
        job.state = STATE.leased
        waiting = waiting.filter((each) => each !== job)
        away.push(job)
      }
      expect(engine.topic.counts.ready, `seed ${SEED}, step ${step}`).toBe(waiting.length)
    }
  })

  /** The oldest job by acceptance of those that are first of their priority. */
  function oldestOf(bySeq: readonly Job[], byPlace: readonly Job[]): Job {
    const heads = new Set([0, 4, 8].map((priority) => byPlace.find((job) => job.priority === priority)))
    return bySeq.find((job) => heads.has(job)) as Job
  }

  it('make their topic runnable once, when a consumer has room', () => {
    const engine = startEngine()
    addJob(engine, 'a')
    expect([engine.topic.isRunnable, engine.queue.runnable.length]).toEqual([false, 0])
    enter(engine)
    expect([engine.topic.isRunnable, engine.queue.runnable.length]).toEqual([true, 1])
    addJob(engine, 'b')
    markRunnable(engine.queue, engine.topic)
    expect(engine.queue.runnable.length).toBe(1)

    const empty = startEngine()
    enter(empty)
    markRunnable(empty.queue, empty.topic)
    expect(empty.queue.runnable.length).toBe(0)
    empty.topic.isGone = true
    empty.topic.counts.ready = 1
    markRunnable(empty.queue, empty.topic)
    expect(empty.queue.runnable.length).toBe(0)
  })
})

describe('a job that leaves where it waits', () => {
  it('is in no list and no count any more', () => {
    const engine = startEngine()
    const { queue, topic } = engine
    const ready = addJob(engine, 'ready', { priority: 3 })
    const returned = addJob(engine, 'returned', { priority: 4 })
    const later = addJob(engine, 'later', { runAt: START + 500 })
    const planned = addJob(engine, 'planned', { runAt: START + 500, flags: FLAG.calendar })
    expect(takeReady(topic)).toBe(returned)
    reenterReady(queue, returned)
    expect(topic.counts).toMatchObject({ ready: 2, delayed: 2 })
    expect([topic.delayed.items, topic.scheduled.items]).toEqual([[later], [planned]])

    for (const job of [ready, returned, later, planned]) detach(queue, job)

    expect(topic.counts).toEqual({ ready: 0, delayed: 0, leased: 0, dead: 0, pending: 0, stalled: 0 })
    expect([topic.ready[3]?.length, topic.returned[4]?.items.length]).toEqual([0, 0])
    expect([topic.delayed.items.length, topic.scheduled.items.length]).toEqual([0, 0])
    expect(oldestReady(topic)).toBeUndefined()
  })

  it.each(['leased', 'gone'] as const)('is not %s', (state) => {
    const engine = startEngine()
    const job = addJob(engine, 'a')
    job.state = STATE[state]
    expect(() => detach(engine.queue, job)).toThrow('a leased job must be resolved')
  })

  it('while it is not stored yet is not counted as pending any more', () => {
    const engine = startEngine()
    const job = { priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: undefined, bytes: 7 }
    submit(engine.queue, engine.topic, [{ ...job, id: 'a' }], engine.now)
    expect(engine.topic.counts.pending).toBe(1)
    forgetJob(engine.queue, findById(engine.topic.jobs, 'a') as Job)
    expect([engine.topic.counts.pending, engine.topic.bytes, engine.queue.bytes, engine.topic.jobs.size]).toEqual([
      0, 0, 0, 0,
    ])
  })

  it('of a deleted topic is left alone', () => {
    const engine = startEngine()
    const job = addJob(engine, 'a')
    deleteTopic(engine.queue, engine.topic)
    forgetJob(engine.queue, job)
    expect([job.state, engine.queue.bytes]).toEqual([STATE.ready, 0])
  })
})

describe('the alarm of a topic', () => {
  it('is at the first delayed job, by whichever clock it follows', () => {
    const engine = startEngine()
    const { queue, topic, now } = engine
    expect([topic.alarmAt, queue.alarms.items.length]).toEqual([Number.POSITIVE_INFINITY, 0])
    const a = addJob(engine, 'a', { runAt: START + 900 })
    expect([a.state, a.dueAt, topic.alarmAt]).toEqual([STATE.delayed, 1_900, 1_900])
    addJob(engine, 'b', { runAt: START + 2_000 })
    expect(topic.alarmAt).toBe(1_900)
    addJob(engine, 'c', { runAt: START + 400, flags: FLAG.calendar })
    expect([topic.alarmAt, queue.alarms.items.length]).toEqual([1_400, 1])

    // The wall clock alone goes 100 ms ahead.
    now.wallMs += 100
    setAlarm(queue, topic, now)
    expect(topic.alarmAt).toBe(1_300)
    now.wallMs -= 1_000
    setAlarm(queue, topic, now)
    expect(topic.alarmAt).toBe(1_900)
  })

  it('ends when nothing waits any more', () => {
    const engine = startEngine()
    const job = addJob(engine, 'a', { runAt: START + 900 })
    detach(engine.queue, job)
    setAlarm(engine.queue, engine.topic, engine.now)
    setAlarm(engine.queue, engine.topic, engine.now)
    expect([engine.topic.alarmAt, engine.queue.alarms.items.length]).toEqual([Number.POSITIVE_INFINITY, 0])
  })

  it('keeps its order among those of other topics', () => {
    const engine = startEngine()
    const other = restoreTopic(
      engine.queue,
      { name: 'mail', number: 9, config: topicConfig.parse({}), redrive: undefined, createdAt: START },
      engine.now,
    )
    addJob(engine, 'a', { runAt: START + 900 })
    addJob({ ...engine, topic: other }, 'b', { runAt: START + 500 })
    expect(engine.queue.alarms.items[0]).toBe(other)
    addJob(engine, 'c', { runAt: START + 300 })
    expect([engine.queue.alarms.items[0], engine.queue.alarms.items.length]).toEqual([engine.topic, 2])
  })

  it.each([
    [4, 0, 1_250],
    [4, 0.6, 1_100],
    [0.5, 0, 3_000],
    [4, 1, Number.POSITIVE_INFINITY],
    [0, 0, Number.POSITIVE_INFINITY],
  ])('of %d jobs a second with %d left is at %d', (rate_per_sec, allowance, at) => {
    const engine = startEngine({ rate_per_sec })
    addJob(engine, 'a')
    enter(engine)
    engine.topic.allowance = allowance
    setAlarm(engine.queue, engine.topic, engine.now)
    if (Number.isFinite(at)) expect(engine.topic.alarmAt).toBeCloseTo(at, 6)
    else expect(engine.topic.alarmAt).toBe(at)
  })

  it.each(['paused', 'without jobs', 'without consumers'])('does not follow the rate of a topic that is %s', (what) => {
    const engine = startEngine({ rate_per_sec: 4, paused: what === 'paused' })
    if (what !== 'without jobs') addJob(engine, 'a')
    if (what !== 'without consumers') enter(engine)
    engine.topic.allowance = 0
    setAlarm(engine.queue, engine.topic, engine.now)
    expect(engine.topic.alarmAt).toBe(Number.POSITIVE_INFINITY)
  })

  it.each([
    [0, 1],
    [0.2, 1],
    [1, 1],
    [7.5, 7.5],
  ])('a rate of %d a second allows %d at once', (rate_per_sec, burst) => {
    expect(burstOf(topicConfig.parse({ rate_per_sec }))).toBe(burst)
  })

  it('the allowance grows with time, up to a second of the rate', () => {
    const { topic, now } = startEngine({ rate_per_sec: 8 })
    topic.allowance = 1
    refill(topic, { ...now, monotonicMs: 1_250 })
    expect([topic.allowance, topic.allowanceAt]).toEqual([3, 1_250])
    refill(topic, { ...now, monotonicMs: 1_250 })
    expect(topic.allowance).toBe(3)
    refill(topic, { ...now, monotonicMs: 9_000 })
    expect([topic.allowance, topic.allowanceAt]).toEqual([8, 9_000])
  })

  it('makes a delayed job ready at the end of the line', () => {
    const engine = startEngine()
    addJob(engine, 'early', { runAt: START + 100 })
    addJob(engine, 'late')
    pass(engine, 100)
    advance(engine.queue, engine.now)
    expect(take(engine, 2)).toEqual(['late', 'early'])
  })

  it('a delay counts from now on both clocks', () => {
    const engine = startEngine()
    const job = takeReadyOf(engine, 'a')
    pass(engine, 20)
    enterDelayed(engine.queue, job, 300, engine.now)
    expect(job).toMatchObject({ state: STATE.delayed, runAt: START + 320, dueAt: 1_320 })
    expect([engine.topic.counts.delayed, engine.topic.alarmAt]).toEqual([1, 1_320])
  })

  function takeReadyOf(engine: Engine, id: string): Job {
    addJob(engine, id)
    return takeReady(engine.topic)
  }
})

describe('dead jobs', () => {
  it('count apart from unfinished ones, with what happened to them', () => {
    const engine = startEngine()
    const { queue, topic, now } = engine
    addJob(engine, 'a', { bytes: 50 })
    addJob(engine, 'b', { bytes: 7 })
    pass(engine, 30)
    const job = kill(engine, 'timeout after 12 ms', 'max_attempts')

    expect(job).toMatchObject({
      state: STATE.dead,
      past: { reason: 'max_attempts', deadAt: START + 30, agesFrom: 1_030 },
    })
    expect(job.past?.history).toEqual([
      { at: START + 30, event: 'nack', consumer: 'w', error: 'timeout after 12 ms' },
      { at: START + 30, event: 'dead', consumer: '', error: 'timeout after 12 ms' },
    ])
    expect([topic.bytes, topic.deadBytes, topic.counts.dead, topic.dead.length]).toEqual([7, 50, 1, 1])
    expect(queue.bytes).toBe(57 + 2 * JOB_OVERHEAD_BYTES)
    expect([topic.totals.dead, topic.totals.deadDropped]).toEqual([1, 0])
    expect(topic.deadByReason).toEqual({ max_attempts: 1, max_deliveries: 0, rejected: 0 })
    expect([...queue.aging]).toEqual([topic])
    expect(write({ queue, now })).toEqual(['update 1'])
  })

  it('are grouped by their error without its numbers, or by their reason', () => {
    const engine = startEngine()
    for (const id of ['a', 'b', 'c', 'd']) addJob(engine, id)
    const [a, b, c, d] = [
      kill(engine, 'timeout after 12 ms'),
      kill(engine, 'timeout after 7 ms'),
      kill(engine),
      kill(engine, 'x'),
    ]
    const groups = [...engine.topic.deadGroups.values()].map(({ jobs }) => [...jobs.values()])
    expect(groups).toEqual([[a, b], [c], [d]])
    expect([...engine.topic.deadGroups.keys()].slice(1)).toEqual(['rejected', 'x'])
    expect(c?.past?.group?.name).toBe('rejected')

    detach(engine.queue, b as Job)
    detach(engine.queue, d as Job)
    expect(engine.topic.deadGroups.size).toBe(2)
    expect(b?.past?.group).toBeUndefined()
    expect([engine.topic.counts.dead, engine.topic.deadBytes, engine.topic.dead.length]).toEqual([2, 4, 2])
    expect(() => detach(engine.queue, b as Job)).toThrow('a dead job is in a group')
  })

  it('a group knows when its last job died', () => {
    const engine = startEngine()
    for (const id of ['a', 'b']) addJob(engine, id)
    pass(engine, 90)
    kill(engine, 'x')
    // The wall clock was set back.
    engine.now.wallMs -= 60
    kill(engine, 'x')
    expect(engine.topic.deadGroups.get('x')?.last).toBe(START + 90)
  })

  it.each<[string, Partial<TopicConfig>, string[]]>([
    ['as many as a topic keeps', { dlq_max_jobs: 3 }, ['a', 'b', 'c']],
    ['more than a topic keeps', { dlq_max_jobs: 2 }, ['b', 'c']],
    ['as many bytes as a topic keeps', { dlq_max_bytes: 30 }, ['a', 'b', 'c']],
    ['more bytes than a topic keeps', { dlq_max_bytes: 29 }, ['b', 'c']],
    ['any, where none are kept', { dlq_max_jobs: 0 }, []],
  ])('%s leave the newest ones', (_, config, left) => {
    const engine = startEngine()
    for (const id of ['a', 'b', 'c']) {
      addJob(engine, id, { bytes: 10 })
      kill(engine, 'x')
    }
    write(engine)
    engine.topic.config = { ...engine.topic.config, ...config }
    trimDead(engine.queue, engine.topic)

    const ids = []
    for (let job = engine.topic.dead.first; job !== undefined; job = job.next) ids.push(job.id)
    expect(ids).toEqual(left)
    expect(write(engine)).toEqual([1, 2, 3].slice(0, 3 - left.length).map((seq) => `done ${seq}`))
    expect(engine.topic.totals.deadDropped).toBe(3 - left.length)
    expect([engine.topic.deadBytes, engine.topic.bytes]).toEqual([10 * left.length, 0])
    expect(engine.queue.bytes).toBe(left.length * (10 + JOB_OVERHEAD_BYTES))
  })

  it('are dropped when one more dies', () => {
    const engine = startEngine({ dlq_max_jobs: 1 })
    for (const id of ['a', 'b']) addJob(engine, id)
    kill(engine)
    kill(engine)
    expect([engine.topic.dead.first?.id, engine.topic.counts.dead]).toEqual(['b', 1])
  })

  it('are shown in a live tail with their error', () => {
    const engine = startEngine()
    addJob(engine, 'a')
    readTail(engine.queue, engine.topic, undefined, () => null, engine.now)
    kill(engine, 'x')
    const { events } = readTail(engine.queue, engine.topic, undefined, () => null, engine.now)
    expect(events.map(({ event, id, error }) => [event, id, error])).toEqual([['dead', 'a', 'x']])
  })
})

describe('a job that is done', () => {
  const done = (engine: Engine, fields: Partial<NewJob> = {}) => {
    addJob(engine, 'a', fields)
    pass(engine, 70)
    const job = takeReady(engine.topic)
    job.state = STATE.leased
    job.deliveries = 3
    job.failures = 2
    finish(engine.queue, job, 'worker', engine.now)
    return job
  }

  it('leaves memory, and is shown for a while', () => {
    const engine = startEngine({ max_attempts: 4 })
    const job = done(engine, { bytes: 9, priority: 5 })
    expect([job.state, engine.topic.jobs.size, engine.topic.bytes, engine.queue.bytes]).toEqual([STATE.gone, 0, 0, 0])
    expect(engine.topic.shown.items[engine.topic.shown.head]).toEqual({
      ...{ id: 'a', priority: 5, failures: 2, deliveries: 3, maxAttempts: 4, bytes: 9, consumer: 'worker' },
      ...{ createdAt: START, finishedAt: START + 70 },
    })
    expect(write(engine)).toEqual(['done 1'])
    expect([engine.topic.finished.size, engine.queue.aging.size]).toEqual([0, 0])
  })

  it('is known for the dedup window of its topic', () => {
    const engine = startEngine({ dedup_window_sec: 1 })
    done(engine, { maxAttempts: 7 })
    expect([...engine.topic.finished]).toEqual([['a', 1_070]])
    expect([...engine.queue.aging]).toEqual([engine.topic])
    expect(engine.queue.bytes).toBe(FINISHED_ID_BYTES)
    const [group] = engine.queue.groups
    expect(group?.changes).toEqual([
      { kind: 'done', seq: 1 },
      { kind: 'finished', topicNumber: 1, id: 'a', at: START + 70 },
    ])
    expect(engine.topic.shown.items[engine.topic.shown.head]?.maxAttempts).toBe(7)
  })

  it('is shown in a live tail with its consumer', () => {
    const engine = startEngine()
    readTail(engine.queue, engine.topic, undefined, () => null, engine.now)
    done(engine)
    const { events } = readTail(engine.queue, engine.topic, undefined, () => null, engine.now)
    expect(events.map(({ event, id, consumer }) => [event, id, consumer])).toEqual([
      ['accepted', 'a', null],
      ['done', 'a', 'worker'],
    ])
  })

  it('leaves the list of finished jobs when it is full', () => {
    const engine = startEngine()
    const finishOne = (n: number) => {
      addJob(engine, `j${n}`)
      finish(engine.queue, Object.assign(takeReady(engine.topic), { state: STATE.leased }), 'w', engine.now)
    }
    for (let n = 0; n < JOB_LIMITS.finishedShownMax; n++) finishOne(n)
    const { shown } = engine.topic
    expect([shown.length, shown.items[shown.head]?.id]).toEqual([1_000, 'j0'])
    finishOne(1_000)
    expect([shown.length, shown.items[shown.head]?.id]).toEqual([1_000, 'j1'])
  })

  it('is remembered less long where there are many topics', () => {
    const engine = startEngine()
    // As many as let each remember one.
    for (let n = engine.queue.topics.size; n < 200_000; n++) engine.queue.topics.set(`t${n}`, engine.topic)
    for (const id of ['a', 'b']) {
      addJob(engine, id)
      finish(engine.queue, Object.assign(takeReady(engine.topic), { state: STATE.leased }), 'w', engine.now)
    }
    expect([engine.topic.shown.length, engine.topic.shown.items[engine.topic.shown.head]?.id]).toEqual([1, 'b'])
  })

  it('with a delivery in progress is refused', () => {
    const engine = startEngine()
    const job = addJob(engine, 'a')
    job.delivery = {} as NonNullable<Job['delivery']>
    expect(() => forgetJob(engine.queue, job)).toThrow('a job that ends has no delivery')
  })
})

it('a job keeps the last lines of its history', () => {
  const engine = startEngine()
  const job = addJob(engine, 'a')
  expect(job.past).toBeUndefined()
  for (let n = 0; n < JOB_LIMITS.historyMax; n++) noteIn(job, 'nack', `w${n}`, `error ${n}`, engine.now)
  expect(job.past).toMatchObject({ lastError: '', reason: undefined, deadAt: 0, agesFrom: 0, group: undefined })
  expect(job.past?.history.length).toBe(20)
  expect(job.past?.history[0]).toEqual({ at: START, event: 'nack', consumer: 'w0', error: 'error 0' })
  const past = noteIn(job, 'expired', 'last', '', engine.now)
  expect([past.history.length, past.history[0]?.consumer, past.history.at(-1)?.consumer]).toEqual([20, 'w1', 'last'])
})

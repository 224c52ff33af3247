import { type DEAD_REASONS, type DeadFilter, JOB_LIMITS, type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, it } from 'vitest'
import { FLAG, type Job, type NewJob, STATE } from './job.ts'
import {
  burstOf,
  detach,
  die,
  finish,
  noteIn,
  oldestReady,
  reenterReady,
  setAlarm,
  takeReady,
  trimDead,
} from './places.ts'
import { restoreJob } from './queue.ts'
import { FINISHED_ID_BYTES, JOB_OVERHEAD_BYTES } from './state.ts'
import { addJob, type Engine, pass, START, startEngine, USUAL_JOB, write } from './testing/engine.ts'
import { countDead, deadGroups, listDead, sampleRates, selectDead, topicStats } from './views.ts'

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

  it.each([
    [0, 1],
    [0.2, 1],
    [1, 1],
    [7.5, 7.5],
  ])('a rate of %d a second allows %d at once', (rate_per_sec, burst) => {
    expect(burstOf(topicConfig.parse({ rate_per_sec }))).toBe(burst)
  })
})

describe('dead jobs', () => {
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
})

const at = (ms: number) => new Date(START + ms).toISOString()

type Dead = { readonly error?: string; readonly deadMs?: number; readonly failures?: number }

function addDead(
  { queue, topic, now }: Engine,
  id: string,
  { error = 'x', deadMs = 0, failures = 1 }: Dead = {},
): void {
  const past = { lastError: error, reason: 'rejected' as const, deadAt: START + deadMs, history: [] }
  const counted = { failures, deliveries: failures, createdAt: START - 500, past }
  restoreJob(queue, topic, { ...USUAL_JOB, id, topicNumber: 1, seq: queue.nextSeq, isDead: true, ...counted }, now)
}

const idsOf = ({ jobs }: { readonly jobs: readonly { readonly id: string }[] }) => jobs.map(({ id }) => id)

describe('dead jobs', () => {
  const FILTERS: [string, DeadFilter, string[]][] = [
    ['of every kind', {}, ['a', 'b', 'c', 'd']],
    ['by a part of the error', { error: 'time' }, ['a', 'b']],
    ['by its group', { group: 'no room' }, ['c']],
    ['by a group that does not exist', { group: 'other' }, []],
    ['before a time', { before: at(20) }, ['a']],
    ['from a time on', { after: at(20) }, ['b', 'c', 'd']],
    ['between two times', { after: at(20), before: at(30) }, ['b']],
    ['by failures', { minFailures: 3 }, ['c', 'd']],
    ['by group and failures', { group: 'no room', minFailures: 4 }, []],
    ['by group and time', { group: 'no room', after: at(30) }, ['c']],
    ['by error and failures', { error: '1', minFailures: 2 }, ['b', 'd']],
  ]

  it.each(FILTERS)('are selected, counted and listed %s', (_, filter, ids) => {
    const engine = startEngine()
    addDead(engine, 'a', { error: 'timeout 12', deadMs: 10, failures: 1 })
    addDead(engine, 'b', { error: 'timeout 17', deadMs: 20, failures: 2 })
    addDead(engine, 'c', { error: 'no room', deadMs: 30, failures: 3 })
    addDead(engine, 'd', { error: 'status 1', deadMs: 40, failures: 4 })

    expect(selectDead(engine.topic, filter, 9).map(({ id }) => id)).toEqual(ids)
    expect(selectDead(engine.topic, filter, 1).map(({ id }) => id)).toEqual(ids.slice(0, 1))
    expect(countDead(engine.topic, filter)).toEqual({ count: ids.length, exact: true })
    expect(idsOf(listDead(engine.topic, 9, undefined, filter))).toEqual(ids)
  })

  it('are grouped by their error, the largest group first', () => {
    const engine = startEngine()
    addDead(engine, 'a', { error: 'no room', deadMs: 10 })
    addDead(engine, 'b', { error: 'timeout', deadMs: 20 })
    addDead(engine, 'c', { error: 'timeout', deadMs: 30 })
    expect(deadGroups(engine.topic)).toEqual([
      { group: 'timeout', count: 2, first: at(20), last: at(30), sampleId: 'b' },
      { group: 'no room', count: 1, first: at(10), last: at(10), sampleId: 'a' },
    ])
  })
})

describe('a topic', () => {
  it('has rates a second since the oldest of its samples, rounded to tenths', () => {
    const engine = startEngine()
    const { topic, queue, now } = engine
    Object.assign(topic.totals, { accepted: 10, delivered: 20, acked: 30, lateAcked: 40, nacked: 50, expired: 60 })
    sampleRates(queue, now)
    Object.assign(topic.totals, { accepted: 11, delivered: 22, acked: 33, lateAcked: 44, nacked: 55, expired: 66 })
    pass(engine, 999)
    expect(topicStats(topic, now).rates1m).toEqual({ accepted: 0, delivered: 0, acked: 0, failed: 0 })
    pass(engine, 1)
    expect(topicStats(topic, now).rates1m).toEqual({ accepted: 1, delivered: 2, acked: 7, failed: 11 })
    pass(engine, 2_000)
    expect(topicStats(topic, now).rates1m).toEqual({ accepted: 0.3, delivered: 0.7, acked: 2.3, failed: 3.7 })
  })
})

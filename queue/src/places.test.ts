import { type DEAD_REASONS, type TopicConfig, topicConfig } from '@vacancy/shared/contract'
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
import { FINISHED_ID_BYTES, JOB_OVERHEAD_BYTES } from './state.ts'
import { addJob, type Engine, pass, START, startEngine, write } from './testing/engine.ts'

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
})

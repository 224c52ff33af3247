import { type DeadFilter, JOB_LIMITS } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, it } from 'vitest'
import { dispatch } from './delivery.ts'
import { findById } from './id-index.ts'
import { FLAG, type Job } from './job.ts'
import { finish, reenterReady, takeReady } from './places.ts'
import { advance, restoreJob, submit } from './queue.ts'
import { addJob, type Engine, enter, pass, START, startEngine, USUAL_JOB, write } from './testing/engine.ts'
import {
  consumerView,
  countDead,
  deadGroups,
  finishedJobs,
  jobData,
  jobHead,
  jobView,
  listDead,
  listJobs,
  sampleRates,
  selectDead,
  shownJob,
  topicRow,
  topicStats,
} from './views.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
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

function deliver({ queue, now }: Engine): void {
  while (dispatch(queue, now, () => undefined));
}

function finishOne({ queue, topic, now }: Engine): void {
  const job = takeReady(topic)
  job.state = 3
  finish(queue, job, 'worker', now)
}

const idsOf = ({ jobs }: { readonly jobs: readonly { readonly id: string }[] }) => jobs.map(({ id }) => id)
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `j${from + n}`)

describe('a job', () => {
  const shared = {
    ...{ topic: 'orders', priority: 0, failures: 0, deliveries: 0, maxAttempts: 5, createdAt: at(0), bytes: 2 },
    ...{ runAt: null, leaseUntil: null, consumer: null, lastError: null, deadAt: null, reason: null, finishedAt: null },
  }

  it('that waits is shown with the values of its topic, or its own', () => {
    const engine = startEngine()
    const view = (job: Job) => jobView(engine.queue, job, engine.now)
    expect(view(addJob(engine, 'a'))).toEqual({ ...shared, id: 'a', state: 'ready' })
    expect(view(addJob(engine, 'b', { priority: 3, maxAttempts: 9, bytes: 70 }))).toEqual({
      ...shared,
      ...{ id: 'b', state: 'ready', priority: 3, maxAttempts: 9, bytes: 70 },
    })
    expect(view(addJob(engine, 'c', { runAt: START + 900 }))).toEqual({
      ...shared,
      ...{ id: 'c', state: 'delayed', runAt: at(900) },
    })
  })

  it('that is leased is shown with its consumer and its deadline on the wall clock', () => {
    const engine = startEngine()
    const job = addJob(engine, 'a', { runAt: START + 100 })
    enter(engine, { name: 'worker' })
    pass(engine, 100)
    advance(engine.queue, engine.now)
    deliver(engine)
    pass(engine, 10)
    expect(jobView(engine.queue, job, engine.now)).toEqual({
      ...shared,
      ...{ id: 'a', state: 'leased', deliveries: 1, consumer: 'worker', leaseUntil: at(30_100) },
    })
  })

  it('that is dead is shown with its error and its reason', () => {
    const engine = startEngine()
    addDead(engine, 'a', { error: 'no room', deadMs: -30, failures: 4 })
    const job = findById(engine.topic.jobs, 'a') as Job
    const dead = { id: 'a', failures: 4, deliveries: 4, createdAt: at(-500), lastError: 'no room' }
    expect(jobView(engine.queue, job, engine.now)).toEqual({
      ...{ ...shared, ...dead, state: 'dead', deadAt: at(-30), reason: 'rejected' },
    })
    job.state = 1
    expect(jobView(engine.queue, job, engine.now)).toEqual({ ...shared, ...dead, state: 'ready' })
  })

  const json = (text: string) => ({ data: text, flags: FLAG.json }) as Job
  const bytes = (text: string) => ({ data: text, flags: 0 }) as Job
  const base64 = (text: string) => Buffer.from(text).toString('base64')

  it('has its payload in base64', () => {
    expect(jobData({ data: undefined, flags: 0 } as Job)).toBeNull()
    expect(jobData(bytes('AAEC'))).toBe('AAEC')
    expect(jobData(json('{"a":"ü"}'))).toBe(base64('{"a":"ü"}'))
  })

  it.each([
    [119, 119],
    [120, 120],
    [121, 120],
  ])('with a payload of %d bytes has the first %d as its head', (length, shown) => {
    const text = 'abcdefghij'.repeat(13).slice(0, length)
    expect(jobHead(json(text))).toBe(base64(text.slice(0, shown)))
    const head = jobHead(bytes(base64(text))) ?? ''
    expect(Buffer.from(head, 'base64').toString()).toBe(text.slice(0, shown))
  })

  it('has a head of whole bytes, not of characters', () => {
    expect(jobHead(json('ü'.repeat(100)))).toBe(base64('ü'.repeat(60)))
    expect(jobHead({ data: undefined, flags: FLAG.json })).toBeNull()
  })
})

describe('jobs of a state', () => {
  it('that are ready are listed in the order of their delivery', () => {
    const engine = startEngine()
    for (const [id, priority] of Object.entries({ a: 0, b: 0, c: 5, d: 9, e: 5, f: 0 }))
      addJob(engine, id, { priority })
    for (const job of [1, 2, 3, 4, 5].map(() => takeReady(engine.topic)))
      if (job.id !== 'd') reenterReady(engine.queue, job)
    expect(idsOf(listJobs(engine.topic, 'ready', 9, undefined))).toEqual(['c', 'e', 'a', 'b', 'f'])
    expect(idsOf(listJobs(engine.topic, 'ready', 3, undefined))).toEqual(['c', 'e', 'a'])
    expect(listJobs(engine.topic, 'ready', 2, undefined)).toMatchObject({ next: '2' })
    expect(idsOf(listJobs(engine.topic, 'ready', 1, '1'))).toEqual(['e'])
    expect(idsOf(listJobs(engine.topic, 'ready', 2, '2'))).toEqual(['a', 'b'])
    expect(listJobs(engine.topic, 'ready', 2, '3')).toMatchObject({ next: null })
    expect(idsOf(listJobs(engine.topic, 'ready', 2, 'nonsense'))).toEqual(['c', 'e'])
    expect(listJobs(engine.topic, 'ready', 5, undefined).next).toBeNull()
    expect(listJobs(engine.topic, 'ready', 4, undefined).next).toBe('4')
  })

  it('that are delayed are listed by their time, on whichever clock', () => {
    const engine = startEngine()
    for (const [id, ms] of Object.entries({ a: 50, b: 30, c: 10 })) addJob(engine, id, { runAt: START + ms })
    for (const [id, ms] of Object.entries({ d: 40, e: 20 }))
      addJob(engine, id, { runAt: START + ms, flags: FLAG.calendar })
    expect(idsOf(listJobs(engine.topic, 'delayed', 9, undefined))).toEqual(['c', 'e', 'b', 'd', 'a'])
    expect(idsOf(listJobs(engine.topic, 'delayed', 2, '1'))).toEqual(['e', 'b'])
  })

  it('that are leased are listed by consumer', () => {
    const engine = startEngine()
    for (const id of numbered(0, 5)) addJob(engine, id)
    enter(engine, { prefetch: 2 })
    enter(engine, { prefetch: 3 })
    deliver(engine)
    expect(idsOf(listJobs(engine.topic, 'leased', 9, undefined))).toEqual(numbered(0, 5))
    expect(idsOf(listJobs(engine.topic, 'leased', 3, '1'))).toEqual(['j1', 'j2', 'j3'])
    expect(listJobs(engine.topic, 'leased', 3, '1').next).toBe('4')
  })

  it('are listed up to the first 10,000', () => {
    const engine = startEngine()
    const jobs = numbered(0, JOB_LIMITS.listedJobsMax + 5).map((id) => ({ ...USUAL_JOB, id }))
    submit(engine.queue, engine.topic, jobs, engine.now)
    write(engine)
    const page = (limit: number, cursor: string) => {
      const { jobs: found, next } = listJobs(engine.topic, 'ready', limit, cursor)
      return [found[0]?.id, found.length, next]
    }
    expect(page(500, '9400')).toEqual(['j9400', 500, '9900'])
    expect(page(500, '9900')).toEqual(['j9900', 100, null])
    expect(page(500, '10000')).toEqual([undefined, 0, null])
    expect(page(500, '20000')).toEqual([undefined, 0, null])
  })
})

describe('dead jobs', () => {
  it('are listed oldest first, from the last one of the page before', () => {
    const engine = startEngine()
    for (const id of numbered(0, 5)) addDead(engine, id)
    addJob(engine, 'ready')
    const page = (limit: number, cursor?: string, filter?: DeadFilter) => {
      const found = listDead(engine.topic, limit, cursor, filter)
      return [...idsOf(found), found.next]
    }
    expect(page(2)).toEqual(['j0', 'j1', 'j1'])
    expect(page(2, 'j1')).toEqual(['j2', 'j3', 'j3'])
    expect(page(2, 'j3')).toEqual(['j4', null])
    expect(page(5)).toEqual([...numbered(0, 5), null])
    expect(page(1, 'ready')).toEqual(['j0', 'j0'])
    expect(page(1, 'gone')).toEqual(['j0', 'j0'])
    expect(idsOf(listJobs(engine.topic, 'dead', 3, 'j0'))).toEqual(['j1', 'j2', 'j3'])
  })

  it('of a filter are listed with a cursor behind those looked at', () => {
    const engine = startEngine()
    for (const [n, id] of numbered(0, 6).entries()) addDead(engine, id, { error: n % 2 === 0 ? 'even' : 'odd' })
    const page = listDead(engine.topic, 2, undefined, { error: 'odd' })
    expect([idsOf(page), page.next]).toEqual([['j1', 'j3'], 'j3'])
    const rest = listDead(engine.topic, 2, 'j3', { error: 'odd' })
    expect([idsOf(rest), rest.next]).toEqual([['j5'], null])
  })

  it('of a filter that few satisfy are looked for among 10,000 at a time', () => {
    const engine = startEngine()
    for (const id of numbered(0, 10_000)) addDead(engine, id)
    addDead(engine, 'last', { error: 'rare' })
    const page = listDead(engine.topic, 2, undefined, { error: 'rare' })
    expect([idsOf(page), page.next]).toEqual([[], 'j9999'])
    expect(idsOf(listDead(engine.topic, 2, 'j9999', { error: 'rare' }))).toEqual(['last'])
    expect(idsOf(listDead(engine.topic, 2, 'j0', { error: 'rare' }))).toEqual(['last'])
  })

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

  it('of a job without a past are in no selection', () => {
    const engine = startEngine()
    addDead(engine, 'a')
    const job = findById(engine.topic.jobs, 'a') as Job
    job.past = undefined
    expect(selectDead(engine.topic, {}, 9)).toEqual([])
  })

  it.each([
    [100_000, true],
    [100_001, false],
  ])('of a group of %d are counted exactly: %s', (size, exact) => {
    const engine = startEngine()
    addDead(engine, 'a', { failures: 2 })
    const [job] = [findById(engine.topic.jobs, 'a') as Job]
    const many = { size, values: () => new Array<Job>(size).fill(job).values() } as unknown as Map<number, Job>
    engine.topic.deadGroups.set('many', { name: 'many', jobs: many, last: 0 })
    expect(countDead(engine.topic, { group: 'many', minFailures: 2 })).toEqual({ count: 100_000, exact })
    expect(countDead(engine.topic, { group: 'many', minFailures: 3 })).toEqual({ count: 0, exact })
    for (const filter of [{ group: 'many' }, { group: 'many', error: undefined }])
      expect(countDead(engine.topic, filter)).toEqual({ count: size, exact: true })
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

describe('finished jobs', () => {
  it('are shown newest first, in pages', () => {
    const engine = startEngine()
    for (const id of numbered(0, 5)) {
      addJob(engine, id, { priority: 2 })
      pass(engine, 10)
      finishOne(engine)
    }
    const page = finishedJobs(engine.topic, 2, undefined)
    expect([idsOf(page), page.next]).toEqual([['j4', 'j3'], '2'])
    expect(finishedJobs(engine.topic, 2, '2')).toMatchObject({ next: '4' })
    expect([idsOf(finishedJobs(engine.topic, 2, '4')), finishedJobs(engine.topic, 2, '4').next]).toEqual([['j0'], null])
    expect(finishedJobs(engine.topic, 5, undefined).next).toBeNull()
    expect(idsOf(finishedJobs(engine.topic, 1, 'nonsense'))).toEqual(['j4'])
    expect(shownJob(engine.topic, 'j1')).toEqual({
      ...{
        id: 'j1',
        topic: 'orders',
        state: 'done',
        priority: 2,
        failures: 0,
        deliveries: 0,
        maxAttempts: 5,
        bytes: 2,
      },
      ...{ createdAt: at(10), runAt: null, leaseUntil: null, consumer: 'worker', lastError: null, deadAt: null },
      ...{ reason: null, finishedAt: at(20) },
    })
    expect(shownJob(engine.topic, 'j9')).toBeUndefined()
  })

  it('with the same id are found by the newest one, also when old ones have left', () => {
    const engine = startEngine()
    const random = createRandom(SEED)
    const ids: string[] = []
    for (let n = 0; n < 1_100; n++) {
      const id = `j${random.below(400)}`
      addJob(engine, id, { bytes: n })
      finishOne(engine)
      ids.push(id)
    }
    const kept = ids.slice(-JOB_LIMITS.finishedShownMax)
    for (let n = 0; n < 400; n++) {
      const last = kept.lastIndexOf(`j${n}`)
      const bytes = last < 0 ? undefined : last + ids.length - kept.length
      expect(shownJob(engine.topic, `j${n}`)?.bytes, `seed ${SEED}, job ${n}`).toBe(bytes)
    }
  })
})

describe('a topic', () => {
  it('is shown with its counts', () => {
    const engine = startEngine({ paused: true })
    Object.assign(engine.topic.counts, { ready: 1, delayed: 2, leased: 3, dead: 4, pending: 5 })
    enter(engine)
    expect(topicRow(engine.topic)).toEqual({
      ...{ topic: 'orders', paused: true, createdAt: at(0), ready: 1, delayed: 2, leased: 3, dead: 4, consumers: 1 },
    })
  })

  it('is shown with the age of its oldest ready job and its totals', () => {
    const engine = startEngine()
    expect(topicStats(engine.topic, engine.now).oldestReadyMs).toBe(0)
    addJob(engine, 'a')
    pass(engine, 40)
    addJob(engine, 'b', { priority: 9 })
    Object.assign(engine.topic.counts, { delayed: 2, leased: 3, dead: 4, stalled: 5 })
    expect(topicStats(engine.topic, engine.now)).toEqual({
      ...{ topic: 'orders', paused: false, ready: 2, delayed: 2, leased: 3, dead: 4, bytes: 4, oldestReadyMs: 40 },
      ...{ consumers: 0, stalledConsumers: 5, totals: { ...engine.topic.totals } },
      rates1m: { accepted: 0, delivered: 0, acked: 0, failed: 0 },
    })
    engine.now.wallMs = START - 1_000
    expect(topicStats(engine.topic, engine.now).oldestReadyMs).toBe(0)
  })

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

  it('keeps seven samples', () => {
    const engine = startEngine()
    for (let n = 0; n < 9; n++) {
      sampleRates(engine.queue, engine.now)
      pass(engine, 10_000)
      expect(engine.topic.samples.length).toBe(Math.min(n + 1, 7))
    }
    expect(engine.topic.samples.map(({ at: ms }) => ms)).toEqual([21, 31, 41, 51, 61, 71, 81].map((s) => s * 1_000))
  })
})

it('a consumer is shown with what it has and what it did', () => {
  const engine = startEngine()
  pass(engine, 5)
  const consumer = enter(engine, { name: 'worker', prefetch: undefined, tokenName: 'tok', remote: '1.2.3.4:5' })
  const shown = {
    ...{ id: 'c-2', uuid: 'worker', topic: 'orders', token: 'tok', prefetch: 10, adaptive: true, leased: 0 },
    ...{ stalled: false, connectedAt: at(5), lastMessageAt: null, remote: '1.2.3.4:5', delivered: 0, acked: 0 },
  }
  expect(consumerView(consumer)).toEqual(shown)
  for (const id of ['a', 'b']) addJob(engine, id)
  deliver(engine)
  Object.assign(consumer, { lastMessageAt: START + 9, isStalled: true, acked: 4 })
  expect(consumerView(consumer)).toEqual({
    ...shown,
    ...{ leased: 2, delivered: 2, acked: 4, stalled: true, lastMessageAt: at(9) },
  })
})

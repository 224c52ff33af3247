import { topicConfig } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, it } from 'vitest'
import { type Heap, heapFirst, heapPush, NO_SLOT, NOT_IN_HEAP } from './containers.ts'
import { createDelivery, createJob, createTopicState, FLAG, type Job, type NewJob, STATE, type Topic } from './job.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const USUAL = { priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: undefined, bytes: 0 }

function topicOf(config: object = {}): Topic {
  return createTopicState('orders', 4, topicConfig.parse(config), 900, () => 0.5)
}

function jobOf(topic: Topic, seq: number, fields: Partial<NewJob> = {}, changed: Partial<Job> = {}): Job {
  return Object.assign(createJob(topic, { ...USUAL, id: `j${seq}`, ...fields }, seq, STATE.pending, 950), changed)
}

it('a topic begins empty, with what its limits allow at once', () => {
  const topic = topicOf({ rate_per_sec: 7, starvation_guard: 3 })
  expect(topic).toMatchObject({
    ...{ name: 'orders', number: 4, createdAt: 900, allowance: 7, untilOldest: 3, readyMask: 0, nextPlace: 0 },
    ...{ bytes: 0, deadBytes: 0, isRunnable: false, isGone: false, heapIndex: NOT_IN_HEAP, samples: [] },
    counts: { ready: 0, delayed: 0, leased: 0, dead: 0, pending: 0, stalled: 0 },
    deadByReason: { max_attempts: 0, max_deliveries: 0, rejected: 0 },
  })
  expect(topic.alarmAt).toBe(Number.POSITIVE_INFINITY)
  // Priorities from 0 to 9.
  expect([topic.ready.length, topic.returned.length]).toEqual([10, 10])
  expect(Object.values(topic.totals)).toEqual(new Array(14).fill(0))
  const other = topicOf()
  other.totals.accepted = 1
  expect(topicOf().totals.accepted).toBe(0)
})

it('a job begins with nothing counted', () => {
  const topic = topicOf()
  const fields = {
    id: 'a',
    priority: 5,
    flags: FLAG.json,
    maxAttempts: 2,
    ackDeadlineMs: 3,
    runAt: 8,
    data: '1',
    bytes: 1,
  }
  expect(createJob(topic, fields, 12, STATE.ready, 950)).toEqual({
    ...{
      ...fields,
      topic,
      seq: 12,
      state: STATE.ready,
      createdAt: 950,
      failures: 0,
      deliveries: 0,
      dueAt: 0,
      place: 0,
    },
    ...{ delivery: undefined, next: undefined, previous: undefined, heapIndex: NOT_IN_HEAP, past: undefined },
  })
})

it('deliveries of a consumer are numbered in order', () => {
  const topic = topicOf()
  const consumer = { nextSeqId: 3 } as Parameters<typeof createDelivery>[0]
  const job = jobOf(topic, 1)
  expect(createDelivery(consumer, job, 99, 500, 30)).toEqual({
    ...{ job, consumer, seqId: 3, number: 99, at: 500, deadlineMs: 30, extendedTo: 0, isResolved: false },
    ...{ next: undefined, previous: undefined, slot: NO_SLOT },
  })
  expect(createDelivery(consumer, job, 100, 500, 30).seqId).toBe(4)
})

describe('waiting jobs', () => {
  const orderOf = (heap: Heap<Job>, jobs: readonly Job[]) => {
    for (const job of jobs) heapPush(heap, job)
    return heapFirst(heap, jobs.length).map(({ id }) => id)
  }

  it('that came back are in the order of their places, whatever their numbers', () => {
    const topic = topicOf()
    const jobs = [
      jobOf(topic, 1, {}, { place: 9 }),
      jobOf(topic, 2, {}, { place: 7 }),
      jobOf(topic, 3, {}, { place: 8 }),
    ]
    expect(orderOf(topic.returned[0] as Heap<Job>, jobs)).toEqual(['j2', 'j3', 'j1'])
  })

  it.each(['delayed', 'scheduled'] as const)('that are %s are in order of time, priority and acceptance', (name) => {
    const random = createRandom(SEED)
    const topic = topicOf()
    const jobs = Array.from({ length: 60 }, (_, seq) => {
      const time = random.below(4)
      // The other time must not count.
      const other = random.below(4)
      const [dueAt, runAt] = name === 'delayed' ? [time, other] : [other, time]
      return jobOf(topic, seq, { priority: random.below(3) }, { dueAt, runAt })
    })
    const timeOf = ({ dueAt, runAt }: Job) => (name === 'delayed' ? dueAt : runAt)
    const sorted = jobs.toSorted((a, b) => timeOf(a) - timeOf(b) || b.priority - a.priority || a.seq - b.seq)
    const shuffled = jobs.toSorted(() => random.below(3) - 1)
    expect(orderOf(topic[name], shuffled), `seed ${SEED}`).toEqual(sorted.map(({ id }) => id))
  })
})

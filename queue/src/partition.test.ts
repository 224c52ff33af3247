import { topicConfig } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { connect } from './delivery.ts'
import type { Consumer, Topic } from './job.ts'
import { type Journal, type JournalEvents, JournalFullError, type Stored } from './journal.ts'
import {
  createPartition,
  handOver,
  isFull,
  momentOf,
  outcomeOf,
  type Partition,
  type PartitionOptions,
  runSoon,
  startPartition,
  stopPartition,
} from './partition.ts'
import { submit } from './queue.ts'
import { append, type Change, createQueue, later, type Queue } from './state.ts'
import { LIMITS, START } from './testing/engine.ts'

type Write = {
  readonly changes: readonly string[]
  readonly done: () => void
  readonly fail: (error: Error) => void
}

/** A partition with a journal that the test lets write, and time that the test lets pass. */
type Fake = {
  readonly partition: Partition
  readonly events: JournalEvents[]
  /** Of all journals, in order. */
  readonly writes: Write[]
  /** What the partition reported, as text. */
  readonly reported: string[]
  readonly lost: Consumer[]
  rows: Stored[][]
  /** How each opening ends; the last one counts for all later ones. */
  opening: (events: JournalEvents) => Promise<void>
  isCloseFailing: boolean
  loadMs: number
}

function createFake({ number = 0, partitions = 1 } = {}): Fake {
  let prefix = 0
  const { reported, lost, events, writes } = { reported: [], lost: [], events: [], writes: [] } as unknown as Fake
  const note = (text: string) => (fields: object, message: string) => {
    const owner = 'owner' in fields ? ` ${String(fields.owner)}` : ''
    const loaded = 'jobs' in fields && 'seconds' in fields ? `: ${fields.jobs} jobs in ${fields.seconds} s` : ''
    reported.push(`${text}: ${message}${owner}${loaded}`)
  }
  const log = { info: note('info'), warn: note('warn'), error: note('error') } as unknown as Logger
  const options: PartitionOptions = {
    ...{ log, partitions, ackFlushMs: 5, random: () => 0.5, leasePrefix: () => `p${prefix++}` },
    clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() },
    limits: LIMITS,
    open: async (given) => {
      events.push(given)
      reported.push('open')
      await fake.opening(given)
      return journalOf(fake)
    },
    send: ({ job }) => void reported.push(`send ${job.id}`),
    sent: () => void reported.push('sent'),
    onLost: (consumers) => void lost.push(...consumers),
    onLoading: () => void reported.push(`${partition.unavailable}`),
    onLoaded: () => void reported.push('loaded'),
    onGroup: (changes) => void reported.push(`group of ${changes}`),
    onError: (operation) => void reported.push(`failed to ${operation}`),
  }
  const partition = createPartition(number, options)
  const fake: Fake = {
    ...{ partition, events, writes, reported, lost, rows: [], isCloseFailing: false, loadMs: 0 },
    opening: async () => undefined,
  }
  return fake
}

function journalOf(fake: Fake): Journal {
  return {
    kind: 'memory',
    load: async function* () {
      if (fake.loadMs > 0) await new Promise((resolve) => setTimeout(resolve, fake.loadMs))
      yield* fake.rows
    },
    write: (changes) =>
      new Promise((done, fail) => {
        fake.writes.push({ changes: changes.map(textOf), done, fail })
      }),
    backup: async () => undefined,
    vacuum: async () => undefined,
    sizes: async () => ({ bytes: 0, freeBytes: 0 }),
    close: async () => {
      fake.reported.push('close')
      if (fake.isCloseFailing) throw new Error('close')
    },
  }
}

function textOf(change: Change): string {
  if ('job' in change) return `${change.kind} ${change.job.id}`
  return 'seq' in change ? `done ${change.seq}` : change.kind
}

/** Lets time pass, with all that is due; 0 for one turn of the event loop. */
const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms)

/** A partition that serves a topic. */
async function serve(fake = createFake(), rows: Stored[] = []): Promise<{ fake: Fake; queue: Queue; topic: Topic }> {
  const topic = { name: 'orders', number: 1, config: topicConfig.parse({}), redrive: undefined, createdAt: START }
  fake.rows = [[{ kind: 'topic', topic }], rows]
  await startPartition(fake.partition)
  await pass()
  fake.reported.length = 0
  return { fake, queue: fake.partition.queue as Queue, topic: fake.partition.queue?.topics.get('orders') as Topic }
}

const USUAL = { priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: 'e30=', bytes: 2 }

/** Submits a job. @returns the outcomes so far of its group */
function add({ partition }: Fake, id: string, fields: Partial<typeof USUAL> = {}): string[] {
  const queue = partition.queue as Queue
  const topic = queue.topics.get('orders') as Topic
  const result = submit(queue, topic, [{ ...USUAL, ...fields, id }], momentOf(partition))
  const outcomes: string[] = []
  if ('groups' in result) for (const group of result.groups) void outcomeOf(group, true).then((o) => outcomes.push(o))
  runSoon(partition)
  return outcomes
}

function enter({ partition }: Fake, topicName = 'orders'): Consumer {
  const fields = { name: 'w', topicName, prefetch: 100, confirms: false, tokenName: 't', remote: 'r' }
  const consumer = connect(partition.queue as Queue, fields, momentOf(partition))
  runSoon(partition)
  return consumer
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.setSystemTime(START)
})

afterEach(() => {
  vi.clearAllTimers()
  vi.useRealTimers()
})

describe('the start of a partition', () => {
  it('restores topics, finished ids and jobs, and leaves out jobs of deleted topics', async () => {
    const stored = { ...USUAL, isDead: false, failures: 0, deliveries: 0, createdAt: START, past: undefined }
    const { queue, topic, fake } = await serve(createFake(), [
      { kind: 'nextTopic', number: 9 },
      { kind: 'finished', topicNumber: 1, id: 'old', at: START },
      { kind: 'finished', topicNumber: 5, id: 'old', at: START },
      { kind: 'jobs', jobs: [{ ...stored, topicNumber: 1, seq: 3, id: 'a' }] },
      { kind: 'jobs', jobs: [{ ...stored, topicNumber: 5, seq: 7, id: 'b' }] },
    ])
    expect([queue.nextTopicNumber, queue.nextSeq, topic.jobs.size, topic.counts.ready]).toEqual([9, 8, 1, 1])
    expect([...topic.finished.keys()]).toEqual(['old'])
    enter(fake)
    await pass()
    expect(fake.reported).toEqual(['send a', 'sent'])
  })

  it('never reuses a number of a topic or a job', async () => {
    const stored = { ...USUAL, isDead: false, failures: 0, deliveries: 0, createdAt: START, past: undefined }
    const { queue } = await serve(createFake(), [
      { kind: 'jobs', jobs: [{ ...stored, topicNumber: 1, seq: 9, id: 'a' }] },
      { kind: 'jobs', jobs: [{ ...stored, topicNumber: 5, seq: 7, id: 'b' }] },
      { kind: 'nextTopic', number: 1 },
    ])
    expect([queue.nextTopicNumber, queue.nextSeq]).toEqual([2, 10])
  })
})

describe('group commit', () => {
  it('writes the changes of one turn together, and those of later turns after that', async () => {
    const { fake, topic } = await serve()
    const [a, b] = [add(fake, 'a'), add(fake, 'b')]
    expect(fake.writes).toEqual([])
    await pass()
    expect(fake.writes.map(({ changes }) => changes)).toEqual([['put a', 'put b']])
    const c = add(fake, 'c')
    await pass(1_000)
    expect([fake.writes.length, a, topic.counts.pending]).toEqual([1, [], 3])

    fake.writes[0]?.done()
    await pass()
    expect([a, b, c, topic.counts.ready]).toEqual([['durable'], ['durable'], [], 2])
    expect(fake.writes.map(({ changes }) => changes)).toEqual([['put a', 'put b'], ['put c']])
    fake.writes[1]?.done()
    await pass()
    expect([c, topic.counts.ready, fake.writes.length]).toEqual([['durable'], 3, 2])
    expect(fake.reported).toEqual(['group of 2', 'group of 1'])
  })
})

describe('a full disk', () => {
  const full = () => new JournalFullError('no space')

  it('refuses what needs room, and writes the rest of the group', async () => {
    const { fake, queue, topic } = await serve()
    later(queue, { kind: 'done', seq: 7 })
    const outcomes = add(fake, 'a')
    await pass()
    fake.writes[0]?.fail(full())
    await pass()

    expect([outcomes, topic.jobs.size, topic.counts.pending]).toEqual([['full'], 0, 0])
    expect(fake.writes.map(({ changes }) => changes)).toEqual([['done 7', 'put a'], ['done 7']])
    expect(fake.reported).toEqual(['failed to full', 'error: no room for the queue journal'])
    fake.writes[1]?.done()
    await pass()
    expect([fake.reported.slice(2), fake.partition.unavailable]).toEqual([['group of 1'], undefined])
  })

  it('refuses submissions for a second', async () => {
    const { fake } = await serve()
    expect(isFull(fake.partition)).toBe(false)
    add(fake, 'a')
    await pass()
    fake.writes[0]?.fail(full())
    await pass()
    await pass(998)
    expect(isFull(fake.partition)).toBe(true)
    await pass(2)
    expect(isFull(fake.partition)).toBe(false)
  })

  it('without room for deletions keeps them, and tries again after a second', async () => {
    const { fake, queue } = await serve()
    later(queue, { kind: 'done', seq: 7 })
    add(fake, 'a')
    await pass()
    fake.writes[0]?.fail(full())
    await pass()
    fake.writes[1]?.fail(full())
    await pass()
    expect([queue.writing, queue.groups.length]).toEqual([undefined, 1])
    add(fake, 'b')
    await pass(998)
    expect(fake.writes.length).toBe(2)
    await pass(2)
    expect(fake.writes[2]?.changes).toEqual(['done 7', 'put b'])
    fake.writes[2]?.done()
    await pass()
    expect(fake.partition.unavailable).toBeUndefined()
  })
})

describe('a lost journal', () => {
  it('drops the queue, and leaves the outcome of all waiting requests unknown', async () => {
    const { fake, queue } = await serve()
    const consumer = enter(fake)
    const first = add(fake, 'a')
    await pass()
    const second = add(fake, 'b')
    fake.writes[0]?.fail(new Error('i/o error'))
    await pass()

    expect([first, second, fake.lost]).toEqual([['unknown'], ['unknown'], [consumer]])
    expect([fake.partition.queue, fake.partition.journal, fake.partition.unavailable]).toEqual([
      undefined,
      undefined,
      'journal',
    ])
    expect([queue.groups.length, queue.writing]).toEqual([0, undefined])
    expect(fake.reported).toEqual(['error: queue journal lost', 'failed to write', 'close'])
  })

  it('is opened and loaded again, with other leases and without repeating the ids of consumers', async () => {
    const { fake } = await serve()
    enter(fake)
    fake.events[0]?.onLost(new Error('thread ended'))
    await pass(499)
    expect(fake.reported).toEqual(['error: queue journal lost', 'failed to write', 'close'])
    await pass(1)
    expect(fake.reported.slice(3)).toEqual(['open', 'loading', 'info: queue loaded: 0 jobs in 0 s', 'loaded'])
    expect([fake.partition.unavailable, fake.partition.queue?.leasePrefix]).toEqual([undefined, 'p1'])
    expect(enter(fake).id).toBe(2)
    fake.events[0]?.onLost(new Error('again'))
    expect(fake.partition.unavailable).toBeUndefined()
  })

  it('is tried every 500 ms until it opens', async () => {
    const { fake } = await serve()
    fake.opening = () => Promise.reject(new Error('still gone'))
    fake.events[0]?.onLost(new Error('gone'))
    await pass(1_499)
    const failed = ['open', 'failed to open', 'error: opening the queue journal failed']
    expect(fake.reported.slice(3)).toEqual([...failed, ...failed])
    expect(fake.partition.unavailable).toBe('journal')
    fake.opening = async () => undefined
    await pass(1)
    expect(fake.partition.unavailable).toBeUndefined()
  })
})

describe('the end of a partition', () => {
  it('writes what is left, closes the journal and begins nothing', async () => {
    const { fake, queue } = await serve()
    later(queue, { kind: 'done', seq: 7 })
    const stopped = stopPartition(fake.partition)
    await pass()
    expect([fake.writes[0]?.changes, fake.reported]).toEqual([['done 7'], []])
    fake.writes[0]?.done()
    await pass()
    await stopped
    expect(fake.reported).toEqual(['group of 1', 'close'])
    expect([fake.partition.unavailable, fake.partition.queue]).toEqual(['shutting_down', undefined])
    await pass(10_000)
    expect(fake.reported.length).toBe(2)
  })

  it('that is handed over writes what is left, and stands by for the next owner', async () => {
    const { fake, queue } = await serve()
    later(queue, { kind: 'done', seq: 7 })
    const handed = handOver(fake.partition)
    await pass()
    fake.writes[0]?.done()
    await pass()
    await handed
    expect([fake.partition.unavailable, fake.partition.queue, fake.reported]).toEqual([
      'standby',
      undefined,
      ['group of 1', 'close'],
    ])
    await pass(500)
    expect(fake.reported.slice(2, 3)).toEqual(['open'])
  })
})

const LIMITED = { ...LIMITS, groupChangesMax: 4, groupBytesMax: 1_000 }
const queueOf = (): Queue =>
  createQueue(
    { limits: LIMITED, random: () => 0.5, leasePrefix: 'p', nextConsumer: 3, consumerStride: 4 },
    { wallMs: 1_000_000, monotonicMs: 400 },
  )
const done = (seq: number): Change => ({ kind: 'done', seq })
const changes = (count: number) => Array.from({ length: count }, (_, n) => done(n))
const sizes = ({ groups }: Queue) => groups.map((group) => group.changes.length)

describe('changes', () => {
  it('of several requests share a group while they fit its count', () => {
    const queue = queueOf()
    append(queue, changes(3), 1)
    append(queue, changes(1), 1)
    expect(sizes(queue)).toEqual([4])
    append(queue, changes(1), 1)
    expect(sizes(queue)).toEqual([4, 1])
    expect(queue.groups.map(({ number }) => number)).toEqual([1, 2])
  })

  it('of several requests share a group while they fit its bytes', () => {
    const queue = queueOf()
    append(queue, changes(1), 400)
    append(queue, changes(1), 600)
    expect(queue.groups.map(({ bytes }) => bytes)).toEqual([1_000])
    append(queue, changes(1), 1)
    expect(queue.groups.map(({ bytes }) => bytes)).toEqual([1_000, 1])
  })

  it('of one request stay together, also beyond the limits', () => {
    const queue = queueOf()
    append(queue, changes(9), 5_000)
    append(queue, changes(1), 1)
    expect(sizes(queue)).toEqual([9, 1])
  })
})

import { topicConfig } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { acknowledge, connect } from './delivery.ts'
import { findById } from './id-index.ts'
import { type Consumer, STATE, type Topic } from './job.ts'
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
  stopWaiting,
  writeForAWhile,
} from './partition.ts'
import { createTopic, submit } from './queue.ts'
import { type Change, later, type Queue } from './state.ts'
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
  it('opens its journal, loads it and serves', async () => {
    const fake = createFake({ number: 2, partitions: 4 })
    expect(fake.partition.unavailable).toBe('loading')
    await startPartition(fake.partition)

    expect(fake.reported).toEqual(['open', 'loading', 'info: queue loaded: 0 jobs in 0 s', 'loaded'])
    expect([fake.partition.unavailable, fake.partition.queue?.leasePrefix]).toEqual([undefined, 'p0'])
    const [first, second] = [enter(fake), enter(fake)]
    expect([first.id, second.id]).toEqual([3, 7])
    expect(momentOf(fake.partition)).toEqual({ wallMs: Date.now(), monotonicMs: performance.now() })
  })

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

  it('logs how many jobs were loaded, and how long that took', async () => {
    const stored = { ...USUAL, isDead: false, failures: 0, deliveries: 0, createdAt: START, past: undefined }
    const topic = { name: 'orders', number: 1, config: topicConfig.parse({}), redrive: undefined, createdAt: START }
    const fake = createFake()
    fake.loadMs = 2_000
    fake.rows = [
      [
        { kind: 'nextTopic', number: 9 },
        { kind: 'topic', topic },
        { kind: 'finished', topicNumber: 1, id: 'old', at: START },
        { kind: 'jobs', jobs: [3, 4, 5].map((seq) => ({ ...stored, topicNumber: 1, seq, id: `j${seq}` })) },
      ],
      [{ kind: 'jobs', jobs: [{ ...stored, topicNumber: 5, seq: 7, id: 'b' }] }],
    ]
    const started = startPartition(fake.partition)
    await pass(2_000)
    await started
    expect(fake.reported).toContain('info: queue loaded: 3 jobs in 2 s')
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

  it('fails when the journal cannot be opened the first time', async () => {
    const fake = createFake()
    fake.opening = () => Promise.reject(new Error('damaged'))
    await expect(startPartition(fake.partition)).rejects.toThrow('damaged')
    await pass(10_000)
    expect(fake.reported).toEqual(['open'])
  })

  it('fails when the journal is lost while it is opened', async () => {
    const fake = createFake()
    fake.opening = async ({ onLost }) => onLost(new Error('gone at once'))
    await expect(startPartition(fake.partition)).rejects.toThrow('gone at once')
    expect(fake.reported).toEqual(['open', 'close'])
  })

  it('stands by while another process owns the journal, and serves when it does', async () => {
    const fake = createFake()
    const owned = Promise.withResolvers<void>()
    fake.opening = async ({ onStandby }) => {
      onStandby('a:1')
      onStandby('a:1')
      onStandby('b:2')
      await owned.promise
    }
    await startPartition(fake.partition)
    expect([fake.partition.unavailable, fake.partition.owner, fake.partition.queue]).toEqual([
      'standby',
      'b:2',
      undefined,
    ])
    expect(fake.reported.slice(1)).toEqual([
      'info: another process owns the queue a:1',
      'info: another process owns the queue b:2',
    ])
    owned.resolve()
    await pass()
    expect([fake.partition.unavailable, fake.partition.owner]).toEqual([undefined, undefined])
    expect(fake.reported).toContain('loaded')
  })

  it('ends a wait for the journal when it stops, and then begins nothing', async () => {
    const fake = createFake()
    const owned = Promise.withResolvers<void>()
    fake.opening = async ({ onStandby }) => {
      onStandby(undefined)
      await owned.promise
      onStandby('late:1')
    }
    await startPartition(fake.partition)
    stopWaiting(fake.partition)
    expect(fake.events[0]?.signal.aborted).toBe(true)
    owned.resolve()
    await fake.partition.running
    expect(fake.reported).toEqual(['open', 'info: another process owns the queue undefined', 'close'])
    expect([fake.partition.owner, fake.partition.queue]).toEqual([undefined, undefined])
  })

  it('is over when the partition stops before its journal is open', async () => {
    const fake = createFake()
    const opened = Promise.withResolvers<void>()
    fake.opening = () => opened.promise
    const started = startPartition(fake.partition)
    stopWaiting(fake.partition)
    opened.reject(new Error('no longer wanted'))
    await started
    expect([fake.reported, fake.partition.queue]).toEqual([['open'], undefined])
  })

  it('is not ended while it serves', async () => {
    const { fake } = await serve()
    stopWaiting(fake.partition)
    expect([fake.partition.stopping.signal.aborted, fake.partition.unavailable]).toEqual([false, undefined])
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

  const laterDone = ({ partition }: Fake, count: number) => {
    for (let seq = 0; seq < count; seq++) later(partition.queue as Queue, { kind: 'done', seq })
    runSoon(partition)
  }

  it.each([
    [999, 0],
    [1_000, 1],
  ])('%d changes that no request waits for need %d writes at once', async (count, writes) => {
    const { fake } = await serve()
    laterDone(fake, count)
    await pass()
    expect(fake.writes.length).toBe(writes)
    await pass(5)
    expect(fake.writes.length).toBe(1)
  })

  it('writes what no request waits for after a few milliseconds', async () => {
    const { fake } = await serve()
    laterDone(fake, 1)
    await pass(4)
    laterDone(fake, 1)
    expect(fake.writes.length).toBe(0)
    await pass(1)
    expect(fake.writes.map(({ changes }) => changes.length)).toEqual([2])
  })

  it('writes it earlier with a request that waits, once', async () => {
    const { fake } = await serve()
    laterDone(fake, 1)
    await pass(2)
    add(fake, 'a')
    await pass()
    expect(fake.writes.map(({ changes }) => changes)).toEqual([['done 0', 'put a']])
    fake.writes[0]?.done()
    await pass(50)
    expect(fake.writes.length).toBe(1)
  })

  it('plans one write for all changes of a turn', async () => {
    const { fake } = await serve()
    add(fake, 'a')
    const timers = vi.getTimerCount()
    add(fake, 'b')
    expect(vi.getTimerCount()).toBe(timers)
  })

  it('writes a full group at once', async () => {
    const { fake, queue } = await serve()
    const limits = { ...queue.limits, groupChangesMax: 3 }
    Object.assign(queue, { limits })
    laterDone(fake, 4)
    await pass()
    expect(fake.writes.map(({ changes }) => changes.length)).toEqual([3])
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

  it('writes nothing more when all of the group needed room', async () => {
    const { fake } = await serve()
    add(fake, 'a')
    await pass()
    fake.writes[0]?.fail(full())
    await pass()
    expect([fake.writes.length, fake.reported.at(-1)]).toEqual([1, 'group of 0'])
    add(fake, 'a')
    await pass()
    expect(fake.writes.length).toBe(2)
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

  it('is not served by a write that ends later', async () => {
    const { fake, topic } = await serve()
    const outcomes = add(fake, 'a')
    await pass()
    fake.events[0]?.onLost(new Error('gone'))
    await pass()
    fake.writes[0]?.done()
    await pass()
    expect([outcomes, topic.counts.ready, fake.reported.includes('group of 1')]).toEqual([['unknown'], 0, false])
  })

  it('delivers and wakes nothing any more', async () => {
    const { fake } = await serve()
    add(fake, 'a')
    add(fake, 'b', { runAt: START + 100 })
    await pass()
    fake.writes[0]?.done()
    await pass()
    enter(fake)
    fake.events[0]?.onLost(new Error('gone'))
    runSoon(fake.partition)
    await pass(200)
    expect(fake.reported.filter((text) => text.startsWith('send'))).toEqual([])
    expect([fake.partition.flush, fake.partition.alarm]).toEqual([undefined, undefined])
  })

  it('that cannot be closed is reported, and opened again all the same', async () => {
    const { fake } = await serve()
    fake.isCloseFailing = true
    fake.events[0]?.onLost(new Error('gone'))
    await pass(500)
    expect(fake.reported).toContain('warn: closing a queue journal failed')
    expect(fake.partition.unavailable).toBeUndefined()
  })
})

describe('a partition that serves', () => {
  it('delivers in a turn of its own, and reports when a burst ends', async () => {
    const { fake } = await serve()
    enter(fake)
    for (const id of ['a', 'b']) add(fake, id)
    await pass()
    fake.writes[0]?.done()
    await pass()
    expect(fake.reported).toEqual(['group of 2', 'send a', 'send b', 'sent'])
  })

  it('delivers to sixteen topics in a turn', async () => {
    const { fake, queue } = await serve()
    for (let n = 0; n < 20; n++) {
      createTopic(queue, `t${n}`, topicConfig.parse({}), momentOf(fake.partition))
      submit(queue, queue.topics.get(`t${n}`) as Topic, [{ ...USUAL, id: `${n}` }], momentOf(fake.partition))
    }
    for (let n = 0; n < 20; n++) enter(fake, `t${n}`)
    runSoon(fake.partition)
    await pass()
    fake.writes[0]?.done()
    await pass(5)
    const bursts = fake.reported
      .join(' ')
      .split('sent')
      .map((text) => text.match(/send/g)?.length ?? 0)
    expect(bursts).toEqual([16, 4, 0])
  })

  it('wakes when the first delayed job is due, and again for the next', async () => {
    const { fake } = await serve()
    enter(fake)
    add(fake, 'late', { runAt: START + 300 })
    add(fake, 'early', { runAt: START + 100 })
    await pass()
    fake.writes[0]?.done()
    await pass(98)
    expect(fake.reported).toEqual(['group of 2'])
    await pass(4)
    expect(fake.reported).toEqual(['group of 2', 'send early', 'sent'])
    await pass(194)
    expect(fake.reported.length).toBe(3)
    await pass(6)
    expect(fake.reported.slice(3)).toEqual(['send late', 'sent'])
  })

  it('wakes when a lease ends', async () => {
    const { fake, topic } = await serve()
    const consumer = enter(fake)
    for (const id of ['a', 'b']) add(fake, id, { ackDeadlineMs: 1_000 })
    await pass()
    fake.writes[0]?.done()
    await pass()
    acknowledge(
      fake.partition.queue as Queue,
      consumer,
      { jobId: 'a', seqId: 1, lease: undefined },
      momentOf(fake.partition),
    )
    runSoon(fake.partition)
    await pass(900)
    expect(findById(topic.jobs, 'b')?.state).toBe(STATE.leased)
    await pass(200)
    expect(findById(topic.jobs, 'b')?.state).toBe(STATE.delayed)
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

  it('waits for the group that is being written, and those behind it', async () => {
    const { fake, queue } = await serve()
    add(fake, 'a')
    await pass()
    later(queue, { kind: 'done', seq: 7 })
    const ended: string[] = []
    const stopped = stopPartition(fake.partition).then(() => ended.push('stopped'))
    fake.writes[0]?.done()
    await pass()
    expect([ended, fake.writes.length]).toEqual([[], 2])
    fake.writes[1]?.done()
    await pass()
    await stopped
    expect(fake.reported.at(-1)).toBe('close')
  })

  it('waits for the only group when that is being written', async () => {
    const { fake } = await serve()
    const outcomes = add(fake, 'a')
    await pass()
    const stopped = stopPartition(fake.partition)
    await pass()
    expect(fake.reported).toEqual([])
    fake.writes[0]?.done()
    await pass()
    await stopped
    expect([outcomes, fake.reported]).toEqual([['durable'], ['group of 1', 'close']])
  })

  it('writes what changes while it waits, too', async () => {
    const { fake, queue } = await serve()
    add(fake, 'a')
    await pass()
    const stopped = stopPartition(fake.partition)
    later(queue, { kind: 'done', seq: 7 })
    fake.writes[0]?.done()
    await pass()
    fake.writes[1]?.done()
    await pass()
    await stopped
    expect(fake.writes.map(({ changes }) => changes)).toEqual([['put a'], ['done 7']])
  })

  it('comes at once when nothing is left, and when the journal is lost meanwhile', async () => {
    const { fake } = await serve()
    add(fake, 'a')
    await pass()
    const stopped = stopPartition(fake.partition)
    fake.writes[0]?.fail(new Error('gone'))
    await pass(500)
    await stopped
    expect(fake.partition.unavailable).toBe('shutting_down')

    const { fake: idle } = await serve()
    await stopPartition(idle.partition)
    expect(idle.reported).toEqual(['close'])
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

  it('that is handed over waits five seconds for a disk that takes nothing', async () => {
    const { fake, queue } = await serve()
    later(queue, { kind: 'done', seq: 7 })
    let isOver = false
    const handed = handOver(fake.partition).then(() => {
      isOver = true
    })
    await pass(4_999)
    expect([isOver, fake.partition.unavailable]).toEqual([false, undefined])
    await pass(1)
    await handed
    expect(fake.partition.unavailable).toBe('standby')
  })

  it('that is handed over after it was lost stays lost', async () => {
    const { fake } = await serve()
    add(fake, 'a')
    await pass()
    const handed = handOver(fake.partition)
    fake.writes[0]?.fail(new Error('gone'))
    await pass()
    await handed
    expect(fake.partition.unavailable).toBe('journal')
    await handOver(createFake().partition)
  })

  it('leaves no timer behind that waited for a write', async () => {
    const { fake } = await serve()
    const before = vi.getTimerCount()
    await writeForAWhile(fake.partition)
    expect(vi.getTimerCount()).toBe(before)
  })
})

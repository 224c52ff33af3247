/** The thread of a SQLite queue, run in the thread of the test, with its journal, on a clock that the test sets. */
import { EventEmitter } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { topicConfig } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createJob, createTopicState, FLAG, type Job, STATE, type Topic } from './job.ts'
import { type Journal, JournalFullError } from './journal.ts'
import type { StoredJob } from './queue.ts'
import { sqliteJournal } from './sqlite-journal.ts'
import type { JournalReply, JournalRows, RowsRequest } from './sqlite-messages.ts'
import type { Change } from './state.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const CREATED_AT = Date.UTC(2026, 0, 1)
const SPARSE_MS = 60_000
const MIB = 1 << 20

type Message = { readonly id: number; readonly request: unknown }
/** What both sides of the thread see. */
const thread = vi.hoisted(() => ({
  starts: 0,
  data: undefined as unknown,
  database: undefined as unknown,
  port: undefined as EventEmitter | undefined,
  replies: [] as JournalReply[],
  syncs: 0,
  freeBytes: 0,
  isFull: false,
}))

vi.mock('node:worker_threads', () => ({
  get workerData() {
    return thread.data
  },
  get parentPort() {
    return thread.port
  },
  Worker: function startThread(_: URL, { workerData }: { workerData: unknown }) {
    const worker = new EventEmitter()
    const port = new EventEmitter()
    thread.data = workerData
    thread.port = port
    const path = `./sqlite-worker.ts?start=${++thread.starts}`
    const started = import(/* @vite-ignore */ path)
    const end = (code: number) => void started.catch(() => undefined).then(() => worker.emit('exit', code))
    started.catch((error) => {
      worker.emit('error', error)
      end(1)
    })
    const postMessage = (reply: JournalReply, transfer: ArrayBuffer[] = []) => {
      const copy = structuredClone(reply, { transfer })
      thread.replies.push(copy)
      queueMicrotask(() => worker.emit('message', copy))
    }
    Object.assign(port, { postMessage, close: () => end(0) })
    const post = (message: Message) => {
      const copy = structuredClone(message)
      started.then(
        () => port.emit('message', copy),
        () => undefined,
      )
    }
    return Object.assign(worker, { postMessage: post, terminate: async () => end(1) })
  },
}))

vi.mock('node:sqlite', async (original) => {
  const sqlite = await original<typeof import('node:sqlite')>()
  const open = function open(path: string) {
    const database = new sqlite.DatabaseSync(path)
    if (path.endsWith('queue.db')) thread.database = database
    return database
  }
  return { ...sqlite, DatabaseSync: open }
})

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>()
  return {
    ...fs,
    fdatasyncSync: () => void thread.syncs++,
    statfsSync: () => ({ bavail: thread.freeBytes / 512, bsize: 512 }),
    writeSync: (...args: Parameters<typeof fs.writeSync>) => {
      if (thread.isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      return fs.writeSync(...args)
    },
  }
})

let folder: string
let journal: Journal | undefined
const inFolder = (name: string) => join(folder, name)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-thread-'))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance'] })
  vi.advanceTimersByTime(1_000)
  Object.assign(thread, { replies: [], syncs: 0, freeBytes: 0, isFull: false })
})

afterEach(async () => {
  await closed()
  vi.useRealTimers()
  rmSync(folder, { recursive: true })
})

async function opened({ sparseMs = SPARSE_MS, isSynced = false, file = inFolder('queue.db') } = {}): Promise<Journal> {
  const onLost = (why: Error) => {
    throw why
  }
  const events = { onLost, onStandby: () => undefined, signal: new AbortController().signal }
  journal = await sqliteJournal({ file, partition: 0, partitions: 1, isSynced, sparseMs })(events)
  return journal
}

async function closed(): Promise<void> {
  const running = journal
  journal = undefined
  await running?.close()
}

async function reopened(options?: Parameters<typeof opened>[0]): Promise<Journal> {
  await closed()
  return opened(options)
}

const live = () => thread.database as DatabaseSync
/** Rows of the open file. */
const count = (...tables: ('jobs' | 'packs' | 'filed_packs' | 'pack_marks' | 'topics' | 'finished')[]) =>
  tables.map((table) => live().prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
const seqs = () =>
  live()
    .prepare('SELECT seq FROM jobs ORDER BY seq')
    .all()
    .map(({ seq }) => seq)

const topicOf = (name: string, number: number): Topic =>
  createTopicState(name, number, topicConfig.parse({}), CREATED_AT, Math.random)
const orders = topicOf('orders', 1)
const mail = topicOf('mail', 2)
const put = (job: Job): Change => ({ kind: 'put', job })
const done = ({ seq }: Pick<Job, 'seq'>): Change => ({ kind: 'done', seq })
const stored = (topic: Topic): Change => ({ kind: 'topic', topic, config: topic.config, redrive: undefined })
const gone = ({ number }: Topic): Change => ({ kind: 'topicGone', topicNumber: number })
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

function jobOf(seq: number, { topic = orders, data = `{"n":${seq}}`, runAt = 0, isNull = false } = {}): Job {
  const isWide = Buffer.byteLength(data) !== data.length
  const fields = {
    id: `job-${seq}-ü`,
    priority: seq % 10,
    flags: FLAG.json | (isWide ? FLAG.wide : 0),
    maxAttempts: seq % 3,
    ackDeadlineMs: 1_000 + seq,
    runAt,
    data: isNull ? undefined : data,
    bytes: isNull ? 0 : Buffer.byteLength(data),
  }
  return createJob(topic, fields, seq, runAt > 0 ? STATE.delayed : STATE.ready, CREATED_AT + (seq % 7) - 3)
}

const jobs = (from: number, to: number, fields: Parameters<typeof jobOf>[1] = {}) =>
  range(from, to).map((seq) => jobOf(seq, fields))
/** A delayed job is a row of its own. */
const rows = (from: number, to: number, fields: Parameters<typeof jobOf>[1] = {}) =>
  jobs(from, to, { ...fields, runAt: CREATED_AT + 5_000 })

/** What a journal keeps of a job. */
function kept(job: Job): StoredJob {
  const { id, seq, flags, priority, failures, deliveries, maxAttempts, ackDeadlineMs, createdAt, runAt, data } = job
  const numbers = { priority, failures, deliveries, maxAttempts, ackDeadlineMs, createdAt, runAt }
  const { bytes, past } = job
  const isDead = job.state === STATE.dead
  const { reason, lastError, deadAt, history } = past ?? { reason: undefined, lastError: '', deadAt: 0, history: [] }
  const shown = { reason, lastError, deadAt, history }
  return { id, seq, topicNumber: job.topic.number, flags, isDead, ...numbers, data, bytes, past: past && shown }
}

async function everything(from: Journal) {
  const all = { topics: [] as string[], finished: [] as unknown[], jobs: [] as StoredJob[], next: 0 }
  for await (const batch of from.load())
    for (const each of batch) {
      if (each.kind === 'nextTopic') all.next = each.number
      else if (each.kind === 'topic') all.topics.push(each.topic.name)
      else if (each.kind === 'finished') all.finished.push([each.topicNumber, each.id, each.at])
      else all.jobs.push(...each.jobs)
    }
  return all
}
const loaded = async (from: Journal) => (await everything(from)).jobs

/** Asks the thread for rows, as loading does. */
async function readRows(request: Omit<RowsRequest, 'kind'>): Promise<JournalRows> {
  const before = thread.replies.length
  thread.port?.emit('message', { id: 999_999, request: { kind: 'rows', ...request } })
  const reply = thread.replies[before] as { value?: JournalRows; error?: { message: string } }
  if (reply.value === undefined) throw new Error(reply.error?.message)
  return reply.value
}

describe('a group', () => {
  it('keeps every value of a job', async () => {
    const list = [
      jobOf(1),
      jobOf(2, { isNull: true }),
      jobOf(3, { data: '{"name":"Grüße 🎉"}' }),
      jobOf(4, { runAt: CREATED_AT + 9_000 }),
      jobOf(5, { data: '' }),
    ]
    const running = await opened()
    await running.write([stored(orders), ...list.map(put)])
    expect(count('jobs', 'packs')).toEqual([5, 0])
    expect(await loaded(running)).toEqual(list.map(kept))
    expect(await loaded(await reopened())).toEqual(list.map(kept))
  })

  it('keeps why a job is dead and how often it came back, also of a job of a pack', async () => {
    const list = jobs(1, 12)
    const running = await opened()
    await running.write([stored(orders), ...list.map(put)])
    expect(count('jobs', 'packs')).toEqual([0, 1])
    const [dead, back, again] = [list[0], list[1], list[2]] as [Job, Job, Job]
    const line = { at: CREATED_AT + 1, event: 'nack', attempt: 1, consumer: 'w', error: 'no room' } as never
    const past = { lastError: 'no room', agesFrom: 0, group: undefined, history: [line] }
    dead.past = { ...past, reason: 'rejected', deadAt: CREATED_AT + 7 }
    Object.assign(dead, { state: STATE.dead, failures: 1, deliveries: 2 })
    back.past = { ...past, reason: undefined, deadAt: 0 }
    Object.assign(back, { failures: 1, deliveries: 3 })
    Object.assign(again, { state: STATE.delayed, runAt: CREATED_AT + 900 })
    await running.write([dead, back, again].map((job) => ({ kind: 'update', seq: job.seq, job })))

    expect(count('jobs', 'packs', 'pack_marks')).toEqual([3, 1, 1])
    expect(await loaded(running)).toEqual(list.map(kept))
    expect(await loaded(await reopened())).toEqual(list.map(kept))

    // Redriven: another number, with nothing counted.
    Object.assign(dead, { seq: 13, state: STATE.ready, failures: 0, deliveries: 0 })
    await journal?.write([{ kind: 'redrive', seq: 1, job: dead }])
    const last = (await loaded(journal as Journal)).at(-1)
    expect(last).toMatchObject({ id: 'job-1-ü', seq: 13, isDead: false, failures: 0, past: { lastError: 'no room' } })
  })

  it('removes the jobs that are done and no other', async () => {
    const running = await opened()
    await running.write([stored(orders)])
    for (const seqsDone of [[3], [1], [8], [2, 3, 4], [1, 2, 5, 6], [8, 4, 6, 2], [1, 2, 3, 4, 5, 6, 7, 8], []]) {
      await running.write(rows(1, 8).map(put))
      await running.write(seqsDone.map((seq) => done({ seq })))
      const left = range(1, 8).filter((seq) => !seqsDone.includes(seq))
      expect(seqs(), `done: ${seqsDone}`).toEqual(left)
      await running.write(left.map((seq) => done({ seq })))
    }
  })

  it('removes rows beside jobs of packs, and keeps the numbers between them', async () => {
    const running = await opened()
    const list = [...rows(1, 3), ...jobs(4, 13), ...rows(14, 16), ...jobs(17, 26)]
    await running.write([stored(orders), ...list.map(put)])
    const isDone = (seq: number) => [2, 3, 4, 13, 14, 16, 18].includes(seq)
    await running.write(list.filter(({ seq }) => isDone(seq)).map(done))
    expect(seqs()).toEqual([1, 15])
    expect(await loaded(running)).toEqual(list.filter(({ seq }) => !isDone(seq)).map(kept))
  })

  it('is stored as a whole or not at all', async () => {
    const running = await opened()
    const list = [...rows(1, 2), ...jobs(3, 12)]
    await running.write([stored(orders), ...list.map(put)])
    const failing = [...list.slice(0, 5).map(done), stored(mail), put(jobOf(12 + 1)), put(jobOf(12 + 1))]
    await expect(running.write(failing)).rejects.toThrow(/UNIQUE constraint failed: jobs[.]seq/)
    await expect(running.write(failing)).rejects.not.toBeInstanceOf(JournalFullError)
    expect(live().isTransaction).toBe(false)

    expect(await everything(running)).toMatchObject({ topics: ['orders'], jobs: list.map(kept), next: 2 })
    await running.write(list.slice(0, 5).map(done))
    expect(await loaded(running)).toEqual(list.slice(5).map(kept))
  })

  it('stores topics, their later configuration, and the highest number of a topic', async () => {
    const running = await opened()
    await running.write([stored(mail), stored(orders)])
    expect(await everything(running)).toMatchObject({ topics: ['orders', 'mail'], next: 3 })
    const config = topicConfig.parse({ paused: true })
    await running.write([{ kind: 'topic', topic: orders, config, redrive: undefined }])
    const row = live().prepare('SELECT config FROM topics WHERE topic_no = 1').get()
    expect(JSON.parse(row?.['config'] as string)).toEqual(config)
    expect(count('topics')).toEqual([2])
  })

  it('keeps ids that finished, oldest first, until they are forgotten', async () => {
    const running = await opened()
    const finished = (topic: Topic, id: string, at: number): Change => ({
      ...{ kind: 'finished', topicNumber: topic.number, id, at },
    })
    await running.write([stored(orders), stored(mail), finished(orders, 'b', 20), finished(mail, 'b', 10)])
    await running.write([finished(orders, 'a', 30), finished(orders, 'c', 5)])
    await running.write([finished(orders, 'c', 40)])
    await running.write([{ kind: 'forget', topicNumber: 1, ids: ['b', 'a'] }])
    expect((await everything(running)).finished).toEqual([
      [2, 'b', 10],
      [1, 'c', 40],
    ])
  })

  it('is written from memory of its own when it is larger than the usual area', async () => {
    const running = await opened()
    const data = `"${'x'.repeat(900_000)}"`
    const list = [...rows(1, 7, { data }), ...jobs(8, 20)]
    await running.write([stored(orders), ...list.map(put)])
    expect(await loaded(running)).toEqual(list.map(kept))
  })
})

describe('reading', () => {
  it('gives all jobs once and in order, however they are packed and paged', async () => {
    const random = createRandom(SEED)
    const running = await opened()
    const list: Job[] = []
    for (let seq = 1; seq < 700; ) {
      const size = [1, 8, 9, 12, 30][random.below(5)] as number
      const make = random.below(3) > 0 ? jobs : rows
      list.push(...make(seq, seq + size - 1))
      seq += size + random.below(3)
    }
    await running.write([stored(orders), ...list.map(put)])
    const left = list.filter(() => random.below(10) < 8)
    await running.write(list.filter((job) => !left.includes(job)).map(done))
    for (const limit of [1, 7, 128, 140]) {
      // Jobs that failed are rows between those of their pack. A page has room for a pack of them.
      const failed = limit < 128 ? [] : left.filter(() => random.below(10) === 0)
      await running.write(failed.map((job) => ({ kind: 'update', seq: job.seq, job })))
      const found: number[] = []
      let after: number | undefined = 0
      while (after !== undefined) {
        const page: JournalRows = await readRows({ after, limit, half: 0 })
        const read = range(0, page.ids.length - 1).map((n) => page.numbers[n * 13] as number)
        for (const { seq, count: size, marks } of page.packs)
          for (let n = 0; n < size; n++)
            if (marks === undefined || ((marks[n >> 3] as number) & (1 << (n & 7))) === 0) read.push(seq + n)
        found.push(...read.sort((a, b) => a - b))
        expect(page.next ?? Number.MAX_SAFE_INTEGER, `VACANCY_SEED=${SEED}`).toBeGreaterThanOrEqual(found.at(-1) ?? 0)
        after = page.next
      }
      expect(found, `VACANCY_SEED=${SEED}, limit ${limit}`).toEqual(left.map(({ seq }) => seq))
    }
  })

  it('needs no more pages than there are', async () => {
    const running = await opened()
    const list = rows(1, 2_001)
    await running.write([stored(orders), ...list.map(put)])
    const pages = async () => {
      const sizes: number[] = []
      for await (const batch of running.load())
        for (const each of batch) if (each.kind === 'jobs') sizes.push(each.jobs.length)
      return sizes
    }
    expect(await pages()).toEqual([2_000, 1])
    await running.write([done({ seq: 7 })])
    expect(await pages()).toEqual([2_000, 0])
    await running.write([done({ seq: 9 })])
    expect(await pages()).toEqual([1_999])
  })

  it('names a pack that is missing', async () => {
    const running = await opened()
    await running.write([stored(orders), ...jobs(5, 14).map(put)])
    live().exec('DELETE FROM packs')
    await expect(loaded(running)).rejects.toThrow('the pack of number 5 is missing')
  })

  it('puts packs of files into the half of the area that is not in use, while they fit', async () => {
    const running = await opened()
    const data = `"${'x'.repeat(25_000)}"`
    const list = jobs(1, 128, { data })
    await running.write([stored(orders), ...list.map(put)])
    for (const half of [0, 1] as const) {
      const { packs } = await readRows({ after: 0, limit: 10_000, half })
      const shared = packs.filter((pack) => pack.data.buffer instanceof SharedArrayBuffer)
      const room = (5 * MIB) / 2
      expect(shared.length).toBeGreaterThan(5)
      expect(shared.length).toBeLessThan(packs.length)
      let end = half * room
      for (const { data: bytes } of shared) {
        expect(bytes.byteOffset).toBe(end)
        end += bytes.byteLength
      }
      expect(end).toBeLessThanOrEqual((half + 1) * room)
      expect(room * (half + 1) - end).toBeLessThan(packs[0]?.data.byteLength as number)
    }
    expect(await loaded(running)).toEqual(list.map(kept))
  })
})

/** Two packs of ten jobs whose bytes are exactly so many. */
function twoPacks(from: number, bytes: number): Job[] {
  const pack = (first: number, total: number) => {
    const list = jobs(first, first + 9)
    const ids = list.reduce((sum, { id }) => sum + Buffer.byteLength(id), 0)
    let left = total - 4 - 320 - ids
    return list.map(({ seq }, n) => {
      const size = n === 9 ? left : Math.floor((total - 324 - ids) / 10)
      left -= size
      return jobOf(seq, { data: `"${'z'.repeat(size - 2)}"` })
    })
  }
  return [...pack(from, bytes >> 1), ...pack(from + 11, bytes - (bytes >> 1))]
}
const packFiles = () => readdirSync(folder).filter((name) => /-packs-[0-9a-f]{8}-[0-9]+$/.test(name))

describe('packs of a large group', () => {
  it.each([
    [-1, [2, 0]],
    [0, [0, 2]],
    [1, [0, 2]],
  ])('are in a file from 256 KiB: %i bytes more', async (more, expected) => {
    const running = await opened()
    const list = twoPacks(1, 256 * 1_024 + more)
    await running.write([stored(orders), ...list.map(put)])
    expect(count('packs', 'filed_packs')).toEqual(expected)
    expect(packFiles().length).toBe(expected[1] === 2 ? 1 : 0)
    expect(await loaded(running)).toEqual(list.map(kept))
    expect(await loaded(await reopened())).toEqual(list.map(kept))
  })

  it.each([
    ['a small group', jobs(1, 20), 1],
    ['a large group', twoPacks(1, 300_000), 2],
  ])('are synced before the group: %s', async (_, list, syncs) => {
    const running = await opened({ isSynced: true })
    await running.write([stored(orders)])
    thread.syncs = 0
    await running.write(list.map(put))
    expect(thread.syncs).toBe(syncs)
  })

  it('leave their file with their last job, and mark the others', async () => {
    const running = await opened()
    const list = twoPacks(1, 300_000)
    await running.write([stored(orders), ...list.map(put)])
    const { bytes, freeBytes } = await running.sizes()
    await running.write(list.slice(0, 9).map(done))
    expect(count('filed_packs', 'pack_marks')).toEqual([2, 1])
    expect((await running.sizes()).freeBytes).toBeLessThan(freeBytes + 20_000)
    await running.write(list.slice(9, 10).map(done))
    expect(count('filed_packs', 'pack_marks')).toEqual([1, 0])
    expect((await running.sizes()).freeBytes - freeBytes).toBeGreaterThan(140_000)
    expect((await running.sizes()).bytes).toBe(bytes)
    await running.write(list.slice(10).map(done))
    expect(count('filed_packs', 'pack_marks', 'jobs')).toEqual([0, 0, 0])
    expect((await running.sizes()).bytes).toBeLessThan(bytes - 290_000)
  })

  it('make rows of jobs that failed', async () => {
    const running = await opened()
    const list = twoPacks(1, 300_000)
    await running.write([stored(orders), ...list.map(put)])
    const failed = [list[0], list[9], list[15]] as Job[]
    for (const job of failed) job.failures = 2
    await running.write(failed.map((job) => ({ kind: 'update', seq: job.seq, job })))
    expect(seqs()).toEqual(failed.map(({ seq }) => seq))
    expect(await loaded(await reopened())).toEqual(list.map(kept))
  })
})

describe('the rest of a pack', () => {
  it.each([
    ['more than half is left', 9, SPARSE_MS * 2, true],
    ['half is left, not long enough', 10, SPARSE_MS - 1, true],
    ['half is left, long enough', 10, SPARSE_MS, false],
    ['one is left', 19, SPARSE_MS, false],
  ])('becomes rows when %s', async (_, finished, waitMs, isPacked) => {
    const list = jobs(1, 20)
    const running = await opened({ isSynced: true })
    await running.write([stored(orders), ...list.map(put)])
    await running.write(list.slice(0, finished).map(done))
    thread.syncs = 0
    vi.advanceTimersByTime(waitMs)
    expect(count('jobs', 'packs', 'pack_marks')).toEqual(isPacked ? [0, 1, 1] : [20 - finished, 0, 0])
    expect(thread.syncs).toBe(isPacked ? 0 : 1)
    expect(await loaded(running)).toEqual(list.slice(finished).map(kept))
    await running.write(list.slice(finished).map(done))
    expect(count('jobs', 'packs')).toEqual([0, 0])
  })

  it('becomes rows after a start, too', async () => {
    const list = jobs(1, 20)
    await (await opened()).write([stored(orders), ...list.map(put)])
    await journal?.write(list.slice(5).map(done))
    const running = await reopened()
    vi.advanceTimersByTime(SPARSE_MS - 1)
    expect(count('packs')).toEqual([1])
    vi.advanceTimersByTime(1)
    expect(count('packs', 'pack_marks')).toEqual([0, 0])
    expect(await loaded(running)).toEqual(list.slice(0, 5).map(kept))
  })

  it('waits from when it became small, each for itself', async () => {
    const list = [...jobs(1, 20), ...jobs(22, 41)]
    const running = await opened()
    await running.write([stored(orders), ...list.map(put)])
    await running.write(list.slice(0, 10).map(done))
    vi.advanceTimersByTime(SPARSE_MS / 2)
    await running.write(list.slice(20, 30).map(done))
    vi.advanceTimersByTime(SPARSE_MS / 2)
    expect(count('packs')).toEqual([1])
    vi.advanceTimersByTime(SPARSE_MS)
    expect(count('packs', 'jobs')).toEqual([0, 20])
  })

  it('is followed by that of others at once when there are many', async () => {
    const groups = range(0, 39).map((n) => jobs(n * 9 + 1, n * 9 + 8))
    const running = await opened()
    await running.write([stored(orders), ...groups.flat().map(put)])
    await running.write(groups.flatMap((group) => group.slice(0, 7)).map(done))
    expect(count('packs')).toEqual([40])
    vi.advanceTimersByTime(SPARSE_MS)
    expect(count('packs')).toEqual([8])
    vi.advanceTimersByTime(1)
    expect(count('packs', 'jobs')).toEqual([0, 40])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is nothing when its last job is done in time', async () => {
    const running = await opened()
    await running.write([stored(orders), ...jobs(1, 20).map(put)])
    await running.write(jobs(1, 15).map(done))
    await running.write(jobs(16, 20).map(done))
    vi.advanceTimersByTime(SPARSE_MS)
    expect(count('jobs', 'packs')).toEqual([0, 0])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('stays when the disk is full, and is tried again', async () => {
    const running = await opened()
    const list = jobs(1, 100, { data: `"${'x'.repeat(2_000)}"` })
    await running.write([stored(orders), ...list.map(put)])
    await running.write(list.slice(0, 60).map(done))
    live().exec('PRAGMA max_page_count = 1')
    vi.advanceTimersByTime(SPARSE_MS)
    expect(live().isTransaction).toBe(false)
    expect(count('jobs', 'packs')).toEqual([0, 1])
    live().exec('PRAGMA max_page_count = 100000')
    vi.advanceTimersByTime(SPARSE_MS)
    expect(await loaded(running)).toEqual(list.slice(60).map(kept))
    expect(count('jobs')).toEqual([40])
  })

  it('ends the thread when it cannot be read', async () => {
    const running = await opened()
    await running.write([stored(orders), ...jobs(1, 20).map(put)])
    await running.write(jobs(1, 15).map(done))
    live().exec('UPDATE packs SET data = zeroblob(3)')
    expect(() => vi.advanceTimersByTime(SPARSE_MS)).toThrow('damaged: the jobs from number 1 cannot be read')
  })

  it('moves out of a file that holds little else', async () => {
    const running = await opened({ isSynced: true })
    const first = twoPacks(1, 300_001)
    await running.write([stored(orders), ...first.map(put)])
    // A group that does not fit the file: another one begins.
    const large = jobs(100, 100 + 519, { data: `"${'y'.repeat(32_500)}"` })
    await running.write(large.map(put))
    expect(packFiles().length).toBe(2)
    await running.write(first.slice(9).map(done))
    vi.advanceTimersByTime(SPARSE_MS)
    thread.syncs = 0
    vi.advanceTimersByTime(SPARSE_MS - 1)
    expect(count('packs')).toEqual([0])
    vi.advanceTimersByTime(1)
    expect(count('packs', 'jobs', 'pack_marks')).toEqual([1, 0, 1])
    expect(count('filed_packs')[0]).toBeGreaterThan(60)
    expect(thread.syncs).toBe(1)
    // A job of it can be done as before.
    await running.write([done(first[0] as Job)])
    expect(await loaded(await reopened())).toEqual([...first.slice(1, 9), ...large].map(kept))
    expect(packFiles().length).toBe(1)
  })
})

describe('a deleted topic', () => {
  it('is gone at once, and its rows and jobs of packs when nothing else is to be done', async () => {
    const running = await opened({ isSynced: true })
    const others = rows(3_001, 3_003, { topic: mail })
    const mixed = range(4_001, 4_012).map((seq) => jobOf(seq, { topic: seq % 2 === 0 ? orders : mail }))
    const packed = jobs(5_001, 5_010)
    const finished: Change = { kind: 'finished', topicNumber: 1, id: 'x', at: 5 }
    const jobChanges = [...rows(1, 2_003), ...others, ...mixed, ...packed].map(put)
    await running.write([stored(orders), stored(mail), finished, ...jobChanges])
    thread.syncs = 0
    await running.write([gone(orders)])
    expect((await everything(running)).topics).toEqual(['mail'])
    expect(count('jobs', 'packs', 'finished')).toEqual([2_006, 2, 1])
    expect(thread.syncs).toBe(1)

    vi.advanceTimersToNextTimer()
    expect(count('jobs', 'topics')).toEqual([6, 2])
    expect(thread.syncs).toBe(2)
    vi.runAllTimers()
    expect(count('jobs', 'packs', 'finished', 'topics')).toEqual([9, 0, 0, 1])
    const left = [...others, ...mixed.filter(({ topic }) => topic === mail)]
    expect(await everything(running)).toMatchObject({ topics: ['mail'], jobs: left.map(kept), next: 3 })
  })

  it('may have its name again, and be deleted again', async () => {
    const running = await opened()
    await running.write([stored(orders), ...jobs(1, 12).map(put)])
    const next = topicOf('orders', 2)
    await running.write([gone(orders), stored(next), ...jobs(13, 24, { topic: next }).map(put)])
    vi.advanceTimersByTime(0)
    expect((await loaded(running)).map(({ seq }) => seq)).toEqual(range(13, 24))
    await running.write([gone(next), stored(topicOf('orders', 3))])
    vi.advanceTimersByTime(0)
    expect(count('jobs', 'packs', 'topics')).toEqual([0, 0, 1])
    expect(await everything(running)).toMatchObject({ topics: ['orders'], jobs: [], next: 4 })
  })

  it('is removed from all packs, some at a time', async () => {
    const running = await opened()
    const groups = range(0, 69).map((n) => jobs(n * 9 + 1, n * 9 + 8))
    const others = jobs(1_001, 1_010, { topic: mail })
    await running.write([stored(orders), stored(mail), ...groups.flat().map(put), ...others.map(put)])
    await running.write([gone(orders)])
    vi.advanceTimersToNextTimer()
    expect(count('packs')).toEqual([71 - 32])
    vi.advanceTimersToNextTimer()
    expect(count('packs')).toEqual([71 - 64])
    vi.runAllTimers()
    expect(count('packs', 'topics')).toEqual([1, 1])
    expect(await loaded(running)).toEqual(others.map(kept))
  })

  it('is removed after the next start when it was not before', async () => {
    const running = await opened()
    await running.write([stored(orders), stored(mail), ...rows(1, 9).map(put), ...jobs(10, 20).map(put)])
    await running.write([gone(orders), gone(mail)])
    await reopened()
    expect(count('jobs', 'packs', 'topics')).toEqual([9, 1, 2])
    vi.advanceTimersByTime(0)
    vi.runAllTimers()
    expect(count('jobs', 'packs', 'topics')).toEqual([0, 0, 0])
  })

  it('frees the space of its pack files', async () => {
    const running = await opened()
    await running.write([stored(orders), ...twoPacks(1, 400_000).map(put)])
    const { bytes } = await running.sizes()
    await running.write([gone(orders)])
    vi.runAllTimers()
    expect(count('filed_packs')).toEqual([0])
    expect((await running.sizes()).bytes).toBe(bytes - 400_000)
  })

  it('stays until the next start when its rows cannot be removed', async () => {
    const running = await opened()
    await running.write([stored(orders), stored(mail), ...rows(1, 9).map(put), ...jobs(10, 20).map(put)])
    live().exec("CREATE TRIGGER stuck BEFORE DELETE ON jobs BEGIN SELECT raise(ABORT, 'stuck'); END")
    await running.write([gone(orders)])
    vi.runAllTimers()
    expect(thread.replies.at(-1)).toEqual({ id: 0, error: { message: 'stuck', isFull: false } })
    expect(live().isTransaction).toBe(false)
    expect(count('jobs', 'packs', 'topics')).toEqual([9, 1, 2])
    live().exec('DROP TRIGGER stuck')
    await running.write(jobs(30, 31, { topic: mail }).map(put))
    expect(vi.getTimerCount()).toBe(0)
    await reopened()
    vi.runAllTimers()
    expect(count('jobs', 'packs', 'topics')).toEqual([2, 0, 1])
  })
})

describe('the reserve for a full disk', () => {
  const reserve = () => statSync(inFolder('queue.db.reserve'), { throwIfNoEntry: false })

  it('is made from 64 MiB of free space on, and only its owner reads it', async () => {
    thread.freeBytes = 64 * MIB - 512
    const running = await opened()
    expect(reserve()).toBeUndefined()
    thread.freeBytes = 64 * MIB
    await running.write([stored(orders)])
    expect(reserve()?.size).toBe(16 * MIB)
    expect((reserve()?.mode ?? 0) & 0o777).toBe(0o600)
  })

  it('is given up when a group does not fit, and made again later', async () => {
    writeFileSync(inFolder('queue.db.reserve'), 'reserve')
    const running = await opened()
    await running.write([stored(orders)])
    const list = twoPacks(1, 300_000)
    thread.isFull = true
    const error = await running.write(list.map(put)).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(JournalFullError)
    expect(error.message).toBe('no space left on device')
    expect(existsSync(inFolder('queue.db.reserve'))).toBe(false)
    thread.isFull = false
    expect(await loaded(running)).toEqual([])
    await running.write(list.map(put))
    expect(await loaded(running)).toEqual(list.map(kept))
    expect(reserve()).toBeUndefined()
    thread.freeBytes = 80 * MIB
    await running.write([done({ seq: 1 })])
    expect(reserve()?.size).toBe(16 * MIB)
  })

  it('is given up when SQLite has no room, and kept with any other error', async () => {
    writeFileSync(inFolder('queue.db.reserve'), 'reserve')
    const running = await opened()
    await running.write([stored(orders), put(jobOf(1))])
    await expect(running.write([put(jobOf(1))])).rejects.toThrow(/UNIQUE/)
    expect(reserve()).toBeDefined()
    live().exec('PRAGMA max_page_count = 1')
    const group = rows(2, 6, { data: `"${'x'.repeat(30_000)}"` })
    await expect(running.write(group.map(put))).rejects.toBeInstanceOf(JournalFullError)
    expect(reserve()).toBeUndefined()
    await running.write([done({ seq: 1 })])
    expect(count('jobs')).toEqual([0])
  })
})

describe('a backup', () => {
  it('is one file with all that is left, which only its owner reads', async () => {
    const running = await opened()
    const list = [...twoPacks(1, 300_000), ...jobs(30, 49), ...rows(50, 52)]
    await running.write([stored(orders), ...list.slice(0, 20).map(put)])
    await running.write(list.slice(20).map(put))
    await running.write([...list.slice(0, 3), ...list.slice(10, 20), ...list.slice(22, 24)].map(done))
    const left = [...list.slice(3, 10), ...list.slice(20, 22), ...list.slice(24)]
    mkdirSync(inFolder('copy'))
    const file = inFolder('copy/queue.db')
    await running.backup(file)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await expect(running.backup(file)).rejects.toThrow(/EEXIST/)
    expect(await loaded(running)).toEqual(left.map(kept))
    const names = packFiles()
    await closed()

    expect(await loaded(await opened({ file }))).toEqual(left.map(kept))
    expect(count('packs', 'filed_packs')).toEqual([2, 0])
    expect(readdirSync(inFolder('copy')).sort()).toEqual(['queue.db', 'queue.db-wal'])
    await journal?.write(twoPacks(100, 300_000).map(put))
    // Beside the first queue its files would have other names.
    const [name = ''] = readdirSync(inFolder('copy')).filter((each) => each.includes('-packs-'))
    expect(name).not.toBe('')
    expect(names).not.toContain(name)
  })

  it('leaves no file when a pack cannot be read', async () => {
    const running = await opened()
    await running.write([stored(orders), ...twoPacks(1, 300_000).map(put)])
    live().exec('UPDATE filed_packs SET checksum = 1; DELETE FROM filed_packs WHERE seq = 1')
    await expect(running.backup(inFolder('copy.db'))).rejects.toThrow('the pack of number 1 is missing')
    expect(existsSync(inFolder('copy.db'))).toBe(false)
  })
})

describe('the file', () => {
  it('becomes smaller on request, by what is free', async () => {
    const running = await opened()
    const data = `"${'x'.repeat(50_000)}"`
    await running.write([stored(orders), ...rows(1, 12, { data }).map(put)])
    await running.write(rows(1, 12).map(done))
    const before = await running.sizes()
    expect(before.bytes % 16_384).toBe(0)
    expect(before.freeBytes).toBeGreaterThanOrEqual(600_000)
    await running.vacuum()
    expect(await running.sizes()).toEqual({ bytes: before.bytes - before.freeBytes, freeBytes: 0 })
  })

  it('is whole without its log after the end, and nothing is left to be done', async () => {
    const running = await opened()
    await running.write([stored(orders), stored(mail), ...jobs(1, 20).map(put)])
    await running.write([gone(mail), ...jobs(1, 15).map(done)])
    expect(vi.getTimerCount()).toBe(2)
    await closed()
    expect(vi.getTimerCount()).toBe(0)
    expect(statSync(inFolder('queue.db-wal'), { throwIfNoEntry: false })?.size ?? 0).toBe(0)
    await expect(running.write([])).rejects.toThrow('the journal is closed')
    mkdirSync(inFolder('moved'))
    copyFileSync(inFolder('queue.db'), inFolder('moved/queue.db'))
    expect(await loaded(await opened({ file: inFolder('moved/queue.db') }))).toEqual(jobs(16, 20).map(kept))
  })

  it('has all that was written when the process is killed', async () => {
    const running = await opened()
    const list = [...twoPacks(1, 300_000), ...rows(30, 33)]
    await running.write([stored(orders), ...list.map(put)])
    await running.write([done({ seq: 1 }), done({ seq: 30 })])
    mkdirSync(inFolder('killed'))
    for (const name of readdirSync(folder).filter((each) => each.startsWith('queue.db')))
      if (!name.endsWith('-shm')) copyFileSync(inFolder(name), inFolder(`killed/${name}`))
    await closed()
    const left = list.filter(({ seq }) => seq !== 1 && seq !== 30)
    expect(await loaded(await opened({ file: inFolder('killed/queue.db') }))).toEqual(left.map(kept))
  })
})

/** The journal in a SQLite file: groups go to a worker thread as one message each (docs/design/queue.md#journal). */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { VacancyError } from '@vacancy/shared'
import type { DeadReason } from '@vacancy/shared/contract'
import { watchFile } from '@vacancy/shared/file-lock'
import type { HistoryLine, Job } from './job.ts'
import { type Journal, JournalFullError, type JournalSizes, type OpenJournal, type Stored } from './journal.ts'
import { type JournalTables, payloadBytes, readPayload, rowsOf, writePayload } from './journal-tables.ts'
import type { StoredJob } from './queue.ts'
import {
  AREA_BYTES,
  type JournalReply,
  type JournalRequest,
  type JournalRows,
  type PackRequest,
  PUT_NUMBERS,
  READ_NUMBERS,
  type ThreadOptions,
  type WorkerOptions,
  type WriteRequest,
} from './sqlite-messages.ts'
import { isMarked, type PackRange, packRanges, readPack, topicOfPack, writePack } from './sqlite-packs.ts'
import { storedTopic } from './stored-rows.ts'

/** Rows of one message while loading. */
const LOAD_ROWS = 2_000

type Waiting = { resolve(value: unknown): void; reject(error: Error): void }
type Thread = {
  readonly worker: Worker
  /** Rows of the group that is being written. */
  readonly area: SharedArrayBuffer
  readonly waiting: Map<number, Waiting>
  failure: Error | undefined
  requests: number
}

/** Opens the file, which no other process can use until it is closed; once it is deleted or replaced, the program ends. */
export function sqliteJournal(options: WorkerOptions): OpenJournal {
  return async ({ onLost }) => {
    mkdirSync(dirname(options.file), { recursive: true })
    const thread = await startThread(options, onLost)
    const stopWatching = watchFile(options.file)
    return {
      kind: 'sqlite',
      load: () => load(thread, options.file),
      write: async (changes) => void (await send(thread, encodeGroup(rowsOf(changes), thread.area))),
      backup: async (path) => {
        await send(thread, { kind: 'backup', path })
      },
      vacuum: async () => void (await send(thread, { kind: 'vacuum' })),
      sizes: async () => (await send(thread, { kind: 'sizes' })) as JournalSizes,
      close: () => {
        stopWatching()
        return close(thread)
      },
    } satisfies Journal
  }
}

async function startThread(options: WorkerOptions, onLost: (why: Error) => void): Promise<Thread> {
  const area = new SharedArrayBuffer(AREA_BYTES)
  const workerData: ThreadOptions = { ...options, area }
  const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url), { name: 'journal', workerData })
  const thread: Thread = { worker, area, waiting: new Map(), failure: undefined, requests: 0 }
  let isOpen = false
  const fail = (error: Error) => {
    if (thread.failure !== undefined) return
    thread.failure = error
    for (const { reject } of thread.waiting.values()) reject(error)
    thread.waiting.clear()
    if (isOpen) onLost(error)
  }
  worker.on('message', (reply: JournalReply) => {
    const waiting = thread.waiting.get(reply.id)
    thread.waiting.delete(reply.id)
    if ('value' in reply) waiting?.resolve(reply.value)
    else if (reply.error.isFull) waiting?.reject(new JournalFullError(reply.error.message))
    else waiting?.reject(new Error(reply.error.message))
  })
  worker.on('error', (error) => fail(error as Error))
  worker.on('exit', (code) => fail(new Error(`the journal thread ended with code ${code}`)))
  try {
    await send(thread, { kind: 'sizes' })
  } catch (cause) {
    // The file stays locked until the thread has ended.
    await worker.terminate()
    throw openError(options.file, cause as Error)
  }
  isOpen = true
  return thread
}

/** Names the file and what to do. */
function openError(file: string, cause: Error): VacancyError {
  const { message } = cause
  const isDamaged = /damaged|malformed|not a database/.test(message)
  const isLocked = /locked/.test(message)
  const todo = isLocked
    ? 'another process uses it. Stop that process, or choose another folder with --data-dir'
    : isDamaged
      ? 'Restore a backup over it, or move it away to begin with an empty queue'
      : 'The file was not changed'
  return new VacancyError(
    isLocked ? 'data_conflict' : 'failure',
    { reason: `the queue file ${file} cannot be used: ${message}. ${todo}` },
    { cause },
  )
}

function send(thread: Thread, request: JournalRequest): Promise<unknown> {
  if (thread.failure !== undefined) return Promise.reject(thread.failure)
  const id = ++thread.requests
  return new Promise((resolve, reject) => {
    thread.waiting.set(id, { resolve, reject })
    thread.worker.postMessage({ id, request })
  })
}

async function close(thread: Thread): Promise<void> {
  if (thread.failure !== undefined) {
    await thread.worker.terminate()
    return
  }
  const ended = new Promise((resolve) => thread.worker.once('exit', resolve))
  const closing = send(thread, { kind: 'close' })
  // Its end is expected, and may be noticed in the same turn as its reply.
  thread.failure = new Error('the journal is closed')
  await Promise.race([closing, ended])
  await ended
}

/** A small message for a group: numbers, payloads and packs are in memory that both threads see. */
function encodeGroup({ puts, done, ...rest }: ReturnType<typeof rowsOf>, usual: SharedArrayBuffer): WriteRequest {
  const ranges = packRanges(puts)
  const rows = ranges.length === 0 ? puts : outside(puts, ranges)
  const numbersLength = rows.length * PUT_NUMBERS
  const payloadAt = (numbersLength + done.length) * Float64Array.BYTES_PER_ELEMENT
  let bytes = payloadAt
  for (const job of rows) bytes += Math.max(0, payloadBytes(job))
  for (const { bytesMax } of ranges) bytes += bytesMax
  const area = bytes <= usual.byteLength ? usual : new SharedArrayBuffer(bytes)
  const numbers = new Float64Array(area, 0, numbersLength)
  const buffer = Buffer.from(area)
  let at = payloadAt
  let ids = ''
  for (let n = 0; n < rows.length; n++) {
    const job = rows[n] as Job
    const offset = n * PUT_NUMBERS
    numbers[offset] = job.seq
    numbers[offset + 1] = job.topic.number
    numbers[offset + 2] = job.flags
    numbers[offset + 3] = job.priority
    numbers[offset + 4] = job.maxAttempts
    numbers[offset + 5] = job.ackDeadlineMs
    numbers[offset + 6] = job.createdAt
    numbers[offset + 7] = job.runAt
    numbers[offset + 8] = payloadBytes(job)
    at += writePayload(job, buffer, at)
    ids += n === 0 ? job.id : `\n${job.id}`
  }
  const packs: PackRequest[] = []
  for (const range of ranges) {
    const { seq, createdAt } = puts[range.from] as Job
    const to = writePack(puts, range, buffer, at)
    packs.push({ seq, topicNumber: topicOfPack(puts, range), count: range.count, createdAt, from: at, to })
    at = to
  }
  const finished = new Float64Array(area, numbersLength * Float64Array.BYTES_PER_ELEMENT, done.length)
  finished.set(done)
  // Neighbours are deleted together.
  finished.sort()
  return {
    kind: 'write',
    ...rest,
    puts: rows.length,
    done: done.length,
    ids,
    packs,
    area: area === usual ? undefined : area,
  }
}

/** Jobs that are in no range. */
function outside(jobs: readonly Job[], ranges: readonly PackRange[]): Job[] {
  const rest: Job[] = []
  let from = 0
  for (const range of ranges) {
    for (; from < range.from; from++) rest.push(jobs[from] as Job)
    from += range.count
  }
  for (; from < jobs.length; from++) rest.push(jobs[from] as Job)
  return rest
}

async function* load(thread: Thread, file: string): AsyncGenerator<readonly Stored[]> {
  const { topics, finished, nextTopic } = (await send(thread, { kind: 'topics' })) as {
    topics: JournalTables['topics'][]
    finished: JournalTables['finished'][]
    nextTopic: number
  }
  yield [{ kind: 'nextTopic', number: nextTopic }]
  yield topics.map((row) => ({ kind: 'topic', topic: storedTopic(row) }))
  yield finished.map((row) => ({ kind: 'finished', topicNumber: row.topic_no, id: row.id, at: row.finished_at }))
  let half: 0 | 1 = 0
  const request = (after: number) => {
    half = half === 0 ? 1 : 0
    return send(thread, { kind: 'rows', after, limit: LOAD_ROWS, half }) as Promise<JournalRows>
  }
  let next: Promise<JournalRows> | undefined = request(0)
  while (next !== undefined) {
    const rows: JournalRows = await next
    // The thread reads the next rows while these are decoded.
    next = rows.next === undefined ? undefined : request(rows.next)
    // A failure shows when it is awaited; a load that was given up awaits nothing.
    next?.catch(() => undefined)
    let packed: StoredJob[]
    try {
      packed = decodePacks(rows)
    } catch (cause) {
      throw openError(file, cause as Error)
    }
    yield [{ kind: 'jobs', jobs: inOrder(decodeRows(rows), packed) }]
  }
}

/** Both are in order of `seq`. */
function inOrder(rows: StoredJob[], packed: StoredJob[]): StoredJob[] {
  if (packed.length === 0) return rows
  if (rows.length === 0) return packed
  return [...rows, ...packed].sort((a, b) => a.seq - b.seq)
}

function decodePacks({ packs }: JournalRows): StoredJob[] {
  const stored: StoredJob[] = []
  for (const { marks, ...pack } of packs) {
    const content = bufferOf(pack.data)
    readPack(pack, (packed) => {
      const { index, flags, from, bytes } = packed
      if (isMarked(marks, index)) return
      stored.push({
        id: packed.id,
        seq: pack.seq + index,
        topicNumber: packed.topicNumber,
        flags,
        isDead: false,
        priority: packed.priority,
        failures: 0,
        deliveries: 0,
        maxAttempts: packed.maxAttempts,
        ackDeadlineMs: packed.ackDeadlineMs,
        createdAt: packed.createdAt,
        runAt: 0,
        ...readPayload(content, from, bytes, flags),
        past: undefined,
      })
    })
  }
  return stored
}

function decodeRows({ numbers, ids, pasts, payload }: JournalRows): StoredJob[] {
  const stored: StoredJob[] = []
  const content = bufferOf(payload)
  const past = new Map(pasts.map(([index, ...texts]) => [index, texts] as const))
  let at = 0
  for (const [n, id] of ids.entries()) {
    const offset = n * READ_NUMBERS
    const number = (index: number) => integer(numbers[offset + index] as number)
    const length = number(12)
    const flags = number(2)
    const own = readPayload(content, at, length, flags)
    at += Math.max(0, length)
    stored.push({
      id,
      seq: number(0),
      topicNumber: number(1),
      flags,
      isDead: number(3) === 1,
      priority: number(4),
      failures: number(5),
      deliveries: number(6),
      maxAttempts: number(7),
      ackDeadlineMs: number(8),
      createdAt: number(9),
      runAt: number(10),
      ...own,
      past: pastFrom(past.get(n), number(11)),
    })
  }
  return stored
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/**
 * A number of a Float64Array takes an object of its own in memory until it becomes a small integer: 100 bytes less for
 * each loaded job, and the same hidden class as one that was submitted.
 */
function integer(value: number): number {
  const small = value | 0
  return small === value ? small : value
}

function pastFrom(texts: readonly [string, string, string] | undefined, deadAt: number): StoredJob['past'] {
  if (texts === undefined) return undefined
  const [reason, lastError, history] = texts
  return {
    reason: reason === '' ? undefined : (reason as DeadReason),
    lastError,
    deadAt,
    history: history === '' ? [] : (JSON.parse(history) as HistoryLine[]),
  }
}

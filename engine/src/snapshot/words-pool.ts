/**
 * The thread pool that decodes the words of a snapshot when a node starts.
 *
 * The threads are started before there is work, because starting one takes longer than a part. Parts are assigned one
 * by one, two per thread, so that no thread waits for the next message.
 */

import { Worker } from 'node:worker_threads'
import { assert, type ErrorName, VacancyError } from '@vacancy/shared'
import type { ChunkPlaces, PlacedChunk, SnapshotReader } from './load.ts'
import { type PackedTables, type PlaneMap, packTables } from './schema.ts'

export type Job = {
  readonly memory: WebAssembly.Memory
  readonly tables: PackedTables
  readonly ids: Uint8Array
  readonly roomTypes: readonly string[]
  readonly chunks: readonly PlacedChunk[]
  readonly form: ChunkPlaces['form']
  readonly planeMap: PlaneMap
}

export type ToWorker = { readonly job: Job; readonly scratch: number } | { readonly part: number }
type WorkerError = { readonly code: ErrorName; readonly fields: VacancyError['fields'] } | { readonly reason: string }
export type FromWorker = { readonly part: number; readonly error?: WorkerError }

const PARTS_A_THREAD = 2

export type WordsPool = {
  readonly threads: number
  readonly workers: Worker[]
  readonly waiting: Map<number, { resolve: () => void; reject: (error: Error) => void }>
  /** Parts that each thread has. */
  readonly load: number[]
  readonly queue: number[]
  failed: Error | undefined
}

export function createWordsPool(threads: number): WordsPool {
  assert(threads >= 1, 'a pool has threads')
  const pool: WordsPool = {
    threads,
    workers: [],
    waiting: new Map(),
    load: new Array<number>(threads).fill(0),
    queue: [],
    failed: undefined,
  }
  for (let thread = 0; thread < threads; thread++) {
    const worker = new Worker(new URL('./words-worker.ts', import.meta.url), { name: 'words' })
    worker.on('message', (message: FromWorker) => settle(pool, thread, message))
    worker.on('error', (error) => fail(pool, error instanceof Error ? error : new Error(String(error))))
    pool.workers.push(worker)
  }
  return pool
}

export async function closeWordsPool(pool: WordsPool): Promise<void> {
  await Promise.all(pool.workers.map((worker) => worker.terminate()))
}

/**
 * Decodes all words of a snapshot into planes of empty words.
 *
 * @param scratch an address a thread, each of WORDS_SCRATCH_BYTES
 * @throws corrupt_data; then the planes hold anything
 */
export async function decodeAll(
  pool: WordsPool,
  reader: SnapshotReader,
  memory: WebAssembly.Memory,
  planeMap: PlaneMap,
  scratch: readonly number[],
): Promise<void> {
  const { names, properties, words, places } = reader
  const tables = packTables(reader.tables)
  const { ids } = properties
  const { chunks } = words
  give(pool, { memory, tables, ids, roomTypes: names.roomTypes, chunks, form: places.form, planeMap }, scratch)
  await Promise.all(words.parts.map((_, part) => ask(pool, part)))
}

function give(pool: WordsPool, job: Job, scratch: readonly number[]): void {
  assert(scratch.length >= pool.threads, 'each thread has a scratch area of its own')
  assert(pool.waiting.size === 0, 'one job at a time')
  pool.workers.forEach((worker, thread) => {
    worker.postMessage({ job, scratch: scratch[thread] } satisfies ToWorker)
  })
}

function ask(pool: WordsPool, part: number): Promise<void> {
  return new Promise((resolve, reject) => {
    if (pool.failed) {
      reject(pool.failed)
      return
    }
    pool.waiting.set(part, { resolve, reject })
    pool.queue.push(part)
    handOut(pool)
  })
}

function handOut(pool: WordsPool): void {
  while (pool.queue.length > 0) {
    const least = pool.load.indexOf(Math.min(...pool.load))
    if (pool.load[least] >= PARTS_A_THREAD) return
    pool.load[least] = pool.load[least] + 1
    pool.workers[least]?.postMessage({ part: pool.queue.shift() as number } satisfies ToWorker)
  }
}

function settle(pool: WordsPool, thread: number, { part, error }: FromWorker): void {
  if (error) {
    fail(pool, 'code' in error ? new VacancyError(error.code, error.fields as never) : new Error(error.reason))
    return
  }
  pool.load[thread] = pool.load[thread] - 1
  const waiting = pool.waiting.get(part)
  pool.waiting.delete(part)
  waiting?.resolve()
  handOut(pool)
}

/** A failed part ends the job and the pool: the results of the others are useless. */
function fail(pool: WordsPool, error: Error): void {
  pool.failed ??= error
  pool.queue.length = 0
  for (const { reject } of pool.waiting.values()) reject(pool.failed)
  pool.waiting.clear()
}

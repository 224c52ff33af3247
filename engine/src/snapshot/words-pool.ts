/**
 * Threads that encode and decode parts of words: the builder uses all cores for both, a node for its start.
 *
 * The threads are started before there is work, because that costs more than a part does. Parts are handed out one by
 * one, two to a thread, so that none waits for the next message.
 */

import { Worker } from 'node:worker_threads'
import { assert, type ErrorName, VacancyError } from '@vacancy/shared'
import type { ChunkPlaces, PlacedChunk, SnapshotReader } from './load.ts'
import { type PackedTables, type PlaneMap, packTables, type SnapshotSource } from './shapes.ts'
import type { EncodedPart } from './words.ts'
import type { WordsEncoder } from './write.ts'

type JobShape = {
  readonly memory: WebAssembly.Memory
  readonly tables: PackedTables
  readonly ids: Uint8Array
  readonly roomTypes: readonly string[]
}
export type Job = JobShape &
  (
    | { readonly kind: 'encode'; readonly words: Uint32Array; readonly codecsOrderedHash: string }
    | {
        readonly kind: 'decode'
        readonly chunks: readonly PlacedChunk[]
        readonly form: ChunkPlaces['form']
        readonly planeMap: PlaneMap
      }
  )

export type ToWorker = { readonly job: Job; readonly scratch: number } | { readonly part: number }
type WorkerError = { readonly code: ErrorName; readonly fields: VacancyError['fields'] } | { readonly reason: string }
export type FromWorker = { readonly part: number; readonly encoded?: EncodedPart; readonly error?: WorkerError }

const PARTS_A_THREAD = 2

export type WordsPool = {
  readonly threads: number
  readonly workers: Worker[]
  readonly waiting: Map<number, { resolve: (part: EncodedPart | undefined) => void; reject: (error: Error) => void }>
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
    const worker = new Worker(new URL('./words-worker.ts', import.meta.url))
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
 * An encoder over the planes of one shared memory.
 *
 * @param words as in PlaneMap
 * @param scratch an address a thread, each of WORDS_SCRATCH_BYTES
 */
export function pooledEncoder(
  pool: WordsPool,
  source: Omit<SnapshotSource, 'words'>,
  words: Uint32Array,
  scratch: readonly number[],
): WordsEncoder {
  const { memory, names, properties, codecs } = source
  const tables = packTables(source.tables)
  const shape = { memory, tables, ids: properties.ids, roomTypes: names.roomTypes }
  give(pool, { kind: 'encode', ...shape, words, codecsOrderedHash: codecs.orderedHash }, scratch)
  return { ahead: pool.threads * PARTS_A_THREAD, encode: (part) => ask(pool, part) }
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
  const shape = { memory, tables: packTables(reader.tables), ids: properties.ids, roomTypes: names.roomTypes }
  give(pool, { kind: 'decode', ...shape, chunks: words.chunks, form: places.form, planeMap }, scratch)
  await Promise.all(words.parts.map((_, part) => ask(pool, part)))
}

function give(pool: WordsPool, job: Job, scratch: readonly number[]): void {
  assert(scratch.length >= pool.threads, 'each thread has a scratch area of its own')
  assert(pool.waiting.size === 0, 'one job at a time')
  pool.workers.forEach((worker, thread) => {
    worker.postMessage({ job, scratch: scratch[thread] as number } satisfies ToWorker)
  })
}

function ask(pool: WordsPool, part: number): Promise<EncodedPart | undefined> {
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
    if ((pool.load[least] as number) >= PARTS_A_THREAD) return
    pool.load[least] = (pool.load[least] as number) + 1
    pool.workers[least]?.postMessage({ part: pool.queue.shift() as number } satisfies ToWorker)
  }
}

function settle(pool: WordsPool, thread: number, { part, encoded, error }: FromWorker): void {
  if (error) {
    fail(pool, 'code' in error ? new VacancyError(error.code, error.fields as never) : new Error(error.reason))
    return
  }
  pool.load[thread] = (pool.load[thread] as number) - 1
  const waiting = pool.waiting.get(part)
  pool.waiting.delete(part)
  waiting?.resolve(encoded)
  handOut(pool)
}

/** One part that fails ends the job, and the pool with it: what the others were doing is of no use. */
function fail(pool: WordsPool, error: Error): void {
  pool.failed ??= error
  pool.queue.length = 0
  for (const { reject } of pool.waiting.values()) reject(pool.failed)
  pool.waiting.clear()
}

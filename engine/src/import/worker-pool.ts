/**
 * The threads of an import: started before there is work, assigned one task after the other, and ended with the import.
 */

import { Worker } from 'node:worker_threads'
import { errorOf, type Failure } from '../failure.ts'
import type { Digest } from '../snapshot/format.ts'
import type { EncodedPart } from '../snapshot/words.ts'
import type { ColumnOrder } from './csv.ts'
import type { PackageFile } from './packages.ts'
import type { PropertyTable } from './properties.ts'
import type { Fault } from './row-errors.ts'
import type { CensusTasks, FlatTables } from './source.ts'

export type Begin = {
  readonly kind: 'begin'
  readonly memory: WebAssembly.Memory
  readonly module: WebAssembly.Module
  readonly codecs: readonly string[]
  readonly context: number
  readonly buffer: number
  readonly bufferBytes: number
  /** Descriptor of packages.csv; all threads read at positions. */
  readonly file: number
  readonly path: string
  readonly data: PackageFile
  readonly order: ColumnOrder | undefined
  readonly priceDecimals: number
}

export type PoolTask =
  /** Has the kernel compiled for speed, and its share of the memory touched, while the properties are read. */
  | {
      readonly kind: 'warm-up'
      readonly module: WebAssembly.Module
      readonly memory: WebAssembly.Memory
      readonly thread: number
      readonly threads: number
    }
  | Begin
  | { readonly kind: 'read'; readonly rangeBytes: number }
  /** Faults beyond the first are counted, and of the first so many bytes of rows kept. */
  | { readonly kind: 'explain'; readonly faultsMax: number; readonly rowBytesMax: number }
  | { readonly kind: 'census'; readonly tasks: CensusTasks; readonly rowList: number }
  | {
      readonly kind: 'prepare-words'
      readonly tables: FlatTables
      readonly ids: Uint8Array
      readonly roomTypes: readonly string[]
      /** WORDS_SCRATCH_BYTES of this thread. */
      readonly scratch: number
      /** Where this thread gathers words. */
      readonly target: number
      readonly codecsOrderedHash: string
    }
  | { readonly kind: 'digest'; readonly columns: PropertyTable['columns']; readonly names: PropertyTable['names'] }
  | { readonly kind: 'encode'; readonly part: number }

export type Explained = {
  readonly first: readonly { readonly line: number; readonly fault: Fault; readonly row?: Uint8Array }[]
  /** The errors of one kind in one column: how many, and the first. */
  readonly groups: readonly { readonly count: number; readonly line: number; readonly fault: Fault }[]
}

type Answers = { encode: EncodedPart; explain: Explained; digest: Digest }
type AnswerTo<T extends PoolTask> = T['kind'] extends keyof Answers ? Answers[T['kind']] : undefined

export type ToWorker = { readonly number: number; readonly task: PoolTask }
export type Answer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: Failure }

type Waiting = { resolve: (value: never) => void; reject: (error: Error) => void }
export type WorkerPool = {
  readonly workers: Worker[]
  readonly waiting: Map<number, Waiting>
  next: number
}

export function createPool(threads: number): WorkerPool {
  const pool: WorkerPool = { workers: [], waiting: new Map(), next: 0 }
  for (let thread = 0; thread < threads; thread++) {
    const worker = new Worker(new URL('./import-worker.ts', import.meta.url), { name: 'import' })
    worker.on('message', (answer: Answer) => settle(pool, answer))
    worker.on('error', (error) => failAll(pool, error instanceof Error ? error : new Error(String(error))))
    pool.workers.push(worker)
  }
  return pool
}

export async function closePool(pool: WorkerPool): Promise<void> {
  await Promise.all(pool.workers.map((worker) => worker.terminate()))
}

/** Assigns a task to one thread, after its earlier tasks. */
export function runTask<T extends PoolTask>(pool: WorkerPool, thread: number, task: T): Promise<AnswerTo<T>> {
  const number = pool.next++
  return new Promise((resolve, reject) => {
    pool.waiting.set(number, { resolve: resolve as Waiting['resolve'], reject })
    pool.workers[thread]?.postMessage({ number, task } satisfies ToWorker)
  })
}

/** Assigns a task to every thread and waits for all. */
export function runAll<T extends PoolTask>(pool: WorkerPool, taskOf: (thread: number) => T): Promise<AnswerTo<T>[]> {
  return Promise.all(pool.workers.map((_, thread) => runTask(pool, thread, taskOf(thread))))
}

function settle(pool: WorkerPool, answer: Answer): void {
  const waiting = pool.waiting.get(answer.number)
  pool.waiting.delete(answer.number)
  if ('failure' in answer) waiting?.reject(errorOf(answer.failure))
  else waiting?.resolve(answer.value as never)
}

/** A thread has died: rejects all pending tasks of the pool. */
function failAll(pool: WorkerPool, error: Error): void {
  for (const { reject } of pool.waiting.values()) reject(error)
  pool.waiting.clear()
}

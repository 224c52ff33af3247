/**
 * The threads of an import: started before there is work, given one task after the other, ended with the import.
 */

import { Worker } from 'node:worker_threads'
import { errorOf, type Failure } from '../failure.ts'
import type { Digest } from '../snapshot/format.ts'
import type { EncodedPart } from '../snapshot/words.ts'
import type { Fault } from './faults.ts'
import type { PackageFile } from './packages.ts'
import type { PropertyTable } from './properties.ts'
import type { CensusTasks, FlatTables } from './source.ts'

export type Begin = {
  readonly kind: 'begin'
  readonly memory: WebAssembly.Memory
  readonly module: WebAssembly.Module | undefined
  readonly codecs: readonly string[]
  readonly context: number
  readonly buffer: number
  readonly bufferBytes: number
  /** Descriptor of packages.csv; all threads read at positions. */
  readonly file: number
  readonly path: string
  readonly data: PackageFile
}

export type CrewTask =
  /** Has the kernel compiled for speed, and its share of the memory touched, while the properties are read. */
  | {
      readonly kind: 'warm-up'
      readonly module: WebAssembly.Module | undefined
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
  readonly countByKind: { readonly [kind: string]: number }
}

type Answers = { encode: EncodedPart; explain: Explained; digest: Digest }
type AnswerTo<T extends CrewTask> = T['kind'] extends keyof Answers ? Answers[T['kind']] : undefined

export type ToWorker = { readonly number: number; readonly task: CrewTask }
export type Answer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: Failure }

type Waiting = { resolve: (value: never) => void; reject: (error: Error) => void }
export type Crew = {
  readonly workers: Worker[]
  readonly waiting: Map<number, Waiting>
  next: number
}

export function createCrew(threads: number): Crew {
  const crew: Crew = { workers: [], waiting: new Map(), next: 0 }
  for (let thread = 0; thread < threads; thread++) {
    const worker = new Worker(new URL('./import-worker.ts', import.meta.url))
    worker.on('message', (answer: Answer) => settle(crew, answer))
    worker.on('error', (error) => failAll(crew, error instanceof Error ? error : new Error(String(error))))
    crew.workers.push(worker)
  }
  return crew
}

export async function closeCrew(crew: Crew): Promise<void> {
  await Promise.all(crew.workers.map((worker) => worker.terminate()))
}

/** Gives one thread a task; it comes after those it has. */
export function ask<T extends CrewTask>(crew: Crew, thread: number, task: T): Promise<AnswerTo<T>> {
  const number = crew.next++
  return new Promise((resolve, reject) => {
    crew.waiting.set(number, { resolve: resolve as Waiting['resolve'], reject })
    crew.workers[thread]?.postMessage({ number, task } satisfies ToWorker)
  })
}

/** Gives every thread a task and waits for all. */
export function askAll<T extends CrewTask>(crew: Crew, taskOf: (thread: number) => T): Promise<AnswerTo<T>[]> {
  return Promise.all(crew.workers.map((_, thread) => ask(crew, thread, taskOf(thread))))
}

function settle(crew: Crew, answer: Answer): void {
  const waiting = crew.waiting.get(answer.number)
  crew.waiting.delete(answer.number)
  if ('failure' in answer) waiting?.reject(errorOf(answer.failure))
  else waiting?.resolve(answer.value as never)
}

/** A thread that dies answers nothing more: whoever waits for any of them is told. */
function failAll(crew: Crew, error: Error): void {
  for (const { reject } of crew.waiting.values()) reject(error)
  crew.waiting.clear()
}

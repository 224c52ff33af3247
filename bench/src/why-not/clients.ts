/**
 * Closed loops of clients in threads of their own: each connection sends its next request when it has the last answer.
 * All connections to a server share a thread. A connection to an embedded database has a thread of its own, because its
 * calls block.
 */
import { Worker } from 'node:worker_threads'
import type { DatasetSpec } from '../dataset.ts'
import { failure } from '../failure.ts'
import { createHistogram, type Histogram, merge } from '../histogram.ts'
import type { SearchFields } from '../queries.ts'
import type { Booking, SystemName, Target } from './system.ts'

export type ClientLoad = {
  readonly system: SystemName
  readonly target: Target
  readonly spec: DatasetSpec
  readonly searches: readonly SearchFields[]
  readonly searchers: number
  /** Whether each search asks for its page of cheapest stays. */
  readonly asPages: boolean
  readonly bookings: readonly Booking[]
  readonly writers: number
  readonly warmupMs: number
  readonly runMs: number
}

/** Latencies of requests that began within the measured time; number of all requests, and what they cost the clients. */
export type Latencies = {
  readonly searches: Histogram
  readonly writes: Histogram
  requests: number
  cpuSeconds: number
}

/** What one thread does. */
export type Job = ClientLoad & { readonly firstSearcher: number; readonly firstWriter: number }
export type FromClient = { readonly type: 'ready' } | { readonly type: 'done'; readonly latencies: Latencies }

/** Writers have nights of their own; at most this many. */
export const WRITERS_MAX = 8

export async function runClients(load: ClientLoad): Promise<Latencies> {
  const jobs = jobsOf(load).map((job) => {
    const worker = new Worker(new URL('./client-thread.ts', import.meta.url), { workerData: job })
    const next = <T extends FromClient['type']>(type: T) =>
      new Promise<Extract<FromClient, { type: T }>>((resolve, reject) => {
        worker.on('message', (message: FromClient) => {
          if (message.type === type) resolve(message as Extract<FromClient, { type: T }>)
        })
        worker.once('error', reject)
        worker.once('exit', (code) => reject(failure(`a client of ${load.system} ended with exit code ${code}`)))
      })
    const [ready, done] = [next('ready'), next('done')]
    // The awaited promise reports a failure; the other one must not end this process.
    for (const promise of [ready, done]) promise.catch(() => undefined)
    return { worker, ready, done }
  })
  try {
    await Promise.all(jobs.map(({ ready }) => ready))
    for (const { worker } of jobs) worker.postMessage('start')
    const sum: Latencies = { searches: createHistogram(), writes: createHistogram(), requests: 0, cpuSeconds: 0 }
    for (const { latencies } of await Promise.all(jobs.map(({ done }) => done))) {
      merge(sum.searches, latencies.searches)
      merge(sum.writes, latencies.writes)
      sum.requests += latencies.requests
      sum.cpuSeconds += latencies.cpuSeconds
    }
    return sum
  } finally {
    for (const { worker } of jobs) await worker.terminate()
  }
}

function jobsOf(load: ClientLoad): Job[] {
  if (load.system !== 'sqlite') return [{ ...load, firstSearcher: 0, firstWriter: 0 }]
  const one = { ...load, searchers: 0, writers: 0, firstSearcher: 0, firstWriter: 0 }
  return [
    ...Array.from({ length: load.searchers }, (_, i) => ({ ...one, searchers: 1, firstSearcher: i })),
    ...Array.from({ length: load.writers }, (_, i) => ({ ...one, writers: 1, firstWriter: i })),
  ]
}

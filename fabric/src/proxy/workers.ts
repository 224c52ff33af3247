/**
 * Several threads that serve the same ports (docs/proxy.md#workers): each is a whole proxy with its own connections.
 * The system spreads the connections of clients over them. This thread starts and stops them, and collects what they
 * count for the one that serves `/metrics`.
 */

import { createServer } from 'node:net'
import { Worker } from 'node:worker_threads'
import { type ErrorName, VacancyError } from '@vacancy/shared'
import type { Snapshot } from './proxy.ts'
import type { ServeOptions } from './serve.ts'

export type WorkerData = ServeOptions & { readonly size: number }

/** To a worker. `all`: the response to its `collect`. */
export type ToWorker =
  | { readonly kind: 'snapshot'; readonly id: number }
  | { readonly kind: 'all'; readonly id: number; readonly snapshots: readonly Snapshot[] | undefined }
  | { readonly kind: 'reload' }
  | { readonly kind: 'stop' }

/** From a worker. */
export type FromWorker =
  | { readonly kind: 'serving' }
  /** It could not start. */
  | { readonly kind: 'failed'; readonly code: ErrorName; readonly fields: VacancyError['fields'] }
  | { readonly kind: 'snapshot'; readonly id: number; readonly snapshot: Snapshot }
  | { readonly kind: 'collect'; readonly id: number }

export type Workers = {
  readonly httpPort: number | undefined
  readonly httpsPort: number | undefined
  readonly reload: () => void
  readonly stop: () => Promise<void>
}

/** For a snapshot of all workers. */
const COLLECT_MS = 2_000

type State = {
  readonly workers: Set<Worker>
  /** Collections that wait for snapshots. */
  readonly collecting: Map<number, { readonly snapshots: Snapshot[]; readonly done: (isWhole: boolean) => void }>
  nextId: number
  isStopping: boolean
}

/**
 * Whether several threads can listen on one port here.
 *
 * @throws the error of any other failure
 */
export async function canSharePorts(host: string): Promise<boolean> {
  try {
    await listenOnce(host, 0, true)
    return true
  } catch (error) {
    if (['ENOTSUP', 'EOPNOTSUPP', 'ENOPROTOOPT', 'EINVAL'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return false
    throw error
  }
}

/**
 * Starts the workers and waits until all of them serve.
 *
 * @throws VacancyError port_taken, and what a worker throws at its start
 */
export async function startWorkers(options: ServeOptions, size: number): Promise<Workers> {
  const { config } = options
  const host = config.listeningAddr
  // Workers would share a port with any other proxy, so that one in use is noticed here, and any free one is chosen.
  const httpPort = config.httpEnabled ? await reserve(host, config.httpPort) : undefined
  const httpsPort = config.httpsEnabled ? await reserve(host, config.httpsPort) : undefined
  const ports = { ...(httpPort !== undefined && { httpPort }), ...(httpsPort !== undefined && { httpsPort }) }
  const workerData: WorkerData = { ...options, config: { ...config, ...ports }, size }
  const state: State = { workers: new Set(), collecting: new Map(), nextId: 1, isStopping: false }
  try {
    await Promise.all(Array.from({ length: size }, () => startWorker(state, workerData)))
  } catch (error) {
    state.isStopping = true
    await Promise.all([...state.workers].map((worker) => worker.terminate()))
    throw error
  }
  return {
    httpPort,
    httpsPort,
    reload: () => {
      for (const worker of state.workers) send(worker, { kind: 'reload' })
    },
    async stop() {
      state.isStopping = true
      const ended = [...state.workers].map((worker) => new Promise((resolve) => worker.once('exit', resolve)))
      for (const worker of state.workers) send(worker, { kind: 'stop' })
      await Promise.all(ended)
    },
  }
}

/** Resolves when it serves. */
function startWorker(state: State, workerData: WorkerData): Promise<void> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { name: 'proxy', workerData })
  state.workers.add(worker)
  return new Promise((resolve, reject) => {
    let isServing = false
    worker.on('message', (message: FromWorker) => {
      switch (message.kind) {
        case 'serving':
          isServing = true
          return resolve()
        case 'failed':
          return reject(new VacancyError(message.code, message.fields as never))
        case 'snapshot': {
          const waiting = state.collecting.get(message.id)
          waiting?.snapshots.push(message.snapshot)
          if (waiting?.snapshots.length === state.workers.size) waiting.done(true)
          return
        }
        case 'collect':
          return collect(state, worker, message.id)
      }
    })
    worker.on('error', (error) => {
      // The others would serve on with a part of the port's connections lost. As in one thread, the process ends.
      if (isServing) throw error
      reject(error)
    })
    worker.on('exit', (code) => {
      state.workers.delete(worker)
      if (!isServing) reject(new Error(`a worker exited with code ${code} before it was ready`))
      else if (!state.isStopping) throw new Error(`a worker ended with code ${code}`)
    })
  })
}

/** Collects a snapshot of each worker for one of them. */
function collect(state: State, requester: Worker, requestId: number): void {
  const id = state.nextId++
  const snapshots: Snapshot[] = []
  const done = (isWhole: boolean): void => {
    clearTimeout(timer)
    state.collecting.delete(id)
    send(requester, { kind: 'all', id: requestId, snapshots: isWhole ? snapshots : undefined })
  }
  const timer = setTimeout(() => done(false), COLLECT_MS)
  state.collecting.set(id, { snapshots, done })
  for (const worker of state.workers) send(worker, { kind: 'snapshot', id })
}

function send(worker: Worker, message: ToWorker): void {
  worker.postMessage(message)
}

/** @returns the port, which is free for all workers */
async function reserve(host: string, port: number): Promise<number> {
  try {
    return await listenOnce(host, port, false)
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    throw new VacancyError('port_taken', { address: `${host}:${port}`, reason: code ?? message }, { cause })
  }
}

function listenOnce(host: string, port: number, reusePort: boolean): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host, port, reusePort }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : port))
    })
  })
}

/**
 * The serving threads of a node: each has its own listener on tcp_port. Shared limits, tokens and certificates;
 * draining (docs/design/search.md#threads).
 */

import { createServer } from 'node:net'
import { Worker } from 'node:worker_threads'
import { assert, VacancyError } from '@vacancy/shared'
import { closeOffers } from '../threads/direct-replies.ts'
import type { ServingEnd } from '../threads/serving-pipe.ts'
import { type Counters, createCounters } from './counters.ts'
import { createLoginFailures } from './login-failures.ts'
import type { FromServing, Serve, ServingOptions, ToServing } from './serving-worker.ts'

export type ServerOptions = Omit<
  ServingOptions,
  'counters' | 'connectionsOpen' | 'loginFailures' | 'replica' | 'reader' | 'port' | 'reusePort'
> & {
  readonly threads: readonly Worker[]
  readonly port: number
  /** Reader slot of the first thread; the others follow. */
  readonly firstReader: number
  /** The serving ends of the pipes to the replica thread, one per thread. */
  readonly pipes: readonly ServingEnd[]
}

export type SlowRequest = Extract<FromServing, { type: 'slow' }>
type EndedToken = Extract<FromServing, { type: 'ended' }>

export type TcpServer = {
  readonly port: number
  readonly counters: readonly Counters[]
  readonly connectionsOpen: () => number
  /** Accepts no new connections; resolves when all are closed or at the deadline. */
  readonly drain: (deadlineMs: number) => Promise<void>
  readonly stop: () => Promise<void>
  readonly send: (message: ToServing) => void
}

/** Threads for `startTcpServer`, which load their code meanwhile. */
export function startServingThreads(count: number): Worker[] {
  const options = { name: 'serving', resourceLimits: { maxYoungGenerationSizeMb: 8 } }
  return Array.from({ length: count }, () => new Worker(new URL('./serving-worker.ts', import.meta.url), options))
}

/** @throws port_taken */
export async function startTcpServer(
  options: ServerOptions,
  counters: readonly Counters[],
  onSlow: (slow: SlowRequest) => void,
  onEndedToken: (ended: EndedToken) => void,
  onFailure: (error: Error) => void,
): Promise<TcpServer> {
  const open = new SharedArrayBuffer(4)
  const loginFailures = createLoginFailures()
  let port = options.port
  const { threads: workers, firstReader, pipes, ...shared } = options
  const threads = workers.length
  assert(pipes.length === threads && counters.length === threads, 'each serving thread has pipe and counters')
  const closeAllOffers = () => {
    for (const { direct } of pipes) closeOffers(direct)
  }
  // The threads of a process that exits end one after the other.
  process.once('exit', closeAllOffers)
  const stop = async () => {
    closeAllOffers()
    process.off('exit', closeAllOffers)
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
  try {
    if (threads > 1 && port !== 0) await requireFree(options.host, port)
    for (const [thread, worker] of workers.entries()) {
      const replica = pipes[thread] as ServingEnd
      const ofThread: ServingOptions = {
        ...shared,
        reader: firstReader + thread,
        counters: (counters[thread] as Counters).cells.buffer as SharedArrayBuffer,
        connectionsOpen: open,
        loginFailures,
        replica,
        port,
        // Several listeners share a port only if all of them request it. A single one must not allow others.
        reusePort: threads > 1,
      }
      worker.postMessage({ options: ofThread } satisfies Serve, [replica.port])
      const listening = await firstMessage(worker, options.host, port)
      port = listening.port
      worker.on('message', (message: FromServing) => {
        if (message.type === 'slow') onSlow(message)
        if (message.type === 'ended') onEndedToken(message)
      })
      worker.on('error', (error) => onFailure(error instanceof Error ? error : new Error(String(error))))
    }
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port,
    counters,
    connectionsOpen: () => Atomics.load(new Int32Array(open), 0),
    drain: (deadlineMs) => drain(workers, deadlineMs),
    stop,
    send: (message) => {
      for (const worker of workers) worker.postMessage(message)
    },
  }
}

/** Listeners that share a port would also share it with those of another process, silently: that one is found before. */
async function requireFree(host: string, port: number): Promise<void> {
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (cause: NodeJS.ErrnoException) =>
      reject(new VacancyError('port_taken', { address: `${host}:${port}`, reason: cause.code ?? cause.message })),
    )
    probe.listen({ host, port }, () => probe.close(() => resolve()))
  })
}

export function countersOf(threads: number): Counters[] {
  return Array.from({ length: threads }, createCounters)
}

function firstMessage(
  worker: Worker,
  host: string,
  port: number,
): Promise<Extract<FromServing, { type: 'listening' }>> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', (message: FromServing) => {
      worker.off('error', reject)
      if (message.type === 'listening') resolve(message)
      else {
        const code = message.type === 'failed' ? message.code : 'unknown'
        reject(new VacancyError('port_taken', { address: `${host}:${port}`, reason: code }))
      }
    })
  })
}

async function drain(workers: readonly Worker[], deadlineMs: number): Promise<void> {
  const drained = workers.map(
    (worker) =>
      new Promise<void>((resolve) => {
        worker.on('message', (message: FromServing) => {
          if (message.type === 'drained') resolve()
        })
        worker.once('exit', () => resolve())
        worker.postMessage({ type: 'drain' } satisfies ToServing)
      }),
  )
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, deadlineMs)
  })
  await Promise.race([Promise.all(drained), deadline])
  clearTimeout(timer)
}

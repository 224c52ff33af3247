/** Options of consumers, each with its default, validated once; and what a consumer shows. */

import { hostname } from 'node:os'
import { checkNames, type EndpointOptions, whole } from './endpoint.ts'
import type { VacancyConsumerError } from './errors.ts'
import type { Job } from './job.ts'

/** What a handler gets beside its job. */
export type HandlerContext = {
  /**
   * Aborted when the result no longer matters: the job was cancelled or delivered elsewhere, its time is over, or the
   * consumer closed without waiting longer.
   */
  readonly signal: AbortSignal
  /**
   * Extends the lease by `ms` from now, and the handler's time limit with it. Needed only beyond `maxRunMs`.
   *
   * @returns false when the lease is lost, or there is no connection at the moment
   */
  extend(ms?: number): Promise<boolean>
}

export type ConsumerOptions = EndpointOptions & {
  readonly topic: string
  /** The job is done when its promise resolves, and has failed when it rejects. */
  readonly handler: (job: Job, context: HandlerContext) => Promise<unknown> | unknown
  /** Handlers that run at once, 1 to 1000. Default 10. */
  readonly concurrency?: number
  /** Name of the consumer, under which it takes its jobs back after a lost connection. Default: one of its own. */
  readonly name?: string
  /** A handler that runs longer fails, and its job is delivered again. Default 1 hour. */
  readonly maxRunMs?: number
  /**
   * Acknowledgements name their lease, so that one that comes after the job was delivered again does not count. A lost
   * connection then aborts the handlers. Default false.
   */
  readonly fencing?: boolean
  /** Longest silence of the server, which sends a heartbeat every few seconds. Default 15000. */
  readonly silenceMs?: number
  /** Called when a connection fails or is lost, and when the server could not use a message. It must not throw. */
  readonly onError?: (error: VacancyConsumerError) => void
}

/** Since the start. */
export type ConsumerStats = {
  readonly isConnected: boolean
  readonly connections: number
  readonly running: number
  /** Jobs whose acknowledgement is not confirmed yet. */
  readonly unconfirmed: number
  readonly delivered: number
  /** Confirmed by the server: done, done although the lease had ended, and finished or cancelled before. */
  readonly done: number
  readonly late: number
  readonly unknown: number
  /** Acknowledgements that did not count, because the job was delivered again. */
  readonly stale: number
  /** Failures: delivered again later, and dead. */
  readonly retry: number
  readonly dead: number
  /** Given back unprocessed. */
  readonly released: number
}

export type Consumer = {
  stats(): ConsumerStats
  /** Resolves after `close`. Rejects when the consumer cannot continue: its token or its messages are refused. */
  readonly ended: Promise<void>
  /**
   * Takes no further jobs, waits for running handlers and their acknowledgements up to `waitMs` (default 30000),
   * aborts the others, gives their jobs back, and disconnects.
   */
  close(options?: { readonly waitMs?: number }): Promise<void>
}

export type ConsumerSettings = Required<Omit<ConsumerOptions, keyof EndpointOptions>>

/** Milliseconds that a timer can count. */
export const TIMER_MS_MAX = 2 ** 31 - 1

let named = 0

/** Host name and process id; from the second consumer of a process on, a number, too. */
function ownName(): string {
  named++
  return `${hostname()}:${process.pid}${named === 1 ? '' : `:${named}`}`
}

const CONSUMER_NAMES: readonly (keyof ConsumerOptions)[] = [
  ...(['topic', 'handler', 'concurrency', 'name', 'maxRunMs', 'fencing', 'silenceMs', 'onError'] as const),
]

/** @throws RangeError that names the option */
export function checkConsumerOptions(options: ConsumerOptions): ConsumerSettings {
  checkNames(options, CONSUMER_NAMES)
  const { topic, handler, name = ownName(), onError = () => undefined } = options
  if (typeof topic !== 'string' || topic === '') throw new RangeError('topic must be the name of a topic')
  if (typeof handler !== 'function') throw new RangeError('handler must be a function')
  if (name === '' || name.length > 200) throw new RangeError('name must have 1 to 200 characters')
  return {
    topic,
    handler,
    name,
    onError,
    concurrency: whole('concurrency', options.concurrency ?? 10, 1_000),
    maxRunMs: whole('maxRunMs', options.maxRunMs ?? 3_600_000, TIMER_MS_MAX),
    fencing: options.fencing ?? false,
    silenceMs: whole('silenceMs', options.silenceMs ?? 15_000, TIMER_MS_MAX),
  }
}

/**
 * A producer: collects jobs into requests, and repeats requests until their jobs are stored, refused or out of time.
 *
 * Jobs wait in a lane per topic, in the order of the calls. A lane has one request at a time, so that its jobs are
 * stored in that order; what is submitted meanwhile becomes the next request. Jobs of a failed request return to the
 * front of their lane, which pauses (docs/design/queue-delivery.md#client).
 */

import { randomUUID } from 'node:crypto'
import { sentence } from '@vacancy/shared'
import { reconnectDelayMs } from '../retry.ts'
import { systemWorld } from '../world.ts'
import {
  checkNames,
  closeEndpoint,
  createEndpoint,
  currentUrl,
  type Endpoint,
  type EndpointOptions,
  moveOn,
  ownerUrl,
  post,
  whole,
} from './endpoint.ts'
import {
  VacancyJobRefusedError,
  VacancyJobRetryError,
  VacancyJobsError,
  VacancyJobUnknownError,
  VacancyQueueError,
} from './errors.ts'
import type { NewJob, SubmittedJob } from './job.ts'
import { bodyOf, type EncodedJob, encodeJob, type Outcome, outcomeOf, outcomesOf, quoted } from './submission.ts'

export type ProducerOptions = EndpointOptions & {
  /** Milliseconds within which a job must be stored, repeats included. Default 60000. */
  readonly deadlineMs?: number
  /** Milliseconds to wait for the response to a request before it is repeated. Default 10000. */
  readonly requestMs?: number
  /** Most jobs of a request. Default 1000. */
  readonly batchJobs?: number
  /** Most bytes of a request, unless a single job has more. Default 4 MiB. */
  readonly batchBytes?: number
  /** Jobs that may be pending; more are refused with `backpressure`. Default 100000. */
  readonly maxPendingJobs?: number
  /** The same for their bytes. Default 64 MiB. */
  readonly maxPendingBytes?: number
}

/** The load of a producer. */
export type ProducerStats = {
  /** Submitted jobs that are neither stored nor failed yet, and their bytes. */
  readonly pendingJobs: number
  readonly pendingBytes: number
  /** Requests in flight. */
  readonly requests: number
  /** Since the start: jobs that are stored, jobs that failed, and repeated requests. */
  readonly stored: number
  readonly failed: number
  readonly repeats: number
}

export type Producer = {
  /**
   * Submits jobs. Those of one topic are stored in the order of the calls. Concurrent calls share requests.
   *
   * @returns once the job is on disk, or known to its topic
   * @throws VacancyJobRefusedError, VacancyJobRetryError or VacancyJobUnknownError; of several jobs VacancyJobsError,
   * after all of them are stored or failed
   */
  submit(job: NewJob): Promise<SubmittedJob>
  submit(jobs: readonly NewJob[]): Promise<SubmittedJob[]>
  /** Resolves when fewer jobs are pending than half of the limits, for programs that do not await each job. */
  ready(): Promise<void>
  stats(): ProducerStats
  /** Accepts no further jobs, and waits until pending ones are stored or failed. */
  close(): Promise<void>
}

type Pending = EncodedJob & {
  readonly bytes: number
  readonly deadlineAt: number
  readonly resolve: (stored: SubmittedJob) => void
  readonly reject: (error: VacancyQueueError) => void
  /** A request without a response may have stored it. */
  isRepeated: boolean
  /** Why it is not stored yet. */
  lastFailure: string
  isSettled: boolean
}

type Lane = {
  readonly topic: string
  waiting: Pending[]
  /** Jobs of the request in flight. */
  sending: readonly Pending[]
  isScheduled: boolean
  /** Cancels the pause; undefined while it does not pause. */
  stopPause: (() => void) | undefined
  /** Failed requests in a row. */
  failures: number
  /** Redirections in a row. */
  redirections: number
  /** The process that owns the topic. */
  owner: string | undefined
  /** Lower than those of the options after the server refused a request as too large. */
  batchJobs: number
}

type State = {
  readonly endpoint: Endpoint
  readonly limits: Required<Omit<ProducerOptions, keyof EndpointOptions>>
  readonly lanes: Map<string, Lane>
  pendingJobs: number
  pendingBytes: number
  requests: number
  stored: number
  failed: number
  repeats: number
  /** Called when jobs were settled. */
  waiters: (() => void)[]
  stopSweep: (() => void) | undefined
  isClosed: boolean
}

/** Requests in flight, over all topics. */
const REQUESTS_MAX = 16
const SWEEP_MS = 100
/** Redirections that are followed at once; then the lane pauses. */
const REDIRECTIONS_MAX = 3
const DEADLINE_MS_MAX = 2 ** 31 - 1

const PRODUCER_NAMES: readonly (keyof ProducerOptions)[] = [
  ...(['deadlineMs', 'requestMs', 'batchJobs', 'batchBytes', 'maxPendingJobs', 'maxPendingBytes'] as const),
]

/** @throws RangeError for an invalid option */
export function createProducer(options: ProducerOptions): Producer {
  checkNames(options, PRODUCER_NAMES)
  const state: State = {
    endpoint: createEndpoint(options),
    limits: {
      deadlineMs: whole('deadlineMs', options.deadlineMs ?? 60_000, DEADLINE_MS_MAX),
      requestMs: whole('requestMs', options.requestMs ?? 10_000, DEADLINE_MS_MAX),
      batchJobs: whole('batchJobs', options.batchJobs ?? 1_000, 10_000),
      batchBytes: whole('batchBytes', options.batchBytes ?? 4 << 20, 256 << 20),
      maxPendingJobs: whole('maxPendingJobs', options.maxPendingJobs ?? 100_000, 10_000_000),
      maxPendingBytes: whole('maxPendingBytes', options.maxPendingBytes ?? 64 << 20, Number.MAX_SAFE_INTEGER),
    },
    lanes: new Map(),
    pendingJobs: 0,
    pendingBytes: 0,
    requests: 0,
    stored: 0,
    failed: 0,
    repeats: 0,
    waiters: [],
    stopSweep: undefined,
    isClosed: false,
  }
  return {
    submit: ((jobs: NewJob | readonly NewJob[]) =>
      Array.isArray(jobs) ? submitAll(state, jobs) : submitOne(state, jobs as NewJob)) as Producer['submit'],
    ready: () => settledUntil(state, hasRoom),
    stats: () => {
      const { pendingJobs, pendingBytes, requests, stored, failed, repeats } = state
      return { pendingJobs, pendingBytes, requests, stored, failed, repeats }
    },
    close: async () => {
      state.isClosed = true
      await settledUntil(state, ({ pendingJobs }) => pendingJobs === 0)
      for (const lane of state.lanes.values()) lane.stopPause?.()
      state.stopSweep?.()
      closeEndpoint(state.endpoint)
    },
  }
}

function hasRoom({ pendingJobs, pendingBytes, limits }: State): boolean {
  return pendingJobs < limits.maxPendingJobs / 2 && pendingBytes < limits.maxPendingBytes / 2
}

async function settledUntil(state: State, isTrue: (state: State) => boolean): Promise<void> {
  while (!isTrue(state)) await new Promise<void>((resolve) => state.waiters.push(resolve))
}

// --- Admission ---

async function submitOne(state: State, job: NewJob): Promise<SubmittedJob> {
  const encoded = encodeJob(job, randomUUID)
  const bytes = Buffer.byteLength(encoded.text)
  admit(state, [encoded], bytes)
  return await enqueue(state, encoded, bytes)
}

async function submitAll(state: State, jobs: readonly NewJob[]): Promise<SubmittedJob[]> {
  const errors: VacancyQueueError[] = []
  const encoded: EncodedJob[] = []
  for (const job of jobs) {
    try {
      encoded.push(encodeJob(job, randomUUID))
    } catch (error) {
      if (!(error instanceof VacancyQueueError)) throw error
      errors.push(error)
    }
  }
  const sizes = encoded.map(({ text }) => Buffer.byteLength(text))
  admit(
    state,
    encoded,
    sizes.reduce((sum, bytes) => sum + bytes, 0),
  )
  const settled = await Promise.allSettled(encoded.map((job, n) => enqueue(state, job, sizes[n] as number)))
  const stored: SubmittedJob[] = []
  for (const each of settled) {
    if (each.status === 'fulfilled') stored.push(each.value)
    else errors.push(each.reason as VacancyQueueError)
  }
  const [first, ...others] = errors
  if (first !== undefined) throw new VacancyJobsError([first, ...others], stored)
  return stored
}

/** @throws VacancyJobRetryError for the first job when there is no room for all */
function admit(state: State, jobs: readonly EncodedJob[], bytes: number): void {
  const [first] = jobs
  if (first === undefined) return
  const { pendingJobs, pendingBytes, limits } = state
  if (state.isClosed) throw new VacancyJobRetryError('client_closed', first, sentence('client_closed', {}))
  if (pendingJobs + jobs.length <= limits.maxPendingJobs && pendingBytes + bytes <= limits.maxPendingBytes) return
  const message = `${pendingJobs} jobs of ${pendingBytes} bytes are pending, and ${jobs.length} more of ${bytes} bytes exceed the limit. Wait for ready(), or raise maxPendingJobs and maxPendingBytes.`
  throw new VacancyJobRetryError('backpressure', first, message)
}

function enqueue(state: State, job: EncodedJob, bytes: number): Promise<SubmittedJob> {
  const lane = laneOf(state, job.topic)
  state.pendingJobs++
  state.pendingBytes += bytes
  state.stopSweep ??= systemWorld.after(SWEEP_MS, () => sweep(state))
  return new Promise((resolve, reject) => {
    const deadlineAt = systemWorld.clock.monotonicMs() + state.limits.deadlineMs
    lane.waiting.push({
      ...job,
      bytes,
      deadlineAt,
      resolve,
      reject,
      isRepeated: false,
      lastFailure: '',
      isSettled: false,
    })
    schedule(state, lane)
  })
}

function laneOf(state: State, topic: string): Lane {
  let lane = state.lanes.get(topic)
  if (lane === undefined) {
    lane = {
      topic,
      waiting: [],
      sending: [],
      isScheduled: false,
      stopPause: undefined,
      failures: 0,
      redirections: 0,
      owner: undefined,
      batchJobs: state.limits.batchJobs,
    }
    state.lanes.set(topic, lane)
  }
  return lane
}

// --- Requests ---

/** The next request begins in the next turn of the event loop, with all jobs that are submitted until then. */
function schedule(state: State, lane: Lane): void {
  if (lane.isScheduled) return
  lane.isScheduled = true
  setImmediate(() => {
    lane.isScheduled = false
    void send(state, lane)
  })
}

async function send(state: State, lane: Lane): Promise<void> {
  const isIdle = lane.sending.length === 0 && lane.stopPause === undefined
  if (!isIdle || state.requests >= REQUESTS_MAX) return
  const batch = takeBatch(lane, state.limits.batchBytes)
  if (batch.length === 0) {
    // A forgotten owner costs one redirection.
    if (lane.owner === undefined) state.lanes.delete(lane.topic)
    return
  }
  lane.sending = batch
  state.requests++
  const url = lane.owner ?? currentUrl(state.endpoint)
  const result = await post(state.endpoint, `${url}/producer/jobs`, bodyOf(lane.topic, batch), state.limits.requestMs)
  state.requests--
  lane.sending = []
  if ('failure' in result) {
    const { failure, isSent } = result
    const code = isSent ? 'connection_lost' : 'connection_failed'
    const message = `${new URL(url).host}: ${failure}`
    const outcome = { kind: 'repeat', code, message, waitMs: undefined, inDoubt: isSent, owner: undefined } as const
    settleBatch(state, lane, batch, outcome, url)
  } else {
    const outcome = outcomeOf(result.status, result.text, batch.length, result.retryAfterMs)
    settleBatch(state, lane, batch, outcome, url)
  }
  // Another lane may have waited for the number of requests.
  for (const each of state.lanes.values()) schedule(state, each)
}

function takeBatch(lane: Lane, bytesMax: number): readonly Pending[] {
  let bytes = 0
  let count = 0
  for (; count < lane.waiting.length && count < lane.batchJobs; count++) {
    bytes += (lane.waiting[count] as Pending).bytes
    if (count > 0 && bytes > bytesMax) break
  }
  return lane.waiting.splice(0, count)
}

/** @param url the address that responded, or did not */
function settleBatch(state: State, lane: Lane, batch: readonly Pending[], outcome: Outcome, url: string): void {
  if (outcome.kind !== 'repeat') {
    lane.failures = 0
    lane.redirections = 0
  }
  switch (outcome.kind) {
    case 'stored': {
      const outcomes = outcomesOf(batch, outcome.duplicateIds)
      for (const [n, job] of batch.entries())
        store(state, job, { topic: job.topic, id: job.id, outcome: outcomes[n] ?? 'stored' })
      return
    }
    case 'faulty': {
      for (const [n, job] of batch.entries()) {
        const { reason, message } = outcome.faults.get(n) ?? {}
        if (reason !== undefined) fail(state, job, refusal(job, 'invalid_request', `${reason} (${message})`, reason))
      }
      return putBack(lane, batch)
    }
    case 'refused': {
      const { code, message, maySplit } = outcome
      if (maySplit && batch.length > 1) {
        lane.batchJobs = Math.ceil(batch.length / 2)
        return putBack(lane, batch)
      }
      for (const job of batch) fail(state, job, refusal(job, code, message))
      return
    }
    case 'repeat':
      return repeat(state, lane, batch, outcome, url)
  }
}

function refusal(job: Pending, code: string, message: string, reason?: string): VacancyJobRefusedError {
  return new VacancyJobRefusedError(code, job, `Job ${quoted(job.id)} was refused: ${message}.`, reason)
}

function repeat(
  state: State,
  lane: Lane,
  batch: readonly Pending[],
  { code, message, waitMs, inDoubt, owner }: Extract<Outcome, { kind: 'repeat' }>,
  url: string,
): void {
  for (const job of batch) {
    if (inDoubt) job.isRepeated = true
    job.lastFailure = `${code}: ${message}`
  }
  state.repeats++
  putBack(lane, batch)
  const other = ownerUrl(url, owner)
  lane.owner = other === url ? undefined : other
  if (lane.owner !== undefined && lane.redirections++ < REDIRECTIONS_MAX) return
  lane.redirections = 0
  // A queue that is full works; its other addresses lead to the same topic.
  if (code !== 'queue_full') moveOn(state.endpoint, url)
  const ms = waitMs ?? reconnectDelayMs(lane.failures++, systemWorld.random())
  lane.stopPause = systemWorld.after(ms, () => {
    lane.stopPause = undefined
    schedule(state, lane)
  })
}

function putBack(lane: Lane, batch: readonly Pending[]): void {
  lane.waiting = [...batch.filter(({ isSettled }) => !isSettled), ...lane.waiting]
}

// --- The end of a job ---

function store(state: State, job: Pending, stored: SubmittedJob): void {
  if (!release(state, job)) return
  state.stored++
  job.resolve(stored)
}

function fail(state: State, job: Pending, error: VacancyQueueError): void {
  if (!release(state, job)) return
  state.failed++
  job.reject(error)
}

function release(state: State, job: Pending): boolean {
  if (job.isSettled) return false
  job.isSettled = true
  state.pendingJobs--
  state.pendingBytes -= job.bytes
  const { waiters } = state
  state.waiters = []
  for (const wake of waiters) wake()
  return true
}

/** Fails the jobs whose time is over; each lane has them in the order of their deadlines. */
function sweep(state: State): void {
  state.stopSweep = undefined
  const now = systemWorld.clock.monotonicMs()
  for (const lane of state.lanes.values()) {
    for (const job of lane.sending) if (job.deadlineAt <= now) fail(state, job, tooLate(state, job, true))
    const first = lane.waiting.findIndex(({ deadlineAt }) => deadlineAt > now)
    for (const job of lane.waiting.splice(0, first < 0 ? lane.waiting.length : first))
      fail(state, job, tooLate(state, job, job.isRepeated))
  }
  if (state.pendingJobs > 0) state.stopSweep = systemWorld.after(SWEEP_MS, () => sweep(state))
}

function tooLate({ limits }: State, job: Pending, inDoubt: boolean): VacancyQueueError {
  const last = job.lastFailure === '' ? '' : ` The last failure: ${job.lastFailure}.`
  const Class = inDoubt || job.isRepeated ? VacancyJobUnknownError : VacancyJobRetryError
  const fate = Class === VacancyJobUnknownError ? 'may be stored or not' : 'is not stored'
  const message = `Job ${quoted(job.id)} ${fate}: no success within ${limits.deadlineMs} ms.${last}`
  return new Class('deadline_exceeded', job, message)
}

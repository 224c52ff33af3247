/**
 * A consumer: runs a handler for each job of a topic, and acknowledges it with the handler's promise.
 *
 * A task is a job whose handler runs or waits for its turn; an ack is a finished job whose acknowledgement is not
 * confirmed. Both outlive connections. When a connection is lost, its jobs return to the queue at once, so a job may
 * be delivered again while its handler still runs: the task then continues under the new delivery, and nothing runs
 * twice. A job that was finished without a connection is acknowledged by its id on the next one
 * (docs/design/queue-delivery.md#client).
 */

import { GOOD_CONNECTION_MS, reconnectDelayMs } from '../retry.ts'
import { systemWorld } from '../world.ts'
import {
  type ConnectionEnd,
  type ConsumerConnection,
  fieldsOf,
  openConnection,
  type ServerMessage,
} from './consumer-connection.ts'
import {
  type Consumer,
  type ConsumerOptions,
  type ConsumerSettings,
  type ConsumerStats,
  checkConsumerOptions,
  TIMER_MS_MAX,
} from './consumer-options.ts'
import { closeEndpoint, createEndpoint, currentUrl, type Endpoint, moveOn, ownerUrl, whole } from './endpoint.ts'
import { RejectJob, VacancyConsumerError } from './errors.ts'
import type { Job } from './job.ts'

type Task = {
  readonly job: Job
  readonly abort: AbortController
  isRunning: boolean
  /** Its delivery on the current connection; undefined without one. */
  seqId: number | undefined
  lease: string
  leaseEndsAt: number
  /** When the handler has run for too long. */
  runEndsAt: number
  extensions: ((isExtended: boolean) => void)[]
}

type Ack = {
  seqId: number | undefined
  lease: string
  /** Deliveries of the job on this connection that came before the confirmation. */
  readonly repeated: number[]
}

type Result = 'done' | 'late' | 'unknown' | 'stale' | 'retry' | 'dead' | 'released'

type State = {
  readonly endpoint: Endpoint
  readonly options: ConsumerSettings
  /** By job id, in the order of delivery. */
  readonly tasks: Map<string, Task>
  readonly acks: Map<string, Ack>
  /** Ids of acknowledgements for the next message. */
  unsent: string[]
  readonly results: Record<Result, number>
  connection: ConsumerConnection | undefined
  owner: string | undefined
  failures: number
  redirections: number
  connections: number
  delivered: number
  running: number
  stopPause: () => void
  stopTick: () => void
  closing: Promise<void> | undefined
  /** Called when a task or an ack ended. */
  wake: () => void
  isOver: boolean
  finish: (error?: VacancyConsumerError) => void
}

const TICK_MS = 250
/** Of servers that do not name it. */
const ACK_DEADLINE_MS = 30_000
const CONNECT_MS = 10_000
const REDIRECTIONS_MAX = 3
/** Far below the least ws_read_limit_bytes in use. */
const ACK_BYTES_MAX = 16_000
const ERROR_TEXT_MAX = 1_000
/** Share of a lease after which it is extended. */
const EXTEND_AFTER = 1 / 3

/** Connects, and reconnects whenever the connection is lost. @throws RangeError for an invalid option */
export function createConsumer(options: ConsumerOptions): Consumer {
  let finish: State['finish'] = () => undefined
  const ended = new Promise<void>((resolve, reject) => {
    finish = (error) => (error === undefined ? resolve() : reject(error))
  })
  const state: State = {
    endpoint: createEndpoint(options),
    options: checkConsumerOptions(options),
    tasks: new Map(),
    acks: new Map(),
    unsent: [],
    results: { done: 0, late: 0, unknown: 0, stale: 0, retry: 0, dead: 0, released: 0 },
    connection: undefined,
    owner: undefined,
    failures: 0,
    redirections: 0,
    connections: 0,
    delivered: 0,
    running: 0,
    stopPause: () => undefined,
    stopTick: () => undefined,
    closing: undefined,
    wake: () => undefined,
    isOver: false,
    finish,
  }
  tick(state)
  connect(state)
  return {
    stats: () => statsOf(state),
    ended,
    close: ({ waitMs = 30_000 } = {}) => (state.closing ??= close(state, waitMs)),
  }
}

function statsOf({ connection, connections, running, acks, delivered, results }: State): ConsumerStats {
  return {
    isConnected: connection?.isReady === true,
    connections,
    running,
    unconfirmed: acks.size,
    delivered,
    ...results,
  }
}

// --- Connections ---

function connect(state: State): void {
  const { endpoint, options } = state
  const { topic, name, concurrency: prefetch, silenceMs } = options
  const url = state.owner ?? currentUrl(endpoint)
  const subscription = { topic, name, prefetch, connectMs: CONNECT_MS, silenceMs }
  state.connection = openConnection(endpoint, url, subscription, {
    message: (message, connection) => receive(state, message, connection),
    ended: (end, connection) => lost(state, end, connection),
  })
}

function receive(state: State, message: ServerMessage, connection: ConsumerConnection): void {
  switch (message.action) {
    case 'accepted':
      return accepted(state, connection)
    case 'job':
      return deliver(state, message)
    case 'confirm':
      return confirmed(state, message)
    case 'drain':
      return leaveWhenIdle(state)
    case 'error': {
      const { code, error } = fieldsOf(message.data)
      // The confirmation of the same message has the same result.
      if (code !== 'stale_lease' && code !== 'unknown_job') report(state, String(code), String(error))
      return
    }
    default:
      // Heartbeats, and messages of later versions.
      return
  }
}

function accepted(state: State, connection: ConsumerConnection): void {
  state.connections++
  state.redirections = 0
  if (state.closing !== undefined) connection.send({ action: 'credit', prefetch: 0 })
  // Finished on an earlier connection: late acknowledgements name the job only.
  for (const jobId of state.acks.keys()) state.unsent.push(jobId)
  sendAcks(state)
}

function lost(state: State, end: ConnectionEnd, connection: ConsumerConnection): void {
  state.connection = undefined
  state.unsent = []
  for (const ack of state.acks.values()) {
    ack.seqId = undefined
    ack.repeated.length = 0
  }
  for (const [id, task] of state.tasks) {
    task.seqId = undefined
    settleExtensions(task, false)
    // Its delivery returned to the queue.
    if (!task.isRunning) state.tasks.delete(id)
    else if (state.options.fencing) drop(state, task, 'lease_lost', 'the connection was lost')
  }
  if (state.options.fencing) state.acks.clear()
  state.wake()
  if (state.isOver) return
  if (end.isFatal) return fail(state, end)
  const { readyAt, isDraining, url } = connection
  const isExpected = isDraining && /^closed_100[01]$/.test(end.code)
  if (!isExpected) report(state, end.code, `${new URL(url).host}: ${end.message}`)
  if (readyAt > 0 && systemWorld.clock.monotonicMs() - readyAt >= GOOD_CONNECTION_MS) state.failures = 0
  reconnect(state, url, end)
}

function reconnect(state: State, url: string, { owner, retryAfterMs }: ConnectionEnd): void {
  const other = ownerUrl(url, owner)
  state.owner = other === url ? undefined : other
  if (state.owner !== undefined && state.redirections++ < REDIRECTIONS_MAX) return connect(state)
  state.redirections = 0
  moveOn(state.endpoint, url)
  const ms = retryAfterMs ?? reconnectDelayMs(state.failures++, systemWorld.random())
  state.stopPause = systemWorld.after(ms, () => connect(state))
}

/** The server drains: once nothing is in hand, the connection moves elsewhere. */
function leaveWhenIdle({ connection, tasks, acks }: State): void {
  if (connection?.isDraining && tasks.size === 0 && acks.size === 0) connection.close()
}

function report({ options }: State, code: string, message: string): void {
  options.onError(new VacancyConsumerError(code, options.topic, message))
}

function fail(state: State, { code, message }: ConnectionEnd): void {
  const error = new VacancyConsumerError(code, state.options.topic, `The consumer cannot continue: ${message}.`)
  for (const task of state.tasks.values()) task.abort.abort(error)
  end(state, error)
}

function end(state: State, error?: VacancyConsumerError): void {
  if (state.isOver) return
  state.isOver = true
  state.stopPause()
  state.stopTick()
  state.connection?.close()
  state.tasks.clear()
  state.acks.clear()
  closeEndpoint(state.endpoint)
  state.wake()
  state.finish(error)
}

// --- Jobs ---

function deliver(state: State, message: ServerMessage): void {
  const { jobId, seqId } = message
  const lease = String(message['lease'])
  state.delivered++
  const ack = state.acks.get(jobId)
  // The acknowledgement on its way ends this delivery, too, unless a new job has the same id.
  if (ack !== undefined) return void ack.repeated.push(seqId)
  const ackDeadlineMs = Number(message['ackDeadlineMs']) || ACK_DEADLINE_MS
  const leaseEndsAt = systemWorld.clock.monotonicMs() + ackDeadlineMs
  const known = state.tasks.get(jobId)
  if (known !== undefined) return void Object.assign(known, { seqId, lease, leaseEndsAt })
  if (state.closing !== undefined) return state.connection?.send({ action: 'release', jobId, seqId })
  state.tasks.set(jobId, {
    job: jobOf(message, ackDeadlineMs),
    abort: new AbortController(),
    isRunning: false,
    seqId,
    lease,
    leaseEndsAt,
    runEndsAt: 0,
    extensions: [],
  })
  startNext(state)
}

function jobOf(message: ServerMessage, ackDeadlineMs: number): Job {
  const { jobId, data, encoding, topic, traceparent } = message
  return {
    topic: String(topic),
    id: jobId,
    data: encoding === 'base64' ? Buffer.from(String(data), 'base64') : data,
    attempt: Number(message['attempt']) || 1,
    deliveries: Number(message['deliveries']) || 1,
    ackDeadlineMs,
    ...(typeof traceparent === 'string' && { traceparent }),
  }
}

/** After a reconnect, handlers of the connection before may still run. */
function startNext(state: State): void {
  if (state.running === state.tasks.size || state.running >= state.options.concurrency) return
  for (const task of state.tasks.values()) {
    if (task.isRunning) continue
    void run(state, task)
    if (state.running >= state.options.concurrency) return
  }
}

async function run(state: State, task: Task): Promise<void> {
  const { handler, maxRunMs } = state.options
  const { job, abort } = task
  task.isRunning = true
  task.runEndsAt = systemWorld.clock.monotonicMs() + maxRunMs
  state.running++
  const context = { signal: abort.signal, extend: (ms?: number) => extendBy(state, task, ms) }
  try {
    await handler(job, context)
    succeeded(state, task)
  } catch (error) {
    failed(state, task, error)
  }
}

/** @returns false when another outcome came first: the handler ran for too long, or the consumer closed */
function endTask(state: State, task: Task): boolean {
  if (state.tasks.get(task.job.id) !== task) return false
  state.tasks.delete(task.job.id)
  state.running--
  settleExtensions(task, false)
  return true
}

function succeeded(state: State, task: Task): void {
  if (!endTask(state, task)) return
  const { id } = task.job
  state.acks.set(id, { seqId: task.seqId, lease: task.lease, repeated: [] })
  if (state.connection?.isReady) {
    if (state.unsent.length === 0) setImmediate(() => sendAcks(state))
    state.unsent.push(id)
  }
  startNext(state)
}

function failed(state: State, task: Task, error: unknown): void {
  if (!endTask(state, task)) return
  const { seqId, lease, job } = task
  const text = (error instanceof Error ? error.message || error.name : String(error)).slice(0, ERROR_TEXT_MAX)
  // Without a connection the queue has taken the job back already, and counts no failure.
  if (seqId !== undefined)
    state.connection?.send({
      action: 'nack',
      jobId: job.id,
      seqId,
      lease,
      error: text,
      ...(error instanceof RejectJob && {
        requeue: error.requeue,
        ...(error.delayMs !== undefined && { delayMs: error.delayMs }),
      }),
    })
  startNext(state)
  leaveWhenIdle(state)
  state.wake()
}

/** All acknowledgements of a turn of the event loop, in few messages. */
function sendAcks(state: State): void {
  const { unsent, connection } = state
  state.unsent = []
  let jobs: object[] = []
  let bytes = 0
  const flush = () => {
    if (jobs.length > 0) connection?.send({ action: 'ack', jobs })
    jobs = []
    bytes = 0
  }
  for (const jobId of unsent) {
    const ack = state.acks.get(jobId)
    if (ack === undefined) continue
    const { seqId, lease } = ack
    jobs.push({ jobId, ...(seqId !== undefined && { seqId }), ...(state.options.fencing && { lease }) })
    bytes += Buffer.byteLength(jobId) + lease.length + 64
    if (bytes > ACK_BYTES_MAX) flush()
  }
  flush()
}

function confirmed(state: State, { jobId, data }: ServerMessage): void {
  const { of, result } = fieldsOf(data)
  if (of === 'extend') {
    const task = state.tasks.get(jobId)
    if (task === undefined) return
    settleExtensions(task, result === 'extended')
    if (result !== 'extended') abortTask(state, task, 'lease_lost', 'the job was cancelled or delivered again')
    return
  }
  const isCounted = of !== 'release' || result === 'released'
  if (isCounted && Object.hasOwn(state.results, String(result))) state.results[result as Result]++
  if (of !== 'ack') return
  const ack = state.acks.get(jobId)
  if (ack === undefined) return
  state.acks.delete(jobId)
  // Ended by the acknowledgement, or of a new job with the same id, which is then delivered again.
  for (const seqId of ack.repeated) state.connection?.send({ action: 'release', jobId, seqId })
  leaveWhenIdle(state)
  state.wake()
}

// --- Leases ---

function tick(state: State): void {
  state.stopTick = systemWorld.after(TICK_MS, () => tick(state))
  const now = systemWorld.clock.monotonicMs()
  for (const task of state.tasks.values()) {
    if (task.isRunning && now >= task.runEndsAt) {
      const message = `the handler did not finish within ${state.options.maxRunMs} ms`
      abortTask(state, task, 'timed_out', message)
      failed(state, task, new Error(message))
    } else if (task.leaseEndsAt - now <= task.job.ackDeadlineMs * (1 - EXTEND_AFTER)) sendExtend(state, task, undefined)
  }
}

function sendExtend({ connection }: State, task: Task, ms: number | undefined): void {
  const { seqId, job, lease } = task
  if (seqId === undefined) return
  task.leaseEndsAt = systemWorld.clock.monotonicMs() + (ms ?? job.ackDeadlineMs)
  connection?.send({ action: 'extend', jobId: job.id, seqId, lease, ...(ms !== undefined && { ms }) })
}

async function extendBy(state: State, task: Task, ms: number = task.job.ackDeadlineMs): Promise<boolean> {
  const by = whole('ms', ms, TIMER_MS_MAX)
  const isCurrent = state.tasks.get(task.job.id) === task
  if (!isCurrent || task.seqId === undefined || !state.connection?.isReady) return false
  task.runEndsAt = Math.max(task.runEndsAt, systemWorld.clock.monotonicMs() + by)
  sendExtend(state, task, by)
  return await new Promise((resolve) => task.extensions.push(resolve))
}

function settleExtensions(task: Task, isExtended: boolean): void {
  for (const settle of task.extensions.splice(0)) settle(isExtended)
}

function abortTask({ options }: State, { abort }: Task, code: string, message: string): void {
  abort.abort(new VacancyConsumerError(code, options.topic, message))
}

/** Ends a task whose handler still runs; what becomes of the handler no longer matters. */
function drop(state: State, task: Task, code: string, message: string): void {
  if (endTask(state, task)) abortTask(state, task, code, message)
}

// --- Closing ---

async function close(state: State, waitMs: number): Promise<void> {
  if (state.isOver) return
  const isDone = () => state.isOver || (state.tasks.size === 0 && state.acks.size === 0)
  for (const task of [...state.tasks.values()]) if (!task.isRunning) giveBack(state, task)
  state.connection?.send({ action: 'credit', prefetch: 0 })
  let isLate = waitMs <= 0
  const stopTimer = systemWorld.after(waitMs, () => {
    isLate = true
    state.wake()
  })
  while (!isDone() && !isLate) await new Promise<void>((resolve) => (state.wake = resolve))
  stopTimer()
  for (const task of [...state.tasks.values()]) {
    giveBack(state, task)
    drop(state, task, 'consumer_closed', 'the consumer closed')
  }
  end(state)
  // Its jobs are back in the queue then.
  while (state.connection !== undefined) await new Promise<void>((resolve) => (state.wake = resolve))
}

function giveBack(state: State, task: Task): void {
  const { seqId, job } = task
  if (seqId !== undefined) state.connection?.send({ action: 'release', jobId: job.id, seqId })
  if (!task.isRunning) state.tasks.delete(job.id)
}

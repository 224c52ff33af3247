/** Consumers of the queue, what is delivered to them, and how each delivery ends. */
import { assert, unreachable } from '@vacancy/shared'
import { type ConfirmResult, JOB_LIMITS, type JobEvent } from '@vacancy/shared/contract'
import { listAppend, listRemove, NO_SLOT, ringShift, wheelAdd, wheelRemove } from './containers.ts'
import { findById } from './id-index.ts'
import { type Consumer, createDelivery, type Delivery, FLAG, type Job, type Moment, STATE, type Topic } from './job.ts'
import { observe } from './latency.ts'
import {
  die,
  enterDelayed,
  finish,
  markRunnable,
  note,
  noteIn,
  reenterReady,
  refill,
  setAlarm,
  takeReady,
} from './places.ts'
import { later, type Queue } from './state.ts'
import { noteTail } from './tail.ts'

const WINDOW_START = 10
const STALLED_AFTER = 3
/** Jobs that a consumer gets in its turn, and a topic in its turn. */
const CONSUMER_TURN = 8
const TOPIC_TURN = 256

export type NewConsumer = {
  readonly name: string
  readonly topicName: string
  /** Undefined: adapts by itself. */
  readonly prefetch: number | undefined
  readonly confirms: boolean
  readonly tokenName: string
  readonly remote: string
}

export function connect(queue: Queue, fields: NewConsumer, now: Moment): Consumer {
  const { prefetch, name, topicName, confirms, tokenName, remote } = fields
  const id = queue.nextConsumer
  queue.nextConsumer += queue.consumerStride
  const consumer: Consumer = {
    id,
    name,
    topicName,
    topic: undefined,
    tokenName,
    remote,
    confirms,
    connectedAt: now.wallMs,
    deliveries: new Map(),
    window: prefetch === undefined ? WINDOW_START : Math.min(prefetch, queue.limits.prefetchMax),
    isAdaptive: prefetch === undefined,
    isFree: false,
    next: undefined,
    previous: undefined,
    isStalled: false,
    isPaused: false,
    expiredInRow: 0,
    nextSeqId: 1,
    heardAt: 0,
    lastMessageAt: 0,
    awayUntil: 0,
    delivered: 0,
    acked: 0,
  }
  queue.consumers.set(consumer.id, consumer)
  const topic = queue.topics.get(topicName)
  if (topic === undefined) waitFor(queue, consumer)
  else join(topic, consumer, queue)
  return consumer
}

/** The connection ended: its jobs return at once to their old places. */
export function disconnect(queue: Queue, consumer: Consumer, now: Moment): void {
  part(queue, consumer)
  giveBack(queue, consumer, now)
}

/** The connection broke: the consumer keeps its jobs for a while, in which it may come back under its name. */
export function suspend(queue: Queue, consumer: Consumer, now: Moment): void {
  part(queue, consumer)
  consumer.awayUntil = now.monotonicMs + queue.limits.resumeGraceMs
  if (consumer.deliveries.size > 0) queue.away.set(consumer.id, consumer)
}

/**
 * A consumer that was away is back: it has its deliveries again, none of them counted twice, and its old window if it
 * adapts.
 *
 * @returns these deliveries, which are to be sent again
 */
export function resume(queue: Queue, consumer: Consumer, now: Moment): readonly Delivery[] {
  const { name, topicName } = consumer
  const taken: Delivery[] = []
  for (const other of queue.away.values()) {
    if (other.name !== name || other.topicName !== topicName) continue
    queue.away.delete(other.id)
    if (consumer.isAdaptive && other.isAdaptive) consumer.window = Math.max(consumer.window, other.window)
    for (const delivery of other.deliveries.values()) {
      delivery.consumer = consumer
      delivery.seqId = consumer.nextSeqId++
      consumer.deliveries.set(delivery.seqId, delivery)
      taken.push(delivery)
    }
    other.deliveries.clear()
  }
  if (taken.length > 0) active(consumer, now)
  if (consumer.isFree && roomOf(consumer) <= 0 && consumer.topic !== undefined) notFree(consumer.topic, consumer)
  return taken
}

/** Jobs of consumers that did not come back return to their old places. */
export function endAbsences(queue: Queue, now: Moment): void {
  for (const consumer of queue.away.values()) {
    if (consumer.awayUntil > now.monotonicMs) return
    queue.away.delete(consumer.id)
    giveBack(queue, consumer, now)
  }
}

/** Nothing more is delivered to a consumer. */
function part(queue: Queue, consumer: Consumer): void {
  assert(queue.consumers.delete(consumer.id), 'a consumer disconnects once')
  consumer.isPaused = true
  const waiting = queue.waiting.get(consumer.topicName)
  if (waiting?.delete(consumer) && waiting.size === 0) queue.waiting.delete(consumer.topicName)
  if (consumer.topic !== undefined) leave(consumer.topic, consumer)
}

function giveBack(queue: Queue, consumer: Consumer, now: Moment): void {
  for (const delivery of [...consumer.deliveries.values()]) resolve(queue, delivery, { kind: 'disconnected' }, now)
}

export function waitFor(queue: Queue, consumer: Consumer): void {
  const waiting = queue.waiting.get(consumer.topicName) ?? new Set()
  waiting.add(consumer)
  queue.waiting.set(consumer.topicName, waiting)
}

export function join(topic: Topic, consumer: Consumer, queue: Queue): void {
  consumer.topic = topic
  topic.consumers.add(consumer)
  if (consumer.isStalled) topic.counts.stalled++
  offer(queue, consumer)
}

export function leave(topic: Topic, consumer: Consumer): void {
  topic.consumers.delete(consumer)
  if (consumer.isStalled) topic.counts.stalled--
  if (consumer.isFree) notFree(topic, consumer)
  consumer.topic = undefined
}

function notFree(topic: Topic, consumer: Consumer): void {
  listRemove(topic.free, consumer)
  consumer.isFree = false
}

function roomOf(consumer: Consumer): number {
  return consumer.isPaused || consumer.isStalled ? 0 : consumer.window - consumer.deliveries.size
}

/** A consumer with room takes its turn. */
function offer(queue: Queue, consumer: Consumer): void {
  const { topic } = consumer
  if (topic === undefined || consumer.isFree || roomOf(consumer) <= 0) return
  listAppend(topic.free, consumer)
  consumer.isFree = true
  markRunnable(queue, topic)
}

/** Stops or resumes delivery to a consumer: its socket is full, or it closes. */
export function pauseConsumer(queue: Queue, consumer: Consumer, isPaused: boolean): void {
  consumer.isPaused = isPaused
  if (isPaused && consumer.isFree && consumer.topic !== undefined) notFree(consumer.topic, consumer)
  offer(queue, consumer)
}

/** Sets the number of unresolved deliveries; 0 pauses. */
export function setPrefetch(queue: Queue, consumer: Consumer, prefetch: number): void {
  consumer.isAdaptive = false
  consumer.window = Math.min(prefetch, queue.limits.prefetchMax)
  if (consumer.isFree && roomOf(consumer) <= 0 && consumer.topic !== undefined) notFree(consumer.topic, consumer)
  offer(queue, consumer)
}

/** Any message of a consumer shows that it is alive. */
export function heard(queue: Queue, consumer: Consumer, now: Moment): void {
  consumer.lastMessageAt = now.wallMs
  consumer.expiredInRow = 0
  if (!consumer.isStalled) return
  consumer.isStalled = false
  if (consumer.topic !== undefined) consumer.topic.counts.stalled--
  offer(queue, consumer)
}

/**
 * Delivers to the topics in turn, at most 256 jobs of one.
 *
 * @param send gets each delivery; the job is leased already
 * @returns whether more can be delivered
 */
export function dispatch(queue: Queue, now: Moment, send: (delivery: Delivery) => void): boolean {
  const topic = ringShift(queue.runnable)
  if (topic !== undefined) {
    topic.isRunnable = false
    if (!topic.isGone) dispatchTopic(queue, topic, now, send)
  }
  return queue.runnable.length > 0
}

function dispatchTopic(queue: Queue, topic: Topic, now: Moment, send: (delivery: Delivery) => void): void {
  let left = TOPIC_TURN
  while (left > 0 && topic.counts.ready > 0) {
    const allowed = allowedNow(topic, now)
    if (allowed <= 0) return setAlarm(queue, topic, now)
    const consumer = topic.free.first
    if (consumer === undefined) return
    notFree(topic, consumer)
    // Its window may have been cut since it took its turn.
    const room = Math.max(0, roomOf(consumer))
    const count = Math.min(CONSUMER_TURN, left, allowed, topic.counts.ready, room)
    for (let n = 0; n < count; n++) send(lease(queue, topic, consumer, now))
    left -= count
    if (topic.config.rate_per_sec > 0) topic.allowance -= count
    offer(queue, consumer)
  }
  markRunnable(queue, topic)
}

/** Deliveries that the topic's limits allow at once. */
function allowedNow(topic: Topic, now: Moment): number {
  const { paused, ordered, max_leased, rate_per_sec } = topic.config
  if (paused) return 0
  let allowed = Number.POSITIVE_INFINITY
  if (ordered) allowed = 1 - topic.counts.leased
  if (max_leased > 0) allowed = Math.min(allowed, max_leased - topic.counts.leased)
  if (rate_per_sec > 0) {
    refill(topic, now)
    allowed = Math.min(allowed, Math.floor(topic.allowance))
  }
  return allowed
}

function lease(queue: Queue, topic: Topic, consumer: Consumer, now: Moment): Delivery {
  const job = takeReady(topic)
  assert(job.state === STATE.ready && job.delivery === undefined, 'a job is leased to one consumer at a time')
  assert(roomOf(consumer) > 0, 'a consumer holds at most its window')
  const deadlineMs = job.ackDeadlineMs || topic.config.ack_deadline_ms
  const delivery = createDelivery(consumer, job, queue.nextDelivery++, now.monotonicMs, deadlineMs)
  job.state = STATE.leased
  job.delivery = delivery
  if (job.deliveries > 0) topic.totals.redelivered++
  else observe(topic.deliverySeconds, Math.max(0, now.wallMs - job.createdAt) / 1000)
  job.deliveries++
  topic.counts.leased++
  topic.totals.delivered++
  consumer.delivered++
  consumer.deliveries.set(delivery.seqId, delivery)
  wheelAdd(queue.leases, delivery, now.monotonicMs + deadlineMs)
  if (job.past !== undefined) note(job.past, 'delivered', consumer.name, '', now)
  if (topic.tail !== undefined) noteTail(topic, 'delivered', job, { consumer: consumer.name }, now)
  return delivery
}

// --- The end of a delivery ---

type Resolution =
  | { readonly kind: 'acked' }
  | { readonly kind: 'failed'; readonly error: string; readonly requeue: boolean; readonly delayMs: number | undefined }
  | { readonly kind: 'expired' }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'released' }
  /** Acknowledged late by another connection, or cancelled by force. */
  | { readonly kind: 'overtaken' }

/** Ends a delivery. Nothing else takes a job out of `leased`. */
export function resolve(queue: Queue, delivery: Delivery, resolution: Resolution, now: Moment): void {
  const { job, consumer } = delivery
  const { topic } = job
  assert(!delivery.isResolved && job.delivery === delivery, 'a delivery ends once')
  assert(job.state === STATE.leased, 'a delivery belongs to a leased job')
  detachDelivery(queue, delivery)
  topic.counts.leased--
  assert(topic.counts.leased >= 0, 'no more deliveries end than began')
  offer(queue, consumer)
  // A limit of leased jobs may have stopped it.
  markRunnable(queue, topic)
  switch (resolution.kind) {
    case 'acked':
      consumer.acked++
      observe(topic.ackSeconds, (now.monotonicMs - delivery.at) / 1000)
      topic.totals.acked++
      return finish(queue, job, consumer.name, now)
    case 'overtaken':
      return
    case 'released':
      job.deliveries--
      noteIn(job, 'release', consumer.name, '', now)
      if (topic.tail !== undefined) noteTail(topic, 'released', job, { consumer: consumer.name }, now)
      reenterReady(queue, job)
      later(queue, { kind: 'update', seq: job.seq, job })
      return
    case 'disconnected':
      topic.totals.disconnected++
      noteIn(job, 'disconnect', consumer.name, '', now)
      if (topic.tail !== undefined) noteTail(topic, 'disconnected', job, { consumer: consumer.name }, now)
      if (job.deliveries >= topic.config.max_deliveries) return die(queue, job, 'max_deliveries', now)
      reenterReady(queue, job)
      later(queue, { kind: 'update', seq: job.seq, job })
      return
    case 'expired':
      topic.totals.expired++
      return fail(queue, job, 'expired', { error: 'ack deadline exceeded', requeue: true }, consumer, now)
    case 'failed':
      topic.totals.nacked++
      return fail(queue, job, 'nack', resolution, consumer, now)
    default:
      unreachable(resolution)
  }
}

export function detachDelivery(queue: Queue, delivery: Delivery): void {
  delivery.isResolved = true
  delivery.job.delivery = undefined
  delivery.consumer.deliveries.delete(delivery.seqId)
  if (delivery.slot !== NO_SLOT) wheelRemove(queue.leases, delivery)
}

type Failure = { readonly error: string; readonly requeue: boolean; readonly delayMs?: number | undefined }

function fail(queue: Queue, job: Job, event: JobEvent, failure: Failure, consumer: Consumer, now: Moment): void {
  const { topic } = job
  job.failures++
  const error = failure.error.slice(0, JOB_LIMITS.errorTextMax)
  noteIn(job, event, consumer.name, error, now).lastError = error
  if (topic.tail !== undefined)
    noteTail(topic, event === 'expired' ? 'expired' : 'failed', job, { consumer: consumer.name, error }, now)
  if (!failure.requeue) return die(queue, job, 'rejected', now)
  if (job.failures >= (job.maxAttempts || topic.config.max_attempts)) return die(queue, job, 'max_attempts', now)
  job.flags &= ~FLAG.calendar
  enterDelayed(queue, job, failure.delayMs ?? backoffMs(queue, job), now)
  later(queue, { kind: 'update', seq: job.seq, job })
}

function backoffMs({ random }: Queue, { failures, topic }: Job): number {
  const { retry_base_ms, retry_max_ms } = topic.config
  const delay = Math.min(retry_base_ms * 2 ** Math.min(failures - 1, 40), retry_max_ms)
  return Math.round(delay * (0.8 + 0.4 * random()))
}

// --- What consumers send ---

/** Names a delivery: by job id, or by its number on the connection. */
export type DeliveryRef = {
  readonly jobId: string | undefined
  readonly seqId: number | undefined
  readonly lease: string | undefined
}

/** The delivery in flight on this connection that a message is about. */
function currentDelivery(consumer: Consumer, { jobId, seqId }: DeliveryRef): Delivery | undefined {
  const numbered = seqId === undefined ? undefined : consumer.deliveries.get(seqId)
  if (jobId === undefined || jobId === '' || jobId === numbered?.job.id) return numbered
  const delivery = findById(consumer.topic?.jobs, jobId)?.delivery
  return delivery?.consumer === consumer ? delivery : undefined
}

function hasOtherLease(queue: Queue, delivery: Delivery | undefined, lease: string | undefined): boolean {
  if (lease === undefined || lease === '') return false
  return delivery === undefined || lease !== leaseOf(queue, delivery)
}

/** Names one delivery of this process and no other, for clients that fence. */
export function leaseOf({ leasePrefix }: Queue, { number }: Delivery): string {
  return `${leasePrefix}.${number}`
}

/**
 * The job is done. A late acknowledgement, by another connection or after the lease ended, counts too, unless it names
 * a lease that is not the current one.
 */
export function acknowledge(queue: Queue, consumer: Consumer, ref: DeliveryRef, now: Moment): ConfirmResult {
  const delivery = currentDelivery(consumer, ref)
  if (delivery === undefined) return acknowledgeLate(queue, consumer, ref, now)
  if (hasOtherLease(queue, delivery, ref.lease)) return 'stale'
  adapt(queue, consumer, delivery, now)
  active(consumer, now)
  resolve(queue, delivery, { kind: 'acked' }, now)
  return 'done'
}

function acknowledgeLate(queue: Queue, consumer: Consumer, ref: DeliveryRef, now: Moment): ConfirmResult {
  const job = ref.jobId ? findById(consumer.topic?.jobs, ref.jobId) : undefined
  // Never delivered, as far as is known: an acknowledgement proves nothing.
  if (job === undefined || job.deliveries === 0 || job.state === STATE.pending) return 'unknown'
  if (hasOtherLease(queue, job.delivery, ref.lease)) return 'stale'
  if (job.delivery !== undefined) {
    resolve(queue, job.delivery, { kind: 'overtaken' }, now)
    assert(job.state === STATE.leased, 'an overtaken delivery leaves its job to the caller')
  }
  job.topic.totals.lateAcked++
  finish(queue, job, consumer.name, now)
  return 'late'
}

/** Fast consumers get a larger window, slow ones a smaller one. */
function adapt({ limits }: Queue, consumer: Consumer, delivery: Delivery, { monotonicMs }: Moment): void {
  if (!consumer.isAdaptive) return
  const share = (monotonicMs - delivery.at) / delivery.deadlineMs
  if (share < 0.1) consumer.window = Math.min(limits.prefetchDefault, consumer.window + 1)
  else if (share > 0.25) consumer.window = Math.max(1, consumer.window >> 1)
}

/** Activity extends the leases of the connection's other deliveries, see `deadlineOf`. */
function active(consumer: Consumer, { monotonicMs }: Moment): void {
  consumer.heardAt = monotonicMs
}

/** The consumer could not process the job. */
export function reject(
  queue: Queue,
  consumer: Consumer,
  ref: DeliveryRef,
  failure: Failure,
  now: Moment,
): ConfirmResult {
  const delivery = ownDelivery(queue, consumer, ref)
  if (typeof delivery === 'string') return delivery
  active(consumer, now)
  const { error, requeue, delayMs } = failure
  resolve(queue, delivery, { kind: 'failed', error, requeue, delayMs }, now)
  // A topic that keeps no dead jobs drops it at once.
  return delivery.job.state === STATE.delayed ? 'retry' : 'dead'
}

/** Gives a job back unprocessed, to its old place. */
export function release(queue: Queue, consumer: Consumer, ref: DeliveryRef, now: Moment): ConfirmResult {
  const delivery = ownDelivery(queue, consumer, ref)
  if (typeof delivery === 'string') return delivery
  active(consumer, now)
  resolve(queue, delivery, { kind: 'released' }, now)
  return 'released'
}

/** Gives all jobs of a connection back. */
export function releaseAll(queue: Queue, consumer: Consumer, now: Moment): void {
  for (const delivery of [...consumer.deliveries.values()]) resolve(queue, delivery, { kind: 'released' }, now)
}

/** The consumer needs longer. @param ms from now; undefined: the ack deadline of the job */
export function extend(
  queue: Queue,
  consumer: Consumer,
  ref: DeliveryRef,
  ms: number | undefined,
  now: Moment,
): ConfirmResult {
  const delivery = ownDelivery(queue, consumer, ref)
  if (typeof delivery === 'string') return delivery
  active(consumer, now)
  const by = Math.min(ms ?? delivery.deadlineMs, queue.limits.ackDeadlineMsMax)
  delivery.extendedTo = now.monotonicMs + by
  // A shorter time than before counts as well: the wheel looks at it no later than that.
  wheelRemove(queue.leases, delivery)
  wheelAdd(queue.leases, delivery, delivery.extendedTo)
  return 'extended'
}

/** nack, release and extend never touch a job that was delivered again or finished. */
function ownDelivery(queue: Queue, consumer: Consumer, ref: DeliveryRef): Delivery | 'unknown' | 'stale' {
  const delivery = currentDelivery(consumer, ref)
  if (delivery === undefined) {
    const isKnown = ref.jobId !== undefined && findById(consumer.topic?.jobs, ref.jobId) !== undefined
    return isKnown ? 'stale' : 'unknown'
  }
  const isOther = ref.seqId !== undefined && ref.seqId !== delivery.seqId
  return isOther || hasOtherLease(queue, delivery, ref.lease) ? 'stale' : delivery
}

// --- Leases ---

/** When a delivery expires: its deadline, which activity of its consumer moves within a limit, or its extension. */
export function deadlineOf(queue: Queue, { at, deadlineMs, extendedTo, consumer }: Delivery): number {
  if (extendedTo > 0) return extendedTo
  const slid = Math.min(consumer.heardAt + deadlineMs, at + deadlineMs * queue.limits.leaseFactorMax)
  return Math.max(at + deadlineMs, slid)
}

export function expire(queue: Queue, delivery: Delivery, now: Moment): void {
  const { consumer } = delivery
  consumer.expiredInRow++
  if (consumer.expiredInRow >= STALLED_AFTER && !consumer.isStalled) {
    consumer.isStalled = true
    const { topic } = consumer
    if (topic !== undefined) topic.counts.stalled++
    if (topic !== undefined && consumer.isFree) notFree(topic, consumer)
  }
  resolve(queue, delivery, { kind: 'expired' }, now)
}

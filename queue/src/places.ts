/** Where a job of the queue waits: ready, delayed or dead; and how it leaves memory. */
import { assert, unreachable } from '@vacancy/shared'
import { type DeadReason, JOB_LIMITS, type JobEvent, type TopicConfig } from '@vacancy/shared/contract'
import {
  type Heap,
  heapPush,
  heapRemove,
  heapUpdate,
  listAppend,
  listRemove,
  NOT_IN_HEAP,
  ringPush,
  ringShift,
} from './containers.ts'
import { removeById } from './id-index.ts'
import { FLAG, type Job, type Moment, type Past, STATE, type Topic } from './job.ts'
import { FINISHED_ID_BYTES, JOB_OVERHEAD_BYTES, later, type Queue } from './state.ts'
import { noteTail } from './tail.ts'

const MASKED_MAX = 200
/** UUIDs, hexadecimal ids, quoted parts, and words with digits such as `10.0.0.7:5123`, `job-9` or `5s`. */
const DETAILS =
  /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|"[^"]*"|'[^']*'|`[^`]*`|[\w.:-]*\d[\w.:-]*/gi

/** The text with numbers, quoted parts and ids replaced by `*`, cut to 200 characters. */
function maskedError(text: string): string {
  const [line = ''] = text.trim().split('\n', 1)
  return line
    .slice(0, MASKED_MAX * 4)
    .replace(DETAILS, '*')
    .slice(0, MASKED_MAX)
}

export function enterReady(queue: Queue, job: Job): void {
  const { topic } = job
  job.state = STATE.ready
  job.place = topic.nextPlace++
  topic.counts.ready++
  topic.readyMask |= 1 << job.priority
  listAppend(topic.ready[job.priority] as (typeof topic.ready)[number], job)
  markRunnable(queue, topic)
}

/** Back to its old place. */
export function reenterReady(queue: Queue, job: Job): void {
  const { topic } = job
  job.state = STATE.ready
  topic.counts.ready++
  topic.readyMask |= 1 << job.priority
  heapPush(topic.returned[job.priority] as Heap<Job>, job)
  markRunnable(queue, topic)
}

export function enterDelayed(queue: Queue, job: Job, delayMs: number, now: Moment): void {
  const { topic } = job
  job.state = STATE.delayed
  job.runAt = now.wallMs + delayMs
  job.dueAt = now.monotonicMs + delayMs
  topic.counts.delayed++
  heapPush(delayedHeap(job), job)
  setAlarm(queue, topic, now)
}

function delayedHeap({ topic, flags }: Job): Heap<Job> {
  return (flags & FLAG.calendar) === 0 ? topic.delayed : topic.scheduled
}

/** Takes a waiting or dead job out of where it waits. */
export function detach(queue: Queue, job: Job): void {
  const { topic } = job
  switch (job.state) {
    case STATE.ready:
      topic.counts.ready--
      if (job.heapIndex === NOT_IN_HEAP) listRemove(topic.ready[job.priority] as (typeof topic.ready)[number], job)
      else heapRemove(topic.returned[job.priority] as Heap<Job>, job)
      break
    case STATE.delayed:
      topic.counts.delayed--
      heapRemove(delayedHeap(job), job)
      break
    case STATE.dead:
      leaveDead(queue, job)
      break
    case STATE.pending:
      topic.counts.pending--
      break
    case STATE.leased:
    case STATE.gone:
      assert(false, 'a leased job must be resolved, and a finished one is in no list')
      break
    default:
      unreachable(job.state)
  }
}

/** The next job: the highest priority, or from time to time the oldest, so that low priorities are delivered, too. */
export function takeReady(topic: Topic): Job {
  const guard = topic.config.starvation_guard
  if (guard > 0 && --topic.untilOldest <= 0) {
    topic.untilOldest = guard
    const oldest = oldestReady(topic)
    assert(oldest !== undefined, 'a topic with ready jobs has an oldest one')
    return taken(topic, oldest)
  }
  for (;;) {
    assert(topic.readyMask !== 0, 'a topic with ready jobs has one in its lists')
    const priority = 31 - Math.clz32(topic.readyMask)
    const job = headOf(topic, priority)
    if (job !== undefined) return taken(topic, job)
    topic.readyMask &= ~(1 << priority)
  }
}

function headOf(topic: Topic, priority: number): Job | undefined {
  return topic.returned[priority]?.items[0] ?? topic.ready[priority]?.first
}

/** By order of acceptance. */
export function oldestReady(topic: Topic): Job | undefined {
  let oldest: Job | undefined
  for (let mask = topic.readyMask; mask !== 0; ) {
    const priority = 31 - Math.clz32(mask)
    mask &= ~(1 << priority)
    const job = headOf(topic, priority)
    if (job !== undefined && (oldest === undefined || job.seq < oldest.seq)) oldest = job
  }
  return oldest
}

function taken(topic: Topic, job: Job): Job {
  if (job.heapIndex === NOT_IN_HEAP) listRemove(topic.ready[job.priority] as (typeof topic.ready)[number], job)
  else heapRemove(topic.returned[job.priority] as Heap<Job>, job)
  topic.counts.ready--
  return job
}

export function markRunnable(queue: Queue, topic: Topic): void {
  if (topic.isRunnable || topic.isGone || topic.counts.ready === 0 || topic.free.length === 0) return
  topic.isRunnable = true
  ringPush(queue.runnable, topic)
}

// --- Dead jobs ---

export function die(queue: Queue, job: Job, reason: DeadReason, now: Moment): void {
  const past = pastOf(job)
  past.reason = reason
  past.deadAt = now.wallMs
  past.agesFrom = now.monotonicMs
  note(past, 'dead', '', past.lastError, now)
  job.topic.bytes -= job.bytes
  job.topic.totals.dead++
  job.topic.deadByReason[reason]++
  if (job.topic.tail !== undefined) noteTail(job.topic, 'dead', job, { error: past.lastError }, now)
  enterDead(queue, job, past)
  later(queue, { kind: 'update', seq: job.seq, job })
  trimDead(queue, job.topic)
}

export function enterDead(queue: Queue, job: Job, past: Past): void {
  const { topic } = job
  job.state = STATE.dead
  topic.counts.dead++
  topic.deadBytes += job.bytes
  listAppend(topic.dead, job)
  const name = maskedError(past.lastError || past.reason || '')
  let group = topic.deadGroups.get(name)
  if (group === undefined) {
    group = { name, jobs: new Map(), last: 0 }
    topic.deadGroups.set(name, group)
  }
  group.jobs.set(job.seq, job)
  group.last = Math.max(group.last, past.deadAt)
  past.group = group
  queue.aging.add(topic)
}

export function leaveDead(queue: Queue, job: Job): void {
  const { topic, past } = job
  assert(past?.group !== undefined, 'a dead job is in a group')
  topic.counts.dead--
  topic.deadBytes -= job.bytes
  listRemove(topic.dead, job)
  past.group.jobs.delete(job.seq)
  if (past.group.jobs.size === 0) topic.deadGroups.delete(past.group.name)
  past.group = undefined
  assert(queue.topics.get(topic.name) === topic, 'dead jobs belong to a topic that exists')
}

/** Drops the oldest dead jobs beyond the limits of the topic. */
export function trimDead(queue: Queue, topic: Topic): void {
  const { dlq_max_jobs, dlq_max_bytes } = topic.config
  while (topic.counts.dead > dlq_max_jobs || topic.deadBytes > dlq_max_bytes) dropOldestDead(queue, topic)
}

export function dropOldestDead(queue: Queue, topic: Topic): void {
  const job = topic.dead.first
  assert(job !== undefined, 'a dead list beyond its limits is not empty')
  const { seq } = job
  forgetJob(queue, job)
  topic.totals.deadDropped++
  later(queue, { kind: 'done', seq })
}

// --- The end of a job ---

/** The job is done: it leaves memory, and its row is deleted with one of the next groups. */
export function finish(queue: Queue, job: Job, consumer: string, now: Moment): void {
  const { topic } = job
  const { seq, id } = job
  forgetJob(queue, job)
  later(queue, { kind: 'done', seq })
  if (topic.tail !== undefined) noteTail(topic, 'done', job, { consumer }, now)
  if (topic.config.dedup_window_sec > 0) {
    topic.finished.set(id, now.monotonicMs)
    queue.bytes += FINISHED_ID_BYTES
    queue.aging.add(topic)
    later(queue, { kind: 'finished', topicNumber: topic.number, id, at: now.wallMs })
  }
  const { priority, failures, deliveries, createdAt, bytes } = job
  const maxAttempts = job.maxAttempts || topic.config.max_attempts
  const finishedAt = now.wallMs
  ringPush(topic.shown, { id, priority, failures, deliveries, maxAttempts, createdAt, finishedAt, bytes, consumer })
  if (topic.shown.length > shownMax(queue)) ringShift(topic.shown)
}

/** Many topics remember fewer finished jobs each. */
function shownMax({ topics }: Queue): number {
  return Math.min(JOB_LIMITS.finishedShownMax, Math.ceil(200_000 / Math.max(1, topics.size)))
}

/** Removes a job from memory, wherever it is. */
export function forgetJob(queue: Queue, job: Job): void {
  const { topic } = job
  if (topic.isGone) return
  const wasDead = job.state === STATE.dead
  if (job.state !== STATE.leased) detach(queue, job)
  assert(job.delivery === undefined, 'a job that ends has no delivery')
  removeById(topic.jobs, job.id)
  // Dead jobs count apart; leaving the dead list took them off.
  if (!wasDead) topic.bytes -= job.bytes
  queue.bytes -= job.bytes + JOB_OVERHEAD_BYTES
  job.state = STATE.gone
  assert(topic.bytes >= 0 && queue.bytes >= 0, 'sizes do not fall below zero')
}

// --- History ---

export function pastOf(job: Job): Past {
  job.past ??= { lastError: '', reason: undefined, deadAt: 0, agesFrom: 0, group: undefined, history: [] }
  return job.past
}

export function noteIn(job: Job, event: JobEvent, consumer: string, error: string, now: Moment): Past {
  const past = pastOf(job)
  note(past, event, consumer, error, now)
  return past
}

export function note({ history }: Past, event: JobEvent, consumer: string, error: string, now: Moment): void {
  history.push({ at: now.wallMs, event, consumer, error })
  if (history.length > JOB_LIMITS.historyMax) history.shift()
}

// --- Alarms ---

/** Sets the time at which the topic needs `advance`. */
export function setAlarm(queue: Queue, topic: Topic, now: Moment): void {
  const { wallMs, monotonicMs } = now
  const delayed = topic.delayed.items[0]?.dueAt ?? Number.POSITIVE_INFINITY
  const scheduled = (topic.scheduled.items[0]?.runAt ?? Number.POSITIVE_INFINITY) - wallMs + monotonicMs
  const at = Math.min(delayed, scheduled, allowanceDue(topic, now))
  if (at === topic.alarmAt && topic.heapIndex !== NOT_IN_HEAP) return
  topic.alarmAt = at
  const isSet = topic.heapIndex !== NOT_IN_HEAP
  if (at === Number.POSITIVE_INFINITY) {
    if (isSet) heapRemove(queue.alarms, topic)
  } else if (isSet) heapUpdate(queue.alarms, topic)
  else heapPush(queue.alarms, topic)
}

/** When the rate allows a delivery that waits for it. */
function allowanceDue(topic: Topic, now: Moment): number {
  const { rate_per_sec, paused } = topic.config
  if (rate_per_sec <= 0 || paused || topic.counts.ready === 0 || topic.free.length === 0)
    return Number.POSITIVE_INFINITY
  refill(topic, now)
  if (topic.allowance >= 1) return Number.POSITIVE_INFINITY
  return now.monotonicMs + ((1 - topic.allowance) * 1000) / rate_per_sec
}

export function burstOf({ rate_per_sec }: TopicConfig): number {
  return Math.max(1, rate_per_sec)
}

export function refill(topic: Topic, { monotonicMs }: Moment): void {
  const { config } = topic
  const added = ((monotonicMs - topic.allowanceAt) * config.rate_per_sec) / 1000
  topic.allowance = Math.min(burstOf(config), topic.allowance + added)
  topic.allowanceAt = monotonicMs
}

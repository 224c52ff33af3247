/**
 * The queue engine: all rules of topics, jobs and dead jobs (docs/design/queue.md#engine). Pure: time and randomness are
 * arguments, and what must be stored collects in groups of changes, which the service writes.
 */
import { assert } from '@vacancy/shared'
import type { TopicConfig } from '@vacancy/shared/contract'
import { heapRemove, NOT_IN_HEAP, wheelAdd, wheelTake, wheelWaitMs } from './containers.ts'
import { deadlineOf, detachDelivery, endAbsences, expire, join, leave, resolve, waitFor } from './delivery.ts'
import { addById, findById } from './id-index.ts'
import {
  type Consumer,
  createJob,
  createTopicState,
  type Job,
  type Moment,
  type NewJob,
  type Past,
  type RedriveRecord,
  STATE,
  type Topic,
} from './job.ts'
import {
  burstOf,
  detach,
  dropOldestDead,
  enterDead,
  enterDelayed,
  enterReady,
  forgetJob,
  leaveDead,
  markRunnable,
  note,
  oldestReady,
  pastOf,
  refill,
  setAlarm,
  trimDead,
} from './places.ts'
import {
  append,
  type Change,
  end,
  endGrowth,
  endWriting,
  FINISHED_ID_BYTES,
  type Group,
  JOB_OVERHEAD_BYTES,
  later,
  type Queue,
  ROW_BYTES,
} from './state.ts'
import { endTail, noteTail } from './tail.ts'

const SWEEP_MS = 1_000
/** A step of the wall clock beyond this places scheduled jobs again. */
const CLOCK_STEP_MS = 50

// --- Topics ---

/** @returns the group that makes it durable; undefined beyond the limit of topics */
export function createTopic(queue: Queue, name: string, config: TopicConfig, now: Moment): Group | undefined {
  assert(!queue.topics.has(name), 'a topic is created once')
  if (queue.topics.size >= queue.limits.topicsMax) return undefined
  const topic = createTopicState(name, queue.nextTopicNumber++, config, now.wallMs, queue.random)
  addTopic(queue, topic, now)
  return append(queue, [{ kind: 'topic', topic, config, redrive: undefined }], ROW_BYTES)
}

function addTopic(queue: Queue, topic: Topic, now: Moment): void {
  queue.topics.set(topic.name, topic)
  topic.allowanceAt = now.monotonicMs
  const consumers = queue.waiting.get(topic.name)
  queue.waiting.delete(topic.name)
  for (const consumer of consumers ?? []) join(topic, consumer, queue)
}

/** Changes the configuration; a topic that resumes is dispatched. */
export function configureTopic(queue: Queue, topic: Topic, config: TopicConfig, now: Moment): Group {
  refill(topic, now)
  const wasLimited = topic.config.rate_per_sec > 0
  topic.config = config
  topic.allowance = wasLimited ? Math.min(topic.allowance, burstOf(config)) : burstOf(config)
  topic.untilOldest = config.starvation_guard
  trimDead(queue, topic)
  markRunnable(queue, topic)
  return append(queue, [{ kind: 'topic', topic, config, redrive: topic.redrive?.record }], ROW_BYTES)
}

/** Deletes a topic with all its jobs; its consumers have no topic afterwards. */
export function deleteTopic(queue: Queue, topic: Topic): { readonly group: Group; readonly consumers: Consumer[] } {
  assert(!topic.isGone, 'a topic is deleted once')
  topic.isGone = true
  queue.topics.delete(topic.name)
  queue.aging.delete(topic)
  endTail(queue, topic)
  if (topic.heapIndex !== NOT_IN_HEAP) heapRemove(queue.alarms, topic)
  const consumers = [...topic.consumers]
  for (const consumer of consumers) {
    for (const delivery of consumer.deliveries.values()) detachDelivery(queue, delivery)
    leave(topic, consumer)
    waitFor(queue, consumer)
  }
  for (const consumer of queue.away.values())
    if (consumer.topicName === topic.name)
      for (const delivery of [...consumer.deliveries.values()]) detachDelivery(queue, delivery)
  queue.bytes -= topic.bytes + topic.deadBytes + topic.jobs.size * JOB_OVERHEAD_BYTES
  queue.bytes -= topic.finished.size * FINISHED_ID_BYTES
  const group = append(queue, [{ kind: 'topicGone', topicNumber: topic.number }], ROW_BYTES)
  return { group, consumers }
}

export function unfinishedOf({ counts }: Topic): number {
  return counts.pending + counts.ready + counts.delayed + counts.leased
}

// --- Submission ---

export type Submission =
  | {
      readonly accepted: number
      readonly duplicateIds: readonly string[]
      /** Of these, those that are known with another payload, which stays. */
      readonly differentIds: readonly string[]
      readonly groups: readonly Group[]
    }
  | { readonly refused: 'max_jobs' | 'max_bytes' | 'max_bytes_total' }

/**
 * Accepts all new jobs of a request, or none. They are stored when all `groups` are durable: their own, and those of
 * duplicates that another request submitted a moment before.
 */
export function submit(queue: Queue, topic: Topic, jobs: readonly NewJob[], now: Moment): Submission {
  const refused = lacksRoom(queue, topic, jobs)
  if (refused !== undefined) {
    topic.totals.rejected += jobs.length
    return { refused }
  }
  const changes: Change[] = []
  const duplicateIds: string[] = []
  const differentIds: string[] = []
  const groups: Group[] = []
  const first = queue.nextSeq
  const remembersFinished = topic.finished.size > 0
  let bytes = 0
  for (const fields of jobs) {
    const job = createJob(topic, fields, queue.nextSeq, STATE.pending, now.wallMs)
    const hasFinished = remembersFinished && topic.finished.has(fields.id)
    const known = hasFinished ? undefined : addById(topic.jobs, job)
    if (hasFinished || known !== undefined) {
      duplicateIds.push(fields.id)
      if (known !== undefined && known.data !== fields.data) differentIds.push(fields.id)
      // A job of an earlier request that is being stored.
      if (known?.state === STATE.pending && known.seq < first) {
        const group = groupOf(queue, known)
        if (!groups.includes(group)) groups.push(group)
      }
      continue
    }
    queue.nextSeq++
    topic.counts.pending++
    topic.bytes += job.bytes
    queue.bytes += job.bytes + JOB_OVERHEAD_BYTES
    bytes += job.bytes + ROW_BYTES
    changes.push({ kind: 'put', job })
  }
  topic.totals.duplicates += duplicateIds.length
  if (changes.length > 0) groups.push(appendPending(queue, changes, bytes))
  return { accepted: changes.length, duplicateIds, differentIds, groups }
}

/** A pending job carries the number of its group in `place`. */
function appendPending(queue: Queue, changes: readonly Change[], bytes: number): Group {
  const group = append(queue, changes, bytes)
  for (const change of changes) {
    if ('job' in change) change.job.place = group.number
    if (change.kind === 'move') change.from.place = group.number
  }
  return group
}

function groupOf(queue: Queue, job: Job): Group {
  const group =
    queue.writing?.number === job.place ? queue.writing : queue.groups.find(({ number }) => number === job.place)
  assert(group !== undefined, 'a pending job is in a group that is not durable yet')
  return group
}

/** The group that a pending job waits for; undefined for other jobs. */
export function pendingGroup(queue: Queue, job: Job): Group | undefined {
  return job.state === STATE.pending ? groupOf(queue, job) : undefined
}

function lacksRoom(
  queue: Queue,
  topic: Topic,
  jobs: readonly NewJob[],
): 'max_jobs' | 'max_bytes' | 'max_bytes_total' | undefined {
  const { max_jobs, max_bytes } = topic.config
  let bytes = 0
  for (const job of jobs) bytes += job.bytes
  const lacks = (count: number, size: number) => {
    if (unfinishedOf(topic) + count > max_jobs) return 'max_jobs' as const
    if (topic.bytes + size > max_bytes) return 'max_bytes' as const
    if (queue.bytes + size + count * JOB_OVERHEAD_BYTES > queue.limits.bytesMax) return 'max_bytes_total' as const
    return undefined
  }
  if (lacks(jobs.length, bytes) === undefined) return undefined
  // Duplicates need no room: a full topic still answers a request that is repeated.
  const added = new Map<string, number>()
  for (const { id, bytes: size } of jobs)
    if (findById(topic.jobs, id) === undefined && !topic.finished.has(id) && !added.has(id)) added.set(id, size)
  if (added.size === 0) return undefined
  return lacks(
    added.size,
    [...added.values()].reduce((sum, size) => sum + size, 0),
  )
}

/** A stored job becomes ready, or delayed. */
function settle(queue: Queue, job: Job, now: Moment): void {
  const { topic } = job
  assert(job.state === STATE.pending, 'only pending jobs become durable')
  topic.totals.accepted++
  if (topic.isGone) return
  topic.counts.pending--
  if (job.runAt > now.wallMs) enterDelayed(queue, job, job.runAt - now.wallMs, now)
  else enterReady(queue, job)
  if (topic.tail !== undefined) noteTail(topic, 'accepted', job, {}, now)
}

/** The group that is being written is durable: its jobs become ready. */
export function commitGroup(queue: Queue, now: Moment): void {
  const group = endWriting(queue)
  for (const change of group.changes) {
    if (change.kind === 'put') settle(queue, change.job, now)
    else if (change.kind === 'redrive') settleRedriven(queue, change.job, now)
    else if (change.kind === 'move') {
      forgetJob(queue, change.from)
      settle(queue, change.job, now)
    }
  }
  end(group, 'durable')
}

/**
 * There was no room on the disk: takes back what needs room. What is left of the group is to be written alone.
 *
 * @returns whether anything was taken back
 */
export function refuseGrowth(queue: Queue, now: Moment): boolean {
  const group = queue.writing
  assert(group !== undefined, 'a group is being written')
  const kept: Change[] = []
  for (const change of group.changes) {
    if (change.kind === 'put') {
      assert(change.job.state === STATE.pending, 'only a commit ends pending')
      forgetJob(queue, change.job)
    } else if (change.kind === 'redrive') {
      // Its row is unchanged.
      change.job.seq = change.seq
      restoreDead(queue, change.job, now)
    } else if (change.kind === 'move') {
      forgetJob(queue, change.job)
      restoreDead(queue, change.from, now)
    } else kept.push(change)
  }
  const wasGrowth = kept.length < group.changes.length
  group.changes = kept
  endGrowth(group, 'full')
  return wasGrowth
}

// --- What producers and operators do with jobs ---

/** Cancels a job. @returns its state before, or 'leased' when it is being processed and `force` is not set */
export function cancel(
  queue: Queue,
  job: Job,
  force: boolean,
  now: Moment,
): { readonly previous: 'ready' | 'delayed' | 'leased' | 'dead'; readonly group: Group | undefined } {
  assert(job.state !== STATE.pending && job.state !== STATE.gone, 'a job that is cancelled is stored')
  const previous = stateName(job)
  if (job.state === STATE.leased) {
    if (!force || job.delivery === undefined) return { previous, group: undefined }
    resolve(queue, job.delivery, { kind: 'overtaken' }, now)
  }
  const { seq, topic } = job
  forgetJob(queue, job)
  topic.totals.cancelled++
  if (topic.tail !== undefined) noteTail(topic, 'cancelled', job, {}, now)
  return { previous, group: append(queue, [{ kind: 'done', seq }], ROW_BYTES) }
}

export function stateName({ state }: Job): 'ready' | 'delayed' | 'leased' | 'dead' {
  switch (state) {
    case STATE.delayed:
      return 'delayed'
    case STATE.leased:
      return 'leased'
    case STATE.dead:
      return 'dead'
    default:
      // A pending job is shown as what it becomes within milliseconds.
      return 'ready'
  }
}

/** Removes up to `max` jobs of one state. @returns how many, and the group that makes it durable */
export function purge(
  queue: Queue,
  topic: Topic,
  state: 'ready' | 'delayed' | 'dead',
  max: number,
): { readonly removed: number; readonly group: Group | undefined } {
  const jobs: Job[] = []
  let group: Group | undefined
  while (jobs.length < max) {
    const job = firstOf(topic, state)
    if (job === undefined) break
    jobs.push(job)
    // Removed one by one, because the next first one shows only then.
    group = removeJobs(queue, [job])
  }
  return { removed: jobs.length, group }
}

/** Removes waiting or dead jobs. @returns the group that makes the last of it durable */
export function removeJobs(queue: Queue, jobs: readonly Job[]): Group | undefined {
  const changes: Change[] = []
  for (const job of jobs) {
    changes.push({ kind: 'done', seq: job.seq })
    job.topic.totals.cancelled++
    forgetJob(queue, job)
  }
  return changes.length === 0 ? undefined : append(queue, changes, changes.length * ROW_BYTES)
}

function firstOf(topic: Topic, state: 'ready' | 'delayed' | 'dead'): Job | undefined {
  if (state === 'dead') return topic.dead.first
  // The last one of a heap leaves without moving others.
  if (state === 'delayed') return topic.delayed.items.at(-1) ?? topic.scheduled.items.at(-1)
  return oldestReady(topic)
}

// --- Dead jobs ---

/** Dead jobs return to their topic, at the end of the line, with nothing counted, once that is durable. */
export function redrive(queue: Queue, jobs: readonly Job[]): Group | undefined {
  const changes: Change[] = []
  for (const job of jobs) {
    const { seq } = job
    takeFromDead(queue, job)
    job.seq = queue.nextSeq++
    changes.push({ kind: 'redrive', seq, job })
  }
  return changes.length === 0 ? undefined : appendPending(queue, changes, changes.length * ROW_BYTES)
}

/** Dead jobs become new jobs of another topic. Those whose id is known there stay dead. */
export function redriveTo(
  queue: Queue,
  jobs: readonly Job[],
  target: Topic,
  now: Moment,
): { readonly moved: readonly Job[]; readonly conflicts: readonly string[]; readonly group: Group | undefined } {
  const changes: Change[] = []
  const moved: Job[] = []
  const conflicts: string[] = []
  let bytes = 0
  for (const from of jobs) {
    if (findById(target.jobs, from.id) !== undefined || target.finished.has(from.id)) {
      conflicts.push(from.id)
      continue
    }
    takeFromDead(queue, from)
    const job = createJob(target, { ...from, runAt: 0 }, queue.nextSeq++, STATE.pending, now.wallMs)
    addById(target.jobs, job)
    target.counts.pending++
    target.bytes += job.bytes
    queue.bytes += job.bytes + JOB_OVERHEAD_BYTES
    bytes += job.bytes + ROW_BYTES
    changes.push({ kind: 'move', from, job })
    moved.push(job)
  }
  const group = changes.length === 0 ? undefined : appendPending(queue, changes, bytes)
  return { moved, conflicts, group }
}

/** From dead to pending. */
function takeFromDead(queue: Queue, job: Job): void {
  assert(job.state === STATE.dead, 'only dead jobs are redriven')
  leaveDead(queue, job)
  job.state = STATE.pending
  job.topic.counts.pending++
  job.topic.bytes += job.bytes
}

function restoreDead(queue: Queue, job: Job, now: Moment): void {
  const { topic, past } = job
  if (topic.isGone) return
  assert(job.state === STATE.pending && past !== undefined, 'a redrive that was refused left its job pending')
  topic.counts.pending--
  topic.bytes -= job.bytes
  enterDead(queue, job, past)
  note(past, 'dead', '', 'the redrive was refused: the disk is full', now)
}

function settleRedriven(queue: Queue, job: Job, now: Moment): void {
  const { topic } = job
  if (topic.isGone) return
  assert(job.state === STATE.pending, 'only pending jobs become durable')
  topic.counts.pending--
  topic.totals.redriven++
  job.failures = 0
  job.deliveries = 0
  job.runAt = 0
  if (job.past !== undefined) note(job.past, 'redriven', '', '', now)
  enterReady(queue, job)
  if (topic.tail !== undefined) noteTail(topic, 'redriven', job, {}, now)
}

// --- Time ---

/** Most jobs that one call makes ready or expires, so that a turn stays short. */
const TURN_JOBS = 1_000

/**
 * Does what is due: delayed jobs, expired leases, old dead jobs. A turn does at most 1,000 of them; `nextWakeMs` is 0
 * when more is due.
 */
export function advance(queue: Queue, now: Moment): void {
  noticeClockStep(queue, now)
  endAbsences(queue, now)
  let left = TURN_JOBS
  for (let topic = queue.alarms.items[0]; topic !== undefined && topic.alarmAt <= now.monotonicMs && left > 0; ) {
    left -= wake(queue, topic, now, left)
    topic = queue.alarms.items[0]
  }
  for (; left > 0; left--) {
    const delivery = wheelTake(queue.leases, now.monotonicMs)
    if (delivery === undefined) break
    const deadline = deadlineOf(queue, delivery)
    if (deadline > now.monotonicMs) wheelAdd(queue.leases, delivery, deadline)
    else expire(queue, delivery, now)
  }
  if (now.monotonicMs - queue.sweptAt >= SWEEP_MS) {
    queue.sweptAt = now.monotonicMs
    for (const topic of queue.aging) sweep(queue, topic, now)
  }
}

/** Milliseconds until `advance` is to be called; infinite when nothing waits. */
export function nextWakeMs(queue: Queue, now: Moment): number {
  const alarmMs = (queue.alarms.items[0]?.alarmAt ?? Number.POSITIVE_INFINITY) - now.monotonicMs
  const sweepMs = queue.aging.size > 0 ? SWEEP_MS : Number.POSITIVE_INFINITY
  const [away] = queue.away.values()
  const awayMs = (away?.awayUntil ?? Number.POSITIVE_INFINITY) - now.monotonicMs
  return Math.max(0, Math.min(alarmMs, sweepMs, awayMs, wheelWaitMs(queue.leases, now.monotonicMs)))
}

/** @returns how many jobs became ready, at least 1 */
function wake(queue: Queue, topic: Topic, now: Moment, max: number): number {
  let woken = 0
  while (woken < max) {
    const job = dueJob(topic, now)
    if (job === undefined) break
    detach(queue, job)
    enterReady(queue, job)
    woken++
  }
  // A rate limit may allow more now.
  markRunnable(queue, topic)
  if (woken < max) setAlarm(queue, topic, now)
  return Math.max(1, woken)
}

function dueJob({ delayed, scheduled }: Topic, { wallMs, monotonicMs }: Moment): Job | undefined {
  const next = delayed.items[0]
  if (next !== undefined && next.dueAt <= monotonicMs) return next
  const planned = scheduled.items[0]
  return planned !== undefined && planned.runAt <= wallMs ? planned : undefined
}

/** Jobs that are due at a time of the calendar follow a step of the wall clock. */
function noticeClockStep(queue: Queue, now: Moment): void {
  const offset = now.wallMs - now.monotonicMs
  if (Math.abs(offset - queue.clockOffset) < CLOCK_STEP_MS) return
  queue.clockOffset = offset
  for (const topic of [...queue.topics.values()]) if (topic.scheduled.items.length > 0) setAlarm(queue, topic, now)
}

function sweep(queue: Queue, topic: Topic, now: Moment): void {
  const { dlq_max_age_ms, dedup_window_sec } = topic.config
  for (let n = 0; n < TURN_JOBS; n++) {
    const oldest = topic.dead.first
    if (oldest === undefined || now.monotonicMs - (oldest.past?.agesFrom ?? 0) < dlq_max_age_ms) break
    dropOldestDead(queue, topic)
  }
  const ids: string[] = []
  for (const [id, at] of topic.finished) {
    if (now.monotonicMs - at < dedup_window_sec * 1000 || ids.length === TURN_JOBS) break
    ids.push(id)
  }
  for (const id of ids) topic.finished.delete(id)
  queue.bytes -= ids.length * FINISHED_ID_BYTES
  if (ids.length > 0) later(queue, { kind: 'forget', topicNumber: topic.number, ids })
  if (topic.dead.length === 0 && topic.finished.size === 0) queue.aging.delete(topic)
}

// --- Restart ---

export type StoredTopic = {
  readonly name: string
  readonly number: number
  readonly config: TopicConfig
  readonly redrive: RedriveRecord | undefined
  readonly createdAt: number
}
export type StoredJob = NewJob & {
  readonly topicNumber: number
  readonly seq: number
  readonly isDead: boolean
  readonly failures: number
  readonly deliveries: number
  readonly createdAt: number
  readonly past: Pick<Past, 'lastError' | 'reason' | 'deadAt' | 'history'> | undefined
}

/** Fills an empty queue from a journal: topics first, then jobs in order of `seq`. */
export function restoreTopic(queue: Queue, stored: StoredTopic, now: Moment): Topic {
  const topic = createTopicState(stored.name, stored.number, stored.config, stored.createdAt, queue.random)
  if (stored.redrive !== undefined)
    topic.redrive = {
      record: stored.redrive,
      jobs: undefined,
      at: 0,
      startedAt: undefined,
      redriven: 0,
      conflicts: [],
      isLooping: false,
    }
  addTopic(queue, topic, now)
  queue.nextTopicNumber = Math.max(queue.nextTopicNumber, stored.number + 1)
  return topic
}

export function restoreJob(queue: Queue, topic: Topic, stored: StoredJob, now: Moment): void {
  const job = createJob(topic, stored, stored.seq, STATE.pending, stored.createdAt)
  const known = addById(topic.jobs, job)
  assert(known === undefined && stored.seq >= queue.nextSeq, 'rows come once, in order of seq')
  queue.nextSeq = stored.seq + 1
  queue.bytes += job.bytes + JOB_OVERHEAD_BYTES
  job.failures = stored.failures
  job.deliveries = stored.deliveries
  if (stored.past !== undefined) {
    const agesFrom = now.monotonicMs - Math.max(0, now.wallMs - stored.past.deadAt)
    job.past = { ...stored.past, history: [...stored.past.history], agesFrom, group: undefined }
  }
  if (stored.isDead) return enterDead(queue, job, pastOf(job))
  topic.bytes += job.bytes
  if (stored.runAt > now.wallMs) enterDelayed(queue, job, stored.runAt - now.wallMs, now)
  else enterReady(queue, job)
}

/** Ids that finished within the dedup window. */
export function restoreFinished(queue: Queue, topic: Topic, id: string, at: number, now: Moment): void {
  topic.finished.set(id, now.monotonicMs - Math.max(0, now.wallMs - at))
  queue.bytes += FINISHED_ID_BYTES
  queue.aging.add(topic)
}

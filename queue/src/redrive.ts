/**
 * Long redrives: all dead jobs of a topic that match when it begins, some at a time, at a rate. A job leaves the dead list
 * with the group that stores it in its topic, so a cancelled or killed redrive loses nothing and repeats nothing
 * (docs/design/queue-delivery.md#redrive). The record of a redrive is in the row of its topic; what is left is found again by it.
 */
import { assert } from '@vacancy/shared'
import { type DeadFilter, JOB_LIMITS, type RedriveState, type RedriveView } from '@vacancy/shared/contract'
import { type Job, type Moment, type Redrive, type RedriveRecord, STATE, type Topic } from './job.ts'
import { redrive, redriveTo } from './queue.ts'
import { append, type Group, type Queue, ROW_BYTES } from './state.ts'
import { selectDead } from './views.ts'

export type RedriveRequest = {
  readonly filter: DeadFilter
  readonly to: string | undefined
  readonly ratePerSec: number
  readonly by: string
}

export function isRedriveOpen({ redrive: found }: Topic): boolean {
  return found?.record.state === 'running' || found?.record.state === 'paused'
}

/** @returns the group that makes it durable */
export function beginRedrive(queue: Queue, topic: Topic, request: RedriveRequest, now: Moment): Group {
  assert(!isRedriveOpen(topic), 'a topic has one open redrive')
  const jobs = selectDead(topic, request.filter, Number.POSITIVE_INFINITY)
  const count = jobs.length
  const record: RedriveRecord = {
    ...request,
    total: count,
    left: count,
    startedAt: now.wallMs,
    endedAt: undefined,
    state: 'running',
    reason: '',
  }
  topic.redrive = { record, jobs, at: 0, startedAt: now.monotonicMs, redriven: 0, conflicts: [], isLooping: false }
  return store(queue, topic)
}

/** @param reason why it paused without a request */
export function setRedriveState(queue: Queue, topic: Topic, state: RedriveState, now: Moment, reason = ''): Group {
  const { redrive: found } = topic
  assert(found !== undefined && isRedriveOpen(topic), 'only an open redrive changes its state')
  const isEnd = state === 'cancelled' || state === 'done'
  const left = leftOf(topic, found)
  found.record = { ...found.record, state, reason, left, endedAt: isEnd ? now.wallMs : undefined }
  if (isEnd) found.jobs = []
  return store(queue, topic)
}

function store(queue: Queue, topic: Topic): Group {
  return append(queue, [{ kind: 'topic', topic, config: topic.config, redrive: topic.redrive?.record }], ROW_BYTES)
}

/** Jobs looked at in one step, so that a turn stays short. */
const STEP_JOBS = 2_000

export type RedriveStep =
  /** `from` is for `redriveEnded`. */
  | { readonly kind: 'moved'; readonly count: number; readonly from: number; readonly group: Group | undefined }
  /** The topic that the jobs go to does not exist. */
  | { readonly kind: 'no topic' }
  | { readonly kind: 'end' }

/** Redrives up to `max` of the jobs that are left; `redriveEnded` follows when the group has ended. */
export function stepRedrive(queue: Queue, topic: Topic, max: number, now: Moment): RedriveStep {
  const { redrive: found } = topic
  assert(found?.record.state === 'running', 'only a running redrive moves jobs')
  const { to } = found.record
  const target = to === undefined ? undefined : queue.topics.get(to)
  if (to !== undefined && target === undefined) return { kind: 'no topic' }
  if (leftOf(topic, found) === 0) return { kind: 'end' }
  const from = found.at
  const jobs = takeJobs(topic, found, max)
  if (target === undefined) return { kind: 'moved', count: jobs.length, from, group: redrive(queue, jobs) }
  const { moved, conflicts, group } = redriveTo(queue, jobs, target, now)
  found.conflicts.push(...conflicts.slice(0, JOB_LIMITS.listedMax - found.conflicts.length))
  return { kind: 'moved', count: moved.length, from, group }
}

/**
 * @param found the redrive that the step was of
 * @param isStored false: a full disk refused the step, and its jobs are dead again
 */
export function redriveEnded(
  queue: Queue,
  topic: Topic,
  found: Redrive,
  { count, from }: Extract<RedriveStep, { kind: 'moved' }>,
  isStored: boolean,
): void {
  // Another one may have begun since.
  if (topic.isGone || topic.redrive !== found) return
  if (isStored) {
    found.redriven += count
    return
  }
  const back = found.at - from
  found.at = from
  if (found.record.state === 'running') return
  // It was paused or cancelled meanwhile, without the jobs of this step.
  found.record = { ...found.record, left: found.record.left + back }
  store(queue, topic)
}

function jobsOf(topic: Topic, found: Redrive): readonly Job[] {
  // After a start: those that were dead already when it began.
  found.jobs ??= selectDead(topic, found.record.filter, Number.POSITIVE_INFINITY).filter(
    ({ past }) => past !== undefined && past.deadAt <= found.record.startedAt,
  )
  return found.jobs
}

function leftOf(topic: Topic, found: Redrive): number {
  return isRedriveOpen(topic) ? jobsOf(topic, found).length - found.at : found.record.left
}

function takeJobs(topic: Topic, found: Redrive, max: number): Job[] {
  const all = jobsOf(topic, found)
  const jobs: Job[] = []
  for (let looked = 0; jobs.length < max && looked < STEP_JOBS && found.at < all.length; looked++) {
    const job = all[found.at++] as Job
    // It may have been redriven, deleted or dead again since.
    const isSame = found.startedAt === undefined || (job.past?.agesFrom ?? 0) <= found.startedAt
    if (job.state === STATE.dead && isSame) jobs.push(job)
  }
  return jobs
}

export function redriveView(topic: Topic, found: Redrive): RedriveView {
  const { filter, to, ratePerSec, by, total, startedAt, endedAt, state, reason } = found.record
  return {
    topic: topic.name,
    to: to ?? null,
    state,
    reason,
    by,
    filter: Object.fromEntries(
      Object.entries(filter).filter(([, value]) => value !== undefined),
    ) as RedriveView['filter'],
    ratePerSec,
    total,
    left: leftOf(topic, found),
    redriven: found.redriven,
    conflicts: [...found.conflicts],
    startedAt: new Date(startedAt).toISOString(),
    endedAt: endedAt === undefined ? null : new Date(endedAt).toISOString(),
  }
}

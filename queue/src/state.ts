/** The state of the queue engine, and the groups of changes that are to be stored (docs/design/queue.md#engine). */
import { assert } from '@vacancy/shared'
import type { TopicConfig } from '@vacancy/shared/contract'
import { createHeap, createRing, createWheel } from './containers.ts'
import type { Consumer, Delivery, Job, Moment, RedriveRecord, Topic } from './job.ts'

export type QueueLimits = {
  readonly topicsMax: number
  /** Of payloads and their overhead, in memory. */
  readonly bytesMax: number
  readonly groupChangesMax: number
  readonly groupBytesMax: number
  readonly prefetchDefault: number
  readonly prefetchMax: number
  readonly ackDeadlineMsMax: number
  /** Other activity of a consumer extends a lease to at most so many ack deadlines. */
  readonly leaseFactorMax: number
  /** How long a consumer whose connection broke keeps its deliveries. */
  readonly resumeGraceMs: number
}

/** Memory of a job beside its payload, rounded up from a measurement of a million jobs. */
export const JOB_OVERHEAD_BYTES = 600
export const FINISHED_ID_BYTES = 150

/** What a journal stores. Rows are encoded when the group is written. */
export type Change =
  | { readonly kind: 'put'; readonly job: Job }
  | { readonly kind: 'update'; readonly seq: number; readonly job: Job }
  /** A dead job becomes ready under another seq, with nothing counted. */
  | { readonly kind: 'redrive'; readonly seq: number; readonly job: Job }
  /** A dead job of another topic becomes this new one. */
  | { readonly kind: 'move'; readonly from: Job; readonly job: Job }
  | { readonly kind: 'done'; readonly seq: number }
  | { readonly kind: 'finished'; readonly topicNumber: number; readonly id: string; readonly at: number }
  | { readonly kind: 'forget'; readonly topicNumber: number; readonly ids: readonly string[] }
  | {
      readonly kind: 'topic'
      readonly topic: Topic
      readonly config: TopicConfig
      readonly redrive: RedriveRecord | undefined
    }
  | { readonly kind: 'topicGone'; readonly topicNumber: number }

/** How the write of a group ended: durable, refused by a full disk, or of unknown outcome. */
export type GroupOutcome = 'durable' | 'full' | 'unknown'

/** Changes that are stored in one transaction, in order. */
export type Group = {
  readonly number: number
  changes: Change[]
  bytes: number
  /** A request waits for it; otherwise it may be delayed for some milliseconds. */
  isUrgent: boolean
  readonly waiting: { readonly isGrowth: boolean; readonly onEnd: (outcome: GroupOutcome) => void }[]
}

export type Queue = ReturnType<typeof createQueue>

export type QueueOptions = {
  readonly limits: QueueLimits
  readonly random: () => number
  /** Makes leases of this process differ from those of others. */
  readonly leasePrefix: string
  readonly nextConsumer: number
  /** Ids of consumers of several partitions do not collide. */
  readonly consumerStride: number
}

export function createQueue({ limits, random, leasePrefix, nextConsumer, consumerStride }: QueueOptions, now: Moment) {
  return {
    limits,
    random,
    leasePrefix,
    topics: new Map<string, Topic>(),
    consumers: new Map<number, Consumer>(),
    /** Consumers with deliveries whose connection broke, in the order in which it did. */
    away: new Map<number, Consumer>(),
    /** Consumers of topics that do not exist yet. */
    waiting: new Map<string, Set<Consumer>>(),
    runnable: createRing<Topic>(),
    alarms: createHeap(isAlarmBefore),
    leases: createWheel<Delivery>(now.monotonicMs),
    /** Topics with dead jobs or finished ids, which age. */
    aging: new Set<Topic>(),
    /** Topics with a live tail; the one at the end was read last. */
    tailed: new Set<Topic>(),
    /** Not yet taken to be written, oldest first. */
    groups: [] as Group[],
    /** Being written. */
    writing: undefined as Group | undefined,
    nextGroup: 1,
    nextSeq: 1,
    nextTopicNumber: 1,
    nextConsumer,
    consumerStride,
    nextDelivery: 1,
    /** Payloads with overhead, of all jobs. */
    bytes: 0,
    sweptAt: now.monotonicMs,
    /** Wall clock minus monotonic clock when it was last compared. */
    clockOffset: now.wallMs - now.monotonicMs,
  }
}

const isAlarmBefore = (a: Topic, b: Topic): boolean => a.alarmAt < b.alarmAt

// --- Groups of changes ---

/** Puts the changes of one atomic unit into the open group, or begins another. */
export function append(queue: Queue, changes: readonly Change[], bytes: number): Group {
  const group = openGroup(queue, changes.length, bytes)
  for (const change of changes) group.changes.push(change)
  group.isUrgent = true
  return group
}

/** A group with room for so many changes. */
function openGroup(queue: Queue, count: number, bytes: number): Group {
  const { groupChangesMax, groupBytesMax } = queue.limits
  let group = queue.groups.at(-1)
  const isFull =
    group !== undefined &&
    group.changes.length > 0 &&
    (group.changes.length + count > groupChangesMax || group.bytes + bytes > groupBytesMax)
  if (group === undefined || isFull) {
    group = { number: queue.nextGroup++, changes: [], bytes: 0, isUrgent: false, waiting: [] }
    queue.groups.push(group)
  }
  group.bytes += bytes
  return group
}

/** Rows of a change beside its payload, for the size of a group. */
export const ROW_BYTES = 100

/** Adds a change that no request waits for. */
export function later(queue: Queue, change: Change): void {
  openGroup(queue, 1, ROW_BYTES).changes.push(change)
}

/** Takes the oldest group, which is then being written. One at a time. */
export function takeGroup(queue: Queue): Group | undefined {
  assert(queue.writing === undefined, 'one group is written at a time')
  queue.writing = queue.groups.shift()
  return queue.writing
}

/** The outcome of the write is not known: it is `unknown` for this group and all later ones. */
export function failGroups(queue: Queue): void {
  const groups = queue.writing === undefined ? queue.groups : [queue.writing, ...queue.groups]
  queue.writing = undefined
  for (const group of groups.splice(0)) end(group, 'unknown')
  queue.groups.length = 0
}

export function endWriting(queue: Queue): Group {
  const group = queue.writing
  assert(group !== undefined, 'a group is being written')
  queue.writing = undefined
  return group
}

export function end(group: Group, outcome: GroupOutcome): void {
  for (const { onEnd } of group.waiting.splice(0)) onEnd(outcome)
}

/** Tells only those whose changes need room. */
export function endGrowth(group: Group, outcome: GroupOutcome): void {
  const waiting = group.waiting.splice(0)
  for (const each of waiting) {
    if (each.isGrowth) each.onEnd(outcome)
    else group.waiting.push(each)
  }
}

/** Calls back when the group is durable or refused. @param isGrowth submissions and redrives, which need room */
export function waitForGroup(group: Group, isGrowth: boolean, onEnd: (outcome: GroupOutcome) => void): void {
  group.waiting.push({ isGrowth, onEnd })
}

/** Puts the group that was being written back in front, to be written again. */
export function putGroupBack(queue: Queue): void {
  queue.groups.unshift(endWriting(queue))
}

/** Jobs, topics, consumers and deliveries of the queue, as plain data (docs/design/queue.md#engine). */
import type {
  DeadFilter,
  DeadReason,
  JobEvent,
  RedriveState,
  TailEventKind,
  TopicConfig,
  TopicTotals,
} from '@vacancy/shared/contract'
import {
  createHeap,
  createList,
  createRing,
  type Heap,
  type List,
  NO_SLOT,
  NOT_IN_HEAP,
  type Ring,
} from './containers.ts'
import { createIdIndex, type IdIndex } from './id-index.ts'
import { type Buckets, createBuckets, LATENCY_SECONDS } from './latency.ts'

/** A moment in both clocks. Leases, back-off and rates follow the monotonic one, which no clock step changes. */
export type Moment = { readonly wallMs: number; readonly monotonicMs: number }

/**
 * Of a job. `pending` is not durable yet; it becomes `ready` or `delayed` with the commit of its group. `gone` is done,
 * cancelled or deleted.
 */
export const STATE = { pending: 0, ready: 1, delayed: 2, leased: 3, dead: 4, gone: 5 } as const
export type State = (typeof STATE)[keyof typeof STATE]

/** Bits of `Job.flags`. */
export const FLAG = {
  /** The payload is JSON text in UTF-8; otherwise base64. */
  json: 1,
  /** `runAt` is a time of the calendar, which follows the wall clock; otherwise a duration. */
  calendar: 2,
  /** The payload JSON has characters beyond ASCII. */
  wide: 4,
  /** It has a trace, which is stored in front of its payload. */
  traced: 8,
} as const

/** All jobs have the same fields in the same order, so that V8 keeps one hidden class for a million of them. */
export type Job = {
  readonly id: string
  readonly topic: Topic
  /** Order of acceptance, and the key of its row. Redriven jobs get another one. */
  seq: number
  state: State
  readonly priority: number
  flags: number
  failures: number
  deliveries: number
  /** 0: the value of the topic. */
  readonly maxAttempts: number
  /** 0: the value of the topic. */
  readonly ackDeadlineMs: number
  /** Wall clock. */
  readonly createdAt: number
  /** When a delayed job becomes ready, wall clock; 0: at once. */
  runAt: number
  /** The same on the monotonic clock. */
  dueAt: number
  /** Order in which jobs of a topic became ready; a job that comes back keeps it. While pending: its group. */
  place: number
  /** JSON text or base64, by its flag; undefined for the payload null. */
  readonly data: string | undefined
  /** Of the decoded payload. */
  readonly bytes: number
  /** The `traceparent` of its submission; undefined without one. */
  readonly trace: string | undefined
  delivery: Delivery | undefined
  /** Links of the list that it is in: ready or dead. */
  next: Job | undefined
  previous: Job | undefined
  heapIndex: number
  /** Absent for a job that was never given back. */
  past: Past | undefined
}

/** What happened to a job that failed, came back or is dead. */
export type Past = {
  lastError: string
  reason: DeadReason | undefined
  /** Wall clock, and the same on the monotonic clock, by which it ages. */
  deadAt: number
  agesFrom: number
  group: DeadGroupState | undefined
  readonly history: HistoryLine[]
}
export type HistoryLine = {
  readonly at: number
  readonly event: JobEvent
  readonly consumer: string
  readonly error: string
}

/** Dead jobs of a topic with the same masked error. */
type DeadGroupState = { readonly name: string; readonly jobs: Map<number, Job>; last: number }

/** One job that is leased to one consumer. Only `resolve` ends it. */
export type Delivery = {
  readonly job: Job
  /** These change when the consumer comes back on another connection. */
  consumer: Consumer
  /** Counted from 1 on its connection. */
  seqId: number
  /** Unique in this process. */
  readonly number: number
  /** Monotonic. */
  readonly at: number
  readonly deadlineMs: number
  /** By `extend`, monotonic; 0 without. */
  extendedTo: number
  isResolved: boolean
  next: Delivery | undefined
  previous: Delivery | undefined
  slot: number
}

export type Consumer = {
  readonly id: number
  readonly name: string
  readonly topicName: string
  /** Undefined until the topic exists. */
  topic: Topic | undefined
  readonly tokenName: string
  readonly remote: string
  readonly confirms: boolean
  readonly connectedAt: number
  readonly deliveries: Map<number, Delivery>
  /** Most unresolved deliveries. */
  window: number
  isAdaptive: boolean
  /** In the list of consumers with room. */
  isFree: boolean
  next: Consumer | undefined
  previous: Consumer | undefined
  isStalled: boolean
  /** Gets no more jobs: it closes, or its socket does not take more. */
  isPaused: boolean
  /** Expired deliveries since its last message. */
  expiredInRow: number
  nextSeqId: number
  /** Of its last message, monotonic; 0 before. */
  heardAt: number
  /** The same on the wall clock. */
  lastMessageAt: number
  /** After its connection broke, until when it keeps its deliveries, monotonic. */
  awayUntil: number
  delivered: number
  acked: number
}

export type Topic = {
  readonly name: string
  /** Key of its rows; never used again. */
  readonly number: number
  readonly createdAt: number
  config: TopicConfig
  /** The long redrive that runs, or the last one. */
  redrive: Redrive | undefined
  /** Every known job by id, dead ones included. */
  readonly jobs: IdIndex<Job>
  /** Bit p: there may be a ready job of priority p. */
  readyMask: number
  /** By priority, in the order of `place`. */
  readonly ready: readonly List<Job>[]
  /** Jobs that came back, which go before the list of their priority. */
  readonly returned: readonly Heap<Job>[]
  readonly delayed: Heap<Job>
  readonly scheduled: Heap<Job>
  /** Oldest first. */
  readonly dead: List<Job>
  readonly deadGroups: Map<string, DeadGroupState>
  readonly consumers: Set<Consumer>
  /** Consumers with room, in turn. */
  readonly free: List<Consumer>
  readonly counts: { ready: number; delayed: number; leased: number; dead: number; pending: number; stalled: number }
  /** Payload bytes of unfinished and of dead jobs. */
  bytes: number
  deadBytes: number
  nextPlace: number
  /** Deliveries until the oldest job goes first. */
  untilOldest: number
  /** Deliveries that the rate allows now, and when that was computed. */
  allowance: number
  allowanceAt: number
  /** Ids that finished within the dedup window, oldest first, with the monotonic time. */
  readonly finished: Map<string, number>
  /** Finished jobs, newest last, for display. */
  readonly shown: Ring<FinishedJob>
  readonly totals: { -readonly [K in keyof TopicTotals]: number }
  readonly deadByReason: Record<DeadReason, number>
  /** From acceptance to the first delivery, and from a delivery to its acknowledgement. */
  readonly deliverySeconds: Buckets
  readonly ackSeconds: Buckets
  /** Totals at past moments, oldest first, from which rates are computed. */
  readonly samples: RateSample[]
  /** Its course, for charts; absent when too many topics have one. */
  history: History | undefined
  /** What happens to its jobs, while it is read. */
  tail: Tail | undefined
  /** In the ring of topics to dispatch. */
  isRunnable: boolean
  isGone: boolean
  /** When something is due, monotonic. */
  alarmAt: number
  heapIndex: number
}

/** What the journal keeps of a long redrive. */
export type RedriveRecord = {
  readonly filter: DeadFilter
  /** Undefined: they return to the same topic. */
  readonly to: string | undefined
  readonly ratePerSec: number
  readonly by: string
  readonly total: number
  /** When its state changed last. */
  readonly left: number
  /** Wall clock. Jobs that died later are not of it. */
  readonly startedAt: number
  readonly endedAt: number | undefined
  readonly state: RedriveState
  readonly reason: string
}

export type Redrive = {
  record: RedriveRecord
  /** The jobs it began with, and the next one; undefined until they are selected again after a start. */
  jobs: readonly Job[] | undefined
  at: number
  /** Monotonic; undefined when it began before the process. */
  readonly startedAt: number | undefined
  redriven: number
  readonly conflicts: string[]
  /** One loop at a time moves its jobs. */
  isLooping: boolean
}

/** Totals at a monotonic moment. */
export type RateSample = {
  readonly at: number
  readonly accepted: number
  readonly delivered: number
  readonly acked: number
  readonly failed: number
}

/** Counts from which rates are computed. */
export type CourseTotals = { readonly accepted: number; readonly finished: number; readonly failed: number }

/** The course of a topic (history.ts). */
export type History = {
  /** Of each series the same number of values, in a ring. NaN is a gap. */
  readonly values: Float32Array
  /** Where the next sample goes, and how many there are. */
  next: number
  length: number
  /** Of the last sample. */
  at: number
  totals: CourseTotals
  /** Counts of the latencies then. */
  deliveries: Float64Array
  handlings: Float64Array
}

/** A live tail (tail.ts). */
export type Tail = {
  /** Differs between the tails of a topic, so that a cursor of another one is noticed. */
  readonly epoch: string
  readonly events: Ring<NotedEvent>
  /** Number of the last event, skipped ones included. */
  last: number
  /** Events that may be noted now, and when that was computed. */
  allowance: number
  allowanceAt: number
  readAt: number
}

/** The job may be gone when it is shown. */
export type NotedEvent = {
  readonly n: number
  readonly at: number
  readonly event: TailEventKind
  readonly job: Pick<Job, 'id' | 'data' | 'flags' | 'bytes'>
  readonly failures: number
  readonly consumer: string
  readonly error: string
}

export type FinishedJob = {
  readonly id: string
  readonly priority: number
  readonly failures: number
  readonly deliveries: number
  readonly maxAttempts: number
  readonly createdAt: number
  readonly finishedAt: number
  readonly bytes: number
  readonly consumer: string
}

const PRIORITIES = 10

export const NO_TOTALS: TopicTotals = {
  accepted: 0,
  duplicates: 0,
  delivered: 0,
  redelivered: 0,
  acked: 0,
  lateAcked: 0,
  nacked: 0,
  expired: 0,
  disconnected: 0,
  dead: 0,
  deadDropped: 0,
  cancelled: 0,
  redriven: 0,
  rejected: 0,
}

export function createTopicState(
  name: string,
  number: number,
  config: TopicConfig,
  createdAt: number,
  random: () => number,
): Topic {
  return {
    name,
    number,
    createdAt,
    config,
    redrive: undefined,
    jobs: createIdIndex(random),
    readyMask: 0,
    ready: Array.from({ length: PRIORITIES }, () => createList<Job>()),
    returned: Array.from({ length: PRIORITIES }, () => createHeap(isBeforeByPlace)),
    delayed: createHeap(isDueBefore),
    scheduled: createHeap(isScheduledBefore),
    dead: createList(),
    deadGroups: new Map(),
    consumers: new Set(),
    free: createList(),
    counts: { ready: 0, delayed: 0, leased: 0, dead: 0, pending: 0, stalled: 0 },
    bytes: 0,
    deadBytes: 0,
    nextPlace: 0,
    untilOldest: config.starvation_guard,
    allowance: config.rate_per_sec,
    allowanceAt: 0,
    finished: new Map(),
    shown: createRing(),
    totals: { ...NO_TOTALS },
    deadByReason: { max_attempts: 0, max_deliveries: 0, rejected: 0 },
    deliverySeconds: createBuckets(LATENCY_SECONDS),
    ackSeconds: createBuckets(LATENCY_SECONDS),
    samples: [],
    history: undefined,
    tail: undefined,
    isRunnable: false,
    isGone: false,
    alarmAt: Number.POSITIVE_INFINITY,
    heapIndex: NOT_IN_HEAP,
  }
}

const isBeforeByPlace = (a: Job, b: Job): boolean => a.place < b.place
const isDueBefore = (a: Job, b: Job): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && isOlder(a, b))
const isScheduledBefore = (a: Job, b: Job): boolean => a.runAt < b.runAt || (a.runAt === b.runAt && isOlder(a, b))

/** Higher priority first, then order of acceptance. */
function isOlder(a: Job, b: Job): boolean {
  return a.priority > b.priority || (a.priority === b.priority && a.seq < b.seq)
}

export type NewJob = {
  readonly id: string
  readonly priority: number
  readonly flags: number
  readonly maxAttempts: number
  readonly ackDeadlineMs: number
  /** Wall clock; 0: at once. */
  readonly runAt: number
  readonly data: string | undefined
  readonly bytes: number
  /** A `traceparent`, with its flag. */
  readonly trace?: string | undefined
}

export function createJob(topic: Topic, fields: NewJob, seq: number, state: State, createdAt: number): Job {
  return {
    id: fields.id,
    topic,
    seq,
    state,
    priority: fields.priority,
    flags: fields.flags,
    failures: 0,
    deliveries: 0,
    maxAttempts: fields.maxAttempts,
    ackDeadlineMs: fields.ackDeadlineMs,
    createdAt,
    runAt: fields.runAt,
    dueAt: 0,
    place: 0,
    data: fields.data,
    bytes: fields.bytes,
    trace: fields.trace,
    delivery: undefined,
    next: undefined,
    previous: undefined,
    heapIndex: NOT_IN_HEAP,
    past: undefined,
  }
}

export function createDelivery(consumer: Consumer, job: Job, number: number, at: number, deadlineMs: number): Delivery {
  return {
    job,
    consumer,
    seqId: consumer.nextSeqId++,
    number,
    at,
    deadlineMs,
    extendedTo: 0,
    isResolved: false,
    next: undefined,
    previous: undefined,
    slot: NO_SLOT,
  }
}

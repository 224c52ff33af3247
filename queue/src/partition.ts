/**
 * One partition of the queue: the engine with its journal, timers and connections. It writes groups, delivers, and is
 * loaded again when the journal is lost.
 */
import type { Clock } from '@vacancy/shared'
import type { Logger } from 'pino'
import { dispatch } from './delivery.ts'
import type { Consumer, Delivery, Moment, Topic } from './job.ts'
import { type Journal, JournalFullError, type OpenJournal, type Stored } from './journal.ts'
import { advance, commitGroup, nextWakeMs, refuseGrowth, restoreFinished, restoreJob, restoreTopic } from './queue.ts'
import {
  createQueue,
  failGroups,
  type Group,
  type GroupOutcome,
  putGroupBack,
  type Queue,
  type QueueLimits,
  takeGroup,
  waitForGroup,
} from './state.ts'

/** Why a partition does not serve; undefined while it does. */
type Unavailable = 'loading' | 'journal' | 'shutting_down' | 'standby'

export type Partition = ReturnType<typeof createPartition>

export type PartitionOptions = {
  readonly clock: Clock
  readonly log: Logger
  readonly open: OpenJournal
  readonly limits: QueueLimits
  /** How many there are. */
  readonly partitions: number
  readonly ackFlushMs: number
  readonly random: () => number
  /** Makes the leases of this process unique. */
  readonly leasePrefix: () => string
  /** Sends a delivery to its consumer. */
  readonly send: (delivery: Delivery) => void
  /** Ends every burst of `send`. */
  readonly sent: () => void
  /** The engine is gone: consumers must connect again. */
  readonly onLost: (consumers: Iterable<Consumer>) => void
  readonly onLoading: () => void
  readonly onLoaded: (partition: Partition) => void
  readonly onGroup: (changes: number, seconds: number) => void
  readonly onError: (operation: 'open' | 'write' | 'full') => void
}

/** How long submissions are refused after the disk was full, before the next one may try. */
const FULL_MS = 1_000
const REOPEN_MS = 500
/** A journal that does not answer for so long makes the queue unavailable, and after the second time it is given up. */
const STALLED_MS = 5_000
const HANG_MS = 30_000
const HAND_OVER_MS = 5_000
const TIMER_MS_MAX = 2 ** 30
/** Topics served in one turn of the event loop. */
const TOPICS_OF_TURN = 16
/** Done and update records that are written at once, without waiting for the flush. */
const FLUSH_CHANGES = 1_000

export function createPartition(number: number, options: PartitionOptions) {
  return {
    number,
    options,
    /** Undefined while it is not loaded. */
    queue: undefined as Queue | undefined,
    journal: undefined as Journal | undefined,
    unavailable: 'loading' as Unavailable | undefined,
    /** Address of the process that owns it, while this one stands by and knows it. */
    owner: undefined as string | undefined,
    /** Until when submissions are refused because the disk is full, monotonic. */
    fullUntil: 0,
    /** When the group that is being written was handed over, monotonic. */
    writingSince: 0,
    /** How long the last groups took, the last one counting most. */
    groupMs: 0,
    /** Backups and compactions that run: groups wait for as long as they take. */
    copies: 0,
    /** What waits for the next group to be written. */
    flush: undefined as { readonly isUrgent: boolean; readonly cancel: () => void } | undefined,
    isDispatching: false,
    alarm: undefined as NodeJS.Timeout | undefined,
    alarmAt: Number.POSITIVE_INFINITY,
    /** Ids continue when the engine is loaded again. */
    nextConsumer: number + 1,
    /** Ends the use of the journal that is open. */
    release: (): void => undefined,
    /** Aborted when the partition stops: it ends the wait for the journal. */
    stopping: new AbortController(),
    /** Opens, loads and releases the journal until the partition stops. */
    running: Promise.resolve(),
  }
}

export function momentOf({ options: { clock } }: Partition): Moment {
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() }
}

/**
 * Opens the journal and loads it, or stands by while another process owns it. In both cases it continues in the
 * background: a lost journal is opened again.
 *
 * @throws when the first attempt fails
 */
export async function startPartition(partition: Partition): Promise<void> {
  const first = Promise.withResolvers<void>()
  partition.running = run(partition, first)
  await first.promise
}

type First = { readonly resolve: () => void; readonly reject: (why: unknown) => void }

/** One journal after the other, never two at a time. */
async function run(partition: Partition, first: First): Promise<void> {
  const { options, stopping } = partition
  let isFirst = true
  const started = () => {
    isFirst = false
    first.resolve()
  }
  while (!stopping.signal.aborted) {
    try {
      await useJournal(partition, started)
    } catch (error) {
      if (stopping.signal.aborted) break
      if (isFirst) return first.reject(error)
      options.onError('open')
      options.log.error({ partition: partition.number, err: error }, 'opening the queue journal failed')
      partition.unavailable = 'journal'
      partition.owner = undefined
    }
    if (!stopping.signal.aborted) await new Promise((resolve) => setTimeout(resolve, REOPEN_MS))
  }
  first.resolve()
}

/** From opening a journal to its end. */
async function useJournal(partition: Partition, onStarted: () => void): Promise<void> {
  const { options, stopping } = partition
  const released = Promise.withResolvers<void>()
  let opened: Journal | undefined
  let early: Error | undefined
  const journal = await options.open({
    onLost: (why) => {
      if (opened === undefined) early = why
      else lose(partition, opened, why)
    },
    onStandby: (owner) => {
      if (stopping.signal.aborted) return
      if (partition.unavailable !== 'standby' || partition.owner !== owner)
        options.log.info({ partition: partition.number, owner }, 'another process owns the queue')
      partition.unavailable = 'standby'
      partition.owner = owner
      onStarted()
    },
    signal: stopping.signal,
  })
  opened = journal
  try {
    if (early !== undefined) throw early
    if (stopping.signal.aborted) return
    partition.journal = journal
    partition.release = released.resolve
    partition.unavailable = 'loading'
    partition.owner = undefined
    options.onLoading()
    const queue = await loadQueue(partition, journal)
    // It may have been lost, or be unwanted, since the last row was read.
    if (partition.journal !== journal || stopping.signal.aborted) return
    partition.queue = queue
    partition.unavailable = undefined
    options.onLoaded(partition)
    runSoon(partition)
    onStarted()
    await released.promise
  } finally {
    if (partition.journal === journal) dropQueue(partition)
    await journal.close().catch((error: unknown) => options.log.warn({ err: error }, 'closing a queue journal failed'))
  }
}

async function loadQueue(partition: Partition, journal: Journal): Promise<Queue> {
  const { options, stopping } = partition
  const { limits, random, partitions } = options
  const ids = { nextConsumer: partition.nextConsumer, consumerStride: partitions }
  const queue = createQueue({ limits, random, leasePrefix: options.leasePrefix(), ...ids }, momentOf(partition))
  const started = options.clock.monotonicMs()
  let jobs = 0
  const byNumber = new Map<number, Topic>()
  for await (const batch of journal.load()) {
    const now = momentOf(partition)
    for (const stored of batch) jobs += restore(queue, byNumber, stored, now)
    if (stopping.signal.aborted) break
  }
  const seconds = (options.clock.monotonicMs() - started) / 1000
  options.log.info({ partition: partition.number, topics: queue.topics.size, jobs, seconds }, 'queue loaded')
  return queue
}

/** @returns number of jobs */
function restore(queue: Queue, topics: Map<number, Topic>, stored: Stored, now: Moment): number {
  if (stored.kind === 'nextTopic') {
    queue.nextTopicNumber = Math.max(queue.nextTopicNumber, stored.number)
    return 0
  }
  if (stored.kind === 'topic') {
    topics.set(stored.topic.number, restoreTopic(queue, stored.topic, now))
    return 0
  }
  if (stored.kind === 'finished') {
    const topic = topics.get(stored.topicNumber)
    if (topic !== undefined) restoreFinished(queue, topic, stored.id, stored.at, now)
    return 0
  }
  let jobs = 0
  for (const job of stored.jobs) {
    const topic = topics.get(job.topicNumber)
    // A row of a deleted topic, which the journal removes in the background. Its key is not used again until then.
    if (topic === undefined) queue.nextSeq = Math.max(queue.nextSeq, job.seq + 1)
    else {
      restoreJob(queue, topic, job, now)
      jobs++
    }
  }
  return jobs
}

/**
 * The journal cannot be used any more: nothing is guessed. In the same moment nothing is written or delivered any more.
 * Waiting requests learn that their outcome is unknown, consumers are sent away, and the journal is opened and loaded
 * again.
 */
function lose(partition: Partition, journal: Journal, why: Error): void {
  const { options, stopping } = partition
  if (partition.journal !== journal) return
  if (!stopping.signal.aborted) {
    options.log.error({ partition: partition.number, err: why }, 'queue journal lost')
    options.onError('write')
  }
  dropQueue(partition)
}

/** Leaves service with the journal: it is closed, and perhaps another process takes over. */
function dropQueue(partition: Partition): void {
  const { options, queue, stopping } = partition
  partition.journal = undefined
  partition.queue = undefined
  // A process that ends does not begin again.
  if (partition.unavailable === 'shutting_down') stopping.abort()
  else partition.unavailable = 'journal'
  clearTimers(partition)
  if (queue !== undefined) {
    partition.nextConsumer = queue.nextConsumer
    failGroups(queue)
    options.onLost(queue.consumers.values())
  }
  partition.release()
}

// --- Running ---

/** After any change of the engine: writes what is to be stored, delivers what can be, and sets the next alarm. */
export function runSoon(partition: Partition): void {
  const { queue } = partition
  if (queue === undefined) return
  planFlush(partition, queue)
  planDispatch(partition, queue)
  // The turn that dispatches sets the alarm, once for all changes before it.
  if (!partition.isDispatching) planAlarm(partition, queue)
}

function planFlush(partition: Partition, queue: Queue): void {
  const [group] = queue.groups
  if (group === undefined || queue.writing !== undefined) return
  const isUrgent = group.isUrgent || queue.groups.length > 1 || group.changes.length >= FLUSH_CHANGES
  if (partition.flush !== undefined && (partition.flush.isUrgent || !isUrgent)) return
  partition.flush?.cancel()
  planWrite(partition, queue, isUrgent, isUrgent ? 0 : partition.options.ackFlushMs)
}

/** @param delayMs 0: with the next turn of the event loop, so that the requests of this one share a group */
function planWrite(partition: Partition, queue: Queue, isUrgent: boolean, delayMs: number): void {
  const run = () => {
    partition.flush = undefined
    void writeGroup(partition, queue)
  }
  if (delayMs === 0) {
    const immediate = setImmediate(run)
    partition.flush = { isUrgent, cancel: () => clearImmediate(immediate) }
  } else {
    const timeout = setTimeout(run, delayMs)
    partition.flush = { isUrgent, cancel: () => clearTimeout(timeout) }
  }
}

async function writeGroup(partition: Partition, queue: Queue): Promise<void> {
  const { journal, options } = partition
  if (journal === undefined || partition.queue !== queue) return
  const group = takeGroup(queue)
  if (group === undefined) return
  partition.writingSince = options.clock.monotonicMs()
  const hang = setInterval(() => {
    if (partition.copies === 0) lose(partition, journal, new Error(`no answer for ${HANG_MS / 1000} s`))
  }, HANG_MS)
  try {
    await writeOrRefuse(partition, queue, journal, group)
  } catch (error) {
    if (error instanceof JournalFullError && partition.queue === queue) return retryLater(partition, queue)
    return lose(partition, journal, error as Error)
  } finally {
    clearInterval(hang)
  }
  // Lost while it was being written: its waiters know.
  if (partition.queue !== queue) return
  const ms = options.clock.monotonicMs() - partition.writingSince
  partition.groupMs = (partition.groupMs + ms) / 2
  options.onGroup(group.changes.length, ms / 1000)
  commitGroup(queue, momentOf(partition))
  runSoon(partition)
}

/** On a full disk growth is refused, and what frees space is written all the same. */
async function writeOrRefuse(partition: Partition, queue: Queue, journal: Journal, group: Group): Promise<void> {
  try {
    await journal.write(group.changes)
  } catch (error) {
    if (!(error instanceof JournalFullError) || partition.queue !== queue) throw error
    partition.fullUntil = partition.options.clock.monotonicMs() + FULL_MS
    partition.options.onError('full')
    partition.options.log.error({ partition: partition.number, err: error }, 'no room for the queue journal')
    refuseGrowth(queue, momentOf(partition))
    if (group.changes.length > 0) await journal.write(group.changes)
  }
}

/** Not even deletions have room: they are kept in memory and tried again. */
function retryLater(partition: Partition, queue: Queue): void {
  putGroupBack(queue)
  planWrite(partition, queue, true, FULL_MS)
}

/** Whether the disk was full a moment ago: submissions are refused without trying. */
export function isFull(partition: Partition): boolean {
  return partition.options.clock.monotonicMs() < partition.fullUntil
}

/** How long jobs that are submitted now would wait until they are stored, judged by the groups before. */
export function expectedWaitMs(partition: Partition): number {
  const { queue, groupMs } = partition
  if (queue?.writing === undefined) return 0
  return Math.max(groupMs, writingMs(partition)) + queue.groups.length * groupMs
}

function writingMs({ queue, writingSince, options }: Partition): number {
  return queue?.writing === undefined ? 0 : options.clock.monotonicMs() - writingSince
}

/** Why a partition does not accept jobs; a journal that neither works nor fails is one that does not. */
export function faultOf(partition: Partition): Unavailable | undefined {
  const isStalled = partition.copies === 0 && writingMs(partition) > STALLED_MS
  return partition.unavailable ?? (isStalled ? 'journal' : undefined)
}

/** Runs a backup or a compaction of the journal. */
export async function copyJournal(partition: Partition, run: (journal: Journal) => Promise<void>): Promise<void> {
  if (partition.journal === undefined) return
  partition.copies++
  try {
    await run(partition.journal)
  } finally {
    partition.copies--
    // What waited for it begins now.
    partition.writingSince = partition.options.clock.monotonicMs()
  }
}

function planDispatch(partition: Partition, queue: Queue): void {
  if (partition.isDispatching || queue.runnable.length === 0) return
  partition.isDispatching = true
  setImmediate(() => {
    partition.isDispatching = false
    // Loaded again since: that queue waits for this turn, too.
    if (partition.queue !== queue) return runSoon(partition)
    const { send, sent } = partition.options
    const now = momentOf(partition)
    for (let n = 0; n < TOPICS_OF_TURN && dispatch(queue, now, send); n++);
    sent()
    runSoon(partition)
    planAlarm(partition, queue)
  })
}

function planAlarm(partition: Partition, queue: Queue): void {
  const now = momentOf(partition)
  const waitMs = Math.min(nextWakeMs(queue, now), TIMER_MS_MAX)
  const at = now.monotonicMs + waitMs
  if (partition.alarm !== undefined && partition.alarmAt <= at) return
  clearTimeout(partition.alarm)
  partition.alarmAt = at
  partition.alarm = setTimeout(() => {
    partition.alarm = undefined
    if (partition.queue !== queue) return
    advance(queue, momentOf(partition))
    runSoon(partition)
  }, Math.ceil(waitMs))
}

function clearTimers(partition: Partition): void {
  partition.flush?.cancel()
  partition.flush = undefined
  clearTimeout(partition.alarm)
  partition.alarm = undefined
}

/** Resolves when a group ended. */
export function outcomeOf(group: Group, isGrowth: boolean): Promise<GroupOutcome> {
  return new Promise((resolve) => waitForGroup(group, isGrowth, resolve))
}

/** Ends the wait for the journal of a partition that does not serve: it must not take over while this process ends. */
export function stopWaiting(partition: Partition): void {
  if (partition.queue === undefined) partition.stopping.abort()
}

/** Writes what is left and closes the journal. Consumers must have been disconnected. */
export async function stopPartition(partition: Partition): Promise<void> {
  await writeAll(partition)
  partition.unavailable = 'shutting_down'
  dropQueue(partition)
  await partition.running
}

/** Writes what is left within a while, and lets another process own the partition; this one stands by. */
export async function handOver(partition: Partition): Promise<void> {
  const { queue } = partition
  await writeForAWhile(partition)
  // Lost meanwhile, or stopped.
  if (queue === undefined || partition.queue !== queue) return
  dropQueue(partition)
  if (!partition.stopping.signal.aborted) partition.unavailable = 'standby'
}

/** On a full disk nothing waits for it: what was not stored is delivered again. */
export async function writeForAWhile(partition: Partition): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, HAND_OVER_MS)
  })
  await Promise.race([writeAll(partition), late])
  clearTimeout(timer)
}

async function writeAll(partition: Partition): Promise<void> {
  const { queue } = partition
  while (queue !== undefined && partition.queue === queue && (queue.groups.length > 0 || queue.writing !== undefined)) {
    const group = queue.groups.at(-1) ?? queue.writing
    if (group === undefined) break
    group.isUrgent = true
    runSoon(partition)
    if ((await outcomeOf(group, false)) === 'unknown') break
  }
}

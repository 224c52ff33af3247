/**
 * Live tails: what happens to the jobs of a topic, kept while it is read. Bounded in every way: the newest events
 * of a tail, so many a second, so many tails. Readers poll with a cursor, so a slow one holds up nothing: it learns how
 * many events it missed. Pure.
 */
import { JOB_LIMITS, type TailEvent, type TailEventKind } from '@vacancy/shared/contract'
import { createRing, ringAt, ringPush, ringShift } from './containers.ts'
import type { Job, Moment, NotedEvent, Tail, Topic } from './job.ts'
import type { Queue } from './state.ts'

/** Without a reader for this long a tail ends. */
const IDLE_MS = 15_000
/** The one that was read longest ago makes room. */
const TAILS_MAX = 100

/** To be called only for a topic with a tail: this is on the way of each job. */
export function noteTail(
  topic: Topic,
  event: TailEventKind,
  job: Job,
  { consumer = '', error = '' }: { readonly consumer?: string; readonly error?: string },
  now: Moment,
): void {
  const { tail } = topic
  if (tail === undefined) return
  tail.last++
  const { tailPerSecond, tailKept } = JOB_LIMITS
  const earned = ((now.monotonicMs - tail.allowanceAt) / 1000) * tailPerSecond
  tail.allowance = Math.min(tailPerSecond, tail.allowance + earned)
  tail.allowanceAt = now.monotonicMs
  if (tail.allowance < 1) return
  tail.allowance--
  const { id, data, flags, bytes, failures } = job
  ringPush(tail.events, {
    n: tail.last,
    at: now.wallMs,
    event,
    job: { id, data, flags, bytes },
    failures,
    consumer,
    error,
  })
  if (tail.events.length > tailKept) ringShift(tail.events)
}

/** Ends tails that no one reads; to be called every few seconds. */
export function dropIdleTails(queue: Queue, { monotonicMs }: Moment): void {
  for (const topic of queue.tailed)
    if (topic.tail === undefined || topic.isGone || monotonicMs - topic.tail.readAt > IDLE_MS) endTail(queue, topic)
}

export function endTail(queue: Queue, topic: Topic): void {
  topic.tail = undefined
  queue.tailed.delete(topic)
}

type TailPage = { readonly cursor: string; readonly events: TailEvent[]; readonly skipped: number }

/** Events since the cursor of the last page; begins to note them when no one did. @param head of a payload, to be shown */
export function readTail(
  queue: Queue,
  topic: Topic,
  cursor: string | undefined,
  head: (job: NotedEvent['job']) => string | null,
  now: Moment,
): TailPage {
  const tail = topic.tail ?? beginTail(queue, topic, now)
  tail.readAt = now.monotonicMs
  // The end of the set was read last.
  queue.tailed.delete(topic)
  queue.tailed.add(topic)
  const [epoch, number = ''] = cursor?.split('.') ?? []
  const known = epoch === tail.epoch && /^\d+$/.test(number) ? Math.min(Number(number), tail.last) : undefined
  const events: TailEvent[] = []
  for (let index = tail.events.length - 1; index >= 0; index--) {
    const noted = ringAt(tail.events, index)
    if (known !== undefined && noted.n <= known) break
    events.push(eventView(noted, head))
  }
  const skipped = known === undefined ? 0 : tail.last - known - events.length
  return { cursor: `${tail.epoch}.${tail.last}`, events: events.reverse(), skipped }
}

function beginTail(queue: Queue, topic: Topic, { wallMs, monotonicMs }: Moment): Tail {
  const [oldest] = queue.tailed
  if (queue.tailed.size >= TAILS_MAX && oldest !== undefined) endTail(queue, oldest)
  const tail: Tail = {
    epoch: wallMs.toString(36),
    events: createRing(),
    last: 0,
    allowance: JOB_LIMITS.tailPerSecond,
    allowanceAt: monotonicMs,
    readAt: monotonicMs,
  }
  topic.tail = tail
  return tail
}

function eventView(noted: NotedEvent, head: (job: NotedEvent['job']) => string | null): TailEvent {
  const { n, at, event, job, failures, consumer, error } = noted
  return {
    n,
    at: new Date(at).toISOString(),
    event,
    id: job.id,
    consumer: consumer === '' ? null : consumer,
    error: error === '' ? null : error,
    failures,
    bytes: job.bytes,
    head: head(job),
  }
}

/** A queue with its partitions, as its interfaces use it. */
import { assert } from '@vacancy/shared'
import type { RouteRequest } from '@vacancy/shared/api/route'
import type { QueueErrorBody, QueueErrorCode, TopicConfig } from '@vacancy/shared/contract'
import type { Tracing } from '@vacancy/shared/node'
import type { Logger } from 'pino'
import type { Moment, Topic } from './job.ts'
import type { QueueMetrics } from './metrics.ts'
import { expectedWaitMs, isFull, momentOf, type Partition } from './partition.ts'
import { type Group, type GroupOutcome, type Queue, waitForGroup } from './state.ts'
import type { QueueAccess } from './tokens.ts'

export type QueueSettings = {
  readonly requestBytesMax: number
  readonly jobsPerRequestMax: number
  readonly jobBytesMax: number
  readonly producerResponse: 'json' | 'empty'
  readonly producerWaitMs: number
  readonly readTimeoutMs: number
  readonly topicCreateRole: 'producer' | 'admin'
  readonly topicDefaults: TopicConfig
  readonly wsReadBytesMax: number
  readonly wsWriteTimeoutMs: number
  readonly wsInitTimeoutMs: number
  readonly wsPingMs: number
  readonly wsDeadMs: number
  readonly wsBufferedBytesMax: number
  readonly wsErrorsMax: number
  readonly heartbeatMs: number
  readonly consumersMax: number
}

export type QueueServer = {
  readonly settings: QueueSettings
  readonly log: Logger
  readonly access: QueueAccess
  readonly metrics: QueueMetrics
  /** Undefined: no spans are recorded. */
  readonly tracing?: Tracing | undefined
  readonly partitions: readonly Partition[]
}

/** A change that an operator made, for the audit log. */
export type QueueAudit = (request: RouteRequest<never>, action: string, target: string, detail: string) => Promise<void>

/** The detail of an audit entry, with the reason that the author gave. */
export function withReason(detail: string, { reason = '' }: { readonly reason?: string | undefined }): string {
  return reason.trim() === '' ? detail : `${detail}. Reason: ${reason.trim()}`
}

/** A partition that serves. */
export type Serving = { readonly partition: Partition; readonly queue: Queue; readonly now: Moment }

/** Which partition a topic belongs to: FNV-1a of its name, so that every process agrees. */
function partitionOf({ partitions }: Pick<QueueServer, 'partitions'>, topic: string): Partition {
  let hash = 0x811c9dc5
  if (partitions.length > 1)
    for (let n = 0; n < topic.length; n++) hash = Math.imul(hash ^ topic.charCodeAt(n), 0x01000193)
  const partition = partitions[(hash >>> 0) % partitions.length]
  assert(partition !== undefined, 'a queue has a partition')
  return partition
}

/** @throws QueueError when the partition of the topic does not serve here */
export function servingOf(server: QueueServer, topic: string): Serving {
  return servingPartition(partitionOf(server, topic))
}

export function servingPartition(partition: Partition): Serving {
  const { queue, unavailable, owner } = partition
  if (queue !== undefined && unavailable === undefined) return { partition, queue, now: momentOf(partition) }
  if (unavailable === 'standby')
    throw new QueueError(
      'not_owner',
      'another process owns this part of the queue',
      owner === undefined ? {} : { owner },
    )
  throw new QueueError('service_unavailable', UNAVAILABLE[unavailable ?? 'loading'])
}

const UNAVAILABLE = {
  loading: 'the queue is being loaded',
  journal: 'the journal of the queue is not available; see the log of the server',
  shutting_down: 'the server is shutting down',
} as const

/** @throws QueueError when it does not exist */
export function topicOf({ queue }: Serving, name: string): Topic {
  const topic = queue.topics.get(name)
  if (topic === undefined) throw new QueueError('topic_not_found', `topic "${name}" does not exist`)
  return topic
}

/**
 * Waits until a group is durable.
 *
 * @param isGrowth whether a full disk refuses it
 * @throws QueueError when it is not
 */
export async function durable(outcomes: readonly Promise<GroupOutcome>[]): Promise<void> {
  for (const outcome of await Promise.all(outcomes)) {
    if (outcome === 'full') throw diskFull()
    if (outcome === 'unknown') throw notStored('the journal failed while storing')
  }
}

/** The same of a submission, without a promise for each group. */
export function durableGroups(groups: readonly Group[], onFull: () => void): Promise<void> {
  if (groups.length === 0) return Promise.resolve()
  return new Promise((resolve, reject) => {
    let left = groups.length
    const end = (error: QueueError | undefined) => {
      left = 0
      if (error === undefined) return resolve()
      if (error.code === 'queue_full') onFull()
      reject(error)
    }
    const onEnd = (outcome: GroupOutcome) => {
      if (left === 0) return
      if (outcome === 'full') end(diskFull())
      else if (outcome === 'unknown') end(notStored('the journal failed while storing'))
      else if (left > 1) left--
      else end(undefined)
    }
    for (const group of groups) waitForGroup(group, true, onEnd)
  })
}

function notStored(why: string): QueueError {
  return new QueueError('outcome_unknown', `${why}; repeat the request with the same ids`)
}

/** @param onFull called before the refusal, to count it */
export function refuseFullDisk(partition: Partition, onFull: () => void = () => undefined): void {
  if (!isFull(partition)) return
  onFull()
  throw diskFull()
}

/** What could not be stored in time is refused before it is taken. @throws QueueError */
export function refuseBusy(partition: Partition, waitMs: number, onBusy: () => void): void {
  if (expectedWaitMs(partition) <= waitMs) return
  onBusy()
  throw new QueueError('queue_full', `the journal is behind: storing would take longer than ${waitMs} ms`, {
    retryAfterMs: 1_000,
  })
}

function diskFull(): QueueError {
  return new QueueError('queue_full', 'the disk of the queue is full', { retryAfterMs: 1_000 })
}

/** An error of the producer and consumer interfaces. */
export class QueueError extends Error {
  override readonly name = 'QueueError'
  readonly code: QueueErrorCode
  readonly more: Omit<QueueErrorBody, 'error' | 'message'>

  constructor(code: QueueErrorCode, message: string, more: Omit<QueueErrorBody, 'error' | 'message'> = {}) {
    super(message)
    this.code = code
    this.more = more
  }
}

/** A request on its way through a component, and the order in which requests reach their deadlines. */

import type { Hop, Link } from './hops.ts'
import type { Inbound } from './inbound.ts'
import type { Lane, LaneEntry } from './lanes.ts'

export type Request = {
  readonly inbound: Inbound
  /** The client's correlation id. */
  readonly id: number
  /** The frame: [start, end) with its envelope, its bare frame from `inner` on. */
  readonly bytes: Buffer
  readonly start: number
  readonly inner: number
  readonly end: number
  /** '' for a frame without an envelope. */
  readonly segment: string
  readonly command: string
  readonly isWrite: boolean
  /** Monotonic. */
  readonly receivedMs: number
  readonly deadlineMs: number
  state: 'held' | 'sent' | 'over'
  tries: number
  /** A held request is not tried before. */
  notBeforeMs: number
  link: Link | undefined
  /** Its correlation id on that link. */
  linkId: number
  /** The hop of the last try. */
  lastHop: Hop | undefined
  /** The reply that refused it last, passed on if no further try follows. */
  refusal: Buffer | undefined
  wasRechecked: boolean
  /** Writes only. */
  lane: WriteLane | undefined
  entry: LaneEntry<Request, Link> | undefined
  before: Request | undefined
  after: Request | undefined
}

export type WriteLane = Lane<Request, Link>

/** Requests with the same time limit, the oldest first: a doubly linked list, so that any of them leaves at once. */
export type DeadlineQueue = { readonly limitMs: number; first: Request | undefined; last: Request | undefined }

export function createDeadlineQueue(limitMs: number): DeadlineQueue {
  return { limitMs, first: undefined, last: undefined }
}

export function enqueue(queue: DeadlineQueue, request: Request): void {
  request.before = queue.last
  if (queue.last) queue.last.after = request
  else queue.first = request
  queue.last = request
}

export function dequeue(queue: DeadlineQueue, request: Request): void {
  const { before, after } = request
  if (before) before.after = after
  else queue.first = after
  if (after) after.before = before
  else queue.last = before
  request.before = undefined
  request.after = undefined
}

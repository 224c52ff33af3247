/** The order in which requests reach their deadlines. */

import type { Request } from './state.ts'

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

/**
 * Simulated time: events run one at a time, ordered by (time, number) (docs/design/testing.md#simulation).
 *
 * A binary heap over plain objects. A cancelled event stays in it until its time and is then skipped, so that
 * cancelling is free.
 */

import { assert } from '@vacancy/shared'

export type ScheduledEvent = {
  readonly atUs: number
  readonly number: number
  /** Undefined after it ran or was cancelled. */
  run: (() => void) | undefined
}

export type Scheduler = {
  /** Microseconds since the start of the run. */
  nowUs: number
  /** Number of executed events. */
  ran: number
  number: number
  readonly heap: ScheduledEvent[]
}

export function createScheduler(): Scheduler {
  return { nowUs: 0, ran: 0, number: 0, heap: [] }
}

/** Schedules `run`. A time in the past means now, after the events that are already due. */
export function scheduleAt(scheduler: Scheduler, atUs: number, run: () => void): ScheduledEvent {
  const event = { atUs: Math.max(Math.floor(atUs), scheduler.nowUs), number: scheduler.number++, run }
  const { heap } = scheduler
  let at = heap.length
  heap.push(event)
  while (at > 0) {
    const parent = (at - 1) >>> 1
    const above = heap[parent] as ScheduledEvent
    if (!isEarlier(event, above)) break
    heap[at] = above
    at = parent
  }
  heap[at] = event
  return event
}

export function scheduleIn(scheduler: Scheduler, delayUs: number, run: () => void): ScheduledEvent {
  return scheduleAt(scheduler, scheduler.nowUs + delayUs, run)
}

export function cancelEvent(event: ScheduledEvent): void {
  event.run = undefined
}

/** Runs the next event. @returns false when there is none before `endUs` */
export function runNext(scheduler: Scheduler, endUs: number): boolean {
  for (;;) {
    const next = scheduler.heap[0]
    if (next === undefined || next.atUs > endUs) return false
    removeFirst(scheduler.heap)
    const { run } = next
    if (!run) continue
    assert(next.atUs >= scheduler.nowUs, 'time does not run backwards')
    scheduler.nowUs = next.atUs
    scheduler.ran++
    next.run = undefined
    run()
    return true
  }
}

function removeFirst(heap: ScheduledEvent[]): void {
  const last = heap.pop() as ScheduledEvent
  const { length } = heap
  if (length === 0) return
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= length) break
    const right = child + 1
    if (right < length && isEarlier(heap[right] as ScheduledEvent, heap[child] as ScheduledEvent)) child = right
    const lower = heap[child] as ScheduledEvent
    if (!isEarlier(lower, last)) break
    heap[at] = lower
    at = child
  }
  heap[at] = last
}

function isEarlier(a: ScheduledEvent, b: ScheduledEvent): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.number < b.number)
}

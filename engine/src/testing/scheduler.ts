/**
 * Simulated time: events in order of (time, number), one at a time (docs/design/testing.md#simulation).
 *
 * A binary heap over plain objects. An event that was cancelled stays in it until its time comes and is then passed
 * over, so that cancelling costs nothing.
 */

import { assert } from '@vacancy/shared'

export type ScheduledEvent = {
  readonly atUs: number
  readonly number: number
  /** Undefined once it ran or was cancelled. */
  run: (() => void) | undefined
}

export type Scheduler = {
  /** Microseconds since the run began. */
  nowUs: number
  /** Events that ran. */
  ran: number
  number: number
  readonly heap: ScheduledEvent[]
}

export function createScheduler(): Scheduler {
  return { nowUs: 0, ran: 0, number: 0, heap: [] }
}

/** Has `run` called once the time has come; in the past means now, behind what is due now already. */
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
    assert(next.atUs >= scheduler.nowUs, 'time does not go back')
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

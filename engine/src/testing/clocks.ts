/**
 * The clocks of one node: a monotonic one that runs too fast or too slow, a wall clock that is wrong and jumps
 * (docs/design/testing.md#simulation). Both outlive the process; the monotonic one belongs to the machine.
 */

import type { Clock } from '@vacancy/shared'
import type { Scheduler } from './scheduler.ts'

/** Simulated time begins here, in UTC. */
export const EPOCH_MS = 1_768_478_400_000

export type NodeClock = {
  readonly clock: Clock
  /** Of true time; 1 ± 0.2. */
  readonly rate: number
  /** Wall clock minus true time, beside the drift. */
  offsetMs: number
  /** The greatest that offset has been. */
  offsetMostMs: number
  /** For how long the machine was suspended: its monotonic clock stood still. */
  suspendedMs: number
  /** When it last resumed, in true time. */
  resumedUs: number
}

export function createClock(scheduler: Scheduler, rate: number, offsetMs: number, bootMs: number): NodeClock {
  let latestMs = 0
  const node: NodeClock = {
    rate,
    offsetMs,
    offsetMostMs: offsetMs,
    suspendedMs: 0,
    resumedUs: Number.NEGATIVE_INFINITY,
    clock: {
      monotonicMs: () => {
        latestMs = Math.max(latestMs, bootMs + (scheduler.nowUs / 1000) * rate - node.suspendedMs)
        return latestMs
      },
      wallMs: () => Math.floor(EPOCH_MS + (scheduler.nowUs / 1000) * rate + node.offsetMs),
    },
  }
  return node
}

/** Steps the wall clock to another offset from true time. */
export function stepClock(node: NodeClock, offsetMs: number): void {
  node.offsetMs = offsetMs
  node.offsetMostMs = Math.max(node.offsetMostMs, offsetMs)
}

/** Microseconds of true time until the clock has moved on by so much. */
export function trueUs(node: NodeClock, ms: number): number {
  return Math.max(0, (ms * 1000) / node.rate)
}

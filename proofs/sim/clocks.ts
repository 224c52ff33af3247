/**
 * The clocks of one simulated machine: a monotonic clock with drift, and a wall clock with an offset that jumps
 * (docs/design/testing.md#simulation). Both outlive the process.
 */

import type { Clock } from '@vacancy/shared'
import type { Scheduler } from '@vacancy/testkit/scheduler'

/** Start of simulated time of most runs, in UTC. */
export const EPOCH_MS = 1_768_478_400_000

export type NodeClock = {
  readonly clock: Clock
  /** Rate relative to true time; 1 ± 0.2. */
  readonly rate: number
  /** Wall clock minus true time, without the drift. */
  offsetMs: number
  /** The largest offset so far. */
  offsetMostMs: number
  /** Total time that the machine was suspended, during which its monotonic clock stopped. */
  suspendedMs: number
  /** When it last resumed, in true time. */
  resumedUs: number
}

export function createClock(
  scheduler: Scheduler,
  epochMs: number,
  rate: number,
  offsetMs: number,
  bootMs: number,
): NodeClock {
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
      wallMs: () => Math.floor(epochMs + (scheduler.nowUs / 1000) * rate + node.offsetMs),
    },
  }
  return node
}

/** Sets the offset of the wall clock from true time. */
export function stepClock(node: NodeClock, offsetMs: number): void {
  node.offsetMs = offsetMs
  node.offsetMostMs = Math.max(node.offsetMostMs, offsetMs)
}

/** Microseconds of true time until the clock has advanced by this much. */
export function trueUs(node: NodeClock, ms: number): number {
  return Math.max(0, (ms * 1000) / node.rate)
}

/**
 * Adaptive spinning: a thread looks for the next ring before it sleeps, while rings come soon. To be woken takes a third
 * of the time of a small write.
 */

import { type Bell, rings } from '../pipe.ts'

/** A client on the same machine sends its next request that soon after a reply. */
const SPIN_MS = 0.25
/** One wait without a ring in time takes as much trust as two with one give. */
const TRUST_MAX = 8
const MISS = 2
/** Without trust one of so many waits spins, to learn whether rings come soon again. */
const TRY_EVERY = 32

/** Whether such waits have ended in time lately. */
export type Spinner = { trust: number; waits: number }

export function createSpinner(): Spinner {
  return { trust: 0, waits: 0 }
}

export function mayTry(spinner: Spinner): boolean {
  spinner.waits++
  return spinner.trust > 0 || spinner.waits % TRY_EVERY === 0
}

export function noteWait(spinner: Spinner, isInTime: boolean): void {
  spinner.trust = isInTime ? Math.min(TRUST_MAX, spinner.trust + 1) : Math.max(0, spinner.trust - MISS)
}

/** @returns whether there were other rings than `heard` in time */
export function untilRing(bell: Bell, heard: number, endMs: number): boolean {
  while (rings(bell) === heard) if (performance.now() > endMs) return false
  return true
}

/** @returns whether there were other rings than `heard` soon */
export function spin(spinner: Spinner, bell: Bell, heard: number): boolean {
  if (!mayTry(spinner)) return false
  const isInTime = untilRing(bell, heard, performance.now() + SPIN_MS)
  noteWait(spinner, isInTime)
  return isInTime
}

/** The day of a shard: a replicated setting moves its beginning away from midnight UTC. */

import { dayOf } from '@vacancy/shared'
import { STATE } from './layout.ts'
import { type Memory, state } from './store.ts'

const MINUTE_MS = 60_000

/** From when to when a day may begin, in minutes after midnight UTC: midnight of any time zone, and the hours after it. */
export const DAY_BEGINS = { min: -840, max: 1_200 } as const

/** The day that the shard has at a time in milliseconds. */
export function dayAt(memory: Memory, timeMs: number): number {
  return dayOf(timeMs - (state(memory, STATE.dayBeginsMinutes) | 0) * MINUTE_MS)
}

/**
 * The clock's part of a node: the daily task at maintenance_hour, and the watch on the number of cores (platform.md
 * §7.13, §7.14). What is decided goes through the log like any write; here is only when to propose it.
 */

import { dayOf } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import type { ReplicaStatus } from './status.ts'

const LOOK_MS = 30_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const CORES_LOOK_MS = 1_000
/** How often the same other number must be seen: a sample may fall into a change. */
const CORES_SAMPLES = 2

/**
 * Proposes maintenance when the hour has come and the last one was before today; at start when one was missed.
 *
 * @returns stops it
 */
export function startMaintenance(options: {
  /** Hour of the day, UTC. */
  readonly hour: number
  readonly wallMs: () => number
  readonly status: () => ReplicaStatus | undefined
  readonly maintain: () => void
}): () => void {
  const look = () => {
    const status = options.status()
    if (status && isDue(options.wallMs(), options.hour, status.lastMaintenanceDay)) options.maintain()
  }
  const timer = setInterval(look, LOOK_MS)
  const first = setTimeout(look, 1_000)
  return () => {
    clearInterval(timer)
    clearTimeout(first)
  }
}

/**
 * Whether maintenance is due: today's hour has come and it was not done today, or a whole day's was missed.
 *
 * @param lastDay day of the last maintenance, 0 for never
 */
export function isDue(wallMs: number, hour: number, lastDay: number): boolean {
  const today = dayOf(wallMs)
  if (lastDay >= today) return false
  const hasHourCome = wallMs - today * DAY_MS >= hour * HOUR_MS
  return hasHourCome || lastDay < today - 1
}

/** Looks at the number of cores each second; a change seen twice in a row is told once. @returns stops it */
export function watchCores(options: {
  /** What is compared: parallelism and number of processors. */
  readonly sample: () => string
  readonly isActive: boolean
  readonly log: Log
  readonly onChange: () => void
  readonly lookMs?: number
}): () => void {
  const before = options.sample()
  let seen = ''
  let times = 0
  const timer = setInterval(() => {
    const now = options.sample()
    times = now !== before && now === seen ? times + 1 : 1
    seen = now
    if (now === before || times !== CORES_SAMPLES) return
    options.log.warn({ before, now }, 'the number of cores changed')
    if (options.isActive) options.onChange()
  }, options.lookMs ?? CORES_LOOK_MS)
  return () => clearInterval(timer)
}

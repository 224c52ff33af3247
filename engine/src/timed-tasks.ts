/**
 * The timed tasks of a node: daily maintenance at maintenance_hour, and the watch on the number of cores
 * (docs/design/http.md#core-count, docs/design/http.md#daily-maintenance). The decision goes through the log like any
 * write. This module only decides when to propose it.
 */

import { dayOf } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import type { ReplicaStatus } from './status.ts'

const LOOK_MS = 30_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const CORES_LOOK_MS = 1_000
/** How often another number must be seen: a single sample may coincide with a change. */
const CORES_SAMPLES = 2

/**
 * Proposes maintenance when its hour has come and the last one was before today; at the start if one was missed.
 *
 * @returns stops it
 */
export function startMaintenance(options: {
  /** Hour of the day, UTC. */
  readonly hour: number
  readonly status: () => ReplicaStatus | undefined
  readonly maintain: () => void
}): () => void {
  const look = () => {
    const status = options.status()
    if (!status || status.clock.timeMs === 0 || status.clock.state === 'suspect') return
    if (isDue(status.clock.timeMs, options.hour, status.lastMaintenanceDay)) options.maintain()
  }
  const timer = setInterval(look, LOOK_MS)
  const first = setTimeout(look, 1_000)
  return () => {
    clearInterval(timer)
    clearTimeout(first)
  }
}

/**
 * Whether maintenance is due: today's hour has come and it has not run today, or a whole day was missed.
 *
 * @param timeMs shard time, which decides what is past, not the clock of this node
 * @param lastDay day of the last maintenance, 0 for never
 */
export function isDue(timeMs: number, hour: number, lastDay: number): boolean {
  const today = dayOf(timeMs)
  if (lastDay >= today) return false
  const hasHourCome = timeMs - today * DAY_MS >= hour * HOUR_MS
  return hasHourCome || lastDay < today - 1
}

/** Checks the number of cores each second and reports a change seen twice in a row once. @returns stops it */
export function watchCores(options: {
  /** The compared value: parallelism and number of processors; undefined when the system does not tell. */
  readonly sample: () => string | undefined
  readonly isActive: boolean
  readonly log: Log
  readonly onChange: () => void
  readonly lookMs?: number
}): () => void {
  let before = options.sample()
  let seen = ''
  let times = 0
  const timer = setInterval(() => {
    const now = options.sample()
    // Without a free descriptor the list of processors is empty: no change of cores.
    if (now === undefined) return
    before ??= now
    times = now !== before && now === seen ? times + 1 : 1
    seen = now
    if (now === before || times !== CORES_SAMPLES) return
    options.log.warn({ before, now }, 'the number of cores changed')
    if (options.isActive) options.onChange()
  }, options.lookMs ?? CORES_LOOK_MS)
  return () => clearInterval(timer)
}

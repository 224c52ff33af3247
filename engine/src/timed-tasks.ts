/**
 * The timed tasks of a node: daily maintenance at maintenance_hour (docs/design/http.md#daily-maintenance), and watches
 * on the number of cores (docs/design/http.md#core-count), on the replica thread, on what ends on a date, and on data
 * that were set aside. Maintenance goes through the log like any write. This module only decides when to propose it.
 */

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { dayOf } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import { CODECS_FILE } from './data/data-directory.ts'
import { endingsOf } from './http/conditions.ts'
import type { NodeHandle, Unavailable, UnavailableReason } from './http/handle.ts'
import type { ReplicaStatus } from './status.ts'

const LOOK_MS = 30_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const CORES_LOOK_MS = 1_000
/** How often another number must be seen: a single sample may coincide with a change. */
const CORES_SAMPLES = 2
const SILENT_LOOK_MS = 1_000
const SILENT_LOOKS = 4
/** A few dates are compared: soon after a file changed or a date has come, and at no cost. */
const ENDS_LOOK_MS = 1_000
const NOTE_LOOK_MS = 2_000

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
    const begins = status.stays?.settings.day_begins_minutes
    if (isDue(status.clock.timeMs, options.hour, status.lastMaintenanceDay, begins)) options.maintain()
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
 * @param begins minutes after midnight UTC at which the day of the shard begins
 */
export function isDue(timeMs: number, hour: number, lastDay: number, begins = 0): boolean {
  const ofDayMs = timeMs - begins * MINUTE_MS
  const today = dayOf(ofDayMs)
  if (lastDay >= today) return false
  // The hour is one of the clock: of a day that begins at 8 hours it comes 20 hours later at 4.
  const hourMs = (((hour * HOUR_MS - begins * MINUTE_MS) % DAY_MS) + DAY_MS) % DAY_MS
  const hasHourCome = ofDayMs - today * DAY_MS >= hourMs
  return hasHourCome || lastDay < today - 1
}

/** Checks the number of cores each second and reports a change seen twice in a row once. @returns stops it */
export function watchCores(options: {
  /** The compared value: parallelism and number of processors; undefined when the system does not tell. */
  readonly sample: () => string | undefined
  readonly isActive: boolean
  readonly log: Log
  /** Why it may not end yet, asked each second from then on; '' when it may. */
  readonly whyStay: () => Promise<string>
  readonly onChange: () => void
  readonly lookMs?: number
}): () => void {
  let before = options.sample()
  let seen = ''
  let times = 0
  let isLeaving = false
  let isAsking = false
  let reason = ''
  const timer = setInterval(() => {
    const now = options.sample()
    // Without a free descriptor the list of processors is empty: no change of cores.
    if (now === undefined) return
    before ??= now
    times = now !== before && now === seen ? times + 1 : 1
    seen = now
    if (now === before) isLeaving = false
    else if (times === CORES_SAMPLES) {
      options.log.warn({ before, now }, 'the number of cores changed')
      isLeaving = options.isActive
    }
    if (isLeaving && !isAsking) void ask()
  }, options.lookMs ?? CORES_LOOK_MS)
  const ask = async () => {
    isAsking = true
    const why = await options.whyStay()
    isAsking = false
    // They may have changed back meanwhile.
    if (!isLeaving) return
    if (why !== '' && why !== reason) options.log.info({ why }, 'the process does not end yet for its number of cores')
    reason = why
    if (why !== '') return
    isLeaving = false
    options.onChange()
  }
  return () => clearInterval(timer)
}

type SetUnavailable = (reason: UnavailableReason, detail: string) => void
/** What the watches below read and change. */
type Watched = {
  codecMismatch: string | undefined
  /** Since the last status of the replica. */
  silentLooks: number
  readonly unavailable: Map<UnavailableReason, Unavailable>
}

/**
 * A replica thread that sends no status may wait for its disk, too. Counted in turns of this thread, so that a stall of
 * the whole process is none.
 */
export function watchReplica(watched: Watched, setUnavailable: SetUnavailable): () => void {
  const timer = setInterval(() => {
    if (++watched.silentLooks >= SILENT_LOOKS) setUnavailable('disk_stuck', 'the replica thread does not respond')
  }, SILENT_LOOK_MS)
  return () => clearInterval(timer)
}

/** Says from 14 days before the end of a certificate or a token, and after it, which one it is. */
export function watchEnds(
  handle: Pick<NodeHandle, 'certificates' | 'tokens' | 'wallMs'>,
  { unavailable }: Watched,
  setUnavailable: SetUnavailable,
): () => void {
  const look = () => {
    const detail = endingsOf(handle.certificates(), handle.tokens(), handle.wallMs())
    if (detail !== '') setUnavailable('certificate_ends', detail)
    else unavailable.delete('certificate_ends')
  }
  look()
  const timer = setInterval(look, ENDS_LOOK_MS)
  return () => clearInterval(timer)
}

/** The reason for data that were set aside holds until the note about them is gone, also while the node runs. */
export function watchCodecs(dataDir: string, watched: Watched, setUnavailable: SetUnavailable): () => void {
  if (watched.codecMismatch === undefined) return () => undefined
  setUnavailable('codecs_changed', watched.codecMismatch)
  const timer = setInterval(async () => {
    const isThere = await stat(join(dataDir, CODECS_FILE)).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
    )
    if (isThere) return
    clearInterval(timer)
    watched.codecMismatch = undefined
    watched.unavailable.delete('codecs_changed')
  }, NOTE_LOOK_MS)
  return () => clearInterval(timer)
}

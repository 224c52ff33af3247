/** Shard time of a replica: which clocks it reads, when, and what it reports. The rules are in shard-time.ts. */

import { dayOf, formatDay } from '@vacancy/shared'
import type { Env } from '../env.ts'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength, viewOf } from '../raft/entry.ts'
import { readTail } from '../raft/log.ts'
import type { Raft } from '../raft/raft.ts'
import type { ClockStatus } from '../status.ts'
import { KIND, kindOfCommand, timeOfCommand, timeSetBy } from '../store/command.ts'
import type { LastSetTime, SetTimeEffects } from '../store/set-time.ts'
import {
  anchorClock,
  CLOCK_LIMITS,
  type ClockReading,
  judgeClock,
  type ShardClock,
  shardTimeAt,
  trustedClock,
} from './shard-time.ts'

const DAY_MS = 86_400_000

/** The part of the state machine that concerns shard time. */
export type TimeOfMachine = {
  /** Day of shard time, for readers. */
  readonly noteDay: (day: number) => void
  /** The day that the shard has at a time. */
  readonly dayAt: (timeMs: number) => number
  readonly effectsOf: (timeMs: number) => SetTimeEffects
  readonly lastSet: () => LastSetTime | undefined
}

/** The part of a replica that shard time needs. */
export type TimeOfReplica = {
  readonly env: Env
  readonly raft: Raft
  readonly machine: {
    readonly time: TimeOfMachine
    /** Shard time of the last applied command, ms. */
    readonly latestTimeMs: () => number
    readonly lastMaintenanceDay: () => number
  }
  readonly link?: { voterClocks(monotonicMs: number): readonly number[] } | undefined
  readonly acceptDay: number
  readonly clock: ShardClock
  /** This node has led since the process began. */
  hasLed: boolean
  /** Latest time that was applied while another node led. */
  appliedTimeMs: number
  /** Day that was published to readers; 0 for none. */
  publishedDay: number
  /** The number of times operators had set shard time at the last check. */
  timeSets: number
}

/** Current shard time, which a leader writes into its entries. 0 until a new shard has one. */
export function shardTime({ clock, env }: TimeOfReplica): number {
  return shardTimeAt(clock, env.clock.monotonicMs())
}

/** The present day of the shard. */
export function shardDay(replica: TimeOfReplica): number {
  return replica.machine.time.dayAt(shardTime(replica))
}

/** The clocks of the voters, projected to now. */
export function readingOf({ env, raft, link, acceptDay, hasLed }: TimeOfReplica): ClockReading {
  const monotonicMs = env.clock.monotonicMs()
  const wallMs = env.clock.wallMs()
  const { length: voters } = raft.configuration.voters
  const others = link?.voterClocks(monotonicMs) ?? []
  return { monotonicMs, wallMs, others, voters, isStart: !hasLed, acceptDay }
}

/** Whether shard time is within 60 s of a clock that a majority of the voters shares. */
export function isTimeTrusted(replica: TimeOfReplica): boolean {
  const trusted = trustedClock(readingOf(replica))
  return trusted !== undefined && Math.abs(trusted - shardTime(replica)) <= CLOCK_LIMITS.agreeMs
}

/** Continues shard time after the newest entry of the log, including one that set it back. */
export function resumeTime(replica: TimeOfReplica): void {
  const { raft, machine, clock, env } = replica
  const tail = newestIn(raft)
  const newest = Math.max(tail.timeMs, tail.isSet ? 0 : machine.latestTimeMs())
  if (tail.isSet || newest > shardTime(replica)) anchorClock(clock, newest, env.clock.monotonicMs())
}

/** Time of the newest command that is in the log but not applied, and whether any of these commands sets the time. */
function newestIn(raft: Raft): { readonly timeMs: number; readonly isSet: boolean } {
  let timeMs = 0
  let isSet = false
  for (const batch of readTail(raft, raft.applied + 1, Number.POSITIVE_INFINITY)) {
    const view = viewOf(batch.bytes)
    for (let at = 0; at < batch.bytes.length; at += ENTRY_HEADER_BYTES + entryLength(view, at)) {
      if (entryKind(view, at) !== ENTRY_KIND.command) continue
      const start = at + ENTRY_HEADER_BYTES
      const sets = kindOfCommand(view, start) === KIND.setTime
      timeMs = sets ? timeSetBy(view, start) : timeOfCommand(view, start)
      isSet ||= sets
    }
  }
  return { timeMs, isSet }
}

/** A leader compares shard time with the clocks, at the start of its term and on each tick. */
export function readClocks(replica: TimeOfReplica): void {
  const { clock, env } = replica
  const before = { state: clock.state, timeMs: shardTime(replica) }
  const reading = readingOf(replica)
  const change = judgeClock(clock, reading)
  replica.hasLed = true
  const fields = { shardTime: timeText(before.timeMs), clock: timeText(reading.wallMs) }
  if (change === 'stepped') {
    const days = Math.round((shardTime(replica) - before.timeMs) / DAY_MS)
    const isLong = shardTime(replica) - before.timeMs > CLOCK_LIMITS.aheadMs
    env.log[isLong ? 'warn' : 'info']({ ...fields, days }, 'clock jumped forward, shard time follows')
  } else if (change === 'begun-without-agreement') {
    env.log.warn(fields, 'shard time begins with clocks that do not agree')
  } else if (clock.state !== before.state) {
    if (clock.state === 'following') env.log.info(fields, 'shard time follows the clock')
    else if (clock.state === 'suspect')
      env.log.error({ ...fields, type: SET_TIME_HINT }, 'shard time is ahead of the clock')
    else env.log.warn({ ...fields, ...acceptHint(reading, clock.offsetMs) }, 'shard time does not follow the clock')
  }
  publishDay(replica)
}

const SET_TIME_HINT = 'vacancy cluster set-time --node HOST:PORT'

function acceptHint({ voters, wallMs }: ClockReading, offsetMs: number): { readonly type?: string } {
  const isFar = voters <= 1 && offsetMs > CLOCK_LIMITS.restDays * DAY_MS
  return isFar ? { type: `--accept-date ${formatDay(dayOf(wallMs))}, or ${SET_TIME_HINT}` } : {}
}

/** A replica that does not lead follows the time that it applies and the time that its leader reports. */
export function followTime(replica: TimeOfReplica, timeMs: number, isReport: boolean): void {
  const { clock, env, raft } = replica
  if (raft.role === 'leader' || timeMs === 0) return
  const wasSetBack = !isReport && timeMs < replica.appliedTimeMs
  if (!isReport) replica.appliedTimeMs = timeMs
  if (isReport || wasSetBack || timeMs > shardTime(replica)) anchorClock(clock, timeMs, env.clock.monotonicMs())
  const offsetMs = env.clock.wallMs() - shardTime(replica)
  clock.offsetMs = offsetMs
  clock.state = Math.abs(offsetMs) <= CLOCK_LIMITS.agreeMs ? 'following' : 'holding'
}

/** Called about ten times a second. */
export function tickTime(replica: TimeOfReplica): void {
  if (replica.raft.role === 'leader') readClocks(replica)
  else publishDay(replica)
  const last = replica.machine.time.lastSet()
  const count = last?.count ?? 0
  if (last && count !== replica.timeSets) {
    const { from, end } = last.importNights ?? { from: 0, end: 0 }
    const importNights = end === 0 ? 'none' : `${formatDay(from)} to ${formatDay(end - 1)}`
    replica.env.log.warn({ from: timeText(last.fromMs), to: timeText(last.toMs), importNights }, 'shard time was set')
  }
  replica.timeSets = count
}

function publishDay(replica: TimeOfReplica): void {
  const timeMs = shardTime(replica)
  const day = timeMs === 0 ? 0 : replica.machine.time.dayAt(timeMs)
  if (day === replica.publishedDay) return
  replica.publishedDay = day
  replica.machine.time.noteDay(day)
}

/** Maintenance drops nights before the current day of shard time, which may lag a little at midnight. */
function isDroppedAhead(replica: TimeOfReplica, timeMs: number): boolean {
  return timeMs > 0 && replica.machine.lastMaintenanceDay() > replica.machine.time.dayAt(timeMs + CLOCK_LIMITS.aheadMs)
}

export function clockStatus(replica: TimeOfReplica): ClockStatus {
  const timeMs = shardTime(replica)
  const { state, offsetMs } = replica.clock
  const lastSet = replica.machine.time.lastSet()
  return { timeMs, offsetMs, state: isDroppedAhead(replica, timeMs) ? 'suspect' : state, lastSet }
}

export function timeText(ms: number): string {
  return ms === 0 ? '' : new Date(ms).toISOString()
}

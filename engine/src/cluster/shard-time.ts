/**
 * Shard time: the time that a leader writes into the log. It decides which nights are past and when request keys
 * expire, so one wrong clock must not move it. Pure: clocks come in as readings.
 *
 *   wall clock within 60 s of shard time          followed, at most 10 % faster or slower than monotonic time
 *   further ahead, a majority of all voters agrees step forward at once
 *   further ahead, a lone voter                    step forward, up to 30 days; at once at its start, else after 10 s
 *   up to 10 minutes behind, trusted               worked off by running slower
 *   more than 10 minutes behind, trusted           `suspect`: an operator decides (vacancy cluster set-time)
 *   anything else                                  `holding`: shard time runs on monotonically
 *
 * Shard time never decreases without an operator. A clock is trusted if a majority of all voters shares it within 60 s.
 * The only voter of a shard is its own majority.
 */

import { dayOf } from '@vacancy/shared'

const DAY_MS = 86_400_000

export const CLOCK_LIMITS = {
  /** Clocks that differ by no more than this agree. */
  agreeMs: 60_000,
  /** Shard time that is further ahead of trusted clocks than this is reported as wrong. */
  aheadMs: 600_000,
  /** Most that a lone voter steps forward without `--accept-date`. */
  restDays: 30,
  /** A running lone voter follows a step that lasts for this long. */
  settleMs: 10_000,
  /** A new shard whose voters' clocks do not agree takes the median after this long. */
  firstMs: 5_000,
  /** Share of monotonic time by which shard time runs faster or slower to meet the clock. */
  slew: 0.1,
} as const

type ClockState = 'following' | 'holding' | 'suspect'

export type ShardClock = {
  /** Shard time at `monotonicMs`; 0 before it was set for the first time. */
  timeMs: number
  monotonicMs: number
  /** Difference still to be worked off by running faster (above zero) or slower. */
  slewMs: number
  state: ClockState
  /** The last judged clock minus shard time. */
  offsetMs: number
  /** Monotonic time since which a step forward, or the first agreement, is pending; undefined for none. */
  awaitedSinceMs: number | undefined
}

export type ClockReading = {
  readonly monotonicMs: number
  /** Wall clock of this node. */
  readonly wallMs: number
  /** Wall clocks of the other voters that reported recently, projected to now. */
  readonly others: readonly number[]
  /** All voters of the shard, including silent ones. */
  readonly voters: number
  /** This node has just begun to lead: a lone voter steps at once. */
  readonly isStart: boolean
  /** A lone voter follows its clock up to this day, whatever the step; 0 for none. */
  readonly acceptDay: number
}

/** Effect of a reading. */
export type ClockChange = 'none' | 'begun' | 'begun-without-agreement' | 'stepped'

/** @param timeMs latest time in the log; 0 for an empty one */
export function createShardClock(timeMs: number, monotonicMs: number): ShardClock {
  return { timeMs, monotonicMs, slewMs: 0, state: 'following', offsetMs: 0, awaitedSinceMs: undefined }
}

/** Shard time, in whole milliseconds; 0 before it was set. Never falls while monotonic time does not. */
export function shardTimeAt(clock: ShardClock, monotonicMs: number): number {
  return Math.floor(exactTimeAt(clock, monotonicMs))
}

function exactTimeAt({ timeMs, monotonicMs: from, slewMs }: ShardClock, monotonicMs: number): number {
  if (timeMs === 0) return 0
  const elapsed = Math.max(0, monotonicMs - from)
  const most = elapsed * CLOCK_LIMITS.slew
  return timeMs + elapsed + Math.max(-most, Math.min(most, slewMs))
}

/** Continues from a time given by the log, the leader or an operator. */
export function anchorClock(clock: ShardClock, timeMs: number, monotonicMs: number): void {
  clock.timeMs = timeMs
  clock.monotonicMs = monotonicMs
  clock.slewMs = 0
}

/** Whether a majority of all voters, including silent ones, has a clock within 60 s of this one. */
function isShared(clocks: readonly number[], voters: number, wallMs: number): boolean {
  const agreeing = clocks.filter((other) => Math.abs(other - wallMs) <= CLOCK_LIMITS.agreeMs)
  return agreeing.length > voters / 2
}

function medianOf(clocks: readonly number[]): number {
  return clocks.toSorted((a, b) => a - b)[clocks.length >>> 1]
}

/** The clock that a majority of all voters shares, preferably that of this node. */
export function trustedClock({ wallMs, others, voters }: Pick<ClockReading, 'wallMs' | 'others' | 'voters'>) {
  const clocks = [wallMs, ...others]
  if (isShared(clocks, voters, wallMs)) return wallMs
  const shared = others.filter((other) => isShared(clocks, voters, other))
  return shared.length === 0 ? undefined : medianOf(shared)
}

/** Takes a reading of the clocks while this node leads. */
export function judgeClock(clock: ShardClock, reading: ClockReading): ClockChange {
  const { monotonicMs, wallMs, voters } = reading
  const trusted = trustedClock(reading)
  if (clock.timeMs === 0) return beginTime(clock, reading, trusted)
  const timeMs = exactTimeAt(clock, monotonicMs)
  const offsetMs = (trusted ?? wallMs) - timeMs
  anchorClock(clock, timeMs, monotonicMs)
  clock.offsetMs = offsetMs
  const { agreeMs, aheadMs } = CLOCK_LIMITS
  if (trusted === undefined) {
    clock.awaitedSinceMs = undefined
    clock.state = Math.abs(offsetMs) <= agreeMs ? 'following' : 'holding'
    if (clock.state === 'following') clock.slewMs = offsetMs
    return 'none'
  }
  if (offsetMs > agreeMs) return stepForward(clock, reading, trusted)
  clock.awaitedSinceMs = undefined
  clock.state = offsetMs < -aheadMs ? 'suspect' : 'following'
  if (clock.state === 'suspect') return 'none'
  if (voters <= 1 && reading.isStart && offsetMs > 0) anchorClock(clock, trusted, monotonicMs)
  else clock.slewMs = offsetMs
  return 'none'
}

function stepForward(clock: ShardClock, reading: ClockReading, trusted: number): ClockChange {
  const { monotonicMs, voters, isStart, acceptDay } = reading
  const { restDays, settleMs } = CLOCK_LIMITS
  const isLone = voters <= 1
  clock.awaitedSinceMs ??= monotonicMs
  const isFar = isLone && clock.offsetMs > restDays * DAY_MS && dayOf(trusted) > acceptDay
  const isSettled = !isLone || isStart || monotonicMs - clock.awaitedSinceMs >= settleMs
  clock.state = 'holding'
  if (isFar || !isSettled) return 'none'
  anchorClock(clock, trusted, monotonicMs)
  clock.state = 'following'
  clock.offsetMs = 0
  clock.awaitedSinceMs = undefined
  return 'stepped'
}

/** The log is empty: the first time is that of a majority. Without one it is the median, after a while. */
function beginTime(clock: ShardClock, reading: ClockReading, trusted: number | undefined): ClockChange {
  const { monotonicMs, wallMs, others } = reading
  clock.awaitedSinceMs ??= monotonicMs
  if (trusted === undefined && monotonicMs - clock.awaitedSinceMs < CLOCK_LIMITS.firstMs) return 'none'
  anchorClock(clock, trusted ?? medianOf([wallMs, ...others]), monotonicMs)
  clock.state = 'following'
  clock.offsetMs = 0
  clock.awaitedSinceMs = undefined
  return trusted === undefined ? 'begun-without-agreement' : 'begun'
}

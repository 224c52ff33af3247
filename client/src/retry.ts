/**
 * What may be sent again, when, and for how long: within the deadline of its call, and only if that cannot execute a
 * write twice (consensus.md §12; wire-protocol.md §7.1, §10.1). Pure.
 */

import { kindOfWireCode } from '@vacancy/shared'

/** A call as far as repeating it is concerned. */
export type Repeatable = {
  readonly isWrite: boolean
  /** The write carries a request key: the node executes it once, however often it comes. */
  readonly isKeyed: boolean
}

/** How an attempt ended that brought no result. */
export type Attempt =
  | { readonly ended: 'answered'; readonly code: string }
  /** Handed to a socket that died before the answer came. */
  | { readonly ended: 'lost' }

/** Answers of unknown outcome after which a keyed write asks again. An expired session gives the same one for ever. */
export const UNKNOWN_REPEATS_MAX = 2

const CALL_DELAY_MS_MIN = 20
const CALL_DELAY_MS_MAX = 500
const SEARCH_DELAY_MS_MAX = 80
/** About as long as an election takes with a leader that was cut off. */
const SEARCH_ROUNDS_FAST = 60
const RECONNECT_DELAY_MS_MIN = 100
const RECONNECT_DELAY_MS_MAX = 5000
/** A connection that lived this long was a good one: the next loss starts again with the shortest delay. */
export const GOOD_CONNECTION_MS = RECONNECT_DELAY_MS_MAX

/**
 * Whether to send the call again.
 *
 * @param unknownRepeats how often this call was repeated because its outcome was answered to be unknown
 */
export function mayRepeat(call: Repeatable, attempt: Attempt, unknownRepeats: number): boolean {
  const isHarmless = !call.isWrite || call.isKeyed
  if (attempt.ended === 'lost') return isHarmless
  // 308, 405, 429, 503: never for a write that may still be applied.
  if (kindOfWireCode(attempt.code) === 'retry') return true
  return attempt.code === '408' && isHarmless && unknownRepeats < UNKNOWN_REPEATS_MAX
}

/** Whether the attempt may have executed the call. Reads change nothing, so there is never a doubt about them. */
export function leavesDoubt(call: Repeatable, attempt: Attempt): boolean {
  return call.isWrite && (attempt.ended === 'lost' || kindOfWireCode(attempt.code) === 'unknown_outcome')
}

const FATES: readonly string[] = ['SUCCESS', 'NOT_FOUND', 'OVERFLOW', 'UNDERFLOW']

/**
 * Whether an answer tells the fate of a write for good. These come from executing it, or from the stored result of
 * having executed it; the others are given before a request key is looked at, and say nothing of an earlier attempt.
 *
 * @param code code of the ERROR, or SUCCESS
 */
export function tellsFate(code: string): boolean {
  return FATES.includes(code)
}

/**
 * Milliseconds to wait before a call is sent again after an answer. A lost connection needs none: the next connection
 * is waited for anyway.
 *
 * @param repeats how often it was repeated before
 * @param random 0 up to but not including 1
 */
export function repeatDelayMs(repeats: number, random: number): number {
  return jittered(CALL_DELAY_MS_MIN, CALL_DELAY_MS_MAX, repeats, random)
}

/**
 * Milliseconds to wait before all nodes of a shard are asked once more who leads. An election is over within seconds,
 * and what a client sleeps past its end is time without writes: only a shard that stays without a leader for longer is
 * asked as seldom as a call is repeated. One small write a node and round goes out, whatever waits behind it.
 *
 * @param rounds how often all of them have refused in a row
 * @param random 0 up to but not including 1
 */
export function searchDelayMs(rounds: number, random: number): number {
  const msMax = rounds < SEARCH_ROUNDS_FAST ? SEARCH_DELAY_MS_MAX : CALL_DELAY_MS_MAX
  return jittered(CALL_DELAY_MS_MIN, msMax, rounds, random)
}

/**
 * Milliseconds to wait before connecting again.
 *
 * @param failures how many attempts failed in a row, 0 right after a good connection
 * @param random 0 up to but not including 1
 */
export function reconnectDelayMs(failures: number, random: number): number {
  return jittered(RECONNECT_DELAY_MS_MIN, RECONNECT_DELAY_MS_MAX, failures, random)
}

/** Doubles up to the greatest delay; the upper half is left to chance, so that many clients spread. */
function jittered(msMin: number, msMax: number, doublings: number, random: number): number {
  const ms = Math.min(msMax, msMin * 2 ** Math.min(doublings, 30))
  return ms / 2 + (ms / 2) * random
}

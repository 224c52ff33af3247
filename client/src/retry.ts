/**
 * Which calls may be retried, when, and how long: within the deadline of the call, and only if a write cannot be
 * executed twice (docs/design/consensus.md#request-keys, docs/design/protocol.md#errors,
 * docs/design/protocol.md#bridges-and-routers). Pure.
 */

import { kindOfWireCode } from '@vacancy/shared'

/** The properties of a call that matter for retries. */
export type Repeatable = {
  readonly isWrite: boolean
  /** The write has a request key: the node executes it once, however often it is sent. */
  readonly isKeyed: boolean
}

/** How an attempt without a result ended. */
export type Attempt =
  | { readonly ended: 'answered'; readonly code: string }
  /** Handed to a socket that failed before the reply arrived. */
  | { readonly ended: 'lost' }

const CALL_DELAY_MS_MIN = 20
const CALL_DELAY_MS_MAX = 500
const SEARCH_DELAY_MS_MAX = 80
/** About the duration of an election after the leader was cut off. */
const SEARCH_ROUNDS_FAST = 60
const RECONNECT_DELAY_MS_MIN = 100
/** Less than the deadline of a call, and than the grace in which a queue keeps the deliveries of a consumer. */
const RECONNECT_DELAY_MS_MAX = 1_000
/** A connection that lived this long was healthy: the next loss starts again with the shortest delay. */
export const GOOD_CONNECTION_MS = 5_000

/**
 * Whether to retry the call. An unknown outcome is retried until the deadline: while leaders and routers fail one after
 * another, each of them may report it. An expired session is reported by the same code, and never changes.
 */
export function mayRepeat(call: Repeatable, attempt: Attempt): boolean {
  const isHarmless = !call.isWrite || call.isKeyed
  if (attempt.ended === 'lost') return isHarmless
  // 308, 405, 429, 503: never sent for a write that may still be applied.
  if (kindOfWireCode(attempt.code) === 'retry') return true
  return attempt.code === '408' && isHarmless
}

/** Whether the attempt may have executed a write. Reads change nothing, so they are never in doubt. */
export function leavesDoubt(call: Repeatable, attempt: Attempt): boolean {
  return call.isWrite && (attempt.ended === 'lost' || kindOfWireCode(attempt.code) === 'unknown_outcome')
}

const FATES: readonly string[] = ['SUCCESS', 'NOT_FOUND', 'OVERFLOW', 'UNDERFLOW']

/**
 * Whether a reply settles the outcome of a write. These codes come from executing it, or from its stored result. The
 * others are sent before the request key is checked, so they do not cover earlier attempts.
 *
 * @param code code of the ERROR, or SUCCESS
 */
export function tellsFate(code: string): boolean {
  return FATES.includes(code)
}

/**
 * Milliseconds to wait before a call is retried after a reply. A lost connection needs no delay, because the call
 * waits for the next connection anyway.
 *
 * @param repeats number of earlier retries
 * @param random 0 up to but not including 1
 */
export function repeatDelayMs(repeats: number, random: number): number {
  return jittered(CALL_DELAY_MS_MIN, CALL_DELAY_MS_MAX, repeats, random)
}

/**
 * Milliseconds to wait before the next round over all nodes in search of the leader. An election takes seconds, and a
 * client that sleeps past its end loses time for writes. Only for a shard that stays without a leader do the delays
 * grow to those of other retries. Each round sends one small write per node, however many writes wait.
 *
 * @param rounds number of rounds in a row in which all nodes refused
 * @param random 0 up to but not including 1
 */
export function searchDelayMs(rounds: number, random: number): number {
  const msMax = rounds < SEARCH_ROUNDS_FAST ? SEARCH_DELAY_MS_MAX : CALL_DELAY_MS_MAX
  return jittered(CALL_DELAY_MS_MIN, msMax, rounds, random)
}

/**
 * Milliseconds to wait before reconnecting.
 *
 * @param failures number of failed attempts in a row, 0 right after a healthy connection
 * @param random 0 up to but not including 1
 */
export function reconnectDelayMs(failures: number, random: number): number {
  return jittered(RECONNECT_DELAY_MS_MIN, RECONNECT_DELAY_MS_MAX, failures, random)
}

/** Doubles up to the maximum delay. The upper half is random, so that many clients spread out. */
function jittered(msMin: number, msMax: number, doublings: number, random: number): number {
  const ms = Math.min(msMax, msMin * 2 ** Math.min(doublings, 30))
  return ms / 2 + (ms / 2) * random
}

/**
 * The stored results of request keys, read from the canonical bytes of a store: whether each result is that of the log,
 * and their contribution to the digest, by an independent implementation of the rules.
 */

import { viewOf } from '../../engine/src/raft/entry.ts'
import { hex } from '../../engine/src/snapshot/format.ts'
import { STATE } from '../../engine/src/store/layout.ts'
import { encodeSessions } from '../../engine/src/store/sessions.ts'
import { type Memory, state } from '../../engine/src/store/store.ts'

/** Session → number → result, from the log. */
export type Results = ReadonlyMap<
  string,
  ReadonlyMap<number, { readonly code: number; readonly value: number; readonly index: number }>
>

const KEY_BYTES = 16
const HEADER_BYTES = KEY_BYTES + 3 * 8 + 2
const RESULT_BYTES = 8 + 1 + 1 + 4 + 4 + 8

export type Lanes = { lo: number; hi: number }

export function mix(lanes: Lanes, words: readonly number[]): void {
  for (const word of words) {
    lanes.lo = Math.imul(lanes.lo ^ word, 0xcc9e2d51)
    lanes.lo ^= lanes.lo >>> 15
    lanes.hi = Math.imul(lanes.hi ^ word, 0x85ebca6b)
    lanes.hi ^= lanes.hi >>> 13
  }
}

/** A session without its results: its digest at feature level 0, and the additional part from level 1. */
function sessionLanes(key: readonly number[], highest: readonly number[], rest: readonly number[]): Lanes {
  const [first = 0, second = 0] = highest
  const lane = (start: number): number => {
    let hash = start
    for (const word of key) hash = Math.imul(hash ^ word, 0xcc9e2d51)
    hash = Math.imul(hash ^ first, 0x85ebca77) ^ second
    hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae3d)
    return hash ^ (hash >>> 13)
  }
  const lanes = { lo: lane(0x5bd1e995), hi: lane(0x1b873593) }
  mix(lanes, rest)
  return lanes
}

export type HeldSessions = {
  /** The contribution of all sessions to the digest. */
  readonly lo: number
  readonly hi: number
  /** A result that differs from the log, as text. */
  readonly difference: string
}

export function heldSessions(memory: Memory, results: Results): HeldSessions {
  const bytes = encodeSessions(memory)
  const view = viewOf(bytes)
  const isWhole = state(memory, STATE.featureLevel) >= 1
  const words = (at: number, count: number) => Array.from({ length: count }, (_, n) => view.getUint32(at + n * 4, true))
  const sum: Lanes = { lo: 0, hi: 0 }
  const add = ({ lo, hi }: Lanes): void => {
    sum.lo = (sum.lo + lo) >>> 0
    sum.hi = (sum.hi + hi) >>> 0
  }
  let difference = ''
  let at = 4
  for (let left = view.getUint32(0, true); left > 0; left--) {
    const session = hex(bytes.subarray(at, at + KEY_BYTES))
    const key = words(at, 4)
    const rest = isWhole ? [...words(at + 16, 2), ...words(at + 32, 2)] : []
    add(sessionLanes(key, words(at + 24, 2), rest))
    const count = view.getUint16(at + 40, true)
    at += HEADER_BYTES
    for (let n = 0; n < count; n++, at += RESULT_BYTES) {
      const [code = 0, value = 0] = bytes.subarray(at + 8, at + 10)
      const result = { lo: 0x2545f491, hi: 0x165667b1 }
      mix(result, [...key, ...numberWords(view.getFloat64(at, true)), code * 256 + value, ...words(at + 10, 4)])
      if (isWhole) add(result)
      difference ||= differenceOf(
        results,
        session,
        view.getFloat64(at, true),
        code,
        value,
        view.getFloat64(at + 18, true),
      )
    }
  }
  return { ...sum, difference }
}

function numberWords(number: number): [low: number, high: number] {
  return [number >>> 0, Math.floor(number / 2 ** 32) >>> 0]
}

function differenceOf(
  results: Results,
  session: string,
  number: number,
  code: number,
  value: number,
  index: number,
): string {
  const given = results.get(session)?.get(number)
  if (given?.code === code && given.value === value && given.index === index) return ''
  return `request ${number} of session ${session} has the result ${code}/${value} at ${index}, not ${JSON.stringify(given)}`
}

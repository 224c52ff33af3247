/** Time as a parameter, so that tests and simulations control it. */

import { assert } from './assert.ts'

export type Clock = {
  /** Milliseconds since 1970-01-01 UTC. May jump in either direction. */
  wallMs(): number
  /** Milliseconds since an arbitrary moment of this process. Monotonic; use it for durations. */
  monotonicMs(): number
}

/** Timers as a parameter, for the same reason. */
export type Schedule = {
  /** Runs `run` once, not before `delayMs` have passed. @returns cancels it */
  after(delayMs: number, run: () => void): () => void
}

/** The system clock. The only place in the pure core that reads it. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

export type TurnableClock = Clock & {
  /** Advances both readings by `ms`. */
  advance(ms: number): void
  /** Sets the wall clock only, as an operator or NTP would. Durations are unaffected. */
  setWall(ms: number): void
}

/** A clock that changes only when it is set or advanced. */
export function turnableClock(startMs: number): TurnableClock {
  let wall = startMs
  let monotonic = 0
  return {
    wallMs: () => wall,
    monotonicMs: () => monotonic,
    advance(ms) {
      assert(ms >= 0, 'time passes forwards')
      wall += ms
      monotonic += ms
    },
    setWall(ms) {
      wall = ms
    },
  }
}

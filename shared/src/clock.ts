/** Time as a value that is passed in, so that tests and simulations turn it by hand. */

import { assert } from './assert.ts'

export type Clock = {
  /** Milliseconds since 1970-01-01 UTC. May jump either way. */
  wallMs(): number
  /** Milliseconds since some moment of this process. Never goes back; for durations. */
  monotonicMs(): number
}

/** The machine's clock. The one place of the pure core that reads it. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

export type TurnableClock = Clock & {
  /** Lets time pass: both readings grow by `ms`. */
  advance(ms: number): void
  /** Sets the wall clock alone, as an operator or NTP would; durations do not notice. */
  setWall(ms: number): void
}

/** A clock that stands still until it is turned. */
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

/** What the client takes from outside: time, timers and chance. Tests turn them by hand. */

import { randomBytes } from 'node:crypto'
import { type Clock, systemClock } from '@vacancy/shared'

export type World = {
  readonly clock: Clock
  /** Calls `run` once, `ms` from now. @returns what takes it back */
  after(ms: number, run: () => void): () => void
  /** 0 up to but not including 1: spreads the retries of many clients. */
  random(): number
  /** Bytes that nobody can guess: sessions of request keys. */
  randomBytes(count: number): Uint8Array
}

export const systemWorld: World = {
  clock: systemClock,
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
  randomBytes: (count) => randomBytes(count),
}

/** An environment whose time advances only when the test advances it. Sockets are real. */

import { turnableClock } from '@vacancy/shared'
import { systemWorld, type World } from '../world.ts'

export type TurnedWorld = World & {
  /** Advances time and runs due timers in order. */
  advance(ms: number): void
  setWall(ms: number): void
  /** Milliseconds until each pending timer. */
  waits(): readonly number[]
}

export function turnedWorld(startMs = Date.UTC(2026, 6, 1)): TurnedWorld {
  const clock = turnableClock(startMs)
  const timers = new Set<{ readonly dueMs: number; readonly run: () => void }>()
  return {
    clock,
    after(ms, run) {
      const timer = { dueMs: clock.monotonicMs() + ms, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    random: () => 0.5,
    randomBytes: systemWorld.randomBytes,
    getText: systemWorld.getText,
    advance(ms) {
      const endMs = clock.monotonicMs() + ms
      for (;;) {
        const [next] = [...timers].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)
        if (!next) break
        timers.delete(next)
        clock.advance(Math.max(0, next.dueMs - clock.monotonicMs()))
        next.run()
      }
      clock.advance(endMs - clock.monotonicMs())
    },
    setWall: clock.setWall,
    waits: () => [...timers].map(({ dueMs }) => dueMs - clock.monotonicMs()),
  }
}

/**
 * Whether this process got processor time, by the ticks of a timer that runs while requests are under way. One that did
 * not reads replies late, which says nothing about those who sent them.
 */
import type { Clock } from '@vacancy/shared'

/** Of the ticks that were due, this share happened in a process that was not held up. */
const SHARE_LEAST = 0.5

export type OwnTime = ReturnType<typeof createOwnTime>

export function createOwnTime({ monotonicMs }: Clock, tickMs: number) {
  let ticks = 0
  return {
    tickMs,
    tick(): void {
      ticks++
    },
    /** Begins to watch. @returns whether this process was held up since */
    watch(): () => boolean {
      const [began, before] = [monotonicMs(), ticks]
      return () => ticks - before < Math.floor((monotonicMs() - began) / tickMs) * SHARE_LEAST
    },
  }
}

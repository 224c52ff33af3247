/**
 * A timer for the next moment at which something is due, where an interval would wake a process that has nothing to do.
 * It rings no more often than that interval would.
 */
import type { Clock } from '@vacancy/shared'

export type Alarm = ReturnType<typeof createAlarm>

/** Node measures delays in whole milliseconds of its own clock. */
const EARLY_MS = 1

/** @param ring does what is due. @returns when something is due next, of the monotonic clock; Infinity for never */
export function createAlarm({ monotonicMs }: Clock, tickMs: number, ring: () => number) {
  let timer: NodeJS.Timeout | undefined
  let rangMs = Number.NEGATIVE_INFINITY
  let dueMs = Number.POSITIVE_INFINITY
  let isOn = false
  const onTime = () => {
    rangMs = monotonicMs()
    dueMs = Number.POSITIVE_INFINITY
    alarm.set(ring())
  }
  const alarm = {
    start(): void {
      isOn = true
      onTime()
    },
    /** It rings no later than that, or a tick after it last rang. */
    set(atMs: number): void {
      if (Math.max(atMs, rangMs + tickMs) < dueMs) alarm.move(atMs)
    },
    /** It rings then, and not before. */
    move(atMs: number): void {
      if (!isOn) return
      clearTimeout(timer)
      dueMs = Math.max(atMs, rangMs + tickMs)
      timer = Number.isFinite(dueMs) ? setTimeout(onTime, Math.max(0, dueMs - monotonicMs()) + EARLY_MS) : undefined
    },
    stop(): void {
      clearTimeout(timer)
      isOn = false
    },
  }
  return alarm
}

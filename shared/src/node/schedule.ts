import type { Schedule } from '../clock.ts'

/** The timers of the process. */
export const systemSchedule: Schedule = {
  after(delayMs, run) {
    if (delayMs <= 0) {
      const handle = setImmediate(run)
      return () => clearImmediate(handle)
    }
    const handle = setTimeout(run, delayMs)
    return () => clearTimeout(handle)
  },
}

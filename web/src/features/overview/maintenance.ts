/** When the daily maintenance of a node runs next. Pure. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/**
 * @param hour in UTC, as configured
 * @returns the next start, in ms since the epoch; undefined when `hour` is not one
 */
export function nextMaintenance(hour: string | undefined, nowMs: number): number | undefined {
  const value = Number(hour)
  if (hour === undefined || hour === '' || !Number.isInteger(value) || value < 0 || value > 23) return undefined
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS + value * HOUR_MS
  return today > nowMs ? today : today + DAY_MS
}

/** Whole days from now to the end of a date; 0 on that day. */
export function daysLeft(date: string, nowMs: number): number {
  return Math.max(0, Math.floor((Date.parse(`${date}T00:00:00Z`) - Math.floor(nowMs / DAY_MS) * DAY_MS) / DAY_MS))
}

/** Days as whole numbers since 1970, and their dates. */

const DAY_MS = 86_400_000
const DATE = /^\d{4}-\d{2}-\d{2}$/

/** Day number of a date; undefined for an invalid one. */
export function dayOf(date: string): number | undefined {
  if (!DATE.test(date)) return undefined
  const ms = Date.parse(`${date}T00:00:00Z`)
  // The platform parses 31 February as 3 March.
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== date ? undefined : ms / DAY_MS
}

export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}

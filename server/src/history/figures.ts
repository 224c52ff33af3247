/** Rounding of stored and displayed numbers. */

/** Three significant digits; more would be noise in every update. */
export function significant(value: number): number {
  return Number(value.toPrecision(3))
}

export function secondsText(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`
  if (seconds < 90) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}

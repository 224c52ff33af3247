/** Seven price steps by rank, each with a seventh of the values, so that neither outliers nor a cluster flatten them. */

export const STEPS = 7

/** The highest value of each step but the last. */
export type Scale = readonly number[]

export function scaleOf(values: readonly number[]): Scale {
  const sorted = Float64Array.from(values).sort()
  return Array.from(
    { length: STEPS - 1 },
    (_, step) => sorted[Math.max(0, Math.ceil(((step + 1) * sorted.length) / STEPS) - 1)] ?? 0,
  )
}

/** 1 to 7; equal values have the same step. */
export function stepOf(scale: Scale, value: number): number {
  return 1 + scale.filter((highest) => highest < value).length
}

/** Nearest rank, of values in ascending order; 0 without values. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  const rank = Math.ceil((percent / 100) * sorted.length)
  return sorted[Math.max(0, rank - 1)] ?? 0
}

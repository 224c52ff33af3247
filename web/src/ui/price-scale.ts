/** Seven price steps between the 2nd and the 98th percentile, so that outliers do not flatten the scale. */

export const STEPS = 7

export type Scale = { readonly from: number; readonly to: number }

export function scaleOf(values: readonly number[]): Scale {
  const sorted = Float64Array.from(values).sort()
  return { from: percentile(sorted, 2), to: percentile(sorted, 98) }
}

/** 1 to 7. */
export function stepOf({ from, to }: Scale, value: number): number {
  if (to <= from) return Math.ceil(STEPS / 2)
  const share = (value - from) / (to - from)
  return Math.min(STEPS, Math.max(1, 1 + Math.floor(share * STEPS)))
}

/** Nearest rank, of values in ascending order; 0 without values. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  const rank = Math.ceil((percent / 100) * sorted.length)
  return sorted[Math.max(0, rank - 1)] ?? 0
}

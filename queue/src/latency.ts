/** Histograms of the queue as plain numbers: observing one costs a few comparisons. */

export type Buckets = { readonly bounds: readonly number[]; readonly counts: Float64Array; sum: number }

/** Seconds. */
export const LATENCY_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600,
]

/** @param bounds ascending; one more bucket is for values above them */
export function createBuckets(bounds: readonly number[]): Buckets {
  return { bounds, counts: new Float64Array(bounds.length + 1), sum: 0 }
}

export function observe(buckets: Buckets, value: number): void {
  const { bounds, counts } = buckets
  let n = 0
  while (n < bounds.length && value > (bounds[n] as number)) n++
  counts[n] = (counts[n] as number) + 1
  buckets.sum += value
}

/** As the metrics page takes it. */
export function bucketsReading({ counts, sum }: Buckets, labels: { readonly [label: string]: string }) {
  return { labels, counts, sum }
}

/**
 * A quantile of what was observed since `before`, by linear interpolation within its bucket; NaN without observations. A
 * value above all bounds counts as the largest bound.
 */
export function quantileSince({ bounds, counts }: Buckets, before: Float64Array, q: number): number {
  let total = 0
  for (const [n, count] of counts.entries()) total += count - (before[n] as number)
  if (total === 0) return Number.NaN
  let left = q * total
  for (const [n, upper] of bounds.entries()) {
    const count = (counts[n] as number) - (before[n] as number)
    const lower = bounds[n - 1] ?? 0
    if (count > 0 && left <= count) return lower + (upper - lower) * (left / count)
    left -= count
  }
  return bounds.at(-1) as number
}

/** Adds the observations of another histogram with the same bounds. */
export function addBuckets(to: Buckets, from: Buckets): void {
  for (const [n, count] of from.counts.entries()) to.counts[n] = (to.counts[n] as number) + count
  to.sum += from.sum
}

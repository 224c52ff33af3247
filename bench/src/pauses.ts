/**
 * How long writes paused, from a stream of writes that was sent regardless of replies (docs/design/testing.md#chaos,
 * docs/design/testing.md#published-figures).
 *
 *   intended   0   5  10  15  20  25 …            every few milliseconds
 *   answered   ✓   ✓                ✓ (of 10)
 *                      └─────────────┘            pause: from the first write that got no answer to the next answer
 *
 * A write that is overtaken by a later one is not a pause. Its own waiting time is reported separately.
 */

/** One request of the stream; times in milliseconds on one clock. */
export type Request = {
  readonly intendedMs: number
  /** Infinity while it is not settled. */
  settledMs: number
  /** '' when it was answered with success. */
  error: string
}

export type Pause = { readonly startMs: number; readonly lengthMs: number }

/**
 * The longest pause that ended within a time.
 *
 * @param requests in the order of their intended moments; all that were under way when the time began are among them
 * @returns length 0 when nothing was answered in it
 */
export function longestPause(requests: readonly Request[], { fromMs, toMs }: { fromMs: number; toMs: number }): Pause {
  const answered = requests
    .map(({ settledMs, error }, place) => ({ settledMs, error, place }))
    .filter(({ settledMs, error }) => error === '' && settledMs <= toMs)
    .sort((a, b) => a.settledMs - b.settledMs)
  let longest: Pause = { startMs: fromMs, lengthMs: 0 }
  // Place of the first request behind all that have been answered.
  let next = 0
  for (const { settledMs, place } of answered) {
    const startMs = requests[next]?.intendedMs ?? settledMs
    if (settledMs >= fromMs && settledMs - startMs > longest.lengthMs) {
      longest = { startMs, lengthMs: settledMs - startMs }
    }
    next = Math.max(next, place + 1)
  }
  return longest
}

/** The longest time that one request took to be answered, of those intended within a time. */
export function slowest(requests: readonly Request[], { fromMs, toMs }: { fromMs: number; toMs: number }): number {
  return requests
    .filter(({ settledMs, error }) => error === '' && settledMs < Number.POSITIVE_INFINITY)
    .filter(({ intendedMs }) => intendedMs >= fromMs && intendedMs <= toMs)
    .reduce((most, { intendedMs, settledMs }) => Math.max(most, settledMs - intendedMs), 0)
}

/**
 * The least value that `share` (0 to 1) of all values do not exceed: of 100 values the 99th at 0.99. NaN without
 * values.
 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

/** Each value over the one of the same round: their median, and as a sentence the least and the most. */
export function ratios(of: readonly number[], to: readonly number[]): { value: number; why: string } {
  const each = of.map((value, round) => value / (to[round] ?? Number.NaN))
  const [least, most] = [quantile(each, 0), quantile(each, 1)]
  return { value: median(each), why: `${least.toFixed(2)} to ${most.toFixed(2)} in the rounds` }
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
}

/** Pauses after failures: 100 ms, doubling to 5 s, ± a fifth (docs/design/http.md#callers-of-the-registry). */

const PAUSE_MS = { first: 100, max: 5_000, jitter: 0.2 } as const

/**
 * The pause before the next try.
 *
 * @param failures in a row so far, 1 or more
 * @param random 0 to 1
 */
export function pauseMs(failures: number, random: number): number {
  const baseMs = Math.min(PAUSE_MS.max, PAUSE_MS.first * 2 ** Math.min(failures - 1, 16))
  return Math.round(baseMs * (1 - PAUSE_MS.jitter + 2 * PAUSE_MS.jitter * random))
}

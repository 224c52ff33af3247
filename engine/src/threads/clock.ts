/**
 * One clock for all threads of the process. `performance.now()` counts from the start of its thread. `process.hrtime`
 * counts from one moment for all threads, at the same rate, but is slower.
 */

const SAMPLES = 8

/** Converts `performance.now()` of the calling thread into milliseconds common to all threads, as an offset. */
export function commonClockOffsetMs(): number {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < SAMPLES; i++) {
    const own = performance.now()
    const [seconds, nanoseconds] = process.hrtime()
    // A pause between the two readings makes the difference too large: the least one is the most accurate.
    least = Math.min(least, seconds * 1000 + nanoseconds / 1e6 - own)
  }
  return least
}

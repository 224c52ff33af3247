/** How long events of this thread wait for their turn. */

/** Of `monitorEventLoopDelay`. Each sample wakes the thread: a hundred a second take 1 % of a core in an idle program. */
export const DELAY_SAMPLED_EVERY_MS = 200
const LOOK_MS = 100

export type EventLoopWatch = {
  /** Longest delay since the last call, seconds; a delay may be up to 100 ms longer than it shows. */
  takeSeconds(): number
  close(): void
}

/** `monitorEventLoopDelay` of Node loses the first sample behind each `reset`, and with it a delay after a scrape. */
export function watchEventLoop(): EventLoopWatch {
  let longestMs = 0
  let sampledMs = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    longestMs = Math.max(longestMs, now - sampledMs - LOOK_MS)
    sampledMs = now
  }, LOOK_MS).unref()
  return {
    takeSeconds() {
      const seconds = longestMs / 1000
      longestMs = 0
      return seconds
    },
    close: () => clearInterval(timer),
  }
}

/** A task that runs again after a pause it chooses, until it is stopped. Never two runs at once. */

import type { Schedule } from '@vacancy/shared'

export type Loop = {
  /**
   * Ends the present pause, at once or after a delay. During a run: the next one follows at once.
   *
   * @param delayMs replaces the rest of the pause; default 0
   */
  wake(delayMs?: number): void
  /** Whether the task runs now. */
  isRunning(): boolean
  /** Runs no more. Resolves when a running task has ended. */
  stop(): Promise<void>
}

/** @param task returns the pause before its next run, in ms. Must not reject. */
export function startLoop(schedule: Schedule, task: () => Promise<number>): Loop {
  let isStopped = false
  let isWoken = false
  let running: Promise<void> | undefined
  let cancel = (): void => {}
  const run = (): void => {
    isWoken = false
    running = task().then((pauseMs) => {
      running = undefined
      if (!isStopped) cancel = schedule.after(isWoken ? 0 : pauseMs, run)
    })
  }
  run()
  return {
    wake(delayMs = 0) {
      if (isStopped) return
      if (running) {
        isWoken = true
        return
      }
      cancel()
      cancel = schedule.after(delayMs, run)
    },
    isRunning: () => running !== undefined,
    async stop() {
      isStopped = true
      cancel()
      await running
    },
  }
}

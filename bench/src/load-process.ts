/** The process around one sender: started by load.ts, which sends it the load and the start time. */
import { writeFileSync } from 'node:fs'
import { createSender, type Order, type Report, runSender, type Sender } from './sender.ts'

export type ToSender = { kind: 'order'; order: Order } | { kind: 'start'; atEpochMs: number }
export type FromSender = { kind: 'ready' } | { kind: 'report'; report: Report } | { kind: 'failed'; reason: string }

function main(): void {
  sharpenNaps()
  let sender: Sender | undefined
  process.on('message', async (message: ToSender) => {
    try {
      if (message.kind === 'order') {
        sender = await createSender(message.order)
        await say({ kind: 'ready' })
      } else if (sender) {
        await say({ kind: 'report', report: await runSender(sender, message.atEpochMs - performance.timeOrigin) })
        process.disconnect?.()
      }
    } catch (error) {
      await say({ kind: 'failed', reason: (error as Error).message })
      process.exit(1)
    }
  })
  // The parent process is gone, so there is no recipient for the report.
  process.on('disconnect', () => process.exit())
}

function say(message: FromSender): Promise<void> {
  return new Promise((resolve) => {
    if (process.send) process.send(message, () => resolve())
    else resolve()
  })
}

/** Linux rounds each sleep up by 50 µs unless a thread requests less (prctl(2), PR_SET_TIMERSLACK). */
function sharpenNaps(): void {
  try {
    writeFileSync('/proc/self/timerslack_ns', '1')
  } catch {
    // No such file, or not allowed: naps are some 60 µs long, and `late` shows what that costs.
  }
}

if (import.meta.main) main()

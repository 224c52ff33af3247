/** Runs the long redrives of a partition, each in steps at its rate. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redrive, Topic } from './job.ts'
import { momentOf, outcomeOf, type Partition, runSoon } from './partition.ts'
import { redriveEnded, setRedriveState, stepRedrive } from './redrive.ts'
import type { Queue } from './state.ts'

/** How often a redrive takes a step, and how long it waits for room on the disk. */
const STEP_MS = 100
const FULL_MS = 1_000
/** Jobs of one step. */
const STEP_MAX = 2_000

/** Continues what was running when the journal was loaded. */
export function resumeRedrives(partition: Partition): void {
  for (const topic of partition.queue?.topics.values() ?? [])
    if (topic.redrive?.record.state === 'running') runRedrive(partition, topic)
}

/** Runs until the redrive ends, pauses, or the partition is lost: the next load continues it. */
export function runRedrive(partition: Partition, topic: Topic): void {
  const { queue } = partition
  const { redrive } = topic
  if (queue === undefined || redrive === undefined || redrive.isLooping) return
  redrive.isLooping = true
  // Only a broken assertion fails here. Nothing catches it: it ends the process, as elsewhere.
  void run(partition, queue, topic, redrive).finally(() => {
    redrive.isLooping = false
  })
}

async function run(partition: Partition, queue: Queue, topic: Topic, redrive: Redrive): Promise<void> {
  const isMine = () => partition.queue === queue && !topic.isGone && topic.redrive === redrive
  const { clock } = partition.options
  let allowance = 0
  let last = clock.monotonicMs() - STEP_MS
  while (isMine() && redrive.record.state === 'running') {
    const now = momentOf(partition)
    // A pause of the process is not made up for.
    const elapsed = Math.min(now.monotonicMs - last, 10 * STEP_MS)
    allowance = Math.min(STEP_MAX, allowance + (redrive.record.ratePerSec * elapsed) / 1000)
    last = now.monotonicMs
    if (allowance >= 1) {
      const step = stepRedrive(queue, topic, Math.floor(allowance), now)
      if (step.kind === 'end') {
        setRedriveState(queue, topic, 'done', now)
        return runSoon(partition)
      }
      if (step.kind === 'no topic') {
        setRedriveState(queue, topic, 'paused', now, `topic "${redrive.record.to}" does not exist`)
        return runSoon(partition)
      }
      allowance -= step.count
      if (step.group !== undefined) {
        const outcome = outcomeOf(step.group, true)
        runSoon(partition)
        const ended = await outcome
        if (ended === 'unknown') return
        redriveEnded(queue, topic, redrive, step, ended === 'durable')
        runSoon(partition)
        if (ended === 'full') await sleep(FULL_MS, undefined, { ref: false })
      }
    }
    await sleep(STEP_MS, undefined, { ref: false })
  }
}

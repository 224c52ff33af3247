/** The verdict on a soak of the job queue. */

import type { SoakCounts } from './queue-soak-clients.ts'
import { type Check, flatCheck, type SizeSample } from './soak-verdict.ts'

export type QueueSoak = {
  readonly perSecond: number
  readonly seconds: number
  readonly counts: SoakCounts
  /** Seconds; of the event loop, over the whole soak. */
  readonly delayP99: number
  readonly memory: SizeSample[]
  /** Of the journal. */
  readonly files: SizeSample[]
}

const DELAY_SECONDS_MAX = 0.02
/** Of the jobs that were to be submitted. */
const SUBMITTED_SHARE_MIN = 0.95

export function queueSoakVerdict({ perSecond, seconds, counts, delayP99, memory, files }: QueueSoak): Check[] {
  const wanted = perSecond * seconds
  const { submitted, left, refused } = counts
  return [
    flatCheck('memory is flat', memory),
    flatCheck('the size of the journal is flat', files),
    {
      name: `event loop delay, p99, is at most ${DELAY_SECONDS_MAX * 1000} ms`,
      passed: delayP99 <= DELAY_SECONDS_MAX,
      text: `${(delayP99 * 1000).toFixed(1)} ms`,
    },
    {
      name: 'the rate is kept',
      passed: submitted >= SUBMITTED_SHARE_MIN * wanted && refused === 0,
      text: `${submitted} of ${wanted} jobs were submitted, ${refused} requests were refused`,
    },
    { name: 'nothing is left after draining', passed: left === 0, text: `${left} jobs are left` },
  ]
}

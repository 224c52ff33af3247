/** When control plane and job queue collect their garbage: sooner than V8 by itself, unless the queue holds many jobs. */
import { setFlagsFromString } from 'node:v8'

/**
 * By how much live data may grow before the old generation is collected. In a control plane with 1,000 nodes and 20
 * browsers 30 % needs a tenth of a core more and 170 MiB less (`npm run console -- cost`). A queue at 15,000 jobs a
 * second would collect four times a second then.
 */
const SOONER_PERCENT = { controlPlane: 30, queue: 100 } as const
/** V8's own rule, which may quadruple it. */
const USUAL_PERCENT = 0
/** From this size of the queue on, and below which size no longer. */
const LARGE_BYTES = 16 << 20
const SMALL_BYTES = 8 << 20

let soonerPercent: number | undefined
let isLarge = false

/** Collects garbage sooner in this process. */
export function collectSooner(program: keyof typeof SOONER_PERCENT): void {
  soonerPercent = SOONER_PERCENT[program]
  setFlagsFromString(`--heap-growing-percent=${soonerPercent}`)
}

/**
 * Each collection visits every waiting job, so a queue that fills would be visited again and again: accepting 100,000
 * jobs took 17 µs of processor time each instead of 12.
 *
 * @param bytes that the queue holds in memory
 */
export function followQueueSize(bytes: number): void {
  const isLargeNow = bytes > (isLarge ? SMALL_BYTES : LARGE_BYTES)
  if (soonerPercent === undefined || isLargeNow === isLarge) return
  isLarge = isLargeNow
  setFlagsFromString(`--heap-growing-percent=${isLarge ? USUAL_PERCENT : soonerPercent}`)
}

/** How long a client is refused when one of two equal components is killed. */

import { setTimeout as wait } from 'node:timers/promises'
import { connect } from '@vacancy/client'
import type { Patient } from './faults.ts'

/** A client asks this often. */
const EVERY_MS = 10
const BEFORE_MS = 500
const AFTER_MS = 3_000
/** docs/quickstart.md#choose-what-runs: of one edge router, zone router or bridge of two. */
export const REFUSED_MS_MAX = 2_000

/**
 * Asks 100 times a second while a component is killed, with a client as an application has it.
 *
 * @param routers of the edges, as host:port; the component must be on the way of the segment
 * @returns milliseconds in which requests failed, counted by requests
 */
export async function refusedMs(
  patient: Patient,
  routers: readonly string[],
  segment: string,
  component: string,
): Promise<number> {
  const client = await connect({ routers })
  const requests: Promise<unknown>[] = []
  let failed = 0
  const timer = setInterval(() => {
    requests.push(client.searchProperties({ segment }, { segment }).catch(() => failed++))
  }, EVERY_MS)
  try {
    await wait(BEFORE_MS)
    await patient.kill(component)
    await wait(AFTER_MS)
  } finally {
    clearInterval(timer)
    await Promise.all(requests)
    await client.close()
  }
  await patient.restart(component)
  return failed * EVERY_MS
}

/** Constant writes like those of a booking platform, since much of the console would only be tested on an idle shard. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, VacancyCallError } from '@vacancy/client'
import type { Stack } from './stack.ts'

/** What every test and picture runs under. */
const USUAL_WRITES = 20
const TICK_MS = 50
const DEADLINE_MS = 20_000
/** Maximum pending writes while a shard accepts none. */
const WAITING_MAX = 200
/** The last rows of the sample; tests query other ones. */
const ROWS = 200
const ROOMS_MAX = 9

export type Writer = {
  /** Writes that were acknowledged so far. */
  written(): number
  /** @throws Error when nothing was written */
  stop(): Promise<void>
}

/** Sets the available rooms on nights of the sample at a rate per second. */
export async function startWriter(stack: Stack, perSecond: number = USUAL_WRITES): Promise<Writer> {
  const rows = readFileSync(join(stack.folder, 'csv/packages.csv'), 'utf8').trim().split('\n').slice(-ROWS)
  const client = await connect({ nodes: stack.nodes.map(({ tcp }) => tcp), deadlineMs: DEADLINE_MS })
  const waiting = new Set<Promise<void>>()
  let [due, sent, written] = [0, 0, 0]
  let refusal: unknown
  const write = async (): Promise<void> => {
    const [propertyId = '', roomType = '', date = ''] = (rows[sent++ % rows.length] ?? '').split(',')
    try {
      await client.setAvailability({ propertyId, roomType, date, amount: sent % ROOMS_MAX })
      written++
    } catch (error) {
      // Tests kill nodes and replace data, so failed writes are expected.
      if (!(error instanceof VacancyCallError)) throw error
      refusal = error
    }
  }
  const timer = setInterval(() => {
    for (due += (perSecond * TICK_MS) / 1_000; due >= 1; due--) {
      if (waiting.size >= WAITING_MAX) continue
      const one = write().finally(() => waiting.delete(one))
      waiting.add(one)
    }
  }, TICK_MS)
  return {
    written: () => written,
    async stop() {
      clearInterval(timer)
      await Promise.all(waiting)
      await client.close()
      if (written === 0) throw new Error('nothing was written while tests ran', { cause: refusal })
    },
  }
}

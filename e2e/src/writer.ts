/** Writes as a booking platform makes them, all the time: much of what a console shows is right on an idle shard only. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, VacancyCallError } from '@vacancy/client'
import type { Stack } from './stack.ts'

/** What every test and picture runs under. */
const USUAL_WRITES = 20
const TICK_MS = 50
const DEADLINE_MS = 20_000
/** While a shard accepts no writes, no more than these wait for it. */
const WAITING_MAX = 200
/** The last rows of the sample; tests ask for others. */
const ROWS = 200
const ROOMS_MAX = 9

export type Writer = {
  /** Writes that were acknowledged so far. */
  written(): number
  /** @throws Error when nothing was written at all */
  stop(): Promise<void>
}

/** Sets rooms left on nights of the sample, so many times a second. */
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
      // Nodes are killed and data replaced by the tests around it: what counts is that writes are made.
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

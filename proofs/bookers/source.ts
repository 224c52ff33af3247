/**
 * The source of record and the operator of a run with bookers: it deletes a property and sets it again below its holds, as a
 * full refresh does, and moves the beginning of the day. Both go on until they have their way.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { VacancyCallError, type VacancyClient, VacancyRequestError } from '@vacancy/client'
import { formatDay } from '@vacancy/shared'
import { somewhere } from '@vacancy/testkit/node'
import { between, pick, streamOf } from '@vacancy/testkit/random'
import { leaderOf, postText, type Shard } from '@vacancy/testkit/shard'
import { type Bookers, INVENTORY } from './clients.ts'

const EVERY_MS = { min: 5_000, max: 15_000 } as const
const PAUSE_MS = 50
/** Minutes after midnight UTC; at none of them the first night that bookers want is past. */
const DAY_BEGINS = [-840, -60, 0, 480, 1_200] as const

/** Until the bookers are over; a refresh is finished then. */
export async function runSource(all: Bookers, shard: Shard, client: VacancyClient, seed: number, pace: number) {
  const random = streamOf(seed, `source ${all.counts.refreshed}`)
  while (!all.isOver) {
    await wait(pace * between(random, EVERY_MS.min, EVERY_MS.max))
    if (all.isOver) return
    if (random.below(2) === 0) await refresh(all, client, pick(random, INVENTORY.properties))
    else if (await beginDay(shard, pick(random, DAY_BEGINS))) all.counts.dayBegins++
  }
}

/** The source counts all rooms and no booking: what was booked here is taken off. */
async function refresh(all: Bookers, client: VacancyClient, propertyId: string): Promise<void> {
  all.counts.refreshed++
  await insist(() => client.deleteProperty({ propertyId }))
  await setInventory(client, propertyId, all.firstDay, { asOf: 0 })
}

/** Sets a property with all of its rooms. */
export async function setInventory(client: VacancyClient, propertyId: string, firstDay: number, more = {}) {
  await insist(() => client.setProperty(somewhere(propertyId) as Parameters<VacancyClient['setProperty']>[0]))
  const places = INVENTORY.roomTypes.flatMap((roomType) =>
    Array.from({ length: INVENTORY.nights }, (_, n) => ({ roomType, date: formatDay(firstDay + n) })),
  )
  const values = { availability: INVENTORY.rooms, finalPrice: 100, rateFeatures: [], ...more }
  await Promise.all(places.map((place) => insist(() => client.setPackage({ propertyId, ...place, ...values }))))
}

/** Repeats a call until it has a reply. A deletion that took effect before is not found. */
export async function insist(call: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await call()
      return
    } catch (error) {
      if (error instanceof VacancyRequestError && error.code === 'NOT_FOUND') return
      if (!(error instanceof VacancyCallError)) throw error
      await wait(PAUSE_MS)
    }
  }
}

/** @returns whether the leader took it: it may be dead, or about to be */
async function beginDay(shard: Shard, value: number): Promise<boolean> {
  try {
    const [status] = await postText(await leaderOf(shard), '/admin/settings', { name: 'day_begins_minutes', value })
    return status === 202
  } catch {
    return false
  }
}

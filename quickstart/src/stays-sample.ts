/** Stays of a quick start, so that the calendars and the pages of stays show something. */

import { VacancyCallError, type VacancyClient } from '@vacancy/client'
import { shardSearch } from './searches.ts'

const PROPERTIES = 6
const HOLD_SECONDS = 86_400
const SOURCES = ['website', 'ota-17', 'phone'] as const

export type SampleStays = { readonly booked: number; readonly held: number; readonly property: string }

/**
 * Books a stay and holds another in each of the first properties of the search. Their ids belong to the dates of the
 * search, so that a second start on the same day adds none.
 *
 * @param today day number
 * @throws VacancyCallError when the shard answers nothing at all; a refused stay is left out
 */
export async function makeSampleStays(client: VacancyClient, today: number): Promise<SampleStays> {
  const { fields } = shardSearch(today)
  const [arrival = ''] = fields.dates
  const found = await client.searchAvailability({ ...fields, limit: PROPERTIES })
  const [, month = '', day = ''] = arrival.split('-')
  const counts = { booked: 0, held: 0 }
  for (const [number, { propertyId }] of found.entries()) {
    const line = { propertyId, roomType: fields.roomType, arrival, nights: fields.dates.length, rooms: 1 }
    const stay = { lines: [line], source: SOURCES[number % SOURCES.length] }
    const stayId = (kind: string) => `${kind}-${month}${day}-${number + 1}`
    if (await isTaken(client.bookStay({ ...stay, stayId: stayId('booked') }))) counts.booked++
    const held = client.holdStay({ ...stay, stayId: stayId('held'), seconds: HOLD_SECONDS })
    if (await isTaken(held)) counts.held++
  }
  return { ...counts, property: found[0]?.propertyId ?? '' }
}

/** The data belong to the user, who may have sold the rooms, or released these stays. */
async function isTaken(stay: Promise<unknown>): Promise<boolean> {
  try {
    await stay
    return true
  } catch (error) {
    if (error instanceof VacancyCallError) return false
    throw error
  }
}

/** Stays of a quick start, so that the calendars and the pages of stays show something. */

import { VacancyCallError, type VacancyClient } from '@vacancy/client'
import { shardSearch } from './searches.ts'

const PROPERTIES = 6
const HOLD_SECONDS = 86_400
const SOURCES = ['website', 'ota-17', 'phone'] as const

/** `property` has stays; '' when there are none. `refusal` is the reason of the last refused one. */
export type SampleStays = {
  readonly booked: number
  readonly held: number
  readonly property: string
  readonly refusal: string
}

/**
 * Books a stay and holds another in each of some properties, for the nights of the sample search. Their ids belong to
 * these nights: a second start in the same week finds the stays of the first.
 *
 * @param today day number
 * @throws VacancyCallError when availability cannot be searched; a refused stay is left out
 */
export async function makeSampleStays(client: VacancyClient, today: number): Promise<SampleStays> {
  const { segment, roomType, dates } = shardSearch(today).fields
  const [arrival = ''] = dates
  const [, month = '', day = ''] = arrival.split('-')
  const taken = { booked: 0, held: 0, property: '', refusal: '' }
  const isTaken = async (stay: Promise<unknown>) => {
    const refusal = await refusalOf(stay)
    taken.refusal = refusal || taken.refusal
    return refusal === ''
  }
  const found = await client.searchAvailability({ segment, roomType, dates, limit: PROPERTIES })
  for (let number = 1; number <= PROPERTIES; number++) {
    const [bookedId, heldId] = [`booked-${month}${day}-${number}`, `held-${month}${day}-${number}`]
    const propertyId = (await propertyOf(client, bookedId)) ?? found[number - 1]?.propertyId
    if (propertyId === undefined) break
    const line = { propertyId, roomType, arrival, nights: dates.length, rooms: 1 }
    const stay = { lines: [line], source: SOURCES[number % SOURCES.length] }
    if (!(await isTaken(client.bookStay({ ...stay, stayId: bookedId })))) continue
    taken.booked++
    taken.property ||= propertyId
    if (await isTaken(client.holdStay({ ...stay, stayId: heldId, seconds: HOLD_SECONDS }))) taken.held++
  }
  return taken
}

async function propertyOf(client: VacancyClient, stayId: string): Promise<string | undefined> {
  try {
    return (await client.stay(stayId)).lines[0]?.propertyId
  } catch (error) {
    if (error instanceof VacancyCallError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}

/** The data belong to the user, who may have sold the rooms, or released these stays. */
async function refusalOf(stay: Promise<unknown>): Promise<string> {
  try {
    await stay
    return ''
  } catch (error) {
    if (error instanceof VacancyCallError) return `${error.code} ${error.message}`
    throw error
  }
}

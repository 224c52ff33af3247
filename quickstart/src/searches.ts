/** The example searches of a quick start. Pure. */

import { formatDay, weekdayOf } from '@vacancy/shared'
import type { RequestFields } from '@vacancy/shared/wire'

export type SampleSearch = {
  readonly title: string
  readonly fields: RequestFields<'SEARCHAVAIL'> & { readonly roomType: string }
}

const FRIDAY = 5
const LONG_STAY_NIGHTS = 21

/** A search with results even in a small sample, run on each node of a shard. */
export function shardSearch(today: number): SampleSearch {
  const friday = fridayAfter(today)
  return {
    title: `Two nights from ${formatDay(friday)} (a Friday) in Tyrol, double room, at most 200 a night`,
    fields: { segment: 'tyrol', roomType: 'double', dates: datesFrom(friday, 2), finalPrice: 200 },
  }
}

/** @param today day number */
export function sampleSearches(today: number): readonly SampleSearch[] {
  const friday = fridayAfter(today)
  const sunday = friday + 2
  return [
    {
      title: `Two nights from ${formatDay(friday)} (a Friday) in Innsbruck, double room, breakfast, at most 150 a night`,
      fields: {
        segment: 'tyrol',
        roomType: 'double',
        area: 'innsbruck',
        dates: datesFrom(friday, 2),
        finalPrice: 150,
        rateFeatures: ['includes_breakfast'],
      },
    },
    {
      title: `Three nights from ${formatDay(sunday)} within 10 km of the cable car in Chamonix, one bedroom, a kitchen`,
      fields: {
        segment: 'savoy',
        roomType: 'one_bedroom',
        dates: datesFrom(sunday, 3),
        latitude: 45.9187,
        longitude: 6.8696,
        radiusMetres: 10_000,
        amenities: ['kitchen'],
      },
    },
    {
      title: `Three weeks from ${formatDay(sunday)} in Valais, apartment, free cancellation on every night`,
      fields: {
        segment: 'valais',
        roomType: 'one_bedroom',
        dates: datesFrom(sunday, LONG_STAY_NIGHTS),
        rateFeatures: ['free_cancellation'],
      },
    },
  ]
}

/** The command that lists the five cheapest of that weekend, with their totals. */
export function cheapestOfWeekend(today: number): string {
  const weekend = `--from ${formatDay(fridayAfter(today))} --nights 2`
  return `npx vacancy query search --segment tyrol --room-type double ${weekend} --order total --limit 5`
}

/** Of the second weekend from today, so that it is in the future even on a Saturday. */
function fridayAfter(today: number): number {
  return today + 7 + ((FRIDAY - weekdayOf(today) + 7) % 7)
}

function datesFrom(first: number, nights: number): string[] {
  return Array.from({ length: nights }, (_, night) => formatDay(first + night))
}

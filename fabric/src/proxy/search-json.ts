/** Replies of searches with a page, values or compact hits as JSON (docs/proxy.md#pages), from the reference decoder. Pure. */

import type { NightPackage, Result, SearchExplained, SearchPage, SearchValues } from '@vacancy/shared/wire'

type Stays = Result<'SEARCHAVAIL'>
type Properties = Result<'SEARCHPROP'>

/** The fields of the reply, without the braces. Compact hits have no days; properties without values are ids. */
export function searchJson(result: Stays | Properties, isCompact: boolean): string {
  const properties =
    'propertyIds' in result
      ? result.propertyIds.map((id, n) => (result.values ? { property_id: id, ...valuesOf(result.values[n]) } : id))
      : result.properties.map(({ propertyId, days, ...values }) => ({
          property_id: propertyId,
          ...valuesOf(values),
          ...(!isCompact && { days: days.map(nightOf) }),
        }))
  const body = {
    properties,
    ...(result.page && pageOf(result.page)),
    ...(result.explain && { explain: explainOf(result.explain) }),
  }
  return JSON.stringify(body).slice(1, -1)
}

function valuesOf(values: SearchValues | undefined): object {
  const { total, distanceMetres, latitude, longitude, roomType } = values ?? {}
  return {
    ...(total !== undefined && { total: exact(total) }),
    ...(distanceMetres !== undefined && { distance_metres: distanceMetres }),
    ...(latitude !== undefined && { latitude, longitude }),
    ...(roomType !== undefined && { room_type: roomType }),
  }
}

function nightOf({ date, availability, finalPrice, rateFeatures }: NightPackage): object {
  return { date, availability, final_price: finalPrice, rate_feature: rateFeatures }
}

function pageOf({ matches, more, cursor, index }: SearchPage): object {
  return { ...(matches !== undefined && { matches: exact(matches) }), more, cursor, index: exact(index) }
}

function explainOf({ rowsExamined, waitingMicros, searchingMicros, appliedIndex }: SearchExplained): object {
  return {
    rows_examined: rowsExamined,
    waiting_micros: waitingMicros,
    searching_micros: searchingMicros,
    applied_index: exact(appliedIndex),
  }
}

/** As in every reply: digits where that is exact for every reader, decimal text beyond 2^53 − 1. */
function exact(value: number | bigint): number | string {
  return typeof value === 'bigint' ? value.toString() : value
}

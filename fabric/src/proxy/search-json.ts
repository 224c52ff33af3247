/** Replies of searches with a page, values or compact hits as JSON (docs/proxy.md#pages), from the reference decoder. Pure. */

import { snakeCase } from '@vacancy/shared'
import type {
  CalendarDay,
  FlexibleStay,
  MapCell,
  NightPackage,
  Result,
  SearchExplained,
  SearchFacets,
  SearchPage,
  SearchValues,
} from '@vacancy/shared/wire'

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
    ...(result.facets && { facets: facetsOf(result.facets) }),
    ...(result.cells && { cells: result.cells.map(cellOf) }),
    ...(result.explain && { explain: explainOf(result.explain) }),
  }
  return JSON.stringify(body).slice(1, -1)
}

/** The same of a price calendar. Days on which nothing fits have no total. */
export function calendarJson({ nights, days, explain }: Result<'PRICECAL'>): string {
  const body = { nights, days: days.map(dayOf), ...(explain && { explain: explainOf(explain) }) }
  return JSON.stringify(body).slice(1, -1)
}

function dayOf({ arrival, total, properties, best }: CalendarDay): object {
  return {
    arrival,
    ...(total !== undefined && { total: exact(total) }),
    properties,
    ...(best !== undefined && { best }),
  }
}

/** The same of a search with flexible dates. */
export function flexibleJson({ arrivalDays, bestStays, page, explain }: Result<'SEARCHFLEX'>): string {
  const body = {
    arrival_days: arrivalDays,
    properties: bestStays.map(stayOf),
    ...(page && pageOf(page)),
    ...(explain && { explain: explainOf(explain) }),
  }
  return JSON.stringify(body).slice(1, -1)
}

function stayOf({ propertyId, arrival, nights, ...values }: FlexibleStay): object {
  return { property_id: propertyId, arrival, nights, ...valuesOf(values) }
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

function facetsOf(facets: SearchFacets): object {
  const inWords = (entry: object) =>
    Object.fromEntries(Object.entries(entry).map(([name, each]) => [snakeCase(name), each]))
  return Object.fromEntries(Object.entries(facets).map(([facet, entries]) => [snakeCase(facet), entries.map(inWords)]))
}

function cellOf({ lowestTotal, ...cell }: MapCell): object {
  return { ...cell, ...(lowestTotal !== undefined && { lowest_total: exact(lowestTotal) }) }
}

function explainOf(explained: SearchExplained): object {
  const { rowsExamined, waitingMicros, searchingMicros, appliedIndex, stages } = explained
  return {
    rows_examined: rowsExamined,
    waiting_micros: waitingMicros,
    searching_micros: searchingMicros,
    applied_index: exact(appliedIndex),
    ...(stages && {
      planning_micros: stages.planningMicros,
      examining_micros: stages.examiningMicros,
      writing_micros: stages.writingMicros,
    }),
  }
}

/** As in every reply: digits where that is exact for every reader, decimal text beyond 2^53 − 1. */
function exact(value: number | bigint): number | string {
  return typeof value === 'bigint' ? value.toString() : value
}

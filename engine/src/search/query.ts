/** A validated search, and where a request has its fields. */

import { assert, LIMITS } from '@vacancy/shared'
import { COMMANDS, type CommandSpec } from '@vacancy/shared/wire'
import { type CalendarQuery, createCalendarQuery } from './calendar-query.ts'
import { CURSOR_BYTES } from './cursor.ts'
import { BOX } from './parameters.ts'

/** A validated page; one object per thread, reused. */
export type PageQuery = {
  order: number
  want: number
  /** 0: no page trailer, 1: with the number of matches, 2: without it. */
  count: number
  isCompact: boolean
  minTotal: number
  maxTotal: number
  /** Totals are compared, or are part of the reply or the order. */
  hasTotals: boolean
  isAnyRoom: boolean
  /** Room types named, as ranges of the request; 0 for all of the segment. */
  roomTypes: number
  readonly nameStarts: Int32Array
  readonly nameEnds: Int32Array
  box: number
  south: number
  west: number
  north: number
  east: number
  hasCursor: boolean
  readonly cursor: Uint8Array
  /** SEARCH_FACETS that are counted, and those of them that are counted without their own filter, which is there. */
  facets: number
  disjunctive: number
  facetValues: number
  totalBounds: number
  readonly bounds: Float64Array
  /** Of a map; 0 for none. */
  columns: number
  rows: number
}

function createPageQuery(): PageQuery {
  return {
    ...{ order: 0, want: 0, count: 0, isCompact: false, minTotal: 0, maxTotal: 0, hasTotals: false },
    ...{ isAnyRoom: false, roomTypes: 0, box: BOX.none, south: 0, west: 0, north: 0, east: 0, hasCursor: false },
    nameStarts: new Int32Array(LIMITS.searchRoomTypesMax),
    nameEnds: new Int32Array(LIMITS.searchRoomTypesMax),
    cursor: new Uint8Array(CURSOR_BYTES),
    ...{ facets: 0, disjunctive: 0, facetValues: 0, totalBounds: 0, columns: 0, rows: 0 },
    bounds: new Float64Array(LIMITS.facetBoundsMax),
  }
}

export type SearchLimits = { readonly datesMax: number; readonly calendarDays: number; readonly queryLimit: number }

const FIELD_NAMES = [
  'segment',
  'roomType',
  'dates',
  'area',
  'propertyId',
  'propertyType',
  'stars',
  'category',
  'amenities',
  'longitude',
  'latitude',
  'availability',
  'finalPrice',
  'rateFeatures',
  'limit',
  'minPrice',
  'radiusMetres',
  'explain',
  'minStars',
  'cursor',
  'want',
  'count',
  'maxTotal',
  'minTotal',
  'compact',
  'anyRoomType',
  'roomTypes',
  'order',
  'south',
  'west',
  'north',
  'east',
  'facets',
  'totalBounds',
  'disjunctiveFacets',
  'facetValues',
  'cells',
] as const
const FIRST_PAGE_FIELD = FIELD_NAMES.indexOf('cursor')

/**
 * Position of each field in a search of this command. Both objects have the same keys, so that a lookup is a plain
 * load.
 */
export type SearchFields = { readonly [name in (typeof FIELD_NAMES)[number]]: number } & {
  /** Bits in a scan of the fields that existing clients do not send: of the first 32 fields, and of the others. */
  readonly pageLow: number
  readonly pageHigh: number
}

function fieldsOf(command: CommandSpec): SearchFields {
  const places = FIELD_NAMES.map((name) => command.fields.findIndex((spec) => spec.name === name))
  const bits = (word: number) =>
    places.slice(FIRST_PAGE_FIELD).reduce((sum, at) => (at >= 0 && at >>> 5 === word ? sum | (1 << (at & 31)) : sum), 0)
  const entries = FIELD_NAMES.map((name, n) => [name, places[n]])
  return Object.fromEntries([...entries, ['pageLow', bits(0)], ['pageHigh', bits(1)]]) as SearchFields
}

// Position -1 marks a field that the command does not have, so it is never present.
export const SEARCH_FIELDS = {
  SEARCHPROP: fieldsOf(COMMANDS.SEARCHPROP),
  SEARCHAVAIL: fieldsOf(COMMANDS.SEARCHAVAIL),
  byDay: fieldsOf(COMMANDS.PRICECAL),
  byProperty: fieldsOf(COMMANDS.SEARCHFLEX),
}
assert(
  FIELD_NAMES.every((name) => SEARCH_FIELDS.SEARCHAVAIL[name] >= 0),
  'SEARCHAVAIL has all of the fields',
)

/** A validated search; one object per thread, reused. */
export type Search = {
  fields: SearchFields
  nights: number
  limit: number
  minAvailability: number
  features: number
  maxPrice: number
  minPrice: number
  stars: number
  /** Least stars; 0 for any. */
  minStars: number
  amenities: number
  readonly amenityStarts: Int32Array
  readonly amenityEnds: Int32Array
  hasProperty: boolean
  readonly propertyId: Uint8Array
  hasPosition: boolean
  /** Only properties within the radius: with a position, unless there is a box and no radius. */
  hasCircle: boolean
  latitude: number
  longitude: number
  radiusMetres: number
  explain: boolean
  /** Whether the explanation has the times of its stages. */
  explainStages: boolean
  readonly vector: Float64Array
  /** Of several arrival days. */
  readonly calendar: CalendarQuery
  /** SEARCH_FACETS whose filters are left out while matches are counted; 0 for the search itself. */
  without: number
  /** Whether the search is of a page, or has another field of PageQuery. */
  hasPage: boolean
  readonly page: PageQuery
}

export function createSearch(): Search {
  return {
    fields: SEARCH_FIELDS.SEARCHPROP,
    nights: 0,
    limit: 0,
    minAvailability: 0,
    features: 0,
    maxPrice: 0,
    minPrice: 0,
    stars: 0,
    minStars: 0,
    amenities: 0,
    amenityStarts: new Int32Array(LIMITS.amenitiesMax),
    amenityEnds: new Int32Array(LIMITS.amenitiesMax),
    hasProperty: false,
    propertyId: new Uint8Array(16),
    hasPosition: false,
    hasCircle: false,
    latitude: 0,
    longitude: 0,
    radiusMetres: 0,
    explain: false,
    explainStages: false,
    vector: new Float64Array(3),
    calendar: createCalendarQuery(),
    without: 0,
    hasPage: false,
    page: createPageQuery(),
  }
}

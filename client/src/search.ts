/** Searches as the client's methods take and return them: fields in words, values by what was asked for, pages. */

import { VacancyError } from '@vacancy/shared'
import {
  hasPages,
  type MapCell,
  type NightPackage,
  type RequestFields,
  type Result,
  type SearchBox,
  type SearchCommand,
  type SearchFacet,
  type SearchFacets,
  type SearchNear,
  type SearchOrder,
  type SearchStay,
  type SearchWant,
  type SearchWeekday,
  searchFields,
} from '@vacancy/shared/wire'
import { badArgument, errorOfClient } from './errors.ts'

/** Fields of the wire that searches of the client spell in words, or that belong to pages. */
type Reworded =
  | ('order' | 'want' | 'count' | 'cursor' | 'compact' | 'anyRoomType' | 'roomType' | 'roomTypes' | 'dates')
  | 'weekdays'
  | ('south' | 'west' | 'north' | 'east')
  | ('facets' | 'totalBounds' | 'disjunctiveFacets' | 'facetValues' | 'cells')

type Place = {
  /** A position; or `latitude`, `longitude` and `radiusMetres`. */
  readonly near?: SearchNear | undefined
  /** Properties in this box. With a position, the radius holds only if one is given. */
  readonly box?: SearchBox | undefined
}

/** `stay` is short for its consecutive dates. */
type Nights =
  | { readonly stay: SearchStay; readonly dates?: undefined }
  | { readonly dates: readonly string[]; readonly stay?: undefined }

/** One room type; or each property once, with its cheapest room type of all or of up to 16. */
type RoomChoice =
  | { readonly roomType: string; readonly anyRoomType?: false | undefined; readonly roomTypes?: undefined }
  | { readonly anyRoomType: true; readonly roomType?: undefined; readonly roomTypes?: undefined }
  | { readonly roomTypes: readonly string[]; readonly roomType?: undefined; readonly anyRoomType?: undefined }

/** A search for stays. Its results have the total where they are ordered or bounded by it, or any room type may be found. */
export type AvailabilitySearch = Omit<RequestFields<'SEARCHAVAIL'>, Reworded> &
  Nights &
  RoomChoice &
  Place & {
    /** Rooms needed, on every night; the same as `availability`. */
    readonly rooms?: number | undefined
    /** Without one, an internal order, or by total if any room type may be found. */
    readonly order?: SearchOrder | undefined
    /** More values of each property. */
    readonly want?: readonly SearchWant[] | undefined
    /** Without the days of each property: much smaller replies. */
    readonly compact?: boolean | undefined
  }

/** A search for properties. */
export type PropertySearch = Omit<RequestFields<'SEARCHPROP'>, Reworded> &
  Place & { readonly order?: Exclude<SearchOrder, 'total' | 'totalDown'> | undefined }

/** What a page is asked for beside its search. */
type PageFields = {
  /** Of the page before; '' or absent for the first one. */
  readonly cursor?: string | undefined
  /** Returns the exact number of matches on all pages. */
  readonly count?: boolean | undefined
  /** Values of each facet at most, 1 to 255; 50 when absent. */
  readonly facetValues?: number | undefined
  /** Columns and rows, 1 to 32 each: returns the number of matches in each cell of the box, on all pages. */
  readonly cells?: readonly [columns: number, rows: number] | undefined
}
type PropertyFacet = Exclude<SearchFacet, 'rateFeatures' | 'total' | 'roomType'>
type StayFacet = Exclude<SearchFacet, 'total'> | { readonly total: readonly number[] }

/** A page of an order; any room type implies the order by total. */
export type AvailabilityPageSearch = AvailabilitySearch &
  PageFields & {
    /** Returns how many matches have each value, on all pages; of the total between its bounds. */
    readonly facets?: readonly StayFacet[] | undefined
    /** Some of `facets`: counted as if their own filter were absent. */
    readonly disjunctiveFacets?: readonly SearchFacet[] | undefined
  } & ({ readonly order: SearchOrder } | { readonly anyRoomType: true } | { readonly roomTypes: readonly string[] })
export type PropertyPageSearch = PropertySearch &
  PageFields & {
    readonly order: Exclude<SearchOrder, 'total' | 'totalDown'>
    readonly want?: readonly ('distance' | 'position')[] | undefined
    readonly facets?: readonly PropertyFacet[] | undefined
    readonly disjunctiveFacets?: readonly PropertyFacet[] | undefined
  }

/** Arrival days and rooms of a search of several of them. */
type Arrivals = RoomChoice &
  Place & {
    /** Rooms needed, on every night; the same as `availability`. */
    readonly rooms?: number | undefined
    /** Arrivals on these weekdays only. */
    readonly weekdays?: readonly SearchWeekday[] | undefined
  }

/** Stays of `nights` nights from each arrival day, `from` to `to`, of one property or of a whole search. */
export type CalendarSearch = Omit<RequestFields<'PRICECAL'>, Reworded> & Arrivals

/** Stays of `nights` to `mostNights` nights from any arrival day, `from` to `to`. */
export type FlexibleSearch = Omit<RequestFields<'SEARCHFLEX'>, Reworded> &
  Arrivals &
  PageFields & {
    /** By total when absent. */
    readonly order?: SearchOrder | undefined
    /** More values of each property; the total is always there. */
    readonly want?: readonly SearchWant[] | undefined
  }

type Values = {
  readonly total: { total: number | bigint }
  readonly distance: { distanceMetres: number }
  readonly position: { latitude: number; longitude: number }
  readonly roomType: { roomType: string }
}
type AnyRoom = { readonly anyRoomType: true } | { readonly roomTypes: readonly string[] }

/** What a search returns without being asked. */
type Implied<F> =
  | (F extends { readonly order: 'total' | 'totalDown' } ? 'total' : never)
  | (F extends { readonly maxTotal: number | bigint } | { readonly minTotal: number | bigint } ? 'total' : never)
  | (F extends { readonly order: 'distance' } ? 'distance' : never)
  | (F extends AnyRoom ? 'total' | 'roomType' : never)
/** The values that are there for certain: of a list whose content is known when it is compiled. */
type Certain<F> = F extends { readonly want: infer W extends readonly SearchWant[] }
  ? number extends W['length']
    ? never
    : W[number]
  : never
type Possible<F> = F extends { readonly want: readonly (infer W extends SearchWant)[] } ? W : never

type ValuesOf<Want extends SearchWant> = ('total' extends Want ? Values['total'] : unknown) &
  ('distance' extends Want ? Values['distance'] : unknown) &
  ('position' extends Want ? Values['position'] : unknown) &
  ('roomType' extends Want ? Values['roomType'] : unknown)

type HitValues<F, Want extends SearchWant> = ValuesOf<Want> & Partial<ValuesOf<Exclude<Possible<F>, Want>>>

/** A property found, with the values that the search `F` returns. */
export type AvailabilityHit<F> = {
  propertyId: string
} & (F extends { readonly compact: true } ? unknown : { days: NightPackage[] }) &
  HitValues<F, Certain<F> | Implied<F>>
export type PropertyHit<F> = { propertyId: string } & HitValues<F, Certain<F>>

/** A property with its best stay: of the lowest price per night, then the first arrival, then the fewest nights. */
export type FlexibleHit<F> = {
  propertyId: string
  arrival: string
  nights: number
  total: number | bigint
} & HitValues<F, Certain<F> | Implied<F>>
type FacetOf<Each> = Each extends SearchFacet ? Each : Each extends { readonly total: unknown } ? 'total' : never
type CountsOf<F> = (F extends { readonly facets: infer List extends readonly unknown[] }
  ? number extends List['length']
    ? { facets: SearchFacets }
    : { facets: Required<Pick<SearchFacets, FacetOf<List[number]>>> }
  : unknown) &
  (F extends { readonly cells: readonly number[] }
    ? F extends { readonly stay: SearchStay } | { readonly dates: readonly string[] }
      ? { cells: (MapCell & { lowestTotal: number | bigint })[] }
      : { cells: MapCell[] }
    : unknown)

/** A page of a search `F`. */
export type SearchPage<F, Hit> = {
  properties: Hit[]
  /** Whether other properties follow. */
  more: boolean
  /** For the next page of the same search; '' on the last one. */
  cursor: string
  /** Log index of the state that the page was read from. */
  index: number | bigint
} & (F extends { readonly count: true }
  ? { matches: number }
  : F extends { readonly count: boolean }
    ? { matches?: number }
    : unknown) &
  CountsOf<F>

export type { SearchCommand }

type AnyPage = {
  properties: { propertyId: string }[]
  matches?: number
  more: boolean
  cursor: string
  index: number | bigint
  facets?: SearchFacets
  cells?: MapCell[]
}

/** What is spelt in words. Searches without any of it are sent as they are: they are the most frequent ones. */
const IN_WORDS = [
  ...(['stay', 'near', 'box', 'rooms', 'order', 'want', 'count', 'cursor', 'compact'] as const),
  ...(['anyRoomType', 'roomTypes', 'maxTotal', 'minTotal', 'weekdays'] as const),
  ...(['facets', 'disjunctiveFacets', 'facetValues', 'cells'] as const),
]
const COUNTED = ['count', 'cursor', 'facets', 'disjunctiveFacets', 'facetValues', 'cells'] as const
const OF_PAGES = { SEARCHAVAIL: COUNTED, SEARCHPROP: [...COUNTED, 'want'], PRICECAL: [] } as const
const PAGE_METHODS = {
  SEARCHAVAIL: 'searchPage or searchPages',
  SEARCHPROP: 'searchPropertyPage or searchPropertyPages',
  PRICECAL: '',
} as const

/**
 * The fields of a search without a page, as they are sent.
 *
 * @throws VacancyRequestError for a field that does not fit, or that only a page has
 */
export function plainSearch<Name extends Exclude<SearchCommand, 'SEARCHFLEX'>>(
  command: Name,
  fields: object,
): RequestFields<Name> {
  refuseOther(command, fields)
  const given = fields as { readonly [name: string]: unknown }
  if (!IN_WORDS.some((name) => given[name] !== undefined)) return fields as RequestFields<Name>
  for (const name of OF_PAGES[command]) {
    if (given[name] !== undefined) throw badArgument(command, `${name} is for pages: use ${PAGE_METHODS[command]}`)
  }
  return sent(command, fields)
}

function refuseOther(command: SearchCommand, fields: unknown): void {
  if (typeof fields !== 'object' || fields === null) throw badArgument(command, `${command} takes an object of fields`)
}

function sent<Name extends SearchCommand>(command: Name, fields: object): RequestFields<Name> {
  try {
    return searchFields(command, fields as { readonly [name: string]: unknown }) as RequestFields<Name>
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    throw badArgument(command, error.message, error)
  }
}

type Ask = <Name extends SearchCommand>(command: Name, fields: RequestFields<Name>) => Promise<Result<Name>>

/** One page of a search. @throws VacancyRequestError for a field that does not fit */
export async function searchPage(command: SearchCommand, fields: object, ask: Ask): Promise<AnyPage> {
  refuseOther(command, fields)
  const { cursor, count = false, ...rest } = fields as PageFields
  const search = { ...rest, count, ...(cursor !== undefined && cursor !== '' && { cursor }) }
  if (!hasPages(command, search)) {
    const orders = command === 'SEARCHPROP' ? 'distance, stars or id' : 'total, totalDown, distance, stars or id'
    throw badArgument(command, `a page needs order: ${orders}`)
  }
  const result: Partial<Result<'SEARCHAVAIL'> & Result<'SEARCHPROP'> & Result<'SEARCHFLEX'>> = await ask(
    command,
    sent(command, search),
  )
  const { page, propertyIds, values, properties, bestStays, facets, cells } = result
  if (page === undefined) {
    throw errorOfClient('malformed_reply', { command, inDoubt: false }, { reason: 'it has no page' })
  }
  const { matches, more, index } = page
  return {
    properties: properties ?? bestStays ?? (propertyIds ?? []).map((propertyId, n) => ({ propertyId, ...values?.[n] })),
    ...(matches !== undefined && { matches: Number(matches) }),
    more,
    cursor: page.cursor,
    index,
    ...(facets && { facets }),
    ...(cells && { cells }),
  }
}

/** All pages from the one of `fields.cursor` on. A property whose place changed meanwhile comes once. */
export async function* searchPages(command: SearchCommand, fields: object, ask: Ask): AsyncGenerator<AnyPage, void> {
  const seen = new Set<string>()
  let from = fields as PageFields
  for (;;) {
    const page = await searchPage(command, from, ask)
    const properties = page.properties.filter(({ propertyId }) => !seen.has(propertyId))
    for (const { propertyId } of properties) seen.add(propertyId)
    yield { ...page, properties }
    if (!page.more) return
    from = { ...fields, cursor: page.cursor }
  }
}

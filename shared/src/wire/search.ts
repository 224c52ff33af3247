/** The numbers of a search's order and wanted values on the wire (docs/design/protocol.md#pages-of-a-search). */

/** Values of the field `order`. Ties are broken by the packed id. */
export const SEARCH_ORDERS = {
  row: 0,
  total: 1,
  totalDown: 2,
  distance: 3,
  stars: 4,
  score: 5,
  id: 6,
} as const

/** Bits of the field `want`, and of the mask before the values in a reply. */
export const SEARCH_WANTS = { total: 1, distance: 2, position: 4, roomType: 8 } as const

/** Bits of the field `weekdays`: days of arrival. */
export const WEEKDAY_BITS = { mon: 1, tue: 2, wed: 4, thu: 8, fri: 16, sat: 32, sun: 64 } as const
/** Bits of the fields `facets` and `disjunctiveFacets`: what the matches are counted by, named like its filter. */
export const SEARCH_FACETS = {
  propertyType: 1,
  category: 2,
  stars: 4,
  area: 8,
  amenities: 16,
  rateFeatures: 32,
  total: 64,
  roomType: 128,
} as const
/** Those that SEARCHPROP has: it reads no nights. */
export const PROPERTY_FACETS = 31

/** Fields of a search that order, cut, describe or count its matches; all others say what matches. */
export const HIT_FIELDS: ReadonlySet<string> = new Set([
  ...['limit', 'order', 'cursor', 'want', 'count', 'compact', 'explain'],
  ...['facets', 'totalBounds', 'disjunctiveFacets', 'facetValues', 'cells'],
])

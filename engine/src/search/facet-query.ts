/** The fields of a search that ask for counts: by value, and by cell of the box (docs/design/search.md#counts). */

import { LIMITS } from '@vacancy/shared'
import { PROPERTY_FACETS, SEARCH_FACETS } from '@vacancy/shared/wire'
import { endOf, isGiven, readU8, readU32, refuse, startOf, type Values } from '../protocol/values.ts'
import type { PageQuery, Search, SearchFields } from './query.ts'

const ALL_FACETS = Object.values(SEARCH_FACETS).reduce((sum, bit) => sum | bit, 0)

/** Reads each field by ascending id, then what they need of each other. The first error is in `values.fault`. */
export function checkFacets(search: Search, values: Values): void {
  const { page, fields } = search
  const isStay = fields.totalBounds >= 0
  const most = isStay ? ALL_FACETS : PROPERTY_FACETS
  page.facets = readMask(values, fields.facets, 'facets', most, isStay ? '' : ' in SEARCHPROP')
  readBounds(page, values, fields)
  const disjunctive = readMask(values, fields.disjunctiveFacets, 'disjunctiveFacets', most, '')
  page.facetValues = LIMITS.facetValuesDefault
  const hasValues = isGiven(values, fields.facetValues)
  if (hasValues) page.facetValues = readU8(values, fields.facetValues)
  if (page.facetValues === 0) refuse(values, `facetValues must be 1 to ${LIMITS.facetValuesMax}, got 0`)
  if (hasValues && page.facets === 0) refuse(values, 'facetValues needs facets')
  readCells(page, values, fields)
  if ((disjunctive & ~page.facets) !== 0) {
    refuse(values, `disjunctiveFacets must be some of facets, got ${disjunctive} and facets ${page.facets}`)
  }
  const hasTotal = (page.facets & SEARCH_FACETS.total) !== 0
  if (hasTotal && page.totalBounds === 0) refuse(values, 'facets with total needs totalBounds')
  if (!hasTotal && page.totalBounds > 0) refuse(values, 'totalBounds needs facets with total')
  if ((page.facets & SEARCH_FACETS.roomType) !== 0 && !page.isAnyRoom) {
    refuse(values, 'facets with roomType needs anyRoomType or roomTypes')
  }
  page.disjunctive = disjunctive & filtered(search, values)
}

/** What of the counts is of the total of a stay; '' for none. */
export function whatNeedsTotals({ facets, columns }: PageQuery): string {
  if ((facets & SEARCH_FACETS.total) !== 0) return 'facets with total'
  return columns > 0 ? 'cells' : ''
}

function readMask(values: Values, field: number, name: string, most: number, where: string): number {
  if (!isGiven(values, field)) return 0
  const mask = readU32(values, field)
  if (mask < 1 || mask > most) refuse(values, `${name} must be 1 to ${most}${where}, got ${mask}`)
  return mask
}

function readBounds(page: PageQuery, values: Values, { totalBounds: field }: SearchFields): void {
  page.totalBounds = 0
  if (field < 0 || !isGiven(values, field)) return
  const most = LIMITS.facetBoundsMax
  const [start, bytes] = [startOf(values, field), endOf(values, field) - startOf(values, field)]
  if (bytes === 0 || bytes % 8 !== 0 || bytes > most * 8) {
    return refuse(values, `totalBounds must be 1 to ${most} numbers of 8 bytes, got ${bytes} bytes`)
  }
  for (let n = 0; n < bytes / 8; n++) {
    const bound = readU64At(values, start + n * 8)
    const before = n === 0 ? 0 : page.bounds[n - 1]
    if (bound > Number.MAX_SAFE_INTEGER) return refuse(values, `totalBounds must be ${Number.MAX_SAFE_INTEGER} at most`)
    if (bound <= before) return refuse(values, `totalBounds must ascend from 1 on, got ${bound} after ${before}`)
    page.bounds[n] = bound
  }
  page.totalBounds = bytes / 8
}

function readU64At({ scan }: Values, at: number): number {
  return scan.view.getUint32(at, true) + scan.view.getUint32(at + 4, true) * 2 ** 32
}

function readCells(page: PageQuery, values: Values, fields: SearchFields): void {
  const { cells, south, west, north, east } = fields
  page.columns = 0
  page.rows = 0
  if (!isGiven(values, cells)) return
  const most = LIMITS.mapCellsMax
  const [start, bytes] = [startOf(values, cells), endOf(values, cells) - startOf(values, cells)]
  if (bytes !== 2) return refuse(values, `cells must be two numbers, columns and rows, got ${bytes}`)
  page.columns = values.scan.bytes[start]
  page.rows = values.scan.bytes[start + 1]
  if (Math.min(page.columns, page.rows) < 1 || Math.max(page.columns, page.rows) > most) {
    refuse(values, `cells must be 1 to ${most} columns and rows, got ${page.columns} and ${page.rows}`)
  }
  if (![south, west, north, east].every((edge) => isGiven(values, edge))) {
    refuse(values, 'cells needs a box, south, west, north and east')
  }
}

/** The facets whose own filter the search has. */
function filtered(search: Search, values: Values): number {
  const { fields, page } = search
  const has = (field: number) => field >= 0 && isGiven(values, field)
  const { propertyType, category, stars, area, amenities, rateFeatures, total, roomType } = SEARCH_FACETS
  return (
    (has(fields.propertyType) ? propertyType : 0) |
    (has(fields.category) ? category : 0) |
    (search.stars > 0 || search.minStars > 0 ? stars : 0) |
    (has(fields.area) ? area : 0) |
    (search.amenities > 0 ? amenities : 0) |
    (has(fields.rateFeatures) ? rateFeatures : 0) |
    (has(fields.minTotal) || has(fields.maxTotal) ? total : 0) |
    (page.roomTypes > 0 ? roomType : 0)
  )
}

/**
 * Validates a search and plans it: names → numbers, bitmaps and planes → addresses, bounds → numbers, into the
 * parameter block of a kernel (docs/design/search.md#kernels).
 */

import { assert, LIMITS, writeUnitVector } from '@vacancy/shared'
import { SEARCH_FACETS } from '@vacancy/shared/wire'
import {
  checkName,
  checkSegment,
  endOf,
  isGiven,
  readAmenities,
  readDates,
  readDegrees,
  readFeatures,
  readPropertyId,
  readStars,
  readU8,
  readU32,
  readU64,
  startOf,
  type Values,
} from '../protocol/values.ts'
import { AXES, bitmapAddress, cellsWithin, findAttribute, isOverflowed, NO_CELLS } from '../store/bitmaps.ts'
import { findName, NAMES, type NameKind } from '../store/dictionary.ts'
import {
  ATTRIBUTE,
  ATTRIBUTE_SLOT,
  type Attribute,
  bitmapBytes,
  PLANE,
  POSITION,
  PROPERTY,
  ROOMS,
  SEGMENT,
  STATE,
  TABLE,
} from '../store/layout.ts'
import { planeOf } from '../store/planes.ts'
import { findProperty } from '../store/property-index.ts'
import { findRoom, segmentOf, tableOf } from '../store/segment.ts'
import { type Memory, state } from '../store/store.ts'
import { field, rowCountOf } from '../store/table-fields.ts'
import { checkCalendar, formOf } from './calendar-query.ts'
import { COLUMNS_MAX } from './columns.as.ts'
import { checkPage } from './page-query.ts'
import {
  AMENITIES_AT,
  AVAILABLE_AT,
  BITMAPS_AT,
  BITMAPS_MAX,
  BOX,
  COLUMN_BYTES,
  COLUMNS_AT,
  DATES_AT,
  MODE,
  PAGE,
  PAGE_AT,
  PAGE_WIDE,
  PARAMETER,
  PLANES_AT,
  POSITION_AT,
} from './parameters.ts'
import { SEARCH_FIELDS, type Search, type SearchFields, type SearchLimits } from './query.ts'

/** From this many nights on, rooms left are tested before words. For fewer nights the words alone are faster. */
const NARROW_NIGHTS_MIN = 5

/**
 * Validates all values of a search, in the order of their ids. The first error is in `values.fault`.
 */
export function checkSearch(search: Search, values: Values, limits: SearchLimits, forStay: boolean): void {
  const form = forStay ? formOf(values.scan.command) : 'none'
  search.calendar.form = form
  const { SEARCHAVAIL, SEARCHPROP } = SEARCH_FIELDS
  const fields = form !== 'none' ? SEARCH_FIELDS[form] : forStay ? SEARCHAVAIL : SEARCHPROP
  search.fields = fields
  checkSegment(values, fields.segment)
  if (forStay) checkName(values, fields.roomType)
  checkName(values, fields.area)
  search.hasProperty = forStay && isGiven(values, fields.propertyId)
  if (search.hasProperty) readPropertyId(values, fields.propertyId, search.propertyId, 0)
  checkName(values, fields.propertyType)
  search.stars = isGiven(values, fields.stars) ? readStars(values, fields.stars) : 0
  checkName(values, fields.category)
  checkAmenities(search, values, fields)
  checkPosition(search, values, fields)
  search.nights = 0
  search.without = 0
  search.minPrice = 0
  if (forStay && values.fault === '') checkStay(search, values, limits, fields)
  checkLimit(search, values, limits, fields, forStay)
  search.hasCircle = search.hasPosition
  search.hasPage =
    form !== 'none' || ((values.scan.seen & fields.pageLow) | (values.scan.seenHigh & fields.pageHigh)) !== 0
  if (search.hasPage) checkPage(search, values, forStay)
}

function checkAmenities(search: Search, values: Values, fields: SearchFields): void {
  readAmenities(values, fields.amenities)
  search.amenities = values.fault === '' ? values.entries : 0
  for (let i = 0; i < search.amenities; i++) {
    search.amenityStarts[i] = values.starts[i]
    search.amenityEnds[i] = values.ends[i]
  }
}

function checkPosition(search: Search, values: Values, fields: SearchFields): void {
  const { longitude, latitude } = fields
  search.hasPosition = isGiven(values, longitude) && isGiven(values, latitude)
  if (isGiven(values, longitude)) search.longitude = readDegrees(values, longitude, 180)
  if (isGiven(values, latitude)) search.latitude = readDegrees(values, latitude, 90)
  if (isGiven(values, longitude) !== isGiven(values, latitude)) {
    if (values.fault === '') values.fault = 'VALIDATION_ERROR: longitude and latitude come together'
  }
}

function checkStay(search: Search, values: Values, limits: SearchLimits, fields: SearchFields): void {
  const { availability, finalPrice: price } = fields
  // Stays of a calendar have other nights for each arrival: here is only that there are some.
  search.nights = search.calendar.form === 'none' ? readDates(values, fields.dates, limits.datesMax) : 1
  search.minAvailability = isGiven(values, availability) ? readU8(values, availability) : 1
  search.maxPrice = isGiven(values, price) ? Math.min(readU32(values, price), LIMITS.priceMax) : LIMITS.priceMax
  search.features = readFeatures(values, fields.rateFeatures)
}

function checkLimit(
  search: Search,
  values: Values,
  limits: SearchLimits,
  fields: SearchFields,
  forStay: boolean,
): void {
  const { explain, limit, radiusMetres: radius } = fields
  search.limit = limits.queryLimit
  if (isGiven(values, limit)) {
    const requested = readU64(values, limit)
    if (requested === 0 && values.fault === '') values.fault = 'VALIDATION_ERROR: limit must be 1 or more'
    search.limit = Math.min(requested, limits.queryLimit)
  }
  if (values.fault === '') checkCalendar(search.calendar, values, limits.calendarDays)
  if (forStay && isGiven(values, fields.minPrice)) {
    search.minPrice = readU32(values, fields.minPrice)
  }
  search.radiusMetres = LIMITS.radiusMetresDefault
  if (isGiven(values, radius)) {
    search.radiusMetres = readU32(values, radius)
    if (values.fault === '' && (search.radiusMetres < 1 || search.radiusMetres > LIMITS.radiusMetresMax)) {
      values.fault = `VALIDATION_ERROR: radiusMetres must be 1 to ${LIMITS.radiusMetresMax}`
    }
    if (values.fault === '' && !search.hasPosition) values.fault = 'VALIDATION_ERROR: radiusMetres needs a position'
  }
  search.minStars = isGiven(values, fields.minStars) ? readStars(values, fields.minStars) : 0
  const explained = isGiven(values, explain) ? readU8(values, explain) : 0
  search.explain = explained === 1 || explained === 2
  search.explainStages = explained === 2
  // The field count of a reply is a u16, and an extension field counts as well (docs/design/protocol.md#connection,
  // docs/design/protocol.md#extension-fields).
  const { replyStaysMax, replyStaysWithExtraMax, replyPropertiesMax, replyPropertiesWithExtraMax } = LIMITS
  const most = forStay ? replyStaysMax : replyPropertiesMax
  const mostWithExtra = forStay ? replyStaysWithExtraMax : replyPropertiesWithExtraMax
  search.limit = Math.min(search.limit, search.explain ? mostWithExtra : most)
}

/** @returns the segment to search, 0 when there is none */
export function segmentOfSearch(memory: Memory, search: Search, values: Values): number {
  const at = search.fields.segment
  return segmentOf(memory, findName(memory, NAMES.segment, values.scan.bytes, startOf(values, at), endOf(values, at)))
}

/** @returns the table to search, 0 when nothing can match */
export function tableOfSearch(memory: Memory, search: Search, values: Values): number {
  const { bytes } = values.scan
  const segment = segmentOfSearch(memory, search, values)
  if (segment === 0) return 0
  if (search.nights === 0) return field(memory, segment + SEGMENT.propertyTable)
  const roomField = search.fields.roomType
  const roomType = findName(memory, NAMES.roomType, bytes, startOf(values, roomField), endOf(values, roomField))
  return tableOf(memory, segment, roomType)
}

/**
 * Writes the parameter block, except output, limit and field id.
 *
 * @returns false when nothing can match
 */
export function planSearch(memory: Memory, parameters: number, search: Search, values: Values, table: number): boolean {
  return planRows(memory, parameters, search, values, table) && planNights(memory, parameters, search, values, table)
}

/** The same without nights. */
export function planRows(memory: Memory, parameters: number, search: Search, values: Values, table: number): boolean {
  const { u32 } = memory
  const p = parameters >>> 2
  u32[p + PARAMETER.firstRow] = 0
  u32[p + PARAMETER.endRow] = Atomics.load(u32, (table + TABLE.rowCount) >>> 2)
  u32[p + PARAMETER.rowProperties] = field(memory, table + TABLE.rowProperties)
  u32[p + PARAMETER.rowIds] = field(memory, table + TABLE.rowIds)
  u32[p + PARAMETER.nights] = search.nights
  u32[p + PARAMETER.minAvailability] = search.minAvailability
  u32[p + PARAMETER.features] = search.without & SEARCH_FACETS.rateFeatures ? 0 : search.features << 8
  u32[p + PARAMETER.invertedMin] = ~search.maxPrice
  // An inverted price of 0 is the empty word. It fails every bound, because invertedMin is at least 1.
  u32[p + PARAMETER.invertedMax] = ~search.minPrice
  u32[p + PARAMETER.mode] = MODE.encode
  u32[p + PARAMETER.bitmaps] = 0
  u32[p + PARAMETER.columns] = 0
  u32[p + PARAMETER.amenities] = 0
  if (search.hasProperty && !planProperty(memory, parameters, search, table)) return false
  if (!planAttributes(memory, parameters, search, values, table)) return false
  planPosition(memory, parameters, search)
  planBox(memory, parameters, search, table)
  return true
}

/** Where the table has the bitmaps of its positions, and the cells that need no comparison of positions. */
function planBox(memory: Memory, parameters: number, { page }: Search, table: number): void {
  const { u32 } = memory
  const { box, south, west, north, east } = page
  const hasBitmaps = box !== BOX.none && field(memory, table + TABLE.bitmaps) !== 0
  const first = hasBitmaps ? bitmapAddress(memory, table, POSITION.firstBitmap) : 0
  u32[((parameters + PAGE_AT) >>> 2) + PAGE.positions] = first
  const wide = parameters + PAGE_AT
  u32[(wide + PAGE_WIDE.positionStride) >>> 2] = bitmapBytes(field(memory, table + TABLE.capacity))
  // Counts by cell read each position anyway.
  const hasWithin = hasBitmaps && box === BOX.within && page.columns === 0
  const latitudes = hasWithin ? cellsWithin(memory, table, AXES.latitude, south, north) : NO_CELLS
  u32[(wide + PAGE_WIDE.latitudeWithin) >>> 2] = latitudes
  u32[(wide + PAGE_WIDE.longitudeWithin) >>> 2] = hasWithin
    ? cellsWithin(memory, table, AXES.longitude, west, east)
    : NO_CELLS
}

/** Narrows the rows to the one of a single property. */
function planProperty(memory: Memory, parameters: number, search: Search, table: number): boolean {
  const property = findProperty(memory, search.propertyId, 0)
  if (property === 0) return false
  const entry = findRoom(memory, property, field(memory, table + TABLE.roomType))
  if (entry === 0 || field(memory, entry + ROOMS.table) !== table) return false
  const row = field(memory, entry + ROOMS.row)
  const p = parameters >>> 2
  if (row >= rowCountOf(memory, table)) return false
  memory.u32[p + PARAMETER.firstRow] = row
  memory.u32[p + PARAMETER.endRow] = row + 1
  return true
}

function planAttributes(memory: Memory, parameters: number, search: Search, values: Values, table: number): boolean {
  const hasBitmaps = field(memory, table + TABLE.bitmaps) !== 0
  if (hasBitmaps) addBitmap(memory, parameters, bitmapAddress(memory, table, 0))
  const { fields } = search
  const { without } = search
  const named = (facet: number, position: number, kind: NameKind, attribute: Attribute, column: number) => {
    if (!isGiven(values, position) || (without & facet) !== 0) return true
    const value = findName(memory, kind, values.scan.bytes, startOf(values, position), endOf(values, position))
    return value >= 0 && require(memory, parameters, table, attribute, column, value)
  }
  const { area, propertyType, category, stars, amenities } = SEARCH_FACETS
  if (!named(area, fields.area, NAMES.area, ATTRIBUTE.area, PROPERTY.area)) return false
  if (!named(propertyType, fields.propertyType, NAMES.type, ATTRIBUTE.type, PROPERTY.type)) return false
  if (!named(category, fields.category, NAMES.category, ATTRIBUTE.category, PROPERTY.category)) return false
  if ((without & stars) === 0) {
    if (search.stars > 0 && !require(memory, parameters, table, ATTRIBUTE.stars, PROPERTY.stars, search.stars))
      return false
    // A range: bitmaps are of single values.
    if (search.minStars > 1) addColumn(memory, parameters, PROPERTY.stars, search.minStars, LIMITS.starsMax)
  }
  for (let i = 0; i < search.amenities && (without & amenities) === 0; i++) {
    const start = search.amenityStarts[i]
    const amenity = findName(memory, NAMES.amenity, values.scan.bytes, start, search.amenityEnds[i])
    if (amenity < 0 || !require(memory, parameters, table, ATTRIBUTE.amenity, -1, amenity)) return false
  }
  return true
}

/** Adds a bitmap, or a check of each row's property without one. @returns false when no row has the value */
function require(
  memory: Memory,
  parameters: number,
  table: number,
  attribute: Attribute,
  column: number,
  value: number,
): boolean {
  const { u32 } = memory
  const p = parameters >>> 2
  const hasBitmaps = field(memory, table + TABLE.bitmaps) !== 0
  const slot = hasBitmaps ? findAttribute(memory, table, attribute, value) : 0
  if (slot !== 0) {
    addBitmap(memory, parameters, bitmapAddress(memory, table, field(memory, slot + ATTRIBUTE_SLOT.bitmap)))
    const first = Math.max(u32[p + PARAMETER.firstRow], field(memory, slot + ATTRIBUTE_SLOT.firstRow))
    const end = Math.min(u32[p + PARAMETER.endRow], field(memory, slot + ATTRIBUTE_SLOT.endRow))
    if (first >= end) return false
    u32[p + PARAMETER.firstRow] = first
    u32[p + PARAMETER.endRow] = end
  } else if (hasBitmaps && !isOverflowed(memory, table, attribute)) return false
  else if (column >= 0) {
    addColumn(memory, parameters, column, value, value)
  } else {
    const n = u32[p + PARAMETER.amenities]
    u32[((parameters + AMENITIES_AT) >>> 2) + n] = value
    u32[p + PARAMETER.amenities] = n + 1
  }
  return true
}

/** Looks at each row's property: its column lies in a range, both ends included. */
function addColumn({ u32 }: Memory, parameters: number, column: number, least: number, greatest: number): void {
  const n = u32[(parameters >>> 2) + PARAMETER.columns]
  assert(n < COLUMNS_MAX, 'a search has a bounded number of columns')
  const entry = (parameters + COLUMNS_AT + n * COLUMN_BYTES) >>> 2
  u32[entry] = column
  u32[entry + 1] = least
  u32[entry + 2] = greatest
  u32[(parameters >>> 2) + PARAMETER.columns] = n + 1
}

function addBitmap(memory: Memory, parameters: number, address: number): void {
  const n = memory.u32[(parameters >>> 2) + PARAMETER.bitmaps]
  assert(n < BITMAPS_MAX, 'a search has a bounded number of filters')
  memory.u32[((parameters + BITMAPS_AT) >>> 2) + n] = address
  memory.u32[(parameters >>> 2) + PARAMETER.bitmaps] = n + 1
}

function planPosition(memory: Memory, parameters: number, search: Search): void {
  memory.u32[(parameters >>> 2) + PARAMETER.hasPosition] = search.hasCircle ? 1 : 0
  if (!search.hasPosition) return
  writeUnitVector(search.vector, 0, search.latitude, search.longitude)
  const { f64 } = memory
  const to = (parameters + POSITION_AT) / 8
  for (let i = 0; i < 3; i++) f64[to + i] = search.vector[i]
  // A great-circle distance of at most r is a chord of at most 2 sin(r / 2R): the same points as with the haversine
  // formula.
  const chord = 2 * Math.sin(search.radiusMetres / (2 * LIMITS.earthRadiusMetres))
  f64[to + 3] = chord * chord
}

/** Writes the addresses of the nights. @returns false when a night has no package */
export function planNights(memory: Memory, parameters: number, search: Search, values: Values, table: number): boolean {
  const { u32, u16 } = memory
  const capacity = field(memory, table + TABLE.capacity)
  const dropped = state(memory, STATE.droppedBefore)
  const narrow = search.nights >= NARROW_NIGHTS_MIN && search.minAvailability > 0
  u32[(parameters >>> 2) + PARAMETER.narrowByAvailable] = narrow ? 1 : 0
  for (let night = 0; night < search.nights; night++) {
    const day = values.days[night]
    const plane = day < dropped ? 0 : planeOf(memory, table, day)
    if (plane === 0) return false
    u32[((parameters + PLANES_AT) >>> 2) + night] = plane + PLANE.words
    u32[((parameters + AVAILABLE_AT) >>> 2) + night] = plane + PLANE.words + capacity * 8
    u16[((parameters + DATES_AT) >>> 1) + night] = values.packedDays[day - values.today]
  }
  return true
}

/** The fields of a search that existing clients do not send: order, page, values, totals, any room type, box. */

import { formatDay, LIMITS } from '@vacancy/shared'
import { SEARCH_ORDERS, SEARCH_WANTS, textFault } from '@vacancy/shared/wire'
import { endOf, isGiven, readDegrees, readU8, readU64, refuse, startOf, type Values } from '../protocol/values.ts'
import { CURSOR_BYTES, digestOfSearch, readCursor } from './cursor.ts'
import { checkFacets, whatNeedsTotals } from './facet-query.ts'
import { BOX } from './parameters.ts'
import type { PageQuery, Search, SearchFields } from './query.ts'

/** Orders by the total of a stay, in words. */
const BY_TOTAL: { readonly [order: number]: string } = {
  [SEARCH_ORDERS.total]: 'order 1 (total)',
  [SEARCH_ORDERS.totalDown]: 'order 2 (totalDown)',
  [SEARCH_ORDERS.stars]: 'order 4 (stars)',
}

/** Each field by ascending id, then what they need of each other. The first error is in `values.fault`. */
export function checkPage(search: Search, values: Values, forStay: boolean): void {
  const { page, fields } = search
  const number = (field: number, name: string, least: number, most: number, absent: number) => {
    if (!has(values, field)) return absent
    const value = readU8(values, field)
    const accepted = most - least === 1 ? `${least} or ${most}` : `${least} to ${most}`
    if (value < least || value > most) refuse(values, `${name} must be ${accepted}, got ${value}`)
    return value
  }
  page.hasCursor = has(values, fields.cursor)
  if (page.hasCursor) {
    const fault = readCursor(
      values.scan.bytes,
      startOf(values, fields.cursor),
      endOf(values, fields.cursor),
      page.cursor,
    )
    if (fault !== '') refuse(values, fault)
  }
  page.want = number(fields.want, 'want', 1, 15, 0)
  page.count = number(fields.count, 'count', 1, 2, 0)
  page.maxTotal = has(values, fields.maxTotal) ? readU64(values, fields.maxTotal) : Number.MAX_SAFE_INTEGER
  page.minTotal = has(values, fields.minTotal) ? readU64(values, fields.minTotal) : 0
  page.isCompact = number(fields.compact, 'compact', 0, 1, 0) === 1
  page.isAnyRoom = number(fields.anyRoomType, 'anyRoomType', 0, 1, 0) === 1
  readRoomTypes(page, values, fields.roomTypes)
  const isNamed = has(values, fields.roomTypes)
  page.isAnyRoom ||= isNamed
  const { order: orderField } = fields
  const isOrdered = page.isAnyRoom || search.calendar.form !== 'none'
  page.order = number(orderField, 'order', 0, SEARCH_ORDERS.id, isOrdered ? SEARCH_ORDERS.total : SEARCH_ORDERS.row)
  checkFacets(search, values)
  readBox(page, values, fields)
  checkTogether(search, values, forStay)
  if (page.hasCursor && values.fault === '') {
    const view = new DataView(page.cursor.buffer)
    if (page.order === SEARCH_ORDERS.row) refuse(values, 'cursor needs an order of 1 or more')
    else if (view.getUint8(1) !== page.order)
      refuse(values, 'cursor belongs to another order, send that of its first page')
  }
  const { replyStaysWithExtraMax, replyPropertiesWithExtraMax } = LIMITS
  if (page.want !== 0 || page.count !== 0 || page.isCompact || page.facets !== 0 || page.columns !== 0) {
    search.limit = Math.min(search.limit, forStay ? replyStaysWithExtraMax : replyPropertiesWithExtraMax)
  }
  search.hasCircle = search.hasPosition && (page.box === BOX.none || isGiven(values, fields.radiusMetres))
}

function readRoomTypes(page: PageQuery, values: Values, field: number): void {
  page.roomTypes = 0
  if (field < 0 || !isGiven(values, field)) return
  const { bytes } = values.scan
  const end = endOf(values, field)
  const most = LIMITS.searchRoomTypesMax
  let count = 0
  for (let at = startOf(values, field); at < end && values.fault === ''; count++) {
    const start = at + 1
    at = start + bytes[at]
    if (at > end) return refuse(values, 'an entry of roomTypes runs past its end, each has a length byte before it')
    const fault = textFault(bytes, start, at, LIMITS.nameBytesMax)
    if (fault !== '') return refuse(values, `an entry of roomTypes ${fault}`)
    if (count >= most) continue
    page.nameStarts[count] = start
    page.nameEnds[count] = at
  }
  if (count === 0 || count > most) refuse(values, `roomTypes must name 1 to ${most} room types, got ${count}`)
  page.roomTypes = Math.min(count, most)
}

function readBox(page: PageQuery, values: Values, { south, west, north, east }: SearchFields): void {
  const given = [south, west, north, east].filter((field) => isGiven(values, field)).length
  page.box = BOX.none
  if (given === 0) return
  if (isGiven(values, south)) page.south = readDegrees(values, south, LIMITS.latitudeMax)
  if (isGiven(values, west)) page.west = readDegrees(values, west, LIMITS.longitudeMax)
  if (isGiven(values, north)) page.north = readDegrees(values, north, LIMITS.latitudeMax)
  if (isGiven(values, east)) page.east = readDegrees(values, east, LIMITS.longitudeMax)
  if (given < 4) return refuse(values, 'south, west, north and east come together')
  if (page.south > page.north) refuse(values, `south must be at most north, got ${page.south} and ${page.north}`)
  page.box = page.west > page.east ? BOX.across : BOX.within
  if (page.box === BOX.across || page.east - page.west === 360) return
  // 180 and -180 degrees are one meridian, on both sides of it.
  if (page.east === 180) [page.east, page.box] = [-180, BOX.across]
  else if (page.west === -180) [page.west, page.box] = [180, BOX.across]
}

function checkTogether(search: Search, values: Values, forStay: boolean): void {
  const { page, fields } = search
  const { order, want } = page
  if (!forStay && (want & (SEARCH_WANTS.total | SEARCH_WANTS.roomType)) !== 0) {
    refuse(values, `want must be 2, 4 or 6 in SEARCHPROP, got ${want}`)
  }
  if ((want & SEARCH_WANTS.distance) !== 0 && !search.hasPosition) {
    refuse(values, 'want with distance needs latitude and longitude')
  }
  if (page.isAnyRoom && isGiven(values, fields.roomType)) {
    refuse(values, `roomType and ${page.roomTypes > 0 ? 'roomTypes' : 'anyRoomType'} exclude each other`)
  }
  if (forStay && !page.isAnyRoom && !isGiven(values, fields.roomType)) {
    refuse(values, 'roomType is required, or anyRoomType 1, or roomTypes')
  }
  if (order === SEARCH_ORDERS.score) refuse(values, 'order 5 (score) is not available yet, 0 to 4 and 6 are')
  if (!forStay && (order === SEARCH_ORDERS.total || order === SEARCH_ORDERS.totalDown)) {
    refuse(values, `order must be 0, 3, 4 or 6 in SEARCHPROP, got ${order}`)
  }
  const isCalendar = search.calendar.form !== 'none'
  if (order === SEARCH_ORDERS.row && (page.isAnyRoom || isCalendar))
    refuse(values, `order must be 1 to 4 or 6 ${isCalendar ? 'in SEARCHFLEX' : 'with any room type'}, got 0`)
  if (order === SEARCH_ORDERS.distance && !search.hasPosition) {
    refuse(values, 'order 3 (distance) needs latitude and longitude')
  }
  const isBounded = has(values, fields.minTotal) || has(values, fields.maxTotal)
  const byTotal = forStay ? BY_TOTAL[order] : undefined
  const counted = whatNeedsTotals(page)
  page.hasTotals =
    isCalendar ||
    (forStay &&
      (byTotal !== undefined || isBounded || page.isAnyRoom || (want & SEARCH_WANTS.total) !== 0 || counted !== ''))
  if (isCalendar || !page.hasTotals || values.fault !== '') return
  const what = isBounded
    ? has(values, fields.maxTotal)
      ? 'maxTotal'
      : 'minTotal'
    : (byTotal ?? (page.isAnyRoom ? 'any room type' : counted || 'want with total'))
  const { days } = values
  for (let night = 1; night < search.nights; night++) {
    if (days[night] === days[night - 1] + 1) continue
    const gap = `${formatDay(days[night - 1])} and ${formatDay(days[night])} are not`
    return refuse(values, `${what} needs consecutive dates, ${gap}`)
  }
}

function has(values: Values, field: number): boolean {
  return field >= 0 && isGiven(values, field)
}

/** Refuses a cursor of another search, or of another shard. */
export function checkCursor(search: Search, values: Values, genesis: Uint8Array): void {
  const { page } = search
  if (!page.hasCursor || values.fault !== '') return
  const found = new DataView(page.cursor.buffer).getUint32(CURSOR_BYTES - 8, true)
  if (found === digestOfSearch(values, genesis)) return
  refuse(values, 'cursor belongs to another search or shard, send all other fields as for its first page')
}

/** Replies of searches of several arrival days (docs/design/protocol.md#calendars). */

import { formatDay, parseDay } from '../dates.ts'
import { PROPERTY_ID_BYTES, unpackPropertyId, unpackPropertyIds } from '../property-id.ts'
import { addBytes, type FieldWriter, readU64 } from './fields.ts'
import { type Cursor, malformed, takeField } from './reply-fields.ts'
import { addValuesOf, bytesOfValues, packed, packedValues, type SearchValues, valueReaderOf } from './reply-search.ts'

/** An arrival day with the lowest total of a stay from it. */
export type CalendarDay = {
  /** YYYY-MM-DD. */
  arrival: string
  /** Prices of all nights of one room; undefined where no property fits. */
  total?: number | bigint
  /** Properties that fit. */
  properties: number
  /** Id of the cheapest of them; of equally cheap ones that of the lowest bytes. */
  best?: string
}

/** A property with its best stay. */
export type FlexibleStay = { propertyId: string; arrival: string; nights: number; total: number | bigint } & Omit<
  SearchValues,
  'total'
>

const TYPE_RECORDS = 0x0a
const DAY_BYTES = 15 + PROPERTY_ID_BYTES
/** Packed id, arrival, nights, total. */
const STAY_BYTES = PROPERTY_ID_BYTES + 2 + 1 + 8

export function addCalendarDays(to: FieldWriter, days: readonly CalendarDay[]): void {
  const bytes = new Uint8Array(2 + days.length * DAY_BYTES)
  const view = new DataView(bytes.buffer)
  view.setUint16(0, days.length, true)
  for (const [n, { arrival, total, properties, best }] of days.entries()) {
    const at = 2 + n * DAY_BYTES
    view.setUint16(at, parseDay(arrival) ?? 0, true)
    view.setUint8(at + 2, total === undefined ? 0 : 1)
    view.setBigUint64(at + 3, BigInt(total ?? 0), true)
    view.setUint32(at + 11, properties, true)
    if (best !== undefined) bytes.set(packed(best), at + 15)
  }
  addBytes(to, 2, TYPE_RECORDS, bytes)
}

export function takeCalendarDays(from: Cursor): CalendarDay[] {
  takeField(from, TYPE_RECORDS, -1)
  const { view, start, length } = from
  const count = length < 2 ? -1 : view.getUint16(start, true)
  if (length !== 2 + count * DAY_BYTES) throw malformed(from.command, `field ${from.id} has other days than it says`)
  return Array.from({ length: count }, (_, n) => {
    const at = start + 2 + n * DAY_BYTES
    const arrival = formatDay(view.getUint16(at, true))
    const properties = view.getUint32(at + 11, true)
    if (view.getUint8(at + 2) === 0) return { arrival, properties }
    return { arrival, total: readU64(view, at + 3), properties, best: unpackPropertyId(from.bytes, at + 15) }
  })
}

export function addFlexibleStays(to: FieldWriter, stays: readonly FlexibleStay[]): void {
  const bytes = packedValues(
    stays.map(({ total: _, ...values }) => values),
    STAY_BYTES,
  )
  const view = new DataView(bytes.buffer)
  const stride = stays.length === 0 ? 0 : strideOf(bytes[0] ?? 0)
  for (const [n, { arrival, nights, total }] of stays.entries()) {
    const at = LIST_HEAD_BYTES + n * stride + PROPERTY_ID_BYTES
    view.setUint16(at, parseDay(arrival) ?? 0, true)
    view.setUint8(at + 2, nights)
    view.setBigUint64(at + 3, BigInt(total), true)
  }
  addBytes(to, 2, TYPE_RECORDS, bytes)
}

const LIST_HEAD_BYTES = 5

function strideOf(mask: number): number {
  return STAY_BYTES + bytesOfValues(mask)
}

export function takeFlexibleStays(from: Cursor): FlexibleStay[] {
  takeField(from, TYPE_RECORDS, -1)
  const { view, start, length } = from
  if (length < LIST_HEAD_BYTES) throw malformed(from.command, `field ${from.id} has no number of properties`)
  const mask = view.getUint8(start)
  const hits = view.getUint32(start + 1, true)
  const reader = valueReaderOf(from, start + LIST_HEAD_BYTES, mask, hits, STAY_BYTES)
  const ids = unpackPropertyIds(from.bytes, start + LIST_HEAD_BYTES, reader.stride, hits)
  return ids.map((propertyId, n) => {
    const at = start + LIST_HEAD_BYTES + n * reader.stride + PROPERTY_ID_BYTES
    const stay = { arrival: formatDay(view.getUint16(at, true)), nights: view.getUint8(at + 2) }
    return addValuesOf({ propertyId, ...stay, total: readU64(view, at + 3) }, reader, n)
  })
}

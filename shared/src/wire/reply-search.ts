/** What only replies of searches have: the page, and values of each hit (docs/design/protocol.md#pages-of-a-search). */

import { assert } from '../assert.ts'
import { PROPERTY_ID_BYTES, packPropertyId, unpackPropertyIds } from '../property-id.ts'
import { addBytes, addField, type FieldWriter, readU64 } from './fields.ts'
import { type Cursor, isTrailer, malformed, takeField, takeTrailer, textAt } from './reply-fields.ts'
import { SEARCH_WANTS } from './search.ts'

const PAGE_ID = 0xfff8
const VALUES_ID = 0xfff9
const NOT_COUNTED = 2n ** 64n - 1n
const TYPE_RECORDS = 0x0a

/** A package as in replies. */
export type NightPackage = {
  /** YYYY-MM-DD. */
  date: string
  /** Rooms left, 0–255. */
  availability: number
  /** Price of the night, in the operator's unit. */
  finalPrice: number
  /** Names, in codec list order. Hits of a search share a list, which is frozen. */
  rateFeatures: string[]
}

/** What a search returns of its page, requested with `count`. */
export type SearchPage = {
  /** Number of all matches, on this page and others; only with `count: 1`. */
  matches?: number | bigint
  /** Log index of the state that the page was read from. */
  index: number | bigint
  /** Whether properties follow that are not on this page. */
  more: boolean
  /** For the next page; '' on the last one, and in row order. */
  cursor: string
}

/** Values of a hit, as requested with `want`. */
export type SearchValues = {
  /** Prices of all nights of one room. */
  total?: number | bigint
  /** Along a great circle, in whole metres. */
  distanceMetres?: number
  /** Degrees, to six places. */
  latitude?: number
  longitude?: number
  roomType?: string
}

export function addPage(to: FieldWriter, page: SearchPage | undefined): void {
  if (!page) return
  const cursor = new TextEncoder().encode(page.cursor)
  const at = addField(to, PAGE_ID, TYPE_RECORDS, 18 + cursor.length)
  to.view.setBigUint64(at, page.matches === undefined ? NOT_COUNTED : BigInt(page.matches), true)
  to.view.setBigUint64(at + 8, BigInt(page.index), true)
  to.view.setUint8(at + 16, page.more ? 1 : 0)
  to.view.setUint8(at + 17, cursor.length)
  to.bytes.set(cursor, at + 18)
}

function maskOfValues(values: SearchValues): number {
  return (
    (values.total === undefined ? 0 : SEARCH_WANTS.total) |
    (values.distanceMetres === undefined ? 0 : SEARCH_WANTS.distance) |
    (values.latitude === undefined ? 0 : SEARCH_WANTS.position) |
    (values.roomType === undefined ? 0 : SEARCH_WANTS.roomType)
  )
}

export function bytesOfValues(mask: number): number {
  const bytes = [8, 4, 8, 2]
  return bytes.reduce((sum, each, bit) => sum + (mask & (1 << bit) ? each : 0), 0)
}

/** The values of each hit, where the first one has any. */
export function addValues(to: FieldWriter, hits: readonly SearchValues[]): void {
  if (maskOfValues(hits[0] ?? {}) !== 0) addBytes(to, VALUES_ID, TYPE_RECORDS, packedValues(hits, 0))
}

/** The hits of a compact reply. */
export function addList(to: FieldWriter, hits: readonly (SearchValues & { readonly propertyId: string })[]): void {
  addBytes(to, 2, TYPE_RECORDS, packedValues(hits, PROPERTY_ID_BYTES))
}

export function packed(id: string): Uint8Array {
  const bytes = packPropertyId(id)
  assert(bytes !== undefined, 'the property ids of a reply are valid')
  return bytes
}

/** A mask, then the values of each hit, then the names of room types; in a compact list also the number of hits, and ids. */
export function packedValues(
  hits: readonly (SearchValues & { readonly propertyId?: string })[],
  idBytes: number,
): Uint8Array {
  const mask = maskOfValues(hits[0] ?? {})
  const names = [...new Set(hits.flatMap(({ roomType }) => roomType ?? []))].map((name) =>
    new TextEncoder().encode(name),
  )
  const places = new Map([...new Set(hits.map(({ roomType }) => roomType))].map((name, n) => [name, n]))
  const hasNames = (mask & SEARCH_WANTS.roomType) !== 0
  const head = idBytes === 0 ? 1 : 5
  const stride = idBytes + bytesOfValues(mask)
  const nameBytes = hasNames ? names.reduce((sum, { length }) => sum + 1 + length, 2) : 0
  const bytes = new Uint8Array(head + hits.length * stride + nameBytes)
  const view = new DataView(bytes.buffer)
  bytes[0] = mask
  if (idBytes > 0) view.setUint32(1, hits.length, true)
  let at = head
  for (const { propertyId, total, distanceMetres, latitude, longitude, roomType } of hits) {
    if (idBytes > 0) bytes.set(packed(propertyId ?? ''), at)
    at += idBytes
    if (total !== undefined) view.setBigUint64(at, BigInt(total), true)
    at += total === undefined ? 0 : 8
    if (distanceMetres !== undefined) view.setUint32(at, distanceMetres, true)
    at += distanceMetres === undefined ? 0 : 4
    if (latitude !== undefined) view.setInt32(at, Math.round(latitude * MICRODEGREES), true)
    if (longitude !== undefined) view.setInt32(at + 4, Math.round(longitude * MICRODEGREES), true)
    at += latitude === undefined ? 0 : 8
    if (roomType !== undefined) view.setUint16(at, places.get(roomType) ?? 0, true)
    at += roomType === undefined ? 0 : 2
  }
  if (!hasNames) return bytes
  view.setUint16(at, names.length, true)
  at += 2
  for (const name of names) {
    bytes[at] = name.length
    bytes.set(name, at + 1)
    at += 1 + name.length
  }
  return bytes
}

const MICRODEGREES = 1e6

const PAGE_HEAD_BYTES = 18

export function takePage(from: Cursor): { page?: SearchPage } {
  if (!takeTrailer(from, PAGE_ID)) return {}
  const { view, start, length } = from
  if (length < PAGE_HEAD_BYTES || length !== PAGE_HEAD_BYTES + view.getUint8(start + 17)) {
    throw malformed(from.command, `field ${from.id} is not a page`)
  }
  const counted = view.getBigUint64(start, true)
  const page = {
    index: readU64(view, start + 8),
    more: view.getUint8(start + 16) === 1,
    cursor: textAt(from, start + PAGE_HEAD_BYTES, from.at),
  }
  return { page: counted === NOT_COUNTED ? page : { matches: readU64(view, start), ...page } }
}

/** Where the values of hits are, `stride` bytes apart. */
export type ValueReader = {
  readonly from: Cursor
  readonly at: number
  readonly stride: number
  readonly mask: number
  readonly names: readonly string[]
}

/** Finds the values of `hits` hits, with an id and others in the `before` bytes before each of them. */
export function valueReaderOf(from: Cursor, start: number, mask: number, hits: number, before: number): ValueReader {
  const { view, bytes } = from
  const stride = before + bytesOfValues(mask)
  let end = start + hits * stride
  if (end > from.at) throw broken(from)
  const names: string[] = []
  if (mask & SEARCH_WANTS.roomType) {
    if (end + 2 > from.at) throw broken(from)
    const count = view.getUint16(end, true)
    end += 2
    for (let n = 0; n < count; n++) {
      const stop = end + 1 + (bytes[end] ?? 0)
      if (stop > from.at) throw broken(from)
      names.push(textAt(from, end + 1, stop))
      end = stop
    }
  }
  if (end !== from.at) throw broken(from)
  return { from, at: start + before, stride, mask, names }
}

function broken(from: Cursor): Error {
  return malformed(from.command, `field ${from.id} has other values than it says`)
}

/** Adds the values of a hit to it. */
export function addValuesOf<Hit extends SearchValues>(hit: Hit, reader: ValueReader, n: number): Hit {
  const { mask, from, names } = reader
  const { view } = from
  let at = reader.at + n * reader.stride
  if (mask & SEARCH_WANTS.total) {
    hit.total = readU64(view, at)
    at += 8
  }
  if (mask & SEARCH_WANTS.distance) {
    hit.distanceMetres = view.getUint32(at, true)
    at += 4
  }
  if (mask & SEARCH_WANTS.position) {
    hit.latitude = view.getInt32(at, true) / MICRODEGREES
    hit.longitude = view.getInt32(at + 4, true) / MICRODEGREES
    at += 8
  }
  if (mask & SEARCH_WANTS.roomType) {
    const name = names[view.getUint16(at, true)]
    if (name === undefined) throw broken(from)
    hit.roomType = name
  }
  return hit
}

/** Where the values trailer of so many hits has them; undefined without one. */
export function takeValuesTrailer(from: Cursor, hits: number): ValueReader | undefined {
  if (!takeTrailer(from, VALUES_ID)) return undefined
  if (from.length === 0) throw malformed(from.command, `field ${from.id} has no mask`)
  return valueReaderOf(from, from.start + 1, from.view.getUint8(from.start), hits, 0)
}

type Hit = SearchValues & { propertyId: string; days: NightPackage[] }

/** A constructor, so that values of any choice are part of the object; its prototype makes a hit plain data. */
function HitWithValues(this: Hit, propertyId: string, days: NightPackage[], reader: ValueReader, n: number): void {
  this.propertyId = propertyId
  this.days = days
  addValuesOf(this, reader, n)
}
HitWithValues.prototype = Object.prototype
export const hitWithValues = HitWithValues as unknown as new (...values: Parameters<typeof HitWithValues>) => Hit

/** Compact hits share it, so it is frozen. */
const NO_DAYS: NightPackage[] = Object.freeze([]) as never

/** The list of a compact reply, where the next field is one. */
export function takeList(from: Cursor): Hit[] | undefined {
  if (from.fieldsLeft === 0 || isTrailer(from) || from.bytes[from.at + 2] !== TYPE_RECORDS) return undefined
  takeField(from, TYPE_RECORDS, -1)
  if (from.length < 5) throw malformed(from.command, `field ${from.id} has no number of hits`)
  const mask = from.view.getUint8(from.start)
  const hits = from.view.getUint32(from.start + 1, true)
  const reader = valueReaderOf(from, from.start + 5, mask, hits, PROPERTY_ID_BYTES)
  const ids = unpackPropertyIds(from.bytes, from.start + 5, reader.stride, hits)
  return ids.map((id, n) => new hitWithValues(id, NO_DAYS, reader, n))
}

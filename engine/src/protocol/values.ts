/**
 * Values of a request, validated and read in place, without strings or objects (docs/design/protocol.md#values).
 * Stops at the first error: `fault` then holds the error text, and the return value is undefined.
 */

import {
  addOneYear,
  type CodecList,
  formatDay,
  LIMITS,
  packDay,
  packPropertyIdInto,
  parseDayBytes,
  RESERVED_SEGMENTS,
  yearOf,
} from '@vacancy/shared'
import { cleanErrorText, createRequestScan, type RequestScan, textFault } from '@vacancy/shared/wire'

const COMMA = 0x2c
const BLANK = 0x20
const DATE_BYTES = 10
const decoder = new TextDecoder()
const encoder = new TextEncoder()

export type Values = {
  readonly scan: RequestScan
  fault: string
  today: number
  lastDay: number
  /** Each day from today to the last one, in the format of replies. */
  readonly packedDays: Uint16Array
  readonly featureNames: readonly Uint8Array[]
  readonly reserved: readonly Uint8Array[]
  /** Entries of the last list read: [starts[i], ends[i]). */
  readonly starts: Int32Array
  readonly ends: Int32Array
  entries: number
  /** Distinct days of the request, ascending. */
  readonly days: Int32Array
}

const LIST_ENTRIES_MAX = 1024
const DAYS_OF_YEAR_MAX = 366

export function createValues(codecs: CodecList): Values {
  return {
    scan: createRequestScan(),
    fault: '',
    today: 0,
    lastDay: 0,
    packedDays: new Uint16Array(DAYS_OF_YEAR_MAX + 1),
    featureNames: codecs.names.map((name) => encoder.encode(name)),
    reserved: [...RESERVED_SEGMENTS].map((name) => encoder.encode(name)),
    starts: new Int32Array(LIST_ENTRIES_MAX),
    ends: new Int32Array(LIST_ENTRIES_MAX),
    entries: 0,
    days: new Int32Array(LIMITS.datesInQueryMax + 1),
  }
}

/** The calendar day that determines the valid dates; set before a batch of requests. */
export function setToday(values: Values, day: number): void {
  if (values.today === day) return
  values.today = day
  values.lastDay = addOneYear(day)
  const baseYear = yearOf(day)
  for (let i = 0; day + i <= values.lastDay; i++) values.packedDays[i] = packDay(day + i, baseYear)
}

/** Sets the first error. */
export function refuse(values: Values, fault: string): void {
  if (values.fault === '') values.fault = `VALIDATION_ERROR: ${fault}`
}

export function isGiven(values: Values, field: number): boolean {
  return values.scan.start[field] >= 0
}

export function startOf(values: Values, field: number): number {
  return values.scan.start[field]
}

export function endOf(values: Values, field: number): number {
  return values.scan.start[field] + values.scan.length[field]
}

function nameOf(values: Values, field: number): string {
  return values.scan.command.fields[field]?.name ?? 'field'
}

function quote(values: Values, start: number, end: number): string {
  return cleanErrorText(decoder.decode(values.scan.bytes.slice(start, Math.min(end, start + 40))))
}

/** A name: segment, area, property type, category or room type. */
export function checkName(values: Values, field: number): void {
  if (!isGiven(values, field)) return
  const fault = textFault(values.scan.bytes, startOf(values, field), endOf(values, field), LIMITS.nameBytesMax)
  if (fault !== '') refuse(values, `${nameOf(values, field)} ${fault}`)
}

export function checkSegment(values: Values, field: number): void {
  checkName(values, field)
  const start = startOf(values, field)
  const end = endOf(values, field)
  for (const name of values.reserved) {
    if (sameBytes(values.scan.bytes, start, end, name))
      refuse(values, `${quote(values, start, end)} is a reserved name`)
  }
}

function sameBytes(bytes: Uint8Array, start: number, end: number, name: Uint8Array): boolean {
  if (end - start !== name.length) return false
  for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name[i]) return false
  return true
}

/** Packs a property id into 16 bytes. */
export function readPropertyId(values: Values, field: number, target: Uint8Array, at: number): void {
  if (!isGiven(values, field)) return
  if (packPropertyIdInto(values.scan.bytes, startOf(values, field), endOf(values, field), target, at)) return
  const text = quote(values, startOf(values, field), endOf(values, field))
  refuse(values, `propertyId ${text} must be a UUID of version 1 to 5 or 7, or 1 to 14 printable ASCII characters`)
}

/** @returns the day number of a date within the visible window */
export function readDate(values: Values, field: number): number {
  const start = startOf(values, field)
  const day = endOf(values, field) - start === 10 ? parseDayBytes(values.scan.bytes, start) : -1
  return checkDay(values, day, start, endOf(values, field))
}

function checkDay(values: Values, day: number, start: number, end: number): number {
  if (day < 0) refuse(values, `${quote(values, start, end)} is not a date of the form YYYY-MM-DD`)
  else if (day < values.today)
    refuse(values, `date ${formatDay(day)} is in the past, today is ${formatDay(values.today)}`)
  else if (day > values.lastDay)
    refuse(values, `date ${formatDay(day)} is after the last one, ${formatDay(values.lastDay)}`)
  return day
}

/** Reads the dates of a search into `days`. @returns number of distinct dates */
export function readDates(values: Values, field: number, datesMax: number): number {
  const { days } = values
  const { bytes } = values.scan
  let count = 0
  const end = isGiven(values, field) ? endOf(values, field) : startOf(values, field) - 1
  for (let at = startOf(values, field); at <= end; at = entry.stop + 1) {
    findEntry(bytes, at, end)
    const { first, last } = entry
    if (first === last) continue
    // What is a date needs no check of its text.
    const day = last - first === DATE_BYTES ? parseDayBytes(bytes, first) : -1
    if (day < 0) checkEntry(values, field, DATE_BYTES)
    checkDay(values, day, first, last)
    if (values.fault !== '') return 0
    let place = count
    while (place > 0 && days[place - 1] > day) place--
    if (place > 0 && days[place - 1] === day) continue
    if (count === datesMax) {
      refuse(values, `a query may name ${datesMax} dates at most`)
      return 0
    }
    for (let i = count; i > place; i--) days[i] = days[i - 1]
    days[place] = day
    count++
  }
  if (count === 0) refuse(values, 'dates must name at least one date')
  return count
}

export function readU8(values: Values, field: number): number {
  return values.scan.bytes[startOf(values, field)]
}

export function readU32(values: Values, field: number): number {
  return values.scan.view.getUint32(startOf(values, field), true)
}

/** An unsigned 64-bit number, capped at the greatest safe integer. */
export function readU64(values: Values, field: number): number {
  const start = startOf(values, field)
  const high = values.scan.view.getUint32(start + 4, true)
  if (high > 0x1fffff) return Number.MAX_SAFE_INTEGER
  return high * 2 ** 32 + values.scan.view.getUint32(start, true)
}

export function readStars(values: Values, field: number): number {
  const stars = readU8(values, field)
  const { starsMin, starsMax } = LIMITS
  if (stars < starsMin || stars > starsMax) {
    refuse(values, `${nameOf(values, field)} must be ${starsMin} to ${starsMax}, got ${stars}`)
  }
  return stars
}

export function readPrice(values: Values, field: number): number {
  const price = readU32(values, field)
  if (price > LIMITS.priceMax) refuse(values, `finalPrice must be 0 to ${LIMITS.priceMax}`)
  return price
}

/** Latitude or longitude in degrees. */
export function readDegrees(values: Values, field: number, max: number): number {
  const degrees = values.scan.view.getFloat64(startOf(values, field), true)
  if (!(degrees >= -max && degrees <= max)) refuse(values, `${nameOf(values, field)} must be -${max} to ${max} degrees`)
  return degrees
}

/** The entry of a list that was found last: [first, last), and the comma or the end behind it. */
const entry = { first: 0, last: 0, stop: 0 }

/** Finds the entry that begins at `start`, without the blanks around it. */
function findEntry(bytes: Uint8Array, start: number, end: number): void {
  let first = start
  while (first < end && bytes[first] === BLANK) first++
  let stop = first
  while (stop < end && bytes[stop] !== COMMA) stop++
  let last = stop
  while (last > first && bytes[last - 1] === BLANK) last--
  entry.first = first
  entry.last = last
  entry.stop = stop
}

function checkEntry(values: Values, field: number, entryBytesMax: number): void {
  const fault = textFault(values.scan.bytes, entry.first, entry.last, entryBytesMax)
  if (fault !== '') refuse(values, `an entry of ${nameOf(values, field)} ${fault}`)
}

/**
 * Splits a list at its commas: entries are trimmed, empty ones and repeats dropped
 * (docs/design/protocol.md#text-and-lists).
 */
function readList(values: Values, field: number, entryBytesMax: number): void {
  values.entries = 0
  if (!isGiven(values, field)) return
  const { bytes } = values.scan
  const end = endOf(values, field)
  for (let at = startOf(values, field); at <= end && values.fault === ''; at = entry.stop + 1) {
    findEntry(bytes, at, end)
    if (entry.first === entry.last) continue
    checkEntry(values, field, entryBytesMax)
    if (values.fault === '') addEntry(values, field, entry.first, entry.last)
  }
}

function addEntry(values: Values, field: number, first: number, last: number): void {
  const { bytes } = values.scan
  for (let i = 0; i < values.entries; i++) {
    const start = values.starts[i]
    const length = values.ends[i] - start
    if (length !== last - first) continue
    let same = true
    for (let j = 0; j < length && same; j++) same = bytes[start + j] === bytes[first + j]
    if (same) return
  }
  if (values.entries === LIST_ENTRIES_MAX) return refuse(values, `${nameOf(values, field)} has too many entries`)
  values.starts[values.entries] = first
  values.ends[values.entries++] = last
}

/** Reads amenities as list entries; at most 64. */
export function readAmenities(values: Values, field: number): void {
  readList(values, field, LIMITS.amenityBytesMax)
  if (values.entries > LIMITS.amenitiesMax) refuse(values, `amenities are ${LIMITS.amenitiesMax} at most`)
}

/** @returns the mask of the rate features, bit i for entry i of the codec list */
export function readFeatures(values: Values, field: number): number {
  readList(values, field, LIMITS.amenityBytesMax)
  let mask = 0
  for (let i = 0; i < values.entries && values.fault === ''; i++) {
    const start = values.starts[i]
    const end = values.ends[i]
    const bit = values.featureNames.findIndex((name) => sameBytes(values.scan.bytes, start, end, name))
    if (bit < 0) refuse(values, `rate feature ${quote(values, start, end)} is not in the codec list`)
    else mask |= 1 << bit
  }
  return mask >>> 0
}

const HEX_VALUES = new Int8Array(128).fill(-1)
for (let i = 0; i < 16; i++) HEX_VALUES['0123456789abcdef'.charCodeAt(i)] = i

/** Reads a request key: 16 bytes of session, then the number. @returns whether the request has one */
export function readRequestKey(values: Values, session: number, number: number, target: Uint8Array): boolean {
  const given = isGiven(values, session)
  if (given !== isGiven(values, number)) refuse(values, 'a request key has both session and requestNumber')
  if (!given) return false
  const { bytes } = values.scan
  const start = startOf(values, session)
  let valid = endOf(values, session) - start === 32
  for (let i = 0; i < 16 && valid; i++) {
    const high = HEX_VALUES[bytes[start + i * 2]] ?? -1
    const low = HEX_VALUES[bytes[start + i * 2 + 1]] ?? -1
    valid = high >= 0 && low >= 0
    target[i] = (high << 4) | low
  }
  if (!valid) refuse(values, 'session must be 32 lower-case hexadecimal digits')
  const value = readU64(values, number)
  if (value < 1 || value >= Number.MAX_SAFE_INTEGER) refuse(values, 'requestNumber must be 1 or more')
  const at = startOf(values, number)
  for (let i = 0; i < 8; i++) target[16 + i] = bytes[at + i]
  return true
}

/**
 * Dates as day numbers: days since 1970-01-01 UTC. The rules are those of docs/design/protocol.md#dates. Dates on the
 * wire and in files are from 1970 to 9999.
 */

import { assert } from './assert.ts'

const MS_PER_DAY = 86_400_000
const YEAR_MIN = 1970
const ZERO = 0x30
const HYPHEN = 0x2d
const DATE_BYTES = 10

/** Days of a common year before each month, 1 to 12. */
const DAYS_BEFORE_MONTH = [0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334] as const
const DAYS_IN_MONTH = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const

/** Day number of `YYYY-MM-DD`; undefined for another format, an invalid calendar date, or a date before 1970. */
export function parseDay(text: string): number | undefined {
  if (text.length !== DATE_BYTES) return undefined
  const bytes = new Uint8Array(DATE_BYTES)
  for (let i = 0; i < DATE_BYTES; i++) {
    const code = text.charCodeAt(i)
    if (code > 0x7f) return undefined
    bytes[i] = code
  }
  const day = parseDayBytes(bytes, 0)
  return day < 0 ? undefined : day
}

/** Day number of the 10 ASCII bytes at `start`; −1 when they are not a date from 1970 on. */
export function parseDayBytes(bytes: Uint8Array, start: number): number {
  if (bytes.length - start < DATE_BYTES) return -1
  if (bytes[start + 4] !== HYPHEN || bytes[start + 7] !== HYPHEN) return -1
  const century = twoDigits(bytes, start)
  const ofCentury = twoDigits(bytes, start + 2)
  const month = twoDigits(bytes, start + 5)
  const ofMonth = twoDigits(bytes, start + 8)
  // twoDigits returns −1 for anything else, and the sign bit survives the |.
  if ((century | ofCentury | month | ofMonth) < 0) return -1
  const year = century * 100 + ofCentury
  if (year < YEAR_MIN || !isDate(year, month, ofMonth)) return -1
  return dayOfDate(year, month, ofMonth)
}

function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - ZERO
  const ones = (bytes[at + 1] as number) - ZERO
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

function isDate(year: number, month: number, ofMonth: number): boolean {
  if (month < 1 || month > 12 || ofMonth < 1) return false
  return ofMonth <= (DAYS_IN_MONTH[month] as number) || (month === 2 && ofMonth === 29 && isLeap(year))
}

function dayOfDate(year: number, month: number, ofMonth: number): number {
  const before = year - 1
  const leapDays = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400) - LEAP_DAYS_BEFORE_1970
  const leapDay = month > 2 && isLeap(year) ? 1 : 0
  return (year - YEAR_MIN) * 365 + leapDays + (DAYS_BEFORE_MONTH[month] as number) + leapDay + ofMonth - 1
}

const LEAP_DAYS_BEFORE_1970 = 477

/**
 * Year, month and day of a day number as one number: (year × 16 + month) × 32 + day of the month. Years that start in
 * March put the leap day at the end (Hinnant, "chrono-compatible low-level date algorithms").
 */
function civil(day: number): number {
  const shifted = day + 719_468
  const era = Math.floor(shifted / 146_097)
  const ofEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (ofEra - Math.floor(ofEra / 1460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365,
  )
  const ofYear = ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const marchMonth = Math.floor((5 * ofYear + 2) / 153)
  const ofMonth = ofYear - Math.floor((153 * marchMonth + 2) / 5) + 1
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  return (year * 16 + month) * 32 + ofMonth
}

/** Texts of days by their last bits: programs show the same few hundred days. */
const TEXTS = new Array<string>(1024).fill('')
const DAYS_OF_TEXTS = new Int32Array(TEXTS.length).fill(-(2 ** 31))

/** `YYYY-MM-DD` of a day number. */
export function formatDay(day: number): string {
  if ((day | 0) !== day) return textOfDay(day)
  const place = day & (TEXTS.length - 1)
  if (DAYS_OF_TEXTS[place] !== day) {
    TEXTS[place] = textOfDay(day)
    DAYS_OF_TEXTS[place] = day
  }
  return TEXTS[place] as string
}

function textOfDay(day: number): string {
  const date = civil(day)
  const year = String(Math.floor(date / 512)).padStart(4, '0')
  const month = String(Math.floor(date / 32) % 16).padStart(2, '0')
  return `${year}-${month}-${String(date % 32).padStart(2, '0')}`
}

/**
 * Whether date and hour of a time in RFC 3339 exist. `Date.parse` takes 29 February of a common year for 1 March, and
 * 24:00 for the next day.
 */
export function hasRealDate(time: string): boolean {
  return parseDay(time.slice(0, DATE_BYTES)) !== undefined && time.slice(11, 13) < '24'
}

/** Calendar day, in UTC, of a time in milliseconds. */
export function dayOf(ms: number): number {
  return Math.floor(ms / MS_PER_DAY)
}

/** 0 for Sunday to 6 for Saturday. */
export function weekdayOf(day: number): number {
  // 1970-01-01 was a Thursday.
  return (((day + 4) % 7) + 7) % 7
}

export function yearOf(day: number): number {
  return Math.floor(civil(day) / 512)
}

/** The same date one year later; 1 March for 29 February. */
export function addOneYear(day: number): number {
  const date = civil(day)
  const year = Math.floor(date / 512) + 1
  const month = Math.floor(date / 32) % 16
  const ofMonth = date % 32
  return isDate(year, month, ofMonth) ? dayOfDate(year, month, ofMonth) : dayOfDate(year, 3, 1)
}

/** The last day that any command may name or see. */
export function lastVisibleDay(today: number): number {
  return addOneYear(today)
}

/** Whether commands see a day: from today to today plus one year, both included. */
export function isVisible(day: number, today: number): boolean {
  return day >= today && day <= lastVisibleDay(today)
}

/** The bits of the year in a packed date. */
const YEARS = 7 << 9

/**
 * The 16 bits of a date in a SEARCHAVAIL reply.
 *
 *   bits      15–12   11–9              8–5         4–0
 *   content   0       year − baseYear   month − 1   day − 1
 *
 * @param baseYear year of the engine's day when the reply is written; 0 to 7 years before that of `day`
 */
export function packDay(day: number, baseYear: number): number {
  const date = civil(day)
  const years = Math.floor(date / 512) - baseYear
  assert(years >= 0 && years <= 7, 'a packed date lies at most 7 years after its base year')
  return (years << 9) | (((Math.floor(date / 32) % 16) - 1) << 5) | ((date % 32) - 1)
}

/** Day number of a packed date; −1 when it is no calendar date. */
export function unpackDay(packed: number, baseYear: number): number {
  const year = baseYear + ((packed >>> 9) & 7)
  const month = ((packed >>> 5) & 15) + 1
  const ofMonth = (packed & 31) + 1
  if (packed >>> 12 !== 0 || !isDate(year, month, ofMonth)) return -1
  return dayOfDate(year, month, ofMonth)
}

/**
 * Day number of a packed date that lies from `first` to `last`, both included and less than a year apart, whatever its
 * base year; −1 when no day there has its month and day.
 */
export function unpackDayBetween(packed: number, first: number, last: number): number {
  for (let year = yearOf(first); year <= yearOf(last); year++) {
    const day = unpackDay(packed & ~YEARS, year)
    if (day >= first && day <= last) return day
  }
  return -1
}

/**
 * Base year of packed dates that are known to be among `days`, for a reply that does not say it: that is the year of
 * the writer's day, which a reader with another clock cannot know. −1 when there is none.
 */
export function baseYearOf(packed: readonly number[], days: readonly number[]): number {
  const [first] = packed
  if (first === undefined) return -1
  const known = new Set(days)
  for (const day of known) {
    const baseYear = yearOf(day) - ((first & YEARS) >>> 9)
    if (packed.every((date) => known.has(unpackDay(date, baseYear)))) return baseYear
  }
  return -1
}

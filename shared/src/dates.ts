/**
 * Calendar days as day numbers: days since 1970-01-01, UTC (wire-protocol.md §6.4).
 */

const MS_PER_DAY = 86_400_000
const DAYS_BEFORE_MONTH = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334] as const
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

/** @param month 1–12 @returns -1 when there is no such day */
function dayNumber(year: number, month: number, day: number): number {
  if (month < 1 || month > 12 || day < 1 || year < 1970) return -1
  const inMonth = (DAYS_IN_MONTH[month - 1] as number) + (month === 2 && isLeap(year) ? 1 : 0)
  if (day > inMonth) return -1
  const y = year - 1
  const before = y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) - 719_162
  return before + (DAYS_BEFORE_MONTH[month - 1] as number) + (month > 2 && isLeap(year) ? 1 : 0) + day - 1
}

type CivilDate = { readonly year: number; readonly month: number; readonly day: number }

function civilDate(day: number): CivilDate {
  // The year is at most one off; then the month is found by its first day.
  let year = 1970 + Math.floor(day / 365.2425)
  while (dayNumber(year, 1, 1) > day) year--
  while (dayNumber(year + 1, 1, 1) <= day) year++
  let month = 1
  while (month < 12 && dayNumber(year, month + 1, 1) <= day) month++
  return { year, month, day: day - dayNumber(year, month, 1) + 1 }
}

function digit(bytes: Uint8Array, at: number): number {
  const value = (bytes[at] as number) - 0x30
  return value >= 0 && value <= 9 ? value : Number.NaN
}

const HYPHEN = 0x2d

/** @returns day number of the ten bytes YYYY-MM-DD at `start`, -1 when they are no date */
export function parseDayBytes(bytes: Uint8Array, start: number): number {
  if (bytes[start + 4] !== HYPHEN || bytes[start + 7] !== HYPHEN || start + 10 > bytes.length) return -1
  const year =
    digit(bytes, start) * 1000 + digit(bytes, start + 1) * 100 + digit(bytes, start + 2) * 10 + digit(bytes, start + 3)
  const month = digit(bytes, start + 5) * 10 + digit(bytes, start + 6)
  const day = digit(bytes, start + 8) * 10 + digit(bytes, start + 9)
  return Number.isNaN(year + month + day) ? -1 : dayNumber(year, month, day)
}

export function parseDay(text: string): number | undefined {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (!match) return undefined
  const day = dayNumber(Number(match[1]), Number(match[2]), Number(match[3]))
  return day < 0 ? undefined : day
}

export function formatDay(day: number): string {
  const { year, month, day: dayOfMonth } = civilDate(day)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${String(year).padStart(4, '0')}-${two(month)}-${two(dayOfMonth)}`
}

/** The calendar day of a wall clock, UTC. */
export function dayOf(wallMs: number): number {
  return Math.floor(wallMs / MS_PER_DAY)
}

export function startOfDayMs(day: number): number {
  return day * MS_PER_DAY
}

export function yearOf(day: number): number {
  return civilDate(day).year
}

/** 0 for Sunday to 6 for Saturday. */
export function weekdayOf(day: number): number {
  return (day + 4) % 7
}

/** The same day a year later; from 29 February it is 1 March. */
export function addOneYear(day: number): number {
  const { year, month, day: dayOfMonth } = civilDate(day)
  const next = dayNumber(year + 1, month, dayOfMonth)
  return next >= 0 ? next : dayNumber(year + 1, 3, 1)
}

/** The last day that commands may name: today plus one calendar year. */
export function lastVisibleDay(today: number): number {
  return addOneYear(today)
}

let cachedToday = -1
let cachedLast = -1

/** Whether commands may name the day: from today to a year ahead, both ends included. */
export function isVisible(day: number, today: number): boolean {
  if (today !== cachedToday) {
    cachedLast = addOneYear(today)
    cachedToday = today
  }
  return day >= today && day <= cachedLast
}

/** Packs a day into 16 bits, relative to a year; the year may lie 0 to 7 after the base. */
export function packDay(day: number, baseYear: number): number {
  const { year, month, day: dayOfMonth } = civilDate(day)
  return ((year - baseYear) << 9) | ((month - 1) << 5) | (dayOfMonth - 1)
}

/** @returns day number, -1 when the bits are no calendar date */
export function unpackDay(packed: number, baseYear: number): number {
  return dayNumber(baseYear + ((packed >>> 9) & 7), ((packed >>> 5) & 15) + 1, (packed & 31) + 1)
}

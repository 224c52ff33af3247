/** Formats numbers, sizes, times and dates for the whole console. */

import { groupDigits, utcText } from '@vacancy/shared/numbers'

export { sentence, zoneText } from '@vacancy/shared/numbers'

/** Stands for a value that is not reported: never zero, never empty. */
export const NONE = '–'

type Maybe = number | null | undefined

/** `12,400`; a missing value is an en dash. */
export function count(value: Maybe): string {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE
  return `${value < 0 ? '−' : ''}${groupDigits(Math.abs(value))}`
}

const BIG = [
  { from: 1e9, unit: 'G' },
  { from: 1e6, unit: 'M' },
  { from: 1e4, unit: 'k' },
] as const

/** `2.31 G`, `61.4 k`, and whole below ten thousand. */
export function shortCount(value: Maybe): string {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE
  for (const { from, unit } of BIG) {
    if (Math.abs(value) >= from) return `${threeDigits(value / (unit === 'k' ? 1e3 : from))} ${unit}`
  }
  return count(Math.round(value))
}

/** One noun with its number: `1 shard`, `12,400 shards`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** Powers of a thousand, as disks and networks are sold: `48.2 MB`. */
export function bytes(value: Maybe): string {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE
  let rest = value
  let unit = 0
  while (Math.abs(rest) >= 999.5 && unit < BYTE_UNITS.length - 1) {
    rest /= 1_000
    unit += 1
  }
  return `${unit === 0 ? count(Math.round(rest)) : threeDigits(rest)} ${BYTE_UNITS[unit]}`
}

/** A value of any size: `61.4 k`, `1,240`, `12.4`, `0.05`; three digits below a thousand. */
export function figure(value: Maybe): string {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE
  return Math.abs(value) >= 1_000 ? shortCount(value) : threeDigits(value)
}

/** `1,240/s`. */
export function rate(perSecond: Maybe): string {
  const text = figure(perSecond)
  return text === NONE ? NONE : `${text}/s`
}

/** `61 %` of a share between 0 and 1. A share below 1 is at most 99 %. */
export function percent(share: Maybe): string {
  if (share === null || share === undefined || Number.isNaN(share)) return NONE
  const whole = Math.round(share * 100)
  return `${share < 1 ? Math.min(whole, 99) : whole} %`
}

/** Prices are whole numbers of the smallest currency unit. */
export const price = count

/** Three significant digits: `1.24`, `12.4`, `124`, `0.05`, `0.005`. */
function threeDigits(value: number): string {
  const size = Math.abs(value)
  const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.0995 ? 2 : 3
  return count(Number(value.toFixed(decimals)))
}

/** A duration: `0.4 ms`, `180 ms`, `1.9 s`, `41 s`, `4 min 05 s`, `3 h 04 min`, `2 d 7 h`. */
export function duration(milliseconds: Maybe): string {
  if (milliseconds === null || milliseconds === undefined || Number.isNaN(milliseconds)) return NONE
  if (milliseconds < 999.5) return `${milliseconds < 10 ? threeDigits(milliseconds) : Math.round(milliseconds)} ms`
  if (milliseconds < 9_950) return `${(milliseconds / 1_000).toFixed(1)} s`
  return wholeSeconds(Math.round(milliseconds / 1_000))
}

/** Microseconds of a hop: `412 µs`, `1.9 ms`. */
export function micros(microseconds: Maybe): string {
  if (microseconds === null || microseconds === undefined || Number.isNaN(microseconds)) return NONE
  if (microseconds < 999.5) return `${Math.round(microseconds)} µs`
  return duration(microseconds / 1_000)
}

/** An age in whole units: `now`, `4 s`, `3 min`, `2 h 10 min`, `3 d`. */
export function age(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000)
  if (seconds < 1) return 'now'
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  return wholeSeconds(seconds - (seconds % 60))
}

/** An estimate of what is left, without false precision: `3 s`, `4 min 05 s`, `less than 1 s`. */
export function timeLeft(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000)
  return seconds < 1 ? 'less than 1 s' : wholeSeconds(seconds)
}

function wholeSeconds(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, '0')
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min${seconds % 60 ? ` ${two(seconds % 60)} s` : ''}`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h${minutes % 60 ? ` ${two(minutes % 60)} min` : ''}`
  return `${Math.floor(hours / 24)} d${hours % 24 ? ` ${hours % 24} h` : ''}`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const

/** False for 1970, which a snapshot built from files has as its time. */
export const isKnownTime = (time: string): boolean => Date.parse(time) > 0

/** `20 Nov 2026, 18:27:33 UTC` of an RFC 3339 time. */
export function utc(time: string | null | undefined): string {
  const at = time ? new Date(time) : undefined
  if (!at || Number.isNaN(at.getTime())) return NONE
  return utcText(at)
}

/** `18:27:33`, UTC. */
export function clock(time: string | null | undefined): string {
  const at = time ? new Date(time) : undefined
  return at && !Number.isNaN(at.getTime()) ? at.toISOString().slice(11, 19) : NONE
}

/** `20 Nov` of `2026-11-20`; with the year on request. */
export function day(date: string | null | undefined, withYear = false): string {
  const at = date ? new Date(`${date.slice(0, 10)}T00:00:00Z`) : undefined
  if (!at || Number.isNaN(at.getTime())) return NONE
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}${withYear ? ` ${at.getUTCFullYear()}` : ''}`
}

/** `Nov 2026` of `2026-11`. */
export function month(yearAndMonth: string): string {
  return day(`${yearAndMonth}-01`, true).slice(2)
}

/** `Fri` of `2026-11-20`. */
export function weekday(date: string): string {
  return WEEKDAYS[new Date(`${date.slice(0, 10)}T00:00:00Z`).getUTCDay()] ?? NONE
}

/** `20 Nov – 18 Feb`, both ends included. */
export function days(window: { readonly from: string; readonly to: string } | null | undefined): string {
  return window ? `${day(window.from)} – ${day(window.to)}` : NONE
}

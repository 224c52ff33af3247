/** The fields of a search of several arrival days: PRICECAL and SEARCHFLEX (docs/design/search.md#calendars). */

import { formatDay, LIMITS, parseDayBytes } from '@vacancy/shared'
import { COMMANDS, type CommandSpec } from '@vacancy/shared/wire'
import { endOf, isGiven, readU8, startOf, type Values } from '../protocol/values.ts'

/** `byDay`: the lowest total of each arrival day; `byProperty`: the best stay of each property. */
export type CalendarForm = 'none' | 'byDay' | 'byProperty'

/** A validated calendar; one object per thread, reused. */
export type CalendarQuery = {
  form: CalendarForm
  /** First arrival day, and the number of days from it to the last one. */
  first: number
  arrivals: number
  nights: number
  mostNights: number
  /** Weekdays of arrival: bit 0 is Monday. */
  weekdays: number
  /** 1 for each day from the first one on that stays may begin on, and how many there are. */
  readonly isArrival: Uint8Array
  arrivalDays: number
  /** 1 for each night from the first arrival on that some stay may have, and how many there are. */
  readonly isRead: Uint8Array
  nightsRead: number
}

export function createCalendarQuery(): CalendarQuery {
  const { calendarDaysMax, stayNightsMax, flexibleNightsMax } = LIMITS
  return {
    ...{ form: 'none', first: 0, arrivals: 0, nights: 0, mostNights: 0, weekdays: EVERY_DAY },
    ...{ arrivalDays: 0, nightsRead: 0 },
    isArrival: new Uint8Array(calendarDaysMax),
    isRead: new Uint8Array(calendarDaysMax + stayNightsMax + flexibleNightsMax),
  }
}

const EVERY_DAY = 0x7f
/** Day 0, 1 January 1970, was a Thursday. */
const WEEKDAY_OF_DAY_0 = 3

const { PRICECAL, SEARCHFLEX } = COMMANDS

export function formOf(command: CommandSpec): CalendarForm {
  return command === PRICECAL ? 'byDay' : command === SEARCHFLEX ? 'byProperty' : 'none'
}

const placesOf = ({ fields }: CommandSpec) => {
  const place = (name: string) => fields.findIndex((spec) => spec.name === name)
  const [from, to, nights, mostNights, weekdays] = ['from', 'to', 'nights', 'mostNights', 'weekdays'].map(place)
  return { from, to, nights, mostNights, weekdays } as { readonly [name in keyof typeof NAMES]: number }
}
const NAMES = { from: 0, to: 0, nights: 0, mostNights: 0, weekdays: 0 }
const FIELDS = { byDay: placesOf(PRICECAL), byProperty: placesOf(SEARCHFLEX) }

function refuse(values: Values, fault: string): void {
  if (values.fault === '') values.fault = `VALIDATION_ERROR: ${fault}`
}

/**
 * Reads arrival days, nights and weekdays. The first error is in `values.fault`.
 *
 * @param daysMax arrival days at most
 */
export function checkCalendar(calendar: CalendarQuery, values: Values, daysMax: number): void {
  if (calendar.form === 'none') return
  const fields = FIELDS[calendar.form]
  calendar.first = readArrival(values, fields.from, 'from')
  const last = readArrival(values, fields.to, 'to')
  calendar.arrivals = last - calendar.first + 1
  if (calendar.arrivals < 1) {
    refuse(values, `to must not be before from, got ${formatDay(calendar.first)} and ${formatDay(last)}`)
  } else if (calendar.arrivals > daysMax) {
    refuse(values, `from and to are ${calendar.arrivals} arrival days, max_calendar_days accepts ${daysMax}`)
  }
  const { stayNightsMax, flexibleNightsMax } = LIMITS
  calendar.nights = readU8(values, fields.nights)
  if (calendar.nights < 1 || calendar.nights > stayNightsMax) {
    refuse(values, `nights must be 1 to ${stayNightsMax}, got ${calendar.nights}`)
  }
  calendar.mostNights = calendar.nights
  if (fields.mostNights >= 0 && isGiven(values, fields.mostNights)) {
    calendar.mostNights = readU8(values, fields.mostNights)
    const [least, most] = [calendar.nights, calendar.nights + flexibleNightsMax]
    if (calendar.mostNights < least || calendar.mostNights > most) {
      refuse(values, `mostNights must be ${least} to ${most} with nights ${least}, got ${calendar.mostNights}`)
    }
  }
  calendar.weekdays = isGiven(values, fields.weekdays) ? readU8(values, fields.weekdays) : EVERY_DAY
  if (calendar.weekdays < 1 || calendar.weekdays > EVERY_DAY) {
    refuse(values, `weekdays must be 1 to ${EVERY_DAY}, got ${calendar.weekdays}`)
  }
  if (values.fault === '') markDays(calendar)
}

function markDays(calendar: CalendarQuery): void {
  const { first, arrivals, mostNights, weekdays, isArrival, isRead } = calendar
  calendar.arrivalDays = 0
  calendar.nightsRead = 0
  let left = 0
  let weekday = (first + WEEKDAY_OF_DAY_0) % 7
  for (let day = 0; day < arrivals + mostNights - 1; day++) {
    const isStart = day < arrivals && ((weekdays >>> weekday) & 1) === 1
    if (isStart) left = mostNights
    if (day < arrivals) isArrival[day] = isStart ? 1 : 0
    isRead[day] = left > 0 ? 1 : 0
    if (isStart) calendar.arrivalDays++
    if (left-- > 0) calendar.nightsRead++
    weekday = weekday === 6 ? 0 : weekday + 1
  }
}

function readArrival(values: Values, field: number, name: string): number {
  const [start, end] = [startOf(values, field), endOf(values, field)]
  const day = end - start === 10 ? parseDayBytes(values.scan.bytes, start) : -1
  if (day < values.today || day > values.lastDay) {
    const got = day < 0 ? '' : `, got ${formatDay(day)}`
    refuse(values, `${name} must be YYYY-MM-DD from ${formatDay(values.today)} to ${formatDay(values.lastDay)}${got}`)
  }
  return day
}

/**
 * Factors that bring totals of `nights`, `nights` + 1 … in the order of prices per night: the least common multiple of
 * all numbers of nights, divided by each. Times a total they stay below 2^63.
 */
export function factorsOf({ nights, mostNights }: CalendarQuery): number[] {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))
  const lengths = Array.from({ length: mostNights - nights + 1 }, (_, n) => nights + n)
  const multiple = lengths.reduce((product, length) => (product / divisor(product, length)) * length, 1)
  return lengths.map((length) => multiple / length)
}

/** Rows and days of a property's calendar, moves of its keys, and the figures of a selection. */
import type { CalendarNight, PropertyCalendar } from '@vacancy/shared/contract'
import { dateOf, dayOf } from '../../lib/days.ts'

/** A selection: nights of one room type, both ends included. */
export type Nights = { readonly room: string; readonly from: string; readonly to: string }

export type CalendarGrid = {
  readonly dates: readonly string[]
  readonly rooms: readonly string[]
  night(room: string, date: string): CalendarNight | undefined
}

export function gridOf({ from, nights, rooms }: Pick<PropertyCalendar, 'from' | 'nights' | 'rooms'>): CalendarGrid {
  const cells = new Map(rooms.map((each) => [each.room, new Map(each.nights.map((night) => [night.date, night]))]))
  return {
    dates: datesFrom(from, nights),
    rooms: rooms.map(({ room }) => room),
    night: (room, date) => cells.get(room)?.get(date),
  }
}

function datesFrom(from: string, nights: number): string[] {
  const first = dayOf(from) ?? 0
  return Array.from({ length: nights }, (_, n) => dateOf(first + n))
}

export function datesBetween(from: string, to: string): string[] {
  return datesFrom(from, (dayOf(to) ?? 0) - (dayOf(from) ?? 0) + 1)
}

/** The same day of another month, or its last one: 31 January and one month is 28 February. */
export function addMonths(date: string, months: number): string {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number)
  const last = new Date(Date.UTC(year, month + months, 0)).getUTCDate()
  return new Date(Date.UTC(year, month - 1 + months, Math.min(day, last))).toISOString().slice(0, 10)
}

function addDays(date: string, days: number): string {
  return dateOf((dayOf(date) ?? 0) + days)
}

/** The first night of a view of `nights` in which a date is visible, closest to the current view. */
export function viewWith(date: string, { from, nights }: Pick<PropertyCalendar, 'from' | 'nights'>): string {
  if (date < from) return date
  const last = addDays(from, nights - 1)
  return date > last ? addDays(date, 1 - nights) : from
}

type Cell = { readonly room: string; readonly date: string }

/** The nights of a view in rows of whole weeks, below each other. */
export function blocksOf(dates: readonly string[], across: number): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(dates.length / across) }, (_, at) =>
    dates.slice(at * across, (at + 1) * across),
  )
}

/**
 * The cell to which a key moves; undefined for other keys. The date may be outside of the view.
 *
 * @param across nights of a block: above the first room of one is the last room of the one before
 */
export function cellAfter(
  key: string,
  { room, date }: Cell,
  { rooms, dates }: CalendarGrid,
  across: number,
): Cell | undefined {
  const row = rooms.indexOf(room)
  const down = (by: 1 | -1): Cell => {
    const next = rooms[row + by]
    if (next !== undefined) return { room: next, date }
    const beside = { room: (by > 0 ? rooms[0] : rooms.at(-1)) ?? room, date: addDays(date, by * across) }
    return dates.includes(beside.date) ? beside : { room, date }
  }
  switch (key) {
    case 'ArrowLeft':
      return { room, date: addDays(date, -1) }
    case 'ArrowRight':
      return { room, date: addDays(date, 1) }
    case 'ArrowUp':
      return down(-1)
    case 'ArrowDown':
      return down(1)
    case 'Home':
      return { room, date: dates[0] ?? date }
    case 'End':
      return { room, date: dates.at(-1) ?? date }
    case 'PageUp':
      return { room, date: addMonths(date, -1) }
    case 'PageDown':
      return { room, date: addMonths(date, 1) }
    default:
      return undefined
  }
}

export type Figures = {
  readonly nights: number
  /** Nights that have a package. */
  readonly sold: number
  readonly soldOut: number
  readonly sum: number
  readonly min: number
  readonly max: number
}

/** Figures of a selection; prices of nights without a package are left out. */
export function figuresOf({ night }: CalendarGrid, { room, from, to }: Nights): Figures {
  const dates = datesBetween(from, to)
  const found = dates.flatMap((date) => night(room, date) ?? [])
  const prices = found.map(({ price }) => price)
  return {
    nights: dates.length,
    sold: found.length,
    soldOut: found.filter(({ availability }) => availability === 0).length,
    sum: prices.reduce((sum, price) => sum + price, 0),
    min: Math.min(...prices),
    max: Math.max(...prices),
  }
}

/** Nights per month of a view, for its headings. */
export function monthsOf(dates: readonly string[]): { readonly month: string; readonly nights: number }[] {
  const months: { month: string; nights: number }[] = []
  for (const date of dates) {
    const month = date.slice(0, 7)
    const last = months.at(-1)
    if (last?.month === month) last.nights += 1
    else months.push({ month, nights: 1 })
  }
  return months
}

/** Results of commands as tables. */

import { parseDay, weekdayOf } from '@vacancy/shared'
import { count, type Table } from '@vacancy/shared/node'
import type { FlexibleStay, NightPackage, ReplyResult, SearchPage, SearchValues, StayLine } from '@vacancy/shared/wire'

/** For a longer stay, the range of prices from the cheapest to the most expensive night. */
const NIGHTS_SHOWN_MAX = 7
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

export function tableOf(result: ReplyResult): Table {
  const { properties, propertyIds, segments, rateFeatures, roomTypes, dates, exists } = result
  const { page } = result
  if (result.bestStays) return flexible(result.bestStays, page)
  if (result.days) {
    const columns = ['arrival', 'day', 'total', 'properties', 'cheapest']
    const rows = result.days.map(({ arrival, total, properties: fitting, best }) => {
      return [arrival, weekday(arrival), cellOf(total), fitting, best ?? '']
    })
    return { columns, rows, counted: count(rows.length, 'arrival day') }
  }
  if (properties) {
    const days = ['nights', 'rooms left', 'total', 'a night', 'rate features']
    const hasDays = properties.some((hit) => hit.days.length > 0)
    return valued(
      { columns: ['property', ...(hasDays ? days : [])], rows: properties.map((hit) => stayRow(hit, hasDays)) },
      properties.map(({ total, ...values }) => (hasDays || total === undefined ? values : { total, ...values })),
      page,
    )
  }
  if (propertyIds) {
    return valued({ columns: ['property'], rows: propertyIds.map((id) => [id]) }, result.values ?? [], page)
  }
  if (segments) {
    const rows = segments.map(({ segment, propertyCount }) => [segment, propertyCount])
    return { columns: ['segment', 'properties'], rows, counted: count(rows.length, 'segment') }
  }
  if (result.finalPrice !== undefined && rateFeatures) {
    const night = result as unknown as { propertyId: string } & NightPackage
    const columns = ['property', 'date', 'rooms left', 'price', 'rate features']
    const { propertyId, date, finalPrice } = night
    return {
      columns,
      rows: [[propertyId, date, night.availability, finalPrice, rateFeatures.join(' ')]],
      counted: count(1, 'night'),
    }
  }
  if (rateFeatures) {
    const rows = rateFeatures.map((name, bit) => [bit, name])
    return { columns: ['bit', 'rate feature'], rows, counted: count(rows.length, 'rate feature') }
  }
  if (roomTypes) return listed('room type', roomTypes, count(roomTypes.length, 'room type'))
  if (dates) {
    const rows = dates.map((date) => [date, weekday(date)])
    return { columns: ['date', 'day'], rows, counted: count(rows.length, 'date') }
  }
  if (result.stays) {
    const columns = ['stay', 'state', 'deadline', 'index', 'time', 'source', 'lines']
    const rows = result.stays.map((stay) => [
      stay.stayId,
      stay.state,
      momentOf(stay.deadlineMs),
      String(stay.index),
      momentOf(stay.timeMs),
      stay.source,
      stay.lines.map(wordsOfLine).join(', '),
    ])
    const more = result.cursor ? `, more with cursor=${result.cursor}` : ''
    return { columns, rows, counted: count(rows.length, 'stay') + more }
  }
  if (result.state !== undefined && result.lines) {
    const { state, deadlineMs, total, index, lines } = result
    const deadline = deadlineMs === undefined ? '' : `, until ${momentOf(deadlineMs)}`
    const columns = ['line', 'rooms left']
    const rows = lines.map((line) => [wordsOfLine(line), (line.days ?? []).map((day) => day.availability).join(' ')])
    return { columns, rows, counted: `${state}${deadline}, total ${total}, at index ${index}` }
  }
  if (exists !== undefined) return { columns: ['exists'], rows: [[exists ? 'yes' : 'no']], counted: 'answered' }
  // Plain numbers: what a write changed, or what a read counted.
  const values = Object.entries(result).flatMap(([name, value]): [string, string | number][] => {
    if (name === 'index') return [[name, String(value)]]
    return typeof value === 'number' ? [[name === 'availability' ? 'rooms left' : name, value]] : []
  })
  return { columns: values.map(([name]) => name), rows: [values.map(([, value]) => value)], counted: 'done' }
}

function flexible(stays: readonly FlexibleStay[], page: SearchPage | undefined): Table {
  const columns = ['property', 'arrival', 'day', 'nights']
  const rows = stays.map(({ propertyId, arrival, nights }) => [propertyId, arrival, weekday(arrival), nights])
  return valued({ columns, rows }, stays, page)
}

/** Columns of the values that a search was asked for. */
const VALUES: readonly (readonly [name: keyof SearchValues, column: string])[] = [
  ['total', 'total'],
  ['distanceMetres', 'metres'],
  ['latitude', 'latitude'],
  ['longitude', 'longitude'],
  ['roomType', 'room type'],
]

/** A table of properties with their values at the end, and what follows its page. */
function valued(
  { columns, rows }: Pick<Table, 'columns' | 'rows'>,
  values: readonly SearchValues[],
  page: SearchPage | undefined,
): Table {
  const shown = VALUES.filter(([name]) => values[0]?.[name] !== undefined)
  const found = count(rows.length, 'property', 'properties')
  const of =
    page?.matches === undefined ? found : `${rows.length} of ${count(Number(page.matches), 'property', 'properties')}`
  return {
    columns: [...columns, ...shown.map(([, column]) => column)],
    rows: rows.map((row, n) => [...row, ...shown.map(([name]) => cellOf(values[n]?.[name]))]),
    counted: page?.cursor ? `${of}, more with --page ${page.cursor}` : of,
  }
}

function cellOf(value: SearchValues[keyof SearchValues]): string | number {
  return typeof value === 'bigint' ? String(value) : (value ?? '')
}

type Hit = { readonly propertyId: string; readonly days: readonly NightPackage[] }

function stayRow({ propertyId, days }: Hit, hasDays: boolean): (string | number)[] {
  if (!hasDays) return [propertyId]
  const prices = days.map(({ finalPrice }) => finalPrice)
  const [first, ...others] = days
  const always = (first?.rateFeatures ?? []).filter((name) => others.every((day) => day.rateFeatures.includes(name)))
  return [
    propertyId,
    days.length,
    Math.min(...days.map((day) => day.availability)),
    prices.reduce((sum, price) => sum + price, 0),
    prices.length > NIGHTS_SHOWN_MAX ? `${Math.min(...prices)} to ${Math.max(...prices)}` : prices.join(' '),
    always.join(' '),
  ]
}

/** `2 double of hotel_123, 2026-12-24 + 3 nights`. */
function wordsOfLine({ propertyId, roomType, arrival, nights, rooms }: StayLine): string {
  return `${rooms} ${roomType} of ${propertyId}, ${arrival} + ${count(nights, 'night')}`
}

function momentOf(ms: number | undefined): string {
  return ms === undefined ? '' : new Date(ms).toISOString()
}

function listed(column: string, entries: readonly string[], counted: string): Table {
  return { columns: [column], rows: entries.map((entry) => [entry]), counted }
}

function weekday(date: string): string {
  const day = parseDay(date)
  return day === undefined ? '' : (WEEKDAYS[weekdayOf(day)] ?? '')
}

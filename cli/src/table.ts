/** Results of commands as tables. */

import { parseDay, weekdayOf } from '@vacancy/shared'
import { count, type Table } from '@vacancy/shared/node'
import type { NightPackage, Result } from '@vacancy/shared/wire'

/** Any result, with the fields of all commands. */
export type AnyResult = Partial<
  Result<'SEARCHAVAIL'> &
    Result<'SEARCHPROP'> &
    Result<'GETSEGMENTS'> &
    Result<'PROPROOMLIST'> &
    Result<'PROPROOMDATELIST'> &
    Result<'GETPROPROOMDAY'> &
    Result<'PROPEXIST'> &
    Result<'SETROOMAVL'>
>

/** For a longer stay, the range of prices from the cheapest to the most expensive night. */
const NIGHTS_SHOWN_MAX = 7
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

export function tableOf(result: AnyResult): Table {
  const { properties, propertyIds, segments, rateFeatures, roomTypes, dates, exists, availability } = result
  if (properties) {
    const columns = ['property', 'nights', 'rooms left', 'total', 'a night', 'rate features']
    return { columns, rows: properties.map(stayRow), counted: count(properties.length, 'property', 'properties') }
  }
  if (propertyIds) return listed('property', propertyIds, count(propertyIds.length, 'property', 'properties'))
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
  if (exists !== undefined) return { columns: ['exists'], rows: [[exists ? 'yes' : 'no']], counted: 'answered' }
  const index = result.index === undefined ? [] : [['index', String(result.index)] as const]
  const values = [...(availability === undefined ? [] : [['rooms left', availability] as const]), ...index]
  return { columns: values.map(([name]) => name), rows: [values.map(([, value]) => value)], counted: 'done' }
}

function stayRow({ propertyId, days }: { propertyId: string; days: NightPackage[] }): (string | number)[] {
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

function listed(column: string, entries: readonly string[], counted: string): Table {
  return { columns: [column], rows: entries.map((entry) => [entry]), counted }
}

function weekday(date: string): string {
  const day = parseDay(date)
  return day === undefined ? '' : (WEEKDAYS[weekdayOf(day)] ?? '')
}

/** Results as rows and columns, for table, calendar and export. */
import type { NightPackage, Result, SearchPage, SearchValues } from '@vacancy/shared/wire'

export type Answered = { readonly command: string; readonly result: { readonly [name: string]: unknown } }

/** With the values that the request wanted; compact hits have no days. */
export type Stay = { readonly propertyId: string; readonly days: readonly NightPackage[] } & SearchValues
export type Grid = { readonly columns: readonly string[]; readonly rows: readonly (readonly (string | number)[])[] }

type Any = Partial<Result<'SEARCHAVAIL'> & Result<'SEARCHPROP'> & Result<'GETSEGMENTS'>> & {
  readonly dates?: readonly string[]
  readonly roomTypes?: readonly string[]
  readonly rateFeatures?: readonly string[]
}

/** Stays of SEARCHAVAIL, or the night of GETPROPROOMDAY; undefined for other commands. */
export function staysOf({ command, result }: Answered): readonly Stay[] | undefined {
  if (command === 'SEARCHAVAIL') return (result as Any).properties ?? []
  if (command !== 'GETPROPROOMDAY') return undefined
  const { propertyId, ...night } = result as unknown as Result<'GETPROPROOMDAY'>
  return [{ propertyId, days: [night] }]
}

/** As the node counted it, or the sum of the nights. */
export function totalOf({ days, total }: Stay): number {
  if (total !== undefined) return Number(total)
  return days.reduce((sum, { finalPrice }) => sum + finalPrice, 0)
}

/** What a result has of each property: the total of its stay, or that it is among the hits. */
function valuesOf(answered: Answered): ReadonlyMap<string, number | true> {
  const stays = staysOf(answered)
  if (stays) return new Map(stays.map((stay) => [stay.propertyId, totalOf(stay)]))
  return new Map(((answered.result as Any).propertyIds ?? []).map((id) => [id, true]))
}

type ComparedRow = { readonly id: string; readonly before: number | boolean; readonly now: number | boolean }

/** Properties of two results that are in one of them only, or have another total; false where one is missing. */
export function comparedRows(earlier: Answered, current: Answered) {
  const [before, now] = [valuesOf(earlier), valuesOf(current)]
  const rows = [...new Set([...before.keys(), ...now.keys()])].map(
    (id): ComparedRow => ({ id, before: before.get(id) ?? false, now: now.get(id) ?? false }),
  )
  const differing = rows.filter((row) => {
    if (row.before === false || row.now === false) return true
    // Hits without a total on one side are not known to differ.
    return row.before !== true && row.now !== true && row.before !== row.now
  })
  return { differing, same: rows.length - differing.length }
}

/** The page that a search returned; undefined when it was not requested. */
export function pageOf({ result }: Answered): SearchPage | undefined {
  return (result as Any).page
}

/** All of a result: one row per entry; for stays one row per property and columns per night. */
export function gridOf(answered: Answered): Grid {
  const stays = staysOf(answered)
  if (stays) return gridOfStays(stays)
  const { propertyIds, segments, dates, roomTypes, rateFeatures } = answered.result as Any
  const one = (column: string, entries: readonly string[]): Grid => ({
    columns: [column],
    rows: entries.map((entry) => [entry]),
  })
  if (propertyIds) return one('property', propertyIds)
  if (dates) return one('date', dates)
  if (roomTypes) return one('room type', roomTypes)
  if (segments) {
    return {
      columns: ['segment', 'properties'],
      rows: segments.map(({ segment, propertyCount }) => [segment, propertyCount]),
    }
  }
  if (rateFeatures) return { columns: ['bit', 'rate feature'], rows: rateFeatures.map((name, bit) => [bit, name]) }
  const { explain: _, ...values } = answered.result
  return { columns: ['field', 'value'], rows: Object.entries(values).map(([name, value]) => [name, String(value)]) }
}

const WANTED = {
  roomType: 'room type',
  distanceMetres: 'distance in metres',
  latitude: 'latitude',
  longitude: 'longitude',
}

function gridOfStays(stays: readonly Stay[]): Grid {
  const dates = stays[0]?.days.map(({ date }) => date) ?? []
  const wanted = (['roomType', 'distanceMetres', 'latitude', 'longitude'] as const).filter(
    (name) => stays[0]?.[name] !== undefined,
  )
  const columns = [
    'property',
    ...dates.flatMap((date) => [`${date} price`, `${date} rooms`, `${date} features`]),
    ...wanted.map((name) => WANTED[name]),
    'total',
  ]
  return {
    columns,
    rows: stays.map((stay) => [
      stay.propertyId,
      ...stay.days.flatMap(({ finalPrice, availability, rateFeatures }) => [
        finalPrice,
        availability,
        rateFeatures.join(' '),
      ]),
      ...wanted.map((name) => stay[name] ?? ''),
      totalOf(stay),
    ]),
  }
}

/** RFC 4180. Cells that a spreadsheet would run as a formula get an apostrophe (OWASP, CSV injection). */
export function csvOf({ columns, rows }: Grid): string {
  return `${[columns, ...rows].map((row) => row.map(cellOf).join(',')).join('\r\n')}\r\n`
}

function cellOf(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const safe =
    /^[\s\u00a0]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(value) || /^[\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

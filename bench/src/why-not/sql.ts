/** Tables, indexes and statements that SQLite and PostgreSQL share. */
import { PAGE_STAYS, type StayPage } from '../queries.ts'
import type { NumberedSearch } from './numbers.ts'

/**
 * A row for each property, and one for each night. Names are numbers. The type of the property is repeated in the night,
 * because every search names it: so the nights that a search looks at are neighbours in the primary key.
 */
export const TABLES = `
  CREATE TABLE property (
    no INTEGER PRIMARY KEY, id TEXT NOT NULL, segment SMALLINT NOT NULL, type SMALLINT NOT NULL,
    category SMALLINT NOT NULL, stars SMALLINT NOT NULL, area INTEGER NOT NULL, amenities INTEGER NOT NULL
  );
  CREATE TABLE night (
    segment SMALLINT NOT NULL, room_type SMALLINT NOT NULL, day INTEGER NOT NULL, type SMALLINT NOT NULL,
    property INTEGER NOT NULL, rooms SMALLINT NOT NULL, price INTEGER NOT NULL, features SMALLINT NOT NULL`

export const NIGHT_KEY = 'PRIMARY KEY (segment, room_type, day, type, property)'
export const PROPERTY_INDEX = 'CREATE INDEX property_traits ON property (segment, type, category, stars, area)'

export type Statement = { readonly sql: string; readonly values: readonly number[] }

/**
 * With a filter on the property its rows are few: they come first, with one join per night. Without one, the nights that
 * match are counted for each property.
 *
 * @param marker text of parameter n, from 1
 * @param joinInOrder the join operator that keeps this order, where the planner would choose another one
 */
export function searchStatement(
  search: NumberedSearch,
  { marker, joinInOrder }: { marker: (n: number) => string; joinInOrder: string },
): Statement {
  const { values, value, room } = roomOf(search, marker)
  const { type, category, stars, area, amenities, days, limit } = search
  const traits = Object.entries({ category, stars, area }).flatMap(([name, wanted]) =>
    wanted === undefined ? [] : [`p.${name} = ${value(wanted)}`],
  )
  if (amenities > 0) {
    const mask = value(amenities)
    traits.push(`p.amenities & ${mask} = ${mask}`)
  }
  if (traits.length === 0) {
    const dates = days.map(value).join()
    const counted = `SELECT property FROM night WHERE ${room('')} AND day IN (${dates}) GROUP BY property HAVING count(*) = ${value(days.length)}`
    const sql = `SELECT p.id FROM (${counted}) free${joinInOrder}property p WHERE p.no = free.property LIMIT ${value(limit)}`
    return { sql, values }
  }
  const tables = days.map((_, i) => `night n${i}`)
  const joins = days.map((day, i) => `n${i}.property = p.no AND n${i}.day = ${value(day)} AND ${room(`n${i}.`)}`)
  const conditions = [`p.segment = ${value(search.segment)} AND p.type = ${value(type)}`, ...traits, ...joins]
  const sql = `SELECT p.id FROM ${['property p', ...tables].join(joinInOrder)} WHERE ${conditions.join(' AND ')} LIMIT ${value(limit)}`
  return { sql, values }
}

/** Collects the values of a search, and the condition on the rows of one night. */
function roomOf(search: NumberedSearch, marker: (n: number) => string) {
  const values: number[] = []
  const value = (number: number) => marker(values.push(number))
  const [segment, roomType, type, price] = [search.segment, search.roomType, search.type, search.price].map(value)
  const features = search.features === 0 ? '' : value(search.features)
  const room = (night: string) =>
    [
      `${night}segment = ${segment} AND ${night}room_type = ${roomType} AND ${night}type = ${type}`,
      `${night}rooms > 0 AND ${night}price <= ${price}`,
      ...(features ? [`${night}features & ${features} = ${features}`] : []),
    ].join(' AND ')
  return { values, value, room }
}

/**
 * A page of the cheapest stays: id, total, and the number of all stays in each row. Property numbers ascend with ids, so
 * only the properties of the page are looked up.
 */
export function pageStatement(search: NumberedSearch, marker: (n: number) => string): Statement {
  const { values, value, room } = roomOf(search, marker)
  const { days } = search
  const stays = [
    'SELECT property, sum(price) AS total, count(*) OVER () AS matches FROM night',
    `WHERE ${room('')} AND day IN (${days.map(value).join()}) GROUP BY property HAVING count(*) = ${value(days.length)}`,
    `ORDER BY sum(price), property LIMIT ${value(PAGE_STAYS)}`,
  ].join(' ')
  const page = `SELECT p.id, stay.total, stay.matches FROM (${stays}) stay JOIN property p ON p.no = stay.property`
  return { sql: `${page} ORDER BY stay.total, stay.property`, values }
}

/** The page in the rows of its statement. */
export function pageOf(rows: readonly (readonly unknown[])[]): StayPage {
  const stays = rows.map(([id, total]) => ({ id: String(id), total: Number(total) }))
  return { stays, matches: Number(rows[0]?.[2] ?? 0) }
}

/** Takes or gives rooms; changes no row when none is left. Parameters: rooms, segment, room type, day, type, property. */
export function writeSql(marker: (n: number) => string): string {
  const key = ['segment', 'room_type', 'day', 'type', 'property'].map((name, i) => `${name} = ${marker(i + 2)}`)
  return `UPDATE night SET rooms = rooms + ${marker(1)} WHERE ${key.join(' AND ')} AND rooms + ${marker(1)} >= 0`
}

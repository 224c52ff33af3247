/**
 * Requests that fit a data set, with the answers they must get: thousands of different ones, because a few
 * repeated ones stay in the processor's cache and flatter everything (docs/design/testing.md#load).
 *
 * Answers come from the slow, obvious rule below, not from the engine: every row of the table, every night.
 */
import { formatDay, parseDay } from '@vacancy/shared'
import { type Dataset, namesIn, nightsOf } from './dataset.ts'
import { availabilityOf, featuresOf, priceOf } from './inventory.ts'
import { below, createRandom, nextU32, type Random, upperBound } from './random.ts'

/** Fields of SEARCHAVAIL, named as the wire codec names them. */
export type SearchFields = {
  segment: string
  roomType: string
  propertyType: string
  category?: string
  stars?: number
  area?: string
  amenities?: string[]
  dates: string[]
  finalPrice?: number
  rateFeatures?: string[]
  limit: number
}

/** A search and how many properties its answer holds. */
export type Search = { fields: SearchFields; hits: number }

/** `selective`: about 0.7 % of a table's properties, 30 in the answer. `broad`: enough to reach the limit of 300. */
const SEARCH_CLASSES = ['selective', 'broad'] as const
export type SearchClass = (typeof SEARCH_CLASSES)[number]

const BROAD_LIMIT = 300
const SELECTIVE_HITS = 30
/** Rows looked at to bound the price of a broad search; all of them when too few of these are free. */
const BROAD_SAMPLE = 1500
const STAY_NIGHTS = 3
/** A selective query takes on filters until at most this share of the table is left: on average about 0.7 %. */
const SELECTIVE_SHARE_MAX = 0.01

export type Update =
  | { command: 'SETROOMAVL'; fields: { propertyId: string; roomType: string; date: string; amount: number } }
  | { command: 'SETROOMPKG'; fields: { propertyId: string; roomType: string; date: string; finalPrice: number } }

/**
 * Rows by table (segment and room type): rows[start[table]] … rows[start[table + 1] − 1], table = segment * roomTypes
 * + roomType; and the rows of a table whose property is of one type, as far as they were requested.
 */
export type Tables = { dataset: Dataset; start: Uint32Array; rows: Uint32Array; ofType: Map<number, Uint32Array> }

export function createTables(dataset: Dataset): Tables {
  const { names, rows } = dataset
  const start = new Uint32Array(names.segments.length * names.roomTypes.length + 1)
  for (let row = 0; row < rows.property.length; row++) {
    const table = tableOf(dataset, row)
    start[table + 1] = (start[table + 1] ?? 0) + 1
  }
  for (let table = 1; table < start.length; table++) start[table] = (start[table] ?? 0) + (start[table - 1] ?? 0)
  const next = start.slice()
  const sorted = new Uint32Array(rows.property.length)
  for (let row = 0; row < rows.property.length; row++) {
    const table = tableOf(dataset, row)
    const place = next[table] ?? 0
    sorted[place] = row
    next[table] = place + 1
  }
  return { dataset, start, rows: sorted, ofType: new Map() }
}

function tableOf({ names, properties, rows }: Dataset, row: number): number {
  const segment = properties.segment[rows.property[row] ?? 0] ?? 0
  return segment * names.roomTypes.length + (rows.roomType[row] ?? 0)
}

/**
 * `count` different searches of a class, fewer when the data set is too small to have as many. Tables, dates and
 * values are drawn from rows that exist, so large tables are searched more often than small ones.
 */
export function searches(
  tables: Tables,
  { kind, count, seed }: { kind: SearchClass; count: number; seed: number },
): Search[] {
  const random = createRandom(seed)
  const found = new Map<string, Search>()
  for (let draws = 0; found.size < count && draws < count * 20; draws++) {
    const search = kind === 'selective' ? selectiveSearch(tables, random) : broadSearch(tables, random)
    if (search) found.set(JSON.stringify(search.fields), search)
  }
  return [...found.values()]
}

const COMPLETE_HITS = 300
const COMPLETE_LIMIT = 1_000

/**
 * Different searches with about 300 hits that stay below their limit, so that the set of properties does not depend on
 * an order. Every third names a rate feature.
 */
export function completeSearches(tables: Tables, { count, seed }: { count: number; seed: number }): Search[] {
  const { dataset } = tables
  const random = createRandom(seed)
  const found = new Map<string, Search>()
  for (let draws = 0; found.size < count && draws < count * 20; draws++) {
    const stay = drawStay(tables, random)
    if (!stay) continue
    const plain = { ...searchFor(dataset, stay), limit: COMPLETE_LIMIT }
    const fields = below(random, 3) === 0 ? { ...plain, rateFeatures: usualFeature(dataset, stay.row) } : plain
    const criteria = criteriaOf(dataset, fields)
    const prices = pricesOf(dataset, rowsOfType(tables, criteria), stay.days, criteria.rateFeatures)
    const search = withPriceFor(COMPLETE_HITS, prices, fields)
    if (search) found.set(JSON.stringify(search.fields), search)
  }
  return [...found.values()]
}

/** `count` changes of packages that exist: rooms left, and now and then a price. */
export function updates({ dataset }: Tables, { count, seed }: { count: number; seed: number }): Update[] {
  const { names, properties, rows, spec } = dataset
  const random = createRandom(seed)
  return Array.from({ length: count }, (): Update => {
    const row = below(random, rows.property.length)
    const nights = nightsOf(dataset, row)
    const target = {
      propertyId: properties.ids[rows.property[row] ?? 0] ?? '',
      roomType: names.roomTypes[rows.roomType[row] ?? 0] ?? '',
      date: formatDay(spec.from + below(random, nights)),
    }
    const capacity = rows.capacity[row] ?? 0
    return below(random, 4) === 0
      ? { command: 'SETROOMPKG', fields: { ...target, finalPrice: (rows.basePrice[row] ?? 0) + below(random, 100) } }
      : { command: 'SETROOMAVL', fields: { ...target, amount: below(random, capacity + 1) } }
  })
}

/** Ids of all properties that a search must find, by looking at every row of its table. The limit is left aside. */
export function answerTo(tables: Tables, fields: SearchFields): string[] {
  return foundRows(tables, fields).map((row) => idOf(tables.dataset, row))
}

/** The cheapest stays of a search, by total and id, and how many stays it finds. */
export type StayPage = { stays: { id: string; total: number }[]; matches: number }

/** Stays on a page. */
export const PAGE_STAYS = 25

/** The page that a search must find, like `answerTo`. */
export function pageTo(tables: Tables, fields: SearchFields): StayPage {
  const { dataset } = tables
  const days = daysOf(fields)
  const totalOf = (row: number) => days.reduce((sum, day) => sum + priceOf(dataset.packageOf(dataset, row, day)), 0)
  const stays = foundRows(tables, fields).map((row) => ({ id: idOf(dataset, row), total: totalOf(row) }))
  stays.sort((a, b) => a.total - b.total || (a.id < b.id ? -1 : 1))
  return { stays: stays.slice(0, PAGE_STAYS), matches: stays.length }
}

const daysOf = ({ dates }: SearchFields) => dates.map((date) => parseDay(date) ?? -1)
const idOf = ({ properties, rows }: Dataset, row: number) => properties.ids[rows.property[row] ?? 0] ?? ''

function foundRows(tables: Tables, fields: SearchFields): number[] {
  const { dataset } = tables
  const criteria = criteriaOf(dataset, fields)
  const days = daysOf(fields)
  return [...rowsIn(tables, criteria)]
    .filter((row) => isWanted(dataset, row, criteria))
    .filter((row) => greatestPrice(dataset, row, days, criteria.rateFeatures) <= (fields.finalPrice ?? Infinity))
}

/** The criteria of a search as numbers; −1 = any. */
type Criteria = {
  segment: number
  roomType: number
  type: number
  category: number
  stars: number
  area: number
  amenities: number
  rateFeatures: number
}

function criteriaOf({ names }: Dataset, fields: SearchFields): Criteria {
  const place = (list: readonly string[], name: string | undefined) => (name === undefined ? -1 : list.indexOf(name))
  return {
    segment: place(names.segments, fields.segment),
    roomType: place(names.roomTypes, fields.roomType),
    type: place(names.types, fields.propertyType),
    category: place(names.categories, fields.category),
    stars: fields.stars ?? -1,
    area: place(names.areas, fields.area),
    amenities: maskOf(fields.amenities ?? [], names.amenities),
    rateFeatures: maskOf(fields.rateFeatures ?? [], names.rateFeatures),
  }
}

function maskOf(wanted: readonly string[], names: readonly string[]): number {
  return wanted.reduce((mask, name) => mask | (1 << names.indexOf(name)), 0)
}

function rowsIn({ dataset, start, rows }: Tables, { segment, roomType }: Criteria): Uint32Array {
  const table = segment * dataset.names.roomTypes.length + roomType
  return rows.subarray(start[table], start[table + 1])
}

/** The rows of a table that are of the wanted type: cached, because every query uses one of a few such lists. */
function rowsOfType(tables: Tables, criteria: Criteria): Uint32Array {
  const { names, properties, rows } = tables.dataset
  const table = criteria.segment * names.roomTypes.length + criteria.roomType
  const key = table * names.types.length + criteria.type
  const known = tables.ofType.get(key)
  if (known) return known
  const found = rowsIn(tables, criteria).filter((row) => properties.type[rows.property[row] ?? 0] === criteria.type)
  tables.ofType.set(key, found)
  return found
}

/** Whether the property of a row passes the filters on properties. */
function isWanted({ properties, rows }: Dataset, row: number, criteria: Criteria): boolean {
  const property = rows.property[row] ?? 0
  return (
    (criteria.type < 0 || properties.type[property] === criteria.type) &&
    (criteria.category < 0 || properties.category[property] === criteria.category) &&
    (criteria.stars < 0 || properties.stars[property] === criteria.stars) &&
    (criteria.area < 0 || properties.area[property] === criteria.area) &&
    ((properties.amenities[property] ?? 0) & criteria.amenities) === criteria.amenities
  )
}

/** The price a search must allow to find this row on all nights; infinite when one night is sold out, not on sale or lacks a feature. */
function greatestPrice(dataset: Dataset, row: number, days: readonly number[], rateFeatures: number): number {
  let greatest = 0
  for (const day of days) {
    if (day - dataset.spec.from >= nightsOf(dataset, row)) return Infinity
    const packed = dataset.packageOf(dataset, row, day)
    if (availabilityOf(packed) === 0 || (featuresOf(packed) & rateFeatures) !== rateFeatures) return Infinity
    greatest = Math.max(greatest, priceOf(packed))
  }
  return greatest
}

/** A row to search for and the nights of a stay; undefined when the row is on sale for too few nights. */
function drawStay(tables: Tables, random: Random): { row: number; days: number[] } | undefined {
  const { dataset } = tables
  const row = below(random, dataset.rows.property.length)
  const onSale = nightsOf(dataset, row)
  const nights = Math.min(STAY_NIGHTS, dataset.spec.days)
  if (onSale < nights) return undefined
  const arrival = dataset.spec.from + below(random, onSale - nights + 1)
  return { row, days: Array.from({ length: nights }, (_, night) => arrival + night) }
}

/** The traits of a row's property, from the widest to the narrowest filter: the type is always named. */
function filtersOf({ names, properties, rows }: Dataset, row: number, random: Random): Partial<SearchFields>[] {
  const property = rows.property[row] ?? 0
  const amenities = namesIn(properties.amenities[property] ?? 0, names.amenities)
  const liked = amenities.length > 0 ? below(random, amenities.length) : 0
  return [
    { category: names.categories[properties.category[property] ?? 0] ?? '' },
    { stars: properties.stars[property] ?? 0 },
    amenities.length > 0 ? { amenities: amenities.slice(liked, liked + 1) } : {},
    amenities.length > 1 ? { amenities: amenities.slice(liked > 0 ? liked - 1 : 0, liked > 0 ? liked + 1 : 2) } : {},
    { area: names.areas[properties.area[property] ?? 0] ?? '' },
  ]
}

function searchFor({ names, properties, rows }: Dataset, { row, days }: { row: number; days: number[] }): SearchFields {
  const property = rows.property[row] ?? 0
  return {
    segment: names.segments[properties.segment[property] ?? 0] ?? '',
    roomType: names.roomTypes[rows.roomType[row] ?? 0] ?? '',
    propertyType: names.types[properties.type[property] ?? 0] ?? '',
    dates: days.map(formatDay),
    limit: BROAD_LIMIT,
  }
}

function selectiveSearch(tables: Tables, random: Random): Search | undefined {
  const { dataset } = tables
  const stay = drawStay(tables, random)
  if (!stay) return undefined
  let fields = searchFor(dataset, stay)
  const plain = criteriaOf(dataset, fields)
  const wantedMost = Math.max(SELECTIVE_HITS, rowsIn(tables, plain).length * SELECTIVE_SHARE_MAX)
  let wanted = rowsOfType(tables, plain)
  for (const filter of filtersOf(dataset, stay.row, random)) {
    fields = { ...fields, ...filter }
    const criteria = criteriaOf(dataset, fields)
    wanted = wanted.filter((row) => isWanted(dataset, row, criteria))
    if (wanted.length <= wantedMost) break
  }
  return withPriceFor(SELECTIVE_HITS, pricesOf(dataset, wanted, stay.days, 0), fields)
}

function broadSearch(tables: Tables, random: Random): Search | undefined {
  const { dataset } = tables
  const stay = drawStay(tables, random)
  if (!stay) return undefined
  const plain = searchFor(dataset, stay)
  const fields = below(random, 3) === 0 ? { ...plain, rateFeatures: usualFeature(dataset, stay.row) } : plain
  const criteria = criteriaOf(dataset, fields)
  const rows = rowsOfType(tables, criteria)
  // A part that reaches the limit alone proves that all rows together do.
  const first = below(random, Math.max(1, rows.length - BROAD_SAMPLE))
  const part = pricesOf(dataset, rows.subarray(first, first + BROAD_SAMPLE), stay.days, criteria.rateFeatures)
  const isEnough = part.length >= 2 * BROAD_LIMIT
  const prices = isEnough ? part : pricesOf(dataset, rows, stay.days, criteria.rateFeatures)
  // The dearest half of what fits may be left out, as long as the limit is reached.
  const kept = Math.max(BROAD_LIMIT, Math.ceil(prices.length * (0.5 + (nextU32(random) % 512) / 1024)))
  return withPriceFor(kept, prices, fields)
}

function usualFeature({ names, rows }: Dataset, row: number): string[] {
  return namesIn(rows.features[row] ?? 0, names.rateFeatures).slice(0, 1)
}

/** Ascending greatest prices of the rows that are free for the whole stay. */
function pricesOf(dataset: Dataset, rows: Uint32Array, days: readonly number[], rateFeatures: number): Float64Array {
  const prices = new Float64Array(rows.length)
  let count = 0
  for (const row of rows) {
    const price = greatestPrice(dataset, row, days, rateFeatures)
    if (price === Infinity) continue
    prices[count] = price
    count += 1
  }
  return prices.subarray(0, count).sort()
}

/** Bounds the price so that `wanted` properties pass, or a few more where prices are equal. */
function withPriceFor(wanted: number, prices: Float64Array, fields: SearchFields): Search | undefined {
  const finalPrice = prices[Math.min(wanted, prices.length) - 1]
  if (finalPrice === undefined) return undefined
  return { fields: { ...fields, finalPrice }, hits: Math.min(upperBound(prices, finalPrice), fields.limit) }
}

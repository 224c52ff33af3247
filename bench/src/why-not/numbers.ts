/** Searches and nights as the numbers that a table or a bitmap holds instead of names. */
import { parseDay } from '@vacancy/shared'
import { type Dataset, nightsOf } from '../dataset.ts'
import { availabilityOf, featuresOf, priceOf } from '../inventory.ts'
import { createTables, type SearchFields } from '../queries.ts'

/** Absent filters are undefined, absent sets 0. */
export type NumberedSearch = ReturnType<typeof numbered>

export function numbered({ names }: Dataset, fields: SearchFields) {
  const mask = (wanted: readonly string[] = [], list: readonly string[]) =>
    wanted.reduce((bits, name) => bits | (1 << list.indexOf(name)), 0)
  return {
    segment: names.segments.indexOf(fields.segment),
    roomType: names.roomTypes.indexOf(fields.roomType),
    type: names.types.indexOf(fields.propertyType),
    category: fields.category === undefined ? undefined : names.categories.indexOf(fields.category),
    stars: fields.stars,
    area: fields.area === undefined ? undefined : names.areas.indexOf(fields.area),
    amenities: mask(fields.amenities, names.amenities),
    features: mask(fields.rateFeatures, names.rateFeatures),
    days: fields.dates.map((date) => parseDay(date) ?? 0),
    /** Greatest price allowed. */
    price: fields.finalPrice ?? 0xffff_ffff,
    limit: fields.limit,
  }
}

/** A package as a row of a table. */
export type Night = {
  readonly segment: number
  readonly roomType: number
  readonly day: number
  readonly type: number
  readonly property: number
  readonly rooms: number
  readonly price: number
  readonly features: number
}

/** All packages in the order of the key of the table (sql.ts), so that nothing is inserted between others. */
export function* nights(dataset: Dataset): Generator<Night> {
  const { names, properties, rows, spec } = dataset
  const tables = createTables(dataset)
  const typeOf = (row: number) => properties.type[rows.property[row] ?? 0] ?? 0
  for (let table = 0; table < tables.start.length - 1; table++) {
    const sorted = tables.rows
      .slice(tables.start[table], tables.start[table + 1])
      .sort((a, b) => typeOf(a) - typeOf(b) || a - b)
    const [segment, roomType] = [Math.floor(table / names.roomTypes.length), table % names.roomTypes.length]
    for (let night = 0; night < spec.days; night++) {
      const day = spec.from + night
      for (const row of sorted) {
        if (night >= nightsOf(dataset, row)) continue
        const packed = dataset.packageOf(dataset, row, day)
        yield {
          segment,
          roomType,
          day,
          type: typeOf(row),
          property: rows.property[row] ?? 0,
          rooms: availabilityOf(packed),
          price: priceOf(packed),
          features: featuresOf(packed),
        }
      }
    }
  }
}

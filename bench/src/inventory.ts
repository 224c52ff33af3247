/**
 * The columns of a generated data set: its properties, and its rows (one property, one room type).
 *
 * Packages have no column. A package is a function of its row and its day (`NightlyPackage`), so 60 million of
 * them cost no memory, any of them can be looked up again to check an answer, and a later first day gives the
 * days that both data sets share the same values.
 */
import type { Random } from './random.ts'

/** What the parts of a data set are called; columns hold places in these lists. */
export type Names = {
  segments: readonly string[]
  areas: readonly string[]
  types: readonly string[]
  categories: readonly string[]
  amenities: readonly string[]
  roomTypes: readonly string[]
  rateFeatures: readonly string[]
}

type Properties = {
  ids: string[]
  segment: Uint16Array
  area: Uint32Array
  type: Uint8Array
  category: Uint8Array
  stars: Uint8Array
  /** Millionths of a degree: six fractional digits, exact. */
  latitudeMicro: Int32Array
  longitudeMicro: Int32Array
  /** Bit i = names.amenities[i]; at most 31 of them. */
  amenities: Uint32Array
}

type Rows = {
  property: Uint32Array
  roomType: Uint16Array
  /** Price a night before weekday, season and chance. */
  basePrice: Uint16Array
  /** Rooms of this type in the house. */
  capacity: Uint8Array
  /** Bit i = names.rateFeatures[i]: what the row usually offers. */
  features: Uint8Array
  /** What chance is drawn from, night by night. */
  seed: Uint32Array
  /** Packages of all rows before this one; one more entry at the end holds the total. */
  packagesBefore: Uint32Array
}

export type Inventory = { names: Names; properties: Properties; rows: Rows; packages: number }

/** One package as one number: price << 16 | availability << 8 | features. Prices stay below 16,384, so it is never negative. */
export type NightlyPackage = (inventory: Inventory, row: number, day: number) => number

export const PRICE_END = 16_384

export function packPackage(price: number, availability: number, features: number): number {
  return (price << 16) | (availability << 8) | features
}

export const priceOf = (packed: number): number => packed >>> 16
export const availabilityOf = (packed: number): number => (packed >>> 8) & 0xff
export const featuresOf = (packed: number): number => packed & 0xff

/** How a shape of data is made: its words, one property after the other, and the rule of its nights. */
export type Shape = {
  names(segments: number): Names
  /** Packages an average property has, to guess the number of properties and from it the segments. */
  packagesPerProperty(days: number): number
  segmentsFor(properties: number): number
  addProperty(draft: Draft, random: Random): void
  varying: NightlyPackage
  constant: NightlyPackage
}

/** Rows while they are collected: lists that grow, because the number of rows is known only at the end. */
export type Draft = {
  names: Names
  days: number
  packagesLeft: number
  packages: number
  ids: string[]
  property: { [Column in keyof Omit<Properties, 'ids'>]: number[] }
  row: { [Column in keyof Omit<Rows, 'packagesBefore'>]: number[] }
  packagesBefore: number[]
}

export function createDraft(names: Names, packages: number, days: number): Draft {
  return {
    names,
    days,
    packagesLeft: packages,
    packages: 0,
    ids: [],
    property: {
      segment: [],
      area: [],
      type: [],
      category: [],
      stars: [],
      latitudeMicro: [],
      longitudeMicro: [],
      amenities: [],
    },
    row: { property: [], roomType: [], basePrice: [], capacity: [], features: [], seed: [] },
    packagesBefore: [],
  }
}

export type PropertyDraft = { id: string } & Record<keyof Draft['property'], number>
export type RowDraft = { nights: number } & Record<Exclude<keyof Draft['row'], 'property'>, number>

export function addProperty(draft: Draft, property: PropertyDraft): void {
  draft.ids.push(property.id)
  const columns = draft.property
  columns.segment.push(property.segment)
  columns.area.push(property.area)
  columns.type.push(property.type)
  columns.category.push(property.category)
  columns.stars.push(property.stars)
  columns.latitudeMicro.push(property.latitudeMicro)
  columns.longitudeMicro.push(property.longitudeMicro)
  columns.amenities.push(property.amenities)
}

/** Adds a row to the last property. The row that meets the wanted number of packages is cut, later ones are left out. */
export function addRow(draft: Draft, row: RowDraft): void {
  const nights = Math.min(row.nights, draft.packagesLeft)
  if (nights === 0) return
  draft.packagesBefore.push(draft.packages)
  draft.packages += nights
  draft.packagesLeft -= nights
  const columns = draft.row
  columns.property.push(draft.ids.length - 1)
  columns.roomType.push(row.roomType)
  columns.basePrice.push(row.basePrice)
  columns.capacity.push(row.capacity)
  columns.features.push(row.features)
  columns.seed.push(row.seed)
}

export function finishDraft(draft: Draft): Inventory {
  const { property, row } = draft
  return {
    names: draft.names,
    packages: draft.packages,
    properties: {
      ids: draft.ids,
      segment: Uint16Array.from(property.segment),
      area: Uint32Array.from(property.area),
      type: Uint8Array.from(property.type),
      category: Uint8Array.from(property.category),
      stars: Uint8Array.from(property.stars),
      latitudeMicro: Int32Array.from(property.latitudeMicro),
      longitudeMicro: Int32Array.from(property.longitudeMicro),
      amenities: Uint32Array.from(property.amenities),
    },
    rows: {
      property: Uint32Array.from(row.property),
      roomType: Uint16Array.from(row.roomType),
      basePrice: Uint16Array.from(row.basePrice),
      capacity: Uint8Array.from(row.capacity),
      features: Uint8Array.from(row.features),
      seed: Uint32Array.from(row.seed),
      packagesBefore: Uint32Array.from([...draft.packagesBefore, draft.packages]),
    },
  }
}

/**
 * The eight rate features of the sample data, in the order of its codec list (docs/design/http.md#sample-codec-list).
 */
export const SAMPLE_RATE_FEATURES = [
  'free_cancellation',
  'non_refundable',
  'pay_at_property',
  'includes_breakfast',
  'free_wifi',
  'no_prepayment',
  'partial_refund',
  'instant_confirmation',
] as const

/**
 * Seeded data sets: which properties and packages there are, for the CSV writer, for queries and for checks.
 *
 * A data set is a pure function of its specification. It is made again wherever it is needed instead of being
 * read back from the files.
 */
import {
  addProperty,
  addRow,
  createDraft,
  finishDraft,
  type Inventory,
  type Names,
  type NightlyPackage,
  packPackage,
  SAMPLE_RATE_FEATURES,
  type Shape,
} from './inventory.ts'
import { below, between, createRandom, hash2, nextU32, pickMask } from './random.ts'
import { REGION_SEGMENTS_MAX, region } from './region.ts'

const PROPERTIES_PER_SEGMENT = 25_000
const AREAS_PER_SEGMENT = 20
const ROOM_TYPES = ['room1', 'room2', 'room3', 'room4'] as const
/** Houses stand at street corners, a thousandth of a degree apart. */
const BLOCK_MICRO = 1000
const AVAILABILITIES = 20
const PRICES = 128
/** By category. */
const CONSTANT_FEATURES = [0b0001_0110, 0b0101_0001, 0b1001_1001, 0b1101_1101] as const

/**
 * Shape `uniform`: every property has every room type, every value is equally likely.
 *
 * It is the data docs/design/search.md speaks of: about 98 bytes a record, segments of 25,000 properties, and nights
 * that either carry 12.8 bits of chance each (20 availabilities, 128 prices; the size of a random snapshot in
 * docs/design/storage.md#snapshot-format follows from that) or none at all: then a price comes from what the property
 * is, and a night is as the night before.
 */
const uniform: Shape = {
  names: (segments): Names => ({
    segments: Array.from({ length: segments }, (_, i) => `segment_${i + 1}`),
    areas: Array.from(
      { length: segments * AREAS_PER_SEGMENT },
      (_, i) => `area_${Math.floor(i / AREAS_PER_SEGMENT) + 1}_${(i % AREAS_PER_SEGMENT) + 1}`,
    ),
    types: ['hotel', 'hostel', 'resort', 'apartment'],
    categories: ['budget', 'standard', 'premium', 'luxury'],
    amenities: ['wifi', 'pool', 'breakfast', 'spa', 'restaurant', 'bar', 'gym', 'parking'],
    roomTypes: ROOM_TYPES,
    rateFeatures: SAMPLE_RATE_FEATURES,
  }),

  packagesPerProperty: (days) => ROOM_TYPES.length * days,

  segmentsFor: (properties) => Math.max(1, Math.round(properties / PROPERTIES_PER_SEGMENT)),

  addProperty(draft, random) {
    const segment = below(random, draft.names.segments.length)
    addProperty(draft, {
      id: `p_${String(draft.ids.length + 1).padStart(7, '0')}`,
      segment,
      area: segment * AREAS_PER_SEGMENT + below(random, AREAS_PER_SEGMENT),
      type: below(random, draft.names.types.length),
      category: below(random, draft.names.categories.length),
      stars: between(random, 2, 5),
      latitudeMicro: 40_500_000 + 100_000 * (segment % 100) + BLOCK_MICRO * between(random, -10, 10),
      longitudeMicro: -73_500_000 + 100_000 * (segment % 100) + BLOCK_MICRO * between(random, -10, 10),
      amenities: pickMask(random, draft.names.amenities.length, between(random, 3, 5)),
    })
    for (let roomType = 0; roomType < ROOM_TYPES.length; roomType++) {
      addRow(draft, {
        roomType,
        basePrice: between(random, 50, 299),
        capacity: between(random, 1, AVAILABILITIES - 1),
        features: pickMask(random, SAMPLE_RATE_FEATURES.length, between(random, 3, 5)),
        seed: nextU32(random),
        nights: draft.days,
      })
    }
  },

  varying({ rows }, row, day) {
    const chance = hash2(rows.seed[row] ?? 0, day)
    const price = (rows.basePrice[row] ?? 0) + (chance & (PRICES - 1))
    return packPackage(price, (chance >>> 8) % AVAILABILITIES, rows.features[row] ?? 0)
  },

  constant({ properties, rows }, row) {
    const property = rows.property[row] ?? 0
    const roomType = rows.roomType[row] ?? 0
    const category = properties.category[property] ?? 0
    const price = 60 + 30 * roomType + 40 * category + 15 * (properties.stars[property] ?? 0)
    return packPackage(price, 5 + 3 * roomType, CONSTANT_FEATURES[category] ?? 0)
  },
}

export const SHAPES = ['uniform', 'region'] as const
export const NIGHTS = ['random', 'constant'] as const
export const PACKAGES_MAX = 500_000_000
/** The window of dates a node keeps is one year. */
export const DAYS_MAX = 366
export const SEGMENTS_MAX = 2_000

export type DatasetSpec = {
  shape: (typeof SHAPES)[number]
  packages: number
  /** Nights on sale. */
  days: number
  /** First night, in days since 1970-01-01. */
  from: number
  seed: number
  /** Number of segments; 0 = as many as the shape thinks right for the number of properties. */
  segments: number
  /** `random`: availability and price change from night to night. `constant`: they do not. */
  nights: (typeof NIGHTS)[number]
}

export type Dataset = Inventory & { spec: DatasetSpec; packageOf: NightlyPackage }

/** Most segments a shape has names or numbers for. */
export function segmentsMax(shape: DatasetSpec['shape']): number {
  return shape === 'region' ? REGION_SEGMENTS_MAX : SEGMENTS_MAX
}

export function createDataset(spec: DatasetSpec): Dataset {
  const shape = shapeOf(spec)
  const properties = Math.max(1, Math.round(spec.packages / shape.packagesPerProperty(spec.days)))
  const names = shape.names(spec.segments || shape.segmentsFor(properties))
  const draft = createDraft(names, spec.packages, spec.days)
  const random = createRandom(spec.seed)
  while (draft.packagesLeft > 0) shape.addProperty(draft, random)
  return { ...finishDraft(draft), spec, packageOf: spec.nights === 'constant' ? shape.constant : shape.varying }
}

function shapeOf(spec: DatasetSpec): Shape {
  return { uniform, region }[spec.shape]
}

/** How many nights a row has from the data set's first day on: all, but the last row may be cut. */
export function nightsOf({ rows }: Inventory, row: number): number {
  return (rows.packagesBefore[row + 1] ?? 0) - (rows.packagesBefore[row] ?? 0)
}

/** Names whose bits are set, in the order of their list. */
export function namesIn(mask: number, names: readonly string[]): string[] {
  return names.filter((_, bit) => (mask >>> bit) & 1)
}

/**
 * Shape `uniform`: every property has every room type, every value is equally likely.
 *
 * It is the data docs/design/search.md speaks of: about 98 bytes a record, segments of 25,000 properties, and nights
 * that either carry 12.8 bits of chance each (20 availabilities, 128 prices; the size of a random snapshot in
 * docs/design/storage.md#snapshot-format follows from that) or none at all: then a price comes from what the property
 * is, and a night is as the night before.
 */
import { addProperty, addRow, type Names, packPackage, SAMPLE_RATE_FEATURES, type Shape } from './inventory.ts'
import { below, between, hash2, nextU32, pickMask } from './random.ts'

const PROPERTIES_PER_SEGMENT = 25_000
const AREAS_PER_SEGMENT = 20
const ROOM_TYPES = ['room1', 'room2', 'room3', 'room4'] as const
/** Houses stand at street corners, a thousandth of a degree apart. */
const BLOCK_MICRO = 1000
const AVAILABILITIES = 20
const PRICES = 128
/** By category. */
const CONSTANT_FEATURES = [0b0001_0110, 0b0101_0001, 0b1001_1001, 0b1101_1101] as const

export const uniform: Shape = {
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

/**
 * Shape `skewed`: sizes spread as in real inventories.
 *
 * A few large cities and many small ones, areas from a handful to more than a bitmap's worth, flats with one
 * room type beside hotels with twenty, popular room types and rare ones (so many tables of a few rows), rooms that
 * are on sale only a while ahead, UUIDs beside short ids, prices that keep for a week and rise at weekends.
 */
import { weekdayOf } from '@vacancy/shared'
import {
  addProperty,
  addRow,
  type Draft,
  type Names,
  packPackage,
  SAMPLE_RATE_FEATURES,
  type Shape,
} from './inventory.ts'
import { below, between, cumulative, flatZipf, hash2, nextU32, pickWeighted, type Random, zipf } from './random.ts'

/** Mean size of a segment; the first holds about a tenth of everything, the last a few hundred properties. */
const PROPERTIES_PER_SEGMENT = 5_000
const SEGMENTS_MAX = 400
/**
 * Above 64 values a table scans a column instead of keeping a bitmap a value (docs/design/store.md#tables-and-planes):
 * both must occur.
 */
const AREAS_PER_SEGMENT = 120

const TYPES = ['hotel', 'apartment', 'guesthouse', 'hostel', 'villa', 'resort'] as const
const TYPE_WEIGHTS = cumulative([42, 36, 9, 6, 4, 3])
const CATEGORIES = ['standard', 'budget', 'premium', 'luxury'] as const
const CATEGORY_WEIGHTS = cumulative([45, 30, 18, 7])
const STARS_WEIGHTS = cumulative([4, 16, 42, 29, 9])
const ROOM_TYPES = ['double', 'single', 'studio', 'twin', 'family', 'suite', 'triple', 'apartment', 'dorm_bed']
const ROOM_VARIANTS = ['standard', 'superior', 'deluxe', 'sea_view', 'balcony', 'accessible']
const AMENITIES =
  'wifi parking breakfast air_conditioning kitchen tv pool gym spa restaurant bar balcony washing_machine pets elevator crib beach_access room_service airport_shuttle ev_charging'.split(
    ' ',
  )
const AMENITY_WEIGHTS = cumulative(flatZipf(AMENITIES.length, 0.08))
/** Per cent of the base price, Sunday to Saturday. */
const WEEKDAY_PERCENT = [104, 96, 95, 97, 100, 118, 124] as const

const segmentWeights = new Map<number, Float64Array>()
const areaWeights = cumulative(flatZipf(AREAS_PER_SEGMENT, 0.01))
const roomTypeNames = [
  ...ROOM_TYPES,
  ...ROOM_VARIANTS.flatMap((variant) => ROOM_TYPES.map((room) => `${variant}_${room}`)),
]
const roomTypeWeights = cumulative(zipf(roomTypeNames.length))

export const skewed: Shape = {
  names: (segments): Names => ({
    segments: Array.from({ length: segments }, (_, i) => `city_${String(i + 1).padStart(3, '0')}`),
    areas: Array.from(
      { length: segments * AREAS_PER_SEGMENT },
      (_, i) => `district_${Math.floor(i / AREAS_PER_SEGMENT) + 1}_${(i % AREAS_PER_SEGMENT) + 1}`,
    ),
    types: TYPES,
    categories: CATEGORIES,
    amenities: AMENITIES,
    roomTypes: roomTypeNames,
    rateFeatures: SAMPLE_RATE_FEATURES,
  }),

  packagesPerProperty: (days) => 3.2 * days,

  segmentsFor: (properties) => Math.min(SEGMENTS_MAX, Math.max(1, Math.round(properties / PROPERTIES_PER_SEGMENT))),

  addProperty(draft, random) {
    const segment = pickWeighted(random, weightsOfSegments(draft.names.segments.length))
    const type = pickWeighted(random, TYPE_WEIGHTS)
    const category = pickWeighted(random, CATEGORY_WEIGHTS)
    const stars = 1 + pickWeighted(random, STARS_WEIGHTS)
    const area = pickWeighted(random, areaWeights)
    addProperty(draft, {
      id: idFor(draft.ids.length + 1, random),
      segment,
      area: segment * AREAS_PER_SEGMENT + area,
      type,
      category,
      stars,
      latitudeMicro: ((segment * 7_919_000) % 130_000_000) - 60_000_000 + between(random, -90_000, 90_000),
      longitudeMicro: ((segment * 13_007_000) % 340_000_000) - 170_000_000 + between(random, -90_000, 90_000),
      amenities: amenitiesFor(category, random),
    })
    const basePrice = 25 + stars * 18 + below(random, 60) + (category === 3 ? 260 : category === 2 ? 90 : 0)
    for (const roomType of roomTypesFor(type, random)) addRoom(draft, random, { type, roomType, basePrice })
  },

  varying({ rows }, row, day) {
    const seed = rows.seed[row] ?? 0
    const week = hash2(seed, Math.floor((day + 3) / 7))
    const night = hash2(seed ^ 0x5bd1e995, day)
    const percent = (WEEKDAY_PERCENT[weekdayOf(day)] ?? 100) + ((week >>> 8) % 25)
    const price = Math.floor(((rows.basePrice[row] ?? 0) * percent) / 100)
    const capacity = rows.capacity[row] ?? 0
    // The lesser of two draws: low availability is common, a property without bookings rare.
    const availability = Math.min(night % (capacity + 1), (night >>> 12) % (capacity + 1))
    const features = rows.features[row] ?? 0
    // One week in eight is sold without a refund: features change now and then along a row, not every night.
    return packPackage(price, availability, week % 8 === 0 ? (features & ~0b0000_0001) | 0b0000_0010 : features)
  },

  constant({ rows }, row) {
    return packPackage(rows.basePrice[row] ?? 0, rows.capacity[row] ?? 0, rows.features[row] ?? 0)
  },
}

/** Segment sizes fall slower than Zipf's law would have it, so that the largest city does not hold everything. */
function weightsOfSegments(count: number): Float64Array {
  const known = segmentWeights.get(count)
  if (known) return known
  const weights = cumulative(Array.from({ length: count }, (_, i) => 1 / Math.sqrt(i + 1)))
  segmentWeights.set(count, weights)
  return weights
}

/** Every third property carries a UUID of version 4, the others an id of up to 14 characters. */
function idFor(number: number, random: Random): string {
  if (number % 3 !== 0) return `inn-${number}`
  const hex = [nextU32(random), nextU32(random), nextU32(random), number]
    .map((word) => word.toString(16).padStart(8, '0'))
    .join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`
}

function amenitiesFor(category: number, random: Random): number {
  let mask = 0
  for (let draws = below(random, category >= 2 ? 16 : 9); draws > 0; draws--) {
    mask |= 1 << pickWeighted(random, AMENITY_WEIGHTS)
  }
  return mask
}

/** Flats and villas have one or two room types, most houses a few, one in thirty a whole catalogue. */
function roomTypesFor(type: number, random: Random): Set<number> {
  const isFlat = type === 1 || type === 4
  const most = isFlat ? 2 : below(random, 30) === 0 ? 24 : 6
  const rooms = new Set<number>()
  for (let draws = between(random, 1, most); draws > 0; draws--) rooms.add(pickWeighted(random, roomTypeWeights))
  return rooms
}

function addRoom(
  draft: Draft,
  random: Random,
  { type, roomType, basePrice }: { type: number; roomType: number; basePrice: number },
): void {
  const { days } = draft
  // Three rows in four are on sale for the whole time, the others from some night on or until some night.
  const isWhole = below(random, 4) !== 0
  const nights = isWhole ? days : between(random, 1, days)
  const startsLate = !isWhole && below(random, 2) === 0
  addRow(draft, {
    roomType,
    basePrice: basePrice + (roomType % 12) * 14,
    capacity: type === 1 || type === 4 ? 1 : between(random, 1, 14),
    features: (1 << below(random, 3)) | (nextU32(random) & 0b1111_1000),
    seed: nextU32(random),
    firstNight: startsLate ? days - nights : 0,
    nights,
  })
}

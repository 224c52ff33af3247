/**
 * The words all of Vacancy uses: property, daily package, search, and their limits (wire-protocol.md §6).
 */

export const LIMITS = {
  /** Names in a codec list. */
  featuresMax: 24,
  roomTypesPerPropertyMax: 256,
  availabilityMax: 255,
  /** 4,294,967,295 cannot be stored: inverted it would be the empty word. */
  priceMax: 4_294_967_294,
  amenitiesMax: 64,
  amenityBytesMax: 64,
  featureBytesMax: 64,
  /** Segment, area, property type, category, room type. */
  nameBytesMax: 255,
  shortIdMax: 14,
  datesInQueryMax: 366,
  radiusMetresDefault: 5_000,
  radiusMetresMax: 100_000,
  /** Mean radius of the Earth. */
  earthRadiusMetres: 6_371_008.8,
  requestPayloadBytesMax: 65_536,
  /** A longer payload up to this is skipped and refused; beyond, the connection is closed. */
  skippedPayloadBytesMax: 1_048_576,
  /** What the u16 field count of a reply can hold. */
  searchAvailPropertiesMax: 32_767,
  searchPropPropertiesMax: 65_535,
} as const

/** Segment names that mean something to routers and can be no real segment. */
export const RESERVED_SEGMENTS: readonly string[] = ['__keepalive__', '__codecs__', 'GETSEGMENTS', '__status__']

export type Property = {
  readonly id: string
  readonly segment: string
  readonly area: string
  readonly type: string
  readonly category: string
  /** 1 to 5. */
  readonly stars: number
  readonly latitude: number
  readonly longitude: number
  readonly amenities: readonly string[]
}

/** One room type of a property on one date. */
export type DailyPackage = {
  /** Rooms left, 0–255. */
  readonly availability: number
  /** Whole number; unit and currency are the operator's. */
  readonly price: number
  /** Mask: bit i for entry i of the codec list. */
  readonly features: number
}

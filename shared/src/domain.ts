/**
 * Domain terms and their limits (docs/design/protocol.md#connection, docs/design/protocol.md#values,
 * docs/design/http.md#identifiers).
 */

/** Mean radius of the Earth, for great-circle distances (docs/design/search.md#position). */
const EARTH_RADIUS_METRES = 6371008.8

export const LIMITS = {
  /** Rate features in a codec list, and so in a package. */
  featuresMax: 24,
  roomTypesPerPropertyMax: 256,
  availabilityMax: 255,
  /** 4294967295 is not a valid price. As a search bound it means no bound. */
  priceMax: 4_294_967_294,
  /** That the prices of an import may have. */
  priceDecimalsMax: 4,
  starsMin: 1,
  starsMax: 5,
  latitudeMax: 90,
  longitudeMax: 180,
  amenitiesMax: 64,
  amenityBytesMax: 64,
  /** One name of a codec list. */
  featureBytesMax: 64,
  /** Segment, area, property type, category, room type. */
  nameBytesMax: 255,
  /** Characters of a property id that is not a UUID. */
  shortIdMax: 14,
  /** Upper bound of the setting `max_dates_in_query`. */
  datesInQueryMax: 366,
  radiusMetresDefault: 5000,
  radiusMetresMax: 100_000,
  earthRadiusMetres: EARTH_RADIUS_METRES,
  /** Payload of a request frame. Larger frames are skipped and refused. */
  requestPayloadBytesMax: 65_536,
  /** Size of an envelope beyond the largest payload: segment, flag and inner header. */
  envelopeOverheadBytesMax: 300,
  /** Larger frames are not skipped: the connection is closed. */
  skippedPayloadBytesMax: 1_048_576,
  /** Text of an ERROR reply. */
  errorTextBytesMax: 1024,
  /** Properties in a SEARCHPROP reply: one field each. The field count of a reply is a u16. */
  replyPropertiesMax: 65_535,
  /** The same when the reply also has a trailer (docs/design/protocol.md#extension-fields). */
  replyPropertiesWithExtraMax: 65_279,
  /** Properties in a SEARCHAVAIL reply: two fields each, and one for the number of days. */
  replyStaysMax: 32_767,
  replyStaysWithExtraMax: 32_639,
  /** Room types that a search names, and tables that a search of any room type reads. */
  searchRoomTypesMax: 16,
  searchTablesMax: 64,
  /** Rows of all tables of such a search, times its nights. */
  searchRowNightsMax: 2_000_000,
  /** Upper bound of the setting `max_calendar_days`. */
  calendarDaysMax: 366,
  /** Nights of a flexible stay beyond its least number. */
  flexibleNightsMax: 6,
  /** Rows of all tables of a search of several arrival days, times the nights that it reads. */
  calendarRowDaysMax: 8_000_000,
  /** Bounds of the total that matches are counted between, and columns and rows of a map. */
  facetBoundsMax: 32,
  facetValuesDefault: 50,
  facetValuesMax: 255,
  mapCellsMax: 32,
  /** Segments in a GETSEGMENTS reply: two fields each. */
  replySegmentsMax: 32_767,
  /** Lines of a stay, nights of a line, and nights of all lines together (docs/design/stays.md#lines). */
  stayLinesMax: 16,
  stayNightsMax: 30,
  stayLineNightsMax: 256,
  holdSecondsMin: 10,
  holdSecondsMax: 86_400,
  holdSecondsDefault: 900,
  /** Label of the origin of a stay. */
  sourceBytesMax: 32,
  /** Stays in a reply to LISTSTAYS. */
  stayListMax: 200,
  /** Ids of zones, shards, nodes. */
  componentIdBytesMax: 128,
} as const

/** Segment names that are reserved for routers (docs/design/protocol.md#envelope). No real segment may use them. */
export const RESERVED_SEGMENTS: readonly string[] = ['__keepalive__', '__codecs__', 'GETSEGMENTS', '__status__']

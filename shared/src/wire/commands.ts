/**
 * THE TABLE of commands (docs/design/protocol.md#wire-protocol, docs/design/protocol.md#successes,
 * docs/design/protocol.md#extension-fields). The node, the client, the bridge's choice between leader and follower,
 * the playground and docs/commands.md read these rows. A new command needs a row, an effect and a test.
 */

import { assert } from '../assert.ts'
import { LIMITS } from '../domain.ts'
import { SEARCH_FACETS, SEARCH_ORDERS, SEARCH_WANTS, WEEKDAY_BITS } from './search.ts'
import type { StayLine } from './stay.ts'

/**
 * Encoding of a field's data. A list is comma-separated text; numbers are little-endian. `lines` are the lines of a
 * stay: one packed record a field, with ids from `id` to `lastId` without gaps. `names` are texts that may hold commas:
 * u8 length and bytes each. `u8s` and `u64s` are numbers one after the other.
 */
export type FieldWidth = 'text' | 'list' | 'u8' | 'u32' | 'u64' | 'f64' | 'lines' | 'names' | 'u8s' | 'u64s'
/** Type code on the wire: 1 text, 2 small number, 3 number, 10 packed records. */
type FieldType = 1 | 2 | 3 | 10

export type FieldSpec<
  Name extends string = string,
  Width extends FieldWidth = FieldWidth,
  Required extends boolean = boolean,
> = {
  readonly id: number
  /** Last id of a repeated field; `id` for all others. */
  readonly lastId: number
  readonly name: Name
  readonly type: FieldType
  readonly width: Width
  readonly required: Required
  /** A required field may be absent where one of these is given. */
  readonly unless: readonly string[]
  readonly summary: string
  /** Vacancy's own fields, with ids from 0x8000 on. Existing clients never send them, and other servers refuse them. */
  readonly extension: boolean
  /**
   * Zero-length data of an optional text means "absent", but here "clear"
   * (docs/design/protocol.md#commands-that-write).
   */
  readonly keepsEmpty: boolean
  /** Least and greatest value of a number; undefined where its width is the only bound. */
  readonly min: number | undefined
  readonly max: number | undefined
  /** What people read; undefined for the name with a capital letter. */
  readonly label: string | undefined
  /** Narrows a search: without it as many properties are found, or more. */
  readonly isFilter: boolean
}

/** What a field may have beside its place, name and width. */
type FieldExtras = {
  readonly keepsEmpty?: boolean
  readonly lastId?: number
  readonly unless?: readonly string[]
  readonly min?: number
  readonly max?: number
  readonly label?: string
  readonly isFilter?: boolean
}

/** The content of a SUCCESS reply by its kind (reply.ts), in words for docs/commands.md. */
export const REPLIES = {
  login: 'the bare text `LOGIN OK` or `LOGIN FAILED`, without a field frame',
  codecs: 'one text: the rate features with commas between, in the order of their bits',
  segments: 'two fields per segment: its name (text) and its number of properties (u32)',
  empty: 'SUCCESS without fields',
  properties:
    'one field per property: its id, packed in 16 bytes; then what was asked for: the page, values of each property, search statistics',
  stays:
    'the number of days, then for each property its id, packed in 16 bytes, and for each day date, availability, price and rate features; with `compact` one list of ids and values instead; then as for SEARCHPROP',
  calendar:
    'the number of nights (u8), then in one field u16 number of days and for each arrival day u16 days since 1970-01-01, u8 1 if a stay is found, u64 lowest total, u32 properties, 16-byte id of the cheapest; then search statistics',
  flexible:
    'the number of arrival days (u16), then in one field u8 wanted values, u32 number of properties, for each its packed id, u16 arrival in days since 1970-01-01, u8 nights, u64 total and what was asked for, last the names of room types; then as for SEARCHPROP',
  availability: 'one byte: the availability after the change',
  exists: 'one byte: 1 or 0',
  roomTypes: 'one text per room type, ascending by bytes',
  dates: 'one text per date, `YYYY-MM-DD`, ascending',
  night: 'property id (text), date (text), availability (u8), price (u32), rate features as a mask (u32)',
  stay: 'state (u8: 1 held, 2 booked, 3 released, 4 expired, 5 void), deadline (u64, ms since 1970, 0 if none), total (u64), log index at which it reached the state (u64), its lines in one field; if held or booked, for each line a day vector with what is left',
  stayList:
    'for each stay one field: packed id, state (u8), deadline (u64), index (u64), time in ms (u64), source (u8 length and text), number of lines (u8), lines; then the cursor of the next page as text, empty on the last one',
} as const
export type ReplyKind = keyof typeof REPLIES

type Access = 'read' | 'write' | 'session'
export type CommandGroup = 'connection' | 'shard' | 'properties' | 'search' | 'packages' | 'availability' | 'stays'

type CommandRow = {
  readonly access: Access
  readonly group: CommandGroup
  /** Two or three words, as on a button. */
  readonly title: string
  readonly summary: string
  /** In ascending id order. */
  readonly fields: readonly FieldSpec[]
  readonly reply: ReplyKind
  /** Its name in `vacancy query`. Others are available through `vacancy query send`. */
  readonly query?: string | undefined
  /** When it returns NOT_FOUND. Searches never do: an unknown segment has no results. */
  readonly notFound?: string | undefined
  /** Its own errors. */
  readonly errors?: string | undefined
}

export type CommandSpec = CommandRow & {
  readonly name: CommandName
  /** Index in COMMAND_LIST. */
  readonly code: number
}

const TYPE_OF: { readonly [width in FieldWidth]: FieldType } = {
  text: 1,
  list: 1,
  u8: 2,
  u32: 3,
  u64: 3,
  f64: 3,
  lines: 10,
  names: 10,
  u8s: 10,
  u64s: 10,
}
const EXTENSION_IDS = 0x8000
/** The greatest there is: the last field of every request that has it, where trace-field.ts finds it. */
export const TRACE_FIELD_ID = 0x803f

function spec<const N extends string, W extends FieldWidth, R extends boolean>(
  id: number,
  name: N,
  width: W,
  required: R,
  summary: string,
  { keepsEmpty = false, lastId = id, unless = [], min, max, label, isFilter = false }: FieldExtras = {},
): FieldSpec<N, W, R> {
  const extension = id >= EXTENSION_IDS
  const type = TYPE_OF[width]
  const head = { id, lastId, name, type, width, required, unless, summary, extension }
  return { ...head, keepsEmpty, min, max, label, isFilter }
}

function need<const N extends string, W extends FieldWidth>(
  id: number,
  name: N,
  width: W,
  summary: string,
  extras?: FieldExtras,
) {
  return spec(id, name, width, true, summary, extras)
}

function may<const N extends string, W extends FieldWidth>(
  id: number,
  name: N,
  width: W,
  summary: string,
  extras?: FieldExtras,
) {
  return spec(id, name, width, false, summary, extras)
}

const STARS = { min: LIMITS.starsMin, max: LIMITS.starsMax }
const LATITUDE = { min: -90, max: 90 }
const LONGITUDE = { min: -180, max: 180 }
const FILTER = { isFilter: true }
const WORDS_OF = (numbers: { readonly [word: string]: number }) =>
  Object.entries(numbers)
    .map(([word, number]) => `${number} ${word}`)
    .join(', ')

const property = (id: number) =>
  need(id, 'propertyId', 'text', 'UUID of version 1 to 5 or 7, or 1 to 14 printable ASCII characters.', {
    label: 'Property',
  })
const segment = (id: number) => need(id, 'segment', 'text', 'Segment, 1 to 255 bytes.')
const roomType = (id: number) => need(id, 'roomType', 'text', 'Room type, 1 to 255 bytes.', { label: 'Room type' })
const date = (id: number) => need(id, 'date', 'text', 'YYYY-MM-DD, from today to today plus one year.')
const amount = (summary: string) => need(0x04, 'amount', 'u8', summary)

/** Of the trace that the request belongs to (trace-context.ts). Nodes show it with slow requests and ignore a malformed one. */
const TRACE = may(TRACE_FIELD_ID, 'trace', 'text', 'The `traceparent` of the caller; shown with slow requests.', {
  label: 'Trace',
})

const ON_READS = [
  may(0x8020, 'maxStalenessMs', 'u32', 'Greatest staleness accepted, in milliseconds; beyond it 503.', {
    label: 'Staleness at most, ms',
  }),
  may(0x8021, 'minIndex', 'u64', 'Least applied index: waits up to 200 ms for it, then 308.', {
    label: 'Index at least',
  }),
  may(0x8022, 'linearizable', 'u8', '1 = sees every write that was answered before it.'),
  TRACE,
] as const

const NEAR = [
  may(0x8002, 'radiusMetres', 'u32', 'Radius around the position, 1 to 100000 instead of 5000.', {
    min: 1,
    max: LIMITS.radiusMetresMax,
    label: 'Radius, metres',
  }),
  may(
    0x8003,
    'explain',
    'u8',
    '1 = the reply reports the rows examined and the time taken, 2 = the time of each stage, too.',
    {
      label: 'Explain: rows examined, times',
    },
  ),
  may(0x8004, 'minStars', 'u8', '1 to 5, at least.', { ...STARS, ...FILTER, label: 'Stars from' }),
] as const

const PAGE = [
  may(0x8005, 'cursor', 'text', 'From the previous page of the same search, with the same order.'),
  may(0x8006, 'want', 'u8', `Values of each property, summed: ${WORDS_OF(SEARCH_WANTS)}.`, { min: 1, max: 15 }),
  may(0x8007, 'count', 'u8', '1 = a page trailer with the exact number of matches, 2 = without it.', {
    min: 1,
    max: 2,
  }),
] as const

const TOTALS = [
  may(0x8008, 'maxTotal', 'u64', 'Prices of all nights together, at most.', { ...FILTER, label: 'Total up to' }),
  may(0x8009, 'minTotal', 'u64', 'Prices of all nights together, at least.', { ...FILTER, label: 'Total from' }),
] as const

const ANY_ROOM = [
  may(0x800b, 'anyRoomType', 'u8', '1 = each property once, with its cheapest room type, instead of roomType.', {
    label: 'Any room type',
  }),
  may(0x800c, 'roomTypes', 'names', 'The same with 1 to 16 room types only.', { label: 'Room types' }),
] as const

const ORDER = may(0x800d, 'order', 'u8', `${WORDS_OF(SEARCH_ORDERS)}. Score is not available yet.`, {
  min: 0,
  max: SEARCH_ORDERS.id,
})

const FACETS = may(0x800e, 'facets', 'u32', `Matches counted by value, summed: ${WORDS_OF(SEARCH_FACETS)}.`, {
  min: 1,
  max: 255,
})
const COUNTS = [
  may(0x8012, 'disjunctiveFacets', 'u32', 'Those of them that are counted as if their own filter were absent.', {
    min: 1,
    max: 255,
  }),
  may(0x8013, 'facetValues', 'u8', 'Values of each facet at most, 1 to 255; 50 when absent.', {
    min: 1,
    max: LIMITS.facetValuesMax,
  }),
  may(0x8014, 'cells', 'u8s', 'Columns and rows, 1 to 32 each: matches are counted in each cell of the box.'),
] as const
const BOX = [
  may(0x8018, 'south', 'f64', 'Degrees; with west, north and east, properties in this box.', LATITUDE),
  may(0x8019, 'west', 'f64', 'Degrees; west of more than east crosses 180 degrees.', LONGITUDE),
  may(0x801a, 'north', 'f64', 'Degrees, at least south.', LATITUDE),
  may(0x801b, 'east', 'f64', 'Degrees.', LONGITUDE),
] as const

/** What stays are searched by, beside their nights. */
const OF_STAYS = [
  segment(0x01),
  spec(0x02, 'roomType', 'text', true as boolean, 'Room type, 1 to 255 bytes.', {
    unless: ['anyRoomType', 'roomTypes'],
    label: 'Room type',
  }),
  may(0x03, 'area', 'text', 'Area, equal.', FILTER),
  may(0x04, 'propertyId', 'text', 'This property only.', { ...FILTER, label: 'Property' }),
  may(0x05, 'propertyType', 'text', 'Property type, equal.', { ...FILTER, label: 'Type' }),
  may(0x06, 'stars', 'u8', 'Exactly this number, 1 to 5.', { ...STARS, ...FILTER }),
  may(0x07, 'category', 'text', 'Category, equal.', FILTER),
  may(0x08, 'amenities', 'list', 'The property has all of them.', FILTER),
  may(0x09, 'longitude', 'f64', 'Degrees; with latitude, properties within the radius.', {
    ...LONGITUDE,
    ...FILTER,
  }),
  may(0x0a, 'latitude', 'f64', 'Degrees; with longitude.', { ...LATITUDE, ...FILTER }),
] as const

const OF_NIGHTS = [
  may(0x0c, 'availability', 'u8', 'Rooms left on every date, at least; 1 when absent.', {
    ...FILTER,
    max: LIMITS.availabilityMax,
    label: 'Rooms at least',
  }),
  may(0x0d, 'finalPrice', 'u32', 'Price on every date, at most. No limit when absent.', {
    ...FILTER,
    label: 'Price up to',
  }),
  may(0x0e, 'rateFeatures', 'list', 'The package of every date has all of them.', {
    ...FILTER,
    label: 'Rate features',
  }),
] as const
const LIMIT = may(0x0f, 'limit', 'u64', 'Properties at most, 1 to query_limit.')
const MIN_PRICE = may(0x8001, 'minPrice', 'u32', 'Price on every date, at least.', { ...FILTER, label: 'Price from' })

const ARRIVALS = [
  need(0x10, 'from', 'text', 'First arrival day, YYYY-MM-DD.'),
  need(0x11, 'to', 'text', 'Last arrival day; from it to the first are max_calendar_days at most.'),
  need(0x12, 'nights', 'u8', 'Nights of each stay, 1 to 30.', { min: 1, max: LIMITS.stayNightsMax }),
] as const
const WEEKDAYS = may(0x14, 'weekdays', 'u8', `Weekdays of arrival, summed: ${WORDS_OF(WEEKDAY_BITS)}.`, {
  min: 1,
  max: 127,
  label: 'Weekdays of arrival',
})

const KEYS = [
  may(0x8010, 'session', 'text', 'Request key: session, 32 lower-case hexadecimal digits.', {
    label: 'Request key: session',
  }),
  may(0x8011, 'requestNumber', 'u64', 'Request key: number within the session, from 1. Both or neither.', {
    label: 'Request key: number',
  }),
  may(0x8023, 'wantIndex', 'u8', '1 = the reply names the index at which the write was applied.', {
    label: 'Return the index of the write',
  }),
] as const
const ON_WRITES = [...KEYS, TRACE] as const

const AS_OF = may(0x8030, 'asOf', 'u64', 'The source knows the bookings up to this index: later ones are taken off.', {
  label: 'Bookings known up to index',
})

const ON_UPDATES = [...KEYS, AS_OF, TRACE] as const

const ON_STAY_WRITES = [
  ...KEYS,
  may(0x8031, 'source', 'text', 'Where the call comes from, 1 to 32 bytes; the name of the token when absent.'),
  TRACE,
] as const

const stayId = (id: number) =>
  need(id, 'stayId', 'text', 'Chosen by the caller: UUID, or 1 to 14 printable ASCII characters.', { label: 'Stay' })
const LINES = { lastId: 0x10 + LIMITS.stayLinesMax - 1 }
const LINE_SUMMARY = 'Property, room type, arrival, nights 1 to 30, rooms 1 to 255.'
const CONDITIONS = [
  may(0x02, 'maxTotal', 'u64', 'Highest total accepted, of all lines and rooms.', { label: 'Total at most' }),
  may(0x03, 'rateFeatures', 'list', 'Every night must have all of them.', { label: 'Rate features' }),
  may(0x05, 'replaces', 'text', 'A stay that the new one takes the place of once it is booked.', {
    label: 'Replaces the stay',
  }),
] as const
const REINSTATE = [
  may(0x09, 'reinstate', 'u8', '1 = takes rooms again under an id that was released.', { label: 'Reinstate' }),
  may(0x0a, 'releasedAt', 'u64', 'With reinstate: only if the stay was released at this index.', {
    label: 'Released at index',
  }),
] as const

const head =
  <const A extends Access>(access: A) =>
  <const G extends CommandGroup>(group: G, title: string) => ({ access, group, title })
const session = head('session')
const read = head('read')
const write = head('write')

/** Reasons that several commands share. */
const REFUSED_STAY =
  '`SOLD_OUT` when a night has too few rooms; `PRICE_CHANGED` when the total is higher than accepted, or a rate feature is gone; `CONFLICT` when the stay was released, or has other lines'
const TOO_OLD = '`TOO_OLD` with `asOf`, when bookings since that index are no longer remembered'
const NO_NIGHT = 'property, room type or package is missing'

const ROWS = {
  LOGIN: {
    ...session('connection', 'Log in'),
    summary: 'Names the token of the connection. The answer is bare text, LOGIN OK or LOGIN FAILED.',
    fields: [need(0x01, 'token', 'text', 'A token of the auth file.')],
    reply: 'login',
  },
  GETCODECS: {
    ...read('shard', 'List rate features'),
    summary: 'The codec list: names of the rate features, in the order of their bits.',
    fields: ON_READS,
    reply: 'codecs',
    query: 'codecs',
  },
  GETSEGMENTS: {
    ...read('shard', 'List segments'),
    summary: 'All segments that have a property, with the number of properties.',
    fields: ON_READS,
    reply: 'segments',
    query: 'segments',
  },
  SETPROP: {
    ...write('properties', 'Set property'),
    summary: 'Adds a property or replaces all of its attributes. Its packages stay.',
    fields: [
      segment(0x01),
      need(0x02, 'area', 'text', 'Area, 1 to 255 bytes.'),
      property(0x03),
      need(0x04, 'propertyType', 'text', 'Property type, 1 to 255 bytes.', { label: 'Type' }),
      need(0x05, 'category', 'text', 'Category, 1 to 255 bytes.'),
      need(0x06, 'stars', 'u8', '1 to 5.', STARS),
      need(0x07, 'latitude', 'f64', 'Degrees, -90 to 90.', LATITUDE),
      need(0x08, 'longitude', 'f64', 'Degrees, -180 to 180.', LONGITUDE),
      need(0x09, 'amenities', 'list', 'Up to 64 amenities of 1 to 64 bytes; may be empty.'),
      ...ON_WRITES,
    ],
    reply: 'empty',
  },
  SEARCHPROP: {
    ...read('search', 'Search properties'),
    summary: 'Properties of a segment by their attributes.',
    fields: [
      segment(0x01),
      may(0x02, 'area', 'text', 'Area, equal.', FILTER),
      may(0x03, 'propertyType', 'text', 'Property type, equal.', { ...FILTER, label: 'Type' }),
      may(0x04, 'stars', 'u8', 'Exactly this number, 1 to 5.', { ...STARS, ...FILTER }),
      may(0x05, 'category', 'text', 'Category, equal.', FILTER),
      may(0x06, 'amenities', 'list', 'The property has all of them.', FILTER),
      may(0x07, 'longitude', 'f64', 'Degrees; with latitude, properties within the radius.', {
        ...LONGITUDE,
        ...FILTER,
      }),
      may(0x08, 'latitude', 'f64', 'Degrees; with longitude.', { ...LATITUDE, ...FILTER }),
      may(0x09, 'limit', 'u64', 'Properties at most, 1 to query_limit.'),
      ...NEAR,
      ...PAGE,
      ORDER,
      FACETS,
      ...COUNTS,
      ...BOX,
      ...ON_READS,
    ],
    reply: 'properties',
    query: 'properties',
  },
  SEARCHAVAIL: {
    ...read('search', 'Search availability'),
    summary: 'Properties with a package of a room type on every night of a stay.',
    fields: [
      ...OF_STAYS,
      need(0x0b, 'dates', 'list', '1 to max_dates_in_query distinct dates, YYYY-MM-DD.', FILTER),
      ...OF_NIGHTS,
      LIMIT,
      MIN_PRICE,
      ...NEAR,
      ...PAGE,
      ...TOTALS,
      may(0x800a, 'compact', 'u8', '1 = one list of ids and wanted values, without days.', { label: 'Compact' }),
      ...ANY_ROOM,
      ORDER,
      FACETS,
      may(
        0x800f,
        'totalBounds',
        'u64s',
        'With facet total: 1 to 32 ascending totals; matches are counted between them.',
      ),
      ...COUNTS,
      ...BOX,
      ...ON_READS,
    ],
    reply: 'stays',
    query: 'search',
  },
  SETROOMPKG: {
    ...write('packages', 'Set package'),
    summary: 'Creates or changes the package of a room type on a date. Absent values stay as they are.',
    fields: [
      property(0x01),
      roomType(0x02),
      date(0x03),
      may(0x04, 'availability', 'u8', 'Rooms left, 0 to 255; 0 in a new package.', {
        max: LIMITS.availabilityMax,
        label: 'Rooms left',
      }),
      may(0x05, 'finalPrice', 'u32', 'Price of the night, 0 to 4294967294; 0 in a new package.', {
        max: LIMITS.priceMax,
        label: 'Price',
      }),
      spec(0x06, 'rateFeatures', 'list', false, 'Replaces the rate features; empty clears them.', {
        keepsEmpty: true,
        label: 'Rate features',
      }),
      ...ON_UPDATES,
    ],
    reply: 'empty',
    notFound: 'the property is unknown',
    errors: TOO_OLD,
  },
  SETROOMAVL: {
    ...write('availability', 'Set rooms left'),
    summary: 'Sets the rooms left of one night.',
    fields: [property(0x01), roomType(0x02), date(0x03), amount('0 to 255; 0 = sold out.'), ...ON_UPDATES],
    reply: 'availability',
    notFound: NO_NIGHT,
    errors: TOO_OLD,
  },
  INCROOMAVL: {
    ...write('availability', 'Return rooms'),
    summary: 'Gives rooms of one night back; OVERFLOW past 255.',
    fields: [property(0x01), roomType(0x02), date(0x03), amount('1 to 255.'), ...ON_WRITES],
    reply: 'availability',
    notFound: NO_NIGHT,
    errors: '`OVERFLOW` when availability would pass 255',
  },
  DECROOMAVL: {
    ...write('availability', 'Take rooms'),
    summary: 'Takes rooms off one night; UNDERFLOW when fewer are left.',
    fields: [property(0x01), roomType(0x02), date(0x03), amount('1 to 255.'), ...ON_WRITES],
    reply: 'availability',
    notFound: NO_NIGHT,
    errors: '`UNDERFLOW` when availability would drop below 0',
  },
  PROPEXIST: {
    ...read('properties', 'Check property'),
    summary: 'Whether a property exists.',
    fields: [property(0x01), ...ON_READS],
    reply: 'exists',
  },
  PROPROOMEXIST: {
    ...read('properties', 'Check room type'),
    summary: 'Whether a property has a room type.',
    fields: [property(0x01), roomType(0x02), ...ON_READS],
    reply: 'exists',
  },
  PROPROOMLIST: {
    ...read('properties', 'List room types'),
    summary: 'The room types of a property.',
    fields: [property(0x01), ...ON_READS],
    reply: 'roomTypes',
    query: 'rooms',
    notFound: 'the property is unknown',
  },
  PROPROOMDATELIST: {
    ...read('packages', 'List dates'),
    summary: 'The dates on which a room type of a property has a package.',
    fields: [property(0x01), roomType(0x02), ...ON_READS],
    reply: 'dates',
    query: 'dates',
    notFound: 'property or room type is unknown',
  },
  GETPROPROOMDAY: {
    ...read('packages', 'Get package'),
    summary: 'The package of a room type on a date.',
    fields: [property(0x01), roomType(0x02), date(0x03), ...ON_READS],
    reply: 'night',
    query: 'night',
    notFound: NO_NIGHT,
  },
  DELPROP: {
    ...write('properties', 'Delete property'),
    summary: 'Removes a property and everything below it.',
    fields: [property(0x01), ...ON_WRITES],
    reply: 'empty',
    notFound: 'the property is unknown',
  },
  DELSEGMENT: {
    ...write('properties', 'Delete segment'),
    summary: 'Removes all properties of a segment and everything below them.',
    fields: [segment(0x01), ...ON_WRITES],
    reply: 'empty',
    notFound: 'the segment is unknown',
  },
  DELPROPDAY: {
    ...write('packages', 'Delete day of property'),
    summary: 'Removes a date from every room type of a property.',
    fields: [property(0x01), date(0x02), ...ON_WRITES],
    reply: 'empty',
    notFound: 'the property is unknown; without a package on that day the reply is SUCCESS',
  },
  DELPROPROOM: {
    ...write('packages', 'Delete room type'),
    summary: 'Removes a room type of a property with all its packages.',
    fields: [property(0x01), roomType(0x02), ...ON_WRITES],
    reply: 'empty',
    notFound: 'property or room type is unknown',
  },
  DELROOMDAY: {
    ...write('packages', 'Delete package'),
    summary: 'Removes the package of a room type on a date.',
    fields: [property(0x01), roomType(0x02), date(0x03), ...ON_WRITES],
    reply: 'empty',
    notFound: NO_NIGHT,
  },
  BOOKSTAY: {
    ...write('stays', 'Book stay'),
    summary: 'Takes all nights of all lines, or none.',
    fields: [
      stayId(0x01),
      ...CONDITIONS,
      ...REINSTATE,
      need(0x10, 'lines', 'lines', LINE_SUMMARY, LINES),
      ...ON_STAY_WRITES,
    ],
    reply: 'stay',
    notFound: 'property, room type or package of a night is missing, or the stay to replace is unknown',
    errors: REFUSED_STAY,
  },
  HOLDSTAY: {
    ...write('stays', 'Hold stay'),
    summary:
      'Takes all nights of all lines until a deadline, or none. Repeated with the same lines: moves the deadline.',
    fields: [
      stayId(0x01),
      ...CONDITIONS,
      may(0x06, 'seconds', 'u32', 'How long to hold, 10 to 86400; 900 when absent.', {
        min: LIMITS.holdSecondsMin,
        max: LIMITS.holdSecondsMax,
        label: 'Seconds to hold',
      }),
      ...REINSTATE,
      need(0x10, 'lines', 'lines', LINE_SUMMARY, LINES),
      ...ON_STAY_WRITES,
    ],
    reply: 'stay',
    notFound: 'property, room type or package of a night is missing, or the stay to replace is unknown',
    errors: REFUSED_STAY,
  },
  CONFIRMSTAY: {
    ...write('stays', 'Confirm stay'),
    summary: 'Makes a held stay booked.',
    fields: [
      stayId(0x01),
      may(0x02, 'maxTotal', 'u64', 'With retake: highest total accepted.', { label: 'Total at most' }),
      may(0x07, 'retake', 'u8', '1 = if the hold expired, takes the same rooms again if all are still free.', {
        label: 'Take again if expired',
      }),
      ...ON_STAY_WRITES,
    ],
    reply: 'stay',
    notFound: 'the stay is unknown, or a package is missing',
    errors:
      '`EXPIRED` when the hold expired, without `retake`; `CONFLICT` when the stay was released; `SOLD_OUT` when its rooms are not there; with `retake`, `PRICE_CHANGED`',
  },
  RELEASESTAY: {
    ...write('stays', 'Release stay'),
    summary: 'Gives the rooms of a held or booked stay back.',
    fields: [
      stayId(0x01),
      may(0x08, 'void', 'u8', '1 = marks an unknown stay, so that a late booking of it is refused.', {
        label: 'Refuse if it comes later',
      }),
      may(0x0b, 'unrecorded', 'u8', '1 = gives the rooms of the lines back even if the id is unknown.', {
        label: 'Booked before stays were recorded',
      }),
      may(0x0c, 'bookedAt', 'u64', 'Only if the stay was booked, or put on hold, at this index.', {
        label: 'Booked or held at index',
      }),
      may(0x10, 'lines', 'lines', 'Must be those of the stay.', LINES),
      ...ON_STAY_WRITES,
    ],
    reply: 'stay',
    notFound: 'the stay is unknown, without `void` and `unrecorded`',
    errors: '`CONFLICT` when the stay has other lines, or is of another index than `bookedAt`',
  },
  GETSTAY: {
    ...read('stays', 'Get stay'),
    summary: 'One stay.',
    fields: [stayId(0x01), ...ON_READS],
    reply: 'stay',
    notFound: 'the stay is unknown',
  },
  LISTSTAYS: {
    ...read('stays', 'List stays'),
    summary: 'The stays of a property, a room type or a night, newest first.',
    fields: [
      property(0x01),
      may(0x02, 'roomType', 'text', 'This room type only.', { label: 'Room type' }),
      may(0x03, 'date', 'text', 'This night only, YYYY-MM-DD.'),
      may(0x04, 'limit', 'u8', 'Stays at most, 1 to 200; 200 when absent.', { min: 1, max: LIMITS.stayListMax }),
      may(0x05, 'cursor', 'text', 'The cursor of the previous page.'),
      ...ON_READS,
    ],
    reply: 'stayList',
    notFound: 'the property is unknown',
  },
  PRICECAL: {
    ...read('search', 'Price calendar'),
    summary: 'The lowest total of a stay for each arrival day, of one property or of a whole search.',
    fields: [
      ...OF_STAYS,
      ...OF_NIGHTS,
      ...ARRIVALS,
      WEEKDAYS,
      MIN_PRICE,
      ...NEAR,
      ...TOTALS,
      ...ANY_ROOM,
      ...BOX,
      ...ON_READS,
    ],
    reply: 'calendar',
    query: 'calendar',
  },
  SEARCHFLEX: {
    ...read('search', 'Search flexible dates'),
    summary: 'Properties with their best stay among several arrival days. Ordered by total when without an order.',
    fields: [
      ...OF_STAYS,
      ...OF_NIGHTS,
      LIMIT,
      ...ARRIVALS,
      may(0x13, 'mostNights', 'u8', 'Stays of nights to so many nights, 6 more at most: the lowest price per night.', {
        min: 1,
        max: LIMITS.stayNightsMax + LIMITS.flexibleNightsMax,
        label: 'Nights at most',
      }),
      WEEKDAYS,
      MIN_PRICE,
      ...NEAR,
      ...PAGE,
      ...TOTALS,
      ...ANY_ROOM,
      ORDER,
      ...BOX,
      ...ON_READS,
    ],
    reply: 'flexible',
    query: 'flexible',
  },
} as const satisfies Record<string, CommandRow>

export type CommandName = keyof typeof ROWS

/** Rows by name. The types of requests and results derive from the fields of the rows. */
export const COMMANDS = Object.fromEntries(
  Object.entries(ROWS as { readonly [name: string]: CommandRow }).map(([name, row], code) => {
    // One shape for all, with the properties in the same order: each request reads some of them.
    const { access, group, title, summary, fields, reply, query, notFound, errors } = row
    return [name, Object.freeze({ name, code, access, group, title, summary, fields, reply, query, notFound, errors })]
  }),
) as unknown as { readonly [Name in CommandName]: CommandSpec & (typeof ROWS)[Name] & { readonly name: Name } }

/** Rows by code; LOGIN is 0. */
export const COMMAND_LIST: readonly CommandSpec[] = Object.values(COMMANDS)

type ValueOf<Width extends FieldWidth> = Width extends 'text'
  ? string
  : Width extends 'list' | 'names'
    ? readonly string[]
    : Width extends 'u8s' | 'u64s'
      ? readonly number[]
      : Width extends 'lines'
        ? readonly StayLine[]
        : Width extends 'u64'
          ? number | bigint
          : number

type FieldOf<Name extends CommandName> = (typeof ROWS)[Name]['fields'][number]

export type FieldValue =
  | (string | number | bigint | readonly string[] | readonly number[])
  | (readonly StayLine[] | undefined)

/**
 * The fields of a request by name, for one command or for any. A 64-bit number may be given as a number or a bigint.
 * It is read as a number where that is exact, as a bigint beyond 2^53 − 1.
 */
export type RequestFields<Name extends CommandName = never> = [Name] extends [never]
  ? { readonly [name: string]: FieldValue }
  : {
      readonly [F in FieldOf<Name> as F extends { required: true } ? F['name'] : never]: ValueOf<F['width']>
    } & {
      readonly [F in FieldOf<Name> as F extends { required: true } ? never : F['name']]?:
        | ValueOf<F['width']>
        | undefined
    }

export function isCommandName(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name)
}

const NAME_BYTES_MAX = 16
const HASH_SLOTS = 64
const encoder = new TextEncoder()

/** Open addressing over the names: slot → code, −1 for none. The bytes of a name start at code × 16. */
const SLOTS = new Int8Array(HASH_SLOTS).fill(-1)
const NAME_LENGTHS = new Uint8Array(COMMAND_LIST.length)
const NAME_BYTES = new Uint8Array(COMMAND_LIST.length * NAME_BYTES_MAX)

for (const { name, code } of COMMAND_LIST) {
  const bytes = encoder.encode(name)
  assert(bytes.length <= NAME_BYTES_MAX, 'a command name has 16 bytes at most')
  NAME_LENGTHS[code] = bytes.length
  NAME_BYTES.set(bytes, code * NAME_BYTES_MAX)
  let slot = hashOfName(bytes, 0, bytes.length)
  while (SLOTS[slot] !== -1) slot = (slot + 1) % HASH_SLOTS
  SLOTS[slot] = code
}

/** Three letters and the length separate the names well enough; findCommand compares the rest. */
function hashOfName(bytes: Uint8Array, start: number, length: number): number {
  const first = bytes[start] as number
  const middle = bytes[start + (length >> 1)] as number
  const last = bytes[start + length - 1] as number
  return (length * 7 + first * 5 + middle * 3 + last) % HASH_SLOTS
}

/** Code of the command whose name is the `length` ≥ 1 bytes at `start`; −1 for an unknown one. Allocates nothing. */
export function findCommand(bytes: Uint8Array, start: number, length: number): number {
  for (let slot = hashOfName(bytes, start, length); ; slot = (slot + 1) % HASH_SLOTS) {
    const code = SLOTS[slot] as number
    if (code < 0) return -1
    if (NAME_LENGTHS[code] !== length) continue
    const at = code * NAME_BYTES_MAX
    let same = 0
    while (same < length && NAME_BYTES[at + same] === bytes[start + same]) same++
    if (same === length) return code
  }
}

/**
 * The one table of commands (wire-protocol.md §8, §9, §12): the node, the client, tools and the reference page read the
 * same rows. A row says what a request carries and what kind of reply it gets; object-level encoders are in request.ts
 * and reply.ts, the offsets-only reader of the hot path in fields.ts.
 */

export type FieldWidth = 'text' | 'list' | 'u8' | 'u32' | 'u64' | 'f64'

export type FieldSpec = {
  readonly id: number
  readonly name: string
  readonly type: 1 | 2 | 3
  readonly width: FieldWidth
  readonly required: boolean
  readonly summary: string
  /** Our own: existing clients never send it. */
  readonly extension?: true
}

export type ReplyKind =
  | 'login'
  | 'codecs'
  | 'segments'
  | 'empty'
  | 'number'
  | 'boolean'
  | 'ids'
  | 'stays'
  | 'room-types'
  | 'dates'
  | 'night'

export type CommandSpec = {
  readonly name: string
  /** Dense number of the row, its place in COMMAND_LIST. */
  readonly code: number
  readonly access: 'session' | 'read' | 'write'
  readonly group: 'connection' | 'catalog' | 'search' | 'packages' | 'availability' | 'questions' | 'deletes'
  readonly summary: string
  /** Ascending by id. */
  readonly fields: readonly FieldSpec[]
  readonly reply: ReplyKind
}

const TYPE_OF = { text: 1, list: 1, u8: 2, u32: 3, u64: 3, f64: 3 } as const

function required(id: number, name: string, width: FieldWidth, summary: string): FieldSpec {
  return { id, name, type: TYPE_OF[width], width, required: true, summary }
}

function optional(id: number, name: string, width: FieldWidth, summary: string): FieldSpec {
  return { id, name, type: TYPE_OF[width], width, required: false, summary }
}

function extension(id: number, name: string, width: FieldWidth, summary: string): FieldSpec {
  return { ...optional(id, name, width, summary), extension: true }
}

const WRITE_EXTENSIONS = [
  extension(0x8010, 'session', 'text', 'Request key: 32 lower-case hexadecimal digits, drawn once per client process.'),
  extension(0x8011, 'requestNumber', 'u64', 'Request key: number of the write in its session, from 1.'),
  extension(0x8023, 'wantIndex', 'u8', '1: append the log index at which the write was applied.'),
]
const READ_EXTENSIONS = [
  extension(0x8020, 'maxStalenessMs', 'u32', 'Greatest staleness accepted, in milliseconds.'),
  extension(0x8021, 'minIndex', 'u64', 'Least applied log index: waits up to 200 ms for it.'),
  extension(0x8022, 'linearizable', 'u8', '1: answer from a position that was confirmed after the request.'),
]
const MIN_PRICE = extension(0x8001, 'minPrice', 'u32', 'On every date the price is at least this.')
const RADIUS = extension(0x8002, 'radiusMetres', 'u32', 'Radius of a search by position, 1 to 100000, instead of 5000.')
const EXPLAIN = extension(0x8003, 'explain', 'u8', '1: append rows examined, microseconds and the applied index.')

const PROPERTY = required(1, 'propertyId', 'text', 'UUID of version 1–5 or 7, or 1 to 14 printable ASCII characters.')
const ROOM_TYPE = required(2, 'roomType', 'text', 'Room type, 1 to 255 bytes.')
const DATE = required(3, 'date', 'text', 'YYYY-MM-DD, from today (UTC) to one year ahead.')
const AMOUNT = required(4, 'amount', 'u8', 'Rooms, 0 to 255; not 0 for INCROOMAVL and DECROOMAVL.')

type Row = Omit<CommandSpec, 'name' | 'code'>

function read(group: Row['group'], reply: ReplyKind, summary: string, fields: readonly FieldSpec[]): Row {
  const all = [...fields, ...READ_EXTENSIONS].sort((a, b) => a.id - b.id)
  return { access: 'read', group, reply, summary, fields: all }
}

function write(group: Row['group'], reply: ReplyKind, summary: string, fields: readonly FieldSpec[]): Row {
  return { access: 'write', group, reply, summary, fields: [...fields, ...WRITE_EXTENSIONS] }
}

const ROWS = {
  LOGIN: {
    access: 'session',
    group: 'connection',
    reply: 'login',
    summary: 'Names a token for this connection; answered with bare text.',
    fields: [required(1, 'token', 'text', 'The token.')],
  },
  GETCODECS: read('catalog', 'codecs', 'The codec list: names of rate features, bit i for entry i.', []),
  GETSEGMENTS: read('catalog', 'segments', 'All segments with their number of properties.', []),
  SETPROP: write('catalog', 'empty', 'Adds a property or replaces all of its attributes.', [
    required(1, 'segment', 'text', 'Segment, 1 to 255 bytes.'),
    required(2, 'area', 'text', 'Area, 1 to 255 bytes.'),
    required(3, 'propertyId', 'text', PROPERTY.summary),
    required(4, 'propertyType', 'text', 'Property type, 1 to 255 bytes.'),
    required(5, 'category', 'text', 'Category, 1 to 255 bytes.'),
    required(6, 'stars', 'u8', '1 to 5.'),
    required(7, 'latitude', 'f64', 'Degrees, -90 to 90.'),
    required(8, 'longitude', 'f64', 'Degrees, -180 to 180.'),
    required(9, 'amenities', 'list', 'Up to 64 amenities of up to 64 bytes; may be empty.'),
  ]),
  SEARCHPROP: read('search', 'ids', 'Properties of a segment that match all filters.', [
    required(1, 'segment', 'text', 'Segment.'),
    optional(2, 'area', 'text', 'Equal.'),
    optional(3, 'propertyType', 'text', 'Equal.'),
    optional(4, 'stars', 'u8', 'Equal, 1 to 5.'),
    optional(5, 'category', 'text', 'Equal.'),
    optional(6, 'amenities', 'list', 'The property has all of them.'),
    optional(7, 'longitude', 'f64', 'Of a point; together with latitude.'),
    optional(8, 'latitude', 'f64', 'Of a point; together with longitude.'),
    optional(9, 'limit', 'u64', 'Most properties to return, from 1.'),
    RADIUS,
    EXPLAIN,
  ]),
  SEARCHAVAIL: read('search', 'stays', 'Properties with a free stay: every night passes all filters.', [
    required(1, 'segment', 'text', 'Segment.'),
    required(2, 'roomType', 'text', 'Room type.'),
    optional(3, 'area', 'text', 'Equal.'),
    optional(4, 'propertyId', 'text', 'This property only.'),
    optional(5, 'propertyType', 'text', 'Equal.'),
    optional(6, 'stars', 'u8', 'Equal, 1 to 5.'),
    optional(7, 'category', 'text', 'Equal.'),
    optional(8, 'amenities', 'list', 'The property has all of them.'),
    optional(9, 'longitude', 'f64', 'Of a point; together with latitude.'),
    optional(10, 'latitude', 'f64', 'Of a point; together with longitude.'),
    required(11, 'dates', 'list', 'Distinct dates of the stay, 1 to max_dates_in_query.'),
    optional(
      12,
      'availability',
      'u8',
      'On every date at least this many rooms; 1 when absent, 0 shows sold-out rooms.',
    ),
    optional(13, 'finalPrice', 'u32', 'On every date the price is at most this.'),
    optional(14, 'rateFeatures', 'list', 'On every date the package has all of them.'),
    optional(15, 'limit', 'u64', 'Most properties to return, from 1.'),
    MIN_PRICE,
    RADIUS,
    EXPLAIN,
  ]),
  SETROOMPKG: write('packages', 'empty', 'Creates or updates the package of a room type on a date.', [
    PROPERTY,
    ROOM_TYPE,
    DATE,
    optional(4, 'availability', 'u8', 'Rooms left; unchanged when absent, 0 for a new package.'),
    optional(5, 'finalPrice', 'u32', 'Price; unchanged when absent, 0 for a new package.'),
    optional(6, 'rateFeatures', 'list', 'Names of the codec list; unchanged when absent, cleared when empty.'),
  ]),
  SETROOMAVL: write('availability', 'number', 'Sets the rooms left of one night.', [PROPERTY, ROOM_TYPE, DATE, AMOUNT]),
  INCROOMAVL: write('availability', 'number', 'Gives rooms back to one night.', [PROPERTY, ROOM_TYPE, DATE, AMOUNT]),
  DECROOMAVL: write('availability', 'number', 'Takes rooms off one night.', [PROPERTY, ROOM_TYPE, DATE, AMOUNT]),
  PROPEXIST: read('questions', 'boolean', 'Whether a property exists.', [PROPERTY]),
  PROPROOMEXIST: read('questions', 'boolean', 'Whether a property has a room type.', [PROPERTY, ROOM_TYPE]),
  PROPROOMLIST: read('questions', 'room-types', 'Room types of a property.', [PROPERTY]),
  PROPROOMDATELIST: read('questions', 'dates', 'Dates on which a room type has a package.', [PROPERTY, ROOM_TYPE]),
  GETPROPROOMDAY: read('questions', 'night', 'One package.', [PROPERTY, ROOM_TYPE, DATE]),
  DELPROP: write('deletes', 'empty', 'Removes a property and everything below it.', [PROPERTY]),
  DELSEGMENT: write('deletes', 'empty', 'Removes all properties of a segment and everything below them.', [
    required(1, 'segment', 'text', 'Segment.'),
  ]),
  DELPROPDAY: write('deletes', 'empty', 'Removes a date from every room type of a property.', [
    PROPERTY,
    required(2, 'date', 'text', DATE.summary),
  ]),
  DELPROPROOM: write('deletes', 'empty', 'Removes a room type of a property with all its packages.', [
    PROPERTY,
    ROOM_TYPE,
  ]),
  DELROOMDAY: write('deletes', 'empty', 'Removes one package.', [PROPERTY, ROOM_TYPE, DATE]),
} satisfies { readonly [name: string]: Row }

export type CommandName = keyof typeof ROWS

export const COMMAND_LIST: readonly CommandSpec[] = Object.entries<Row>(ROWS).map(([name, row], code) => ({
  name,
  code,
  ...row,
}))

export const COMMANDS = Object.fromEntries(COMMAND_LIST.map((spec) => [spec.name, spec])) as {
  readonly [name in CommandName]: CommandSpec
}

export function isCommandName(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name)
}

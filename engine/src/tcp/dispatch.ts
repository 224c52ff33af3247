/**
 * One frame → its reply: a search or a cheap read at once, a write on the replica thread
 * (docs/design/overview.md#a-search, docs/design/overview.md#a-write-in-a-shard). All checks that need no state are
 * made here.
 */

import { assert, type CodecList, dayOf, formatDay, LIMITS, parseTraceparent, unpackPropertyId } from '@vacancy/shared'
import { COMMAND_LIST, COMMANDS, type CommandSpec, scanRequest } from '@vacancy/shared/wire'
import type { ReadMode } from '../cluster/shared-status.ts'
import {
  addBytes,
  addExtra,
  addText,
  addU8,
  addU32,
  beginReply,
  createReplyWriter,
  FIELD_HEADER_BYTES,
  finishReply,
  growReply,
  REPLY_HEADER_BYTES,
  type ReplyWriter,
  writeError,
} from '../protocol/reply.ts'
import {
  checkName,
  checkSegment,
  endOf,
  isGiven,
  readAmenities,
  readDate,
  readDegrees,
  readFeatures,
  readPrice,
  readPropertyId,
  readRequestKey,
  readStars,
  readU8,
  readU32,
  readU64,
  setToday,
  startOf,
  type Values,
} from '../protocol/values.ts'
import { newestOfCursor } from '../search/cursor.ts'
import {
  KEEPS_CHANGING,
  NO_ROOM,
  runSearch,
  runSlice,
  type Searcher,
  type Slices,
  triesOfTurn,
  UNFINISHED,
} from '../search/search.ts'
import {
  beginCommand,
  type CommandKind,
  type CommandWriter,
  GIVEN,
  KIND,
  writeBytes,
  writeF64,
  writeName,
  writeU8,
  writeU32,
} from '../store/command.ts'
import { findName, NAMES } from '../store/dictionary.ts'
import {
  type Changing,
  continueListing,
  createSegmentListing,
  daysOfRoom,
  type Missing,
  propertyExists,
  type ReadView,
  readNight,
  roomExists,
  roomTypesOf,
  type SegmentListing,
  segmentCounts,
  segmentNameCount,
} from '../store/read.ts'
import { AS_OF_LEVEL, appliedIndex, featureLevel, type Memory, STAYS_LEVEL, shardDay } from '../store/store.ts'
import type { ReplyForm } from '../threads/direct-replies.ts'
import { beginProposal, dropProposal, type Proposals } from '../threads/writes.ts'
import { refuse, writeStay, writeStayRead } from './stay-requests.ts'

export { KEEPS_CHANGING, NO_ROOM, UNFINISHED } from '../search/search.ts'

const SEGMENTS_MAX = LIMITS.replySegmentsMax
/** Names checked and segments written in one turn of a thread: longer lists take several turns. */
const SEGMENTS_OF_TURN = 512

export type Dispatcher = {
  readonly searcher: Searcher
  readonly view: { -readonly [Key in keyof ReadView]: ReadView[Key] }
  readonly values: Values
  readonly codecs: CodecList
  readonly codecBytes: Uint8Array
  readonly proposals: Proposals
  readonly wallMs: () => number
  readonly propertyId: Uint8Array
  readonly requestKey: Uint8Array
  readonly mode: { -readonly [Key in keyof ReadMode]: ReadMode[Key] }
  /** Name of the token of the connection: the source of a stay that names none. Set before each write. */
  source: Uint8Array
  /** Error text of the last reply, '' after SUCCESS. */
  error: string
}

export const NO_SOURCE = new Uint8Array(0)

export function createDispatcher(options: {
  searcher: Searcher
  codecs: CodecList
  proposals: Proposals
  wallMs: () => number
}): Dispatcher {
  const { searcher, codecs, proposals, wallMs } = options
  return {
    searcher,
    view: { memory: searcher.memory, reader: searcher.reader },
    values: searcher.values,
    codecs,
    codecBytes: new TextEncoder().encode(codecs.text),
    proposals,
    wallMs,
    propertyId: new Uint8Array(16),
    requestKey: new Uint8Array(24),
    mode: { maxStalenessMs: undefined, minIndex: 0, isLinearizable: false },
    source: NO_SOURCE,
    error: '',
  }
}

/**
 * Reads name and structure of a request into `values.scan`.
 *
 * @returns its row of the command table; undefined when the request is refused, with `error` set
 */
export function openRequest(
  dispatcher: Dispatcher,
  bytes: Uint8Array,
  start: number,
  end: number,
): CommandSpec | undefined {
  const { values } = dispatcher
  values.fault = ''
  // Shard time decides which nights are past, as it does when a write is applied.
  setToday(values, shardDay(dispatcher.view.memory) || dayOf(dispatcher.wallMs()))
  dispatcher.error = scanRequest(values.scan, bytes, start, end)
  if (dispatcher.error !== '') return undefined
  return values.scan.command
}

/** Whether the data here is below the feature level of a command: some member of the shard may not know it. */
export function isBelowLevel(memory: Memory, command: CommandSpec): boolean {
  return command.group === 'stays' && featureLevel(memory) < STAYS_LEVEL
}

function position(command: CommandSpec, name: string): number {
  const found = command.fields.findIndex((spec) => spec.name === name)
  assert(found >= 0, `${command.name} has a field ${name}`)
  return found
}

// Reads

const { SEARCHPROP, GETCODECS, GETSEGMENTS } = COMMANDS
const { PROPEXIST, PROPROOMEXIST, PROPROOMLIST, PROPROOMDATELIST, GETPROPROOMDAY } = COMMANDS
const MISSING_TEXT: { readonly [what in Missing | Changing]: string } = {
  property: 'NOT_FOUND: property not found',
  'room-type': 'NOT_FOUND: room type not found',
  package: 'NOT_FOUND: package not found',
  changing: '429',
}
const fieldsNamed = (name: string) =>
  COMMAND_LIST.map((command) => command.fields.findIndex((spec) => spec.name === name))
const minIndexFields = fieldsNamed('minIndex')
const stalenessFields = fieldsNamed('maxStalenessMs')
const linearizableFields = fieldsNamed('linearizable')
const traceFields = fieldsNamed('trace')
const cursorPlaces = fieldsNamed('cursor')
/** Of a search; another command has a cursor of its own. */
const cursorFields = COMMAND_LIST.map((command, code) => (isSearch(command) ? cursorPlaces[code] : -1)) as number[]

/** The applied index that a read, or the pages before it, requires; 0 without one (docs/design/protocol.md#extension-fields). */
export function minIndexOf(dispatcher: Dispatcher, command: CommandSpec): number {
  const { values } = dispatcher
  const field = minIndexFields[command.code]
  const given = field >= 0 && isGiven(values, field) ? readU64(values, field) : 0
  const cursor = cursorFields[command.code]
  if (cursor < 0 || !isGiven(values, cursor)) return given
  return Math.max(given, newestOfCursor(values.scan.bytes, startOf(values, cursor), endOf(values, cursor)))
}

/** Options of a read, valid until the next request is opened. The codec list of a shard never changes. */
export function readModeOf(dispatcher: Dispatcher, command: CommandSpec): ReadMode {
  const { values, mode } = dispatcher
  const staleness = stalenessFields[command.code]
  const linearizable = linearizableFields[command.code]
  const isBound = staleness >= 0 && isGiven(values, staleness)
  mode.maxStalenessMs = isBound ? readU32(values, staleness) : command === GETCODECS ? NEVER_STALE : undefined
  mode.minIndex = minIndexOf(dispatcher, command)
  mode.isLinearizable = linearizable >= 0 && isGiven(values, linearizable) && readU8(values, linearizable) === 1
  return mode
}

const NEVER_STALE = Number.POSITIVE_INFINITY
const decoder = new TextDecoder()

/** The trace that the open request belongs to; null without one, and for a malformed one. */
export function traceIdOf({ values }: Dispatcher, command: CommandSpec): string | null {
  const field = traceFields[command.code]
  if (field < 0 || !isGiven(values, field)) return null
  const text = decoder.decode(values.scan.bytes.subarray(startOf(values, field), endOf(values, field)))
  return parseTraceparent(text)?.traceId ?? null
}

export function isSearch(command: CommandSpec): boolean {
  return command.group === 'search'
}

/**
 * Writes the reply of a read into [at, end) of `target`; searches need the store's own memory there.
 *
 * @returns end of the frame, NO_ROOM, or why it must be resumed later: KEEPS_CHANGING, or UNFINISHED
 */
export function answerRead(
  dispatcher: Dispatcher,
  command: CommandSpec,
  correlationId: number,
  target: Uint8Array,
  at: number,
  end: number,
  waitedMs: number,
): number {
  const { searcher, values } = dispatcher
  dispatcher.error = ''
  if (isSearch(command)) {
    // A kernel would take an offset of other memory for an address of the store.
    assert(target === searcher.memory.u8, 'a search writes into a slab, which holds the largest reply')
    const stop = runSearch(searcher, command !== SEARCHPROP, correlationId, at, end, waitedMs)
    dispatcher.error = values.fault
    return stop
  }
  if (command === GETSEGMENTS && isLongListing(dispatcher)) return UNFINISHED
  const { writer } = searcher
  dispatcher.view.tries = triesOfTurn(searcher)
  beginReply(writer, target, at, end, correlationId)
  const error = readInto(dispatcher, command, writer)
  if (error === '') return finishReply(writer)
  if (error === MISSING_TEXT.changing) return KEEPS_CHANGING
  dispatcher.error = error
  return writeError(target, at, end, correlationId, error)
}

/**
 * Runs the next slice of a search that was opened again.
 *
 * @param at,end an area in the store's memory for the hits of one slice
 * @returns end of the frame in `slices.reply`, KEEPS_CHANGING or UNFINISHED
 */
export function continueSearch(
  dispatcher: Dispatcher,
  command: CommandSpec,
  correlationId: number,
  slices: Slices,
  at: number,
  end: number,
  waitedMs: number,
): number {
  const { searcher, values } = dispatcher
  const stop = runSlice(searcher, command !== SEARCHPROP, correlationId, slices, at, end, waitedMs)
  dispatcher.error = values.fault
  return stop
}

/** A list of segments that takes several turns: collected first, then written. */
export type Listing = {
  readonly segments: SegmentListing
  readonly reply: ReplyWriter
  isFound: boolean
  written: number
}

function isLongListing({ searcher, view }: Dispatcher): boolean {
  return searcher.sliceWork !== Number.POSITIVE_INFINITY && segmentNameCount(view) > SEGMENTS_OF_TURN
}

export function createListing({ view }: Dispatcher): Listing {
  return { segments: createSegmentListing(view), reply: createReplyWriter(), isFound: false, written: 0 }
}

/** Takes the next step of a list of segments. @returns end of the frame in `listing.reply`, or UNFINISHED */
export function continueSegments(dispatcher: Dispatcher, correlationId: number, listing: Listing): number {
  const { searcher, view } = dispatcher
  const { segments, reply } = listing
  dispatcher.error = ''
  // Half of a turn.
  searcher.workLeft -= searcher.sliceWork / 2
  if (!listing.isFound) {
    listing.isFound = continueListing(view, segments, SEGMENTS_OF_TURN)
    return UNFINISHED
  }
  if (listing.written === 0) {
    growReply(reply, REPLY_HEADER_BYTES)
    beginReply(reply, reply.bytes, 0, reply.end, correlationId)
  }
  const end = Math.min(segments.found.length, SEGMENTS_MAX, listing.written + SEGMENTS_OF_TURN)
  for (const { bytes, properties } of segments.found.slice(listing.written, end)) {
    growReply(reply, reply.at + bytes.length + 2 * FIELD_HEADER_BYTES + 4)
    addBytes(reply, 1, bytes)
    addU32(reply, properties)
  }
  listing.written = end
  return end === Math.min(segments.found.length, SEGMENTS_MAX) ? finishReply(reply) : UNFINISHED
}

function readInto(dispatcher: Dispatcher, command: CommandSpec, writer: ReplyWriter): string {
  switch (command) {
    case GETCODECS:
      addBytes(writer, 9, dispatcher.codecBytes)
      return ''
    case GETSEGMENTS:
      for (const { bytes, properties } of segmentCounts(dispatcher.view).slice(0, SEGMENTS_MAX)) {
        addBytes(writer, 1, bytes)
        addU32(writer, properties)
      }
      return ''
    case PROPEXIST:
      return exists(dispatcher, writer)
    case PROPROOMEXIST:
      return hasRoom(dispatcher, writer)
    case PROPROOMLIST:
      return listRooms(dispatcher, writer)
    case PROPROOMDATELIST:
      return listDates(dispatcher, writer)
    default:
      assert(command === GETPROPROOMDAY, 'every read has an answer')
      return describeNight(dispatcher, writer)
  }
}

const PROPEXIST_ID = position(PROPEXIST, 'propertyId')

function exists(dispatcher: Dispatcher, writer: ReplyWriter): string {
  const { values, propertyId } = dispatcher
  readPropertyId(values, PROPEXIST_ID, propertyId, 0)
  if (values.fault === '') addU8(writer, propertyExists(dispatcher.view, propertyId) ? 1 : 0)
  return values.fault
}

/** Property id and room type have the same positions in all commands with both. */
const ROOM_ID = position(PROPROOMEXIST, 'propertyId')
const ROOM_TYPE = position(PROPROOMEXIST, 'roomType')
const ROOM_DATE = position(GETPROPROOMDAY, 'date')

function readRoom(dispatcher: Dispatcher): number {
  const { values, propertyId, view } = dispatcher
  readPropertyId(values, ROOM_ID, propertyId, 0)
  checkName(values, ROOM_TYPE)
  return findName(view.memory, NAMES.roomType, values.scan.bytes, startOf(values, ROOM_TYPE), endOf(values, ROOM_TYPE))
}

function hasRoom(dispatcher: Dispatcher, writer: ReplyWriter): string {
  const roomType = readRoom(dispatcher)
  const { values, view, propertyId } = dispatcher
  if (values.fault === '') addU8(writer, roomExists(view, propertyId, roomType) ? 1 : 0)
  return values.fault
}

function listRooms(dispatcher: Dispatcher, writer: ReplyWriter): string {
  const { values, view, propertyId } = dispatcher
  readPropertyId(values, ROOM_ID, propertyId, 0)
  if (values.fault !== '') return values.fault
  const names = roomTypesOf(view, propertyId)
  if (!names) return MISSING_TEXT.property
  for (const name of names) addBytes(writer, 1, name)
  return ''
}

function listDates(dispatcher: Dispatcher, writer: ReplyWriter): string {
  const roomType = readRoom(dispatcher)
  const { values, view, propertyId } = dispatcher
  if (values.fault !== '') return values.fault
  const days = daysOfRoom(view, propertyId, roomType, values.today)
  if (typeof days === 'string') return MISSING_TEXT[days]
  for (const day of days) addText(writer, formatDay(day))
  return ''
}

function describeNight(dispatcher: Dispatcher, writer: ReplyWriter): string {
  const roomType = readRoom(dispatcher)
  const { values, view, propertyId } = dispatcher
  const day = readDate(values, ROOM_DATE)
  if (values.fault !== '') return values.fault
  const night = readNight(view, propertyId, roomType, day)
  if (typeof night === 'string') return MISSING_TEXT[night]
  addText(writer, unpackPropertyId(propertyId, 0))
  addText(writer, formatDay(day))
  addU8(writer, night.availability)
  addU32(writer, night.price)
  addU32(writer, night.features)
  return ''
}

// Writes

const { SETPROP, SETROOMPKG, SETROOMAVL, INCROOMAVL, DECROOMAVL } = COMMANDS
const { DELPROP, DELSEGMENT, DELPROPDAY, DELPROPROOM, DELROOMDAY } = COMMANDS
const { BOOKSTAY, HOLDSTAY, CONFIRMSTAY, RELEASESTAY } = COMMANDS

const KINDS = new Map<CommandSpec, CommandKind>([
  [SETPROP, KIND.setProperty],
  [SETROOMPKG, KIND.setPackage],
  [SETROOMAVL, KIND.setAvailability],
  [INCROOMAVL, KIND.increaseAvailability],
  [DECROOMAVL, KIND.decreaseAvailability],
  [DELPROP, KIND.deleteProperty],
  [DELSEGMENT, KIND.deleteSegment],
  [DELPROPDAY, KIND.deleteDay],
  [DELPROPROOM, KIND.deleteRoom],
  [DELROOMDAY, KIND.deletePackage],
  [BOOKSTAY, KIND.bookStay],
  [HOLDSTAY, KIND.holdStay],
  [CONFIRMSTAY, KIND.confirmStay],
  [RELEASESTAY, KIND.releaseStay],
])
/** By code of the command. */
const kinds = COMMAND_LIST.map((command) => KINDS.get(command))
/** The same with the index up to which the source knows bookings. */
const AS_OF_KINDS = new Map<CommandSpec, CommandKind>([
  [SETROOMPKG, KIND.setPackageAsOf],
  [SETROOMAVL, KIND.setAvailabilityAsOf],
])

const sessionFields = fieldsNamed('session')
const numberFields = fieldsNamed('requestNumber')
const wantIndexFields = fieldsNamed('wantIndex')
const asOfFields = fieldsNamed('asOf')
const idFields = fieldsNamed('propertyId')
const roomTypeFields = fieldsNamed('roomType')
const dateFields = fieldsNamed('date')
const amountFields = fieldsNamed('amount')
const segmentFields = fieldsNamed('segment')

/** Position of a field of a command. */
function fieldOf(fields: readonly number[], command: CommandSpec): number {
  const field = fields[command.code]
  assert(field >= 0, 'the command has the field')
  return field
}

/** Commands that may need memory: refused while there is too little, while others continue. */
export function needsMemory(command: CommandSpec): boolean {
  return command === SETPROP || command === SETROOMPKG
}

/** Whether a write requests the index at which it was applied. */
export function wantsIndex(dispatcher: Dispatcher, command: CommandSpec): boolean {
  const field = wantIndexFields[command.code]
  return field >= 0 && isGiven(dispatcher.values, field) && readU8(dispatcher.values, field) === 1
}

/**
 * Checks a write and adds its logged form to the batch. The caller ends the proposal with a token.
 *
 * @returns '' or the error text; nothing was added then
 */
export function proposeWrite(dispatcher: Dispatcher, command: CommandSpec): string {
  const { values, proposals, requestKey } = dispatcher
  const asOf = asOfFields[command.code]
  const hasAsOf = asOf >= 0 && isGiven(values, asOf)
  const kind = hasAsOf ? AS_OF_KINDS.get(command) : kinds[command.code]
  assert(kind !== undefined, 'every write has a logged form')
  const session = sessionFields[command.code]
  const writer = beginProposal(proposals)
  // Checked in the order of the ids: the request key comes last, but is first in the log.
  const keyed = isGiven(values, session) || isGiven(values, numberFields[command.code])
  // The id of a stay makes every call repeatable: a request key is checked and changes nothing.
  const isLogged = keyed && command.group !== 'stays'
  beginCommand(writer, kind, isLogged ? requestKey : undefined)
  const keyAt = writer.at - requestKey.length
  if (hasAsOf) writeAsOf(dispatcher, command, writer, asOf)
  writeBody(dispatcher, command, writer)
  if (keyed) readRequestKey(values, session, numberFields[command.code], requestKey)
  if (values.fault !== '') {
    dropProposal(proposals)
    return values.fault
  }
  if (isLogged) writer.bytes.set(requestKey, keyAt)
  return ''
}

function writeAsOf({ values, view }: Dispatcher, command: CommandSpec, writer: CommandWriter, asOf: number): void {
  // The text for a field that does not exist: a member of the shard may not know it.
  if (featureLevel(view.memory) < AS_OF_LEVEL)
    refuse(values, `${command.name} has no field ${command.fields[asOf]?.id}`)
  if (command === SETROOMPKG && !isGiven(values, PACKAGE_FIELDS.availability)) refuse(values, 'asOf needs availability')
  writeF64(writer, readU64(values, asOf))
}

function writeBody(dispatcher: Dispatcher, command: CommandSpec, writer: CommandWriter): void {
  switch (command) {
    case SETPROP:
      return writeProperty(dispatcher, writer)
    case SETROOMPKG:
      return writePackage(dispatcher, writer)
    case SETROOMAVL:
    case INCROOMAVL:
    case DECROOMAVL:
      return writeAmount(dispatcher, command, writer)
    case DELROOMDAY:
      return writeNight(dispatcher, command, writer)
    case DELPROPROOM:
      writeId(dispatcher, writer, fieldOf(idFields, command))
      return writeText(dispatcher, writer, fieldOf(roomTypeFields, command))
    case DELPROPDAY:
      writeId(dispatcher, writer, fieldOf(idFields, command))
      return writeU32(writer, readDate(dispatcher.values, fieldOf(dateFields, command)))
    case DELPROP:
      return writeId(dispatcher, writer, fieldOf(idFields, command))
    case BOOKSTAY:
    case HOLDSTAY:
    case CONFIRMSTAY:
    case RELEASESTAY:
      return writeStay(dispatcher.values, command, writer, dispatcher.source, featureLevel(dispatcher.view.memory))
    default:
      assert(command === DELSEGMENT, 'every write has a logged form')
      checkSegment(dispatcher.values, fieldOf(segmentFields, command))
      return writeText(dispatcher, writer, fieldOf(segmentFields, command))
  }
}

function writeId(dispatcher: Dispatcher, writer: CommandWriter, field: number): void {
  const { values, propertyId } = dispatcher
  readPropertyId(values, field, propertyId, 0)
  writeBytes(writer, propertyId, 0, 16)
}

/** Writes a name, checked here unless it was checked before. Writes nothing after a fault. */
function writeText(dispatcher: Dispatcher, writer: CommandWriter, field: number): void {
  const { values } = dispatcher
  checkName(values, field)
  if (values.fault === '') writeName(writer, values.scan.bytes, startOf(values, field), endOf(values, field))
}

const PROPERTY_FIELDS = {
  segment: position(SETPROP, 'segment'),
  area: position(SETPROP, 'area'),
  id: position(SETPROP, 'propertyId'),
  type: position(SETPROP, 'propertyType'),
  category: position(SETPROP, 'category'),
  stars: position(SETPROP, 'stars'),
  latitude: position(SETPROP, 'latitude'),
  longitude: position(SETPROP, 'longitude'),
  amenities: position(SETPROP, 'amenities'),
}

function writeProperty(dispatcher: Dispatcher, writer: CommandWriter): void {
  const { values, propertyId } = dispatcher
  const fields = PROPERTY_FIELDS
  checkSegment(values, fields.segment)
  checkName(values, fields.area)
  readPropertyId(values, fields.id, propertyId, 0)
  checkName(values, fields.type)
  checkName(values, fields.category)
  const stars = readStars(values, fields.stars)
  const latitude = readDegrees(values, fields.latitude, 90)
  const longitude = readDegrees(values, fields.longitude, 180)
  readAmenities(values, fields.amenities)
  if (values.fault !== '') return
  writeBytes(writer, propertyId, 0, 16)
  writeU8(writer, stars)
  writeF64(writer, latitude)
  writeF64(writer, longitude)
  for (const field of [fields.segment, fields.area, fields.type, fields.category]) {
    writeName(writer, values.scan.bytes, startOf(values, field), endOf(values, field))
  }
  writeU8(writer, values.entries)
  for (let i = 0; i < values.entries; i++) {
    writeName(writer, values.scan.bytes, values.starts[i], values.ends[i])
  }
}

const PACKAGE_FIELDS = {
  id: position(SETROOMPKG, 'propertyId'),
  roomType: position(SETROOMPKG, 'roomType'),
  date: position(SETROOMPKG, 'date'),
  availability: position(SETROOMPKG, 'availability'),
  price: position(SETROOMPKG, 'finalPrice'),
  features: position(SETROOMPKG, 'rateFeatures'),
}

function writePackage(dispatcher: Dispatcher, writer: CommandWriter): void {
  const { values } = dispatcher
  const fields = PACKAGE_FIELDS
  const has = (field: number) => isGiven(values, field)
  writeId(dispatcher, writer, fields.id)
  checkName(values, fields.roomType)
  writeU32(writer, readDate(values, fields.date))
  const given =
    (has(fields.availability) ? GIVEN.availability : 0) |
    (has(fields.price) ? GIVEN.price : 0) |
    (has(fields.features) ? GIVEN.features : 0)
  writeU8(writer, given)
  writeU8(writer, has(fields.availability) ? readU8(values, fields.availability) : 0)
  writeU32(writer, has(fields.price) ? readPrice(values, fields.price) : 0)
  writeU32(writer, has(fields.features) ? readFeatures(values, fields.features) : 0)
  writeText(dispatcher, writer, fields.roomType)
}

function writeAmount(dispatcher: Dispatcher, command: CommandSpec, writer: CommandWriter): void {
  const { values } = dispatcher
  const roomType = fieldOf(roomTypeFields, command)
  writeId(dispatcher, writer, fieldOf(idFields, command))
  checkName(values, roomType)
  writeU32(writer, readDate(values, fieldOf(dateFields, command)))
  const amount = readU8(values, fieldOf(amountFields, command))
  if (amount === 0 && command !== SETROOMAVL && values.fault === '') {
    values.fault = 'VALIDATION_ERROR: amount must be 1 to 255'
  }
  writeU8(writer, amount)
  writeText(dispatcher, writer, roomType)
}

function writeNight(dispatcher: Dispatcher, command: CommandSpec, writer: CommandWriter): void {
  const { values } = dispatcher
  const roomType = fieldOf(roomTypeFields, command)
  writeId(dispatcher, writer, fieldOf(idFields, command))
  checkName(values, roomType)
  writeU32(writer, readDate(values, fieldOf(dateFields, command)))
  writeText(dispatcher, writer, roomType)
}

// Replies of writes

const indexBytes = new Uint8Array(8)
const indexView = new DataView(indexBytes.buffer)

type WrittenReply = {
  readonly command: CommandSpec
  readonly correlationId: number
  readonly value: number
  /** 0 where it was not requested. */
  readonly index: number
}

/**
 * A SUCCESS reply of a write: empty, or the new availability; the index if requested.
 *
 * @returns end of the frame, or NO_ROOM
 */
export function answerWrite(
  writer: ReplyWriter,
  { command, correlationId, value, index }: WrittenReply,
  target: Uint8Array,
  at: number,
  end: number,
): number {
  beginReply(writer, target, at, end, correlationId)
  if (command === SETROOMAVL || command === INCROOMAVL || command === DECROOMAVL) addU8(writer, value)
  if (index > 0) {
    indexView.setBigUint64(0, BigInt(index), true)
    addExtra(writer, 3, indexBytes)
  }
  return finishReply(writer)
}

/** The reply of a write that succeeds, before its outcome is known. */
export function replyForm(
  writer: ReplyWriter,
  command: CommandSpec,
  correlationId: number,
  wantsIndex: boolean,
): ReplyForm {
  const index = wantsIndex ? 1 : 0
  const indexBytes = wantsIndex ? EXTRA_BYTES : 0
  return {
    write: (bytes, at, end) => answerWrite(writer, { command, correlationId, value: 0, index }, bytes, at, end),
    valueFromEnd: command.reply === 'availability' ? 1 + indexBytes : 0,
    indexFromEnd: wantsIndex ? 8 : 0,
  }
}

const EXTRA_BYTES = FIELD_HEADER_BYTES + 8
const COUNT_AT = REPLY_HEADER_BYTES - 2

/**
 * Writes a reply that the replica thread made, with the correlation id, and with the index if requested.
 *
 * @returns end of the frame, or NO_ROOM
 */
export function answerFrame(
  frame: Uint8Array,
  correlationId: number,
  index: number,
  target: Uint8Array,
  at: number,
  end: number,
): number {
  const stop = at + frame.length + (index > 0 ? EXTRA_BYTES : 0)
  if (stop > end) return NO_ROOM
  target.set(frame, at)
  const view = new DataView(target.buffer, target.byteOffset + at, stop - at)
  view.setUint32(1, correlationId, true)
  if (index === 0) return stop
  view.setUint32(5, view.getUint32(5, true) + EXTRA_BYTES, true)
  view.setUint16(COUNT_AT, view.getUint16(COUNT_AT, true) + 1, true)
  view.setUint16(frame.length, 0xffff, true)
  view.setUint8(frame.length + 2, 3)
  view.setUint32(frame.length + 3, 8, true)
  view.setBigUint64(frame.length + FIELD_HEADER_BYTES, BigInt(index), true)
  return stop
}

/** Checks a read of stays and adds it to the batch for the replica. @returns '' or the error text */
export function proposeStayRead(dispatcher: Dispatcher, command: CommandSpec, batch: Proposals): string {
  const { values } = dispatcher
  writeStayRead(values, command, beginProposal(batch))
  if (values.fault !== '') dropProposal(batch)
  return values.fault
}

/** Whether a read at `minIndex` may be served now. */
export function hasApplied(dispatcher: Dispatcher, minIndex: number): boolean {
  return minIndex === 0 || appliedIndex(dispatcher.view.memory) >= minIndex
}

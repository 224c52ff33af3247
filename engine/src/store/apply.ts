/**
 * Applies logged commands: the one place where state changes (consensus.md §11–13). Deterministic: state and command
 * decide everything. Checks everything first, then changes through the doors of table.ts and segment.ts, so that an
 * error answer means that nothing changed.
 */

import { assert, isVisible, LIMITS } from '@vacancy/shared'
import {
  CONTENT_DIGEST_BYTES,
  type CommandReader,
  createCommandReader,
  GIVEN,
  KIND,
  OUTCOME,
  openCommand,
  readBytes,
  readF64,
  readName,
  readU8,
  readU32,
} from './command.ts'
import { readStoreDefects } from './defects.ts'
import {
  compareBytes,
  dictionaryGrowthBytes,
  findName,
  hashOfName,
  internName,
  NAMES,
  type NameKind,
  nameBytes,
  nameCount,
} from './dictionary.ts'
import { nameHash, packageHash, propertyHash, roomHash, rowKey } from './digest.ts'
import { capacityFor, PLANE, PROPERTY, PROPERTY_TABLE, ROOMS, SEGMENT, SLOT, STATE, TABLE } from './layout.ts'
import {
  addRoom,
  admitProperty,
  createPropertyRecord,
  dismissProperty,
  ensureTable,
  enterSegment,
  findProperty,
  findRoom,
  forEachProperty,
  forEachTable,
  forgetRoom,
  indexGrowthBytes,
  type PropertyRecord,
  roomCount,
  roomEntry,
  segmentOf,
  tableOf,
  writeAttributes,
} from './segment.ts'
import { expireSessions, lookUpRequest, storeResult } from './sessions.ts'
import { addDigest, type Digest, type Memory, type Store, setState, state, stateDigest } from './store.ts'
import {
  addToPlane,
  appendRow,
  bitmapGrowthBytes,
  changeWord,
  ensurePlane,
  field,
  forEachSlot,
  liveRowsOf,
  nightGrowthBytes,
  type PutWord,
  planeOf,
  rebuildBytes,
  rebuildTable,
  removeRow,
  renewRowBits,
  rowGrowthBytes,
  setField,
  slotOf,
  wordAddress,
} from './table.ts'
import { mark, unmark } from './version.ts'
import { dropBefore } from './window.ts'

/** What a command came to. One reused object: read it before the next command. */
export type Applied = {
  code: number
  /** New availability; what is left, for overflow and underflow. */
  value: number
  /** Log index at which the command took effect: an earlier one when this was a repeat. */
  index: number
}

/** The state digest right after the command at an index. */
export type DigestMark = Digest & { readonly index: number }

/** Every so many entries the leader logs its digest (consensus.md §13). */
export const DIGEST_EVERY = 4_096
const MARKS_MAX = 64

export type ApplyContext = {
  readonly store: Store
  readonly put: PutWord
  /** Told when a digest in the log is not this replica's: it must stop serving (consensus.md P4). */
  readonly onDigestMismatch: (index: number, expected: Digest, own: Digest) => void
  /** Digests as they were at every DIGEST_EVERY-th index, until a check of the log has named them. */
  readonly marks: DigestMark[]
  /** Content digest of the snapshot whose data has just taken the place of this store's, hexadecimal; '' for none. */
  loaded: string
  readonly reader: CommandReader
  readonly applied: Applied
}

/** @param defects planted ones (env.ts) */
export function createApplyContext(
  store: Store,
  put: PutWord,
  onDigestMismatch: ApplyContext['onDigestMismatch'],
  defects?: ReadonlySet<string>,
): ApplyContext {
  store.writer.defects = readStoreDefects(defects)
  return {
    store,
    put,
    onDigestMismatch,
    marks: [],
    loaded: '',
    reader: createCommandReader(),
    applied: { code: 0, value: 0, index: 0 },
  }
}

const KEY_NUMBER_AT = 16
const NO_SESSION = new Uint8Array(KEY_NUMBER_AT)

/** Applies one logged command at its index. */
export function applyCommand(
  context: ApplyContext,
  index: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): Applied {
  const { reader, applied, store, marks } = context
  openCommand(reader, bytes, start, end)
  applied.code = OUTCOME.done
  applied.value = 0
  applied.index = index
  noteTime(store, reader.timeMs)
  expireSessions(store, reader.timeMs)
  if (reader.key < 0) execute(context)
  else executeOnce(context, index)
  store.writer.promisedBytes = 0
  if (index % DIGEST_EVERY === 0) {
    marks.push({ index, ...stateDigest(store.memory) })
    if (marks.length > MARKS_MAX) marks.shift()
  }
  return applied
}

function noteTime(store: Store, timeMs: number): void {
  const low = timeMs % 2 ** 32
  if (low === state(store.memory, STATE.timeLow)) return
  setState(store, STATE.timeLow, low)
  setState(store, STATE.timeHigh, Math.floor(timeMs / 2 ** 32))
}

/** Latest time in the log so far. */
export function latestTime(memory: Memory): number {
  return state(memory, STATE.timeHigh) * 2 ** 32 + state(memory, STATE.timeLow)
}

/** A command with a request key: executed the first time it comes, answered from the table after that. */
function executeOnce(context: ApplyContext, index: number): void {
  const { reader, applied, store } = context
  const { bytes, end, key, at, kind } = reader
  const number = Number(reader.view.getBigUint64(key + KEY_NUMBER_AT, true))
  const low = nameHash(0, bytes, at, end) ^ kind
  const high = nameHash(1, bytes, at, end) ^ kind
  const { defects } = store.writer
  const [session16, at16] = defects['sessions/key-without-session'] ? [NO_SESSION, 0] : [bytes, key]
  const earlier = lookUpRequest(store, session16, at16, number, reader.timeMs, low, high)
  if (earlier.seen) {
    applied.code = earlier.code
    applied.value = earlier.value
    applied.index = earlier.index
    return
  }
  const { session } = earlier
  execute(context)
  if (applied.code !== OUTCOME.done && defects['sessions/failed-not-kept']) return
  storeResult(store, session, number, applied.code, applied.value, index, low, high)
}

function execute(context: ApplyContext): void {
  switch (context.reader.kind) {
    case KIND.setPackage:
      return setPackage(context)
    case KIND.setAvailability:
    case KIND.increaseAvailability:
    case KIND.decreaseAvailability:
      return changeAvailability(context)
    case KIND.setProperty:
      return setProperty(context)
    case KIND.deletePackage:
      return deletePackage(context)
    case KIND.deleteDay:
      return deleteDay(context)
    case KIND.deleteRoom:
      return deleteRoom(context)
    case KIND.deleteProperty:
      return deleteProperty(context)
    case KIND.deleteSegment:
      return deleteSegment(context)
    case KIND.dropBefore: {
      const day = readU32(context.reader)
      const result = dropBefore(context.store, day, readU8(context.reader))
      if (result === 'gap-refused') context.applied.code = OUTCOME.refused
      return
    }
    case KIND.settings:
      setState(context.store, STATE.sessionBytesMax, readU32(context.reader))
      return
    case KIND.genesis:
      for (let cell = 0; cell < 4; cell++) setState(context.store, STATE.genesis + cell, readU32(context.reader))
      return
    case KIND.digestCheck:
      return checkDigest(context)
    case KIND.orderRows:
      return orderRows(context)
    case KIND.bulkLoad:
      return takeLoad(context)
    default:
      assert(false, `command kind ${context.reader.kind} is not known to this version`)
  }
}

/**
 * The data of a snapshot takes the place of the store's, as one step at one index. That takes chunks that may have to
 * be pulled first, so the driver has done it, between the entry before and this one (`replaceData`); sessions, members
 * and the day of maintenance stayed.
 */
function takeLoad(context: ApplyContext): void {
  const { reader } = context
  const start = readBytes(reader, CONTENT_DIGEST_BYTES)
  let digest = ''
  for (let i = start; i < reader.at; i++) digest += (reader.bytes[i] as number).toString(16).padStart(2, '0')
  assert(context.loaded === digest, 'the data is replaced before the entry that says so is applied')
  context.loaded = ''
}

function fail(context: ApplyContext, code: number, value = 0): void {
  context.applied.code = code
  context.applied.value = value
}

function inWindow(context: ApplyContext, day: number): boolean {
  const visible = isVisible(day, context.reader.day) && day >= state(context.store.memory, STATE.droppedBefore)
  if (!visible) fail(context, OUTCOME.outsideWindow)
  return visible
}

/** Kept free beside what a command is known to need. */
const MEMORY_MARGIN_BYTES = 256 * 1024

/**
 * Refuses a command that may need more memory than is left. The flag of store.ts refuses most of them before they are
 * logged; what was on its way then, and what must double a large table, ends here. (Replicas with different memory
 * could differ in this: a cluster must agree on `memory_max_bytes`.)
 */
function lacksMemory(context: ApplyContext, bytes: number): boolean {
  if (promiseMemory(context.store, bytes)) return false
  const { gap } = context.store.writer
  context.store.writer.lackingAt = gap.high - gap.low
  fail(context, OUTCOME.refused)
  return true
}

/** Keeps that much free for the command in hand. @returns false when there is less */
function promiseMemory({ writer }: Store, bytes: number): boolean {
  writer.promisedBytes = bytes + MEMORY_MARGIN_BYTES
  return writer.gap.high - writer.gap.low >= writer.promisedBytes
}

/** Reads an id and finds its property. @returns 0 after noting that there is none */
function readProperty(context: ApplyContext): number {
  const { reader, store } = context
  return findProperty(store.memory, reader.bytes, readBytes(reader, 16))
}

function readRoomType(context: ApplyContext): number {
  const start = readName(context.reader)
  return findName(context.store.memory, NAMES.roomType, context.reader.bytes, start, context.reader.at)
}

function keyOf(memory: Memory, property: number, roomType: number, lane: 0 | 1): number {
  return rowKey(lane, memory.u8, property + PROPERTY.id, hashOfName(memory, NAMES.roomType, roomType, lane))
}

function addRoomDigest(store: Store, property: number, roomType: number, sign: 1 | -1): void {
  const low = roomHash(0, keyOf(store.memory, property, roomType, 0))
  const high = roomHash(1, keyOf(store.memory, property, roomType, 1))
  addDigest(store, Math.imul(low, sign), Math.imul(high, sign))
}

// Packages

function setPackage(context: ApplyContext): void {
  const { reader, store } = context
  const { memory } = store
  const property = readProperty(context)
  const day = readU32(reader)
  const given = readU8(reader)
  const availability = readU8(reader)
  const price = readU32(reader)
  const features = readU32(reader)
  const nameStart = readName(reader)
  if (!inWindow(context, day)) return
  if (property === 0) return fail(context, OUTCOME.unknownProperty)
  let roomType = findName(memory, NAMES.roomType, reader.bytes, nameStart, reader.at)
  let room = findRoom(memory, property, roomType)
  if (room === 0) {
    if (roomCount(memory, property) === LIMITS.roomTypesPerPropertyMax) return fail(context, OUTCOME.tooManyRoomTypes)
    const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
    const growth = rowGrowthBytes(memory, tableOf(memory, segment, roomType)) + dictionaryGrowthBytes(memory, 1)
    if (lacksMemory(context, growth)) return
    roomType = internName(store, NAMES.roomType, reader.bytes, nameStart, reader.at)
    room = createRoom(store, property, roomType)
  }
  const table = field(memory, room + ROOMS.table)
  if (planeOf(memory, table, day) === 0 && lacksMemory(context, nightGrowthBytes(memory, table))) return
  const plane = ensurePlane(store, table, day)
  const row = field(memory, room + ROOMS.row)
  const cell = wordAddress(plane, row) >>> 2
  const oldLo = memory.u32[cell] as number
  const oldHi = memory.u32[cell + 1] as number
  const exists = (oldLo | oldHi) !== 0
  const left = given & GIVEN.availability ? availability : oldLo & 0xff
  const mask = given & GIVEN.features ? features : oldLo >>> 8
  const inverted = given & GIVEN.price ? ~price >>> 0 : exists ? oldHi : 0xffffffff
  change(context, table, plane, row, property, roomType, ((mask << 8) | left) >>> 0, inverted)
}

function createRoom(store: Store, property: number, roomType: number): number {
  const { memory } = store
  const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
  const table = ensureTable(store, segment, roomType, 1)
  const row = appendRow(store, table, property)
  addRoomDigest(store, property, roomType, 1)
  return addRoom(store, property, roomType, table, row)
}

function change(
  context: ApplyContext,
  table: number,
  plane: number,
  row: number,
  property: number,
  roomType: number,
  lo: number,
  hi: number,
): void {
  const { store, put } = context
  const { memory } = store
  const low = keyOf(memory, property, roomType, 0)
  const delta = changeWord(store, put, table, plane, row, lo, hi, low, keyOf(memory, property, roomType, 1))
  if (delta !== 0) addToSegment(store, field(memory, table + TABLE.segment), delta)
}

function addToSegment(store: Store, name: number, packages: number): void {
  const segment = segmentOf(store.memory, name)
  setField(store, segment + SEGMENT.packages, field(store.memory, segment + SEGMENT.packages) + packages)
}

/** What a command on one night addresses; one reused object. */
const night = { property: 0, roomType: 0, table: 0, plane: 0, row: 0, lo: 0, hi: 0 }

/** Finds the package of (property, room type, day). @returns false after noting what is missing */
function findNight(context: ApplyContext, property: number, roomType: number, day: number): boolean {
  const { memory } = context.store
  if (property === 0) return missing(context, OUTCOME.unknownProperty)
  const room = findRoom(memory, property, roomType)
  if (room === 0) return missing(context, OUTCOME.unknownRoomType)
  night.property = property
  night.roomType = roomType
  night.table = field(memory, room + ROOMS.table)
  night.row = field(memory, room + ROOMS.row)
  night.plane = planeOf(memory, night.table, day)
  if (night.plane === 0) return missing(context, OUTCOME.noPackage)
  const cell = wordAddress(night.plane, night.row) >>> 2
  night.lo = memory.u32[cell] as number
  night.hi = memory.u32[cell + 1] as number
  return (night.lo | night.hi) !== 0 || missing(context, OUTCOME.noPackage)
}

function missing(context: ApplyContext, code: number): false {
  fail(context, code)
  return false
}

function changeNight(context: ApplyContext, lo: number, hi: number): void {
  change(context, night.table, night.plane, night.row, night.property, night.roomType, lo, hi)
}

function changeAvailability(context: ApplyContext): void {
  const { reader } = context
  const property = readProperty(context)
  const day = readU32(reader)
  const amount = readU8(reader)
  const roomType = readRoomType(context)
  if (!inWindow(context, day) || !findNight(context, property, roomType, day)) return
  const left = night.lo & 0xff
  if (reader.kind === KIND.increaseAvailability && left + amount > LIMITS.availabilityMax) {
    return fail(context, OUTCOME.overflow, left)
  }
  const isUnchecked = context.store.writer.defects['apply/decrement-unchecked']
  if (reader.kind === KIND.decreaseAvailability && left < amount && !isUnchecked)
    return fail(context, OUTCOME.underflow, left)
  let next = amount
  if (reader.kind === KIND.increaseAvailability) next = left + amount
  if (reader.kind === KIND.decreaseAvailability) next = isUnchecked ? (left - amount) & 0xff : left - amount
  // consensus.md A17.
  assert(next >= 0 && next <= LIMITS.availabilityMax, 'availability stays within 0 to 255')
  changeNight(context, ((night.lo & 0xffffff00) | next) >>> 0, night.hi)
  context.applied.value = next
}

function deletePackage(context: ApplyContext): void {
  const property = readProperty(context)
  const day = readU32(context.reader)
  const roomType = readRoomType(context)
  if (inWindow(context, day) && findNight(context, property, roomType, day)) changeNight(context, 0, 0)
}

function deleteDay(context: ApplyContext): void {
  const { store } = context
  const { memory } = store
  const property = readProperty(context)
  const day = readU32(context.reader)
  if (!inWindow(context, day)) return
  if (property === 0) return fail(context, OUTCOME.unknownProperty)
  const rooms = roomCount(memory, property)
  forEachRoomTable(memory, property, (table) => mark(store, table))
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    const table = field(memory, entry + ROOMS.table)
    const plane = planeOf(memory, table, day)
    const row = field(memory, entry + ROOMS.row)
    if (plane === 0) continue
    change(context, table, plane, row, property, field(memory, entry + ROOMS.roomType), 0, 0)
  }
  forEachRoomTable(memory, property, (table) => unmark(store, table))
}

// Rooms and properties

function forEachRoomTable(memory: Memory, property: number, visit: (table: number) => void): void {
  const rooms = roomCount(memory, property)
  for (let n = 0; n < rooms; n++) visit(field(memory, roomEntry(memory, property, n) + ROOMS.table))
}

/** Whether the packages of a plane still count: those of dropped days have left counts and digest already. */
function isCounted(memory: Memory, plane: number): boolean {
  const day = field(memory, plane + PLANE.day)
  return state(memory, STATE.slots + slotOf(day) * SLOT.cells + SLOT.day) === day
}

/** Empties a row's words and gives the row up; the property's list is the caller's. */
function vacateRow(context: ApplyContext, entry: number, property: number): void {
  const { store } = context
  const { memory } = store
  const table = field(memory, entry + ROOMS.table)
  const row = field(memory, entry + ROOMS.row)
  const roomType = field(memory, entry + ROOMS.roomType)
  mark(store, table)
  forEachSlot(memory, table, (_slot, plane) => {
    if (isCounted(memory, plane)) change(context, table, plane, row, property, roomType, 0, 0)
  })
  removeRow(store, table, row)
  unmark(store, table)
}

function deleteRoom(context: ApplyContext): void {
  const { store } = context
  const property = readProperty(context)
  const roomType = readRoomType(context)
  if (property === 0) return fail(context, OUTCOME.unknownProperty)
  const entry = findRoom(store.memory, property, roomType)
  if (entry === 0) return fail(context, OUTCOME.unknownRoomType)
  vacateRow(context, entry, property)
  addRoomDigest(store, property, roomType, -1)
  forgetRoom(store, property, entry)
}

function deleteProperty(context: ApplyContext): void {
  const property = readProperty(context)
  if (property === 0) return fail(context, OUTCOME.unknownProperty)
  removeProperty(context, property)
}

function removeProperty(context: ApplyContext, property: number): void {
  const { store } = context
  const { memory } = store
  const rooms = roomCount(memory, property)
  const marked = tablesOfProperty(memory, property)
  for (const table of marked) mark(store, table)
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    vacateRow(context, entry, property)
    addRoomDigest(store, property, field(memory, entry + ROOMS.roomType), -1)
  }
  addPropertyDigest(store, property, -1)
  dismissProperty(store, property)
  for (const table of marked) unmark(store, table)
}

/** All tables in which the property has a row: what a reader must not see half changed. */
function tablesOfProperty(memory: Memory, property: number): number[] {
  const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
  const tables = [field(memory, segment + SEGMENT.propertyTable)]
  forEachRoomTable(memory, property, (table) => tables.push(table))
  return tables
}

function deleteSegment(context: ApplyContext): void {
  const { reader, store } = context
  const { memory } = store
  const start = readName(reader)
  const segment = segmentOf(memory, findName(memory, NAMES.segment, reader.bytes, start, reader.at))
  if (segment === 0) return fail(context, OUTCOME.unknownSegment)
  const tables = [field(memory, segment + SEGMENT.propertyTable)]
  forEachTable(memory, segment, (table) => tables.push(table))
  for (const table of tables) mark(store, table)
  forEachTable(memory, segment, (table) => {
    forEachSlot(memory, table, (_slot, plane) => {
      if (!isCounted(memory, plane)) return
      const low = -field(memory, plane + PLANE.digestLow) | 0
      addToPlane(
        store,
        table,
        plane,
        -field(memory, plane + PLANE.packages),
        low,
        -field(memory, plane + PLANE.digestHigh) | 0,
      )
    })
  })
  setField(store, segment + SEGMENT.packages, 0)
  const properties: number[] = []
  forEachProperty(memory, segment, (property) => properties.push(property))
  for (const property of properties) {
    const rooms = roomCount(memory, property)
    for (let n = 0; n < rooms; n++) {
      addRoomDigest(store, property, field(memory, roomEntry(memory, property, n) + ROOMS.roomType), -1)
    }
    addPropertyDigest(store, property, -1)
    // The last one takes the segment and its tables along.
    dismissProperty(store, property)
  }
  for (const table of tables) unmark(store, table)
}

function addPropertyDigest(store: Store, property: number, sign: 1 | -1): void {
  const low = Math.imul(propertyDigest(store.memory, property, 0), sign)
  addDigest(store, low, Math.imul(propertyDigest(store.memory, property, 1), sign))
}

/** Hash of a stored property in one lane of the digest. */
export function propertyDigest(memory: Memory, property: number, lane: 0 | 1): number {
  const { f64 } = memory
  const hash = (kind: NameKind, column: number) => hashOfName(memory, kind, field(memory, property + column), lane)
  const amenities = field(memory, property + PROPERTY.amenities)
  const amenityHashes: number[] = []
  for (let i = 1; amenities !== 0 && i <= field(memory, amenities); i++) {
    amenityHashes.push(hashOfName(memory, NAMES.amenity, field(memory, amenities + i * 4), lane))
  }
  return propertyHash(lane, {
    id: memory.u8,
    idStart: property + PROPERTY.id,
    segmentHash: hash(NAMES.segment, PROPERTY.segment),
    areaHash: hash(NAMES.area, PROPERTY.area),
    typeHash: hash(NAMES.type, PROPERTY.type),
    categoryHash: hash(NAMES.category, PROPERTY.category),
    stars: field(memory, property + PROPERTY.stars),
    latitude: f64[(property + PROPERTY.latitude) / 8] as number,
    longitude: f64[(property + PROPERTY.longitude) / 8] as number,
    amenityHashes,
  })
}

function setProperty(context: ApplyContext): void {
  const { reader, store } = context
  const { memory } = store
  if (lacksMemory(context, propertyGrowthBytes(context))) return
  const id = readBytes(reader, 16)
  const stars = readU8(reader)
  const latitude = readF64(reader)
  const longitude = readF64(reader)
  const segment = internRead(context, NAMES.segment)
  const area = internRead(context, NAMES.area)
  const type = internRead(context, NAMES.type)
  const category = internRead(context, NAMES.category)
  const count = readU8(reader)
  const amenities: number[] = []
  for (let i = 0; i < count; i++) amenities.push(internRead(context, NAMES.amenity))
  amenities.sort((a, b) => a - b)
  const attributes: PropertyRecord = { segment, area, type, category, stars, latitude, longitude, amenities }
  const property = findProperty(memory, reader.bytes, id)
  if (property === 0) {
    const created = createPropertyRecord(store, reader.bytes, id, attributes)
    admitProperty(store, created)
    addPropertyDigest(store, created, 1)
    return
  }
  addPropertyDigest(store, property, -1)
  if (field(memory, property + PROPERTY.segment) === segment) replaceAttributes(store, property, attributes)
  else moveProperty(context, property, attributes)
  addPropertyDigest(store, property, 1)
}

/** What SETPROP may need: names, its place in the index, rows in the tables of a segment it moves to. */
function propertyGrowthBytes(context: ApplyContext): number {
  const { reader, store } = context
  const { memory } = store
  const names = dictionaryGrowthBytes(memory, LIMITS.amenitiesMax) + indexGrowthBytes(memory)
  // The segment's name lies behind id, stars and position.
  const at = reader.at + 16 + 1 + 16
  const name = findName(memory, NAMES.segment, reader.bytes, at + 1, at + 1 + (reader.bytes[at] as number))
  const segment = segmentOf(memory, name)
  const rows = segment === 0 ? 4096 : rowGrowthBytes(memory, field(memory, segment + SEGMENT.propertyTable))
  const property = findProperty(memory, reader.bytes, reader.at)
  const tables = property === 0 ? [] : tablesOfProperty(memory, property)
  return tables.reduce((bytes, table) => bytes + bitmapGrowthBytes(memory, table), names + rows)
}

function internRead(context: ApplyContext, kind: NameKind): number {
  const start = readName(context.reader)
  return internName(context.store, kind, context.reader.bytes, start, context.reader.at)
}

function replaceAttributes(store: Store, property: number, attributes: PropertyRecord): void {
  const { memory } = store
  const tables = tablesOfProperty(memory, property)
  for (const table of tables) mark(store, table)
  writeAttributes(store, property, attributes)
  renewRowBits(store, tables[0] as number, field(memory, property + PROPERTY.row), property)
  const rooms = roomCount(memory, property)
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    renewRowBits(store, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row), property)
  }
  for (const table of tables) unmark(store, table)
}

/** To another segment, packages included: new rows there, then the old ones go. */
function moveProperty(context: ApplyContext, property: number, attributes: PropertyRecord): void {
  const { store } = context
  const { memory } = store
  const rooms = roomCount(memory, property)
  const marked = tablesOfProperty(memory, property)
  for (const table of marked) mark(store, table)
  const nights: { roomType: number; day: number; lo: number; hi: number }[][] = []
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    nights.push(
      nightsOfRow(memory, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row)).map((found) => ({
        ...found,
        roomType: field(memory, entry + ROOMS.roomType),
      })),
    )
    vacateRow(context, entry, property)
  }
  enterSegment(store, property, attributes)
  const segment = segmentOf(memory, attributes.segment)
  for (let n = 0; n < rooms; n++) {
    const entry = roomEntry(memory, property, n)
    const roomType = field(memory, entry + ROOMS.roomType)
    const table = ensureTable(store, segment, roomType, 1)
    mark(store, table)
    marked.push(table)
    const row = appendRow(store, table, property)
    setField(store, entry + ROOMS.table, table)
    setField(store, entry + ROOMS.row, row)
    for (const { day, lo, hi } of nights[n] ?? []) {
      change(context, table, ensurePlane(store, table, day), row, property, roomType, lo, hi)
    }
  }
  for (const table of marked) unmark(store, table)
}

function nightsOfRow(memory: Memory, table: number, row: number): { day: number; lo: number; hi: number }[] {
  const nights: { day: number; lo: number; hi: number }[] = []
  forEachSlot(memory, table, (_slot, plane) => {
    const cell = wordAddress(plane, row) >>> 2
    const lo = memory.u32[cell] as number
    const hi = memory.u32[cell + 1] as number
    if ((lo | hi) !== 0 && isCounted(memory, plane)) nights.push({ day: field(memory, plane + PLANE.day), lo, hi })
  })
  return nights
}

// Row order

/** Sorts the rows of one table by (type, category, stars, area, id), by the bytes of the names (performance.md §2). */
function orderRows(context: ApplyContext): void {
  const { reader, store } = context
  const { memory } = store
  const segmentStart = readName(reader)
  const segment = segmentOf(memory, findName(memory, NAMES.segment, reader.bytes, segmentStart, reader.at))
  const isPropertyTable = readU8(reader) === 1
  const roomType = readRoomType(context)
  if (segment === 0) return
  const table = isPropertyTable ? field(memory, segment + SEGMENT.propertyTable) : tableOf(memory, segment, roomType)
  if (table === 0) return
  const capacity = capacityFor(field(memory, table + TABLE.liveRows))
  // It stays as it is, which costs searches some time and nobody anything else.
  if (!promiseMemory(store, rebuildBytes(memory, table, capacity))) return fail(context, OUTCOME.refused)
  rebuildTable(store, table, sortedRows(memory, table), capacity)
  setField(store, table + TABLE.unordered, 0)
}

function sortedRows(memory: Memory, table: number): Uint32Array {
  const rows = liveRowsOf(memory, table)
  const properties = field(memory, table + TABLE.rowProperties)
  const propertyAt = (row: number) => field(memory, properties + row * 4)
  const columns = [
    { column: PROPERTY.type, ranks: ranksOf(memory, NAMES.type) },
    { column: PROPERTY.category, ranks: ranksOf(memory, NAMES.category) },
    { column: PROPERTY.stars, ranks: undefined },
    { column: PROPERTY.area, ranks: ranksOf(memory, NAMES.area) },
  ]
  return rows.sort((a, b) => {
    const left = propertyAt(a)
    const right = propertyAt(b)
    for (const { column, ranks } of columns) {
      const x = field(memory, left + column)
      const y = field(memory, right + column)
      if (x !== y) return ranks ? (ranks[x] as number) - (ranks[y] as number) : x - y
    }
    for (let i = 0; i < 16; i++) {
      const difference = (memory.u8[left + i] as number) - (memory.u8[right + i] as number)
      if (difference !== 0) return difference
    }
    return 0
  })
}

/** Place of each name in the order of the bytes. */
function ranksOf(memory: Memory, kind: NameKind): Uint32Array {
  const count = nameCount(memory, kind)
  const names = Array.from({ length: count }, (_, name) => ({ name, bytes: nameBytes(memory, kind, name).slice() }))
  names.sort((a, b) => compareBytes(a.bytes, b.bytes))
  const ranks = new Uint32Array(count)
  for (const [rank, { name }] of names.entries()) ranks[name] = rank
  return ranks
}

// Checks

/** Compares a logged digest with this replica's own at the same index; one that has none, after a start, has no say. */
function checkDigest(context: ApplyContext): void {
  const { reader, marks } = context
  const index = readF64(reader)
  const expected: Digest = { lo: readU32(reader), hi: readU32(reader) }
  const own = marks.find((mark) => mark.index === index)
  while (marks.length > 0 && (marks[0]?.index as number) <= index) marks.shift()
  if (own && (expected.lo !== own.lo || expected.hi !== own.hi)) context.onDigestMismatch(index, expected, own)
}

/** The digest computed anew from every record: what the kept sum must equal. For tests and `vacancy inspect`. */
export function recountDigest(memory: Memory): { digest: Digest; packages: number; properties: number } {
  let lo = 0
  let hi = 0
  let packages = 0
  let properties = 0
  const capacity = state(memory, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(memory, name)
    if (segment === 0) continue
    forEachProperty(memory, segment, (property) => {
      properties++
      lo = (lo + propertyDigest(memory, property, 0)) >>> 0
      hi = (hi + propertyDigest(memory, property, 1)) >>> 0
      const rooms = roomCount(memory, property)
      for (let n = 0; n < rooms; n++) {
        const entry = roomEntry(memory, property, n)
        const roomType = field(memory, entry + ROOMS.roomType)
        const low = keyOf(memory, property, roomType, 0)
        const high = keyOf(memory, property, roomType, 1)
        lo = (lo + roomHash(0, low)) >>> 0
        hi = (hi + roomHash(1, high)) >>> 0
        for (const found of nightsOfRow(memory, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row))) {
          packages++
          lo = (lo + packageHash(0, low, found.day, found.lo, found.hi)) >>> 0
          hi = (hi + packageHash(1, high, found.day, found.lo, found.hi)) >>> 0
        }
      }
    })
  }
  return { digest: { lo, hi }, packages, properties }
}

/** Tables whose rows are out of order by more than a tenth: what maintenance proposes to sort. */
export function unorderedTables(memory: Memory): { segment: number; roomType: number | undefined }[] {
  const found: { segment: number; roomType: number | undefined }[] = []
  const capacity = state(memory, STATE.segmentCapacity)
  const isUnordered = (table: number) =>
    field(memory, table + TABLE.unordered) * 10 > field(memory, table + TABLE.liveRows) &&
    field(memory, table + TABLE.unordered) > 1
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(memory, name)
    if (segment === 0) continue
    if (isUnordered(field(memory, segment + SEGMENT.propertyTable))) found.push({ segment: name, roomType: undefined })
    forEachTable(memory, segment, (table, roomType) => {
      if (isUnordered(table)) found.push({ segment: name, roomType })
    })
  }
  return found
}

assert(PROPERTY.id === 0, 'a property starts with its id')
assert(PROPERTY_TABLE > LIMITS.roomTypesPerPropertyMax, 'no room type has the number of the property table')

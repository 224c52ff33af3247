/**
 * The store as plain maps: an independent and simple implementation of the effects of committed commands. Every replica
 * is compared with it.
 *
 * Two results are taken from the first replica that applied an entry: whether there was memory for a growing command,
 * and which sessions were evicted. Both must be the same on all replicas.
 */

import { dayOf, isVisible } from '@vacancy/shared'
import { hex } from '../../engine/src/snapshot/format.ts'
import { recountDigest } from '../../engine/src/store/apply.ts'
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
} from '../../engine/src/store/command.ts'
import { nameHash, packageHash, propertyHash, roomHash, rowKey } from '../../engine/src/store/digest.ts'
import { DAY_SLOTS, SLOT, STATE } from '../../engine/src/store/layout.ts'
import { encodeSetting } from '../../engine/src/store/stay-settings.ts'
import {
  AS_OF_LEVEL,
  countsOf,
  digestOfWords,
  INDEX_LEVEL,
  LEDGER_LEVEL,
  type Memory,
  STAYS_LEVEL,
  state,
  stateDigest,
} from '../../engine/src/store/store.ts'
import { MAINTENANCE_GAP_DAYS_MAX } from '../../engine/src/store/window.ts'
import { isForgotten } from './machine.ts'
import { violate } from './oracles.ts'
import { heldSessions } from './session-model.ts'
import { baseAsOf, baseOf, clampStays, heldOn, type Night, type Rooms, sellableOn } from './stays-model.ts'
import {
  beginEntry,
  createStaysReference,
  executeStay,
  isHotel,
  ledgerDigest,
  noteFates,
  noteNew,
  type StaysReference,
} from './stays-reference.ts'

type ModelProperty = {
  readonly id: Uint8Array
  readonly segment: string
  readonly area: string
  readonly type: string
  readonly category: string
  readonly stars: number
  readonly latitude: number
  readonly longitude: number
  readonly amenities: readonly string[]
  readonly rooms: Rooms
}
type ModelResult = { readonly code: number; readonly value: number; readonly index: number }

export const MODEL_COUNTS = [
  'moved',
  'deletedProperties',
  'deletedSegments',
  'deletedRooms',
  'deletedDays',
  'droppedDays',
  'orderedTables',
  'largeTables',
  /** Requests of evicted sessions, and how many of them had taken effect before. */
  'forgotten',
  'forgottenRepeats',
  /** Absolute values of a source that knew bookings up to an index. */
  'asOf',
  /** Others that named an index of no entry: of a former life of the data, and above all of this one. */
  'formerIndexes',
  'unknownIndexes',
  /** Changes of the beginning of the day, and nights that the day went back over. */
  'dayBegins',
  'daysBack',
] as const
type ModelCounts = Record<(typeof MODEL_COUNTS)[number], number>

export type StoreModel = {
  readonly properties: Map<string, ModelProperty>
  /** Session → number → result. */
  readonly results: Map<string, Map<number, ModelResult>>
  /** The day of each calendar slot. */
  readonly slotDays: Map<number, number>
  lastMaintenanceDay: number
  /** The feature level of apply. */
  level: number
  /** Minutes after midnight UTC at which the day begins; entries before the last change may have those before it. */
  dayBegins: { readonly minutes: number; readonly index: number }[]
  /** First of the random words of the shard. */
  genesis: number
  /** What is added to indexes of the log for clients, and the first index with it. */
  indexBase: number
  indexBegin: number
  /** The content of bulk loads, by content digest. */
  readonly images: ReadonlyMap<string, StoreModel>
  readonly stays: StaysReference
  /** Counters of events, for the coverage gaps of a report. */
  readonly counts: ModelCounts
  readonly reader: CommandReader
  readonly result: { code: number; value: number; index: number }
}

/** Returned for an entry that a replica handled against the rules; no real outcome has this code. */
const IMPOSSIBLE = 255

export function createStoreModel(images: ReadonlyMap<string, StoreModel> = new Map()): StoreModel {
  const properties = new Map<string, ModelProperty>()
  return {
    properties,
    results: new Map(),
    slotDays: new Map(),
    lastMaintenanceDay: 0,
    level: 0,
    dayBegins: [{ minutes: 0, index: 0 }],
    genesis: 0,
    indexBase: 0,
    indexBegin: 0,
    images,
    stays: createStaysReference(properties),
    counts: Object.fromEntries(MODEL_COUNTS.map((name) => [name, 0])) as ModelCounts,
    reader: createCommandReader(),
    result: { code: 0, value: 0, index: 0 },
  }
}

/** A copy of a model as it begins in a restored shard: no index is one of its entries yet. Counters go on. */
export function restoredModel(model: StoreModel): StoreModel {
  const { images, counts, reader, stays, ...own } = model
  const { counts: ofStays, replies, ...ledger } = stays
  // Both have the properties.
  const copy = structuredClone({ own, ledger })
  return {
    ...copy.own,
    ...{ images, counts, reader: createCommandReader(), genesis: 0 },
    indexBegin: model.level >= INDEX_LEVEL ? Number.MAX_SAFE_INTEGER : model.indexBegin,
    stays: { ...copy.ledger, counts: ofStays, replies: new Map() },
  }
}

/** @param observed the result of the first replica; @returns the expected result */
export function applyToModel(
  model: StoreModel,
  logIndex: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  observed: ModelResult,
): ModelResult {
  const { reader, result } = model
  openCommand(reader, bytes, start, end)
  result.code = OUTCOME.done
  result.value = 0
  const index = logIndex + model.indexBase
  result.index = index
  if (reader.timeMs > 0 && !beginsIn(model, logIndex).some((minutes) => dayAt(reader.timeMs, minutes) === reader.day))
    violate('O15', `the day of entry ${logIndex} is not that of its time`)
  const { stays } = model
  const hasStays = model.level >= STAYS_LEVEL && reader.kind !== KIND.digestCheck
  if (hasStays) beginEntry(stays, reader, index)
  const expected = applyOnce(model, index, bytes, observed)
  if (hasStays) noteFates(stays, index)
  return expected
}

function applyOnce(model: StoreModel, index: number, bytes: Uint8Array, observed: ModelResult): ModelResult {
  const { reader, result } = model
  if (reader.key < 0) {
    execute(model, observed)
    return result
  }
  const session = hex(bytes.subarray(reader.key, reader.key + 16))
  const number = Number(reader.view.getBigUint64(reader.key + 16, true))
  const results = model.results.get(session) ?? new Map<number, ModelResult>()
  const earlier = results.get(number)
  if (observed.index !== index) {
    // A repeat of a stored request, or of one that is too old to be stored.
    if (isForgotten(observed.code)) return forgottenResult(model, session, number, observed.code)
    return earlier ?? { code: IMPOSSIBLE, value: 0, index: 0 }
  }
  // Number 1 opens a session: it takes effect again if the session was evicted.
  if (earlier && number > 1) return { code: IMPOSSIBLE, value: 0, index }
  execute(model, observed)
  // From feature level 1, a repeat after memory_full is executed again, since there may be memory now.
  if (result.code === OUTCOME.refused && model.level >= 1) return result
  results.set(number, { ...result })
  model.results.set(session, results)
  return result
}

/** The result of a request whose session was evicted, or that is below its window. */
function forgottenResult({ results, counts }: StoreModel, session: string, number: number, code: number): ModelResult {
  const known = results.get(session)
  if (known) counts.forgotten++
  if (known?.has(number)) counts.forgottenRepeats++
  // Number 1 opens a session: it may be below the window, but is never refused for a missing session.
  const isAllowed = number > 1 || code === OUTCOME.tooOld
  return { code: isAllowed ? code : IMPOSSIBLE, value: 0, index: 0 }
}

function execute(model: StoreModel, observed: ModelResult): void {
  const { reader, result } = model
  const refuses = observed.code === OUTCOME.refused
  switch (reader.kind) {
    case KIND.setProperty:
      return refuses ? fail(model, OUTCOME.refused) : setProperty(model)
    case KIND.setPackage:
      return setPackage(model, refuses)
    case KIND.setAvailability:
    case KIND.setAvailabilityAsOf:
    case KIND.increaseAvailability:
    case KIND.decreaseAvailability:
      return changeAvailability(model)
    case KIND.deletePackage:
      return deletePackage(model)
    case KIND.deleteDay: {
      const property = readProperty(model)
      const day = readU32(reader)
      if (!inWindow(model, day)) return
      if (!property) return fail(model, OUTCOME.unknownProperty)
      for (const nights of property.rooms.values()) nights.delete(day)
      model.counts.deletedDays++
      return
    }
    case KIND.deleteRoom: {
      const property = readProperty(model)
      const room = readText(reader)
      if (!property) return fail(model, OUTCOME.unknownProperty)
      if (property.rooms.delete(room)) model.counts.deletedRooms++
      else fail(model, OUTCOME.unknownRoomType)
      return
    }
    case KIND.deleteProperty: {
      const property = readProperty(model)
      if (!property) return fail(model, OUTCOME.unknownProperty)
      model.properties.delete(hex(property.id))
      model.counts.deletedProperties++
      return
    }
    case KIND.deleteSegment: {
      const segment = readText(reader)
      const gone = [...model.properties].filter(([, property]) => property.segment === segment)
      for (const [id] of gone) model.properties.delete(id)
      if (gone.length === 0) fail(model, OUTCOME.unknownSegment)
      else model.counts.deletedSegments++
      return
    }
    case KIND.dropBefore: {
      const day = readU32(reader)
      return dropBefore(model, day, readU8(reader))
    }
    case KIND.setTime: {
      const timeMs = readF64(reader)
      return setTime(model, timeMs)
    }
    case KIND.bookStay:
    case KIND.holdStay:
    case KIND.confirmStay:
    case KIND.releaseStay:
      return fail(model, executeStay(model.stays, reader, result.index, observed.code))
    case KIND.setting:
      return setSetting(model)
    case KIND.featureLevel:
      return raiseLevel(model)
    case KIND.genesis:
      model.genesis = readU32(reader)
      if (model.level >= INDEX_LEVEL) beginIndexes(model)
      return
    case KIND.bulkLoad:
      return load(model, hex(reader.bytes.subarray(reader.at, reader.at + CONTENT_DIGEST_BYTES)))
    default: {
      // Settings, digests and row order change no record.
      result.code = observed.code
      result.value = observed.value
      const ordersRows = reader.kind === KIND.orderRows || reader.kind === KIND.swapRows
      if (ordersRows && observed.code === OUTCOME.done) model.counts.orderedTables++
    }
  }
}

function raiseLevel(model: StoreModel): void {
  const { level, reader, result, stays } = model
  model.level = Math.max(level, readU32(reader))
  if (level < INDEX_LEVEL && model.level >= INDEX_LEVEL) beginIndexes(model)
  if (level >= STAYS_LEVEL && level < AS_OF_LEVEL && model.level >= AS_OF_LEVEL) stays.model.knownFrom = result.index
}

/** The entry begins another life of the data, at its time in microseconds, or above all indexes when that went back. */
function beginIndexes(model: StoreModel): void {
  const { reader, result, genesis } = model
  const known = result.index
  const nowUs = reader.timeMs * 1000
  model.indexBegin = nowUs > known ? nowUs : known + Math.floor((genesis / 2 ** 32) * 2 ** 40)
  model.indexBase += model.indexBegin - known
  result.index = model.indexBegin
}

/** What is refused of an index that a source names. */
function faultOf({ level, indexBegin, result }: StoreModel, asOf: number | undefined): number {
  if (asOf === undefined || asOf === 0 || level < INDEX_LEVEL) return OUTCOME.done
  if (asOf >= result.index) return OUTCOME.unknownIndex
  return asOf < indexBegin ? OUTCOME.updateTooOld : OUTCOME.done
}

/** Of the settings, only these change what a command does. */
function setSetting(model: StoreModel): void {
  const { reader, stays, counts } = model
  const key = readU8(reader)
  const value = readU32(reader)
  if (key === encodeSetting('stays_bytes', 0)[0]) stays.bytesMax = value
  if (key !== encodeSetting('day_begins_minutes', 0)[0]) return
  model.dayBegins.push({ minutes: value | 0, index: model.result.index - model.indexBase })
  counts.dayBegins++
  const today = dayAt(reader.timeMs, value | 0)
  // Its maintenance comes again.
  if (model.lastMaintenanceDay > today) counts.daysBack++
  model.lastMaintenanceDay = Math.min(model.lastMaintenanceDay, today)
}

/** A leader gives entries the day as of what it has applied, which is not further behind than this. */
const UNAPPLIED_MAX = 1_000

/** Beginnings of the day that an entry may have been given with. */
function beginsIn({ dayBegins }: StoreModel, index: number): number[] {
  const last = dayBegins.findLastIndex((begin) => begin.index < index - UNAPPLIED_MAX)
  return dayBegins.slice(Math.max(0, last)).map(({ minutes }) => minutes)
}

function dayAt(timeMs: number, begins: number): number {
  return dayOf(timeMs - begins * 60_000)
}

function fail({ result }: StoreModel, code: number, value = 0): void {
  result.code = code
  result.value = value
}

const decoder = new TextDecoder()

function readText(reader: CommandReader): string {
  const start = readName(reader)
  return decoder.decode(reader.bytes.subarray(start, reader.at))
}

function readId(reader: CommandReader): Uint8Array {
  const start = readBytes(reader, 16)
  return reader.bytes.slice(start, start + 16)
}

function readProperty({ properties, reader }: StoreModel): ModelProperty | undefined {
  return properties.get(hex(readId(reader)))
}

function inWindow(model: StoreModel, day: number): boolean {
  const isIn = isVisible(day, model.reader.day) && day >= model.stays.model.droppedBefore
  if (!isIn) fail(model, OUTCOME.outsideWindow)
  return isIn
}

function setProperty({ reader, properties, counts, stays }: StoreModel): void {
  const id = readId(reader)
  const stars = readU8(reader)
  const latitude = readF64(reader)
  const longitude = readF64(reader)
  const [segment, area, type, category] = [readText(reader), readText(reader), readText(reader), readText(reader)]
  const amenities = Array.from({ length: readU8(reader) }, () => readText(reader))
  const before = properties.get(hex(id))
  if (before && before.segment !== segment) counts.moved++
  if (!before) noteNew(stays, hex(id))
  const rooms: Rooms = before?.rooms ?? new Map()
  properties.set(hex(id), { id, segment, area, type, category, stars, latitude, longitude, amenities, rooms })
}

function setPackage(model: StoreModel, refuses: boolean): void {
  const { reader } = model
  const property = readProperty(model)
  const day = readU32(reader)
  const given = readU8(reader)
  const availability = readU8(reader)
  const price = readU32(reader)
  const features = readU32(reader)
  const room = readText(reader)
  if (!inWindow(model, day)) return
  if (!property) return fail(model, OUTCOME.unknownProperty)
  if (refuses) return fail(model, OUTCOME.refused)
  const nights = property.rooms.get(room) ?? new Map<number, Night>()
  property.rooms.set(room, nights)
  const old = nights.get(day)
  const left = given & GIVEN.availability ? availability : (old?.lo ?? 0) & 0xff
  const mask = given & GIVEN.features ? features : (old?.lo ?? 0) >>> 8
  const inverted = given & GIVEN.price ? ~price >>> 0 : (old?.hi ?? 0xffffffff)
  takeSlot(model, day)
  put(nights, day, ((mask << 8) | left) >>> 0, inverted)
}

/** A zero word is not a package. */
function put(nights: Map<number, Night>, day: number, lo: number, hi: number): void {
  if ((lo | hi) === 0) nights.delete(day)
  else nights.set(day, { lo, hi })
}

/** The calendar has a slot for each day of the window. Data of an earlier day in the slot is removed. */
function takeSlot(model: StoreModel, day: number): void {
  const held = model.slotDays.get(day % DAY_SLOTS)
  if (held === day) return
  if (held !== undefined) forEachNights(model, (nights) => void nights.delete(held))
  model.slotDays.set(day % DAY_SLOTS, day)
}

function forEachNights({ properties }: StoreModel, visit: (nights: Map<number, Night>) => void): void {
  for (const { rooms } of properties.values()) for (const nights of rooms.values()) visit(nights)
}

/** @returns the nights and the word of a package; undefined after recording what is missing */
function findNight(
  model: StoreModel,
  property: ModelProperty | undefined,
  room: string,
  day: number,
): { readonly nights: Map<number, Night>; readonly night: Night } | undefined {
  const nights = property?.rooms.get(room)
  const night = nights?.get(day)
  if (nights && night) return { nights, night }
  fail(model, !property ? OUTCOME.unknownProperty : !nights ? OUTCOME.unknownRoomType : OUTCOME.noPackage)
  return undefined
}

function changeAvailability(model: StoreModel): void {
  const { reader, result } = model
  const asOf = reader.kind === KIND.setAvailabilityAsOf ? readF64(reader) : undefined
  const property = readProperty(model)
  const day = readU32(reader)
  const amount = readU8(reader)
  const room = readText(reader)
  if (!inWindow(model, day)) return
  const found = findNight(model, property, room, day)
  if (!found || !property) return
  const fault = faultOf(model, asOf)
  if (fault !== OUTCOME.done) {
    model.counts[fault === OUTCOME.unknownIndex ? 'unknownIndexes' : 'formerIndexes']++
    return fail(model, fault)
  }
  const { model: stays } = model.stays
  if (asOf !== undefined && asOf < stays.knownFrom) return fail(model, OUTCOME.updateTooOld)
  const { lo, hi } = found.night
  const place = { propertyId: hex(property.id), roomType: room, day }
  const base = baseOf({ lo, hi })
  const held = heldOn(stays, place.propertyId, room, day)
  const left = Math.max(0, base - held)
  let next = asOf === undefined ? amount : baseAsOf(stays, place, amount, asOf)
  if (reader.kind === KIND.increaseAvailability) {
    next = base + amount
    if (next > 255) return fail(model, held > 0 ? OUTCOME.overflowHeld : OUTCOME.overflow, left)
  }
  if (reader.kind === KIND.decreaseAvailability) {
    next = base - amount
    if (next < held) return fail(model, OUTCOME.underflow, left)
  }
  if (asOf !== undefined) model.counts.asOf++
  put(found.nights, day, ((lo & 0xffffff00) | next) >>> 0, hi)
  result.value = Math.max(0, next - held)
}

function deletePackage(model: StoreModel): void {
  const property = readProperty(model)
  const day = readU32(model.reader)
  const room = readText(model.reader)
  if (inWindow(model, day)) findNight(model, property, room, day)?.nights.delete(day)
}

function dropBefore(model: StoreModel, day: number, gapReason: number): void {
  const last = model.lastMaintenanceDay
  if (day <= last) return
  if (last !== 0 && day - last > MAINTENANCE_GAP_DAYS_MAX && gapReason === 0) return fail(model, OUTCOME.refused)
  forget(model, day)
  model.counts.droppedDays++
  model.lastMaintenanceDay = day
  model.stays.model.droppedBefore = day
}

function forget(model: StoreModel, before: number): void {
  forEachNights(model, (nights) => {
    for (const day of nights.keys()) if (day < before) nights.delete(day)
  })
  for (const [slot, day] of model.slotDays) if (day < before) model.slotDays.delete(slot)
}

/** Nights dropped by maintenance may be written again; nights whose slot is needed are removed. */
function setTime(model: StoreModel, timeMs: number): void {
  if (model.level < 1) return fail(model, OUTCOME.refused)
  const today = dayAt(timeMs, model.dayBegins.at(-1)?.minutes ?? 0)
  const end = today + DAY_SLOTS
  const beyond = [...model.slotDays].filter(([, day]) => day >= end)
  for (const [slot, day] of beyond) {
    model.slotDays.delete(slot)
    forEachNights(model, (nights) => void nights.delete(day))
  }
  const { model: stays } = model.stays
  // Bookings of nights that reopen may be forgotten.
  if (today < stays.droppedBefore && model.level >= LEDGER_LEVEL)
    stays.knownFrom = Math.max(stays.knownFrom, model.result.index)
  model.lastMaintenanceDay = Math.min(model.lastMaintenanceDay, today)
  stays.droppedBefore = Math.min(stays.droppedBefore, today)
  clampStays(stays, timeMs)
}

function load(model: StoreModel, digest: string): void {
  const image = model.images.get(digest)
  if (!image) return fail(model, IMPOSSIBLE)
  model.properties.clear()
  model.slotDays.clear()
  for (const [id, property] of image.properties) {
    const rooms = new Map([...property.rooms].map(([room, nights]) => [room, new Map(nights)] as const))
    model.properties.set(id, { ...property, rooms })
    for (const nights of rooms.values()) for (const day of nights.keys()) model.slotDays.set(day % DAY_SLOTS, day)
  }
  const { model: stays } = model.stays
  stays.droppedBefore = Math.max(image.lastMaintenanceDay, model.lastMaintenanceDay)
  forget(model, stays.droppedBefore)
}

type Sums = { lo: number; hi: number; packages: number; properties: number }

/** Digest and number of all records. Words of hotels are what may be sold. */
function sumsOf({ properties, stays }: StoreModel): Sums {
  const sums: Sums = { lo: 0, hi: 0, packages: 0, properties: properties.size }
  const add = (hashIn: (lane: 0 | 1) => number): void => {
    sums.lo = (sums.lo + hashIn(0)) >>> 0
    sums.hi = (sums.hi + hashIn(1)) >>> 0
  }
  for (const [propertyId, property] of properties) {
    const { id, stars, latitude, longitude } = property
    add((lane) =>
      propertyHash(lane, {
        id,
        idStart: 0,
        segmentHash: hashOf(lane, property.segment),
        areaHash: hashOf(lane, property.area),
        typeHash: hashOf(lane, property.type),
        categoryHash: hashOf(lane, property.category),
        stars,
        latitude,
        longitude,
        amenityHashes: property.amenities.map((name) => hashOf(lane, name)),
      }),
    )
    for (const [room, nights] of property.rooms) {
      const keys = [rowKey(0, id, 0, hashOf(0, room)), rowKey(1, id, 0, hashOf(1, room))] as const
      add((lane) => roomHash(lane, keys[lane]))
      sums.packages += nights.size
      for (const [day, { lo, hi }] of nights) {
        const left = isHotel(propertyId) ? (sellableOn(stays.model, propertyId, room, day) as number) : lo & 0xff
        add((lane) => packageHash(lane, keys[lane], day, ((lo & 0xffffff00) | left) >>> 0, hi))
      }
    }
  }
  return sums
}

const encoder = new TextEncoder()
const hashes: readonly Map<string, number>[] = [new Map(), new Map()]

function hashOf(lane: 0 | 1, name: string): number {
  const known = hashes[lane]?.get(name)
  if (known !== undefined) return known
  const bytes = encoder.encode(name)
  const hash = nameHash(lane, bytes, 0, bytes.length)
  hashes[lane]?.set(name, hash)
  return hash
}

/** From this many rows, a table has bitmaps of several words and has grown more than once. */
const LARGE_ROWS = 300

function noteSize({ properties, counts }: StoreModel): void {
  const rows = new Map<string, number>()
  for (const { segment } of properties.values()) rows.set(segment, (rows.get(segment) ?? 0) + 1)
  if (Math.max(0, ...rows.values()) >= LARGE_ROWS) counts.largeTables++
}

/** Compares a store record by record, and with its own counters. @returns the difference as text */
export function differenceFrom(model: StoreModel, memory: Memory): string {
  noteSize(model)
  const own = sumsOf(model)
  const found = recountDigest(memory)
  const { properties, packages } = countsOf(memory)
  const held = heldPackages(memory)
  if (own.properties !== found.properties) return `${found.properties} properties, not ${own.properties}`
  if (own.packages !== found.packages) return `${found.packages} packages, not ${own.packages}`
  if (properties !== own.properties) return `it counts ${properties} properties, not ${own.properties}`
  if (packages !== own.packages) return `it counts ${packages} packages, not ${own.packages}`
  if (held !== own.packages) return `its days count ${held} packages, not ${own.packages}`
  // Other replicated state, such as settings and time, is compared between replicas.
  const words = digestOfWords(memory)
  const [lo, hi] = [(found.digest.lo - words.lo) >>> 0, (found.digest.hi - words.hi) >>> 0]
  if (own.lo !== lo || own.hi !== hi) return 'records with different content'
  const { lastMaintenanceDay } = model
  const { droppedBefore } = model.stays.model
  for (const [name, wanted] of Object.entries({ lastMaintenanceDay, droppedBefore })) {
    const day = state(memory, STATE[name as 'droppedBefore'])
    if (day !== wanted) return `its ${name} is ${day}, not ${wanted}`
  }
  const sessions = heldSessions(memory, model.results)
  if (sessions.difference !== '') return sessions.difference
  const kept = stateDigest(memory)
  const ledger = ledgerDigest(memory)
  const wanted = [found.digest.lo + sessions.lo + ledger.lo, found.digest.hi + sessions.hi + ledger.hi] as const
  const isWhole = kept.lo === wanted[0] >>> 0 && kept.hi === wanted[1] >>> 0
  return isWhole ? '' : 'the digest does not match its records, sessions and stays'
}

function heldPackages(memory: Memory): number {
  let packages = 0
  for (let slot = 0; slot < DAY_SLOTS; slot++)
    packages += state(memory, STATE.slots + slot * SLOT.cells + SLOT.packages)
  return packages
}

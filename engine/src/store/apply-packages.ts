/** Package commands: one night of one room type, and all nights of a property's date. */

import { assert, LIMITS } from '@vacancy/shared'
import {
  type ApplyContext,
  addRoomDigest,
  change,
  exceedsBudget,
  fail,
  forEachRoomTable,
  inWindow,
  lacksMemory,
  missing,
  readProperty,
  readRoomType,
} from './apply-context.ts'
import { baseAsOf, knownFrom } from './as-of.ts'
import { foreignIndex, oldestIndex } from './client-index.ts'
import { GIVEN, KIND, OUTCOME, readF64, readName, readU8, readU32 } from './command.ts'
import { dictionaryGrowthBytes, findName, internName, NAMES } from './dictionary.ts'
import { measurePackage } from './growth.ts'
import { PROPERTY, ROOMS } from './layout.ts'
import { debtOn, heldOn, nightOf, owePackage, sellableOf, setDebt } from './nights.ts'
import { ensurePlane, nightGrowthBytes, planeOf, wordAddress } from './planes.ts'
import { addRoom, ensureTable, findRoom, roomCount, roomEntry, segmentOf, tableOf } from './segment.ts'
import { AS_OF_LEVEL, featureLevel, LEDGER_LEVEL, type Store } from './store.ts'
import { appendRow, rowGrowthBytes } from './table.ts'
import { field } from './table-fields.ts'
import { mark, unmark } from './version.ts'

export function setPackage(context: ApplyContext): void {
  const { reader, store } = context
  const { memory } = store
  const asOf = readAsOf(context)
  const property = readProperty(context)
  const day = readU32(reader)
  const given = readU8(reader)
  const availability = readU8(reader)
  const price = readU32(reader)
  const features = readU32(reader)
  const nameStart = readName(reader)
  if (!inWindow(context, day)) return
  if (property === 0) return fail(context, OUTCOME.unknownProperty)
  if (isRefused(context, asOf)) return
  let roomType = findName(memory, NAMES.roomType, reader.bytes, nameStart, reader.at)
  let room = findRoom(memory, property, roomType)
  const isMeasured = featureLevel(memory) >= 1
  if (room === 0 && roomCount(memory, property) === LIMITS.roomTypesPerPropertyMax)
    return fail(context, OUTCOME.tooManyRoomTypes)
  let plane = room === 0 ? 0 : planeOf(memory, field(memory, room + ROOMS.table), day)
  if (isMeasured && plane === 0) {
    const { growth, largest } = measurePackage(store, reader, property, roomType, room, day, nameStart)
    if (exceedsBudget(context, growth, largest)) return
  }
  if (room === 0) {
    const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
    const growth = rowGrowthBytes(memory, tableOf(memory, segment, roomType)) + dictionaryGrowthBytes(memory, 1)
    if (!isMeasured && lacksMemory(context, growth)) return
    roomType = internName(store, NAMES.roomType, reader.bytes, nameStart, reader.at)
    room = createRoom(store, property, roomType)
  }
  const table = field(memory, room + ROOMS.table)
  if (plane === 0) {
    const isNewNight = planeOf(memory, table, day) === 0
    if (!isMeasured && isNewNight && lacksMemory(context, nightGrowthBytes(memory, table))) return
    plane = ensurePlane(store, table, day)
  }
  const row = field(memory, room + ROOMS.row)
  const cell = wordAddress(plane, row) >>> 2
  const oldLo = memory.u32[cell]
  const oldHi = memory.u32[cell + 1]
  const exists = (oldLo | oldHi) !== 0
  const setsBase = (given & GIVEN.availability) !== 0 || !exists
  const stated = given & GIVEN.availability ? availability : oldLo & 0xff
  const base = asOf === undefined ? stated : baseAsOf(store, property + PROPERTY.id, roomType, day, stated, asOf)
  const night = nightOf(store, property + PROPERTY.id, roomType, day)
  const left = night !== 0 && setsBase ? sellableOf(store, night, base) : base
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

/** The index up to which the source knows bookings; undefined for a command without one. */
function readAsOf({ reader, store }: ApplyContext): number | undefined {
  if (reader.kind !== KIND.setPackageAsOf && reader.kind !== KIND.setAvailabilityAsOf) return undefined
  assert(featureLevel(store.memory) >= AS_OF_LEVEL, 'indexes of sources are logged from their feature level on')
  return readF64(reader)
}

/**
 * Refuses a value as of an index of another life of the data, and when bookings since its index may have been dropped
 * from the ledger.
 */
function isRefused(context: ApplyContext, asOf: number | undefined): boolean {
  if (asOf === undefined) return false
  const { applied, store } = context
  const foreign = foreignIndex(store.memory, asOf, applied.index)
  const known = knownFrom(store.memory)
  const oldest = foreign === 'below' ? Math.max(known, oldestIndex(store.memory, applied.index)) : known
  if (foreign === 'above') fail(context, OUTCOME.unknownIndex, 0, `newest=${applied.index - 1}`)
  else if (asOf < oldest) fail(context, OUTCOME.updateTooOld, 0, `oldest=${oldest}`)
  else return false
  return true
}

/** The target of a command on one night; one reused object. */
const night = { property: 0, roomType: 0, table: 0, plane: 0, row: 0, lo: 0, hi: 0 }

/** Finds the package of (property, room type, day). @returns false, with the outcome set, when a part is missing */
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
  night.lo = memory.u32[cell]
  night.hi = memory.u32[cell + 1]
  return (night.lo | night.hi) !== 0 || missing(context, OUTCOME.noPackage)
}

function changeNight(context: ApplyContext, lo: number, hi: number): void {
  change(context, night.table, night.plane, night.row, night.property, night.roomType, lo, hi)
}

export function changeAvailability(context: ApplyContext): void {
  const { reader } = context
  const asOf = readAsOf(context)
  const property = readProperty(context)
  const day = readU32(reader)
  const amount = readU8(reader)
  const roomType = readRoomType(context)
  if (!inWindow(context, day) || !findNight(context, property, roomType, day) || isRefused(context, asOf)) return
  const left = night.lo & 0xff
  const { store } = context
  const holds = nightOf(store, property + PROPERTY.id, roomType, day)
  const held = heldOn(store.memory, holds)
  const debt = debtOn(store.memory, holds)
  if (reader.kind === KIND.increaseAvailability && left + held - debt + amount > LIMITS.availabilityMax) {
    const code = featureLevel(store.memory) < LEDGER_LEVEL || held === 0 ? OUTCOME.overflow : OUTCOME.overflowHeld
    const words = `availability would pass 255 with the rooms on hold: ${left} left, ${held - debt} on hold`
    return fail(context, code, left, held === 0 ? '' : words)
  }
  if (reader.kind === KIND.decreaseAvailability && left < amount) return fail(context, OUTCOME.underflow, left)
  let next = amount
  if (asOf !== undefined) next = baseAsOf(store, property + PROPERTY.id, roomType, day, amount, asOf)
  if ((reader.kind === KIND.setAvailability || asOf !== undefined) && holds !== 0) next = sellableOf(store, holds, next)
  if (reader.kind === KIND.increaseAvailability) {
    const paid = Math.min(debt, amount)
    if (paid > 0) setDebt(store, holds, debt - paid)
    next = left + amount - paid
  }
  if (reader.kind === KIND.decreaseAvailability) next = left - amount
  // docs/design/consensus.md#invariants.
  assert(next >= 0 && next <= LIMITS.availabilityMax, 'availability stays within 0 to 255')
  changeNight(context, ((night.lo & 0xffffff00) | next) >>> 0, night.hi)
  context.applied.value = next
}

export function deletePackage(context: ApplyContext): void {
  const property = readProperty(context)
  const day = readU32(context.reader)
  const roomType = readRoomType(context)
  if (!inWindow(context, day) || !findNight(context, property, roomType, day)) return
  owePackage(context.store, nightOf(context.store, property + PROPERTY.id, roomType, day))
  changeNight(context, 0, 0)
}

export function deleteDay(context: ApplyContext): void {
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
    const roomType = field(memory, entry + ROOMS.roomType)
    owePackage(store, nightOf(store, property + PROPERTY.id, roomType, day))
    change(context, table, plane, row, property, roomType, 0, 0)
  }
  forEachRoomTable(memory, property, (table) => unmark(store, table))
}

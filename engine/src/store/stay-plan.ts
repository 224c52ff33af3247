/**
 * A change of several nights at once: computed on copies first, then made as one step (docs/design/stays.md#all-or-none).
 *
 * `takeRooms` and its siblings change the copies only. After all checks, `commit` writes words and nights. Readers see
 * all of it or none: the tables are marked meanwhile.
 */

import { LIMITS } from '@vacancy/shared'
import { type ApplyContext, change } from './apply-context.ts'
import { PROPERTY, ROOMS, STATE, STAY_LINE } from './layout.ts'
import { debtOn, heldOn, nightOf, setNight } from './nights.ts'
import { planeOf, wordAddress } from './planes.ts'
import { findProperty } from './property-index.ts'
import { findRoom } from './segment.ts'
import { findStayProperty, isCurrent, lineCount, lineOf } from './stays.ts'
import { type Store, state } from './store.ts'
import { field } from './table-fields.ts'
import { mark, unmark } from './version.ts'

/** One night of one room type, as it will be. */
export type PlannedNight = {
  /** Address of the property. */
  property: number
  roomType: number
  day: number
  /** 0 without a package. */
  table: number
  plane: number
  row: number
  lo: number
  hi: number
  left: number
  held: number
  debt: number
  /** As stored, before the command. */
  heldBefore: number
  debtBefore: number
  /** Rooms left before the command took any of them. */
  offered: number
  /** Rooms that the command takes so far. */
  wanted: number
}

export type StayPlan = { readonly nights: PlannedNight[]; count: number; overflowed: number }

export function createStayPlan(): StayPlan {
  return { nights: [], count: 0, overflowed: 0 }
}

export function beginPlan(plan: StayPlan): void {
  plan.count = 0
  plan.overflowed = 0
}

/** The night of a property and room type in the plan. A command has at most 512 of them. */
export function nightIn(
  plan: StayPlan,
  store: Store,
  property: number,
  room: number,
  roomType: number,
  day: number,
): PlannedNight {
  for (let i = 0; i < plan.count; i++) {
    const known = plan.nights[i] as PlannedNight
    if (known.day === day && known.property === property && known.roomType === roomType) return known
  }
  const { memory } = store
  const isKept = day >= state(memory, STATE.droppedBefore)
  const table = room === 0 || !isKept ? 0 : field(memory, room + ROOMS.table)
  const plane = table === 0 ? 0 : planeOf(memory, table, day)
  const row = plane === 0 ? 0 : field(memory, room + ROOMS.row)
  const cell = plane === 0 ? 0 : wordAddress(plane, row) >>> 2
  const lo = plane === 0 ? 0 : memory.u32[cell]
  const hi = plane === 0 ? 0 : memory.u32[cell + 1]
  const isThere = (lo | hi) !== 0
  const night = nightOf(store, property + PROPERTY.id, roomType, day)
  const held = heldOn(memory, night)
  const debt = debtOn(memory, night)
  const found: PlannedNight = {
    property,
    roomType,
    day,
    table: isThere ? table : 0,
    plane,
    row,
    lo,
    hi,
    left: lo & 0xff,
    held,
    debt,
    heldBefore: held,
    debtBefore: debt,
    offered: 0,
    wanted: 0,
  }
  plan.nights[plan.count++] = found
  return found
}

export function hasPackage({ table }: PlannedNight): boolean {
  return table !== 0
}

/** Adds to the rooms that the command takes. @returns whether there are enough */
export function takeRooms(night: PlannedNight, rooms: number, isHold: boolean): boolean {
  if (night.wanted === 0) night.offered = night.left
  night.wanted += rooms
  if (night.left < rooms) return false
  night.left -= rooms
  if (isHold) night.held += rooms
  return true
}

/** A hold ends without a booking. */
function returnHeld(night: PlannedNight, rooms: number): void {
  const returned = Math.min(rooms, night.held)
  night.held -= returned
  payDebt(night, returned)
}

/** A booking is cancelled. */
function returnBooked(plan: StayPlan, night: PlannedNight, rooms: number): void {
  if (!hasPackage(night)) return
  const base = night.left + night.held - night.debt
  const returned = Math.min(rooms, LIMITS.availabilityMax - base)
  plan.overflowed += rooms - returned
  payDebt(night, returned)
}

function payDebt(night: PlannedNight, rooms: number): void {
  const paid = Math.min(night.debt, rooms)
  night.debt -= paid
  if (hasPackage(night)) night.left += rooms - paid
}

/** What happens to the rooms of a stay. */
export type Fate = 'release-held' | 'release-booked' | 'confirm'

/** Plans the end of a hold or booking, for the nights that are still there. */
export function planEnd(plan: StayPlan, store: Store, stay: number, fate: Fate): void {
  const { memory } = store
  for (let n = 0; n < lineCount(memory, stay); n++) {
    const line = lineOf(stay, n)
    if (!isCurrent(memory, line)) continue
    const property = findProperty(memory, memory.u8, field(memory, line))
    if (property === 0) continue
    const roomType = field(memory, line + STAY_LINE.roomType)
    const first = field(memory, line + STAY_LINE.arrival)
    const nights = memory.u8[line + STAY_LINE.nights]
    endNights(plan, store, property, roomType, first, nights, memory.u8[line + STAY_LINE.rooms], fate)
  }
}

/** The same for one line. */
export function endNights(
  plan: StayPlan,
  store: Store,
  property: number,
  roomType: number,
  first: number,
  nights: number,
  rooms: number,
  fate: Fate,
): void {
  const room = findRoom(store.memory, property, roomType)
  for (let n = 0; n < nights; n++) {
    if (first + n < state(store.memory, STATE.droppedBefore)) continue
    const night = nightIn(plan, store, property, room, roomType, first + n)
    if (fate === 'release-held') returnHeld(night, rooms)
    else if (fate === 'release-booked') returnBooked(plan, night, rooms)
    else night.held -= Math.min(night.held, rooms)
  }
}

/** Makes the planned changes, as one step for readers. The ledger has a property for each night with holds. */
export function commit(context: ApplyContext, plan: StayPlan): void {
  const { store } = context
  const { memory, writer } = store
  const tables: number[] = []
  for (let i = 0; i < plan.count; i++) {
    const { table } = plan.nights[i] as PlannedNight
    if (table !== 0 && !tables.includes(table)) tables.push(table)
  }
  for (const table of tables) mark(store, table)
  for (let i = 0; i < plan.count; i++) {
    const night = plan.nights[i] as PlannedNight
    const { table, plane, row, property, roomType, day, lo, hi, left } = night
    if (table !== 0 && left !== (lo & 0xff)) {
      change(context, table, plane, row, property, roomType, ((lo & 0xffffff00) | left) >>> 0, hi)
    }
    const debt = table === 0 ? 0 : night.debt
    if (night.held === night.heldBefore && debt === night.debtBefore) continue
    // Looked up here: a record that was removed meanwhile may have taken it along.
    const stayProperty = findStayProperty(store, memory.u8, property + PROPERTY.id)
    if (stayProperty !== 0) setNight(store, stayProperty, roomType, day, night.held, debt)
  }
  for (const table of tables) unmark(store, table)
  writer.ledger.counts.overflowed += plan.overflowed
}

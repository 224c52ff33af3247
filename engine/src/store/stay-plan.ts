/**
 * A change of several nights at once: computed on copies first, then made as one step (docs/design/stays.md#all-or-none).
 *
 * Stays that end give their rooms back to the plan, the stay of the command takes from it. After all checks `commit`
 * writes words and nights. Readers see all of it or none: the tables are marked meanwhile.
 *
 * In terms of docs/design/stays.md#holds-and-absolute-values a plan only changes `base` and `held` of a night. From
 * feature level 4 on, rooms of a stay that ends go to the one that takes its place: they pay no debt in between.
 */

import { LIMITS } from '@vacancy/shared'
import { STAY_STATE } from '@vacancy/shared/wire'
import { type ApplyContext, change } from './apply-context.ts'
import { PROPERTY, ROOMS, STATE, STAY_PROPERTY } from './layout.ts'
import { debtOn, heldOn, nightOf, setNight } from './nights.ts'
import { planeOf, wordAddress } from './planes.ts'
import { findProperty } from './property-index.ts'
import { findRoom } from './segment.ts'
import { findStayProperty, forEachNightOfLine, forEachOwnNight, lineCount, lineOf, stateOf } from './stays.ts'
import { featureLevel, LEDGER_LEVEL, type Store, state } from './store.ts'
import { field } from './table-fields.ts'
import { mark, unmark } from './version.ts'

/** One night of one room type, as it will be. */
type PlannedNight = {
  /** Address of the property; without one, of that of the ledger. Its packed id is there. */
  place: number
  /** Address of the property, 0 without one. */
  property: number
  roomType: number
  day: number
  /** 0 without a package. */
  table: number
  plane: number
  row: number
  lo: number
  hi: number
  /** What the source counts as left, less what is booked; 0 without a package. */
  base: number
  held: number
  /** As stored, before the command. */
  left: number
  heldBefore: number
  debtBefore: number
  /** Rooms of stays that end, and of one that stands until the new one is confirmed: the latter are credit. */
  given: number
  credit: number
  /** Rooms that the command takes so far. */
  wanted: number
}

/** A plan; one object, reused. */
export type StayPlan = {
  readonly nights: PlannedNight[]
  count: number
  overflowed: number
  isHold: boolean
  /** Nights before it have passed: they stay as they are. */
  today: number
}

export function createStayPlan(): StayPlan {
  return { nights: [], count: 0, overflowed: 0, isHold: false, today: 0 }
}

/** @param isHold whether the stay of the command is a hold */
export function beginPlan(plan: StayPlan, { reader }: ApplyContext, isHold: boolean): void {
  plan.count = 0
  plan.overflowed = 0
  plan.isHold = isHold
  plan.today = reader.day
}

/** Whether a night takes no part in a change any more: its data are gone or, from feature level 4 on, it has passed. */
export function isPast({ today }: StayPlan, { memory }: Store, day: number): boolean {
  return day < state(memory, STATE.droppedBefore) || (featureLevel(memory) >= LEDGER_LEVEL && day < today)
}

/**
 * The night of a property and room type in the plan. A command has at most 768 of them.
 *
 * @param place address of the property or, if it is deleted, of that of the ledger
 */
function nightIn(
  plan: StayPlan,
  store: Store,
  place: number,
  property: number,
  room: number,
  roomType: number,
  day: number,
): PlannedNight {
  for (let i = 0; i < plan.count; i++) {
    const known = plan.nights[i] as PlannedNight
    if (known.day === day && known.place === place && known.roomType === roomType) return known
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
  const night = nightOf(store, place + PROPERTY.id, roomType, day)
  const held = heldOn(memory, night)
  const debt = debtOn(memory, night)
  const left = lo & 0xff
  const found: PlannedNight = {
    ...{ place, property, roomType, day, table: isThere ? table : 0, plane, row, lo, hi },
    ...{ base: isThere ? left + held - debt : 0, held, left, heldBefore: held, debtBefore: debt },
    ...{ given: 0, credit: 0, wanted: 0 },
  }
  plan.nights[plan.count++] = found
  return found
}

function hasPackage({ table }: PlannedNight): boolean {
  return table !== 0
}

/** The night of a property of the ledger, which may be deleted. */
function nightOfStay(plan: StayPlan, store: Store, stayProperty: number, roomType: number, day: number): PlannedNight {
  const property = findProperty(store.memory, store.memory.u8, stayProperty + STAY_PROPERTY.id)
  if (property === 0) return nightIn(plan, store, stayProperty, 0, 0, roomType, day)
  return nightIn(plan, store, property, property, findRoom(store.memory, property, roomType), roomType, day)
}

// Stays that end

/** Plans the end of a hold or a booking. */
export function planEnd(plan: StayPlan, store: Store, stay: number): void {
  const { memory } = store
  if (stateOf(memory, stay) === STAY_STATE.held) {
    forEachOwnNight(memory, stay, (property, roomType, day, rooms) => {
      if (day < state(memory, STATE.droppedBefore) || isGone(store, property)) return
      releaseHeld(nightOfStay(plan, store, property, roomType, day), rooms)
    })
    return
  }
  for (let n = 0; n < lineCount(memory, stay); n++) {
    forEachNightOfLine(memory, lineOf(stay, n), (property, roomType, day, rooms) => {
      if (isPast(plan, store, day) || isGone(store, property)) return
      returnBooked(plan, store, nightOfStay(plan, store, property, roomType, day), rooms)
    })
  }
}

/** Below feature level 4 a deleted property has no nights in the ledger. */
function isGone({ memory }: Store, stayProperty: number): boolean {
  return featureLevel(memory) < LEDGER_LEVEL && findProperty(memory, memory.u8, stayProperty) === 0
}

function releaseHeld(night: PlannedNight, rooms: number): void {
  const released = Math.min(rooms, night.held)
  night.held -= released
  night.given += released
}

function returnBooked(plan: StayPlan, store: Store, night: PlannedNight, rooms: number): void {
  if (!hasPackage(night)) return
  night.base += rooms
  night.given += rooms
  // Later the stay that takes its place may need all of them.
  if (featureLevel(store.memory) < LEDGER_LEVEL) capBase(plan, night)
}

function capBase(plan: StayPlan, night: PlannedNight): void {
  const over = Math.max(0, night.base - LIMITS.availabilityMax)
  night.base -= over
  plan.overflowed += over
}

/** Plans what the lines of a booking without a record give back. @returns rooms a night */
export function planUnrecorded(
  plan: StayPlan,
  store: Store,
  property: number,
  roomType: number,
  line: { readonly arrival: number; readonly nights: number; readonly rooms: number },
): number {
  const room = findRoom(store.memory, property, roomType)
  let returned = 0
  for (let day = line.arrival; day < line.arrival + line.nights; day++) {
    if (isPast(plan, store, day)) continue
    const night = nightIn(plan, store, property, property, room, roomType, day)
    if (hasPackage(night)) returned += line.rooms
    returnBooked(plan, store, night, line.rooms)
  }
  return returned
}

/** Below feature level 4 a hold becomes a booking whatever is left. */
export function planConversion(plan: StayPlan, store: Store, stay: number): void {
  const { memory } = store
  forEachOwnNight(memory, stay, (property, roomType, day, rooms) => {
    if (day < state(memory, STATE.droppedBefore) || isGone(store, property)) return
    const night = nightOfStay(plan, store, property, roomType, day)
    const converted = Math.min(rooms, night.held)
    night.held -= converted
    if (hasPackage(night)) night.base -= converted
  })
}

/** The rooms of a stay that stands until the new one is confirmed need not be taken again. */
export function planCredit(plan: StayPlan, store: Store, stay: number): void {
  const { memory } = store
  for (let n = 0; n < lineCount(memory, stay); n++) {
    forEachNightOfLine(memory, lineOf(stay, n), (property, roomType, day, rooms) => {
      if (isPast(plan, store, day)) return
      nightOfStay(plan, store, property, roomType, day).credit += rooms
    })
  }
}

// The stay of the command

/** A night that the stay of the command names; undefined when the package is missing. */
export function nightToTake(
  plan: StayPlan,
  store: Store,
  property: number,
  room: number,
  roomType: number,
  day: number,
): PlannedNight | undefined {
  const night = nightIn(plan, store, property, property, room, roomType, day)
  return hasPackage(night) ? night : undefined
}

/** Rooms that the stay of the command may have on a night. */
export function offeredOn(plan: StayPlan, store: Store, { left, base, held, given, credit }: PlannedNight): number {
  if (featureLevel(store.memory) < LEDGER_LEVEL) return Math.max(0, base - held)
  const free = left + given + credit
  // A hold may keep what is promised already; a booking needs rooms that are there.
  return plan.isHold ? free : Math.max(0, Math.min(free, base))
}

// The whole plan

/** Makes the planned changes, as one step for readers. The ledger has a property for each night with holds. */
export function commit(context: ApplyContext, plan: StayPlan): void {
  const { store } = context
  const { memory, writer } = store
  const isOwed = featureLevel(memory) >= LEDGER_LEVEL
  const tables: number[] = []
  for (let i = 0; i < plan.count; i++) {
    const { table } = plan.nights[i] as PlannedNight
    if (table !== 0 && !tables.includes(table)) tables.push(table)
  }
  for (const table of tables) mark(store, table)
  for (let i = 0; i < plan.count; i++) {
    const night = plan.nights[i] as PlannedNight
    if (plan.isHold) night.held += Math.max(0, night.wanted - night.credit)
    else if (hasPackage(night)) night.base -= night.wanted
    capBase(plan, night)
    const { table, plane, row, place, property, roomType, day, lo, hi, base, held } = night
    const left = Math.max(0, base - held)
    if (table !== 0 && left !== (lo & 0xff)) {
      change(context, table, plane, row, property, roomType, ((lo & 0xffffff00) | left) >>> 0, hi)
    }
    const debt = table !== 0 || isOwed ? Math.max(0, held - base) : 0
    if (held === night.heldBefore && debt === night.debtBefore) continue
    // Looked up here: a record that was removed meanwhile may have taken it along.
    const stayProperty = findStayProperty(store, memory.u8, place + PROPERTY.id)
    if (stayProperty !== 0) setNight(store, stayProperty, roomType, day, held, debt)
  }
  for (const table of tables) unmark(store, table)
  writer.ledger.counts.overflowed += plan.overflowed
}

/**
 * Nights with rooms on hold, and how an absolute value of the source of record meets them
 * (docs/design/stays.md#holds-and-absolute-values).
 *
 *   base = what the source counts as left · held = rooms on hold
 *   sellable = max(0, base − held), in the word · debt = max(0, held − base), here
 *
 * A night without a package has base 0: all of its holds are debt (below feature level 4, none is). A package that is set
 * again starts from its new base and what is still held.
 */

import { touch } from './cow.ts'
import { ROOMS, STATE, STAY_LINE, STAY_NIGHT, STAY_PROPERTY } from './layout.ts'
import { keyOfNight } from './ledger.ts'
import { planeOf, wordAddress } from './planes.ts'
import { findProperty } from './property-index.ts'
import { findRoom } from './segment.ts'
import { addNightDigest, countBytes, findStayProperty, forEachHeld, forEachOwnNight, refer } from './stays.ts'
import { allocateRecord, featureLevel, LEDGER_LEVEL, type Memory, type Store, setState, state } from './store.ts'
import { field, setField } from './table-fields.ts'
import { retire } from './version.ts'

/** @returns address of a night with holds or debt, 0 when there is none */
function findNight({ writer }: Store, stayProperty: number, roomType: number, day: number): number {
  const { nights } = writer.ledger
  return nights.size === 0 || stayProperty === 0 ? 0 : (nights.get(keyOfNight(stayProperty, roomType, day)) ?? 0)
}

/** The same by the packed id of the property. Costs a comparison while nothing is held. */
export function nightOf(store: Store, id: number, roomType: number, day: number): number {
  if (store.writer.ledger.nights.size === 0) return 0
  return findNight(store, findStayProperty(store, store.memory.u8, id), roomType, day)
}

export function heldOn({ u8 }: Memory, night: number): number {
  return night === 0 ? 0 : u8[night + STAY_NIGHT.held]
}

export function debtOn({ u8 }: Memory, night: number): number {
  return night === 0 ? 0 : u8[night + STAY_NIGHT.debt]
}

/** Sets what is held and missing on a night. A night without either has no record. */
export function setNight(
  store: Store,
  stayProperty: number,
  roomType: number,
  day: number,
  held: number,
  debt: number,
): void {
  const { memory, writer } = store
  const found = findNight(store, stayProperty, roomType, day)
  if (found === 0 && held === 0 && debt === 0) return
  const night = found === 0 ? createNight(store, stayProperty, roomType, day) : found
  if (found !== 0) addNightDigest(store, night, -1)
  if (debt > 0) writer.ledger.oversold.add(night)
  else writer.ledger.oversold.delete(night)
  touch(store, night, STAY_NIGHT.bytes)
  memory.u8[night + STAY_NIGHT.held] = held
  memory.u8[night + STAY_NIGHT.debt] = debt
  if (held === 0 && debt === 0) freeNight(store, night)
  else addNightDigest(store, night, 1)
}

/** Sets the debt of a known night. */
export function setDebt(store: Store, night: number, debt: number): void {
  const { memory } = store
  if (night === 0 || debtOn(memory, night) === debt) return
  const roomType = field(memory, night + STAY_NIGHT.roomType)
  setNight(store, field(memory, night), roomType, field(memory, night + STAY_NIGHT.day), heldOn(memory, night), debt)
}

/** The package of a night is gone: what is held there is missing. */
export function owePackage(store: Store, night: number): void {
  setDebt(store, night, featureLevel(store.memory) < LEDGER_LEVEL ? 0 : heldOn(store.memory, night))
}

/** What is sellable when the source counts `base` rooms as left; the rest of the holds becomes debt. */
export function sellableOf(store: Store, night: number, base: number): number {
  const held = heldOn(store.memory, night)
  setDebt(store, night, Math.max(0, held - base))
  return Math.max(0, base - held)
}

function createNight(store: Store, stayProperty: number, roomType: number, day: number): number {
  const { memory, writer } = store
  const night = allocateRecord(store, STAY_NIGHT.bytes)
  touch(store, night, STAY_NIGHT.bytes)
  const cell = night >>> 2
  memory.u32[cell] = stayProperty
  memory.u32[cell + STAY_NIGHT.roomType / 4] = roomType
  memory.u32[cell + STAY_NIGHT.day / 4] = day
  const head = state(memory, STATE.nightHead)
  memory.u32[cell + STAY_NIGHT.next / 4] = head
  if (head !== 0) setField(store, head + STAY_NIGHT.previous, night)
  setState(store, STATE.nightHead, night)
  writer.ledger.nights.set(keyOfNight(stayProperty, roomType, day), night)
  refer(store, stayProperty, 1)
  countBytes(store, STAY_NIGHT.bytes)
  return night
}

/** Frees a night that is not in the digest. */
function freeNight(store: Store, night: number): void {
  const { memory, writer } = store
  const property = field(memory, night)
  const previous = field(memory, night + STAY_NIGHT.previous)
  const next = field(memory, night + STAY_NIGHT.next)
  if (previous === 0) setState(store, STATE.nightHead, next)
  else setField(store, previous + STAY_NIGHT.next, next)
  if (next !== 0) setField(store, next + STAY_NIGHT.previous, previous)
  const day = field(memory, night + STAY_NIGHT.day)
  writer.ledger.nights.delete(keyOfNight(property, field(memory, night + STAY_NIGHT.roomType), day))
  countBytes(store, -STAY_NIGHT.bytes)
  retire(store, false, night, STAY_NIGHT.bytes)
  refer(store, property, -1)
}

export type NightPackage = {
  readonly property: number
  readonly roomType: number
  readonly table: number
  readonly plane: number
  readonly row: number
  readonly lo: number
  readonly hi: number
  readonly left: number
}

/** The package of a night of the ledger; undefined without one. */
export function packageOfNight({ memory }: Store, night: number): NightPackage | undefined {
  const property = findProperty(memory, memory.u8, field(memory, night))
  const roomType = field(memory, night + STAY_NIGHT.roomType)
  const room = property === 0 ? 0 : findRoom(memory, property, roomType)
  const day = field(memory, night + STAY_NIGHT.day)
  if (room === 0 || day < state(memory, STATE.droppedBefore)) return undefined
  const table = field(memory, room + ROOMS.table)
  const plane = planeOf(memory, table, day)
  if (plane === 0) return undefined
  const row = field(memory, room + ROOMS.row)
  const cell = wordAddress(plane, row) >>> 2
  const [lo, hi] = [memory.u32[cell], memory.u32[cell + 1]]
  return (lo | hi) === 0 ? undefined : { property, roomType, table, plane, row, lo, hi, left: lo & 0xff }
}

export function removeNight(store: Store, night: number): void {
  const { memory } = store
  const roomType = field(memory, night + STAY_NIGHT.roomType)
  setNight(store, field(memory, night), roomType, field(memory, night + STAY_NIGHT.day), 0, 0)
}

export function forEachNight(memory: Memory, visit: (night: number, day: number) => void): void {
  for (let night = state(memory, STATE.nightHead); night !== 0; ) {
    const next = field(memory, night + STAY_NIGHT.next)
    visit(night, field(memory, night + STAY_NIGHT.day))
    night = next
  }
}

/** Forgets what is held on nights that pass. */
export function dropNightsBefore(store: Store, end: number): void {
  forEachNight(store.memory, (night, day) => {
    if (day < end) removeNight(store, night)
  })
}

/** Shard time was set back: dropped nights are for sale again, less the rooms that are still on hold. */
export function holdReopenedNights(store: Store, from: number, end: number): void {
  const { memory } = store
  forEachHeld(memory, (stay) => {
    forEachOwnNight(memory, stay, (property, roomType, day, rooms) => {
      if (day < from || day >= end) return
      setNight(store, property, roomType, day, heldOn(memory, findNight(store, property, roomType, day)) + rooms, 0)
      owePackage(store, findNight(store, property, roomType, day))
    })
  })
}

/** The packages of these nights are gone. */
export function oweNightsFrom(store: Store, from: number): void {
  forEachNight(store.memory, (night, day) => {
    if (day >= from) owePackage(store, night)
  })
}

/** Visits the held nights of a property, by the lines of its stays. A night may come more than once. */
function forEachNightOf(store: Store, stayProperty: number, visit: (night: number, roomType: number) => void): void {
  const { memory } = store
  for (let line = field(memory, stayProperty + STAY_PROPERTY.firstLine); line !== 0; ) {
    const next = field(memory, line + STAY_LINE.next)
    const roomType = field(memory, line + STAY_LINE.roomType)
    const arrival = field(memory, line + STAY_LINE.arrival)
    for (let n = 0; n < memory.u8[line + STAY_LINE.nights]; n++) {
      const night = findNight(store, stayProperty, roomType, arrival + n)
      if (night !== 0) visit(night, roomType)
    }
    line = next
  }
}

/** The packages of a room type are gone, or of all of them. */
export function oweNightsOf(store: Store, stayProperty: number, roomType?: number): void {
  forEachNightOf(store, stayProperty, (night, ofRoomType) => {
    if (roomType === undefined || ofRoomType === roomType) owePackage(store, night)
  })
}

/** The nights of a property that was deleted, below feature level 4. */
export function removeNightsOf(store: Store, stayProperty: number): void {
  forEachNightOf(store, stayProperty, (night) => removeNight(store, night))
}

/**
 * Absolute values of a source that knows the bookings up to an index of the log (docs/design/stays.md#as-of). What was
 * booked and cancelled since then is taken from the ledger, so that a late value puts no sold room back on sale.
 */

import { STAY_STATE } from '@vacancy/shared/wire'
import { STATE, STAY, STAY_LINE, STAY_PROPERTY } from './layout.ts'
import { departureOf, findStayProperty, isCurrent, moment, stateOf } from './stays.ts'
import {
  AS_OF_LEVEL,
  featureLevel,
  LEDGER_LEVEL,
  type Memory,
  STAYS_LEVEL,
  type Store,
  setState,
  state,
} from './store.ts'
import { field } from './table-fields.ts'

/** Bookings and cancellations after this index are all in the ledger; 0 while nothing was dropped from it. */
export function knownFrom(memory: Memory): number {
  return state(memory, STATE.knownFromHigh) * 2 ** 32 + state(memory, STATE.knownFromLow)
}

function setKnownFrom(store: Store, index: number): void {
  setState(store, STATE.knownFromLow, index % 2 ** 32)
  setState(store, STATE.knownFromHigh, Math.floor(index / 2 ** 32))
}

/** The step to the level: a shard that had stays before has dropped some of them without a note. */
export function enterAsOf(store: Store, index: number): void {
  const level = featureLevel(store.memory)
  if (level >= STAYS_LEVEL && level < AS_OF_LEVEL) setKnownFrom(store, index)
}

/** A settled stay is about to be dropped. Below feature level 4 nights that have passed count, too. */
export function noteDropped(store: Store, stay: number): void {
  const { memory } = store
  const level = featureLevel(memory)
  if (level < AS_OF_LEVEL || !changedRooms(memory, stay)) return
  if (level >= LEDGER_LEVEL && departureOf(memory, stay) <= state(memory, STATE.droppedBefore)) return
  setKnownFrom(store, Math.max(knownFrom(memory), moment(memory, stay, STAY.index)))
}

/** Shard time was set back, and nights reopen: their bookings may have been dropped without a note. */
export function noteReopened(store: Store, index: number): void {
  if (featureLevel(store.memory) >= LEDGER_LEVEL) setKnownFrom(store, Math.max(knownFrom(store.memory), index))
}

/** Whether rooms were booked, or given back, as the source counts them: holds are no bookings. */
function changedRooms(memory: Memory, stay: number): boolean {
  const isRelease = stateOf(memory, stay) === STAY_STATE.released
  return moment(memory, stay, STAY.bookedIndex) > 0 || (isRelease && isOfForgotten(memory, stay))
}

/** Whether the record is of a booking that was dropped, and released by its lines later. */
function isOfForgotten(memory: Memory, stay: number): boolean {
  return moment(memory, stay, STAY.bookedIndex) === 0 && moment(memory, stay, STAY.heldSinceMs) === 0
}

/**
 * Rooms left now of a night, when the source counts `value` and knows the bookings up to `index`.
 *
 * @param id address of the packed id of the property
 * @returns 0 to 255
 */
export function baseAsOf(
  store: Store,
  id: number,
  roomType: number,
  day: number,
  value: number,
  index: number,
): number {
  const { memory } = store
  const property = findStayProperty(store, memory.u8, id)
  let base = value
  for (let line = property === 0 ? 0 : field(memory, property + STAY_PROPERTY.firstLine); line !== 0; ) {
    const arrival = field(memory, line + STAY_LINE.arrival)
    const isOfNight = day >= arrival && day < arrival + memory.u8[line + STAY_LINE.nights]
    if (isOfNight && field(memory, line + STAY_LINE.roomType) === roomType && isCurrent(memory, line))
      base += changeSince(memory, line, index) * memory.u8[line + STAY_LINE.rooms]
    line = field(memory, line + STAY_LINE.next)
  }
  return Math.min(255, Math.max(0, base))
}

/** What the stay of a line has done to the rooms after the index: −1 taken, 1 given back, 0 neither. */
function changeSince(memory: Memory, line: number, index: number): -1 | 0 | 1 {
  const stay = field(memory, line + STAY_LINE.stay)
  const bookedIndex = moment(memory, stay, STAY.bookedIndex)
  switch (stateOf(memory, stay)) {
    case STAY_STATE.booked:
      return bookedIndex > index ? -1 : 0
    case STAY_STATE.released: {
      const isKnown = bookedIndex > 0 ? bookedIndex <= index : isOfForgotten(memory, stay)
      return isKnown && moment(memory, stay, STAY.index) > index ? 1 : 0
    }
    default:
      return 0
  }
}

/**
 * One night of a property as it is now, and the stays that the ledger remembers of it: what its history is derived from
 * (docs/design/storage.md#history-of-a-night). Read by the replica thread, between two entries.
 */

import { STAY_STATES, type StayState } from '@vacancy/shared/wire'
import { knownFrom } from './as-of.ts'
import { oldestIndex } from './client-index.ts'
import { NAMES, nameText } from './dictionary.ts'
import { PROPERTY, ROOMS, STATE, STAY, STAY_LINE, STAY_PROPERTY } from './layout.ts'
import { debtOn, heldOn, nightOf } from './nights.ts'
import { planeOf, wordAddress } from './planes.ts'
import { findProperty } from './property-index.ts'
import { roomCount, roomEntry } from './segment.ts'
import { staySetting } from './stay-settings.ts'
import { creditCount, findStayProperty, KEPT_MS, moment, stateOf } from './stays.ts'
import { featureLevel, indexBase, LEDGER_LEVEL, latestTime, type Store, state } from './store.ts'
import { field } from './table-fields.ts'

/** Stays of one night. A night has at most 255 rooms, but any number of stays that have ended. */
const STAYS_MAX = 1_000
/** Share of `stays_bytes` from which on records may have been forgotten before their time. */
const FULL_SHARE = 0.9

export type NightStay = {
  /** Hexadecimal, of the packed id. */
  readonly stay: string
  readonly state: StayState
  /** Index and time at which it reached its state, and index of its booking, as in the log; 0 for none. */
  readonly index: number
  readonly timeMs: number
  readonly bookedIndex: number
  /** When it was held first; 0 if it never was. */
  readonly heldSinceMs: number
  readonly source: string
  /** Held for a change of another stay: what it took itself may be less than its rooms. */
  readonly isChange: boolean
  /** Rooms on this night by room type. */
  readonly rooms: ReadonlyMap<string, number>
}

export type NightNow = {
  /** The state is that after this entry of the log. */
  readonly index: number
  /** What an index has more for clients than in the log. */
  readonly indexBase: number
  readonly timeMs: number
  /** '' without the property. */
  readonly segment: string
  /** Room types of the property; `left` is negative for rooms on hold that are missing. */
  readonly rooms: readonly {
    readonly room: string
    /** Undefined without a package. */
    readonly price: number | undefined
    readonly left: number
    readonly held: number
  }[]
  readonly stays: readonly NightStay[]
  /** Bookings after this index, and since this time all stays, are in the ledger. Infinite when that is not known. */
  readonly knownFrom: { readonly index: number; readonly timeMs: number }
  /** The oldest index, as clients see it, that a source may name in "as of". */
  readonly asOfFrom: number
}

/** @param id packed */
export function nightNow(store: Store, index: number, id: Uint8Array, day: number): NightNow {
  const { memory } = store
  const property = findProperty(memory, id, 0)
  const stays = staysOf(store, id, day)
  return {
    index,
    indexBase: indexBase(memory),
    timeMs: latestTime(memory),
    segment: property === 0 ? '' : nameText(memory, NAMES.segment, field(memory, property + PROPERTY.segment)),
    rooms: property === 0 ? [] : roomsOf(store, property, day),
    stays: stays.slice(0, STAYS_MAX),
    knownFrom: knownSince(store, stays.length > STAYS_MAX, day),
    asOfFrom: Math.max(knownFrom(memory), oldestIndex(memory, Number.MAX_SAFE_INTEGER)),
  }
}

function roomsOf(store: Store, property: number, day: number): NightNow['rooms'] {
  const { memory } = store
  return Array.from({ length: roomCount(memory, property) }, (_, n) => {
    const entry = roomEntry(memory, property, n)
    const roomType = field(memory, entry + ROOMS.roomType)
    const night = nightOf(store, property + PROPERTY.id, roomType, day)
    const plane =
      day < state(memory, STATE.droppedBefore) ? 0 : planeOf(memory, field(memory, entry + ROOMS.table), day)
    const cell = plane === 0 ? 0 : wordAddress(plane, field(memory, entry + ROOMS.row)) >>> 2
    const [lo, hi] = plane === 0 ? [0, 0] : [memory.u32[cell] as number, memory.u32[cell + 1] as number]
    return {
      room: nameText(memory, NAMES.roomType, roomType),
      price: (lo | hi) === 0 ? undefined : ~hi >>> 0,
      left: (lo & 0xff) - debtOn(memory, night),
      held: heldOn(memory, night),
    }
  })
}

/** Newest first. */
function staysOf(store: Store, id: Uint8Array, day: number): NightStay[] {
  const { memory } = store
  const property = findStayProperty(store, id, 0)
  const found = new Map<number, Map<string, number>>()
  for (let line = property === 0 ? 0 : field(memory, property + STAY_PROPERTY.firstLine); line !== 0; ) {
    const arrival = field(memory, line + STAY_LINE.arrival)
    if (day >= arrival && day < arrival + (memory.u8[line + STAY_LINE.nights] as number)) {
      const stay = field(memory, line + STAY_LINE.stay)
      const room = nameText(memory, NAMES.roomType, field(memory, line + STAY_LINE.roomType))
      const rooms = found.get(stay) ?? new Map<string, number>()
      found.set(stay, rooms.set(room, (rooms.get(room) ?? 0) + (memory.u8[line + STAY_LINE.rooms] as number)))
    }
    line = field(memory, line + STAY_LINE.next)
  }
  return [...found]
    .sort(([a], [b]) => moment(memory, b, STAY.index) - moment(memory, a, STAY.index))
    .map(([stay, rooms]) => stayOf(store, stay, rooms))
}

function stayOf({ memory }: Store, stay: number, rooms: ReadonlyMap<string, number>): NightStay {
  const sourceAt = stay + STAY.source
  const base = indexBase(memory)
  const inLog = (cell: number): number => Math.max(0, moment(memory, stay, cell) - base)
  return {
    stay: Array.from(memory.u8.subarray(stay, stay + 16), (byte) => byte.toString(16).padStart(2, '0')).join(''),
    state: STAY_STATES[stateOf(memory, stay) - 1] as StayState,
    index: inLog(STAY.index),
    timeMs: moment(memory, stay, STAY.timeMs),
    bookedIndex: inLog(STAY.bookedIndex),
    heldSinceMs: moment(memory, stay, STAY.heldSinceMs),
    source: new TextDecoder().decode(
      memory.u8.slice(sourceAt, sourceAt + (memory.u8[stay + STAY.sourceBytes] as number)),
    ),
    isChange: creditCount(memory, stay) > 0,
    rooms,
  }
}

/** From when on the ledger has every stay of the night. */
function knownSince(store: Store, isCut: boolean, day: number): NightNow['knownFrom'] {
  const { memory, writer } = store
  const { evicted } = writer.ledger.counts
  const isFull = writer.ledger.bytes > staySetting(memory, 'stays_bytes') * FULL_SHARE
  const isKnown = !isCut && featureLevel(memory) >= LEDGER_LEVEL && day >= state(memory, STATE.droppedBefore)
  const isWhole = isKnown && evicted.ended + evicted.booked === 0 && !isFull
  return {
    index: isKnown ? Math.max(0, knownFrom(memory) - indexBase(memory)) : Number.POSITIVE_INFINITY,
    timeMs: isWhole ? latestTime(memory) - KEPT_MS : Number.POSITIVE_INFINITY,
  }
}

/**
 * How long settled stays are remembered (docs/design/stays.md#how-long-a-stay-is-remembered): until 72 h after their last
 * night, or after they ended. When bytes run out, those go first that have ended; bookings of nights to come go last.
 */

import { STAY_STATE } from '@vacancy/shared/wire'
import type { ApplyContext } from './apply-context.ts'
import { noteDropped } from './as-of.ts'
import { FORGET_SLOTS, STATE, STAY } from './layout.ts'
import { staySetting } from './stay-settings.ts'
import {
  departureOf,
  findInDays,
  forgetDayOf,
  forgetHead,
  KEPT_MS,
  lineCount,
  moment,
  removeStay,
  stateOf,
  stayBytes,
} from './stays.ts'
import { featureLevel, LEDGER_LEVEL, type Memory, type Store, state } from './store.ts'
import { field } from './table-fields.ts'

const DAY_MS = 86_400_000
/** How long a settled stay is remembered at least when bytes run out. */
const KEPT_MS_MIN = 3_600_000
/** Stays that one entry forgets. */
const FORGOTTEN_OF_ENTRY = 256

/** What an entry does before its own command: stays whose time is over are forgotten. */
export function forgetDue({ store, reader }: ApplyContext): void {
  const { memory, writer } = store
  if (featureLevel(memory) < LEDGER_LEVEL) return forgetOld(store, reader.timeMs)
  const { ledger } = writer
  const today = Math.floor(reader.timeMs / DAY_MS)
  let left = FORGOTTEN_OF_ENTRY
  for (let day = Math.max(ledger.forgetFrom, today + 1 - FORGET_SLOTS); day <= today; day++) {
    for (const days of [STATE.endedDays, STATE.bookedDays]) {
      const head = forgetHead(days, day)
      for (let first = state(memory, head); first !== 0 && forgetDayOf(memory, first) <= today; ) {
        if (left-- === 0) return
        drop(store, first)
        first = state(memory, head)
      }
    }
    ledger.forgetFrom = day + 1
  }
}

/** Below feature level 4: 72 h after a stay reached its state. */
function forgetOld(store: Store, timeMs: number): void {
  for (let n = 0; n < FORGOTTEN_OF_ENTRY; n++) {
    const oldest = state(store.memory, STATE.settledHead)
    if (oldest === 0 || moment(store.memory, oldest, STAY.timeMs) > timeMs - KEPT_MS) return
    drop(store, oldest)
  }
}

function drop(store: Store, stay: number): void {
  noteDropped(store, stay)
  removeStay(store, stay)
}

/** A stay was added: when bytes run out, others are forgotten before their time. */
export function makeRoom(store: Store, timeMs: number): void {
  const { memory, writer } = store
  const { ledger } = writer
  const limit = staySetting(memory, 'stays_bytes')
  while (ledger.bytes > limit) {
    const next = nextToForget(memory, timeMs)
    if (next === 0) return
    const isBooked = stateOf(memory, next) === STAY_STATE.booked && departureOf(memory, next) * DAY_MS > timeMs
    ledger.counts.evicted[isBooked ? 'booked' : 'ended']++
    ledger.counts.evictedAtMs = timeMs
    drop(store, next)
  }
}

/** The settled stay that goes next when bytes run out; 0 for none. Those of the last hour never go. */
function nextToForget(memory: Memory, timeMs: number): number {
  const isOld = (stay: number) => moment(memory, stay, STAY.timeMs) <= timeMs - KEPT_MS_MIN
  if (featureLevel(memory) < LEDGER_LEVEL) {
    const oldest = state(memory, STATE.settledHead)
    return oldest !== 0 && isOld(oldest) ? oldest : 0
  }
  const ended = findInDays(memory, STATE.endedDays, isOld)
  const booked = findInDays(memory, STATE.bookedDays, isOld)
  if (ended === 0 || booked === 0) return ended || booked
  // A booking whose nights have passed has ended, too.
  const hasDeparted = departureOf(memory, booked) * DAY_MS <= timeMs
  return hasDeparted && forgetDayOf(memory, booked) <= forgetDayOf(memory, ended) ? booked : ended
}

// Admission by the leader, before a command is in any log

/** Share of `stays_bytes` that stays which cannot go may take. */
const BUSY_SHARE = 0.9

/** Whether there is room for another stay, or room can be made. */
export function hasStayRoom(store: Store, timeMs: number): boolean {
  const { memory, writer } = store
  const limit = staySetting(memory, 'stays_bytes') * BUSY_SHARE
  let { bytes } = writer.ledger
  if (bytes < limit) return true
  if (featureLevel(memory) >= LEDGER_LEVEL) return nextToForget(memory, timeMs) !== 0
  for (let stay = state(memory, STATE.settledHead); bytes >= limit && stay !== 0; ) {
    if (moment(memory, stay, STAY.timeMs) > timeMs - KEPT_MS_MIN) return false
    bytes -= stayBytes(lineCount(memory, stay))
    stay = field(memory, stay + STAY.next)
  }
  return bytes < limit
}

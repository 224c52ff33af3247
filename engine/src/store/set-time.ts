/**
 * Sets shard time on request of an operator. It also corrects what a wrong clock moved too far ahead: the day up to
 * which maintenance dropped nights, the last use of sessions, and nights so far ahead that the ring of days cannot
 * hold them beside the present ones. Depends only on state and command.
 */

import { noteReopened } from './as-of.ts'
import { dayAt } from './day.ts'
import { DAY_SLOTS, SET_TIME, SLOT, STATE } from './layout.ts'
import { holdReopenedNights } from './nights.ts'
import { clampSessions } from './sessions.ts'
import { clampHolds, clampSettled } from './stays.ts'
import { type Memory, type Store, setState, state } from './store.ts'
import { dropFrom, freeUncounted } from './window.ts'

/** The effect of a new time on the nights. In days; `end`s are exclusive. */
export type SetTimeEffects = {
  /** Nights that maintenance dropped as past. They reopen for sale and need a new import; undefined if none. */
  readonly importNights: { readonly from: number; readonly end: number } | undefined
  /** Nights from this one on are dropped, because they collide with present ones; undefined if none. */
  readonly droppedFrom: number | undefined
}

export function effectsOfSetTime(memory: Memory, timeMs: number): SetTimeEffects {
  const today = dayAt(memory, timeMs)
  const dropped = state(memory, STATE.droppedBefore)
  const end = today + DAY_SLOTS
  let droppedFrom: number | undefined
  for (let i = 0; i < DAY_SLOTS; i++) {
    const slot = STATE.slots + i * SLOT.cells
    const day = state(memory, slot + SLOT.day)
    // Without packages a slot may keep the day of removed nights, which snapshots omit.
    if (day >= end && state(memory, slot + SLOT.packages) > 0) droppedFrom = Math.min(droppedFrom ?? day, day)
  }
  return { importNights: today < dropped ? { from: today, end: dropped } : undefined, droppedFrom }
}

/** Everything except the time itself (apply.ts), which was `fromMs`. @param index of the entry in the log */
export function setTime(store: Store, index: number, fromMs: number, toMs: number): void {
  const { memory } = store
  const { importNights, droppedFrom } = effectsOfSetTime(memory, toMs)
  const today = dayAt(memory, toMs)
  // Each replica sweeps dropped nights at its own pace, so all of them must be freed here.
  if (!dropFrom(store, today + DAY_SLOTS) && importNights) freeUncounted(store)
  if (state(memory, STATE.lastMaintenanceDay) > today) setState(store, STATE.lastMaintenanceDay, today)
  if (importNights) {
    setState(store, STATE.droppedBefore, today)
    holdReopenedNights(store, importNights.from, importNights.end)
    noteReopened(store, index)
  }
  clampSessions(store, toMs)
  clampHolds(store, toMs)
  clampSettled(store, toMs)
  noteSetTime(store, fromMs, toMs, { importNights, droppedFrom })
}

function noteSetTime(
  store: Store,
  fromMs: number,
  toMs: number,
  { importNights, droppedFrom = 0 }: SetTimeEffects,
): void {
  const set = (cell: number, value: number) => setState(store, STATE.setTime + cell, value)
  set(SET_TIME.count, state(store.memory, STATE.setTime + SET_TIME.count) + 1)
  set(SET_TIME.fromLow, fromMs % 2 ** 32)
  set(SET_TIME.fromHigh, Math.floor(fromMs / 2 ** 32))
  set(SET_TIME.toLow, toMs % 2 ** 32)
  set(SET_TIME.toHigh, Math.floor(toMs / 2 ** 32))
  set(SET_TIME.importFrom, importNights?.from ?? 0)
  set(SET_TIME.importBefore, importNights?.end ?? 0)
  set(SET_TIME.droppedFrom, droppedFrom)
}

/** The last time an operator set shard time. */
export type LastSetTime = SetTimeEffects & { readonly count: number; readonly fromMs: number; readonly toMs: number }

export function lastSetTime(memory: Memory): LastSetTime | undefined {
  const cell = (name: Exclude<keyof typeof SET_TIME, 'cells'>) => state(memory, STATE.setTime + SET_TIME[name])
  const count = cell('count')
  if (count === 0) return undefined
  const importFrom = cell('importFrom')
  return {
    count,
    fromMs: cell('fromHigh') * 2 ** 32 + cell('fromLow'),
    toMs: cell('toHigh') * 2 ** 32 + cell('toLow'),
    importNights: importFrom === 0 ? undefined : { from: importFrom, end: cell('importBefore') },
    droppedFrom: cell('droppedFrom') || undefined,
  }
}

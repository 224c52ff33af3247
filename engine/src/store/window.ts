/**
 * Held and visible days. Midnight only moves the visible range. A maintenance entry drops passed days from counts and
 * digest in one step, and their memory is freed in slices between batches, so that nothing waits.
 */

import { DAY_ROUNDS, DAY_SLOTS, SLOT, STATE } from './layout.ts'
import { dropNightsBefore, oweNightsFrom } from './nights.ts'
import { dropSlot, freePassedPlanes, freeUncountedPlanes } from './planes.ts'
import { forEachTable, freeDeleted, segmentOf } from './segment.ts'
import { type Memory, onMemoryShort, type Store, setState, state } from './store.ts'

/**
 * Maximum number of days that a maintenance entry may advance without `force`: a wrong clock must not empty the
 * shard.
 */
export const MAINTENANCE_GAP_DAYS_MAX = 3
export const GAP_REASON = { none: 0, operator: 1, rest: 2 } as const

export type DropResult = 'dropped' | 'already-done' | 'gap-refused'

/**
 * Drops all packages before `day` (docs/design/consensus.md#log-commands, DropBefore).
 *
 * @returns what happened; decided by state and command alone, so equal on all replicas
 */
export function dropBefore(store: Store, day: number, gapReason: number): DropResult {
  const { memory } = store
  const last = state(memory, STATE.lastMaintenanceDay)
  if (day <= last) return 'already-done'
  if (last !== 0 && day - last > MAINTENANCE_GAP_DAYS_MAX && gapReason === GAP_REASON.none) return 'gap-refused'
  for (let i = 0; i < DAY_SLOTS; i++) {
    const slot = STATE.slots + i * SLOT.cells
    const held = state(memory, slot + SLOT.day)
    if (held !== 0 && held < day) dropSlot(store, slot)
  }
  setState(store, STATE.lastMaintenanceDay, day)
  setState(store, STATE.droppedBefore, day)
  dropNightsBefore(store, day)
  beginSweep(store)
  // A day of the same round would be found in their planes.
  if (last !== 0 && day - last > (DAY_ROUNDS - 2) * DAY_SLOTS) sweepAll(store)
  return 'dropped'
}

/** Packages of days before `day` that are still counted. */
export function packagesBefore(memory: Memory, day: number): number {
  let packages = 0
  for (let i = 0; i < DAY_SLOTS; i++) {
    const slot = STATE.slots + i * SLOT.cells
    const held = state(memory, slot + SLOT.day)
    if (held !== 0 && held < day) packages += state(memory, slot + SLOT.packages)
  }
  return packages
}

/** Marks all segments as not yet visited. */
function beginSweep(store: Store): void {
  const { sweep } = store.writer
  sweep.length = 0
  const capacity = state(store.memory, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) if (segmentOf(store.memory, name) !== 0) sweep.push(name)
}

/** Frees a slice of deleted segments, or one segment's planes of dropped days. @returns whether more is left */
export function sweepOne(store: Store): boolean {
  // Freeing may rebuild the index while memory is short, so it must not start again recursively.
  if (isSweeping) return false
  isSweeping = true
  try {
    return sweepSlice(store)
  } finally {
    isSweeping = false
  }
}
let isSweeping = false

function sweepSlice(store: Store): boolean {
  const { memory, writer } = store
  if (writer.deleted.length > 0) return freeDeleted(store) || writer.sweep.length > 0
  const name = writer.sweep.pop()
  if (name === undefined) return false
  const segment = segmentOf(memory, name)
  if (segment === 0) return writer.sweep.length > 0
  const day = state(memory, STATE.droppedBefore)
  forEachTable(memory, segment, (table) => freePassedPlanes(store, table, day))
  return writer.sweep.length > 0
}

/** Whether deleted segments wait for `sweepOne`. */
export function hasDeleted({ writer }: Store): boolean {
  return writer.deleted.length > 0
}

/** Frees everything that sweeping has left. */
function sweepAll(store: Store): void {
  while (sweepOne(store));
}
onMemoryShort({ freeGarbage: sweepAll })

/**
 * Drops the nights from `end` on, which the ring of days cannot hold beside present ones, and frees planes that no
 * longer count.
 *
 * @returns whether there were any
 */
export function dropFrom(store: Store, end: number): boolean {
  const { memory } = store
  let isAny = false
  for (let i = 0; i < DAY_SLOTS; i++) {
    const slot = STATE.slots + i * SLOT.cells
    if (state(memory, slot + SLOT.day) < end) continue
    dropSlot(store, slot)
    isAny = true
  }
  if (isAny) {
    freeUncounted(store)
    oweNightsFrom(store, end)
  }
  return isAny
}

/** Frees the planes of all nights that do not count, swept or not, so that none counts again after a later write. */
export function freeUncounted(store: Store): void {
  const { memory, writer } = store
  writer.sweep.length = 0
  const capacity = state(memory, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(memory, name)
    if (segment !== 0) forEachTable(memory, segment, (table) => freeUncountedPlanes(store, table))
  }
}

/**
 * Which days are held and which are visible. Midnight only moves what is visible; a maintenance entry drops passed days
 * from counts and digest in one step, and their memory is freed in slices between batches, so that nothing waits.
 */

import { DAY_SLOTS, SEGMENT, SLOT, STATE } from './layout.ts'
import { forEachTable, segmentOf } from './segment.ts'
import { type Memory, type Store, setState, state } from './store.ts'
import { dropSlot, field, freePassedPlanes, setField } from './table.ts'

/** Most days a maintenance entry may go forward without a reason for the gap: a wrong clock must not empty the shard. */
export const MAINTENANCE_GAP_DAYS_MAX = 3
export const GAP_REASON = { none: 0, operator: 1, rest: 2 } as const

export type DropResult = 'dropped' | 'already-done' | 'gap-refused'

/**
 * Drops all packages before `day` (consensus.md §11, DropBefore).
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
  beginSweep(store)
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

/** Notes all segments as to be visited. */
export function beginSweep(store: Store): void {
  const { sweep } = store.writer
  sweep.length = 0
  const capacity = state(store.memory, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) if (segmentOf(store.memory, name) !== 0) sweep.push(name)
}

/** Visits one segment and frees its planes of dropped days. @returns whether segments are left */
export function sweepOne(store: Store): boolean {
  const { memory, writer } = store
  const name = writer.sweep.pop()
  if (name === undefined) return false
  const segment = segmentOf(memory, name)
  if (segment === 0) return writer.sweep.length > 0
  const day = state(memory, STATE.droppedBefore)
  let freed = 0
  forEachTable(memory, segment, (table) => {
    freed += freePassedPlanes(store, table, day)
  })
  if (freed > 0) setField(store, segment + SEGMENT.packages, field(memory, segment + SEGMENT.packages) - freed)
  return writer.sweep.length > 0
}

/** First and last day that hold a package, or undefined. */
export function heldWindow(memory: Memory): { from: number; to: number } | undefined {
  let from = 0
  let to = 0
  for (let i = 0; i < DAY_SLOTS; i++) {
    const slot = STATE.slots + i * SLOT.cells
    const day = state(memory, slot + SLOT.day)
    if (day === 0 || state(memory, slot + SLOT.packages) === 0) continue
    from = from === 0 ? day : Math.min(from, day)
    to = Math.max(to, day)
  }
  return from === 0 ? undefined : { from, to }
}

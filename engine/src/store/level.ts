/**
 * The upgrade to feature level 1. Replicas of older rules may have invisible differences. They are made equal here,
 * because the new rules depend on them: leftover names, dead rows, nights that no longer count, and the first day
 * after a bulk load.
 */

import { worstCapacity } from './charge.ts'
import { SEGMENT, STATE, TABLE } from './layout.ts'
import { freeUncountedPlanes } from './planes.ts'
import { countUsedNames, forEachSegment } from './recount.ts'
import { forEachTable } from './segment.ts'
import { evictSessions, hashWholeSessions } from './sessions.ts'
import { type Store, setState, state } from './store.ts'
import { liveRowsOf, rebuildTable } from './table.ts'
import { field, rowCountOf } from './table-fields.ts'
import { reclaim } from './version.ts'

/** Called once, by the entry that raises the level. Its duration grows with the whole state. */
export function enterLevel1(store: Store): void {
  const { memory } = store
  hashWholeSessions(store)
  setState(store, STATE.featureLevel, 1)
  setState(store, STATE.droppedBefore, state(memory, STATE.lastMaintenanceDay))
  forEachSegment(memory, (segment) => {
    closeGaps(store, field(memory, segment + SEGMENT.propertyTable))
    forEachTable(memory, segment, (table) => {
      freeUncountedPlanes(store, table)
      closeGaps(store, table)
      reclaim(store)
    })
  })
  countUsedNames(store)
  evictSessions(store)
}

function closeGaps(store: Store, table: number): void {
  const { memory } = store
  const live = field(memory, table + TABLE.liveRows)
  if (rowCountOf(memory, table) > live) rebuildTable(store, table, liveRowsOf(memory, table), worstCapacity(live))
}

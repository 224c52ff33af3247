/** The row order of a store as a hash: replies depend on it, so it must be the same on all replicas. */

import { hashOfName, NAMES } from '../../engine/src/store/dictionary.ts'
import { PROPERTY, SEGMENT, STATE } from '../../engine/src/store/layout.ts'
import { forEachTable, segmentOf } from '../../engine/src/store/segment.ts'
import { type Memory, state } from '../../engine/src/store/store.ts'
import { liveRowsOf } from '../../engine/src/store/table.ts'
import { field, propertyOfRow } from '../../engine/src/store/table-fields.ts'

/** The sum of hashes over the properties of each table, row by row. Nodes number names independently, so names are hashed. */
export function orderOf(memory: Memory): number {
  let sum = 0
  const add = (table: number, seed: number): void => {
    let hash = seed
    const mix = (value: number): void => {
      hash = Math.imul(hash ^ value, 0x9e3779b1)
      hash ^= hash >>> 15
    }
    for (const row of liveRowsOf(memory, table)) {
      const id = propertyOfRow(memory, table, row) + PROPERTY.id
      for (let word = 0; word < 4; word++) mix(field(memory, id + word * 4))
    }
    sum = (sum + hash) >>> 0
  }
  const capacity = state(memory, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(memory, name)
    if (segment === 0) continue
    const seed = hashOfName(memory, NAMES.segment, name, 0)
    add(field(memory, segment + SEGMENT.propertyTable), seed)
    forEachTable(memory, segment, (table, roomType) => {
      add(table, Math.imul(seed, 31) + hashOfName(memory, NAMES.roomType, roomType, 0))
    })
  }
  return sum
}

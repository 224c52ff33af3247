/** Access to single words of table records (layout.ts, TABLE). */

import { touch } from './cow.ts'
import { CONTROL, DAY_ROUNDS, DAYS_PER_LEAF, TABLE } from './layout.ts'
import type { Memory, Store } from './store.ts'

export function field(memory: Memory, address: number): number {
  return memory.u32[address >>> 2]
}

/** Writes one word that readers follow. Everything written before is visible to any thread that sees it. */
export function setField(store: Store, address: number, value: number): void {
  touch(store, address, 4)
  Atomics.store(store.memory.u32, address >>> 2, value)
}

export function rowCountOf(memory: Memory, table: number): number {
  return field(memory, table + TABLE.rowCount)
}

/** Address of the property in a row, 0 when the row is dead. */
export function propertyOfRow(memory: Memory, table: number, row: number): number {
  return field(memory, field(memory, table + TABLE.rowProperties) + row * 4)
}

/** Marks the table as changed, so that a snapshot encodes it again. */
export function noteChange(store: Store, table: number): void {
  const epoch = store.memory.u32[CONTROL.snapshotEpoch]
  if (field(store.memory, table + TABLE.changedEpoch) !== epoch + 1)
    setField(store, table + TABLE.changedEpoch, epoch + 1)
}

/** @returns address of the plane in a slot of the ring of days, 0 for none */
export function planeAtSlot(memory: Memory, table: number, slot: number): number {
  return addressOf(entryAtSlot(memory, table, slot))
}

/** @returns address of the plane in a slot, with its round in the lowest bits */
export function entryAtSlot(memory: Memory, table: number, slot: number): number {
  const leaf = field(memory, table + TABLE.days + Math.floor(slot / DAYS_PER_LEAF) * 4)
  return leaf === 0 ? 0 : field(memory, leaf + (slot % DAYS_PER_LEAF) * 4)
}

export function addressOf(entry: number): number {
  return (entry & -DAY_ROUNDS) >>> 0
}

/**
 * Properties by id: an open hash table of their addresses. It is copied into a larger one before it is half full, a
 * few slots with each new property, so that no command takes long. When memory is short, it is copied in one step.
 */

import { assert } from '@vacancy/shared'
import { touch } from './cow.ts'
import { hashOfId } from './id-index.ts'
import { GONE_ROW, PROPERTY, STATE } from './layout.ts'
import {
  allocateRecord,
  featureLevel,
  type Memory,
  onMemoryShort,
  type Store,
  setState,
  state,
  tryAllocateRecord,
} from './store.ts'
import { field, setField } from './table-fields.ts'
import { retire } from './version.ts'

const GONE = 1
const SLOTS_MIN = 64

/** Upper bound of index slots per property (charge.ts). */
const INDEX_ROOM_MAX = 8

/** @returns address of the property with this packed id, 0 when there is none */
export function findProperty(memory: Memory, id: Uint8Array, start: number): number {
  const slots = state(memory, STATE.propertySlots)
  if (slots === 0) return 0
  const mask = field(memory, slots)
  for (let i = hashOfId(id, start) & mask; ; i = (i + 1) & mask) {
    const property = field(memory, slots + 4 + i * 4)
    if (property === 0) return 0
    if (property !== GONE && sameId(memory, property, id, start) && !isGone(memory, property)) return property
  }
}

/** Whether the segment of the property was deleted. */
function isGone(memory: Memory, property: number): boolean {
  return field(memory, property + PROPERTY.row) === GONE_ROW
}

function sameId(memory: Memory, property: number, id: Uint8Array, start: number): boolean {
  for (let i = 0; i < 16; i++) if (memory.u8[property + i] !== id[start + i]) return false
  return true
}

/** Reserves index slots for `properties`, so that loading does not grow the index step by step. */
export function reserveProperties(store: Store, properties: number): void {
  if (properties > 0) rebuildSlots(store, properties)
}

function slotsFor(properties: number): number {
  return Math.max(SLOTS_MIN, 2 ** Math.ceil(Math.log2(properties * 2)))
}

function rebuildSlots(store: Store, properties: number): void {
  const { memory } = store
  dropIndexCopy(store)
  const size = slotsFor(properties)
  const slots = allocateRecord(store, 4 + size * 4)
  // Read afterwards: when memory is short, it frees properties, and may shrink the index.
  const old = state(memory, STATE.propertySlots)
  const oldSize = old === 0 ? 0 : field(memory, old) + 1
  touch(store, slots, 4 + size * 4)
  memory.u32[slots >>> 2] = size - 1
  for (let i = 0; i < oldSize; i++) {
    const property = field(memory, old + 4 + i * 4)
    if (property > GONE) putSlot(memory, slots, property)
  }
  useSlots(store, slots)
}

function useSlots(store: Store, slots: number): void {
  const { memory } = store
  const old = state(memory, STATE.propertySlots)
  setState(store, STATE.propertySlots, slots)
  setState(store, STATE.propertySlotsUsed, state(memory, STATE.propertyCount) + store.writer.goneProperties)
  if (old !== 0) retire(store, false, old, 4 + (field(memory, old) + 1) * 4)
}

/** Slots copied with each new property: all of them in half of the time until the index is full. */
const SLOTS_COPIED = 32
const COPIED_AT_ONCE_SLOTS = 8_192

/** Copies more slots once the index is almost half full. Local to this replica; affects no decision. */
function prepareIndex(store: Store): void {
  const { memory, writer } = store
  const slots = state(memory, STATE.propertySlots)
  const size = field(memory, slots) + 1
  if (state(memory, STATE.propertySlotsUsed) * 16 < size * 7 || size <= COPIED_AT_ONCE_SLOTS) return
  if (featureLevel(memory) < 1) return
  if (writer.indexCopy === undefined) {
    // Like a rebuild: without removed entries it may fit the same size.
    const copied = slotsFor(state(memory, STATE.propertyCount) + writer.goneProperties + (size >>> 3))
    const start = tryAllocateRecord(store, 4 + copied * 4)
    if (start === 0) return
    memory.u32[start >>> 2] = copied - 1
    writer.indexCopy = { slots: start, next: 0, used: 0 }
  }
  const copy = writer.indexCopy
  for (const end = Math.min(size, copy.next + SLOTS_COPIED); copy.next < end; copy.next++) {
    const property = field(memory, slots + 4 + copy.next * 4)
    if (property <= GONE) continue
    putSlot(memory, copy.slots, property)
    copy.used++
  }
}

function dropIndexCopy(store: Store): void {
  const { memory, writer } = store
  if (writer.indexCopy === undefined) return
  const { slots } = writer.indexCopy
  writer.indexCopy = undefined
  retire(store, false, slots, 4 + (field(memory, slots) + 1) * 4)
}

/** Switches to the copy. @returns false when there is no complete one */
function useIndexCopy(store: Store): boolean {
  const { memory, writer } = store
  const { indexCopy } = writer
  if (indexCopy === undefined || indexCopy.next <= field(memory, state(memory, STATE.propertySlots))) return false
  writer.indexCopy = undefined
  useSlots(store, indexCopy.slots)
  setState(store, STATE.propertySlotsUsed, indexCopy.used)
  return true
}

/** Removes the property of a copied slot. */
function removeFromCopy({ memory, writer }: Store, property: number, slot: number): void {
  const { indexCopy } = writer
  if (indexCopy === undefined || slot >= indexCopy.next) return
  const mask = field(memory, indexCopy.slots)
  let i = hashOfId(memory.u8, property) & mask
  while (field(memory, indexCopy.slots + 4 + i * 4) !== property) i = (i + 1) & mask
  memory.u32[(indexCopy.slots + 4 + i * 4) >>> 2] = GONE
}

function putSlot(memory: Memory, slots: number, property: number): number {
  const mask = memory.u32[slots >>> 2]
  let i = hashOfId(memory.u8, property) & mask
  while (memory.u32[(slots >>> 2) + 1 + i] !== 0) i = (i + 1) & mask
  const cell = (slots >>> 2) + 1 + i
  Atomics.store(memory.u32, cell, property)
  return cell
}

export function indexProperty(store: Store, property: number): void {
  const { memory } = store
  const used = state(memory, STATE.propertySlotsUsed) + 1
  const slots = state(memory, STATE.propertySlots)
  // Removed entries count as used. A rebuild drops them.
  const indexed = state(memory, STATE.propertyCount) + store.writer.goneProperties
  if ((slots === 0 || used * 2 > field(memory, slots) + 1) && !useIndexCopy(store)) rebuildSlots(store, indexed + 1)
  const target = state(memory, STATE.propertySlots)
  const mask = field(memory, target)
  let i = hashOfId(memory.u8, property) & mask
  while (field(memory, target + 4 + i * 4) !== 0) i = (i + 1) & mask
  setField(store, target + 4 + i * 4, property)
  const { indexCopy } = store.writer
  if (indexCopy !== undefined && i < indexCopy.next) {
    putSlot(memory, indexCopy.slots, property)
    indexCopy.used++
  }
  setState(store, STATE.propertySlotsUsed, state(memory, STATE.propertySlotsUsed) + 1)
  setState(store, STATE.propertyCount, state(memory, STATE.propertyCount) + 1)
  prepareIndex(store)
}

/** Upper bound of the bytes for indexing one more property. */
export function indexGrowthBytes(memory: Memory): number {
  const slots = state(memory, STATE.propertySlots)
  const size = slots === 0 ? 0 : field(memory, slots) + 1
  return (state(memory, STATE.propertySlotsUsed) + 1) * 2 > size ? Math.max(SLOTS_MIN, size * 4) * 4 : 0
}

export function unindexProperty(store: Store, property: number): void {
  const { memory, writer } = store
  if (isGone(memory, property)) writer.goneProperties--
  else setState(store, STATE.propertyCount, state(memory, STATE.propertyCount) - 1)
  const slots = state(memory, STATE.propertySlots)
  const mask = field(memory, slots)
  for (let i = hashOfId(memory.u8, property) & mask; ; i = (i + 1) & mask) {
    const cell = slots + 4 + i * 4
    const found = field(memory, cell)
    assert(found !== 0, 'every property is indexed')
    if (found !== property) continue
    setField(store, cell, GONE)
    removeFromCopy(store, property, i)
    const left = state(memory, STATE.propertyCount) + writer.goneProperties
    // Keeps the index within the charge of the remaining properties.
    const size = field(memory, slots) + 1
    if (size > SLOTS_MIN && left * INDEX_ROOM_MAX < size) rebuildSlots(store, left)
    return
  }
}

onMemoryShort({ dropIndexCopy })

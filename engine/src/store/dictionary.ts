/**
 * Names ↔ small numbers, in shared memory: one dictionary per kind. Lookups use the bytes of a request, so that a
 * search creates no strings. Numbers are local to this node. Data that leaves the node, and the order of rows, use
 * the name's bytes.
 *
 * Names are never removed while the node runs, because a reader may hold a number. A snapshot contains only the names
 * in use.
 */

import { assert } from '@vacancy/shared'
import { chargeName } from './charge.ts'
import { touch } from './cow.ts'
import { nameHash } from './digest.ts'
import { DICTIONARY, DICTIONARY_ENTRY_BYTES, NAMES, type NameKind, STATE } from './layout.ts'
import { allocateRecord, type Memory, type Store, setState, state } from './store.ts'
import { retire } from './version.ts'

export { NAMES, type NameKind } from './layout.ts'

const CAPACITY_MIN = 16
/** Offset in an entry: 1 for a name that is charged. */
const COUNTS = 12
const decoder = new TextDecoder()
const encoder = new TextEncoder()

function cellOf(kind: NameKind, field: number): number {
  return STATE.dictionaries + kind * DICTIONARY.cells + field
}

export function nameCount(memory: Memory, kind: NameKind): number {
  return state(memory, cellOf(kind, DICTIONARY.count))
}

function entryOf(memory: Memory, kind: NameKind, name: number): number {
  return state(memory, cellOf(kind, DICTIONARY.entries)) + name * DICTIONARY_ENTRY_BYTES
}

/** @returns the number of a name, -1 when no property has used it */
export function findName(memory: Memory, kind: NameKind, bytes: Uint8Array, start: number, end: number): number {
  const slots = state(memory, cellOf(kind, DICTIONARY.slots))
  if (slots === 0) return -1
  const hash = nameHash(0, bytes, start, end)
  // The mask is part of the block itself, so that pointer and mask change together.
  const mask = memory.u32[slots >>> 2]
  for (let i = hash & mask; ; i = (i + 1) & mask) {
    const slot = memory.u32[(slots >>> 2) + 1 + i]
    if (slot === 0) return -1
    const entry = entryOf(memory, kind, slot - 1)
    if (memory.u32[(entry + 4) >>> 2] === hash && equals(memory, memory.u32[entry >>> 2], bytes, start, end)) {
      return slot - 1
    }
  }
}

function equals(memory: Memory, text: number, bytes: Uint8Array, start: number, end: number): boolean {
  const length = end - start
  if (memory.u32[text >>> 2] !== length) return false
  const { u8 } = memory
  for (let i = 0; i < length; i++) if (u8[text + 4 + i] !== bytes[start + i]) return false
  return true
}

/** Finds or adds a name. Writer only. */
export function internName(store: Store, kind: NameKind, bytes: Uint8Array, start: number, end: number): number {
  const { memory } = store
  const found = findName(memory, kind, bytes, start, end)
  if (found >= 0) {
    if (!nameCounts(memory, kind, found)) countName(store, kind, found)
    return found
  }
  const name = nameCount(memory, kind)
  const length = end - start
  const text = allocateRecord(store, 4 + length)
  touch(store, text, 4 + length)
  memory.u32[text >>> 2] = length
  memory.u8.set(bytes.subarray(start, end), text + 4)
  growEntries(store, kind, name + 1)
  const entry = entryOf(memory, kind, name)
  touch(store, entry, DICTIONARY_ENTRY_BYTES)
  memory.u32[entry >>> 2] = text
  memory.u32[(entry + 4) >>> 2] = nameHash(0, bytes, start, end)
  memory.u32[(entry + 8) >>> 2] = nameHash(1, bytes, start, end)
  setState(store, cellOf(kind, DICTIONARY.count), name + 1)
  addSlot(store, kind, name)
  countName(store, kind, name)
  return name
}

/** Whether a name belongs to the logical state. */
export function nameCounts(memory: Memory, kind: NameKind, name: number): boolean {
  return memory.u32[(entryOf(memory, kind, name) + COUNTS) >>> 2] === 1
}

/** Makes an existing name part of the logical state. */
export function countName(store: Store, kind: NameKind, name: number): void {
  setCounts(store, kind, name, 1)
  chargeName(store, kind, nameBytes(store.memory, kind, name).length)
}

/** Removes all names from the logical state. The caller recounts those in use. */
export function discountNames(store: Store): void {
  for (const kind of NAME_KINDS) {
    const count = nameCount(store.memory, kind)
    for (let name = 0; name < count; name++) setCounts(store, kind, name, 0)
  }
}

function setCounts(store: Store, kind: NameKind, name: number, counts: 0 | 1): void {
  const cell = entryOf(store.memory, kind, name) + COUNTS
  touch(store, cell, 4)
  store.memory.u32[cell >>> 2] = counts
}

export function internText(store: Store, kind: NameKind, name: string): number {
  const bytes = encoder.encode(name)
  return internName(store, kind, bytes, 0, bytes.length)
}

/** Upper bound of the bytes for adding `names` names of each kind: full tables double. */
export function dictionaryGrowthBytes(memory: Memory, names: number): number {
  let bytes = 0
  for (const kind of NAME_KINDS) {
    const count = nameCount(memory, kind) + names
    const capacity = state(memory, cellOf(kind, DICTIONARY.capacity))
    const slots = state(memory, cellOf(kind, DICTIONARY.slots))
    const size = slots === 0 ? 0 : memory.u32[slots >>> 2] + 1
    if (count > capacity) bytes += Math.max(CAPACITY_MIN, capacity * 2) * DICTIONARY_ENTRY_BYTES
    if (count * 2 > size) bytes += Math.max(CAPACITY_MIN * 2, size * 2) * 4
  }
  return bytes
}

function growEntries(store: Store, kind: NameKind, count: number): void {
  const { memory } = store
  const capacity = state(memory, cellOf(kind, DICTIONARY.capacity))
  if (count <= capacity) return
  const next = Math.max(CAPACITY_MIN, capacity * 2)
  const block = allocateRecord(store, next * DICTIONARY_ENTRY_BYTES)
  const old = state(memory, cellOf(kind, DICTIONARY.entries))
  touch(store, block, next * DICTIONARY_ENTRY_BYTES)
  if (old !== 0) memory.u8.copyWithin(block, old, old + capacity * DICTIONARY_ENTRY_BYTES)
  setState(store, cellOf(kind, DICTIONARY.entries), block)
  setState(store, cellOf(kind, DICTIONARY.capacity), next)
  retire(store, false, old, capacity * DICTIONARY_ENTRY_BYTES)
}

function addSlot(store: Store, kind: NameKind, name: number): void {
  const { memory } = store
  const slots = state(memory, cellOf(kind, DICTIONARY.slots))
  const mask = slots === 0 ? 0 : memory.u32[slots >>> 2]
  if (slots !== 0 && (name + 1) * 2 <= mask + 1) {
    putSlot(store, slots, mask, memory.u32[(entryOf(memory, kind, name) + 4) >>> 2], name)
    return
  }
  const size = Math.max(CAPACITY_MIN * 2, (mask + 1) * 2)
  const block = allocateRecord(store, 4 + size * 4)
  touch(store, block, 4 + size * 4)
  memory.u32[block >>> 2] = size - 1
  for (let i = 0; i <= name; i++) {
    putSlot(store, block, size - 1, memory.u32[(entryOf(memory, kind, i) + 4) >>> 2], i)
  }
  setState(store, cellOf(kind, DICTIONARY.slots), block)
  if (slots !== 0) retire(store, false, slots, 4 + (mask + 1) * 4)
}

function putSlot(store: Store, slots: number, mask: number, hash: number, name: number): void {
  const { u32 } = store.memory
  let i = hash & mask
  while (u32[(slots >>> 2) + 1 + i] !== 0) i = (i + 1) & mask
  touch(store, slots + 4 + i * 4, 4)
  Atomics.store(u32, (slots >>> 2) + 1 + i, name + 1)
}

/** Hash of a name in one lane of the digest. */
export function hashOfName(memory: Memory, kind: NameKind, name: number, lane: 0 | 1): number {
  return memory.u32[(entryOf(memory, kind, name) + 4 + lane * 4) >>> 2]
}

/** The bytes of a name: a view of shared memory, valid until the caller yields. */
export function nameBytes(memory: Memory, kind: NameKind, name: number): Uint8Array {
  assert(name < nameCount(memory, kind), 'name numbers have no gaps')
  const text = memory.u32[entryOf(memory, kind, name) >>> 2]
  return memory.u8.subarray(text + 4, text + 4 + memory.u32[text >>> 2])
}

export function nameText(memory: Memory, kind: NameKind, name: number): string {
  // TextDecoder refuses shared memory, so the bytes are copied.
  return decoder.decode(nameBytes(memory, kind, name).slice())
}

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = a[i] - b[i]
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** All kinds, for code that iterates over every dictionary. */
export const NAME_KINDS: readonly NameKind[] = Object.values(NAMES)

/** Planes of a table: the words of one night, row by row, with their counts and digests (layout.ts, PLANE). */

import { assert } from '@vacancy/shared'
import { chargeTable } from './charge.ts'
import { touch } from './cow.ts'
import { packageHash } from './digest.ts'
import { changeCopy, dropCopy } from './growing.ts'
import {
  DAY_LEAVES,
  DAY_ROUNDS,
  DAY_SLOTS,
  DAYS_PER_LEAF,
  LEAF_BYTES,
  PLANE,
  planeBytes,
  SEGMENT,
  SLOT,
  STATE,
  TABLE,
} from './layout.ts'
import {
  addPair,
  addState64,
  allocatePlane,
  allocateRecord,
  type Memory,
  type Store,
  setState,
  state,
} from './store.ts'
import { addressOf, entryAtSlot, field, noteChange, planeAtSlot, setField } from './table-fields.ts'
import { retire } from './version.ts'

/** Bytes of one additional night. */
export function nightGrowthBytes(memory: Memory, table: number): number {
  return planeBytes(field(memory, table + TABLE.capacity)) + LEAF_BYTES
}

function slotOf(day: number): number {
  return day % DAY_SLOTS
}

function roundOf(day: number): number {
  return Math.floor(day / DAY_SLOTS) % DAY_ROUNDS
}

/** @returns address of the plane of a day, 0 when the table has no package on it */
export function planeOf(memory: Memory, table: number, day: number): number {
  const entry = entryAtSlot(memory, table, slotOf(day))
  return entry % DAY_ROUNDS === roundOf(day) ? addressOf(entry) : 0
}

/** Calls back with every plane of the table, including those of passed days. The callback may replace or remove it. */
export function forEachSlot(memory: Memory, table: number, visit: (slot: number, plane: number) => void): void {
  for (let i = 0; i < DAY_LEAVES; i++) {
    const leaf = field(memory, table + TABLE.days + i * 4)
    if (leaf === 0) continue
    for (let j = 0; j < DAYS_PER_LEAF; j++) {
      const plane = addressOf(field(memory, leaf + j * 4))
      if (plane !== 0) visit(i * DAYS_PER_LEAF + j, plane)
    }
  }
}

/** @param plane which has its day */
export function setPlane(store: Store, table: number, slot: number, plane: number): void {
  const leafAddress = table + TABLE.days + Math.floor(slot / DAYS_PER_LEAF) * 4
  let leaf = field(store.memory, leafAddress)
  if (leaf === 0) {
    leaf = allocateRecord(store, LEAF_BYTES)
    setField(store, leafAddress, leaf)
  }
  const entry = plane === 0 ? 0 : plane + roundOf(field(store.memory, plane + PLANE.day))
  setField(store, leaf + (slot % DAYS_PER_LEAF) * 4, entry)
}

/** The plane of a day, created when missing. Replaces that of a passed day that was not swept yet. */
export function ensurePlane(store: Store, table: number, day: number): number {
  const { memory } = store
  const found = planeOf(memory, table, day)
  if (found !== 0) return found
  const slot = slotOf(day)
  const passed = planeAtSlot(memory, table, slot)
  if (passed !== 0) freePlane(store, table, slot, passed)
  const plane = allocatePlane(store, planeBytes(field(memory, table + TABLE.capacity)))
  setField(store, plane + PLANE.day, day)
  setPlane(store, table, slot, plane)
  chargeTable(store, table, 1)
  noteChange(store, table)
  return plane
}

/** For loading: an empty plane of a day, whose words the caller fills in; `fillRows` has charged it. */
export function createPlane(store: Store, table: number, day: number): number {
  const plane = allocatePlane(store, planeBytes(field(store.memory, table + TABLE.capacity)))
  setField(store, plane + PLANE.day, day)
  setPlane(store, table, slotOf(day), plane)
  return plane
}

/** For loading: counts a plane whose words, packages and digests were filled in. */
export function adoptPlane(store: Store, table: number, plane: number): number {
  const { memory } = store
  const packages = field(memory, plane + PLANE.packages)
  const low = field(memory, plane + PLANE.digestLow)
  const high = field(memory, plane + PLANE.digestHigh)
  setField(store, plane + PLANE.packages, 0)
  setField(store, plane + PLANE.digestLow, 0)
  setField(store, plane + PLANE.digestHigh, 0)
  addToPlane(store, table, plane, packages, low, high)
  return packages
}

/** Subtracts the content of a plane from the counts of its table and segment. */
export function countFreed(store: Store, table: number, plane: number): void {
  const { memory } = store
  const packages = field(memory, plane + PLANE.packages)
  if (packages === 0) return
  setField(store, table + TABLE.packages, field(memory, table + TABLE.packages) - packages)
  const segment = field(memory, state(memory, STATE.segmentDirectory) + field(memory, table + TABLE.segment) * 4)
  setField(store, segment + SEGMENT.packages, field(memory, segment + SEGMENT.packages) - packages)
}

function freePlane(store: Store, table: number, slot: number, plane: number): void {
  const { memory } = store
  countFreed(store, table, plane)
  // The charge of a dropped day was removed with its slot.
  if (state(memory, STATE.slots + slot * SLOT.cells + SLOT.day) === field(memory, plane + PLANE.day)) {
    chargeTable(store, table, -1)
  }
  dropCopy(store, table, plane)
  setPlane(store, table, slot, 0)
  retire(store, true, plane, planeBytes(field(memory, table + TABLE.capacity)))
  noteChange(store, table)
}

/** Whether the packages of a plane count. Those of dropped days were already subtracted from counts and digest. */
export function isCounted(memory: Memory, plane: number): boolean {
  const day = field(memory, plane + PLANE.day)
  return state(memory, STATE.slots + slotOf(day) * SLOT.cells + SLOT.day) === day
}

export function wordAddress(plane: number, row: number): number {
  return plane + PLANE.words + row * 8
}

/** Writes a word and its bit under a mark: concurrent readers discard what they read. */
export function writeWord(store: Store, table: number, plane: number, row: number, lo: number, hi: number): void {
  const { memory, writer } = store
  const { u32 } = memory
  const cell = wordAddress(plane, row) >>> 2
  touch(store, cell * 4, 8)
  u32[cell] = lo
  u32[cell + 1] = hi
  const bits = ((plane + PLANE.words + field(memory, table + TABLE.capacity) * 8) >>> 2) + (row >>> 5)
  touch(store, bits * 4, 4)
  const isAvailable = (lo & 0xff) !== 0
  u32[bits] = isAvailable ? u32[bits] | (1 << (row & 31)) : u32[bits] & ~(1 << (row & 31))
  if (writer.growing?.table === table) changeCopy(memory, writer.growing, plane, row, lo, hi)
}

/** Stores one 64-bit word atomically; the search kernel exports it. */
export type PutWord = (address: number, lo: number, hi: number) => void

/**
 * The only function that changes a package: word, bit, counts and digests.
 *
 * @param keyLow,keyHigh row keys of both digest lanes (digest.ts)
 * @returns 1 when a package was created, -1 when one was removed, 0 otherwise
 */
export function changeWord(
  store: Store,
  put: PutWord,
  table: number,
  plane: number,
  row: number,
  lo: number,
  hi: number,
  keyLow: number,
  keyHigh: number,
): number {
  const { memory } = store
  const { u32 } = memory
  const address = wordAddress(plane, row)
  const cell = address >>> 2
  const oldLo = u32[cell]
  const oldHi = u32[cell + 1]
  const day = u32[(plane + PLANE.day) >>> 2]
  touch(store, address, 8)
  put(address, lo, hi)
  const had = (oldLo & 0xff) !== 0
  const has = (lo & 0xff) !== 0
  if (had !== has) {
    const bits = ((plane + PLANE.words + u32[(table + TABLE.capacity) >>> 2] * 8) >>> 2) + (row >>> 5)
    touch(store, bits * 4, 4)
    // The bit is a hint: a search also checks the word, so the order of the two stores is irrelevant.
    u32[bits] = has ? u32[bits] | (1 << (row & 31)) : u32[bits] & ~(1 << (row & 31))
  }
  const { growing } = store.writer
  if (growing?.table === table) changeCopy(memory, growing, plane, row, lo, hi)
  const delta = ((lo | hi) === 0 ? 0 : 1) - ((oldLo | oldHi) === 0 ? 0 : 1)
  addToPlane(
    store,
    table,
    plane,
    delta,
    (packageHash(0, keyLow, day, lo, hi) - packageHash(0, keyLow, day, oldLo, oldHi)) | 0,
    (packageHash(1, keyHigh, day, lo, hi) - packageHash(1, keyHigh, day, oldLo, oldHi)) | 0,
  )
  return delta
}

/** Adds to the counts and digests of a plane, its table, its day and the shard. */
export function addToPlane(
  store: Store,
  table: number,
  plane: number,
  packages: number,
  low: number,
  high: number,
): void {
  const { memory } = store
  const { u32 } = memory
  const day = u32[(plane + PLANE.day) >>> 2]
  touch(store, plane, PLANE.words)
  const header = plane >>> 2
  u32[header + 1] = u32[header + 1] + packages
  u32[header + 2] = u32[header + 2] + low
  u32[header + 3] = u32[header + 3] + high
  const slot = STATE.slots + slotOf(day) * SLOT.cells
  const held = state(memory, slot + SLOT.day)
  assert(held <= day, 'packages of past days never change')
  if (held !== day) openSlot(store, slot, day)
  addPair(store, slot + SLOT.digestLow, low, high)
  if (packages !== 0) {
    setState(store, slot + SLOT.packages, state(memory, slot + SLOT.packages) + packages)
    addState64(store, STATE.packagesLow, packages)
    setField(store, table + TABLE.packages, field(memory, table + TABLE.packages) + packages)
  }
  noteChange(store, table)
}

/** A slot belongs to one day. The content of a passed day is subtracted from counts and digest in one step. */
function openSlot(store: Store, slot: number, day: number): void {
  dropSlot(store, slot)
  setState(store, slot + SLOT.day, day)
}

/** Drops all packages of a slot. Their planes no longer count, and are freed later (window.ts). */
export function dropSlot(store: Store, slot: number): void {
  const { memory, writer } = store
  const day = state(memory, slot + SLOT.day)
  const place = (slot - STATE.slots) / SLOT.cells
  if (day !== 0) {
    for (const table of writer.charge.tables.keys()) {
      const plane = planeAtSlot(memory, table, place)
      if (plane !== 0 && field(memory, plane + PLANE.day) === day) chargeTable(store, table, -1)
    }
  }
  addState64(store, STATE.packagesLow, -state(store.memory, slot + SLOT.packages))
  for (let cell = 0; cell < SLOT.cells; cell++) setState(store, slot + cell, 0)
}

/** Frees planes of days before `day`, for tables that are not swept yet. */
export function freePassedPlanes(store: Store, table: number, day: number): void {
  forEachSlot(store.memory, table, (slot, plane) => {
    if (field(store.memory, plane + PLANE.day) < day) freePlane(store, table, slot, plane)
  })
}

/** Frees planes of days that do not count. */
export function freeUncountedPlanes(store: Store, table: number): void {
  forEachSlot(store.memory, table, (slot, plane) => {
    if (!isCounted(store.memory, plane)) freePlane(store, table, slot, plane)
  })
}

/** Packages of a row, of days that count. */
export function nightsOfRow(memory: Memory, table: number, row: number): { day: number; lo: number; hi: number }[] {
  const nights: { day: number; lo: number; hi: number }[] = []
  forEachSlot(memory, table, (_slot, plane) => {
    const cell = wordAddress(plane, row) >>> 2
    const lo = memory.u32[cell]
    const hi = memory.u32[cell + 1]
    if ((lo | hi) !== 0 && isCounted(memory, plane)) nights.push({ day: field(memory, plane + PLANE.day), lo, hi })
  })
  return nights
}

/** Calls back with each plane of the table that holds a day from `fromDay` on, days ascending. */
export function forEachPlane(
  memory: Memory,
  table: number,
  fromDay: number,
  visit: (plane: number, day: number) => void,
): void {
  const first = slotOf(fromDay)
  for (let i = 0; i < DAY_SLOTS; i++) {
    const slot = (first + i) % DAY_SLOTS
    const plane = planeAtSlot(memory, table, slot)
    // Slots of a ring that starts at fromDay are in day order. A plane of another round belongs to a passed day.
    if (plane !== 0 && field(memory, plane + PLANE.day) === fromDay + i) visit(plane, fromDay + i)
  }
}

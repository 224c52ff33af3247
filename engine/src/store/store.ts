/**
 * The store of one node: the way into this folder. Created once by the replica thread, its one writer; every other
 * thread attaches to the same memory and reads.
 */

import { assert } from '@vacancy/shared'
import { allocate, createRegion, emptyRegion, type Gap, type Region } from './arena.ts'
import { createSparePages, reserveSparePages, touch } from './cow.ts'
import { readStoreDefects } from './defects.ts'
import {
  CONTROL,
  DAY_SLOTS,
  PAGE_BYTES,
  PAGE_SHIFT,
  READERS_MAX,
  SLOT,
  STATE,
  STATE_BYTES,
  STATE_START,
} from './layout.ts'
import type { Memory, Store } from './memory.ts'
import { createLimbo, reclaim } from './version.ts'

export type { Memory, Store } from './memory.ts'

const MAGIC = 0x56414341 // "VACA"
const LAYOUT_VERSION = 1
const UNIT_SHIFT = 12
const ROOMS_MIN = 4
/** Growing writes are refused when less than this is left, so that one that was accepted always finds room. */
export const MEMORY_RESERVE_BYTES = 16 << 20
export const MEMORY_BYTES_MAX = 4 * 1024 ** 3

export type StoreOptions = {
  /** Address space of the store, at most 4 GiB. Only what is used takes memory. */
  memoryBytes: number
  /** Serving threads and others that read, each with a scratch area. */
  readers: number
  scratchBytes: number
  sessionBytesMax: number
  /** Expected room types of a property; 4 when absent. */
  roomsHint?: number
}

export function createMemory(bytes: number): WebAssembly.Memory {
  const pages = Math.floor(bytes / 65_536)
  assert(pages >= 64 && pages <= 65_536, 'the memory of a store is 4 MiB to 4 GiB')
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
}

function viewsOf(wasm: WebAssembly.Memory): Memory {
  const buffer = wasm.buffer as unknown as SharedArrayBuffer
  const pages = buffer.byteLength >>> PAGE_SHIFT || 1 << (32 - PAGE_SHIFT)
  const start = (STATE_START + STATE_BYTES) >>> 2
  return {
    wasm,
    buffer,
    u8: new Uint8Array(buffer),
    u16: new Uint16Array(buffer),
    i32: new Int32Array(buffer),
    u32: new Uint32Array(buffer),
    f64: new Float64Array(buffer),
    pageEpochs: start,
    pageSpares: start + pages,
    fence: new Int32Array(new SharedArrayBuffer(4)),
  }
}

export function createStore(options: StoreOptions): Store {
  const wasm = createMemory(options.memoryBytes)
  const memory = viewsOf(wasm)
  const pages = memory.buffer.byteLength / PAGE_BYTES
  assert(options.readers <= READERS_MAX, 'reader slots are limited')
  const scratchStart = roundUp(STATE_START + STATE_BYTES + pages * 8)
  const scratchBytes = roundUp(options.scratchBytes)
  const recordsStart = scratchStart + options.readers * scratchBytes
  const gap: Gap = { low: recordsStart, high: memory.buffer.byteLength }
  assert(gap.low + MEMORY_RESERVE_BYTES / 8 < gap.high, 'the memory must hold more than its scratch areas')
  const { u32 } = memory
  u32[CONTROL.magic] = MAGIC
  u32[CONTROL.layoutVersion] = LAYOUT_VERSION
  u32[CONTROL.memoryPages] = pages
  u32[CONTROL.reclaimEpoch] = 1
  u32[CONTROL.scratchStart] = scratchStart
  u32[CONTROL.scratchBytes] = scratchBytes
  u32[CONTROL.readers] = options.readers
  const store: Store = {
    memory,
    writer: {
      records: createRegion(gap, true),
      planes: createRegion(gap, false),
      gap,
      limbo: createLimbo(),
      spare: createSparePages(),
      marks: new Map(),
      sessions: new Map(),
      copyOnWrite: false,
      epoch: 0,
      promisedBytes: 0,
      lackingAt: -1,
      recordsStart,
      roomsHint: options.roomsHint ?? ROOMS_MIN,
      sweep: [],
      defects: readStoreDefects(),
    },
  }
  setState(store, STATE.sessionBytesMax, options.sessionBytesMax)
  publish(store, 0)
  return store
}

/**
 * Makes a store empty again, as new: for a state that takes the place of all that is there. Readers are out
 * (version.ts), no snapshot is being taken, and the settings of its creation stay.
 */
export function clearStore(store: Store): void {
  const { memory, writer } = store
  assert(!writer.copyOnWrite, 'no snapshot reads what is cleared')
  assert(writer.marks.size === 0, 'nothing is changing in a store that is cleared')
  const sessionBytesMax = state(memory, STATE.sessionBytesMax)
  memory.u8.fill(0, STATE_START, STATE_START + STATE_BYTES)
  // What a region has never used is zero; all else must be again, since both take from the same gap.
  const { records, planes, gap } = writer
  memory.u8.fill(0, records.origin, records.highWater)
  memory.u8.fill(0, planes.highWater, planes.origin)
  gap.low = records.origin
  gap.high = planes.origin
  for (const region of [records, planes]) emptyRegion(region)
  const { limbo, spare } = writer
  for (const list of [limbo.addresses, limbo.sizes, limbo.planes, limbo.epochs]) list.length = 0
  limbo.head = 0
  spare.addresses.length = 0
  spare.used = 0
  spare.failed = false
  writer.sessions.clear()
  writer.sweep.length = 0
  setState(store, STATE.sessionBytesMax, sessionBytesMax)
}

/** Views of the same memory for another thread; refuses a memory that is no store of this version. */
export function attachMemory(wasm: WebAssembly.Memory): Memory {
  const memory = viewsOf(wasm)
  assert(memory.u32[CONTROL.magic] === MAGIC, 'this memory holds no store')
  assert(memory.u32[CONTROL.layoutVersion] === LAYOUT_VERSION, 'this memory has another layout')
  return memory
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
}

/** Address of the scratch area of a reader. */
export function scratchOf(memory: Memory, reader: number): number {
  assert(reader < (memory.u32[CONTROL.readers] as number), 'each reader has one scratch area')
  return (memory.u32[CONTROL.scratchStart] as number) + reader * (memory.u32[CONTROL.scratchBytes] as number)
}

export function state(memory: Memory, cell: number): number {
  return memory.u32[(STATE_START >>> 2) + cell] as number
}

export function setState(store: Store, cell: number, value: number): void {
  const address = STATE_START + cell * 4
  touch(store, address, 4)
  // An atomic store: readers follow these words to what was written before.
  Atomics.store(store.memory.u32, address >>> 2, value >>> 0)
}

/** Adds to a counter of two cells, low half first. */
export function addState64(store: Store, cell: number, delta: number): void {
  const low = state(store.memory, cell)
  const value = state(store.memory, cell + 1) * 2 ** 32 + low + delta
  assert(value >= 0, 'a counter never goes below zero')
  setState(store, cell, value % 2 ** 32)
  setState(store, cell + 1, Math.floor(value / 2 ** 32))
}

export function addDigest(store: Store, low: number, high: number): void {
  setState(store, STATE.digestLow, state(store.memory, STATE.digestLow) + low)
  setState(store, STATE.digestHigh, state(store.memory, STATE.digestHigh) + high)
}

/** @returns address of `bytes` zeroes in the records region */
export function allocateRecord(store: Store, bytes: number): number {
  return allocateZeroed(store, store.writer.records, bytes)
}

/** @returns address of `bytes` zeroes in the planes region */
export function allocatePlane(store: Store, bytes: number): number {
  return allocateZeroed(store, store.writer.planes, bytes)
}

function allocateZeroed(store: Store, region: Region, bytes: number): number {
  const waterBefore = region.highWater
  const start = allocate(region, bytes)
  assert(start !== 0, 'the store ran out of memory although growing writes are refused before')
  const { records, planes } = store.writer
  // Zero is only what neither region has ever used: each gives back to the gap what the other takes from it.
  const fresh = region.upward
    ? start >= waterBefore && start + bytes <= planes.highWater
    : start + bytes <= waterBefore && start >= records.highWater
  if (!fresh) {
    touch(store, start, bytes)
    store.memory.u8.fill(0, start, start + bytes)
  }
  return start
}

/**
 * Ends a batch: readers may see everything up to `index`, freed memory may be used again, and the words that say how
 * much is left are renewed.
 */
export function publish(store: Store, index: number): void {
  const { memory, writer } = store
  reclaim(store)
  const free = writer.gap.high - writer.gap.low
  Atomics.store(memory.u32, CONTROL.appliedHigh, Math.floor(index / 2 ** 32))
  Atomics.store(memory.u32, CONTROL.appliedLow, index >>> 0)
  Atomics.store(memory.u32, CONTROL.freeUnits, free >>> UNIT_SHIFT)
  Atomics.store(memory.u32, CONTROL.recordUnits, writer.records.usedBytes / 2 ** UNIT_SHIFT)
  Atomics.store(memory.u32, CONTROL.planeUnits, writer.planes.usedBytes / 2 ** UNIT_SHIFT)
  Atomics.store(memory.u32, CONTROL.memoryFull, free < memoryReserve(memory) ? 1 : 0)
  if (free > writer.lackingAt) writer.lackingAt = -1
  Atomics.store(memory.u32, CONTROL.memoryLacked, writer.lackingAt < 0 ? 0 : 1)
}

/** A sixteenth of small memories (tests, small boxes), 16 MiB of large ones. */
function memoryReserve(memory: Memory): number {
  return Math.min(MEMORY_RESERVE_BYTES, memory.buffer.byteLength / 16)
}

/** Whether every write that needs memory is refused, before it is logged. */
export function isMemoryFull(memory: Memory): boolean {
  return Atomics.load(memory.u32, CONTROL.memoryFull) === 1
}

/** Whether writes are refused for want of memory: all that need any, or those that need as much as one that was. */
export function refusesForMemory(memory: Memory): boolean {
  return isMemoryFull(memory) || Atomics.load(memory.u32, CONTROL.memoryLacked) === 1
}

export function appliedIndex(memory: Memory): number {
  for (;;) {
    const high = Atomics.load(memory.u32, CONTROL.appliedHigh)
    const low = Atomics.load(memory.u32, CONTROL.appliedLow)
    if (high === Atomics.load(memory.u32, CONTROL.appliedHigh)) return high * 2 ** 32 + low
  }
}

export type Digest = { readonly lo: number; readonly hi: number }

/** Digest of the whole state: properties, rooms and sessions plus the packages of every day slot. Writer only. */
export function stateDigest(memory: Memory): Digest {
  let lo = state(memory, STATE.digestLow)
  let hi = state(memory, STATE.digestHigh)
  for (let slot = 0; slot < DAY_SLOTS; slot++) {
    const cell = STATE.slots + slot * SLOT.cells
    lo = (lo + state(memory, cell + SLOT.digestLow)) >>> 0
    hi = (hi + state(memory, cell + SLOT.digestHigh)) >>> 0
  }
  return { lo, hi }
}

export type StoreCounts = { readonly properties: number; readonly packages: number; readonly sessions: number }

export function countsOf(memory: Memory): StoreCounts {
  return {
    properties: state(memory, STATE.propertyCount),
    packages: state(memory, STATE.packagesHigh) * 2 ** 32 + state(memory, STATE.packagesLow),
    sessions: state(memory, STATE.sessionCount),
  }
}

export type MemoryUse = { readonly recordBytes: number; readonly planeBytes: number; readonly freeBytes: number }

export function memoryUse(memory: Memory): MemoryUse {
  const units = (cell: number) => Atomics.load(memory.u32, cell) * 2 ** UNIT_SHIFT
  return {
    recordBytes: units(CONTROL.recordUnits),
    planeBytes: units(CONTROL.planeUnits),
    freeBytes: units(CONTROL.freeUnits),
  }
}

/** Touches spare pages for a hundredth of what is stored, at least 2 MiB, before the first snapshot needs them. */
export function prepareSnapshots(store: Store): void {
  const pages = Math.max(256, Math.ceil(store.writer.planes.usedBytes / 100 / PAGE_BYTES))
  reserveSparePages(store, Math.min(pages, Math.floor((store.writer.gap.high - store.writer.gap.low) / 2 / PAGE_BYTES)))
}

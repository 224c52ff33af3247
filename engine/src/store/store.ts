/**
 * The store of one node: the entry point of this folder. The replica thread creates it and is its only writer. Every
 * other thread attaches to the same memory and reads.
 */

import { assert, VacancyError } from '@vacancy/shared'
import { allocate, createRegion, emptyRegion, type Gap, lend, type Region } from './arena.ts'
import { clearCharge, createCharge, growthLeft } from './charge.ts'
import { createSparePages, spareBytes, touch, touchSparePages } from './cow.ts'
import {
  CONTROL,
  DAY_SLOTS,
  PAGE_BYTES,
  PAGE_SHIFT,
  READERS_MAX,
  REPLICATED_CELLS,
  SLOT,
  STATE,
  STATE_BYTES,
  STATE_START,
} from './layout.ts'
import { clearLedger, createLedger } from './ledger.ts'
import type { Memory, Store } from './memory.ts'
import { createLimbo, hasReadersBefore, reclaim } from './version.ts'

export type { Memory, Store } from './memory.ts'

const MAGIC = 0x56414341 // "VACA"
const LAYOUT_VERSION = 1
const UNIT_SHIFT = 12
const ROOMS_MIN = 4
/** Growing writes are refused below this, so that an accepted one always finds memory. */
const MEMORY_RESERVE_BYTES = 16 << 20
export type StoreOptions = {
  /** Address space of the store, at most 4 GiB. Pages are committed on use. */
  memoryBytes: number
  /** Serving threads and other readers, each with a scratch area. */
  readers: number
  scratchBytes: number
  sessionBytesMax: number
  /** Expected room types per property; default 4. */
  roomsHint?: number
}

function createMemory(bytes: number): WebAssembly.Memory {
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
  const copyBytes = spareBytes(memory.buffer.byteLength)
  const gap: Gap = { low: recordsStart, high: memory.buffer.byteLength - copyBytes }
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
      spare: createSparePages(gap.high, copyBytes),
      charge: createCharge(),
      marks: new Map(),
      versions: 0,
      sessions: new Map(),
      copyOnWrite: false,
      epoch: 0,
      promisedBytes: 0,
      lackingAt: -1,
      recordsStart,
      roomsHint: options.roomsHint ?? ROOMS_MIN,
      sweep: [],
      deleted: [],
      deletedRows: 0,
      goneProperties: 0,
      holdsSession: false,
      sessionMoves: 0,
      unsummed: [],
      growing: undefined,
      indexCopy: undefined,
      ledger: createLedger(),
    },
  }
  setState(store, STATE.sessionBytesMax, options.sessionBytesMax)
  publish(store, 0)
  return store
}

/**
 * Empties a store, so that another state can replace its content. No reader may be inside (version.ts) and no
 * snapshot in progress. The creation settings stay.
 */
export function clearStore(store: Store): void {
  const { memory, writer } = store
  assert(!writer.copyOnWrite, 'no snapshot is in progress while the store is cleared')
  assert(writer.marks.size === 0, 'no table is marked while the store is cleared')
  const sessionBytesMax = state(memory, STATE.sessionBytesMax)
  memory.u8.fill(0, STATE_START, STATE_START + STATE_BYTES)
  // Memory that a region has never used is zero. The rest is zeroed, because both regions share the gap.
  const { records, planes, gap } = writer
  memory.u8.fill(0, records.origin, records.highWater)
  memory.u8.fill(0, planes.highWater, planes.origin)
  gap.low = records.origin
  gap.high = planes.origin
  for (const region of [records, planes]) emptyRegion(region)
  const { limbo, spare } = writer
  for (const list of [limbo.addresses, limbo.sizes, limbo.planes, limbo.epochs]) list.length = 0
  limbo.head = 0
  spare.used = 0
  spare.failed = false
  clearCharge(writer.charge)
  writer.sessions.clear()
  clearLedger(writer.ledger)
  writer.sweep.length = 0
  writer.deleted.length = 0
  writer.deletedRows = 0
  writer.goneProperties = 0
  writer.unsummed.length = 0
  writer.growing = undefined
  writer.indexCopy = undefined
  setState(store, STATE.sessionBytesMax, sessionBytesMax)
}

/** Views of the same memory for another thread. Refuses a memory that is not a store of this version. */
export function attachMemory(wasm: WebAssembly.Memory): Memory {
  const memory = viewsOf(wasm)
  assert(memory.u32[CONTROL.magic] === MAGIC, 'this memory is not a store')
  assert(memory.u32[CONTROL.layoutVersion] === LAYOUT_VERSION, 'this memory has a different layout')
  return memory
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
}

/** Address of the scratch area of a reader. */
export function scratchOf(memory: Memory, reader: number): number {
  assert(reader < memory.u32[CONTROL.readers], 'each reader has one scratch area')
  return memory.u32[CONTROL.scratchStart] + reader * memory.u32[CONTROL.scratchBytes]
}

export function state(memory: Memory, cell: number): number {
  return memory.u32[(STATE_START >>> 2) + cell]
}

/** The level of the apply rules: 0 is version 0.1.0, FEATURE_LEVEL the newest known to this program. */
export const FEATURE_LEVEL = 6

/** From this level on a shard has stays (docs/design/stays.md). */
export const STAYS_LEVEL = 2

/** From this level on absolute values may name the index up to which they know bookings (docs/design/stays.md#as-of). */
export const AS_OF_LEVEL = 3

/**
 * From this level on a stay that is to be replaced stands until the new one is confirmed, a release gives back only what
 * was taken, stays are remembered until after their last night, and holds outlive a refresh (docs/design/stays.md#rules).
 */
export const LEDGER_LEVEL = 4

/** From this level on indexes tell one life of the data from another (docs/design/consensus.md#indexes). */
export const INDEX_LEVEL = 5

/** From this level on a release may name the booking or hold that it ends (docs/design/stays.md#rules). */
export const BOOKED_AT_LEVEL = 6

export function featureLevel(memory: Memory): number {
  return state(memory, STATE.featureLevel)
}

/** Latest time in the log so far. */
export function latestTime(memory: Memory): number {
  return state(memory, STATE.timeHigh) * 2 ** 32 + state(memory, STATE.timeLow)
}

export function setState(store: Store, cell: number, value: number): void {
  const address = STATE_START + cell * 4
  touch(store, address, 4)
  // An atomic store: readers follow these words to data written before.
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

/** Adds to two neighbouring 32-bit sums. Plain stores: no reader follows them to other data. */
export function addPair(store: Store, cell: number, first: number, second: number): void {
  const address = STATE_START + cell * 4
  touch(store, address, 8)
  const { u32 } = store.memory
  const at = address >>> 2
  u32[at] = u32[at] + first
  u32[at + 1] = u32[at + 1] + second
}

export function addDigest(store: Store, low: number, high: number): void {
  addPair(store, STATE.digestLow, low, high)
}

/** @returns address of `bytes` zeroes in the records region */
export function allocateRecord(store: Store, bytes: number): number {
  return allocateZeroed(store, store.writer.records, bytes)
}

/** @returns address of `bytes` zeroes in the planes region */
export function allocatePlane(store: Store, bytes: number): number {
  return allocateZeroed(store, store.writer.planes, bytes)
}

/** @returns address of `bytes` zeroes in the planes region; 0 when no such block is free, without reclaiming memory */
export function tryAllocatePlane(store: Store, bytes: number): number {
  return tryAllocate(store, store.writer.planes, bytes)
}

/** The same in the records region. */
export function tryAllocateRecord(store: Store, bytes: number): number {
  return tryAllocate(store, store.writer.records, bytes)
}

function tryAllocate(store: Store, region: Region, bytes: number): number {
  const waterBefore = region.highWater
  const start = allocate(region, bytes)
  return start === 0 ? 0 : clear(store, region, start, bytes, waterBefore)
}

function allocateZeroed(store: Store, region: Region, bytes: number): number {
  const waterBefore = region.highWater
  const start = allocate(region, bytes) || allocateShort(store, region, bytes)
  return clear(store, region, start, bytes, waterBefore)
}

function clear(store: Store, region: Region, start: number, bytes: number, waterBefore: number): number {
  const { records, planes } = store.writer
  // Only memory that neither region has ever used is zero: each returns to the gap what the other takes.
  const fresh = region.upward
    ? start >= waterBefore && start + bytes <= planes.highWater
    : start + bytes <= waterBefore && start >= records.highWater
  if (!fresh) {
    touch(store, start, bytes)
    store.memory.u8.fill(0, start, start + bytes)
  }
  return start
}

/** Reclaims memory when it is short. */
type MakeRoom = {
  /** Drops the copies of a table and of the index that were made ahead of use. */
  dropGrowth(store: Store): void
  dropIndexCopy(store: Store): void
  /** Frees everything that was deferred. */
  freeGarbage(store: Store): void
  /** Moves blocks out of the zone of so many bytes next to the gap, as far as holes exist elsewhere. */
  movePlanes(store: Store, zone: number): void
  /** The same for sessions, on the other side of the gap. */
  moveSessions(store: Store, zone: number): void
}
const makeRoom: MakeRoom = {
  dropGrowth: () => undefined,
  dropIndexCopy: () => undefined,
  freeGarbage: () => undefined,
  movePlanes: () => undefined,
  moveSessions: () => undefined,
}
const ROOM_MADE_BYTES = 256 * 1024

/** Callbacks of the modules that implement it (window.ts, table.ts). */
export function onMemoryShort(callbacks: Partial<MakeRoom>): void {
  Object.assign(makeRoom, callbacks)
}

/**
 * Called when no region has a block large enough. First releases memory that is not part of the state: dropped
 * nights, and blocks that readers may still access. Then compacts tables, because both regions grow from the gap
 * between them.
 *
 * @throws memory_exhausted when that is not enough: this replica must stop, because its replies must never differ
 * from the other replicas'
 */
function allocateShort(store: Store, region: Region, bytes: number): number {
  const { memory, writer } = store
  makeRoom.dropGrowth(store)
  makeRoom.dropIndexCopy(store)
  makeRoom.freeGarbage(store)
  reclaim(store)
  waitForReaders(store)
  let start = allocate(region, bytes)
  if (start === 0 && !region.upward && lend(writer.records, writer.planes, bytes)) start = allocate(region, bytes)
  const all = writer.planes.origin - writer.gap.high
  for (let zone = bytes + ROOM_MADE_BYTES; start === 0; zone *= 4) {
    if (!writer.holdsSession) makeRoom.moveSessions(store, zone)
    makeRoom.movePlanes(store, zone)
    reclaim(store)
    waitForReaders(store)
    start = allocate(region, bytes)
    if (zone >= all) break
  }
  if (start !== 0) return start
  const used = writer.records.usedBytes + writer.planes.usedBytes
  throw new VacancyError('memory_exhausted', { bytes, used, limit: memory.buffer.byteLength })
}

/** Readers leave within milliseconds, after which retired memory is free. */
function waitForReaders(store: Store): void {
  for (let waits = 0; waits < READER_WAITS_MAX; waits++) {
    if (!hasReadersBefore(store)) return
    // No thread wakes this word: it is a pause of this thread when its memory is exhausted.
    Atomics.wait(store.memory.fence, 0, 0, 1)
    reclaim(store)
  }
}
const READER_WAITS_MAX = 2_000

/** What is added to an index of the log for clients (client-index.ts). */
export function indexBase(memory: Memory): number {
  return state(memory, STATE.indexBaseHigh) * 2 ** 32 + state(memory, STATE.indexBaseLow)
}

/** The high half of the applied index while both halves change. */
const CHANGING = 0xffff_ffff

/**
 * Ends a batch: publishes everything up to `index` of the log to readers, reclaims freed memory, and updates the words that
 * report the memory left.
 */
export function publish(store: Store, index: number): void {
  const { memory, writer } = store
  reclaim(store)
  const free = writer.gap.high - writer.gap.low
  const applied = index + indexBase(memory)
  const high = Math.floor(applied / 2 ** 32)
  if (high !== memory.u32[CONTROL.appliedHigh]) Atomics.store(memory.u32, CONTROL.appliedHigh, CHANGING)
  Atomics.store(memory.u32, CONTROL.appliedLow, applied >>> 0)
  Atomics.store(memory.u32, CONTROL.appliedHigh, high)
  Atomics.store(memory.u32, CONTROL.freeUnits, free >>> UNIT_SHIFT)
  Atomics.store(memory.u32, CONTROL.recordUnits, writer.records.usedBytes / 2 ** UNIT_SHIFT)
  Atomics.store(memory.u32, CONTROL.planeUnits, writer.planes.usedBytes / 2 ** UNIT_SHIFT)
  // From feature level 1 on apply refuses exactly what does not fit, and accepts updates.
  const isMeasured = featureLevel(memory) >= 1
  const left = isMeasured ? growthLeft(store) : free
  Atomics.store(memory.u32, CONTROL.memoryFull, !isMeasured && free < memoryReserve(memory) ? 1 : 0)
  if (left > writer.lackingAt) writer.lackingAt = -1
  Atomics.store(memory.u32, CONTROL.memoryLacked, writer.lackingAt >= 0 || (isMeasured && left <= 0) ? 1 : 0)
}

/** A sixteenth of small memories (tests, small machines), 16 MiB of large ones. */
export function memoryReserve(memory: Memory): number {
  return Math.min(MEMORY_RESERVE_BYTES, memory.buffer.byteLength / 16)
}

/** Whether every write that needs memory is refused before it is logged. */
export function isMemoryFull(memory: Memory): boolean {
  return Atomics.load(memory.u32, CONTROL.memoryFull) === 1
}

/** Whether writes are refused for lack of memory: all that need memory, or those that need as much as a refused one. */
export function refusesForMemory(memory: Memory): boolean {
  return isMemoryFull(memory) || Atomics.load(memory.u32, CONTROL.memoryLacked) === 1
}

/** Day of shard time as last recorded by the replica thread; 0 while unknown. */
export function shardDay(memory: Memory): number {
  return Atomics.load(memory.u32, CONTROL.today)
}

export function noteShardDay(memory: Memory, day: number): void {
  Atomics.store(memory.u32, CONTROL.today, day)
}

/** The applied index as clients see it. */
export function appliedIndex(memory: Memory): number {
  for (;;) {
    const high = Atomics.load(memory.u32, CONTROL.appliedHigh)
    const low = Atomics.load(memory.u32, CONTROL.appliedLow)
    if (high !== CHANGING && high === Atomics.load(memory.u32, CONTROL.appliedHigh)) return high * 2 ** 32 + low
  }
}

export type Digest = { readonly lo: number; readonly hi: number }

/** Whether the shard has drawn its random genesis (docs/design/consensus.md#formation). */
export function hasGenesis(memory: Memory): boolean {
  return [0, 1, 2, 3].some((cell) => state(memory, STATE.genesis + cell) !== 0)
}

/** Words of the state that the digest of feature level 1 covers, in addition to STATE.replicated. */
const HASHED_WORDS = [
  ...[STATE.lastMaintenanceDay, STATE.droppedBefore, STATE.sessionBytesMax, STATE.featureLevel],
  ...[STATE.genesis, STATE.genesis + 1, STATE.genesis + 2, STATE.genesis + 3, STATE.timeLow, STATE.timeHigh],
  ...Array.from({ length: REPLICATED_CELLS }, (_, cell) => STATE.replicated + cell),
] as const

/**
 * Digest of everything except the packages, which are summed per day. Of one image: the store's own, or a snapshot's.
 */
export function digestWithoutPackages(memory: Memory): Digest {
  const { lo, hi } = digestOfWords(memory)
  return { lo: (lo + state(memory, STATE.digestLow)) >>> 0, hi: (hi + state(memory, STATE.digestHigh)) >>> 0 }
}

/** Share of settings, time and maintenance in the digest: zero below feature level 1. */
export function digestOfWords(memory: Memory): Digest {
  if (featureLevel(memory) < 1) return { lo: 0, hi: 0 }
  let low = 0x9e3779b1
  let high = 0x27d4eb2f
  for (const cell of HASHED_WORDS) {
    const word = state(memory, cell)
    low = Math.imul(low ^ word, 0x85ebca77)
    low ^= low >>> 15
    high = Math.imul(high ^ word, 0x165667b1)
    high ^= high >>> 13
  }
  return { lo: low >>> 0, hi: high >>> 0 }
}

/**
 * Digest of the whole state: properties, rooms and sessions, the packages of every day slot, and from feature level 1
 * on the words of settings, time and maintenance. Writer only.
 */
export function stateDigest(memory: Memory): Digest {
  let { lo, hi } = digestWithoutPackages(memory)
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

/** Touches spare pages for a hundredth of the stored bytes, at least 2 MiB, before the first snapshot needs them. */
export function prepareSnapshots(store: Store): void {
  touchSparePages(store, Math.max(256, Math.ceil(store.writer.planes.usedBytes / 100 / PAGE_BYTES)))
}

/**
 * The shared memory of an import as its threads see it: created once, cleared for a second pass, its slot tables enlarged
 * when they are half full. layout.ts defines the layout.
 */

import { type CodecList, VacancyError } from '@vacancy/shared'
import {
  BLOCK_BYTES,
  CHUNK_NIGHTS,
  CODEC_BYTES,
  CONTEXT,
  CONTEXT_BYTES,
  FEATURE_ENTRIES,
  FEATURE_TEXT_AT,
  HEADER,
  HEADER_BYTES,
  MEMORY_BYTES_MAX,
  PADDING_BYTES,
  PAGE_BYTES,
  ROOM,
  ROW,
} from './layout.ts'
import type { PropertyIndex } from './properties.ts'

const CACHE_LINE = 64
const ROW_SLOTS_FIRST = 2 ** 14
const ROOM_SLOTS_FIRST = 2 ** 10
const SLOT_BYTES = 8
const SLOTS_GROW_BY = 2

export const FAILED = { no: 0, needsExplaining: 1, memoryFull: 2 } as const

export type Staging = {
  readonly memory: WebAssembly.Memory
  /** One per thread. */
  readonly contexts: readonly number[]
  readonly buffers: readonly number[]
  /** Bytes of one read buffer, padding included. */
  readonly bufferBytes: number
  /** Memory beyond it is reset by each pass. */
  readonly base: number
}

export type StagingOptions = {
  readonly memory: WebAssembly.Memory
  readonly index: PropertyIndex
  readonly codecs: CodecList
  readonly firstDay: number
  /** Nights of the window. */
  readonly days: number
  /** Of the price column. */
  readonly priceDecimals: number
  readonly threads: number
  /** Bytes read at a time. */
  readonly blockBytes: number
}

/** @param bytes certain to be needed; it costs nothing until it is touched */
export function createMemory(bytesMax: number, bytes: number): WebAssembly.Memory {
  const maximum = Math.floor(Math.min(bytesMax, MEMORY_BYTES_MAX) / PAGE_BYTES)
  const initial = Math.min(maximum, Math.ceil(bytes / PAGE_BYTES) + 1)
  const memory = reserve(initial, maximum)
  new Uint32Array(memory.buffer)[HEADER.limit] = maximum * PAGE_BYTES
  return memory
}

function reserve(initial: number, maximum: number): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({ initial, maximum, shared: true })
  } catch (cause) {
    const reason = `No address space of ${(maximum * PAGE_BYTES) / 2 ** 20} MiB is available. Raise the limit of this process (ulimit -v).`
    throw new VacancyError('failure', { reason }, { cause })
  }
}

/**
 * Touches a thread's share of the memory that is there. A fresh page costs a microsecond or more, and threads have
 * nothing else to do while the properties are read.
 */
export function touchMemory({ buffer }: WebAssembly.Memory, thread: number, threads: number): void {
  const bytes = new Uint8Array(buffer)
  const pages = Math.floor(bytes.length / OS_PAGE_BYTES)
  const end = Math.floor((pages * (thread + 1)) / threads)
  for (let page = Math.floor((pages * thread) / threads); page < end; page++) {
    // After the header, whose limit is already set.
    bytes[page * OS_PAGE_BYTES + HEADER_BYTES] = 0
  }
}

const OS_PAGE_BYTES = 4096

/** @throws VacancyError `failure` when not even the properties fit */
export function createStaging(options: StagingOptions): Staging {
  const { memory, index, codecs, threads } = options
  const limit = new Uint32Array(memory.buffer)[HEADER.limit]
  let top = HEADER_BYTES
  const take = (bytes: number) => {
    const at = top
    top += Math.ceil(bytes / CACHE_LINE) * CACHE_LINE
    return at
  }
  const bufferBytes = options.blockBytes + PADDING_BYTES
  const contexts = Array.from({ length: threads }, () => take(CONTEXT_BYTES))
  const buffers = Array.from({ length: threads }, () => take(bufferBytes))
  const codecNames = take(codecs.names.length * CODEC_BYTES + PADDING_BYTES)
  const propertyIds = take(index.ids.length)
  const propertySlots = take(index.slots.length * 4)
  const propertyRooms = take((index.ids.length / 16) * 4)
  if (top + BLOCK_BYTES > limit) throw memoryFull(limit)
  growTo(memory, top)
  const u32 = new Uint32Array(memory.buffer)
  const u8 = new Uint8Array(memory.buffer)
  const set = (cell: number, value: number) => {
    u32[cell] = value
  }
  set(HEADER.propertySlots, propertySlots)
  set(HEADER.propertyShift, index.shift)
  set(HEADER.propertyIds, propertyIds)
  set(HEADER.propertyRooms, propertyRooms)
  set(HEADER.firstDay, options.firstDay)
  set(HEADER.days, options.days)
  set(HEADER.priceScale, 10 ** options.priceDecimals)
  set(HEADER.codecNames, codecNames)
  set(HEADER.codecCount, codecs.names.length)
  const chunks = Math.ceil(options.days / CHUNK_NIGHTS)
  set(HEADER.rowBytes, Math.ceil(((ROW.chunks + chunks) * 4) / CACHE_LINE) * CACHE_LINE)
  u8.set(index.ids, propertyIds)
  u32.set(index.slots, propertySlots >>> 2)
  const encoder = new TextEncoder()
  for (const [i, name] of codecs.names.entries()) {
    const bytes = encoder.encode(name)
    u32[(codecNames + i * CODEC_BYTES) >>> 2] = bytes.length
    u8.set(bytes, codecNames + i * CODEC_BYTES + 16)
  }
  return { memory, contexts, buffers, bufferBytes, base: top }
}

export type Pass = { readonly explain: boolean; readonly strictWindow: boolean; readonly threads: number }

/** Empties rows, room types and contexts before a pass. No other thread may be at work. */
export function beginPass({ memory, contexts, base }: Staging, pass: Pass): void {
  const u32 = new Uint32Array(memory.buffer)
  const top = Math.max(base, u32[HEADER.top])
  new Uint8Array(memory.buffer).fill(0, base, top)
  u32.fill(0, u32[HEADER.propertyRooms] >>> 2, base >>> 2)
  for (const cell of [HEADER.rows, HEADER.rooms, HEADER.failed, HEADER.nextRange, HEADER.nextTask]) u32[cell] = 0
  u32[HEADER.top] = base
  u32[HEADER.explain] = pass.explain ? 1 : 0
  u32[HEADER.strictWindow] = pass.strictWindow ? 1 : 0
  u32[HEADER.threads] = pass.threads << 16
  for (const context of contexts) {
    u32.fill(0, context >>> 2, (context + CONTEXT.features + FEATURE_ENTRIES * 16) >>> 2)
    u32[(context + CONTEXT.featureTextNext) >>> 2] = context + FEATURE_TEXT_AT
  }
  setSlots(memory, HEADER.rowSlots, ROW_SLOTS_FIRST)
  setSlots(memory, HEADER.roomSlots, ROOM_SLOTS_FIRST)
}

function setSlots(memory: WebAssembly.Memory, cell: number, slots: number): void {
  const at = takeMemory(memory, slots * SLOT_BYTES)
  const u32 = new Uint32Array(memory.buffer)
  u32[cell] = at
  // For both tables, the shift follows the address.
  u32[cell + 1] = 32 - Math.log2(slots)
}

/**
 * Fresh zeros from the shared memory.
 *
 * @throws VacancyError `failure` when the memory is full
 */
export function takeMemory(memory: WebAssembly.Memory, bytes: number): number {
  const u32 = new Uint32Array(memory.buffer)
  const size = Math.ceil(bytes / CACHE_LINE) * CACHE_LINE
  const limit = u32[HEADER.limit]
  for (;;) {
    const top = Atomics.load(u32, HEADER.top)
    if (limit - top < size) throw memoryFull(limit)
    if (Atomics.compareExchange(u32, HEADER.top, top, top + size) !== top) continue
    growTo(memory, top + size)
    return top
  }
}

function growTo(memory: WebAssembly.Memory, end: number): void {
  for (;;) {
    const missing = Math.ceil((end - memory.buffer.byteLength) / PAGE_BYTES)
    if (missing <= 0) return
    try {
      memory.grow(missing)
    } catch (cause) {
      // Others grow it too: only what is missing then is a failure.
      if (end > memory.buffer.byteLength) throw memoryFull(end, cause)
    }
  }
}

export function memoryFull(bytes: number, cause?: unknown): VacancyError {
  const reason =
    `The packages do not fit in ${Math.floor(bytes / 2 ** 20)} MiB of memory. ` +
    'Narrow the dates with --from and --to, or split the data over more shards with --max-shard-packages.'
  return new VacancyError('failure', { reason }, { cause })
}

/**
 * A thread has found a slot table half full and waits here for the others; the last to come enlarges the tables for
 * all. Threads that end their pass (`leavePass`) are not waited for. One word counts both, so that exactly one thread
 * sees the sums become equal.
 */
export function meetThreads(memory: WebAssembly.Memory): void {
  const u32 = new Int32Array(memory.buffer)
  const growths = Atomics.load(u32, HEADER.growths)
  const threads = Atomics.add(u32, HEADER.threads, 1) + 1
  if (threads >>> 16 === (threads & 0xffff)) return growForAll(memory)
  while (Atomics.load(u32, HEADER.growths) === growths) Atomics.wait(u32, HEADER.growths, growths)
}

/** This thread reads no more lines in this pass. */
export function leavePass(memory: WebAssembly.Memory): void {
  const u32 = new Int32Array(memory.buffer)
  const threads = Atomics.sub(u32, HEADER.threads, 1 << 16) - (1 << 16)
  if (threads >>> 16 > 0 && threads >>> 16 === (threads & 0xffff)) growForAll(memory)
}

function growForAll(memory: WebAssembly.Memory): void {
  const u32 = new Int32Array(memory.buffer)
  try {
    growSlots(memory, HEADER.rowSlots, u32[HEADER.rows], ROW.hash)
    growSlots(memory, HEADER.roomSlots, u32[HEADER.rooms], ROOM.hash)
  } catch {
    // Wakes the waiting threads; each of them reports the error.
    Atomics.store(u32, HEADER.failed, FAILED.memoryFull)
  }
  Atomics.and(u32, HEADER.threads, ~0xffff)
  Atomics.add(u32, HEADER.growths, 1)
  Atomics.notify(u32, HEADER.growths)
}

/** @param hashCell cell of a record that holds its hash */
function growSlots(memory: WebAssembly.Memory, cell: number, count: number, hashCell: number): void {
  const before = slotsOf(memory, cell)
  if (count < before.slots / 2) return
  const slots = before.slots * SLOTS_GROW_BY
  const at = takeMemory(memory, slots * SLOT_BYTES) >>> 2
  const u32 = new Uint32Array(memory.buffer)
  const shift = 32 - Math.log2(slots)
  for (let i = 0; i < before.slots; i++) {
    const record = u32[before.at + i * 2]
    if (record === 0) continue
    const hash = u32[(record >>> 2) + hashCell]
    let slot = hash >>> shift
    while (u32[at + slot * 2] !== 0) slot = (slot + 1) & (slots - 1)
    u32[at + slot * 2] = record
    u32[at + slot * 2 + 1] = (hash | 1) >>> 0
  }
  u32[cell] = at * 4
  u32[cell + 1] = shift
}

function slotsOf(memory: WebAssembly.Memory, cell: number): { at: number; slots: number } {
  const u32 = new Uint32Array(memory.buffer)
  return { at: u32[cell] >>> 2, slots: 2 ** (32 - u32[cell + 1]) }
}

/** Calls `visit` with the address of each record of a slot table, in the order of their hashes. */
export function forEachRecord(memory: WebAssembly.Memory, cell: number, visit: (record: number) => void): void {
  const u32 = new Uint32Array(memory.buffer)
  const { at, slots } = slotsOf(memory, cell)
  for (let i = 0; i < slots; i++) {
    const record = u32[at + i * 2]
    if (record !== 0) visit(record)
  }
}

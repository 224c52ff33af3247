/**
 * One writer, many readers, no lock (docs/design/search.md#threads).
 *
 * - A single word changes with one 64-bit store and needs no protection.
 * - A change of several words is covered by the table's version word, which is odd during the change. A reader loads
 *   the version, reads, and loads it again. If it changed, the reader discards what it read and retries. No two
 *   tables ever have the same even version, so a reader may also compare after it has left: a freed table, and
 *   another at the same address, do not look like one unchanged table.
 * - Memory freed by a change is not reused while a reader may still access it. Readers publish the epoch they entered
 *   in, and the writer frees what was retired before the oldest of them.
 *
 * A reader gives up after READ_TRIES_MAX tries.
 *
 * When the state of another node replaces this one (snapshot/replace.ts), no reader may be inside. The writer closes
 * the store, waits until all readers have left, and opens it again. Numbers and addresses that a reader found before
 * are then invalid, so a complete request is enclosed in `beginRequest` and `endRequest`. Each side stores its own
 * word and then loads the other's. Both are atomic, so at least one of them sees the other.
 */

import { assert, VacancyError } from '@vacancy/shared'
import { release } from './arena.ts'
import { CONTROL, READER_SLOT, READER_SLOT_BYTES, READER_SLOT_START, READERS_MAX, TABLE } from './layout.ts'
import type { Limbo, Memory, Store } from './memory.ts'

export const READ_TRIES_MAX = 64
const EPOCH_MAX = 0x7fffffff

export function createLimbo(): Limbo {
  return { addresses: [], sizes: [], planes: [], epochs: [], head: 0 }
}

function readerCell(reader: number): number {
  assert(reader >= 0 && reader < READERS_MAX, 'reader slots are limited')
  return (READER_SLOT_START + reader * READER_SLOT_BYTES) >>> 2
}

/**
 * From here to `leave`, no memory that this reader can reach is reused.
 *
 * @throws not_serving while the store is closed, which cannot happen within a request
 */
export function enter(memory: Memory, reader: number): void {
  enterInRequest(memory, reader)
  if (Atomics.load(memory.i32, CONTROL.isClosed) === 0) return
  leave(memory, reader)
  throw new VacancyError('not_serving', {})
}

/** The same between `beginRequest` and `endRequest`, where the store is open. */
export function enterInRequest(memory: Memory, reader: number): void {
  Atomics.store(memory.i32, readerCell(reader), Atomics.load(memory.i32, CONTROL.reclaimEpoch))
}

export function leave(memory: Memory, reader: number): void {
  Atomics.store(memory.i32, readerCell(reader), 0)
}

/**
 * Marks the start of a request, which may read the store several times and keep what it found.
 *
 * @returns false while the store is closed: the caller must not read, nor call the end
 */
export function beginRequest(memory: Memory, reader: number): boolean {
  const cell = readerCell(reader) + READER_SLOT.isBusy
  Atomics.store(memory.i32, cell, 1)
  if (Atomics.load(memory.i32, CONTROL.isClosed) === 0) return true
  Atomics.store(memory.i32, cell, 0)
  return false
}

export function endRequest(memory: Memory, reader: number): void {
  Atomics.store(memory.i32, readerCell(reader) + READER_SLOT.isBusy, 0)
}

/** Writer: no reader may enter any more. `areReadersOut` reports whether those inside have left. */
export function closeStore(store: Store): void {
  Atomics.store(store.memory.i32, CONTROL.isClosed, 1)
  Atomics.add(store.memory.i32, CONTROL.generation, 1)
}

export function openStore(store: Store): void {
  Atomics.store(store.memory.i32, CONTROL.isClosed, 0)
}

export function isClosed(memory: Memory): boolean {
  return Atomics.load(memory.i32, CONTROL.isClosed) === 1
}

export function areReadersOut({ memory }: Store): boolean {
  for (let reader = 0; reader < READERS_MAX; reader++) {
    const cell = readerCell(reader)
    if (Atomics.load(memory.i32, cell + READER_SLOT.epoch) !== 0) return false
    if (Atomics.load(memory.i32, cell + READER_SLOT.isBusy) !== 0) return false
  }
  return true
}

/** @returns the version to hand to `isUnchanged`, or -1 while the table is changing */
export function versionOf(memory: Memory, table: number): number {
  const version = Atomics.load(memory.i32, (table + TABLE.version) >>> 2)
  return (version & 1) === 1 ? -1 : version >>> 0
}

export function isUnchanged(memory: Memory, table: number, version: number): boolean {
  // A read-modify-write of a private word: on weakly ordered processors it keeps the reads above before it.
  Atomics.add(memory.fence, 0, 0)
  return Atomics.load(memory.i32, (table + TABLE.version) >>> 2) >>> 0 === version
}

/** Makes readers of the table wait for `unmark`, or retry. Marks nest. */
export function mark(store: Store, table: number): void {
  const { marks } = store.writer
  const depth = marks.get(table) ?? 0
  if (depth === 0) {
    Atomics.exchange(store.memory.i32, (table + TABLE.version) >>> 2, store.writer.versions | 1)
  }
  marks.set(table, depth + 1)
}

export function unmark(store: Store, table: number): void {
  const { marks } = store.writer
  const depth = marks.get(table)
  assert(depth !== undefined && depth > 0, 'unmark follows mark')
  if (depth > 1) {
    marks.set(table, depth - 1)
    return
  }
  marks.delete(table)
  store.writer.versions = (store.writer.versions + 2) | 0
  Atomics.exchange(store.memory.i32, (table + TABLE.version) >>> 2, store.writer.versions)
}

/** Frees the block once no reader can access it. */
export function retire(store: Store, inPlanes: boolean, address: number, bytes: number): void {
  if (address === 0) return
  const { limbo } = store.writer
  limbo.addresses.push(address)
  limbo.sizes.push(bytes)
  limbo.planes.push(inPlanes)
  limbo.epochs.push(store.memory.i32[CONTROL.reclaimEpoch])
}

/** Whether a reader may still access a block that was retired. */
export function hasReadersBefore({ memory }: Store): boolean {
  for (let reader = 0; reader < READERS_MAX; reader++) {
    const epoch = Atomics.load(memory.i32, readerCell(reader))
    if (epoch !== 0 && epoch !== memory.i32[CONTROL.reclaimEpoch]) return true
  }
  return false
}

/** Starts the next epoch and frees what no reader can access any more. Called after each batch of entries. */
export function reclaim(store: Store): void {
  const { limbo } = store.writer
  if (limbo.head === limbo.addresses.length) return
  const { i32 } = store.memory
  // Epoch 0 means "not reading".
  const next = (Atomics.load(i32, CONTROL.reclaimEpoch) + 1) & EPOCH_MAX || 1
  Atomics.store(i32, CONTROL.reclaimEpoch, next)
  // After the last epoch the first one follows.
  const ageOf = (epoch: number): number => (next - epoch) & EPOCH_MAX
  let oldestAge = 0
  for (let reader = 0; reader < READERS_MAX; reader++) {
    const epoch = Atomics.load(i32, readerCell(reader))
    if (epoch !== 0) oldestAge = Math.max(oldestAge, ageOf(epoch))
  }
  while (limbo.head < limbo.addresses.length && ageOf(limbo.epochs[limbo.head]) > oldestAge) {
    const region = limbo.planes[limbo.head] ? store.writer.planes : store.writer.records
    release(region, limbo.addresses[limbo.head], limbo.sizes[limbo.head])
    limbo.head++
  }
  if (limbo.head === limbo.addresses.length || limbo.head > 65_536) {
    for (const list of [limbo.addresses, limbo.sizes, limbo.planes, limbo.epochs]) list.splice(0, limbo.head)
    limbo.head = 0
  }
}

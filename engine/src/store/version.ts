/**
 * One writer, many readers, no lock (performance.md §4).
 *
 * - A word changes with one 64-bit store and needs nothing.
 * - What changes in several words lies under a table's version word: odd while changing. A reader takes the version,
 *   reads, and looks again; if it moved, what was read is thrown away and read once more.
 * - Memory that a change set free is not used again while a reader may still look at it: readers publish the epoch they
 *   entered in, the writer frees what was retired before the oldest of them.
 *
 * After READ_TRIES_MAX tries a reader gives up and asks the replica thread, where nothing changes underneath.
 *
 * When the state of another node takes the place of all of this (snapshot/replace.ts), nobody may be inside: the writer
 * closes the store, waits until all readers are out, and opens it again. Numbers and addresses that a reader had found
 * before mean something else then, so a request as a whole lies between `beginRequest` and `endRequest`. Each side
 * stores its own word and then looks at the other's; both are atomic, so at least one of them sees the other.
 */

import { assert, VacancyError } from '@vacancy/shared'
import { release } from './arena.ts'
import { CONTROL, READER_SLOT, READER_SLOT_BYTES, READER_SLOT_START, READERS_MAX, TABLE } from './layout.ts'
import type { Limbo, Memory, Store } from './memory.ts'

export const READ_TRIES_MAX = 64

export function createLimbo(): Limbo {
  return { addresses: [], sizes: [], planes: [], epochs: [], head: 0 }
}

function readerCell(reader: number): number {
  assert(reader >= 0 && reader < READERS_MAX, 'reader slots are limited')
  return (READER_SLOT_START + reader * READER_SLOT_BYTES) >>> 2
}

/**
 * From here to `leave`, nothing this reader can reach is used for something else.
 *
 * @throws not_serving while the store is closed; whoever has begun a request does not meet that
 */
export function enter(memory: Memory, reader: number): void {
  Atomics.store(memory.i32, readerCell(reader), Atomics.load(memory.i32, CONTROL.reclaimEpoch))
  if (Atomics.load(memory.i32, CONTROL.isClosed) === 0) return
  leave(memory, reader)
  throw new VacancyError('not_serving', {})
}

export function leave(memory: Memory, reader: number): void {
  Atomics.store(memory.i32, readerCell(reader), 0)
}

/**
 * A reader is about to look at the store, perhaps several times, and to remember what it found.
 *
 * @returns false while the store is closed: nothing may be read, and nothing has to be ended
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

/** Writer: nobody comes in any more; those inside are waited for with `areReadersOut`. */
export function closeStore(store: Store): void {
  Atomics.store(store.memory.i32, CONTROL.isClosed, 1)
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
  // A read-modify-write of a word nobody shares: on weakly ordered processors the reads above stay above.
  Atomics.add(memory.fence, 0, 0)
  return Atomics.load(memory.i32, (table + TABLE.version) >>> 2) >>> 0 === version
}

/** Makes readers of the table wait for `unmark`, or read again. Marks nest. */
export function mark(store: Store, table: number): void {
  const { marks } = store.writer
  const depth = marks.get(table) ?? 0
  if (depth === 0) Atomics.add(store.memory.i32, (table + TABLE.version) >>> 2, 1)
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
  Atomics.add(store.memory.i32, (table + TABLE.version) >>> 2, 1)
}

/** Frees the block once no reader can see it. */
export function retire(store: Store, inPlanes: boolean, address: number, bytes: number): void {
  if (address === 0) return
  const { limbo } = store.writer
  limbo.addresses.push(address)
  limbo.sizes.push(bytes)
  limbo.planes.push(inPlanes)
  limbo.epochs.push(store.memory.i32[CONTROL.reclaimEpoch] as number)
}

/** Opens the next epoch and frees what no reader can see any more. Called after each batch of entries. */
export function reclaim(store: Store): void {
  const { limbo } = store.writer
  if (limbo.head === limbo.addresses.length) return
  const { i32 } = store.memory
  // Epoch 0 means "not reading".
  const next = (Atomics.load(i32, CONTROL.reclaimEpoch) + 1) & 0x7fffffff || 1
  Atomics.store(i32, CONTROL.reclaimEpoch, next)
  let oldest = next
  for (let reader = 0; reader < READERS_MAX; reader++) {
    const epoch = Atomics.load(i32, readerCell(reader))
    if (epoch !== 0 && next - epoch > next - oldest) oldest = epoch
  }
  while (limbo.head < limbo.addresses.length && (limbo.epochs[limbo.head] as number) < oldest) {
    const region = limbo.planes[limbo.head] ? store.writer.planes : store.writer.records
    release(region, limbo.addresses[limbo.head] as number, limbo.sizes[limbo.head] as number)
    limbo.head++
  }
  if (limbo.head === limbo.addresses.length || limbo.head > 65_536) {
    for (const list of [limbo.addresses, limbo.sizes, limbo.planes, limbo.epochs]) list.splice(0, limbo.head)
    limbo.head = 0
  }
}

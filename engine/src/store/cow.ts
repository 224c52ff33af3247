/**
 * Page copy-on-write: a snapshot sees all pages as they were at one log index while writes go on (performance.md §7).
 *
 * Each page has an epoch and the address of a spare copy. The writer, before it changes a page for the first time in
 * the epoch of the running snapshot: copies the page to a spare, publishes where, sets the page's epoch, then writes.
 * The snapshot thread copies the page, then looks at the epoch: unequal means that nothing had been written before its
 * copy was complete; equal means that the spare holds what it wants. Nobody waits for anybody.
 *
 * The epoch is exchanged, not stored: on weakly ordered processors a plain store may pass an atomic store before it,
 * but not a read-modify-write; the reader's look is one too, for its loads.
 */

import { assert } from '@vacancy/shared'
import { allocate, release } from './arena.ts'
import { CONTROL, PAGE_BYTES, PAGE_SHIFT } from './layout.ts'
import type { Memory, SparePages, Store } from './memory.ts'

const SPARE_STEP_PAGES = 128

export function createSparePages(): SparePages {
  return { addresses: [], used: 0, stepsTaken: 0, copied: 0, failed: false }
}

/** Makes room for `pages` spare copies and touches them, so that a first write does not pay for a page fault. */
export function reserveSparePages(store: Store, pages: number): void {
  const spare = store.writer.spare
  while (spare.addresses.length < pages) if (!growSpare(store, true)) return
}

function growSpare(store: Store, touched: boolean): boolean {
  const { spare, planes, gap, promisedBytes } = store.writer
  const start = allocate(planes, SPARE_STEP_PAGES * PAGE_BYTES)
  if (start === 0) return false
  if (gap.high - gap.low < promisedBytes) {
    release(planes, start, SPARE_STEP_PAGES * PAGE_BYTES)
    return false
  }
  for (let i = 0; i < SPARE_STEP_PAGES; i++) {
    const address = start + i * PAGE_BYTES
    if (touched) store.memory.u8[address] = 0
    spare.addresses.push(address)
  }
  spare.stepsTaken++
  return true
}

/** Starts an epoch: from here on the pages' present content is kept for the snapshot. */
export function beginCopyOnWrite(store: Store): number {
  const { i32 } = store.memory
  assert(!store.writer.copyOnWrite, 'one snapshot at a time')
  const epoch = Atomics.add(i32, CONTROL.snapshotEpoch, 1) + 1
  Atomics.store(i32, CONTROL.snapshotActive, 1)
  store.writer.copyOnWrite = true
  store.writer.epoch = epoch
  store.writer.spare.used = 0
  store.writer.spare.failed = false
  return epoch
}

export function endCopyOnWrite(store: Store): void {
  Atomics.store(store.memory.i32, CONTROL.snapshotActive, 0)
  store.writer.copyOnWrite = false
  store.writer.spare.used = 0
}

/** Must be called before any write to [address, address + bytes). */
export function touch(store: Store, address: number, bytes: number): void {
  if (!store.writer.copyOnWrite) return
  const last = (address + bytes - 1) >>> PAGE_SHIFT
  for (let page = address >>> PAGE_SHIFT; page <= last; page++) savePage(store, page)
}

function savePage(store: Store, page: number): void {
  const { memory, writer } = store
  if (memory.i32[memory.pageEpochs + page] === writer.epoch) return
  const spare = writer.spare
  if (spare.used === spare.addresses.length && !growSpare(store, false)) {
    // No memory for a copy: the snapshot is given up, not the write. Its reader sees `snapshotActive` fall.
    spare.failed = true
    endCopyOnWrite(store)
    return
  }
  const copy = spare.addresses[spare.used++] as number
  const start = page * PAGE_BYTES
  memory.u8.copyWithin(copy, start, start + PAGE_BYTES)
  spare.copied++
  Atomics.store(memory.i32, memory.pageSpares + page, copy | 0)
  Atomics.exchange(memory.i32, memory.pageEpochs + page, writer.epoch)
}

/**
 * Copies [address, address + bytes) as it was when the epoch began. Called by the snapshot thread.
 *
 * @returns false when the snapshot was given up meanwhile; the copy is then worthless
 */
export function readAtEpoch(
  memory: Memory,
  epoch: number,
  address: number,
  bytes: number,
  target: Uint8Array,
  targetStart: number,
): boolean {
  let from = address
  const end = address + bytes
  let to = targetStart
  while (from < end) {
    const page = from >>> PAGE_SHIFT
    const pageStart = page * PAGE_BYTES
    const stop = Math.min(end, pageStart + PAGE_BYTES)
    target.set(memory.u8.subarray(from, stop), to)
    if (Atomics.add(memory.i32, memory.pageEpochs + page, 0) === epoch) {
      const copy = (Atomics.load(memory.i32, memory.pageSpares + page) >>> 0) + (from - pageStart)
      target.set(memory.u8.subarray(copy, copy + stop - from), to)
    }
    to += stop - from
    from = stop
  }
  return (
    Atomics.load(memory.i32, CONTROL.snapshotActive) === 1 && Atomics.load(memory.i32, CONTROL.snapshotEpoch) === epoch
  )
}

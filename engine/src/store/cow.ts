/**
 * Page copy-on-write: a snapshot sees all pages as of one log index while writes continue
 * (docs/design/storage.md#snapshot-format).
 *
 * Each page has an epoch and the address of a spare copy. Before the writer changes a page for the first time in the
 * epoch of the running snapshot, it copies the page to a spare, publishes its address, and sets the page's epoch. The
 * snapshot thread copies the page, then reads the epoch. If it differs, the page was unchanged when the copy was
 * complete. If it is equal, the spare holds the old content. Neither thread waits for the other.
 *
 * The epoch is exchanged, not stored: on weakly ordered processors a plain store may pass an earlier atomic store,
 * but not a read-modify-write. The reader's check is one too, for the order of its loads.
 */

import { assert } from '@vacancy/shared'
import { CONTROL, PAGE_BYTES, PAGE_SHIFT } from './layout.ts'
import type { Memory, SparePages, Store } from './memory.ts'

/** Share of a store's memory for spare copies, within these bounds. Separate from the memory for data. */
const SPARE_SHARE = 16
const SPARE_BYTES_MIN = 1 << 20
const SPARE_BYTES_MAX = 256 << 20
/** Updates wait for the snapshot when fewer spare pages than this are left. One command changes fewer. */
const PAGES_OF_COMMAND = 64

/** Bytes at the end of a memory that are reserved for spare copies. */
export function spareBytes(memoryBytes: number): number {
  const bytes = Math.min(SPARE_BYTES_MAX, Math.max(SPARE_BYTES_MIN, memoryBytes / SPARE_SHARE))
  return Math.floor(bytes / PAGE_BYTES) * PAGE_BYTES
}

/** @param start first byte of the spare pages */
export function createSparePages(start: number, bytes: number): SparePages {
  return { start, pages: bytes / PAGE_BYTES, freshFrom: 0, freshEnd: 0, used: 0, copied: 0, failed: false }
}

/** Touches spare pages, so that the first write causes no page fault. */
export function touchSparePages(store: Store, pages: number): void {
  const { spare } = store.writer
  for (let page = 0; page < Math.min(pages, spare.pages); page++) store.memory.u8[spare.start + page * PAGE_BYTES] = 0
}

/** Whether a command must wait until the snapshot is written, because it may need more spare pages than are left. */
export function lacksSparePages({ writer: { copyOnWrite, spare } }: Store): boolean {
  return copyOnWrite && spare.pages - spare.used < Math.min(PAGES_OF_COMMAND, spare.pages / 2)
}

/** Informs the snapshot thread that updates wait, so that it stops limiting its disk rate. */
export function hurrySnapshot({ memory }: Store): void {
  Atomics.store(memory.i32, CONTROL.snapshotHurry, 1)
}

export function isSnapshotHurried({ i32 }: Memory): boolean {
  return Atomics.load(i32, CONTROL.snapshotHurry) === 1
}

/** Starts an epoch: from here on the current content of the pages is preserved for the snapshot. */
export function beginCopyOnWrite(store: Store): number {
  const { i32 } = store.memory
  assert(!store.writer.copyOnWrite, 'one snapshot at a time')
  const epoch = Atomics.add(i32, CONTROL.snapshotEpoch, 1) + 1
  Atomics.store(i32, CONTROL.snapshotHurry, 0)
  Atomics.store(i32, CONTROL.snapshotActive, 1)
  store.writer.copyOnWrite = true
  store.writer.epoch = epoch
  const { spare, gap } = store.writer
  spare.used = 0
  spare.failed = false
  spare.freshFrom = Math.ceil(gap.low / PAGE_BYTES)
  spare.freshEnd = Math.floor(gap.high / PAGE_BYTES)
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
  // The snapshot needs nothing from the gap between the regions when it began.
  if (page >= spare.freshFrom && page < spare.freshEnd) return
  if (spare.used === spare.pages) {
    // No spare page: the snapshot is aborted, not the write. Its reader sees `snapshotActive` cleared.
    spare.failed = true
    endCopyOnWrite(store)
    return
  }
  const copy = spare.start + spare.used++ * PAGE_BYTES
  const start = page * PAGE_BYTES
  memory.u8.copyWithin(copy, start, start + PAGE_BYTES)
  spare.copied++
  Atomics.store(memory.i32, memory.pageSpares + page, copy | 0)
  Atomics.exchange(memory.i32, memory.pageEpochs + page, writer.epoch)
}

/**
 * Copies [address, address + bytes) as of the start of the epoch. Called by the snapshot thread.
 *
 * @returns false when the snapshot was aborted meanwhile; the copy is then invalid
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

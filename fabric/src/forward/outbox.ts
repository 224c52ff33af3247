/**
 * Bytes towards one connection: collected during a turn of the event loop in a slab, and handed over with one write.
 * Slabs are shared by all connections and used again as soon as the system has taken their bytes, so that forwarding
 * allocates nothing for each frame.
 */

import type { Wire } from './world.ts'

const SLAB_BYTES = 64 * 1024
/** Free slabs that are kept. */
const SLABS_MAX = 64

const free: Buffer[] = []
const NONE = Buffer.alloc(0)

export type Outbox = {
  readonly wire: Wire
  slab: Buffer
  /** Used bytes of the slab. */
  bytes: number
}

export function createOutbox(wire: Wire): Outbox {
  return { wire, slab: NONE, bytes: 0 }
}

/**
 * Copies [from, to) of `source` to the end of the collected bytes.
 *
 * @returns whether they are the first of this turn, so that a flush must be scheduled
 */
export function addBytes(outbox: Outbox, source: Buffer, from: number, to: number): boolean {
  const length = to - from
  if (outbox.bytes + length > SLAB_BYTES) {
    flushOutbox(outbox)
    if (length > SLAB_BYTES) {
      outbox.wire.write(Buffer.from(source.subarray(from, to)))
      return false
    }
  }
  const isFirst = outbox.bytes === 0
  if (outbox.slab.length === 0) outbox.slab = free.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES)
  source.copy(outbox.slab, outbox.bytes, from, to)
  outbox.bytes += length
  return isFirst
}

/** Bytes that have not left this process. */
export function queuedBytes(outbox: Outbox): number {
  return outbox.bytes + outbox.wire.writableLength
}

/** Hands the collected bytes to the connection. */
export function flushOutbox(outbox: Outbox): void {
  const { wire, slab, bytes } = outbox
  if (bytes === 0) return
  outbox.bytes = 0
  outbox.slab = NONE
  wire.write(slab.subarray(0, bytes))
  // Bytes that are queued are still read from the slab: it is left to the garbage collector.
  if (wire.writableLength === 0 && free.length < SLABS_MAX) free.push(slab)
}

/** Drops the collected bytes. */
export function clearOutbox(outbox: Outbox): void {
  if (outbox.bytes > 0 && free.length < SLABS_MAX) free.push(outbox.slab)
  outbox.bytes = 0
  outbox.slab = NONE
}

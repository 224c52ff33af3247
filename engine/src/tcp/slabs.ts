/**
 * Reply slabs of a serving thread: parts of its scratch area that kernels write replies into
 * (docs/design/search.md#replies).
 *
 * A slab is reusable right after a write only if the socket took all bytes. Otherwise it belongs to that socket until
 * the write's callback. The stack returns the slab used last, so that only few of them are ever touched.
 */

import { assert } from '@vacancy/shared'

export const SLAB_BYTES_MIN = 1 << 20
export const SLABS = 12

export type Slabs = {
  readonly bytes: number
  readonly free: number[]
  readonly total: number
  /** One more slab, never handed to a socket: replies are copied out of it while all others are in use. */
  readonly spare: number
}

export function createSlabs(start: number, slabBytes: number, slabs: number): Slabs {
  // The last one comes first: addresses are pushed in descending order.
  const free = Array.from({ length: slabs }, (_, i) => start + (slabs - 1 - i) * slabBytes)
  return { bytes: slabBytes, free, total: slabs, spare: start + slabs * slabBytes }
}

/** Bytes of scratch area that `slabs` slabs and the spare one take. */
export function slabAreaBytes(slabBytes: number, slabs: number): number {
  return slabBytes * (slabs + 1)
}

/** @returns address of a slab, 0 when sockets hold all */
export function takeSlab(slabs: Slabs): number {
  return slabs.free.pop() ?? 0
}

export function giveSlab(slabs: Slabs, address: number): void {
  assert(slabs.free.length < slabs.total, 'a slab is returned once')
  slabs.free.push(address)
}

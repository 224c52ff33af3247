/**
 * The memory allocator of the store. Only the replica thread allocates, so the bookkeeping is plain objects of that
 * thread. It is not shared and not part of a snapshot.
 *
 * Two regions share the free space: `records` grows upward, `planes` downward. Freed blocks are merged with their
 * free neighbours, so that tables growing row by row do not leave unusable fragments.
 */

import { assert } from '@vacancy/shared'

/** Block sizes are multiples of it. Records are many and small; planes must be 16-byte aligned for the kernels. */
const GRAIN = { records: 8, planes: 16 } as const
const BINS = 128

/** Free space between the two regions. */
export type Gap = { low: number; high: number }

export type Region = ReturnType<typeof createRegion>

export function createRegion(gap: Gap, upward: boolean) {
  const origin = upward ? gap.low : gap.high
  assert(origin % 64 === 0, 'a region starts at a cache line')
  return {
    gap,
    upward,
    grain: upward ? GRAIN.records : GRAIN.planes,
    origin,
    /** Greatest extent of the region so far: bytes beyond it are zero. */
    highWater: origin,
    sizeOf: new Map<number, number>(),
    startOf: new Map<number, number>(),
    bins: Array.from({ length: BINS }, () => []),
    usedBytes: 0,
  }
}

/** Forgets all blocks. The caller has moved the edge of the gap back and zeroed the used bytes. */
export function emptyRegion(region: Region): void {
  const edge = region.upward ? region.gap.low : region.gap.high
  assert(edge === region.origin, 'an empty region has no blocks')
  region.highWater = region.origin
  region.sizeOf.clear()
  region.startOf.clear()
  for (const bin of region.bins) bin.length = 0
  region.usedBytes = 0
}

/** Four bins per octave. */
function binOf(bytes: number): number {
  const octave = 31 - Math.clz32(bytes)
  return ((octave - 3) << 2) + ((bytes >>> (octave - 2)) & 3)
}

function grains({ grain }: Region, bytes: number): number {
  return (bytes + grain - 1) & ~(grain - 1)
}

/**
 * @returns address of a block of at least `bytes`, a multiple of the region's grain; 0 when none is available. The
 * content is undefined.
 */
export function allocate(region: Region, bytes: number): number {
  const size = grains(region, bytes)
  const start = takeFree(region, size) || takeGap(region, size)
  if (start !== 0) region.usedBytes += size
  return start
}

function takeFree(region: Region, size: number): number {
  for (let bin = binOf(size); bin < BINS; bin++) {
    const stack = region.bins[bin] as number[]
    // Blocks that were merged left their number behind; it is dropped here.
    for (let tries = 0, i = stack.length - 1; i >= 0 && tries < 16; i--, tries++) {
      const start = stack[i]
      const found = region.sizeOf.get(start)
      if (found === undefined || binOf(found) !== bin) {
        stack[i] = stack[stack.length - 1]
        stack.pop()
        continue
      }
      if (found < size) continue
      stack[i] = stack[stack.length - 1]
      stack.pop()
      region.sizeOf.delete(start)
      region.startOf.delete(start + found)
      if (found > size) insertFree(region, start + size, found - size)
      return start
    }
  }
  return 0
}

/**
 * @returns address of a free block of at least `bytes` at `least` or above, 0 when there is none. Examines every free
 * block: for compaction when memory is short.
 */
export function allocateAbove(region: Region, bytes: number, least: number): number {
  const size = grains(region, bytes)
  for (const [start, found] of region.sizeOf) {
    if (found < size || start + found - size < least) continue
    region.sizeOf.delete(start)
    region.startOf.delete(start + found)
    // From its upper end, so that the rest is nearer to the gap.
    if (found > size) insertFree(region, start, found - size)
    region.usedBytes += size
    return start + found - size
  }
  return 0
}

/** The same for a block that ends at `most` or below. */
export function allocateBelow(region: Region, bytes: number, most: number): number {
  const size = grains(region, bytes)
  for (const [start, found] of region.sizeOf) {
    if (found < size || start + size > most) continue
    region.sizeOf.delete(start)
    region.startOf.delete(start + found)
    if (found > size) insertFree(region, start + size, found - size)
    region.usedBytes += size
    return start
  }
  return 0
}

const LENT_BYTES_MIN = 256 * 1024

/**
 * Transfers free memory inside one region to the other, permanently: the edge of a region does not move back while a
 * used block is behind a hole. Only planes may be anywhere; records, which a snapshot copies as a range, must be in
 * their region.
 *
 * @returns whether there was a block for `bytes`
 */
export function lend(records: Region, planes: Region, bytes: number): boolean {
  const least = grains(planes, bytes) + planes.grain
  for (const size of [Math.max(least, LENT_BYTES_MIN), least]) {
    const start = takeFree(records, size)
    if (start === 0) continue
    const aligned = grains(planes, start)
    insertFree(planes, aligned, (start + size - aligned) & ~(planes.grain - 1))
    return true
  }
  return false
}

function takeGap(region: Region, size: number): number {
  const { gap } = region
  if (gap.high - gap.low < size) return 0
  if (region.upward) {
    const start = gap.low
    gap.low += size
    region.highWater = Math.max(region.highWater, gap.low)
    return start
  }
  gap.high -= size
  region.highWater = Math.min(region.highWater, gap.high)
  return gap.high
}

function insertFree(region: Region, start: number, size: number): void {
  region.sizeOf.set(start, size)
  region.startOf.set(start + size, start)
  ;(region.bins[binOf(size)] as number[]).push(start)
}

/** Releases a block. `bytes` is the requested size. */
export function release(region: Region, address: number, bytes: number): void {
  let start = address
  let size = grains(region, bytes)
  region.usedBytes -= size
  assert(region.usedBytes >= 0, 'more was released than allocated')
  const before = region.startOf.get(start)
  if (before !== undefined) {
    const length = region.sizeOf.get(before) as number
    region.sizeOf.delete(before)
    region.startOf.delete(start)
    start = before
    size += length
  }
  const after = region.sizeOf.get(start + size)
  if (after !== undefined) {
    region.sizeOf.delete(start + size)
    region.startOf.delete(start + size + after)
    size += after
  }
  const { gap } = region
  if (region.upward && start + size === gap.low) gap.low = start
  else if (!region.upward && start === gap.high) gap.high = start + size
  else insertFree(region, start, size)
}

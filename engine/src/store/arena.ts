/**
 * Memory of the store: who has which bytes. Only the replica thread allocates, so the books are plain objects of that
 * thread; nothing of them is shared and a snapshot does not carry them.
 *
 * Two regions share what is free: `records` grows upward, `planes` downward. Freed blocks are joined with their free
 * neighbours, so that tables growing row by row leave no trail of blocks that fit nobody.
 */

import { assert } from '@vacancy/shared'

/** Blocks are multiples of it: records are many and small, planes must lie on 16 bytes for the kernels. */
const GRAIN = { records: 8, planes: 16 } as const
const BINS = 128

/** Free space between the two regions. */
export type Gap = { low: number; high: number }

export type Region = {
  readonly gap: Gap
  readonly upward: boolean
  readonly grain: number
  readonly origin: number
  /** The gap's edge has never been past this: bytes beyond are zero. */
  highWater: number
  readonly sizeOf: Map<number, number>
  readonly startOf: Map<number, number>
  readonly bins: number[][]
  usedBytes: number
}

export function createRegion(gap: Gap, upward: boolean): Region {
  const origin = upward ? gap.low : gap.high
  assert(origin % 64 === 0, 'a region starts on a cache line')
  return {
    gap,
    upward,
    grain: upward ? GRAIN.records : GRAIN.planes,
    origin,
    highWater: origin,
    sizeOf: new Map(),
    startOf: new Map(),
    bins: Array.from({ length: BINS }, () => []),
    usedBytes: 0,
  }
}

/** Forgets all blocks; the caller has moved the gap's edge back and made what was used zero. */
export function emptyRegion(region: Region): void {
  const edge = region.upward ? region.gap.low : region.gap.high
  assert(edge === region.origin, 'an empty region has no blocks')
  region.highWater = region.origin
  region.sizeOf.clear()
  region.startOf.clear()
  for (const bin of region.bins) bin.length = 0
  region.usedBytes = 0
}

/** Four bins an octave. */
function binOf(bytes: number): number {
  const octave = 31 - Math.clz32(bytes)
  return ((octave - 3) << 2) + ((bytes >>> (octave - 2)) & 3)
}

function grains({ grain }: Region, bytes: number): number {
  return (bytes + grain - 1) & ~(grain - 1)
}

/**
 * @returns address of a block of at least `bytes`, a multiple of the region's grain; 0 when there is no room. The content is undefined.
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
    // Blocks that were joined to others left their number behind; they are dropped when met.
    for (let tries = 0, i = stack.length - 1; i >= 0 && tries < 16; i--, tries++) {
      const start = stack[i] as number
      const found = region.sizeOf.get(start)
      if (found === undefined || binOf(found) !== bin) {
        stack[i] = stack[stack.length - 1] as number
        stack.pop()
        continue
      }
      if (found < size) continue
      stack[i] = stack[stack.length - 1] as number
      stack.pop()
      region.sizeOf.delete(start)
      region.startOf.delete(start + found)
      if (found > size) insertFree(region, start + size, found - size)
      return start
    }
  }
  return 0
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

/** Gives a block back. `bytes` is what it was asked with. */
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

/** Which block an allocation gets: free blocks of any size, those of compaction, and those that one region lends. */

import { describe, expect, test } from 'vitest'
import { allocate, allocateAbove, allocateBelow, createRegion, emptyRegion, lend, release } from './arena.ts'

const LOW = 1 << 12
const HIGH = LOW + (1 << 22)
const KIB = 1024

function create() {
  const gap = { low: LOW, high: HIGH }
  return { gap, records: createRegion(gap, true), planes: createRegion(gap, false) }
}

/** Regions without a gap: allocations get free blocks only. */
function full() {
  const arena = create()
  const { gap, records } = arena
  const take = (bytes: number) => allocate(records, bytes)
  const fill = () => take(gap.high - gap.low)
  return { ...arena, take, fill }
}

test.each([
  [1, 8, 16],
  [8, 8, 16],
  [9, 16, 16],
  [16, 16, 16],
  [17, 24, 32],
  [4095, 4096, 4096],
])('%i bytes take %i of the records and %i of the planes', (bytes, ofRecords, ofPlanes) => {
  const { gap, records, planes } = create()
  expect([allocate(records, bytes), allocate(planes, bytes)]).toEqual([LOW, HIGH - ofPlanes])
  expect(gap).toEqual({ low: LOW + ofRecords, high: HIGH - ofPlanes })
  expect([records.usedBytes, planes.usedBytes]).toEqual([ofRecords, ofPlanes])
  expect([records.highWater, planes.highWater]).toEqual([gap.low, gap.high])
  release(records, LOW, bytes)
  release(planes, HIGH - ofPlanes, bytes)
  expect(gap).toEqual({ low: LOW, high: HIGH })
  expect([records.highWater, planes.highWater]).toEqual([LOW + ofRecords, HIGH - ofPlanes])
})

test('the gap is used to its last byte, and not beyond', () => {
  const { gap, records, planes } = create()
  allocate(records, HIGH - LOW - 32)
  expect([allocate(records, 40), allocate(planes, 48)]).toEqual([0, 0])
  expect(allocate(planes, 32)).toBe(HIGH - 32)
  expect(gap.low).toBe(gap.high)
  expect([allocate(records, 1), allocate(planes, 1)]).toEqual([0, 0])
})

test.each([8, 16, 24, 56, 64, 72, 120, 128, 1000, 4096, 4104, 65_528, 65_536, 300_000])(
  'a free block of %i bytes serves every size up to its own, and its rest the next one',
  (bytes) => {
    for (const size of [8, 16, 24, 32, 40, 48, 56, 64, 72, 96, 104, 112, 120, 128, bytes - 8, bytes, bytes + 8]) {
      if (size <= 0) continue
      const { records, take, fill } = full()
      const block = take(bytes)
      fill()
      release(records, block, bytes)
      const used = records.usedBytes
      expect(take(size), `${size} bytes`).toBe(size <= bytes ? block : 0)
      expect(records.usedBytes).toBe(size <= bytes ? used + size : used)
      if (size >= bytes) continue
      expect(take(bytes - size + 8)).toBe(0)
      expect(take(bytes - size)).toBe(block + size)
      expect(take(8)).toBe(0)
    }
  },
)

test.each([[[0, 1, 2]], [[0, 2, 1]], [[1, 0, 2]], [[1, 2, 0]], [[2, 0, 1]], [[2, 1, 0]]])(
  'neighbours that are free become one block, released in any order: %j',
  (order) => {
    const { records, take, fill } = full()
    const sizes = [24, 80, 256]
    const blocks = sizes.map(take)
    fill()
    for (const n of order) release(records, blocks[n] as number, sizes[n] as number)
    expect(take(24 + 80 + 256 + 8)).toBe(0)
    expect(take(24 + 80 + 256)).toBe(blocks[0])
  },
)

test('a block next to the gap returns to it, with the free blocks before it', () => {
  const { gap, records, planes } = create()
  const [first, second] = [allocate(records, 24), allocate(records, 40)]
  const [upper, lower] = [allocate(planes, 32), allocate(planes, 48)]
  release(records, first, 24)
  release(planes, upper, 32)
  expect(gap).toEqual({ low: LOW + 64, high: HIGH - 80 })
  release(records, second, 40)
  release(planes, lower, 48)
  expect(gap).toEqual({ low: LOW, high: HIGH })
})

test('a block behind one that has returned to the gap follows it', () => {
  const { gap, records, planes } = create()
  const upper = [48, 32, 16].map((bytes) => allocate(planes, bytes)) as [number, number, number]
  const lower = [24, 40, 8].map((bytes) => allocate(records, bytes)) as [number, number, number]
  release(planes, upper[1], 32)
  release(records, lower[1], 40)
  release(planes, upper[2], 16)
  release(records, lower[2], 8)
  expect(gap).toEqual({ low: LOW + 24, high: HIGH - 48 })
  release(planes, upper[0], 48)
  release(records, lower[0], 24)
  expect(gap).toEqual({ low: LOW, high: HIGH })
  expect([records.sizeOf.size, records.startOf.size, planes.sizeOf.size, planes.startOf.size]).toEqual([0, 0, 0, 0])
})

test('an emptied region has no free blocks and its first extent', () => {
  const { gap, records, take, fill } = full()
  const block = take(64)
  fill()
  release(records, block, 64)
  gap.low = LOW
  emptyRegion(records)
  expect(records).toMatchObject({ highWater: LOW, usedBytes: 0 })
  expect([take(64), take(64)]).toEqual([LOW, LOW + 64])
})

describe('compaction takes a free block', () => {
  const withHole = () => {
    const arena = full()
    const [low, , hole] = [64, 64, 128, 64].map(arena.take) as [number, number, number]
    arena.fill()
    release(arena.records, low, 64)
    release(arena.records, hole, 128)
    return { ...arena, low, hole, used: arena.records.usedBytes }
  }

  test('at an address or above, from its upper end', () => {
    const { records, take, hole, used } = withHole()
    expect(allocateAbove(records, 48, hole + 81)).toBe(0)
    expect(records.usedBytes).toBe(used)
    expect(allocateAbove(records, 45, hole + 80)).toBe(hole + 80)
    expect(records.usedBytes).toBe(used + 48)
    // The rest is below it.
    expect(allocateAbove(records, 81, hole)).toBe(0)
    expect(allocateAbove(records, 80, hole)).toBe(hole)
    expect(take(72)).toBe(0)
    expect(allocateAbove(records, 64, LOW)).toBe(LOW)
  })

  test('that ends at an address or below, from its lower end', () => {
    const { records, take, low, hole, used } = withHole()
    expect(allocateBelow(records, 72, hole + 71)).toBe(0)
    expect(records.usedBytes).toBe(used)
    expect(allocateBelow(records, 65, hole + 72)).toBe(hole)
    expect(records.usedBytes).toBe(used + 72)
    expect(allocateBelow(records, 16, low + 15)).toBe(0)
    expect(allocateBelow(records, 16, low + 16)).toBe(low)
    expect([take(56), take(48)]).toEqual([hole + 72, low + 16])
    expect(allocateBelow(records, 8, HIGH)).toBe(0)
  })

  test('of its whole size, which is then not free any more', () => {
    const { records, take, low, hole } = withHole()
    expect([allocateAbove(records, 128, 0), allocateBelow(records, 64, HIGH)]).toEqual([hole, low])
    expect([allocateAbove(records, 8, 0), allocateBelow(records, 8, HIGH), take(8)]).toEqual([0, 0, 0])
    release(records, hole, 128)
    expect(take(128)).toBe(hole)
  })
})

describe('free records are lent to the planes', () => {
  const withHole = (bytes: number, shift = 0) => {
    const arena = full()
    if (shift > 0) arena.take(shift)
    const hole = arena.take(bytes)
    arena.fill()
    release(arena.records, hole, bytes)
    return { ...arena, hole }
  }

  test.each([0, 8])('as far as the wanted block fits, aligned for planes: a hole at %i', (shift) => {
    for (const [bytes, isLent] of [
      [112, false],
      [120, false],
      [128, true],
      [136, true],
    ] as const) {
      const { records, planes, hole } = withHole(bytes, shift)
      expect(lend(records, planes, 100), `${bytes} bytes`).toBe(isLent)
      expect(allocate(planes, 100)).toBe(isLent ? Math.ceil(hole / 16) * 16 : 0)
      expect(planes.usedBytes).toBe(isLent ? 112 : 0)
    }
  })

  test('256 KiB at once where there are so many, and the rest stays', () => {
    const { records, planes, hole, take } = withHole(300 * KIB)
    expect(lend(records, planes, 16)).toBe(true)
    expect(allocate(planes, 256 * KIB + 16)).toBe(0)
    expect(allocate(planes, 256 * KIB)).toBe(hole)
    expect(take(44 * KIB + 8)).toBe(0)
    expect(take(44 * KIB)).toBe(hole + 256 * KIB)
    expect(lend(records, planes, 16)).toBe(false)
  })

  test('more than 256 KiB when the block needs more', () => {
    const { records, planes, hole } = withHole(300 * KIB)
    expect(lend(records, planes, 300 * KIB)).toBe(false)
    expect(lend(records, planes, 300 * KIB - 16)).toBe(true)
    expect(allocate(planes, 300 * KIB - 16)).toBe(hole)
  })
})

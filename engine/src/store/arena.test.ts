import fc from 'fast-check'
import { expect, test } from 'vitest'
import { allocate, createRegion, type Region, release } from './arena.ts'

const LOW = 1 << 12
const HIGH = 1 << 20

type Block = { readonly region: Region; readonly address: number; readonly bytes: number }

test('blocks of both regions never overlap, are aligned, and leave no bytes in use when all are released', () => {
  const step = fc.record({
    inRecords: fc.boolean(),
    bytes: fc.integer({ min: 1, max: 5000 }),
    /** Index of the block to release instead, if any. */
    victim: fc.option(fc.nat(), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const gap = { low: LOW, high: HIGH }
      const records = createRegion(gap, true)
      const planes = createRegion(gap, false)
      const blocks: Block[] = []
      for (const { inRecords, bytes, victim } of steps) {
        if (victim !== undefined && blocks.length > 0) {
          const [block] = blocks.splice(victim % blocks.length, 1) as [Block]
          release(block.region, block.address, block.bytes)
          continue
        }
        const region = inRecords ? records : planes
        const address = allocate(region, bytes)
        if (address === 0) continue
        expect(address % (inRecords ? 8 : 16)).toBe(0)
        blocks.push({ region, address, bytes })
      }
      const sorted = blocks.toSorted((a, b) => a.address - b.address)
      for (const [i, { address, bytes }] of sorted.entries()) {
        expect(address).toBeGreaterThanOrEqual(LOW)
        expect(address + bytes).toBeLessThanOrEqual(sorted[i + 1]?.address ?? HIGH)
      }
      for (const { region, address, bytes } of blocks) release(region, address, bytes)
      expect([records.usedBytes, planes.usedBytes]).toEqual([0, 0])
      expect(gap).toEqual({ low: LOW, high: HIGH })
    }),
  )
})

test('a released block is reused before the gap', () => {
  const gap = { low: LOW, high: HIGH }
  const records = createRegion(gap, true)
  const first = allocate(records, 88)
  const small = allocate(records, 8)
  allocate(records, 56)
  release(records, first, 88)
  release(records, small, 8)
  const low = gap.low

  expect(allocate(records, 96)).toBe(first)
  expect(gap.low).toBe(low)
})

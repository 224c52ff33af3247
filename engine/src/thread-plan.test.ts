import { expect, test } from 'vitest'
import { type EngineSettings, loadEngineConfig } from './config.ts'
import { hitBytes } from './search/parameters.ts'
import { SLABS, slabAreaBytes } from './tcp/slabs.ts'
import { planThreads } from './thread-plan.ts'

const settingsOf = (differs: Partial<EngineSettings> = {}): EngineSettings => ({
  ...loadEngineConfig({ file: undefined, cores: 8 }).values,
  ...differs,
})

test.each([
  [1, 1],
  [32_767, 14],
  [10_000, 60],
])('a slab has room for a reply of %i hits with %i nights, in whole pages', (queryLimit, maxDatesInQuery) => {
  const { slabBytes, slabs, scratchBytes } = planThreads(settingsOf({ queryLimit, maxDatesInQuery }), 8)

  expect(slabBytes).toBeGreaterThanOrEqual(64 + queryLimit * hitBytes(maxDatesInQuery))
  expect(slabBytes % 8192).toBe(0)
  expect(slabs).toBeGreaterThanOrEqual(2)
  expect(slabs).toBeLessThanOrEqual(SLABS)
  expect(scratchBytes).toBeGreaterThanOrEqual(16_384 + slabAreaBytes(slabBytes, slabs))
})

test('the memory that is named as the least is enough, and a byte less is not', () => {
  const plan = (memoryMaxBytes: number) => planThreads(settingsOf({ memoryMaxBytes, servingThreads: 64 }), 64)
  let least = 0
  try {
    plan(1 << 20)
  } catch (error) {
    least = Number((error as Error).message.match(/give (\d+) or more/)?.[1])
  }

  const { readers, scratchBytes } = plan(least)

  expect(least).toBe(Math.ceil(1.25 * readers * scratchBytes))
  expect(() => plan(least - 1)).toThrow('is too little for 66 threads')
})

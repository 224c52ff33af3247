import { describe, expect, test } from 'vitest'
import { runModel } from '../testing/model.ts'
import { release } from './arena.ts'
import { allocatePlane, allocateRecord, createStore } from './store.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

describe('the store against a model of plain objects', () => {
  test(`small tables, which have no bitmaps (VACANCY_SEED=${SEED})`, () => {
    for (let i = 0; i < 3; i++) runModel(SEED + i, { properties: 30, segments: 3, rooms: 3, areas: 4, steps: 1000 })
  })

  test(`tables large enough for bitmaps and growth (VACANCY_SEED=${SEED})`, () => {
    runModel(SEED, { properties: 600, segments: 1, rooms: 1, areas: 90, steps: 5000 })
  })
})

test('memory released by one region is zero when the other allocates it', () => {
  const store = createStore({ memoryBytes: 5 << 20, readers: 1, scratchBytes: 4096, sessionBytesMax: 0 })
  const { memory, writer } = store
  const bytes = writer.gap.high - writer.gap.low - 4096
  for (const [give, take, region] of [
    [allocateRecord, allocatePlane, writer.records],
    [allocatePlane, allocateRecord, writer.planes],
  ] as const) {
    const block = give(store, bytes)
    memory.u8.fill(0xff, block, block + bytes)
    release(region, block, bytes)

    const taken = take(store, bytes)

    expect(memory.u8.subarray(taken, taken + bytes).every((byte) => byte === 0)).toBe(true)
    release(region === writer.records ? writer.planes : writer.records, taken, bytes)
  }
})

/** The words of a store that other threads read, its counters and digests, and memory that is always zero at first. */
import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test } from 'vitest'
import { release } from './arena.ts'
import { growthLeft } from './charge.ts'
import { PAGE_BYTES, REPLICATED_CELLS, SLOT, STATE, STATE_BYTES, STATE_START } from './layout.ts'
import {
  addDigest,
  addPair,
  addState64,
  allocatePlane,
  allocateRecord,
  appliedIndex,
  attachMemory,
  clearStore,
  countsOf,
  createStore,
  digestOfWords,
  digestWithoutPackages,
  featureLevel,
  hasGenesis,
  isMemoryFull,
  memoryReserve,
  memoryUse,
  noteShardDay,
  publish,
  refusesForMemory,
  scratchOf,
  setState,
  shardDay,
  state,
  stateDigest,
  tryAllocatePlane,
  tryAllocateRecord,
} from './store.ts'
import { retire } from './version.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const MEMORY_BYTES = 8 << 20
const SESSION_BYTES = 12_345
const create = (memoryBytes = MEMORY_BYTES) =>
  createStore({ memoryBytes, readers: 3, scratchBytes: PAGE_BYTES + 1, sessionBytesMax: SESSION_BYTES })
const store = create()
const { memory, writer } = store

beforeEach(() => {
  clearStore(store)
  writer.lackingAt = -1
})

describe('a new store', () => {
  test('is empty', () => {
    const { memory: fresh } = create()
    expect(countsOf(fresh)).toEqual({ properties: 0, packages: 0, sessions: 0 })
    expect([appliedIndex(fresh), shardDay(fresh), featureLevel(fresh), hasGenesis(fresh)]).toEqual([0, 0, 0, false])
    expect(stateDigest(fresh)).toEqual({ lo: 0, hi: 0 })
    expect([isMemoryFull(fresh), refusesForMemory(fresh)]).toEqual([false, false])
    expect(state(fresh, STATE.sessionBytesMax)).toBe(SESSION_BYTES)
  })

  test('has a scratch area of whole pages for each reader, after the state and before the records', () => {
    const areas = [0, 1, 2].map((reader) => scratchOf(memory, reader))
    const [first = 0, second = 0, third = 0] = areas
    expect(areas.map((address) => address % PAGE_BYTES)).toEqual([0, 0, 0])
    expect([second - first, third - second]).toEqual([2 * PAGE_BYTES, 2 * PAGE_BYTES])
    expect(first).toBeGreaterThanOrEqual(STATE_START + STATE_BYTES + (MEMORY_BYTES / PAGE_BYTES) * 8)
    expect(writer.records.origin).toBe(third + 2 * PAGE_BYTES)
    expect(() => scratchOf(memory, 3)).toThrow('each reader has one scratch area')
  })

  test.each([
    [(4 << 20) - 1, 'the memory of a store is 4 MiB to 4 GiB'],
    [2 ** 32 + 65_536, 'the memory of a store is 4 MiB to 4 GiB'],
  ])('does not have %i bytes', (memoryBytes, message) => {
    expect(() => createStore({ memoryBytes, readers: 1, scratchBytes: 1, sessionBytesMax: 0 })).toThrow(message)
  })

  test.each([
    [97, 1, 'reader slots are limited'],
    [1, 4 << 20, 'the memory must hold more than its scratch areas'],
  ])('does not have %i readers with %i bytes each', (readers, scratchBytes, message) => {
    expect(() => createStore({ memoryBytes: 5 << 20, readers, scratchBytes, sessionBytesMax: 0 })).toThrow(message)
  })

  test('is attached to by its memory alone, and other memory is refused', () => {
    setState(store, STATE.propertyCount, 7)
    expect(countsOf(attachMemory(memory.wasm)).properties).toBe(7)
    const other = new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true })
    expect(() => attachMemory(other)).toThrow('this memory is not a store')
    new Uint32Array(other.buffer).set(create(4 << 20).memory.u32.subarray(0, 2))
    expect(() => attachMemory(other)).not.toThrow()
    new Uint32Array(other.buffer)[1] = 99
    expect(() => attachMemory(other)).toThrow('this memory has a different layout')
  })
})

test('a cleared store is as a new one, but for its settings', () => {
  const fresh = create()
  const before = { ...writer, limbo: undefined, charge: undefined }
  for (const cell of [STATE.propertyCount, STATE.featureLevel, STATE.slots]) setState(store, cell, 9)
  const record = allocateRecord(store, 1000)
  const plane = allocatePlane(store, 5000)
  memory.u8.fill(255, record, record + 1000)
  memory.u8.fill(255, plane, plane + 5000)
  retire(store, true, plane, 5000)
  writer.sessions.set('key', 1)
  writer.sweep.push(1)
  writer.deleted.push(1 as never)
  writer.deletedRows = 4
  writer.goneProperties = 2
  writer.unsummed.push(3)
  writer.charge.bytes = 8
  writer.ledger.bytes = 6
  writer.growing = {} as never
  writer.indexCopy = {} as never
  clearStore(store)

  expect(state(memory, STATE.sessionBytesMax)).toBe(SESSION_BYTES)
  expect(stateDigest(memory)).toEqual(stateDigest(fresh.memory))
  expect([writer.gap, writer.sessions.size, writer.limbo]).toEqual([fresh.writer.gap, 0, fresh.writer.limbo])
  expect([writer.charge, writer.ledger]).toEqual([fresh.writer.charge, fresh.writer.ledger])
  expect([writer.sweep, writer.deleted, writer.unsummed]).toEqual([[], [], []])
  expect([writer.deletedRows, writer.goneProperties, writer.growing, writer.indexCopy]).toEqual([
    0,
    0,
    undefined,
    undefined,
  ])
  expect(before.recordsStart).toBe(writer.recordsStart)
  expect([allocateRecord(store, 1000), allocatePlane(store, 5000)]).toEqual([record, plane])
  expect(memory.u8.subarray(record, record + 1000).every((byte) => byte === 0)).toBe(true)
  expect(memory.u8.subarray(plane, plane + 5000).every((byte) => byte === 0)).toBe(true)
})

describe('a counter of 64 bits', () => {
  test.each([
    [[2 ** 32 - 1], 2 ** 32 - 1],
    [[2 ** 32 - 1, 1], 2 ** 32],
    [[2 ** 32, -1], 2 ** 32 - 1],
    [[3 * 2 ** 32, 5, -6], 3 * 2 ** 32 - 1],
    [[7, -7], 0],
  ])('after %j is %i', (deltas, expected) => {
    for (const delta of deltas) addState64(store, STATE.packagesLow, delta)
    expect(countsOf(memory).packages).toBe(expected)
  })

  test('never goes below zero', () => {
    addState64(store, STATE.packagesLow, 2)
    expect(() => addState64(store, STATE.packagesLow, -3)).toThrow('a counter never goes below zero')
  })
})

test.each([0, 1, 2, 3])('a genesis has at least one word, for example %i', (word) => {
  setState(store, STATE.genesis + word, 1)
  expect(hasGenesis(memory)).toBe(true)
})

describe('published words', () => {
  test.each([0, 1, 2 ** 32 - 1, 2 ** 32, 5 * 2 ** 32 + 7])('have the index %i', (index) => {
    publish(store, index)
    expect(appliedIndex(memory)).toBe(index)
  })

  test('have the day of shard time', () => {
    noteShardDay(memory, 20_500)
    expect(shardDay(memory)).toBe(20_500)
  })

  test('have the use of memory in units of 4 KiB', () => {
    allocateRecord(store, 4096)
    allocatePlane(store, 3 * 4096)
    publish(store, 1)
    const free = Math.floor((writer.gap.high - writer.gap.low) / 4096) * 4096
    expect(memoryUse(memory)).toEqual({ recordBytes: 4096, planeBytes: 3 * 4096, freeBytes: free })
  })

  test.each([
    [0, 0, false],
    [0, 1, true],
    [1, 1, false],
  ])('at level %i, %i byte below the reserve: memory full is %s', (level, below, isFull) => {
    setState(store, STATE.featureLevel, level)
    const free = () => writer.gap.high - writer.gap.low
    expect(memoryReserve(memory)).toBe(MEMORY_BYTES / 16)
    // Planes are multiples of 16 bytes.
    allocatePlane(store, free() - MEMORY_BYTES / 16 + below)
    publish(store, 1)
    expect([isMemoryFull(memory), refusesForMemory(memory)]).toEqual([isFull, isFull])
  })

  test('report a refusal for lack of memory until more is free than at that time', () => {
    const free = writer.gap.high - writer.gap.low
    writer.lackingAt = free
    publish(store, 1)
    expect(refusesForMemory(memory)).toBe(true)
    writer.lackingAt = free - 1
    publish(store, 2)
    expect([refusesForMemory(memory), writer.lackingAt]).toEqual([false, -1])
  })

  test.each([
    [1, false],
    [0, true],
    [-1, true],
  ])('from level 1 on, with %i bytes of the budget left: refused is %s', (left, isRefused) => {
    setState(store, STATE.featureLevel, 1)
    setState(store, STATE.memoryBudgetLow, 1 << 22)
    writer.charge.bytes += growthLeft(store) - left
    expect(growthLeft(store)).toBe(left)
    publish(store, 1)
    expect([refusesForMemory(memory), isMemoryFull(memory)]).toEqual([isRefused, false])
  })
})

test('large memories have a reserve of 16 MiB', () => {
  const reserveOf = (byteLength: number) => memoryReserve({ buffer: { byteLength } } as never)
  expect([255, 256, 257, 4096].map((mib) => reserveOf(mib * 2 ** 20) / 2 ** 20)).toEqual([255 / 16, 16, 16, 16])
})

describe('the digest', () => {
  const WORDS = [
    ...[STATE.lastMaintenanceDay, STATE.droppedBefore, STATE.sessionBytesMax, STATE.featureLevel],
    ...[STATE.genesis, STATE.genesis + 3, STATE.timeLow, STATE.timeHigh],
    ...[STATE.replicated, STATE.replicated + 1, STATE.replicated + REPLICATED_CELLS - 1],
  ]

  test('has none of the words below level 1', () => {
    for (const cell of WORDS) if (cell !== STATE.featureLevel) setState(store, cell, 77)
    expect(digestOfWords(memory)).toEqual({ lo: 0, hi: 0 })
  })

  test.each(WORDS)('changes in both halves with word %i', (cell) => {
    setState(store, STATE.featureLevel, 1)
    const before = digestOfWords(memory)
    setState(store, cell, state(memory, cell) + 1)
    const after = digestOfWords(memory)
    expect([after.lo === before.lo, after.hi === before.hi]).toEqual([false, false])
  })

  test('does not change with words that replicas may have differently', () => {
    setState(store, STATE.featureLevel, 1)
    const before = stateDigest(memory)
    for (const cell of [STATE.propertyCount, STATE.sessionHead, STATE.stayCount]) setState(store, cell, 9)
    expect(stateDigest(memory)).toEqual(before)
  })

  test('has its numbers: replicas of several versions must agree', () => {
    setState(store, STATE.sessionBytesMax, 0)
    setState(store, STATE.featureLevel, 1)
    expect(digestOfWords(memory)).toEqual({ lo: 3_377_085_781, hi: 3_191_477_745 })
    setState(store, STATE.sessionBytesMax, SESSION_BYTES)
  })

  test('is the sum of words, records and the packages of every day, modulo 2^32', () => {
    setState(store, STATE.featureLevel, 1)
    const words = digestOfWords(memory)
    addDigest(store, 0xffffffff, 0xfffffff0)
    addDigest(store, 3, -5)
    const records = { lo: (words.lo + 2) >>> 0, hi: (words.hi + 0xfffffff0 - 5) >>> 0 }
    expect(digestWithoutPackages(memory)).toEqual(records)
    for (const slot of [0, 1, 383]) addPair(store, STATE.slots + slot * SLOT.cells + SLOT.digestLow, 0x80000000, slot)
    expect(stateDigest(memory)).toEqual({
      lo: (records.lo + 3 * 0x80000000) >>> 0,
      hi: (records.hi + 384) >>> 0,
    })
    expect(digestWithoutPackages(memory)).toEqual(records)
  })
})

test.each([
  ['records', allocateRecord, tryAllocateRecord],
  ['planes', allocatePlane, tryAllocatePlane],
] as const)('allocated memory of %s is zero, also where it was used before', (kind, allocate, tryAllocate) => {
  const random = createRandom(SEED)
  const region = writer[kind]
  const held: [number, number][] = []
  for (let step = 0; step < 400; step++) {
    if (held.length > 0 && random.below(5) < 2) {
      const [address, bytes] = held.splice(random.below(held.length), 1)[0] as [number, number]
      release(region, address, bytes)
      continue
    }
    const bytes = 16 * (1 + random.below(40))
    const address = (random.below(2) === 0 ? allocate : tryAllocate)(store, bytes)
    const content = memory.u8.subarray(address, address + bytes)
    expect(
      content.every((byte) => byte === 0),
      `VACANCY_SEED=${SEED}, step ${step}`,
    ).toBe(true)
    content.fill(255)
    held.push([address, bytes])
  }
})

test('a trial allocation without room returns 0, and others fail with the bytes that are used', () => {
  const free = writer.gap.high - writer.gap.low
  expect([tryAllocatePlane(store, free + 16), tryAllocateRecord(store, free + 16)]).toEqual([0, 0])
  const failure = { code: 'memory_exhausted' }
  expect(() => allocateRecord(store, free + 16)).toThrow(expect.objectContaining(failure))
  expect(() => allocatePlane(store, free + 16)).toThrow(expect.objectContaining(failure))
  expect(allocatePlane(store, free - (free % 16))).toBeGreaterThan(0)
})

test('memory that no reader can reach any more is used again when it is short', () => {
  const free = writer.gap.high - writer.gap.low
  const bytes = free - (free % 16)
  const plane = allocatePlane(store, bytes)
  retire(store, true, plane, bytes)
  expect(allocatePlane(store, bytes)).toBe(plane)
})

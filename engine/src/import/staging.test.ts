import { createCodecList } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  BLOCK_BYTES,
  CODEC_BYTES,
  CONTEXT,
  CONTEXT_BYTES,
  FEATURE_ENTRIES,
  FEATURE_TEXT_AT,
  HEADER,
  HEADER_BYTES,
  MEMORY_BYTES_MAX,
  PADDING_BYTES,
  PAGE_BYTES,
  ROOM,
  ROW,
} from './layout.ts'
import {
  beginPass,
  createMemory,
  createStaging,
  FAILED,
  forEachRecord,
  leavePass,
  meetThreads,
  memoryFull,
  type Staging,
  type StagingOptions,
  takeMemory,
  touchMemory,
} from './staging.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const MEBIBYTE = 2 ** 20
const codecs = createCodecList(['breakfast', 'Frühstück'])
const index = { ids: Uint8Array.from({ length: 48 }, (_, i) => i + 1), slots: Uint32Array.of(0, 3, 1, 2), shift: 30 }

function createOf(changes: Partial<StagingOptions> = {}): Staging {
  const memory = createMemory(8 * MEBIBYTE, 0)
  const options = { memory, index, codecs, firstDay: 20_000, days: 75, threads: 2, blockBytes: 1000 }
  return createStaging({ ...options, ...changes })
}

const cellsOf = ({ memory }: Staging) => new Uint32Array(memory.buffer)
const pass = { explain: false, strictWindow: false, threads: 2 }

test.each([
  [MEBIBYTE, 0, 1],
  [MEBIBYTE, 1, 2],
  [MEBIBYTE, PAGE_BYTES, 2],
  [MEBIBYTE, PAGE_BYTES + 1, 3],
  [MEBIBYTE, 100 * MEBIBYTE, 16],
  [MEBIBYTE + PAGE_BYTES - 1, 100 * MEBIBYTE, 16],
])('a memory of at most %i bytes for %i begins with %i pages', (bytesMax, bytes, pages) => {
  const memory = createMemory(bytesMax, bytes)

  expect(memory.buffer.byteLength).toBe(pages * PAGE_BYTES)
  expect(memory.buffer).toBeInstanceOf(SharedArrayBuffer)
  expect(new Uint32Array(memory.buffer)[HEADER.limit]).toBe(MEBIBYTE)
})

test('the limit of a memory is below 4 GiB, so that every address has 32 bits', () => {
  expect(new Uint32Array(createMemory(2 ** 40, 0).buffer)[HEADER.limit]).toBe(MEMORY_BYTES_MAX)
})

test.each([1, 2, 3, 5])('%i threads touch every page of the memory once, behind the header', (threads) => {
  const memory = createMemory(MEBIBYTE, 3 * PAGE_BYTES - 1)
  const bytes = new Uint8Array(memory.buffer)
  bytes.fill(7)
  const touched = () => {
    const pages: number[] = []
    for (let at = 0; at < bytes.length; at++) if (bytes[at] === 0) pages.push(at)
    return pages
  }
  const shares: number[] = []
  for (let thread = 0; thread < threads; thread++) {
    const before = touched().length
    touchMemory(memory, thread, threads)
    shares.push(touched().length - before)
  }

  expect(touched()).toEqual(Array.from({ length: bytes.length / 4096 }, (_, page) => page * 4096 + HEADER_BYTES))
  expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
})

test('ids, slots and codec names are in the memory, where the header points to', () => {
  const staging = createOf()
  const u32 = cellsOf(staging)
  const u8 = new Uint8Array(staging.memory.buffer)

  expect([u32[HEADER.firstDay], u32[HEADER.days], u32[HEADER.propertyShift], u32[HEADER.codecCount]]).toEqual([
    20_000, 75, 30, 2,
  ])
  expect(u8.slice(u32[HEADER.propertyIds], u32[HEADER.propertyIds] + 48)).toEqual(index.ids)
  expect(u32.slice(u32[HEADER.propertySlots] / 4, u32[HEADER.propertySlots] / 4 + 4)).toEqual(index.slots)
  const names = [0, 1].map((i) => {
    const at = u32[HEADER.codecNames] + i * CODEC_BYTES
    return new TextDecoder().decode(u8.slice(at + 16, at + 16 + u32[at / 4]))
  })
  expect(names).toEqual(codecs.names)
})

test('contexts, buffers and tables do not overlap, and are on cache lines of their own', () => {
  const staging = createOf({ threads: 3 })
  const u32 = cellsOf(staging)
  const parts = [
    ...staging.contexts.map((at) => [at, CONTEXT_BYTES]),
    ...staging.buffers.map((at) => [at, staging.bufferBytes]),
    [u32[HEADER.codecNames], 2 * CODEC_BYTES + PADDING_BYTES],
    [u32[HEADER.propertyIds], 48],
    [u32[HEADER.propertySlots], 16],
    [u32[HEADER.propertyRooms], 12],
  ] as [number, number][]
  parts.sort(([a], [b]) => a - b)

  expect(parts.length).toBe(10)
  let end = HEADER_BYTES
  for (const [at, bytes] of parts) {
    expect(at % 64).toBe(0)
    expect(at - end).toBeGreaterThanOrEqual(0)
    expect(at - end).toBeLessThan(64)
    end = at + bytes
  }
  expect(staging.bufferBytes).toBe(1000 + PADDING_BYTES)
  expect(staging.base).toBe(Math.ceil(end / 64) * 64)
  expect(staging.memory.buffer.byteLength).toBeGreaterThanOrEqual(staging.base)
})

test.each([
  [1, 64],
  [128, 64],
  [129, 128],
  [367, 128],
])('a row of %i nights takes %i bytes', (days, bytes) => {
  expect(cellsOf(createOf({ days }))[HEADER.rowBytes]).toBe(bytes)
})

test('properties that leave no block to the packages do not fit', () => {
  const base = createOf().base
  const fits = Math.ceil((base + BLOCK_BYTES) / PAGE_BYTES) * PAGE_BYTES

  expect(createOf({ memory: createMemory(fits, 0) }).base).toBe(base)
  expect(() => createOf({ memory: createMemory(fits - PAGE_BYTES, 0) })).toThrow(/do not fit in \d+ MiB/)
})

test('the error of a full memory names its size and what to do', () => {
  expect(memoryFull(5 * MEBIBYTE + 1).message).toMatch(/^The packages do not fit in 5 MiB of memory\. Narrow the dates/)
  expect(memoryFull(5 * MEBIBYTE).code).toBe('failure')
})

test.each([
  [false, false],
  [true, false],
  [false, true],
])('a pass begins empty, with explain %s and strict %s', (explain, strictWindow) => {
  const staging = createOf()
  beginPass(staging, pass)
  const u32 = cellsOf(staging)
  const dirty = [HEADER.rows, HEADER.rooms, HEADER.failed, HEADER.nextRange, HEADER.nextTask]
  for (const cell of dirty) u32[cell] = 9
  takeMemory(staging.memory, 1000)
  const rooms = u32[HEADER.propertyRooms] >>> 2
  const end = u32[HEADER.top]
  cellsOf(staging).fill(9, staging.base >>> 2, end >>> 2)
  u32.fill(9, rooms, rooms + 3)
  const inContext = [CONTEXT.cursor, CONTEXT.accepted, CONTEXT.room, CONTEXT.features]
  for (const context of staging.contexts) {
    for (const offset of [...inContext, CONTEXT.features + FEATURE_ENTRIES * 16 - 4]) u32[(context + offset) >>> 2] = 9
  }

  beginPass(staging, { explain, strictWindow, threads: 2 })

  const now = cellsOf(staging)
  expect(dirty.map((cell) => now[cell])).toEqual([0, 0, 0, 0, 0])
  expect([...now.slice(rooms, rooms + 3)]).toEqual([0, 0, 0])
  expect(now.slice(staging.base >>> 2, end >>> 2).every((cell) => cell === 0)).toBe(true)
  expect([now[HEADER.explain], now[HEADER.strictWindow]]).toEqual([explain ? 1 : 0, strictWindow ? 1 : 0])
  expect(now[HEADER.threads]).toBe(2 << 16)
  for (const context of staging.contexts) {
    for (const offset of inContext) expect(now[(context + offset) >>> 2]).toBe(0)
    expect(now[(context + CONTEXT.features + FEATURE_ENTRIES * 16 - 4) >>> 2]).toBe(0)
    expect(now[(context + CONTEXT.featureTextNext) >>> 2]).toBe(context + FEATURE_TEXT_AT)
  }
  // The codec names and ids stay.
  expect([now[HEADER.codecCount], now[now[HEADER.codecNames] >>> 2]]).toEqual([2, 9])
})

test('both slot tables begin behind each other, as their shifts say', () => {
  const staging = createOf()
  beginPass(staging, pass)
  const u32 = cellsOf(staging)
  const bytesOf = (shift: number) => 2 ** (32 - shift) * 8

  expect(u32[HEADER.rowSlots]).toBe(staging.base)
  expect(u32[HEADER.roomSlots]).toBe(staging.base + bytesOf(u32[HEADER.rowShift]))
  expect(u32[HEADER.top]).toBe(u32[HEADER.roomSlots] + bytesOf(u32[HEADER.roomShift]))
  expect(staging.memory.buffer.byteLength).toBeGreaterThanOrEqual(u32[HEADER.top])
})

test('memory is taken in cache lines, up to the limit', () => {
  const staging = createOf()
  beginPass(staging, pass)
  const u32 = cellsOf(staging)
  const top = u32[HEADER.top]

  expect([1, 64, 65, 0, 64].map((bytes) => takeMemory(staging.memory, bytes) - top)).toEqual([0, 64, 128, 256, 256])
  const left = u32[HEADER.limit] - u32[HEADER.top]
  expect(() => takeMemory(staging.memory, left + 1)).toThrow(/do not fit in 8 MiB/)
  expect(takeMemory(staging.memory, left)).toBe(u32[HEADER.limit] - left)
  expect(staging.memory.buffer.byteLength).toBe(8 * MEBIBYTE)
})

/** Records with drawn hashes in a slot table, as a kernel stores them. */
function putRecords(
  staging: Staging,
  table: number,
  count: number,
  hashCell: number,
  seed: number,
): Map<number, number> {
  const random = createRandom(seed)
  const u32 = cellsOf(staging)
  const hashes = new Map<number, number>()
  const at = u32[table] >>> 2
  const slots = 2 ** (32 - u32[table + 1])
  for (let i = 0; i < count; i++) {
    // Some hashes are in the last slot, so that the next ones are at the beginning.
    const hash = random.below(8) === 0 ? 0xffffffff - random.below(4) : random.next()
    const record = takeMemory(staging.memory, 64)
    cellsOf(staging)[(record >>> 2) + hashCell] = hash
    let slot = Math.floor((hash / 2 ** 32) * slots)
    while (u32[at + slot * 2] !== 0) slot = (slot + 1) % slots
    u32[at + slot * 2] = record
    hashes.set(record, hash)
  }
  u32[table === HEADER.rowSlots ? HEADER.rows : HEADER.rooms] = count
  return hashes
}

/** Whether each record is found from the slot of its hash on, and its tag is right. */
function findAll(staging: Staging, table: number, hashes: ReadonlyMap<number, number>): boolean {
  const u32 = cellsOf(staging)
  const at = u32[table] >>> 2
  const slots = 2 ** (32 - u32[table + 1])
  return [...hashes].every(([record, hash]) => {
    let slot = hash >>> u32[table + 1]
    while (u32[at + slot * 2] !== 0 && u32[at + slot * 2] !== record) slot = (slot + 1) % slots
    return u32[at + slot * 2] === record && u32[at + slot * 2 + 1] === (hash | 1) >>> 0
  })
}

test.each([
  [511, 1024],
  [512, 2048],
])('%i room types need a table of %i slots, in which all are found', (count, slots) => {
  const staging = createOf()
  beginPass(staging, { ...pass, threads: 1 })
  const u32 = cellsOf(staging)
  const rowSlots = u32[HEADER.rowSlots]
  const hashes = putRecords(staging, HEADER.roomSlots, count, ROOM.hash, SEED)

  meetThreads(staging.memory)

  const now = cellsOf(staging)
  expect(2 ** (32 - now[HEADER.roomShift])).toBe(slots)
  expect([now[HEADER.growths], now[HEADER.threads], now[HEADER.failed]]).toEqual([1, 1 << 16, FAILED.no])
  expect(now[HEADER.rowSlots]).toBe(rowSlots)
  if (slots > 1024) expect(findAll(staging, HEADER.roomSlots, hashes), `VACANCY_SEED=${SEED}`).toBe(true)
  const visited: number[] = []
  forEachRecord(staging.memory, HEADER.roomSlots, (record) => visited.push(record))
  expect(visited.sort((a, b) => a - b)).toEqual([...hashes.keys()])
})

test('rows move to a larger table by their own hashes', () => {
  const staging = createOf()
  beginPass(staging, { ...pass, threads: 1 })
  const hashes = putRecords(staging, HEADER.rowSlots, 8192, ROW.hash, SEED)

  meetThreads(staging.memory)

  expect(2 ** (32 - cellsOf(staging)[HEADER.rowShift])).toBe(2 ** 15)
  expect(findAll(staging, HEADER.rowSlots, hashes), `VACANCY_SEED=${SEED}`).toBe(true)
})

test('a thread that ends its pass is not waited for, and grows the tables for one that waits', () => {
  const staging = createOf()
  beginPass(staging, { ...pass, threads: 3 })
  const u32 = cellsOf(staging)

  leavePass(staging.memory)
  expect([u32[HEADER.threads], u32[HEADER.growths]]).toEqual([2 << 16, 0])
  // One of the two others waits.
  u32[HEADER.threads] = (2 << 16) | 1
  leavePass(staging.memory)
  expect([u32[HEADER.threads], u32[HEADER.growths]]).toEqual([1 << 16, 1])
  leavePass(staging.memory)
  expect([u32[HEADER.threads], u32[HEADER.growths]]).toEqual([0, 1])
})

test('the last of several threads to meet grows the tables', () => {
  const staging = createOf()
  beginPass(staging, { ...pass, threads: 3 })
  const u32 = cellsOf(staging)
  u32[HEADER.threads] = (3 << 16) | 2

  meetThreads(staging.memory)

  expect([u32[HEADER.threads], u32[HEADER.growths]]).toEqual([3 << 16, 1])
})

test('tables that do not fit end the pass instead of its threads', () => {
  const staging = createOf()
  beginPass(staging, { ...pass, threads: 1 })
  const u32 = cellsOf(staging)
  u32[HEADER.rooms] = 512
  u32[HEADER.limit] = u32[HEADER.top] + 1000

  meetThreads(staging.memory)

  expect([u32[HEADER.failed], u32[HEADER.growths], u32[HEADER.threads]]).toEqual([FAILED.memoryFull, 1, 1 << 16])
})

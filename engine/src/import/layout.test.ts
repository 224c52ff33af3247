import { expect, test } from 'vitest'
import {
  CHUNK_BYTES,
  CHUNK_NIGHTS,
  CONTEXT,
  CONTEXT_BYTES,
  FEATURE_ENTRIES,
  FEATURE_TEXT_AT,
  FEATURE_TEXT_BYTES,
  finishHash,
  HEADER,
  HEADER_BYTES,
  hashId,
  hashRow,
  MEMORY_BYTES_MAX,
  PAGE_BYTES,
  RESULT_BYTES,
  ROOM,
  ROOM_TEXT_AT,
  ROW,
  STOP,
  WINDOW_DAYS_MAX,
} from './layout.ts'

test.each([
  [0, 0],
  [1, 0x514e28b7],
  [2, 0x30f4c306],
  [0xffffffff, 0x81f16f39],
])('%i is finished as by MurmurHash3', (hash, finished) => {
  expect(finishHash(hash)).toBe(finished)
})

/** The formula of the compiled kernel, with numbers of unlimited size. */
function hashIdExactly(w: readonly number[]): number {
  const u32 = (value: bigint) => BigInt.asUintN(32, value)
  const times = (i: number, factor: bigint) => u32(BigInt(w[i] as number) * factor)
  const a = times(0, 0x9e3779b1n) ^ times(1, 0x85ebca77n)
  const b = times(2, 0xc2b2ae3dn) ^ times(3, 0x27d4eb2fn)
  return finishHash(Number(u32((a ^ (a >> 15n)) + u32((b ^ (b >> 13n)) * 0x165667b1n))))
}

test.each([
  [[0, 0, 0, 0]],
  [[1, 2, 3, 4]],
  [[4, 3, 2, 1]],
  [[0xffffffff, 0x80000000, 0x7fffffff, 0xdeadbeef]],
  [[0x2d6d7261, 0x70, 0, 0]],
])('the hash of an id of the words %j is exact in 32 bits', (words) => {
  const [w0, w1, w2, w3] = words as [number, number, number, number]

  expect(hashId(w0, w1, w2, w3)).toBe(hashIdExactly(words))
})

test('the hash of a row depends on property and room type', () => {
  expect(hashRow(7, 0)).toBe(finishHash(7))
  expect(hashRow(0, 1)).toBe(finishHash(0x9e3779b1))
  expect(hashRow(0x9e3779b1, 1)).toBe(0)
})

test('cells that threads change are alone on their cache line, behind those that are set once', () => {
  const { limit, top, rows, rooms, failed, threads, growths, nextRange, nextTask, ...others } = HEADER
  const changing = [top, rows, rooms, failed, threads, growths, nextRange, nextTask]
  const lines = changing.map((cell) => Math.floor(cell / 16))

  expect(new Set(lines).size).toBe(changing.length)
  expect(new Set(Object.values(HEADER)).size).toBe(Object.keys(HEADER).length)
  for (const cell of [limit, ...Object.values(others)]) expect(cell).toBeLessThan(32)
  for (const cell of changing) {
    expect(cell).toBeGreaterThanOrEqual(32)
    expect(cell * 4).toBeLessThan(HEADER_BYTES)
  }
  // Each shift follows the address of its table (staging.ts).
  expect([HEADER.rowShift - HEADER.rowSlots, HEADER.roomShift - HEADER.roomSlots]).toEqual([1, 1])
})

test('the parts of a context do not overlap, and doubles are aligned', () => {
  const sizes: { readonly [name in keyof typeof CONTEXT]: number } = {
    ...{ cursor: 4, blockNext: 4, blockEnd: 4, spareRow: 4, spareChunk: 4, roomLength: 4, featureTextNext: 4 },
    ...{ accepted: 8, skipped: 8, lines: 8, firstLine: 8, id: 16, bytesDone: 8, room: 256 + 16, propertyId: 16 },
    ...{ batch: 32 * 64, features: FEATURE_ENTRIES * 16 },
  }
  const parts = Object.entries(CONTEXT)
    .map(([name, at]) => ({
      at,
      end: at + sizes[name as keyof typeof CONTEXT],
      size: sizes[name as keyof typeof CONTEXT],
    }))
    .sort((a, b) => a.at - b.at)

  for (const [i, { at, end, size }] of parts.entries()) {
    expect(end).toBeLessThanOrEqual(parts[i + 1]?.at ?? FEATURE_TEXT_AT)
    expect(at % Math.min(size, 8)).toBe(0)
  }
  expect(FEATURE_TEXT_AT + FEATURE_TEXT_BYTES).toBe(CONTEXT_BYTES)
})

test('records have room for what they hold', () => {
  expect(Math.max(...Object.values(ROOM)) * 4 + 4).toBeLessThanOrEqual(ROOM_TEXT_AT)
  expect(ROOM_TEXT_AT % 16).toBe(0)
  expect([ROW.id, ROW.room, ROW.property, ROW.hash, ROW.base, ROW.chunks]).toEqual([0, 4, 5, 6, 7, 8])
  expect(CHUNK_BYTES).toBe(CHUNK_NIGHTS * 8)
  // Packages and digests, then a bit for each night.
  expect((RESULT_BYTES - 16) * 8).toBeGreaterThanOrEqual(WINDOW_DAYS_MAX)
  // A leap year and a day more.
  expect(WINDOW_DAYS_MAX).toBe(367)
  expect(MEMORY_BYTES_MAX).toBe(2 ** 32 - PAGE_BYTES)
})

test('each reason to stop is a number of its own', () => {
  expect(Object.values(STOP)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
})

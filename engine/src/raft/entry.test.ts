/** Entries as bytes: positions of their fields, limits of their numbers, and parts of batches. */
import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import {
  ENTRY_BYTES_MAX,
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  encodeEntry,
  entryKind,
  entryLength,
  entryTerm,
  inspectBatch,
  readU64,
  skipEntries,
  sliceBatch,
  viewOf,
  writeEntryHeader,
  writeU64,
} from './entry.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

/** A batch of entries with these payloads. */
function batchOf(firstIndex: number, payloads: readonly string[], term = 3, kinds: readonly (1 | 2 | 3)[] = []) {
  const parts = payloads.map((text, n) => encodeEntry(term, kinds[n] ?? 1, new TextEncoder().encode(text)))
  return { firstIndex, count: parts.length, bytes: Uint8Array.from(parts.flatMap((part) => [...part])) }
}

function payloadsOf({ bytes, count }: EntryBatch): string[] {
  const view = viewOf(bytes)
  return Array.from({ length: count }, (_, n) => {
    const at = skipEntries(view, 0, n) + ENTRY_HEADER_BYTES
    return new TextDecoder().decode(bytes.subarray(at, at + entryLength(view, at - ENTRY_HEADER_BYTES)))
  })
}

test('the format in files and between nodes is fixed', () => {
  expect([ENTRY_KIND, ENTRY_BYTES_MAX]).toEqual([{ command: 1, empty: 2, configuration: 3 }, 1_048_576])
  expect([...encodeEntry(0x0102_0304_0506, ENTRY_KIND.configuration, Uint8Array.of(0xaa, 0xbb))]).toEqual([
    ...[6, 5, 4, 3, 2, 1, 0, 0],
    3,
    ...[2, 0, 0, 0],
    ...[0xaa, 0xbb],
  ])
})

test('a header inside a buffer has its term, kind and length', () => {
  const bytes = new Uint8Array(20).fill(0xff)
  const view = viewOf(bytes.subarray(2))
  writeEntryHeader(view, 3, 9, ENTRY_KIND.empty, 70_000)
  expect([entryTerm(view, 3), entryKind(view, 3), entryLength(view, 3)]).toEqual([9, 2, 70_000])
  expect([bytes[4], bytes[5], bytes[18]]).toEqual([0xff, 9, 0xff])
})

describe('a 64-bit number', () => {
  test.each([
    [0, [0, 0, 0, 0, 0, 0, 0, 0]],
    [1, [1, 0, 0, 0, 0, 0, 0, 0]],
    [2 ** 32 - 1, [255, 255, 255, 255, 0, 0, 0, 0]],
    [2 ** 32, [0, 0, 0, 0, 1, 0, 0, 0]],
    [2 ** 53 - 1, [255, 255, 255, 255, 255, 255, 31, 0]],
  ])('%i is read as it was written', (value, expected) => {
    const bytes = new Uint8Array(8)
    writeU64(viewOf(bytes), 0, value)
    expect([...bytes]).toEqual(expected)
    expect(readU64(viewOf(bytes), 0)).toBe(value)
  })

  test('beyond the safe integers is not one', () => {
    expect(readU64(viewOf(Uint8Array.of(0, 0, 0, 0, 0, 0, 32, 0)), 0)).toBe(-1)
    expect(readU64(viewOf(new Uint8Array(8).fill(255)), 0)).toBe(-1)
  })

  test.each([-1, 0.5, 2 ** 53, Number.NaN])('%d cannot be written', (value) => {
    expect(() => writeU64(viewOf(new Uint8Array(8)), 0, value)).toThrow('safe integers')
  })
})

test('a slice of a batch has the entries from its first to its last index', () => {
  const random = createRandom(SEED)
  for (let run = 0; run < 50; run++) {
    const count = 1 + random.below(6)
    const payloads = Array.from({ length: count }, (_, n) => String(n).repeat(random.below(4)))
    const batch = batchOf(10, payloads)
    for (let from = 0; from < count; from++) {
      for (let to = from; to < count; to++) {
        const slice = sliceBatch(batch, 10 + from, 10 + to)
        const message = `VACANCY_SEED=${SEED}, run ${run}, ${from} to ${to}`
        expect([slice.firstIndex, slice.count], message).toEqual([10 + from, to - from + 1])
        expect(payloadsOf(slice), message).toEqual(payloads.slice(from, to + 1))
        expect(inspectBatch(slice), message).toEqual([])
        expect(slice.bytes.buffer, message).toBe(batch.bytes.buffer)
      }
    }
    expect(sliceBatch(batch, 10, 9 + count)).toBe(batch)
  }
})

test.each([
  [9, 11],
  [10, 13],
  [12, 11],
])('entries %i to %i are not a slice of the batch 10 to 12', (from, to) => {
  expect(() => sliceBatch(batchOf(10, ['a', 'b', 'c']), from, to)).toThrow('within its batch')
})

describe('an inspected batch', () => {
  test('names its configuration entries', () => {
    expect(inspectBatch(batchOf(7, ['a', '', 'c', 'd'], 3, [1, 3, 2, 3]))).toEqual([8, 10])
    expect(inspectBatch(batchOf(7, ['a']))).toEqual([])
  })

  const batch = batchOf(7, ['a', 'b'])
  const otherTerm = batchOf(7, ['c'], 4)
  test.each<[string, EntryBatch, string]>([
    ['no entries', { ...batch, count: 0 }, 'holds entries'],
    ['more entries than bytes', { ...batch, count: 3 }, 'as many entries as its count'],
    ['fewer entries than bytes', { ...batch, count: 1 }, 'fill their batch'],
    ['half an entry at its end', { ...batch, bytes: batch.bytes.subarray(0, 20) }, 'as many entries as its count'],
    ['an entry without its last byte', { ...batch, bytes: batch.bytes.subarray(0, 27) }, 'fill their batch'],
    [
      'entries of two terms',
      { firstIndex: 7, count: 3, bytes: Uint8Array.from([...batch.bytes, ...otherTerm.bytes]) },
      'the same term',
    ],
  ])('with %s is refused', (_, broken, message) => {
    expect(() => inspectBatch(broken)).toThrow(message)
  })
})

/** How tables are assigned to parts, at the limits; the bytes of one part; and what of a part is refused. */

import { crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { nameHash, packageHash, rowKey } from '../store/digest.ts'
import { createTestSource, type LaidPlanes, layPlanes, type TestSource } from '../testing/snapshot-source.ts'
import { type ChunkExpectation, sha256 } from './format.ts'
import { DEAD_ROW, firstPlanes, type TableShape } from './schema.ts'
import { createWordsCoder, decodeWords, type EncodedPart, encodeWords, planWords, type WordsPart } from './words.ts'

/** Words of a part: 4 MiB of a word and a mask each. */
const WORDS_MAX = 466_033

const shape = (rows: number, nights: number): TableShape => ({
  ...{ segment: 0, roomType: 0, rows: new Uint32Array(rows) },
  days: Uint32Array.from({ length: nights }, (_, night) => 100 + night),
})

/** `table: first row + rows` of each slice, by part and block. */
const planOf = (tables: TableShape[]) =>
  planWords(tables).map((block) =>
    block.map(({ slices }) => slices.map(({ table, rowStart, rows }) => `${table}: ${rowStart} + ${rows}`)),
  )

describe('parts', () => {
  test.each<[string, [rows: number, nights: number][], string[][][]]>([
    ['no table', [], []],
    [
      'tables without rows or nights',
      [
        [0, 5],
        [5, 0],
        [1, 1],
      ],
      [[['2: 0 + 1']]],
    ],
    [
      'small tables share a part',
      [
        [3, 5],
        [2, 7],
      ],
      [[['0: 0 + 3', '1: 0 + 2']]],
    ],
    ['the largest table of a year that is not cut', [[1152, 366]], [[['0: 0 + 1152']]]],
    ['one row more', [[1153, 366]], [[['0: 0 + 1152'], ['0: 1152 + 1']]]],
    ['a table of several whole parts', [[2304, 366]], [[['0: 0 + 1152'], ['0: 1152 + 1152']]]],
    ['the most rows of a part', [[65_536, 1]], [[['0: 0 + 65536']]]],
    ['one row more than that', [[65_537, 2]], [[['0: 0 + 65536'], ['0: 65536 + 1']]]],
    [
      'a large table ends the part of those before it, and its own parts are not shared',
      [
        [3, 5],
        [1153, 366],
        [2, 5],
        [1, 5],
      ],
      [[['0: 0 + 3']], [['1: 0 + 1152'], ['1: 1152 + 1']], [['2: 0 + 2', '3: 0 + 1']]],
    ],
    [
      'two large tables',
      [
        [1153, 366],
        [1153, 366],
      ],
      [
        [['0: 0 + 1152'], ['0: 1152 + 1']],
        [['1: 0 + 1152'], ['1: 1152 + 1']],
      ],
    ],
  ])('%s', (_, tables, plan) => {
    expect(planOf(tables.map(([rows, nights]) => shape(rows, nights)))).toEqual(plan)
  })

  test.each([
    [0, [8]],
    [1, [7, 1]],
  ])('tables of as many words as a part has, and %i more', (more, tablesOfBlocks) => {
    const full = Array.from({ length: 7 }, () => shape(65_536, 1))
    const tables = [...full, shape(WORDS_MAX - 7 * 65_536 + more, 1)]

    expect(planWords(tables).map(([part]) => part?.slices.length)).toEqual(tablesOfBlocks)
    // The words of a block are counted from its own first table on.
    expect(planWords([...tables, ...tables]).map(([part]) => part?.slices.length)).toEqual(
      more === 0 ? [8, 8] : [7, 7, 2],
    )
  })

  test('a part knows its words and masks', () => {
    expect(planWords([shape(3, 5), shape(2, 7), shape(1153, 366)]).flat()).toMatchObject([
      { words: 29, masks: 12 },
      { words: 1152 * 366, masks: 366 },
      { words: 366, masks: 366 },
    ])
  })
})

/** Two tables of one segment: rows of properties 0 and 1, and of property 1 behind a dead row. */
const base = createTestSource({ segments: 1, propertiesPerSegment: 2, roomTypes: 2, nights: 2 })
const TABLES: TableShape[] = [
  { segment: 0, roomType: 0, rows: Uint32Array.of(0, 1), days: Uint32Array.of(100, 101) },
  { segment: 0, roomType: 1, rows: Uint32Array.of(DEAD_ROW, 1), days: Uint32Array.of(101) },
]
const PRICE_100 = ~100 >>> 0

let source: TestSource
let planes: LaidPlanes
let part: WordsPart
let encoded: EncodedPart

beforeEach(() => {
  planes = layPlanes(TABLES)
  const first = firstPlanes(TABLES)
  const put = (plane: number, row: number, low: number, high: number) => {
    planes.u32.set([low, high], (planes.planeMap.words[plane] as number) / 4 + row * 2)
  }
  put(0, 0, 3 | (5 << 8), PRICE_100)
  put(1, 0, 3 | (5 << 8), PRICE_100)
  put(1, 1, 1, PRICE_100)
  put(2, 1, 9, PRICE_100)
  source = {
    ...base,
    tables: TABLES,
    memory: planes.memory,
    planes,
    words(table, rowStart, _rows, addresses) {
      for (let night = 0; night < (TABLES[table] as TableShape).days.length; night++) {
        addresses[night] = (planes.planeMap.words[(first[table] as number) + night] as number) + rowStart * 8
      }
      return true
    },
  }
  part = planWords(TABLES).flat()[0] as WordsPart
  encoded = encodeWords(coderOf(planes), part, source.codecs.orderedHash, source.words) as EncodedPart
})

const coderOf = ({ memory, scratch }: LaidPlanes) =>
  createWordsCoder(memory, scratch[0] as number, {
    ...{ tables: TABLES, ids: base.properties.ids, roomTypes: base.names.roomTypes },
  })

function expectationOf(bytes: Uint8Array, changes: Partial<ChunkExpectation['part']> = {}): ChunkExpectation {
  const { packages, packageDigest } = encoded
  const whole = { digest: sha256(bytes), bytes: bytes.length, packages, packageDigest, ...changes }
  return { kind: 'words', part: whole, codecsOrderedHash: source.codecs.orderedHash, file: '/f', offset: 77 }
}

const rawOf = () => new Uint8Array(zstdDecompressSync(encoded.chunk.bytes.subarray(64)))

/** The chunk with other content, its lengths and checksums made right again. */
function chunkOf(raw: Uint8Array): Uint8Array {
  const frame = zstdCompressSync(raw)
  const bytes = Uint8Array.from([...encoded.chunk.bytes.subarray(0, 64), ...frame])
  const view = new DataView(bytes.buffer)
  view.setUint32(20, raw.length, true)
  view.setUint32(24, crc32(raw), true)
  view.setUint32(28, frame.length, true)
  return bytes
}

function decode(chunk: Uint8Array, expected = expectationOf(chunk), target = layPlanes(TABLES)): LaidPlanes {
  decodeWords(coderOf(target), part, chunk, expected, target.planeMap, firstPlanes(TABLES))
  return target
}

test('a part is the masks of all nights, then plane after plane of all tables', () => {
  expect([...rawOf()]).toEqual([
    // Bytes that differ from the night before: the first night of the first table, its second one, the second table.
    ...[0b10011, 0b10001, 0b10001],
    // Availability, features, lowest byte of the price: 101 counted from an empty night, times two.
    ...[3, 0, 0, 1, 0, 9],
    ...[5, 0],
    ...[0xca, 0, 0, 0xca, 0, 0xca],
  ])
  expect(encoded.packages).toBe(4)
  expect([...encoded.slicePackages]).toEqual([3, 1])
})

test('nights that differ in availability alone take one plane', () => {
  const at = (planes.planeMap.words[1] as number) / 4
  planes.u32.set([4 | (5 << 8), PRICE_100, 0, 0], at)
  encoded = encodeWords(coderOf(planes), part, source.codecs.orderedHash, source.words) as EncodedPart
  expect(rawOf()[1]).toBe(0b1)

  const target = decode(encoded.chunk.bytes)

  expect([...target.u32.slice(at, at + 2)]).toEqual([4 | (5 << 8), PRICE_100])
})

test('the digest of a part is the sum of the hashes of its packages, by id, room type and day', () => {
  const { ids } = base.properties
  const encoder = new TextEncoder()
  const sum = (lane: 0 | 1) =>
    (
      [
        [0, 0, 100, 3 | (5 << 8)],
        [0, 0, 101, 3 | (5 << 8)],
        [1, 0, 101, 1],
        [1, 1, 101, 9],
      ] as const
    ).reduce((all, [property, roomType, day, low]) => {
      const name = encoder.encode(base.names.roomTypes[roomType])
      const key = rowKey(lane, ids, property * 16, nameHash(lane, name, 0, name.length))
      return (all + packageHash(lane, key, day, low, PRICE_100)) >>> 0
    }, 0)

  expect(encoded.packageDigest).toEqual({ lo: sum(0), hi: sum(1) })
})

test('a part is decoded to its words, with bits of rows with rooms left and counts of each night', () => {
  const target = decode(encoded.chunk.bytes)

  const { u32, memory } = target
  const u8 = new Uint8Array(memory.buffer)
  const night = (plane: number) => {
    const at = target.planeMap.words[plane] as number
    const bits = u8[at + (target.planeMap.availableOffset[plane < 2 ? 0 : 1] as number)]
    return { words: [...u32.slice(at / 4, at / 4 + 4)], bits, packages: u32[at / 4 - 3] }
  }
  expect([0, 1, 2].map(night)).toEqual([
    { words: [3 | (5 << 8), PRICE_100, 0, 0], bits: 0b01, packages: 1 },
    { words: [3 | (5 << 8), PRICE_100, 1, PRICE_100], bits: 0b11, packages: 2 },
    { words: [0, 0, 9, PRICE_100], bits: 0b10, packages: 1 },
  ])
})

test('without places for bits and counts only the words are written', () => {
  const target = layPlanes(TABLES)
  const bare = { ...target, planeMap: { ...target.planeMap, availableOffset: new Uint32Array(2), statsBefore: 0 } }

  decode(encoded.chunk.bytes, expectationOf(encoded.chunk.bytes), bare)

  const u8 = new Uint8Array(target.memory.buffer)
  for (const [plane, words] of target.planeMap.words.entries()) {
    expect(target.u32[words / 4 - 3]).toBe(0)
    expect(u8[words + (target.planeMap.availableOffset[plane < 2 ? 0 : 1] as number)]).toBe(0)
  }
  expect(target.u32[(target.planeMap.words[0] as number) / 4]).toBe(3 | (5 << 8))
})

describe('damage under right checksums', () => {
  const refused = (raw: Uint8Array, reason: string, changes: Partial<ChunkExpectation['part']> = {}) => {
    const chunk = chunkOf(raw)
    expect(() => decode(chunk, expectationOf(chunk, changes))).toThrow(
      expect.objectContaining({ code: 'corrupt_data', fields: { file: '/f', offset: 77, reason } }),
    )
  }

  test('fewer bytes than masks, and as many', () => {
    refused(Uint8Array.of(0, 0), 'a part of words is shorter than its masks')
    refused(Uint8Array.of(0, 0, 0), 'a part of words holds 0 packages, expected 4 by the manifest')
  })

  test('more or fewer bytes than the masks need', () => {
    const raw = rawOf()
    refused(raw.slice(0, -1), 'a part of words has 16 bytes, its masks say 17')
    refused(Uint8Array.from([...raw, 0]), 'a part of words has 18 bytes, its masks say 17')
    const other = raw.slice()
    other[0] = 0b10010011
    refused(other, 'a part of words has 17 bytes, its masks say 19')
  })

  test('other counts and digests than the manifest has', () => {
    const { packageDigest } = encoded
    const { lo, hi } = packageDigest
    refused(rawOf(), 'a part of words holds 4 packages, expected 5 by the manifest', { packages: 5 })
    refused(rawOf(), 'the package digest differs', { packageDigest: { lo: lo ^ 1, hi } })
    refused(rawOf(), 'the package digest differs', { packageDigest: { lo, hi: hi ^ 1 } })
    const dearer = rawOf()
    dearer[dearer.length - 1] = 0xcc
    refused(dearer, 'the package digest differs')
  })
})

test('an aborted source ends the encoding, also at a later table', () => {
  let calls = 0
  const abortAt = (call: number) => {
    calls = 0
    return encodeWords(coderOf(planes), part, source.codecs.orderedHash, (...values) =>
      calls++ === call ? false : source.words(...values),
    )
  }

  expect([abortAt(0), abortAt(1)]).toEqual([undefined, undefined])
  expect(abortAt(2)?.packages).toBe(4)
})

test('a coder encodes one part after the other, each with its own counts', () => {
  const coder = coderOf(planes)
  const again = () => encodeWords(coder, part, source.codecs.orderedHash, source.words)

  expect(again()).toEqual(encoded)
  expect(again()).toEqual(encoded)
})

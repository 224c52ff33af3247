import { crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { tries } from '@vacancy/testkit/random'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSnapshotReference } from '../testing/snapshot-reference.ts'
import {
  createTestSource,
  layPlanes,
  type SourceOptions,
  type TestSource,
  wordsOf,
} from '../testing/snapshot-source.ts'
import { isDamage } from './columns.ts'
import { type ChunkExpectation, type Part, RAW_BYTES_MAX, sha256 } from './format.ts'
import { firstPlanes, type TableShape } from './schema.ts'
import { createWordsCoder, decodeWords, type EncodedPart, encodeWords, planWords, type WordsPart } from './words.ts'

const shape = (rows: number, nights: number, segment = 0, roomType = 0): TableShape => ({
  segment,
  roomType,
  rows: new Uint32Array(rows),
  days: Uint32Array.from({ length: nights }, (_, night) => night + 1),
})

function coderOf(source: TestSource, byReference = false) {
  const { names, properties, tables, memory, planes } = source
  const rows = { tables, ids: properties.ids, roomTypes: names.roomTypes }
  return createWordsCoder(memory, planes.scratch[0], rows, byReference ? createSnapshotReference(memory) : undefined)
}

function encodeAll(source: TestSource, byReference = false): EncodedPart[] {
  const coder = coderOf(source, byReference)
  const parts = planWords(source.tables).flat()
  return parts.map((part) => encodeWords(coder, part, source.codecs.orderedHash, source.words) as EncodedPart)
}

function expectationOf(source: TestSource, { chunk, packages, packageDigest }: EncodedPart): ChunkExpectation {
  const part: Part = { digest: chunk.digest, bytes: chunk.bytes.length, packages, packageDigest }
  return { kind: 'words', part, codecsOrderedHash: source.codecs.orderedHash, file: 'file', offset: 0 }
}

test('every row of every table is in exactly one slice, and no part exceeds the maximum size', () => {
  const sizes = fc.array(
    fc.record({
      rows: fc.oneof(fc.nat(40), fc.nat(3000), fc.constantFrom(65_536, 65_537, 140_000)),
      nights: fc.oneof(fc.nat(10), fc.constantFrom(365, 366, 1024)),
    }),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(sizes, (shapes) => {
      const tables = shapes.map(({ rows, nights }, i) => shape(rows, nights, i))

      const blocks = planWords(tables)

      const next = new Array<number>(tables.length).fill(0)
      for (const block of blocks) {
        // Either one table in several parts, or several tables in one part.
        expect(block.length === 1 || block.every((part) => part.slices.length === 1)).toBe(true)
        for (const { slices, words, masks } of block) {
          expect(masks + words * 8).toBeLessThanOrEqual(RAW_BYTES_MAX)
          expect(words).toBe(slices.reduce((sum, slice) => sum + slice.rows * slice.nights, 0))
          for (const slice of slices) {
            expect(slice.rowStart).toBe(next[slice.table])
            expect(slice.rowStart % 128).toBe(0)
            next[slice.table] = slice.rowStart + slice.rows
          }
        }
      }
      tables.forEach((table, i) => {
        expect(next[i]).toBe(table.days.length === 0 ? 0 : table.rows.length)
      })
    }),
    { numRuns: tries(100) },
  )
})

test('two hundred thousand small tables make a handful of parts', () => {
  const tables = Array.from({ length: 200_000 }, (_, i) => shape(3, 5, i))

  const parts = planWords(tables).flat()

  // 15 words a table, 466,033 words a part.
  expect(parts.length).toBe(Math.ceil(200_000 / Math.floor(466_033 / 15)))
})

const cases: [string, SourceOptions][] = [
  ['one small table', { segments: 1, roomTypes: 1, propertiesPerSegment: 3, nights: 2 }],
  ['many small tables in one part', { segments: 7, roomTypes: 5, propertiesPerSegment: 19, nights: 9, absent: 30 }],
  ['a table in several parts', { segments: 1, roomTypes: 1, propertiesPerSegment: 3000, nights: 366, absent: 5 }],
  ['rows that are dead', { segments: 2, roomTypes: 2, propertiesPerSegment: 130, nights: 10, dead: 40 }],
  [
    'nights that stay the same',
    { segments: 2, roomTypes: 2, propertiesPerSegment: 64, nights: 40, values: 'constant' },
  ],
  ['no package at all', { segments: 2, roomTypes: 1, propertiesPerSegment: 10, nights: 3, absent: 100 }],
]

for (const [name, options] of cases) {
  test(`${name}: words, bits, packages and digests are decoded as encoded`, () => {
    const source = createTestSource(options)
    const { tables } = source
    const parts = planWords(tables).flat()
    const target = layPlanes(tables)
    const encoded = encodeAll(source)

    const rows = { tables, ids: source.properties.ids, roomTypes: source.names.roomTypes }
    const coder = createWordsCoder(target.memory, target.scratch[0], rows)
    for (const [i, part] of parts.entries()) {
      const done = encoded[i] as EncodedPart
      const expected = expectationOf(source, done)
      decodeWords(coder, part, done.chunk.bytes, expected, target.planeMap, firstPlanes(tables))
    }

    const words = wordsOf(source.planes, tables)
    expect(wordsOf(target, tables)).toEqual(words)
    const packages = words.flatMap((plane) => [...plane]).filter((_, i, all) => i % 2 === 0 && (all[i] || all[i + 1]))
    expect(encoded.reduce((sum, part) => sum + part.packages, 0)).toBe(packages.length)
    expect(encoded.reduce((sum, part) => sum + part.slicePackages.reduce((a, b) => a + b, 0), 0)).toBe(packages.length)
    expectBits(tables, target)
  })

  test(`${name}: the kernel and its reference write the same chunks`, () => {
    const source = createTestSource({
      ...options,
      propertiesPerSegment: Math.min(options.propertiesPerSegment ?? 1, 200),
    })

    const digests = (parts: EncodedPart[]) => parts.map(({ chunk }) => Buffer.from(chunk.digest).toString('hex'))
    expect(digests(encodeAll(source))).toEqual(digests(encodeAll(source, true)))
  })
}

/** The bit of a row is set when rooms are left that night; the cells before the words count each plane. */
function expectBits(tables: readonly TableShape[], { u32, memory, planeMap }: ReturnType<typeof layPlanes>): void {
  const u8 = new Uint8Array(memory.buffer)
  const first = firstPlanes(tables)
  let wrong = 0
  tables.forEach(({ rows, days }, table) => {
    for (let night = 0; night < days.length; night++) {
      const words = planeMap.words[first[table] + night]
      const bits = words + planeMap.availableOffset[table]
      let packages = 0
      for (let row = 0; row < rows.length; row++) {
        const cell = words / 4 + row * 2
        const isFree = (u32[cell] & 0xff) !== 0
        if (((u8[bits + (row >>> 3)] >>> (row & 7)) & 1) !== (isFree ? 1 : 0)) wrong++
        if (u32[cell] !== 0 || u32[cell + 1] !== 0) packages++
      }
      if (u32[words / 4 - 3] !== packages) wrong++
    }
  })
  expect(wrong).toBe(0)
}

test('an aborted source ends the encoding', () => {
  const source = createTestSource()
  const part = planWords(source.tables).flat()[0] as WordsPart

  expect(encodeWords(coderOf(source), part, source.codecs.orderedHash, () => false)).toBeUndefined()
})

test('invalid content with valid checksums is reported as damage, for any masks', () => {
  const source = createTestSource({ segments: 1, roomTypes: 2, propertiesPerSegment: 20, nights: 6 })
  const { tables } = source
  const part = planWords(tables).flat()[0] as WordsPart
  const encoded = encodeAll(source)[0] as EncodedPart
  const target = layPlanes(tables)
  const rows = { tables, ids: source.properties.ids, roomTypes: source.names.roomTypes }
  const coder = createWordsCoder(target.memory, target.scratch[0], rows)
  const guard = new Uint8Array(target.memory.buffer, 0, 4096)
  const raw = rawOf(encoded)
  const changes = fc.array(fc.tuple(fc.nat(raw.length - 1), fc.integer({ min: 1, max: 255 })), {
    minLength: 1,
    maxLength: 3,
  })

  fc.assert(
    fc.property(changes, fc.option(fc.nat(raw.length + 20), { freq: 4 }), (changed, length) => {
      const bytes = new Uint8Array(length ?? raw.length)
      bytes.set(raw.subarray(0, bytes.length))
      for (const [at, flip] of changed) if (at < bytes.length) bytes[at] = bytes[at] ^ flip
      fc.pre(Buffer.compare(bytes, raw) !== 0)
      const chunk = resealed(encoded, bytes)
      const expected = { ...expectationOf(source, encoded) }
      const part1 = { ...expected.part, digest: sha256(chunk), bytes: chunk.length }

      let error: unknown
      try {
        decodeWords(coder, part, chunk, { ...expected, part: part1 }, target.planeMap, firstPlanes(tables))
      } catch (thrown) {
        error = thrown
      }

      expect(isDamage(error), String(error)).toBe(true)
      expect(guard.every((byte) => byte === 0)).toBe(true)
    }),
    { numRuns: 1000 },
  )
})

function rawOf({ chunk }: EncodedPart): Uint8Array {
  return zstdDecompressSync(chunk.bytes.subarray(64))
}

/** The chunk with other content and every checksum made right again. */
function resealed({ chunk }: EncodedPart, raw: Uint8Array): Uint8Array {
  const frame = zstdCompressSync(raw)
  const bytes = new Uint8Array(64 + frame.length)
  bytes.set(chunk.bytes.subarray(0, 64))
  bytes.set(frame, 64)
  const view = new DataView(bytes.buffer)
  view.setUint32(20, raw.length, true)
  view.setUint32(24, crc32(raw), true)
  view.setUint32(28, frame.length, true)
  return bytes
}

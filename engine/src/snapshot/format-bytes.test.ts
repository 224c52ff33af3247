/** Chunks and manifests byte by byte: what each field holds, and which values are refused although every digest is right. */

import { crc32, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createFieldReader, takeText, takeTexts, takeU16, takeU32, takeU64 } from './columns.ts'
import {
  CHUNK_BYTES_MAX,
  type ChunkExpectation,
  type Content,
  chunkBytesOf,
  chunkFileName,
  decodeChunk,
  decodeManifest,
  digestText,
  encodeChunk,
  encodeManifest,
  equalBytes,
  hex,
  MANIFEST_BYTES_MAX,
  manifestLength,
  type Position,
  RAW_BYTES_MAX,
  sha256,
  verifyChunk,
} from './format.ts'

const HASH = '5b753132fa61aa379e43d05fbff3c06118479daf481c3cf1af485c4a9e6dedd3'
const RAW = new TextEncoder().encode('the bytes of a part, '.repeat(9))

const expectationOf = (bytes: Uint8Array): ChunkExpectation => ({
  ...{ kind: 'tables', codecsOrderedHash: HASH, file: '/a/chunk', offset: 1000 },
  part: { digest: sha256(bytes), bytes: bytes.length, packages: 0, packageDigest: { lo: 0, hi: 0 } },
})

/** A chunk with other bytes, under its right digest. */
function changed(change: (view: DataView) => void, frame?: Uint8Array): [Uint8Array, ChunkExpectation] {
  const { bytes: whole } = encodeChunk('tables', HASH, RAW)
  const bytes = frame ? Uint8Array.from([...whole.subarray(0, 64), ...frame]) : whole.slice()
  change(new DataView(bytes.buffer))
  return [bytes, expectationOf(bytes)]
}

describe('a chunk', () => {
  test('its header has kind, versions, lengths, checksum and codec list', () => {
    const { bytes, digest } = encodeChunk('tables', HASH, RAW)
    const view = new DataView(bytes.buffer)

    expect(Buffer.from(bytes.subarray(0, 4)).toString()).toBe('VCHK')
    expect([view.getUint16(4, true), view.getUint16(6, true)]).toEqual([1, 1])
    expect(Buffer.from(bytes.subarray(8, 20)).toString()).toBe('tables\0\0\0\0\0\0')
    expect([20, 24, 28].map((at) => view.getUint32(at, true))).toEqual([RAW.length, crc32(RAW), bytes.length - 64])
    expect(hex(bytes.subarray(32, 64))).toBe(HASH)
    expect(digest).toEqual(sha256(bytes))
    expect(decodeChunk(bytes, expectationOf(bytes))).toEqual(RAW)
  })

  test.each<[string, (view: DataView) => void, number, string]>([
    ['other magic', (view) => view.setUint8(0, 0x57), 0, 'this is not a chunk'],
    ['another format', (view) => view.setUint16(4, 2, true), 4, 'a different format version'],
    ['another version of its kind', (view) => view.setUint16(6, 2, true), 6, 'a different version of tables'],
    ['a longer kind', (view) => view.setUint8(14, 0x73), 8, 'the chunk is not of kind tables'],
    ['a byte behind its kind', (view) => view.setUint8(19, 1), 8, 'the chunk is not of kind tables'],
    ['too many bytes', (view) => view.setUint32(20, RAW_BYTES_MAX + 1, true), 20, 'a part of 4194305 bytes exceeds'],
    ['a byte too much', (view) => view.setUint32(20, RAW.length - 1, true), 20, `unpacks to ${RAW.length} bytes, not`],
    ['two bytes too much', (view) => view.setUint32(20, RAW.length - 2, true), 64, 'cannot be unpacked'],
    [
      'the most bytes',
      (view) => view.setUint32(20, RAW_BYTES_MAX, true),
      20,
      `unpacks to ${RAW.length} bytes, not 4194304`,
    ],
    ['a byte too few', (view) => view.setUint32(20, RAW.length + 1, true), 20, `unpacks to ${RAW.length} bytes`],
    ['another checksum', (view) => view.setUint32(24, 1, true), 24, 'the checksum of the part differs'],
    ['another length', (view) => view.setUint32(28, view.byteLength - 65, true), 28, 'a different length'],
    ['another codec list', (view) => view.setUint8(63, 0xd4), 32, 'belongs to a different codec list'],
    ['a broken frame', (view) => view.setUint8(64, 0), 64, 'cannot be unpacked'],
  ])('with %s it is damage, with the place', (_, change, at, reason) => {
    const [bytes, expected] = changed(change)

    expect(() => decodeChunk(bytes, expected)).toThrow(
      expect.objectContaining({
        code: 'corrupt_data',
        fields: expect.objectContaining({ offset: 1000 + at, reason: expect.stringContaining(reason) }),
      }),
    )
  })

  test.each([0, 1, 62, 63, 64])('of %i bytes a part is unpacked, and no byte more', (count) => {
    const raw = RAW.subarray(0, count)
    const { bytes } = encodeChunk('tables', HASH, raw)
    expect(decodeChunk(bytes, expectationOf(bytes))).toEqual(raw)

    const [longer, expected] = changed(
      (view) => {
        view.setUint32(20, count, true)
        view.setUint32(28, view.byteLength - 64, true)
      },
      zstdCompressSync(RAW.subarray(0, count + 1)),
    )
    expect(() => decodeChunk(longer, expected)).toThrow(/unpack/)
  })

  test('bytes that are shorter than a header, or not those of the manifest, are damage', () => {
    const { bytes } = encodeChunk('tables', HASH, RAW)
    const expected = expectationOf(bytes)
    const short = bytes.slice(0, 63)

    expect(() => decodeChunk(short, expectationOf(short))).toThrow(
      expect.objectContaining({
        fields: { file: '/a/chunk', offset: 1000, reason: 'the chunk is shorter than its header' },
      }),
    )
    expect(() => verifyChunk(bytes.slice(1), expected)).toThrow(
      `the chunk ends after ${bytes.length - 1} of ${bytes.length} bytes`,
    )
    expect(() => verifyChunk(bytes.slice().fill(0, 0, 1), expected)).toThrow('the chunk digest differs')
    expect(() => verifyChunk(bytes, expected)).not.toThrow()
  })

  test.each(['properties', 'tables', 'words', 'sessions', 'settings', 'replicated', 'stays'] as const)(
    'blocks of %s are of version 1',
    (kind) => {
      const { bytes } = encodeChunk(kind, HASH, RAW)

      expect(new DataView(bytes.buffer).getUint16(6, true)).toBe(1)
      expect(decodeChunk(bytes, { ...expectationOf(bytes), kind })).toEqual(RAW)
    },
  )

  test('its file is named by the digest', () => {
    expect(chunkFileName(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(
      '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f.chk',
    )
  })
})

const part = (seed: number, bytes = 64 + seed) => ({
  ...{ digest: sha256(Uint8Array.of(seed)), bytes, packages: seed * 1000 },
  packageDigest: { lo: seed, hi: 0xffffffff - seed },
})
const content: Content = {
  ...{ shardId: 'paris-1', codecs: ['breakfast'], codecsOrderedHash: HASH, lastMaintenanceDay: 20_454 },
  ...{ digest: { lo: 0xdeadbeef, hi: 1 }, properties: 12, packages: 2 ** 40, sessions: 3 },
  window: { from: 20_454, to: 20_819 },
  segments: [{ name: 'Paris', properties: 10, packages: 2 ** 33 + 5 }],
  blocks: [
    { kind: 'properties', parts: [part(1)] },
    { kind: 'words', parts: [part(3), part(4)] },
  ],
}
const position: Position = { index: 2 ** 52, term: 7, configuration: { voters: ['a'], learners: ['b', 'c'] } }
const encode = (changes: Partial<Content & Position> = {}) => encodeManifest({ ...content, ...position, ...changes })

/** The manifest with other bytes, and its digest made right again. */
function resealed(change: (bytes: Uint8Array, view: DataView) => void, changes: Partial<Content> = {}): Uint8Array {
  const bytes = encode(changes)
  change(bytes, new DataView(bytes.buffer))
  bytes.set(sha256(bytes.subarray(0, bytes.length - 32)), bytes.length - 32)
  return bytes
}

describe('a manifest', () => {
  test('its fields follow each other as described', () => {
    const bytes = encode()
    const reader = createFieldReader(bytes, 'x')
    expect(Buffer.from(bytes.subarray(0, 4)).toString()).toBe('VMNF')
    takeU32(reader)
    const [version, contentBytes, positionBytes] = [takeU32(reader), takeU32(reader), takeU32(reader)]
    expect([version, 16 + contentBytes + positionBytes + 32]).toEqual([1, bytes.length])
    const numbers = (count: number) => Array.from({ length: count }, () => takeU32(reader))
    const takeDigest = () => {
      reader.at += 32
      return hex(bytes.subarray(reader.at - 32, reader.at))
    }

    // Kinds in use with their versions, then the values.
    expect([takeU16(reader), takeText(reader), takeU16(reader), takeText(reader), takeU16(reader)]).toEqual([
      ...[2, 'properties', 1, 'words', 1],
    ])
    expect([takeText(reader), takeTexts(reader), takeDigest()]).toEqual(['paris-1', ['breakfast'], HASH])
    expect([...numbers(4), takeU64(reader), ...numbers(3)]).toEqual([
      ...[20_454, 0xdeadbeef, 1, 12, 2 ** 40, 3, 20_454, 20_819],
    ])
    expect([takeU32(reader), takeText(reader), takeU32(reader), takeU64(reader)]).toEqual([1, 'Paris', 10, 2 ** 33 + 5])
    expect(takeU32(reader)).toBe(2)
    for (const [kind, seeds] of [
      [0, [1]],
      [1, [3, 4]],
    ] as const) {
      expect([takeU16(reader), takeU32(reader)]).toEqual([kind, seeds.length])
      for (const seed of seeds) {
        const { digest, packages, packageDigest } = part(seed)
        expect([takeDigest(), ...numbers(4)]).toEqual([
          ...[hex(digest), 64 + seed, packages, packageDigest.lo, packageDigest.hi],
        ])
      }
    }
    expect(reader.at).toBe(16 + contentBytes)
    expect([takeU64(reader), takeU64(reader), takeTexts(reader), takeTexts(reader)]).toEqual([
      2 ** 52,
      7,
      ['a'],
      ['b', 'c'],
    ])
    expect(reader.at).toBe(bytes.length - 32)
    expect(bytes.slice(-32)).toEqual(sha256(bytes.subarray(0, -32)))
    const decoded = decodeManifest(bytes, 'x')
    expect(decoded.contentDigest).toEqual(sha256(bytes.subarray(16, 16 + contentBytes)))
    expect(decoded.manifestDigest).toEqual(bytes.slice(-32))
    expect(chunkBytesOf(decoded)).toBe(65 + 67 + 68)
  })

  test('without a day, a segment or a block it comes back as it was', () => {
    const empty = { ...content, window: undefined, segments: [], blocks: [], packages: 0 }

    expect(decodeManifest(encode(empty), 'x')).toMatchObject(empty)
  })

  test.each([
    [63, false],
    [64, true],
    [CHUNK_BYTES_MAX, true],
    [CHUNK_BYTES_MAX + 1, false],
  ])('a chunk of %i bytes is possible: %s', (bytes, isPossible) => {
    const manifest = encode({ blocks: [{ kind: 'words', parts: [part(1, bytes)] }] })

    if (isPossible) expect(decodeManifest(manifest, 'x').blocks[0]?.parts[0]?.bytes).toBe(bytes)
    else expect(() => decodeManifest(manifest, 'x')).toThrow(`a chunk has ${bytes} bytes`)
  })

  test('a block of a kind that is not listed is damage', () => {
    const blocks = [{ kind: 'words' as const, parts: [] }]
    const contentEnd = (view: DataView) => 16 + view.getUint32(8, true)
    const at = (kind: number) => resealed((_, view) => view.setUint16(contentEnd(view) - 6, kind, true), { blocks })

    expect(decodeManifest(at(0), 'x').blocks).toEqual(blocks)
    expect(() => decodeManifest(at(1), 'x')).toThrow('a block has no kind')
  })

  test('counts are refused when their items cannot fit, and read when they just do', () => {
    const segments = Array.from({ length: 9 }, () => ({ name: '', properties: 1, packages: 0 }))
    const blocks = Array.from({ length: 5 }, () => ({ kind: 'words' as const, parts: [] }))
    const parts = [{ kind: 'words' as const, parts: Array.from({ length: 7 }, () => part(1)) }]
    for (const changes of [
      { segments, blocks: [] },
      { segments: [], blocks },
      { segments: [], blocks: parts },
    ]) {
      expect(decodeManifest(encode(changes), 'x')).toMatchObject(changes)
    }
    /** The last bytes of the content are dropped. */
    const shorter = (changes: Partial<Content>, by: number) => {
      const whole = encode(changes)
      const end = 16 + new DataView(whole.buffer).getUint32(8, true)
      const bytes = Uint8Array.from([...whole.subarray(0, end - by), ...whole.subarray(end)])
      new DataView(bytes.buffer).setUint32(8, end - 16 - by, true)
      bytes.set(sha256(bytes.subarray(0, -32)), bytes.length - 32)
      return bytes
    }
    expect(() => decodeManifest(shorter({ segments: [], blocks }, 1), 'x')).toThrow('a count of 5 does not fit the 29')
    expect(() => decodeManifest(shorter({ segments: [], blocks: parts }, 1), 'x')).toThrow(
      'a count of 7 does not fit the 335',
    )
    // Behind the segments is the count of blocks.
    expect(() => decodeManifest(shorter({ segments, blocks: [] }, 5), 'x')).toThrow('a count of 9 does not fit the 125')
  })

  test.each<[string, (bytes: Uint8Array, view: DataView) => void, string]>([
    ['other magic', (bytes) => bytes.fill(0, 0, 1), 'this is not a manifest'],
    ['a shorter content', (_, view) => view.setUint32(8, view.getUint32(8, true) - 1, true), 'do not add up'],
    ['a longer position', (_, view) => view.setUint32(12, view.getUint32(12, true) + 1, true), 'do not add up'],
    [
      'a byte of the content in its position',
      (_, view) => {
        view.setUint32(8, view.getUint32(8, true) - 1, true)
        view.setUint32(12, view.getUint32(12, true) + 1, true)
      },
      'bytes',
    ],
  ])('with %s it is damage', (_, change, reason) => {
    expect(() => decodeManifest(resealed(change), 'x')).toThrow(
      expect.objectContaining({ code: 'corrupt_data', message: expect.stringContaining(reason) }),
    )
  })

  test('one byte more behind its members is damage', () => {
    const member = { id: 1_001, node: 'n1', incarnation: 'a'.repeat(32) }
    const lists = { voters: [1_001], outgoing: [], learners: [], staged: [], autoLeave: false }
    const whole = encode({ membership: { members: [member], ...lists } })
    const bytes = Uint8Array.from([...whole.subarray(0, -32), 0, ...whole.subarray(-32)])
    const view = new DataView(bytes.buffer)
    view.setUint32(12, view.getUint32(12, true) + 1, true)
    bytes.set(sha256(bytes.subarray(0, -32)), bytes.length - 32)

    expect(decodeManifest(whole, 'x').membership?.members).toEqual([member])
    expect(() => decodeManifest(bytes, 'x')).toThrow(expect.objectContaining({ code: 'corrupt_data' }))
  })

  test('errors have the offset of the manifest in its file', () => {
    const bytes = encode()
    bytes[30] = (bytes[30] as number) ^ 1

    expect(() => decodeManifest(bytes, 'x', 500)).toThrow(
      expect.objectContaining({ fields: { file: 'x', offset: 500, reason: 'the digest of the manifest differs' } }),
    )
  })

  test.each([
    [0, false],
    [1, true],
  ])('of the greatest length and %i bytes it is refused: %s', (more, isRefused) => {
    const header = encode().slice(0, 16)
    new DataView(header.buffer).setUint32(8, MANIFEST_BYTES_MAX - 16 - 32 - 10 + more, true)
    new DataView(header.buffer).setUint32(12, 10, true)

    if (isRefused) expect(() => manifestLength(header, 'x')).toThrow('exceeds the limit')
    else expect(manifestLength(header, 'x')).toBe(MANIFEST_BYTES_MAX)
  })
})

test.each([
  [{ lo: 0, hi: 0 }, '0000000000000000'],
  [{ lo: 0xffffffff, hi: 0 }, '00000000ffffffff'],
  [{ lo: 0xf, hi: 0xf0000000 }, 'f00000000000000f'],
])('the digest %j is written as sixteen digits', (digest, text) => {
  expect(digestText(digest)).toBe(text)
})

test.each<[number[], number[], boolean]>([
  [[], [], true],
  [[1, 2], [1, 2], true],
  [[1, 2], [1, 3], false],
  [[3, 2], [1, 2], false],
  [[1, 2], [1], false],
  [[1], [1, 0], false],
])('bytes %j and %j are equal: %s', (a, b, isEqual) => {
  expect(equalBytes(Uint8Array.from(a), Uint8Array.from(b))).toBe(isEqual)
})

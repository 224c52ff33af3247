import { zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isDamage } from './columns.ts'
import {
  type BlockKind,
  type ChunkExpectation,
  type Content,
  cutRaw,
  decodeChunk,
  decodeManifest,
  digestText,
  encodeChunk,
  encodeManifest,
  hex,
  type Membership,
  type Part,
  type Position,
  RAW_BYTES_MAX,
  sha256,
  shortSnapshotId,
  snapshotId,
} from './format.ts'
import { decodeManifestFile, encodeManifestFile } from './manifest-file.ts'

const HASH = '5b753132fa61aa379e43d05fbff3c06118479daf481c3cf1af485c4a9e6dedd3'

const part = (seed: number): Part => ({
  digest: sha256(Uint8Array.of(seed)),
  bytes: 64 + seed,
  packages: seed * 1000,
  packageDigest: { lo: seed, hi: 0xffffffff - seed },
})

const content: Content = {
  shardId: 'paris-1',
  codecs: ['breakfast', 'refundable'],
  codecsOrderedHash: HASH,
  lastMaintenanceDay: 20_454,
  digest: { lo: 0xdeadbeef, hi: 1 },
  properties: 12,
  packages: 2 ** 40,
  sessions: 3,
  window: { from: 20_454, to: 20_819 },
  segments: [
    { name: 'Paris', properties: 10, packages: 2 ** 40 },
    { name: 'Île-de-France', properties: 2, packages: 0 },
  ],
  blocks: [
    { kind: 'properties', parts: [part(1)] },
    { kind: 'tables', parts: [part(2)] },
    { kind: 'words', parts: [part(3), part(4)] },
    { kind: 'words', parts: [part(5)] },
  ],
}
const position: Position = { index: 2 ** 52, term: 7, configuration: { voters: ['a', 'b'], learners: ['c'] } }

function expectationOf(kind: BlockKind, chunk: { bytes: Uint8Array; digest: Uint8Array }): ChunkExpectation {
  const entry = { digest: chunk.digest, bytes: chunk.bytes.length, packages: 0, packageDigest: { lo: 0, hi: 0 } }
  return { kind, part: entry, codecsOrderedHash: HASH, file: '/a/chunk', offset: 1000 }
}

test('a manifest comes back as it was', () => {
  const decoded = decodeManifest(encodeManifest({ ...content, ...position }), 'MANIFEST')

  const { contentDigest, manifestDigest, ...fields } = decoded
  expect(fields).toEqual({ ...content, ...position })
  expect(contentDigest.length).toBe(32)
  expect(manifestDigest.length).toBe(32)
})

const membership: Membership = {
  members: [
    { id: 1, node: 'a', incarnation: '11'.repeat(16) },
    { id: 2, node: 'b', incarnation: '' },
    { id: 1_007, node: 'c', incarnation: '22'.repeat(16) },
  ],
  voters: [1, 2],
  outgoing: [],
  learners: [1_007],
  staged: [],
  autoLeave: false,
}

test('a manifest includes the members with their ids, which do not affect the content digest', () => {
  const plain = decodeManifest(encodeManifest({ ...content, ...position }), 'MANIFEST')
  const decoded = decodeManifest(encodeManifest({ ...content, ...position, membership }), 'MANIFEST')

  expect(decoded.membership).toEqual(membership)
  expect(plain).not.toHaveProperty('membership')
  expect(snapshotId(decoded)).toBe(snapshotId(plain))
})

test('a manifest without members has the bytes of the first version', () => {
  const digest = hex(sha256(encodeManifest({ ...content, ...position })))

  // Taken before there were members: seeds and snapshots of standalone nodes must not change.
  expect(digest).toBe('eef2cb688be5bb82bdc4cd9c42f05f231c32ca25c8b181627ee407d9225c2803')
})

test('the id depends on the content of a snapshot, not on its log position', () => {
  const idOf = (value: Content & Position) => snapshotId(decodeManifest(encodeManifest(value), 'MANIFEST'))
  const id = idOf({ ...content, ...position })

  expect(idOf({ ...content, index: 1, term: 1, configuration: { voters: [], learners: [] } })).toBe(id)
  expect(idOf({ ...content, ...position, lastMaintenanceDay: 20_455 })).not.toBe(id)
  expect(shortSnapshotId(decodeManifest(encodeManifest({ ...content, ...position }), 'MANIFEST'))).toBe(id.slice(0, 12))
})

test('the length of a manifest does not depend on the values of its parts', () => {
  const blank = { ...part(0), digest: new Uint8Array(32) }
  const blocks = content.blocks.map(({ kind, parts }) => ({ kind, parts: parts.map(() => blank) }))

  expect(encodeManifest({ ...content, ...position, blocks }).length).toBe(
    encodeManifest({ ...content, ...position }).length,
  )
})

test('any flipped bit of a manifest or its note is detected', () => {
  const note = { createdAtMs: 1, durationMs: 2, origin: 'test' }
  const file = encodeManifestFile(encodeManifest({ ...content, ...position, membership }), note)
  expect(decodeManifestFile(file, 'MANIFEST').note).toEqual(note)

  for (let bit = 0; bit < file.length * 8; bit++) {
    const flipped = file.slice()
    flipped[bit >>> 3] = flipped[bit >>> 3] ^ (1 << (bit & 7))
    expect(() => decodeManifestFile(flipped, 'MANIFEST'), `bit ${bit}`).toThrow(
      expect.objectContaining({ code: 'corrupt_data' }),
    )
  }
})

test('a manifest that is too short or too long is damaged', () => {
  const file = encodeManifestFile(encodeManifest({ ...content, ...position }), {
    createdAtMs: 1,
    durationMs: 2,
    origin: 'test',
  })

  for (let length = 0; length < file.length; length++) {
    expect(() => decodeManifestFile(file.slice(0, length), 'MANIFEST')).toThrow(
      expect.objectContaining({ code: 'corrupt_data' }),
    )
  }
  const longer = new Uint8Array(file.length + 1)
  longer.set(file)
  expect(() => decodeManifestFile(longer, 'MANIFEST')).toThrow(expect.objectContaining({ code: 'corrupt_data' }))
})

/** The manifest with other bytes and its digest made right again. */
function resealed(change: (bytes: Uint8Array) => void): Uint8Array {
  const bytes = encodeManifest({ ...content, ...position, membership })
  change(bytes)
  bytes.set(sha256(bytes.subarray(0, bytes.length - 32)), bytes.length - 32)
  return bytes
}

test('an unknown kind of block or version is refused by name', () => {
  const [at, section] = ['words', 'members'].map((name) =>
    Buffer.from(encodeManifest({ ...content, ...position, membership })).indexOf(name),
  ) as [number, number]
  const otherKind = resealed((bytes) => bytes.set(Buffer.from('holds'), at))
  const otherVersion = resealed((bytes) => bytes.set([9], at + 5))
  const otherSection = resealed((bytes) => bytes.set(Buffer.from('numbers'), section))
  const laterSection = resealed((bytes) => bytes.set([9], section + 7))
  const otherFormat = resealed((bytes) => bytes.set([2], 4))

  expect(() => decodeManifest(otherKind, 'MANIFEST')).toThrow('blocks of kind holds')
  expect(() => decodeManifest(otherVersion, 'MANIFEST')).toThrow('version 9 of words')
  expect(() => decodeManifest(otherSection, 'MANIFEST')).toThrow('a section numbers')
  expect(() => decodeManifest(laterSection, 'MANIFEST')).toThrow('version 9 of members')
  expect(() => decodeManifest(otherFormat, 'MANIFEST')).toThrow('format version 2')
})

test('noise under a right digest is damage or another manifest, never a crash', () => {
  const length = encodeManifest({ ...content, ...position, membership }).length
  const changes = fc.array(fc.tuple(fc.nat(length - 33), fc.nat(255)), { minLength: 1, maxLength: 4 })

  fc.assert(
    fc.property(changes, (changed) => {
      try {
        decodeManifest(
          resealed((bytes) => {
            for (const [at, byte] of changed) bytes[at] = byte
          }),
          'MANIFEST',
        )
      } catch (error) {
        if (!isDamage(error)) expect(error).toMatchObject({ code: 'data_conflict' })
      }
    }),
    { numRuns: 3000 },
  )
})

test('a chunk unpacks to what it was made of', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3000 }), (raw) => {
      const chunk = encodeChunk('tables', HASH, raw)

      expect(hex(chunk.digest)).toBe(hex(sha256(chunk.bytes)))
      expect([...decodeChunk(chunk.bytes, expectationOf('tables', chunk))]).toEqual([...raw])
    }),
  )
})

test('any flipped bit of a chunk is detected, and the error has its location', () => {
  const chunk = encodeChunk('settings', HASH, new TextEncoder().encode('a few settings'))
  const expected = expectationOf('settings', chunk)

  for (let bit = 0; bit < chunk.bytes.length * 8; bit++) {
    const flipped = chunk.bytes.slice()
    flipped[bit >>> 3] = flipped[bit >>> 3] ^ (1 << (bit & 7))
    let error: unknown
    try {
      decodeChunk(flipped, expected)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ code: 'corrupt_data', fields: { file: '/a/chunk', offset: 1000 } })
  }
})

test('a chunk of another kind, codec list or length is damage even under its right digest', () => {
  const raw = new Uint8Array(100).fill(7)
  const chunk = encodeChunk('tables', HASH, raw)
  const expected = expectationOf('tables', chunk)
  const frame = zstdCompressSync(new Uint8Array(50 << 20))
  const bomb = new Uint8Array(64 + frame.length)
  bomb.set(chunk.bytes.subarray(0, 64))
  bomb.set(frame, 64)
  new DataView(bomb.buffer).setUint32(28, frame.length, true)

  expect(() => decodeChunk(chunk.bytes, { ...expected, kind: 'words' })).toThrow('not of kind words')
  const otherHash = 'ff'.repeat(32)
  expect(() => decodeChunk(chunk.bytes, { ...expected, codecsOrderedHash: otherHash })).toThrow(
    'a different codec list',
  )
  const bombed = expectationOf('tables', { bytes: bomb, digest: sha256(bomb) })
  expect(() => decodeChunk(bomb, bombed)).toThrow('cannot be unpacked')
})

test('raw bytes are cut into parts that together are all of them', () => {
  const raw = new Uint8Array(RAW_BYTES_MAX * 2 + 1)

  expect(cutRaw(raw).map((piece) => piece.length)).toEqual([RAW_BYTES_MAX, RAW_BYTES_MAX, 1])
  expect(cutRaw(new Uint8Array(0))).toEqual([])
})

test('noise that zstd cannot make smaller still fits a chunk', () => {
  const raw = new Uint8Array(RAW_BYTES_MAX)
  for (let at = 0; at < raw.length; at += 65_536) crypto.getRandomValues(raw.subarray(at, at + 65_536))
  const chunk = encodeChunk('words', HASH, raw)

  expect(decodeChunk(chunk.bytes, expectationOf('words', chunk)).length).toBe(raw.length)
})

test('a digest is written high lane first', () => {
  expect(digestText({ lo: 0x12, hi: 0xabcdef01 })).toBe('abcdef0100000012')
})

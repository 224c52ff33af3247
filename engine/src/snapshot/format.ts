/**
 * What a snapshot is made of (docs/design/storage.md#snapshot-format): a manifest and chunks. No time stamp and no
 * number that only one node knows is in them, so equal states make equal bytes.
 *
 * Chunk, named by the SHA-256 of all its bytes; at most CHUNK_BYTES_MAX:
 *
 *   offset  size  field
 *   0       4     magic "VCHK"
 *   4       2     format version
 *   6       2     version of the kind
 *   8       12    kind of block, ASCII, padded with zeros
 *   20      4     bytes before compression, at most RAW_BYTES_MAX
 *   24      4     CRC-32 of the bytes before compression
 *   28      4     bytes of the zstd frame that follows
 *   32      32    ordered hash of the codec list
 *   64      n     one zstd frame
 *
 * Manifest: header, content, position, SHA-256 of all before it. The **content digest**, which is the snapshot's id,
 * is the SHA-256 of the content alone: it does not depend on the log position.
 *
 * A block is a run of chunks, its parts. The kinds are an open list: a reader that meets one it does not know, or a
 * version of one, refuses the snapshot by name.
 */

import { hash } from 'node:crypto'
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { assert, VacancyError } from '@vacancy/shared'
import { decodeConfiguration, encodeConfiguration } from '../raft/membership.ts'
import type { Configuration as RaftConfiguration } from '../raft/messages.ts'
import {
  createFieldReader,
  createFieldWriter,
  damaged,
  expectEnd,
  type FieldReader,
  type FieldWriter,
  putBytes,
  putText,
  putTexts,
  putU16,
  putU32,
  putU64,
  refuse,
  takeBytes,
  takeCount,
  takeText,
  takeTexts,
  takeU16,
  takeU32,
  takeU64,
  written,
} from './columns.ts'

export const FORMAT_VERSION = 1
export const DIGEST_BYTES = 32
/** Size of one part before compression. A larger block is split into parts that are compressed separately. */
export const RAW_BYTES_MAX = 4 << 20
const CHUNK_HEADER_BYTES = 64
/** Overhead of zstd for incompressible bytes: a header and three bytes per 128 KiB. */
const FRAME_SLACK_BYTES = 1024
export const CHUNK_BYTES_MAX = CHUNK_HEADER_BYTES + RAW_BYTES_MAX + FRAME_SLACK_BYTES
/** A million parts and a hundred thousand segments are far below it. */
export const MANIFEST_BYTES_MAX = 128 << 20

const CHUNK_MAGIC = 0x4b484356 // "VCHK"
const MANIFEST_MAGIC = 0x464e4d56 // "VMNF"

/** Kinds of blocks that this version writes and reads, in manifest order. */
const BLOCK_KINDS = {
  /** The names of all dictionaries and the columns of the properties (sections.ts). */
  properties: 1,
  /** Segment, room type, rows and days of every table (sections.ts). */
  tables: 1,
  /** The words of one large table, or of some small ones that follow each other (words.ts). */
  words: 1,
  /** Request keys with their results, as the store encodes them. */
  sessions: 1,
  /** Replicated settings, as the store encodes them. */
  settings: 1,
  /** Replicated words of feature level 1; absent below it, so that older programs read those snapshots. */
  replicated: 1,
  /** Stays, nights with holds and generations of properties; absent without stays. */
  stays: 1,
} as const
export type BlockKind = keyof typeof BLOCK_KINDS

/** Two lanes of a sum of record hashes (store/digest.ts). */
export type Digest = { readonly lo: number; readonly hi: number }

export type Part = {
  /** SHA-256 of the chunk. */
  readonly digest: Uint8Array
  /** Bytes of the chunk. */
  readonly bytes: number
  /** Packages in a part of words and their share of the state digest; 0 for other kinds. */
  readonly packages: number
  readonly packageDigest: Digest
}

export type Block = { readonly kind: BlockKind; readonly parts: readonly Part[] }

type Configuration = { readonly voters: readonly string[]; readonly learners: readonly string[] }

type SegmentCount = { readonly name: string; readonly properties: number; readonly packages: number }

/** The log position of the state; not part of the content digest. */
export type Position = {
  readonly index: number
  readonly term: number
  /** Names, for people. */
  readonly configuration: Configuration
  /** The members of the shard with their ids; absent without a membership, in standalone nodes and seeds. */
  readonly membership?: Membership | undefined
}

/** The configuration in force at the index (docs/design/consensus.md#membership). */
export type Membership = RaftConfiguration

export type Content = {
  readonly shardId: string
  readonly codecs: readonly string[]
  /** Hexadecimal SHA-256 of the list in order (docs/design/http.md#codec-list). */
  readonly codecsOrderedHash: string
  /** Day number; 0 when no maintenance ever ran. */
  readonly lastMaintenanceDay: number
  /** Digest of the whole state. */
  readonly digest: Digest
  readonly properties: number
  readonly packages: number
  readonly sessions: number
  /** First and last day that has a plane, as day numbers; undefined when no table has one. */
  readonly window: { readonly from: number; readonly to: number } | undefined
  /** Sorted by name. */
  readonly segments: readonly SegmentCount[]
  readonly blocks: readonly Block[]
}

export type Manifest = Content & Position & { readonly contentDigest: Uint8Array; readonly manifestDigest: Uint8Array }

export type Chunk = { readonly bytes: Uint8Array; readonly digest: Uint8Array }

export function sha256(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(hash('sha256', bytes, 'buffer'))
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

/** The snapshot's name: content digest in hexadecimal. */
export function snapshotId(manifest: Manifest): string {
  return hex(manifest.contentDigest)
}

/** The short form for logs and tables. */
export function shortSnapshotId(manifest: Manifest): string {
  return snapshotId(manifest).slice(0, 12)
}

export function chunkFileName(digest: Uint8Array): string {
  return `${hex(digest)}.chk`
}

export function chunkBytesOf(content: Content): number {
  let bytes = 0
  for (const block of content.blocks) for (const part of block.parts) bytes += part.bytes
  return bytes
}

/** Sixteen hexadecimal digits, high lane first. */
export function digestText({ lo, hi }: Digest): string {
  return hi.toString(16).padStart(8, '0') + lo.toString(16).padStart(8, '0')
}

// Chunks

/** Compresses one part of a block. `raw` may be a view of shared memory that no thread is writing. */
export function encodeChunk(kind: BlockKind, codecsOrderedHash: string, raw: Uint8Array): Chunk {
  assert(raw.length <= RAW_BYTES_MAX, 'a part is cut before it is encoded')
  const frame = zstdCompressSync(raw, { params: { [constants.ZSTD_c_compressionLevel]: 1 } })
  const bytes = new Uint8Array(CHUNK_HEADER_BYTES + frame.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, CHUNK_MAGIC, true)
  view.setUint16(4, FORMAT_VERSION, true)
  view.setUint16(6, BLOCK_KINDS[kind], true)
  bytes.set(Buffer.from(kind, 'latin1'), 8)
  view.setUint32(20, raw.length, true)
  view.setUint32(24, crc32(raw), true)
  view.setUint32(28, frame.length, true)
  bytes.set(orderedHashBytes(codecsOrderedHash), 32)
  bytes.set(frame, CHUNK_HEADER_BYTES)
  assert(bytes.length <= CHUNK_BYTES_MAX, 'the overhead of zstd is bounded')
  return { bytes, digest: sha256(bytes) }
}

/** The expected properties of a chunk, and its location for errors. */
export type ChunkExpectation = {
  readonly kind: BlockKind
  readonly part: Part
  readonly codecsOrderedHash: string
  readonly file: string
  readonly offset: number
}

/** @throws corrupt_data unless these bytes have the digest in the manifest */
export function verifyChunk(bytes: Uint8Array, { part, file, offset }: ChunkExpectation): void {
  if (bytes.length !== part.bytes)
    throw damaged(file, offset, `the chunk ends after ${bytes.length} of ${part.bytes} bytes`)
  if (!equalBytes(sha256(bytes), part.digest)) throw damaged(file, offset, 'the chunk digest differs')
}

/** @returns the bytes of the part before compression. @throws corrupt_data unless every check passes */
export function decodeChunk(bytes: Uint8Array, expected: ChunkExpectation): Uint8Array {
  verifyChunk(bytes, expected)
  const { kind, file, offset } = expected
  const wrong = (at: number, reason: string, cause?: unknown) => damaged(file, offset + at, reason, cause)
  if (bytes.length < CHUNK_HEADER_BYTES) throw wrong(0, 'the chunk is shorter than its header')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (view.getUint32(0, true) !== CHUNK_MAGIC) throw wrong(0, 'this is not a chunk')
  if (view.getUint16(4, true) !== FORMAT_VERSION) throw wrong(4, 'the chunk has a different format version')
  if (view.getUint16(6, true) !== BLOCK_KINDS[kind]) throw wrong(6, `the chunk has a different version of ${kind}`)
  const padded = new Uint8Array(12)
  padded.set(Buffer.from(kind, 'latin1'))
  if (!equalBytes(bytes.subarray(8, 20), padded)) throw wrong(8, `the chunk is not of kind ${kind}`)
  const rawBytes = view.getUint32(20, true)
  if (rawBytes > RAW_BYTES_MAX) throw wrong(20, `a part of ${rawBytes} bytes exceeds the limit`)
  if (view.getUint32(28, true) !== bytes.length - CHUNK_HEADER_BYTES)
    throw wrong(28, 'the chunk has a different length')
  if (!equalBytes(bytes.subarray(32, 64), orderedHashBytes(expected.codecsOrderedHash))) {
    throw wrong(32, 'the chunk belongs to a different codec list')
  }
  let raw: Uint8Array
  try {
    // One byte more than expected, to detect a larger frame without unpacking it. Never 0 bytes.
    raw = zstdDecompressSync(bytes.subarray(CHUNK_HEADER_BYTES), {
      chunkSize: Math.max(rawBytes + 1, 64),
      maxOutputLength: Math.max(rawBytes + 1, 64),
    })
  } catch (error) {
    throw wrong(CHUNK_HEADER_BYTES, 'the chunk cannot be unpacked', error)
  }
  if (raw.length !== rawBytes) throw wrong(20, `the chunk unpacks to ${raw.length} bytes, not ${rawBytes}`)
  if (crc32(raw) !== view.getUint32(24, true)) throw wrong(24, 'the checksum of the part differs')
  // A plain array, not a Buffer, without the extra byte.
  return new Uint8Array(raw.buffer, raw.byteOffset, raw.length)
}

function orderedHashBytes(orderedHash: string): Uint8Array {
  const bytes = Buffer.from(orderedHash, 'hex')
  assert(bytes.length === DIGEST_BYTES, 'an ordered hash is a SHA-256')
  return bytes
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

/** Splits the raw bytes of a block into parts. */
export function cutRaw(raw: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let start = 0; start < raw.length; start += RAW_BYTES_MAX) parts.push(raw.subarray(start, start + RAW_BYTES_MAX))
  return parts
}

// Manifest: magic u32 · version u32 · content bytes u32 · position bytes u32 · content · position · SHA-256

//
// What a position has behind its names are sections, an open list like the kinds of blocks: name · version u16 · bytes
// u32 · the bytes. A seed has none, so its form is that of the first version.

const MANIFEST_HEADER_BYTES = 16
const MEMBERSHIP_SECTION = 'members'
const MEMBERSHIP_VERSION = 1
const PART_BYTES = DIGEST_BYTES + 16

/** The only encoding of a manifest. Its length depends on names and the number of parts, not on the values of parts. */
export function encodeManifest(value: Content & Position): Uint8Array {
  const content = createFieldWriter()
  putContent(content, value)
  const position = createFieldWriter()
  putU64(position, value.index)
  putU64(position, value.term)
  putTexts(position, value.configuration.voters)
  putTexts(position, value.configuration.learners)
  if (value.membership) {
    const bytes = encodeConfiguration(value.membership)
    putText(position, MEMBERSHIP_SECTION)
    putU16(position, MEMBERSHIP_VERSION)
    putU32(position, bytes.length)
    putBytes(position, bytes)
  }
  const file = createFieldWriter()
  putU32(file, MANIFEST_MAGIC)
  putU32(file, FORMAT_VERSION)
  putU32(file, content.length)
  putU32(file, position.length)
  putBytes(file, written(content))
  putBytes(file, written(position))
  putBytes(file, sha256(written(file)))
  assert(file.length <= MANIFEST_BYTES_MAX, 'a manifest has a bounded length')
  return written(file).slice()
}

function putContent(writer: FieldWriter, content: Content): void {
  // Only the kinds in use, so that an older reader is not stopped by one it does not need.
  const kinds = (Object.keys(BLOCK_KINDS) as BlockKind[]).filter((kind) =>
    content.blocks.some((block) => block.kind === kind),
  )
  putU16(writer, kinds.length)
  for (const kind of kinds) {
    putText(writer, kind)
    putU16(writer, BLOCK_KINDS[kind])
  }
  putText(writer, content.shardId)
  putTexts(writer, content.codecs)
  putBytes(writer, orderedHashBytes(content.codecsOrderedHash))
  putU32(writer, content.lastMaintenanceDay)
  putDigest(writer, content.digest)
  putU32(writer, content.properties)
  putU64(writer, content.packages)
  putU32(writer, content.sessions)
  putU32(writer, content.window?.from ?? 0xffffffff)
  putU32(writer, content.window?.to ?? 0xffffffff)
  putU32(writer, content.segments.length)
  for (const segment of content.segments) {
    putText(writer, segment.name)
    putU32(writer, segment.properties)
    putU64(writer, segment.packages)
  }
  putU32(writer, content.blocks.length)
  for (const block of content.blocks) {
    putU16(writer, kinds.indexOf(block.kind))
    putU32(writer, block.parts.length)
    for (const part of block.parts) {
      putBytes(writer, part.digest)
      putU32(writer, part.bytes)
      putU32(writer, part.packages)
      putDigest(writer, part.packageDigest)
    }
  }
}

function putDigest(writer: FieldWriter, digest: Digest): void {
  putU32(writer, digest.lo)
  putU32(writer, digest.hi)
}

/** Length of the manifest that starts with `bytes`, from its header. @throws corrupt_data when it is not a manifest */
export function manifestLength(bytes: Uint8Array, path: string, origin = 0): number {
  const reader = createFieldReader(bytes, path, origin)
  if (takeU32(reader) !== MANIFEST_MAGIC) throw damaged(path, origin, 'this is not a manifest')
  takeU32(reader)
  const length = MANIFEST_HEADER_BYTES + takeU32(reader) + takeU32(reader) + DIGEST_BYTES
  if (length > MANIFEST_BYTES_MAX) refuse(reader, `a manifest of ${length} bytes exceeds the limit`)
  return length
}

/**
 * Reads a manifest, all of `bytes`.
 *
 * @param name file and `origin` offset in it, for errors
 * @throws corrupt_data; data_conflict for a newer format, an unknown kind of block or version of one
 */
export function decodeManifest(bytes: Uint8Array, name: string, origin = 0): Manifest {
  const reader = createFieldReader(bytes, name, origin)
  if (manifestLength(bytes, name, origin) !== bytes.length) {
    throw damaged(name, origin, 'the lengths in the manifest do not add up')
  }
  takeU32(reader)
  const version = takeU32(reader)
  const contentBytes = takeU32(reader)
  const end = bytes.length - DIGEST_BYTES
  // Checked first, also before the version: a flipped bit must not look like a newer format.
  const manifestDigest = sha256(bytes.subarray(0, end))
  if (!equalBytes(manifestDigest, bytes.subarray(end)))
    throw damaged(name, origin, 'the digest of the manifest differs')
  if (version !== FORMAT_VERSION) throw unsupported(name, `format version ${version}`)
  const contentEnd = MANIFEST_HEADER_BYTES + contentBytes
  const content = bytes.subarray(MANIFEST_HEADER_BYTES, contentEnd)
  const contentReader = createFieldReader(content, name, origin + MANIFEST_HEADER_BYTES)
  const fields = takeContent(contentReader)
  expectEnd(contentReader)
  const positionReader = createFieldReader(bytes.subarray(contentEnd, end), name, origin + contentEnd)
  const index = takeU64(positionReader)
  const term = takeU64(positionReader)
  const configuration = { voters: takeTexts(positionReader), learners: takeTexts(positionReader) }
  const membership = takeMembership(positionReader)
  expectEnd(positionReader)
  const position: Position = { index, term, configuration, ...(membership && { membership }) }
  return { ...fields, ...position, contentDigest: sha256(content), manifestDigest }
}

function takeMembership(reader: FieldReader): Membership | undefined {
  if (reader.at === reader.bytes.length) return undefined
  const name = takeText(reader)
  const version = takeU16(reader)
  if (name !== MEMBERSHIP_SECTION) throw unsupported(reader.name, `a section ${name}`)
  if (version !== MEMBERSHIP_VERSION) throw unsupported(reader.name, `version ${version} of ${name}`)
  const bytes = takeBytes(reader, takeU32(reader))
  try {
    return decodeConfiguration(bytes)
  } catch (error) {
    // The digest matches, so its writer was wrong. It still cannot be used.
    return refuse(reader, `its members cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function unsupported(path: string, what: string): VacancyError {
  return new VacancyError('data_conflict', {
    reason: `${path} has ${what}, which this version of Vacancy cannot read.`,
  })
}

function takeContent(reader: FieldReader): Content {
  const kinds = takeKinds(reader)
  const shardId = takeText(reader)
  const codecs = takeTexts(reader)
  const codecsOrderedHash = hex(takeBytes(reader, DIGEST_BYTES))
  const lastMaintenanceDay = takeU32(reader)
  const digest = takeDigest(reader)
  const properties = takeU32(reader)
  const packages = takeU64(reader)
  const sessions = takeU32(reader)
  const from = takeU32(reader)
  const to = takeU32(reader)
  const segments: SegmentCount[] = new Array(takeCount(reader, 14))
  for (let i = 0; i < segments.length; i++) {
    segments[i] = { name: takeText(reader), properties: takeU32(reader), packages: takeU64(reader) }
  }
  const blocks: Block[] = new Array(takeCount(reader, 6))
  for (let i = 0; i < blocks.length; i++) blocks[i] = takeBlock(reader, kinds)
  const window = from === 0xffffffff ? undefined : { from, to }
  return {
    shardId,
    codecs,
    codecsOrderedHash,
    lastMaintenanceDay,
    digest,
    properties,
    packages,
    sessions,
    window,
    segments,
    blocks,
  }
}

/** The state needs every kind in the list, so all must be known before anything else is read. */
function takeKinds(reader: FieldReader): BlockKind[] {
  const kinds: BlockKind[] = []
  const count = takeU16(reader)
  for (let i = 0; i < count; i++) {
    const name = takeText(reader)
    const version = takeU16(reader)
    if (!Object.hasOwn(BLOCK_KINDS, name)) throw unsupported(reader.name, `blocks of kind ${name}`)
    if (BLOCK_KINDS[name as BlockKind] !== version) throw unsupported(reader.name, `version ${version} of ${name}`)
    kinds.push(name as BlockKind)
  }
  return kinds
}

function takeBlock(reader: FieldReader, kinds: readonly BlockKind[]): Block {
  const kind = kinds[takeU16(reader)]
  if (kind === undefined) refuse(reader, 'a block has no kind')
  const parts: Part[] = new Array(takeCount(reader, PART_BYTES))
  for (let i = 0; i < parts.length; i++) {
    const digest = takeBytes(reader, DIGEST_BYTES)
    const bytes = takeU32(reader)
    if (bytes < CHUNK_HEADER_BYTES || bytes > CHUNK_BYTES_MAX) refuse(reader, `a chunk has ${bytes} bytes`)
    parts[i] = { digest, bytes, packages: takeU32(reader), packageDigest: takeDigest(reader) }
  }
  return { kind, parts }
}

function takeDigest(reader: FieldReader): Digest {
  return { lo: takeU32(reader), hi: takeU32(reader) }
}

/**
 * Bytes of a log file: its header, its records, and how one that does not fit looks (docs/design/storage.md#log-files).
 *
 * A file is a header of 4,096 bytes, records at multiples of eight, then zeros to its end.
 *
 *   header                                        record
 *   0     8   magic                               0   4   payload length; 0: end of the data
 *   8     4   format version                      4   4   CRC32C of bytes 8 … end of the payload, seeded (below)
 *   12    4   zero                                8   8   record sequence, +1 each, across files
 *   16    16  cluster id                          16  4   CRC32C field of the record before: the chain
 *   32    16  incarnation                         20  4   group number, +1 a group, wraps
 *   48    32  ordered codec hash                  24  1   type
 *   80    8   sequence of the file                25  1   flags; bit 0: last record of its group
 *   88    8   first index it may hold             26  6   zero
 *   96    8   sequence of the last record before  32  n   payload, zeros to a multiple of eight
 *   104   4   CRC32C field of that record
 *   108   4   its group number
 *   4092  4   CRC32C of bytes 0 … 4091
 *
 * Numbers are little endian. Record checksums are seeded with the cluster id, so that a record of another cluster, or
 * one inside the bytes of a command, is never mistaken for a record of this log.
 */

import { assert } from '@vacancy/shared'
import { readU64, viewOf, writeU64 } from '../raft/entry.ts'
import { crc32c } from './crc32c.ts'

export const FILE_HEADER_BYTES = 4096
export const RECORD_HEADER_BYTES = 32
export const PAYLOAD_BYTES_MAX = 4 * 1024 * 1024
const FORMAT_VERSION = 1
export const RECORD_TYPE = { entries: 1, hardState: 2, snapshotMark: 3, fileEnd: 4, identity: 5 } as const
export type RecordType = (typeof RECORD_TYPE)[keyof typeof RECORD_TYPE]

export const CLUSTER_ID_BYTES = 16
export const INCARNATION_BYTES = 16
export const CODEC_HASH_BYTES = 32

/** `VACANWAL` */
const MAGIC = Uint8Array.of(0x56, 0x41, 0x43, 0x41, 0x4e, 0x57, 0x41, 0x4c)
const HEADER_CHECKSUM_AT = FILE_HEADER_BYTES - 4
const LAST_OF_GROUP = 1

/** Identity of a log. Every file header contains it, and it is compared when files are read. */
export type LogIdentity = {
  readonly clusterId: Uint8Array
  readonly incarnation: Uint8Array
  readonly codecHash: Uint8Array
}

export type FileHeader = {
  readonly identity: LogIdentity
  readonly sequence: number
  readonly firstIndex: number
  /** Of the record before the first one of this file; all 0 in the first file of a log. */
  readonly previous: { readonly sequence: number; readonly checksum: number; readonly group: number }
}

/** The checksum every record of a cluster starts from. */
export function checksumSeed(identity: LogIdentity): number {
  return crc32c(identity.clusterId, 0, identity.clusterId.length)
}

export function encodeFileHeader(bytes: Uint8Array, header: FileHeader): void {
  const { identity, previous } = header
  assert(identity.clusterId.length === CLUSTER_ID_BYTES, 'a cluster id has 16 bytes')
  assert(identity.incarnation.length === INCARNATION_BYTES, 'an incarnation has 16 bytes')
  assert(identity.codecHash.length === CODEC_HASH_BYTES, 'an ordered codec hash has 32 bytes')
  const view = viewOf(bytes)
  bytes.fill(0, 0, FILE_HEADER_BYTES)
  bytes.set(MAGIC, 0)
  view.setUint32(8, FORMAT_VERSION, true)
  bytes.set(identity.clusterId, 16)
  bytes.set(identity.incarnation, 32)
  bytes.set(identity.codecHash, 48)
  writeU64(view, 80, header.sequence)
  writeU64(view, 88, header.firstIndex)
  writeU64(view, 96, previous.sequence)
  view.setUint32(104, previous.checksum, true)
  view.setUint32(108, previous.group, true)
  view.setUint32(HEADER_CHECKSUM_AT, crc32c(bytes, 0, HEADER_CHECKSUM_AT), true)
}

/** @returns the header, or what is wrong with it */
export function decodeFileHeader(bytes: Uint8Array, length: number): FileHeader | string {
  if (length < FILE_HEADER_BYTES) return `the header has ${length} of ${FILE_HEADER_BYTES} bytes`
  if (MAGIC.some((byte, i) => bytes[i] !== byte)) return 'it does not begin like a log file'
  const view = viewOf(bytes)
  if (view.getUint32(HEADER_CHECKSUM_AT, true) !== crc32c(bytes, 0, HEADER_CHECKSUM_AT)) {
    return 'the checksum of the header does not match'
  }
  const version = view.getUint32(8, true)
  if (version !== FORMAT_VERSION) return `format version ${version} is not known to this program`
  return {
    identity: { clusterId: bytes.slice(16, 32), incarnation: bytes.slice(32, 48), codecHash: bytes.slice(48, 80) },
    sequence: readU64(view, 80),
    firstIndex: readU64(view, 88),
    previous: {
      sequence: readU64(view, 96),
      checksum: view.getUint32(104, true),
      group: view.getUint32(108, true),
    },
  }
}

/** Bytes a record with such a payload takes. */
export function recordBytes(payloadLength: number): number {
  return RECORD_HEADER_BYTES + Math.ceil(payloadLength / 8) * 8
}

export type RecordHeader = {
  readonly type: RecordType
  readonly payloadLength: number
  readonly sequence: number
  /** Checksum of the record before. */
  readonly chain: number
  /** Number of its group, u32. */
  readonly group: number
  readonly isLastOfGroup: boolean
}

/**
 * Completes a record whose payload already lies at `at + RECORD_HEADER_BYTES`: header, padding, checksum.
 *
 * @param seed of the checksums of the log
 * @returns its checksum, which the next record is chained to
 */
export function sealRecord(
  { buffer: bytes, view, seed }: { readonly buffer: Uint8Array; readonly view: DataView; readonly seed: number },
  at: number,
  { type, payloadLength, sequence, chain, group, isLastOfGroup }: RecordHeader,
): number {
  assert(payloadLength > 0, 'a length of zero means the end of the data')
  assert(payloadLength <= PAYLOAD_BYTES_MAX, 'a payload has at most 4 MiB')
  const payloadEnd = at + RECORD_HEADER_BYTES + payloadLength
  bytes.fill(0, at + 24, at + RECORD_HEADER_BYTES)
  bytes.fill(0, payloadEnd, at + recordBytes(payloadLength))
  view.setUint32(at, payloadLength, true)
  writeU64(view, at + 8, sequence)
  view.setUint32(at + 16, chain, true)
  view.setUint32(at + 20, group, true)
  view.setUint8(at + 24, type)
  view.setUint8(at + 25, isLastOfGroup ? LAST_OF_GROUP : 0)
  const checksum = crc32c(bytes, at + 8, payloadEnd, seed)
  view.setUint32(at + 4, checksum, true)
  return checksum
}

/** A record found in a buffer. One reused object; the payload lies at [payloadStart, payloadEnd) of that buffer. */
export type RecordView = ReturnType<typeof createRecordView>

export function createRecordView() {
  return {
    type: 0,
    isLastOfGroup: false,
    sequence: 0,
    chain: 0,
    group: 0,
    checksum: 0,
    payloadStart: 0,
    payloadEnd: 0,
    /** With header and padding. */
    bytes: 0,
  }
}

/**
 * Reads the header of a record; cheap, so that a search for records can ask at every eighth byte.
 *
 * @returns false when no record can stand here, whatever follows
 */
export function readRecordHeader(record: RecordView, view: DataView, at: number): boolean {
  const length = view.getUint32(at, true)
  if (length === 0 || length > PAYLOAD_BYTES_MAX) return false
  const type = view.getUint8(at + 24)
  const flags = view.getUint8(at + 25)
  if (type < RECORD_TYPE.entries || type > RECORD_TYPE.identity || flags > LAST_OF_GROUP) return false
  if (view.getUint16(at + 26, true) !== 0 || view.getUint32(at + 28, true) !== 0) return false
  record.type = type
  record.isLastOfGroup = flags === LAST_OF_GROUP
  record.sequence = readU64(view, at + 8)
  record.chain = view.getUint32(at + 16, true)
  record.group = view.getUint32(at + 20, true)
  record.checksum = view.getUint32(at + 4, true)
  record.payloadStart = at + RECORD_HEADER_BYTES
  record.payloadEnd = record.payloadStart + length
  record.bytes = recordBytes(length)
  return true
}

/** Whether the checksum of a record matches its bytes. */
export function isSelfValid(record: RecordView, bytes: Uint8Array, seed: number): boolean {
  const start = record.payloadStart - RECORD_HEADER_BYTES + 8
  return crc32c(bytes, start, record.payloadEnd, seed) === record.checksum
}

/** The group after `group`: they are counted in 32 bits and start again. */
export function nextGroup(group: number): number {
  return (group + 1) >>> 0
}

export function groupBefore(group: number): number {
  return (group - 1) >>> 0
}

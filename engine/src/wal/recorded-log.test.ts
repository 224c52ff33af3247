/**
 * The bytes of a log file. A node reads the log of an earlier version as long as these stay: writing and reading with
 * the same mistake would not be noticed otherwise.
 */

import { expect, test } from 'vitest'
import { ENTRY_KIND, encodeEntry, viewOf } from '../raft/entry.ts'
import { decodeConfiguration, encodeConfiguration } from '../raft/membership.ts'
import {
  ENTRIES_HEADER_BYTES,
  HARD_STATE_BYTES,
  IDENTITY_BYTES,
  readHardState,
  readIdentity,
  readSnapshotMark,
  SNAPSHOT_MARK_BYTES,
  summarizeEntries,
  writeHardState,
  writeIdentity,
  writeSnapshotMark,
} from './payload.ts'
import {
  checksumSeed,
  createRecordView,
  decodeFileHeader,
  encodeFileHeader,
  FILE_HEADER_BYTES,
  isSelfValid,
  nextGroup,
  PAYLOAD_BYTES_MAX,
  RECORD_HEADER_BYTES,
  RECORD_TYPE,
  readRecordHeader,
  recordBytes,
  sealRecord,
} from './record.ts'

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const counted = (length: number, from: number) => Uint8Array.from({ length }, (_, i) => from + i)
const IDENTITY = { clusterId: counted(16, 1), incarnation: counted(16, 0x40), codecHash: counted(32, 0x80) }
const BIG = 2 ** 40 + 5

test('the header of a file, which is zero after its fields', () => {
  const bytes = new Uint8Array(FILE_HEADER_BYTES).fill(0xff)
  const header = {
    identity: IDENTITY,
    sequence: BIG,
    firstIndex: 7,
    previous: { sequence: 6, checksum: 0xfedcba98, group: 9 },
  }
  encodeFileHeader(bytes, header)

  const end = bytes.findLastIndex((byte) => byte !== 0) + 1
  expect([
    end,
    hexOf(bytes.subarray(0, 112)),
    hexOf(bytes.subarray(112, end).filter((byte) => byte !== 0)),
  ]).toMatchInlineSnapshot(`
      [
        4096,
        "564143414e57414c01000000000000000102030405060708090a0b0c0d0e0f10404142434445464748494a4b4c4d4e4f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f05000000000100000700000000000000060000000000000098badcfe09000000",
        "426afaae",
      ]
    `)
  expect(decodeFileHeader(bytes, FILE_HEADER_BYTES)).toEqual(header)
  expect(decodeFileHeader(bytes, FILE_HEADER_BYTES - 1)).toBe('the header has 4095 of 4096 bytes')
  const changed = (at: number) => decodeFileHeader(bytes.with(at, (bytes[at] as number) ^ 1), FILE_HEADER_BYTES)
  expect(changed(0)).toBe('it does not begin like a log file')
  for (const at of [8, 111, 112, 4_000]) expect(changed(at)).toBe('the checksum of the header does not match')
})

test('a record: header, payload, padding and checksum', () => {
  const seed = checksumSeed(IDENTITY)
  const rows = [1, 8, 9].map((length) => {
    const bytes = new Uint8Array(80).fill(0xee)
    const payload = counted(length, 1)
    bytes.set(payload, 8 + RECORD_HEADER_BYTES)
    const isLast = length !== 8
    const checksum = sealRecord(bytes, viewOf(bytes), 8, RECORD_TYPE.entries, length, BIG, 0x89abcdef, 12, isLast, seed)
    const record = createRecordView()
    expect(readRecordHeader(record, viewOf(bytes), 8)).toBe(true)
    expect(record).toEqual({
      type: 1,
      isLastOfGroup: isLast,
      sequence: BIG,
      chain: 0x89abcdef,
      group: 12,
      checksum,
      payloadStart: 40,
      payloadEnd: 40 + length,
      bytes: recordBytes(length),
    })
    expect(isSelfValid(record, bytes, seed)).toBe(true)
    expect(isSelfValid(record, bytes, seed + 1)).toBe(false)
    expect([bytes[7], bytes[8 + recordBytes(length)]]).toEqual([0xee, 0xee])
    return hexOf(bytes.subarray(8, 8 + recordBytes(length)))
  })
  expect(rows.join('\n')).toMatchInlineSnapshot(`
    "010000004e386b260500000000010000efcdab890c00000001010000000000000100000000000000
    08000000e17d62890500000000010000efcdab890c00000001000000000000000102030405060708
    0900000007cc11c90500000000010000efcdab890c000000010100000000000001020304050607080900000000000000"
  `)
})

test('what cannot be the header of a record', () => {
  const bytes = new Uint8Array(RECORD_HEADER_BYTES + 8)
  const view = viewOf(bytes)
  const isHeader = (length: number, type: number, flags: number, zeros: number[] = [0, 0, 0, 0, 0, 0]) => {
    view.setUint32(0, length, true)
    bytes.set([type, flags, ...zeros], 24)
    return readRecordHeader(createRecordView(), view, 0)
  }
  expect([0, 1, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1].map((length) => isHeader(length, 1, 0))).toEqual([
    false,
    true,
    true,
    false,
  ])
  expect([0, 1, 5, 6].map((type) => isHeader(1, type, 1))).toEqual([false, true, true, false])
  expect([0, 1, 2].map((flags) => isHeader(1, 1, flags))).toEqual([true, true, false])
  for (let at = 0; at < 6; at++) expect(isHeader(1, 1, 1, [0, 0, 0, 0, 0, 0].with(at, 1)), `zero ${at}`).toBe(false)
  expect([0, 2 ** 32 - 1].map(nextGroup)).toEqual([1, 0])
})

test('the payloads of records', () => {
  const hard = { term: BIG, vote: 2, commit: 3 }
  const mark = { index: BIG, term: 4 }
  const bytes = new Uint8Array(1 + HARD_STATE_BYTES + SNAPSHOT_MARK_BYTES + IDENTITY_BYTES)
  const view = viewOf(bytes)
  const [markAt, identityAt] = [1 + HARD_STATE_BYTES, 1 + HARD_STATE_BYTES + SNAPSHOT_MARK_BYTES]
  writeHardState(view, 1, hard)
  writeSnapshotMark(view, markAt, mark)
  writeIdentity(bytes, identityAt, IDENTITY)

  expect(hexOf(bytes)).toMatchInlineSnapshot(
    `"00050000000001000002000000000000000300000000000000050000000001000004000000000000000102030405060708090a0b0c0d0e0f10404142434445464748494a4b4c4d4e4f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"`,
  )
  expect(readHardState(view, 1, HARD_STATE_BYTES)).toEqual(hard)
  expect(readSnapshotMark(view, markAt, SNAPSHOT_MARK_BYTES)).toEqual(mark)
  expect(readIdentity(bytes, identityAt, IDENTITY_BYTES)).toEqual(IDENTITY)
  for (const more of [-1, 1]) {
    expect(readHardState(view, 1, HARD_STATE_BYTES + more)).toBe(undefined)
    expect(readSnapshotMark(view, markAt, SNAPSHOT_MARK_BYTES + more)).toBe(undefined)
    expect(readIdentity(bytes, identityAt, IDENTITY_BYTES + more)).toBe(undefined)
  }
})

test('entries: their bytes, and which of them are a payload', () => {
  const entriesOf = (firstIndex: number, ...entries: Uint8Array[]) => {
    const bytes = new Uint8Array([...new Uint8Array(ENTRIES_HEADER_BYTES), ...entries.flatMap((entry) => [...entry])])
    viewOf(bytes).setBigUint64(0, BigInt(firstIndex), true)
    viewOf(bytes).setUint32(8, entries.length, true)
    return bytes
  }
  const summaryOf = (bytes: Uint8Array, end = bytes.length) => summarizeEntries(viewOf(bytes), 0, end)
  const command = encodeEntry(2, ENTRY_KIND.command, counted(3, 1))
  const empty = encodeEntry(BIG, ENTRY_KIND.empty, new Uint8Array(0))
  const change = encodeEntry(BIG, ENTRY_KIND.configuration, counted(1, 9))
  const bytes = entriesOf(41, command, command, empty, change)

  expect(hexOf(bytes)).toMatchInlineSnapshot(
    `"2900000000000000040000000200000000000000010300000001020302000000000000000103000000010203050000000001000002000000000500000000010000030100000009"`,
  )
  expect(summaryOf(bytes)).toEqual({
    firstIndex: 41,
    lastIndex: 44,
    runs: [
      { term: 2, firstIndex: 41 },
      { term: BIG, firstIndex: 43 },
    ],
    configurations: [44],
  })
  for (const wrong of [
    bytes.subarray(0, bytes.length - 1),
    bytes.subarray(0, ENTRIES_HEADER_BYTES - 1),
    new Uint8Array([...bytes, 0]),
    entriesOf(0, command),
    entriesOf(1),
    entriesOf(1, empty, command),
    entriesOf(1, command.with(8, 0)),
    entriesOf(1, command.with(8, 4)),
    entriesOf(1, command.with(0, 0)),
  ])
    expect(summaryOf(wrong), hexOf(wrong)).toBe(undefined)
  expect(summaryOf(entriesOf(1, empty))).toMatchObject({ firstIndex: 1, lastIndex: 1 })
})

test('a configuration', () => {
  const configuration = {
    members: [
      { id: 1, node: 'a', incarnation: '' },
      { id: 2, node: 'é', incarnation: '0f'.repeat(16) },
      { id: BIG, node: 'c', incarnation: 'a0'.repeat(16) },
    ],
    voters: [1, 2],
    outgoing: [1],
    learners: [BIG],
    staged: [],
    autoLeave: true,
  }
  const bytes = encodeConfiguration(configuration)

  expect(hexOf(bytes)).toMatchInlineSnapshot(
    `"0101030100000000000000016100020000000000000002c3a9010f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0500000000010000016301a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0020100000000000000020000000000000001010000000000000001050000000001000000"`,
  )
  expect(decodeConfiguration(bytes)).toEqual(configuration)
  for (const wrong of [bytes.with(0, 2), new Uint8Array([...bytes, 0])])
    expect(() => decodeConfiguration(wrong)).toThrow(/configuration/)
})

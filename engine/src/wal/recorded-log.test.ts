/**
 * The bytes of a log file. A node reads the log of an earlier version as long as these stay: writing and reading with
 * the same mistake would not be noticed otherwise.
 */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, encodeEntry, viewOf, writeEntryHeader, writeU64 } from '../raft/entry.ts'
import { decodeConfiguration, encodeConfiguration } from '../raft/membership.ts'
import { entries } from '../testing/log-fixture.ts'
import { crc32c } from './crc32c.ts'
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
    const checksum = sealRecord({ buffer: bytes, view: viewOf(bytes), seed }, 8, {
      ...{ type: RECORD_TYPE.entries, payloadLength: length, sequence: BIG, chain: 0x89abcdef, group: 12 },
      isLastOfGroup: isLast,
    })
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

/** A number that JavaScript cannot hold exactly. */
const TOO_LARGE = 0xffffffff

test('a payload with a wrong length or invalid numbers is not a hard state, mark or identity', () => {
  const view = viewOf(new Uint8Array(64))
  writeHardState(view, 0, { term: 3, vote: 2, commit: 9 })
  expect(readHardState(view, 0, HARD_STATE_BYTES)).toEqual({ term: 3, vote: 2, commit: 9 })
  expect(readHardState(view, 0, HARD_STATE_BYTES - 1)).toBeUndefined()
  for (const at of [0, 8, 16]) {
    writeHardState(view, 0, { term: 3, vote: 2, commit: 9 })
    view.setUint32(at + 4, TOO_LARGE, true)
    expect(readHardState(view, 0, HARD_STATE_BYTES), `at ${at}`).toBeUndefined()
  }
  writeSnapshotMark(view, 0, { index: 9, term: 3 })
  expect(readSnapshotMark(view, 0, SNAPSHOT_MARK_BYTES)).toEqual({ index: 9, term: 3 })
  expect(readSnapshotMark(view, 0, SNAPSHOT_MARK_BYTES + 8)).toBeUndefined()
  for (const at of [0, 8]) {
    writeSnapshotMark(view, 0, { index: 9, term: 3 })
    view.setUint32(at + 4, TOO_LARGE, true)
    expect(readSnapshotMark(view, 0, SNAPSHOT_MARK_BYTES), `at ${at}`).toBeUndefined()
  }
  expect(readIdentity(new Uint8Array(64), 0, IDENTITY_BYTES - 1)).toBeUndefined()
})

/** Entries 7 … as a payload. */
function payloadOf(count: number, term = 2): { bytes: Uint8Array; view: DataView } {
  const batch = entries(7, count, term)
  const bytes = new Uint8Array(ENTRIES_HEADER_BYTES + batch.bytes.length)
  const view = viewOf(bytes)
  writeU64(view, 0, 7)
  view.setUint32(8, count, true)
  bytes.set(batch.bytes, ENTRIES_HEADER_BYTES)
  return { bytes, view }
}

test('entries have valid terms and kinds, and fill their payload', () => {
  const { bytes, view } = payloadOf(3)
  const second = ENTRIES_HEADER_BYTES + ENTRY_HEADER_BYTES + 8
  const wrong = (change: (view: DataView) => void, length = bytes.length) => {
    const copy = bytes.slice()
    change(viewOf(copy))
    return summarizeEntries(viewOf(copy), 0, length)
  }
  expect(summarizeEntries(view, 0, bytes.length)).toEqual({
    firstIndex: 7,
    lastIndex: 9,
    runs: [{ term: 2, firstIndex: 7 }],
    configurations: [],
  })
  expect(wrong((of) => writeEntryHeader(of, second, 4, ENTRY_KIND.configuration, 8))).toBeUndefined()
  expect(
    wrong((of) => {
      writeEntryHeader(of, second, 4, ENTRY_KIND.configuration, 8)
      writeEntryHeader(of, second + ENTRY_HEADER_BYTES + 8, 4, ENTRY_KIND.command, 8)
    }),
  ).toMatchObject({
    runs: [
      { term: 2, firstIndex: 7 },
      { term: 4, firstIndex: 8 },
    ],
    configurations: [8],
  })
  const faults: { readonly [name: string]: ReturnType<typeof wrong> } = {
    'shorter than its header': wrong(() => undefined, ENTRIES_HEADER_BYTES - 1),
    'an index before the first': wrong((of) => writeU64(of, 0, 0)),
    'no entries': wrong((of) => of.setUint32(8, 0, true)),
    'more entries than there are': wrong((of) => of.setUint32(8, 4, true)),
    'fewer entries than there are': wrong((of) => of.setUint32(8, 2, true)),
    'a term that goes back': wrong((of) => writeEntryHeader(of, second, 1, ENTRY_KIND.command, 8)),
    'no term': wrong((of) => writeEntryHeader(of, ENTRIES_HEADER_BYTES, 0, ENTRY_KIND.command, 8)),
    'an invalid kind': wrong((of) => writeEntryHeader(of, second, 2, 9 as never, 8)),
  }
  for (const [name, found] of Object.entries(faults)) expect(found, name).toBeUndefined()
})

const ascii = (text: string) => new TextEncoder().encode(text)

/** Bit by bit, as RFC 3720 §12.1 defines it. */
function slowCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}

test('the check value of CRC32C is E3069283', () => {
  expect(crc32c(ascii('123456789'), 0, 9)).toBe(0xe3069283)
})

test('the vectors of RFC 3720 §B.4', () => {
  expect(crc32c(new Uint8Array(32), 0, 32)).toBe(0x8a9136aa)
  expect(crc32c(new Uint8Array(32).fill(255), 0, 32)).toBe(0x62a8ab43)
  expect(
    crc32c(
      Uint8Array.from({ length: 32 }, (_, i) => i),
      0,
      32,
    ),
  ).toBe(0x46dd794e)
})

test('eight bytes a step give what one bit a step gives, from any offset', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(20), (bytes, skip) => {
      const start = Math.min(skip, bytes.length)
      expect(crc32c(bytes, start, bytes.length)).toBe(slowCrc32c(bytes.subarray(start)))
    }),
  )
})

test('a checksum continues from that of the previous bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(60), (bytes, cut) => {
      const middle = Math.min(cut, bytes.length)
      const first = crc32c(bytes, 0, middle)
      expect(crc32c(bytes, middle, bytes.length, first)).toBe(crc32c(bytes, 0, bytes.length))
    }),
  )
})

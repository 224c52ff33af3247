/** Log files as bytes: positions in headers and records, and what is refused. */
import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import { readU64, viewOf } from '../raft/entry.ts'
import { crc32c } from './crc32c.ts'
import {
  CLUSTER_ID_BYTES,
  CODEC_HASH_BYTES,
  checksumSeed,
  createRecordView,
  decodeFileHeader,
  encodeFileHeader,
  FILE_HEADER_BYTES,
  type FileHeader,
  INCARNATION_BYTES,
  isSelfValid,
  nextGroup,
  PAYLOAD_BYTES_MAX,
  RECORD_HEADER_BYTES,
  RECORD_TYPE,
  readRecordHeader,
  recordBytes,
  sealRecord,
} from './record.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const HEADER: FileHeader = {
  identity: {
    clusterId: new Uint8Array(16).fill(0xa1),
    incarnation: new Uint8Array(16).fill(0xb2),
    codecHash: new Uint8Array(32).fill(0xc3),
  },
  sequence: 5,
  firstIndex: 2 ** 40 + 6,
  previous: { sequence: 777, checksum: 0xfedc_ba98, group: 0xffff_fff0 },
}

function encoded(header = HEADER): Uint8Array {
  // What the buffer held before must not matter.
  const bytes = new Uint8Array(FILE_HEADER_BYTES + 8).fill(0xee)
  encodeFileHeader(bytes, header)
  return bytes
}

/** Writes the checksum of a header that was changed. */
function reseal(bytes: Uint8Array): Uint8Array {
  viewOf(bytes).setUint32(4092, crc32c(bytes, 0, 4092), true)
  return bytes
}

describe('the header of a file', () => {
  test('has its fields at fixed positions, and zeros elsewhere', () => {
    const bytes = encoded()
    const view = viewOf(bytes)
    expect(new TextDecoder().decode(bytes.subarray(0, 8))).toBe('VACANWAL')
    expect([view.getUint32(8, true), view.getUint32(12, true)]).toEqual([1, 0])
    expect([...bytes.subarray(16, 80)]).toEqual([
      ...Array(16).fill(0xa1),
      ...Array(16).fill(0xb2),
      ...Array(32).fill(0xc3),
    ])
    expect([80, 88, 96].map((at) => readU64(view, at))).toEqual([5, 2 ** 40 + 6, 777])
    expect([view.getUint32(104, true), view.getUint32(108, true)]).toEqual([0xfedc_ba98, 0xffff_fff0])
    expect(bytes.subarray(112, 4092).every((byte) => byte === 0)).toBe(true)
    expect(view.getUint32(4092, true)).toBe(crc32c(bytes, 0, 4092))
    expect([...bytes.subarray(4096)]).toEqual(Array(8).fill(0xee))
  })

  test('is read as it was written', () => {
    expect(decodeFileHeader(encoded(), 4096)).toEqual(HEADER)
    expect(decodeFileHeader(encoded(), 8192)).toEqual(HEADER)
  })

  test.each<[string, Uint8Array, number, string]>([
    ['is too short', encoded(), 4095, 'the header has 4095 of 4096 bytes'],
    ['is missing', encoded(), 0, 'the header has 0 of 4096 bytes'],
    ['has another first byte', reseal(encoded().fill(0x55, 0, 1)), 4096, 'it does not begin like a log file'],
    ['has another last byte of its magic', reseal(encoded().fill(0, 7, 8)), 4096, 'it does not begin like a log file'],
    ['was damaged', encoded().fill(1, 2000, 2001), 4096, 'the checksum of the header does not match'],
    ['was damaged at its end', encoded().fill(1, 4091, 4092), 4096, 'the checksum of the header does not match'],
    ['is of version 2', reseal(encoded().fill(2, 8, 9)), 4096, 'format version 2 is not known to this program'],
    ['is of version 0', reseal(encoded().fill(0, 8, 9)), 4096, 'format version 0 is not known to this program'],
  ])('that %s is refused', (_, bytes, length, problem) => {
    expect(decodeFileHeader(bytes, length)).toBe(problem)
  })

  test.each(['clusterId', 'incarnation', 'codecHash'] as const)('needs a %s of the right length', (name) => {
    const identity = { ...HEADER.identity, [name]: new Uint8Array(17) }
    expect(() => encoded({ ...HEADER, identity })).toThrow('bytes')
    expect([CLUSTER_ID_BYTES, INCARNATION_BYTES, CODEC_HASH_BYTES]).toEqual([16, 16, 32])
  })
})

test('checksums of records start from the whole cluster id', () => {
  const { identity } = HEADER
  expect(checksumSeed(identity)).toBe(crc32c(identity.clusterId, 0, 16))
  for (const at of [0, 15]) {
    const clusterId = Uint8Array.from(identity.clusterId)
    clusterId[at] = 0
    expect(checksumSeed({ ...identity, clusterId })).not.toBe(checksumSeed(identity))
  }
})

test.each([
  [1, 40],
  [7, 40],
  [8, 40],
  [9, 48],
  [16, 48],
  [4_194_304, 4_194_336],
])('a record with %i bytes of payload takes %i', (payload, bytes) => {
  expect(recordBytes(payload)).toBe(bytes)
  expect([RECORD_HEADER_BYTES, PAYLOAD_BYTES_MAX]).toEqual([32, 4_194_304])
})

test('types of records keep their numbers', () => {
  expect(RECORD_TYPE).toEqual({ entries: 1, hardState: 2, snapshotMark: 3, fileEnd: 4, identity: 5 })
})

/** A record at byte 8 of a buffer of garbage. */
function sealed(payload: readonly number[], isLast = false) {
  const bytes = new Uint8Array(8 + recordBytes(payload.length) + 8).fill(0xee)
  bytes.set(payload, 8 + RECORD_HEADER_BYTES)
  const view = viewOf(bytes)
  const checksum = sealRecord(
    ...([bytes, view, 8, RECORD_TYPE.snapshotMark, payload.length] as const),
    ...([2 ** 33 + 9, 0x8765_4321, 0xffff_fffe, isLast, 1234] as const),
  )
  return { bytes, view, checksum }
}

describe('a record', () => {
  test('has its fields at fixed positions, and zeros up to a multiple of eight bytes', () => {
    const { bytes, view, checksum } = sealed([1, 2, 3])
    expect(view.getUint32(8, true)).toBe(3)
    expect(view.getUint32(12, true)).toBe(checksum)
    expect(readU64(view, 16)).toBe(2 ** 33 + 9)
    expect([view.getUint32(24, true), view.getUint32(28, true)]).toEqual([0x8765_4321, 0xffff_fffe])
    expect([...bytes.subarray(32, 48)]).toEqual([3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0])
    expect([...bytes.subarray(0, 8), ...bytes.subarray(48)]).toEqual(Array(16).fill(0xee))
    expect(checksum).toBe(crc32c(bytes, 16, 43, 1234))
  })

  test('at the end of its group is marked', () => {
    expect(sealed([1], true).bytes[33]).toBe(1)
    expect(sealed([1], false).bytes[33]).toBe(0)
  })

  test('is read as it was written', () => {
    const random = createRandom(SEED)
    for (let run = 0; run < 40; run++) {
      const payload = Array.from({ length: 1 + random.below(40) }, () => random.below(256))
      const isLast = random.below(2) === 1
      const { bytes, view, checksum } = sealed(payload, isLast)
      const record = createRecordView()
      const message = `VACANCY_SEED=${SEED}, run ${run}`
      expect(readRecordHeader(record, view, 8), message).toBe(true)
      expect(record, message).toEqual({
        ...{ type: 3, isLastOfGroup: isLast, sequence: 2 ** 33 + 9, chain: 0x8765_4321, group: 0xffff_fffe, checksum },
        ...{ payloadStart: 40, payloadEnd: 40 + payload.length, bytes: recordBytes(payload.length) },
      })
      expect(isSelfValid(record, bytes, 1234), message).toBe(true)
      expect(isSelfValid(record, bytes, 1235), message).toBe(false)
      // Every byte from the sequence to the end of the payload counts, and no other.
      const at = 16 + random.below(24 + payload.length)
      bytes[at] = (bytes[at] as number) ^ 1
      expect(isSelfValid(record, bytes, 1234), `${message}, byte ${at}`).toBe(false)
    }
  })

  test.each([16, 40, 42])('whose byte %i changed is not valid', (at) => {
    const { bytes, view } = sealed([1, 2, 3])
    const record = createRecordView()
    readRecordHeader(record, view, 8)
    bytes.fill(0xff, at, at + 1)
    expect(isSelfValid(record, bytes, 1234)).toBe(false)
  })

  test('may have another byte behind it', () => {
    const { bytes, view } = sealed([1, 2, 3])
    const record = createRecordView()
    readRecordHeader(record, view, 8)
    bytes[43] = 9
    expect(isSelfValid(record, bytes, 1234)).toBe(true)
  })

  test.each([0, PAYLOAD_BYTES_MAX + 1])('of %i bytes cannot be written', (length) => {
    const bytes = new Uint8Array(64)
    expect(() => sealRecord(bytes, viewOf(bytes), 0, RECORD_TYPE.entries, length, 1, 0, 1, true, 0)).toThrow()
  })
})

describe('where no record can be', () => {
  test.each<[string, (view: DataView) => void, boolean]>([
    ['a length of 0 ends the data', (view) => view.setUint32(8, 0, true), false],
    ['a length of 4 MiB is possible', (view) => view.setUint32(8, 4_194_304, true), true],
    ['one byte more is not', (view) => view.setUint32(8, 4_194_305, true), false],
    ['type 0 is unknown', (view) => view.setUint8(32, 0), false],
    ['type 1 is the first', (view) => view.setUint8(32, 1), true],
    ['type 5 is the last', (view) => view.setUint8(32, 5), true],
    ['type 6 is unknown', (view) => view.setUint8(32, 6), false],
    ['flag 2 is unknown', (view) => view.setUint8(33, 2), false],
    ['the first reserved byte is zero', (view) => view.setUint8(34, 1), false],
    ['the second reserved byte is zero', (view) => view.setUint8(35, 1), false],
    ['the third reserved byte is zero', (view) => view.setUint8(36, 1), false],
    ['the last reserved byte is zero', (view) => view.setUint8(39, 1), false],
  ])('%s', (_, change, isRecord) => {
    const { view } = sealed([1, 2, 3])
    change(view)
    const record = createRecordView()
    expect(readRecordHeader(record, view, 8)).toBe(isRecord)
    // A refused record leaves the view as it was.
    if (!isRecord) expect(record).toEqual(createRecordView())
  })
})

test('a new view describes no record', () => {
  expect(createRecordView()).toEqual({
    ...{ type: 0, isLastOfGroup: false, sequence: 0, chain: 0, group: 0, checksum: 0 },
    ...{ payloadStart: 0, payloadEnd: 0, bytes: 0 },
  })
})

test('groups start again at 0 after 32 bits', () => {
  expect([0, 6, 2 ** 31 - 1, 2 ** 32 - 2, 2 ** 32 - 1].map(nextGroup)).toEqual([1, 7, 2 ** 31, 2 ** 32 - 1, 0])
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createFieldReader,
  createFieldWriter,
  type FieldReader,
  type FieldWriter,
  isDamage,
  putColumn,
  putDeltaColumn,
  putRecordPlanes,
  putText,
  putTexts,
  putU8,
  putU16,
  putU32,
  putU64,
  takeColumn,
  takeDeltaColumn,
  takeRecordPlanes,
  takeText,
  takeTexts,
  takeU8,
  takeU16,
  takeU32,
  takeU64,
  written,
} from './columns.ts'

/** What the bytes of a writer read as. */
function readBack<T>(put: (writer: FieldWriter) => void, take: (reader: FieldReader) => T): T {
  const writer = createFieldWriter()
  put(writer)
  const reader = createFieldReader(written(writer).slice(), 'manifest')
  const value = take(reader)
  expect(reader.at).toBe(reader.bytes.length)
  return value
}

/** The error of reading these bytes, which begin at byte 100 of their file. */
function failure(bytes: readonly number[], take: (reader: FieldReader) => unknown) {
  try {
    take(createFieldReader(Uint8Array.from(bytes), 'manifest', 100))
  } catch (error) {
    if (!isDamage(error)) throw error
    return error.fields
  }
  throw new Error('it was read')
}

const bytesOf = (put: (writer: FieldWriter) => void) => {
  const writer = createFieldWriter()
  put(writer)
  return [...written(writer)]
}

describe('fields and columns', () => {
  const numbers = fc.array(fc.oneof(fc.nat(0xff), fc.integer({ min: 0, max: 0xffffffff })), { maxLength: 3_000 })

  test('numbers are little-endian and read back, up to the largest', () => {
    expect(bytesOf((writer) => putU32(writer, 0x01020304))).toEqual([4, 3, 2, 1])
    expect(bytesOf((writer) => putU64(writer, 2 ** 32 + 2))).toEqual([2, 0, 0, 0, 1, 0, 0, 0])
    for (const value of [0, 1, 0xff]) expect(readBack((to) => putU8(to, value), takeU8)).toBe(value)
    for (const value of [0, 0x100, 0xffff]) expect(readBack((to) => putU16(to, value), takeU16)).toBe(value)
    for (const value of [0, 0x10000, 0xffffffff]) expect(readBack((to) => putU32(to, value), takeU32)).toBe(value)
    for (const value of [0, 2 ** 32, Number.MAX_SAFE_INTEGER])
      expect(readBack((to) => putU64(to, value), takeU64)).toBe(value)
  })

  test('texts read back', () => {
    const texts = ['', 'Île-de-France', '宿', 'x'.repeat(5_000)]
    expect(readBack((writer) => putTexts(writer, texts), takeTexts)).toEqual(texts)
    expect(readBack((writer) => putText(writer, '\ufeffa'), takeText)).toBe('\ufeffa')
  })

  test('columns read back, with as many bytes a value as the largest one needs', () => {
    fc.assert(
      fc.property(numbers, (given) => {
        const values = Uint32Array.from(given)
        expect(
          readBack(
            (to) => putColumn(to, values),
            (from) => takeColumn(from, values.length),
          ),
        ).toEqual(values)
        expect(
          readBack(
            (to) => putDeltaColumn(to, values),
            (from) => takeDeltaColumn(from, values.length),
          ),
        ).toEqual(values)
      }),
      { numRuns: 50 },
    )
    for (const [value, width] of [
      [0, 1],
      [0xff, 1],
      [0x100, 2],
      [0xffff, 2],
      [0x10000, 3],
      [0xffffff, 3],
      [0x1000000, 4],
    ] as const) {
      expect(bytesOf((writer) => putColumn(writer, Uint32Array.of(value, 0)))).toHaveLength(1 + 2 * width)
    }
  })

  test('numbers that differ little from the one before need one byte', () => {
    expect(bytesOf((writer) => putDeltaColumn(writer, Uint32Array.of(100, 163, 99, 99)))).toHaveLength(1 + 4)
  })

  test('records read back from their planes', () => {
    const records = Uint8Array.from({ length: 8 * 1_000 }, (_, at) => at % 251)
    const read = new Uint8Array(records.length)
    readBack(
      (writer) => putRecordPlanes(writer, records, 8),
      (reader) => takeRecordPlanes(reader, 1_000, 8, read),
    )
    expect(read).toEqual(records)
  })
})

describe('damaged bytes are refused with their place and the reason', () => {
  test.each<[string, readonly number[], (reader: FieldReader) => unknown, number, string]>([
    ['a short number', [1, 2, 3], takeU32, 100, '4 bytes are expected, 3 are left'],
    [
      'a number after the end',
      [7, 1],
      (from) => [takeU8(from), takeU16(from)],
      101,
      '2 bytes are expected, 1 are left',
    ],
    ['a number above 2^53', [0, 0, 0, 0, 0, 0, 0x20, 0], takeU64, 108, 'a number is larger than 2^53'],
    ['a short text', [3, 0, 0x61], takeText, 102, '3 bytes are expected, 1 are left'],
    ['a text of another encoding', [2, 0, 0xff, 0xfe], takeText, 104, 'a text is not UTF-8'],
    [
      'a count of too many',
      [3, 0, 0, 0, 0, 0, 0, 0],
      takeTexts,
      104,
      'a count of 3 does not fit the 4 bytes that are left',
    ],
    ['a column without planes', [0, 1], (from) => takeColumn(from, 1), 101, 'a column is 0 bytes wide'],
    ['a column of too many planes', [5, 1, 1, 1, 1, 1], (from) => takeColumn(from, 1), 101, 'a column is 5 bytes wide'],
    ['a short column', [2, 1, 1, 1], (from) => takeColumn(from, 2), 101, '4 bytes are expected, 3 are left'],
  ])('%s', (_, bytes, take, offset, reason) => {
    expect(failure(bytes, take)).toMatchObject({ file: 'manifest', offset, reason })
  })

  test('a count that just fits is read', () => {
    expect(takeTexts(createFieldReader(Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0), 'manifest'))).toEqual(['', ''])
  })
})

/** Fields of peer frames: their bytes, their bounds, and hostile input. */
import { describe, expect, test } from 'vitest'
import { viewOf } from '../raft/entry.ts'
import {
  bad,
  bytesOf,
  checked,
  createWriter,
  digest,
  type Field,
  FRAME_BYTES_MAX,
  FRAME_PAYLOAD_BYTES_MAX,
  flag,
  hex,
  id,
  list,
  maybe,
  optionalHex,
  optionalId,
  payload,
  putBytes,
  putU32,
  type Reader,
  record,
  takeBytes,
  takeU32,
  text,
  u8,
  u16,
  u32,
  u64,
  word,
  words,
} from './frame-fields.ts'

function readerOf(bytes: Uint8Array): Reader {
  return { bytes, view: viewOf(bytes), at: 0, isBad: false }
}

/** The bytes of a value, written into a buffer that must grow. */
function write<T>(field: Field<T>, value: T): number[] {
  const writer = createWriter(1)
  field.put(writer, value)
  return [...bytesOf(writer)]
}

/** What a field reads from bytes. */
function read<T>(field: Field<T>, bytes: readonly number[]) {
  const reader = readerOf(Uint8Array.from(bytes))
  const value = field.take(reader, {})
  return { value, at: reader.at, isBad: reader.isBad }
}

const letters = (count: number) => 'a'.repeat(count)
const codes = (count: number) => Array<number>(count).fill(97)
const pair = record<{ a: number; b: boolean }>({ a: u16, b: flag })

const CASES: readonly [string, Field<never>, unknown, readonly number[]][] = [
  ['u8', u8, 0, [0]],
  ['u8', u8, 255, [255]],
  ['u16', u16, 0x0102, [2, 1]],
  ['u16', u16, 65_535, [255, 255]],
  ['u32', u32, 0x0102_0304, [4, 3, 2, 1]],
  ['u32', u32, 2 ** 32 - 1, [255, 255, 255, 255]],
  ['u64', u64, 2 ** 32 + 5, [5, 0, 0, 0, 1, 0, 0, 0]],
  ['u64', u64, 2 ** 53 - 1, [255, 255, 255, 255, 255, 255, 31, 0]],
  ['a flag', flag, true, [1]],
  ['a flag', flag, false, [0]],
  ['the first word', word(['x', 'y']), 'x', [0]],
  ['the last word', word(['x', 'y']), 'y', [1]],
  ['a payload', payload, Uint8Array.of(7, 8), [2, 0, 0, 0, 7, 8]],
  ['an empty payload', payload, Uint8Array.of(), [0, 0, 0, 0]],
  ['text', text(3), 'aä', [3, 0, 97, 0xc3, 0xa4]],
  ['text with a byte order mark', text(4), '\ufeffa', [4, 0, 0xef, 0xbb, 0xbf, 97]],
  ['empty text', text(3), '', [0, 0]],
  ['text for people', words(9), 'abc', [3, 0, 97, 98, 99]],
  ['an id', id, 'n-1', [3, 0, 110, 45, 49]],
  ['an id that may be missing', optionalId, '', [0, 0]],
  ['digits', hex(3), '00ff1a', [0, 255, 26]],
  ['digits that may be missing', optionalHex(2), '', [0]],
  ['digits that may be missing', optionalHex(2), '0a0b', [1, 10, 11]],
  ['a value that may be missing', maybe(u16), undefined, [0]],
  ['a value that may be missing', maybe(u16), 258, [1, 2, 1]],
  ['an empty list', list(u8, 2), [], [0, 0]],
  ['a full list', list(u8, 2), [5, 6], [2, 0, 5, 6]],
  ['a record', pair, { a: 1, b: true }, [1, 0, 1]],
  ['a checked value', checked(u8, (value) => value < 5), 4, [4]],
] as never

test.each(CASES)('%s is read as it was written, and each of its bytes is needed', (_, field, value, bytes) => {
  expect(write(field, value as never)).toEqual(bytes)
  expect(read(field, [...bytes, 99])).toEqual({ value, at: bytes.length, isBad: false })
  for (let length = 0; length < bytes.length; length++) {
    expect(read(field, bytes.slice(0, length)).isBad, `${length} bytes`).toBe(true)
  }
})

test('a digest has 32 bytes', () => {
  const value = '0123456789abcdef'.repeat(4)
  expect(write(digest, value)).toHaveLength(32)
  expect(read(digest, write(digest, value))).toEqual({ value, at: 32, isBad: false })
})

describe('hostile bytes', () => {
  test.each([
    ['a number beyond the safe integers', u64, [0, 0, 0, 0, 0, 0, 32, 0], 0],
    ['a flag of 2', flag, [2], false],
    ['a word after the last one', word(['x', 'y']), [2], 'x'],
    ['a text beyond its bound', text(3), [4, 0, ...codes(4)], ''],
    ['text for people beyond its bound', words(3), [4, 0, ...codes(4)], ''],
    ['a text that is not UTF-8', text(3), [2, 0, 0xc3, 0x28], ''],
    ['an id with a space', id, [3, 0, 97, 32, 97], ''],
    ['a missing id', id, [0, 0], ''],
    ['an id that may be missing, with a space', optionalId, [1, 0, 32], ''],
    ['a list beyond its bound', list(u8, 2), [3, 0, 5, 6, 7], []],
    ['a payload that is longer than the frame', payload, [3, 0, 0, 0, 1, 2], Uint8Array.of()],
    ['a payload of more than 1 MiB', payload, [1, 0, 16, 0, ...codes(20)], Uint8Array.of()],
    ['a checked value that is not allowed', checked(u8, (value) => value < 5), [5], 5],
  ] as [string, Field<unknown>, number[], unknown][])('%s is a fault', (_, field, bytes, value) => {
    expect(read(field, bytes)).toMatchObject({ value, isBad: true })
  })

  test('after a fault only zeros are read, and nothing more is consumed', () => {
    const reader = readerOf(Uint8Array.from(codes(40)))
    expect([bad(reader, 'x'), reader.isBad]).toEqual(['x', true])
    const fields = [u8, u16, u32, u64, payload, text(9), optionalId, hex(2), maybe(u8), list(u8, 9), flag]
    expect(fields.map((field) => field.take(reader, {}))).toEqual([
      ...[0, 0, 0, 0, Uint8Array.of(), '', '', '', undefined, [], false],
    ])
    expect([takeU32(reader), takeBytes(reader, 1).length, reader.at, reader.isBad]).toEqual([0, 0, 0, true])
  })

  test('a list ends at its first fault', () => {
    let reads = 0
    const counted = checked(u8, () => ++reads > 0)
    expect(read(list(counted, 500), [200, 0, 1, 2])).toMatchObject({ value: [1, 2, 0], isBad: true })
    // The third number could not be read, so it was not checked.
    expect(reads).toBe(2)
  })

  test('a value that could not be read is not checked', () => {
    const field = checked(u16, () => {
      throw new Error('no value')
    })
    expect(read(field, [1])).toMatchObject({ isBad: true })
  })
})

test('a payload has up to 1 MiB, and is a view of the frame', () => {
  expect([FRAME_PAYLOAD_BYTES_MAX, FRAME_BYTES_MAX]).toEqual([1_048_576, 1_064_960])
  const writer = createWriter(4)
  payload.put(writer, new Uint8Array(FRAME_PAYLOAD_BYTES_MAX).fill(3))
  const reader = readerOf(bytesOf(writer))
  const taken = payload.take(reader, {})
  expect([taken.length, reader.at, reader.isBad]).toEqual([1_048_576, 1_048_580, false])
  expect(taken.buffer).toBe(reader.bytes.buffer)
  expect(() => payload.put(createWriter(4), new Uint8Array(FRAME_PAYLOAD_BYTES_MAX + 1))).toThrow('1 MiB')
})

test('a frame grows to its bound and not beyond', () => {
  const writer = createWriter(FRAME_BYTES_MAX)
  putBytes(writer, new Uint8Array(FRAME_BYTES_MAX - 4))
  putU32(writer, 1)
  expect(bytesOf(writer)).toHaveLength(FRAME_BYTES_MAX)
  expect(() => u8.put(writer, 1)).toThrow('within its bound')
})

test('what was written before stays when a frame grows', () => {
  const writer = createWriter(3)
  for (let n = 0; n < 100; n++) putU32(writer, n)
  const reader = readerOf(bytesOf(writer))
  for (let n = 0; n < 100; n++) expect(takeU32(reader)).toBe(n)
  expect([reader.at, takeBytes(reader, 0).length, reader.isBad]).toEqual([400, 0, false])
  expect(bytesOf(createWriter(50))).toHaveLength(0)
})

describe('writing refuses', () => {
  test.each([
    ['256 as u8', u8, 256],
    ['a negative u8', u8, -1],
    ['half a u8', u8, 0.5],
    ['65,536 as u16', u16, 65_536],
    ['a negative u16', u16, -1],
    ['half a u16', u16, 0.5],
    ['2^32 as u32', u32, 2 ** 32],
    ['a negative u32', u32, -1],
    ['half a u32', u32, 0.5],
    ['2^53 as u64', u64, 2 ** 53],
    ['a word that is not in the list', word(['x', 'y']), 'z'],
    ['a text beyond its bound', text(3), letters(4)],
    ['an id with a space', id, 'a b'],
    ['an empty id', id, ''],
    ['too few digits', hex(2), 'abc'],
    ['upper-case digits', hex(2), 'ABCD'],
    ['a list beyond its bound', list(u8, 2), [1, 2, 3]],
  ] as [string, Field<unknown>, unknown][])('%s', (_, field, value) => {
    expect(() => write(field, value)).toThrow()
  })
})

test.each([
  ['abcdef', 'abcd'],
  // Four bytes hold no part of a character.
  ['abcä', 'abc'],
  ['äää', 'ää'],
])('text for people is truncated to its bound: %s', (value, kept) => {
  expect(read(words(4), write(words(4), value))).toMatchObject({ value: kept, isBad: false })
})

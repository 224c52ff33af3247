/**
 * The fields of peer frames (frames.ts). Writing asserts the bounds. Reading accepts hostile bytes, never throws, and
 * never yields a list or text beyond its bound.
 */

import { assert, LIMITS, parseId } from '@vacancy/shared'
import { readU64, viewOf, writeU64 } from '../raft/entry.ts'

/** Entries of one append, bytes of one chunk range, or a manifest (docs/design/consensus.md#limits). */
export const FRAME_PAYLOAD_BYTES_MAX = 1024 * 1024
/** The payload, one entry header if it is one entry of the largest size, and the fields before them. */
export const FRAME_BYTES_MAX = FRAME_PAYLOAD_BYTES_MAX + 16_384

export type Field<T> = {
  put(writer: Writer, value: T): void
  /** @param before the previous fields; after a fault the value is meaningless */
  take(reader: Reader, before: object): T
}

export type Writer = { bytes: Uint8Array; view: DataView; at: number }
/** A fault sets `isBad`; all later reads yield zeros. */
export type Reader = { readonly bytes: Uint8Array; readonly view: DataView; at: number; isBad: boolean }

const NOTHING = new Uint8Array(0)
const DIGEST_BYTES = 32

export const u8: Field<number> = {
  put(writer, value) {
    assert(Number.isInteger(value) && value >= 0 && value < 2 ** 8, 'the number fits 8 bits')
    putByte(writer, value)
  },
  take: takeByte,
}

export const u16: Field<number> = {
  put(writer, value) {
    assert(Number.isInteger(value) && value >= 0 && value < 2 ** 16, 'the number fits 16 bits')
    const at = grow(writer, 2)
    writer.view.setUint16(at, value, true)
  },
  take(reader) {
    const at = advance(reader, 2)
    return at < 0 ? 0 : reader.view.getUint16(at, true)
  },
}

export const u32: Field<number> = { put: putU32, take: takeU32 }

export const u64: Field<number> = {
  put(writer, value) {
    const at = grow(writer, 8)
    writeU64(writer.view, at, value)
  },
  take(reader) {
    const at = advance(reader, 8)
    const value = at < 0 ? 0 : readU64(reader.view, at)
    return value < 0 ? bad(reader, 0) : value
  },
}

export const flag: Field<boolean> = {
  put: (writer, value) => putByte(writer, value ? 1 : 0),
  take(reader) {
    const byte = takeByte(reader)
    return byte > 1 ? bad(reader, false) : byte === 1
  },
}

/** One word of a list, encoded as its position. New words are only appended. */
export function word<W extends string>(words: readonly [W, ...W[]]): Field<W> {
  return {
    put(writer, value) {
      assert(words.includes(value), 'the word is in the list of the field')
      putByte(writer, words.indexOf(value))
    },
    take: (reader) => words[takeByte(reader)] ?? bad(reader, words[0]),
  }
}

/** Up to 1 MiB of bytes; a view of the frame when read. */
export const payload: Field<Uint8Array> = {
  put(writer, value) {
    assert(value.length <= FRAME_PAYLOAD_BYTES_MAX, 'a payload has at most 1 MiB')
    putU32(writer, value.length)
    putBytes(writer, value)
  },
  take(reader) {
    const length = takeU32(reader)
    return length > FRAME_PAYLOAD_BYTES_MAX ? bad(reader, NOTHING) : takeBytes(reader, length)
  },
}

/** Text that programs read: exceeding the bound is a bug. */
export function text(bytesMax: number): Field<string> {
  return {
    put(writer, value) {
      const bytes = encoder.encode(value)
      assert(bytes.length <= bytesMax, `a text here has at most ${bytesMax} bytes`)
      u16.put(writer, bytes.length)
      putBytes(writer, bytes)
    },
    take(reader) {
      const length = u16.take(reader, NOTHING)
      return length > bytesMax ? bad(reader, '') : decode(reader, takeBytes(reader, length))
    },
  }
}

/** Text for people: truncated to the bound. */
export function words(bytesMax: number): Field<string> {
  return {
    put(writer, value) {
      const bytes = new Uint8Array(bytesMax)
      const { written } = encoder.encodeInto(value, bytes)
      u16.put(writer, written)
      putBytes(writer, bytes.subarray(0, written))
    },
    take: text(bytesMax).take,
  }
}

const encoder = new TextEncoder()
/** Throws on invalid UTF-8. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(reader: Reader, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    // Not UTF-8.
    return bad(reader, '')
  }
}

const idText = text(LIMITS.componentIdBytesMax)

/** Id of a node or shard, or ''. */
export const optionalId: Field<string> = {
  put(writer, value) {
    assert(value === '' || parseId(value) !== undefined, 'ids of nodes and shards are valid')
    idText.put(writer, value)
  },
  take(reader, before) {
    const value = idText.take(reader, before)
    return value === '' || parseId(value) !== undefined ? value : bad(reader, '')
  },
}

export const id: Field<string> = {
  put(writer, value) {
    assert(value !== '', 'an id is not empty')
    optionalId.put(writer, value)
  },
  take(reader, before) {
    const value = optionalId.take(reader, before)
    return value === '' ? bad(reader, '') : value
  },
}

/** A fixed number of bytes as lower-case hexadecimal digits. */
export function hex(length: number): Field<string> {
  return {
    put(writer, value) {
      assert(value.length === 2 * length && HEX.test(value), `${2 * length} lower-case hexadecimal digits`)
      const at = grow(writer, length)
      for (let i = 0; i < length; i++) writer.bytes[at + i] = Number.parseInt(value.slice(2 * i, 2 * i + 2), 16)
    },
    take(reader) {
      let value = ''
      for (const byte of takeBytes(reader, length)) value += HEX_OF_BYTE[byte]
      return value
    },
  }
}

const HEX = /^[0-9a-f]*$/
const HEX_OF_BYTE = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** SHA-256. */
export const digest: Field<string> = hex(DIGEST_BYTES)

/** A fixed number of bytes as hexadecimal digits, or ''. */
export function optionalHex(length: number): Field<string> {
  const field = maybe(hex(length))
  return {
    put: (writer, value) => field.put(writer, value === '' ? undefined : value),
    take: (reader, before) => field.take(reader, before) ?? '',
  }
}

export function maybe<T>(field: Field<T>): Field<T | undefined> {
  return {
    put(writer, value) {
      flag.put(writer, value !== undefined)
      if (value !== undefined) field.put(writer, value)
    },
    take: (reader, before) => (flag.take(reader, before) ? field.take(reader, before) : undefined),
  }
}

export function list<T>(field: Field<T>, countMax: number): Field<readonly T[]> {
  return {
    put(writer, items) {
      assert(items.length <= countMax, `a list here has at most ${countMax} items`)
      u16.put(writer, items.length)
      for (const item of items) field.put(writer, item)
    },
    take(reader, before) {
      const count = u16.take(reader, before)
      const items: T[] = []
      if (count > countMax) return bad(reader, items)
      for (let i = 0; i < count && !reader.isBad; i++) items.push(field.take(reader, before))
      return items
    },
  }
}

/** Fields in sequence. */
export function record<T extends object>(fields: { readonly [K in keyof T]-?: Field<T[K]> }): Field<T> {
  const rows = Object.entries(fields) as [keyof T, Field<T[keyof T]>][]
  return {
    put(writer, value) {
      for (const [name, field] of rows) field.put(writer, value[name])
    },
    take: (reader, before) => Object.fromEntries(rows.map(([name, field]) => [name, field.take(reader, before)])) as T,
  }
}

/** A field whose value must satisfy more than its encoding. */
export function checked<T>(field: Field<T>, holds: (value: T) => boolean): Field<T> {
  return {
    put: field.put,
    take(reader, before) {
      const value = field.take(reader, before)
      return reader.isBad || holds(value) ? value : bad(reader, value)
    },
  }
}

export function createWriter(capacity: number): Writer {
  const bytes = new Uint8Array(capacity)
  return { bytes, view: viewOf(bytes), at: 0 }
}

/** The bytes written so far. */
export function bytesOf(writer: Writer): Uint8Array {
  return writer.bytes.subarray(0, writer.at)
}

/** Makes room for `length` bytes. @returns their position */
function grow(writer: Writer, length: number): number {
  const at = writer.at
  writer.at = at + length
  assert(writer.at <= FRAME_BYTES_MAX, 'a frame is within its bound')
  if (writer.at > writer.bytes.length) {
    const bytes = new Uint8Array(Math.max(writer.at, 2 * writer.bytes.length))
    bytes.set(writer.bytes.subarray(0, at))
    writer.bytes = bytes
    writer.view = viewOf(bytes)
  }
  return at
}

export function putU32(writer: Writer, value: number): void {
  assert(Number.isInteger(value) && value >= 0 && value < 2 ** 32, 'the number fits 32 bits')
  const at = grow(writer, 4)
  writer.view.setUint32(at, value, true)
}

function putByte(writer: Writer, value: number): void {
  const at = grow(writer, 1)
  writer.bytes[at] = value
}

export function putBytes(writer: Writer, bytes: Uint8Array): void {
  const at = grow(writer, bytes.length)
  writer.bytes.set(bytes, at)
}

export function bad<T>(reader: Reader, value: T): T {
  reader.isBad = true
  return value
}

/** @returns the position of the next `length` bytes; −1 when there are fewer */
function advance(reader: Reader, length: number): number {
  if (reader.isBad || length > reader.bytes.length - reader.at) return bad(reader, -1)
  const at = reader.at
  reader.at += length
  return at
}

function takeByte(reader: Reader): number {
  const at = advance(reader, 1)
  return at < 0 ? 0 : reader.view.getUint8(at)
}

export function takeU32(reader: Reader): number {
  const at = advance(reader, 4)
  return at < 0 ? 0 : reader.view.getUint32(at, true)
}

/** Returns a view. */
export function takeBytes(reader: Reader, length: number): Uint8Array {
  const at = advance(reader, length)
  return at < 0 ? NOTHING : reader.bytes.subarray(at, at + length)
}

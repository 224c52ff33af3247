/**
 * Fields of the manifest and columns of numbers, written and read back with every length checked.
 *
 * A column is `u8 width · width planes of one byte a value`, lowest byte first: numbers that differ little are left
 * with planes of zeroes, which zstd makes nothing of. All integers are little-endian.
 */

import { assert, VacancyError } from '@vacancy/shared'

export type FieldWriter = { bytes: Uint8Array; view: DataView; length: number }

export function createFieldWriter(): FieldWriter {
  const bytes = new Uint8Array(4096)
  return { bytes, view: new DataView(bytes.buffer), length: 0 }
}

export function written(writer: FieldWriter): Uint8Array {
  return writer.bytes.subarray(0, writer.length)
}

/** Makes room for `count` bytes and moves past them. @returns where they begin */
function take(writer: FieldWriter, count: number): number {
  const start = writer.length
  if (start + count > writer.bytes.length) {
    const grown = new Uint8Array(Math.max(writer.bytes.length * 2, start + count))
    grown.set(written(writer))
    writer.bytes = grown
    writer.view = new DataView(grown.buffer)
  }
  writer.length = start + count
  return start
}

export function putU8(writer: FieldWriter, value: number): void {
  const at = take(writer, 1)
  writer.bytes[at] = value
}

export function putU16(writer: FieldWriter, value: number): void {
  assert(value >= 0 && value <= 0xffff, 'the value fits 16 bits')
  const at = take(writer, 2)
  writer.view.setUint16(at, value, true)
}

export function putU32(writer: FieldWriter, value: number): void {
  assert(value >= 0 && value <= 0xffffffff, 'the value fits 32 bits')
  const at = take(writer, 4)
  writer.view.setUint32(at, value, true)
}

/** Indexes, terms and counts of packages: safe integers in 64 bits (docs/design/consensus.md#determinism). */
export function putU64(writer: FieldWriter, value: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, 'a 64-bit field holds a safe integer')
  putU32(writer, value % 2 ** 32)
  putU32(writer, Math.floor(value / 2 ** 32))
}

export function putBytes(writer: FieldWriter, bytes: Uint8Array): void {
  const at = take(writer, bytes.length)
  writer.bytes.set(bytes, at)
}

const encoder = new TextEncoder()

export function putText(writer: FieldWriter, text: string): void {
  const bytes = encoder.encode(text)
  putU16(writer, bytes.length)
  putBytes(writer, bytes)
}

export function putTexts(writer: FieldWriter, texts: readonly string[]): void {
  putU32(writer, texts.length)
  for (const text of texts) putText(writer, text)
}

/** One column; its length is not written. */
export function putColumn(writer: FieldWriter, values: Uint32Array): void {
  let used = 0
  for (let i = 0; i < values.length; i++) used |= values[i]
  // At least one plane, so that a count of values is never larger than the bytes that are there.
  const width = used >>> 24 !== 0 ? 4 : used >>> 16 !== 0 ? 3 : used >>> 8 !== 0 ? 2 : 1
  putU8(writer, width)
  for (let plane = 0; plane < width; plane++) {
    const at = take(writer, values.length)
    const { bytes } = writer
    for (let i = 0; i < values.length; i++) bytes[at + i] = values[i] >>> (plane * 8)
  }
}

/** A column of values that are near the value before: the zigzag of the differences, modulo 2^32. */
export function putDeltaColumn(writer: FieldWriter, values: Uint32Array): void {
  const deltas = new Uint32Array(values.length)
  let before = 0
  for (let i = 0; i < values.length; i++) {
    const value = values[i]
    const difference = (value - before) | 0
    deltas[i] = (difference << 1) ^ (difference >> 31)
    before = value
  }
  putColumn(writer, deltas)
}

/** `count` records of `size` bytes each, as `size` planes. */
export function putRecordPlanes(writer: FieldWriter, records: Uint8Array, size: number): void {
  const count = records.length / size
  for (let plane = 0; plane < size; plane++) {
    const at = take(writer, count)
    const { bytes } = writer
    for (let i = 0, from = plane; i < count; i++, from += size) bytes[at + i] = records[from]
  }
}

/** Reads what the functions above wrote. `name` and `origin` say in errors where the bytes came from. */
export type FieldReader = {
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly name: string
  readonly origin: number
  at: number
}

export function createFieldReader(bytes: Uint8Array, name: string, origin = 0): FieldReader {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), name, origin, at: 0 }
}

/** The error of everything that is not as it was written. */
export function damaged(file: string, offset: number, reason: string, cause?: unknown): VacancyError {
  return new VacancyError('corrupt_data', { file, offset, reason }, { cause })
}

export function isDamage(error: unknown): error is VacancyError {
  return error instanceof VacancyError && error.code === 'corrupt_data'
}

/** The same for what was read last. */
export function refuse(reader: FieldReader, reason: string): never {
  throw damaged(reader.name, reader.origin + reader.at, reason)
}

/** Moves past `count` bytes. @returns where they begin */
function skip(reader: FieldReader, count: number): number {
  const start = reader.at
  if (count > reader.bytes.length - start)
    refuse(reader, `${count} bytes are expected, ${reader.bytes.length - start} are left`)
  reader.at = start + count
  return start
}

export function takeU8(reader: FieldReader): number {
  return reader.bytes[skip(reader, 1)]
}

export function takeU16(reader: FieldReader): number {
  return reader.view.getUint16(skip(reader, 2), true)
}

export function takeU32(reader: FieldReader): number {
  return reader.view.getUint32(skip(reader, 4), true)
}

export function takeU64(reader: FieldReader): number {
  const low = takeU32(reader)
  const value = takeU32(reader) * 2 ** 32 + low
  if (!Number.isSafeInteger(value)) refuse(reader, 'a number is larger than 2^53')
  return value
}

/** A copy, so that it does not hold on to the file it came from. */
export function takeBytes(reader: FieldReader, count: number): Uint8Array {
  const start = skip(reader, count)
  return new Uint8Array(reader.bytes.subarray(start, start + count))
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function takeText(reader: FieldReader): string {
  const bytes = takeBytes(reader, takeU16(reader))
  try {
    return decoder.decode(bytes)
  } catch (error) {
    throw damaged(reader.name, reader.origin + reader.at, 'a text is not UTF-8', error)
  }
}

/** A count of items of at least `bytesEach` bytes, so that a damaged count cannot allocate more than the input holds. */
export function takeCount(reader: FieldReader, bytesEach: number): number {
  const count = takeU32(reader)
  const left = reader.bytes.length - reader.at
  if (count > left / bytesEach) refuse(reader, `a count of ${count} does not fit the ${left} bytes that are left`)
  return count
}

export function takeTexts(reader: FieldReader): string[] {
  const texts: string[] = new Array(takeCount(reader, 2))
  for (let i = 0; i < texts.length; i++) texts[i] = takeText(reader)
  return texts
}

export function takeColumn(reader: FieldReader, count: number): Uint32Array {
  const width = takeU8(reader)
  if (width < 1 || width > 4) refuse(reader, `a column is ${width} bytes wide`)
  const start = skip(reader, count * width)
  const { bytes } = reader
  const values = new Uint32Array(count)
  for (let plane = 0; plane < width; plane++) {
    const from = start + plane * count
    for (let i = 0; i < count; i++) values[i] = values[i] | (bytes[from + i] << (plane * 8))
  }
  return values
}

export function takeDeltaColumn(reader: FieldReader, count: number): Uint32Array {
  const values = takeColumn(reader, count)
  let before = 0
  for (let i = 0; i < count; i++) {
    const delta = values[i]
    before = (before + ((delta >>> 1) ^ -(delta & 1))) | 0
    values[i] = before
  }
  return values
}

export function takeRecordPlanes(reader: FieldReader, count: number, size: number, records: Uint8Array): void {
  assert(records.length === count * size, 'the records fit their place')
  const start = skip(reader, count * size)
  const { bytes } = reader
  for (let plane = 0; plane < size; plane++) {
    const from = start + plane * count
    for (let i = 0, to = plane; i < count; i++, to += size) records[to] = bytes[from + i]
  }
}

export function expectEnd(reader: FieldReader): void {
  if (reader.at !== reader.bytes.length) refuse(reader, `${reader.bytes.length - reader.at} bytes are left over`)
}

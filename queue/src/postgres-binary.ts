/**
 * Values in the binary format of PostgreSQL: no text is escaped and nothing is parsed again. Arrays are parameters: a
 * header of dimensions, then each item with its length. Rows are what COPY reads
 * (https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format").
 */

/** Types of items, by their object id. */
const OID = { int8: 20, int4: 23, text: 25 } as const
const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const TWO_32 = 2 ** 32

export function int4Array(values: readonly number[]): Buffer {
  const buffer = arrayOf(OID.int4, values.length, values.length * (LENGTH_BYTES + 4))
  let at = HEADER_BYTES
  for (const value of values) at = writeInt4(buffer, value, at)
  return buffer
}

/** Of exact integers, up to 2^53. */
export function int8Array(values: readonly number[]): Buffer {
  const buffer = arrayOf(OID.int8, values.length, values.length * (LENGTH_BYTES + 8))
  let at = HEADER_BYTES
  for (const value of values) at = writeInt8(buffer, value, at)
  return buffer
}

export function textArray(values: readonly string[]): Buffer {
  const texts = values.map(withoutZero)
  let bytes = 0
  for (const text of texts) bytes += LENGTH_BYTES + Buffer.byteLength(text)
  const buffer = arrayOf(OID.text, texts.length, bytes)
  let at = HEADER_BYTES
  for (const text of texts) at = writeText(buffer, text, at)
  return buffer
}

function arrayOf(oid: number, items: number, bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + bytes)
  // One dimension, nulls possible, its type, its length, its first index.
  let at = buffer.writeInt32BE(1, 0)
  at = buffer.writeInt32BE(1, at)
  at = buffer.writeInt32BE(oid, at)
  at = buffer.writeInt32BE(items, at)
  buffer.writeInt32BE(1, at)
  return buffer
}

// --- Rows ---

/** The messages of a COPY: its rows, and their end. */
export type CopyRows = { readonly buffer: Buffer; at: number }

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
/** Type and length of a message, signature, flags, and the length of what may follow them. */
const BEGIN_BYTES = 5 + SIGNATURE.length + 8
const END_BYTES = 2 + 5
const COPY_DATA = 0x64
const COPY_DONE = 0x63

/** @param bytesMax of all rows */
export function beginCopy(bytesMax: number): CopyRows {
  const buffer = Buffer.allocUnsafe(BEGIN_BYTES + bytesMax + END_BYTES)
  SIGNATURE.copy(buffer, 5)
  buffer.fill(0, 5 + SIGNATURE.length, BEGIN_BYTES)
  return { buffer, at: BEGIN_BYTES }
}

/** Begins a row; as many values follow. */
export function addRow(rows: CopyRows, columns: number): void {
  rows.at = rows.buffer.writeInt16BE(columns, rows.at)
}

export function addInt4(rows: CopyRows, value: number): void {
  rows.at = writeInt4(rows.buffer, value, rows.at)
}

/** An exact integer, up to 2^53. */
export function addInt8(rows: CopyRows, value: number): void {
  rows.at = writeInt8(rows.buffer, value, rows.at)
}

/** At most three bytes for each UTF-16 unit. */
export function addText(rows: CopyRows, value: string): void {
  rows.at = writeText(rows.buffer, withoutZero(value), rows.at)
}

/** Room for `length` bytes; -1 is null. @returns where to write them */
export function addBytes(rows: CopyRows, length: number): number {
  const at = rows.buffer.writeInt32BE(length, rows.at)
  rows.at = at + Math.max(0, length)
  return at
}

export function endCopy({ buffer, at }: CopyRows): Buffer {
  const end = buffer.writeInt16BE(-1, at)
  buffer[0] = COPY_DATA
  buffer.writeInt32BE(end - 1, 1)
  buffer[end] = COPY_DONE
  return buffer.subarray(0, buffer.writeInt32BE(LENGTH_BYTES, end + 1))
}

// --- Values ---

function writeInt4(buffer: Buffer, value: number, at: number): number {
  return buffer.writeInt32BE(value, buffer.writeInt32BE(4, at))
}

function writeInt8(buffer: Buffer, value: number, at: number): number {
  const high = Math.floor(value / TWO_32)
  return buffer.writeUInt32BE(value - high * TWO_32, buffer.writeInt32BE(high, buffer.writeInt32BE(8, at)))
}

function writeText(buffer: Buffer, text: string, at: number): number {
  const length = buffer.write(text, at + LENGTH_BYTES)
  return buffer.writeInt32BE(length, at) + length
}

/** PostgreSQL has no texts with the character 0, which becomes the replacement character. */
function withoutZero(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
}

/**
 * Arrays as parameters of PostgreSQL in its binary format: no text is escaped and nothing is parsed again. A header of
 * dimensions, then each item with its length.
 */

/** Types of items, by their object id. */
const OID = { bytea: 17, int8: 20, int4: 23, text: 25 } as const
const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const NULL_LENGTH = -1
const TWO_32 = 2 ** 32

export function int4Array(values: readonly number[]): Buffer {
  const buffer = arrayOf(OID.int4, values.length, values.length * (LENGTH_BYTES + 4))
  let at = HEADER_BYTES
  for (const value of values) {
    at = buffer.writeInt32BE(4, at)
    at = buffer.writeInt32BE(value, at)
  }
  return buffer
}

/** Of exact integers, up to 2^53. */
export function int8Array(values: readonly number[]): Buffer {
  const buffer = arrayOf(OID.int8, values.length, values.length * (LENGTH_BYTES + 8))
  let at = HEADER_BYTES
  for (const value of values) {
    const high = Math.floor(value / TWO_32)
    at = buffer.writeInt32BE(8, at)
    at = buffer.writeInt32BE(high, at)
    at = buffer.writeUInt32BE(value - high * TWO_32, at)
  }
  return buffer
}

/** PostgreSQL has no texts with the character 0, which becomes the replacement character. */
export function textArray(values: readonly string[]): Buffer {
  const texts = values.map((value) => (value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value))
  let bytes = 0
  for (const text of texts) bytes += LENGTH_BYTES + Buffer.byteLength(text)
  const buffer = arrayOf(OID.text, texts.length, bytes)
  let at = HEADER_BYTES
  for (const text of texts) {
    const length = buffer.write(text, at + LENGTH_BYTES)
    at = buffer.writeInt32BE(length, at) + length
  }
  return buffer
}

/**
 * Bytes that `write` puts into the buffer, so that they are copied once.
 *
 * @param lengths -1 for null
 */
export function bytesArray(
  lengths: readonly number[],
  write: (item: number, buffer: Buffer, offset: number) => void,
): Buffer {
  let bytes = 0
  for (const length of lengths) bytes += LENGTH_BYTES + Math.max(0, length)
  const buffer = arrayOf(OID.bytea, lengths.length, bytes)
  let at = HEADER_BYTES
  for (const [item, length] of lengths.entries()) {
    at = buffer.writeInt32BE(length, at)
    if (length === NULL_LENGTH) continue
    write(item, buffer, at)
    at += length
  }
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

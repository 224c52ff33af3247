/**
 * Property ids: text outside, 16 bytes inside and in search replies (docs/design/protocol.md#property-ids).
 *
 *   byte    0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
 *   short   c0  c1  c2  c3  c4  c5  F0  c6  c7  c8  c9 c10 c11 c12 c13  00
 *   UUID    the 16 bytes of the UUID in the order of its text form
 *
 * The high half of byte 6 of a UUID is its version, 1 to 7, so the byte is never F0.
 */

import { LIMITS } from './domain.ts'

export const PROPERTY_ID_BYTES = 16

const SHORT_MARK = 0xf0
const SHORT_HEAD = 6
const UUID_CHARACTERS = 36
const UUID_VERSION_AT = 14
const HYPHEN = 0x2d
const BLANK = 0x20
const LAST_PRINTABLE = 0x7e

/** Value of a hexadecimal digit, 0xff for any other byte. */
const HEX_VALUES = new Uint8Array(256).fill(0xff)
for (let i = 0; i < 16; i++) {
  HEX_VALUES['0123456789abcdef'.charCodeAt(i)] = i
  HEX_VALUES['0123456789ABCDEF'.charCodeAt(i)] = i
}
const HEX_PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** The 16 bytes of an id; undefined when the text is neither a UUID of version 1–5 or 7 nor a short id. */
export function packPropertyId(text: string): Uint8Array | undefined {
  if (text.length > UUID_CHARACTERS) return undefined
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > LAST_PRINTABLE) return undefined
    bytes[i] = code
  }
  const packed = new Uint8Array(PROPERTY_ID_BYTES)
  return packPropertyIdInto(bytes, 0, bytes.length, packed, 0) ? packed : undefined
}

/**
 * Packs the text at [start, end) into 16 bytes at `outStart`.
 *
 * @returns false when it is not a property id; the output is then undefined
 */
export function packPropertyIdInto(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  outStart: number,
): boolean {
  const length = end - start
  if (length === UUID_CHARACTERS) return packUuid(bytes, start, out, outStart)
  if (length < 1 || length > LIMITS.shortIdMax) return false
  if (bytes[start] === BLANK || bytes[end - 1] === BLANK) return false
  out.fill(0, outStart, outStart + PROPERTY_ID_BYTES)
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i] as number
    if (byte < BLANK || byte > LAST_PRINTABLE) return false
    out[outStart + (i < SHORT_HEAD ? i : i + 1)] = byte
  }
  out[outStart + SHORT_HEAD] = SHORT_MARK
  return true
}

function packUuid(bytes: Uint8Array, start: number, out: Uint8Array, outStart: number): boolean {
  let at = start
  for (let i = 0; i < PROPERTY_ID_BYTES; i++) {
    if ((i === 4 || i === 6 || i === 8 || i === 10) && bytes[at++] !== HYPHEN) return false
    const high = HEX_VALUES[bytes[at] as number] as number
    const low = HEX_VALUES[bytes[at + 1] as number] as number
    if ((high | low) > 15) return false
    out[outStart + i] = (high << 4) | low
    at += 2
  }
  const version = HEX_VALUES[bytes[start + UUID_VERSION_AT] as number] as number
  return (version >= 1 && version <= 5) || version === 7
}

/** Text of the 16 bytes at `start`; UUIDs in lower case. */
export function unpackPropertyId(bytes: Uint8Array, start: number): string {
  let text = ''
  if (bytes[start + SHORT_HEAD] === SHORT_MARK) {
    for (let i = 0; i < SHORT_HEAD && bytes[start + i] !== 0; i++)
      text += String.fromCharCode(bytes[start + i] as number)
    for (let i = SHORT_HEAD + 1; i < PROPERTY_ID_BYTES && bytes[start + i] !== 0; i++) {
      text += String.fromCharCode(bytes[start + i] as number)
    }
    return text
  }
  for (let i = 0; i < PROPERTY_ID_BYTES; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) text += '-'
    text += HEX_PAIRS[bytes[start + i] as number] as string
  }
  return text
}

/** Bytes that hold many packed ids, as text: cutting an id out is quicker than putting it together. */
export type PackedTexts = {
  readonly bytes: Uint8Array
  readonly latin1: string
  /** '' until a UUID is needed. */
  hex: string
}

export function packedTextsOf(bytes: Uint8Array): PackedTexts {
  return { bytes, latin1: textOf(bytes, 'latin1'), hex: '' }
}

/**
 * As `unpackPropertyId`. V8 copies pieces of less than 13 characters, so that an id does not keep the whole text
 * in memory.
 */
export function cutPropertyId(texts: PackedTexts, start: number): string {
  const { bytes, latin1 } = texts
  if (bytes[start + SHORT_HEAD] !== SHORT_MARK) return cutUuid(texts, start)
  const tailStart = start + SHORT_HEAD + 1
  const headEnd = endOfText(bytes, start, tailStart - 1)
  const tailEnd = endOfText(bytes, tailStart, start + PROPERTY_ID_BYTES)
  const head = latin1.substring(start, headEnd)
  return tailEnd === tailStart ? head : head + latin1.substring(tailStart, tailEnd)
}

function endOfText(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && bytes[at] !== 0) at++
  return at
}

function cutUuid(texts: PackedTexts, start: number): string {
  if (texts.hex === '') texts.hex = textOf(texts.bytes, 'hex')
  const { hex } = texts
  const at = start * 2
  const head = `${hex.substring(at, at + 8)}-${hex.substring(at + 8, at + 12)}`
  const middle = `-${hex.substring(at + 12, at + 16)}-${hex.substring(at + 16, at + 20)}-`
  return head + middle + hex.substring(at + 20, at + 32)
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array, encoding: 'latin1' | 'hex'): string {
  // biome-ignore lint/style/noRestrictedGlobals: Replies are read by programs of Node, where this is quicker than a TextDecoder.
  return Buffer.from(buffer, byteOffset, byteLength).toString(encoding)
}

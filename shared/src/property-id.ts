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
import { textOfLatin1 } from './text.ts'

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
const HEX_LETTERS = Uint8Array.from('0123456789abcdef', (letter) => letter.charCodeAt(0))

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
  return textOfLatin1(letters, 0, putId(bytes, start, 0)) as string
}

/** The letters of ids, one after the other. */
let letters = new Uint8Array(UUID_CHARACTERS)

/** @returns the end of the letters */
function putId(bytes: Uint8Array, start: number, to: number): number {
  return bytes[start + SHORT_HEAD] === SHORT_MARK ? putShort(bytes, start, to) : putUuid(bytes, start, to)
}

function putShort(bytes: Uint8Array, start: number, to: number): number {
  let at = to
  const mark = start + SHORT_HEAD
  const end = start + PROPERTY_ID_BYTES
  for (let i = start; i < mark && bytes[i] !== 0; i++) letters[at++] = bytes[i] as number
  for (let i = mark + 1; i < end && bytes[i] !== 0; i++) letters[at++] = bytes[i] as number
  return at
}

function putUuid(bytes: Uint8Array, start: number, to: number): number {
  let at = to
  for (let i = 0; i < PROPERTY_ID_BYTES; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) letters[at++] = HYPHEN
    const byte = bytes[start + i] as number
    letters[at++] = HEX_LETTERS[byte >>> 4] as number
    letters[at++] = HEX_LETTERS[byte & 15] as number
  }
  return at
}

/**
 * V8 copies pieces of less than 13 characters. A longer one keeps the whole text in memory, so that such a text is of
 * few ids.
 */
const CUT_CHARACTERS_MAX = 12
const LONG_IDS_OF_TEXT = 8
/** Of 1,820 UUIDs; what more of them needed is released. */
const LETTERS_KEPT_MAX = 65_536

/** The ids that begin `stride` bytes apart: the letters of many become text at once, of which each id is a piece. */
export function unpackPropertyIds(bytes: Uint8Array, start: number, stride: number, count: number): string[] {
  if (letters.length < count * UUID_CHARACTERS) letters = new Uint8Array(count * UUID_CHARACTERS)
  const ids = new Array<string>(count).fill('')
  const ends = new Uint32Array(count)
  let end = 0
  let longest = 0
  for (let i = 0, at = start; i < count; i++, at += stride) {
    const stop = putId(bytes, at, end)
    if (stop - end > longest) longest = stop - end
    ends[i] = stop
    end = stop
  }
  const idsOfText = longest > CUT_CHARACTERS_MAX ? LONG_IDS_OF_TEXT : count
  for (let first = 0, from = 0; first < count; first += idsOfText) {
    const last = Math.min(first + idsOfText, count)
    const text = latin1Of(letters, from, ends[last - 1] as number)
    for (let i = first, at = 0; i < last; i++) {
      const stop = (ends[i] as number) - from
      ids[i] = text.substring(at, stop)
      at = stop
    }
    from = ends[last - 1] as number
  }
  if (letters.length > LETTERS_KEPT_MAX) letters = new Uint8Array(UUID_CHARACTERS)
  return ids
}

function latin1Of({ buffer }: Uint8Array, start: number, end: number): string {
  // biome-ignore lint/style/noRestrictedGlobals: Replies are read by programs of Node, where this is quicker than a TextDecoder.
  return Buffer.from(buffer, start, end - start).toString('latin1')
}

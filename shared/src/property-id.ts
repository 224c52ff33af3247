/**
 * Property ids: text in requests, 16 packed bytes in search replies and everywhere inside (wire-protocol.md §6.3).
 *
 *   byte    0   1   2   3   4   5   6   7   8  …  14  15
 *   short   c0  c1  c2  c3  c4  c5  F0  c6  c7 …  c13 00
 *   UUID    the 16 bytes of the UUID in the order of its text form
 */

import { LIMITS } from './domain.ts'

export const PROPERTY_ID_BYTES = 16
const SHORT_MARKER = 0xf0
const MARKER_AT = 6
const UUID_LENGTH = 36
const HYPHEN = 0x2d
const BLANK = 0x20
const TILDE = 0x7e

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/**
 * Packs the text at [start, end) into 16 bytes of `out`.
 *
 * @returns false when it is neither a UUID of version 1–5 or 7 nor 1–14 printable ASCII characters without blank ends
 */
export function packPropertyIdInto(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  outStart: number,
): boolean {
  const length = end - start
  if (length === UUID_LENGTH) return packUuid(bytes, start, out, outStart)
  if (length < 1 || length > LIMITS.shortIdMax) return false
  if (bytes[start] === BLANK || bytes[end - 1] === BLANK) return false
  out.fill(0, outStart, outStart + PROPERTY_ID_BYTES)
  out[outStart + MARKER_AT] = SHORT_MARKER
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i] as number
    if (byte < BLANK || byte > TILDE) return false
    out[outStart + (i < MARKER_AT ? i : i + 1)] = byte
  }
  return true
}

function packUuid(bytes: Uint8Array, start: number, out: Uint8Array, outStart: number): boolean {
  let at = start
  for (let i = 0; i < PROPERTY_ID_BYTES; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) {
      if (bytes[at++] !== HYPHEN) return false
    }
    const high = hexValue(bytes[at++] as number)
    const low = hexValue(bytes[at++] as number)
    if (high < 0 || low < 0) return false
    out[outStart + i] = (high << 4) | low
  }
  const version = (out[outStart + MARKER_AT] as number) >>> 4
  return (version >= 1 && version <= 5) || version === 7
}

const encoder = new TextEncoder()

/** @returns 16 bytes, or undefined for what is no property id */
export function packPropertyId(text: string): Uint8Array | undefined {
  const bytes = encoder.encode(text)
  const out = new Uint8Array(PROPERTY_ID_BYTES)
  return packPropertyIdInto(bytes, 0, bytes.length, out, 0) ? out : undefined
}

/** The text of 16 packed bytes; a UUID in lower case. */
export function unpackPropertyId(bytes: Uint8Array, start: number): string {
  if (bytes[start + MARKER_AT] === SHORT_MARKER) return unpackShort(bytes, start)
  let text = ''
  for (let i = 0; i < PROPERTY_ID_BYTES; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) text += '-'
    text += (bytes[start + i] as number).toString(16).padStart(2, '0')
  }
  return text
}

function unpackShort(bytes: Uint8Array, start: number): string {
  let text = ''
  for (let i = 0; i < PROPERTY_ID_BYTES; i++) {
    if (i === MARKER_AT) continue
    const byte = bytes[start + i] as number
    if (byte !== 0) text += String.fromCharCode(byte)
    else if (i > MARKER_AT) break
  }
  return text
}

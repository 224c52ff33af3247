/**
 * Rules for text: what names may hold (docs/design/protocol.md#text-and-lists), and how foreign text is quoted in an
 * error (docs/design/consensus.md#identities).
 */

import { LIMITS } from './domain.ts'

const BLANK = 0x20
const VISIBLE = 0x21
const DELETE = 0x7f

/**
 * Validates a name in place.
 *
 * @param bytesMax maximum length
 * @returns '' or what is wrong, to follow the name of the field: 'must be 1 to 255 bytes, got 300'
 */
export function textFault(bytes: Uint8Array, start: number, end: number, bytesMax: number): string {
  const length = end - start
  if (length < 1 || length > bytesMax) return `must be 1 to ${bytesMax} bytes, got ${length}`
  // Most names are of visible ASCII alone.
  let plain = start
  while (plain < end && ((bytes[plain] as number) - VISIBLE) >>> 0 < DELETE - VISIBLE) plain++
  if (plain === end) return ''
  let onlyBlanks = true
  let onlyAscii = true
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number
    if (byte < BLANK || byte === DELETE) return `must not hold control characters, has byte ${byte} at ${i - start}`
    if (byte !== BLANK) onlyBlanks = false
    if (byte > DELETE) onlyAscii = false
  }
  if (onlyBlanks) return 'must not be blank'
  if (!onlyAscii && !isUtf8(bytes, start, end)) return 'is not valid UTF-8'
  return ''
}

/** Whether the bytes are well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
export function isUtf8(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start
  while (at < end) {
    const lead = bytes[at++] as number
    if (lead < 0x80) continue
    // The second byte carries all restrictions; the later ones are plain continuations (Unicode table 3-7).
    let low = 0x80
    let high = 0xbf
    let more = 0
    if (lead >= 0xc2 && lead <= 0xdf) more = 1
    else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2
      if (lead === 0xe0) low = 0xa0
      else if (lead === 0xed) high = 0x9f
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3
      if (lead === 0xf0) low = 0x90
      else if (lead === 0xf4) high = 0x8f
    } else return false
    if (end - at < more) return false
    for (; more > 0; more--) {
      const byte = bytes[at++] as number
      if (byte < low || byte > high) return false
      low = 0x80
      high = 0xbf
    }
  }
  return true
}

/** Per length, reused: the codes of a short text. */
const CODES = Array.from({ length: 64 }, (_, length) => new Array<number>(length).fill(0))

/**
 * A few bytes as Latin-1, of which ASCII is a part: much quicker than a TextDecoder.
 *
 * @returns undefined for 64 bytes and more
 */
export function textOfLatin1(bytes: Uint8Array, start: number, end: number): string | undefined {
  const codes = CODES[end - start]
  if (codes === undefined) return undefined
  for (let i = 0; i < codes.length; i++) codes[i] = bytes[start + i] as number
  return String.fromCharCode(...codes)
}

/** Valid UTF-8 as text. */
export function textOfUtf8(bytes: Uint8Array, start: number, end: number): string {
  let at = start
  while (at < end && (bytes[at] as number) < 0x80) at++
  const ascii = at === end ? textOfLatin1(bytes, start, end) : undefined
  return ascii ?? decoder.decode(bytes.subarray(start, end))
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Bytes of foreign text that an error quotes. */
const QUOTED_BYTES_MAX = 64

/**
 * Foreign text, safe to quote in the explanation of an ERROR reply. It has no quote, backslash, control character or
 * colon, because clients cut at colons and the gateway pastes the text into JSON unescaped. Long text is truncated
 * with `…`.
 */
export function cleanErrorText(text: string, bytesMax: number = QUOTED_BYTES_MAX): string {
  return cutToBytes(text.replace(UNFIT, '?'), bytesMax)
}

// U+2028 and U+2029 end a line for some log readers; lone surrogates have no UTF-8 form.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters.
const UNFIT = /[\u0000-\u001f\u007f"\\:\u2028\u2029]|\p{Surrogate}/gu

/** An error text with one colon, no quotes, backslashes or control characters, and at most 1024 bytes. */
export function fitErrorText(text: string): string {
  const colon = text.indexOf(':')
  if (colon < 0) return cleanErrorText(text, LIMITS.errorTextBytesMax)
  const code = cleanErrorText(text.slice(0, colon))
  return cutToBytes(
    `${code}:${cleanErrorText(text.slice(colon + 1), LIMITS.errorTextBytesMax)}`,
    LIMITS.errorTextBytesMax,
  )
}

const ELLIPSIS_BYTES = 3

/** The text, or its beginning and `…` when it has more than `bytesMax` bytes of UTF-8. */
export function cutToBytes(text: string, bytesMax: number): string {
  let bytes = 0
  let cut = 0
  let at = 0
  for (const character of text) {
    const code = character.codePointAt(0) as number
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
    if (bytes > bytesMax) return `${text.slice(0, cut)}…`
    at += character.length
    if (bytes <= bytesMax - ELLIPSIS_BYTES) cut = at
  }
  return text
}

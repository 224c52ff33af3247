/**
 * The cursor of a page (docs/design/protocol.md#pages-of-a-search): where the page ended, and of which search. It names
 * no row and no node, so it continues on every replica. 50 bytes as base64url, little-endian:
 *
 *   u8 version · u8 order · u64 key · 16 B packed id · u64 index of the first page · u64 newest index seen
 *   · u32 digest of the search · u32 CRC32C of all before
 */

import type { Values } from '../protocol/values.ts'
import { crc32c } from '../wal/crc32c.ts'

export const CURSOR_BYTES = 50
export const CURSOR = { version: 0, order: 1, key: 2, id: 10, first: 26, newest: 34, digest: 42, crc: 46 } as const
const VERSION = 1
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const TEXT_BYTES = Math.ceil((CURSOR_BYTES * 8) / 6)
const SIXTHS = new Int8Array(128).fill(-1)
for (let i = 0; i < 64; i++) SIXTHS[ALPHABET.charCodeAt(i)] = i

/** Reads the text at [start, end). @returns '' or why it is refused */
export function readCursor(bytes: Uint8Array, start: number, end: number, into: Uint8Array): string {
  const fault = 'cursor must be one that a page returned, unchanged'
  if (end - start !== TEXT_BYTES) return fault
  let bits = 0
  let held = 0
  let to = 0
  for (let at = start; at < end; at++) {
    const sixth = SIXTHS[bytes[at]] ?? -1
    if (sixth < 0) return fault
    bits = ((bits << 6) | sixth) & 0xffff
    held += 6
    if (held < 8) continue
    held -= 8
    into[to++] = (bits >>> held) & 0xff
  }
  // The bits that fill the last character are 0.
  if ((bits & ((1 << held) - 1)) !== 0) return fault
  const view = new DataView(into.buffer)
  if (view.getUint32(CURSOR.crc, true) !== crc32c(into, 0, CURSOR.crc)) return fault
  const version = into[CURSOR.version]
  return version === VERSION ? '' : `cursor has version ${version}, ${VERSION} is accepted, begin with the first page`
}

/** Completes a cursor. @returns its text */
export function cursorText(cursor: Uint8Array): Uint8Array {
  cursor[CURSOR.version] = VERSION
  new DataView(cursor.buffer).setUint32(CURSOR.crc, crc32c(cursor, 0, CURSOR.crc), true)
  const text = new Uint8Array(TEXT_BYTES)
  for (let n = 0; n < TEXT_BYTES; n++) {
    const bit = n * 6
    const pair = (cursor[bit >>> 3] << 8) | (cursor[(bit >>> 3) + 1] ?? 0)
    text[n] = ALPHABET.charCodeAt((pair >>> (10 - (bit & 7))) & 63)
  }
  return text
}

/** Newest index that the pages so far have seen: an older state would go back in time. 0 for a text that is no cursor. */
export function newestOfCursor(bytes: Uint8Array, start: number, end: number): number {
  const cursor = new Uint8Array(CURSOR_BYTES)
  if (readCursor(bytes, start, end, cursor) !== '') return 0
  return Number(new DataView(cursor.buffer).getBigUint64(CURSOR.newest, true))
}

/** Fields that may differ from page to page: they change neither the properties found nor their order. */
const FREE = [
  ...['limit', 'explain', 'cursor', 'want', 'count', 'compact', 'maxStalenessMs', 'minIndex', 'linearizable'],
  ...['facets', 'totalBounds', 'disjunctiveFacets', 'facetValues', 'cells'],
]
const head = new Uint8Array(8)
const headView = new DataView(head.buffer)

/** Digest of the fields of a search, and of its shard. */
export function digestOfSearch({ scan }: Values, genesis: Uint8Array): number {
  const { fields, name } = scan.command
  let digest = crc32c(genesis, 0, genesis.length, name.length)
  for (const [place, field] of fields.entries()) {
    const start = scan.start[place]
    if (start < 0 || FREE.includes(field.name)) continue
    headView.setUint32(0, field.id, true)
    headView.setUint32(4, scan.length[place], true)
    digest = crc32c(scan.bytes, start, start + scan.length[place], crc32c(head, 0, head.length, digest))
  }
  return digest
}

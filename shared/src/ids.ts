/**
 * Ids of zones, shards and nodes (docs/design/http.md#identifiers), and sessions of request keys
 * (docs/design/protocol.md#extension-fields).
 */

import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { LIMITS } from './domain.ts'

const COMPONENT_ID = /^[A-Za-z0-9._-]+$/
/** Topics of the job queue that a token is valid for: a name, or the beginning of one followed by `*`. */
export const TOPIC_PATTERN = /^(?:[A-Za-z0-9][A-Za-z0-9._:-]{0,199}[*]?|[*])$/

const SESSION = /^[0-9a-f]{32}$/
const SESSION_BYTES = 16

/** The rule for ids of zones, shards and nodes, for the error that refuses one. */
export const ID_RULE = `1 to ${LIMITS.componentIdBytesMax} characters of A-Z a-z 0-9 . _ -, not "." or ".."`

/** The id of a zone, shard or node; undefined when the text is not valid. */
export function parseId(text: string): string | undefined {
  if (text.length > LIMITS.componentIdBytesMax || text === '.' || text === '..') return undefined
  return COMPONENT_ID.test(text) ? text : undefined
}

/** Order of ids, by their bytes: negative, 0 or positive. */
export function compareIds(a: string, b: string): number {
  // Ids are ASCII: the order of UTF-16 units is the order of bytes.
  return a < b ? -1 : a > b ? 1 : 0
}

/** The text form of a session: 32 lower-case hexadecimal digits, from 16 random bytes. */
export function formatSession(random: Uint8Array): string {
  return bytesToHex(random.subarray(0, SESSION_BYTES))
}

/** The 16 bytes of a session; undefined when the text is not valid. */
export function parseSession(text: string): Uint8Array | undefined {
  return SESSION.test(text) ? hexToBytes(text) : undefined
}

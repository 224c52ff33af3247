/**
 * The logged form of a command: validated by the serving thread and carried by the log
 * (docs/design/consensus.md#log-commands).
 *
 *   u16 kind · u64 time · u32 day · u8 flags · [16 B session · u64 number] · body
 *
 * Time (ms, UTC) and day are the leader's, set by the replica when it proposes. All time-dependent code uses them, so
 * that a replay gives the same state. Kind numbers are permanent: a new meaning needs a new number.
 */

import { assert } from '@vacancy/shared'

export const KIND = {
  setProperty: 1,
  setPackage: 2,
  setAvailability: 3,
  increaseAvailability: 4,
  decreaseAvailability: 5,
  deleteProperty: 6,
  deleteSegment: 7,
  deleteDay: 8,
  deleteRoom: 9,
  deletePackage: 10,
  dropBefore: 32,
  settings: 33,
  genesis: 34,
  digestCheck: 35,
  orderRows: 36,
  bulkLoad: 37,
  /** Raises the feature level: from here on apply uses newer rules. Proposed when all members support it. */
  featureLevel: 38,
  /** Sets shard time back or forward, on request of an operator. */
  setTime: 39,
  /** The smallest memory budget of the voters. */
  memoryBudget: 40,
  /** Swaps a few rows of a table, as a step of sorting it. */
  swapRows: 41,
  bookStay: 42,
  holdStay: 43,
  confirmStay: 44,
  releaseStay: 45,
  /** Only has holds expire: the shard has no other entry at the time. */
  expireHolds: 46,
  /** Changes one replicated setting. */
  setting: 47,
  /** The same as without `AsOf`, with the index up to which the source knows bookings in front of the body. */
  setPackageAsOf: 48,
  setAvailabilityAsOf: 49,
} as const
export type CommandKind = (typeof KIND)[keyof typeof KIND]

export const COMMAND_HEADER_BYTES = 15
const KIND_AT = 0
const TIME_AT = 2
const DAY_AT = 10
const FLAGS_AT = 14
const FLAG_REQUEST_KEY = 1
export const REQUEST_KEY_BYTES = 24

/** The optional package values that a command contains. */
export const GIVEN = { availability: 1, price: 2, features: 4 } as const

/** How each outcome is reported; index 0 is success. The number is replicated and stored with request keys. */
const OUTCOMES = [
  { wire: 'SUCCESS', text: '' },
  { wire: 'NOT_FOUND', text: 'property not found' },
  { wire: 'NOT_FOUND', text: 'room type not found' },
  { wire: 'NOT_FOUND', text: 'package not found' },
  { wire: 'NOT_FOUND', text: 'segment not found' },
  { wire: 'OVERFLOW', text: 'availability would pass 255, it is {value}' },
  { wire: 'UNDERFLOW', text: 'not enough rooms left, there are {value}' },
  { wire: 'VALIDATION_ERROR', text: 'a property has at most 256 room types' },
  { wire: 'VALIDATION_ERROR', text: 'the date lies outside the window of today to one year ahead' },
  { wire: 'VALIDATION_ERROR', text: 'this request key was used for another command' },
  { wire: '408', text: '' },
  { wire: '408', text: '' },
  { wire: '503', text: '' },
  { wire: 'NOT_FOUND', text: 'stay not found' },
  { wire: 'NOT_FOUND', text: 'stay to replace not found' },
  { wire: 'SOLD_OUT', text: '' },
  { wire: 'PRICE_CHANGED', text: '' },
  { wire: 'EXPIRED', text: '' },
  { wire: 'CONFLICT', text: '' },
  { wire: 'TOO_OLD', text: '' },
  { wire: 'OVERFLOW', text: 'availability would pass 255 with the rooms on hold, {value} are left' },
  { wire: 'UNKNOWN_INDEX', text: '' },
] as const

export const OUTCOME = {
  done: 0,
  unknownProperty: 1,
  unknownRoomType: 2,
  noPackage: 3,
  unknownSegment: 4,
  overflow: 5,
  underflow: 6,
  tooManyRoomTypes: 7,
  outsideWindow: 8,
  keyReused: 9,
  tooOld: 10,
  sessionExpired: 11,
  refused: 12,
  unknownStay: 13,
  unknownReplaced: 14,
  soldOut: 15,
  priceChanged: 16,
  expired: 17,
  conflict: 18,
  updateTooOld: 19,
  /** From feature level 4 on, instead of `overflow` when rooms are on hold. */
  overflowHeld: 20,
  /** From feature level 5 on: the index that a source names is of another life of the data. */
  unknownIndex: 21,
} as const

/** @param detail instead of the text of the outcome; '' for none */
export function outcomeText(code: number, value: number, detail = ''): string {
  const outcome = OUTCOMES[code]
  assert(outcome !== undefined, 'outcomes are numbered')
  const text = detail === '' ? outcome.text.replace('{value}', String(value)) : detail
  return text === '' ? outcome.wire : `${outcome.wire}: ${text}`
}

/** The wire code of an outcome. */
export function outcomeWire(code: number): string {
  return OUTCOMES[code]?.wire ?? ''
}

/** Writes commands one by one into a growing buffer; one per thread, reused. */
export type CommandWriter = { bytes: Uint8Array; view: DataView; at: number }

export function createCommandWriter(bytes = 4096): CommandWriter {
  const buffer = new Uint8Array(bytes)
  return { bytes: buffer, view: new DataView(buffer.buffer), at: 0 }
}

function reserve(writer: CommandWriter, bytes: number): void {
  if (writer.at + bytes <= writer.bytes.length) return
  const grown = new Uint8Array(Math.max(writer.bytes.length * 2, writer.at + bytes))
  grown.set(writer.bytes)
  writer.bytes = grown
  writer.view = new DataView(grown.buffer)
}

/** @param key 24 bytes at keyStart: session, number; undefined for none */
export function beginCommand(writer: CommandWriter, kind: CommandKind, key?: Uint8Array, keyStart = 0): void {
  reserve(writer, COMMAND_HEADER_BYTES + REQUEST_KEY_BYTES)
  const { view, at } = writer
  view.setUint16(at + KIND_AT, kind, true)
  view.setBigUint64(at + TIME_AT, 0n)
  view.setUint32(at + DAY_AT, 0, true)
  view.setUint8(at + FLAGS_AT, key ? FLAG_REQUEST_KEY : 0)
  writer.at += COMMAND_HEADER_BYTES
  if (!key) return
  writer.bytes.set(key.subarray(keyStart, keyStart + REQUEST_KEY_BYTES), writer.at)
  writer.at += REQUEST_KEY_BYTES
}

export function writeU8(writer: CommandWriter, value: number): void {
  reserve(writer, 1)
  writer.bytes[writer.at++] = value
}

export function writeU32(writer: CommandWriter, value: number): void {
  reserve(writer, 4)
  writer.view.setUint32(writer.at, value, true)
  writer.at += 4
}

export function writeF64(writer: CommandWriter, value: number): void {
  reserve(writer, 8)
  writer.view.setFloat64(writer.at, value, true)
  writer.at += 8
}

export function writeBytes(writer: CommandWriter, bytes: Uint8Array, start: number, end: number): void {
  reserve(writer, end - start)
  for (let i = start, to = writer.at; i < end; i++, to++) writer.bytes[to] = bytes[i]
  writer.at += end - start
}

/** A name of at most 255 bytes, preceded by its length. */
export function writeName(writer: CommandWriter, bytes: Uint8Array, start: number, end: number): void {
  assert(end - start <= 255, 'names are checked before')
  writeU8(writer, end - start)
  writeBytes(writer, bytes, start, end)
}

/** Leader time of a command, ms. */
export function timeOfCommand(view: DataView, start: number): number {
  return view.getUint32(start + TIME_AT, true) + view.getUint32(start + TIME_AT + 4, true) * 2 ** 32
}

/** Body of the command that sets the bytes of the session table, on which all replicas must agree. */
export function encodeSettings(sessionBytesMax: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, sessionBytesMax, true)
  return bytes
}

/** Body of the command that sets shard time. */
export function encodeSetTime(timeMs: number): Uint8Array {
  const body = new Uint8Array(8)
  new DataView(body.buffer).setFloat64(0, timeMs, true)
  return body
}

/** The time that a command sets as shard time. */
export function timeSetBy(view: DataView, start: number): number {
  return view.getFloat64(start + COMMAND_HEADER_BYTES, true)
}

/** Kind of a logged command, without parsing the rest: a bulk load is prepared before it is applied. */
export function kindOfCommand(view: DataView, start: number): number {
  return view.getUint16(start + KIND_AT, true)
}

export const CONTENT_DIGEST_BYTES = 32

/**
 * Body of a bulk load: content digest of the snapshot, day it was proposed on (docs/design/consensus.md#log-commands).
 */
export function encodeBulkLoad(digest: Uint8Array, day: number): Uint8Array {
  assert(digest.length === CONTENT_DIGEST_BYTES, 'a content digest has 32 bytes')
  const body = new Uint8Array(CONTENT_DIGEST_BYTES + 4)
  body.set(digest)
  new DataView(body.buffer).setUint32(CONTENT_DIGEST_BYTES, day, true)
  return body
}

/** @param start offset of the logged command, which has no request key */
export function decodeBulkLoad(
  bytes: Uint8Array,
  start: number,
): { readonly digest: Uint8Array; readonly day: number } {
  const body = start + COMMAND_HEADER_BYTES
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  assert(kindOfCommand(view, start) === KIND.bulkLoad, 'this is a bulk load')
  const digest = bytes.slice(body, body + CONTENT_DIGEST_BYTES)
  return { digest, day: view.getUint32(body + CONTENT_DIGEST_BYTES, true) }
}

/** Sets the leader's time and day in a command that is about to be proposed. */
export function stampCommand(view: DataView, start: number, timeMs: number, day: number): void {
  view.setUint32(start + TIME_AT, timeMs >>> 0, true)
  view.setUint32(start + TIME_AT + 4, Math.floor(timeMs / 2 ** 32), true)
  view.setUint32(start + DAY_AT, day, true)
}

/** Reads one command in place; one object, reused. `at` is the offset of the next unread byte of the body. */
export type CommandReader = {
  bytes: Uint8Array
  view: DataView
  start: number
  end: number
  at: number
  kind: number
  timeMs: number
  day: number
  /** Offset of the request key, -1 without one. */
  key: number
}

const NO_BYTES = new Uint8Array(0)

export function createCommandReader(): CommandReader {
  const view = new DataView(NO_BYTES.buffer)
  return { bytes: NO_BYTES, view, start: 0, end: 0, at: 0, kind: 0, timeMs: 0, day: 0, key: -1 }
}

export function openCommand(reader: CommandReader, bytes: Uint8Array, start: number, end: number): void {
  assert(end - start >= COMMAND_HEADER_BYTES, 'a logged command has a header')
  if (reader.bytes !== bytes) {
    reader.bytes = bytes
    reader.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
  const { view } = reader
  reader.start = start
  reader.end = end
  reader.kind = view.getUint16(start + KIND_AT, true)
  reader.timeMs = view.getUint32(start + TIME_AT, true) + view.getUint32(start + TIME_AT + 4, true) * 2 ** 32
  reader.day = view.getUint32(start + DAY_AT, true)
  const keyed = (view.getUint8(start + FLAGS_AT) & FLAG_REQUEST_KEY) !== 0
  reader.key = keyed ? start + COMMAND_HEADER_BYTES : -1
  reader.at = start + COMMAND_HEADER_BYTES + (keyed ? REQUEST_KEY_BYTES : 0)
  assert(reader.at <= reader.end, 'a logged command is whole')
}

export function readU8(reader: CommandReader): number {
  assert(reader.at < reader.end, 'a logged command is whole')
  return reader.bytes[reader.at++]
}

export function readU32(reader: CommandReader): number {
  const value = reader.view.getUint32(reader.at, true)
  reader.at += 4
  return value
}

export function readF64(reader: CommandReader): number {
  const value = reader.view.getFloat64(reader.at, true)
  reader.at += 8
  return value
}

/** Skips a name; its bytes are [result, reader.at). */
export function readName(reader: CommandReader): number {
  const length = readU8(reader)
  const start = reader.at
  reader.at += length
  assert(reader.at <= reader.end, 'a logged command is whole')
  return start
}

/** Skips `bytes` bytes. @returns their offset */
export function readBytes(reader: CommandReader, bytes: number): number {
  const start = reader.at
  reader.at += bytes
  assert(reader.at <= reader.end, 'a logged command is whole')
  return start
}

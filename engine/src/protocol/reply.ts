/** Writes reply frames in place, at their final position in a reply slab (docs/design/search.md#replies). */

import { fitErrorText } from '@vacancy/shared/wire'

const SUCCESS = [7, 0x53, 0x55, 0x43, 0x43, 0x45, 0x53, 0x53] as const
const ERROR = [5, 0x45, 0x52, 0x52, 0x4f, 0x52] as const
const FRAME = 0xff
/** Frame header, status and field count of a SUCCESS reply. */
export const REPLY_HEADER_BYTES = 9 + SUCCESS.length + 2
export const FIELD_HEADER_BYTES = 7
const encoder = new TextEncoder()

/** One reply being written. `at` may exceed `end`: then the reply did not fit, and nothing beyond `end` was written. */
export type ReplyWriter = { bytes: Uint8Array; start: number; at: number; end: number; fields: number }

export function createReplyWriter(): ReplyWriter {
  return { bytes: new Uint8Array(0), start: 0, at: 0, end: 0, fields: 0 }
}

export function beginReply(
  writer: ReplyWriter,
  bytes: Uint8Array,
  at: number,
  end: number,
  correlationId: number,
): void {
  writer.bytes = bytes
  writer.start = at
  writer.at = at
  writer.end = end
  writer.fields = 0
  if (at + REPLY_HEADER_BYTES <= end) {
    bytes[at] = FRAME
    setU32(bytes, at + 1, correlationId)
    for (let i = 0; i < SUCCESS.length; i++) bytes[at + 9 + i] = SUCCESS[i]
  }
  writer.at += REPLY_HEADER_BYTES
}

function beginField(writer: ReplyWriter, type: number, length: number): boolean {
  const { bytes, at } = writer
  writer.fields++
  writer.at += FIELD_HEADER_BYTES + length
  if (writer.at > writer.end) return false
  bytes[at] = writer.fields & 0xff
  bytes[at + 1] = writer.fields >>> 8
  bytes[at + 2] = type
  setU32(bytes, at + 3, length)
  return true
}

export function addU8(writer: ReplyWriter, value: number): void {
  if (beginField(writer, 2, 1)) writer.bytes[writer.at - 1] = value
}

export function addU32(writer: ReplyWriter, value: number): void {
  if (beginField(writer, 3, 4)) setU32(writer.bytes, writer.at - 4, value)
}

export function addBytes(writer: ReplyWriter, type: number, source: Uint8Array): void {
  if (beginField(writer, type, source.length)) writer.bytes.set(source, writer.at - source.length)
}

/** Adds a field whose bytes the caller writes. @returns where, -1 when it does not fit */
export function addRoom(writer: ReplyWriter, type: number, length: number): number {
  return beginField(writer, type, length) ? writer.at - length : -1
}

export function addText(writer: ReplyWriter, text: string): void {
  addBytes(writer, 1, encoder.encode(text))
}

/** The last extension field of a reply, sent only on request: id 0xFFFF. */
export function addExtra(writer: ReplyWriter, type: number, source: Uint8Array): void {
  addTrailer(writer, 0xffff, type, source)
}

/** A field after the numbered ones, sent only on request. Trailers have ascending ids. */
export function addTrailer(writer: ReplyWriter, id: number, type: number, source: Uint8Array): void {
  const fields = writer.fields
  writer.fields = id - 1
  addBytes(writer, type, source)
  writer.fields = fields + 1
}

/** Grows the memory of a reply outside the slabs to so many bytes. */
export function growReply(writer: ReplyWriter, bytes: number): void {
  if (bytes > writer.bytes.length) {
    const grown = new Uint8Array(Math.max(bytes, writer.bytes.length * 2))
    grown.set(writer.bytes)
    writer.bytes = grown
  }
  writer.end = writer.bytes.length
}

/** @returns where the frame ends, -1 when it did not fit */
export function finishReply(writer: ReplyWriter): number {
  const { bytes, start, at, end, fields } = writer
  if (at > end) return -1
  setU32(bytes, start + 5, at - start - 9)
  const count = start + 9 + SUCCESS.length
  bytes[count] = fields & 0xff
  bytes[count + 1] = fields >>> 8
  return at
}

/** An ERROR frame. @returns where it ends, -1 when it did not fit */
export function writeError(bytes: Uint8Array, at: number, end: number, correlationId: number, text: string): number {
  const source = encoder.encode(fitErrorText(text))
  const stop = at + 9 + ERROR.length + 2 + FIELD_HEADER_BYTES + source.length
  if (stop > end) return -1
  bytes[at] = FRAME
  setU32(bytes, at + 1, correlationId)
  setU32(bytes, at + 5, stop - at - 9)
  for (let i = 0; i < ERROR.length; i++) bytes[at + 9 + i] = ERROR[i]
  let to = at + 9 + ERROR.length
  for (const byte of [1, 0, 1, 0, 1]) bytes[to++] = byte
  setU32(bytes, to, source.length)
  bytes.set(source, to + 4)
  return stop
}

function setU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value & 0xff
  bytes[at + 1] = (value >>> 8) & 0xff
  bytes[at + 2] = (value >>> 16) & 0xff
  bytes[at + 3] = (value >>> 24) & 0xff
}

/** Reads the fields of a reply in order, and its trailers (docs/design/protocol.md#replies). */

import { VacancyError } from '../errors.ts'
import { isUtf8, textOfUtf8 } from '../text.ts'
import type { CommandName } from './commands.ts'
import { FIELD_HEADER_BYTES } from './fields.ts'

export const SUCCESS = 'SUCCESS'
export const ERROR = 'ERROR'
export const EXTRA_ID = 0xffff
/** Normal fields of a reply with trailers have lower ids. */
const TRAILER_IDS = 0xff00
const TYPE_RECORDS = 0x0a

/** Reads the fields of a reply in order. */
export type Cursor = {
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly command: CommandName
  fieldsLeft: number
  at: number
  /** The current field. */
  id: number
  type: number
  start: number
  length: number
  /** Fields read so far. The id of the next field must be one more. */
  taken: number
  /** A trailer was read: all that follow are trailers. */
  isPastHits: boolean
}

export function openReply(command: CommandName, payload: Uint8Array): Cursor {
  const length = payload[0] ?? 0
  const status = length === ERROR.length ? ERROR : SUCCESS
  const countAt = 1 + status.length
  if (length !== status.length || payload.length < countAt + 2) throw malformed(command, 'it has no status')
  for (let i = 0; i < length; i++) {
    if (payload[1 + i] !== status.charCodeAt(i)) throw malformed(command, 'its status is neither SUCCESS nor ERROR')
  }
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength)
  return {
    bytes: payload,
    view,
    command,
    fieldsLeft: view.getUint16(countAt, true),
    at: countAt + 2,
    id: 0,
    type: 0,
    start: 0,
    length: 0,
    taken: 0,
    isPastHits: false,
  }
}

export function malformed(command: CommandName, reason: string): VacancyError {
  return new VacancyError('malformed_reply', { command, reason })
}

/** Reads the next field, which must have the expected id. `length` −1 allows any. */
export function takeField(cursor: Cursor, type: number, length: number): void {
  if (cursor.fieldsLeft === 0) throw malformed(cursor.command, 'a field is missing')
  readField(cursor)
  if (cursor.id !== cursor.taken) throw malformed(cursor.command, `field ${cursor.taken} has id ${cursor.id}`)
  if (cursor.type !== type) throw malformed(cursor.command, `field ${cursor.id} has type ${cursor.type}, not ${type}`)
  if (length >= 0 && cursor.length !== length) {
    throw malformed(cursor.command, `field ${cursor.id} has ${cursor.length} bytes, not ${length}`)
  }
}

function readField(cursor: Cursor): void {
  const { bytes, view, at } = cursor
  if (bytes.length - at < FIELD_HEADER_BYTES) throw malformed(cursor.command, 'a field runs past its end')
  cursor.id = view.getUint16(at, true)
  cursor.type = view.getUint8(at + 2)
  cursor.length = view.getUint32(at + 3, true)
  cursor.start = at + FIELD_HEADER_BYTES
  if (cursor.length > bytes.length - cursor.start) throw malformed(cursor.command, 'a field runs past its end')
  cursor.at = cursor.start + cursor.length
  cursor.fieldsLeft--
  cursor.taken++
}

/** Reads the trailing extension field, if there is one. @returns whether there is */
export function takeExtra(cursor: Cursor, type: number, length: number): boolean {
  const { bytes, view, at } = cursor
  if (cursor.fieldsLeft !== 1 || bytes.length - at < FIELD_HEADER_BYTES) return false
  if (view.getUint16(at, true) !== EXTRA_ID) return false
  cursor.taken = EXTRA_ID - 1
  takeField(cursor, type, length)
  return true
}

/** A search reply without trailers may have EXTRA_ID properties: only the ids of normal fields follow each other. */
export function isTrailer({ view, at, bytes, taken, isPastHits }: Cursor): boolean {
  if (bytes.length - at < FIELD_HEADER_BYTES) return false
  const id = view.getUint16(at, true)
  return id >= TRAILER_IDS && (isPastHits || id !== taken + 1)
}

/** Takes the trailer with this id, if it comes next. @returns whether it did */
export function takeTrailer(from: Cursor, id: number): boolean {
  if (from.fieldsLeft === 0 || !isTrailer(from) || from.view.getUint16(from.at, true) !== id) return false
  from.isPastHits = true
  from.taken = id - 1
  takeField(from, TYPE_RECORDS, -1)
  return true
}

export function currentText(from: Cursor): string {
  return textAt(from, from.start, from.start + from.length)
}

export function textAt(from: Cursor, start: number, end: number): string {
  if (!isUtf8(from.bytes, start, end)) throw malformed(from.command, 'a text is not valid UTF-8')
  return textOfUtf8(from.bytes, start, end)
}

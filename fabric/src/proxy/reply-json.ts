/**
 * Replies of the wire protocol as JSON, written straight from their bytes (docs/design/protocol.md#successes,
 * docs/proxy.md#commands). A search with 200 hits is what the proxy exists for: no object is made per property or
 * night. Whatever repeats in a reply (dates, numbers of rooms, sets of features) is written once and copied from then
 * on. Pure.
 */

import {
  assert,
  baseYearOf,
  type CodecList,
  formatDay,
  namesOf,
  PROPERTY_ID_BYTES,
  parseDay,
  unpackDay,
  VacancyError,
} from '@vacancy/shared'
import { decodeReply, FIELD_HEADER_BYTES, type ReplyKind, type Result, readU32 } from '@vacancy/shared/wire'
import type { JsonCommand } from './commands.ts'
import { calendarJson, flexibleJson, searchJson } from './search-json.ts'
import { stayJson, stayListJson } from './stay-json.ts'

/** Larger JSON is refused; a reply of the largest search needs a few MiB. */
const JSON_BYTES_MAX = 256 * 1024 * 1024
const JSON_BYTES_MIN = 64 * 1024
/** A larger buffer is released after its reply. */
const JSON_BYTES_KEPT = 4 * 1024 * 1024
/** In front of the JSON, for the head of the response: both leave with one write. */
export const JSON_ROOM_BYTES = 1024
const TYPE_TEXT = 0x01
const TYPE_SMALL = 0x02
const TYPE_NUMBER = 0x03
const TYPE_DAYS = 0x08
const TYPE_RAW = 0x09
const WORD_BYTES = 8
const EXTRA_ID = 0xffff
const EXPLAIN_BYTES = 20
const EXPLAIN_STAGES_BYTES = 32
const DAY_BYTES = 11
const SUCCESS = 'SUCCESS'
const ERROR_LENGTH = 'ERROR'.length
const SHORT_MARK = 0xf0
const SHORT_MARK_AT = 6
/** Packed dates have 12 bits; the upper four are 0. */
const PACKED_DATES = 4096
/** Sets of features whose text is kept. Real data has a few; a hostile node could send millions. */
const FEATURE_SETS_MAX = 4096
/** A property id of 15 characters that all need `\u00xx`, with quotes and the keys around it. */
const PROPERTY_BYTES_MAX = 160
/** Ten digits, and the fixed text around the parts of a night. */
const NIGHT_BYTES_MAX = 128

/** The reason that the reference decoder gives, too. */
const UNKNOWN_FEATURE = 'a rate feature is not in the codec list'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * A text that is copied often: its UTF-8 in words of eight bytes, the last one padded with zeros. As numbers they are
 * never NaN, whose bits may change: no UTF-8 has a byte of 0xf0 and above before 0x7f or 0xff.
 */
type Text = { readonly words: Float64Array; readonly length: number }

function textOf(text: string): Text {
  const bytes = encoder.encode(text)
  const words = new Float64Array(Math.ceil(bytes.length / WORD_BYTES))
  new Uint8Array(words.buffer).set(bytes)
  return { words, length: bytes.length }
}

const HEX = encoder.encode('0123456789abcdef')
const QUOTE = 0x22
const COMMA = 0x2c
const HYPHEN = 0x2d
const BACKSLASH = 0x5c
const CLOSE_OBJECT = 0x7d
const CLOSE_LIST = 0x5d

const HEAD = textOf('{"status":"success"')
const AVAILABILITIES = Array.from({ length: 256 }, (_, rooms) => textOf(`${rooms},"final_price":`))
const PROPERTY_HEAD = textOf('{"property_id":')
const DAYS_HEAD = textOf(',"days":[')
const NO_FEATURES = textOf(',"rate_feature":[]}')

/** A writer of JSON with its buffer, and the texts that depend on the codec list and the year. One per thread. */
export type JsonWriter = {
  /** At least WORD_BYTES longer than what is written. */
  bytes: Uint8Array<ArrayBuffer>
  /** Of `bytes`. */
  to: DataView
  at: number
  /** The reply that is read. */
  from: Uint8Array
  view: DataView
  /** Next byte of the reply, fields that are left, number of the last one, and the data of the last one. */
  next: number
  left: number
  taken: number
  start: number
  length: number
  codecs: CodecList | undefined
  /** Nights of the request, YYYY-MM-DD. */
  nights: readonly string[]
  /** What the request of a search asked for beside plain hits. */
  asked: Asked
  /** Of the packed dates in `dates`. */
  baseYear: number
  /** `{"date":"…","availability":` by packed date; undefined until needed. */
  readonly dates: (Text | undefined)[]
  /** `,"rate_feature":[…]}` by mask. */
  readonly features: Map<number, Text>
}

/** `page`: a page, or values of each hit. `compact`: hits without days, which have those too. */
export type Asked = 'plain' | 'page' | 'compact'

/** What a reply became. */
export type ReplyJson =
  /** Valid until the next call; the JSON_ROOM_BYTES in front of it may be overwritten. */
  | { readonly kind: 'success'; readonly json: Buffer }
  /** The text before and after the colon of an ERROR reply. */
  | { readonly kind: 'error'; readonly code: string; readonly text: string }
  | { readonly kind: 'malformed'; readonly reason: string; readonly unknownFeature: boolean }

export function createJsonWriter(): JsonWriter {
  const from = new Uint8Array(0)
  const bytes = new Uint8Array(JSON_BYTES_MIN)
  return {
    bytes,
    to: new DataView(bytes.buffer),
    at: 0,
    from,
    view: new DataView(from.buffer),
    next: 0,
    left: 0,
    taken: 0,
    start: 0,
    length: 0,
    codecs: undefined,
    nights: [],
    asked: 'plain',
    baseYear: 0,
    dates: new Array(PACKED_DATES).fill(undefined),
    features: new Map(),
  }
}

/** Sets what the next reply means: the codec list of its masks, the nights of the request, and what it asked for. */
export function setReplyContext(
  writer: JsonWriter,
  codecs: CodecList | undefined,
  nights: readonly string[],
  asked: Asked = 'plain',
): void {
  if (writer.codecs !== codecs) writer.features.clear()
  writer.codecs = codecs
  writer.nights = nights
  writer.asked = asked
}

/** Sets the base year of the reply, whose first days are those of the current field. */
function setBaseYear(writer: JsonWriter, nights: number): void {
  const packed = Array.from({ length: nights }, (_, n) => writer.view.getUint16(writer.start + 2 + n * DAY_BYTES, true))
  const requested = writer.nights.map((date) => parseDay(date.trim()) ?? -1)
  const baseYear = baseYearOf(packed, requested)
  if (nights > 0 && baseYear < 0) throw new Malformed(`field ${writer.taken} has a date that was not requested`)
  if (writer.baseYear !== baseYear) writer.dates.fill(undefined)
  writer.baseYear = baseYear
}

/** Thrown inside this module only: the reply breaks a rule. */
class Malformed extends Error {
  readonly unknownFeature: boolean
  constructor(reason: string, unknownFeature = false) {
    super(reason)
    this.unknownFeature = unknownFeature
  }
}

/**
 * Writes the response to a command.
 *
 * @param payload of the reply frame; not used after the call
 */
export function writeReply(writer: JsonWriter, command: JsonCommand, payload: Uint8Array): ReplyJson {
  if (payload[0] === ERROR_LENGTH) return readError(command, payload)
  try {
    open(writer, payload)
    put(writer, HEAD)
    WRITE[command.spec.reply](writer)
    if (writer.left > 0) throw new Malformed(`it has ${writer.left} fields too many`)
    if (writer.next !== payload.length) throw new Malformed('bytes follow the last field')
    makeRoom(writer, 1)
    writer.bytes[writer.at++] = CLOSE_OBJECT
    return { kind: 'success', json: Buffer.from(writer.bytes.buffer, JSON_ROOM_BYTES, writer.at - JSON_ROOM_BYTES) }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return { kind: 'malformed', reason: error.message, unknownFeature: error.unknownFeature }
  }
}

/** After the use of JSON. @param isKept its memory is still used, so that the next reply needs other memory */
export function releaseJson(writer: JsonWriter, isKept: boolean): void {
  if (isKept || writer.bytes.length > JSON_BYTES_KEPT) setBuffer(writer, new Uint8Array(JSON_BYTES_MIN))
}

/** Errors are rare and short: the reference decoder reads them, in both forms that servers send. */
function readError(command: JsonCommand, payload: Uint8Array): ReplyJson {
  try {
    const reply = decodeReply(command.name, payload, { codecs: undefined })
    assert(!reply.ok, 'the status of the reply is ERROR')
    return { kind: 'error', code: reply.code, text: reply.message }
  } catch (error) {
    return { kind: 'malformed', reason: (error as Error).message, unknownFeature: false }
  }
}

function open(writer: JsonWriter, payload: Uint8Array): void {
  const countAt = 1 + SUCCESS.length
  if (payload[0] !== SUCCESS.length || payload.length < countAt + 2) throw new Malformed('it has no status')
  for (let i = 0; i < SUCCESS.length; i++) {
    if (payload[1 + i] !== SUCCESS.charCodeAt(i)) throw new Malformed('its status is neither SUCCESS nor ERROR')
  }
  writer.from = payload
  writer.view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength)
  writer.left = (payload[countAt] as number) | ((payload[countAt + 1] as number) << 8)
  writer.next = countAt + 2
  writer.taken = 0
  writer.at = JSON_ROOM_BYTES
}

/** Reads the next field, whose id must be one more than the last. `length` −1 allows any. */
function take(writer: JsonWriter, type: number, length: number): void {
  const { from, next } = writer
  if (writer.left === 0) throw new Malformed('a field is missing')
  const start = next + FIELD_HEADER_BYTES
  if (start > from.length) throw new Malformed('a field runs past its end')
  const id = (from[next] as number) | ((from[next + 1] as number) << 8)
  const bytes = readU32(from, next + 3)
  if (bytes > from.length - start) throw new Malformed('a field runs past its end')
  const expected = writer.taken + 1
  if (id !== expected) throw new Malformed(`field ${expected} has id ${id}`)
  if (from[next + 2] !== type) throw new Malformed(`field ${id} has type ${from[next + 2]}, not ${type}`)
  if (length >= 0 && bytes !== length) throw new Malformed(`field ${id} has ${bytes} bytes, not ${length}`)
  writer.left--
  writer.taken = expected
  writer.start = start
  writer.length = bytes
  writer.next = start + bytes
}

/** Whether the next field is the last one and an extra: properties may count up to the same id. */
function isExtra({ from, next, left }: JsonWriter, type: number, length: number): boolean {
  return (
    left === 1 &&
    from.length - next === FIELD_HEADER_BYTES + length &&
    from[next] === 0xff &&
    from[next + 1] === 0xff &&
    from[next + 2] === type
  )
}

function isExplain(writer: JsonWriter): boolean {
  return isExtra(writer, TYPE_RAW, EXPLAIN_BYTES) || isExtra(writer, TYPE_RAW, EXPLAIN_STAGES_BYTES)
}

function takeExtra(writer: JsonWriter, type: number, length: number): boolean {
  if (!isExtra(writer, type, length)) return false
  writer.taken = EXTRA_ID - 1
  take(writer, type, length)
  return true
}

const WRITE: { readonly [Kind in ReplyKind]: (writer: JsonWriter) => void } = {
  login: () => assert(false, 'LOGIN is not a command of the API'),
  empty: writeIndex,
  codecs: (writer) => {
    take(writer, TYPE_RAW, -1)
    putText(writer, `,"rate_features":${JSON.stringify(textOfField(writer).split(','))}`)
  },
  segments: (writer) => {
    putText(writer, ',"segments":[')
    for (let i = 0; writer.left > 0; i++) {
      take(writer, TYPE_TEXT, -1)
      putText(writer, i === 0 ? '{"segment":' : ',{"segment":')
      putField(writer)
      take(writer, TYPE_NUMBER, 4)
      const count = readU32(writer.from, writer.start)
      // Existing proxies write the second name, and document the first.
      putText(writer, `,"prop_count":${count},"propCount":${count}}`)
    }
    putByte(writer, CLOSE_LIST)
  },
  properties: (writer) => {
    if (writer.asked !== 'plain') return putText(writer, `,${searchJson(decoded(writer, 'SEARCHPROP'), false)}`)
    putText(writer, ',"properties":[')
    for (let i = 0; writer.left > 0 && !isExplain(writer); i++) {
      take(writer, TYPE_TEXT, PROPERTY_ID_BYTES)
      makeRoom(writer, PROPERTY_BYTES_MAX)
      if (i > 0) writer.bytes[writer.at++] = COMMA
      putPropertyId(writer)
    }
    putByte(writer, CLOSE_LIST)
    writeExplain(writer)
  },
  stays: writeStays,
  availability: (writer) => {
    take(writer, TYPE_SMALL, 1)
    putText(writer, `,"availability":${writer.from[writer.start]}`)
    writeIndex(writer)
  },
  exists: (writer) => {
    take(writer, TYPE_SMALL, 1)
    putText(writer, `,"exists":${writer.from[writer.start] === 1}`)
  },
  roomTypes: (writer) => writeTexts(writer, ',"room_types":['),
  dates: (writer) => writeTexts(writer, ',"dates":['),
  night: (writer) => {
    take(writer, TYPE_TEXT, -1)
    putText(writer, ',"property_id":')
    makeRoom(writer, PROPERTY_BYTES_MAX)
    // Some servers send the packed form here; no property id is text of 16 bytes.
    if (writer.length === PROPERTY_ID_BYTES) putPropertyId(writer)
    else putField(writer)
    take(writer, TYPE_TEXT, -1)
    putText(writer, ',"date":')
    putField(writer)
    take(writer, TYPE_SMALL, 1)
    putText(writer, ',"availability":')
    put(writer, AVAILABILITIES[writer.from[writer.start] as number] as Text)
    take(writer, TYPE_NUMBER, 4)
    makeRoom(writer, NIGHT_BYTES_MAX)
    writer.at = putDigits(writer.bytes, writer.at, readU32(writer.from, writer.start))
    take(writer, TYPE_NUMBER, 4)
    put(writer, featuresOf(writer, readU32(writer.from, writer.start)))
    // The text of the features ends the object of a night, which here is that of the response.
    writer.at--
  },
  calendar: (writer) => putText(writer, `,${calendarJson(decoded(writer, 'PRICECAL'))}`),
  flexible: (writer) => putText(writer, `,${flexibleJson(decoded(writer, 'SEARCHFLEX'))}`),
  stay: (writer) => putText(writer, `,${stayJson(decoded(writer, 'GETSTAY'))}`),
  stayList: (writer) => {
    const { stays, cursor } = decoded(writer, 'LISTSTAYS')
    putText(writer, `,${stayListJson(stays, cursor)}`)
  },
}

type Decoded = 'GETSTAY' | 'LISTSTAYS' | 'SEARCHAVAIL' | 'SEARCHPROP' | 'PRICECAL' | 'SEARCHFLEX'

/** The reference decoder reads replies on stays and pages of searches, which are short. */
function decoded<Name extends Decoded>(writer: JsonWriter, command: Name): Result<Name> {
  const { from, codecs, nights } = writer
  try {
    const reply = decodeReply(command, from, { codecs, dates: nights })
    assert(reply.ok, 'the status of the reply is SUCCESS')
    writer.left = 0
    writer.next = from.length
    return reply.result
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    const reason = String(error.fields['reason'])
    throw new Malformed(reason, reason === UNKNOWN_FEATURE)
  }
}

function writeStays(writer: JsonWriter): void {
  const { asked } = writer
  if (asked !== 'plain') return putText(writer, `,${searchJson(decoded(writer, 'SEARCHAVAIL'), asked === 'compact')}`)
  putText(writer, ',"properties":[')
  // Existing servers may send no field at all for no result.
  if (writer.left > 0) {
    take(writer, TYPE_SMALL, 2)
    const nights = (writer.from[writer.start] as number) | ((writer.from[writer.start + 1] as number) << 8)
    for (let i = 0; writer.left > 0 && !isExplain(writer); i++) {
      take(writer, TYPE_TEXT, PROPERTY_ID_BYTES)
      makeRoom(writer, PROPERTY_BYTES_MAX)
      if (i > 0) writer.bytes[writer.at++] = COMMA
      put(writer, PROPERTY_HEAD)
      putPropertyId(writer)
      take(writer, TYPE_DAYS, 2 + nights * DAY_BYTES)
      if (i === 0) setBaseYear(writer, nights)
      writeNights(writer, nights)
    }
  }
  putByte(writer, CLOSE_LIST)
  writeExplain(writer)
}

function writeNights(writer: JsonWriter, nights: number): void {
  const { from, view, start, dates } = writer
  if (((from[start] as number) | ((from[start + 1] as number) << 8)) !== nights) {
    throw new Malformed(`field ${writer.taken} has different days`)
  }
  put(writer, DAYS_HEAD)
  let mask = 0
  let features = NO_FEATURES
  for (let i = 0, at = start + 2; i < nights; i++, at += DAY_BYTES) {
    const packed = (from[at] as number) | ((from[at + 1] as number) << 8)
    const date = (packed < PACKED_DATES ? dates[packed] : undefined) ?? dateOf(writer, packed)
    const maskHere = view.getUint32(at + 7, true)
    if (maskHere !== mask) features = featuresOf(writer, maskHere)
    mask = maskHere
    makeRoom(writer, NIGHT_BYTES_MAX + features.length)
    const { bytes, to } = writer
    let end = writer.at
    if (i > 0) bytes[end++] = COMMA
    end = copyTo(to, end, date)
    end = copyTo(to, end, AVAILABILITIES[from[at + 2] as number] as Text)
    end = putDigits(bytes, end, view.getUint32(at + 3, true))
    writer.at = copyTo(to, end, features)
  }
  makeRoom(writer, 2)
  writer.bytes[writer.at++] = CLOSE_LIST
  writer.bytes[writer.at++] = CLOSE_OBJECT
}

function dateOf(writer: JsonWriter, packed: number): Text {
  const day = unpackDay(packed, writer.baseYear)
  if (day < 0) throw new Malformed(`field ${writer.taken} has a date that does not exist`)
  const text = textOf(`{"date":"${formatDay(day)}","availability":`)
  writer.dates[packed] = text
  return text
}

function featuresOf(writer: JsonWriter, mask: number): Text {
  if (mask === 0) return NO_FEATURES
  const known = writer.features.get(mask)
  if (known !== undefined) return known
  const names = writer.codecs && namesOf(writer.codecs, mask)
  if (!names) throw new Malformed(UNKNOWN_FEATURE, true)
  const text = textOf(`,"rate_feature":${JSON.stringify(names)}}`)
  if (writer.features.size < FEATURE_SETS_MAX) writer.features.set(mask, text)
  return text
}

function writeTexts(writer: JsonWriter, head: string): void {
  putText(writer, head)
  for (let i = 0; writer.left > 0; i++) {
    take(writer, TYPE_TEXT, -1)
    if (i > 0) putByte(writer, COMMA)
    putField(writer)
  }
  putByte(writer, CLOSE_LIST)
}

function writeIndex(writer: JsonWriter): void {
  if (takeExtra(writer, TYPE_NUMBER, 8)) putText(writer, `,"index":${u64At(writer, writer.start)}`)
}

function writeExplain(writer: JsonWriter): void {
  const hasStages = takeExtra(writer, TYPE_RAW, EXPLAIN_STAGES_BYTES)
  if (!hasStages && !takeExtra(writer, TYPE_RAW, EXPLAIN_BYTES)) return
  const { from, start } = writer
  const [rows, waiting, searching] = [readU32(from, start), readU32(from, start + 4), readU32(from, start + 8)]
  const index = u64At(writer, start + 12)
  putText(
    writer,
    `,"explain":{"rows_examined":${rows},"waiting_micros":${waiting},"searching_micros":${searching},"applied_index":${index}`,
  )
  if (hasStages) {
    const [planning, examining, writing] = [
      readU32(from, start + 20),
      readU32(from, start + 24),
      readU32(from, start + 28),
    ]
    putText(writer, `,"planning_micros":${planning},"examining_micros":${examining},"writing_micros":${writing}`)
  }
  putText(writer, '}')
}

/** A u64 as JSON: digits where that is exact for every reader, decimal text beyond 2^53 − 1. */
function u64At({ view }: JsonWriter, at: number): string {
  const value = view.getBigUint64(at, true)
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? value.toString() : `"${value}"`
}

function textOfField({ from, start, length }: JsonWriter): string {
  try {
    return decoder.decode(from.subarray(start, start + length))
  } catch {
    // The decoder gives no reason but this one.
    throw new Malformed('a text is not valid UTF-8')
  }
}

/** The current field as JSON text. */
function putField(writer: JsonWriter): void {
  const { from, start, length } = writer
  let plain = 0
  while (plain < length && isPlain(from[start + plain] as number)) plain++
  if (plain < length) return putText(writer, JSON.stringify(textOfField(writer)))
  makeRoom(writer, length + 2)
  writer.bytes[writer.at++] = QUOTE
  writer.bytes.set(from.subarray(start, start + length), writer.at)
  writer.at += length
  writer.bytes[writer.at++] = QUOTE
}

/** ASCII that JSON needs not escape. */
function isPlain(byte: number): boolean {
  return byte >= 0x20 && byte < 0x7f && byte !== QUOTE && byte !== BACKSLASH
}

/** The packed id of the current field, as unpackPropertyId gives it. The caller has made room. */
function putPropertyId(writer: JsonWriter): void {
  const { from, start, bytes } = writer
  let at = writer.at
  bytes[at++] = QUOTE
  if (from[start + SHORT_MARK_AT] === SHORT_MARK) {
    for (let i = 0; i < PROPERTY_ID_BYTES; i++) {
      if (i === SHORT_MARK_AT) continue
      const byte = from[start + i] as number
      if (byte === 0) {
        // The first part ends at the marker, the second with the field.
        if (i > SHORT_MARK_AT) break
        i = SHORT_MARK_AT
      } else if (isPlain(byte)) bytes[at++] = byte
      else at = putEscaped(bytes, at, byte)
    }
  } else {
    for (let i = 0; i < PROPERTY_ID_BYTES; i++) {
      if (i === 4 || i === 6 || i === 8 || i === 10) bytes[at++] = HYPHEN
      const byte = from[start + i] as number
      bytes[at++] = HEX[byte >>> 4] as number
      bytes[at++] = HEX[byte & 15] as number
    }
  }
  bytes[at++] = QUOTE
  writer.at = at
}

/** `\u00xx` */
function putEscaped(bytes: Uint8Array, at: number, byte: number): number {
  bytes[at] = BACKSLASH
  bytes[at + 1] = 0x75
  bytes[at + 2] = 0x30
  bytes[at + 3] = 0x30
  bytes[at + 4] = HEX[byte >>> 4] as number
  bytes[at + 5] = HEX[byte & 15] as number
  return at + 6
}

/** A u32 in decimal digits. The caller has made room. @returns where it ends */
function putDigits(bytes: Uint8Array, at: number, value: number): number {
  let digits = 1
  for (let bound = 10; bound <= value; bound *= 10) digits++
  let left = value
  for (let last = at + digits - 1; last >= at; last--) {
    const tenth = (left / 10) >>> 0
    bytes[last] = 0x30 + left - tenth * 10
    left = tenth
  }
  return at + digits
}

function putText(writer: JsonWriter, text: string): void {
  // Three bytes per UTF-16 unit are always enough.
  makeRoom(writer, text.length * 3)
  writer.at += encoder.encodeInto(text, writer.bytes.subarray(writer.at)).written
}

function putByte(writer: JsonWriter, byte: number): void {
  makeRoom(writer, 1)
  writer.bytes[writer.at++] = byte
}

function put(writer: JsonWriter, text: Text): void {
  makeRoom(writer, text.length)
  writer.at = copyTo(writer.to, writer.at, text)
}

/**
 * Copies whole words; the caller has made room. Bytes of the last word beyond the text are overwritten by what follows.
 * Much faster than byte by byte, and for a few dozen bytes also faster than a call of `set`.
 *
 * @returns the end of the text
 */
function copyTo(to: DataView, at: number, { words, length }: Text): number {
  for (let i = 0; i < words.length; i++) to.setFloat64(at + i * WORD_BYTES, words[i] as number, true)
  return at + length
}

function makeRoom(writer: JsonWriter, bytes: number): void {
  const needed = writer.at + bytes + WORD_BYTES
  if (needed <= writer.bytes.length) return
  if (needed > JSON_BYTES_MAX) throw new Malformed(`its JSON is larger than ${JSON_BYTES_MAX} bytes`)
  const grown = new Uint8Array(Math.max(needed, Math.min(writer.bytes.length * 2, JSON_BYTES_MAX)))
  grown.set(writer.bytes.subarray(0, writer.at))
  setBuffer(writer, grown)
}

function setBuffer(writer: JsonWriter, bytes: Uint8Array<ArrayBuffer>): void {
  writer.bytes = bytes
  writer.to = new DataView(bytes.buffer)
}

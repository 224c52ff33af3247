/**
 * Typed fields over bytes (docs/design/protocol.md#payload): a scanner that checks the structure of a request in place,
 * and a writer for frames that are made from objects.
 *
 *   payload   u8 length · command or status · u16 field count · fields
 *   field     u16 id · u8 type · u32 length · bytes
 */

import { assert } from '../assert.ts'
import { LIMITS } from '../domain.ts'
import { cleanErrorText } from '../text.ts'
import { COMMAND_LIST, type CommandSpec, type FieldWidth, findCommand } from './commands.ts'
import { readU32 } from './frame.ts'
import { FRAME_HEADER_BYTES, MAGIC_FRAME } from './routing.ts'

/** Id, type code and length before the data of a field. */
export const FIELD_HEADER_BYTES = 7

/**
 * A request, indexed but not copied. One object per thread, reused; valid until the bytes change.
 *
 * `start[i]` is the offset in `bytes` of the data of `command.fields[i]`, −1 when absent; `length[i]` is its size in
 * bytes. Zero-length data of an optional text or list counts as absent unless the field has `keepsEmpty`. The lines of
 * a stay are at LINES_PLACE and after it.
 */
export type RequestScan = {
  command: CommandSpec
  bytes: Uint8Array
  view: DataView
  readonly start: Int32Array
  readonly length: Int32Array
  /** Bit i: field i was present, even if empty. */
  seen: number
  /** The same of fields from 32 on. */
  seenHigh: number
}

/** One bit per field in `seen` and `seenHigh`. */
const FIELDS_MAX = 64
const BITS = 32
/**
 * Place of the first line of a stay in a scan; the others follow. A command with lines has fewer fields than this, and
 * the place that its row gives to `lines` stays empty.
 */
export const LINES_PLACE = BITS - LIMITS.stayLinesMax
/** Ids 0–31 and 0x8000–0x803f. Any other id is unknown. */
const LOW_IDS = 32
const ID_SLOTS = LOW_IDS + 64
const EXTENSION_IDS = 0x8000

/** Per command, at code × ID_SLOTS + slot of the id: index of the field in `command.fields`, −1 for none. */
const PLACES = new Int8Array(COMMAND_LIST.length * ID_SLOTS).fill(-1)
/** Per command, at code × FIELDS_MAX + index. */
const TYPES = new Uint8Array(COMMAND_LIST.length * FIELDS_MAX)
/** Bytes of a number, 0 for text of any length. */
const WIDTHS = new Uint8Array(COMMAND_LIST.length * FIELDS_MAX)
/** 1 where zero length means absent. */
const EMPTY_IS_ABSENT = new Uint8Array(COMMAND_LIST.length * FIELDS_MAX)
/** Per command: bits of the required fields, which are among the first. */
const REQUIRED = new Int32Array(COMMAND_LIST.length)
/** Per command with a required field that others replace: its bit, and the bits of those in both masks. */
const REPLACED = COMMAND_LIST.map(({ fields }) => {
  const place = fields.findIndex(({ unless }) => unless.length > 0)
  const by = fields.flatMap(({ name }, at) => (fields[place]?.unless.includes(name) ? [at] : []))
  const bits = (first: number) => by.reduce((sum, at) => (at >>> 5 === first ? sum | (1 << (at & 31)) : sum), 0)
  return place < 0 ? undefined : { bit: 1 << place, low: bits(0), high: bits(1) }
})
/** Per command: 1 when it may have the lines of a stay. */
const HAS_LINES = new Uint8Array(COMMAND_LIST.length)

const BYTES_OF: { readonly [width in FieldWidth]: number } = {
  text: 0,
  list: 0,
  u8: 1,
  u32: 4,
  u64: 8,
  f64: 8,
  lines: 0,
  names: 0,
  u8s: 0,
  u64s: 0,
}

for (const { code, fields } of COMMAND_LIST) {
  assert(fields.length <= FIELDS_MAX, 'the fields of a command fit in one mask')
  for (const [place, field] of fields.entries()) {
    const isRepeated = field.width === 'lines'
    assert(!isRepeated || fields.length <= LINES_PLACE, 'the lines of a command have places of their own')
    const first = isRepeated ? LINES_PLACE : place
    for (let id = field.id; id <= field.lastId; id++) {
      const slot = slotOfId(id)
      assert(slot >= 0, 'the id of a field has a slot')
      const row = code * FIELDS_MAX + first + id - field.id
      PLACES[code * ID_SLOTS + slot] = first + id - field.id
      TYPES[row] = field.type
      WIDTHS[row] = BYTES_OF[field.width]
      const isText = field.width === 'text' || field.width === 'list'
      EMPTY_IS_ABSENT[row] = isText && !field.required && !field.keepsEmpty ? 1 : 0
    }
    if (isRepeated) HAS_LINES[code] = 1
    assert(!field.required || first < BITS, 'a required field has a low bit')
    if (field.required) REQUIRED[code] = (REQUIRED[code] as number) | (1 << first)
  }
}

function slotOfId(id: number): number {
  if (id < LOW_IDS) return id
  return id >= EXTENSION_IDS && id < EXTENSION_IDS + 64 ? LOW_IDS + id - EXTENSION_IDS : -1
}

const NOTHING = new Uint8Array(0)

export function createRequestScan(): RequestScan {
  return {
    command: COMMAND_LIST[0] as CommandSpec,
    bytes: NOTHING,
    view: new DataView(NOTHING.buffer),
    start: new Int32Array(FIELDS_MAX).fill(-1),
    length: new Int32Array(FIELDS_MAX),
    seen: 0,
    seenHigh: 0,
  }
}

/**
 * Parses name and structure of the payload at [start, end) and checks that all required fields are present. Values
 * are not validated. Allocates nothing, except one view when `bytes` differ from the last call.
 *
 * @returns '' or the text of the ERROR reply; the scan is then undefined
 */
export function scanRequest(scan: RequestScan, bytes: Uint8Array, start: number, end: number): string {
  if (scan.bytes !== bytes) {
    scan.bytes = bytes
    scan.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
  if (start >= end) return 'PARSE_ERROR: the payload is empty'
  const nameLength = bytes[start] as number
  if (nameLength === 0) return 'PARSE_ERROR: the command name is empty'
  let at = start + 1 + nameLength
  if (at > end) return 'PARSE_ERROR: the command name runs past the end of the payload'
  const code = findCommand(bytes, start + 1, nameLength)
  if (code < 0) return `VALIDATION_ERROR: unknown command ${quote(bytes, start + 1, at)}`
  if (at + 2 > end) return 'PARSE_ERROR: the payload ends before its field count'
  const command = COMMAND_LIST[code] as CommandSpec
  scan.command = command
  const starts = scan.start
  const lengths = scan.length
  for (let i = command.fields.length - 1; i >= 0; i--) starts[i] = -1
  if (HAS_LINES[code] === 1) starts.fill(-1, LINES_PLACE, BITS)
  const count = (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
  at += 2
  let seen = 0
  let seenHigh = 0
  for (let i = 1; i <= count; i++) {
    if (end - at < FIELD_HEADER_BYTES) return `PARSE_ERROR: field ${i} runs past the end of the payload`
    const id = (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
    const type = bytes[at + 2] as number
    const length = readU32(bytes, at + 3)
    at += FIELD_HEADER_BYTES
    if (length > end - at) return `PARSE_ERROR: field ${i} runs past the end of the payload`
    const slot = slotOfId(id)
    const place = slot < 0 ? -1 : (PLACES[code * ID_SLOTS + slot] as number)
    if (place < 0) return `VALIDATION_ERROR: ${command.name} has no field ${id}`
    // A shift takes the place modulo 32.
    const bit = 1 << place
    if (((place < BITS ? seen : seenHigh) & bit) !== 0) {
      return `VALIDATION_ERROR: field ${nameOf(command, place)} is repeated`
    }
    if (place < BITS) seen |= bit
    else seenHigh |= bit
    const row = code * FIELDS_MAX + place
    if (type !== TYPES[row]) {
      return `VALIDATION_ERROR: field ${nameOf(command, place)} must have type ${TYPES[row]}, got ${type}`
    }
    const width = WIDTHS[row] as number
    if (width !== 0 && length !== width) {
      return `VALIDATION_ERROR: field ${nameOf(command, place)} must have ${width} bytes, got ${length}`
    }
    if (length > 0 || EMPTY_IS_ABSENT[row] === 0) {
      starts[place] = at
      lengths[place] = length
    }
    at += length
  }
  scan.seen = seen
  scan.seenHigh = seenHigh
  if (at !== end) return `PARSE_ERROR: ${end - at} bytes follow the last field`
  // The lines have the highest bits: without gaps, no bit follows a missing one.
  const lines = seen >>> LINES_PLACE
  if (HAS_LINES[code] === 1 && (lines & (lines + 1)) !== 0) return 'VALIDATION_ERROR: lines must follow each other'
  let missing = (REQUIRED[code] as number) & ~seen
  const replaced = REPLACED[code]
  if (replaced && ((seen & replaced.low) | (seenHigh & replaced.high)) !== 0) missing &= ~replaced.bit
  if (missing !== 0) return `VALIDATION_ERROR: ${nameOf(command, 31 - Math.clz32(missing & -missing))} is required`
  return ''
}

function nameOf(command: CommandSpec, place: number): string {
  if (place >= LINES_PLACE && HAS_LINES[command.code] === 1) return `lines ${place - LINES_PLACE}`
  return command.fields[place]?.name ?? ''
}

const decoder = new TextDecoder()

function quote(bytes: Uint8Array, start: number, end: number): string {
  return cleanErrorText(decoder.decode(bytes.subarray(start, end)))
}

/** A frame being written, in a growing buffer. Reused from frame to frame. */
export type FieldWriter = {
  bytes: Uint8Array
  view: DataView
  at: number
  /** Offset of the field count, and the number of fields. */
  countAt: number
  fields: number
}

const WRITER_BYTES = 1024
const encoder = new TextEncoder()

export function createFieldWriter(): FieldWriter {
  const bytes = new Uint8Array(WRITER_BYTES)
  return { bytes, view: new DataView(bytes.buffer), at: 0, countAt: 0, fields: 0 }
}

/** Starts a frame: header, then the command name or the status. */
export function beginFrame(writer: FieldWriter, correlationId: number, name: string): void {
  assert(name.length < 256, 'a command name has one length byte')
  writer.at = 0
  writer.fields = 0
  makeRoom(writer, FRAME_HEADER_BYTES + 1 + name.length + 2)
  writer.bytes[0] = MAGIC_FRAME
  writer.view.setUint32(1, correlationId, true)
  writer.bytes[FRAME_HEADER_BYTES] = name.length
  for (let i = 0; i < name.length; i++) writer.bytes[FRAME_HEADER_BYTES + 1 + i] = name.charCodeAt(i)
  writer.countAt = FRAME_HEADER_BYTES + 1 + name.length
  writer.at = writer.countAt + 2
}

/** Finishes the frame. @returns a copy of its bytes */
export function finishFrame(writer: FieldWriter): Uint8Array {
  assert(writer.fields <= 0xffff, 'the field count of a frame is a u16')
  writer.view.setUint32(5, writer.at - FRAME_HEADER_BYTES, true)
  writer.view.setUint16(writer.countAt, writer.fields, true)
  return kept(writer.bytes, writer.at)
}

/** Small frames share buffers: one for each costs more to allocate and to collect than everything else about it. */
const SLAB_BYTES = 16_384
const SLAB_FRAME_MAX = 1_024
let slab = new Uint8Array(0)
let slabUsed = 0

/** A copy of the first bytes, which nobody else changes. */
function kept(bytes: Uint8Array, length: number): Uint8Array {
  if (length > SLAB_FRAME_MAX) return bytes.slice(0, length)
  if (slabUsed + length > slab.length) {
    slab = new Uint8Array(SLAB_BYTES)
    slabUsed = 0
  }
  const copy = slab.subarray(slabUsed, slabUsed + length)
  for (let i = 0; i < length; i++) copy[i] = bytes[i] as number
  slabUsed += length
  return copy
}

/** A field whose data the caller writes. @returns the offset of the data */
export function addField(writer: FieldWriter, id: number, type: number, length: number): number {
  makeRoom(writer, FIELD_HEADER_BYTES + length)
  const { view, at } = writer
  view.setUint16(at, id, true)
  view.setUint8(at + 2, type)
  view.setUint32(at + 3, length, true)
  writer.fields++
  writer.at = at + FIELD_HEADER_BYTES + length
  return at + FIELD_HEADER_BYTES
}

export function addBytes(writer: FieldWriter, id: number, type: number, data: Uint8Array): void {
  const at = addField(writer, id, type, data.length)
  writer.bytes.set(data, at)
}

export function addText(writer: FieldWriter, id: number, type: number, text: string): void {
  // Three bytes per UTF-16 unit are always enough.
  makeRoom(writer, FIELD_HEADER_BYTES + text.length * 3)
  const start = writer.at + FIELD_HEADER_BYTES
  const ascii = putAscii(writer.bytes, start, text)
  const bytes = ascii < 0 ? encoder.encodeInto(text, writer.bytes.subarray(start)).written : ascii
  addField(writer, id, type, bytes)
}

/** Up to this length a loop is quicker than an encoder. */
const SHORT_TEXT = 64

/** @returns bytes written; −1 for a long text, or one that is not ASCII */
function putAscii(bytes: Uint8Array, start: number, text: string): number {
  if (text.length > SHORT_TEXT) return -1
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0x7f) return -1
    bytes[start + i] = code
  }
  return text.length
}

export function addU8(writer: FieldWriter, id: number, value: number): void {
  const at = addField(writer, id, 2, 1)
  writer.view.setUint8(at, value)
}

export function addU16(writer: FieldWriter, id: number, value: number): void {
  const at = addField(writer, id, 2, 2)
  writer.view.setUint16(at, value, true)
}

export function addU32(writer: FieldWriter, id: number, value: number): void {
  const at = addField(writer, id, 3, 4)
  writer.view.setUint32(at, value, true)
}

export function addU64(writer: FieldWriter, id: number, value: number | bigint): void {
  const at = addField(writer, id, 3, 8)
  if (typeof value === 'bigint') return writer.view.setBigUint64(at, value, true)
  writer.view.setUint32(at, value, true)
  writer.view.setUint32(at + 4, Math.floor(value / 2 ** 32), true)
}

export function addF64(writer: FieldWriter, id: number, value: number): void {
  const at = addField(writer, id, 3, 8)
  writer.view.setFloat64(at, value, true)
}

function makeRoom(writer: FieldWriter, bytes: number): void {
  if (writer.at + bytes <= writer.bytes.length) return
  const grown = new Uint8Array(Math.max(writer.bytes.length * 2, writer.at + bytes))
  grown.set(writer.bytes.subarray(0, writer.at))
  writer.bytes = grown
  writer.view = new DataView(grown.buffer)
}

/** A u64 as a number where that is exact, as a bigint beyond 2^53 − 1. */
export function readU64(view: DataView, at: number): number | bigint {
  const high = view.getUint32(at + 4, true)
  return high < 2 ** 21 ? high * 2 ** 32 + view.getUint32(at, true) : view.getBigUint64(at, true)
}

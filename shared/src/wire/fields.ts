/**
 * Typed fields over bytes: the bounded reader of the hot path, and the writer of the object-level encoders
 * (wire-protocol.md §5).
 */

import { COMMAND_LIST, type CommandSpec, type FieldSpec } from './commands.ts'

export const FIELD_HEADER_BYTES = 7
const FIELDS_MAX = 32
const ERROR_TEXT_BYTES_MAX = 1024

/**
 * One request by offsets; reused from request to request, no strings and no objects made.
 *
 * `start[i]` is the offset in `bytes` of the data of `command.fields[i]`, -1 when the field is absent.
 */
export type RequestScan = {
  command: CommandSpec
  bytes: Uint8Array
  view: DataView
  readonly start: Int32Array
  readonly length: Int32Array
}

export function createRequestScan(): RequestScan {
  const bytes = new Uint8Array(0)
  return {
    command: COMMAND_LIST[0] as CommandSpec,
    bytes,
    view: new DataView(bytes.buffer),
    start: new Int32Array(FIELDS_MAX),
    length: new Int32Array(FIELDS_MAX),
  }
}

// Command names by length, first and last letters: a request names one without a string being made.
const NAMES = COMMAND_LIST.map((spec) => Uint8Array.from(spec.name, (letter) => letter.charCodeAt(0)))
const BY_KEY = new Map<number, CommandSpec[]>()
for (const spec of COMMAND_LIST) {
  const key = keyOfName(NAMES[spec.code] as Uint8Array, 0, spec.name.length)
  BY_KEY.set(key, [...(BY_KEY.get(key) ?? []), spec])
}

function keyOfName(bytes: Uint8Array, start: number, length: number): number {
  const middle = bytes[start + (length >>> 1)] as number
  return length | ((bytes[start] as number) << 8) | (middle << 16) | ((bytes[start + length - 1] as number) << 24)
}

function findCommand(bytes: Uint8Array, start: number, length: number): CommandSpec | undefined {
  const candidates = BY_KEY.get(keyOfName(bytes, start, length))
  if (!candidates) return undefined
  for (const spec of candidates) {
    const name = NAMES[spec.code] as Uint8Array
    let same = true
    for (let i = 0; i < length && same; i++) same = name[i] === bytes[start + i]
    if (same) return spec
  }
  return undefined
}

const decoder = new TextDecoder()

/** User input as it may stand in an error text: one line, no quotes, no backslash, no colon, cut. */
export function cleanErrorText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it replaces
  const clean = text.replace(/["\\:\u0000-\u001f\u007f\ufffd]/g, '?')
  return clean.length <= 80 ? clean : `${clean.slice(0, 80)}…`
}

function widthBytes(spec: FieldSpec): number {
  switch (spec.width) {
    case 'u8':
      return 1
    case 'u32':
      return 4
    case 'u64':
    case 'f64':
      return 8
    default:
      return -1
  }
}

const WIDTHS = COMMAND_LIST.map((spec) => Int8Array.from(spec.fields, widthBytes))
/** Fields whose presence counts even when they are empty: SETROOMPKG clears the features with an empty list. */
const EMPTY_COUNTS = COMMAND_LIST.map((spec) =>
  spec.fields.map((f) => spec.name === 'SETROOMPKG' && f.name === 'rateFeatures'),
)

/**
 * Reads name and structure of the request payload at [start, end): ids, types, widths, repeats, required fields.
 *
 * @returns '' or the text of the ERROR reply
 */
export function scanRequest(scan: RequestScan, bytes: Uint8Array, start: number, end: number): string {
  if (scan.bytes !== bytes) {
    scan.bytes = bytes
    scan.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
  const nameLength = start < end ? (bytes[start] as number) : 0
  if (nameLength === 0) return 'PARSE_ERROR: the command name is missing'
  const at = start + 1 + nameLength
  if (at > end) return 'PARSE_ERROR: the command name runs past the end of the payload'
  if (at + 2 > end) return 'PARSE_ERROR: the field count is missing'
  const command = findCommand(bytes, start + 1, nameLength)
  if (!command) {
    const name = cleanErrorText(decoder.decode(bytes.slice(start + 1, at)))
    // A frame that cannot be read says more than a name nobody knows.
    const structure = scanStructure(scan.view, at, end)
    return structure === '' ? `VALIDATION_ERROR: unknown command ${name}` : structure
  }
  scan.command = command
  const structure = scanStructure(scan.view, at, end)
  if (structure !== '') return structure
  return scanFields(scan, command, at + 2, end)
}

function scanStructure(view: DataView, countAt: number, end: number): string {
  const count = view.getUint16(countAt, true)
  let at = countAt + 2
  for (let i = 0; i < count; i++) {
    if (at + FIELD_HEADER_BYTES > end) return `PARSE_ERROR: the payload ends before field ${i + 1} of ${count}`
    const length = view.getUint32(at + 3, true)
    if (length > end - at - FIELD_HEADER_BYTES) return `PARSE_ERROR: field ${i + 1} runs past the end of the payload`
    at += FIELD_HEADER_BYTES + length
  }
  return at === end ? '' : `PARSE_ERROR: ${end - at} bytes after the last field`
}

function scanFields(scan: RequestScan, command: CommandSpec, first: number, end: number): string {
  const { view, start, length } = scan
  const { fields } = command
  const widths = WIDTHS[command.code] as Int8Array
  for (let i = 0; i < fields.length; i++) start[i] = -1
  let expected = 0
  for (let at = first; at < end; ) {
    const id = view.getUint16(at, true)
    const bytes = view.getUint32(at + 3, true)
    // Clients send ascending ids, so the next row is nearly always the right one.
    let i = expected
    while (i < fields.length && (fields[i] as FieldSpec).id !== id) i++
    if (i === fields.length) {
      i = fields.findIndex((candidate) => candidate.id === id)
      if (i < 0) return `VALIDATION_ERROR: ${command.name} has no field ${id}`
    }
    const spec = fields[i] as FieldSpec
    if ((start[i] as number) >= 0) return `VALIDATION_ERROR: field ${spec.name} is there twice`
    if (scan.bytes[at + 2] !== spec.type) {
      return `VALIDATION_ERROR: field ${spec.name} must have type code ${spec.type}, got ${scan.bytes[at + 2]}`
    }
    const width = widths[i] as number
    if (width >= 0 && width !== bytes) {
      return `VALIDATION_ERROR: field ${spec.name} must have ${width} bytes, got ${bytes}`
    }
    start[i] = at + FIELD_HEADER_BYTES
    length[i] = bytes
    expected = i + 1
    at += FIELD_HEADER_BYTES + bytes
  }
  const emptyCounts = EMPTY_COUNTS[command.code] as boolean[]
  for (let i = 0; i < fields.length; i++) {
    const spec = fields[i] as FieldSpec
    if (spec.required) {
      if ((start[i] as number) < 0) return `VALIDATION_ERROR: ${command.name} needs the field ${spec.name}`
    } else if ((start[i] as number) >= 0 && length[i] === 0 && emptyCounts[i] !== true) start[i] = -1
  }
  return ''
}

/**
 * Checks a text: length, UTF-8, no control characters, not only blanks.
 *
 * @returns '' or the rest of a sentence that begins with the field's name
 */
export function textFault(bytes: Uint8Array, start: number, end: number, bytesMax: number): string {
  const length = end - start
  if (length < 1 || length > bytesMax) return `must have 1 to ${bytesMax} bytes, got ${length}`
  let onlyBlanks = true
  for (let i = start; i < end; ) {
    const byte = bytes[i] as number
    if (byte < 0x80) {
      if (byte < 0x20 || byte === 0x7f) return 'must not contain control characters'
      if (byte !== 0x20) onlyBlanks = false
      i++
      continue
    }
    const step = sequenceBytes(bytes, i, end)
    if (step === 0) return 'must be valid UTF-8'
    onlyBlanks = false
    i += step
  }
  return onlyBlanks ? 'must not be blank' : ''
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

/** Length of the UTF-8 sequence at `i`, 0 when it is none: overlong forms and surrogates included. */
function sequenceBytes(bytes: Uint8Array, i: number, end: number): number {
  const first = bytes[i] as number
  const second = i + 1 < end ? bytes[i + 1] : undefined
  if (first >= 0xc2 && first <= 0xdf) return isContinuation(second) ? 2 : 0
  if (!isContinuation(second)) return 0
  const next = second as number
  if (first >= 0xe0 && first <= 0xef) {
    if (i + 2 >= end || !isContinuation(bytes[i + 2])) return 0
    if (first === 0xe0 && next < 0xa0) return 0
    return first === 0xed && next > 0x9f ? 0 : 3
  }
  if (first < 0xf0 || first > 0xf4 || i + 3 >= end) return 0
  if (!isContinuation(bytes[i + 2]) || !isContinuation(bytes[i + 3])) return 0
  if (first === 0xf0 && next < 0x90) return 0
  return first === 0xf4 && next > 0x8f ? 0 : 4
}

// Writing

/** Bytes that grow as they are written. */
export type FieldWriter = { bytes: Uint8Array; view: DataView; at: number }

export function createFieldWriter(bytes = 256): FieldWriter {
  const buffer = new Uint8Array(bytes)
  return { bytes: buffer, view: new DataView(buffer.buffer), at: 0 }
}

export function reserveBytes(writer: FieldWriter, bytes: number): void {
  if (writer.at + bytes <= writer.bytes.length) return
  const grown = new Uint8Array(Math.max(writer.bytes.length * 2, writer.at + bytes))
  grown.set(writer.bytes)
  writer.bytes = grown
  writer.view = new DataView(grown.buffer)
}

function beginField(writer: FieldWriter, id: number, type: number, length: number): number {
  reserveBytes(writer, FIELD_HEADER_BYTES + length)
  const { view, at } = writer
  view.setUint16(at, id, true)
  view.setUint8(at + 2, type)
  view.setUint32(at + 3, length, true)
  writer.at += FIELD_HEADER_BYTES + length
  return at + FIELD_HEADER_BYTES
}

export function putBytes(writer: FieldWriter, id: number, type: number, data: Uint8Array): void {
  const at = beginField(writer, id, type, data.length)
  writer.bytes.set(data, at)
}

export function putU8(writer: FieldWriter, id: number, value: number): void {
  const at = beginField(writer, id, 2, 1)
  writer.view.setUint8(at, value)
}

export function putU16(writer: FieldWriter, id: number, value: number): void {
  const at = beginField(writer, id, 2, 2)
  writer.view.setUint16(at, value, true)
}

export function putU32(writer: FieldWriter, id: number, value: number): void {
  const at = beginField(writer, id, 3, 4)
  writer.view.setUint32(at, value, true)
}

export function putU64(writer: FieldWriter, id: number, value: bigint): void {
  const at = beginField(writer, id, 3, 8)
  writer.view.setBigUint64(at, value, true)
}

export function putF64(writer: FieldWriter, id: number, value: number): void {
  const at = beginField(writer, id, 3, 8)
  writer.view.setFloat64(at, value, true)
}

/** A text cut to what an error reply may carry, at a whole character. */
export function errorTextBytes(text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text)
  if (bytes.length <= ERROR_TEXT_BYTES_MAX) return bytes
  let end = ERROR_TEXT_BYTES_MAX
  while (((bytes[end] as number) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}

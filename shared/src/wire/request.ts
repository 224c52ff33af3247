/** Requests as objects ↔ frames, for clients, tests and tools. The engine parses requests in place (fields.ts). */

import { assert } from '../assert.ts'
import { LIMITS } from '../domain.ts'
import { VacancyError } from '../errors.ts'
import { suggestion } from '../names.ts'
import { isUtf8 } from '../text.ts'
import {
  COMMAND_LIST,
  COMMANDS,
  type CommandName,
  type FieldSpec,
  type FieldValue,
  type RequestFields,
} from './commands.ts'
import {
  addBytes,
  addF64,
  addText,
  addU8,
  addU32,
  addU64,
  beginFrame,
  createFieldWriter,
  createRequestScan,
  type FieldWriter,
  finishFrame,
  LINES_PLACE,
  type RequestScan,
  readU64,
  scanRequest,
} from './fields.ts'
import { type Envelope, encodeEnvelope, FRAME_HEADER_BYTES } from './routing.ts'
import { decodeStayLines, encodeStayLine, type StayLine } from './stay.ts'

export type RequestMessage = {
  readonly command: CommandName
  /** u32, repeated in the reply. */
  readonly correlationId: number
  readonly fields: RequestFields
  /** If given, the frame is sent in an envelope, for routers. */
  readonly envelope?: Envelope | undefined
}

const writer = createFieldWriter()

/**
 * The whole frame of a request, with fields in ascending id order. Absent fields are `undefined` or omitted. An empty
 * list is a zero-length field.
 *
 * @throws VacancyError validation_error when a field is missing, unknown, or does not fit its type
 */
export function encodeRequest(request: RequestMessage): Uint8Array {
  const { fields: specs } = COMMANDS[request.command]
  const { fields } = request
  beginFrame(writer, request.correlationId, request.command)
  setPlaces(request.command, fields)
  addGiven(specs, fields, given.low, 0)
  addGiven(specs, fields, given.high, 32)
  const payloadBytes = writer.at - FRAME_HEADER_BYTES
  if (payloadBytes > LIMITS.requestPayloadBytesMax) {
    throw invalid(`frame of ${payloadBytes} bytes exceeds ${LIMITS.requestPayloadBytesMax}`)
  }
  const frame = finishFrame(writer)
  return request.envelope ? encodeEnvelope(request.envelope, frame) : frame
}

function addGiven(specs: readonly FieldSpec[], fields: RequestFields, bits: number, first: number): void {
  for (let left = bits; left !== 0; left &= left - 1) {
    const spec = specs[first + 31 - Math.clz32(left & -left)] as FieldSpec
    addValue(writer, spec, fields[spec.name])
  }
}

/** Per command: the place of each field by its name, and the places of those that are required. */
const PLACES = new Map<string, { readonly of: ReadonlyMap<string, number>; readonly required: number }>()
for (const { name, fields } of COMMAND_LIST) {
  const of = new Map(fields.map((spec, place) => [spec.name as string, place]))
  PLACES.set(name, { of, required: fields.reduce((bits, spec, place) => bits | (spec.required ? 1 << place : 0), 0) })
}

/** A bit for the place of each field with a value: of the first 32, and of the others. */
const given = { low: 0, high: 0 }

function setPlaces(command: CommandName, fields: RequestFields): void {
  const places = PLACES.get(command)
  assert(places !== undefined, 'each command has places')
  given.low = 0
  given.high = 0
  for (const name in fields) {
    if (!Object.hasOwn(fields, name)) continue
    const place = places.of.get(name)
    if (place === undefined) throw invalid(`${command} has no field ${name}${suggestion(name, places.of.keys())}`)
    if (fields[name as keyof RequestFields] === undefined) continue
    if (place < 32) given.low |= 1 << place
    else given.high |= 1 << place
  }
  for (let left = places.required & ~given.low; left !== 0; left &= left - 1) {
    const spec = COMMANDS[command].fields[31 - Math.clz32(left & -left)] as FieldSpec
    if (spec.unless.some((name) => fields[name] !== undefined)) continue
    throw invalid([`${spec.name} is required`, ...spec.unless].join(', or '))
  }
}

function addValue(to: FieldWriter, spec: FieldSpec, value: unknown): void {
  switch (spec.width) {
    case 'text':
      if (typeof value !== 'string') throw invalid(`${spec.name} must be text`)
      addText(to, spec.id, spec.type, value)
      break
    case 'list':
      addText(to, spec.id, spec.type, joinList(spec, value))
      break
    case 'lines':
      addLines(to, spec, value)
      break
    case 'names':
      addBytes(to, spec.id, spec.type, packedNames(spec, value))
      break
    case 'u8s':
    case 'u64s':
      addBytes(to, spec.id, spec.type, packedNumbers(spec, value))
      break
    case 'u8':
      addU8(to, spec.id, wholeNumber(spec, value, 0xff))
      break
    case 'u32':
      addU32(to, spec.id, wholeNumber(spec, value, 0xffff_ffff))
      break
    case 'u64':
      addU64(to, spec.id, typeof value === 'bigint' ? u64(spec, value) : wholeNumber(spec, value, 2 ** 53 - 1))
      break
    case 'f64':
      if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(`${spec.name} must be a finite number`)
      addF64(to, spec.id, value)
      break
  }
}

function joinList(spec: FieldSpec, value: unknown): string {
  if (!Array.isArray(value)) throw invalid(`${spec.name} must be a list`)
  for (const entry of value) {
    if (typeof entry !== 'string') throw invalid(`${spec.name} must be a list of texts`)
    // A comma would split an entry in two, and empty entries are dropped by the receiver.
    if (entry === '' || entry.includes(','))
      throw invalid(`an entry of ${spec.name} must not be empty or contain a comma`)
  }
  return value.join(',')
}

function addLines(to: FieldWriter, spec: FieldSpec, value: unknown): void {
  const most = spec.lastId - spec.id + 1
  if (!Array.isArray(value) || value.length > most || (spec.required && value.length === 0)) {
    throw invalid(`${spec.name} must be a list of ${spec.required ? 1 : 0} to ${most} lines`)
  }
  for (const [n, line] of value.entries()) addBytes(to, spec.id + n, spec.type, encodeStayLine(line, n))
}

function packedNames(spec: FieldSpec, value: unknown): Uint8Array {
  if (!Array.isArray(value)) throw invalid(`${spec.name} must be a list`)
  const parts = value.map((entry) => {
    const bytes = typeof entry === 'string' ? encoder.encode(entry) : undefined
    if (!bytes || bytes.length === 0 || bytes.length > LIMITS.nameBytesMax) {
      throw invalid(`an entry of ${spec.name} must be a text of 1 to ${LIMITS.nameBytesMax} bytes`)
    }
    return [bytes.length, ...bytes]
  })
  return Uint8Array.from(parts.flat())
}

function packedNumbers(spec: FieldSpec, value: unknown): Uint8Array {
  if (!Array.isArray(value)) throw invalid(`${spec.name} must be a list of numbers`)
  if (spec.width === 'u8s') return Uint8Array.from(value, (each) => wholeNumber(spec, each, 0xff))
  const numbers = BigUint64Array.from(value, (each) => BigInt(wholeNumber(spec, each, Number.MAX_SAFE_INTEGER)))
  return new Uint8Array(numbers.buffer)
}

function wholeNumber(spec: FieldSpec, value: unknown, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value
  throw invalid(`${spec.name} must be a whole number, 0 to ${max}`)
}

function u64(spec: FieldSpec, value: bigint): bigint {
  if (value >= 0n && value < 1n << 64n) return value
  throw invalid(`${spec.name} must be a whole number, 0 to 2^64 - 1`)
}

function invalid(reason: string): VacancyError {
  return new VacancyError('validation_error', { reason })
}

export type DecodedRequest = { readonly command: CommandName; readonly fields: RequestFields }

const encoder = new TextEncoder()
const scan = createRequestScan()

/**
 * Decodes a request from the payload of its frame. Lists lose blanks around their entries, empty entries and repeats.
 * Ranges, dates and ids are not validated.
 *
 * @throws VacancyError parse_error or validation_error, for what the engine would refuse: structure, required fields,
 * invalid UTF-8, coordinates that are not finite
 */
export function decodeRequest(payload: Uint8Array): DecodedRequest {
  const text = scanRequest(scan, payload, 0, payload.length)
  if (text !== '') throw refusal(text)
  const fields: { [name: string]: FieldValue } = {}
  for (const [place, spec] of scan.command.fields.entries()) {
    const value = readValue(scan, place, spec)
    if (value !== undefined) fields[spec.name] = value
  }
  return { command: scan.command.name, fields }
}

function refusal(text: string): VacancyError {
  const colon = text.indexOf(':')
  const reason = text.slice(colon + 2)
  return new VacancyError(text.startsWith('PARSE_ERROR') ? 'parse_error' : 'validation_error', { reason })
}

function readLines(from: RequestScan): StayLine[] | undefined {
  const lines: StayLine[] = []
  for (
    let place = LINES_PLACE;
    place < LINES_PLACE + LIMITS.stayLinesMax && (from.start[place] as number) >= 0;
    place++
  ) {
    const start = from.start[place] as number
    const [line, ...more] = decodeStayLines(from.bytes, start, start + (from.length[place] as number)) ?? []
    if (!line || more.length > 0) throw invalid(`lines ${place - LINES_PLACE} is not one line`)
    lines.push(line)
  }
  return lines.length === 0 ? undefined : lines
}

function readValue(from: RequestScan, place: number, spec: FieldSpec): FieldValue {
  if (spec.width === 'lines') return readLines(from)
  const at = from.start[place] as number
  if (at < 0) {
    const isEmptyList = spec.width === 'list' && ((place < 32 ? from.seen : from.seenHigh) & (1 << place)) !== 0
    return isEmptyList ? [] : undefined
  }
  switch (spec.width) {
    case 'text':
      return readText(from, place, spec)
    case 'list':
      return splitList(readText(from, place, spec))
    case 'names':
      return readNames(from, place, spec)
    case 'u8s':
      return [...from.bytes.subarray(at, at + (from.length[place] as number))]
    case 'u64s':
      return readNumbers(from, place, spec)
    case 'u8':
      return from.view.getUint8(at)
    case 'u32':
      return from.view.getUint32(at, true)
    case 'u64':
      return readU64(from.view, at)
    case 'f64':
      return readFinite(from.view.getFloat64(at, true), spec)
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

function readText(from: RequestScan, place: number, spec: FieldSpec): string {
  const start = from.start[place] as number
  const end = start + (from.length[place] as number)
  if (!isUtf8(from.bytes, start, end)) throw invalid(`${spec.name} is not valid UTF-8`)
  return decoder.decode(from.bytes.subarray(start, end))
}

function readNames(from: RequestScan, place: number, spec: FieldSpec): string[] {
  const names: string[] = []
  const end = (from.start[place] as number) + (from.length[place] as number)
  for (let at = from.start[place] as number; at < end; ) {
    const stop = at + 1 + (from.bytes[at] as number)
    if (stop > end || stop === at + 1) throw invalid(`an entry of ${spec.name} must have 1 to 255 bytes`)
    if (!isUtf8(from.bytes, at + 1, stop)) throw invalid(`${spec.name} is not valid UTF-8`)
    names.push(decoder.decode(from.bytes.subarray(at + 1, stop)))
    at = stop
  }
  return names
}

function readNumbers(from: RequestScan, place: number, spec: FieldSpec): number[] {
  const [at, bytes] = [from.start[place] as number, from.length[place] as number]
  if (bytes % 8 !== 0) throw invalid(`${spec.name} must have 8 bytes for each number`)
  return Array.from({ length: bytes / 8 }, (_, n) => Number(from.view.getBigUint64(at + n * 8, true)))
}

function readFinite(value: number, spec: FieldSpec): number {
  if (!Number.isFinite(value)) throw invalid(`${spec.name} must be a finite number`)
  return value
}

/** Entries of a list: trimmed, without empty ones and repeats (docs/design/protocol.md#text-and-lists). */
function splitList(text: string): string[] {
  const entries = text.split(',').map((entry) => entry.replace(/^ +| +$/g, ''))
  return [...new Set(entries)].filter((entry) => entry !== '')
}

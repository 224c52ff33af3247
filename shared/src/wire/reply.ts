/** Replies as objects ↔ frames: for clients, tools and tests (wire-protocol.md §7, §9). */

import type { CodecList } from '../codecs.ts'
import { namesOf } from '../codecs.ts'
import { formatDay, packDay, parseDay, unpackDay } from '../dates.ts'
import { VacancyError } from '../errors.ts'
import { packPropertyId, unpackPropertyId } from '../property-id.ts'
import { COMMANDS, type CommandName } from './commands.ts'
import {
  createFieldWriter,
  errorTextBytes,
  FIELD_HEADER_BYTES,
  type FieldWriter,
  putBytes,
  putU8,
  putU16,
  putU32,
  putU64,
} from './fields.ts'
import { FRAME_HEADER_BYTES, putFrameHeader } from './frame.ts'
import { safeNumber, splitList } from './request.ts'

/** One night of a stay. */
export type DayResult = {
  readonly date: string
  readonly availability: number
  readonly finalPrice: number
  readonly rateFeatures: readonly string[]
}

export type SegmentResult = { readonly segment: string; readonly propertyCount: number }
export type StayResult = { readonly propertyId: string; readonly days: readonly DayResult[] }
/** What a search that asked to be explained appends. */
export type ExplainResult = {
  readonly rowsExamined: number
  readonly waitedMicros: number
  readonly searchedMicros: number
  readonly appliedIndex: number | bigint
}

/** Results by kind of reply; which one a command has, its row says. */
export type ReplyResult = {
  readonly rateFeatures?: readonly string[]
  readonly segments?: readonly SegmentResult[]
  readonly availability?: number
  readonly exists?: boolean
  readonly propertyIds?: readonly string[]
  readonly numDays?: number
  readonly properties?: readonly StayResult[]
  readonly roomTypes?: readonly string[]
  readonly dates?: readonly string[]
  readonly propertyId?: string
  readonly date?: string
  readonly finalPrice?: number
  readonly explain?: ExplainResult
  /** Log index of a write that asked for it. */
  readonly appliedIndex?: number | bigint
}

/** What packed dates and masks are relative to. */
export type ReplyContext = {
  /** Year that packed dates count from: the node's, which is the client's unless it is New Year somewhere. */
  readonly baseYear: number
  readonly codecs: CodecList | undefined
}

const STATUS_OK = new TextEncoder().encode('SUCCESS')
const STATUS_ERROR = new TextEncoder().encode('ERROR')
const encoder = new TextEncoder()
const decoder = new TextDecoder()
const DAY_BYTES = 11
const EXTRA_ID = 0xffff

function beginReply(status: Uint8Array): { writer: FieldWriter; countAt: number } {
  const writer = createFieldWriter()
  writer.at = FRAME_HEADER_BYTES
  writer.bytes[writer.at++] = status.length
  writer.bytes.set(status, writer.at)
  writer.at += status.length
  const countAt = writer.at
  writer.at += 2
  return { writer, countAt }
}

function finishReply(writer: FieldWriter, countAt: number, correlationId: number, fields: number): Uint8Array {
  writer.view.setUint16(countAt, fields, true)
  putFrameHeader(writer.bytes, 0, correlationId, writer.at - FRAME_HEADER_BYTES)
  return writer.bytes.slice(0, writer.at)
}

/** An ERROR frame with its one field. */
export function encodeError(correlationId: number, text: string): Uint8Array {
  const { writer, countAt } = beginReply(STATUS_ERROR)
  putBytes(writer, 1, 1, errorTextBytes(text))
  return finishReply(writer, countAt, correlationId, 1)
}

/** A SUCCESS frame of a command's reply. */
export function encodeReply(
  command: CommandName,
  correlationId: number,
  result: ReplyResult,
  context: ReplyContext,
): Uint8Array {
  const { writer, countAt } = beginReply(STATUS_OK)
  let id = 0
  const text = (value: string) => putBytes(writer, ++id, 1, encoder.encode(value))
  const raw = (type: number, value: Uint8Array) => putBytes(writer, ++id, type, value)
  switch (COMMANDS[command].reply) {
    case 'codecs':
      raw(9, encoder.encode((result.rateFeatures ?? []).join(',')))
      break
    case 'segments':
      for (const { segment, propertyCount } of result.segments ?? []) {
        text(segment)
        putU32(writer, ++id, propertyCount)
      }
      break
    case 'number':
      putU8(writer, ++id, result.availability ?? 0)
      break
    case 'boolean':
      putU8(writer, ++id, result.exists ? 1 : 0)
      break
    case 'ids':
      for (const property of result.propertyIds ?? []) raw(1, packed(property))
      break
    case 'stays':
      putU16(writer, ++id, result.numDays ?? 0)
      for (const { propertyId, days } of result.properties ?? []) {
        raw(1, packed(propertyId))
        raw(8, dayVector(days, context))
      }
      break
    case 'room-types':
      for (const name of result.roomTypes ?? []) text(name)
      break
    case 'dates':
      for (const date of result.dates ?? []) text(date)
      break
    case 'night':
      text(result.propertyId ?? '')
      text(result.date ?? '')
      putU8(writer, ++id, result.availability ?? 0)
      putU32(writer, ++id, result.finalPrice ?? 0)
      putU32(writer, ++id, maskFrom(nightFeatures(result), context))
      break
    default:
      break
  }
  if (result.appliedIndex !== undefined) {
    putU64(writer, EXTRA_ID, BigInt(result.appliedIndex))
    id++
  }
  return finishReply(writer, countAt, correlationId, id)
}

function nightFeatures(result: ReplyResult): readonly string[] {
  return result.rateFeatures ?? []
}

function packed(id: string): Uint8Array {
  const bytes = packPropertyId(id)
  if (!bytes) throw new VacancyError('validation', { reason: `${id} is no property id` })
  return bytes
}

function maskFrom(names: readonly string[], context: ReplyContext): number {
  let mask = 0
  for (const name of names) mask |= 1 << (context.codecs?.indexOf.get(name) ?? 0)
  return mask >>> 0
}

function dayVector(days: readonly DayResult[], context: ReplyContext): Uint8Array {
  const bytes = new Uint8Array(2 + days.length * DAY_BYTES)
  const view = new DataView(bytes.buffer)
  view.setUint16(0, days.length, true)
  for (const [i, day] of days.entries()) {
    const at = 2 + i * DAY_BYTES
    view.setUint16(at, packDay(parseDay(day.date) ?? 0, context.baseYear), true)
    view.setUint8(at + 2, day.availability)
    view.setUint32(at + 3, day.finalPrice, true)
    view.setUint32(at + 7, maskFrom(day.rateFeatures, context), true)
  }
  return bytes
}

export type DecodedReply =
  | { readonly ok: true; readonly result: ReplyResult }
  | { readonly ok: false; readonly code: string; readonly message: string }

type ReplyField = { readonly id: number; readonly type: number; readonly data: Uint8Array }

/**
 * Reads a reply payload. Accepts the malformed error frames of older routers (platform.md §1.4).
 *
 * @throws VacancyError `parse` when the bytes are no reply of this command
 */
export function decodeReply(command: CommandName, payload: Uint8Array, context: ReplyContext): DecodedReply {
  const statusBytes = payload[0] ?? 0
  const status = decoder.decode(payload.slice(1, 1 + statusBytes))
  if (payload.length < statusBytes + 3) throw broken('it is too short')
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength)
  const count = view.getUint16(1 + statusBytes, true)
  if (status === 'ERROR') return decodeError(payload, 3 + statusBytes, count)
  if (status !== 'SUCCESS') throw broken(`its status is ${status.slice(0, 20)}`)
  const fields = readFields(payload, view, 3 + statusBytes, count)
  return { ok: true, result: readResult(command, fields, context) }
}

function broken(reason: string): VacancyError {
  return new VacancyError('parse', { reason: `The reply cannot be read: ${reason}.` })
}

function readFields(payload: Uint8Array, view: DataView, start: number, count: number): ReplyField[] {
  const fields: ReplyField[] = []
  let at = start
  for (let i = 0; i < count; i++) {
    if (at + FIELD_HEADER_BYTES > payload.length) throw broken('a field is missing')
    const length = view.getUint32(at + 3, true)
    const data = payload.subarray(at + FIELD_HEADER_BYTES, at + FIELD_HEADER_BYTES + length)
    if (data.length !== length) throw broken('a field runs past the end')
    fields.push({ id: view.getUint16(at, true), type: payload[at + 2] as number, data })
    at += FIELD_HEADER_BYTES + length
  }
  if (at !== payload.length) throw broken('bytes are left over')
  return fields
}

function decodeError(payload: Uint8Array, start: number, count: number): DecodedReply {
  const data = payload.slice(start + FIELD_HEADER_BYTES)
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength)
  const length = count > 0 && payload.length >= start + FIELD_HEADER_BYTES ? view.getUint32(start + 3, true) : 0
  // Older routers claim 4 bytes and send a u32 of 3 and three digits.
  const text = decoder.decode(length === 4 && data.length === 7 ? data.slice(4) : data.slice(0, length))
  const colon = text.indexOf(':')
  if (colon < 0) return { ok: false, code: text.trim(), message: text.trim() }
  return { ok: false, code: text.slice(0, colon).trim(), message: text.slice(colon + 1).trim() }
}

function readResult(command: CommandName, all: readonly ReplyField[], context: ReplyContext): ReplyResult {
  const extra = all.at(-1)?.id === EXTRA_ID ? all.at(-1) : undefined
  const fields = extra ? all.slice(0, -1) : all
  const kind = COMMANDS[command].reply
  return { ...readKind(kind, fields, context), ...(extra ? readExtra(extra) : {}) }
}

function readExtra(extra: ReplyField): ReplyResult {
  const view = viewOf(extra.data)
  if (extra.data.length === 8) return { appliedIndex: safeNumber(view.getBigUint64(0, true)) }
  if (extra.data.length !== 20) throw broken('its extra field has an unknown length')
  return {
    explain: {
      rowsExamined: view.getUint32(0, true),
      waitedMicros: view.getUint32(4, true),
      searchedMicros: view.getUint32(8, true),
      appliedIndex: safeNumber(view.getBigUint64(12, true)),
    },
  }
}

function viewOf(data: Uint8Array): DataView {
  return new DataView(data.buffer, data.byteOffset, data.byteLength)
}

function textOf(field: ReplyField | undefined): string {
  if (!field) throw broken('a field is missing')
  return decoder.decode(field.data.slice())
}

function u8Of(field: ReplyField | undefined): number {
  if (field?.data.length !== 1) throw broken('a number must have one byte')
  return field.data[0] as number
}

function u32Of(field: ReplyField | undefined): number {
  if (field?.data.length !== 4) throw broken('a number must have four bytes')
  return viewOf(field.data).getUint32(0, true)
}

function readKind(
  kind: (typeof COMMANDS)[CommandName]['reply'],
  fields: readonly ReplyField[],
  context: ReplyContext,
): ReplyResult {
  switch (kind) {
    case 'codecs':
      return { rateFeatures: splitList(textOf(fields[0])) }
    case 'segments':
      return {
        segments: Array.from({ length: fields.length / 2 }, (_, i) => ({
          segment: textOf(fields[i * 2]),
          propertyCount: u32Of(fields[i * 2 + 1]),
        })),
      }
    case 'number':
      return { availability: u8Of(fields[0]) }
    case 'boolean':
      return { exists: u8Of(fields[0]) === 1 }
    case 'ids':
      return { propertyIds: fields.map(idOf) }
    case 'stays':
      return readStays(fields, context)
    case 'room-types':
      return { roomTypes: fields.map(textOf) }
    case 'dates':
      return { dates: fields.map(textOf).sort() }
    case 'night':
      return {
        propertyId: nightId(fields[0]),
        date: textOf(fields[1]),
        availability: u8Of(fields[2]),
        finalPrice: u32Of(fields[3]),
        rateFeatures: featuresOf(u32Of(fields[4]), context),
      }
    default:
      return {}
  }
}

function idOf(field: ReplyField): string {
  if (field.data.length !== 16) throw broken('a packed id must have 16 bytes')
  return unpackPropertyId(field.data, 0)
}

/** Our nodes send plain text; a packed id is accepted, too (§1.2 row 3). */
function nightId(field: ReplyField | undefined): string {
  if (field?.data.length !== 16) return textOf(field)
  return (field.data[6] as number) === 0xf0 || field.data[15] === 0 ? unpackPropertyId(field.data, 0) : textOf(field)
}

function featuresOf(mask: number, context: ReplyContext): string[] {
  return context.codecs ? namesOf(context.codecs, mask) : []
}

function readStays(fields: readonly ReplyField[], context: ReplyContext): ReplyResult {
  const first = fields[0]
  if (first?.data.length !== 2) throw broken('the number of days is missing')
  const numDays = viewOf(first.data).getUint16(0, true)
  const properties: StayResult[] = []
  for (let i = 1; i + 1 < fields.length; i += 2) {
    const propertyId = idOf(fields[i] as ReplyField)
    properties.push({ propertyId, days: readDays((fields[i + 1] as ReplyField).data, numDays, context) })
  }
  return { numDays, properties }
}

function readDays(data: Uint8Array, numDays: number, context: ReplyContext): DayResult[] {
  const view = viewOf(data)
  if (data.length !== 2 + numDays * DAY_BYTES || view.getUint16(0, true) !== numDays) {
    throw broken('a day vector has another number of days')
  }
  return Array.from({ length: numDays }, (_, i) => {
    const at = 2 + i * DAY_BYTES
    const day = unpackDay(view.getUint16(at, true), context.baseYear)
    if (day < 0) throw broken('a packed date is no date')
    return {
      date: formatDay(day),
      availability: view.getUint8(at + 2),
      finalPrice: view.getUint32(at + 3, true),
      rateFeatures: featuresOf(view.getUint32(at + 7, true), context),
    }
  })
}

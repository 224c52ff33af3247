/** Requests as objects ↔ frames: for clients, tools and tests. The node reads requests by offsets (fields.ts). */

import { VacancyError } from '../errors.ts'
import { COMMANDS, type CommandName, type FieldSpec } from './commands.ts'
import {
  createFieldWriter,
  createRequestScan,
  type FieldWriter,
  putBytes,
  putF64,
  putU8,
  putU32,
  putU64,
  scanRequest,
} from './fields.ts'
import { FRAME_HEADER_BYTES, putFrameHeader } from './frame.ts'
import { type Envelope, wrapFrame } from './routing.ts'

export type FieldValue = string | number | bigint | boolean | readonly string[] | undefined
export type RequestFields = { readonly [name: string]: FieldValue }

export type RequestMessage = {
  readonly command: CommandName
  /** u32; the reply carries the same. */
  readonly correlationId: number
  readonly fields: RequestFields
  /** Wraps the frame for a router. */
  readonly envelope?: Envelope | undefined
}

const encoder = new TextEncoder()

/**
 * The whole frame of a request.
 *
 * @throws VacancyError `validation` when a value does not fit its field; the node checks the rest
 */
export function encodeRequest(message: RequestMessage): Uint8Array {
  const spec = COMMANDS[message.command]
  const writer = createFieldWriter()
  writer.at = FRAME_HEADER_BYTES
  const name = encoder.encode(spec.name)
  writer.bytes[writer.at++] = name.length
  writer.bytes.set(name, writer.at)
  writer.at += name.length
  const countAt = writer.at
  writer.at += 2
  let count = 0
  for (const field of spec.fields) {
    const value = message.fields[field.name]
    if (value === undefined) continue
    putField(writer, field, value)
    count++
  }
  for (const given of Object.keys(message.fields)) {
    if (message.fields[given] !== undefined && !spec.fields.some((field) => field.name === given)) {
      throw new VacancyError('validation', { reason: `${spec.name} has no field ${given}` })
    }
  }
  writer.view.setUint16(countAt, count, true)
  putFrameHeader(writer.bytes, 0, message.correlationId, writer.at - FRAME_HEADER_BYTES)
  const frame = writer.bytes.slice(0, writer.at)
  return message.envelope ? wrapFrame(message.envelope, frame) : frame
}

function putField(writer: FieldWriter, field: FieldSpec, value: NonNullable<FieldValue>): void {
  switch (field.width) {
    case 'text':
      return putBytes(writer, field.id, field.type, encoder.encode(expectText(field, value)))
    case 'list':
      return putBytes(writer, field.id, field.type, encoder.encode(expectList(field, value).join(',')))
    case 'u8':
      return putU8(writer, field.id, expectWhole(field, value, 0xff))
    case 'u32':
      return putU32(writer, field.id, expectWhole(field, value, 0xffffffff))
    case 'u64':
      return putU64(writer, field.id, expectU64(field, value))
    default:
      return putF64(writer, field.id, expectNumber(field, value))
  }
}

function wrong(field: FieldSpec, what: string): VacancyError {
  return new VacancyError('validation', { reason: `${field.name} must be ${what}` })
}

function expectText(field: FieldSpec, value: NonNullable<FieldValue>): string {
  if (typeof value !== 'string') throw wrong(field, 'a text')
  return value
}

function expectList(field: FieldSpec, value: NonNullable<FieldValue>): readonly string[] {
  if (!Array.isArray(value)) throw wrong(field, 'a list of texts')
  const list = value as readonly string[]
  if (list.some((entry) => typeof entry !== 'string' || entry.includes(','))) {
    throw wrong(field, 'a list of texts without commas')
  }
  return list
}

function expectNumber(field: FieldSpec, value: NonNullable<FieldValue>): number {
  if (typeof value !== 'number') throw wrong(field, 'a number')
  return value
}

function expectWhole(field: FieldSpec, value: NonNullable<FieldValue>, max: number): number {
  const number = typeof value === 'boolean' ? Number(value) : expectNumber(field, value)
  if (!Number.isInteger(number) || number < 0 || number > max) throw wrong(field, `a whole number of 0 to ${max}`)
  return number
}

function expectU64(field: FieldSpec, value: NonNullable<FieldValue>): bigint {
  const whole = typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof whole !== 'bigint' || whole < 0n || whole >= 1n << 64n)
    throw wrong(field, 'a whole number of 0 to 2^64 - 1')
  return whole
}

export type DecodedRequest = { readonly command: CommandName; readonly fields: RequestFields }

const decoder = new TextDecoder()

/**
 * Reads a request payload back into an object; u64 values as numbers when they are safe integers, else as bigint.
 *
 * @throws VacancyError `parse` or `validation` with the text a node would answer
 */
export function decodeRequest(payload: Uint8Array): DecodedRequest {
  const scan = createRequestScan()
  const error = scanRequest(scan, payload, 0, payload.length)
  if (error !== '') {
    const colon = error.indexOf(':')
    const code = error.startsWith('PARSE_ERROR') ? 'parse' : 'validation'
    throw new VacancyError(code, { reason: error.slice(colon + 2) })
  }
  const fields: { [name: string]: FieldValue } = {}
  for (const [i, field] of scan.command.fields.entries()) {
    const start = scan.start[i] as number
    if (start < 0) continue
    const length = scan.length[i] as number
    switch (field.width) {
      case 'text':
        fields[field.name] = decoder.decode(payload.slice(start, start + length))
        break
      case 'list':
        fields[field.name] = splitList(decoder.decode(payload.slice(start, start + length)))
        break
      case 'u8':
        fields[field.name] = payload[start]
        break
      case 'u32':
        fields[field.name] = scan.view.getUint32(start, true)
        break
      case 'u64':
        fields[field.name] = safeNumber(scan.view.getBigUint64(start, true))
        break
      default:
        fields[field.name] = scan.view.getFloat64(start, true)
    }
  }
  return { command: scan.command.name as CommandName, fields }
}

/** Entries of a list field: trimmed, empty ones and repeats dropped (§6.2). */
export function splitList(text: string): string[] {
  return [...new Set(text.split(',').map((entry) => entry.trim()))].filter((entry) => entry !== '')
}

export function safeNumber(value: bigint): number | bigint {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
}

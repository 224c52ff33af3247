/**
 * Describes each byte of a frame, for hex views. Works for any bytes: the parts cover them in order, and the first
 * unreadable byte starts a last part with the reason.
 */

import { COMMANDS, type FieldSpec, isCommandName } from './commands.ts'
import { FIELD_HEADER_BYTES } from './fields.ts'
import { readU32 } from './frame.ts'
import { decodeEnvelope, FRAME_HEADER_BYTES, MAGIC_ENVELOPE, MAGIC_FRAME } from './routing.ts'

export type FramePart = {
  readonly from: number
  readonly to: number
  /** Description: `correlation id`, `segment: length`, `segment`. */
  readonly description: string
  /** Name of the field it belongs to; '' for the frame's own parts. */
  readonly field: string
  /** Its value in words; '' when the bytes suffice. */
  readonly value: string
}

const TYPE_NAMES: { readonly [type: number]: string } = {
  1: 'text',
  2: 'small number',
  3: 'number',
  8: 'days',
  9: 'codecs',
  10: 'records',
}
const VALUE_CHARS_MAX = 120
const decoder = new TextDecoder()

export function outlineFrame(bytes: Uint8Array): FramePart[] {
  const parts: FramePart[] = []
  let at = 0
  const add = (length: number, description: string, value = '', field = '') => {
    parts.push({ from: at, to: at + length, description, field, value })
    at += length
  }
  const rest = (description: string) => {
    if (at < bytes.length) add(bytes.length - at, description)
    return parts
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes[0] === MAGIC_ENVELOPE) {
    const start = envelopeEnd(bytes)
    if (start < 0) return rest('truncated envelope')
    add(start, 'envelope for routers', short(decoder.decode(bytes.subarray(0, start))))
  }
  if (bytes.length - at < FRAME_HEADER_BYTES) return rest('not a frame: shorter than a header')
  if (bytes[at] !== MAGIC_FRAME) return rest('not a frame: no magic byte')
  add(1, 'magic byte')
  add(4, 'correlation id', String(view.getUint32(at, true)))
  const payloadBytes = readU32(bytes, at)
  add(4, 'payload length', String(payloadBytes))
  if (at === bytes.length) return parts
  const nameBytes = bytes[at] as number
  add(1, 'name length', String(nameBytes))
  if (bytes.length - at < nameBytes + 2) return rest('truncated')
  const name = decoder.decode(bytes.subarray(at, at + nameBytes))
  if (nameBytes > 0) add(nameBytes, isCommandName(name) ? 'command' : 'status', name)
  const count = view.getUint16(at, true)
  add(2, 'number of fields', String(count))
  const specs: readonly FieldSpec[] = isCommandName(name) ? COMMANDS[name].fields : []
  for (let i = 0; i < count; i++) {
    if (bytes.length - at < FIELD_HEADER_BYTES) return rest('truncated')
    const id = view.getUint16(at, true)
    const type = bytes[at + 2] as number
    const length = readU32(bytes, at + 3)
    const spec = specs.find((each) => each.id <= id && id <= each.lastId)
    const field = spec?.name ?? `field ${id}`
    add(2, `${field}: id`, `0x${id.toString(16).padStart(4, '0')}`, field)
    add(1, `${field}: type`, TYPE_NAMES[type] ?? String(type), field)
    add(4, `${field}: length`, String(length), field)
    if (length > bytes.length - at) return rest('truncated')
    if (length > 0) add(length, field, wordsOf(view, at, length, type, spec), field)
  }
  return rest('after the last field')
}

function envelopeEnd(bytes: Uint8Array): number {
  try {
    return decodeEnvelope(bytes).frameStart
  } catch {
    // A fragment of an envelope: only its type can be shown.
    return -1
  }
}

function wordsOf(view: DataView, at: number, length: number, type: number, spec: FieldSpec | undefined): string {
  if (type === 1) return short(decoder.decode(new Uint8Array(view.buffer, view.byteOffset + at, length)))
  if (type !== 2 && type !== 3) return ''
  if (length === 1) return String(view.getUint8(at))
  if (length === 2) return String(view.getUint16(at, true))
  if (length === 4) return String(view.getUint32(at, true))
  if (length !== 8) return ''
  return spec?.width === 'f64' ? String(view.getFloat64(at, true)) : String(view.getBigUint64(at, true))
}

function short(text: string): string {
  const clean = text.replace(/\p{Cc}/gu, '·')
  return clean.length > VALUE_CHARS_MAX ? `${clean.slice(0, VALUE_CHARS_MAX)}…` : clean
}

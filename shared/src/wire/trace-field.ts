/**
 * The field `trace` of a request that is encoded already: proxies add it, and every hop takes it out again in front of a
 * server that does not know it (docs/design/protocol.md#traces). It is always added as the last field, so that a look
 * at the end of a request finds it.
 */

import { LIMITS } from '../domain.ts'
import { TRACEPARENT_CHARS } from '../trace-context.ts'
import { TRACE_FIELD_ID } from './commands.ts'
import { FIELD_HEADER_BYTES } from './fields.ts'

export const TRACE_FIELD_BYTES = FIELD_HEADER_BYTES + TRACEPARENT_CHARS
const TEXT_TYPE = 1

/** @param end of the payload, or of the frame that it ends */
export function endsWithTrace(bytes: Uint8Array, end: number): boolean {
  const at = end - TRACE_FIELD_BYTES
  return (
    at > 0 &&
    bytes[at] === (TRACE_FIELD_ID & 0xff) &&
    bytes[at + 1] === TRACE_FIELD_ID >>> 8 &&
    bytes[at + 2] === TEXT_TYPE &&
    bytes[at + 3] === TRACEPARENT_CHARS &&
    bytes[at + 4] === 0 &&
    bytes[at + 5] === 0 &&
    bytes[at + 6] === 0
  )
}

/** The value at the end of a request of which `endsWithTrace` is true. */
export function traceAtEnd(bytes: Uint8Array, end: number): string {
  return String.fromCharCode(...bytes.subarray(end - TRACEPARENT_CHARS, end))
}

/** The payload of a request with the field; without it where the request would become too large. */
export function withTrace(payload: Uint8Array, traceparent: string): Uint8Array {
  if (payload.length + TRACE_FIELD_BYTES > LIMITS.requestPayloadBytesMax) return payload
  const bytes = new Uint8Array(payload.length + TRACE_FIELD_BYTES)
  bytes.set(payload)
  const view = new DataView(bytes.buffer)
  addToCount(view, 0, 1)
  view.setUint16(payload.length, TRACE_FIELD_ID, true)
  view.setUint8(payload.length + 2, TEXT_TYPE)
  view.setUint32(payload.length + 3, TRACEPARENT_CHARS, true)
  const at = payload.length + FIELD_HEADER_BYTES
  for (let i = 0; i < TRACEPARENT_CHARS; i++) bytes[at + i] = traceparent.charCodeAt(i)
  return bytes
}

/** Changes the number of fields of the payload at `start`. */
export function addToCount(view: DataView, start: number, change: 1 | -1): void {
  const at = start + 1 + view.getUint8(start)
  view.setUint16(at, view.getUint16(at, true) + change, true)
}

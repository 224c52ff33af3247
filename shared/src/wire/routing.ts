/** Envelopes: segment and write flag around a frame that stays closed (wire-protocol.md §3.2). */

import { ENVELOPE_HEADER_BYTES, MAGIC_ENVELOPE } from './frame.ts'

export type Envelope = { readonly segment: string; readonly write: boolean }

/** Wraps one bare frame. The segment has at most 255 bytes. */
export function wrapFrame(envelope: Envelope, frame: Uint8Array): Uint8Array {
  const segment = new TextEncoder().encode(envelope.segment)
  const bytes = new Uint8Array(ENVELOPE_HEADER_BYTES + 1 + segment.length + 1 + frame.length)
  new DataView(bytes.buffer).setUint32(1, bytes.length - ENVELOPE_HEADER_BYTES, true)
  bytes[0] = MAGIC_ENVELOPE
  bytes[ENVELOPE_HEADER_BYTES] = segment.length
  bytes.set(segment, ENVELOPE_HEADER_BYTES + 1)
  bytes[ENVELOPE_HEADER_BYTES + 1 + segment.length] = envelope.write ? 1 : 0
  bytes.set(frame, ENVELOPE_HEADER_BYTES + 2 + segment.length)
  return bytes
}

/** Takes a whole envelope apart. */
export function unwrapFrame(bytes: Uint8Array): Envelope & { readonly frame: Uint8Array } {
  const length = bytes[ENVELOPE_HEADER_BYTES] as number
  const flag = ENVELOPE_HEADER_BYTES + 1 + length
  return {
    segment: new TextDecoder().decode(bytes.slice(ENVELOPE_HEADER_BYTES + 1, flag)),
    write: bytes[flag] === 1,
    frame: bytes.slice(flag + 1),
  }
}

/** The keepalive that router clients send; never answered. */
export function keepaliveEnvelope(correlationId: number): Uint8Array {
  const frame = new Uint8Array(9)
  frame[0] = 0xff
  new DataView(frame.buffer).setUint32(1, correlationId, true)
  return wrapFrame({ segment: '__keepalive__', write: false }, frame)
}

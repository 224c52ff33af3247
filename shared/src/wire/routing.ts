/**
 * Envelopes: router frames, with a segment and a write flag around an opaque bare frame
 * (docs/design/protocol.md#envelope).
 *
 *   offset   size   content
 *   0        1      FE
 *   1        4      m, bytes after this field: 1 + s + 1 + 9 + n
 *   5        1      s, bytes of the segment
 *   6        s      segment, UTF-8
 *   6 + s    1      01 = write, anything else = read
 *   7 + s    9 + n  one whole bare frame
 */

import { VacancyError } from '../errors.ts'
import { isUtf8 } from '../text.ts'

export const MAGIC_FRAME = 0xff
export const MAGIC_ENVELOPE = 0xfe
/** Magic, correlation id, payload length. */
export const FRAME_HEADER_BYTES = 9
/** Magic and length: the bytes needed to know the size of an envelope. */
export const ENVELOPE_HEADER_BYTES = 5
/** Bytes of an envelope around its bare frame, without the segment. */
export const ENVELOPE_BYTES = ENVELOPE_HEADER_BYTES + 2
/** Least length an envelope can claim: no segment, no payload. */
export const ENVELOPE_CONTENT_BYTES_MIN = 2 + FRAME_HEADER_BYTES
const SEGMENT_BYTES_MAX = 255
const WRITE = 1

export const KEEPALIVE_SEGMENT = '__keepalive__'
export const CODECS_SEGMENT = '__codecs__'
export const SEGMENTS_SEGMENT = 'GETSEGMENTS'
export type Envelope = {
  readonly segment: string
  /** The client's claim. Routers and bridges use it, an engine ignores it. */
  readonly write: boolean
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * The bytes that precede a bare frame of `frameBytes` bytes to make it an envelope.
 *
 * @throws VacancyError validation_error when the segment has more than 255 bytes
 */
function encodeEnvelopeHeader(envelope: Envelope, frameBytes: number): Uint8Array {
  const segment = encoder.encode(envelope.segment)
  if (segment.length > SEGMENT_BYTES_MAX) {
    throw new VacancyError('validation_error', { reason: `segment must be 1 to 255 bytes, got ${segment.length}` })
  }
  const header = new Uint8Array(ENVELOPE_BYTES + segment.length)
  header[0] = MAGIC_ENVELOPE
  new DataView(header.buffer).setUint32(1, 2 + segment.length + frameBytes, true)
  header[5] = segment.length
  header.set(segment, 6)
  header[6 + segment.length] = envelope.write ? WRITE : 0
  return header
}

/** A bare frame in its envelope. */
export function encodeEnvelope(envelope: Envelope, frame: Uint8Array): Uint8Array {
  const header = encodeEnvelopeHeader(envelope, frame.length)
  const bytes = new Uint8Array(header.length + frame.length)
  bytes.set(header)
  bytes.set(frame, header.length)
  return bytes
}

/**
 * Parses one whole envelope.
 *
 * @returns segment, flag, and the offset in `bytes` of the bare frame, which ends with them
 * @throws VacancyError parse_error when lengths are inconsistent or the segment is not UTF-8
 */
export function decodeEnvelope(bytes: Uint8Array): Envelope & { readonly frameStart: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const broken = (reason: string) => new VacancyError('parse_error', { reason })
  if (bytes.length < ENVELOPE_HEADER_BYTES + ENVELOPE_CONTENT_BYTES_MIN || bytes[0] !== MAGIC_ENVELOPE) {
    throw broken('not an envelope')
  }
  const segmentBytes = bytes[5] as number
  const frameStart = ENVELOPE_BYTES + segmentBytes
  if (frameStart + FRAME_HEADER_BYTES > bytes.length) throw broken('the segment of the envelope runs past its end')
  if (bytes[frameStart] !== MAGIC_FRAME) throw broken('the envelope holds no frame')
  const framed = frameStart + FRAME_HEADER_BYTES + view.getUint32(frameStart + 5, true)
  if (view.getUint32(1, true) !== bytes.length - ENVELOPE_HEADER_BYTES || framed !== bytes.length) {
    throw broken('the lengths of envelope and frame do not add up')
  }
  if (!isUtf8(bytes, 6, 6 + segmentBytes)) throw broken('the segment of the envelope is not valid UTF-8')
  return {
    segment: decoder.decode(bytes.subarray(6, 6 + segmentBytes)),
    write: bytes[6 + segmentBytes] === WRITE,
    frameStart,
  }
}

/** A keepalive from the side that opened the connection. It gets no reply. */
export function encodeKeepalive(correlationId = 0): Uint8Array {
  const frame = new Uint8Array(FRAME_HEADER_BYTES)
  frame[0] = MAGIC_FRAME
  new DataView(frame.buffer).setUint32(1, correlationId, true)
  return encodeEnvelope({ segment: KEEPALIVE_SEGMENT, write: false }, frame)
}

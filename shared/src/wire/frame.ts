/**
 * Frames: cutting a byte stream into requests or replies (wire-protocol.md §3, §11).
 *
 *   bare frame   FF · u32 correlation id · u32 n · n bytes of payload
 *   envelope     FE · u32 m · u8 s · s bytes of segment · u8 write flag · one bare frame
 */

import { LIMITS } from '../domain.ts'

export const MAGIC_FRAME = 0xff
export const MAGIC_ENVELOPE = 0xfe
export const FRAME_HEADER_BYTES = 9
export const ENVELOPE_HEADER_BYTES = 5
/** What an envelope adds to a payload at most: segment, its length, flag and the inner header, rounded up (§2). */
export const ENVELOPE_EXTRA_BYTES = 300
const KEEPALIVE = '__keepalive__'

export type FrameSink = {
  /** A whole frame: its payload is bytes[payloadStart, payloadEnd), valid during the call only. */
  frame: (
    bytes: Uint8Array,
    payloadStart: number,
    payloadEnd: number,
    correlationId: number,
    inEnvelope: boolean,
  ) => void
  /** A frame that cannot be served but whose id is known: answer with this ERROR text. */
  refuse: (correlationId: number, text: string) => void
  /** What follows cannot be understood: close the connection. */
  fatal: (reason: string) => void
}

export type FrameSplitter = {
  readonly payloadBytesMax: number
  readonly skipBytesMax: number
  /** Bytes of an unfinished frame, or of frames that wait because of `stopped`. */
  rest: Uint8Array
  restStart: number
  /** Bytes of an oversized payload still to be passed over, and what to answer then. */
  skipping: number
  skipId: number
  skipText: string
  /** Set by the sink to keep what follows until `resumeFrames`. */
  stopped: boolean
  dead: boolean
  /** How much of an unfinished frame, or of a skipped one, has come. */
  pendingBytes: number
}

export function createFrameSplitter(options: { payloadBytesMax: number; skipBytesMax: number }): FrameSplitter {
  return {
    ...options,
    rest: new Uint8Array(0),
    restStart: 0,
    skipping: 0,
    skipId: 0,
    skipText: '',
    stopped: false,
    dead: false,
    pendingBytes: 0,
  }
}

/** Hands all whole frames of the stream so far to the sink; a frame within one chunk is not copied. */
export function splitFrames(splitter: FrameSplitter, chunk: Uint8Array, sink: FrameSink): void {
  if (splitter.dead) return
  const left = splitter.rest.length - splitter.restStart
  if (left === 0) run(splitter, chunk, 0, sink)
  else run(splitter, join(splitter, chunk, left), 0, sink)
}

/** Goes on after the sink had set `stopped` and it was cleared. */
export function resumeFrames(splitter: FrameSplitter, sink: FrameSink): void {
  if (splitter.dead) return
  run(splitter, splitter.rest, splitter.restStart, sink)
}

function join(splitter: FrameSplitter, chunk: Uint8Array, left: number): Uint8Array {
  const joined = new Uint8Array(left + chunk.length)
  joined.set(splitter.rest.subarray(splitter.restStart), 0)
  joined.set(chunk, left)
  return joined
}

const NOTHING = new Uint8Array(0)

function keep(splitter: FrameSplitter, bytes: Uint8Array, at: number): void {
  if (at === bytes.length) {
    splitter.rest = NOTHING
    splitter.restStart = 0
    splitter.pendingBytes = splitter.skipping > 0 ? 1 : 0
    return
  }
  // A chunk is the caller's and may be large: a few bytes of it are copied, much is kept as it is.
  const rest = bytes.subarray(at)
  splitter.rest = rest.length < bytes.length / 2 ? rest.slice() : rest
  splitter.restStart = 0
  splitter.pendingBytes = rest.length
}

function die(splitter: FrameSplitter, sink: FrameSink, reason: string): void {
  splitter.dead = true
  splitter.rest = NOTHING
  splitter.restStart = 0
  splitter.pendingBytes = 0
  sink.fatal(reason)
}

function u32At(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  )
}

function run(splitter: FrameSplitter, bytes: Uint8Array, from: number, sink: FrameSink): void {
  let at = from
  while (at < bytes.length && !splitter.stopped) {
    if (splitter.skipping > 0) {
      const step = Math.min(splitter.skipping, bytes.length - at)
      splitter.skipping -= step
      at += step
      if (splitter.skipping === 0) sink.refuse(splitter.skipId, splitter.skipText)
      continue
    }
    const magic = bytes[at]
    if (magic !== MAGIC_FRAME && magic !== MAGIC_ENVELOPE) return die(splitter, sink, 'a frame starts with FF or FE')
    const next = magic === MAGIC_FRAME ? takeFrame(splitter, bytes, at, sink) : takeEnvelope(splitter, bytes, at, sink)
    if (splitter.dead) return
    if (next < 0) break
    at = next
  }
  keep(splitter, bytes, at)
}

/** @returns where the next frame starts, -1 when this one is not complete */
function takeFrame(splitter: FrameSplitter, bytes: Uint8Array, at: number, sink: FrameSink): number {
  if (bytes.length - at < FRAME_HEADER_BYTES) return -1
  const length = u32At(bytes, at + 5)
  const id = u32At(bytes, at + 1)
  if (length > splitter.payloadBytesMax) {
    if (!skip(splitter, sink, id, length, splitter.payloadBytesMax, length)) return -1
    return at + FRAME_HEADER_BYTES
  }
  const start = at + FRAME_HEADER_BYTES
  if (bytes.length - start < length) return -1
  // No payload is a keepalive: no answer, no error.
  if (length > 0) sink.frame(bytes, start, start + length, id, false)
  return start + length
}

/** @returns false when the connection must go */
function skip(
  splitter: FrameSplitter,
  sink: FrameSink,
  id: number,
  length: number,
  max: number,
  following: number,
): boolean {
  if (length > splitter.skipBytesMax) {
    die(splitter, sink, `a frame of ${length} bytes is beyond all limits`)
    return false
  }
  splitter.skipId = id
  splitter.skipText = `VALIDATION_ERROR: frame of ${length} bytes exceeds ${max}`
  splitter.skipping = following
  return true
}

function takeEnvelope(splitter: FrameSplitter, bytes: Uint8Array, at: number, sink: FrameSink): number {
  if (bytes.length - at < ENVELOPE_HEADER_BYTES) return -1
  const length = u32At(bytes, at + 1)
  const max = splitter.payloadBytesMax + ENVELOPE_EXTRA_BYTES
  if (length < 2 + FRAME_HEADER_BYTES) return fatalEnvelope(splitter, sink, 'an envelope holds a segment and a frame')
  if (length > Math.max(max, splitter.skipBytesMax))
    return fatalEnvelope(splitter, sink, 'an envelope beyond all limits')
  const body = at + ENVELOPE_HEADER_BYTES
  if (bytes.length === body) return -1
  const inner = body + 1 + (bytes[body] as number) + 1
  if (inner + FRAME_HEADER_BYTES > body + length)
    return fatalEnvelope(splitter, sink, 'the segment runs past its envelope')
  if (bytes.length < inner + FRAME_HEADER_BYTES) return -1
  if (bytes[inner] !== MAGIC_FRAME)
    return fatalEnvelope(splitter, sink, 'an envelope holds a frame that starts with FF')
  const id = u32At(bytes, inner + 1)
  const end = body + length
  if (length > max) {
    if (!skip(splitter, sink, id, length, max, end - inner - FRAME_HEADER_BYTES)) return -1
    return inner + FRAME_HEADER_BYTES
  }
  if (bytes.length < end) return -1
  const payload = inner + FRAME_HEADER_BYTES
  if (u32At(bytes, inner + 5) !== end - payload) {
    sink.refuse(id, 'PARSE_ERROR: the inner frame does not fill its envelope')
  } else if (!isUtf8(bytes, body + 1, inner - 1)) {
    sink.refuse(id, 'PARSE_ERROR: the segment of the envelope is not UTF-8')
  } else if (payload < end && !isKeepalive(bytes, body)) {
    sink.frame(bytes, payload, end, id, true)
  }
  return end
}

function fatalEnvelope(splitter: FrameSplitter, sink: FrameSink, reason: string): number {
  die(splitter, sink, reason)
  return -1
}

function isKeepalive(bytes: Uint8Array, body: number): boolean {
  if (bytes[body] !== KEEPALIVE.length) return false
  for (let i = 0; i < KEEPALIVE.length; i++) if (bytes[body + 1 + i] !== KEEPALIVE.charCodeAt(i)) return false
  return true
}

const strictDecoder = new TextDecoder('utf-8', { fatal: true })

function isUtf8(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    if ((bytes[i] as number) < 0x80) continue
    try {
      strictDecoder.decode(bytes.slice(start, end))
      return true
    } catch {
      // The decoder has no other way to say no.
      return false
    }
  }
  return true
}

/** Limits of an engine node (§2). */
export const ENGINE_FRAME_LIMITS = {
  payloadBytesMax: LIMITS.requestPayloadBytesMax,
  skipBytesMax: LIMITS.skippedPayloadBytesMax,
} as const

/** Writes a bare frame's header. */
export function putFrameHeader(bytes: Uint8Array, at: number, correlationId: number, payloadBytes: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  view.setUint8(at, MAGIC_FRAME)
  view.setUint32(at + 1, correlationId, true)
  view.setUint32(at + 5, payloadBytes, true)
}

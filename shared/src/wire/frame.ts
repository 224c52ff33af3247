/**
 * Splits a byte stream into frames (docs/design/protocol.md#frames, docs/design/protocol.md#malformed-input). A frame
 * that is whole in its chunk is passed on without a copy. Only the unfinished end of a chunk is copied, and nothing
 * is allocated per frame.
 *
 * Bare frame: FF · u32 correlation id · u32 n · n bytes of payload. Envelopes: routing.ts.
 */

import { assert } from '../assert.ts'
import { LIMITS } from '../domain.ts'
import { isUtf8 } from '../text.ts'
import {
  ENVELOPE_BYTES,
  ENVELOPE_CONTENT_BYTES_MIN,
  ENVELOPE_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  KEEPALIVE_SEGMENT,
  MAGIC_ENVELOPE,
  MAGIC_FRAME,
} from './routing.ts'

export type FrameSink = {
  /**
   * A whole frame with a payload of at least one byte. The bytes are valid during this call only: the sink copies
   * what it keeps. Setting `splitter.stopped` holds back the following frames.
   */
  frame(bytes: Uint8Array, payloadStart: number, payloadEnd: number, correlationId: number, inEnvelope: boolean): void
  /** A frame to answer with an ERROR reply of this text. The connection stays open. */
  refuse(correlationId: number, text: string): void
  /** The stream cannot be parsed any further: close the connection. The splitter ignores all further bytes. */
  fatal(reason: string): void
}

export type FrameLimits = {
  /** Largest payload. Larger ones are skipped and refused. */
  readonly payloadBytesMax: number
  /** Largest frame that is skipped. A larger one is fatal. */
  readonly skipBytesMax: number
}

/** Splitter state of one connection. The sink may set `stopped`; the rest is private to this module. */
export type FrameSplitter = {
  readonly limits: FrameLimits
  /** Set by the sink. Later bytes are kept until `resumeFrames`. */
  stopped: boolean
  /** Bytes received beyond the last finished frame: an unfinished frame, or everything kept while stopped. */
  pendingBytes: number
  closed: boolean
  running: boolean
  /** Unfinished bytes: [keptStart, keptEnd) of `kept`. */
  kept: Uint8Array
  keptStart: number
  keptEnd: number
  /** How many bytes from keptStart on are needed to make progress. */
  need: number
  /** The refused frame being skipped: bytes to come, bytes received, its id and the text of the refusal. */
  skipLeft: number
  skipped: number
  skipCorrelationId: number
  skipText: string
}

const NOTHING = new Uint8Array(0)
const KEPT_BYTES_MIN = 256
/** A larger empty buffer is released, because many connections are idle. */
const KEPT_BYTES_IDLE_MAX = 4096
const KEEPALIVE = new TextEncoder().encode(KEEPALIVE_SEGMENT)

export function createFrameSplitter(limits: FrameLimits): FrameSplitter {
  assert(limits.payloadBytesMax <= limits.skipBytesMax, 'the payload limit is within the skip limit')
  return {
    limits,
    stopped: false,
    pendingBytes: 0,
    closed: false,
    running: false,
    kept: NOTHING,
    keptStart: 0,
    keptEnd: 0,
    need: 1,
    skipLeft: 0,
    skipped: 0,
    skipCorrelationId: 0,
    skipText: '',
  }
}

/** Appends bytes of the stream and passes their frames to the sink. A sink that throws ends the stream. */
export function splitFrames(splitter: FrameSplitter, chunk: Uint8Array, sink: FrameSink): void {
  let at = 0
  while (splitter.keptStart < splitter.keptEnd && !splitter.stopped && !splitter.closed && at < chunk.length) {
    const missing = splitter.need - (splitter.keptEnd - splitter.keptStart)
    if (missing > 0) {
      const stop = Math.min(chunk.length, at + missing)
      keep(splitter, chunk, at, stop)
      at = stop
    }
    cutKept(splitter, sink)
  }
  if (!splitter.stopped && !splitter.closed && at < chunk.length) at = cut(splitter, chunk, at, chunk.length, sink)
  if (!splitter.closed && at < chunk.length) keep(splitter, chunk, at, chunk.length)
  countPending(splitter)
}

/** Resumes with the bytes kept while the splitter was stopped. Must not be called from within the sink. */
export function resumeFrames(splitter: FrameSplitter, sink: FrameSink): void {
  splitter.stopped = false
  if (splitter.keptStart < splitter.keptEnd && !splitter.closed) cutKept(splitter, sink)
  countPending(splitter)
}

function countPending(splitter: FrameSplitter): void {
  splitter.pendingBytes = splitter.keptEnd - splitter.keptStart + splitter.skipped
}

function cutKept(splitter: FrameSplitter, sink: FrameSink): void {
  splitter.keptStart = cut(splitter, splitter.kept, splitter.keptStart, splitter.keptEnd, sink)
  if (splitter.keptStart < splitter.keptEnd && !splitter.closed) return
  splitter.keptStart = 0
  splitter.keptEnd = 0
  if (splitter.kept.length > KEPT_BYTES_IDLE_MAX || splitter.closed) splitter.kept = NOTHING
}

/** Appends to the kept bytes. Grows with the received bytes, not with the length in a header. */
function keep(splitter: FrameSplitter, chunk: Uint8Array, start: number, end: number): void {
  const held = splitter.keptEnd - splitter.keptStart
  const bytes = held + end - start
  if (splitter.keptEnd + end - start > splitter.kept.length) {
    if (bytes <= splitter.kept.length) {
      splitter.kept.copyWithin(0, splitter.keptStart, splitter.keptEnd)
    } else {
      const grown = new Uint8Array(Math.max(KEPT_BYTES_MIN, bytes, Math.min(bytes * 2, splitter.need)))
      grown.set(splitter.kept.subarray(splitter.keptStart, splitter.keptEnd))
      splitter.kept = grown
    }
    splitter.keptStart = 0
    splitter.keptEnd = held
  }
  splitter.kept.set(start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end), splitter.keptEnd)
  splitter.keptEnd += end - start
}

/** Splits [start, end). @returns where it stopped; `need` is then the number of bytes needed from there */
function cut(splitter: FrameSplitter, bytes: Uint8Array, start: number, end: number, sink: FrameSink): number {
  assert(!splitter.running, 'a sink does not split frames itself')
  splitter.running = true
  const { payloadBytesMax, skipBytesMax } = splitter.limits
  let at = start
  while (at < end && !splitter.stopped && !splitter.closed) {
    if (splitter.skipLeft > 0) {
      at = skip(splitter, at, end, sink)
      continue
    }
    const magic = bytes[at]
    if (magic === MAGIC_FRAME) {
      if (end - at < FRAME_HEADER_BYTES) {
        splitter.need = FRAME_HEADER_BYTES
        break
      }
      const correlationId = readU32(bytes, at + 1)
      const payloadBytes = readU32(bytes, at + 5)
      if (payloadBytes > payloadBytesMax) {
        at += FRAME_HEADER_BYTES
        if (payloadBytes > skipBytesMax) at = close(splitter, sink, end, `a frame of ${payloadBytes} bytes`)
        else beginSkip(splitter, FRAME_HEADER_BYTES, payloadBytes, correlationId, payloadBytes, payloadBytesMax)
        continue
      }
      const stop = at + FRAME_HEADER_BYTES + payloadBytes
      if (stop > end) {
        splitter.need = FRAME_HEADER_BYTES + payloadBytes
        break
      }
      at = stop
      // An empty payload is a keepalive.
      if (payloadBytes > 0) sink.frame(bytes, stop - payloadBytes, stop, correlationId, false)
    } else if (magic === MAGIC_ENVELOPE) {
      const stop = cutEnvelope(splitter, bytes, at, end, sink)
      if (stop === at) break
      at = stop
    } else {
      at = close(splitter, sink, end, `a frame begins with byte ${magic}`)
    }
  }
  splitter.running = false
  return at
}

/** @returns the end of the envelope, or of its header when the rest is skipped; `at` when more bytes are needed */
function cutEnvelope(splitter: FrameSplitter, bytes: Uint8Array, at: number, end: number, sink: FrameSink): number {
  const here = end - at
  if (here < ENVELOPE_HEADER_BYTES) return wait(splitter, at, ENVELOPE_HEADER_BYTES)
  const contentBytes = readU32(bytes, at + 1)
  if (contentBytes < ENVELOPE_CONTENT_BYTES_MIN || contentBytes > splitter.limits.skipBytesMax) {
    return close(splitter, sink, end, `an envelope of ${contentBytes} bytes`)
  }
  if (here <= ENVELOPE_HEADER_BYTES) return wait(splitter, at, ENVELOPE_HEADER_BYTES + 1)
  const segmentBytes = bytes[at + ENVELOPE_HEADER_BYTES] as number
  if (segmentBytes + ENVELOPE_CONTENT_BYTES_MIN > contentBytes) {
    return close(splitter, sink, end, 'the segment of an envelope runs past its end')
  }
  const segmentStart = at + ENVELOPE_HEADER_BYTES + 1
  const inner = at + ENVELOPE_BYTES + segmentBytes
  const payloadStart = inner + FRAME_HEADER_BYTES
  if (payloadStart > end) return wait(splitter, at, payloadStart - at)
  if (bytes[inner] !== MAGIC_FRAME) return close(splitter, sink, end, 'an envelope holds no frame')
  const correlationId = readU32(bytes, inner + 1)
  const stop = at + ENVELOPE_HEADER_BYTES + contentBytes
  const contentBytesMax = splitter.limits.payloadBytesMax + LIMITS.envelopeOverheadBytesMax
  if (contentBytes > contentBytesMax) {
    beginSkip(splitter, payloadStart - at, stop - payloadStart, correlationId, contentBytes, contentBytesMax)
    return payloadStart
  }
  if (stop > end) return wait(splitter, at, stop - at)
  const payloadBytes = readU32(bytes, inner + 5)
  if (payloadBytes !== stop - payloadStart) {
    sink.refuse(correlationId, 'PARSE_ERROR: the lengths of envelope and frame do not add up')
  } else if (!isUtf8(bytes, segmentStart, segmentStart + segmentBytes)) {
    sink.refuse(correlationId, 'PARSE_ERROR: the segment of the envelope is not valid UTF-8')
  } else if (payloadBytes > splitter.limits.payloadBytesMax) {
    sink.refuse(correlationId, tooLarge(payloadBytes, splitter.limits.payloadBytesMax))
  } else if (payloadBytes > 0 && !isKeepalive(bytes, segmentStart, segmentBytes)) {
    sink.frame(bytes, payloadStart, stop, correlationId, true)
  }
  return stop
}

function wait(splitter: FrameSplitter, at: number, need: number): number {
  splitter.need = need
  return at
}

/** @returns `end`: all following bytes are ignored */
function close(splitter: FrameSplitter, sink: FrameSink, end: number, reason: string): number {
  splitter.closed = true
  sink.fatal(reason)
  return end
}

/** Starts to skip the `left` remaining bytes of a frame that is too large. */
function beginSkip(
  splitter: FrameSplitter,
  headerBytes: number,
  left: number,
  correlationId: number,
  frameBytes: number,
  frameBytesMax: number,
): void {
  splitter.skipLeft = left
  splitter.skipped = headerBytes
  splitter.skipCorrelationId = correlationId
  splitter.skipText = tooLarge(frameBytes, frameBytesMax)
}

function skip(splitter: FrameSplitter, at: number, end: number, sink: FrameSink): number {
  const bytes = Math.min(splitter.skipLeft, end - at)
  splitter.skipLeft -= bytes
  splitter.skipped += bytes
  if (splitter.skipLeft === 0) {
    splitter.skipped = 0
    sink.refuse(splitter.skipCorrelationId, splitter.skipText)
  }
  return at + bytes
}

function tooLarge(bytes: number, bytesMax: number): string {
  return `VALIDATION_ERROR: frame of ${bytes} bytes exceeds ${bytesMax}`
}

function isKeepalive(bytes: Uint8Array, start: number, length: number): boolean {
  if (length !== KEEPALIVE.length) return false
  for (let i = 0; i < length; i++) if (bytes[start + i] !== KEEPALIVE[i]) return false
  return true
}

/** A little-endian u32. */
export function readU32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  )
}

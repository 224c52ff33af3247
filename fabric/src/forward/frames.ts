/**
 * Frames as the fabric sees them: measured, never decoded (docs/design/fabric.md#frames). A frame that is whole in its
 * chunk is passed on as a part of that chunk; only an unfinished one is collected in the reader's own buffer.
 *
 *   bare frame   FF · u32 correlation id · u32 n · n bytes of payload
 *   envelope     FE · u32 m · u8 s · s bytes of segment · u8 write flag · bare frame
 */

import { FRAME_HEADER_BYTES, MAGIC_ENVELOPE, MAGIC_FRAME, readU32 } from '@vacancy/shared/wire'

/** Magic, length and segment length of an envelope. */
const ENVELOPE_SEGMENT_AT = 6
const ENVELOPE_HEADER_BYTES = 5
/** Least content of an envelope: segment length, flag, and a bare frame without payload. */
const ENVELOPE_CONTENT_BYTES_MIN = 2 + FRAME_HEADER_BYTES
const COLLECTED_BYTES_MIN = 1024
/** A larger empty buffer is released, because many connections are idle. */
const COLLECTED_BYTES_IDLE_MAX = 64 * 1024
const NOTHING = Buffer.alloc(0)

export type FrameSink = {
  /**
   * A whole frame, [start, end) of `bytes`; `inner` is the offset of its bare frame, equal to `start` without an
   * envelope. The sink may change the bytes, and copies what it keeps: they are valid during this call only.
   */
  frame(bytes: Buffer, start: number, inner: number, end: number): void
  /** A frame to answer with an ERROR of this text. */
  refuse(correlationId: number, text: string): void
  /** Bytes between frames that were skipped. */
  skipped(bytes: number): void
  /** The stream cannot be read any further. Later bytes are ignored. */
  fatal(reason: string): void
}

export type FrameLimits = {
  /** Largest frame, header included. */
  readonly frameBytesMax: number
  /** A larger frame up to this size is skipped and refused, beyond it the stream ends. */
  readonly skipBytesMax: number
  /** The other side sends requests: envelopes are expected, and rubbish up to `rubbishBytesMax` is skipped. */
  readonly requests: boolean
  readonly rubbishBytesMax: number
}

export type FrameReader = ReturnType<typeof createFrameReader>

export function createFrameReader(limits: FrameLimits) {
  return {
    limits,
    /** The unfinished frame: the first `collectedBytes` of this buffer. */
    collected: NOTHING,
    collectedBytes: 0,
    /** Bytes of the unfinished frame that are needed to make progress. */
    need: 1,
    /** Of a refused frame: bytes still to come, its id and the text of the refusal. */
    skipLeft: 0,
    skipId: 0,
    skipText: '',
    rubbishBytes: 0,
    isClosed: false,
  }
}

/** Whether a frame has begun and is not whole yet. */
export function isMidFrame(reader: FrameReader): boolean {
  return reader.collectedBytes > 0 || reader.skipLeft > 0
}

/** Reads the next bytes of a stream. They are valid during this call only. */
export function readFrames(reader: FrameReader, chunk: Buffer, sink: FrameSink): void {
  let from = 0
  while (reader.collectedBytes > 0 && !reader.isClosed) {
    const missing = reader.need - reader.collectedBytes
    const to = Math.min(chunk.length, from + missing)
    collect(reader, chunk, from, to)
    from = to
    if (reader.collectedBytes < reader.need) return
    const bytes = reader.collected.subarray(0, reader.collectedBytes)
    const used = cut(reader, bytes, sink)
    // Nothing is used while only the header is whole; a part of it if rubbish came before a frame.
    if (used > 0) reader.collected.copyWithin(0, used, reader.collectedBytes)
    reader.collectedBytes -= used
  }
  if (reader.collected.length > COLLECTED_BYTES_IDLE_MAX && reader.collectedBytes === 0) reader.collected = NOTHING
  if (reader.isClosed || from === chunk.length) return
  const used = from + cut(reader, from === 0 ? chunk : chunk.subarray(from), sink)
  if (used < chunk.length && !reader.isClosed) collect(reader, chunk, used, chunk.length)
}

/** Appends to the unfinished frame. Its buffer grows with what has arrived, not with the length in a header. */
function collect(reader: FrameReader, chunk: Buffer, from: number, to: number): void {
  const bytes = reader.collectedBytes + to - from
  if (bytes > reader.collected.length) {
    const grown = Buffer.allocUnsafe(Math.max(COLLECTED_BYTES_MIN, bytes, Math.min(bytes * 2, reader.need)))
    reader.collected.copy(grown, 0, 0, reader.collectedBytes)
    reader.collected = grown
  }
  chunk.copy(reader.collected, reader.collectedBytes, from, to)
  reader.collectedBytes = bytes
}

/** @returns the offset up to which the bytes are used */
function cut(reader: FrameReader, bytes: Buffer, sink: FrameSink): number {
  let at = 0
  while (at < bytes.length && !reader.isClosed) {
    if (reader.skipLeft > 0) {
      at = skip(reader, bytes, at, sink)
      continue
    }
    const magic = bytes[at]
    const next =
      magic === MAGIC_FRAME
        ? cutBare(reader, bytes, at, sink)
        : magic === MAGIC_ENVELOPE && reader.limits.requests
          ? cutEnvelope(reader, bytes, at, sink)
          : skipRubbish(reader, bytes, at, sink)
    if (next === at) break
    at = next
  }
  return at
}

function cutBare(reader: FrameReader, bytes: Buffer, at: number, sink: FrameSink): number {
  if (bytes.length - at < FRAME_HEADER_BYTES) return wait(reader, at, FRAME_HEADER_BYTES)
  const frameBytes = FRAME_HEADER_BYTES + readU32(bytes, at + 5)
  if (frameBytes > reader.limits.frameBytesMax) {
    return refuseLarge(reader, bytes, at, at + FRAME_HEADER_BYTES, frameBytes, readU32(bytes, at + 1), sink)
  }
  if (bytes.length - at < frameBytes) return wait(reader, at, frameBytes)
  sink.frame(bytes, at, at, at + frameBytes)
  return at + frameBytes
}

function cutEnvelope(reader: FrameReader, bytes: Buffer, at: number, sink: FrameSink): number {
  const here = bytes.length - at
  if (here < ENVELOPE_SEGMENT_AT) return wait(reader, at, ENVELOPE_SEGMENT_AT)
  const contentBytes = readU32(bytes, at + 1)
  const segmentBytes = bytes[at + ENVELOPE_HEADER_BYTES] as number
  if (contentBytes < ENVELOPE_CONTENT_BYTES_MIN + segmentBytes) return skipRubbish(reader, bytes, at, sink)
  const inner = at + ENVELOPE_SEGMENT_AT + segmentBytes + 1
  if (bytes.length < inner + FRAME_HEADER_BYTES) return wait(reader, at, inner + FRAME_HEADER_BYTES - at)
  if (bytes[inner] !== MAGIC_FRAME) return skipRubbish(reader, bytes, at, sink)
  const id = readU32(bytes, inner + 1)
  const frameBytes = ENVELOPE_HEADER_BYTES + contentBytes
  if (frameBytes > reader.limits.frameBytesMax) {
    return refuseLarge(reader, bytes, at, inner + FRAME_HEADER_BYTES, frameBytes, id, sink)
  }
  if (here < frameBytes) return wait(reader, at, frameBytes)
  const end = at + frameBytes
  if (readU32(bytes, inner + 5) !== end - inner - FRAME_HEADER_BYTES) {
    sink.refuse(id, 'PARSE_ERROR: the lengths of envelope and frame do not add up')
  } else sink.frame(bytes, at, inner, end)
  return end
}

function wait(reader: FrameReader, at: number, need: number): number {
  reader.need = need
  return at
}

/** Skips the rest of a frame that is too large; its header ends at `from`. */
function refuseLarge(
  reader: FrameReader,
  bytes: Buffer,
  at: number,
  from: number,
  frameBytes: number,
  id: number,
  sink: FrameSink,
): number {
  if (frameBytes > reader.limits.skipBytesMax) return end(reader, bytes, `a frame of ${frameBytes} bytes`, sink)
  reader.skipLeft = at + frameBytes - from
  reader.skipId = id
  reader.skipText = `VALIDATION_ERROR: frame of ${frameBytes} bytes exceeds ${reader.limits.frameBytesMax}`
  return reader.skipLeft === 0 ? skip(reader, bytes, from, sink) : from
}

function skip(reader: FrameReader, bytes: Buffer, at: number, sink: FrameSink): number {
  const skipped = Math.min(reader.skipLeft, bytes.length - at)
  reader.skipLeft -= skipped
  if (reader.skipLeft === 0) sink.refuse(reader.skipId, reader.skipText)
  return at + skipped
}

/** Skips to the next envelope, as existing routers do. */
function skipRubbish(reader: FrameReader, bytes: Buffer, at: number, sink: FrameSink): number {
  if (!reader.limits.requests) return end(reader, bytes, `a reply begins with byte ${bytes[at]}`, sink)
  const next = bytes.indexOf(MAGIC_ENVELOPE, at + 1)
  const to = next < 0 ? bytes.length : next
  reader.rubbishBytes += to - at
  sink.skipped(to - at)
  if (reader.rubbishBytes > reader.limits.rubbishBytesMax) {
    return end(reader, bytes, `${reader.rubbishBytes} bytes between frames`, sink)
  }
  return to
}

/** Ends the stream. @returns the end of the bytes */
function end(reader: FrameReader, bytes: Buffer, reason: string, sink: FrameSink): number {
  reader.isClosed = true
  sink.fatal(reason)
  return bytes.length
}

/** Writes the correlation id of the bare frame at `inner`. */
export function writeId(bytes: Uint8Array, inner: number, id: number): void {
  bytes[inner + 1] = id
  bytes[inner + 2] = id >>> 8
  bytes[inner + 3] = id >>> 16
  bytes[inner + 4] = id >>> 24
}

/** The bytes of an envelope's segment. */
export function segmentOf(bytes: Buffer, start: number): string {
  const from = start + ENVELOPE_SEGMENT_AT
  return bytes.toString('utf8', from, from + (bytes[start + ENVELOPE_HEADER_BYTES] as number))
}

/** The write flag of the envelope that ends in the bare frame at `inner`. */
export function flagOf(bytes: Buffer, inner: number): boolean {
  return bytes[inner - 1] === 1
}

/** The command name of a request; '' when the payload is too short for one. */
export function commandOf(bytes: Buffer, inner: number, end: number): string {
  const at = inner + FRAME_HEADER_BYTES
  const length = bytes[at]
  return length === undefined || at + 1 + length > end ? '' : bytes.toString('latin1', at + 1, at + 1 + length)
}

/** First field of a request key: the session. */
const SESSION_FIELD_ID = 0x8010

/** Whether a request carries a request key, so that the engine executes it once however often it arrives. */
export function hasRequestKey(bytes: Buffer, inner: number, end: number): boolean {
  let at = inner + FRAME_HEADER_BYTES
  at += 1 + (bytes[at] ?? 0)
  if (at + 2 > end) return false
  const fields = bytes.readUInt16LE(at)
  at += 2
  for (let i = 0; i < fields && at + 7 <= end; i++) {
    if (bytes.readUInt16LE(at) === SESSION_FIELD_ID) return true
    at += 7 + readU32(bytes, at + 3)
  }
  return false
}

const ERROR = 'ERROR'
/** Offsets from the start of an ERROR reply's frame to its first field's type, length and data. */
const ERROR_TYPE_AT = FRAME_HEADER_BYTES + 1 + ERROR.length + 2 + 2
const ERROR_DATA_AT = ERROR_TYPE_AT + 5
/** Whole frame of a reply with a bare three-digit code. */
const CODE_FRAME_BYTES = ERROR_DATA_AT + 3

/**
 * The numeric code of an ERROR reply, 0 for any other reply. The malformed frame of existing routers and bridges is
 * read as well: its field claims 4 bytes, and 7 follow, the last three of them the digits.
 */
export function codeOfReply(bytes: Buffer, inner: number, end: number): number {
  if (bytes[inner + FRAME_HEADER_BYTES] !== ERROR.length) return 0
  const size = end - inner
  const isBare = size === CODE_FRAME_BYTES && readU32(bytes, inner + ERROR_TYPE_AT + 1) === 3
  const isMalformed = size === CODE_FRAME_BYTES + 4 && readU32(bytes, inner + ERROR_TYPE_AT + 1) === 4
  if (!isBare && !isMalformed) return 0
  if (bytes.toString('latin1', inner + FRAME_HEADER_BYTES + 1, inner + FRAME_HEADER_BYTES + 6) !== ERROR) return 0
  if (bytes[inner + ERROR_TYPE_AT] !== 1) return 0
  let code = 0
  for (let at = end - 3; at < end; at++) {
    const digit = (bytes[at] as number) - 0x30
    if (digit < 0 || digit > 9) return 0
    code = code * 10 + digit
  }
  return code
}

/** Errors of a request that its receiver cannot read. */
const REFUSED_INPUT = ['VALIDATION_ERROR', 'PARSE_ERROR'].map((code) => Buffer.from(code, 'latin1'))

/** The text of an ERROR reply that refuses the input; '' for any other reply. */
export function refusedInput(frame: Buffer): string {
  if (frame[FRAME_HEADER_BYTES] !== ERROR.length) return ''
  const text = frame.subarray(ERROR_DATA_AT)
  return REFUSED_INPUT.some((code) => text.subarray(0, code.length).equals(code)) ? text.toString('utf8') : ''
}

/** An ERROR reply. A numeric code is its whole text. */
export function errorFrame(id: number, text: string): Buffer {
  const data = Buffer.from(text, 'utf8')
  const frame = Buffer.alloc(ERROR_DATA_AT + data.length)
  frame[0] = MAGIC_FRAME
  writeId(frame, 0, id)
  frame.writeUInt32LE(frame.length - FRAME_HEADER_BYTES, 5)
  frame[FRAME_HEADER_BYTES] = ERROR.length
  frame.write(ERROR, FRAME_HEADER_BYTES + 1, 'latin1')
  frame.writeUInt16LE(1, FRAME_HEADER_BYTES + 6)
  frame.writeUInt16LE(1, FRAME_HEADER_BYTES + 8)
  frame[ERROR_TYPE_AT] = 1
  frame.writeUInt32LE(data.length, ERROR_TYPE_AT + 1)
  data.copy(frame, ERROR_DATA_AT)
  return frame
}

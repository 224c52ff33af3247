/**
 * Finds the frames in a stream of bytes without looking into them: a load generator has no time to decode.
 *
 * Bare frames only (docs/design/protocol.md#bare-frame): magic, correlation id, payload length, payload. The first byte
 * of a reply's payload is the length of its status, 7 for SUCCESS and 5 for ERROR; so ten bytes say all there is to
 * know.
 */
const MAGIC = 0xff
const HEAD_BYTES = 10
const ERROR_STATUS_BYTES = 5
/**
 * The text of an error begins behind its status, the field count and the head of its one field
 * (docs/design/protocol.md#errors).
 */
const ERROR_TEXT_OFFSET = 1 + ERROR_STATUS_BYTES + 2 + 7
/** Texts end at 1,024 bytes (docs/design/protocol.md#errors); a longer "error" is cut, not kept. */
const ERROR_BYTES_MAX = ERROR_TEXT_OFFSET + 1024

export type FrameScanner = {
  /** Bytes of the current payload that have not been received. */
  left: number
  correlationId: number
  isError: boolean
  /** A header that was split between chunks, and how many of its bytes were received. */
  head: Uint8Array
  headBytes: number
  /** The part of an error's payload that has been received. */
  error: number[]
}

export function createFrameScanner(): FrameScanner {
  return { left: 0, correlationId: 0, isError: false, head: new Uint8Array(HEAD_BYTES), headBytes: 0, error: [] }
}

/** Called with each complete frame. */
export type OnFrame = (correlationId: number, isError: boolean) => void

/** Goes through the next `end` bytes of the stream. False when they are no frames: the connection is of no use any more. */
export function scanFrames(scanner: FrameScanner, bytes: Uint8Array, end: number, onFrame: OnFrame): boolean {
  let at = 0
  while (at < end) {
    if (scanner.left > 0) {
      const taken = Math.min(scanner.left, end - at)
      if (scanner.isError) keepError(scanner, bytes, at, at + taken)
      at += taken
      scanner.left -= taken
    } else if (scanner.headBytes === 0 && end - at >= HEAD_BYTES) {
      if (!readHead(scanner, bytes, at)) return false
      at += HEAD_BYTES
    } else {
      scanner.head[scanner.headBytes] = bytes[at] ?? 0
      scanner.headBytes += 1
      at += 1
      if (scanner.headBytes < HEAD_BYTES) continue
      scanner.headBytes = 0
      if (!readHead(scanner, scanner.head, 0)) return false
    }
    if (scanner.left === 0) onFrame(scanner.correlationId, scanner.isError)
  }
  return true
}

/** The text of the error frame that was just reported. */
export function errorText(scanner: FrameScanner): string {
  // The first payload byte was part of the head.
  return Buffer.from(scanner.error.slice(ERROR_TEXT_OFFSET - 1)).toString('utf8')
}

function readHead(scanner: FrameScanner, bytes: Uint8Array, at: number): boolean {
  scanner.correlationId = u32(bytes, at + 1)
  const payloadBytes = u32(bytes, at + 5)
  scanner.left = payloadBytes - 1
  scanner.isError = bytes[at + 9] === ERROR_STATUS_BYTES
  scanner.error.length = 0
  return bytes[at] === MAGIC && payloadBytes > 0
}

function keepError(scanner: FrameScanner, bytes: Uint8Array, start: number, end: number): void {
  for (let at = start; at < end && scanner.error.length < ERROR_BYTES_MAX; at++) scanner.error.push(bytes[at] ?? 0)
}

function u32(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16)
  return (low | ((bytes[at + 3] ?? 0) << 24)) >>> 0
}

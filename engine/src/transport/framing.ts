/**
 * Frames in a byte stream between nodes (docs/design/protocol.md#peer-frames):
 *
 *   u32 length of the body · u32 CRC32C of the body · body          numbers are little endian
 *
 * A length of zero is a keep-alive. A length beyond the bound or a wrong checksum ends the stream, because no later
 * byte can be trusted to begin a frame.
 */

import { assert } from '@vacancy/shared'
import { crc32c } from '../wal/crc32c.ts'

export const FRAMING_BYTES = 8
/** A body up to this size is copied behind its length: one write and one record instead of two. */
const JOINED_BYTES_MAX = 16_384

export type FramingFault = 'length' | 'checksum'

/** The unfinished frame of one stream. */
export type Framing = {
  /** Largest body accepted; may be raised between frames. */
  bodyBytesMax: number
  readonly head: Uint8Array
  readonly headView: DataView
  headBytes: number
  /** Undefined while the head is not complete. */
  body: Uint8Array | undefined
  bodyBytes: number
}

export function createFraming(bodyBytesMax: number): Framing {
  const head = new Uint8Array(FRAMING_BYTES)
  const headView = new DataView(head.buffer)
  return { bodyBytesMax, head, headView, headBytes: 0, body: undefined, bodyBytes: 0 }
}

/**
 * Processes the next bytes of a stream.
 *
 * @param onBody receives each complete body in its own array; false stops
 * @returns '' or why the stream cannot be read any further
 */
export function takeChunk(
  framing: Framing,
  chunk: Uint8Array,
  onBody: (body: Uint8Array) => boolean,
): '' | FramingFault {
  let at = 0
  while (at < chunk.length) {
    if (framing.body === undefined) {
      const part = chunk.subarray(at, at + FRAMING_BYTES - framing.headBytes)
      framing.head.set(part, framing.headBytes)
      framing.headBytes += part.length
      at += part.length
      if (framing.headBytes < FRAMING_BYTES) return ''
      const length = framing.headView.getUint32(0, true)
      if (length > framing.bodyBytesMax) return 'length'
      framing.body = new Uint8Array(length)
      framing.bodyBytes = 0
    }
    const { body } = framing
    const part = chunk.subarray(at, at + body.length - framing.bodyBytes)
    body.set(part, framing.bodyBytes)
    framing.bodyBytes += part.length
    at += part.length
    if (framing.bodyBytes < body.length) return ''
    framing.body = undefined
    framing.headBytes = 0
    if (crc32c(body, 0, body.length) !== framing.headView.getUint32(4, true)) return 'checksum'
    if (!onBody(body)) return ''
  }
  return ''
}

/** The byte arrays to write for a body, in order. */
export function frameParts(body: Uint8Array): readonly Uint8Array[] {
  const isJoined = body.length <= JOINED_BYTES_MAX
  const head = new Uint8Array(FRAMING_BYTES + (isJoined ? body.length : 0))
  const view = new DataView(head.buffer)
  assert(body.length < 2 ** 32, 'a length has 32 bits')
  view.setUint32(0, body.length, true)
  view.setUint32(4, crc32c(body, 0, body.length), true)
  if (!isJoined) return [head, body]
  head.set(body, FRAMING_BYTES)
  return [head]
}

/** A keep-alive frame. */
export const KEEP_ALIVE = frameParts(new Uint8Array(0))[0] as Uint8Array

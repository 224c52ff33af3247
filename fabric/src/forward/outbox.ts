/** Bytes towards one connection: collected during a turn of the event loop, and handed over with one write. */

import type { Wire } from './world.ts'

/** Parts up to this total are copied into one buffer; larger ones are gathered by the system without a copy. */
const COPIED_BYTES_MAX = 16 * 1024

export type Outbox = {
  readonly wire: Wire
  parts: Buffer[]
  bytes: number
}

export function createOutbox(wire: Wire): Outbox {
  return { wire, parts: [], bytes: 0 }
}

/** Adds bytes. The caller does not change them any more. @returns whether they are the first of this turn */
export function addPart(outbox: Outbox, part: Buffer): boolean {
  outbox.parts.push(part)
  outbox.bytes += part.length
  return outbox.parts.length === 1
}

/** Bytes that have not left this process. */
export function queuedBytes(outbox: Outbox): number {
  return outbox.bytes + outbox.wire.writableLength
}

/** Hands the collected bytes to the connection. @returns their number */
export function flushOutbox(outbox: Outbox): number {
  const { wire, parts, bytes } = outbox
  if (parts.length === 0) return 0
  outbox.parts = []
  outbox.bytes = 0
  if (parts.length === 1) wire.write(parts[0] as Buffer)
  else if (bytes <= COPIED_BYTES_MAX) wire.write(Buffer.concat(parts, bytes))
  else {
    wire.cork()
    for (const part of parts) wire.write(part)
    wire.uncork()
  }
  return bytes
}

/**
 * How batches look between a serving thread and the replica (pipe.ts): u32 kind · u32 length · bytes. Writes are
 * an ArrayBuffer (writes.ts), reads a Float64Array (reads.ts), reads of stays a Uint8Array.
 */

import { type Bell, createBell, createPipes, type Encoding, type PipeEnd } from '../pipe.ts'
import { createDirectReplies } from './direct-replies.ts'

/** One end of the pipes between a serving thread and the replica. */
export type ServingEnd = PipeEnd & { readonly direct: SharedArrayBuffer }

/** @returns the ends for the serving thread and for the replica, which has this bell */
export function createServingPipes(replicaBell: Bell): readonly [ServingEnd, ServingEnd] {
  const direct = createDirectReplies()
  const [serving, replica] = createPipes(createBell(), replicaBell)
  return [
    { ...serving, direct },
    { ...replica, direct },
  ]
}

export type Requests = ArrayBuffer | Float64Array<ArrayBuffer> | Uint8Array<ArrayBuffer>

const KIND = { writes: 0, reads: 1, stays: 2 } as const
const HEADER_BYTES = 8

function kindOf(batch: Requests): number {
  if (batch instanceof ArrayBuffer) return KIND.writes
  return batch instanceof Float64Array ? KIND.reads : KIND.stays
}

const length = ({ byteLength }: Requests) => HEADER_BYTES + Math.ceil(byteLength / 8) * 8

function write(batch: Requests, view: DataView, bytes: Uint8Array, at: number): void {
  const kind = kindOf(batch)
  view.setUint32(at, kind, true)
  view.setUint32(at + 4, batch.byteLength, true)
  bytes.set(new Uint8Array(batch instanceof ArrayBuffer ? batch : batch.buffer), at + HEADER_BYTES)
}

function bytesAt(view: DataView, bytes: Uint8Array, at: number): ArrayBuffer {
  const start = at + HEADER_BYTES
  const copy = new Uint8Array(view.getUint32(at + 4, true))
  copy.set(bytes.subarray(start, start + copy.length))
  return copy.buffer
}

export const REQUESTS: Encoding<Requests> = {
  length,
  write,
  read(view, bytes, at) {
    const batch = bytesAt(view, bytes, at)
    switch (view.getUint32(at, true)) {
      case KIND.writes:
        return batch
      case KIND.reads:
        return new Float64Array(batch)
      default:
        return new Uint8Array(batch)
    }
  },
}

/** Answers to all of them. */
export const ANSWERS: Encoding<ArrayBuffer> = { length, write, read: bytesAt }

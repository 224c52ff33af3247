/**
 * The trace that a request carries (docs/design/protocol.md#traces). It passes like every other field. A server that does
 * not know the field refuses the request, and gets it again without: the rest means the same.
 */

import { parseTraceparent, type TraceContext } from '@vacancy/shared'
import {
  addToCount,
  ENVELOPE_HEADER_BYTES,
  endsWithTrace,
  FRAME_HEADER_BYTES,
  TRACE_FIELD_BYTES,
  TRACE_FIELD_ID,
  traceAtEnd,
} from '@vacancy/shared/wire'
import { refusedInput } from './frames.ts'
import type { Hop, Request } from './state.ts'

/** For so long a hop gets no traces after it has refused one; then it may run another version. */
const REFUSED_MS = 60_000
/** How nodes of this project name a field that they do not know. */
const UNKNOWN_FIELD = `has no field ${TRACE_FIELD_ID}`

export function hasTrace({ frame }: Request): boolean {
  return endsWithTrace(frame, frame.length)
}

/** The trace of a request; undefined without one. */
export function traceOf(request: Request): TraceContext | undefined {
  const { frame } = request
  return hasTrace(request) ? parseTraceparent(traceAtEnd(frame, frame.length)) : undefined
}

/** The trace of a request, for logs; null without one. */
export function traceIdOf(request: Request): string | null {
  return traceOf(request)?.traceId ?? null
}

/** Before a request is handed to a hop. */
export function fitTrace(request: Request, hop: Hop, nowMs: number): void {
  if (hop.tracesRefusedUntilMs > nowMs) request.frame = withoutTrace(request.frame, request.inner)
}

/**
 * Whether a reply to a request with a trace may refuse that alone. The request has none then, and is to be sent again. A hop that has once
 * accepted one means something else, unless it names the field: behind a router are nodes of several versions.
 */
export function refusesTrace(request: Request, hop: Hop, reply: Buffer, nowMs: number): boolean {
  const text = refusedInput(reply)
  if (text === '') {
    hop.takesTraces = true
    return false
  }
  if (hop.takesTraces && !text.includes(UNKNOWN_FIELD)) return false
  hop.takesTraces = false
  hop.tracesRefusedUntilMs = nowMs + REFUSED_MS
  request.frame = withoutTrace(request.frame, request.inner)
  return true
}

/** @param inner offset of the bare frame */
function withoutTrace(frame: Buffer, inner: number): Buffer {
  if (!endsWithTrace(frame, frame.length)) return frame
  const plain = Buffer.from(frame.subarray(0, frame.length - TRACE_FIELD_BYTES))
  if (inner > 0) plain.writeUInt32LE(plain.length - ENVELOPE_HEADER_BYTES, 1)
  plain.writeUInt32LE(plain.length - inner - FRAME_HEADER_BYTES, inner + 5)
  addToCount(new DataView(plain.buffer, plain.byteOffset), inner + FRAME_HEADER_BYTES, -1)
  return plain
}

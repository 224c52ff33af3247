/**
 * Which trace a request belongs to, as the header `traceparent` carries it
 * (https://www.w3.org/TR/trace-context-2, section 3.2): `00-<trace id>-<id of the caller's span>-<flags>`.
 */

export type TraceContext = {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string
  /** Of the span that sent the request: 16 digits, not all zero. */
  readonly spanId: string
  /** The caller records this trace. */
  readonly isSampled: boolean
  /** The trace id was drawn at random, which a participant passes on. */
  readonly isRandom: boolean
}

/** Characters of a `traceparent` of version 00, the only one that is written. */
export const TRACEPARENT_CHARS = 55

const SHAPE = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)
const INVALID_VERSION = 'ff'
const SAMPLED = 1
const RANDOM = 2

/**
 * Reads a header. Of later versions the known part counts.
 *
 * @returns undefined for anything malformed, which is treated as absent
 */
export function parseTraceparent(text: string): TraceContext | undefined {
  const [, version, traceId = '', spanId = '', flags = '', rest] = SHAPE.exec(text) ?? []
  if (version === undefined || version === INVALID_VERSION || (version === '00' && rest !== undefined)) return undefined
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined
  const bits = Number.parseInt(flags, 16)
  return { traceId, spanId, isSampled: (bits & SAMPLED) !== 0, isRandom: (bits & RANDOM) !== 0 }
}

export function traceparentOf({ traceId, spanId, isSampled, isRandom }: TraceContext): string {
  return `00-${traceId}-${spanId}-0${(isSampled ? SAMPLED : 0) | (isRandom ? RANDOM : 0)}`
}

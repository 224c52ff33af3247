/**
 * The trace of a simulated run, as a hash and as its last events (docs/design/testing.md#simulation,
 * docs/design/testing.md#a-failing-seed).
 *
 * The hash covers (time, node, kind, digest) of every event: two runs of one seed are identical if and only if their
 * hashes are equal. Descriptions of events are only created when they are kept.
 */

const TRACE_KINDS = [
  'start',
  'stop',
  'exit',
  'timer',
  'frame',
  'lost',
  'open',
  'closed',
  'sync',
  'apply',
  'leader',
  'request',
  'answer',
  'fault',
  'snapshot',
  'change',
  'note',
] as const
export type TraceKind = (typeof TRACE_KINDS)[number]

const KIND_NUMBER = Object.fromEntries(TRACE_KINDS.map((kind, i) => [kind, i])) as Record<TraceKind, number>

export type Trace = {
  low: number
  high: number
  /** Number of events so far. */
  count: number
  /** The last descriptions, oldest first, if they are kept. */
  readonly lines: string[] | undefined
}

/** Maximum number of kept descriptions. */
const TRACE_LINES_MAX = 200_000

export function createTrace(keepsWords: boolean): Trace {
  return { low: 0x811c9dc5, high: 0x1b873593, count: 0, lines: keepsWords ? [] : undefined }
}

/**
 * Notes one event.
 *
 * @param digest 32 bits of its content
 * @param words returns its description, called only when descriptions are kept
 */
export function note(
  trace: Trace,
  nowUs: number,
  node: number,
  kind: TraceKind,
  digest: number,
  words?: () => string,
): void {
  trace.count++
  const mixed = Math.imul(trace.low ^ (nowUs | 0), 0x01000193) ^ (digest | 0)
  trace.low = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b) ^ (node * 32 + KIND_NUMBER[kind])
  trace.high = Math.imul(trace.high ^ trace.low ^ Math.floor(nowUs / 2 ** 32), 0xc2b2ae35) ^ (trace.high >>> 13)
  const { lines } = trace
  if (!lines) return
  if (lines.length >= TRACE_LINES_MAX) lines.splice(0, TRACE_LINES_MAX / 2)
  lines.push(`${(nowUs / 1000).toFixed(3)} ${node === 0 ? '-' : `n${node}`} ${kind}${words ? ` ${words()}` : ''}`)
}

/** The hash of the run, in 16 hex digits. */
export function traceHash({ low, high, count }: Trace): string {
  const hex = (value: number) => (value >>> 0).toString(16).padStart(8, '0')
  return `${hex(high)}${hex(low ^ count)}`
}

/** A 32-bit hash of some of the bytes: enough to distinguish two frames, and cheap. */
export function digestOf(bytes: Uint8Array): number {
  const { length } = bytes
  let hash = Math.imul(length ^ 0x9e3779b9, 0x85ebca6b)
  const step = length <= 96 ? 1 : Math.floor(length / 96)
  for (let at = 0; at < length; at += step) hash = Math.imul(hash ^ bytes[at], 0x01000193)
  return hash ^ (hash >>> 15)
}

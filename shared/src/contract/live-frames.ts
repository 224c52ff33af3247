/** Limits, frames and deltas of the live channel: the part that browsers run, without schemas. */

export const LIVE = {
  path: '/api/v1/live',
  frameBytesMax: 4_096,
  /** Topics that one connection may subscribe to. */
  topicsMax: 64,
  /** Deltas kept per topic, for clients that reconnect. */
  keptMax: 1_000,
  framesPerSecond: 4,
  framesPerSecondFast: 10,
  unsentBytesMax: 1_048_576,
  pingMs: 5_000,
} as const

/** Prefixes that are followed by a name: `shard:s1`, `node:s1/n1`, `op:{id}`, `import:{id}`. */
export const TOPIC = /^(?:summary|topology|ops|audit|imports|(?:shard|node|op|import):[^\s]{1,260})$/

/** A change of a topic's value: a path and its new value. Without a value the key is removed. */
export type LiveOp = readonly [path: readonly (string | number)[], value?: unknown]

export type ServerFrame =
  | { readonly t: 'hello'; readonly server: string; readonly now: string }
  | { readonly t: 'snap'; readonly topic: string; readonly seq: number; readonly at: string; readonly data: unknown }
  | {
      readonly t: 'delta'
      readonly topic: string
      readonly seq: number
      readonly at: string
      readonly ops: readonly LiveOp[]
    }
  | { readonly t: 'pong'; readonly n: number; readonly now: string }
  | { readonly t: 'err'; readonly id?: number; readonly code: string; readonly message: string }
  | { readonly t: 'bye'; readonly code: string; readonly retryMs: number }

/**
 * Applies a delta to a value without changing it. Parts that the ops do not touch are shared with the old value, so
 * that equal parts stay identical.
 */
export function applyOps(value: unknown, ops: readonly LiveOp[]): unknown {
  return ops.reduce((before, [path, ...after]) => replaceAt(before, path, 0, after), value)
}

function replaceAt(value: unknown, path: LiveOp[0], depth: number, after: readonly unknown[]): unknown {
  const key = path[depth]
  if (key === undefined) return after[0]
  const isLast = depth === path.length - 1
  if (Array.isArray(value)) {
    const copy = value.slice()
    const at = Number(key)
    if (isLast && after.length === 0) copy.splice(at, 1)
    else copy[at] = replaceAt(copy[at], path, depth + 1, after)
    return copy
  }
  const copy: Record<string, unknown> = { ...(value as Record<string, unknown> | undefined) }
  if (isLast && after.length === 0) delete copy[key]
  else setOwn(copy, key, replaceAt(copy[key], path, depth + 1, after))
  return copy
}

/** Keys include names of nodes and segments: assigning to one named `__proto__` would not create a key. */
function setOwn(target: object, key: string | number, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
}

/**
 * The difference between two JSON values. Arrays of equal length are compared element by element, others replaced as
 * a whole.
 */
export function diffValues(before: unknown, after: unknown, path: LiveOp[0] = [], ops: LiveOp[] = []): LiveOp[] {
  if (Object.is(before, after)) return ops
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [at, value] of after.entries()) diffValues(before[at], value, [...path, at], ops)
    return ops
  }
  if (isObject(before) && isObject(after)) {
    for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) ops.push([[...path, key]])
    for (const [key, value] of Object.entries(after)) {
      if (Object.hasOwn(before, key)) diffValues(before[key], value, [...path, key], ops)
      else ops.push([[...path, key], value])
    }
    return ops
  }
  ops.push([path, after])
  return ops
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

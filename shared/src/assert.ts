/** Invariants. A broken one is a bug of ours: the process goes down with what it knows (exit code 72). */

export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

/** Ends in an AssertionError unless `condition` holds. `says` states the rule, in the positive. */
export function assert(condition: unknown, says: string): asserts condition {
  if (!condition) throw new AssertionError(says)
}

/** The end of a switch over a union: compiles only when every member has its case. */
export function unreachable(value: never): never {
  throw new AssertionError(`unexpected value: ${String(value)}`)
}

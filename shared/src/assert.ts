/** Invariants. A broken one is a bug in Vacancy: the process exits with code 72 and the details. */

export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

/** Throws an AssertionError unless `condition` holds. `message` states the rule in the positive. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message)
}

/** The default branch of a switch over a union: compiles only when every member has its case. */
export function unreachable(value: never): never {
  throw new AssertionError(`unexpected value: ${String(value)}`)
}

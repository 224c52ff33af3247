/** An invariant does not hold: a bug of ours. The process goes down with what it knows (exit code 72). */
export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

/** @param says what must hold, stated positively */
export function assert(condition: unknown, says: string): asserts condition {
  if (!condition) throw new AssertionError(says)
}

/** Ends a switch over a union: does not compile while a member is missing. */
export function unreachable(value: never): never {
  throw new AssertionError(`unexpected value ${String(value)}`)
}

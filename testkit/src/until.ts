/** Waiting for a condition: tests check it again and again instead of sleeping. */

type Check<T> = () => Promise<T | undefined | false> | T | undefined | false
/** A program whose output explains why a condition does not hold. */
type Printing = { readonly name?: string; readonly id?: string; readonly output: () => string }

const WITHIN_MS = 45_000
const INTERVAL_MS = 20
const OUTPUT_CHARS = 6_000

/**
 * Resolves with the first result of `check` that is neither undefined nor false. An error of `check` counts as not yet:
 * a program that is starting, or was killed, does not answer.
 *
 * @throws Error with the last error of `check` as its cause
 */
export function until<T>(what: string, check: Check<T>, withinMs = WITHIN_MS): Promise<T> {
  return happens(what, [], check, withinMs)
}

/** Like `until`; the error contains the last output of the programs. */
export async function happens<T>(
  what: string,
  programs: readonly Printing[],
  check: Check<T>,
  withinMs = WITHIN_MS,
): Promise<T> {
  let cause: unknown
  for (const end = performance.now() + withinMs; performance.now() < end; ) {
    try {
      const found = await check()
      if (found !== undefined && found !== false) return found
      cause = undefined
    } catch (error) {
      cause = error
    }
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
  }
  const outputs = programs.map(({ name, id, output }) => `\n--- ${name ?? id ?? ''}\n${tailOf(output())}`)
  throw new Error(`not within ${withinMs / 1000} s: ${what}${outputs.join('')}`, { cause })
}

function tailOf(text: string): string {
  return text.length > OUTPUT_CHARS ? `…${text.slice(-OUTPUT_CHARS)}` : text
}

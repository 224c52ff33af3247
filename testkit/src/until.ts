/** Waiting for a condition: tests check it again and again instead of sleeping. */

type Check<T> = () => Promise<T | undefined | false> | T | undefined | false
/** A program whose output explains why a condition does not hold. */
type Printing = { readonly name?: string; readonly id?: string; readonly output: () => string }

type EventuallyOptions = { readonly timeout?: number; readonly interval?: number | ((waitedMs: number) => number) }

const WITHIN_MS = 90_000
const EVENTUALLY_MS = 20_000
const INTERVAL_MS = 20
/** Of a long wait. Checks of a whole shard need much of a core, which its programs need themselves. */
const INTERVAL_MS_MAX = 150
const INTERVAL_SHARE = 0.05
const OUTPUT_CHARS = 6_000
const NOT_YET = new Error('not yet')

/** The pause until the next check: a share of the time waited so far. */
function intervalMs(waitedMs: number): number {
  return Math.max(INTERVAL_MS, Math.min(INTERVAL_MS_MAX, INTERVAL_SHARE * waitedMs))
}

/**
 * Resolves with the first result of `check` that is not undefined, null or false. An error of `check` counts as not yet:
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
  try {
    return await eventually(
      async () => {
        const found = await check()
        if (found === undefined || found === null || found === false) throw NOT_YET
        return found
      },
      { timeout: withinMs, interval: intervalMs },
    )
  } catch (error) {
    cause = error === NOT_YET ? undefined : error
  }
  const outputs = programs.map(({ name, id, output }) => `\n--- ${name ?? id ?? ''}\n${tailOf(output())}`)
  throw new Error(`not within ${withinMs / 1000} s: ${what}${outputs.join('')}`, { cause })
}

function tailOf(text: string): string {
  return text.length > OUTPUT_CHARS ? `…${text.slice(-OUTPUT_CHARS)}` : text
}

/**
 * Resolves with the result of `check` as soon as it does not throw: for assertions about programs and sockets.
 * `vi.waitFor` gives up after 1 s, which a busy machine may need.
 *
 * @param timeout ms
 * @param interval ms until the next check, after so many
 * @throws the last error of `check`
 */
export async function eventually<T>(
  check: () => Promise<T> | T,
  { timeout = EVENTUALLY_MS, interval = intervalMs }: EventuallyOptions = {},
): Promise<T> {
  const startMs = performance.now()
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() - startMs >= timeout) throw error
    }
    const pauseMs = typeof interval === 'number' ? interval : interval(performance.now() - startMs)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

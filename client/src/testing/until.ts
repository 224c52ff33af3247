const WITHIN_MS = 10_000

/**
 * Resolves once the condition holds. Checked on every turn of the event loop.
 *
 * @throws Error with the text of the condition
 */
export async function until(condition: () => boolean): Promise<void> {
  const startMs = performance.now()
  while (!condition()) {
    if (performance.now() >= startMs + WITHIN_MS) throw new Error(`not within ${WITHIN_MS / 1000} s: ${condition}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

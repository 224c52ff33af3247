/** Resolves once the condition holds; looks again whenever the event loop has gone round. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

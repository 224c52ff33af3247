/** Values that are expensive to make and may be a little old: made once for all who ask meanwhile. */
import type { Clock } from '@vacancy/shared'

export type Cache<T> = {
  /** The kept value, or a new one. A failure is told to those who wait for it, and not kept. */
  get(key: string, make: () => Promise<T>): Promise<T>
}

export function createCache<T>(clock: Clock, limits: { readonly keepMs: number; readonly max: number }): Cache<T> {
  const kept = new Map<string, { readonly value: Promise<T>; readonly madeMs: number }>()
  return {
    get(key, make) {
      const nowMs = clock.monotonicMs()
      const found = kept.get(key)
      if (found && nowMs - found.madeMs < limits.keepMs) return found.value
      kept.delete(key)
      const [oldest] = kept.keys()
      if (kept.size >= limits.max && oldest !== undefined) kept.delete(oldest)
      const value = make()
      const entry = { value, madeMs: nowMs }
      kept.set(key, entry)
      value.catch(() => {
        if (kept.get(key) === entry) kept.delete(key)
      })
      return value
    },
  }
}

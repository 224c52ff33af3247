/** A cache of expensive values that may be slightly old. Concurrent requests share one computation. */
import type { Clock } from '@vacancy/shared'

export type Cache<T> = {
  /** The cached value, or a new one. A failure is reported to all waiting callers and not cached. */
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

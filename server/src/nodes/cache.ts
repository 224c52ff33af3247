/** A cache of expensive values that may be slightly old. Concurrent requests share one computation. */
import type { Clock } from '@vacancy/shared'
import { LRUCache } from 'lru-cache'

export type Cache<T> = {
  /** The cached value, or a new one. A failure is reported to all waiting callers and not cached. */
  get(key: string, make: () => Promise<T>): Promise<T>
}

export function createCache<T>(clock: Clock, limits: { readonly keepMs: number; readonly max: number }): Cache<T> {
  const cache = new LRUCache<string, { readonly value: T }, () => Promise<T>>({
    max: limits.max,
    ttl: limits.keepMs,
    ttlResolution: 0,
    perf: { now: () => clock.monotonicMs() },
    fetchMethod: async (_key, _stale, { context }) => ({ value: await context() }),
  })
  return { get: async (key, make) => (await cache.forceFetch(key, { context: make })).value }
}

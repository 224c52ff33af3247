/**
 * The resolver client of routers and bridges: ids to hosts, from the operator's resolver
 * (docs/design/http.md#resolver). The cache and its rules are shared with the nodes (shared/src/node/resolver-client.ts).
 */

import type { Clock, Schedule } from '@vacancy/shared'
import type { ResolvedAddress } from '@vacancy/shared/contract'
import {
  closeResolverCache,
  createResolverCache,
  type HttpCaller,
  type HttpResult,
  knownAddress,
  type Log,
  openHttpCaller,
  parseResolverUrl,
  RESOLVER_LIMITS,
  type Resolution,
  type ResolverCounters,
  type ResolverKey,
  resolveAddress,
} from '@vacancy/shared/node'

/** What is looked up. */
export type ResolveTarget =
  | { readonly kind: 'router'; readonly id: string }
  | { readonly kind: 'bridge'; readonly id: string }
  | { readonly kind: 'node'; readonly shard: string; readonly id: string }

export type Resolver = {
  /** The address for a new connection. Never rejects. Takes up to 6.3 s; from the cache, none. */
  find(target: ResolveTarget): Promise<Resolution>
  /** After a failed connect or a wrong peer: looks up again, at most once a second per id. Never rejects. */
  again(target: ResolveTarget): Promise<Resolution>
  /** The address of the last good answer, without a lookup. */
  known(target: ResolveTarget): ResolvedAddress | undefined
  /** Called when an answer differs from the last good one of this id. @returns ends it */
  onChange(callback: (target: ResolveTarget, address: ResolvedAddress) => void): () => void
  counters(): ResolverCounters
  /** Cancels running lookups. */
  stop(): void
}

export type ResolverOptions = {
  /** `--resolver-addr`: `host:port`, or a URL with or without a path. */
  readonly addr: string
  /** Its first line is sent as bearer token; read again when it changes. */
  readonly tokenFile?: string | undefined
  /** Authorities for `https://`, PEM; default: those of the system. */
  readonly caFile?: string | undefined
  readonly clock: Clock
  readonly schedule: Schedule
  readonly log: Log
  /** Called with the duration of each request, seconds. */
  readonly onRequest?: (seconds: number) => void
}

/** Ids remembered at most: hops of all zones, or nodes of a shard. */
const ENTRIES_MAX = 10_000
/** An unknown id may be answered with a page of any length. A longer answer for a known id is refused by the reader. */
const ANSWER_BYTES_MAX = 65_536

/** @throws VacancyError usage_error, invalid_tokens, invalid_tls */
export function openResolver(options: ResolverOptions): Resolver {
  const { clock, schedule, log } = options
  const url = parseResolverUrl(options.addr)
  const caller = openHttpCaller({ tokenFile: options.tokenFile, caFile: options.caFile, name: 'resolver', log })
  const callbacks = new Set<(target: ResolveTarget, address: ResolvedAddress) => void>()
  const cache = createResolverCache({
    clock,
    schedule,
    log,
    entriesMax: ENTRIES_MAX,
    call: async (path, signal) => {
      const startMs = clock.monotonicMs()
      const result = await call(caller, url, path, signal)
      options.onRequest?.((clock.monotonicMs() - startMs) / 1000)
      return result
    },
    onChange: ({ fields }, address) => {
      for (const callback of callbacks) callback(fields as ResolveTarget, address)
    },
  })
  return {
    find: (target) => resolveAddress(cache, keyOf(target)),
    again: (target) => resolveAddress(cache, keyOf(target), true),
    known: (target) => knownAddress(cache, keyOf(target).path),
    onChange(callback) {
      callbacks.add(callback)
      return () => void callbacks.delete(callback)
    },
    counters: () => ({ ...cache.counters }),
    stop() {
      closeResolverCache(cache)
      caller.close()
    },
  }
}

function keyOf(target: ResolveTarget): ResolverKey {
  return { path: resolverPath(target), fields: target }
}

/** The path of a lookup. */
export function resolverPath(target: ResolveTarget): string {
  const id = encodeURIComponent(target.id)
  switch (target.kind) {
    case 'router':
      return `/routers/${id}`
    case 'bridge':
      return `/bridges/${id}`
    case 'node':
      return `/shards/${encodeURIComponent(target.shard)}/nodes/${id}`
  }
}

/** The cache has its own timeout and aborts the signal. The one of the caller is only a second guard. */
function call(caller: HttpCaller, url: string, path: string, signal: AbortSignal): Promise<HttpResult> {
  return new Promise((resolve) => {
    const end = (result: HttpResult): void => {
      signal.removeEventListener('abort', abort)
      resolve(result)
    }
    const request = {
      method: 'GET',
      path,
      timeoutMs: 2 * RESOLVER_LIMITS.requestMs,
      bytesMax: ANSWER_BYTES_MAX,
    } as const
    const cancel = caller.request(url, request, end)
    const abort = (): void => {
      cancel()
      end({ kind: 'failed', reason: 'cancelled' })
    }
    signal.addEventListener('abort', abort)
  })
}

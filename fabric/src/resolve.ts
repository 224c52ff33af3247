/**
 * The resolver client of routers and bridges: ids to hosts, from the operator's resolver
 * (docs/design/http.md#resolver). The cache and its rules are shared with the nodes (shared/src/node/resolver-client.ts).
 */

import type { Clock, Schedule } from '@vacancy/shared'
import type { ResolvedAddress } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'

/** What is looked up. */
export type ResolveTarget =
  | { readonly kind: 'router'; readonly id: string }
  | { readonly kind: 'bridge'; readonly id: string }
  | { readonly kind: 'node'; readonly shard: string; readonly id: string }

/** `unknown`: the resolver has no such id. `failed`: it did not respond, and no answer of the last 10 minutes exists. */
export type Resolution =
  | { readonly kind: 'found'; readonly address: ResolvedAddress }
  | { readonly kind: 'unknown'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string }

export type ResolverCounters = {
  readonly requests: number
  /** Look-ups whose tries all failed. */
  readonly failed: number
  /** Look-ups of ids that the resolver does not know. */
  readonly unknown: number
  /** Look-ups that returned an address that could not be renewed. */
  readonly stale: number
}

export type Resolver = {
  /** The address for a new connection. Never rejects. Takes up to 6.3 s; from the cache, none. */
  find(target: ResolveTarget): Promise<Resolution>
  /** After a failed connect or a wrong peer: looks up again, at most once a second per id. Never rejects. */
  again(target: ResolveTarget): Promise<Resolution>
  /** The address of the last good answer, without a look-up. */
  known(target: ResolveTarget): ResolvedAddress | undefined
  /** Called when an answer differs from the last good one of this id. @returns ends it */
  onChange(callback: (target: ResolveTarget, address: ResolvedAddress) => void): () => void
  counters(): ResolverCounters
  /** Cancels running look-ups. */
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

/** @throws VacancyError usage_error, invalid_tokens, invalid_tls */
export declare function openResolver(options: ResolverOptions): Resolver

/**
 * HTTP calls to the registry, for routers and bridges (docs/design/http.md#callers-of-the-registry): stays with the
 * address that responds, and goes to the next one on connection errors, timeouts and 5xx. Every body is checked.
 */

import type { Clock, CodecList } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import type { z } from 'zod'

/**
 * `unchanged`: 304. `refused`: a status of 400 to 499. `failed`: no usable response from any address; the body may
 * also be malformed or too large.
 */
export type RegistryReply<T> =
  | { readonly kind: 'ok'; readonly body: T; readonly etag: string }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string }

export type GetOptions = {
  /** ETag of the known version: then `unchanged` is possible. */
  readonly etag?: string
  /** Per address. Default 5,000. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export type RegistryClient = {
  get<S extends z.ZodType>(path: string, schema: S, options?: GetOptions): Promise<RegistryReply<z.infer<S>>>
  /** The body of the reply as text: existing registries reply without one. */
  post(path: string, body: object, timeoutMs?: number): Promise<RegistryReply<string>>
  /** One try at the present address. */
  delete(path: string, timeoutMs?: number): Promise<RegistryReply<string>>
  /** `GET /codecs`. Only the names are read: their order matters, and the hash is a u64. */
  codecs(signal?: AbortSignal): Promise<RegistryReply<CodecList>>
  health(): RegistryHealth
  close(): void
}

export type RegistryHealth = {
  /** The address that is used now. */
  readonly address: string
  /** False after all addresses failed in a row; true before the first call. */
  readonly isUp: boolean
  /** The last failure; '' when there was none. */
  readonly fault: string
  /** Milliseconds since the last response; undefined before the first. */
  readonly ageMs: number | undefined
}

export type RegistryClientOptions = {
  /** `--registry-addr`: `a:8080,b:8080`, each also with `http://` or `https://`. */
  readonly addr: string
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  readonly clock: Clock
  readonly log: Log
}

/** @throws VacancyError usage_error, invalid_tokens, invalid_tls */
export declare function openRegistryClient(options: RegistryClientOptions): RegistryClient

/**
 * HTTP calls to the registry, for routers and bridges (docs/design/http.md#callers-of-the-registry): stays with the
 * address that responds, and goes to the next one on connection errors, timeouts, 5xx and stale responses. Every body
 * is checked.
 */

import { type Clock, type CodecList, createCodecList, VacancyError } from '@vacancy/shared'
import { errorBody, registryCodecsBody } from '@vacancy/shared/contract'
import {
  type HttpCaller,
  type HttpRequest,
  type HttpResult,
  type Log,
  openHttpCaller,
  parseRegistryAddresses,
} from '@vacancy/shared/node'
import type { z } from 'zod'

/**
 * `unchanged`: 304. `refused`: another status below 500. `failed`: no usable response from any address; the body may
 * also be malformed or too large.
 */
export type RegistryReply<T> =
  | { readonly kind: 'ok'; readonly body: T; readonly etag: string }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string }

type GetOptions = {
  /** ETag of the known version: then `unchanged` is possible. */
  readonly etag?: string
  /** Per address. */
  readonly timeoutMs?: number
  /** Cancels the call: it then returns `failed`. */
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

type RegistryHealth = {
  /** The address that is used now. */
  readonly address: string
  /** False after all addresses failed in a row; true before the first call. */
  readonly isUp: boolean
  /** The last failure; '' when there was none since the last response. */
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

/** For lists; heartbeats and deregistrations name shorter ones. */
const TIMEOUT_MS = 5_000

type Client = {
  readonly addresses: readonly string[]
  readonly caller: HttpCaller
  readonly clock: Clock
  readonly log: Log
  /** Index of the address in use. */
  present: number
  /** Failed requests in a row, over all callers. */
  failed: number
  fault: string
  answeredMs: number | undefined
}

/** @throws VacancyError usage_error, invalid_tokens, invalid_tls */
export function openRegistryClient(options: RegistryClientOptions): RegistryClient {
  const { clock, log, tokenFile, caFile } = options
  const client: Client = {
    addresses: parseRegistryAddresses(options.addr.split(',').map((each) => each.trim())),
    caller: openHttpCaller({ tokenFile, caFile, name: 'registry', log }),
    clock,
    log,
    present: 0,
    failed: 0,
    fault: '',
    answeredMs: undefined,
  }
  return {
    get: (path, schema, get) => read(client, path, schema, get ?? {}),
    async post(path, body, timeoutMs = TIMEOUT_MS) {
      const request = { method: 'POST', path, body: JSON.stringify(body), timeoutMs } as const
      return withText(await sendToAny(client, request, undefined, client.addresses.length))
    },
    async delete(path, timeoutMs = TIMEOUT_MS) {
      return withText(await sendToAny(client, { method: 'DELETE', path, timeoutMs }, undefined, 1))
    },
    codecs: (signal) => readCodecs(client, signal),
    health: () => ({
      address: presentAddress(client),
      isUp: client.failed < client.addresses.length,
      fault: client.fault,
      ageMs: client.answeredMs === undefined ? undefined : clock.monotonicMs() - client.answeredMs,
    }),
    close: () => client.caller.close(),
  }
}

type Answered = Extract<HttpResult, { kind: 'answer' }>
type Sent = Answered | { readonly kind: 'failed'; readonly reason: string }

async function read<S extends z.ZodType>(
  client: Client,
  path: string,
  schema: S,
  { etag, timeoutMs = TIMEOUT_MS, signal }: GetOptions,
): Promise<RegistryReply<z.infer<S>>> {
  const headers = etag === undefined || etag === '' ? {} : { 'If-None-Match': etag }
  const request = { method: 'GET', path, headers, timeoutMs } as const
  const sent = await sendToAny(client, request, signal, client.addresses.length)
  const reply = withText(sent)
  if (reply.kind !== 'ok') return reply
  const value = parseJson(reply.body)
  const { success, data, error } = schema.safeParse(value)
  if (success) return { kind: 'ok', body: data, etag: reply.etag }
  const [issue] = error.issues
  const where = issue && issue.path.length > 0 ? `${issue.path.map(String).join('.')}: ` : ''
  return { kind: 'failed', reason: `unusable response to ${path}: ${where}${issue?.message ?? ''}`.slice(0, 300) }
}

async function readCodecs(client: Client, signal: AbortSignal | undefined): Promise<RegistryReply<CodecList>> {
  const reply = await read(client, '/codecs', registryCodecsBody, signal ? { signal } : {})
  if (reply.kind !== 'ok') return reply
  try {
    return { ...reply, body: createCodecList(reply.body.rate_features) }
  } catch (error) {
    if (error instanceof VacancyError) return { kind: 'failed', reason: error.message }
    throw error
  }
}

function withText(sent: Sent): RegistryReply<string> {
  if (sent.kind === 'failed') return sent
  const { status, body, etag } = sent
  if (status === 304) return { kind: 'unchanged' }
  if (status >= 200 && status < 300) return { kind: 'ok', body, etag }
  const error = errorBody.safeParse(parseJson(body))
  const reason = error.success ? error.data.error : 'it gave no reason'
  const hint = status === 401 ? ': set --registry-token-file to a file with a token of role component' : ''
  return { kind: 'refused', status, reason: `${reason} (${status})${hint}` }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Text that is not JSON matches no schema, which the caller reports.
    return undefined
  }
}

/** Tries the present address, then the others, each once. A stale response counts when no address has a better one. */
async function sendToAny(
  client: Client,
  request: HttpRequest,
  signal: AbortSignal | undefined,
  tries: number,
): Promise<Sent> {
  let reason = 'cancelled'
  let stale: Answered | undefined
  for (let i = 0; i < tries && signal?.aborted !== true; i++) {
    const base = presentAddress(client)
    const result = await sendOnce(client, base, request, signal)
    if (result === undefined) return { kind: 'failed', reason: 'cancelled' }
    if (result.kind === 'answer' && result.status < 500) {
      noteAnswer(client, base)
      if (result.isStale !== true) return result
      stale ??= result
      moveOn(client, base)
      continue
    }
    reason = result.kind === 'failed' ? result.reason : `it returned ${result.status}`
    noteFailure(client, base, reason)
  }
  return stale ?? { kind: 'failed', reason }
}

/** @returns undefined when it was cancelled */
function sendOnce(
  { caller }: Client,
  base: string,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): Promise<HttpResult | undefined> {
  return new Promise((resolve) => {
    const end = (result: HttpResult | undefined): void => {
      signal?.removeEventListener('abort', abort)
      resolve(result)
    }
    const cancel = caller.request(base, request, end)
    const abort = (): void => {
      cancel()
      end(undefined)
    }
    signal?.addEventListener('abort', abort)
  })
}

function presentAddress({ addresses, present }: Client): string {
  return addresses[present] as string
}

/** Other calls may have moved on from the same address already. */
function moveOn(client: Client, base: string): void {
  if (presentAddress(client) === base) client.present = (client.present + 1) % client.addresses.length
}

function noteAnswer(client: Client, base: string): void {
  if (client.failed >= client.addresses.length) client.log.info({ registry: base }, 'registry responds again')
  client.failed = 0
  client.fault = ''
  client.answeredMs = client.clock.monotonicMs()
}

function noteFailure(client: Client, base: string, reason: string): void {
  const { addresses, log } = client
  client.failed += 1
  client.fault = `${base}: ${reason}`
  moveOn(client, base)
  if (client.failed === addresses.length) {
    log.warn({ registry: base, reason }, 'registry unreachable, continuing without it')
  } else if (client.failed < addresses.length) {
    log.info({ registry: base, reason, next: presentAddress(client) }, 'trying the next registry')
  }
}

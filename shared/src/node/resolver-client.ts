/**
 * Addresses from the operator's resolver, with their cache (docs/design/http.md#resolver). Used by nodes, routers and
 * bridges.
 *
 * One call per id at a time. A good response is used for half a minute, or as long as the resolver allows. After that
 * it is still used while a new one is fetched in the background. A failed connection triggers a new lookup, at most
 * once a second. While the resolver fails, the last good response counts for ten minutes.
 */

import type { Clock, Schedule } from '../clock.ts'
import { RESOLVER_ANSWER_BYTES_MAX, type ResolvedAddress, readResolverAnswer } from '../contract/fabric.ts'
import { VacancyError } from '../errors.ts'
import type { HttpResult } from './http-caller.ts'
import type { Log } from './log.ts'

export const RESOLVER_LIMITS = {
  requestMs: 2_000,
  /** Pauses before the second and the third try. */
  pausesMs: [100, 200],
  freshMs: 30_000,
  /** Bounds of the `Cache-Control: max-age` of the resolver. */
  freshMsMin: 1_000,
  freshMsMax: 3_600_000,
  /** How long an address counts that cannot be renewed. */
  staleMsMax: 600_000,
  /** Least time between lookups of an id that the resolver does not know. */
  unknownMs: 2_000,
  /** Least time between lookups of an id that was unreachable or whose lookup failed. */
  againMs: 1_000,
  complainMs: 60_000,
} as const

/** An id to look up: the path of its call, and the fields that name it in the log. */
export type ResolverKey = { readonly path: string; readonly fields: object }

/** `failed`: there is no response, and none of the last ten minutes. */
export type Resolution =
  | { readonly kind: 'found'; readonly address: ResolvedAddress }
  | { readonly kind: 'unknown'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string }

export type ResolverCounters = {
  requests: number
  /** Lookups whose tries all failed. */
  failed: number
  /** Lookups of ids that the resolver does not know. */
  unknown: number
  /** Lookups that returned an address that could not be renewed. */
  stale: number
}

export type ResolverCacheOptions = {
  readonly clock: Clock
  readonly schedule: Schedule
  readonly log: Pick<Log, 'warn'>
  /** Sends one GET. It ends soon after the signal. Never rejects. */
  readonly call: (path: string, signal: AbortSignal) => Promise<HttpResult>
  /** Ids remembered; beyond it the oldest is dropped. */
  readonly entriesMax: number
  /** Called when a good response differs from the last good one of its id. */
  readonly onChange?: (key: ResolverKey, address: ResolvedAddress) => void
}

type Entry = {
  readonly key: ResolverKey
  address: ResolvedAddress | undefined
  /** When `address` was fetched; meaningless without one. */
  fetchedMs: number
  freshUntilMs: number
  /** No new lookup before this. */
  restUntilMs: number
  /** The result of the last lookup, when it gave no address. */
  fault: Exclude<Resolution, { kind: 'found' }>['kind']
  pending: Promise<Resolution> | undefined
  complainedMs: number
}

export type ResolverCache = ResolverCacheOptions & {
  /** By path. */
  readonly entries: Map<string, Entry>
  readonly counters: ResolverCounters
  readonly closing: AbortController
}

export function createResolverCache(options: ResolverCacheOptions): ResolverCache {
  const counters = { requests: 0, failed: 0, unknown: 0, stale: 0 }
  return { ...options, entries: new Map(), counters, closing: new AbortController() }
}

/**
 * The base URL of a resolver.
 *
 * @throws VacancyError usage_error naming the flag
 */
export function parseResolverUrl(text: string): string {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (
    !url ||
    !['http:', 'https:'].includes(url.protocol) ||
    url.search !== '' ||
    url.hash !== '' ||
    url.username !== ''
  ) {
    throw new VacancyError('usage_error', { reason: `--resolver-addr: ${text} is not http://host:port` })
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/**
 * Looks up an address. Never rejects.
 *
 * @param wasUnreachable the last address did not work: looks up again, at most once a second
 */
export async function resolveAddress(
  cache: ResolverCache,
  key: ResolverKey,
  wasUnreachable = false,
): Promise<Resolution> {
  const nowMs = cache.clock.monotonicMs()
  const entry = entryOf(cache, key)
  const { address } = entry
  const isUsable = address !== undefined && canUse(entry, nowMs)
  if (nowMs < entry.restUntilMs) {
    return isUsable ? { kind: 'found', address } : { kind: entry.fault, reason: 'looked up a moment ago' }
  }
  if (isUsable && !wasUnreachable) {
    if (nowMs >= entry.freshUntilMs) void lookUp(cache, entry)
    return { kind: 'found', address }
  }
  return await lookUp(cache, entry)
}

/** The last good address, without a lookup. */
export function knownAddress(cache: ResolverCache, path: string): ResolvedAddress | undefined {
  return cache.entries.get(path)?.address
}

/** Cancels running lookups. */
export function closeResolverCache({ closing }: ResolverCache): void {
  closing.abort()
}

function entryOf({ entries, entriesMax }: ResolverCache, key: ResolverKey): Entry {
  const known = entries.get(key.path)
  if (known) return known
  const [oldest] = entries.size >= entriesMax ? entries.keys() : []
  if (oldest !== undefined) entries.delete(oldest)
  const entry: Entry = {
    key,
    address: undefined,
    fetchedMs: 0,
    freshUntilMs: 0,
    restUntilMs: 0,
    fault: 'failed',
    pending: undefined,
    complainedMs: Number.NEGATIVE_INFINITY,
  }
  entries.set(key.path, entry)
  return entry
}

function canUse({ fetchedMs, freshUntilMs }: Entry, nowMs: number): boolean {
  return nowMs < freshUntilMs || nowMs - fetchedMs < RESOLVER_LIMITS.staleMsMax
}

/** One lookup per id at a time; concurrent callers share its result. */
function lookUp(cache: ResolverCache, entry: Entry): Promise<Resolution> {
  entry.pending ??= resolve(cache, entry).finally(() => {
    entry.pending = undefined
  })
  return entry.pending
}

async function resolve(cache: ResolverCache, entry: Entry): Promise<Resolution> {
  const { clock, counters, log } = cache
  const answer = await tryThrice(cache, entry.key.path)
  const nowMs = clock.monotonicMs()
  entry.restUntilMs = nowMs + (answer.kind === 'unknown' ? RESOLVER_LIMITS.unknownMs : RESOLVER_LIMITS.againMs)
  if (answer.kind === 'found') {
    const before = entry.address
    entry.address = answer.address
    entry.fetchedMs = nowMs
    entry.freshUntilMs = nowMs + answer.freshMs
    if (before && !isSame(before, answer.address)) cache.onChange?.(entry.key, answer.address)
    return answer
  }
  const reason = answer.kind === 'unknown' ? 'the resolver does not know it' : answer.reason
  if (nowMs - entry.complainedMs >= RESOLVER_LIMITS.complainMs && !cache.closing.signal.aborted) {
    entry.complainedMs = nowMs
    log.warn({ ...entry.key.fields, reason }, 'resolver returned no address')
  }
  counters[answer.kind]++
  if (answer.kind === 'failed' && entry.address && canUse(entry, nowMs)) {
    counters.stale++
    return { kind: 'found', address: entry.address }
  }
  // The resolver no longer knows the id, so its old address is invalid.
  entry.address = undefined
  entry.fault = answer.kind
  return { kind: answer.kind, reason }
}

function isSame(a: ResolvedAddress, b: ResolvedAddress): boolean {
  return a.host === b.host && a.port === b.port && a.apiPort === b.apiPort && a.quicPort === b.quicPort
}

type Answer =
  | { readonly kind: 'found'; readonly address: ResolvedAddress; readonly freshMs: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly reason: string }

async function tryThrice(cache: ResolverCache, path: string): Promise<Answer> {
  let answer = await request(cache, path)
  for (const pauseMs of RESOLVER_LIMITS.pausesMs) {
    if (answer.kind !== 'failed' || cache.closing.signal.aborted) break
    await pause(cache, pauseMs)
    answer = await request(cache, path)
  }
  return answer
}

/** Ends early when the cache is closed. */
function pause({ schedule, closing }: ResolverCache, pauseMs: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      closing.signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = schedule.after(pauseMs, end)
    closing.signal.addEventListener('abort', end)
  })
}

async function request(cache: ResolverCache, path: string): Promise<Answer> {
  const { counters, closing, schedule } = cache
  if (closing.signal.aborted) return { kind: 'failed', reason: 'stopping' }
  counters.requests++
  const late = new AbortController()
  const cancel = schedule.after(RESOLVER_LIMITS.requestMs, () => late.abort())
  const result = await cache.call(path, AbortSignal.any([late.signal, closing.signal]))
  cancel()
  if (result.kind === 'failed') {
    return { kind: 'failed', reason: late.signal.aborted ? 'no response in time' : result.reason }
  }
  return readAnswer(result)
}

function readAnswer(result: Extract<HttpResult, { kind: 'answer' }>): Answer {
  const { status, contentType = '', cacheControl = '', body } = result
  if (status === 404) return { kind: 'unknown' }
  if (status !== 200) return { kind: 'failed', reason: `status ${status}` }
  if (body.length > RESOLVER_ANSWER_BYTES_MAX) {
    return { kind: 'failed', reason: `more than ${RESOLVER_ANSWER_BYTES_MAX} bytes` }
  }
  const address = readResolverAnswer(contentType, body)
  if (!address) return { kind: 'failed', reason: 'the response names no host' }
  return { kind: 'found', address, freshMs: freshMsOf(cacheControl) }
}

function freshMsOf(cacheControl: string): number {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])/i.exec(cacheControl)?.[1]
  const { freshMs, freshMsMin, freshMsMax } = RESOLVER_LIMITS
  return seconds === undefined ? freshMs : Math.min(freshMsMax, Math.max(freshMsMin, Number(seconds) * 1000))
}

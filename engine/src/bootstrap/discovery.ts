/**
 * Addresses of the other nodes of a shard (docs/design/http.md#resolver): node id → host and ports, from the operator's
 * resolver. Also decides which nodes to dial (one reachable seed is enough).
 *
 * One call per node at a time. A good response is used for half a minute, or as long as the resolver allows. After that
 * it is still used while a new one is fetched in the background. A failed connection triggers a new look-up, at most
 * once a second. While the resolver fails, the last good response counts for ten minutes.
 */

import { readFileSync } from 'node:fs'
import { type Clock, parseId, type Schedule, VacancyError } from '@vacancy/shared'
import { RESOLVER_ANSWER_BYTES_MAX, type ResolvedAddress, readResolverAnswer } from '@vacancy/shared/contract'
import { watchFiles } from '@vacancy/shared/node'
import type { Log } from '../env.ts'
import type { Address } from '../transport/transport-state.ts'

export const DISCOVERY_LIMITS = {
  requestMs: 2_000,
  /** Pauses before the second and the third try. */
  pausesMs: [100, 200],
  freshMs: 30_000,
  /** Bounds of the `Cache-Control: max-age` of the resolver. */
  freshMsMin: 1_000,
  freshMsMax: 3_600_000,
  /** How long an address counts that cannot be renewed. */
  staleMsMax: 600_000,
  /** Least time between look-ups of a node that the resolver does not know. */
  unknownMs: 2_000,
  /** Least time between look-ups of a node that was unreachable or whose look-up failed. */
  againMs: 1_000,
  /** Most nodes remembered. */
  nodes: 512,
  complainMs: 60_000,
} as const
/** Most peers to connect to at once: voters of both halves of a joint configuration, learners, seeds. */
export const DIALLED_MAX = 64

/** The part of `fetch` that is used; tests and programs inject their own. */
type Fetch = (
  url: string,
  options: {
    readonly headers: { readonly [name: string]: string }
    readonly redirect: 'manual'
    readonly signal: AbortSignal
  },
) => Promise<Pick<Response, 'status' | 'headers' | 'body'>>

export type DiscoveryOptions = {
  readonly env: { readonly clock: Clock; readonly schedule: Schedule; readonly log: Log }
  /** `http://host:port`, as parseResolverUrl returns it. */
  readonly url: string
  readonly shardId: string
  /** Own ports, used for nodes without ports in the response. */
  readonly ports: { readonly quic: number; readonly api: number }
  readonly fetch: Fetch
  /** Bearer token, read before each request. */
  readonly token?: (() => string | undefined) | undefined
}

/** Address of a node. */
export type NodeAddress = { readonly host: string; readonly quicPort: number; readonly apiPort: number }

type DiscoveryCounters = {
  requests: number
  /** Look-ups whose tries all failed. */
  failed: number
  /** Look-ups of nodes that the resolver does not know. */
  unknown: number
  /** Look-ups that returned an address that could not be renewed. */
  stale: number
}

type Entry = {
  readonly node: string
  address: NodeAddress | undefined
  /** When `address` was fetched; meaningless without one. */
  fetchedMs: number
  freshUntilMs: number
  /** No new look-up before this. */
  restUntilMs: number
  pending: Promise<NodeAddress> | undefined
  complainedMs: number
}

export type Discovery = DiscoveryOptions & {
  readonly entries: Map<string, Entry>
  readonly counters: DiscoveryCounters
  readonly closing: AbortController
}

export function createDiscovery(options: DiscoveryOptions): Discovery {
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
 * Looks up the address of a node.
 *
 * @param wasUnreachable the last address did not work: looks up again, at most once a second
 * @throws VacancyError failure when it is unavailable now
 */
export async function findNode(discovery: Discovery, node: string, wasUnreachable = false): Promise<NodeAddress> {
  const nowMs = discovery.env.clock.monotonicMs()
  const entry = entryOf(discovery, node)
  const { address } = entry
  if (nowMs < entry.restUntilMs) return address && isUsable(entry, nowMs) ? address : await rejected(entry)
  if (address && !wasUnreachable && isUsable(entry, nowMs)) {
    if (nowMs >= entry.freshUntilMs) lookUp(discovery, entry).catch(() => {}) // Already logged.
    return address
  }
  return await lookUp(discovery, entry)
}

/** The same for the transport: the address that peers connect to. */
export async function addressOf(discovery: Discovery, node: string, wasUnreachable: boolean): Promise<Address> {
  const { host, quicPort } = await findNode(discovery, node, wasUnreachable)
  return { host, port: quicPort }
}

/** The address known without a look-up, for status pages. */
export function knownAddress(discovery: Discovery, node: string): NodeAddress | undefined {
  return discovery.entries.get(node)?.address
}

/** Cancels running look-ups. */
export function closeDiscovery({ closing }: Discovery): void {
  closing.abort()
}

/**
 * The nodes to connect to: first the members of the shard, then those the operator named, then those learned from
 * peers. One reachable node is enough to learn the others.
 *
 * @param members of the configuration; empty before the node knows one
 * @param isSettled this node is a member and knows a leader, so it needs no other nodes
 */
export function nodesToDial(
  self: string,
  {
    members,
    isSettled,
    seeds,
    learned,
  }: {
    readonly members: readonly string[]
    readonly isSettled: boolean
    readonly seeds: readonly string[]
    readonly learned: Iterable<string>
  },
): readonly string[] {
  const named = new Set(isSettled ? members : [...members, ...seeds, ...learned])
  const nodes = [...named].filter((node) => node !== self && parseId(node) !== undefined)
  return nodes.slice(0, DIALLED_MAX)
}

/**
 * The token in the first line of a file, read again when it changes.
 *
 * @throws VacancyError invalid_tokens
 */
export function openTokenFile(
  file: string,
  log: Log,
  lookMs?: number,
): { readonly token: () => string; readonly close: () => void } {
  let token = readToken(file)
  const close = watchFiles(
    [file],
    () => {
      try {
        token = readToken(file)
      } catch (error) {
        log.error({ file, err: error }, 'token file changed but is unusable, keeping the old token')
      }
    },
    lookMs,
  )
  return { token: () => token, close }
}

function readToken(file: string): string {
  try {
    const token = (readFileSync(file, 'utf8').split('\n', 1)[0] ?? '').trim()
    if (/^[\x21-\x7e]{1,255}$/.test(token)) return token
  } catch (cause) {
    throw new VacancyError(
      'invalid_tokens',
      { reason: `${file} cannot be read: ${(cause as Error).message}` },
      { cause },
    )
  }
  throw new VacancyError('invalid_tokens', { reason: `${file} holds no token in its first line` })
}

function entryOf({ entries }: Discovery, node: string): Entry {
  const known = entries.get(node)
  if (known) return known
  const [oldest] = entries.size >= DISCOVERY_LIMITS.nodes ? entries.keys() : []
  if (oldest !== undefined) entries.delete(oldest)
  const entry: Entry = {
    node,
    address: undefined,
    fetchedMs: 0,
    freshUntilMs: 0,
    restUntilMs: 0,
    pending: undefined,
    complainedMs: Number.NEGATIVE_INFINITY,
  }
  entries.set(node, entry)
  return entry
}

function isUsable({ fetchedMs, freshUntilMs }: Entry, nowMs: number): boolean {
  return nowMs < freshUntilMs || nowMs - fetchedMs < DISCOVERY_LIMITS.staleMsMax
}

function rejected({ node }: Entry): Promise<never> {
  return Promise.reject(notFound(node, 'looked up a moment ago'))
}

function notFound(node: string, reason: string, cause?: unknown): VacancyError {
  return new VacancyError('failure', { reason: `the address of node ${node} is not known: ${reason}` }, { cause })
}

/** One look-up per node at a time; concurrent callers share its result. */
function lookUp(discovery: Discovery, entry: Entry): Promise<NodeAddress> {
  entry.pending ??= resolve(discovery, entry).finally(() => {
    entry.pending = undefined
  })
  return entry.pending
}

async function resolve(discovery: Discovery, entry: Entry): Promise<NodeAddress> {
  const { env, counters, ports } = discovery
  const answer = await tryThrice(discovery, entry.node)
  const nowMs = env.clock.monotonicMs()
  const isFound = answer.kind === 'found'
  entry.restUntilMs = nowMs + (answer.kind === 'unknown' ? DISCOVERY_LIMITS.unknownMs : DISCOVERY_LIMITS.againMs)
  if (isFound) {
    const { host, quicPort = ports.quic, apiPort = ports.api } = answer.address
    entry.address = { host, quicPort, apiPort }
    entry.fetchedMs = nowMs
    entry.freshUntilMs = nowMs + answer.freshMs
    return entry.address
  }
  const reason = answer.kind === 'unknown' ? 'the resolver does not know it' : answer.reason
  if (nowMs - entry.complainedMs >= DISCOVERY_LIMITS.complainMs) {
    entry.complainedMs = nowMs
    env.log.warn({ node: entry.node, reason }, 'resolver returned no address')
  }
  counters[answer.kind]++
  if (answer.kind === 'failed' && entry.address && isUsable(entry, nowMs)) {
    counters.stale++
    return entry.address
  }
  // The resolver no longer knows the node, so its old address is invalid.
  entry.address = undefined
  throw notFound(entry.node, reason)
}

type Answer =
  | { readonly kind: 'found'; readonly address: ResolvedAddress; readonly freshMs: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly reason: string }

async function tryThrice(discovery: Discovery, node: string): Promise<Answer> {
  let answer = await request(discovery, node)
  for (const pauseMs of DISCOVERY_LIMITS.pausesMs) {
    if (answer.kind !== 'failed' || discovery.closing.signal.aborted) break
    await new Promise<void>((resolve) => discovery.env.schedule.after(pauseMs, resolve))
    answer = await request(discovery, node)
  }
  return answer
}

async function request(discovery: Discovery, node: string): Promise<Answer> {
  const { url, shardId, token, env, counters, closing } = discovery
  if (closing.signal.aborted) return { kind: 'failed', reason: 'the node is stopping' }
  counters.requests++
  const late = new AbortController()
  const cancel = env.schedule.after(DISCOVERY_LIMITS.requestMs, () => late.abort())
  try {
    const bearer = token?.()
    const response = await discovery.fetch(
      `${url}/shards/${encodeURIComponent(shardId)}/nodes/${encodeURIComponent(node)}`,
      {
        headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
        // A redirect would carry the token elsewhere.
        redirect: 'manual',
        signal: AbortSignal.any([late.signal, closing.signal]),
      },
    )
    return await readAnswer(response)
  } catch (error) {
    return { kind: 'failed', reason: late.signal.aborted ? 'no response in time' : reasonOf(error) }
  } finally {
    cancel()
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}

async function readAnswer({ status, headers, body }: Awaited<ReturnType<Fetch>>): Promise<Answer> {
  const text = await readBounded(body)
  if (status === 404) return { kind: 'unknown' }
  if (status !== 200) return { kind: 'failed', reason: `status ${status}` }
  if (text === undefined) return { kind: 'failed', reason: `more than ${RESOLVER_ANSWER_BYTES_MAX} bytes` }
  const address = readResolverAnswer(headers.get('content-type') ?? '', text)
  if (!address) return { kind: 'failed', reason: 'the response names no host' }
  return { kind: 'found', address, freshMs: freshMsOf(headers.get('cache-control') ?? '') }
}

/** @returns undefined when it is too long */
async function readBounded(body: ReadableStream<Uint8Array> | null): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > RESOLVER_ANSWER_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function freshMsOf(cacheControl: string): number {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])/i.exec(cacheControl)?.[1]
  const { freshMs, freshMsMin, freshMsMax } = DISCOVERY_LIMITS
  return seconds === undefined ? freshMs : Math.min(freshMsMax, Math.max(freshMsMin, Number(seconds) * 1000))
}

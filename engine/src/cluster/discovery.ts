/**
 * Where the other nodes of a shard are (platform.md §3): node id → host and ports, from the operator's resolver; and
 * which of them to look for (§7.9: one seed that answers is enough).
 *
 * One call at a time a node. A good answer is used for half a minute, or as long as the resolver says; after that it
 * still is, while a new one is fetched behind it. Whoever could not connect asks anew, at most once a second. While the
 * resolver fails, the last good answer counts for ten minutes.
 */

import { readFileSync } from 'node:fs'
import { type Clock, parseId, VacancyError } from '@vacancy/shared'
import { RESOLVER_ANSWER_BYTES_MAX, type ResolvedAddress, readResolverAnswer } from '@vacancy/shared/contract'
import { watchFiles } from '@vacancy/shared/node'
import type { Log, Schedule } from '../env.ts'
import type { Address } from './tls-transport.ts'

export const DISCOVERY_LIMITS = {
  requestMs: 2_000,
  /** Pauses before the second and the third try. */
  pausesMs: [100, 200],
  freshMs: 30_000,
  /** Bounds of what the resolver may ask for by `Cache-Control: max-age`. */
  freshMsMin: 1_000,
  freshMsMax: 3_600_000,
  /** How long an answer counts that cannot be renewed. */
  staleMsMax: 600_000,
  /** A node that the resolver does not know is not asked for again so soon. */
  unknownMs: 2_000,
  /** Nor is one that could not be reached, or whose look-up failed. */
  againMs: 1_000,
  /** Nodes remembered. */
  nodes: 512,
  complainMs: 60_000,
} as const
/** Peers to be connected to at once: voters of both halves of a joint configuration, learners, seeds. */
export const DIALLED_MAX = 64

/** The part of `fetch` that is used; tests and programs hand in theirs. */
export type Fetch = (
  url: string,
  options: {
    readonly headers: { readonly [name: string]: string }
    readonly redirect: 'manual'
    readonly signal: AbortSignal
  },
) => Promise<Pick<Response, 'status' | 'headers' | 'body'>>

export type DiscoveryOptions = {
  readonly env: { readonly clock: Clock; readonly schedule: Schedule; readonly log: Log }
  /** `http://host:port`, as parseResolverUrl gives it. */
  readonly url: string
  readonly shardId: string
  /** Own ports: those of a node whose answer has none. */
  readonly ports: { readonly quic: number; readonly api: number }
  readonly fetch: Fetch
  /** Sent as bearer token; asked for before each request. */
  readonly token?: (() => string | undefined) | undefined
}

/** Where a node is. */
export type NodeAddress = { readonly host: string; readonly quicPort: number; readonly apiPort: number }

export type DiscoveryCounters = {
  requests: number
  /** Look-ups that all tries failed for. */
  failed: number
  /** Look-ups of nodes that the resolver does not know. */
  unknown: number
  /** Look-ups answered with an address that could not be renewed. */
  stale: number
}

type Entry = {
  readonly node: string
  address: NodeAddress | undefined
  /** When `address` was said; meaningless without one. */
  saidMs: number
  freshUntilMs: number
  /** Before this nothing is asked again. */
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
 * The base of a resolver's paths.
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
    throw new VacancyError('usage_error', { reason: `--resolver-addr: ${text} is no http://host:port` })
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/**
 * Where a node is.
 *
 * @param wasUnreachable what was answered before leads nowhere: asks anew, at most once a second
 * @throws VacancyError failure when it cannot be found out now
 */
export async function findNode(discovery: Discovery, node: string, wasUnreachable = false): Promise<NodeAddress> {
  const nowMs = discovery.env.clock.monotonicMs()
  const entry = entryOf(discovery, node)
  const { address } = entry
  if (nowMs < entry.restUntilMs) return address && isUsable(entry, nowMs) ? address : await rejected(entry)
  if (address && !wasUnreachable && isUsable(entry, nowMs)) {
    if (nowMs >= entry.freshUntilMs) lookUp(discovery, entry).catch(() => {}) // It has complained itself.
    return address
  }
  return await lookUp(discovery, entry)
}

/** For the transport: the same, as the place that peers connect to. */
export async function addressOf(discovery: Discovery, node: string, wasUnreachable: boolean): Promise<Address> {
  const { host, quicPort } = await findNode(discovery, node, wasUnreachable)
  return { host, port: quicPort }
}

/** What is known without asking; for status pages. */
export function knownAddress(discovery: Discovery, node: string): NodeAddress | undefined {
  return discovery.entries.get(node)?.address
}

/** Ends what is under way. */
export function closeDiscovery({ closing }: Discovery): void {
  closing.abort()
}

/**
 * The nodes to be connected to: members of the shard before all, then those the operator named, then those that peers
 * told of. One of them that answers is enough to learn the others.
 *
 * @param members of the configuration; empty before the node knows one
 * @param isSettled this node is a member and knows a leader: it needs nobody else
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
 * The token in the first line of a file; read again when it changes.
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
        log.error({ file, err: error }, 'the token file changed but cannot be used; the old token stays')
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
    saidMs: 0,
    freshUntilMs: 0,
    restUntilMs: 0,
    pending: undefined,
    complainedMs: Number.NEGATIVE_INFINITY,
  }
  entries.set(node, entry)
  return entry
}

function isUsable({ saidMs, freshUntilMs }: Entry, nowMs: number): boolean {
  return nowMs < freshUntilMs || nowMs - saidMs < DISCOVERY_LIMITS.staleMsMax
}

function rejected({ node }: Entry): Promise<never> {
  return Promise.reject(notFound(node, 'asked a moment ago'))
}

function notFound(node: string, reason: string, cause?: unknown): VacancyError {
  return new VacancyError('failure', { reason: `the address of node ${node} is not known: ${reason}` }, { cause })
}

/** One look-up a node at a time; who comes meanwhile gets its answer. */
function lookUp(discovery: Discovery, entry: Entry): Promise<NodeAddress> {
  entry.pending ??= ask(discovery, entry).finally(() => {
    entry.pending = undefined
  })
  return entry.pending
}

async function ask(discovery: Discovery, entry: Entry): Promise<NodeAddress> {
  const { env, counters, ports } = discovery
  const answer = await tryThrice(discovery, entry.node)
  const nowMs = env.clock.monotonicMs()
  const isFound = answer.kind === 'found'
  entry.restUntilMs = nowMs + (answer.kind === 'unknown' ? DISCOVERY_LIMITS.unknownMs : DISCOVERY_LIMITS.againMs)
  if (isFound) {
    const { host, quicPort = ports.quic, apiPort = ports.api } = answer.address
    entry.address = { host, quicPort, apiPort }
    entry.saidMs = nowMs
    entry.freshUntilMs = nowMs + answer.freshMs
    return entry.address
  }
  const reason = answer.kind === 'unknown' ? 'the resolver does not know it' : answer.reason
  if (nowMs - entry.complainedMs >= DISCOVERY_LIMITS.complainMs) {
    entry.complainedMs = nowMs
    env.log.warn({ node: entry.node, reason }, 'the resolver gave no address of a node')
  }
  counters[answer.kind]++
  if (answer.kind === 'failed' && entry.address && isUsable(entry, nowMs)) {
    counters.stale++
    return entry.address
  }
  // A node that the resolver has forgotten is not where it was.
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
  if (closing.signal.aborted) return { kind: 'failed', reason: 'the node stops' }
  counters.requests++
  const late = new AbortController()
  const cancel = env.schedule.after(DISCOVERY_LIMITS.requestMs, () => late.abort())
  try {
    const bearer = token?.()
    const response = await discovery.fetch(
      `${url}/shards/${encodeURIComponent(shardId)}/nodes/${encodeURIComponent(node)}`,
      {
        headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
        // An answer that leads elsewhere would take the token along.
        redirect: 'manual',
        signal: AbortSignal.any([late.signal, closing.signal]),
      },
    )
    return await readAnswer(response)
  } catch (error) {
    return { kind: 'failed', reason: late.signal.aborted ? 'no answer in time' : reasonOf(error) }
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
  if (!address) return { kind: 'failed', reason: 'the answer names no host' }
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

/**
 * Addresses of the other nodes of a shard (docs/design/http.md#resolver): node id → host and ports, from the operator's
 * resolver. Also decides which nodes to dial (one reachable seed is enough). The cache of addresses is
 * shared/src/node/resolver-client.ts.
 */

import type { IncomingMessage, RequestOptions } from 'node:http'
import { type Clock, parseId, type Schedule, VacancyError } from '@vacancy/shared'
import { RESOLVER_ANSWER_BYTES_MAX, type ResolvedAddress } from '@vacancy/shared/contract'
import {
  closeResolverCache,
  createResolverCache,
  type HttpResult,
  http,
  https,
  knownAddress,
  type ResolverCache,
  type ResolverKey,
  resolveAddress,
} from '@vacancy/shared/node'
import type { Log } from '../env.ts'
import type { Address } from '../transport/transport-state.ts'

/** Most nodes whose addresses are remembered. */
export const NODES_MAX = 512
/** Most peers to connect to at once: voters of both halves of a joint configuration, learners, seeds. */
export const DIALLED_MAX = 64

export type DiscoveryOptions = {
  readonly env: { readonly clock: Clock; readonly schedule: Schedule; readonly log: Log }
  /** `http://host:port`, as parseResolverUrl returns it. */
  readonly url: string
  readonly shardId: string
  /** Own ports, used for nodes without ports in the response. */
  readonly ports: { readonly quic: number; readonly api: number }
  /** Bearer token, read before each request. */
  readonly token?: (() => string | undefined) | undefined
}

/** Address of a node. */
export type NodeAddress = { readonly host: string; readonly quicPort: number; readonly apiPort: number }

export type Discovery = DiscoveryOptions & { readonly cache: ResolverCache }

export function createDiscovery(options: DiscoveryOptions): Discovery {
  const cache = createResolverCache({
    ...options.env,
    call: (path, signal) => request(options, path, signal),
    entriesMax: NODES_MAX,
  })
  return { ...options, cache }
}

/**
 * Looks up the address of a node.
 *
 * @param wasUnreachable the last address did not work: looks up again, at most once a second
 * @throws VacancyError failure when it is unavailable now
 */
export async function findNode(discovery: Discovery, node: string, wasUnreachable = false): Promise<NodeAddress> {
  const resolution = await resolveAddress(discovery.cache, keyOf(discovery, node), wasUnreachable)
  if (resolution.kind === 'found') return withPorts(discovery, resolution.address)
  throw new VacancyError('failure', { reason: `the address of node ${node} is not known: ${resolution.reason}` })
}

function keyOf({ shardId }: Discovery, node: string): ResolverKey {
  return { path: `/shards/${encodeURIComponent(shardId)}/nodes/${encodeURIComponent(node)}`, fields: { node } }
}

function withPorts({ ports }: Discovery, { host, quicPort, apiPort }: ResolvedAddress): NodeAddress {
  return { host, quicPort: quicPort ?? ports.quic, apiPort: apiPort ?? ports.api }
}

/** The same for the transport: the address that peers connect to. */
export async function addressOf(discovery: Discovery, node: string, wasUnreachable: boolean): Promise<Address> {
  const { host, quicPort } = await findNode(discovery, node, wasUnreachable)
  return { host, port: quicPort }
}

/** The address known without a lookup, for status pages. */
export function nodeAddress(discovery: Discovery, node: string): NodeAddress | undefined {
  const known = knownAddress(discovery.cache, keyOf(discovery, node).path)
  return known && withPorts(discovery, known)
}

/** Cancels running lookups. */
export function closeDiscovery({ cache }: Discovery): void {
  closeResolverCache(cache)
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

async function request({ url, token }: DiscoveryOptions, path: string, signal: AbortSignal): Promise<HttpResult> {
  try {
    const bearer = token?.()
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    const answer = await get(`${url}${path}`, { headers, signal })
    const status = answer.statusCode ?? 0
    const body = await readBounded(answer)
    // The page of an unknown id may be long: its text does not matter.
    if (body === undefined && status !== 404)
      return { kind: 'failed', reason: `more than ${RESOLVER_ANSWER_BYTES_MAX} bytes` }
    const { 'content-type': contentType = '', 'cache-control': cacheControl = '' } = answer.headers
    return { kind: 'answer', status, etag: '', contentType, cacheControl, body: body ?? '' }
  } catch (error) {
    // A name with several addresses fails without a message of its own.
    const { message, code } = error as NodeJS.ErrnoException
    return { kind: 'failed', reason: message || (code ?? 'the connection failed') }
  }
}

/** Not `fetch`: loading its client costs a start 5 MB and some 0.1 s of processor time. It follows no redirects. */
function get(url: string, options: RequestOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { get: send } = url.startsWith('https:') ? https : http
    send(url, options, resolve).on('error', reject)
  })
}

/** @returns undefined when it is too long */
async function readBounded(body: AsyncIterable<Uint8Array>): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > RESOLVER_ANSWER_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

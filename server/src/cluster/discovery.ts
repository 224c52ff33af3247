/**
 * Which nodes there are and where: by the registry, by a configured list, and by what members of a shard tell of each
 * other. A node that left the registry stays known while its shard counts it as a member: it is away, not gone. Where
 * nobody can tell, because its whole shard is silent, it stays known for a week.
 */
import type { Clock } from '@vacancy/shared'
import { parseId } from '@vacancy/shared'
import { nodeInfoBody, readResolverAnswer, statusBody, topologyBody } from '@vacancy/shared/contract'
import type { z } from 'zod'
import type { NodeAddress } from './cluster.ts'
import { isUp } from './derive.ts'
import { type HttpReply, NODE_HTTP, type NodeHttp, NodeHttpError } from './node-http.ts'
import type { NodeObservation } from './observation.ts'

export const DISCOVERY = {
  intervalMs: 5_000,
  timeoutMs: 2_000,
  /** A node that is neither registered nor a member is forgotten after this long without an answer. */
  forgetMs: 60_000,
  /** The same where no member of its shard answers, who could say whether it is one: since anybody named it. */
  forgetSilentMs: 7 * 86_400_000,
  nodesMax: 10_000,
} as const

export type DiscoveryConfig = {
  readonly registry: string | undefined
  readonly resolver: string | undefined
  /** `host:port` or `http://host:port`. */
  readonly nodes: readonly string[]
  readonly apiPort: number
  readonly tcpPort: number
  readonly registryToken: string | undefined
  readonly nodeToken: string | undefined
}

type Topology = z.infer<typeof topologyBody>

export type RegistryState = {
  readonly address: string | null
  readonly isUp: boolean
  readonly error: string
  readonly since: number | undefined
  readonly at: number | undefined
  readonly topology: Topology | undefined
}

/** Who says that there is a node; `memory`: nobody any more. */
export type NamedBy = 'registry' | 'list' | 'member' | 'memory'

export type Found = { readonly address: NodeAddress; readonly by: NamedBy }
/** A node of the round before, and when somebody last named it. */
export type Remembered = { readonly seen: NodeObservation; readonly namedAt: number }

/** Where nodes are looked for, and what registry and resolver answered last. */
export type Discovery = {
  readonly config: DiscoveryConfig
  readonly http: NodeHttp
  readonly clock: Clock
  registry: RegistryState
  /** Places from the resolver, by shard and node. */
  readonly resolved: Map<string, { readonly host: string; readonly apiPort: number; readonly tcpPort: number }>
  /** Nodes of the configured list that have identified themselves, by their entry. */
  readonly listed: Map<string, NodeAddress>
}

type Place = { readonly apiUrl: string; readonly host: string; readonly port: number }

/** Of a node in the list that has not said yet who it is. */
const UNKNOWN_SHARD = 'unknown'

export function createDiscovery(config: DiscoveryConfig, http: NodeHttp, clock: Clock): Discovery {
  return {
    config,
    http,
    clock,
    registry: {
      address: config.registry ?? null,
      isUp: false,
      error: '',
      since: undefined,
      at: undefined,
      topology: undefined,
    },
    resolved: new Map(),
    listed: new Map(),
  }
}

async function readRegistry(discovery: Discovery): Promise<void> {
  if (discovery.config.registry === undefined) return
  const now = discovery.clock.wallMs()
  try {
    const request = {
      timeoutMs: DISCOVERY.timeoutMs,
      bytesMax: NODE_HTTP.registryBytesMax,
      token: discovery.config.registryToken,
    }
    const topology = readAnswer(
      await discovery.http.request(`${discovery.config.registry}/topology`, request),
      topologyBody,
    )
    discovery.registry = { ...discovery.registry, isUp: true, error: '', since: undefined, at: now, topology }
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    // What it told last stays: nodes do not go away because the registry did.
    discovery.registry = {
      ...discovery.registry,
      isUp: false,
      error: error.message,
      since: discovery.registry.since ?? now,
    }
  }
}

async function placeOf(
  discovery: Discovery,
  shard: string,
  id: string,
  apiUrl: string | undefined,
): Promise<Place | undefined> {
  const url = apiUrl === undefined ? undefined : reachable(apiUrl)
  const key = `${shard}/${id}`
  const known = discovery.resolved.get(key)
  if (!known && discovery.config.resolver !== undefined) {
    const path = `/shards/${encodeURIComponent(shard)}/nodes/${encodeURIComponent(id)}`
    const reply = await requestQuietly(() =>
      discovery.http.request(`${discovery.config.resolver}${path}`, { timeoutMs: DISCOVERY.timeoutMs }),
    )
    const address = reply?.status === 200 ? readResolverAnswer(reply.type, reply.body) : undefined
    if (address) {
      const { host, apiPort = discovery.config.apiPort, port: tcpPort = discovery.config.tcpPort } = address
      discovery.resolved.set(key, { host, apiPort, tcpPort })
    }
  }
  const place = discovery.resolved.get(key)
  if (url)
    return { apiUrl: url.origin, host: place?.host ?? hostOf(url), port: place?.tcpPort ?? discovery.config.tcpPort }
  if (place)
    return { apiUrl: `http://${bracketed(place.host)}:${place.apiPort}`, host: place.host, port: place.tcpPort }
  return undefined
}

async function registeredNodes(discovery: Discovery): Promise<NodeAddress[]> {
  const nodes = (discovery.registry.topology?.nodes ?? []).slice(0, DISCOVERY.nodesMax)
  const found: NodeAddress[] = []
  for (let at = 0; at < nodes.length; at += REQUESTS_AT_ONCE) {
    const batch = nodes.slice(at, at + REQUESTS_AT_ONCE).map(async (node) => {
      const place = await placeOf(discovery, node.shard, node.id, node.api_url)
      return addressOf(node.id, node.shard, node.zone, place)
    })
    found.push(...(await Promise.all(batch)))
  }
  return found
}

/** Who each node of the list is: a clustered one says so, a standalone one has no id but its address. */
async function listedNodes(discovery: Discovery, known: readonly Remembered[]): Promise<NodeAddress[]> {
  return await Promise.all(
    discovery.config.nodes.map(async (entry) => {
      const reported = discovery.listed.get(entry)
      if (reported) return reported
      const url = new URL(originOf(entry))
      const place = { apiUrl: url.origin, host: hostOf(url), port: discovery.config.tcpPort }
      const identity = await identifyNode(discovery, url.origin)
      if (!identity) {
        // Who stood there before the restart, until somebody there says who it is.
        const before = known.find(({ seen: { address } }) => isNamed(address) && address.apiUrl === url.origin)
        return before?.seen.address ?? addressOf(url.host, UNKNOWN_SHARD, '', place)
      }
      const address = addressOf(identity.id ?? url.host, identity.shard, identity.zone, place)
      discovery.listed.set(entry, address)
      return address
    }),
  )
}

async function identifyNode(
  discovery: Discovery,
  origin: string,
): Promise<{ id: string | undefined; shard: string; zone: string } | undefined> {
  const request = { timeoutMs: DISCOVERY.timeoutMs, token: discovery.config.nodeToken }
  const info = await requestQuietly(() => discovery.http.request(`${origin}/node-info`, request))
  if (info?.status === 200) {
    const body = await requestQuietly(async () => readAnswer(info, nodeInfoBody))
    return body && { id: body.node_id, shard: body.shard_id, zone: body.zone_id }
  }
  if (info?.status !== 404) return undefined
  const status = await requestQuietly(() => discovery.http.request(`${origin}/status`, request))
  const body = status?.status === 200 ? await requestQuietly(async () => readAnswer(status, statusBody)) : undefined
  return body && { id: undefined, shard: body.shard_id, zone: '' }
}

/** One round: every node that is known now. */
export async function discoverNodes(discovery: Discovery, known: readonly Remembered[]): Promise<readonly Found[]> {
  const [, list] = await Promise.all([readRegistry(discovery), listedNodes(discovery, known)])
  const found = new Map<string, Found>()
  const add = (address: NodeAddress, by: NamedBy) => {
    const key = `${address.shard}/${address.id}`
    found.set(key, { address, by: found.get(key)?.by ?? by })
  }
  for (const node of await registeredNodes(discovery)) add(node, 'registry')
  for (const node of list) add(node, 'list')
  const reporters = known.map(({ seen }) => seen).filter((seen) => isUp(seen) && seen.info !== undefined)
  for (const node of await membersOf(reporters, known, (shard, id) => placeOf(discovery, shard, id, undefined))) {
    if (!found.has(`${node.shard}/${node.id}`)) add(node, 'member')
  }
  const now = discovery.clock.wallMs()
  const reported = new Set(reporters.flatMap(({ address, info }) => (info?.value.nodes.length ? [address.shard] : [])))
  for (const { seen, namedAt } of known) {
    const { address, answeredAt } = seen
    if (!isNamed(address) || found.has(`${address.shard}/${address.id}`)) continue
    const isHere = answeredAt !== undefined && now - answeredAt <= DISCOVERY.forgetMs
    const isOpen = !reported.has(address.shard) && now - namedAt <= DISCOVERY.forgetSilentMs
    if (isHere || isOpen) add(address, 'memory')
  }
  return [...found.values()].slice(0, DISCOVERY.nodesMax)
}

/** Asks the resolver again for a node that does not answer. */
export function forgetPlace(discovery: Discovery, { shard, id }: NodeAddress): void {
  discovery.resolved.delete(`${shard}/${id}`)
}

const REQUESTS_AT_ONCE = 64

/** An entry of the configured list. */
export function originOf(entry: string): string {
  return new URL(entry.includes('://') ? entry : `http://${entry}`).origin
}

/** Whether it is known who it is. */
export function isNamed({ shard }: NodeAddress): boolean {
  return shard !== UNKNOWN_SHARD
}

/** Members that nobody registered: those that answer say which, and where the resolver says they are. */
async function membersOf(
  reporters: readonly NodeObservation[],
  known: readonly Remembered[],
  placeOf: (shard: string, id: string) => Promise<Place | undefined>,
): Promise<NodeAddress[]> {
  const reported = new Map<string, { readonly reporter: NodeObservation; readonly id: string; readonly host: string }>()
  const addresses = new Map(known.map(({ seen: { address } }) => [`${address.shard}/${address.id}`, address]))
  for (const reporter of reporters) {
    const { shard } = reporter.address
    for (const { id, host } of reporter.info?.value.nodes ?? []) {
      const key = `${shard}/${id}`
      const is = reported.get(key)
      if (parseId(id) !== undefined && (!is || (is.host === '' && host !== '')))
        reported.set(key, { reporter, id, host })
    }
  }
  return await Promise.all(
    [...reported].map(async ([key, { reporter, id, host }]) => {
      const known = addresses.get(key)
      if (known && known.apiUrl !== '') return known
      const { shard, zone, apiUrl, tcp } = reporter.address
      const own = new URL(apiUrl)
      const there = host === '' ? undefined : `${own.protocol}//${bracketed(host)}:${own.port || '80'}`
      const place = there === undefined ? await placeOf(shard, id) : { apiUrl: there, host, port: tcp?.port ?? 0 }
      return addressOf(id, shard, zone, place)
    }),
  )
}

/** Without a place it is known, shown and not asked. */
function addressOf(id: string, shard: string, zone: string, place: Place | undefined): NodeAddress {
  const tcp = place && place.port > 0 ? { host: place.host, port: place.port } : undefined
  return { id, shard, zone, apiUrl: place?.apiUrl ?? '', tcp }
}

/** What a node says of itself may be where it listens, which is no place to go to when that is everywhere. */
function reachable(apiUrl: string): URL | undefined {
  const url = URL.parse(apiUrl)
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  return ['0.0.0.0', '[::]'].includes(url.hostname) ? undefined : url
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/** @throws NodeHttpError when it is no answer of that kind */
export function readAnswer<S extends z.ZodType>(reply: Pick<HttpReply, 'status' | 'body'>, schema: S): z.infer<S> {
  if (reply.status === 401 || reply.status === 403) {
    throw new NodeHttpError(
      'not-allowed',
      `answered ${reply.status}: it wants a token that the control plane does not have`,
    )
  }
  if (reply.status !== 200) throw new NodeHttpError('status', `answered ${reply.status}: ${reply.body.slice(0, 200)}`)
  let value: unknown
  try {
    value = JSON.parse(reply.body)
  } catch (cause) {
    throw new NodeHttpError('garbage', 'the answer is not JSON', cause)
  }
  const { data, error } = schema.safeParse(value)
  if (error) {
    const [issue] = error.issues
    throw new NodeHttpError(
      'garbage',
      `the answer is not what it should be: ${issue?.path.join('.')}: ${issue?.message}`.slice(0, 300),
    )
  }
  return data
}

/** Nothing instead of an answer: it is asked again with the next round, and what is missing is shown as missing. */
async function requestQuietly<T>(request: () => Promise<T>): Promise<T | undefined> {
  try {
    return await request()
  } catch (error) {
    if (error instanceof NodeHttpError) return undefined
    throw error
  }
}

/**
 * Discovers nodes and their addresses: from the registry, from a configured list, and from the member lists of shards.
 * A node that left the registry stays known while its shard counts it as a member: it is down, not removed. If no node
 * of its shard responds, it stays known for a week.
 */
import type { Clock } from '@vacancy/shared'
import { parseId } from '@vacancy/shared'
import { nodeInfoBody, readResolverAnswer, statusBody, topologyBody } from '@vacancy/shared/contract'
import type { z } from 'zod'
import type { RegistryState, Topology } from '../fabric/fabric.ts'
import { type HttpReply, NODE_HTTP, type NodeHttp, NodeHttpError } from '../http/node-http.ts'
import type { OwnTime } from '../http/own-time.ts'
import type { NodeAddress } from './cluster.ts'
import { isUp } from './derive.ts'
import type { NodeObservation } from './observation.ts'

export const DISCOVERY = {
  intervalMs: 5_000,
  timeoutMs: 2_000,
  /** A node that is neither registered nor a member is forgotten after this time without a response. */
  forgetMs: 60_000,
  /** The same, since it was last listed, if no member of its shard responds that could confirm its membership. */
  forgetSilentMs: 7 * 86_400_000,
  nodesMax: 10_000,
} as const

export type DiscoveryConfig = {
  /** Equal registries on one etcd; usually one. */
  readonly registries: readonly string[]
  readonly resolver: string | undefined
  /** `host:port` or `http://host:port`. */
  readonly nodes: readonly string[]
  readonly apiPort: number
  readonly tcpPort: number
  readonly registryToken: string | undefined
  readonly nodeToken: string | undefined
}

/** The source that lists a node; `memory`: none any more. */
export type NamedBy = 'registry' | 'list' | 'member' | 'memory'

export type Found = { readonly address: NodeAddress; readonly by: NamedBy }
/** A node of the previous round, and when it was last listed. */
export type Remembered = { readonly observation: NodeObservation; readonly namedAt: number }

/** The sources of nodes, and the last responses of registry and resolver. */
export type Discovery = {
  readonly config: DiscoveryConfig
  readonly http: NodeHttp
  readonly clock: Clock
  readonly ownTime: OwnTime
  registry: RegistryState
  /** Addresses from the resolver, by shard and node. */
  readonly resolved: Map<string, { readonly host: string; readonly apiPort: number; readonly tcpPort: number }>
  /** Identified nodes of the configured list, by their entry. */
  readonly listed: Map<string, NodeAddress>
}

type Place = { readonly apiUrl: string; readonly host: string; readonly port: number }

/** For an entry of the list whose node has not identified itself yet. */
const UNKNOWN_SHARD = 'unknown'

export function createDiscovery(config: DiscoveryConfig, http: NodeHttp, clock: Clock, ownTime: OwnTime): Discovery {
  return {
    config,
    http,
    clock,
    ownTime,
    registry: {
      address: config.registries[0] ?? null,
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

/** `a,b` as the addresses of registries. */
export function registriesOf(text: string | undefined): readonly string[] {
  return (text ?? '').split(',').flatMap((each) => (each.trim() === '' ? [] : [each.trim().replace(/\/$/, '')]))
}

/**
 * Stays with the registry that responds, as routers do, and goes to the next one when it does not, or when it is cut off
 * from its etcd: it then may not know the newest state.
 */
async function readRegistry(discovery: Discovery): Promise<void> {
  const { config, registry, clock } = discovery
  const { address } = registry
  if (address === null) return
  const now = clock.wallMs()
  const wasHeldUp = discovery.ownTime.watch()
  let stale: { readonly address: string; readonly topology: Topology } | undefined
  let fault: string | undefined
  for (const base of [address, ...config.registries.filter((each) => each !== address)]) {
    try {
      const { topology, isStale } = await fetchTopology(discovery, base)
      if (!isStale) {
        discovery.registry = { address: base, isUp: true, error: '', since: undefined, at: now, topology }
        return
      }
      stale ??= { address: base, topology }
    } catch (error) {
      if (!(error instanceof NodeHttpError)) throw error
      if (error.code === 'timeout' && wasHeldUp()) return
      fault ??= error.message
    }
  }
  discovery.registry = stale
    ? { ...stale, isUp: true, error: '', since: undefined, at: now }
    : // Its last response is kept: nodes are not forgotten because the registry is down.
      { ...registry, isUp: false, error: fault ?? '', since: registry.since ?? now }
}

async function fetchTopology({ http, config }: Discovery, base: string) {
  const reply = await http.request(`${base}/topology`, {
    timeoutMs: DISCOVERY.timeoutMs,
    bytesMax: NODE_HTTP.registryBytesMax,
    token: config.registryToken,
  })
  return { topology: readAnswer(reply, topologyBody), isStale: reply.isStale === true }
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

/** Identifies the nodes of the list: a clustered node reports its id, the id of a standalone one is its address. */
async function listedNodes(discovery: Discovery, known: readonly Remembered[]): Promise<NodeAddress[]> {
  return await Promise.all(
    discovery.config.nodes.map(async (entry) => {
      const reported = discovery.listed.get(entry)
      if (reported) return reported
      const url = new URL(originOf(entry))
      const place = { apiUrl: url.origin, host: hostOf(url), port: discovery.config.tcpPort }
      const identity = await identifyNode(discovery, url.origin)
      if (!identity) {
        // The node at this address before the restart, until a node there identifies itself.
        const before = known.find(({ observation: { address } }) => isNamed(address) && address.apiUrl === url.origin)
        return before?.observation.address ?? addressOf(url.host, UNKNOWN_SHARD, '', place)
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

/** One round: returns every known node. */
export async function discoverNodes(discovery: Discovery, known: readonly Remembered[]): Promise<readonly Found[]> {
  const [, list] = await Promise.all([readRegistry(discovery), listedNodes(discovery, known)])
  const found = new Map<string, Found>()
  const add = (address: NodeAddress, by: NamedBy) => {
    const key = `${address.shard}/${address.id}`
    found.set(key, { address, by: found.get(key)?.by ?? by })
  }
  for (const node of await registeredNodes(discovery)) add(node, 'registry')
  for (const node of list) add(node, 'list')
  const reporters = known
    .map(({ observation }) => observation)
    .filter((observation) => isUp(observation) && observation.info !== undefined)
  for (const node of await membersOf(reporters, known, (shard, id) => placeOf(discovery, shard, id, undefined))) {
    if (!found.has(`${node.shard}/${node.id}`)) add(node, 'member')
  }
  const now = discovery.clock.wallMs()
  const reported = new Set(reporters.flatMap(({ address, info }) => (info?.value.nodes.length ? [address.shard] : [])))
  for (const { observation, namedAt } of known) {
    const { address, answeredAt } = observation
    if (!isNamed(address) || found.has(`${address.shard}/${address.id}`)) continue
    const isHere = answeredAt !== undefined && now - answeredAt <= DISCOVERY.forgetMs
    const isOpen = !reported.has(address.shard) && now - namedAt <= DISCOVERY.forgetSilentMs
    if (isHere || isOpen) add(address, 'memory')
  }
  return [...found.values()].slice(0, DISCOVERY.nodesMax)
}

/** Queries the resolver again for a node that does not respond. */
export function forgetPlace(discovery: Discovery, { shard, id }: NodeAddress): void {
  discovery.resolved.delete(`${shard}/${id}`)
}

const REQUESTS_AT_ONCE = 64

/** An entry of the configured list. */
export function originOf(entry: string): string {
  return new URL(entry.includes('://') ? entry : `http://${entry}`).origin
}

/** Whether it has been identified. */
export function isNamed({ shard }: NodeAddress): boolean {
  return shard !== UNKNOWN_SHARD
}

/** Unregistered members, as listed by responding members of their shard, with addresses from the resolver. */
async function membersOf(
  reporters: readonly NodeObservation[],
  known: readonly Remembered[],
  placeOf: (shard: string, id: string) => Promise<Place | undefined>,
): Promise<NodeAddress[]> {
  const reported = new Map<string, { readonly reporter: NodeObservation; readonly id: string; readonly host: string }>()
  const addresses = new Map(known.map(({ observation: { address } }) => [`${address.shard}/${address.id}`, address]))
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
      const port = own.port || (own.protocol === 'https:' ? '443' : '80')
      const there = host === '' ? undefined : `${own.protocol}//${bracketed(host)}:${port}`
      const place = there === undefined ? await placeOf(shard, id) : { apiUrl: there, host, port: tcp?.port ?? 0 }
      return addressOf(id, shard, zone, place)
    }),
  )
}

/** Without an address a node is listed and shown, but not polled. */
function addressOf(id: string, shard: string, zone: string, place: Place | undefined): NodeAddress {
  const tcp = place && place.port > 0 ? { host: place.host, port: place.port } : undefined
  return { id, shard, zone, apiUrl: place?.apiUrl ?? '', tcp }
}

/** A node may report its listen address. A wildcard address cannot be connected to. */
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

/** @throws NodeHttpError for any other response */
export function readAnswer<S extends z.ZodType>(reply: Pick<HttpReply, 'status' | 'body'>, schema: S): z.infer<S> {
  if (reply.status === 401 || reply.status === 403) {
    throw new NodeHttpError(
      'not-allowed',
      `answered ${reply.status}: it requires a token that the control plane does not have`,
    )
  }
  if (reply.status !== 200) throw new NodeHttpError('status', `answered ${reply.status}: ${reply.body.slice(0, 200)}`)
  let value: unknown
  try {
    value = JSON.parse(reply.body)
  } catch (cause) {
    throw new NodeHttpError('garbage', 'the response is not JSON', cause)
  }
  const { data, error } = schema.safeParse(value)
  if (error) {
    const [issue] = error.issues
    throw new NodeHttpError('garbage', `invalid response: ${issue?.path.join('.')}: ${issue?.message}`.slice(0, 300))
  }
  return data
}

/** Undefined on failure: it is requested again in the next round, and missing data is shown as missing. */
async function requestQuietly<T>(request: () => Promise<T>): Promise<T | undefined> {
  try {
    return await request()
  } catch (error) {
    if (error instanceof NodeHttpError) return undefined
    throw error
  }
}

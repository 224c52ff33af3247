/** Registry entries compared with observations, codec lists, and resolver queries. */

import { createCodecList } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import {
  type FabricComponent,
  type NodeCodecs,
  readResolverAnswer,
  type registryBody,
  registryCodecsBody,
  type registryCodecsView,
  type ShardView,
} from '@vacancy/shared/contract'
import type { z } from 'zod'
import type { RegistryState } from '../fabric/fabric.ts'
import { type NodeHttp, NodeHttpError } from '../http/node-http.ts'
import { time } from './derive.ts'
import { DISCOVERY, readAnswer } from './discovery.ts'
import type { NodeObservation } from './observation.ts'

type Services = z.infer<typeof registryBody>

/** Pure. */
export function servicesOf(
  registry: RegistryState,
  shards: readonly ShardView[],
  components: readonly FabricComponent[],
): Services {
  const { topology } = registry
  const observed = new Map(
    shards.flatMap((shard) => shard.nodes.map((node) => [`${shard.id}/${node.id}`, { shard, node }])),
  )
  const services: Services['services'] = []
  for (const each of topology?.nodes ?? []) {
    const key = `${each.shard}/${each.id}`
    const found = observed.get(key)
    observed.delete(key)
    const isSeen = found !== undefined && found.node.freshness !== 'never' && found.node.freshness !== 'gone'
    services.push({
      ...{ kind: 'node', id: each.id, zone: each.zone, shard: each.shard },
      role: each.role ?? null,
      version: each.version ?? null,
      heartbeatAgeSeconds: each.age_secs,
      seen: isSeen,
      difference:
        found && isSeen ? differenceOf(each, found.node) : 'registered, but it does not respond to the control plane',
    })
  }
  for (const { shard, node } of observed.values()) {
    services.push({
      ...{ kind: 'node', id: node.id, zone: node.zone, shard: shard.id, role: node.role, version: node.version },
      heartbeatAgeSeconds: null,
      seen: node.freshness === 'live' || node.freshness === 'delayed',
      difference: topology ? 'not registered' : '',
    })
  }
  const ages = new Map<string, number>([
    ...(topology?.bridges.map((each) => [`bridge ${each.id}`, each.age_secs] as const) ?? []),
    ...(topology?.routers.map((each) => [`zone-router ${each.id}`, each.age_secs] as const) ?? []),
  ])
  for (const { key, kind, id, zone, shard, version, state, message, differences } of components) {
    if (kind === 'registry' || kind === 'resolver') continue
    services.push({
      ...{ kind: kind === 'zone-router' ? 'router' : kind, id, zone: zone ?? '', shard, role: null, version },
      heartbeatAgeSeconds: ages.get(key) ?? null,
      seen: state === 'ready' || state === 'not-ready' || state === 'unregistered',
      difference: state === 'not-polled' ? message : differences.join('; '),
    })
  }
  return {
    address: registry.address,
    up: registry.isUp,
    error: registry.address === null ? 'no registry is configured' : registry.error,
    at: registry.at === undefined ? null : time(registry.at),
    away: awayOf(registry, components),
    services,
    conflicts: (topology?.conflicts ?? []).map(({ segment, owner_shard: owner, claims }) => ({
      ...{ segment, owner },
      claims: claims.map(({ shard }) => shard),
    })),
  }
}

/** Registries besides the one that is read which do not respond, or cannot keep changes. */
function awayOf({ address }: RegistryState, components: readonly FabricComponent[]): Services['away'] {
  return components.flatMap(({ kind, apiUrl, level, message }) =>
    kind === 'registry' && apiUrl !== null && apiUrl !== address && (level === 'crit' || level === 'warn')
      ? [{ address: apiUrl, message }]
      : [],
  )
}

function differenceOf(
  reported: {
    readonly role?: string | undefined
    readonly version?: string | undefined
    readonly leader_id?: string | undefined
  },
  node: ShardView['nodes'][number],
): string {
  const differs: string[] = []
  if (reported.role !== undefined && node.role !== 'unknown' && reported.role !== node.role)
    differs.push(`reports ${reported.role}, observed as ${node.role}`)
  if (reported.version !== undefined && node.version !== null && reported.version !== node.version) {
    differs.push(`reports version ${reported.version}, runs ${node.version}`)
  }
  return differs.join('; ')
}

/** The codec list of each node compared with the registry's; without one, with the most common list. Pure. */
export function codecsOf(
  shards: readonly ShardView[],
  ofRegistry: NodeCodecs | undefined,
  observations: readonly NodeObservation[],
  address: string | null,
): z.infer<typeof registryCodecsView> {
  const reported = observations.flatMap(({ codecs, address: of }) =>
    codecs ? [{ value: codecs.value, where: `${of.shard}/${of.id}` }] : [],
  )
  const counts = new Map<string, number>()
  for (const { value } of reported) counts.set(value.ordered_hash, (counts.get(value.ordered_hash) ?? 0) + 1)
  const most = [...reported].sort(
    (a, b) => (counts.get(b.value.ordered_hash) as number) - (counts.get(a.value.ordered_hash) as number),
  )[0]
  const codecs = ofRegistry ?? most?.value ?? null
  return {
    codecs,
    source: ofRegistry ? `registry ${address}` : most ? `node ${most.where}` : '',
    nodes: shards.flatMap((shard) =>
      shard.nodes.map(({ id, orderedHash }) => ({
        ...{ shard: shard.id, node: id, orderedHash },
        equal: orderedHash === null || codecs === null ? null : orderedHash === codecs.ordered_hash,
      })),
    ),
  }
}

/** Undefined while the registry does not respond. */
export async function fetchRegistryCodecs(
  http: NodeHttp,
  address: string,
  token: string | undefined,
): Promise<NodeCodecs | undefined> {
  try {
    const reply = await http.request(`${address}/codecs`, { token, timeoutMs: DISCOVERY.timeoutMs })
    const { rate_features: names } = readAnswer(reply, registryCodecsBody)
    const list = listOf(names)
    return {
      rate_features: [...list.names],
      hash: Number(list.hash),
      hash_hex: list.hashHex,
      ordered_hash: list.orderedHash,
    }
  } catch (error) {
    if (error instanceof NodeHttpError) return undefined
    throw error
  }
}

function listOf(names: readonly unknown[]) {
  try {
    return createCodecList(names)
  } catch (cause) {
    throw new NodeHttpError('garbage', `The registry serves an invalid codec list: ${(cause as Error).message}`, cause)
  }
}

export type ResolveRequest = {
  readonly kind: 'node' | 'router' | 'bridge'
  readonly id: string
  readonly shard?: string | undefined
}

/** The resolver's response and its interpretation. */
export async function queryResolver(http: NodeHttp, resolver: string | undefined, request: ResolveRequest) {
  if (resolver === undefined) {
    throw problem('no-resolver')
  }
  if (request.kind === 'node' && request.shard === undefined) {
    throw problem('shard-required', { field: 'shard' })
  }
  const id = encodeURIComponent(request.id)
  const paths = {
    node: `/shards/${encodeURIComponent(request.shard ?? '')}/nodes/${id}`,
    router: `/routers/${id}`,
    bridge: `/bridges/${id}`,
  }
  const url = resolver + paths[request.kind]
  try {
    const { status, body, type, milliseconds } = await http.request(url, { timeoutMs: DISCOVERY.timeoutMs })
    const place = status === 200 ? readResolverAnswer(type, body) : undefined
    const address = place ? `${place.host}${place.port === undefined ? '' : `:${place.port}`}` : null
    const error = place
      ? ''
      : status === 200
        ? 'the response contains no host'
        : status === 404
          ? 'unknown id'
          : `answered ${status}`
    return {
      url,
      status,
      answer: body.slice(0, 4_096),
      address,
      milliseconds: Math.round(milliseconds * 10) / 10,
      error,
    }
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    return { url, status: null, answer: '', address: null, milliseconds: DISCOVERY.timeoutMs, error: error.message }
  }
}

/**
 * Derives the view of the fabric: the state of each component, the connections between them, and what clients lose.
 * Pure. No sentence contains a duration, because it would change every second.
 */

import type {
  FabricComponent,
  FabricEdge,
  FabricKind,
  FabricState,
  Level,
  ShardView,
  TopologyView,
} from '@vacancy/shared/contract'
import { ENDS_REASON } from '@vacancy/shared/node'
import { sentence, zoneText } from '@vacancy/shared/numbers'
import type { RegistryState } from './fabric.ts'
import { FABRIC, type Polled } from './fabric.ts'
import { registers } from './poll.ts'

export type FabricInput = {
  readonly now: number
  readonly registry: RegistryState
  readonly components: readonly Polled[]
  readonly shards: readonly ShardView[]
}

/** A state with its explanation. `isUsable` is undefined while that is not known. */
export type Judged = {
  readonly state: FabricState
  readonly level: Level
  readonly message: string
  readonly isUsable: boolean | undefined
}

/** A timeout may be a pause of the process; a refused connection is none. */
const TIMEOUTS_MIN = 2

/** The first rule that holds. */
export function judge(component: Polled, registryIsUp: boolean): Judged {
  const { kind, apiUrl, registered, reported, failure, missed } = component
  const hasLeft = registers(kind) && registered === undefined
  const isAnswering = reported !== undefined && failure === undefined
  if (hasLeft && !isAnswering) {
    return { state: 'left', level: 'unk', message: 'Left the registry, and does not respond', isUsable: false }
  }
  if (apiUrl === '') {
    return { state: 'not-polled', level: 'unk', message: 'Not polled: it has no api_url', isUsable: undefined }
  }
  if (failure && (missed >= TIMEOUTS_MIN || failure.code !== 'timeout')) {
    return failure.code === 'timeout'
      ? { state: 'not-answering', level: 'crit', message: `Does not answer: ${failure.message}`, isUsable: false }
      : { state: 'unreachable', level: 'crit', message: `Unreachable: ${failure.message}`, isUsable: false }
  }
  if (!reported) return { state: 'reading', level: 'unk', message: 'Being read', isUsable: undefined }
  const other = otherOf(component)
  if (other !== '') return { state: 'other', level: 'crit', message: other, isUsable: false }
  const [reason] = reported.ready?.reasons ?? []
  if (reported.ready?.ready === false) {
    return {
      state: 'not-ready',
      level: 'warn',
      message: `Not ready: ${reason?.message ?? 'no reason given'}`,
      isUsable: true,
    }
  }
  if (hasLeft && registryIsUp) {
    return {
      state: 'unregistered',
      level: 'warn',
      message: 'Responds, but the registry does not list it',
      isUsable: true,
    }
  }
  // Shards that do not serve are shown as theirs, not as those of each component in front of them.
  const end = reported.ready?.reasons?.find(({ name }) => name === ENDS_REASON)
  if (end) return { state: 'ready', level: 'warn', message: `Ready; ${end.message}`, isUsable: true }
  return { state: 'ready', level: 'ok', message: 'Ready', isUsable: true }
}

/** '' or which component answered in its place. */
function otherOf({ kind, id, zone, shard, reported }: Polled): string {
  const ready = reported?.ready
  if (!ready || !registers(kind)) return ''
  const differs =
    (ready.id && ready.id !== id) || (ready.zone && ready.zone !== zone) || (ready.shard && ready.shard !== shard)
  if (!differs) return ''
  const place = [ready.shard, ready.zone].filter(Boolean).join(', ')
  return `Another component answers: ${ready.component ?? ''} ${ready.id ?? ''}${place ? ` (${place})` : ''}`
}

type Known = { readonly component: Polled; readonly judged: Judged }

/** Updates the state and its begin in each component. */
export function deriveFabric(input: FabricInput): TopologyView {
  const { now, registry, components, shards } = input
  const known = components.map((component): Known => {
    const judged = judge(component, registry.isUp)
    if (component.state !== judged.state) {
      component.since = component.state === undefined ? component.since : now
      component.state = judged.state
    }
    return { component, judged }
  })
  known.sort(
    (a, b) =>
      ORDER.indexOf(a.component.kind) - ORDER.indexOf(b.component.kind) ||
      NATURAL.compare(a.component.id, b.component.id),
  )
  const served = shardsOf(input, known)
  return {
    registry: {
      address: registry.address,
      up: registry.isUp,
      error: registry.error,
      warming: registry.topology?.warming ?? false,
    },
    components: known.map((each) => viewOf(each, input, known, served)),
    edges: edgesOf(input, known, shards),
    shards: served,
  }
}

const ORDER: readonly FabricKind[] = ['proxy', 'edge', 'zone-router', 'bridge', 'registry', 'resolver']

function shardsOf({ registry, shards }: FabricInput, known: readonly Known[]): TopologyView['shards'] {
  const listed = registry.topology?.shards ?? {}
  const names = new Set([...Object.keys(listed), ...shards.map(({ id }) => id)])
  return [...names].sort(NATURAL.compare).map((id) => {
    const bridges = known.filter(({ component }) => component.kind === 'bridge' && component.shard === id)
    return {
      id,
      zone: listed[id]?.zone ?? shards.find((shard) => shard.id === id)?.zone ?? '',
      segments: listed[id]?.segments ?? null,
      served: servedBy(bridges),
    }
  })
}

/** Shards in front of which no bridge works. */
export function cutOffShards({ registry, components }: Pick<FabricInput, 'registry' | 'components'>): Set<string> {
  const bridges = components.filter(({ kind }) => kind === 'bridge')
  const byShard = Map.groupBy(bridges, ({ shard = '' }) => shard)
  const cut = new Set<string>()
  for (const [shard, all] of byShard) {
    const known = all.map((component) => ({ component, judged: judge(component, registry.isUp) }))
    if (servedBy(known) === false) cut.add(shard)
  }
  return cut
}

/** Null while none of them is known to work, and one is not known not to. */
function servedBy(known: readonly Known[]): boolean | null {
  if (known.length === 0) return null
  if (known.some(({ judged }) => judged.isUsable === true)) return true
  return known.some(({ judged }) => judged.isUsable === undefined) ? null : false
}

function viewOf(
  { component, judged }: Known,
  { registry }: FabricInput,
  known: readonly Known[],
  shards: TopologyView['shards'],
): FabricComponent {
  const { reported, registered, failure } = component
  const timeoutMs = (registry.topology?.heartbeat_timeout_secs ?? 60) * 1000
  const isLate =
    registered !== undefined &&
    registry.isUp &&
    registry.at !== undefined &&
    registry.at - registered.beatAt > timeoutMs * FABRIC.lateShare
  // Values of a component that does not respond any more no longer hold.
  const current = failure === undefined ? reported : undefined
  return {
    ...{ key: component.key, kind: component.kind, id: component.id },
    ...{ zone: component.zone ?? null, shard: component.shard ?? null },
    apiUrl: component.apiUrl === '' ? null : component.apiUrl,
    version: reported?.version ?? registered?.version ?? null,
    ...{ state: judged.state, level: judged.level, message: judged.message },
    since: new Date(component.since).toISOString(),
    registered: registers(component.kind) ? registered !== undefined : null,
    lateSince: isLate ? new Date(registered.beatAt - (registered.beatAt % 1000)).toISOString() : null,
    differences: differencesOf(component, isLate),
    reasons: current?.ready?.reasons ?? [],
    rates: {
      reads: current?.rates?.reads ?? null,
      writes: current?.rates?.writes ?? null,
      errors: current?.rates?.errors ?? null,
      p99: current?.rates?.p99 ?? null,
    },
    inFlight: current?.counters?.inFlight ?? null,
    connections: current?.counters?.connections ?? null,
    cuts: judged.isUsable === false ? cutsOf(component, known, shards) : [],
    facts: factsOf(component),
  }
}

/** What clients lose when the components with these keys go, beyond what is cut off already: each sentence once. */
export function cutsWithout(input: FabricInput, goes: (key: string) => boolean): string[] {
  const known = input.components.map((component): Known => {
    const judged = judge(component, input.registry.isUp)
    return { component, judged: goes(component.key) ? { ...judged, isUsable: false } : judged }
  })
  const shards = shardsOf(input, known)
  const cuts = known
    .filter(({ component }) => goes(component.key) && judge(component, input.registry.isUp).isUsable !== false)
    .flatMap(({ component }) => cutsOf(component, known, shards))
  return [...new Set(cuts)]
}

function differencesOf({ kind, registered, reported, failure }: Polled, isLate: boolean): string[] {
  const differences: string[] = []
  if (!registers(kind)) return differences
  if (registered && failure) differences.push('The registry lists it, but it does not respond')
  if (registered && isLate && !failure && reported) differences.push('It responds, but its heartbeats are late')
  if (!registered && reported && !failure) differences.push('It responds, but the registry does not list it')
  const version = reported?.version
  if (registered?.version !== undefined && version !== undefined && registered.version !== version)
    differences.push(`The registry has version ${registered.version}, it runs ${version}`)
  return differences
}

function factsOf({ reported }: Polled): FabricComponent['facts'] {
  const ready = reported?.ready
  const facts: (readonly [string, string | undefined])[] = [
    ['Mode', ready?.mode],
    ['Routes', ready?.routes === undefined ? undefined : String(ready.routes)],
    ['Leader', ready?.leader ?? undefined],
    [
      'Registry',
      ready?.registry_up === undefined ? undefined : ready.registry_up ? 'responds' : 'does not respond to it',
    ],
    ['Upstream', ready?.upstream],
  ]
  return facts.flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]))
}

/** What is cut off while it is down: sentences, empty if another one does its work. */
function cutsOf(component: Polled, known: readonly Known[], shards: TopologyView['shards']): string[] {
  const { kind, zone, shard } = component
  const others = known.filter(
    (other) =>
      other.component !== component &&
      other.component.kind === kind &&
      other.component.zone === zone &&
      other.component.shard === shard &&
      other.judged.isUsable !== false,
  )
  const instead = others.map((other) => other.component.id)
  switch (kind) {
    case 'bridge': {
      if (instead.length > 0) return []
      const segments = shards.find(({ id }) => id === shard)?.segments
      const count =
        segments === null || segments === undefined ? '' : ` (${segments} ${segments === 1 ? 'segment' : 'segments'})`
      return [`Shard ${shard}${count}: no bridge is left, reads and writes get 503`]
    }
    case 'zone-router': {
      if (instead.length > 0) return []
      const behind = shards.filter((each) => each.zone === zone)
      const segments = behind.reduce((sum, each) => sum + (each.segments ?? 0), 0)
      return [
        `${sentence(zoneText(zone ?? ''))}: no router is left for ${behind.map(({ id }) => id).join(', ') || 'its shards'} (${segments} ${segments === 1 ? 'segment' : 'segments'})`,
      ]
    }
    case 'edge':
      return instead.length > 0 ? [] : ['All clients: no edge router is left']
    case 'proxy':
      return instead.length > 0 ? [] : ['HTTP clients: no proxy is left']
    case 'registry':
      return instead.length > 0 ? [] : ['New segments and components are not routed. Known routes stay']
    case 'resolver':
      return ['Hosts that move are not found. Known addresses stay']
  }
}

/** The connections that the registry declares, with what both ends report of them. */
function edgesOf({ registry }: FabricInput, known: readonly Known[], shards: readonly ShardView[]): FabricEdge[] {
  const of = (kind: FabricKind) => known.filter(({ component }) => component.kind === kind)
  const [proxies, edges, routers, bridges] = [of('proxy'), of('edge'), of('zone-router'), of('bridge')]
  const found: FabricEdge[] = []
  for (const proxy of proxies) {
    const to = upstreamOf(proxy, edges)
    if (to) found.push(proxyEdge(proxy, to))
  }
  for (const edge of edges) {
    for (const router of routers) found.push(edgeOf(edge, router))
  }
  for (const router of routers) {
    for (const bridge of bridges)
      if (bridge.component.zone === router.component.zone) found.push(edgeOf(router, bridge))
  }
  for (const bridge of bridges) {
    const { shard = '' } = bridge.component
    const view = shards.find(({ id }) => id === shard)
    const ids = new Set([
      ...(registry.topology?.shards[shard]?.nodes ?? []),
      ...(view?.nodes.map(({ id }) => id) ?? []),
      ...(bridge.component.reported?.hops?.map(({ id }) => id) ?? []),
    ])
    for (const id of [...ids].sort(NATURAL.compare)) found.push(nodeEdge(bridge, shard, id, view))
  }
  return found
}

/** The edge router that a proxy sends to: the one at its upstream, or the only one. */
function upstreamOf({ component }: Known, edges: readonly Known[]): Known | undefined {
  if (edges.length === 1) return edges[0]
  const upstream = component.reported?.ready?.upstream
  return edges.find((edge) => {
    const place = tcpOf(edge.component)
    return place !== undefined && upstream === `${place.host}:${place.port}`
  })
}

/** Where an edge router accepts clients, as far as it tells: at the host of its HTTP API. */
export function tcpOf({ apiUrl, reported }: Polled): { readonly host: string; readonly port: number } | undefined {
  const port = reported?.ready?.tcp_port
  const host = URL.parse(apiUrl)?.hostname.replace(/^\[|\]$/g, '')
  return port === undefined || host === undefined ? undefined : { host, port }
}

function proxyEdge(from: Known, to: Known): FabricEdge {
  const ready = from.component.failure ? undefined : from.component.reported?.ready
  const connections = ready?.connections ?? null
  const rates = from.component.failure ? undefined : from.component.reported?.rates
  return {
    from: from.component.key,
    to: to.component.key,
    ...edgeState(from, to.judged, connections, '', undefined),
    connections,
    reads: rates?.reads ?? null,
    writes: rates?.writes ?? null,
    received: receivedBy(to),
  }
}

function edgeOf(from: Known, to: Known): FabricEdge {
  const { id } = to.component
  const reporting = from.component.failure ? undefined : from.component.reported
  const hop = reporting?.hops?.find((each) => each.id === id)
  const sent = reporting?.rates?.sent.get(id)
  return {
    from: from.component.key,
    to: to.component.key,
    ...edgeState(from, to.judged, hop?.connections ?? null, hop?.fault ?? '', reporting?.hops && hop === undefined),
    connections: hop?.connections ?? null,
    reads: sent?.reads ?? null,
    writes: sent?.writes ?? null,
    received: receivedBy(to),
  }
}

function nodeEdge(from: Known, shard: string, id: string, view: ShardView | undefined): FabricEdge {
  const reporting = from.component.failure ? undefined : from.component.reported
  const hop = reporting?.hops?.find((each) => each.id === id)
  const sent = reporting?.rates?.sent.get(id)
  const node = view?.nodes.find((each) => each.id === id)
  const isDown = node?.state === 'unreachable' || node?.state === 'not-answering'
  const judged: Pick<Judged, 'isUsable' | 'message'> = {
    isUsable: node === undefined ? undefined : !isDown,
    message: node?.message ?? '',
  }
  const { queries, writes } = node?.rates ?? { queries: null, writes: null }
  return {
    from: from.component.key,
    to: `node ${shard}/${id}`,
    ...edgeState(from, judged, hop?.connections ?? null, hop?.fault ?? '', reporting?.hops && hop === undefined),
    connections: hop?.connections ?? null,
    reads: sent?.reads ?? null,
    writes: sent?.writes ?? null,
    received: queries === null && writes === null ? null : Math.round(((queries ?? 0) + (writes ?? 0)) * 100) / 100,
  }
}

function receivedBy({ component }: Known): number | null {
  return component.failure ? null : (component.reported?.rates?.received ?? null)
}

function edgeState(
  from: Known,
  to: Pick<Judged, 'isUsable' | 'message'>,
  connections: number | null,
  fault: string,
  isMissing: boolean | undefined,
): Pick<FabricEdge, 'state' | 'level' | 'message'> {
  const { judged, component } = from
  if (judged.isUsable === false) return { state: 'down', level: 'crit', message: `${component.id}: ${judged.message}` }
  if (to.isUsable === false) return { state: 'down', level: 'crit', message: to.message }
  if (connections === null) {
    return isMissing
      ? { state: 'declared', level: 'warn', message: `The registry lists it, ${component.id} does not know it` }
      : { state: 'unknown', level: 'unk', message: `${component.id} does not report its connections` }
  }
  if (connections > 0) return { state: 'live', level: 'ok', message: 'Connected' }
  return { state: 'idle', level: 'warn', message: fault === '' ? 'Not connected' : `Not connected: ${fault}` }
}

/** `b2` before `b10`. */
const NATURAL = new Intl.Collator('en', { numeric: true })

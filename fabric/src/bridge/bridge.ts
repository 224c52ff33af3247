/**
 * The bridge of a shard (docs/design/fabric.md#bridge): writes go to the leader, reads to followers. Which node is
 * which comes from discovery; a node that refuses tells it sooner.
 */

import { json, type Metrics, type MetricsTable, registerMetrics, setTotal } from '@vacancy/shared/node'
import type { Forwarder, Policy } from '../forward/forwarder.ts'
import { wakeHeld } from '../forward/forwarder.ts'
import { isFree, setHops } from '../forward/hops.ts'
import {
  type Component,
  createObservedForwarder,
  isWriteCommand,
  loginRule,
  type Reasons,
  type Service,
  type ServiceOptions,
  type SlowEntries,
  startService,
} from '../forward/service.ts'
import { type Serving, servingOf, toldOf } from '../forward/serving.ts'
import type { Hop, PoolSettings } from '../forward/state.ts'
import { STATUS_SEGMENT, type Status, statusFrame } from '../forward/status.ts'
import { open, type Route } from '../http.ts'
import type { Registration } from '../register.ts'
import type { RegistryClient } from '../registry-client.ts'
import type { Resolver } from '../resolve.ts'
import type { Discovery, DiscoveryStep } from './discovery.ts'
import { BRIDGE_METRICS } from './metrics.ts'
import type { Topology } from './topology.ts'

/** What bridging needs. */
type BridgingOptions = {
  readonly version: string
  readonly id: string
  readonly zone: string
  readonly shard: string
  readonly login: Policy['login']
  readonly reads: 'followers' | 'any' | 'leader'
  readonly lagMax: number
  /** 0 = reads are not hedged. */
  readonly hedgeAfterMs: number
  readonly linksPerNode: number
  readonly token: () => string | undefined
  /** Nodes are reached with TLS. */
  readonly isUpstreamTls: boolean
  readonly responseBytesMax: number
  readonly queuedBytesMax: number
}

export type BridgeOptions = ServiceOptions &
  Omit<BridgingOptions, 'login'> & {
    /** Calls back with its counts while it runs. */
    readonly openDiscovery: (counts: {
      readonly onRound: (result: 'ok' | 'no_leader' | 'failed') => void
      readonly onError: (step: DiscoveryStep) => void
    }) => Discovery
    readonly registry: RegistryClient
    readonly resolver: Resolver
    readonly registration: Registration
  }

/** Until LOGIN is answered. */
const GREETING_MS = 2_000

/** A bridge without its listeners, as the model runs it. */
export type Bridge = {
  readonly options: BridgingOptions
  readonly forwarder: Forwarder
  readonly discovery: Pick<Discovery, 'topology' | 'onChange' | 'look' | 'setUrgent' | 'health'>
  readonly unfollow: () => void
  topology: Topology
  /** A topology has been known once: requests wait for the next one. */
  hasTopology: boolean
  writeHops: readonly Hop[]
  /** In order of preference: the first group with an open hop serves a read. */
  readGroups: readonly (readonly Hop[])[]
  /** The leader that answered 405: it serves no reads. */
  readsRefusedBy: Hop | undefined
  leaderChanges: number
}

/** Builds the bridge; the caller creates its forwarder, which reports changes of its hops. */
export function createBridge(
  options: BridgingOptions,
  discovery: Bridge['discovery'],
  create: (policy: Policy, pool: PoolSettings, onHopChange: () => void) => Forwarder,
): Bridge {
  let isBuilt = false
  const forwarder = create(
    policyOf(options, () => bridge),
    poolOf(options),
    () => {
      if (isBuilt) noteLinks(bridge)
    },
  )
  const bridge: Bridge = {
    options,
    forwarder,
    discovery,
    unfollow: discovery.onChange((topology) => useTopology(bridge, topology)),
    topology: { nodes: new Map() },
    hasTopology: false,
    writeHops: [],
    readGroups: [],
    readsRefusedBy: undefined,
    leaderChanges: 0,
  }
  isBuilt = true
  useTopology(bridge, discovery.topology())
  return bridge
}

/** @throws VacancyError port_taken */
export async function startBridge(options: BridgeOptions): Promise<Service> {
  const { registry, resolver, registration } = options
  const metrics = registerMetrics(BRIDGE_METRICS, { process: true })
  const discovery = options.openDiscovery({
    onRound: (result) => metrics.of.bridge_discovery_rounds_total.inc({ result }),
    onError: (step) => metrics.of.bridge_discovery_errors_total.inc({ step }),
  })
  let slow: () => SlowEntries = () => []
  const bridge = createBridge({ ...options, login: loginRule(options) }, discovery, (policy, pool, onHopChange) => {
    const observed = createObservedForwarder({
      ...options,
      policy,
      pool,
      metrics: metrics as unknown as Metrics<MetricsTable>,
      onHopChange,
    })
    slow = observed.slow
    return observed.forwarder
  })
  metrics.onCollect(() => {
    const { of } = metrics
    of.bridge_node_role.reset()
    of.bridge_node_lag_entries.reset()
    for (const { id, role, lag } of discovery.topology().nodes.values()) {
      of.bridge_node_role.set({ node: id, role }, 1)
      if (lag !== undefined) of.bridge_node_lag_entries.set({ node: id }, lag)
    }
    setTotal(of.bridge_leader_changes_total, bridge.leaderChanges)
    setTotal(of.bridge_hedges_total, bridge.forwarder.counters.hedges)
    setTotal(of.bridge_hedges_won_total, bridge.forwarder.counters.hedgesWon)
    of.bridge_registry_up.set(registry.health().isUp ? 1 : 0)
    setTotal(of.bridge_resolver_errors_total, resolver.counters().failed + resolver.counters().unknown)
    const heartbeatMs = registration.ageMs()
    if (heartbeatMs !== undefined) of.bridge_heartbeat_age_seconds.set(heartbeatMs / 1000)
  })
  const component: Component = {
    forwarder: bridge.forwarder,
    metrics: metrics as unknown as Metrics<MetricsTable>,
    reasons: () => reasonsOf(bridge, registration),
    serving: () => bridgeServing(bridge),
    facts: () => factsOf(bridge),
    routes: pagesOf(bridge),
    leave: async () => {
      bridge.unfollow()
      await registration.stop()
    },
  }
  const service = await startService(options, component, slow)
  return {
    ...service,
    async stop() {
      await service.stop()
      await discovery.stop()
      resolver.stop()
      registry.close()
    },
  }
}

function useTopology(bridge: Bridge, topology: Topology): void {
  const { forwarder, options } = bridge
  const before = bridge.topology.leader
  if (before !== undefined && topology.leader !== undefined && topology.leader !== before) bridge.leaderChanges++
  bridge.topology = topology
  bridge.hasTopology ||= topology.leader !== undefined
  const addresses = [...topology.nodes.values()].map(
    ({ id, address }) => [id, { host: address.host, port: address.tcpPort }] as const,
  )
  setHops(forwarder.pool, new Map(addresses))
  const hopOf = (id: string) => forwarder.pool.hops.get(id) as Hop
  const leader = topology.leader === undefined ? [] : [hopOf(topology.leader)]
  if (leader[0] !== bridge.writeHops[0]) bridge.readsRefusedBy = undefined
  const followers = [...topology.nodes.values()].filter(({ role }) => role === 'follower')
  const near = followers.filter(({ lag }) => lag === undefined || lag <= options.lagMax).map(({ id }) => hopOf(id))
  const far = followers.filter(({ lag }) => lag !== undefined && lag > options.lagMax).map(({ id }) => hopOf(id))
  bridge.writeHops = leader
  bridge.readGroups = readGroupsOf(options.reads, leader, near, far)
  noteLinks(bridge)
  wakeHeld(forwarder)
}

function readGroupsOf(
  reads: BridgingOptions['reads'],
  leader: readonly Hop[],
  near: readonly Hop[],
  far: readonly Hop[],
): readonly (readonly Hop[])[] {
  switch (reads) {
    case 'leader':
      return [leader]
    case 'any':
      return [[...leader, ...near], far]
    case 'followers':
      return [near, leader, far]
  }
}

/** Discovery runs faster while a connection is missing that requests need. */
function noteLinks(bridge: Bridge): void {
  const { discovery, writeHops, topology, forwarder } = bridge
  const followers = [...topology.nodes.values()].filter(({ role }) => role === 'follower')
  const hasFollower = followers.some(({ id }) => {
    return isUp(forwarder.pool.hops.get(id))
  })
  discovery.setUrgent(!writeHops.some(isUp) || (topology.nodes.size > 1 && !hasFollower))
}

function policyOf(options: BridgingOptions, built: () => Bridge): Policy {
  return {
    forwardsEnvelopes: false,
    servesRouters: true,
    sendsRoutersBack: false,
    takesBareFrames: true,
    isWrite: isWriteCommand,
    laneKey: () => '',
    localReply: (segment, _command, id) =>
      segment === STATUS_SEGMENT
        ? statusFrame(id, { ...ownStatus(options), ...toldOf(bridgeServing(built())) })
        : undefined,
    route(_segment, isWrite) {
      const bridge = built()
      if (!bridge.hasTopology) return { code: 503 }
      return { hops: isWrite ? bridge.writeHops : readHops(bridge) }
    },
    noteFailure(hop, failure, isWrite) {
      const bridge = built()
      const code = failure.how === 'refused' ? failure.code : 0
      if (code === 405 && !isWrite && bridge.writeHops.includes(hop)) bridge.readsRefusedBy = hop
      if (failure.how === 'lost' || code === 308 || code === 405 || code === 503) bridge.discovery.look()
    },
    login: options.login,
    hedgeAfterMs: options.hedgeAfterMs,
  }
}

function readHops(bridge: Bridge): readonly Hop[] {
  const groups = bridge.readGroups.map((group) =>
    bridge.readsRefusedBy === undefined ? group : group.filter((hop) => hop !== bridge.readsRefusedBy),
  )
  return groups.find((group) => group.some(isFree)) ?? groups.flat()
}

/** A leader that no round has found for this long leads no more, though its connection is open. */
const LEADERLESS_MS = 5_000

const isUp = (hop: Hop | undefined): boolean => hop?.links.some(({ state }) => state === 'open') ?? false

function hasLeader({ discovery, writeHops }: Bridge): boolean {
  const { ageMs = 0 } = discovery.health()
  return ageMs <= LEADERLESS_MS && writeHops.some(isUp)
}

/** Whether the shard serves, for the components before it. */
export function bridgeServing(bridge: Bridge): Serving {
  const { options, topology, forwarder } = bridge
  const shard = options.shard || 'unnamed'
  if (hasLeader(bridge)) return servingOf(shard, undefined)
  const serves = [...topology.nodes.values()].some(
    ({ id, role }) => role !== 'other' && isUp(forwarder.pool.hops.get(id)),
  )
  return servingOf(shard, serves ? 'no_leader' : 'down')
}

function ownStatus({ id, zone, shard, version }: BridgingOptions): Status {
  return { component: 'bridge', id, zone, shard, version }
}

function poolOf(options: BridgingOptions): PoolSettings {
  return {
    peer: 'node',
    linksPerHop: options.linksPerNode,
    frameBytesMax: options.responseBytesMax,
    queuedBytesMax: options.queuedBytesMax,
    keepaliveMs: 0,
    greetingMs: GREETING_MS,
    token: options.token,
    provesNodes: options.isUpstreamTls,
    statusFault: () => '',
    // Discovery gives the address of every node.
    resolve: (id) => Promise.reject(new Error(`the address of node ${id} is not known`)),
    resolveAgain: () => {},
  }
}

function reasonsOf(bridge: Bridge, registration: Registration): Reasons {
  const { discovery, writeHops } = bridge
  const { fault, isCached } = discovery.health()
  const leader = writeHops[0]
  const noLeader =
    leader === undefined
      ? 'No leader is known.'
      : isUp(leader)
        ? `${leader.id} no longer leads:`
        : `Leader ${leader.id} is not reachable: ${leader.lastFault || 'connecting'}`
  const refusal = registration.refusal()
  return [
    ...(hasLeader(bridge) ? [] : [{ name: 'leader', message: fault === '' ? noLeader : `${noLeader} ${fault}` }]),
    ...(isCached ? [{ name: 'topology', message: 'The topology is from the cache and not confirmed yet.' }] : []),
    ...(refusal === '' ? [] : [{ name: 'registration', message: `The registry refuses this bridge: ${refusal}` }]),
  ]
}

function factsOf({ options, discovery }: Bridge) {
  const { leader, nodes } = discovery.topology()
  return {
    component: 'bridge',
    id: options.id,
    zone: options.zone,
    shard: options.shard,
    leader: leader ?? null,
    followers: [...nodes.values()].filter(({ role }) => role === 'follower').map(({ id }) => id),
  }
}

function pagesOf(bridge: Bridge): readonly Route[] {
  return [
    open('/topology', () => json(200, { ...factsOf(bridge), nodes: nodesOf(bridge) })),
    open('/status', () => json(200, { ...factsOf(bridge), version: bridge.options.version })),
  ]
}

function nodesOf({ discovery, forwarder }: Bridge) {
  const nowMs = forwarder.world.nowMs()
  return [...discovery.topology().nodes.values()].map(({ id, address, role, lag, health }) => {
    const hop = forwarder.pool.hops.get(id)
    return {
      id,
      host: address.host,
      tcp_port: address.tcpPort,
      api_port: address.apiPort,
      role,
      health,
      lag: lag ?? null,
      connections: hop?.links.filter(({ state }) => state === 'open').length ?? 0,
      in_flight: hop?.inFlight ?? 0,
      ejected_for_ms: hop ? Math.max(0, Math.round(hop.ejectedUntilMs - nowMs)) : 0,
      fault: hop?.lastFault ?? '',
    }
  })
}

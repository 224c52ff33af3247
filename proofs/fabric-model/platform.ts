/**
 * The components of a run and what they know of each other: processes, addresses, tables and discovery, each with a
 * delay of its own, so that what a component knows is often out of date.
 */

import { betweenDecades, chance, pick, type Random } from '@vacancy/testkit/random'
import { scheduleAt } from '@vacancy/testkit/scheduler'
import { type Bridge, createBridge } from '../../fabric/src/bridge/bridge.ts'
import type { Topology } from '../../fabric/src/bridge/topology.ts'
import {
  acceptClient,
  createForwarder,
  type Forwarder,
  type ForwardLimits,
  type Policy,
} from '../../fabric/src/forward/forwarder.ts'
import { ANYONE, type Inbound, type PoolSettings, type Request } from '../../fabric/src/forward/state.ts'
import type { Address, World } from '../../fabric/src/forward/world.ts'
import type { Lookup } from '../../fabric/src/router/datasets.ts'
import { createRouter, type Router, type RoutingOptions } from '../../fabric/src/router/router.ts'
import { type Counts, count } from './counts.ts'
import { acceptForeign } from './foreign.ts'
import { createProcess, later, type Net, type Process, worldOf } from './net.ts'
import { type Law, numberOf, trace } from './ops.ts'
import { keyOf, type Shard } from './shard.ts'

type PlatformKnobs = {
  readonly limits: ForwardLimits
  /** Deadline of the edge; those behind it are shorter. */
  readonly deadlineMs: number
  readonly linksPerHop: number
  readonly keepaliveMs: number
  /** Of bridges; 0 = reads are not hedged. */
  readonly hedgeAfterMs: number
  readonly hopQueuedBytesMax: number
  readonly responseBytesMax: number
  /** Most of the time until news arrive. */
  readonly newsUs: number
  readonly resolverFaultP: number
  readonly foreignP: number
  readonly foreignFaultP: number
}

export type Role = 'edge' | 'zone' | 'bridge'

export type Component = {
  readonly platform: Platform
  readonly role: Role
  readonly id: string
  readonly zone: string
  /** The shard of a bridge. */
  readonly shard: Shard | undefined
  address: Address
  process: Process
  isForeign: boolean
  forwarder: Forwarder | undefined
  unfollow: () => void
  /** Tells it of new tables or addresses. */
  news: Set<() => void>
  moved: Set<(id: string) => void>
  readonly inbounds: Set<Inbound>
  readonly knownAddresses: Map<string, Address>
}

export type Platform = {
  readonly net: Net
  readonly law: Law
  readonly counts: Counts
  readonly random: Random
  readonly knobs: PlatformKnobs
  readonly shards: Shard[]
  /** The truth: segment → shard. Without an entry it is unknown. */
  readonly segments: Map<string, Shard>
  readonly components: Component[]
  /** Of all lives of the components. */
  readonly forwarders: Forwarder[]
  /** Taken from the tables. */
  readonly hidden: Set<string>
}

export function createComponent(platform: Platform, role: Role, id: string, zone: string, shard?: Shard): Component {
  const { net, knobs, random } = platform
  const component: Component = {
    ...{ platform, role, id, zone, shard, address: { host: id, port: 9000 }, process: createProcess(net, id) },
    ...{ forwarder: undefined, unfollow: () => {}, news: new Set(), moved: new Set(), inbounds: new Set() },
    isForeign: role !== 'edge' && chance(random, knobs.foreignP),
    knownAddresses: new Map(),
  }
  platform.components.push(component)
  return component
}

/** Starts a component at its address. */
export function start(component: Component): void {
  const { platform, id, role, address } = component
  const { net, law, random, knobs } = platform
  const process = createProcess(net, id)
  component.process = process
  component.news = new Set()
  component.moved = new Set()
  component.forwarder = undefined
  component.unfollow = () => {}
  net.listeners.set(keyOf(address), process)
  if (component.isForeign) {
    const foreign = {
      ...{ kind: role === 'zone' ? ('router' as const) : ('bridge' as const), process, law, random },
      faultP: knobs.foreignFaultP,
      shardOf: (segment: string) => shardFor(component, segment),
      isMute: chance(random, 0.3),
    }
    process.accept = (end) => acceptForeign(foreign, end)
    return
  }
  const world = worldOf(process)
  const forwarder = role === 'bridge' ? startBridge(component, world) : startRouter(component, world)
  component.forwarder = forwarder
  platform.forwarders.push(forwarder)
  process.accept = (end, remote) => {
    if (forwarder.isDraining) {
      end.destroy()
      return { data: () => {}, closed: () => {} }
    }
    const before = new Set(forwarder.inbounds)
    const events = acceptClient(forwarder, end, remote)
    for (const inbound of forwarder.inbounds) if (!before.has(inbound)) component.inbounds.add(inbound)
    return events
  }
}

function shardFor(component: Component, segment: string): Shard | undefined {
  const shard = component.platform.segments.get(segment)
  if (component.role === 'bridge') return component.shard
  return shard?.zone === component.zone ? shard : undefined
}

function forwarderOf(component: Component, world: World) {
  const { limits, deadlineMs } = component.platform.knobs
  const share = component.role === 'edge' ? 1 : component.role === 'zone' ? 16 / 18 : 14 / 18
  return (policy: Policy, pool: PoolSettings, onHopChange: () => void) =>
    createForwarder({
      ...{ world, policy, pool, onHopChange, requireLogin: false },
      onEnd({ request, result }) {
        const { law } = component.platform
        if (law.trail !== undefined)
          trace(law, numberOf(request.frame, request.inner), trailOf(component, request, result))
      },
      limits: { ...limits, deadlineMs: Math.round(deadlineMs * share) },
    })
}

function trailOf({ id }: Component, { lastHop, tries }: Request, result: string): string {
  return `${id}: ${result} after ${tries} tries, the last one to ${lastHop?.id ?? 'no hop'} (${lastHop?.kind ?? ''})`
}

/** What a router knows. */
type View = { routes: Map<string, Lookup>; hops: readonly string[]; isLoaded: boolean }

function startRouter(component: Component, world: World): Forwarder {
  const { platform, role, id, zone, process } = component
  const { knobs, random, net, counts } = platform
  const view: View = { routes: new Map(), hops: [], isLoaded: false }
  const listeners = new Set<() => void>()
  const load = () => {
    if (!process.isAlive) return
    readTables(component, view)
    for (const listener of listeners) listener()
  }
  component.news.add(() => void later(process, betweenDecades(random, 1_000, knobs.newsUs), load))
  if (chance(random, 0.5)) readTables(component, view)
  else {
    count(counts, 'no table yet')
    later(process, betweenDecades(random, 1_000, 500_000), load)
  }
  const tables: RoutingOptions['tables'] = {
    lookup: (segment) => (view.isLoaded ? (view.routes.get(segment) ?? UNKNOWN) : UNLOADED),
    places: () => new Map(),
    hops: () => view.hops,
    codecs: () => undefined,
    segments: () => [],
    health: () => {
      throw new Error('not used by the model')
    },
    onChange(callback) {
      listeners.add(callback)
      return () => listeners.delete(callback)
    },
    refreshNow() {
      count(counts, 'recheck')
      net.hasMicrotasks = true
      return new Promise((resolve) => {
        const us = betweenDecades(random, 500, 1_500_000)
        if (us > 500_000) count(counts, 'recheck too slow')
        later(process, us, () => {
          load()
          net.hasMicrotasks = true
          resolve()
        })
      })
    },
  }
  const options: RoutingOptions = {
    ...{ world, version: '0', mode: role === 'edge' ? 'edge' : 'zone', tables, resolver: resolverOf(component) },
    ...{ zone: role === 'zone' ? zone : undefined, id: role === 'zone' ? id : undefined, login: () => () => ANYONE },
    ...{ hopPort: 9000, linksPerHop: knobs.linksPerHop, keepaliveMs: knobs.keepaliveMs },
    ...{ responseBytesMax: knobs.responseBytesMax, queuedBytesMax: knobs.hopQueuedBytesMax },
  }
  const create = forwarderOf(component, world)
  const router: Router = createRouter(options, (policy, pool) => create(policy, pool, () => {}))
  component.unfollow = router.unfollow
  return router.forwarder
}

const UNKNOWN: Lookup = { kind: 'unknown' }
const UNLOADED: Lookup = { kind: 'unloaded' }

/** Reads the truth. */
function readTables({ platform, role, zone }: Component, view: View): void {
  const { components, hidden, segments } = platform
  const hops = new Map<string, string[]>()
  for (const one of components) {
    if (hidden.has(one.id)) continue
    const via =
      role === 'edge' && one.role === 'zone' ? one.zone : role === 'zone' && one.role === 'bridge' ? one.shard?.id : ''
    if (!via || (role === 'zone' && one.zone !== zone)) continue
    hops.set(via, [...(hops.get(via) ?? []), one.id])
  }
  const results = new Map<string, Lookup>([...hops].map(([via, ids]) => [via, { kind: 'hops', via, hops: ids }]))
  view.routes = new Map()
  for (const [segment, shard] of segments) {
    if (role === 'zone' && shard.zone !== zone) continue
    const via = role === 'edge' ? shard.zone : shard.id
    view.routes.set(segment, results.get(via) ?? { kind: 'no_hops', via })
  }
  view.hops = [...hops.values()].flat().sort()
  view.isLoaded = true
}

function resolverOf(component: Component): RoutingOptions['resolver'] {
  const { platform, process, knownAddresses } = component
  const { net, random, counts, knobs } = platform
  const listeners = new Set<Parameters<RoutingOptions['resolver']['onChange']>[0]>()
  const kind = component.role === 'edge' ? 'router' : 'bridge'
  const tell = (id: string) => {
    const target = platform.components.find((one) => one.id === id)
    if (target === undefined) return
    later(process, betweenDecades(random, 1_000, knobs.newsUs), () => {
      if (knownAddresses.get(id) === target.address) return
      knownAddresses.set(id, target.address)
      for (const listener of listeners) listener({ kind, id }, target.address)
    })
  }
  component.moved.add(tell)
  return {
    find({ id }) {
      net.hasMicrotasks = true
      const address = addressFor(component, id)
      const isSlow = !net.isHealed && chance(random, 0.3)
      if (isSlow) count(counts, 'resolver is late')
      return new Promise((resolve) => {
        later(process, isSlow ? betweenDecades(random, 1_000, 300_000) : 0, () => {
          net.hasMicrotasks = true
          if (address === undefined) return resolve({ kind: 'failed', reason: 'the resolver does not answer' })
          knownAddresses.set(id, address)
          resolve({ kind: 'found', address })
        })
      })
    },
    again({ id }) {
      tell(id)
      return new Promise(() => {})
    },
    onChange(callback) {
      listeners.add(callback)
      return () => listeners.delete(callback)
    },
  }
}

/** The address of a hop as the resolver tells it; sometimes that of another component. */
function addressFor(component: Component, id: string): Address | undefined {
  const { platform, role } = component
  const { net, random, counts, knobs, components } = platform
  const target = components.find((one) => one.id === id)
  if (target === undefined) return undefined
  if (net.isHealed || !chance(random, knobs.resolverFaultP)) return target.address
  if (chance(random, 0.4)) {
    count(counts, 'resolver fails')
    return undefined
  }
  if (chance(random, 0.5)) {
    if (role === 'edge') count(counts, 'resolver leads to the edge itself')
    return component.address
  }
  // An existing component does not name itself, so nothing would notice.
  const others = components.filter((one) => one.role === target.role && one.id !== id && !one.isForeign)
  if (others.length === 0) return target.address
  count(counts, 'resolver leads to another shard')
  return pick(random, others).address
}

function startBridge(component: Component, world: World): Forwarder {
  const { platform, id, zone, process, shard } = component
  const { knobs, random, counts, net } = platform
  if (shard === undefined) throw new Error('a bridge has a shard')
  let topology: Topology = { nodes: new Map() }
  const listeners = new Set<(topology: Topology) => void>()
  let isUrgent = true
  let lastUs = -1_000_000
  let isLooking = false
  const round = () => {
    if (isLooking) return
    isLooking = true
    const waitUs = Math.max(0, lastUs + 100_000 - net.scheduler.nowUs)
    later(process, waitUs + betweenDecades(random, 500, 100_000), () => {
      isLooking = false
      lastUs = net.scheduler.nowUs
      count(counts, 'discovery round')
      topology = topologyOf(platform, shard, topology)
      for (const listener of listeners) listener(topology)
    })
  }
  const poll = () => {
    round()
    later(process, isUrgent ? 300_000 : 2_000_000, poll)
  }
  later(process, 0, poll)
  const create = forwarderOf(component, world)
  const bridge: Bridge = createBridge(
    {
      ...{
        version: '0',
        id,
        zone,
        shard: shard.id,
        login: () => () => ANYONE,
        token: () => undefined,
        isUpstreamTls: false,
        lagMax: 100,
        hedgeAfterMs: knobs.hedgeAfterMs,
      },
      // A leader that refuses reads leaves `leader` without any node.
      reads: pick(random, ['followers', 'followers', 'any', shard.leaderReads ? 'leader' : 'any'] as const),
      linksPerNode: 2,
      ...{ responseBytesMax: knobs.responseBytesMax, queuedBytesMax: knobs.hopQueuedBytesMax },
    },
    {
      topology: () => topology,
      onChange(callback) {
        listeners.add(callback)
        return () => listeners.delete(callback)
      },
      look: round,
      setUrgent: (urgent) => {
        isUrgent = urgent
      },
      health: () => ({ ageMs: undefined, isCached: false, fault: '' }),
    },
    create,
  )
  component.unfollow = bridge.unfollow
  return bridge.forwarder
}

/** What a round of discovery finds. */
function topologyOf(platform: Platform, shard: Shard, before: Topology): Topology {
  const { net, random, counts } = platform
  let { leader } = shard
  if (!net.isHealed && shard.previousLeader !== undefined && chance(random, 0.2)) {
    count(counts, 'stale leader')
    leader = shard.previousLeader
  }
  const nodes: [string, Topology['nodes'] extends ReadonlyMap<string, infer N> ? N : never][] = []
  for (const { id, address, process } of shard.nodes) {
    // A node that does not answer is left out.
    if (!process.isAlive || process.isGone || (!net.isHealed && chance(random, 0.03))) continue
    const role = id === leader?.id ? 'leader' : 'follower'
    const lag = chance(random, 0.2) ? random.below(200) : 0
    const place = { host: address.host, tcpPort: address.port, apiPort: 8080 }
    nodes.push([id, { id, role, address: place, lag, health: role === 'leader' ? 'active_leader' : 'active_follower' }])
  }
  const all = new Map(nodes)
  if (leader !== undefined && all.has(leader.id)) return { leader: leader.id, nodes: all }
  const kept = before.leader === undefined ? undefined : before.nodes.get(before.leader)
  if (kept === undefined) return { nodes: all }
  all.set(kept.id, kept)
  return { leader: kept.id, nodes: all }
}

/** The truth changed: everybody learns it, sooner or later. */
export function spreadNews({ components }: Platform): void {
  for (const { news } of components) for (const tell of news) tell()
}

/** A component has another address. */
export function spreadAddress({ components, net }: Platform, id: string): void {
  for (const { moved } of components) {
    for (const tell of moved) scheduleAt(net.scheduler, net.scheduler.nowUs, () => tell(id))
  }
}

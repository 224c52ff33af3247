/**
 * Follows the nodes of a shard: who leads, who follows, where they listen.
 *
 *   round   ids of the last good round, or of the registry → resolver → /healthz, /node-info, /peers, /cluster/info,
 *           /status of each, at once → ids of /peers that are new, in the same way → topology
 *   pause   2 s; 300 ms while the bridge lacks a live leader or follower; none after look(), but 100 ms between rounds
 */

import { type Clock, parseId, type Schedule } from '@vacancy/shared'
import { shardNodesBody } from '@vacancy/shared/contract'
import type { HttpCaller, Log } from '@vacancy/shared/node'
import { z } from 'zod'
import { openCacheFile } from '../cache-file.ts'
import { type Loop, startLoop } from '../loop.ts'
import type { RegistryClient } from '../registry-client.ts'
import type { Resolver } from '../resolve.ts'
import { type ProbeStep, probeNode, type Unserved } from './probe.ts'
import { isSameTopology, NO_TOPOLOGY, type NodeReport, nextTopology, type Topology } from './topology.ts'

const port = z.int().min(1).max(65_535)

/** The topology of a shard as JSON, for the cache of a bridge. Pure. */
export const storedTopology = z.object({
  format: z.literal(1),
  shard: z.string(),
  zone: z.string(),
  nodes: z.array(
    z.object({
      id: z.string(),
      host: z.string(),
      tcp_port: port,
      api_port: port,
      role: z.enum(['leader', 'follower', 'other']),
      health: z.string(),
    }),
  ),
})
type StoredTopology = z.infer<typeof storedTopology>

export function storeTopology({ nodes }: Topology, shard: string, zone: string): StoredTopology {
  return {
    format: 1,
    shard,
    zone,
    nodes: [...nodes.values()].map(({ id, address, role, health }) => ({
      id,
      host: address.host,
      tcp_port: address.tcpPort,
      api_port: address.apiPort,
      role,
      health,
    })),
  }
}

/** Lags are not stored: they are those of another time. */
export function topologyFrom({ nodes }: StoredTopology): Topology {
  const leader = nodes.find(({ role }) => role === 'leader')?.id
  return {
    ...(leader !== undefined && { leader }),
    nodes: new Map(
      nodes.map(({ id, host, tcp_port: tcpPort, api_port: apiPort, role, health }) => [
        id,
        { id, address: { host, tcpPort, apiPort }, role: role === 'leader' && id !== leader ? 'other' : role, health },
      ]),
    ),
  }
}

export type DiscoveryOptions = {
  /** '' = any, where the source knows no other. */
  readonly shard: string
  /** '' = any. */
  readonly zone: string
  readonly registry: Pick<RegistryClient, 'get'>
  readonly resolver: Pick<Resolver, 'find' | 'again'>
  /** Calls the nodes' HTTP API. */
  readonly nodes: HttpCaller
  readonly scheme: 'http' | 'https'
  /** For nodes whose resolver answer has no port. */
  readonly ports: { readonly tcp: number; readonly api: number }
  /** `--node-probe-interval-sec`, in ms; default 2,000. */
  readonly intervalMs: number
  /** `--http-timeout-ms`; default 2,000. */
  readonly timeoutMs: number
  readonly cacheDir?: string | undefined
  readonly clock: Clock
  readonly schedule: Schedule
  readonly log: Log
  /** For metrics. */
  readonly onRound?: (result: 'ok' | 'no_leader') => void
  readonly onError?: (step: DiscoveryStep) => void
}

/** The step that failed for a node that a round left out. `identity`: another shard, zone or node id than expected. */
export type DiscoveryStep = 'registry' | ProbeStep

type DiscoveryHealth = {
  /** Milliseconds since the last round with a leader; undefined before the first. */
  readonly ageMs: number | undefined
  /** The topology is from the cache and not yet confirmed. */
  readonly isCached: boolean
  /** Why the last round found no leader; '' when it found one. */
  readonly fault: string
}

export type Discovery = {
  topology(): Topology
  /** Called when the topology differs from the last one in anything but lag. @returns ends it */
  onChange(callback: (topology: Topology) => void): () => void
  /** Starts a round at once, at most each 100 ms, after 308, 405, 503 or a closed connection. */
  look(): void
  /** True while the bridge has no live leader or no live follower connection: a round each 300 ms. */
  setUrgent(isUrgent: boolean): void
  health(): DiscoveryHealth
  /** Waits for a running round and a running write of the cache. */
  stop(): Promise<void>
}

const DISCOVERY_MS = {
  urgent: 300,
  /** Least time between the beginnings of two rounds. */
  gap: 100,
  /** Interval of registry lookups besides: `/peers` may not be served. */
  registry: 30_000,
} as const
/** Most nodes probed in a round. */
const PROBED_MAX = 256

type State = ReturnType<typeof createState>

/** Begins at once. Reads the cache before it returns. */
export function openDiscovery(options: DiscoveryOptions): Discovery {
  const state = createState(options)
  loadCache(state)
  const loop = startLoop(options.schedule, () => round(state))
  state.look = () => {
    if (state.isWanted) return
    state.isWanted = true
    hurry(state, loop, DISCOVERY_MS.gap)
  }
  return {
    topology: () => state.topology,
    onChange(callback) {
      state.callbacks.add(callback)
      return () => void state.callbacks.delete(callback)
    },
    look: () => state.look(),
    setUrgent(isUrgent) {
      if (state.isUrgent === isUrgent) return
      state.isUrgent = isUrgent
      if (isUrgent && !state.isWanted) hurry(state, loop, DISCOVERY_MS.urgent)
    },
    health: () => ({
      ageMs: state.foundMs === undefined ? undefined : options.clock.monotonicMs() - state.foundMs,
      isCached: state.isCached,
      fault: state.fault,
    }),
    async stop() {
      state.stopping.abort()
      await loop.stop()
      await state.cache?.flush()
    },
  }
}

function createState(options: DiscoveryOptions) {
  const { cacheDir, shard, log } = options
  const cache =
    cacheDir === undefined
      ? undefined
      : openCacheFile({
          folder: cacheDir,
          file: `topology-${encodeURIComponent(shard)}.json`,
          name: 'the topology',
          schema: storedTopology,
          log,
        })
  return {
    options,
    cache,
    callbacks: new Set<(topology: Topology) => void>(),
    stopping: new AbortController(),
    /** What is wrong with a node, by id, so that each fault is logged once. */
    faults: new Map<string, string>(),
    /** Paths that nodes do not serve. */
    unserved: new Map() as Unserved,
    topology: NO_TOPOLOGY,
    /** Ids that answered in the last good round. */
    seen: [] as readonly string[],
    wasFound: false,
    /** Ids that the registry named last. */
    registered: [] as readonly string[],
    registryCall: undefined as Promise<void> | undefined,
    registryMs: Number.NEGATIVE_INFINITY,
    roundMs: Number.NEGATIVE_INFINITY,
    foundMs: undefined as number | undefined,
    isCached: false,
    isUrgent: false,
    isWanted: false,
    fault: 'no round yet',
    look: () => {},
  }
}

/** The next round begins a time after the last one began. A running round computes its own pause. */
function hurry({ options: { clock }, roundMs }: State, loop: Loop, spacingMs: number): void {
  if (!loop.isRunning()) loop.wake(Math.max(0, roundMs + spacingMs - clock.monotonicMs()))
}

/** One round. @returns the pause before the next one */
async function round(state: State): Promise<number> {
  const { clock, intervalMs, log, onRound, shard } = state.options
  state.roundMs = clock.monotonicMs()
  state.isWanted = false
  const probed = new Set<string>()
  const reports = await probeAll(state, await firstIds(state), probed)
  if (state.stopping.signal.aborted) return 0
  const before = state.topology
  const { topology, isFound } = nextTopology(before, reports, probed)
  onRound?.(isFound ? 'ok' : 'no_leader')
  if (isFound) {
    state.seen = reports.map(({ id }) => id)
    state.foundMs = clock.monotonicMs()
    state.isCached = false
  } else if (state.wasFound) log.warn({ shard, probed: probed.size, answered: reports.length }, 'no leader found')
  state.fault = isFound ? '' : faultOf(state, probed, reports)
  state.wasFound = isFound
  state.topology = topology
  if (!isSameTopology(before, topology)) changed(state, before)
  const elapsedMs = clock.monotonicMs() - state.roundMs
  const spacingMs = state.isWanted ? DISCOVERY_MS.gap : state.isUrgent ? DISCOVERY_MS.urgent : intervalMs
  return Math.max(0, spacingMs - elapsedMs)
}

function faultOf({ faults }: State, probed: ReadonlySet<string>, reports: readonly NodeReport[]): string {
  if (probed.size === 0) return 'no node of the shard is known'
  if (reports.length > 0) return `${reports.length} of ${probed.size} nodes answer and agree on no leader`
  const [fault = 'no answer'] = [...probed].flatMap((id) => faults.get(id) ?? [])
  return `none of ${probed.size} nodes answers: ${fault}`
}

function changed(state: State, before: Topology): void {
  const { topology, options, cache } = state
  const { log, shard, zone } = options
  if (before.leader !== topology.leader)
    log.info({ shard, before: before.leader, leader: topology.leader }, 'leader changed')
  cache?.save(() => storeTopology(state.topology, shard, zone))
  for (const callback of [...state.callbacks]) callback(topology)
}

/**
 * The ids to begin with: those of the last good round, and of the registry where that was not good, and now and then.
 * A registry that does not respond holds up only a bridge that knows no node.
 */
async function firstIds(state: State): Promise<readonly string[]> {
  const { clock } = state.options
  const known = new Set([...state.seen, ...(state.wasFound ? [] : state.topology.nodes.keys())])
  if (!state.wasFound || clock.monotonicMs() - state.registryMs >= DISCOVERY_MS.registry) {
    state.registryCall ??= readRegistry(state)
    if (known.size === 0 && state.registered.length === 0) await state.registryCall
  }
  return [...new Set([...known, ...state.registered])]
}

async function readRegistry(state: State): Promise<void> {
  const { clock, registry, shard, onError, timeoutMs } = state.options
  const path = `/shards/${encodeURIComponent(shard)}/nodes`
  const reply = await registry.get(path, shardNodesBody, { timeoutMs, signal: state.stopping.signal })
  state.registryMs = clock.monotonicMs()
  state.registryCall = undefined
  if (reply.kind === 'failed') onError?.('registry')
  // 404: no node of the shard is registered.
  if (reply.kind === 'refused') state.registered = []
  if (reply.kind !== 'ok') return
  const isNews = reply.body.nodes.some((id) => !state.registered.includes(id) && !state.seen.includes(id))
  state.registered = reply.body.nodes
  if (isNews) state.look()
}

/** Probes these nodes, then those that they name. */
async function probeAll(state: State, first: readonly string[], probed: Set<string>): Promise<readonly NodeReport[]> {
  const reports: NodeReport[] = []
  let next = first
  for (let pass = 0; pass < 2 && next.length > 0; pass++) {
    const ids = next.filter((id) => !probed.has(id) && parseId(id) !== undefined).slice(0, PROBED_MAX - probed.size)
    for (const id of ids) probed.add(id)
    const results = await Promise.all(ids.map((id) => probe(state, id)))
    const answered = results.filter((result) => result !== undefined)
    reports.push(...answered.map(({ report }) => report))
    next = [...new Set(answered.flatMap(({ peers }) => peers))]
  }
  return reports
}

async function probe(
  state: State,
  id: string,
): Promise<{ readonly report: NodeReport; readonly peers: readonly string[] } | undefined> {
  const { options, faults, unserved, stopping } = state
  const result = await probeNode({ ...options, id, unserved, signal: stopping.signal })
  if (result.kind === 'ok') {
    if (faults.delete(id)) options.log.info({ node: id }, 'node answers again')
    return result
  }
  if (stopping.signal.aborted) return undefined
  options.onError?.(result.step)
  const fault = `${id}: ${result.step}: ${result.reason}`
  const isNew = !faults.get(id)?.startsWith(`${id}: ${result.step}`)
  faults.set(id, fault)
  if (isNew && result.step === 'identity')
    options.log.error({ node: id, host: result.host, reason: result.reason }, 'the resolver named a wrong node')
  else if (isNew) options.log.warn({ node: id, step: result.step, reason: result.reason }, 'node left out')
  return undefined
}

function loadCache(state: State): void {
  const { shard, zone, log } = state.options
  const stored = state.cache?.load()
  if (stored === undefined || stored.shard !== shard || stored.zone !== zone) return
  state.topology = topologyFrom(stored)
  state.isCached = true
  log.info({ nodes: state.topology.nodes.size, leader: state.topology.leader }, 'topology loaded from the cache')
}

/**
 * The router (docs/design/fabric.md#router): a segment leads to a zone and its routers (edge mode), or to a shard and
 * its bridges (zone mode). The tables come from the registry, the hosts from the resolver.
 */

import { json, type Metrics, type MetricsTable, registerMetrics, setTotal } from '@vacancy/shared/node'
import { CODECS_SEGMENT, encodeReply, SEGMENTS_SEGMENT } from '@vacancy/shared/wire'
import type { Forwarder, Policy, Route as Way } from '../forward/forwarder.ts'
import { wakeHeld } from '../forward/forwarder.ts'
import { errorFrame } from '../forward/frames.ts'
import { moveHop, setHops } from '../forward/hops.ts'
import {
  type Component,
  createObservedForwarder,
  isWriteCommand,
  loginRule,
  type Reasons,
  type Service,
  type ServiceOptions,
  type SlowEntries,
  servingReasons,
  startService,
} from '../forward/service.ts'
import { type Serving, servingAll, servingBehind, toldOf } from '../forward/serving.ts'
import type { Hop, PoolSettings } from '../forward/state.ts'
import { STATUS_SEGMENT, type Status, statusFrame } from '../forward/status.ts'
import type { Address, World } from '../forward/world.ts'
import { open, type Route } from '../http.ts'
import type { Registration } from '../register.ts'
import type { RegistryClient } from '../registry-client.ts'
import type { Resolver, ResolveTarget } from '../resolve.ts'
import type { Lookup, RouterMode } from './datasets.ts'
import { ROUTER_METRICS } from './metrics.ts'
import type { Tables } from './refresh.ts'

/** What routing needs. */
export type RoutingOptions = {
  readonly world: World
  readonly version: string
  readonly mode: RouterMode
  /** In zone mode. */
  readonly zone: string | undefined
  readonly id: string | undefined
  readonly tables: Pick<
    Tables,
    'lookup' | 'places' | 'hops' | 'codecs' | 'segments' | 'refreshNow' | 'onChange' | 'health'
  >
  readonly resolver: Pick<Resolver, 'find' | 'again' | 'onChange'>
  readonly login: Policy['login']
  readonly hopPort: number
  readonly linksPerHop: number
  readonly keepaliveMs: number
  readonly responseBytesMax: number
  readonly queuedBytesMax: number
}

export type RouterOptions = ServiceOptions &
  Omit<RoutingOptions, 'login'> & {
    readonly tables: Tables
    readonly registry: RegistryClient
    readonly resolver: Resolver
    /** In zone mode. */
    readonly registration: Registration | undefined
  }

/** How long a request waits for newer routes after a hop answered 404. */
const RECHECK_MS = 500
/** Until a hop has answered `__status__`. */
const GREETING_MS = 1_000

/** A router without its listeners, as the model runs it. */
export type Router = {
  readonly options: RoutingOptions
  readonly forwarder: Forwarder
  /** Hops by the list of their ids, as the table holds it. */
  ways: WeakMap<readonly string[], readonly Hop[]>
  segmentsReply: { readonly of: readonly unknown[]; readonly frame: Buffer } | undefined
  /** Ends following the tables and the resolver. */
  readonly unfollow: () => void
}

/** Builds the router; the caller creates its forwarder. */
export function createRouter(
  options: RoutingOptions,
  create: (policy: Policy, pool: PoolSettings) => Forwarder,
): Router {
  const { tables, resolver } = options
  const policy = policyOf(options, () => router)
  const forwarder = create(policy, poolOf(options))
  const useTable = () => {
    setHops(forwarder.pool, new Map(tables.hops().map((id) => [id, undefined])))
    router.ways = new WeakMap()
    wakeHeld(forwarder)
  }
  const unfollowTables = tables.onChange(() => useTable())
  const unfollowHosts = resolver.onChange((target, address) => {
    const hop = forwarder.pool.hops.get(target.id)
    if (hop === undefined || target.kind !== kindOf(options.mode)) return
    if (hop.address?.host === address.host && hop.address.port === (address.port ?? options.hopPort)) return
    moveHop(forwarder.pool, hop)
  })
  const router: Router = {
    options,
    forwarder,
    ways: new WeakMap(),
    segmentsReply: undefined,
    unfollow: () => {
      unfollowTables()
      unfollowHosts()
    },
  }
  useTable()
  return router
}

/** @throws VacancyError port_taken */
export async function startRouter(options: RouterOptions): Promise<Service> {
  const { tables, resolver, registry, registration } = options
  const metrics = registerMetrics(ROUTER_METRICS, { process: true })
  let slow: () => SlowEntries = () => []
  const router = createRouter({ ...options, login: loginRule(options) }, (policy, pool) => {
    const observed = createObservedForwarder({
      ...options,
      policy,
      pool,
      metrics: metrics as unknown as Metrics<MetricsTable>,
      onHopChange: () => {},
    })
    slow = observed.slow
    return observed.forwarder
  })
  metrics.onCollect(() => {
    const { of } = metrics
    const { routes, ageMs } = tables.health()
    of.router_routes.set(routes)
    if (ageMs !== undefined) of.router_table_age_seconds.set(ageMs / 1000)
    of.router_registry_up.set(registry.health().isUp ? 1 : 0)
    setTotal(of.router_resolver_errors_total, resolver.counters().failed + resolver.counters().unknown)
    const heartbeatMs = registration?.ageMs()
    if (heartbeatMs !== undefined) of.router_heartbeat_age_seconds.set(heartbeatMs / 1000)
  })
  const component: Component = {
    forwarder: router.forwarder,
    metrics: metrics as unknown as Metrics<MetricsTable>,
    reasons: () => reasonsOf(router, registration),
    serving: () => routerServing(router),
    facts: () => factsOf(router),
    routes: pagesOf(router),
    leave: async () => {
      router.unfollow()
      await registration?.stop()
    },
  }
  const service = await startService(options, component, slow)
  return {
    ...service,
    async stop() {
      await service.stop()
      await tables.stop()
      resolver.stop()
      registry.close()
    },
  }
}

function kindOf(mode: RouterMode): 'router' | 'bridge' {
  return mode === 'edge' ? 'router' : 'bridge'
}

function ownStatus({ mode, zone, id, version }: RoutingOptions): Status {
  return { component: 'router', id: id ?? '', zone: zone ?? '', mode, version }
}

function policyOf(options: RoutingOptions, router: () => Router): Policy {
  const { tables, mode } = options
  return {
    forwardsEnvelopes: true,
    servesRouters: mode === 'zone',
    sendsRoutersBack: mode === 'zone',
    takesBareFrames: false,
    isWrite: isWriteCommand,
    laneKey: (segment) => segment,
    localReply(segment, _command, id) {
      switch (segment) {
        case STATUS_SEGMENT:
          return statusFrame(id, { ...ownStatus(options), ...toldOf(routerServing(router())) })
        case CODECS_SEGMENT: {
          const codecs = tables.codecs()
          if (codecs === undefined) return errorFrame(id, '503')
          return replyFrame(encodeReply('GETCODECS', id, { rateFeatures: [...codecs.names] }, NO_CONTEXT))
        }
        case SEGMENTS_SEGMENT:
          return tables.health().isLoaded ? segmentsFrame(router(), id) : errorFrame(id, '503')
        default:
          return undefined
      }
    },
    route: (segment) => wayOf(router(), tables.lookup(segment)),
    noteFailure: () => {},
    ...(mode === 'edge' && { recheck: (segment: string) => recheck(options, segment) }),
    login: options.login,
  }
}

const NO_CONTEXT = { codecs: undefined }

function replyFrame(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function segmentsFrame(router: Router, id: number): Buffer {
  const of = router.options.tables.segments()
  if (router.segmentsReply?.of !== of) {
    const segments = of.map(({ name, count }) => ({ segment: name, propertyCount: count }))
    router.segmentsReply = { of, frame: replyFrame(encodeReply('GETSEGMENTS', 0, { segments }, NO_CONTEXT)) }
  }
  const frame = Buffer.from(router.segmentsReply.frame)
  frame.writeUInt32LE(id, 1)
  return frame
}

const NO_HOPS: Way = { hops: [] }

function wayOf(router: Router, lookup: Lookup): Way {
  switch (lookup.kind) {
    case 'unknown':
      return { code: 404 }
    case 'unloaded':
    case 'no_hops':
      return NO_HOPS
    case 'hops': {
      let hops = router.ways.get(lookup.hops)
      if (hops === undefined) {
        const { pool } = router.forwarder
        hops = lookup.hops.map((id) => pool.hops.get(id)).filter((hop) => hop !== undefined)
        router.ways.set(lookup.hops, hops)
      }
      return { hops }
    }
  }
}

/** A zone router does not know the segment: whether newer routes lead elsewhere. */
async function recheck(options: RoutingOptions, segment: string): Promise<boolean> {
  const before = keyOf(options.tables.lookup(segment))
  let stopTimer = () => {}
  const timeout = new Promise<void>((resolve) => {
    stopTimer = options.world.after(RECHECK_MS, resolve)
  })
  await Promise.race([options.tables.refreshNow(), timeout])
  stopTimer()
  return keyOf(options.tables.lookup(segment)) !== before
}

function keyOf(lookup: Lookup): string {
  return lookup.kind === 'hops' ? `${lookup.via} ${lookup.hops.join(' ')}` : lookup.kind
}

function poolOf(options: RoutingOptions): PoolSettings {
  const { mode, resolver, hopPort, zone } = options
  const targetOf = (id: string): ResolveTarget => ({ kind: kindOf(mode), id })
  return {
    peer: kindOf(mode),
    linksPerHop: options.linksPerHop,
    frameBytesMax: options.responseBytesMax,
    queuedBytesMax: options.queuedBytesMax,
    keepaliveMs: options.keepaliveMs,
    greetingMs: GREETING_MS,
    token: () => undefined,
    statusFault: (id, status) => statusFault(mode, zone, id, status),
    async resolve(id): Promise<Address> {
      const found = await resolver.find(targetOf(id))
      if (found.kind !== 'found') throw new Error(found.reason)
      return { host: found.address.host, port: found.address.port ?? hopPort }
    },
    resolveAgain: (id) => void resolver.again(targetOf(id)),
  }
}

/** What is wrong with a component that answered in the place of the hop `id`; '' = nothing. */
function statusFault(mode: RouterMode, zone: string | undefined, id: string, status: Status): string {
  const found = `${status.mode ?? ''} ${status.component} ${status.id}`.trim()
  if (mode === 'edge') {
    return status.component === 'router' && status.mode === 'zone' && status.id === id
      ? ''
      : `zone router ${id} expected, found ${found}`
  }
  if (status.component !== 'bridge' || status.id !== id) return `bridge ${id} expected, found ${found}`
  return status.zone === zone ? '' : `bridge ${id} is of zone ${status.zone}, not ${zone}`
}

/** Which shards behind the router serve, as the components before them tell it. */
function routerServing({ options, forwarder: { pool } }: Router): Serving {
  // Segments without a shard are no shard.
  const known = [...options.tables.places()].filter(([via]) => via !== '')
  const places = known.map(([via, lookup]) => {
    const hops = lookup.kind === 'hops' ? lookup.hops.flatMap((id) => pool.hops.get(id) ?? []) : []
    return servingBehind(options.mode === 'edge' ? `zone ${via}` : via, hops)
  })
  return servingAll(places)
}

function reasonsOf(router: Router, registration: Registration | undefined): Reasons {
  const { options, forwarder } = router
  const reasons = [...options.tables.health().reasons]
  const hops = [...forwarder.pool.hops.values()]
  const isUp = hops.some(({ links }) => links.some(({ state }) => state === 'open'))
  const noHop = hops.length === 0 ? 'No next hop is registered.' : `No next hop is reachable: ${faultsOf(hops)}`
  const refusal = registration?.refusal() ?? ''
  return [
    ...reasons,
    ...(isUp ? [] : [{ name: 'hops', message: noHop }]),
    ...(isUp ? servingReasons(routerServing(router)) : []),
    ...(refusal === '' ? [] : [{ name: 'registration', message: `The registry refuses this router: ${refusal}` }]),
  ]
}

function faultsOf(hops: readonly Hop[]): string {
  const shown = hops.slice(0, 3).map(({ id, lastFault }) => `${id}: ${lastFault || 'connecting'}`)
  return `${shown.join('; ')}${hops.length > 3 ? `; and ${hops.length - 3} more` : ''}`
}

function factsOf({ options, forwarder }: Router) {
  const { routes, ageMs, registryUp } = options.tables.health()
  return {
    component: 'router',
    mode: options.mode,
    id: options.id ?? null,
    zone: options.zone ?? null,
    routes,
    table_age_secs: ageMs === undefined ? null : Math.round(ageMs / 1000),
    registry_up: registryUp,
    hops: forwarder.pool.hops.size,
  }
}

function pagesOf(router: Router): readonly Route[] {
  const { options } = router
  return [
    open(
      '/routes',
      ({ parameters }) => {
        const segment = parameters.get('segment')
        if (segment === null || segment === '')
          return json(400, { error: 'segment is required, as in /routes?segment=NAME' })
        const lookup = options.tables.lookup(segment)
        const hops = lookup.kind === 'hops' ? lookup.hops : []
        const via = 'via' in lookup ? { [options.mode === 'edge' ? 'zone' : 'shard']: lookup.via } : {}
        const body = { segment, route: lookup.kind, ...via, hops: hops.map((id) => hopView(router, id)) }
        return json(lookup.kind === 'unknown' ? 404 : 200, body)
      },
      ['segment'],
    ),
    open('/hops', () => json(200, { hops: [...router.forwarder.pool.hops.keys()].map((id) => hopView(router, id)) })),
    open('/status', () => json(200, { ...factsOf(router), version: options.version })),
  ]
}

function hopView(router: Router, id: string) {
  const hop = router.forwarder.pool.hops.get(id)
  if (hop === undefined) return { id, address: null, connections: 0, in_flight: 0 }
  const nowMs = router.forwarder.world.nowMs()
  return {
    id,
    address: hop.address === undefined ? null : `${hop.address.host}:${hop.address.port}`,
    kind: hop.kind,
    connections: hop.links.filter(({ state }) => state === 'open').length,
    in_flight: hop.inFlight,
    ejected_for_ms: Math.max(0, Math.round(hop.ejectedUntilMs - nowMs)),
    fault: hop.lastFault,
  }
}

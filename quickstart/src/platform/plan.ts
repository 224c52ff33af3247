/** The processes of a quick start: their names, zones, shards, addresses and published ports. Pure. */

/** Each level includes the ones before it. */
export const LEVELS = ['cluster', 'bridge', 'zone', 'edge', 'full'] as const
export type Level = (typeof LEVELS)[number]

/** With more shards the ports of their nodes would meet that of the registry. */
export const SHARDS_MAX = 8
export const NODES_MAX = 9
export const HOST = '127.0.0.1'
const STANDARD = {
  tcp: 7777,
  api: 8080,
  quic: 17_777,
  hopTcp: 9000,
  hopApi: 9100,
  resolver: 9090,
  proxy: 8777,
} as const
const REGISTRY_PORT = 8081
const EDGE_PORT = 9200
/** First HTTP ports of bridges, zone routers and edges where all share one address. */
const API_PORTS = { bridge: 9300, zone: 9400, edge: 9500 } as const
const QUIC_PORTS = 17_800
/** Last part of the addresses 127.`network`.0.x of the processes that belong to no shard. */
const LAST = { registry: 1, resolver: 2, registryOfTwo: 3, proxy: 11 } as const

/** What a platform is made of. */
export type Shape = {
  readonly shards: number
  /** At most one per shard. */
  readonly zones: number
  readonly nodesPerShard: number
}

export type Spec = Shape & {
  readonly level: Level
  /** Two bridges per shard, zone routers per zone, edges and proxies; with etcd also two registries. */
  readonly ha: boolean
  /** Of an etcd that keeps the state of the registries; empty: the registry keeps it in a file. */
  readonly etcdEndpoints: readonly string[]
  /** Processes listen on 127.`network`.… and the next three networks. */
  readonly network: number
  /** Added to every published port. */
  readonly portOffset: number
  /** Everything listens on 127.0.0.1, directly on the published ports. */
  readonly isOneAddress: boolean
}

export type Address = { readonly host: string; readonly port: number }

export const KINDS = ['registry', 'resolver', 'node', 'bridge', 'zone-router', 'edge-router', 'proxy'] as const
/** `standalone`: a node that is no member of a shard. */
export type Kind = (typeof KINDS)[number] | 'standalone' | 'control-plane' | 'queue-sample'

export type Component = {
  readonly name: string
  readonly kind: Kind
  readonly zone?: string
  readonly shard?: string
  /** A node that starts without the snapshot and downloads it. */
  readonly isEmpty?: boolean
  /** A node that is no initial voter. */
  readonly isLearner?: boolean
  /** The port that its callers use. */
  readonly main: Address
  /** Its HTTP API with `/ready`; the same as `main` for HTTP services. */
  readonly api: Address
  /** Between nodes. */
  readonly quic?: Address
  /** Ports on 127.0.0.1 that lead to it. */
  readonly published: readonly Published[]
}

export type Published = { readonly port: number; readonly to: Address; readonly what: string }

export type Plan = {
  readonly spec: Spec
  readonly components: readonly Component[]
  /** Nodes have other ports than the standard ones, so the resolver names them. */
  readonly hasPorts: boolean
}

export const shardName = (shard: number): string => `shard${shard + 1}`
const zoneName = (zone: number): string => `zone${zone + 1}`
/** The zone of a shard, both counted from 0. */
const zoneOf = (shard: number, { zones }: Shape): number => shard % zones
const nodeName = (shard: number, node: number): string => `node-${shard}-${node}`

/** Whether a level has what another one adds. */
export function includes(level: Level, other: Level): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(other)
}

/** All processes, in the order in which they start. */
export function planOf(spec: Spec): Plan {
  const { level, shards, zones, nodesPerShard, ha, etcdEndpoints } = spec
  const each = ha ? 2 : 1
  const components = [
    ...(ha && etcdEndpoints.length > 0 ? range(2).map((at) => registry(spec, at)) : [registry(spec)]),
    resolver(spec),
    ...range(shards).flatMap((shard) => range(nodesPerShard).map((at) => node(spec, shard, at))),
    ...(includes(level, 'bridge')
      ? range(shards).flatMap((shard) => range(each).map((at) => bridge(spec, shard, at)))
      : []),
    ...(includes(level, 'zone') ? range(zones).flatMap((zone) => range(each).map((at) => router(spec, zone, at))) : []),
    ...(includes(level, 'edge') ? range(each).map((at) => edge(spec, at)) : []),
    ...(includes(level, 'full') ? range(each).map((at) => proxy(spec, at)) : []),
  ]
  return { spec, components, hasPorts: spec.isOneAddress }
}

/** The shard of `npm start`: three voters, of which two have the snapshot, and a learner. */
export const SHARD = 'quickstart'
export const LEARNER = 'n4'
const NODES = ['n1', 'n2', 'n3', LEARNER] as const
/** Distance between the ports of two attempts. */
const PORT_STEP = 100
const ONE_SHARD: Spec = {
  level: 'cluster',
  shards: 1,
  zones: 1,
  nodesPerShard: 3,
  ha: false,
  etcdEndpoints: [],
  network: 0,
  portOffset: 0,
  isOneAddress: false,
}

/**
 * A shard on the standard ports, each node on an address of its own.
 *
 * @param block 127.0.`block`.1 is the first address
 * @param attempt 0 for the standard ports; others when these are taken on all addresses
 */
export function shardPlan({
  block,
  attempt,
  isOneAddress,
}: {
  readonly block: number
  readonly attempt: number
  readonly isOneAddress: boolean
}): Plan {
  const address = (last: number, standard: number, at = 0): Address => ({
    host: isOneAddress ? HOST : `127.0.${block + attempt}.${last}`,
    port: standard + attempt * PORT_STEP + (isOneAddress ? at : 0),
  })
  const nodes = NODES.map((name, at): Component => {
    const [main, api, quic] = [STANDARD.tcp, STANDARD.api, STANDARD.quic].map((port) => address(at + 1, port, at))
    const place = { main: main as Address, api: api as Address, quic: quic as Address, published: [] }
    return { name, kind: 'node', zone: 'zone-1', shard: SHARD, isEmpty: at > 1, isLearner: name === LEARNER, ...place }
  })
  const components = [part('registry', address(100, 8090)), part('resolver', address(101, STANDARD.resolver)), ...nodes]
  return { spec: { ...ONE_SHARD, isOneAddress }, components, hasPorts: true }
}

/** One standalone node. */
export function nodePlan(ports: { readonly tcp: number; readonly api: number }): Plan {
  const [main, api] = [ports.tcp, ports.api].map((port) => ({ host: HOST, port })) as [Address, Address]
  const node: Component = { name: 'node', kind: 'standalone', shard: SHARD, main, api, published: [] }
  return { spec: { ...ONE_SHARD, isOneAddress: true }, components: [node], hasPorts: true }
}

/** With control plane, console and job queue. @param hasJobs also producers and workers of sample jobs */
export function withConsole(plan: Plan, port: number, hasJobs: boolean): Plan {
  const kinds = ['control-plane', ...(hasJobs ? ['queue-sample' as const] : [])] as const
  return { ...plan, components: [...plan.components, ...kinds.map((kind) => part(kind, { host: HOST, port }))] }
}

function part(kind: Kind, address: Address): Component {
  return { name: kind, kind, main: address, api: address, published: [] }
}

const range = (length: number): number[] => Array.from({ length }, (_, at) => at)

/** @param digits parts of the address after 127 */
function hostOf({ isOneAddress }: Spec, ...digits: readonly [number, number, number]): string {
  return isOneAddress ? HOST : ['127', ...digits].join('.')
}

/** The standard port on an address of its own; on the shared one the published port. */
function portOf({ isOneAddress, portOffset }: Spec, standard: number, published: number): number {
  return isOneAddress ? published + portOffset : standard
}

/** Nothing to forward where the process listens on the published port itself. */
function publishedBy(spec: Spec, ports: readonly (readonly [port: number, to: Address, what: string])[]): Published[] {
  return spec.isOneAddress ? [] : ports.map(([port, to, what]) => ({ port: port + spec.portOffset, to, what }))
}

/** @param at of two */
function registry(spec: Spec, at?: number): Component {
  const published = REGISTRY_PORT + (at ?? 0)
  const main = {
    host: hostOf(spec, spec.network, 0, at === 1 ? LAST.registryOfTwo : LAST.registry),
    port: portOf(spec, STANDARD.api, published),
  }
  return {
    name: at === undefined ? 'registry' : `registry-${at}`,
    kind: 'registry',
    main,
    api: main,
    published: publishedBy(spec, [[published, main, 'HTTP']]),
  }
}

function resolver(spec: Spec): Component {
  const { resolver: port } = STANDARD
  const main = { host: hostOf(spec, spec.network, 0, LAST.resolver), port: portOf(spec, port, port) }
  return { name: 'resolver', kind: 'resolver', main, api: main, published: publishedBy(spec, [[port, main, 'HTTP']]) }
}

function node(spec: Spec, shard: number, at: number): Component {
  const host = hostOf(spec, spec.network, shard + 1, at + 1)
  const digits = 10 * shard + at
  const main = { host, port: portOf(spec, STANDARD.tcp, 7800 + digits) }
  const api = { host, port: portOf(spec, STANDARD.api, 8000 + digits) }
  const quic = { host, port: portOf(spec, STANDARD.quic, QUIC_PORTS + digits) }
  return {
    name: nodeName(shard, at),
    kind: 'node',
    zone: zoneName(zoneOf(shard, spec)),
    shard: shardName(shard),
    main,
    api,
    quic,
    published: publishedBy(spec, [
      [7800 + digits, main, 'TCP'],
      [8000 + digits, api, 'HTTP'],
    ]),
  }
}

function bridge(spec: Spec, shard: number, at: number): Component {
  const host = hostOf(spec, spec.network + 1, shard + 1, at + 1)
  const index = 2 * shard + at
  return {
    name: spec.ha ? `bridge-${shard}-${at}` : `bridge-${shard}`,
    kind: 'bridge',
    zone: zoneName(zoneOf(shard, spec)),
    shard: shardName(shard),
    ...hop(spec, host, STANDARD.hopTcp + index, API_PORTS.bridge + index),
  }
}

function router(spec: Spec, zone: number, at: number): Component {
  const host = hostOf(spec, spec.network + 2, zone + 1, at + 1)
  const index = 2 * zone + at
  return {
    name: spec.ha ? `router-zone-${zone}-${at}` : `router-zone-${zone}`,
    kind: 'zone-router',
    zone: zoneName(zone),
    ...hop(spec, host, STANDARD.hopApi + index, API_PORTS.zone + index),
  }
}

function edge(spec: Spec, at: number): Component {
  const host = hostOf(spec, spec.network + 2, 0, at + 1)
  return {
    name: spec.ha ? `router-edge-${at}` : 'router-edge',
    kind: 'edge-router',
    ...hop(spec, host, EDGE_PORT + at, API_PORTS.edge + at),
  }
}

function hop(
  spec: Spec,
  host: string,
  tcpPort: number,
  apiPort: number,
): Pick<Component, 'main' | 'api' | 'published'> {
  const main = { host, port: portOf(spec, STANDARD.hopTcp, tcpPort) }
  const api = { host, port: portOf(spec, STANDARD.hopApi, apiPort) }
  return { main, api, published: publishedBy(spec, [[tcpPort, main, 'TCP']]) }
}

function proxy(spec: Spec, at: number): Component {
  const published = STANDARD.proxy + at
  const main = {
    host: hostOf(spec, spec.network, 0, LAST.proxy + at),
    port: portOf(spec, STANDARD.proxy, published),
  }
  return {
    name: spec.ha ? `proxy-${at}` : 'proxy',
    kind: 'proxy',
    main,
    api: main,
    published: publishedBy(spec, [[published, main, 'HTTP']]),
  }
}

/** Longest pause between two starts in an order from a seed. */
const PAUSE_MS_MAX = 1_000

/** An order of starts that depends on nothing but a seed, with the pause before each. */
export function startOrder(
  components: readonly Component[],
  seed: number,
): { readonly component: Component; readonly pauseMs: number }[] {
  const random = randomOf(seed)
  return components
    .map((component) => ({ component, pauseMs: Math.floor(random() * PAUSE_MS_MAX), rank: random() }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ component, pauseMs }) => ({ component, pauseMs }))
}

/** Numbers from 0 to below 1: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Components of a kind, in order. */
export function ofKind({ components }: Plan, kind: Kind): readonly Component[] {
  return components.filter((each) => each.kind === kind)
}

/** The nodes of a shard. */
export function nodesOf({ components }: Plan, shard: string): readonly Component[] {
  return components.filter((each) => (each.kind === 'node' || each.kind === 'standalone') && each.shard === shard)
}

/** The names of all shards. */
export function shardsOf({ components }: Plan): string[] {
  const nodes = components.filter(({ kind }) => kind === 'node' || kind === 'standalone')
  return [...new Set(nodes.map(({ shard = '' }) => shard))]
}

/** Every address that a platform listens on, and for whom. Checked before anything starts. */
export function listenersOf({ components }: Plan): readonly (Address & { readonly who: string })[] {
  return components.flatMap(({ name, kind, main, api, quic, published }) => {
    if (kind === 'queue-sample') return []
    const own = [main, ...(api === main ? [] : [api]), ...(quic ? [quic] : [])]
    return [
      ...own.map((address) => ({ ...address, who: name })),
      ...published.map(({ port }) => ({ host: HOST, port, who: `the published port of ${name}` })),
    ]
  })
}

/** The address under which a person reaches a component: its published port if it has one. */
export function publicAddress({ main, published }: Component): Address {
  const [first] = published
  return first ? { host: HOST, port: first.port } : main
}

/** The table of the resolver: bare host names as in production, with ports where all share one address. */
export function resolverTable(plan: Plan): string {
  const shards = shardsOf(plan)
  const placeOf = ({ main, api, quic }: Component) => {
    if (!plan.hasPorts) return `"${main.host}"`
    if (quic === undefined) return `"${main.host}:${main.port}"`
    return `{ hostname: "${main.host}", port: ${main.port}, api_port: ${api.port}, quic_port: ${quic.port} }`
  }
  const rows = (indent: string, components: readonly Component[]) =>
    components.map((each) => `${indent}${each.name}: ${placeOf(each)}\n`).join('')
  const section = (name: string, components: readonly Component[]) =>
    components.length === 0 ? '' : `${name}:\n${rows('  ', components)}`
  return [
    '# Written at each start.\nshards:\n',
    ...shards.map((shard) => `  ${shard}:\n${rows('    ', nodesOf(plan, shard))}`),
    section('bridges', ofKind(plan, 'bridge')),
    section('routers', ofKind(plan, 'zone-router')),
  ].join('')
}

/** File layout, addresses and flags of a quick start. Pure. */

import { join } from 'node:path'

export const DEFAULTS = {
  dir: './quickstart-data',
  packages: 1_500_000,
  /** Nights on sale, counted from today. */
  days: 120,
  seed: 1,
  tcpPort: 7777,
  apiPort: 8080,
} as const

export const HOST = '127.0.0.1'
export const SHARD_ID = 'quickstart'
export const NODE_ID = 'quickstart-1'
/** The four valleys of the example searches exist from the first thousand packages. */
export const SEGMENTS = 4
/** How many ports are tried after a taken one. */
export const PORTS_TRIED_MAX = 100

/** Settings of a shard, in addition to those of a single node. */
export const SHARD = {
  dir: './quickstart-shard',
  /** Each of four nodes on one machine holds all of them. */
  packages: 300_000,
  zone: 'zone-1',
  voters: ['n1', 'n2', 'n3'],
  /** Voters that start with the snapshot: a majority, so that the shard forms and the others download it. */
  seeded: ['n1', 'n2'],
  learner: 'n4',
} as const
export const SHARD_NODES: readonly string[] = [...SHARD.voters, SHARD.learner]
/** Address blocks that are tried. */
export const BLOCKS_TRIED_MAX = 20
const PORTS = { tcp: 7777, api: 8080, quic: 17_777, registry: 8090, resolver: 9090 } as const
/** Distance between address blocks. */
const PORT_STEP = 100
const REGISTRY_HOST = 100
const RESOLVER_HOST = 101
/** Of the control plane with the console: the one address that a person types. */
export const CONSOLE_PORT = 8000
/** The person that its link signs in. */
const CONSOLE_PERSON = 'admin'

/** Configured locations of programs, for one node or for a shard. */
export type SampleLayout = {
  readonly dir: string
  /** properties.csv, packages.csv and codecs.yml of the sample: input for build-snapshot. */
  readonly csv: string
  /** data_dir of each node that starts with the snapshot, which is built in the first. */
  readonly seeded: readonly [string, ...string[]]
  readonly codecs: string
  readonly config: string
  /** Settings of the sample, and its last day. */
  readonly state: string
}

export type Layout = SampleLayout & {
  /** data_dir of the node. */
  readonly data: string
  readonly seed: string
  /** The node's log, JSON lines. */
  readonly log: string
}

export function layoutOf(dir: string): Layout {
  const data = join(dir, 'data')
  return {
    ...sampleLayout(dir, [data]),
    data,
    seed: join(data, 'seed.snapshot'),
    log: join(dir, 'node.log'),
  }
}

function sampleLayout(dir: string, seeded: readonly [string, ...string[]]): SampleLayout {
  return {
    dir,
    csv: join(dir, 'csv'),
    seeded,
    codecs: join(dir, 'codecs.yml'),
    config: join(dir, 'vacancy.yml'),
    state: join(dir, 'quickstart.json'),
  }
}

export type TokenName = 'admin' | 'client' | 'producer' | 'consumer'

/** Files of a shard. Those of a node contain its name. */
export type ShardLayout = SampleLayout & {
  readonly dataOf: (node: string) => string
  /** A program's log, JSON lines. */
  readonly logOf: (program: string) => string
  /** Authority and certificates of the nodes. */
  readonly certs: string
  readonly auth: string
  /** Producers and consumers of the job queue, beside the tokens of the console. */
  readonly queueAuth: string
  /** A token of these files, by role. */
  readonly tokenOf: (role: TokenName) => string
  /** The table of the resolver. */
  readonly table: string
  readonly registryState: string
  /** Running processes. */
  readonly processes: string
  /** data_dir of the control plane. */
  readonly control: string
}

export function shardLayoutOf(dir: string): ShardLayout {
  const dataOf = (node: string) => join(dir, node)
  const [first, ...others] = SHARD.seeded
  return {
    ...sampleLayout(dir, [dataOf(first), ...others.map(dataOf)]),
    dataOf,
    logOf: (program) => join(dir, `${program}.log`),
    certs: join(dir, 'certs'),
    auth: join(dir, 'auth.yml'),
    queueAuth: join(dir, 'queue-auth.yml'),
    tokenOf: (role) => join(dir, `${role}.token`),
    table: join(dir, 'resolver.yml'),
    registryState: join(dir, 'registry.json'),
    processes: join(dir, 'processes.json'),
    control: join(dir, 'control-plane'),
  }
}

/** Listen addresses of a node. */
export type Place = {
  readonly host: string
  readonly tcpPort: number
  readonly apiPort: number
  readonly quicPort: number
}
export type Places = {
  readonly nodes: ReadonlyMap<string, Place>
  /** Of the control plane; undefined without one. */
  readonly console?: { readonly host: string; readonly port: number } | undefined
  readonly registry: { readonly host: string; readonly port: number }
  readonly resolver: { readonly host: string; readonly port: number }
}

/**
 * Addresses of a shard on one machine: one per node, with the standard ports, as in production.
 *
 * @param block 127.0.`block`.1 is the first address
 * @param attempt 0 for the standard ports; others when these are taken on all addresses
 * @param isOneAddress all on 127.0.0.1 with different ports, for machines without other loopback addresses
 */
export function placesOf(
  nodes: readonly string[],
  { block, attempt, isOneAddress }: { block: number; attempt: number; isOneAddress: boolean },
): Places {
  const port = (standard: number, at = 0) => standard + attempt * PORT_STEP + (isOneAddress ? at : 0)
  const host = (last: number) => (isOneAddress ? HOST : `127.0.${block + attempt}.${last}`)
  const placeOf = (at: number): Place => ({
    host: host(at + 1),
    tcpPort: port(PORTS.tcp, at),
    apiPort: port(PORTS.api, at),
    quicPort: port(PORTS.quic, at),
  })
  return {
    nodes: new Map(nodes.map((node, at) => [node, placeOf(at)])),
    registry: { host: host(REGISTRY_HOST), port: port(PORTS.registry) },
    resolver: { host: host(RESOLVER_HOST), port: port(PORTS.resolver) },
  }
}

/** Every listen address, checked before the start. */
export function listenersOf({ nodes, registry, resolver }: Places): { host: string; port: number }[] {
  const ofNodes = [...nodes.values()].flatMap(({ host, tcpPort, apiPort, quicPort }) =>
    [tcpPort, apiPort, quicPort].map((port) => ({ host, port })),
  )
  return [...ofNodes, { ...registry }, { ...resolver }]
}

/** The file of the development resolver. */
export function resolverTable({ nodes }: Places): string {
  const rows = [...nodes].map(([node, { host, tcpPort, apiPort, quicPort }]) => {
    return `    ${node}: { hostname: "${host}", port: ${tcpPort}, api_port: ${apiPort}, quic_port: ${quicPort} }\n`
  })
  return `shards:\n  ${SHARD_ID}:\n${rows.join('')}`
}

/** The command that a node of the shard is started with, from the folder of the clone. */
export function nodeArguments(
  node: string,
  { layout, places, today }: { layout: ShardLayout; places: Places; today: string },
): string[] {
  const { host, tcpPort, apiPort, quicPort } = places.nodes.get(node) as Place
  const { certs } = layout
  return [
    ...['run-clustered', '--node-id', node, '--shard-id', SHARD_ID, '--zone-id', SHARD.zone],
    ...['--initial-voters', SHARD.voters.join(',')],
    ...['--registry-addr', urlOf(places.registry), '--resolver-addr', urlOf(places.resolver)],
    ...['--cert-path', join(certs, `${node}.pem`), '--key-path', join(certs, `${node}.key`)],
    ...['--ca-cert-path', join(certs, 'ca.pem'), '--auth-file', layout.auth],
    ...['--config', layout.config, '--data-dir', layout.dataOf(node)],
    ...['--tcp-listen-addr', host, '--api-listen-addr', host, '--quic-listen-addr', host],
    ...['--tcp-port', String(tcpPort), '--api-port', String(apiPort), '--quic-port', String(quicPort)],
    // A sample may be unused for a year; expired days can be dropped.
    ...['--accept-date', today],
  ]
}

export function registryArguments({ layout, places }: { layout: ShardLayout; places: Places }): string[] {
  const { host, port } = places.registry
  const files = ['--codecs-path', layout.codecs, '--state-file', layout.registryState]
  return ['registry', '--addr', host, '--port', String(port), ...files]
}

export function resolverArguments({ layout, places }: { layout: ShardLayout; places: Places }): string[] {
  const { host, port } = places.resolver
  return ['resolver', '--host', host, '--port', String(port), '--file', layout.table, '--format', 'json']
}

/** The control plane finds the nodes through registry and resolver, like other clients. */
export function controlArguments({
  layout,
  places: { registry, resolver, console },
}: {
  layout: ShardLayout
  places: Places
}): string[] {
  return [
    ...['control-plane', '--listen-host', console?.host ?? HOST, '--listen-port', String(console?.port ?? 0)],
    ...['--data-dir', layout.control, '--registry', urlOf(registry), '--resolver', urlOf(resolver)],
    ...['--node-admin-token', `file:${layout.tokenOf('admin')}`, '--queue-auth-file', layout.queueAuth],
    ...['--sign-in', CONSOLE_PERSON],
  ]
}

/** Of `queue-sample.ts`. */
export function sampleArguments({
  layout,
  places,
}: {
  readonly layout: ShardLayout
  readonly places: Places
}): string[] {
  const { host, port } = places.console ?? { host: HOST, port: 0 }
  return [urlOf({ host, port }), layout.tokenOf('producer'), layout.tokenOf('consumer')]
}

function urlOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return `http://${host}:${port}`
}

/** The configuration a new folder gets; it is the user's from then on. */
export const CONFIG_TEXT = `# Configuration of the nodes of a quick start. docs/config.md has every key.
# Ports and data_dir are not read from here: --help of npm start -- and npm run start:node -- names the flags.

# The default is 14: this lets three weeks and more be searched at once.
max_dates_in_query: 31
`

/** Settings of the sample in a folder. Days are day numbers. */
export type State = {
  readonly packages: number
  readonly days: number
  readonly seed: number
  /** Last day with packages for every room. */
  readonly lastDay: number
}

/** Days that are on sale today and have no package yet: none while the first is after the last. */
export function missingDays(state: State, today: number): { readonly first: number; readonly last: number } {
  return { first: Math.max(today, state.lastDay + 1), last: today + state.days - 1 }
}

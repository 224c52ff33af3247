/**
 * Flags and configuration keys of `vacancy proxy` (docs/fabric-config.md): `--help`, environment variables and the
 * reference page derive from the rows. The names are those of existing proxies.
 */

import { ID_RULE, parseId } from '@vacancy/shared'
import {
  ALLOW_ANONYMOUS,
  type Config,
  type ConfigSchema,
  type ConfigValues,
  type ConfigView,
  configView,
  type Flags,
  type Given,
  LOG_FORMATS,
  LOG_LEVELS,
  listenHost,
  loadConfig,
  port,
  TRACE_SCHEMA,
  traceFaults,
  whole,
} from '@vacancy/shared/node'
import { USUAL_HOST } from '../forward/flags.ts'

const text = (value: string, summary: string) => ({ type: 'text', default: value, summary }) as const
const yes = (summary: string) => ({ type: 'boolean', default: true, summary }) as const
const no = (summary: string) => ({ type: 'boolean', default: false, summary }) as const

const PORT_MAX = 65_535
const MODES = ['standalone', 'cluster', 'router'] as const
const READS = ['followers', 'any', 'leader'] as const
const DISCOVERIES = ['static', 'http'] as const

/** Ports of the upstream where none is given. */
const UPSTREAM_PORTS = { standalone: 7777, cluster: 7777, router: 9000 } as const

export const PROXY_FLAGS = {
  config: {
    type: 'text',
    value: 'FILE',
    summary: 'Configuration file, YAML; without it ./proxy.yml, else /etc/vacancy/proxy.yml, else none.',
  },
  'drain-secs': { ...whole(10, 0, 600, 'seconds'), summary: 'Time to finish requests in flight on shutdown.' },
  'log-level': { type: 'choice', choices: LOG_LEVELS, default: 'info', summary: 'Lowest level that is logged.' },
  'log-format': { type: 'choice', choices: LOG_FORMATS, default: 'json', summary: 'Log lines as JSON or as text.' },
} as const satisfies Flags

/** Keys of mode cluster. Those that name something are refused in other modes. */
const CLUSTER_SCHEMA = {
  shard_id: text('', 'Shard whose nodes are served. Required for cluster with a registry.'),
  zone_id: text('', 'Zone of the shard; nodes that show another one are left out. Empty = any.'),
  registry_addr: text('', 'Registry that names the nodes: HOST:PORT, several separated by commas.'),
  registry_token_file: text('', 'Token for the registry: the first line of the file.'),
  registry_ca: text('', 'CA certificates for the registry, PEM.'),
  resolver_addr: text('', 'Resolver of node ids to hosts: HOST:PORT or a URL; with registry_addr.'),
  resolver_token_file: text('', 'Token for the resolver: the first line of the file.'),
  resolver_ca: text('', 'CA certificates for the resolver, PEM.'),
  cache_dir: text('', 'Folder for the last known nodes, for a start without the registry; with registry_addr.'),
  seed_ids: {
    type: 'list',
    default: [],
    summary: 'Ids of the first nodes, without a registry; their addresses are in the node list.',
  },
  discovery_kind: {
    type: 'choice',
    choices: DISCOVERIES,
    default: 'static',
    summary: 'Where the node list is: in a file (static) or at an HTTP endpoint (http).',
  },
  discovery_yml_path: text('./discovery.yml', 'File with the node list, YAML or JSON.'),
  discovery_addr: text('', 'URL of the node list.'),
  discovery_refresh_interval_sec: { ...whole(2, 1, 3_600, 'seconds'), summary: 'Interval of reading the node list.' },
  node_api_port: {
    ...whole(8080, 1, PORT_MAX),
    summary: 'HTTP port of nodes, where neither resolver nor node list names one.',
  },
  node_tcp_port: { ...whole(7777, 1, PORT_MAX), summary: 'TCP port of nodes, where the resolver names none.' },
  node_token_file: text('', 'Token for the HTTP API of nodes: the first line of the file.'),
  node_probe_interval_sec: {
    ...whole(2, 1, 3_600, 'seconds'),
    summary: 'Interval of discovery; faster while there is no leader or no follower.',
  },
  http_timeout_sec: { ...whole(2, 1, 60, 'seconds'), summary: 'Time for one call of the HTTP API of a node.' },
  reads: {
    type: 'choice',
    choices: READS,
    default: 'followers',
    summary: 'Nodes for reads. followers: the leader only where no follower is usable; leader: sees own writes.',
  },
  max_read_lag: {
    ...whole(10_000, 0, 1_000_000_000, 'log entries'),
    summary: 'Followers that are further behind are passed over, unless nothing else is left.',
  },
} as const satisfies ConfigSchema

export const PROXY_SCHEMA = {
  mode: {
    type: 'choice',
    choices: ['', ...MODES],
    default: '',
    summary:
      'What requests are sent to: a node (standalone), the nodes of a shard (cluster) or an edge router (router). Required.',
  },
  upstream_addr: text('', 'Host or address of the node or router. Required except in mode cluster.'),
  upstream_port: { ...port(0), summary: 'Its port; 0 = 7777 of a node, 9000 of a router.' },
  conn_per_node: {
    ...whole(4, 1, 64),
    summary: 'Connections to the upstream, or to each node of a shard, shared by all requests.',
  },
  ...CLUSTER_SCHEMA,
  timeout_sec: {
    ...whole(2, 1, 300, 'seconds'),
    summary: 'Deadline of a request, repetitions included; DELSEGMENT has ten times as much.',
  },
  keep_alive_sec: {
    ...whole(30, 1, 80, 'seconds'),
    summary: 'Interval of keepalives to a router, which closes a silent connection after 90 s.',
  },
  upstream_tls: no('Connects to the upstream with TLS.'),
  upstream_ca: text('', 'CA certificates for the upstream, PEM; those of the system by default.'),
  upstream_cert: text('', 'Client certificate for the upstream, PEM; with upstream_key.'),
  upstream_key: text('', 'Private key of upstream_cert, PEM.'),
  upstream_server_name: text('', 'Name in the certificate of the upstream, if not upstream_addr.'),
  workers: {
    ...whole(1, 1, 64),
    summary:
      'Threads that serve the port, one for each core to use; the system spreads connections over them (Linux, FreeBSD).',
  },
  listening_addr: text('', `Address to listen on; ${USUAL_HOST}`),
  allow_anonymous: no(ALLOW_ANONYMOUS.summary),
  http_enabled: yes('Listens for HTTP/1.1 and HTTP/2 with prior knowledge, on one port.'),
  http_port: { ...port(8777), summary: 'Port of HTTP; 0 = any free port, which is printed.' },
  https_enabled: no('Listens for HTTPS: HTTP/2 and HTTP/1.1 by ALPN.'),
  https_port: { ...port(3443), summary: 'Port of HTTPS; 0 = any free port, which is printed.' },
  tls_cert_path: text('./cert.pem', 'Certificate of HTTPS, PEM; read again when it changes.'),
  tls_key_path: text('./key.pem', 'Private key of tls_cert_path, PEM.'),
  tls_client_ca: text('', 'CA certificates for required client certificates, PEM; empty = none are required.'),
  auth_enabled: no('Requires a token of tokens_path. Without it every request has full access.'),
  tokens_path: text('./auth.yml', 'Tokens of clients, and the one for nodes; read again when it changes.'),
  max_active_conns: {
    ...whole(10_000, 1, 1_000_000),
    summary: 'Connections of clients; further ones are closed at once.',
  },
  cors_origin: {
    type: 'list',
    default: ['*'],
    summary: 'Origins whose web pages may call the API; * = all.',
  },
  slow_ms: {
    ...whole(100, 0, 60_000, 'ms'),
    summary: 'Requests that take at least this long are shown by /debug/slow.',
  },
  ...TRACE_SCHEMA,
} as const satisfies ConfigSchema

export type ProxyConfig = ConfigValues<typeof PROXY_SCHEMA> & {
  readonly mode: (typeof MODES)[number]
  /** The port in use, never 0. */
  readonly upstreamPort: number
  /** The auth file, where it is needed or given. */
  readonly tokensFile: string | undefined
  /** What `GET /config` shows. */
  readonly view: ConfigView
}

const SEARCHED = ['./proxy.yml', '/etc/vacancy/proxy.yml']

/**
 * Fills the configuration from a file, the environment and flags.
 *
 * @throws VacancyError invalid_config, one line per error
 */
export function loadProxyConfig(sources: {
  readonly file?: string | undefined
  readonly given?: ReadonlyMap<string, Given>
  readonly searched?: readonly string[]
}): ProxyConfig {
  const { file, given = new Map(), searched = SEARCHED } = sources
  const config: Config<typeof PROXY_SCHEMA> = loadConfig({ schema: PROXY_SCHEMA, file, given, searched, check })
  const { values, origins } = config
  const mode = values.mode as ProxyConfig['mode']
  const listeningAddr = listenHost(values.listeningAddr, {
    isOpen: !values.authEnabled && (values.httpEnabled || values.tlsClientCa === ''),
    allowsAnonymous: values.allowAnonymous,
    name: 'listening_addr',
    ways: 'auth_enabled with tokens_path, or HTTPS alone with tls_client_ca',
  })
  const view = configView(PROXY_SCHEMA, config)
  return Object.freeze({
    ...values,
    mode,
    listeningAddr,
    upstreamPort: values.upstreamPort === 0 ? UPSTREAM_PORTS[mode] : values.upstreamPort,
    tokensFile: values.authEnabled || origins.tokens_path.from !== 'default' ? values.tokensPath : undefined,
    view: { ...view, listening_addr: { ...(view['listening_addr'] as ConfigView[string]), value: listeningAddr } },
  })
}

function check(values: ConfigValues<typeof PROXY_SCHEMA>): string[] {
  const faults: string[] = []
  if (values.mode === '') faults.push(`mode: is required, one of ${MODES.join(', ')}`)
  faults.push(...(values.mode === 'cluster' ? clusterFaults(values) : outsideCluster(values)))
  if (values.upstreamAddr === '') {
    if (values.mode !== 'cluster') faults.push('upstream_addr: is required')
  } else if (/[\s/]/.test(values.upstreamAddr)) faults.push('upstream_addr: must be a host name or an address')
  if (!values.httpEnabled && !values.httpsEnabled) faults.push('http_enabled, https_enabled: one of them must be true')
  if (values.httpEnabled && values.httpsEnabled && values.httpPort === values.httpsPort && values.httpPort !== 0) {
    faults.push('http_port, https_port: must differ')
  }
  if ((values.upstreamCert === '') !== (values.upstreamKey === '')) {
    faults.push('upstream_cert, upstream_key: must be set together')
  }
  const needTls = ['upstreamCa', 'upstreamCert', 'upstreamServerName'] as const
  const keys = { upstreamCa: 'upstream_ca', upstreamCert: 'upstream_cert', upstreamServerName: 'upstream_server_name' }
  for (const key of needTls) {
    if (values[key] !== '' && !values.upstreamTls) faults.push(`${keys[key]}: needs upstream_tls: true`)
  }
  faults.push(...traceFaults(values))
  if (values.corsOrigin.length === 0) faults.push('cors_origin: must name an origin, or *')
  return faults
}

type Values = ConfigValues<typeof PROXY_SCHEMA>

/** Keys of the ways to find nodes, which exclude each other. */
const WITH_REGISTRY = {
  registry_addr: 'registryAddr',
  registry_token_file: 'registryTokenFile',
  registry_ca: 'registryCa',
  resolver_addr: 'resolverAddr',
  resolver_token_file: 'resolverTokenFile',
  resolver_ca: 'resolverCa',
  cache_dir: 'cacheDir',
} as const
const OF_CLUSTER = {
  ...WITH_REGISTRY,
  shard_id: 'shardId',
  zone_id: 'zoneId',
  node_token_file: 'nodeTokenFile',
} as const

function clusterFaults(values: Values): string[] {
  const faults: string[] = []
  if (values.upstreamAddr !== '')
    faults.push('upstream_addr: has no effect in mode cluster, which finds the nodes itself')
  for (const [key, name] of [
    ['shard_id', 'shardId'],
    ['zone_id', 'zoneId'],
  ] as const) {
    if (values[name] !== '' && parseId(values[name]) === undefined) faults.push(`${key}: must be ${ID_RULE}`)
  }
  if (values.seedIds.length === 0) {
    for (const [key, name] of [
      ['shard_id', 'shardId'],
      ['registry_addr', 'registryAddr'],
      ['resolver_addr', 'resolverAddr'],
    ] as const) {
      if (values[name] === '') faults.push(`${key}: is required for cluster without seed_ids`)
    }
    if (values.discoveryAddr !== '') faults.push('discovery_addr: needs seed_ids')
    return faults
  }
  for (const id of values.seedIds) if (parseId(id) === undefined) faults.push(`seed_ids: ${id} must be ${ID_RULE}`)
  for (const [key, name] of Object.entries(WITH_REGISTRY)) {
    if (values[name] !== '') faults.push(`${key}: has no effect with seed_ids`)
  }
  if (values.discoveryKind === 'http' && !isHttpUrl(values.discoveryAddr)) {
    faults.push('discovery_addr: must be a URL like http://host:port/path')
  }
  if (values.discoveryKind === 'static' && values.discoveryAddr !== '') {
    faults.push('discovery_addr: needs discovery_kind: http')
  }
  return faults
}

function outsideCluster(values: Values): string[] {
  const given = Object.entries(OF_CLUSTER).flatMap(([key, name]) => (values[name] === '' ? [] : [key]))
  if (values.discoveryAddr !== '') given.push('discovery_addr')
  if (values.seedIds.length > 0) given.push('seed_ids')
  return given.map((key) => `${key}: needs mode: cluster`)
}

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && ['http:', 'https:'].includes(url.protocol) && url.username === '' && url.password === ''
}

const BOOLEANS: ReadonlySet<string> = new Set(
  Object.entries<ConfigSchema[string]>(PROXY_SCHEMA).flatMap(([key, { type }]) =>
    type === 'boolean' ? [`--${key.replaceAll('_', '-')}`] : [],
  ),
)

/** `--http-enabled false` as `--http-enabled=false`: existing proxies need the value, and their documents omit it. */
export function joinBooleans(args: readonly string[]): string[] {
  const joined: string[] = []
  for (const arg of args) {
    const before = joined.at(-1)
    if ((arg === 'true' || arg === 'false') && before !== undefined && BOOLEANS.has(before)) {
      joined[joined.length - 1] = `${before}=${arg}`
    } else joined.push(arg)
  }
  return joined
}

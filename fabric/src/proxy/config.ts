/**
 * Flags and configuration keys of `vacancy proxy` (docs/fabric-config.md): `--help`, environment variables and the
 * reference page derive from the rows. The names are those of existing proxies.
 */

import {
  type Config,
  type ConfigSchema,
  type ConfigValues,
  type Flags,
  type Given,
  LOG_FORMATS,
  LOG_LEVELS,
  loadConfig,
} from '@vacancy/shared/node'

const whole = (value: number, min: number, max: number, summary: string, unit?: string) =>
  ({ type: 'integer', default: value, min, max, summary, ...(unit !== undefined && { unit }) }) as const
const text = (value: string, summary: string) => ({ type: 'text', default: value, summary }) as const
const yes = (summary: string) => ({ type: 'boolean', default: true, summary }) as const
const no = (summary: string) => ({ type: 'boolean', default: false, summary }) as const

const PORT_MAX = 65_535
const MODES = ['standalone', 'router'] as const

/** Ports of the upstream where none is given. */
const UPSTREAM_PORTS = { standalone: 7777, router: 9000 } as const

export const PROXY_FLAGS = {
  config: {
    type: 'text',
    value: 'FILE',
    summary: 'Configuration file, YAML; without it ./proxy.yml, else /etc/vacancy/proxy.yml, else none.',
  },
  'drain-secs': {
    type: 'integer',
    default: 10,
    min: 0,
    max: 600,
    unit: 'seconds',
    summary: 'Time to finish requests in flight on shutdown.',
  },
  'log-level': { type: 'choice', choices: LOG_LEVELS, default: 'info', summary: 'Lowest level that is logged.' },
  'log-format': { type: 'choice', choices: LOG_FORMATS, default: 'json', summary: 'Log lines as JSON or as text.' },
} as const satisfies Flags

export const PROXY_SCHEMA = {
  mode: {
    type: 'choice',
    choices: ['', ...MODES],
    default: '',
    summary: 'What requests are sent to: a node (standalone) or an edge router (router). Required.',
  },
  upstream_addr: text('', 'Host or address of the node or router. Required.'),
  upstream_port: whole(0, 0, PORT_MAX, 'Its port; 0 = 7777 of a node, 9000 of a router.'),
  conn_per_node: whole(4, 1, 64, 'Connections to the upstream, shared by all requests.'),
  timeout_sec: whole(
    2,
    1,
    300,
    'Deadline of a request, repetitions included; DELSEGMENT has ten times as much.',
    'seconds',
  ),
  keep_alive_sec: whole(
    30,
    1,
    80,
    'Interval of keepalives to a router, which closes a silent connection after 90 s.',
    'seconds',
  ),
  upstream_tls: no('Connects to the upstream with TLS.'),
  upstream_ca: text('', 'Authorities of the upstream, PEM; those of the system by default.'),
  upstream_cert: text('', 'Client certificate for the upstream, PEM; with upstream_key.'),
  upstream_key: text('', 'Private key of upstream_cert, PEM.'),
  upstream_server_name: text('', 'Name in the certificate of the upstream, if not upstream_addr.'),
  listening_addr: text('0.0.0.0', 'Address to listen on.'),
  http_enabled: yes('Listens for HTTP/1.1 and HTTP/2 with prior knowledge, on one port.'),
  http_port: whole(8777, 0, PORT_MAX, 'Port of HTTP; 0 = any free port, which is printed.'),
  https_enabled: no('Listens for HTTPS: HTTP/2 and HTTP/1.1 by ALPN.'),
  https_port: whole(3443, 0, PORT_MAX, 'Port of HTTPS; 0 = any free port, which is printed.'),
  tls_cert_path: text('./cert.pem', 'Certificate of HTTPS, PEM; read again when it changes.'),
  tls_key_path: text('./key.pem', 'Private key of tls_cert_path, PEM.'),
  tls_client_ca: text('', 'Authorities of required client certificates, PEM; empty = none are required.'),
  auth_enabled: no('Requires a token of tokens_path. Without it every request has full access.'),
  tokens_path: text('./auth.yml', 'Tokens of clients, and the one for nodes; read again when it changes.'),
  max_active_conns: whole(10_000, 1, 1_000_000, 'Connections of clients; further ones are closed at once.'),
  cors_origin: {
    type: 'list',
    default: ['*'],
    summary: 'Origins whose web pages may call the API; * = all.',
  },
  slow_ms: whole(100, 0, 60_000, 'Requests that take at least this long are shown by /debug/slow.', 'ms'),
} as const satisfies ConfigSchema

export type ProxyConfig = ConfigValues<typeof PROXY_SCHEMA> & {
  readonly mode: (typeof MODES)[number]
  /** The port in use, never 0. */
  readonly upstreamPort: number
  /** The auth file, where it is needed or given. */
  readonly tokensFile: string | undefined
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
  const { values, origins }: Config<typeof PROXY_SCHEMA> = loadConfig({
    schema: PROXY_SCHEMA,
    file,
    given,
    searched,
    check,
  })
  const mode = values.mode as ProxyConfig['mode']
  return Object.freeze({
    ...values,
    mode,
    upstreamPort: values.upstreamPort === 0 ? UPSTREAM_PORTS[mode] : values.upstreamPort,
    tokensFile: values.authEnabled || origins.tokens_path.from !== 'default' ? values.tokensPath : undefined,
  })
}

function check(values: ConfigValues<typeof PROXY_SCHEMA>): string[] {
  const faults: string[] = []
  if (values.mode === '') faults.push(`mode: is required, one of ${MODES.join(', ')}`)
  if (values.upstreamAddr === '') faults.push('upstream_addr: is required')
  else if (/[\s/]/.test(values.upstreamAddr)) faults.push('upstream_addr: must be a host name or an address')
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
  if (values.corsOrigin.length === 0) faults.push('cors_origin: must name an origin, or *')
  return faults
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

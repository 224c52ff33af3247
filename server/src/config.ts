/** The configuration of the control plane: its keys, and checks across them. */

import { CONTROL_QUEUE_SCHEMA, checkQueue, checkTls, queueConfigOf } from '@vacancy/queue/config'
import { PERSON_ROLES } from '@vacancy/shared/contract'
import {
  type Config,
  type ConfigSchema,
  type ConfigValues,
  choice,
  type Given,
  isLoopback,
  isNetwork,
  LOG_FORMATS,
  LOG_LEVELS,
  loadConfig,
  port,
  postgresUrl,
  readSecret,
  refuseSecretFlags,
  settingText,
  TRACE_SCHEMA,
  traceFaults,
  whole,
  withDatabaseUrl,
} from '@vacancy/shared/node'
import { roleRule } from './access/single-sign-on.ts'
import { registriesOf } from './cluster/discovery.ts'

export const CONTROL_SCHEMA = {
  listen_host: { ...settingText('127.0.0.1'), summary: 'Address to listen on.' },
  listen_port: { ...port(8000), summary: 'Port to listen on; 0 = any free port, which is printed.' },
  tls_cert: {
    ...settingText(''),
    summary: 'Certificate of the listener, PEM, followed by its intermediate certificates; with tls_key.',
  },
  tls_key: { ...settingText(''), summary: 'Private key of tls_cert, PEM without a passphrase.' },
  hsts_days: {
    ...whole(180, 0, 730, 'days'),
    summary: 'With tls_cert: how long browsers use only https for its name (HSTS max-age); 0 sends no header.',
  },
  base_url: {
    ...settingText(''),
    summary: 'Public address of the console behind a reverse proxy, such as https://vacancy.example.com.',
  },
  allowed_hosts: {
    type: 'list',
    default: [],
    summary: 'Further host names under which it is reached; requests with other Host headers are refused.',
  },
  trust_proxy: {
    type: 'list',
    default: [],
    summary: 'Addresses or networks of reverse proxies whose X-Forwarded headers are trusted.',
  },
  data_dir: { ...settingText('./data/control-plane'), summary: 'Folder of its own files; created if absent.' },
  database_url: {
    ...settingText(''),
    secret: true,
    summary:
      'PostgreSQL address, postgres://user:password@host/name, also as DATABASE_URL; empty: a SQLite file in data_dir.',
  },
  registry: {
    ...settingText(''),
    summary: 'Registry that lists the nodes, http://host:port; of several on one etcd: http://a:port,http://b:port.',
  },
  resolver: { ...settingText(''), summary: 'Resolver for node hosts, http://host:port.' },
  nodes: {
    type: 'list',
    default: [],
    summary: 'Nodes to poll besides those of the registry, each as http://host:port of its HTTP API.',
  },
  fabric: {
    type: 'list',
    default: [],
    summary:
      'Edge routers and proxies to poll, which the registry does not list, each as http://host:port of its HTTP API.',
  },
  node_api_port: {
    ...whole(8080, 1, 65_535),
    summary: 'Port of the HTTP API of nodes whose host comes from the resolver.',
  },
  node_tcp_port: { ...whole(7777, 1, 65_535), summary: 'Port of the wire protocol of these nodes.' },
  node_monitoring_token: { ...settingText(''), secret: true, summary: 'Token to read the state of nodes.' },
  node_client_token: { ...settingText(''), secret: true, summary: 'Token to run queries on nodes.' },
  node_admin_token: { ...settingText(''), secret: true, summary: 'Token to change members and leader.' },
  registry_token: { ...settingText(''), secret: true, summary: 'Token to read the registry.' },
  probe_interval_secs: {
    ...whole(5, 0, 3_600, 'seconds'),
    summary:
      'How often each shard is probed as its clients reach it, through every edge router, or without any at every node: a search, and a hold with its release. 0: never.',
  },
  environment: {
    ...settingText('DEVELOPMENT'),
    summary: 'Label shown on every page, until it is changed in the console.',
  },
  environment_kind: {
    ...choice(['development', 'staging', 'production'], 'development'),
    summary: 'How much confirmation changes need, until it is changed in the console.',
  },
  oidc_issuer: {
    ...settingText(''),
    summary:
      'Provider of single sign-on by OpenID Connect, such as https://login.example.com/realms/hotels; empty: none.',
  },
  oidc_client_id: { ...settingText(''), summary: 'Name of the console at that provider.' },
  oidc_client_secret: { ...settingText(''), secret: true, summary: 'Its secret there; empty for a public client.' },
  oidc_scopes: { ...settingText('openid profile'), summary: 'Scopes to ask for, with blanks between them.' },
  oidc_name_claim: { ...settingText('preferred_username'), summary: 'Claim with the name of a person.' },
  oidc_role_claim: {
    ...settingText('roles'),
    summary: 'Claim with a value or values that give the role; a path such as realm_access.roles is followed.',
  },
  oidc_roles: {
    type: 'list',
    default: [],
    summary:
      'Role for a value of that claim, as value=role: hotel-ops=operator. The highest counts; without one nobody enters.',
  },
  oidc_label: { ...settingText('single sign-on'), summary: 'How the sign-in page names it.' },
  oidc_session_hours: {
    ...whole(12, 1, 720, 'hours'),
    summary:
      'A session by single sign-on ends after this time, also in use, so that roles and people are asked for again.',
  },
  session_idle_hours: { ...whole(12, 1, 720, 'hours'), summary: 'A session ends after this time without requests.' },
  audit_keep_days: { ...whole(400, 1, 36_500, 'days'), summary: 'Retention time of audit log entries.' },
  imports_dir: {
    ...settingText(''),
    summary: 'Folder of uploads, builds and snapshots, on a disk with enough space; empty: imports in data_dir.',
  },
  import_folder: {
    ...settingText(''),
    summary: 'Folder whose CSV files operators can import without an upload; empty: none.',
  },
  ...CONTROL_QUEUE_SCHEMA,
  web: { type: 'boolean', default: true, summary: 'Serves the console; off: the API alone.' },
  drain_secs: { ...whole(10, 0, 600, 'seconds'), summary: 'Time to finish requests in flight on shutdown.' },
  log_level: { ...choice(LOG_LEVELS, 'info'), summary: 'Lowest level that is logged.' },
  log_format: { ...choice(LOG_FORMATS, 'json'), summary: 'Log lines as JSON or as text.' },
  ...TRACE_SCHEMA,
} as const satisfies ConfigSchema

export type ControlConfig = ConfigValues<typeof CONTROL_SCHEMA>

const SEARCHED = ['./control-plane.yml', '/etc/vacancy/control-plane.yml']

/**
 * Fills the configuration from a file, the environment and flags.
 *
 * @throws VacancyError invalid_config, one line per error
 */
export function loadControlConfig(sources: {
  readonly file?: string | undefined
  readonly given?: ReadonlyMap<string, Given>
  /** The environment variable DATABASE_URL. */
  readonly databaseUrl?: string | undefined
}): Config<typeof CONTROL_SCHEMA> {
  const given = withDatabaseUrl(sources.given, sources.databaseUrl)
  refuseSecretFlags(CONTROL_SCHEMA, given)
  const config = loadConfig({ schema: CONTROL_SCHEMA, file: sources.file, searched: SEARCHED, given, check })
  return Object.freeze({ ...config, values: readSecrets(config.values) })
}

function readSecrets(values: ControlConfig): ControlConfig {
  return Object.freeze({
    ...values,
    // One database for the tables of the control plane and of the queue, so one way to reach it.
    databaseUrl: postgresUrl(readSecret(values.databaseUrl), queueConfigOf(values)),
    nodeMonitoringToken: readSecret(values.nodeMonitoringToken),
    nodeClientToken: readSecret(values.nodeClientToken),
    nodeAdminToken: readSecret(values.nodeAdminToken),
    registryToken: readSecret(values.registryToken),
    queueToken: readSecret(values.queueToken),
    oidcClientSecret: readSecret(values.oidcClientSecret),
  })
}

function check(values: ControlConfig): string[] {
  const faults: string[] = []
  const addresses = {
    base_url: values.baseUrl,
    resolver: values.resolver,
    queue_url: values.queueUrl,
  }
  for (const [key, value] of Object.entries(addresses)) {
    if (value !== '' && !isOrigin(value)) faults.push(`${key}: ${value} is not an address like http://host:port`)
  }
  for (const registry of registriesOf(values.registry))
    if (!isOrigin(registry)) faults.push(`registry: ${registry} is not an address like http://host:port`)
  if ((values.queueUrl === '') !== (values.queueToken === ''))
    faults.push('queue_url and queue_token must be set together')
  for (const node of values.nodes)
    if (!isOrigin(node)) faults.push(`nodes: ${node} is not an address like http://host:port`)
  for (const component of values.fabric)
    if (!isOrigin(component)) faults.push(`fabric: ${component} is not an address like http://host:port`)
  for (const host of values.allowedHosts)
    if (!/^[A-Za-z0-9.-]+$/.test(host)) faults.push(`allowed_hosts: ${host} is not a host name without port`)
  for (const proxy of values.trustProxy)
    if (!isNetwork(proxy)) faults.push(`trust_proxy: ${proxy} is neither an address nor a network like 10.0.0.0/8`)
  faults.push(...singleSignOnFaults(values), ...traceFaults(values))
  if (values.databaseUrl !== '' && !/^(?:postgres(?:ql)?:\/\/|file:)/.test(values.databaseUrl))
    faults.push('database_url: must begin with postgres:// (or be file: and the path of a file that contains it)')
  if ((values.tlsCert === '') !== (values.tlsKey === '')) faults.push('tls_cert and tls_key must be set together')
  if (values.tlsCert !== '' && values.baseUrl.startsWith('http:') && values.trustProxy.length === 0)
    faults.push('base_url: begins with http:// although tls_cert is given')
  if (!/^[^\p{Cc}]{1,24}$/u.test(values.environment.trim()))
    faults.push('environment: must be 1 to 24 characters on one line')
  faults.push(
    ...checkQueue(queueConfigOf(values), 'queue_'),
    ...checkTls({ ...queueConfigOf(values), databaseUrl: values.databaseUrl }, 'queue_'),
  )
  return faults
}

function singleSignOnFaults({ oidcIssuer, oidcClientId, oidcRoles, oidcScopes, oidcLabel }: ControlConfig): string[] {
  if (oidcIssuer === '') return oidcClientId === '' ? [] : ['oidc_client_id: needs oidc_issuer']
  const url = URL.parse(oidcIssuer)
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  return [
    ...(isSafe ? [] : ['oidc_issuer: must begin with https://, or with http:// on this machine']),
    ...(oidcClientId === '' ? ['oidc_client_id: is needed with oidc_issuer'] : []),
    ...(oidcScopes.split(' ').includes('openid') ? [] : ['oidc_scopes: must have openid']),
    ...(/^[^\p{Cc}]{1,40}$/u.test(oidcLabel) ? [] : ['oidc_label: must be 1 to 40 characters on one line']),
    ...(oidcRoles.length > 0 ? [] : ['oidc_roles: is needed with oidc_issuer, as value=role']),
    ...oidcRoles
      .filter((text) => roleRule(text) === undefined)
      .map((text) => `oidc_roles: ${text} is not value=role with one of ${PERSON_ROLES.join(', ')}`),
  ]
}

/** Scheme, host and port, without a path. */
function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search === '' && url.hash === ''
}

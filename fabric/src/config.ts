/**
 * The flags of the fabric's services, one table per service (docs/design/http.md#process-rules,
 * docs/design/http.md#resolver). `--help`, the environment variables and docs/fabric-config.md derive from the rows.
 */

import { type Flags, LOG_FORMATS, LOG_LEVELS } from '@vacancy/shared/node'

const PORT = { min: 0, max: 65_535 } as const

/** Each program reads variables with its own prefix. */
export const COMPONENTS = {
  registry: 'REGISTRY',
  resolver: 'RESOLVER',
  bridge: 'BRIDGE',
  router: 'ROUTER',
  proxy: 'PROXY',
} as const

/** Flags of every service. */
const COMMON = {
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

export const REGISTRY_FLAGS = {
  addr: { type: 'text', value: 'HOST', default: '0.0.0.0', summary: 'Address to listen on.' },
  port: {
    type: 'integer',
    default: 8080,
    ...PORT,
    summary: 'Port to listen on, also -p; 0 = any free port, which is printed.',
  },
  'state-file': {
    type: 'text',
    value: 'FILE',
    default: 'state.json',
    summary: 'State file; its folder is created if absent, and the previous file is kept as FILE.bak.',
  },
  'codecs-path': {
    type: 'text',
    value: 'FILE',
    default: 'codecs.yml',
    summary: 'Codec list of all nodes and routers; read once at the start.',
  },
  'heartbeat-timeout-secs': {
    type: 'integer',
    default: 60,
    min: 1,
    max: 86_400,
    unit: 'seconds',
    summary: 'Components without a heartbeat for this time are removed.',
  },
  'buffer-ms': {
    type: 'integer',
    default: 1_000,
    min: 10,
    max: 60_000,
    unit: 'ms',
    summary: 'Changes are on disk this long after they were acknowledged.',
  },
  storage: {
    type: 'choice',
    choices: ['file', 'etcd'],
    default: 'file',
    summary: 'Where the state is: in --state-file of this one process, or in etcd, for any number of equal registries.',
  },
  'etcd-endpoints': {
    type: 'list',
    value: 'URL,…',
    summary: 'With --storage etcd: its client URLs, such as http://a:2379,http://b:2379.',
  },
  'etcd-prefix': {
    type: 'text',
    value: 'KEY',
    default: '/vacancy/registry/v1/',
    summary: 'With --storage etcd: all keys begin with this; equal for all registries of one platform.',
  },
  'etcd-user-file': {
    type: 'text',
    value: 'FILE',
    summary: 'With --storage etcd: file with one line NAME:PASSWORD.',
  },
  'etcd-ca': {
    type: 'text',
    value: 'FILE',
    summary: 'With --storage etcd: further authorities of its certificates, PEM.',
  },
  'accept-codec-change': {
    type: 'boolean',
    summary: 'With --storage etcd: replaces a codec list in etcd that differs from the file, instead of failing.',
  },
  'segment-conflict': {
    type: 'choice',
    choices: ['first-wins', 'reject'],
    default: 'first-wins',
    summary: 'Whether a list with segments of other shards is accepted without these, or refused.',
  },
  'auth-file': { type: 'text', value: 'FILE', summary: 'Tokens and roles; reloaded when it changes.' },
  'public-read': {
    type: 'choice',
    choices: ['true', 'false'],
    default: 'true',
    summary: 'With an auth file: GET requests need no token.',
  },
  'tls-cert': { type: 'text', value: 'FILE', summary: 'Certificate of the listener, PEM; with --tls-key.' },
  'tls-key': { type: 'text', value: 'FILE', summary: 'Private key of --tls-cert, PEM.' },
  'tls-client-ca': {
    type: 'text',
    value: 'FILE',
    summary: 'CA certificates for required client certificates, PEM.',
  },
  'reset-state': {
    type: 'boolean',
    summary: 'If neither the state nor its backup can be read: sets both aside and starts empty.',
  },
  ...COMMON,
} as const satisfies Flags

export const RESOLVER_FLAGS = {
  file: { type: 'text', value: 'FILE', summary: 'Table of ids and hosts, YAML; reloaded when it changes.' },
  map: {
    type: 'list',
    value: 'ID=HOST,…',
    summary: 'Further entries for nodes, bridges and routers; they override the file.',
  },
  host: { type: 'text', value: 'HOST', default: '127.0.0.1', summary: 'Address to listen on.' },
  port: {
    type: 'integer',
    default: 9090,
    ...PORT,
    summary: 'Port to listen on; 0 = any free port, which is printed.',
  },
  echo: { type: 'boolean', summary: 'Resolves an unknown id to itself as the host.' },
  format: {
    type: 'choice',
    choices: ['text', 'json'],
    default: 'text',
    summary: 'Response format: the host as text, or an object with hostname, port, api_port and quic_port.',
  },
  ...COMMON,
} as const satisfies Flags

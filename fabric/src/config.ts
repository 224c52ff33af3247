/**
 * The flags of the fabric's services, one table per service (docs/design/http.md#process-rules,
 * docs/design/http.md#resolver). `--help`, the environment variables and docs/fabric-config.md derive from the rows.
 */

import { ALLOW_ANONYMOUS, choice, type Flags, named, port, whole } from '@vacancy/shared/node'
import { PROCESS_FLAGS, USUAL_HOST } from './forward/flags.ts'

/** Each program reads variables with its own prefix. */
export const COMPONENTS = {
  registry: 'REGISTRY',
  resolver: 'RESOLVER',
  bridge: 'BRIDGE',
  router: 'ROUTER',
  proxy: 'PROXY',
} as const

export const REGISTRY_FLAGS = {
  addr: { ...named('HOST'), summary: `Address to listen on; ${USUAL_HOST}` },
  'allow-anonymous': ALLOW_ANONYMOUS,
  port: { ...port(8080), summary: 'Port to listen on, also -p; 0 = any free port, which is printed.' },
  'state-file': {
    ...named('FILE'),
    default: 'state.json',
    summary: 'State file; its folder is created if absent, and the previous file is kept as FILE.bak.',
  },
  'codecs-path': {
    ...named('FILE'),
    default: 'codecs.yml',
    summary: 'Codec list of all nodes and routers; read once at the start.',
  },
  'heartbeat-timeout-secs': {
    ...whole(60, 1, 86_400, 'seconds'),
    summary: 'Components without a heartbeat for this time are removed.',
  },
  'buffer-ms': {
    ...whole(1_000, 10, 60_000, 'ms'),
    summary: 'Changes are on disk this long after they were acknowledged.',
  },
  storage: {
    ...choice(['file', 'etcd'], 'file'),
    summary: 'Where the state is: in --state-file of this one process, or in etcd, for any number of equal registries.',
  },
  'etcd-endpoints': {
    type: 'list',
    value: 'URL,…',
    summary: 'With --storage etcd: its client URLs, such as http://a:2379,http://b:2379.',
  },
  'etcd-prefix': {
    ...named('KEY'),
    default: '/vacancy/registry/v1/',
    summary: 'With --storage etcd: all keys begin with this; equal for all registries of one platform.',
  },
  'etcd-user-file': { ...named('FILE'), summary: 'With --storage etcd: file with one line NAME:PASSWORD.' },
  'etcd-ca': { ...named('FILE'), summary: 'With --storage etcd: further authorities of its certificates, PEM.' },
  'accept-codec-change': {
    type: 'boolean',
    summary: 'With --storage etcd: replaces a codec list in etcd that differs from the file, instead of failing.',
  },
  'segment-conflict': {
    ...choice(['first-wins', 'reject'], 'first-wins'),
    summary: 'Whether a list with segments of other shards is accepted without these, or refused.',
  },
  'auth-file': { ...named('FILE'), summary: 'Tokens and roles; reloaded when it changes.' },
  'public-read': { ...choice(['true', 'false'], 'true'), summary: 'With an auth file: GET requests need no token.' },
  'tls-cert': { ...named('FILE'), summary: 'Certificate of the listener, PEM; with --tls-key.' },
  'tls-key': { ...named('FILE'), summary: 'Private key of --tls-cert, PEM.' },
  'tls-client-ca': { ...named('FILE'), summary: 'CA certificates for required client certificates, PEM.' },
  'reset-state': {
    type: 'boolean',
    summary: 'If neither the state nor its backup can be read: sets both aside and starts empty.',
  },
  ...PROCESS_FLAGS,
} as const satisfies Flags

export const RESOLVER_FLAGS = {
  file: { ...named('FILE'), summary: 'Table of ids and hosts, YAML; reloaded when it changes.' },
  map: {
    type: 'list',
    value: 'ID=HOST,…',
    summary: 'Further entries for nodes, bridges and routers; they override the file.',
  },
  host: { ...named('HOST'), default: '127.0.0.1', summary: 'Address to listen on.' },
  port: { ...port(9090), summary: 'Port to listen on; 0 = any free port, which is printed.' },
  echo: { type: 'boolean', summary: 'Resolves an unknown id to itself as the host.' },
  format: {
    ...choice(['text', 'json'], 'text'),
    summary: 'Response format: the host as text, or an object with hostname, port, api_port and quic_port.',
  },
  ...PROCESS_FLAGS,
} as const satisfies Flags

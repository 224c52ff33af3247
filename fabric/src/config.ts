/**
 * The flags of the fabric's services, one table per service (docs/design/http.md#process-rules,
 * docs/design/http.md#resolver). `--help`, the environment variables and docs/fabric-config.md derive from the rows.
 */

import { type Flags, LOG_FORMATS, LOG_LEVELS } from '@vacancy/shared/node'

const PORT = { min: 0, max: 65_535 } as const

/** Flags of every service. */
const COMMON = {
  'drain-secs': {
    type: 'integer',
    default: 10,
    min: 0,
    max: 600,
    unit: 'seconds',
    summary: 'Time to finish what is in flight when stopping.',
  },
  'log-level': { type: 'choice', choices: LOG_LEVELS, default: 'info', summary: 'Least level that is logged.' },
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
    summary: 'Where the state is kept; its folder is made if absent, the file before stays as FILE.bak.',
  },
  'codecs-path': {
    type: 'text',
    value: 'FILE',
    default: 'codecs.yml',
    summary: 'Codec list that nodes and routers take from here; read once.',
  },
  'heartbeat-timeout-secs': {
    type: 'integer',
    default: 60,
    min: 1,
    max: 86_400,
    unit: 'seconds',
    summary: 'A component without a heartbeat for longer is removed.',
  },
  'buffer-ms': {
    type: 'integer',
    default: 1_000,
    min: 10,
    max: 60_000,
    unit: 'ms',
    summary: 'A change is on disk this long after it was acknowledged.',
  },
  'segment-conflict': {
    type: 'choice',
    choices: ['first-wins', 'reject'],
    default: 'first-wins',
    summary: 'A list with segments of other shards: the rest of it counts, or none of it.',
  },
  'auth-file': { type: 'text', value: 'FILE', summary: 'Tokens and roles; read again when it changes.' },
  'public-read': {
    type: 'choice',
    choices: ['true', 'false'],
    default: 'true',
    summary: 'With an auth file: GETs need no token.',
  },
  'tls-cert': { type: 'text', value: 'FILE', summary: 'Certificate of the listener, PEM; with --tls-key.' },
  'tls-key': { type: 'text', value: 'FILE', summary: 'Its key.' },
  'tls-client-ca': {
    type: 'text',
    value: 'FILE',
    summary: 'Authorities whose certificates callers must show, PEM.',
  },
  'reset-state': {
    type: 'boolean',
    summary: 'When neither the state nor the one before can be read: sets both aside and starts empty.',
  },
  ...COMMON,
} as const satisfies Flags

export const RESOLVER_FLAGS = {
  file: { type: 'text', value: 'FILE', summary: 'Table of ids and hosts, YAML; read again when it changes.' },
  map: {
    type: 'list',
    value: 'ID=HOST,…',
    summary: 'More of them, for nodes, bridges and routers alike; over those of the file.',
  },
  host: { type: 'text', value: 'HOST', default: '127.0.0.1', summary: 'Address to listen on.' },
  port: {
    type: 'integer',
    default: 9090,
    ...PORT,
    summary: 'Port to listen on; 0 = any free port, which is printed.',
  },
  echo: { type: 'boolean', summary: 'An id that is not in the table is answered with itself, as its host.' },
  format: {
    type: 'choice',
    choices: ['text', 'json'],
    default: 'text',
    summary: 'The host as text, or an object with hostname, port, api_port and quic_port.',
  },
  ...COMMON,
} as const satisfies Flags

/** The flags of `vacancy bridge` (docs/design/fabric.md#bridge). */

import type { Flags } from '@vacancy/shared/node'
import { API_FLAGS, LIMIT_FLAGS, PORT_RANGE, PROCESS_FLAGS, SECURITY_FLAGS, UPWARD_FLAGS } from '../forward/flags.ts'

export const BRIDGE_FLAGS = {
  'zone-id': { type: 'text', value: 'ID', required: true, summary: 'Zone of the shard, also -z.' },
  'shard-id': { type: 'text', value: 'ID', required: true, summary: 'Shard whose nodes are served, also -s.' },
  'bridge-id': { type: 'text', value: 'ID', required: true, summary: 'Own id, unique in the system, also -b.' },
  ...UPWARD_FLAGS,
  'node-api-port': {
    type: 'integer',
    default: 8080,
    min: 1,
    max: 65_535,
    summary: 'HTTP port of nodes, where the resolver names none.',
  },
  'node-tcp-port': {
    type: 'integer',
    default: 7777,
    min: 1,
    max: 65_535,
    summary: 'TCP port of nodes, where the resolver names none.',
  },
  'node-token-file': { type: 'text', value: 'FILE', summary: 'Token for LOGIN to nodes: the first line of the file.' },
  'registry-heartbeat-interval-secs': {
    type: 'integer',
    default: 10,
    min: 1,
    max: 3_600,
    unit: 'seconds',
    summary: 'Interval of registration.',
  },
  'listen-host': { type: 'text', value: 'HOST', default: '0.0.0.0', summary: 'Address for routers.' },
  'listen-port': {
    type: 'integer',
    default: 9000,
    ...PORT_RANGE,
    summary: 'Port for routers; 0 = any free port, which is printed.',
  },
  ...API_FLAGS,
  'conn-per-node': { type: 'integer', default: 2, min: 1, max: 64, summary: 'Connections to each node.' },
  'request-timeout-ms': {
    type: 'integer',
    default: 1_400,
    min: 50,
    max: 600_000,
    unit: 'ms',
    summary: 'Time for a request with all its tries. DELSEGMENT has ten times as much.',
  },
  'http-timeout-ms': {
    type: 'integer',
    default: 2_000,
    min: 50,
    max: 60_000,
    unit: 'ms',
    summary: 'Time for one call of the HTTP API of a node.',
  },
  'node-probe-interval-sec': {
    type: 'integer',
    default: 2,
    min: 1,
    max: 3_600,
    unit: 'seconds',
    summary: 'Interval of discovery; faster while there is no leader or no follower.',
  },
  reads: {
    type: 'choice',
    choices: ['followers', 'any', 'leader'],
    default: 'followers',
    summary: 'Nodes for reads. followers: the leader only where no follower is usable; leader: sees own writes.',
  },
  'max-read-lag': {
    type: 'integer',
    default: 10_000,
    min: 0,
    max: 1_000_000_000,
    unit: 'log entries',
    summary: 'Followers that are further behind are passed over, unless nothing else is left.',
  },
  ...LIMIT_FLAGS,
  ...SECURITY_FLAGS,
  ...PROCESS_FLAGS,
} as const satisfies Flags

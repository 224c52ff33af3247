/** The flags of `vacancy bridge` (docs/design/fabric.md#bridge). */

import { choice, type Flags, named, port, whole } from '@vacancy/shared/node'
import { API_FLAGS, LIMIT_FLAGS, PROCESS_FLAGS, SECURITY_FLAGS, UPWARD_FLAGS, USUAL_HOST } from '../forward/flags.ts'

export const BRIDGE_FLAGS = {
  'zone-id': { ...named('ID'), required: true, summary: 'Zone of the shard, also -z.' },
  'shard-id': { ...named('ID'), required: true, summary: 'Shard whose nodes are served, also -s.' },
  'bridge-id': { ...named('ID'), required: true, summary: 'Own id, unique in the system, also -b.' },
  ...UPWARD_FLAGS,
  'node-api-port': { ...whole(8080, 1, 65_535), summary: 'HTTP port of nodes, where the resolver names none.' },
  'node-tcp-port': { ...whole(7777, 1, 65_535), summary: 'TCP port of nodes, where the resolver names none.' },
  'node-token-file': { ...named('FILE'), summary: 'Token for LOGIN to nodes: the first line of the file.' },
  'registry-heartbeat-interval-secs': { ...whole(10, 1, 3_600, 'seconds'), summary: 'Interval of registration.' },
  'listen-host': { ...named('HOST'), summary: `Address for routers; ${USUAL_HOST}` },
  'listen-port': { ...port(9000), summary: 'Port for routers; 0 = any free port, which is printed.' },
  ...API_FLAGS,
  'conn-per-node': { ...whole(2, 1, 64), summary: 'Connections to each node.' },
  'request-timeout-ms': {
    ...whole(1_400, 50, 600_000, 'ms'),
    summary: 'Time for a request with all its tries. DELSEGMENT has ten times as much.',
  },
  'http-timeout-ms': { ...whole(2_000, 50, 60_000, 'ms'), summary: 'Time for one call of the HTTP API of a node.' },
  'node-probe-interval-sec': {
    ...whole(2, 1, 3_600, 'seconds'),
    summary: 'Interval of discovery; faster while there is no leader or no follower.',
  },
  reads: {
    ...choice(['followers', 'any', 'leader'], 'followers'),
    summary: 'Nodes for reads. followers: the leader only where no follower is usable; leader: sees own writes.',
  },
  'max-read-lag': {
    ...whole(10_000, 0, 1_000_000_000, 'log entries'),
    summary: 'Followers that are further behind are passed over, unless nothing else is left.',
  },
  'hedge-after-ms': {
    ...whole(0, 0, 60_000, 'ms'),
    summary: 'A read without a reply for this time is sent to a second follower, at most 5 % of reads; 0 = never.',
  },
  ...LIMIT_FLAGS,
  ...SECURITY_FLAGS,
  ...PROCESS_FLAGS,
} as const satisfies Flags

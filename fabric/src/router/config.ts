/** The flags of `vacancy router` (docs/design/fabric.md#router). */

import { choice, type Flags, named, port, whole } from '@vacancy/shared/node'
import { API_FLAGS, LIMIT_FLAGS, PROCESS_FLAGS, SECURITY_FLAGS, UPWARD_FLAGS, USUAL_HOST } from '../forward/flags.ts'

/** Time limits of a request, ms: the inner hop answers first. */
export const ROUTER_DEADLINE_MS = { edge: 1_800, zone: 1_600 } as const

export const ROUTER_FLAGS = {
  mode: {
    ...choice(['edge', 'zone'], 'edge'),
    summary: 'edge: entry of clients, routes to zones; zone: routes to the shards of its zone.',
  },
  'zone-id': { ...named('ID'), summary: 'Own zone; needed in zone mode.' },
  'router-id': { ...named('ID'), summary: 'Own id, unique in the system; needed in zone mode.' },
  ...UPWARD_FLAGS,
  'listen-host': { ...named('HOST'), summary: `Address for clients; ${USUAL_HOST}` },
  'tcp-port': { ...port(9000), summary: 'Port for clients; 0 = any free port, which is printed.' },
  ...API_FLAGS,
  'conn-per-hop': { ...whole(4, 1, 64), summary: 'Connections to each next hop.' },
  'hop-tcp-port': { ...whole(9000, 1, 65_535), summary: 'Port of next hops, where the resolver names none.' },
  'refresh-interval-secs': {
    ...whole(10, 1, 3_600, 'seconds'),
    summary: 'Interval of the poll for new routes, with registries that cannot notify.',
  },
  'heartbeat-interval-secs': { ...whole(10, 1, 3_600, 'seconds'), summary: 'Interval of registration, in zone mode.' },
  'request-timeout-ms': {
    type: 'integer',
    min: 50,
    max: 600_000,
    unit: 'ms',
    summary: `Time for a request with all its tries; default ${ROUTER_DEADLINE_MS.edge} (edge), ${ROUTER_DEADLINE_MS.zone} (zone). DELSEGMENT has ten times as much.`,
  },
  'app-keepalive-secs': {
    ...whole(15, 0, 3_600, 'seconds'),
    summary: 'Keepalives on idle connections to hops; 0 = none.',
  },
  ...LIMIT_FLAGS,
  ...SECURITY_FLAGS,
  ...PROCESS_FLAGS,
} as const satisfies Flags

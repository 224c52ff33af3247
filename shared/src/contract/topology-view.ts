/**
 * The control plane's view of the fabric: registry, resolver, proxies, routers, bridges, and the connections between
 * them (docs/design/control-plane.md#fabric). Null means "not reported", never zero.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { type ControlRoute, count, time } from './control.ts'

const FABRIC_KINDS = ['registry', 'resolver', 'proxy', 'edge', 'zone-router', 'bridge'] as const
export type FabricKind = (typeof FABRIC_KINDS)[number]

/** The first one whose condition holds applies (server/src/fabric/derive.ts). */
const FABRIC_STATES = [
  'left',
  'not-polled',
  'reading',
  'unreachable',
  'not-answering',
  'other',
  'not-ready',
  'unregistered',
  'ready',
] as const
export type FabricState = (typeof FABRIC_STATES)[number]

const level = z.enum(['ok', 'info', 'warn', 'crit', 'unk'])
const number = z.number().nullable()

const fabricComponent = z.object({
  /** `bridge b3`; edges of the map name it. */
  key: z.string(),
  kind: z.enum(FABRIC_KINDS),
  id: z.string(),
  zone: z.string().nullable(),
  shard: z.string().nullable(),
  apiUrl: z.string().nullable(),
  version: z.string().nullable(),
  state: z.enum(FABRIC_STATES),
  level,
  message: z.string(),
  since: time,
  /** Whether the registry lists it; null for kinds that do not register. */
  registered: z.boolean().nullable(),
  /** The time of its last heartbeat, if it is late. */
  lateSince: time.nullable(),
  /** How the registry's entry differs from what the component itself reports. */
  differences: z.array(z.string()),
  reasons: z.array(z.object({ name: z.string(), message: z.string(), since: time })),
  /** Per second; `p99` in milliseconds. */
  rates: z.object({ reads: number, writes: number, errors: number, p99: number }),
  inFlight: count.nullable(),
  connections: count.nullable(),
  /** What clients lose because of its state, as sentences. */
  cuts: z.array(z.string()),
  facts: z.array(z.object({ name: z.string(), value: z.string() })),
})
export type FabricComponent = z.infer<typeof fabricComponent>

/** `declared`: expected by the registry, and not reported by the component itself. */
const EDGE_STATES = ['live', 'idle', 'down', 'declared', 'unknown'] as const

const fabricEdge = z.object({
  from: z.string(),
  /** The key of a component, or `node s1/n1`. */
  to: z.string(),
  state: z.enum(EDGE_STATES),
  level,
  message: z.string(),
  connections: count.nullable(),
  /** Requests per second, counted by the sender for this connection. */
  reads: number,
  writes: number,
  /** Requests per second, counted by the receiver for all of its clients. */
  received: number,
})
export type FabricEdge = z.infer<typeof fabricEdge>

const fabricShard = z.object({
  id: z.string(),
  zone: z.string(),
  segments: count.nullable(),
  /** Null while no bridge of it can be judged. */
  served: z.boolean().nullable(),
})

export const topologyView = z.object({
  registry: z.object({
    address: z.string().nullable(),
    up: z.boolean(),
    error: z.string(),
    /** It restarted, and waits for heartbeats before it removes anything. */
    warming: z.boolean(),
  }),
  components: z.array(fabricComponent),
  edges: z.array(fabricEdge),
  shards: z.array(fabricShard),
})
export type TopologyView = z.infer<typeof topologyView>

/** The reply of one component to the question where a segment goes. */
const routeHop = z.object({
  key: z.string(),
  kind: z.enum([...FABRIC_KINDS, 'node']),
  id: z.string(),
  place: z.string(),
  level,
  /** "Shard s1, through b1 and b2". */
  answer: z.string(),
  /** Why it answers so, or what differs. */
  why: z.string(),
  /** What was requested; '' if the component has no address. */
  url: z.string(),
  status: count.nullable(),
  milliseconds: number,
  body: z.string(),
})
export type RouteHop = z.infer<typeof routeHop>

const routeView = z.object({
  segment: z.string(),
  level,
  conclusion: z.string(),
  shard: z.string().nullable(),
  zone: z.string().nullable(),
  hops: z.array(routeHop),
})
export type RouteView = z.infer<typeof routeView>

const datasetsView = z.object({
  address: z.string().nullable(),
  up: z.boolean(),
  error: z.string(),
  at: time.nullable(),
  epoch: z.string().nullable(),
  globalVersion: count.nullable(),
  warming: z.boolean(),
  datasets: z.array(z.object({ name: z.string(), version: count, entries: count.nullable() })),
  segments: z.array(
    z.object({
      segment: z.string(),
      shard: z.string(),
      /** Further shards that claim it, in order. */
      claims: z.array(z.string()),
      reservedUntil: time.nullable(),
    }),
  ),
  /** How many segments there are; `segments` holds at most `limit`. */
  total: count,
})
export type DatasetsView = z.infer<typeof datasetsView>

/** What stops if a place goes. `pauses`: the leader moves, writes wait for an election. */
const failureRow = z.object({
  kind: z.enum(['zone', 'machine', 'node', ...FABRIC_KINDS]),
  name: z.string(),
  /** Of a node or bridge. */
  shard: z.string().nullable(),
  writes: z.array(z.string()),
  reads: z.array(z.string()),
  pauses: z.array(z.string()),
  /** What clients lose with the components there, as sentences. */
  cuts: z.array(z.string()),
})
export type FailureRow = z.infer<typeof failureRow>

export const TOPOLOGY_ROUTES = {
  'GET /api/v1/failures': {
    access: 'viewer',
    summary: 'What stops for reads and for writes if a zone, machine, node or component goes, by the present state.',
    response: z.object({
      rows: z.array(failureRow),
      /** Places whose loss stops nothing, by kind. */
      harmless: z.record(z.string(), count),
    }),
  },
  'GET /api/v1/topology': {
    access: 'viewer',
    summary: 'The fabric: components, connections, and what is cut off.',
    response: topologyView,
  },
  'GET /api/v1/topology/route': {
    access: 'viewer',
    summary: 'Where requests of a segment go: the current reply of each component on the way.',
    query: z.object({ segment: z.string().min(1).max(LIMITS.nameBytesMax) }),
    response: routeView,
  },
  'GET /api/v1/registry/datasets': {
    access: 'viewer',
    summary: 'Versions of the data of the registry, and its segments with claims and reservations.',
    query: z.object({
      /** Part of a segment or shard. */
      filter: z.string().max(256).default(''),
      limit: z.coerce.number().int().min(1).max(1_000).default(500),
    }),
    response: datasetsView,
  },
} as const satisfies { readonly [name: string]: ControlRoute }

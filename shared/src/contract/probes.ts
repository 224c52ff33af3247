/** What clients see: the probes of the control plane, and their results by shard and way in. */
import { z } from 'zod'
import { type ControlRoute, count, time } from './control.ts'

/** Milliseconds of the answers of the last minutes; null before the first. */
const latency = z.object({ p50: z.number(), p99: z.number() }).nullable()

const probed = z.object({
  latency,
  answered: count,
  failed: count,
})

/**
 * `waiting`: not measured yet. `not-probed`: it cannot be, as `message` says. `answers` and `fails` are measured: one
 * failure is repeated before the state changes.
 */
const WAY_STATES = ['waiting', 'answers', 'fails', 'not-probed'] as const

/** One way in to one shard: an edge router, or without any a node. */
const clientWay = z.object({
  shard: z.string(),
  through: z.enum(['edge', 'node']),
  /** The name of the edge router, or the id of the node. */
  id: z.string(),
  state: z.enum(WAY_STATES),
  /** "Searches and holds are answered", "Holds fail: 503 no leader". */
  message: z.string(),
  /** Code of the failure; '' without one. */
  code: z.string(),
  /** The request that fails; null while none does. */
  failing: z.enum(['search', 'hold']).nullable(),
  /** Since the first failure in a row. */
  since: time.nullable(),
  /** Of the last probe that was answered in full. */
  answeredAt: time.nullable(),
  search: probed,
  hold: probed,
})
export type ClientWay = z.infer<typeof clientWay>

/** `partly`: through some ways only. */
const CLIENT_STATES = ['waiting', 'answers', 'partly', 'fails', 'not-probed'] as const

const clientsOfShard = z.object({
  shard: z.string(),
  state: z.enum(CLIENT_STATES),
  /** Why it fails or is not probed; '' otherwise. */
  message: z.string(),
  search: latency,
  hold: latency,
  ways: z.array(clientWay),
})
export type ClientsOfShard = z.infer<typeof clientsOfShard>

export const clientsSummary = z.object({
  /** `off`: `probe_interval_secs` is 0. `waiting`: nothing was measured yet. */
  state: z.enum(['off', 'waiting', 'measured']),
  intervalSeconds: count,
  shards: count,
  answered: count,
  /** Answered through some ways only. */
  partly: count,
  failing: count,
  /** Not measured yet, or not probed. */
  unmeasured: count,
  search: latency,
  hold: latency,
})
export type ClientsSummary = z.infer<typeof clientsSummary>

export const PROBE_ROUTES = {
  'GET /api/v1/clients': {
    access: 'viewer',
    summary: 'What clients see: a search and a hold through each way in, by shard, failing ones first.',
    response: z.object({ clients: clientsSummary, shards: z.array(clientsOfShard) }),
  },
} as const satisfies { readonly [name: string]: ControlRoute }

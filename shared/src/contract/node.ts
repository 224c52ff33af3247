/**
 * HTTP of a node on api_port: every path that a standalone node answers, what it takes and gives (platform.md §7.2–7.6).
 * Readers take keys they do not know for later additions: no schema here refuses them.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'

export const NODE_HTTP_LIMITS = {
  bodyBytesMax: 65_536,
  /** Ids in one `GET /properties`. */
  propertyIdsMax: 200,
  wordsMax: 1_000,
  wordsDefault: 100,
} as const

const count = z.int().nonnegative()
/** RFC 3339, UTC. */
const time = z.iso.datetime()
const day = z.iso.date()
const name = z.string().min(1)
const hexDigest = z.string().regex(/^[0-9a-f]{64}$/)

/** `candidate` is told of a node by itself only. */
export const MEMBER_ROLES = ['leader', 'follower', 'learner', 'candidate'] as const

/** The body of every answer from 400 on. */
export const errorBody = z.object({ error: z.string() })

/** What is answered to a request that does something. */
export const messageBody = z.object({ message: z.string() })

/** `GET /health`: the process lives. */
export const healthBody = z.object({ status: z.literal('ok') })

/** `GET /healthz`, text: 200 with `active…`, 503 with `unavailable`. */
export const healthzText = z.enum(['active', 'active_leader', 'active_follower', 'unavailable'])

/** One reason for which a node does not do all of its work, with what to look at and what to type. */
export const reason = z.object({
  reason: name,
  /** `all`: it is unavailable. `writes`: searches go on. */
  stops: z.enum(['all', 'writes']),
  detail: z.string(),
  since: time,
  means: z.string(),
  look_at: z.string(),
  type: z.string(),
})

/** `GET /ready`: 200 without reasons, 503 with them. */
export const readyBody = z.object({ ready: z.boolean(), reasons: z.array(reason) })

/**
 * `GET /codecs`. `hash` is a u64 written digit for digit: after JSON.parse it is only near it; `hash_hex` is exact, and
 * `ordered_hash` is the one that sees the order.
 */
export const codecsBody = z.object({
  rate_features: z.array(name).min(1).max(LIMITS.featuresMax),
  hash: z.number().nonnegative(),
  hash_hex: z.string().regex(/^[0-9a-f]{16}$/),
  ordered_hash: hexDigest,
})

/** `GET /snapshot-info`: the snapshot a restart would begin with; 404 without one. */
export const snapshotInfoBody = z.object({
  id: name,
  created_at: time,
  shard_id: name,
  last_index: count,
  last_term: count,
  properties: count,
  packages: count,
  segments: count,
  /** First and last day with packages; null when there are none. */
  window: z.object({ from: day, to: day }).nullable(),
  codec_hash: hexDigest,
  bytes: count,
  origin: z.enum(['seed', 'periodic', 'requested', 'maintenance', 'shutdown', 'recovery']),
  duration_ms: z.number().nonnegative(),
})

/** `GET /status`: one document with everything a console shows of a node. Parts are null until the node has them. */
export const statusBody = z.object({
  mode: z.enum(['standalone', 'clustered']),
  version: name,
  shard_id: name,
  health: healthzText,
  reasons: z.array(reason),
  started_at: time,
  uptime_seconds: count,
  cores: z.object({ start: count, now: count }),
  serving_threads: count,
  connections: count,
  kernels: z.enum(['wasm', 'typescript']),
  ordered_hash: hexDigest,
  /** Why data of another codec list was set aside; null when none was. */
  codec_mismatch: z.string().nullable(),
  /** Bytes by kind. */
  memory: z.object({
    rss: count,
    heap: count,
    arraybuffers: count,
    indexes: count.optional(),
    packages: count.optional(),
    free: count.optional(),
  }),
  properties: count,
  packages: count,
  sessions: count,
  segments: z.array(z.object({ name, properties: count, packages: count })),
  replica: z
    .object({
      role: z.enum(MEMBER_ROLES),
      term: count,
      first_index: count,
      last_index: count,
      commit_index: count,
      applied_index: count,
      lag_entries: count,
    })
    .nullable(),
  wal: z.object({ bytes: count, files: count }).nullable(),
  disk: z.object({ free_bytes: count, full: z.boolean() }).nullable(),
  digest: z.object({ value: z.string().regex(/^[0-9a-f]{16}$/), checked_index: count }).nullable(),
  snapshot: snapshotInfoBody.nullable(),
  snapshot_running: z.boolean(),
  maintenance: z.object({ last_day: count, last_success_at: time.nullable(), removed_packages: count }).nullable(),
})

/** `GET /properties?ids=a,b`: attributes and room types; ids of no property are listed apart. */
export const propertiesBody = z.object({
  properties: z.array(
    z.object({
      id: name,
      segment: name,
      area: name,
      type: name,
      category: name,
      stars: z.int().min(LIMITS.starsMin).max(LIMITS.starsMax),
      latitude: z.number().min(-LIMITS.latitudeMax).max(LIMITS.latitudeMax),
      longitude: z.number().min(-LIMITS.longitudeMax).max(LIMITS.longitudeMax),
      amenities: z.array(name),
      room_types: z.array(name),
    }),
  ),
  missing: z.array(name),
})

export const WORD_KINDS = ['segment', 'area', 'type', 'category', 'room_type', 'amenity'] as const

/** The parameters of `GET /words`. */
export const wordsQuery = z.object({
  kind: z.enum(WORD_KINDS).default('segment'),
  segment: z.string().optional(),
  prefix: z.string().default(''),
  limit: z.coerce.number().int().min(1).max(NODE_HTTP_LIMITS.wordsMax).default(NODE_HTTP_LIMITS.wordsDefault),
})

/** `GET /words`: names in use, ascending, with the number of properties that have them. */
export const wordsBody = z.object({
  kind: z.enum(WORD_KINDS),
  segment: z.string().nullable(),
  words: z.array(z.object({ word: name, properties: count })),
  more: z.boolean(),
})

/** `GET /config`: each key with its effective value and where it came from; secrets are masked. */
export const configBody = z.record(
  z.string(),
  z.object({
    value: z.union([z.string(), z.number(), z.boolean()]),
    origin: z.enum(['default', 'file', 'env', 'flag']),
    /** File and line, variable, or flag; empty for a default. */
    at: z.string(),
  }),
)

/** `GET /debug/slow`: the slowest requests of late, slowest first. */
export const slowBody = z.object({
  requests: z.array(z.object({ command: name, milliseconds: z.number().nonnegative(), rows: count, at: time })),
})

/** `POST /shutdown`: 400 `confirmation required` without it. */
export const shutdownRequest = z.object({ confirm: z.literal(true) })

/** `POST /admin/maintenance`: `force` lets the day jump further than a clock should. */
export const maintenanceRequest = z.object({ force: z.boolean().default(false) })

/** `POST /reload-tokens`: how many tokens are in force now. */
export const reloadTokensBody = z.object({ message: z.literal('tokens reloaded'), tokens: count })

/** Who may ask: everybody at any time, or a role and those above it (platform.md §7.5). */
export type NodeAccess = 'open' | 'monitoring' | 'client' | 'admin'

export type NodeRoute = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly access: NodeAccess
  /** Where the path exists; elsewhere it answers 404 and says so. */
  readonly mode: 'both' | 'clustered'
  readonly summary: string
  /** The body it takes; without one a body is ignored. */
  readonly body?: z.ZodType
  /** Its parameters, where they are more than text. */
  readonly query?: z.ZodType
  /** Status when all is well. */
  readonly status: 200 | 202
  /** JSON, unless `text` says otherwise. */
  readonly response: z.ZodType
  readonly text?: true
}

/** Every path of a standalone node. */
export const NODE_ROUTES = {
  health: route('GET', '/health', 'open', 200, healthBody, 'Whether the process lives.'),
  healthz: { ...route('GET', '/healthz', 'open', 200, healthzText, 'Whether it answers searches.'), text: true },
  ready: route('GET', '/ready', 'open', 200, readyBody, 'Whether it does all of its work, and why not.'),
  metrics: { ...route('GET', '/metrics', 'monitoring', 200, z.string(), 'Metrics for Prometheus.'), text: true },
  codecs: route('GET', '/codecs', 'monitoring', 200, codecsBody, 'The rate features, in order.'),
  status: route('GET', '/status', 'monitoring', 200, statusBody, 'Everything a console shows of a node.'),
  snapshotInfo: route('GET', '/snapshot-info', 'monitoring', 200, snapshotInfoBody, 'The newest snapshot.'),
  slow: route('GET', '/debug/slow', 'monitoring', 200, slowBody, 'The slowest requests of late.'),
  properties: route('GET', '/properties', 'client', 200, propertiesBody, 'Properties by their ids.'),
  words: { ...route('GET', '/words', 'client', 200, wordsBody, 'Names in use, by prefix.'), query: wordsQuery },
  config: route('GET', '/config', 'admin', 200, configBody, 'The configuration and where each value came from.'),
  saveSnapshot: route('POST', '/save-snapshot', 'admin', 202, messageBody, 'Starts a snapshot.'),
  maintenance: {
    ...route('POST', '/admin/maintenance', 'admin', 202, messageBody, 'Starts the daily maintenance now.'),
    body: maintenanceRequest,
  },
  shutdown: {
    ...route('POST', '/shutdown', 'admin', 202, messageBody, 'Stops the node in order.'),
    body: shutdownRequest,
  },
  reloadTokens: route('POST', '/reload-tokens', 'admin', 200, reloadTokensBody, 'Reads the auth file again.'),
  tlsRotate: route('POST', '/tls-rotate', 'admin', 202, messageBody, 'Reads the certificates again.'),
} as const satisfies { readonly [name: string]: NodeRoute }

function route<R extends z.ZodType>(
  method: NodeRoute['method'],
  path: string,
  access: NodeAccess,
  status: NodeRoute['status'],
  response: R,
  summary: string,
) {
  return { method, path, access, mode: 'both', status, response, summary } as const
}

export type NodeErrorBody = z.infer<typeof errorBody>
export type NodeReason = z.infer<typeof reason>
export type NodeReady = z.infer<typeof readyBody>
export type NodeStatus = z.infer<typeof statusBody>
export type NodeCodecs = z.infer<typeof codecsBody>
export type NodeSnapshotInfo = z.infer<typeof snapshotInfoBody>
export type NodeProperties = z.infer<typeof propertiesBody>
export type NodeWords = z.infer<typeof wordsBody>
export type NodeConfig = z.infer<typeof configBody>
export type NodeSlow = z.infer<typeof slowBody>

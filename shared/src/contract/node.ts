/**
 * HTTP of a node on api_port: every path with its request and response (docs/design/http.md#node-api). Paths of
 * clustered mode answer 404 in standalone mode. Responses may have unknown keys, so that later versions can add some;
 * unknown names in requests are refused.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { ID_RULE, parseId } from '../ids.ts'
import { MEMBER_OPERATIONS } from '../membership.ts'
import { nightBody, nightQuery } from './night.ts'

export const NODE_HTTP_LIMITS = {
  bodyBytesMax: 65_536,
  /** Ids in one `GET /properties`. */
  propertyIdsMax: 200,
  /** Node ids in one `POST /peers`. */
  peersMax: 64,
  wordsMax: 1_000,
  wordsDefault: 100,
  /** Segments in one `GET /coverage`. */
  coverageMax: 200,
} as const

const count = z.int().nonnegative()
const digestText = z.string().regex(/^[0-9a-f]{16}$/)
/** RFC 3339, UTC. */
const time = z.iso.datetime()
const day = z.iso.date()
const name = z.string().min(1)
const hexDigest = z.string().regex(/^[0-9a-f]{64}$/)

/** Only a node itself reports `candidate`. */
export const MEMBER_ROLES = ['leader', 'follower', 'learner', 'candidate'] as const

/** The body of every response with status 400 or above. */
export const errorBody = z.object({ error: z.string() })

/** The response to a request for an action. */
const messageBody = z.object({ message: z.string() })

/** `GET /health`: the process is alive. */
const healthBody = z.object({ status: z.literal('ok') })

/** `GET /healthz`, text: 200 with `active…`, 503 with `unavailable`. */
export const healthzText = z.enum(['active', 'active_leader', 'active_follower', 'unavailable'])

/** One reason why a node is not fully working, with its evidence and the command that helps. */
export const reason = z.object({
  reason: name,
  /** `all`: the node is unavailable. `writes`: searches continue. `nothing`: the node is ready, but needs attention. */
  stops: z.enum(['all', 'writes', 'nothing']),
  detail: z.string(),
  since: time,
  means: z.string(),
  look_at: z.string(),
  type: z.string(),
})

/** `GET /ready`: 503 with a reason that stops reads or writes. */
export const readyBody = z.object({ ready: z.boolean(), reasons: z.array(reason) })

/**
 * `GET /codecs`. `hash` is a u64 in decimal digits, which JSON.parse rounds. `hash_hex` is exact, and `ordered_hash`
 * also depends on the order.
 */
export const codecsBody = z.object({
  rate_features: z.array(name).min(1).max(LIMITS.featuresMax),
  hash: z.number().nonnegative(),
  hash_hex: z.string().regex(/^[0-9a-f]{16}$/),
  ordered_hash: hexDigest,
})

/** Why a node wrote a snapshot; `seed` was built from files. */
export const SNAPSHOT_ORIGINS = ['seed', 'periodic', 'requested', 'maintenance', 'shutdown', 'recovery'] as const

/** `GET /snapshot-info`: the snapshot that a restart would load; 404 without one. */
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
  origin: z.enum(SNAPSHOT_ORIGINS),
  duration_ms: z.number().nonnegative(),
})

/** Id of a node (docs/design/http.md#identifiers). */
const nodeId = z.string().refine((id) => parseId(id) !== undefined, { error: `must be ${ID_RULE}` })
const total = z.record(z.string(), count)

/** `GET /node-info`: exactly these four keys, and `leader_url` if configured. '' is unknown. */
export const nodeInfoBody = z.object({
  leader_id: z.string(),
  shard_id: z.string(),
  zone_id: z.string(),
  node_id: name,
  leader_url: z.string().optional(),
})

/** `GET /leader`: its id as a JSON string, '' when unknown. */
export const leaderBody = z.string()

/** `GET /peers`: ids of all nodes of the shard, itself included, ascending. */
export const peersBody = z.array(name)

/** `POST /peers`: the nodes to look up through the resolver. */
export const peersRequest = z.array(nodeId).min(1).max(NODE_HTTP_LIMITS.peersMax)

/** Refused with 409 unless the node that receives it leads in this term: for a plan of a moment ago. */
const expected_term = count.optional()

/** Body of `POST /cluster/promote-learner` and `/cluster/demote-voter`. */
export const memberRequest = z.object({ node_id: nodeId, expected_term })

export const transferRequest = z.object({ target_node_id: nodeId, expected_term })

/**
 * `POST /cluster/load`: names a snapshot file on the machine of this node, a file to fetch from a URL with its
 * content digest, or a snapshot that the shard already holds, by its content digest. A node that waits for its shard
 * to form accepts only the second: it founds the shard with that snapshot.
 */
export const loadRequest = z.union([
  z.strictObject({ file: z.string().startsWith('/') }),
  z.strictObject({ url: z.string(), digest: hexDigest, token: z.string().max(1_024).optional() }),
  z.strictObject({ digest: hexDigest }),
])

export const dropLoadRequest = z.object({ digest: hexDigest })

/** The text bodies of membership calls, with status 202. */
export const CLUSTER_TEXTS = {
  promote: 'add in progress',
  demote: 'remove in progress',
  transfer: 'transfer in progress',
  load: 'load in progress',
  'drop-load': 'drop in progress',
} as const

const operationKind = z.enum(MEMBER_OPERATIONS)

/** A change in progress. `node` is a content digest for loads, and the shard's id for `set-time`. */
const runningOperation = z.object({ kind: operationKind, node: name, started_at: time, step: z.string() })

/**
 * A finished change. `reason` is the cause of a failure; for a successful load, the snapshot that holds the data
 * before it; else ''.
 */
const finishedOperation = z.object({
  kind: operationKind,
  node: name,
  result: z.enum(['done', 'failed']),
  reason: z.string(),
  at: time,
})

/** `GET /cluster/operations`: newest first. */
export const operationsBody = z.object({
  operation: runningOperation.nullable(),
  operations: z.array(finishedOperation),
})

/** What a node knows of a member; null where only the leader knows. */
const memberBody = z.object({
  id: name,
  role: z.enum(MEMBER_ROLES),
  voter: z.boolean(),
  health: z.enum(['active', 'installing', 'inactive', 'unknown']),
  match_index: count.nullable(),
  lag_entries: count.nullable(),
  lag_seconds: z.number().nonnegative().nullable(),
  host: z.string(),
})

/** Before the first election, or before this node is a member: what is missing. */
const bootstrapBody = z.object({
  waits_for: z.enum(['snapshot', 'voters', 'join']),
  why: z.string(),
  needed: count,
  voters: z.array(
    z.object({
      id: name,
      state: z.enum(['silent', 'empty', 'seeded', 'formed', 'refused']),
      snapshot: z.string(),
      index: count,
      detail: z.string(),
    }),
  ),
})

/**
 * Replicated settings: bytes of records of stays, holds at a time, in all and of one source, and the minutes after
 * midnight UTC at which the day of the shard begins (absent on older nodes).
 */
const settingsBody = z.object({
  stays_bytes: count,
  holds_max: count,
  holds_max_per_source: count,
  day_begins_minutes: z.int().optional(),
})

export const settingNames = settingsBody.keyof()
/** `POST /admin/settings`: one setting. */
const settingRequest = z.object({ name: settingNames, value: z.int() })

/** A night on which the source of record took rooms back that are on hold: `owed` of the `held` ones are missing. */
export const oversoldNight = z.object({
  property_id: z.string(),
  room_type: z.string(),
  date: z.iso.date(),
  held: count,
  owed: count,
})

/** Held and booked stays. Counts are since the start of the process. */
const staysBody = z.object({
  stays: count,
  held: count,
  bytes: count,
  /** Nights on which the source took rooms back that are on hold. */
  oversold_nights: count,
  /** Some of them; absent on older nodes. */
  oversold: z.array(oversoldNight).optional(),
  next_deadline: time.nullable(),
  expired: count,
  /** Rooms that cancellations did not return, because 255 were left. */
  overflowed_rooms: count,
  /** Rooms a night that were given back by the lines of bookings without a record; absent on older nodes. */
  unrecorded_rooms: count.optional(),
  /** Stays that were forgotten before their time, because `stays_bytes` was reached; absent on older nodes. */
  evicted: z.object({ ended: count, booked: count }).optional(),
  refused: z.record(z.string(), count),
  settings: settingsBody,
})

/** `GET /cluster/info`. The first two keys are those of existing tools. */
export const clusterInfoBody = z.object({
  leader_id: z.string(),
  members: z.object({ voters: z.array(name), learners: z.array(name) }),
  node_id: name,
  shard_id: z.string(),
  zone_id: z.string(),
  cluster_id: z.string(),
  leader_url: z.string(),
  term: count,
  first_index: count,
  last_index: count,
  commit_index: count,
  applied_index: count,
  joint: z.boolean(),
  nodes: z.array(memberBody),
  bootstrap: bootstrapBody.nullable(),
  operation: runningOperation.nullable(),
  last_operation: finishedOperation.nullable(),
  /** Replicated settings; absent before the node has loaded its data. */
  settings: settingsBody.optional(),
})

const nights = z.object({ from: day, to: day })

/** `POST /admin/set-time`: the effect, or the expected effect without `confirm`. */
export const setTimeBody = z.object({
  /** False without `confirm`: nothing was changed. */
  applied: z.boolean(),
  shard_time: time,
  new_time: time,
  /** Nights that maintenance dropped as past and that are open for sale again: they need a new import. */
  import_nights: nights.nullable(),
  /** Nights whose writes were refused as past while shard time was ahead. */
  missed_nights: nights.nullable(),
  /** Packages of this night and later ones are dropped: they are outside the window at the new time. */
  dropped_from: day.nullable(),
})

/** Without `confirm` nothing changes, and the response shows the expected effect. */
const setTimeRequest = z.object({ confirm: z.boolean().default(false) })

export const CLOCK_STATES = ['following', 'holding', 'suspect'] as const

/** Shard time and the clock of the node. */
const clockBody = z.object({
  /** Null before a new shard has a time. */
  shard_time: time.nullable(),
  /** The reference clock minus shard time. */
  offset_seconds: z.number(),
  /** `holding`: the clock differs and is not followed. `suspect`: shard time is ahead of trusted clocks. */
  state: z.enum(CLOCK_STATES),
  /** The last time an operator set shard time. */
  last_set: z
    .object({ from: time, to: time, import_nights: nights.nullable(), dropped_from: day.nullable() })
    .nullable(),
})

/** The part of `/status` that only a clustered node has. */
const clusterStatusBody = z.object({
  info: clusterInfoBody,
  leading: z.boolean(),
  staleness_seconds: z.number().nonnegative().nullable(),
  peers: peersBody,
  installing: z.object({ from: name, index: count, bytes_done: count, bytes_total: count }).nullable(),
  awaited_load: z.object({ digest: z.string(), bytes_missing: count }).nullable(),
  /** The last snapshot that this process was ordered to fetch. */
  pull: z
    .object({
      digest: hexDigest,
      state: z.enum(['pulling', 'checking', 'asked', 'placed', 'failed']),
      bytes_done: count,
      /** 0 until it is known. */
      bytes_total: count,
      error: z.string(),
      started_at: time,
    })
    .nullable(),
  clock_suspect: z.boolean(),
  connections_rejected: total,
  registry: z
    .object({
      up: z.boolean(),
      address: z.string(),
      error: z.string(),
      heartbeat_age_seconds: z.number().nonnegative().nullable(),
      codec_mismatch: z.string().nullable(),
      /** The segment list that it last accepted from this leader. */
      published: z.object({ segments: count, conflicts: count }).nullable(),
      /** Why it refused the last list; '' when it accepted it. */
      refusal: z.string(),
    })
    .nullable(),
  resolver: z.object({ address: z.string(), error: z.string(), errors: total }).nullable(),
})

/** `GET /status`: the complete state of a node for the console. Parts are null until the node has them. */
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
  /** `typescript` only on older nodes. */
  kernels: z.enum(['wasm', 'typescript']),
  ordered_hash: hexDigest,
  /** Why data with another codec list was set aside; null when none was. */
  codec_mismatch: z.string().nullable(),
  /** Absent on older nodes. */
  stays: staysBody.optional(),
  /** Bytes by kind. */
  memory: z.object({
    rss: count,
    heap: count,
    arraybuffers: count,
    indexes: count.optional(),
    packages: count.optional(),
    free: count.optional(),
    /** The smallest data memory of any voter, from the log; 0 while unknown. */
    budget: count.optional(),
    /** Upper bound of the data's size on any replica. */
    charged: count.optional(),
    /** How much the data may still grow. */
    left: count.optional(),
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
  /**
   * `value` is the current digest. `checked_value` is the digest at `checked_index`, which all replicas record about
   * every 5 s after writes. Only checked values are comparable, and only at equal indexes. 0 before the first one.
   */
  digest: z.object({ value: digestText, checked_index: count, checked_value: digestText.optional() }).nullable(),
  snapshot: snapshotInfoBody.nullable(),
  snapshot_running: z.boolean(),
  maintenance: z.object({ last_day: count, last_success_at: time.nullable(), removed_packages: count }).nullable(),
  /** Absent from nodes of version 0.1.0; null until the node has one. */
  clock: clockBody.nullable().optional(),
  /** Null in standalone mode. */
  cluster: clusterStatusBody.nullable(),
})

/** `GET /properties?ids=a,b`: attributes and room types. Unknown ids are listed separately. */
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

/** The parameters of `GET /properties`. */
const propertiesQuery = z.object({
  /** Property ids with commas between. */
  ids: z.string(),
})

export const WORD_KINDS = ['segment', 'area', 'type', 'category', 'room_type', 'amenity'] as const

/** The parameters of `GET /words`. */
export const wordsQuery = z.object({
  kind: z.enum(WORD_KINDS).default('segment'),
  segment: z.string().optional(),
  prefix: z.string().default(''),
  limit: z.coerce.number().int().min(1).max(NODE_HTTP_LIMITS.wordsMax).default(NODE_HTTP_LIMITS.wordsDefault),
})

/** `GET /words`: names in use, ascending, each with its number of properties. */
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

/** `GET /debug/slow`: the slowest recent requests, slowest first. */
export const slowBody = z.object({
  requests: z.array(
    z.object({
      command: name,
      milliseconds: z.number().nonnegative(),
      rows: count,
      at: time,
      /** Of the `traceparent` that came with it; nodes of an earlier version tell none. */
      trace_id: z.string().nullable().default(null),
    }),
  ),
})

/** The parameters of `GET /coverage`. */
const coverageQuery = z.object({
  /** Segments after this one, by name. */
  after: z.string().default(''),
  limit: z.coerce.number().int().min(1).max(NODE_HTTP_LIMITS.coverageMax).default(NODE_HTTP_LIMITS.coverageMax),
})

/** `GET /coverage`: current packages by segment and day; a page of segments, by name. */
export const nodeCoverageBody = z.object({
  properties: count,
  packages: count,
  ordered_hash: hexDigest,
  /** The log entry up to which the state is counted; null in standalone mode before the first read. */
  applied_index: count.nullable(),
  /** First and last day with packages in a segment of this page. */
  window: z.object({ from: day, to: day }).nullable(),
  /** `packages[i]` are those of day `window.from + i`. */
  segments: z.array(z.object({ name, properties: count, packages: z.array(count) })),
  more: z.boolean(),
})

/** `POST /shutdown`: 400 `confirmation required` without it. */
export const shutdownRequest = z.object({ confirm: z.literal(true) })

/** `POST /admin/maintenance`: `force` allows a larger jump of the day than a clock should make. */
export const maintenanceRequest = z.object({ force: z.boolean().default(false) })

/** `POST /reload-tokens`: the number of tokens now in force. */
const reloadTokensBody = z.object({ message: z.literal('tokens reloaded'), tokens: count })

/**
 * Required access: public, or a role and those above it (docs/design/http.md#access). `clientOnly` is never public with
 * an auth file. `adminToken` requires a token even without an auth file, in which case no token is valid.
 */
export type NodeAccess = 'open' | 'monitoring' | 'client' | 'clientOnly' | 'admin' | 'adminToken'

export type NodeRoute = {
  readonly method: 'GET' | 'POST'
  /** `{node_id}` at its end stands for a node id, percent-encoded. */
  readonly path: string
  readonly access: NodeAccess
  /** Where the path exists; elsewhere it answers 404 with a message that names the mode. */
  readonly mode: 'both' | 'clustered'
  readonly summary: string
  /** The body it takes; without one it takes an empty body or `{}`. */
  readonly body?: z.ZodType
  /** Its parameters, if they need more than text. */
  readonly query?: z.ZodType
  /** Status on success. */
  readonly status: 200 | 202
  /** JSON unless `text` is set. */
  readonly response: z.ZodType
  readonly text?: true
  /** For probes and scrapers, whose own parameters are ignored. */
  readonly probed?: true
}

/** Every path of a node. */
export const NODE_ROUTES = {
  health: {
    ...route('GET', '/health', 'open', 200, healthBody, 'Whether the process is alive.'),
    probed: true,
  },
  healthz: {
    ...route('GET', '/healthz', 'open', 200, healthzText, 'Whether it serves searches.'),
    text: true,
    probed: true,
  },
  ready: {
    ...route('GET', '/ready', 'open', 200, readyBody, 'Whether it is fully working, and why not.'),
    probed: true,
  },
  metrics: {
    ...route('GET', '/metrics', 'monitoring', 200, z.string(), 'Metrics for Prometheus.'),
    text: true,
    probed: true,
  },
  codecs: route('GET', '/codecs', 'monitoring', 200, codecsBody, 'The rate features, in order.'),
  status: route('GET', '/status', 'monitoring', 200, statusBody, 'The complete state of a node.'),
  snapshotInfo: route('GET', '/snapshot-info', 'monitoring', 200, snapshotInfoBody, 'The newest snapshot.'),
  slow: route('GET', '/debug/slow', 'monitoring', 200, slowBody, 'The slowest recent requests.'),
  properties: {
    ...route('GET', '/properties', 'client', 200, propertiesBody, 'Properties by their ids.'),
    query: propertiesQuery,
  },
  words: { ...route('GET', '/words', 'client', 200, wordsBody, 'Names in use, by prefix.'), query: wordsQuery },
  coverage: {
    ...route('GET', '/coverage', 'client', 200, nodeCoverageBody, 'Packages by segment and day.'),
    query: coverageQuery,
  },
  night: {
    ...route('GET', '/night', 'clientOnly', 200, nightBody, 'Changes of a night that the retained log has.'),
    query: nightQuery,
  },
  config: route('GET', '/config', 'admin', 200, configBody, 'The configuration and where each value came from.'),
  saveSnapshot: route('POST', '/save-snapshot', 'admin', 202, messageBody, 'Starts a snapshot.'),
  maintenance: {
    ...route('POST', '/admin/maintenance', 'admin', 202, messageBody, 'Starts the daily maintenance now.'),
    body: maintenanceRequest,
  },
  setTime: {
    ...route('POST', '/admin/set-time', 'admin', 200, setTimeBody, 'Sets shard time to the clock of its voters.'),
    body: setTimeRequest,
  },
  setting: {
    ...route('POST', '/admin/settings', 'admin', 202, messageBody, 'Changes a replicated setting.'),
    body: settingRequest,
  },
  shutdown: {
    ...route('POST', '/shutdown', 'admin', 202, messageBody, 'Shuts the node down gracefully.'),
    body: shutdownRequest,
  },
  reloadTokens: route('POST', '/reload-tokens', 'admin', 200, reloadTokensBody, 'Reloads the auth file.'),
  tlsRotate: route('POST', '/tls-rotate', 'admin', 202, messageBody, 'Reloads the certificates.'),

  nodeInfo: clustered(
    'GET',
    '/node-info',
    'monitoring',
    200,
    nodeInfoBody,
    'Ids of this node, its shard and the leader.',
  ),
  leader: clustered('GET', '/leader', 'monitoring', 200, leaderBody, 'The id of the leader.'),
  peers: clustered('GET', '/peers', 'monitoring', 200, peersBody, 'The ids of the nodes of the shard.'),
  setPeers: {
    ...clustered('POST', '/peers', 'admin', 202, messageBody, 'Sets the nodes to resolve.'),
    body: peersRequest,
  },
  addMember: change('/admin/add-member/{node_id}', 'admin', CLUSTER_TEXTS.promote, 'Promotes a learner to a voter.'),
  removeMember: change(
    '/admin/remove-member/{node_id}',
    'admin',
    CLUSTER_TEXTS.demote,
    'Demotes a voter to a learner; a learner leaves the shard.',
  ),
  adminTransfer: change('/admin/transfer-leader/{node_id}', 'admin', CLUSTER_TEXTS.transfer, 'Transfers leadership.'),
  clusterInfo: clustered(
    'GET',
    '/cluster/info',
    'monitoring',
    200,
    clusterInfoBody,
    'Leader, members and the change in progress.',
  ),
  clusterOperations: clustered(
    'GET',
    '/cluster/operations',
    'monitoring',
    200,
    operationsBody,
    'Recent changes and their results.',
  ),
  promote: {
    ...change('/cluster/promote-learner', 'adminToken', CLUSTER_TEXTS.promote, 'Promotes a learner to a voter.'),
    body: memberRequest,
  },
  demote: {
    ...change(
      '/cluster/demote-voter',
      'adminToken',
      CLUSTER_TEXTS.demote,
      'Demotes a voter to a learner; a learner leaves the shard.',
    ),
    body: memberRequest,
  },
  transfer: {
    ...change('/cluster/transfer-leader', 'adminToken', CLUSTER_TEXTS.transfer, 'Transfers leadership.'),
    body: transferRequest,
  },
  load: {
    ...change('/cluster/load', 'adminToken', CLUSTER_TEXTS.load, 'Replaces the data of the shard with a snapshot.'),
    body: loadRequest,
  },
  dropLoad: {
    ...change(
      '/cluster/drop-load',
      'adminToken',
      CLUSTER_TEXTS['drop-load'],
      'Deletes the snapshot of the data that a load replaced.',
    ),
    body: dropLoadRequest,
  },
} as const satisfies { readonly [name: string]: NodeRoute }

/** The names that a body or the parameters may have, by their schema. */
export function namesOf(schema: z.ZodType | undefined): readonly string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape)
  return schema instanceof z.ZodUnion ? schema.options.flatMap((each) => namesOf(each as z.ZodType)) : []
}

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

function clustered<R extends z.ZodType>(...row: Parameters<typeof route<R>>) {
  return { ...route(...row), mode: 'clustered' } as const
}

/** A membership or data change: accepted at once, completed later. */
function change(path: string, access: NodeAccess, text: string, summary: string) {
  return { ...clustered('POST', path, access, 202, z.literal(text), summary), text: true } as const
}
export type NodeReason = z.infer<typeof reason>
export type NodeStatus = z.infer<typeof statusBody>
export type NodeCodecs = z.infer<typeof codecsBody>
export type NodeSnapshotInfo = z.infer<typeof snapshotInfoBody>
export type NodeProperties = z.infer<typeof propertiesBody>
export type NodeWords = z.infer<typeof wordsBody>
export type NodeCoverage = z.infer<typeof nodeCoverageBody>
export type NodeConfig = z.infer<typeof configBody>
export type NodeSlow = z.infer<typeof slowBody>
export type NodeInfo = z.infer<typeof nodeInfoBody>
export type NodeMember = z.infer<typeof memberBody>
export type NodeSetTime = z.infer<typeof setTimeBody>
export type NodeClock = z.infer<typeof clockBody>
export type ClusterInfo = z.infer<typeof clusterInfoBody>
export type ClusterOperation = z.infer<typeof finishedOperation>
export type ClusterOperations = z.infer<typeof operationsBody>

/**
 * The control plane's view of shards and nodes: their observed state, its descriptions, and the operations on them
 * (docs/design/control-plane.md#collector). Every value was reported by a node and carries its age. Null means "not
 * reported", never zero.
 */

import { z } from 'zod'
import { ACCESS_LIMITS, environmentBody } from './access.ts'
import { type ControlRoute, count, missingSource, time } from './control.ts'
import { codecsBody, reason as nodeReason, SNAPSHOT_ORIGINS } from './node.ts'
import { clientsSummary } from './probes.ts'

/** docs/design/control-plane.md#node-state, in order; the first state whose condition holds applies. */
export const NODE_STATES = [
  'unreachable',
  'not-answering',
  'cores-changed',
  'unavailable',
  'conflicting-leader',
  'different-data',
  'far-behind',
  'behind',
  'catching-up',
  'healthy',
  'unknown',
] as const
export type NodeState = (typeof NODE_STATES)[number]

/** docs/design/control-plane.md#shard-state. `forming` is a shard that waits for its founding voters. */
const SHARD_STATES = [
  'unknown',
  'forming',
  'quorum-lost',
  'no-leader',
  'electing',
  'disagree',
  'cut-off',
  'degraded',
  'degraded-last',
  'attention',
  'healthy',
  'standalone',
] as const
export type ShardState = (typeof SHARD_STATES)[number]

export const LEVELS = ['ok', 'info', 'warn', 'crit', 'unk'] as const
export type Level = (typeof LEVELS)[number]

/** `standalone` has no replicas. `unknown` did not report a role, or does not respond. */
export const VIEW_ROLES = ['leader', 'follower', 'learner', 'candidate', 'standalone', 'unknown'] as const
export type ViewRole = (typeof VIEW_ROLES)[number]

/** Age of the newest response: ≤ 3 s is live, ≤ 15 s delayed, older is gone. `never`: no response is recorded. */
const FRESHNESS = ['live', 'delayed', 'gone', 'never'] as const
export type Freshness = (typeof FRESHNESS)[number]

const level = z.enum(LEVELS)
const number = z.number().nullable()
const index = count.nullable()
const day = z.iso.date()
const dayWindow = z.object({ from: day, to: day })

/** The last response of one path of a node, or why there is none. */
const sourceState = z.object({
  path: z.string(),
  status: count.nullable(),
  at: time.nullable(),
  milliseconds: number,
  error: z.object({ code: z.string(), message: z.string(), since: time }).nullable(),
})

/** Rates and values from the metrics of a node, per second unless noted. */
const rates = z.object({
  queries: number,
  writes: number,
  errors: number,
  /** Milliseconds, of reads. */
  p50: number,
  p99: number,
})

const nodeView = z.object({
  id: z.string(),
  shard: z.string(),
  zone: z.string(),
  apiUrl: z.string(),
  /** `host:port` of the wire protocol; null when not reported. */
  tcp: z.string().nullable(),
  role: z.enum(VIEW_ROLES),
  voter: z.boolean().nullable(),
  state: z.enum(NODE_STATES),
  level,
  /** "Far behind: 12,400 entries, 14 s". Excludes how long the state has lasted, which would change every second. */
  message: z.string(),
  /** The row of docs/design/control-plane.md#node-state that applied, and the values it tested. */
  rule: z.object({ number: count, inputs: z.record(z.string(), z.string()) }),
  freshness: z.enum(FRESHNESS),
  answeredAt: time.nullable(),
  error: z.object({ code: z.string(), message: z.string(), since: time }).nullable(),
  health: z.string().nullable(),
  /** The leader that this node reports; '' when it knows none. */
  namesLeader: z.string().nullable(),
  term: index,
  firstIndex: index,
  lastIndex: index,
  commitIndex: index,
  appliedIndex: index,
  /** As reported by the leader. */
  matchIndex: index,
  lagEntries: index,
  lagSeconds: number,
  /** Estimated seconds until it has caught up, while it is catching up. */
  etaSeconds: number,
  /** Its newest own snapshot: what a restart would load. */
  snapshot: z
    .object({
      id: z.string(),
      createdAt: time,
      lastIndex: count,
      packages: count,
      properties: count,
      segments: count,
      codecHash: z.string(),
      bytes: count,
      origin: z.enum(SNAPSHOT_ORIGINS),
    })
    .nullable(),
  /** Of its snapshot. */
  window: dayWindow.nullable(),
  packages: index,
  properties: index,
  segments: index,
  /** `share` is the part of the store's memory in use, 0 to 1. */
  memory: z.object({ rss: count, free: count.nullable(), share: number }).nullable(),
  wal: z.object({ bytes: count, files: count }).nullable(),
  disk: z.object({ freeBytes: count, full: z.boolean() }).nullable(),
  /** Cores in use, between the last two readings of its metrics. */
  cpu: number,
  connections: index,
  connectionsLimit: index,
  version: z.string().nullable(),
  startedAt: time.nullable(),
  cores: z.object({ start: count, now: count }).nullable(),
  orderedHash: z.string().nullable(),
  digest: z.object({ value: z.string(), index: count }).nullable(),
  reasons: z.array(nodeReason),
  rates,
  /** When each group of values was reported. */
  ages: z.object({ health: time.nullable(), info: time.nullable(), status: time.nullable(), metrics: time.nullable() }),
})
export type NodeView = z.infer<typeof nodeView>

export const shardView = z.object({
  id: z.string(),
  zone: z.string(),
  mode: z.enum(['standalone', 'clustered', 'unknown']),
  state: z.enum(SHARD_STATES),
  level,
  /** "Degraded, cannot lose another (2 of 3 voters answer, 2 needed)". */
  message: z.string(),
  /** When the shard entered this state. */
  since: time,
  /** The leader named by a majority of the voters in the newest poll. */
  leader: z.string().nullable(),
  leaderSince: time.nullable(),
  term: index,
  voters: count,
  votersUp: count,
  majority: count,
  /** How many more voters may fail. */
  spare: z.int().nullable(),
  /** Sorted by id, so that the order on screen is stable. */
  nodes: z.array(nodeView),
  maxLagEntries: index,
  packages: index,
  properties: index,
  segments: index,
  window: dayWindow.nullable(),
  snapshotAt: time.nullable(),
  rates,
  /** The change in progress as reported by the nodes, from any client. */
  change: z.object({ kind: z.string(), node: z.string(), startedAt: time, step: z.string() }).nullable(),
  lastChange: z
    .object({ kind: z.string(), node: z.string(), result: z.enum(['done', 'failed']), reason: z.string(), at: time })
    .nullable(),
  /** The operation of this control plane that is running on the shard. */
  operation: z.string().nullable(),
  /** Milliseconds without writes in the last transfers observed here (≤ 20); null when none was observed. */
  writePause: z.object({ median: z.number(), worst: z.number(), count }).nullable(),
  /** Why it has no leader, or does not form: which nodes miss which. */
  waitsFor: z.string(),
  electionTimeoutMs: z.number(),
  missing: z.array(missingSource),
})
export type ShardView = z.infer<typeof shardView>

export const EVENT_KINDS = [
  'leader',
  'role',
  'state',
  'membership',
  'restart',
  'snapshot',
  'codecs',
  'operation',
] as const

/** Some of them, separated by commas. */
export const eventKinds = z
  .string()
  .max(128)
  .refine((text) => text.split(',').every((kind) => (EVENT_KINDS as readonly string[]).includes(kind)), {
    error: `Use kinds of ${EVENT_KINDS.join(', ')}, separated by commas.`,
  })

export const clusterEvent = z.object({
  id: z.string(),
  at: time,
  shard: z.string(),
  node: z.string().nullable(),
  kind: z.enum(EVENT_KINDS),
  level,
  message: z.string(),
})
export type ClusterEvent = z.infer<typeof clusterEvent>

export const SHARD_LEADERSHIP = { hours: 24, spansMax: 1_000 } as const

/** Leaders of a shard over time, as this control plane observed them. Gaps between spans were not observed. */
const shardLeadership = z.object({
  from: time,
  to: time,
  /** Oldest first. A null leader: the responding nodes named none. */
  spans: z
    .array(z.object({ from: time, to: time, leader: z.string().nullable(), term: index }))
    .max(SHARD_LEADERSHIP.spansMax),
  elections: count,
  /** The longest stretch without a leader, in milliseconds; null when none was observed. */
  longestGapMs: count.nullable(),
  /** The share of the time that spans cover. */
  knownMs: count,
  /** More spans exist; the oldest are omitted. */
  isCut: z.boolean(),
})
export type ShardLeadership = z.infer<typeof shardLeadership>

/** The part of the system that needs attention, and the page of the menu that shows it. */
const ATTENTION_AREAS = ['shards', 'fabric', 'queue', 'imports', 'operations', 'control-plane'] as const

/** docs/design/control-plane.md#attention, ranked. `rule` is its number there. */
const attentionItem = z.object({
  /** The same problem keeps its id, so that an item put aside stays aside until it changes. */
  id: z.string(),
  rule: count,
  level,
  area: z.enum(ATTENTION_AREAS),
  shard: z.string().nullable(),
  node: z.string().nullable(),
  /** "s7 has no leader"; `since` holds the time. */
  message: z.string(),
  since: time,
  trend: z.enum(['growing', 'steady', 'shrinking']).nullable(),
  /** The console path of the affected row. */
  href: z.string(),
  /** The label of the button: "Open s7". */
  action: z.string(),
  asideUntil: z.union([time, z.literal('change')]).nullable(),
})
export type AttentionItem = z.infer<typeof attentionItem>

/** One slot of the key rack. */
const slot = z.object({
  node: z.string(),
  role: z.enum(VIEW_ROLES),
  state: z.enum(NODE_STATES),
  level,
  message: z.string(),
  freshness: z.enum(FRESHNESS),
})

/** A shard as a row of the overview and of the shard table. */
const shardBrief = shardView
  .pick({
    id: true,
    zone: true,
    mode: true,
    state: true,
    level: true,
    message: true,
    since: true,
    leader: true,
    leaderSince: true,
    term: true,
    voters: true,
    votersUp: true,
    spare: true,
    maxLagEntries: true,
    packages: true,
    properties: true,
    window: true,
    snapshotAt: true,
    rates: true,
    operation: true,
  })
  .extend({ slots: z.array(slot), memoryBytes: index, answeredAt: time.nullable() })
export type ShardBrief = z.infer<typeof shardBrief>

// Plans and operations

const OPERATION_KINDS = [
  'transfer',
  'promote',
  'demote',
  'transfer-then-demote',
  'replace-voter',
  'install',
  'undo-install',
] as const
export type OperationKind = (typeof OPERATION_KINDS)[number]

export const OPERATION_STATES = [
  'armed',
  'requested',
  'accepted',
  'verifying',
  'done',
  'elsewhere',
  'no-change',
  'refused',
  'stopped',
  'unconfirmed',
  'cancelled',
] as const
export type OperationState = (typeof OPERATION_STATES)[number]
/** End states. `stopped`: of several changes the first was made, and the next was not. `unconfirmed` may still become done or elsewhere for ten minutes. */
export const END_STATES: readonly OperationState[] = [
  'done',
  'elsewhere',
  'no-change',
  'refused',
  'stopped',
  'unconfirmed',
  'cancelled',
]

const planRequest = z.object({
  kind: z.enum(OPERATION_KINDS),
  shard: z.string().max(128),
  /** The target of a transfer, or the node to promote, demote or replace. */
  node: z.string().max(128).optional(),
  /** Of a replacement: the learner that takes the place of the node; without it, the best one. */
  replacement: z.string().max(128).optional(),
  /** Of an install: the content digest of the built snapshot. */
  snapshot: z.string().max(128).optional(),
  /** Transfer: wait, for at most ten minutes, until the target is at most 100 entries behind. */
  waitForLag: z.boolean().optional(),
})
export type PlanRequest = z.infer<typeof planRequest>

const pictureNode = z.object({ node: z.string(), role: z.enum(VIEW_ROLES), level, message: z.string() })
/** A shard as it is, or as it would be. */
const shardPicture = z.object({
  nodes: z.array(pictureNode),
  leader: z.string().nullable(),
  voters: count,
  majority: count,
  spare: z.int(),
  /** Of an install: what the shard holds. */
  data: z.object({ packages: count, properties: count, window: dayWindow.nullable() }).nullable(),
})

const planCheck = z.object({
  id: z.string(),
  level: z.enum(['ok', 'info', 'warn', 'block']),
  text: z.string(),
  fix: z.object({ label: z.string(), plan: planRequest.optional(), href: z.string().optional() }).optional(),
})
export type PlanCheck = z.infer<typeof planCheck>

/** One request of a plan of several, and the shard once it is done. */
const memberChange = z.object({
  kind: z.enum(['promote', 'demote']),
  node: z.string(),
  voters: z.array(z.string()),
  majority: count,
  /** How many of these voters answered when the plan was made. */
  up: count,
})
export type MemberChange = z.infer<typeof memberChange>

const plan = z.object({
  id: z.string(),
  kind: z.enum(OPERATION_KINDS),
  request: planRequest,
  shard: z.string(),
  node: z.string().nullable(),
  takenAt: time,
  /** 60 s after creation; later a new plan is needed. */
  validUntil: time,
  /** When the nodes reported the values that the plan was computed from. */
  observedAt: time.nullable(),
  basis: z.object({
    leader: z.string().nullable(),
    term: index,
    peersHash: z.string(),
    /** What checks found that take time: another value is no change of the cluster. */
    found: z.string().optional(),
  }),
  /** "Transfer leadership of s3 to n3". */
  title: z.string(),
  /** The label of the button: "Transfer leadership to n3". */
  action: z.string(),
  before: shardPicture,
  after: shardPicture,
  /** Sentences with their numbers, and the source of each number. */
  effects: z.array(z.object({ text: z.string(), source: z.string() })),
  checks: z.array(planCheck),
  /** A check blocks the plan. */
  blocked: z.boolean(),
  /** docs/design/control-plane.md#plan: 1 needs the button, 2 also a reason, 3 also the displayed id, typed in. */
  confirm: z.union([z.literal(1), z.literal(2), z.literal(3)]),
  /** The text to type at level 3. */
  confirmText: z.string(),
  /** Milliseconds that writes are expected to wait; null when nothing was measured. */
  writePause: z.object({ expected: number, worst: number, source: z.string() }).nullable(),
  commands: z.object({ cli: z.string(), curl: z.string() }),
  environment: environmentBody,
  /** Of a replacement: its requests in their order, each verified before the next. */
  changes: z.array(memberChange).optional(),
  /** Other possible targets, best first. */
  alternatives: z.array(z.object({ node: z.string(), message: z.string(), blocked: z.boolean() })),
})
export type Plan = z.infer<typeof plan>

const operationStep = z.object({
  id: z.string(),
  text: z.string(),
  state: z.enum(['waiting', 'running', 'done', 'failed', 'skipped']),
  at: time.nullable(),
  /** Since the request. */
  milliseconds: number,
  /** The observation that proves it. */
  evidence: z.string(),
})
export type OperationStep = z.infer<typeof operationStep>

export const operation = z.object({
  id: z.string(),
  kind: z.enum(OPERATION_KINDS),
  shard: z.string(),
  node: z.string().nullable(),
  title: z.string(),
  by: z.string(),
  reason: z.string(),
  state: z.enum(OPERATION_STATES),
  /** The state in a sentence: "Leadership went to n2, not n3". */
  message: z.string(),
  /** Follows `requested`: "Longer than usual …", '' otherwise. */
  notice: z.string(),
  createdAt: time,
  requestedAt: time.nullable(),
  endedAt: time.nullable(),
  steps: z.array(operationStep),
  /** Uncertainty of the times: the polling interval of the nodes. */
  uncertaintyMs: z.number(),
  pauseMs: number,
  expectedPauseMs: number,
  /** The node's response, verbatim. */
  answer: z.string(),
  cancellable: z.boolean(),
  /** The plan that undoes the operation, when there is one. */
  undo: planRequest.nullable(),
  /** When it was stopped on the way: the plan of what is left. */
  rest: planRequest.nullish(),
  progress: z.object({ done: count, total: count, unit: z.string() }).nullable(),
})
export type Operation = z.infer<typeof operation>

export const summary = z.object({
  at: time,
  /** The oldest answer of a node that is not known to be away, if it is late; null while all are fresh. */
  oldestReadAt: time.nullable(),
  environment: environmentBody,
  counts: z.object({
    shards: count,
    shardsHealthy: count,
    nodes: count,
    nodesAnswering: count,
    packages: count.nullable(),
    properties: count.nullable(),
    attention: count,
    aside: count,
  }),
  window: dayWindow.nullable(),
  /** What the probes of this control plane measured; null in a past view, where it is not recorded. */
  clients: clientsSummary.nullable(),
  attention: z.array(attentionItem),
  shards: z.array(shardBrief),
  /** Running operations and imports. */
  running: z.array(
    z.object({
      id: z.string(),
      kind: z.string(),
      title: z.string(),
      message: z.string(),
      href: z.string(),
      percent: number,
    }),
  ),
  events: z.array(clusterEvent),
  missing: z.array(missingSource),
})
export type Summary = z.infer<typeof summary>

export const nodeDocument = z.object({
  node: nodeView,
  sources: z.array(sourceState.extend({ body: z.string() })),
  /** Key, value and origin; null without the admin token or while it does not answer. */
  config: z.array(z.object({ key: z.string(), value: z.string(), origin: z.string(), at: z.string() })).nullable(),
  configError: z.string(),
})

// Series

const seriesQuery = z.object({
  shard: z.string().max(128).optional(),
  node: z.string().max(128).optional(),
  /** Names of SERIES, separated by commas. */
  names: z.string().max(512),
  /** `now-1h`, `now`, or a time. */
  from: z.string().max(64).default('now-1h'),
  to: z.string().max(64).default('now'),
})
const seriesBody = z.object({
  from: time,
  to: time,
  stepSeconds: z.number(),
  /** One value per step; null is a gap. */
  series: z.array(
    z.object({ name: z.string(), node: z.string().nullable(), unit: z.string(), values: z.array(number) }),
  ),
})
export type SeriesBody = z.infer<typeof seriesBody>

// Registry

const serviceView = z.object({
  /** Edge routers and proxies do not register. */
  kind: z.enum(['node', 'bridge', 'router', 'edge', 'proxy']),
  id: z.string(),
  zone: z.string(),
  shard: z.string().nullable(),
  role: z.string().nullable(),
  version: z.string().nullable(),
  heartbeatAgeSeconds: number,
  /** Observed by the control plane itself. */
  seen: z.boolean(),
  /** How its own report differs from the observation; '' when they agree. */
  difference: z.string(),
})

export const registryBody = z.object({
  /** The registry that is read. */
  address: z.string().nullable(),
  up: z.boolean(),
  error: z.string(),
  at: time.nullable(),
  /** Further registries on the same etcd that do not respond, or are not ready. */
  away: z.array(z.object({ address: z.string(), message: z.string() })),
  services: z.array(serviceView),
  conflicts: z.array(z.object({ segment: z.string(), owner: z.string(), claims: z.array(z.string()) })),
})

/** Values that are valid one by one but not together. */
const configWarning = z.object({
  level: z.enum(['warn', 'crit']),
  keys: z.array(z.string()),
  /** The nodes that have them; where nodes differ, the smallest group. */
  nodes: z.array(z.string()),
  message: z.string(),
})
export type ConfigWarning = z.infer<typeof configWarning>

export const registryCodecsView = z.object({
  /** From the registry, or from the nodes when there is none. */
  codecs: codecsBody.nullable(),
  source: z.string(),
  nodes: z.array(
    z.object({
      shard: z.string(),
      node: z.string(),
      orderedHash: z.string().nullable(),
      equal: z.boolean().nullable(),
    }),
  ),
})

// Contract of a shard's cluster management (docs/design/http.md#cluster-changes), for existing tools.

const shardQuery = z.object({ shard: z.string().max(128).optional() })
const shardParams = z.object({ shard: z.string().max(128) })
const nodeParams = shardParams.extend({ node: z.string().max(128) })
const idParams = z.object({ id: z.string().max(64) })

export const CLUSTER_ROUTES = {
  'GET /api/v1/summary': { access: 'viewer', summary: 'The overview.', response: summary },
  'GET /api/v1/shards': {
    access: 'viewer',
    summary: 'All shards.',
    response: z.object({ shards: z.array(shardBrief), missing: z.array(missingSource) }),
  },
  'GET /api/v1/shards/{shard}': { access: 'viewer', summary: 'One shard.', params: shardParams, response: shardView },
  'GET /api/v1/shards/{shard}/nodes/{node}': {
    access: 'viewer',
    summary: 'One node, with the last raw answer of each of its paths.',
    params: nodeParams,
    response: nodeDocument,
  },
  'DELETE /api/v1/shards/{shard}/nodes/{node}': {
    access: 'admin',
    summary:
      'Forgets a node that is gone permanently. 409 `node-named` lists what still names it, or reports that it responds.',
    params: nodeParams,
    status: 204,
    response: z.undefined(),
  },
  'GET /api/v1/shards/{shard}/events': {
    access: 'viewer',
    summary: 'Events of a shard, newest first.',
    params: shardParams,
    query: z.object({
      node: z.string().max(128).optional(),
      kinds: eventKinds.optional(),
      limit: z.coerce.number().int().min(1).max(500).default(100),
    }),
    response: z.object({ events: z.array(clusterEvent) }),
  },
  'GET /api/v1/shards/{shard}/leadership': {
    access: 'viewer',
    summary: 'Leaders of a shard over the 24 h before `to`, elections, and the longest time without a leader.',
    params: shardParams,
    query: z.object({ to: z.string().max(64).default('now') }),
    response: shardLeadership,
  },
  'GET /api/v1/shards/{shard}/config': {
    access: 'viewer',
    summary: 'Effective configuration of each node, with differences marked.',
    params: shardParams,
    response: z.object({
      nodes: z.array(z.string()),
      keys: z.array(
        z.object({
          key: z.string(),
          equal: z.boolean(),
          values: z.array(z.object({ value: z.string(), origin: z.string() }).nullable()),
        }),
      ),
      warnings: z.array(configWarning),
      missing: z.array(missingSource),
    }),
  },
  'GET /api/v1/series': { access: 'viewer', summary: 'Metrics over time.', query: seriesQuery, response: seriesBody },
  'POST /api/v1/attention/{id}/aside': {
    access: 'operator',
    summary: 'Snoozes an item for an hour, a day, or until it changes; null restores it.',
    params: z.object({ id: z.string().max(256) }),
    body: z.object({ until: z.enum(['hour', 'day', 'change']).nullable() }),
    status: 204,
    response: z.undefined(),
  },
  'POST /api/v1/plans': {
    access: 'viewer',
    summary: 'Plans an operation: its effects, and whether it is allowed. Changes nothing.',
    body: planRequest,
    response: plan,
  },
  'POST /api/v1/operations': {
    access: 'admin',
    summary:
      'Starts a plan. 409 `plan-out-of-date` has the new plan in `plan`, 409 `shard-busy` the running one in `operation`.',
    body: z.object({
      plan: z.string().max(64),
      reason: z.string().trim().max(ACCESS_LIMITS.reasonMax).default(''),
      confirm: z.string().max(128).default(''),
    }),
    status: 202,
    response: operation,
  },
  'GET /api/v1/operations': {
    access: 'viewer',
    summary: 'Operations, newest first.',
    query: z.object({
      shard: z.string().max(128).optional(),
      state: z.enum(['running', 'ended']).optional(),
      cursor: z.string().max(64).optional(),
      limit: z.coerce.number().int().min(1).max(500).default(100),
    }),
    response: z.object({ operations: z.array(operation), next: z.string().nullable() }),
  },
  'GET /api/v1/operations/{id}': { access: 'viewer', summary: 'One operation.', params: idParams, response: operation },
  'POST /api/v1/operations/{id}/cancel': {
    access: 'admin',
    summary: 'Cancels an operation that is still armed.',
    params: idParams,
    response: operation,
  },
  'GET /api/v1/registry/services': {
    access: 'viewer',
    summary: 'Services in the registry, compared with the observed state.',
    response: registryBody,
  },
  'GET /api/v1/registry/codecs': {
    access: 'viewer',
    summary: 'The codec list, and the list that each node uses.',
    response: registryCodecsView,
  },
  'POST /api/v1/registry/resolve': {
    access: 'operator',
    summary: 'Queries the resolver.',
    body: z.object({
      kind: z.enum(['node', 'router', 'bridge']),
      id: z.string().max(128),
      shard: z.string().max(128).optional(),
    }),
    response: z.object({
      url: z.string(),
      status: count.nullable(),
      answer: z.string(),
      address: z.string().nullable(),
      milliseconds: z.number(),
      error: z.string(),
    }),
  },
  'GET /cluster/info': {
    access: 'viewer',
    summary: 'Cluster management interface of a shard: leader and members.',
    query: shardQuery,
    response: z.unknown(),
  },
  'POST /cluster/promote-learner': {
    access: 'admin',
    summary: 'Forwarded to the leader of the shard: promotes a learner to a voter.',
    query: shardQuery,
    body: z.object({ node_id: z.string().optional() }),
    status: 202,
    gives: 'text',
    response: z.string(),
  },
  'POST /cluster/demote-voter': {
    access: 'admin',
    summary: 'Forwarded to the leader of the shard: demotes a voter to a learner.',
    query: shardQuery,
    body: z.object({ node_id: z.string().optional() }),
    status: 202,
    gives: 'text',
    response: z.string(),
  },
  'POST /cluster/transfer-leader': {
    access: 'admin',
    summary: 'Forwarded to the leader of the shard: transfers leadership.',
    query: shardQuery,
    body: z.object({ target_node_id: z.string().optional() }),
    status: 202,
    gives: 'text',
    response: z.string(),
  },
} as const satisfies { readonly [name: string]: ControlRoute }

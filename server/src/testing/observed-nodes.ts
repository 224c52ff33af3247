/** Nodes as observed by the collector, for tests of derived state. */
import type { ClusterInfo, NodeStatus } from '@vacancy/shared/contract'
import { deriveShard, type ShardFacts } from '../cluster/derive.ts'
import { emptyObservation, type NodeObservation } from '../cluster/observation.ts'

export const NOW = Date.parse('2026-11-22T12:00:00.000Z')
export const HASH = 'a'.repeat(64)

export type ObservationPlan = {
  readonly id: string
  readonly leader?: string
  readonly term?: number
  readonly voters?: readonly string[]
  readonly learners?: readonly string[]
  /** Lag of members in entries and seconds, as this node reports as leader. */
  readonly lags?: { readonly [id: string]: readonly [entries: number, seconds: number] }
  readonly health?: string
  readonly at?: number
  readonly commit?: number
}

/** A node that responded to every path just now. */
export function observedNode(plan: ObservationPlan, change: Partial<NodeObservation> = {}): NodeObservation {
  const { id, leader = 'n1', at = NOW } = plan
  const address = { id, shard: 's1', zone: 'eu-1', apiUrl: `http://${id}:8080`, tcp: { host: id, port: 7777 } }
  return {
    ...emptyObservation(address),
    health: { value: plan.health ?? (id === leader ? 'active_leader' : 'active_follower'), at },
    info: { value: infoOf(plan), at },
    status: { value: statusOf({}), at },
    codecs: { value: { rate_features: ['breakfast'], hash: 1, hash_hex: '0'.repeat(16), ordered_hash: HASH }, at },
    answeredAt: at,
    ...change,
  }
}

export function infoOf({
  id,
  leader = 'n1',
  term = 4,
  voters = ['n1', 'n2', 'n3'],
  learners = [],
  lags = {},
  commit = 50_000,
}: ObservationPlan): ClusterInfo {
  return {
    leader_id: leader,
    members: { voters: [...voters], learners: [...learners] },
    ...{ node_id: id, shard_id: 's1', zone_id: 'eu-1', cluster_id: '', leader_url: '', term, joint: false },
    ...{ first_index: 1, last_index: commit, commit_index: commit, applied_index: commit },
    nodes: [...voters, ...learners].map((each) => {
      const [entries, seconds] = lags[each] ?? [0, 0]
      return {
        id: each,
        role: each === leader ? 'leader' : voters.includes(each) ? 'follower' : 'learner',
        voter: voters.includes(each),
        health: 'active',
        match_index: commit - entries,
        lag_entries: entries,
        lag_seconds: seconds,
        host: '',
      }
    }),
    ...{ bootstrap: null, operation: null, last_operation: null },
  }
}

/** Reported by a node whose state differs from the log. */
export const MISMATCH: NodeStatus['reasons'][number] = {
  reason: 'digest_mismatch',
  stops: 'all',
  detail: 'The state after index 358 has digest 3f3ce0e5-ddc48c42, not 2938255d-d65d9b81.',
  since: new Date(NOW).toISOString(),
  ...{ means: '', look_at: '', type: '' },
}

export function statusOf(change: Partial<NodeStatus>): NodeStatus {
  return {
    ...{ mode: 'clustered', version: '0.1.0', shard_id: 's1', health: 'active_follower', reasons: [] },
    ...{ started_at: '2026-11-20T00:00:00.000Z', uptime_seconds: 1, cores: { start: 8, now: 8 }, serving_threads: 4 },
    ...{ connections: 3, kernels: 'wasm', ordered_hash: HASH, codec_mismatch: null },
    memory: { rss: 1_000, heap: 1, arraybuffers: 1, indexes: 100, packages: 100, free: 800 },
    ...{
      properties: 10,
      packages: 1_000,
      sessions: 0,
      segments: [],
      replica: null,
      wal: null,
      disk: null,
      digest: null,
    },
    ...{ snapshot: null, snapshot_running: false, maintenance: null, cluster: null },
    ...change,
  }
}

/** Observation of a node that responded before and no longer does. */
export function goneNode(
  plan: ObservationPlan,
  error: { readonly code: string; readonly message: string },
  change: Partial<NodeObservation> = {},
): NodeObservation {
  return observedNode(plan, {
    missed: 3,
    answeredAt: NOW - 41_000,
    error: { ...error, since: NOW - 40_000 },
    ...change,
  })
}

export function shardOf(nodes: readonly NodeObservation[], facts: Partial<ShardFacts> = {}) {
  return deriveShard({ id: 's1', nodes, now: NOW, memory: undefined, operation: null, writePause: null, ...facts })
}

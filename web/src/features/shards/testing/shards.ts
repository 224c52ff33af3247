/** Shards and nodes as the control plane tells them, for tests: healthy unless said otherwise. */

import type { NodeView, ShardBrief, ShardView } from '@vacancy/shared/contract'

const AT = '2026-11-20T18:30:00.000Z'
const noRates = { queries: 0, writes: 0, errors: 0, p50: null, p99: null }

export function nodeOf(over: Partial<NodeView> & { id: string }): NodeView {
  return {
    shard: 's1',
    zone: 'eu-1',
    apiUrl: 'http://127.0.0.1:8080',
    tcp: '127.0.0.1:7777',
    role: 'follower',
    voter: true,
    state: 'healthy',
    level: 'ok',
    message: 'Healthy',
    rule: { number: 10, inputs: {} },
    freshness: 'live',
    answeredAt: AT,
    error: null,
    health: 'active_follower',
    namesLeader: 'n1',
    term: 41,
    firstIndex: 1,
    lastIndex: 1_000,
    commitIndex: 1_000,
    appliedIndex: 1_000,
    matchIndex: 1_000,
    lagEntries: 0,
    lagSeconds: 0,
    etaSeconds: null,
    snapshot: null,
    window: null,
    packages: null,
    properties: null,
    segments: null,
    memory: null,
    wal: null,
    disk: null,
    cpu: null,
    connections: null,
    connectionsLimit: null,
    version: null,
    startedAt: null,
    cores: null,
    orderedHash: null,
    digest: null,
    reasons: [],
    rates: noRates,
    ages: { health: AT, info: AT, status: AT, metrics: AT },
    ...over,
  }
}

/** Three voters led by n1. */
export function shardOf(over: Partial<ShardView> = {}): ShardView {
  return {
    id: 's1',
    zone: 'eu-1',
    mode: 'clustered',
    state: 'healthy',
    level: 'ok',
    message: 'Healthy, can lose 1 (3 of 3 voters answer, 2 needed)',
    since: AT,
    leader: 'n1',
    leaderSince: AT,
    term: 41,
    voters: 3,
    votersUp: 3,
    majority: 2,
    spare: 1,
    nodes: [nodeOf({ id: 'n1', role: 'leader', health: 'active_leader' }), nodeOf({ id: 'n2' }), nodeOf({ id: 'n3' })],
    maxLagEntries: 0,
    packages: null,
    properties: null,
    segments: null,
    window: null,
    snapshotAt: null,
    rates: noRates,
    change: null,
    lastChange: null,
    operation: null,
    writePause: null,
    waitsFor: '',
    electionTimeoutMs: 1_800,
    missing: [],
    ...over,
  }
}

export function shardBriefOf(over: Partial<ShardBrief> = {}): ShardBrief {
  return {
    ...shardOf({ message: 'Healthy, can lose 1' }),
    slots: [
      { node: 'n1', role: 'leader', state: 'healthy', level: 'ok', message: 'Healthy', freshness: 'live' },
      { node: 'n3', role: 'follower', state: 'healthy', level: 'ok', message: 'Healthy', freshness: 'live' },
    ],
    memoryBytes: null,
    answeredAt: AT,
    ...over,
  }
}

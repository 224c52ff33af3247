import type { NodeConfig, Operation, ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { goneNode, HASH, MISMATCH, NOW, observedNode, shardOf, statusOf } from '../testing/observed-nodes.ts'
import { type AttentionSeed, attentionSeeds, settleAttention, withoutNumbers } from './attention.ts'
import { configWarnings } from './config-warnings.ts'
import type { NodeLimits, NodeObservation } from './observation.ts'

const REFUSED = { code: 'refused', message: 'connection refused' }
const healthy = ['n1', 'n2', 'n3'].map((id) => observedNode({ id }))
const view = (nodes: readonly NodeObservation[], change: Partial<ShardView> = {}): ShardView => ({
  ...shardOf(nodes).view,
  ...change,
})
const seedsOf = (
  shard: ShardView,
  more: {
    operations?: Operation[]
    limits?: NodeLimits
    registryHash?: string
    oversold?: number
    clients?: string
  } = {},
) =>
  attentionSeeds({
    shards: [shard],
    now: NOW,
    operations: more.operations ?? [],
    limitsOf: () => more.limits,
    oversoldOf: () => more.oversold ?? 0,
    clientsOf: () => more.clients ?? '',
    registryHash: more.registryHash,
  })
const limits = {
  electionTimeoutMs: 1_800,
  snapshotIntervalSeconds: 60,
  snapshotTriggerCount: 10_000,
  maintenanceHour: 0,
}
const withStatus = (change: Parameters<typeof statusOf>[0]) => [
  observedNode({ id: 'n1' }, { status: { value: statusOf(change), at: NOW } }),
  ...healthy.slice(1),
]
const snapshot = (lastIndex: number, createdAt: string) => ({
  ...{
    id: 'x',
    created_at: createdAt,
    shard_id: 's1',
    last_index: lastIndex,
    last_term: 1,
    properties: 1,
    packages: 1,
    segments: 1,
  },
  ...{ window: null, codec_hash: HASH, bytes: 1, origin: 'periodic' as const, duration_ms: 1 },
})
const refused = {
  id: 'op_1',
  shard: 's1',
  node: 'n2',
  title: 'Transfer of s1 to n2',
  message: 'n1 answered 409',
  state: 'refused',
  endedAt: null,
} as unknown as Operation

/** docs/design/control-plane.md#attention, rule by rule. */
const RULES: readonly (readonly [rule: number, message: string, seeds: AttentionSeed[]])[] = [
  [
    1,
    's1 has lost its quorum: 1 of 3 voters answer, 2 needed (n2, n3 down)',
    seedsOf(view([healthy[0] as NodeObservation, goneNode({ id: 'n2' }, REFUSED), goneNode({ id: 'n3' }, REFUSED)])),
  ],
  [
    1,
    's1 has no leader; clients cannot book',
    seedsOf(view(healthy, { state: 'no-leader', level: 'crit' }), { clients: 'clients cannot book' }),
  ],
  [1, 's1 has no leader', seedsOf(view(healthy, { state: 'no-leader', level: 'crit' }))],
  [1, 'Nodes of s1 disagree about the leader', seedsOf(view(healthy, { state: 'disagree', level: 'crit' }))],
  [1, 'No node of s1 answers', seedsOf(view(['n1', 'n2', 'n3'].map((id) => goneNode({ id }, REFUSED))))],
  [
    2,
    's1 / n3 is unreachable: connection refused; s1 cannot lose another voter',
    seedsOf(view([...healthy.slice(0, 2), goneNode({ id: 'n3' }, REFUSED)])),
  ],
  [
    2,
    's1 / n2 claims to lead, a majority names n1',
    seedsOf({
      ...view(healthy),
      nodes: view(healthy).nodes.map((node) =>
        node.id === 'n2'
          ? { ...node, state: 'conflicting-leader', level: 'crit', message: 'Claims to lead, a majority names n1' }
          : node,
      ),
    }),
  ],
  [
    3,
    's1 cannot lose another voter',
    seedsOf(view(['n1', 'n2'].map((id) => observedNode({ id, voters: ['n1', 'n2'] })))),
  ],
  [
    4,
    's1 / n2 is far behind: 12,400 entries, 14 s',
    seedsOf(view([observedNode({ id: 'n1', lags: { n2: [12_400, 14] } }), ...healthy.slice(1)])),
  ],
  [5, 'Transfer of s1 to n2: refused. n1 answered 409', seedsOf(view(healthy), { operations: [refused] })],
  [
    8,
    's1 has written since its last snapshot and saved none for more than 3 min',
    seedsOf(view(withStatus({ snapshot: snapshot(100, '2026-11-22T11:50:00.000Z') })), {
      limits: { ...limits, snapshotIntervalSeconds: 60 },
    }),
  ],
  [
    9,
    's1 / n1 has used 90 % of its memory for data',
    seedsOf(view(withStatus({ memory: { rss: 1, heap: 1, arraybuffers: 1, indexes: 400, packages: 500, free: 100 } }))),
  ],
  [
    9,
    's1 / n1: a certificate or token ends. the certificate of the cluster listener ends at 2026-11-29T12:00:00.000Z',
    seedsOf(
      view(
        withStatus({
          reasons: [
            {
              ...{ reason: 'certificate_ends', stops: 'nothing', since: '2026-11-22T11:50:00.000Z' },
              ...{ detail: 'the certificate of the cluster listener ends at 2026-11-29T12:00:00.000Z' },
              ...{ means: '', look_at: '', type: '' },
            },
          ],
        }),
      ),
    ),
  ],
  [9, 's1 has 3 oversold nights: rooms on hold were taken back', seedsOf(view(healthy), { oversold: 3 })],
  [
    9,
    's1 / n1 has 9,000 of 10,000 connections open',
    seedsOf(
      view([
        observedNode(
          { id: 'n1' },
          { connectionsLimit: 10_000, status: { value: statusOf({ connections: 9_000 }), at: NOW } },
        ),
        ...healthy.slice(1),
      ]),
    ),
  ],
  [
    9,
    'The dates of s1 end on 2026-11-25: the hot window ends in 3 days',
    seedsOf(view(healthy, { window: { from: '2026-11-01', to: '2026-11-25' } })),
  ],
  [
    10,
    's1 / n1, n2, n3 run another codec list than the registry',
    seedsOf(view(healthy), { registryHash: 'c'.repeat(64) }),
  ],
]

test.each(RULES)('rule %i: %s', (rule, message, seeds) => {
  expect(seeds.map((seed) => [seed.rule, seed.message])).toContainEqual([rule, message])
})

test.each([
  ['2026-11-29', undefined],
  ['2026-11-28', 'The dates of s1 end on 2026-11-28: the hot window ends in 6 days'],
  ['2026-11-23', 'The dates of s1 end on 2026-11-23: the hot window ends in 1 day'],
  // On its last day, at noon, it used to be shown as ended.
  ['2026-11-22', 'The dates of s1 end on 2026-11-22: the hot window ends today'],
  ['2026-11-21', 'The dates of s1 have ended'],
])('at noon of November 22 a window to %s: %s', (to, message) => {
  const seeds = seedsOf(view(healthy, { window: { from: '2026-11-01', to } }))

  expect(seeds.map((each) => each.message)).toEqual(message === undefined ? [] : [message])
})

test('a healthy shard needs no attention', () => {
  expect(seedsOf(view(healthy), { limits, registryHash: HASH })).toEqual([])
})

test('equal problems of one shard are one item', () => {
  const five = ['n1', 'n2', 'n3', 'n4', 'n5']
  const nodes = five.map((id) =>
    id > 'n3' ? goneNode({ id, voters: five }, REFUSED) : observedNode({ id, voters: five }),
  )

  const unreachable = seedsOf(view(nodes)).filter(({ rule }) => rule === 2)

  expect(unreachable).toMatchObject([
    {
      message: 's1 / n4, n5: unreachable: connection refused; s1 cannot lose another voter',
      node: null,
      href: '/shards/s1?focus=n4',
    },
  ])
})

test('a voter that is away, and that no other may be lost, are one item', () => {
  const nodes = [...healthy.slice(0, 2), goneNode({ id: 'n3' }, REFUSED)]

  expect(seedsOf(view(nodes)).map(({ id }) => id)).toEqual(['2:unreachable:s1'])
})

test('a shard without writes since its snapshot needs no new one', () => {
  const nodes = withStatus({ snapshot: snapshot(50_000, '2026-11-20T00:00:00.000Z') })

  expect(seedsOf(view(nodes), { limits })).toEqual([])
})

test.each([
  [180_000, 0],
  [180_001, 1],
])('a snapshot of %d ms ago is %d time late, if one is saved each minute', (ms, times) => {
  const nodes = withStatus({ snapshot: snapshot(100, new Date(NOW - ms).toISOString()) })
  const found = seedsOf(view(nodes), { limits: { ...limits, snapshotIntervalSeconds: 60 } })

  expect(found.filter(({ rule }) => rule === 8)).toHaveLength(times)
})

const seed = (id: string, rule: number, value: number | null = null): AttentionSeed => ({
  ...{
    id,
    rule,
    level: 'warn',
    area: 'shards',
    shard: 's1',
    node: null,
    message: `${id} is 5`,
    href: '/',
    action: 'Open s1',
    value,
  },
})

test('items are ranked by rule, then by age, and keep their start time', () => {
  const first = settleAttention([seed('late', 4), seed('worst', 1)], new Map(), new Map(), NOW)
  const second = settleAttention(
    [seed('later', 4), seed('late', 4), seed('worst', 1)],
    first.memory,
    new Map(),
    NOW + 5_000,
  )

  expect(second.items.map(({ id, since }) => [id, Date.parse(since) - NOW])).toEqual([
    ['worst', 0],
    ['late', 0],
    ['later', 5_000],
  ])
})

test('the trend is growing, shrinking, or steady for small changes', () => {
  const trendOf = (values: readonly number[]) => {
    let memory: ReturnType<typeof settleAttention>['memory'] = new Map()
    let trend: string | null | undefined
    for (const value of values) {
      const settled = settleAttention([seed('lag', 4, value)], memory, new Map(), NOW)
      memory = settled.memory
      trend = settled.items[0]?.trend
    }
    return trend
  }

  expect([
    trendOf([100, 200]),
    trendOf([100, 150, 200]),
    trendOf([200, 150, 100]),
    trendOf([1_000, 1_001, 1_002]),
  ]).toEqual([null, 'growing', 'shrinking', 'steady'])
})

test('an item put aside returns when its time is over or its message changes, except for numbers', () => {
  const asideOf = (message: string, untilAt: number | null) =>
    settleAttention(
      [{ ...seed('lag', 4), message }],
      new Map(),
      new Map([['lag', { untilAt, message: withoutNumbers('n2 is 12,400 behind') }]]),
      NOW,
    ).items[0]?.asideUntil

  expect(asideOf('n2 is 13,000 behind', null)).toBe('change')
  expect(asideOf('n2 does not respond', null)).toBeNull()
  expect(asideOf('n2 does not respond', NOW + 1)).toBe('2026-11-22T12:00:00.001Z')
  expect(asideOf('n2 is 13,000 behind', NOW - 1)).toBeNull()
})

test('a shard that just started from a built snapshot, which has no creation time, is not late with its own (rule 8)', () => {
  const saidAfter = (startedMs: number) =>
    seedsOf(
      view(
        healthy.map((observation, n) => ({
          ...observation,
          status: {
            value: {
              ...statusOf(n === 0 ? { snapshot: snapshot(100, '1970-01-01T00:00:00.000Z') } : {}),
              started_at: new Date(NOW - startedMs).toISOString(),
            },
            at: NOW,
          },
        })),
      ),
      { limits: { ...limits, snapshotIntervalSeconds: 60 } },
    ).filter(({ rule }) => rule === 8).length

  expect([saidAfter(170_000), saidAfter(190_000)]).toEqual([0, 1])
})

test('voters that cost the quorum are named by its item and are none of their own', () => {
  const nodes = [healthy[0] as NodeObservation, goneNode({ id: 'n2' }, REFUSED), goneNode({ id: 'n3' }, REFUSED)]

  expect(seedsOf(view(nodes)).map(({ id }) => id)).toEqual(['1:quorum-lost:s1'])
})

test('a node whose state differed is one item until it is back, separate from nodes that are down for other reasons', () => {
  const five = { voters: ['n1', 'n2', 'n3', 'n4', 'n5'] }
  const mismatched = { status: { value: statusOf({ reasons: [MISMATCH] }), at: NOW } }
  const others = [
    observedNode({ id: 'n1', ...five }),
    goneNode({ id: 'n3', ...five }, REFUSED),
    ...['n4', 'n5'].map((id) => observedNode({ id, ...five })),
  ]
  const items = (n2: NodeObservation) => seedsOf(view([...others, n2])).map(({ id, message }) => [id, message])
  const away = ['2:unreachable:s1', 's1 / n3 is unreachable: connection refused']
  const differs = '2:digest-mismatch:s1'

  expect(items(observedNode({ id: 'n2', ...five, health: 'unavailable' }, mismatched))).toEqual(
    expect.arrayContaining([
      [
        differs,
        's1 / n2 is unavailable: its state differs from the log (digest_mismatch); s1 cannot lose another voter',
      ],
      away,
    ]),
  )
  expect(items(goneNode({ id: 'n2', ...five }, REFUSED, mismatched))).toEqual(
    expect.arrayContaining([
      [differs, 's1 / n2 stopped: its state differed from the log (digest_mismatch); s1 cannot lose another voter'],
      away,
    ]),
  )
  expect(items(observedNode({ id: 'n2', ...five })).map(([id]) => id)).not.toContain(differs)
})

const DEFAULTS = {
  ...{ raft_tick_ms: 30, raft_election_tick: 60, raft_heartbeat_tick: 15, tcp_recv_buffer_size: 262_144 },
  ...{ snapshot_interval_sec: 60, snapshot_trigger_count: 10_000, registry_heartbeat_secs: 10 },
  ...{ tcp_port: 7777, api_port: 8080, quic_port: 17_777, admin_requires_auth: false },
  ...{ max_dates_in_query: 14, query_limit: 200, memory_max_bytes: 0 },
}
const config = (change: { [key: string]: number | boolean } = {}): NodeConfig =>
  Object.fromEntries(
    Object.entries({ ...DEFAULTS, ...change }).map(([key, value]) => [
      key,
      { value, origin: key in change ? ('file' as const) : ('default' as const), at: '' },
    ]),
  )
const shard = (...changes: { [key: string]: number | boolean }[]) =>
  changes.map((change, at) => ({ node: `n${at + 1}`, config: config(change) }))

test('the defaults give no warning', () => {
  expect(configWarnings(shard({}, {}, {}))).toEqual([])
})

test.each<[string, { [key: string]: number | boolean }, string]>([
  ['a heartbeat interval above the election timeout', { raft_heartbeat_tick: 60 }, 'leaders cannot stay elected'],
  ['a heartbeat interval of half the election timeout', { raft_heartbeat_tick: 30 }, 'two lost heartbeats'],
  ['no receive buffer', { tcp_recv_buffer_size: 0 }, 'operating system'],
  ['no snapshots', { snapshot_interval_sec: 0, snapshot_trigger_count: 100_000_000 }, 'replays all'],
  ['rare heartbeats to the registry', { registry_heartbeat_secs: 30 }, 'remove the node from a registry'],
  ['one port for two listeners', { api_port: 7777 }, 'port 7777'],
  ['admin paths opened explicitly', { admin_requires_auth: false }, 'open to every client'],
])('%s: one warning for all nodes that have it', (_, change, message) => {
  const found = configWarnings(shard(change, {}, change))

  expect(found).toEqual([expect.objectContaining({ nodes: ['n1', 'n3'], message: expect.stringContaining(message) })])
})

test.each<[{ [key: string]: number }, string]>([
  [{ raft_election_tick: 61 }, 'elections'],
  [{ max_dates_in_query: 30 }, 'another one refuses'],
  [{ query_limit: 100 }, 'different numbers of rows'],
  [{ memory_max_bytes: 67_108_864 }, 'least memory'],
])('a node that differs in %o is listed', (change, message) => {
  const found = configWarnings(shard({}, change, {}))

  expect(found).toEqual([expect.objectContaining({ nodes: ['n2'], message: expect.stringContaining(message) })])
})

test('values that are not reported give no warning', () => {
  expect(configWarnings([{ node: 'n1', config: {} }, ...shard({})])).toEqual([])
})

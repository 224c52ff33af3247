import { expect, test } from 'vitest'
import { createCodecList } from '../codecs.ts'
import {
  type ClusterInfo,
  clusterInfoBody,
  codecsBody,
  configBody,
  errorBody,
  healthzText,
  loadRequest,
  maintenanceRequest,
  memberRequest,
  NODE_ROUTES,
  type NodeRoute,
  type NodeStatus,
  nodeInfoBody,
  operationsBody,
  peersRequest,
  propertiesBody,
  readyBody,
  shutdownRequest,
  slowBody,
  snapshotInfoBody,
  statusBody,
  transferRequest,
  wordsBody,
  wordsQuery,
} from './node.ts'

const SNAPSHOT = {
  id: 'a'.repeat(64),
  created_at: '2026-11-20T08:00:00.000Z',
  shard_id: 's1',
  last_index: 10,
  last_term: 1,
  properties: 40,
  packages: 1_600,
  segments: 4,
  window: { from: '2026-11-20', to: '2026-11-29' },
  codec_hash: '0'.repeat(64),
  bytes: 12_345,
  origin: 'seed' as const,
  duration_ms: 12.5,
}

const STARTING: NodeStatus = {
  mode: 'standalone',
  version: '0.1.0',
  shard_id: 's1',
  health: 'unavailable',
  reasons: [
    {
      reason: 'starting',
      stops: 'all',
      detail: '',
      since: '2026-11-20T08:00:00.000Z',
      means: 'It starts.',
      look_at: 'The log.',
      type: 'curl',
    },
  ],
  started_at: '2026-11-20T08:00:00.000Z',
  uptime_seconds: 0,
  cores: { start: 2, now: 2 },
  serving_threads: 1,
  connections: 0,
  kernels: 'wasm',
  ordered_hash: '0'.repeat(64),
  codec_mismatch: null,
  memory: { rss: 1, heap: 1, arraybuffers: 1 },
  properties: 0,
  packages: 0,
  sessions: 0,
  segments: [],
  replica: null,
  wal: null,
  disk: null,
  digest: null,
  snapshot: null,
  snapshot_running: false,
  maintenance: null,
  cluster: null,
}

test('the status of a starting and of a serving node fits the schema', () => {
  expect(statusBody.parse(STARTING)).toEqual(STARTING)

  const serving = {
    ...STARTING,
    health: 'active',
    reasons: [],
    memory: { ...STARTING.memory, indexes: 1, packages: 2, free: 3 },
    segments: [{ name: 'paris', properties: 40, packages: 1_600 }],
    replica: {
      role: 'leader',
      term: 1,
      first_index: 1,
      last_index: 5,
      commit_index: 5,
      applied_index: 5,
      lag_entries: 0,
    },
    wal: { bytes: 4_096, files: 1 },
    disk: { free_bytes: 1, full: false },
    digest: { value: '0123456789abcdef', checked_index: 5, checked_value: '00000000000000ff' },
    snapshot: SNAPSHOT,
    maintenance: { last_day: 20_000, last_success_at: null, removed_packages: 0 },
  }
  expect(statusBody.parse(serving)).toEqual(serving)
})

test('a value of the wrong type is refused with its path', () => {
  const { success, error } = statusBody.safeParse({ ...STARTING, cores: { start: 2, now: 'two' } })

  expect(success).toBe(false)
  expect(error?.issues[0]?.path).toEqual(['cores', 'now'])
})

test('unknown keys of a later version are ignored', () => {
  expect(errorBody.parse({ error: 'no', code: 'later' })).toEqual({ error: 'no' })
  expect(statusBody.safeParse({ ...STARTING, later: 1 }).success).toBe(true)
})

test('the sample codec list fits the schema, with its u64 rounded to a number', () => {
  const list = createCodecList([
    'free_cancellation',
    'non_refundable',
    'pay_at_property',
    'includes_breakfast',
    'free_wifi',
    'no_prepayment',
    'partial_refund',
    'instant_confirmation',
  ])
  const text = `{"rate_features":${JSON.stringify(list.names)},"hash":${list.hash},"hash_hex":"${list.hashHex}","ordered_hash":"${list.orderedHash}"}`

  const body = codecsBody.parse(JSON.parse(text))

  expect(text).toContain('"hash":2287399612289297935,')
  expect(body.hash_hex).toBe('1fbe79d405deae0f')
})

test('responses fit their schemas', () => {
  const property = {
    id: 'p1',
    segment: 'paris',
    area: 'centre',
    type: 'hotel',
    category: 'luxury',
    stars: 5,
    latitude: 48.85,
    longitude: 2.35,
    amenities: ['wifi'],
    room_types: ['room1'],
  }
  expect(propertiesBody.safeParse({ properties: [property], missing: ['p2'] }).success).toBe(true)
  expect(propertiesBody.safeParse({ properties: [{ ...property, stars: 6 }], missing: [] }).success).toBe(false)
  expect(
    wordsBody.safeParse({ kind: 'area', segment: null, words: [{ word: 'a', properties: 2 }], more: false }).success,
  ).toBe(true)
  expect(readyBody.safeParse({ ready: true, reasons: [] }).success).toBe(true)
  expect(snapshotInfoBody.safeParse({ ...SNAPSHOT, window: null }).success).toBe(true)
  expect(configBody.safeParse({ tcp_port: { value: 1, origin: 'file', at: 'vacancy.yml:3' } }).success).toBe(true)
  // Of a node without traces.
  const slow = { command: 'SEARCHAVAIL', milliseconds: 12.5, rows: 3, at: SNAPSHOT.created_at }
  expect(slowBody.parse({ requests: [slow] }).requests).toEqual([{ ...slow, trace_id: null }])
  expect(healthzText.safeParse('fine').success).toBe(false)
})

test('requests have defaults, but shutdown must be explicit', () => {
  expect(maintenanceRequest.parse({})).toEqual({ force: false })
  expect(wordsQuery.parse({})).toEqual({ kind: 'segment', prefix: '', limit: 100 })
  expect(wordsQuery.parse({ limit: '20', kind: 'area' })).toMatchObject({ limit: 20, kind: 'area' })
  for (const limit of ['0', '1001', '1.5', 'x']) expect(wordsQuery.safeParse({ limit }).success).toBe(false)
  for (const body of [{}, { confirm: false }, { confirm: 'true' }])
    expect(shutdownRequest.safeParse(body).success).toBe(false)
})

const INFO: ClusterInfo = {
  leader_id: 'n1',
  members: { voters: ['n1', 'n2', 'n3'], learners: [] },
  node_id: 'n2',
  shard_id: 's1',
  zone_id: 'z1',
  cluster_id: '0'.repeat(32),
  leader_url: '',
  term: 3,
  first_index: 1,
  last_index: 9,
  commit_index: 9,
  applied_index: 9,
  joint: false,
  nodes: [
    {
      id: 'n1',
      role: 'leader',
      voter: true,
      health: 'unknown',
      match_index: null,
      lag_entries: null,
      lag_seconds: null,
      host: '',
    },
  ],
  bootstrap: null,
  operation: { kind: 'promote', node: 'n4', started_at: SNAPSHOT.created_at, step: 'waits' },
  last_operation: { kind: 'demote', node: 'n5', result: 'failed', reason: 'n5 was lost', at: SNAPSHOT.created_at },
}

test('the shard info of a node fits the schema, but a member with an unknown role does not', () => {
  expect(clusterInfoBody.parse(INFO)).toEqual(INFO)
  const voters = [{ id: 'n1', state: 'seeded', snapshot: 'a'.repeat(64), index: 1, detail: '' }] as const
  const bootstrap = { waits_for: 'snapshot', why: 'on 1 of 3 voters', needed: 2, voters } as const
  expect(clusterInfoBody.safeParse({ ...INFO, bootstrap }).success).toBe(true)
  expect(clusterInfoBody.safeParse({ ...INFO, nodes: [{ ...INFO.nodes[0], role: 'king' }] }).success).toBe(false)
  expect(operationsBody.safeParse({ operation: null, operations: [INFO.last_operation] }).success).toBe(true)
  expect(nodeInfoBody.safeParse({ leader_id: '', shard_id: 's1', zone_id: 'z1', node_id: 'n1' }).success).toBe(true)
  expect(nodeInfoBody.safeParse({ leader_id: null, shard_id: 's1', zone_id: 'z1', node_id: 'n1' }).success).toBe(false)
})

test('changes require a valid node id, and loads an absolute path or a digest', () => {
  for (const id of ['n1', 'a.b_c-D9', 'x'.repeat(128)])
    expect(memberRequest.safeParse({ node_id: id }).success).toBe(true)
  for (const id of ['', '.', '..', 'a b', 'a/b', 'ü', 'x'.repeat(129), 7, null]) {
    expect(memberRequest.safeParse({ node_id: id }).success).toBe(false)
    expect(transferRequest.safeParse({ target_node_id: id }).success).toBe(false)
    expect(peersRequest.safeParse(['n1', id]).success).toBe(false)
  }
  expect(peersRequest.safeParse([]).success).toBe(false)
  expect(loadRequest.safeParse({ file: '/srv/seed.snapshot' }).success).toBe(true)
  expect(loadRequest.safeParse({ digest: 'a'.repeat(64) }).success).toBe(true)
  for (const body of [{}, { file: 'seed.snapshot' }, { digest: 'A'.repeat(64) }]) {
    expect(loadRequest.safeParse(body).success).toBe(false)
  }
})

test('paths that take a node id exist in clustered mode only', () => {
  const routes: NodeRoute[] = Object.values(NODE_ROUTES)

  for (const { path, mode } of routes)
    if (path.includes('{')) expect([path.endsWith('/{node_id}'), mode]).toEqual([true, 'clustered'])
  for (const { path, mode } of routes) if (path.startsWith('/cluster/')) expect(mode).toBe('clustered')
})

test('every path is listed once, and changes require the admin role', () => {
  const routes: NodeRoute[] = Object.values(NODE_ROUTES)

  expect(new Set(routes.map(({ method, path }) => `${method} ${path}`)).size).toBe(routes.length)
  for (const { method, access } of routes) if (method === 'POST') expect(['admin', 'adminToken']).toContain(access)
  for (const { path } of routes.filter(({ access }) => access === 'open')) {
    expect(['/health', '/healthz', '/ready']).toContain(path)
  }
})

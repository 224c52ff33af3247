import type {
  ClientsOfShard,
  ClientWay,
  FabricComponent,
  FabricEdge,
  FabricKind,
  ShardView,
  TopicStats,
} from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { clientSeeds, endSeeds, fabricSeeds, importSeeds, ownSeeds, queueSeeds } from './attention-sources.ts'

const SINCE = '2026-11-20T09:00:00.000Z'
const NOW = Date.parse('2026-11-20T12:00:00Z')

const component = (kind: FabricKind, id: string, more: Partial<FabricComponent> = {}): FabricComponent =>
  ({
    ...{ kind, id, key: `${kind} ${id}`, zone: null, shard: null, state: 'ready', level: 'ok', message: 'Ready' },
    ...{ since: SINCE, cuts: [], reasons: [], differences: [], ...more },
  }) as unknown as FabricComponent
const DOWN = { state: 'unreachable', level: 'crit', message: 'Unreachable: connection refused' } as const
const NO_EDGE = 'All clients: no edge router is left'
/** Each proxy sends to the edge of its number. */
const found = (...components: FabricComponent[]) => {
  const proxies = components.filter(({ kind }) => kind === 'proxy')
  const edges = proxies.map(({ key }) => ({ from: key, to: key.replace('proxy p', 'edge e') }) as FabricEdge)
  return fabricSeeds({ components, edges }).map(({ rule, level, message }) => `${rule} ${level} ${message}`)
}
const NO_UPSTREAM: Partial<FabricComponent> = {
  ...{ state: 'not-ready', level: 'warn', message: 'Not ready: no connection to e1' },
  reasons: [{ name: 'upstream', message: 'no connection to e1', since: SINCE }],
}

test.each<[string, FabricComponent[], string[]]>([
  ['all is well', [component('edge', 'e1'), component('bridge', 'b1')], []],
  [
    'all edges are down: once, for all of them',
    [component('edge', 'e1', { ...DOWN, cuts: [NO_EDGE] }), component('edge', 'e2', { ...DOWN, cuts: [NO_EDGE] })],
    [`1 crit ${NO_EDGE} (e1, e2 down)`],
  ],
  [
    'a proxy is not ready because the edge before it is down',
    [component('edge', 'e1', { ...DOWN, cuts: [NO_EDGE] }), component('proxy', 'p1', NO_UPSTREAM)],
    [`1 crit ${NO_EDGE} (e1 down)`],
  ],
  [
    'the same, while another edge is there',
    [component('edge', 'e1', DOWN), component('edge', 'e2'), component('proxy', 'p1', NO_UPSTREAM)],
    ['2 warn Edge router e1: unreachable: connection refused'],
  ],
  [
    'a proxy does not reach an edge that is there',
    [component('edge', 'e1'), component('proxy', 'p1', NO_UPSTREAM)],
    ['4 warn Proxy p1: not ready: no connection to e1'],
  ],
  [
    'one of two edges is down',
    [component('edge', 'e1', DOWN), component('edge', 'e2')],
    ['2 warn Edge router e1: unreachable: connection refused'],
  ],
  [
    'the registry is down: known routes stay',
    [component('registry', 'r', { ...DOWN, cuts: ['New segments are not routed. Known routes stay'] })],
    ['2 warn New segments are not routed. Known routes stay (r down)'],
  ],
  [
    'a bridge is not ready because of its shard, which has an item of its own',
    [
      component('bridge', 'b1', {
        ...{ state: 'not-ready', level: 'warn', message: 'Not ready: No leader is known.' },
        reasons: [{ name: 'leader', message: 'No leader is known.', since: SINCE }],
      }),
    ],
    [],
  ],
  [
    'a certificate of a router ends',
    [component('zone-router', 'z1', { level: 'warn', message: 'Ready; The certificate ends on 2026-12-01.' })],
    ['9 warn Zone router z1: the certificate ends on 2026-12-01.'],
  ],
])('the fabric when %s', (_, components, expected) => {
  expect(found(...components)).toEqual(expected)
})

const topic = (more: Partial<TopicStats>): TopicStats =>
  ({
    ...{ topic: 'orders', paused: false, ready: 0, dead: 0, consumers: 1, stalledConsumers: 0, oldestReadyMs: 0 },
    ...more,
  }) as TopicStats

test.each<[string, Partial<TopicStats>, string[]]>([
  ['works', { ready: 3, oldestReadyMs: 2_000 }, []],
  ['has dead jobs', { dead: 2_000 }, ['orders has 2,000 dead jobs']],
  ['has no consumer', { consumers: 0, ready: 1, oldestReadyMs: 31_000 }, ['orders has 1 ready job and no consumer']],
  ['has had none for a moment', { consumers: 0, ready: 1, oldestReadyMs: 29_000 }, []],
  ['is paused', { paused: true, consumers: 0, ready: 1, oldestReadyMs: 900_000 }, []],
  ['falls behind', { ready: 9, oldestReadyMs: 600_000 }, ['orders: its oldest ready job is 10 min old']],
  ['stalls', { stalledConsumers: 1, consumers: 2 }, ['orders: 1 of 2 consumers stalled']],
])('a topic that %s', (_, more, expected) => {
  expect(queueSeeds('', [topic(more)]).map(({ message }) => message)).toEqual(expected)
})

test('a queue that does not serve is one item, and many topics are counted', () => {
  expect(queueSeeds('The queue does not respond.', [topic({ dead: 1 })])).toMatchObject([
    { level: 'crit', message: 'The job queue does not serve: the queue does not respond.' },
  ])
  const many = Array.from({ length: 40 }, (_, n) => topic({ topic: `t${n}`, dead: n + 1 }))
  const seeds = queueSeeds('', many)
  expect([seeds.length, seeds[0]?.message, seeds.at(-1)?.message]).toEqual([
    ...[11, 't39 has 40 dead jobs', '30 more of this kind in the queue'],
  ])
})

test('a failed import needs attention until its shard has a newer one, or for a week', () => {
  const failed = {
    ...{ id: 'a', name: 'nightly', shard: 's1', state: 'failed' as const, message: 'Row 3 has no price.' },
    ...{ createdAt: '2026-11-20T08:00:00.000Z', endedAt: '2026-11-20T08:05:00.000Z' },
  }
  const later = { ...failed, id: 'b', state: 'built' as const, createdAt: '2026-11-20T09:00:00.000Z' }
  expect(importSeeds([failed], NOW)).toMatchObject([{ message: 'Import nightly of s1 failed: row 3 has no price.' }])
  expect(importSeeds([later, failed], NOW)).toEqual([])
  expect(importSeeds([{ ...later, shard: 's2' }, failed], NOW)).toHaveLength(1)
  expect(importSeeds([failed], NOW + 8 * 86_400_000)).toEqual([])
})

test('a control plane that is late says so of itself', () => {
  expect(ownSeeds(900, [])).toEqual([])
  const said = (lateMs: number, unread: string[]) =>
    ownSeeds(lateMs, unread).map(({ area, message }) => [area, message])
  const short = 'This control plane is short of processor time'
  expect(said(3_000, [])).toEqual([['control-plane', `${short}, 3 s behind`]])
  expect(said(0, ['s1'])).toEqual([
    ['control-plane', `${short}: shard s1 was not read lately, and may be in any state`],
  ])
  expect(said(3_000, ['s1', 's2'])[0]?.[1]).toContain('3 s behind: 2 shards were not read lately')
})

test('a control plane names what of itself ends', () => {
  expect(endSeeds('')).toEqual([])
  expect(endSeeds('the certificate of the listener ends at 2026-11-22T00:00:00.000Z')).toMatchObject([
    { area: 'control-plane', level: 'warn', message: expect.stringContaining('the certificate of the listener ends') },
  ])
})

// Clients

const way = (shard: string, id: string, more: Partial<ClientWay> = {}): ClientWay => ({
  ...{ shard, through: 'node', id, state: 'answers', message: '', code: '', failing: null, since: null },
  ...{ answeredAt: SINCE, search: { latency: null, answered: 1, failed: 0 } },
  ...{ hold: { latency: null, answered: 1, failed: 0 }, ...more },
})
const FAILS = { state: 'fails', message: 'Searches fail: no answer', failing: 'search', since: SINCE } as const
const NO_HOLDS = { ...FAILS, message: 'Holds fail: no leader', failing: 'hold' } as const
const edgeWay = (shard: string, id: string, more: Partial<ClientWay> = {}) =>
  way(shard, id, { through: 'edge', ...more })
const clientsOf = (shard: string, state: ClientsOfShard['state'], ...ways: ClientWay[]): ClientsOfShard => ({
  ...{ shard, state, message: ways.find((each) => each.message !== '')?.message ?? '', search: null, hold: null, ways },
})
const viewsOf = (state: ShardView['state'], nodeState: ShardView['nodes'][number]['state'] = 'healthy') =>
  ['s1', 's2'].map((id) => ({
    ...{ id, zone: 'z1', state, nodes: ['n1', 'n2'].map((node) => ({ id: node, state: nodeState })) },
  })) as unknown as ShardView[]

test.each<[string, ClientsOfShard[], ShardView[], FabricComponent[], string[]]>([
  ['clients are answered', [clientsOf('s1', 'answers', way('s1', 'n1'))], viewsOf('healthy'), [], []],
  [
    'nothing was measured',
    [clientsOf('s1', 'waiting', way('s1', 'n1', { state: 'waiting' }))],
    viewsOf('healthy'),
    [],
    [],
  ],
  [
    'no way in to a shard answers',
    [clientsOf('s1', 'fails', way('s1', 'n1', FAILS), way('s1', 'n2', FAILS))],
    viewsOf('healthy'),
    [],
    ['1 crit Clients of s1 get no answer: searches fail: no answer'],
  ],
  [
    'searches are answered, and no hold is',
    [clientsOf('s1', 'fails', way('s1', 'n1', NO_HOLDS), way('s1', 'n2', NO_HOLDS))],
    viewsOf('healthy'),
    [],
    ['1 crit Clients of s1 cannot book: holds fail: no leader'],
  ],
  [
    'one of two nodes answers no client',
    [clientsOf('s1', 'partly', way('s1', 'n1'), way('s1', 'n2', FAILS))],
    viewsOf('healthy'),
    [],
    ['2 warn Clients of s1 get no answer through n2: searches fail: no answer'],
  ],
  [
    'that node is unreachable, which is an item already',
    [clientsOf('s1', 'partly', way('s1', 'n1'), way('s1', 'n2', FAILS))],
    viewsOf('healthy', 'unreachable'),
    [],
    [],
  ],
  [
    'the shard has no quorum, which is an item already',
    [clientsOf('s1', 'fails', way('s1', 'n1', NO_HOLDS), way('s1', 'n2', FAILS))],
    viewsOf('quorum-lost'),
    [],
    [],
  ],
  [
    'an edge router answers for no shard: one item',
    [
      clientsOf('s1', 'partly', edgeWay('s1', 'e1', FAILS), edgeWay('s1', 'e2')),
      clientsOf('s2', 'partly', edgeWay('s2', 'e1', FAILS), edgeWay('s2', 'e2')),
    ],
    viewsOf('healthy'),
    [component('edge', 'e1'), component('edge', 'e2')],
    ['2 warn Clients get no answer through edge e1: searches fail: no answer'],
  ],
  [
    'the only edge router answers for no shard',
    [clientsOf('s1', 'fails', edgeWay('s1', 'e1', FAILS)), clientsOf('s2', 'fails', edgeWay('s2', 'e1', FAILS))],
    viewsOf('healthy'),
    [component('edge', 'e1')],
    ['1 crit Clients get no answer through edge e1: searches fail: no answer'],
  ],
  [
    'it is down, which is an item already',
    [clientsOf('s1', 'fails', edgeWay('s1', 'e1', FAILS))],
    viewsOf('healthy'),
    [component('edge', 'e1', { ...DOWN, cuts: [NO_EDGE] })],
    [],
  ],
  [
    'the bridge of a shard is down, which is an item already',
    [clientsOf('s1', 'fails', edgeWay('s1', 'e1', FAILS)), clientsOf('s2', 'answers', edgeWay('s2', 'e1'))],
    viewsOf('healthy'),
    [component('edge', 'e1'), component('bridge', 'b1', { ...DOWN, shard: 's1', cuts: ['x'] })],
    [],
  ],
])('%s', (_, clients, views, components, items) => {
  const seeds = clientSeeds(clients, views, components)
  expect(seeds.map(({ rule, level, message }) => `${rule} ${level} ${message}`)).toEqual(items)
})

/** Where a segment goes: the replies of registry, routers and bridges, and what is concluded from them. */

import type { FabricKind, ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { NodeHttpError } from '../cluster/node-http.ts'
import { observedNode, shardOf } from '../testing/observed-nodes.ts'
import { FABRIC, newComponent, type Polled } from './fabric.ts'
import { createFabric } from './poll.ts'
import { routeOfSegment } from './route.ts'

type Reply = { readonly status: number; readonly body: unknown } | Error
type Replies = { readonly [url: string]: Reply }

function component(kind: FabricKind, id: string, zone?: string, shard?: string): Polled {
  return newComponent({ kind, id, zone, shard, apiUrl: `http://${id}`, registered: undefined }, 0)
}

const REGISTRY = component('registry', 'reg')
const ROUTER = component('zone-router', 'r1', 'z1')
const BRIDGE = component('bridge', 'b1', 'z1', 's1')

const OWNER = { shard: 's1', zone: 'z1', claims: [{ shard: 's1' }] }
const hop = (id: string, connections = 1, fault?: string) => ({ id, connections, fault })
const ROUTED = { route: 'ok', zone: 'z1', shard: 's1', hops: [hop('b1')] }
const node = (id: string, role: string, change: object = {}) => ({
  ...{ id, role, health: 'active', connections: 1 },
  ...change,
})
const BRIDGED = { shard: 's1', leader: 'n1', nodes: [node('n1', 'leader'), node('n2', 'follower')] }

const ok = (body: unknown, status = 200): Reply => ({ status, body })

const GOOD: Replies = {
  'http://reg/segments/A%20B': ok(OWNER),
  'http://r1/routes?segment=A%20B': ok(ROUTED),
  'http://b1/topology': ok(BRIDGED),
}

async function route(
  replies: Replies,
  components: readonly Polled[] = [REGISTRY, ROUTER, BRIDGE],
  shards: readonly ShardView[] = [],
) {
  const requests: unknown[] = []
  const http = {
    close: () => {},
    request: async (url: string, options: object = {}) => {
      requests.push([url, options])
      const reply = replies[url] ?? ok('not found', 404)
      if (reply instanceof Error) throw reply
      const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body)
      return { status: reply.status, type: 'application/json', body, milliseconds: 1.26 }
    },
  }
  const config = { registries: ['http://reg'], resolver: undefined, components: [], token: 'secret' }
  const fabric = createFabric(config, { http } as unknown as Parameters<typeof createFabric>[1])
  for (const each of components) fabric.components.set(each.key, each)
  const view = await routeOfSegment(fabric, 'A B', shards)
  return { ...view, requests }
}

const hopOf = async (key: string, replies: Replies, components?: readonly Polled[]) => {
  const { hops } = await route({ ...GOOD, ...replies }, components)
  const found = hops.find((each) => each.key === key)
  return found && `${found.level}: ${found.answer}. ${found.why}`
}

// The whole way

test('a segment is followed from the registry to the nodes of its shard', async () => {
  const nodes = [observedNode({ id: 'n1' }), observedNode({ id: 'n2' })]
  const { view } = shardOf(nodes)
  const other = { ...view, id: 's0', nodes: [] }

  const found = await route(GOOD, [BRIDGE, ROUTER, REGISTRY], [other, view])

  expect(found).toMatchObject({ segment: 'A B', zone: 'z1', shard: 's1', level: 'ok' })
  expect(found.conclusion).toBe('A B goes to shard s1, led by n1')
  expect(found.hops.map(({ key }) => key)).toEqual([
    ...['registry reg', 'zone-router r1', 'bridge b1'],
    ...view.nodes.map(({ id }) => `node s1/${id}`),
  ])
  expect(found.hops[1]).toEqual({
    ...{ key: 'zone-router r1', kind: 'zone-router', id: 'r1', place: 'z1', level: 'ok' },
    ...{ answer: 'Shard s1, through b1', why: 'Connected to each of them' },
    ...{ url: 'http://r1/routes?segment=A%20B', status: 200, milliseconds: 1.3, body: JSON.stringify(ROUTED) },
  })
  expect(found.hops.map(({ place }) => place)).toEqual(['', 'z1', 's1', ...view.nodes.map(() => 's1')])
  expect(found.hops[3]).toEqual({
    ...{ key: 'node s1/n1', kind: 'node', id: 'n1', place: 's1', level: 'ok', answer: 'leader', why: 'Healthy' },
    ...{ url: '', status: null, milliseconds: null, body: '' },
  })
})

test('only the registry gets its token', async () => {
  const { requests } = await route(GOOD)

  expect(requests).toEqual([
    ['http://reg/segments/A%20B', { timeoutMs: FABRIC.timeoutMs, token: 'secret' }],
    ['http://r1/routes?segment=A%20B', { timeoutMs: FABRIC.timeoutMs, token: undefined }],
    ['http://b1/topology', { timeoutMs: FABRIC.timeoutMs, token: undefined }],
  ])
})

test('only routers of the zone and bridges of the shard are queried, in natural order, and at most 20 of a kind', async () => {
  const many = [
    ...Array.from({ length: 22 }, (_, at) => component('bridge', `b${22 - at}`, 'z1', 's1')),
    ...Array.from({ length: 22 }, (_, at) => component('zone-router', `r${at + 1}`, 'z1')),
    ...Array.from({ length: 22 }, (_, at) => component('edge', `e${at + 1}`)),
    ...[component('bridge', 'b0', 'z1', 's2'), component('zone-router', 'r0', 'z2'), REGISTRY],
  ]

  const { hops } = await route(GOOD, many)

  const first20 = (kind: string) => Array.from({ length: 20 }, (_, at) => `${kind}${at + 1}`)
  expect(hops.map(({ id }) => id)).toEqual(['reg', ...first20('e'), ...first20('r'), ...first20('b')])
})

test('without an owner every router is queried, and no bridge', async () => {
  const replies = { ...GOOD, 'http://reg/segments/A%20B': ok({}, 404) }

  const { hops, zone, shard } = await route(replies, [REGISTRY, ROUTER, component('zone-router', 'r2', 'z2'), BRIDGE])

  expect(hops.map(({ id }) => id)).toEqual(['reg', 'r1', 'r2'])
  expect([zone, shard]).toEqual([null, null])
})

test('a long body is shown with its first 4,096 characters', async () => {
  const { hops } = await route({ ...GOOD, 'http://b1/topology': ok('x'.repeat(4_097)) })

  expect(hops[2]?.body).toBe('x'.repeat(4_096))
})

// The registry

test.each<[string, Reply, string]>([
  ['claimed', ok(OWNER), 'ok: Shard s1 in zone z1. Claimed by its leader'],
  ['without a list of claims', ok({ shard: 's1', zone: 'z1' }), 'ok: Shard s1 in zone z1. Claimed by its leader'],
  [
    'claimed twice',
    ok({ ...OWNER, claims: [{ shard: 's1' }, { shard: 's2' }, { shard: 's3' }] }),
    'warn: Shard s1 in zone z1. Also claimed by s2, s3: the first claim counts',
  ],
  [
    'reserved',
    ok({ ...OWNER, claims: [], reserved_until: '2026-11-22' }),
    'ok: Shard s1 in zone z1. Reserved until 2026-11-22, not claimed yet',
  ],
  ['unknown', ok({}, 404), 'crit: Unknown segment. No shard claims it, and it is not reserved'],
  [
    'not served',
    ok({}, 405),
    'unk: Answered 405. The component does not serve this request; it may run an older version',
  ],
  [
    'not readable',
    ok('<html>'),
    'unk: Answered 200. The component does not serve this request; it may run an older version',
  ],
  ['not answered', new NodeHttpError('refused', 'connection refused'), 'crit: No answer. connection refused'],
])('the registry reports a segment that is %s', async (_, reply, expected) => {
  expect(await hopOf('registry reg', { 'http://reg/segments/A%20B': reply })).toBe(expected)
})

test('an error other than one of the network is thrown', async () => {
  await expect(route({ 'http://reg/segments/A%20B': new TypeError('defect') })).rejects.toThrow('defect')
})

// Routers

const UNKNOWN = 'The component does not serve this request; it may run an older version'

test.each<[string, Reply, string]>([
  ['has it', ok(ROUTED), 'ok: Shard s1, through b1. Connected to each of them'],
  [
    'has three bridges',
    ok({ ...ROUTED, hops: [hop('b1'), hop('b2'), hop('b3')] }),
    'ok: Shard s1, through b1, b2 and b3. Connected to each of them',
  ],
  [
    'misses connections',
    ok({ ...ROUTED, hops: [hop('b1', 0), hop('b2', 2), hop('b3', 0)] }),
    'warn: Shard s1, through b1, b2 and b3. Not connected to b1 and b3',
  ],
  [
    'has no connection',
    ok({ ...ROUTED, hops: [hop('b1', 0, 'connection refused'), hop('b2', 0)] }),
    'crit: Shard s1, through b1 and b2. No connection: b1: connection refused; b2: connecting',
  ],
  [
    'has another shard',
    ok({ ...ROUTED, shard: 's2' }),
    'warn: Shard s2, through b1. The registry has s1: these routes are of another version',
  ],
  [
    'does not know it',
    ok({ route: 'unknown', hops: [] }, 404),
    'crit: Unknown segment: 404. Its routes do not have this segment',
  ],
  [
    'has no routes',
    ok({ route: 'unloaded', hops: [] }),
    'crit: No routes yet: 503. It has not loaded routes from the registry',
  ],
  [
    'has no bridge',
    ok({ route: 'no_hops', shard: 's1', hops: [] }),
    'crit: Shard s1: 503. No bridge of it is registered',
  ],
  [
    'has no shard',
    ok({ route: 'no_hops', hops: [] }),
    'crit: No shard: 503. The zone lists the segment, and no shard with a bridge has it',
  ],
  ['fails', ok(ROUTED, 500), `unk: Answered 500. ${UNKNOWN}`],
  ['has no such page', ok('not found', 404), `unk: Answered 404. ${UNKNOWN}`],
])('a zone router that %s', async (_, reply, expected) => {
  expect(await hopOf('zone-router r1', { 'http://r1/routes?segment=A%20B': reply })).toBe(expected)
})

test.each<[string, object, string]>([
  ['has it', { hops: [hop('r1')] }, 'ok: Zone z1, through r1. Connected to each of them'],
  [
    'has another zone',
    { zone: 'z2', hops: [hop('r9')] },
    'warn: Zone z2, through r9. The registry has z1: these routes are of another version',
  ],
  ['has no router', { route: 'no_hops', hops: [] }, 'crit: Zone z1: 503. No zone router of it is registered'],
])('an edge router that %s', async (_, change, expected) => {
  const replies = { 'http://e1/routes?segment=A%20B': ok({ ...ROUTED, shard: undefined, ...change }) }

  expect(await hopOf('edge e1', replies, [REGISTRY, component('edge', 'e1')])).toBe(expected)
})

test('without an owner in the registry no route is of another version', async () => {
  const replies = { 'http://reg/segments/A%20B': ok({}, 404) }

  expect(await hopOf('zone-router r1', replies)).toBe('ok: Shard s1, through b1. Connected to each of them')
})

test('a component without an address cannot be queried', async () => {
  const silent = { ...ROUTER, apiUrl: '' }
  const { hops, requests } = await route(GOOD, [REGISTRY, silent, BRIDGE])

  expect(hops[1]).toMatchObject({
    ...{ level: 'crit', answer: 'No answer', why: 'It has no api_url, so it cannot be queried' },
    ...{ url: '', status: null, milliseconds: null, body: '' },
  })
  expect(requests).toHaveLength(2)
})

test('a component that does not respond is shown with its address', async () => {
  const { hops } = await route({ ...GOOD, 'http://b1/topology': new NodeHttpError('timeout', 'no response') })

  expect(hops[2]).toMatchObject({
    ...{ level: 'crit', answer: 'No answer', why: 'no response', url: 'http://b1/topology' },
    ...{ status: null, milliseconds: null, body: '' },
  })
})

// Bridges

test.each<[string, Reply, string]>([
  ['has a leader', ok(BRIDGED), 'ok: Writes to n1, reads to n2. A majority names n1'],
  [
    'has two followers',
    ok({ ...BRIDGED, nodes: [...BRIDGED.nodes, node('n3', 'follower')] }),
    'ok: Writes to n1, reads to n2 and n3. A majority names n1',
  ],
  [
    'has only a leader',
    ok({ ...BRIDGED, nodes: [node('n1', 'leader')] }),
    'ok: Writes to n1, reads to the leader. A majority names n1',
  ],
  [
    'leaves nodes out',
    ok({
      ...BRIDGED,
      nodes: [...BRIDGED.nodes, node('n3', 'learner', { health: 'starting' }), node('n4', 'none', { fault: 'cut' })],
    }),
    'warn: Writes to n1, reads to n2. A majority names n1; n3 is left out: starting; n4 is left out: cut',
  ],
  [
    'is not connected to the leader',
    ok({ ...BRIDGED, nodes: [node('n1', 'leader', { connections: 0, fault: 'connection refused' })] }),
    'crit: Writes to n1, reads to the leader. Not connected to n1: connection refused',
  ],
  [
    'knows no leader',
    ok({ ...BRIDGED, leader: null }),
    'crit: Writes wait: no leader, reads to n2. No majority of the voters names a leader',
  ],
  [
    'names a leader that it does not list',
    ok({ shard: 's1', leader: 'n9', nodes: [node('n3', 'learner')] }),
    'crit: Writes wait: no leader, reads to the leader. n3 is left out: active',
  ],
  ['fails', ok(BRIDGED, 503), `unk: Answered 503. ${UNKNOWN}`],
])('a bridge that %s', async (_, reply, expected) => {
  expect(await hopOf('bridge b1', { 'http://b1/topology': reply })).toBe(expected)
})

// The conclusion

const broken = new NodeHttpError('refused', 'connection refused')
const edge = component('edge', 'e1')
const EDGE_URL = 'http://e1/routes?segment=A%20B'

test.each<[string, Replies, Polled[], string, string]>([
  ['without nodes', {}, [REGISTRY, ROUTER, BRIDGE], 'ok', 'A B goes to shard s1'],
  ['without a registry', {}, [ROUTER, BRIDGE], 'warn', 'A B stops before the registry: none is known'],
  ['without a router', {}, [REGISTRY, BRIDGE], 'warn', 'A B stops before zone router: none is known'],
  ['without a bridge', {}, [REGISTRY, ROUTER], 'warn', 'A B stops before bridge: none is known'],
  [
    'with a failed registry',
    { 'http://reg/segments/A%20B': broken },
    [REGISTRY, ROUTER, BRIDGE],
    'crit',
    'A B stops at the registry reg: No answer. connection refused',
  ],
  [
    'with a failed edge router',
    { [EDGE_URL]: broken },
    [REGISTRY, edge, ROUTER, BRIDGE],
    'crit',
    'A B stops at edge router e1: No answer. connection refused',
  ],
  [
    'with a router that does not serve the page',
    { 'http://r1/routes?segment=A%20B': ok('', 500) },
    [REGISTRY, ROUTER, BRIDGE],
    'crit',
    `A B stops at zone router r1: Answered 500. ${UNKNOWN}`,
  ],
  [
    'with a failed bridge',
    { 'http://b1/topology': broken },
    [REGISTRY, ROUTER, BRIDGE],
    'crit',
    'A B stops at bridge b1: No answer. connection refused',
  ],
  [
    'with one of two routers',
    { 'http://r1/routes?segment=A%20B': broken, 'http://r2/routes?segment=A%20B': ok(ROUTED) },
    [REGISTRY, ROUTER, component('zone-router', 'r2', 'z1'), BRIDGE],
    'warn',
    'A B goes to shard s1; not all components agree or respond',
  ],
])('the conclusion %s', async (_, replies, components, level, conclusion) => {
  expect(await route({ ...GOOD, ...replies }, components)).toMatchObject({ level, conclusion })
})

test('the state of nodes does not change the conclusion', async () => {
  const { view } = shardOf([observedNode({ id: 'n1', leader: '', health: 'unavailable' })])
  const nodes = view.nodes.map((each) => ({ ...each, role: 'unknown', level: 'crit', message: 'Unavailable' }) as const)

  const { hops, level, conclusion } = await route(GOOD, undefined, [{ ...view, nodes }])

  expect(hops[3]).toMatchObject({ level: 'crit', answer: 'Role not reported', why: 'Unavailable' })
  expect([level, conclusion]).toEqual(['ok', 'A B goes to shard s1'])
})

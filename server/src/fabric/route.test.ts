/** Where a segment goes: the replies of registry, routers and bridges, and what is concluded from them. */

import { systemClock } from '@vacancy/shared'
import type { FabricKind, ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { NodeHttpError } from '../http/node-http.ts'
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
  const fabric = createFabric(config, { http, clock: systemClock } as unknown as Parameters<typeof createFabric>[1])
  for (const each of components) fabric.components.set(each.key, each)
  const view = await routeOfSegment(fabric, 'A B', shards)
  return { ...view, requests }
}

test('only the registry gets its token', async () => {
  const { requests } = await route(GOOD)

  expect(requests).toEqual([
    ['http://reg/segments/A%20B', { timeoutMs: FABRIC.timeoutMs, token: 'secret' }],
    ['http://r1/routes?segment=A%20B', { timeoutMs: FABRIC.timeoutMs, token: undefined }],
    ['http://b1/topology', { timeoutMs: FABRIC.timeoutMs, token: undefined }],
  ])
})

const UNKNOWN = 'The component does not serve this request; it may run an older version'

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

import { turnableClock } from '@vacancy/shared'
import type { FabricKind } from '@vacancy/shared/contract'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Fabric, newComponent, type Polled } from '../fabric/fabric.ts'
import { NODE_HTTP, NodeHttpError } from '../http/node-http.ts'
import { createOwnTime } from '../http/own-time.ts'
import { goneNode, infoOf, NOW, observedNode } from '../testing/observed-nodes.ts'
import { edgeAddresses, proxyUrls } from './cluster-module.ts'
import { createDiscovery, DISCOVERY, type DiscoveryConfig, discoverNodes, type Remembered } from './discovery.ts'

/** Which nodes are found, by which source, and at which address. Registry, resolver and nodes are tables of replies. */

type Reply = { readonly status?: number; readonly body?: unknown; readonly type?: string; readonly isStale?: boolean }

/** Replies by URL; an address without one refuses the connection. */
let replies: { [url: string]: Reply | Error }
let requests: { readonly url: string; readonly options: object }[]
beforeEach(() => {
  replies = {}
  requests = []
})

const http = {
  close: () => {},
  request: async (url: string, options: object = {}) => {
    requests.push({ url, options })
    const reply = replies[url] ?? new NodeHttpError('refused', 'connection refused')
    if (reply instanceof Error) throw reply
    const { status = 200, body = '', type = 'application/json', isStale } = reply
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return { status, type, body: text, milliseconds: 1, ...(isStale !== undefined && { isStale }) }
  },
}

function discovery(config: Partial<DiscoveryConfig> = {}) {
  const clock = turnableClock(NOW)
  const all: DiscoveryConfig = {
    ...{ registries: [], resolver: undefined, nodes: [], apiPort: 8_080, tcpPort: 7_777 },
    ...{ registryToken: 'reg', nodeToken: 'node' },
    ...config,
  }
  return Object.assign(createDiscovery(all, http, clock, createOwnTime(clock, 20)), { clock })
}

const topology = (nodes: readonly object[] = []) => ({
  ...{ epoch: 'e', global_version: 1, warming: false, heartbeat_timeout_secs: 30, zones: [], shards: {} },
  ...{ routers: [], bridges: [], segments: {}, conflicts: [], versions: {}, nodes },
})
const registered = (id: string, change: object = {}) => ({ id, zone: 'z1', shard: 's1', age_secs: 1, ...change })

const addresses = async (of: ReturnType<typeof discovery>, known: readonly Remembered[] = []) => {
  const found = await discoverNodes(of, known)
  return found.map(
    ({ address: { id, shard, zone, apiUrl, tcp }, by }) =>
      `${by} ${shard}/${id} ${zone} ${apiUrl} ${tcp ? `${tcp.host}:${tcp.port}` : '-'}`,
  )
}
const urls = () => requests.map(({ url }) => url)

test('nodes of the registry are found at their addresses', async () => {
  replies['http://a/topology'] = {
    body: topology([
      registered('n1', { api_url: 'http://h1:9000/path' }),
      registered('n2', { zone: 'z2', shard: 's2', api_url: 'https://[fe80::1]:9000' }),
      registered('n3'),
      registered('n4', { api_url: 'http://0.0.0.0:80' }),
      registered('n5', { api_url: 'http://[::]:80' }),
      registered('n6', { api_url: 'ftp://h6' }),
      registered('n7', { api_url: 'nonsense' }),
    ]),
  }
  const of = discovery({ registries: ['http://a'] })

  expect(await addresses(of)).toEqual([
    'registry s1/n1 z1 http://h1:9000 h1:7777',
    'registry s2/n2 z2 https://[fe80::1]:9000 fe80::1:7777',
    ...['n3', 'n4', 'n5', 'n6', 'n7'].map((id) => `registry s1/${id} z1  -`),
  ])
  expect(requests).toEqual([
    {
      url: 'http://a/topology',
      options: { timeoutMs: DISCOVERY.timeoutMs, bytesMax: NODE_HTTP.registryBytesMax, token: 'reg' },
    },
  ])
  expect(of.registry).toMatchObject({ address: 'http://a', isUp: true, error: '', since: undefined, at: NOW })
})

const registries = ['http://a', 'http://b', 'http://c']

test('the next registry is read when one does not respond, and stays the one that is read', async () => {
  replies['http://b/topology'] = { body: topology([registered('n1')]) }
  replies['http://c/topology'] = { body: topology([registered('n2')]) }
  const of = discovery({ registries })

  await discoverNodes(of, [])
  expect([of.registry.address, of.registry.isUp, urls()]).toEqual([
    ...['http://b', true],
    ['http://a/topology', 'http://b/topology'],
  ])
  requests = []
  await discoverNodes(of, [])
  expect(urls()).toEqual(['http://b/topology'])
  requests = []
  delete replies['http://b/topology']
  await discoverNodes(of, [])
  expect(urls()).toEqual(['http://b/topology', 'http://a/topology', 'http://c/topology'])
  expect(of.registry.address).toBe('http://c')
})

test('a registry that is cut off from its etcd is read only if no other one responds', async () => {
  replies['http://a/topology'] = { body: topology([registered('n1')]), isStale: true }
  replies['http://b/topology'] = { body: topology([registered('n2')]), isStale: true }
  const of = discovery({ registries })

  expect(await addresses(of)).toEqual(['registry s1/n1 z1  -'])
  expect(of.registry).toMatchObject({ address: 'http://a', isUp: true, error: '', at: NOW })
  replies['http://c/topology'] = { body: topology([registered('n3')]) }
  expect(await addresses(of)).toEqual(['registry s1/n3 z1  -'])
  expect(of.registry.address).toBe('http://c')
})

test('the nodes of a registry that is down stay known, with the first error and its begin', async () => {
  replies['http://a/topology'] = { body: topology([registered('n1')]) }
  const of = discovery({ registries })
  await discoverNodes(of, [])
  replies = { 'http://a/topology': { status: 503, body: 'starting' } }
  of.clock.advance(1_000)

  expect(await addresses(of)).toEqual(['registry s1/n1 z1  -'])
  const since = NOW + 1_000
  expect(of.registry).toMatchObject({
    address: 'http://a',
    isUp: false,
    error: 'answered 503: starting',
    since,
    at: NOW,
  })
  of.clock.advance(1_000)
  await discoverNodes(of, [])
  expect(of.registry.since).toBe(since)
})

test('at most 10,000 nodes are taken from a registry', async () => {
  const nodes = Array.from({ length: DISCOVERY.nodesMax + 1 }, (_, at) => registered(`n${at}`))
  replies['http://a/topology'] = { body: topology(nodes) }

  expect((await discoverNodes(discovery({ registries: ['http://a'] }), [])).length).toBe(10_000)
})

const remembered = (id: string, namedAt: number, change: Partial<Parameters<typeof observedNode>[1]> = {}) => ({
  ...{ observation: goneNode({ id }, { code: 'refused', message: 'connection refused' }, change), namedAt },
})

/** A responding node of s1 that lists members at these hosts. */
function reporter(id: string, hosts: { readonly [id: string]: string }): Remembered {
  const info = infoOf({ id })
  const nodes = Object.entries(hosts).map(([node, host]) => ({
    ...(info.nodes[0] as (typeof info.nodes)[number]),
    id: node,
    host,
  }))
  return { observation: observedNode({ id }, { info: { value: { ...info, nodes }, at: NOW } }), namedAt: NOW }
}

test.each([
  ['http', 80],
  ['https', 443],
])('members of a node at the default port of %s are at port %i, too', async (protocol, port) => {
  const known = reporter('n1', { n2: 'h2' })
  const address = { ...known.observation.address, apiUrl: `${protocol}://n1`, tcp: undefined }

  expect(await addresses(discovery(), [{ ...known, observation: { ...known.observation, address } }])).toContain(
    `member s1/n2 eu-1 ${protocol}://h2:${port} -`,
  )
})

const WEEK_MS = 7 * 86_400_000

test.each<[string, number, number | undefined, boolean]>([
  ['responded a minute ago', NOW, NOW - 60_000, true],
  ['responded longer ago', NOW, NOW - 60_000 - 1, false],
  ['never responded', NOW, undefined, false],
])('a node that its shard no longer lists, and that %s', async (_, namedAt, answeredAt, isKept) => {
  const known = [reporter('n1', { n1: '' }), remembered('n2', namedAt, { answeredAt })]

  expect((await addresses(discovery(), known)).some((each) => each.startsWith('memory s1/n2'))).toBe(isKept)
})

test.each<[string, number, boolean]>([
  ['a week ago', NOW - WEEK_MS, true],
  ['longer ago', NOW - WEEK_MS - 1, false],
])('a node of a silent shard that was last listed %s', async (_, namedAt, isKept) => {
  const known = [remembered('n2', namedAt, { answeredAt: undefined }), reporter('n1', {})]

  const found = await addresses(discovery(), known)

  expect(found.some((each) => each.startsWith('memory s1/n2'))).toBe(isKept)
})

describe('entrances', () => {
  /** Where clients enter: edge routers and proxies that respond. */

  const NOW = Date.parse('2026-11-22T12:00:00.000Z')

  function component(kind: FabricKind, id: string, ready: object | undefined, change: Partial<Polled> = {}): Polled {
    const about = { kind, id, zone: undefined, shard: undefined, apiUrl: `http://${id}:8080`, registered: undefined }
    const reported = { at: NOW, ready, version: '1', hops: undefined, counters: undefined, rates: undefined }
    return { ...newComponent(about, NOW), ...(ready && { reported: reported as Polled['reported'] }), ...change }
  }

  const fabricOf = (...components: readonly Polled[]) =>
    ({ components: new Map(components.map((each) => [each.key, each])) }) as unknown as Fabric

  const READY = { ready: true, reasons: [], tcp_port: 7_000 }
  const FAILED = { code: 'refused', message: 'connection refused', at: NOW }

  test('edges that are ready and tell their port are entrances of the wire protocol', () => {
    const { tcp_port: _, ...withoutPort } = READY
    const fabric = fabricOf(
      component('edge', 'e1', READY),
      component('edge', 'e2', withoutPort),
      component('edge', 'e3', undefined),
      component('edge', 'e4', READY, { failure: FAILED, missed: 3 }),
      component('proxy', 'p1', READY),
    )
    expect(edgeAddresses(fabric)).toEqual([
      { id: 'edge e1', shard: '', zone: '', apiUrl: 'http://e1:8080', tcp: { host: 'e1', port: 7_000 } },
    ])
  })

  test('proxies that are ready are entrances of HTTP', () => {
    const fabric = fabricOf(
      component('proxy', 'p1', READY),
      component('proxy', 'p2', undefined),
      component('edge', 'e1', READY),
    )
    expect(proxyUrls(fabric)).toEqual(['http://p1:8080'])
    expect(proxyUrls(fabricOf())).toEqual([])
  })
})

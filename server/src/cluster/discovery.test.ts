/** Which nodes are found, by which source, and at which address. Registry, resolver and nodes are tables of replies. */

import { turnableClock } from '@vacancy/shared'
import { beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { goneNode, infoOf, NOW, observedNode, statusOf } from '../testing/observed-nodes.ts'
import type { NodeAddress } from './cluster.ts'
import {
  createDiscovery,
  DISCOVERY,
  type DiscoveryConfig,
  discoverNodes,
  forgetPlace,
  isNamed,
  originOf,
  type Remembered,
  readAnswer,
  registriesOf,
} from './discovery.ts'
import { NODE_HTTP, NodeHttpError } from './node-http.ts'
import { emptyObservation } from './observation.ts'

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
  return Object.assign(createDiscovery(all, http, clock), { clock })
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

test.each([
  [undefined, []],
  ['', []],
  [' , ', []],
  ['http://a', ['http://a']],
  [' http://a/ ,http://b//', ['http://a', 'http://b/']],
])('%o are the registries %o', (text, expected) => {
  expect(registriesOf(text)).toEqual(expected)
})

test.each([
  ['n1:8080', 'http://n1:8080'],
  ['https://n1/x', 'https://n1'],
  ['[::1]:8080', 'http://[::1]:8080'],
])('the entry %s is the address %s', (entry, origin) => {
  expect(originOf(entry)).toBe(origin)
})

// Registry

test('before the first round nothing is known of the registry', () => {
  expect(discovery({ registries: ['http://a', 'http://b'] }).registry).toEqual({
    ...{ address: 'http://a', isUp: false, error: '', since: undefined, at: undefined, topology: undefined },
  })
  expect(discovery().registry.address).toBeNull()
})

test('without sources no node is found, and nothing is requested', async () => {
  expect(await addresses(discovery())).toEqual([])
  expect(requests).toEqual([])
})

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

test('a defect is not taken for a registry that is down', async () => {
  replies['http://a/topology'] = new TypeError('defect')

  await expect(discoverNodes(discovery({ registries }), [])).rejects.toThrow('defect')
})

test('at most 10,000 nodes are taken from a registry', async () => {
  const nodes = Array.from({ length: DISCOVERY.nodesMax + 1 }, (_, at) => registered(`n${at}`))
  replies['http://a/topology'] = { body: topology(nodes) }

  expect((await discoverNodes(discovery({ registries: ['http://a'] }), [])).length).toBe(10_000)
})

// Resolver

const RESOLVED = 'http://res/shards/s1/nodes/n1'

test('the resolver knows the addresses of nodes, and is requested once', async () => {
  replies['http://a/topology'] = { body: topology([registered('n1')]) }
  replies[RESOLVED] = { body: { host: 'h1' } }
  const of = discovery({ registries: ['http://a'], resolver: 'http://res' })

  expect(await addresses(of)).toEqual(['registry s1/n1 z1 http://h1:8080 h1:7777'])
  expect(await addresses(of)).toEqual(['registry s1/n1 z1 http://h1:8080 h1:7777'])
  expect(urls().filter((url) => url === RESOLVED)).toHaveLength(1)
  replies[RESOLVED] = { body: { host: '::2', port: 1, api_port: 2 } }
  forgetPlace(of, { shard: 's1', id: 'n1' } as NodeAddress)
  expect(await addresses(of)).toEqual(['registry s1/n1 z1 http://[::2]:2 ::2:1'])
})

test('a registered address counts, with the host and port for clients from the resolver', async () => {
  replies['http://a/topology'] = { body: topology([registered('n1', { api_url: 'http://h1:9' })]) }
  replies[RESOLVED] = { body: { host: 'h2', port: 5 } }

  expect(await addresses(discovery({ registries: ['http://a'], resolver: 'http://res' }))).toEqual([
    'registry s1/n1 z1 http://h1:9 h2:5',
  ])
})

test.each<[string, Reply | undefined]>([
  ['does not respond', undefined],
  ['does not know the node', { status: 404, body: { host: 'h1' } }],
  ['names no host', { body: {} }],
])('a resolver that %s is requested again', async (_, reply) => {
  replies['http://a/topology'] = { body: topology([registered('n1')]) }
  if (reply) replies[RESOLVED] = reply
  const of = discovery({ registries: ['http://a'], resolver: 'http://res' })

  expect(await addresses(of)).toEqual(['registry s1/n1 z1  -'])
  replies[RESOLVED] = { body: 'h1', type: 'text/plain' }
  expect(await addresses(of)).toEqual(['registry s1/n1 z1 http://h1:8080 h1:7777'])
})

test('names are encoded in the path of the resolver', async () => {
  replies['http://a/topology'] = { body: topology([registered('n/1', { shard: 's 1' })]) }
  replies['http://res/shards/s%201/nodes/n%2F1'] = { body: 'h1', type: 'text/plain' }

  expect(await addresses(discovery({ registries: ['http://a'], resolver: 'http://res' }))).toEqual([
    'registry s 1/n/1 z1 http://h1:8080 h1:7777',
  ])
  expect(requests[1]?.options).toEqual({ timeoutMs: DISCOVERY.timeoutMs })
})

// The configured list

const nodeInfo = (change: object = {}) => ({ leader_id: 'n1', shard_id: 's1', zone_id: 'z1', node_id: 'n1', ...change })

test('a clustered node of the list reports its id, and is identified once', async () => {
  replies['http://h1:8080/node-info'] = { body: nodeInfo() }
  const of = discovery({ nodes: ['h1:8080'] })

  expect(await addresses(of)).toEqual(['list s1/n1 z1 http://h1:8080 h1:7777'])
  expect(await addresses(of)).toEqual(['list s1/n1 z1 http://h1:8080 h1:7777'])
  expect(requests).toEqual([
    { url: 'http://h1:8080/node-info', options: { timeoutMs: DISCOVERY.timeoutMs, token: 'node' } },
  ])
})

test('the id of a standalone node is its address', async () => {
  replies['http://h1:8080/node-info'] = { status: 404 }
  replies['http://h1:8080/status'] = { body: statusOf({ mode: 'standalone', shard_id: 'alone' }) }

  expect(await addresses(discovery({ nodes: ['http://h1:8080'] }))).toEqual([
    'list alone/h1:8080  http://h1:8080 h1:7777',
  ])
  expect(requests[1]?.options).toEqual({ timeoutMs: DISCOVERY.timeoutMs, token: 'node' })
})

test.each<[string, { [url: string]: Reply }]>([
  ['does not respond', {}],
  ['refuses the token', { 'http://h1:8080/node-info': { status: 401 } }],
  ['reports nonsense', { 'http://h1:8080/node-info': { body: 'nonsense' } }],
  ['has no status', { 'http://h1:8080/node-info': { status: 404 } }],
  [
    'refuses its status',
    { 'http://h1:8080/node-info': { status: 404 }, 'http://h1:8080/status': { status: 403, body: statusOf({}) } },
  ],
  ['reports an invalid status', { 'http://h1:8080/node-info': { status: 404 }, 'http://h1:8080/status': { body: {} } }],
])('a node of the list that %s is shown by its address until it is identified', async (_, given) => {
  replies = given
  const of = discovery({ nodes: ['h1:8080'] })

  const [found] = await discoverNodes(of, [])

  expect(found?.address).toMatchObject({ id: 'h1:8080', shard: 'unknown', apiUrl: 'http://h1:8080' })
  expect(isNamed(found?.address as NodeAddress)).toBe(false)
  replies['http://h1:8080/node-info'] = { body: nodeInfo() }
  expect(await addresses(of)).toEqual(['list s1/n1 z1 http://h1:8080 h1:7777'])
})

const remembered = (id: string, namedAt: number, change: Partial<Parameters<typeof observedNode>[1]> = {}) => ({
  ...{ observation: goneNode({ id }, { code: 'refused', message: 'connection refused' }, change), namedAt },
})

test('a node of the list that does not respond keeps the name it had before', async () => {
  const of = discovery({ nodes: ['n1:8080', 'n9:8080'] })
  const unnamed = {
    observation: emptyObservation({
      id: 'n9:8080',
      shard: 'unknown',
      zone: '',
      apiUrl: 'http://n9:8080',
      tcp: undefined,
    }),
    namedAt: NOW,
  }

  expect(await addresses(of, [remembered('n2', NOW), remembered('n1', NOW), unnamed])).toEqual([
    'list s1/n1 eu-1 http://n1:8080 n1:7777',
    'list unknown/n9:8080  http://n9:8080 n9:7777',
    'memory s1/n2 eu-1 http://n2:8080 n2:7777',
  ])
})

test('a node that several sources list has the address of the list, and the registry as its source', async () => {
  replies['http://a/topology'] = { body: topology([registered('n1', { api_url: 'http://other:1' })]) }
  replies['http://h1:8080/node-info'] = { body: nodeInfo() }

  expect(await addresses(discovery({ registries: ['http://a'], nodes: ['h1:8080'] }))).toEqual([
    'registry s1/n1 z1 http://h1:8080 h1:7777',
  ])
})

// Members

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

test('members that a node lists are found at their hosts, with the ports of that node', async () => {
  const known = [reporter('n1', { n1: '', n2: 'h2', n3: '', n4: 'fe80::1' })]
  replies['http://res/shards/s1/nodes/n3'] = { body: { host: 'h3', port: 3, api_port: 4 } }

  expect(await addresses(discovery({ resolver: 'http://res' }), known)).toEqual([
    'member s1/n1 eu-1 http://n1:8080 n1:7777',
    'member s1/n2 eu-1 http://h2:8080 h2:7777',
    'member s1/n3 eu-1 http://h3:4 h3:3',
    'member s1/n4 eu-1 http://[fe80::1]:8080 fe80::1:7777',
  ])
})

test('a member without a host has none until another node lists it with one', async () => {
  expect(await addresses(discovery(), [reporter('n1', { n2: '' })])).toContain('member s1/n2 eu-1  -')
  expect(await addresses(discovery(), [reporter('n1', { n2: '' }), reporter('n3', { n2: 'h2' })])).toContain(
    'member s1/n2 eu-1 http://h2:8080 h2:7777',
  )
  expect(await addresses(discovery(), [reporter('n1', { n2: 'h1' }), reporter('n3', { n2: 'h2' })])).toContain(
    'member s1/n2 eu-1 http://h1:8080 h1:7777',
  )
})

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

test('an invalid id in a member list is skipped', async () => {
  const found = await addresses(discovery(), [reporter('n1', { 'n 2': 'h2', n3: 'h3' })])

  expect(found.filter((each) => each.startsWith('member'))).toEqual(['member s1/n3 eu-1 http://h3:8080 h3:7777'])
})

test('a member that the registry lists keeps the registry as its source', async () => {
  replies['http://a/topology'] = { body: topology([registered('n2', { api_url: 'http://h2:1' })]) }
  const found = await addresses(discovery({ registries: ['http://a'] }), [reporter('n1', { n1: '', n2: 'other' })])

  expect(found).toEqual(['registry s1/n2 z1 http://h2:1 h2:7777', 'member s1/n1 eu-1 http://n1:8080 n1:7777'])
})

test('the member list of a node that does not respond does not count', async () => {
  const { observation } = reporter('n1', { n2: 'h2' })
  const down = { ...observation, missed: 3, error: { code: 'refused', message: '', since: NOW } }

  expect(await addresses(discovery(), [{ observation: down, namedAt: NOW }])).toEqual([
    'memory s1/n1 eu-1 http://n1:8080 n1:7777',
  ])
})

// Memory

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

test('an address that was never identified is forgotten', async () => {
  const address = { id: 'h1:8080', shard: 'unknown', zone: '', apiUrl: 'http://h1:8080', tcp: undefined }
  const observation = { ...emptyObservation(address), answeredAt: NOW }

  expect(await addresses(discovery(), [{ observation, namedAt: NOW }])).toEqual([])
})

// Responses

const SCHEMA = z.object({ a: z.object({ b: z.number() }) })
const errorOf = (status: number, body: string) => {
  try {
    return readAnswer({ status, body }, SCHEMA)
  } catch (error) {
    return error instanceof NodeHttpError ? `${error.code}: ${error.message}` : error
  }
}

test('a response is read, or the error names what is wrong', () => {
  const token = 'it requires a token that the control plane does not have'

  expect(errorOf(200, '{"a":{"b":1}}')).toEqual({ a: { b: 1 } })
  expect(errorOf(401, '')).toBe(`not-allowed: answered 401: ${token}`)
  expect(errorOf(403, '')).toBe(`not-allowed: answered 403: ${token}`)
  expect(errorOf(404, 'x'.repeat(201))).toBe(`status: answered 404: ${'x'.repeat(200)}`)
  expect(errorOf(201, '{"a":{"b":1}}')).toBe('status: answered 201: {"a":{"b":1}}')
  expect(errorOf(200, '{')).toBe('garbage: the response is not JSON')
  expect(errorOf(200, '{"a":{"b":"x"}}')).toMatch(/^garbage: invalid response: a\.b: .*number/)
})

test('a long error is cut to 300 characters', () => {
  const schema = z.object({ a: z.string().refine(() => false, 'x'.repeat(400)) })

  expect(() => readAnswer({ status: 200, body: '{"a":""}' }, schema)).toThrow(
    expect.objectContaining({ message: `invalid response: a: ${'x'.repeat(279)}` }),
  )
})

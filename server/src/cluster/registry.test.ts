import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FabricComponent } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { goneNode, HASH, NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import type { RegistryState } from './discovery.ts'
import { createNodeHttp } from './node-http.ts'
import { codecsOf, fetchRegistryCodecs, queryResolver, servicesOf } from './registry.ts'

const SHARD = shardOf([
  observedNode({ id: 'n1' }),
  observedNode({ id: 'n2' }),
  goneNode({ id: 'n3' }, { code: 'refused', message: 'connection refused' }),
]).view

const registered = (id: string, more: object = {}) => ({ id, shard: 's1', zone: 'eu-1', age_secs: 2, ...more })
const registryWith = (more: object, state: Partial<RegistryState> = {}): RegistryState => ({
  ...{ address: 'http://r1', isUp: true, error: '', since: undefined, at: NOW },
  topology: { nodes: [], bridges: [], routers: [], conflicts: [], ...more } as unknown as RegistryState['topology'],
  ...state,
})
const componentOf = (kind: FabricComponent['kind'], id: string, more: Partial<FabricComponent>) =>
  ({
    ...{ key: `${kind} ${id}`, kind, id, zone: 'eu-1', shard: null, apiUrl: `http://${id}`, version: '0.1.0' },
    ...{ state: 'ready', level: 'ok', message: 'Ready', differences: [] },
    ...more,
  }) as unknown as FabricComponent

test('nodes of the registry are compared with what they report themselves', () => {
  const nodes = [
    registered('n1', { role: 'leader', version: '0.1.0' }),
    registered('n2', { role: 'learner', version: '0.0.9', age_secs: 7 }),
    registered('n9'),
  ]

  const { services } = servicesOf(registryWith({ nodes }), [SHARD], [])

  expect(
    services.map(({ id, role, heartbeatAgeSeconds, seen, difference }) => [
      id,
      role,
      heartbeatAgeSeconds,
      seen,
      difference,
    ]),
  ).toEqual([
    ['n1', 'leader', 2, true, ''],
    ['n2', 'learner', 7, true, 'reports learner, observed as follower; reports version 0.0.9, runs 0.1.0'],
    ['n9', null, 2, false, 'registered, but it does not respond to the control plane'],
    // Known from the member list of its shard.
    ['n3', 'unknown', null, false, 'not registered'],
  ])
})

test('without a response of a registry no node counts as not registered', () => {
  const unread = { address: null, isUp: false, at: undefined, topology: undefined, error: 'x' }

  const view = servicesOf(registryWith({}, unread), [SHARD], [])

  expect(view.services.map(({ id, seen, difference }) => [id, seen, difference])).toEqual([
    ['n1', true, ''],
    ['n2', true, ''],
    ['n3', false, ''],
  ])
  expect(view).toMatchObject({ address: null, up: false, at: null, error: 'no registry is configured', conflicts: [] })
  expect(servicesOf(registryWith({}, { isUp: false, error: 'refused' }), [], [])).toMatchObject({
    ...{ address: 'http://r1', up: false, at: '2026-11-22T12:00:00.000Z', error: 'refused' },
  })
})

test('bridges and routers have the age of their heartbeat; registries that need attention are listed apart', () => {
  const registry = registryWith({
    bridges: [registered('b1', { age_secs: 3 })],
    routers: [registered('z1', { age_secs: 4 })],
    conflicts: [{ segment: 'lisbon', owner_shard: 's1', claims: [{ shard: 's1' }, { shard: 's2' }] }],
  })
  const view = servicesOf(
    registry,
    [],
    [
      componentOf('bridge', 'b1', { shard: 's1' }),
      componentOf('zone-router', 'z1', { state: 'not-ready', differences: ['one', 'two'] }),
      componentOf('edge', 'e1', { zone: null, state: 'unregistered' }),
      componentOf('proxy', 'p1', { state: 'not-polled', message: 'Not polled: no address' }),
      componentOf('resolver', 'd1', {}),
      componentOf('registry', 'r1', { level: 'crit', message: 'the one that is read' }),
      componentOf('registry', 'r2', { level: 'crit', message: 'Unreachable' }),
      componentOf('registry', 'r3', { level: 'warn', message: 'Cut off' }),
      componentOf('registry', 'r4', {}),
      componentOf('registry', 'r5', { level: 'crit', apiUrl: null }),
    ],
  )

  expect(
    view.services.map(({ kind, id, zone, heartbeatAgeSeconds, seen, difference }) => [
      kind,
      id,
      zone,
      heartbeatAgeSeconds,
      seen,
      difference,
    ]),
  ).toEqual([
    ['bridge', 'b1', 'eu-1', 3, true, ''],
    ['router', 'z1', 'eu-1', 4, true, 'one; two'],
    ['edge', 'e1', '', null, true, ''],
    ['proxy', 'p1', 'eu-1', null, false, 'Not polled: no address'],
  ])
  expect(view.away).toEqual([
    { address: 'http://r2', message: 'Unreachable' },
    { address: 'http://r3', message: 'Cut off' },
  ])
  expect(view.conflicts).toEqual([{ segment: 'lisbon', owner: 's1', claims: ['s1', 's2'] }])
})

test('codec lists are compared with that of the registry, or else with the most common one', () => {
  const other = { rate_features: ['sauna'], hash: 2, hash_hex: '2'.repeat(16), ordered_hash: 'b'.repeat(64) }
  const nodes = [
    observedNode({ id: 'n1' }, { codecs: { value: other, at: NOW } }),
    observedNode({ id: 'n2' }),
    observedNode({ id: 'n3' }),
    observedNode({ id: 'n4' }, { codecs: undefined, status: undefined }),
  ]
  const shards = [shardOf(nodes).view]
  const seen = ({ codecs, source, nodes: all }: ReturnType<typeof codecsOf>) => [
    ...[codecs?.ordered_hash, source],
    ...all.map(({ node, equal }) => `${node} ${equal}`),
  ]

  expect(seen(codecsOf(shards, undefined, nodes, 'http://r1'))).toEqual([
    HASH,
    'node s1/n2',
    'n1 false',
    'n2 true',
    'n3 true',
    'n4 null',
  ])
  expect(seen(codecsOf(shards, other, nodes, 'http://r1'))).toEqual([
    other.ordered_hash,
    'registry http://r1',
    'n1 true',
    'n2 false',
    'n3 false',
    'n4 null',
  ])
  expect(codecsOf([], undefined, [], null)).toEqual({ codecs: null, source: '', nodes: [] })
})

test('a registry without a valid codec list and a resolver without an address are explained', async () => {
  const pages: Record<string, [status: number, type: string, body: string]> = {
    '/good/codecs': [200, 'application/json', '{"rate_features":["breakfast"]}'],
    '/bad/codecs': [200, 'application/json', '{"rate_features":["a","a"]}'],
    '/shards/s%2F1/nodes/n1': [200, 'application/json', '{"host":"h1","port":7777}'],
    '/routers/z1': [200, 'application/json', '{"nothing":1}'],
    '/bridges/b2': [503, 'text/plain', 'later'],
  }
  const server = createServer(({ url = '' }, response) => {
    const [status, type, body] = pages[url] ?? [404, 'text/plain', 'not here']
    response.writeHead(status, { 'content-type': type }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const http = createNodeHttp()
  const resolved = async (request: Parameters<typeof queryResolver>[2]) => {
    const { status, address, error } = await queryResolver(http, base, request)
    return [status, address, error]
  }

  expect((await fetchRegistryCodecs(http, `${base}/good`, undefined))?.rate_features).toEqual(['breakfast'])
  expect(await fetchRegistryCodecs(http, `${base}/bad`, undefined)).toBeUndefined()
  expect(await resolved({ kind: 'node', id: 'n1', shard: 's/1' })).toEqual([200, 'h1:7777', ''])
  expect(await resolved({ kind: 'router', id: 'z1' })).toEqual([200, null, 'the response contains no host'])
  expect(await resolved({ kind: 'bridge', id: 'b1' })).toEqual([404, null, 'unknown id'])
  expect(await resolved({ kind: 'bridge', id: 'b2' })).toEqual([503, null, 'answered 503'])
  await expect(queryResolver(http, undefined, { kind: 'router', id: 'z1' })).rejects.toMatchObject({
    code: 'no-resolver',
  })
  await expect(queryResolver(http, base, { kind: 'node', id: 'n1' })).rejects.toMatchObject({ code: 'shard-required' })
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  expect(await resolved({ kind: 'router', id: 'z1' })).toEqual([null, null, 'connection refused'])
  http.close()
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  includes,
  LEVELS,
  listenersOf,
  NODES_MAX,
  nodesOf,
  ofKind,
  planOf,
  publicAddress,
  resolverTable,
  SHARD,
  SHARDS_MAX,
  type Spec,
  shardName,
  shardPlan,
} from './plan.ts'

const SPEC: Spec = {
  level: 'full',
  shards: 2,
  zones: 2,
  nodesPerShard: 3,
  ha: false,
  etcdEndpoints: [],
  network: 77,
  portOffset: 0,
  isOneAddress: false,
}

const specs = fc
  .record({
    level: fc.constantFrom(...LEVELS),
    shards: fc.integer({ min: 1, max: SHARDS_MAX }),
    zones: fc.integer({ min: 1, max: SHARDS_MAX }),
    nodesPerShard: fc.integer({ min: 1, max: NODES_MAX }),
    ha: fc.boolean(),
    etcdEndpoints: fc.constantFrom([], ['http://etcd:2379']),
    network: fc.integer({ min: 1, max: 250 }),
    portOffset: fc.integer({ min: 0, max: 40_000 }),
    isOneAddress: fc.boolean(),
  })
  .map((spec) => ({ ...spec, zones: Math.min(spec.zones, spec.shards) }))

const at = (name: string, spec: Spec = SPEC) => {
  const component = planOf(spec).components.find((each) => each.name === name)
  if (component === undefined) throw new Error(`no ${name}`)
  return component
}

test('the default platform has 6 nodes, 2 bridges, 2 zone routers, an edge and a proxy', () => {
  expect(planOf(SPEC).components.map(({ name }) => name)).toEqual([
    ...['registry', 'resolver', 'node-0-0', 'node-0-1', 'node-0-2', 'node-1-0', 'node-1-1', 'node-1-2'],
    ...['bridge-0', 'bridge-1', 'router-zone-0', 'router-zone-1', 'router-edge', 'proxy'],
  ])
})

test('every process has an address of its own and the standard ports, and is published where existing set-ups expect it', () => {
  expect(at('node-1-2')).toMatchObject({
    zone: 'zone2',
    shard: 'shard2',
    main: { host: '127.77.2.3', port: 7777 },
    api: { host: '127.77.2.3', port: 8080 },
    quic: { host: '127.77.2.3', port: 17_777 },
  })
  expect(at('bridge-1').main).toEqual({ host: '127.78.2.1', port: 9000 })
  expect(at('router-zone-0').main).toEqual({ host: '127.79.1.1', port: 9000 })
  const ports = ['registry', 'resolver', 'node-1-2', 'bridge-1', 'router-zone-1', 'router-edge', 'proxy'].map(
    (name) => [name, at(name).published.map(({ port }) => port)],
  )
  expect(Object.fromEntries(ports)).toEqual({
    registry: [8081],
    resolver: [9090],
    'node-1-2': [7812, 8012],
    'bridge-1': [9002],
    'router-zone-1': [9102],
    'router-edge': [9200],
    proxy: [8777],
  })
})

test('with --ha there are two of each hop, on different addresses and ports', () => {
  const plan = planOf({ ...SPEC, ha: true })
  const ports = (['bridge', 'zone-router', 'edge-router', 'proxy'] as const).map((kind) =>
    ofKind(plan, kind).map((each) => `${each.name} ${publicAddress(each).port}`),
  )

  expect(ports).toEqual([
    ['bridge-0-0 9000', 'bridge-0-1 9001', 'bridge-1-0 9002', 'bridge-1-1 9003'],
    ['router-zone-0-0 9100', 'router-zone-0-1 9101', 'router-zone-1-0 9102', 'router-zone-1-1 9103'],
    ['router-edge-0 9200', 'router-edge-1 9201'],
    ['proxy-0 8777', 'proxy-1 8778'],
  ])
})

test('with --ha and etcd there are two registries, which all components are given', () => {
  const plan = planOf({ ...SPEC, ha: true, etcdEndpoints: ['http://etcd:2379'] })

  expect(ofKind(plan, 'registry').map((each) => `${each.name} ${publicAddress(each).port}`)).toEqual([
    'registry-0 8081',
    'registry-1 8082',
  ])
  expect(ofKind(planOf({ ...SPEC, etcdEndpoints: ['http://etcd:2379'] }), 'registry')).toHaveLength(1)
})

test('shard i is in zone i mod zones', () => {
  const { components } = planOf({ ...SPEC, shards: 5, zones: 2 })
  const zones = components.filter(({ kind }) => kind === 'bridge').map(({ shard, zone }) => `${shard} ${zone}`)

  expect(zones).toEqual(['shard1 zone1', 'shard2 zone2', 'shard3 zone1', 'shard4 zone2', 'shard5 zone1'])
})

test('on one address every process listens on its published port, and nothing is forwarded', () => {
  const spec = { ...SPEC, isOneAddress: true, portOffset: 1_000 }

  expect(at('node-1-2', spec)).toMatchObject({ main: { host: '127.0.0.1', port: 8_812 }, published: [] })
  expect(at('proxy', spec).main).toEqual({ host: '127.0.0.1', port: 9_777 })
})

test('no two listeners, names or addresses of any platform are the same', () => {
  fc.assert(
    fc.property(specs, (spec) => {
      const plan = planOf(spec)
      const listeners = listenersOf(plan).map(({ host, port }) => `${host}:${port}`)
      expect(new Set(listeners).size).toBe(listeners.length)
      for (const { port } of listenersOf(plan)) expect(port).toBeLessThan(65_536)
      for (const { host } of listenersOf(plan)) expect(host).toMatch(/^127(\.\d+){3}$/)
      expect(new Set(plan.components.map(({ name }) => name)).size).toBe(plan.components.length)
    }),
  )
})

test('a level has the processes of the levels before it', () => {
  fc.assert(
    fc.property(specs, (spec) => {
      const names = (level: Spec['level']) => planOf({ ...spec, level }).components.map(({ name }) => name)
      const own = names(spec.level)
      for (const level of LEVELS)
        if (includes(spec.level, level)) expect(own).toEqual(expect.arrayContaining(names(level)))
    }),
  )
})

test('the resolver knows each node, bridge and zone router, by bare host or with its ports', () => {
  expect(resolverTable(planOf(SPEC))).toContain('shards:\n  shard1:\n    node-0-0: "127.77.1.1"\n')
  expect(resolverTable(planOf(SPEC))).toContain('routers:\n  router-zone-0: "127.79.1.1"\n')
  const table = resolverTable(planOf({ ...SPEC, isOneAddress: true }))
  expect(table).toContain('node-0-0: { hostname: "127.0.0.1", port: 7800, api_port: 8000, quic_port: 17800 }')
  expect(table).toContain('bridges:\n  bridge-0: "127.0.0.1:9000"\n')
  expect(nodesOf(planOf(SPEC), shardName(1))).toHaveLength(3)
})

test('each node of npm start has an address of its own and the standard ports, at a later attempt also other ports', () => {
  const at = (attempt: number) => nodesOf(shardPlan({ block: 1, attempt, isOneAddress: false }), SHARD)[1]

  expect(at(0)).toMatchObject({
    main: { host: '127.0.1.2', port: 7777 },
    api: { host: '127.0.1.2', port: 8080 },
    quic: { host: '127.0.1.2', port: 17_777 },
  })
  // A program may listen on all addresses.
  expect(at(1)?.main).toEqual({ host: '127.0.2.2', port: 7877 })
})

test.each([true, false])(
  'no two listeners of npm start are the same at any attempt (one address: %s)',
  (isOneAddress) => {
    for (let attempt = 0; attempt < 20; attempt++) {
      const listeners = listenersOf(shardPlan({ block: 1, attempt, isOneAddress })).map(
        ({ host, port }) => `${host}:${port}`,
      )
      expect(new Set(listeners).size).toBe(4 * 3 + 2)
    }
  },
)

test('a majority of the voters of npm start has the snapshot, and one has not', () => {
  const voters = nodesOf(shardPlan({ block: 1, attempt: 0, isOneAddress: false }), SHARD).filter(
    (each) => !each.isLearner,
  )

  expect(voters.map(({ isEmpty }) => isEmpty)).toEqual([false, false, true])
})

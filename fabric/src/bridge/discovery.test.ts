import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { systemClock } from '@vacancy/shared'
import { openHttpCaller } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { eventually } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { openRegistryClient } from '../registry-client.ts'
import { openResolver } from '../resolve.ts'
import { startExistingRegistry } from '../testing/existing/registry.ts'
import { existingResolver, fakeNode, type NodeFace } from '../testing/existing.ts'
import { keepingLog, type Stub } from '../testing/http.ts'
import { type Discovery, type DiscoveryOptions, openDiscovery } from './discovery.ts'

/** A shard of fake nodes with an existing registry and resolver. */
async function shard(ids: readonly string[]) {
  const registry = await startExistingRegistry()
  const hosts = new Map<string, string>()
  const resolver = await existingResolver(hosts)
  const faces = new Map<string, NodeFace>()
  const servers = new Map<string, Stub>()
  for (const id of ids) {
    const leader = ids[0]
    const face: NodeFace = {
      health: id === leader ? 'active_leader' : 'active_follower',
      leader,
      shard: 's1',
      node: id,
      zone: 'z1',
      peers: ids,
      voters: undefined,
      lag: undefined,
      isSilent: false,
    }
    const server = await fakeNode(face)
    faces.set(id, face)
    servers.set(id, server)
    registry.register('node', id, 'z1', 's1')
    // Where it listens is the API port, too: an existing resolver can name only one.
    hosts.set(`/shards/s1/nodes/${id}`, JSON.stringify({ host: '127.0.0.1', port: 7_000, api_port: server.port }))
  }
  onTestFinished(async () => {
    await registry.close()
    for (const each of [resolver, ...servers.values()]) await each.stop()
  })
  return {
    registry,
    resolver,
    hosts,
    face: (id: string) => faces.get(id) as NodeFace,
    server: (id: string) => servers.get(id) as Stub,
    /** All nodes follow another leader. */
    elect(leader: string, without: readonly string[] = []) {
      for (const [id, face] of faces) {
        if (without.includes(id)) continue
        face.leader = leader
        face.health = id === leader ? 'active_leader' : 'active_follower'
      }
    },
  }
}

type World = Awaited<ReturnType<typeof shard>>

function open({ registry, resolver }: World, more: Partial<DiscoveryOptions> = {}) {
  const log = keepingLog()
  const client = openRegistryClient({ addr: registry.addr, clock: systemClock, log })
  const resolving = openResolver({ addr: resolver.addr, clock: systemClock, schedule: systemSchedule, log })
  const nodes = openHttpCaller({ name: 'nodes', log })
  const errors: string[] = []
  const rounds: string[] = []
  const discovery = openDiscovery({
    shard: 's1',
    zone: 'z1',
    registry: client,
    resolver: resolving,
    nodes,
    scheme: 'http',
    ports: { tcp: 7_777, api: 8_080 },
    intervalMs: 100,
    timeoutMs: 500,
    clock: systemClock,
    schedule: systemSchedule,
    log,
    onRound: (result) => rounds.push(result),
    onError: (step) => errors.push(step),
    ...more,
  })
  const stop = async () => {
    await discovery.stop()
    resolving.stop()
    client.close()
    nodes.close()
  }
  onTestFinished(stop)
  return { discovery, log, errors, rounds, stop }
}

const rolesOf = (discovery: Discovery) =>
  Object.fromEntries([...discovery.topology().nodes].map(([id, { role }]) => [id, role]))

const become = (discovery: Discovery, roles: object, timeout = 5_000) =>
  eventually(() => expect(rolesOf(discovery)).toEqual(roles), { timeout })

test('existing nodes without /cluster/info and /status are found through registry and resolver', async () => {
  const world = await shard(['a', 'b', 'c'])
  const { discovery } = open(world)

  await become(discovery, { a: 'leader', b: 'follower', c: 'follower' })

  expect(discovery.topology().leader).toBe('a')
  expect(discovery.topology().nodes.get('b')).toEqual({
    id: 'b',
    address: { host: '127.0.0.1', tcpPort: 7_000, apiPort: world.server('b').port },
    role: 'follower',
    health: 'active_follower',
  })
  expect(discovery.health()).toMatchObject({ isCached: false, fault: '' })
})

test('a node that only /peers names is probed in the second pass', async () => {
  const world = await shard(['a', 'b', 'c'])
  world.registry.expire('node', 'b')
  world.registry.expire('node', 'c')
  const { discovery, rounds } = open(world)

  await become(discovery, { a: 'leader', b: 'follower', c: 'follower' })

  expect(rounds[0]).toBe('ok')
})

test('paths that are not served are not requested in each round', async () => {
  const world = await shard(['a'])
  const { rounds } = open(world, { intervalMs: 10 })

  await eventually(() => expect(rounds.length).toBeGreaterThan(5))

  const requests = world.server('a').requests
  expect(requests.filter((url) => url === 'GET /cluster/info')).toHaveLength(1)
  expect(requests.filter((url) => url === 'GET /status')).toHaveLength(1)
  expect(requests.filter((url) => url === 'GET /healthz').length).toBeGreaterThan(4)
})

test('lag comes from /status and does not count as a change', async () => {
  const world = await shard(['a', 'b'])
  world.face('b').lag = 5
  const { discovery } = open(world, { intervalMs: 20 })
  await eventually(() => expect(discovery.topology().nodes.get('b')?.lag).toBe(5))
  let changes = 0
  discovery.onChange(() => {
    changes += 1
  })

  world.face('b').lag = 9

  await eventually(() => expect(discovery.topology().nodes.get('b')?.lag).toBe(9))
  expect(changes).toBe(0)
})

test('a new leader is seen at once after a look, whatever the interval', async () => {
  const world = await shard(['a', 'b', 'c'])
  const { discovery, rounds } = open(world, { intervalMs: 60_000 })
  await become(discovery, { a: 'leader', b: 'follower', c: 'follower' })
  // The second round follows what the registry named.
  await eventually(() => expect(rounds).toHaveLength(2))
  const leaders: (string | undefined)[] = []
  discovery.onChange(({ leader }) => leaders.push(leader))
  world.elect('b')

  discovery.look()

  await become(discovery, { a: 'follower', b: 'leader', c: 'follower' })
  expect(leaders).toEqual(['b'])
})

test('looks are at most each 100 ms, and never two rounds at once', async () => {
  const world = await shard(['a'])
  const { discovery, rounds } = open(world, { intervalMs: 60_000 })
  await become(discovery, { a: 'leader' })
  const startMs = performance.now()
  const timer = setInterval(() => discovery.look(), 1)
  onTestFinished(() => clearInterval(timer))

  await eventually(() => expect(rounds.length).toBeGreaterThanOrEqual(5))

  expect(performance.now() - startMs).toBeGreaterThan(290)
})

test('without a live leader or follower a round begins each 300 ms', async () => {
  const world = await shard(['a', 'b'])
  const { discovery, rounds } = open(world, { intervalMs: 60_000 })
  await become(discovery, { a: 'leader', b: 'follower' })
  const before = rounds.length

  discovery.setUrgent(true)

  await eventually(() => expect(rounds.length).toBeGreaterThan(before + 2), { timeout: 5_000 })
})

test('while there is no leader everything stays as it was', async () => {
  const world = await shard(['a', 'b', 'c'])
  const { discovery, rounds } = open(world, { intervalMs: 20 })
  await become(discovery, { a: 'leader', b: 'follower', c: 'follower' })
  // The leader resigns first: a round that is running meanwhile finds the same nodes as before, or no leader.
  world.face('a').leader = null
  await eventually(() => expect(rounds.at(-1)).toBe('no_leader'))
  const present = discovery.topology()

  await world.server('a').stop()
  for (const id of ['b', 'c']) world.face(id).leader = null
  await eventually(() => expect(discovery.health().fault).toBe('2 of 3 nodes answer and agree on no leader'))
  expect(discovery.topology()).toBe(present)
  world.elect('c', ['a'])

  await become(discovery, { c: 'leader', b: 'follower', a: 'other' })
  expect(discovery.topology().nodes.get('a')?.health).toBe('unreachable')
})

test('an isolated leader that only it believes in is not followed where voters are reported', async () => {
  const world = await shard(['a', 'b', 'c'])
  for (const id of ['a', 'b', 'c']) world.face(id).voters = ['a', 'b', 'c']
  const { discovery } = open(world, { intervalMs: 20 })
  await become(discovery, { a: 'leader', b: 'follower', c: 'follower' })

  world.elect('b', ['a'])

  await become(discovery, { a: 'other', b: 'leader', c: 'follower' })
})

test('a host of another shard or with another id is left out, counted, logged once, and resolved again', async () => {
  const world = await shard(['a', 'b', 'c'])
  world.face('b').shard = 's2'
  world.face('c').node = 'x'
  const { discovery, errors, log, rounds } = open(world, { intervalMs: 20 })

  await become(discovery, { a: 'leader' })
  await eventually(() => expect(rounds.length).toBeGreaterThan(4))

  expect(errors).toContain('identity')
  expect(log.lines.filter(({ text }) => text === 'the resolver named a wrong node')).toHaveLength(2)
  const lookUps = () => world.resolver.requests.filter((url) => url.endsWith('/b')).length
  await eventually(() => expect(lookUps()).toBeGreaterThan(1), { timeout: 5_000 })
})

test('a node that moves is found at its new address', async () => {
  const world = await shard(['a', 'b'])
  const { discovery } = open(world)
  await become(discovery, { a: 'leader', b: 'follower' })
  const moved = await fakeNode(world.face('b'))
  onTestFinished(moved.stop)
  world.hosts.set('/shards/s1/nodes/b', JSON.stringify({ host: '127.0.0.1', port: 7_001, api_port: moved.port }))

  await world.server('b').stop()

  await eventually(() => expect(discovery.topology().nodes.get('b')?.address.tcpPort).toBe(7_001), { timeout: 10_000 })
  await become(discovery, { a: 'leader', b: 'follower' })
})

test('a silent node delays a round by the timeout only, and is other', async () => {
  const world = await shard(['a', 'b', 'c'])
  const { discovery } = open(world, { timeoutMs: 100 })
  await become(discovery, { a: 'leader', b: 'follower', c: 'follower' })

  world.face('c').isSilent = true

  await become(discovery, { a: 'leader', b: 'follower', c: 'other' })
})

test('a bridge starts with the topology of its cache, without a registry', async () => {
  const cacheDir = mkdtempSync(path.join(tmpdir(), 'vacancy-topology-'))
  onTestFinished(() => rmSync(cacheDir, { recursive: true }))
  const world = await shard(['a', 'b'])
  const first = open(world, { cacheDir })
  await become(first.discovery, { a: 'leader', b: 'follower' })
  await first.stop()
  await world.registry.close()

  const { discovery } = open(world, { cacheDir })

  expect(rolesOf(discovery)).toEqual({ a: 'leader', b: 'follower' })
  expect(discovery.health().isCached).toBe(true)
  await eventually(() => expect(discovery.health()).toMatchObject({ isCached: false, fault: '' }), { timeout: 10_000 })
})

test('a shard of which no node is known yet is found when its nodes register', async () => {
  const world = await shard(['a'])
  world.registry.expire('node', 'a')
  const { discovery } = open(world)
  await eventually(() => expect(discovery.health().fault).toBe('no node of the shard is known'))

  world.registry.register('node', 'a', 'z1', 's1')

  await become(discovery, { a: 'leader' })
})

test('a bridge that lost its leader also asks the registry, where nodes may be new', async () => {
  const world = await shard(['a', 'b'])
  for (const id of ['a', 'b']) world.face(id).peers = undefined
  world.registry.expire('node', 'b')
  const { discovery } = open(world)
  await become(discovery, { a: 'leader' })

  world.registry.register('node', 'b', 'z1', 's1')
  world.elect('b', ['a'])
  await world.server('a').stop()

  await become(discovery, { b: 'leader', a: 'other' })
})

import { expect, test } from 'vitest'
import type { Connection } from './connection.ts'
import { startDiscovery, stopDiscovery } from './discovery.ts'
import { turnedWorld } from './testing/turned-world.ts'
import { until } from './testing/until.ts'
import { confirm, createTopology, nodeOpened, type ShardNode } from './topology.ts'

type Page = { health?: string; id?: string; leader?: string | null; shard?: string }

/** A shard whose nodes report what the test decides; undefined does not respond, text is not JSON. */
function start(pages: (Page | string | undefined)[], isAnswering = true) {
  const polled: string[] = []
  const held: (() => void)[] = []
  const world = {
    ...turnedWorld(),
    getText: async (url: URL, { answerMs, token }: { answerMs: number; token: string | undefined }) => {
      polled.push(`${url.host}${url.pathname} ${answerMs} ${token}`)
      if (!isAnswering) await new Promise<void>((resolve) => held.push(resolve))
      const page = pages[Number(url.hostname.slice(1))]
      if (page === undefined) throw new Error('no response')
      if (typeof page === 'string') return page
      const { health = 'active_follower', id = url.hostname, leader = null, shard = 's1' } = page
      return url.pathname === '/healthz'
        ? `${health}\n`
        : JSON.stringify({ node_id: id, leader_id: leader, shard_id: shard })
    },
  }
  const nodes = pages.map((_, n) => ({ address: { host: `n${n}`, port: 1 }, api: `http://n${n}` }))
  const topology = createTopology(world, nodes, 'followers')
  for (const node of topology.nodes) nodeOpened(topology, node, { onTheirWay: new Map() } as unknown as Connection)
  const discovery = startDiscovery(topology, { token: 'secret', tls: undefined })
  /** Polls, and waits for its end, which schedules the next one. */
  const poll = async (ms = 0) => {
    world.advance(ms)
    await until(() => !discovery.isLooking)
  }
  return {
    world,
    topology,
    discovery,
    polled,
    held,
    poll,
    leader: () => topology.nodes.indexOf(topology.leader as ShardNode),
  }
}

test.each<[string, (Page | string | undefined)[], number]>([
  ['that most of the nodes name', [{ leader: 'n1' }, { leader: 'n1', health: 'active_leader' }, { leader: 'n2' }], 1],
  ['also when the others do not respond', [undefined, { leader: 'n1', health: 'active_leader' }, '<html>'], 1],
  [
    'not the one that names itself alone',
    [{ leader: 'n0', health: 'active_leader' }, { leader: 'n1' }, { leader: 'n1' }],
    -1,
  ],
  ['not one that does not report that it leads', [{ leader: 'n1' }, { leader: 'n1' }, { leader: 'n1' }], -1],
  ['not one without votes', [{ health: 'active_leader' }, {}, {}], -1],
  ['not one of another shard', [{ leader: 'n1' }, { leader: 'n1', health: 'active_leader', shard: 's2' }, {}], -1],
])('the leader is the node %s', async (_, pages, leader) => {
  const shard = start(pages)
  await shard.poll()
  expect(shard.leader()).toBe(leader)
})

test('each node is polled for its health and its view, with the token and two seconds', async () => {
  const { polled, poll } = start([{}, {}])
  await poll()
  expect(polled.toSorted()).toEqual(
    ['n0', 'n1'].flatMap((host) => [`${host}/healthz 2000 secret`, `${host}/node-info 2000 secret`]),
  )
})

test('followers are known, and an unavailable node is avoided until a second after the next poll', async () => {
  const { topology, poll, world } = start([
    { health: 'active_follower' },
    { health: 'unavailable' },
    { health: 'other' },
  ])
  await poll()
  expect(topology.nodes.map(({ role }) => role)).toEqual(['follower', 'unknown', 'unknown'])
  expect(topology.nodes.map(({ staleUntilMs }) => staleUntilMs - world.clock.monotonicMs())[1]).toBe(3_000)
  expect(topology.nodes[0]?.staleUntilMs).toBe(0)
})

test('the shard is that of the first node that reports one; nodes without one belong to it', async () => {
  const { topology, poll } = start([{ shard: '' }, { shard: 's1' }, { shard: 's2' }, { shard: 's1' }])
  await poll()
  expect(topology.nodes.map(({ isForeign }) => isForeign)).toEqual([false, false, true, false])
})

test('it polls every two seconds, and does not outvote a leader that executes writes', async () => {
  const pages: Page[] = [{ leader: 'n0', health: 'active_leader' }, { leader: 'n0' }]
  const { topology, polled, poll, world, leader } = start(pages)
  confirm(topology, topology.nodes[1] as ShardNode)
  await poll()
  expect([leader(), world.waits()]).toEqual([1, [2_000]])
  await poll(1_999)
  expect(polled).toHaveLength(4)
  await poll(1)
  expect(polled).toHaveLength(8)
})

test('without a leader it polls at once, but at most every 0.1 seconds', async () => {
  const { topology, polled, poll, world } = start([{}])
  await poll()
  topology.onSearch()
  topology.onSearch()
  expect(world.waits()).toEqual([100])
  await poll(99)
  expect(polled).toHaveLength(2)
  await poll(1)
  expect(polled).toHaveLength(4)
  world.advance(500)
  topology.onSearch()
  expect(world.waits()).toEqual([0])
})

test('a search during a poll is followed by another poll, unless that found the leader', async () => {
  const { topology, held, world, discovery } = start([{}], false)
  world.advance(0)
  topology.onSearch()
  expect(world.waits()).toEqual([])
  for (const answer of held.splice(0)) answer()
  await until(() => !discovery.isLooking && world.waits().length > 0)
  expect(world.waits()).toEqual([100])

  const found = start([{ leader: 'n0', health: 'active_leader' }], false)
  found.world.advance(0)
  found.topology.onSearch()
  for (const answer of found.held.splice(0)) answer()
  await until(() => found.world.waits().length > 0)
  expect([found.leader(), found.world.waits()]).toEqual([0, [2_000]])
})

test('a stopped discovery polls no more, and learns nothing from a poll under way', async () => {
  const { topology, held, world, discovery, leader } = start([{ leader: 'n0', health: 'active_leader' }], false)
  world.advance(0)
  stopDiscovery(discovery)
  for (const answer of held.splice(0)) answer()
  await until(() => !discovery.isLooking)
  topology.onSearch()
  expect([leader(), world.waits()]).toEqual([-1, []])

  const idle = start([{}])
  stopDiscovery(idle.discovery)
  expect(idle.world.waits()).toEqual([])
})

test('nodes without an API are not polled; without any nothing is polled', async () => {
  const world = turnedWorld()
  const nodes = [{ address: { host: 'n0', port: 1 }, api: undefined }]
  const topology = createTopology(world, nodes, 'followers')
  startDiscovery(topology, { token: undefined, tls: undefined })
  topology.onSearch()
  expect(world.waits()).toEqual([])
})

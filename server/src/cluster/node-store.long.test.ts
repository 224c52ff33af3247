import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@vacancy/shared'
import type { NodeView } from '@vacancy/shared/contract'
import { onBothDatabases } from '@vacancy/testkit/databases'
import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import { openClusterWorld } from '../testing/cluster-world.ts'
import { startTestControlPlane } from '../testing/control-plane.ts'
import { type Simulated, startSimulated } from '../testing/simulated.ts'

/** An address without a listener. */
const AWAY = 'http://127.0.0.1:9'
const WEEK_MS = 7 * 86_400_000

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function openSim(shards = 1): Promise<Simulated> {
  const sim = await startSimulated({ nodes: 3 * shards, shards, zones: 1, seed: 5, learners: 0 })
  open.push(sim.close)
  return sim
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-known-'))
  open.push(async () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function openWorld(config: Parameters<typeof openClusterWorld>[0], folder: string, databaseUrl = '') {
  const world = await openClusterWorld(config, { folder, ...(databaseUrl !== '' && { databaseUrl }) })
  open.push(world.stop)
  return world
}

async function openPlane(registry: string, dataDir: string, clock = systemClock) {
  const plane = await startTestControlPlane({ dataDir, clock, config: { registry, resolver: registry } })
  let isStopped = false
  const stop = async () => {
    if (!isStopped) await plane.stop()
    isStopped = true
  }
  open.push(stop)
  return { ...plane, stop }
}

async function stopShard(sim: Simulated, shard: string): Promise<void> {
  const nodes = sim.shards.find(({ id }) => id === shard)?.nodes ?? []
  for (const { id } of nodes) await sim.act('stop', { shard, node: id })
}

onBothDatabases((newDatabase) => {
  test('after a restart without registry and nodes, nodes are shown as down, with time and role of their last response', async () => {
    const sim = await openSim()
    const [folder, databaseUrl] = [newFolder(), await newDatabase()]
    const openedAt = Date.now()
    const before = await openWorld({ registry: sim.registryUrl, resolver: sim.registryUrl }, folder, databaseUrl)
    await until('it is healthy', () => before.shard('s1').state === 'healthy')
    const leader = before.shard('s1').leader as string
    await before.stop()
    const stoppedAt = Date.now()
    await stopShard(sim, 's1')

    const after = await openWorld({ registry: AWAY }, folder, databaseUrl)
    await until('all are down', () => after.shard('s1').nodes.every(({ state }) => state === 'unreachable'))

    const { nodes, state, zone } = after.shard('s1')
    expect(nodes.map(({ id, freshness }) => [id, freshness])).toEqual([
      ['n1', 'gone'],
      ['n2', 'gone'],
      ['n3', 'gone'],
    ])
    expect([state, zone]).toEqual(['unknown', 'zone-1'])
    for (const node of nodes) {
      const role = node.id === leader ? 'leader' : 'follower'
      expect(node.message).toBe(`Unreachable: connection refused; ${role} when it was last seen`)
      expect(Date.parse(node.answeredAt as string)).toBeGreaterThanOrEqual(openedAt)
      expect(Date.parse(node.answeredAt as string)).toBeLessThanOrEqual(stoppedAt)
    }
  })
})

test('without the registry, nodes are polled at their last addresses and stay healthy', async () => {
  const sim = await openSim()
  const folder = newFolder()
  const before = await openWorld({ registry: sim.registryUrl, resolver: sim.registryUrl }, folder)
  await until('it is healthy', () => before.shard('s1').state === 'healthy')
  await before.stop()

  const after = await openWorld({ registry: AWAY }, folder)

  await until('it is healthy again', () => after.shard('s1').state === 'healthy')
  expect(after.collector.discovery.registry.isUp).toBe(false)
})

test('a node that is not listed and does not respond can be forgotten, and stays forgotten', async () => {
  const sim = await openSim(2)
  const dataDir = newFolder()
  const plane = await openPlane(sim.registryUrl, dataDir)
  const admin = await plane.signIn('admin')
  const nodesOf = async (shard: string): Promise<NodeView[]> =>
    (await admin.call('GET', `/api/v1/shards/${shard}`)).body.nodes ?? []
  await until('both are polled', async () => (await nodesOf('s1')).length === 3 && (await nodesOf('s2')).length === 3)
  const path = (shard: string, node: string) => `/api/v1/shards/${shard}/nodes/${node}`

  const named = await admin.call('DELETE', path('s1', 'n1'))
  expect(named).toMatchObject({ status: 409, body: { code: 'node-named', by: 'registry' } })
  const follower = sim.shards[0]?.nodes.find(({ id }) => id !== sim.shards[0]?.leader)?.id as string
  await sim.act('stop', { shard: 's1', node: follower })
  const member = await until('only its shard lists it', async () => {
    const answer = await admin.call('DELETE', path('s1', follower))
    return answer.body.by === 'member' && answer
  })
  expect([member.status, member.body.hint]).toEqual([409, expect.stringContaining('Demote')])

  await stopShard(sim, 's2')
  await until('no source lists it', async () => (await admin.call('DELETE', path('s2', 'n3'))).status === 204)

  expect((await nodesOf('s2')).map(({ id }) => id)).toEqual(['n1', 'n2'])
  expect((await admin.call('DELETE', path('s2', 'n3'))).status).toBe(404)
  const { entries } = (await admin.call('GET', '/api/v1/audit?action=node.forget')).body
  expect(entries).toMatchObject([{ target: 's2/n3', result: 'done' }])
  await plane.stop()
  const again = await openPlane(sim.registryUrl, dataDir)
  const viewer = await again.signIn('viewer')
  const nodes = await until('s2 is known', async () => {
    const { status, body } = await viewer.call('GET', '/api/v1/shards/s2')
    return status === 200 && body.nodes
  })
  expect(nodes.map(({ id }: NodeView) => id)).toEqual(['n1', 'n2'])
})

test('a forgotten node that registers again is known and stored again', async () => {
  const sim = await openSim(2)
  const dataDir = newFolder()
  const plane = await openPlane(sim.registryUrl, dataDir)
  const admin = await plane.signIn('admin')
  await until(
    'both are polled',
    async () => (await admin.call('GET', '/api/v1/summary')).body.counts.nodesAnswering === 6,
  )
  await stopShard(sim, 's2')
  await until('it is forgotten', async () => {
    return (await admin.call('DELETE', '/api/v1/shards/s2/nodes/n1')).status === 204
  })

  await sim.act('start', { shard: 's2', node: 'n1' })
  await until('it is live', async () => {
    return (await admin.call('GET', '/api/v1/shards/s2/nodes/n1')).body.node?.freshness === 'live'
  })
  await sim.act('stop', { shard: 's2', node: 'n1' })
  await plane.stop()

  const again = await openPlane(AWAY, dataDir)
  const viewer = await again.signIn('viewer')
  const nodes = await until('s2 is shown', async () => {
    const { status, body } = await viewer.call('GET', '/api/v1/shards/s2')
    return status === 200 && body.nodes
  })
  expect(nodes.map(({ id }: NodeView) => id)).toEqual(['n1', 'n2', 'n3'])
})

test('a node that was not listed for a week and does not respond is forgotten automatically', async () => {
  const sim = await openSim(2)
  const dataDir = newFolder()
  const plane = await openPlane(sim.registryUrl, dataDir)
  const viewer = await plane.signIn('viewer')
  await until(
    'both are polled',
    async () => (await viewer.call('GET', '/api/v1/summary')).body.counts.nodesAnswering === 6,
  )
  await plane.stop()
  await stopShard(sim, 's2')
  const later = (ms: number) => ({ ...systemClock, wallMs: () => systemClock.wallMs() + ms })
  const shardsAfter = async (ms: number) => {
    const next = await openPlane(sim.registryUrl, dataDir, later(ms))
    const caller = await next.signIn('viewer')
    const ids = await until('s1 is shown', async () => {
      const { body } = await caller.call('GET', '/api/v1/shards')
      const shown = body.shards.map(({ id }: { id: string }) => id)
      return shown.includes('s1') && shown
    })
    await next.stop()
    return ids
  }

  expect(await shardsAfter(WEEK_MS - 3_600_000)).toEqual(['s1', 's2'])
  expect(await shardsAfter(WEEK_MS + 3_600_000)).toEqual(['s1'])
})

test('a node that left the configured list is dropped; one that is down stays in its shard', async () => {
  const sim = await openSim()
  const folder = newFolder()
  const address = (id: string) => `http://127.0.0.1:${sim.node('s1', id).port}`
  const nodes = ['n1', 'n2', 'n3'].map(address)
  const before = await openWorld({ nodes }, folder)
  await until('it is healthy', () => before.shard('s1').state === 'healthy')
  await before.stop()
  await stopShard(sim, 's1')

  const after = await openWorld({ nodes: nodes.slice(0, 2) }, folder)

  await until('the node that is down is shown', () => after.shard('s1').nodes.length > 0)
  expect(after.cluster.shards().map(({ id, nodes: known }) => [id, known.map((node) => node.id)])).toEqual([
    ['s1', ['n1', 'n2']],
  ])
})

test('when a different node responds at an address, the previous one is down', async () => {
  const sim = await openSim()
  const folder = newFolder()
  const before = await openWorld({ registry: sim.registryUrl, resolver: sim.registryUrl }, folder)
  await until('it is healthy', () => before.shard('s1').state === 'healthy')
  await before.stop()
  const database = await openDatabase<Tables>(join(folder, 'state.sqlite'))
  const { api_url } = await database
    .selectFrom('known_nodes')
    .selectAll()
    .where('id', '=', 'n2')
    .executeTakeFirstOrThrow()
  await database.updateTable('known_nodes').set({ api_url }).where('id', '=', 'n3').execute()
  await database.destroy()

  const after = await openWorld({ registry: AWAY }, folder)

  const node = await until('n3 is down', () =>
    after.shard('s1').nodes.find(({ id, state }) => id === 'n3' && state === 'not-answering'),
  )
  expect(node.message).toContain('Not answering: s1/n2 answers at the address of s1/n3; ')
  expect(node).toMatchObject({ freshness: 'gone', health: null, error: { code: 'other-node' } })
  await until('the others are live', () => after.shard('s1').votersUp === 2)
})

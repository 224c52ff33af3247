import { connect } from '@vacancy/client'
import { systemClock } from '@vacancy/shared'
import { statusBody } from '@vacancy/shared/contract'
import { ADMIN_TOKEN } from '@vacancy/testkit/shard'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeProbeClients, createProbeClients, probe } from '../probes/probe.ts'
import { type ClusterWorld, openClusterWorld } from '../testing/cluster-world.ts'
import { startNode, startShard, type TestShard } from '../testing/nodes.ts'
import type { NodeAddress } from './cluster.ts'

let shard: TestShard
let world: ClusterWorld

beforeAll(async () => {
  shard = await startShard()
  const { registryUrl: registry, resolverUrl: resolver } = shard
  world = await openClusterWorld({ registry, resolver, tokens: { admin: ADMIN_TOKEN } })
}, 240_000)

afterAll(async () => {
  await world?.close()
  await shard?.close()
})

const seen = () => world.shard('s1')
const settled = () =>
  seen().state === 'healthy' && seen().nodes.every(({ lagEntries }) => lagEntries === null || lagEntries === 0)

/** Starts it once the shard runs no other change, and waits for its end. */
async function operate(kind: 'transfer' | 'promote' | 'demote', node: string) {
  const { id } = await until(`${kind} ${node} can be started`, () => world.start({ kind, shard: 's1', node }))
  return await world.ended(id)
}

test('transfer, promote and demote of a real shard of three voters and a learner end as done', async () => {
  await until('the shard is healthy', () => settled() && seen().nodes.length === 4)
  expect(seen()).toMatchObject({ mode: 'clustered', voters: 3, spare: 1 })
  const { leader } = seen()
  const target = seen().nodes.find(({ voter, id }) => voter && id !== leader)?.id as string
  const learner = seen().nodes.find(({ voter }) => voter === false)?.id as string

  const transferred = await operate('transfer', target)
  await until('the shard is healthy', settled)
  const promoted = await operate('promote', learner)
  await until('four vote', () => seen().voters === 4 && settled())
  const demoted = await operate('demote', learner)
  await until('three vote', () => seen().voters === 3 && settled())

  expect(transferred).toMatchObject({ state: 'done', answer: '202 transfer in progress', node: target })
  expect(seen()).toMatchObject({ leader: target })
  expect(promoted).toMatchObject({ state: 'done', answer: '202 add in progress', node: learner })
  expect(demoted).toMatchObject({ state: 'done', answer: '202 remove in progress', node: learner })
  await until('the change of the leader is an event', async () => {
    const events = await world.database.selectFrom('cluster_events').select('kind').execute()
    return events.some(({ kind }) => kind === 'leader')
  })
}, 180_000)

test('state, data, metrics and configuration of real nodes are read', async () => {
  await until('the metrics of the nodes were read twice', () =>
    seen().nodes.every(({ rates, memory }) => rates.queries !== null && memory !== null),
  )

  for (const node of seen().nodes) {
    expect(node).toMatchObject({
      state: 'healthy',
      version: expect.any(String),
      cores: expect.any(Object),
      orderedHash: expect.any(String),
    })
  }
  expect(seen()).toMatchObject({ electionTimeoutMs: 800, missing: [] })
})

test('a probe of each node is answered: its hold is committed at the leader, and leaves nothing', async () => {
  const clients = createProbeClients({ connect, clock: systemClock, token: ADMIN_TOKEN })
  const applied = () => Math.max(...seen().nodes.map(({ appliedIndex }) => appliedIndex ?? 0))
  try {
    await until('the shard is healthy', settled)
    const { leader } = seen()
    const before = applied()
    const results = await Promise.all(
      world.cluster.addresses('s1').map(async (node) => {
        const of = { key: node.id, shard: 's1', through: 'node', id: node.id, segment: 'tyrol' } as const
        return [node.id, await probe(clients, { ...of, address: node.tcp as NonNullable<typeof node.tcp> })] as const
      }),
    )

    for (const [id, { search, hold }] of results) {
      expect([id, search.kind, hold?.kind]).toEqual([id, 'answered', id === leader ? 'answered' : 'elsewhere'])
    }
    await until('hold and release are two entries at least', () => applied() >= before + 2)
    await until('all nodes have applied them', settled)
    const { body } = await world.cluster.request(world.cluster.addresses('s1')[0] as NodeAddress, '/status', {
      as: 'admin',
    })
    expect(statusBody.parse(JSON.parse(body)).stays).toMatchObject({ stays: 0, held: 0 })
  } finally {
    await closeProbeClients(clients)
  }
})

test('a shard that waits for its founding voters is known from the registry alone, with what it waits for', async () => {
  const waiting = await startShard({ started: [], nodes: ['n1', 'n2', 'n3'] })
  const { registryUrl: registry, resolverUrl: resolver } = waiting
  const own = await openClusterWorld({ registry, resolver, tokens: { admin: ADMIN_TOKEN } })
  try {
    waiting.start('n1')
    const forming = await until('it forms', () => own.cluster.shards().find(({ state }) => state === 'forming'))
    const [node] = forming.nodes
    const named = own.cluster.shards().length

    for (const id of ['n2', 'n3']) waiting.start(id)
    await until('it is healthy', () => own.shard('s1').state === 'healthy')

    expect(forming).toMatchObject({
      id: 's1',
      zone: 'eu-1',
      leader: null,
      message: 'Forming: waiting for its founding voters',
    })
    expect(forming.waitsFor).toMatch(/n2|n3|of 3/)
    expect(node).toMatchObject({ id: 'n1', role: 'unknown', state: 'unavailable', health: 'unavailable' })
    expect([named, forming.nodes.length]).toEqual([1, 1])
  } finally {
    await own.close()
    await waiting.close()
  }
}, 240_000)

test('a standalone node of a configured list is a shard without copies', async () => {
  const node = await startNode()
  const alone = await openClusterWorld({ nodes: [`${node.host}:8080`] })
  try {
    const found = await until('it is observed', () =>
      alone.cluster.shards().find(({ state }) => state === 'standalone'),
    )

    expect(found).toMatchObject({ mode: 'standalone', voters: 0, spare: null, message: 'Standalone, no copies' })
    expect(found.nodes).toMatchObject([{ role: 'standalone', state: 'healthy', voter: null, packages: 0 }])
    expect(alone.cluster.addresses(found.id)[0]?.tcp).toEqual({ host: node.host, port: node.tcpPort })
  } finally {
    await alone.close()
    await node.close()
  }
})

import { onBothDatabases } from '@vacancy/testkit/databases'
import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { CALLER, type ClusterWorld, openClusterWorld } from '../testing/cluster-world.ts'
import { type Simulated, startSimulated } from '../testing/simulated.ts'
import { planOperation, startOperation } from './operation-start.ts'
import { listOperations } from './operations.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

onBothDatabases((newDatabase) => {
  async function openWorld(): Promise<{ world: ClusterWorld; sim: Simulated }> {
    const sim = await startSimulated({ nodes: 6, shards: 2, zones: 1, seed: 5, learners: 0 })
    open.push(sim)
    const databaseUrl = await newDatabase()
    const world = await openClusterWorld({ registry: sim.registryUrl }, databaseUrl === '' ? {} : { databaseUrl })
    open.push(world)
    await until('all nodes are healthy', () => {
      const nodes = world.cluster.shards().flatMap((shard) => shard.nodes)
      return nodes.length === 6 && nodes.every(({ state }) => state === 'healthy')
    })
    return { world, sim }
  }
  const targetOf = (world: ClusterWorld, shard: string) =>
    world.shard(shard).nodes.find(({ id }) => id !== world.shard(shard).leader)?.id as string
  const transfer = async (world: ClusterWorld, shard: string) =>
    await world.ended((await world.start({ kind: 'transfer', shard, node: targetOf(world, shard) })).id)

  test('operations are stored and listed in pages, newest first', async () => {
    const { world } = await openWorld()
    const done = [await transfer(world, 's1'), await transfer(world, 's2')]

    const first = await listOperations(world.operations, { limit: 1 })
    const second = await listOperations(world.operations, { limit: 1, cursor: first.next as string })
    const ofShard = await listOperations(world.operations, { limit: 10, shard: 's1', state: 'ended' })

    expect(done.map(({ state }) => state)).toEqual(['done', 'done'])
    expect([...first.operations, ...second.operations].map(({ id }) => id)).toEqual([done[1]?.id, done[0]?.id])
    expect(second.next).toBeNull()
    expect(ofShard.operations.map(({ id }) => id)).toEqual([done[0]?.id])
    expect(await listOperations(world.operations, { limit: 10, state: 'running' })).toEqual({
      operations: [],
      next: null,
    })
  })

  test('of two concurrent starts one runs, and the other is refused with its title', async () => {
    const { world, sim } = await openWorld()
    await sim.act('never', { shard: 's1' })
    const request = { kind: 'transfer', shard: 's1', node: targetOf(world, 's1') } as const
    const plans = [
      await planOperation(world.operations, request, CALLER),
      await planOperation(world.operations, request, CALLER),
    ]

    const results = await Promise.allSettled(
      plans.map(({ id }) =>
        startOperation(
          world.operations,
          { plan: id, reason: 'both at once, please', confirm: 's1', key: undefined },
          CALLER,
        ),
      ),
    )

    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const refused = results.find((result) => result.status === 'rejected')
    expect(refused?.reason).toMatchObject({ status: 409, code: 'shard-busy' })
    await until('one was sent', () => sim.shards[0]?.requests.length === 1)
  })

  test('events of a shard are stored and read back', async () => {
    const { world, sim } = await openWorld()
    const target = targetOf(world, 's1')
    await sim.act('lead', { shard: 's1', node: target })
    await until('the new leader is observed', () => world.shard('s1').leader === target)

    const found = await until('it is an event', async () => {
      const rows = await world.database.selectFrom('cluster_events').selectAll().where('kind', '=', 'leader').execute()
      return rows.length > 0 && rows
    })

    expect(found).toMatchObject([{ shard: 's1', node: target }])
  })

  test.each(['nonsense', '12', 'x.y'])('cursor %o is refused', async (cursor) => {
    const { world } = await openWorld()

    await expect(listOperations(world.operations, { limit: 1, cursor })).rejects.toMatchObject({
      status: 400,
      code: 'invalid-cursor',
    })
  })
})

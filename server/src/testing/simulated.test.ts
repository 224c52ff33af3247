import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { type ClusterWorld, openClusterWorld } from './cluster-world.ts'
import { type Simulated, startSimulated } from './simulated.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

const PLAN = { nodes: 6, shards: 2, zones: 2, seed: 11, learners: 0 }

async function openSim(): Promise<Simulated> {
  const sim = await startSimulated(PLAN)
  open.push(sim)
  return sim
}

test('the same seed gives the same cluster', async () => {
  const pictureOf = (sim: Simulated) =>
    sim.shards.map(({ id, zone, leader, term, packages, nodes }) => ({
      id,
      zone,
      leader,
      term,
      packages,
      nodes: nodes.map((node) => [node.id, node.isVoter, node.memoryBytes]),
    }))

  expect(pictureOf(await openSim())).toEqual(pictureOf(await openSim()))
})

const hasNode = (world: ClusterWorld, state: string) =>
  world.cluster.shards().some(({ nodes }) => nodes.some((node) => node.state === state))
const hasShard = (world: ClusterWorld, state: string) => world.cluster.shards().some((shard) => shard.state === state)

const SHOWS: readonly (readonly [scenario: string, shows: (world: ClusterWorld) => boolean])[] = [
  ['lag', (world) => hasNode(world, 'far-behind') && hasShard(world, 'attention')],
  ['no-leader', (world) => hasShard(world, 'no-leader')],
  ['quorum-lost', (world) => hasShard(world, 'quorum-lost') && hasNode(world, 'unreachable')],
  ['split', (world) => hasShard(world, 'disagree') && hasNode(world, 'conflicting-leader')],
  ['flap', (world) => hasShard(world, 'degraded-last')],
  ['partial', (world) => hasNode(world, 'not-answering')],
  ['codec-mismatch', (world) => hasNode(world, 'different-data')],
  ['divergence', (world) => hasNode(world, 'different-data')],
  ['cores-changed', (world) => hasNode(world, 'cores-changed')],
]

test.each(SHOWS)('scenario %s is detected', async (scenario, shows) => {
  const sim = await openSim()
  const world = await openClusterWorld({ registry: sim.registryUrl, resolver: sim.registryUrl })
  open.push(world)
  await until(
    'both shards are healthy',
    () => world.cluster.shards().filter(({ state }) => state === 'healthy').length === 2,
  )

  await sim.scenario(scenario)

  expect(await until(`${scenario} is detected`, () => shows(world))).toBe(true)
})

import { until } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { type ClusterWorld, openClusterWorld } from './cluster-world.ts'
import { type Simulated, startSimulated } from './simulated.ts'

const PLAN = { nodes: 6, shards: 2, zones: 2, seed: 11, learners: 0 }

async function openSim(whenFinished: typeof onTestFinished = onTestFinished): Promise<Simulated> {
  const sim = await startSimulated(PLAN)
  whenFinished(() => sim.close())
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
  ['oversold', (world) => world.cluster.summary().attention.some(({ id }) => id === '9:oversold:s1')],
  ['cores-changed', (world) => hasNode(world, 'cores-changed')],
]

// Each waits for its own cluster, so they wait at the same time.
test.concurrent.for(SHOWS)('scenario %s is detected', async ([scenario, shows], { onTestFinished, expect }) => {
  const sim = await openSim(onTestFinished)
  const world = await openClusterWorld({ registry: sim.registryUrl, resolver: sim.registryUrl })
  onTestFinished(() => world.close())
  await until(
    'both shards are healthy',
    () => world.cluster.shards().filter(({ state }) => state === 'healthy').length === 2,
  )

  await sim.scenario(scenario)

  expect(await until(`${scenario} is detected`, () => shows(world))).toBe(true)
})

import { createRandom, tries } from '@vacancy/testkit/random'
import { ADMIN_TOKEN, infoOf, postText } from '@vacancy/testkit/shard'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CALLER, type ClusterWorld, openClusterWorld } from '../testing/cluster-world.ts'
import { startShard, type TestShard } from '../testing/nodes.ts'
import { planOperation, startOperation } from './operation-start.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
/** Between the transfer that the plan does not know of and the confirmation of the plan. */
const MOVED_BEFORE_MS = 1_000

let shard: TestShard
let world: ClusterWorld

beforeAll(async () => {
  shard = await startShard({ nodes: ['n1', 'n2', 'n3'] })
  const { registryUrl: registry, resolverUrl: resolver } = shard
  world = await openClusterWorld({ registry, resolver, tokens: { admin: ADMIN_TOKEN } })
}, 240_000)

afterAll(async () => {
  await world?.close()
  await shard?.close()
})

/** The control plane sees what the nodes say of themselves. */
async function settled() {
  const leader = await shard.leader()
  const { term } = await infoOf(leader)
  const seen = () => world.shard('s1')
  await until('the control plane has read it', () => {
    const { leader: id, term: known, state, nodes } = seen()
    return state === 'healthy' && id === leader.id && known === term && nodes.every(({ lagEntries }) => !lagEntries)
  })
  return { leader, term }
}

/** What became of a plan: the code of its refusal, or the end of its operation. */
async function execute(plan: string): Promise<string> {
  try {
    const { id } = await startOperation(
      world.operations,
      { plan, reason: 'because of the test', confirm: 's1', key: undefined },
      CALLER,
    )
    return (await world.ended(id)).state
  } catch (error) {
    return (error as { readonly code?: string }).code ?? String(error)
  }
}

test(`a plan is never executed after the leader moved, ${SEED}`, async () => {
  const random = createRandom(SEED)
  const outcomes = new Map<string, number>()
  for (let round = 0; round < tries(40); round++) {
    const { leader, term } = await settled()
    const [target, other] = shard.nodes().filter(({ id }) => id !== leader.id)
    if (target === undefined || other === undefined) throw new Error('three nodes run')
    const plan = await planOperation(world.operations, { kind: 'transfer', shard: 's1', node: target.id }, CALLER)
    expect(plan.basis).toMatchObject({ leader: leader.id, term })

    const [status] = await postText(leader, '/cluster/transfer-leader', { target_node_id: other.id })
    expect(status).toBe(202)
    await new Promise((resolve) => setTimeout(resolve, random.below(MOVED_BEFORE_MS)))
    const outcome = await execute(plan.id)

    const after = await settled()
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    // Done is right only in the term that was planned for: there was one change of leader, this one.
    const isOfItsTerm = after.leader.id === target.id && after.term === term + 1
    expect([round, outcome, outcome !== 'done' || isOfItsTerm]).toEqual([round, outcome, true])
    if (outcome !== 'done') expect([round, after.leader.id]).toEqual([round, other.id])
  }
  expect([...outcomes.keys()]).toContain('plan-out-of-date')
}, 900_000)

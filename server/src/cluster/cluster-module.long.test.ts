import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { shardLeadership } from '../history/leadership.ts'
import { CALLER, type ClusterWorld, openClusterWorld } from '../testing/cluster-world.ts'
import { type Simulated, startSimulated } from '../testing/simulated.ts'
import { planOperation, startOperation } from './operation-start.ts'
import { runningOperations } from './operation-state.ts'
import { cancelOperation, getOperation } from './operations.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

async function openWorld(
  plan: { nodes?: number; shards?: number; learners?: number } = {},
): Promise<{ world: ClusterWorld; sim: Simulated }> {
  const sim = await startSimulated({ nodes: 4, shards: 1, zones: 1, seed: 7, learners: 1, ...plan })
  open.push(sim)
  const world = await openClusterWorld({ registry: sim.registryUrl, resolver: sim.registryUrl })
  open.push(world)
  await until('all nodes are healthy', () => {
    const shards = world.cluster.shards()
    return shards.length > 0 && shards.every(({ nodes }) => nodes.every(({ state }) => state === 'healthy'))
  })
  return { world, sim }
}

/** A voter that does not lead. */
const followerOf = (sim: Simulated) =>
  sim.shards[0]?.nodes.find(({ id, isVoter }) => isVoter && id !== sim.shards[0]?.leader)?.id as string
const learnerOf = (sim: Simulated) => sim.shards[0]?.nodes.find(({ isVoter }) => !isVoter)?.id as string

test('a shard of the registry is shown with its leader, members and metrics', async () => {
  const { world, sim } = await openWorld()

  const shard = world.shard('s1')

  expect(shard).toMatchObject({
    mode: 'clustered',
    voters: 3,
    votersUp: 3,
    majority: 2,
    spare: 1,
    leader: sim.shards[0]?.leader,
  })
  expect(shard.nodes.map(({ role }) => role).sort()).toEqual(['follower', 'follower', 'leader', 'learner'])
  expect(world.cluster.summary().attention).toEqual([])
  expect(world.cluster.summary()).toMatchObject({ counts: { shards: 1, nodes: 4, nodesAnswering: 4, attention: 0 } })
  expect(world.collector.discovery.registry).toMatchObject({ isUp: true, error: '' })
})

test('a transfer is sent once, is done when a majority shows it, and its write pause is stored', async () => {
  const { world, sim } = await openWorld()
  const [target, old] = [followerOf(sim), sim.shards[0]?.leader]

  const { id } = await world.start({ kind: 'transfer', shard: 's1', node: target })
  const operation = await world.ended(id)

  expect(operation).toMatchObject({
    state: 'done',
    answer: '202 transfer in progress',
    undo: { kind: 'transfer', node: old },
  })
  expect(operation.steps.map(({ id: step, state }) => `${step} ${state}`)).toEqual([
    'requested done',
    'accepted done',
    'stepped-down done',
    'leads done',
    'writes done',
  ])
  expect(sim.shards[0]?.requests).toEqual([`transfer ${target}`])
  expect(operation.pauseMs).toBeGreaterThanOrEqual(0)
  await until('the pause is part of the shard', () => world.shard('s1').writePause?.count === 1)
  const audit = await until('its end is audited', async () => {
    const rows = await world.database.selectFrom('audit').select(['action', 'actor', 'result']).orderBy('seq').execute()
    return rows.length > 1 && rows
  })
  expect(audit).toEqual([
    { action: 'operation.start', actor: 'ana', result: 'started' },
    { action: 'operation.end', actor: 'system', result: 'done' },
  ])
})

/** The leaders of s1, oldest first, from its route. */
async function ledBy(
  world: ClusterWorld,
): Promise<{ readonly leaders: readonly string[]; readonly elections: number }> {
  const { spans, elections } = await shardLeadership(world.leadership, 's1')
  return { leaders: spans.flatMap(({ leader }) => leader ?? []), elections }
}

test('the leadership history survives a restart of the control plane, and only new leaders count as elections', async () => {
  const { world, sim } = await openWorld()
  const [first, next] = [sim.shards[0]?.leader as string, followerOf(sim)]
  await until('the first leader is stored', async () => (await ledBy(world)).leaders.length === 1)
  await sim.act('lead', { shard: 's1', node: next })
  await until('the next leader is stored', async () => (await ledBy(world)).elections === 1)
  await world.stop()

  const again = await openClusterWorld({ registry: sim.registryUrl }, { folder: world.folder })
  open.push(again)
  const reported = await until('it is observed again', async () => {
    const now = await ledBy(again)
    return now.leaders.length === 3 && now
  })

  expect(reported).toEqual({ leaders: [first, next, next], elections: 1 })
})

test('a transfer that ended at a different node is reported as elsewhere', async () => {
  const { world, sim } = await openWorld()
  const target = followerOf(sim)
  const other = sim.shards[0]?.nodes.find(({ id, isVoter }) => isVoter && id !== target && id !== sim.shards[0]?.leader)
    ?.id as string
  await sim.act('elsewhere', { shard: 's1', node: other })

  const operation = await world.ended((await world.start({ kind: 'transfer', shard: 's1', node: target })).id)

  expect(operation).toMatchObject({ state: 'elsewhere', message: `Leadership went to ${other}, not ${target}` })
  await until('it needs attention', () => world.cluster.summary().attention.some(({ rule }) => rule === 5))
})

test('the refusal of a node is shown verbatim', async () => {
  const { world, sim } = await openWorld()
  await sim.act('refuse', { shard: 's1', status: 409, text: 'another transfer is <b>running</b>' })

  const operation = await world.ended((await world.start({ kind: 'transfer', shard: 's1', node: followerOf(sim) })).id)

  expect(operation).toMatchObject({ state: 'refused', answer: '409 another transfer is <b>running</b>' })
})

test('a learner is promoted and demoted again', async () => {
  const { world, sim } = await openWorld()
  const learner = learnerOf(sim)

  const promoted = await world.ended((await world.start({ kind: 'promote', shard: 's1', node: learner })).id)
  await until('it is shown as voter', () => world.shard('s1').voters === 4)
  const demoted = await world.ended((await world.start({ kind: 'demote', shard: 's1', node: learner })).id)

  expect(promoted).toMatchObject({ state: 'done', undo: { kind: 'demote', node: learner } })
  expect(demoted).toMatchObject({ state: 'done', undo: { kind: 'promote', node: learner } })
})

test('a leader transfers leadership before it is demoted, and both halves are confirmed', async () => {
  const { world, sim } = await openWorld()
  const leader = sim.shards[0]?.leader as string

  const operation = await world.ended(
    (await world.start({ kind: 'transfer-then-demote', shard: 's1', node: leader })).id,
  )

  expect(operation.state).toBe('done')
  expect(sim.shards[0]?.requests.map((each) => each.split(' ')[0])).toEqual(['transfer', 'demote'])
  expect(operation.steps.map(({ id }) => id)).toContain('demote-listed')
})

test('a restarted control plane checks the outcome of an operation and does not send it again', async () => {
  const { world, sim } = await openWorld()
  const target = followerOf(sim)
  await sim.act('never', { shard: 's1' })
  const { id } = await world.start({ kind: 'transfer', shard: 's1', node: target })
  await until('it was accepted', async () => (await getOperation(world.operations, id))?.state === 'verifying')
  await world.stop()

  await sim.act('lead', { shard: 's1', node: target })
  const again = await openClusterWorld({ registry: sim.registryUrl }, { folder: world.folder })
  open.push(again)
  const operation = await again.ended(id)

  expect(operation.state).toBe('done')
  expect(sim.shards[0]?.requests).toEqual([`transfer ${target}`])
})

test('a second operation on a shard is refused with the title of the first', async () => {
  const { world, sim } = await openWorld()
  await sim.act('never', { shard: 's1' })
  const request = { kind: 'transfer', shard: 's1', node: followerOf(sim) } as const
  const early = await planOperation(world.operations, request, CALLER)
  const { id } = await world.start(request)

  const second = startOperation(
    world.operations,
    { plan: early.id, reason: 'once more, please', confirm: 's1', key: undefined },
    CALLER,
  )

  await expect(second).rejects.toMatchObject({ status: 409, code: 'shard-busy', more: { operation: { id } } })
  expect(await refusals(world)).toEqual([
    {
      action: 'operation.start',
      target: `s1/${request.node}`,
      reason: 'once more, please',
      detail: expect.stringMatching(/^shard-busy: /),
    },
  ])
})

/** Audit entries of refused starts, which used to be missing. */
const refusals = (world: ClusterWorld) =>
  world.database
    .selectFrom('audit')
    .select(['action', 'target', 'reason', 'detail'])
    .where('result', '=', 'refused')
    .execute()

test('an outdated plan is refused with a new one', async () => {
  const { world, sim } = await openWorld()
  const target = followerOf(sim)
  const plan = await planOperation(world.operations, { kind: 'transfer', shard: 's1', node: target }, CALLER)
  await sim.act('lead', { shard: 's1', node: target })
  await until('the new leader is observed', () => world.shard('s1').leader === target)

  const start = startOperation(
    world.operations,
    { plan: plan.id, reason: 'too late for this', confirm: 's1', key: undefined },
    CALLER,
  )

  await expect(start).rejects.toMatchObject({
    status: 409,
    code: 'plan-out-of-date',
    more: { plan: { blocked: true } },
  })
  expect(sim.shards[0]?.requests).toEqual([])
  expect(await refusals(world)).toMatchObject([
    { target: `s1/${target}`, reason: 'too late for this', detail: expect.stringMatching(/^plan-out-of-date: /) },
  ])
})

test('the same idempotency key starts one operation', async () => {
  const { world, sim } = await openWorld()
  const request = { kind: 'transfer', shard: 's1', node: followerOf(sim) } as const

  const first = await world.start(request, { key: 'key-of-the-test' })
  await world.ended(first.id)
  const plan = await planOperation(world.operations, { kind: 'promote', shard: 's1', node: learnerOf(sim) }, CALLER)
  const second = await startOperation(
    world.operations,
    { plan: plan.id, reason: '', confirm: '', key: 'key-of-the-test' },
    CALLER,
  )

  expect(second.id).toBe(first.id)
  expect(sim.shards[0]?.requests).toHaveLength(1)
})

test('an armed transfer starts when its target has caught up, and can be cancelled before', async () => {
  const { world, sim } = await openWorld()
  const target = followerOf(sim)
  await sim.act('lag', { shard: 's1', node: target, entries: 20_000 })
  await until(
    'it is shown as far behind',
    () => world.shard('s1').nodes.find(({ id }) => id === target)?.state === 'far-behind',
  )
  const request = { kind: 'transfer', shard: 's1', node: target, waitForLag: true } as const

  const cancelled = await world.start(request)
  await until('it can be cancelled', async () => (await getOperation(world.operations, cancelled.id))?.cancellable)
  await cancelOperation(world.operations, cancelled.id, CALLER)
  expect((await world.ended(cancelled.id)).state).toBe('cancelled')
  expect(sim.shards[0]?.requests).toEqual([])

  const armed = await world.start(request)
  expect(armed.state).toBe('armed')
  await sim.act('lag', { shard: 's1', node: target, entries: 50 })
  expect((await world.ended(armed.id)).state).toBe('done')
})

test('nodes that are down, silent or send invalid responses do not delay the others', async () => {
  const { world, sim } = await openWorld({ nodes: 10, shards: 1, learners: 0 })
  const others = sim.shards[0]?.nodes.filter(({ id }) => id !== sim.shards[0]?.leader).map(({ id }) => id) as string[]
  const [gone = '', silent = '', nonsense = ''] = others
  await sim.act('stop', { shard: 's1', node: gone })
  await sim.act('silent', { shard: 's1', node: silent })
  await sim.act('garbage', { shard: 's1', node: nonsense })
  const stateOf = (id: string) => world.shard('s1').nodes.find((node) => node.id === id)

  await until('each has its own state', () => {
    const states = [gone, silent, nonsense].map((id) => stateOf(id)?.state)
    return states.join() === 'unreachable,not-answering,unknown'
  })

  const shard = world.shard('s1')
  expect(shard).toMatchObject({ voters: 10, leader: sim.shards[0]?.leader })
  expect(shard.missing.map(({ code }) => code)).toEqual(expect.arrayContaining(['refused', 'timeout', 'garbage']))
  const rest = shard.nodes.filter(({ id }) => ![gone, silent, nonsense].includes(id))
  expect(rest.every(({ freshness }) => freshness === 'live')).toBe(true)
  await until('it needs attention', () =>
    world.cluster.summary().attention.some(({ rule, message }) => rule === 2 && message.includes(gone)),
  )
})

test('an unconfirmed operation is still watched, even after a restart, and may become done', async () => {
  const { world, sim } = await openWorld()
  const target = followerOf(sim)
  await sim.act('never', { shard: 's1' })
  const { id } = await world.start({ kind: 'transfer', shard: 's1', node: target })
  await sim.scenario('no-leader')

  expect(await world.ended(id)).toMatchObject({ state: 'unconfirmed' })
  expect(runningOperations(world.operations)).toEqual([])
  const measured = (await getOperation(world.operations, id))?.steps.filter(({ state }) => state === 'done') ?? []
  expect(measured.map((step) => step.id).sort()).toEqual(['accepted', 'requested', 'stepped-down'])
  await world.stop()
  const again = await openClusterWorld({ registry: sim.registryUrl }, { folder: world.folder })
  open.push(again)
  for (const node of sim.shards[0]?.nodes ?? []) await sim.act('heal', { shard: 's1', node: node.id })
  await sim.act('lead', { shard: 's1', node: target })

  const late = await until('it ends as done', async () => {
    const operation = await getOperation(again.operations, id)
    return operation?.state === 'done' && operation
  })
  expect(late.message).toContain('later than usual')
  // Their times used to be those of the restart.
  expect(late.steps).toEqual(expect.arrayContaining(measured))
  expect(sim.shards[0]?.requests).toHaveLength(1)
}, 240_000)

test('a leader that never responds is reported, and the outcome is still observed', async () => {
  const { world, sim } = await openWorld()
  const target = followerOf(sim)
  await sim.act('hang', { shard: 's1' })
  const { id } = await world.start({ kind: 'transfer', shard: 's1', node: target })
  await until('the missing response is reported', async () =>
    (await getOperation(world.operations, id))?.notice.startsWith('No response from'),
  )

  await sim.act('lead', { shard: 's1', node: target })

  expect(await world.ended(id)).toMatchObject({ state: 'done' })
  expect(sim.shards[0]?.requests).toHaveLength(1)
})

import type { Handover, HandoverRequest } from '@vacancy/shared/contract'
import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { ADMIN, CALLER, type ClusterWorld, openClusterWorld } from '../testing/cluster-world.ts'
import { type Simulated, startSimulated } from '../testing/simulated.ts'
import { handoverHandlers } from './handovers.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

/** Three shards of three voters, each with one node in each of three zones; all leaders are in zone-1. */
async function openWorld(): Promise<{ world: ClusterWorld; sim: Simulated }> {
  const sim = await startSimulated({ nodes: 9, shards: 3, zones: 3, seed: 5, learners: 0, spread: true })
  open.push(sim)
  for (const shard of sim.shards) {
    const node = shard.nodes.find(({ zone }) => zone === 'zone-1')
    await sim.act('lead', { shard: shard.id, node: node?.id as string })
  }
  const world = await openClusterWorld({ registry: sim.registryUrl })
  open.push(world)
  await observed(world)
  return { world, sim }
}

const observed = (world: ClusterWorld) =>
  until('all nodes are healthy', () => {
    const shards = world.cluster.shards()
    return shards.length === 3 && shards.every(({ nodes }) => nodes.every(({ state }) => state === 'healthy'))
  })
const zonesOfLeaders = (sim: Simulated) =>
  sim.shards.map(({ nodes, leader }) => nodes.find(({ id }) => id === leader)?.zone)
const reason = 'new kernel on all machines'

function apiOf(world: ClusterWorld) {
  const handlers = handoverHandlers(world.handovers)
  const call = <T>(name: keyof typeof handlers, input: object): Promise<T> =>
    (handlers[name] as (input: object) => Promise<T>)({ ...CALLER, principal: ADMIN, headers: {}, ...input })
  return {
    plan: (body: HandoverRequest) =>
      call<{ basis: string; moves: number; items: { shard: string; blocked: string }[]; title: string }>(
        'POST /api/v1/handovers/plan',
        { body },
      ),
    start: (request: HandoverRequest, basis: string, why = reason) =>
      call<Handover>('POST /api/v1/handovers', { body: { request, basis, reason: why } }),
    steer: (how: 'continue' | 'leave', id: string) =>
      call<Handover>(`POST /api/v1/handovers/{id}/${how}`, { params: { id } }),
    settled: (id: string) =>
      until(`handover ${id} settles`, async () => {
        const handover = await call<Handover>('GET /api/v1/handovers/{id}', { params: { id } })
        return handover.state === 'running' ? undefined : handover
      }),
  }
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (error: { code?: string }) => error.code,
  )

test('all leaders of a zone move out one after another, and return', async () => {
  const { world, sim } = await openWorld()
  const api = apiOf(world)

  const plan = await api.plan({ zone: 'zone-1' })
  expect(plan).toMatchObject({ title: 'Hand over the leaders of zone-1', moves: 3 })
  const { id } = await api.start({ zone: 'zone-1' }, plan.basis)
  const done = await api.settled(id)

  expect(done).toMatchObject({ state: 'done', by: 'ana', reason })
  expect(done.items.map(({ shard, state }) => `${shard} ${state}`)).toEqual(['s1 done', 's2 done', 's3 done'])
  expect(zonesOfLeaders(sim)).not.toContain('zone-1')
  // One operation per shard, of which none began before the one ahead had ended.
  const operations = await world.database
    .selectFrom('operations')
    .select(['created_at', 'ended_at'])
    .orderBy('created_at')
    .execute()
  expect(operations).toHaveLength(3)
  for (const [at, { created_at }] of operations.entries()) {
    if (at > 0) expect(Number(created_at)).toBeGreaterThanOrEqual(Number(operations[at - 1]?.ended_at))
  }

  await until('the new leaders are observed', async () => (await api.plan({ back: id })).moves === 3)
  const back = await api.plan({ back: id })
  const returned = await api.settled((await api.start({ back: id }, back.basis)).id)

  expect(returned.state).toBe('done')
  expect(zonesOfLeaders(sim)).toEqual(['zone-1', 'zone-1', 'zone-1'])
  const audit = await world.database
    .selectFrom('audit')
    .select(['action', 'target', 'result'])
    .where('action', 'like', 'handover.%')
    .orderBy('seq')
    .execute()
  expect(audit.map(({ action, target, result }) => `${action} ${target} ${result}`)).toEqual([
    'handover.start zone zone-1 started',
    'handover.end zone zone-1 done',
    'handover.start zone zone-1 started',
    'handover.end zone zone-1 done',
  ])
})

test('the first transfer that is not done stops the rest; it is continued, or left', async () => {
  const { world, sim } = await openWorld()
  const api = apiOf(world)
  await sim.act('refuse', { shard: 's2' })
  const { id } = await api.start({ zone: 'zone-1' }, (await api.plan({ zone: 'zone-1' })).basis)

  const stopped = await api.settled(id)
  expect(stopped.state).toBe('stopped')
  expect(stopped.message).toContain('s2: ')
  expect(stopped.items.map(({ state }) => state)).toEqual(['done', 'failed', 'waiting'])

  await sim.act('normal', { shard: 's2' })
  await api.steer('continue', id)
  const done = await api.settled(id)
  expect(done.items.map(({ state, attempts }) => `${state} ${attempts}`)).toEqual(['done 1', 'done 2', 'done 1'])
  expect(await codeOf(api.steer('continue', id))).toBe('handover-not-stopped')
  expect(await codeOf(api.steer('leave', id))).toBe('handover-not-stopped')
})

test('one that is left while it runs ends after the transfer that was sent', async () => {
  const { world, sim } = await openWorld()
  const api = apiOf(world)
  const { id } = await api.start({ zone: 'zone-1' }, (await api.plan({ zone: 'zone-1' })).basis)

  const left = await api.steer('leave', id)

  expect(left.state).toBe('left')
  expect(left.items.map(({ state }) => state)).toEqual(['done', 'waiting', 'waiting'])
  expect(zonesOfLeaders(sim).slice(1)).toEqual(['zone-1', 'zone-1'])
  expect(sim.shards.map(({ requests }) => requests.length)).toEqual([1, 0, 0])
})

test('a restart of the control plane resumes it, and no request is sent twice', async () => {
  const { world, sim } = await openWorld()
  const { id } = await apiOf(world).start({ zone: 'zone-1' }, (await apiOf(world).plan({ zone: 'zone-1' })).basis)
  await until('the first request was sent', () => sim.shards[0]?.requests.length === 1)
  await world.stop()

  const next = await openClusterWorld({ registry: sim.registryUrl }, { folder: world.folder })
  open.push(next)
  const done = await apiOf(next).settled(id)

  expect(done).toMatchObject({ state: 'done', by: 'ana' })
  expect(sim.shards.map(({ requests }) => requests.length)).toEqual([1, 1, 1])
  expect(zonesOfLeaders(sim)).not.toContain('zone-1')
})

test('a start needs the plan that was shown, a reason, and no other handover', async () => {
  const { world, sim } = await openWorld()
  const api = apiOf(world)
  const { basis } = await api.plan({ zone: 'zone-1' })

  expect(await codeOf(api.plan({ zone: 'nowhere' }))).toBe('handover-scope-not-found')
  expect(await codeOf(api.plan({ back: 'handover_of_nobody' }))).toBe('handover-not-found')
  expect(await codeOf(api.start({ zone: 'zone-1' }, basis, 'short'))).toBe('reason-required')
  expect(await codeOf(api.start({ zone: 'zone-1' }, 'another'))).toBe('plan-out-of-date')
  await sim.act('never', { shard: 's1' })
  const starts = await Promise.all([api.start({ zone: 'zone-1' }, basis), codeOf(api.start({ zone: 'zone-1' }, basis))])
  expect(starts[1]).toBe('handover-busy')
})

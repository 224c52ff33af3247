import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Caller, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { type Simulated, startSimulated } from '../testing/simulated.ts'

let sim: Simulated
let plane: TestControlPlane
let admin: Caller
let viewer: Caller

beforeAll(async () => {
  sim = await startSimulated({ nodes: 6, shards: 2, zones: 2, seed: 3, learners: 0 })
  const config = {
    registry: sim.registryUrl,
    resolver: sim.registryUrl,
    nodeAdminToken: 'a-token-of-the-test',
    environmentKind: 'production' as const,
  }
  plane = await startTestControlPlane({ config })
  admin = await plane.signIn('admin')
  viewer = await plane.signIn('viewer')
  await until('both shards are healthy', async () => {
    const { body } = await viewer.call('GET', '/api/v1/shards')
    return body.shards.length === 2 && body.shards.every(({ state }: { state: string }) => state === 'healthy')
  })
  // Configuration and codec list of a node are polled after the paths for its health.
  await until('the configuration of all nodes was read', async () => {
    const [codecs, ...configs] = await Promise.all(
      ['registry/codecs', 'shards/s1/config', 'shards/s2/config'].map((path) => viewer.call('GET', `/api/v1/${path}`)),
    )
    const areKnown = codecs?.body.nodes.every(({ equal }: { equal: boolean | null }) => equal !== null)
    return areKnown && configs.every(({ body }) => body.missing.length === 0)
  })
})

afterAll(async () => {
  await plane?.stop()
  await sim?.close()
})

const followerOf = (shard: string) => {
  const found = sim.shards.find(({ id }) => id === shard)
  return found?.nodes.find(({ id }) => id !== found.leader)?.id as string
}

test('overview, shards, a shard and a node have the shapes of the contract', async () => {
  const summary = await viewer.call('GET', '/api/v1/summary')
  const shard = await viewer.call('GET', '/api/v1/shards/s1')
  const node = await viewer.call('GET', '/api/v1/shards/s1/nodes/n2')

  // The server checks each response against its schema: an invalid one is a 500.
  expect([summary.status, shard.status, node.status]).toEqual([200, 200, 200])
  expect(summary.body.counts).toMatchObject({ shards: 2, nodes: 6, nodesAnswering: 6 })
  expect(node.body.sources.map(({ path }: { path: string }) => path)).toContain('/cluster/info')
  expect(node.body.config).toContainEqual({ key: 'raft_tick_ms', value: '30', origin: 'default', at: '' })
})

test.each([
  ['/api/v1/shards/none', 'shard-not-found', 's1, s2'],
  ['/api/v1/shards/s1/nodes/none', 'node-not-found', 'n1, n2, n3'],
  ['/api/v1/operations/op_none', 'operation-not-found', '/api/v1/operations'],
])('%s is unknown, and the hint lists the known ones', async (path, code, hint) => {
  const { status, body } = await viewer.call('GET', path)

  expect(status).toBe(404)
  expect(body.code).toBe(code)
  expect(body.hint).toContain(hint)
})

test('events, configuration, registry, codecs, series and the resolver respond', async () => {
  const paths = [
    'shards/s1/events',
    'shards/s1/config',
    'registry/services',
    'registry/codecs',
    'series?names=queries,p99',
    'operations',
  ]
  const answers = await Promise.all(paths.map((path) => viewer.call('GET', `/api/v1/${path}`)))
  const resolved = await admin.call('POST', '/api/v1/registry/resolve', { kind: 'node', shard: 's1', id: 'n1' })

  expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200))
  expect(answers[1]?.body).toMatchObject({ nodes: ['n1', 'n2', 'n3'], missing: [] })
  expect(answers[2]?.body.services.filter(({ kind }: { kind: string }) => kind === 'node')).toHaveLength(6)
  expect(answers[3]?.body.nodes.every(({ equal }: { equal: boolean }) => equal)).toBe(true)
  expect(resolved.body).toMatchObject({
    status: 200,
    address: expect.stringMatching(/^127[.]0[.]0[.]1:\d+$/),
    error: '',
  })
})

test('a viewer may plan and sees why it cannot start; an admin starts with a reason', async () => {
  const request = { kind: 'demote', shard: 's1', node: followerOf('s1') }
  const seen = await viewer.call('POST', '/api/v1/plans', request)
  const refused = await viewer.call('POST', '/api/v1/operations', { plan: seen.body.id, reason: '', confirm: '' })
  const { body: plan } = await admin.call('POST', '/api/v1/plans', request)
  const without = await admin.call('POST', '/api/v1/operations', { plan: plan.id, reason: 'short', confirm: '' })
  const untyped = await admin.call('POST', '/api/v1/operations', {
    plan: plan.id,
    reason: 'long enough a reason',
    confirm: 's2',
  })

  expect(seen.body.checks).toContainEqual({ id: 'admin', level: 'block', text: 'needs the admin role' })
  expect(refused.status).toBe(403)
  expect(plan).toMatchObject({ confirm: 3, confirmText: 's1', blocked: false })
  expect(without.body).toMatchObject({ status: 400, code: 'reason-required', field: 'reason' })
  expect(untyped.body).toMatchObject({ status: 400, code: 'not-confirmed', field: 'confirm' })
  expect(sim.shards[0]?.requests).toEqual([])
})

test('starting an operation responds immediately, and the operation can be read', async () => {
  const { body: plan } = await admin.call('POST', '/api/v1/plans', {
    kind: 'transfer',
    shard: 's2',
    node: followerOf('s2'),
  })

  const started = await admin.call('POST', '/api/v1/operations', {
    plan: plan.id,
    reason: 'to see it move',
    confirm: 's2',
  })
  const ended = await until('it ends', async () => {
    const { body } = await viewer.call('GET', `/api/v1/operations/${started.body.id}`)
    return body.endedAt !== null && body
  })

  expect(started).toMatchObject({ status: 202, body: { state: 'requested', by: admin.me?.person.name } })
  expect(ended.state).toBe('done')
  const list = await viewer.call('GET', '/api/v1/operations?shard=s2&state=ended')
  expect(list.body.operations.map(({ id }: { id: string }) => id)).toEqual([started.body.id])
})

test('the past shows the leader of then, and what changed since', async () => {
  const before = await until('a state was recorded', async () => {
    const at = new Date().toISOString()
    const { status, body } = await viewer.call('GET', `/api/v1/past/shards/s1?at=${at}`)
    return status === 200 && body.state === 'healthy' && { at, leader: body.leader as string }
  })
  const leader = followerOf('s1')
  sim.act('lead', { shard: 's1', node: leader })
  await until('the new leader is seen', async () => {
    const { body } = await viewer.call('GET', '/api/v1/shards/s1')
    return body.leader === leader && body.state === 'healthy'
  })
  const past = async (path: string) => await viewer.call('GET', `/api/v1/past/${path}`)
  const [then, node, now, summary, timeline, changes] = await Promise.all([
    past(`shards/s1?at=${before.at}`),
    past(`shards/s1/nodes/${leader}?at=${before.at}`),
    past('shards/s1?at=now'),
    past(`summary?at=${before.at}`),
    past('timeline?from=now-1h&shard=s1&steps=10'),
    past(`changes?from=${before.at}&shard=s1`),
  ])

  expect([then.body.leader, now.body.leader]).toEqual([before.leader, leader])
  expect(node.body).toMatchObject({ node: { id: leader, role: 'follower' }, config: null, sources: [] })
  expect(summary.body).toMatchObject({ at: before.at, counts: { shards: 2, nodes: 6 }, running: [] })
  expect(timeline.body.leaders.reduce((sum: number, each: number) => sum + each, 0)).toBe(1)
  expect(timeline.body.events).toHaveLength(10)
  expect(timeline.body.recordedFrom).toBe(timeline.body.oldest)
  expect(changes.body.changes[0].message).toBe(`leadership of s1 moved ${before.leader} → ${leader}`)
  const { body } = await viewer.call('GET', '/api/v1/events?kinds=leader&shard=s1&order=oldest')
  expect(body.events).toMatchObject([{ shard: 's1', node: leader, kind: 'leader' }])
  expect(changes.body.events).toContainEqual(body.events[0])
})

test('the past shows an operation as far as it was', async () => {
  const request = { kind: 'transfer', shard: 's2', node: followerOf('s2') }
  const { body: plan } = await admin.call('POST', '/api/v1/plans', request)
  const start = { plan: plan.id, reason: 'to look back at it', confirm: 's2' }
  const { body: started } = await admin.call('POST', '/api/v1/operations', start)
  const ended = await until('it ends', async () => {
    const { body } = await viewer.call('GET', `/api/v1/operations/${started.id}`)
    return body.endedAt !== null && body
  })
  const past = async (path: string, at: string) => (await viewer.call('GET', `/api/v1/past/${path}?at=${at}`)).body
  const earlier = new Date(Date.parse(started.createdAt) - 1).toISOString()
  const [atStart, atEnd, during, after, before] = await Promise.all([
    past('summary', started.createdAt),
    past('summary', ended.endedAt),
    past(`operations/${started.id}`, started.createdAt),
    past(`operations/${started.id}`, ended.endedAt),
    past(`operations/${started.id}`, earlier),
  ])

  expect(atStart.running).toMatchObject([{ id: started.id, title: started.title }])
  expect(atEnd.running).toEqual([])
  expect(during).toMatchObject({ endedAt: null, cancellable: false, undo: null })
  expect(['armed', 'requested']).toContain(during.state)
  expect(during.steps.filter(({ state }: { state: string }) => state === 'done')).toEqual([])
  expect(after).toEqual(ended)
  expect(before.code).toBe('operation-not-found')
})

test.each([
  ['past/summary?at=2020-01-01T00:00:00Z', 404, 'not-recorded'],
  ['past/summary?at=2999-01-01T00:00:00Z', 404, 'not-recorded'],
  ['past/summary?at=yesterday', 400, 'bad-time'],
  ['past/shards/none?at=now', 404, 'shard-not-found'],
  ['past/shards/s1/nodes/none?at=now', 404, 'node-not-found'],
  ['past/changes?from=now&to=now-1h', 400, 'bad-range'],
  ['past/timeline?steps=0', 400, 'invalid-request'],
  ['events?kinds=nonsense', 400, 'invalid-request'],
])('%s is refused', async (path, status, code) => {
  const { body, ...answer } = await viewer.call('GET', `/api/v1/${path}`)

  expect([answer.status, body.code]).toEqual([status, code])
})

test('an attention item is put aside until it changes, and restored', async () => {
  const node = followerOf('s1')
  await sim.act('lag', { shard: 's1', node, entries: 30_000 })
  const find = async () =>
    (await viewer.call('GET', '/api/v1/summary')).body.attention.find(({ rule }: { rule: number }) => rule === 4)
  const item = await until('it is far behind', find)

  const aside = await admin.call('POST', `/api/v1/attention/${encodeURIComponent(item.id)}/aside`, { until: 'change' })
  const put = await find()
  await admin.call('POST', `/api/v1/attention/${encodeURIComponent(item.id)}/aside`, { until: null })
  const back = await find()
  await sim.act('lag', { shard: 's1', node, entries: 0 })

  expect(aside.status).toBe(204)
  expect([put.asideUntil, back.asideUntil]).toEqual(['change', null])
})

test('the cluster management contract is served for the given shard', async () => {
  const info = await viewer.call('GET', '/cluster/info?shard=s1')
  const without = await viewer.call('GET', '/cluster/info')
  const unknown = await viewer.call('GET', '/cluster/info?shard=s9')

  expect(info.body).toMatchObject({
    leader_id: sim.shards[0]?.leader,
    members: { voters: ['n1', 'n2', 'n3'], learners: [] },
  })
  expect([without.status, without.body.error]).toEqual([400, 'shard is required: ?shard= one of s1, s2'])
  expect(unknown.status).toBe(404)
})

test('a change through the contract goes to the leader, and its response is passed through', async () => {
  const token = await plane.token('admin')
  const target = followerOf('s1')

  const taken = await token.call('POST', '/cluster/transfer-leader?shard=s1', { target_node_id: target })
  await until('it leads', () => sim.shards[0]?.leader === target)
  const unknown = await token.call('POST', '/cluster/promote-learner?shard=s1', { node_id: 'n9' })
  const incomplete = await token.call('POST', '/cluster/demote-voter?shard=s1', {})
  const anonymous = await plane.anonymous().call('POST', '/cluster/demote-voter?shard=s1', { node_id: 'n1' })

  expect([taken.status, taken.text]).toEqual([202, 'transfer in progress'])
  expect([unknown.status, unknown.body.error]).toEqual([404, 'unknown node'])
  expect([incomplete.status, incomplete.body.error]).toEqual([400, 'node_id is required'])
  expect([anonymous.status, typeof anonymous.body.error]).toEqual([401, 'string'])
  const audit = await admin.call('GET', '/api/v1/audit?action=cluster.transfer')
  expect(audit.body.entries.map(({ result }: { result: string }) => result)).toEqual(['accepted', 'sent'])
})

test('a configured list of nodes needs no registry', async () => {
  const address = (id: string) => `127.0.0.1:${sim.node('s1', id).port}`
  const other = await startTestControlPlane({ config: { nodes: ['n1', 'n2', 'n3'].map(address) } })
  try {
    const caller = await other.signIn('viewer')
    const shard = await until('the shard is healthy', async () => {
      const { body } = await caller.call('GET', '/api/v1/shards/s1')
      return body.state === 'healthy' && body
    })

    expect(shard.nodes.map(({ id }: { id: string }) => id)).toEqual(['n1', 'n2', 'n3'])
  } finally {
    await other.stop()
  }
})

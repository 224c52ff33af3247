import { CLUSTER_TEXTS, clusterInfoBody, operationsBody, statusBody } from '@vacancy/shared/contract'
import { afterEach, expect, test } from 'vitest'
import { FOLLOWING, fakeCluster, fakeHandle, LEADING, NOON, REGISTRY } from '../testing/fake-handle.ts'
import { closeServers, refused, serve, TOKENS } from '../testing/http-server.ts'
import { clusterAnswers } from './cluster.ts'
import type { ClusterAnswer, ClusterHandle, ClusterRequest, Unavailable } from './handle.ts'
import type { Query } from './listener.ts'

afterEach(closeServers)

const ADMIN = 'the-admin'

/** A cluster that records its requests. */
function recording(differs: Partial<ClusterHandle> = {}) {
  const requests: ClusterRequest[] = []
  const cluster = fakeCluster({
    request: async (request) => {
      requests.push(request)
      return { status: 202, text: 'text of the leader' }
    },
    ...differs,
  })
  return { requests, cluster }
}

test('health names the role: leading, following, or neither', async () => {
  const health = async (differs: Partial<typeof LEADING>, unavailable: readonly Unavailable[] = []) => {
    const cluster = fakeCluster({ info: () => ({ ...LEADING, ...differs }) })
    const { get } = await serve({ handle: { cluster, unavailable: () => unavailable } })
    const answer = await get('/healthz')
    return [answer.status, await answer.text()]
  }

  expect(await health({})).toEqual([200, 'active_leader'])
  expect(await health(FOLLOWING)).toEqual([200, 'active_follower'])
  expect(await health({ ...FOLLOWING, role: 'learner' })).toEqual([200, 'active_follower'])
  expect(await health({ ...FOLLOWING, role: 'candidate', leader: '' })).toEqual([200, 'active_follower'])
  expect(await health({ ...FOLLOWING, stalenessMs: 10_001 })).toEqual([503, 'unavailable'])
  expect(await health({ ...FOLLOWING, stalenessMs: undefined })).toEqual([503, 'unavailable'])
  expect(await health({ isLeading: false, stalenessMs: 900 })).toEqual([200, 'active_follower'])
  expect(await health({ isLeading: false, stalenessMs: undefined })).toEqual([503, 'unavailable'])
  expect(await health({}, [{ reason: 'stopping', detail: '', sinceMs: NOON }])).toEqual([503, 'unavailable'])
  expect(await health({}, [{ reason: 'disk_full', detail: '', sinceMs: NOON }])).toEqual([200, 'active_leader'])
})

test('a ready node reports reasons that do not stop it', async () => {
  const unavailable = () => [{ reason: 'registry_unreachable', detail: 'r:1: refused', sinceMs: NOON }] as const
  const { get } = await serve({ handle: { cluster: fakeCluster(), unavailable } })

  const answer = await get('/ready')

  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({
    ready: true,
    reasons: [{ reason: 'registry_unreachable', stops: 'nothing' }],
  })
})

test('node-info has four keys, a fifth on demand, and an unknown leader is an empty text', async () => {
  const known = await serve({ handle: { cluster: fakeCluster() } })
  expect(await (await known.get('/node-info')).json()).toStrictEqual({
    leader_id: 'n1',
    shard_id: 's1',
    zone_id: 'z1',
    node_id: 'n1',
  })
  expect(await (await known.get('/leader')).text()).toBe('"n1"')

  const lost = fakeCluster({ info: () => ({ ...FOLLOWING, leader: '' }), leaderUrl: () => '' })
  const unknown = await serve({ handle: { cluster: lost }, settings: { node_info_leader_url: 'true' } })
  expect(await (await unknown.get('/node-info')).json()).toStrictEqual({
    leader_id: '',
    shard_id: 's1',
    zone_id: 'z1',
    node_id: 'n2',
    leader_url: '',
  })
  const leader = await unknown.get('/leader')
  expect([leader.status, await leader.json()]).toEqual([200, ''])
})

test('peers are all ids of the shard, ascending, including its own', async () => {
  const member = await serve({ handle: { cluster: fakeCluster() } })
  expect(await (await member.get('/peers')).json()).toEqual(['n1', 'n2', 'n3', 'n4'])

  const outside = fakeCluster({ info: () => ({ ...FOLLOWING, members: [], peers: ['n9', 'n10'] }) })
  const waiting = await serve({ handle: { cluster: outside } })
  expect(await (await waiting.get('/peers')).json()).toEqual(['n10', 'n2', 'n9'])
})

test('new peers replace those that are dialled', async () => {
  const received: (readonly string[])[] = []
  const { post } = await serve({ handle: { cluster: fakeCluster({ setPeers: (nodes) => received.push(nodes) }) } })

  const answer = await post('/peers', ['n2', 'n5', 'n2'])

  expect([answer.status, await answer.json()]).toEqual([202, { message: 'peers updated' }])
  expect(received).toEqual([['n2', 'n5']])
  expect(await refused(post('/peers', []))).toEqual([400, 'peers must be 1 to 64 node ids, are 0'])
  expect(
    await refused(
      post(
        '/peers',
        Array.from({ length: 65 }, (_, i) => `n${i}`),
      ),
    ),
  ).toEqual([400, 'peers must be 1 to 64 node ids, are 65'])
  for (const bad of [['n 2'], [''], [2], [['n2']]]) expect((await refused(post('/peers', bad)))[0]).toBe(400)
  expect(await refused(post('/peers', { peers: ['n2'] }))).toEqual([400, 'the body must be a JSON array'])
  expect(await refused(post('/peers'))).toEqual([400, 'the body must be a JSON array'])
  expect(received).toHaveLength(1)
})

test('both routes of a change send the same request and reply as the contract defines', async () => {
  const { requests, cluster } = recording()
  const { post } = await serve({ handle: { cluster }, tokens: TOKENS })
  const replyOf = async (answer: Promise<Response>) => {
    const { status, headers } = await answer
    expect(headers.get('content-type')).toMatch(/^text\/plain/)
    return [status, await (await answer).text()]
  }

  expect(await replyOf(post('/cluster/promote-learner', { node_id: 'n4' }, ADMIN))).toEqual([202, 'add in progress'])
  expect(await replyOf(post('/admin/add-member/n4', undefined, ADMIN))).toEqual([202, 'add in progress'])
  expect(await replyOf(post('/cluster/demote-voter', { node_id: 'n3' }, ADMIN))).toEqual([202, 'remove in progress'])
  expect(await replyOf(post('/admin/remove-member/n3', undefined, ADMIN))).toEqual([202, 'remove in progress'])
  const transfer = post('/cluster/transfer-leader', { target_node_id: 'n2' }, ADMIN)
  expect(await replyOf(transfer)).toEqual([202, 'transfer in progress'])
  expect(await replyOf(post('/admin/transfer-leader/n%32', {}, ADMIN))).toEqual([202, 'transfer in progress'])
  expect(requests).toEqual([
    { kind: 'promote', node: 'n4' },
    { kind: 'promote', node: 'n4' },
    { kind: 'demote', node: 'n3' },
    { kind: 'demote', node: 'n3' },
    { kind: 'transfer', node: 'n2' },
    { kind: 'transfer', node: 'n2' },
  ])
})

test('a request for a plan of a term carries it, and one that is no number is refused', async () => {
  const { requests, cluster } = recording()
  const { post } = await serve({ handle: { cluster }, tokens: TOKENS })
  await post('/cluster/transfer-leader', { target_node_id: 'n2', expected_term: 7 }, ADMIN)
  await post('/cluster/demote-voter', { node_id: 'n3', expected_term: 7 }, ADMIN)
  expect(requests).toEqual([
    { kind: 'transfer', node: 'n2', term: 7 },
    { kind: 'demote', node: 'n3', term: 7 },
  ])
  const bad = post('/cluster/transfer-leader', { target_node_id: 'n2', expected_term: '7' }, ADMIN)
  expect(await refused(bad)).toEqual([400, 'expected_term must be a number'])
})

test('loads take a file of the machine or a digest of the shard', async () => {
  const { requests, cluster } = recording()
  const { post } = await serve({ handle: { cluster }, tokens: TOKENS })
  const digest = 'ab'.repeat(32)

  const load = await post('/cluster/load', { file: '/srv/new/seed.snapshot' }, ADMIN)
  expect([load.status, await load.text()]).toEqual([202, CLUSTER_TEXTS.load])
  expect((await post('/cluster/load', { digest }, ADMIN)).status).toBe(202)
  expect(await (await post('/cluster/drop-load', { digest }, ADMIN)).text()).toBe(CLUSTER_TEXTS['drop-load'])

  expect(requests).toEqual([
    { kind: 'load', file: '/srv/new/seed.snapshot' },
    { kind: 'load', digest },
    { kind: 'drop-load', digest },
  ])
  for (const body of [
    {},
    { file: 'seed.snapshot' },
    { digest: 'ab' },
    { file: 7 },
    { file: '/srv/seed.snapshot', digest },
  ]) {
    expect((await refused(post('/cluster/load', body, ADMIN)))[0]).toBe(400)
  }
  expect((await refused(post('/cluster/drop-load', { file: '/srv/seed.snapshot' }, ADMIN)))[0]).toBe(400)
  expect(requests).toHaveLength(3)
})

test('a change without a valid node is refused before the leader gets it', async () => {
  const { requests, cluster } = recording()
  const { post } = await serve({ handle: { cluster }, tokens: TOKENS })
  const promote = (body: unknown) => refused(post('/cluster/promote-learner', body, ADMIN))

  for (const body of [undefined, {}, { node_id: '' }, { node_id: null }]) {
    expect(await promote(body)).toEqual([400, 'node_id is required'])
  }
  expect(await promote({ node_id: 'n2', why: 1 })).toEqual([400, '"why" is not known'])
  expect(await refused(post('/cluster/transfer-leader', { node_id: 'n2' }, ADMIN))).toEqual([
    400,
    '"node_id" is not known; did you mean target_node_id?',
  ])
  expect(await refused(post('/admin/remove-member/n3', { node_id: 'n2' }, ADMIN))).toEqual([
    400,
    'path and body name different nodes',
  ])
  for (const id of ['a b', '..', 'x'.repeat(129), 'ü', 7, ['n2']]) {
    const [status, message] = await promote({ node_id: id })
    expect([status, message.startsWith('node_id must be 1 to 128 characters')]).toEqual([400, true])
  }
  for (const id of ['a/b', '..%2f', 'a%20b', '%', '%ff', 'x'.repeat(129)]) {
    expect((await refused(post(`/admin/add-member/${id}`, undefined, ADMIN)))[0], id).toBe(400)
  }
  expect(await refused(post('/admin/add-member/', undefined, ADMIN))).toEqual([400, 'node_id is required'])
  expect(await refused(post('/cluster/demote-voter', '[', ADMIN))).toEqual([400, 'the body is not valid JSON'])
  expect(requests).toEqual([])
})

test.each([404, 409, 500, 503] as const)('a refusal of the leader with %i is an error response', async (status) => {
  const cluster = fakeCluster({ request: async () => ({ status, text: 'n9 is not known to this shard' }) })
  const { post } = await serve({ handle: { cluster }, tokens: TOKENS })

  const promote = post('/cluster/promote-learner', { node_id: 'n9' }, ADMIN)

  expect(await refused(promote)).toEqual([status, 'n9 is not known to this shard'])
})

/** A query to a route with a node id in its path. */
function queryFor(rest: string): Query {
  return { rest, parameters: new URLSearchParams(), search: '', body: {}, list: [] }
}

test('a leader that does not reply yields 504, and too many waiting requests yield 503', async () => {
  const never = Promise.withResolvers<never>()
  const cluster = fakeCluster({ request: () => never.promise })
  const limits = { inFlightMax: 1, placeMs: 5, answerMs: 50 }
  const { addMember } = clusterAnswers(fakeHandle(), cluster, { nodeInfoLeaderUrl: false }, limits)

  const first = addMember(queryFor('n4'))
  const second = addMember(queryFor('n4'))

  await expect(second).rejects.toMatchObject({ status: 503, message: 'cluster busy, please retry' })
  await expect(first).rejects.toMatchObject({ status: 504, message: 'command timeout' })
})

test('a change that waits for a place is sent when an earlier one has its reply', async () => {
  const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const requests: string[] = []
  const cluster = fakeCluster({
    request: async (request) => {
      const turn = answers[requests.length]
      requests.push(request.kind)
      await turn?.promise
      return { status: 202, text: '' }
    },
  })
  const limits = { inFlightMax: 1, placeMs: 60_000, answerMs: 60_000 }
  const { addMember, removeMember } = clusterAnswers(fakeHandle(), cluster, { nodeInfoLeaderUrl: false }, limits)

  const first = addMember(queryFor('n4'))
  const second = removeMember(queryFor('n3'))
  await Promise.resolve()
  expect(requests).toEqual(['promote'])
  answers[0]?.resolve()
  expect(await first).toMatchObject({ status: 202, body: 'add in progress' })
  answers[1]?.resolve()

  expect(await second).toMatchObject({ status: 202, body: 'remove in progress' })
  expect(requests).toEqual(['promote', 'demote'])
})

test('the management interface requires an admin token even without an auth file', async () => {
  const { requests, cluster } = recording()
  const openly = await serve({ handle: { cluster } })
  const promote = (token?: string) => openly.post('/cluster/promote-learner', { node_id: 'n4' }, token)

  expect(await refused(promote())).toEqual([401, 'missing authorization header'])
  expect(await refused(promote('any'))).toEqual([401, 'invalid token'])
  expect((await promote()).headers.get('www-authenticate')).toBe('Bearer')
  expect((await openly.post('/admin/add-member/n4')).status).toBe(202)
  expect(requests).toHaveLength(1)

  const guarded = await serve({ handle: { cluster }, tokens: TOKENS })
  for (const path of ['/cluster/demote-voter', '/admin/remove-member/n3', '/peers']) {
    const body = path === '/peers' ? ['n3'] : { node_id: 'n3' }
    expect(await refused(guarded.post(path, body))).toEqual([401, 'missing authorization header'])
    expect(await refused(guarded.post(path, body, 'a-client'))).toEqual([403, 'insufficient permissions'])
    expect((await guarded.post(path, body, ADMIN)).status).toBe(202)
  }
})

test('reads about the shard can be closed, health checks cannot', async () => {
  const closed = { tokens: TOKENS, settings: { api_public_read: 'false' } }
  const { get } = await serve({ handle: { cluster: fakeCluster() }, ...closed })

  for (const path of ['/node-info', '/leader', '/peers', '/cluster/info', '/cluster/operations']) {
    expect((await get(path)).status, path).toBe(401)
    expect((await get(path, 'a-monitor')).status, path).toBe(200)
  }
  expect((await get('/healthz')).status).toBe(200)
})

test('wrong methods yield 405 and unknown paths 404', async () => {
  const { get, post } = await serve({ handle: { cluster: fakeCluster() } })

  const wrong = await get('/admin/add-member/n4')
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
  expect(await refused(get('/cluster/promote-learner'))).toEqual([405, 'method not allowed'])
  expect(await refused(post('/leader'))).toEqual([405, 'method not allowed'])
  for (const path of ['/cluster', '/cluster/', '/cluster/nothing', '/add-member/n4', '/admin/add-member']) {
    expect(await refused(post(path)), path).toEqual([404, 'not found'])
  }
})

test('the leader reports members and their progress, a follower what it knows', async () => {
  const leader = await serve({ handle: { cluster: fakeCluster() } })
  const info = clusterInfoBody.parse(await (await leader.get('/cluster/info')).json())
  expect(info).toMatchObject({
    leader_id: 'n1',
    members: { voters: ['n1', 'n2', 'n3'], learners: ['n4'] },
    node_id: 'n1',
    leader_url: 'http://127.0.0.1:8080',
    term: 3,
    last_index: 120,
    commit_index: 119,
    applied_index: 118,
    operation: null,
    last_operation: null,
    bootstrap: null,
  })
  expect(info.nodes[1]).toEqual({
    id: 'n2',
    role: 'follower',
    voter: true,
    health: 'active',
    match_index: 119,
    lag_entries: 1,
    lag_seconds: 0.015,
    host: '127.0.0.2',
  })

  const follower = await serve({ handle: { cluster: fakeCluster({ info: () => FOLLOWING }) } })
  const known = clusterInfoBody.parse(await (await follower.get('/cluster/info')).json())
  expect(known.nodes[1]).toMatchObject({ id: 'n2', health: 'unknown', match_index: null, lag_seconds: null })
})

test('a node that waits for the shard to form reports what is missing', async () => {
  const bootstrap = {
    waitsFor: 'snapshot',
    why: 'snapshot 8f3a is on 1 of 3 voters, 2 needed',
    needed: 2,
    voters: [{ id: 'n1', state: 'seeded', snapshot: '8f3a', index: 1, detail: '' }],
  } as const
  const info = { ...FOLLOWING, members: [], leader: '', term: 0, stalenessMs: undefined, bootstrap }
  const handle = { cluster: fakeCluster({ info: () => info }), replica: () => undefined }
  const { get } = await serve({ handle })

  const document = clusterInfoBody.parse(await (await get('/cluster/info')).json())

  expect(document).toMatchObject({ leader_id: '', members: { voters: [], learners: [] }, last_index: 0 })
  expect(document.bootstrap).toEqual({
    waits_for: 'snapshot',
    why: bootstrap.why,
    needed: 2,
    voters: bootstrap.voters,
  })
  expect(await (await get('/healthz')).text()).toBe('unavailable')
})

test('running and finished changes are listed, newest first', async () => {
  const ended = { kind: 'promote', node: 'n4', result: 'failed', reason: 'n4 was lost', atMs: NOON } as const
  const before = { kind: 'transfer', node: 'n1', result: 'done', reason: '', atMs: NOON - 60_000 } as const
  const operation = { kind: 'demote', node: 'n3', startedMs: NOON, step: 'waits for its entry' } as const
  const info = { ...LEADING, operation, lastOperations: [ended, before] }
  const { get } = await serve({ handle: { cluster: fakeCluster({ info: () => info }) } })

  const running = { kind: 'demote', node: 'n3', started_at: '2026-06-15T12:00:00.000Z', step: 'waits for its entry' }
  const newest = {
    kind: 'promote',
    node: 'n4',
    result: 'failed',
    reason: 'n4 was lost',
    at: '2026-06-15T12:00:00.000Z',
  }
  expect(await (await get('/cluster/info')).json()).toMatchObject({ operation: running, last_operation: newest })
  const operations = operationsBody.parse(await (await get('/cluster/operations')).json())
  expect(operations.operation).toEqual(running)
  expect(operations.operations.map(({ kind }) => kind)).toEqual(['promote', 'transfer'])
  expect(operations.operations[0]).toEqual(newest)
})

test('the status of a clustered node has registry, resolver and running transfers', async () => {
  const info = {
    ...FOLLOWING,
    installing: { from: 'n1', index: 900, bytesDone: 10, bytesTotal: 80 },
    awaitedLoad: { digest: 'ab', bytesMissing: 5 },
    stalenessMs: 1_500,
  }
  const cluster = fakeCluster({
    info: () => info,
    registry: () => ({ ...REGISTRY, isReachable: false, fault: 'refused', codecMismatch: 'it has POOL as well' }),
    resolver: () => ({ address: 'v:9090', durations: {}, errors: { node: 3 }, error: 'timeout' }),
  })
  const { get } = await serve({ handle: { cluster } })

  const status = statusBody.parse(await (await get('/status')).json())

  expect(status).toMatchObject({ mode: 'clustered', health: 'unavailable' })
  expect(status.cluster).toMatchObject({
    info: { node_id: 'n2' },
    staleness_seconds: 1.5,
    installing: { from: 'n1', index: 900, bytes_done: 10, bytes_total: 80 },
    awaited_load: { digest: 'ab', bytes_missing: 5 },
    pull: null,
    connections_rejected: { shard: 1, certificate: 2 },
    registry: {
      up: false,
      error: 'refused',
      codec_mismatch: 'it has POOL as well',
      heartbeat_age_seconds: 2.5,
      published: { segments: 4, conflicts: 0 },
    },
    resolver: { error: 'timeout', errors: { node: 3 } },
  })
})

async function change(body: object, answer: ClusterAnswer = { status: 202, text: 'holds_max = 5 was proposed' }) {
  const sent: unknown[] = []
  const changeSetting = (name: string, value: number) => {
    sent.push([name, value])
    return Promise.resolve(answer)
  }
  const { post } = await serve({ handle: { changeSetting } })
  const response = await post('/admin/settings', body)
  return { status: response.status, text: await response.text(), sent }
}

test('a setting is changed on the leader', async () => {
  expect(await change({ name: 'holds_max', value: 5 })).toEqual({
    status: 202,
    text: '{"message":"holds_max = 5 was proposed"}',
    sent: [['holds_max', 5]],
  })
  expect(await change({ name: 'holds_max', value: 5 }, { status: 503, text: 'no leader' })).toMatchObject({
    status: 503,
  })
})

test.each<[object, string]>([
  [{}, 'name and value are required'],
  [{ name: 'holds_max', value: '5' }, 'name and value are required'],
  [{ name: 'holds_max', value: 0 }, 'holds_max must be 1 to 10000000, got 0'],
  [{ name: 'holds_max', value: 1.5 }, 'holds_max must be 1 to 10000000, got 1.5'],
  [{ name: 'stays_bytes', value: 1 }, 'stays_bytes must be 1048576 to 2147483647, got 1'],
  [{ name: 'toString', value: 5 }, 'unknown setting toString'],
])('%j is refused', async (body, message) => {
  const { status, text, sent } = await change(body)

  expect(status).toBe(400)
  expect(text).toContain(message)
  expect(sent).toEqual([])
})

import type { AuditNote } from '@vacancy/shared/api/route'
import type { Operation, ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import type { RegistryState } from '../fabric/fabric.ts'
import type { HttpReply } from '../http/node-http.ts'
import { goneNode, HASH, NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import type { ClusterModule } from './cluster-state.ts'
import { infoOf, pass } from './management-contract.ts'
import { requestNode, sendToNode } from './node-requests.ts'
import { codecsOf, servicesOf } from './registry-views.ts'

/** The cluster management contract: which node gets a request, what is passed on, and what is in the audit log. */

type Freshness = ShardView['nodes'][number]['freshness']

const PROMOTE = { path: '/cluster/promote-learner', key: 'node_id', node: 'n3', action: 'cluster.promote' }
const PRINCIPAL = { kind: 'token', id: 't1', name: 'ci', role: 'admin' } as const

/** A module with shards, whose nodes have addresses unless they are named so. */
function world(shards: {
  [id: string]: { leader?: string | null; nodes?: readonly (readonly [string, Freshness])[] }
}) {
  const requests: { readonly url: string; readonly ask: unknown }[] = []
  const notes: AuditNote[] = []
  const active = new Map<string, { operation: Operation }>()
  let reply: (Partial<HttpReply> & { readonly status: number }) | Error = { status: 200, body: '{"term":4}' }
  const states = Object.entries(shards).map(([id, { leader = 'n1', nodes = [['n1', 'live']] }]) => {
    const view = {
      id,
      leader,
      nodes: nodes.map(([node, freshness]) => ({ id: node, freshness })),
    } as unknown as ShardView
    const known = nodes.map(([node]) => {
      const apiUrl = node === 'nowhere' ? '' : `http://${node}.${id}`
      return [node, { observation: { address: { id: node, shard: id, zone: '', apiUrl, tcp: undefined } } }] as const
    })
    return [id, { view, nodes: new Map(known) }] as const
  })
  const module = {
    config: { tokens: { admin: 'admin', monitoring: 'monitoring' } },
    deps: { audit: async (note: AuditNote) => void notes.push(note) },
    collector: { shards: new Map(states), sorted: undefined },
    operations: { active },
    http: {
      async request(url: string, ask: unknown) {
        requests.push({ url, ask })
        if (reply instanceof Error) throw reply
        return { type: '', milliseconds: 1, body: '', ...reply }
      },
    },
  } as unknown as ClusterModule
  return {
    ...{ module, requests, notes, active },
    reply: (next: typeof reply) => {
      reply = next
    },
    promote: (shard: string | undefined, change: Partial<Parameters<typeof pass>[2]> = {}) => {
      const request = { principal: PRINCIPAL, address: '10.0.0.1', userAgent: '', requestId: 'r1', query: { shard } }
      return pass(module, request as Parameters<typeof pass>[1], { ...PROMOTE, ...change })
    },
    urls: () => requests.map(({ url }) => url),
    /** Result and detail of the audit entries. */
    entries: () => notes.map(({ result, detail }) => `${result}: ${detail}`),
  }
}

/** As programs of the contract get it. */
const refusal = (status: number, error: string) => ({ status, code: 'cluster', message: error, more: { error } })

test('without a shard the only one is meant', async () => {
  const { module, urls } = world({ s1: {} })
  expect(await infoOf(module, undefined)).toEqual({ term: 4 })
  expect(await infoOf(module, 's1')).toEqual({ term: 4 })
  expect(urls()).toEqual(['http://n1.s1/cluster/info', 'http://n1.s1/cluster/info'])
})

test.each<[string, Parameters<typeof world>[0], string | undefined, number, string]>([
  ['no shard is known', {}, undefined, 400, 'no shard is known yet'],
  ['none of several is named', { s2: {}, s1: {} }, undefined, 400, 'shard is required: ?shard= one of s1, s2'],
  ['an unknown one is named', { s2: {}, s1: {} }, 's3', 404, 'unknown shard; known shards: s1, s2'],
  ['one is named before any is known', {}, 's3', 404, 'unknown shard; known shards: none yet'],
])('when %s, the answer tells which there are', async (_, shards, shard, status, error) => {
  await expect(infoOf(world(shards).module, shard)).rejects.toMatchObject(refusal(status, error))
})

test.each<[string, string | null, readonly (readonly [string, Freshness])[]]>([
  ['no node responds', null, [['n1', 'gone']]],
  [
    'the address of the leader is unknown',
    'nowhere',
    [
      ['nowhere', 'live'],
      ['n1', 'live'],
    ],
  ],
])('when %s, there is no leader', async (_, leader, nodes) => {
  const { module, promote, notes } = world({ s1: { leader, nodes } })
  await expect(infoOf(module, 's1')).rejects.toMatchObject(refusal(503, 'no leader'))
  await expect(promote('s1')).rejects.toMatchObject(refusal(503, 'no leader'))
  expect(notes).toEqual([])
})

test('while an operation runs on the shard, a change is refused; that of another shard is not', async () => {
  const { promote, active, entries, requests } = world({ s1: {}, s2: {} })
  active.set('op_1', { operation: { id: 'op_1', shard: 's1', state: 'requested' } as Operation })
  active.set('op_2', { operation: { id: 'op_2', shard: 's2', state: 'done' } as Operation })
  await expect(promote('s1')).rejects.toMatchObject({
    ...refusal(409, 'another membership operation is running: op_1'),
    isAudited: true,
  })
  expect([entries(), requests]).toEqual([['refused: another operation is running'], []])
  await promote('s2')
})

/** Reports of a node as its page shows them, the configurations of a shard side by side, and requests with their tokens. */

function requester(tokens: ClusterModule['config']['tokens']) {
  const requests: unknown[] = []
  let failure: Error | undefined
  const http = {
    async request(url: string, ask: object) {
      requests.push({ url, ...ask })
      if (failure) throw failure
      return { status: 200, type: '', body: '', milliseconds: 1 }
    },
  }
  const module = { config: { tokens }, http } as unknown as ClusterModule
  return {
    ...{ module, requests },
    fail: (error: Error) => {
      failure = error
    },
  }
}
const NODE = { id: 'n1', shard: 's1', zone: '', apiUrl: 'http://n1:8080', tcp: undefined }

test.each([
  ['none', undefined, undefined],
  ['monitoring', 'm', 'a'],
  ['client', 'c', 'a'],
  ['admin', 'a', 'a'],
  [undefined, 'm', 'a'],
] as const)('a request as %s has its token, or that of admins', async (as, all, onlyAdmin) => {
  const full = requester({ monitoring: 'm', client: 'c', admin: 'a' })
  const one = requester({ admin: 'a' })
  const options = as === undefined ? {} : { as }
  await requestNode(full.module, NODE, '/x', options)
  await requestNode(one.module, NODE, '/x', options)
  expect(full.requests).toEqual([
    { url: 'http://n1:8080/x', method: 'GET', body: undefined, token: all, signal: undefined },
  ])
  expect(one.requests).toMatchObject([{ token: onlyAdmin }])
})

test('a change of a node is sent with the admin token', async () => {
  const { module, requests } = requester({ admin: 'a', monitoring: 'm' })
  await sendToNode(module, NODE, '/x', undefined, 5)
  await sendToNode(module, NODE, '/x', { a: 1 }, 6)
  expect(requests).toEqual([
    { url: 'http://n1:8080/x', method: 'POST', body: {}, token: 'a', timeoutMs: 5 },
    { url: 'http://n1:8080/x', method: 'POST', body: { a: 1 }, token: 'a', timeoutMs: 6 },
  ])
})

const SHARD = shardOf([
  observedNode({ id: 'n1' }),
  observedNode({ id: 'n2' }),
  goneNode({ id: 'n3' }, { code: 'refused', message: 'connection refused' }),
]).view

const registered = (id: string, more: object = {}) => ({ id, shard: 's1', zone: 'eu-1', age_secs: 2, ...more })
const registryWith = (more: object, state: Partial<RegistryState> = {}): RegistryState => ({
  ...{ address: 'http://r1', isUp: true, error: '', since: undefined, at: NOW },
  topology: { nodes: [], bridges: [], routers: [], conflicts: [], ...more } as unknown as RegistryState['topology'],
  ...state,
})
test('nodes of the registry are compared with what they report themselves', () => {
  const nodes = [
    registered('n1', { role: 'leader', version: '0.1.0' }),
    registered('n2', { role: 'learner', version: '0.0.9', age_secs: 7 }),
    registered('n9'),
  ]

  const { services } = servicesOf(registryWith({ nodes }), [SHARD], [])

  expect(
    services.map(({ id, role, heartbeatAgeSeconds, seen, difference }) => [
      id,
      role,
      heartbeatAgeSeconds,
      seen,
      difference,
    ]),
  ).toEqual([
    ['n1', 'leader', 2, true, ''],
    ['n2', 'learner', 7, true, 'reports learner, observed as follower; reports version 0.0.9, runs 0.1.0'],
    ['n9', null, 2, false, 'registered, but it does not respond to the control plane'],
    // Known from the member list of its shard.
    ['n3', 'unknown', null, false, 'not registered'],
  ])
})

test('codec lists are compared with that of the registry, or else with the most common one', () => {
  const other = { rate_features: ['sauna'], hash: 2, hash_hex: '2'.repeat(16), ordered_hash: 'b'.repeat(64) }
  const nodes = [
    observedNode({ id: 'n1' }, { codecs: { value: other, at: NOW } }),
    observedNode({ id: 'n2' }),
    observedNode({ id: 'n3' }),
    observedNode({ id: 'n4' }, { codecs: undefined, status: undefined }),
  ]
  const shards = [shardOf(nodes).view]
  const seen = ({ codecs, source, nodes: all }: ReturnType<typeof codecsOf>) => [
    ...[codecs?.ordered_hash, source],
    ...all.map(({ node, equal }) => `${node} ${equal}`),
  ]

  expect(seen(codecsOf(shards, undefined, nodes, 'http://r1'))).toEqual([
    HASH,
    'node s1/n2',
    'n1 false',
    'n2 true',
    'n3 true',
    'n4 null',
  ])
  expect(seen(codecsOf(shards, other, nodes, 'http://r1'))).toEqual([
    other.ordered_hash,
    'registry http://r1',
    'n1 true',
    'n2 false',
    'n3 false',
    'n4 null',
  ])
  expect(codecsOf([], undefined, [], null)).toEqual({ codecs: null, source: '', nodes: [] })
})

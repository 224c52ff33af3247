/** Reports of a node as its page shows them, the configurations of a shard side by side, and requests with their tokens. */

import { turnableClock } from '@vacancy/shared'
import type { ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import type { ClusterModule } from './cluster-state.ts'
import { compareConfig, nodeDocument } from './node-documents.ts'
import { NodeHttpError } from './node-http.ts'
import { requestNode, sendToNode } from './node-requests.ts'
import type { NodeObservation, Source } from './observation.ts'
import { ownValues } from './own-values.ts'

const at = (ms: number) => new Date(NOW + ms).toISOString()

const source = (body: unknown, change: Partial<Source> = {}): Source => ({
  ...{ status: 200, at: NOW - 500, milliseconds: 1.5, error: undefined },
  ...{ body: typeof body === 'string' ? body : JSON.stringify(body) },
  ...change,
})
const config = (values: object) =>
  source(
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, { value, origin: 'file', at: 'a.yml:3' }])),
  )
const withConfig = (id: string, read: Source | undefined): NodeObservation =>
  observedNode({ id }, { sources: read ? { '/config': read } : {} })

function moduleOf(observations: readonly NodeObservation[]) {
  const { view } = shardOf(observations)
  const nodes = new Map(observations.map((observation) => [observation.address.id, { observation }]))
  const clock = turnableClock(NOW)
  const module = { deps: { clock }, collector: { shards: new Map([['s1', { view, nodes }]]) } }
  return { module: module as unknown as ClusterModule, view: view as ShardView }
}

test('a node is shown with the last response of each path in their order', () => {
  const failed = { code: 'timeout', message: 'no response within 800 ms', since: NOW - 9_000 }
  const sources = {
    '/config': config({ tcp_port: 7_777, cpu_watch: true }),
    '/peers': source('', { status: undefined, at: undefined, milliseconds: undefined, error: failed }),
    '/healthz': source('active_leader'),
  }
  const { module, view } = moduleOf([observedNode({ id: 'n1' }, { sources }), observedNode({ id: 'n2' })])
  const document = nodeDocument(module, 's1', 'n1')

  expect(document?.node).toBe(view.nodes[0])
  expect(document?.sources.map(({ path }) => path)).toEqual(['/healthz', '/peers', '/config'])
  expect(document?.sources.slice(0, 2)).toEqual([
    { path: '/healthz', status: 200, milliseconds: 1.5, body: 'active_leader', at: at(-500), error: null },
    { path: '/peers', status: null, milliseconds: null, body: '', at: null, error: { ...failed, since: at(-9_000) } },
  ])
  expect(document?.config).toEqual([
    { key: 'tcp_port', value: '7777', origin: 'file', at: 'a.yml:3' },
    { key: 'cpu_watch', value: 'true', origin: 'file', at: 'a.yml:3' },
  ])
  expect(document?.configError).toBe('')
  expect([nodeDocument(module, 's1', 'n9'), nodeDocument(module, 's9', 'n1')]).toEqual([undefined, undefined])
})

test.each<[string, Source | undefined, string]>([
  ['is not polled yet', undefined, 'The node has not been polled yet.'],
  ['requires a token', source('', { status: 401 }), 'The node requires an admin token for this: set node_admin_token.'],
  [
    'refuses the token',
    source('', { status: 403 }),
    'The node requires an admin token for this: set node_admin_token.',
  ],
  ['answers no JSON', source('hello'), 'The response of the node is not a configuration.'],
  ['answers something else', source([1]), 'The response of the node is not a configuration.'],
  ['fails', source('{}', { status: 500 }), 'The node answered 500.'],
  [
    'does not respond',
    source('', { status: undefined, error: { code: 'refused', message: 'connection refused', since: NOW - 7 } }),
    'The node did not respond: connection refused.',
  ],
])('a configuration that %s is missing, with the reason', (_, read, message) => {
  const { module, view } = moduleOf([withConfig('n1', read)])
  expect(nodeDocument(module, 's1', 'n1')).toMatchObject({ config: null, configError: message })
  const code = read?.error?.code ?? 'not-reported'
  const since = at(read === undefined ? 0 : read.error === undefined ? -500 : -7)
  expect(compareConfig(module, view)).toMatchObject({
    ...{ nodes: ['n1'], keys: [], missing: [{ source: 's1/n1 /config', code, message, since }] },
  })
})

test('configurations are compared key by key; a node without a key does not differ', () => {
  const { module, view } = moduleOf([
    withConfig('n3', config({ b: 2, a: 1 })),
    withConfig('n1', config({ b: '2', a: 1, c: 5 })),
    withConfig('n2', config({ b: 3 })),
  ])
  const entry = (value: string) => ({ value, origin: 'file' })
  expect(compareConfig(module, view)).toMatchObject({
    nodes: ['n1', 'n2', 'n3'],
    keys: [
      { key: 'a', equal: true, values: [entry('1'), null, entry('1')] },
      { key: 'b', equal: false, values: [entry('2'), entry('3'), entry('2')] },
      { key: 'c', equal: true, values: [entry('5'), null, null] },
    ],
    missing: [],
  })
})

// Requests

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

test('a request has the given method, body and time', async () => {
  const { module, requests } = requester({})
  await requestNode(module, NODE, '/x', { method: 'POST', body: { a: 1 }, timeoutMs: 5 })
  expect(requests).toMatchObject([{ method: 'POST', body: { a: 1 }, timeoutMs: 5 }])
})

test.each([
  ['timeout', 504, 'node-timeout'],
  ['refused', 502, 'node-unreachable'],
])('the failure %s of a node is a problem that names it', async (why, status, code) => {
  const { module, fail } = requester({})
  fail(new NodeHttpError(why, 'why'))
  await expect(requestNode(module, NODE, '/x')).rejects.toMatchObject({
    ...{ status, code, message: 's1/n1: why', more: { node: 'n1', shard: 's1', why } },
    hint: 'Check http://n1:8080: is the node running, and can this machine reach it?',
  })
  fail(new TypeError('a defect'))
  await expect(requestNode(module, NODE, '/x')).rejects.toThrow('a defect')
})

test('a node without an address cannot be requested', async () => {
  const { module, requests } = requester({})
  await expect(requestNode(module, { ...NODE, apiUrl: '' }, '/x')).rejects.toMatchObject({
    ...{ message: 's1/n1: its address is unknown', hint: expect.stringContaining('Check its address:') },
  })
  expect(requests).toEqual([])
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

// The control plane itself

test('the rates of the control plane are those per second since the read before', () => {
  const clock = turnableClock(NOW)
  const counts = { requests: 100, failures: 10, roundMs: 7 }
  const live = { clients: new Set([1, 2]), framesSent: 50, bytesSent: 1_000 }
  const module = { collector: { nodes: new Map(), counts }, deps: { clock, live } } as unknown as ClusterModule
  const read = ownValues(module)
  expect(read()).toMatchObject({
    ...{ control_polls: null, control_failures: null, control_frames: null, control_bytes: null },
    ...{ control_round: 7, control_clients: 2 },
  })
  expect(read()).toMatchObject({ control_polls: null })
  clock.advance(500)
  Object.assign(counts, { requests: 110, failures: 13 })
  Object.assign(live, { framesSent: 54, bytesSent: 1_100 })
  const values = read()
  expect(values).toMatchObject({ control_polls: 20, control_failures: 6, control_frames: 8, control_bytes: 200 })
  expect(values.control_memory).toBeGreaterThan(1e6)
  clock.advance(1_000)
  expect(read()).toMatchObject({ control_polls: 0 })
})

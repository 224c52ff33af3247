/** The cluster management contract: which node gets a request, what is passed on, and what is in the audit log. */

import type { Operation, ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import type { AuditNote } from '../access/audit.ts'
import type { ClusterModule } from './cluster-state.ts'
import { infoOf, pass } from './management-contract.ts'
import { type HttpReply, NodeHttpError } from './node-http.ts'

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
      const request = { principal: PRINCIPAL, address: '10.0.0.1', requestId: 'r1', query: { shard } }
      return pass(module, request as Parameters<typeof pass>[1], { ...PROMOTE, ...change })
    },
    urls: () => requests.map(({ url }) => url),
    /** Result and detail of the audit entries. */
    entries: () => notes.map(({ result, detail }) => `${result}: ${detail}`),
  }
}

/** As programs of the contract get it. */
const refusal = (status: number, error: string) => ({ status, code: 'cluster', message: error, more: { error } })

// Which shard, and which node

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

test('of many shards the first hundred are listed', async () => {
  const shards = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`s${at}`, {}]))
  const error = await infoOf(world(shards).module, 'x').catch((reason: Error) => reason.message)
  expect(error).toMatch(/, s99$/)
})

test.each<[string, string | null, readonly (readonly [string, Freshness])[], string]>([
  [
    'the leader',
    'n2',
    [
      ['n1', 'live'],
      ['n2', 'gone'],
    ],
    'http://n2.s1',
  ],
  [
    'without leader a node that responds',
    null,
    [
      ['n1', 'gone'],
      ['n2', 'delayed'],
      ['n3', 'live'],
    ],
    'http://n2.s1',
  ],
  [
    'without leader a live node',
    null,
    [
      ['n1', 'never'],
      ['n3', 'live'],
    ],
    'http://n3.s1',
  ],
])('%s gets the request', async (_, leader, nodes, origin) => {
  const { module, urls } = world({ s1: { leader, nodes } })
  await infoOf(module, 's1')
  expect(urls()).toEqual([`${origin}/cluster/info`])
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

// Information

test('an error of the node is passed on in the form of the contract', async () => {
  const { module, reply } = world({ s1: {} })
  reply({ status: 409, body: '{"error":"busy"}' })
  await expect(infoOf(module, 's1')).rejects.toMatchObject(refusal(409, 'busy'))
  reply({ status: 500, body: ' broken \n' })
  await expect(infoOf(module, 's1')).rejects.toMatchObject(refusal(500, 'broken'))
})

test('a node that does not respond is an error of the contract, and a defect is not', async () => {
  const { module, reply } = world({ s1: {} })
  reply(new NodeHttpError('timeout', 'no response within 7000 ms'))
  await expect(infoOf(module, 's1')).rejects.toMatchObject(refusal(504, 's1/n1: no response within 7000 ms'))
  reply(new TypeError('a defect'))
  await expect(infoOf(module, 's1')).rejects.toThrow('a defect')
})

test('a node has seven seconds to respond', async () => {
  const { module, requests, promote } = world({ s1: {} })
  await infoOf(module, 's1')
  await promote('s1')
  expect(requests.map(({ ask }) => (ask as { timeoutMs: number }).timeoutMs)).toEqual([7_000, 7_000])
})

// Changes

test('a change is sent to the leader with its own token, and both sides of it are audited', async () => {
  const { promote, requests, reply, notes, entries } = world({ s1: {} })
  reply({ status: 202, body: 'promoted' })

  expect(await promote('s1')).toBe('promoted')

  expect(requests).toMatchObject([
    { url: 'http://n1.s1/cluster/promote-learner', ask: { method: 'POST', body: { node_id: 'n3' }, token: 'admin' } },
  ])
  expect(entries()).toEqual(['sent: to n1', 'accepted: 202 promoted'])
  for (const note of notes)
    expect(note).toMatchObject({
      ...{ principal: PRINCIPAL, address: '10.0.0.1', requestId: 'r1', action: 'cluster.promote', target: 's1/n3' },
    })
})

test.each([
  [undefined, 'node_id is required'],
  ['', 'node_id is required'],
  ['no id!', 'node_id is not a node id'],
])('the node %o is refused before anything is sent', async (node, error) => {
  const { promote, requests, notes } = world({ s1: {} })
  await expect(promote('s1', { node })).rejects.toMatchObject(refusal(400, error))
  expect([requests, notes]).toEqual([[], []])
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

test.each([
  [199, false],
  [200, true],
  [299, true],
  [300, false],
  [409, false],
])('the status %d is an acceptance: %s', async (status, isTaken) => {
  const { promote, reply, entries } = world({ s1: {} })
  reply({ status, body: '{"error":"no"}' })
  if (isTaken) expect(await promote('s1')).toBe('{"error":"no"}')
  else await expect(promote('s1')).rejects.toMatchObject({ ...refusal(status, 'no'), isAudited: true })
  expect(entries()[1]).toBe(isTaken ? `accepted: ${status} {"error":"no"}` : `refused: ${status} no`)
})

test('long responses are cut', async () => {
  const { promote, reply, notes } = world({ s1: {} })
  reply({ status: 200, body: 'x'.repeat(201) })
  await promote('s1')
  expect(notes[1]?.detail).toBe(`200 ${'x'.repeat(200)}`)
  for (const body of ['y'.repeat(501), JSON.stringify({ error: 'y'.repeat(501) })]) {
    reply({ status: 500, body })
    await expect(promote('s1')).rejects.toMatchObject({ message: 'y'.repeat(500) })
  }
  reply({ status: 500, body: '{"error":5}' })
  await expect(promote('s1')).rejects.toMatchObject({ message: '{"error":5}' })
})

test.each([
  ['timeout', 504, 'command timeout'],
  ['refused', 503, 'n1: no connection'],
])('a change that fails with %s is audited and answered with %d', async (code, status, error) => {
  const { promote, reply, entries } = world({ s1: {} })
  reply(new NodeHttpError(code, 'no connection'))
  await expect(promote('s1')).rejects.toMatchObject(refusal(status, error))
  expect(entries()).toEqual(['sent: to n1', 'failed: no connection'])
})

test('a defect is passed on, and logged as a request that was sent', async () => {
  const { promote, reply, entries } = world({ s1: {} })
  reply(new TypeError('a defect'))
  await expect(promote('s1')).rejects.toThrow('a defect')
  expect(entries()).toEqual(['sent: to n1'])
})

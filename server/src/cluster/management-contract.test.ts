/** The cluster management contract: which node gets a request, what is passed on, and what is in the audit log. */

import type { AuditNote } from '@vacancy/shared/api/route'
import type { Operation, ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import type { HttpReply } from '../http/node-http.ts'
import type { ClusterModule } from './cluster-state.ts'
import { infoOf, pass } from './management-contract.ts'

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

/** When nodes are polled, by which paths, and what failures change. HTTP and clock are simulated. */

import { turnableClock } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import { expect, test } from 'vitest'
import { type HttpReply, NodeHttpError } from '../http/node-http.ts'
import { HASH, infoOf, NOW, statusOf } from '../testing/observed-nodes.ts'
import { createCollector, watchClosely } from './collector.ts'
import { addNode, COLLECTOR, type CollectorConfig, type PolledNode } from './collector-state.ts'
import { emptyObservation } from './observation.ts'
import { pollDue } from './polling.ts'

type Reply =
  | string
  | { readonly status?: number; readonly body?: unknown; readonly reasons?: string }
  | Error
  | (() => Promise<HttpReply>)

const ALL = [
  '/healthz',
  '/cluster/info',
  '/node-info',
  '/leader',
  '/peers',
  '/status',
  '/metrics',
  '/codecs',
  '/config',
]
const LATE = new NodeHttpError('timeout', 'no response within 800 ms')
const REFUSED = new NodeHttpError('refused', 'connection refused')
const OWN = 'http://n1:8080'

const codecs = { rate_features: ['breakfast'], hash: 1, hash_hex: '0'.repeat(16), ordered_hash: HASH }
const identity = (id: string) => ({ leader_id: 'n1', shard_id: 's1', zone_id: 'eu-1', node_id: id })

/** Replies of a follower or leader of the shard s1. */
const repliesOf = (id: string): { [path: string]: Reply } => ({
  '/healthz': 'active_leader\n',
  '/cluster/info': { body: infoOf({ id }) },
  '/node-info': { body: identity(id) },
  '/leader': '"n1"',
  '/peers': '["n1","n2","n3"]',
  '/status': { body: statusOf({}) },
  '/metrics': 'vacancy_wal_bytes 12',
  '/codecs': { body: codecs },
  '/config': { body: {} },
})

function world(config: Partial<CollectorConfig> = {}) {
  const clock = turnableClock(NOW)
  clock.advance(100_000)
  const replies = new Map<string, Reply>()
  const calls: string[] = []
  const tokens: unknown[] = []
  const errors: unknown[] = []
  const views: string[] = []
  const http = {
    close: () => undefined,
    async request(url: string, { token }: { readonly token?: string | undefined } = {}): Promise<HttpReply> {
      calls.push(url)
      tokens.push(token)
      const reply = replies.get(url) ?? REFUSED
      if (reply instanceof Error) throw reply
      if (typeof reply === 'function') return await reply()
      const { status = 200, body = '', ...rest } = typeof reply === 'string' ? { body: reply } : reply
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return { ...rest, status, type: '', body: text, milliseconds: 1.26 }
    },
  }
  const collector = createCollector(
    {
      ...{ registries: [], resolver: undefined, nodes: [], apiPort: 8_080, tcpPort: 7_777, registryToken: undefined },
      ...{ nodeToken: undefined, monitoringToken: 'monitoring', adminToken: 'admin', ...config },
    },
    http,
    {
      facts: () => ({ operation: null, writePause: null }),
      onShard: ({ id }) => void views.push(id),
      onShardGone: () => undefined,
      onReading: () => undefined,
    },
    { error: (fields: unknown) => errors.push(fields) } as unknown as Log,
    clock,
  )
  const add = (id: string, nextAt = 0, shard = 's1'): PolledNode => {
    const apiUrl = id === '' ? '' : `http://${id}:8080`
    const address = { id: id || 'nx', shard, zone: 'eu-1', apiUrl, tcp: undefined }
    addNode(collector, emptyObservation(address), { by: 'list', namedAt: NOW, role: undefined, nextAt })
    for (const [path, reply] of Object.entries(repliesOf(id))) replies.set(apiUrl + path, reply)
    return collector.nodes.get(`${shard}/${address.id}`) as PolledNode
  }
  const settle = () => new Promise(setImmediate)
  return {
    ...{ collector, clock, replies, calls, tokens, errors, views, add, settle },
    set: (path: string, reply: Reply) => void replies.set(OWN + path, reply),
    /** Time passes, and the nodes that are due are polled. @returns the paths of n1, or whole addresses of others */
    async pass(ms: number) {
      clock.advance(ms)
      pollDue(collector)
      await settle()
      return calls.splice(0).map((url) => url.replace(OWN, ''))
    },
  }
}

test('the first round reads every path of a node, with the token that each needs', async () => {
  const { add, pass, tokens, collector } = world()
  add('n1')
  expect(await pass(0)).toEqual(ALL)
  expect(tokens).toEqual([...ALL.slice(1).map(() => 'monitoring'), 'admin'])
  expect(collector.counts).toMatchObject({ requests: 9, failures: 0, roundMs: 0 })
})

test('health and members are read each second, figures every five, configuration every minute', async () => {
  const { add, pass } = world()
  add('n1')
  await pass(0)
  expect(await pass(999)).toEqual([])
  expect(await pass(1)).toEqual(['/healthz', '/cluster/info'])
  expect(await pass(3_999)).toEqual(['/healthz', '/cluster/info'])
  expect(await pass(1_000)).toEqual(ALL.slice(0, 7))
  expect(await pass(54_000)).toEqual(ALL.slice(0, 7))
  expect(await pass(1_001)).toEqual(['/healthz', '/cluster/info', '/codecs', '/config'])
})

test('figures are read at once when a node has other reasons than before, though its health is the same', async () => {
  const { add, pass, set } = world()
  add('n1')
  await pass(0)
  set('/healthz', { body: 'active_leader\n', reasons: 'certificate_ends' })
  expect(await pass(1_000)).toEqual(ALL.slice(0, 7))
  expect(await pass(1_000)).toEqual(['/healthz', '/cluster/info'])
  set('/healthz', 'active_leader\n')
  expect(await pass(1_000)).toEqual(ALL.slice(0, 7))
})

test('above 300 nodes a round takes two seconds', async () => {
  const { add, pass } = world()
  for (let at = 0; at < COLLECTOR.manyNodes - 1; at++) add('', Number.POSITIVE_INFINITY, `x${at}`)
  const node = add('n1')
  await pass(0)
  expect(node.nextAt).toBe(101_000)
  add('', Number.POSITIVE_INFINITY, 'last')
  await pass(1_000)
  expect(node.nextAt).toBe(103_000)
})

/** Nodes that never reply. */
function waiting(count: number) {
  const given = world()
  const release: (() => void)[] = []
  const nodes = Array.from({ length: count }, (_, at) => given.add(`w${at}`, 10))
  for (const { observation } of nodes)
    given.replies.set(`${observation.address.apiUrl}/healthz`, async () => {
      await new Promise<void>((resolve) => release.push(resolve))
      throw LATE
    })
  return { ...given, nodes, release }
}

test('at most 64 nodes are polled at once, those that waited longest first', async () => {
  const { nodes, pass, release, collector, settle } = waiting(70)
  const [, , third, , fifth] = nodes as [PolledNode, PolledNode, PolledNode, PolledNode, PolledNode]
  third.nextAt = 2
  fifth.nextAt = 1
  const calls = await pass(0)
  expect(calls.length).toBe(64)
  expect(calls.slice(0, 3)).toEqual(['w4', 'w2', 'w0'].map((id) => `http://${id}:8080/healthz`))
  expect(await pass(0)).toEqual([])
  release.shift()?.()
  await settle()
  expect(collector.busy).toBe(63)
  expect(await pass(0)).toEqual(['http://w64:8080/healthz'])
})

test('at most 16 of them are nodes that did not respond', async () => {
  const { nodes, pass, release, collector, settle } = waiting(20)
  for (const node of nodes.slice(0, 19)) node.observation = { ...node.observation, missed: 1 }
  const calls = await pass(0)
  expect(calls.length).toBe(17)
  expect(calls.at(-1)).toBe('http://w19:8080/healthz')
  expect([collector.busy, collector.busySilent]).toEqual([17, 16])
  for (const go of release.splice(0)) go()
  await settle()
  expect([collector.busy, collector.busySilent]).toEqual([0, 0])
})

test('a silent node gets one request a round; three rounds are three misses', async () => {
  const { add, pass, set, collector } = world()
  const node = add('n1')
  await pass(0)
  collector.discovery.resolved.set('s1/n1', { host: 'h', apiPort: 1, tcpPort: 2 })
  set('/healthz', LATE)
  const missed: number[] = []
  for (let round = 0; round < 4; round++) {
    expect(await pass(1_000)).toEqual(['/healthz'])
    missed.push(node.observation.missed)
    expect(collector.discovery.resolved.has('s1/n1')).toBe(round < 2)
  }
  expect(missed).toEqual([1, 2, 3, 4])
  expect(collector.counts).toMatchObject({ requests: 13, failures: 4 })
  const failure = { code: 'timeout', message: 'no response within 800 ms', since: NOW + 101_000 }
  expect(node.observation.error).toEqual(failure)
  expect(node.observation.sources['/healthz']).toEqual({
    ...{ status: 200, at: NOW + 100_000, milliseconds: undefined, body: 'active_leader\n', error: failure },
  })
  expect(node.observation.health?.value).toBe('active_leader')
  expect(node.observation.answeredAt).toBe(NOW + 100_000)

  set('/healthz', 'active_leader\n')
  await pass(1_000)
  expect(node.observation).toMatchObject({ missed: 0, error: undefined, answeredAt: NOW + 105_000 })
})

test('a watched shard is polled every 50 ms for 3 s, then every 200 ms, and derived with each poll', async () => {
  const { add, pass, collector, views } = world()
  const node = add('n1')
  await pass(0)
  const stop = watchClosely(collector, 's1')
  views.length = 0
  expect(await pass(0)).toEqual(['/healthz', '/cluster/info'])
  expect(views).toEqual(['s1'])
  expect(await pass(49)).toEqual([])
  expect(await pass(1)).toEqual(['/healthz', '/cluster/info'])
  await pass(2_949)
  expect(node.nextAt).toBe(103_049)
  node.nextAt = 0
  await pass(1)
  expect(node.nextAt).toBe(103_200)
  stop()
  expect(await pass(200)).toEqual(['/healthz', '/cluster/info'])
  expect(node.nextAt).toBe(104_200)
})

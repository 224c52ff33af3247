/** A playground run: its target, its limits, its rows, and where the time went. The client of the nodes is a stub. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import { EDGE_TARGET, type ReadRequest, type ShardView } from '@vacancy/shared/contract'
import type { ReplyResult, RequestFields } from '@vacancy/shared/wire'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import { problem } from '../http/errors.ts'
import type { Reach } from './ask.ts'
import { createNodeClients } from './node-clients.ts'
import { createLimitsCache, indexOf, limitsOf, plain, rowCount, runQuery } from './query.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')

/** The reply of the nodes, and what was sent to them. */
const wire = vi.hoisted(() => ({ reply: undefined as unknown, sent: [] as unknown[], answer: 40 }))
vi.mock('./node-clients.ts', async (original) => ({
  ...(await original<typeof import('./node-clients.ts')>()),
  clientOf: async (_: unknown, nodes: readonly NodeAddress[]) =>
    ({
      send: async (command: string, fields: object, { watch }: { watch: (seen: AnswerSeen) => void }) => {
        wire.sent.push([nodes.map(({ id }) => id), command, fields])
        const request = Uint8Array.from([0xff, 9, 8, 7, 6, 1, 0, 0, 0, 1])
        const answer = new Uint8Array(wire.answer).fill(0xab)
        watch({ address: 'n1:7777', request, answer, milliseconds: 0 })
        watch({ address: 'n2:7777', request, answer, milliseconds: 3 })
        return await wire.reply
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => {
  wire.sent.length = 0
  wire.answer = 40
  wire.reply = { propertyIds: [] }
})

const config = (values: { [name: string]: string | number }) =>
  JSON.stringify(
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value, origin: 'default', at: '' }])),
  )

type Reply = { readonly status?: number; readonly body: string } | Error

function world(replies: { [node: string]: Reply } = {}, view: Partial<ShardView> = {}) {
  // The cache takes the time 0 for none.
  const clock = turnableClock(NOW - 1_000)
  clock.advance(1_000)
  const requests: unknown[] = []
  const address = (id: string, shard = 's1'): NodeAddress => ({
    ...{ id, shard, zone: 'z1', apiUrl: `http://${id}`, tcp: { host: id, port: 7_777 } },
  })
  const cluster = {
    shards: () => [{ id: 's1', state: 'healthy', message: 'Healthy', ...view }],
    addresses: () => [address('n1'), address('n2')],
    edges: () => [address('n2', '')],
    node: (_: string, id: string) => (id === 'n2' ? { role: 'follower' } : undefined),
    ownerOf: (segment: string) => (segment === 'city' ? 's7' : undefined),
    request: async ({ id }: NodeAddress, path: string, options: object) => {
      requests.push([id, path, options])
      const reply = replies[id] ?? problem('node-timeout')
      if (reply instanceof Error) throw reply
      return { status: reply.status ?? 200, body: reply.body, milliseconds: 1 }
    },
  } as unknown as Cluster
  const reach: Reach = { cluster, clients: createNodeClients(clock, {} as Parameters<typeof createNodeClients>[1]) }
  const limits = createLimitsCache(clock)
  const run = async (command: ReadRequest['command'], parsed: RequestFields = {}, change: Partial<ReadRequest> = {}) =>
    await runQuery(
      reach,
      limits,
      { command, fields: {}, ...change, parsed } as Parameters<typeof runQuery>[2],
      clock.monotonicMs() - 10,
    )
  return { clock, reach, limits, requests, run, replies }
}

// Limits

test.each<[string, { [node: string]: Reply }, number | null, number | null]>([
  ['that the first node reports', { n1: { body: config({ max_dates_in_query: 14, query_limit: '500' }) } }, 14, 500],
  [
    'of the next node',
    { n1: { status: 500, body: config({ query_limit: 1 }) }, n2: { body: config({ query_limit: 5 }) } },
    null,
    5,
  ],
  ['after a page that is not JSON', { n1: { body: 'nonsense' }, n2: { body: config({ query_limit: 5 }) } }, null, 5],
  ['of 0', { n1: { body: config({ max_dates_in_query: 0, query_limit: 1 }) } }, null, 1],
  ['that are not whole', { n1: { body: config({ max_dates_in_query: 1.5, query_limit: 'x' }) } }, null, null],
  ['that no node may report', { n1: { status: 403, body: '' }, n2: { status: 403, body: '' } }, null, null],
  ['of silent nodes', {}, null, null],
])('limits %s', async (_, replies, datesMax, queryLimit) => {
  const { reach, limits } = world(replies)

  expect(await limitsOf(reach, limits, 's1')).toEqual({ datesMax, queryLimit })
})

test('limits are kept for a minute, and a failure to read them is not', async () => {
  const { reach, limits, requests, replies, clock } = world()
  await limitsOf(reach, limits, 's1')
  replies['n1'] = { body: config({ query_limit: 5 }) }

  expect(await limitsOf(reach, limits, 's1')).toMatchObject({ queryLimit: 5 })
  replies['n1'] = { body: config({ query_limit: 6 }) }
  clock.advance(60_000)
  expect(await limitsOf(reach, limits, 's1')).toMatchObject({ queryLimit: 5 })
  expect(requests.map((each) => (each as unknown[])[0])).toEqual(['n1', 'n2', 'n1'])
  expect(requests[0]).toEqual(['n1', '/config', { as: 'admin' }])
  clock.advance(1)
  expect(await limitsOf(reach, limits, 's1')).toMatchObject({ queryLimit: 6 })
})

test('a defect while the limits are read is not hidden', async () => {
  const { reach, limits } = world({ n1: new TypeError('defect') })

  await expect(limitsOf(reach, limits, 's1')).rejects.toThrow('defect')
})

// Results

test.each<[ReplyResult, number]>([
  [{ properties: [{ propertyId: 'a', days: [] }] }, 1],
  [{ propertyIds: ['a', 'b'] }, 2],
  [{ dates: [] }, 0],
  [{ roomTypes: ['a', 'b', 'c'] }, 3],
  [{ exists: true }, 1],
  [{ exists: false }, 0],
  [{ rateFeatures: ['a', 'b'] }, 2],
  [{ propertyId: 'p', date: '', availability: 1, finalPrice: 1, rateFeatures: ['a', 'b'] }, 1],
  [{ availability: 0 }, 1],
  [{}, 0],
])('the result %j has %d rows', (result, rows) => {
  expect(rowCount(result)).toBe(rows)
})

test('the applied index is that of a search or of a write, as text', () => {
  const explain = { rowsExamined: 1, waitingMicros: 1, searchingMicros: 1, appliedIndex: 2n ** 60n }

  expect(indexOf({ explain, index: 1 })).toBe('1152921504606846976')
  expect(indexOf({ index: 0 })).toBe('0')
  expect(indexOf({})).toBeNull()
  expect(plain({ index: 2n ** 60n, list: [1, { big: 1n }] })).toEqual({
    ...{ index: '1152921504606846976', list: [1, { big: '1' }] },
  })
})

test('a run has the result, the node that replied, and the frames', async () => {
  wire.reply = {
    propertyIds: ['a', 'b'],
    explain: { rowsExamined: 9, waitingMicros: 500, searchingMicros: 700, appliedIndex: 70 },
  }
  const { run } = world({ n1: { body: config({ query_limit: 3 }) } })

  expect(await run('SEARCHPROP', { segment: 'city' })).toEqual({
    ...{ shard: 's1', node: 'n2', role: 'follower', command: 'SEARCHPROP', at: new Date(NOW).toISOString() },
    result: wire.reply,
    ...{ count: 2, limit: 3, limited: false, index: '70', examined: 9, attempts: 2, totalMicros: 10_000 },
    hops: [
      { hop: 'control-plane', micros: 7_000 },
      { hop: 'network', micros: 1_800 },
      { hop: 'waiting', micros: 500 },
      { hop: 'searching', micros: 700 },
    ],
    ...{ bytesOut: 10, bytesIn: 49, requestFrame: 'ff090807060100000001', replyCut: false },
    replyFrame: `ff${'09080706'}${'28000000'}${'ab'.repeat(40)}`,
  })
  expect(wire.sent).toEqual([[['n1', 'n2'], 'SEARCHPROP', { segment: 'city' }]])
})

test.each<[number, boolean]>([
  [16_384 - 9, false],
  [16_384 - 8, true],
])('the frame of a reply of %d bytes', async (bytes, isCut) => {
  wire.answer = bytes
  const { replyFrame, replyCut, bytesIn, hops } = await world().run('PROPEXIST')

  expect([replyFrame.length / 2, replyCut, bytesIn]).toEqual([16_384, isCut, bytes + 9])
  expect(hops.slice(1)).toEqual([
    { hop: 'network', micros: 3_000 },
    { hop: 'waiting', micros: null },
    { hop: 'searching', micros: null },
  ])
})

test.each<[RequestFields, number | undefined, number | null, boolean]>([
  [{}, undefined, null, false],
  [{}, 3, 3, false],
  [{}, 2, 2, true],
  [{ limit: 2 }, undefined, 2, true],
  [{ limit: 2 }, 5, 2, true],
  [{ limit: 5 }, 2, 2, true],
])('two rows of a search with %j and the query limit %s', async (fields, queryLimit, limit, limited) => {
  wire.reply = { propertyIds: ['a', 'b'] }
  const { run } = world(queryLimit === undefined ? {} : { n1: { body: config({ query_limit: queryLimit }) } })

  expect(await run('SEARCHPROP', fields)).toMatchObject({ count: 2, limit, limited })
})

test('only searches have a limit', async () => {
  wire.reply = { dates: ['a'] }
  const { run, requests } = world({ n1: { body: config({ query_limit: 1 }) } })

  expect(await run('PROPROOMDATELIST', { limit: 1 })).toMatchObject({ limit: null, limited: false })
  expect(requests).toEqual([])
})

test('through an edge router the shard is the one that owns the segment', async () => {
  const { run, requests } = world({ n1: { body: config({ query_limit: 1 }) } })
  const through = (fields: RequestFields) => run('SEARCHAVAIL', fields, { node: EDGE_TARGET, shard: 's1' })
  wire.reply = { properties: [] }

  expect(await through({ segment: 'city' })).toMatchObject({
    shard: 's7',
    node: 'n2',
    role: 'edge router',
    limit: null,
  })
  expect(await through({ segment: 'coast' })).toMatchObject({ shard: 's1' })
  expect(requests).toEqual([])
})

test('no part of a run takes less than 0', async () => {
  const explain = { rowsExamined: 1, waitingMicros: 2_000, searchingMicros: 1_001, appliedIndex: 1 }
  wire.reply = { propertyIds: [], explain }
  const { reach, limits } = world()
  const request = { command: 'SEARCHPROP', fields: {}, parsed: {} } as Parameters<typeof runQuery>[2]

  const { hops } = await runQuery(reach, limits, request, reach.clients.clock.monotonicMs() - 2)

  expect(hops.map(({ micros }) => micros)).toEqual([0, 0, 2_000, 1_001])
})

// Without a leader

const never = new Promise(() => {})

test.each<[ShardView['state']]>([['no-leader'], ['quorum-lost']])(
  'a read of a shard in state %s ends with the reason when no node replies',
  async (state) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      wire.reply = never
      const run = world({}, { state, message: 'No leader' }).run('PROPEXIST')
      const refused = expect(run).rejects.toMatchObject({ code: 'no-leader', message: 's1 has no leader: No leader.' })
      await vi.advanceTimersByTimeAsync(800)
      await refused
    } finally {
      vi.useRealTimers()
    }
  },
)

test('a read of a shard without a leader has the result of a node that replies', async () => {
  wire.reply = { exists: true }

  expect(await world({}, { state: 'no-leader' }).run('PROPEXIST')).toMatchObject({ count: 1 })
})

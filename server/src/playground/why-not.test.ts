/** Why a property is in a result or not, checked against the result of the node. The nodes are stubs. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import { ProblemError } from '@vacancy/shared/api/route'
import type { RequestFields } from '@vacancy/shared/wire'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import type { Reach } from '../nodes/ask.ts'
import { createLimitsCache } from '../nodes/query.ts'
import { whyNot } from './why-not.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const PROPERTY = {
  ...{ id: 'h1', segment: 'city', area: 'old', type: 'hotel', category: 'family', stars: 3, latitude: 1, longitude: 2 },
  ...{ amenities: ['spa'], room_types: ['double'] },
}

/** What the node of the shard, and those of other shards, reply. */
type Stub = {
  /** Ids of a search for all; by the number of the search. */
  found: (search: number) => readonly string[]
  /** Ids of a search for this property alone. */
  own: readonly string[]
  index: (search: number) => number
  has: boolean
  queryLimit: number | undefined
  nights: { [date: string]: number }
  others: { [shard: string]: boolean | Error }
}
let stub: Stub
let sent: [nodes: string, command: string, fields: RequestFields][]
let searches: number
const wire = vi.hoisted(() => ({ answer: undefined as unknown }))
vi.mock('../nodes/node-clients.ts', async (original) => ({
  ...(await original<typeof import('../nodes/node-clients.ts')>()),
  clientOf: async (_: unknown, nodes: readonly NodeAddress[]) =>
    ({
      send: async (command: string, fields: RequestFields, { watch }: { watch: (seen: AnswerSeen) => void }) => {
        watch({ address: 'a', request: new Uint8Array(9), answer: new Uint8Array(), milliseconds: 1 })
        return await (wire.answer as typeof answer)(nodes, command, fields)
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => {
  stub = { found: () => ['h1'], own: ['h1'], index: () => 7, has: true, queryLimit: 10, nights: {}, others: {} }
  sent = []
  searches = 0
  wire.answer = answer
})

async function answer(nodes: readonly NodeAddress[], command: string, fields: RequestFields): Promise<unknown> {
  sent.push([nodes.map(({ id }) => id).join(), command, fields])
  if (command === 'PROPEXIST') {
    const found = stub.others[nodes[0]?.shard ?? '']
    if (found instanceof Error) throw found
    return { exists: found === true }
  }
  if (command === 'GETPROPROOMDAY') {
    const date = String(fields['date'])
    const availability = stub.nights[date]
    if (availability === undefined) throw new ProblemError(404, 'wire-not-found', '')
    return { date, availability, finalPrice: 100, rateFeatures: [] }
  }
  const explain = { appliedIndex: BigInt(stub.index(searches)) }
  const isOwn = command === 'SEARCHAVAIL' && fields['propertyId'] !== undefined
  const ids = isOwn ? stub.own : stub.found(searches)
  searches++
  if (command === 'SEARCHPROP') return { propertyIds: ids, explain }
  return { properties: ids.map((propertyId) => ({ propertyId, days: [] })), explain }
}

async function why(command: string, fields: object, property = 'h1') {
  const clock = turnableClock(NOW - 1_000)
  clock.advance(1_000)
  const address = (id: string, shard: string) => ({ id, shard, apiUrl: '', tcp: { host: id, port: 1 } })
  const cluster = {
    shards: () => ['s1', ...Object.keys(stub.others)].map((id) => ({ id })),
    addresses: (shard: string) => [address(`n-${shard}`, shard)],
    node: () => undefined,
    request: async (_: NodeAddress, path: string) => {
      const limit = stub.queryLimit && { query_limit: { value: stub.queryLimit, origin: 'default', at: '' } }
      const body = path === '/config' ? { ...limit } : { properties: stub.has ? [PROPERTY] : [], missing: [] }
      return { status: 200, body: JSON.stringify(body), milliseconds: 1 }
    },
  } as unknown as Cluster
  return await whyNot({ cluster, clients: { clock } } as unknown as Reach, createLimitsCache(clock), {
    body: { command, fields, property, shard: 's1' },
    signal: new AbortController().signal,
  } as never)
}
// In the result

const STAY = { segment: 'city', roomType: 'double', dates: ['2026-12-01', '2026-12-02'] }

test('a stay that the filters allow and the node does not offer is unsettled', async () => {
  stub.nights = { '2026-12-01': 3, '2026-12-02': 1 }
  stub.own = []
  stub.found = () => ['x']

  expect(await why('SEARCHAVAIL', STAY)).toMatchObject({ verdict: 'unsettled' })
})

test.each<[ids: string[], fields: object, answer: string]>([
  [['h1'], { segment: 'coast' }, 'returns it'],
  [['x'], { segment: 'city' }, 'does not return it'],
])('a reply of %j that the filters %j do not explain is unsettled', async (found, fields, text) => {
  stub.found = () => found

  expect(await why('SEARCHPROP', fields)).toMatchObject({
    ...{ verdict: 'unsettled', rank: null },
    message: `The node ${text}, which the values below do not explain, because they changed during the read. Try again.`,
  })
  expect(searches).toBe(8)
})

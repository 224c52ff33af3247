/** Why a property is in a result or not, checked against the result of the node. The nodes are stubs. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import type { RequestFields } from '@vacancy/shared/wire'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import { ProblemError } from '../http/route.ts'
import type { Reach } from './ask.ts'
import { createLimitsCache } from './query.ts'
import { asEngineReads, whyNot } from './why-not.ts'

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
vi.mock('./node-clients.ts', async (original) => ({
  ...(await original<typeof import('./node-clients.ts')>()),
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
const ids = (count: number, place = -1) => Array.from({ length: count }, (_, at) => (at === place ? 'h1' : `x${at}`))

test('only searches are explained', async () => {
  await expect(why('PROPEXIST', { propertyId: 'h1' })).rejects.toMatchObject({
    ...{ code: 'no-search', message: 'PROPEXIST is not a search.', field: 'command' },
    hint: 'Use SEARCHPROP or SEARCHAVAIL.',
  })
  await expect(why('SEARCHPROP', { segment: 5 })).rejects.toMatchObject({ code: 'invalid-fields' })
})

test('fields are explained as the engine reads them', () => {
  const fields = { segment: 'city', amenities: ['spa', 'spa', 'pool'] }

  expect(asEngineReads('SEARCHPROP', fields)).toEqual({ segment: 'city', amenities: ['spa', 'pool'] })
})

// In the result

test.each<[place: number, of: number, queryLimit: number | undefined, message: string, limit: number]>([
  [0, 1, 10, 'It is in the result at position 1 of 1.', 10],
  [8, 9, 10, 'It is in the result at position 9 of 9.', 10],
  [9, 10, 10, 'It is in the result at position 10 of more than 9.', 10],
  [1, 3, undefined, 'It is in the result at position 2 of 3.', 3],
])('position %d of %d results', async (place, of, queryLimit, message, limit) => {
  stub.queryLimit = queryLimit
  stub.found = () => ids(of, place)

  expect(await why('SEARCHPROP', { segment: 'city' })).toEqual({
    ...{ property: 'h1', shard: 's1', node: 'n-s1', index: '7', verdict: 'in-result', message },
    rank: { place: place + 1, of, ofAtLeast: of === queryLimit, limit },
    checks: [{ field: 'segment', date: null, ok: true, message: 'segment city' }],
    ...{ wouldMatchIf: [], foundIn: [], missing: [] },
  })
})

test.each<[place: number, limit: number, verdict: string, message: string, own: number]>([
  [1, 2, 'in-result', 'It is in the result at position 2 of 5.', 2],
  [2, 2, 'beyond-limit', 'It matches at position 3 of 5, beyond the limit of 2.', 2],
  [3, 20, 'in-result', 'It is in the result at position 4 of 5.', 10],
])('position %d from 0 with a limit of %d is %s', async (place, limit, verdict, message, own) => {
  stub.found = () => ids(5, place)

  expect(await why('SEARCHPROP', { segment: 'city', limit })).toMatchObject({
    ...{ verdict, message, rank: { place: place + 1, of: 5, ofAtLeast: false, limit: own } },
  })
  expect(sent.map(([, , fields]) => fields)).toEqual([
    { segment: 'city', explain: 1 },
    { segment: 'city', explain: 1 },
  ])
})

test('a property that matches beyond a full reply is beyond the limit', async () => {
  stub.found = () => ids(10)

  expect(await why('SEARCHPROP', { segment: 'city' })).toMatchObject({
    ...{ verdict: 'beyond-limit', message: 'It matches, but is not among the first 10, the limit of a reply.' },
    rank: { place: 11, of: 10, ofAtLeast: true, limit: 10 },
  })
})

test('the id is looked up in the case of the node', async () => {
  expect(await why('SEARCHPROP', { segment: 'city' }, 'H1')).toMatchObject({ verdict: 'in-result' })
})

// Filtered

test.each<[object, string, string[]]>([
  [{ segment: 'city', stars: 4 }, 'One condition is not met.', ['stars were 3']],
  [{ segment: 'city', stars: 4, area: 'new' }, '2 conditions are not met.', ['area were old', 'stars were 3']],
])('the filters %j exclude it', async (fields, message, wouldMatchIf) => {
  stub.found = () => ids(3)

  expect(await why('SEARCHPROP', fields)).toMatchObject({
    ...{ verdict: 'filtered', message, rank: null, wouldMatchIf, index: '7' },
  })
})

const STAY = { segment: 'city', roomType: 'double', dates: ['2026-12-01', '2026-12-02'] }

test('a stay is explained from the nights of the property', async () => {
  stub.nights = { '2026-12-01': 3 }
  stub.own = []
  stub.found = () => []

  const found = await why('SEARCHAVAIL', STAY)

  expect(found).toMatchObject({ verdict: 'filtered', message: 'One condition is not met.' })
  expect(found.checks.filter(({ ok }) => !ok)).toMatchObject([{ date: '2026-12-02' }])
  expect(sent).toEqual([
    ['n-s1', 'SEARCHAVAIL', { ...STAY, explain: 1, propertyId: 'h1' }],
    ['n-s1', 'GETPROPROOMDAY', { propertyId: 'h1', roomType: 'double', date: '2026-12-01' }],
    ['n-s1', 'GETPROPROOMDAY', { propertyId: 'h1', roomType: 'double', date: '2026-12-02' }],
    ['n-s1', 'SEARCHAVAIL', { ...STAY, explain: 1 }],
  ])
})

test('a stay that matches alone is in the result or beyond its limit', async () => {
  stub.nights = { '2026-12-01': 3, '2026-12-02': 1 }

  expect(await why('SEARCHAVAIL', STAY)).toMatchObject({ verdict: 'in-result' })
  stub.found = () => ids(4)
  expect(await why('SEARCHAVAIL', STAY)).toMatchObject({ verdict: 'beyond-limit', rank: { place: 5, of: 4 } })
})

test('a stay that the node offers against the filters is unsettled', async () => {
  stub.nights = { '2026-12-01': 3, '2026-12-02': 1 }

  expect(await why('SEARCHAVAIL', { ...STAY, segment: 'coast' })).toMatchObject({ verdict: 'unsettled' })
})

test('a stay that the filters allow and the node does not offer is unsettled', async () => {
  stub.nights = { '2026-12-01': 3, '2026-12-02': 1 }
  stub.own = []
  stub.found = () => ['x']

  expect(await why('SEARCHAVAIL', STAY)).toMatchObject({ verdict: 'unsettled' })
})

test('a search for another property excludes it', async () => {
  stub.nights = { '2026-12-01': 3, '2026-12-02': 1 }

  expect(await why('SEARCHAVAIL', { ...STAY, propertyId: 'h2' })).toMatchObject({
    ...{ verdict: 'filtered', wouldMatchIf: ['property were h1'] },
  })
  expect(await why('SEARCHAVAIL', { ...STAY, propertyId: 'h1' })).toMatchObject({ verdict: 'in-result' })
})

// Changes during the read

test('a result of one state is found after data was written between the reads', async () => {
  stub.index = (search) => (search < 3 ? search : 3)

  expect(await why('SEARCHPROP', { segment: 'city' })).toMatchObject({ verdict: 'in-result', index: '3' })
  expect(searches).toBe(6)
})

test('after four reads of different states the last one counts', async () => {
  stub.index = (search) => search

  expect(await why('SEARCHPROP', { segment: 'city' })).toMatchObject({ verdict: 'in-result', index: '7' })
  expect(searches).toBe(8)
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

test('a property that a full reply has first is in the result, whatever the filters explain', async () => {
  stub.queryLimit = 1

  expect(await why('SEARCHPROP', { segment: 'coast' })).toMatchObject({ verdict: 'unsettled' })
})

test('a reply that the filters explain at the second try is not unsettled', async () => {
  stub.found = (search) => (search < 2 ? ['x'] : ['h1'])

  expect(await why('SEARCHPROP', { segment: 'city' })).toMatchObject({ verdict: 'in-result' })
  expect(searches).toBe(4)
})

test('without a limit of the nodes a missing property is unsettled', async () => {
  stub.queryLimit = undefined
  stub.found = () => ids(50)

  expect(await why('SEARCHPROP', { segment: 'city' })).toMatchObject({ verdict: 'unsettled' })
})

// Elsewhere

test.each<[Stub['others'], object]>([
  [
    {},
    { verdict: 'nowhere', message: 's1 has no property h9, nor has any other shard: it was removed or never existed.' },
  ],
  [
    { s3: true, s2: true, s4: false },
    { verdict: 'elsewhere', message: 'h9 is not in s1, but in s2, s3.', foundIn: ['s2', 's3'] },
  ],
  [
    { s2: new ProblemError(504, 'node-silent', 'n-s2 did not respond') },
    {
      verdict: 'nowhere',
      message: 's1 has no property h9: it was removed or never existed. 1 shards did not respond.',
      missing: [
        { source: 's2', code: 'node-silent', message: 'n-s2 did not respond', since: '2026-11-22T12:00:00.000Z' },
      ],
    },
  ],
])('a property that the shard does not have: case %#', async (others, expected) => {
  stub.has = false
  stub.others = others

  expect(await why('SEARCHAVAIL', STAY, 'h9')).toEqual({
    ...{ property: 'h9', shard: 's1', node: 'n-s1', index: '7', rank: null, checks: [], wouldMatchIf: [] },
    ...{ foundIn: [], missing: [], ...expected },
  })
  expect(sent.filter(([, command]) => command === 'GETPROPROOMDAY')).toEqual([])
  expect(sent.filter(([nodes, command]) => command === 'PROPEXIST' && nodes === 'n-s1')).toEqual([])
})

test('a defect while other shards are read is not hidden', async () => {
  stub.has = false
  stub.others = { s2: new TypeError('defect') }

  await expect(why('SEARCHPROP', { segment: 'city' })).rejects.toThrow('defect')
})

/** Reads beside the form of a search. The node is a stub. */

import type { VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import { ProblemError } from '@vacancy/shared/api/route'
import { CONTROL_ROUTES } from '@vacancy/shared/contract'
import { fieldsFromJson, type JsonFields, type RequestFields } from '@vacancy/shared/wire'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster } from '../cluster/cluster.ts'
import type { Reach } from '../nodes/ask.ts'
import { arrivalTotals, filterCounts } from './beside-form.ts'

const SEARCH = { segment: 'city', roomType: 'double', dates: ['2026-12-01', '2026-12-02'] }

const node = vi.hoisted(() => ({ answer: (): object => ({}), sent: [] as [command: string, fields: unknown][] }))
vi.mock('../nodes/node-clients.ts', async (original) => ({
  ...(await original<typeof import('../nodes/node-clients.ts')>()),
  clientOf: async () =>
    ({
      send: async (command: string, fields: RequestFields, { watch }: { watch: (seen: object) => void }) => {
        node.sent.push([command, fields])
        watch({ address: 'n1:1' })
        return node.answer()
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => void node.sent.splice(0))

const reach = {
  cluster: {
    shards: () => [{ id: 's1' }],
    shard: () => ({ window: { from: '2026-11-20', to: '2026-12-31' } }),
    addresses: () => [{ id: 'n1', shard: 's1', apiUrl: '', tcp: { host: 'n1', port: 1 } }],
    node: () => undefined,
  } as unknown as Cluster,
  clients: { clock: turnableClock(Date.parse('2026-11-22T12:00:00.000Z')) },
} as unknown as Reach

/** Calls a handler with a body and checks its answer, like the server. */
async function ask<Answer>(
  route: 'POST /api/v1/query/counts' | 'POST /api/v1/query/arrivals',
  handler: (reach: Reach, request: never) => Promise<Answer>,
  command: string,
  fields: object,
): Promise<Answer> {
  const body = CONTROL_ROUTES[route].body.parse({ command, fields })
  const answer = await handler(reach, { body, signal: new AbortController().signal } as never)
  CONTROL_ROUTES[route].response.parse(answer)
  return answer
}

const arrivals = (command: string, fields: object) => ask('POST /api/v1/query/arrivals', arrivalTotals, command, fields)
const counts = (command: string, fields: object) => ask('POST /api/v1/query/counts', filterCounts, command, fields)

test('counts are of all matches, without the page, order and values of the search', async () => {
  node.answer = () => ({
    properties: [],
    facets: { stars: [{ value: 4, count: 7 }], roomType: [{ value: 'suite', count: 2 }] },
  })
  const { roomType: _, ...anyRoom } = { ...SEARCH, roomTypes: ['suite'], stars: 4 }
  const page = { limit: 25, order: 1, want: 1, count: 1, cursor: 'c', explain: 1, compact: 1, facets: 1, cells: [2, 2] }

  expect(await counts('SEARCHAVAIL', { ...anyRoom, ...page })).toEqual({
    ...{ shard: 's1', node: 'n1' },
    filters: [
      { field: 'stars', values: [{ value: '4', count: 7 }], more: false },
      { field: 'roomTypes', values: [{ value: 'suite', count: 2 }], more: false },
    ],
  })
  // All but totals; those of one value are counted without their own filter.
  const counting = { facets: 0b1011_1111, disjunctiveFacets: 0b1000_1111, facetValues: 255, limit: 1 }
  expect(node.sent).toEqual([['SEARCHAVAIL', { ...anyRoom, ...counting }]])
  expect(() => fieldsFromJson('SEARCHAVAIL', node.sent[0]?.[1] as JsonFields)).not.toThrow()

  await counts('SEARCHAVAIL', SEARCH)
  await counts('SEARCHPROP', { segment: 'city' })
  expect(node.sent.slice(1)).toMatchObject(
    [
      [{}, { facets: 0b11_1111, disjunctiveFacets: 0b1111 }],
      [{}, { facets: 0b1_1111, disjunctiveFacets: 0b1111 }],
    ].map(([, fields]) => [expect.anything(), fields]),
  )
})

test('a facet with as many values as a node returns may have more', async () => {
  const values = Array.from({ length: 255 }, (_, n) => ({ value: `a${n}`, count: 1 }))
  node.answer = () => ({ propertyIds: [], facets: { area: values } })

  expect((await counts('SEARCHPROP', { segment: 'city' })).filters).toMatchObject([{ field: 'area', more: true }])
})

test('only searches have counts, and a refusal of the node is passed on', async () => {
  await expect(counts('GETSEGMENTS', {})).rejects.toMatchObject({ status: 400, code: 'no-search' })
  await expect(counts('SEARCHPROP', { colour: 'red' })).rejects.toMatchObject({ status: 400, code: 'invalid-fields' })
  node.answer = () => {
    throw new ProblemError(400, 'wire-validation-error', 'unknown field 0x800e')
  }
  await expect(counts('SEARCHPROP', { segment: 'city' })).rejects.toThrow('unknown field 0x800e')
})

test('the lowest totals are those of the search by arrival, a week before it to two after, within the window', async () => {
  node.answer = () => ({
    nights: 2,
    days: [
      { arrival: '2026-11-30', properties: 0 },
      { arrival: '2026-12-01', total: 300n, properties: 4, best: 'h1' },
    ],
  })
  const filters = { stars: 4, rateFeatures: ['breakfast'], maxTotal: 900, south: 1, west: 2, north: 3, east: 4 }
  const { dates: _, ...where } = SEARCH

  // Without a hit there is no price.
  expect((await arrivals('SEARCHAVAIL', { ...SEARCH, ...filters, order: 1, limit: 25, explain: 1 })).days).toEqual([
    { arrival: '2026-11-30', total: null, properties: 0 },
    { arrival: '2026-12-01', total: 300, properties: 4 },
  ])
  const window = { from: '2026-11-24', to: '2026-12-14', nights: 2 }
  expect(node.sent).toEqual([['PRICECAL', { ...where, ...filters, ...window }]])
  expect(() => fieldsFromJson('PRICECAL', node.sent[0]?.[1] as JsonFields)).not.toThrow()

  await arrivals('SEARCHAVAIL', { ...SEARCH, dates: ['2026-11-22'] })
  await arrivals('SEARCHAVAIL', { ...SEARCH, dates: ['2026-12-30', '2026-12-31'] })
  expect(node.sent.slice(1).map(([, fields]) => fields)).toMatchObject([
    { from: '2026-11-20', to: '2026-12-05', nights: 1 },
    { from: '2026-12-23', to: '2026-12-31', nights: 2 },
  ])
  expect((await arrivals('SEARCHAVAIL', { ...SEARCH, dates: ['2027-02-01'] })).days).toEqual([])
  expect(node.sent).toHaveLength(3)
})

test('only a stay of consecutive nights has other arrivals', async () => {
  await expect(arrivals('SEARCHPROP', { segment: 'city' })).rejects.toMatchObject({ status: 400, code: 'no-search' })
  const days = Array.from({ length: 31 }, (_, n) => `2026-12-${String(n + 1).padStart(2, '0')}`)
  for (const dates of [['2026-12-01', '2026-12-03'], ['2026-12-01', '2026-12-01'], ['soon'], days])
    await expect(arrivals('SEARCHAVAIL', { ...SEARCH, dates })).rejects.toMatchObject({
      status: 400,
      code: 'invalid-fields',
    })
})

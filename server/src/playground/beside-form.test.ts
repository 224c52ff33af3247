/** Reads beside the form of a search. The node is a stub. */

import type { VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import { ProblemError } from '@vacancy/shared/api/route'
import { CONTROL_ROUTES } from '@vacancy/shared/contract'
import { fieldsFromJson, type JsonFields, type RequestFields } from '@vacancy/shared/wire'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster } from '../cluster/cluster.ts'
import type { Reach } from '../nodes/ask.ts'
import { filterCounts } from './beside-form.ts'

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
  route: 'POST /api/v1/query/counts',
  handler: (reach: Reach, request: never) => Promise<Answer>,
  command: string,
  fields: object,
): Promise<Answer> {
  const body = CONTROL_ROUTES[route].body.parse({ command, fields })
  const answer = await handler(reach, { body, signal: new AbortController().signal } as never)
  CONTROL_ROUTES[route].response.parse(answer)
  return answer
}

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

/** Searches without one of their filters, attributes of results, and the nights of a segment. The node is a stub. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import type { RequestFields } from '@vacancy/shared/wire'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import type { Reach } from './ask.ts'
import { propertiesOf } from './properties.ts'
import { createLimitsCache } from './query.ts'
import { relax } from './relax.ts'
import { createDaysCache, segmentDays } from './segment-days.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')

/** What the node replies: ids of a search by its fields, and bodies by path. */
const node = vi.hoisted(() => ({
  count: (_: unknown): number => 0,
  searches: [] as RequestFields[],
  paths: [] as string[],
  body: (_: string): unknown => ({}),
}))
vi.mock('./node-clients.ts', async (original) => ({
  ...(await original<typeof import('./node-clients.ts')>()),
  clientOf: async () =>
    ({
      send: async (_: string, fields: RequestFields, { watch }: { watch: (seen: AnswerSeen) => void }) => {
        node.searches.push(fields)
        watch({ address: 'a', request: new Uint8Array(9), answer: new Uint8Array(), milliseconds: 1 })
        return { propertyIds: Array.from({ length: node.count(fields) }, (_, at) => `h${at}`) }
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => {
  Object.assign(node, { count: () => 0, searches: [], paths: [], body: () => ({}) })
})

function world(queryLimit?: number) {
  const clock = turnableClock(NOW - 1_000)
  clock.advance(1_000)
  const cluster = {
    shards: () => [{ id: 's1' }],
    addresses: () => [{ id: 'n1', shard: 's1', zone: 'z1', apiUrl: '', tcp: { host: 'n1', port: 1 } }],
    node: () => undefined,
    request: async (_: NodeAddress, path: string) => {
      if (path !== '/config') node.paths.push(path)
      const config = queryLimit === undefined ? {} : { query_limit: { value: queryLimit, origin: 'default', at: '' } }
      const body = path === '/config' ? config : node.body(path)
      return { status: body === undefined ? 500 : 200, body: JSON.stringify(body) ?? 'broken', milliseconds: 1 }
    },
  } as unknown as Cluster
  const reach = { cluster, clients: { clock } } as unknown as Reach
  const { signal } = new AbortController()
  const days = createDaysCache(clock)
  return {
    clock,
    relax: (command: string, fields: object) =>
      relax(reach, createLimitsCache(clock), { body: { command, fields }, signal } as never),
    properties: (ids: readonly string[]) => propertiesOf(reach, { body: { ids }, signal } as never),
    days: (segment: string) => segmentDays(reach, days, { query: { segment } } as never),
  }
}

// Looser searches

test('only searches have filters', async () => {
  await expect(world().relax('PROPEXIST', { propertyId: 'h1' })).rejects.toMatchObject({
    ...{ code: 'no-search', message: 'PROPEXIST is not a search.', field: 'command' },
  })
})

test('each filter is left out once, without limit and explanation', async () => {
  const position = { longitude: 1, latitude: 2, radiusMetres: 500 }
  const fields = { segment: 'city', area: 'old', minStars: 3, ...position, amenities: ['spa', 'pool'] }

  const { tried } = await world().relax('SEARCHPROP', { ...fields, limit: 5, explain: 1 })

  const { area: _, ...noArea } = fields
  const { minStars: __, ...noStars } = fields
  const { longitude: _x, latitude: _y, radiusMetres: _r, ...noPosition } = fields
  const expected = [noArea, noStars, noPosition, { ...fields, amenities: ['pool'] }, { ...fields, amenities: ['spa'] }]
  expect(tried.map(({ field, entry }) => [field, entry])).toHaveLength(node.searches.length)
  for (const each of expected) expect(node.searches).toContainEqual(each)
  expect(tried).toContainEqual({ field: 'amenities', entry: 'spa', count: 0, limited: false })
  expect(tried).toContainEqual({ field: 'longitude', entry: null, count: 0, limited: false })
})

test('a stay without its number of rooms requires none, and keeps its last night', async () => {
  const stay = { segment: 'city', roomType: 'double', dates: ['2026-12-01'], availability: 2 }

  await world().relax('SEARCHAVAIL', stay)
  expect(node.searches).toContainEqual({ ...stay, availability: 0 })
  expect(node.searches).not.toContainEqual({ ...stay, dates: [] })

  await world().relax('SEARCHAVAIL', { ...stay, dates: ['2026-12-01', '2026-12-02'] })
  expect(node.searches).toContainEqual({ ...stay, dates: ['2026-12-02'] })
})

test('the filter that excludes most is first, and a full reply is limited', async () => {
  node.count = (fields) => ((fields as RequestFields)['area'] === undefined ? 7 : 6)

  const { shard, node: id, tried } = await world(7).relax('SEARCHPROP', { segment: 'city', category: 'x', area: 'old' })

  expect([shard, id, tried[0]]).toEqual(['s1', 'n1', { field: 'area', entry: null, count: 7, limited: true }])
  expect(tried.slice(1).every(({ count, limited }) => count === 6 && !limited)).toBe(true)
})

test.each([
  [39, 39],
  [40, 40],
  [41, 40],
])('of %d amenities %d are left out, each in a search of its own', async (count, searches) => {
  const amenities = Array.from({ length: count }, (_, at) => `a${at}`)

  const { tried } = await world().relax('SEARCHPROP', { segment: 'city', amenities })

  expect(tried.filter(({ field }) => field === 'amenities')).toHaveLength(searches)
})

// Attributes

const property = (id: string) => ({
  ...{ id, segment: 'city', area: 'old', type: 'hotel', category: 'family', stars: 3, latitude: 1, longitude: 2 },
  ...{ amenities: [], room_types: [] },
})

test('attributes are requested once for each valid id; the others are missing', async () => {
  node.body = () => ({ properties: [property('a')], missing: [] })

  const found = await world().properties(['a', 'b', 'a', 'c,d', 'x'.repeat(65)])

  expect(node.paths).toEqual(['/properties?ids=a,b'])
  expect(found).toMatchObject({ shard: 's1', node: 'n1', properties: [{ id: 'a' }] })
  expect(found.missing).toEqual(['b', 'c,d', 'x'.repeat(65)])
})

test.each([
  [0, 0],
  [200, 1],
  [201, 2],
])('%d ids need %d requests', async (count, requests) => {
  node.body = () => ({ properties: [], missing: [] })

  await world().properties(Array.from({ length: count }, (_, at) => `h${at}`))

  expect(node.paths).toHaveLength(requests)
})

// Nights of a segment

const page = (
  names: readonly string[],
  more: boolean,
  window: object | null = { from: '2026-12-01', to: '2026-12-02' },
) => ({
  ...{ properties: 1, packages: 1, ordered_hash: '0'.repeat(64), applied_index: null, window, more },
  segments: names.map((name) => ({ name, properties: 1, packages: [1, name.length] })),
})

test('the nights of a segment are on the page after its name without the last character', async () => {
  node.body = (path) => (path.endsWith('after=cit') ? page(['cit-a', 'cit-b'], true) : page(['city'], false))
  const { days, clock } = world()

  expect(await days('city')).toEqual({
    ...{ shard: 's1', segment: 'city', window: { from: '2026-12-01', to: '2026-12-02' }, packages: [1, 4] },
    at: '2026-11-22T12:00:00.000Z',
  })
  expect(node.paths).toEqual(['/coverage?after=cit', '/coverage?after=cit-b'])
  clock.advance(60_000)
  await days('city')
  expect(node.paths).toHaveLength(2)
  clock.advance(1)
  await days('city')
  expect(node.paths).toHaveLength(4)
})

test.each<[string, unknown]>([
  ['of the last page', page(['cit-a'], false)],
  ['of an empty page', page([], true)],
])('an unknown segment is not searched for beyond the end %s', async (_, body) => {
  node.body = () => body

  expect(await world().days('city')).toMatchObject({ window: null, packages: [] })
  expect(node.paths).toHaveLength(1)
})

test('at most 20 pages are read', async () => {
  node.body = () => page(['cit-a'], true)

  expect(await world().days('city')).toMatchObject({ window: null, packages: [] })
  expect(node.paths).toHaveLength(20)
})

test('a segment without packages has no nights', async () => {
  node.body = () => page(['city'], false, null)

  expect(await world().days('city')).toMatchObject({ window: null, packages: [] })
})

test.each<[unknown, string]>([
  [undefined, 'n1 answered 500 to /coverage: broken'],
  [{}, 'n1 answered 200 to /coverage: the response has no coverage'],
])('the response %j is refused', async (body, message) => {
  node.body = () => body

  await expect(world().days('city')).rejects.toMatchObject({ code: 'node-answer', message })
})

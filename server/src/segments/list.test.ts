/** Segments of a shard, and the properties of one, from searches with a limited reply. The node is a small model. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import type { RequestFields } from '@vacancy/shared/wire'
import { createRandom, pick } from '@vacancy/testkit/random'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import type { Reach } from '../playground/ask.ts'
import { createSegmentsCache, segmentProperties, segmentsOf } from './list.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')

type Property = {
  id: string
  segment: string
  area: string
  type: string
  category: string
  stars: number
  amenities: string[]
}
const property = (id: string, change: Partial<Property> = {}): Property => ({
  ...{ id, segment: 'city', area: 'old', type: 'hotel', category: 'family', stars: 3, amenities: [], ...change },
})

/** What the node has, and the requests that it got. */
const node = vi.hoisted(() => ({
  properties: [] as unknown[],
  limit: 1_000,
  searches: [] as RequestFields[],
  paths: [] as string[],
  replies: {} as { [path: string]: { status: number; body: string } },
}))
const all = () => node.properties as Property[]
const matches = (each: Property, fields: RequestFields) =>
  each.segment === fields['segment'] &&
  each.area === (fields['area'] ?? each.area) &&
  each.type === (fields['propertyType'] ?? each.type) &&
  each.category === (fields['category'] ?? each.category) &&
  each.stars === (fields['stars'] ?? each.stars) &&
  each.stars >= Number(fields['minStars'] ?? 0) &&
  ((fields['amenities'] ?? []) as string[]).every((name) => each.amenities.includes(name))

vi.mock('../playground/node-clients.ts', () => ({
  clientOf: async () =>
    ({
      send: async (_: string, fields: RequestFields, { watch }: { watch: (seen: AnswerSeen) => void }) => {
        node.searches.push(fields)
        watch({ address: 'a', request: new Uint8Array(9), answer: new Uint8Array(), milliseconds: 1 })
        const found = all().filter((each) => matches(each, fields))
        return { propertyIds: found.slice(0, node.limit).map(({ id }) => id) }
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => {
  Object.assign(node, { properties: [], limit: 1_000, searches: [], paths: [], replies: {} })
})

const counted = (names: readonly string[]) =>
  [...new Set(names)].sort().map((word) => ({ word, properties: names.filter((name) => name === word).length }))

/** The HTTP API of the node. */
function reply(path: string): { status: number; body: string } {
  node.paths.push(path)
  const [bare, query = ''] = path.split('?') as [string, string?]
  const given = node.replies[bare]
  if (given) return given
  const parameters = new URLSearchParams(query)
  if (bare === '/properties') {
    const ids = new Set((/ids=(.*)/.exec(query)?.[1] ?? '').split(',').map(decodeURIComponent))
    const found = all().filter(({ id }) => ids.has(id))
    const properties = found.map((each) => ({ ...each, latitude: 1, longitude: 2, room_types: [] }))
    return { status: 200, body: JSON.stringify({ properties, missing: [] }) }
  }
  const kind = parameters.get('kind') as 'area' | 'type' | 'category' | 'segment'
  const inside = all().filter(({ segment }) => kind === 'segment' || segment === parameters.get('segment'))
  const words = counted(inside.map((each) => each[kind])).filter(({ word }) =>
    word.startsWith(parameters.get('prefix') ?? ''),
  )
  return {
    status: 200,
    body: JSON.stringify({ kind, segment: null, words: words.slice(0, 1_000), more: words.length > 1_000 }),
  }
}

function world() {
  const clock = turnableClock(NOW - 1_000)
  clock.advance(1_000)
  const cluster = {
    shards: () => [{ id: 's1' }],
    addresses: () => [{ id: 'n1', shard: 's1', zone: 'z1', apiUrl: '', tcp: { host: 'n1', port: 1 } }],
    node: () => undefined,
    request: async (_: NodeAddress, path: string) => ({ milliseconds: 1, ...reply(path) }),
  } as unknown as Cluster
  const reach = { cluster, clients: { clock } } as unknown as Reach
  const cache = createSegmentsCache(clock)
  const signal = new AbortController().signal
  return {
    clock,
    properties: (query: object = {}, segment = 'city') =>
      segmentProperties(reach, { params: { shard: 's1', segment }, query, signal } as never),
    segments: (query: object = {}) =>
      segmentsOf(reach, cache, { params: { shard: 's1' }, query: { after: '', limit: 100, ...query } } as never),
  }
}
const idsOf = ({ properties }: { properties: readonly { id: string }[] }) => properties.map(({ id }) => id)
const numbered = (count: number, change: (at: number) => Partial<Property> = () => ({})) =>
  Array.from({ length: count }, (_, at) => property(`h${String(at).padStart(5, '0')}`, change(at)))

// Segments

const coverage = (change: object = {}) => ({
  status: 200,
  body: JSON.stringify({
    ...{ properties: 3, packages: 9, ordered_hash: '0'.repeat(64), applied_index: 1, more: true },
    window: { from: '2026-12-01', to: '2026-12-03' },
    segments: [
      { name: 'city', properties: 2, packages: [1, 2, 3] },
      { name: 'coast', properties: 1, packages: [0, 0, 4] },
    ],
    ...change,
  }),
})

test('segments have their areas, and packages by night', async () => {
  node.properties = [property('a'), property('b', { area: 'new' }), property('c', { segment: 'coast' })]
  node.replies['/coverage'] = coverage()

  expect(await world().segments({ after: 'b', limit: 2 })).toEqual({
    ...{ shard: 's1', node: 'n1', window: { from: '2026-12-01', to: '2026-12-03' }, more: true },
    segments: [
      { name: 'city', properties: 2, areas: 2, packages: 6, nights: [1, 2, 3] },
      { name: 'coast', properties: 1, areas: 1, packages: 4, nights: [0, 0, 4] },
    ],
    at: '2026-11-22T12:00:00.000Z',
  })
  expect(node.paths).toEqual([
    '/coverage?after=b&limit=2',
    '/words?kind=area&segment=city&limit=1000',
    '/words?kind=area&segment=coast&limit=1000',
  ])
})

test('without a window there are no nights, and too many areas are not counted', async () => {
  node.properties = numbered(1_001, (at) => ({ area: `a${at}` }))
  node.replies['/coverage'] = coverage({
    ...{ window: null, more: false, segments: [{ name: 'city', properties: 1_001, packages: [] }] },
  })

  expect(await world().segments()).toMatchObject({
    ...{ window: null, more: false },
    segments: [{ areas: null, nights: [], packages: 0 }],
  })
})

test('a page of segments is kept for a minute', async () => {
  const { segments, clock } = world()
  node.replies['/coverage'] = coverage({ segments: [] })
  await segments()
  await segments()
  expect(node.paths).toHaveLength(1)
  await segments({ after: 'x' })
  await segments({ limit: 5 })
  expect(node.paths).toHaveLength(3)
  clock.advance(60_000)
  await segments()
  expect(node.paths).toHaveLength(3)

  clock.advance(1)
  await segments()
  expect(node.paths).toHaveLength(4)
})

test.each<[string, { status: number; body: string }, string]>([
  ['/coverage', { status: 500, body: 'broken' }, 'n1 answered 500 to /coverage: broken'],
  ['/coverage', { status: 200, body: '{}' }, 'n1 answered 200 to /coverage: the response has no coverage'],
  ['/words', { status: 403, body: 'no' }, 'n1 answered 403 to /words: no'],
  ['/words', { status: 200, body: '{' }, 'n1 answered 200 to /words: the response is not a list of words'],
])('the response of %s is refused: case %#', async (path, response, message) => {
  node.replies = { '/coverage': coverage(), [path]: response }

  await expect(world().segments()).rejects.toMatchObject({ code: 'node-answer', message })
})

// Properties of a segment

test('the properties of a segment are listed by id', async () => {
  node.properties = [property('b'), property('a', { amenities: ['spa'] }), property('z', { segment: 'city2' })]

  const found = await world().properties()

  expect(found).toMatchObject({ shard: 's1', segment: 'city', node: 'n1', total: 2, more: false })
  expect([idsOf(found), found.properties[0]?.amenities, found.at]).toEqual([
    ...[['a', 'b'], ['spa'], '2026-11-22T12:00:00.000Z'],
  ])
  expect(node.searches).toEqual([{ segment: 'city' }])
  expect(node.paths).toEqual(['/words?kind=segment&prefix=city&limit=1000', '/properties?ids=b,a'])
})

test('a segment that is not in use has no total', async () => {
  expect(await world().properties({}, 'none')).toMatchObject({ total: null, properties: [], more: false })
})

test.each<[object, object]>([
  [{ area: 'old' }, { area: 'old' }],
  [{ type: 'hotel' }, { propertyType: 'hotel' }],
  [{ category: 'family' }, { category: 'family' }],
  [{ stars: 3 }, { minStars: 3 }],
  [{ amenity: 'spa' }, { amenities: ['spa'] }],
])('the filter %j is a search with %j', async (query, fields) => {
  node.properties = [
    property('a', { amenities: ['spa'] }),
    property('b', { area: 'new', type: 'hostel', category: 'youth', stars: 2 }),
  ]

  expect(idsOf(await world().properties(query))).toEqual(['a'])
  expect(node.searches).toEqual([{ segment: 'city' }, { segment: 'city', ...fields }])
})

test('a segment with more properties than a reply holds is divided until its parts fit', async () => {
  node.limit = 3
  node.properties = [...numbered(3, () => ({ area: 'new', type: 'hostel' })), ...['x1', 'x2'].map((id) => property(id))]

  const found = await world().properties()

  expect([idsOf(found).length, found.more]).toEqual([5, true])
  node.limit = 4
  const fits = await world().properties()
  expect([idsOf(fits).length, fits.more, fits.total]).toEqual([5, false, 5])
})

test('drawn segments are listed completely, or say that there is more', async () => {
  const seed = Number(process.env['VACANCY_SEED'] ?? 1)
  const random = createRandom(seed)
  for (let round = 0; round < 15; round++) {
    node.limit = 2 + random.below(8)
    node.properties = numbered(random.below(40), () => ({
      ...{ area: pick(random, ['old', 'new', 'port']), type: pick(random, ['hotel', 'hostel']) },
      ...{ category: pick(random, ['family', 'youth']), stars: 1 + random.below(5) },
    }))
    const query = random.below(2) === 0 ? {} : { stars: 1 + random.below(5) }
    const message = `seed ${seed}, round ${round}: ${node.limit} a reply, ${JSON.stringify(query)}`
    const wanted = all().filter(({ stars }) => stars >= (query.stars ?? 0))

    const found = await world().properties(query)

    const listed = idsOf(found)
    const expected = wanted.map(({ id }) => id)
    expect(expected, message).toEqual(expect.arrayContaining(listed))
    if (!found.more) expect(listed, message).toEqual(expected)
    // Only a group of equal properties that fills a reply is incomplete.
    const groups = new Map<string, number>()
    for (const each of wanted) {
      const key = [each.area, each.type, each.category, each.stars].join()
      groups.set(key, (groups.get(key) ?? 0) + 1)
    }
    const isCut = [...groups.values()].some((count) => count >= node.limit)
    if (!isCut) expect(listed, message).toEqual(expected)
  }
})

test('a filtered field is not divided again, and stars start at the least ones', async () => {
  node.limit = 2
  node.properties = numbered(6, (at) => ({ stars: 3 + (at % 3) }))

  await world().properties({ area: 'old', type: 'hotel', category: 'family', stars: 4 })

  const filters = { segment: 'city', area: 'old', propertyType: 'hotel', category: 'family', minStars: 4 }
  expect(node.searches).toEqual([{ segment: 'city' }, filters, { ...filters, stars: 4 }, { ...filters, stars: 5 }])
})

test.each([
  [5_000, false],
  [5_001, true],
])('of %d properties at most 5,000 are listed', async (count, more) => {
  node.limit = 10_000
  node.properties = numbered(count)

  const found = await world().properties()

  expect([found.properties.length, found.more, found.total]).toEqual([5_000, more, count])
  expect(node.paths.filter((path) => path.startsWith('/properties'))).toHaveLength(25)
})

test('at most 400 searches are made for one list', async () => {
  node.limit = 2
  node.properties = numbered(900, (at) => ({ area: `a${at >> 1}` }))

  expect(await world().properties()).toMatchObject({ more: true, total: 900 })
  expect(node.searches).toHaveLength(400)
})

test('properties with a comma in their id are left out', async () => {
  node.properties = [property('a,b'), property('c')]

  expect(await world().properties()).toMatchObject({ properties: [{ id: 'c' }], total: 2, more: false })
})

/** Segments of a shard, and the properties of one, from searches with a limited reply. The node is a small model. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import type { RequestFields } from '@vacancy/shared/wire'
import { createRandom, pick } from '@vacancy/testkit/random'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import type { Reach } from '../nodes/ask.ts'
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

vi.mock('../nodes/node-clients.ts', () => ({
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

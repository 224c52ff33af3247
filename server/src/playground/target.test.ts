/** The shard and nodes of a query, and the one node for related reads. */

import type { NodeView } from '@vacancy/shared/contract'
import { EDGE_TARGET } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import { edgeTarget, oneNode, targetOf } from './target.ts'

const address = (id: string, shard = 's1'): NodeAddress => ({
  ...{ id, shard, zone: 'z1', apiUrl: `http://${id}`, tcp: { host: id, port: 7_777 } },
})

function clusterWith(shards: { readonly [shard: string]: readonly string[] }, more: Partial<Cluster> = {}): Cluster {
  return {
    shards: () => Object.keys(shards).map((id) => ({ id })),
    addresses: (shard: string) => (shards[shard] ?? []).map((id) => address(id, shard)),
    ...more,
  } as unknown as Cluster
}
const idsOf = ({ shard, nodes }: ReturnType<typeof targetOf>) => [shard, nodes.map(({ id }) => id)]
const errorOf = (run: () => unknown) => {
  try {
    return run()
  } catch (error) {
    const { code, message, field, hint } = error as { code: string; message: string; field: string; hint: string }
    return { code, message, field, hint }
  }
}

const TWO = clusterWith({ s1: ['n1', 'n2'], s2: ['n3'] })

test.each<[object, unknown]>([
  [{ shard: 's1' }, ['s1', ['n1', 'n2']]],
  [{ shard: 's2' }, ['s2', ['n3']]],
  [{ shard: 's1', node: 'n2' }, ['s1', ['n2']]],
  [{ shard: 's1', node: '' }, ['s1', ['n1', 'n2']]],
  [{ shard: 's1', node: EDGE_TARGET }, ['s1', ['n1', 'n2']]],
])('the target of %j is %j', (request, expected) => {
  expect(idsOf(targetOf(TWO, request))).toEqual(expected)
})

test.each([undefined, ''])('with a single shard none has to be given: %j', (shard) => {
  expect(idsOf(targetOf(clusterWith({ s7: ['n1'] }), { shard }))).toEqual(['s7', ['n1']])
})

test.each<[Cluster, object, object]>([
  [clusterWith({}), {}, { code: 'no-shard' }],
  [
    TWO,
    {},
    {
      code: 'shard-required',
      message: 'There are 2 shards: give one of them.',
      field: 'shard',
      hint: 'Known: s1, s2.',
    },
  ],
  [
    TWO,
    { shard: 's3' },
    { code: 'shard-not-found', message: 'There is no shard s3.', field: 'shard', hint: 'Known: s1, s2.' },
  ],
  [clusterWith({ s1: [] }), { shard: 's1' }, { code: 'shard-not-found', hint: 'Known: s1.' }],
  [clusterWith({}), { shard: 's1' }, { code: 'shard-not-found', hint: '' }],
  [
    clusterWith({}, { addresses: () => [address('n1', '')] }),
    { shard: 's1' },
    { code: 'shard-not-found', message: 'There is no shard s1.' },
  ],
  [
    TWO,
    { shard: 's1', node: 'n3' },
    { code: 'node-not-found', message: 'Shard s1 has no node n3.', field: 'node', hint: 'Known: n1, n2.' },
  ],
])('a wrong target is refused: case %#', (cluster, request, expected) => {
  expect(errorOf(() => targetOf(cluster, request))).toMatchObject(expected)
})

test.each([
  [20, ''],
  [21, ', and 1 more'],
])('of %d nodes the first 20 are listed%s', (count, more) => {
  const ids = Array.from({ length: count }, (_, at) => `n${at + 10}`)
  const cluster = clusterWith({ s1: ids })

  expect(errorOf(() => targetOf(cluster, { shard: 's1', node: 'x' }))).toMatchObject({
    hint: `Known: ${ids.slice(0, 20).join(', ')}${more}.`,
  })
})

// Edge routers

const EDGES = {
  edges: () => [address('e1', '')],
  ownerOf: (segment: string) => (segment === 'city' ? 's7' : undefined),
}

test.each([
  ['city', 's1', 's7'],
  ['coast', 's1', 's1'],
  [undefined, 's1', 's1'],
  ['coast', undefined, ''],
])('through edge routers segment %s with shard %s is of shard %j', (segment, shard, expected) => {
  expect(idsOf(edgeTarget(clusterWith({}, EDGES as never), segment, shard))).toEqual([expected, ['e1']])
})

test('without an edge router there is no target', () => {
  expect(errorOf(() => edgeTarget(clusterWith({}, { edges: () => [] }), 'city', 's1'))).toMatchObject({
    code: 'no-edge',
  })
})

// One node

type Seen = Partial<NodeView> | 'unknown' | 'no address'
/** From the best to the worst; nodes of a group are equal. */
const RANKS: readonly (readonly Seen[])[] = [
  [
    { state: 'healthy', role: 'follower', freshness: 'live' },
    { state: 'healthy', role: 'standalone', freshness: 'live' },
  ],
  [{ state: 'healthy', role: 'leader', freshness: 'live' }],
  [{ state: 'degraded' as NodeView['state'], role: 'follower', freshness: 'live' }],
  [{ state: 'degraded' as NodeView['state'], role: 'leader', freshness: 'live' }],
  [
    'unknown',
    { state: 'healthy', role: 'follower', freshness: 'gone' },
    { state: 'healthy', role: 'leader', freshness: 'never' },
  ],
  [
    { state: 'unreachable', role: 'follower', freshness: 'live' },
    { state: 'not-answering', role: 'follower', freshness: 'live' },
    { state: 'unavailable', role: 'leader', freshness: 'live' },
  ],
  ['no address'],
]
const pairs = RANKS.flatMap((better, rank) =>
  better.flatMap((good) => RANKS.slice(rank + 1).flatMap((worse) => worse.map((bad) => [good, bad] as const))),
)

function chosen(seen: readonly Seen[]): string {
  const nodes = seen.map((each, at) =>
    each === 'no address' ? { ...address(`n${at}`), tcp: undefined } : address(`n${at}`),
  )
  const view = (_: string, id: string) => {
    const found = seen[Number(id.slice(1))]
    return typeof found === 'object' ? found : undefined
  }
  return oneNode({ node: view } as unknown as Cluster, { shard: 's1', nodes } as ReturnType<typeof targetOf>).id
}

test.each(pairs)('%j is read before %j', (good, bad) => {
  expect([chosen([good, bad]), chosen([bad, good])]).toEqual(['n0', 'n1'])
})

test.each(RANKS.flatMap((group) => group.flatMap((a) => group.map((b) => [a, b] as const))))(
  'of the equal %j and %j the first is read',
  (a, b) => {
    expect(chosen([a, b])).toBe('n0')
  },
)

test('a shard without nodes has none to read', () => {
  expect(errorOf(() => chosen([]))).toMatchObject({ code: 'no-node', message: 'Shard s1 has no node.' })
})

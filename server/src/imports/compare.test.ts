/** The comparison of two snapshots, or of a snapshot with the data of a shard, by segment and day. */

import { parseDay, turnableClock } from '@vacancy/shared'
import { expect, test } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import { problem } from '../http/errors.ts'
import { type CompareParts, compare, difference, nodeSide, type Side } from './compare.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const [A, B] = ['a'.repeat(64), 'b'.repeat(64)]
const HASH = 'c'.repeat(64)

type Segment = { readonly name: string; readonly properties: number; readonly packages: readonly number[] }

const documentOf = (from: string | null, segments: readonly Segment[], change: object = {}) => ({
  ...{ properties: 7, packages: 9, window: from && { from, to: from }, codecHash: HASH, codecs: ['x'], segments },
  ...change,
})
const page = (from: string | null, segments: readonly Segment[], more = false) => ({
  ...{ properties: 7, packages: 9, ordered_hash: HASH, applied_index: 1, more, segments },
  window: from && { from, to: from },
})

type Reply = { readonly status?: number; readonly body: unknown } | Error

/** Snapshots by id, and replies of nodes by `node path`. */
function partsOf(snapshots: { [id: string]: object }, replies: { [key: string]: Reply } = {}, nodes: string[] = []) {
  const requests: unknown[] = []
  const address = (id: string) => ({ id, shard: 's1' }) as NodeAddress
  const cluster = {
    shard: (id: string) => (id === 's1' ? { leader: 'n2' } : undefined),
    addresses: (id: string) => (id === 's1' ? nodes.map(address) : []),
    request: async ({ id }: NodeAddress, path: string, options: object) => {
      requests.push([id, path, options])
      const reply = replies[`${id} ${path}`] ?? { status: 404, body: '' }
      if (reply instanceof Error) throw reply
      const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body)
      return { status: reply.status ?? 200, body, milliseconds: 1 }
    },
  } as unknown as Cluster
  const find = async (id: string) => {
    const found = snapshots[id]
    if (!found) throw problem('no-such-snapshot')
    return { name: `snapshot ${id[0]}`, document: JSON.stringify(found), created_at: NOW - 5_000 }
  }
  const parts: CompareParts = { cluster, clock: turnableClock(NOW), find }
  return { parts, requests, cluster, address }
}

// Snapshots

test('two snapshots are compared by segment, with the difference of each day', async () => {
  const { parts } = partsOf({
    [A]: documentOf('2026-12-01', [
      { name: 'kept', properties: 2, packages: [1, 2] },
      { name: 'gone', properties: 1, packages: [0, 5] },
    ]),
    [B]: documentOf('2026-12-02', [
      { name: 'kept', properties: 3, packages: [2, 0, 4] },
      { name: 'added', properties: 1, packages: [1] },
    ]),
  })

  const { a, b, ...found } = await compare(parts, A, B)

  expect(a).toEqual({
    ...{ title: 'snapshot a', kind: 'snapshot', id: A, node: null, at: '2026-11-22T11:59:55.000Z', properties: 7 },
    ...{ packages: 9, window: { from: '2026-12-01', to: '2026-12-01' }, codecHash: HASH, codecs: ['x'] },
  })
  expect(b.id).toBe(B)
  expect(found).toEqual({
    ...{ equal: false, codecsEqual: true, window: { from: '2026-12-01', to: '2026-12-04' } },
    segments: [
      { name: 'added', in: 'b', properties: { a: 0, b: 1 }, packages: { a: 0, b: 1 }, days: [0, 1, 0, 0] },
      { name: 'gone', in: 'a', properties: { a: 1, b: 0 }, packages: { a: 5, b: 0 }, days: [0, -5, 0, 0] },
      { name: 'kept', in: 'both', properties: { a: 2, b: 3 }, packages: { a: 3, b: 6 }, days: [-1, 0, 0, 4] },
    ],
  })
})

test('snapshots without packages have no window, and are equal', async () => {
  const { parts } = partsOf({ [A]: documentOf(null, [{ name: 's', properties: 1, packages: [] }]) })

  expect(await compare(parts, A, A)).toMatchObject({
    ...{ equal: true, window: null },
    segments: [{ in: 'both', packages: { a: 0, b: 0 }, days: [] }],
  })
})

test.each(['', 'A'.repeat(64), 'a'.repeat(63), 'g'.repeat(64), 'x'.repeat(81)])(
  '%j cannot be compared',
  async (what) => {
    const { parts } = partsOf({ [A]: documentOf(null, []) })

    await expect(compare(parts, what, A)).rejects.toMatchObject({
      ...{ status: 400, code: 'invalid-side' },
      message: `${JSON.stringify(what.slice(0, 80))} is neither a snapshot nor a shard.`,
    })
  },
)

// Differences

const day = (text: string) => parseDay(text) as number

function side(segments: { [name: string]: readonly [properties: number, days: { [date: string]: number }] }): Side {
  const head = {
    title: '',
    kind: 'snapshot',
    id: '',
    node: null,
    at: '',
    properties: 0,
    packages: 0,
    window: null,
  } as const
  return {
    head: { ...head, codecHash: HASH, codecs: null },
    segments: new Map(
      Object.entries(segments).map(([name, [properties, days]]) => {
        const packages = Object.values(days).reduce((sum, each) => sum + each, 0)
        return [
          name,
          { properties, packages, days: new Map(Object.entries(days).map(([at, count]) => [day(at), count])) },
        ]
      }),
    ),
  }
}

test.each<[string, Parameters<typeof side>[0], Parameters<typeof side>[0], boolean]>([
  ['the same', { s: [1, { '2026-12-01': 2 }] }, { s: [1, { '2026-12-01': 2 }] }, true],
  ['nothing', {}, {}, true],
  ['other properties', { s: [1, { '2026-12-01': 2 }] }, { s: [2, { '2026-12-01': 2 }] }, false],
  ['the packages on another day', { s: [1, { '2026-12-01': 2 }] }, { s: [1, { '2026-12-02': 2 }] }, false],
  ['an empty segment more', {}, { s: [0, {}] }, false],
  ['an empty segment less', { s: [0, {}] }, {}, false],
])('two sides with %s', (_, a, b, equal) => {
  expect(difference(side(a), side(b)).equal).toBe(equal)
  expect(difference(side(b), side(a)).equal).toBe(equal)
})

test.each([
  [HASH, HASH, true],
  [HASH, 'd'.repeat(64), false],
  ['', HASH, null],
  [HASH, '', null],
])('the codec lists %s and %s', (left, right, codecsEqual) => {
  const withHash = (codecHash: string): Side => ({ ...side({}), head: { ...side({}).head, codecHash } })

  expect(difference(withHash(left), withHash(right)).codecsEqual).toBe(codecsEqual)
})

// Shards

const COVERAGE = '/coverage?after='

test('a shard is read from its leader, with its codec list', async () => {
  const segments = [{ name: 's', properties: 1, packages: [0, 2, 1, 0] }]
  const { parts, requests } = partsOf(
    {},
    {
      [`n2 ${COVERAGE}`]: { body: page('2026-12-01', segments) },
      'n2 /codecs': { body: { rate_features: ['x', 'y'] } },
    },
    ['n1', 'n2', 'n3'],
  )

  const { a, equal } = await compare(parts, 'shard:s1', 'shard:s1')

  expect(a).toEqual({
    ...{ title: 'shard s1', kind: 'shard', id: 's1', node: 'n2', at: new Date(NOW).toISOString(), properties: 7 },
    ...{ packages: 9, window: { from: '2026-12-02', to: '2026-12-03' }, codecHash: HASH, codecs: ['x', 'y'] },
  })
  expect(equal).toBe(true)
  expect(requests.slice(0, 4)).toEqual([
    ['n2', COVERAGE, { as: 'client', timeoutMs: 10_000 }],
    ['n2', COVERAGE, { as: 'client', timeoutMs: 10_000 }],
    ['n2', '/codecs', { as: 'monitoring', timeoutMs: 3_000 }],
    ['n2', '/codecs', { as: 'monitoring', timeoutMs: 3_000 }],
  ])
})

test.each<[string, Reply]>([
  ['refuses', { status: 403, body: { rate_features: ['x'] } }],
  ['reports nonsense', { body: 'nonsense' }],
  ['reports no list', { body: {} }],
  ['does not respond', problem('node-timeout')],
])('a codec list is unknown when the node %s', async (_, reply) => {
  const replies = { [`n1 ${COVERAGE}`]: { body: page(null, []) }, 'n1 /codecs': reply }

  expect((await compare(partsOf({}, replies, ['n1']).parts, 'shard:s1', 'shard:s1')).a).toMatchObject({
    ...{ codecs: null, codecHash: HASH, window: null },
  })
})

test('another node is read when the leader does not respond, and the last error is reported', async () => {
  const replies: { [key: string]: Reply } = { [`n2 ${COVERAGE}`]: problem('node-timeout', { detail: 'n2 is silent' }) }
  const read = () => compare(partsOf({}, replies, ['n1', 'n2']).parts, 'shard:s1', 'shard:s1')

  await expect(read()).rejects.toMatchObject({
    ...{ code: 'no-coverage', message: 'n1 did not report its coverage: it answered 404.' },
  })
  replies[`n1 ${COVERAGE}`] = { body: 'nonsense' }
  await expect(read()).rejects.toMatchObject({ message: 'n1 did not report its coverage: it answered 200.' })
  replies[`n1 ${COVERAGE}`] = { body: page(null, []) }
  expect((await read()).a.node).toBe('n1')
  replies[`n2 ${COVERAGE}`] = new TypeError('defect')
  await expect(read()).rejects.toThrow('defect')
})

test.each(['shard:s2', 'shard:', 'shard:s1', `shard:${'x'.repeat(129)}`])('%s has no known node', async (what) => {
  await expect(compare(partsOf({}).parts, what, what)).rejects.toMatchObject({
    ...{ status: 404, code: 'shard-not-found' },
    message: `No node of shard ${what.slice('shard:'.length, 'shard:'.length + 128)} is known.`,
  })
})

test('all pages of a node are read, each after the last segment of the one before', async () => {
  const segment = (name: string, packages: number[]) => ({ name, properties: 1, packages })
  const { cluster, address, requests } = partsOf(
    {},
    {
      [`n1 ${COVERAGE}`]: { body: page('2026-12-05', [segment('a', [1]), segment('b &', [0, 2])], true) },
      [`n1 ${COVERAGE}b%20%26`]: { body: page('2026-12-03', [segment('c', [3])]) },
    },
    ['n1'],
  )

  const { head, segments } = await nodeSide(cluster, address('n1'), 'now')

  expect(requests).toHaveLength(2)
  expect(head).toMatchObject({ at: 'now', window: { from: '2026-12-03', to: '2026-12-06' }, codecs: null })
  expect([...segments].map(([name, { packages }]) => [name, packages])).toEqual([
    ['a', 1],
    ['b &', 2],
    ['c', 3],
  ])
  expect(segments.get('b &')).toEqual({ properties: 1, packages: 2, days: new Map([[day('2026-12-06'), 2]]) })
})

test('a node that never ends its list is given up after 500 pages', async () => {
  const { cluster, address, requests } = partsOf({}, { [`n1 ${COVERAGE}`]: { body: page(null, [], true) } })

  await expect(nodeSide(cluster, address('n1'), '')).rejects.toMatchObject({
    ...{ status: 502, code: 'too-many-segments', message: 'n1 returned more segments than it can have.' },
  })
  expect(requests).toHaveLength(500)
})

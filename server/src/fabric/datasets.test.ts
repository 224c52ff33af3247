/** What the registry holds, as its page lists it; and samples of a metrics page. */

import { expect, test } from 'vitest'
import type { RegistryState } from '../cluster/discovery.ts'
import { datasetsOf } from './datasets.ts'
import { samplesOf, sumOf } from './samples.ts'

type Topology = NonNullable<RegistryState['topology']>

const shard = (zone: string, segments: number, nodes: number) => ({
  ...{ zone, term: 1, segments, bridges: [], nodes: Array.from({ length: nodes }, (_, at) => `n${at}`) },
})

const TOPOLOGY = {
  ...{ epoch: 'e1', global_version: 9, warming: true, nodes: [], bridges: [], zones: ['z1', 'z2'] },
  shards: { s1: shard('z1', 3, 4), s2: shard('z1', 5, 0), s10: shard('z2', 1, 1) },
  routers: [{ zone: 'z1' }, { zone: 'z1' }, { zone: 'z2' }],
  segments: { 'seg-10': 's1', 'seg-2': 's2', other: 's1' },
  conflicts: [{ segment: 'seg-2', claims: [{ shard: 's1' }, { shard: 's2' }, { shard: 's10' }] }],
  reservations: [{ segment: 'other', shard: 's1', until: 'then' }],
  versions: {
    ...{ 'zones/z1/routers': 1, 'zones/z1/shards': 2, 'zones/z1/segments': 3, 'shards/s1/nodes': 4 },
    ...{ 'shards/s10/segments': 5, 'shards/s2/segments': 6, 'shards/s2/nodes': 7, 'shards/s9/nodes': 8, codecs: 9 },
    ...{ 'shards/s9/segments': 10 },
  },
} as unknown as Topology

const registry = (change: Partial<RegistryState> = {}): RegistryState => ({
  ...{ address: 'http://r1', isUp: true, error: '', since: undefined, at: 0, topology: TOPOLOGY, ...change },
})

test('before the first reply of the registry all is empty', () => {
  const empty = registry({ isUp: false, error: 'refused', at: undefined, topology: undefined })
  expect(datasetsOf(empty, '', 10)).toEqual({
    ...{ address: 'http://r1', up: false, error: 'refused', at: null, epoch: null, globalVersion: null },
    ...{ warming: false, datasets: [], segments: [], total: 0 },
  })
  expect(datasetsOf({ ...empty, address: null }, '', 10).error).toBe('no registry is configured')
})

test('lists are in natural order with the number of their entries, unknown ones without', () => {
  const view = datasetsOf(registry(), '', 10)
  expect(view).toMatchObject({ at: '1970-01-01T00:00:00.000Z', epoch: 'e1', globalVersion: 9, warming: true })
  expect(view.datasets.map(({ name, version, entries }) => `${name} ${version} ${entries}`)).toEqual([
    ...['codecs 9 null', 'shards/s1/nodes 4 4', 'shards/s2/nodes 7 0', 'shards/s2/segments 6 5'],
    ...['shards/s9/nodes 8 null', 'shards/s9/segments 10 null', 'shards/s10/segments 5 1'],
    ...['zones/z1/routers 1 2', 'zones/z1/segments 3 8', 'zones/z1/shards 2 2'],
  ])
})

test('segments have the claims of other shards, and the end of their reservation', () => {
  expect(datasetsOf(registry(), '', 10).segments).toEqual([
    { segment: 'other', shard: 's1', claims: [], reservedUntil: 'then' },
    { segment: 'seg-2', shard: 's2', claims: ['s1', 's10'], reservedUntil: null },
    { segment: 'seg-10', shard: 's1', claims: [], reservedUntil: null },
  ])
})

test.each([
  ['seg', 10, 'seg-2 seg-10', 2],
  ['s2', 10, 'seg-2', 1],
  ['', 1, 'other', 3],
  ['none', 10, '', 0],
])('with the filter "%s" and the limit %d the segments are "%s" of %d', (filter, limit, expected, total) => {
  const view = datasetsOf(registry(), filter, limit)
  expect([view.segments.map(({ segment }) => segment).join(' '), view.total]).toEqual([expected, total])
})

// Samples

const all = (text: string) =>
  Object.fromEntries(
    [...samplesOf(text, () => true)].map(([name, samples]) => [
      name,
      samples.map(({ labels, value }) => [Object.fromEntries(labels), value]),
    ]),
  )

test.each<[string, object]>([
  ['a 1', { a: [[{}, 1]] }],
  [
    'a{x="1",y="2"} 3\na{x="4"} 5',
    {
      a: [
        [{ x: '1', y: '2' }, 3],
        [{ x: '4' }, 5],
      ],
    },
  ],
  ['a{x="q\\"u\\\\o\\nte"} 1e3 1700000000', { a: [[{ x: 'q"u\\o\nte' }, 1_000]] }],
  ['a +Inf\nb NaN\nc x\n# d 1\n\n e 1', {}],
  ['a:b_c{} -1', { 'a:b_c': [[{}, -1]] }],
])('the page %j', (text, expected) => {
  expect(all(text)).toEqual(expected)
})

test('only the wanted metrics are read', () => {
  expect([...samplesOf('a 1\nb 2', (name) => name === 'b').keys()]).toEqual(['b'])
})

test('a sum is of the samples with all given labels, and undefined without samples', () => {
  const samples = samplesOf('a{x="1",y="1"} 1\na{x="1",y="2"} 2\na{x="2",y="1"} 4', () => true).get('a')
  expect([sumOf(samples), sumOf(samples, { x: '1' }), sumOf(samples, { x: '1', y: '2' })]).toEqual([7, 3, 2])
  expect([sumOf(samples, { x: '3' }), sumOf(undefined), sumOf([])]).toEqual([undefined, undefined, undefined])
})

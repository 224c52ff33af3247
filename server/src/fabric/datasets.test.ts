/** What the registry holds, as its page lists it; and samples of a metrics page. */

import { expect, test } from 'vitest'
import { datasetsOf } from './datasets.ts'
import type { RegistryState } from './fabric.ts'

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

test('segments have the claims of other shards, and the end of their reservation', () => {
  expect(datasetsOf(registry(), '', 10).segments).toEqual([
    { segment: 'other', shard: 's1', claims: [], reservedUntil: 'then' },
    { segment: 'seg-2', shard: 's2', claims: ['s1', 's10'], reservedUntil: null },
    { segment: 'seg-10', shard: 's1', claims: [], reservedUntil: null },
  ])
})

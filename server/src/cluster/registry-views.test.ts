import { expect, test } from 'vitest'
import type { RegistryState } from '../fabric/fabric.ts'
import { goneNode, HASH, NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import { codecsOf, servicesOf } from './registry-views.ts'

const SHARD = shardOf([
  observedNode({ id: 'n1' }),
  observedNode({ id: 'n2' }),
  goneNode({ id: 'n3' }, { code: 'refused', message: 'connection refused' }),
]).view

const registered = (id: string, more: object = {}) => ({ id, shard: 's1', zone: 'eu-1', age_secs: 2, ...more })
const registryWith = (more: object, state: Partial<RegistryState> = {}): RegistryState => ({
  ...{ address: 'http://r1', isUp: true, error: '', since: undefined, at: NOW },
  topology: { nodes: [], bridges: [], routers: [], conflicts: [], ...more } as unknown as RegistryState['topology'],
  ...state,
})
test('nodes of the registry are compared with what they report themselves', () => {
  const nodes = [
    registered('n1', { role: 'leader', version: '0.1.0' }),
    registered('n2', { role: 'learner', version: '0.0.9', age_secs: 7 }),
    registered('n9'),
  ]

  const { services } = servicesOf(registryWith({ nodes }), [SHARD], [])

  expect(
    services.map(({ id, role, heartbeatAgeSeconds, seen, difference }) => [
      id,
      role,
      heartbeatAgeSeconds,
      seen,
      difference,
    ]),
  ).toEqual([
    ['n1', 'leader', 2, true, ''],
    ['n2', 'learner', 7, true, 'reports learner, observed as follower; reports version 0.0.9, runs 0.1.0'],
    ['n9', null, 2, false, 'registered, but it does not respond to the control plane'],
    // Known from the member list of its shard.
    ['n3', 'unknown', null, false, 'not registered'],
  ])
})

test('codec lists are compared with that of the registry, or else with the most common one', () => {
  const other = { rate_features: ['sauna'], hash: 2, hash_hex: '2'.repeat(16), ordered_hash: 'b'.repeat(64) }
  const nodes = [
    observedNode({ id: 'n1' }, { codecs: { value: other, at: NOW } }),
    observedNode({ id: 'n2' }),
    observedNode({ id: 'n3' }),
    observedNode({ id: 'n4' }, { codecs: undefined, status: undefined }),
  ]
  const shards = [shardOf(nodes).view]
  const seen = ({ codecs, source, nodes: all }: ReturnType<typeof codecsOf>) => [
    ...[codecs?.ordered_hash, source],
    ...all.map(({ node, equal }) => `${node} ${equal}`),
  ]

  expect(seen(codecsOf(shards, undefined, nodes, 'http://r1'))).toEqual([
    HASH,
    'node s1/n2',
    'n1 false',
    'n2 true',
    'n3 true',
    'n4 null',
  ])
  expect(seen(codecsOf(shards, other, nodes, 'http://r1'))).toEqual([
    other.ordered_hash,
    'registry http://r1',
    'n1 true',
    'n2 false',
    'n3 false',
    'n4 null',
  ])
  expect(codecsOf([], undefined, [], null)).toEqual({ codecs: null, source: '', nodes: [] })
})

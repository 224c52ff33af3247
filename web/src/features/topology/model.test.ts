import type { FabricComponent, FabricEdge, Summary, TopologyView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { layoutOf, lineWidth } from './layout.ts'
import { modelOf, problemsOf, rowsOf, sentencesOf, treeOf } from './model.ts'

const component = (key: string, more: Partial<FabricComponent> = {}): FabricComponent => {
  const [kind = '', id = ''] = key.split(' ')
  return {
    ...{ key, kind: kind as FabricComponent['kind'], id, zone: null, shard: null, apiUrl: 'http://h', version: '1' },
    ...{ state: 'ready', level: 'ok', message: 'Ready', since: '', registered: true, lateSince: null },
    ...{ differences: [], reasons: [], cuts: [], facts: [], inFlight: null, connections: null },
    rates: { reads: 1, writes: 1, errors: 0, p99: 1 },
    ...more,
  }
}

const edge = (from: string, to: string, more: Partial<FabricEdge> = {}): FabricEdge => ({
  ...{ from, to, state: 'live', level: 'ok', message: 'Connected', connections: 4 },
  ...{ reads: 10, writes: 0, received: 10 },
  ...more,
})

const brief = (id: string, zone: string) =>
  ({
    ...{ id, zone, level: 'ok', message: 'Healthy', leader: 'n1', rates: { queries: 1, writes: 0 } },
    slots: [{ node: 'n1', role: 'leader', state: 'healthy', level: 'ok', message: 'Healthy', freshness: 'live' }],
  }) as unknown as Summary['shards'][number]

const VIEW: TopologyView = {
  registry: { address: 'http://r', up: true, error: '', warming: false },
  components: [
    component('edge e', { registered: null }),
    component('zone-router r1', { zone: 'z1' }),
    component('bridge b1', { zone: 'z1', shard: 's1' }),
    component('bridge b2', {
      ...{ zone: 'z1', shard: 's2', state: 'unreachable', level: 'crit', message: 'Unreachable: connection refused' },
      cuts: ['Shard s2: no bridge is left'],
    }),
  ],
  edges: [
    edge('edge e', 'zone-router r1'),
    edge('zone-router r1', 'bridge b1'),
    edge('zone-router r1', 'bridge b2', { state: 'down', level: 'crit' }),
    edge('bridge b1', 'node s1/n1'),
  ],
  shards: [
    { id: 's1', zone: 'z1', segments: 2, served: true },
    { id: 's2', zone: 'z1', segments: 2, served: false },
  ],
}
const MODEL = modelOf(VIEW, [brief('s1', 'z1'), brief('s2', 'z1')])

test('a shard without a bridge is cut off although its nodes are healthy, and comes first', () => {
  expect(MODEL.things.get('shard s2')).toMatchObject({ level: 'crit', message: 'Cut off: no bridge is left. Healthy' })
  expect(
    rowsOf(MODEL)
      .slice(0, 2)
      .map(({ key }) => key),
  ).toEqual(['bridge b2', 'shard s2'])
  expect(problemsOf(MODEL).map(({ key }) => key)).toEqual(['bridge b2'])
})

test('the tree has zones with routers and shards, and shards with bridges and nodes', () => {
  const [first, zone] = treeOf(MODEL)

  expect(first?.thing.key).toBe('edge e')
  expect(zone?.thing.key).toBe('zone z1')
  expect(zone?.children.map(({ thing }) => thing.key)).toEqual(['zone-router r1', 'shard s1', 'shard s2'])
  expect(zone?.children[1]?.children.map(({ thing }) => thing.key)).toEqual(['bridge b1', 'node s1/n1'])
})

test('the sentences name problems, what is cut off, and zones', () => {
  expect(sentencesOf(MODEL)).toEqual([
    'Edge router: e. All ready.',
    'Zone router: r1. All ready.',
    'Bridge b1: Ready.',
    'Bridge b2: Unreachable: connection refused.',
    'Cut off: Shard s2: no bridge is left.',
    'Zone z1: 2 shards, 1 healthy.',
    's2: leader n1. Cut off: no bridge is left. Healthy.',
  ])
})

test('places do not depend on states, and a collapsed zone still shows its problems', () => {
  const places = ({ boxes }: ReturnType<typeof layoutOf>) => [...boxes].map(([key, { x, y }]) => [key, x, y])
  const healthy = modelOf({ ...VIEW, components: VIEW.components.map((each) => ({ ...each, level: 'ok' as const })) }, [
    brief('s1', 'z1'),
    brief('s2', 'z1'),
  ])

  expect(places(layoutOf(MODEL, new Set()))).toEqual(places(layoutOf(healthy, new Set())))
  const collapsed = layoutOf(MODEL, new Set(['z1']))
  expect([...collapsed.boxes.keys()].filter((key) => key.startsWith('shard'))).toEqual(['shard s2'])
  expect(collapsed.zones).toMatchObject([{ zone: 'z1', hidden: 1 }])
})

test('one line stands for the connections of a bridge to its nodes, its width for the rate', () => {
  const { lines } = layoutOf(MODEL, new Set())

  expect(lines.map(({ from, to }) => `${from.thing.key} ${to.thing.key}`)).toContain('bridge b1 shard s1')
  expect(lineWidth(0)).toBe(1)
  expect(lineWidth(1_000)).toBeGreaterThan(lineWidth(10))
  expect(lineWidth(1e9)).toBeLessThanOrEqual(6)
})

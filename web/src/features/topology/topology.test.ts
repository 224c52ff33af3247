import type { FabricComponent, FabricEdge, Level, Summary, TopologyView } from '@vacancy/shared/contract'
import { describe, expect, test } from 'vitest'
import { dotsOf, dotsOn, linesInView } from './draw.ts'
import { type Box, curveOf, type Layout, type Line, layoutOf, lineWidth, trafficOf } from './layout.ts'
import { modelOf, problemsOf, rowsOf, type ShardBrief, sentencesOf, treeOf } from './model.ts'

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
const CUT = { level: 'crit', message: 'Cut off: no bridge reaches it; the members are healthy' } as const
const MODEL = modelOf(VIEW, [brief('s1', 'z1'), { ...brief('s2', 'z1'), ...CUT }])

test('a shard is what its own page says, and one that is cut off comes first', () => {
  expect(MODEL.things.get('shard s2')).toMatchObject(CUT)
  expect(modelOf(VIEW, []).things.get('shard s2')).toMatchObject({
    level: 'crit',
    message: 'Cut off: no bridge reaches it',
  })
  expect(
    rowsOf(MODEL)
      .slice(0, 2)
      .map(({ key }) => key),
  ).toEqual(['bridge b2', 'shard s2'])
  expect(problemsOf(MODEL).map(({ key }) => key)).toEqual(['bridge b2'])
  const sick = { ...brief('s1', 'z1'), level: 'crit', message: 'No node responds' } as const
  const both = modelOf(VIEW, [sick, { ...brief('s2', 'z1'), ...CUT }])
  expect(problemsOf(both).map(({ key }) => key)).toEqual(['bridge b2', 'shard s1'])
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
    's2: leader n1. Cut off: no bridge reaches it; the members are healthy.',
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

const box = (x: number, y: number): Box => ({ thing: {} as Box['thing'], x, y, width: 100, height: 20 })
const line = (state: Line['state'], from = box(0, 0), to = box(300, 80)): Line => ({
  ...{ from, to, state, level: 'ok', reads: 10, writes: 2 },
})

test('dots follow the requests: none without any, one more each time that 1 + requests is four times as many', () => {
  expect([-1, 0, 0.5, 2.9, 3, 14.9, 15, 63, 255, 1_023, 1e6].map(dotsOn)).toEqual([0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 6])
})

test('dots are at equal parts of a curve with level ends', () => {
  // From (100, 10) to (300, 90), bent by 100 at both ends.
  expect(dotsOf(line('live'), 100, 0)).toEqual([
    { x: 100, y: 10 },
    { x: 159.375, y: 22.5 },
    { x: 200, y: 50 },
    { x: 240.625, y: 77.5 },
  ])
})

test('a dot moves by 36 pixels in a second and begins again after the receiver', () => {
  const level = line('live', box(0, 0), box(300, 0))
  const xs = [0, 50, 150, 250].map((pixels) => dotsOf(level, 1, (pixels / 36) * 1_000)[0]?.x ?? 0)
  expect(xs.map((x) => Number(x.toFixed(3)))).toEqual([100, 159.375, 240.625, 159.375])

  // Boxes that touch have a line without length.
  expect(dotsOf(line('live', box(0, 0), box(100, 0)), 1, 500)).toEqual([{ x: 100, y: 10 }])
})

test('only live connections have dots', () => {
  for (const state of ['down', 'idle', 'declared', 'unknown'] as const) expect(dotsOf(line(state), 100, 0)).toEqual([])
})

test('a connection is in view when any part of it is', () => {
  const lines = [line('live'), line('live', box(0, 500), box(300, 600)), line('live', box(0, 0), box(300, 900))]
  const layout: Layout = { width: 980, height: 900, boxes: new Map(), lines, zones: [] }
  const seen = (top: number, bottom: number) => linesInView(layout, top, bottom).map((each) => lines.indexOf(each))

  expect(seen(200, 400)).toEqual([2])
  expect(seen(0, 1_000)).toEqual([0, 1, 2])
  // The first ends at 100, the second begins at 500.
  expect([seen(100, 499), seen(101, 500)]).toEqual([
    [0, 2],
    [1, 2],
  ])
  // The other way round the same: the sender may be the lower one.
  const up: Layout = { ...layout, lines: [line('live', box(0, 80), box(300, 0))] }
  expect(
    [linesInView(up, 100, 200), linesInView(up, -10, 0), linesInView(up, 101, 200)].map(({ length }) => length),
  ).toEqual([1, 1, 0])
})

describe('layout', () => {
  type Component = TopologyView['components'][number]

  /** `bridge b1 z1 s1`: kind, id, zone and shard. */
  const component = (text: string, level: Level = 'ok'): Component => {
    const [kind = '', id = '', zone = null, shard = null] = text.split(' ')
    return {
      key: `${kind} ${id}`,
      kind,
      id,
      zone,
      shard,
      level,
      message: '',
      rates: {},
      cuts: [],
    } as unknown as Component
  }
  const shard = (id: string, zone: string, nodes: { readonly [node: string]: Level } = {}) =>
    ({
      ...{ id, zone, level: 'ok', message: '', rates: {} },
      slots: Object.entries(nodes).map(([node, level]) => ({ node, level, role: 'follower', message: '' })),
    }) as unknown as ShardBrief
  const edge = (from: string, to: string, more: Partial<FabricEdge> = {}) =>
    ({ ...{ from, to, state: 'live', level: 'ok', reads: 0, writes: 0 }, ...more }) as FabricEdge
  const model = (components: readonly Component[], shards: readonly ShardBrief[], edges: readonly FabricEdge[] = []) =>
    modelOf({ components, edges, shards: [] } as unknown as TopologyView, shards)

  const COMPONENTS = [
    ...['proxy p', 'edge e1', 'edge e2', 'registry g', 'resolver v', 'zone-router r1 z1', 'zone-router r2 z1'],
    ...['zone-router r3 z2', 'zone-router r4 z2', 'bridge b1 z1 s1', 'bridge b2 z1 s1', 'bridge b3 z2 s3'],
  ].map((text) => component(text))
  const SHARDS = [
    shard('s1', 'z1', { n1: 'ok', n2: 'warn' }),
    shard('s2', 'z1', { n1: 'info' }),
    shard('s3', 'z2'),
    shard('s4', ''),
  ]

  const places = ({ boxes }: ReturnType<typeof layoutOf>) =>
    Object.fromEntries([...boxes].map(([key, { x, y, width, height }]) => [key, [x, y, width, height]]))

  test('columns are kinds, zones are stacked, and a shard is in the middle of its bridges', () => {
    const layout = layoutOf(model(COMPONENTS, SHARDS), new Set())

    // Zone z1 begins at 12; its first row at 36. s1 has two rows of 34, s2 one: they end at 138.
    // Zone z2 begins at 12 + 130 + 12; its two routers need 68, its shard 34. The zone without a name has one row.
    expect(layout.zones).toEqual([
      { zone: 'z1', y: 12, height: 130, hidden: 0 },
      { zone: 'z2', y: 154, height: 96, hidden: 0 },
      { zone: '', y: 262, height: 62, hidden: 0 },
    ])
    expect(places(layout)).toEqual({
      'bridge b1': [556, 36, 132, 26],
      'bridge b2': [556, 70, 132, 26],
      'shard s1': [728, 53, 76, 26],
      'node s1/n1': [812, 53, 26, 26],
      'node s1/n2': [840, 53, 26, 26],
      'shard s2': [728, 104, 76, 26],
      'node s2/n1': [812, 104, 26, 26],
      // 68 of the 102 between 36 and 138.
      'zone-router r1': [384, 53, 132, 26],
      'zone-router r2': [384, 87, 132, 26],
      'bridge b3': [556, 178, 132, 26],
      'shard s3': [728, 178, 76, 26],
      'zone-router r3': [384, 178, 132, 26],
      'zone-router r4': [384, 212, 132, 26],
      'shard s4': [728, 286, 76, 26],
      // The middle of 336 is 168.
      'edge e1': [196, 134, 150, 26],
      'edge e2': [196, 168, 150, 26],
      'proxy p': [16, 151, 150, 26],
      // The last two rows of 336.
      'registry g': [16, 268, 150, 26],
      'resolver v': [16, 302, 150, 26],
    })
    // The resolver ends at 328, and 12 are free below it.
    expect([layout.width, layout.height]).toEqual([980, 340])
  })

  test('without zones the map has a least height', () => {
    const layout = layoutOf(model([component('edge e'), component('registry g')], []), new Set())

    expect(places(layout)).toEqual({ 'edge e': [196, 83, 150, 26], 'registry g': [16, 166, 150, 26] })
    expect(layout.height).toBe(204)
  })

  test('many edge routers begin at the top, and the registry is below them', () => {
    const edges = Array.from({ length: 20 }, (_, n) => component(`edge e${n}`))
    const layout = layoutOf(model([...edges, component('registry g')], []), new Set())

    // 20 rows of 34 from 36 on; the middle of 200, half of 680, and a row.
    expect(places(layout)).toMatchObject({
      'edge e0': [196, 36, 150, 26],
      'edge e19': [196, 682, 150, 26],
      'registry g': [16, 474, 150, 26],
    })
    expect(layout.height).toBe(720)
  })

  test('edge routers of a high map stay near its top', () => {
    const shards = Array.from({ length: 20 }, (_, n) => shard(`s${n}`, 'z'))
    const layout = layoutOf(model([component('edge e'), component('proxy p'), component('proxy q')], shards), new Set())

    // 24 + 20 × 34 from 12 on, and 16 below.
    expect(layout.height).toBe(732)
    expect(places(layout)).toMatchObject({ 'edge e': [196, 263, 150, 26], 'proxy p': [16, 246, 150, 26] })
  })

  test('a collapsed zone shows shards with a problem, and a row for the others', () => {
    const layout = layoutOf(model(COMPONENTS, SHARDS), new Set(['z1', '']))

    expect(layout.zones).toEqual([
      // 24 + 68 for s1 + 34 for the other.
      { zone: 'z1', y: 12, height: 130, hidden: 1 },
      { zone: 'z2', y: 154, height: 96, hidden: 0 },
      { zone: '', y: 262, height: 62, hidden: 1 },
    ])
    const keys = [...layout.boxes.keys()]
    expect(keys.filter((key) => /^(?:shard|node)/.test(key))).toEqual([
      'shard s1',
      'node s1/n1',
      'node s1/n2',
      'shard s3',
    ])
  })

  test('a line is a connection, or all of a bridge to its nodes', () => {
    const edges = [
      edge('edge e1', 'zone-router r1', { reads: 10, writes: null, level: 'warn', state: 'idle' }),
      edge('zone-router r1', 'bridge b1', { reads: null, writes: 3 }),
      edge('edge gone', 'zone-router r1'),
      edge('edge e1', 'zone-router gone'),
      edge('bridge b1', 'node s1/n1', { state: 'down', level: 'crit', reads: 5, writes: 1 }),
      edge('bridge b1', 'node s1/n2', { reads: 7, writes: null }),
      edge('bridge b2', 'node s1/n1', { state: 'down', level: 'warn' }),
      edge('bridge b2', 'node s1/n2', { state: 'idle' }),
      edge('bridge gone', 'node s1/n1'),
      edge('bridge b3', 'node gone/n1'),
    ]

    const { lines } = layoutOf(model(COMPONENTS, SHARDS, edges), new Set())

    expect(lines.map(({ from, to, ...line }) => ({ between: [from.thing.key, to.thing.key], ...line }))).toEqual([
      { between: ['edge e1', 'zone-router r1'], state: 'idle', level: 'warn', reads: 10, writes: 0 },
      { between: ['zone-router r1', 'bridge b1'], state: 'live', level: 'ok', reads: 0, writes: 3 },
      // One live node is enough; the level is that of the worst.
      { between: ['bridge b1', 'shard s1'], state: 'live', level: 'crit', reads: 12, writes: 1 },
      { between: ['bridge b2', 'shard s1'], state: 'down', level: 'warn', reads: 0, writes: 0 },
    ])
  })

  test('a line leaves on the right, arrives on the left, and is wider with more requests', () => {
    const { lines } = layoutOf(model(COMPONENTS, SHARDS, [edge('edge e1', 'zone-router r1')]), new Set())

    // From 196 + 150 and the middle of 134 to 160, to 384 and the middle of 53 to 79.
    expect(lines.map(curveOf)).toEqual([{ x1: 346, y1: 147, x2: 384, y2: 66, bend: 19 }])
    expect([-5, 0, 9, 99, 9_999, 1e9].map(lineWidth)).toEqual([1, 1, 2.25, 3.5, 6, 6])
    const rates = { reads: 5, writes: 2 }
    expect((['all', 'reads', 'writes'] as const).map((traffic) => trafficOf(rates, traffic))).toEqual([7, 5, 2])
  })
})

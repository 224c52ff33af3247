/** The derived view of the fabric: states, connections, and what clients lose. Pure, so that no component runs. */

import type { FabricKind, ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import { deriveFabric, type FabricInput, judge, tcpOf } from './derive.ts'
import { newComponent, type Polled } from './fabric.ts'
import type { Counters, HopReport, Rates, Ready, Reported } from './replies.ts'

const at = (ms: number) => new Date(ms).toISOString()

const READY: Ready = { ready: true, reasons: [] }

const RATES: Rates = { reads: 10, writes: 2, errors: 1, received: 12, p99: 5, sent: new Map() }
const COUNTERS: Counters = {
  ...{ at: NOW, reads: 1, writes: 1, errors: 0, received: 2, sent: new Map(), durations: new Map() },
  ...{ inFlight: 3, connections: 7 },
}

const hop = (id: string, connections: number, fault = ''): HopReport => ({
  ...{ id, connections, fault, in_flight: 0, ejected_for_ms: 0 },
})

function reported(change: Partial<Reported> = {}): Reported {
  return { at: NOW, ready: READY, version: '1.0', hops: undefined, counters: COUNTERS, rates: RATES, ...change }
}

const listed = (change: Partial<NonNullable<Polled['registered']>> = {}) => ({
  ...{ version: '1.0', startedAt: undefined, beatAt: NOW - 1_000 },
  ...change,
})

const timeout = { code: 'timeout', message: 'no response within 800 ms', at: NOW }
const refused = { code: 'refused', message: 'connection refused', at: NOW }

type Change = Partial<Omit<Polled, 'kind' | 'id' | 'key'>>

/** A component that the registry lists, if it lists its kind, and that responds. */
function component(kind: FabricKind, id: string, change: Change = {}): Polled {
  const isListed = kind === 'bridge' || kind === 'zone-router'
  const registered = isListed ? listed() : undefined
  const about = { kind, id, zone: undefined, shard: undefined, apiUrl: `http://${id}:8080`, registered }
  return { ...newComponent(about, NOW - 60_000), reported: reported(), ...change }
}

const bridge = (id: string, change: Change = {}) => component('bridge', id, { zone: 'z1', shard: 's1', ...change })
const router = (id: string, change: Change = {}) => component('zone-router', id, { zone: 'z1', ...change })
const edge = (id: string, change: Change = {}) => component('edge', id, change)
const proxy = (id: string, change: Change = {}) => component('proxy', id, change)

const down: Change = { failure: refused, missed: 1 }

type ShardNode = ShardView['nodes'][number]

const rates = (queries: number | null, writes: number | null): ShardNode['rates'] => ({
  ...{ queries, writes, errors: null, p50: null, p99: null },
})

type Topology = NonNullable<FabricInput['registry']['topology']>
type ListedShard = Topology['shards'][string]

const listedShard = (change: Partial<ListedShard> = {}): ListedShard => ({
  ...{ zone: 'z1', term: 1, nodes: [], bridges: [], segments: 3 },
  ...change,
})

function registryState(
  topology: Partial<Topology> = {},
  change: Partial<FabricInput['registry']> = {},
): FabricInput['registry'] {
  return {
    ...{ address: 'http://registry:8500', isUp: true, error: '', since: undefined, at: NOW },
    topology: {
      ...{ epoch: 'e1', global_version: 1, warming: false, heartbeat_timeout_secs: 30, zones: ['z1'] },
      ...{ shards: {}, routers: [], bridges: [], nodes: [], segments: {}, conflicts: [], versions: {} },
      ...topology,
    },
    ...change,
  }
}

function view(components: readonly Polled[], change: Partial<FabricInput> = {}) {
  return deriveFabric({ now: NOW, registry: registryState(), components, shards: [], ...change })
}

const only = (one: Polled, change: Partial<FabricInput> = {}) => {
  const found = view([one], change).components[0]
  if (!found) throw new Error('no component')
  return found
}

// States

const notReady: Ready = { ready: false, reasons: [{ name: 'leader', message: 'No leader is known.', since: at(NOW) }] }

test.each<[string, Polled, string, string, string, boolean | undefined]>([
  ['responds', bridge('b1'), 'ready', 'ok', 'Ready', true],
  ['was not read yet', bridge('b1', { reported: undefined }), 'reading', 'unk', 'Being read', undefined],
  ['has no address', bridge('b1', { apiUrl: '' }), 'not-polled', 'unk', 'Not polled: it has no api_url', undefined],
  ['refuses', bridge('b1', down), 'unreachable', 'crit', 'Unreachable: connection refused', false],
  ['missed one poll', bridge('b1', { failure: timeout, missed: 1 }), 'ready', 'ok', 'Ready', true],
  [
    'missed two polls',
    bridge('b1', { failure: timeout, missed: 2 }),
    'not-answering',
    'crit',
    'Does not answer: no response within 800 ms',
    false,
  ],
  [
    'missed its first poll',
    bridge('b1', { reported: undefined, failure: timeout, missed: 1 }),
    'reading',
    'unk',
    'Being read',
    undefined,
  ],
  [
    'is not ready',
    bridge('b1', { reported: reported({ ready: notReady }) }),
    'not-ready',
    'warn',
    'Not ready: No leader is known.',
    true,
  ],
  [
    'gives no reason',
    bridge('b1', { reported: reported({ ready: { ready: false, reasons: [] } }) }),
    'not-ready',
    'warn',
    'Not ready: no reason given',
    true,
  ],
  ['serves only /health', bridge('b1', { reported: reported({ ready: undefined }) }), 'ready', 'ok', 'Ready', true],
  [
    'left the registry and responds',
    bridge('b1', { registered: undefined }),
    'unregistered',
    'warn',
    'Responds, but the registry does not list it',
    true,
  ],
  [
    'left the registry and fails',
    bridge('b1', { ...down, registered: undefined }),
    'left',
    'unk',
    'Left the registry, and does not respond',
    false,
  ],
  [
    'left before it was read',
    router('r1', { registered: undefined, reported: undefined }),
    'left',
    'unk',
    'Left the registry, and does not respond',
    false,
  ],
  ['does not register', edge('e1'), 'ready', 'ok', 'Ready', true],
  ['does not register and fails', proxy('p1', down), 'unreachable', 'crit', 'Unreachable: connection refused', false],
])('a component that %s', (_, one, state, level, message, isUsable) => {
  expect(judge(one, true)).toEqual({ state, level, message, isUsable })
})

test('while the registry is down, no component counts as unregistered', () => {
  expect(judge(bridge('b1', { registered: undefined }), false).state).toBe('ready')
})

test.each<[Partial<Ready>, string]>([
  [{ id: 'b2', component: 'bridge' }, 'Another component answers: bridge b2'],
  [{ component: 'bridge', id: 'b1', zone: 'z2' }, 'Another component answers: bridge b1 (z2)'],
  [{ component: 'bridge', id: 'b1', zone: 'z1', shard: 's2' }, 'Another component answers: bridge b1 (s2, z1)'],
  [{ id: 'b1', shard: 's2' }, 'Another component answers:  b1 (s2)'],
  [{ component: 'bridge', zone: 'z2' }, 'Another component answers: bridge  (z2)'],
  [{ id: 'b1', zone: 'z1', shard: 's1' }, ''],
  [{ id: '', zone: null }, ''],
])('a bridge in place b1 of s1 in z1 that reports %o', (change, message) => {
  const one = bridge('b1', { reported: reported({ ready: { ...READY, ...change } }) })

  expect(judge(one, true)).toEqual(
    message === ''
      ? { state: 'ready', level: 'ok', message: 'Ready', isUsable: true }
      : { state: 'other', level: 'crit', message, isUsable: false },
  )
})

test('a component that does not register may report any name', () => {
  expect(judge(edge('e1', { reported: reported({ ready: { ...READY, id: 'x' } }) }), true).state).toBe('ready')
})

test('a state begins when it changes, and the first one when the component was found', () => {
  const one = bridge('b1')

  expect(only(one).since).toBe(at(NOW - 60_000))
  expect(only(one, { now: NOW + 1_000 }).since).toBe(at(NOW - 60_000))
  one.failure = refused
  expect(only(one, { now: NOW + 2_000 }).since).toBe(at(NOW + 2_000))
  expect(only(one, { now: NOW + 3_000 })).toMatchObject({ state: 'unreachable', since: at(NOW + 2_000) })
})

// Components

test('a component is shown with what it reports', () => {
  expect(only(bridge('b1'))).toEqual({
    ...{ key: 'bridge b1', kind: 'bridge', id: 'b1', zone: 'z1', shard: 's1', apiUrl: 'http://b1:8080' },
    ...{ version: '1.0', state: 'ready', level: 'ok', message: 'Ready', since: at(NOW - 60_000) },
    ...{ registered: true, lateSince: null, differences: [], reasons: [], inFlight: 3, connections: 7 },
    ...{ rates: { reads: 10, writes: 2, errors: 1, p99: 5 }, cuts: [], facts: [] },
  })
})

test('what is not reported is null', () => {
  const empty = reported({ version: undefined, counters: undefined, rates: undefined, ready: undefined })

  expect(only(edge('e1', { apiUrl: '', reported: empty }))).toMatchObject({
    ...{ zone: null, shard: null, apiUrl: null, version: null, registered: null, inFlight: null, connections: null },
    rates: { reads: null, writes: null, errors: null, p99: null },
  })
  expect(only(edge('e1', { reported: undefined }))).toMatchObject({ inFlight: null, reasons: [], facts: [] })
})

test('a component that fails keeps its version, and has no rates, reasons or connections', () => {
  const before = reported({ version: '1.1', ready: notReady })

  expect(only(bridge('b1', { reported: before }))).toMatchObject({ version: '1.1', reasons: notReady.reasons })
  expect(only(bridge('b1', { ...down, reported: before }))).toMatchObject({
    ...{ version: '1.1', reasons: [], inFlight: null, connections: null },
    rates: { reads: null, writes: null, errors: null, p99: null },
  })
})

test('without a version of its own a component has that of the registry', () => {
  const silent = reported({ version: undefined })

  expect(only(bridge('b1', { registered: listed({ version: '0.9' }), reported: silent })).version).toBe('0.9')
})

test.each<[string, number, number | null]>([
  ['a third of the timeout', 10_000, null],
  ['1 ms more', 10_001, NOW - 11_000],
])('a heartbeat after %s', (_, ageMs, lateSince) => {
  const shown = only(bridge('b1', { registered: listed({ beatAt: NOW - ageMs }) }))

  expect(shown.lateSince).toBe(lateSince === null ? null : at(lateSince))
  expect(shown.differences).toEqual(lateSince === null ? [] : ['It responds, but its heartbeats are late'])
})

test.each<[string, Partial<FabricInput['registry']>]>([
  ['is down', { isUp: false }],
  ['was never read', { at: undefined }],
])('no heartbeat is late when the registry %s', (_, change) => {
  const one = bridge('b1', { registered: listed({ beatAt: NOW - 3_600_000 }) })

  expect(only(one, { registry: registryState({}, change) }).lateSince).toBeNull()
})

test('the timeout of the registry counts, or a minute while it is unknown', () => {
  const registry = registryState({}, { topology: undefined })
  const late = (ageMs: number) => only(bridge('b1', { registered: listed({ beatAt: NOW - ageMs }) }), { registry })

  expect(late(20_000).lateSince).toBeNull()
  expect(late(20_001).lateSince).toBe(at(NOW - 21_000))
})

test('a component that fails is not said to respond with late heartbeats', () => {
  const beatAt = NOW - 20_500

  expect(only(bridge('b1', { ...down, registered: listed({ beatAt }) }))).toMatchObject({
    differences: ['The registry lists it, but it does not respond'],
    lateSince: at(NOW - 21_000),
  })
  expect(only(bridge('b1', { reported: undefined, registered: listed({ beatAt }) })).differences).toEqual([])
})

test('differences between the registry and the component are listed', () => {
  const gone = { registered: undefined }
  const differences = (change: Change) => only(bridge('b1', change)).differences

  expect(differences({})).toEqual([])
  expect(differences(gone)).toEqual(['It responds, but the registry does not list it'])
  expect(only(bridge('b1', gone))).toMatchObject({ registered: false, lateSince: null })
  expect(differences({ ...gone, ...down })).toEqual([])
  expect(differences({ ...gone, reported: undefined })).toEqual([])
  expect(differences({ registered: listed({ version: '0.9' }) })).toEqual(['The registry has version 0.9, it runs 1.0'])
  expect(differences({ registered: listed({ version: undefined }) })).toEqual([])
  expect(differences({ reported: reported({ version: undefined }) })).toEqual([])
  expect(only(edge('e1', down)).differences).toEqual([])
  expect(only(edge('e1')).differences).toEqual([])
})

test('facts are those that the component reports', () => {
  const facts = (change: Partial<Ready>) =>
    only(edge('e1', { reported: reported({ ready: { ...READY, ...change } }) })).facts.map(
      ({ name, value }) => `${name}: ${value}`,
    )

  expect(facts({ mode: 'edge', routes: 0, leader: 'n1', registry_up: true, upstream: 'e1:7000' })).toEqual([
    ...['Mode: edge', 'Routes: 0', 'Leader: n1', 'Registry: responds', 'Upstream: e1:7000'],
  ])
  expect(facts({ leader: null, registry_up: false })).toEqual(['Registry: does not respond to it'])
  expect(facts({})).toEqual([])
})

test('components are in the order of the way of a request, and names with numbers in natural order', () => {
  const shown = view([
    ...[component('resolver', 'x'), component('registry', 'y'), bridge('b10'), bridge('b2')],
    ...[router('r1'), edge('e1'), proxy('p1')],
  ])

  expect(shown.components.map(({ id }) => id)).toEqual(['p1', 'e1', 'r1', 'b2', 'b10', 'y', 'x'])
})

test('the registry is shown with its error, and whether it waits for heartbeats', () => {
  expect(view([], { registry: registryState({ warming: true }) }).registry).toEqual({
    ...{ address: 'http://registry:8500', up: true, error: '', warming: true },
  })
  expect(
    view([], {
      registry: registryState({}, { address: null, isUp: false, error: 'connection refused', topology: undefined }),
    }).registry,
  ).toEqual({ address: null, up: false, error: 'connection refused', warming: false })
})

// Shards

test('a shard is listed when the registry or a node names it, in natural order', () => {
  const { view: s1 } = shardOf([observedNode({ id: 'n1' })])
  const shards = [{ ...s1, id: 's2', zone: 'z9' }]
  const registry = registryState({ shards: { s10: listedShard({ segments: 5 }), s1: listedShard({ zone: 'z2' }) } })

  expect(view([], { registry, shards }).shards).toEqual([
    { id: 's1', zone: 'z2', segments: 3, served: null },
    { id: 's2', zone: 'z9', segments: null, served: null },
    { id: 's10', zone: 'z1', segments: 5, served: null },
  ])
})

const unread: Change = { reported: undefined }

test.each<[string, Polled[], boolean | null]>([
  ['one of two bridges', [bridge('b1', down), bridge('b2')], true],
  ['one bridge and another that is not read yet', [bridge('b1', unread), bridge('b2')], true],
  ['no bridge that works, and one that is not read yet', [bridge('b1', down), bridge('b2', unread)], null],
  ['no bridge that works', [bridge('b1', down), bridge('b2', down)], false],
  ['only bridges of another shard', [bridge('b1', { shard: 's2' })], null],
  ['only a router', [router('b1', { shard: 's1' })], null],
])('whether a shard is served: %s', (_, components, served) => {
  const registry = registryState({ shards: { s1: listedShard() } })

  expect(view(components, { registry }).shards).toMatchObject([{ id: 's1', served }])
})

// What is cut off

const SHARDS = registryState({
  shards: {
    s1: listedShard(),
    s2: listedShard({ segments: 1 }),
    s3: listedShard({ zone: 'z2', segments: 1 }),
  },
})

test.each<[string, Polled[], string[]]>([
  ['a bridge', [bridge('b1', down)], ['Shard s1 (3 segments): no bridge is left, reads and writes get 503']],
  [
    'a bridge of a shard with one segment',
    [bridge('b1', { ...down, shard: 's2' })],
    ['Shard s2 (1 segment): no bridge is left, reads and writes get 503'],
  ],
  [
    'a bridge of a shard that the registry does not list',
    [bridge('b1', { ...down, shard: 's9' })],
    ['Shard s9: no bridge is left, reads and writes get 503'],
  ],
  ['a bridge beside another one', [bridge('b1', down), bridge('b2')], []],
  ['a bridge beside one that is not read yet', [bridge('b1', down), bridge('b2', unread)], []],
  [
    'a bridge beside one of another shard',
    [bridge('b1', down), bridge('b2', { shard: 's2' })],
    ['Shard s1 (3 segments): no bridge is left, reads and writes get 503'],
  ],
  [
    'a bridge beside one of another zone',
    [bridge('b1', down), bridge('b2', { zone: 'z2' })],
    ['Shard s1 (3 segments): no bridge is left, reads and writes get 503'],
  ],
  [
    'a bridge beside a failed one',
    [bridge('b1', down), bridge('b2', down)],
    ['Shard s1 (3 segments): no bridge is left, reads and writes get 503'],
  ],
  ['a router', [router('r1', down)], ['Zone z1: no router is left for s1, s2 (4 segments)']],
  [
    'a router of a zone with one segment',
    [router('r1', { ...down, zone: 'z2' })],
    ['Zone z2: no router is left for s3 (1 segment)'],
  ],
  [
    'a router of an empty zone',
    [router('r1', { ...down, zone: 'z3' })],
    ['Zone z3: no router is left for its shards (0 segments)'],
  ],
  ['a router beside another one', [router('r1', down), router('r2')], []],
  ['an edge router', [edge('e1', down)], ['All clients: no edge router is left']],
  ['an edge router beside another one', [edge('e1', down), edge('e2')], []],
  ['a proxy', [proxy('p1', down)], ['HTTP clients: no proxy is left']],
  ['a proxy beside another one', [proxy('p1', down), proxy('p2')], []],
  ['a proxy beside an edge router', [proxy('p1', down), edge('p2')], ['HTTP clients: no proxy is left']],
  [
    'the registry',
    [component('registry', 'x', down)],
    ['New segments and components are not routed. Known routes stay'],
  ],
  ['one of two registries', [component('registry', 'x', down), component('registry', 'y')], []],
  ['the resolver', [component('resolver', 'x', down)], ['Hosts that move are not found. Known addresses stay']],
])('what a failure cuts off: %s', (_, components, cuts) => {
  const [first] = components
  const shown = view(components, { registry: SHARDS }).components.find(({ key }) => key === first?.key)

  expect(shown?.cuts).toEqual(cuts)
})

test('a component that works, or is not read yet, cuts nothing off', () => {
  expect(only(bridge('b1')).cuts).toEqual([])
  expect(only(bridge('b1', unread)).cuts).toEqual([])
})

// Connections

const edgesOf = (components: readonly Polled[], change: Partial<FabricInput> = {}) => view(components, change).edges

const hops = (...reports: HopReport[]) => reported({ hops: reports })

test.each<[string, Polled, Polled, string, string, string, number | null]>([
  ['connected', router('r1', { reported: hops(hop('b1', 2)) }), bridge('b1'), 'live', 'ok', 'Connected', 2],
  ['not connected', router('r1', { reported: hops(hop('b1', 0)) }), bridge('b1'), 'idle', 'warn', 'Not connected', 0],
  [
    'not connected, with a reason',
    router('r1', { reported: hops(hop('b1', 0, 'connection refused')) }),
    bridge('b1'),
    'idle',
    'warn',
    'Not connected: connection refused',
    0,
  ],
  [
    'unknown to the sender',
    router('r1', { reported: hops(hop('b2', 1)) }),
    bridge('b1'),
    'declared',
    'warn',
    'The registry lists it, r1 does not know it',
    null,
  ],
  [
    'from a sender without a list',
    router('r1'),
    bridge('b1'),
    'unknown',
    'unk',
    'r1 does not report its connections',
    null,
  ],
  [
    'from a failed sender',
    router('r1', { ...down, reported: hops(hop('b1', 2)) }),
    bridge('b1'),
    'down',
    'crit',
    'r1: Unreachable: connection refused',
    null,
  ],
  [
    'to a failed receiver',
    router('r1', { reported: hops(hop('b1', 1)) }),
    bridge('b1', down),
    'down',
    'crit',
    'Unreachable: connection refused',
    1,
  ],
  [
    'from a sender that missed one poll',
    router('r1', { failure: timeout, missed: 1, reported: hops(hop('b1', 2)) }),
    bridge('b1'),
    'unknown',
    'unk',
    'r1 does not report its connections',
    null,
  ],
])('a connection %s', (_, from, to, state, level, message, connections) => {
  expect(edgesOf([from, to])).toMatchObject([
    { from: 'zone-router r1', to: 'bridge b1', state, level, message, connections },
  ])
})

test('a connection has the rates of its sender for this receiver, and the total of the receiver', () => {
  const sent = new Map([
    ['b1', { reads: 4, writes: 1 }],
    ['b2', { reads: 5, writes: 2 }],
  ])
  const from = router('r1', { reported: reported({ hops: [hop('b1', 1), hop('b2', 1)], rates: { ...RATES, sent } }) })

  expect(edgesOf([from, bridge('b1'), bridge('b2', { failure: timeout, missed: 1 })])).toMatchObject([
    { to: 'bridge b1', reads: 4, writes: 1, received: 12 },
    { to: 'bridge b2', reads: 5, writes: 2, received: null },
  ])
  expect(edgesOf([router('r1', { reported: hops(hop('b1', 1)) }), bridge('b1', unread)])).toMatchObject([
    { reads: null, writes: null, received: null },
  ])
})

test('an edge router connects to each router, and a router to the bridges of its zone', () => {
  const edges = edgesOf([edge('e1'), edge('e2'), router('r1'), router('r2', { zone: 'z2' }), bridge('b1')])

  expect(edges.map(({ from, to }) => `${from} → ${to}`)).toEqual([
    'edge e1 → zone-router r1',
    'edge e1 → zone-router r2',
    'edge e2 → zone-router r1',
    'edge e2 → zone-router r2',
    'zone-router r1 → bridge b1',
  ])
})

test('a proxy connects to the only edge router, or to the one at its upstream', () => {
  const upstream = (address: string) => proxy('p1', { reported: reported({ ready: { ...READY, upstream: address } }) })
  const tcp = (id: string, port: number | undefined) =>
    edge(id, { reported: reported({ ready: port === undefined ? READY : { ...READY, tcp_port: port } }) })
  const targets = (...components: Polled[]) => edgesOf(components).map(({ to }) => to)

  expect(targets(proxy('p1'))).toEqual([])
  expect(targets(proxy('p1'), tcp('e1', undefined))).toEqual(['edge e1'])
  expect(targets(upstream('e2:7000'), tcp('e1', 7_000), tcp('e2', 7_000))).toEqual(['edge e2'])
  expect(targets(upstream('e1:7001'), tcp('e1', 7_000), tcp('e2', 7_000))).toEqual([])
  expect(targets(proxy('p1'), tcp('e1', undefined), tcp('e2', undefined))).toEqual([])
})

test('the connection of a proxy has the totals of the proxy', () => {
  const ready = { ...READY, connections: 4 }

  expect(edgesOf([proxy('p1', { reported: reported({ ready }) }), edge('e1')])).toEqual([
    {
      ...{ from: 'proxy p1', to: 'edge e1', state: 'live', level: 'ok', message: 'Connected' },
      ...{ connections: 4, reads: 10, writes: 2, received: 12 },
    },
  ])
  expect(edgesOf([proxy('p1', { reported: reported({ ready: { ...READY, connections: 0 } }) }), edge('e1')])).toEqual([
    expect.objectContaining({ state: 'idle', message: 'Not connected', connections: 0 }),
  ])
  const unknown = { state: 'unknown', message: 'p1 does not report its connections' }
  expect(edgesOf([proxy('p1'), edge('e1', { failure: timeout, missed: 1 })])).toMatchObject([
    { ...unknown, connections: null, received: null },
  ])
  const missed: Change = { failure: timeout, missed: 1, reported: reported({ ready }) }
  expect(edgesOf([proxy('p1', missed), edge('e1')])).toMatchObject([
    { ...unknown, connections: null, reads: null, writes: null },
  ])
  expect(edgesOf([proxy('p1', { reported: reported({ rates: undefined }) }), edge('e1')])).toMatchObject([
    { reads: null, writes: null },
  ])
})

test.each<[string, number | undefined, ReturnType<typeof tcpOf>]>([
  ['http://e1:8080', 7_000, { host: 'e1', port: 7_000 }],
  ['http://[fe80::1]:8080', 7_000, { host: 'fe80::1', port: 7_000 }],
  ['http://e1:8080', undefined, undefined],
  ['', 7_000, undefined],
])('the address for clients of an edge router at %o with port %o', (apiUrl, tcpPort, expected) => {
  const ready = tcpPort === undefined ? READY : { ...READY, tcp_port: tcpPort }

  expect(tcpOf(edge('e1', { apiUrl, reported: reported({ ready }) }))).toEqual(expected)
  expect(tcpOf(edge('e1', { apiUrl, reported: undefined }))).toBeUndefined()
})

test('a bridge connects to the nodes of its shard from every source, in natural order', () => {
  const { view: s1 } = shardOf([observedNode({ id: 'n2' })])
  const registry = registryState({ shards: { s1: listedShard({ nodes: ['n10'] }), s2: listedShard({ nodes: ['x'] }) } })
  const other = { ...s1, id: 's2', nodes: s1.nodes.map((node) => ({ ...node, id: 'y' })) }
  const named = s1.nodes.map(({ id }) => id)

  const edges = edgesOf([bridge('b1', { reported: hops(hop('n1', 1), hop('n2', 1)) })], {
    registry,
    shards: [other, s1],
  })

  expect(named).toContain('n2')
  expect(edges.map(({ to }) => to)).toEqual(
    [...new Set(['n1', 'n2', ...named])]
      .sort()
      .concat('n10')
      .map((id) => `node s1/${id}`),
  )
  expect(edgesOf([bridge('b1')], { registry, shards: [] }).map(({ to }) => to)).toEqual(['node s1/n10'])
  expect(edgesOf([component('bridge', 'b1')], { registry, shards: [other] })).toEqual([])
})

test.each<[string, Partial<ShardNode>, object]>([
  ['that responds', {}, { state: 'live', level: 'ok', message: 'Connected', connections: 2 }],
  [
    'that is unreachable',
    { state: 'unreachable', message: 'Unreachable: connection refused' },
    { state: 'down', level: 'crit', message: 'Unreachable: connection refused' },
  ],
  [
    'that does not answer',
    { state: 'not-answering', message: 'Does not answer' },
    { state: 'down', level: 'crit', message: 'Does not answer' },
  ],
  ['that is unavailable', { state: 'unavailable', message: 'Unavailable' }, { state: 'live' }],
  ['with rates', { rates: rates(3.333, 2.222) }, { received: 5.56 }],
  ['with reads only', { rates: rates(3, null) }, { received: 3 }],
  ['with writes only', { rates: rates(null, 2) }, { received: 2 }],
  ['without rates', { rates: rates(null, null) }, { received: null }],
])('the connection of a bridge to a node %s', (_, change, expected) => {
  const { view: s1 } = shardOf([observedNode({ id: 'n1', voters: ['n1'] })])
  const shards = [{ ...s1, nodes: s1.nodes.map((node) => ({ ...node, ...change })) }]
  const sent = new Map([['n1', { reads: 6, writes: 7 }]])
  const from = bridge('b1', { reported: reported({ hops: [hop('n1', 2)], rates: { ...RATES, sent } }) })

  expect(edgesOf([from], { shards })).toMatchObject([
    { from: 'bridge b1', to: 'node s1/n1', reads: 6, writes: 7, ...expected },
  ])
})

test('a node that only the registry knows is declared, and a failed bridge has no connections', () => {
  const registry = registryState({ shards: { s1: listedShard({ nodes: ['n1'] }) } })

  expect(edgesOf([bridge('b1', { reported: hops() })], { registry })).toEqual([
    {
      ...{ from: 'bridge b1', to: 'node s1/n1', state: 'declared', level: 'warn' },
      ...{ message: 'The registry lists it, b1 does not know it', connections: null },
      ...{ reads: null, writes: null, received: null },
    },
  ])
  expect(edgesOf([bridge('b1')], { registry })).toMatchObject([{ state: 'unknown' }])
  const sent = new Map([['n1', { reads: 6, writes: 7 }]])
  const before = reported({ hops: [hop('n1', 2)], rates: { ...RATES, sent } })
  expect(edgesOf([bridge('b1', { ...down, reported: before })], { registry })).toMatchObject([
    { state: 'down', message: 'b1: Unreachable: connection refused', connections: null, reads: null, writes: null },
  ])
  expect(edgesOf([bridge('b1', { reported: hops(hop('n1', 0, 'cut')) })], { registry })).toMatchObject([
    { state: 'idle', message: 'Not connected: cut' },
  ])
})

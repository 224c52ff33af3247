import type { FabricKind } from '@vacancy/shared/contract'
import { describe, expect, test } from 'vitest'
import { NOW } from '../testing/observed-nodes.ts'
import { datasetsOf } from './datasets.ts'
import { cutOffShards, deriveFabric, type FabricInput, judge } from './derive.ts'
import { newComponent, type Polled, type RegistryState } from './fabric.ts'
import type { Counters, HopReport, Rates, Ready, Reported } from './replies.ts'

/** The derived view of the fabric: states, connections, and what clients lose. Pure, so that no component runs. */

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

const ends = {
  name: 'certificate_ends',
  message: 'the certificate of the listeners ends at 2026-12-01',
  since: at(NOW),
}
const notReady: Ready = { ready: false, reasons: [{ name: 'leader', message: 'No leader is known.', since: at(NOW) }] }

test.each<[string, Polled, string, string, string, boolean | undefined]>([
  ['responds', bridge('b1'), 'ready', 'ok', 'Ready', true],
  [
    'has a certificate that ends soon',
    bridge('b1', { reported: reported({ ready: { ready: true, reasons: [ends] } }) }),
    'ready',
    'warn',
    'Ready; the certificate of the listeners ends at 2026-12-01',
    true,
  ],
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
  expect(cutOffShards({ registry, components }).has('s1')).toBe(served === false)
})

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

describe('datasets', () => {
  /** What the registry holds, as its page lists it; and samples of a metrics page. */

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
})

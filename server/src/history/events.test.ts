/** Events: what counts as a change between two views of a shard, and which are kept until they are stored. */

import type { NodeView, ShardView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { expect, test } from 'vitest'
import { NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import { addEvents, createEvents, eventsBetween, type LastLeader } from './events.ts'
import type { HistoryDatabase } from './tables.ts'

const { view: SHARD } = shardOf(['n1', 'n2', 'n3'].map((id) => observedNode({ id })))
const [NODE] = SHARD.nodes as [NodeView]

const texts = (before: ShardView, after: ShardView, last?: LastLeader) =>
  eventsBetween(before, after, last).map(({ kind, level, node, message }) => `${kind} ${level} ${node}: ${message}`)
const led = (leader: string | null): ShardView => ({ ...SHARD, leader })

test.each<[string, string | null, string | null, LastLeader | undefined, string[]]>([
  ['the first leader', null, 'n1', undefined, []],
  ['the same leader', 'n1', 'n1', { leader: 'n2', lostMs: 1_000 }, []],
  ['a lost leader', 'n1', null, undefined, []],
  ['another leader', 'n1', 'n2', undefined, ['leader info n2: leadership of s1 moved n1 → n2']],
  [
    'another leader after a gap',
    null,
    'n2',
    { leader: 'n1', lostMs: 1 },
    ['leader info n2: leadership of s1 moved n1 → n2, writes paused about 1 ms'],
  ],
  [
    'the same leader after a gap',
    null,
    'n1',
    { leader: 'n1', lostMs: 12_000 },
    ['leader info n1: n1 leads s1 again, writes paused about 12 s'],
  ],
  ['the same leader at once', null, 'n1', { leader: 'n1', lostMs: 0 }, ['leader info n1: n1 leads s1 again']],
])('%s', (_, before, after, last, expected) => {
  expect(texts(led(before), led(after), last)).toEqual(expected)
})

test('a state of the shard is an event with its level, a message alone is not', () => {
  const failing: ShardView = { ...SHARD, state: 'no-leader', level: 'crit', message: 'No leader' }

  expect(texts(SHARD, failing)).toEqual(['state crit null: s1: No leader'])
  expect(texts(SHARD, { ...SHARD, message: 'other' })).toEqual([])
})

test('nodes that come and go are events', () => {
  const fewer = { ...SHARD, nodes: SHARD.nodes.slice(0, 2) }

  expect(texts(fewer, SHARD)).toEqual(['membership info n3: n3 of s1 was discovered'])
  expect(texts(SHARD, fewer)).toEqual(['membership info n3: n3 of s1 is no longer known'])
})

const snapshotOf = (id: string): NodeView['snapshot'] => ({
  ...{ id, createdAt: '', lastIndex: 70, packages: 1, properties: 1, segments: 1, codecHash: '', bytes: 1 },
  origin: 'periodic' as NonNullable<NodeView['snapshot']>['origin'],
})

test.each<[string, Partial<NodeView>, Partial<NodeView>, string[]]>([
  ['in another state', {}, { state: 'behind', level: 'warn', message: 'Behind' }, ['state warn n1: s1 / n1: Behind']],
  ['that responds for the first time', { state: 'unknown', freshness: 'never' }, {}, []],
  ['that is a voter', { voter: false }, { voter: true }, ['membership info n1: s1 / n1 is a voter']],
  ['that is no voter', { voter: true }, { voter: false }, ['membership info n1: s1 / n1 is no longer a voter']],
  ['whose vote becomes known', { voter: null }, { voter: true }, []],
  ['whose vote becomes unknown', { voter: true }, { voter: null }, []],
  ['that is a candidate', { role: 'follower' }, { role: 'candidate' }, ['role info n1: s1 / n1 started an election']],
  ['that stays a candidate', { role: 'candidate' }, { role: 'candidate' }, []],
  ['that was a candidate', { role: 'candidate' }, { role: 'follower' }, []],
  [
    'that restarted',
    { startedAt: 'a' },
    { startedAt: 'b', version: '1.2' },
    ['restart info n1: s1 / n1 restarted, version 1.2'],
  ],
  [
    'that restarted without a version',
    { startedAt: 'a' },
    { startedAt: 'b', version: null },
    ['restart info n1: s1 / n1 restarted, version not reported'],
  ],
  ['whose start becomes known', { startedAt: null }, { startedAt: 'b' }, []],
  ['whose start becomes unknown', { startedAt: 'a' }, { startedAt: null }, []],
  [
    'with another codec list',
    { orderedHash: 'a' },
    { orderedHash: 'b' },
    ['codecs warn n1: s1 / n1 uses a different codec list'],
  ],
  ['whose codec list becomes known', { orderedHash: null }, { orderedHash: 'b' }, []],
  ['whose codec list becomes unknown', { orderedHash: 'a' }, { orderedHash: null }, []],
  [
    'with a new snapshot',
    { snapshot: snapshotOf('a') },
    { snapshot: snapshotOf('b') },
    ['snapshot ok n1: s1 / n1 saved a snapshot at index 70'],
  ],
  ['with the same snapshot', { snapshot: snapshotOf('a') }, { snapshot: snapshotOf('a') }, []],
  ['with its first snapshot', { snapshot: null }, { snapshot: snapshotOf('b') }, []],
  ['without its snapshot', { snapshot: snapshotOf('a') }, { snapshot: null }, []],
])('a node %s', (_, before, after, expected) => {
  const shardWith = (change: Partial<NodeView>) => ({ ...SHARD, nodes: [{ ...NODE, ...change }] })

  expect(texts(shardWith(before), shardWith(after))).toEqual(expected)
})

// Kept events

function store() {
  const dropped: unknown[] = []
  const log = { warn: (fields: unknown) => dropped.push(fields) } as unknown as Log
  return { events: createEvents({} as HistoryDatabase, log, () => NOW), dropped }
}
const found = (message: string, kind: 'state' | 'snapshot' = 'state') =>
  ({ shard: 's1', node: null, kind, level: 'info', message }) as const

test('events get an id and the time, and the newest are first', () => {
  const { events } = store()
  addEvents(events, [], NOW)
  addEvents(events, [found('a'), found('b')], NOW)
  addEvents(events, [found('c')], NOW + 1_000)

  expect(events.recent.map(({ message, at }) => [message, Date.parse(at) - NOW])).toEqual([
    ['c', 1_000],
    ['b', 0],
    ['a', 0],
  ])
  expect(events.waiting.map(({ message }) => message)).toEqual(['a', 'b', 'c'])
  expect(new Set(events.waiting.map(({ id }) => id)).size).toBe(3)
})

test('the newest 30 events are shown, without snapshots', () => {
  const { events } = store()
  addEvents(events, [found('snapshot', 'snapshot')], NOW)
  for (let i = 0; i <= 30; i++) addEvents(events, [found(`${i}`)], NOW)

  expect(events.recent.map(({ message }) => message)).toEqual(Array.from({ length: 30 }, (_, i) => `${30 - i}`))
  expect(events.waiting).toHaveLength(32)
})

test('at most 10,000 events wait to be stored: the oldest are dropped and counted', () => {
  const { events, dropped } = store()
  addEvents(
    events,
    Array.from({ length: 10_000 }, (_, i) => found(`${i}`)),
    NOW,
  )
  expect([events.waiting.length, dropped]).toEqual([10_000, []])
  addEvents(events, [found('x'), found('y')], NOW)

  expect([events.waiting.length, events.waiting[0]?.message, events.waiting.at(-1)?.message]).toEqual([
    ...[10_000, '2', 'y'],
  ])
  expect(dropped).toEqual([{ dropped: 2 }])
})

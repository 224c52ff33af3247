import { REGISTRY_LIMITS } from '@vacancy/shared/contract'
import { law } from '@vacancy/shared/testing/law'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { answers, apply, change, put, SHARDS, ZONES } from '../testing/changes.ts'
import type { RegistryState } from './model.ts'
import {
  bridgesByShard,
  conflicts,
  createState,
  datasets,
  deregister,
  endReservation,
  expire,
  expireReservations,
  forgetShard,
  nodesOfShard,
  ownerOf,
  pushSegments,
  RESERVATION_MS,
  reserve,
  routersIn,
  segmentsOfShard,
  segmentsOfZone,
  setCodecs,
  versionOf,
  zones,
} from './state.ts'
import { restoreState, storedOf } from './stored.ts'

const FIRST = 1_000
const fresh = () => createState({ epoch: '0123456789abcdef', firstVersion: FIRST, codecs: ['a'] })

const push = (state: RegistryState, shard: string, zone: string, segments: readonly string[], term?: number) =>
  pushSegments(state, shard, { zone, segments, term }, false)

/** The versions bumped by a change, and by how much. */
function bumps(state: RegistryState, change: () => void): { readonly [dataset: string]: number } {
  const before = new Map(state.versions)
  const global = state.globalVersion
  change()
  const moved = [...state.versions].flatMap(([name, version]) => {
    const by = version - (before.get(name) ?? FIRST)
    return by === 0 ? [] : [[name, by] as const]
  })
  expect(state.globalVersion - global).toBe(moved.reduce((sum, [, by]) => sum + by, 0))
  return Object.fromEntries(moved)
}

test('unknown datasets have no version', () => {
  const state = fresh()

  expect(versionOf(state, datasets.routers('z1'))).toBe(0)
  expect(state.globalVersion).toBe(FIRST)
  put(state, 'router', 'r1', 'z1')
  expect(versionOf(state, datasets.routers('z1'))).toBe(FIRST + 1)
})

test.each<[string, (state: RegistryState) => void, (state: RegistryState) => void, { [dataset: string]: number }]>([
  ['a new router', () => {}, (s) => put(s, 'router', 'r', 'z1'), { 'zones/z1/routers': 1 }],
  ['a known router', (s) => put(s, 'router', 'r', 'z1'), (s) => put(s, 'router', 'r', 'z1'), {}],
  [
    'a router that moves',
    (s) => put(s, 'router', 'r', 'z1'),
    (s) => put(s, 'router', 'r', 'z2'),
    { 'zones/z1/routers': 1, 'zones/z2/routers': 1 },
  ],
  ['a new bridge', () => {}, (s) => put(s, 'bridge', 'b', 'z1', 's1'), { 'zones/z1/shards': 1 }],
  [
    'a bridge that moves to another shard of its zone',
    (s) => put(s, 'bridge', 'b', 'z1', 's1'),
    (s) => put(s, 'bridge', 'b', 'z1', 's2'),
    { 'zones/z1/shards': 2 },
  ],
  [
    'a bridge that moves',
    (s) => put(s, 'bridge', 'b', 'z1', 's1'),
    (s) => put(s, 'bridge', 'b', 'z2', 's1'),
    { 'zones/z1/shards': 1, 'zones/z2/shards': 1 },
  ],
  ['a new node', () => {}, (s) => put(s, 'node', 'n', 'z1', 's1'), { 'shards/s1/nodes': 1 }],
  [
    'a node of another shard',
    (s) => put(s, 'node', 'n', 'z1', 's1'),
    (s) => put(s, 'node', 'n', 'z1', 's2'),
    { 'shards/s1/nodes': 1, 'shards/s2/nodes': 1 },
  ],
  ['a node in another zone', (s) => put(s, 'node', 'n', 'z1', 's1'), (s) => put(s, 'node', 'n', 'z2', 's1'), {}],
  [
    'a removed node',
    (s) => put(s, 'node', 'n', 'z1', 's1'),
    (s) => deregister(s, 'node', 'n'),
    { 'shards/s1/nodes': 1 },
  ],
  ['a first list', () => {}, (s) => push(s, 's1', 'z1', ['a']), { 'shards/s1/segments': 1, 'zones/z1/segments': 1 }],
  ['an empty first list', () => {}, (s) => push(s, 's1', 'z1', []), { 'shards/s1/segments': 1 }],
  [
    'the same list in a different order',
    (s) => push(s, 's1', 'z1', ['a', 'b']),
    (s) => push(s, 's1', 'z1', ['b', 'a', 'a']),
    {},
  ],
  [
    'a shorter list',
    (s) => push(s, 's1', 'z1', ['a', 'b']),
    (s) => push(s, 's1', 'z1', ['a']),
    { 'shards/s1/segments': 1, 'zones/z1/segments': 1 },
  ],
  [
    'letter case',
    (s) => push(s, 's1', 'z1', ['a']),
    (s) => push(s, 's1', 'z1', ['A']),
    { 'shards/s1/segments': 1, 'zones/z1/segments': 1 },
  ],
  [
    'a shard that moves',
    (s) => push(s, 's1', 'z1', ['a']),
    (s) => push(s, 's1', 'z2', ['a']),
    { 'shards/s1/segments': 1, 'zones/z1/segments': 1, 'zones/z2/segments': 1 },
  ],
  [
    'an empty shard that moves',
    (s) => push(s, 's1', 'z1', []),
    (s) => push(s, 's1', 'z2', []),
    { 'shards/s1/segments': 1 },
  ],
  [
    'a segment that moves to another shard of the zone',
    (s) => {
      push(s, 's1', 'z1', ['a'])
      push(s, 's2', 'z1', ['a'])
    },
    (s) => push(s, 's1', 'z1', []),
    { 'shards/s1/segments': 1, 'shards/s2/segments': 1 },
  ],
  [
    'a list of segments owned by other shards',
    (s) => push(s, 's1', 'z1', ['a']),
    (s) => push(s, 's2', 'z2', ['a']),
    { 'shards/s2/segments': 1 },
  ],
  [
    "a shard's first live bridge",
    (s) => push(s, 's1', 'z1', ['a']),
    (s) => put(s, 'bridge', 'b', 'z1', 's1'),
    { 'zones/z1/shards': 1, 'shards/s1/segments': 1 },
  ],
  [
    "a shard's second bridge",
    (s) => {
      push(s, 's1', 'z1', ['a'])
      put(s, 'bridge', 'b1', 'z1', 's1')
    },
    (s) => put(s, 'bridge', 'b2', 'z1', 's1'),
    { 'zones/z1/shards': 1 },
  ],
  [
    "a zone's first live router",
    (s) => push(s, 's1', 'z1', ['a']),
    (s) => put(s, 'router', 'r', 'z1'),
    { 'zones/z1/routers': 1, 'zones/z1/segments': 1 },
  ],
])('%s bumps exactly the expected versions', (_what, before, change, expected) => {
  const state = fresh()
  before(state)

  expect(bumps(state, () => change(state))).toEqual(expected)
})

test('components silent for longer than the timeout are removed, and each dataset is bumped once', () => {
  const state = fresh()
  put(state, 'router', 'r1', 'z1', undefined, 0)
  put(state, 'router', 'r2', 'z1', undefined, 0)
  put(state, 'router', 'r3', 'z1', undefined, 100)
  put(state, 'bridge', 'b1', 'z1', 's1', 0)
  put(state, 'node', 'n1', 'z1', 's1', 0)
  push(state, 's1', 'z1', ['a'])

  expect(bumps(state, () => expire(state, 60_000, 60_000))).toEqual({})
  expect(bumps(state, () => expire(state, 60_001, 60_000))).toEqual({
    'zones/z1/routers': 1,
    'zones/z1/shards': 1,
    'shards/s1/nodes': 1,
  })
  expect(routersIn(state, 'z1')).toEqual(['r3'])
  expect(bridgesByShard(state, 'z1')).toEqual({})
  expect(segmentsOfShard(state, 's1')).toEqual(['a'])
})

test('heartbeats keep a component registered', () => {
  const state = fresh()
  for (let now = 0; now < 1_000; now += 10) {
    put(state, 'node', 'n1', 'z1', 's1', now)
    expect(expire(state, now, 10)).toEqual([])
  }
})

test('lists are sorted by bytes', () => {
  const state = fresh()
  for (const id of ['b', 'B', 'a.1', 'a']) put(state, 'node', id, 'z1', 's1')
  push(state, 's1', 'z1', ['\u{1f600}', 'zürich', '\uffee', 'Zug', 'aarau'])

  expect(nodesOfShard(state, 's1')).toEqual(['B', 'a', 'a.1', 'b'])
  expect(segmentsOfShard(state, 's1')).toEqual(['Zug', 'aarau', 'zürich', '\uffee', '\u{1f600}'])
})

test('of two shards that claim a segment the first owns it, until it releases it', () => {
  const state = fresh()
  push(state, 's1', 'z1', ['a', 'b'])

  expect(push(state, 's2', 'z2', ['b', 'c'])).toEqual({
    ok: true,
    changed: true,
    accepted: 1,
    conflicts: [{ segment: 'b', ownerShard: 's1', ownerZone: 'z1' }],
  })
  expect(segmentsOfShard(state, 's2')).toEqual(['c'])
  expect(conflicts(state)).toEqual([{ segment: 'b', shards: ['s1', 's2'] }])

  push(state, 's1', 'z1', ['a'])
  expect(segmentsOfShard(state, 's2')).toEqual(['b', 'c'])
  // A shard that releases and reclaims a segment is last in the queue.
  push(state, 's1', 'z1', ['a', 'b'])
  expect(ownerOf(state, 'b')).toEqual({ shard: 's2', zone: 'z2' })
  expect(segmentsOfZone(state, 'z2')).toEqual(['b', 'c'])
})

test('with reject a list with a segment of another shard changes nothing', () => {
  const state = fresh()
  push(state, 's1', 'z1', ['a'])
  const result = bumps(state, () => {
    expect(pushSegments(state, 's2', { zone: 'z1', segments: ['a', 'b'], term: 1 }, true)).toMatchObject({
      ok: false,
      refused: 'conflicts',
      accepted: 1,
      conflicts: [{ segment: 'a', ownerShard: 's1' }],
    })
  })

  expect(result).toEqual({})
  expect(ownerOf(state, 'b')).toBeUndefined()
})

test('a late push of a former leader is refused', () => {
  const state = fresh()
  put(state, 'node', 'n1', 'z1', 's1')
  push(state, 's1', 'z1', ['a'], 5)

  expect(push(state, 's1', 'z1', ['b'], 4)).toEqual({ ok: false, refused: 'stale term', term: 5 })
  expect(push(state, 's1', 'z1', ['c'])).toMatchObject({ ok: true })
  expect(push(state, 's1', 'z1', ['d'], 5)).toMatchObject({ ok: true })
  expect(segmentsOfShard(state, 's1')).toEqual(['d'])
})

test('the zone of a shard without claims is the same after a restart, whichever component registered first', () => {
  const state = fresh()
  put(state, 'bridge', 'b1', 'z1', 's1')
  put(state, 'bridge', 'b2', 'z2', 's1')
  // A component that moved used to be the last one before a restart, and the first one after it.
  put(state, 'bridge', 'b1', 'z3', 's1')
  const restored = restoreState(JSON.stringify(storedOf(state)), 0)
  if ('fault' in restored) throw new Error(restored.fault)

  for (const each of [state, restored.state]) {
    expect(reserve(each, 'segment', 's1', 0)).toMatchObject({ ok: true })
    expect(ownerOf(each, 'segment')).toEqual({ shard: 's1', zone: 'z2' })
  }
})

test('a restored shard, whose nodes were all stopped, may return with an older term', () => {
  const state = fresh()
  put(state, 'node', 'n1', 'z1', 's1')
  put(state, 'node', 'n2', 'z1', 's1')
  push(state, 's1', 'z1', ['a'], 5)
  deregister(state, 'node', 'n1')
  expect(push(state, 's1', 'z1', ['b'], 4)).toMatchObject({ ok: false, refused: 'stale term' })
  deregister(state, 'node', 'n2')

  expect(push(state, 's1', 'z1', ['b'], 4)).toMatchObject({ ok: true })
})

test('a list from a zone without nodes of the shard is refused', () => {
  const state = fresh()
  put(state, 'node', 'n1', 'z1', 's1')

  expect(push(state, 's1', 'z2', ['a'])).toEqual({ ok: false, refused: 'zone', zone: 'z1' })
  put(state, 'node', 'n2', 'z2', 's1')
  expect(push(state, 's1', 'z2', ['a'])).toMatchObject({ ok: true })
})

test('a shard is forgotten only without live nodes, and its segments pass to the next claimants', () => {
  const state = fresh()
  push(state, 's1', 'z1', ['a', 'b'])
  push(state, 's2', 'z2', ['a'])
  put(state, 'node', 'n1', 'z1', 's1')

  expect(forgetShard(state, 's1')).toBe('has nodes')
  deregister(state, 'node', 'n1')
  expect(bumps(state, () => expect(forgetShard(state, 's1')).toBe('forgotten'))).toEqual({
    'shards/s1/segments': 1,
    'shards/s2/segments': 1,
    'zones/z1/segments': 1,
    'zones/z2/segments': 1,
  })
  expect(ownerOf(state, 'a')).toEqual({ shard: 's2', zone: 'z2' })
  expect(ownerOf(state, 'b')).toBeUndefined()
  expect(forgetShard(state, 's1')).toBe('unknown')
  expect(zones(state)).toEqual(['z2'])
})

test('a reserved segment is routed to its shard until the shard claims it', () => {
  const state = fresh()
  push(state, 's1', 'z1', ['a'])

  expect(reserve(state, 'new', 's9', 0)).toEqual({ ok: false, refused: 'unknown shard' })
  expect(reserve(state, 'a', 's9', 0)).toEqual({ ok: false, refused: 'owned', owner: 's1' })
  expect(reserve(state, 'a', 's1', 0)).toEqual({ ok: true, changed: false })
  expect(bumps(state, () => reserve(state, 'new', 's1', 0))).toEqual({
    'shards/s1/segments': 1,
    'zones/z1/segments': 1,
  })
  expect(segmentsOfShard(state, 's1')).toEqual(['a', 'new'])
  // The leader continues to push its list: the reservation stays.
  expect(bumps(state, () => push(state, 's1', 'z1', ['a']))).toEqual({})
  expect(push(state, 's2', 'z2', ['new'])).toMatchObject({ accepted: 0 })

  push(state, 's1', 'z1', ['a', 'new'])
  expect(state.reservations.size).toBe(0)
  expect(ownerOf(state, 'new')?.shard).toBe('s1')
  expect(endReservation(state, 'new')).toBe(false)
})

test('an unused reservation expires, and the next claimant has the segment', () => {
  const state = fresh()
  put(state, 'bridge', 'b1', 'z1', 's1')
  reserve(state, 'new', 's1', 1_000)
  push(state, 's2', 'z2', ['new'])

  expect(expireReservations(state, 1_000 + RESERVATION_MS - 1)).toEqual([])
  expect(ownerOf(state, 'new')).toEqual({ shard: 's1', zone: 'z1' })
  expect(expireReservations(state, 1_000 + RESERVATION_MS)).toEqual(['new'])
  expect(ownerOf(state, 'new')).toEqual({ shard: 's2', zone: 'z2' })
})

test('a different codec list bumps the global version', () => {
  const state = fresh()

  expect(setCodecs(state, ['a'])).toBe(false)
  expect(setCodecs(state, ['a', 'b'])).toBe(true)
  expect(state.globalVersion).toBe(FIRST + 1)
})

test('two processes with one id are detected when they alternate; a restart is not', () => {
  const state = fresh()
  const beat = (instance: string) => {
    const result = put(state, 'node', 'n1', 'z1', 's1', 0, { instance })
    return result.ok && result.clash
  }

  expect([beat('a'), beat('a'), beat('b'), beat('b'), beat('c')]).toEqual([false, false, false, false, false])
  expect([beat('d'), beat('c'), beat('d'), beat('c')]).toEqual([false, true, true, true])
  expect(beat('c')).toBe(false)
})

test('the last reported details are kept, and segment counts up to a limit', () => {
  const state = fresh()
  const counts = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`s${i}`, i]))
  for (let i = 0; i < 1_001; i++) put(state, 'node', `n${i}`, 'z1', 's1', 0, { role: 'leader', segment_counts: counts })

  expect(state.segmentCountsKept).toBe(REGISTRY_LIMITS.segmentCountsKeptMax)
  expect(state.components.node.get('n1000')?.details).toEqual({ role: 'leader' })
  deregister(state, 'node', 'n0')
  put(state, 'node', 'n1000', 'z1', 's1', 0, { segment_counts: counts })
  expect(state.components.node.get('n1000')?.details).toEqual({ segment_counts: counts })
  expect(state.segmentCountsKept).toBe(REGISTRY_LIMITS.segmentCountsKeptMax)
})

test('components are limited, and existing ones continue', () => {
  const state = fresh()
  for (let i = 0; i < REGISTRY_LIMITS.componentsMax; i++) put(state, 'node', `n${i}`, 'z1', 's1')

  expect(put(state, 'node', 'more', 'z1', 's1')).toMatchObject({ ok: false, field: 'id' })
  expect(put(state, 'node', 'n0', 'z2', 's2')).toMatchObject({ ok: true })
  deregister(state, 'node', 'n1')
  expect(put(state, 'node', 'more', 'z1', 's1')).toMatchObject({ ok: true })
})

// Properties, over random changes.

test('every changed response bumps its version, and versions only increase', () => {
  law([fc.array(change, { maxLength: 40 })], (changes) => {
    const state = fresh()
    const world = { nowMs: 0, queues: new Map<string, string[]>() }
    for (const next of changes) {
      const [before, versions, global] = [answers(state), new Map(state.versions), state.globalVersion]
      apply(state, next, world)
      for (const [dataset, list] of answers(state)) {
        const [was, is] = [versions.get(dataset) ?? 0, versionOf(state, dataset)]
        expect(is).toBeGreaterThanOrEqual(was)
        if (list !== before.get(dataset)) expect(is, `${dataset} after ${next.do}`).toBeGreaterThan(was)
      }
      expect(state.globalVersion >= global).toBe(true)
      expect(state.globalVersion > global).toBe(JSON.stringify([...versions]) !== JSON.stringify([...state.versions]))
    }
  })
})

test('a segment always has one owner, the earliest unbroken claim', () => {
  law([fc.array(change, { maxLength: 40 })], (changes) => {
    const state = fresh()
    const world = { nowMs: 0, queues: new Map<string, string[]>() }
    for (const next of changes) {
      apply(state, next, world)
      const expected = new Map([...world.queues].filter(([, queue]) => queue.length > 0))
      expect(new Map(state.queues)).toEqual(expected)
      for (const each of SHARDS) {
        const owned = [...expected].flatMap(([name, queue]) => (queue[0] === each ? [name] : []))
        expect(segmentsOfShard(state, each)).toEqual(owned.sort())
      }
      expect(ZONES.flatMap((each) => segmentsOfZone(state, each)).sort()).toEqual([...expected.keys()].sort())
      expect(state.conflictCount).toBe([...expected.values()].filter((queue) => queue.length > 1).length)
      expect(state.claimCount).toBe([...state.claims.values()].reduce((sum, { segments }) => sum + segments.length, 0))
    }
  })
})

test('a stored and restored state gives the same responses and versions', () => {
  law([fc.array(change, { maxLength: 40 }), fc.array(change, { maxLength: 10 })], (changes, more) => {
    const state = fresh()
    const world = { nowMs: 0, queues: new Map<string, string[]>() }
    for (const next of changes) apply(state, next, world)

    const restored = restoreState(JSON.stringify(storedOf(state)), world.nowMs)
    if ('fault' in restored) throw new Error(restored.fault)
    expect(answers(restored.state)).toEqual(answers(state))
    expect(restored.state.versions).toEqual(state.versions)
    expect(restored.state.globalVersion).toBe(state.globalVersion)
    expect(restored.state.queues).toEqual(state.queues)
    expect(restored.state.reservations).toEqual(state.reservations)
    // It continues like the original: no derived data was lost.
    const [a, b] = [
      { ...world, queues: new Map(world.queues) },
      { ...world, queues: new Map(world.queues) },
    ]
    for (const next of more.filter((each) => each.do !== 'expire' && each.do !== 'wait')) {
      apply(state, next, a)
      apply(restored.state, next, b)
      expect(answers(restored.state)).toEqual(answers(state))
      expect(restored.state.versions).toEqual(state.versions)
    }
  })
})

test.each([
  ['', 'is not valid JSON'],
  ['{"format":1', 'is not valid JSON'],
  ['[]', 'the document'],
  ['{"format":2}', 'format'],
  [(stored: object) => ({ ...stored, epoch: 'x' }), 'epoch'],
  [(stored: object) => ({ ...stored, versions: { a: -1 } }), 'versions.a'],
  [(stored: object) => ({ ...stored, components: [{ kind: 'node', id: 'n', zone: 'z' }] }), 'components.0'],
  [(stored: object) => ({ ...stored, claims: [{ shard: 'a/b', zone: 'z', term: 0, segments: [] }] }), 'claims.0.shard'],
  [
    (stored: object) => ({ ...stored, claims: [{ shard: 's', zone: 'z', term: 0, segments: [''] }] }),
    'claims.0.segments.0',
  ],
  [(stored: object) => ({ ...stored, contested: [{ segment: 'a', shards: ['s1', 's2'] }] }), 'contested'],
  [(stored: object) => ({ ...stored, reservations: [{ segment: 'a', shard: 's1', until_ms: 1 }] }), 'reservations'],
])('an invalid stored state (%#) is reported with its location', (damage, message) => {
  const text = typeof damage === 'string' ? damage : JSON.stringify(damage(storedOf(fresh())))
  const restored = restoreState(text, 0)

  expect('fault' in restored && restored.fault).toContain(message)
})

test('any truncated stored state is refused', () => {
  const state = fresh()
  put(state, 'node', 'n1', 'z1', 's1')
  push(state, 's1', 'z1', ['a'])
  const text = JSON.stringify(storedOf(state))

  for (let length = 0; length < text.length; length++)
    expect('fault' in restoreState(text.slice(0, length), 0)).toBe(true)
})

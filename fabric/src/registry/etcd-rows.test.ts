import { law } from '@vacancy/shared/testing/law'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { answers, apply, change } from '../testing/changes.ts'
import {
  createImage,
  documentOf,
  ETCD_LIMITS,
  encodeChange,
  type Image,
  type Row,
  type RowEvent,
  readEvents,
} from './etcd-rows.ts'
import { isChange, recorded, valuesAfter, valuesBefore } from './journal.ts'
import type { RegistryState } from './model.ts'
import { createState, pushSegments, reserve, writeValues } from './state.ts'
import { restoreValue, storedOf } from './stored.ts'

const BASE = 1_000_000
const META = { epoch: '0123456789abcdef', base: BASE, modRevision: 1 }
const CODECS = ['a']

/** Rows as a transaction leaves them: a key, its value and the revision that wrote it. */
type World = {
  readonly rows: Map<string, Row>
  revision: number
  parts: number
  readonly state: RegistryState
  readonly image: Image
  /** Another process that follows by events. */
  readonly other: RegistryState
  readonly otherImage: Image
}

const fresh = () => createState({ epoch: META.epoch, firstVersion: BASE, codecs: CODECS })

function newWorld(): World {
  const codecs = { key: 'codecs', value: Buffer.from(JSON.stringify(CODECS)), modRevision: 1 }
  const [state, other] = [fresh(), fresh()]
  for (const each of [state, other]) each.globalVersion = BASE + 1
  return {
    rows: new Map([['codecs', codecs]]),
    revision: 1,
    parts: 0,
    state,
    image: createImage(BASE),
    other,
    otherImage: createImage(BASE),
  }
}

/** One change, as the store makes it: drafted, taken back, written, set; the other process reads the events. */
function write(world: World, rule: (state: RegistryState) => unknown): void {
  const { state, image, rows, other, otherImage } = world
  const untouched = JSON.stringify(storedOf(state))
  const { journal } = recorded(state, rule)
  const after = valuesAfter(journal, state)
  const encoded = encodeChange(state, image, journal, after, () => {
    world.parts += 1
    return `p${world.parts}`
  })
  const drafted = [...answers(state)]
  writeValues(state, valuesBefore(journal))
  expect(new Set(storedRows(state))).toEqual(new Set(storedRows(JSON.parse(untouched))))
  if (!isChange(journal)) return
  expect(encoded.writes.length).toBeLessThan(128)

  const events: RowEvent[] = []
  const put = (key: string, value: Buffer) => {
    rows.set(key, { key, value, modRevision: world.revision })
    events.push({ key, value, revision: world.revision })
  }
  for (const { key, value } of encoded.pieces) {
    world.revision += 1
    put(key, value)
  }
  world.revision += 1
  for (const each of encoded.writes) {
    if ('put' in each) put(each.put, Buffer.from(each.value))
    else
      for (const key of [...rows.keys()]) {
        if (each.isPrefix ? !key.startsWith(each.remove) : key !== each.remove) continue
        rows.delete(key)
        events.push({ key, value: undefined, revision: world.revision })
      }
  }
  const values = encoded.valuesAt(world.revision)
  writeValues(state, { ...values, globalVersion: Math.max(values.globalVersion, state.globalVersion) })
  encoded.noteIn(image, world.revision)
  expect([...answers(state)]).toEqual(drafted)

  for (const revision of new Set(events.map((event) => event.revision))) {
    const some = events.filter((event) => event.revision === revision)
    const seen = readEvents(other, otherImage, some, 0)
    expect(seen.needsLoad).toBe(false)
    writeValues(other, seen.values)
    // Own events change nothing.
    expect(readEvents(state, image, some, 0).isChanged).toBe(false)
  }
}

/** A state as rows in no order. */
function storedRows(state: RegistryState | ReturnType<typeof storedOf>): string[] {
  const stored = 'first_version' in state ? state : storedOf(state)
  const { components, claims, contested, reservations, versions, ...others } = stored
  return [
    ...[...components, ...claims, ...contested, ...reservations].map((row) => JSON.stringify(row)),
    ...Object.entries(versions).map((row) => JSON.stringify(row)),
    JSON.stringify(others),
  ]
}

function loaded({ rows }: World): RegistryState {
  const { document } = documentOf([...rows.values()], META)
  const restored = restoreValue(document, 0)
  if ('fault' in restored) throw new Error(restored.fault)
  return restored.state
}

function expectEqual(world: World): void {
  const expected = new Set(storedRows(world.state))
  expect(new Set(storedRows(world.other))).toEqual(expected)
  const state = loaded(world)
  expect(new Set(storedRows(state))).toEqual(expected)
  expect(answers(state)).toEqual(answers(world.state))
  for (const each of [world.other, state]) {
    expect(each.claimCount).toBe(world.state.claimCount)
    expect(each.conflictCount).toBe(world.state.conflictCount)
    expect(each.ownedBy).toEqual(world.state.ownedBy)
    expect(each.shardsIn).toEqual(world.state.shardsIn)
    expect(each.bridgesIn).toEqual(world.state.bridgesIn)
  }
}

test('one process writes, another follows, a third reads all: the same state', () => {
  law([fc.array(change, { maxLength: 30 })], (changes) => {
    const world = newWorld()
    const time = { nowMs: 0, queues: new Map<string, string[]>() }
    for (const next of changes) {
      if (next.do === 'wait') time.nowMs += next.ms
      else write(world, (state) => apply(state, next, time))
      expectEqual(world)
    }
  })
})

test('several changes in one transaction leave the order of claims intact', () => {
  law([fc.array(fc.array(change, { minLength: 1, maxLength: 5 }), { maxLength: 8 })], (batches) => {
    const world = newWorld()
    const time = { nowMs: 0, queues: new Map<string, string[]>() }
    for (const batch of batches) {
      write(world, (state) => {
        for (const next of batch) apply(state, next, time)
      })
      expectEqual(world)
    }
  })
})

test('versions are the revisions that wrote them', () => {
  const world = newWorld()
  write(world, (state) => pushSegments(state, 's1', { zone: 'z1', segments: ['a'], term: 1 }, false))

  expect(world.state.versions.get('shards/s1/segments')).toBe(BASE + 2)
  expect(world.state.globalVersion).toBe(BASE + 2)
  // A new term bumps nothing.
  write(world, (state) => pushSegments(state, 's1', { zone: 'z1', segments: ['a'], term: 2 }, false))
  expect(world.state.globalVersion).toBe(BASE + 2)
  expect(loaded(world).claims.get('s1')?.term).toBe(2)
})

test('long lists go into parts, which are replaced with them', () => {
  const world = newWorld()
  const names = (prefix: string, n: number) => Array.from({ length: n }, (_, i) => `${prefix}-${i}-日本`)
  const push = (shard: string, segments: string[], term: number) =>
    write(world, (state) => pushSegments(state, shard, { zone: 'z1', segments, term }, false))
  const partKeys = () => [...world.rows.keys()].filter((key) => key.startsWith('parts/'))
  push('s1', names('a', 20_000), 1)
  push('s2', [...names('a', 100), ...names('b', 5_000)], 1)
  expectEqual(world)
  const before = partKeys()
  expect(before.length).toBeGreaterThan(0)

  // Only the term changes: the parts stay, and the other process knows the list already.
  push('s1', names('a', 20_000), 2)
  expect(partKeys()).toEqual(before)
  expectEqual(world)
  push('s1', names('a', 19_999), 2)
  expect(partKeys().some((key) => before.includes(key) && key.startsWith('parts/p1/'))).toBe(false)
  expectEqual(world)
  push('s1', ['a'], 2)
  push('s2', [], 2)
  expect(partKeys()).toEqual([])
  expectEqual(world)
})

test('a change that touches very many lists bumps all of them', () => {
  const world = newWorld()
  const names = Array.from({ length: 300 }, (_, i) => `n${i}`)
  write(world, (state) => pushSegments(state, 'first', { zone: 'z', segments: names, term: undefined }, false))
  for (const [i, name] of names.entries())
    write(world, (state) => pushSegments(state, `s${i}`, { zone: `z${i}`, segments: [name], term: undefined }, false))
  write(world, (state) => pushSegments(state, 'alone', { zone: 'z', segments: ['x'], term: undefined }, false))
  const before = world.state.versions.get('shards/alone/segments') as number
  // All 300 names pass to their next claimants, in 300 zones.
  write(world, (state) => pushSegments(state, 'first', { zone: 'z', segments: [], term: undefined }, false))

  expect(world.rows.has('versions-all')).toBe(true)
  expect(world.state.versions.get('shards/alone/segments')).toBeGreaterThan(before)
  expectEqual(world)
})

test('ten thousand reservations of one shard fit', () => {
  const world = newWorld()
  const names = Array.from({ length: 10_000 }, (_, i) => `n${i}`)
  write(world, (state) => pushSegments(state, 's1', { zone: 'z1', segments: [], term: undefined }, false))
  write(world, (state) => {
    for (const name of names) reserve(state, name, 's1', 0)
  })
  expectEqual(world)
  write(world, (state) => pushSegments(state, 's1', { zone: 'z1', segments: names, term: undefined }, false))
  expect(world.state.reservations.size).toBe(0)
  expectEqual(world)
})

test.each([
  ['claims/s1', '{', 'claims/s1: is not valid JSON'],
  ['claims/s1', '{"zone":"z1","term":0}', 'claims/s1: segments'],
  [
    'claims/s1',
    '{"zone":"z1","term":0,"part":"gone","parts":2}',
    'claims/s1: a piece of it is missing below parts/gone',
  ],
  ['claims/s1', '{"zone":"z 1","term":0,"segments":[],"behind":[]}', 'claims/s1: zone'],
  ['components/node/n1', '{"zone":"z1"}', 'a bridge or a node has a shard'],
  ['reserved/s1', '{"until_ms":[["GETSEGMENTS",1]]}', 'reserved/s1: segment is reserved'],
])('the value of %s that is %s is refused by name', (key, value, fault) => {
  const world = newWorld()
  const row = { key, value: Buffer.from(value), modRevision: 2 }
  const fail = () => {
    const { document } = documentOf([...world.rows.values(), row], META)
    const restored = restoreValue(document, 0)
    if ('fault' in restored) throw new Error(`${key}: ${restored.fault}`)
  }

  expect(fail).toThrow(fault.replace(/^components.*: /, ''))
  expect(() => readEvents(world.other, world.otherImage, [{ ...row, revision: 2 }], 0)).toThrow(fault)
})

test('keys of later versions are ignored', () => {
  const world = newWorld()
  const key = { key: 'components/gateway/g1', value: Buffer.from('{"zone":"z1"}'), modRevision: 2 }
  world.rows.set(key.key, key)
  world.rows.set('extra', { key: 'extra', value: Buffer.from('x'), modRevision: 2 })

  expect(loaded(world).components.node.size).toBe(0)
  expect(ETCD_LIMITS.operationsMax).toBeLessThanOrEqual(128)
})

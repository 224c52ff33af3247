import { createRandom } from '@vacancy/testkit/random'
import { assert, expect, test } from 'vitest'
import { applyCommand } from './apply.ts'
import { createApplyContext } from './apply-context.ts'
import { beginCommand, createCommandWriter, encodeSettings, KIND, stampCommand, writeU8 } from './command.ts'
import { type Lane, nameHash, type PropertyHashInput, packageHash, propertyHash, roomHash, rowKey } from './digest.ts'
import { SESSION_WINDOW, STATE } from './layout.ts'
import {
  decodeSessions,
  encodeSessions,
  expireSessions,
  hashWholeSessions,
  lookUpRequest,
  storeResult,
} from './sessions.ts'
import { createStore, type Digest, type Store, setState, state, stateDigest } from './store.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)

function create(level: number, sessionBytesMax = 1 << 20): Store {
  const store = createStore({ memoryBytes: 64 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax })
  setState(store, STATE.featureLevel, level)
  return store
}

const ofSessions = ({ memory }: Store): Digest => ({
  lo: state(memory, STATE.digestLow),
  hi: state(memory, STATE.digestHigh),
})

/** The same sessions in a new store, whose digest is computed from scratch. */
function recount(store: Store, level: number): Digest {
  const copy = create(level)
  decodeSessions(copy, encodeSessions(store.memory))
  expect(encodeSessions(copy.memory)).toEqual(encodeSessions(store.memory))
  return ofSessions(copy)
}

function request(store: Store, session: number, number: number, timeMs: number, code = 0, value = 7, index = 1): void {
  const key = new Uint8Array(16).fill(session)
  const { seen, session: address } = lookUpRequest(store, key, 0, number, timeMs, number, session)
  if (!seen) storeResult(store, address, number, code, value, index, number, session)
}

function randomRequests(store: Store, seed: number, count: number): void {
  const random = createRandom(seed)
  const highest = new Map<number, number>()
  for (let n = 0; n < count; n++) {
    const session = random.below(12)
    const known = highest.get(session) ?? 0
    const jump = random.below(50) === 0 ? random.below(3 * SESSION_WINDOW) : random.below(3)
    const number = known === 0 ? 1 : Math.max(1, known + jump - random.below(2))
    highest.set(session, Math.max(known, number))
    const timeMs = 1_000 + n * 100
    expireSessions(store, timeMs)
    request(store, session, number, timeMs, random.below(4), random.below(256), n + 1)
  }
}

test('the session digest is maintained incrementally and equals a recount', () => {
  for (const level of [0, 1]) {
    for (let run = 0; run < 8; run++) {
      const store = create(level, run % 2 === 0 ? 1 << 20 : 6_000)
      randomRequests(store, SEED + run, 2_000)
      expect(ofSessions(store), `VACANCY_SEED=${SEED}, run ${run}, level ${level}`).toEqual(recount(store, level))
      expireSessions(store, 10 ** 12)
      expect(ofSessions(store)).toEqual({ lo: 0, hi: 0 })
    }
  }
})

test('raising the feature level to 1 gives the digest that the same sessions have in a store of that level', () => {
  for (let run = 0; run < 8; run++) {
    const store = create(0)
    randomRequests(store, SEED + run, 2_000)
    hashWholeSessions(store)
    expect(state(store.memory, STATE.featureLevel)).toBe(1)
    expect(ofSessions(store), `VACANCY_SEED=${SEED}, run ${run}`).toEqual(recount(store, 1))
    randomRequests(store, SEED + 100 + run, 500)
    expect(ofSessions(store)).toEqual(recount(store, 1))
  }
})

test('request results, their last use, settings, time and maintenance used to be missing from the digest', () => {
  const [code, value, index, lastUsed] = [
    [1, 7, 1, 5],
    [0, 8, 1, 5],
    [0, 7, 2, 5],
    [0, 7, 1, 6],
  ] as const
  const digestAt = (level: number, of: readonly [number, number, number, number], cell?: number): Digest => {
    const store = create(level)
    request(store, 1, 1, of[3], of[0], of[1], of[2])
    if (cell !== undefined) setState(store, cell, 77)
    return stateDigest(store.memory)
  }
  const base = [0, 7, 1, 5] as const
  const cells = [
    ...[STATE.lastMaintenanceDay, STATE.droppedBefore, STATE.sessionBytesMax, STATE.genesis + 3, STATE.timeLow],
    ...[STATE.timeHigh, STATE.replicated, STATE.replicated + 47],
  ]

  for (const other of [code, value, index, lastUsed]) {
    expect(digestAt(0, other)).toEqual(digestAt(0, base))
    expect(digestAt(1, other)).not.toEqual(digestAt(1, base))
  }
  for (const cell of cells) {
    expect(digestAt(0, base, cell), `${cell}`).toEqual(digestAt(0, base))
    expect(digestAt(1, base, cell), `${cell}`).not.toEqual(digestAt(1, base))
  }
})

test('a result outside the window used to be found by a number 2^32 above it', () => {
  const far = 2 ** 32 + 5
  const answerAt = (level: number): boolean => {
    const store = create(level)
    for (let number = 1; number <= 5; number++) request(store, 1, number, 1)
    request(store, 1, far + 3, 1)
    return lookUpRequest(store, new Uint8Array(16).fill(1), 0, far, 1, far, 1).seen
  }
  expect(answerAt(0)).toBe(true)
  expect(answerAt(1)).toBe(false)
})

test('a digest check used to advance the time of the state, which changed the digest of an idle shard', () => {
  const digestAfter = (level: number, genesis = 1): { before: Digest; after: Digest; marks: readonly number[] } => {
    const store = create(level)
    setState(store, STATE.genesis + 3, genesis)
    const context = createApplyContext(
      store,
      () => assert.fail('nothing is written'),
      () => assert.fail('digests agree'),
    )
    const apply = (index: number, kind: typeof KIND.settings | typeof KIND.digestCheck, body: Uint8Array) => {
      const writer = createCommandWriter(64)
      beginCommand(writer, kind)
      stampCommand(writer.view, 0, 1_000 * index, 1)
      for (const byte of body) writeU8(writer, byte)
      applyCommand(context, index, writer.bytes, 0, writer.at)
    }
    apply(1, KIND.settings, encodeSettings(1_048_577))
    expect(state(store.memory, STATE.sessionBytesMax)).toBe(1_048_577)
    const before = stateDigest(store.memory)
    apply(2, KIND.digestCheck, new Uint8Array(16))
    expect(context.newestMark).toEqual(level < 1 || genesis === 0 ? undefined : { index: 2, ...before })
    return { before, after: stateDigest(store.memory), marks: context.marks.map(({ index }) => index) }
  }

  const { before, after, marks } = digestAfter(1)
  expect(after).toEqual(before)
  expect(marks).toEqual([2])
  expect(digestAfter(0).marks).toEqual([])
  // Until the genesis is drawn, a member that loaded the founding snapshot of a restored shard has that of the old one.
  expect(digestAfter(1, 0).marks).toEqual([])
})

const ID = Uint8Array.from({ length: 20 }, (_, n) => (n * 53 + 7) & 0xff)
const PROPERTY: PropertyHashInput = {
  ...{ id: ID, idStart: 2, segmentHash: 11, areaHash: 12, typeHash: 13, categoryHash: 14, stars: 4 },
  ...{ latitude: 47.25, longitude: -8.5, amenityHashes: [101, 102, 103] },
}
const both = (hash: (lane: Lane) => number) => [hash(0), hash(1)]
const text = new TextEncoder().encode('xhotely')

test('the hashes of a release stay what they are', () => {
  expect({
    name: both((lane) => nameHash(lane, text, 1, 6)),
    emptyName: both((lane) => nameHash(lane, text, 3, 3)),
    key: both((lane) => rowKey(lane, ID, 2, 0x8000_0001)),
    package: both((lane) => packageHash(lane, 0xdead_beef, 20_000, 0x0102, 0xffff_ff00)),
    room: both((lane) => roomHash(lane, 0xdead_beef)),
    property: both((lane) => propertyHash(lane, PROPERTY)),
  }).toEqual({
    name: [0xc952_d049, 0x7ab9_85c1],
    emptyName: [0x11fd_02eb, 0x8c03_471f],
    key: [0x8307_9c68, 0xd082_f312],
    package: [0x7eb4_47a8, 0x981c_8a8b],
    room: [0x3425_a423, 0xbda0_e7aa],
    property: [0x965a_d1a7, 0x6c46_899d],
  })
})

/** Request keys without commands: limits, memory, compaction, and the words that a snapshot copies first. */
import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { unannounced } from '../testing/unannounced.ts'
import { release } from './arena.ts'
import { OUTCOME } from './command.ts'
import type * as CopyOnWrite from './cow.ts'
import { STATE } from './layout.ts'
import {
  clampSessions,
  decodeSessions,
  encodeSessions,
  evictSessions,
  expireSessions,
  hashWholeSessions,
  lookUpRequest,
  removeSessions,
  SESSION_EXPIRY_MS,
  sessionOf,
  settleSession,
  storeResult,
} from './sessions.ts'
import { allocatePlane, allocateRecord, createStore, publish, type Store, setState, state } from './store.ts'

const watch = vi.hoisted(() => ({ touched: (_address: number, _bytes: number): void => undefined }))
vi.mock('./cow.ts', async (load) => {
  const cow = await load<typeof CopyOnWrite>()
  const touch: typeof cow.touch = (store, address, bytes) => {
    watch.touched(address, bytes)
    cow.touch(store, address, bytes)
  }
  return { ...cow, touch }
})

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const START_MS = 1_700_000_000_000
const NEW = 'new'
/** A session with up to four results. */
const SMALL_BYTES = 64 + 4 * 24
const BIG = 2 ** 32

function emptyStore(level = 1, sessionBytesMax = 1 << 20): Store {
  const store = createStore({ memoryBytes: 8 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax })
  setState(store, STATE.featureLevel, level)
  return store
}

function keyOf(n: number): Uint8Array {
  const key = new Uint8Array(20)
  new DataView(key.buffer).setUint32(4, 0xfedcba00 + n)
  key[19] = n
  return key
}

let store: Store
beforeEach(() => {
  store = emptyStore()
})

/** One request, with a command that is its own digest. @returns `new`, or the stored code, value and index */
function request(n: number, number: number, timeMs = START_MS, command = number, on = store) {
  const { seen, code, value, index, session } = lookUpRequest(on, keyOf(n), 4, number, timeMs, command, command + 7)
  if (seen) return [code, value, index]
  storeResult(on, session, number, OUTCOME.underflow, number & 0xff, BIG + number, command, command + 7)
  return NEW
}
const stored = (number: number) => [OUTCOME.underflow, number & 0xff, BIG + number]

const digestOf = ({ memory }: Store) => [state(memory, STATE.digestLow), state(memory, STATE.digestHigh)]
/** The digest of the same sessions in another store. */
function loadedDigest(of: Store): number[] {
  const copy = emptyStore(state(of.memory, STATE.featureLevel))
  decodeSessions(copy, encodeSessions(of.memory))
  expect(encodeSessions(copy.memory)).toEqual(encodeSessions(of.memory))
  expect(state(copy.memory, STATE.sessionCount)).toBe(state(of.memory, STATE.sessionCount))
  return digestOf(copy)
}
const countOf = ({ memory }: Store) => [state(memory, STATE.sessionCount), state(memory, STATE.sessionBytes)]
const known = (...keys: number[]) => keys.filter((n) => sessionOf(store, keyOf(n), 4) !== 0)

describe('a request', () => {
  test('is stored with its outcome, and found again with the same command only', () => {
    expect(request(1, 1)).toBe(NEW)
    expect(request(1, 1)).toEqual(stored(1))
    const other = (low: number, high: number) => lookUpRequest(store, keyOf(1), 4, 1, START_MS, low, high).code
    expect([other(1, 8), other(2, 8), other(1, 9)]).toEqual([OUTCOME.underflow, OUTCOME.keyReused, OUTCOME.keyReused])
    expect(request(1, 1, START_MS, 5)).toEqual([OUTCOME.keyReused, 0, 0])
    expect(request(2, 2)).toEqual([OUTCOME.sessionExpired, 0, 0])
    expect([known(1, 2), digestOf(store)]).toEqual([[1], loadedDigest(store)])
  })

  test('with digests of all 32 bits is found again', () => {
    const look = () => lookUpRequest(store, keyOf(1), 4, 1, START_MS, -1, -2)
    const { session } = look()
    storeResult(store, session, 1, 0, 9, 3, -1, -2)
    expect(look()).toMatchObject({ seen: true, code: 0, value: 9, index: 3 })
  })

  test('that stores nothing leaves its session in the digest', () => {
    request(1, 1)
    const before = digestOf(store)
    const { seen, session } = lookUpRequest(store, keyOf(1), 4, 2, START_MS, 0, 0)
    expect([seen, digestOf(store)]).not.toEqual([false, before])
    settleSession(store, session)
    expect(digestOf(store)).toEqual(before)
    expect(request(1, 2)).toBe(NEW)
  })

  test.each([0, 1])('below a window of 256 numbers is too old: level %i', (level) => {
    store = emptyStore(level)
    request(1, 1)
    request(1, 2)
    expect(request(1, 257)).toBe(NEW)
    expect([request(1, 1), request(1, 2), request(1, 3)]).toEqual([[OUTCOME.tooOld, 0, 0], stored(2), NEW])
    expect(request(1, 258)).toBe(NEW)
    expect([request(1, 2), request(1, 3), request(1, 257)]).toEqual([[OUTCOME.tooOld, 0, 0], stored(3), stored(257)])
    expect(digestOf(store)).toEqual(loadedDigest(store))
  })

  test('is not mistaken for that of a number 2^32 less', () => {
    for (const number of [1, 5, BIG + 100, BIG + 9]) expect(request(1, number)).toBe(NEW)
    expect([request(1, BIG + 5), request(1, BIG + 1)]).toEqual([NEW, NEW])
    expect([request(1, BIG + 100), request(1, BIG + 9)]).toEqual([stored(BIG + 100), stored(BIG + 9)])
    expect(digestOf(store)).toEqual(loadedDigest(store))
  })

  test('keeps the other results when there are more of them, in blocks of 4, 16, 64 and 256', () => {
    const bytes: (number | undefined)[] = []
    for (let number = 1; number <= 300; number++) {
      expect(request(1, number)).toBe(NEW)
      bytes.push(countOf(store)[1])
      if ([4, 5, 16, 17, 64, 65, 256, 300].includes(number)) {
        for (let n = Math.max(1, number - 255); n <= number; n++) expect(request(1, n)).toEqual(stored(n))
      }
    }
    expect([1, 4, 5, 16, 17, 64, 65, 256, 300].map((n) => bytes[n - 1])).toEqual(
      [4, 4, 16, 16, 64, 64, 256, 256, 256].map((results) => 64 + results * 24),
    )
    for (let n = 0; n < 2; n++) publish(store, 1)
    expect(store.writer.records.usedBytes).toBe(64 + 256 * 24)
  })
})

describe('the digest is the same in every version', () => {
  test.each([
    [0, 'ab29bdd0 627bdbb8'],
    [1, '36a2930a 8a301a89'],
  ])('also for numbers of more than 32 bits: level %i', (level, expected) => {
    store = emptyStore(level)
    for (const number of [1, 3 * BIG + 5, 3 * BIG + 6]) request(3, number, START_MS, 0x89abcdef)
    const hex = digestOf(store).map((lane) => lane.toString(16).padStart(8, '0'))
    expect(hex.join(' ')).toBe(expected)
  })
})

describe('sessions go', () => {
  test('a day after their last use, not earlier', () => {
    request(1, 1)
    request(2, 1, START_MS + 1)
    request(1, 1, START_MS + 1)
    request(3, 1, START_MS + 2)
    expireSessions(store, START_MS + SESSION_EXPIRY_MS)
    expect(known(1, 2, 3)).toEqual([1, 2, 3])
    expireSessions(store, START_MS + SESSION_EXPIRY_MS + 1)
    expect([known(1, 2, 3), countOf(store)]).toEqual([[3], [1, SMALL_BYTES]])
    expect(digestOf(store)).toEqual(loadedDigest(store))
    expect(SESSION_EXPIRY_MS).toBe(86_400_000)
  })

  test('when their bytes exceed the limit, the least recently used first', () => {
    setState(store, STATE.sessionBytesMax, 3 * SMALL_BYTES)
    for (const n of [1, 2, 3]) request(n, 1)
    expect(known(1, 2, 3)).toEqual([1, 2, 3])
    request(2, 1)
    request(1, 2)
    request(4, 1)
    expect([known(1, 2, 3, 4), countOf(store)]).toEqual([
      [1, 2, 4],
      [3, 3 * SMALL_BYTES],
    ])
    setState(store, STATE.sessionBytesMax, 2 * SMALL_BYTES - 1)
    evictSessions(store)
    expect([known(1, 2, 3, 4), digestOf(store)]).toEqual([[4], loadedDigest(store)])
  })

  test.each([0, 1])('all at once before others are loaded, with their memory: level %i', (level) => {
    store = emptyStore(level)
    for (const n of [1, 2, 3]) for (let number = 1; number < 9; number++) request(n, number)
    removeSessions(store)
    for (let n = 0; n < 2; n++) publish(store, 1)
    expect([known(1, 2, 3), countOf(store), digestOf(store)]).toEqual([[], [0, 0], [0, 0]])
    expect([store.writer.records.usedBytes, store.writer.sessions.size]).toEqual([0, 0])
    expect([request(2, 1), digestOf(store)]).toEqual([NEW, loadedDigest(store)])
  })
})

test('when time is set back, later last uses become the new time', () => {
  for (const n of [1, 2, 3]) request(n, 1, START_MS + n)
  clampSessions(store, START_MS + 2)
  expect(digestOf(store)).toEqual(loadedDigest(store))
  expireSessions(store, START_MS + 1 + SESSION_EXPIRY_MS)
  expect(known(1, 2, 3)).toEqual([2, 3])
  expireSessions(store, START_MS + 2 + SESSION_EXPIRY_MS)
  expect(known(1, 2, 3)).toEqual([])
})

test('the upgrade to level 1 adds the whole content to the digest, and drops results below the window', () => {
  store = emptyStore(0)
  for (const number of [1, 2, 300, 400]) request(1, number)
  for (const number of [1, 4]) request(2, number)
  hashWholeSessions(store)
  expect(state(store.memory, STATE.featureLevel)).toBe(1)
  expect(digestOf(store)).toEqual(loadedDigest(store))
  expect([request(1, 300), request(1, 301), request(1, 2)]).toEqual([stored(300), NEW, [OUTCOME.tooOld, 0, 0]])
  // Numbers whose low halves are those of the dropped results.
  expect([request(1, BIG + 200), request(1, BIG + 1), request(1, BIG + 2)]).toEqual([NEW, NEW, NEW])
  expect([request(2, 1), request(2, 4), request(2, 3)]).toEqual([stored(1), stored(4), NEW])
  expect(digestOf(store)).toEqual(loadedDigest(store))
  removeSessions(store)
  expect(digestOf(store)).toEqual([0, 0])
})

test('nothing is loaded from no bytes', () => {
  decodeSessions(store, new Uint8Array(0))
  expect([countOf(store), [...encodeSessions(store.memory)]]).toEqual([
    [0, 0],
    [0, 0, 0, 0],
  ])
})

describe('a snapshot in progress has a copy of each word before it changes', () => {
  beforeEach(() => {
    store = emptyStore(0)
    for (const n of [1, 2, 3]) for (const number of [1, 2, 7]) request(n, number, START_MS + n)
    request(4, 300)
  })

  test.each<[string, () => void]>([
    ['a retry', () => request(1, 1, START_MS + 9)],
    ['the last session is used again', () => request(3, 1, START_MS + 9)],
    ['a new result', () => request(2, 8, START_MS + 9)],
    ['a new session', () => request(9, 1, START_MS + 9)],
    ['a session that expires', () => expireSessions(store, START_MS + 1 + SESSION_EXPIRY_MS)],
    ['an earlier time', () => clampSessions(store, START_MS)],
    ['the upgrade', () => hashWholeSessions(store)],
    [
      'results that leave the window',
      () => {
        hashWholeSessions(store)
        request(2, 600, START_MS + 9)
      },
    ],
  ])('%s', (_, operation) => {
    expect(unannounced(store, watch, operation)).toEqual([])
  })
})

describe('when memory is short', () => {
  const FREED_BYTES = 128

  /** A session far from the gap, twenty next to it, free blocks before them, and hardly any free memory between the regions. */
  function fill(holes: number): void {
    request(100, 1)
    const blocks = Array.from({ length: 4_096 }, () => allocateRecord(store, FREED_BYTES))
    const random = createRandom(SEED)
    for (let n = 0; n < 20; n++) for (let number = 1; number < 3 + random.below(9); number++) request(n, number)
    for (const n of [3, 7, 19]) request(n, 1, START_MS + 5)
    for (let n = 0; n < 2; n++) publish(store, 1)
    // Every other one, so that no two become one.
    for (let n = 0; n < holes; n++) release(store.writer.records, blocks[2 * n + 1] as number, FREED_BYTES)
    const { gap } = store.writer
    for (let bytes = 1 << 22; bytes >= 2_048; bytes /= 2) {
      while (gap.high - gap.low >= bytes + 2_048) allocatePlane(store, bytes)
    }
  }

  test.each([0, 1, 7, 500])('sessions move into %i free blocks, and keep order, results and digest', (holes) => {
    fill(holes)
    const { records } = store.writer
    const [bytes, digest, order] = [encodeSessions(store.memory), digestOf(store), [...store.writer.sessions.keys()]]
    const places = new Map(store.writer.sessions)
    const used = records.usedBytes
    const isMoved = holes > 0
    expect(unannounced(store, watch, () => expect(() => allocateRecord(store, 200_000)).toThrow())).toEqual([])

    expect([encodeSessions(store.memory), digestOf(store)]).toEqual([bytes, digest])
    expect([[...store.writer.sessions.keys()], records.usedBytes]).toEqual([order, used])
    const moved = [...store.writer.sessions].filter(([key, at]) => places.get(key) !== at)
    expect([moved.length > 0, store.writer.sessionMoves > 0]).toEqual([isMoved, isMoved])
    expect(moved.every(([key, at]) => at < (places.get(key) as number))).toBe(true)
    if (holes === 500) expect(moved).toHaveLength(20)
    for (let n = 0; n < 20; n++) expect([request(n, 1), request(n, 2)]).toEqual([stored(1), stored(2)])
    expect(request(100, 1)).toEqual(stored(1))
    expect(digestOf(store)).toEqual(loadedDigest(store))
    expireSessions(store, START_MS + SESSION_EXPIRY_MS)
    expect([countOf(store)[0], digestOf(store)]).toEqual([0, [0, 0]])
  })
})

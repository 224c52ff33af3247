/**
 * Request keys: a retried write gets its stored result instead of a second effect
 * (docs/design/consensus.md#request-keys).
 *
 * Sessions are in shared memory, because a snapshot includes them. They form a list ordered by last use, oldest
 * first, so that evictions depend only on the log. The map from key to address is private to this thread.
 */

import { assert } from '@vacancy/shared'
import { allocateBelow, release } from './arena.ts'
import { sessionBytesLimit } from './charge.ts'
import { OUTCOME } from './command.ts'
import { touch } from './cow.ts'
import { SESSION, SESSION_RESULT, SESSION_WINDOW, STATE } from './layout.ts'
import { addDigest, allocateRecord, featureLevel, onMemoryShort, type Store, setState, state } from './store.ts'
import { field, setField } from './table-fields.ts'
import { retire } from './version.ts'

export const SESSION_EXPIRY_MS = 24 * 3600 * 1000
const RESULTS_MIN = 4

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function keyText(bytes: Uint8Array, start: number): string {
  let text = ''
  for (let i = start; i < start + 16; i++) text += HEX[bytes[i]]
  return text
}

/** What is known about a request key. `session` is where a new result is stored. */
export type Lookup = { seen: boolean; code: number; value: number; index: number; session: number }
const lookup: Lookup = { seen: false, code: 0, value: 0, index: 0, session: 0 }

/**
 * Looks a request up before it is executed, and opens its session when it is number 1. One reused object. A new
 * request removes its session from the digest, until `storeResult` or `settleSession`.
 *
 * @param digestLow,digestHigh digest of the command without its header: a retry must be the same command
 */
export function lookUpRequest(
  store: Store,
  bytes: Uint8Array,
  keyStart: number,
  number: number,
  timeMs: number,
  digestLow: number,
  digestHigh: number,
): Lookup {
  const key = keyText(bytes, keyStart)
  let session = store.writer.sessions.get(key) ?? 0
  if (session === 0) {
    if (number !== 1) return seen(OUTCOME.sessionExpired)
    session = openSession(store, bytes, keyStart, key)
  } else addSessionDigest(store, session, -1)
  use(store, session, timeMs)
  lookup.session = session
  const f64 = store.memory.f64
  const isClosed = number < f64[(session + SESSION.closedBelow) / 8]
  const result = isClosed ? 0 : resultOf(store, session, number)
  if (result === 0 && !isClosed) {
    lookup.seen = false
    return lookup
  }
  settleSession(store, session)
  if (isClosed) return seen(OUTCOME.tooOld)
  const same =
    field(store.memory, result + SESSION_RESULT.digestLow) === digestLow >>> 0 &&
    field(store.memory, result + SESSION_RESULT.digestHigh) === digestHigh >>> 0
  if (!same) return seen(OUTCOME.keyReused)
  lookup.seen = true
  lookup.code = store.memory.u8[result + SESSION_RESULT.outcome]
  lookup.value = store.memory.u8[result + SESSION_RESULT.value]
  lookup.index = f64[(result + SESSION_RESULT.index) / 8]
  return lookup
}

/** @returns address of the session with the key at an offset, 0 when it does not exist */
export function sessionOf(store: Store, bytes: Uint8Array, keyStart: number): number {
  return store.writer.sessions.get(keyText(bytes, keyStart)) ?? 0
}

function seen(code: number): Lookup {
  lookup.seen = true
  lookup.code = code
  lookup.value = 0
  lookup.index = 0
  return lookup
}

/** Adds an unchanged session back to the digest: its request stores nothing. */
export function settleSession(store: Store, session: number): void {
  addSessionDigest(store, session, 1)
}

/** Stores the result of a request that was new to `lookUpRequest`. */
export function storeResult(
  store: Store,
  session: number,
  number: number,
  code: number,
  value: number,
  index: number,
  digestLow: number,
  digestHigh: number,
): void {
  putResult(store, session, number, code, value, index, digestLow, digestHigh)
  addSessionDigest(store, session, 1)
  evictSessions(store)
}

function putResult(
  store: Store,
  session: number,
  number: number,
  code: number,
  value: number,
  index: number,
  digestLow: number,
  digestHigh: number,
): void {
  const { memory } = store
  const highest = memory.f64[(session + SESSION.highest) / 8]
  const closedBelow = memory.f64[(session + SESSION.closedBelow) / 8]
  const top = Math.max(highest, number)
  const lowest = Math.max(closedBelow, top - SESSION_WINDOW + 1)
  if (lowest > closedBelow) closeResults(store, session, closedBelow, Math.min(lowest, highest + 1))
  touch(store, session, SESSION.bytes)
  memory.f64[(session + SESSION.highest) / 8] = top
  memory.f64[(session + SESSION.closedBelow) / 8] = lowest
  growResults(store, session, top - lowest + 1)
  const capacity = field(memory, session + SESSION.capacity)
  const result = field(memory, session + SESSION.results) + (number % capacity) * SESSION_RESULT.bytes
  touch(store, result, SESSION_RESULT.bytes)
  memory.u32[(result + SESSION_RESULT.numberLow) >>> 2] = number >>> 0
  memory.u8[result + SESSION_RESULT.outcome] = code
  memory.u8[result + SESSION_RESULT.value] = value
  memory.u8[result + SESSION_RESULT.used] = 1
  memory.u32[(result + SESSION_RESULT.digestLow) >>> 2] = digestLow
  memory.u32[(result + SESSION_RESULT.digestHigh) >>> 2] = digestHigh
  memory.f64[(result + SESSION_RESULT.index) / 8] = index
  addResultDigest(store, session, number, result, 1)
}

/** From feature level 1 on results that leave the window leave the digest, and later numbers do not find them. */
function closeResults(store: Store, session: number, from: number, to: number): void {
  if (featureLevel(store.memory) < 1) return
  for (let number = from; number < to; number++) {
    const result = resultOf(store, session, number)
    if (result === 0) continue
    addResultDigest(store, session, number, result, -1)
    touch(store, result, SESSION_RESULT.bytes)
    store.memory.u8[result + SESSION_RESULT.used] = 0
  }
}

function resultOf(store: Store, session: number, number: number): number {
  const { memory } = store
  const capacity = field(memory, session + SESSION.capacity)
  if (capacity === 0) return 0
  const result = field(memory, session + SESSION.results) + (number % capacity) * SESSION_RESULT.bytes
  const used = memory.u8[result + SESSION_RESULT.used] === 1
  return used && field(memory, result + SESSION_RESULT.numberLow) === number >>> 0 ? result : 0
}

function growResults(store: Store, session: number, span: number): void {
  const { memory } = store
  const capacity = field(memory, session + SESSION.capacity)
  if (span <= capacity) return
  let next = Math.max(RESULTS_MIN, capacity)
  while (next < span) next *= 4
  assert(next <= SESSION_WINDOW, 'the window of a session is bounded')
  const old = field(memory, session + SESSION.results)
  store.writer.holdsSession = true
  const block = allocateRecord(store, next * SESSION_RESULT.bytes)
  store.writer.holdsSession = false
  touch(store, block, next * SESSION_RESULT.bytes)
  for (let i = 0; i < capacity; i++) {
    const from = old + i * SESSION_RESULT.bytes
    if (memory.u8[from + SESSION_RESULT.used] !== 1) continue
    // Capacities are powers of two below 2^32, so the low half of a number determines the slot.
    const to = block + (field(memory, from + SESSION_RESULT.numberLow) % next) * SESSION_RESULT.bytes
    memory.u8.copyWithin(to, from, from + SESSION_RESULT.bytes)
  }
  setField(store, session + SESSION.results, block)
  setField(store, session + SESSION.capacity, next)
  if (old !== 0) retire(store, false, old, capacity * SESSION_RESULT.bytes)
  setState(store, STATE.sessionBytes, state(memory, STATE.sessionBytes) + (next - capacity) * SESSION_RESULT.bytes)
}

/** A new session, which is not in the digest yet. */
function openSession(store: Store, bytes: Uint8Array, keyStart: number, key: string): number {
  const { memory } = store
  const session = allocateRecord(store, SESSION.bytes)
  touch(store, session, SESSION.bytes)
  for (let i = 0; i < 16; i++) memory.u8[session + SESSION.key + i] = bytes[keyStart + i]
  memory.f64[(session + SESSION.closedBelow) / 8] = 1
  store.writer.sessions.set(key, session)
  setState(store, STATE.sessionCount, state(memory, STATE.sessionCount) + 1)
  setState(store, STATE.sessionBytes, state(memory, STATE.sessionBytes) + SESSION.bytes)
  append(store, session)
  return session
}

// The list, least recently used first

function append(store: Store, session: number): void {
  const tail = state(store.memory, STATE.sessionTail)
  setField(store, session + SESSION.previous, tail)
  setField(store, session + SESSION.next, 0)
  if (tail === 0) setState(store, STATE.sessionHead, session)
  else setField(store, tail + SESSION.next, session)
  setState(store, STATE.sessionTail, session)
}

function unlink(store: Store, session: number): void {
  const previous = field(store.memory, session + SESSION.previous)
  const next = field(store.memory, session + SESSION.next)
  if (previous === 0) setState(store, STATE.sessionHead, next)
  else setField(store, previous + SESSION.next, next)
  if (next === 0) setState(store, STATE.sessionTail, previous)
  else setField(store, next + SESSION.previous, previous)
}

/** The caller updates its digest. */
function use(store: Store, session: number, timeMs: number): void {
  const { memory } = store
  if (state(memory, STATE.sessionTail) !== session) {
    unlink(store, session)
    append(store, session)
  }
  touch(store, session, SESSION.bytes)
  memory.f64[(session + SESSION.lastUsedMs) / 8] = timeMs
}

/** Removes sessions unused for a day. Called with each command that has a time. */
export function expireSessions(store: Store, timeMs: number): void {
  const { memory } = store
  for (;;) {
    const oldest = state(memory, STATE.sessionHead)
    if (oldest === 0) return
    if (memory.f64[(oldest + SESSION.lastUsedMs) / 8] > timeMs - SESSION_EXPIRY_MS) return
    removeSession(store, oldest)
  }
}

/** Shard time was set back: last uses after the new time become the new time. */
export function clampSessions(store: Store, timeMs: number): void {
  const { memory } = store
  forEachSession(memory, (session) => {
    const cell = (session + SESSION.lastUsedMs) / 8
    if (memory.f64[cell] <= timeMs) return
    addSessionDigest(store, session, -1)
    touch(store, session, SESSION.bytes)
    memory.f64[cell] = timeMs
    addSessionDigest(store, session, 1)
  })
}

/** Evicts the least recently used sessions until the table fits. A loaded table is as it was written. */
export function evictSessions(store: Store): void {
  const { memory } = store
  while (state(memory, STATE.sessionBytes) > sessionBytesLimit(memory)) {
    removeSession(store, state(memory, STATE.sessionHead))
  }
}

/** Removes all sessions, before those of another state are loaded. */
export function removeSessions(store: Store): void {
  for (;;) {
    const oldest = state(store.memory, STATE.sessionHead)
    if (oldest === 0) return
    removeSession(store, oldest)
  }
}

function removeSession(store: Store, session: number): void {
  const { memory } = store
  addSessionDigest(store, session, -1)
  addResultDigests(store, session, -1)
  unlink(store, session)
  store.writer.sessions.delete(keyText(memory.u8, session + SESSION.key))
  const bytes = field(memory, session + SESSION.capacity) * SESSION_RESULT.bytes
  retire(store, false, field(memory, session + SESSION.results), bytes)
  retire(store, false, session, SESSION.bytes)
  setState(store, STATE.sessionCount, state(memory, STATE.sessionCount) - 1)
  setState(store, STATE.sessionBytes, state(memory, STATE.sessionBytes) - SESSION.bytes - bytes)
}

/**
 * For the upgrade to feature level 1: below it, the digest of a session covers its key and its greatest number; from
 * level 1 on, all of its content.
 */
export function hashWholeSessions(store: Store): void {
  assert(featureLevel(store.memory) === 0, 'the step is made once')
  forEachSession(store.memory, (session) => addSessionDigest(store, session, -1))
  setState(store, STATE.featureLevel, 1)
  forEachSession(store.memory, (session) => {
    addSessionDigest(store, session, 1)
    const kept = new Set(resultsOf(store.memory, session).map(({ address }) => address))
    const results = field(store.memory, session + SESSION.results)
    const capacity = field(store.memory, session + SESSION.capacity)
    for (let n = 0; n < capacity; n++) {
      const result = results + n * SESSION_RESULT.bytes
      if (kept.has(result) || store.memory.u8[result + SESSION_RESULT.used] !== 1) continue
      touch(store, result, SESSION_RESULT.bytes)
      store.memory.u8[result + SESSION_RESULT.used] = 0
    }
    addResultDigests(store, session, 1)
  })
}

function addResultDigests(store: Store, session: number, sign: 1 | -1): void {
  if (featureLevel(store.memory) < 1) return
  for (const { number, address } of resultsOf(store.memory, session)) {
    addResultDigest(store, session, number, address, sign)
  }
}

/** Both lanes of the last computed hash. */
let hashLow = 0
let hashHigh = 0

function mix(word: number): void {
  hashLow = Math.imul(hashLow ^ word, 0xcc9e2d51)
  hashLow ^= hashLow >>> 15
  hashHigh = Math.imul(hashHigh ^ word, 0x85ebca6b)
  hashHigh ^= hashHigh >>> 13
}

/** A stored result is part of the digest from feature level 1 on. */
function addResultDigest(store: Store, session: number, number: number, result: number, sign: 1 | -1): void {
  const { memory } = store
  if (featureLevel(memory) < 1) return
  const { u32, u8 } = memory
  const key = (session + SESSION.key) >>> 2
  const at = result >>> 2
  hashLow = 0x2545f491
  hashHigh = 0x165667b1
  for (let i = 0; i < 4; i++) mix(u32[key + i])
  mix(number >>> 0)
  mix(Math.floor(number / 2 ** 32) >>> 0)
  mix(u8[result + SESSION_RESULT.outcome] * 256 + u8[result + SESSION_RESULT.value])
  mix(u32[at + SESSION_RESULT.digestLow / 4])
  mix(u32[at + SESSION_RESULT.digestHigh / 4])
  mix(u32[at + SESSION_RESULT.index / 4])
  mix(u32[at + SESSION_RESULT.index / 4 + 1])
  addDigest(store, Math.imul(hashLow, sign), Math.imul(hashHigh, sign))
}

/** Adds a session to the digest; its results, from feature level 1 on, are added one by one. */
function addSessionDigest(store: Store, session: number, sign: 1 | -1): void {
  hashSession(store, session)
  addDigest(store, Math.imul(hashLow, sign), Math.imul(hashHigh, sign))
}

/** Hash of its key and its greatest number, and from feature level 1 on of all its content except results. */
function hashSession(store: Store, session: number): void {
  const { u32 } = store.memory
  const key = (session + SESSION.key) >>> 2
  const highest = (session + SESSION.highest) >>> 2
  let low = 0x5bd1e995
  let high = 0x1b873593
  for (let i = 0; i < 4; i++) {
    const word = u32[key + i]
    low = Math.imul(low ^ word, 0xcc9e2d51)
    high = Math.imul(high ^ word, 0xcc9e2d51)
  }
  low = Math.imul(low ^ u32[highest], 0x85ebca77) ^ u32[highest + 1]
  high = Math.imul(high ^ u32[highest], 0x85ebca77) ^ u32[highest + 1]
  low = Math.imul(low ^ (low >>> 15), 0xc2b2ae3d)
  high = Math.imul(high ^ (high >>> 15), 0xc2b2ae3d)
  hashLow = low ^ (low >>> 13)
  hashHigh = high ^ (high >>> 13)
  if (featureLevel(store.memory) < 1) return
  const lastUsed = (session + SESSION.lastUsedMs) >>> 2
  const closedBelow = (session + SESSION.closedBelow) >>> 2
  mix(u32[lastUsed])
  mix(u32[lastUsed + 1])
  mix(u32[closedBelow])
  mix(u32[closedBelow + 1])
}

// Compaction, when memory is short

/**
 * Moves sessions from the zone next to the gap into earlier holes. Only this thread follows their addresses, so the
 * old blocks are free at once. A snapshot has copies of the pages it needs.
 */
function moveSessions(store: Store, zone: number): void {
  const { memory, writer } = store
  const { records, gap } = writer
  const end = gap.low - zone
  const move = (from: number, bytes: number): number => {
    const to = from < end ? 0 : allocateBelow(records, bytes, end)
    if (to === 0) return from
    touch(store, to, bytes)
    memory.u8.copyWithin(to, from, from + bytes)
    release(records, from, bytes)
    return to
  }
  for (let session = state(memory, STATE.sessionHead); session !== 0; ) {
    const moved = move(session, SESSION.bytes)
    if (moved !== session) relink(store, session, moved)
    const results = field(memory, moved + SESSION.results)
    const bytes = field(memory, moved + SESSION.capacity) * SESSION_RESULT.bytes
    if (results !== 0) setField(store, moved + SESSION.results, move(results, bytes))
    session = field(memory, moved + SESSION.next)
  }
}

function relink(store: Store, from: number, to: number): void {
  const { memory, writer } = store
  const previous = field(memory, to + SESSION.previous)
  const next = field(memory, to + SESSION.next)
  if (previous === 0) setState(store, STATE.sessionHead, to)
  else setField(store, previous + SESSION.next, to)
  if (next === 0) setState(store, STATE.sessionTail, to)
  else setField(store, next + SESSION.previous, to)
  assert(writer.sessions.get(keyText(memory.u8, to + SESSION.key)) === from, 'every session is indexed by its key')
  writer.sessions.set(keyText(memory.u8, to + SESSION.key), to)
  writer.sessionMoves++
}

onMemoryShort({ moveSessions })

// Canonical bytes for snapshots: sessions in list order, results ascending by number

const SESSION_HEADER_BYTES = 16 + 8 + 8 + 8 + 2
const RESULT_BYTES = 8 + 1 + 1 + 8 + 8

/** All sessions as bytes. Reads one memory image: the store's own, or that of a snapshot. */
export function encodeSessions(memory: Store['memory']): Uint8Array {
  let bytes = 4
  forEachSession(memory, (session) => {
    bytes += SESSION_HEADER_BYTES + resultsOf(memory, session).length * RESULT_BYTES
  })
  const out = new Uint8Array(bytes)
  const view = new DataView(out.buffer)
  view.setUint32(0, state(memory, STATE.sessionCount), true)
  let at = 4
  forEachSession(memory, (session) => {
    out.set(memory.u8.subarray(session + SESSION.key, session + SESSION.key + 16), at)
    for (const [i, cell] of [SESSION.lastUsedMs, SESSION.highest, SESSION.closedBelow].entries()) {
      view.setFloat64(at + 16 + i * 8, memory.f64[(session + cell) / 8], true)
    }
    const results = resultsOf(memory, session)
    view.setUint16(at + 40, results.length, true)
    at += SESSION_HEADER_BYTES
    for (const { number, address } of results) {
      view.setFloat64(at, number, true)
      out[at + 8] = memory.u8[address + SESSION_RESULT.outcome]
      out[at + 9] = memory.u8[address + SESSION_RESULT.value]
      view.setUint32(at + 10, field(memory, address + SESSION_RESULT.digestLow), true)
      view.setUint32(at + 14, field(memory, address + SESSION_RESULT.digestHigh), true)
      view.setFloat64(at + 18, memory.f64[(address + SESSION_RESULT.index) / 8], true)
      at += RESULT_BYTES
    }
  })
  assert(at === bytes, 'sessions are measured before they are written')
  return out
}

function forEachSession(memory: Store['memory'], visit: (session: number) => void): void {
  let session = state(memory, STATE.sessionHead)
  for (; session !== 0; session = field(memory, session + SESSION.next)) visit(session)
}

function resultsOf(memory: Store['memory'], session: number): { number: number; address: number }[] {
  const found: { number: number; address: number }[] = []
  const capacity = field(memory, session + SESSION.capacity)
  const results = field(memory, session + SESSION.results)
  const highest = memory.f64[(session + SESSION.highest) / 8]
  const closedBelow = memory.f64[(session + SESSION.closedBelow) / 8]
  for (let number = closedBelow; number <= highest && capacity > 0; number++) {
    const address = results + (number % capacity) * SESSION_RESULT.bytes
    if (memory.u8[address + SESSION_RESULT.used] !== 1) continue
    if (field(memory, address + SESSION_RESULT.numberLow) === number >>> 0) found.push({ number, address })
  }
  return found
}

/** Loads sessions of a snapshot into an empty table. */
export function decodeSessions(store: Store, bytes: Uint8Array): void {
  if (bytes.length === 0) return
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const count = view.getUint32(0, true)
  let at = 4
  for (let n = 0; n < count; n++) {
    const session = openSession(store, bytes, at, keyText(bytes, at))
    use(store, session, view.getFloat64(at + 16, true))
    const highest = view.getFloat64(at + 24, true)
    const closedBelow = view.getFloat64(at + 32, true)
    const results = view.getUint16(at + 40, true)
    at += SESSION_HEADER_BYTES
    for (let i = 0; i < results; i++, at += RESULT_BYTES) {
      const number = view.getFloat64(at, true)
      const digest = [view.getUint32(at + 10, true), view.getUint32(at + 14, true)] as const
      const index = view.getFloat64(at + 18, true)
      putResult(store, session, number, bytes[at + 8], bytes[at + 9], index, ...digest)
    }
    touch(store, session, SESSION.bytes)
    store.memory.f64[(session + SESSION.highest) / 8] = highest
    store.memory.f64[(session + SESSION.closedBelow) / 8] = closedBelow
    addSessionDigest(store, session, 1)
  }
}

/**
 * Request keys: a repeated write gets its stored answer instead of a second effect (consensus.md §12).
 *
 * Sessions lie in shared memory, because a snapshot carries them; they form a list ordered by last use, oldest first,
 * so that what goes when the table is full depends on the log alone. The map from key to address is this thread's own.
 */

import { assert } from '@vacancy/shared'
import { OUTCOME } from './command.ts'
import { touch } from './cow.ts'
import { SESSION, SESSION_RESULT, SESSION_WINDOW, STATE } from './layout.ts'
import { addDigest, allocateRecord, type Store, setState, state } from './store.ts'
import { field, setField } from './table.ts'
import { retire } from './version.ts'

export const SESSION_EXPIRY_MS = 24 * 3600 * 1000
const RESULTS_MIN = 4

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function keyText(bytes: Uint8Array, start: number): string {
  let text = ''
  for (let i = start; i < start + 16; i++) text += HEX[bytes[i] as number]
  return text
}

/** What a request key says about a command. `session` is where a new result goes. */
export type Lookup = { seen: boolean; code: number; value: number; index: number; session: number }
const lookup: Lookup = { seen: false, code: 0, value: 0, index: 0, session: 0 }

/**
 * Looks a request up before it is executed, opening its session when it is number 1. One reused object.
 *
 * @param digestLow,digestHigh digest of the command without its header: a repeat must be the same command
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
  }
  use(store, session, timeMs)
  lookup.session = session
  const f64 = store.memory.f64
  if (number < (f64[(session + SESSION.closedBelow) / 8] as number)) return seen(OUTCOME.tooOld)
  const result = resultOf(store, session, number)
  if (result === 0) {
    lookup.seen = false
    return lookup
  }
  const same =
    field(store.memory, result + SESSION_RESULT.digestLow) === digestLow >>> 0 &&
    field(store.memory, result + SESSION_RESULT.digestHigh) === digestHigh >>> 0
  if (!same) return seen(OUTCOME.keyReused)
  lookup.seen = true
  lookup.code = store.memory.u8[result + SESSION_RESULT.outcome] as number
  lookup.value = store.memory.u8[result + SESSION_RESULT.value] as number
  lookup.index = f64[(result + SESSION_RESULT.index) / 8] as number
  return lookup
}

function seen(code: number): Lookup {
  lookup.seen = true
  lookup.code = code
  lookup.value = 0
  lookup.index = 0
  return lookup
}

/** Stores the result of a request that `lookUpRequest` had not seen. */
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
  const { memory } = store
  // Its memory may have been taken back: a session evicts itself when it alone fills the table.
  if (store.writer.sessions.get(keyText(memory.u8, session + SESSION.key)) !== session) return
  const highest = memory.f64[(session + SESSION.highest) / 8] as number
  const closedBelow = memory.f64[(session + SESSION.closedBelow) / 8] as number
  const top = Math.max(highest, number)
  const lowest = Math.max(closedBelow, top - SESSION_WINDOW + 1)
  addSessionDigest(store, session, -1)
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
  addSessionDigest(store, session, 1)
  evict(store)
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
  const block = allocateRecord(store, next * SESSION_RESULT.bytes)
  touch(store, block, next * SESSION_RESULT.bytes)
  for (let i = 0; i < capacity; i++) {
    const from = old + i * SESSION_RESULT.bytes
    if (memory.u8[from + SESSION_RESULT.used] !== 1) continue
    // Capacities are powers of two below 2^32, so the low half of a number finds the same place as the whole.
    const to = block + (field(memory, from + SESSION_RESULT.numberLow) % next) * SESSION_RESULT.bytes
    memory.u8.copyWithin(to, from, from + SESSION_RESULT.bytes)
  }
  setField(store, session + SESSION.results, block)
  setField(store, session + SESSION.capacity, next)
  if (old !== 0) retire(store, false, old, capacity * SESSION_RESULT.bytes)
  setState(store, STATE.sessionBytes, state(memory, STATE.sessionBytes) + (next - capacity) * SESSION_RESULT.bytes)
}

function openSession(store: Store, bytes: Uint8Array, keyStart: number, key: string): number {
  const { memory } = store
  const session = allocateRecord(store, SESSION.bytes)
  touch(store, session, SESSION.bytes)
  for (let i = 0; i < 16; i++) memory.u8[session + SESSION.key + i] = bytes[keyStart + i] as number
  memory.f64[(session + SESSION.closedBelow) / 8] = 1
  store.writer.sessions.set(key, session)
  setState(store, STATE.sessionCount, state(memory, STATE.sessionCount) + 1)
  setState(store, STATE.sessionBytes, state(memory, STATE.sessionBytes) + SESSION.bytes)
  append(store, session)
  addSessionDigest(store, session, 1)
  return session
}

// The list, oldest use first

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

function use(store: Store, session: number, timeMs: number): void {
  const { memory } = store
  if (state(memory, STATE.sessionTail) !== session) {
    unlink(store, session)
    append(store, session)
  }
  const cell = (session + SESSION.lastUsedMs) / 8
  if (memory.f64[cell] === timeMs) return
  touch(store, session, SESSION.bytes)
  memory.f64[cell] = timeMs
}

/** Removes what was not used for a day. Called with each command that carries a time. */
export function expireSessions(store: Store, timeMs: number): void {
  const { memory } = store
  for (;;) {
    const oldest = state(memory, STATE.sessionHead)
    if (oldest === 0) return
    if ((memory.f64[(oldest + SESSION.lastUsedMs) / 8] as number) > timeMs - SESSION_EXPIRY_MS) return
    removeSession(store, oldest)
  }
}

function evict(store: Store): void {
  const { memory } = store
  while (state(memory, STATE.sessionBytes) > state(memory, STATE.sessionBytesMax)) {
    const oldest = state(memory, STATE.sessionHead)
    const { defects, sessions } = store.writer
    const [first = oldest] = defects['sessions/evicted-by-map'] ? sessions.values() : []
    removeSession(store, first)
  }
}

/** Closes all sessions: before those of another state are put in their place. */
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
  unlink(store, session)
  store.writer.sessions.delete(keyText(memory.u8, session + SESSION.key))
  const bytes = field(memory, session + SESSION.capacity) * SESSION_RESULT.bytes
  retire(store, false, field(memory, session + SESSION.results), bytes)
  retire(store, false, session, SESSION.bytes)
  setState(store, STATE.sessionCount, state(memory, STATE.sessionCount) - 1)
  setState(store, STATE.sessionBytes, state(memory, STATE.sessionBytes) - SESSION.bytes - bytes)
}

/** A session counts in the digest by its key and its greatest number; its results follow from the log. */
function addSessionDigest(store: Store, session: number, sign: 1 | -1): void {
  const { u32 } = store.memory
  const highest = (session + SESSION.highest) >>> 2
  for (const lane of [0, 1] as const) {
    let h = lane === 0 ? 0x5bd1e995 : 0x1b873593
    for (let i = 0; i < 4; i++) h = Math.imul(h ^ (u32[((session + SESSION.key) >>> 2) + i] as number), 0xcc9e2d51)
    h = Math.imul(h ^ (u32[highest] as number), 0x85ebca77) ^ (u32[highest + 1] as number)
    h = Math.imul(h ^ (h >>> 15), 0xc2b2ae3d)
    const delta = Math.imul(h ^ (h >>> 13), sign)
    if (lane === 0) addDigest(store, delta, 0)
    else addDigest(store, 0, delta)
  }
}

// Canonical bytes, for snapshots: sessions in list order, results ascending by number

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
      view.setFloat64(at + 16 + i * 8, memory.f64[(session + cell) / 8] as number, true)
    }
    const results = resultsOf(memory, session)
    view.setUint16(at + 40, results.length, true)
    at += SESSION_HEADER_BYTES
    for (const { number, address } of results) {
      view.setFloat64(at, number, true)
      out[at + 8] = memory.u8[address + SESSION_RESULT.outcome] as number
      out[at + 9] = memory.u8[address + SESSION_RESULT.value] as number
      view.setUint32(at + 10, field(memory, address + SESSION_RESULT.digestLow), true)
      view.setUint32(at + 14, field(memory, address + SESSION_RESULT.digestHigh), true)
      view.setFloat64(at + 18, memory.f64[(address + SESSION_RESULT.index) / 8] as number, true)
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
  const highest = memory.f64[(session + SESSION.highest) / 8] as number
  const closedBelow = memory.f64[(session + SESSION.closedBelow) / 8] as number
  for (let number = closedBelow; number <= highest && capacity > 0; number++) {
    const address = results + (number % capacity) * SESSION_RESULT.bytes
    if (memory.u8[address + SESSION_RESULT.used] !== 1) continue
    if (field(memory, address + SESSION_RESULT.numberLow) === number >>> 0) found.push({ number, address })
  }
  return found
}

/** Puts sessions of a snapshot into an empty table. */
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
      storeResult(store, session, number, bytes[at + 8] as number, bytes[at + 9] as number, index, ...digest)
    }
    addSessionDigest(store, session, -1)
    touch(store, session, SESSION.bytes)
    store.memory.f64[(session + SESSION.highest) / 8] = highest
    store.memory.f64[(session + SESSION.closedBelow) / 8] = closedBelow
    addSessionDigest(store, session, 1)
  }
  if (store.writer.defects['sessions/lost-at-load']) store.writer.sessions.clear()
}

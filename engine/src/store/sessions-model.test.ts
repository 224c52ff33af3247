/** Request keys against a model that is a list: results, order, evictions, expiry, bytes and digest. */
import { formatDay, parseDay } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import { applyOwn, ask, createNodeInMemory, type NodeInMemory, raiseFeatureLevel } from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { KIND, OUTCOME, writeF64, writeU32 } from './command.ts'
import { STATE } from './layout.ts'
import { decodeSessions, encodeSessions } from './sessions.ts'
import { countsOf, createStore, setState, state, stateDigest } from './store.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const TODAY = parseDay('2026-11-20') as number
const DAY_MS = 86_400_000
const WINDOW = 256
const SESSION_BYTES = 64
const RESULT_BYTES = 24
const NIGHT = { propertyId: 'p1', roomType: 'double', date: formatDay(TODAY + 60) }

type Result = { command: string; code: number; value: number; index: number }
type Session = {
  key: string
  lastUsedMs: number
  highest: number
  closedBelow: number
  /** Places of the table, which only grows. */
  capacity: number
  results: Map<number, Result>
}
/** Sessions, least recently used first. */
type Model = { sessions: Session[]; limit: number; left: number }

const bytesOf = ({ capacity }: Session) => SESSION_BYTES + capacity * RESULT_BYTES
const bytesIn = ({ sessions }: Model) => sessions.reduce((sum, session) => sum + bytesOf(session), 0)

function evict(model: Model): void {
  while (bytesIn(model) > model.limit) model.sessions.shift()
}

function expire(model: Model, timeMs: number): void {
  while (model.sessions[0] && model.sessions[0].lastUsedMs <= timeMs - DAY_MS) model.sessions.shift()
}

/** One request with a key; `amount` rooms are taken, or refused. */
function request(model: Model, key: string, number: number, amount: number, timeMs: number, index: number) {
  expire(model, timeMs)
  let session = model.sessions.find((each) => each.key === key)
  if (!session) {
    if (number !== 1) return { code: OUTCOME.sessionExpired, value: 0 }
    session = { key, lastUsedMs: timeMs, highest: 0, closedBelow: 1, capacity: 0, results: new Map() }
  }
  model.sessions = [...model.sessions.filter((each) => each !== session), session]
  session.lastUsedMs = timeMs
  if (number < session.closedBelow) return { code: OUTCOME.tooOld, value: 0 }
  const command = String(amount)
  const known = session.results.get(number)
  if (known) return known.command === command ? known : { code: OUTCOME.keyReused, value: 0 }
  const isDone = amount <= model.left
  if (isDone) model.left -= amount
  const result = { command, code: isDone ? OUTCOME.done : OUTCOME.underflow, value: model.left, index }
  session.results.set(number, result)
  session.highest = Math.max(session.highest, number)
  session.closedBelow = Math.max(session.closedBelow, session.highest - WINDOW + 1)
  for (const old of session.results.keys()) if (old < session.closedBelow) session.results.delete(old)
  while (session.capacity < session.highest - session.closedBelow + 1) session.capacity = session.capacity * 4 || 4
  evict(model)
  return result
}

/** The bytes of `encodeSessions` in the form of the model; digests of commands are left out. */
function decoded(bytes: Uint8Array) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 0
  const next = (length: number) => {
    at += length
    return at - length
  }
  const count = view.getUint32(next(4), true)
  const sessions = Array.from({ length: count }, () => {
    const key = Buffer.from(bytes.subarray(next(16), at)).toString('hex')
    const [lastUsedMs, highest, closedBelow] = [0, 0, 0].map(() => view.getFloat64(next(8), true))
    const results = Array.from({ length: view.getUint16(next(2), true) }, () => {
      const number = view.getFloat64(next(8), true)
      const [code, value] = [bytes[next(1)], bytes[next(1)]]
      next(8)
      return { number, code, value, index: view.getFloat64(next(8), true) }
    })
    return { key, lastUsedMs, highest, closedBelow, results }
  })
  expect(at).toBe(bytes.length)
  return sessions
}

const shown = ({ sessions }: Model) =>
  sessions.map(({ key, lastUsedMs, highest, closedBelow, results }) => ({
    ...{ key, lastUsedMs, highest, closedBelow },
    results: [...results]
      .sort(([a], [b]) => a - b)
      .map(([number, { code, value, index }]) => ({ number, code, value, index })),
  }))

function nodeWithRooms(): NodeInMemory {
  const node = createNodeInMemory(TODAY)
  const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
  ask(node, 'SETPROP', { ...place, propertyId: 'p1', amenities: [] })
  ask(node, 'SETROOMPKG', { ...NIGHT, availability: 255, finalPrice: 10 })
  return node
}

/** The digest of the sessions alone: the incremental one of the store without that of everything else. */
function digestOfSessions({ store: { memory } }: NodeInMemory): number[] {
  const whole = stateDigest(memory)
  const { digest } = recountDigest(memory)
  return [(whole.lo - digest.lo) >>> 0, (whole.hi - digest.hi) >>> 0]
}

/** The digest of sessions in an empty store. */
function digestOf(bytes: Uint8Array, level: number): number[] {
  const copy = createStore({ memoryBytes: 24 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 16 << 20 })
  setState(copy, STATE.featureLevel, level)
  decodeSessions(copy, bytes)
  expect(encodeSessions(copy.memory)).toEqual(bytes)
  return [state(copy.memory, STATE.digestLow), state(copy.memory, STATE.digestHigh)]
}

function nextNumber(random: Random, session: Session | undefined): number {
  if (!session) return random.below(4) === 0 ? 2 + random.below(5) : 1
  const { highest, closedBelow } = session
  switch (random.below(8)) {
    case 0:
      return Math.max(1, closedBelow - random.below(3))
    case 1:
      return highest + random.below(300)
    case 2:
      return closedBelow + random.below(highest - closedBelow + 1)
    default:
      return highest + 1
  }
}

describe('any history of request keys', () => {
  test.each([0, 1, 2])('at feature level %i is that of the model', (level) => {
    const random = createRandom(SEED + level)
    const node = nodeWithRooms()
    if (level > 0) raiseFeatureLevel(node, level)
    const model: Model = { sessions: [], limit: 1 << 20, left: 255 }
    const keys = Array.from({ length: 40 }, (_, n) => `${n.toString(16).padStart(2, '0')}${'5a'.repeat(15)}`)
    let timeMs = TODAY * DAY_MS + 1000
    const checked = () => {
      const bytes = encodeSessions(node.store.memory)
      expect(decoded(bytes), `VACANCY_SEED=${SEED}`).toEqual(shown(model))
      expect(countsOf(node.store.memory).sessions).toBe(model.sessions.length)
      expect(state(node.store.memory, STATE.sessionBytes)).toBe(bytesIn(model))
      expect(digestOfSessions(node)).toEqual(digestOf(bytes, level))
    }
    for (let n = 0; n < 1_500; n++) {
      timeMs += random.below(150) === 0 ? random.below(2 * DAY_MS) : random.below(5_000)
      node.timeMs = timeMs
      node.day = Math.floor(timeMs / DAY_MS)
      if (random.below(150) === 0) {
        // Room for some 1 to 30 sessions with few results.
        model.limit = 200 + random.below(6_000)
        applyOwn(node, KIND.settings, (writer) => writeU32(writer, model.limit))
        expire(model, timeMs)
        if (level > 0) evict(model)
      }
      if (random.below(300) === 0) {
        timeMs -= random.below(DAY_MS)
        node.timeMs = timeMs
        node.day = Math.floor(timeMs / DAY_MS)
        applyOwn(node, KIND.setTime, (writer) => writeF64(writer, timeMs))
        if (level > 0) for (const session of model.sessions) session.lastUsedMs = Math.min(session.lastUsedMs, timeMs)
      }
      const key = keys[random.below(keys.length)] as string
      const number = nextNumber(
        random,
        model.sessions.find((session) => session.key === key),
      )
      const amount = 1 + random.below(3)
      const given = ask(node, 'DECROOMAVL', { ...NIGHT, amount, session: key, requestNumber: number })
      const expected = request(model, key, number, amount, timeMs, node.index)
      expect([given.code, given.value], `VACANCY_SEED=${SEED}, step ${n}`).toEqual([expected.code, expected.value])
      if (n % 50 === 0) checked()
    }
    checked()
  })
})

describe('the digest of request keys', () => {
  /** Two sessions, one with three results, in the bytes of a snapshot. */
  function sample(): Uint8Array {
    const node = nodeWithRooms()
    raiseFeatureLevel(node)
    for (const [session, requestNumber] of [
      ['0123456789abcdef', 1],
      ['0123456789abcdef', 2],
      ['0123456789abcdef', 5],
      ['f0f0f0f0f0f0f0f0', 1],
    ] as const)
      ask(node, 'DECROOMAVL', { ...NIGHT, amount: 1, session: session.repeat(2), requestNumber })
    return encodeSessions(node.store.memory)
  }

  test('is the same in every version: nodes of a rolling upgrade compare it', () => {
    const hex = (parts: number[]) => parts.map((part) => part.toString(16).padStart(8, '0')).join(' ')
    expect(hex(digestOf(sample(), 0))).toBe('1d97923e 70f73fc7')
    expect(hex(digestOf(sample(), 1))).toBe('abf6edc8 759dc217')
  })
})

import { formatDay, parseDay } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { ask, createNodeInMemory, type NodeInMemory } from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { OUTCOME } from './command.ts'
import { decodeSessions, encodeSessions } from './sessions.ts'
import { countsOf, createStore, stateDigest } from './store.ts'

const TODAY = parseDay('2026-11-20') as number
const SESSION = '0123456789abcdef0123456789abcdef'
const OTHER = 'ffffffffffffffffffffffffffffffff'
const NIGHT = { propertyId: 'p1', roomType: 'double', date: formatDay(TODAY) }
let node: NodeInMemory

beforeEach(() => {
  node = createNodeInMemory(TODAY)
  const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
  ask(node, 'SETPROP', { ...place, propertyId: 'p1', amenities: [] })
  ask(node, 'SETROOMPKG', { ...NIGHT, availability: 200, finalPrice: 10 })
})

const take = (requestNumber: number, amount = 1, session = SESSION) =>
  ask(node, 'DECROOMAVL', { ...NIGHT, amount, session, requestNumber })

describe('request keys', () => {
  test('a retry gets the stored result and has no second effect', () => {
    expect(take(1).value).toBe(199)
    expect(take(2).value).toBe(198)

    expect(take(1).value).toBe(199)
    expect(take(2).value).toBe(198)

    expect(take(3).value).toBe(197)
  })

  test('a refusal is stored like a result', () => {
    expect(take(1, 255)).toMatchObject({ code: OUTCOME.underflow, value: 200 })
    ask(node, 'SETROOMAVL', { ...NIGHT, amount: 255 })

    expect(take(1, 255)).toMatchObject({ code: OUTCOME.underflow, value: 200 })
  })

  test('the same key with another command is refused and not executed', () => {
    take(1)

    expect(take(1, 2).code).toBe(OUTCOME.keyReused)
    expect(ask(node, 'INCROOMAVL', { ...NIGHT, amount: 1, session: SESSION, requestNumber: 1 }).code).toBe(
      OUTCOME.keyReused,
    )
    expect(take(2).value).toBe(198)
  })

  test('a number below the window of 256 is too old', () => {
    for (let number = 1; number <= 260; number++)
      ask(node, 'SETROOMAVL', { ...NIGHT, amount: 9, session: SESSION, requestNumber: number })

    expect(ask(node, 'SETROOMAVL', { ...NIGHT, amount: 9, session: SESSION, requestNumber: 4 }).code).toBe(
      OUTCOME.tooOld,
    )
    expect(ask(node, 'SETROOMAVL', { ...NIGHT, amount: 9, session: SESSION, requestNumber: 5 }).code).toBe(OUTCOME.done)
  })

  test('numbers may come in any order within the window', () => {
    expect(take(1).value).toBe(199)
    expect(take(9).value).toBe(198)
    expect(take(5).value).toBe(197)

    expect(take(9).value).toBe(198)
    expect(take(5).value).toBe(197)
  })

  test('a later number of an unknown session is refused: the session may have been evicted', () => {
    expect(take(7).code).toBe(OUTCOME.sessionExpired)
  })

  test('a session expires a day after its last use, by the time in the log', () => {
    take(1)
    node.day += 2
    ask(node, 'SETROOMPKG', { ...NIGHT, date: formatDay(TODAY + 5), availability: 3 })

    expect(countsOf(node.store.memory).sessions).toBe(0)
    expect(stateDigest(node.store.memory)).toEqual(recountDigest(node.store.memory).digest)
  })

  test('the table is bounded by bytes: the least recently used session is evicted', () => {
    const names = Array.from({ length: 20_000 }, (_, i) => i.toString(16).padStart(32, '0'))
    for (const session of names) take(1, 255, session)

    expect(countsOf(node.store.memory).sessions).toBeLessThan(8_000)
    expect(take(2, 255, names[0]).code).toBe(OUTCOME.sessionExpired)
    expect(take(2, 255, names.at(-1)).code).toBe(OUTCOME.underflow)
  })

  test('sessions survive a snapshot in their order', () => {
    take(1)
    take(1, 1, OTHER)
    take(2)
    const bytes = encodeSessions(node.store.memory)
    const copy = createStore({ memoryBytes: 64 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 1 << 20 })

    decodeSessions(copy, bytes)

    expect(encodeSessions(copy.memory)).toEqual(bytes)
    expect(countsOf(copy.memory).sessions).toBe(2)
  })

  test('a key needs both parts, 32 lower-case digits and a number from 1', () => {
    const refused = { error: 'VALIDATION_ERROR' }
    expect(ask(node, 'DECROOMAVL', { ...NIGHT, amount: 1, session: SESSION })).toMatchObject(refused)
    expect(ask(node, 'DECROOMAVL', { ...NIGHT, amount: 1, requestNumber: 1 })).toMatchObject(refused)
    expect(take(1, 1, SESSION.toUpperCase())).toMatchObject(refused)
    expect(take(0)).toMatchObject(refused)
  })
})

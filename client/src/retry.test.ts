import { assert } from '@vacancy/shared'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connectIn } from './client.ts'
import {
  createRequestKeys,
  type RequestKey,
  type RequestKeys,
  releaseKey,
  retire,
  SESSION_IDLE_MS_MAX,
  SESSION_WINDOW,
  SESSIONS_MAX,
  takeKey,
} from './request-keys.ts'
import {
  GOOD_CONNECTION_MS,
  leavesDoubt,
  mayRepeat,
  reconnectDelayMs,
  repeatDelayMs,
  searchDelayMs,
  tellsFate,
} from './retry.ts'
import { startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'

const READ = { isWrite: false, isKeyed: false }
const WRITE = { isWrite: true, isKeyed: false }
const KEYED = { isWrite: true, isKeyed: true }
const lost = { ended: 'lost' } as const
const answered = (code: string) => ({ ended: 'answered', code }) as const

describe('retries', () => {
  test.each(['308', '405', '429', '503'])('any call refused with %s, which is certainly not in the log', (code) => {
    for (const call of [READ, WRITE, KEYED]) {
      expect(mayRepeat(call, answered(code))).toBe(true)
      expect(leavesDoubt(call, answered(code))).toBe(false)
    }
  })

  test.each([
    'VALIDATION_ERROR',
    'NOT_FOUND',
    'OVERFLOW',
    'UNDERFLOW',
    'FORBIDDEN',
    'AUTH_ERROR',
    'PARSE_ERROR',
    '404',
    '500',
  ])('no call refused with %s', (code) => {
    for (const call of [READ, WRITE, KEYED]) expect(mayRepeat(call, answered(code))).toBe(false)
  })

  test('a read or a keyed write whose connection was lost, but never a write without a key', () => {
    expect(mayRepeat(READ, lost)).toBe(true)
    expect(mayRepeat(KEYED, lost)).toBe(true)
    expect(mayRepeat(WRITE, lost)).toBe(false)
  })

  test('a keyed write of unknown outcome, but never one without a key', () => {
    expect(mayRepeat(KEYED, answered('408'))).toBe(true)
    expect(mayRepeat(WRITE, answered('408'))).toBe(false)
  })
})

test('only lost writes and those with an unknown outcome are in doubt', () => {
  expect([READ, WRITE, KEYED].map((call) => leavesDoubt(call, lost))).toEqual([false, true, true])
  expect([READ, WRITE, KEYED].map((call) => leavesDoubt(call, answered('408')))).toEqual([false, true, true])
  expect([READ, WRITE, KEYED].map((call) => leavesDoubt(call, answered('500')))).toEqual([false, true, true])
  expect([READ, WRITE, KEYED].map((call) => leavesDoubt(call, answered('NOT_FOUND')))).toEqual([false, false, false])
})

test('a reply that does not come from executing a write does not settle its outcome', () => {
  expect(['SUCCESS', 'NOT_FOUND', 'OVERFLOW', 'UNDERFLOW'].every(tellsFate)).toBe(true)
  expect(['VALIDATION_ERROR', 'FORBIDDEN', 'AUTH_ERROR', '503', '408', '500', ''].some(tellsFate)).toBe(false)
})

test('reconnect delays double from 100 ms to 1 s, with up to half of it random: a call outlives them', () => {
  const greatest = Array.from({ length: 6 }, (_, failures) => reconnectDelayMs(failures, 1))
  expect(greatest).toEqual([100, 200, 400, 800, 1000, 1000])
  expect(reconnectDelayMs(0, 0)).toBe(50)
  expect(reconnectDelayMs(1000, 0)).toBe(500)
})

test('retry delays double from 20 ms to 500 ms', () => {
  expect(Array.from({ length: 7 }, (_, repeats) => repeatDelayMs(repeats, 1))).toEqual([20, 40, 80, 160, 320, 500, 500])
})

test('the search for a leader retries quickly for the duration of an election, then as rarely as other retries', () => {
  expect([0, 1, 2, 3, 59].map((rounds) => searchDelayMs(rounds, 1))).toEqual([20, 40, 80, 80, 80])
  expect(searchDelayMs(60, 1)).toBe(500)
})

test('half of a delay is random', () => {
  expect([0, 0.5].map((random) => repeatDelayMs(2, random))).toEqual([40, 60])
  expect([0, 0.5].map((random) => searchDelayMs(2, random))).toEqual([40, 60])
  // However many failures: never beyond the greatest.
  expect([29, 30, 31, 5_000].map((failures) => reconnectDelayMs(failures, 1))).toEqual([1_000, 1_000, 1_000, 1_000])
  expect(GOOD_CONNECTION_MS).toBe(5_000)
})

test('without retries the first refusal, a lost connection and a failed connect are reported at once', async () => {
  const node = await startScriptedNode()
  onTestFinished(() => node.close())
  const client = await connectIn(turnedWorld(), { port: node.port, retry: false })
  const peer = await node.nextPeer()
  const read = () => client.listRoomTypes({ propertyId: 'h1' })
  const write = () => client.setAvailability({ propertyId: 'h1', roomType: 'suite', date: '2026-12-24', amount: 1 })

  const refused = expect(read()).rejects.toMatchObject({ name: 'VacancyRetryError', code: '503' })
  ;(await node.next()).refuse('503')
  await refused

  const lost = expect(read()).rejects.toMatchObject({ name: 'VacancyRetryError', code: 'connection_lost' })
  const inDoubt = { name: 'VacancyUnknownOutcomeError', code: 'connection_lost' }
  const doubtful = expect(write()).rejects.toMatchObject(inDoubt)
  await node.next()
  await node.next()
  peer.socket.destroy()
  await Promise.all([lost, doubtful])

  await node.close()
  const failed = connectIn(turnedWorld(), { port: node.port, retry: false })
  await expect(failed).rejects.toMatchObject({ code: 'connection_failed' })
})

function take(keys: RequestKeys): RequestKey {
  const key = takeKey(keys)
  assert(key, 'a key is free')
  return key
}

function openSession(keys: RequestKeys): RequestKey {
  const first = take(keys)
  releaseKey(keys, first, true)
  return first
}

test('a session has 128 random bits as lower-case hexadecimal digits, and its numbers start at 1', () => {
  const key = take(createRequestKeys(turnedWorld()))

  expect(key.session.id).toMatch(/^[0-9a-f]{32}$/)
  expect(key.number).toBe(1)
  expect(take(createRequestKeys(turnedWorld())).session.id).not.toBe(key.session.id)
})

test('a session sends nothing further until number 1 has a reply', () => {
  const keys = createRequestKeys(turnedWorld())
  const first = take(keys)

  expect(takeKey(keys)).toBeUndefined()

  releaseKey(keys, first, true)
  expect(take(keys)).toEqual({ session: first.session, number: 2 })
})

test('a session whose number 1 was refused before it was executed is not used again', () => {
  const keys = createRequestKeys(turnedWorld())
  const first = take(keys)

  releaseKey(keys, first, false)

  const next = take(keys)
  expect(next.number).toBe(1)
  expect(next.session).not.toBe(first.session)
})

test('numbers run at most 255 ahead of the oldest pending one; then another session opens', () => {
  const keys = createRequestKeys(turnedWorld())
  openSession(keys)
  const oldest = take(keys)
  for (let i = 1; i < SESSION_WINDOW; i++) {
    const key = take(keys)
    expect(key).toEqual({ session: oldest.session, number: oldest.number + i })
    // Regardless of replies in between: only the distance from the oldest pending number counts.
    if (i % 2 === 0) releaseKey(keys, key, true)
  }

  const further = take(keys)

  expect(further.session).not.toBe(oldest.session)
  expect(further.number).toBe(1)
  releaseKey(keys, oldest, true)
  expect(take(keys).session).toBe(oldest.session)
})

test('a retired session takes no further number, and writes in flight keep theirs', () => {
  const keys = createRequestKeys(turnedWorld())
  openSession(keys)
  const second = take(keys)

  retire(keys, second.session)

  expect(take(keys).session).not.toBe(second.session)
  releaseKey(keys, second, true)
})

test('a session idle for an hour is retired, because the node may have forgotten it', () => {
  const world = turnedWorld()
  const keys = createRequestKeys(world)
  const { session } = openSession(keys)

  world.advance(SESSION_IDLE_MS_MAX)
  expect(takeKey(keys)?.session).toBe(session)
  const [second] = session.unanswered
  releaseKey(keys, { session, number: second ?? 0 }, true)
  world.advance(SESSION_IDLE_MS_MAX + 1)

  expect(takeKey(keys)?.session).not.toBe(session)
  // It no longer counts towards the greatest number of sessions.
  expect(keys.sessions.size).toBe(1)
})

test('the number of sessions is limited', () => {
  const keys = createRequestKeys(turnedWorld())
  for (let i = 0; i < SESSIONS_MAX; i++) {
    openSession(keys)
    for (let j = 0; j < SESSION_WINDOW; j++) take(keys)
  }

  expect(takeKey(keys)).toBeUndefined()
  expect(keys.sessions.size).toBe(SESSIONS_MAX)
})

import { assert } from '@vacancy/shared'
import { expect, test } from 'vitest'
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
import { turnedWorld } from './testing/turned-world.ts'

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

test('nothing follows in a session until number 1 is answered (X4)', () => {
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

test('at most 256 numbers lie between the oldest unanswered one and the next; then a further session opens (X3)', () => {
  const keys = createRequestKeys(turnedWorld())
  openSession(keys)
  const oldest = take(keys)
  for (let i = 1; i < SESSION_WINDOW; i++) {
    const key = take(keys)
    expect(key).toEqual({ session: oldest.session, number: oldest.number + i })
    // Answered or not: what counts is how far the numbers run ahead of the oldest.
    if (i % 2 === 0) releaseKey(keys, key, true)
  }

  const further = take(keys)

  expect(further.session).not.toBe(oldest.session)
  expect(further.number).toBe(1)
  releaseKey(keys, oldest, true)
  expect(take(keys).session).toBe(oldest.session)
})

test('a retired session takes no further number, and what is on its way keeps its own', () => {
  const keys = createRequestKeys(turnedWorld())
  openSession(keys)
  const second = take(keys)

  retire(keys, second.session)

  expect(take(keys).session).not.toBe(second.session)
  releaseKey(keys, second, true)
})

test('a session that was idle for an hour is left: the node may have forgotten it', () => {
  const world = turnedWorld()
  const keys = createRequestKeys(world)
  const { session } = openSession(keys)

  world.advance(SESSION_IDLE_MS_MAX)
  expect(takeKey(keys)?.session).toBe(session)
  const [second] = session.unanswered
  releaseKey(keys, { session, number: second ?? 0 }, true)
  world.advance(SESSION_IDLE_MS_MAX + 1)

  expect(takeKey(keys)?.session).not.toBe(session)
})

test('there is a greatest number of sessions', () => {
  const keys = createRequestKeys(turnedWorld())
  for (let i = 0; i < SESSIONS_MAX; i++) {
    openSession(keys)
    for (let j = 0; j < SESSION_WINDOW; j++) take(keys)
  }

  expect(takeKey(keys)).toBeUndefined()
  expect(keys.sessions.size).toBe(SESSIONS_MAX)
})

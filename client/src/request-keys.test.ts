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

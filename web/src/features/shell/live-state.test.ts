import { expect, test } from 'vitest'
import type { LiveStatus } from '../../lib/live.ts'
import { chipOf } from './live-state.ts'

const NOW = 1_000_000
const live: LiveStatus = { link: { state: 'live', seenAt: 0 }, paused: false, waiting: 0 }

test.each([
  [NOW - 400, 'live', 'Live 0.4 s'],
  [NOW - 5_900, 'live', 'Live 5.9 s'],
  [NOW - 6_100, 'delayed', 'Delayed 6 s'],
  [NOW - 22_000, 'stale', 'Stale 22 s'],
  [NOW + 300, 'live', 'Live 0.0 s'],
])('heard at %d it is %s', (seenAt, state, says) => expect(chipOf(live, seenAt, NOW)).toEqual({ state, says }))

test('a cut connection says when it is tried again', () => {
  const cut: LiveStatus = { ...live, link: { state: 'offline', retryAt: NOW + 2_400, since: NOW - 9_000 } }

  expect(chipOf(cut, NOW - 9_000, NOW)).toEqual({ state: 'offline', says: 'Disconnected, retrying in 3 s' })
  expect(chipOf(cut, NOW - 9_000, NOW + 3_000).says).toBe('Disconnected, retrying')
})

test('a pause counts what waits, and a cut connection is said first', () => {
  expect(chipOf({ ...live, paused: true, waiting: 12 }, NOW, NOW).says).toBe('Paused, 12 changes waiting')
  expect(chipOf({ ...live, paused: true, waiting: 1 }, NOW, NOW).says).toBe('Paused, 1 change waiting')
  const both: LiveStatus = { link: { state: 'offline', retryAt: NOW, since: NOW }, paused: true, waiting: 3 }
  expect(chipOf(both, NOW, NOW).state).toBe('offline')
})

test('polling and connecting are named', () => {
  expect(chipOf({ ...live, link: { state: 'polling', seenAt: 0 } }, NOW, NOW).state).toBe('polling')
  expect(chipOf({ ...live, link: { state: 'connecting' } }, 0, NOW).says).toBe('Connecting')
})

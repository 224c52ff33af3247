import { expect, test } from 'vitest'
import type { LiveStatus } from '../../lib/live.ts'
import { chipOf } from './live-state.ts'

const NOW = 1_000_000
const live: LiveStatus = { link: { state: 'live' }, paused: false, waiting: 0 }

test.each([
  [NOW - 400, 'live', 'Live 0.4 s'],
  [NOW - 5_900, 'live', 'Live 5.9 s'],
  [NOW - 6_000, 'live', 'Live 6.0 s'],
  [NOW - 6_001, 'delayed', 'Delayed 6 s'],
  [NOW - 15_000, 'delayed', 'Delayed 15 s'],
  [NOW - 15_001, 'stale', 'Stale 15 s'],
  [NOW - 22_000, 'stale', 'Stale 22 s'],
  [NOW + 300, 'live', 'Live 0.0 s'],
])('last seen at %d it is %s', (seenAt, state, text) => expect(chipOf(live, seenAt, NOW)).toEqual({ state, text }))

test('the age is that of the oldest data, however fresh the connection is', () => {
  const at = (seconds: number) => new Date(NOW - seconds * 1_000).toISOString()

  expect(chipOf(live, NOW, NOW, at(12))).toEqual({ state: 'delayed', text: 'Delayed 12 s' })
  expect(chipOf(live, NOW - 20_000, NOW, at(12)).text).toBe('Stale 20 s')
})

test('a lost connection shows the time of the next retry', () => {
  const cut: LiveStatus = { ...live, link: { state: 'offline', retryAt: NOW + 2_400, since: NOW - 9_000 } }

  expect(chipOf(cut, NOW - 9_000, NOW)).toEqual({ state: 'offline', text: 'Disconnected, retrying in 3 s' })
  expect(chipOf(cut, NOW - 9_000, NOW + 3_000).text).toBe('Disconnected, retrying')
})

test('a pause counts waiting changes, a lost connection comes first', () => {
  expect(chipOf({ ...live, paused: true, waiting: 12 }, NOW, NOW).text).toBe('Paused, 12 changes waiting')
  expect(chipOf({ ...live, paused: true, waiting: 1 }, NOW, NOW).text).toBe('Paused, 1 change waiting')
  const both: LiveStatus = { link: { state: 'offline', retryAt: NOW, since: NOW }, paused: true, waiting: 3 }
  expect(chipOf(both, NOW, NOW).state).toBe('offline')
})

test('polling and connecting are named', () => {
  expect(chipOf({ ...live, link: { state: 'polling' } }, NOW, NOW).state).toBe('polling')
  expect(chipOf({ ...live, link: { state: 'connecting' } }, 0, NOW).text).toBe('Connecting')
})

/** Shard time of a replica that does not lead: what it applies, and what its leader reports (keep-time.ts). */

import { turnableClock } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { followTime, shardTime, type TimeOfReplica } from './keep-time.ts'
import { createShardClock } from './shard-time.ts'

const NOON = Date.UTC(2026, 0, 15, 12)

function follower(role = 'follower', wallMs = NOON) {
  const clock = turnableClock(wallMs)
  const replica = { env: { clock }, raft: { role }, clock: createShardClock(0, 0), appliedTimeMs: 0 }
  return { clock, replica: replica as unknown as TimeOfReplica }
}

test('it follows later times that it applies, and runs on between them', () => {
  const { clock, replica } = follower()
  followTime(replica, NOON, false)
  clock.advance(5_000)
  followTime(replica, NOON + 1_000, false)
  expect(shardTime(replica)).toBe(NOON + 5_000)
  followTime(replica, NOON + 9_000, false)
  expect([shardTime(replica), replica.appliedTimeMs]).toEqual([NOON + 9_000, NOON + 9_000])
})

test('it goes back only when the log was set back, or its leader reports so', () => {
  const { replica } = follower()
  followTime(replica, NOON, false)
  followTime(replica, NOON - 3_000, false)
  expect([shardTime(replica), replica.appliedTimeMs]).toEqual([NOON - 3_000, NOON - 3_000])
  followTime(replica, NOON - 9_000, true)
  expect([shardTime(replica), replica.appliedTimeMs]).toEqual([NOON - 9_000, NOON - 3_000])
})

test('a leader follows no time, and a time of 0 counts as no time', () => {
  const { replica } = follower('leader')
  followTime(replica, NOON, true)
  expect(shardTime(replica)).toBe(0)
  const other = follower()
  followTime(other.replica, 0, true)
  expect([shardTime(other.replica), other.replica.clock.offsetMs]).toEqual([0, 0])
})

test.each([
  [60_000, 'following'],
  [-60_000, 'following'],
  [60_001, 'holding'],
  [-60_001, 'holding'],
])('%i ms between its clock and shard time are %s', (offsetMs, state) => {
  const { replica } = follower('follower', NOON + offsetMs)
  followTime(replica, NOON, true)
  expect(replica.clock).toMatchObject({ offsetMs, state })
})

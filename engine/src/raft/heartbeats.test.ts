import { expect, test } from 'vitest'
import { E, leaderOf } from '../testing/raft-fixture.ts'
import { checkQuorum, sendHeartbeats } from './heartbeats.ts'

test('a heartbeat commits what its receiver has acknowledged, and starts the interval again', () => {
  const raft = leaderOf()
  const [second, third] = raft.peers
  Object.assign(second ?? {}, { match: 0 })
  Object.assign(third ?? {}, { match: 5 })
  Object.assign(raft, { heartbeatElapsed: 4, readRound: 6 })
  sendHeartbeats(raft)
  const beat = { type: 'heartbeat', from: 1, term: 1, readRound: 6 }
  expect(raft.sendNow).toEqual([
    { ...beat, to: 2, commit: 0 },
    { ...beat, to: 3, commit: 1 },
  ])
  expect(raft.heartbeatElapsed).toBe(0)
})

test.each([
  [[true, false], 'leader'],
  [[false, false], 'follower'],
])('a leader with replies %o since the last check is then a %s', (active, role) => {
  const raft = leaderOf()
  for (const [at, peer] of raft.peers.entries()) peer.isActive = active[at] === true
  const { peers } = raft
  raft.electionElapsed = E
  checkQuorum(raft)
  expect([raft.role, raft.electionElapsed, raft.term]).toEqual([role, 0, 1])
  expect(peers.map(({ isActive, wasActive }) => [isActive, wasActive])).toEqual(active.map((was) => [false, was]))
})

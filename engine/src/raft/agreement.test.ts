import { expect, test } from 'vitest'
import { configurationOf, leaderOf } from '../testing/raft-fixture.ts'
import { reached } from './agreement.ts'
import { placePeers } from './state.ts'

const reachOf = ({ id }: { id: number }) => id * 10

test.each<[string, Parameters<typeof configurationOf>[0], number]>([
  ['of three voters', { voters: [1, 2, 3] }, 25],
  ['of four voters', { voters: [1, 2, 3, 4] }, 25],
  ['with learners', { voters: [1, 2, 3], learners: [4, 5] }, 25],
  ['of one voter', { voters: [1] }, 25],
  ['without the own node', { voters: [2, 3, 4] }, 30],
  ['of two halves', { voters: [2, 3, 4], outgoing: [1, 2] }, 20],
  ['of halves in the other order', { voters: [1, 2], outgoing: [3, 4, 5] }, 20],
  ['with a voter that does not count', { voters: [1, 3, 4], unbound: [4] }, 25],
  ['with an outgoing voter that does not count', { voters: [3, 4, 5], outgoing: [1, 6], unbound: [6] }, 0],
])('the greatest value that a majority has reached, %s', (_name, places, value) => {
  const raft = leaderOf()
  raft.configuration = configurationOf(places)
  placePeers(raft)
  expect(reached(raft, 25, reachOf)).toBe(value)
})

test('what a mute node stores does not count', () => {
  const raft = leaderOf({ voters: [1] })
  expect(reached(raft, 25, reachOf)).toBe(25)
  raft.isMute = true
  expect(reached(raft, 25, reachOf)).toBe(0)
})

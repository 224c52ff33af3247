import type { ClusterInfo } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { leaderOf, lookAt, type Seen, stateOf } from './shard-view.ts'

const info = (leader: string, term: number, why?: string) =>
  ({ leader_id: leader, term, bootstrap: why === undefined ? null : { why } }) as ClusterInfo
const seen = (node: string, more: Partial<Seen> = {}): Seen => ({
  node,
  info: undefined,
  health: 'unavailable',
  reasons: [],
  ...more,
})

test('of two nodes that claim to lead, the one with the later term is the leader', () => {
  const nodes = [
    seen('a', { info: info('a', 3) }),
    seen('b', { info: info('b', 5) }),
    seen('c', { info: info('a', 9) }),
  ]

  expect(leaderOf(nodes)).toEqual({ node: 'b', term: 5 })
  expect(leaderOf([seen('a', { info: info('b', 1) }), seen('b')])).toBeUndefined()
})

test('a node is described by its role, or by what it waits for', () => {
  expect(stateOf(seen('a', { health: 'active_leader' }))).toBe('leads')
  expect(stateOf(seen('a', { health: 'active_follower' }))).toBe('follows, up to date')
  expect(stateOf(seen('a', { health: '' }))).toBe('starting')
  expect(stateOf(seen('a', { info: info('', 0, 'n2 is silent'), reasons: ['forming'] }))).toBe('not yet: n2 is silent')
  expect(stateOf(seen('a', { info: info('b', 1), reasons: ['catching up'] }))).toBe('not yet: catching up')
})

test('a node that does not respond has an unknown state', async () => {
  const place = { host: '127.0.0.1', tcpPort: 1, apiPort: 1, quicPort: 1 }

  expect(await lookAt(new Map([['a', place]]))).toEqual([{ node: 'a', info: undefined, health: '', reasons: [] }])
})

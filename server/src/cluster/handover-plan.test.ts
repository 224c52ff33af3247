import type { Environment, Handover, ShardView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import { machineOf, planBack, planPrepare } from './handover-plan.ts'
import type { PlanContext } from './operation-types.ts'

const PRODUCTION: Environment = { label: 'TEST', kind: 'production' }
const members = { voters: ['n1', 'n2', 'n3'], learners: [] }

/** Three voters led by n1, in the given zones. */
function contextOf(id: string, zones: readonly string[], over: Partial<ShardView> = {}): PlanContext {
  const observations = ['n1', 'n2', 'n3'].map((node) => observedNode({ id: node, ...members }))
  const { view } = shardOf(observations)
  const nodes = view.nodes.map((node, at) => ({
    ...node,
    zone: zones[at] as string,
    apiUrl: `http://host-${at + 1}:8080`,
  }))
  return {
    now: NOW,
    shard: { ...view, id, nodes, leaderSince: '2026-11-22T08:00:00.000Z', ...over },
    observations,
    running: undefined,
    isAdmin: true,
    hasAdminToken: true,
    clusterPause: null,
    bridges: [],
    baseUrl: 'http://console',
  }
}

const prepare = (...contexts: PlanContext[]) => planPrepare({ kind: 'zone', name: 'a' }, contexts, PRODUCTION)

test('leaders within the scope move to voters outside, others are left alone', () => {
  const plan = prepare(
    contextOf('s2', ['a', 'a', 'b']),
    contextOf('s1', ['b', 'a', 'a']),
    contextOf('s3', ['a', 'b', 'b']),
  )

  expect(plan.items.map(({ shard, from, to }) => [shard, from, to])).toEqual([
    ['s2', 'n1', 'n3'],
    ['s3', 'n1', 'n2'],
  ])
  expect(plan).toMatchObject({ kind: 'prepare', moves: 2, reasonRequired: true, back: null })
})

test('a leader without a voter outside stays, with the reason', () => {
  const plan = prepare(
    contextOf('s1', ['a', 'a', 'a']),
    contextOf('s2', ['a', 'b', 'b'], {
      change: { kind: 'promote', node: 'n4', startedAt: '2026-11-22T08:00:00.000Z', step: '' },
    }),
  )

  expect(plan.moves).toBe(0)
  expect(plan.items[0]?.blocked).toBe('no voter is outside zone a')
  expect(plan.items[1]?.blocked).toContain('another change')
})

test('a machine is the host of the address of its nodes', () => {
  const context = contextOf('s1', ['a', 'a', 'a'])
  const plan = planPrepare({ kind: 'machine', name: 'host-1' }, [context], PRODUCTION)

  expect(plan.items.map(({ to }) => to)).toEqual(['n2'])
  expect(machineOf({ apiUrl: '' })).toBe('')
})

test('the basis changes with the shards and their leaders, not with their order', () => {
  const shards = [contextOf('s1', ['a', 'b', 'b']), contextOf('s2', ['a', 'b', 'b'])] as const

  expect(prepare(...shards).basis).toBe(prepare(shards[1], shards[0]).basis)
  expect(prepare(shards[0]).basis).not.toBe(prepare(...shards).basis)
})

test('only moved leaders return, and only where they do not lead already', () => {
  const item = (shard: string, from: string, state: string) => ({ shard, from, to: 'n1', state })
  const earlier = {
    id: 'handover_1',
    scope: { kind: 'zone', name: 'b' },
    items: [
      item('s1', 'n2', 'done'),
      item('s2', 'n1', 'done'),
      item('s3', 'n2', 'skipped'),
      item('gone', 'n2', 'done'),
    ],
  } as unknown as Handover
  const plan = planBack(earlier, (id) => (id === 'gone' ? undefined : contextOf(id, ['a', 'b', 'b'])), PRODUCTION)

  expect(plan).toMatchObject({ title: 'Bring leaders back to zone b', back: 'handover_1', kind: 'bring-back' })
  expect(plan.items.map(({ shard, from, to }) => [shard, from, to])).toEqual([['s1', 'n1', 'n2']])
})

/** Operations on members of a shard: what is sent, which steps are stored, and how an operation ends. The clock is simulated. */

import { CATCH_UP } from '@vacancy/shared'
import { expect, test, vi } from 'vitest'
import { NodeHttpError } from '../http/node-http.ts'
import {
  after,
  at,
  demoted,
  leaderless,
  led,
  runWith,
  show,
  stepsOf,
  type View,
  type World,
  worldOf,
} from '../testing/membership-world.ts'
import { NOW } from '../testing/observed-nodes.ts'
import { LATE_MS, membershipTypes } from './membership-operations.ts'
import type { OperationType } from './operation-types.ts'

const sleeping = vi.hoisted(() => ({ sleep: async (_ms: number): Promise<void> => {} }))
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number, _: undefined, { signal }: { signal: AbortSignal }) =>
    signal.aborted ? Promise.reject(signal.reason) : sleeping.sleep(ms),
}))

async function run(world: World): Promise<World> {
  await runWith(world, sleeping, (deps) => membershipTypes(deps).get(world.operation.kind) as OperationType)
  expect([world.watching, world.listeners.size]).toEqual([0, 0])
  return world
}

test.each([404, 405])('after status %d the path of older engines is tried, without a body', async (status) => {
  const world = worldOf('transfer', 'n/2')
  world.replies = [
    { status, body: 'no such path' },
    { status: 299, body: 'ok' },
  ]
  world.polls = [() => {}]

  await run(world)

  expect(world.sent[1]).toEqual({
    to: 'n1',
    path: '/admin/transfer-leader/n%2F2',
    body: undefined,
    timeoutMs: 10_000,
  })
  expect(stepsOf(world)[1]).toBe('accepted done: Accepted, n1 answered "ok" (usually "transfer in progress")')
})

test('a lost response is not repeated: the nodes show the outcome', async () => {
  const world = worldOf('transfer', 'n2')
  world.replies = [new NodeHttpError('timeout', 'no response within 10 s')]
  world.polls = [() => {}, show(world, led('n2')), show(world, led('n2', { commit: 50_001 }))]

  await run(world)

  expect(world.states).toEqual(['requested', 'verifying', 'done'])
  expect(world.operation.answer).toBe('no response: no response within 10 s')
  expect(stepsOf(world)[1]).toBe('accepted skipped: No response, n1: no response within 10 s')
  expect(world.sent).toHaveLength(1)
})

test('after the 10 minutes an operation stays unconfirmed', async () => {
  const world = worldOf('transfer', 'n2')
  world.polls = [
    show(world, leaderless()),
    after(world, 30_000),
    after(world, LATE_MS - 200),
    show(world, led('n3')),
    show(world, led('n3')),
  ]

  await run(world)

  expect(world.operation.state).toBe('unconfirmed')
  expect(world.polls).toHaveLength(2)
})

const both = (view = led('n1')) => worldOf('transfer-then-demote', 'n1', view)

test('a restart after the demotion was requested does not transfer or demote again', async () => {
  const world = both(led('n2'))
  world.isResumed = true
  world.operation.steps.push({
    ...{ id: 'demote-requested', text: '', state: 'done', at: at(NOW - 1_000), milliseconds: 1, evidence: '' },
  })
  world.polls = [show(world, demoted('n2', 'n1'))]

  await run(world)

  expect(world.sent).toEqual([])
  expect(world.operation).toMatchObject({
    ...{ state: 'done', message: 'n1 is no longer a voter: 2 of 2 voters list n1 as learner' },
  })
})

test('a restart during the transfer observes it, and sends the demotion that was still waiting', async () => {
  const world = both()
  world.isResumed = true
  const waiting = { text: '', at: null, milliseconds: null, evidence: '' }
  world.operation.steps.push({ ...waiting, id: 'demote-requested', state: 'waiting' })
  world.polls = [
    show(world, led('n2', { commit: 50_001 })),
    show(world, led('n2', { commit: 50_002 })),
    show(world, demoted('n2', 'n1')),
  ]

  await run(world)

  expect(world.sent).toMatchObject([{ to: 'n2', path: '/cluster/demote-voter' }])
  expect(world.operation.state).toBe('done')
})

const armed = (lag: number, health = 'active_follower') => {
  const lagging = led('n1', { lags: { n2: [lag, 0] } })
  const nodes = lagging.shard.nodes.map((node) => (node.id === 'n2' ? { ...node, health } : node))
  const view: View = { ...lagging, shard: { ...lagging.shard, nodes } }
  return view
}

test('an armed transfer waits while the lag is not known, 10 minutes at most', async () => {
  const unknown = armed(0)
  const nodes = unknown.shard.nodes.map((node) => ({ ...node, lagEntries: null }))
  const world = worldOf('transfer', 'n2', { ...unknown, shard: { ...unknown.shard, nodes } })
  world.operation = { ...world.operation, state: 'armed' }
  world.polls = [after(world, CATCH_UP.waitMs - 200), () => {}, () => {}]

  await run(world)

  expect(world.operation).toMatchObject({
    ...{ state: 'cancelled', message: 'Not started: n2 did not catch up within 10 minutes.' },
    endedAt: at(NOW + CATCH_UP.waitMs + 200),
  })
  expect(world.sent).toEqual([])
})

test.each<[View, string]>([
  [led('n3'), 'it is n3'],
  [leaderless(), 'there is none'],
])('an armed transfer is cancelled when the leader changes', async (view, text) => {
  const world = worldOf('transfer', 'n2', armed(5_000))
  world.operation = { ...world.operation, state: 'armed' }
  world.polls = [show(world, view), () => {}]

  await run(world)

  expect(world.operation).toMatchObject({
    ...{ state: 'cancelled', message: `Not started: the leader changed, now ${text}. Make a new plan.` },
  })
})
